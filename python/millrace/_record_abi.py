"""The structs and functions of <millrace/record.h> and <millrace/example.h>. See _abi."""
import ctypes

from . import _library
from ._abi import Shape, String, _Options, _bool, _int32, _int64, _size, _text, _uint64, _void

OK, INVALID_ARGUMENT, ABORTED, OUT_OF_RANGE, DATA_LOSS = 0, 3, 10, 11, 15
HEADER_BYTES, FOOTER_BYTES = 12, 4
DAMAGE_SKIP = 1


class RecordWriterOptions(_Options):
    """mr_record_writer_options"""

    _fields_ = [
        ("size", _size),
        ("compression", _int32),
        ("level", _int32),
        ("index", _bool),
        ("atomic", _bool),
        ("seek_bytes", _size),
        ("threads", _int32),
        ("no_lock", _bool),
    ]


class RecordDamage(ctypes.Structure):
    """mr_record_damage"""

    _fields_ = [("kind", _int32), ("record", _uint64), ("offset", _uint64), ("size_bytes", _uint64), ("path", _text)]


class RecordReaderOptions(_Options):
    """mr_record_reader_options"""

    _fields_ = [
        ("size", _size),
        ("skip_checksums", _bool),
        ("direct", _bool),
        ("damage", _int32),
        ("damage_max", _uint64),
        ("first", _uint64),
        ("count", _uint64),
        ("buffer_bytes", _size),
        ("buffer_count", _int32),
        ("quarantine", _void),
        ("damaged", _void),
        ("context", _void),
    ]


class RecordBatch(ctypes.Structure):
    """mr_record_batch"""

    _fields_ = [
        ("file", _int32),
        ("thread", _int32),
        ("path", _text),
        ("first", _uint64),
        ("count", _size),
        ("records", _void),
        ("result", _void),
        ("bytes", _void),
        ("offset", _uint64),
    ]


class RecordTotals(ctypes.Structure):
    """mr_record_totals"""

    _fields_ = [("records", _uint64), ("size_bytes", _uint64), ("lost", _uint64), ("lost_bytes", _uint64)]


class RecordScanOptions(_Options):
    """mr_record_scan_options"""

    _fields_ = [
        ("size", _size),
        ("threads", _int32),
        ("skip_checksums", _bool),
        ("direct", _bool),
        ("damage", _int32),
        ("damage_max", _uint64),
        ("block_bytes", _size),
        ("quarantine", _void),
        ("context", _void),
        ("work", _void),
        ("take", _void),
        ("takes_results", _bool),
        ("discard", _void),
        ("damaged", _void),
        ("file_done", _void),
    ]


class RecordIndex(ctypes.Structure):
    """mr_record_index"""

    _fields_ = [
        ("count", _uint64),
        ("offsets", _void),
        ("file_size_bytes", _uint64),
        ("file_modified_ns", _int64),
        ("file_checksum", ctypes.c_uint32),
        ("origin", _int32),
        ("compression", _int32),
        ("point_count", _uint64),
        ("points", _void),
    ]


class ExampleEncoder(ctypes.Structure):
    """mr_example_encoder"""

    _fields_ = [("state", _void)]


class FeatureView(ctypes.Structure):
    """mr_feature_view"""

    _fields_ = [("name", String), ("kind", _int32), ("list", String)]


class ExampleCursor(ctypes.Structure):
    """mr_example_cursor"""

    _fields_ = [("record", String), ("offset", _size), ("inner_offset", _size), ("inner_end", _size)]


class FeatureListView(ctypes.Structure):
    """mr_feature_list_view"""

    _fields_ = [("name", String), ("steps", String)]


class Partition(ctypes.Structure):
    """mr_partition"""

    _fields_ = [("kind", _int32), ("key", _text), ("length", _int64)]


class Feature(ctypes.Structure):
    """mr_feature"""

    _fields_ = [
        ("name", _text),
        ("dtype", _int32),
        ("form", _int32),
        ("shape", Shape),
        ("default_value", _void),
        ("value_key", _text),
        ("index_keys", _void),
        ("already_sorted", _bool),
        ("partitions", _void),
        ("partition_count", _int32),
        ("splits_dtype", _int32),
        ("allow_missing", _bool),
    ]


# The functions of options. Pointers to structs are addresses.
DAMAGED = ctypes.CFUNCTYPE(None, _void, _void, _void)
TAKE = ctypes.CFUNCTYPE(_int32, _void, _void, _void)
FILE_DONE = ctypes.CFUNCTYPE(_int32, _void, _int32, _void, _void)

_library.declare(
    {
        "mr_damage_kind_name": (_text, _int32),
        "mr_record_writer_open": (_int32, _text, _void, _void, _void),
        "mr_record_writer_append": (_int32, _void, _void, _size, _void),
        "mr_record_writer_append_many": (_int32, _void, _text, _void, _size, _void),
        "mr_record_writer_flush": (_int32, _void, _bool, _void),
        "mr_record_writer_count": (_uint64, _void),
        "mr_record_writer_size": (_uint64, _void),
        "mr_record_writer_close": (_int32, _void, _void),
        "mr_record_writer_discard": (None, _void),
        "mr_record_quarantine_open": (_int32, _text, _void, _void),
        "mr_record_quarantine_count": (_uint64, _void),
        "mr_record_quarantine_close": (_int32, _void, _void),
        "mr_record_reader_open": (_int32, _text, _void, _void, _void),
        "mr_record_reader_next": (_int32, _void, _void, _void),
        "mr_record_reader_wait": (_int32, _void, _int32, _void, _void),
        "mr_record_reader_number": (_uint64, _void),
        "mr_record_reader_offset": (_uint64, _void),
        "mr_record_reader_lost": (_uint64, _void),
        "mr_record_reader_damage": (RecordDamage, _void),
        "mr_record_reader_compression": (_int32, _void),
        "mr_record_reader_close": (None, _void),
        "mr_record_scan": (_int32, _void, _int32, _void, _void, _void),
        "mr_record_index_open": (_int32, _text, _void, _void),
        "mr_record_index_build": (_int32, _text, _int32, _void, _void),
        "mr_record_index_write": (_int32, _text, _void, _void),
        "mr_record_index_deinit": (None, _void),
        "mr_record_count": (_int32, _text, _int32, _void, _void),
        "mr_record_file_open": (_int32, _text, _void, _void),
        "mr_record_file_count": (_uint64, _void),
        "mr_record_file_compression": (_int32, _void),
        "mr_record_file_offset": (_uint64, _void, _uint64),
        "mr_record_file_record_size": (_uint64, _void, _uint64),
        "mr_record_file_prefetch": (None, _void, _uint64),
        "mr_record_file_read": (_int32, _void, _uint64, _void, _void, _void),
        "mr_record_file_close": (None, _void),
        "mr_paths_match": (_int32, _text, _void, _void, _void),
        "mr_paths_free": (None, _void, _int32),
        "mr_example_add_int64_list": (None, _void, _text, _void, _size),
        "mr_example_finish": (_int32, _void, _void, _void),
        "mr_example_encoder_deinit": (None, _void),
        "mr_example_next_feature": (_int32, _void, _void, _void),
        "mr_feature_count": (_int32, _void, _void, _void),
        "mr_feature_bytes": (_int32, _void, _void, _size, _void),
        "mr_feature_floats": (_int32, _void, _void, _size, _void),
        "mr_feature_int64s": (_int32, _void, _void, _size, _void),
        "mr_sequence_next_list": (_int32, _void, _void, _void),
        "mr_feature_list_next": (_int32, _void, _void, _void),
        "mr_feature_tensor_count": (_int32, _void),
        "mr_sequence_tensor_count": (_int32, _void),
        "mr_example_parser_new": (_int32, _void, _int32, _void, _void),
        "mr_example_parser_free": (None, _void),
        "mr_example_parse": (_int32, _void, _void, _int64, _bool, _void, _void),
        "mr_sequence_parser_new": (_int32, _void, _int32, _void, _int32, _void, _void),
        "mr_sequence_parser_free": (None, _void),
        "mr_sequence_parse": (_int32, _void, _void, _int64, _bool, _void, _void),
    }
)
