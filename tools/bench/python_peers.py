"""The peers of the suite "python": one task in a process of its own, which prints "value NUMBER". PyTorch and
TensorFlow have different interpreters. The loaders of training input are the programs in $PEER_SCRIPTS.

    python_peers.py gather THREADS         rows/s: a permutation of the complete table, and its rows by index, with
                                           one thread or all, whichever is faster
    python_peers.py map WORKERS            images/s: DataLoader with a function of NumPy in worker processes
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
    tasks = {"gather": gather, "map": map_rate, "first_torch": first_torch, "first_tensorflow": first_tensorflow}
    print("value", tasks[sys.argv[1]](*sys.argv[2:]))
