/* Requested features: checks them, determines their tensors, and builds the parser's tables.
 *
 * A feature needs one entry of the record, or several if it is sparse or ragged, and several features may need the same
 * entry. So the needs of all features are listed first, and needs of equal names share one slot. */
#include "records/example/example_batch.h"

#include "base/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static constexpr int32_t FEATURES_MAX = 1 << 16;

/* ---- Tensors ---- */

int32_t mr_example_ragged_count(const mr_feature *feature)
{
    int32_t count = feature->partition_count;
    while (count > 0 && feature->partitions[count - 1].kind == MR_UNIFORM_ROW_LENGTH) count--;
    return count;
}

int32_t mr_feature_tensor_count(const mr_feature *feature)
{
    if (feature == nullptr) return 0;
    switch (feature->form) {
    case MR_FIXED_LEN:
    case MR_FIXED_LEN_SEQUENCE:
        return 1;
    case MR_VAR_LEN:
    case MR_SPARSE:
        return 3;
    case MR_RAGGED:
        return 2 + mr_example_ragged_count(feature);
    }
    return 1;
}

int32_t mr_sequence_tensor_count(const mr_feature *list)
{
    if (list == nullptr) return 0;
    return list->form == MR_FIXED_LEN_SEQUENCE ? 2 : mr_feature_tensor_count(list) + (list->form == MR_RAGGED);
}

/* [first, second] + shape, without sizes equal to MR_SINGLE. */
static mr_shape with_first(int64_t first, int64_t second, mr_shape shape)
{
    mr_shape result = {0};
    if (first != MR_SINGLE) result.dims[result.rank++] = first;
    if (second != MR_SINGLE) result.dims[result.rank++] = second;
    for (int32_t i = 0; i < shape.rank && result.rank < MR_RANK_MAX; i++) result.dims[result.rank++] = shape.dims[i];
    return result;
}

/* The dtype and shape of tensor `index` of a ragged feature. */
static void ragged_spec(const mr_feature *feature, int64_t batch, int32_t index, mr_dtype *dtype, mr_shape *shape)
{
    *shape = MR_SHAPE(-1);
    if (index > 0) {
        *dtype = feature->splits_dtype == MR_INT32 ? MR_INT32 : MR_INT64;
        if (index == 1) shape->dims[0] = batch == MR_SINGLE ? 0 : batch < 0 ? -1 : batch + 1;
        return;
    }
    *dtype = feature->dtype;
    for (int32_t i = mr_example_ragged_count(feature); i < feature->partition_count && shape->rank < MR_RANK_MAX; i++)
        shape->dims[shape->rank++] = feature->partitions[i].length;
}

static void sparse_spec(const mr_feature *feature, int64_t rank, int32_t index, mr_dtype *dtype, mr_shape *shape)
{
    *dtype = index == 1 ? feature->dtype : MR_INT64;
    *shape = index == 0 ? MR_SHAPE(-1, rank) : index == 1 ? MR_SHAPE(-1) : MR_SHAPE(rank);
}

void mr_feature_tensor_spec(const mr_feature *feature, int64_t batch, int32_t index, mr_dtype *dtype, mr_shape *shape)
{
    if (feature == nullptr) return;
    if (dtype == nullptr) return;
    if (shape == nullptr) return;
    bool is_batch = batch != MR_SINGLE;
    *dtype = feature->dtype;
    switch (feature->form) {
    case MR_FIXED_LEN:
        *shape = with_first(batch, MR_SINGLE, feature->shape);
        break;
    case MR_FIXED_LEN_SEQUENCE:
        *shape = with_first(batch, -1, feature->shape);
        break;
    case MR_VAR_LEN:
        sparse_spec(feature, 1 + is_batch, index, dtype, shape);
        break;
    case MR_SPARSE:
        sparse_spec(feature, feature->shape.rank + is_batch, index, dtype, shape);
        break;
    case MR_RAGGED:
        ragged_spec(feature, batch, index, dtype, shape);
        break;
    }
}

void mr_sequence_tensor_spec(const mr_feature *list, int64_t batch, int32_t index, mr_dtype *dtype, mr_shape *shape)
{
    if (list == nullptr) return;
    if (dtype == nullptr) return;
    if (shape == nullptr) return;
    *dtype = list->dtype;
    if (list->form == MR_VAR_LEN) {
        sparse_spec(list, batch == MR_SINGLE ? 2 : 3, index, dtype, shape);
    } else if (list->form == MR_RAGGED) {
        ragged_spec(list, batch, index, dtype, shape);
    } else if (index == 0) {
        *shape = with_first(batch, -1, list->shape);
    } else {
        *dtype = MR_INT64;
        *shape = with_first(batch, MR_SINGLE, MR_SCALAR);
    }
}

mr_feature_kind mr_example_kind_of(mr_dtype dtype)
{
    return dtype == MR_FLOAT ? MR_FEATURE_FLOAT : dtype == MR_INT64 ? MR_FEATURE_INT64 : MR_FEATURE_BYTES;
}

/* ---- Checks ---- */

static bool has_shape(const mr_feature *feature)
{
    return feature->form == MR_FIXED_LEN || feature->form == MR_FIXED_LEN_SEQUENCE;
}

static mr_status check_form(mr_example_scope scope, const mr_feature *feature, mr_error *error)
{
    static const char *const forms[] = {"fixed", "fixed sequence", "variable", "ragged", "sparse"};
    static const bool allowed[3][5] = {
        [MR_SCOPE_EXAMPLE] = {true, true, true, true, true},
        [MR_SCOPE_CONTEXT] = {true, false, true, true, false},
        [MR_SCOPE_LISTS] = {false, true, true, true, false},
    };
    if ((int)feature->form < 0 || (int)feature->form > (int)MR_SPARSE)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\": invalid form", feature->name);
    if (allowed[scope][feature->form]) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\": %s of a SequenceExample cannot be %s", feature->name,
                   scope == MR_SCOPE_LISTS ? "a feature list" : "a context feature", forms[feature->form]);
}

static mr_status check_shape(mr_example_scope scope, const mr_feature *feature, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    bool is_sequence = feature->form == MR_FIXED_LEN_SEQUENCE;
    int64_t stride = mr_shape_count(feature->shape);
    bool is_good = true;
    if (has_shape(feature)) {
        is_good = stride >= 0 && feature->shape.rank <= MR_RANK_MAX - 1 - is_sequence && (stride > 0 || !is_sequence);
    } else if (feature->form == MR_SPARSE) {
        is_good = feature->shape.rank >= 1 && feature->shape.rank <= MR_RANK_MAX - 1;
        for (int32_t i = 0; is_good && i < feature->shape.rank; i++) is_good = feature->shape.dims[i] >= 0;
    }
    if (!is_good)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" cannot have the shape %s", feature->name,
                       mr_shape_text(feature->shape, text, sizeof(text)));
    const mr_tensor *default_value = feature->default_value;
    if (default_value == nullptr) return MR_OK;
    if (!has_shape(feature) || scope == MR_SCOPE_LISTS)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" has variable length and cannot have a default_value",
                       feature->name);
    int64_t wanted = is_sequence ? 1 : stride;
    if (default_value->dtype != feature->dtype || mr_tensor_count(default_value) != wanted)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "feature \"%s\": default_value must have %" PRId64 " values of %s, not %" PRId64 " of %s",
                       feature->name, wanted, mr_dtype_name(feature->dtype), mr_tensor_count(default_value),
                       mr_dtype_name(default_value->dtype));
    return MR_OK;
}

static mr_status check_partitions(const mr_feature *feature, mr_error *error)
{
    if (feature->splits_dtype != 0 && feature->splits_dtype != MR_INT64 && feature->splits_dtype != MR_INT32)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\": row splits must be int64 or int32, not %s",
                       feature->name, mr_dtype_name(feature->splits_dtype));
    if (feature->partition_count < 0 || feature->partition_count > MR_PARTITIONS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" has %" PRId32 " partitions (allowed: 0 to %d)",
                       feature->name, feature->partition_count, MR_PARTITIONS_MAX);
    for (int32_t i = 0; i < feature->partition_count; i++) {
        const mr_partition *partition = &feature->partitions[i];
        bool is_uniform = partition->kind == MR_UNIFORM_ROW_LENGTH;
        if ((int)partition->kind < 0 || (int)partition->kind > (int)MR_UNIFORM_ROW_LENGTH ||
            (is_uniform && partition->length < 1) || (!is_uniform && partition->key == nullptr))
            return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\": partition %" PRId32 " has no %s", feature->name,
                           i, is_uniform ? "length of at least 1" : "key");
    }
    return MR_OK;
}

static mr_status check_feature(mr_example_scope scope, const mr_feature *feature, mr_error *error)
{
    if (feature->name == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "a feature has no name");
    if (feature->dtype != MR_FLOAT && feature->dtype != MR_INT64 && feature->dtype != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "feature \"%s\" is requested as %s; Examples contain float, int64 and string", feature->name,
                       mr_dtype_name(feature->dtype));
    MR_TRY(check_form(scope, feature, error));
    MR_TRY(check_shape(scope, feature, error));
    if (feature->form == MR_RAGGED) return check_partitions(feature, error);
    for (int32_t i = 0; feature->form == MR_SPARSE && i < feature->shape.rank; i++)
        if (feature->index_keys == nullptr || feature->index_keys[i] == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" has no index key for dimension %" PRId32,
                           feature->name, i);
    return MR_OK;
}

/* ---- Construction ---- */

/* The needs of all features, in order. Until slots are assigned, each output refers to its needs by their index
 * here. */
typedef struct needs {
    int32_t count;
    mr_string *names;
    mr_example_slot *slots;
    int32_t *slot_of;
    char *text; /* position of the next name */
} needs;

static size_t need_count(const mr_feature *feature)
{
    return 1 + (feature->form == MR_SPARSE ? (size_t)feature->shape.rank : 0) +
           (feature->form == MR_RAGGED ? (size_t)feature->partition_count : 0);
}

static const char *need_name(const mr_feature *feature, size_t index)
{
    assert(index < need_count(feature));
    bool has_key = feature->value_key != nullptr && (feature->form == MR_SPARSE || feature->form == MR_RAGGED);
    if (index == 0) return has_key ? feature->value_key : feature->name;
    if (feature->form == MR_SPARSE) return feature->index_keys[index - 1];
    const mr_partition *partition = &feature->partitions[index - 1];
    return partition->kind == MR_UNIFORM_ROW_LENGTH ? nullptr : partition->key;
}

static mr_string put_name(char **text, const char *name)
{
    mr_string result = {*text, strlen(name)};
    memcpy(*text, name, result.size_bytes + 1);
    *text += result.size_bytes + 1;
    return result;
}

static int32_t add_need(needs *needs, const char *name, mr_dtype dtype, mr_example_use use)
{
    if (name == nullptr) return -1;
    needs->names[needs->count] = put_name(&needs->text, name);
    needs->slots[needs->count] = (mr_example_slot){.dtype = dtype, .kind = mr_example_kind_of(dtype), .use = use};
    return needs->count++;
}

static void make_output(mr_example_output *output, const mr_feature *feature, int32_t first, needs *needs)
{
    mr_example_use use = feature->form == MR_RAGGED ? MR_USE_RAGGED : has_shape(feature) ? MR_USE_DENSE : MR_USE_SPARSE;
    *output = (mr_example_output){
        .name = put_name(&needs->text, feature->name),
        .form = feature->form,
        .dtype = feature->dtype,
        .shape = has_shape(feature) || feature->form == MR_SPARSE ? feature->shape : MR_SCALAR,
        .stride = has_shape(feature) ? mr_shape_count(feature->shape) : 1,
        .default_value = feature->default_value != nullptr ? mr_tensor_ref(feature->default_value) : (mr_tensor){0},
        .already_sorted = feature->already_sorted,
        .allow_missing = feature->allow_missing,
        .splits_dtype = feature->splits_dtype == MR_INT32 ? MR_INT32 : MR_INT64,
        .first = first,
        .slot = add_need(needs, need_name(feature, 0), feature->dtype, use),
        .partition_count = feature->form == MR_RAGGED ? feature->partition_count : 0,
        .ragged_count = feature->form == MR_RAGGED ? mr_example_ragged_count(feature) : 0,
    };
    for (size_t i = 1; i < need_count(feature); i++)
        output->others[i - 1] = add_need(needs, need_name(feature, i), MR_INT64, use);
    for (int32_t i = 0; i < output->partition_count; i++) {
        output->kinds[i] = feature->partitions[i].kind;
        output->lengths[i] = feature->partitions[i].length;
    }
}

/* Assigns a slot to each need, the same one to equal names, and moves the slots to the front. */
static mr_status make_slots(mr_example_parser *parser, needs *needs, mr_error *error)
{
    mr_example_names table;
    if (!mr_example_names_init(&table, needs->names, needs->count)) return mr_fail_memory(error, (size_t)needs->count);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < needs->count && status == MR_OK; i++) {
        mr_string name = needs->names[i];
        /* Of equal names the table returns the first. */
        int32_t same = mr_example_name_find(&table, (const unsigned char *)name.data, name.size_bytes);
        assert(same >= 0 && same <= i);
        const mr_example_slot *a = &needs->slots[i], *b = &needs->slots[same];
        needs->slot_of[i] = same == i ? parser->slot_count++ : needs->slot_of[same];
        assert(needs->slot_of[i] >= 0 && needs->slot_of[i] < parser->slot_count);
        if (same == i || (a->use != MR_USE_DENSE && a->use == b->use && a->dtype == b->dtype)) continue;
        status =
            mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" is requested twice, in incompatible forms", name.data);
    }
    mr_example_names_deinit(&table);
    for (int32_t i = 0, slot = 0; i < needs->count && status == MR_OK; i++) {
        if (needs->slot_of[i] != slot) continue;
        needs->names[slot] = needs->names[i];
        needs->slots[slot++] = needs->slots[i];
    }
    return status;
}

static mr_status check_output_names(const mr_example_parser *parser, mr_string *names, mr_error *error)
{
    mr_example_names table;
    for (int32_t i = 0; i < parser->output_count; i++) names[i] = parser->outputs[i].name;
    if (!mr_example_names_init(&table, names, parser->output_count))
        return mr_fail_memory(error, (size_t)parser->output_count);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < parser->output_count && status == MR_OK; i++)
        if (mr_example_name_find(&table, (const unsigned char *)names[i].data, names[i].size_bytes) != i)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" is requested twice", names[i].data);
    mr_example_names_deinit(&table);
    return status;
}

static mr_status make(mr_example_parser *parser, const mr_feature *features, int32_t count, needs *needs,
                      mr_string *output_names, mr_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        const mr_feature *feature = &features[i];
        make_output(&parser->outputs[parser->output_count++], feature, parser->tensor_count, needs);
        parser->tensor_count +=
            parser->scope == MR_SCOPE_LISTS ? mr_sequence_tensor_count(feature) : mr_feature_tensor_count(feature);
    }
    assert(parser->output_count == count);
    MR_TRY(check_output_names(parser, output_names, error));
    MR_TRY(make_slots(parser, needs, error));
    for (int32_t i = 0; i < count; i++) {
        mr_example_output *output = &parser->outputs[i];
        output->slot = needs->slot_of[output->slot];
        assert(output->slot >= 0 && output->slot < parser->slot_count);
        if (output->form != MR_FIXED_LEN) parser->slots[output->slot].has_rows = true;
        for (int32_t j = 0; j + 1 < (int32_t)need_count(&features[i]); j++) {
            output->others[j] = output->others[j] < 0 ? -1 : needs->slot_of[output->others[j]];
            if (output->others[j] >= 0) parser->slots[output->others[j]].has_rows = true;
        }
    }
    if (!mr_example_names_init(&parser->table, parser->names, parser->slot_count))
        return mr_fail_memory(error, (size_t)parser->slot_count);
    return MR_OK;
}

mr_status mr_example_parser_make(mr_example_scope scope, const mr_feature *features, int32_t count,
                                 mr_example_parser **parser, mr_error *error)
{
    if (count < 0 || count > FEATURES_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%" PRId32 " features requested (allowed: 0 to %" PRId32 ")", count,
                       FEATURES_MAX);
    size_t text_size = 1, needed = 0;
    for (int32_t i = 0; i < count; i++) {
        MR_TRY(check_feature(scope, &features[i], error));
        text_size += strlen(features[i].name) + 1;
        for (size_t j = 0; j < need_count(&features[i]); j++) {
            const char *name = need_name(&features[i], j);
            if (name != nullptr) text_size += strlen(name) + 1;
        }
        needed += need_count(&features[i]);
    }
    mr_example_parser *created = calloc(1, sizeof(*created));
    if (created == nullptr) return mr_fail_memory(error, sizeof(*created));
    created->scope = scope;
    created->slots = calloc(needed + 1, sizeof(mr_example_slot));
    created->names = calloc(needed + 1, sizeof(mr_string));
    created->outputs = calloc((size_t)count + 1, sizeof(mr_example_output));
    created->text = malloc(text_size);
    int32_t *slot_of = calloc(needed + 1, sizeof(int32_t));
    mr_string *output_names = calloc((size_t)count + 1, sizeof(mr_string));
    needs needs = {.names = created->names, .slots = created->slots, .slot_of = slot_of, .text = created->text};
    mr_status status = created->slots != nullptr && created->names != nullptr && created->outputs != nullptr &&
                               created->text != nullptr && slot_of != nullptr && output_names != nullptr
                           ? make(created, features, count, &needs, output_names, error)
                           : mr_fail_memory(error, text_size);
    assert((size_t)needs.count <= needed && (size_t)(needs.text - created->text) < text_size);
    free(slot_of);
    free(output_names);
    if (status == MR_OK)
        *parser = created;
    else
        mr_example_parser_free(created);
    return status;
}

mr_status mr_example_parser_new(const mr_feature *features, int32_t count, mr_example_parser **parser, mr_error *error)
{
    return mr_example_parser_make(MR_SCOPE_EXAMPLE, features, count, parser, error);
}

void mr_example_parser_free(mr_example_parser *parser)
{
    if (parser == nullptr) return;
    for (int32_t i = 0; i < parser->output_count; i++) mr_tensor_deinit(&parser->outputs[i].default_value);
    mr_example_names_deinit(&parser->table);
    free(parser->slots);
    free(parser->names);
    free(parser->outputs);
    free(parser->text);
    free(parser);
}
