/* An image's bytes: what they are, whether they are whole, and what is made of them.
 *
 * ```c
 * image image = {0};
 * mr_status status = image_treat(&options->treatment, "daisy/1.jpg", bytes, &image, &error);
 * if (status == MR_OK) …image.facts.encoded goes into the record…
 * else …image.remarks has the kind of fault…
 * image_deinit(&image);
 * ```
 *
 * Whatever is odd about an image is a remark: a bit, counted and told with a first example in the summary. Nothing is
 * guessed: an image passes as it is, is changed as the options say, or is left out with its reason. */
#ifndef MR_TOOLS_TFRECORD_MAKE_IMAGE_H
#define MR_TOOLS_TFRECORD_MAKE_IMAGE_H

#include "tools/tfrecord-make/source.h"

typedef enum remark {
    /* What images are. */
    REMARK_ORIENTED,    /* EXIF asks to turn it, and it was not turned */
    REMARK_CMYK,        /* kept as CMYK */
    REMARK_WIDE,        /* 16 bits a channel, kept */
    REMARK_ANIMATED,    /* several frames, kept */
    REMARK_MISLABELLED, /* the name says another format */
    /* What was done with them. */
    REMARK_TURNED,           /* without decoding, or losslessly as PNG */
    REMARK_TURNED_ENCODED,   /* by encoding anew */
    REMARK_SCALED,           /* to --shorter-side */
    REMARK_ENCODED,          /* anew, for --quality or --encode alone */
    REMARK_CMYK_CONVERTED,   /* to RGB, by encoding anew */
    REMARK_NARROWED,         /* 16 bits to 8 */
    REMARK_FIRST_FRAME,      /* of several */
    REMARK_FIRST_PAGE,       /* of several */
    REMARK_PROFILE_DROPPED,  /* a colour profile */
    REMARK_TRANSPARENT_KEPT, /* stays PNG, because JPEG has no transparency */
    REMARK_NOT_CROP_READY,   /* a JPEG of a kind that cannot be rewritten */
    REMARK_BOXES_CUT,        /* at its edge, or left out beyond it; where the annotation does not say its size */
    /* Why they were left out. From here on they are faults. */
    REMARK_UNREADABLE,
    REMARK_EMPTY,
    REMARK_NO_IMAGE,     /* by its content */
    REMARK_OTHER_FORMAT, /* by its content: HEIC, AVIF, … */
    REMARK_NEEDS_ENCODE, /* by its content: WebP, GIF, BMP, TIFF, without --encode */
    REMARK_DAMAGED,
    REMARK_TOO_LARGE, /* or of a kind that is not decoded */
    REMARK_NO_ROW,    /* its other columns cannot be used */
    REMARK_COUNT
} remark;
static constexpr remark REMARK_FAULTS = REMARK_UNREADABLE;

#define REMARK_BIT(remark) (UINT32_C(1) << (remark))

/* What follows the count: "images ask to be turned (EXIF) and were not; --upright turns them". Static. */
const char *remark_sentence(remark remark, bool plural);
/* A word for files: "oriented". Static. */
const char *remark_word(remark remark);

typedef enum image_encoding { ENCODE_KEEP = 0, ENCODE_JPEG, ENCODE_PNG } image_encoding;

/* What the options ask for. Zero: pass everything through, look at headers only. */
typedef struct treatment {
    bool check;   /* decode every image that is not decoded anyway */
    bool upright; /* apply EXIF's orientation */
    bool crop_ready;
    int32_t shorter_side; /* 0: as it is; never made larger */
    int32_t quality;      /* of JPEGs that are encoded anew, 1…100 */
    bool encode_all;      /* every JPEG, at that quality */
    image_encoding encoding;
} treatment;

/* Treated. Zero is empty; it may be treated into again and again. */
typedef struct image {
    image_facts facts;
    uint32_t remarks; /* bits */
    mr_tensor bytes;  /* owned; what facts.encoded points to when it is not the input */
} image;

/* name   says by its ending what the image should be; may be any name
 * bytes  borrowed until the next call: facts.encoded may be these very bytes
 * errors what is wrong, without the name; image->remarks then has the kind of fault. MR_RESOURCE_EXHAUSTED: no memory
 * threads any, each with an image of its own */
mr_status image_treat(const treatment *treatment, const char *name, mr_string bytes, image *image, mr_error *error);
void image_deinit(image *image);

/* The parts of it, for who only looks. Probe also sets what the image is in *remarks, or its kind of fault. */
mr_status image_probe(const treatment *treatment, const char *name, mr_string bytes, mr_image_info *info,
                      uint32_t *remarks, mr_error *error);
/* Decodes all of it, at an eighth of its size: every byte is looked at, and little is computed. */
mr_status image_check(mr_string bytes, const mr_image_info *info, uint32_t *remarks, mr_error *error);

/* The format that the ending of a name stands for, in any case; MR_IMAGE_UNKNOWN: of no image that is read or converted. */
mr_image_format image_format_of_name(const char *name);

#endif
