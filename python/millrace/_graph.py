"""Where graphs come from: bytes, files, directories, objects of TensorFlow. The content tells messages apart."""
import os
import re

from . import _proto

_OPERATOR = re.compile(rb"[A-Z_][A-Za-z0-9_>]*")


class Loaded:
    """graph_def  bytes
    meta       a Meta, or None
    directory  of the SavedModel, or None
    source     the object whose later nodes are added, or None; version and count: its version and its nodes now"""

    def __init__(self, graph_def, meta=None, directory=None, source=None, version=None, count=0):
        self.graph_def = graph_def
        self.meta = meta
        self.directory = directory
        self.source = source
        self.version = version
        self.count = count


class Meta:
    """What a MetaGraphDef contains besides its graph."""

    def __init__(self, data):
        self.graph_def = _proto.concatenated(data, 2)
        self.tags = set(_proto.texts(_proto.concatenated(data, 1), 4))
        saver = _proto.concatenated(data, 3)
        self.saver = [_proto.text(_proto.last(saver, number)) for number in (1, 3)] if saver else None
        self.collections = _proto.entries(data, 4)
        self.signatures = {key: _signature(value) for key, value in _proto.entries(data, 5).items()}
        self.assets = _proto.every(data, 6)

    def names(self, collection):
        """The names of tensors and operations in a collection."""
        return _proto.texts(_proto.concatenated(self.collections.get(collection, b""), 1), 1)

    def messages(self, collection):
        """The serialized messages in a collection."""
        data = self.collections.get(collection, b"")
        anys = _proto.every(_proto.concatenated(data, 5), 1)
        return _proto.every(_proto.concatenated(data, 2), 1) + [_proto.last(any_, 2) for any_ in anys]


def _signature(data):
    """{"inputs": {name: tensor}, "outputs": …}"""
    result = {}
    for kind, number in (("inputs", 1), ("outputs", 2)):
        tensors = {key: _proto.last(info, 1) for key, info in _proto.entries(data, number).items()}
        result[kind] = {key: _proto.text(name) for key, name in tensors.items() if name}
    return result


def serialized(graph_def):
    if isinstance(graph_def, (bytes, bytearray, memoryview)):
        if not len(graph_def):
            raise ValueError("graph without nodes (0 bytes)")
        return bytes(graph_def)
    if hasattr(graph_def, "SerializeToString"):
        return graph_def.SerializeToString()
    raise TypeError(f"expected the bytes of a GraphDef, or a GraphDef, not {type(graph_def).__name__}")


def _kind(data):
    """"graph", "meta" or "saved". The fields of these messages have the same numbers and other types."""
    kinds = {}
    for number, value in _proto.fields(data):
        if number == 1 and isinstance(value, int):
            return "saved"
        if number == 1:
            operator = _proto.last(value, 2)
            if not isinstance(operator, int) and _OPERATOR.fullmatch(bytes(operator)):
                return "graph"
        kinds[number] = type(value)
    is_meta = 2 in kinds and (kinds.keys() & {1, 5, 6, 7} or kinds.get(3) is memoryview)
    return "meta" if is_meta else "graph"


def _meta_of(data, tags):
    metas = [Meta(value) for value in _proto.every(data, 2)]
    if tags is None:
        if len(metas) != 1:
            raise ValueError(
                f"the SavedModel contains {len(metas)} graphs; select one by its tags: "
                f"{[sorted(m.tags) for m in metas]}"
            )
        return metas[0]
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for meta in metas:
        if meta.tags == wanted:
            return meta
    raise RuntimeError(
        f"MetaGraphDef associated with tags {sorted(wanted)} could not be found in SavedModel, which has "
        f"{[sorted(m.tags) for m in metas]}"
    )


def _from_bytes(data, tags, directory):
    kind = _kind(data)
    if tags is not None and kind != "saved":
        raise ValueError("tags: only a SavedModel has graphs with tags")
    if kind == "graph":
        return Loaded(data)
    meta = _meta_of(data, tags) if kind == "saved" else Meta(data)
    return Loaded(meta.graph_def, meta=meta, directory=directory)


def load(graph, tags=None):
    """graph and tags as in Session."""
    if hasattr(graph, "as_graph_def"):
        version = getattr(graph, "version", None)
        graph_def = graph.as_graph_def()
        return Loaded(
            graph_def.SerializeToString(),
            source=graph if version is not None else None,
            version=version,
            count=len(graph_def.node),
        )
    directory = None
    if isinstance(graph, (str, os.PathLike)):
        path = os.fspath(graph)
        if os.path.isdir(path):
            path = os.path.join(path, "saved_model.pb")
        directory = os.path.dirname(path)
        with open(path, "rb") as file:
            data = file.read()
        try:
            return _from_bytes(data, tags, directory)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return _from_bytes(serialized(graph), tags, directory)


def restore(session, loaded):
    """Restores the variables of a SavedModel and runs its initialization, as tf.saved_model.load does."""
    meta, directory = loaded.meta, loaded.directory
    if meta is None or directory is None:
        raise ValueError("tags: the variables of a SavedModel are restored from its directory, which is not known")
    feeds = _asset_feeds(meta, directory)
    prefix = os.path.join(directory, "variables", "variables")
    if meta.saver and os.path.exists(prefix + ".index"):
        filename, restore_op = meta.saver
        session.run(restore_op, {**feeds, filename: prefix})
    init = meta.names("saved_model_main_op") or meta.names("legacy_init_op")
    init += meta.signatures.get("__saved_model_init_op", {}).get("outputs", {}).values()
    for name in init:
        session.run(name.partition(":")[0], feeds)


def _asset_feeds(meta, directory):
    """{name of a tensor: path} of each asset"""
    feeds = {}
    for asset in meta.assets + meta.messages("saved_model_assets"):
        tensor = _proto.text(_proto.last(_proto.concatenated(asset, 1), 1))
        feeds[tensor] = os.path.join(directory, "assets", _proto.text(_proto.last(asset, 2)))
    return feeds
