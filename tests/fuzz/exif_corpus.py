"""Writes the seed corpus of exif_fuzz to tests/fuzz/corpus/exif.

    python3 tests/fuzz/exif_corpus.py"""
import os
import struct

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "exif")


def tiff(order, entries, next_directory=0, offset=8, count=None):
    head = b"II*\0" if order == "<" else b"MM\0*"
    body = head + struct.pack(order + "I", offset) + b"\0" * (offset - 8)
    body += struct.pack(order + "H", len(entries) if count is None else count)
    for tag, kind, number, value in entries:
        inline = struct.pack(order + "H", value) + b"\0\0" if kind == 3 else struct.pack(order + "I", value)
        body += struct.pack(order + "HHI", tag, kind, number) + inline
    return body + struct.pack(order + "I", next_directory) + b"Canon\0\0\0"


MAKER, SIDE, OTHER_SIDE, TURN = (0x10F, 2, 6, 50), (0x100, 4, 1, 640), (0x101, 3, 1, 480), (0x112, 3, 1, 6)
SEEDS = {
    "little": tiff("<", [MAKER, TURN, (0x11A, 5, 1, 60)]),
    "big": tiff(">", [MAKER, TURN, (0x11A, 5, 1, 60)]),
    "alone": tiff("<", [TURN]),
    "twice": tiff("<", [TURN, MAKER, (0x112, 4, 1, 3), TURN]),
    "long": tiff(">", [(0x112, 4, 1, 8)]),
    "wrong-kind": tiff(">", [(0x112, 2, 1, 8), TURN]),
    "wrong-value": tiff("<", [(0x112, 3, 1, 9)]),
    "far": tiff("<", [TURN], offset=30),
    "outside": tiff("<", [TURN])[:4] + b"\xff\xff\xff\xff" + b"\0" * 40,
    "many": tiff("<", [TURN], count=65535),
    "none": tiff("<", []),
    "loop": tiff("<", [TURN], next_directory=8),
    "size": tiff("<", [SIDE, OTHER_SIDE]),
    "no-size": tiff("<", [(0x100, 4, 1, 0), OTHER_SIDE]),
    "cut": tiff("<", [MAKER, TURN])[:30],
}

os.makedirs(CORPUS, exist_ok=True)
for name, data in SEEDS.items():
    with open(os.path.join(CORPUS, name), "wb") as file:
        file.write(data)
