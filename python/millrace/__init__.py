"""millrace: input pipelines for training, record files, and TensorFlow 1's graphs.

    import millrace as mr

    for images, labels in mr.Dataset.image_directory("photos").decode_image(224, 224).batch(64).numpy(): ...
    session = mr.Session("model.pb")
    probabilities = session.run("softmax:0", {"images:0": images})

Nothing has to be compiled: libmillrace.so is loaded with ctypes. A module, the library and NumPy are loaded when
something of them is first used, so that the import costs nothing."""
import importlib as _importlib

# The module that defines each public name.
_NAMES = {
    "Dataset": "dataset",
    "DatasetIterator": "iterator",
    "AUTOTUNE": "dataset",
    "INFINITE_CARDINALITY": "dataset",
    "UNKNOWN_CARDINALITY": "dataset",
    "Spec": "_specs",
    "Tensor": "_dlpack",
    "Session": "_session",
    "Handle": "_arrays",
    "RunMetadata": "_metadata",
    "RunOptions": "_metadata",
    "register_function": "_functions",
    "RECORD_SEEK_BYTES": "_record_writer",
    "RecordWriter": "_record_writer",
    "RecordReader": "_record_reader",
    "RecordDamage": "_record_common",
    "RecordFile": "_record_file",
    "RecordIndex": "_record_file",
    "count_records": "_record_file",
    "index": "_record_file",
    "write_index": "_record_file",
    "RecordTotals": "_record_scan",
    "Salvaged": "_record_scan",
    "salvage": "_record_scan",
    "scan": "_record_scan",
    "Example": "_examples",
    "SequenceExample": "_examples",
    "parse_example": "_parse",
    "parse_sequence_example": "_parse",
    "parse_single_example": "_parse",
    "parse_single_sequence_example": "_parse",
    "FixedLenFeature": "_features",
    "FixedLenSequenceFeature": "_features",
    "Float": "_features",
    "Int64": "_features",
    "RaggedFeature": "_features",
    "RaggedTensorValue": "_features",
    "SparseFeature": "_features",
    "SparseTensorValue": "_features",
    "String": "_features",
    "VarLenFeature": "_features",
    "make_records": "_make",
    "__version__": "_library",
}
_SUBMODULES = ("errors", "torch")
__all__ = [*_NAMES, *_SUBMODULES]


def __getattr__(name):
    if name in _SUBMODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *__all__])
