/* The memory budget of all stages, for elements of any size. The tests measure the memory that the process uses, as a
 * cgroup would, but without the privileges that creating one requires. */
#include "tests/kernels/images.h"
#include "tests/pipeline/pipelines.h"

#include <stdio.h>
#include <sys/resource.h>

/* 100 images in one file. The 38th has 50 megapixels (150 MB of pixels), the others are small. */
static const char *write_images(void)
{
    mr_error error = {0};
    const char *path = test_path("images.tfrecord");
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(path, MR_OPTIONS(mr_record_writer_options, .index = true), &writer, &error));
    for (int i = 0; i < 100; i++) {
        int width = i == 37 ? 8660 : 60 + i, height = i == 37 ? 5774 : 50;
        unsigned char *pixels = calloc((size_t)width * (size_t)height, 1);
        CHECK(pixels != nullptr);
        for (int k = 0; k < width * height; k += 97) pixels[k] = (unsigned char)k;
        test_bytes jpeg = test_encode_jpeg(pixels, width, height, &(test_jpeg_options){.channels = 1});
        CHECK_OK(mr_record_writer_append(writer, (char *)jpeg.bytes, jpeg.size_bytes, &error));
        free(pixels);
        free(jpeg.bytes);
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    return path;
}

static size_t status_kilobytes(const char *format)
{
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != nullptr);
    size_t kilobytes = 0;
    for (char line[256]; fgets(line, sizeof line, file) && kilobytes == 0;) (void)!sscanf(line, format, &kilobytes);
    fclose(file);
    return kilobytes;
}

/* The pages that were touched, as a cgroup counts them. */
static size_t peak_bytes(void)
{
    return status_kilobytes("VmHWM: %zu kB") * 1024;
}

static size_t forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    CHECK(file != nullptr);
    CHECK(fputs("5", file) >= 0);
    CHECK_EQ(fclose(file), 0);
    return peak_bytes();
}

/* Counts the elements of the dataset and frees it. */
static int64_t count_within(mr_dataset *dataset, size_t budget_bytes, size_t beyond_bytes, int32_t threads)
{
    size_t before_bytes = forget_peak();
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    int64_t count = 0;
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = threads, .budget_bytes = budget_bytes),
                             &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK) count++;
    CHECK_STATUS(status, MR_OUT_OF_RANGE);
    size_t taken_bytes = peak_bytes() - before_bytes;
    if (taken_bytes > budget_bytes + beyond_bytes)
        test_fail(__FILE__, __LINE__, "%zu MiB were taken, with a budget of %zu MiB and %zu MiB beyond it",
                  taken_bytes >> 20, budget_bytes >> 20, beyond_bytes >> 20);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return count;
}

static mr_dataset *shuffled(const char *path, int64_t epochs)
{
    return mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(path), .seed = 3), epochs);
}

static constexpr size_t MIB = (size_t)1 << 20;
/* Memory that one element may need beyond the budget: the record and the pixels of an image of 50 megapixels. The slack
 * covers the previous element, which the caller still owns, and memory that malloc returns late. */
static constexpr size_t RECORD_BYTES = 20 * MIB, PIXELS_BYTES = 50 * MIB, SLACK_BYTES = 96 * MIB;
/* Stacks, and arenas that malloc reserves for threads without filling them. */
static constexpr size_t STACKS_BYTES = 24 * 8 * MIB;

TEST(budget_limits_crops_of_huge_images)
{
    if (test_is_sanitized()) test_skip("a sanitizer has memory of its own");
    const char *path = write_images();
    mr_dataset *d = mr_dataset_decode_image(
        shuffled(path, 10), .seed = 1, .image = MR_OPTIONS(mr_image_options, .height = 64, .width = 64, .channels = 3));
    CHECK_EQ(count_within(mr_dataset_prefetch(mr_dataset_batch(d, 50), 8), 48 * MIB, RECORD_BYTES + SLACK_BYTES, 4),
             20);
}

/* Uncropped images: without the budget, five of 150 MB would be read ahead. */
TEST(budget_limits_huge_images)
{
    if (test_is_sanitized()) test_skip("a sanitizer has memory of its own");
    const char *path = write_images();
    mr_dataset *d = mr_dataset_decode_image(
        mr_dataset_repeat(mr_dataset_skip(mr_dataset_take(mr_dataset_records(path), 40), 35), 4),
        .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8, .channels = 3));
    CHECK_EQ(count_within(mr_dataset_prefetch(d, 64), 400 * MIB, 3 * PIXELS_BYTES + SLACK_BYTES, 4), 20);
}

/* Memory that an element needs beyond the budget is granted to one element at a time. */
TEST(budget_smaller_than_an_element_goes_on)
{
    const char *path = write_images();
    mr_dataset *d = mr_dataset_decode_image(mr_dataset_skip(mr_dataset_take(mr_dataset_records(path), 60), 30),
                                            .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8, .channels = 1));
    CHECK_EQ(count_within(mr_dataset_prefetch(d, 16), 4 * MIB, RECORD_BYTES + 2 * PIXELS_BYTES + SLACK_BYTES, 4), 30);
}

/* Memory of strings is reused for the next batch, except that of unusually large strings. */
static mr_status make_string(void *context, const mr_element *input, mr_random *random, mr_element *output,
                             mr_error *error)
{
    (void)context, (void)random;
    size_t size_bytes = *mr_tensor_int64s(&input->tensors[0]) % 50 == 7 ? 8 * MIB : 100;
    char *bytes = calloc(1, size_bytes);
    CHECK(bytes != nullptr);
    output->count = 1;
    mr_status status = mr_tensor_init_strings(&output->tensors[0], MR_SCALAR, &(mr_string){bytes, size_bytes}, error);
    free(bytes);
    return status;
}

TEST(budget_unusual_strings_are_freed)
{
    if (test_is_sanitized()) test_skip("a sanitizer has memory of its own");
    static const mr_element_spec spec = {.count = 1, .dtypes = {MR_STRING}, .shapes = {{.rank = 0}}};
    mr_dataset *d = mr_dataset_map(mr_dataset_range(0, 10000, 1), make_string, nullptr, &spec);
    CHECK_EQ(count_within(mr_dataset_prefetch(mr_dataset_batch(d, 16), 4), 64 * MIB, SLACK_BYTES, 1), 625);
}

/* Private writable memory, touched or not, as RLIMIT_DATA counts it. */
static size_t data_bytes(void)
{
    return status_kilobytes("VmData: %zu kB") * 1024;
}

/* ---- All stages together, under a limit enforced by the system ---- */

static mr_status any(void *context, const mr_element *input, bool *keep, mr_error *error)
{
    (void)context, (void)input, (void)error;
    *keep = true;
    return MR_OK;
}

/* 10 epochs of decoded images, shuffled, and a cache of reduced ones: retained elements, read-ahead and the threads'
 * working memory share one budget. Allocations beyond the budget fail. */
TEST(budget_is_one_for_shuffle_cache_and_batches)
{
    if (test_is_sanitized()) test_skip("a sanitizer has memory of its own");
    constexpr size_t BUDGET_BYTES = 256 * MIB, BEYOND_BYTES = RECORD_BYTES + 3 * PIXELS_BYTES + SLACK_BYTES;
    const char *path = write_images();
    mr_dataset *whole = mr_dataset_decode_image(
        shuffled(path, 10), .image = MR_OPTIONS(mr_image_options, .dtype = MR_UINT8, .channels = 1));
    /* A stream, so that the shuffle buffers images instead of element numbers. */
    whole = mr_dataset_shuffle(mr_dataset_filter(whole, any, nullptr), .buffer_size = 30, .seed = 2);
    mr_dataset *small = mr_dataset_decode_image(mr_dataset_records(path),
                                                .image = MR_OPTIONS(mr_image_options, .height = 32, .width = 32));
    small = mr_dataset_repeat(mr_dataset_cache(small, nullptr), 10);
    mr_dataset *pair = mr_dataset_prefetch(mr_dataset_zip((mr_dataset *[]){whole, small}, 2), 16);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_DATA, &limit), 0);
    limit.rlim_cur = data_bytes() + BUDGET_BYTES + BEYOND_BYTES + STACKS_BYTES;
    CHECK_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
    CHECK_EQ(count_within(pair, BUDGET_BYTES, BEYOND_BYTES, 4), 1000);
}
