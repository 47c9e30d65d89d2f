"""The sources of datasets."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Tuple, Union

from . import _abi, _callbacks, _drawing, _dtypes, _specs
from . import _arguments as check
from ._library import STRING, library

if TYPE_CHECKING:
    import os

    from .dataset import Dataset

    PathLike = Union[str, bytes, "os.PathLike[str]"]


def _made(handle: Optional[int], name: str, arguments: str, inputs: Sequence["Dataset"] = ()) -> "Dataset":
    from .dataset import Dataset

    made = Dataset._own(handle, _drawing.Stage(name, arguments, tuple(dataset._stage for dataset in inputs)))
    made._pools = tuple(pool for dataset in inputs for pool in dataset._pools)
    made._functions = frozenset().union(*[dataset._functions for dataset in inputs])
    return made


def _paths(values: Any, name: str) -> ctypes.Array:
    encoded = [check.path(value, name) for value in values]
    if not encoded:
        raise ValueError(f"{name} is empty")
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


class Sources:
    """The part of Dataset that begins pipelines."""

    @staticmethod
    def range(start: int, stop: Optional[int] = None, step: int = 1) -> "Dataset":
        """The integers from `start` to `stop` (exclusive), as int64 scalars. With one argument, from 0 to that.

        Parameters
        ----------
        start, stop, step
            As of Python's range.
        """
        if stop is None:
            start, stop = 0, start
        first, last = check.integer(start, "start"), check.integer(stop, "stop")
        return _made(
            library.mr_dataset_range(first, last, check.integer(step, "step")),
            "range", _drawing.arguments(first, last, step if step != 1 else None),
        )  # fmt: skip

    @staticmethod
    def from_tensors(components: Any) -> "Dataset":
        """One element.

        Parameters
        ----------
        components
            An array or number, or a tuple of them. Arrays are referenced, not copied: do not change them afterwards.
        """
        return _from_values(components, library.mr_dataset_from_tensors, "from_tensors")

    @staticmethod
    def from_tensor_slices(components: Any) -> "Dataset":
        """The rows along dimension 0 of arrays, which have the same number of rows.

        Parameters
        ----------
        components
            An array, or a tuple of them, one for each component. Arrays are referenced, not copied: do not change them
            afterwards.
        """
        return _from_values(components, library.mr_dataset_from_slices, "from_tensor_slices")

    @staticmethod
    def records(files: Any) -> "Dataset":
        """The records of TFRecord files (bytes), file after file: ``tf.data.TFRecordDataset``.

        Files with an index, and plain files, can be shuffled globally without memory.

        Parameters
        ----------
        files
            A path, a pattern (``"train-*.tfrecord"``; matches are sorted by name), ``"name@16"`` for
            ``name-00000-of-00016`` and so on, or a list of paths.

        Raises
        ------
        millrace.errors.NotFoundError
            There is no such file.
        """
        if _is_list(files):
            paths = _paths(files, "files")
            return _made(library.mr_dataset_record_files(paths, len(paths)), "records", _drawing.arguments(files))
        return _made(library.mr_dataset_records(check.path(files, "files")), "records", _drawing.arguments(files))

    @staticmethod
    def list_files(pattern: "PathLike") -> "Dataset":
        """The sorted names of the files that match a pattern (bytes)."""
        return _made(library.mr_dataset_list_files(check.path(pattern, "pattern")), "list_files", repr(pattern))

    @staticmethod
    def image_directory(path: "PathLike") -> "Dataset":
        """A directory with one subdirectory of images (JPEG, PNG) for each class.

        Components: the file's bytes (``"image/encoded"``), the number of its class (``"image/class/label"``; classes
        are sorted by name) and its path (``"image/filename"``). Nothing is decoded; ``decode_image`` may follow.
        """
        return _made(library.mr_dataset_image_directory(check.path(path, "path")), "image_directory", repr(path))

    @staticmethod
    def fixed_length_records(
        pattern: "PathLike", record_bytes: int, *, header_bytes: int = 0, footer_bytes: int = 0
    ) -> "Dataset":
        """Records of a fixed length (bytes): ``tf.data.FixedLengthRecordDataset``.

        Parameters
        ----------
        pattern
            A path or a pattern.
        record_bytes
            The length of a record.
        header_bytes, footer_bytes
            Bytes to skip at the start and at the end of each file.
        """
        options = _abi.FixedLengthOptions(
            header_bytes=check.integer(header_bytes, "header_bytes", 0),
            footer_bytes=check.integer(footer_bytes, "footer_bytes", 0),
        )
        size = check.integer(record_bytes, "record_bytes", 1)
        handle = library.mr_dataset_fixed_length_(check.path(pattern, "pattern"), size, ctypes.byref(options))
        return _made(handle, "fixed_length_records", _drawing.arguments(pattern, size))

    @staticmethod
    def npy(files: Any) -> "Dataset":
        """The rows along dimension 0 of NumPy files, read on demand.

        Parameters
        ----------
        files
            A path or a list of paths: one component for each ``.npy``, or one for each array of an ``.npz``.
        """
        paths = _paths(files if _is_list(files) else [files], "files")
        return _made(library.mr_dataset_npy(paths, len(paths)), "npy", _drawing.arguments(files))

    @staticmethod
    def tar(pattern: "PathLike", extensions: Sequence[str]) -> "Dataset":
        """The samples of webdataset tar files: one component (bytes) for each extension, then the sample's name.

        Parameters
        ----------
        pattern
            A path or a pattern.
        extensions
            ``"jpg"``, ``"cls"``, …; ``"jpg;jpeg;png"`` takes the first that a sample has. A sample that lacks one of
            the components is skipped.
        """
        if isinstance(extensions, str):
            extensions = (extensions,)
        names = [check.text(name, "extensions").encode() for name in extensions]
        array = (ctypes.c_char_p * len(names))(*names)
        handle = library.mr_dataset_tar(check.path(pattern, "pattern"), array, len(names))
        return _made(handle, "tar", _drawing.arguments(pattern, list(extensions)))

    @staticmethod
    def text_lines(pattern: "PathLike") -> "Dataset":
        """The lines of text files (bytes) without their ends: ``tf.data.TextLineDataset``."""
        return _made(library.mr_dataset_text_lines(check.path(pattern, "pattern")), "text_lines", repr(pattern))

    @staticmethod
    def csv(
        pattern: "PathLike",
        columns: Mapping[int, Any],
        *,
        header: bool = False,
        separator: str = ",",
        na_value: Optional[str] = None,
        column_count: Optional[int] = None,
        quotes: bool = True,
    ) -> "Dataset":
        """The rows of CSV files: one scalar for each selected column, as ``tf.data.experimental.CsvDataset``.

        Parameters
        ----------
        pattern
            A path or a pattern.
        columns
            Maps the number of a column, from 0, to its dtype (float32, float64, int32, int64 or string), or to a pair
            of dtype and default value for empty cells. Without a default, an empty cell is an error.
        header
            Whether the first row of each file is skipped.
        separator
            One character.
        na_value
            A text that counts as an empty cell.
        column_count
            The number of cells that every row must have. ``None``: other columns are ignored.
        quotes
            Whether quotes have a meaning.
        """
        from ._tensors import Tensors

        if len(check.text(separator, "separator").encode()) != 1:
            raise ValueError(f"separator is {separator!r}, expected one character")
        numbers = sorted(check.integer(index, "columns", 0, (1 << 31) - 1) for index in columns)
        structs = (_abi.CsvColumn * max(1, len(numbers)))()
        kept = []
        for struct, index in zip(structs, numbers):
            dtype, *default = columns[index] if _is_list(columns[index]) else (columns[index],)
            struct.index, struct.dtype = index, _dtypes.number(dtype, f"columns[{index}]")
            if default:
                kept.append(_scalar(default[0], struct.dtype, f"the default of columns[{index}]"))
                struct.default_value = ctypes.pointer(kept[-1].at(0))
        assert all(isinstance(item, Tensors) for item in kept)
        options = _abi.CsvOptions(
            has_header=check.boolean(header, "header"),
            separator=separator.encode(),
            na_value=None if na_value is None else check.text(na_value, "na_value").encode(),
            column_count=0 if column_count is None else check.integer(column_count, "column_count", 1, (1 << 31) - 1),
            no_quotes=not check.boolean(quotes, "quotes"),
        )
        handle = library.mr_dataset_csv_(check.path(pattern, "pattern"), structs, len(numbers), ctypes.byref(options))
        return _made(handle, "csv", _drawing.arguments(pattern, numbers))

    @staticmethod
    def from_generator(generator: Callable, output_signature: Any, args: Tuple = ()) -> "Dataset":
        """The values of a Python generator.

        Parameters
        ----------
        generator
            A function that returns an iterable. Each iteration calls it anew. It must produce the same elements each
            time if states are restored: restoring skips elements. Closing an iterator waits for a step of the iterable
            that is in progress, such as a sleep or a read from a socket, which cannot be interrupted.
        output_signature
            An ``mr.Spec``, a sequence of them, or a dict of name and Spec.
        args
            Arguments of the function.
        """
        specs = _specs.specs(output_signature)
        number = _callbacks.keep(_callbacks.Generator(check.function(generator, "generator"), tuple(args), specs))
        struct = _abi.Generator(
            open=_callbacks.address(_callbacks.generator_open),
            next=_callbacks.address(_callbacks.generator_next),
            close=_callbacks.address(_callbacks.generator_close),
            release=_callbacks.release,
        )
        spec = _specs.to_element_spec(specs)
        handle = library.mr_dataset_generator(ctypes.byref(struct), number, ctypes.byref(spec))
        made = _made(handle, "from_generator", _drawing.arguments(generator))
        made._functions = frozenset((number,))
        return made

    @staticmethod
    def random(seed: int) -> "Dataset":
        """An endless sequence of random int64 numbers below 2³²."""
        return _made(library.mr_dataset_random(check.seed(seed)), "random", repr(seed))

    @staticmethod
    def zip(*datasets: "Dataset") -> "Dataset":
        """The components of all datasets side by side; as long as the shortest.

        Parameters
        ----------
        datasets
            Datasets, or one tuple of them, as in tf.data.
        """
        found = _inputs(datasets[0] if len(datasets) == 1 else datasets, "datasets")
        return _made(library.mr_dataset_zip(_references(found), len(found)), "zip", "", found)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence["Dataset"],
        weights: Optional[Sequence[float]] = None,
        seed: int = 0,
        stop_on_empty_dataset: bool = False,
    ) -> "Dataset":
        """Each element from one of the datasets, chosen at random.

        Parameters
        ----------
        datasets
            Datasets of one structure.
        weights
            One for each dataset. ``None``: equal weights.
        seed
            Of the choices.
        stop_on_empty_dataset
            Whether it ends with the first dataset that ends.
        """
        found = _inputs(datasets, "datasets")
        values = None
        if weights is not None:
            if len(weights) != len(found):
                raise ValueError(f"weights has {len(weights)} values, expected {len(found)}")
            values = (ctypes.c_double * len(found))(*[check.number(weight, "weights") for weight in weights])
        options = _abi.SampleOptions(
            seed=check.seed(seed), stop_on_empty_dataset=check.boolean(stop_on_empty_dataset, "stop_on_empty_dataset")
        )
        handle = library.mr_dataset_sample_from_datasets_(
            _references(found), values, len(found), ctypes.byref(options)
        )  # fmt: skip
        return _made(handle, "sample_from_datasets", _drawing.arguments(weights=weights), found)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence["Dataset"], choice_dataset: "Dataset", stop_on_empty_dataset: bool = True
    ) -> "Dataset":
        """Each element from the dataset whose index is the next element of `choice_dataset` (int64 scalars)."""
        found = _inputs(datasets, "datasets")
        choices = _inputs(choice_dataset, "choice_dataset")
        if len(choices) != 1:
            raise TypeError("choice_dataset is a sequence, expected one dataset")
        options = _abi.SampleOptions(
            stop_on_empty_dataset=check.boolean(stop_on_empty_dataset, "stop_on_empty_dataset")
        )
        handle = library.mr_dataset_choose_from_datasets_(
            _references(found), len(found), choices[0]._reference(), ctypes.byref(options)
        )
        return _made(handle, "choose_from_datasets", "", (*found, *choices))


def _inputs(datasets: Any, argument: str) -> Sequence["Dataset"]:
    from .dataset import check_datasets

    return check_datasets(datasets, argument)


def _references(datasets: Sequence["Dataset"]) -> ctypes.Array:
    return (ctypes.c_void_p * len(datasets))(*[dataset._reference() for dataset in datasets])


def _scalar(value: Any, number: int, argument: str) -> Any:
    from ._tensors import Tensors, as_array

    array = as_array(value, number, argument)
    if array.ndim != 0:
        raise ValueError(f"{argument} has shape {array.shape}, expected a scalar")
    return Tensors([array if number == STRING else array.astype(array.dtype)], argument)


def _from_values(components: Any, function: Any, name: str) -> "Dataset":
    from ._tensors import Tensors

    values = components if isinstance(components, tuple) else (components,)
    if not 1 <= len(values) <= _abi.COMPONENTS_MAX:
        raise ValueError(f"components has {len(values)} arrays, expected 1 to {_abi.COMPONENTS_MAX}")
    tensors = Tensors(values, "components")
    return _made(function(tensors.address, tensors.count), name, f"{len(values)} array{'s' * (len(values) > 1)}")
