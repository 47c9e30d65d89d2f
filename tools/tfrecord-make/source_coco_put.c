/* COCO's boxes, keypoints and masks as features: see source_coco.h. */
#include "tfrecord-make/source_coco.h"

#include "tfrecord-make/make.h"
#include "tfrecord-make/mask.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Puts name_count points for each object, with zeros for an object without keypoints. */
static mr_status put_points(const coco *coco, const listed *image, const kept_box *kept, size_t count,
                            const image_facts *facts, const features *to, mr_error *error)
{
    size_t each = coco->name_count, all = count * each;
    coco_point *points = calloc(all + 1, sizeof(coco_point));
    float *floats = malloc((all + 1) * sizeof(float));
    int64_t *numbers = calloc(all + count + 1, sizeof(int64_t)), *labelled = numbers ? numbers + all : nullptr;
    mr_string *texts = malloc((all + 1) * sizeof(mr_string));
    bool has_memory = points && floats && numbers && texts;
    for (size_t i = 0; i < count && has_memory; i++)
        if (kept[i].point_count > 0)
            memcpy(points + i * each, coco->points + kept[i].point_begin, each * sizeof(coco_point));
    mr_status status = has_memory ? MR_OK : fail_memory(error, all * sizeof(mr_string));
    if (status == MR_OK) status = points_transform(points, all, image->width, image->height, facts, error);
    for (size_t i = 0; i < all && status == MR_OK; i++) {
        numbers[i] = points[i].visibility;
        labelled[i / each] += points[i].visibility > 0;
        texts[i] = coco->point_names[i % each];
        floats[i] = points[i].x;
    }
    if (status == MR_OK) {
        put_float_list(to, "image/object/keypoint/x", floats, all);
        for (size_t i = 0; i < all; i++) floats[i] = points[i].y;
        put_float_list(to, "image/object/keypoint/y", floats, all);
        put_int64_list(to, "image/object/keypoint/visibility", numbers, all);
        put_bytes_list(to, "image/object/keypoint/text", texts, all);
        put_int64_list(to, "image/object/keypoint/num", labelled, count);
    }
    free(points);
    free(floats);
    free(numbers);
    free(texts);
    return status;
}

/* Reads the segmentations of an image's boxes again and encodes them as masks. The area of the mask replaces a missing
 * area of the annotation.
 * masks  owned by the caller: count tensors */
static mr_status make_masks(const coco *coco, const placing *placing, const kept_box *kept, size_t count,
                            const image_facts *facts, mr_tensor *masks, float *areas, mr_error *error)
{
    int64_t width = (int64_t)placing->width, height = (int64_t)placing->height;
    uint8_t *mask = malloc((size_t)(width * height) + 1);
    if (!mask) return fail_memory(error, (size_t)(width * height));
    mr_status status = MR_OK;
    for (size_t i = 0; i < count && status == MR_OK; i++) {
        const span *span = &coco->spans[kept[i].order];
        json_t *annotation = nullptr;
        status = coco_annotation_at(coco->file, span->offset, span->size_bytes, &annotation, error);
        if (status == MR_OK)
            status = mask_fill(json_object_get(annotation, "segmentation"), width, height, mask, error);
        json_decref(annotation);
        if (status == MR_OK && !kept[i].has_area) {
            int64_t area = 0;
            for (int64_t j = 0; j < width * height; j++) area += mask[j];
            areas[i] = (float)area;
        }
        if (status == MR_OK) status = mask_encode(mask, placing, facts, &masks[i], error);
        if (status != MR_OK) status = mr_fail_prefix(error, status, "annotations[%" PRIu32 "]", kept[i].order);
    }
    free(mask);
    return status;
}

static mr_status put_masks(const coco *coco, const listed *image, const kept_box *kept, size_t count,
                           const image_facts *facts, float *areas, const features *to, mr_error *error)
{
    placing placing;
    MR_TRY(placing_of(image->width, image->height, facts, &placing, error));
    mr_tensor *masks = calloc(count + 1, sizeof(mr_tensor));
    mr_string *pngs = calloc(count + 1, sizeof(mr_string));
    mr_status status = masks && pngs ? MR_OK : fail_memory(error, count * sizeof(mr_tensor));
    if (status == MR_OK) status = make_masks(coco, &placing, kept, count, facts, masks, areas, error);
    for (size_t i = 0; i < count && status == MR_OK; i++) pngs[i] = mr_tensor_strings(&masks[i])[0];
    if (status == MR_OK) put_bytes_list(to, "image/object/mask", pngs, count);
    for (size_t i = 0; masks && i < count; i++) mr_tensor_deinit(&masks[i]);
    free(masks);
    free(pngs);
    return status;
}

/* Keeps the boxes inside an image whose size the file does not specify; others were clipped during listing. */
static size_t keep_inside(const kept_box *kept, size_t count, const image_facts *facts, kept_box *inside)
{
    size_t kept_count = 0;
    bool was_cut = false;
    for (size_t i = 0; i < count; i++) {
        inside[kept_count] = kept[i];
        kept_count += box_clip(&inside[kept_count].box, facts->stored_width, facts->stored_height, &was_cut);
    }
    if ((was_cut || kept_count < count) && facts->remarks) *facts->remarks |= REMARK_BIT(REMARK_BOXES_CUT);
    return kept_count;
}

static mr_status put_all(const source *source, const row *row, const kept_box *kept, size_t count,
                         const image_facts *facts, const features *to, mr_error *error)
{
    const coco *coco = source->detail;
    const listed *image = &coco->images[row - source->rows];
    box *boxes = malloc((count + 1) * sizeof(box));
    int32_t *labels = malloc((count + 1) * sizeof(int32_t));
    int64_t *crowds = malloc((count + 1) * sizeof(int64_t));
    float *areas = malloc((count + 1) * sizeof(float));
    bool is_good = boxes && labels && crowds && areas;
    for (size_t i = 0; is_good && i < count; i++) {
        boxes[i] = kept[i].box;
        labels[i] = coco->labels[kept[i].category];
        crowds[i] = kept[i].is_crowd;
        areas[i] = kept[i].area;
    }
    mr_status status = is_good ? MR_OK : fail_memory(error, count * sizeof(box));
    if (status == MR_OK) status = boxes_transform(boxes, count, image->width, image->height, facts, error);
    if (status == MR_OK) status = boxes_put(source, boxes, labels, count, facts, to, error);
    if (status == MR_OK && source->in->masks) status = put_masks(coco, image, kept, count, facts, areas, to, error);
    if (status == MR_OK) {
        put_int64_list(to, "image/object/is_crowd", crowds, count);
        put_float_list(to, "image/object/area", areas, count);
    }
    if (status == MR_OK && coco->name_count > 0) status = put_points(coco, image, kept, count, facts, to, error);
    free(boxes);
    free(labels);
    free(crowds);
    free(areas);
    return status == MR_OK ? MR_OK : source_fail_row(source, row, status, error);
}

mr_status coco_put(const source *source, const row *row, const kept_box *kept, size_t count, const image_facts *facts,
                   const features *to, mr_error *error)
{
    const coco *coco = source->detail;
    assert(row - source->rows < coco->image_count);
    const listed *image = &coco->images[row - source->rows];
    if (image->width > 0) return put_all(source, row, kept, count, facts, to, error);
    kept_box *inside = malloc((count + 1) * sizeof(kept_box));
    if (!inside) return fail_memory(error, count * sizeof(kept_box));
    count = keep_inside(kept, count, facts, inside);
    mr_status status = put_all(source, row, inside, count, facts, to, error);
    free(inside);
    return status;
}
