/* parse_sequence_example: parses serialized SequenceExamples into the tensors of their context, then of their feature
 * lists. */
#include "pipeline/pipeline.h"

#include <assert.h>

typedef struct sequence_settings {
    mr_sequence_parser *parser;
    uint64_t digest; /* of the features */
    bool is_batch;
} sequence_settings;

static uint64_t sequence_digest(const mr_dataset *dataset)
{
    return ((const sequence_settings *)dataset->settings)->digest;
}

static mr_status sequence_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                               mr_error *error)
{
    (void)epoch;
    (void)number;
    const sequence_settings *s = work->dataset->settings;
    assert(workspace->count == 1 && workspace->values[0].dtype == MR_STRING &&
           workspace->values[0].shape.rank == s->is_batch);
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    int64_t records = s->is_batch ? workspace->values[0].shape.dims[0] : 1;
    MR_TRY(mr_sequence_parse(s->parser, workspace->values[0].data, records, !s->is_batch, tensors, error));
    mr_value_deinit(&workspace->values[0]);
    workspace->count = work->dataset->spec.count;
    for (int32_t i = 0; i < workspace->count; i++) mr_value_take(&workspace->values[i], &tensors[i]);
    return MR_OK;
}

static void sequence_deinit(mr_dataset *dataset)
{
    mr_sequence_parser_free(((sequence_settings *)dataset->settings)->parser);
}

static const mr_dataset_kind sequence_kind = {.name = "parse_sequence_example",
                                              .role = MR_ROLE_WORK,
                                              .digest = sequence_digest,
                                              .work = sequence_work,
                                              .deinit = sequence_deinit};

/* ---- Builder ---- */

/* Adds the tensors of the context or the lists to the spec; false: out of memory. */
static bool add_features(mr_dataset *dataset, const mr_feature *features, int32_t count, bool is_list, int64_t batch)
{
    mr_element_spec *spec = &dataset->spec;
    for (int32_t i = 0; i < count; i++) {
        const mr_feature *feature = &features[i];
        const char *name = mr_arena_strdup(&dataset->arena, feature->name);
        if (name == nullptr) return false;
        int32_t tensors = is_list ? mr_sequence_tensor_count(feature) : mr_feature_tensor_count(feature);
        for (int32_t j = 0; j < tensors; j++, spec->count++) {
            if (spec->count >= MR_COMPONENTS_MAX) continue;
            mr_dtype *dtype = &spec->dtypes[spec->count];
            mr_shape *shape = &spec->shapes[spec->count];
            if (is_list)
                mr_sequence_tensor_spec(feature, batch, j, dtype, shape);
            else
                mr_feature_tensor_spec(feature, batch, j, dtype, shape);
            spec->names[spec->count] = name;
        }
    }
    return true;
}

mr_dataset *mr_dataset_parse_sequence_example(mr_dataset *input, const mr_feature *context, int32_t context_count,
                                              const mr_feature *lists, int32_t list_count)
{
    mr_dataset *dataset = mr_dataset_new(&sequence_kind, input, sizeof(sequence_settings));
    if (mr_dataset_failed(dataset)) return dataset;
    sequence_settings *s = dataset->settings;
    mr_shape shape = input->spec.shapes[0];
    if (input->spec.count != 1 || input->spec.dtypes[0] != MR_STRING || shape.rank < 0 || shape.rank > 1)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                               "parse_sequence_example: the input must be a string scalar or a batch of strings");
    if (context_count > 0)
        if (mr_dataset_failed(mr_dataset_require(dataset, context != nullptr, "context"))) return dataset;
    if (list_count > 0)
        if (mr_dataset_failed(mr_dataset_require(dataset, lists != nullptr, "lists"))) return dataset;
    mr_error error = {0};
    if (mr_sequence_parser_new(context, context_count, lists, list_count, &s->parser, &error) != MR_OK)
        return mr_dataset_fail(dataset, error.status, "parse_sequence_example: %s", error.message);
    s->is_batch = shape.rank == 1;
    s->digest = mr_digest_features(mr_digest_features(105, context, context_count), lists, list_count);
    int64_t batch = s->is_batch ? shape.dims[0] : MR_SINGLE;
    dataset->is_heavy = true;
    dataset->spec = (mr_element_spec){0};
    if (!add_features(dataset, context, context_count, false, batch) ||
        !add_features(dataset, lists, list_count, true, batch))
        return mr_dataset_fail(dataset, MR_RESOURCE_EXHAUSTED, "parse_sequence_example: no memory");
    if (dataset->spec.count < 1 || dataset->spec.count > MR_COMPONENTS_MAX)
        return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT, "parse_sequence_example: %d components, expected 1 to %d",
                               dataset->spec.count, MR_COMPONENTS_MAX);
    return dataset;
}
