"""libllmperf by ctypes: JSON goes in, JSON or columns come out (bindings/c/llmperf.h). One file for every Python.

Calls that compute let other threads run meanwhile; those that only read what a result holds keep the interpreter, since
handing it over would take longer than they do.
"""
import ctypes
import os
import threading

NUMBERS, TRUTHS, TEXTS = 0, 1, 2          # kinds of columns
DONE, FAILED, BAD_INPUT, DOES_NOT_FIT, MISSED, INTERRUPTED = 0, 1, 2, 3, 4, 130



class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("numbers", ctypes.c_void_p),
                ("offsets", ctypes.c_void_p), ("text", ctypes.c_void_p)]


def _path():
    """LLMPERF_LIBRARY, else the file of the wheel, else the system's."""
    named = os.environ.get("LLMPERF_LIBRARY")
    ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libllmperf.so")
    return named or (ours if os.path.exists(ours) else "libllmperf.so.0")


def _load():
    path = _path()
    try:
        return ctypes.CDLL(path), ctypes.PyDLL(path)
    except OSError as error:
        raise ImportError(f"llmperf: cannot load {path}: {error}; LLMPERF_LIBRARY names another one") from None


_computing, _reading = _load()


def _function(library, name, result, *arguments):
    function = getattr(library, "llmperf_" + name)
    function.restype, function.argtypes = result, arguments
    return function


_pointer, _size_out = ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)
_open = _function(_computing, "open", _pointer)
_close = _function(_computing, "close", None, _pointer)
_interrupt = _function(_computing, "interrupt", None, _pointer)
_commands = {name: _function(_computing, name, _pointer, _pointer, ctypes.c_char_p, ctypes.c_size_t)
             for name in ("estimate", "explain", "sweep", "serve", "capacity", "validate", "calibrate", "catalog")}
_json = _function(_computing, "json", _pointer, _pointer, _size_out)
_arrow = _function(_computing, "arrow", ctypes.c_int, _pointer, _pointer, _pointer)
_free = _function(_reading, "free", None, _pointer)
_status = _function(_reading, "status", ctypes.c_int, _pointer)
_error = _function(_reading, "error", _pointer, _pointer, _size_out)
_text = _function(_reading, "text", _pointer, _pointer, _size_out)
_rows = _function(_reading, "rows", ctypes.c_size_t, _pointer)
_columns = _function(_reading, "columns", ctypes.c_size_t, _pointer)
_column = _function(_reading, "column", _Column, _pointer, ctypes.c_size_t)
_numbers = _function(_reading, "numbers", ctypes.POINTER(ctypes.c_double), _pointer, _size_out)
_version = _function(_reading, "version", ctypes.c_char_p)


def version():
    """JSON text."""
    return _version()


class Handle:
    """A result of the library, which is freed with this object."""
    __slots__ = ("pointer", "lock", "__weakref__")

    def __init__(self, pointer):
        self.pointer = pointer
        if not pointer:
            raise MemoryError("llmperf: there is no memory for a result")
        self.lock = threading.Lock()  # documents are written when they are first asked for

    def __del__(self, _free=_free):
        if self.pointer:
            _free(self.pointer)

    def status(self):
        return _status(self.pointer)

    def _bytes(self, function):
        size = ctypes.c_size_t()
        return ctypes.string_at(function(self.pointer, size), size.value)

    def json(self):
        with self.lock:
            return self._bytes(_json)

    def error(self):
        return self._bytes(_error)

    def text(self):
        return self._bytes(_text).decode()

    def rows(self):
        return _rows(self.pointer)

    def columns(self):
        """(name, kind) of each."""
        every = (_column(self.pointer, i) for i in range(_columns(self.pointer)))
        return [(column.name.decode(), column.kind) for column in every]

    def kind(self, index):
        return _column(self.pointer, index).kind

    def column_count(self):
        return _columns(self.pointer)

    def numbers(self):
        """Of the first row: a float a column."""
        size = ctypes.c_size_t()
        return _numbers(self.pointer, size)[:size.value]

    def buffer(self, index):
        """The numbers of a column as a ctypes array over the library's memory, which it keeps."""
        array = (ctypes.c_double * self.rows()).from_address(_column(self.pointer, index).numbers)
        array.handle = self
        return array

    def texts(self, index):
        """One a row; None where there is none."""
        column, rows = _column(self.pointer, index), self.rows()
        offsets = (ctypes.c_int64 * (rows + 1)).from_address(column.offsets)[:]
        text = ctypes.string_at(column.text, offsets[-1])
        seen = {b"": None}  # few of them differ
        out = []
        for begin, end in zip(offsets, offsets[1:]):
            piece = text[begin:end]
            if piece not in seen:
                seen[piece] = piece.decode()
            out.append(seen[piece])
        return out

    def arrow(self, schema, array):
        """Fills the ArrowSchema and the ArrowArray at two addresses."""
        with self.lock:
            if _arrow(self.pointer, schema, array) != 0:
                raise RuntimeError("llmperf: this result has no Arrow columns")


# ---- Sessions keep what was read. Calls that take long have one each, so that Ctrl-C stops that call and no other.

_lock = threading.Lock()
_shared = None
_idle = []


def call(command, request):
    """A short one."""
    global _shared
    if _shared is None:
        with _lock:
            _shared = _shared or _open()
    return Handle(_commands[command](_shared, request, len(request)))


def call_long(command, request, stop=False):
    """The same, which Ctrl-C ends: Python runs signal handlers between its own instructions, so the main thread waits
    here while another one computes. `stop`: the work is ended as soon as it begins; what a result says without it, and
    what is wrong with the request, is there all the same."""
    try:
        session = _idle.pop()
    except IndexError:
        session = _open()
    if threading.current_thread() is not threading.main_thread() and not stop:
        handle = Handle(_commands[command](session, request, len(request)))
        _idle.append(session)
        return handle
    results = []
    done = threading.Event()

    def compute():
        try:
            results.append(Handle(_commands[command](session, request, len(request))))
        finally:
            done.set()

    threading.Thread(target=compute, name="llmperf", daemon=True).start()
    try:
        while not done.wait(0.001 if stop else None):
            _interrupt(session)
    except BaseException:
        while not done.is_set():  # more than once: it may not have begun
            _interrupt(session)
            done.wait(0.05)
        _close(session)
        raise
    _idle.append(session)
    if not results:
        raise MemoryError("llmperf: there is no memory for a result")
    return results[0]
