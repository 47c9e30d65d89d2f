"""Writes the seed corpora of webp_fuzz, gif_fuzz, bmp_fuzz and tiff_fuzz to tests/fuzz/corpus.

    python3 tests/fuzz/foreign_corpus.py

This script generates GIF, BMP and TIFF files itself. It uses libwebp.so, from the package libwebp-dev, for WebP
files."""

import ctypes
import os
import struct
import zlib

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
WIDTH, HEIGHT = 13, 7


def values(channels):
    return bytes((x * 31 + y * 57 + c * 91) & 255 for y in range(HEIGHT) for x in range(WIDTH) for c in range(channels))


# ---- WebP ----


def webp_library(name, *arguments):
    library = ctypes.CDLL("libwebp.so.7")
    result = ctypes.POINTER(ctypes.c_uint8)()
    encode = getattr(library, name)
    encode.restype = ctypes.c_size_t
    size = encode(*arguments, ctypes.byref(result))
    return ctypes.string_at(result, size)


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def extended(features, *chunks):
    sides = struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3]
    body = b"WEBP" + chunk(b"VP8X", bytes([features, 0, 0, 0]) + sides) + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_seeds():
    rgb, rgba = values(3), values(4)
    lossless = webp_library("WebPEncodeLosslessRGB", rgb, WIDTH, HEIGHT, WIDTH * 3)
    clear = webp_library("WebPEncodeLosslessRGBA", rgba, WIDTH, HEIGHT, WIDTH * 4)
    lossy = webp_library("WebPEncodeRGB", rgb, WIDTH, HEIGHT, WIDTH * 3, ctypes.c_float(60))
    lossy_clear = webp_library("WebPEncodeRGBA", rgba, WIDTH, HEIGHT, WIDTH * 4, ctypes.c_float(60))
    place = (
        struct.pack("<I", 0)[:3] * 2 + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)[:3] + b"\0" * 4
    )
    frame = chunk(b"ANMF", place + lossless[12:])
    animation = extended(2, chunk(b"ANIM", b"\0" * 6), frame, frame)
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    return {"lossless": lossless, "clear": clear, "lossy": lossy, "lossy-clear": lossy_clear, "animation": animation,
            "exif": extended(8, lossless[12:], chunk(b"EXIF", exif)), "cut": lossy[:-9], "no-frame": animation[:50]}


# ---- GIF ----


def lzw(indexes, bits):
    """Codes of bits + 1 bits each; a clear code precedes each point where the code size would grow."""
    out, word, used = [], 0, 0
    codes = []
    for i, index in enumerate(indexes):
        if i % ((1 << bits) - 2) == 0:
            codes.append(1 << bits)
        codes.append(index)
    for code in codes + [(1 << bits) + 1]:
        word |= code << used
        used += bits + 1
        while used >= 8:
            out.append(word & 255)
            word, used = word >> 8, used - 8
    data = bytes(out + ([word & 255] if used else []))
    blocks = b"".join(bytes([len(data[i : i + 255])]) + data[i : i + 255] for i in range(0, len(data), 255))
    return bytes([bits]) + blocks + b"\0"


def gif(flags=0, control=None, frames=1, x=0, y=0, local=False):
    palette = b"".join(bytes([i * 16, 255 - i * 9, i]) for i in range(16))
    out = (
        b"GIF89a"
        + struct.pack("<HHBBB", WIDTH + x, HEIGHT + y, 0x00 if local else 0x83, 0, 0)
        + (b"" if local else palette)
    )
    for _ in range(frames):
        if control is not None:
            out += b"!\xf9\x04" + control + b"\0"
        out += b"!\xfe\x03abc\0," + struct.pack("<HHHHB", x, y, WIDTH, HEIGHT, flags | (0x83 if local else 0))
        out += (palette if local else b"") + lzw([i * 7 % 16 for i in range(WIDTH * HEIGHT)], 4)
    return out + b";"


def gif_seeds():
    return {
        "plain": gif(),
        "woven": gif(flags=0x40),
        "clear": gif(control=b"\1\0\0\3"),
        "frames": gif(frames=3, x=4, y=2),
        "local": gif(local=True),
        "cut": gif()[:-30],
        "outside": gif(x=4).replace(struct.pack("<H", WIDTH + 4), b"\x09\0", 1),
    }


# ---- BMP ----


def bmp(bits, rows, header=40, compression=0, table=b"", height=HEIGHT, masks=b""):
    head = struct.pack("<IiiHHIIiiII", header, WIDTH, height, 1, bits, compression, 0, 0, 0, len(table) // 4, 0)
    if header == 12:
        head = struct.pack("<IHHHH", 12, WIDTH, height, 1, bits)
    head = (head + masks).ljust(header, b"\0") + (masks if header == 40 else b"") + table
    return b"BM" + struct.pack("<IHHI", 14 + len(head) + len(rows), 0, 0, 14 + len(head)) + head + rows


def bmp_seeds():
    table = b"".join(bytes([i, 7, 255 - i, 0]) for i in range(256))
    masks = struct.pack("<IIII", 0xFF00, 0xFF0000, 0xFF000000, 0xFF)
    seeds = {"24": bmp(24, values(40)[: 40 * HEIGHT]), "old": bmp(24, values(40)[: 40 * HEIGHT], header=12),
             "down": bmp(24, values(40)[: 40 * HEIGHT], height=-HEIGHT), "32": bmp(32, values(4)),
             "masks": bmp(32, values(4), header=56, compression=3, masks=masks),
             "565": bmp(16, values(4)[: 28 * HEIGHT], compression=3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F)),
             "rle8": bmp(8, b"\4\1\0\3\2\3\4\0\0\0\0\2\2\1\5\5\0\1", compression=1, table=table),
             "rle4": bmp(4, b"\4\x12\0\5\x23\x45\x10\0\0\0\0\2\2\1\5\x55\0\1", compression=2, table=table[:64])}
    for bits in (1, 2, 4, 8):
        stride = (WIDTH * bits + 31) // 32 * 4
        seeds[f"{bits}"] = bmp(bits, values(40)[: stride * HEIGHT], table=table[: 4 << bits])
    seeds["cut"] = seeds["24"][:100]
    return seeds


# ---- TIFF ----


def tiff(order, tags, data):
    tags = sorted({256: WIDTH, 257: HEIGHT, 273: 8, 278: HEIGHT, 279: len(data), **tags}.items())
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8 + len(data) + len(data) % 2)
    body = struct.pack(order + "H", len(tags))
    for tag, value in tags:
        inline = struct.pack(order + "I", value) if tag in (273, 279) else struct.pack(order + "HH", value, 0)
        body += struct.pack(order + "HHI", tag, 4 if tag in (273, 279) else 3, 1) + inline
    return head + data + b"\0" * (len(data) % 2) + body + struct.pack(order + "I", 0)


def packbits(data):
    return b"".join(bytes([len(data[i : i + 100]) - 1]) + data[i : i + 100] for i in range(0, len(data), 100))


def tiff_seeds():
    rgb = {258: 8, 277: 3, 262: 2, 259: 1}
    seeds = {
        "rgb": tiff("<", rgb, values(3)),
        "big": tiff(">", rgb, values(3)),
        "deflate": tiff("<", {**rgb, 259: 8}, zlib.compress(values(3))),
        "predictor": tiff("<", {**rgb, 259: 8, 317: 2}, zlib.compress(values(3))),
        "packbits": tiff(">", {**rgb, 259: 32773}, packbits(values(3))),
        "alpha": tiff("<", {**rgb, 277: 4, 338: 1}, values(4)),
        "turned": tiff("<", {**rgb, 274: 6}, values(3)),
        "deep": tiff(">", {**rgb, 258: 16, 277: 1, 262: 1}, values(2)),
        "fax": tiff("<", {258: 1, 277: 1, 262: 0, 259: 3}, values(3)),
        "white": tiff("<", {258: 8, 262: 0, 277: 1}, values(1)),
        "bits": tiff("<", {258: 1, 277: 1, 262: 1}, values(1)),
        "ink": tiff("<", {**rgb, 277: 4, 262: 5}, values(4)),
        "lzw": tiff("<", {**rgb, 259: 5}, b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01"),
        "tile": tiff("<", {**rgb, 322: 16, 323: 16}, values(9)),
        "planes": tiff("<", {**rgb, 284: 2}, values(3)),
        "lerc": tiff("<", {**rgb, 259: 34887}, values(3)),
        "jpeg": tiff("<", {**rgb, 259: 7, 262: 6}, values(3)),
    }
    seeds["cut"] = seeds["rgb"][:200]
    return seeds


def main():
    for directory, seeds in {
        "webp": webp_seeds(),
        "gif": gif_seeds(),
        "bmp": bmp_seeds(),
        "tiff": tiff_seeds(),
    }.items():
        os.makedirs(os.path.join(CORPUS, directory), exist_ok=True)
        for name, data in seeds.items():
            with open(os.path.join(CORPUS, directory, name), "wb") as file:
                file.write(data)


if __name__ == "__main__":
    main()
