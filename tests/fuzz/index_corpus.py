"""Writes the seed corpus of index_fuzz to tests/fuzz/corpus/index.

    python3 tests/fuzz/index_corpus.py"""
import os
import struct
import zlib

from records_corpus import CORPUS, masked, record

THREE = [b"abc", b"", b"x" * 200]


def index(lengths, points=(), size=None, compression=0):
    total = sum(n + 16 for n in lengths) if size is None else size
    head = b"MRINDEX3" + struct.pack("<QQQII", total, len(lengths), len(points), compression, 9)
    body = head + b"".join(struct.pack("<I", n) for n in lengths) + b"".join(struct.pack("<QQ", *p) for p in points)
    return body + masked(body)


def seekable(records, flush=zlib.Z_FULL_FLUSH, last=b"\x03\x00"):
    data, body = b"", b""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    for item in records:
        data += record(item)
        body += packer.compress(record(item)) + packer.flush(flush)
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\x03"
    return head + body + last + struct.pack("<II", zlib.crc32(data), len(data))


SEEDS = {
    "plain": b"\x00" + index([3, 0, 81]),
    "fresh": b"\x0c" + index([3, 0, 200]),
    "empty": b"\x0c" + index([]),
    "points": b"\x0c" + index([3, 0, 200, 7], [(0, 10), (2, 50)], 90, 1),
    "points-fall": b"\x0c" + index([3, 0, 200, 7], [(0, 50), (2, 40)], 90, 1),
    "dali": b"\x01" + b"0 16\n16 503\n519 489\n1008 16\n",
    "dali-crlf": b"\x01" + b"0 16\r\n16 503",
    "seekable": b"\x02" + seekable(THREE * 3),
    "not-seekable": b"\x02" + seekable([b"x" * 90] * 4, zlib.Z_SYNC_FLUSH),
    "members": b"\x02" + seekable(THREE) + seekable(THREE) + bytes(5),
    "cut": b"\x02" + seekable(THREE * 3)[:-9],
    "zlib": b"\x02" + zlib.compress(record(b"abc") + record(b"d" * 99)),
}


def main():
    os.makedirs(os.path.join(CORPUS, "index"), exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(CORPUS, "index", name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
