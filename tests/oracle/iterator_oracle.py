"""Reinitializable and feedable iterators return the same elements as tf.data's at every step of a random sequence:
Iterator.from_structure with make_initializer, and Iterator.from_string_handle."""

import os
import random
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

tf.logging.set_verbosity(tf.logging.FATAL)
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
SEQUENCES = 12
D = tf.data.Dataset


def datasets():
    return [D.range(0, 3), D.range(10, 17, 2).prefetch(2), D.range(20, 24).skip(1).repeat(2), D.range(4).batch(2)]


def sequence(r):
    steps = []
    for _ in range(60):
        which = r.choice("abc")
        steps.append(which + (r.choice("0123") if r.random() < 0.2 and which != "c" else r.choice(".h")))
    return steps


def ours(steps, threads):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "iterator_steps")
    out = subprocess.run(
        [program, str(threads)], input="\n".join(steps) + "\n", check=True, capture_output=True, text=True
    )
    return out.stdout.splitlines()


def theirs(steps):
    lines = []
    with tf.Graph().as_default(), tf.Session() as session:
        data = datasets()
        number = (tf.int64, tf.TensorShape([]))
        iterators = [tf.data.Iterator.from_structure(*number), tf.data.Iterator.from_structure(*number),
                     tf.data.make_initializable_iterator(data[1])]
        initializers = [[it.make_initializer(d) for d in data[:3]] for it in iterators[:2]]
        session.run(iterators[2].initializer)
        handles = session.run([it.string_handle() for it in iterators])
        handle = tf.placeholder(tf.string, [])
        fed = tf.data.Iterator.from_string_handle(handle, *number).get_next()
        nexts = [it.get_next() for it in iterators]
        for step in steps:
            which = "abc".index(step[0])
            try:
                if step[1] == ".":
                    lines.append(str(session.run(nexts[which])))
                elif step[1] == "h":
                    lines.append(str(session.run(fed, {handle: handles[which]})))
                elif step[1] == "3":
                    iterators[which].make_initializer(data[3])
                else:
                    session.run(initializers[which][int(step[1])])
                    lines.append("ok")
            except tf.errors.OutOfRangeError:
                lines.append("end")
            except tf.errors.FailedPreconditionError:
                lines.append("uninitialized")
            except TypeError:
                lines.append("mismatch")
    return lines


def main():
    r = random.Random(SEED)
    failed = 0
    for i in range(SEQUENCES):
        steps = sequence(r)
        expected = theirs(steps)
        for threads in (1, 3):
            found = ours(steps, threads)
            if found == expected:
                continue
            failed += 1
            print("FAILED seed", SEED, "sequence", i, "threads", threads)
            for step, a, b in zip(steps, found, expected):
                print("  ", step, "ours", a, "theirs", b)
    print(f"{2 * SEQUENCES - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
