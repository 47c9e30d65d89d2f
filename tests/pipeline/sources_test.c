/* Sources other than record files, and the contents of cache and snapshot. */
#include "tests/pipeline/pipelines.h"

#include <millrace/formats.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *write_text(const char *name, const char *text)
{
    const char *path = test_path("%s", name);
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

/* The strings of the first component, each followed by '|'. */
static const char *strings_of(mr_dataset *dataset)
{
    static char text[4096];
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    size_t length = 0;
    CHECK_OK(mr_iterator_new(dataset, nullptr, &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE) {
        if (status != MR_OK) {
            length += (size_t)snprintf(text + length, sizeof text - length, "!|");
            continue;
        }
        mr_string s = mr_tensor_strings(&element.tensors[0])[0];
        length += (size_t)snprintf(text + length, sizeof text - length, "%.*s|", (int)s.size_bytes, s.data);
    }
    text[length] = '\0';
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return text;
}

TEST(lines_come_without_their_ends)
{
    const char *path = write_text("lines.txt", "one\r\ntwo\n\nfour\rstill four\nlast");
    CHECK_STR(strings_of(mr_dataset_text_lines(path)), "one|two||fourstill four|last|");
    (void)write_text("lines2.txt", "");
    (void)write_text("lines3.txt", "x\n");
    CHECK_STR(strings_of(mr_dataset_text_lines(test_path("lines*.txt"))), "one|two||fourstill four|last|x|");
}

static mr_dataset *table(bool has_default_value)
{
    static mr_tensor seven;
    mr_error error = {0};
    if (seven.data == nullptr) CHECK_OK(mr_tensor_init_int64(&seven, 7, &error));
    const char *path = write_text("table.csv", "name,count,part\nred,1,0.5\n\"gre,en\",,2\nblue,x,1\nlast,-4,1e3\n");
    mr_csv_column columns[] = {
        {0, MR_STRING, nullptr}, {1, MR_INT64, has_default_value ? &seven : nullptr}, {2, MR_FLOAT, nullptr}};
    return mr_dataset_csv(path, columns, 3, .has_header = true);
}

TEST(csv_rows_are_typed_and_bad_cells_cost_one_row)
{
    CHECK_STR(strings_of(table(true)), "red|gre,en|!|last|");
    CHECK_STR(strings_of(mr_dataset_ignore_errors(table(false))), "red|last|");
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_dataset *d = mr_dataset_skip(table(true), 1);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[0], 7);
    CHECK_NEAR(mr_tensor_floats(&element.tensors[2])[0], 2.0, 0);
    CHECK_EQ(mr_iterator_next(iterator, &element, &error), MR_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "table.csv: line 4, at byte 38: column 1 \"x\" is not a valid int64") != nullptr);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* The first column of a table as strings; "!" for a row that is an error. */
static const char *cells_of(const char *text, mr_csv_options options)
{
    options.size = sizeof options;
    static const mr_csv_column first[] = {{0, MR_STRING, nullptr}};
    return strings_of(mr_dataset_csv_(write_text("cells.csv", text), first, 1, &options));
}

TEST(csv_rows_are_split_as_tensorflow_splits_them)
{
    CHECK_STR(cells_of("a\n\nb\r\rc", (mr_csv_options){0}), "a|!|b|!|c|");
    CHECK_STR(cells_of("a\"b,c\nd,\"e\nf\"\ng", (mr_csv_options){0}), "!|d|g|");
    CHECK_STR(cells_of("\"a\"b\nc\n", (mr_csv_options){0}), "!|");
    CHECK_STR(cells_of("\"a\"b\nc\"\n", (mr_csv_options){.no_quotes = true}), "\"a\"b|c\"|");
    CHECK_STR(cells_of("a,b\nc\nd,e,f\ng,h\n", (mr_csv_options){.column_count = 2}), "a|!|!|g|");
    CHECK_STR(cells_of("a\"\nb\nc\n", (mr_csv_options){.has_header = true}), "!|b|c|");
}

/* The numbers of a column as text; "!" for an invalid cell. */
static const char *numbers_as_text(const char *cells, mr_dtype dtype)
{
    static char text[512];
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    size_t at = 0;
    mr_csv_column column = {0, dtype, nullptr};
    mr_dataset *d = mr_dataset_csv(write_text("numbers.csv", cells), &column, 1);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) != MR_OUT_OF_RANGE) {
        if (status != MR_OK)
            at += (size_t)snprintf(text + at, sizeof text - at, "! ");
        else if (dtype == MR_FLOAT)
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%g ", (double)mr_tensor_floats(&element.tensors[0])[0]);
        else
            at += (size_t)snprintf(text + at, sizeof text - at, "%d ", mr_tensor_int32s(&element.tensors[0])[0]);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    return text;
}

TEST(csv_numbers_are_those_that_tensorflow_takes)
{
    CHECK_STR(numbers_as_text(
                  "1\n 1\t\n+1\n-.5\n1.\n.\n1e5\n1E+2\n1e\nnan\n-INF\ninfinity\n0x10\n0x1p3\n- 1\n1e400\n1f", MR_FLOAT),
              "1 1 1 -0.5 1 ! 100000 100 ! nan -inf ! 16 ! ! inf ! ");
    CHECK_STR(numbers_as_text(" 7 \n+7\n-7\n007\n0x7\n7.0\n1 2\n2147483648\n-2147483648", MR_INT32),
              "7 ! -7 7 ! ! ! ! -2147483648 ");
}

TEST(lines_have_no_returns)
{
    CHECK_STR(strings_of(mr_dataset_text_lines(write_text("returns.txt", "a\r\nb\rc\n\r\n\r\rd\r"))), "a|bc||d|");
    CHECK_STR(strings_of(mr_dataset_text_lines(write_text("returns.txt", "a\n\r\r"))), "a|");
}

static mr_status refuse_b(void *context, const mr_element *input, mr_random *random, mr_element *output,
                          mr_error *error)
{
    (void)context, (void)random;
    mr_string line = mr_tensor_strings(&input->tensors[0])[0];
    if (line.size_bytes == 1 && line.data[0] == 'b') return mr_fail(error, MR_DATA_LOSS, "no b");
    output->count = 1;
    output->tensors[0] = mr_tensor_ref(&input->tensors[0]);
    return MR_OK;
}

/* Reads up to the iterator's next error and compares its message. */
static void check_next_error(mr_iterator *iterator, const char *expected)
{
    mr_error error = {0};
    mr_element element = {0};
    mr_status status = MR_OK;
    while (status == MR_OK) status = mr_iterator_next(iterator, &element, &error);
    CHECK_EQ(status, MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, expected);
    mr_element_deinit(&element);
}

TEST(lines_that_fail_are_named_by_file_and_line)
{
    mr_error error = {0};
    mr_tensor state = {0};
    mr_element element = {0};
    mr_iterator *iterator = nullptr, *again = nullptr;
    (void)write_text("named1.txt", "a\nb\na\n");
    (void)write_text("named2.txt", "");
    (void)write_text("named3.txt", "a\na\na\nb\n");
    mr_dataset *d = mr_dataset_text_lines(test_path("named?.txt"));
    d = mr_dataset_map(d, refuse_b, nullptr, mr_dataset_spec(d));
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    check_next_error(iterator, "named1.txt: line 2: no b");
    for (int i = 0; i < 2; i++) CHECK_OK(mr_iterator_next(iterator, &element, &error));
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    check_next_error(iterator, "named3.txt: line 4: no b");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    /* A new iterator has not read the beginning of the file. */
    d = mr_dataset_text_lines(test_path("named?.txt"));
    d = mr_dataset_map(d, refuse_b, nullptr, mr_dataset_spec(d));
    CHECK_OK(mr_iterator_new(d, nullptr, &again, &error));
    CHECK_OK(mr_iterator_restore(again, &state, &error));
    check_next_error(again, "named3.txt: line 4: no b");
    mr_tensor_deinit(&state);
    mr_element_deinit(&element);
    mr_iterator_free(again);
    mr_dataset_free(d);
}

TEST(fixed_length_records_are_cut_out)
{
    const char *path = write_text("fixed.bin", "HHaabbccF");
    CHECK_STR(strings_of(mr_dataset_fixed_length(path, 2, .header_bytes = 2, .footer_bytes = 1)), "aa|bb|cc|");
    mr_dataset *d = mr_dataset_fixed_length(path, 2);
    mr_error error = {0};
    CHECK_EQ(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "fixed.bin: 9 bytes are not a multiple of the record size 2") != nullptr);
    mr_dataset_free(d);
    char expected[512];
    snprintf(expected, sizeof expected, "%s|", path);
    CHECK_STR(strings_of(mr_dataset_list_files(path)), expected);
}

TEST(rows_of_numpy_arrays_are_elements)
{
    mr_error error = {0};
    mr_tensor a = {0};
    CHECK_OK(mr_tensor_init_copy(&a, MR_INT64, MR_SHAPE(3, 2), (int64_t[]){1, 2, 3, 4, 5, 6}, &error));
    const char *path = strdup(test_path("a.npy"));
    CHECK_OK(mr_npy_save(path, &a, &error));
    mr_dataset *d = mr_dataset_npy((const char *[]){path, path}, 2);
    CHECK_EQ(mr_dataset_cardinality(d), 3);
    CHECK_EQ(mr_dataset_spec(d)->count, 2);
    CHECK_NUMBERS(mr_dataset_batch(mr_dataset_skip(d, 1), 2), 3, 4, 5, 6);
    mr_tensor_deinit(&a);
    free((void *)path);
}

static void make_directory(const char *name)
{
    CHECK(mkdir(test_path("%s", name), 0777) == 0);
}

TEST(a_directory_of_images_is_labelled_by_its_directories)
{
    make_directory("photos");
    make_directory("photos/rose");
    make_directory("photos/daisy");
    make_directory("photos/daisy/deep");
    make_directory("photos/empty");
    (void)write_text("photos/rose/1.jpg", "r1");
    (void)write_text("photos/daisy/2.PNG", "d2");
    (void)write_text("photos/daisy/deep/3.jpeg", "d3");
    (void)write_text("photos/daisy/notes.txt", "no");
    (void)write_text("photos/loose.jpg", "no");
    mr_dataset *d = mr_dataset_image_directory(test_path("photos"));
    CHECK_STR(strings_of(mr_dataset_ref(d)), "d2|d3|r1|");
    CHECK_STR(mr_dataset_spec(d)->names[1], "image/class/label");
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int64_t i = 0; i < 3; i++) {
        CHECK_OK(mr_iterator_next(iterator, &element, &error));
        CHECK_EQ(mr_tensor_int64s(&element.tensors[1])[0], i / 2);
    }
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

/* Appends a member to a minimal tar file. */
static void add_member(FILE *file, const char *name, const char *text)
{
    char header[512] = {0};
    unsigned sum = 0;
    snprintf(header, 100, "%s", name);
    snprintf(header + 100, 8, "%07o", 0644);
    snprintf(header + 124, 12, "%011zo", strlen(text));
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++) sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    CHECK(fwrite(header, 512, 1, file) == 1);
    char block[512] = {0};
    snprintf(block, sizeof block, "%s", text);
    CHECK(fwrite(block, 512, 1, file) == 1);
}

TEST(tar_samples_are_members_of_one_name)
{
    const char *path = test_path("wds.tar");
    FILE *file = fopen(path, "wb");
    CHECK(file != nullptr);
    add_member(file, "a/1.jpg", "j1");
    add_member(file, "a/1.cls", "3");
    add_member(file, "a/2.png", "p2");
    add_member(file, "a/2.jpeg", "j2");
    add_member(file, "a/2.cls", "4");
    add_member(file, "a/3.cls", "5");
    char end[1024] = {0};
    CHECK(fwrite(end, sizeof end, 1, file) == 1 && fclose(file) == 0);
    mr_dataset *d = mr_dataset_tar(path, (const char *[]){"jpg;jpeg;png", "cls"}, 2);
    CHECK_EQ(mr_dataset_cardinality(d), 2);
    CHECK_STR(mr_dataset_spec(d)->names[2], "__key__");
    CHECK_STR(strings_of(d), "j1|j2|");
    mr_error error = {0};
    d = mr_dataset_tar(test_path("nothing.tar"), (const char *[]){"cls"}, 1);
    CHECK_EQ(mr_dataset_status(d, &error), MR_NOT_FOUND);
    mr_dataset_free(d);
}

/* ---- cache and snapshot ---- */

static int calls;

static mr_status counted(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return jitter(context, input, random, output, error);
}

static mr_dataset *worked(void)
{
    return mr_dataset_map(mr_dataset_shuffle(mr_dataset_range(0, 30, 1), .seed = 1), counted, nullptr, &one_int64);
}

TEST(cached_elements_are_processed_once)
{
    int64_t memory[90], file[90], again[90];
    CHECK_EQ(numbers_of(mr_dataset_repeat(mr_dataset_cache(worked(), nullptr), 3), nullptr, memory, 90), 90);
    CHECK_EQ(calls, 30);
    CHECK(memcmp(memory, memory + 30, 30 * sizeof *memory) == 0);
    const char *path = strdup(test_path("cache.tfrecord"));
    CHECK_EQ(numbers_of(mr_dataset_repeat(mr_dataset_cache(worked(), path), 3), nullptr, file, 90), 90);
    CHECK_EQ(calls, 60);
    CHECK(memcmp(memory, file, sizeof file) == 0);
    CHECK_EQ(numbers_of(mr_dataset_shuffle(mr_dataset_cache(worked(), path), .buffer_size = 8), nullptr, again, 90),
             30);
    CHECK_EQ(calls, 60);
    /* Another pipeline's cache is not accepted for this pipeline. */
    CHECK_EQ(numbers_of(mr_dataset_cache(mr_dataset_take(worked(), 9), path), nullptr, again, 90), 9);
    CHECK_EQ(calls, 69);
    free((void *)path);
}

TEST(a_snapshot_is_written_for_each_pipeline)
{
    int64_t first[40], second[40];
    const char *directory = strdup(test_path("snapshots"));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(numbers_of(mr_dataset_snapshot(worked(), directory, .gzip = true), nullptr, first, 40), 30);
        CHECK_EQ(numbers_of(mr_dataset_snapshot(mr_dataset_take(worked(), 9), directory), nullptr, second, 40), 9);
        CHECK_EQ(calls, 39);
    }
    CHECK_EQ(memcmp(first, second, 9 * sizeof *first), 0);
    free((void *)directory);
}

TEST(a_cache_larger_than_the_budget_fails)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_status status;
    mr_dataset *d = mr_dataset_cache(mr_dataset_range(0, 100'000, 1), nullptr);
    CHECK_OK(mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .budget_bytes = 100'000), &iterator, &error));
    while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK) continue;
    CHECK_EQ(status, MR_RESOURCE_EXHAUSTED);
    CHECK(strstr(error.message, "use a cache file") != nullptr);
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}

static mr_dataset *kept(int which)
{
    switch (which) {
    case 0:
        return mr_dataset_repeat(mr_dataset_cache(worked(), nullptr), 3);
    case 1:
        return mr_dataset_batch(
            mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_cache(worked(), nullptr), .buffer_size = 5), 2), 4);
    case 2:
        return mr_dataset_repeat(mr_dataset_cache(worked(), test_path("kept.tfrecord")), 2);
    case 3:
        (void)write_text("kept.txt", "a\nbb\n\nccc\ndddd\neeeee\nf\ngg\n");
        return mr_dataset_shuffle(mr_dataset_repeat(mr_dataset_text_lines(test_path("kept.txt")), 3), .buffer_size = 4);
    case 4:
        return mr_dataset_batch(mr_dataset_repeat(table(true), 2), 3);
    default:
        return nullptr;
    }
}

TEST(sources_and_caches_go_on_from_every_element)
{
    for (int which = 0; which < 5; which++) {
        check_threads(kept, which);
        check_states(kept, which, 1024);
        check_restored(kept, which);
    }
}

/* The next error of a CSV dataset; "" at its end. */
static const char *next_error(mr_iterator *iterator, mr_error *error)
{
    for (;;) {
        mr_element element = {0};
        const mr_status status = mr_iterator_next(iterator, &element, error);
        mr_element_deinit(&element);
        if (status == MR_OUT_OF_RANGE) return "";
        if (status != MR_OK) return error->message;
    }
}

TEST(csv_errors_name_the_line_and_the_column)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_tensor state = {0};
    const char *path =
        write_text("lines.csv", "a,b\r\n1,2\r\n\"3\",\"x\ny\r\nz\"\r\n4\r5,6\rq,7\n\n8,\"9\n\",3\n0,r\n");
    mr_csv_column columns[] = {{0, MR_INT32, nullptr}, {1, MR_INT64, nullptr}};
    static const char *const texts[] = {
        "lines.csv: line 3, at byte 10: column 1 \"x",
        "lines.csv: line 6, at byte 24: column 1 is missing: the row has 1 cells",
        "lines.csv: line 8, at byte 30: column 0 \"q\" is not a valid int32",
        "lines.csv: line 9, at byte 34: column 0 is empty and has no default value",
        "lines.csv: line 12, at byte 44: column 1 \"r\" is not a valid int64",
        "",
    };
    mr_dataset *d = mr_dataset_csv(path, columns, 2, .has_header = true);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    for (int i = 0; i < 6; i++) {
        CHECK_CONTAINS(next_error(iterator, &error), texts[i]);
        if (i == 1) CHECK_OK(mr_iterator_save(iterator, &state, &error));
    }
    mr_iterator_free(iterator);
    iterator = nullptr;
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error)); /* lines before the restored position count too */
    CHECK_OK(mr_iterator_restore(iterator, &state, &error));
    for (int i = 2; i < 6; i++) CHECK_CONTAINS(next_error(iterator, &error), texts[i]);
    mr_tensor_deinit(&state);
    mr_iterator_free(iterator);
    mr_dataset_free(d);
}
