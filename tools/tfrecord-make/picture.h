/* A picture's bytes: what they are, whether they are whole, and what is made of them.
 *
 * ```c
 * picture picture = {0};
 * mr_status status = picture_treat(&options->treatment, "daisy/1.jpg", bytes, &picture, &error);
 * if (status == MR_OK) …picture.facts.encoded goes into the record…
 * else …picture.remarks has the kind of fault…
 * picture_deinit(&picture);
 * ```
 *
 * Whatever is odd about a picture is a remark: a bit, counted and told with a first example in the summary. Nothing is
 * guessed: a picture passes as it is, is changed as the options say, or is left out with its reason. */
#ifndef MR_TOOLS_TFRECORD_MAKE_PICTURE_H
#define MR_TOOLS_TFRECORD_MAKE_PICTURE_H

#include "tools/tfrecord-make/source.h"

typedef enum remark {
    /* What pictures are. */
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
    REMARK_NO_PICTURE,   /* by its content */
    REMARK_OTHER_FORMAT, /* by its content: HEIC, AVIF, … */
    REMARK_NEEDS_ENCODE, /* by its content: WebP, GIF, BMP, TIFF, without --encode */
    REMARK_DAMAGED,
    REMARK_TOO_LARGE, /* or of a kind that is not decoded */
    REMARK_NO_ROW,    /* its other columns cannot be used */
    REMARK_COUNT
} remark;
static constexpr remark REMARK_FAULTS = REMARK_UNREADABLE;

#define REMARK_BIT(remark) (UINT32_C(1) << (remark))

/* What follows the count: "pictures ask to be turned (EXIF) and were not; --upright turns them". Static. */
const char *remark_sentence(remark remark, bool plural);
/* A word for files: "oriented". Static. */
const char *remark_word(remark remark);

typedef enum picture_encoding { ENCODE_KEEP = 0, ENCODE_JPEG, ENCODE_PNG } picture_encoding;

/* What the options ask for. Zero: pass everything through, look at headers only. */
typedef struct treatment {
    bool check;   /* decode every picture that is not decoded anyway */
    bool upright; /* apply EXIF's orientation */
    bool crop_ready;
    int32_t shorter_side; /* 0: as it is; never made larger */
    int32_t quality;      /* of JPEGs that are encoded anew, 1…100 */
    bool encode_all;      /* every JPEG, at that quality */
    picture_encoding encoding;
} treatment;

/* Treated. Zero is empty; it may be treated into again and again. */
typedef struct picture {
    picture_facts facts;
    uint32_t remarks; /* bits */
    mr_tensor bytes;  /* owned; what facts.encoded points to when it is not the input */
} picture;

/* name   says by its ending what the picture should be; may be any name
 * bytes  borrowed until the next call: facts.encoded may be these very bytes
 * errors what is wrong, without the name; picture->remarks then has the kind of fault. MR_RESOURCE_EXHAUSTED: no memory
 * threads any, each with a picture of its own */
mr_status picture_treat(const treatment *treatment, const char *name, mr_string bytes, picture *picture,
                        mr_error *error);
void picture_deinit(picture *picture);

/* The parts of it, for who only looks. Probe also sets what the picture is in *remarks, or its kind of fault. */
mr_status picture_probe(const treatment *treatment, const char *name, mr_string bytes, mr_image_info *info,
                        uint32_t *remarks, mr_error *error);
/* Decodes all of it, at an eighth of its size: every byte is looked at, and little is computed. */
mr_status picture_check(mr_string bytes, const mr_image_info *info, uint32_t *remarks, mr_error *error);

/* The format that the ending of a name stands for, in any case; MR_IMAGE_UNKNOWN: of no image that is read or converted. */
mr_image_format picture_format_of_name(const char *name);

#endif
