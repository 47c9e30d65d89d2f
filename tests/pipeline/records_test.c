/* From records to batches: files, shards, parsing, decoding, damage, and no allocations in the steady state. */
#include "tests/kernels/images.h"
#include "tests/pipeline/pipelines.h"

#include <unistd.h>

/* ---- Files ---- */

/* Record i: an image of 40 + i by 30 + i pixels, label i, name "image i". */
static void write_record(mr_record_writer *writer, int i)
{
    mr_error error = {0};
    unsigned char *pixels = test_pixels(40 + i, 30 + i, 3, 1);
    test_bytes jpeg = test_encode_jpeg(pixels, 40 + i, 30 + i, &(test_jpeg_options){.channels = 3});
    mr_example_encoder encoder = {0};
    mr_string record = {0};
    char name[32];
    snprintf(name, sizeof name, "image %d", i);
    mr_example_add_bytes(&encoder, "image/encoded", (mr_string){(char *)jpeg.bytes, jpeg.size_bytes});
    mr_example_add_bytes(&encoder, "image/filename", mr_string_from(name));
    mr_example_add_int64(&encoder, "image/class/label", i);
    mr_example_add_float(&encoder, "weight", (float)i / 2);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    mr_example_encoder_deinit(&encoder);
    free(pixels);
    free(jpeg.bytes);
}

/* 20 records in 3 files: 7 in each but the last. */
static const char *write_set(mr_compression compression)
{
    mr_error error = {0};
    for (int f = 0; f < 3; f++) {
        mr_record_writer *writer = nullptr;
        mr_record_writer_options options = {
            .size = sizeof options, .compression = compression, .index = f == 1 && compression == 0};
        CHECK_OK(mr_record_writer_open(test_path("set-%05d-of-00003.tfrecord", f), &options, &writer, &error));
        for (int i = 7 * f; i < 20 && i < 7 * f + 7; i++) write_record(writer, i);
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
    return test_path("set-*.tfrecord");
}

static mr_dataset *parsed(mr_dataset *input)
{
    static const mr_feature features[] = {
        {.name = "image/encoded", .dtype = MR_STRING},
        {.name = "image/class/label", .dtype = MR_INT64},
        {.name = "weight", .dtype = MR_FLOAT},
        {.name = "image/filename", .dtype = MR_STRING},
    };
    return mr_dataset_parse_example(input, features, 4);
}

static mr_dataset *decoded(mr_dataset *input)
{
    return mr_dataset_decode_image(input, .component = 0, .seed = 5,
                                   .image = MR_OPTIONS(mr_image_options, .height = 24, .width = 24,
                                                       .crop = MR_CROP_RANDOM_RESIZED, .random_flip_left_right = true,
                                                       .mean = {120, 115, 100}, .std = {60, 60, 60}));
}

TEST(pipeline_records_to_batches)
{
    mr_error error = {0};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(write_set(0)), .seed = 2), 2);
    CHECK_EQ(mr_dataset_cardinality(d), 40);
    d = mr_dataset_prefetch(mr_dataset_batch(decoded(parsed(d)), 8, .drop_remainder = true), 2);
    CHECK(mr_shape_equal(mr_dataset_spec(d)->shapes[0], MR_SHAPE(8, 24, 24, 3)));
    CHECK_STR(mr_dataset_spec(d)->names[1], "image/class/label");
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    int seen[20] = {0};
    for (int b = 0; b < 5; b++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(element.count, 4);
        for (int r = 0; r < 8; r++) {
            int64_t label = mr_tensor_int64s(&element.tensors[1])[r];
            char name[32];
            snprintf(name, sizeof name, "image %lld", (long long)label);
            CHECK(mr_string_equal(mr_tensor_strings(&element.tensors[3])[r], mr_string_from(name)));
            CHECK_NEAR(mr_tensor_floats(&element.tensors[2])[r], (double)label / 2, 0);
            seen[label]++;
        }
        for (int64_t i = 0; i < mr_tensor_count(&element.tensors[0]); i++)
            CHECK(fabsf(mr_tensor_floats(&element.tensors[0])[i]) <= 3);
    }
    for (int i = 0; i < 20; i++) CHECK_EQ(seen[i], 2);
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_augmentation_is_the_same_at_any_number_of_threads)
{
    mr_error error = {0};
    const char *pattern = write_set(0);
    uint64_t digests[3][20];
    const int threads[] = {1, 2, 7};
    for (int t = 0; t < 3; t++) {
        mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(pattern), .seed = 2), 3);
        d = mr_dataset_prefetch(mr_dataset_batch(decoded(parsed(d)), 7), 2);
        mr_iterator *iterator = nullptr;
        CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads[t]), &iterator, &error));
        CHECK_EQ(digests_of(iterator, digests[t], 20), 9);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
        CHECK(memcmp(digests[0], digests[t], 9 * sizeof(uint64_t)) == 0);
    }
    CHECK(digests[0][0] != digests[0][1]);
}

TEST(pipeline_parses_after_batch_as_before_it)
{
    mr_error error = {0};
    const char *pattern = write_set(0);
    mr_dataset *before = mr_dataset_batch(parsed(mr_dataset_records(pattern)), 6);
    mr_dataset *after = parsed(mr_dataset_batch(mr_dataset_records(pattern), 6));
    CHECK(mr_shape_equal(mr_dataset_spec(after)->shapes[1], MR_SHAPE(-1)));
    mr_iterator *iterators[2] = {nullptr};
    uint64_t digests[2][10];
    CHECK_OK(mr_iterator_new(before, nullptr, &iterators[0], &error));
    CHECK_OK(mr_iterator_new(after, nullptr, &iterators[1], &error));
    for (int i = 0; i < 2; i++) CHECK_EQ(digests_of(iterators[i], digests[i], 10), 4);
    CHECK(memcmp(digests[0], digests[1], 4 * sizeof(uint64_t)) == 0);
    for (int i = 0; i < 2; i++) mr_iterator_free(iterators[i]);
    mr_dataset_free(before);
    mr_dataset_free(after);
}

TEST(pipeline_default_values_and_missing_features)
{
    mr_error error = {0};
    const char *pattern = write_set(0);
    mr_tensor default_value = {0};
    int64_t values[] = {4, 5};
    CHECK_OK(mr_tensor_init_copy(&default_value, MR_INT64, MR_SHAPE(2), values, &error));
    const mr_feature features[] = {
        {.name = "none", .dtype = MR_INT64, .shape = MR_SHAPE(2), .default_value = &default_value},
        {.name = "image/class/label", .dtype = MR_INT64, .shape = MR_SHAPE(1)},
    };
    mr_dataset *d = mr_dataset_batch(mr_dataset_parse_example(mr_dataset_records(pattern), features, 2), 3);
    mr_tensor_deinit(&default_value);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(3, 2)));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[5], 5);
    CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[2], 2);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);

    const struct {
        mr_feature feature;
        const char *message;
    } bad[] = {
        {{.name = "none", .dtype = MR_INT64}, "missing"},
        {{.name = "weight", .dtype = MR_INT64}, "float"},
        {{.name = "weight", .dtype = MR_FLOAT, .shape = MR_SHAPE(2)}, "weight"},
    };
    for (int i = 0; i < 3; i++) {
        d = mr_dataset_skip(mr_dataset_parse_example(mr_dataset_records(pattern), &bad[i].feature, 1), 8);
        CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
        CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "parse_example: ");
        CHECK_CONTAINS(error.message, "set-00001-of-00003.tfrecord: record 1: ");
        CHECK_CONTAINS(error.message, bad[i].message);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
}

TEST(pipeline_compressed_records_are_a_stream)
{
    mr_error error = {0};
    const char *pattern = write_set(MR_COMPRESSION_GZIP);
    mr_dataset *d = mr_dataset_records(pattern);
    CHECK_EQ(mr_dataset_cardinality(d), MR_CARDINALITY_UNKNOWN);
    d = mr_dataset_shuffle(d);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
    uint64_t whole[64], rest[64];
    for (int which = 0; which < 3; which++) {
        mr_iterator *iterator = nullptr;
        mr_tensor state = {0};
        for (int at = -1; at < 20; at += 3) {
            d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(pattern), .buffer_size = 6, .seed = 2), 2);
            if (which == 0) d = decoded(parsed(d));
            if (which == 1) d = mr_dataset_prefetch(mr_dataset_batch(decoded(parsed(d)), 3), 2);
            if (which == 2)
                d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_batch(parsed(d), 3), .buffer_size = 4), 2);
            CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
            mr_dataset_free(d);
            int count = which == 0 ? 40 : which == 1 ? 14 : 28;
            if (at < 0) {
                CHECK_EQ(digests_of(iterator, whole, 64), count);
            } else if (at < count) {
                CHECK_EQ(digests_of(iterator, rest, at), at);
                CHECK_OK(mr_iterator_save(iterator, &state, &error));
                CHECK_EQ(digests_of(iterator, rest, 5), count - at < 5 ? count - at : 5);
                CHECK_OK(mr_iterator_restore(iterator, &state, &error));
                CHECK_EQ(digests_of(iterator, rest, 64), count - at);
                CHECK(memcmp(whole + at, rest, (size_t)(count - at) * sizeof *rest) == 0);
                mr_tensor_deinit(&state);
            }
            mr_iterator_free(iterator);
        }
    }
}

TEST(pipeline_names_the_damaged_record)
{
    mr_error error = {0};
    const char *pattern = write_set(0);
    FILE *file = fopen(test_path("set-00001-of-00003.tfrecord"), "r+b");
    CHECK(file != nullptr && fseek(file, -40, SEEK_END) == 0 && fputc(1, file) == 1 && fclose(file) == 0);
    mr_dataset *d = mr_dataset_records(pattern);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    int good = 0, bad = 0;
    for (mr_status status; (status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE;) {
        good += status == MR_OK;
        if (status == MR_OK) continue;
        bad++;
        CHECK_EQ(status, MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, "records: ");
        CHECK_CONTAINS(error.message, "set-00001-of-00003.tfrecord");
        CHECK_CONTAINS(error.message, "record 6");
    }
    CHECK_EQ(good, 19);
    CHECK_EQ(bad, 1);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_images_that_are_none)
{
    mr_error error = {0};
    const char *words[] = {"", "a text file", "\xff\xd8\xff"};
    mr_string strings[3];
    mr_tensor texts = {0};
    for (int i = 0; i < 3; i++) strings[i] = mr_string_from(words[i]);
    CHECK_OK(mr_tensor_init_strings(&texts, MR_SHAPE(3), strings, &error));
    mr_dataset *d = decoded(mr_dataset_from_slices(&texts, 1));
    mr_tensor_deinit(&texts);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 3; i++) {
        CHECK(mr_iterator_next(iterator, &element, &error) != MR_OK);
        CHECK_CONTAINS(error.message, "decode_image: element ");
    }
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_images_as_they_are)
{
    mr_error error = {0};
    mr_dataset *d = parsed(mr_dataset_records(write_set(0)));
    d = mr_dataset_decode_image(d, .component = 0, .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8));
    CHECK(mr_shape_equal(mr_dataset_spec(d)->shapes[0], MR_SHAPE(-1, -1, 3)));
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK(mr_shape_equal(element.tensors[0].shape, MR_SHAPE(30 + i, 40 + i, 3)));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[0], i);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

TEST(pipeline_allocates_nothing_once_it_runs)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    mr_error error = {0};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(write_set(0)), .seed = 2), MR_INFINITE);
    d = mr_dataset_prefetch(mr_dataset_batch(decoded(parsed(d)), 8, .drop_remainder = true), 2);
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    /* The memory of each thread and each row grows until it has seen the largest record. The scheduler determines when
     * that is. Then 800 consecutive images need no allocation. */
    long long taken = -1;
    for (int window = 0; window < 40 && taken != 0; window++) {
        long long before = test_allocations();
        for (int i = 0; i < 100; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
        taken = test_allocations() - before;
    }
    CHECK_EQ(taken, 0);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

static mr_status pass_on(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context;
    (void)random;
    (void)error;
    for (int32_t i = 0; i < input->count; i++) output->tensors[i] = mr_tensor_ref(&input->tensors[i]);
    output->count = input->count;
    return MR_OK;
}

/* Creates, runs and frees a pipeline once; returns the status at its end. */
static mr_status live(const char *pattern)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor state = {0};
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(pattern), .buffer_size = 5), 2);
    d = decoded(parsed(d));
    mr_element_spec spec = *mr_dataset_spec(d);
    if (mr_dataset_status(d, nullptr) == MR_OK) d = mr_dataset_map(d, pass_on, nullptr, &spec);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 4), 2);
    mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error);
    mr_dataset_free(d);
    for (int i = 0; i < 3 && status == MR_OK; i++) status = mr_iterator_next(iterator, &element, &error);
    if (iterator != nullptr && mr_iterator_save(iterator, &state, &error) == MR_OK)
        (void)mr_iterator_restore(iterator, &state, &error);
    mr_tensor_deinit(&state);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    return status;
}

TEST(pipeline_survives_any_allocation_failing)
{
    if (test_allocations() < 0) test_skip("allocations are not counted here");
    const char *pattern = write_set(0);
    bool was_reached = true;
    int failures = 0;
    for (int n = 1; was_reached && n < 3000; n++) {
        long long number = test_allocations() + n;
        test_fail_allocation(number);
        mr_status status = live(pattern);
        test_fail_allocation(0);
        was_reached = test_allocations() >= number;
        failures += status != MR_OK;
        if (status != MR_OK && status != MR_RESOURCE_EXHAUSTED)
            test_fail(__FILE__, __LINE__, "allocation %d failing is %s", n, mr_status_name(status));
    }
    CHECK(!was_reached);
    CHECK(failures > 50);
}
