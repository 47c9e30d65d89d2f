"""The image operators: resizing, cropping, colors, boxes and PNG give TensorFlow's results."""
import numpy as np
import tensorflow as tf
from ops_compare import HALVES, NARROW, NUMBERS, add, generator, main, values

REAL = NUMBERS + NARROW + HALVES
SIZES = [((1, 1, 1, 1), (3, 2)), ((2, 5, 4, 3), (5, 4)), ((2, 5, 4, 3), (3, 7)), ((1, 7, 9, 1), (2, 3)),
         ((1, 4, 6, 5), (13, 11)), ((3, 33, 17, 2), (8, 40)), ((0, 5, 4, 3), (3, 7)), ((1, 64, 48, 3), (21, 16))]
RULES = [{}, dict(align_corners=True), dict(half_pixel_centers=True)]


def resizing():
    for shape, size in SIZES:
        for dtype in REAL:
            images = values(shape, dtype, -100, 100)
            for rule in RULES:
                add("ResizeBilinear", 0, images=images, size=size, **rule)
                add("ResizeNearestNeighbor", 0, images=images, size=size, **rule)
                add("ResizeBicubic", 0, images=images, size=size, **rule)
            add("ResizeArea", 0, images=images, size=size)
            add("ResizeArea", 0, images=images, size=size, align_corners=True)
        grads = values((shape[0], *size, shape[3]))
        for rule in RULES:
            for dtype in (np.float32, np.float64, *HALVES):
                add("ResizeBilinearGrad", 0, grads=grads, original_image=values(shape, dtype), **rule)
            for dtype in (np.float32, np.float64):
                add("ResizeBicubicGrad", 0, grads=grads, original_image=values(shape, dtype), **rule)
            for dtype in (np.uint8, np.int8, np.int32, np.float32, np.float64, *HALVES):
                nearest = values((shape[0], *size, shape[3]), dtype)
                add("ResizeNearestNeighborGrad", 0, grads=nearest, size=shape[1:3], **rule)


def cropping():
    sizes = (((2, 5, 4, 3), (6, 7)), ((1, 9, 8, 1), (1, 1)), ((3, 16, 17, 2), (3, 1)), ((2, 1, 1, 1), (2, 2)))
    for shape, crop in sizes:
        boxes = generator.uniform(-0.2, 1.2, (6, 4)).astype(np.float32)
        boxes[0] = 0, 0, 1, 1
        indices = generator.integers(0, shape[0], 6).astype(np.int32)
        for dtype in NUMBERS + NARROW + [np.float16]:
            image = values(shape, dtype, -100, 100)
            for method in ("bilinear", "nearest"):
                add("CropAndResize", 0, image=image, boxes=boxes, box_ind=indices, crop_size=crop, method=method,
                    extrapolation_value=-3.5)
            grads = values((6, *crop, shape[3]))
            add("CropAndResizeGradBoxes", 1e-6, grads=grads, image=image, boxes=boxes, box_ind=indices)
        for dtype, near in ((tf.float32, 1e-6), (tf.float64, 1e-14), (tf.float16, 1e-2)):
            for method in ("bilinear", "nearest"):
                add("CropAndResizeGradImage", near, grads=grads, boxes=boxes, box_ind=indices, image_size=shape,
                    T=dtype, method=method)


def colors():
    for shape in ((5, 4, 3), (2, 7, 9, 3), (0, 4, 3), (2, 3, 33, 17, 3)):
        images = values(shape, np.float32, 0, 1)
        for amount in (0.0, 0.3, 1.0, 2.5):
            add("AdjustContrastv2", 1e-6, images=images, contrast_factor=amount)
            add("AdjustSaturation", 1e-6, images=images, scale=amount)
        for delta in (-1.0, -0.3, 0.0, 0.2, 0.9):
            add("AdjustHue", 1e-6, images=images, delta=delta)
        for dtype, near in ((np.float32, 1e-6), (np.float64, 1e-14), (np.float16, 2e-3), (HALVES[1], 2e-2)):
            add("RGBToHSV", near, images=values(shape, dtype, 0, 1))
            add("HSVToRGB", near, images=values(shape, dtype, 0, 1))


def boxes():
    for dtype in (np.float32, np.float16):
        for depth in (1, 3, 4):
            images = values((2, 9, 12, depth), dtype)
            drawn = generator.uniform(-0.3, 1.3, (2, 13, 4)).astype(np.float32)
            add("DrawBoundingBoxes", 0, images=images, boxes=drawn)
            add("DrawBoundingBoxesV2", 0, images=images, boxes=drawn, colors=values((3, 4)))
    for count in (0, 1, 30):
        corners, sizes = generator.uniform(0, 1, (count, 2)), generator.uniform(0.1, 0.6, (count, 2))
        shapes = np.concatenate([corners, corners + sizes], 1).astype(np.float32)
        scores = (generator.integers(0, 20, count) / 20).astype(np.float32)
        for limit in (0, 3, 40):
            add("NonMaxSuppression", 0, boxes=shapes, scores=scores, max_output_size=limit)
            for dtype in (np.float32, np.float16):
                pair = dict(boxes=shapes.astype(dtype), scores=scores.astype(dtype), max_output_size=limit)
                add("NonMaxSuppressionV2", 0, **pair, iou_threshold=dtype(0.3))
                add("NonMaxSuppressionV3", 0, **pair, iou_threshold=dtype(0.3), score_threshold=dtype(0.2))
                for pad in (False, True):
                    add("NonMaxSuppressionV4", 0, **pair, iou_threshold=dtype(0.3), score_threshold=dtype(0.2),
                        pad_to_max_output_size=pad)
                    for sigma in (0, 0.5):
                        add("NonMaxSuppressionV5", 1e-6 if dtype == np.float32 else 2e-3, **pair,
                            iou_threshold=dtype(0.3), score_threshold=dtype(0.2), soft_nms_sigma=dtype(sigma),
                            pad_to_max_output_size=pad)
            add("NonMaxSuppressionWithOverlaps", 0, overlaps=values((count, count), np.float32, 0, 1), scores=scores,
                max_output_size=limit, overlap_threshold=0.5, score_threshold=0.1)
    for pad in (False, True):
        for clip in (False, True):
            for classes in (1, 3):
                corners = generator.uniform(0, 1, (2, 20, classes, 2))
                sizes = generator.uniform(0.1, 0.6, (2, 20, classes, 2))
                add("CombinedNonMaxSuppression", 0,
                    boxes=np.concatenate([corners, corners + sizes], 3).astype(np.float32),
                    scores=generator.permutation(2 * 20 * 3).reshape(2, 20, 3).astype(np.float32) / 120,
                    max_output_size_per_class=4, max_total_size=15, iou_threshold=0.4, score_threshold=0.2,
                    pad_per_class=pad, clip_boxes=clip)


def sampling():
    for dtype in (np.uint8, np.int16, np.int32, np.int64):
        for runs in (1, 2, 3):
            for covered in (0.1, 0.7):
                for seed in range(5):
                    add("SampleDistortedBoundingBoxV2", 0, runs, image_size=dtype([100, 70, 3]),
                        bounding_boxes=np.float32([[[0.1, 0.2, 0.5, 0.9], [0.5, 0.5, 0.6, 0.7]]]),
                        min_object_covered=np.float32(covered), seed=seed, seed2=7)
            add("SampleDistortedBoundingBox", 0, runs, image_size=dtype([100, 70, 3]), seed=runs, seed2=8,
                bounding_boxes=np.zeros((1, 0, 4), np.float32), use_image_if_no_bounding_boxes=True,
                aspect_ratio_range=[0.5, 2.0], area_range=[0.2, 0.9])


def coding():
    for shape in ((1, 1, 1), (9, 13, 3), (16, 16, 4), (30, 17, 2)):
        for dtype in (np.uint8, np.uint16):
            png = tf.io.encode_png(values(shape, dtype, 0, 255))
            for wanted in (tf.uint8, tf.uint16, tf.float32):
                if shape[2] != 2:
                    add("DecodeImage", 1e-7 if wanted == tf.float32 else 0, contents=png, dtype=wanted, channels=0)
    for shape in ((40, 50, 3), (33, 47, 1)):
        jpeg = tf.io.encode_jpeg(values(shape, np.uint8, 0, 255))
        for channels in (0, 1, 3):
            add("DecodeAndCropJpeg", 0, contents=jpeg, crop_window=[5, 7, 20, 30], channels=channels)
            add("DecodeImage", 1e-7, contents=jpeg, dtype=tf.float32, channels=channels)
        add("ExtractJpegShape", 0, contents=jpeg)
        add("ExtractJpegShape", 0, contents=jpeg, output_type=tf.int64)
        image = values(shape, np.uint8, 0, 255)
        for quality in (1, 50, 100):
            for number in range(8):
                add("EncodeJpeg", 0, image=image, quality=quality, progressive=number & 1 > 0,
                    optimize_size=number & 2 > 0, chroma_downsampling=number & 4 == 0)
        add("EncodeJpeg", 0, image=image, density_unit="cm", x_density=72, y_density=500)
        add("EncodeJpeg", 0, image=image, xmp_metadata="<x:xmpmeta/>")
        for level in (-1, 0, 1, 9):
            add("EncodePng", 0, image=image, compression=level)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            data = session.run(tf.io.encode_jpeg(image))
        for length in (len(data) - 40, len(data) - 1):  # what is truncated completely is in ops_messages
            add("DecodeJpeg", 0, contents=data[:length], acceptable_fraction=0.2)
            add("DecodeAndCropJpeg", 0, contents=data[:length], crop_window=[0, 0, 5, 7])


def audio():
    for shape in ((1, 2), (100, 1), (57, 3)):
        sound = values(shape, np.float32, -1.2, 1.2)
        add("EncodeWav", 0, audio=sound, sample_rate=8000)
        wav = tf.audio.encode_wav(sound, 44100)
        add("DecodeWav", 0, contents=wav)
        add("DecodeWav", 0, contents=wav, desired_channels=2, desired_samples=60)
    for window, stride, squared in ((2, 1, False), (16, 8, True), (30, 7, False), (33, 40, True), (300, 2, False)):
        add("AudioSpectrogram", 1e-5, input=values([200, 3]), window_size=window, stride=stride,
                magnitude_squared=squared)
    for bins, rate, count, coefficients in ((17, 8000, 40, 13), (65, 16000, 20, 20), (5, 900, 3, 1), (33, 44100, 10,
            4)):
        add("Mfcc", 1e-4, spectrogram=values([2, 3, bins], low=0.1), sample_rate=rate, filterbank_channel_count=count,
            dct_coefficient_count=coefficients, lower_frequency_limit=20.0 + coefficients)
    for shape in ((5, 30), (2, 30, 2)):
        for count in (1, 3):
            add("AudioSummaryV2", 0, tag="a", tensor=values(shape), sample_rate=np.float32(8000.4), max_outputs=count)
    for value in (values((2, 3)), values((3,), np.int64), np.array([b"a", b"bc"])):
        metadata = tf.compat.v1.SummaryMetadata(display_name="x").SerializeToString()
        add("TensorSummaryV2", 0, tag="a", tensor=value, serialized_summary_metadata=metadata)


main(resizing, cropping, colors, boxes, sampling, coding, audio)
