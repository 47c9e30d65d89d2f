/* Pictures: JPEG and PNG in and out, resize, and the fused way from an encoded picture to a row of a batch.
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
 * Pixels are rows of width x channels, top first, 8 or 16 bits a channel. Bytes may be hostile: every function says in one
 * sentence what is wrong, and a picture is never larger in memory than its limit. All functions are thread-safe. */
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
const char *mr_image_format_name(mr_image_format format); /* "JPEG"; static */

typedef enum mr_color_space {
    MR_COLOR_UNKNOWN = 0,
    MR_COLOR_GRAY,
    MR_COLOR_RGB,  /* also YCbCr in the file */
    MR_COLOR_CMYK, /* also YCCK in the file */
} mr_color_space;

/* From the header alone: a picture that probes well may still be damaged. */
typedef struct mr_image_info {
    mr_image_format format;
    int32_t width, height;
    int32_t channels; /* as stored: JPEG 1, 3, 4; PNG 1 gray, 2 gray with alpha, 3, 4; a palette counts as 3 or 4 */
    int32_t bits;     /* of a channel: 8 or 16 (1, 2, 4 of a PNG count as 8) */
    mr_color_space color;
    bool progressive;    /* JPEG progressive, PNG interlaced */
    bool animated;       /* PNG, GIF, WebP of more than one frame; decoding takes the first */
    bool profile;        /* JPEG, PNG, WebP: a colour profile (ICC) is embedded, which decoding ignores */
    int32_t orientation; /* EXIF 1…8; 0 when the file does not say. Decoding ignores it, as TensorFlow does */
} mr_image_info;
/* Only JPEG and PNG are decoded; the others are named, so that a caller can say what a file is. GIF, BMP and WebP tell their
 * size too; TIFF and those behind it are MR_UNIMPLEMENTED, with info->format set.
 * errors  MR_INVALID_ARGUMENT not a picture; MR_DATA_LOSS cut or damaged in its header */
mr_status mr_image_probe(const void *bytes, size_t size_bytes, mr_image_info *info, mr_error *error);

/* ---- The fused way: decode, crop or pad, resize, flip, change colours, normalise ---- */

typedef enum mr_crop {
    MR_CROP_NONE = 0,       /* the whole picture, stretched to height x width */
    MR_CROP_CENTER,         /* the largest centred rectangle of the target's aspect, times `fraction` */
    MR_CROP_RANDOM,         /* a rectangle as MR_CROP_CENTER takes, placed at random */
    MR_CROP_RANDOM_RESIZED, /* area and aspect at random (torchvision's RandomResizedCrop): log-uniform aspect, ten tries,
                               then the centre */
    /* height x width pixels as they are, never resized; what lies outside the picture is padded. */
    MR_CROP_RANDOM_WINDOW, /* anywhere in the picture with `padding` pixels around it, each place as likely:
                              tf.image.random_crop of tf.pad; a picture that is too small is an error */
    MR_CROP_CENTER_WINDOW, /* its middle, cut or padded: tf.image.resize_with_crop_or_pad */
} mr_crop;

/* What is put around a picture, before colours change and pixels are normalised. */
typedef enum mr_image_pad {
    MR_IMAGE_PAD_ZERO = 0, /* black */
    MR_IMAGE_PAD_REFLECT, /* the picture mirrored about its outermost pixels, which are not repeated, as tf.pad's REFLECT does:
                        no wider than the picture's side less one */
} mr_image_pad;

typedef enum mr_resize_method {
    MR_RESIZE_BILINEAR = 0,
    MR_RESIZE_NEAREST,
    MR_RESIZE_AREA,
    MR_RESIZE_BICUBIC,
} mr_resize_method;

typedef enum mr_image_layout { MR_LAYOUT_NHWC = 0, MR_LAYOUT_NCHW } mr_image_layout;

typedef enum mr_color_step {
    MR_COLOR_USUAL = 0,
    MR_COLOR_BRIGHTNESS,
    MR_COLOR_CONTRAST,
    MR_COLOR_SATURATION,
    MR_COLOR_HUE,
} mr_color_step;

/* Colours at random, as tf.image.random_brightness and its kin draw and change floats: what leaves 0…255 is not cut off
 * before it is made bytes. (Saturation there makes gray of a red whose hue is a rounding error short of a whole turn; here
 * it stays red.) Brightness costs nothing, saturation and hue go once more over a row, contrast once more over
 * the picture and, where the result is not floats in NHWC, as many floats of memory.
 * limits  brightness and factors 0…1000, hue 0…0.5; saturation and hue need 3 channels */
typedef struct mr_color_options {
    float brightness;                     /* adds a delta of [-brightness, brightness), in units of the whole range */
    float contrast_min, contrast_max;     /* scales the distance from each channel's mean, by a factor of [min, max) */
    float saturation_min, saturation_max; /* scales the saturation (HSV), cut off at 1; max 0: not at all */
    float hue;                            /* turns the hue by [-hue, hue), in turns */
    mr_color_step order[4];               /* each step once; 0: brightness, contrast, saturation, hue */
} mr_color_options;

typedef struct mr_image_options {
    int32_t height, width; /* of the result; 0: as decoded (then crop must be MR_CROP_NONE) */
    int32_t channels;      /* 1 or 3; 0: 3 */
    mr_crop crop;
    float fraction;               /* 0: 1 */
    float area_min, area_max;     /* MR_CROP_RANDOM_RESIZED; 0: 0.08 and 1 */
    float aspect_min, aspect_max; /* 0: 3/4 and 4/3 */
    int32_t padding;              /* MR_CROP_RANDOM_WINDOW: pixels on each side, 0…65,536 */
    mr_image_pad pad;
    bool random_flip; /* left to right, half of the time */
    mr_color_options color;
    mr_resize_method method;
    mr_dtype dtype; /* MR_FLOAT (0 means this), MR_HALF, MR_BFLOAT16, MR_UINT8: the float, rounded to nearest even;
                       bytes saturate, half overflows to infinity */
    float mean[3], deviation[3]; /* (pixel - mean) / deviation, in units of 0…255; deviation 0: 1 */
    mr_image_layout layout;
    bool accurate_dct;     /* libjpeg's slow integer DCT; TensorFlow's default is the fast one */
    bool accept_truncated; /* JPEG: gray for what is missing instead of an error */
    bool accept_damaged;   /* JPEG: whatever bad data decodes to instead of an error, as TensorFlow does */
    int64_t pixels_max;    /* larger pictures are an error; 0: 100,000,000 */
    /* Approximate, off by default, for speed: a JPEG whose region is at least 2, 4 or 8 times the result in both
     * directions is decoded at that fraction of its size, by the DCT, and resized from there. The pixels are not those of
     * a full decode (each is an average of the 2 x 2, 4 x 4 or 8 x 8 it stands for), but the same on every machine and at
     * any number of threads. */
    bool approximate_scale;
} mr_image_options;

/* Whether the options are possible at all; decoding asks it too.
 * errors  MR_INVALID_ARGUMENT: a number that is negative, not finite or too large, an enum's value that there is not,
 *         height without width, a crop without both */
mr_status mr_image_check(const mr_image_options *options, mr_error *error);

/* What chance came to for one picture, or the caller wants: in pixels of the decoded picture. A window has the options'
 * height and width and may reach out of the picture, x and y below 0 too. */
typedef struct mr_image_region {
    int32_t x, y, width, height;
    bool flip;
    float brightness, hue;      /* what is added, in units of the whole range (-1000…1000) and turns (-1…1) */
    float contrast, saturation; /* factors, 0…1000; 0: as it is */
} mr_image_region;

/* Chooses the region. Random gives the numbers in this order: the region, its y and x, flip, brightness, contrast,
 * saturation, hue, each if it is asked for; null: nothing is left to chance, crops are centred. For options that pass
 * mr_image_check. */
typedef struct mr_random mr_random;
mr_image_region mr_image_choose(const mr_image_options *options, int32_t width, int32_t height, mr_random *random);

/* Memory that decoding keeps between pictures: one for each thread. {0} is ready. */
typedef struct mr_image_scratch mr_image_scratch;
mr_status mr_image_scratch_new(mr_image_scratch **scratch, mr_error *error);
void mr_image_scratch_free(mr_image_scratch *scratch);
size_t mr_image_scratch_bytes(const mr_image_scratch *scratch); /* that it keeps between pictures; 0 of null */

/* Decodes region of the picture straight into target: height x width x channels of the options' dtype and layout, the
 * pixels equal to cropping a full decode and resizing by TensorFlow 2's rule (half-pixel centres, no antialiasing), and
 * the same bits whatever vectors the processor has.
 * Only the rows and columns that the region needs are decoded, and of a JPEG with restart markers only the segments that
 * it touches are read at all: damage elsewhere may not be noticed.
 * region  inside the picture, except a window; {0} is the whole picture, or the window that has its middle
 * target  size_bytes large enough for the result
 * errors  MR_DATA_LOSS damaged, MR_INVALID_ARGUMENT not a picture or too large, too small for its window, options or a
 *         region that cannot be */
mr_status mr_image_decode_region(const void *bytes, size_t size_bytes, const mr_image_options *options,
                                 mr_image_region region, void *target, mr_image_scratch *scratch, mr_error *error);

/* ---- Plain decode and encode ---- */

typedef struct mr_image_decode_options {
    int32_t channels; /* 0: as TensorFlow (min(stored, 3) for JPEG, stored for PNG), else 1, 3, 4 (2 for PNG) */
    mr_dtype dtype;   /* MR_UINT8 (0 means this); MR_UINT16 for PNG */
    bool accurate_dct;
    bool no_fancy_upsampling;
    int32_t ratio;         /* JPEG: decode at 1/ratio: 1, 2, 4, 8; 0: 1 */
    bool accept_truncated; /* TensorFlow's try_recover_truncated: gray for what is missing instead of an error */
    bool accept_damaged;   /* as in mr_image_options; TensorFlow's operators always do */
    int64_t pixels_max;    /* 0: 100,000,000 */
} mr_image_decode_options;
/* A tensor [height, width, channels], equal to TensorFlow 2.15's DecodeJpeg and DecodePng to the byte. The bytes say
 * which format they are, as in TensorFlow, where either operator takes either format.
 * options  may be null
 * errors   MR_INVALID_ARGUMENT not a picture, too large or channels that the format has not; MR_UNIMPLEMENTED a format
 *          (GIF, BMP) or a kind of JPEG that is not decoded; MR_DATA_LOSS truncated or damaged */
mr_status mr_image_decode(const void *bytes, size_t size_bytes, const mr_image_decode_options *options,
                          mr_tensor *image, mr_error *error);

/* Encodes [height, width, channels] of uint8: JPEG 1 or 3 channels, quality 1…100 (0: 95); PNG 1…4 channels, and
 * uint16. The result is an MR_STRING scalar. */
mr_status mr_image_encode_jpeg(const mr_tensor *image, int32_t quality, mr_tensor *bytes, mr_error *error);
mr_status mr_image_encode_png(const mr_tensor *image, mr_tensor *bytes, mr_error *error);

/* ---- Crop-ready JPEGs ---- */

typedef struct mr_crop_ready_options {
    int32_t
        segment_mcus; /* between restart markers, 1…65,535; 0: 3…8 that divides the MCU row, 1 or 2 if nothing does */
    bool drop_orientation; /* leaves the EXIF orientation out: for a caller who keeps info's elsewhere */
    bool keep_profile;     /* keeps an ICC profile */
    int64_t pixels_max;    /* 0: 100,000,000 */
} mr_crop_ready_options;

typedef struct mr_crop_ready_info {
    mr_image_info source;  /* of the original, its EXIF orientation included */
    int32_t segment_mcus;  /* between restart markers */
    int32_t mcus_per_row;  /* of the picture */
    size_t metadata_bytes; /* of the original's comments and application data that the result has not */
    bool orientation_kept; /* the result says the original's orientation (2…8) in an EXIF segment of its own */
    bool profile_dropped;  /* the original has an ICC profile, the result has not */
} mr_crop_ready_info;

/* Rewrites a JPEG so that random crops of it are cheap to decode here and every decoder finds the same pixels: the
 * coefficients stay, coded as one baseline scan with Huffman tables of its own and a restart marker every few MCUs. JFIF
 * and Adobe markers, which decide the colour space, stay; other metadata goes, except an orientation of 2…8, without which
 * viewers would turn the picture otherwise: that stays as the only tag of an EXIF segment. The same bytes on any machine,
 * and again the same when rewritten again.
 *
 * options  may be null
 * ready    an MR_STRING scalar
 * info     may be null; after a failure only its source is set, as far as it is known
 * memory   the coefficients: two bytes for each sample, and the result
 * errors   MR_INVALID_ARGUMENT not a picture, too large, or a segment length that cannot be; MR_DATA_LOSS truncated or
 *          damaged in any way that decoders would patch up; MR_UNIMPLEMENTED not a JPEG, or one that no baseline scan can
 *          hold: 12 bits, lossless or hierarchical coding, a progressive file that lacks scans, samples beyond baseline's
 *          range, more than 10 blocks in an MCU. Such a picture is best passed through as it is.
 * threads  any */
mr_status mr_image_crop_ready(const void *bytes, size_t size_bytes, const mr_crop_ready_options *options,
                              mr_tensor *ready, mr_crop_ready_info *info, mr_error *error);

/* ---- Upright ---- */

/* Turns [height, width, channels] of any dtype so that a picture with this EXIF orientation stands upright: 1 as it is,
 * 2 mirrored left to right, 3 by 180°, 4 mirrored top to bottom, 5 transposed, 6 by 90° to the right, 7 transposed along the
 * other diagonal, 8 by 90° to the left. */
mr_status mr_image_turn(const mr_tensor *image, int32_t orientation, mr_tensor *turned, mr_error *error);
/* Turns a JPEG by its orientation without decoding it: nothing of its coefficients is lost, and turning it back gives them
 * again. Metadata stays but for the orientation, which is taken out. The result is an MR_STRING scalar.
 * errors  MR_FAILED_PRECONDITION when a side that has to be mirrored ends inside a block of 8 or 16 pixels, or the file does not
 *         ask to be turned; as mr_image_decode otherwise */
mr_status mr_image_upright_jpeg(const void *bytes, size_t size_bytes, mr_tensor *upright, mr_error *error);

/* ---- Resize ---- */

/* Scales [height, width, channels] of uint8 or uint16 for people and training sets to keep: each pixel of the result takes
 * in all pixels that it stands for (Catmull-Rom, widened when the picture shrinks; Pillow calls it BICUBIC). In integers: the same
 * bytes on every machine. Of 2 and 4 channels the last is how opaque a pixel is, and weighs it. */
mr_status mr_image_scale(const mr_tensor *image, int64_t height, int64_t width, mr_tensor *scaled, mr_error *error);

typedef struct mr_resize_options {
    mr_resize_method method;
    bool align_corners;      /* TensorFlow 1: source = i (in - 1) / (out - 1) */
    bool half_pixel_centers; /* TensorFlow 2: source = (i + 0.5) scale - 0.5; neither: source = i scale */
} mr_resize_options;
/* images  [batch, height, width, channels] or [height, width, channels] of uint8 or float
 * resized float, except nearest, which keeps the dtype; TensorFlow's ResizeBilinear, ResizeNearestNeighbor, ResizeArea,
 *         ResizeBicubic */
mr_status mr_image_resize(const mr_tensor *images, int64_t height, int64_t width, const mr_resize_options *options,
                          mr_tensor *resized, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
