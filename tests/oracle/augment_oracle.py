"""The fused path from an image file to a batch row, compared with the sequence of TensorFlow operators that does the
same."""
import glob
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

DIRECTORY = os.environ["MILLRACE_ORACLE"]
DTYPES = {"uint8": np.uint8, "float": np.float32, "half": np.float16, "bfloat16": tf.bfloat16.as_numpy_dtype}
RANDOM_WINDOW, CENTER_WINDOW = 4, 5
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


def work(directory, cases):
    """Runs augment_work. A case is a file and its settings. Returns the results in the order of the cases."""
    lines = [f"{path} {directory}/result-{i} " + " ".join(f"{k}={v}" for k, v in settings.items()) + "\n"
             for i, (path, settings) in enumerate(cases)]
    subprocess.run([f"{DIRECTORY}/augment_work"], input="".join(lines), text=True, check=True)
    return [read_tensor(f"{directory}/result-{i}") for i in range(len(cases))]


def images(directory):
    """A (path, pixels) pair for each kind of image that TensorFlow decodes."""
    subprocess.run([f"{DIRECTORY}/image_work"], input=f"make {directory}\n", text=True, check=True)
    found = []
    for path in sorted(glob.glob(directory + "/*.jpg") + glob.glob(directory + "/*.png")):
        with open(path, "rb") as file:
            data = file.read()
        try:
            found.append((path, tf.io.decode_image(data, 3, expand_animations=False).numpy()))
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            pass
    return found


def laid_out(pixels, settings):
    if settings.get("flip"):
        pixels = pixels[:, ::-1]
    return pixels.transpose(2, 0, 1) if settings.get("layout") else pixels


def windows(directory, found):
    """Cropping and padding, compared with tf.image.resize_with_crop_or_pad and with a crop of tf.pad. Bytes are
    equal."""
    random = np.random.RandomState(6)
    cases, expected = [], []
    for i in range(400):
        path, pixels = found[random.randint(len(found))]
        height, width = pixels.shape[:2]
        settings = {"dtype": "uint8", "flip": int(random.randint(2)), "layout": int(random.randint(2))}
        if i % 2:
            h, w = random.randint(1, 2 * height), random.randint(1, 2 * width)
            settings |= {"crop": CENTER_WINDOW, "height": h, "width": w}
            result = tf.image.resize_with_crop_or_pad(pixels, h, w).numpy()
        else:
            reflect = int(random.randint(2))
            padding = random.randint(0, min(height, width))
            padded = tf.pad(pixels, [[padding, padding], [padding, padding], [0, 0]],
                            "REFLECT" if reflect else "CONSTANT").numpy()
            h, w = random.randint(1, padded.shape[0] + 1), random.randint(1, padded.shape[1] + 1)
            y, x = random.randint(0, padded.shape[0] - h + 1), random.randint(0, padded.shape[1] - w + 1)
            settings |= {"crop": RANDOM_WINDOW, "pad": reflect, "padding": padding, "height": h, "width": w,
                         "x": x - padding, "y": y - padding, "w": w, "h": h}
            result = padded[y:y + h, x:x + w]
        if settings["flip"] and i % 2:
            # A flip needs the complete region in the settings.
            settings |= {"x": -((w - width) // 2) if w > width else (width - w) // 2,
                         "y": -((h - height) // 2) if h > height else (height - h) // 2, "w": w, "h": h}
        cases.append((path, settings))
        expected.append(laid_out(result, settings))
    for (path, settings), theirs, ours in zip(cases, expected, work(directory, cases)):
        same = not isinstance(ours, str) and ours.shape == theirs.shape and (ours == theirs).all()
        check(f"window {os.path.basename(path)} {settings}", same, ours if isinstance(ours, str) else "other pixels")


ADJUST = {"brightness": tf.image.adjust_brightness, "contrast": tf.image.adjust_contrast,
          "saturation": tf.image.adjust_saturation, "hue": tf.image.adjust_hue}
STEPS = ["brightness", "contrast", "saturation", "hue"]
PLACES = ["first", "second", "third", "fourth"]


def colors(directory, found):
    """Color adjustments in any order, after cropping and resizing, compared with tf.image.adjust_* on floats in [0, 1].
    Floats differ by at most 1e-5 of the range. Narrower types differ from TensorFlow's floats by at most that and their
    rounding error."""
    random = np.random.RandomState(7)
    cases, expected = [], []
    for i in range(500):
        path, pixels = found[random.randint(len(found))]
        height, width = pixels.shape[:2]
        h, w = random.randint(1, height + 1), random.randint(1, width + 1)
        y, x = random.randint(0, height - h + 1), random.randint(0, width - w + 1)
        order = list(random.permutation(4)) if i % 3 else [0, 1, 2, 3]
        settings = {"height": random.randint(1, 70), "width": random.randint(1, 70), "x": x, "y": y, "w": w, "h": h,
                    "dtype": ["float", "float", "half", "bfloat16", "uint8"][i % 5],
                    "flip": int(random.randint(2)), "layout": int(random.randint(2))}
        if settings["dtype"] != "uint8":
            settings["std"] = 255
        if i % 3:
            settings |= {place: order[k] + 1 for k, place in enumerate(PLACES)}
        # Use float32 values, because settings are passed to augment_work as text.
        drawn = {"brightness": random.uniform(-0.5, 0.5), "contrast": random.uniform(0.1, 2),
                 "saturation": random.uniform(0.01, 2.5), "hue": random.uniform(-0.5, 0.5)}
        drawn = {name: np.float32(value) for name, value in drawn.items() if i < 60 or random.randint(3)}
        if i < 60:
            drawn = {STEPS[i % 4]: drawn[STEPS[i % 4]]}
        settings |= {name: repr(float(value)) for name, value in drawn.items()}
        result = tf.image.resize(tf.image.convert_image_dtype(pixels[y:y + h, x:x + w], tf.float32),
                                 (settings["height"], settings["width"]))
        for k in order:
            if STEPS[k] in drawn:
                result = ADJUST[STEPS[k]](result, drawn[STEPS[k]])
        cases.append((path, settings))
        expected.append(laid_out(result.numpy(), settings))
    worst = 0
    for (path, settings), theirs, ours in zip(cases, expected, work(directory, cases)):
        name = f"colors {os.path.basename(path)} {settings}"
        if isinstance(ours, str) or ours.shape != theirs.shape:
            check(name, False, ours if isinstance(ours, str) else f"{ours.shape}")
            continue
        if settings["dtype"] == "uint8":
            allowed, theirs = 1e-3 + 0.5, np.clip(theirs * 255, 0, 255)
        else:
            allowed = 1e-5 + np.abs(theirs) * {"float": 0, "half": 2.0 ** -11, "bfloat16": 2.0 ** -8}[settings["dtype"]]
        apart = np.abs(theirs.astype(np.float64) - ours.astype(np.float64))
        if settings["dtype"] == "float":
            worst = max(worst, apart.max())
        check(name, (apart <= allowed).all(), f"differs by {apart.max()}")
    print(f"colors: floats differ by {worst:.1e} at most")


with tempfile.TemporaryDirectory() as directory:
    found = images(directory)
    windows(directory, found)
    colors(directory, found)
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed != 0)
