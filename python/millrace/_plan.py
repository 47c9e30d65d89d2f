"""Plans: what one form of Session.run computes."""
import weakref

from . import _fetch, _tensorflow, errors
from ._step import Feed, Step


class Plan:
    """Feeds, fetches and targets, with a free list of steps, one for each concurrent run.

    A session owns its plans. They do not keep it alive, so that a session is freed when its last user drops it; what
    keeps a plan must keep the session as well."""

    __slots__ = ("session", "runner", "feeds", "chosen", "fetches", "targets", "build", "steps", "fed", "handles")

    def __init__(self, session, fetches, feed_keys):
        """feed_keys: tensors; of one that occurs twice, the last value is used."""
        names = session._names
        self.session = weakref.ref(session)
        self.runner = session._runner
        feeds = {}
        for index, key in enumerate(feed_keys):
            feed = make_feed(names, key)
            feeds[feed.name] = index, feed
        self.feeds = [feed for _, feed in feeds.values()]
        self.chosen = [index for index, _ in feeds.values()] if len(feeds) < len(feed_keys) else None
        collector = _fetch.Collector(names)
        self.build = collector.add(fetches)
        positions = {name: i for i, name in enumerate(feeds)}
        # For each fetched tensor: the index of its feed, or None. The value of a fed one is what was fed.
        fed = [positions.get(name) for name in collector.tensors]
        self.fed = fed if any(index is not None for index in fed) else None
        self.fetches = [name for name in collector.tensors if name not in feeds]
        self.targets = list(collector.operations)
        self.handles = collector.handles
        self.steps = [self._step()] if self.is_run() else []

    def _step(self):
        try:
            return Step(self.runner, self.feeds, self.fetches, self.targets)
        except errors.OpError as error:
            raise self.session()._located(error) from None

    def is_run(self):
        """Whether there is anything to compute."""
        return bool(self.fetches or self.targets)

    def run(self, values, *run):
        """run: as for Step.run."""
        if self.chosen is not None:
            values = list(values)
            values = [values[i] for i in self.chosen]
        if self.fed is None and self.fetches:
            results = self._compute(values, run)
        else:
            results = self._compute_others(values, run)
        if self.handles:
            for i, dtype in self.handles.items():
                results[i] = _tensorflow.tensor_handle(results[i], dtype, self.session())
        return self.build(results)

    def _compute(self, values, run):
        steps = self.steps
        try:
            step = steps.pop()
        except IndexError:
            step = self._step()
        try:
            return step.run(values, *run)
        except errors.OpError as error:
            raise self.session()._located(error) from None
        finally:
            steps.append(step)

    def _compute_others(self, values, run):
        """The values of all fetches, of which some are fed, or which are only operations."""
        given = list(values)
        values = [feed.checked(value) for feed, value in zip(self.feeds, given)]
        results = self._compute(values, run) if self.is_run() else []
        if self.fed is None:
            return results
        computed = iter(results)
        return [
            next(computed) if i is None else given[i].eval() if hasattr(given[i], "to_numpy_array") else values[i]
            for i in self.fed
        ]


def make_feed(names, key):
    name = names.feed(key)
    number, shape = names.runner.describe(name)
    tensor = names.tensor(name)
    text = None
    if tensor is not None:
        if not names.source.is_feedable(tensor):
            raise ValueError(f"Tensor {name} may not be fed.")
        known = tensor.get_shape()
        shape = None if known.rank is None else tuple(known.as_list())
        text = str(known)
    return Feed(names.runner, name, number, shape, key, text)
