"""Loops of TensorFlow 1 with gradients, stacks, arrays and lists of tensors give the same values as TensorFlow.

The cases are like those of run_oracle.py: a graph is built with tf.compat.v1, and its export is run with graph-run."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow as tf

from run_oracle import PROGRAM, Run, compare, feeds_of, random_flow, tf1

CASES = []
raw = tf.raw_ops
rng = np.random.default_rng(11)


def case(function):
    CASES.append(function)
    return function


def variants(**choices):
    """Makes a case for each value of one keyword argument."""
    (name, values), = choices.items()

    def add(function):
        for value in values:
            CASES.append(lambda value=value: function(**{name: value}))
            CASES[-1].__name__ = f"{function.__name__} {name}={value}"
        return function

    return add


def with_gradients(ys, xs, **arguments):
    """The fetches: ys, and the gradients of their sum with respect to xs."""
    total = tf.add_n([tf.reduce_sum(y * y) for y in ys])
    return list(ys) + [g for g in tf1.gradients(total, xs, **arguments) if g is not None]


def draw(*shape):
    return rng.normal(size=shape).astype(np.float32)


# ---- Loops ----


@variants(iterations=[1, 2, 10])
def power(iterations):
    (x, n), feeds = feeds_of(np.float32([1.5, -0.5, 2]), np.int32(5))
    y = tf1.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * x + v), [0, x], parallel_iterations=iterations)[1]
    return Run(with_gradients([y], [x]), feeds, init=False)


@variants(swap=[False, True])
def recurrent(swap):
    (x, w, b), feeds = feeds_of(draw(4, 3), draw(3, 3) * 0.6, draw(3))
    body = lambda i, h, s: (i + 1, tf.tanh(tf.matmul(h, w) + b), s + tf.reduce_sum(tf.sin(h)))
    _, h, s = tf1.while_loop(lambda i, *_: i < 7, body, [0, x, 0.0], swap_memory=swap, parallel_iterations=3)
    return Run(with_gradients([h, s], [x, w, b]), feeds, steps=2, init=False)


@case
def data_dependent_end():
    (x,), feeds = feeds_of(np.float32(1.3))
    y = tf1.while_loop(lambda v: v < 100.0, lambda v: v * v + x, [x])
    return Run(with_gradients([y], [x]), feeds, init=False)


@case
def no_iterations():
    (x, n), feeds = feeds_of(draw(3), np.int32(0))
    y = tf1.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * x), [0, x + 1])[1]
    return Run(with_gradients([y], [x]), feeds, init=False)


@case
def many_iterations():
    (x,), feeds = feeds_of(np.float32([0.999, -0.5]))
    y = tf1.while_loop(lambda i, v: i < 3000, lambda i, v: (i + 1, v * 0.999 + x * tf.cos(v)), [0, x])[1]
    return Run(with_gradients([y], [x]), feeds, init=False, tolerance=1e-4)


@case
def growing_shape():
    (x,), feeds = feeds_of(np.float32([1.0, 2]))
    y = tf1.while_loop(lambda v: tf.size(v) < 50, lambda v: tf.concat([v, v * x[0] * 0.1], 0), [x],
                       shape_invariants=[tf.TensorShape([None])])
    return Run(with_gradients([y], [x]), feeds, init=False)


@case
def unused_gradient():
    (x, z), feeds = feeds_of(draw(3), draw(3))
    body = lambda i, a, b: (i + 1, a * x, tf.stop_gradient(b) + z)
    _, a, b = tf1.while_loop(lambda i, *_: i < 4, body, [0, x, z])
    return Run(with_gradients([a, b], [x, z]), feeds, init=False)


@case
def without_back_prop():
    (x,), feeds = feeds_of(draw(3))
    y = tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * x), [0, x], back_prop=False)[1]
    return Run([y, *tf1.gradients(tf.reduce_sum(x * tf.stop_gradient(y)), [x])], feeds, init=False)


@variants(iterations=[1, 10])
def nested(iterations):
    (x, y), feeds = feeds_of(draw(3), draw(3) * 0.5)

    def outer(i, v):
        inner = tf1.while_loop(lambda j, u: j <= i, lambda j, u: (j + 1, u * y + tf.sin(u * x)), [0, v],
                               parallel_iterations=iterations)
        return i + 1, inner[1] + x

    v = tf1.while_loop(lambda i, v: i < 5, outer, [0, x], parallel_iterations=iterations)[1]
    return Run(with_gradients([v], [x, y]), feeds, init=False)


@case
def nested_three_times():
    (x,), feeds = feeds_of(np.float32([0.4, -0.2]))

    def loop(depth, v):
        if depth == 0:
            return tf.sin(v) + x
        return tf1.while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, loop(depth - 1, u * x + u)), [0, v])[1]

    return Run(with_gradients([loop(3, x)], [x]), feeds, init=False)


@variants(iterations=[1, 10])
def cond_in_loop(iterations):
    (x, y), feeds = feeds_of(draw(3), draw(3))

    def body(i, v):
        new = tf1.cond(tf.equal(i % 2, 0), lambda: v * x, lambda: tf1.cond(tf.reduce_sum(v) > 0, lambda: v - y,
                                                                           lambda: tf.sin(v) * y))
        return i + 1, new

    v = tf1.while_loop(lambda i, v: i < 6, body, [0, x], parallel_iterations=iterations)[1]
    return Run(with_gradients([v], [x, y]), feeds, init=False)


@variants(flag=[False, True])
def loop_in_cond(flag):
    (f, x), feeds = feeds_of(np.bool_(flag), draw(3))
    loop = lambda: tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * x), [0, x])[1]
    return Run(with_gradients([tf1.cond(f, loop, lambda: x * 2)], [x]), feeds, init=False)


@case
def loop_after_loop():
    (x,), feeds = feeds_of(draw(3))
    first = tf1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * x), [0, x])[1]
    second = tf1.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, tf.sin(v) + first), [0, first])[1]
    return Run(with_gradients([second], [x]), feeds, init=False)


@case
def gradient_in_loop():
    (x,), feeds = feeds_of(draw(3))
    body = lambda i, v: (i + 1, v - 0.1 * tf1.gradients(tf.reduce_sum(tf.sin(v) * x), [v])[0])
    return Run([tf1.while_loop(lambda i, v: i < 20, body, [0, x])[1]], feeds, init=False)


@case
def trained_recurrence():
    (x, target), feeds = feeds_of(draw(5, 4), draw(5, 4))
    with tf1.variable_scope("net", use_resource=False):
        w = tf1.get_variable("w", [4, 4], initializer=tf1.glorot_uniform_initializer(seed=1))
    h = tf1.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x])[1]
    loss = tf.reduce_mean(tf.square(h - target))
    return Run([loss], feeds, [tf1.train.GradientDescentOptimizer(0.1).minimize(loss)], steps=20)


def flow_with_gradients(seed):
    run = random_flow(seed)
    return Run(with_gradients(run.fetches, list(run.feeds)), run.feeds, steps=2, init=False, tolerance=1e-4)


for number in range(100, 160):
    CASES.append(lambda number=number: flow_with_gradients(number))
    CASES[-1].__name__ = f"flow_with_gradients_{number}"

# ---- Arrays ----


@variants(iterations=[1, 10])
def recurrent_sequence(iterations):
    (x, w), feeds = feeds_of(draw(6, 2, 3), draw(3, 3) * 0.5)
    inputs = tf.TensorArray(tf.float32, 6).unstack(x)
    outputs = tf.TensorArray(tf.float32, 6)

    def body(i, h, out):
        h = tf.tanh(tf.matmul(h, w) + inputs.read(i))
        return i + 1, h, out.write(i, h)

    _, h, out = tf1.while_loop(lambda i, *_: i < 6, body, [0, tf.zeros([2, 3]), outputs],
                               parallel_iterations=iterations)
    return Run(with_gradients([out.stack(), h], [x, w]), feeds, init=False)


@case
def array_of_parts():
    (x,), feeds = feeds_of(draw(6, 2))
    array = tf.TensorArray(tf.float32, 3, infer_shape=False, clear_after_read=False).split(x * x, [1, 3, 2])
    whole, part, again = array.concat(), array.read(1), array.read(1)
    whole.set_shape([6, 2])
    part.set_shape([3, 2])
    again.set_shape([3, 2])
    return Run(with_gradients([whole, part, again * 2], [x]), feeds, init=False)


@case
def dynamic_array():
    (x,), feeds = feeds_of(draw(2))
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[2])
    array = tf1.while_loop(lambda i, a: i < 37, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))),
                           [0, array])[1]
    return Run(with_gradients([array.stack(), array.gather([3, 30])][:1], [x]) + [array.size()], feeds, init=False)


@case
def scattered_array():
    (x,), feeds = feeds_of(draw(3, 2))
    array = tf.TensorArray(tf.float32, 7, element_shape=[2], clear_after_read=False).scatter([5, 0, 3], x)
    return Run(with_gradients([array.gather([3, 5, 5]), array.read(0), array.read(6)], [x]), feeds, init=False)


@case
def array_read_often():
    (x,), feeds = feeds_of(draw(4, 3))
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    y = tf1.while_loop(lambda i, v: i < 9, lambda i, v: (i + 1, v + array.read(i % 4) * array.read((i + 1) % 4)),
                       [0, tf.zeros([3])])[1]
    return Run(with_gradients([y], [x]), feeds, init=False)


@variants(dtype=[np.float64, np.float16, np.int32, np.complex64])
def array_types(dtype):
    (x,), feeds = feeds_of((rng.normal(size=(4, 3)) * 9).astype(dtype))
    array = tf.TensorArray(dtype, 4, clear_after_read=False).unstack(x)
    return Run([array.gather([3, 1]), tf.identity(array.read(2)), array.size()], feeds, init=False)


@case
def maps():
    (x, w), feeds = feeds_of(draw(5, 3), draw(3))
    a = tf1.map_fn(lambda v: tf.sin(v) * w, x)
    b = tf1.map_fn(lambda v: (v[0] * v[1], tf.reduce_sum(v[0])), (x, a), dtype=(tf.float32, tf.float32))
    return Run(with_gradients([a, *b], [x, w]), feeds, init=False)


@case
def scans():
    (x, w), feeds = feeds_of(draw(5, 3), draw(3))
    a = tf1.scan(lambda s, v: s * w + v, x)
    b = tf1.scan(lambda s, v: s + tf.sin(v), x, initializer=w, reverse=True)
    return Run(with_gradients([a, b], [x, w]), feeds, init=False)


@case
def folds():
    (x, w), feeds = feeds_of(draw(5, 3), draw(3))
    return Run(with_gradients([tf1.foldl(lambda s, v: s * w + v, x), tf1.foldr(lambda s, v: tf.sin(s) + v * w, x)],
                              [x, w]), feeds, init=False)


@case
def nested_maps():
    (x,), feeds = feeds_of(draw(3, 4, 2))
    y = tf1.map_fn(lambda m: tf1.map_fn(lambda v: tf.sin(v) * tf.reduce_sum(m), m), x)
    return Run(with_gradients([y], [x]), feeds, init=False)


@variants(lengths=[None, [3, 5, 1]])
def dynamic_rnn(lengths):
    (x,), feeds = feeds_of(draw(3, 5, 4))
    cell = tf1.nn.rnn_cell.BasicRNNCell(6)
    with tf1.variable_scope("rnn", use_resource=False, initializer=tf1.glorot_uniform_initializer(seed=3)):
        outputs, state = tf1.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)
    return Run(with_gradients([outputs, state], [x, *tf1.trainable_variables()]), feeds, steps=2)


@case
def trained_lstm():
    (x, target), feeds = feeds_of(draw(3, 6, 4), draw(3, 5))
    cell = tf1.nn.rnn_cell.LSTMCell(5, initializer=tf1.glorot_uniform_initializer(seed=3))
    with tf1.variable_scope("rnn", use_resource=False):
        _, state = tf1.nn.dynamic_rnn(cell, x, dtype=tf.float32, swap_memory=True)
    loss = tf.reduce_mean(tf.square(state.h - target))
    return Run([loss], feeds, [tf1.train.AdamOptimizer(0.01).minimize(loss)], steps=10)


# ---- Lists ----


def stacked(handle, shape=-1, dtype=tf.float32):
    return raw.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=dtype)


@case
def list_in_loop():
    (x, n), feeds = feeds_of(draw(2), np.int32(500))
    empty = raw.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=tf.float32)
    push = lambda i, h: (i + 1, raw.TensorListPushBack(input_handle=h, tensor=x * tf.cast(i, tf.float32)))
    handle = tf1.while_loop(lambda i, h: i < n, push, [0, empty])[1]

    def pop(h, total):
        h, last = raw.TensorListPopBack(input_handle=h, element_shape=[2], element_dtype=tf.float32)
        return h, total * 0.9 + tf.reshape(last, [2])

    rest, total = tf1.while_loop(lambda h, _: raw.TensorListLength(input_handle=h) > 100, pop, [handle, x])
    again = raw.TensorListPushBack(input_handle=rest, tensor=x)
    return Run([stacked(handle), stacked(rest), stacked(again), total], feeds, init=False, steps=2)


@case
def list_items():
    (x,), feeds = feeds_of(draw(4, 2))
    handle = raw.TensorListFromTensor(tensor=x, element_shape=[2])
    changed = raw.TensorListSetItem(input_handle=handle, index=2, item=[7.0, 8])
    longer = raw.TensorListResize(input_handle=changed, size=6)
    shorter = raw.TensorListResize(input_handle=changed, size=1)
    grown = raw.TensorListPushBack(input_handle=shorter, tensor=[5.0, 5])
    item = raw.TensorListGetItem(input_handle=longer, index=5, element_shape=[2], element_dtype=tf.float32)
    some = raw.TensorListGather(input_handle=longer, indices=[5, 2, 0, 0], element_shape=[2],
                                element_dtype=tf.float32)
    both = raw.TensorListConcatLists(input_a=longer, input_b=handle, element_dtype=tf.float32)
    return Run([stacked(h) for h in (handle, changed, longer, shorter, grown, both)] +
               [item, some, raw.TensorListElementShape(input_handle=both, shape_type=tf.int64)], feeds, init=False)


@case
def list_scattered():
    (x,), feeds = feeds_of(draw(3, 2))
    a = raw.TensorListScatter(tensor=x, indices=[4, 0, 0], element_shape=[2])
    b = raw.TensorListScatterV2(tensor=x, indices=[4, 0, 1], element_shape=[2], num_elements=7)
    c = raw.TensorListScatterIntoExistingList(input_handle=b, tensor=x, indices=[0, 7, 3])
    return Run([stacked(h) for h in (a, b, c)], feeds, init=False)


@case
def list_parts():
    (x,), feeds = feeds_of(draw(6, 2))
    parts = raw.TensorListSplit(tensor=x, element_shape=[-1, 2], lengths=[3, 0, 2, 1])
    more = raw.TensorListResize(input_handle=parts, size=6)
    a = raw.TensorListConcat(input_handle=parts, element_dtype=tf.float32, element_shape=[None, 2])
    b = raw.TensorListConcatV2(input_handle=more, element_shape=[-1, 2], leading_dims=[9, 9, 9, 9, 2, 3],
                               element_dtype=tf.float32)
    return Run([*a, *b], feeds, init=False)


@variants(dtype=[np.float64, np.float16, np.int32, np.bool_])
def list_types(dtype):
    (x,), feeds = feeds_of((rng.normal(size=(4, 3)) * 9).astype(dtype))
    handle = raw.TensorListResize(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[3]), size=5)
    return Run([stacked(handle, dtype=dtype), stacked(tf.zeros_like(handle), dtype=dtype)], feeds, init=False)


@case
def sums_of_lists():
    (x,), feeds = feeds_of(draw(4, 2))
    a = raw.TensorListFromTensor(tensor=x, element_shape=[2])
    b = raw.TensorListResize(input_handle=raw.TensorListFromTensor(tensor=x[:2] * 3, element_shape=[2]), size=4)
    scalar = tf.zeros([0], tf.int32)
    outer = raw.EmptyTensorList(element_shape=scalar, max_num_elements=-1, element_dtype=tf.variant)
    outer = raw.TensorListPushBack(input_handle=outer, tensor=a)
    outer = raw.TensorListPushBack(input_handle=outer, tensor=b)
    total = raw.AddN(inputs=[outer, tf.zeros_like(outer), outer])
    _, last = raw.TensorListPopBack(input_handle=total, element_shape=scalar, element_dtype=tf.variant)
    first = raw.TensorListGetItem(input_handle=total, index=0, element_shape=scalar, element_dtype=tf.variant)
    return Run([stacked(h) for h in (raw.AddN(inputs=[a, b, a]), tf.zeros_like(b), last, first)], feeds, init=False)


@case
def optionals():
    (x,), feeds = feeds_of(draw(4, 2))
    some, none = raw.OptionalFromValue(components=[x, [1, 2]]), raw.OptionalNone()
    twice = raw.AddN(inputs=[some, some])
    types, shapes = [tf.float32, tf.int32], [[4, 2], [None]]
    values = raw.OptionalGetValue(optional=twice, output_types=types, output_shapes=shapes)
    zeros = raw.OptionalGetValue(optional=tf.zeros_like(some), output_types=types, output_shapes=shapes)
    return Run([*values, *zeros, raw.OptionalHasValue(optional=some), raw.OptionalHasValue(optional=none)], feeds,
               init=False)


# ---- Errors ----


def unknown(value):
    """A tensor whose shape the graph does not know."""
    return tf1.placeholder_with_default(value, None)


def errors():
    """Name and fetch of graphs that fail in both, with the same sentence."""

    def array(size=3, **attrs):
        return raw.TensorArrayV3(size=size, dtype=tf.float32, **attrs)

    def write(array, index, value):
        return array[0], raw.TensorArrayWriteV3(handle=array[0], index=index, value=value, flow_in=array[1])

    def read(array, index, dtype=tf.float32):
        return raw.TensorArrayReadV3(handle=array[0], index=index, flow_in=array[1], dtype=dtype)

    def gather(array, indices, shape=None):
        return raw.TensorArrayGatherV3(handle=array[0], indices=indices, flow_in=array[1], dtype=tf.float32,
                                       element_shape=shape)

    def scatter(array, indices, value):
        return raw.TensorArrayScatterV3(handle=array[0], indices=indices, value=value, flow_in=array[1])

    def concat(array, shape=None):
        return raw.TensorArrayConcatV3(handle=array[0], flow_in=array[1], dtype=tf.float32,
                                       element_shape_except0=shape)[0]

    def split(array, value, lengths):
        return raw.TensorArraySplitV3(handle=array[0], value=value, lengths=lengths, flow_in=array[1])

    def gradient(array):
        return tuple(raw.TensorArrayGradV3(handle=array[0], flow_in=array[1], source="g"))

    yield "write outside", lambda: write(array(), 5, 1.0)[1]
    yield "write before", lambda: write(array(dynamic_size=True), -5, 1.0)[1]
    yield "write twice", lambda: write(write(array(), 1, 1.0), 1, 2.0)[1]
    yield "write of another type", lambda: write(array(), 1, 7)[1]
    yield "write at a vector", lambda: write(array(), unknown([1]), 1.0)[1]
    yield "write of another shape", lambda: write(array(element_shape=[2]), 1, unknown([1.0]))[1]
    yield "write of a different shape", lambda: write(write(array(identical_element_shapes=True), 0, [1.0, 2]), 1,
                                                      unknown([1.0]))[1]
    yield "read of nothing", lambda: read(array(), 1)
    yield "read outside", lambda: read(array(element_shape=[2]), 7)
    yield "read of another type", lambda: read(array(element_shape=[2]), 1, tf.int32)
    yield "stack of nothing", lambda: gather(array(), tf.zeros([0], tf.int32))
    yield "stack of shapes", lambda: gather(write(write(array(), 0, [1.0, 2]), 1, [1.0]), [0, 1])
    yield "stack of a shape", lambda: gather(write(array(), 0, [1.0, 2]), [0], [3])
    yield "stack at a matrix", lambda: gather(write(array(), 0, [1.0, 2]), unknown([[0]]))
    yield "concat of nothing", lambda: concat(array(0))
    yield "concat of scalars", lambda: concat(write(array(1), 0, 1.0))
    yield "concat of shapes", lambda: concat(write(write(array(2), 0, [[1.0, 2]]), 1, [[1.0]]))
    yield "concat of a shape", lambda: concat(write(array(1), 0, [[1.0, 2]]), [3])
    yield "scatter outside", lambda: scatter(array(), [0, 5], [1.0, 2])
    yield "scatter of too few", lambda: scatter(array(), unknown([0, 1]), unknown([1.0]))
    yield "scatter of a scalar", lambda: scatter(array(), unknown([0, 1]), unknown(1.0))
    yield "split of too few", lambda: split(array(), [1.0, 2], [1, 2, 3])
    yield "split into too few", lambda: split(array(), [1.0, 2], [1, 1])
    yield "split of a scalar", lambda: split(array(), unknown(1.0), [3, 1, 0])
    yield "negative array", lambda: array(-1)[1]
    yield "gradient of nothing", lambda: read(gradient(array()), 1)
    yield "gradient of a shape", lambda: write(gradient(write(array(), 0, [1.0, 2])), 0, unknown([1.0]))[1]
    yield "gradient of a gradient", lambda: gradient(gradient(array()))[1]
    yield "empty stack", lambda: raw.StackPopV2(handle=raw.StackV2(max_size=1, elem_type=tf.float32, stack_name="s"),
                                                elem_type=tf.float32)

    def items(shape=[2], count=3, dtype=tf.float32):
        return raw.TensorListReserve(element_shape=shape, num_elements=count, element_dtype=dtype)

    def length(handle):
        return raw.TensorListLength(input_handle=handle)

    def stack(handle, shape=-1, dtype=tf.float32):
        return raw.TensorListStack(input_handle=handle, element_shape=shape, element_dtype=dtype)

    def rows(*values, shape=-1):
        return raw.TensorListFromTensor(tensor=list(values), element_shape=shape)

    yield "negative list", lambda: length(items(count=-3))
    yield "list of a vector", lambda: length(items(count=unknown([3, 4])))
    yield "negative size", lambda: length(raw.TensorListResize(input_handle=items(), size=-3))
    yield "item outside", lambda: raw.TensorListGetItem(input_handle=items(), index=5, element_shape=[2],
                                                        element_dtype=tf.float32)
    yield "new item outside", lambda: length(raw.TensorListSetItem(input_handle=items(), index=5, item=[1.0, 2]))
    yield "full list", lambda: length(raw.TensorListPushBack(
        input_handle=raw.EmptyTensorList(element_shape=[2], max_num_elements=0, element_dtype=tf.float32),
        tensor=[1.0, 2]))
    yield "item of a shape", lambda: length(raw.TensorListPushBack(input_handle=items(unknown([2])), tensor=[1.0]))
    yield "empty list", lambda: raw.TensorListPopBack(input_handle=items(count=0), element_shape=[2],
                                                      element_dtype=tf.float32)[1]
    yield "stack of unset items", lambda: stack(items(-1))
    yield "stack of an empty list", lambda: stack(items(-1, 0))
    yield "items of a shape", lambda: stack(items(), unknown([3]))
    yield "items of a rank", lambda: stack(items(), unknown([3, 3]))
    yield "scatter before", lambda: length(raw.TensorListScatter(tensor=[[1.0]], indices=[-1], element_shape=[1]))
    yield "gather outside", lambda: raw.TensorListGather(input_handle=rows([1.0, 2]), indices=[7], element_shape=[2],
                                                         element_dtype=tf.float32)
    yield "parts of scalars", lambda: raw.TensorListConcatV2(
        input_handle=items(-1), element_shape=unknown(tf.zeros([0], tf.int32)), leading_dims=[1],
        element_dtype=tf.float32)[0]
    yield "unset parts", lambda: raw.TensorListConcat(input_handle=items(-1), element_dtype=tf.float32)[0]
    yield "unused rows", lambda: length(raw.TensorListSplit(tensor=[1.0, 2, 3], element_shape=[-1], lengths=[1, 1]))
    yield "too many rows", lambda: length(raw.TensorListSplit(tensor=[1.0, 2, 3], element_shape=[-1], lengths=[1, 4]))
    yield "lists of lengths", lambda: length(raw.AddN(inputs=[items(), items(count=2)]))
    yield "lists of text", lambda: length(raw.AddN(inputs=[rows("a"), rows("b")]))
    yield "zeros of text", lambda: length(tf.zeros_like(rows("a")))
    yield "different lists", lambda: stack(raw.TensorListConcatLists(
        input_a=rows([3.0, 2], shape=[2]), input_b=rows([3.0, 2]), element_dtype=tf.float32))
    yield "scalar shape", lambda: length(items(unknown(3)))
    yield "negative shape", lambda: length(items(unknown([-3])))

    def value(optional, types=(tf.float32,), shapes=([],)):
        return raw.OptionalGetValue(optional=optional, output_types=list(types), output_shapes=list(shapes))[0]

    yield "not an optional", lambda: raw.OptionalHasValue(optional=items())
    yield "no value", lambda: value(raw.OptionalNone())
    yield "value of a type", lambda: value(raw.OptionalFromValue(components=[1]))
    yield "value of a shape", lambda: value(raw.OptionalFromValue(components=[1.0]), shapes=[[3]])
    yield "values", lambda: value(raw.OptionalFromValue(components=[1.0]), [tf.float32] * 2, [[], []])
    yield "optionals", lambda: raw.OptionalHasValue(
        optional=raw.AddN(inputs=[raw.OptionalFromValue(components=[1.0]), raw.OptionalNone()]))


def without_rewriting():
    options = tf1.GraphOptions()
    options.rewrite_options.disable_meta_optimizer = True
    return tf1.ConfigProto(graph_options=options)


def compare_error(make, directory):
    graph = tf1.Graph()
    with graph.as_default():
        fetch = tf.identity(make(), name="fetch")
    with tf1.Session(graph=graph, config=without_rewriting()) as session:
        try:
            session.run(fetch)
            raise AssertionError("TensorFlow succeeds")
        except tf.errors.OpError as error:
            lines = error.message.split("\n")
            at = [i for i, line in enumerate(lines) if "[[{{node" in line]
            expected = lines[at[0] - 1]
    path = os.path.join(directory, "graph.pb")
    with open(path, "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())
    done = subprocess.run([PROGRAM, path, "--fetch", "fetch"], capture_output=True, text=True)
    # The names of stacks and arrays end with a number.
    expected, actual = [re.sub(r"_[0-9]+(?=[:\]@ ]|$)", "", text) for text in (expected, done.stderr)]
    assert done.returncode == 1 and expected in actual, f"\n{expected}\n{actual}"


def main():
    wanted = sys.argv[1:]
    passed = failed = 0
    checks = [(f.__name__, compare, f) for f in CASES] + [(name, compare_error, make) for name, make in errors()]
    for name, check, function in checks:
        if wanted and not any(part in name for part in wanted):
            continue
        try:
            with tempfile.TemporaryDirectory() as directory:
                check(function, directory)
            passed += 1
        except Exception as error:  # run the remaining cases after a failure
            print(f"FAILED {name}: {str(error)[:600]}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
