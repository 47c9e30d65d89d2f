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


def setup(session, fetches, feeds):
    """A Partial with the arguments of Session.partial_run_setup."""
    names = session._names
    feeds = [] if feeds is None else feeds if isinstance(feeds, (list, tuple)) else [feeds]
    fed = [names.feed(part) for key in feeds for part in _fetch.feed_parts(key)]
    collector = _fetch.Collector(names)
    collector.add(fetches)
    wanted = [*collector.tensors, *collector.operations]
    for name in wanted:
        if name in fed:
            raise _invalid(session, f"{name} is both fed and fetched.")
    if not wanted:
        raise _invalid(session, "Must specify at least one target to fetch or execute.")
    return Partial(session, Graph(session._runner.graph_def()), wanted, fed)


def _invalid(session, text):
    return session._located(errors.InvalidArgumentError(None, None, text))


def not_set_up(session):
    return _invalid(session, "Must run 'setup' before performing partial runs!")


class Partial:
    """The state between the calls; the handle that partial_run_setup returns."""

    def __init__(self, session, graph, fetches, feeds):
        self.session = session
        self.graph = graph
        self.fetches = set(fetches)
        self.feeds = set(feeds)
        self.unfetched = set(fetches)
        self.unfed = set(feeds)
        self.values = {}  # tensors that are fed or computed
        self.done = set()
        self.needed = graph.needed(fetches, set(feeds))

    def run(self, fetches, feed_dict):
        names = self.session._names
        collector = _fetch.Collector(names)
        build = collector.add(fetches)
        wanted = list(collector.tensors)
        feeds = {}
        for key, value in _fetch.flat_feeds(feed_dict or {}).items():
            feeds.update((names.feed(part), v) for part, v in _fetch.feed_pairs(key, value))
        if collector.operations:
            operations = list(collector.operations)
            raise RuntimeError(
                f"partial_run() requires empty `target_list`. Received: target_list={operations} (non-empty)"
            )
        self._check(wanted, feeds)
        values = {**self.values, **feeds}
        self._check_fed(wanted, values)
        run = self.graph.needed(wanted, values.keys())
        for node in run & self.done:
            if self.graph.operators[node] not in _REPEATED:
                raise errors.UnimplementedError(
                    None, None, f"partial_run: an earlier part has run {node}, and this one would run it again"
                )
        kept = self._outputs_used_later(run, values)
        tensors = [name for name in wanted if name not in values]
        results = self.session.run({name: name for name in [*kept, *tensors]}, values)
        self.done |= run
        self.unfed -= feeds.keys()
        self.unfetched -= set(wanted)
        values.update(results)
        self.values = values
        return build([values[name] for name in wanted])

    def _check(self, wanted, feeds):
        if not self.unfetched and not self.unfed:
            raise not_set_up(self.session)
        for kind, names, known, left in (
            ("feed", feeds, self.feeds, self.unfed),
            ("fetch", wanted, self.fetches, self.unfetched),
        ):
            for name in names:
                if name not in known:
                    raise _invalid(self.session, f"The {kind} {name} was not specified in partial_run_setup.")
                if name not in left:
                    done = "fed" if kind == "feed" else "fetched"
                    raise _invalid(self.session, f"The {kind} {name} has already been {done}.")

    def _check_fed(self, wanted, values):
        """That what is wanted depends on no feed that is still to come."""
        missing = self.unfed - values.keys()
        seen = set()
        stack = list(wanted)
        while stack:
            node = stack.pop().partition(":")[0]
            if node in seen:
                continue
            seen.add(node)
            for name in self.graph.inputs[node]:
                if name in missing:
                    text = f"Fetch {name} can't be computed from the feeds that have been fed so far."
                    raise _invalid(self.session, text)
                if name not in values:
                    stack.append(name)
            stack += self.graph.controls[node]

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
