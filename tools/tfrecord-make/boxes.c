/* Boxes: see boxes.h. */
#include "tfrecord-make/boxes.h"

#include "common/sha256.h"

#include <inttypes.h>
#include <stdlib.h>

static double cut(double value, double end, bool *was_cut)
{
    double inside = value < 0 ? 0 : value > end ? end : value;
    *was_cut |= inside != value;
    return inside;
}

bool box_clip(box *box, double width, double height, bool *was_cut)
{
    /* Also false for NaN. */
    if (!(box->xmax > box->xmin) || !(box->ymax > box->ymin)) return false;
    box->xmin = cut(box->xmin, width, was_cut);
    box->xmax = cut(box->xmax, width, was_cut);
    box->ymin = cut(box->ymin, height, was_cut);
    box->ymax = cut(box->ymax, height, was_cut);
    return box->xmax > box->xmin && box->ymax > box->ymin;
}

/* Maps a point of the stored image to the upright image by EXIF orientation; coordinates from 0 to 1. */
static void rotate_point(double *x, double *y, int32_t orientation)
{
    double a = *x, b = *y;
    bool swaps = orientation >= 5;
    *x = swaps ? b : a;
    *y = swaps ? a : b;
    if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) *x = 1 - *x;
    if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) *y = 1 - *y;
}

static void turn_box(box *box, int32_t orientation)
{
    struct box rotated = *box;
    rotate_point(&rotated.xmin, &rotated.ymin, orientation);
    rotate_point(&rotated.xmax, &rotated.ymax, orientation);
    box->xmin = rotated.xmin < rotated.xmax ? rotated.xmin : rotated.xmax;
    box->xmax = rotated.xmin < rotated.xmax ? rotated.xmax : rotated.xmin;
    box->ymin = rotated.ymin < rotated.ymax ? rotated.ymin : rotated.ymax;
    box->ymax = rotated.ymin < rotated.ymax ? rotated.ymax : rotated.ymin;
}

void placing_undo(const placing *placing, double *x, double *y)
{
    /* The two quarter rotations are inverses of each other; every other orientation is its own inverse. */
    int32_t orientation = placing->orientation;
    rotate_point(x, y, orientation == 6 ? 8 : orientation == 8 ? 6 : orientation);
}

mr_status placing_of(int64_t width, int64_t height, const image_facts *facts, placing *placing, mr_error *error)
{
    int64_t stored_width = facts->stored_width, stored_height = facts->stored_height;
    bool is_stored = (width == 0 && height == 0) || (width == stored_width && height == stored_height);
    bool is_upright = width == stored_height && height == stored_width;
    if (!is_stored && is_upright && facts->rotated < 5 && facts->info.orientation >= 5)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "its boxes refer to the image rotated by its EXIF orientation; --upright rotates the pixels");
    if (!is_stored && !(is_upright && facts->rotated >= 5))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "its boxes refer to an image of %" PRId64 " x %" PRId64 " pixels, but the image has %" PRId64
                       " x %" PRId64,
                       width, height, stored_width, stored_height);
    placing->width = (double)(is_stored ? stored_width : width);
    placing->height = (double)(is_stored ? stored_height : height);
    placing->orientation = is_stored && facts->rotated > 1 ? facts->rotated : 0;
    return MR_OK;
}

mr_status boxes_transform(box *boxes, size_t count, int64_t width, int64_t height, const image_facts *facts,
                          mr_error *error)
{
    placing placing;
    MR_TRY(placing_of(width, height, facts, &placing, error));
    double w = placing.width, h = placing.height;
    for (size_t i = 0; i < count; i++) {
        boxes[i] = (box){boxes[i].xmin / w, boxes[i].ymin / h, boxes[i].xmax / w, boxes[i].ymax / h};
        if (placing.orientation > 0) turn_box(&boxes[i], placing.orientation);
    }
    return MR_OK;
}

mr_status points_transform(coco_point *points, size_t count, int64_t width, int64_t height, const image_facts *facts,
                           mr_error *error)
{
    placing placing;
    MR_TRY(placing_of(width, height, facts, &placing, error));
    for (size_t i = 0; i < count; i++) {
        if (points[i].visibility == 0) continue;
        double x = points[i].x / placing.width, y = points[i].y / placing.height;
        if (placing.orientation > 0) rotate_point(&x, &y, placing.orientation);
        points[i].x = (float)x;
        points[i].y = (float)y;
    }
    return MR_OK;
}

static const char *const side_keys[] = {"image/object/bbox/xmin", "image/object/bbox/ymin", "image/object/bbox/xmax",
                                        "image/object/bbox/ymax"};

mr_status boxes_declare(source *source, mr_error *error)
{
    static const char *const keys[] = {"image/object/class/label", "image/object/class/text", "image/key/sha256"};
    for (int i = 0; i < 4; i++) MR_TRY(source_declare(source, side_keys[i], error));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) MR_TRY(source_declare(source, keys[i], error));
    return MR_OK;
}

mr_status boxes_put(const source *source, const box *boxes, const int32_t *labels, size_t count,
                    const image_facts *facts, const features *to, mr_error *error)
{
    char digest[SHA256_TEXT_SIZE];
    float *floats = malloc((count + 1) * sizeof(float));
    int64_t *numbers = malloc((count + 1) * sizeof(int64_t));
    mr_string *texts = malloc((count + 1) * sizeof(mr_string));
    mr_status status = floats && numbers && texts ? MR_OK : fail_memory(error, count * sizeof(mr_string));
    for (int side = 0; side < 4 && status == MR_OK; side++) {
        for (size_t i = 0; i < count; i++) {
            const double sides[] = {boxes[i].xmin, boxes[i].ymin, boxes[i].xmax, boxes[i].ymax};
            floats[i] = (float)sides[side];
        }
        put_float_list(to, side_keys[side], floats, count);
    }
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        numbers[i] = labels[i];
        texts[i] = mr_string_from(source->classes[labels[i]]);
    }
    if (status == MR_OK) {
        put_int64_list(to, "image/object/class/label", numbers, count);
        put_bytes_list(to, "image/object/class/text", texts, count);
        sha256_text(facts->encoded.data, facts->encoded.size_bytes, digest);
        put_bytes(to, "image/key/sha256", mr_string_from(digest));
    }
    free(floats);
    free(numbers);
    free(texts);
    return status;
}
