"""The same calls of TensorFlow's Session and of millrace's, and what each of them returns or raises."""
import re

import numpy as np
from support import millrace, tf

ERRORS = (tf.errors.OpError, millrace.errors.OpError)


def described(value):
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tolist(), value.flags.writeable
    if isinstance(value, np.generic):
        return type(value).__name__, repr(value.tolist())
    if isinstance(value, dict):
        return type(value).__name__, [(key, described(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(item) for item in value]
    if hasattr(type(value), "__attrs_attrs__"):
        return type(value).__name__, [described(getattr(value, a.name)) for a in type(value).__attrs_attrs__]
    return type(value).__name__, re.sub("0x[0-9a-f]+", "0x", repr(value))


def outcome(call):
    """The result of a call, or its error: the class, the message, and of errors of a run also code, node and op."""
    try:
        return "value", described(call())
    except Exception as error:
        text = error.message if isinstance(error, ERRORS) else str(error)
        # TensorFlow adds where the node was created, which is the same line for both.
        text = re.sub("0x[0-9a-f]+", "0x", text)
        attributes = (error.error_code, error.op and error.op.name) if isinstance(error, ERRORS) else ()
        return "error", type(error).__name__, text, *attributes


def compare(test, build, calls, config=None):
    """Requires that both sessions behave in the same way.

    build  adds nodes to a new graph and returns them
    calls  a function of a session and of what build returned, which yields functions to call"""
    outcomes = []
    for create in (lambda graph: tf.Session(graph=graph, config=config), lambda graph: millrace.Session(graph, config)):
        with tf.Graph().as_default() as graph:
            nodes = build()
            session = create(graph)
            outcomes.append([outcome(call) for call in calls(session, *nodes)])
            session.close()
    test.assertEqual(len(outcomes[0]), len(outcomes[1]))
    for i, (expected, found) in enumerate(zip(*outcomes)):
        with test.subTest(call=i):
            test.assertEqual(expected, found)
