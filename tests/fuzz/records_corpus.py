"""Writes the seed corpora of record_fuzz and example_fuzz to tests/fuzz/corpus.

    python3 tests/fuzz/records_corpus.py"""
import gzip
import os
import struct
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(name, feature):
    return field(1, field(1, name) + field(2, feature))


INTEGERS = field(3, field(1, varint(7) + varint(-1) + varint(300)))
UNPACKED = field(3, b"\x08\x05\x08\x06")
FLOATS = field(2, field(1, struct.pack("<2f", 1, -2)))
LOOSE_FLOATS = field(2, b"\x0d" + struct.pack("<f", 3))
STRINGS = field(1, field(1, b"hello") + field(1, b""))
EVERY = b"".join(
    [entry(b"a", INTEGERS), entry(b"b", FLOATS), entry(b"c", STRINGS), entry(b"d", UNPACKED), entry(b"e", STRINGS)]
    + [entry(b"f", UNPACKED), entry(b"image/encoded", STRINGS), entry(b"image/height", LOOSE_FLOATS), entry(b"x", b"")]
)

EXAMPLES = {
    "empty": b"",
    "every": field(1, EVERY),
    "twice": field(1, entry(b"a", INTEGERS))
    + varint(9 << 3)
    + b"\x05"
    + field(1, entry(b"a", b"") + entry(b"a", UNPACKED)),
    "value-first": field(1, field(1, field(2, INTEGERS) + field(1, b"a"))),
    "chunks": field(1, entry(b"a", field(3, field(1, b"\x01") + field(1, b"\x02")))),
    "wrong-kind": field(1, entry(b"a", FLOATS)),
    "cut": field(1, EVERY)[:-9],
    "group": b"\x2b\x2c" + field(1, EVERY),
}

THREE = record(b"abc") + record(b"") + record(field(1, EVERY))
FLIPPED = bytearray(THREE)
FLIPPED[4] ^= 1
RECORDS = {
    "three": b"\x00" + THREE,
    "skip": b"\x01" + bytes(FLIPPED),
    "tiny-buffer": b"\x03" + THREE[:-2],
    "gzip": b"\x00" + gzip.compress(THREE, mtime=0),
    "zlib": b"\x01" + zlib.compress(THREE)[:-3],
    "lying-lengths": b"\x05" + struct.pack("<Q", 50) + bytes(30) + struct.pack("<Q", 1 << 31) + bytes(30),
}


def main():
    for directory, seeds in (("example", EXAMPLES), ("record", RECORDS)):
        os.makedirs(os.path.join(CORPUS, directory), exist_ok=True)
        for name, data in seeds.items():
            with open(os.path.join(CORPUS, directory, name), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main()
