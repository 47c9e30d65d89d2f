/* Numbers and tensors from text and from serialized messages. */
#include "graph/ir/op.h"

#include <string.h>

static mr_status decode_csv_shape(mr_shape_call *call, mr_error *error)
{
    for (int32_t i = 1; i < call->input_count; i++) {
        mr_shape value = call->inputs[i];
        if (value.rank > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", value.rank);
        if (value.rank == 1 && value.dims[0] > 1)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
    for (int32_t i = 0; i < call->output_count; i++) call->outputs[i] = call->inputs[0];
    return MR_OK;
}

/* The shape of input 0 with one more dimension. */
static mr_status append_size(mr_shape_call *call, int64_t size, mr_error *error)
{
    mr_shape result = call->inputs[0];
    if (result.rank < 0) return MR_OK;
    if (result.rank == MR_RANK_MAX) return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
    result.dims[result.rank++] = size;
    call->outputs[0] = result;
    return MR_OK;
}

static mr_status decode_raw_shape(mr_shape_call *call, mr_error *error)
{
    return append_size(call, -1, error);
}

static mr_status decode_padded_raw_shape(mr_shape_call *call, mr_error *error)
{
    mr_dtype dtype = MR_DTYPE_INVALID;
    int64_t length = 0, size = -1;
    MR_TRY(mr_attr_get_type(call->attrs, "out_type", &dtype, error));
    int64_t width = (int64_t)mr_dtype_size(dtype);
    MR_TRY(mr_shape_expect_rank(call, 1, 0, error));
    if (mr_shape_input_integer(call, 1, &length) && width > 0) {
        if (length < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "Dimension size, given by scalar input 1, must be non-negative "
                           "but is %lld",
                           (long long)length);
        if (length % width != 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Dimension size must be evenly divisible by %lld but is %lld",
                           (long long)width, (long long)length);
        size = length / width;
    }
    return append_size(call, size, error);
}

/* ---- Examples ----
 *
 * The outputs of one group of features: indices, values and shapes of sparse ones, then dense ones, then ragged
 * ones. */

typedef struct writer {
    mr_shape_call *call;
    int32_t next;
} writer;

static void put(writer *w, int64_t count, mr_shape shape)
{
    for (int64_t i = 0; i < count && w->next < w->call->output_count; i++) w->call->outputs[w->next++] = shape;
}

static int64_t list_length(const mr_shape_call *call, const char *name)
{
    const mr_attr *attr = mr_attrs_find(call->attrs, name);
    return attr != nullptr && attr->is_list ? attr->count : 0;
}

/* Names of attrs; null for none. lead: the dimensions before the values' own, -1 if their number is unknown. */
typedef struct group {
    const char *sparse_count, *sparse_types, *dense_types, *dense_shapes, *ragged_types, *ragged_splits;
} group;

static mr_status check_lengths(const mr_shape_call *call, const group *g, mr_error *error)
{
    int64_t sparse = g->sparse_count ? mr_attr_int_or(call->attrs, g->sparse_count, 0) : 0;
    if (sparse != list_length(call, g->sparse_types))
        return mr_fail(error, MR_INVALID_ARGUMENT, "len(%s) = %lld, but %s is %lld", g->sparse_types,
                       (long long)list_length(call, g->sparse_types), g->sparse_count, (long long)sparse);
    if (list_length(call, g->dense_types) != list_length(call, g->dense_shapes))
        return mr_fail(error, MR_INVALID_ARGUMENT, "len(%s) = %lld, but len(%s) = %lld", g->dense_types,
                       (long long)list_length(call, g->dense_types), g->dense_shapes,
                       (long long)list_length(call, g->dense_shapes));
    if (g->ragged_types && list_length(call, g->ragged_types) != list_length(call, g->ragged_splits))
        return mr_fail(error, MR_INVALID_ARGUMENT, "len(%s) = %lld, but len(%s) = %lld", g->ragged_types,
                       (long long)list_length(call, g->ragged_types), g->ragged_splits,
                       (long long)list_length(call, g->ragged_splits));
    return MR_OK;
}

static void put_sparse(writer *w, const group *g, int64_t rank)
{
    int64_t count = list_length(w->call, g->sparse_types);
    put(w, count, MR_SHAPE(-1, rank));
    put(w, count, MR_SHAPE(-1));
    put(w, count, MR_SHAPE(rank));
}

/* lead: the sizes before those of the feature. */
static mr_status put_dense(writer *w, const group *g, mr_shape lead, mr_error *error)
{
    const mr_attr *shapes = mr_attrs_find(w->call->attrs, g->dense_shapes);
    for (int32_t i = 0; shapes != nullptr && i < shapes->count; i++) {
        mr_shape shape = lead, own = shapes->values[i].shape;
        if (lead.rank >= 0 && own.rank >= 0 && lead.rank + own.rank > MR_RANK_MAX)
            return mr_fail(error, MR_UNIMPLEMENTED, "more than %d dimensions", MR_RANK_MAX);
        if (own.rank < 0) shape = MR_SHAPE_UNKNOWN;
        for (int32_t d = 0; shape.rank >= 0 && d < own.rank; d++) shape.dims[shape.rank++] = own.dims[d];
        put(w, 1, shape);
    }
    return MR_OK;
}

/* The size of row splits for `count` rows. */
static mr_shape splits_shape(mr_shape serialized)
{
    return MR_SHAPE(serialized.rank == 1 && serialized.dims[0] >= 0 ? serialized.dims[0] + 1 : -1);
}

static mr_status expect_rank_at_most_1(const mr_shape_call *call, int32_t index, mr_error *error)
{
    if (call->inputs[index].rank <= 1) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", call->inputs[index].rank);
}

static const group example_group = {"Nsparse", "sparse_types", "Tdense", "dense_shapes", nullptr, nullptr};
static const group example_v2_group = {"num_sparse",   "sparse_types",       "Tdense",
                                       "dense_shapes", "ragged_value_types", "ragged_split_types"};
static const group single_group = {"num_sparse", "sparse_types", "Tdense", "dense_shapes", nullptr, nullptr};
static const group context_group = {
    "Ncontext_sparse", "context_sparse_types", "Tcontext_dense", "context_dense_shapes", nullptr, nullptr};
static const group list_group = {"Nfeature_list_sparse",
                                 "feature_list_sparse_types",
                                 "feature_list_dense_types",
                                 "feature_list_dense_shapes",
                                 nullptr,
                                 nullptr};
static const group context_v2_group = {
    "Ncontext_sparse",      "context_sparse_types",       "Tcontext_dense",
    "context_dense_shapes", "context_ragged_value_types", "context_ragged_split_types"};
static const group list_v2_group = {
    "Nfeature_list_sparse",      "feature_list_sparse_types",       "feature_list_dense_types",
    "feature_list_dense_shapes", "feature_list_ragged_value_types", "feature_list_ragged_split_types"};

static mr_shape batch_of(const mr_shape_call *call)
{
    return call->inputs[0].rank == 1 ? call->inputs[0] : MR_SHAPE(-1);
}

static mr_status parse_example_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(check_lengths(call, &example_group, error));
    if (mr_attr_int_or(call->attrs, "Ndense", 0) != list_length(call, "Tdense"))
        return mr_fail(error, MR_INVALID_ARGUMENT, "len(dense_keys) != len(dense_types)");
    put_sparse(&w, &example_group, 2);
    return put_dense(&w, &example_group, batch_of(call), error);
}

static mr_status parse_example_v2_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    mr_shape serialized = call->inputs[0];
    MR_TRY(expect_rank_at_most_1(call, 0, error));
    MR_TRY(expect_rank_at_most_1(call, 1, error));
    for (int32_t i = 2; i < 5; i++) MR_TRY(mr_shape_expect_rank(call, i, 1, error));
    MR_TRY(check_lengths(call, &example_v2_group, error));
    int64_t ragged = list_length(call, "ragged_value_types");
    put_sparse(&w, &example_v2_group, serialized.rank < 0 ? -1 : serialized.rank + 1);
    MR_TRY(put_dense(&w, &example_v2_group, serialized, error));
    put(&w, ragged, MR_SHAPE(-1));
    put(&w, ragged, splits_shape(serialized));
    return MR_OK;
}

static mr_status parse_single_example_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(check_lengths(call, &single_group, error));
    put_sparse(&w, &single_group, 1);
    return put_dense(&w, &single_group, MR_SCALAR, error);
}

static mr_status parse_sequence_example_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    MR_TRY(mr_shape_expect_rank(call, 0, 1, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(check_lengths(call, &context_group, error));
    MR_TRY(check_lengths(call, &list_group, error));
    int64_t batch = batch_of(call).dims[0];
    put_sparse(&w, &context_group, 2);
    MR_TRY(put_dense(&w, &context_group, MR_SHAPE(batch), error));
    put_sparse(&w, &list_group, 3);
    MR_TRY(put_dense(&w, &list_group, MR_SHAPE(batch, -1), error));
    put(&w, list_length(call, "feature_list_dense_types"), MR_SHAPE(batch));
    return MR_OK;
}

static mr_status parse_sequence_example_v2_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    mr_shape serialized = call->inputs[0], steps = serialized;
    MR_TRY(expect_rank_at_most_1(call, 0, error));
    MR_TRY(expect_rank_at_most_1(call, 1, error));
    MR_TRY(check_lengths(call, &context_v2_group, error));
    MR_TRY(check_lengths(call, &list_v2_group, error));
    int64_t rank = serialized.rank < 0 ? -1 : serialized.rank + 1;
    int64_t context_ragged = list_length(call, "context_ragged_value_types");
    int64_t list_ragged = list_length(call, "feature_list_ragged_value_types");
    put_sparse(&w, &context_v2_group, rank);
    MR_TRY(put_dense(&w, &context_v2_group, serialized, error));
    put(&w, context_ragged, MR_SHAPE(-1));
    put(&w, context_ragged, splits_shape(serialized));
    put_sparse(&w, &list_v2_group, rank < 0 ? -1 : rank + 1);
    if (steps.rank >= 0) steps.dims[steps.rank++] = -1;
    MR_TRY(put_dense(&w, &list_v2_group, steps, error));
    put(&w, list_length(call, "feature_list_dense_types"), serialized);
    put(&w, list_ragged, MR_SHAPE(-1));
    put(&w, list_ragged, splits_shape(serialized));
    put(&w, list_ragged, MR_SHAPE(-1));
    return MR_OK;
}

static mr_status parse_single_sequence_example_shape(mr_shape_call *call, mr_error *error)
{
    writer w = {.call = call};
    MR_TRY(mr_shape_expect_rank(call, 0, 0, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    MR_TRY(check_lengths(call, &context_group, error));
    MR_TRY(check_lengths(call, &list_group, error));
    put_sparse(&w, &context_group, 1);
    MR_TRY(put_dense(&w, &context_group, MR_SCALAR, error));
    put_sparse(&w, &list_group, 2);
    return put_dense(&w, &list_group, MR_SHAPE(-1), error);
}

static const mr_op parsing_ops[] = {
    {.name = "DecodeCSV",
     .signature = "records: string, record_defaults: OUT_TYPE -> output: OUT_TYPE",
     .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; field_delim: string = ','; use_quote_delim: "
              "bool = true; na_value: string = ''; select_cols: list(int) = []",
     .shape = decode_csv_shape,
     .doc = "Splits each record of comma-separated values into one tensor per column."},
    {.name = "DecodeRaw",
     .signature = "bytes: string -> output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, complex128, bool, "
              "bfloat16}; little_endian: bool = true",
     .shape = decode_raw_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Reinterprets the bytes of each string as numbers."},
    {.name = "DecodePaddedRaw",
     .signature = "input_bytes: string, fixed_length: int32 -> output: out_type",
     .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}; little_endian: "
              "bool = true",
     .shape = decode_padded_raw_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Reinterprets the bytes of each string, cut or padded with zeros to fixed_length, as numbers."},
    {.name = "DecodeCompressed",
     .signature = "bytes: string -> output: string",
     .attrs = "compression_type: string = ''",
     .shape = mr_shape_unchanged,
     .doc = "Decompresses each string."},
    {.name = "DecodeJSONExample",
     .signature = "json_examples: string -> binary_examples: string",
     .shape = mr_shape_unchanged,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Converts Examples in JSON to serialized Examples."},
    {.name = "ParseTensor",
     .signature = "serialized: string -> output: out_type",
     .attrs = "out_type: type",
     .shape = mr_shape_unknown,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Parses a serialized TensorProto."},
    {.name = "SerializeTensor",
     .signature = "tensor: T -> serialized: string",
     .attrs = "T: type",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Serializes a tensor as a TensorProto."},
    {.name = "ParseExample",
     .signature = "serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, "
                  "dense_defaults: Tdense -> sparse_indices: Nsparse * int64, sparse_values: sparse_types, "
                  "sparse_shapes: Nsparse * int64, dense_values: Tdense",
     .attrs = "Nsparse: int >= 0; Ndense: int >= 0; sparse_types: list({float, int64, string}) >= 0; Tdense: "
              "list({float, int64, string}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_example_shape,
     .doc = "Parses a vector of serialized Examples into sparse and dense tensors."},
    {.name = "ParseExampleV2",
     .signature = "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
                  "dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
                  "sparse_shapes: num_sparse * int64, dense_values: Tdense, ragged_values: ragged_value_types, "
                  "ragged_row_splits: ragged_split_types",
     .attrs = "Tdense: list({float, int64, string}) >= 0; num_sparse: int >= 0; sparse_types: list({float, int64, "
              "string}) >= 0; ragged_value_types: list({float, int64, string}) >= 0; ragged_split_types: list({int32, "
              "int64}) >= 0; dense_shapes: list(shape) >= 0",
     .shape = parse_example_v2_shape,
     .doc = "Parses serialized Examples into sparse, dense and ragged tensors."},
    {.name = "ParseSingleExample",
     .signature = "serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse * int64, sparse_values: "
                  "sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense",
     .attrs = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; sparse_types: "
              "list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; dense_shapes: list(shape) "
              ">= 0",
     .shape = parse_single_example_shape,
     .doc = "Parses one serialized Example into sparse and dense tensors."},
    {.name = "ParseSequenceExample",
     .signature = "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense -> "
                  "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
                  "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "
                  "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: "
                  "feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
                  "feature_list_dense_values: feature_list_dense_types, feature_list_dense_lengths: "
                  "Nfeature_list_dense * int64",
     .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: list(string) >= 0; "
              "context_dense_keys: list(string) >= 0; feature_list_sparse_keys: list(string) >= 0; "
              "feature_list_dense_keys: list(string) >= 0; Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = "
              "0; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; context_sparse_types: "
              "list({float, int64, string}) >= 0 = []; Tcontext_dense: list({float, int64, string}) >= 0 = []; "
              "feature_list_dense_types: list({float, int64, string}) >= 0 = []; context_dense_shapes: list(shape) >= "
              "0 = []; feature_list_sparse_types: list({float, int64, string}) >= 0 = []; feature_list_dense_shapes: "
              "list(shape) >= 0 = []",
     .shape = parse_sequence_example_shape,
     .doc = "Parses a vector of serialized SequenceExamples into sparse and dense tensors."},
    {.name = "ParseSequenceExampleV2",
     .signature = "serialized: string, debug_name: string, context_sparse_keys: string, context_dense_keys: string, "
                  "context_ragged_keys: string, feature_list_sparse_keys: string, feature_list_dense_keys: string, "
                  "feature_list_ragged_keys: string, feature_list_dense_missing_assumed_empty: bool, "
                  "context_dense_defaults: Tcontext_dense -> context_sparse_indices: Ncontext_sparse * int64, "
                  "context_sparse_values: context_sparse_types, context_sparse_shapes: Ncontext_sparse * int64, "
                  "context_dense_values: Tcontext_dense, context_ragged_values: context_ragged_value_types, "
                  "context_ragged_row_splits: context_ragged_split_types, feature_list_sparse_indices: "
                  "Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, "
                  "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: "
                  "feature_list_dense_types, feature_list_dense_lengths: Nfeature_list_dense * int64, "
                  "feature_list_ragged_values: feature_list_ragged_value_types, feature_list_ragged_outer_splits: "
                  "feature_list_ragged_split_types, feature_list_ragged_inner_splits: feature_list_ragged_split_types",
     .attrs = "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: list({float, int64, string}) >= 0 = []; "
              "context_sparse_types: list({float, int64, string}) >= 0 = []; context_ragged_value_types: list({float, "
              "int64, string}) >= 0 = []; context_ragged_split_types: list({int32, int64}) >= 0 = []; "
              "context_dense_shapes: list(shape) >= 0 = []; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: "
              "int >= 0 = 0; feature_list_dense_types: list({float, int64, string}) >= 0 = []; "
              "feature_list_sparse_types: list({float, int64, string}) >= 0 = []; feature_list_ragged_value_types: "
              "list({float, int64, string}) >= 0 = []; feature_list_ragged_split_types: list({int32, int64}) >= 0 = "
              "[]; feature_list_dense_shapes: list(shape) >= 0 = []",
     .shape = parse_sequence_example_v2_shape,
     .doc = "Parses serialized SequenceExamples into sparse, dense and ragged tensors."},
    {.name = "ParseSingleSequenceExample",
     .signature = "serialized: string, feature_list_dense_missing_assumed_empty: string, context_sparse_keys: "
                  "Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, feature_list_sparse_keys: "
                  "Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string, "
                  "context_dense_defaults: Tcontext_dense, debug_name: string -> context_sparse_indices: "
                  "Ncontext_sparse * int64, context_sparse_values: context_sparse_types, context_sparse_shapes: "
                  "Ncontext_sparse * int64, context_dense_values: Tcontext_dense, feature_list_sparse_indices: "
                  "Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, "
                  "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: "
                  "feature_list_dense_types",
     .attrs = "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; "
              "Nfeature_list_dense: int >= 0 = 0; context_sparse_types: list({float, int64, string}) >= 0 = []; "
              "Tcontext_dense: list({float, int64, string}) >= 0 = []; feature_list_dense_types: list({float, int64, "
              "string}) >= 0 = []; context_dense_shapes: list(shape) >= 0 = []; feature_list_sparse_types: "
              "list({float, int64, string}) >= 0 = []; feature_list_dense_shapes: list(shape) >= 0 = []",
     .shape = parse_single_sequence_example_shape,
     .doc = "Parses one serialized SequenceExample into sparse and dense tensors."},
};

const mr_op_table mr_ops_parsing = {parsing_ops, sizeof parsing_ops / sizeof parsing_ops[0]};
