"""Functions of the program that pipelines call, on any thread.

C functions get the number of a Python object as their context, which `keep` stores until the library releases it. An
exception becomes an error of the element; `cause` finds it again by the error's message, for the caller of the
iterator."""

from __future__ import annotations

import collections
import ctypes
import itertools
import threading
from typing import Any, Callable, Optional, Sequence, Tuple

import numpy as np

from . import _abi, _library, _tensors, errors
from ._library import library
from ._specs import Spec

_objects: dict = {}
_numbers = itertools.count(1)
# The latest exceptions of functions by the text of their errors.
_raised: "collections.OrderedDict[str, BaseException]" = collections.OrderedDict()
_RAISED_MAX = 64
_TEXT_MAX = 400
_STATUS = (
    (MemoryError, errors.RESOURCE_EXHAUSTED),
    (NotImplementedError, errors.UNIMPLEMENTED),
    ((ValueError, TypeError), errors.INVALID_ARGUMENT),
)
_thread = threading.local()


class Number(int):
    """The context of a C function: the number of an object in `_objects`."""


def keep(value: Any) -> Number:
    """Stores an object until the library calls `release` with the number that is returned."""
    number = Number(next(_numbers))
    _objects[number] = value
    return number


@_abi.RELEASE
def _release(number, objects=_objects):
    # At the end of the interpreter, names of the module may be gone.
    objects.pop(number, None)


release = ctypes.cast(_release, ctypes.c_void_p).value


def running() -> Sequence[int]:
    """The numbers of the functions that pipelines have called and that the calling thread is inside of."""
    return getattr(_thread, "running", ())


def cause(message: str) -> Optional[BaseException]:
    """The exception of the function that failed with this message of the library."""
    for text, exception in reversed(list(_raised.items())):
        if message.endswith(text):
            return exception
    return None


def fail(error: int, exception: BaseException) -> int:
    """Stores an exception as the error at an address, and returns its status."""
    if isinstance(exception, errors.OpError):
        status, text = exception.error_code, exception.message
    else:
        status = next((code for kind, code in _STATUS if isinstance(exception, kind)), errors.UNKNOWN)
        try:
            text = f"{type(exception).__name__}: {exception}"
        except Exception:  # of its own __str__
            text = f"{type(exception).__name__}, which cannot be printed"
    text = " ".join(text.split())
    data = text.encode("utf-8", "replace")[:_TEXT_MAX]
    text = data.decode("utf-8", "ignore")
    _raised.pop(text, None)
    _raised[text] = exception
    while len(_raised) > _RAISED_MAX:
        try:
            _raised.popitem(last=False)
        except KeyError:  # by another thread
            break
    if error:
        reason = _library.Error.from_address(error)
        reason.status = status
        reason.message = text.encode()
    return status


def _guarded(kind: Any, position: int) -> Callable:
    """A C function of a kind that calls the decorated one; its argument at `position` is the error's address."""

    def wrap(function: Callable) -> Any:
        def call(*arguments):
            try:
                stack = _thread.running
            except AttributeError:
                stack = _thread.running = []
            stack.append(arguments[0])
            try:
                return function(*arguments) or _abi.OK
            except BaseException as exception:
                return fail(arguments[position], exception)
            finally:
                stack.pop()

        return kind(call)

    return wrap


def address(function: Any) -> int:
    """The address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value


def as_components(result: Any, specs: Sequence[Spec], names: Optional[Tuple[str, ...]], what: str) -> Sequence[Any]:
    """The components of a function's result: a value, a tuple or list of them, or a dict with the specs' names."""
    if isinstance(result, dict):
        if names is None or set(result) != set(names):
            expected = "a tuple" if names is None else f"the keys {', '.join(map(repr, names))}"
            raise TypeError(f"{what} returned a dict with the keys {', '.join(map(repr, result))}, expected {expected}")
        return [result[name] for name in names]
    components = result if isinstance(result, (tuple, list)) and len(specs) != 1 else (result,)
    if isinstance(result, tuple) and len(specs) == 1 and len(result) == 1:
        components = result
    if len(components) != len(specs):
        raise ValueError(f"{what} returned {len(components)} components, expected {len(specs)}")
    return components


def as_arrays(result: Any, specs: Sequence[Spec], names: Optional[Tuple[str, ...]], what: str) -> list:
    """The arrays of a function's result, checked."""
    arrays = []
    for i, (value, spec) in enumerate(zip(as_components(result, specs, names, what), specs)):
        place = what if len(specs) == 1 else f"component {i} of {what}"
        array = _tensors.as_array(value, spec.number, place)
        if spec.shape is not None and not _matches(array.shape, spec.shape):
            raise ValueError(
                f"{place} has shape {array.shape}, expected {spec.shape}; None in output_signature is any size"
            )
        arrays.append(array)
    return arrays


def fill(output: int, result: Any, specs: Sequence[Spec], names: Optional[Tuple[str, ...]], what: str) -> None:
    """Copies a function's result to the element at an address."""
    element = _abi.Element.from_address(output)
    size = ctypes.sizeof(_abi.Tensor)
    for i, (array, spec) in enumerate(zip(as_arrays(result, specs, names, what), specs)):
        at = element.tensors + size * i
        room = _abi.Tensor.from_address(at).data or 0
        _tensors.put(at, array, spec.number, room)
        element.count = i + 1


def _matches(shape: Tuple[int, ...], expected: Tuple[Optional[int], ...]) -> bool:
    return len(shape) == len(expected) and all(e is None or e == s for s, e in zip(shape, expected))


class Function:
    """A function of the program, with the structure of what it gets and returns.

    Parameters
    ----------
    function
        Called with the components of an element, or with a dict of them.
    names
        The components' names, if it is called with a dict.
    specs
        The structure of its results.
    what
        Its name in messages.
    """

    def __init__(
        self, function: Callable, names: Optional[Tuple[str, ...]], specs: Sequence[Spec] = (), what: str = "map"
    ) -> None:
        self.function = function
        self.names = names
        self.what = what
        self.returns(specs)

    def returns(self, specs: Sequence[Spec]) -> None:
        """Sets the structure of its results."""
        self.specs = tuple(specs)
        self.result_names = tuple(spec.name for spec in self.specs) if all(s.name for s in self.specs) else None

    def __call__(self, values: Sequence[Any], *others: Any) -> Any:
        """The function's result for an element and other arguments."""
        if self.names is not None:
            return self.function(dict(zip(self.names, values)), *others)
        return self.function(*values, *others)

    def fill(self, output: int, result: Any) -> None:
        """Copies a result to the element at an address."""
        fill(output, result, self.specs, self.result_names, f"the result of {self.what}")


def _taken(address_of_element: int) -> list:
    element = _abi.Element.from_address(address_of_element)
    return _tensors.take(element.tensors, element.count)


def _copied(address_of_element: int) -> list:
    element = _abi.Element.from_address(address_of_element)
    return _tensors.copy(element.tensors, element.count)


@_guarded(_abi.MAP_FUNCTION, 4)
def map_function(context, element, random, output, error):
    """mr_map_function of a Function, with own_input."""
    function = _objects[context]
    function.fill(output, function(_taken(element)))


def generator(random: int) -> np.random.Generator:
    """A generator of NumPy, seeded by the element's random numbers."""
    below = library.mr_random_below
    return np.random.Generator(np.random.Philox(key=[below(random, 1 << 63), below(random, 1 << 63)]))


@_guarded(_abi.MAP_FUNCTION, 4)
def random_map_function(context, element, random, output, error):
    """The same with a random generator as the last argument."""
    function = _objects[context]
    function.fill(output, function(_taken(element), generator(random)))


@_guarded(_abi.PREDICATE, 3)
def predicate(context, element, result, error):
    """mr_predicate of a Function."""
    keeps = _objects[context](_copied(element))
    if not isinstance(keeps, (bool, np.bool_)) and (np.ndim(keeps) != 0 or np.asarray(keeps).dtype.kind not in "biu"):
        raise TypeError(f"the result of {_objects[context].what} is {keeps!r}, expected a bool")
    ctypes.c_bool.from_address(result).value = bool(keeps)


@_guarded(_abi.KEY_FUNCTION, 3)
def key_function(context, element, result, error):
    """mr_key_function of a Function, or of an object with a Function `key`."""
    function = _objects[context]
    function = getattr(function, "key", function)
    key = np.asarray(function(_copied(element)))
    if key.ndim != 0 or key.dtype.kind not in "iub":
        raise TypeError(f"the result of {function.what} is {key!r}, expected an integer")
    ctypes.c_int64.from_address(result).value = int(key)


def _give_dataset(output: int, dataset: Any, what: str) -> None:
    from .dataset import Dataset

    if not isinstance(dataset, Dataset):
        raise TypeError(f"the result of {what} is of type {type(dataset).__name__}, expected a Dataset")
    ctypes.c_void_p.from_address(output).value = library.mr_dataset_ref(dataset._handle)


@_guarded(_abi.DATASET_FUNCTION, 3)
def dataset_function(context, element, output, error):
    """mr_dataset_function of a Function."""
    function = _objects[context]
    _give_dataset(output, function(_copied(element)), function.what)


@_guarded(_abi.WINDOW_FUNCTION, 3)
def window_function(context, window, output, error):
    """mr_window_function of a Function."""
    from .dataset import Dataset

    function = _objects[context]
    _give_dataset(output, function.function(Dataset._own(window)), function.what)


class Group:
    """The functions of group_by_window: key, a Function; reduce, called with a key and a Dataset."""

    def __init__(self, key: Function, reduce: Callable) -> None:
        self.key = key
        self.reduce = reduce


@_guarded(_abi.GROUP_FUNCTION, 4)
def group_function(context, key, window, output, error):
    """mr_group_function of a Group."""
    from .dataset import Dataset

    _give_dataset(output, _objects[context].reduce(key, Dataset._own(window)), "reduce_func")


class Scan(Function):
    """A Function of (state, element) that returns (state, output)."""

    def __init__(self, function: Callable, names: Any, states: Sequence[Spec], specs: Sequence[Spec]) -> None:
        super().__init__(function, names, specs, "scan_func")
        self.states = tuple(states)

    def call(self, state: Sequence[Any], values: Sequence[Any]) -> Any:
        """The function's result."""
        old = state[0] if len(self.states) == 1 else tuple(state)
        if self.names is not None:
            return self.function(old, dict(zip(self.names, values)))
        return self.function(old, values[0] if len(values) == 1 else tuple(values))


@_guarded(_abi.SCAN_FUNCTION, 5)
def scan_function(context, state, element, next_state, output, error):
    """mr_scan_function of a Scan."""
    function = _objects[context]
    result = function.call(_copied(state), _copied(element))
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"the result of scan_func is of type {type(result).__name__}, expected (state, output)")
    fill(next_state, result[0], function.states, None, "the state of scan_func")
    function.fill(output, result[1])


@_guarded(_abi.REDUCE_FUNCTION, 4)
def reduce_function(context, state, element, next_state, error):
    """mr_reduce_function of a Scan."""
    function = _objects[context]
    result = function.call(_copied(state), _copied(element))
    fill(next_state, result, function.states, None, "the result of reduce_func")


class Generator:
    """A Python function that returns an iterable, as the source of a pipeline."""

    def __init__(self, function: Callable, arguments: Tuple, specs: Sequence[Spec]) -> None:
        def values() -> Any:
            found = function(*arguments)
            try:
                return iter(found)
            except TypeError:
                kind = type(found).__name__
                raise TypeError(f"generator returned a value of type {kind}, expected an iterable") from None

        self.function = Function(values, None, specs, "generator")


@_guarded(_abi.GENERATOR_OPEN, 3)
def generator_open(context, iteration, state, error):
    """mr_generator.open of a Generator."""
    try:
        values = _objects[context].function.function()
    except BaseException as exception:
        values = _raising(exception)
    ctypes.c_void_p.from_address(state).value = keep(values)


def _raising(exception: BaseException) -> Any:
    """An iterator that fails once and ends, as one that raises the exception in its first step."""
    raise exception
    yield


@_guarded(_abi.GENERATOR_NEXT, 3)
def generator_next(context, state, output, error):
    """mr_generator.next of a Generator."""
    function = _objects[context].function
    try:
        value = next(_objects[state])
    except StopIteration:
        return _abi.OUT_OF_RANGE
    function.fill(output, value)
    return _abi.OK


@_abi.GENERATOR_CLOSE
def generator_close(context, state):
    """mr_generator.close of a Generator."""
    _objects.pop(state, None)
