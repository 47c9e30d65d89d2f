"""Partial runs: one run whose feeds and fetches come in several calls.

Each call runs what its fetches need and no earlier call has run. Values that later calls can use are kept."""
from . import _fetch, _proto, errors

# Running these again has no effect, and their values are not copied.
_REPEATED = {"Const", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "Variable", "VariableV2", "VarHandleOp"}


class Graph:
    """The edges of a serialized GraphDef."""

    def __init__(self, graph_def):
        self.operators = {}
        self.inputs = {}
        self.controls = {}
        for node in _proto.every(graph_def, 1):
            name = _proto.text(_proto.last(node, 1))
            inputs = _proto.texts(node, 3)
            self.operators[name] = _proto.text(_proto.last(node, 2))
            self.inputs[name] = [i if ":" in i else i + ":0" for i in inputs if not i.startswith("^")]
            self.controls[name] = [i[1:] for i in inputs if i.startswith("^")]

    def needed(self, names, available):
        """The nodes that the tensors and operations need, without those behind available tensors."""
        seen = set()
        stack = [name for name in names if name not in available]
        while stack:
            node = stack.pop().partition(":")[0]
            if node in seen:
                continue
            seen.add(node)
            stack += [i for i in self.inputs[node] if i not in available]
            stack += self.controls[node]
        return seen


class Partial:
    """The state between the calls; the handle that partial_run_setup returns."""

    def __init__(self, session, graph, fetches, feeds):
        self.session = session
        self.graph = graph
        self.unfetched = set(fetches)
        self.unfed = set(feeds)
        self.values = {}  # tensors that are fed or computed
        self.done = set()
        self.needed = graph.needed(fetches, set(feeds))

    def run(self, fetches, feed_dict):
        collector = _fetch.Collector()
        build = collector.add(fetches)
        wanted = list(collector.tensors) + list(collector.operations)
        feeds = {_fetch.element_name(key): value for key, value in (feed_dict or {}).items()}
        self._check(wanted, feeds)
        values = {**self.values, **feeds}
        run = self.graph.needed(wanted, values.keys())
        for node in run & self.done:
            if self.graph.operators[node] not in _REPEATED:
                raise errors.UnimplementedError(
                    None, None, f"partial_run: an earlier part has run {node}, and this one would run it again"
                )
        kept = self._outputs_used_later(run, values)
        tensors = [name for name in collector.tensors if name not in values]
        results = self.session.run(
            {"kept": {name: name for name in [*kept, *tensors]}, "run": list(collector.operations)}, values
        )["kept"]
        self.done |= run
        self.unfed -= feeds.keys()
        self.unfetched -= set(wanted)
        values.update(results)
        self.values = values
        return build([values[name] for name in collector.tensors])

    def _check(self, wanted, feeds):
        for name in feeds:
            if name not in self.unfed:
                raise errors.InvalidArgumentError(
                    None, None, f"The feed {name} was not specified in partial_run_setup, or has already been fed."
                )
        for name in wanted:
            if name not in self.unfetched:
                raise errors.InvalidArgumentError(
                    None, None, f"The fetch {name} was not specified in partial_run_setup, or has already been fetched."
                )

    def _outputs_used_later(self, run, values):
        later = self.needed - run - self.done
        used = {i for node in later for i in self.graph.inputs[node]}
        used |= {name for name in self.unfetched if ":" in name}
        return sorted(
            name
            for name in used
            if name not in values
            and name.partition(":")[0] in run
            and self.graph.operators[name.partition(":")[0]] not in _REPEATED
        )
