/* Fuse pool: a MaxPool whose input is only kept for its gradient keeps the positions of its maxima instead, a byte
 * each (kernels/pool_positions.c). If the input is the output of Relu, whose gradient is the only other reader, and
 * windows do not overlap, ReluGrad is computed together with MaxPoolGrad: it passes on what belongs to positive maxima.
 * The results are the same.
 *
 * Floats in NHWC with a multiple of 16 channels and a known height and width, on the CPU. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int64_t CHANNELS_STEP = 16, PLACES_MAX = 128;

/* The nodes around the input of a MaxPool: plan nodes, -1: none. */
typedef struct readers {
    int32_t pool, pool_grad, relu_grad;
} readers;

typedef struct fuser {
    mr_planner *planner;
    readers *readers;    /* by value */
    int32_t *uses;       /* by value, see plan.h */
    bool *after_updates; /* by node, see plan.h */
} fuser;

static void find_readers(fuser *f)
{
    const mr_planner *planner = f->planner;
    for (int32_t i = 0; i < planner->value_count; i++) f->readers[i] = (readers){-1, -1, -1};
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        switch (mr_plan_fusion_role(node)) {
        case MR_FUSION_MAX_POOL:
            f->readers[node->inputs[0]].pool = i;
            break;
        case MR_FUSION_MAX_POOL_GRAD:
            f->readers[node->inputs[0]].pool_grad = i;
            break;
        case MR_FUSION_RELU_GRAD:
            f->readers[node->inputs[1]].relu_grad = i;
            break;
        default:
            break;
        }
    }
}

static bool same_ints(const mr_node *a, const mr_node *b, const char *name, int64_t values[4])
{
    int64_t others[4];
    int32_t counts[2];
    mr_error ignored;
    return mr_attr_get_ints(&a->attrs, name, values, 4, &counts[0], &ignored) == MR_OK &&
           mr_attr_get_ints(&b->attrs, name, others, 4, &counts[1], &ignored) == MR_OK && counts[0] == 4 &&
           counts[1] == 4 && memcmp(values, others, sizeof others) == 0;
}

static bool same_string(const mr_node *a, const mr_node *b, const char *name, const char *otherwise, mr_string *value)
{
    *value = mr_attr_string_or(&a->attrs, name, otherwise);
    return mr_string_equal(*value, mr_attr_string_or(&b->attrs, name, otherwise));
}

/* Whether the kernels support the windows, which must be those of both nodes. */
static bool has_windows(const mr_node *pool, const mr_node *grad, bool has_relu)
{
    int64_t size[4], strides[4];
    mr_string format, padding;
    if (!same_ints(pool, grad, "ksize", size) || !same_ints(pool, grad, "strides", strides) ||
        !same_string(pool, grad, "data_format", "NHWC", &format) || !same_string(pool, grad, "padding", "", &padding))
        return false;
    if (has_relu && (size[1] > strides[1] || size[2] > strides[2])) return false;
    return mr_string_equal(format, MR_STR("NHWC")) && !mr_string_equal(padding, MR_STR("EXPLICIT")) && size[0] == 1 &&
           size[3] == 1 && strides[0] == 1 && strides[3] == 1 && size[1] >= 1 && size[1] <= PLACES_MAX &&
           size[2] >= 1 && size[2] <= PLACES_MAX / size[1];
}

static bool has_type(const mr_plan_value *input)
{
    const mr_shape s = input->shape;
    return input->kind == MR_VALUE_OUTPUT && !input->is_ref && input->dtype == MR_FLOAT && s.rank == 4 &&
           s.dims[1] >= 0 && s.dims[2] >= 0 && s.dims[3] > 0 && s.dims[3] % CHANNELS_STEP == 0;
}

static const mr_attrs *attrs_with_size(fuser *f, const mr_attrs *attrs, mr_shape shape)
{
    mr_attr_value *values = MR_ARENA_NEW(&f->planner->kept, mr_attr_value, 2);
    if (!values) return nullptr;
    for (int i = 0; i < 2; i++) values[i].integer = shape.dims[1 + i];
    return mr_plan_attrs_with(f->planner, attrs, (mr_attr){"input_size", MR_ATTR_INT, true, 2, values});
}

/* Gives the pool a second output, and sets *output to the first one, which replaces its only one. */
static mr_status add_positions(fuser *f, mr_plan_node *pool, const mr_kernel *kernel, int32_t *output, mr_error *error)
{
    mr_planner *planner = f->planner;
    int32_t positions;
    mr_plan_value value = planner->values[pool->first_output];
    MR_TRY(mr_plan_add_value(planner, value, output, error));
    value.index = 1;
    value.dtype = MR_UINT8;
    value.fetched = false;
    MR_TRY(mr_plan_add_value(planner, value, &positions, error));
    assert(positions == *output + 1);
    pool->kernel = kernel;
    pool->attrs = &pool->node->attrs;
    pool->first_output = *output;
    pool->output_count = 2;
    return MR_OK;
}

static bool runs_with(const mr_plan_node *a, const mr_plan_node *b)
{
    return a->region == b->region && a->condition == b->condition && a->device == b->device;
}

/* Fuses around the input of a MaxPool, whose output is *replacement afterwards. */
static mr_status fuse(fuser *f, int32_t input, int32_t *replacement, mr_error *error)
{
    mr_planner *planner = f->planner;
    const readers *r = &f->readers[input];
    if (r->pool < 0 || r->pool_grad < 0 || !has_type(&planner->values[input])) return MR_OK;
    mr_plan_node *pool = &planner->nodes[r->pool], *pool_grad = &planner->nodes[r->pool_grad], *last = pool_grad;
    if (pool_grad->inputs[1] != pool->first_output || !has_windows(pool->node, pool_grad->node, r->relu_grad >= 0) ||
        mr_plan_variable_of(planner, input) >= 0)
        return MR_OK;
    assert(planner->values[input].producer >= 0 && pool->input_count == 1 && pool_grad->input_count == 3);
    const mr_plan_node *producer = &planner->nodes[planner->values[input].producer];
    if (r->relu_grad >= 0) {
        last = &planner->nodes[r->relu_grad];
        if (last->inputs[0] != pool_grad->first_output || f->uses[pool_grad->first_output] != 1 ||
            mr_plan_fusion_role(producer) != MR_FUSION_RELU || !runs_with(pool_grad, last))
            return MR_OK;
    }
    if (f->uses[input] != (r->relu_grad >= 0 ? 3 : 2) || !runs_with(pool, pool_grad)) return MR_OK;
    const int32_t gradient = pool_grad->inputs[2];
    if (!mr_plan_reads_freely(planner, f->after_updates, (int32_t)(last - planner->nodes), gradient)) return MR_OK;
    const mr_attrs *attrs = attrs_with_size(f, &pool->node->attrs, planner->values[input].shape);
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, 2);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, 2);
    if (!attrs || !inputs || !refs) return mr_fail_memory(error, sizeof *attrs);
    const mr_fusion *names = &pool_grad->node->def->op->fusion;
    const mr_kernel *forward =
        mr_kernel_find(pool->node->def->op->fusion.positions, pool->device->kind, &pool->node->attrs);
    const mr_kernel *backward =
        mr_kernel_find(r->relu_grad >= 0 ? names->relu_positions : names->positions, last->device->kind, attrs);
    if (!forward || !backward) return MR_OK;
    MR_TRY(add_positions(f, pool, forward, replacement, error));
    inputs[0] = *replacement + 1;
    inputs[1] = gradient;
    last->kernel = backward;
    last->attrs = attrs;
    last->inputs = inputs;
    last->input_is_ref = refs;
    last->input_count = 2;
    return MR_OK;
}

mr_status mr_plan_fuse_pool(mr_planner *planner, mr_error *error)
{
    const int32_t count = planner->value_count;
    fuser f = {.planner = planner};
    f.readers = MR_ARENA_NEW(&planner->arena, readers, (size_t)count + 1);
    int32_t *instead = MR_ARENA_NEW(&planner->arena, int32_t, (size_t)count + 1);
    if (!f.readers || !instead) return mr_fail_memory(error, (size_t)count * sizeof *f.readers);
    MR_TRY(mr_plan_uses(planner, &f.uses, error));
    MR_TRY(mr_plan_after_updates(planner, &f.after_updates, error));
    find_readers(&f);
    for (int32_t i = 0; i < count; i++) instead[i] = i;
    for (int32_t i = 0; i < count; i++) {
        const int32_t pool = f.readers[i].pool, output = pool < 0 ? -1 : planner->nodes[pool].first_output;
        if (output >= 0) MR_TRY(fuse(&f, i, &instead[output], error));
    }
    for (int32_t i = 0; i < planner->node_count; i++)
        for (int32_t j = 0; j < planner->nodes[i].input_count; j++) {
            int32_t *input = &planner->nodes[i].inputs[j];
            if (*input < count) *input = instead[*input];
        }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++)
        planner->fetch_values[i] = instead[planner->fetch_values[i]];
    mr_plan_sweep(planner);
    return MR_OK;
}
