#!/usr/bin/env python3
"""Writes bindings/python/llmperf/__init__.pyi: the module's functions with a typed keyword for every field of a
request, from the table that the flags are made from (`{"kind": "fields"}`). --check says whether the file is what this
writes.

Wants the module's library: LLMPERF_LIBRARY=build/release/libllmperf.so scripts/python_stubs.py
"""
import os
import sys
import textwrap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PACKAGE = os.path.join(ROOT, "bindings", "python")
OUT = os.path.join(PACKAGE, "llmperf", "__init__.pyi")
WIDTH = 120

HEAD = '''\
# Written by scripts/python_stubs.py from the fields of a request.
from concurrent.futures import Executor
from os import PathLike
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, TypeVar, Union

Named = Union[str, PathLike[str], Dict[str, Any]]  # a name, a path, or the description itself
Count = Union[int, str]  # 4096, "4k"
Number = Union[float, str]
Text = Union[str, float, Sequence[Union[str, float]]]  # lists are joined with commas
T = TypeVar("T")
Many = Union[T, Sequence[T]]  # an axis of a sweep

__version__: str
'''

BEFORE = {
    "class Error(Exception):": ["errors: List[Dict[str, Any]]", "@property", "def hints(self) -> List[str]: ..."],
    "class BadInput(Error, ValueError): ...": [],
    "class UnknownKeyword(BadInput, TypeError): ...": [],
    "class DoesNotFit(Error):": ["result: Optional[Result]"],
    "class Failed(Error, RuntimeError): ...": [],
    "class Result(Mapping[str, Any]):": [
        "status: int", "@property", "def json(self) -> str: ...", "def to_dict(self) -> Dict[str, Any]: ...",
        "def save(self, path: Union[str, PathLike[str]]) -> None: ...", "def __getitem__(self, key: str) -> Any: ...",
        "def __iter__(self) -> Iterator[str]: ...", "def __len__(self) -> int: ...",
        "def __getattr__(self, name: str) -> Any: ..."],
    "class Calibration(Result):": ["@property", "def profile(self) -> str: ..."],
    "class Sweep:": [
        "status: int", "@property", "def columns(self) -> List[str]: ...", "@property",
        "def document(self) -> Dict[str, Any]: ...", "@property", "def errors(self) -> List[str]: ...",
        "def __len__(self) -> int: ...", "def __contains__(self, name: str) -> bool: ...",
        "def __getitem__(self, key: Union[str, int]) -> Any: ...",
        "def __iter__(self) -> Iterator[Dict[str, Any]]: ...",
        "def __getattr__(self, name: str) -> Any: ...", "def to_dict(self) -> Dict[str, List[Any]]: ...",
        "def to_numpy(self) -> Dict[str, Any]: ...", "def to_pandas(self) -> Any: ...",
        "def to_polars(self) -> Any: ...",
        "def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...",
        "def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ..."],
}

AFTER = '''
def validate(measurements: Union[Named, Sequence[Named]], *, hw: Optional[Named] = None,
             runtime: Optional[Named] = None, model: Optional[Named] = None,
             weights: Optional[Text] = None) -> Result: ...
def capacities(studies: Sequence[Mapping[str, Any]], *, executor: Optional[Executor] = None) -> List[Result]: ...
def calibrate(measurements: Union[Named, Sequence[Named]], hw: Named, *, runtime: Optional[Named] = None,
              start: Optional[Named] = None, model: Optional[Named] = None,
              weights: Optional[Text] = None) -> Calibration: ...
def models(name: Optional[Named] = None) -> Any: ...
def hardware(name: Optional[Named] = None) -> Any: ...
def runtimes(name: Optional[Named] = None) -> Any: ...
def measurements() -> List[Dict[str, Any]]: ...
def fields() -> List[Dict[str, Any]]: ...
def version() -> Dict[str, Any]: ...
'''

# Functions: their workloads, what they return, arguments before the fields, fields that are axes (True: all), and the
# fields that stand before the others.
STEPS = ("text", "video", "training")
FUNCTIONS = (
    ("estimate", STEPS, "Estimate", ["must_fit: bool = True"], ()),
    ("explain", STEPS, "Result", [], ()),
    ("sweep", STEPS, "Sweep", ["where: Optional[str] = None", "top: Optional[int] = None", "by: Optional[str] = None",
                               "pareto: Union[str, Sequence[str], None] = None",
                               "columns: Union[str, Sequence[str], None] = None",
                               "threads: Optional[int] = None", "executor: Optional[Executor] = None"], True),
    ("serve", ("serving",), "Result", [], ()),
    ("capacity", ("serving",), "Result",
     ["fleet: Optional[str] = None", "day: Optional[Text] = None", "scale_time: Optional[str] = None",
      "api_price: Optional[Text] = None", "pd: bool = False", 'minimise: Literal["cost", "devices", "energy", None] = None',
      "threads: Optional[int] = None", "must_fit: bool = True"],
     ("hw", "tp", "weights", "engine")),
)
NAMED = ("model", "hw", "runtime")


def type_of(field):
    if field["key"] in NAMED:
        return "Named"
    if field["type"] == "switch":
        return "bool"
    values = field.get("values", [])
    if values == ["on", "off"]:
        return 'Union[bool, Literal["on", "off"]]'
    if field["type"] == "text" and values and not field.get("open"):
        return f"Literal[{', '.join(chr(34) + v + chr(34) for v in values)}]"
    if field["key"] == "slo":
        return "Union[str, Mapping[str, str]]"
    return {"text": "Text", "count": "Count", "number": "Number", "bytes": "Count"}[field["type"]]


def parameter(field, axes):
    kind = type_of(field)
    return f"{field['key']}: Optional[{f'Many[{kind}]' if axes is True or field['key'] in axes else kind}] = None"


def function(name, workloads, result, own, axes, fields):
    taken = [f for f in fields if set(workloads) & set(f["workloads"])]
    first = [parameter(f, axes) for key in ("model", "hw") for f in taken if f["key"] == key]
    if name == "explain":
        first.append("number: Optional[str] = None")
    lines = [f"def {name}(", f"    {', '.join(first)}, *,", *(f"    {text}," for text in own)]
    for field in taken:
        if field["key"] not in ("model", "hw"):
            lines += textwrap.wrap(field["about"], WIDTH, initial_indent="    # ", subsequent_indent="    # ")
            lines.append(f"    {parameter(field, axes)},")
    return "\n".join([*lines, f") -> {result}: ..."])


def estimate_class(llmperf):
    """With the columns of a generation, a video and a training step."""
    columns = {}
    for model, options in (("qwen-7b", {}), ("stdit3-xl2", {}), ("qwen-7b", {"training": True, "tp": 4})):
        for name, kind in llmperf.estimate(model, "h100-sxm", must_fit=False, **options)._handle.columns():
            columns.setdefault(name, ("Optional[float]", "bool", "Optional[str]")[kind])
    body = [f"{name}: {kind}" for name, kind in columns.items()]
    return ["class Estimate(Result):", *("    " + line for line in ("numbers: Dict[str, float]", *body))]


def written():
    sys.path.insert(0, PACKAGE)
    import llmperf
    lines = [HEAD]
    for head, body in BEFORE.items():
        lines += [head, *("    " + line for line in body), ""]
        if head.startswith("class Result"):
            lines += [*estimate_class(llmperf), ""]
    fields = llmperf.fields()
    return "\n".join(lines) + "\n".join(function(*f, fields) for f in FUNCTIONS) + AFTER


def main():
    text = written()
    if "--check" in sys.argv:
        with open(OUT, encoding="utf-8") as file:
            if file.read() == text:
                return 0
        print("bindings/python/llmperf/__init__.pyi is not what scripts/python_stubs.py writes: run it")
        return 1
    with open(OUT, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
