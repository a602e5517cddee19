"""A sweep in parts, which an executor computes wherever it likes: each is a sweep of some of the values, and their rows
together are those of the whole, in its order."""
import itertools
import json
import math
import re
from array import array

import llmperf

from . import _arrow, _library
from ._library import DONE, FAILED, TEXTS

_PARTS, _POINTS, _MOST = 64, 2048, 1024  # so many, of large sweeps one for so many points, and never more
# The library has an axis of these whatever they are, of other fields only where they have two values; so have parts.
_ALWAYS = ("model", "hw", "gen", "prompt", "batch")
# Numbers, and texts that are none: of values that are all alike a part has the column that the whole has.
_ALIKE = (re.compile(r"-?\d+(\.\d+)?"), re.compile(r"(?!.*(inf|nan)).*[a-df-z].*", re.I))
# Counts without a suffix, and ranges. Of such texts no two are the same number, which the library has checked.
_COUNT = re.compile(r" *(0|[1-9]\d*|\d+[kKM]?-.*) *")


def part(text, places):
    """One, computed on any machine, as plain data. Its points are numbered as in the whole: `places` says of each axis
    where the part's values begin, how many they are, and of how many."""
    handle = _library.call_long("sweep", text)
    kinds, columns = handle.columns(), []
    for i, (name, kind) in enumerate(kinds if handle.rows() else ()):
        values = handle.texts(i) if kind == TEXTS else handle.buffer(i)
        if name == "point":
            values = array("d", (_in_whole(int(point), places) for point in values))
        columns.append(values if kind == TEXTS else bytes(values))
    return (_library.version(), kinds), handle.status(), handle.error(), columns


def _in_whole(point, places):
    out, step = 0, 1
    for begin, count, of in reversed(places):
        point, at = divmod(point, count)
        out, step = out + step * (begin + at), step * of
    return out + step * point  # without places there is one part


def _axes(request, shown):
    """Keys and values of what changes, slowest first. Nothing where counts are the same twice, as 1k and 1000 are: the
    library shows those once."""
    fields = {field["name"]: field for field in llmperf.fields()}
    axes = {fields[axis["flag"][2:]]["key"]: axis["values"] for axis in shown}
    for field in fields.values():
        value, count = request.get(field["key"]), len(axes.get(field["key"], "1"))
        if isinstance(value, list) and len(value) > 1:
            if len(value) != count:
                return []
            axes[field["key"]] = value
        elif isinstance(value, str) and field["type"] == "count":
            texts = value.split(",")
            if not (all(map(_COUNT.fullmatch, texts)) if "-" in value else len(texts) == count):
                return []
    return list(axes.items())


def _divided(request, axes):
    """The request of each part, and its places."""
    left = min(max(_PARTS, math.prod(len(values) for _, values in axes) // _POINTS), _MOST)
    pieces = []
    for key, values in axes:
        alike = any(all(form.fullmatch(str(value)) for value in values) for form in _ALIKE)
        count = max(1, min(left, len(values) if key in _ALWAYS else len(values) // 2 if alike else 1))
        left //= count
        edges = [i * len(values) // count for i in range(count + 1)]
        pieces.append([(key, values, begin, end) for begin, end in zip(edges, edges[1:])])
    for chosen in itertools.product(*pieces):
        yield ({**request, **{key: values[begin:end] for key, values, begin, end in chosen}},
               [(begin, end - begin, len(values)) for _, values, begin, end in chosen])


def gather(executor, calls):
    """What functions brought, each called with what stands behind it, in their order."""
    futures = []
    try:
        for call in calls:
            futures.append(executor.submit(*call))
        return [future.result() for future in futures]
    except BaseException:  # Ctrl-C, or a worker is lost: what has not begun never does
        for future in futures:
            future.cancel()
        raise


def _best(order, costs, top):
    """As the library chooses (src/points/selection.cpp): the best first, of equals the earlier point."""
    order.sort(key=costs[0].__getitem__)
    if top is not None:
        return order[:top]
    cost, front = list(zip(*costs)), []
    for row in sorted(order, key=cost.__getitem__):
        if not any(cost[of] != cost[row] and all(a <= b for a, b in zip(cost[of], cost[row])) for of in front):
            front.append(row)
    front = set(front)
    return [row for row in order if row in front]


class Gathered:
    """Read as a result of the library is (_library.Handle)."""

    def __init__(self, text, status, error, kinds=(), columns=((),)):
        self._text, self._status, self._error, self._kinds, self._columns = text, status, error, kinds, columns
        self._whole = None

    def status(self):
        return self._status

    def error(self):
        return self._error

    def rows(self):
        return len(self._columns[0])

    def columns(self):
        return self._kinds

    def buffer(self, index):
        return self._columns[index]

    texts = buffer

    def arrow(self, *addresses):
        _arrow.fill(self._kinds, self._columns, *addresses)

    def json(self):
        """Computed here: a document says of all points what no row has."""
        self._whole = self._whole or _library.call_long("sweep", self._text)
        return self._whole.json()


def _gathered(kinds, parts):
    """The columns of all parts, one behind the other."""
    columns = [[] if kind == TEXTS else array("d") for _, kind in kinds]
    for column, *pieces in zip(columns, *(brought for *_, brought in parts if brought)):
        for piece in pieces:
            column.extend(piece) if isinstance(column, list) else column.frombytes(piece)
    return columns


def _chosen(columns, order):
    if order == list(range(len(columns[0]))):
        return columns
    chosen = [map(column.__getitem__, order) for column in columns]
    return [list(of) if isinstance(column, list) else array("d", of) for column, of in zip(columns, chosen)]


def call(executor, command, text):
    """What _library.call_long answers to a sweep."""
    begun = _library.call_long(command, text, stop=True)
    kinds = begun.columns()
    if not kinds:
        return begun  # it says what is wrong with the request
    request = json.loads(text)
    pareto = request.get("pareto")
    by, top = pareto or request.get("by") or "", None if pareto else request.get("top")
    by = [key.strip().split(":") for key in (",".join(by) if isinstance(by, list) else by).split(",") if key]
    names = [*(name for name, _ in kinds), "point", *(key[0].strip() for key in by)]
    request = {"threads": 1, **request, "columns": names}
    begun = _library.call_long(command, json.dumps(request).encode(), stop=True)
    ours, document = (_library.version(), begun.columns()), json.loads(begun.json())
    # What parts cannot tell is one: a condition on the numbers of points, an order of values some of which are texts.
    whole = re.search(r"\bpoint\b", f"{request.get('where')} {by}") or not isinstance(top, (int, type(None)))
    whole = whole or TEXTS in [kind for _, kind in ours[1][len(kinds):]]
    axes = [] if whole else _axes(request, document["axes"])
    parts = gather(executor, ((part, json.dumps(one).encode(), places) for one, places in _divided(request, axes)))
    for theirs, status, error, _ in parts:
        if status not in (DONE, FAILED) or not theirs[1]:
            return Gathered(text, status, error)
        if theirs != ours:
            raise llmperf.Failed([{"message": f"a worker has another llmperf than this process: {theirs[0].decode()}"}])
    columns = _gathered(ours[1], parts)
    points, keys = columns[len(kinds)], columns[len(kinds) + 1:]
    order = list(range(len(points)))
    if len(parts) > 1:
        order.sort(key=points.__getitem__)
    if len(parts) > 1 and by:
        better = {column["name"]: column["better"] for column in document["columns"]}
        ways = [way[0].strip() if way else better[name.strip()] for name, *way in by]
        costs = [key if way in ("low", "lower") else [-value for value in key] for way, key in zip(ways, keys)]
        order = _best(order, costs, top)
    status, error = max(status for _, status, *_ in parts), parts[0][2]
    if status == FAILED and not points and len(parts) > 1:  # no row says why: those that failed, and nothing else
        request.update(where="error != ''", columns=["error"], top=None, by=None, pareto=None)
        failed = call(executor, command, json.dumps(request).encode())
        of = math.prod(len(values) for _, values in axes)
        message = f"{failed.rows()} of {of} points failed; the first: {failed.texts(0)[0]}"
        error = json.dumps({"errors": [{"message": message}]})
    return Gathered(text, status, error, kinds, _chosen(columns[:len(kinds)], order))
