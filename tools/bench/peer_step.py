"""TensorFlow's side of the suite "step": the same network and kernels. Tasks to measure come from standard input.

    peer_step.py THREADS SIZE BATCH

Each input line is "TASK COUNT". The answer is a line "value SECONDS BUSY": the average wall-clock time of one run,
and its processor time in all threads."""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.logging.set_verbosity(tf.logging.ERROR)
threads, size, batch = (int(a) for a in sys.argv[1:4])
FILTERS = [16, 32, 64, 64]


def network():
    images = tf.Variable(tf.random.uniform([batch, size, size, 3], -1, 1), trainable=False)
    labels = tf.Variable(tf.random.uniform([batch], 0, 6, tf.int64), trainable=False)
    h, decay = images, []
    channels = 3
    for filters in FILTERS:
        w = tf.Variable(tf.random.truncated_normal([3, 3, channels, filters], 0, (2 / (9 * channels)) ** 0.5))
        decay.append(1e-4 * tf.nn.l2_loss(w))
        h = tf.nn.conv2d(h, w, [1, 1, 1, 1], "SAME")
        scale, offset = tf.Variable(tf.ones([filters])), tf.Variable(tf.zeros([filters]))
        h = tf.nn.fused_batch_norm(h, scale, offset, is_training=True)[0]
        h = tf.nn.max_pool(tf.nn.relu(h), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        channels = filters
    h = tf.nn.dropout(tf.reshape(h, [batch, -1]), rate=0.3)
    w = tf.Variable(tf.random.truncated_normal([int(h.shape[1]), 6], 0, 0.1))
    decay.append(1e-4 * tf.nn.l2_loss(w))
    logits = tf.matmul(h, w) + tf.Variable(tf.zeros([6]))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return tf.train.AdamOptimizer(1e-3).minimize(loss + tf.add_n(decay))


def tasks():
    made = {"step": network()}
    side, channels = size, 3
    for index, filters in enumerate(FILTERS, 1):
        x = tf.Variable(tf.random.normal([batch, side, side, channels]), trainable=False)
        y = tf.Variable(tf.random.normal([batch, side, side, filters]), trainable=False)
        dy = tf.Variable(tf.random.normal([batch, side, side, filters]), trainable=False)
        w = tf.Variable(tf.random.normal([3, 3, channels, filters]), trainable=False)
        ones, none = tf.Variable(tf.ones([filters]), trainable=False), tf.zeros([0])
        pooling = dict(ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
        convolution = dict(strides=[1, 1, 1, 1], padding="SAME")
        made |= {
            f"conv{index}": tf.raw_ops.Conv2D(input=x, filter=w, **convolution).op,
            f"conv{index}_input": tf.raw_ops.Conv2DBackpropInput(
                input_sizes=x.shape.as_list(), filter=w, out_backprop=dy, **convolution
            ).op,
            f"conv{index}_filter": tf.raw_ops.Conv2DBackpropFilter(
                input=x, filter_sizes=w.shape.as_list(), out_backprop=dy, **convolution
            ).op,
            f"norm{index}": tf.raw_ops.FusedBatchNormV3(x=y, scale=ones, offset=ones, mean=none, variance=none).y.op,
            f"norm{index}_grad": tf.raw_ops.FusedBatchNormGradV3(
                y_backprop=dy, x=y, scale=ones, reserve_space_1=ones, reserve_space_2=ones, reserve_space_3=none
            )[0].op,
            f"relu{index}": tf.raw_ops.Relu(features=y).op,
            f"relu{index}_grad": tf.raw_ops.ReluGrad(gradients=dy, features=y).op,
            f"pool{index}": tf.raw_ops.MaxPool(input=y, **pooling).op,
        }
        side, channels = side // 2, filters
    return made


def main():
    made = tasks()
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1)
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        runs = {}
        for line in sys.stdin:
            name, count = line.split()
            if name not in runs:
                runs[name] = session.make_callable(made[name])
                runs[name]()
                runs[name]()
            start, busy = time.perf_counter(), time.process_time()
            for _ in range(int(count)):
                runs[name]()
            seconds, busy = time.perf_counter() - start, time.process_time() - busy
            print(f"value {seconds / int(count):.9f} {busy / int(count):.9f}", flush=True)


if __name__ == "__main__":
    main()
