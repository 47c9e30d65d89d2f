/* Lookup tables. A handle is a scalar resource, or in the old operators a vector of two strings: container and name. */
#include "graph/ir/op.h"

/* The handle at input 0: a scalar, or a reference to a vector of two strings. */
static mr_status handle_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape handle = call->inputs[0], merged;
    if (call->input_dtypes[0] == MR_RESOURCE) return mr_shape_expect_rank(call, 0, 0, error);
    return mr_shape_merge(handle, MR_SHAPE(2), &merged, error);
}

/* The handle carries the shape of a value if keys are scalars. */
static mr_status table_shape(mr_shape_call *call, mr_error *error)
{
    const mr_op_def *def = mr_op_find(call->op->name);
    if (def->outputs[0].is_ref) {
        call->outputs[0] = MR_SHAPE(2);
        return MR_OK;
    }
    call->outputs[0] = MR_SCALAR;
    bool has_value_shape = mr_attrs_find(call->attrs, "value_shape") != nullptr;
    if (call->input_count > 0 && call->inputs[0].rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", call->inputs[0].rank);
    if (has_value_shape && (call->input_count == 0 || call->inputs[0].rank == 0))
        return mr_attr_get_shape(call->attrs, "value_shape", &call->output_handles[0], error);
    return MR_OK;
}

static mr_status initialize_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape merged;
    MR_TRY(handle_shape(call, error));
    MR_TRY(mr_shape_expect_rank(call, 1, 1, error));
    return mr_shape_merge(call->inputs[1], call->inputs[2], &merged, error);
}

static mr_status initialize_from_file_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(handle_shape(call, error));
    return mr_shape_expect_rank(call, 1, 0, error);
}

static mr_status find_shape(mr_shape_call *call, mr_error *error)
{
    mr_shape keys = call->inputs[1], value = call->input_handles[0];
    MR_TRY(handle_shape(call, error));
    if (call->input_dtypes[0] != MR_RESOURCE && call->inputs[2].rank > 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d", call->inputs[2].rank);
    if (keys.rank < 0 || value.rank < 0 || keys.rank + value.rank > MR_RANK_MAX) return MR_OK;
    for (int32_t i = 0; i < value.rank; i++) keys.dims[keys.rank++] = value.dims[i];
    call->outputs[0] = keys;
    return MR_OK;
}

static mr_status remove_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(handle_shape(call, error));
    return mr_shape_at_least(call->inputs[1], 1, error);
}

static mr_status size_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(handle_shape(call, error));
    return mr_shape_scalar(call, error);
}

static mr_status export_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(handle_shape(call, error));
    if (call->input_dtypes[0] != MR_RESOURCE) call->outputs[0] = MR_SHAPE(-1);
    return MR_OK;
}

static mr_status import_shape(mr_shape_call *call, mr_error *error)
{
    MR_TRY(handle_shape(call, error));
    return MR_OK;
}

static const mr_op table_ops[] = {
    {.name = "HashTable",
     .signature = "-> table_handle: Ref(string)",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table that is filled once, when it is initialized."},
    {.name = "MutableHashTable",
     .signature = "-> table_handle: Ref(string)",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table from scalars to scalars."},
    {.name = "MutableHashTableOfTensors",
     .signature = "-> table_handle: Ref(string)",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type; value_shape: shape = []",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table from scalars to vectors of shape value_shape."},
    {.name = "MutableDenseHashTable",
     .signature = "empty_key: key_dtype -> table_handle: Ref(string)",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = "
              "0.8",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table whose keys have the shape of empty_key, which is no key."},
    {.name = "InitializeTable",
     .signature = "table_handle: Ref(string), keys: Tkey, values: Tval ->",
     .attrs = "Tkey: type; Tval: type",
     .shape = initialize_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Fills a table that is not initialized with keys and values."},
    {.name = "InitializeTableFromTextFile",
     .signature = "table_handle: Ref(string), filename: string ->",
     .attrs = "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = '\t'; "
              "offset: int = 0",
     .shape = initialize_from_file_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Fills a table that is not initialized from the lines of a file."},
    {.name = "LookupTableFind",
     .signature = "table_handle: Ref(string), keys: Tin, default_value: Tout -> values: Tout",
     .attrs = "Tin: type; Tout: type",
     .shape = find_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the value of each key, or default_value if the table does not have the key."},
    {.name = "LookupTableInsert",
     .signature = "table_handle: Ref(string), keys: Tin, values: Tout ->",
     .attrs = "Tin: type; Tout: type",
     .shape = handle_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Sets the values of keys."},
    {.name = "LookupTableSize",
     .signature = "table_handle: Ref(string) -> size: int64",
     .shape = size_shape,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of keys."},
    {.name = "LookupTableExport",
     .signature = "table_handle: Ref(string) -> keys: Tkeys, values: Tvalues",
     .attrs = "Tkeys: type; Tvalues: type",
     .shape = export_shape,
     .doc = "Returns all keys and values."},
    {.name = "LookupTableImport",
     .signature = "table_handle: Ref(string), keys: Tin, values: Tout ->",
     .attrs = "Tin: type; Tout: type",
     .shape = import_shape,
     .writes = 1 << 0,
     .doc = "Replaces all keys and values."},
    {.name = "HashTableV2",
     .signature = "-> table_handle: resource",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table that is filled once, when it is initialized."},
    {.name = "MutableHashTableV2",
     .signature = "-> table_handle: resource",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table from scalars to scalars."},
    {.name = "MutableHashTableOfTensorsV2",
     .signature = "-> table_handle: resource",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type; value_shape: shape = []",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table from scalars to vectors of shape value_shape."},
    {.name = "MutableDenseHashTableV2",
     .signature = "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource",
     .attrs = "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; "
              "value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = "
              "0.8",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Names a table whose keys have the shape of empty_key, which is no key."},
    {.name = "InitializeTableV2",
     .signature = "table_handle: resource, keys: Tkey, values: Tval ->",
     .attrs = "Tkey: type; Tval: type",
     .shape = initialize_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Fills a table that is not initialized with keys and values."},
    {.name = "InitializeTableFromTextFileV2",
     .signature = "table_handle: resource, filename: string ->",
     .attrs = "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = '\t'; "
              "offset: int = 0",
     .shape = initialize_from_file_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Fills a table that is not initialized from the lines of a file."},
    {.name = "LookupTableFindV2",
     .signature = "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout",
     .attrs = "Tin: type; Tout: type",
     .shape = find_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the value of each key, or default_value if the table does not have the key."},
    {.name = "LookupTableInsertV2",
     .signature = "table_handle: resource, keys: Tin, values: Tout ->",
     .attrs = "Tin: type; Tout: type",
     .shape = handle_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .writes = 1 << 0,
     .doc = "Sets the values of keys."},
    {.name = "LookupTableRemoveV2",
     .signature = "table_handle: resource, keys: Tin ->",
     .attrs = "Tin: type",
     .shape = remove_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 1 << 0,
     .doc = "Removes keys; keys that the table does not have are ignored."},
    {.name = "LookupTableSizeV2",
     .signature = "table_handle: resource -> size: int64",
     .shape = size_shape,
     .flags = MR_OP_STATEFUL | MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns the number of keys."},
    {.name = "LookupTableExportV2",
     .signature = "table_handle: resource -> keys: Tkeys, values: Tvalues",
     .attrs = "Tkeys: type; Tvalues: type",
     .shape = export_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Returns all keys and values."},
    {.name = "LookupTableImportV2",
     .signature = "table_handle: resource, keys: Tin, values: Tout ->",
     .attrs = "Tin: type; Tout: type",
     .shape = import_shape,
     .flags = MR_OP_STATEFUL,
     .writes = 1 << 0,
     .doc = "Replaces all keys and values."},
    {.name = "AnonymousHashTable",
     .signature = "-> table_handle: resource",
     .attrs = "key_dtype: type; value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Creates a table that lives as long as its handle."},
    {.name = "AnonymousMutableHashTable",
     .signature = "-> table_handle: resource",
     .attrs = "key_dtype: type; value_dtype: type",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Creates a table that lives as long as its handle."},
    {.name = "AnonymousMutableHashTableOfTensors",
     .signature = "-> table_handle: resource",
     .attrs = "key_dtype: type; value_dtype: type; value_shape: shape = []",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Creates a table that lives as long as its handle."},
    {.name = "AnonymousMutableDenseHashTable",
     .signature = "empty_key: key_dtype, deleted_key: key_dtype -> table_handle: resource",
     .attrs = "key_dtype: type; value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; "
              "max_load_factor: float = 0.8",
     .shape = table_shape,
     .flags = MR_OP_STATEFUL,
     .doc = "Creates a table that lives as long as its handle."},
};

const mr_op_table mr_ops_table = {table_ops, sizeof table_ops / sizeof table_ops[0]};
