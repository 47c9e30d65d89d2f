"""Prepared steps: the names of one run, and the memory through which its values pass."""
import ctypes
import struct
from threading import get_ident

import numpy as np

from . import _arrays, _interrupt, _library, errors
from ._library import library

_ARRAY = struct.Struct(f"@ii{_library.RANK_MAX}qPnPP")
assert _ARRAY.size == ctypes.sizeof(_library.Array)
_PADDING = [(0,) * (_library.RANK_MAX - rank) for rank in range(_library.RANK_MAX + 1)]
_SMALL = 512
_LARGE_STRINGS = 1 << 16


class Runner:
    """Owns an mr_runner."""

    def __init__(self, graph_def, options):
        handle = ctypes.c_void_p()
        error = _library.Error()
        self.handle = None
        _library.check(
            library.mr_runner_new(
                graph_def, len(graph_def), options and ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)
            ),
            error,
        )
        self.handle = handle.value
        self.outputs = {}

    def __del__(self):
        if self.handle:
            library.mr_runner_free(self.handle)

    def cancel(self):
        library.mr_runner_cancel(self.handle)

    def extend(self, graph_def):
        error = _library.Error()
        status = library.mr_runner_extend(self.handle, graph_def, len(graph_def), ctypes.byref(error))
        _library.check(status, error)

    def describe(self, name):
        """(dtype, shape or None) of an output; sizes that are unknown are None. KeyError if it does not exist."""
        known = self.outputs.get(name)
        if known:
            return known
        array = _library.Array()
        error = _library.Error()
        status = library.mr_runner_describe(self.handle, name.encode(), ctypes.byref(array), ctypes.byref(error))
        if status == errors.NOT_FOUND:
            raise KeyError(name)
        _library.check(status, error)
        shape = None if array.rank < 0 else tuple(None if d < 0 else d for d in array.dims[: array.rank])
        self.outputs[name] = array.dtype, shape
        return self.outputs[name]

    def graph_def(self):
        """The bytes of the graph."""
        array = _library.Array()
        error = _library.Error()
        _library.check(library.mr_runner_export(self.handle, ctypes.byref(array), ctypes.byref(error)), error)
        try:
            return _arrays.from_strings(array.data, 1, ())
        finally:
            library.mr_runner_release(array.owner)

    def reset(self, containers):
        error = _library.Error()
        names = _library.text_array(containers)
        _library.check(library.mr_runner_reset(self.handle, names, len(names), ctypes.byref(error)), error)

    def output_count(self, name):
        """The number of outputs of a node, or None if it does not exist."""
        count = ctypes.c_int32()
        status = library.mr_runner_output_count(self.handle, name.encode(), ctypes.byref(count), None)
        return count.value if status == 0 else None

    def session_tensor(self, handle):
        """A Handle of the tensor that GetSessionHandle stored."""
        array = _library.Array()
        error = _library.Error()
        status = library.mr_runner_session_tensor(self.handle, handle, ctypes.byref(array), ctypes.byref(error))
        _library.check(status, error)
        return _arrays.Handle(array.owner, self, array.dtype)


class Feed:
    """A fed tensor: converts values to its dtype and checks them as TensorFlow's Session.run does.

    key         what the caller named it with; for errors
    shape_text  its shape as TensorFlow writes it, or None"""

    def __init__(self, runner, name, number, shape, key, shape_text):
        self.runner = runner
        self.name = name
        self.number = number
        self.shape = shape
        self.key = key
        self.shape_text = shape_text
        self.dtype = _arrays.DTYPES.get(number)
        self.is_plain = self.dtype is not None and number not in _arrays.QUANTIZED and number != _library.STRING

    def array(self, value):
        """An array of the tensor's dtype, or a Handle."""
        if type(value) is float and self.dtype is not None and self.dtype.kind == "f":
            return np.asarray(value, dtype=self.dtype)
        if hasattr(value, "graph") and hasattr(value, "op") and not hasattr(value, "_as_graph_element"):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
                "strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was "
                f"{value} which was passed to the argument `feed_dict` with key {self.key}."
            )
        if isinstance(value, int):
            self._check_int(value)
        handle = self._handle(value)
        if handle is not None:
            return handle
        if self.dtype is None:
            raise TypeError(f"A tensor of dtype {_arrays.dtype_name(self.number)} takes a fetched millrace.Handle")
        return _arrays.convert(value, self.number, self.dtype)

    def _check_int(self, value):
        is_string = self.number == _library.STRING
        if is_string or (self.is_plain and self.dtype.type(value) != value):
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{self.dtype.type if not is_string else object}. Try explicitly setting the type of the feed tensor "
                "to a larger type (e.g. int64)."
            )

    def _handle(self, value):
        """The Handle that a value stands for, or None: one that was fetched, or a tf.TensorHandle or its array."""
        if isinstance(value, np.ndarray) and value.shape == () and value.dtype == object:
            value = value[()]
        if isinstance(value, _arrays.Handle):
            if value._runner is not self.runner:
                raise ValueError(f"{self.name}: the handle belongs to another session")
            return value
        if hasattr(value, "to_numpy_array"):
            value = value.to_numpy_array()
        name = _arrays.session_tensor_name(value)
        return self.runner.session_tensor(name) if name is not None else None

    def checked(self, value):
        """The array of a value, whose shape is checked, or a Handle."""
        value = self.array(value)
        if not isinstance(value, _arrays.Handle):
            self.check_shape(value.shape)
        return value

    def check_shape(self, shape):
        known = self.shape
        if known is None or (len(known) == len(shape) and all(k is None or k == s for k, s in zip(known, shape))):
            return
        text = self.shape_text or "(" + ", ".join(map(str, known)) + (",)" if len(known) == 1 else ")")
        raise ValueError(f"Cannot feed value of shape {shape} for Tensor {self.name}, which has shape {text}")


class Step:
    """One mr_runner_step, used by one thread at a time."""

    __slots__ = ("runner", "handle", "error", "feeds", "fed", "room", "room_at", "shapes", "results", "kept", "status",
                 "error_at")  # fmt: skip

    def __init__(self, runner, feeds, fetches, targets):
        self.runner = runner
        self.handle = None
        self.feeds = feeds
        handle = ctypes.c_void_p()
        self.error = _library.Error()
        self.error_at = ctypes.addressof(self.error)
        _library.check(
            library.mr_runner_prepare(
                runner.handle, _library.text_array([feed.name for feed in feeds]), len(feeds),
                _library.text_array(fetches), len(fetches), _library.text_array(targets), len(targets),
                ctypes.byref(handle), self.error_at,
            ),
            self.error,
        )  # fmt: skip
        self.handle = handle.value
        size = _ARRAY.size
        fed = (ctypes.c_char * (size * len(feeds))).from_address(library.mr_runner_feeds(self.handle) or 0)
        self.fed = memoryview(fed).cast("B") if feeds else None
        results = (ctypes.c_char * (size * len(fetches))).from_address(library.mr_runner_results(self.handle) or 0)
        self.results = memoryview(results).cast("B") if fetches else b""
        self.room = bytearray(_SMALL * len(feeds))
        self.room_at = ctypes.addressof((ctypes.c_char * len(self.room)).from_buffer(self.room)) if feeds else 0
        self.shapes = [None] * len(feeds)
        self.kept = []

    def __del__(self):
        if self.handle:
            library.mr_runner_step_free(self.handle)

    def run(self, values, run=library.mr_runner_run):
        """The results for the values of the feeds. run: mr_runner_run, or a function that takes its place."""
        for i, value in enumerate(values):
            feed = self.feeds[i]
            if feed.is_plain:
                if type(value) is not np.ndarray or value.dtype is not feed.dtype:
                    value = feed.array(value)
                    if type(value) is _arrays.Handle:
                        self._feed_handle(i, feed, value)
                        continue
                shape = value.shape
                size = value.nbytes
                if size <= _SMALL:
                    self.room[_SMALL * i : _SMALL * i + size] = value.tobytes()
                    if shape == self.shapes[i]:
                        continue
                    feed.check_shape(shape)
                    self._put(i, feed.number, shape, self.room_at + _SMALL * i, size)
                    self.shapes[i] = shape
                    continue
                flags = value.flags
                if not flags.c_contiguous or not flags.aligned:
                    value = np.require(value, requirements=("C", "A"))
                feed.check_shape(shape)
                self.kept.append(value)
                self.shapes[i] = None
                self._put(i, feed.number, shape, value.__array_interface__["data"][0], size)
            else:
                self._feed_other(i, feed, value)
        if get_ident() == _interrupt.main:
            if not _interrupt.is_installed():
                _interrupt.install()
            _interrupt.running.append([self.runner])
            try:
                status = run(self.handle, self.error_at)
            finally:
                _interrupt.running.pop()
        else:
            status = run(self.handle, self.error_at)
        if status:
            self.kept.clear()
            raise _library.failure(self.error)
        if self.kept:
            self.kept.clear()
        return self._take()

    def _put(self, i, number, shape, address, size, sizes=0, owner=0):
        if len(shape) > _library.RANK_MAX:
            raise ValueError(
                f"{self.feeds[i].name}: a tensor has at most {_library.RANK_MAX} dimensions, not {len(shape)}"
            )
        _ARRAY.pack_into(self.fed, _ARRAY.size * i, number, len(shape), *shape, *_PADDING[len(shape)], address, size,
                         sizes, owner)  # fmt: skip

    def _feed_handle(self, i, feed, value):
        self.kept.append(value)
        self.shapes[i] = None
        self._put(i, feed.number, (), 0, 0, 0, value._owner)

    def _feed_other(self, i, feed, value):
        array = feed.array(value)
        if type(array) is _arrays.Handle:
            self._feed_handle(i, feed, array)
            return
        feed.check_shape(array.shape)
        if feed.number != _library.STRING:
            self.kept.append(array)
            self._put(i, feed.number, array.shape, array.__array_interface__["data"][0], array.nbytes)
            return
        data, sizes = _arrays.encode_strings(array)
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value
        self.kept += (data, sizes)
        self._put(i, feed.number, array.shape, address, len(data), sizes.ctypes.data)

    def _take(self):
        values = []
        clear = False
        for i, (number, rank, *dims, data, size, _, owner) in enumerate(_ARRAY.iter_unpack(self.results)):
            dtype = _arrays.DTYPES.get(number)
            shape = tuple(dims[:rank])
            if dtype is None:
                self._disown(i)
                values.append(_arrays.Handle(owner, self.runner, number))
            elif number == _library.STRING:
                values.append(_arrays.from_strings(data, size // 16, shape))
                clear = clear or size > _LARGE_STRINGS
            elif owner:
                self._disown(i)
                values.append(_arrays.from_memory(owner, data, shape, dtype))
            elif rank == 0:
                values.append(np.frombuffer(ctypes.string_at(data, size), dtype)[0])
            elif size:
                values.append(np.ndarray(shape, dtype, bytearray(ctypes.string_at(data, size))))
            else:
                values.append(np.empty(shape, dtype))
        if clear:
            library.mr_runner_clear(self.handle)
        return values

    def _disown(self, i):
        """The caller of this takes over the owner of a result: the last field of its mr_array."""
        end = _ARRAY.size * (i + 1)
        self.results[end - 8 : end] = bytes(8)
