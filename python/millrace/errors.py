"""Errors of runs, with the names, codes and attributes of tf.errors."""
import re as _re

from . import _tensorflow

_NODE = _re.compile(r"([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*) \(([A-Za-z0-9_>]+)\): (.*)", _re.DOTALL)


class Node:
    """The node that failed: its name, and its operator as `op`."""

    __slots__ = ("name", "op")

    def __init__(self, name, op):
        self.name = name
        self.op = op

    def __repr__(self):
        return f"Node(name={self.name!r}, op={self.op!r})"


class _Code:
    """The code of an error, and of its class."""

    def __get__(self, error, cls):
        return cls.code if error is None else error._error_code


class OpError(Exception):
    """The base of all errors of this module. If the program has imported TensorFlow, an error is also an instance of
    the class of the same name in tf.errors.

    message     the reason, followed by the node's name
    error_code  TensorFlow's code of the error
    node_def    a Node, or None if no node failed. In a session of a tf.Graph: its NodeDef
    op          in a session of a tf.Graph: the Operation that failed; otherwise None"""

    code = 2

    def __new__(cls, *arguments, **named):
        return super().__new__(_tensorflow.error_class(cls))

    def __init__(self, node_def, op, message, error_code=None):
        Exception.__init__(self, message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = self.code if error_code is None else error_code
        self._experimental_payloads = {}

    message = property(lambda self: self._message)
    error_code = _Code()
    node_def = property(lambda self: self._node_def)
    op = property(lambda self: self._op)
    node_name = property(lambda self: self._node_def.name if self._node_def is not None else None)
    operator = property(lambda self: self._node_def.op if self._node_def is not None else None)

    def __str__(self):
        return self._message

    def __reduce__(self):
        return _restored, (self.error_code, self.node_name, self.operator, self._message)


def _restored(code, node, operator, message):
    return _classes.get(code, OpError)(None if node is None else Node(node, operator), None, message)


_CODES = (
    ("Cancelled", 1, "The run was cancelled, or the session is closed."),
    ("Unknown", 2, "An error without a more specific code."),
    ("InvalidArgument", 3, "A feed, an attribute or an input of a node is invalid."),
    ("DeadlineExceeded", 4, "A deadline expired."),
    ("NotFound", 5, "A file, a key, a node or another named thing does not exist."),
    ("AlreadyExists", 6, "Something that should be created exists already."),
    ("PermissionDenied", 7, "The system denied access."),
    ("ResourceExhausted", 8, "Memory or another resource is exhausted."),
    ("FailedPrecondition", 9, "The state does not allow the operation: a variable is not initialized."),
    ("Aborted", 10, "The operation was aborted."),
    ("OutOfRange", 11, "A sequence, a file or a closed queue has ended."),
    ("Unimplemented", 12, "The operator, or this use of it, is not implemented."),
    ("Internal", 13, "An invariant of the library or of a device is broken."),
    ("Unavailable", 14, "A device or a service is unavailable."),
    ("DataLoss", 15, "Data is damaged."),
    ("Unauthenticated", 16, "Credentials are missing."),
)
_classes = {}
for _name, _code, _doc in _CODES:
    _classes[_code] = type(_name + "Error", (OpError,), {"__doc__": _doc, "__module__": __name__, "code": _code})
    globals()[_name + "Error"] = _classes[_code]
    globals()[_re.sub("(?<!^)([A-Z])", r"_\1", _name).upper()] = _code
OK = 0


def exception_type_from_error_code(error_code):
    return _classes[error_code]


def error_code_from_exception_type(cls):
    return cls.code


def from_status(code, text):
    """The exception for a status and a message of the library, "node (Operator): reason" or only a reason."""
    match = _NODE.match(text)
    node = None
    if match:
        node = Node(match[1], match[2])
        text = f"{match[3]}\n\t [[{{{{node {node.name}}}}}]]"
    return _classes.get(code, OpError)(node, None, text)




def from_code(code, text):
    """The exception for a status and a message of the library that names no node."""
    return _classes.get(code, OpError)(None, None, text)


__all__ = [name for name in globals() if not name.startswith("_")]
