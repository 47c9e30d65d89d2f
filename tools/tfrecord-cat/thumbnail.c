/* Thumbnails. A JPEG is decoded at the smallest sufficient fraction of its size, by the DCT, which costs less than
 * decoding all of it. */
#include "tfrecord-cat/html.h"

#include <string.h>

static constexpr int32_t QUALITY = 80, SMALL_QUALITY = 95;
static constexpr int32_t SMALL_SIDE = 96;

/* The smallest fraction that leaves enough pixels. */
static int32_t ratio_of(const mr_image_info *info)
{
    int32_t longer = info->width > info->height ? info->width : info->height, ratio = 8;
    if (info->format != MR_IMAGE_JPEG) return 1;
    while (ratio > 1 && longer / ratio < THUMBNAIL_SIDE_MAX) ratio /= 2;
    return ratio;
}

static mr_status decode(mr_string encoded, thumbnail *thumbnail, mr_tensor *image)
{
    const mr_image_info *info = &thumbnail->info;
    bool is_jpeg = info->format == MR_IMAGE_JPEG;
    mr_image_decode_options options = {.size = sizeof options, .ratio = ratio_of(info)};
    if (!is_jpeg && info->channels == 2) options.channels = 4;
    mr_status status = mr_image_decode(encoded.data, encoded.size_bytes, &options, image, &thumbnail->fault);
    if (status != MR_DATA_LOSS || !is_jpeg) return status;
    /* Keep the decoded part; the fault stays. */
    options.try_recover_truncated = options.accept_damaged = true;
    return mr_image_decode(encoded.data, encoded.size_bytes, &options, image, nullptr);
}

/* Blends RGB with alpha onto white. */
static mr_status lay_on_white(mr_tensor *image, mr_error *error)
{
    mr_tensor flat = {0};
    int64_t height = image->shape.dims[0], width = image->shape.dims[1];
    MR_TRY(mr_tensor_init(&flat, MR_UINT8, MR_SHAPE(height, width, 3), error));
    const unsigned char *source = image->data;
    unsigned char *target = flat.data;
    for (int64_t i = 0; i < height * width; i++, source += 4, target += 3)
        for (int c = 0; c < 3; c++)
            target[c] = (unsigned char)((source[c] * source[3] + 255 * (255 - source[3]) + 127) / 255);
    mr_tensor_deinit(image);
    *image = flat;
    return MR_OK;
}

static mr_status shrink(mr_tensor *image, const mr_image_info *info, thumbnail *thumbnail, mr_error *error)
{
    int64_t width = info->width, height = info->height, longer = width > height ? width : height;
    if (longer > THUMBNAIL_SIDE_MAX) {
        width = (width * THUMBNAIL_SIDE_MAX + longer / 2) / longer;
        height = (height * THUMBNAIL_SIDE_MAX + longer / 2) / longer;
    }
    thumbnail->width = width = width > 0 ? width : 1;
    thumbnail->height = height = height > 0 ? height : 1;
    if (image->shape.dims[0] == height && image->shape.dims[1] == width) return MR_OK;
    mr_tensor scaled = {0};
    MR_TRY(mr_image_scale(image, height, width, &scaled, error));
    mr_tensor_deinit(image);
    *image = scaled;
    return MR_OK;
}

void thumbnail_make(mr_string encoded, thumbnail *thumbnail)
{
    *thumbnail = (struct thumbnail){};
    mr_tensor image = {0};
    mr_error error = {0};
    mr_status status = mr_image_probe(encoded.data, encoded.size_bytes, &thumbnail->info, &thumbnail->fault);
    if (status == MR_OK) status = decode(encoded, thumbnail, &image);
    if (status != MR_OK) return;
    const mr_image_info *info = &thumbnail->info;
    bool is_small = info->width <= SMALL_SIDE && info->height <= SMALL_SIDE;
    status = shrink(&image, info, thumbnail, &error);
    if (status == MR_OK && image.shape.dims[2] == 4) status = lay_on_white(&image, &error);
    if (status == MR_OK)
        status = mr_image_encode_jpeg(&image, is_small ? SMALL_QUALITY : QUALITY, &thumbnail->jpeg, &error);
    mr_tensor_deinit(&image);
    if (status != MR_OK) thumbnail->fault = error;
}

void thumbnail_deinit(thumbnail *thumbnail)
{
    mr_tensor_deinit(&thumbnail->jpeg);
}
