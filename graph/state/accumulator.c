/* Accumulators: the resources, what all of them share, and those of dense gradients. */
#include "graph/state/accumulator.h"
#include "base/mutex.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void clear(mr_accumulator *a)
{
    mr_tensor_deinit(&a->sum);
    free(a->indices);
    free(a->counts);
    a->sum = (mr_tensor){0};
    a->indices = nullptr;
    a->counts = nullptr;
    a->count = a->row_count = 0;
}

static void accumulator_deinit(mr_resource *resource)
{
    mr_accumulator *a = (mr_accumulator *)resource;
    clear(a);
    mr_condition_deinit(&a->condition);
}

static void accumulator_reset(mr_resource *resource)
{
    mr_accumulator *a = (mr_accumulator *)resource;
    pthread_mutex_lock(&a->condition.mutex);
    clear(a);
    a->step = 0;
    pthread_mutex_unlock(&a->condition.mutex);
}

static const mr_resource_class accumulator_class = {.name = "accumulator",
                                                    .size_bytes = sizeof(mr_accumulator),
                                                    .deinit = accumulator_deinit,
                                                    .reset = accumulator_reset};

/* ---- Creation ---- */

static mr_status fill_accumulator(mr_accumulator *a, const mr_node *node, mr_error *error)
{
    mr_dtype dtype = mr_attr_type_or(&node->attrs, "dtype", MR_DTYPE_INVALID);
    mr_string reduction = mr_attr_string_or(&node->attrs, "reduction_type", "MEAN");
    if (dtype != MR_HALF && dtype != MR_FLOAT && dtype != MR_DOUBLE)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "No OpKernel was registered to support Op '%s' with dtype %s (half, float or double)", node->op,
                       mr_dtype_name(dtype));
    a->dtype = dtype;
    if (mr_attr_get_shape(&node->attrs, "shape", &a->shape, nullptr) != MR_OK) a->shape = MR_SHAPE_UNKNOWN;
    a->takes_mean = !(reduction.size_bytes == 3 && memcmp(reduction.data, "SUM", 3) == 0);
    a->is_sparse = strcmp(node->op, "SparseConditionalAccumulator") == 0;
    return MR_OK;
}

/* Another node with the accumulator's name changes nothing, as in TensorFlow. */
static mr_status make_accumulator(mr_resource_table *resources, const mr_node *node, mr_device *,
                                  mr_resource **resource, mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &accumulator_class, node, resource, &made, error));
    mr_accumulator *a = (mr_accumulator *)*resource;
    if (made) mr_condition_init(&a->condition, true);
    return a->dtype == MR_DTYPE_INVALID ? fill_accumulator(a, node, error) : MR_OK;
}

static const mr_state_row rows[] = {
    {.op = "ConditionalAccumulator", .make = make_accumulator},
    {.op = "ResourceConditionalAccumulator", .make = make_accumulator},
    {.op = "SparseConditionalAccumulator", .make = make_accumulator},
};

const mr_state_table mr_state_accumulator = {rows, sizeof rows / sizeof rows[0]};

static mr_status any_accumulator(const mr_kernel_call *call, mr_accumulator **accumulator, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &accumulator_class, &resource, error));
    *accumulator = (mr_accumulator *)resource;
    if ((*accumulator)->dtype != MR_DTYPE_INVALID) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "the accumulator was not created");
}

mr_status mr_accumulator_at(const mr_kernel_call *call, bool is_sparse, mr_dtype dtype, mr_accumulator **accumulator,
                            mr_error *error)
{
    MR_TRY(any_accumulator(call, accumulator, error));
    const mr_accumulator *a = *accumulator;
    if (a->is_sparse == is_sparse && a->dtype == dtype) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Signature mismatch, have: %s %s expected: %s %s for accumulator %s",
                          is_sparse ? "sparse" : "dense", mr_dtype_name(dtype), a->is_sparse ? "sparse" : "dense",
                          mr_dtype_name(a->dtype), a->resource.name);
}

/* ---- Adding and taking ---- */

static mr_status read_scalar(const mr_kernel_call *call, const char *name, int64_t *value, mr_error *error)
{
    const mr_tensor *input = &call->inputs[1];
    char text[MR_SHAPE_TEXT_SIZE];
    if (input->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Argument %s must be scalar, but had bad shape %s", name,
                              mr_shape_text(input->shape, text, sizeof text));
    *value = input->dtype == MR_INT64 ? mr_tensor_int64s(input)[0] : mr_tensor_int32s(input)[0];
    return MR_OK;
}

mr_status mr_accumulator_apply(mr_kernel_call *call, mr_accumulator *a,
                               mr_status (*add)(const mr_kernel_call *call, mr_accumulator *accumulator,
                                                mr_error *error),
                               mr_error *error)
{
    int64_t step;
    mr_status status = MR_OK;
    MR_TRY(read_scalar(call, "local_step", &step, error));
    pthread_mutex_lock(&a->condition.mutex);
    if (step >= a->step) {
        status = add(call, a, error);
        if (status == MR_OK) a->count++;
        assert(status != MR_OK || (a->count > 0 && (a->is_sparse || a->sum.dtype == a->dtype)));
        if (status == MR_OK) mr_condition_changed(&a->condition);
    }
    pthread_mutex_unlock(&a->condition.mutex);
    return status;
}

typedef struct taking {
    mr_kernel_call *call;
    mr_accumulator *accumulator;
    int64_t required;
    mr_status (*take)(mr_kernel_call *call, mr_accumulator *accumulator, mr_error *error);
} taking;

static bool try_take(void *context, mr_status *status, mr_error *error)
{
    const taking *t = context;
    mr_accumulator *a = t->accumulator;
    assert(mr_mutex_is_held(&a->condition.mutex));
    assert(a->count >= 0 && t->required > 0);
    if (a->count < t->required) return false;
    *status = t->take(t->call, a, error);
    if (*status != MR_OK) return true;
    clear(a);
    assert(a->count == 0 && a->row_count == 0 && a->sum.buffer == nullptr);
    if (a->step < INT64_MAX) a->step++;
    return true;
}

mr_status mr_accumulator_take(mr_kernel_call *call, mr_accumulator *a,
                              mr_status (*take)(mr_kernel_call *call, mr_accumulator *accumulator, mr_error *error),
                              mr_error *error)
{
    taking t = {.call = call, .accumulator = a, .take = take};
    MR_TRY(read_scalar(call, "num_required", &t.required, error));
    if (t.required <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Argument num_required must be positive, but was %lld", (long long)t.required);
    return mr_condition_run(&a->condition, call, try_take, &t, error);
}

static void divide_halves(uint16_t *elements, int64_t count, int64_t divisor)
{
    float by = mr_half_to_float(mr_float_to_half((float)divisor));
    for (int64_t i = 0; i < count; i++) elements[i] = mr_float_to_half(mr_half_to_float(elements[i]) / by);
}

static void divide_floats(float *elements, int64_t count, float divisor)
{
    for (int64_t i = 0; i < count; i++) elements[i] /= divisor;
}

static void divide_doubles(double *elements, int64_t count, double divisor)
{
    for (int64_t i = 0; i < count; i++) elements[i] /= divisor;
}

void mr_accumulator_divide(mr_dtype dtype, void *elements, int64_t count, int64_t divisor)
{
    if (dtype == MR_HALF)
        divide_halves(elements, count, divisor);
    else if (dtype == MR_FLOAT)
        divide_floats(elements, count, (float)divisor);
    else
        divide_doubles(elements, count, (double)divisor);
}

/* ---- Dense gradients ---- */

static mr_status check_shape(const mr_kernel_call *call, mr_shape expected, mr_shape found, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    if (mr_shape_compatible(expected, found)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Shape mismatch: expected %s, got %s",
                          mr_shape_text(expected, first, sizeof first), mr_shape_text(found, second, sizeof second));
}

static mr_status add_dense(const mr_kernel_call *call, mr_accumulator *a, mr_error *error)
{
    const mr_tensor *gradient = &call->inputs[2];
    if (a->count > 0) MR_TRY(check_shape(call, a->sum.shape, gradient->shape, error));
    MR_TRY(check_shape(call, a->shape, gradient->shape, error));
    if (a->count > 0) return mr_members_add(call, &a->sum, gradient, &a->sum, error);
    return mr_tensor_duplicate(call->device, gradient, &a->sum, error);
}

static mr_status take_dense(mr_kernel_call *call, mr_accumulator *a, mr_error *)
{
    assert(a->count > 0 && a->sum.dtype == a->dtype && !a->is_sparse);
    if (a->takes_mean) mr_accumulator_divide(a->dtype, a->sum.data, mr_tensor_count(&a->sum), a->count);
    call->outputs[0] = a->sum;
    a->sum = (mr_tensor){0};
    return MR_OK;
}

static mr_status apply_gradient(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    MR_TRY(mr_accumulator_at(call, false, call->inputs[2].dtype, &a, error));
    return mr_accumulator_apply(call, a, add_dense, error);
}

static mr_status take_gradient(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    MR_TRY(mr_accumulator_at(call, false, call->node->output_dtypes[0], &a, error));
    return mr_accumulator_take(call, a, take_dense, error);
}

/* ---- Counts and steps of any accumulator ---- */

static mr_status count_gradients(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    MR_TRY(any_accumulator(call, &a, error));
    pthread_mutex_lock(&a->condition.mutex);
    int64_t count = a->count;
    pthread_mutex_unlock(&a->condition.mutex);
    return mr_tensor_init_int32(&call->outputs[0], (int32_t)MR_MIN(count, INT32_MAX), error);
}

static mr_status set_global_step(mr_kernel_call *call, mr_error *error)
{
    mr_accumulator *a;
    int64_t step;
    MR_TRY(any_accumulator(call, &a, error));
    MR_TRY(read_scalar(call, "new_global_step", &step, error));
    pthread_mutex_lock(&a->condition.mutex);
    a->step = step;
    pthread_mutex_unlock(&a->condition.mutex);
    return MR_OK;
}

#define BOTH(name, ...)                                                                                                \
    {.op = name, __VA_ARGS__},                                                                                         \
    {                                                                                                                  \
        .op = "Resource" name, __VA_ARGS__                                                                             \
    }
static const mr_kernel kernels[] = {
    BOTH("AccumulatorApplyGradient", .run = apply_gradient),
    BOTH("AccumulatorTakeGradient", .run = take_gradient),
    BOTH("AccumulatorNumAccumulated", .run = count_gradients),
    BOTH("AccumulatorSetGlobalStep", .run = set_global_step),
};
const mr_kernel_table mr_state_kernels_accumulator = {kernels, sizeof kernels / sizeof kernels[0]};
