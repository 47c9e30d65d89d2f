"""The structs and functions of <millrace/tensor.h>, image.h, dataset.h and dlpack.h that the package uses.

A structure's docstring is its name in C, and the fields have the names that they have in C; a test compares their
layout with the headers'."""
import ctypes

from . import _library

RANK_MAX = _library.RANK_MAX
COMPONENTS_MAX = 32
OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, OUT_OF_RANGE = 0, 1, 2, 3, 11
INFINITE, CARDINALITY_UNKNOWN = -1, -2

_bool, _int32, _int64, _uint64 = ctypes.c_bool, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_size, _void, _text, _float, _double = (
    ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float, ctypes.c_double,
)  # fmt: skip


class Shape(ctypes.Structure):
    """mr_shape"""

    _fields_ = [("rank", _int32), ("dims", _int64 * RANK_MAX)]


class Tensor(ctypes.Structure):
    """mr_tensor"""

    _fields_ = [("dtype", _int32), ("shape", Shape), ("buffer", _void), ("data", _void)]


class Element(ctypes.Structure):
    """mr_element"""

    _fields_ = [("count", _int32), ("capacity", _int32), ("tensors", _void)]


class ElementSpec(ctypes.Structure):
    """mr_element_spec"""

    _fields_ = [
        ("count", _int32),
        ("dtypes", _int32 * COMPONENTS_MAX),
        ("shapes", Shape * COMPONENTS_MAX),
        ("names", _text * COMPONENTS_MAX),
    ]


class String(ctypes.Structure):
    """mr_string"""

    _fields_ = [("data", _void), ("size_bytes", _size)]


class _Options(ctypes.Structure):
    """The base of structs that start with their size."""

    def __init__(self, **values):
        super().__init__(size=ctypes.sizeof(type(self)), **values)


class FixedLengthOptions(_Options):
    """mr_fixed_length_options"""

    _fields_ = [("size", _size), ("header_bytes", _size), ("footer_bytes", _size)]


class CsvColumn(ctypes.Structure):
    """mr_csv_column"""

    _fields_ = [("index", _int32), ("dtype", _int32), ("default_value", ctypes.POINTER(Tensor))]


class CsvOptions(_Options):
    """mr_csv_options"""

    _fields_ = [
        ("size", _size),
        ("has_header", _bool),
        ("separator", ctypes.c_char),
        ("na_value", _text),
        ("column_count", _int32),
        ("no_quotes", _bool),
    ]


class ShuffleOptions(_Options):
    """mr_shuffle_options"""

    _fields_ = [("size", _size), ("buffer_size", _int64), ("seed", _uint64), ("reshuffle_each_iteration", _bool)]


class DatasetOptions(_Options):
    """mr_dataset_options"""

    _fields_ = [("size", _size), ("threads", _int32), ("budget_bytes", _size), ("version", _uint64)]


class BatchOptions(_Options):
    """mr_batch_options"""

    _fields_ = [("size", _size), ("drop_remainder", _bool)]


class PaddedBatchOptions(_Options):
    """mr_padded_batch_options"""

    _fields_ = [
        ("size", _size),
        ("padded_shapes", ctypes.POINTER(Shape)),
        ("padding_values", ctypes.POINTER(Tensor)),
        ("drop_remainder", _bool),
    ]


class RaggedBatchOptions(_Options):
    """mr_ragged_batch_options"""

    _fields_ = [("size", _size), ("drop_remainder", _bool), ("row_splits_dtype", _int32)]


class MapOptions(_Options):
    """mr_map_options"""

    _fields_ = [
        ("size", _size),
        ("num_parallel_calls", _int32),
        ("seed", _uint64),
        ("release", _void),
        ("own_input", _bool),
    ]


class FunctionOptions(_Options):
    """mr_function_options"""

    _fields_ = [("size", _size), ("num_parallel_calls", _int32), ("release", _void)]


class IgnoreErrorsOptions(_Options):
    """mr_ignore_errors_options"""

    _fields_ = [("size", _size), ("errors_max", _int64), ("ignores", _void), ("context", _void)]


class InterleaveOptions(_Options):
    """mr_interleave_options"""

    _fields_ = [
        ("size", _size),
        ("cycle_length", _int64),
        ("block_length", _int64),
        ("parallel", _bool),
        ("release", _void),
    ]


class SampleOptions(_Options):
    """mr_sample_options"""

    _fields_ = [("size", _size), ("seed", _uint64), ("stop_on_empty_dataset", _bool)]


class SnapshotOptions(_Options):
    """mr_dataset_snapshot_options"""

    _fields_ = [("size", _size), ("gzip", _bool)]


class WindowOptions(_Options):
    """mr_window_options"""

    _fields_ = [
        ("size", _size),
        ("window_size", _int64),
        ("shift", _int64),
        ("stride", _int64),
        ("drop_remainder", _bool),
        ("release", _void),
    ]


class GroupOptions(_Options):
    """mr_group_options"""

    _fields_ = [("size", _size), ("window_size", _int64), ("window_size_func", _void), ("release", _void)]


class BucketOptions(_Options):
    """mr_bucket_options"""

    _fields_ = [
        ("size", _size),
        ("padded_shapes", ctypes.POINTER(Shape)),
        ("padding_values", ctypes.POINTER(Tensor)),
        ("pad_to_bucket_boundary", _bool),
        ("no_padding", _bool),
        ("drop_remainder", _bool),
        ("release", _void),
    ]


class ResampleOptions(_Options):
    """mr_resample_options"""

    _fields_ = [("size", _size), ("initial_dist", ctypes.POINTER(_double)), ("seed", _uint64), ("release", _void)]


class ColorJitter(ctypes.Structure):
    """mr_color_jitter"""

    _fields_ = [
        ("brightness", _float),
        ("contrast_min", _float),
        ("contrast_max", _float),
        ("saturation_min", _float),
        ("saturation_max", _float),
        ("hue", _float),
        ("order", _int32 * 4),
    ]


class ImageOptions(_Options):
    """mr_image_options"""

    _fields_ = [
        ("size", _size),
        ("height", _int32),
        ("width", _int32),
        ("channels", _int32),
        ("crop", _int32),
        ("fraction", _float),
        ("area_min", _float),
        ("area_max", _float),
        ("aspect_min", _float),
        ("aspect_max", _float),
        ("padding", _int32),
        ("padding_mode", _int32),
        ("random_flip_left_right", _bool),
        ("color", ColorJitter),
        ("method", _int32),
        ("dtype", _int32),
        ("mean", _float * 3),
        ("std", _float * 3),
        ("layout", _int32),
        ("accurate_dct", _bool),
        ("accept_truncated", _bool),
        ("accept_damaged", _bool),
        ("pixels_max", _int64),
        ("approximate_scale", _bool),
    ]


class DecodeOptions(_Options):
    """mr_decode_options"""

    _fields_ = [
        ("size", _size),
        ("component", _int32),
        ("num_parallel_calls", _int32),
        ("seed", _uint64),
        ("image", ctypes.POINTER(ImageOptions)),
    ]


class ThreadWork(ctypes.Structure):
    """mr_thread_work"""

    _fields_ = [
        ("stage", _text),
        ("is_waiting", _bool),
        ("number", _uint64),
        ("since_ns", _uint64),
        ("where", ctypes.c_char * 200),
    ]


class IteratorOptions(_Options):
    """mr_iterator_options"""

    _fields_ = [
        ("size", _size),
        ("threads", _int32),
        ("tune", _int32),
        ("threads_first", _int32),
        ("tuned", _void),
        ("tuned_context", _void),
        ("budget_bytes", _size),
        ("seed", _uint64),
        ("allocate", _void),
        ("allocate_context", _void),
        ("watchdog_ns", _uint64),
        ("watchdog", _void),
        ("watchdog_context", _void),
        ("trace_path", _text),
        ("digest", _bool),
    ]


class Tuned(ctypes.Structure):
    """mr_tuned"""

    _fields_ = [("is_on", _bool), ("is_settled", _bool), ("decisions", _uint64), ("line", ctypes.c_char * 320)]


class StageStatistics(ctypes.Structure):
    """mr_stage_statistics"""

    _fields_ = [
        ("stage", _text),
        ("elements", _uint64),
        ("bytes", _uint64),
        ("busy_ns", _uint64),
        ("input_wait_ns", _uint64),
        ("output_wait_ns", _uint64),
        ("held_bytes", _size),
        ("threads", _int32),
        ("slots_max", _int32),
        ("occupancy", _double),
        ("warning", ctypes.c_char * 400),
    ]


class Generator(ctypes.Structure):
    """mr_generator"""

    _fields_ = [("open", _void), ("next", _void), ("skip", _void), ("close", _void), ("release", _void)]


# Functions of the program that pipelines call. Pointers to structs are addresses.
GENERATOR_OPEN = ctypes.CFUNCTYPE(_int32, _void, _uint64, _void, _void)
GENERATOR_NEXT = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void)
GENERATOR_CLOSE = ctypes.CFUNCTYPE(None, _void, _void)
MAP_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void, _void)
PREDICATE = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void)
KEY_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void)
DATASET_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void)
WINDOW_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void)
GROUP_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _int64, _void, _void, _void)
SCAN_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void, _void, _void)
REDUCE_FUNCTION = ctypes.CFUNCTYPE(_int32, _void, _void, _void, _void, _void)
RELEASE = ctypes.CFUNCTYPE(None, _void)
WATCHDOG_FUNCTION = ctypes.CFUNCTYPE(None, _void, _uint64, _void, _int32)

_library.declare(
    {
        "mr_buffer_unref": (None, _void),
        "mr_buffer_is_unique": (_bool, _void),
        "mr_tensor_init": (_int32, _void, _int32, Shape, _void),
        "mr_tensor_init_copy": (_int32, _void, _int32, Shape, _void, _void),
        "mr_tensor_init_strings": (_int32, _void, Shape, _void, _void),
        "mr_tensor_ref": (Tensor, _void),
        "mr_tensor_deinit": (None, _void),
        "mr_tensor_device": (_void, _void),
        "mr_tensor_to_host": (_int32, _void, _void, _void),
        "mr_tensor_to_dlpack": (_int32, _void, _void, _void),
        "mr_tensor_to_dlpack_unversioned": (_int32, _void, _void, _void),
        "mr_tensor_from_dlpack": (_int32, _void, _void, _void),
        "mr_tensor_from_dlpack_unversioned": (_int32, _void, _void, _void),
        "mr_element_init": (_int32, _void, _int32, _void),
        "mr_element_deinit": (None, _void),
        "mr_random_below": (_uint64, _void, _uint64),
        "mr_dataset_ref": (_void, _void),
        "mr_dataset_free": (None, _void),
        "mr_dataset_status": (_int32, _void, _void),
        "mr_dataset_spec": (ctypes.POINTER(ElementSpec), _void),
        "mr_dataset_cardinality": (_int64, _void),
        "mr_dataset_range": (_void, _int64, _int64, _int64),
        "mr_dataset_from_tensors": (_void, _void, _int32),
        "mr_dataset_from_slices": (_void, _void, _int32),
        "mr_dataset_records": (_void, _text),
        "mr_dataset_record_files": (_void, _void, _int32),
        "mr_dataset_list_files": (_void, _text),
        "mr_dataset_image_directory": (_void, _text),
        "mr_dataset_fixed_length_": (_void, _text, _size, _void),
        "mr_dataset_npy": (_void, _void, _int32),
        "mr_dataset_tar": (_void, _text, _void, _int32),
        "mr_dataset_text_lines": (_void, _text),
        "mr_dataset_csv_": (_void, _text, _void, _int32, _void),
        "mr_dataset_generator": (_void, _void, _void, _void),
        "mr_dataset_random": (_void, _uint64),
        "mr_dataset_shuffle_": (_void, _void, _void),
        "mr_dataset_repeat": (_void, _void, _int64),
        "mr_dataset_take": (_void, _void, _int64),
        "mr_dataset_skip": (_void, _void, _int64),
        "mr_dataset_shard": (_void, _void, _int64, _int64),
        "mr_dataset_prefetch": (_void, _void, _int32),
        "mr_dataset_prefetch_to_device": (_void, _void, _text, _int32),
        "mr_dataset_with_options_": (_void, _void, _void),
        "mr_dataset_batch_": (_void, _void, _int64, _void),
        "mr_dataset_distribute": (_void, _void, _int64, _int64, _int64, _int32),
        "mr_dataset_padded_batch_": (_void, _void, _int64, _void),
        "mr_dataset_dense_to_ragged_batch_": (_void, _void, _int64, _void),
        "mr_dataset_dense_to_sparse_batch_": (_void, _void, _int64, Shape, _void),
        "mr_dataset_map_": (_void, _void, _void, _void, _void, _void),
        "mr_dataset_filter_": (_void, _void, _void, _void, _void),
        "mr_dataset_take_while_": (_void, _void, _void, _void, _void),
        "mr_dataset_ignore_errors_": (_void, _void, _void),
        "mr_dataset_zip": (_void, _void, _int32),
        "mr_dataset_concatenate": (_void, _void, _void),
        "mr_dataset_enumerate": (_void, _void, _int64),
        "mr_dataset_flat_map_": (_void, _void, _void, _void, _void, _void),
        "mr_dataset_interleave_": (_void, _void, _void, _void, _void, _void),
        "mr_dataset_sample_from_datasets_": (_void, _void, _void, _int32, _void),
        "mr_dataset_choose_from_datasets_": (_void, _void, _int32, _void, _void),
        "mr_dataset_scan_": (_void, _void, _void, _void, _void, _void, _void),
        "mr_dataset_reduce": (_int32, _void, _void, _void, _void, _void),
        "mr_dataset_unique": (_void, _void),
        "mr_dataset_unbatch": (_void, _void),
        "mr_dataset_rebatch_": (_void, _void, _int64, _void),
        "mr_dataset_assert_cardinality": (_void, _void, _int64),
        "mr_dataset_rejection_resample_": (_void, _void, _void, _void, _void, _int32, _void),
        "mr_dataset_cache": (_void, _void, _text),
        "mr_dataset_snapshot_": (_void, _void, _text, _void),
        "mr_dataset_window_": (_void, _void, _void, _void, _void, _void),
        "mr_dataset_group_by_window_": (_void, _void, _void, _void, _void, _void, _void),
        "mr_dataset_bucket_by_sequence_length_": (_void, _void, _void, _void, _void, _int32, _void, _void),
        "mr_dataset_parse_example": (_void, _void, _void, _int32),
        "mr_dataset_parse_sequence_example": (_void, _void, _void, _int32, _void, _int32),
        "mr_dataset_decode_image_": (_void, _void, _void),
        "mr_iterator_new": (_int32, _void, _void, _void, _void),
        "mr_iterator_free": (None, _void),
        "mr_iterator_next": (_int32, _void, _void, _void),
        "mr_iterator_cancel": (None, _void),
        "mr_iterator_save": (_int32, _void, _void, _void),
        "mr_iterator_restore": (_int32, _void, _void, _void),
        "mr_iterator_digest": (_uint64, _void),
        "mr_iterator_trace_stop": (_int32, _void, _void),
        "mr_iterator_tuned": (None, _void, _void),
        "mr_iterator_statistics": (_int32, _void, _void, _int32),
        "mr_iterator_statistics_text": (_size, _void, _int32, _void, _size),
    }
)
