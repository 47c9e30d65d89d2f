/* The operators of lookup tables. The old forms take a reference to a table in place of a handle. */
#include "graph/state/table.h"

#include "kernels/text.h"
#include <inttypes.h>
#include <string.h>

/* ---- Tables that a node names ---- */

typedef struct table_settings {
    mr_table_kind kind;
    mr_dtype key_dtype, value_dtype;
    mr_shape key_shape, value_shape;
} table_settings;

static mr_table_kind kind_of(const char *op)
{
    if (strstr(op, "Dense")) return MR_TABLE_DENSE;
    if (strstr(op, "OfTensors")) return MR_TABLE_TENSORS;
    return strstr(op, "Mutable") ? MR_TABLE_MUTABLE : MR_TABLE_HASH;
}

static mr_status check_dtypes(const table_settings *s, mr_error *error)
{
    uint32_t keys = 1u << MR_INT32 | 1u << MR_INT64 | 1u << MR_STRING;
    uint32_t values = keys | 1u << MR_FLOAT | 1u << MR_DOUBLE | 1u << MR_BOOL;
    if ((keys >> s->key_dtype & 1) && (values >> s->value_dtype & 1)) return MR_OK;
    return mr_fail(error, MR_UNIMPLEMENTED, "there are no tables from %s to %s", mr_dtype_name(s->key_dtype),
                   mr_dtype_name(s->value_dtype));
}

static mr_status check_dense(const mr_attrs *attrs, mr_error *error)
{
    int64_t buckets = mr_attr_int_or(attrs, "initial_num_buckets", 131'072);
    float load = mr_attr_float_or(attrs, "max_load_factor", 0.8f);
    if (!(load > 0 && load < 1))
        return mr_fail(error, MR_INVALID_ARGUMENT, "max_load_factor must be between 0 and 1, got: %g", (double)load);
    if (buckets < 4 || (buckets & (buckets - 1)) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "Number of buckets must be at least 4 and a power of 2, got: %" PRId64, buckets);
    return MR_OK;
}

static mr_status read_settings(const char *op, const mr_attrs *attrs, table_settings *s, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    *s = (table_settings){.kind = kind_of(op), .key_shape = MR_SCALAR, .value_shape = MR_SCALAR};
    MR_TRY(mr_attr_get_type(attrs, "key_dtype", &s->key_dtype, error));
    MR_TRY(mr_attr_get_type(attrs, "value_dtype", &s->value_dtype, error));
    MR_TRY(check_dtypes(s, error));
    if (s->kind == MR_TABLE_DENSE || s->kind == MR_TABLE_TENSORS)
        MR_TRY(mr_attr_get_shape(attrs, "value_shape", &s->value_shape, error));
    if (s->kind == MR_TABLE_TENSORS && s->value_shape.rank != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Default value must be a vector, got shape %s",
                       mr_shape_text(s->value_shape, text, sizeof text));
    if (s->value_shape.rank < 0 || s->value_shape.rank > 1 || mr_shape_count(s->value_shape) < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Empty value must be a scalar or a vector, got shape %s",
                       mr_shape_text(s->value_shape, text, sizeof text));
    if (mr_shape_count(s->value_shape) > INT32_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "a value has too many elements");
    return s->kind == MR_TABLE_DENSE ? check_dense(attrs, error) : MR_OK;
}

/* Copies a key that a table keeps. */
static mr_status copy_key(const mr_tensor *key, mr_dtype dtype, mr_tensor *copy, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (key->dtype != dtype || key->shape.rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Empty key must be a scalar or a vector, got shape %s",
                       mr_shape_text(key->shape, text, sizeof text));
    if (dtype == MR_STRING) return mr_tensor_init_strings(copy, key->shape, mr_tensor_strings(key), error);
    return mr_tensor_init_copy(copy, dtype, key->shape, key->data, error);
}

/* deleted may be null. */
static mr_status set_dense_keys(mr_table_state *table, const mr_tensor *empty, const mr_tensor *deleted,
                                mr_error *error)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    MR_TRY(copy_key(empty, table->key_dtype, &table->empty_key, error));
    table->key_shape = empty->shape;
    table->key_size = mr_shape_count(empty->shape);
    if (!deleted) return MR_OK;
    if (!mr_shape_equal(empty->shape, deleted->shape))
        return mr_fail(error, MR_INVALID_ARGUMENT, "Empty and deleted keys must have same shape, got shapes: %s and %s",
                       mr_shape_text(empty->shape, a, sizeof a), mr_shape_text(deleted->shape, b, sizeof b));
    MR_TRY(copy_key(deleted, table->key_dtype, &table->deleted_key, error));
    bool equal = true;
    for (int64_t i = 0; i < table->key_size && equal; i++)
        equal = table->key_dtype == MR_STRING
                    ? mr_string_equal(mr_tensor_strings(empty)[i], mr_tensor_strings(deleted)[i])
                    : memcmp((const char *)empty->data + (size_t)i * mr_dtype_size(table->key_dtype),
                             (const char *)deleted->data + (size_t)i * mr_dtype_size(table->key_dtype),
                             mr_dtype_size(table->key_dtype)) == 0;
    return equal ? mr_fail(error, MR_INVALID_ARGUMENT, "Empty and deleted keys cannot be equal") : MR_OK;
}

static mr_status fill_table(mr_table_state *table, const table_settings *s, const mr_tensor *empty,
                            const mr_tensor *deleted, mr_error *error)
{
    table->kind = s->kind;
    table->key_dtype = s->key_dtype;
    table->value_dtype = s->value_dtype;
    table->key_shape = s->key_shape;
    table->value_shape = s->value_shape;
    table->key_size = 1;
    table->value_size = mr_shape_count(s->value_shape);
    return s->kind == MR_TABLE_DENSE ? set_dense_keys(table, empty, deleted, error) : MR_OK;
}

/* The value of a node's input, which must be a constant: a table is made before anything runs. */
static mr_status constant_input(const mr_node *node, int32_t input, const mr_tensor **value, mr_error *error)
{
    const mr_node *from = node->inputs[input].node;
    for (int hops = 0; hops < 8 && strcmp(from->op, "Identity") == 0; hops++) from = from->inputs[0].node;
    if (strcmp(from->op, "Const") != 0)
        return mr_fail(error, MR_UNIMPLEMENTED, "input %d, a key of the table, must be a constant", (int)input);
    return mr_attr_get_tensor(&from->attrs, "value", value, error);
}

static mr_status check_same(const mr_table_state *table, const table_settings *s, mr_error *error)
{
    if (table->key_dtype == s->key_dtype && table->value_dtype == s->value_dtype && table->kind == s->kind &&
        mr_shape_equal(table->value_shape, s->value_shape))
        return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "Conflicting key/value dtypes %s->%s with %s-%s for table %s",
                   mr_dtype_name(s->key_dtype), mr_dtype_name(s->value_dtype), mr_dtype_name(table->key_dtype),
                   mr_dtype_name(table->value_dtype), table->resource.name);
}

static mr_status make_table(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,
                            mr_error *error)
{
    table_settings s;
    const mr_tensor *keys[2] = {nullptr, nullptr};
    bool made = false;
    MR_TRY(read_settings(node->op, &node->attrs, &s, error));
    for (int32_t i = 0; i < node->input_count && i < 2; i++) MR_TRY(constant_input(node, i, &keys[i], error));
    MR_TRY(mr_resource_of_node(resources, &mr_table_class, node, resource, &made, error));
    mr_table_state *table = (mr_table_state *)*resource;
    if (made) pthread_mutex_init(&table->mutex, nullptr);
    /* The keys of a dense table are set last, so a table whose keys were refused is not complete. */
    if (!made && table->value_dtype != MR_DTYPE_INVALID) return check_same(table, &s, error);
    mr_status status = fill_table(table, &s, keys[0], keys[1], error);
    if (status == MR_OK) return MR_OK;
    table->value_dtype = MR_DTYPE_INVALID;
    mr_tensor_deinit(&table->empty_key);
    mr_tensor_deinit(&table->deleted_key);
    return status;
}

static const mr_state_row rows[] = {
    {.op = "HashTable", .make = make_table},
    {.op = "HashTableV2", .make = make_table},
    {.op = "MutableHashTable", .make = make_table},
    {.op = "MutableHashTableV2", .make = make_table},
    {.op = "MutableHashTableOfTensors", .make = make_table},
    {.op = "MutableHashTableOfTensorsV2", .make = make_table},
    {.op = "MutableDenseHashTable", .make = make_table},
    {.op = "MutableDenseHashTableV2", .make = make_table},
};
const mr_state_table mr_state_table_ops = {rows, sizeof rows / sizeof rows[0]};

/* ---- Tables that live as long as their handles ---- */

static mr_status anonymous(mr_kernel_call *call, mr_error *error)
{
    table_settings s;
    mr_resource *resource;
    MR_TRY(read_settings(call->node->op, call->node->attrs, &s, error));
    MR_TRY(mr_resource_new(&mr_table_class, &resource, error));
    mr_table_state *table = (mr_table_state *)resource;
    pthread_mutex_init(&table->mutex, nullptr);
    call->outputs[0] = mr_tensor_take_resource(MR_RESOURCE, resource);
    bool is_dense = call->node->input_count == 2;
    mr_status status =
        fill_table(table, &s, is_dense ? &call->inputs[0] : nullptr, is_dense ? &call->inputs[1] : nullptr, error);
    if (status != MR_OK) mr_tensor_deinit(&call->outputs[0]);
    return status;
}

/* ---- Checks ---- */

static mr_status table_at(const mr_kernel_call *call, mr_table_state **table, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &mr_table_class, &resource, error));
    *table = (mr_table_state *)resource;
    return MR_OK;
}

static mr_status check_dtype(const mr_kernel_call *call, const char *what, mr_dtype wanted, mr_dtype given,
                             mr_error *error)
{
    if (wanted == given) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be type %s but got %s", what,
                          mr_dtype_name(wanted), mr_dtype_name(given));
}

/* The shape of the values for keys: the sizes before those of one key, then the sizes of one value. */
static mr_status check_keys(const mr_kernel_call *call, const mr_table_state *table, mr_shape *values, mr_error *error)
{
    const mr_tensor *keys = &call->inputs[1];
    int lead = keys->shape.rank - table->key_shape.rank;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    MR_TRY(check_dtype(call, "Key", table->key_dtype, keys->dtype, error));
    bool fits = lead >= 0;
    for (int i = 0; i < table->key_shape.rank && fits; i++)
        fits = keys->shape.dims[lead + i] == table->key_shape.dims[i];
    if (!fits)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input key shape %s must end with the table's key shape %s",
                              mr_shape_text(keys->shape, a, sizeof a), mr_shape_text(table->key_shape, b, sizeof b));
    *values = keys->shape;
    for (int i = lead; i < keys->shape.rank; i++) values->dims[i] = 0;
    values->rank = lead;
    if (lead + table->value_shape.rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    for (int i = 0; i < table->value_shape.rank; i++) values->dims[values->rank++] = table->value_shape.dims[i];
    return MR_OK;
}

static mr_status check_values(const mr_kernel_call *call, const mr_table_state *table, mr_error *error)
{
    const mr_tensor *values = &call->inputs[2];
    mr_shape wanted;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    MR_TRY(check_keys(call, table, &wanted, error));
    MR_TRY(check_dtype(call, "Value", table->value_dtype, values->dtype, error));
    if (mr_shape_equal(wanted, values->shape)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected shape %s for value, got %s",
                          mr_shape_text(wanted, a, sizeof a), mr_shape_text(values->shape, b, sizeof b));
}

/* ---- Initialization ---- */

static mr_status initializable_at(const mr_kernel_call *call, mr_table_state **table, mr_error *error)
{
    MR_TRY(table_at(call, table, error));
    if ((*table)->kind == MR_TABLE_HASH) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Table %s %s is not initializable",
                          (*table)->resource.container, (*table)->resource.name);
}

static mr_status initialize(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(initializable_at(call, &table, error));
    for (int i = 1; i < 3; i++)
        if (call->inputs[i].shape.rank != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a vector, but received shape%s",
                                  i == 1 ? "Keys" : "Values", mr_shape_text(call->inputs[i].shape, text, sizeof text));
    if (mr_tensor_count(&call->inputs[1]) != mr_tensor_count(&call->inputs[2]))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Keys and values must have the same size %" PRId64 " vs %" PRId64,
                              mr_tensor_count(&call->inputs[1]), mr_tensor_count(&call->inputs[2]));
    MR_TRY(check_values(call, table, error));
    return mr_table_initialize(table, &call->inputs[1], &call->inputs[2], error);
}

static mr_status initialize_from_file(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    const mr_tensor *name = &call->inputs[1];
    const mr_attrs *attrs = call->node->attrs;
    mr_string delimiter = mr_attr_string_or(attrs, "delimiter", "\t");
    char text[MR_SHAPE_TEXT_SIZE];
    MR_TRY(initializable_at(call, &table, error));
    if (delimiter.size_bytes != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "delimiter should be only 1 char");
    if (name->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename should be a single string, but got %s",
                              mr_shape_text(name->shape, text, sizeof text));
    mr_string path = mr_tensor_strings(name)[0];
    if (path.size_bytes == 0 || memchr(path.data, 0, path.size_bytes))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "filename cannot be empty.");
    mr_arena arena = {0};
    mr_table_file file = {.path = mr_arena_strndup(&arena, path.data, path.size_bytes),
                          .key_index = mr_attr_int_or(attrs, "key_index", -2),
                          .value_index = mr_attr_int_or(attrs, "value_index", -1),
                          .vocab_size = mr_attr_int_or(attrs, "vocab_size", -1),
                          .offset = mr_attr_int_or(attrs, "offset", 0),
                          .delimiter = delimiter.data[0]};
    mr_status status = file.path ? mr_table_read_file(table, &file, error) : mr_fail_memory(error, path.size_bytes);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Lookups and changes ---- */

static mr_status lookup(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    const mr_tensor *defaults = &call->inputs[2];
    mr_shape shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE], c[MR_SHAPE_TEXT_SIZE];
    MR_TRY(table_at(call, &table, error));
    MR_TRY(check_keys(call, table, &shape, error));
    MR_TRY(check_dtype(call, "Value", table->value_dtype, defaults->dtype, error));
    bool for_each = mr_shape_equal(defaults->shape, shape) && !mr_shape_equal(shape, table->value_shape);
    if (!for_each && !mr_shape_equal(defaults->shape, table->value_shape))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected shape %s or %s for default value, got %s",
                              mr_shape_text(table->value_shape, a, sizeof a), mr_shape_text(shape, b, sizeof b),
                              mr_shape_text(defaults->shape, c, sizeof c));
    if (!mr_table_is_ready(table))
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "Table not initialized.");
    mr_text_output output;
    MR_TRY(mr_text_begin(call, 0, shape, &output, error));
    mr_status status =
        mr_table_find_values(table, &call->inputs[1], defaults, for_each, output.sink.data, &output.arena, error);
    return mr_text_end(call, &output, status, error);
}

static mr_status change(mr_kernel_call *call, bool clears, mr_error *error)
{
    mr_table_state *table;
    MR_TRY(table_at(call, &table, error));
    MR_TRY(check_values(call, table, error));
    if (table->kind == MR_TABLE_HASH && clears)
        return mr_table_initialize(table, &call->inputs[1], &call->inputs[2], error);
    if (table->kind == MR_TABLE_HASH)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Insert not supported by InitializableLookupTable implementations");
    return mr_table_insert(table, &call->inputs[1], &call->inputs[2], clears, error);
}

static mr_status insert(mr_kernel_call *call, mr_error *error)
{
    return change(call, false, error);
}

static mr_status import(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    MR_TRY(table_at(call, &table, error));
    /* A dense table exports scalars as vectors of one element. */
    mr_tensor inputs[3] = {call->inputs[0], call->inputs[1], call->inputs[2]};
    for (int i = 1; i < 3 && table->kind == MR_TABLE_DENSE; i++) {
        mr_shape one = i == 1 ? table->key_shape : table->value_shape;
        mr_shape *shape = &inputs[i].shape;
        if (one.rank == 0 && shape->rank == 2 && shape->dims[1] == 1) *shape = MR_SHAPE(shape->dims[0]);
    }
    mr_kernel_call plain = *call;
    plain.inputs = inputs;
    return change(&plain, true, error);
}

static mr_status remove_keys(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    mr_shape shape;
    MR_TRY(table_at(call, &table, error));
    if (table->kind == MR_TABLE_HASH)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED,
                              "Remove not supported by InitializableLookupTable implementations");
    MR_TRY(check_keys(call, table, &shape, error));
    return mr_table_remove(table, &call->inputs[1], error);
}

static mr_status size(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    MR_TRY(table_at(call, &table, error));
    return mr_tensor_init_int64(&call->outputs[0], mr_table_count(table), error);
}

static mr_status export(mr_kernel_call *call, mr_error *error)
{
    mr_table_state *table;
    MR_TRY(table_at(call, &table, error));
    MR_TRY(check_dtype(call, "Key", table->key_dtype, call->node->output_dtypes[0], error));
    MR_TRY(check_dtype(call, "Value", table->value_dtype, call->node->output_dtypes[1], error));
    if (!mr_table_is_ready(table))
        return mr_kernel_fail(call->node, error, MR_ABORTED, "HashTable is not initialized.");
    mr_shape keys = MR_SHAPE(0), values = MR_SHAPE(0);
    if (table->kind == MR_TABLE_DENSE) keys = MR_SHAPE(0, table->key_size);
    if (table->kind == MR_TABLE_DENSE || table->value_shape.rank == 1) values = MR_SHAPE(0, table->value_size);
    return mr_table_export(table, call, keys, values, error);
}

static const mr_kernel kernels[] = {
    {.op = "InitializeTable", .run = initialize},
    {.op = "InitializeTableV2", .run = initialize},
    {.op = "InitializeTableFromTextFile", .run = initialize_from_file},
    {.op = "InitializeTableFromTextFileV2", .run = initialize_from_file},
    {.op = "LookupTableFind", .run = lookup},
    {.op = "LookupTableFindV2", .run = lookup},
    {.op = "LookupTableInsert", .run = insert},
    {.op = "LookupTableInsertV2", .run = insert},
    {.op = "LookupTableRemoveV2", .run = remove_keys},
    {.op = "LookupTableSize", .run = size},
    {.op = "LookupTableSizeV2", .run = size},
    {.op = "LookupTableExport", .run = export},
    {.op = "LookupTableExportV2", .run = export},
    {.op = "LookupTableImport", .run = import},
    {.op = "LookupTableImportV2", .run = import},
    {.op = "AnonymousHashTable", .run = anonymous},
    {.op = "AnonymousMutableHashTable", .run = anonymous},
    {.op = "AnonymousMutableHashTableOfTensors", .run = anonymous},
    {.op = "AnonymousMutableDenseHashTable", .run = anonymous},
};
const mr_kernel_table mr_state_kernels_table_ops = {kernels, sizeof kernels / sizeof kernels[0]};
