"""The settings of a session: a dict, or TensorFlow's ConfigProto."""
import collections.abc
import ctypes
import operator

from . import _library, _proto

# Fields of ConfigProto that have a setting here, and those that do not change results: they are accepted.
_NAMES = {"intra_op_parallelism_threads": "threads", "operation_timeout_in_ms": "timeout_ms"}
_WITHOUT_EFFECT = {
    "inter_op_parallelism_threads", "use_per_session_threads", "session_inter_op_thread_pool", "device_count",
    "device_filters", "gpu_options", "placement_period", "rpc_options", "cluster_def",
    "share_cluster_devices_in_session", "isolate_session_state", "experimental",
}  # fmt: skip
_KNOWN = {
    "threads", "device", "allow_soft_placement", "log_device_placement", "timeout_ms", "optimize", "recompute",
}  # fmt: skip
_L0 = -1  # OptimizerOptions.L0
_LEVELS = {"L1": 0, "L0": _L0}
_NO_MEM_OPT = 1
_MEMORY = {"DEFAULT_MEM_OPT": 0, "NO_MEM_OPT": _NO_MEM_OPT, "MANUAL": 2, "HEURISTICS": 3, "SWAPPING_HEURISTICS": 4,
           "RECOMPUTATION_HEURISTICS": 5, "SCHEDULING_HEURISTICS": 6}  # fmt: skip  # RewriterConfig.MemOptType


def _count(name, value, bits):
    """The value of a setting, an int of at least 0 that fits in so many bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"config: {name} is {value!r}, expected an int") from None
    if not 0 <= number < 1 << bits:
        raise ValueError(f"config: {name} is {number}, expected 0 to {(1 << bits) - 1}")
    return number


def _flag(name, value):
    """The value of a setting that is true or false."""
    is_bool = type(value).__name__ in ("bool", "bool_")  # NumPy's, too
    if is_bool or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise TypeError(f"config: {name} is {value!r}, expected True or False")


def _message(name, value):
    """The value of a field that is a message."""
    if not isinstance(value, collections.abc.Mapping):
        raise TypeError(f"config: {name} is {value!r}, expected a dict")
    return value


def _enum(name, value, names):
    """The number of an enum's value, which is one of the names or of their numbers."""
    number = names.get(value) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(number, int) or number not in names.values():
        raise ValueError(f"config: {name} is {value!r}, expected one of {sorted(names)}")
    return number


def _signed(value):
    """The value of an int32 or int64 field."""
    return value - (1 << 64) if value >> 63 else value


def _from_bytes(data):
    """The settings of a serialized ConfigProto."""
    try:
        graph_options = _proto.concatenated(data, 10)
        level = _signed(_proto.last(_proto.concatenated(graph_options, 3), 3, 0))
        memory = _proto.last(_proto.concatenated(graph_options, 10), 4, 0)
        threads, timeout_ms = (_signed(_proto.last(data, number, 0)) for number in (2, 11))
        log = _proto.last(data, 8, 0)
    except (ValueError, TypeError) as error:
        raise ValueError(f"config: not a ConfigProto: {error}") from None
    return {
        "threads": max(threads, 0),
        "timeout_ms": max(timeout_ms, 0),
        "log_device_placement": log,
        "optimize": level != _L0,
        "recompute": memory != _NO_MEM_OPT,
    }


def _from_dict(config):
    settings = {}
    for name, value in config.items():
        if name == "graph_options":
            options = _message(name, value)
            optimizer = _message("optimizer_options", options.get("optimizer_options", {}))
            rewriter = _message("rewrite_options", options.get("rewrite_options", {}))
            settings["optimize"] = _enum("opt_level", optimizer.get("opt_level", 0), _LEVELS) != _L0
            memory = _enum("memory_optimization", rewriter.get("memory_optimization", 0), _MEMORY)
            settings["recompute"] = memory != _NO_MEM_OPT
        elif name not in _WITHOUT_EFFECT:
            settings[_NAMES.get(name, name)] = value
    unknown = settings.keys() - _KNOWN
    if unknown:
        raise TypeError(f"config: unknown setting {min(map(repr, unknown))}; known are {sorted(_KNOWN)}")
    return settings


def options(config):
    """The mr_session_options of a config as in Session."""
    result = _library.SessionOptions(size=ctypes.sizeof(_library.SessionOptions))
    if config is None:
        return result
    if isinstance(config, collections.abc.Mapping):
        settings = _from_dict(config)
    elif isinstance(config, (bytes, bytearray)):
        settings = _from_bytes(bytes(config))
    elif hasattr(config, "SerializeToString") and hasattr(config, "intra_op_parallelism_threads"):
        settings = _from_bytes(config.SerializeToString())
    else:
        raise TypeError(f"config: expected None, a dict, a ConfigProto or its bytes, not {type(config).__name__}")
    result.threads = _count("threads", settings.get("threads", 0), 31)
    result.timeout_ms = _count("timeout_ms", settings.get("timeout_ms", 0), 63)
    device = settings.get("device")
    if device is not None and not isinstance(device, str):
        raise TypeError(f"config: device is {device!r}, expected a str such as '/device:GPU:0'")
    if device and "\0" in device:
        raise ValueError("config: device contains a NUL character")
    result.device = device.encode() if device else None
    flag = lambda name, default: _flag(name, settings.get(name, default))
    result.no_soft_placement = not flag("allow_soft_placement", True)
    result.log_device_placement = flag("log_device_placement", False)
    result.no_optimization = not flag("optimize", True)
    result.no_recompute = not flag("recompute", True)
    return result
