/* The functions of docs/datasets-cookbook.md, which recipes.awk extracts, run on real data: each does what the cookbook
 * says. */
#include "tests/tools/program.h"

#include <millrace/millrace.h>

int64_t print_elements(mr_dataset *d);
mr_dataset *image_batches(const char *photos);
mr_dataset *record_batches(const char *pattern);
mr_dataset *shuffled_epochs(const char *pattern, int64_t epochs);
mr_dataset *worker_part(const char *pattern, int64_t workers, int64_t worker);
mr_dataset *worker_batches(const char *pattern, int64_t workers, int64_t worker);
mr_dataset *interleaved_files(const char *pattern);
mr_dataset *augmented_images(const char *photos);
mr_dataset *images_of_class(const char *photos, const int64_t *label);
mr_dataset *noisy_squares(int64_t count);
mr_dataset *padded_sequences(const char *text_files);
mr_dataset *bucketed_sequences(const char *text_files);
mr_dataset *series_windows(const mr_tensor *series);
mr_dataset *mixture(mr_dataset *common, mr_dataset *rare);
mr_dataset *balanced(int64_t count);
mr_dataset *people(const char *csv_files);
mr_dataset *squares(void);
mr_dataset *cached_images(const char *photos, const char *cache);
mr_dataset *tolerant_images(const char *pattern);
mr_status mean_pixel(mr_dataset *images, double *mean, mr_error *error);
mr_status resume(mr_dataset *d, int64_t count, mr_tensor *state, mr_error *error);
mr_status measure(mr_dataset *d, const char *device, mr_error *error);

/* Renders 24 images of 6 classes in photos/ and converts them to records in two files. */
static void make_images(void)
{
    const program_result *result = program_run("cd '%s' && photographs --out photos --count 24 && "
                                               "tfrecord-make --out records --split all=1 --shards 2 photos",
                                               test_directory());
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
}

static void save_text(const char *name, const char *text)
{
    FILE *file = fopen(test_path("%s", name), "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Passes each element to check, which may be null, frees the dataset and returns the number of elements. */
static int64_t run(mr_dataset *d, void (*check)(const mr_element *element, int64_t number))
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    int64_t count = 0;
    mr_status status;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK) {
        if (check) check(&element, count);
        count++;
    }
    if (status != MR_OUT_OF_RANGE) CHECK_OK(status);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return count;
}

static uint64_t digest_of(mr_dataset *d)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .digest = true), &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK) {}
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    uint64_t digest = mr_iterator_digest(iterator);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return digest;
}

/* Checks the component's dtype and shape. */
static void check_batch(const mr_element *element, int component, mr_dtype dtype, mr_shape shape)
{
    CHECK(component < element->count);
    CHECK_EQ(element->tensors[component].dtype, dtype);
    CHECK(mr_shape_equal(element->tensors[component].shape, shape));
}

static void check_uint8_images(const mr_element *element, int64_t)
{
    check_batch(element, 0, MR_UINT8, MR_SHAPE(8, 64, 64, 3));
    check_batch(element, 1, MR_INT64, MR_SHAPE(8));
}

static void check_float_images(const mr_element *element, int64_t)
{
    check_batch(element, 0, MR_FLOAT, MR_SHAPE(8, 64, 64, 3));
    check_batch(element, 1, MR_INT64, MR_SHAPE(8));
}

static void check_class_2(const mr_element *element, int64_t)
{
    CHECK_EQ(mr_tensor_int64s(&element->tensors[1])[0], 2);
}

TEST(recipes_of_images)
{
    make_images();
    const int64_t label = 2;
    CHECK(freopen("/dev/null", "w", stdout) != nullptr);
    CHECK_EQ(print_elements(image_batches(test_path("photos"))), 3);
    CHECK_EQ(run(image_batches(test_path("photos")), check_uint8_images), 3);
    CHECK_EQ(run(record_batches(test_path("records/*.tfrecord")), check_float_images), 3);
    CHECK_EQ(run(augmented_images(test_path("photos")), check_float_images), 3);
    CHECK_EQ(run(images_of_class(test_path("photos"), &label), check_class_2), 4);
    CHECK_EQ(run(tolerant_images(test_path("records/*.tfrecord")), check_uint8_images), 3);
    CHECK_EQ(run(cached_images(test_path("photos"), test_path("cache")), check_uint8_images), 9);
    CHECK_EQ(access(test_path("cache"), F_OK), 0);
    CHECK_EQ(run(cached_images(test_path("photos"), test_path("cache")), check_uint8_images), 9);
}

static size_t size_sum;

static void add_size(const mr_element *element, int64_t)
{
    size_sum += mr_tensor_strings(&element->tensors[0])[0].size_bytes;
}

static void subtract_size(const mr_element *element, int64_t)
{
    size_sum -= mr_tensor_strings(&element->tensors[0])[0].size_bytes;
}

TEST(recipes_of_records)
{
    make_images();
    const char *records = test_path("records/*.tfrecord");
    CHECK_EQ(run(shuffled_epochs(records, 3), nullptr), 72);
    CHECK_EQ(run(mr_dataset_unique(shuffled_epochs(records, 3)), nullptr), 24);
    CHECK_EQ(run(mr_dataset_records(records), add_size), 24);
    for (int worker = 0; worker < 3; worker++) CHECK_EQ(run(worker_part(records, 3, worker), subtract_size), 8);
    CHECK_EQ(size_sum, 0);
    CHECK_EQ(run(worker_batches(records, 3, 1), nullptr), 2);
    CHECK_EQ(run(mr_dataset_unique(interleaved_files(records)), nullptr), 24);
    CHECK(digest_of(interleaved_files(records)) == digest_of(interleaved_files(records)));
}

TEST(recipe_reports_errors)
{
    const char *path = test_path("stderr");
    CHECK(freopen(path, "w", stderr) != nullptr);
    CHECK_EQ(print_elements(mr_dataset_records("missing.tfrecord")), -1);
    CHECK_EQ(fflush(stderr), 0);
    CHECK_EQ(program_run("grep -q 'missing.tfrecord: no such file' '%s'", path)->exit_code, 0);
}

static void check_tolerant(const mr_element *element, int64_t)
{
    CHECK_EQ(element->tensors[0].dtype, MR_UINT8);
}

TEST(recipe_skips_bad_records)
{
    make_images();
    program_run("cd '%s' && printf damage | dd of=records/photos-all-00000-of-00002.tfrecord bs=1 seek=3000 "
                "conv=notrunc status=none",
                test_directory());
    int64_t count = run(mr_dataset_unbatch(tolerant_images(test_path("records/*.tfrecord"))), check_tolerant);
    CHECK_EQ(count, 23);
}

static int64_t padded_count, value_count;

static void check_sequences(const mr_element *element, int64_t)
{
    const int64_t *values = mr_tensor_int64s(&element->tensors[0]);
    CHECK_EQ(element->tensors[0].shape.rank, 2);
    for (int64_t i = 0; i < mr_tensor_count(&element->tensors[0]); i++) {
        padded_count += values[i] == -1;
        value_count += values[i] == 'a';
    }
}

TEST(recipes_of_sequences)
{
    save_text("lines.txt", "a\naaaaaaaaaa\naaa\naa\naaaaaaaaa\naaaaaaaaaaaaaaaaaaaa\naaaaaaaaaaaaaaaaaaa\na\n");
    CHECK_EQ(run(padded_sequences(test_path("lines.txt")), check_sequences), 2);
    CHECK_EQ(value_count, 65);
    int64_t padded = padded_count;
    CHECK_EQ(padded, 4 * 10 + 4 * 20 - 65);
    padded_count = 0;
    value_count = 0;
    CHECK_EQ(run(bucketed_sequences(test_path("lines.txt")), check_sequences), 3);
    CHECK_EQ(value_count, 65);
    CHECK(padded_count < padded / 4);
}

static void check_window(const mr_element *element, int64_t number)
{
    check_batch(element, 0, MR_FLOAT, MR_SHAPE(5));
    for (int i = 0; i < 5; i++) CHECK(mr_tensor_floats(&element->tensors[0])[i] == number + i);
}

static void check_squares(const mr_element *element, int64_t)
{
    check_batch(element, 0, MR_FLOAT, MR_SHAPE(10));
    const float *x = mr_tensor_floats(&element->tensors[0]), *y = mr_tensor_floats(&element->tensors[1]);
    for (int i = 0; i < 10; i++) CHECK_NEAR(y[i], x[i] * x[i], 6);
}

static void check_people(const mr_element *element, int64_t number)
{
    if (number != 0) return;
    CHECK(mr_string_equal(mr_tensor_strings(&element->tensors[0])[0], MR_STR("Ada")));
    CHECK_EQ(mr_tensor_int64s(&element->tensors[1])[1], 41);
    CHECK_NEAR(mr_tensor_floats(&element->tensors[2])[0], 61.5, 0);
    CHECK_NEAR(mr_tensor_floats(&element->tensors[2])[1], -1, 0);
}

TEST(recipes_of_numbers)
{
    mr_error error = {0};
    mr_tensor series = {0};
    CHECK_OK(mr_tensor_init(&series, MR_FLOAT, MR_SHAPE(20), &error));
    for (int i = 0; i < 20; i++) mr_tensor_floats(&series)[i] = (float)i;
    CHECK_EQ(run(series_windows(&series), check_window), 16);
    mr_tensor_deinit(&series);
    CHECK_EQ(run(noisy_squares(100), check_squares), 10);
    CHECK(digest_of(noisy_squares(100)) == digest_of(noisy_squares(100)));
    save_text("people.csv", "name,age,weight\nAda,36,61.5\nBob,41,\nCyd,29,70.25\n");
    CHECK_EQ(run(people(test_path("people.csv")), check_people), 2);
    CHECK_EQ(run(squares(), nullptr), 100);
}

static int64_t common_count, rare_count;

static void count_mixture(const mr_element *element, int64_t)
{
    common_count += mr_tensor_int64s(&element->tensors[0])[0] < 100;
}

static void count_classes(const mr_element *element, int64_t)
{
    rare_count += mr_tensor_int64s(&element->tensors[0])[0] == 1;
}

TEST(recipes_of_mixtures)
{
    CHECK_EQ(run(mixture(mr_dataset_range(0, 100, 1), mr_dataset_range(100, 110, 1)), count_mixture), 1000);
    CHECK(common_count > 700 && common_count < 800);
    int64_t count = run(balanced(10000), count_classes);
    CHECK_NEAR((double)rare_count / (double)count, 0.5, 0.05);
}

TEST(recipe_computes_mean)
{
    mr_error error = {0};
    mr_tensor pixels = {0};
    double mean = 0;
    CHECK_OK(mr_tensor_init_copy(&pixels, MR_UINT8, MR_SHAPE(3, 2), (uint8_t[]){0, 10, 20, 30, 40, 50}, &error));
    mr_dataset *d = mr_dataset_from_slices(&pixels, 1);
    CHECK_OK(mean_pixel(d, &mean, &error));
    CHECK_NEAR(mean, 25, 1e-9);
    mr_dataset_free(d);
    mr_tensor_deinit(&pixels);
}

TEST(recipe_resumes)
{
    mr_error error = {0};
    mr_tensor half = {0}, complete = {0};
    mr_dataset *d = squares();
    CHECK_OK(resume(d, 20, &half, &error));
    CHECK_OK(resume(d, 30, &half, &error));
    CHECK_OK(resume(d, 50, &complete, &error));
    CHECK(mr_string_equal(mr_tensor_strings(&half)[0], mr_tensor_strings(&complete)[0]));
    CHECK_STATUS(resume(d, 51, &complete, &error), MR_OUT_OF_RANGE);
    mr_tensor_deinit(&half);
    mr_dataset_free(d);
}

TEST(recipe_measures)
{
    mr_error error = {0};
    CHECK(freopen("/dev/null", "w", stdout) != nullptr);
    CHECK_OK(measure(noisy_squares(1000), "/cpu:0", &error));
}
