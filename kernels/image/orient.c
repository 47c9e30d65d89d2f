/* Rotates and mirrors pixels according to an EXIF orientation.
 *
 * For every orientation, a pixel of the result comes from a row and a column of the source, each of which increases or
 * decreases with the result's row or column. So a single loop with two strides handles all of them. */
#include <millrace/image.h>

#include "base/arguments.h"
#include "kernels/image/orient.h"

#include <string.h>

mr_orientation mr_orientation_of(int32_t orientation)
{
    return (mr_orientation){.mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
                            .mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
                            .swap = orientation >= 5};
}

/* Copies a row of `count` pixels of `size_bytes` from pixels that are step bytes apart. */
static void gather(unsigned char *target, const unsigned char *source, int64_t count, int64_t step, size_t size_bytes)
{
    for (int64_t i = 0; i < count; i++, target += size_bytes, source += step) memcpy(target, source, size_bytes);
}

mr_status mr_image_orient(const mr_tensor *image, int32_t orientation, mr_tensor *oriented, mr_error *error)
{
    MR_REFUSE_NULL(image, error);
    char text[MR_SHAPE_TEXT_SIZE];
    if (image->shape.rank != 3 || mr_dtype_size(image->dtype) == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "images to rotate must be [height, width, channels], not %s of shape %s",
                       mr_dtype_name(image->dtype), mr_shape_text(image->shape, text, sizeof(text)));
    if (orientation < 1 || orientation > 8)
        return mr_fail(error, MR_INVALID_ARGUMENT, "an EXIF orientation must be 1 to 8, not %d", orientation);
    mr_orientation transform = mr_orientation_of(orientation);
    int64_t height = image->shape.dims[0], width = image->shape.dims[1], channels = image->shape.dims[2];
    int64_t rows = transform.swap ? width : height, columns = transform.swap ? height : width;
    MR_TRY(mr_tensor_init(oriented, image->dtype, MR_SHAPE(rows, columns, channels), error));
    if (mr_tensor_count(image) == 0) return MR_OK;
    size_t pixel_bytes = (size_t)channels * mr_dtype_size(image->dtype);
    int64_t down = width * (int64_t)pixel_bytes, right = (int64_t)pixel_bytes;
    const unsigned char *source = image->data;
    if (transform.mirror_x) source += (width - 1) * right;
    if (transform.mirror_y) source += (height - 1) * down;
    if (transform.mirror_x) right = -right;
    if (transform.mirror_y) down = -down;
    unsigned char *target = oriented->data;
    for (int64_t y = 0; y < rows; y++, target += (size_t)columns * pixel_bytes) {
        if (transform.swap)
            gather(target, source + y * right, columns, down, pixel_bytes);
        else
            gather(target, source + y * down, columns, right, pixel_bytes);
    }
    return MR_OK;
}
