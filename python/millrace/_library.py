"""libmillrace.so through ctypes: the functions of <millrace/run.h>. Calls release the GIL."""
import ctypes
import os

from . import errors

RUN_VERSION = 3
RANK_MAX = 12
STRING, BFLOAT16 = 7, 14


class Error(ctypes.Structure):
    """mr_error"""

    _fields_ = [("status", ctypes.c_int32), ("message", ctypes.c_char * 1024)]


class Array(ctypes.Structure):
    """mr_array"""

    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int64 * RANK_MAX),
        ("data", ctypes.c_void_p),
        ("size_bytes", ctypes.c_size_t),
        ("sizes", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
    ]


class SessionOptions(ctypes.Structure):
    """mr_session_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("threads", ctypes.c_int),
        ("no_soft_placement", ctypes.c_bool),
        ("log_device_placement", ctypes.c_bool),
        ("device", ctypes.c_char_p),
        ("timeout_ms", ctypes.c_int64),
        ("read_only", ctypes.c_bool),
        ("has_seed", ctypes.c_bool),
        ("seed", ctypes.c_int64),
        ("no_optimization", ctypes.c_bool),
        ("no_recompute", ctypes.c_bool),
    ]


def _candidates():
    given = os.environ.get("MILLRACE_LIBRARY")
    if given:
        yield given
        return
    here = os.path.dirname(os.path.abspath(__file__))
    for directory in (here, os.path.join(here, "..", "..", "zig-out", "lib")):
        path = os.path.join(directory, "libmillrace.so.0")
        if os.path.exists(path):
            yield path
    yield "libmillrace.so.0"


def _load():
    failure = None
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            failure = failure or error
    raise ImportError(f"millrace: libmillrace.so.0 cannot be loaded ({failure}); set MILLRACE_LIBRARY to its path")


library = _load()
_void, _int, _size, _text = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t, ctypes.c_char_p
# mr_run_function
RUN_FUNCTION = ctypes.CFUNCTYPE(_int, _void, _void, _text, ctypes.POINTER(Array), _int, _int, _void)
_FUNCTIONS = {
    "mr_run_version": (_int,),
    "mr_version": (_text,),
    "mr_run_set_function": (None, RUN_FUNCTION, _void),
    "mr_run_return": (_int, _void, _int, _void, _void),
    "mr_device_open": (_int, _text, _void, _void),
    "mr_device_close": (None, _void),
    "mr_runner_new": (_int, _text, _size, _void, _void, _void),
    "mr_runner_extend": (_int, _void, _text, _size, _void),
    "mr_runner_export": (_int, _void, _void, _void),
    "mr_runner_close": (None, _void),
    "mr_runner_cancel": (None, _void),
    "mr_runner_free": (None, _void),
    "mr_runner_describe": (_int, _void, _text, _void, _void),
    "mr_runner_session_tensor": (_int, _void, _text, _void, _void),
    "mr_runner_output_count": (_int, _void, _text, _void, _void),
    "mr_runner_prepare": (_int, _void, _void, _int, _void, _int, _void, _int, _void, _void),
    "mr_runner_step_free": (None, _void),
    "mr_runner_feeds": (_void, _void),
    "mr_runner_run": (_int, _void, _void),
    "mr_runner_run_with": (_int, _void, _text, _size, _void, _void),
    "mr_runner_reset": (_int, _void, _void, _int, _void),
    "mr_runner_results": (_void, _void),
    "mr_runner_clear": (None, _void),
    "mr_runner_release": (None, _void),
}


def declare(functions):
    """Sets the types of functions of the library: {name: (type of the result, types of the arguments…)}."""
    for name, (result, *arguments) in functions.items():
        try:
            function = getattr(library, name)
        except AttributeError as error:
            raise ImportError(f"millrace: not the library of this version of the package: {error}") from None
        function.restype = result
        function.argtypes = arguments


declare(_FUNCTIONS)
if library.mr_run_version() != RUN_VERSION:
    raise ImportError(
        f"millrace: libmillrace.so has version {library.mr_run_version()} of the interface, expected {RUN_VERSION}"
    )
__version__ = library.mr_version().decode()


def failure(error):
    """The exception for a filled Error."""
    return errors.from_status(error.status, error.message.decode("utf-8", "replace"))


def check(status, error):
    if status:
        raise failure(error)


def text_array(names):
    """A char *[] of names."""
    return (ctypes.c_char_p * len(names))(*[name.encode() for name in names])
