/* Datasets whose elements have sparse tensors: parsed Examples, and sparse batches. In a pipeline a sparse tensor is
 * three strings (graph/state/serialized.h). */
#include "graph/data/dataset.h"
#include "graph/state/parse_example.h"
#include "graph/state/serialized.h"

#include "base/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parsed Examples ---- */

typedef struct parsing {
    mr_example_parser *parser;
    int32_t count;        /* features */
    int32_t tensor_count; /* of the parser */
    struct {
        int32_t first; /* tensor of the parser */
        int32_t output;
        bool is_sparse;
    } features[MR_COMPONENTS_MAX];
} parsing;

static void parsing_free(void *context)
{
    parsing *p = context;
    mr_example_parser_free(p->parser);
    free(p);
}

static mr_status parse(void *context, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    const parsing *p = context;
    const mr_tensor *records = &input->tensors[0];
    mr_tensor tensors[3 * MR_COMPONENTS_MAX] = {0};
    if (records->shape.rank != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the elements to parse must be vectors of strings");
    MR_TRY(mr_example_parse(p->parser, mr_tensor_strings(records), mr_tensor_count(records), false, tensors, error));
    mr_status status = MR_OK;
    for (int32_t i = 0; i < p->count && status == MR_OK; i++) {
        mr_tensor *from = &tensors[p->features[i].first], *to = &output->tensors[p->features[i].output];
        if (p->features[i].is_sparse) {
            status = mr_serialized_sparse(&from[0], &from[1], &from[2], to, error);
            continue;
        }
        *to = *from;
        *from = (mr_tensor){0};
    }
    for (int32_t i = 0; i < p->tensor_count; i++) mr_tensor_deinit(&tensors[i]);
    output->count = p->count;
    return status;
}

/* The outputs are in the order of the names. */
static void order_outputs(parsing *p, const mr_feature *features)
{
    for (int32_t i = 0; i < p->count; i++) {
        p->features[i].first = p->tensor_count;
        p->features[i].is_sparse = features[i].form == MR_VAR_LEN;
        p->features[i].output = 0;
        p->tensor_count += mr_feature_tensor_count(&features[i]);
        for (int32_t k = 0; k < p->count; k++) p->features[i].output += strcmp(features[k].name, features[i].name) < 0;
    }
}

static mr_status new_parsing(const mr_kernel_call *call, int32_t output_count, parsing *p, mr_error *error)
{
    mr_arena arena = {0};
    mr_feature *features = nullptr;
    mr_status status = mr_parse_features(call, 2, &arena, &features, &p->count, error);
    if (status == MR_OK && p->count != output_count)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%d features, but %d output_types",
                                (int)p->count, (int)output_count);
    if (status == MR_OK) status = mr_example_parser_new(features, p->count, &p->parser, error);
    if (status == MR_OK) order_outputs(p, features);
    assert(p->tensor_count <= 3 * MR_COMPONENTS_MAX);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status parse_examples(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    mr_element_spec spec;
    const mr_attr *ragged = mr_attrs_find(call->node->attrs, "ragged_keys");
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_spec(call, &spec, error));
    const mr_element_spec *given = mr_dataset_spec(input);
    if (ragged && ragged->count > 0)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "ragged features in a dataset");
    if (given->count != 1 || given->dtypes[0] != MR_STRING)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the elements to parse must be vectors of strings");
    parsing *p = calloc(1, sizeof *p);
    if (!p) return mr_fail_memory(error, sizeof *p);
    mr_status status = new_parsing(call, spec.count, p, error);
    if (status != MR_OK) {
        parsing_free(p);
        return status;
    }
    return mr_data_output(call, mr_dataset_map(mr_dataset_ref(input), parse, p, &spec, .release = parsing_free), error);
}

/* ---- Sparse batches ---- */

static mr_status serialize(void *, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    const mr_tensor *tensors = input->tensors;
    MR_TRY(mr_serialized_sparse(&tensors[0], &tensors[1], &tensors[2], &output->tensors[0], error));
    output->count = 1;
    return MR_OK;
}

static mr_status sparse_batch(mr_kernel_call *call, mr_error *error)
{
    mr_dataset *input;
    int64_t size;
    mr_shape row = MR_SCALAR;
    const mr_tensor *sizes = &call->inputs[2];
    MR_TRY(mr_data_input(call, 0, &input, error));
    MR_TRY(mr_data_int(call, 1, "batch_size", &size, error));
    if (size <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Batch size must be greater than zero.");
    if (sizes->shape.rank != 1 || sizes->shape.dims[0] >= MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "row_shape must be a vector");
    row.rank = (int32_t)sizes->shape.dims[0];
    for (int32_t i = 0; i < row.rank; i++) row.dims[i] = mr_tensor_int64s(sizes)[i];
    mr_element_spec spec = {.count = 1, .dtypes = {MR_STRING}, .shapes = {MR_SHAPE(3)}};
    mr_dataset *batches = mr_dataset_dense_to_sparse_batch(mr_dataset_ref(input), size, row);
    return mr_data_output(call, mr_dataset_map(batches, serialize, nullptr, &spec), error);
}

static const mr_kernel kernels[] = {
    {.op = "ParseExampleDataset", .run = parse_examples},
    {.op = "ParseExampleDatasetV2", .run = parse_examples},
    {.op = "DenseToSparseBatchDataset", .run = sparse_batch},
};
const mr_kernel_table mr_data_kernels_sparse = {kernels, sizeof kernels / sizeof kernels[0]};
