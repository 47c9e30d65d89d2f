/* Which image of a record is its main image, class names from tfds metadata, the contents of HTML pages other than
 * thumbnails, and CSV that is read back. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <jansson.h>
#include <sys/stat.h>

static const program_result *run(const char *command)
{
    return program_run("cd '%s' && export LC_ALL=C.UTF-8; %s", test_directory(), command);
}

static void check(int exit_code, const char *command, const char *part)
{
    const program_result *result = run(command);
    if (result->exit_code != exit_code || !strstr(result->output, part))
        test_fail(__FILE__, __LINE__, "%s: %d: %s", command, result->exit_code, result->output);
}

static void save(const char *path, const char *text)
{
    file_save(path, (const unsigned char *)text, strlen(text));
}

static mr_string text_of(test_bytes bytes)
{
    return (mr_string){(const char *)bytes.bytes, bytes.size_bytes};
}

/* Writes a record with a small mask, a depth image and a large photograph, under the given feature names. */
static void write_images(const char *path, const char *mask, const char *depth, const char *photograph)
{
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    test_bytes small = test_png(8, 8, (test_png_options){.color_type = PNG_COLOR_TYPE_GRAY, .bits = 8}),
               middle = test_png(32, 24, (test_png_options){.color_type = PNG_COLOR_TYPE_GRAY, .bits = 16}),
               large = test_jpeg(64, 48, (test_jpeg_options){.horizontal = 1, .vertical = 1});
    mr_example_add_bytes(&encoder, mask, text_of(small));
    mr_example_add_bytes(&encoder, depth, text_of(middle));
    mr_example_add_bytes(&encoder, photograph, text_of(large));
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    examples_write_one(path, record);
    mr_example_encoder_deinit(&encoder);
    free(small.bytes);
    free(middle.bytes);
    free(large.bytes);
}

TEST(cat_main_image_is_encoded_then_image_then_the_largest)
{
    static const struct {
        const char *mask, *depth, *photograph, *main;
    } rows[] = {
        {"a_mask", "depth", "image", "64"},
        {"a_mask", "depth", "photo", "64"},
        {"a_mask", "depth", "z", "64"},
        {"image", "depth", "a_photo", "8"},
        {"a_mask", "image/encoded", "image", "32"},
        {"image/encoded", "image", "a_photo", "8"},
        {"image", "image/encoded", "z", "32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[200], part[64];
        write_images(test_path("r.tfrecord"), rows[i].mask, rows[i].depth, rows[i].photograph);
        snprintf(command, sizeof command,
                 "rm -rf h e; tfrecord-cat --html h r.tfrecord && grep -o '\"W\":[0-9]*' h/data/page*");
        snprintf(part, sizeof part, "\"W\":%s\n", rows[i].main);
        check(0, command, part);
        /* The file name of the main image does not contain a feature name; those of the others do. */
        snprintf(part, sizeof part, "r-00000000.%s\n", strcmp(rows[i].main, "64") == 0 ? "jpg" : "png");
        check(0, "tfrecord-cat --extract e r.tfrecord > said 2>&1; ls e/*", part);
    }
    /* The main image is chosen among the features that --features selects. */
    write_images(test_path("r.tfrecord"), "mask", "depth", "image");
    check(0, "rm -rf e; tfrecord-cat --extract e --features '!image' r.tfrecord > said 2>&1; ls e/*",
          "r-00000000.mask.png\nr-00000000.png\n");
}

static void make_tfds(void)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK(mkdir(test_path("pets"), 0777) == 0);
    save(test_path("pets/features.json"),
         "{\"featuresDict\": {\"features\": {\"label\": {\"classLabel\": {\"numClasses\": \"3\"}, \"pythonClassName\": "
         "\"x.ClassLabel\"}, \"breed\": {\"classLabel\": {\"numClasses\": \"2\"}, \"pythonClassName\": "
         "\"x.ClassLabel\"}}}}");
    save(test_path("pets/dataset_info.json"), "{\"name\": \"pets\", \"version\": \"1.0.0\"}");
    save(test_path("pets/label.labels.txt"), "cat\ndog\nbird\n");
    save(test_path("pets/breed.labels.txt"), "plain\nfancy\n");
    CHECK_OK(mr_record_writer_open(test_path("pets/pets-train.tfrecord-00000-of-00001"), nullptr, &writer, &error));
    for (int i = 0; i < 9; i++) {
        mr_example_add_int64(&encoder, "label", i % 4); /* class 3 has no name */
        mr_example_add_int64_list(&encoder, "breed", (int64_t[]){0, i & 1}, 2);
        mr_example_add_int64(&encoder, "other", i);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
}

TEST(cat_where_and_stats_know_the_labels_of_tfds)
{
    static const struct {
        const char *where, *count;
    } rows[] = {
        {"label == \"cat\"", "3\n"},
        {"\"dog\" == label", "2\n"},
        {"label != \"cat\"", "4\n"},
        {"label =~ \"^(cat|bird)$\"", "5\n"},
        {"label contains \"ir\"", "2\n"},
        {"label == 3", "2\n"},
        {"label == \"none\"", "0\n"},
        {"breed == \"fancy\"", "4\n"},
        {"!(breed == \"fancy\") && label == 0", "3\n"},
        {"other == \"cat\"", "0\n"},
    };
    make_tfds();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[200];
        snprintf(command, sizeof command, "tfrecord-cat --count --where '%s' pets 2>said; cat said", rows[i].where);
        const program_result *result = run(command);
        if (strncmp(result->output, rows[i].count, strlen(rows[i].count)) != 0)
            test_fail(__FILE__, __LINE__, "%s: %s", rows[i].where, result->output);
        bool has_note = strstr(result->output, "text is compared with a number") != nullptr;
        CHECK_EQ(has_note, strncmp(rows[i].where, "other", 5) == 0);
        snprintf(command, sizeof command, "tfrecord-cat --json --where '%s' pets 2>said | wc -l", rows[i].where);
        check(0, command, rows[i].count);
    }
    check(0, "tfrecord-cat --stats pets", "0 cat");
    check(0, "tfrecord-cat --stats pets", "1 fancy ");
    check(0, "tfrecord-cat --stats --json pets", "{\"label\": 2, \"text\": \"bird\", \"count\": 2}");
    check(0, "tfrecord-cat --html h pets && cat h/data/about.js", "\"name\":\"pets 1.0.0\"");
}

TEST(cat_html_contains_full_images_names_and_classes_of_boxes)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    test_bytes image = test_jpeg(600, 400, (test_jpeg_options){.horizontal = 1, .vertical = 1});
    const float low[] = {0.25f, 0.1f}, high[] = {0.5f, 0.2f};
    const mr_string texts[] = {MR_STR("dog"), MR_STR("cat")};
    for (int shard = 0; shard < 2; shard++) {
        CHECK_OK(
            mr_record_writer_open(test_path("pets-train-%05d-of-00002.tfrecord", shard), nullptr, &writer, &error));
        mr_example_add_bytes(&encoder, "image", text_of(image));
        mr_example_add_float_list(&encoder, "image/object/bbox/xmin", low, 2);
        mr_example_add_float_list(&encoder, "image/object/bbox/ymin", low, 2);
        mr_example_add_float_list(&encoder, "image/object/bbox/xmax", high, 2);
        mr_example_add_float_list(&encoder, "image/object/bbox/ymax", high, 2);
        mr_example_add_bytes_list(&encoder, "image/object/class/text", texts, shard == 0 ? 2 : 1);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
    mr_example_encoder_deinit(&encoder);
    check(0, "tfrecord-cat --html h pets-train@2.tfrecord && cat h/data/about.js",
          "\"boxes\":[\n[\"dog\",2],\n[\"cat\",1]],\n\"name\":\"pets-train\"");
    check(0, "cat h/data/page-000000.js", "\"i\":\"images/00000/00000001.jpg\"}\n]);");
    check(0, "cat h/data/search-000000.js", ",\"dog\\ncat\"],");
    size_t size;
    unsigned char *bytes = file_load(test_path("h/images/00000/00000000.jpg"), &size);
    CHECK(size == image.size_bytes && memcmp(bytes, image.bytes, size) == 0);
    free(bytes);
    free(image.bytes);
}

TEST(cat_csv_is_read_back_by_make)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    static const float numbers[] = {1.5f, NAN, INFINITY, -INFINITY, 0, 1e-30f};
    CHECK_OK(mr_record_writer_open(test_path("a.tfrecord"), nullptr, &writer, &error));
    for (int i = 0; i < 6; i++) {
        mr_example_add_float(&encoder, "number", numbers[i]);
        mr_example_add_int64(&encoder, "count", i - 2);
        mr_example_add_bytes(&encoder, "text", mr_string_from(i % 2 ? "a, \"b\"" : "plain"));
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    static const char *const forms[] = {"", "--crlf"};
    for (int i = 0; i < 2; i++) {
        char command[300];
        snprintf(
            command, sizeof command,
            "rm -rf back; tfrecord-cat --csv %s a.tfrecord > a.csv && tfrecord-make --out back a.csv > said 2>&1 && "
            "tfrecord-cat --csv back | sort > b.csv; cat said; "
            "tfrecord-cat --csv a.tfrecord | sort | diff - b.csv && echo same",
            forms[i]);
        check(0, command, "same\n");
    }
    check(0, "cat b.csv", "nan,");
    check(0, "tfrecord-cat --schema back", "number   float  1 ");
}
