/* Helpers of the pipeline tests: what a dataset gives, as numbers or as one digest. */
#ifndef MR_TESTS_PIPELINES_H
#define MR_TESTS_PIPELINES_H

#include "tests/test.h"

#include <millrace/dataset.h>
#include <millrace/record.h>

/* The first component of up to capacity elements, flattened, as int64s; the dataset is freed. Returns their number. */
static inline int64_t numbers_of(mr_dataset *dataset, const mr_iterator_options *options, int64_t *numbers,
                                 int64_t capacity)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    int64_t count = 0;
    CHECK_OK(mr_iterator_new(dataset, options, &iterator, &error));
    while (count < capacity && (status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE) {
        CHECK_OK(status);
        const int64_t *values = mr_tensor_int64s(&element.tensors[0]);
        for (int64_t i = 0; i < mr_tensor_count(&element.tensors[0]) && count < capacity; i++)
            numbers[count++] = values[i];
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return count;
}

#define CHECK_NUMBERS(dataset, ...)                                                                                    \
    do {                                                                                                               \
        int64_t check_expected_[] = {__VA_ARGS__}, check_found_[1024];                                                 \
        int64_t check_count_ = numbers_of((dataset), nullptr, check_found_, 1024);                                     \
        CHECK_EQ(check_count_, (int64_t)(sizeof check_expected_ / sizeof(int64_t)));                                   \
        for (int64_t check_i_ = 0; check_i_ < check_count_; check_i_++)                                                \
            CHECK_EQ(check_found_[check_i_], check_expected_[check_i_]);                                               \
    } while (0)

static inline uint64_t mix(uint64_t digest, const void *bytes, size_t size_bytes)
{
    const unsigned char *from = bytes;
    for (size_t i = 0; i < size_bytes; i++) digest = (digest ^ from[i]) * 0x100000001b3u;
    return digest;
}

/* Shapes and bytes of an element. */
static inline uint64_t element_digest(uint64_t digest, const mr_element *element)
{
    for (int32_t c = 0; c < element->count; c++) {
        const mr_tensor *tensor = &element->tensors[c];
        digest = mix(digest, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof(int64_t));
        if (tensor->dtype != MR_STRING) {
            digest = mix(digest, tensor->data, mr_tensor_size_bytes(tensor));
            continue;
        }
        for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
            mr_string string = mr_tensor_strings(tensor)[i];
            digest = mix(digest, string.data, string.size_bytes);
        }
    }
    return digest;
}

/* Digests of the next elements of an iterator, one each; fewer when the end comes. */
static inline int digests_of(mr_iterator *iterator, uint64_t *digests, int capacity)
{
    mr_error error = {0};
    mr_element element = {0};
    int count = 0;
    while (count < capacity) {
        mr_status status = mr_iterator_next(iterator, &element, &error);
        if (status == MR_OUT_OF_RANGE) break;
        CHECK_OK(status);
        digests[count++] = element_digest(0xcbf29ce484222325u, &element);
    }
    mr_element_deinit(&element);
    return count;
}

/* out = in x 1000 + a number drawn at random below 1000. */
static inline mr_status jitter(void *context, const mr_element *input, mr_random *random, mr_element *output,
                               mr_error *error)
{
    (void)context;
    int64_t value = mr_tensor_int64s(&input->tensors[0])[0];
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], value * 1000 + (int64_t)mr_random_below(random, 1000), error));
    output->count = 1;
    return MR_OK;
}

static const mr_element_spec one_int64 = {.count = 1, .dtypes = {MR_INT64}, .shapes = {{.rank = 0}}};

#endif
