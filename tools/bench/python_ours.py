"""Ours of the suite "python": one task in a process of its own, which prints "value NUMBER".

    python_ours.py input RECORDS THREADS    images/s of training input, into PyTorch tensors
    python_ours.py slices THREADS           rows/s of shuffled batches, into PyTorch tensors
    python_ours.py map WORKERS              images/s through a function of NumPy in processes, into PyTorch tensors
    python_ours.py write                    records/s: records of 64 bytes, one call for each
    python_ours.py parse                    examples/s: Examples to dicts
    python_ours.py first RECORDS THREADS    seconds from before the import to the first batch
    python_ours.py memory RECORDS THREADS   "peak", "growth" and "dropped" in MB: see python.c"""
import sys
import time

START = time.perf_counter()
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
BATCH = 64
WARM_BATCHES, BATCHES = 8, 96  # as C measures
MIB = 1 << 20


def image_batches(records):
    import millrace as mr

    features = {"image/encoded": mr.String, "image/class/label": mr.Int64}
    return (
        records.parse_example(features)
        .decode_image(224, crop="random_resized", flip=True, mean=MEAN, std=STD, seed=1)
        .batch(BATCH, drop_remainder=True)
        .prefetch(2)
    )


def input_rate(records, threads):
    import millrace as mr

    with image_batches(mr.Dataset.records(records).shuffle(seed=1).repeat()).torch(threads=int(threads)) as iterator:
        for _ in range(WARM_BATCHES):
            next(iterator)
        start = time.perf_counter()
        for _ in range(BATCHES):
            images, labels = next(iterator)
        seconds = time.perf_counter() - start
    assert images.shape == (BATCH, 224, 224, 3) and labels.shape == (BATCH,)
    return BATCHES * BATCH / seconds


def slices_rate(threads):
    import millrace as mr
    from python_peers import rate, table

    dataset = mr.Dataset.from_tensor_slices(table()).shuffle(seed=1).repeat().batch(256).prefetch()
    with dataset.torch(threads=int(threads)) as iterator:
        return rate(iterator, 256)


def map_rate(workers):
    import millrace as mr
    from python_peers import augment, pictures, rate

    dataset = mr.Dataset.from_tensor_slices(pictures()).shuffle(seed=1).repeat()
    dataset = dataset.map(augment, processes=int(workers)).batch(BATCH, drop_remainder=True).prefetch()
    with dataset.torch(threads=int(workers)) as iterator:
        return rate(iterator, BATCH)


def write_rate():
    import millrace as mr
    from python_peers import rate_of_writing

    return rate_of_writing(mr.RecordWriter)


def parse_rate():
    import millrace as mr
    from python_peers import features, rate_of_parsing

    return rate_of_parsing(mr.Example.parse, mr.Example.encode(features()))


def first_seconds(records, threads):
    import millrace as mr

    dataset = image_batches(mr.Dataset.records(records).shuffle(seed=1))
    with dataset.numpy(threads=int(threads)) as iterator:
        images, _ = next(iterator)
        seconds = time.perf_counter() - START
    assert images.shape == (BATCH, 224, 224, 3)
    return seconds


def status_mb(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024


def memory(records, threads):
    import millrace as mr

    options = {"threads": int(threads), "budget_bytes": 128 * MIB}
    dataset = image_batches(mr.Dataset.records(records).shuffle(seed=1).take(2 * BATCH))
    before = status_mb("VmRSS")

    def epochs(count, batches):
        for _ in range(count):
            iterator = dataset.numpy(**options)
            for number, _ in enumerate(iterator, 1):
                if number == batches:
                    break
            del iterator
        return status_mb("VmRSS")

    warm = epochs(20, 0)
    after = epochs(100, 0)
    dropped_warm = epochs(20, 1)
    dropped = epochs(200, 1)
    print("peak", status_mb("VmHWM") - before)
    print("growth", after - warm)
    print("dropped", dropped - dropped_warm)
    return after


if __name__ == "__main__":
    tasks = {
        "input": input_rate, "slices": slices_rate, "map": map_rate, "write": write_rate, "parse": parse_rate,
        "first": first_seconds, "memory": memory,
    }  # fmt: skip
    try:
        print("value", tasks[sys.argv[1]](*sys.argv[2:]))
    except ImportError as error:
        sys.exit(f"{sys.argv[1]}: {error}")
