"""Errors of runs, with the names, codes and attributes of tf.errors."""
import re as _re

_NODE = _re.compile(r"([A-Za-z0-9.][A-Za-z0-9_.\\/>-]*) \(([A-Za-z0-9_>]+)\): (.*)", _re.DOTALL)


class Node:
    """The node that failed: its name, and its operator as `op`."""

    __slots__ = ("name", "op")

    def __init__(self, name, op):
        self.name = name
        self.op = op

    def __repr__(self):
        return f"Node(name={self.name!r}, op={self.op!r})"


class OpError(Exception):
    """The base of all errors of this module.

    message     the reason, followed by the node's name
    error_code  TensorFlow's code of the error
    node_def    a Node, or None if no node failed"""

    error_code = 2

    def __init__(self, node_def, op, message, error_code=None):
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message
        if error_code is not None:
            self.error_code = error_code

    @property
    def node_name(self):
        return self.node_def.name if self.node_def is not None else None

    @property
    def operator(self):
        return self.node_def.op if self.node_def is not None else None

    def __str__(self):
        return self.message

    def __reduce__(self):
        return type(self), (self.node_def, None, self.message)


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
    _classes[_code] = type(_name + "Error", (OpError,), {"__doc__": _doc, "__module__": __name__, "error_code": _code})
    globals()[_name + "Error"] = _classes[_code]
    globals()[_re.sub("(?<!^)([A-Z])", r"_\1", _name).upper()] = _code
OK = 0


def exception_type_from_error_code(error_code):
    return _classes[error_code]


def error_code_from_exception_type(cls):
    return cls.error_code


def from_status(code, text):
    """The exception for a status and a message of the library, "node (Operator): reason" or only a reason."""
    match = _NODE.match(text)
    node = None
    if match:
        node = Node(match[1], match[2])
        text = f"{match[3]}\n\t [[{{{{node {node.name}}}}}]]"
    return _classes.get(code, OpError)(node, None, text)


__all__ = [name for name in globals() if not name.startswith("_")]
