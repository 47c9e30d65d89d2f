"""Writes the seed corpus of graphdef_fuzz to tests/fuzz/corpus/graphdef. Requires TensorFlow 2.15.1.

    python tests/fuzz/graphdef_corpus.py

The first byte of a seed selects what the fuzz target does with the rest: 0 imports a GraphDef, 1 imports it with a
prefix, 2 imports a MetaGraphDef."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf1 = tf.compat.v1
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "graphdef")


def put(name, first, message):
    with open(os.path.join(CORPUS, name), "wb") as file:
        file.write(bytes([first]) + message.SerializeToString(deterministic=True))


def layer():
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        w = tf1.get_variable("w", [4, 2], use_resource=False)
        y = tf.reshape(tf.matmul(x, w), [tf.shape(x)[0], 2, 1])
        tf.concat([y, y], 1)
        tf.split(y, 2, axis=1)
        tf1.add_to_collection("losses", y)
    return graph


def loop():
    with tf.Graph().as_default() as graph:
        tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    return graph


def function():
    with tf.Graph().as_default() as graph:
        tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    return graph


def constants():
    with tf.Graph().as_default() as graph:
        for value, dtype in [
            (["a", "bc"], tf.string),
            ([True, False], tf.bool),
            (1.5, tf.half),
            ([1, 2], tf.uint8),
            (1j, tf.complex64),
        ]:
            tf.constant(value, dtype)
        tf.zeros([3, 3])
    return graph


def main():
    tf1.disable_eager_execution()
    tf1.disable_control_flow_v2()
    os.makedirs(CORPUS, exist_ok=True)
    graph = layer()
    put("layer", 0, graph.as_graph_def())
    put("layer-prefix", 1, graph.as_graph_def())
    put("layer-meta", 2, tf1.train.export_meta_graph(graph=graph))
    for make in (loop, function, constants):
        put(make.__name__, 0, make().as_graph_def())


if __name__ == "__main__":
    main()
