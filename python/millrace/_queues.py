"""Queue runners: threads that run the enqueue operations of a graph, as tf.train.start_queue_runners starts them."""
import threading

from . import _proto, errors


class Runner:
    """enqueue_ops  names of operations, one for each thread
    close_op, cancel_op  names, or None
    closed_errors  which errors mean that the queue, or its input, has ended"""

    def __init__(self, enqueue_ops, close_op, cancel_op, closed_errors):
        self.enqueue_ops = enqueue_ops
        self.close_op = close_op
        self.cancel_op = cancel_op
        self.closed_errors = closed_errors
        self.running = 0


def from_proto(data):
    """Of a serialized QueueRunnerDef."""
    codes = []
    for value in _proto.every(data, 5):  # packed or not
        codes += [value] if isinstance(value, int) else list(value)
    classes = tuple(errors.exception_type_from_error_code(code) for code in codes) or (errors.OutOfRangeError,)
    close, cancel = (_proto.text(_proto.last(data, number)) or None for number in (3, 4))
    return Runner(_proto.texts(data, 2), close, cancel, classes)


def from_object(runner):
    """Of a tf.train.QueueRunner."""
    classes = tuple(getattr(errors, cls.__name__) for cls in runner.queue_closed_exception_types)

    def name(op):
        return getattr(op, "name", op)

    return Runner([name(op) for op in runner.enqueue_ops], name(runner.close_op), name(runner.cancel_op), classes)


class Threads:
    """The threads of a session's queue runners."""

    def __init__(self, session, runners):
        self.session = session
        self.runners = runners
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.failure = None
        self.threads = []

    def start(self):
        for runner in self.runners:
            runner.running += len(runner.enqueue_ops)
        for runner in self.runners:
            for op in runner.enqueue_ops:
                thread = threading.Thread(
                    target=self._produce, args=(runner, op), name=f"QueueRunnerThread-{op}", daemon=True
                )
                self.threads.append(thread)
                thread.start()

    def _produce(self, runner, op):
        try:
            enqueue = self.session.make_callable(op)
            while not self.stopping.is_set():
                enqueue()
        except (*runner.closed_errors, errors.CancelledError):
            self._end(runner)
            return
        except Exception as error:
            with self.lock:
                self.failure = self.failure or error
            self.abandon()
        with self.lock:
            runner.running -= 1

    def _end(self, runner):
        """The last thread of a runner closes the queue, so that its readers see the end."""
        with self.lock:
            runner.running -= 1
            is_last = runner.running == 0
        if is_last and runner.close_op and not self.stopping.is_set():
            self._run_quietly(runner.close_op)

    def _run_quietly(self, op):
        try:
            self.session.run(op)
        except (errors.OpError, RuntimeError):
            pass  # the queue, or the session, is closed already

    def abandon(self):
        """Cancels what the threads wait for."""
        self.stopping.set()
        for runner in self.runners:
            if runner.cancel_op:
                self._run_quietly(runner.cancel_op)

    def stop(self):
        """Cancels what the threads wait for, joins them, and raises the first error that was not the end of a queue."""
        self.abandon()
        for thread in self.threads:
            thread.join()
        self.threads = []
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
