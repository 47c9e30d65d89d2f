/* Images: decode and encode JPEG and PNG, resize, and decode directly into a row of a batch.
 *
 * ```c
 * mr_error error = {0};
 * mr_image_info info = {0};
 * const unsigned char *bytes = nullptr;
 * size_t size_bytes = 0;
 * if (mr_image_probe(bytes, size_bytes, &info, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * else printf("%s %d x %d, %d channels\n", mr_image_format_name(info.format), info.width, info.height, info.channels);
 * ```
 *
 * Pixels are rows of width x channels, top row first, with 8 or 16 bits per channel. Input may be hostile: every error
 * message names what is wrong in one sentence, and a decoded image never exceeds its pixel limit. All functions are
 * thread-safe. */
#ifndef MILLRACE_IMAGE_H
#define MILLRACE_IMAGE_H

#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mr_image_format {
    MR_IMAGE_UNKNOWN = 0,
    MR_IMAGE_JPEG,
    MR_IMAGE_PNG,
    MR_IMAGE_GIF,
    MR_IMAGE_BMP,
    MR_IMAGE_WEBP,
    MR_IMAGE_TIFF,
    MR_IMAGE_HEIC,
    MR_IMAGE_AVIF,
    MR_IMAGE_JPEG_XL,
    MR_IMAGE_JPEG_2000,
} mr_image_format;
MR_API const char *mr_image_format_name(mr_image_format format); /* "JPEG"; static */

typedef enum mr_color_space {
    MR_COLOR_UNKNOWN = 0,
    MR_COLOR_GRAY,
    MR_COLOR_RGB,  /* also YCbCr in the file */
    MR_COLOR_CMYK, /* also YCCK in the file */
} mr_color_space;

/* Read from the header alone: a successful probe does not rule out damage after the header. */
typedef struct mr_image_info {
    mr_image_format format;
    int32_t width, height;
    int32_t channels; /* as stored: JPEG 1, 3, 4; PNG 1 gray, 2 gray with alpha, 3, 4; a palette counts as 3 or 4 */
    int32_t bits;     /* of a channel: 8 or 16 (1, 2, 4 of a PNG count as 8) */
    mr_color_space color;
    bool is_progressive;  /* progressive JPEG or interlaced PNG */
    bool is_animated;     /* PNG, GIF or WebP with more than one frame; decoding returns the first */
    bool has_icc_profile; /* JPEG, PNG, WebP: a color profile (ICC) is embedded; decoding ignores it */
    int32_t orientation;  /* EXIF 1…8; 0 if the file specifies none. Decoding ignores it, as TensorFlow does */
} mr_image_info;
/* Only JPEG and PNG can be decoded. Other formats are recognized, so that a caller can report what a file is. For GIF,
 * BMP and WebP the size is known, too. TIFF and the formats after it return MR_UNIMPLEMENTED, with info->format set.
 * errors  MR_INVALID_ARGUMENT: not an image; MR_DATA_LOSS: truncated or damaged in its header */
MR_API mr_status mr_image_probe(const void *bytes, size_t size_bytes, mr_image_info *info, mr_error *error);

/* ---- Fused decoding: decode, crop or pad, resize, flip, change colors, normalize ---- */

typedef enum mr_crop {
    MR_CROP_NONE = 0,       /* the complete image, stretched to height x width */
    MR_CROP_CENTER,         /* the largest centered rectangle with the target's aspect ratio, times `fraction` */
    MR_CROP_RANDOM,         /* a rectangle of the same size as MR_CROP_CENTER's, at a random position */
    MR_CROP_RANDOM_RESIZED, /* random area and aspect ratio (torchvision's RandomResizedCrop): log-uniform aspect ratio,
                               ten attempts, then a center crop */
    /* Windows of height x width pixels, never resized. Pixels outside the image are padding. */
    MR_CROP_RANDOM_WINDOW, /* random position in the image extended by `padding` pixels on each side, uniformly
                              distributed: tf.image.random_crop of tf.pad. An image that is too small is an error */
    MR_CROP_CENTER_WINDOW, /* the center of the image, cropped or padded: tf.image.resize_with_crop_or_pad */
} mr_crop;

/* Contents of the padding, before colors are changed and pixels are normalized. */
typedef enum mr_image_pad {
    MR_IMAGE_PAD_ZERO = 0, /* black */
    MR_IMAGE_PAD_REFLECT,  /* the image mirrored at its outermost pixels, which are not repeated, as tf.pad's REFLECT;
                             padding is at most the image's side - 1 */
} mr_image_pad;

/* TensorFlow's methods of the same names. */
typedef enum mr_resize_method {
    MR_RESIZE_BILINEAR = 0,
    MR_RESIZE_NEAREST,
    MR_RESIZE_AREA,
    MR_RESIZE_BICUBIC,
} mr_resize_method;

/* Order of the dimensions: height, width, channels, or channels first. */
typedef enum mr_image_layout { MR_LAYOUT_NHWC = 0, MR_LAYOUT_NCHW } mr_image_layout;

/* The steps of mr_color_jitter.order. */
typedef enum mr_color_step {
    MR_COLOR_DEFAULT = 0,
    MR_COLOR_BRIGHTNESS,
    MR_COLOR_CONTRAST,
    MR_COLOR_SATURATION,
    MR_COLOR_HUE,
} mr_color_step;

/* Random color changes, computed on floats as tf.image.random_brightness and the related functions do: values outside
 * 0…255 are not clipped until they are converted to uint8. One difference: TensorFlow's saturation turns a red pixel
 * gray if its hue is within a rounding error of a full rotation; here it stays red.
 * cost    brightness: none; saturation and hue: one more pass over each row; contrast: one more pass over the image
 *         and, unless the result is MR_FLOAT in NHWC, a float buffer of its size
 * limits  brightness and factors 0…1000, hue 0…0.5; saturation and hue need 3 channels */
typedef struct mr_color_jitter {
    float brightness;                     /* adds a delta from [-brightness, brightness), in units of the full range */
    float contrast_min, contrast_max;     /* scales the distance from each channel's mean by a factor from [min, max) */
    float saturation_min, saturation_max; /* scales the saturation (HSV), clipped at 1; max 0: unchanged */
    float hue;                            /* shifts the hue by [-hue, hue); 1 is a full rotation */
    mr_color_step order[4];               /* each step once; 0: brightness, contrast, saturation, hue */
} mr_color_jitter;

typedef struct mr_image_options {
    size_t size;           /* of this struct (api.h) */
    int32_t height, width; /* of the result; 0: as decoded (crop must then be MR_CROP_NONE) */
    int32_t channels;      /* 1 or 3; 0: 3 */
    mr_crop crop;
    float fraction;               /* scales the rectangle of MR_CROP_CENTER and MR_CROP_RANDOM; 0: 1 */
    float area_min, area_max;     /* MR_CROP_RANDOM_RESIZED: fraction of the image's area; 0: 0.08 and 1 */
    float aspect_min, aspect_max; /* MR_CROP_RANDOM_RESIZED: width / height; 0: 3/4 and 4/3 */
    int32_t padding;              /* MR_CROP_RANDOM_WINDOW: pixels on each side, 0…65,536 */
    mr_image_pad padding_mode;
    bool random_flip_left_right; /* left to right, with probability 0.5 */
    mr_color_jitter color;
    mr_resize_method method;
    mr_dtype dtype; /* MR_FLOAT (default, 0), MR_HALF, MR_BFLOAT16, MR_UINT8: the float, rounded to nearest even; uint8
                       saturates, half overflows to infinity */
    float mean[3], std[3]; /* (pixel - mean) / std, in units of 0…255; std 0: 1 */
    mr_image_layout layout;
    bool accurate_dct;     /* libjpeg's slow integer DCT; the default, as in TensorFlow, is the fast one */
    bool accept_truncated; /* JPEG: fill missing data with gray instead of failing */
    bool accept_damaged;   /* JPEG: keep whatever damaged data decodes to instead of failing, as TensorFlow does */
    int64_t pixels_max;    /* a larger image is an error; 0: 100,000,000 */
    /* Faster, approximate decoding; off by default. A JPEG region that is at least 2, 4 or 8 times as large as the
     * result in both directions is decoded at 1/2, 1/4 or 1/8 of its size in the DCT, and resized from there. The
     * pixels differ from those of a full decode (each is the average of 2 x 2, 4 x 4 or 8 x 8 pixels), but are the same
     * on every machine and at any number of threads. */
    bool approximate_scale;
} mr_image_options;

/* Checks that the options are valid. The decoding functions check them, too.
 * errors  MR_INVALID_ARGUMENT: a number that is negative, not finite or too large; an invalid enum value; height
 *         without width; a crop without height and width */
MR_API mr_status mr_image_check(const mr_image_options *options, mr_error *error);

/* The parameters of one image, chosen at random or by the caller, in pixels of the decoded image. A window has the
 * options' height and width and may extend beyond the image; x and y may be negative. */
typedef struct mr_image_region {
    int32_t x, y, width, height;
    bool flip;
    float brightness, hue;      /* added values, in units of the full range (-1000…1000) and full rotations (-1…1) */
    float contrast, saturation; /* factors, 0…1000; 0: unchanged */
} mr_image_region;

/* Chooses the region. Numbers are taken from random in this order: the region, its y and x, flip, brightness, contrast,
 * saturation, hue; each only if the options require it. If random is null, nothing is random and crops are centered.
 * The options must pass mr_image_check. */
typedef struct mr_random mr_random;
MR_API mr_image_region mr_image_choose(const mr_image_options *options, int32_t width, int32_t height,
                                       mr_random *random);

/* Buffers that decoding reuses between images: one scratch for each thread. */
typedef struct mr_image_scratch mr_image_scratch;
MR_API mr_status mr_image_scratch_new(mr_image_scratch **scratch, mr_error *error);
MR_API void mr_image_scratch_free(mr_image_scratch *scratch);
MR_API size_t mr_image_scratch_bytes(const mr_image_scratch *scratch); /* retained between images; 0 for null */

/* Decodes a region of the image directly into target: height x width x channels in the options' dtype and layout. The
 * pixels are equal to a full decode, cropped and resized as in TensorFlow 2 (half-pixel centers, no antialiasing), and
 * bit-identical for any vector instruction set.
 * Only the rows and columns that the region needs are decoded. Of a JPEG with restart markers, only the segments that
 * the region touches are read: damage elsewhere may not be detected.
 * region  inside the image, except for a window; {0}: the complete image, or the centered window
 * target  size_bytes must be large enough for the result
 * errors  MR_DATA_LOSS: damaged; MR_INVALID_ARGUMENT: not an image, too large, too small for its window, or invalid
 *         options or region */
MR_API mr_status mr_image_decode_region(const void *bytes, size_t size_bytes, const mr_image_options *options,
                                        mr_image_region region, void *target, mr_image_scratch *scratch,
                                        mr_error *error);

/* ---- Decode and encode complete images ---- */

typedef struct mr_image_decode_options {
    size_t size;      /* of this struct (api.h) */
    int32_t channels; /* 0: as TensorFlow (min(stored, 3) for JPEG, stored for PNG); otherwise 1, 3, 4 (2 for PNG) */
    mr_dtype dtype;   /* MR_UINT8 (default, 0); MR_UINT16 for PNG */
    bool accurate_dct;
    bool no_fancy_upsampling;
    int32_t ratio;              /* JPEG: decode at 1/ratio of the size: 1, 2, 4, 8; 0: 1 */
    bool try_recover_truncated; /* TensorFlow's try_recover_truncated: fill missing data with gray instead of failing */
    bool accept_damaged;        /* as in mr_image_options; TensorFlow's operators always do */
    int64_t pixels_max;         /* 0: 100,000,000 */
    float
        acceptable_fraction; /* JPEG: if this share of the rows, below 1, precedes a truncation, fill the rest; 0: 1 */
} mr_image_decode_options;
/* Returns a tensor [height, width, channels] that is byte-identical to the result of TensorFlow 2.15's DecodeJpeg and
 * DecodePng. The format is detected from the contents, as in TensorFlow, where either operator accepts either format.
 * options  may be null
 * errors   MR_INVALID_ARGUMENT: not an image, too large, or a number of channels that the format does not support;
 *          MR_UNIMPLEMENTED: a format (GIF, BMP) or kind of JPEG that cannot be decoded; MR_DATA_LOSS: truncated or
 *          damaged */
MR_API mr_status mr_image_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options,
                                 mr_tensor *image, mr_error *error);

/* Encode a uint8 tensor [height, width, channels]: JPEG with 1 or 3 channels and quality 1…100 (0: 95); PNG with 1…4
 * channels, uint8 or uint16. The result is an MR_STRING scalar. */
MR_API mr_status mr_image_encode_jpeg(const mr_tensor *image, int32_t quality, mr_tensor *bytes, mr_error *error);
MR_API mr_status mr_image_encode_png(const mr_tensor *image, mr_tensor *bytes, mr_error *error);

/* ---- Crop-ready JPEGs ---- */

typedef struct mr_crop_ready_options {
    size_t size;              /* of this struct (api.h) */
    int32_t restart_interval; /* restart interval in MCUs, 1…65,535; 0: a divisor of the row: 3…8, else 2 or 1 */
    bool drop_orientation;    /* omit the EXIF orientation: for callers that store source.orientation elsewhere */
    bool keep_icc_profile;    /* keep an ICC profile */
    int64_t pixels_max;       /* 0: 100,000,000 */
} mr_crop_ready_options;

typedef struct mr_crop_ready_info {
    mr_image_info source;     /* the original, including its EXIF orientation */
    int32_t restart_interval; /* restart interval in MCUs */
    int32_t mcus_per_row;     /* of the image */
    size_t metadata_bytes;    /* size of the original's comments and application data that are not in the result */
    bool orientation_kept;    /* the original's orientation (2…8) is stored in a new EXIF segment */
    bool profile_dropped;     /* the original has an ICC profile, the result has none */
} mr_crop_ready_info;

/* Rewrites a JPEG so that random crops of it are cheap to decode here, while every decoder produces the same pixels.
 * The coefficients are unchanged. They are coded as one baseline scan with optimized Huffman tables and a restart
 * marker every few MCUs. JFIF and Adobe markers, which determine the color space, are kept. Other metadata is dropped,
 * except for an orientation of 2…8, without which viewers would display the image in another orientation: it becomes
 * the only tag of a new EXIF segment. The output is the same on any machine, and rewriting it again does not change it.
 *
 * options  may be null
 * ready    an MR_STRING scalar
 * info     may be null; after a failure only source is set, as far as it is known
 * memory   the coefficients (two bytes for each sample) and the result
 * errors   MR_INVALID_ARGUMENT: not an image, too large, or an invalid restart interval; MR_DATA_LOSS: truncated, or
 *          damaged in any way that decoders would conceal; MR_UNIMPLEMENTED: not a JPEG, or one that cannot be stored
 *          as a baseline scan: 12 bits, lossless or hierarchical coding, a progressive file with missing scans, samples
 *          beyond baseline's range, more than 10 blocks in an MCU. Keep such an image unchanged
 * threads  any */
MR_API mr_status mr_image_crop_ready(const void *bytes, size_t size_bytes, const mr_crop_ready_options *options,
                                     mr_tensor *ready, mr_crop_ready_info *info, mr_error *error);

/* ---- EXIF orientation ---- */

/* Rotates or mirrors [height, width, channels] of any dtype so that an image with this EXIF orientation is displayed
 * upright: 1 unchanged, 2 mirrored left to right, 3 rotated by 180°, 4 mirrored top to bottom, 5 transposed, 6 rotated
 * by 90° clockwise, 7 transposed along the other diagonal, 8 rotated by 90° counterclockwise. */
MR_API mr_status mr_image_orient(const mr_tensor *image, int32_t orientation, mr_tensor *turned, mr_error *error);
/* Applies a JPEG's EXIF orientation without decoding it. The coefficients are preserved: the reverse transformation
 * restores them. Other metadata is kept; the orientation tag is removed. The result is an MR_STRING scalar.
 * errors  MR_FAILED_PRECONDITION: a side to be mirrored ends inside a block of 8 or 16 pixels, or the image is not a
 *         JPEG with an orientation; otherwise as mr_image_decode */
MR_API mr_status mr_image_orient_jpeg(const void *bytes, size_t size_bytes, mr_tensor *upright, mr_error *error);

/* ---- Resize ---- */

/* Resizes [height, width, channels] of uint8 or uint16 with antialiasing: every source pixel contributes (Catmull-Rom,
 * widened when the image shrinks; Pillow's BICUBIC). For images to view or to store in training sets. Integer
 * arithmetic: the result is the same on every machine. With 2 and 4 channels, the last channel is alpha, and colors are
 * weighted by it. */
MR_API mr_status mr_image_scale(const mr_tensor *image, int64_t height, int64_t width, mr_tensor *scaled,
                                mr_error *error);

typedef struct mr_resize_options {
    size_t size; /* of this struct (api.h) */
    mr_resize_method method;
    bool align_corners;      /* TensorFlow 1: source = i (in - 1) / (out - 1) */
    bool half_pixel_centers; /* TensorFlow 2: source = (i + 0.5) scale - 0.5; if neither is set: source = i scale */
} mr_resize_options;
/* TensorFlow's ResizeBilinear, ResizeNearestNeighbor, ResizeArea and ResizeBicubic.
 * images   [batch, height, width, channels] or [height, width, channels] of uint8 or float
 * resized  float; MR_RESIZE_NEAREST keeps the dtype */
MR_API mr_status mr_image_resize(const mr_tensor *images, int64_t height, int64_t width,
                                 const mr_resize_options *options, mr_tensor *resized, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
