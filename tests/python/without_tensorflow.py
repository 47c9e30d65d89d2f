"""For tests that need no TensorFlow: the package, and data."""

import importlib.util
import os
import sys
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))

import numpy as np  # noqa: E402

import millrace as mr  # noqa: E402, F401


def has(module):
    return importlib.util.find_spec(module) is not None


def plain(element):
    """An element as lists, numbers and bytes, to compare."""
    if isinstance(element, tuple):
        return tuple(plain(component) for component in element)
    if isinstance(element, dict):
        return {name: plain(component) for name, component in element.items()}
    return element.tolist() if hasattr(element, "tolist") else element


def elements(dataset, **options):
    return [plain(element) for element in dataset.numpy(**options)]


def _mask(data):
    crc = _crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def write_records(path, records):
    """A TFRecord file."""
    with open(path, "wb") as file:
        for record in records:
            length = len(record).to_bytes(8, "little")
            file.write(length + _mask(length).to_bytes(4, "little") + record + _mask(record).to_bytes(4, "little"))


def write_png(path, pixels):
    """A PNG of an array [height, width, 3] of uint8."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return len(data).to_bytes(4, "big") + kind + data + crc.to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
