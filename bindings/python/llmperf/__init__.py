"""How fast a language model runs on an accelerator, what limits it, and whether it fits: llmperf from Python.

    >>> import llmperf
    >>> e = llmperf.estimate("llama-3.1-8b", "h100", batch=16, weights="fp8")
    >>> e.ttft_s, e.fits, e["phases"][1]["bound"]

Every function takes what the flags of the program's command of the same name say (docs/guide.md), as keywords:
`--gpu-layers 20` is gpu_layers=20, `--reserve 2GB` is reserve_bytes="2GB" or a number of bytes. fields() lists them.
Values are numbers, texts as the flags take them ("128k", "q4_k_m"), or True. A model, a device or a runtime profile is
a name, a path, or its description as a dict (the content of a config.json, or of the YAML). Times are in seconds,
memory in bytes, rates per second.

Errors: BadInput (a ValueError) for a wrong name, value, keyword or file; DoesNotFit with hints what would; Failed (a
RuntimeError) for what lies outside the input. All have `errors`.
"""
import functools as _functools
import json as _json_module
import math as _math
import os as _os
import warnings as _warnings

from . import _errors, _library
from ._errors import BadInput, DoesNotFit, Error, Failed, UnknownKeyword
from ._results import Estimate, Result, Sweep

__all__ = ["BadInput", "DoesNotFit", "Error", "Estimate", "Failed", "Result", "Sweep", "UnknownKeyword", "calibrate",
           "capacities", "capacity", "estimate", "explain", "fields", "hardware", "measurements", "models", "runtimes", "serve",
           "sweep", "validate", "version"]


def __getattr__(name):
    if name == "__version__":
        return version()["version"]
    raise AttributeError(f"module llmperf has no {name}")


# ---- Requests.

_fields = None


def fields():
    """The fields of a request, which are keywords here: a list of dicts with `key` (the keyword), `type` ("text",
    "count", "number", "bytes", "switch"), `about`, `group`, `workloads` ("text", "video", "training", "serving") and,
    where there are, `default`, `values`, `least`, `most`."""
    global _fields
    if _fields is None:
        _fields = _call(_library.call, "catalog", {"kind": "fields"})["fields"]
    return _fields


def _switches():
    return {field["key"] for field in fields() if field["type"] == "switch"}


def _value(key, value):
    """One value of a field, as JSON has it. A list is one value that has commas: tensor_split=[3, 2]."""
    if hasattr(value, "tolist"):  # NumPy and its like
        return _value(key, value.tolist())
    if isinstance(value, bool):
        return (value or None) if key in _switches() else "on" if value else "off"
    if isinstance(value, float):
        return value if _math.isfinite(value) else str(value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, dict):
        return ",".join(f"{bound}={time}" for bound, time in value.items()) if key == "slo" else value
    if isinstance(value, _os.PathLike):
        return _os.path.abspath(value)
    if isinstance(value, (list, tuple, range)):
        return ",".join(str(_value(key, part)) for part in value)
    raise TypeError(f"{key}={value!r} is no value of a request")


def _request(model, hw, options, axes=False):
    """The object that the library reads. What is None is not asked for; `axes`: lists are several values."""
    request = {}
    for key, value in (("model", model), ("hw", hw), *options.items()):
        kind = type(value)
        if kind is str or kind is int:
            request[key] = value
            continue
        if axes and hasattr(value, "tolist"):
            value = value.tolist()
        if axes and isinstance(value, (list, tuple, range)):
            request[key] = [_value(key, one) for one in value]
        elif value is not None and (one := _value(key, value)) is not None:
            request[key] = one
    return request


_OWN = ("where", "top", "by", "pareto", "columns", "threads", "pd", "minimise", "number", "measurements", "kind",
        "name")


def _keys():
    """What the library calls a keyword, and how it is written here."""
    return {**{field["name"]: field["key"] for field in fields()}, **{name: name for name in _OWN}, "from": "start"}


def _errors_of(handle):
    return _errors.problems(handle.error(), _keys())


def _check_keywords(function, request):
    known = [field["key"] for field in fields()]
    for key in request:
        if key not in known:
            raise _errors.unknown_keyword(function, key, known)


_encode = _json_module.JSONEncoder(separators=(",", ":")).encode


def _call(how, command, request, kind=Result, must_fit=True, own=()):
    """The result, or what the status means. `own`: keys that are no fields of a request."""
    handle = how(command, _encode(request).encode())
    status = handle.status()
    failed_points = status == _library.FAILED and handle.rows() > 0  # of a sweep: its rows say why
    if status in (_library.DONE, _library.MISSED) or failed_points:
        return kind(handle, status)
    if status == _library.DOES_NOT_FIT:
        documented = command in ("estimate", "capacity")  # the others have nothing to tell then
        result = kind(handle, status) if documented else None
        if documented and not must_fit:
            return result
        raise DoesNotFit(_errors_of(handle), result)
    if status == _library.INTERRUPTED:
        raise KeyboardInterrupt
    if status == _library.BAD_INPUT:
        if command != "catalog":
            _check_keywords(command, [key for key in request if key not in own])
        raise BadInput(_errors_of(handle))
    raise Failed(_errors_of(handle))


# ---- What can be asked.


def estimate(model=None, hw=None, *, must_fit=True, **options):
    """How one model runs on one device, or on several: latency, throughput, memory. A generation of text, a video (of a
    model that makes such), or with training=True a training step.

    Returns an Estimate. Raises DoesNotFit where memory does not suffice (its `result` has what is needed, its `hints`
    what would do); must_fit=False returns that result. Raises BadInput.
    """
    return _call(_library.call, "estimate", _request(model, hw, options), Estimate, must_fit)


def explain(model=None, hw=None, number=None, **options):
    """Where a number of an estimate comes from: `formula`, `substituted`, `variables`, `parts`. number is its path in
    the document ("ttft_s", "phases.decode.ops.attention.bytes"); without it `paths` lists all there are."""
    request = _request(model, hw, options)
    if number is not None:
        request["number"] = number
    return _call(_library.call, "explain", request, own=("number",))


def sweep(model=None, hw=None, *, where=None, top=None, by=None, pareto=None, columns=None, threads=None,
          executor=None, **options):
    """Every combination of lists of values: sweep("qwen-7b", ["rtx4090", "h100"], batch=[1, 2, 4]). A text may be a
    list as the program takes it: batch="1-128*2". A value that is a list itself is in a second one: options=[["all",
    "no_flash"], "none"].

    where: a condition that rows must meet, "fits and ttft_s < 500ms". top and by: the best so many by a column; pareto:
    the columns, as a list, of which the Pareto front is kept. columns: which are wanted, in which order. threads: all
    cores by default. Ctrl-C ends it.

    executor: a concurrent.futures.Executor that computes parts of it, wherever it likes (docs/python.md); threads are
    then those of a part, one by default. What is returned is the same.

    Returns a Sweep. Points that cannot be estimated have the reason in the column `error` and make a warning; what does
    not fit has fits False and NaN for times. Raises BadInput.
    """
    own = {"where": where, "top": top, "by": by, "pareto": pareto, "columns": columns, "threads": threads}
    request = _request(model, hw, options, axes=True)
    request.update((key, value) for key, value in own.items() if value is not None)
    how = _library.call_long
    if executor is not None:
        from . import _parts
        how = _functools.partial(_parts.call, executor)
    result = _call(how, "sweep", request, Sweep, own=own)
    if result.errors:
        first = _errors.in_keywords(result.errors[0], _keys())
        _warnings.warn(f"{len(result.errors)} points failed; the first: {first}", stacklevel=2)
    return result


def serve(model=None, hw=None, **options):
    """How traffic fares on a serving engine: rate=10 requests per second (or concurrency=, or trace= a file) with
    input= and output= tokens. slo="ttft.p99=1s,tpot.p95=50ms", or the same as a dict, is held against it.

    Returns a Result: `ttft_s`, `tpot_s`, `itl_s`, `e2e_s` (each with mean, p50, p90, p95, p99),
    `output_tokens_per_second`, `goodput_per_second`, `slo`, `causes`, `kv` …; its status is 4 where a bound is missed.
    Ctrl-C ends it. Raises BadInput, and DoesNotFit where the model does not.
    """
    return _call(_library.call_long, "serve", _request(model, hw, options))


def capacity(model=None, hw=None, *, rate=None, slo=None, pd=False, minimise=None, threads=None, must_fit=True,
             **options):
    """The cheapest devices, plan and weights that serve rate= requests per second within the bounds slo=. hw, tp,
    weights and engine may be lists; without hw every built-in GPU is tried. pd: also prompts and decode on replicas of
    their own. minimise: "cost", "devices" or "energy". fleet, day, scale_time and api_price are texts as the program
    takes them; with a fleet or a day there is no rate.

    Returns a Result whose `candidates` are best first. Raises DoesNotFit where nothing meets the bounds, with the
    result whose first candidate comes nearest; must_fit=False returns it. Ctrl-C ends it. Raises BadInput.
    """
    own = {"pd": True if pd else None, "minimise": minimise, "threads": threads}
    request = _request(model, hw, {"rate": rate, "slo": slo, **options}, axes=True)
    request.update((key, value) for key, value in own.items() if value is not None)
    return _call(_library.call_long, "capacity", request, must_fit=must_fit, own=own)


def capacities(studies, *, executor=None):
    """Several searches, each a dict of what capacity() takes: [{"model": "llama-3.1-8b", "hw": hw, "rate": 20, "slo":
    "ttft.p99=1s"} for hw in ("h100", "l40s")].

    executor: a concurrent.futures.Executor that runs each of them wherever it likes (docs/python.md), in one thread
    unless it says threads=. What is returned is the same.

    Returns a list of Results in their order; of one where nothing meets the bounds `feasible` is false. Raises BadInput,
    and then those that have not begun never do.
    """
    defaults = {"must_fit": False} if executor is None else {"must_fit": False, "threads": 1}
    searches = [_functools.partial(capacity, **{**defaults, **study}) for study in studies]
    if executor is None:
        return [search() for search in searches]
    from . import _parts
    return _parts.gather(executor, ((search,) for search in searches))


def _names(measurements):
    every = measurements if isinstance(measurements, (list, tuple)) else [measurements]
    return [name if isinstance(name, str) else _os.path.abspath(name) for name in every]


def validate(measurements, *, hw=None, runtime=None, model=None, weights=None):
    """Predictions beside measurements: built-in names (measurements() lists them) or CSV files, one or a list. hw: a
    device of one's own that rows name; runtime: a profile for all rows; hw, model, weights: of rows that do not say it.

    Returns a Result: `rows` with measured_s, predicted_s and error, `summary` and `groups` with shares like mape, and
    `refused`, the lines that are not among the rows.
    """
    request = {"measurements": _names(measurements), **_request(model, hw, {"runtime": runtime, "weights": weights})}
    return _call(_library.call_long, "validate", request, own=("measurements",))


class Calibration(Result):
    """A fit: `parameters`, and the fitted profile."""
    __slots__ = ()

    @property
    def profile(self):
        """The profile as YAML text, which runtime= takes as a file."""
        return self._handle.text()

    def __reduce__(self):
        raise TypeError("a calibration is kept by its profile and its document, not by pickling")


def calibrate(measurements, hw, *, runtime=None, start=None, model=None, weights=None):
    """Fits a runtime profile of the device hw to measured latencies. runtime: the profile to start from; start: the one
    whose fitted numbers the fit starts at and is pulled towards (--from); model, weights: of rows that do not say it.

    Returns a Result with the `parameters`; its `profile` is the YAML.
    """
    request = {"measurements": _names(measurements), **_request(model, hw, {"runtime": runtime, "from": start, "weights": weights})}
    return _call(_library.call_long, "calibrate", request, Calibration, own=("measurements", "from"))


# ---- What is built in.


def version():
    """Of the library: a dict with version, and of what it was made."""
    return _json_module.loads(_library.version())


def _listed(kind, key, one, name):
    if name is None:
        return _call(_library.call, "catalog", {"kind": kind})[key]
    return _call(_library.call, "catalog", {"kind": one, "name": name if isinstance(name, dict) else _os.fspath(name)})


def models(name=None):
    """The built-in models, a list of dicts with name, hf_id, architecture and parameters; with a name, a path or a dict
    all of that one."""
    return _listed("models", "models", "model", name)


def hardware(name=None):
    """The built-in devices, a list of dicts with name, title, vendor, kind, memory; with a name all of that one."""
    return _listed("hardware", "hardware", "device", name)


def runtimes(name=None):
    """The runtime profiles, a list of dicts; with a name every number of that one."""
    return _listed("runtimes", "runtimes", "runtime", name)


def measurements():
    """The built-in measurements, a list of dicts with name, rows and about."""
    return _listed("measurements", "measurements", None, None)
