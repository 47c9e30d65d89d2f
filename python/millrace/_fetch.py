"""Structures of fetches and feeds: names or objects with a name, in lists, tuples, named tuples, dicts and instances of
attrs classes."""
import collections
import collections.abc
import functools

from . import _tensorflow

FORM = 'Tensor names must be of the form "<op_name>:<output_index>".'


class Names:
    """The nodes of a runner by name. source: the tf.Graph of the runner, or None."""

    def __init__(self, runner, source):
        self.runner = runner
        self.source = source

    def element(self, item, operations=True):
        """The name of a tensor, "x:0", or if these are allowed of an operation, "x".

        Raises TypeError, ValueError or KeyError, as as_graph_element of tf.Graph does."""
        text = item.decode() if isinstance(item, bytes) else item
        if isinstance(text, str):
            return self._named(text, operations)
        make = getattr(item, "_as_graph_element", None)
        element = make() if make is not None else item
        name = getattr(element, "name", None)
        graph = getattr(element, "graph", None)
        if not isinstance(name, str) or (self.source is not None and graph is None):
            raise TypeError(f"Can not convert a {type(item).__name__} into a {_kinds(operations)}.")
        if self.source is not None and graph is not self.source:
            kind = "Tensor" if ":" in name else "Operation"
            raise ValueError(f"{kind} {element} is not an element of this graph.")
        if ":" not in name and not operations:
            raise TypeError(f"Can not convert a {type(item).__name__} into a {_kinds(operations)}.")
        return self._named(name, operations)

    def _named(self, name, operations):
        if ":" in name:
            return self._tensor(name)
        exists = self.runner.output_count(name) is not None
        if operations:
            if not exists:
                raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
            return name
        reason = "refers to an Operation" if exists else "looks like an (invalid) Operation name"
        raise ValueError(f"The name {name!r} {reason}, not a Tensor. {FORM}")

    def _tensor(self, name):
        node, _, digits = name.partition(":")
        try:
            index = int(digits)
        except ValueError:
            raise ValueError(f"The name {name!r} looks a like a Tensor name, but is not a valid one. {FORM}") from None
        count = self.runner.output_count(node)
        what = f"The name {name!r} refers to a Tensor which does not exist. The operation, {node!r},"
        if count is None:
            raise KeyError(f"{what} does not exist in the graph.")
        if not -count <= index < count:
            raise KeyError(f"{what} exists but only has {count} outputs.")
        return f"{node}:{index % count}"

    def fetch(self, item):
        """The name of a fetched element."""
        try:
            name = self.element(item)
        except TypeError as error:
            raise TypeError(
                f'Argument `fetch` = {item} has invalid type "{type(item).__name__}" must be a string or Tensor. '
                f"({error})"
            ) from None
        except (ValueError, KeyError) as error:
            raise ValueError(f"Argument `fetch` = {item} cannot be interpreted as a Tensor. ({error})") from None
        if self.source is not None and not self.source.is_fetchable(self._operation(name)):
            error = _tensorflow.member("framework.errors_impl", "InaccessibleTensorError") or ValueError
            raise error(
                f"Operation {name.partition(':')[0]} has been marked as not fetchable. Typically this happens when it "
                "is defined in another function or code block. Use return values, explicit Python locals or TensorFlow "
                "collections to access it."
            )
        return name

    def feed(self, key):
        """The name of a fed tensor."""
        try:
            return self.element(key, operations=False)
        except Exception as error:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None

    def _operation(self, name):
        return self.source.get_operation_by_name(name.partition(":")[0])

    def handle_dtype(self, name):
        """The dtype of the tensor that the output `name` of GetSessionHandle refers to; None for another output."""
        if self.source is None:
            return None
        operation = self._operation(name)
        is_handle = operation.type in ("GetSessionHandle", "GetSessionHandleV2")
        return operation.inputs[0].dtype if is_handle else None

    def tensor(self, name):
        """The tf.Tensor, or None."""
        return self.source.get_tensor_by_name(name) if self.source is not None else None


def _kinds(operations):
    return "Tensor or Operation" if operations else "Tensor"


# ---- Values of several tensors ----

Slices = collections.namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
Sparse = collections.namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])


def _is_sparse(item):
    """A SparseTensor or IndexedSlices of TensorFlow."""
    return hasattr(item, "indices") and hasattr(item, "values") and hasattr(item, "dense_shape")


def _parts(item):
    """(component tensors, function from their values to the value)"""
    if type(item).__name__ == "IndexedSlices":
        parts = [item.values, item.indices] + ([item.dense_shape] if item.dense_shape is not None else [])
        return parts, lambda values: Slices(values[0], values[1], values[2] if len(values) > 2 else None)
    return [item.indices, item.values, item.dense_shape], lambda values: Sparse(*values)


def _expanded(item):
    """(component tensors, function that makes the value), or None for a single tensor or operation."""
    if isinstance(item, (str, bytes)):
        return None
    for kind, fetch, *_ in _tensorflow.expansions():
        if isinstance(item, kind):
            return fetch(item)
    return _parts(item) if _is_sparse(item) else None


def feed_pairs(key, value):
    """[(tensor, its value)] of one entry of a feed_dict, in which tuples are flattened already."""
    if isinstance(key, (str, bytes)):
        return [(key, value)]
    for kind, _, feed, *_ in _tensorflow.expansions():
        if isinstance(key, kind):
            return list(feed(key, value))
    return list(zip(_parts(key)[0], value)) if _is_sparse(key) else [(key, value)]


def feed_parts(key):
    """The tensors that a key of a feed_dict stands for."""
    if isinstance(key, (str, bytes)):
        return [key]
    for kind, _, _, parts in _tensorflow.expansions():
        if isinstance(key, kind):
            return list(parts(key))
    return _parts(key)[0] if _is_sparse(key) else [key]


def is_simple(key):
    """Whether a key of a feed_dict stands for one tensor."""
    return isinstance(key, (str, bytes)) or not (_is_nested(key) or _expanded(key))


# ---- Nested keys of feed_dict ----


def _is_attrs(item):
    return hasattr(type(item), "__attrs_attrs__")


def _is_nested(item):
    return isinstance(item, (list, tuple, collections.abc.Mapping)) or _is_attrs(item)


def _attrs_values(item):
    return [getattr(item, attribute.name) for attribute in type(item).__attrs_attrs__]


def _flat(item):
    if isinstance(item, collections.abc.Mapping):
        return [leaf for key in sorted(item) for leaf in _flat(item[key])]
    if _is_attrs(item):
        item = _attrs_values(item)
    elif not isinstance(item, (list, tuple)):
        return [item]
    return [leaf for part in item for leaf in _flat(part)]


def flat_feeds(feed_dict):
    """A feed_dict whose keys that are tuples, and their values, are replaced by what they contain."""
    if not isinstance(feed_dict, collections.abc.Mapping):
        kind = type(feed_dict).__name__
        raise TypeError(
            f"FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type object, instead of '{kind}'."
        )
    flat = {}
    for key, value in feed_dict.items():
        keys, values = (_flat(key), _flat(value)) if _is_nested(key) else ([key], [value])
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had {len(values)} elements. "
                f"Key: {keys}, value: {values}."
            )
        for part, part_value in zip(keys, values):
            if part in flat:
                raise ValueError(f"Could not flatten dictionary. Key {part} is not unique.")
            flat[part] = part_value
    return flat


# ---- Fetches ----


def key_of(fetches):
    """A description of the structure, whose parts can be hashed; equal ones fetch the same."""
    if isinstance(fetches, (list, tuple)):
        return (type(fetches), *map(key_of, fetches))
    if isinstance(fetches, collections.abc.Mapping):
        return (type(fetches), tuple(fetches), *map(key_of, fetches.values()))
    if _is_attrs(fetches):
        return (type(fetches), *map(key_of, _attrs_values(fetches)))
    return fetches


class Collector:
    """Collects the names of a structure and rebuilds it from their values."""

    def __init__(self, names):
        self.names = names
        self.tensors = {}  # name -> index among the values
        self.operations = {}
        self.handles = {}  # index of a handle -> dtype of its tensor

    def add(self, fetches):
        """Returns a function from the list of values to the result."""
        if fetches is None:
            raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
        if isinstance(fetches, (list, tuple)):
            return self._sequence(fetches)
        if isinstance(fetches, collections.abc.Mapping):
            return self._mapping(fetches)
        if _is_attrs(fetches):
            cls, builders = type(fetches), [self.add(value) for value in _attrs_values(fetches)]
            return lambda values: cls(*[build(values) for build in builders])
        expanded = _expanded(fetches)
        if expanded is not None:
            parts, make = expanded
            builders = [self._element(part) for part in parts]
            return lambda values: make([build(values) for build in builders])
        return self._element(fetches)

    def _element(self, fetch):
        name = self.names.fetch(fetch)
        if ":" not in name:
            self.operations[name] = None
            return lambda values: None
        index = self.tensors.setdefault(name, len(self.tensors))
        dtype = self.names.handle_dtype(name)
        if dtype is not None:
            self.handles[index] = dtype
        return lambda values: values[index]

    def _sequence(self, fetches):
        builders = [self.add(item) for item in fetches]
        cls = type(getattr(fetches, "__wrapped__", fetches))
        if issubclass(cls, list):
            return lambda values: [build(values) for build in builders]
        if cls is tuple:
            return lambda values: tuple([build(values) for build in builders])
        return lambda values: cls(*[build(values) for build in builders])

    def _mapping(self, fetches):
        builders = {key: self.add(item) for key, item in fetches.items()}
        cls = type(fetches)
        if isinstance(fetches, collections.defaultdict):
            cls = functools.partial(collections.defaultdict, fetches.default_factory)
        return lambda values: cls((key, build(values)) for key, build in builders.items())
