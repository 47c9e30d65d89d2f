/* Normalizations behind convolutions and products: the factors move into the weights.
 *
 *     fold_batch_norms      conv(x, w) * c                        becomes  conv(x, w * c)
 *     fold_old_batch_norms  norm(conv(x, w) + b, mean, variance)  becomes  conv(x, w * c) + (b - mean) * c + offset
 *
 * where c = scale / sqrt(variance + epsilon), one value for each output channel. */
#include "base/status.h"
#include "graph/train/transform.h"

#include <math.h>
#include <string.h>

/* The operator before: its node, and its weights as [rows, channels]. */
typedef struct product {
    int32_t node;
    int32_t weights; /* the Const */
    mr_tensor value;
    int64_t channels;
    bool is_transposed; /* a MatMul with transpose_b: [channels, rows] */
} product;

static bool has_true(const mr_rewrite *r, int32_t node, const char *name)
{
    const Mr__AttrValue *value = mr_rewrite_attr(r, node, name);
    return value != nullptr && value->value_case == MR__ATTR_VALUE__VALUE_B && value->b != 0;
}

static bool is_nchw(const mr_rewrite *r, int32_t node)
{
    const Mr__AttrValue *value = mr_rewrite_attr(r, node, "data_format");
    return value != nullptr && value->value_case == MR__ATTR_VALUE__VALUE_S && value->s.len == 4 &&
           memcmp(value->s.data, "NCHW", 4) == 0;
}

/* Finds a product with constant float weights that only one node reads. deinit its value. */
static bool find_product(const mr_transforming *t, const bool *outputs, mr_rewrite_input input, product *p)
{
    const mr_rewrite *r = &t->r;
    *p = (product){.node = input.node};
    if (input.node < 0 || input.index != 0 || outputs[input.node]) return false;
    const bool is_conv = mr_rewrite_is(r, input.node, "Conv2D");
    const bool is_depthwise = mr_rewrite_is(r, input.node, "DepthwiseConv2dNative");
    const bool is_matmul = mr_rewrite_is(r, input.node, "MatMul");
    if (!is_conv && !is_depthwise && !is_matmul) return false;
    if (mr_rewrite_reader_count(r, input.node) != 1) return false;
    if (!mr_rewrite_constant(r, mr_rewrite_data_input(r, input.node, 1), &p->weights, &p->value)) return false;
    const mr_shape shape = p->value.shape;
    if (p->value.dtype != MR_FLOAT || shape.rank != (is_matmul ? 2 : 4)) {
        mr_tensor_deinit(&p->value);
        return false;
    }
    p->is_transposed = is_matmul && has_true(r, input.node, "transpose_b");
    p->channels = is_conv        ? shape.dims[3]
                  : is_depthwise ? shape.dims[2] * shape.dims[3]
                                 : shape.dims[p->is_transposed ? 0 : 1];
    return true;
}

/* The product with weights times the factors, in a new constant: others may read the old one. */
static mr_status scale_weights(mr_transforming *t, const product *p, const double *factors, mr_error *error)
{
    mr_rewrite *r = &t->r;
    mr_tensor scaled = {0};
    MR_TRY(mr_tensor_init(&scaled, MR_FLOAT, p->value.shape, error));
    const float *from = mr_tensor_floats(&p->value);
    float *to = mr_tensor_floats(&scaled);
    const int64_t count = mr_tensor_count(&scaled),
                  rows = count > p->channels && p->channels > 0 ? count / p->channels : 1;
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)(from[i] * factors[p->is_transposed ? i / rows : i % p->channels]);
    const char *name = mr_arena_printf(&r->arena, "%s_scaled", r->nodes[p->weights]->name);
    const int32_t constant = name != nullptr ? mr_rewrite_add_constant(r, name, &scaled, error) : -1;
    mr_tensor_deinit(&scaled);
    if (constant < 0) return mr_fail_memory(error, 64);
    r->nodes[p->node]->input[1] = r->nodes[constant]->name;
    return MR_OK;
}

/* ---- fold_batch_norms ---- */

/* Whether the value has one element for each channel of the product's last dimension, or only one. */
static bool fits_channels(const mr_tensor *value, const product *p, int32_t rank)
{
    if (value->dtype != MR_FLOAT || value->shape.rank > rank) return false;
    const int64_t count = mr_tensor_count(value);
    if (count == 1) return true;
    return value->shape.rank > 0 && count == p->channels && value->shape.dims[value->shape.rank - 1] == count;
}

static mr_status fold_product(mr_transforming *t, int32_t node, const bool *outputs, mr_error *error)
{
    mr_rewrite *r = &t->r;
    for (int32_t i = 0; i < 2; i++) {
        product p;
        mr_tensor factor = {0};
        int32_t constant;
        if (!find_product(t, outputs, mr_rewrite_data_input(r, node, i), &p)) continue;
        const bool fits = mr_rewrite_constant(r, mr_rewrite_data_input(r, node, 1 - i), &constant, &factor) &&
                          !is_nchw(r, p.node) && fits_channels(&factor, &p, p.value.shape.rank);
        mr_status status = MR_OK;
        double *factors = fits ? MR_ARENA_NEW(&r->arena, double, (size_t)p.channels + 1) : nullptr;
        if (fits && factors == nullptr) status = mr_fail_memory(error, (size_t)p.channels * sizeof *factors);
        if (factors != nullptr) {
            const bool is_single = mr_tensor_count(&factor) == 1;
            for (int64_t j = 0; j < p.channels; j++) factors[j] = (double)mr_tensor_floats(&factor)[is_single ? 0 : j];
            status = scale_weights(t, &p, factors, error);
        }
        mr_tensor_deinit(&factor);
        mr_tensor_deinit(&p.value);
        if (status != MR_OK || !fits) {
            MR_TRY(status);
            continue;
        }
        /* The product takes the name of the Mul. */
        const Mr__NodeDef *mul = r->nodes[node];
        char *name = mul->name;
        *r->nodes[node] = *r->nodes[p.node];
        r->nodes[node]->name = name;
        return mr_rewrite_remove(r, p.node, error);
    }
    return MR_OK;
}

static bool has_controls(const mr_rewrite *r, int32_t node)
{
    return (size_t)mr_rewrite_data_count(r, node) != r->nodes[node]->n_input;
}

mr_status mr_transform_fold_products(mr_transforming *t, mr_error *error)
{
    bool *outputs, *inputs;
    MR_TRY(mr_transform_marks(t, "output", t->outputs, &outputs, error));
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    const int32_t count = t->r.count;
    for (int32_t i = 0; i < count; i++) {
        outputs[i] |= inputs[i];
        if (inputs[i] || t->r.removed[i] || !mr_rewrite_is(&t->r, i, "Mul") || has_controls(&t->r, i)) continue;
        MR_TRY(fold_product(t, i, outputs, error));
    }
    return mr_transform_prune(t, error);
}

/* ---- fold_old_batch_norms ---- */

/* What a normalization has: its vectors by meaning, and how it is written. */
typedef struct norm {
    mr_tensor scale, offset, mean, variance; /* [channels] */
    double epsilon;
    bool scales;
} norm;

static void norm_deinit(norm *n)
{
    mr_tensor_deinit(&n->scale);
    mr_tensor_deinit(&n->offset);
    mr_tensor_deinit(&n->mean);
    mr_tensor_deinit(&n->variance);
}

static float attr_float(const mr_rewrite *r, int32_t node, const char *name, float otherwise)
{
    const Mr__AttrValue *value = mr_rewrite_attr(r, node, name);
    return value != nullptr && value->value_case == MR__ATTR_VALUE__VALUE_F ? value->f : otherwise;
}

static bool read_vector(const mr_rewrite *r, int32_t node, int32_t index, int64_t channels, mr_tensor *value)
{
    int32_t constant;
    return mr_rewrite_constant(r, mr_rewrite_data_input(r, node, index), &constant, value) &&
           value->dtype == MR_FLOAT && value->shape.rank == 1 && value->shape.dims[0] == channels;
}

static bool is_fused(const mr_rewrite *r, int32_t node)
{
    return mr_rewrite_is(r, node, "FusedBatchNorm") || mr_rewrite_is(r, node, "FusedBatchNormV2") ||
           mr_rewrite_is(r, node, "FusedBatchNormV3");
}

/* False if a vector is not constant, or if the node trains. deinit in any case. */
static bool read_norm(const mr_rewrite *r, int32_t node, int64_t channels, norm *n)
{
    *n = (norm){.scales = true};
    if (!is_fused(r, node)) {
        n->epsilon = (double)attr_float(r, node, "variance_epsilon", 0);
        n->scales = has_true(r, node, "scale_after_normalization");
        return read_vector(r, node, 1, channels, &n->mean) && read_vector(r, node, 2, channels, &n->variance) &&
               read_vector(r, node, 3, channels, &n->offset) && read_vector(r, node, 4, channels, &n->scale);
    }
    const Mr__AttrValue *training = mr_rewrite_attr(r, node, "is_training");
    n->epsilon = (double)attr_float(r, node, "epsilon", 0.0001f);
    if (training == nullptr || training->b || mr_rewrite_type(r, node, "T", MR_FLOAT) != MR_FLOAT) return false;
    for (int32_t i = 1; i < 6; i++)
        if (mr_rewrite_is_read(r, node, i)) return false;
    return read_vector(r, node, 1, channels, &n->scale) && read_vector(r, node, 2, channels, &n->offset) &&
           read_vector(r, node, 3, channels, &n->mean) && read_vector(r, node, 4, channels, &n->variance);
}

/* The normalization becomes a BiasAdd of the product. */
static mr_status replace_norm(mr_transforming *t, int32_t node, const product *p, const norm *n, const mr_tensor *bias,
                              mr_error *error)
{
    mr_rewrite *r = &t->r;
    mr_tensor sum = {0};
    double *factors = MR_ARENA_NEW(&r->arena, double, (size_t)p->channels + 1);
    if (factors == nullptr) return mr_fail_memory(error, (size_t)p->channels * sizeof *factors);
    MR_TRY(mr_tensor_init(&sum, MR_FLOAT, MR_SHAPE(p->channels), error));
    for (int64_t i = 0; i < p->channels; i++) {
        const double scale = n->scales ? (double)mr_tensor_floats(&n->scale)[i] : 1;
        const double before = bias != nullptr ? (double)mr_tensor_floats(bias)[i] : 0;
        factors[i] = scale / sqrt((double)mr_tensor_floats(&n->variance)[i] + n->epsilon);
        mr_tensor_floats(&sum)[i] = (float)((before - (double)mr_tensor_floats(&n->mean)[i]) * factors[i] +
                                            (double)mr_tensor_floats(&n->offset)[i]);
    }
    mr_status status = scale_weights(t, p, factors, error);
    const char *name = mr_arena_printf(&r->arena, "%s_bn_offset", r->nodes[p->node]->name);
    const int32_t constant = name != nullptr && status == MR_OK ? mr_rewrite_add_constant(r, name, &sum, error) : -1;
    mr_tensor_deinit(&sum);
    if (status != MR_OK) return status;
    if (constant < 0) return mr_fail_memory(error, 64);
    const char *inputs[] = {r->nodes[p->node]->name, r->nodes[constant]->name};
    const bool nchw = is_nchw(r, p->node);
    r->nodes[node]->op = (char *)"BiasAdd";
    mr_rewrite_clear_attrs(r, node);
    MR_TRY(mr_rewrite_set_inputs(r, node, inputs, 2, error));
    MR_TRY(mr_rewrite_set_type(r, node, "T", MR_FLOAT, error));
    return mr_rewrite_set_string(r, node, "data_format", nchw ? "NCHW" : "NHWC", error);
}

/* The product may be behind a BiasAdd with a constant. */
static mr_status fold_norm(mr_transforming *t, int32_t node, const bool *outputs, mr_error *error)
{
    mr_rewrite *r = &t->r;
    mr_rewrite_input input = mr_rewrite_data_input(r, node, 0);
    product p;
    norm n = {0};
    mr_tensor bias = {0};
    const bool is_biased = mr_rewrite_is(r, input.node, "BiasAdd") && !outputs[input.node] &&
                           !has_controls(r, input.node) && mr_rewrite_reader_count(r, input.node) == 1;
    const int32_t bias_node = is_biased ? input.node : -1;
    if (is_biased) input = mr_rewrite_data_input(r, bias_node, 0);
    if (!find_product(t, outputs, input, &p)) return MR_OK;
    mr_status status = MR_OK;
    const bool nchw = is_nchw(r, p.node);
    if (p.value.shape.rank == 4 && nchw == is_nchw(r, node) && (!is_biased || nchw == is_nchw(r, bias_node)) &&
        (!is_biased || read_vector(r, bias_node, 1, p.channels, &bias)) && read_norm(r, node, p.channels, &n))
        status = replace_norm(t, node, &p, &n, is_biased ? &bias : nullptr, error);
    norm_deinit(&n);
    mr_tensor_deinit(&bias);
    mr_tensor_deinit(&p.value);
    return status;
}

mr_status mr_transform_fold_norms(mr_transforming *t, mr_error *error)
{
    bool *outputs, *inputs;
    MR_TRY(mr_transform_marks(t, "output", t->outputs, &outputs, error));
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    const mr_rewrite *r = &t->r;
    const int32_t count = r->count;
    for (int32_t i = 0; i < count; i++) outputs[i] |= inputs[i];
    for (int32_t i = 0; i < count; i++) {
        const bool is_norm = is_fused(r, i) || mr_rewrite_is(r, i, "BatchNormWithGlobalNormalization");
        if (is_norm && !inputs[i] && !r->removed[i] && !has_controls(r, i)) MR_TRY(fold_norm(t, i, outputs, error));
    }
    return mr_transform_prune(t, error);
}
