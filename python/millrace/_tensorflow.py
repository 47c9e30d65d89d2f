"""What the process's TensorFlow offers, if the program has imported it. This package never imports TensorFlow.

With it, errors are also those of tf.errors, a session is a session for tf.train.start_queue_runners, Tensor.eval and
the like, and values are fetched and fed as its Session does."""
import contextlib
import sys

_PACKAGE = "tensorflow.python."


def member(module, name):
    """An attribute of a module of TensorFlow; None if the module is not imported."""
    return getattr(sys.modules.get(_PACKAGE + module), name, None)


_joined = {}


def joined(cls, base):
    """A class that derives from cls and from base, a class of TensorFlow; cls if base is None."""
    if base is None or issubclass(cls, base):
        return cls
    known = _joined.get((cls, base))
    if known is None:
        namespace = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__slots__": ()}
        known = _joined[cls, base] = type(cls)(cls.__name__, (cls, base), namespace)
    return known


def error_class(cls):
    """The class of an error: cls of this package, and the class of that name in tf.errors."""
    return joined(cls, member("framework.errors_impl", cls.__name__))


def expansions():
    """Of session.register_session_run_conversion_functions: (type, fetch function, feed function, …), in order."""
    registered = member("client.session", "_REGISTERED_EXPANSIONS") or ()
    return [entry for entry in registered if entry[0] is not object]


def default_session(session):
    """A context manager that makes the session that of Tensor.eval and Operation.run."""
    context = member("framework.stack", "default_session") or member("framework.ops", "default_session")
    return context(session) if context is not None else contextlib.nullcontext(session)


def interpolated(message, graph):
    """A message with the place in the program where its node was created."""
    interpolate = member("framework.error_interpolation", "interpolate_graph")
    if interpolate is None:
        return message
    try:
        return interpolate(message, graph)
    except Exception:  # what it needs differs between versions of TensorFlow
        return message


def tensor_handle(value, dtype, session):
    """The tf.TensorHandle of a fetched handle."""
    return member("ops.session_ops", "TensorHandle")(value, dtype, session)
