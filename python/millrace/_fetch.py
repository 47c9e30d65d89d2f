"""Structures of fetches: names or objects with a name, in lists, tuples, named tuples, dicts and None-free nests."""
import collections.abc


def element_name(item):
    """The name of a tensor, "x:0", or of an operation, "x"; None if the object has none."""
    if isinstance(item, str):
        return item
    if isinstance(item, bytes):
        return item.decode()
    element = getattr(item, "_as_graph_element", None)
    if element is not None:
        item = element()
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else None


def is_sparse(item):
    """A SparseTensor or IndexedSlices of TensorFlow."""
    return hasattr(item, "indices") and hasattr(item, "values") and hasattr(item, "dense_shape")


def sparse_parts(item):
    """(component tensors, function that makes the value)"""
    kind = type(item).__name__
    if kind == "IndexedSlices":
        parts = [item.values, item.indices] + ([item.dense_shape] if item.dense_shape is not None else [])
    else:
        parts = [item.indices, item.values, item.dense_shape]
    return parts, _value_maker(item, kind)


Slices = collections.namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
Sparse = collections.namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])


def _value_maker(item, kind):
    if kind == "IndexedSlices":
        return lambda parts: Slices(parts[0], parts[1], parts[2] if len(parts) > 2 else None)
    return lambda parts: Sparse(*parts)


def key_of(fetches):
    """A hashable description of the structure; equal ones fetch the same."""
    if isinstance(fetches, str):
        return fetches
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(key_of, fetches))
    if isinstance(fetches, collections.abc.Mapping):
        return (type(fetches), tuple(fetches), *map(key_of, fetches.values()))
    if is_sparse(fetches):
        return (type(fetches), *map(key_of, sparse_parts(fetches)[0]))
    return element_name(fetches) or fetches


class Collector:
    """Collects the names of a structure and rebuilds it from their values."""

    def __init__(self):
        self.tensors = {}  # name -> index among the values
        self.operations = {}

    def add(self, fetches):
        """Returns a function from the list of values to the result."""
        if fetches is None:
            raise TypeError("Argument `fetches` = None has invalid type NoneType. Cannot be None")
        if isinstance(fetches, (list, tuple)):
            return self._sequence(fetches)
        if isinstance(fetches, collections.abc.Mapping):
            return self._mapping(fetches)
        if is_sparse(fetches):
            parts, make = sparse_parts(fetches)
            builders = [self.add(part) for part in parts]
            return lambda values: make([build(values) for build in builders])
        if hasattr(type(fetches), "__attrs_attrs__"):
            cls, builders = type(fetches), [self.add(getattr(fetches, a.name)) for a in type(fetches).__attrs_attrs__]
            return lambda values: cls(*[build(values) for build in builders])
        name = element_name(fetches)
        if name is None:
            raise TypeError(
                f"Argument `fetches` = {fetches} has invalid type {type(fetches).__name__}: must be a string or an "
                "object with a name"
            )
        if ":" not in name:
            self.operations[name] = None
            return lambda values: None
        index = self.tensors.setdefault(name, len(self.tensors))
        return lambda values: values[index]

    def _sequence(self, fetches):
        builders = [self.add(item) for item in fetches]
        cls = type(fetches)
        if hasattr(cls, "_make"):
            return lambda values: cls._make([build(values) for build in builders])
        if cls is list:
            return lambda values: [build(values) for build in builders]
        return lambda values: cls([build(values) for build in builders])

    def _mapping(self, fetches):
        builders = {key: self.add(item) for key, item in fetches.items()}
        cls = dict if type(fetches) is dict else type(fetches)
        return lambda values: cls((key, build(values)) for key, build in builders.items())
