"""DLPack: tensors of the library for other libraries, and arrays of others for the library, without a copy."""
from __future__ import annotations

import ctypes
from typing import Any, Optional, Tuple

from . import _abi, _dtypes, _library
from ._library import library

_api = ctypes.pythonapi
_void, _text = ctypes.c_void_p, ctypes.c_char_p
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, _void)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, _void, _text, _DESTRUCTOR)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(_void, ctypes.py_object, _text)(("PyCapsule_GetPointer", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _text)(("PyCapsule_IsValid", _api))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, _text)(("PyCapsule_SetName", _api))
_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, _void, _text)(("PyCapsule_IsValid", _api))
_pointer_at = ctypes.PYFUNCTYPE(_void, _void, _text)(("PyCapsule_GetPointer", _api))
# Capsules keep pointers to their names.
_PLAIN, _VERSIONED, _USED = b"dltensor", b"dltensor_versioned", b"used_dltensor"
CPU = 1


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", _void),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", _void),
        ("strides", _void),
        ("byte_offset", ctypes.c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, _void)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _DLTensor), ("context", _void), ("deleter", _void)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", _void),
        ("deleter", _void),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


def _delete(managed: int, struct: type) -> None:
    deleter = struct.from_address(managed).deleter
    if deleter:
        _DELETER(deleter)(managed)


@_DESTRUCTOR
def _destroy(capsule):
    """Of a capsule that nobody has taken over, too."""
    if _is_valid_at(capsule, _PLAIN):
        _delete(_pointer_at(capsule, _PLAIN), _Managed)
    elif _is_valid_at(capsule, _VERSIONED):
        _delete(_pointer_at(capsule, _VERSIONED), _ManagedVersioned)


def export(tensor: _abi.Tensor, is_versioned: bool) -> Any:
    """A capsule that shares the tensor's memory."""
    managed = _void()
    error = _library.Error()
    function = library.mr_tensor_to_dlpack if is_versioned else library.mr_tensor_to_dlpack_unversioned
    _library.check(function(ctypes.byref(tensor), ctypes.byref(managed), ctypes.byref(error)), error)
    return _new(managed, _VERSIONED if is_versioned else _PLAIN, _destroy)


def share(address: int, value: Any) -> bool:
    """Makes the struct mr_tensor at address a reference to an array of another library. False: it has to be copied."""
    try:
        capsule = value.__dlpack__()
    except (AttributeError, TypeError, ValueError, BufferError, RuntimeError):
        return False
    if not _is_valid(capsule, _PLAIN):
        return False
    error = _library.Error()
    managed = _pointer(capsule, _PLAIN)
    if library.mr_tensor_from_dlpack_unversioned(managed, address, ctypes.byref(error)):
        return False
    _set_name(capsule, _USED)
    return True


class Tensor:
    """A tensor in memory of the library, on the host or on a GPU, which other libraries import with DLPack.

    ``torch.from_dlpack(tensor)`` and ``jax.dlpack.from_dlpack(tensor)`` share its memory, which stays valid as long as
    anything refers to it.
    """

    __slots__ = ("_tensor", "_device", "__weakref__")

    def __init__(self) -> None:
        raise TypeError("millrace.Tensor has no constructor; iterate over Dataset.dlpack()")

    @classmethod
    def move(cls, tensor: _abi.Tensor) -> "Tensor":
        made = object.__new__(cls)
        made._tensor = _abi.Tensor()
        ctypes.memmove(ctypes.addressof(made._tensor), ctypes.addressof(tensor), ctypes.sizeof(tensor))
        tensor.buffer = None
        made._device = None
        return made

    def __del__(self) -> None:
        if hasattr(self, "_tensor"):
            library.mr_tensor_deinit(ctypes.byref(self._tensor))

    def __copy__(self) -> "Tensor":
        return self

    def __deepcopy__(self, memo: Any) -> "Tensor":
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle a millrace.Tensor: convert it to an array")

    @property
    def shape(self) -> Tuple[int, ...]:
        """The sizes of its dimensions."""
        return tuple(self._tensor.shape.dims[: self._tensor.shape.rank])

    @property
    def dtype(self) -> str:
        """The dtype's name."""
        return _dtypes.name(self._tensor.dtype)

    def __dlpack_device__(self) -> Tuple[int, int]:
        """The device's type and number, as DLPack defines them."""
        if self._device is None:
            if not library.mr_tensor_device(ctypes.byref(self._tensor)):
                self._device = (CPU, 0)
            else:
                capsule = export(self._tensor, True)
                tensor = _ManagedVersioned.from_address(_pointer(capsule, _VERSIONED)).tensor
                self._device = (tensor.device_type, tensor.device_id)
        return self._device

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        """A capsule that shares the memory, of DLPack 1 if `max_version` allows it.

        The work that the library has queued for the memory has completed, whatever the `stream`.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor is on device {self.__dlpack_device__()}, not on {dl_device}")
        if copy:
            raise BufferError("copy=True is not supported: copy what you import")
        return export(self._tensor, max_version is not None and max_version[0] >= 1)

    def numpy(self) -> Any:
        """A NumPy array: a view of memory on the host, a copy of memory on a GPU."""
        from . import _tensors

        reference = library.mr_tensor_ref(ctypes.byref(self._tensor))
        address = ctypes.addressof(reference)
        try:
            _tensors.to_host(address, 1)
            return _tensors.take(address, 1)[0]
        finally:
            library.mr_tensor_deinit(address)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor of rank 0")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<millrace.Tensor: {self.dtype} {list(self.shape)}, device {self.__dlpack_device__()}>"
