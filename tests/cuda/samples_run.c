/* Running a sample: generates inputs from its seed, copies them to where the kernel needs them, and compares the
 * outputs. */
#include "base/random.h"
#include "tests/cuda/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The data of a node, created from a sample. */
typedef struct sample_node {
    mr_kernel_node node;
    mr_attrs attrs;
    mr_attr items[SAMPLE_ATTRS_MAX];
    mr_attr_value values[SAMPLE_ATTRS_MAX][SAMPLE_INTS_MAX];
    mr_dtype input_dtypes[SAMPLE_INPUTS_MAX];
} sample_node;

static void make_node(const sample *s, sample_node *made)
{
    memset(made, 0, sizeof *made);
    for (int i = 0; i < SAMPLE_ATTRS_MAX && s->attrs[i].name; i++) {
        const sample_attr *attr = &s->attrs[i];
        int32_t count = attr->is_list ? attr->count : 1;
        for (int32_t j = 0; j < count; j++) {
            mr_attr_value *value = &made->values[i][j];
            if (attr->kind == MR_ATTR_INT) value->integer = attr->ints[j];
            if (attr->kind == MR_ATTR_TYPE) value->type = (int32_t)attr->ints[j];
            if (attr->kind == MR_ATTR_BOOL) value->boolean = attr->ints[j] != 0;
            if (attr->kind == MR_ATTR_FLOAT) value->number = attr->number;
            if (attr->kind == MR_ATTR_STRING) value->string = mr_string_from(attr->string);
        }
        made->items[i] = (mr_attr){attr->name, attr->kind, attr->is_list, count, made->values[i]};
        made->attrs.count++;
    }
    made->attrs.items = made->items;
    for (int i = 0; i < s->input_count; i++) made->input_dtypes[i] = s->inputs[i].dtype;
    made->node = (mr_kernel_node){.name = s->name,
                                  .op = s->op,
                                  .attrs = &made->attrs,
                                  .input_count = s->input_count,
                                  .output_count = s->output_count,
                                  .input_dtypes = made->input_dtypes,
                                  .output_dtypes = s->outputs};
}

static void set_element(mr_tensor *tensor, int64_t i, double value)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        ((float *)tensor->data)[i] = (float)value;
        break;
    case MR_DOUBLE:
        ((double *)tensor->data)[i] = value;
        break;
    case MR_INT32:
        ((int32_t *)tensor->data)[i] = (int32_t)value;
        break;
    case MR_INT64:
        ((int64_t *)tensor->data)[i] = (int64_t)value;
        break;
    default:
        ((uint8_t *)tensor->data)[i] = tensor->dtype == MR_BOOL ? value > 0 : (uint8_t)value;
        break;
    }
}

static double element(const mr_tensor *tensor, int64_t i)
{
    switch (tensor->dtype) {
    case MR_FLOAT:
        return (double)((const float *)tensor->data)[i];
    case MR_DOUBLE:
        return ((const double *)tensor->data)[i];
    case MR_INT32:
        return ((const int32_t *)tensor->data)[i];
    case MR_INT64:
        return (double)((const int64_t *)tensor->data)[i];
    default:
        return ((const uint8_t *)tensor->data)[i];
    }
}

static mr_status make_input(const sample *s, int index, mr_tensor *made, mr_error *error)
{
    const sample_input *input = &s->inputs[index];
    bool is_unit = input->low == 0 && input->high == 0;
    double low = is_unit ? -1 : input->low, high = is_unit ? 1 : input->high;
    uint64_t seed = 0;
    for (const char *letter = s->name; *letter; letter++) seed = seed * 31 + (unsigned char)*letter;
    mr_random random = mr_random_at(seed, 0, (uint64_t)index, 0);
    MR_TRY(mr_tensor_init(made, input->dtype, input->shape, error));
    for (int64_t i = 0; i < mr_tensor_count(made); i++)
        set_element(made, i, input->is_given ? (double)input->ints[i] : mr_random_range(&random, low, high));
    return MR_OK;
}

/* A copy of a host tensor on the device. */
static mr_status send(mr_device *device, const mr_tensor *host, mr_tensor *made, mr_error *error)
{
    MR_TRY(mr_tensor_init_on(made, device, host->dtype, host->shape, error));
    MR_TRY(device->functions->copy_in(device, made->data, host->data, mr_tensor_size_bytes(host), error));
    return device->functions->wait(device, error);
}

static mr_status fetch(mr_device *device, const mr_tensor *there, mr_tensor *made, mr_error *error)
{
    MR_TRY(mr_tensor_init(made, there->dtype, there->shape, error));
    MR_TRY(device->functions->copy_out(device, made->data, there->data, mr_tensor_size_bytes(there), error));
    return device->functions->wait(device, error);
}

static bool in_mask(uint32_t mask, int index)
{
    return (mask >> 31 & 1) || (index < 31 && (mask >> index & 1));
}

/* results: outputs, then the inputs that the kernel changed; in host memory. */
enum { RESULTS_MAX = 6 + SAMPLE_INPUTS_MAX };

typedef struct sample_run {
    mr_tensor inputs[SAMPLE_INPUTS_MAX], outputs[6], results[RESULTS_MAX];
    int result_count;
} sample_run;

static mr_status collect(const sample *s, const mr_kernel *kernel, mr_device *device, sample_run *run, mr_error *error)
{
    for (int i = 0; i < s->output_count && !kernel->updates; i++) {
        mr_tensor *result = &run->results[run->result_count++];
        if (in_mask(kernel->host_outputs, i))
            *result = mr_tensor_ref(&run->outputs[i]);
        else
            MR_TRY(fetch(device, &run->outputs[i], result, error));
    }
    for (int i = 0; i < s->input_count; i++)
        if (in_mask(kernel->updates, i))
            MR_TRY(fetch(device, &run->inputs[i], &run->results[run->result_count++], error));
    return MR_OK;
}

static mr_status execute(const sample *s, const mr_kernel *kernel, mr_device *device, sample_node *node, void *prepared,
                         sample_run *run, mr_error *error)
{
    bool may_reuse[SAMPLE_INPUTS_MAX] = {s->reuses};
    mr_kernel_random random = {0};
    node->node.device = device;
    node->node.host_outputs = kernel->host_outputs;
    for (int i = 0; i < s->input_count; i++) {
        mr_tensor host;
        MR_TRY(make_input(s, i, &host, error));
        mr_status status = MR_OK;
        if (device->kind == MR_DEVICE_CPU || in_mask(kernel->host_inputs, i))
            run->inputs[i] = mr_tensor_ref(&host);
        else
            status = send(device, &host, &run->inputs[i], error);
        mr_tensor_deinit(&host);
        MR_TRY(status);
    }
    if (kernel->prepare) MR_TRY(kernel->prepare(&node->node, prepared, error));
    mr_kernel_call call = {.node = &node->node,
                           .prepared = prepared,
                           .device = device,
                           .inputs = run->inputs,
                           .may_reuse = may_reuse,
                           .outputs = run->outputs,
                           .random = &random};
    MR_TRY(kernel->run(&call, error));
    return collect(s, kernel, device, run, error);
}

static mr_status run_on(const sample *s, mr_device *device, sample_run *run, mr_error *error)
{
    sample_node *node = malloc(sizeof *node);
    if (!node) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    make_node(s, node);
    const mr_kernel *kernel = mr_kernel_find(s->op, device->kind, &node->attrs);
    mr_status status = MR_OK;
    if (!kernel) status = mr_fail(error, MR_NOT_FOUND, "%s has no kernel on %s", s->op, device->name);
    void *prepared = kernel ? calloc(1, kernel->prepared_size_bytes + 1) : nullptr;
    if (kernel && prepared) status = execute(s, kernel, device, node, prepared, run, error);
    for (int i = 0; i < SAMPLE_INPUTS_MAX; i++) mr_tensor_deinit(&run->inputs[i]);
    for (int i = 0; i < 6; i++) mr_tensor_deinit(&run->outputs[i]);
    free(prepared);
    free(node);
    return status;
}

static mr_status compare(const sample *s, int index, const mr_tensor *expected, const mr_tensor *got, mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (expected->dtype != got->dtype || !mr_shape_equal(expected->shape, got->shape))
        return mr_fail(error, MR_DATA_LOSS, "result %d is %s of %s, not %s of %s", index, mr_dtype_name(got->dtype),
                       mr_shape_text(got->shape, a, sizeof a), mr_dtype_name(expected->dtype),
                       mr_shape_text(expected->shape, b, sizeof b));
    double tolerance = s->tolerance > 0 ? (double)s->tolerance : 1e-5;
    for (int64_t i = 0; i < mr_tensor_count(got); i++) {
        double x = element(expected, i), y = element(got, i);
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (1 + fabs(x))) continue;
        return mr_fail(error, MR_DATA_LOSS, "result %d at %lld is %.9g, not %.9g", index, (long long)i, y, x);
    }
    return MR_OK;
}

mr_status sample_compare(const sample *s, mr_device *cpu, mr_device *gpu, mr_error *error)
{
    sample_run *runs = calloc(2, sizeof *runs);
    if (!runs) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = run_on(s, cpu, &runs[0], error);
    if (status == MR_OK) status = run_on(s, gpu, &runs[1], error);
    if (status == MR_OK && runs[0].result_count != runs[1].result_count)
        status = mr_fail(error, MR_DATA_LOSS, "%d results, not %d", runs[1].result_count, runs[0].result_count);
    for (int i = 0; status == MR_OK && i < runs[0].result_count; i++)
        if (!(s->outputs_ignored >> i & 1)) status = compare(s, i, &runs[0].results[i], &runs[1].results[i], error);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < RESULTS_MAX; j++) mr_tensor_deinit(&runs[i].results[j]);
    free(runs);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", s->op, s->name);
}
