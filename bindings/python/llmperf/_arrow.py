"""Columns for other libraries without copying: the Arrow C data interface in PyCapsules
(arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html)."""
import ctypes
import errno
import itertools

from ._library import NUMBERS, TEXTS, TRUTHS

_pointer = ctypes.c_void_p


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


_release = ctypes.CFUNCTYPE(None, _pointer)
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _pointer),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                   ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", _pointer), ("release", _pointer), ("private_data", _pointer)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(_pointer)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", _pointer), ("release", _pointer),
                  ("private_data", _pointer)]
_get = ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _pointer)
_get_error = ctypes.CFUNCTYPE(_pointer, _pointer)
Stream._fields_ = [("get_schema", _get), ("get_next", _get), ("get_last_error", _get_error), ("release", _pointer),
                   ("private_data", _pointer)]

_api = ctypes.pythonapi
_destructor = ctypes.CFUNCTYPE(None, _pointer)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _pointer, ctypes.c_char_p, _destructor)(("PyCapsule_New", _api))
# By address: the capsule that a destructor is told of must not be referred to again.
_capsule_pointer = ctypes.PYFUNCTYPE(_pointer, _pointer, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))

_kept = {}  # structures that capsules hold, and streams that are read, by address


def _release_at(structure):
    if structure.release:
        _release(structure.release)(ctypes.addressof(structure))


def _destroyer(name):
    def destroy(capsule):
        structure = _kept.pop(_capsule_pointer(capsule, name), None)
        if structure is not None:
            _release_at(structure)
    return _destructor(destroy)


_names = {Schema: b"arrow_schema", Array: b"arrow_array", Stream: b"arrow_array_stream"}
_destroyers = {kind: _destroyer(name) for kind, name in _names.items()}


def _capsule(structure):
    kind = type(structure)
    address = ctypes.addressof(structure)
    _kept[address] = structure
    return _new_capsule(address, _names[kind], _destroyers[kind])


def _export(handle):
    schema, array = Schema(), Array()
    handle.arrow(ctypes.addressof(schema), ctypes.addressof(array))
    return schema, array


def array_capsules(handle):
    schema, array = _export(handle)
    return _capsule(schema), _capsule(array)


# A stream of the one array that there is. What it needs stands in `_reading` until whoever reads it releases it.
_reading = {}
_numbers = itertools.count(1)


def _move(source, kind, to):
    ctypes.memmove(to, ctypes.addressof(source), ctypes.sizeof(kind))
    source.release = None


def _failing(function):
    """As C expects it: a number of errno.h where it fails. What a callback raises would be lost."""
    def call(stream, out):
        try:
            function(_reading[Stream.from_address(stream).private_data], out)
            return 0
        except Exception:
            return errno.EIO
    return _get(call)


@_failing
def _get_schema(state, out):
    schema, array = _export(state["handle"])
    _release_at(array)
    _move(schema, Schema, out)


@_failing
def _get_next(state, out):
    if state["done"]:
        ctypes.memset(out, 0, ctypes.sizeof(Array))  # its release is null: the end
        return
    schema, array = _export(state["handle"])
    _release_at(schema)
    _move(array, Array, out)
    state["done"] = True


@_get_error
def _get_last_error(_):
    return None


@_release
def _release_stream(stream):
    stream = Stream.from_address(stream)
    _reading.pop(stream.private_data, None)
    stream.release = None


def stream_capsule(handle):
    number = next(_numbers)
    _reading[number] = {"handle": handle, "done": False}
    return _capsule(Stream(_get_schema, _get_next, _get_last_error, ctypes.cast(_release_stream, _pointer), number))


# ---- Columns that are not the library's. What a structure needs stands in `_filled` until it is released.
_filled = {}


def _releaser(kind):
    @_release
    def release(address):
        structure = kind.from_address(address)
        for i in range(structure.n_children):
            _release_at(structure.children[i].contents)
        structure.release = None
        del _filled[structure.private_data]
    return release


_releasers = {kind: _releaser(kind) for kind in (Schema, Array)}


def _structure(kind, children=(), buffers=(), **fields):
    pointers = (ctypes.POINTER(kind) * len(children))(*map(ctypes.pointer, children))
    addresses = (_pointer * len(buffers))(*(buffer and ctypes.addressof(buffer) for buffer in buffers))
    if kind is Array:
        fields.update(n_buffers=len(buffers), buffers=addresses)
    number = next(_numbers)
    _filled[number] = (children, pointers, buffers, addresses, fields)
    return kind(n_children=len(children), children=pointers, release=ctypes.cast(_releasers[kind], _pointer),
                private_data=number, **fields)


def _copied(data):
    return (ctypes.c_char * (len(data) + 1)).from_buffer_copy(data + b"\0")


def _bits(truths):
    """One each, the first lowest."""
    text = "".join("1" if truth else "0" for truth in truths)[::-1]
    return _copied(int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little"))


def _column(kind, values):
    there = [value is not None and value == value for value in values]
    if kind == TEXTS:
        texts = [(value or "").encode() for value in values]
        ends = itertools.accumulate(map(len, texts), initial=0)
        data = [(ctypes.c_int64 * (len(texts) + 1))(*ends), _copied(b"".join(texts))]
    else:
        data = [_bits(value == 1 for value in values) if kind == TRUTHS else _copied(bytes(values))]
    return _structure(Array, length=len(values), null_count=there.count(False), buffers=[_bits(there), *data])


def fill(kinds, columns, schema, array):
    """The structures at two addresses, of columns of a kind each: lists of texts, arrays of numbers."""
    formats = {NUMBERS: b"g", TRUTHS: b"b", TEXTS: b"U"}
    fields = [_structure(Schema, format=formats[kind], name=name.encode(), flags=2) for name, kind in kinds]
    arrays = [_column(kind, values) for (_, kind), values in zip(kinds, columns)]
    _move(_structure(Schema, fields, format=b"+s", name=b""), Schema, schema)
    _move(_structure(Array, arrays, buffers=[None], length=len(columns[0])), Array, array)
