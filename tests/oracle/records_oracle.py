"""Records and Examples: TensorFlow reads ours, we read TensorFlow's, and both parse the same bytes to the same tensors.

The Examples to parse are made byte by byte, from a seed, by a generator that likes the rare forms: map entries with the
value first, names twice, messages concatenated, unknown fields, lists packed, unpacked and in chunks, empty lists,
Features without a list, lengths and integers in more bytes than needed.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

PROGRAM = os.path.join(os.environ["MILLRACE_ORACLE"], "records_files")
SEED = int(os.environ.get("MILLRACE_TEST_SEED", "1"))


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


# ---- Wire format ----


def varint(value, padding=0):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(min(padding, 10 - len(out))):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


class Generator:
    """Serialised Examples with the features of a spec, in all forms that the wire allows."""

    def __init__(self, seed, wild):
        self.random = random.Random(seed)
        self.wild = wild  # how often something rare is done

    def rare(self, factor=1.0):
        return self.random.random() < self.wild * factor

    def field(self, number, payload):
        return varint(number << 3 | 2) + varint(len(payload), self.rare(0.3) and self.random.randint(1, 4)) + payload

    def unknown(self):
        number = self.random.choice([2, 5, 16, 1000])
        kind = self.random.choice([0, 1, 2, 5])
        return varint(number << 3 | kind) + {
            0: varint(self.random.getrandbits(64)),
            1: bytes(8),
            2: varint(3) + b"abc",
            5: bytes(4),
        }[kind]

    def integer(self):
        r = self.random
        return r.choice([0, 1, -1, 127, 128, 2**31, -(2**31), 2**63 - 1, -(2**63), r.getrandbits(14), -r.getrandbits(40)])

    def list(self, kind, count):
        r = self.random
        if kind == "string":
            return b"".join(self.field(1, bytes(r.getrandbits(8) for _ in range(r.choice([0, 1, 5, 200])))) for _ in range(count))
        if kind == "float":
            values = [struct.pack("<f", r.choice([0.0, -0.0, 1.5, float("inf"), r.gauss(0, 1)])) for _ in range(count)]
            tag, packed = b"\x0d", b"".join(values)
        else:
            values = [varint(self.integer(), self.rare(0.2) and r.randint(1, 3)) for _ in range(count)]
            tag, packed = b"\x08", b"".join(values)
        if self.rare():
            return b"".join(tag + value for value in values)
        if count == 0 and not self.rare():
            return b""
        if self.rare(0.3):  # a second chunk, which protobuf would join
            return self.field(1, packed) + self.field(1, values[0] if values else b"")
        return self.field(1, packed)

    def feature(self, kind, count):
        if self.rare(0.4):
            return b""
        if self.rare(0.1):
            kind = self.random.choice(["string", "float", "int64"])
        number = {"string": 1, "float": 2, "int64": 3}[kind]
        body = self.field(number, self.list(kind, count))
        if self.rare(0.2):
            body += self.unknown()
        if self.rare(0.02):
            body = b"\x22\x00"
        return body

    def entry(self, name, body):
        parts = [self.field(1, name.encode()), self.field(2, body)]
        if self.rare():
            parts.reverse()
        if self.rare(0.01):
            parts.append(self.unknown())
        return self.field(1, b"".join(parts))

    def count(self, feature):
        name, dtype, form, shape, fallback = feature
        stride = int(np.prod(shape, dtype=int))
        if form in ("fixed",) and not self.rare(0.05):
            return stride
        if form == "sequence" and not self.rare(0.05):
            return stride * self.random.choice([0, 1, 2, 5])
        # Too many unpacked floats for a fixed shape are written past TensorFlow's buffer, and it dies.
        most = stride if form == "fixed" and dtype == "float" else 7
        return self.random.choice([n for n in (0, 1, 2, 3, 7) if n <= most])

    def example(self, spec):
        r = self.random
        message = b""
        while True:
            entries = []
            for feature in spec:
                if self.rare(0.15):
                    continue
                entries.append(self.entry(feature[0], self.feature(feature[1], self.count(feature))))
                if self.rare(0.3):
                    entries.append(self.entry(feature[0], self.feature(feature[1], self.count(feature))))
            for other in ("other", "a", spec[0][0] + "x", ""):
                if self.rare(0.5):
                    entries.append(self.entry(other, self.feature(r.choice(["string", "float", "int64"]), 2)))
            if self.rare():
                r.shuffle(entries)
            if self.rare(0.01):
                entries.append(self.unknown())
            message += self.field(1, b"".join(entries))
            if self.rare(0.3):
                message += self.unknown()
            if not self.rare(0.3):
                return message


# ---- Specs ----

SPECS = [
    [("image/encoded", "string", "fixed", [], ""), ("image/height", "int64", "fixed", [], "-7"), ("image/score", "float", "fixed", [], "2.5")],
    [("a/label", "int64", "fixed", [], None), ("a/box", "float", "fixed", [2, 2], None), ("a/text", "string", "fixed", [2], None)],
    [("v/int", "int64", "variable", [], None), ("v/float", "float", "variable", [], None), ("v/str", "string", "variable", [], None)],
    [("r/int", "int64", "ragged", [], None), ("r/float", "float", "ragged", [], None), ("r/str", "string", "ragged", [], None)],
    [("s/int", "int64", "sequence", [], None), ("s/float", "float", "sequence", [2], "0.5"), ("s/str", "string", "sequence", [], "pad")],
    [
        ("image/encoded", "string", "fixed", [], ""),
        ("image/object/bbox", "float", "variable", [], None),
        ("image/class/label", "int64", "fixed", [], "-1"),
        ("image/object/names", "string", "ragged", [], None),
        ("image/points", "float", "sequence", [2], None),
    ],
]


def tensorflow_spec(spec):
    features = {}
    for name, dtype, form, shape, fallback in spec:
        kind = tf.as_dtype(dtype)
        value = None if fallback is None else {"int64": int, "float": float, "string": str}[dtype](fallback)
        if form == "fixed":
            features[name] = tf.io.FixedLenFeature(shape, kind, None if value is None else np.full(shape, value))
        elif form == "sequence":
            features[name] = tf.io.FixedLenSequenceFeature(shape, kind, allow_missing=True, default_value=value)
        elif form == "variable":
            features[name] = tf.io.VarLenFeature(kind)
        else:
            features[name] = tf.io.RaggedFeature(kind, row_splits_dtype=tf.int64)
    return features


def text(value):
    array = np.asarray(value)
    kind = {"i": "int64", "f": "float"}.get(array.dtype.kind, "string")
    if kind == "int64":
        items = [str(x) for x in array.ravel().tolist()]
    elif kind == "float":
        items = ["%08x" % x for x in array.astype(np.float32).ravel().view(np.uint32).tolist()]
    else:
        items = ["'" + x.hex() for x in array.ravel().tolist()]
    return " ".join([f" {kind}[{','.join(map(str, array.shape))}]"] + items) + ";"


def tensorflow_line(records, spec, features, single):
    try:
        parsed = tf.io.parse_single_example(records[0], features) if single else tf.io.parse_example(records, features)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError) as error:  # its message may hold the record's bytes
        return "error " + str(error)
    line = "ok"
    for name, dtype, form, shape, _ in spec:
        value = parsed[name]
        if form == "variable":
            line += text(value.indices) + text(value.values) + text(value.dense_shape)
        elif form == "ragged" and single:
            line += text(value) + text(np.zeros([0], np.int64))
        elif form == "ragged":
            line += text(value.values) + text(value.row_splits)
        else:
            line += text(value)
    return line


def empty_strings(line):
    # numpy gives an empty string tensor the dtype of floats.
    return line.replace(" float[0];", " string[0];")


# ---- The checks ----


def check_parse(folder, seed, spec, batch, count, wild):
    generator = Generator(seed, wild)
    records = [generator.example(spec) for _ in range(count * (1 if batch == "single" else batch))]
    source, listing = os.path.join(folder, "parse.tfrecord"), os.path.join(folder, "spec.txt")
    with tf.io.TFRecordWriter(source) as writer:
        for record in records:
            writer.write(record)
    with open(listing, "w") as file:
        for name, dtype, form, shape, fallback in spec:
            shown = "-" if fallback is None else fallback
            print(name, dtype, form, ",".join(map(str, shape)) or "-", shown or "-", file=file)
    features = tensorflow_spec([(n, d, f, s, None if b == "" else b) for n, d, f, s, b in spec])
    lines = run("parse", source, listing, batch).splitlines()
    size = 1 if batch == "single" else batch
    assert len(lines) == count, (len(lines), count)
    errors = 0
    for i, ours in enumerate(lines):
        group = records[i * size : (i + 1) * size]
        theirs = tensorflow_line(group, spec, features, batch == "single")
        if theirs.startswith("error"):
            errors += 1
            assert ours.startswith("error"), f"seed {seed}, batch {i}: TensorFlow says {theirs!r}, we {ours!r}: {group!r}"
        else:
            same = ours == theirs or empty_strings(ours) == empty_strings(theirs)
            assert same, f"seed {seed}, batch {i}: TensorFlow has\n{theirs}\nwe have\n{ours}\nof {[g.hex() for g in group]}"
    return errors


def check_parse_all(folder):
    total = errors = 0
    for number, spec in enumerate(SPECS):
        for batch in ("single", 1, 3):
            for wild, count in ((0.02, 20), (0.3, 100)):
                errors += check_parse(folder, SEED * 1000 + total, spec, batch, count, wild)
                total += count
    assert errors < total * 0.6, "the generator makes too many bad Examples to show anything"
    print(f"parse: {total} batches are equal, {errors} of them errors in both")


def check_files(folder):
    generator = Generator(SEED, 0.1)
    records = [generator.example(SPECS[5]) for _ in range(200)] + [b"", b"x" * 300_000]
    plain = os.path.join(folder, "tensorflow.tfrecord")
    for compression in ("", "GZIP", "ZLIB"):
        source = os.path.join(folder, "tensorflow" + compression)
        with tf.io.TFRecordWriter(source, compression) as writer:
            for record in records:
                writer.write(record)
        for ours in ("", "GZIP", "ZLIB"):
            target = os.path.join(folder, "ours" + ours)
            run("copy", source, target, ours.lower() or "none")
            read = [r.numpy() for r in tf.data.TFRecordDataset(target, ours or None)]
            assert read == records, (compression, ours)
        if not compression:
            run("copy", source, plain, "none")
            with open(source, "rb") as a, open(plain, "rb") as b:
                assert a.read() == b.read(), "the same records are other bytes"
    print("files: plain, GZIP and ZLIB, both ways")


def check_encoder(folder):
    target = os.path.join(folder, "encoded")
    run("encode", target)
    for i, record in enumerate(tf.data.TFRecordDataset(target)):
        example = tf.train.Example.FromString(record.numpy())
        feature = example.features.feature
        assert list(feature["integers"].int64_list.value) == [(-1) ** j * ((2**63 - 1) >> j) for j in range(i)]
        assert np.array_equal(np.float32(feature["floats"].float_list.value), np.float32([np.float32(j) / np.float32(3) - np.float32(5) for j in range(i)]))
        assert list(feature["strings"].bytes_list.value) == [b"%0*d" % (j % 7, j) if j else b"0" for j in range(i)]
        assert list(feature["number"].int64_list.value) == [-i]
        assert example.SerializeToString(deterministic=True) == record.numpy(), "protobuf writes other bytes"
    assert i == 49
    print("encoder: 50 Examples are protobuf's bytes")


def main():
    checks = [check_files, check_encoder, check_parse_all]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for check in checks:
            try:
                check(folder)
            except AssertionError as error:
                failed += 1
                print(f"FAILED {check.__name__}: {str(error)[:4000]}")
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
