"""Exchange of tensors with NumPy by DLPack, through the shared library, in both directions and in the forms that this
NumPy has: unversioned before 2.1, both from then on."""

import ctypes
import gc
import os
import sys

import numpy as np

LIBRARY = os.path.join(os.environ["MILLRACE_BIN"], "..", "lib", "libmillrace.so")
mr = ctypes.CDLL(LIBRARY)
python = ctypes.pythonapi
OK = 0
DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip
IS_VERSIONED = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
FORMS = [False, True] if IS_VERSIONED else [False]


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 8)]


class Element(ctypes.Structure):
    _fields_ = [("count", ctypes.c_int32), ("capacity", ctypes.c_int32), ("tensors", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 1024)]


def declare(library, name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


POINTER, INT = ctypes.c_void_p, ctypes.c_int
element_init = declare(mr, "mr_element_init", INT, POINTER, ctypes.c_int32, POINTER)
element_deinit = declare(mr, "mr_element_deinit", None, POINTER)
element_tensor = declare(mr, "mr_element_tensor", POINTER, POINTER, ctypes.c_int32)
tensor_init_copy = declare(mr, "mr_tensor_init_copy", INT, POINTER, INT, Shape, POINTER, POINTER)
tensor_dtype = declare(mr, "mr_tensor_dtype", INT, POINTER)
tensor_rank = declare(mr, "mr_tensor_rank", ctypes.c_int32, POINTER)
tensor_dim = declare(mr, "mr_tensor_dim", ctypes.c_int64, POINTER, ctypes.c_int32)
tensor_data = declare(mr, "mr_tensor_data", POINTER, POINTER)
tensor_size_bytes = declare(mr, "mr_tensor_size_bytes", ctypes.c_size_t, POINTER)
to_dlpack = {
    True: declare(mr, "mr_tensor_to_dlpack", INT, POINTER, POINTER, POINTER),
    False: declare(mr, "mr_tensor_to_dlpack_unversioned", INT, POINTER, POINTER, POINTER),
}
from_dlpack = {
    True: declare(mr, "mr_tensor_from_dlpack", INT, POINTER, POINTER, POINTER),
    False: declare(mr, "mr_tensor_from_dlpack_unversioned", INT, POINTER, POINTER, POINTER),
}
capsule_new = declare(python, "PyCapsule_New", ctypes.py_object, POINTER, ctypes.c_char_p, POINTER)
capsule_pointer = declare(python, "PyCapsule_GetPointer", POINTER, ctypes.py_object, ctypes.c_char_p)
capsule_name = declare(python, "PyCapsule_SetName", INT, ctypes.py_object, ctypes.c_char_p)
NAMES = {True: b"dltensor_versioned", False: b"dltensor"}
USED_NAMES = {True: b"used_dltensor_versioned", False: b"used_dltensor"}


class Tensor:
    """An element of one tensor, so that this script need not know the size of a tensor."""

    def __init__(self):
        self.element, self.error = Element(), Error()
        self.check(element_init(ctypes.byref(self.element), 1, ctypes.byref(self.error)))
        self.address = element_tensor(ctypes.byref(self.element), 0)

    def check(self, status):
        assert status == OK, self.error.message.decode()

    def release(self):
        element_deinit(ctypes.byref(self.element))

    def fill(self, array):
        shape = Shape(array.ndim, (ctypes.c_int64 * 8)(*array.shape))
        elements = np.ascontiguousarray(array)
        dtype = DTYPES[array.dtype.name]
        self.check(tensor_init_copy(self.address, dtype, shape, elements.ctypes.data, ctypes.byref(self.error)))

    def take(self, array, is_versioned):
        capsule = array.__dlpack__(max_version=(1, 0)) if is_versioned else array.__dlpack__()
        pointer = capsule_pointer(capsule, NAMES[is_versioned])
        self.check(from_dlpack[is_versioned](pointer, self.address, ctypes.byref(self.error)))
        capsule_name(capsule, USED_NAMES[is_versioned])

    def give(self, is_versioned):
        tensor = self

        class Producer:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **options):
                managed = ctypes.c_void_p()
                tensor.check(to_dlpack[is_versioned](tensor.address, ctypes.byref(managed), ctypes.byref(tensor.error)))
                return capsule_new(managed, NAMES[is_versioned], None)

        return np.from_dlpack(Producer())

    def matches(self, array):
        dims = tuple(tensor_dim(self.address, i) for i in range(tensor_rank(self.address)))
        assert tensor_dtype(self.address) == DTYPES[array.dtype.name], array.dtype
        assert dims == array.shape, (dims, array.shape)
        elements = ctypes.string_at(tensor_data(self.address), tensor_size_bytes(self.address))
        assert elements == np.ascontiguousarray(array).tobytes()


def arrays():
    generator = np.random.default_rng(3)
    for dtype in DTYPES:
        for shape in [(), (1,), (7,), (0, 3), (4, 5), (2, 3, 4), (2, 1, 2, 1, 3, 1, 2, 2)]:
            array = np.asarray(generator.integers(0, 2 if dtype == "bool" else 100, shape)).astype(dtype)
            yield array
            yield array.T
            if len(shape) > 1:
                yield array[::-1, ::2]
                yield array[:, 1:]
                yield np.moveaxis(array, 0, -1)[..., ::-1]


def check_to_millrace(array, is_versioned):
    tensor, before = Tensor(), sys.getrefcount(array)
    tensor.take(array, is_versioned)
    tensor.matches(array)
    if array.flags.c_contiguous and array.size > 0:
        assert tensor_data(tensor.address) == array.ctypes.data, "copied"
        assert sys.getrefcount(array) == before + 1, "not referenced"
    tensor.release()
    assert sys.getrefcount(array) == before, "not released"


def check_to_numpy(array, is_versioned):
    tensor = Tensor()
    tensor.fill(array)
    found = tensor.give(is_versioned)
    assert found.dtype == array.dtype and found.shape == array.shape, (found.dtype, found.shape)
    if array.size > 0:
        assert found.ctypes.data == tensor_data(tensor.address), "copied"
    if is_versioned and array.size > 0:
        assert found.flags.writeable
        second = tensor.give(is_versioned)
        assert not second.flags.writeable, "the buffer has another reference"
    tensor.release()
    gc.collect()
    np.testing.assert_array_equal(found, array)


def check_through_both(array, is_versioned):
    """What came from NumPy goes back to it, read-only, and releases the array in the end."""
    tensor, before = Tensor(), sys.getrefcount(array)
    tensor.take(array, is_versioned)
    found = tensor.give(is_versioned)
    tensor.release()
    np.testing.assert_array_equal(found, array)
    assert not (is_versioned and array.size > 0 and array.flags.c_contiguous and found.flags.writeable)
    del found
    gc.collect()
    assert sys.getrefcount(array) == before, "not released"


def main():
    passed = failed = 0
    for is_versioned in FORMS:
        for array in arrays():
            for check in (check_to_millrace, check_to_numpy, check_through_both):
                try:
                    check(array, is_versioned)
                    passed += 1
                except Exception as e:
                    failed += 1
                    print(f"{check.__name__} {array.dtype} {array.shape} {array.strides} {is_versioned}: {e!r}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
