"""The kernels of the suite "kernels": what moves more bytes than it computes, alone, at the sizes of the usual
networks. BYTES has what each reads and writes at least."""
import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.default_rng(1)
IMAGES, SMALL, ROWS, HEADS = [16, 56, 56, 256], [128, 32, 32, 16], [1024, 512], [64, 128, 128]
WORDS, WEIGHTS = [1024, 10000], [4 << 20]
BYTES = {}


def size_of(tensor):
    return tensor.shape.num_elements() * tensor.dtype.size


def kernel(name, compute, *inputs):
    """A task that computes `compute` of placeholders. An input is a shape of random floats, or an array."""

    def make():
        feeds = {}
        for value in inputs:
            value = rng.normal(size=value).astype(np.float32) if isinstance(value, list) else value
            feeds[tf.placeholder(tf.as_dtype(value.dtype), value.shape)] = value
        result = compute(*feeds)
        results = result if isinstance(result, (list, tuple)) else [result]
        read = results if name == "gather" else [*feeds]
        BYTES[name] = sum(size_of(x) for x in [*read, *results])
        return feeds, [], list(dict.fromkeys(x.op for x in results))

    return make


def optimizer(name, new, passes):
    """The update of one variable; passes: arrays of its size that are read or written."""

    def make():
        variable = tf.get_variable("weights", WEIGHTS, initializer=tf.zeros_initializer())
        gradient = tf.placeholder(tf.float32, WEIGHTS)
        BYTES[name] = passes * size_of(gradient)
        train = new().apply_gradients([(gradient, variable)])
        return {gradient: rng.normal(size=WEIGHTS) * 1e-3}, [], [train]

    return make


def drawn(name, draw):
    def make():
        result = draw()
        BYTES[name] = size_of(result)
        return {}, [], [result.op]

    return make


def batch_norm(x, *scale_and_offset):
    return tf.nn.fused_batch_norm(x, *scale_and_offset, is_training=True)[0]


def batch_norm_gradient(dy, x, scale, mean, variance):
    return tf.raw_ops.FusedBatchNormGrad(y_backprop=dy, x=x, scale=scale, reserve_space_1=mean,
                                         reserve_space_2=variance).x_backprop


def layer_norm(x, scale, offset):
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-5)


def entropy(logits, labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def max_pool(x, size=3):
    return tf.nn.max_pool(x, size, 2, "SAME")


def max_pool_gradient(x, y, dy):
    return tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=dy, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1],
                                  padding="SAME")


def positive(shape):
    return np.abs(rng.normal(size=shape)).astype(np.float32) + 0.1


def ids(count, below):
    return rng.integers(0, below, count).astype(np.int32)


LISTED = [
    ("sum", tf.reduce_sum, IMAGES),
    ("sum of rows", lambda x: tf.reduce_sum(x, 1), WORDS),
    ("sum of columns", lambda x: tf.reduce_sum(x, 0), WORDS),
    ("mean of images", lambda x: tf.reduce_mean(x, [1, 2]), IMAGES),
    ("max of rows", lambda x: tf.reduce_max(x, 1), WORDS),
    ("argmax of rows", lambda x: tf.argmax(x, 1), WORDS),
    ("bias gradient", lambda x: tf.raw_ops.BiasAddGrad(out_backprop=x), IMAGES),
    ("softmax of words", tf.nn.softmax, WORDS),
    ("softmax of heads", tf.nn.softmax, HEADS),
    ("log softmax", tf.nn.log_softmax, WORDS),
    ("cross entropy", entropy, WORDS, ids(WORDS[0], WORDS[1])),
    ("batch norm", batch_norm, IMAGES, positive([256]), [256]),
    ("batch norm, small", batch_norm, SMALL, positive([16]), [16]),
    ("batch norm gradient", batch_norm_gradient, IMAGES, IMAGES, positive([256]), [256], positive([256])),
    ("layer norm", layer_norm, ROWS, [512], [512]),
    ("max pool", max_pool, [16, 112, 112, 64]),
    ("max pool 2 x 2", lambda x: max_pool(x, 2), [128, 28, 28, 32]),
    ("max pool gradient", max_pool_gradient, [16, 112, 112, 64], [16, 56, 56, 64], [16, 56, 56, 64]),
    ("average pool", lambda x: tf.nn.avg_pool(x, 2, 2, "SAME"), [16, 56, 56, 128]),
    ("gather", lambda x, i: tf.gather(x, i), [50000, 128], ids(8192, 50000)),
    ("segment sum", lambda x, i: tf.math.unsorted_segment_sum(x, i, 10000), [8192, 128], ids(8192, 10000)),
    ("transpose of heads", lambda x: tf.transpose(x, [0, 2, 1, 3]), [8, 128, 8, 64]),
    ("transpose to NCHW", lambda x: tf.transpose(x, [0, 3, 1, 2]), [16, 56, 56, 64]),
    ("transpose of a matrix", lambda x: tf.transpose(x), [2048, 2048]),
    ("concat of channels", lambda *x: tf.concat(x, 3), *4 * [[16, 28, 28, 64]]),
    ("split of channels", lambda x: tf.split(x, 4, 3), [16, 28, 28, 256]),
    ("pad", lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), [16, 56, 56, 64]),
    ("tile", lambda x: tf.tile(x, [1, 8]), ROWS),
    ("cumsum", lambda x: tf.cumsum(x, 1), WORDS),
    ("add", lambda x, y: x + y, IMAGES, IMAGES),
    ("add of a bias", tf.nn.bias_add, IMAGES, [256]),
    ("relu", tf.nn.relu, IMAGES),
    ("relu gradient", lambda dy, y: tf.raw_ops.ReluGrad(gradients=dy, features=y), IMAGES, IMAGES),
    ("tanh", tf.tanh, ROWS),
    ("sigmoid", tf.sigmoid, ROWS),
    ("exp", tf.exp, WEIGHTS),
    ("where", lambda x, y: tf.where(x > 0, x, y), IMAGES, IMAGES),
    ("cast to half", lambda x: tf.cast(x, tf.float16), IMAGES),
]
KERNELS = {
    **{name: kernel(name, *rest) for name, *rest in LISTED},
    "gradient descent": optimizer("gradient descent", lambda: tf.train.GradientDescentOptimizer(0.1), 3),
    "momentum": optimizer("momentum", lambda: tf.train.MomentumOptimizer(0.1, 0.9), 5),
    "adam": optimizer("adam", lambda: tf.train.AdamOptimizer(1e-3), 7),
    "rmsprop": optimizer("rmsprop", lambda: tf.train.RMSPropOptimizer(1e-3), 7),
    "random uniform": drawn("random uniform", lambda: tf.random_uniform(WEIGHTS)),
    "random normal": drawn("random normal", lambda: tf.random_normal(WEIGHTS)),
    "truncated normal": drawn("truncated normal", lambda: tf.truncated_normal(WEIGHTS)),
}
