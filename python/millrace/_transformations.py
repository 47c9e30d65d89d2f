"""The transformations of datasets that need no function of the program."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from . import _abi, _drawing, _dtypes, _specs
from . import _arguments as check
from ._library import STRING, library

if TYPE_CHECKING:
    from .dataset import Dataset

_CROPS = ("none", "center", "random", "random_resized", "random_window", "center_window")
_METHODS = ("bilinear", "nearest", "area", "bicubic")
_LAYOUTS = ("NHWC", "NCHW")
_PADDINGS = ("zero", "reflect")
_POLICIES = ("pad", "drop", "mask")
_IMAGE_DTYPES = ("float32", "float16", "bfloat16", "uint8")
# The crops that use an option.
_CROP_OPTIONS = {
    "fraction": ("center", "random"),
    "area": ("random_resized",),
    "aspect": ("random_resized",),
    "padding": ("random_window",),
}
_STEPS = ("brightness", "contrast", "saturation", "hue")


class Transformations:
    """The part of Dataset that orders, batches, parses, decodes and stores elements."""

    # ---- Order and number ----

    def shuffle(
        self, buffer_size: Optional[int] = None, seed: int = 0, reshuffle_each_iteration: bool = True
    ) -> "Dataset":
        """The elements in random order.

        Parameters
        ----------
        buffer_size
            As in tf.data. ``None``: a shuffle of the complete input, which must have an index (records, slices, range,
            files, …). It costs no memory: element numbers are permuted before any byte is read.
        seed
            Of the order, which depends on it, on the iterator's seed, and on the epoch.
        reshuffle_each_iteration
            Whether each epoch has another order.
        """
        options = _abi.ShuffleOptions(
            buffer_size=check.optional(buffer_size, _count, "buffer_size", 0),
            seed=check.seed(seed),
            reshuffle_each_iteration=check.boolean(reshuffle_each_iteration, "reshuffle_each_iteration"),
        )
        text = _drawing.arguments(buffer_size, seed=seed)
        return self._then("shuffle", text, library.mr_dataset_shuffle_, ctypes.byref(options))

    def repeat(self, count: Optional[int] = None) -> "Dataset":
        """The elements `count` times; without an end if it is ``None`` or -1."""
        number = -1 if count is None else check.integer(count, "count", -1)
        return self._then("repeat", _drawing.arguments(count), library.mr_dataset_repeat, number)

    def take(self, count: int) -> "Dataset":
        """The first `count` elements; -1: all."""
        return self._then("take", repr(count), library.mr_dataset_take, check.integer(count, "count", -1))

    def skip(self, count: int) -> "Dataset":
        """The elements after the first `count`; -1: none."""
        return self._then("skip", repr(count), library.mr_dataset_skip, check.integer(count, "count", -1))

    def shard(self, num_shards: int, index: int) -> "Dataset":
        """The elements whose number is `index` modulo `num_shards`."""
        number = check.integer(num_shards, "num_shards", 1)
        at = check.integer(index, "index", 0, number - 1)
        return self._then("shard", _drawing.arguments(num_shards, index), library.mr_dataset_shard, number, at)

    def distribute(self, global_batch_size: int, workers: int, worker: int, policy: str = "pad") -> "Dataset":
        """One worker's part of every global batch: batches of `global_batch_size` / `workers` elements.

        All workers have the same number of steps. The elements of a step are a function of seed, epoch and step, so a
        state may be restored on another number of workers without repeating or missing an element.

        Parameters
        ----------
        global_batch_size
            A multiple of `workers`.
        workers, worker
            Their number, and the number of this one, from 0.
        policy
            For the last step if the elements do not fill it: ``"pad"`` with elements from the beginning, ``"drop"`` the
            step, or ``"mask"``: as pad, with a last component (bool) that is false for the padding.
        """
        size = check.integer(global_batch_size, "global_batch_size", 1)
        number = check.integer(workers, "workers", 1)
        at = check.integer(worker, "worker", 0, number - 1)
        text = _drawing.arguments(global_batch_size, workers, worker, policy=policy)
        chosen = check.choice(policy, "policy", _POLICIES)
        return self._then("distribute", text, library.mr_dataset_distribute, size, number, at, chosen)

    def concatenate(self, dataset: "Dataset") -> "Dataset":
        """The elements of this dataset, then those of another one of the same dtypes."""
        from .dataset import Dataset, check_datasets

        (other,) = check_datasets((dataset,), "dataset")
        handle = library.mr_dataset_concatenate(self._reference(), other._reference())
        made = Dataset._own(handle, _drawing.Stage("concatenate", "", (self._stage, other._stage)))
        made._pools = (*self._pools, *other._pools)
        made._functions = self._functions | other._functions
        return made

    def enumerate(self, start: int = 0) -> "Dataset":
        """The element's number, counted from `start`, as the first component."""
        number = check.integer(start, "start")
        return self._then("enumerate", _drawing.arguments(start or None), library.mr_dataset_enumerate, number)

    def unique(self) -> "Dataset":
        """The elements (one scalar of int32, int64 or bytes) that have not occurred before."""
        return self._then("unique", "", library.mr_dataset_unique)

    def assert_cardinality(self, expected_cardinality: int) -> "Dataset":
        """Fails with FailedPreconditionError unless there are exactly this many elements."""
        number = check.integer(expected_cardinality, "expected_cardinality", -1)
        return self._then("assert_cardinality", repr(number), library.mr_dataset_assert_cardinality, number)

    def ignore_errors(self, errors_max: Optional[int] = None) -> "Dataset":
        """Skips elements (after ``batch``: batches) that fail.

        Parameters
        ----------
        errors_max
            The number of elements that may fail in an iteration; the next failure is raised. ``None``: no limit.
        """
        options = _abi.IgnoreErrorsOptions(errors_max=check.optional(errors_max, _count, "errors_max", 0))
        text = _drawing.arguments(errors_max)
        return self._then("ignore_errors", text, library.mr_dataset_ignore_errors_, ctypes.byref(options))

    # ---- Batches ----

    def batch(self, batch_size: int, drop_remainder: bool = False) -> "Dataset":
        """Batches of consecutive elements of equal shapes.

        Parameters
        ----------
        batch_size
            Elements of a batch.
        drop_remainder
            Whether a last batch of fewer elements is dropped.
        """
        options = _abi.BatchOptions(drop_remainder=check.boolean(drop_remainder, "drop_remainder"))
        text = _drawing.arguments(batch_size, drop_remainder=drop_remainder or None)
        size = _size(batch_size, "batch_size")
        return self._then("batch", text, library.mr_dataset_batch_, size, ctypes.byref(options))

    def rebatch(self, batch_size: int, drop_remainder: bool = False) -> "Dataset":
        """Batches of another size: ``unbatch``, then ``batch``."""
        options = _abi.BatchOptions(drop_remainder=check.boolean(drop_remainder, "drop_remainder"))
        size = _size(batch_size, "batch_size")
        return self._then("rebatch", repr(size), library.mr_dataset_rebatch_, size, ctypes.byref(options))

    def unbatch(self) -> "Dataset":
        """The rows of dimension 0 of all components as elements."""
        return self._then("unbatch", "", library.mr_dataset_unbatch)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Optional[Sequence[_specs.ShapeLike]] = None,
        padding_values: Optional[Sequence[Any]] = None,
        drop_remainder: bool = False,
    ) -> "Dataset":
        """Batches of elements of different sizes, padded.

        Parameters
        ----------
        batch_size
            Elements of a batch.
        padded_shapes
            A shape for each component, with None or -1 for the longest of the batch; for one component, its shape.
            ``None``: every unknown size is padded to the longest.
        padding_values
            A scalar for each component; for one component, its scalar. ``None``: 0 and the empty string.
        drop_remainder
            Whether a last batch of fewer elements is dropped.
        """
        shapes, values = self._padding(padded_shapes, padding_values)
        options = _abi.PaddedBatchOptions(drop_remainder=check.boolean(drop_remainder, "drop_remainder"))
        if shapes is not None:
            options.padded_shapes = shapes
        if values is not None:
            options.padding_values = ctypes.cast(values.address, ctypes.POINTER(_abi.Tensor))
        size = _size(batch_size, "batch_size")
        return self._then("padded_batch", repr(size), library.mr_dataset_padded_batch_, size, ctypes.byref(options))

    def _padding(self, padded_shapes: Any, padding_values: Any) -> Any:
        """(shapes, values) as structs, or None for the defaults."""
        from ._tensors import Tensors, as_array

        specs = self.element_spec
        shapes = values = None
        if padded_shapes is not None:
            given = padded_shapes
            if len(specs) == 1 and not (len(given) == 1 and isinstance(given[0], (list, tuple))):
                given = (given,)
            if len(given) != len(specs):
                raise ValueError(f"padded_shapes has {len(given)} shapes, expected {len(specs)}")
            shapes = (_abi.Shape * len(specs))(*[_specs.to_shape(shape, "padded_shapes") for shape in given])
        if padding_values is not None:
            items = padding_values if isinstance(padding_values, (list, tuple)) else (padding_values,)
            if len(items) != len(specs):
                raise ValueError(f"padding_values has {len(items)} values, expected {len(specs)}")
            values = Tensors(
                [as_array(item, spec.number, "padding_values") for item, spec in zip(items, specs)], "padding_values"
            )
        return shapes, values

    def ragged_batch(self, batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = "int64") -> "Dataset":
        """Batches of elements of different sizes without padding: values, then row splits, for each such component."""
        number = _dtypes.number(row_splits_dtype, "row_splits_dtype")
        options = _abi.RaggedBatchOptions(
            drop_remainder=check.boolean(drop_remainder, "drop_remainder"), row_splits_dtype=number
        )
        size = _size(batch_size, "batch_size")
        function = library.mr_dataset_dense_to_ragged_batch_
        return self._then("ragged_batch", repr(size), function, size, ctypes.byref(options))

    def sparse_batch(self, batch_size: int, row_shape: _specs.ShapeLike) -> "Dataset":
        """Batches of elements of different sizes as one sparse tensor: indices, values and dense shape."""
        options = _abi.BatchOptions()
        size = _size(batch_size, "batch_size")
        shape = _specs.to_shape(row_shape, "row_shape")
        function = library.mr_dataset_dense_to_sparse_batch_
        return self._then("sparse_batch", repr(size), function, size, shape, ctypes.byref(options))

    # ---- Storing and running ahead ----

    def cache(self, filename: Any = None) -> "Dataset":
        """Stores the elements of the first iteration; later ones read them instead of the input.

        Parameters
        ----------
        filename
            A record file, which is valid for every pipeline of the same settings and data. ``None``: in memory, within
            the iterator's budget.
        """
        path = None if filename is None else check.path(filename, "filename")
        return self._then("cache", _drawing.arguments(filename), library.mr_dataset_cache, path)

    def snapshot(self, path: Any, compression: Optional[str] = None) -> "Dataset":
        """A cache in a directory, in a file for each state of pipeline and data.

        Parameters
        ----------
        path
            The directory.
        compression
            ``"GZIP"`` or ``None``.
        """
        if compression not in (None, "GZIP"):
            raise ValueError(f"compression is {compression!r}, expected 'GZIP' or None")
        options = _abi.SnapshotOptions(gzip=compression is not None)
        directory = check.path(path, "path")
        return self._then("snapshot", repr(path), library.mr_dataset_snapshot_, directory, ctypes.byref(options))

    def prefetch(self, buffer_size: Optional[int] = None) -> "Dataset":
        """Elements are computed ahead of the consumer.

        Parameters
        ----------
        buffer_size
            Their number. ``None``, and -1 as in tf.data: as many as are useful.
        """
        depth = check.tunable(buffer_size, "buffer_size")
        return self._then("prefetch", _drawing.arguments(buffer_size), library.mr_dataset_prefetch, depth)

    def prefetch_to_device(self, device: str, buffer_size: Optional[int] = None) -> "Dataset":
        """The last transformation: elements are delivered on a GPU, copied ahead from pinned memory.

        Parameters
        ----------
        device
            ``"/gpu:0"``, ``"cuda:0"``, ``"/cpu:0"``.
        buffer_size
            Elements ahead. ``None``: 2 on a GPU, tuned on the CPU.

        Raises
        ------
        millrace.errors.UnavailableError
            There is no such device, or the library was built without CUDA.
        """
        name = device_name(device)
        depth = check.tunable(buffer_size, "buffer_size")
        function = library.mr_dataset_prefetch_to_device
        return self._then("prefetch_to_device", repr(device), function, name.encode(), depth)

    def with_options(
        self, *, threads: Optional[int] = None, budget_bytes: Optional[int] = None, version: Optional[int] = None
    ) -> "Dataset":
        """Options for the iterators that run it.

        Parameters
        ----------
        threads
            Of the pipeline, all stages together.
        budget_bytes
            Of memory that all stages hold together.
        version
            Of the program's functions up to here: part of the digest that states, caches and snapshots are checked
            against. Change it when a function changes what it returns.
        """
        options = _abi.DatasetOptions(
            threads=check.threads(threads, "threads"),
            budget_bytes=check.optional(budget_bytes, _count, "budget_bytes", 0),
            version=check.optional(version, check.seed, "version", 0),
        )
        text = _drawing.arguments(threads=threads, budget_bytes=budget_bytes, version=version)
        return self._then("with_options", text, library.mr_dataset_with_options_, ctypes.byref(options))

    # ---- Examples and images ----

    def parse_example(self, features: Mapping[str, Any]) -> "Dataset":
        """Parses serialized Examples: one or more components for each feature, in their order, with their names.

        Parameters
        ----------
        features
            Maps a feature's name to ``mr.FixedLenFeature`` and so on, or to ``mr.String``, ``mr.Int64`` or
            ``mr.Float``: one value of this dtype. Before ``batch``, single records are parsed; after it, batches.
        """
        from ._features import to_features

        structs, kept = to_features(features)
        made = self._then("parse_example", _drawing.arguments(list(features)), library.mr_dataset_parse_example,
                          structs, len(structs))  # fmt: skip
        del kept
        return made

    def parse_sequence_example(self, context: Mapping[str, Any], sequence: Mapping[str, Any]) -> "Dataset":
        """Parses SequenceExamples: the components of the context, then those of the feature lists."""
        from ._features import to_features

        contexts, kept = to_features(context)
        lists, kept_too = to_features(sequence)
        made = self._then(
            "parse_sequence_example", _drawing.arguments(list(context), list(sequence)),
            library.mr_dataset_parse_sequence_example, contexts, len(context), lists, len(sequence),
        )  # fmt: skip
        del kept, kept_too
        return made

    def decode_image(
        self,
        height: Optional[int] = None,
        width: Optional[int] = None,
        *,
        crop: Optional[str] = None,
        flip: bool = False,
        mean: Any = None,
        std: Any = None,
        dtype: Any = "float32",
        layout: str = "NHWC",
        method: str = "bilinear",
        channels: int = 3,
        component: Any = None,
        seed: int = 0,
        fraction: Optional[float] = None,
        area: Optional[Sequence[float]] = None,
        aspect: Optional[Sequence[float]] = None,
        padding: int = 0,
        padding_mode: str = "zero",
        brightness: float = 0,
        contrast: Optional[Sequence[float]] = None,
        saturation: Optional[Sequence[float]] = None,
        hue: float = 0,
        color_order: Optional[Sequence[str]] = None,
        accurate_dct: bool = False,
        accept_truncated: bool = False,
        accept_damaged: bool = False,
        pixels_max: Optional[int] = None,
        approximate_scale: bool = False,
        num_parallel_calls: Optional[int] = None,
    ) -> "Dataset":
        """Decodes JPEG and PNG images; crops, resizes, flips, changes colors and normalizes them in one pass.

        Parameters
        ----------
        height, width
            Of the result; one number: both. ``None``: as stored.
        crop
            ``None`` (the complete image, stretched), ``"center"`` or ``"random"`` (the largest rectangle of the
            result's aspect ratio), ``"random_resized"`` (torchvision's RandomResizedCrop), ``"random_window"`` or
            ``"center_window"`` (height × width pixels, never resized).
        flip
            Left to right, with probability 0.5.
        mean, std
            (pixel - mean) / std, in units of 0 to 255: a number or one for each channel.
        dtype
            float32, float16, bfloat16 or uint8.
        layout
            ``"NHWC"``, or ``"NCHW"`` for channels first.
        method
            ``"bilinear"``, ``"nearest"``, ``"area"`` or ``"bicubic"``: TensorFlow's methods of these names.
        channels
            1 or 3.
        component
            The number or name of the component that holds the image. ``None``: the only one of strings, or the one
            that is named ``"image/encoded"``.
        seed
            Of all random choices, which depend on it, on the epoch and on the element alone.
        fraction
            Scales the rectangle of ``"center"`` and ``"random"``.
        area, aspect
            (least, greatest) share of the image's area, and width / height, of ``"random_resized"``. Default: 0.08 to
            1, and 3/4 to 4/3.
        padding, padding_mode
            Pixels on each side before ``"random_window"``: ``"zero"`` or ``"reflect"``.
        brightness, contrast, saturation, hue
            Random changes: a delta of at most `brightness` (1: the full range); factors from (least, greatest); a shift
            of at most `hue` (1: a full rotation).
        color_order
            These four names in another order.
        accurate_dct
            libjpeg's slow transform instead of the fast one, which TensorFlow uses by default.
        accept_truncated, accept_damaged
            Keep what a damaged JPEG decodes to instead of failing.
        pixels_max
            A larger image is an error. Default: 100,000,000.
        approximate_scale
            Faster, approximate decoding of JPEG regions that are at least twice as large as the result.
        num_parallel_calls
            Threads. ``None``: tuned.
        """
        if height is not None and width is None:
            width = height
        if width is not None and height is None:
            raise ValueError("height is None, but width is given")
        _refuse_unused(crop, fraction=fraction, area=area, aspect=aspect, padding=padding or None)
        if padding_mode != "zero" and not padding:
            raise ValueError("padding_mode has no effect without padding")
        options = _abi.ImageOptions(
            height=check.optional(height, _side, "height", 0),
            width=check.optional(width, _side, "width", 0),
            channels=check.integer(channels, "channels", 1, 3),
            crop=0 if crop is None else check.choice(crop, "crop", _CROPS),
            fraction=check.optional(fraction, check.number, "fraction", 0),
            padding=check.integer(padding, "padding", 0, 65536),
            padding_mode=check.choice(padding_mode, "padding_mode", _PADDINGS),
            random_flip_left_right=check.boolean(flip, "flip"),
            method=check.choice(method, "method", _METHODS),
            dtype=_dtypes.number(_image_dtype(dtype)),
            layout=check.choice(layout, "layout", _LAYOUTS),
            accurate_dct=check.boolean(accurate_dct, "accurate_dct"),
            accept_truncated=check.boolean(accept_truncated, "accept_truncated"),
            accept_damaged=check.boolean(accept_damaged, "accept_damaged"),
            pixels_max=check.optional(pixels_max, _count, "pixels_max", 0),
            approximate_scale=check.boolean(approximate_scale, "approximate_scale"),
        )
        options.area_min, options.area_max = _pair(area, "area")
        options.aspect_min, options.aspect_max = _pair(aspect, "aspect")
        options.mean[:] = _channels(mean, "mean")
        options.std[:] = _channels(std, "std")
        options.color = _color(brightness, contrast, saturation, hue, color_order)
        decode = _abi.DecodeOptions(
            component=self._image_component(component),
            num_parallel_calls=check.tunable(num_parallel_calls, "num_parallel_calls"),
            seed=check.seed(seed),
            image=ctypes.pointer(options),
        )
        text = _drawing.arguments(height, width, crop=crop, flip=flip or None, layout=layout)
        return self._then("decode_image", text, library.mr_dataset_decode_image_, ctypes.byref(decode))

    def _image_component(self, component: Any) -> int:
        specs = self.element_spec
        if component is not None:
            return self._component(component)
        strings = [i for i, spec in enumerate(specs) if spec.number == STRING]
        named = [i for i in strings if specs[i].name == "image/encoded"]
        if len(strings) == 1 or len(named) == 1:
            return named[0] if len(named) == 1 else strings[0]
        raise ValueError(f"component is None, but {len(strings)} components are strings; give a number or a name")

    def _component(self, component: Any) -> int:
        specs = self.element_spec
        if isinstance(component, str):
            for i, spec in enumerate(specs):
                if spec.name == component:
                    return i
            names = ", ".join(repr(spec.name) for spec in specs if spec.name is not None)
            raise ValueError(f"component is {component!r}, expected one of {names or 'no name: use a number'}")
        return check.integer(component, "component", 0, len(specs) - 1)


def _count(value: Any, name: str) -> int:
    return check.integer(value, name, 1)


def _size(value: Any, name: str) -> int:
    return check.integer(value, name, 1)


def _side(value: Any, name: str) -> int:
    return check.integer(value, name, 1, (1 << 31) - 1)


def _refuse_unused(crop: Optional[str], **options: Any) -> None:
    """Raises ValueError for an option that the crop does not use."""
    for name, value in options.items():
        if value is not None and crop in (None, *_CROPS) and crop not in _CROP_OPTIONS[name]:
            raise ValueError(f"{name} has no effect without crop={' or '.join(map(repr, _CROP_OPTIONS[name]))}")


def _image_dtype(dtype: Any) -> Any:
    name = _dtypes.name(_dtypes.number(dtype))
    if name not in _IMAGE_DTYPES:
        raise ValueError(f"dtype is {name}, expected {', '.join(_IMAGE_DTYPES[:-1])} or {_IMAGE_DTYPES[-1]}")
    return dtype


def _pair(values: Any, name: str) -> Sequence[float]:
    if values is None:
        return 0.0, 0.0
    if not isinstance(values, (list, tuple)) or len(values) != 2:
        raise TypeError(f"{name} is {values!r}, expected two numbers")
    return check.number(values[0], name), check.number(values[1], name)


def _channels(values: Any, name: str) -> Sequence[float]:
    if values is None:
        return 0.0, 0.0, 0.0
    try:
        items = [check.number(value, name) for value in values]
    except TypeError:
        items = [check.number(values, name)]
    if len(items) not in (1, 3):
        raise ValueError(f"{name} has {len(items)} values, expected 1 or 3")
    if name == "std" and 0 in items:
        raise ValueError(f"std is {values!r}, expected numbers other than 0")
    return items * 3 if len(items) == 1 else items


def _color(brightness: Any, contrast: Any, saturation: Any, hue: Any, order: Any) -> _abi.ColorJitter:
    made = _abi.ColorJitter(brightness=check.number(brightness, "brightness"), hue=check.number(hue, "hue"))
    made.contrast_min, made.contrast_max = _pair(contrast, "contrast")
    made.saturation_min, made.saturation_max = _pair(saturation, "saturation")
    if order is not None:
        if contrast is None and saturation is None and not brightness and not hue:
            raise ValueError("color_order has no effect without brightness, contrast, saturation or hue")
        if sorted(order) != sorted(_STEPS):
            raise ValueError(f"color_order is {order!r}, expected each of {', '.join(map(repr, _STEPS))} once")
        made.order[:] = [1 + _STEPS.index(step) for step in order]
    return made


def device_name(device: Any) -> str:
    """The library's name of a device: "cuda:1" is "/gpu:1"."""
    name = check.text(device if isinstance(device, str) else str(device), "device")
    kind, _, number = name.partition(":")
    if kind == "cuda":
        return f"/gpu:{number or 0}"
    return "/cpu:0" if name == "cpu" else name
