/* tfrecord-cat --extract and --html, run as a user does; checks the contents of the directories. */
#include "tests/kernels/images.h"
#include "tests/records/record_data.h"
#include "tests/tools/examples.h"

#include <millrace/image.h>

#include <expat.h>
#include <jansson.h>
#include <sys/stat.h>

static const char HOSTILE[] = "</script><b>\"'`&\\\n\x01\xff\xe2\x80\xa8\xe2\x80\xa9 Gr\xc3\xbcn";

/* A record with an image; null strings are omitted. */
typedef struct entry {
    test_bytes image;
    const char *class, *filename;
    bool has_boxes;
} entry;

static void write_entries(const char *path, const entry *entries, int count)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    mr_string record;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    for (int i = 0; i < count; i++) {
        const entry *at = &entries[i];
        if (at->image.bytes)
            mr_example_add_bytes(&encoder, "image/encoded",
                                 (mr_string){(const char *)at->image.bytes, at->image.size_bytes});
        if (at->class) mr_example_add_bytes(&encoder, "image/class/text", mr_string_from(at->class));
        if (at->filename) mr_example_add_bytes(&encoder, "image/filename", mr_string_from(at->filename));
        mr_example_add_int64(&encoder, "image/class/label", i);
        if (at->has_boxes) {
            const float low[] = {0.25f, 10}, high[] = {0.5f, 20};
            const mr_string texts[] = {mr_string_from(HOSTILE), MR_STR("dog")};
            mr_example_add_float_list(&encoder, "image/object/bbox/xmin", low, 2);
            mr_example_add_float_list(&encoder, "image/object/bbox/ymin", low, 2);
            mr_example_add_float_list(&encoder, "image/object/bbox/xmax", high, 2);
            mr_example_add_float_list(&encoder, "image/object/bbox/ymax", high, 2);
            mr_example_add_bytes_list(&encoder, "image/object/class/text", texts, 2);
        }
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

static test_bytes jpeg(int width, int height)
{
    return test_jpeg(width, height, (test_jpeg_options){.horizontal = 2, .vertical = 2});
}

static const char *run(int exit_code, const char *command)
{
    const program_result *result = program_run("cd '%s' && export LC_ALL=C.UTF-8 && %s", test_directory(), command);
    if (result->exit_code != exit_code)
        test_fail(__FILE__, __LINE__, "%s: %d: %s", command, result->exit_code, result->output);
    return result->output;
}

/* ---- --extract ---- */

TEST(cat_extract_restores_the_files_that_make_read)
{
    (void)run(0, "mkdir -p photos/cat/young photos/dog");
    static const char *const names[] = {"cat/1.jpg", "cat/young/1.jpg", "cat/two words.JPEG", "dog/1.jpg",
                                        "dog/\xc3\xa4.jpg"};
    for (int i = 0; i < 5; i++) {
        test_bytes made = jpeg(40 + 8 * i, 32);
        file_save(test_path("photos/%s", names[i]), made.bytes, made.size_bytes);
        free(made.bytes);
    }
    test_bytes png = test_png(20, 10, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 8});
    file_save(test_path("photos/dog/p.png"), png.bytes, png.size_bytes);
    free(png.bytes);
    (void)run(0, "tfrecord-make --out records --shards 2 photos");
    CHECK_CONTAINS(run(0, "tfrecord-cat --extract back records 2> /dev/null"), "6 files, ");
    (void)run(0, "diff -r photos back");
    /* A second run writes nothing; a missing file is written again. */
    CHECK_CONTAINS(run(0, "tfrecord-cat --extract back records 2> /dev/null"), "6 existed already");
    CHECK_CONTAINS(run(0, "rm back/dog/p.png; tfrecord-cat --extract back records 2> /dev/null"), "1 file, ");
    (void)run(0, "diff -r photos back");
    /* A file with other contents is replaced only with --force. */
    CHECK_CONTAINS(run(1, "echo mine > back/cat/1.jpg; tfrecord-cat --extract back records"),
                   "cat/1.jpg: exists with other bytes");
    CHECK_CONTAINS(run(0, "cat back/cat/1.jpg"), "mine");
    (void)run(0, "tfrecord-cat --force --extract back records && diff -r photos back");
    CHECK_CONTAINS(
        run(0, "tfrecord-cat --extract some --where \"image/class/text == 'dog'\" records 2> /dev/null; ls some"),
        "\ndog\n");
}

TEST(cat_extract_names_stay_in_the_directory)
{
    test_bytes made = jpeg(16, 16),
               png = test_png(8, 8, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB, .bits = 8});
    char long_name[400];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const entry entries[] = {{made, "..", "../../outside.jpg"},
                             {made, "a/../../b", "/etc/x.jpg"},
                             {made, "c", "same.jpg"},
                             {made, "c", "same.jpg"},
                             {made, "c", "sub/same.jpg"},
                             {made, "c", "same~2.jpg"},
                             {png, "c", "wrong.jpg"},
                             {made, "c", "no ending"},
                             {made, "c", ".."},
                             {made, "c", "bad\n\xff.jpg"},
                             {made, "", nullptr},
                             {made, nullptr, "free.jpg"},
                             {made, long_name, long_name},
                             {.class = "nothing"}};
    write_entries(test_path("names.tfrecord"), entries, 14);
    const char *output = run(0, "mkdir in && cd in && tfrecord-cat --extract out ../names.tfrecord 2> /dev/null");
    CHECK_CONTAINS(output, "13 files, ");
    CHECK_CONTAINS(output, "3 have duplicate names");
    CHECK_CONTAINS(output, "1 record has no image");
    const char *list = run(0, "ls; cd in; ls; cd out; find . -type f ! -path './nnn*' | LC_ALL=C sort; find . -path "
                              "'./nnn*' -type f | wc -l; find . -name '*.partial'");
    CHECK_STR(list, "in\nnames.tfrecord\nout\n"
                    "./%2E./%2E./outside.jpg\n"
                    "./10/names-00000010.jpg\n"
                    "./11/free.jpg\n"
                    "./a%2F..%2F..%2Fb/x.jpg\n"
                    "./c/%2E..jpg\n"
                    "./c/bad%0A%FF.jpg\n"
                    "./c/no ending.jpg\n"
                    "./c/same.jpg\n"
                    "./c/same~2.jpg\n"
                    "./c/same~2~2.jpg\n"
                    "./c/same~3.jpg\n"
                    "./c/wrong.png\n"
                    "1\n");
    free(made.bytes);
    free(png.bytes);
}

TEST(cat_extract_names_other_bytes_by_number)
{
    examples_write(test_path("t.tfrecord"), 3, (mr_record_writer_options){0});
    CHECK_CONTAINS(run(0, "tfrecord-cat --extract e t.tfrecord 2> /dev/null"), "3 records have no image");
    CHECK_STR(run(0, "tfrecord-cat --extract e --features 'raw,text' t.tfrecord > /dev/null 2>&1; cd e; find . -type f "
                     "| LC_ALL=C sort"),
              "./raw/t-00000000.bin\n./raw/t-00000001.bin\n./raw/t-00000002.bin\n"
              "./text/t-00000000.txt\n./text/t-00000001.txt\n./text/t-00000002.txt\n");
    CHECK_STR(run(0, "od -An -tx1 e/raw/t-00000001.bin"), " 00 01 ff\n");
    CHECK_CONTAINS(run(0, "tfrecord-cat --extract r --raw t.tfrecord 2> /dev/null; ls r/*"), "t-00000002.bin");
}

TEST(cat_extract_numbers_frames)
{
    mr_error error = {0};
    mr_sequence_encoder encoder = {0};
    mr_string record;
    test_bytes made = jpeg(16, 16);
    const mr_string frame = {(const char *)made.bytes, made.size_bytes};
    for (int i = 0; i < 2; i++) mr_sequence_add_bytes_list(&encoder, "frames", &frame, 1);
    mr_example_add_bytes(&encoder.context, "image/class/text", MR_STR("film"));
    CHECK_OK(mr_sequence_finish(&encoder, &record, &error));
    examples_write_one(test_path("s.tfrecord"), record);
    mr_sequence_encoder_deinit(&encoder);
    free(made.bytes);
    CHECK_STR(run(0, "tfrecord-cat --extract e - < s.tfrecord > /dev/null 2>&1; find e -type f | sort"),
              "e/film/record-00000000.frames.00000.jpg\ne/film/record-00000000.frames.00001.jpg\n");
    CHECK_CONTAINS(run(0, "tfrecord-cat --html h - < s.tfrecord 2> /dev/null"), "  1 image\n");
}

TEST(cat_extract_and_html_stop_when_the_disk_is_full)
{
    entry entries[20];
    for (int i = 0; i < 20; i++) entries[i] = (entry){jpeg(200, 200), "c", nullptr};
    write_entries(test_path("full.tfrecord"), entries, 20);
    for (int i = 0; i < 20; i++) free(entries[i].image.bytes);
    CHECK_CONTAINS(run(1, "(ulimit -f 4; trap '' XFSZ; tfrecord-cat --extract e full.tfrecord)"),
                   "tfrecord-cat: cannot write ");
    CHECK_STR(run(0, "find e -type f"), "");
    CHECK_CONTAINS(run(1, "(ulimit -f 4; trap '' XFSZ; tfrecord-cat --html h full.tfrecord)"),
                   "tfrecord-cat: cannot write ");
    CHECK_STR(run(0, "find h -name 'index.html' -o -name '*.partial'"), "");
    /* Files are complete even if nothing reads the summary. */
    CHECK_CONTAINS(run(0, "tfrecord-cat --extract e2 full.tfrecord 2> /dev/null | true; find e2 -type f | wc -l"),
                   "20\n");
}

/* ---- --html ---- */

/* The rows in "page(0, […]);" or "search(0, 0, […]);". The caller releases them with json_decref. */
static json_t *load_rows(const char *path)
{
    size_t size;
    char *text = (char *)file_load(path, &size), *begin = memchr(text, '[', size);
    json_error_t error;
    CHECK(size > 4 && begin && memcmp(text + size - 3, ");\n", 3) == 0);
    json_t *rows = json_loadb(begin, (size_t)(text + size - 3 - begin), 0, &error);
    if (!rows) test_fail(__FILE__, __LINE__, "%s: line %d: %s", path, error.line, error.text);
    free(text);
    return rows;
}

static const char *text_of(json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static double number_of(json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

TEST(cat_html_pages_and_search_contain_all_records)
{
    examples_write(test_path("t.tfrecord"), 450, (mr_record_writer_options){0});
    CHECK_CONTAINS(run(0, "tfrecord-cat --html h t.tfrecord 2> /dev/null"), "450 records on 3 pages: h/index.html\n");
    CHECK_CONTAINS(run(0, "cat h/data/about.js"),
                   "about({\"records\":450,\"page\":200,\"pages\":3,\"searches\":1,\"images\":0,");
    int record = 0;
    for (int page = 0; page < 3; page++) {
        json_t *rows = load_rows(test_path("h/data/page-%06d.js", page)), *row;
        size_t i;
        CHECK_EQ(json_array_size(rows), page < 2 ? 200 : 50);
        json_array_foreach(rows, i, row)
        {
            CHECK_EQ(json_integer_value(json_object_get(row, "r")), record++);
            CHECK_EQ(json_array_size(json_object_get(row, "x")), record % 2 ? 5 : 6);
        }
        json_decref(rows);
    }
    json_t *rows = load_rows(test_path("h/data/search-000000.js"));
    CHECK_EQ(json_array_size(rows), 450);
    json_t *row = json_array_get(rows, 333);
    CHECK(number_of(row, 0) == 333);
    CHECK_STR(json_string_value(json_array_get(row, 1)), "333");
    CHECK_CONTAINS(json_string_value(json_array_get(row, 4)), "text=gr\xc3\xbc\xc3\x9f dich, \"Welt\"\n");
    CHECK(strstr(json_string_value(json_array_get(row, 4)), "raw=") == nullptr);
    json_decref(rows);
    CHECK_STR(run(0, "ls h/data | tr '\\n' ' '"),
              "about.js page-000000.js page-000001.js page-000002.js search-000000.js ");
    /* The directory is replaced only with --force; now with a selection of records and fewer features. */
    CHECK_CONTAINS(run(1, "tfrecord-cat --html h t.tfrecord"), "h/index.html: already exists; --force replaces it");
    (void)run(0, "tfrecord-cat --html h --force --features label --where 'label >= 448' t.tfrecord");
    rows = load_rows(test_path("h/data/page-000000.js"));
    CHECK_EQ(json_array_size(rows), 2);
    CHECK_EQ(json_array_size(json_object_get(json_array_get(rows, 0), "x")), 1);
    json_decref(rows);
}

TEST(cat_html_makes_thumbnails_boxes_and_reasons)
{
    test_bytes small = jpeg(64, 48), large = jpeg(1200, 500), cut = jpeg(300, 300),
               clear = test_png(500, 400, (test_png_options){.color_type = PNG_COLOR_TYPE_RGB_ALPHA, .bits = 8});
    test_bytes words = {(unsigned char *)strdup("these are no images"), 19};
    const test_bytes header = {cut.bytes, 40};
    cut.size_bytes = cut.size_bytes * 2 / 3;
    const entry entries[] = {{small, "cat", "1.jpg", true}, {large, "cat", nullptr}, {cut, "dog", nullptr},
                             {clear, "dog", nullptr},       {words, "dog", nullptr}, {header, "dog", nullptr}};
    write_entries(test_path("p.tfrecord"), entries, 6);
    const char *output = run(0, "tfrecord-cat --html h --jobs 4 p.tfrecord 2> /dev/null");
    CHECK_CONTAINS(output, "6 records on 1 page: h/index.html\n  6 images\n  3 do not decode\n");
    static const int sizes[6][2] = {{64, 48}, {320, 133}, {300, 300}, {320, 256}, {0, 0}, {0, 0}};
    static const char *const reasons[] = {"", "", "truncated", "", "not an image", "truncated"};
    json_t *rows = load_rows(test_path("h/data/page-000000.js"));
    for (size_t i = 0; i < 6; i++) {
        json_t *image = json_object_get(json_array_get(rows, i), "p");
        const char *path = text_of(image, "t");
        CHECK_CONTAINS(text_of(image, "e"), reasons[i]);
        CHECK_EQ(*path != '\0', sizes[i][0] > 0);
        if (!*path) continue;
        size_t size;
        mr_image_info info = {0};
        mr_error error = {0};
        unsigned char *bytes = file_load(test_path("h/%s", path), &size);
        CHECK_OK(mr_image_probe(bytes, size, &info, &error));
        CHECK_EQ(info.width, sizes[i][0]);
        CHECK_EQ(info.height, sizes[i][1]);
        CHECK_EQ(json_integer_value(json_object_get(image, "w")), sizes[i][0]);
        free(bytes);
    }
    json_t *row = json_array_get(rows, 0), *boxes = json_object_get(row, "b");
    CHECK_STR(text_of(row, "l"), "cat");
    CHECK_STR(text_of(row, "n"), "1.jpg");
    CHECK_EQ(json_array_size(boxes), 2);
    CHECK_NEAR(number_of(json_array_get(boxes, 0), 0), 0.25, 0);
    CHECK_NEAR(number_of(json_array_get(boxes, 0), 3), 0.5, 0);
    /* Boxes in pixels become fractions of the image. */
    CHECK_NEAR(number_of(json_array_get(boxes, 1), 2), 20.0 / 64, 1e-6);
    CHECK_NEAR(number_of(json_array_get(boxes, 1), 1), 10.0 / 48, 1e-6);
    CHECK_STR(json_string_value(json_array_get(json_array_get(boxes, 1), 4)), "dog");
    json_decref(rows);
    (void)run(0, "tfrecord-cat --html one --jobs 1 p.tfrecord && diff -r h one");
    CHECK_CONTAINS(run(0, "cat h/data/about.js"), "\"classes\":[\n[\"dog\",4],\n[\"cat\",2]]");
    for (int i = 0; i < 5; i++) free(entries[i].image.bytes);
}

TEST(cat_html_escapes_records)
{
    test_bytes made = jpeg(16, 16);
    const entry entry = {made, HOSTILE, HOSTILE, true};
    write_entries(test_path("<b>&.tfrecord"), &entry, 1);
    free(made.bytes);
    (void)run(0, "tfrecord-cat --html h '<b>&.tfrecord'");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"page-000000", "search-000000", "about"};
        size_t size;
        unsigned char *text = file_load(test_path("h/data/%s.js", names[i]), &size);
        for (size_t j = 0; j < size; j++) {
            CHECK(text[j] != '<' && text[j] != '>' && text[j] != '&' && text[j] != '\'' && text[j] != '`');
            CHECK(text[j] >= 0x20 || text[j] == '\n');
            CHECK(j + 2 >= size || memcmp(text + j, "\xe2\x80\xa8", 3) != 0);
        }
        free(text);
    }
    json_t *rows = load_rows(test_path("h/data/page-000000.js"));
    const char *shown = "</script><b>\"'`&\\\n\x01\xef\xbf\xbd\xe2\x80\xa8\xe2\x80\xa9 Gr\xc3\xbcn";
    CHECK_STR(text_of(json_array_get(rows, 0), "l"), shown);
    CHECK_STR(text_of(json_array_get(rows, 0), "n"), shown);
    CHECK_STR(json_string_value(json_array_get(json_array_get(json_object_get(json_array_get(rows, 0), "b"), 0), 4)),
              shown);
    json_decref(rows);
    /* The page itself does not depend on the records, and is well-formed. */
    size_t size;
    unsigned char *page = file_load(test_path("h/index.html"), &size);
    XML_Parser parser = XML_ParserCreate("UTF-8");
    CHECK_EQ(XML_Parse(parser, (const char *)page, (int)size, 1), XML_STATUS_OK);
    XML_ParserFree(parser);
    CHECK(strstr((const char *)page, "http") == nullptr);
    free(page);
    /* Nothing is fetched, and no text is inserted as markup. */
    (void)run(1, "grep -nE 'fetch|XMLHttp|innerHTML|insertAdjacent|https?:|eval' h/view.js h/view.css");
}

TEST(cat_html_and_extract_report_missing_arguments)
{
    CHECK_CONTAINS(run(0, "tfrecord-cat --help"), "--extract DIR");
    CHECK_CONTAINS(run(0, "tfrecord-cat --help=html"), "Memory: ");
    CHECK_CONTAINS(run(0, "tfrecord-cat --help=extract"), "Memory: ");
    CHECK(examples_columns(examples_on_terminal(60, "tfrecord-cat --help=html")) <= 60);
    CHECK_CONTAINS(run(2, "tfrecord-cat --html '' x"), "--html: its value is empty");
    CHECK_CONTAINS(run(1, "tfrecord-cat --extract e missing"), "missing");
}
