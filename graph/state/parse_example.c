/* ParseExample and its relatives: the parsers of records/example, with the features that a node describes.
 *
 * A node describes groups of features: sparse, dense and ragged ones, of an Example, or of the context and the feature
 * lists of a SequenceExample. Names are inputs or attrs; dtypes and shapes are attrs. The parser's tensors are in the
 * order of features; a node's outputs are grouped by their role (indices of all sparse features, then their values, …).
 */
#include "graph/state/parse_example.h"

#include <inttypes.h>
#include <millrace/example.h>
#include <string.h>

/* The names of attrs and the numbers of inputs of one group of features. Where names are inputs, there is one vector
 * for each kind, or one scalar for each name. */
typedef struct group {
    const char *sparse_types, *dense_types, *dense_shapes, *ragged_types, *ragged_splits; /* null: none */
    const char *sparse_keys, *dense_keys;        /* attrs with the names; null: they are inputs */
    int sparse_input, dense_input, ragged_input; /* the first input with names */
    bool has_scalars;                            /* one input for each name */
    int defaults;                                /* the first input with a default value; -1: none */
    bool is_list;                                /* feature lists */
} group;

typedef struct features {
    mr_feature *items;
    int32_t sparse, dense, ragged;
    int32_t count;
} features;

static const mr_attr *list_attr(const mr_kernel_call *call, const char *name)
{
    const mr_attr *attr = name ? mr_attrs_find(call->node->attrs, name) : nullptr;
    return attr && attr->is_list ? attr : nullptr;
}

static int32_t list_length(const mr_kernel_call *call, const char *name)
{
    const mr_attr *attr = list_attr(call, name);
    return attr ? attr->count : 0;
}

/* Name `index` of a kind, which has `count` of them. */
static mr_status name_at(const mr_kernel_call *call, const group *g, const char *keys, int input, int32_t index,
                         int32_t count, mr_arena *arena, const char **name, mr_error *error)
{
    mr_string text;
    if (keys) {
        const mr_attr *attr = list_attr(call, keys);
        if (!attr || attr->count != count || attr->kind != MR_ATTR_STRING)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "len(%s) is not %d", keys, count);
        text = attr->values[index].string;
    } else if (g->has_scalars) {
        if (mr_tensor_count(&call->inputs[input + index]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d must be one name", input + index);
        text = mr_tensor_strings(&call->inputs[input + index])[0];
    } else {
        if (mr_tensor_count(&call->inputs[input]) != count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d has %" PRId64 " names, expected %d",
                                  input, mr_tensor_count(&call->inputs[input]), count);
        text = mr_tensor_strings(&call->inputs[input])[index];
    }
    if (text.size_bytes > 0 && memchr(text.data, 0, text.size_bytes))
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "the name of a feature has a zero byte");
    *name = mr_arena_strndup(arena, text.data, text.size_bytes);
    return *name ? MR_OK : mr_fail_memory(error, text.size_bytes);
}

static mr_dtype dtype_at(const mr_kernel_call *call, const char *attr, int32_t index)
{
    return (mr_dtype)list_attr(call, attr)->values[index].type;
}

/* A dense feature: of fixed shape, or padded if the size of its first dimension is unknown. */
static mr_status read_dense(const mr_kernel_call *call, const group *g, int32_t index, mr_feature *feature,
                            mr_error *error)
{
    const mr_attr *shapes = list_attr(call, g->dense_shapes);
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (!shapes || shapes->count != list_length(call, g->dense_types))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "len(dense_shapes) is not the number of keys");
    mr_shape shape = shapes->values[index].shape, own = shape;
    feature->dtype = dtype_at(call, g->dense_types, index);
    bool is_padded = shape.rank > 0 && shape.dims[0] < 0;
    for (int i = 1; is_padded && i < shape.rank; i++) own.dims[i - 1] = shape.dims[i];
    if (is_padded) own.dims[--own.rank] = 0;
    if (own.rank < 0 || mr_shape_count(own) < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "dense_shapes[%d] has unknown rank or unknown "
                              "inner dimensions: %s",
                              index, mr_shape_text(shape, a, sizeof a));
    feature->form = is_padded || g->is_list ? MR_FIXED_LEN_SEQUENCE : MR_FIXED_LEN;
    feature->shape = g->is_list ? shape : own;
    if (g->defaults < 0) return MR_OK;
    const mr_tensor *value = &call->inputs[g->defaults + index];
    if (value->dtype != feature->dtype)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "dense_defaults[%d].dtype() == %s != dense_types_[%d] == %s", index,
                              mr_dtype_name(value->dtype), index, mr_dtype_name(feature->dtype));
    int64_t count = mr_tensor_count(value);
    if (count == 0) return MR_OK;
    if (is_padded && count != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "dense_shape[%d] is a variable length shape: %s, therefore def_value[%d] must contain a "
                              "single element (the padding element). But its shape is: %s",
                              index, mr_shape_text(shape, a, sizeof a), index,
                              mr_shape_text(value->shape, b, sizeof b));
    if (!is_padded && !mr_shape_equal(value->shape, own))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "def_value[%d].shape() == %s is not compatible with dense_shapes_[%d] == %s", index,
                              mr_shape_text(value->shape, a, sizeof a), index, mr_shape_text(own, b, sizeof b));
    feature->default_value = value;
    return MR_OK;
}

/* Sparse features, then dense ones, then ragged ones. */
static mr_status read_group(const mr_kernel_call *call, const group *g, mr_arena *arena, features *f, mr_error *error)
{
    f->sparse = list_length(call, g->sparse_types);
    f->dense = list_length(call, g->dense_types);
    f->ragged = list_length(call, g->ragged_types);
    f->count = f->sparse + f->dense + f->ragged;
    f->items = MR_ARENA_NEW(arena, mr_feature, (size_t)f->count + 1);
    if (!f->items) return mr_fail_memory(error, (size_t)f->count * sizeof *f->items);
    if (g->ragged_types && list_length(call, g->ragged_splits) != f->ragged)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "len(%s) != len(%s)", g->ragged_types,
                              g->ragged_splits);
    mr_feature *at = f->items;
    for (int32_t i = 0; i < f->sparse; i++, at++) {
        at->form = MR_VAR_LEN;
        at->dtype = dtype_at(call, g->sparse_types, i);
        MR_TRY(name_at(call, g, g->sparse_keys, g->sparse_input, i, f->sparse, arena, &at->name, error));
    }
    for (int32_t i = 0; i < f->dense; i++, at++) {
        MR_TRY(read_dense(call, g, i, at, error));
        MR_TRY(name_at(call, g, g->dense_keys, g->dense_input, i, f->dense, arena, &at->name, error));
    }
    for (int32_t i = 0; i < f->ragged; i++, at++) {
        at->form = MR_RAGGED;
        at->dtype = dtype_at(call, g->ragged_types, i);
        at->splits_dtype = dtype_at(call, g->ragged_splits, i);
        MR_TRY(name_at(call, g, nullptr, g->ragged_input, i, f->ragged, arena, &at->name, error));
    }
    return MR_OK;
}

mr_status mr_parse_features(const mr_kernel_call *call, int first_default, mr_arena *arena, mr_feature **items,
                            int32_t *count, mr_error *error)
{
    group g = {.sparse_types = "sparse_types",
               .dense_types = "Tdense",
               .dense_shapes = "dense_shapes",
               .sparse_keys = "sparse_keys",
               .dense_keys = "dense_keys",
               .defaults = first_default};
    features f;
    MR_TRY(read_group(call, &g, arena, &f, error));
    *items = f.items;
    *count = f.count;
    return MR_OK;
}

/* ---- Results ---- */

typedef struct results {
    mr_kernel_call *call;
    mr_tensor *tensors; /* of the parser, in the order of the features */
    int32_t next;       /* the next output */
} results;

static void put(results *r, mr_tensor *tensor)
{
    if (r->next < r->call->node->output_count)
        r->call->outputs[r->next++] = *tensor;
    else
        mr_tensor_deinit(tensor);
}

/* Moves the tensors of one group to the outputs.
 * sizes          tensors of a sparse, a dense and a ragged feature
 * drops_lengths  the lengths of dense feature lists are not outputs */
static void put_group(results *r, const features *f, const int sizes[3], bool drops_lengths)
{
    int32_t counts[3] = {f->sparse, f->dense, f->ragged};
    for (int kind = 0; kind < 3; kind++) {
        for (int role = 0; role < sizes[kind]; role++)
            for (int32_t i = 0; i < counts[kind]; i++) {
                mr_tensor *tensor = &r->tensors[i * sizes[kind] + role];
                if (kind == 1 && role == 1 && drops_lengths)
                    mr_tensor_deinit(tensor);
                else
                    put(r, tensor);
            }
        r->tensors += counts[kind] * sizes[kind];
    }
}

static mr_status check_serialized(const mr_kernel_call *call, int names, bool *single, mr_error *error)
{
    const mr_tensor *serialized = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    if (serialized->shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected serialized to be a scalar or vector, got shape: %s.",
                              mr_shape_text(serialized->shape, text, sizeof text));
    *single = serialized->shape.rank == 0;
    int64_t count = mr_tensor_count(serialized), name_count = names < 0 ? 0 : mr_tensor_count(&call->inputs[names]);
    if (name_count == 0 || name_count == count) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Expected len(names) == len(serialized), but got: %" PRId64 " vs. %" PRId64, name_count,
                          count);
}

/* ---- Examples ---- */

static mr_status parse(mr_kernel_call *call, const group *g, int names, mr_error *error)
{
    mr_arena arena = {0};
    features f;
    bool single = false;
    mr_example_parser *parser = nullptr;
    MR_TRY(check_serialized(call, names, &single, error));
    mr_status status = read_group(call, g, &arena, &f, error);
    mr_tensor *tensors = status == MR_OK ? MR_ARENA_NEW(&arena, mr_tensor, 3 * (size_t)f.count + 1) : nullptr;
    if (status == MR_OK && !tensors) status = mr_fail_memory(error, sizeof *tensors);
    if (status == MR_OK) status = mr_example_parser_new(f.items, f.count, &parser, error);
    if (status == MR_OK) {
        mr_example_fault fault;
        mr_error reason = {0};
        status = mr_example_parse_checked(parser, mr_tensor_strings(&call->inputs[0]),
                                          mr_tensor_count(&call->inputs[0]), single, tensors, &fault, &reason);
        if (status != MR_OK)
            status =
                mr_parse_fail(call, &fault, names < 0 ? nullptr : &call->inputs[names], single, status, &reason, error);
    }
    if (status == MR_OK) {
        results r = {call, tensors, 0};
        put_group(&r, &f, (int[]){3, 1, 2}, false);
    }
    mr_example_parser_free(parser);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status parse_example(mr_kernel_call *call, mr_error *error)
{
    int sparse = (int)mr_attr_int_or(call->node->attrs, "Nsparse", 0);
    int dense = (int)mr_attr_int_or(call->node->attrs, "Ndense", 0);
    if (sparse != list_length(call, "sparse_types") || dense != list_length(call, "Tdense"))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "len(sparse_keys) != len(sparse_types) or "
                              "len(dense_keys) != len(dense_types)");
    if (call->inputs[0].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "serialized must be a vector");
    group g = {.sparse_types = "sparse_types",
               .dense_types = "Tdense",
               .dense_shapes = "dense_shapes",
               .sparse_input = 2,
               .dense_input = 2 + sparse,
               .has_scalars = true,
               .defaults = 2 + sparse + dense};
    return parse(call, &g, 1, error);
}

static mr_status parse_example_v2(mr_kernel_call *call, mr_error *error)
{
    group g = {.sparse_types = "sparse_types",
               .dense_types = "Tdense",
               .dense_shapes = "dense_shapes",
               .ragged_types = "ragged_value_types",
               .ragged_splits = "ragged_split_types",
               .sparse_input = 2,
               .dense_input = 3,
               .ragged_input = 4,
               .defaults = 5};
    return parse(call, &g, 1, error);
}

static mr_status parse_single_example(mr_kernel_call *call, mr_error *error)
{
    group g = {.sparse_types = "sparse_types",
               .dense_types = "Tdense",
               .dense_shapes = "dense_shapes",
               .sparse_keys = "sparse_keys",
               .dense_keys = "dense_keys",
               .defaults = 1};
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "serialized must be a scalar");
    return parse(call, &g, -1, error);
}

/* ---- SequenceExamples ---- */

/* The feature lists that may be missing: their names in an attr or in an input, or a flag for each. */
static mr_status read_missing(const mr_kernel_call *call, int input, features *lists, mr_error *error)
{
    const mr_attr *attr = list_attr(call, "feature_list_dense_missing_assumed_empty");
    const mr_tensor *value = input >= 0 ? &call->inputs[input] : nullptr;
    if (value && value->dtype == MR_BOOL && mr_tensor_count(value) != lists->dense)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected len(feature_list_dense_keys) == len(feature_list_dense_missing_assumed_empty)");
    for (int32_t i = 0; i < lists->dense; i++) {
        mr_feature *list = &lists->items[lists->sparse + i];
        if (value && value->dtype == MR_BOOL) list->allow_missing = mr_tensor_bools(value)[i];
        int64_t count = value ? mr_tensor_count(value) : attr ? attr->count : 0;
        for (int64_t j = 0; j < count && !(value && value->dtype == MR_BOOL); j++)
            list->allow_missing |= mr_string_equal(value ? mr_tensor_strings(value)[j] : attr->values[j].string,
                                                   mr_string_from(list->name));
    }
    return MR_OK;
}

static mr_status parse_sequence(mr_kernel_call *call, const group *context, const group *lists, int names, int missing,
                                bool drops_lengths, mr_error *error)
{
    mr_arena arena = {0};
    features c, l;
    bool single = false;
    mr_sequence_parser *parser = nullptr;
    MR_TRY(check_serialized(call, -1, &single, error));
    mr_status status = read_group(call, context, &arena, &c, error);
    if (status == MR_OK) status = read_group(call, lists, &arena, &l, error);
    if (status == MR_OK) status = read_missing(call, missing, &l, error);
    mr_tensor *tensors =
        status == MR_OK ? MR_ARENA_NEW(&arena, mr_tensor, 3 * ((size_t)c.count + (size_t)l.count) + 1) : nullptr;
    if (status == MR_OK && !tensors) status = mr_fail_memory(error, sizeof *tensors);
    if (status == MR_OK) status = mr_sequence_parser_new(c.items, c.count, l.items, l.count, &parser, error);
    if (status == MR_OK) {
        mr_example_fault fault;
        mr_error reason = {0};
        status = mr_sequence_parse_checked(parser, mr_tensor_strings(&call->inputs[0]),
                                           mr_tensor_count(&call->inputs[0]), single, tensors, &fault, &reason);
        if (status != MR_OK) status = mr_parse_fail(call, &fault, &call->inputs[names], false, status, &reason, error);
    }
    if (status == MR_OK) {
        results r = {call, tensors, 0};
        put_group(&r, &c, (int[]){3, 1, 2}, false);
        put_group(&r, &l, (int[]){3, 2, 3}, drops_lengths);
    }
    mr_sequence_parser_free(parser);
    mr_arena_deinit(&arena);
    return status;
}

#define CONTEXT                                                                                                        \
    .sparse_types = "context_sparse_types", .dense_types = "Tcontext_dense", .dense_shapes = "context_dense_shapes"
#define LISTS                                                                                                          \
    .sparse_types = "feature_list_sparse_types", .dense_types = "feature_list_dense_types",                            \
    .dense_shapes = "feature_list_dense_shapes", .defaults = -1, .is_list = true

static mr_status parse_sequence_example(mr_kernel_call *call, mr_error *error)
{
    group context = {CONTEXT, .sparse_keys = "context_sparse_keys", .dense_keys = "context_dense_keys", .defaults = 2};
    group lists = {LISTS, .sparse_keys = "feature_list_sparse_keys", .dense_keys = "feature_list_dense_keys"};
    if (call->inputs[0].shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "serialized must be a vector");
    return parse_sequence(call, &context, &lists, 1, -1, false, error);
}

static mr_status parse_sequence_example_v2(mr_kernel_call *call, mr_error *error)
{
    group context = {CONTEXT,
                     .ragged_types = "context_ragged_value_types",
                     .ragged_splits = "context_ragged_split_types",
                     .sparse_input = 2,
                     .dense_input = 3,
                     .ragged_input = 4,
                     .defaults = 9};
    group lists = {LISTS,
                   .ragged_types = "feature_list_ragged_value_types",
                   .ragged_splits = "feature_list_ragged_split_types",
                   .sparse_input = 5,
                   .dense_input = 6,
                   .ragged_input = 7};
    return parse_sequence(call, &context, &lists, 1, 8, false, error);
}

static mr_status parse_single_sequence_example(mr_kernel_call *call, mr_error *error)
{
    const mr_attrs *attrs = call->node->attrs;
    int sparse = (int)mr_attr_int_or(attrs, "Ncontext_sparse", 0),
        dense = (int)mr_attr_int_or(attrs, "Ncontext_dense", 0);
    int list_sparse = (int)mr_attr_int_or(attrs, "Nfeature_list_sparse", 0);
    int list_dense = (int)mr_attr_int_or(attrs, "Nfeature_list_dense", 0);
    if (sparse != list_length(call, "context_sparse_types") || dense != list_length(call, "Tcontext_dense") ||
        list_sparse != list_length(call, "feature_list_sparse_types") ||
        list_dense != list_length(call, "feature_list_dense_types"))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are not as many keys as types");
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "serialized must be a scalar");
    group context = {CONTEXT, .sparse_input = 2, .dense_input = 2 + sparse, .has_scalars = true,
                     .defaults = 2 + sparse + dense + list_sparse + list_dense};
    group lists = {LISTS, .sparse_input = 2 + sparse + dense, .dense_input = 2 + sparse + dense + list_sparse,
                   .has_scalars = true};
    return parse_sequence(call, &context, &lists, call->node->input_count - 1, 1, true, error);
}

static const mr_kernel kernels[] = {
    {.op = "ParseExample", .run = parse_example},
    {.op = "ParseExampleV2", .run = parse_example_v2},
    {.op = "ParseSingleExample", .run = parse_single_example},
    {.op = "ParseSequenceExample", .run = parse_sequence_example},
    {.op = "ParseSequenceExampleV2", .run = parse_sequence_example_v2},
    {.op = "ParseSingleSequenceExample", .run = parse_single_sequence_example},
};
const mr_kernel_table mr_state_kernels_parse_example = {kernels, sizeof kernels / sizeof kernels[0]};
