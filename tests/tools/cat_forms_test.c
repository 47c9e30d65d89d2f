/* The output forms of tfrecord-cat (blocks, JSON, CSV) for Examples, SequenceExamples, other bytes, and tfds
 * directories. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <millrace/image.h>

#include <math.h>

static const char *write_sequence(const char *path)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    static const int64_t ones[] = {1, 2}, others[] = {30};
    static const mr_string words[] = {{"a", 1}, {"\xff", 1}};
    mr_example_add_int64(&encoder.context, "length", 2);
    mr_sequence_add_int64_list(&encoder, "tokens", ones, 2);
    mr_sequence_add_int64_list(&encoder, "tokens", others, 1);
    mr_sequence_add_bytes_list(&encoder, "words", words, 2);
    mr_sequence_add_list(&encoder, "zero");
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    examples_write_one(path, record);
    mr_sequence_encoder_deinit(&encoder);
    return path;
}

TEST(cat_shows_sequence_examples)
{
    const char *path = write_sequence(test_path("s"));
    const program_result *result = program_run("tfrecord-cat %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, ", a SequenceExample\n");
    CHECK_CONTAINS(result->output, "  length  int64  2\n");
    CHECK_CONTAINS(result->output, "  tokens  list   [2 steps] int64 [2] 1 2 | 30\n");
    CHECK_CONTAINS(result->output, "  zero    list   [0 steps]\n");
    result = program_run("tfrecord-cat --json %s", path);
    CHECK_CONTAINS(result->output, "\"context\": {\"length\": {\"int64\": [2]}}, \"feature_lists\": {\"tokens\": "
                                   "[{\"int64\": [1, 2]}, {\"int64\": [30]}], \"words\": [{\"base64\": [\"YQ==\", "
                                   "\"/w==\"]}], \"zero\": []}}\n");
    CHECK_STR(program_run("tfrecord-cat --csv %s 2>/dev/null", path)->output, "length\n2\n");
    CHECK_CONTAINS(program_run("tfrecord-cat --csv %s", path)->output, "tokens (a feature list)");
    CHECK_CONTAINS(program_run("tfrecord-cat --where 'tokens == 30' -f tokens %s", path)->output, "2 steps");
}

TEST(cat_json_pretty)
{
    const char *path = test_path("p");
    examples_write(path, 2, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --json --pretty -f 'l*,no\\*such' --record 1 %s", path);
    CHECK_CONTAINS(result->output, "  \"record\": 1,\n");
    CHECK_CONTAINS(result->output, "  \"features\": {\n    \"label\": {\"int64\": [1]}\n  }\n}\n");
    result = program_run("tfrecord-cat --json -f 'raw,text' --bytes hex --head 1 %s", path);
    CHECK_CONTAINS(result->output, "{\"raw\": {\"hex\": [\"0001ff\"]}, \"text\": {\"hex\": [\"6772c3bc");
    result = program_run("tfrecord-cat --json --raw --head 1 %s", path);
    CHECK_CONTAINS(result->output, "\"offset\": 0, \"base64\": \"");
    if (program_run("command -v python3")->exit_code != 0) return;
    result = program_run("tfrecord-cat --json --pretty %s | python3 -c 'import json, sys\n"
                         "text, decoder, labels = sys.stdin.read(), json.JSONDecoder(), []\n"
                         "while text.strip():\n"
                         "    record, end = decoder.raw_decode(text.lstrip())\n"
                         "    text = text.lstrip()[end:]\n"
                         "    labels.append(record[\"features\"][\"label\"][\"int64\"][0])\n"
                         "print(labels)'",
                         path);
    CHECK_STR(result->output, "[0, 1]\n");
}

TEST(cat_floats_read_back_the_same)
{
    enum { COUNT = 4'000 };
    static float values[COUNT];
    uint32_t state = 12345 + (uint32_t)test_seed();
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        uint32_t bits = i < 256 ? (uint32_t)i << 23 | (state & 1) : state ^ state >> 15;
        memcpy(&values[i], &bits, 4);
        if (!isfinite(values[i])) values[i] = (float)i / 8;
    }
    values[0] = -0.0f, values[1] = 1e9f, values[2] = 123456.7f, values[3] = 1e-4f, values[4] = 0.1f;
    mr_example_add_float_list(&encoder, "f", values, COUNT);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    examples_write_one(test_path("f"), record);
    const program_result *result =
        program_run("tfrecord-cat --json %s | sed 's/.*\"float\": .//; s/].*//; s/, /\\n/g'", test_path("f"));
    const char *at = result->output;
    CHECK(strncmp(at, "-0\n1e9\n123456.7\n0.0001\n0.1\n", 27) == 0);
    for (int i = 0; i < COUNT; i++) {
        char *end;
        float back = strtof(at, &end);
        if (memcmp(&back, &values[i], 4) != 0)
            test_fail(__FILE__, __LINE__, "%.*s is read back as %.9g, not %.9g", (int)(end - at), at, (double)back,
                      (double)values[i]);
        at = end + 1;
    }
    mr_example_encoder_deinit(&encoder);
}

TEST(cat_csv_has_scalars_and_quotes)
{
    const char *path = test_path("c");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    static const char *const texts[] = {"plain", "a,b", "say \"hi\"", "two\r\nlines", "", "gr\xc3\xbc\xc3\x9f"};
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 6; i++) {
        mr_example_add_bytes(&encoder, "text, quoted", mr_string_from(texts[i]));
        mr_example_add_int64(&encoder, "n", -i);
        if (i % 2) mr_example_add_float(&encoder, "sometimes", (float)i / 3);
        mr_example_add_bytes(&encoder, "raw", MR_STR("\x00\x01"));
        mr_example_add_float_list(&encoder, "box", (float[]){1, 2.5f}, 2);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    CHECK_STR(program_run("tfrecord-cat --csv %s 2>/dev/null", path)->output,
              "n,\"text, quoted\",sometimes\n0,plain,\n-1,\"a,b\",0.33333334\n-2,\"say \"\"hi\"\"\",\n"
              "-3,\"two\r\nlines\",1\n-4,\"\",\n-5,gr\xc3\xbc\xc3\x9f,1.6666666\n");
    const program_result *result = program_run("tfrecord-cat --csv %s >/dev/null", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "omits box (up to 2 values), raw (not text); use --features to");
    CHECK_STR(program_run("tfrecord-cat --csv -n 1 -f 'n,none,box,raw' %s", path)->output,
              "n,none,box,raw\n0,,1;2.5,base64:AAE=\n");
    CHECK_STR(program_run("tfrecord-cat --csv --crlf -n 1 --bytes hex -f 'raw,t*\\, *' %s", path)->output,
              "raw,\"text, quoted\"\r\n0001,706c61696e\r\n");
    /* A feature that first occurs in a later record has no column. A record that is not an Example has no row. */
    record_write(test_path("both"), 3, 100, (mr_record_writer_options){0});
    result = program_run("tfrecord-cat --csv --features n %s", test_path("both"));
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output,
                   "both: record 1 at byte 16: not an Example; row skipped, like 1 more in this file\n");
}

TEST(cat_csv_tells_of_columns_that_come_late)
{
    const char *path = test_path("late");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < 1'003; i++) {
        mr_example_add_int64(&encoder, "n", i);
        if (i >= 1'001) mr_example_add_int64(&encoder, "late", i);
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
    CHECK_STR(program_run("tfrecord-cat --csv %s 2>/dev/null | wc -l", path)->output, "1004\n");
    CHECK_STR(program_run("tfrecord-cat --csv %s >/dev/null", path)->output,
              "tfrecord-cat: 2 records have features without a column, such as \"late\"\n");
}

TEST(cat_marks_features_that_others_hide)
{
    /* Feature "a" three times: {1: {1: "a", 2: {3: {1: 1}}}}, the same with 2, and one without a list. The last one
     * that has a list counts. */
    static const char twice[] = "\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x01"
                                "\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x02"
                                "\x0a\x07\x0a\x05\x0a\x01\x61\x12\x00";
    examples_write_one(test_path("h"), (mr_string){twice, sizeof twice - 1});
    const program_result *result = program_run("tfrecord-cat %s", test_path("h"));
    CHECK_CONTAINS(result->output, "  a     int64  1 (hidden)\n  a     int64  2\n  a     none   (no list) (hidden)\n");
    result = program_run("tfrecord-cat --json %s", test_path("h"));
    CHECK_CONTAINS(result->output, "\"features\": {\"a\": {\"int64\": [2]}}}");
    CHECK_STR(program_run("tfrecord-cat --csv %s", test_path("h"))->output, "a\n2\n");
}

TEST(cat_finds_twins_among_many_features)
{
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    char name[20];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "f%d", i);
        mr_example_add_int64(&encoder, name, i);
    }
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    size_t size = record.size_bytes;
    char *both = malloc(2 * size);
    memcpy(both, record.data, size);
    memcpy(both + size, record.data, size);
    examples_write_one(test_path("m"), (mr_string){both, 2 * size});
    CHECK_STR(program_run("tfrecord-cat %s | grep -c hidden", test_path("m"))->output, "500\n");
    CHECK_STR(program_run("tfrecord-cat --json %s | grep -o '\"f[0-9]' | wc -l", test_path("m"))->output, "500\n");
    free(both);
    mr_example_encoder_deinit(&encoder);
}

/* Creates a directory as tensorflow_datasets 4.9 writes it. */
static void make_tfds(void)
{
    static const char features[] =
        "{\"featuresDict\": {\"features\": {"
        "\"image\": {\"image\": {\"dtype\": \"uint8\", \"encodingFormat\": \"png\", \"shape\": {\"dimensions\":"
        " [\"-1\", \"-1\", \"3\"]}}, \"pythonClassName\": \"tensorflow_datasets.core.features.image_feature.Image\"},"
        "\"label\": {\"classLabel\": {\"numClasses\": \"3\"}, \"pythonClassName\": \"x.ClassLabel\"},"
        "\"objects\": {\"sequence\": {\"length\": \"-1\", \"feature\": {\"featuresDict\": {\"features\": {"
        "\"label\": {\"classLabel\": {\"numClasses\": \"2\"}, \"pythonClassName\": \"x.ClassLabel\"},"
        "\"bbox\": {\"boundingBox\": {\"dtype\": \"float32\", \"shape\": {\"dimensions\": [\"4\"]}},"
        " \"pythonClassName\": \"x.BBoxFeature\"}}}}}},"
        "\"words\": {\"translation\": {\"languages\": [\"en\", \"fr\"]}},"
        "\"text\": {\"text\": {}, \"pythonClassName\": \"x.Text\"}}}}";
    static const char info[] =
        "{\"name\": \"pets\", \"version\": \"1.0.0\", \"description\": \"Cats.\\nAnd dogs.\","
        " \"splits\": [{\"name\": \"train\", \"numBytes\": \"4096\", \"shardLengths\": [\"2\", \"1\"]}]}";
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_EQ(program_run("mkdir -p '%s/pets/1.0.0'", test_directory())->exit_code, 0);
    file_save(test_path("pets/1.0.0/features.json"), (const unsigned char *)features, sizeof features - 1);
    file_save(test_path("pets/1.0.0/dataset_info.json"), (const unsigned char *)info, sizeof info - 1);
    file_save(test_path("pets/1.0.0/label.labels.txt"), (const unsigned char *)"cat\ndog, big\nb\xc3\xa4r\n", 18);
    file_save(test_path("pets/1.0.0/objects-label.labels.txt"), (const unsigned char *)"ear\nnose\n", 9);
    mr_example_add_int64(&encoder, "label", 2);
    mr_example_add_int64_list(&encoder, "objects/label", (int64_t[]){1, 0, 7}, 3);
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    examples_write_one(test_path("pets/1.0.0/pets-train.tfrecord-00000-of-00001"), record);
    mr_example_encoder_deinit(&encoder);
}

TEST(cat_knows_the_labels_of_tfds_directories)
{
    make_tfds();
    const program_result *result = program_run("tfrecord-cat %s", test_path("pets"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "  label          int64  2 (b\xc3\xa4r)\n");
    CHECK_CONTAINS(result->output, "  objects/label  int64  [3] 1 (nose) 0 (ear) 7\n");
    result = program_run("tfrecord-cat --about %s", test_path("pets"));
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "dataset: pets 1.0.0\n");
    CHECK_CONTAINS(result->output, "about:   Cats.\n");
    CHECK_CONTAINS(result->output, "  train: 3 records in 2 files, 4.0 KiB\n");
    CHECK_CONTAINS(result->output, "  image          Image png ? \xc3\x97 ? \xc3\x97 3 of uint8\n");
    CHECK_CONTAINS(result->output, "  label          ClassLabel of 3\n    cat, dog, big, b\xc3\xa4r\n");
    CHECK_CONTAINS(result->output, "  objects/bbox   sequence of BBoxFeature 4 of float32\n");
    CHECK_CONTAINS(result->output, "  words/fr       Text of a translation\n");
    CHECK(examples_columns(examples_on_terminal(60, "tfrecord-cat --about %s", test_path("pets"))) <= 60);
    /* Records are printed even if the metadata is damaged. */
    file_save(test_path("pets/1.0.0/features.json"), (const unsigned char *)"{\"featuresDict\": [", 18);
    result = program_run("tfrecord-cat %s", test_path("pets"));
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "features.json: line 1: ");
    CHECK_CONTAINS(result->output, "int64  2\n");
    CHECK_EQ(program_run("tfrecord-cat --about %s", test_path("pets"))->exit_code, 1);
}
