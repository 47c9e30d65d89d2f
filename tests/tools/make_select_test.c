/* Which rows tfrecord-make selects and the splits that it assigns: --include, --exclude, --stratify, --group-by,
 * --dry-run and --json. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"
#include "tools/common/glob.h"

#include <jansson.h>
#include <millrace/example.h>
#include <millrace/image.h>

#include <sys/stat.h>

TEST(globs_match_as_documented)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"*.jpg", "cat/1.jpg", true},
        {"*.jpg", "cat/1.png", false},
        {"cat", "cat/1.jpg", true},
        {"cat", "a/cat/b/1.jpg", true},
        {"cat", "cats/1.jpg", false},
        {"c?t", "cat/1.jpg", true},
        {"[a-c]at", "cat/1.jpg", true},
        {"[a-b]at", "cat/1.jpg", false},
        {"cat/*", "cat/1.jpg", true},
        {"cat/*", "a/cat/1.jpg", false},
        {"cat/*", "cat/deep/1.jpg", true},
        {"cat/*.jpg", "cat/deep/1.jpg", false},
        {"/cat", "cat/1.jpg", true},
        {"/cat", "a/cat/1.jpg", false},
        {"cat/**/1.jpg", "cat/1.jpg", true},
        {"cat/**/1.jpg", "cat/a/b/1.jpg", true},
        {"cat/**/1.jpg", "cat/a/b/2.jpg", false},
        {"**/raw/*", "a/b/raw/1.jpg", true},
        {"**/raw/*", "raw/1.jpg", true},
        {"**/raw/*", "a/raws/1.jpg", false},
        {"cat/**", "cat/1.jpg", true},
        {"cat/**", "cat", false},
        {"cat/**", "dog/1.jpg", false},
        {"**/a/**/b", "x/a/y/a/z/b/1", true},
        {"**/a/b/**/c", "a/a/b/x/c", true},
        {"a/**/b", "a/c", false},
        {"\\*.jpg", "x/*.jpg", true},
        {"\\*.jpg", "x/1.jpg", false},
        {"**", "x", true},
        {"*", "x/y", true},
        {"a/*/c", "a/b", false},
        {"a/b/", "a/b/c", true},
        {"a/b/", "a/b/", true},
        {"a/b/", "a/b", false},
        {"raw/", "a/raw/1.jpg", true},
        {"raw/", "a/raw/", true},
        {"raw/", "a/raw", false},
        {"raw", "a/raw/", true},
        {"raw", "a/raws/", false},
        {"a/**/", "a/b/c", true},
        {"a/**/", "a/b", false},
        {"/", "a", false},
        {"[!a-b]at", "cat/1.jpg", true},
        {"[!a-c]at", "cat/1.jpg", false},
        {"\\[x]", "[x]/1.jpg", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (glob_match(cases[i].pattern, cases[i].path) != cases[i].matches)
            test_fail(__FILE__, __LINE__, "\"%s\" and \"%s\"", cases[i].pattern, cases[i].path);
    /* The time stays nearly linear for every pattern. */
    char pattern[4096] = "", path[4096] = "";
    for (int i = 0; i < 500; i++) strcat(pattern, "**/a/");
    strcat(pattern, "b");
    for (int i = 0; i < 1000; i++) strcat(path, "a/");
    strcat(path, "c");
    CHECK(!glob_match(pattern, path));
}

static void save_image(const char *path, int number)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(4, 4, 1), &error));
    for (int i = 0; i < 16; i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)(number >> i % 12);
    CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
    file_save(path, mr_tensor_strings(&bytes)[0].data, mr_tensor_strings(&bytes)[0].size_bytes);
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&bytes);
}

/* Creates photos/CLASS/GROUP_NUMBER.png: images of each class, in groups of four. */
static void make_photos(const char *class, int count)
{
    static int number;
    mkdir(test_path("photos"), 0777);
    mkdir(test_path("photos/%s", class), 0777);
    for (int i = 0; i < count; i++) save_image(test_path("photos/%s/p%d_%02d.png", class, i / 4, i), number++);
}

/* Runs tfrecord-make with --json; the caller releases the summary with json_decref. */
[[gnu::format(printf, 1, 2)]] static json_t *make(const char *format, ...)
{
    char arguments[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    const program_result *result = program_run("cd %s; tfrecord-make --json %s 2>errors", test_directory(), arguments);
    if (result->exit_code != 0)
        test_fail(__FILE__, __LINE__, "%s", program_run("cat %s/errors", test_directory())->output);
    json_t *json = json_loads(result->output, 0, nullptr);
    CHECK(json != nullptr);
    return json;
}

static long long number_of(const json_t *json, const char *key)
{
    json_t *value = json_object_get(json, key);
    CHECK(json_is_integer(value));
    return json_integer_value(value);
}

static long long records_of(const json_t *json, size_t split)
{
    return number_of(json_array_get(json_object_get(json, "splits"), split), "records");
}

TEST(make_reads_only_included_paths)
{
    make_photos("cat", 8);
    make_photos("dog", 8);
    make_photos("raw", 4);
    save_image(test_path("photos/cat/thumb.png"), 7);
    json_t *json = make("--out a --exclude raw --exclude 'thumb*' photos");
    CHECK_EQ(number_of(json, "rows"), 16);
    CHECK_EQ(json_array_size(json_object_get(json, "classes")), 2);
    const json_t *note = json_array_get(json_object_get(json, "notes"), 0);
    CHECK_CONTAINS(json_string_value(json_object_get(note, "text")), "files left out by --include or --exclude");
    CHECK_EQ(number_of(note, "count"), 1);
    note = json_array_get(json_object_get(json, "notes"), 1);
    CHECK_STR(json_string_value(json_object_get(note, "text")), "directories left out by --exclude");
    CHECK_STR(json_string_value(json_object_get(note, "example")), "raw");
    json_decref(json);
    json = make("--out b --include '*/p1_*' photos");
    CHECK_EQ(number_of(json, "rows"), 8);
    json_decref(json);
    json = make("--out c --include 'cat/**' --exclude '*_00.png' photos");
    CHECK_EQ(number_of(json, "rows"), 8);
    CHECK_EQ(json_array_size(json_object_get(json, "classes")), 1);
    json_decref(json);
    /* For a list, the options apply to the paths of its rows. */
    file_save(test_path("photos/l.csv"), "path,label\ncat/p0_00.png,1\ndog/p0_00.png,2\ndog/p0_01.png,2\n", 59);
    json = make("--out d --exclude dog/p0_00.png photos/l.csv");
    CHECK_EQ(number_of(json, "written"), 2);
    json_decref(json);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out e --include nothing photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--include and --exclude leave no images");
    result = program_run("cd %s; tfrecord-make --out e --include nothing photos/l.csv", test_directory());
    CHECK_CONTAINS(result->output, "--include and --exclude leave no image");
    result = program_run("cd %s; tfrecord-make --survey --exclude raw photos", test_directory());
    CHECK_CONTAINS(result->output, "photos: 17 images in 2 classes");
}

/* The name and split of each record under a directory, sorted. */
static const char *placed(const char *out)
{
    static char text[2][1 << 16];
    static int next;
    next = !next;
    const program_result *result =
        program_run("cd %s/%s; for s in train test; do tfrecord-cat --csv --features image/filename '*'-$s-*.tfrecord "
                    "| tail -n +2 | sed \"s/$/ $s/\"; done | sort",
                    test_directory(), out);
    CHECK_EQ(result->exit_code, 0);
    snprintf(text[next], sizeof text[next], "%s", result->output);
    return text[next];
}

static int count_lines(const char *text, const char *part, const char *end)
{
    int count = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t size = strcspn(line, "\n");
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", (int)size, line);
        count += strstr(copy, part) && strcmp(copy + size - strlen(end), end) == 0;
    }
    return count;
}

TEST(make_stratify_keeps_the_shares_of_classes)
{
    make_photos("cat", 40);
    make_photos("dog", 10);
    make_photos("eel", 20);
    json_decref(make("--out a --split train=0.8,test=0.2 --stratify --name x photos"));
    const char *a = placed("a");
    CHECK_EQ(count_lines(a, "cat/", " test"), 8);
    CHECK_EQ(count_lines(a, "dog/", " test"), 2);
    CHECK_EQ(count_lines(a, "eel/", " test"), 4);
    CHECK_EQ(count_lines(a, "/", " train"), 56);
    /* Splits depend only on paths and labels: not on the seed, the number of jobs, files or workers. */
    json_decref(make("--out b --split train=0.8,test=0.2 --stratify --name x -s 9 -j 3 --shards 4 photos"));
    CHECK_STR(placed("b"), a);
    for (int i = 1; i <= 3; i++)
        json_decref(make("--out c --split train=0.8,test=0.2 --stratify --name x --shards 4 --worker %d/3 photos", i));
    json_decref(make("--out c --split train=0.8,test=0.2 --stratify --name x --shards 4 --finish photos"));
    CHECK_STR(placed("c"), a);
    /* A resumed run writes nothing again. If a class grows, the splits of the other classes do not change. */
    json_t *json = make("--out a --split train=0.8,test=0.2 --stratify --name x photos");
    CHECK_EQ(number_of(json, "written"), 0);
    CHECK_EQ(number_of(json, "reused"), 70);
    json_decref(json);
    make_photos("eel", 40);
    json_decref(make("--out e --split train=0.8,test=0.2 --stratify --name x photos"));
    a = placed("e");
    CHECK_EQ(count_lines(a, "cat/", " test"), 8);
    CHECK_EQ(count_lines(a, "dog/", " test"), 2);
    CHECK_EQ(count_lines(a, "eel/", " test"), 8);
}

TEST(make_stratify_puts_small_classes_into_all_splits)
{
    for (int i = 0; i < 60; i++) {
        char class[16];
        snprintf(class, sizeof class, "c%02d", i);
        make_photos(class, 3);
    }
    json_t *json = make("--out a --split train=0.8,test=0.2 --stratify photos");
    CHECK(records_of(json, 1) >= 24 && records_of(json, 1) <= 48);
    CHECK_EQ(records_of(json, 0) + records_of(json, 1), 180);
    json_decref(json);
    file_save(test_path("t.csv"), "path,extra\nc00/p0_00.png,1\n", 27);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out b --stratify --images photos t.csv", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--stratify requires one label for each image");
}

/* Checks that each group p0, p1, … of a class is in one split. */
static void check_groups(const char *text, const char *class, int groups)
{
    for (int i = 0; i < groups; i++) {
        char part[64];
        snprintf(part, sizeof part, "%s/p%d_", class, i);
        int train = count_lines(text, part, " train"), test = count_lines(text, part, " test");
        CHECK_EQ(train + test, 4);
        CHECK(train == 0 || test == 0);
    }
}

TEST(make_group_by_keeps_groups_together)
{
    make_photos("cat", 80);
    make_photos("dog", 80);
    json_decref(make("--out a --split train=0.7,test=0.3 --group-by '(.*)_' --name x photos"));
    const char *a = placed("a");
    check_groups(a, "cat", 20);
    check_groups(a, "dog", 20);
    int test = count_lines(a, "/", " test");
    CHECK(test > 16 && test < 96);
    /* A patient who occurs in both classes is in one split too. */
    json_decref(make("--out b --split train=0.7,test=0.3 --group-by '/(p[0-9]+)_' --name x photos"));
    const char *b = placed("b");
    for (int i = 0; i < 20; i++) {
        char part[64];
        snprintf(part, sizeof part, "/p%d_", i);
        CHECK(count_lines(b, part, " test") % 8 == 0);
    }
    /* With alternatives, the one that matches names the group; here the groups are the classes. */
    json_decref(make("--out d --split train=0.5,test=0.5 --group-by '(cat)/|(dog)/' --name x photos"));
    const char *d = placed("d");
    int cats = count_lines(d, "cat/", " test"), dogs = count_lines(d, "dog/", " test");
    CHECK((cats == 0 || cats == 80) && (dogs == 0 || dogs == 80));
    const program_result *result =
        program_run("cd %s; tfrecord-make --out c --group-by '[(]' photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "--group-by: \"[(]\" has 0 pairs of parentheses");
    result = program_run("cd %s; tfrecord-make --out c --group-by 'cat/(p[0-9]+)_' photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "photos/dog/p0_00.png: does not match --group-by");
    result = program_run("cd %s; tfrecord-make --out c --group-by '(((c{255}){255}){255})' photos", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "is not a valid pattern: the pattern has too many repetitions");
    result = program_run("cd %s; tfrecord-make --out c --group-by '(' photos", test_directory());
    CHECK_CONTAINS(result->output, "is not a valid pattern");
    CHECK(access(test_path("c"), F_OK) != 0);
}

TEST(make_group_by_column)
{
    make_photos("cat", 80);
    FILE *list = fopen(test_path("photos/l.csv"), "w");
    fprintf(list, "path,label,patient\n");
    for (int i = 0; i < 80; i++) fprintf(list, "cat/p%d_%02d.png,1,%d\n", i / 4, i, 100 + i / 4);
    CHECK_EQ(fclose(list), 0);
    json_decref(make("--out a --split train=0.7,test=0.3 --group-by patient --name x photos/l.csv"));
    check_groups(placed("a"), "cat", 20);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out b --group-by nobody photos/l.csv", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "has no feature \"nobody\" (--group-by)");
}

TEST(make_dry_run_writes_nothing_and_prints_the_plan)
{
    make_photos("cat", 40);
    json_t *json = make("--out out --dry-run --shards 2 photos");
    CHECK(access(test_path("out"), F_OK) != 0);
    CHECK_EQ(records_of(json, 0) + records_of(json, 1), 40);
    CHECK(json_is_true(json_object_get(json, "dry_run")));
    json_t *done = make("--out out --shards 2 photos");
    for (size_t i = 0; i < 2; i++) {
        const json_t *a = json_array_get(json_object_get(json, "splits"), i);
        const json_t *b = json_array_get(json_object_get(done, "splits"), i);
        CHECK_EQ(records_of(json, i), records_of(done, i));
        CHECK(json_equal(json_object_get(a, "files"), json_object_get(b, "files")));
    }
    CHECK_EQ(number_of(done, "written"), 40);
    json_decref(done);
    json_decref(json);
    char before[4096];
    snprintf(before, sizeof before, "%s", program_run("ls -la --time-style=full-iso %s/out", test_directory())->output);
    const program_result *result =
        program_run("cd %s; tfrecord-make --out out --dry-run --shards 2 photos", test_directory());
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "4 of these files are already finished\nnothing was written (--dry-run)\n");
    CHECK_STR(program_run("ls -la --time-style=full-iso %s/out", test_directory())->output, before);
    json = make("--out out --dry-run --shards 3 --worker 2/2 photos");
    CHECK(json_array_size(json_object_get(json_array_get(json_object_get(json, "splits"), 0), "files")) < 3);
    json_decref(json);
}
