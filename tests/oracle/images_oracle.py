"""Images decode to the same bytes as TensorFlow's, and resize to its values within 1e-5 of the range."""
import glob
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "image_work")
DTYPES = {"uint8": np.uint8, "uint16": np.uint16, "float": np.float32, "int32": np.int32, "int64": np.int64,
          "double": np.float64, "half": np.float16, "int16": np.int16, "int8": np.int8}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
METHODS = ["bilinear", "nearest", "area", "bicubic"]
passed = failed = 0


def check(name, good, why=""):
    global passed, failed
    passed += bool(good)
    failed += not good
    if not good:
        print("FAILED", name, why)


def read_tensor(path):
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"error: "):
        return data.decode()
    head, _, rest = data.partition(b"\n")
    words = head.decode().split()
    return np.frombuffer(rest, DTYPES[words[0]]).reshape([int(word) for word in words[2:]])


def write_tensor(path, array):
    with open(path, "wb") as file:
        file.write(" ".join(map(str, [NAMES[array.dtype], array.ndim, *array.shape])).encode() + b"\n")
        file.write(array.tobytes())


def work(commands):
    subprocess.run([PROGRAM], input="".join(" ".join(map(str, c)) + "\n" for c in commands), text=True, check=True)


def attempt(call):
    """The result, or None if TensorFlow reports an error."""
    try:
        return call().numpy()
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
        return None


def theirs(data, jpeg, channels, bits, ratio, plain, accurate, recover):
    if jpeg:
        return attempt(lambda: tf.io.decode_jpeg(data, channels, ratio, not plain, bool(recover),
                                                 dct_method="INTEGER_ACCURATE" if accurate else ""))
    return attempt(lambda: tf.io.decode_png(data, channels, tf.uint16 if bits == 16 else tf.uint8))


def decode(directory):
    work([("make", directory)])
    cases = []
    for path in sorted(glob.glob(directory + "/*.jpg")):
        cases += [(path, True, c, 8, r, p, a, 0) for c in (0, 1, 3)
                  for r, p, a in ((1, 0, 0), (1, 1, 0), (1, 0, 1), (2, 0, 0), (4, 0, 0), (8, 0, 0))]
        cases += [(path, False, 0, 16, 1, 0, 0, 0)]
    for path in sorted(glob.glob(directory + "/*.png")):
        cases += [(path, False, c, bits, 1, 0, 0, 0) for c in (0, 1, 3, 4) for bits in (8, 16)]
        cases += [(path, True, 0, 8, 1, 0, 0, 0)]
    # Truncated files, with and without permission to recover, and files with flipped bits.
    random = np.random.RandomState(1)
    for path in sorted(glob.glob(directory + "/*-0.*"))[:24]:
        with open(path, "rb") as file:
            data = file.read()
        for i in range(6):
            cut = data[:random.randint(len(data) // 3, len(data))] if i < 3 else bytearray(data)
            if i >= 3:
                cut[random.randint(len(data) // 2, len(data))] ^= 1 << random.randint(8)
            other = f"{path}.{i}"
            with open(other, "wb") as file:
                file.write(cut)
            jpeg = path.endswith("jpg")
            cases += [(other, jpeg, 0, 8, 1, 0, 0, 0)] + [(other, jpeg, 0, 8, 1, 0, 0, 1)] * jpeg
    out = [f"{directory}/decoded-{i}" for i in range(len(cases))]
    work([("decode", c[0], o, *c[2:]) for c, o in zip(cases, out)])
    for case, path in zip(cases, out):
        with open(case[0], "rb") as file:
            expected = theirs(file.read(), *case[1:])
        ours = read_tensor(path)
        name = f"decode {os.path.basename(case[0])} {case[1:]}"
        if expected is None or isinstance(ours, str):
            check(
                name, expected is None and isinstance(ours, str), f"ours {ours if isinstance(ours, str) else 'decodes'}"
            )
        else:
            same = expected.dtype == ours.dtype and expected.shape == ours.shape and (expected == ours).all()
            check(name, same, f"shapes {expected.shape} {ours.shape}")


def their_resize(images, method, size, align, half):
    operators = {"bilinear": tf.raw_ops.ResizeBilinear, "nearest": tf.raw_ops.ResizeNearestNeighbor,
                 "area": tf.raw_ops.ResizeArea, "bicubic": tf.raw_ops.ResizeBicubic}
    extra = {} if method == "area" else {"half_pixel_centers": half}
    return operators[method](images=images, size=size, align_corners=align, **extra).numpy()


def resize(directory):
    random = np.random.RandomState(2)
    cases = []
    for i in range(240):
        method = METHODS[i % 4]
        shape = (random.randint(1, 3), random.randint(1, 40), random.randint(1, 40), random.randint(1, 5))
        size = (int(random.randint(1, 60)), int(random.randint(1, 60)))
        rule = [(False, False), (True, False), (False, True)][random.randint(2 if method == "area" else 3)]
        if method == "area" and rule[0] and 1 in shape[1:3]:
            continue  # TensorFlow divides by a scale of 0
        images = random.uniform(0, 255, shape)
        dtype = [np.uint8, np.float32, np.int32, np.float64, np.float16, np.int16][random.randint(6)]
        cases.append((method, images.astype(dtype), size, *rule))
    for i, case in enumerate(cases):
        write_tensor(f"{directory}/images-{i}", case[1])
    work([("resize", f"{directory}/images-{i}", f"{directory}/resized-{i}", METHODS.index(m), *size, int(a), int(h))
          for i, (m, _, size, a, h) in enumerate(cases)])
    for i, (method, images, size, align, half) in enumerate(cases):
        expected, ours = their_resize(images, method, size, align, half), read_tensor(f"{directory}/resized-{i}")
        name = f"resize {method} {images.dtype} {images.shape} to {size} align {align} half {half}"
        if isinstance(ours, str) or ours.shape != expected.shape or ours.dtype != expected.dtype:
            check(name, False, ours if isinstance(ours, str) else f"{ours.dtype} {ours.shape}")
            continue
        apart = np.abs(expected.astype(np.float64) - ours.astype(np.float64)).max()
        check(name, apart <= 255e-5 and (method != "nearest" or apart == 0), f"differs by {apart}")


def region(directory):
    """The fused crop and resize, compared with tf.image.resize of the cropped decoded image."""
    random = np.random.RandomState(3)
    files = sorted(f for f in glob.glob(directory + "/*") if f.endswith((".jpg", ".png")))
    cases = []
    for i in range(300):
        path = files[random.randint(len(files))]
        with open(path, "rb") as file:
            data = file.read()
        whole = attempt(lambda: tf.io.decode_image(data, 3, expand_animations=False))
        if whole is None:
            continue
        height, width = whole.shape[:2]
        h, w = random.randint(1, height + 1), random.randint(1, width + 1)
        y, x = random.randint(0, height - h + 1), random.randint(0, width - w + 1)
        cases.append((path, METHODS[i % 4], random.randint(1, 70), random.randint(1, 70), x, y, w, h, i // 4 % 2,
                      whole[y:y + h, x:x + w]))
    work([("region", c[0], f"{directory}/region-{i}", METHODS.index(c[1]), *c[2:9]) for i, c in enumerate(cases)])
    for i, case in enumerate(cases):
        expected = tf.image.resize(case[9], case[2:4], case[1]).numpy().astype(np.float64)
        if case[8]:
            expected = expected[:, ::-1]
        ours = read_tensor(f"{directory}/region-{i}")
        name = f"region {os.path.basename(case[0])} {case[1:9]}"
        if isinstance(ours, str):
            check(name, False, ours)
            continue
        apart = np.abs(expected - ours).max()
        check(name, apart <= 255e-5, f"differs by {apart}")


def crop_ready(directory):
    """TensorFlow decodes the rewritten file to the original's pixels, and millrace's crops of it equal crops of those
    pixels."""
    random = np.random.RandomState(5)
    pairs = []
    for number, path in enumerate(sorted(glob.glob(directory + "/jpeg-*-?.jpg"))):
        for segment in (0, 1 + number % 3):
            pairs.append((path, f"{path[:-4]}-ready{segment}.jpg", segment))
    work([("ready", *pair) for pair in pairs])
    crops = []
    for path, ready, _ in pairs:
        with open(path, "rb") as file:
            data = file.read()
        with open(ready, "rb") as file:
            made = file.read()
        name = "ready " + os.path.basename(ready)
        for channels, ratio, plain, accurate in ((0, 1, 0, 0), (3, 1, 0, 1), (3, 1, 1, 0), (1, 1, 0, 0), (3, 4, 0, 0)):
            before = theirs(data, True, channels, 8, ratio, plain, accurate, 0)
            after = theirs(made, True, channels, 8, ratio, plain, accurate, 0)
            same = (before is None and after is None) or (before.shape == after.shape and (before == after).all())
            check(f"{name} {channels} {ratio} {plain} {accurate}", same)
        whole = theirs(data, True, 3, 8, 1, 0, 0, 0)
        height, width = whole.shape[:2]
        for _ in range(5):
            h, w = random.randint(1, height + 1), random.randint(1, width + 1)
            y, x = random.randint(0, height - h + 1), random.randint(0, width - w + 1)
            crops.append((ready, METHODS.index("nearest"), h, w, x, y, w, h, 0, whole[y:y + h, x:x + w]))
    work([("region", c[0], f"{directory}/crop-{i}", *c[1:9]) for i, c in enumerate(crops)])
    for i, case in enumerate(crops):
        ours = read_tensor(f"{directory}/crop-{i}")
        check(f"crop {os.path.basename(case[0])} {case[2:8]}",
              not isinstance(ours, str) and (ours == case[9]).all(), ours if isinstance(ours, str) else "other pixels")


def encode(directory):
    random = np.random.RandomState(4)
    for i, (channels, dtype) in enumerate([(1, np.uint8), (3, np.uint8), (2, np.uint8), (4, np.uint8), (3, np.uint16)]):
        image = random.randint(0, 256 if dtype == np.uint8 else 65536, (23, 31, channels)).astype(dtype)
        write_tensor(f"{directory}/image-{i}", image)
        kinds = ["png"] + ["jpeg"] * (channels in (1, 3) and dtype == np.uint8)
        work([("encode", f"{directory}/image-{i}", f"{directory}/encoded-{i}.{kind}", kind) for kind in kinds])
        for kind in kinds:
            with open(f"{directory}/encoded-{i}.{kind}", "rb") as file:
                ours = file.read()
            expected = tf.io.encode_png(image) if kind == "png" else tf.io.encode_jpeg(image)
            if kind == "jpeg":
                check(f"encode {kind} {image.shape}", ours == expected.numpy(), f"{len(ours)} bytes")
            else:
                decoded = tf.io.decode_png(ours, channels if channels != 2 else 0, image.dtype).numpy()
                check(f"encode {kind} {image.shape}", (decoded == image).all())


with tempfile.TemporaryDirectory() as directory:
    decode(directory)
    resize(directory)
    region(directory)
    crop_ready(directory)
    encode(directory)
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed != 0)
