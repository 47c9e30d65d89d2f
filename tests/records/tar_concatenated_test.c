/* Archives concatenated into one file, compared with a model: every member is read, starting at any member, by the
 * library and as samples of a dataset. */
#include "tests/records/record_data.h"
#include "tests/test.h"

#include <millrace/dataset.h>
#include <millrace/formats.h>

typedef struct bytes {
    unsigned char data[1 << 20];
    size_t size;
} bytes;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void put_member(bytes *file, const char *name, size_t size)
{
    unsigned char *block = file->data + file->size;
    CHECK(file->size + 1024 + size < sizeof file->data);
    snprintf((char *)block, 100, "%s", name);
    snprintf((char *)block + 124, 12, "%011zo", size);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    unsigned sum = 0;
    for (int i = 0; i < 512; i++) sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    memset(block + 512, 'x', size);
    file->size += 512 + (size + 511) / 512 * 512;
}

/* Archives that contain members; each archive ends with 1 to 41 blocks of zeros. */
typedef struct model {
    int archives, members;
    uint32_t archive_of[64];
    uint64_t offsets[64]; /* of the headers */
} model;

static void make_archives(bytes *file, model *model, uint64_t *random)
{
    char name[32];
    memset(file, 0, sizeof *file);
    *model = (struct model){.archives = 1 + (int)(next_random(random) % 5)};
    uint32_t ended = 0; /* archives followed by zeros: an empty one adds nothing to the zeros before it */
    bool follows_zeros = false;
    for (int i = 0; i < model->archives; i++) {
        int count = (int)(next_random(random) % 9);
        if (count > 0 && follows_zeros) ended++;
        if (count > 0) follows_zeros = false;
        for (int j = 0; j < count; j++) {
            model->offsets[model->members] = file->size;
            model->archive_of[model->members++] = ended;
            snprintf(name, sizeof name, "%d.txt", j);
            put_member(file, name, next_random(random) % 1500);
        }
        bool is_last = i == model->archives - 1;
        if (!is_last || next_random(random) % 2) file->size += 512 * (1 + next_random(random) % 41);
        follows_zeros = true;
    }
    CHECK(file->size < sizeof file->data);
}

static void check_reader(const bytes *archives, const model *model, int from)
{
    mr_error error = {0};
    mr_input_file *file = nullptr;
    mr_tar_reader *reader = nullptr;
    mr_tar_member member;
    CHECK_OK(mr_input_file_from((mr_string){(const char *)archives->data, archives->size}, "x.tar", &file, &error));
    CHECK_OK(mr_tar_reader_new(file, model->offsets[from], &reader, &error));
    for (int i = from; i < model->members; i++) {
        CHECK_OK(mr_tar_reader_next(reader, &member, &error));
        CHECK_EQ(member.header_offset, model->offsets[i]);
        CHECK_EQ(member.archive, model->archive_of[i] - model->archive_of[from]);
    }
    CHECK_STATUS(mr_tar_reader_next(reader, &member, &error), MR_OUT_OF_RANGE);
    mr_tar_reader_free(reader);
    mr_input_file_close(file);
}

TEST(tar_concatenated_archives_are_read_to_their_last_member)
{
    static bytes archives;
    model model;
    uint64_t random = test_seed();
    for (int round = 0; round < 300; round++) {
        make_archives(&archives, &model, &random);
        if (model.members == 0) continue;
        for (int from = 0; from < model.members; from += 3) check_reader(&archives, &model, from);
    }
}

TEST(tar_concatenated_ends_are_checked)
{
    static bytes archive;
    static const char *const ends[] = {"more", "\1"};
    for (size_t i = 0; i < 2; i++) {
        mr_error error = {0};
        mr_input_file *file = nullptr;
        mr_tar_reader *reader = nullptr;
        mr_tar_member member;
        memset(&archive, 0, sizeof archive);
        put_member(&archive, "a", 10);
        archive.size += 1024;
        memcpy(archive.data + archive.size, ends[i], strlen(ends[i]));
        archive.size += i == 0 ? strlen(ends[i]) : 512;
        CHECK_OK(mr_input_file_from((mr_string){(const char *)archive.data, archive.size}, "x.tar", &file, &error));
        CHECK_OK(mr_tar_reader_new(file, 0, &reader, &error));
        CHECK_OK(mr_tar_reader_next(reader, &member, &error));
        CHECK_STATUS(mr_tar_reader_next(reader, &member, &error), MR_DATA_LOSS);
        CHECK_CONTAINS(error.message, i == 0
                                          ? "x.tar: the tar header at byte 2048 is truncated"
                                          : "x.tar: the tar header at byte 2048 follows the end of an archive and is");
        mr_tar_reader_free(reader);
        mr_input_file_close(file);
    }
}

/* The last sample of the first archive and the first one of the second have the same name, and are two samples. */
TEST(tar_concatenated_archives_are_samples_of_a_dataset)
{
    static bytes archives;
    mr_error error = {0};
    memset(&archives, 0, sizeof archives);
    for (int i = 0; i < 17; i++) {
        char name[32];
        int number = i < 10 ? i : i - 1;
        snprintf(name, sizeof name, "%d.jpg", number);
        put_member(&archives, name, 5);
        snprintf(name, sizeof name, "%d.cls", number);
        put_member(&archives, name, 1);
        if (i == 9) archives.size += 10240;
    }
    archives.size += 1024;
    file_save(test_path("x.tar"), archives.data, archives.size);
    mr_dataset *dataset = mr_dataset_tar(test_path("x.tar"), (const char *[]){"jpg", "cls"}, 2);
    CHECK_OK(mr_dataset_status(dataset, &error));
    CHECK_EQ(mr_dataset_cardinality(dataset), 17);
    mr_dataset_free(dataset);
}
