/* The limit on open files: more files than the limit can be in use, by any number of threads. */
#include "records/io/open_file.h"

#include "records/io/file.h"
#include "tests/records/record_data.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int FILES = 40;

static int descriptor_count(void)
{
    int count = 0;
    DIR *entries = opendir("/proc/self/fd");
    CHECK(entries != nullptr);
    while (readdir(entries)) count++;
    closedir(entries);
    return count;
}

static void open_files(mr_open_file **files)
{
    mr_error error = {0};
    for (int i = 0; i < FILES; i++) {
        char text[16];
        struct stat about;
        snprintf(text, sizeof text, "file %d", i);
        file_save(test_path("%d", i), text, strlen(text));
        CHECK_OK(mr_open_file_new(test_path("%d", i), i % 2 == 0, &files[i], &about, &error));
    }
}

static void check_content(int descriptor, int number)
{
    char text[16] = {0}, wanted[16];
    snprintf(wanted, sizeof wanted, "file %d", number);
    CHECK(pread(descriptor, text, sizeof text - 1, 0) > 0);
    CHECK_STR(text, wanted);
}

/* Random acquires and releases, compared with a count for each file, at limits from one file to more than exist. */
TEST(open_files_are_bounded_and_right)
{
    mr_error error = {0};
    static const int limits[] = {1, 2, 7, FILES - 1, FILES, FILES + 1};
    uint64_t state = test_seed();
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        mr_open_file_limit(limits[l]);
        mr_open_file *files[FILES];
        open_files(files);
        int users[FILES] = {0}, descriptors[FILES], used = 0, peak = 0;
        for (int step = 0; step < 3000; step++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            int number = (int)(state >> 33) % FILES;
            if ((state >> 20 & 3) == 0 || users[number] == 3) {
                if (users[number] == 0) continue;
                if (--users[number] == 0) used--;
                mr_open_file_release(files[number]);
            } else {
                int descriptor;
                CHECK_OK(mr_open_file_acquire(files[number], &descriptor, &error));
                if (users[number]++ == 0)
                    used++;
                else
                    CHECK_EQ(descriptor, descriptors[number]);
                descriptors[number] = descriptor;
            }
            for (int i = step % 5; i < FILES; i += 5)
                if (users[i] > 0) check_content(descriptors[i], i);
            CHECK(mr_open_file_count() >= used);
            if (used > peak) peak = used;
            CHECK(mr_open_file_count() <= (peak > limits[l] ? peak : limits[l]));
            if (step % 100 == 99)
                for (int i = 0; i < FILES; i++)
                    for (; users[i] > 0; users[i]--) mr_open_file_release(files[i]);
            if (step % 100 == 99) used = 0;
        }
        for (int i = 0; i < FILES; i++) {
            for (; users[i] > 0; users[i]--) mr_open_file_release(files[i]);
            mr_open_file_free(files[i]);
        }
        CHECK_EQ(mr_open_file_count(), 0);
    }
    mr_open_file_limit(0);
}

typedef struct worker {
    mr_open_file **files;
    uint64_t state;
} worker;

static void *work(void *context)
{
    worker *w = context;
    for (int step = 0; step < 4000; step++) {
        w->state = w->state * 6364136223846793005u + 1442695040888963407u;
        int number = (int)(w->state >> 33) % FILES, descriptor;
        mr_error error = {0};
        CHECK_OK(mr_open_file_acquire(w->files[number], &descriptor, &error));
        check_content(descriptor, number);
        mr_open_file_release(w->files[number]);
    }
    return nullptr;
}

TEST(open_files_are_shared_by_threads)
{
    for (int limit = 1; limit < FILES; limit = limit * 3 + 1) {
        mr_open_file_limit(limit);
        mr_open_file *files[FILES];
        open_files(files);
        pthread_t threads[6];
        worker workers[6];
        for (int i = 0; i < 6; i++) {
            workers[i] = (worker){files, test_seed() + (uint64_t)i};
            CHECK_EQ(pthread_create(&threads[i], nullptr, work, &workers[i]), 0);
        }
        for (int i = 0; i < 6; i++) pthread_join(threads[i], nullptr);
        CHECK(mr_open_file_count() <= limit + 6);
        for (int i = 0; i < FILES; i++) mr_open_file_free(files[i]);
        CHECK_EQ(mr_open_file_count(), 0);
    }
    mr_open_file_limit(0);
}

TEST(open_file_reports_replacement_and_removal)
{
    mr_error error = {0};
    mr_open_file_limit(1);
    mr_open_file *files[FILES];
    open_files(files);
    int descriptor;
    file_save(test_path("other"), "file X", 6);
    CHECK_EQ(rename(test_path("other"), test_path("3")), 0);
    CHECK_STATUS(mr_open_file_acquire(files[3], &descriptor, &error), MR_ABORTED);
    CHECK_CONTAINS(error.message, "/3: the file was changed while it was in use");
    CHECK_EQ(unlink(test_path("4")), 0);
    CHECK_STATUS(mr_open_file_acquire(files[4], &descriptor, &error), MR_NOT_FOUND);
    CHECK_CONTAINS(error.message, "/4");
    CHECK_OK(mr_open_file_acquire(files[5], &descriptor, &error));
    check_content(descriptor, 5);
    mr_open_file_release(files[5]);
    for (int i = 0; i < FILES; i++) mr_open_file_free(files[i]);
    mr_open_file_limit(0);
}

/* As many record files as a large dataset has shards. */
TEST(record_files_need_few_descriptors)
{
    mr_error error = {0};
    static mr_record_file *files[300];
    mr_open_file_limit(16);
    int before = descriptor_count();
    for (int i = 0; i < 300; i++) {
        record_write(test_path("%d.tfrecord", i), 20, 50, (mr_record_writer_options){.index = true});
        CHECK_OK(mr_record_file_open(test_path("%d.tfrecord", i), &files[i], &error));
    }
    char bytes[200];
    mr_string record;
    for (int i = 0; i < 3000; i++) {
        CHECK_OK(mr_record_file_read(files[i * 7 % 300], (uint64_t)(i % 20), bytes, &record, &error));
        record_check(record, i % 20, 50);
    }
    CHECK(descriptor_count() <= before + 16);
    for (int i = 0; i < 300; i++) mr_record_file_close(files[i]);
    CHECK_EQ(descriptor_count(), before);
    mr_open_file_limit(0);
}
