"""The transformations of datasets by functions of the program."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from . import _abi, _callbacks, _drawing, _dtypes, _specs
from . import _arguments as check
from ._callbacks import Function, Group, Scan, keep
from ._library import Error, library

if TYPE_CHECKING:
    from .dataset import Dataset


def _at(struct: Any) -> Any:
    return ctypes.byref(struct)


class Functional:
    """The part of Dataset that calls functions of the program.

    Functions are called with the components of an element: arrays, NumPy scalars, and bytes. With ``as_dict=True`` they
    are called with a dict of the components by name. An exception becomes an error of the element, which names its
    file and record, and whose ``__cause__`` is the exception.
    """

    def map(
        self,
        function: Callable,
        output_signature: Any = None,
        *,
        num_parallel_calls: Optional[int] = None,
        processes: int = 0,
        context: Any = None,
        as_dict: bool = False,
    ) -> "Dataset":
        """A function's results for each element; after ``batch``, for each batch.

        Parameters
        ----------
        function
            Returns a value for one component, a tuple for several, or a dict for named ones. It is called by several
            threads at the same time, for different elements. Its inputs are its own; arrays that are also in use
            elsewhere are read-only.
        output_signature
            An ``mr.Spec``, a sequence of them, or a dict of name and Spec. ``None``: the function is called once, for
            the first element, and sizes that its result has are expected of all results, except those that depend on
            unknown sizes of the input.
        num_parallel_calls
            Threads. ``None``: tuned.
        processes
            Worker processes that run the function, for functions that hold the GIL. Elements and results cross in
            shared memory. The dataset's iterators share them: the first one starts them, and they end with the last
            one. 0: threads of this process.
        context
            How processes are started: a context of ``multiprocessing``, its name, or ``None`` for the default.
        as_dict
            Whether the function is called with a dict.
        """
        return self._map(function, output_signature, num_parallel_calls, processes, as_dict, context, None)

    def random_map(
        self,
        function: Callable,
        output_signature: Any = None,
        *,
        seed: int = 0,
        num_parallel_calls: Optional[int] = None,
        processes: int = 0,
        context: Any = None,
        as_dict: bool = False,
    ) -> "Dataset":
        """As ``map``, with a ``numpy.random.Generator`` as the function's last argument.

        Its numbers depend on `seed`, the epoch and the element alone: they are the same in any thread or process, and
        others in the next epoch.
        """
        return self._map(function, output_signature, num_parallel_calls, processes, as_dict, context, check.seed(seed))

    def _map(
        self,
        function: Any,
        output_signature: Any,
        num_parallel_calls: Any,
        processes: Any,
        as_dict: Any,
        context: Any,
        seed: Any,
    ) -> "Dataset":
        made = self._function(function, "function", as_dict, "map")
        if output_signature is not None:
            made.returns(_specs.specs(output_signature))
        else:
            others = () if seed is None else (np.random.default_rng(seed),)
            made.returns(self._inferred(made, lambda values: made(values, *others)))
        name, text = "map" if seed is None else "random_map", _drawing.arguments(function, processes=processes or None)
        parallel = check.tunable(num_parallel_calls, "num_parallel_calls")
        if check.integer(processes, "processes", 0, 1024):
            from . import _processes

            pool = _processes.Pool(made, self.element_spec, processes, seed is not None, context)
            spec = _specs.to_element_spec(made.specs)
            map_options = _processes.ProcessMapOptions(num_parallel_calls=parallel, seed=seed or 0)
            build = library.mr_dataset_map_in_processes_
            dataset = self._then(name, text, build, pool.handle, _at(spec), _at(map_options))
            dataset._pools = (*self._pools, pool)
            return dataset
        if context is not None:
            raise ValueError("context has no effect without processes")
        callback = _callbacks.map_function if seed is None else _callbacks.random_map_function
        options = _abi.MapOptions(
            num_parallel_calls=parallel,
            seed=seed or 0,
            release=_callbacks.release,
            own_input=True,
        )
        spec = _specs.to_element_spec(made.specs)
        return self._then(name, text, library.mr_dataset_map_, callback, keep(made), _at(spec), _at(options))

    def filter(
        self, predicate: Callable, *, num_parallel_calls: Optional[int] = None, as_dict: bool = False
    ) -> "Dataset":
        """The elements for which `predicate` is true."""
        options = _abi.FunctionOptions(
            num_parallel_calls=check.tunable(num_parallel_calls, "num_parallel_calls"), release=_callbacks.release
        )
        number = keep(self._function(predicate, "predicate", as_dict, "predicate"))
        text = _drawing.arguments(predicate)
        return self._then("filter", text, library.mr_dataset_filter_, _callbacks.predicate, number, _at(options))

    def take_while(self, predicate: Callable, *, as_dict: bool = False) -> "Dataset":
        """The elements before the first one for which `predicate` is false."""
        options = _abi.FunctionOptions(release=_callbacks.release)
        number = keep(self._function(predicate, "predicate", as_dict, "predicate"))
        text = _drawing.arguments(predicate)
        function = library.mr_dataset_take_while_
        return self._then("take_while", text, function, _callbacks.predicate, number, _at(options))

    def flat_map(self, map_func: Callable, output_signature: Any = None, *, as_dict: bool = False) -> "Dataset":
        """The elements of the datasets that `map_func` returns, one dataset after the other.

        Parameters
        ----------
        map_func
            Returns a Dataset for an element.
        output_signature
            The structure of their elements. ``None``: that of the first element's dataset.
        as_dict
            Whether the function is called with a dict.
        """
        function, spec = self._dataset_function(map_func, "map_func", output_signature, as_dict)
        options = _abi.FunctionOptions(release=_callbacks.release)
        return self._then(
            "flat_map", _drawing.arguments(map_func), library.mr_dataset_flat_map_,
            _callbacks.dataset_function, keep(function), _at(spec), _at(options),
        )  # fmt: skip

    def interleave(
        self,
        map_func: Callable,
        cycle_length: int = 16,
        block_length: int = 1,
        parallel: bool = False,
        output_signature: Any = None,
        *,
        as_dict: bool = False,
    ) -> "Dataset":
        """`block_length` elements of each of `cycle_length` open datasets, in turn; in the same order if parallel.

        Parameters
        ----------
        map_func
            Returns a Dataset for an element.
        cycle_length
            Datasets that are open at the same time.
        block_length
            Consecutive elements of one dataset.
        parallel
            Whether a thread for each open dataset reads ahead.
        output_signature
            The structure of their elements. ``None``: that of the first element's dataset.
        as_dict
            Whether the function is called with a dict.
        """
        function, spec = self._dataset_function(map_func, "map_func", output_signature, as_dict)
        options = _abi.InterleaveOptions(
            cycle_length=check.integer(cycle_length, "cycle_length", 1),
            block_length=check.integer(block_length, "block_length", 1),
            parallel=check.boolean(parallel, "parallel"),
            release=_callbacks.release,
        )
        return self._then(
            "interleave", _drawing.arguments(map_func, cycle_length), library.mr_dataset_interleave_,
            _callbacks.dataset_function, keep(function), _at(spec), _at(options),
        )  # fmt: skip

    def scan(
        self, initial_state: Any, scan_func: Callable, output_signature: Any = None, *, as_dict: bool = False
    ) -> "Dataset":
        """The outputs of a function that passes a state from element to element.

        Parameters
        ----------
        initial_state
            A value or a tuple of values. The state is saved with the iterator's: keep it small.
        scan_func
            Called with (state, element); returns (state, output). A state or element of several components is a tuple.
        output_signature
            The structure of the outputs. ``None``: that of the first one, of any size.
        as_dict
            Whether the element is a dict.
        """
        states, tensors = _states(initial_state)
        check.function(scan_func, "scan_func")
        function = Scan(scan_func, self._names(as_dict), states, ())
        specs: Tuple[_specs.Spec, ...]
        if output_signature is not None:
            specs = _specs.specs(output_signature)
        else:
            values = initial_state if isinstance(initial_state, tuple) else (initial_state,)
            specs = self._inferred(function, lambda element: function.call(values, element)[1], is_fixed=False)
        function = Scan(scan_func, function.names, states, specs)
        options = _abi.FunctionOptions(release=_callbacks.release)
        element = _abi.Element(count=tensors.count, tensors=tensors.address)
        spec = _specs.to_element_spec(specs)
        return self._then(
            "scan", _drawing.arguments(scan_func), library.mr_dataset_scan_, _at(element),
            _callbacks.scan_function, keep(function), _at(spec), _at(options),
        )  # fmt: skip

    def reduce(self, initial_state: Any, reduce_func: Callable, *, as_dict: bool = False) -> Any:
        """Runs the dataset to its end and returns the final state.

        Parameters
        ----------
        initial_state
            A value or a tuple of values.
        reduce_func
            Called with (state, element); returns the next state.
        as_dict
            Whether the element is a dict.
        """
        from .iterator import failure

        states, tensors = _states(initial_state)
        function = Scan(check.function(reduce_func, "reduce_func"), self._names(as_dict), states, ())
        state, error = _abi.Element(), Error()
        number = keep(function)
        try:
            if library.mr_element_init(_at(state), tensors.count, _at(error)):
                raise failure(error)
            size = ctypes.sizeof(_abi.Tensor)
            for i in range(tensors.count):
                reference = library.mr_tensor_ref(_at(tensors.at(i)))
                ctypes.memmove(state.tensors + size * i, _at(reference), size)
            run = library.mr_dataset_reduce
            if run(self._handle, _at(state), _callbacks.reduce_function, number, _at(error)):
                raise failure(error)
            values = _callbacks._taken(ctypes.addressof(state))
        finally:
            _callbacks._release(number)
            library.mr_element_deinit(_at(state))
        return tuple(values) if isinstance(initial_state, tuple) else values[0]

    def get_single_element(self) -> Any:
        """The only element. ValueError if there is none or more than one."""
        with self.numpy(threads=1) as iterator:
            elements = [element for element, _ in zip(iterator, range(2))]
        if len(elements) != 1:
            raise ValueError(f"the dataset has {'no element' if not elements else 'more than one element'}")
        return elements[0]

    def window(
        self,
        size: int,
        shift: Optional[int] = None,
        stride: int = 1,
        drop_remainder: bool = False,
        function: Optional[Callable] = None,
        output_signature: Any = None,
    ) -> "Dataset":
        """The elements of the datasets that a function makes of each window: ``window(…).flat_map(…)`` of tf.data.

        Parameters
        ----------
        size
            Elements of a window.
        shift
            Elements of the input from one window to the next. ``None``: `size`.
        stride
            Elements of the input from one element of a window to the next.
        drop_remainder
            Whether windows of fewer elements are dropped.
        function
            Called with a Dataset of the window's elements; returns a Dataset. ``None``: each window is one batch.
        output_signature
            The structure of the elements of these datasets. ``None``: the function is called with a dataset like the
            windows to find it.
        """
        options = _abi.WindowOptions(
            window_size=check.integer(size, "size", 1),
            shift=0 if shift is None else check.integer(shift, "shift", 1),
            stride=check.integer(stride, "stride", 1),
            drop_remainder=check.boolean(drop_remainder, "drop_remainder"),
            release=_callbacks.release if function is not None else None,
        )
        text = _drawing.arguments(size, shift, function)
        build = library.mr_dataset_window_
        if function is None:
            return self._then("window", text, build, None, None, None, _at(options))
        made = Function(check.function(function, "function"), None, (), "function")
        spec = self._window_spec(lambda window: function(window), options.window_size, output_signature, "function")
        return self._then("window", text, build, _callbacks.window_function, keep(made), _at(spec), _at(options))

    def group_by_window(
        self,
        key_func: Callable,
        reduce_func: Callable,
        window_size: int,
        output_signature: Any = None,
        *,
        as_dict: bool = False,
    ) -> "Dataset":
        """Collects elements by key; a full window of a key becomes the elements of a dataset.

        Parameters
        ----------
        key_func
            Returns the key of an element, an integer.
        reduce_func
            Called with (key, Dataset of the window's elements); returns a Dataset.
        window_size
            Elements of a window.
        output_signature
            The structure of the elements of these datasets. ``None``: `reduce_func` is called with key 0 and a dataset
            like the windows to find it.
        as_dict
            Whether `key_func` is called with a dict.
        """
        key = self._function(key_func, "key_func", as_dict, "key_func")
        check.function(reduce_func, "reduce_func")
        options = _abi.GroupOptions(
            window_size=check.integer(window_size, "window_size", 1), release=_callbacks.release
        )
        spec = self._window_spec(lambda window: reduce_func(0, window), window_size, output_signature, "reduce_func")
        text = _drawing.arguments(key_func, reduce_func, window_size)
        return self._then(
            "group_by_window", text, library.mr_dataset_group_by_window_, _callbacks.key_function,
            _callbacks.group_function, keep(Group(key, reduce_func)), _at(spec), _at(options),
        )  # fmt: skip

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable,
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        *,
        as_dict: bool = False,
    ) -> "Dataset":
        """Padded batches of elements of similar length.

        Parameters
        ----------
        element_length_func
            Returns the length of an element.
        bucket_boundaries
            Ascending. Bucket b takes lengths from ``bucket_boundaries[b - 1]`` to ``bucket_boundaries[b] - 1``.
        bucket_batch_sizes
            The size of the batches of each bucket; one more than boundaries.
        padded_shapes, padding_values
            As of ``padded_batch``.
        pad_to_bucket_boundary
            Pad to the bucket's boundary - 1 instead of the longest element.
        no_padding
            Batch without padding.
        drop_remainder
            Drop batches of fewer elements.
        as_dict
            Whether the function is called with a dict.
        """
        length = self._function(element_length_func, "element_length_func", as_dict, "element_length_func")
        boundaries = [check.integer(value, "bucket_boundaries", 1) for value in bucket_boundaries]
        sizes = [check.integer(value, "bucket_batch_sizes", 1) for value in bucket_batch_sizes]
        if sorted(set(boundaries)) != boundaries:
            raise ValueError(f"bucket_boundaries is {bucket_boundaries!r}, expected ascending numbers")
        if len(sizes) != len(boundaries) + 1:
            raise ValueError(f"bucket_batch_sizes has {len(sizes)} values, expected {len(boundaries) + 1}")
        shapes, values = self._padding(padded_shapes, padding_values)
        options = _abi.BucketOptions(
            pad_to_bucket_boundary=check.boolean(pad_to_bucket_boundary, "pad_to_bucket_boundary"),
            no_padding=check.boolean(no_padding, "no_padding"),
            drop_remainder=check.boolean(drop_remainder, "drop_remainder"),
            release=_callbacks.release,
        )
        if shapes is not None:
            options.padded_shapes = shapes
        if values is not None:
            options.padding_values = ctypes.cast(values.address, ctypes.POINTER(_abi.Tensor))
        return self._then(
            "bucket_by_sequence_length", _drawing.arguments(boundaries, sizes),
            library.mr_dataset_bucket_by_sequence_length_, _callbacks.key_function, keep(length),
            (ctypes.c_int64 * len(boundaries))(*boundaries), len(boundaries),
            (ctypes.c_int64 * len(sizes))(*sizes), _at(options),
        )  # fmt: skip

    def rejection_resample(
        self,
        class_func: Callable,
        target_dist: Sequence[float],
        initial_dist: Optional[Sequence[float]] = None,
        seed: int = 0,
        *,
        as_dict: bool = False,
    ) -> "Dataset":
        """Drops elements at random so that classes are distributed as `target_dist`; the class is component 0.

        Parameters
        ----------
        class_func
            Returns the class of an element, from 0.
        target_dist
            A part for each class; their sum is 1.
        initial_dist
            Of the input. ``None``: estimated while running.
        seed
            Of the choices.
        as_dict
            Whether the function is called with a dict.
        """
        target = _parts(target_dist, "target_dist")
        options = _abi.ResampleOptions(seed=check.seed(seed), release=_callbacks.release)
        if initial_dist is not None:
            if len(initial_dist) != len(target):
                raise ValueError(f"initial_dist has {len(initial_dist)} values, expected {len(target)}")
            initial = _parts(initial_dist, "initial_dist")
            options.initial_dist = (ctypes.c_double * len(target))(*initial)
        number = keep(self._function(class_func, "class_func", as_dict, "class_func"))
        return self._then(
            "rejection_resample", _drawing.arguments(class_func, target), library.mr_dataset_rejection_resample_,
            _callbacks.key_function, number, (ctypes.c_double * len(target))(*target), len(target), _at(options),
        )  # fmt: skip

    # ---- Structures ----

    def _names(self, as_dict: Any) -> Optional[Tuple[str, ...]]:
        if not check.boolean(as_dict, "as_dict"):
            return None
        return component_names(self.element_spec)

    def _function(self, function: Any, argument: str, as_dict: Any, what: str) -> Function:
        return Function(check.function(function, argument), self._names(as_dict), (), what)

    def _first(self) -> Tuple[Any, ...]:
        """The components of the first element, with which functions are called to find the structure of results."""
        from .iterator import as_tuple

        with self.take(1).numpy(threads=1) as iterator:
            for element in iterator:
                return as_tuple(element, len(self.element_spec))
        raise ValueError("the dataset has no element: pass output_signature")

    def _inferred(self, function: Function, call: Callable, is_fixed: bool = True) -> Tuple[_specs.Spec, ...]:
        """The Specs of a function's result for the first element."""
        values = self._first()
        result = call(values)
        names: Sequence[Optional[str]]
        if isinstance(result, dict):
            names, components = list(result), list(result.values())
        else:
            components = list(result) if isinstance(result, tuple) else [result]
            names = [None] * len(components)
        if not 1 <= len(components) <= _abi.COMPONENTS_MAX:
            raise ValueError(f"{function.what} returned {len(components)} components, expected 1 to 32")
        given = self.element_spec
        is_known = is_fixed and all(spec.shape is not None and None not in spec.shape[1:] for spec in given)
        rows = {
            np.shape(value)[0] for value, spec in zip(values, given) if spec.shape and spec.shape[0] is None
        }  # fmt: skip
        found = []
        for name, component in zip(names, components):
            array = np.asarray(component)
            number = _dtypes.number(array.dtype, f"the dtype of the result of {function.what}")
            shape = tuple(size if is_known and (i or size not in rows) else None for i, size in enumerate(array.shape))
            found.append(_specs.Spec(_dtypes.name(number), shape, name))
        return tuple(found)

    def _dataset_function(self, function: Any, argument: str, output_signature: Any, as_dict: Any) -> Any:
        """(Function, struct mr_element_spec) of a function that returns datasets."""
        made = self._function(function, argument, as_dict, argument)
        if output_signature is not None:
            return made, _specs.to_element_spec(_specs.specs(output_signature))
        return made, _spec_of(made(self._first()), argument)

    def _window_spec(self, function: Callable, size: int, output_signature: Any, argument: str) -> _abi.ElementSpec:
        if output_signature is not None:
            return _specs.to_element_spec(_specs.specs(output_signature))
        # As many elements as a window has at most, of which none is computed.
        return _spec_of(function(self.take(size)), argument)


def component_names(specs: Sequence[_specs.Spec]) -> Tuple[str, ...]:
    """The names of all components. ValueError if one has none."""
    names = tuple(spec.name for spec in specs)
    for i, name in enumerate(names):
        if name is None:
            raise ValueError(f"as_dict is True, but component {i} has no name")
    return names


def _parts(values: Any, name: str) -> List[float]:
    """A distribution."""
    parts = [check.number(value, name) for value in values]
    if not abs(sum(parts) - 1) < 1e-6 or min(parts) < 0:
        raise ValueError(f"{name} is {values!r}, expected parts whose sum is 1")
    return parts


def _spec_of(dataset: Any, argument: str) -> _abi.ElementSpec:
    from .dataset import Dataset

    if not isinstance(dataset, Dataset):
        raise TypeError(f"{argument} returned {dataset!r}, expected a Dataset")
    specs = dataset.element_spec
    # Other windows and datasets may have other sizes in dimension 0.
    return _specs.to_element_spec(
        [_specs.Spec(s.dtype, s.shape if not s.shape else (None, *s.shape[1:]), s.name) for s in specs]
    )


def _states(initial: Any) -> Any:
    """(Specs of any size, Tensors) of a state."""
    from ._tensors import Tensors

    values = initial if isinstance(initial, tuple) else (initial,)
    tensors = Tensors(values, "initial_state")
    if not 1 <= tensors.count <= _abi.COMPONENTS_MAX:
        raise ValueError(f"initial_state has {tensors.count} components, expected 1 to {_abi.COMPONENTS_MAX}")
    states = [_specs.Spec(_dtypes.name(tensors.at(i).dtype)) for i in range(tensors.count)]
    return states, tensors
