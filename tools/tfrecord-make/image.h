/* One image: identifies, checks and converts its bytes.
 *
 * ```c
 * image image = {0};
 * mr_status status = image_treat(&options->treatment, "daisy/1.jpg", bytes, &image, &error);
 * if (status == MR_OK) …image.facts.encoded goes into the record…
 * else …image.remarks has the kind of fault…
 * image_deinit(&image);
 * ```
 *
 * Every unusual property of an image is a remark: a bit that is counted, and reported in the summary with an example.
 * Nothing is guessed: an image is stored unchanged, is changed as the options specify, or is left out with a reason. */
#ifndef MR_TOOLS_TFRECORD_MAKE_IMAGE_H
#define MR_TOOLS_TFRECORD_MAKE_IMAGE_H

#include "tfrecord-make/source.h"

typedef enum remark {
    /* Properties of images. */
    REMARK_ORIENTED,    /* EXIF orientation that was not applied */
    REMARK_CMYK,        /* kept as CMYK */
    REMARK_WIDE,        /* 16 bits per channel, kept */
    REMARK_ANIMATED,    /* several frames, kept */
    REMARK_MISLABELLED, /* format differs from the name */
    /* Changes. */
    REMARK_ROTATED,          /* rotated without decoding, or losslessly as PNG */
    REMARK_ROTATED_ENCODED,  /* rotated and re-encoded */
    REMARK_SCALED,           /* to --shorter-side */
    REMARK_ENCODED,          /* re-encoded, for --quality or --encode alone */
    REMARK_CMYK_CONVERTED,   /* to RGB, by re-encoding */
    REMARK_NARROWED,         /* 16 bits to 8 */
    REMARK_FIRST_FRAME,      /* of several */
    REMARK_FIRST_PAGE,       /* of several */
    REMARK_PROFILE_DROPPED,  /* a color profile */
    REMARK_TRANSPARENT_KEPT, /* kept as PNG, because JPEG has no transparency */
    REMARK_NOT_CROP_READY,   /* a JPEG that cannot be rewritten for crops */
    REMARK_BOXES_CUT,        /* clipped or left out; only if the annotation has no image size */
    /* Reasons for leaving images out. All remarks from here on are faults. */
    REMARK_UNREADABLE,
    REMARK_EMPTY,
    REMARK_NO_IMAGE,     /* not an image, by its content */
    REMARK_OTHER_FORMAT, /* by content: HEIC, AVIF, … */
    REMARK_NEEDS_ENCODE, /* by content: WebP, GIF, BMP, TIFF, without --encode */
    REMARK_DAMAGED,
    REMARK_TOO_LARGE, /* or of an unsupported kind */
    REMARK_NO_ROW,    /* its other columns cannot be used */
    REMARK_COUNT
} remark;
static constexpr remark REMARK_FAULTS = REMARK_UNREADABLE;

#define REMARK_BIT(remark) (UINT32_C(1) << (remark))

/* The sentence that follows the count: "images have an EXIF orientation, …". Static. */
const char *remark_sentence(remark remark, bool plural);
/* The key of the remark in files: "oriented". Static. */
const char *remark_name(remark remark);

typedef enum image_encoding { ENCODE_KEEP = 0, ENCODE_JPEG, ENCODE_PNG } image_encoding;

/* How images are treated, from the options. Zero: store everything unchanged and read only headers. */
typedef struct treatment {
    bool check;   /* decode every image once as a check, unless it is decoded for another reason */
    bool upright; /* apply EXIF's orientation */
    bool crop_ready;
    int32_t shorter_side; /* 0: unchanged; images are never enlarged */
    int32_t quality;      /* of re-encoded JPEGs, 1…100 */
    bool encode_all;      /* re-encode every JPEG, at that quality */
    image_encoding encoding;
} treatment;

/* A treated image. Zero is empty; it can be reused for any number of images. */
typedef struct image {
    image_facts facts;
    uint32_t remarks; /* bits */
    mr_tensor bytes;  /* owned; the memory of facts.encoded, if that is not the input */
} image;

/* name     its extension indicates the expected format; may be any name
 * bytes    borrowed until the next call: facts.encoded may point to them
 * errors   what is wrong, without the name; image->remarks then has the kind of fault. MR_RESOURCE_EXHAUSTED: out of
 *          memory
 * threads  any, each with an image of its own */
mr_status image_treat(const treatment *treatment, const char *name, mr_string bytes, image *image, mr_error *error);
void image_deinit(image *image);

/* The steps of image_treat, for callers that only examine images. image_probe also sets the image's properties, or
 * its kind of fault, in *remarks. */
mr_status image_probe(const treatment *treatment, const char *name, mr_string bytes, mr_image_info *info,
                      uint32_t *remarks, mr_error *error);
/* Decodes the complete image at an eighth of its size: every byte is checked with little computation. */
mr_status image_check(mr_string bytes, const mr_image_info *info, uint32_t *remarks, mr_error *error);

/* The format that the extension of a name indicates, in any case; MR_IMAGE_UNKNOWN: neither read nor converted. */
mr_image_format image_format_of_name(const char *name);

#endif
