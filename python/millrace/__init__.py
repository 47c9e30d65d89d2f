"""millrace: runs TensorFlow 1's graphs, in place of tf.compat.v1.Session.

    session = millrace.Session("model.pb")
    probabilities = session.run("softmax:0", {"images:0": images})

Nothing has to be compiled: libmillrace.so is loaded with ctypes. See Session."""
from . import errors
from ._arrays import Handle
from ._functions import register_function
from ._library import __version__
from ._metadata import RunMetadata, RunOptions
from ._session import Session

__all__ = ["Handle", "RunMetadata", "RunOptions", "Session", "__version__", "errors", "register_function"]
