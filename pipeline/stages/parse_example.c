/* parse_example: parses serialized Examples into the tensors of their features.
 *
 * Single records whose features all have a fixed length take a fast path without allocation: one pass over the record,
 * numbers written to their destination (the row of the slot, if nothing follows), strings referenced in place.
 * Everything else uses mr_example_parse. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <string.h>

typedef struct parse_settings {
    int32_t count;
    mr_feature *features;
    mr_tensor *default_values; /* references; features[i].default_value points here */
    size_t *name_bytes;
    mr_example_parser *parser;
    uint64_t digest; /* of the features */
    bool is_batch;
    bool is_fixed; /* all features are MR_FIXED_LEN */
} parse_settings;

static uint64_t parse_digest(const mr_dataset *dataset)
{
    return ((const parse_settings *)dataset->settings)->digest;
}

/* ---- One record, features of fixed length ---- */

static const char *kind_name(mr_feature_kind kind)
{
    return kind == MR_FEATURE_BYTES ? "bytes" : kind == MR_FEATURE_FLOAT ? "float" : "int64";
}

static mr_feature_kind kind_of(mr_dtype dtype)
{
    return dtype == MR_STRING ? MR_FEATURE_BYTES : dtype == MR_FLOAT ? MR_FEATURE_FLOAT : MR_FEATURE_INT64;
}

/* Finds the requested features. Of several features with the same name, the last one that has a kind counts. */
static mr_status find_features(const parse_settings *s, mr_string record, mr_feature_view *views, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    for (;;) {
        mr_feature_view view;
        mr_status status = mr_example_next_feature(&walk, &view, error);
        if (status == MR_OUT_OF_RANGE) return MR_OK;
        if (status != MR_OK) return status;
        if (view.kind == MR_FEATURE_NONE) continue;
        for (int32_t i = 0; i < s->count; i++) {
            if (s->name_bytes[i] != view.name.size_bytes) continue;
            if (memcmp(s->features[i].name, view.name.data, view.name.size_bytes) == 0) views[i] = view;
        }
    }
}

static mr_status read_feature(const mr_feature *feature, const mr_feature_view *view, void *target, int64_t count,
                              mr_error *error)
{
    size_t found = 0;
    if (view->kind != kind_of(feature->dtype))
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" contains %s, expected %s", feature->name,
                       kind_name(view->kind), kind_name(kind_of(feature->dtype)));
    MR_TRY(mr_feature_count(view, &found, error));
    if (found != (size_t)count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" contains %zu values, expected %lld", feature->name,
                       found, (long long)count);
    if (feature->dtype == MR_STRING) return mr_feature_bytes(view, target, found, error);
    if (feature->dtype == MR_FLOAT) return mr_feature_floats(view, target, found, error);
    return mr_feature_int64s(view, target, found, error);
}

static mr_status parse_fixed(const mr_work *work, mr_workspace *workspace, mr_error *error)
{
    const parse_settings *s = work->dataset->settings;
    assert(workspace->count == 1 && s->is_fixed && !s->is_batch && s->count == work->dataset->spec.count);
    mr_string record = *(const mr_string *)workspace->values[0].data;
    mr_feature_view *views = MR_ARENA_NEW(&workspace->scratch, mr_feature_view, (size_t)s->count);
    if (views == nullptr) return mr_fail_memory(error, (size_t)s->count * sizeof *views);
    MR_TRY(find_features(s, record, views, error));
    /* Strings point into the record's tensor, if it has one: kept until the element is done. */
    workspace->keep = workspace->values[0].tensor;
    workspace->values[0].tensor = (mr_tensor){0};
    workspace->count = s->count;
    for (int32_t i = 0; i < s->count; i++) {
        const mr_feature *feature = &s->features[i];
        mr_value *value = &workspace->values[i];
        *value = (mr_value){.dtype = feature->dtype, .shape = feature->shape};
        int64_t count = mr_shape_count(feature->shape);
        if (views[i].kind == MR_FEATURE_NONE) {
            if (feature->default_value == nullptr)
                return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" is missing", feature->name);
            value->data = feature->default_value->data;
            continue;
        }
        void *target = nullptr;
        if (work->is_last && feature->dtype != MR_STRING) target = workspace->rows[i];
        value->is_in_row = target != nullptr;
        if (target == nullptr && feature->dtype == MR_STRING && count == 1) target = &value->string;
        if (target == nullptr)
            target = mr_arena_alloc_array(&workspace->scratch, (size_t)count + 1, mr_dtype_size(feature->dtype));
        if (target == nullptr) return mr_fail_memory(error, (size_t)count * mr_dtype_size(feature->dtype));
        value->data = target;
        MR_TRY(read_feature(feature, &views[i], target, count, error));
    }
    return MR_OK;
}

/* ---- Everything else ---- */

static mr_status parse_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                            mr_error *error)
{
    (void)epoch;
    (void)number;
    const parse_settings *s = work->dataset->settings;
    if (s->is_fixed && !s->is_batch) return parse_fixed(work, workspace, error);
    assert(workspace->count == 1 && workspace->values[0].dtype == MR_STRING &&
           workspace->values[0].shape.rank == s->is_batch);
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    int64_t records = s->is_batch ? workspace->values[0].shape.dims[0] : 1;
    MR_TRY(mr_example_parse(s->parser, workspace->values[0].data, records, !s->is_batch, tensors, error));
    mr_value_deinit(&workspace->values[0]);
    workspace->count = work->dataset->spec.count;
    assert(workspace->count <= MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < workspace->count; i++) mr_value_take(&workspace->values[i], &tensors[i]);
    return MR_OK;
}

static void parse_deinit(mr_dataset *dataset)
{
    parse_settings *s = dataset->settings;
    mr_example_parser_free(s->parser);
    for (int32_t i = 0; s->default_values != nullptr && i < s->count; i++) mr_tensor_deinit(&s->default_values[i]);
}

static const mr_dataset_kind parse_kind = {
    .name = "parse_example", .role = MR_ROLE_WORK, .digest = parse_digest, .work = parse_work, .deinit = parse_deinit};

/* ---- Builder ---- */

static void add(mr_dataset *dataset, mr_dtype dtype, mr_shape shape, const char *name)
{
    mr_element_spec *spec = &dataset->spec;
    if (spec->count < MR_COMPONENTS_MAX) {
        spec->dtypes[spec->count] = dtype;
        spec->shapes[spec->count] = shape;
        spec->names[spec->count] = name;
    }
    spec->count++;
}

/* Adds the tensors of one feature, for batches of that size (see mr_feature_tensor_spec). */
static void add_feature(mr_dataset *dataset, const mr_feature *feature, const char *name, int64_t batch)
{
    for (int32_t i = 0; i < mr_feature_tensor_count(feature); i++) {
        mr_dtype dtype;
        mr_shape shape;
        mr_feature_tensor_spec(feature, batch, i, &dtype, &shape);
        add(dataset, dtype, shape, name);
    }
}

static bool copy_features(mr_dataset *dataset, parse_settings *s, const mr_feature *features, int32_t count)
{
    s->features = mr_arena_copy(&dataset->arena, features, (size_t)count * sizeof *features);
    s->default_values = MR_ARENA_NEW(&dataset->arena, mr_tensor, (size_t)count);
    s->name_bytes = MR_ARENA_NEW(&dataset->arena, size_t, (size_t)count);
    if (s->features == nullptr || s->default_values == nullptr || s->name_bytes == nullptr) return false;
    s->count = count;
    s->is_fixed = true;
    for (int32_t i = 0; i < count; i++) {
        mr_feature *feature = &s->features[i];
        feature->name = mr_arena_strdup(&dataset->arena, features[i].name);
        if (feature->name == nullptr) return false;
        s->name_bytes[i] = strlen(feature->name);
        s->is_fixed = s->is_fixed && feature->form == MR_FIXED_LEN;
        /* The parser has copies; the caller's may be freed later. */
        feature->value_key = nullptr;
        feature->index_keys = nullptr;
        feature->partitions = nullptr;
        feature->partition_count = 0;
        if (feature->default_value == nullptr) continue;
        s->default_values[i] = mr_tensor_ref(feature->default_value);
        feature->default_value = &s->default_values[i];
    }
    return true;
}

mr_dataset *mr_dataset_parse_example(mr_dataset *input, const mr_feature *features, int32_t count)
{
    mr_dataset *dataset = mr_dataset_new(&parse_kind, input, sizeof(parse_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    parse_settings *s = dataset->settings;
    mr_shape shape = input->spec.shapes[0];
    if (input->spec.count != 1 || input->spec.dtypes[0] != MR_STRING || shape.rank < 0 || shape.rank > 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "parse_example: the input must be a string scalar or a batch of strings");
    if (count < 1 || count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "parse_example: %d features, expected 1 to %d", count,
                               MR_COMPONENTS_MAX);
    if (mr_dataset_failed(mr_dataset_require(dataset, features != nullptr, "features"))) return dataset;
    mr_error error = {0};
    if (mr_example_parser_new(features, count, &s->parser, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "parse_example: %s", error.message);
    if (!copy_features(dataset, s, features, count))
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "parse_example: no memory");
    s->digest = mr_digest_features(4, features, count);
    s->is_batch = shape.rank == 1;
    dataset->is_heavy = true;
    dataset->spec = (mr_element_spec){0};
    /* The caller's features, whose keys and partitions still exist; names are the copies. */
    for (int32_t i = 0; i < count; i++)
        add_feature(dataset, &features[i], s->features[i].name, s->is_batch ? shape.dims[0] : MR_SINGLE);
    if (dataset->spec.count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "parse_example: %d components, expected 1 to %d",
                               dataset->spec.count, MR_COMPONENTS_MAX);
    return dataset;
}
