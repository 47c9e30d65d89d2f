"""Writes the seed corpus of run_fuzz to tests/fuzz/corpus/run: small GraphDefs whose last node is run. Requires
TensorFlow 2.15.1.

    python tests/fuzz/run_corpus.py
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

tf1 = tf.compat.v1
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "run")
SEEDS = []


def seed(build):
    SEEDS.append(build)
    return build


def variables():
    tf1.global_variables_initializer()


@seed
def arithmetic():
    x = tf.reshape(tf.cast(tf.range(24), tf.float32), [2, 3, 4])
    y = tf.einsum("abc,acd->abd", x, tf.transpose(x, [0, 2, 1]))
    tf.concat([tf.nn.softmax(y), tf.reduce_sum(y, 1, keepdims=True)], 1)


@seed
def slices():
    x = tf.range(60)
    y = tf.reshape(x, [3, 4, 5])[::-1, 1:, tf.newaxis, ..., 2]
    z = tf.gather_nd(tf.pad(y, [[1, 1], [0, 2], [0, 0]]), [[0, 1], [2, 0]])
    tf.scatter_nd([[1], [3]], z, [5, 1])


@seed
def convolution():
    x = tf.ones([1, 6, 6, 2])
    y = tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), strides=[1, 2, 2, 1], padding="SAME")
    z = tf.nn.max_pool2d(y, 2, 1, "VALID")
    z = tf1.nn.fused_batch_norm(z, tf.ones([4]), tf.zeros([4]))[0]
    tf.image.resize(z, [5, 7])


@seed
def text():
    words = tf1.string_split(["a bc  d", "", "éf g"], " ").values
    joined = tf.strings.join([words, tf.as_string(tf.strings.length(words))], "-")
    hashes = tf.strings.to_hash_bucket_fast(tf.strings.regex_replace(joined, "[a-c]+", "\\\\0x"), 10)
    tf.unique_with_counts(hashes)


@seed
def examples():
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.extend([1, 2, 3])
    example.features.feature["b"].bytes_list.value.append(b"xy")
    parsed = tf.io.parse_example(
        [example.SerializeToString()],
        {"a": tf.io.VarLenFeature(tf.int64), "b": tf.io.FixedLenFeature([1], tf.string, "")},
    )
    tf.sparse.to_dense(parsed["a"])


@seed
def csv():
    tf.stack(tf.io.decode_csv(["1,2.5", '3,"4"'], [[0.0], [1.0]]))


@seed
def reference_variable():
    v = tf1.get_variable("v", [3], initializer=tf1.ones_initializer(), use_resource=False)
    variables()
    with tf.control_dependencies([tf1.assign_add(v, [1.0, 2.0, 3.0]), tf1.scatter_add(v, [0, 2], [5.0, 6.0])]):
        tf.identity(v)


@seed
def training():
    v = tf1.get_variable("v", [3, 2], initializer=tf1.ones_initializer(), use_resource=True)
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(v, [0, 2, 0]) - 3.0))
    step = tf1.train.AdamOptimizer(0.1).minimize(loss)
    variables()
    with tf.control_dependencies([step]):
        v.read_value()


@seed
def loop_v1():
    tf1.disable_control_flow_v2()
    _, y = tf1.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * 2.0), [0, tf.constant([1.0, 2.0])])
    tf1.gradients(y, [tf.constant(1.0), y])
    tf1.identity(y)


@seed
def loop_gradient():
    tf1.disable_control_flow_v2()
    x = tf.constant(1.5)
    _, y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])
    tf.identity(tf1.gradients(y, x)[0])


@seed
def branches_v1():
    tf1.disable_control_flow_v2()
    x = tf.constant(3)
    y = tf.cond(x > 2, lambda: x * 2, lambda: x - 1)
    tf1.case([(y > 3, lambda: y), (y < 0, lambda: -y)], default=lambda: x)


@seed
def loop_v2():
    tf1.enable_control_flow_v2()
    _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y + [1.0]), [0, tf.constant([1.0])])
    tf.identity(y)


@seed
def branches_v2():
    tf1.enable_control_flow_v2()
    x = tf.constant(3.0)
    y = tf.cond(x > 2.0, lambda: x * 2.0, lambda: x - 1.0)
    tf.identity(tf1.gradients(y, x)[0])


@seed
def functions():
    @tf.function
    def power(x, n):
        return x if n == 0 else x * power(x, n - 1)

    tf.identity(power(tf.constant(2.0), 3))


@seed
def arrays():
    tf1.disable_control_flow_v2()
    array = tf.TensorArray(tf.float32, 3, dynamic_size=True, infer_shape=False)
    array = array.write(0, [1.0]).write(1, [2.0]).write(2, [3.0])
    tf.identity(array.stack())


@seed
def lists():
    tf1.enable_control_flow_v2()
    array = tf.TensorArray(tf.float32, 2)
    tf.identity(array.write(0, 1.0).write(1, 2.0).stack())


@seed
def queues():
    queue = tf.queue.RandomShuffleQueue(10, 2, [tf.int32], shapes=[[]], seed=1)
    with tf.control_dependencies([queue.enqueue_many([[1, 2, 3, 4, 5]])]):
        queue.dequeue_many(3)


@seed
def padded_queue():
    queue = tf.queue.PaddingFIFOQueue(10, [tf.float32], shapes=[[None]])
    with tf.control_dependencies([queue.enqueue([[1.0]]), queue.enqueue([[1.0, 2.0]])]):
        queue.dequeue_up_to(2)


@seed
def tables():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    tf1.tables_initializer(name="init")
    table.lookup(tf.constant(["b", "c"]))


@seed
def mutable_table():
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, 0.0, 0, -1)
    with tf.control_dependencies([table.insert([5, 6], [1.0, 2.0])]):
        table.lookup([6, 7])


@seed
def dataset():
    data = tf.data.Dataset.range(20).map(lambda x: x * x).filter(lambda x: x % 3 != 0)
    data = data.shuffle(4, seed=1).repeat(2).batch(3).prefetch(1)
    tf1.data.make_one_shot_iterator(data).get_next()


@seed
def nested_datasets():
    data = tf.data.Dataset.range(6).window(2, 1).flat_map(lambda w: w.batch(2))
    data = data.interleave(lambda x: tf.data.Dataset.from_tensor_slices(x), cycle_length=2)
    data = tf.data.Dataset.zip((data, data.scan(0, lambda s, x: (s + 1, x))))
    iterator = tf1.data.make_initializable_iterator(data)
    tf.group(iterator.initializer, name="init")
    iterator.get_next()


@seed
def random_numbers():
    x = tf1.random_normal([3], seed=1) + tf1.random_uniform([3], seed=2)
    y = tf1.multinomial([[0.1, 0.9]], 4, seed=3)
    tf1.random_shuffle(tf.concat([x, tf.cast(y[0], tf.float32)], 0), seed=4)


@seed
def sparse():
    a = tf.sparse.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    b = tf.sparse.reorder(tf.sparse.concat(1, [a, a]))
    tf.sparse.sparse_dense_matmul(b, tf.ones([8, 2]))


@seed
def linear_algebra():
    x = tf.constant([[4.0, 1.0], [1.0, 3.0]])
    tf.linalg.solve(tf.linalg.cholesky(x), tf.linalg.inv(x) + tf.linalg.svd(x, compute_uv=False))


@seed
def signals():
    tf.abs(tf.signal.irfft(tf.signal.rfft(tf.ones([2, 6]))))


@seed
def recognition():
    inputs = tf.math.log(tf.nn.softmax(tf.ones([4, 1, 3])))
    decoded, _ = tf1.nn.ctc_beam_search_decoder(inputs, [4], beam_width=2)
    loss = tf1.nn.ctc_loss(tf.sparse.SparseTensor([[0, 0]], [1], [1, 1]), inputs, [4])
    with tf.control_dependencies([decoded[0].values]):
        tf.identity(loss)


@seed
def images():
    x = tf.cast(tf.reshape(tf.range(48), [4, 4, 3]), tf.uint8)
    y = tf.image.decode_png(tf.image.encode_png(x))
    z = tf.image.crop_and_resize(tf.cast(y, tf.float32)[None], [[0.0, 0.1, 0.9, 1.2]], [0], [3, 2])
    tf.image.adjust_hue(z, 0.2)


@seed
def boxes():
    tf.image.non_max_suppression([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]], [0.9, 0.8, 0.7], 2)


@seed
def files():
    path = tf.constant("tests/fuzz/corpus/csv/plain")
    tf.strings.length(tf.io.read_file(path))


@seed
def checkpoint():
    tf1.train.Saver([tf1.get_variable("v", [2])], filename="/nowhere/model").as_saver_def()
    tf.io.matching_files("/nowhere/*")


def main():
    tf1.disable_eager_execution()
    os.makedirs(CORPUS, exist_ok=True)
    for build in SEEDS:
        with tf.Graph().as_default() as graph:
            build()
        with open(os.path.join(CORPUS, build.__name__.replace("_", "-")), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString(deterministic=True))


main()
