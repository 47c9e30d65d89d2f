/* Helpers of the pipeline tests: a dataset's elements as numbers or as one digest. */
#ifndef MR_TESTS_PIPELINES_H
#define MR_TESTS_PIPELINES_H

#include "tests/test.h"

#include <millrace/dataset.h>
#include <millrace/device.h>
#include <millrace/record.h>

/* Reads up to `capacity` elements, frees the dataset, and stores the first components, flattened, as int64s. Returns
 * their number. */
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

/* Shapes and bytes of an element, in host or device memory. */
static inline uint64_t element_digest(uint64_t digest, const mr_element *element)
{
    for (int32_t c = 0; c < element->count; c++) {
        const mr_tensor *tensor = &element->tensors[c];
        if (mr_tensor_device(tensor) != nullptr) {
            mr_error error = {0};
            mr_tensor here = {0};
            CHECK_OK(mr_tensor_to_host(tensor, &here, &error));
            digest = element_digest(digest, &(mr_element){.count = 1, .tensors = &here});
            mr_tensor_deinit(&here);
            continue;
        }
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

/* Stores one digest for each of the next elements of an iterator; fewer at the end. */
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

/* ---- Guarantees of every pipeline: the same elements at any number of threads and from any state ---- */

/* A pipeline by number. */
typedef mr_dataset *(*chain_function)(int which);
static constexpr int ELEMENTS_MAX = 512;

/* Digests of a pipeline's elements, starting from a state if it is not null. An element that fails counts as an
 * element. */
static inline int elements_of(chain_function chain, int which, int threads, const mr_tensor *state, uint64_t *digests)
{
    mr_error error = {0};
    mr_dataset *d = chain(which);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error));
    mr_dataset_free(d);
    if (state != nullptr) CHECK_OK(mr_iterator_restore(iterator, state, &error));
    int count = 0;
    mr_element element = {0};
    for (mr_status status;
         count < ELEMENTS_MAX && (status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE;)
        digests[count++] = status == MR_OK ? element_digest(0xcbf29ce484222325u, &element) : 0;
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return count;
}

static inline void check_threads(chain_function chain, int which)
{
    uint64_t one[ELEMENTS_MAX], other[ELEMENTS_MAX];
    int count = elements_of(chain, which, 1, nullptr, one);
    const int threads[] = {2, 7};
    for (int t = 0; t < 2; t++) {
        CHECK_EQ(elements_of(chain, which, threads[t], nullptr, other), count);
        for (int i = 0; i < count; i++)
            if (one[i] != other[i])
                test_fail(__FILE__, __LINE__, "chain %d at %d threads: element %d", which, threads[t], i);
    }
}

/* Saves at every element and restores many of the states: the remaining elements are the same. */
static inline void check_states(chain_function chain, int which, size_t state_bytes_max)
{
    mr_error error = {0};
    uint64_t whole[ELEMENTS_MAX], rest[ELEMENTS_MAX];
    int count = elements_of(chain, which, 2, nullptr, whole);
    mr_dataset *d = chain(which);
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    mr_dataset_free(d);
    mr_element element = {0};
    int step = count > 60 ? 3 : 1;
    for (int at = 0; at <= count; at++) {
        mr_tensor state = {0};
        CHECK_OK(mr_iterator_save(iterator, &state, &error));
        CHECK(mr_tensor_strings(&state)[0].size_bytes < state_bytes_max);
        if (at % step == 0) {
            CHECK_EQ(elements_of(chain, which, 1 + at % 3, &state, rest), count - at);
            for (int i = at; i < count; i++)
                if (rest[i - at] != whole[i])
                    test_fail(__FILE__, __LINE__, "chain %d restored at %d: element %d", which, at, i);
        }
        mr_tensor_deinit(&state);
        (void)mr_iterator_next(iterator, &element, nullptr);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
}

/* Saves, continues and restores in one iterator while its threads run ahead. */
static inline void check_restored(chain_function chain, int which)
{
    mr_error error = {0};
    uint64_t first[12] = {0}, again[12] = {0};
    mr_dataset *d = chain(which);
    mr_iterator *iterator = nullptr;
    mr_tensor state = {0};
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 3), &iterator, &error));
    mr_dataset_free(d);
    for (int i = 0; i < 2; i++) (void)mr_iterator_next(iterator, &element, &error);
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    for (int pass = 0; pass < 2; pass++) {
        uint64_t *digests = pass == 0 ? first : again;
        if (pass == 1) CHECK_OK(mr_iterator_restore(iterator, &state, &error));
        for (int i = 0; i < 4; i++)
            digests[i] = mr_iterator_next(iterator, &element, &error) == MR_OK ? element_digest(1, &element) : 0;
    }
    CHECK(memcmp(first, again, sizeof first) == 0);
    mr_element_deinit(&element);
    mr_tensor_deinit(&state);
    mr_iterator_free(iterator);
}

/* out = in x 1000 + a random number below 1000. */
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
