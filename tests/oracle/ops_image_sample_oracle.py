"""Glimpses, projective transforms, ScaleAndTranslate, GIF and BMP give TensorFlow's results. Noise is not compared."""
import os
import struct
import sys

import numpy as np
from ops_compare import HALVES, NARROW, NUMBERS, add, generator, main, values

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import foreign_corpus  # noqa: E402

FILTERS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]


def glimpses():
    for shape, size in [((3, 7, 9, 2), (3, 4)), ((2, 7, 9, 1), (9, 12)), ((4, 8, 8, 3), (1, 1)), ((0, 3, 4, 2), (2, 2)),
                        ((2, 5, 5, 2), (0, 3)), ((3, 20, 30, 3), (8, 40))]:
        for scale in (0.5, 1.5, 30.0):
            offsets = generator.uniform(-scale, scale, (shape[0], 2)).astype(np.float32)
            for centered in (True, False):
                for normalized in (True, False):
                    for name in ("ExtractGlimpse", "ExtractGlimpseV2"):
                        add(name, 0, input=values(shape), size=size, offsets=offsets, centered=centered,
                            normalized=normalized, uniform_noise=False, noise="zero")


def transforms():
    for shape, size in [((2, 7, 9, 3), (5, 8)), ((3, 1, 1, 1), (4, 4)), ((1, 5, 1, 2), (6, 7)),
                        ((2, 33, 21, 1), (40, 30)), ((0, 5, 4, 3), (2, 3)), ((1, 6, 5, 0), (2, 3))]:
        for dtype in (np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64):
            images = values(shape, dtype, -100, 100)
            for rows in (1, shape[0]):
                rotate = np.tile(np.array([1, 0, 0, 0, 1, 0, 0, 0], np.float32), (rows, 1))
                rotate += generator.uniform(-0.7, 0.7, rotate.shape).astype(np.float32)
                rotate[:, [2, 5]] *= 20
                rotate[:, 6:] *= 0.1
                for kind in ("NEAREST", "BILINEAR"):
                    for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
                        add("ImageProjectiveTransformV2", 0, images=images, transforms=rotate, output_shape=size,
                            interpolation=kind, fill_mode=mode)
                        add("ImageProjectiveTransformV3", 0, images=images, transforms=rotate, output_shape=size,
                            interpolation=kind, fill_mode=mode, fill_value=7.6)


def scaling():
    for shape, size in [((2, 7, 9, 3), (5, 8)), ((1, 1, 1, 1), (4, 4)), ((1, 40, 33, 2), (9, 70)),
                        ((0, 5, 4, 3), (2, 3)), ((2, 12, 5, 1), (1, 1))]:
        for scale, translation in [((1, 1), (0, 0)), ((0.3, 2.5), (1.5, -3.2)), ((7, 0.11), (-20, 0.5))]:
            arguments = dict(scale=np.array(scale, np.float32), translation=np.array(translation, np.float32))
            for antialias in (True, False):
                for name in FILTERS:
                    images = values(shape, np.float32, -100, 100)
                    add("ScaleAndTranslate", 2e-5, images=images, size=size, kernel_type=name, antialias=antialias,
                        **arguments)
                    grads = values((shape[0], *size, shape[3]))
                    add("ScaleAndTranslateGrad", 2e-5, grads=grads, original_image=images, kernel_type=name,
                        antialias=antialias, **arguments)
            for dtype in NUMBERS + NARROW + HALVES:
                add("ScaleAndTranslate", 2e-5, images=values(shape, dtype, -100, 100), size=size, **arguments)


def codes(indexes, size):
    """LZW, with a full table and clear codes."""
    out, word, used, width, table, clear = [], 0, 0, size + 1, {}, 1 << size
    text, emitted = (), [clear]
    follow, widths = clear + 2, [width]
    for index in indexes:
        longer = text + (index,)
        if len(longer) == 1 or longer in table:
            text = longer
            continue
        emitted.append(table.get(text, text[0]))
        widths.append(width)
        if follow < 4096:
            table[longer] = follow
            if follow == 1 << width and width < 12:
                width += 1
            follow += 1
        else:
            emitted.append(clear)
            widths.append(width)
            table, follow, width = {}, clear + 2, size + 1
        text = (index,)
    emitted += [table.get(text, text[0]), clear + 1]
    widths += [width, width + (follow == 1 << width and width < 12)]
    for code, bits in zip(emitted, widths):
        word |= code << used
        used += bits
        while used >= 8:
            out.append(word & 255)
            word, used = word >> 8, used - 8
    data = bytes(out + ([word] if used else []))
    return bytes([size]) + b"".join(
        bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"


def gif(frames, bits=8, head=b"GIF89a"):
    """frames: (left, top, width, height, flags, transparent color or None, indexes)"""
    palette = generator.integers(0, 256, 3 << bits, np.uint8).tobytes()
    out = head + struct.pack("<HHBBB", 50, 40, 0x80 | (bits - 1), 0, 0) + palette
    for left, top, width, height, flags, clear, indexes in frames:
        if clear is not None:
            out += b"!\xf9\x04" + struct.pack("<BHB", 1, 0, clear) + b"\0"
        out += b"!\xfe\x02hi\0," + struct.pack("<HHHHB", left, top, width, height, flags)
        out += generator.integers(0, 256, 3 << ((flags & 7) + 1), np.uint8).tobytes() if flags & 0x80 else b""
        out += codes(indexes, max(bits, 2))
    return out + b";"


def frame_images():
    def pixels(count, bits, period=None):
        colors = generator.integers(0, 1 << bits, period or count)
        return list(np.resize(colors, count))

    seeds = [data for name, data in foreign_corpus.gif_seeds().items() if name != "cut"]
    seeds += [gif([(0, 0, 50, 40, 0, None, pixels(2000, bits))], bits) for bits in (1, 2, 4, 8)]
    seeds += [gif([(0, 0, 50, 40, 0x40, None, pixels(2000, 8, 37))])]
    seeds += [gif([(0, 0, 200, 150, 0, None, pixels(30000, 8))]), gif([(0, 0, 300, 400, 0x40, 3, [3] * 120000)])]
    seeds += [gif([(0, 0, 50, 40, 0, None, pixels(2000, 4)), (5, 6, 20, 30, 0x83, 2, pixels(600, 4)),
                   (40, 30, 20, 20, 0x43, 1, pixels(400, 4))], 4)]
    seeds += [gif([(5, 6, 20, 30, 0, 2, pixels(600, 4)), (0, 0, 7, 1, 0, None, pixels(7, 4))], 4, b"GIF87a")]
    seeds += [seeds[-1][:-6], seeds[-1][:-1], seeds[0] + b"rest", seeds[-1][:-1] + b"x"]
    for data in seeds:
        add("DecodeGif", 0, contents=data)
        add("DecodeImage", 0, contents=data)
        add("DecodeImage", 0, contents=data, expand_animations=False, dtype=np.uint16)
        add("DecodeImage", 0, contents=data, channels=3, dtype=np.float32)
    add("DecodeJpeg", 0, contents=seeds[0])
    add("DecodePng", 0, contents=seeds[0], channels=3)
    for name in ("24", "down", "32", "masks", "8"):
        data = foreign_corpus.bmp_seeds()[name]
        for channels in (0, 3, 4):
            add("DecodeBmp", 0, contents=data, channels=channels)
            add("DecodeImage", 0, contents=data, channels=channels)
            if name != "down":  # TensorFlow overruns a buffer
                add("DecodeImage", 0, contents=data, channels=channels, dtype=np.uint16)
                add("DecodeImage", 0, contents=data, channels=channels, dtype=np.float32)


if __name__ == "__main__":
    main(glimpses, transforms, scaling, frame_images)
