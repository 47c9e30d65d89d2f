/* bucket_by_sequence_length: a group_by_window whose key is the bucket of an element's length, and whose windows become
 * (padded) batches. */
#include "pipeline/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct buckets {
    mr_key_function length;
    void *context;
    mr_bucket_options options;
    int32_t count; /* number of boundaries */
    int64_t *boundaries;
    int64_t *batch_sizes;
    int32_t components;
    mr_shape *shapes; /* owned; null: the elements' own shapes */
    mr_tensor *values;
    mr_element_spec spec;
} buckets;

static void buckets_free(void *context)
{
    buckets *b = context;
    if (b->options.release != nullptr) b->options.release(b->context);
    for (int32_t i = 0; b->values != nullptr && i < b->components; i++) mr_tensor_deinit(&b->values[i]);
    free(b->boundaries);
    free(b->batch_sizes);
    free(b->shapes);
    free(b->values);
    free(b);
}

static mr_status bucket_of(void *context, const mr_element *input, int64_t *key, mr_error *error)
{
    const buckets *b = context;
    int64_t length = 0;
    MR_TRY(b->length(b->context, input, &length, error));
    for (*key = 0; *key < b->count && length >= b->boundaries[*key];) ++*key;
    assert(*key == 0 || length >= b->boundaries[*key - 1]);
    if (b->options.pad_to_bucket_boundary && *key == b->count)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "the element has length %lld, expected less than the last boundary %lld", (long long)length,
                       (long long)b->boundaries[b->count - 1]);
    return MR_OK;
}

static int64_t size_of(void *context, int64_t key)
{
    const buckets *b = context;
    assert(key >= 0 && key <= b->count);
    return b->batch_sizes[key];
}

static mr_status batch_of(void *context, int64_t key, mr_dataset *window, mr_dataset **output, mr_error *error)
{
    (void)error;
    const buckets *b = context;
    mr_shape shapes[MR_COMPONENTS_MAX];
    assert(key >= 0 && key <= b->count && (key < b->count || !b->options.pad_to_bucket_boundary));
    int64_t size = b->batch_sizes[key];
    if (b->options.no_padding) {
        *output = mr_dataset_batch(window, size, .drop_remainder = b->options.drop_remainder);
        return MR_OK;
    }
    for (int32_t i = 0; i < b->components; i++) {
        shapes[i] = b->shapes != nullptr ? b->shapes[i] : b->spec.shapes[i];
        for (int32_t d = 0; b->options.pad_to_bucket_boundary && d < shapes[i].rank; d++)
            if (shapes[i].dims[d] < 0) shapes[i].dims[d] = b->boundaries[key] - 1;
    }
    *output = mr_dataset_padded_batch(window, size, .padded_shapes = shapes, .padding_values = b->values,
                                      .drop_remainder = b->options.drop_remainder);
    return MR_OK;
}

static void *copy(const void *from, size_t size_bytes)
{
    void *to = malloc(size_bytes + 1);
    if (to != nullptr && size_bytes > 0) memcpy(to, from, size_bytes);
    return to;
}

static buckets *buckets_new(const mr_dataset *input, mr_key_function length, void *context, const int64_t *boundaries,
                            int32_t count, const int64_t *batch_sizes, const mr_bucket_options *options)
{
    buckets *b = calloc(1, sizeof *b);
    if (b == nullptr) return nullptr;
    size_t components = (size_t)input->spec.count;
    b->length = length;
    b->spec = input->spec;
    b->count = count;
    b->components = input->spec.count;
    b->boundaries = copy(boundaries, (size_t)count * sizeof *boundaries);
    b->batch_sizes = copy(batch_sizes, ((size_t)count + 1) * sizeof *batch_sizes);
    if (options->padded_shapes != nullptr) b->shapes = copy(options->padded_shapes, components * sizeof *b->shapes);
    if (options->padding_values != nullptr) b->values = calloc(components + 1, sizeof *b->values);
    bool is_complete = b->boundaries != nullptr && b->batch_sizes != nullptr &&
                       (options->padded_shapes == nullptr || b->shapes != nullptr) &&
                       (options->padding_values == nullptr || b->values != nullptr);
    if (!is_complete) {
        buckets_free(b);
        return nullptr;
    }
    for (size_t i = 0; b->values != nullptr && i < components; i++)
        b->values[i] = mr_tensor_ref(&options->padding_values[i]);
    b->context = context;
    b->options = *options;
    return b;
}

/* Hashes all settings except the length function. */
static uint64_t buckets_digest(const buckets *b)
{
    const mr_bucket_options *o = &b->options;
    uint64_t digest = mr_digest(8, (uint64_t)b->count);
    for (int32_t i = 0; i < b->count; i++) digest = mr_digest(digest, (uint64_t)b->boundaries[i]);
    for (int32_t i = 0; i <= b->count; i++) digest = mr_digest(digest, (uint64_t)b->batch_sizes[i]);
    for (int32_t i = 0; b->shapes != nullptr && i < b->components; i++) digest = mr_digest_shape(digest, b->shapes[i]);
    for (int32_t i = 0; b->values != nullptr && i < b->components; i++)
        digest = mr_digest_tensor(digest, &b->values[i]);
    return mr_digest(digest, (uint64_t)o->pad_to_bucket_boundary | (uint64_t)o->no_padding << 1 |
                                 (uint64_t)o->drop_remainder << 2);
}

mr_dataset *mr_dataset_bucket_by_sequence_length_(mr_dataset *input, mr_key_function length, void *context,
                                                  const int64_t *boundaries, int32_t boundary_count,
                                                  const int64_t *batch_sizes, const mr_bucket_options *given)
{
    mr_bucket_options options;
    input = MR_DATASET_READ(mr_bucket_options, &options, input, given);
    constexpr int32_t BOUNDARIES_MAX = 1 << 16;
    buckets *b = nullptr;
    const char *absent = length == nullptr        ? "length"
                         : boundaries == nullptr  ? "boundaries"
                         : batch_sizes == nullptr ? "batch_sizes"
                                                  : nullptr;
    if (!mr_dataset_failed(input) && absent == nullptr && boundary_count >= 1 && boundary_count <= BOUNDARIES_MAX)
        b = buckets_new(input, length, context, boundaries, boundary_count, batch_sizes, &options);
    if (b == nullptr) {
        if (options.release != nullptr) options.release(context);
        if (input == nullptr) return mr_dataset_new_failed("bucket_by_sequence_length: the input dataset is null");
        if (mr_dataset_failed(input)) return input;
        /* A new node, because the input may have other references. */
        input = mr_dataset_take(input, -1);
        if (mr_dataset_failed(input)) return input;
        if (absent != nullptr)
            return mr_dataset_fail(input, MR_INVALID_ARGUMENT, "bucket_by_sequence_length: %s is null", absent);
        if (boundary_count >= 1 && boundary_count <= BOUNDARIES_MAX)
            return mr_dataset_fail(input, MR_RESOURCE_EXHAUSTED, "bucket_by_sequence_length: no memory");
        return mr_dataset_fail(input, MR_INVALID_ARGUMENT,
                               "bucket_by_sequence_length: invalid number of boundaries: %d", boundary_count);
    }
    /* The structure of the batches of any bucket. */
    mr_element_spec spec = input->spec;
    for (int32_t i = 0; i < spec.count && b->shapes != nullptr; i++) spec.shapes[i] = b->shapes[i];
    mr_error error = {0};
    mr_status status = mr_spec_batch(&spec, -1, &error);
    if (options.no_padding &&
        (options.padded_shapes != nullptr || options.padding_values != nullptr || options.pad_to_bucket_boundary))
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "%s has no effect: there is no padding",
                         options.padded_shapes != nullptr    ? "padded_shapes"
                         : options.padding_values != nullptr ? "padding_values"
                                                             : "pad_to_bucket_boundary");
    for (int32_t i = 1; i < boundary_count && status == MR_OK; i++)
        if (boundaries[i] <= boundaries[i - 1])
            status = mr_fail(&error, MR_INVALID_ARGUMENT, "boundary %d is not greater than the previous one", i);
    for (int32_t i = 0; i <= boundary_count && status == MR_OK; i++)
        if (batch_sizes[i] < 1 || batch_sizes[i] > MR_BATCH_MAX)
            status = mr_fail(&error, MR_INVALID_ARGUMENT, "invalid batch size: %lld", (long long)batch_sizes[i]);
    mr_dataset *dataset = mr_dataset_group_by_window(input, bucket_of, batch_of, b, &spec, .window_size_func = size_of,
                                                     .release = buckets_free);
    if (mr_dataset_failed(dataset)) return dataset;
    dataset->function_settings = buckets_digest(b);
    if (status == MR_OK) return dataset;
    return mr_dataset_fail(dataset, status, "bucket_by_sequence_length: %s", error.message);
}
