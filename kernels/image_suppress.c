/* Non-maximum suppression: boxes are taken in the order of their scores, equal ones in the order of their indices, and
 * a box that overlaps a selected one too much is dropped, or in the soft form gets a lower score
 * (tensorflow/core/kernels/image/non_max_suppression_op.cc). Scores of type half are rounded after every operation. */
#include "kernels/common.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    int32_t box;
    int32_t compared; /* selected boxes it was compared with */
    float score;
} candidate;

typedef struct suppression {
    const float *boxes; /* of 4 numbers, box_stride apart; or null */
    int64_t box_stride;
    const float *overlaps; /* count x count; used if boxes is null */
    int64_t count, most;
    float threshold, score_threshold, sigma;
    bool is_half;
    candidate *heap;
    int64_t heap_count;
    int32_t *selected;
    float *scores; /* of the selected boxes */
    int64_t selected_count;
} suppression;

/* ---- A heap with the best candidate first ---- */

static bool is_better(candidate a, candidate b)
{
    return a.score > b.score || (a.score == b.score && a.box < b.box);
}

static void heap_push(suppression *s, candidate added)
{
    int64_t at = s->heap_count++;
    while (at > 0 && is_better(added, s->heap[(at - 1) / 2])) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = added;
}

static candidate heap_pop(suppression *s)
{
    candidate best = s->heap[0], last = s->heap[--s->heap_count];
    int64_t at = 0;
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= s->heap_count) break;
        if (child + 1 < s->heap_count && is_better(s->heap[child + 1], s->heap[child])) child++;
        if (!is_better(s->heap[child], last)) break;
        s->heap[at] = s->heap[child];
        at = child;
    }
    s->heap[at] = last;
    return best;
}

/* ---- Suppression ---- */

/* Eigen's minimum and maximum: the first if either is NaN. */
static float least(float a, float b)
{
    return b < a ? b : a;
}
static float most(float a, float b)
{
    return a < b ? b : a;
}

/* The area of the intersection divided by that of the union. Corners may be in any order. */
static float overlap_of(const float *a, const float *b)
{
    float top_a = least(a[0], a[2]), left_a = least(a[1], a[3]), bottom_a = most(a[0], a[2]),
          right_a = most(a[1], a[3]);
    float top_b = least(b[0], b[2]), left_b = least(b[1], b[3]), bottom_b = most(b[0], b[2]),
          right_b = most(b[1], b[3]);
    float area_a = (bottom_a - top_a) * (right_a - left_a), area_b = (bottom_b - top_b) * (right_b - left_b);
    if (area_a <= 0 || area_b <= 0) return 0;
    float height = most(least(bottom_a, bottom_b) - most(top_a, top_b), 0);
    float width = most(least(right_a, right_b) - most(left_a, left_b), 0);
    return height * width / (area_a + area_b - height * width);
}

static float rounded(const suppression *s, float value)
{
    return s->is_half ? mr_half_to_float(mr_float_to_half(value)) : value;
}

static float similarity(const suppression *s, int32_t a, int32_t b)
{
    float value = s->boxes ? overlap_of(s->boxes + a * s->box_stride, s->boxes + b * s->box_stride)
                           : s->overlaps[a * s->count + b];
    return rounded(s, value);
}

/* Compares the candidate with the selected boxes, latest first; false if it is suppressed. */
static bool compare(const suppression *s, candidate *c)
{
    float scale = s->sigma > 0 ? rounded(s, -0.5f / s->sigma) : 0;
    for (int64_t j = s->selected_count - 1; j >= c->compared; j--) {
        float similar = similarity(s, c->box, s->selected[j]);
        if (!(s->sigma > 0) && similar > s->threshold) return false;
        float weight = rounded(s, expf(rounded(s, rounded(s, scale * similar) * similar)));
        if (!(s->sigma > 0) && !(similar <= s->threshold)) weight = 0;
        c->score = rounded(s, c->score * weight);
        if (c->score <= s->score_threshold) break;
    }
    c->compared = (int32_t)s->selected_count;
    return true;
}

static void suppress(suppression *s)
{
    while (s->selected_count < s->most && s->heap_count > 0) {
        candidate next = heap_pop(s);
        float before = next.score;
        if (!compare(s, &next)) continue;
        if (next.score == before) {
            s->scores[s->selected_count] = next.score;
            s->selected[s->selected_count++] = next.box;
        } else if (next.score > s->score_threshold) {
            heap_push(s, next);
        }
    }
}

/* Space for `count` candidates; suppression_free releases it. */
static mr_status suppression_new(const mr_kernel_call *call, suppression *s, mr_error *error)
{
    size_t count = (size_t)MR_MAX(s->count, 1);
    s->heap = calloc(count, sizeof *s->heap + sizeof *s->selected + sizeof *s->scores);
    if (!s->heap)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRId64 " boxes", s->count);
    s->selected = (int32_t *)(s->heap + count);
    s->scores = (float *)(s->selected + count);
    return MR_OK;
}

/* ---- NonMaxSuppression, V2 to V5, WithOverlaps ---- */

static float element(const mr_tensor *tensor, int64_t index)
{
    if (tensor->dtype == MR_HALF) return mr_half_to_float(((const uint16_t *)tensor->data)[index]);
    return ((const float *)tensor->data)[index];
}

static mr_status read_scalar(const mr_kernel_call *call, int input, const char *name, float *value, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *tensor = &call->inputs[input];
    if (tensor->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%s must be 0-D, got shape %s (Shape must be rank 0 but is rank %d)", name,
                              mr_shape_text(tensor->shape, text, sizeof text), tensor->shape.rank);
    *value = element(tensor, 0);
    return MR_OK;
}

static mr_status read_limits(mr_kernel_call *call, bool has_overlaps, suppression *s, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_tensor *limit = &call->inputs[2];
    if (limit->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "max_output_size must be 0-D, got shape %s (Shape must be rank 0 but is rank %d)",
                              mr_shape_text(limit->shape, text, sizeof text), limit->shape.rank);
    s->most = mr_tensor_int32s(limit)[0];
    s->is_half = call->inputs[1].dtype == MR_HALF;
    s->threshold = mr_attr_float_or(call->node->attrs, "iou_threshold", 0.5f);
    s->score_threshold = s->is_half ? -65504.0f : -FLT_MAX;
    if (call->node->input_count > 3)
        MR_TRY(read_scalar(call, 3, has_overlaps ? "overlap_threshold" : "iou_threshold", &s->threshold, error));
    if (call->node->input_count > 4) MR_TRY(read_scalar(call, 4, "score_threshold", &s->score_threshold, error));
    if (call->node->input_count > 5) MR_TRY(read_scalar(call, 5, "soft_nms_sigma", &s->sigma, error));
    s->threshold = rounded(s, s->threshold);
    s->score_threshold = rounded(s, s->score_threshold);
    if (!has_overlaps && !(s->threshold >= 0 && s->threshold <= 1))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "iou_threshold must be in [0, 1]");
    if (!(s->sigma >= 0))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "soft_nms_sigma_val must be >= 0");
    return MR_OK;
}

static mr_status check_boxes(const mr_kernel_call *call, bool has_overlaps, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const mr_shape *boxes = &call->inputs[0].shape, *scores = &call->inputs[1].shape;
    if (boxes->rank != 2)
        return mr_kernel_fail(
            call->node, error, MR_INVALID_ARGUMENT, "%s must be 2-D%s (Shape must be rank 2 but is rank %d)",
            has_overlaps ? "overlaps" : "boxes", mr_shape_text(*boxes, text, sizeof text), boxes->rank);
    if (has_overlaps && boxes->dims[0] != boxes->dims[1])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "overlaps must be square%s",
                              mr_shape_text(*boxes, text, sizeof text));
    if (!has_overlaps && boxes->dims[1] != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "boxes must have 4 columns (Dimension must be 4 but is %" PRId64 ")", boxes->dims[1]);
    if (scores->rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "scores must be 1-D%s (Shape must be rank 1 but is rank %d)",
                              mr_shape_text(*scores, text, sizeof text), scores->rank);
    if (scores->dims[0] != boxes->dims[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "scores has incompatible shape (Dimensions must be equal, but are %" PRId64
                              " and %" PRId64 ")",
                              boxes->dims[0], scores->dims[0]);
    if (boxes->dims[0] > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are more than 2147483647 boxes");
    return MR_OK;
}

static mr_status put_selected(mr_kernel_call *call, const suppression *s, mr_error *error)
{
    int outputs = call->node->output_count;
    bool is_padded = mr_attr_bool_or(call->node->attrs, "pad_to_max_output_size", false);
    int64_t count = is_padded ? s->most : s->selected_count;
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(count), error));
    for (int64_t i = 0; i < count; i++)
        mr_tensor_int32s(&call->outputs[0])[i] = i < s->selected_count ? s->selected[i] : 0;
    if (outputs == 3) {
        MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(count), error));
        for (int64_t i = 0; i < count; i++) {
            float score = i < s->selected_count ? s->scores[i] : 0;
            if (s->is_half)
                ((uint16_t *)call->outputs[1].data)[i] = mr_float_to_half(score);
            else
                mr_tensor_floats(&call->outputs[1])[i] = score;
        }
    }
    if (outputs == 1) return MR_OK;
    MR_TRY(mr_kernel_output(call, outputs - 1, MR_SCALAR, error));
    mr_tensor_int32s(&call->outputs[outputs - 1])[0] = (int32_t)s->selected_count;
    return MR_OK;
}

static mr_status run_suppression(mr_kernel_call *call, bool has_overlaps, mr_error *error)
{
    const mr_tensor *boxes = &call->inputs[0];
    suppression s = {.box_stride = 4};
    float *numbers = nullptr;
    MR_TRY(read_limits(call, has_overlaps, &s, error));
    MR_TRY(check_boxes(call, has_overlaps, error));
    s.count = boxes->shape.dims[0];
    if (s.most < 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "output size must be non-negative");
    MR_TRY(suppression_new(call, &s, error));
    mr_status status = MR_OK;
    if (boxes->dtype == MR_HALF) {
        numbers = malloc((size_t)MR_MAX(s.count, 1) * 4 * sizeof *numbers);
        if (!numbers) status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory for the boxes");
        for (int64_t i = 0; numbers && i < s.count * 4; i++) numbers[i] = element(boxes, i);
    }
    const float *floats = numbers ? numbers : boxes->data;
    if (has_overlaps)
        s.overlaps = floats;
    else
        s.boxes = floats;
    for (int64_t i = 0; i < s.count; i++) {
        float score = element(&call->inputs[1], i);
        if (score > s.score_threshold) heap_push(&s, (candidate){.box = (int32_t)i, .score = score});
    }
    if (status == MR_OK) suppress(&s);
    if (status == MR_OK) status = put_selected(call, &s, error);
    free(numbers);
    free(s.heap);
    return status;
}

static mr_status non_max_suppression(mr_kernel_call *call, mr_error *error)
{
    return run_suppression(call, false, error);
}

static mr_status non_max_suppression_with_overlaps(mr_kernel_call *call, mr_error *error)
{
    return run_suppression(call, true, error);
}

/* ---- CombinedNonMaxSuppression ---- */

typedef struct result {
    float score;
    int32_t class, box;
} result;

static int compare_results(const void *a, const void *b)
{
    const result *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->class != y->class) return x->class < y->class ? -1 : 1;
    return x->box < y->box ? -1 : x->box > y->box;
}

typedef struct combined {
    int64_t batch, boxes, classes, box_classes, each, total, rows;
    float threshold, score_threshold;
    bool is_clipped;
} combined;

/* The selected boxes of all classes of one image, best first. */
static int64_t select_image(mr_kernel_call *call, const combined *c, int64_t image, suppression *s, result *results)
{
    int64_t found = 0;
    const float *scores = mr_tensor_floats(&call->inputs[1]) + image * c->boxes * c->classes;
    const float *boxes = mr_tensor_floats(&call->inputs[0]) + image * c->boxes * c->box_classes * 4;
    s->box_stride = c->box_classes * 4;
    for (int64_t class = 0; class < c->classes; class ++) {
        s->boxes = boxes + (c->box_classes > 1 ? class * 4 : 0);
        s->heap_count = s->selected_count = 0;
        for (int64_t i = 0; i < c->boxes; i++) {
            float score = scores[i * c->classes + class];
            if (score > c->score_threshold) heap_push(s, (candidate){.box = (int32_t)i, .score = score});
        }
        suppress(s);
        for (int64_t i = 0; i < s->selected_count; i++)
            results[found++] = (result){s->scores[i], (int32_t)class, s->selected[i]};
    }
    qsort(results, (size_t)found, sizeof *results, compare_results);
    return found;
}

static void put_image(mr_kernel_call *call, const combined *c, int64_t image, const result *results, int64_t found)
{
    const float *boxes = mr_tensor_floats(&call->inputs[0]) + image * c->boxes * c->box_classes * 4;
    float *to = mr_tensor_floats(&call->outputs[0]) + image * c->rows * 4;
    float *scores = mr_tensor_floats(&call->outputs[1]) + image * c->rows;
    float *classes = mr_tensor_floats(&call->outputs[2]) + image * c->rows;
    int64_t valid = MR_MIN(found, c->rows);
    mr_tensor_int32s(&call->outputs[3])[image] = (int32_t)valid;
    for (int64_t i = 0; i < c->rows; i++) {
        const result *r = &results[i];
        scores[i] = i < valid ? r->score : 0;
        classes[i] = i < valid ? (float)r->class : 0;
        for (int k = 0; k < 4; k++) {
            int64_t at = i < valid ? (r->box * c->box_classes + (c->box_classes > 1 ? r->class : 0)) * 4 + k : 0;
            float value = i < valid ? boxes[at] : 0;
            if (c->is_clipped) value = most(least(value, 1.0f), 0.0f);
            to[i * 4 + k] = value;
        }
    }
}

static mr_status read_combined(mr_kernel_call *call, combined *c, mr_error *error)
{
    const mr_shape *boxes = &call->inputs[0].shape, *scores = &call->inputs[1].shape;
    if (boxes->rank != 4) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "boxes must be 4-D");
    if (scores->rank != 3) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "scores must be 3-D");
    for (int i = 2; i < 4; i++)
        if (call->inputs[i].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be 0-D",
                                  i == 2 ? "max_size_per_class" : "max_total_size");
    MR_TRY(read_scalar(call, 4, "iou_threshold", &c->threshold, error));
    MR_TRY(read_scalar(call, 5, "score_threshold", &c->score_threshold, error));
    int64_t limit = mr_tensor_int32s(&call->inputs[2])[0];
    c->total = mr_tensor_int32s(&call->inputs[3])[0];
    c->batch = boxes->dims[0], c->boxes = boxes->dims[1], c->box_classes = boxes->dims[2], c->classes = scores->dims[2];
    if (limit <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "max_size_per_class must be positive");
    if (c->total <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "max_total_size must be > 0");
    if (!(c->threshold >= 0 && c->threshold <= 1))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "iou_threshold must be in [0, 1]");
    if (boxes->dims[3] != 4) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "boxes must have 4 columns");
    if (scores->dims[0] != c->batch || scores->dims[1] != c->boxes)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "scores has incompatible shape");
    if (c->box_classes != 1 && c->box_classes != c->classes)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "third dimension of boxes must be either 1 or num classes");
    if (c->boxes > INT32_MAX || c->classes > INT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are more than 2147483647 boxes");
    c->each = MR_MIN(limit, c->boxes);
    c->rows = c->total;
    if (mr_attr_bool_or(call->node->attrs, "pad_per_class", false))
        c->rows = MR_MIN(c->total, MR_MIN(limit * c->classes, INT32_MAX));
    c->is_clipped = mr_attr_bool_or(call->node->attrs, "clip_boxes", true);
    return MR_OK;
}

static mr_status combined_non_max_suppression(mr_kernel_call *call, mr_error *error)
{
    combined c = {0};
    MR_TRY(read_combined(call, &c, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(c.batch, c.rows, 4), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(c.batch, c.rows), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(c.batch, c.rows), error));
    MR_TRY(mr_kernel_output(call, 3, MR_SHAPE(c.batch), error));
    suppression s = {.count = c.boxes, .most = c.each, .threshold = c.threshold, .score_threshold = c.score_threshold};
    MR_TRY(suppression_new(call, &s, error));
    result *results = calloc((size_t)MR_MAX(c.each, 1), (size_t)MR_MAX(c.classes, 1) * sizeof *results);
    mr_status status = results ? MR_OK : mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (int64_t image = 0; image < c.batch && status == MR_OK; image++)
        put_image(call, &c, image, results, select_image(call, &c, image, &s, results));
    free(results);
    free(s.heap);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "NonMaxSuppression", .run = non_max_suppression},
    {.op = "NonMaxSuppressionV2", .run = non_max_suppression},
    {.op = "NonMaxSuppressionV3", .run = non_max_suppression},
    {.op = "NonMaxSuppressionV4", .run = non_max_suppression},
    {.op = "NonMaxSuppressionV5", .run = non_max_suppression},
    {.op = "NonMaxSuppressionWithOverlaps", .run = non_max_suppression_with_overlaps},
    {.op = "CombinedNonMaxSuppression", .run = combined_non_max_suppression},
};
MR_KERNEL_FAMILY(image_suppress);
