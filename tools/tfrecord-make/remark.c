/* What is said about images, one row a remark. */
#include "tools/tfrecord-make/image.h"

static const struct {
    const char *word, *one, *many;
} rows[REMARK_COUNT] = {
    [REMARK_ORIENTED] = {"oriented", "image has an EXIF orientation, which decoders ignore; --upright turns it",
                         "images have an EXIF orientation, which decoders ignore; --upright turns them"},
    [REMARK_CMYK] = {"cmyk", "image is CMYK and was kept so; programs differ in how they decode it",
                     "images are CMYK and were kept so; programs differ in how they decode them"},
    [REMARK_WIDE] = {"wide", "image has 16 bits a channel and was kept so; most decode it to 8",
                     "images have 16 bits a channel and were kept so; most decode them to 8"},
    [REMARK_ANIMATED] = {"animated", "image is animated and was kept so; decoders take its first frame",
                         "images are animated and were kept so; decoders take their first frame"},
    [REMARK_MISLABELLED] = {"mislabelled", "image is of another format than its name says; its content was believed",
                            "images are of another format than their names say; their content was believed"},
    [REMARK_TURNED] = {"turned", "image was turned upright without loss", "images were turned upright without loss"},
    [REMARK_TURNED_ENCODED] = {"turned-encoded", "image was turned upright and encoded anew",
                               "images were turned upright and encoded anew"},
    [REMARK_SCALED] = {"scaled", "image was made smaller", "images were made smaller"},
    [REMARK_ENCODED] = {"encoded", "image was encoded anew", "images were encoded anew"},
    [REMARK_CMYK_CONVERTED] = {"cmyk-converted", "CMYK image became RGB, as TensorFlow decodes it",
                               "CMYK images became RGB, as TensorFlow decodes them"},
    [REMARK_NARROWED] = {"narrowed", "image of 16 bits a channel became one of 8",
                         "images of 16 bits a channel became ones of 8"},
    [REMARK_FIRST_FRAME] = {"first-frame", "animated image became its first frame",
                            "animated images became their first frames"},
    [REMARK_FIRST_PAGE] = {"first-page", "image of several pages became its first page",
                           "images of several pages became their first pages"},
    [REMARK_PROFILE_DROPPED] = {"profile-dropped", "image lost its colour profile, which decoders for training ignore",
                                "images lost their colour profile, which decoders for training ignore"},
    [REMARK_TRANSPARENT_KEPT] = {"transparent", "image is transparent and stayed PNG",
                                 "images are transparent and stayed PNG"},
    [REMARK_NOT_CROP_READY] = {"not-crop-ready", "JPEG cannot be rewritten for crops and was kept as it is",
                               "JPEGs cannot be rewritten for crops and were kept as they are"},
    [REMARK_BOXES_CUT] = {"boxes-cut", "image has boxes that were cut at its edge or left out beyond it",
                          "images have boxes that were cut at their edge or left out beyond it"},
    [REMARK_UNREADABLE] = {"unreadable", "file could not be read", "files could not be read"},
    [REMARK_EMPTY] = {"empty", "file is empty", "files are empty"},
    [REMARK_NO_IMAGE] = {"no-image", "file is no image", "files are no images"},
    [REMARK_OTHER_FORMAT] = {"other-format", "image is of a format that is not decoded",
                             "images are of formats that are not decoded"},
    [REMARK_NEEDS_ENCODE] = {"needs-encode", "image is WebP, GIF, BMP or TIFF; --encode jpeg or png converts it",
                             "images are WebP, GIF, BMP or TIFF; --encode jpeg or png converts them"},
    [REMARK_DAMAGED] = {"damaged", "image is damaged or cut short", "images are damaged or cut short"},
    [REMARK_TOO_LARGE] = {"not-decoded", "image is too large or of a kind that is not decoded",
                          "images are too large or of a kind that is not decoded"},
    [REMARK_NO_ROW] = {"no-row", "row has values that cannot be used", "rows have values that cannot be used"},
};

const char *remark_sentence(remark remark, bool plural)
{
    return plural ? rows[remark].many : rows[remark].one;
}

const char *remark_word(remark remark)
{
    return rows[remark].word;
}
