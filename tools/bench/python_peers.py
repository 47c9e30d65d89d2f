"""The peers of the suite "python": one task in a process of its own, which prints "value NUMBER". PyTorch and
TensorFlow have different interpreters. The loaders of training input are the programs in $PEER_SCRIPTS.

    python_peers.py gather THREADS         rows/s: a permutation of the complete table, and its rows by index, with
                                           one thread or all, whichever is faster
    python_peers.py map WORKERS            images/s: DataLoader with a function of NumPy in worker processes
    python_peers.py write                  records/s: TensorFlow's writer, one call for each record
    python_peers.py parse                  examples/s: protobuf's messages, and the lists of their values
    python_peers.py first_torch JPEGS WORKERS, python_peers.py first_tensorflow RECORDS THREADS
                                           seconds from before the import to the first batch"""
import os
import sys
import time

START = time.perf_counter()
ROWS, COLUMNS = 1_000_000, 64
BATCH = 64
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)


def rate(iterator, per, warm_seconds=1.0, seconds=3.0):
    """Elements per second of an endless iterator over batches of `per` elements."""
    end = time.perf_counter() + warm_seconds
    while time.perf_counter() < end:
        next(iterator)
    count, start = 0, time.perf_counter()
    while True:
        next(iterator)
        count += per
        now = time.perf_counter()
        if now >= start + seconds:
            return count / (now - start)


def table():
    import numpy as np

    return np.random.default_rng(0).standard_normal((ROWS, COLUMNS), np.float32)


def pictures():
    import numpy as np

    return np.random.default_rng(0).integers(0, 256, (2000, 96, 96, 3), np.uint8)


def augment(picture):
    """A usual augmentation in NumPy: pad, crop, flip, normalize."""
    import numpy as np

    padded = np.pad(picture, ((4, 4), (4, 4), (0, 0)), mode="reflect")
    y, x = int(picture[0, 0, 0]) % 9, int(picture[0, 0, 1]) % 9
    cropped = padded[y : y + 96, x : x + 96]
    if picture[0, 0, 2] % 2:
        cropped = cropped[:, ::-1]
    return (cropped - np.float32(MEAN)) / np.float32(STD)


def gather(threads):
    import torch

    rows = torch.from_numpy(table())

    def batches():
        while True:
            order = torch.randperm(ROWS)
            for start in range(0, ROWS - 255, 256):
                yield rows[order[start : start + 256]]

    def with_threads(count):
        torch.set_num_threads(count)
        return rate(batches(), 256)

    return max(map(with_threads, sorted({1, int(threads)})))


def map_rate(workers):
    import torch

    class Pictures(torch.utils.data.Dataset):
        def __init__(self):
            self.all = pictures()

        def __len__(self):
            return len(self.all)

        def __getitem__(self, index):
            return augment(self.all[index])

    loader = torch.utils.data.DataLoader(
        Pictures(), BATCH, shuffle=True, num_workers=int(workers), drop_last=True, persistent_workers=True
    )

    def batches():
        while True:
            yield from loader

    return rate(batches(), BATCH)


def rate_of_writing(writer):
    """Records per second through a writer's class."""
    import tempfile

    record, count = bytes(64), 200_000
    with tempfile.TemporaryDirectory() as directory:
        best = 0
        for _ in range(5):
            start = time.perf_counter()
            with writer(os.path.join(directory, "records")) as file:
                for _ in range(count):
                    file.write(record)
            best = max(best, count / (time.perf_counter() - start))
    return best


def features():
    """Of an image, as in most records of images."""
    return {
        "image/encoded": b"x" * 1000,
        "image/format": b"jpeg",
        "image/filename": b"n01440764_10026.JPEG",
        "image/height": 500,
        "image/width": 375,
        "image/class/label": 17,
        "image/class/text": b"tench",
        "image/object/bbox/xmin": [0.1, 0.25, 0.5],
        "image/object/class/label": [3, 4, 5],
    }


def rate_of_parsing(parse, record):
    """Calls of a function per second."""
    count, best = 20_000, 0
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            parse(record)
        best = max(best, count / (time.perf_counter() - start))
    return best


def write_rate():
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    import tensorflow as tf

    return rate_of_writing(tf.io.TFRecordWriter)


def parse_rate():
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    import tensorflow as tf

    def feature(value):
        values = value if isinstance(value, list) else [value]
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def parse(record):
        found = tf.train.Example.FromString(record).features.feature
        return {name: list(getattr(value, value.WhichOneof("kind")).value) for name, value in found.items()}

    made = tf.train.Features(feature={name: feature(value) for name, value in features().items()})
    return rate_of_parsing(parse, tf.train.Example(features=made).SerializeToString())


def first_torch(jpegs, workers):
    import torch
    import torchvision
    import torchvision.io as io
    from torchvision.transforms import v2

    change = v2.Compose([
        v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([m / 255 for m in MEAN], [s / 255 for s in STD]),
    ])  # fmt: skip
    load = lambda path: io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)
    dataset = torchvision.datasets.ImageFolder(jpegs, change, loader=load)
    images, _ = next(iter(torch.utils.data.DataLoader(dataset, BATCH, shuffle=True, num_workers=int(workers))))
    seconds = time.perf_counter() - START
    assert images.shape == (BATCH, 3, 224, 224)
    return seconds


def first_tensorflow(records, threads):
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    import glob

    import tensorflow as tf

    features = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }

    def make(record):
        example = tf.io.parse_single_example(record, features)
        encoded = example["image/encoded"]
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(encoded), tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4]),
            min_object_covered=0.0, aspect_ratio_range=[3 / 4, 4 / 3], area_range=[0.08, 1.0],
            use_image_if_no_bounding_boxes=True,
        )  # fmt: skip
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.resize(tf.io.decode_and_crop_jpeg(encoded, window, channels=3), [224, 224])
        return (tf.image.random_flip_left_right(image) - MEAN) / STD, example["image/class/label"]

    count = int(threads)
    dataset = tf.data.TFRecordDataset(sorted(glob.glob(records)), num_parallel_reads=count).shuffle(1000)
    images, _ = next(iter(dataset.map(make, num_parallel_calls=count).batch(BATCH).prefetch(2)))
    seconds = time.perf_counter() - START
    assert images.shape == (BATCH, 224, 224, 3)
    return seconds


if __name__ == "__main__":
    tasks = {
        "gather": gather, "map": map_rate, "write": write_rate, "parse": parse_rate, "first_torch": first_torch,
        "first_tensorflow": first_tensorflow,
    }  # fmt: skip
    print("value", tasks[sys.argv[1]](*sys.argv[2:]))
