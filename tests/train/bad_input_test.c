/* Training with damaged data, damaged checkpoints and full or read-only disks, mostly with train-images: one clear
 * message, exit code 1, and earlier checkpoints remain unchanged. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"
#include "tests/train/small_training.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Writes records of a few images for train-images to test_path("records"). */
static void make_records(void)
{
    const program_result *result =
        program_run("cd %s && photographs --out photos/of/things --count 24 && "
                    "tfrecord-make --out records --name p --split train=0.8,validation=0.2 photos/of/things",
                    test_directory());
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
}

/* Runs train-images in the test's directory. It must fail with a message of one line that contains these parts. */
static void check_refused(const char *arguments, const char *part, const char *other)
{
    const program_result *result = program_run("cd %s && train-images %s", test_directory(), arguments);
    if (result->exit_code != 1) test_fail(__FILE__, __LINE__, "exit code %d: %s", result->exit_code, result->output);
    CHECK_CONTAINS(result->output, part);
    CHECK_CONTAINS(result->output, other);
    const char *sentence = strstr(result->output, "train-images: ");
    CHECK(sentence != nullptr);
    CHECK(strchr(sentence, '\n') == sentence + strlen(sentence) - 1);
}

static void flip_byte(const char *path, size_t offset)
{
    size_t size_bytes;
    unsigned char *bytes = file_load(path, &size_bytes);
    CHECK(offset < size_bytes);
    bytes[offset] ^= 4;
    file_save(path, bytes, size_bytes);
    free(bytes);
}

static void cut(const char *path, size_t size_bytes)
{
    CHECK_EQ(truncate(path, (off_t)size_bytes), 0);
}

TEST(train_images_reports_unsuitable_records)
{
    make_records();
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("records/p-train-00000-of-00001.tfrecord"));
    mkdir(test_path("empty"), 0777);
    check_refused("nowhere run --steps 2", "nowhere has no labels.txt", "tfrecord-make");
    check_refused("empty run --steps 2", "empty has no labels.txt", "tfrecord-make");
    file_save(test_path("empty/labels.txt"), "a\nb\n", 4);
    check_refused("empty run --steps 2", "empty/*-train-*.tfrecord", "no such file");
    check_refused("empty run --evaluate", "empty/*-validation-*.tfrecord", "no such file");
    check_refused("records run --evaluate", "run/checkpoint", "no such file");
    check_refused("records records/labels.txt --steps 2", "cannot create directory records/labels.txt", "not a dir");

    size_t size_bytes;
    unsigned char *bytes = file_load(path, &size_bytes);
    flip_byte(path, 3000);
    check_refused("records run1 --steps 4 --max-bad-records 0", "p-train-00000-of-00001.tfrecord: record 0 at byte 0",
                  "checksum");
    file_save(path, bytes, size_bytes - 100);
    check_refused("records run2 --steps 4 --max-bad-records 0", "p-train-00000-of-00001.tfrecord: record ",
                  "truncated");
    CHECK_EQ(remove(test_path("records/p-train-00000-of-00001.tfrecord.index")), 0);
    check_refused("records run3 --steps 4 --max-bad-records 0", "p-train-00000-of-00001.tfrecord: record ",
                  "truncated");
    file_save(path, "", 0);
    check_refused("records run4 --steps 4 --max-bad-records 0", "no data to train on", "");
    file_save(path, "hello, this is no record file", 29);
    check_refused("records run5 --steps 4 --max-bad-records 0", "record 0 at byte 0", "is this a TFRecord file?");
    CHECK_EQ(remove(path), 0);
    mkdir(path, 0777);
    check_refused("records run6 --steps 4 --max-bad-records 0", "p-train-00000-of-00001.tfrecord", "it is a directory");
    rmdir(path);

    /* A length that exceeds the memory of any machine, with a valid checksum. */
    memset(bytes, 0xff, 8);
    bytes[7] = 0x3f;
    uint32_t checksum = mr_crc32c_mask(mr_crc32c(0, bytes, 8));
    memcpy(bytes + 8, &checksum, 4);
    file_save(path, bytes, size_bytes);
    check_refused("records run7 --steps 4 --max-bad-records 0", "p-train-00000-of-00001.tfrecord: record 0 at byte 0",
                  "bytes");
    free(bytes);
}

TEST(train_images_names_the_record_of_an_invalid_image)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mkdir(test_path("records"), 0777);
    file_save(test_path("records/labels.txt"), "a\nb\n", 4);
    CHECK_OK(mr_record_writer_open(test_path("records/x-train-0.tfrecord"), nullptr, &writer, &error));
    mr_example_add_bytes(&encoder, "image/encoded", MR_STR("a text that somebody called holiday.jpg"));
    mr_example_add_int64(&encoder, "image/class/label", 0);
    mr_string record;
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    check_refused("records run --steps 4 --max-bad-records 0", "records/x-train-0.tfrecord: record 0",
                  "neither JPEG nor PNG");

    CHECK_OK(mr_record_writer_open(test_path("records/x-train-0.tfrecord"), nullptr, &writer, &error));
    mr_example_add_int64(&encoder, "image/class/label", 0);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    check_refused("records run2 --steps 4 --max-bad-records 0", "records/x-train-0.tfrecord: record 0",
                  "image/encoded");
    mr_example_encoder_deinit(&encoder);
}

TEST(train_images_goes_on_past_an_index_that_is_stale_or_damaged)
{
    make_records();
    const char *index = test_path("records/p-train-00000-of-00001.tfrecord.index");
    flip_byte(index, 60);
    CHECK_EQ(program_run("cd %s && train-images records run --steps 1", test_directory())->exit_code, 0);
    CHECK_EQ(program_run("cd %s && touch records/p-train*.tfrecord && train-images records run --steps 2 && "
                         "train-images records run --steps 2",
                         test_directory())
                 ->exit_code,
             0);
    cut(index, 10);
    CHECK_EQ(program_run("cd %s && train-images records run --steps 3", test_directory())->exit_code, 0);
}

TEST(train_images_refuses_options_that_make_no_sense)
{
    static const char *const wrong[] = {"",
                                        "a",
                                        "a b c",
                                        "a b --frob",
                                        "a b --steps",
                                        "a b --steps 0",
                                        "a b --steps x",
                                        "a b --steps 5x",
                                        "a b --max-bad-records",
                                        "a b --max-bad-records -1",
                                        "a b --max-bad-records ''"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const program_result *result = program_run("cd %s && train-images %s", test_directory(), wrong[i]);
        CHECK_EQ(result->exit_code, 2);
        CHECK_CONTAINS(result->output, "usage: train-images RECORDS RUN");
    }
    CHECK_EQ(program_run("train-images --help")->exit_code, 0);
}

static mr_status train(const char *run, int64_t last_step, mr_error *error)
{
    char records[1024];
    snprintf(records, sizeof records, "%s", test_path("small.tfrecord"));
    if (access(records, F_OK) != 0) small_records_write(records);
    *error = (mr_error){0};
    return small_training(records, run, last_step, 2, error);
}

static size_t file_size(const char *path)
{
    struct stat about;
    CHECK_EQ(stat(path, &about), 0);
    return (size_t)about.st_size;
}

TEST(training_on_a_damaged_checkpoint_names_it_with_advice)
{
    mr_error error = {0};
    char run[1024], index[1024], data[1024], state[1024];
    snprintf(run, sizeof run, "%s", test_path("run"));
    snprintf(index, sizeof index, "%s", test_path("run/model.ckpt-6.index"));
    snprintf(data, sizeof data, "%s", test_path("run/model.ckpt-6.data-00000-of-00001"));
    snprintf(state, sizeof state, "%s", test_path("run/checkpoint"));
    CHECK_OK(train(run, 6, &error));
    flip_byte(data, file_size(data) / 2);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "run/model.ckpt-6.data-00000-of-00001: key ");
    CHECK_CONTAINS(error.message, "change the first line of ");
    CHECK_CONTAINS(error.message, "run/checkpoint to name \"model.ckpt-4\"");
    flip_byte(data, file_size(data) / 2);

    size_t size_bytes;
    unsigned char *bytes = file_load(index, &size_bytes);
    cut(index, size_bytes / 2);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "run/model.ckpt-6.index: ");
    file_save(index, bytes, size_bytes);
    flip_byte(index, 40);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "run/model.ckpt-6.index: ");
    CHECK_EQ(remove(index), 0);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "run/model.ckpt-6.index: named in ");
    file_save(index, bytes, size_bytes);
    free(bytes);

    bytes = file_load(state, &size_bytes);
    file_save(state, "", 0);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "names no checkpoint");
    CHECK_CONTAINS(error.message, "choose another directory");
    file_save(state, "model_checkpoint_path: model.ckpt-6\n", 36);
    CHECK_STATUS(train(run, 8, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "line 1 is not a quoted path");

    /* Follows the recommendation of the message. */
    flip_byte(data, 99);
    file_save(state, "model_checkpoint_path: \"model.ckpt-4\"\n", 38);
    CHECK_OK(train(run, 8, &error));
    CHECK_OK(train(test_path("whole"), 8, &error));
    const program_result *result = program_run("cmp %s/run/model.ckpt-8.data-00000-of-00001 "
                                               "%s/whole/model.ckpt-8.data-00000-of-00001",
                                               test_directory(), test_directory());
    CHECK_STR(result->output, "");
    free(bytes);
}

TEST(training_on_a_disk_that_is_full_or_read_only_loses_nothing)
{
    mr_error error = {0};
    char disk[1024], run[1024];
    snprintf(disk, sizeof disk, "%s", test_path("disk"));
    snprintf(run, sizeof run, "%s", test_path("disk/run"));
    mkdir(disk, 0777);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", disk, "tmpfs", 0, "size=600k") != 0)
        test_skip("a small tmpfs needs root");
    CHECK_OK(train(run, 4, &error));

    /* The disk may be full at any point of a save: a file takes all free space except `pages` pages. */
    for (int pages = 0; pages < 40; pages++) {
        const program_result *result =
            program_run("cd %s && rm -f filler run/events* && free=$(df --output=avail -k . | tail -1) && "
                        "head -c $(((free - 4 * %d) * 1024)) /dev/zero > filler",
                        disk, pages);
        CHECK_EQ(result->exit_code, 0);
        mr_status status = train(run, 6, &error);
        if (status == MR_OK) break;
        CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
        CHECK_CONTAINS(error.message, ": the disk is full");
        char latest[1024];
        CHECK_OK(mr_latest_checkpoint(run, latest, sizeof latest, &error));
        CHECK_CONTAINS(latest, "model.ckpt-4");
        CHECK_EQ(program_run("ls %s/*.partial %s/model.ckpt-6*", run, run)->exit_code, 2);
        CHECK(pages < 39);
    }
    CHECK_EQ(program_run("rm -f %s/filler", disk)->exit_code, 0);
    CHECK_OK(train(run, 8, &error));

    CHECK_EQ(mount("none", disk, nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    CHECK_STATUS(train(run, 10, &error), MR_PERMISSION_DENIED);
    CHECK_CONTAINS(error.message, "read-only");
    CHECK_STATUS(train(test_path("disk/other"), 10, &error), MR_PERMISSION_DENIED);
    CHECK_CONTAINS(error.message, "read-only");
    char latest[1024];
    CHECK_OK(mr_latest_checkpoint(run, latest, sizeof latest, &error));
    CHECK_CONTAINS(latest, "model.ckpt-8");
    (void)umount(disk);
}

TEST(programs_name_files_that_may_not_be_read)
{
    make_records();
    CHECK_EQ(program_run("cd %s && cp -r records copy && chmod 000 records/p-train* photos/of/things/ball/*",
                         test_directory())
                 ->exit_code,
             0);
    CHECK_EQ(program_run("cd %s && chmod 755 . .. && mkdir open && chmod 777 open", test_directory())->exit_code, 0);
    if (geteuid() == 0 && setuid(65534) != 0) test_skip("cannot become another user");
    check_refused("records open/run --steps 2", "p-train-00000-of-00001.tfrecord", "permission denied");
    check_refused("copy closed/run --steps 2", "closed", "permission denied");
    const program_result *result =
        program_run("cd %s && tfrecord-make --out open/r photos/of/things", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos/of/things/ball/ball-");
    CHECK_CONTAINS(result->output, "permission denied");
    result = program_run("cd %s && tfrecord-cat records/p-train-00000-of-00001.tfrecord", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "permission denied");
    result = program_run("cd %s && photographs --out closed/p --count 1", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photographs: cannot create directory closed: permission denied");
}
