/* quantize_weights: float constants in eight bits. NAME becomes a Dequantize of NAME_quantized_const with the range
 * NAME_quantized_min to NAME_quantized_max; its mode is MIN_FIRST. */
#include "base/status.h"
#include "graph/train/transform.h"

#include <math.h>
#include <string.h>

constexpr int64_t MINIMUM_SIZE = 1024;

/* The range includes 0 and is not empty. False: an element is not finite. */
static bool find_range(const mr_tensor *value, float *min, float *max)
{
    const float *elements = mr_tensor_floats(value);
    *min = *max = 0;
    for (int64_t i = 0; i < mr_tensor_count(value); i++) {
        if (!isfinite(elements[i])) return false;
        if (elements[i] < *min) *min = elements[i];
        if (elements[i] > *max) *max = elements[i];
    }
    if (*min == *max) *max = *min + 1;
    return isfinite(*max - *min);
}

/* MIN_FIRST: 256 values, of which the first is the smallest. */
static void quantize(const mr_tensor *value, float min, float max, uint8_t *quantized)
{
    const double step = ((double)max - (double)min) / 255;
    const double first = round((double)min / step);
    for (int64_t i = 0; i < mr_tensor_count(value); i++) {
        const double at = round((double)mr_tensor_floats(value)[i] / step) - first;
        quantized[i] = (uint8_t)(at < 0 ? 0 : at > 255 ? 255 : at);
    }
}

static int32_t add_scalar(mr_rewrite *r, const char *base, const char *suffix, float value, mr_error *error)
{
    mr_tensor scalar = {0};
    const char *name = mr_arena_printf(&r->arena, "%s_quantized_%s", base, suffix);
    if (name == nullptr || mr_tensor_init_float(&scalar, value, error) != MR_OK) return -1;
    const int32_t node = mr_rewrite_add_constant(r, name, &scalar, error);
    mr_tensor_deinit(&scalar);
    return node;
}

static mr_status quantize_constant(mr_rewrite *r, int32_t node, const mr_tensor *value, float min, float max,
                                   mr_error *error)
{
    const char *base = r->nodes[node]->name;
    mr_tensor bytes = {0};
    MR_TRY(mr_tensor_init(&bytes, MR_QUINT8, value->shape, error));
    quantize(value, min, max, mr_tensor_data(&bytes));
    const char *name = mr_arena_printf(&r->arena, "%s_quantized_const", base);
    const int32_t weights = name != nullptr ? mr_rewrite_add_constant(r, name, &bytes, error) : -1;
    mr_tensor_deinit(&bytes);
    const int32_t low = add_scalar(r, base, "min", min, error), high = add_scalar(r, base, "max", max, error);
    if (weights < 0 || low < 0 || high < 0) return mr_fail_memory(error, 64);
    const char *inputs[] = {r->nodes[weights]->name, r->nodes[low]->name, r->nodes[high]->name};
    MR_TRY(mr_rewrite_set_inputs(r, node, inputs, 3, error));
    r->nodes[node]->op = (char *)"Dequantize";
    mr_rewrite_clear_attrs(r, node);
    MR_TRY(mr_rewrite_set_type(r, node, "T", MR_QUINT8, error));
    return mr_rewrite_set_string(r, node, "mode", "MIN_FIRST", error);
}

mr_status mr_transform_quantize(mr_transforming *t, mr_error *error)
{
    mr_rewrite *r = &t->r;
    bool *inputs;
    const int64_t minimum = t->transform->minimum_size > 0 ? t->transform->minimum_size : MINIMUM_SIZE;
    const int32_t count = r->count;
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    for (int32_t i = 0; i < count; i++) {
        mr_tensor value = {0};
        int32_t constant;
        float min, max;
        if (inputs[i] || r->removed[i] || !mr_rewrite_is(r, i, "Const") || r->nodes[i]->n_input > 0) continue;
        if (mr_rewrite_type(r, i, "dtype", MR_DTYPE_INVALID) != MR_FLOAT ||
            !mr_rewrite_constant(r, (mr_rewrite_input){i, 0}, &constant, &value))
            continue;
        mr_status status = MR_OK;
        if (mr_tensor_count(&value) >= minimum && find_range(&value, &min, &max))
            status = quantize_constant(r, i, &value, min, max, error);
        mr_tensor_deinit(&value);
        MR_TRY(status);
    }
    return MR_OK;
}
