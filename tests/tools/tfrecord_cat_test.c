/* tfrecord-cat from outside: what it shows, what it finds, and how it behaves in pipes and narrow terminals. */
#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/example.h>

#include <fcntl.h>
#include <sys/ioctl.h>

/* count Examples with features of every kind; "maybe" is in every second one. */
static void make_examples(const char *path, int count, mr_record_writer_options options)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = 0; i < count; i++) {
        const int64_t integers[] = {i, -i, INT64_MAX};
        const float box[] = {0.5f, 0.25f, (float)i, 1e-9f};
        mr_example_add_int64(&encoder, "label", i);
        mr_example_add_int64_list(&encoder, "ids", integers, (size_t)i % 4);
        mr_example_add_float_list(&encoder, "box", box, 4);
        mr_example_add_bytes(&encoder, "text", MR_STR("gr\xc3\xbc\xc3\x9f dich, \"Welt\"\n"));
        mr_example_add_bytes(&encoder, "raw", MR_STR("\x00\x01\xff"));
        if (i % 2) mr_example_add_bytes(&encoder, "maybe", MR_STR("\x1b[2J"));
        mr_string record;
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

TEST(cat_shows_records_as_people_read_them)
{
    const char *path = test_path("a.tfrecord");
    make_examples(path, 3, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "record 0 at byte 0, ");
    CHECK_CONTAINS(result->output, "  label  int64  2\n");
    CHECK_CONTAINS(result->output, "  ids    int64  [2] 2 -2\n");
    CHECK_CONTAINS(result->output, "  box    float  [4] 0.5 0.25 2 1e-09\n");
    CHECK_CONTAINS(result->output, "\"gr\xc3\xbc\xc3\x9f dich, \\\"Welt\\\"\\n\"");
    CHECK_CONTAINS(result->output, "«3 B: 00 01 ff»");
    CHECK(strchr(result->output, '\x1b') == nullptr);
}

TEST(cat_takes_heads_numbers_pipes_and_compressed_files)
{
    for (int i = 0; i < 3; i++) {
        const char *path = test_path("b.tfrecord");
        make_examples(path, 30, (mr_record_writer_options){.compression = (mr_compression)i, .index = i == 0});
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
    make_examples(path, 2, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --json --record 1 %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "\"record\": 1, ");
    CHECK_CONTAINS(result->output, "\"box\": {\"float\": [0.5, 0.25, 1, 9.99999972e-10]}");
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
    make_examples(path, 8, (mr_record_writer_options){0});
    const program_result *result = program_run("tfrecord-cat --schema %s", path);
    CHECK_EQ(result->exit_code, 0);
    CHECK_CONTAINS(result->output, "8 records\n");
    CHECK_CONTAINS(result->output, "ids      int64  0 to 3        all\n");
    CHECK_CONTAINS(result->output, "maybe    bytes  1             50.0 %\n");
    CHECK_CONTAINS(result->output, "{.name = \"label\", .dtype = MR_INT64},");
    CHECK_CONTAINS(result->output, "{.name = \"box\", .dtype = MR_FLOAT, .shape = MR_SHAPE(4)},");
    CHECK_CONTAINS(result->output, "{.name = \"ids\", .dtype = MR_INT64, .form = MR_VARIABLE},");
}

TEST(cat_verify_names_every_fault)
{
    const char *path = test_path("v.tfrecord");
    make_examples(path, 20, (mr_record_writer_options){0});
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
    snprintf(line, sizeof line, "v.tfrecord: record 19, byte %d: cut short: ", (int)index.offsets[19]);
    CHECK_CONTAINS(result->output, line);
    CHECK_CONTAINS(result->output, "17 good records, ");
    CHECK_CONTAINS(result->output, "3 faults");
    mr_record_index_deinit(&index);
    /* The other modes go on behind damage too, and say so. */
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

TEST(cat_says_what_it_cannot_read)
{
    const program_result *result = program_run("tfrecord-cat %s/none", test_folder());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "no such file");
    result = program_run("tfrecord-cat %s", test_folder());
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "directory");
    result = program_run("printf 'plain text, and enough of it' | tfrecord-cat");
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "standard input: record 0 at byte 0");
    CHECK_CONTAINS(result->output, "is this a TFRecord file?");
    CHECK_EQ(program_run("tfrecord-cat --json --count x")->exit_code, 2);
    CHECK_EQ(program_run("tfrecord-cat --head x y")->exit_code, 2);
    CHECK_CONTAINS(program_run("tfrecord-cat --help")->output, "usage: tfrecord-cat");
    const char *path = test_path("f.tfrecord");
    make_examples(path, 200, (mr_record_writer_options){0});
    if (access("/dev/full", W_OK) != 0) return;
    result = program_run("(tfrecord-cat %s > /dev/full) 2>&1", path);
    CHECK_EQ(result->exit_code, 1);
    CHECK_CONTAINS(result->output, "cannot write the output");
}

TEST(cat_fits_a_terminal_of_60_columns)
{
    const char *path = test_path("w.tfrecord");
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    int64_t many[100];
    static char longest[500];
    for (int i = 0; i < 100; i++) many[i] = (int64_t)i * 123456789;
    memset(longest, 'x', sizeof longest);
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    mr_example_add_int64_list(&encoder, "a/feature/with/a/rather/long/name/that/does/not/fit/anywhere", many, 100);
    mr_example_add_bytes(&encoder, "text", (mr_string){longest, sizeof longest});
    mr_example_add_bytes(&encoder, "raw", (mr_string){(char *)many, sizeof many});
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);

    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) test_skip("needs a pseudo terminal");
    struct winsize size = {.ws_row = 24, .ws_col = 60};
    CHECK_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
    const char *name = ptsname(terminal);
    int keep = open(name, O_RDWR | O_NOCTTY);
    CHECK_EQ(program_run("tfrecord-cat %s > %s", path, name)->exit_code, 0);
    CHECK_EQ(program_run("tfrecord-cat --schema %s > %s.schema; tail -1 %s.schema", path, path, path)->exit_code, 0);
    char output[4096];
    ssize_t got = read(terminal, output, sizeof output - 1);
    CHECK(got > 0);
    output[got] = '\0';
    int columns = 0;
    for (const char *at = output; *at; at++) {
        if (*at == '\n')
            columns = 0;
        else if (*at != '\r' && (*at & 0xc0) != 0x80)
            columns++;
        CHECK(columns <= 60);
    }
    close(keep);
    close(terminal);
}
