"""Lines of text and rows of CSV equal those of TextLineDataset and CsvDataset, for random strings of the few characters
with a special meaning, and for every number format that either side might accept."""

import os
import random
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))
CASES = int(os.environ.get("MILLRACE_ORACLE_CASES", "600"))
DTYPES = {"s": tf.string, "f": tf.float32, "d": tf.float64, "i": tf.int32, "l": tf.int64}
NUMBERS = [
    "1",
    " 1",
    "1\t",
    "+1",
    "-1",
    "- 1",
    "1.5",
    "1.",
    " .5 ",
    ".",
    "1e5",
    "1E+2",
    "1e",
    "1e-3",
    "nan",
    "-NaN",
    "inf",
    "-INF",
    "+inf",
    "infinity",
    "infin",
    "0x10",
    "0X1P3",
    "0x",
    "1f",
    "1d5",
    "1_0",
    "0012",
    "-0",
    "1 2",
    "99999999999999999999",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e400",
    "0.1",
    "16777217",
    "3.4028236e38",
    "1e39",
]


def theirs(dataset):
    lines, errors = [], 0
    iterator = iter(dataset)
    while errors < 40:
        try:
            element = next(iterator)
        except StopIteration:
            break
        except tf.errors.InvalidArgumentError:
            lines.append("error")
            errors += 1
            continue
        line = ""
        for value in element if isinstance(element, tuple) else (element,):
            value = value.numpy()
            if isinstance(value, bytes):
                line += " s" + value.hex()
            elif value.dtype.kind == "i":
                line += f" {value}"
            else:
                line += (" %.9g" if value.dtype.itemsize == 4 else " %.17g") % value
        lines.append(line)
    return lines


def ours(words):
    program = os.path.join(os.environ["MILLRACE_ORACLE"], "text_rows")
    out = subprocess.run(
        [program], input="".join(w + "\n" for w in words), check=True, capture_output=True, text=True
    ).stdout
    results, current = [], []
    for line in out.splitlines():
        if line == "end":
            results.append(current)
            current = []
        else:
            current.append(line)
    return results


def same(found, expected):
    """Whether the results agree. If a quote hides the end of its row, millrace loses the rest of the file; TensorFlow
    looks for another quote."""
    if "lost" in found:
        at = found.index("lost")
        return found[:at] == expected[:at] and expected[at:at + 1] == ["error"] and at == len(found) - 1
    # The sign of a NaN is not specified.
    return [line.replace("-nan", "nan") for line in found] == [line.replace("-nan", "nan") for line in expected]


def main():
    r = random.Random(SEED)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        words, expected, names = [], [], []

        def write(data):
            path = f"{directory}/{len(words)}"
            with open(path, "wb") as file:
                file.write(data)
            names.append(data)
            return path

        for _ in range(CASES // 3):
            path = write(bytes(r.choice(b"ab\n\n\r\0") for _ in range(r.randrange(20))))
            words.append(f"text {path}")
            expected.append(theirs(tf.data.TextLineDataset(path)))
        for _ in range(CASES):
            columns, header, na = r.randint(1, 3), r.randrange(2), r.choice(["-", "a"])
            no_quotes = int(r.random() < 0.2)
            text = bytes(r.choice(b'ab,,,\n\n\r"' if r.random() < 0.7 else b"ab,\n") for _ in range(r.randrange(1, 30)))
            path = write((b"h\n" if header else b"") + text)
            words.append(f"csv {path} {header} {columns} {no_quotes} {na} {'s' * columns}")
            expected.append(theirs(tf.data.experimental.CsvDataset(
                path, [tf.string] * columns, header=bool(header), na_value="" if na == "-" else na,
                use_quote_delim=not no_quotes)))
        for dtype in "fdil":
            path = write("".join(f'"{n}"\n' for n in NUMBERS).encode())
            words.append(f"csv {path} 0 1 0 - {dtype}")
            expected.append(theirs(tf.data.experimental.CsvDataset(path, [DTYPES[dtype]])))
        for word, name, found, wanted in zip(words, names, ours(words), expected):
            good = same(found, wanted)
            passed += good
            failed += not good
            if not good:
                print("FAILED", word, name, "\n  ours  ", found, "\n  theirs", wanted)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    raise SystemExit(main())
