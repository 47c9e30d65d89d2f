"""Queues: seeded sequences of operations on TensorFlow 1's four kinds of queue and on millrace's produce the same
elements, sizes and errors. The elements of a shuffling queue are compared as a multiset. MILLRACE_QUEUE_SEQUENCES sets
the number of sequences of each kind, MILLRACE_TEST_SEED the first seed."""

import os
import random
import subprocess
import sys
import threading
from collections import Counter

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "queue_run")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
COUNT = int(os.environ.get("MILLRACE_QUEUE_SEQUENCES", "40"))
KINDS = ["fifo", "shuffle", "padding", "priority"]


# ---- Components as text: i2,3=1,2,3,4,5,6 ----


def text_of(array):
    array = np.asarray(array)
    letter = "i" if array.dtype == np.int64 else "s"
    words = [w.decode() if isinstance(w, bytes) else str(w) for w in array.ravel()]
    return letter + ",".join(map(str, array.shape)) + ("=" + ",".join(words) if words else "")


def shape_of(text):
    if text == "?":
        return None
    return [None if d == "-1" else int(d) for d in text.split(",") if d]


def array_of(text):
    head, _, values = text.partition("=")
    dims = shape_of(head[1:])
    words = values.split(",") if values else []
    if head[0] == "i":
        return np.array([int(w) for w in words], np.int64).reshape(dims)
    return np.array([w.encode() for w in words], object).reshape(dims)


# ---- The same lines in TensorFlow ----


class Run:
    """Runs the lines of one sequence in a session."""

    def __init__(self, line):
        words = line.split()
        kind, capacity, least, specs = words[1], int(words[2]), int(words[3]), words[4:]
        dtypes = [tf.int64 if s[0] == "i" else tf.string for s in specs]
        shapes = [shape_of(s[1:]) for s in specs]
        self.graph = tf.Graph()
        with self.graph.as_default():
            given = None if any(s is None for s in shapes) else shapes
            if kind == "fifo":
                self.queue = tf.FIFOQueue(capacity, dtypes, given)
            elif kind == "shuffle":
                self.queue = tf.RandomShuffleQueue(capacity, least, dtypes, given, seed=7)
            elif kind == "padding":
                self.queue = tf.PaddingFIFOQueue(capacity, dtypes, shapes)
            else:
                self.queue = tf.PriorityQueue(capacity, dtypes[1:], shapes[1:])
            self.holes = [tf.placeholder(d) for d in dtypes]
            self.count = tf.placeholder(tf.int32, [])
            ref, self.op = self.queue.queue_ref, {}
            raw = tf.raw_ops
            self.op["enqueue"] = raw.QueueEnqueueV2(handle=ref, components=self.holes)
            self.op["enqueue_many"] = raw.QueueEnqueueManyV2(handle=ref, components=self.holes)
            self.op["dequeue"] = raw.QueueDequeueV2(handle=ref, component_types=dtypes)
            self.op["dequeue_many"] = raw.QueueDequeueManyV2(handle=ref, n=self.count, component_types=dtypes)
            self.op["dequeue_up_to"] = raw.QueueDequeueUpToV2(handle=ref, n=self.count, component_types=dtypes)
            self.op["close"] = [self.queue.close(), self.queue.close(cancel_pending_enqueues=True)]
            self.op["size"], self.op["closed"] = self.queue.size(), self.queue.is_closed()
        self.session = tf.Session(graph=self.graph)
        self.session.run(self.op["size"])

    def operate(self, line):
        word, *rest = line.split()
        op, feed = self.op[word], {}
        if word == "close":
            op = op[int(rest[0])]
        elif word.startswith("enqueue"):
            feed = dict(zip(self.holes, map(array_of, rest)))
        elif rest:
            feed = {self.count: int(rest[0])}
        try:
            result = self.session.run(op, feed)
        except tf.errors.OpError as e:
            return {tf.errors.CANCELLED: "CANCELLED", tf.errors.OUT_OF_RANGE: "OUT_OF_RANGE",
                    tf.errors.INVALID_ARGUMENT: "INVALID_ARGUMENT"}.get(e.error_code, str(e))
        if word.startswith("dequeue"):
            return " ".join(map(text_of, result))
        return "OK" if result is None else str(int(result))

    def lines(self, lines):
        results, pending, thread, closing = [], [], None, None
        for line in lines:
            if line.startswith("start "):
                thread = threading.Thread(target=lambda text=line[6:]: pending.append(self.operate(text)))
                thread.start()
            elif line.startswith("settle "):
                while self.session.run(self.op["size"]) != int(line[7:]):
                    pass
            elif line == "join":
                thread.join()
                thread = closing.join() if closing else None
                results.append(pending.pop())
            elif line == "close 0" and thread:
                # close waits for the pending enqueue, and so do later lines, until the join.
                closing = threading.Thread(target=self.operate, args=[line])
                closing.start()
                results.append("OK")
            else:
                results.append(self.operate(line))
        self.session.close()
        return results


# ---- Sequences: a small model prevents waits that nothing would end ----


class Sequence:
    def __init__(self, kind, seed):
        self.random, self.kind, self.next = random.Random(f"{kind} {seed}"), kind, 0
        r = self.random
        self.capacity = r.choice([-1, 1, 2, 3, 5, 8, 8, 15, 16, 17, 32, 33])
        self.least = 0
        if kind == "shuffle":
            self.least = (
                r.choice([0, 1, 2, self.capacity - 1])
                if self.capacity > 3
                else r.randrange(max(1, min(3, self.capacity)))
            )
        self.specs = {
            "fifo": [["i"], ["i2", "s"], ["i", "s2,1"], ["i?"]],
            "shuffle": [["i"], ["i", "s2"], ["i?"]],
            "padding": [["i-1"], ["i", "s-1,2"], ["i-1,-1", "s"], ["i2"]],
            "priority": [["i", "i"], ["i", "s2"]],
        }[kind]
        self.specs = r.choice(self.specs)
        self.size, self.closed = 0, False
        self.lines = [f"queue {kind} {self.capacity} {self.least} {' '.join(self.specs)}"]
        for _ in range(r.randrange(8, 40)):
            self.step()
        self.lines += ["close 1", "closed", "size"]
        if "i?" not in self.specs and kind != "priority":
            self.lines += ["dequeue_up_to 2", "dequeue_up_to 99"]
        self.lines += ["dequeue"] * (self.size + 1) + ["size"]

    def component(self, spec, rows, index):
        """One component as text. rows: None for a single element."""
        r = self.random
        dims = shape_of(spec[1:]) if spec[1:] != "?" else [2] * (self.next % 2)
        each = []
        for row in range(rows or 1):
            # TensorFlow crashes on rows without elements.
            sizes = [r.randrange(rows is not None, 4) if d is None else d for d in dims]
            if each and (rows is not None):
                sizes = list(each[0].shape)
            n = int(np.prod(sizes)) if sizes else 1
            first = self.next + row
            if self.kind == "priority" and index == 0:  # distinct keys: only millrace defines the order of equal ones
                first += 1000 * r.randrange(-5, 5)
            values = [first + 100 * j for j in range(n)]
            each.append(
                np.array(
                    values if spec[0] == "i" else [b"%d" % v for v in values], np.int64 if spec[0] == "i" else object
                ).reshape(sizes)
            )
        if rows is None:
            array = each[0]
        elif rows > 0:
            array = np.stack(each)
        else:
            array = np.zeros([0] + [d or 0 for d in dims], np.int64 if spec[0] == "i" else object)
        return text_of(array)

    def element(self, rows=None):
        text = " ".join(self.component(s, rows, i) for i, s in enumerate(self.specs))
        self.next += rows or 1
        return text

    def wrong(self):
        """An element that does not match the queue's specification."""
        spec = self.specs[-1]
        return " ".join([self.component(s, None, i) for i, s in enumerate(self.specs[:-1])] + [spec[0] + "1,1,1,1=5"])

    def free(self):
        return 10**6 if self.capacity < 0 else self.capacity - self.size

    def step(self):
        r, add = self.random, self.lines.append
        many = "i?" not in self.specs
        kind = r.randrange(12)
        if kind <= 2 and (self.closed or self.free() > 0):
            add("enqueue " + self.element())
            self.size += not self.closed
        elif kind == 3:
            rows = r.choice([0, 1, 2, 3, min(self.free(), 40)])
            if self.closed or rows <= self.free():
                add("enqueue_many " + self.element(rows))
                self.size += 0 if self.closed else rows
        elif kind <= 5 and (self.closed or self.size > self.least):
            add("dequeue")
            self.size -= self.size > 0
        elif kind <= 7:
            n = r.choice([0, 1, 2, 3, 4, 16, 33, max(0, self.size - 1), self.size, self.size + 1])
            up_to = kind == 7
            if not many:
                add(f"dequeue_{'up_to' if up_to else 'many'} {n}")
            elif self.closed and self.kind == "priority" and up_to and n > self.size:
                pass  # TensorFlow returns an error and loses the elements
            elif self.closed or self.size - n >= self.least or n == 0:
                add(f"dequeue_{'up_to' if up_to else 'many'} {n}")
                self.size -= n if self.size >= n else self.size if up_to and self.kind != "priority" else 0
        elif kind == 8 and many:
            add("enqueue " + self.wrong())
        elif kind == 9 and not self.closed and many:
            self.waiting_dequeue()
        elif kind == 10 and not self.closed and self.capacity > 0 and self.free() > 0:
            self.waiting_enqueue()
        elif kind == 11 and r.randrange(6) == 0:
            add(f"close {r.randrange(2)}")
            self.closed = True
        add("size")
        if r.randrange(4) == 0:
            add("closed")

    def waiting_dequeue(self):
        """Requests more elements than are available or fit, so that the operation waits after it has taken some."""
        r, add, have = self.random, self.lines.append, self.size - self.least
        if have < 1:
            return
        more, up_to = r.choice([1, 2, 3, self.capacity + 1, 2 * self.capacity + 1, 17, 40]), r.randrange(2)
        more = max(1, more)
        if self.kind == "priority":  # takes all or nothing: waits indefinitely above the capacity
            more, up_to = 10**6 if self.capacity < 0 else self.capacity - have, 0
            if more < 1:
                return
            more = r.randrange(1, min(more, 20) + 1)
        n, come = have + more, min(more, r.choice([0, 1, more - 1, more]))
        add(f"start dequeue_{'up_to' if up_to else 'many'} {n}")
        add(f"settle {have if self.kind == 'priority' else self.least}")
        for _ in range(come):
            add("enqueue " + self.element())
        self.size += come
        if come < more:
            add(f"close {r.randrange(2)}")
            self.closed = True
        if come == more or self.size >= n:
            self.size -= n
        elif up_to:
            self.size = 0
        add("join")

    def waiting_enqueue(self):
        """Enqueues more rows than fit."""
        r, add, many = self.random, self.lines.append, "i?" not in self.specs
        more = r.choice([1, 2, self.capacity, self.capacity + 1])
        how = r.randrange(3)
        add("start enqueue_many " + self.element(self.free() + more))
        add(f"settle {self.capacity}")
        if how > 0:
            add(f"close {how - 1}")
            self.closed = True
        self.size = self.capacity
        if how < 2 and many and self.least == 0 and self.kind != "priority" and r.randrange(2) == 0:
            add(f"dequeue_many {self.capacity + more}")
            self.size = 0
        elif how < 2:
            for _ in range(more):
                add("dequeue")
        add("join")


# ---- The comparison ----


def elements_of(result):
    """Arrays of a result whose order a shuffling queue may change: rows of the first component, or complete tuples."""
    return [array_of(part) for part in result.split(" ")]


def is_error(result):
    return result in ("OK", "CANCELLED", "OUT_OF_RANGE", "INVALID_ARGUMENT") or result.lstrip("-").isdigit()


def compare(lines, ours, theirs):
    kind = lines[0].split()[1]
    started = "".join(l[6:] + "\n" for l in lines if l.startswith("start")).splitlines()
    shown = [started.pop(0) if l == "join" else l for l in lines[1:] if not l.startswith(("start", "settle"))]
    # Closing a queue twice is an error in TensorFlow and allowed in millrace.
    theirs = ["OK" if l.startswith("close ") else t for l, t in zip(shown, theirs)]
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    if kind != "shuffle":
        wrong = [(l, a, b) for l, a, b in zip(shown, ours, theirs) if a != b]
        return f"{wrong[0][0]}: {wrong[0][1]}, not {wrong[0][2]}" if wrong else None
    given = [Counter(), Counter()]
    for line, *both in zip(shown, ours, theirs):
        if is_error(both[0]) or is_error(both[1]):
            if both[0] != both[1]:
                return f"{line}: {both[0]}, not {both[1]}"
            continue
        found = [elements_of(b) for b in both]
        if "?" not in lines[0] and [a.shape for a in found[0]] != [a.shape for a in found[1]]:
            return f"{line}: {both[0]}, not {both[1]} in another order"
        for counter, parts in zip(given, found):
            parts = [p[None] for p in parts] if line in ("dequeue",) else parts
            counter.update(tuple(tuple(p[i].ravel()) for p in parts) for i in range(len(parts[0])))
    return None if given[0] == given[1] else f"gave {given[0] - given[1]} where TensorFlow gave {given[1] - given[0]}"


def ours_of(lines):
    text = subprocess.run(
        [PROGRAM], input="\n".join(lines) + "\n", check=True, capture_output=True, text=True, timeout=60
    ).stdout
    return text.splitlines()[1:]


def check(name, lines):
    theirs = Run(lines[0]).lines(lines[1:])
    try:
        wrong = compare(lines, ours_of(lines), theirs)
    except subprocess.TimeoutExpired:
        wrong = "hangs"
    if wrong is None:
        return True
    print(f"FAILED {name}: {wrong}")
    print("    " + "\n    ".join(lines))
    return False


# Sequences that the random generator does not produce.
NAMED = {
    "capacity 0": ["queue fifo 0 0 i", "start enqueue i=1", "close 1", "join", "size", "dequeue"],
    "closed at once": [
        "queue fifo 5 0 i",
        "close 0",
        "enqueue i=1",
        "enqueue_many i2=1,2",
        "enqueue_many i0",
        "dequeue",
        "dequeue_many 1",
        "dequeue_many 0",
        "dequeue_up_to 1",
        "dequeue_up_to 0",
        "close 0",
        "close 1",
        "closed",
    ],
    "none at a time": [
        "queue fifo 5 0 i s2",
        "dequeue_many 0",
        "dequeue_up_to 0",
        "enqueue i=1 s2=a,b",
        "dequeue_many 0",
        "size",
    ],
    "fewer than none": ["queue fifo 5 0 i", "enqueue i=1", "dequeue_many -1", "dequeue_up_to -1", "size"],
    "rows that differ": ["queue fifo 5 0 i i", "enqueue_many i2=1,2 i3=1,2,3", "size"],
    "no rows": ["queue fifo 5 0 i", "enqueue_many i=1", "size"],
    "more than fits": [
        "queue fifo 2 0 i",
        "start enqueue_many i5=1,2,3,4,5",
        "settle 2",
        "dequeue_many 4",
        "dequeue",
        "join",
        "size",
    ],
    "many at a time of more than fit": [
        "queue fifo 2 0 i",
        "enqueue i=1",
        "start dequeue_many 5",
        "settle 0",
        "enqueue_many i4=2,3,4,5",
        "join",
        "size",
    ],
    "a rank that differs": [
        "queue padding 5 0 i-1",
        "enqueue i=1",
        "enqueue i1,1=1",
        "enqueue i2=1,2",
        "enqueue i0",
        "dequeue_many 2",
        "size",
    ],
    "a size that differs": [
        "queue padding 5 0 i-1,2",
        "enqueue i1,3=1,2,3",
        "enqueue i2,2=1,2,3,4",
        "enqueue i1,2=5,6",
        "dequeue_up_to 2",
        "size",
    ],
    "padded strings": ["queue padding 5 0 s-1", "enqueue s2=a,b", "enqueue s0", "enqueue s1=c", "dequeue_many 3"],
    "padding no elements": ["queue padding 5 0 i-1,2", "dequeue_many 0"],
    "priorities in rows": [
        "queue priority 9 0 i s",
        "enqueue_many i4=3,-1,3,0 s4=a,b,c,d",
        "dequeue",
        "dequeue_up_to 2",
        "close 0",
        "dequeue_up_to 5",
    ],
    "a priority that is none": ["queue priority 9 0 i s", "enqueue i1=3 s=a", "size"],
    "fewer than are kept": [
        "queue shuffle 9 3 i",
        "enqueue_many i3=1,2,3",
        "start dequeue",
        "enqueue i=4",
        "join",
        "size",
        "close 0",
        "dequeue_many 2",
        "dequeue_many 2",
        "size",
        "dequeue_up_to 2",
        "dequeue",
    ],
    "kept until it is closed": [
        "queue shuffle 9 3 i",
        "enqueue_many i4=1,2,3,4",
        "start dequeue_many 4",
        "settle 3",
        "close 0",
        "join",
        "size",
    ],
    "beyond the capacity at the close": [
        "queue fifo 32 0 i",
        "enqueue i=0",
        "start dequeue_many 64",
        "settle 0",
        *[f"enqueue i={i}" for i in range(1, 40)],
        "close 0",
        "join",
        "size",
        "dequeue_up_to 64",
        "size",
    ],
    "beyond the capacity at a close that cancels": [
        "queue shuffle 32 3 i",
        "enqueue_many i4=0,1,2,3",
        "start dequeue_many 64",
        "settle 3",
        *[f"enqueue i={i}" for i in range(4, 40)],
        "close 1",
        "join",
        "size",
        "dequeue_up_to 64",
        "size",
    ],
    "not enough at the close": [
        "queue fifo 9 0 i",
        "enqueue_many i2=1,2",
        "start dequeue_many 4",
        "settle 0",
        "close 0",
        "join",
        "size",
        "dequeue_up_to 4",
        "dequeue_up_to 4",
    ],
}


def main():
    passed = failed = 0
    for name, lines in NAMED.items():
        good = check(name, lines)
        passed, failed = passed + good, failed + (not good)
    for kind in KINDS:
        bad = 0
        for i in range(COUNT):
            bad += not check(f"{kind} {SEED * 1000 + i}", Sequence(kind, SEED * 1000 + i).lines)
            if bad > 3:
                break
        print(f"{kind}: {COUNT} sequences")
        passed, failed = passed + (bad == 0), failed + (bad > 0)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
