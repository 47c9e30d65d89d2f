/* Cache files: one iterator writes the file while any number of others use the cache; the file is complete or does not
 * exist; a file that is damaged, belongs to another input or was left by a killed writer is replaced; a file that is
 * not a cache is unchanged. */
#include "tests/pipeline/pipelines.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 50 };

static _Atomic int calls;

static mr_status counted(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context, (void)random;
    calls++;
    MR_TRY(mr_tensor_init_int64(&output->tensors[0], mr_tensor_int64s(&input->tensors[0])[0] * 3, error));
    output->count = 1;
    return MR_OK;
}

static mr_dataset *worked(int64_t count)
{
    return mr_dataset_map(mr_dataset_range(0, count, 1), counted, nullptr, &one_int64);
}

static mr_iterator *iterate(mr_dataset *dataset)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error));
    mr_dataset_free(dataset);
    return iterator;
}

/* Checks the next `count` elements, which are 3 first, 3 (first + 1) … */
static void check_elements(mr_iterator *iterator, int64_t first, int64_t count)
{
    mr_error error = {0};
    mr_element element = {0};
    for (int64_t i = first; i < first + count; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[0])[0], 3 * i);
    }
    mr_element_deinit(&element);
}

static void check_end(mr_iterator *iterator)
{
    mr_error error = {0};
    mr_element element = {0};
    CHECK_STATUS(mr_iterator_next(iterator, &element, &error), MR_OUT_OF_RANGE);
}

static const char *warning_of(mr_iterator *iterator)
{
    static mr_stage_statistics stages[8];
    int32_t count = mr_iterator_statistics(iterator, stages, 8);
    for (int32_t i = 0; i < count; i++)
        if (stages[i].warning[0] != '\0') return stages[i].warning;
    return "";
}

/* Runs a pass over the cache: all elements are delivered, and `computed` of them are computed. */
static void check_pass(const char *path, int computed, const char *warning)
{
    calls = 0;
    mr_iterator *iterator = iterate(mr_dataset_cache(worked(COUNT), path));
    check_elements(iterator, 0, COUNT);
    check_end(iterator);
    CHECK_EQ(calls, computed);
    CHECK_CONTAINS(warning_of(iterator), warning);
    if (warning[0] == '\0') CHECK_STR(warning_of(iterator), "");
    mr_iterator_free(iterator);
}

static size_t read_file(const char *path, char *bytes, size_t capacity)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != nullptr);
    size_t size_bytes = fread(bytes, 1, capacity, file);
    CHECK(fclose(file) == 0 && size_bytes < capacity);
    return size_bytes;
}

static void write_file(const char *path, const char *bytes, size_t size_bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr && fwrite(bytes, 1, size_bytes, file) == size_bytes && fclose(file) == 0);
}

static bool exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

TEST(cache_file_of_another_pipeline_is_replaced)
{
    const char *path = strdup(test_path("foreign.cache"));
    mr_iterator *iterator = iterate(mr_dataset_cache(mr_dataset_range(0, 7, 1), path));
    mr_element element = {0};
    while (mr_iterator_next(iterator, &element, nullptr) == MR_OK) continue;
    mr_iterator_free(iterator);
    check_pass(path, COUNT, "another pipeline");
    check_pass(path, 0, "");
    char text[2000];
    iterator = iterate(mr_dataset_cache(mr_dataset_range(0, 8, 1), path));
    (void)mr_iterator_statistics_text(iterator, 80, text, sizeof text);
    CHECK_CONTAINS(text, "cache: warning: ");
    mr_iterator_free(iterator);
    free((void *)path);
}

/* Any byte of the file is damaged, or the file is truncated at any byte: the elements are correct, there is a warning,
 * and the file is valid afterwards. */
TEST(cache_file_that_is_damaged_is_replaced)
{
    const char *path = strdup(test_path("damaged.cache"));
    static char good[8192], bad[8192];
    check_pass(path, COUNT, "");
    size_t size_bytes = read_file(path, good, sizeof good);
    uint64_t state = test_seed();
    for (int i = 0; i < 60; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(state >> 33) % size_bytes;
        memcpy(bad, good, size_bytes);
        bool is_cut = i % 2 == 1;
        bad[at] = (char)(bad[at] ^ (1 << (state >> 20 & 7)));
        write_file(path, bad, is_cut ? at : size_bytes);
        /* Half of the magic identifies a cache. A shorter file is not recognized as one and is not replaced. */
        if (is_cut && at > 0 && at < 32) continue;
        mr_iterator *iterator = iterate(mr_dataset_cache(worked(COUNT), path));
        check_elements(iterator, 0, COUNT);
        check_end(iterator);
        CHECK_CONTAINS(warning_of(iterator), "replaced");
        mr_iterator_free(iterator);
        /* A file that was found damaged in the middle of a pass is replaced by the next pass. */
        iterator = iterate(mr_dataset_repeat(mr_dataset_cache(worked(COUNT), path), 2));
        check_elements(iterator, 0, COUNT);
        check_elements(iterator, 0, COUNT);
        check_end(iterator);
        mr_iterator_free(iterator);
        check_pass(path, 0, "");
    }
    /* An empty file may be replaced. */
    write_file(path, "", 0);
    check_pass(path, COUNT, "replaced");
    free((void *)path);
}

/* If it is cut between two records, the file is a valid record file but not a valid cache. */
TEST(cache_file_that_lacks_elements_is_replaced)
{
    mr_error error = {0};
    const char *path = strdup(test_path("short.cache"));
    check_pass(path, COUNT, "");
    mr_record_file *file = nullptr;
    CHECK_OK(mr_record_file_open(path, &file, &error));
    CHECK_EQ(mr_record_file_count(file), COUNT + 2);
    uint64_t end = mr_record_file_offset(file, COUNT - 3);
    mr_record_file_close(file);
    CHECK_EQ(truncate(path, (off_t)end), 0);
    check_pass(path, COUNT, "truncated");
    check_pass(path, 0, "");
    free((void *)path);
}

TEST(cache_file_that_is_none_is_left_alone)
{
    mr_error error = {0};
    const char *path = strdup(test_path("data.tfrecord"));
    char before[4096], after[4096];
    for (int which = 0; which < 2; which++) {
        mr_record_writer *writer = nullptr;
        CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
        for (int i = 0; i < 9; i++) CHECK_OK(mr_record_writer_append(writer, "precious data", 13, &error));
        CHECK_OK(mr_record_writer_close(writer, &error));
        if (which == 1) write_file(path, "a text, say", 11);
        size_t size_bytes = read_file(path, before, sizeof before);
        mr_dataset *d = mr_dataset_cache(worked(COUNT), path);
        mr_iterator *iterator = nullptr;
        CHECK_STATUS(mr_iterator_new(d, nullptr, &iterator, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, "not a cache");
        mr_dataset_free(d);
        CHECK_EQ(read_file(path, after, sizeof after), size_bytes);
        CHECK(memcmp(before, after, size_bytes) == 0);
    }
    free((void *)path);
}

TEST(cache_file_has_one_writer)
{
    const char *path = strdup(test_path("two.cache")), *partial = strdup(test_path("two.cache.partial"));
    mr_iterator *one = iterate(mr_dataset_cache(worked(COUNT), path));
    mr_iterator *other = iterate(mr_dataset_cache(worked(COUNT), path));
    /* The first iterator writes the file, the other one computes its elements. */
    check_elements(one, 0, 20);
    check_elements(other, 0, 40);
    CHECK(exists(partial) && !exists(path));
    check_elements(other, 40, 10);
    check_end(other);
    CHECK(exists(partial) && !exists(path));
    check_elements(one, 20, 30);
    check_end(one);
    CHECK(!exists(partial) && exists(path));
    mr_iterator_free(one);
    mr_iterator_free(other);
    check_pass(path, 0, "");
    /* The writer is freed before the end: another one may begin. */
    CHECK_EQ(unlink(path), 0);
    one = iterate(mr_dataset_cache(worked(COUNT), path));
    check_elements(one, 0, 20);
    mr_iterator_free(one);
    CHECK(!exists(partial));
    check_pass(path, COUNT, "");
    free((void *)path);
    free((void *)partial);
}

/* The files of a killed process do not affect other processes. */
TEST(cache_file_of_a_killed_writer_is_replaced)
{
    const char *path = strdup(test_path("killed.cache")), *partial = strdup(test_path("killed.cache.partial"));
    int ready[2], state = 0;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it waits indefinitely, also after a failed test */
        mr_iterator *iterator = iterate(mr_dataset_cache(worked(COUNT), path));
        check_elements(iterator, 0, 20);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte = 0;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    /* While it lives, other iterators compute their elements. */
    check_pass(path, COUNT, "");
    CHECK(exists(partial) && !exists(path));
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &state, 0) == child);
    CHECK(exists(partial) && !exists(path));
    check_pass(path, COUNT, "");
    CHECK(!exists(partial) && exists(path));
    check_pass(path, 0, "");
    write_file(partial, "left behind", 11);
    check_pass(path, 0, "");
    free((void *)path);
    free((void *)partial);
}

static int run_process(const char *path, bool is_snapshot, int pass)
{
    mr_dataset *d = worked(COUNT + pass % 2);
    d = is_snapshot ? mr_dataset_snapshot(d, path) : mr_dataset_cache(d, path);
    mr_iterator *iterator = iterate(mr_dataset_repeat(d, 2));
    for (int i = 0; i < 2; i++) check_elements(iterator, 0, COUNT + pass % 2);
    check_end(iterator);
    mr_iterator_free(iterator);
    return 0;
}

/* Four concurrent processes use one cache file, some of them for other data, and one snapshot directory. */
TEST(cache_file_is_shared_by_processes)
{
    const char *path = strdup(test_path("shared.cache")), *directory = strdup(test_path("snapshots"));
    for (int round = 0; round < 12; round++) {
        pid_t children[4];
        for (int i = 0; i < 4; i++) {
            children[i] = fork();
            CHECK(children[i] >= 0);
            if (children[i] == 0) _exit(run_process(round % 2 ? directory : path, round % 2, round % 4 < 2 ? 0 : i));
        }
        for (int i = 0; i < 4; i++) {
            int state = 0;
            CHECK(waitpid(children[i], &state, 0) == children[i]);
            CHECK_EQ(state, 0);
        }
        CHECK(!exists(test_path("shared.cache.partial")));
    }
    free((void *)path);
    free((void *)directory);
}

static void *run_thread(void *path)
{
    (void)run_process(path, false, 0);
    return nullptr;
}

TEST(cache_file_is_shared_by_threads)
{
    char *path = strdup(test_path("threads.cache"));
    for (int round = 0; round < 6; round++) {
        pthread_t threads[4];
        if (round % 2 == 0) (void)unlink(path);
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], nullptr, run_thread, path), 0);
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], nullptr), 0);
        check_pass(path, 0, "");
    }
    free(path);
}

TEST(trace_has_one_writer)
{
    mr_error error = {0};
    mr_iterator *one = nullptr, *other = nullptr;
    mr_dataset *d = worked(COUNT);
    const mr_iterator_options options = {.size = sizeof options, .trace_path = test_path("trace.json")};
    CHECK_OK(mr_iterator_new(d, &options, &one, &error));
    CHECK_STATUS(mr_iterator_new(d, &options, &other, &error), MR_ABORTED);
    CHECK_CONTAINS(error.message, "trace.json");
    CHECK_OK(mr_iterator_trace_stop(one, &error));
    CHECK_OK(mr_iterator_new(d, &options, &other, &error));
    mr_iterator_free(one);
    mr_iterator_free(other);
    mr_dataset_free(d);
}
