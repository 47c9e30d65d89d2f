"""Input from queues, readers, TFRecords and every kind of iterator."""
import atexit
import os
import shutil
import tempfile

from training import *

DIRECTORY = tempfile.mkdtemp(prefix="programs-")
atexit.register(shutil.rmtree, DIRECTORY, True)


def int64s(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def records(name="train", count=60, files=2):
    """Files of Examples: features x (4 floats), y, word and words (any number)."""
    paths = []
    for f in range(files):
        paths.append(os.path.join(DIRECTORY, "%s-%d.tfrecords" % (name, f)))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for i in range(count // files):
                number = f * 1000 + i
                x, y = blobs(number, 1, 4, 3)
                example = tf.train.Example(features=tf.train.Features(feature={
                    "x": tf.train.Feature(float_list=tf.train.FloatList(value=x[0])),
                    "y": int64s(int(y[0])),
                    "words": int64s(*ints(number, 9, number % 4)),
                    "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(i % 200, i % 200 + 6))])),
                }))  # fmt: skip
                writer.write(example.SerializeToString())
    return paths


def parse(serialized):
    features = tf.parse_single_example(serialized, {
        "x": tf.FixedLenFeature([4], tf.float32), "y": tf.FixedLenFeature([], tf.int64),
        "words": tf.VarLenFeature(tf.int64), "raw": tf.FixedLenFeature([], tf.string)})  # fmt: skip
    raw = tf.cast(tf.decode_raw(features["raw"], tf.uint8), tf.float32) / 255
    raw.set_shape([6])
    return tf.concat([features["x"], raw], 0), tf.cast(features["y"], tf.int32)


def model(x, y, width=10):
    x = tf.reshape(x, [-1, width])
    h = tf.layers.dense(x, 8, tf.nn.relu, name="hidden")
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(h, 3, name="logits"))
    step = tf.train.get_or_create_global_step()
    return loss, tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, step)


@program
def queue_runners_and_records():
    """string_input_producer, TFRecordReader, decoding, tf.train.batch: the input pipeline of 2016."""
    names = tf.train.string_input_producer(records(), num_epochs=1, shuffle=False)
    _, serialized = tf.TFRecordReader().read(names)
    x, y = parse(serialized)
    x, y = tf.train.batch([x, y], batch_size=8, num_threads=1, capacity=40, allow_smaller_final_batch=True)
    loss, train = model(x, y)
    return Training(([loss, tf.shape(x)], [train]), queues=True)


@program
def shuffled_queue_of_one_epoch():
    """tf.train.shuffle_batch: the order differs from run to run, but an epoch has the same sums."""
    names = tf.train.string_input_producer(records(), num_epochs=1, shuffle=True)
    _, serialized = tf.TFRecordReader().read(names)
    x, y = parse(serialized)
    x, y = tf.train.shuffle_batch([x, y], batch_size=10, capacity=50, min_after_dequeue=20, num_threads=2, seed=1)
    total = tf.get_variable("total", [10], initializer=tf.zeros_initializer(), trainable=False)
    labels = tf.get_variable("labels", [3], tf.int32, initializer=tf.zeros_initializer(), trainable=False)
    add = tf.group(total.assign_add(tf.reduce_sum(x, 0)), labels.assign_add(tf.bincount(y, minlength=3)))
    return Training(([tf.shape(x)], [add]), queues=True)


@program
def csv_lines():
    path = os.path.join(DIRECTORY, "lines.csv")
    with open(path, "w") as file:
        file.write("a,b,c,label\n")
        file.writelines("%d,%.3f,%s,%d\n" % (i, i * 0.37 % 5, "" if i % 5 == 0 else "w%d" % (i % 3), i % 3)
                        for i in range(50))
    names = tf.train.string_input_producer([path], shuffle=False)
    key, line = tf.TextLineReader(skip_header_lines=1).read(names)
    a, b, c, label = tf.decode_csv(line, [[0], [0.0], ["none"], [0]])
    known = tf.cast(tf.equal(c, "none"), tf.float32)
    x = tf.stack([tf.cast(a, tf.float32) / 50, b, known])
    x, y, keys = tf.train.batch([x, label, key], 8, capacity=16)
    loss, train = model(x, y, 3)
    return Training(([loss, tf.strings.substr(keys, -4, 4)], [train]), queues=True, steps=10)


@program
def producers_and_buckets():
    """slice_input_producer, range_input_producer, batches with dynamic padding, and bucket-free joins."""
    xs, ys = blobs(1, 40, 10, 3)
    x, y = tf.train.slice_input_producer([tf.constant(xs), tf.constant(ys)], shuffle=False)
    number = tf.train.range_input_producer(7, shuffle=False).dequeue()
    ragged = tf.range(number)
    x, y, ragged = tf.train.batch([x, y, ragged], 6, dynamic_pad=True, capacity=12)
    loss, train = model(x, y)
    return Training(([loss, ragged], [train]), queues=True)


@program
def hand_made_queue():
    """A FIFOQueue filled by the training loop and drained by the model; a priority queue; a padding queue."""
    x_, y_ = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.int32, [None])
    queue = tf.FIFOQueue(50, [tf.float32, tf.int32], [[10], []], name="examples")
    enqueue = queue.enqueue_many([x_, y_])
    x, y = queue.dequeue_many(4)
    loss, train = model(x, y)
    priority = tf.PriorityQueue(100, [tf.int32], [[]])
    push = priority.enqueue_many([tf.cast(y_, tf.int64), y_ * 10])
    first = priority.dequeue_many(3)
    padded = tf.PaddingFIFOQueue(20, [tf.int32], [[None]])
    put = tf.group(padded.enqueue(tf.range(2)), name="put_a")
    with tf.control_dependencies([put]):
        put = padded.enqueue(tf.range(4))
    taken = [first, padded.dequeue_many(2)]
    return Training(([], [enqueue, push, put]), ([loss], [train]), ([queue.size()], []), (taken, []),
                    feed=lambda i: dict(zip([x_, y_], blobs(i, 4, 10, 3))))


@program
def one_shot_iterator():
    dataset = tf.data.TFRecordDataset(records()).map(parse, num_parallel_calls=2)
    dataset = dataset.shuffle(20, seed=7).repeat(2).batch(9).prefetch(1)
    x, y = dataset.make_one_shot_iterator().get_next()
    loss, train = model(x, y)
    return Training(([loss, y], [train]))


@program
def initializable_iterator():
    """Files from a placeholder-free tensor, interleaved; a filter, a padded batch of sparse words."""
    limit = tf.Variable(2, trainable=False)

    def words(serialized):
        features = tf.parse_single_example(serialized, {"words": tf.VarLenFeature(tf.int64)})
        return tf.sparse_tensor_to_dense(features["words"])

    files = tf.data.Dataset.from_tensor_slices(records())
    both = files.interleave(lambda f: tf.data.TFRecordDataset(f), cycle_length=2, block_length=3)
    pairs = tf.data.Dataset.zip((both.map(parse), both.map(words)))
    pairs = pairs.filter(lambda xy, w: tf.size(w) > 0)
    pairs = pairs.padded_batch(5, ((([10], []), [None])), drop_remainder=True).repeat()
    iterator = pairs.make_initializable_iterator()
    (x, y), w = iterator.get_next()
    loss, train = model(x, y)
    return Training(([loss, w, limit], [train]), setup=[iterator.initializer])


@program
def reinitializable_iterator():
    """Training and validation from one iterator, which is initialized with either dataset."""
    train_set = tf.data.Dataset.from_tensor_slices(blobs(1, 40, 10, 3)).shuffle(40, seed=3).repeat().batch(8)
    valid_set = tf.data.Dataset.from_tensor_slices(blobs(2, 16, 10, 3)).batch(16)
    iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(train_set),
                                               tf.data.get_output_shapes(train_set))
    x, y = iterator.get_next()
    use_train, use_valid = iterator.make_initializer(train_set), iterator.make_initializer(valid_set)
    loss, train = model(x, y)
    return Training(([], [use_train]), ([loss], [train]), ([loss], [train]), ([], [use_valid]), ([loss, y], []),
                    steps=10)


@program
def feedable_iterator():
    """A handle that is fetched and fed selects the iterator."""
    train_set = tf.data.Dataset.from_tensor_slices(blobs(1, 40, 10, 3)).repeat().batch(8)
    valid_set = tf.data.Dataset.from_tensor_slices(blobs(2, 16, 10, 3)).repeat().batch(4)
    handle_variable = tf.Variable([b"", b""], trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES],
                                  name="handles", dtype=tf.string)
    one, two = train_set.make_one_shot_iterator(), valid_set.make_initializable_iterator()
    store = handle_variable.assign(tf.stack([one.string_handle(), two.string_handle()]))
    which = tf.placeholder(tf.int32, [])
    iterator = tf.data.Iterator.from_string_handle(handle_variable[which], tf.data.get_output_types(train_set),
                                                   tf.data.get_output_shapes(train_set))
    x, y = iterator.get_next()
    loss, train = model(x, y)
    return Training(([loss, y], [train]), setup=[two.initializer, store.op], feed=lambda i: {which: int(i % 3 == 2)})


@program
def dataset_of_text_and_windows():
    """Text lines, flat_map, windows, scan-like state, enumerate, concatenate, take_while, sampling, caching."""
    path = os.path.join(DIRECTORY, "text.txt")
    with open(path, "w") as file:
        file.writelines("line %d of text\n" % i for i in range(30))
    lines = tf.data.TextLineDataset(path).skip(2)
    numbers = lines.map(lambda s: tf.string_to_number(tf.string_split([s]).values[1], tf.int32))
    windows = numbers.window(4, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(4))
    pairs = windows.enumerate().concatenate(windows.take(2).enumerate(100)).cache()
    running = pairs.apply(tf.data.experimental.scan(np.int64(0), lambda s, e: (s + e[0], (s, e[1]))))
    running = running.apply(tf.data.experimental.take_while(lambda s, w: s < 300))
    dense = running.apply(tf.data.experimental.group_by_window(
        lambda s, w: s % 2, lambda key, d: d.batch(2), window_size=2)).repeat()
    s, w = dense.make_one_shot_iterator().get_next()
    x = tf.cast(w, tf.float32) / 30
    v = tf.get_variable("v", [4, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, v)[:, 0] - tf.cast(s, tf.float32) / 100))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return Training(([loss, s, w], [train]))


@program
def bucketed_sequences():
    """bucket_by_sequence_length into an RNN, with a generator in Python."""

    def sentences():
        for i in range(40):
            yield ints(i, 9, 1 + i * 7 % 11), i % 3

    dataset = tf.data.Dataset.from_generator(sentences, (tf.int32, tf.int32), ([None], []))
    dataset = dataset.apply(tf.data.experimental.bucket_by_sequence_length(
        lambda w, y: tf.size(w), [4, 8], [4, 4, 4])).repeat()
    words, y = dataset.make_one_shot_iterator().get_next()
    n = tf.reduce_sum(tf.cast(words > 0, tf.int32), 1) + 1
    table = tf.get_variable("table", [9, 5])
    _, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(6), tf.gather(table, words), dtype=tf.float32,
                                 sequence_length=tf.minimum(n, tf.shape(words)[1]))
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(state, 3))
    return Training(([loss, tf.shape(words)], [tf.train.AdagradOptimizer(0.1).minimize(loss)]), steps=12)


@program
def images_from_files():
    """PNG and JPEG files listed with a pattern, decoded, resized, randomly cropped with seeds, batched."""
    with tf.Graph().as_default(), tf.Session() as session:
        for i in range(8):
            pixels = np.repeat(rng(i).integers(0, 256, [10, 10, 3]), 2, 1).astype(np.uint8)
            data = session.run(tf.image.encode_png(pixels))
            with open(os.path.join(DIRECTORY, "%d_%d.png" % (i, i % 3)), "wb") as file:
                file.write(data)

    def load(path):
        name = tf.string_split([path], "/").values[-1]
        label = tf.string_to_number(tf.strings.substr(name, 2, 1), tf.int32)
        image = tf.image.decode_png(tf.read_file(path), channels=3)
        image = tf.image.resize_images(tf.cast(image, tf.float32) / 255, [8, 8])
        image = tf.random_crop(image, [6, 6, 3], seed=2)
        return tf.image.random_flip_left_right(image, seed=3), label

    files = tf.data.Dataset.list_files(os.path.join(DIRECTORY, "*.png"), shuffle=False)
    dataset = files.map(load).apply(tf.data.experimental.shuffle_and_repeat(8, 5, seed=2)).batch(4)
    x, y = dataset.make_one_shot_iterator().get_next()
    loss, train = model(tf.reshape(x, [-1, 108]), y, 108)
    return Training(([loss, y, x], [train]))


@program
def staging_area():
    """A StagingArea between the input and the step."""
    x_, y_ = tf.placeholder(tf.float32, [8, 10]), tf.placeholder(tf.int32, [8])
    put = tf.raw_ops.Stage(values=[x_, y_], shared_name="area")
    x, y = tf.raw_ops.Unstage(dtypes=[tf.float32, tf.int32], shared_name="area")
    loss, train = model(tf.ensure_shape(x, [8, 10]), tf.ensure_shape(y, [8]))
    return Training(([], [put]), ([loss], [train]), feed=lambda i: dict(zip([x_, y_], blobs(i, 8, 10, 3))))
