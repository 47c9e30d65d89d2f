/* tfrecord-cat --stats, run as a program: figures that a user can check by hand, with any number of threads, for
 * complete and for damaged files. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <expat.h>
#include <jansson.h>

/* Writes a file with known statistics: "x" is 1 … count, "real" includes NaN and infinities, "name" has three values,
 * "some" is in every fourth record. */
static void write_known(const char *path, int count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 1; i <= count; i++) {
        const float reals[] = {i == 1 ? NAN : i == 2 ? INFINITY : i == 3 ? -INFINITY : 0.5f, 0.0f};
        static const char *const names[] = {"cat", "dog", "cat", "bird \"<&>\""};
        mr_example_add_int64(&encoder, "x", i);
        mr_example_add_float_list(&encoder, "real", reals, 2);
        mr_example_add_bytes(&encoder, "name", mr_string_from(names[i % 4]));
        if (i % 4 == 0) mr_example_add_int64_list(&encoder, "some", (int64_t[]){7, 7, 7}, (size_t)(i / 4 % 4));
        mr_example_add_int64(&encoder, "image/class/label", i % 4);
        mr_example_add_bytes(&encoder, "image/class/text", mr_string_from(names[i % 4]));
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

/* Parses the JSON object; the caller releases it with json_decref. */
static json_t *load(const char *text)
{
    json_error_t error;
    json_t *made = json_loads(text, 0, &error);
    if (!made) test_fail(__FILE__, __LINE__, "line %d: %s: %.200s", error.line, error.text, text);
    return made;
}

/* The number at a path of names. */
static double number_at(json_t *object, const char *a, const char *b, const char *c, const char *d)
{
    const char *const names[] = {a, b, c, d};
    for (int i = 0; i < 4 && names[i]; i++) object = json_object_get(object, names[i]);
    if (!json_is_number(object))
        test_fail(__FILE__, __LINE__, "no number at %s %s %s %s", a, b ? b : "", c ? c : "", d ? d : "");
    return json_number_value(object);
}

TEST(cat_stats_prints_correct_figures)
{
    const char *path = test_path("known.tfrecord");
    write_known(path, 400);
    const program_result *result = program_run("LC_ALL=C.UTF-8 tfrecord-cat --stats %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "400 records, ");
    CHECK_CONTAINS(result->output, "\nx  int64\n  in all records  400 values, 1 a record\n");
    CHECK_CONTAINS(result->output, "  min 1  max 400  mean 200.5  std 115.5  █");
    CHECK_CONTAINS(result->output, "  1 %: 4  5 %: 20  25 %: 100  median 200  75 %: 300");
    CHECK_CONTAINS(result->output, "\nreal  float\n  in all records  800 values, 2 a record\n");
    CHECK_CONTAINS(result->output, "  50.0 % are 0  1 NaN  1 +inf  1 -inf\n  min 0  max 0.5");
    CHECK_CONTAINS(result->output, "\nname  bytes\n");
    CHECK_CONTAINS(result->output, "  3 B to 10 B, mean 5 B, median 3 B\n");
    CHECK_CONTAINS(result->output, "  most frequent:  \"cat\" 50.0 %  \"bird \\\"<&>\\\"\" 25.0 %  \"dog\" 25.0 %\n");
    CHECK_CONTAINS(result->output, "\nsome  int64\n  in 25.0 %, missing in 300  150 values, 0 to 3 a record, mean 1.5");
    CHECK_CONTAINS(result->output, "Classes: image/class/label\n  4 classes, equally large\n");
    CHECK_CONTAINS(result->output, "  1 dog ");
    CHECK_CONTAINS(result->output, "  100  25.0 %\n");
}

TEST(cat_stats_json_has_all_digits)
{
    const char *path = test_path("known.tfrecord");
    write_known(path, 400);
    for (int pretty = 0; pretty < 2; pretty++) {
        const char *form = pretty ? "--json --pretty --stats" : "--stats --json";
        json_t *all = load(program_run("tfrecord-cat %s %s", form, path)->output);
        CHECK(number_at(all, "records", 0, 0, 0) == 400);
        CHECK(number_at(all, "features", "x", "int64", "max") == 400);
        CHECK_NEAR(number_at(all, "features", "x", "int64", "std"), sqrt((400.0 * 400 - 1) / 12), 1e-9);
        CHECK(number_at(all, "features", "real", "float", "nan") == 1);
        CHECK(number_at(all, "features", "real", "float", "minus_infinity") == 1);
        CHECK_NEAR(number_at(all, "features", "real", "float", "mean"), 397 * 0.5 / 797, 1e-12);
        CHECK(number_at(all, "features", "some", "missing", 0) == 300);
        CHECK(number_at(all, "features", "some", "values_per_record", "zeros") == 25);
        json_t *classes =
            json_object_get(json_object_get(json_object_get(all, "classes"), "image/class/label"), "classes");
        CHECK_EQ(json_array_size(classes), 4);
        json_t *first = json_array_get(classes, 0);
        CHECK_EQ(json_integer_value(json_object_get(first, "label")), 0);
        CHECK_STR(json_string_value(json_object_get(first, "text")), "cat");
        CHECK_EQ(json_integer_value(json_object_get(first, "count")), 100);
        json_decref(all);
    }
}

/* Several files, split into several parts: the output is identical for any number of threads, and the figures are those
 * of all files. */
TEST(cat_stats_does_not_depend_on_threads)
{
    const char *directory = test_directory();
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    uint64_t state = test_seed();
    double sum = 0;
    int64_t count = 0;
    for (int file = 0; file < 3; file++) {
        CHECK_OK(mr_record_writer_open(test_path("%d.tfrecord", file), nullptr, &writer, &error));
        for (int i = 0; i < (file == 1 ? 30'000 : 2'000); i++) {
            float values[64];
            int length = file == 2 ? 32 : 64;
            for (int j = 0; j < length; j++) {
                state = state * 6364136223846793005u + 1442695040888963407u;
                sum += values[j] = (float)(state >> 40) * 0x1p-24f;
            }
            count += length;
            mr_example_add_float_list(&encoder, "values", values, (size_t)length);
            mr_example_add_int64(&encoder, "label", (int64_t)(state >> 60));
            CHECK_OK(mr_example_finish(&encoder, &record, &error));
            CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
        }
        CHECK_OK(mr_record_writer_close(writer, &error));
    }
    mr_example_encoder_deinit(&encoder);
    static char one[1 << 16];
    snprintf(one, sizeof one, "%s",
             program_run("tfrecord-cat --stats --json --jobs 1 %s 2>/dev/null", directory)->output);
    for (int jobs = 2; jobs <= 7; jobs += 5) {
        const program_result *result =
            program_run("tfrecord-cat --stats --json --jobs %d %s 2>/dev/null", jobs, directory);
        CHECK_EQ(result->exit_code, 0);
        CHECK_STR(result->output, one);
    }
    json_t *all = load(one);
    CHECK(number_at(all, "features", "values", "values", 0) == count);
    CHECK(number_at(all, "features", "values", "values_per_record", "count") == 34'000);
    CHECK(number_at(all, "features", "values", "values_per_record", "min") == 32);
    CHECK_NEAR(number_at(all, "features", "values", "values_per_record", "mean"), (double)count / 34'000, 1e-9);
    CHECK_NEAR(number_at(all, "features", "values", "float", "mean"), sum / (double)count, 1e-9);
    CHECK_NEAR(number_at(all, "features", "values", "float", "std"), sqrt(1 / 12.0), 1e-3);
    json_t *quantiles = json_object_get(
        json_object_get(json_object_get(json_object_get(all, "features"), "values"), "float"), "quantiles");
    CHECK_NEAR(json_number_value(json_object_get(quantiles, "0.25")), 0.25, 0.01);
    CHECK_NEAR(json_number_value(json_object_get(quantiles, "0.95")), 0.95, 0.01);
    json_decref(all);
}

TEST(cat_stats_continues_after_damage)
{
    const char *path = test_path("damaged.tfrecord");
    write_known(path, 400);
    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[index.offsets[100] + 30] ^= 1;
    bytes[index.offsets[200] + 3] ^= 1;
    file_save(path, bytes, size);
    free(bytes);
    mr_record_index_deinit(&index);
    const program_result *result = program_run("tfrecord-cat --stats %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "record 100 at byte");
    CHECK_CONTAINS(result->output, "record 200 at byte");
    CHECK_CONTAINS(result->output, "398 records, ");
    CHECK_CONTAINS(result->output, "without 2 damaged regions");
    CHECK_CONTAINS(result->output, "min 1  max 400");

    /* A file in another format is an error; the other files are still counted. */
    file_save(test_path("text.tfrecord"), "plain text, which is long enough to be a header", 47);
    result = program_run("tfrecord-cat --stats %s %s", test_path("text.tfrecord"), path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "398 records, ");

    /* Records that are not Examples. */
    record_write(test_path("bytes.tfrecord"), 50, 300, (mr_record_writer_options){0});
    result = program_run("tfrecord-cat --stats %s %s", path, test_path("bytes.tfrecord"));
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "records that are not Examples");
    CHECK_CONTAINS(result->output, "bytes.tfrecord: record 1 at byte 16: ");
    result = program_run("tfrecord-cat --stats --raw %s", test_path("bytes.tfrecord"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "50 records, ");
    CHECK_CONTAINS(result->output, "bytes of a record: 0 B to ");
}

TEST(cat_stats_of_selected_records_and_features)
{
    const char *path = test_path("known.tfrecord");
    write_known(path, 400);
    const program_result *result = program_run("tfrecord-cat --stats --where 'x > 300' --features 'x,na*' %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "100 records, ");
    CHECK_CONTAINS(result->output, "min 301  max 400  mean 350.5");
    CHECK_CONTAINS(result->output, "\nname  bytes\n");
    CHECK(strstr(result->output, "real") == nullptr);
    CHECK_CONTAINS(program_run("tfrecord-cat --stats --head 10 - < %s", path)->output, "min 1  max 10 ");
    CHECK_CONTAINS(program_run("gzip -c %s | tfrecord-cat --stats", path)->output, "min 1  max 400 ");
    CHECK_EQ(program_run("tfrecord-cat --stats --jobs 0 %s", path)->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-cat --svg x.svg %s", path)->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-cat --stats %s/none", test_directory())->exit_code, 1);
    CHECK_EQ(program_run("tfrecord-cat --stats %s | head -1 | wc -l", path)->exit_code, 0);
}

TEST(cat_stats_counts_the_steps_of_sequences)
{
    const char *path = test_path("sequences.tfrecord");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_sequence_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 100; i++) {
        mr_example_add_int64(&encoder.context, "length", i % 5);
        mr_sequence_add_list(&encoder, "tokens");
        for (int64_t step = 0; step < i % 5; step++) mr_sequence_add_int64_list(&encoder, "tokens", &step, 1);
        CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_sequence_encoder_deinit(&encoder);
    const program_result *result = program_run("tfrecord-cat --stats %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "100 records (100 SequenceExamples)");
    CHECK_CONTAINS(result->output,
                   "\ntokens  int64\n  list in all records  200 values, 0 to 4 steps a record, mean 2, median 2");
    CHECK_CONTAINS(result->output, "\nlength  int64\n");
    json_t *all = load(program_run("tfrecord-cat --stats --json %s", path)->output);
    CHECK(number_at(all, "feature_lists", "tokens", "int64", "max") == 3);
    CHECK(number_at(all, "feature_lists", "tokens", "steps_per_record", "count") == 100);
    json_decref(all);
}

/* Each record has features of its own. The first thousand names in sorted order are kept, regardless of the order of
 * the records. */
TEST(cat_stats_bounds_the_features)
{
    for (int turn = 0; turn < 2; turn++) {
        const char *path = test_path("many%d.tfrecord", turn);
        mr_error error = {0};
        mr_record_writer *writer = nullptr;
        mr_example_encoder encoder = {0};
        mr_string record;
        CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
        for (int i = 0; i < 2000; i++) {
            char name[32];
            snprintf(name, sizeof name, "f%06d", turn ? 1999 - i : i);
            mr_example_add_int64(&encoder, name, i);
            mr_example_add_int64(&encoder, "common", i);
            CHECK_OK(mr_example_finish(&encoder, &record, &error));
            CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
        }
        mr_example_encoder_deinit(&encoder);
        CHECK_OK(mr_record_writer_close(writer, &error));
        const program_result *result = program_run("tfrecord-cat --stats --json %s | cut -c1-2000; "
                                                   "tfrecord-cat --stats %s | grep -c '^f0'; "
                                                   "tfrecord-cat --stats %s | grep '^f0' | tail -1; "
                                                   "tfrecord-cat --stats %s | grep -A2 only",
                                                   path, path, path, path);
        CHECK_CONTAINS(result->output, "\"more_features\": true");
        CHECK_CONTAINS(result->output, "\n999\n");
        CHECK_CONTAINS(result->output, "\nf000998  int64\n");
        CHECK_CONTAINS(result->output, "only the first 1000 features by name");
        CHECK_CONTAINS(result->output, "common  int64\n");
    }
}

static void XMLCALL take_text(void *context, const char *text, int length)
{
    size_t used = strlen(context);
    if (used + (size_t)length < 100'000) memcpy((char *)context + used, text, (size_t)length);
}

TEST(cat_stats_svg_bears_any_name)
{
    const char *path = test_path("a & <b>\n.tfrecord"), *svg = test_path("out & <b>.svg");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 50; i++) {
        mr_example_add_int64(&encoder, "]]></text><script>alert(1)</script>\x1b[2J\xff", i);
        mr_example_add_int64(&encoder, "label", i % 3);
        mr_example_add_bytes(&encoder, "label/text", i % 3 ? MR_STR("<b>\n&amp;") : MR_STR("\xff\xfe\x01"));
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
    const program_result *result = program_run("tfrecord-cat --stats --svg '%s' '%s'", svg, path);
    CHECK_EQ(result->exit_code, 0);
    CHECK(strchr(result->output, '\x1b') == nullptr);
    size_t size;
    unsigned char *text = file_load(svg, &size);
    static char seen[100'000];
    XML_Parser parser = XML_ParserCreate("UTF-8");
    XML_SetUserData(parser, seen);
    XML_SetCharacterDataHandler(parser, take_text);
    CHECK(XML_Parse(parser, (const char *)text, (int)size, 1) == XML_STATUS_OK);
    XML_ParserFree(parser);
    free(text);
    CHECK_CONTAINS(seen, "]]></text><script>alert(1)</script>\\x1b[2J\\xff");
    CHECK_CONTAINS(seen, "1 <b>\\n&amp;");
    CHECK_CONTAINS(seen, "0 \\xff\\xfe\\x01");
    result = program_run("tfrecord-cat --stats --svg /nowhere/x.svg '%s'", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "/nowhere/x.svg");
    json_decref(load(program_run("tfrecord-cat --stats --json '%s'", path)->output));
}

TEST(cat_stats_fits_60_columns)
{
    const char *path = test_path("known.tfrecord");
    write_known(path, 400);
    CHECK(examples_columns(examples_on_terminal(60, "tfrecord-cat --stats %s", path)) <= 60);
    examples_write(test_path("more.tfrecord"), 100, (mr_record_writer_options){0});
    CHECK(examples_columns(
              examples_on_terminal(60, "LC_ALL=C.UTF-8 tfrecord-cat --stats %s", test_path("more.tfrecord"))) <= 60);
}
