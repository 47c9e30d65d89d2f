/* The treatment of an image: see image.h. The steps: read the header; if the image must be decoded, decode, scale,
 * rotate and re-encode it; if it only must be rotated, rotate it without decoding where that is exact; last, prepare
 * the result for crops. Every step computes in integers, so the bytes are the same on every machine. */
#include "tfrecord-make/image.h"
#include "tfrecord-make/foreign.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

/* Shrinking starts from an image that is decoded at least at this multiple of the target size. */
static constexpr int32_t DECODE_MARGIN = 2;

static const struct {
    const char *ending;
    mr_image_format format;
} endings[] = {
    {".jpg", MR_IMAGE_JPEG}, {".jpeg", MR_IMAGE_JPEG}, {".jpe", MR_IMAGE_JPEG},  {".jfif", MR_IMAGE_JPEG},
    {".png", MR_IMAGE_PNG},  {".webp", MR_IMAGE_WEBP}, {".gif", MR_IMAGE_GIF},   {".bmp", MR_IMAGE_BMP},
    {".dib", MR_IMAGE_BMP},  {".tif", MR_IMAGE_TIFF},  {".tiff", MR_IMAGE_TIFF},
};

mr_image_format image_format_of_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcasecmp(dot, endings[i].ending) == 0) return endings[i].format;
    return MR_IMAGE_UNKNOWN;
}

static bool is_mislabelled(const char *name, mr_image_format format)
{
    mr_image_format named = image_format_of_name(name);
    return named != MR_IMAGE_UNKNOWN && named != format;
}

static uint32_t bit_if(bool condition, remark remark)
{
    return condition ? REMARK_BIT(remark) : 0;
}

/* Sets the remark for a decoder's status. */
static mr_status fault(mr_status status, uint32_t *remarks)
{
    remark kind = status == MR_DATA_LOSS                                        ? REMARK_DAMAGED
                  : status == MR_INVALID_ARGUMENT || status == MR_UNIMPLEMENTED ? REMARK_TOO_LARGE
                                                                                : REMARK_UNREADABLE;
    if (status != MR_OK) *remarks = REMARK_BIT(kind);
    return status;
}

mr_status image_probe(const treatment *treatment, const char *name, mr_string bytes, mr_image_info *info,
                      uint32_t *remarks, mr_error *error)
{
    *info = (mr_image_info){0};
    *remarks = 0;
    if (bytes.size_bytes == 0) {
        *remarks = REMARK_BIT(REMARK_EMPTY);
        return mr_fail(error, MR_DATA_LOSS, "the file is empty");
    }
    mr_status status = mr_image_probe(bytes.data, bytes.size_bytes, info, error);
    if (info->format == MR_IMAGE_UNKNOWN) {
        *remarks = REMARK_BIT(REMARK_NO_IMAGE);
        return status;
    }
    if (foreign_is(info->format) && treatment->encoding == ENCODE_KEEP) {
        *remarks = REMARK_BIT(REMARK_NEEDS_ENCODE);
        return mr_fail(error, MR_UNIMPLEMENTED, "is %s; --encode jpeg or --encode png converts it",
                       mr_image_format_name(info->format));
    }
    /* For a TIFF, only the decoder knows more than the size. */
    if (info->format == MR_IMAGE_TIFF) status = MR_OK;
    if (info->format != MR_IMAGE_JPEG && info->format != MR_IMAGE_PNG && !foreign_is(info->format)) {
        *remarks = REMARK_BIT(REMARK_OTHER_FORMAT);
        return mr_fail(error, MR_UNIMPLEMENTED, "is %s, which is not supported", mr_image_format_name(info->format));
    }
    if (status != MR_OK) return fault(status, remarks);
    *remarks = bit_if(info->orientation > 1, REMARK_ORIENTED) | bit_if(info->color == MR_COLOR_CMYK, REMARK_CMYK) |
               bit_if(info->bits > 8, REMARK_WIDE) | bit_if(info->is_animated, REMARK_ANIMATED) |
               bit_if(is_mislabelled(name, info->format), REMARK_MISLABELLED);
    return MR_OK;
}

mr_status image_check(mr_string bytes, const mr_image_info *info, uint32_t *remarks, mr_error *error)
{
    mr_tensor pixels = {0};
    mr_image_info found = *info;
    mr_image_decode_options options = {.size = sizeof options, .ratio = info->format == MR_IMAGE_JPEG ? 8 : 0};
    mr_status status = foreign_is(info->format)
                           ? foreign_decode(bytes, &found, &pixels, error)
                           : mr_image_decode(bytes.data, bytes.size_bytes, &options, &pixels, error);
    mr_tensor_deinit(&pixels);
    return fault(status, remarks);
}

/* ---- Re-encoding ---- */

/* The target size of the image before rotation: the shorter side as requested, the other in proportion. */
static void target_size(const treatment *treatment, const mr_image_info *info, int32_t *width, int32_t *height)
{
    int32_t shorter = info->width < info->height ? info->width : info->height, side = treatment->shorter_side;
    *width = info->width;
    *height = info->height;
    if (side == 0 || shorter <= side) return;
    *width = (int32_t)(((int64_t)info->width * side + shorter / 2) / shorter);
    *height = (int32_t)(((int64_t)info->height * side + shorter / 2) / shorter);
}

static mr_status decode(const treatment *treatment, mr_string bytes, mr_image_info *info, mr_tensor *pixels,
                        mr_error *error)
{
    int32_t width, height;
    target_size(treatment, info, &width, &height);
    mr_image_decode_options options = {.size = sizeof options, .accurate_dct = true, .dtype = MR_UINT8, .ratio = 1};
    if (info->format == MR_IMAGE_PNG && info->bits > 8) options.dtype = MR_UINT16;
    /* libjpeg scales down during decoding, which is cheaper than the remaining scaling. */
    int64_t least = (int64_t)DECODE_MARGIN * (width < height ? width : height);
    int64_t shorter = info->width < info->height ? info->width : info->height;
    if (info->format == MR_IMAGE_JPEG && shorter > treatment->shorter_side && treatment->shorter_side > 0)
        while (options.ratio < 8 && shorter / (2 * options.ratio) >= least) options.ratio *= 2;
    MR_TRY(foreign_is(info->format) ? foreign_decode(bytes, info, pixels, error)
                                    : mr_image_decode(bytes.data, bytes.size_bytes, &options, pixels, error));
    if (pixels->shape.dims[0] == height && pixels->shape.dims[1] == width) return MR_OK;
    mr_tensor scaled = {0};
    mr_status status = mr_image_scale(pixels, height, width, &scaled, error);
    mr_tensor_deinit(pixels);
    *pixels = scaled;
    return status;
}

static bool is_transparent(const mr_tensor *pixels)
{
    int64_t channels = pixels->shape.dims[2], count = mr_tensor_count(pixels);
    if (channels != 2 && channels != 4) return false;
    const uint8_t *bytes = pixels->data;
    const uint16_t *words = pixels->data;
    for (int64_t i = channels - 1; i < count; i += channels)
        if (pixels->dtype == MR_UINT8 ? bytes[i] != 255 : words[i] != 65535) return true;
    return false;
}

/* Reduces pixels to what JPEG can store: without the last channel of 2 or 4, and only the high bytes of 16 bits. */
static mr_status simplify(mr_tensor *pixels, uint32_t *remarks, mr_error *error)
{
    int64_t channels = pixels->shape.dims[2], kept = channels < 3 ? 1 : 3;
    if (channels == kept && pixels->dtype == MR_UINT8) return MR_OK;
    mr_tensor simple = {0};
    int64_t height = pixels->shape.dims[0], width = pixels->shape.dims[1];
    mr_status status = mr_tensor_init(&simple, MR_UINT8, MR_SHAPE(height, width, kept), error);
    if (status == MR_OK) {
        const uint8_t *bytes = pixels->data;
        const uint16_t *words = pixels->data;
        uint8_t *target = simple.data;
        bool narrow = pixels->dtype == MR_UINT8;
        for (int64_t i = 0; i < height * width; i++)
            for (int64_t c = 0; c < kept; c++)
                *target++ = narrow ? bytes[i * channels + c] : (uint8_t)(words[i * channels + c] >> 8);
        if (!narrow) *remarks |= REMARK_BIT(REMARK_NARROWED);
    }
    mr_tensor_deinit(pixels);
    *pixels = simple;
    return status;
}

static mr_status encode(const treatment *treatment, mr_image_format source, mr_tensor *pixels, uint32_t *remarks,
                        mr_tensor *encoded, mr_error *error)
{
    bool jpeg = treatment->encoding == ENCODE_JPEG || (source == MR_IMAGE_JPEG && treatment->encoding == ENCODE_KEEP);
    if (jpeg && is_transparent(pixels)) {
        *remarks |= REMARK_BIT(REMARK_TRANSPARENT_KEPT);
        jpeg = false;
    }
    if (!jpeg) return mr_image_encode_png(pixels, encoded, error);
    MR_TRY(simplify(pixels, remarks, error));
    return mr_image_encode_jpeg(pixels, treatment->quality, encoded, error);
}

/* Sets the remarks for what is lost by re-encoding. */
static void remark_losses(const mr_image_info *info, uint32_t *remarks)
{
    /* Known only to the TIFF decoder. */
    if (info->format == MR_IMAGE_TIFF && info->is_animated) *remarks |= REMARK_BIT(REMARK_FIRST_PAGE);
    if (info->format == MR_IMAGE_TIFF && info->color == MR_COLOR_CMYK) *remarks |= REMARK_BIT(REMARK_CMYK);
    if (info->format == MR_IMAGE_TIFF && info->bits > 8 && (*remarks & REMARK_BIT(REMARK_NARROWED)) == 0)
        *remarks |= REMARK_BIT(REMARK_WIDE);
    if ((*remarks & REMARK_BIT(REMARK_CMYK)) != 0) *remarks |= REMARK_BIT(REMARK_CMYK_CONVERTED);
    if ((*remarks & REMARK_BIT(REMARK_ANIMATED)) != 0) *remarks |= REMARK_BIT(REMARK_FIRST_FRAME);
    if ((*remarks & REMARK_BIT(REMARK_NARROWED)) != 0) *remarks &= ~REMARK_BIT(REMARK_WIDE);
    *remarks &= ~(REMARK_BIT(REMARK_CMYK) | REMARK_BIT(REMARK_ANIMATED));
    if (info->has_icc_profile) *remarks |= REMARK_BIT(REMARK_PROFILE_DROPPED);
}

static mr_status encode_anew(const treatment *treatment, mr_string bytes, bool turn, image *image, mr_error *error)
{
    mr_image_info *info = &image->facts.info;
    mr_tensor pixels = {0};
    mr_status status = decode(treatment, bytes, info, &pixels, error);
    if (status == MR_OK && turn) {
        mr_tensor rotated = {0};
        status = mr_image_orient(&pixels, info->orientation, &rotated, error);
        mr_tensor_deinit(&pixels);
        pixels = rotated;
    }
    if (status == MR_OK) status = encode(treatment, info->format, &pixels, &image->remarks, &image->bytes, error);
    mr_tensor_deinit(&pixels);
    if (status == MR_OK) remark_losses(info, &image->remarks);
    return status;
}

/* ---- The complete treatment ---- */

static void take_bytes(image *image)
{
    image->facts.encoded = mr_tensor_strings(&image->bytes)[0];
}

static bool is_jpeg(mr_string bytes)
{
    return (unsigned char)bytes.data[0] == 0xff;
}

/* Re-encoding drops all metadata. The orientation of an image that is not rotated is kept, as the only tag: after
 * the JFIF segment (or the start) of a JPEG, after the header of a PNG. */
static mr_status keep_orientation(image *image, int32_t orientation, mr_error *error)
{
    static const char jpeg_head[] = "\xff\xe1\0\x22"
                                    "Exif\0";
    static const char tiff[26] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01";
    mr_string from = image->facts.encoded;
    const unsigned char *start = (const unsigned char *)from.data;
    char segment[64], *next = segment;
    size_t at = 8 + 25; /* a PNG's signature and header */
    bool jpeg = is_jpeg(from);
    if (jpeg) at = start[3] == 0xe0 ? 4 + ((size_t)start[4] << 8 | start[5]) : 2;
    next = mempcpy(next,
                   jpeg ? jpeg_head
                        : "\0\0\0\x1a"
                          "eXIf",
                   jpeg ? sizeof(jpeg_head) : 8);
    next = mempcpy(next, tiff, sizeof(tiff));
    next[-26 + 19] = (char)orientation;
    if (!jpeg) {
        uint32_t crc = (uint32_t)crc32(0, (const Bytef *)segment + 4, 4 + sizeof(tiff));
        for (int i = 3; i >= 0; i--) *next++ = (char)(crc >> 8 * i);
    }
    size_t size = (size_t)(next - segment);
    char *whole = malloc(from.size_bytes + size);
    if (!whole) return fail_memory(error, from.size_bytes + size);
    memcpy(whole, from.data, at);
    memcpy(whole + at, segment, size);
    memcpy(whole + at + size, from.data + at, from.size_bytes - at);
    mr_tensor kept = {0};
    mr_status status = mr_tensor_init_string(&kept, (mr_string){whole, from.size_bytes + size}, error);
    free(whole);
    if (status != MR_OK) return status;
    mr_tensor_deinit(&image->bytes);
    image->bytes = kept;
    take_bytes(image);
    return MR_OK;
}

/* Rotates without decoding if that is exact; otherwise *done is false. */
static mr_status turn_exactly(mr_string bytes, image *image, bool *done, mr_error *error)
{
    *done = false;
    if (image->facts.info.format != MR_IMAGE_JPEG) return MR_OK;
    mr_error problem = {0};
    mr_status status = mr_image_orient_jpeg(bytes.data, bytes.size_bytes, &image->bytes, &problem);
    if (status == MR_FAILED_PRECONDITION) return MR_OK;
    if (status != MR_OK) return mr_fail(error, status, "%s", problem.message);
    *done = true;
    image->remarks |= REMARK_BIT(REMARK_ROTATED);
    take_bytes(image);
    return MR_OK;
}

static mr_status make_crop_ready(image *image, mr_error *error)
{
    mr_tensor ready = {0};
    mr_crop_ready_info about = {0};
    mr_error problem = {0};
    mr_string bytes = image->facts.encoded;
    mr_status status = mr_image_crop_ready(bytes.data, bytes.size_bytes, nullptr, &ready, &about, &problem);
    if (status == MR_UNIMPLEMENTED) {
        image->remarks |= REMARK_BIT(REMARK_NOT_CROP_READY);
        return MR_OK;
    }
    if (status != MR_OK) return mr_fail(error, status, "%s", problem.message);
    if (about.profile_dropped) image->remarks |= REMARK_BIT(REMARK_PROFILE_DROPPED);
    mr_tensor_deinit(&image->bytes);
    image->bytes = ready;
    take_bytes(image);
    return MR_OK;
}

/* Whether the image must be re-encoded, not merely rotated. */
static bool has_to_be_encoded(const treatment *treatment, const mr_image_info *info, image *image)
{
    int32_t width, height;
    target_size(treatment, info, &width, &height);
    bool scaled = width != info->width || height != info->height;
    bool other = (treatment->encoding == ENCODE_JPEG && info->format != MR_IMAGE_JPEG) ||
                 (treatment->encoding == ENCODE_PNG && info->format != MR_IMAGE_PNG) ||
                 (treatment->encode_all && info->format == MR_IMAGE_JPEG && treatment->encoding != ENCODE_PNG);
    if (scaled)
        image->remarks |= REMARK_BIT(REMARK_SCALED);
    else if (other)
        image->remarks |= REMARK_BIT(REMARK_ENCODED);
    return scaled || other;
}

static mr_status treat(const treatment *treatment, mr_string bytes, image *image, mr_error *error)
{
    mr_image_info info = image->facts.info;
    bool turn = treatment->upright && info.orientation > 1;
    bool anew = has_to_be_encoded(treatment, &info, image), decoded = anew;
    image->facts.encoded = bytes;
    if (turn) {
        image->remarks &= ~REMARK_BIT(REMARK_ORIENTED);
        image->facts.rotated = info.orientation;
    }
    if (turn && !anew) {
        MR_TRY(turn_exactly(bytes, image, &decoded, error));
        if (!decoded) {
            image->remarks |= REMARK_BIT(info.format == MR_IMAGE_PNG ? REMARK_ROTATED : REMARK_ROTATED_ENCODED);
            anew = decoded = true;
        }
    } else if (turn) {
        image->remarks |= REMARK_BIT(REMARK_ROTATED_ENCODED);
    }
    if (anew) {
        MR_TRY(encode_anew(treatment, bytes, turn, image, error));
        take_bytes(image);
        if (!turn && info.orientation > 1) MR_TRY(keep_orientation(image, info.orientation, error));
    }
    if (treatment->crop_ready && is_jpeg(image->facts.encoded)) {
        MR_TRY(make_crop_ready(image, error));
        decoded = decoded || (image->remarks & REMARK_BIT(REMARK_NOT_CROP_READY)) == 0;
    }
    if (treatment->check && !decoded) return image_check(bytes, &info, &image->remarks, error);
    return MR_OK;
}

mr_status image_treat(const treatment *treatment, const char *name, mr_string bytes, image *image, mr_error *error)
{
    mr_tensor_deinit(&image->bytes);
    image->facts = (image_facts){0};
    MR_TRY(image_probe(treatment, name, bytes, &image->facts.info, &image->remarks, error));
    image->facts.stored_width = image->facts.info.width;
    image->facts.stored_height = image->facts.info.height;
    mr_status status = treat(treatment, bytes, image, error);
    if (status == MR_OK && image->bytes.data) {
        mr_string made = image->facts.encoded;
        status = mr_image_probe(made.data, made.size_bytes, &image->facts.info, error);
    }
    return status == MR_OK ? MR_OK : fault(status, &image->remarks);
}

void image_deinit(image *image)
{
    mr_tensor_deinit(&image->bytes);
    *image = (struct image){0};
}
