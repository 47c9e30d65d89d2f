/* The sentences about images, one row for each remark. */
#include "tfrecord-make/image.h"

static const struct {
    const char *word, *one, *many;
} rows[REMARK_COUNT] = {
    [REMARK_ORIENTED] = {"oriented", "image has an EXIF orientation, which decoders ignore; --upright applies it",
                         "images have an EXIF orientation, which decoders ignore; --upright applies it"},
    [REMARK_CMYK] = {"cmyk", "image is CMYK and was kept; programs decode it differently",
                     "images are CMYK and were kept; programs decode them differently"},
    [REMARK_WIDE] = {"wide", "image has 16 bits per channel and was kept; most programs decode only 8",
                     "images have 16 bits per channel and were kept; most programs decode only 8"},
    [REMARK_ANIMATED] = {"animated", "image is animated and was kept; decoders use its first frame",
                         "images are animated and were kept; decoders use their first frames"},
    [REMARK_MISLABELLED] = {"mislabelled", "image has another format than its name indicates; its content was used",
                            "images have another format than their names indicate; their content was used"},
    [REMARK_ROTATED] = {"rotated", "image was rotated upright losslessly", "images were rotated upright losslessly"},
    [REMARK_ROTATED_ENCODED] = {"rotated-encoded", "image was rotated upright and re-encoded",
                                "images were rotated upright and re-encoded"},
    [REMARK_SCALED] = {"scaled", "image was shrunk", "images were shrunk"},
    [REMARK_ENCODED] = {"encoded", "image was re-encoded", "images were re-encoded"},
    [REMARK_CMYK_CONVERTED] = {"cmyk-converted", "CMYK image was converted to RGB, as TensorFlow decodes it",
                               "CMYK images were converted to RGB, as TensorFlow decodes them"},
    [REMARK_NARROWED] = {"narrowed", "image was reduced from 16 to 8 bits per channel",
                         "images were reduced from 16 to 8 bits per channel"},
    [REMARK_FIRST_FRAME] = {"first-frame", "animated image was reduced to its first frame",
                            "animated images were reduced to their first frames"},
    [REMARK_FIRST_PAGE] = {"first-page", "image with several pages was reduced to its first page",
                           "images with several pages were reduced to their first pages"},
    [REMARK_PROFILE_DROPPED] = {"profile-dropped", "image lost its color profile, which training decoders ignore",
                                "images lost their color profile, which training decoders ignore"},
    [REMARK_TRANSPARENT_KEPT] = {"transparent", "image is transparent and was kept as PNG",
                                 "images are transparent and were kept as PNG"},
    [REMARK_NOT_CROP_READY] = {"not-crop-ready", "JPEG cannot be rewritten for crops and was kept unchanged",
                               "JPEGs cannot be rewritten for crops and were kept unchanged"},
    [REMARK_BOXES_CUT] = {"boxes-cut", "image has boxes that were cut at its edge or left out because they are outside",
                          "images have boxes that were cut at their edge or left out because they are outside"},
    [REMARK_UNREADABLE] = {"unreadable", "file could not be read", "files could not be read"},
    [REMARK_EMPTY] = {"empty", "file is empty", "files are empty"},
    [REMARK_NO_IMAGE] = {"no-image", "file is not an image", "files are not images"},
    [REMARK_OTHER_FORMAT] = {"other-format", "image has an unsupported format", "images have an unsupported format"},
    [REMARK_NEEDS_ENCODE] = {"needs-encode", "image is WebP, GIF, BMP or TIFF; --encode jpeg or png converts it",
                             "images are WebP, GIF, BMP or TIFF; --encode jpeg or png converts them"},
    [REMARK_DAMAGED] = {"damaged", "image is damaged or truncated", "images are damaged or truncated"},
    [REMARK_TOO_LARGE] = {"not-decoded", "image is too large or of an unsupported kind",
                          "images are too large or of an unsupported kind"},
    [REMARK_NO_ROW] = {"no-row", "row has values that cannot be used", "rows have values that cannot be used"},
};

const char *remark_sentence(remark remark, bool plural)
{
    return plural ? rows[remark].many : rows[remark].one;
}

const char *remark_name(remark remark)
{
    return rows[remark].word;
}
