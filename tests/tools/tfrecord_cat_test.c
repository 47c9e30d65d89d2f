/* tfrecord-cat, run as a program: what it prints, the damage that it finds, and its behavior with pipes and narrow
 * terminals. */
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

TEST(cat_shows_records_as_people_read_them)
{
    const char *path = test_path("a.tfrecord");
    examples_write(path, 3, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "record 0 at byte 0, ");
    CHECK_CONTAINS(result->output, "  label  int64  2\n");
    CHECK_CONTAINS(result->output, "  ids    int64  [2] 2 -2\n");
    CHECK_CONTAINS(result->output, "  box    float  [4] 0.5 0.25 2 1e-9\n");
    CHECK_CONTAINS(result->output, "\"gr\xc3\xbc\xc3\x9f dich, \\\"Welt\\\"\\n\"");
    CHECK_CONTAINS(result->output, "«3 B: 00 01 ff»");
    CHECK(strchr(result->output, '\x1b') == nullptr);
}

TEST(cat_reads_heads_numbers_pipes_and_compressed_files)
{
    for (int i = 0; i < 3; i++) {
        const char *path = test_path("b.tfrecord");
        examples_write(path, 30, (mr_record_writer_options){.compression = (mr_compression)i, .index = i == 0});
        CHECK_STR(program_run("tfrecord-cat --count %s", path)->output, "30\n");
        CHECK_STR(program_run("tfrecord-cat --count - < %s", path)->output, "30\n");
        CHECK_STR(program_run("cat %s | tfrecord-cat -c", path)->output, "30\n");
        CHECK_STR(program_run("tfrecord-cat --head 7 %s | grep -c ^record", path)->output, "7\n");
        CHECK_CONTAINS(program_run("tfrecord-cat --record 17 %s", path)->output, "label  int64  17\n");
        CHECK_CONTAINS(program_run("tfrecord-cat --record 47 %s %s", path, path)->output, "label  int64  17\n");
        const program_result *result = program_run("tfrecord-cat --record 30 %s", path);
        CHECK_EQ(result->exit_code, 1);
        CHECK_CONTAINS(result->output, "there is no record 30, only 30");
        CHECK_STR(program_run("tfrecord-cat %s %s %s %s | head -1 | wc -l", path, path, path, path)->output, "1\n");
    }
}

TEST(cat_writes_json_that_others_read)
{
    const char *path = test_path("j.tfrecord");
    examples_write(path, 2, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --json --record 1 %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "\"record\": 1, ");
    CHECK_CONTAINS(result->output, "\"box\": {\"float\": [0.5, 0.25, 1, 1e-9]}");
    CHECK_CONTAINS(result->output, "\"raw\": {\"base64\": [\"AAH/\"]}");
    CHECK_CONTAINS(result->output, "\"text\": {\"bytes\": [\"gr\xc3\xbc\xc3\x9f dich, \\\"Welt\\\"\\n\"]}");
    CHECK_CONTAINS(result->output, "\"maybe\": {\"bytes\": [\"\\u001b[2J\"]}");
    result =
        program_run("command -v python3 >/dev/null || exit 9; tfrecord-cat --json %s | python3 -c 'import json, sys\n"
                    "for line in sys.stdin: print(json.loads(line)[\"features\"][\"label\"][\"int64\"][0])'",
                    path);
    if (result->exit_code != 9) CHECK_STR(result->output, "0\n1\n");
}

TEST(cat_finds_the_schema)
{
    const char *path = test_path("s.tfrecord");
    examples_write(path, 8, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --schema %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "8 records\n");
    CHECK_CONTAINS(result->output, "ids      int64  0 to 3        all\n");
    CHECK_CONTAINS(result->output, "maybe    bytes  1             50.0 %\n");
    CHECK_CONTAINS(result->output, "{.name = \"label\", .dtype = MR_INT64},");
    CHECK_CONTAINS(result->output, "{.name = \"box\", .dtype = MR_FLOAT, .shape = {.rank = 1, .dims = {4}}},");
    CHECK_CONTAINS(result->output, "{.name = \"ids\", .dtype = MR_INT64, .form = MR_VAR_LEN},");
}

TEST(cat_verify_names_every_fault)
{
    const char *path = test_path("v.tfrecord");
    examples_write(path, 20, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "20 good records, ");
    CHECK_CONTAINS(result->output, "no faults");

    mr_error error = {0};
    mr_record_index index = {0};
    CHECK_OK(mr_record_index_open(path, &index, &error));
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[index.offsets[3] + 20] ^= 1;
    bytes[index.offsets[9] + 2] ^= 1;
    file_save(path, bytes, size - 1);
    free(bytes);
    result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 1);
    char line[200];
    snprintf(line, sizeof line, "v.tfrecord: record 3, byte %d: bad data: ", (int)index.offsets[3]);
    CHECK_CONTAINS(result->output, line);
    snprintf(line, sizeof line, "v.tfrecord: record 9, byte %d: bad header: ", (int)index.offsets[9]);
    CHECK_CONTAINS(result->output, line);
    snprintf(line, sizeof line, "v.tfrecord: record 19, byte %d: truncated: ", (int)index.offsets[19]);
    CHECK_CONTAINS(result->output, line);
    CHECK_CONTAINS(result->output, "17 good records, ");
    CHECK_CONTAINS(result->output, "3 faults");
    mr_record_index_deinit(&index);
    /* The other modes also report damage and continue after it. */
    result = program_run("tfrecord-cat %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "label  int64  18\n");

    record_write(path, 5, 100, (mr_record_writer_options){0});
    result = program_run("tfrecord-cat --verify %s", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "bad Example");
    CHECK_EQ(program_run("tfrecord-cat --verify --raw %s", path)->exit_code, 0);
    CHECK_EQ(program_run("tfrecord-cat --raw %s", path)->exit_code, 0);
}

TEST(cat_reports_what_it_cannot_read)
{
    const program_result *result = program_run("tfrecord-cat %s/none", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no such file");
    result = program_run("tfrecord-cat %s", test_directory());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no record files in this directory");
    result = program_run("printf 'plain text, and enough of it' | tfrecord-cat");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "standard input: record 0 at byte 0");
    CHECK_CONTAINS(result->output, "is this a TFRecord file?");
    CHECK_EQ(program_run("tfrecord-cat --json --count x")->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-cat --head x y")->exit_code, 2);
    CHECK_CONTAINS(program_run("tfrecord-cat --help")->output, "usage: tfrecord-cat");
    const char *path = test_path("f.tfrecord");
    examples_write(path, 200, (mr_record_writer_options){0});
    if (access("/dev/full", W_OK) != 0) return;
    result = program_run("(tfrecord-cat %s > /dev/full) 2>&1", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "cannot write the output: No space left on device");
}

TEST(cat_reports_a_file_that_vanishes_or_shrinks)
{
    /* The first input is a pipe, which stays empty until the second file has been removed. */
    record_write(test_path("small"), 10, 300, (mr_record_writer_options){0});
    record_write(test_path("whole"), 3000, 3000, (mr_record_writer_options){0});
    const char *const commands[] = {"--verify --raw", "--count", "--json --raw", "--raw", "--merge --out merged"};
    for (int i = 0; i < 5; i++) {
        const program_result *result =
            program_run("cd '%s'; rm -f pipe said; mkfifo pipe; cp whole big; tfrecord-cat %s pipe big small 2>said "
                        ">out & exec 3>pipe; rm big; cat small >&3; exec 3>&-; wait $!; echo \"exit $?\"; cat said",
                        test_directory(), commands[i]);
        CHECK_CONTAINS(result->output, "exit 1\ntfrecord-cat: cannot open big: no such file or directory\n");
        CHECK(access(test_path("merged"), F_OK) != 0);
    }
    /* The output is not read until the input file has been truncated: at the end of a record, and within a record. */
    for (int i = 0; i < 2; i++) {
        const program_result *result = program_run(
            "cd '%s'; rm -f pipe; mkfifo pipe; cp whole big; tfrecord-cat --raw big small 2>said "
            ">pipe & exec 3<pipe; head -c 1 <&3 >out; truncate -s %zu big; grep -c \"byte \" <&3; wait $!; echo "
            "\"exit $?\"; cat said",
            test_directory(), record_begin(2500, 3000) + (i ? 100 : 0));
        CHECK_CONTAINS(result->output, "2510\nexit 1\n");
        CHECK_CONTAINS(result->output, i ? "record 2500 at byte " : "has shrunk while it was being read");
        CHECK_CONTAINS(result->output, i ? ": truncated" : ": it now ends at byte ");
    }
}

TEST(cat_fits_a_terminal_of_60_columns)
{
    const char *path = test_path("w.tfrecord");
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    mr_string record;
    int64_t many[100];
    static char longest[500];
    for (int i = 0; i < 100; i++) many[i] = (int64_t)i * 123456789;
    memset(longest, 'x', sizeof longest);
    mr_example_add_int64_list(&encoder, "a/feature/with/a/rather/long/name/that/does/not/fit/anywhere", many, 100);
    mr_example_add_bytes(&encoder, "text", (mr_string){longest, sizeof longest});
    mr_example_add_bytes(&encoder, "raw", (mr_string){(char *)many, sizeof many});
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    examples_write_one(path, record);
    mr_example_encoder_deinit(&encoder);
    const char *output = examples_on_terminal(60, "tfrecord-cat %s", path);
    CHECK_CONTAINS(output, "record 0 at byte 0");
    CHECK(examples_columns(output) <= 60);
    output = examples_on_terminal(60, "tfrecord-cat --bytes hex %s", path);
    CHECK_CONTAINS(output, "787878");
    CHECK(examples_columns(output) <= 60);
    CHECK(examples_columns(examples_on_terminal(60, "tfrecord-cat --help")) <= 60);
    CHECK(examples_columns(examples_on_terminal(60, "tfrecord-cat --help where")) <= 60);
}

TEST(cat_helps_with_every_option)
{
    const program_result *result =
        program_run("for option in $(tfrecord-cat --help | grep -o '^ .*--[a-z-]*' | grep -o -- '--[a-z-]*'); do "
                    "tfrecord-cat --help $option > /dev/null || echo $option; done");
    /* --help and --version have no help topic. */
    CHECK_CONTAINS(result->output, "there is no help about \"help\"");
    CHECK_CONTAINS(result->output, "\n--help\n");
    CHECK_CONTAINS(result->output, "\n--version\n");
    CHECK(strstr(result->output, "\n--json\n") == nullptr);
    CHECK_CONTAINS(program_run("tfrecord-cat --version")->output, "tfrecord-cat (millrace) ");
    CHECK_CONTAINS(program_run("tfrecord-cat --help json")->output, "--pretty");
    CHECK(!strstr(program_run("tfrecord-cat --help")->output, "--pretty"));
    CHECK_EQ(program_run("tfrecord-cat --help nothing")->exit_code, 2);
}
