/* tfrecord-make, run as a program: the conversion of a directory, bad directories, full disks, and SIGKILL. */
#include "tests/kill.h"
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>
#include <millrace/image.h>

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Saves a small image that depends on number: a JPEG, or a PNG for every fourth number. */
static void make_image(const char *path, int number)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(16 + number % 5, 24, number % 3 ? 3 : 1), &error));
    for (int64_t i = 0; i < mr_tensor_count(&pixels); i++)
        mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i * (number + 1) / 7);
    if (number % 4 == 3)
        CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
    else
        CHECK_OK(mr_image_encode_jpeg(&pixels, 90, &bytes, &error));
    mr_string encoded = mr_tensor_strings(&bytes)[0];
    file_save(path, encoded.data, encoded.size_bytes);
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&bytes);
}

/* Creates a directory with three classes of count images each; returns its path. */
static const char *make_directory(const char *name, int count)
{
    static const char *const classes[] = {"rose", "daisy", "tulip"};
    mkdir(test_path("%s", name), 0777);
    for (int i = 0; i < 3; i++) {
        mkdir(test_path("%s/%s", name, classes[i]), 0777);
        for (int j = 0; j < count; j++)
            make_image(test_path("%s/%s/%03d.%s", name, classes[i], j, j % 4 == 3 ? "PNG" : "jpg"), j);
    }
    static char directory[1024];
    snprintf(directory, sizeof directory, "%s", test_path("%s", name));
    return directory;
}

/* Counts the records of a file; checks that each has the expected features and the bytes of its image. */
static int check_file(const char *path, const char *directory)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_string record, name, encoded, text;
    int64_t label, height, width;
    int count = 0;
    CHECK_OK(mr_record_reader_open(path, nullptr, &reader, &error));
    mr_status status;
    for (; (status = mr_record_reader_next(reader, &record, &error)) == MR_OK; count++) {
        CHECK_OK(mr_example_get_bytes(record, "image/filename", &name, &error));
        CHECK_OK(mr_example_get_bytes(record, "image/encoded", &encoded, &error));
        CHECK_OK(mr_example_get_bytes(record, "image/class/text", &text, &error));
        CHECK_OK(mr_example_get_int64(record, "image/class/label", &label, &error));
        CHECK_OK(mr_example_get_int64(record, "image/height", &height, &error));
        CHECK_OK(mr_example_get_int64(record, "image/width", &width, &error));
        CHECK_EQ(label, text.data[0] == 'd' ? 0 : text.data[0] == 'r' ? 1 : 2);
        CHECK(memcmp(name.data, text.data, text.size_bytes) == 0);
        CHECK_EQ(width, 24);
        CHECK(height >= 16 && height < 21);
        size_t size;
        unsigned char *bytes = file_load(test_path("%s/%.*s", directory, (int)name.size_bytes, name.data), &size);
        CHECK_EQ(size, encoded.size_bytes);
        CHECK(memcmp(bytes, encoded.data, size) == 0);
        free(bytes);
    }
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
    return count;
}

static void check_same(const char *a, const char *b)
{
    size_t a_size, b_size;
    unsigned char *a_bytes = file_load(a, &a_size), *b_bytes = file_load(b, &b_size);
    CHECK_EQ(a_size, b_size);
    CHECK(memcmp(a_bytes, b_bytes, a_size) == 0);
    free(a_bytes);
    free(b_bytes);
}

TEST(make_puts_every_image_into_one_record)
{
    const char *directory = make_directory("photos", 20);
    const program_result *result = program_run("tfrecord-make --out %s/out --shards 2 %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "60 images in 3 classes");
    int count = 0;
    for (int i = 0; i < 2; i++) {
        count += check_file(test_path("out/photos-train-0000%d-of-00002.tfrecord", i), "photos");
        count += check_file(test_path("out/photos-validation-0000%d-of-00002.tfrecord", i), "photos");
    }
    CHECK_EQ(count, 60);
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(test_path("out/photos-train-00000-of-00002.tfrecord"), &index, &error));
    CHECK_EQ(index.origin, MR_INDEX_LOADED);
    mr_record_index_deinit(&index);
    size_t size;
    unsigned char *labels = file_load(test_path("out/labels.txt"), &size);
    labels[size] = '\0';
    CHECK_STR((char *)labels, "daisy\nrose\ntulip\n");
    free(labels);
}

TEST(make_writes_the_same_bytes_with_any_number_of_jobs)
{
    const char *directory = make_directory("photos", 40);
    CHECK_EQ(program_run("tfrecord-make --out %s/a -j 1 --shards 3 %s", test_directory(), directory)->exit_code, 0);
    CHECK_EQ(program_run("tfrecord-make --out %s/b -j 7 --shards 3 %s", test_directory(), directory)->exit_code, 0);
    for (int i = 0; i < 3; i++)
        check_same(test_path("a/photos-train-0000%d-of-00003.tfrecord", i),
                   test_path("b/photos-train-0000%d-of-00003.tfrecord", i));
    CHECK_EQ(program_run("tfrecord-make --out %s/c -s 5 --shards 3 %s", test_directory(), directory)->exit_code, 0);
    CHECK(program_run("cmp %s/a/photos-train-00000-of-00003.tfrecord %s/c/photos-train-00000-of-00003.tfrecord",
                      test_directory(), test_directory())
              ->exit_code != 0);
}

TEST(make_keeps_an_image_in_its_split_when_others_are_added)
{
    const char *directory = make_directory("photos", 20);
    static const char list[] =
        "tfrecord-cat --json '%s/%s/photos-validation@1.tfrecord' | grep -o '\"image/filename\": "
        "{[^}]*}' | sort > %s/%s.txt";
    CHECK_EQ(program_run("tfrecord-make --out %s/a %s", test_directory(), directory)->exit_code, 0);
    CHECK_EQ(program_run(list, test_directory(), "a", test_directory(), "a")->exit_code, 0);
    make_directory("photos", 60);
    CHECK_EQ(program_run("tfrecord-make --out %s/b %s", test_directory(), directory)->exit_code, 0);
    CHECK_EQ(program_run(list, test_directory(), "b", test_directory(), "b")->exit_code, 0);
    const program_result *gone = program_run("comm -23 %s/a.txt %s/b.txt", test_directory(), test_directory());
    CHECK_STR(gone->output, "");
}

TEST(make_rewrites_only_what_has_changed)
{
    const char *directory = make_directory("photos", 20);
    CHECK_EQ(program_run("tfrecord-make --out %s/out --shards 4 %s", test_directory(), directory)->exit_code, 0);
    CHECK_CONTAINS(program_run("tfrecord-make --out %s/out --shards 4 %s", test_directory(), directory)->output,
                   "0 images written");
    make_image(test_path("photos/rose/007.PNG"), 8);
    const char *output = program_run("tfrecord-make --out %s/out --shards 4 %s", test_directory(), directory)->output;
    CHECK(!strstr(output, "\n0 images written") && !strstr(output, "\n60 images written"));
    /* Damage to a finished file is detected too. */
    file_save(test_path("out/photos-train-00001-of-00004.tfrecord"), "x", 1);
    CHECK_EQ(program_run("tfrecord-make --out %s/out --shards 4 %s", test_directory(), directory)->exit_code, 0);
    /* With another number of files the old files are removed, so that they cannot be read by mistake. */
    CHECK_EQ(program_run("tfrecord-make --out %s/out --shards 3 %s", test_directory(), directory)->exit_code, 0);
    int count = 0;
    for (int i = 0; i < 3; i++) {
        count += check_file(test_path("out/photos-train-0000%d-of-00003.tfrecord", i), "photos");
        count += check_file(test_path("out/photos-validation-0000%d-of-00003.tfrecord", i), "photos");
    }
    CHECK_EQ(count, 60);
    CHECK(access(test_path("out/photos-train-00000-of-00004.tfrecord"), F_OK) != 0);
    CHECK(access(test_path("out/photos-train-00000-of-00004.tfrecord.index"), F_OK) != 0);
    /* Files that somebody else created are not removed. */
    file_save(test_path("out/photos-train-00000-of-00009.tfrecord"), "", 0);
    const program_result *result = program_run("tfrecord-make --out %s/out --shards 3 %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "was not written for this dataset");
}

TEST(make_reports_the_fault_of_each_image)
{
    const char *directory = make_directory("photos", 10);
    size_t size;
    unsigned char *bytes = file_load(test_path("photos/rose/002.jpg"), &size);
    file_save(test_path("photos/rose/cut.jpg"), bytes, size / 2);
    file_save(test_path("photos/rose/empty.jpg"), "", 0);
    file_save(test_path("photos/rose/text.jpg"), "this is text\n", 13);
    file_save(test_path("photos/rose/odd \x1b[31m\n.jpg"), "x", 1);
    file_save(test_path("photos/rose/jpeg.png"), bytes, size); /* a JPEG in spite of its name */
    CHECK_EQ(symlink("/nowhere", test_path("photos/rose/link.jpg")), 0);
    free(bytes);
    const program_result *result =
        program_run("tfrecord-make --out %s/out --on-error skip %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "rose/cut.jpg: the JPEG image is truncated");
    CHECK_CONTAINS(result->output, "rose/empty.jpg: the file is empty");
    CHECK_CONTAINS(result->output, "rose/text.jpg: not an image");
    CHECK_CONTAINS(result->output, "rose/link.jpg: no such file");
    CHECK_CONTAINS(result->output, "5 images could not be used");
    CHECK_CONTAINS(result->output, "31 images written");
    CHECK(strchr(result->output, '\x1b') == nullptr);

    result = program_run("tfrecord-make --out %s/stop %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--on-error skip");
    CHECK_EQ(program_run("ls %s/stop/*.tfrecord", test_directory())->exit_code, 2);
}

TEST(make_of_bad_images_alone_makes_no_files)
{
    mkdir(test_path("photos"), 0777);
    mkdir(test_path("photos/rose"), 0777);
    for (int i = 0; i < 5; i++) file_save(test_path("photos/rose/%d.jpg", i), "no image", 8);
    const char *directory = test_directory();
    const program_result *result =
        program_run("cd %s; tfrecord-make --on-error skip --shards 2 --out out photos", directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos: none of its images can be used; no files were written\n");
    CHECK_STR(program_run("ls -A %s/out", directory)->output, "");
    /* The same with several workers. */
    CHECK_EQ(program_run("cd %s; tfrecord-make --on-error skip --shards 2 --out out --worker 1/2 photos && "
                         "tfrecord-make --on-error skip --shards 2 --out out --worker 2/2 photos",
                         directory)
                 ->exit_code,
             0);
    result = program_run("cd %s; tfrecord-make --on-error skip --shards 2 --out out --finish photos", directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "none of its images can be used");
    CHECK_STR(program_run("ls -A %s/out", directory)->output, "");
    /* Files of an earlier run are kept, and are recognized as files of this dataset. */
    make_directory("good", 4);
    CHECK_EQ(program_run("cd %s; tfrecord-make --name x --split a=1 --out out good", directory)->exit_code, 0);
    CHECK_EQ(
        program_run("cd %s; tfrecord-make --name x --split a=1 --shards 3 --on-error skip --out out photos", directory)
            ->exit_code,
        1);
    CHECK_EQ(check_file(test_path("out/x-a-00000-of-00001.tfrecord"), "good"), 12);
    CHECK_EQ(program_run("cd %s; tfrecord-make --name x --split a=1 --shards 2 --out out good && ls out/x*", directory)
                 ->exit_code,
             0);
    CHECK(access(test_path("out/x-a-00000-of-00001.tfrecord"), F_OK) != 0);
}

TEST(make_goes_on_when_images_vanish)
{
    /* Standard error is not read while messages about empty images are printed, so the program blocks. Meanwhile the
     * valid images that it has not reached are removed. */
    make_directory("photos", 40);
    const program_result *result =
        program_run("cd %s; for i in $(seq 1000 1800); do : >photos/rose/%0200d-$i.jpg; done; mkfifo said; "
                    "tfrecord-make -j 1 --on-error skip --split a=1 --out out photos >summary 2>said & exec 3<said; "
                    "head -c 20000 <&3 >first; rm photos/*/0??.*; cat <&3 >rest; wait $!; e=$?; tail -n 1 rest; cat "
                    "summary; exit $e",
                    test_directory(), 0);
    CHECK_EQ(result->exit_code, 0);
    const char *written = strstr(result->output, " images written"), *bad = strstr(result->output, " images could");
    if (!written || !bad) test_fail(__FILE__, __LINE__, "%s", result->output);
    while (written > result->output && written[-1] >= '0' && written[-1] <= '9') written--;
    while (bad > result->output && bad[-1] >= '0' && bad[-1] <= '9') bad--;
    CHECK_EQ(atoi(written) + atoi(bad), 120 + 801);
    CHECK(atoi(written) > 0 && atoi(bad) > 801);
    result =
        program_run("cd %s; grep -c '^tfrecord-make: cannot open photos/[a-z]*/0[0-9]*[.][a-zA-Z]*: no such file or "
                    "directory$' rest; tfrecord-cat --verify out/*.tfrecord",
                    test_directory());
    CHECK_EQ(atoi(result->output), atoi(bad) - 801);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "no faults");
}

TEST(make_accepts_any_file_name)
{
    make_directory("photos", 3);
    static const char *const names[] = {"with blanks.jpg", "line\nbreak.jpg", "\xff\xfe no UTF-8.jpg", "%41:colon.jpg",
                                        "-dash.jpg"};
    for (size_t i = 0; i < 5; i++) make_image(test_path("photos/rose/%s", names[i]), 2);
    make_image(test_path("photos/rose/half\n\xff.png"), 3);
    file_save(test_path("photos/rose/bad \x1b[2J\n\xff.jpg"), "x", 1);
    for (int i = 0; i < 2; i++) {
        const program_result *result =
            program_run("cd %s; tfrecord-make --out 'the out' --split all=1 --name 'a name' --on-error skip photos",
                        test_directory());
        CHECK_EQ(result->exit_code, 0);
        CHECK_CONTAINS(result->output, "1 image could not be used");
        CHECK_CONTAINS(result->output, "1 file is not an image (rose/bad \\x1b[2J\\n\\xff.jpg)");
        CHECK(!strchr(result->output, '\x1b') && !strchr(result->output, '\xff'));
    }
    int count = check_file(test_path("the out/a name-all-00000-of-00001.tfrecord"), "photos");
    CHECK_EQ(count, 9 + 6);
}

TEST(make_is_right_on_a_narrow_terminal)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) test_skip("needs a pseudo terminal");
    close(terminal);
    make_directory("photos", 3);
    const program_result *result = program_run("cd %s; script -qec 'stty cols 60; tfrecord-make --help; tfrecord-make "
                                               "--out out photos' /dev/null | tr -d '\\r'",
                                               test_directory());
    if (result->exit_code == 127) test_skip("script is not there");
    CHECK_CONTAINS(result->output, "9 images written");
    int columns = 0;
    for (const char *at = result->output; *at; at++) {
        if (*at == '\x1b') { /* clears the progress bar */
            at += 2;
            columns = 0;
        } else if (*at == '\n') {
            columns = 0;
        } else if (((unsigned char)*at & 0xc0) != 0x80 && ++columns > 60) {
            test_fail(__FILE__, __LINE__, "a line of more than 60 columns: %.80s", at - 60);
        }
    }
}

TEST(make_wants_images_in_class_directories)
{
    mkdir(test_path("empty"), 0777);
    const program_result *result =
        program_run("tfrecord-make --out %s/out %s/empty", test_directory(), test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no images");
    make_image(test_path("empty/a.jpg"), 1);
    result = program_run("tfrecord-make --out %s/out %s/empty", test_directory(), test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "one subdirectory for each class");
    result = program_run("tfrecord-make --out %s/out %s/nothing", test_directory(), test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no such file or directory");
    CHECK(access(test_path("out"), F_OK) != 0);
}

TEST(make_refuses_options_that_make_no_sense)
{
    static const char *const wrong[] = {"x",
                                        "--out o",
                                        "--out o x y",
                                        "--out o --split a=0.5 x",
                                        "--out o --split a=0.5,a=0.5 x",
                                        "--out o --split =1 x",
                                        "--out o --shards 0 x",
                                        "--out o --shard-size 3Q x",
                                        "--out o --jobs -1 x",
                                        "--out o --on-error maybe x",
                                        "--out o --name a/b x",
                                        "--frob x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const program_result *result = program_run("cd %s; tfrecord-make %s", test_directory(), wrong[i]);
        CHECK_EQ(result->exit_code, 2);
        CHECK_CONTAINS(result->output, "--help");
    }
    const program_result *result = program_run("tfrecord-make --help");
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "usage: tfrecord-make");
}

/* Checks that every file with a final name is complete. */
static void check_no_half_files(const char *directory)
{
    DIR *entries = opendir(directory);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        char path[2048];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (length > 9 && strcmp(entry->d_name + length - 9, ".tfrecord") == 0) (void)check_file(path, "photos");
    }
    closedir(entries);
}

TEST(make_leaves_no_partial_file_when_the_disk_is_full)
{
    const char *directory = make_directory("photos", 60);
    const program_result *result =
        program_run("ulimit -f 20; tfrecord-make --out %s/out %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "cannot write ");
    check_no_half_files(test_path("out"));
    CHECK_EQ(program_run("ls %s/out/*.partial", test_directory())->exit_code, 2);

    mkdir(test_path("disk"), 0777);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", test_path("disk"), "tmpfs", 0, "size=64k") != 0)
        test_skip("a small tmpfs needs root");
    result = program_run("tfrecord-make --out %s/disk %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, ": the disk is full");
    check_no_half_files(test_path("disk"));
    CHECK_EQ(mount("none", test_path("disk"), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
    result = program_run("tfrecord-make --out %s/disk %s", test_directory(), directory);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "read-only");
    (void)umount(test_path("disk"));
}

/* Runs tfrecord-make and kills it after kill_at changes of its directory (-1: never); returns true if it ended by
 * itself.
 * changes  receives the number of changes; may be null */
static bool run_and_kill(const char *out, const char *directory, int kill_at, int *changes)
{
    char program[1024];
    snprintf(program, sizeof program, "%s", test_bin("tfrecord-make"));
    int watch = kill_watch(out), status;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(3);
        execl(program, program, "--out", out, "--shards", "2", "-j", "2", directory, nullptr);
        _exit(2);
    }
    int count = kill_at_change(child, watch, kill_at, &status);
    if (changes) *changes = count;
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFEXITED(status);
}

TEST(make_killed_at_any_moment_shows_no_half_file_and_goes_on)
{
    char directory[1024], out[1024];
    snprintf(directory, sizeof directory, "%s", make_directory("photos", 25));
    snprintf(out, sizeof out, "%s", test_path("out"));
    CHECK_EQ(program_run("true")->exit_code, 0);
    int changes;
    CHECK(run_and_kill(test_path("whole"), directory, -1, &changes));
    uint32_t state = (uint32_t)test_seed();
    int killed = 0, rounds = 0;
    for (; killed < 50 && rounds < 300; rounds++) {
        state = state * 1664525 + 1013904223;
        if (run_and_kill(out, directory, (int)(state >> 8) % (changes + 1), nullptr)) {
            /* It ended before the kill: start over. */
            CHECK_EQ(program_run("rm -r '%s'", out)->exit_code, 0);
            continue;
        }
        killed++;
        check_no_half_files(out);
    }
    CHECK(run_and_kill(out, directory, -1, nullptr));
    for (int i = 0; i < 2; i++) {
        check_same(test_path("out/photos-train-0000%d-of-00002.tfrecord", i),
                   test_path("whole/photos-train-0000%d-of-00002.tfrecord", i));
        check_same(test_path("out/photos-validation-0000%d-of-00002.tfrecord", i),
                   test_path("whole/photos-validation-0000%d-of-00002.tfrecord", i));
    }
    CHECK_EQ(program_run("ls -A %s | grep -c partial", out)->exit_code, 1);
}
