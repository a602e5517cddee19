"""What is computed, as documents and columns. Documents are those of the program's --json (docs/json.md), and are
parsed when they are first asked for; numbers and columns are read from where the library has them."""
import json
from collections.abc import Mapping

from . import _html, _library
from ._library import NUMBERS, TEXTS, TRUTHS

_numpy = None


def _load_numpy():
    """The module, or False; not before a column is asked for, since importing it takes longer than a sweep."""
    global _numpy
    if _numpy is None:
        try:
            import numpy
            _numpy = numpy
        except ImportError:
            _numpy = False
    return _numpy


def _plain(number):
    """As a document has it: none for NaN, whole numbers without a fraction."""
    if number != number:
        return None
    return int(number) if number.is_integer() else number


class Result(Mapping):
    """A document: result["phases"], or result.phases. `status` is the program's exit status, `json` the text of the
    document as the program prints it."""
    __slots__ = ("_handle", "_bytes", "_document", "status", "__weakref__")

    def __init__(self, handle, status):
        self._handle, self.status = handle, status
        self._bytes = self._document = None

    @property
    def json(self):
        return (self._bytes if self._handle is None else self._handle.json()).decode()

    def to_dict(self):
        """The document as a dict of one's own."""
        return json.loads(self.json)

    def _parsed(self):
        if self._document is None:
            self._document = self.to_dict()
        return self._document

    def save(self, path):
        """Writes the document to a file, which `llmperf report` and `llmperf compare` read."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.json)

    def __getitem__(self, key):
        return self._parsed()[key]

    def __iter__(self):
        return iter(self._parsed())

    def __len__(self):
        return len(self._parsed())

    def __getattr__(self, name):
        if not name.startswith("_"):
            document = self._parsed()
            if name in document:
                return document[name]
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def __dir__(self):
        return [*super().__dir__(), *self._parsed()]

    def __reduce__(self):
        return _restored, (type(self), self.json, self.status)

    def __repr__(self):
        return f"<{self._parsed()['schema']}: {_html.summary(self._parsed())}>"

    def _repr_html_(self):
        return _html.document(self._parsed())


def _restored(kind, text, status, *more):
    """A result that was pickled: its document, and what an estimate has beside it, are all there is of it."""
    result = kind(None, status, *more)
    result._bytes = text.encode()
    return result


# Where an estimate's columns are, by how many there are: text, video and training differ in that.
_places = {}


def _places_of(handle):
    count = handle.column_count()
    found = _places.get(count)
    if found is None:
        _places[count] = found = {name: i for i, (name, _) in enumerate(handle.columns())}
    return found


class Estimate(Result):
    """An estimate. What the program's CSV has in a row is an attribute that needs no parsing: `ttft_s`, `tpot_s`,
    `tokens_per_second`, `fits`, `total_bytes`, `largest_batch` … of text, `generation_s` … of a video, `step_s` … of
    training (docs/python.md lists them). Times are seconds, memory bytes; None is what there is no number for."""
    __slots__ = ("_row", "_cells")

    def __init__(self, handle, status, cells=None):
        super().__init__(handle, status)
        self._row, self._cells = None, cells  # where the library has the row, or what was pickled of it

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if self._handle is None:
            return self._cells[name] if name in self._cells else super().__getattr__(name)
        index = _places_of(self._handle).get(name)
        return super().__getattr__(name) if index is None else self._cell(index)

    def _cell(self, index):
        if self._row is None:
            self._row = self._handle.numbers()
        value = _plain(self._row[index])
        if value is None:
            return self._handle.texts(index)[0] if self._handle.kind(index) == TEXTS else None
        return bool(value) if value in (0, 1) and self._handle.kind(index) == TRUTHS else value

    def _row_dict(self):
        if self._handle is None:
            return self._cells
        return {name: self._cell(index) for name, index in _places_of(self._handle).items()}

    @property
    def numbers(self):
        """Every number of the row by its name, without what there is none for."""
        return {name: value for name, value in self._row_dict().items() if type(value) in (int, float)}

    def __dir__(self):
        return [*super().__dir__(), *self._row_dict()]

    def __reduce__(self):
        return _restored, (type(self), self.json, self.status, self._row_dict())

    def __repr__(self):
        document = self._parsed()
        return f"<Estimate of {_html.title(document)}: {', '.join(f'{k} {v}' for k, v in _html.headline(document))}>"

    def _repr_html_(self):
        return _html.estimate(self._parsed())


class Sweep:
    """The rows of a sweep as columns. sweep["ttft_s"] is a column: NumPy arrays over the library's own memory where
    NumPy is installed (read-only; NaN is what there is no number for, texts are of dtype object with None), else
    array.array and lists. len(sweep) is the number of rows, sweep[0] one of them as a dict, iterating gives all;
    `columns` are the names. `document` is the program's JSON document, where there are at most 20,000 rows. pandas,
    Polars, pyarrow and DuckDB take a sweep as it is by Arrow's C data interface."""

    def __init__(self, handle, status):
        self._handle, self.status = handle, status
        self._kinds = handle.columns()
        self._index = {name: i for i, (name, _) in enumerate(self._kinds)}
        self._cache, self._lists = {}, {}
        self._rows = handle.rows()

    @property
    def columns(self):
        return list(self._index)

    @property
    def document(self):
        return json.loads(self._handle.json())

    @property
    def errors(self):
        """Why points could not be estimated, without those that could."""
        if "error" not in self._index:
            return []
        return [text for text in self._list("error") if text is not None]

    def __len__(self):
        return self._rows

    def __contains__(self, name):
        return name in self._index

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self._cache:
                self._cache[key] = self._column(self._index[key])
            return self._cache[key]
        if not -self._rows <= key < self._rows:
            raise IndexError(f"a sweep of {self._rows} rows has no row {key}")
        return {name: self._list(name)[key] for name in self._index}

    def __getattr__(self, name):
        if not name.startswith("_") and name in self._index:
            return self[name]
        raise AttributeError(f"a sweep has no column {name}")

    def __dir__(self):
        return [*super().__dir__(), *self._index]

    def __iter__(self):
        names, columns = zip(*self.to_dict().items())
        return (dict(zip(names, row)) for row in zip(*columns))

    def _column(self, index):
        kind, numpy = self._kinds[index][1], _load_numpy()
        if not self._rows:
            return numpy.empty(0, dtype={NUMBERS: float, TRUTHS: bool, TEXTS: object}[kind]) if numpy else []
        if kind == TEXTS:
            texts = self._listed(index)
            return numpy.array(texts, dtype=object) if numpy else texts
        buffer = self._handle.buffer(index)
        if numpy:
            values = numpy.frombuffer(buffer)
            values.flags.writeable = False
            return values if kind == NUMBERS else values == 1
        if kind == NUMBERS:
            import array
            return array.array("d", bytes(buffer))
        return [value == 1 for value in buffer]

    def to_dict(self):
        """Lists of Python's own values by column, with None for what is not there."""
        return {name: self._list(name) for name in self._index}

    def _list(self, name):
        if name not in self._lists:
            self._lists[name] = self._listed(self._index[name])
        return self._lists[name]

    def _listed(self, index):
        kind = self._kinds[index][1]
        if not self._rows:
            return []
        if kind == TEXTS:
            return self._handle.texts(index)
        values = [_plain(value) for value in self._handle.buffer(index)]
        return values if kind == NUMBERS else [None if value is None else bool(value) for value in values]

    def to_numpy(self):
        """A dict of NumPy arrays by column."""
        if not _load_numpy():
            raise ImportError("to_numpy() needs NumPy")
        return {name: self[name] for name in self._index}

    def to_pandas(self):
        """A pandas.DataFrame, its columns those of the sweep."""
        import pandas
        return pandas.DataFrame({name: self[name] for name in self._index})

    def to_polars(self):
        """A polars.DataFrame."""
        import polars
        return polars.DataFrame(self)

    def __arrow_c_array__(self, requested_schema=None):
        from . import _arrow
        return _arrow.array_capsules(self._handle)

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _arrow
        return _arrow.stream_capsule(self._handle)

    def __repr__(self):
        return f"<Sweep: {self._rows:,} rows of {len(self._kinds)} columns: {', '.join(list(self._index)[:6])} …>"

    def _repr_html_(self):
        return _html.rows(self)
