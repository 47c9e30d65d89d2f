/* The file formats of docs/formats.md: tests/oracle/read_formats.py, which is written from that page alone, reads the
 * files of the library and of the tools. It must find the same contents, and reject damaged files. */
#include "graph/run/session_state.h"
#include "tests/tools/make_inputs.h"

#include <millrace/millrace.h>
#include <unistd.h>

/* Runs the reader in the test's directory and returns its output. */
[[gnu::format(printf, 1, 2)]] static const char *read_formats(const char *format, ...)
{
    const char *root = getenv("MILLRACE_ROOT");
    char arguments[1024];
    va_list args;
    if (root == nullptr) test_skip("MILLRACE_ROOT is not set");
    if (system("python3 -c '' 2>/dev/null") != 0) test_skip("python3 is not installed");
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    const program_result *result =
        program_run("cd '%s' && python3 '%s/tests/oracle/read_formats.py' %s", test_directory(), root, arguments);
    if (result->exit_code != 0) test_fail(__FILE__, __LINE__, "%s", result->output);
    return result->output;
}

/* The line "lengths 0 17 …" that the reader prints for the records of record_write. */
static const char *lengths_text(int count, size_t size_max)
{
    static char text[1 << 14];
    size_t used = (size_t)snprintf(text, sizeof text, "\nlengths");
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %zu", record_size(i, size_max));
    snprintf(text + used, sizeof text - used, "\n");
    return text;
}

static void save_string(const char *name, const mr_tensor *tensor)
{
    CHECK_EQ(tensor->dtype, MR_STRING);
    mr_string string = mr_tensor_strings(tensor)[0];
    file_save(test_path("%s", name), string.data, string.size_bytes);
}

/* ---- Indexes ---- */

TEST(formats_index_of_a_plain_file)
{
    constexpr int counts[] = {0, 1, 40, 400};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        record_write(test_path("r"), counts[i], 60, (mr_record_writer_options){.index = true});
        const char *found = read_formats("index r");
        char count[32];
        snprintf(count, sizeof count, "count %d\ncompression 0\n", counts[i]);
        CHECK_CONTAINS(found, count);
        if (counts[i] > 0) CHECK_CONTAINS(found, lengths_text(counts[i], 60));
    }
}

/* Damage to any byte of an index is detected, by the reader of the page and by the library. */
TEST(formats_index_that_is_damaged)
{
    const char *path = strdup(test_path("r"));
    record_write(path, 20, 60, (mr_record_writer_options){.index = true});
    size_t size;
    unsigned char *bytes = file_load(test_path("r.index"), &size);
    char rejected[32];
    snprintf(rejected, sizeof rejected, "rejected %zu\n", 2 * size);
    CHECK_STR(read_formats("damaged-index r"), rejected);
    for (size_t i = 0; i < 2 * size; i++) {
        mr_error error = {0};
        mr_record_index index;
        bytes[i % size] ^= 1 << i % 8;
        file_save(test_path("r.index"), bytes, i < size ? size : i - size);
        bytes[i % size] ^= 1 << i % 8;
        CHECK_OK(mr_record_index_open(path, &index, &error));
        CHECK(index.origin != MR_INDEX_LOADED);
        mr_record_index_deinit(&index);
    }
    free(bytes);
    free((void *)path);
}

TEST(formats_seekable_gzip)
{
    mr_record_writer_options options = {
        .size = sizeof options, .index = true, .compression = MR_COMPRESSION_GZIP, .seek_bytes = 2000};
    for (int threads = 1; threads <= 3; threads += 2) {
        options.threads = threads;
        record_write(test_path("r.gz"), 100, 400, options);
        uint64_t bytes = 0;
        for (int i = 0; i < 100; i++) bytes += record_size(i, 400);
        mr_error error = {0};
        mr_record_index index;
        CHECK_OK(mr_record_index_open(test_path("r.gz"), &index, &error));
        CHECK(index.point_count > 5);
        char expected[80];
        snprintf(expected, sizeof expected, "segments %d\nrecords 100\nbytes %d\n", (int)index.point_count, (int)bytes);
        CHECK_STR(read_formats("seekable r.gz"), expected);
        mr_record_index_deinit(&index);
    }
    record_write(test_path("r.gz"), 0, 400, options);
    CHECK_STR(read_formats("seekable r.gz"), "segments 0\nrecords 0\nbytes 0\n");
}

/* ---- Caches ---- */

static mr_dataset *rows(void)
{
    mr_error error = {0};
    mr_tensor components[3] = {0};
    CHECK_OK(mr_tensor_init_copy(&components[0], MR_INT64, MR_SHAPE(2), (int64_t[]){1, -2}, &error));
    CHECK_OK(mr_tensor_init_strings(&components[1], MR_SHAPE(2, 2),
                                    (mr_string[]){{"a", 1}, {"", 0}, {"bc", 2}, {"d", 1}}, &error));
    CHECK_OK(mr_tensor_init_copy(&components[2], MR_BOOL, MR_SHAPE(2), (bool[]){true, false}, &error));
    mr_dataset *dataset = mr_dataset_from_slices(components, 3);
    for (int i = 0; i < 3; i++) mr_tensor_deinit(&components[i]);
    return dataset;
}

/* Consumes `count` elements; -1: all. Frees the dataset. */
static mr_iterator *take(mr_dataset *dataset, int count)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    CHECK_OK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = 2, .seed = 77), &iterator, &error));
    mr_dataset_free(dataset);
    for (int i = 0; i != count; i++) {
        mr_status status = mr_iterator_next(iterator, &element, &error);
        if (count < 0 && status == MR_OUT_OF_RANGE) break;
        CHECK_OK(status);
    }
    mr_element_deinit(&element);
    return iterator;
}

static void check_cache(const char *path)
{
    const char *found = read_formats("cache %s", path);
    CHECK_CONTAINS(found, "components 3\nelement 9[]b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00' 7[2][b'a',b''] "
                          "10[]b'\\x01'\n");
    CHECK_CONTAINS(found, "element 9[]b'\\xfe\\xff\\xff\\xff\\xff\\xff\\xff\\xff' 7[2][b'bc',b'd'] 10[]b'\\x00'\n");
}

TEST(formats_cache)
{
    const char *path = strdup(test_path("c.tfrecord"));
    mr_iterator_free(take(mr_dataset_cache(rows(), path), -1));
    check_cache("c.tfrecord");
    free((void *)path);
}

TEST(formats_snapshot)
{
    const char *path = strdup(test_path("s"));
    for (int gzip = 0; gzip < 2; gzip++) {
        mr_iterator_free(take(mr_dataset_snapshot(rows(), path, .gzip = gzip == 1), -1));
        const char *ending = gzip == 1 ? "tfrecord.gz" : "tfrecord";
        check_cache(test_path("s/*.%s", ending));
        /* The file name is the digest. */
        CHECK_EQ(program_run("cd '%s/s' && ls *.%s | grep -qE '^[0-9a-f]{16}\\.%s$'", test_directory(), ending, ending)
                     ->exit_code,
                 0);
    }
    free((void *)path);
}

/* ---- States ---- */

/* Saves the state after `count` elements; returns the reader's output without the digest. */
static const char *state_after(mr_dataset *dataset, int count, const char *stages)
{
    mr_error error = {0};
    mr_tensor state = {0};
    mr_iterator *iterator = take(dataset, count);
    CHECK_OK(mr_iterator_save(iterator, &state, &error));
    mr_iterator_free(iterator);
    save_string("state", &state);
    mr_tensor_deinit(&state);
    const char *found = read_formats("state state %s", stages), *seed = strstr(found, " seed ");
    CHECK(strncmp(found, "state form ", 11) == 0 && seed != nullptr);
    return seed + 1;
}

static mr_dataset *lines(void)
{
    save_text("a.txt", "one\ntwo\nthree\n");
    save_text("b.txt", "four\nfive\nsix\nseven\n");
    return mr_dataset_text_lines(test_path("*.txt"));
}

TEST(formats_state_that_is_a_position)
{
    CHECK_STR(state_after(mr_dataset_shuffle(mr_dataset_range(0, 1000, 1), .seed = 3), 17, "engine"),
              "seed 77 position 17\n");
    CHECK_STR(state_after(mr_dataset_batch(mr_dataset_range(0, 1000, 1), 8), 5, "engine"), "seed 77 position 5\n");
}

TEST(formats_state_of_text_lines)
{
    CHECK_STR(state_after(lines(), 0, "engine,text_lines"),
              "seed 77 engine@0,0 text_lines@0,0 file=0 first=0 header=0 offset=0\n");
    /* "four" and its line break are 5 bytes. */
    CHECK_STR(state_after(lines(), 4, "engine,text_lines"),
              "seed 77 engine@0,4 text_lines@0,4 file=1 first=3 header=0 offset=5\n");
}

TEST(formats_state_of_batches)
{
    const char *found = state_after(mr_dataset_batch(lines(), 2), 2, "engine,batch,text_lines");
    CHECK_STR(found, "seed 77 engine@0,2 rows=0 ignored=0 batch@0,2 epoch=0 text_lines@0,4 file=1 first=3 header=0 "
                     "offset=5\n");
}

TEST(formats_state_of_repeat)
{
    const char *found = state_after(mr_dataset_repeat(lines(), 3), 9, "engine,repeat,text_lines");
    CHECK_CONTAINS(found, "engine@0,9 repeat@0,9 pass=1 count=");
    CHECK_CONTAINS(found, " text_lines@1,2 file=0 first=0 header=0 offset=8\n");
}

/* The buffer of 3 is full after the first element. It is filled from the beginning of the input. */
TEST(formats_state_of_shuffle)
{
    const char *found =
        state_after(mr_dataset_shuffle(lines(), .buffer_size = 3, .seed = 5), 2, "engine,shuffle,text_lines");
    CHECK_CONTAINS(found, "engine@0,2 shuffle@0,2 text_lines@0,0 file=0 first=0 header=0 offset=0 ahead=");
    CHECK_CONTAINS(found, " full=1 count=");
}

TEST(formats_session_state)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *data = mr_dataset_range(0, 100, 1);
    mr_output number, unread;
    mr_graph_iterator(g, "data", data, MR_OPTIONS(mr_iterator_options, .seed = 5), &number);
    mr_graph_iterator(g, "unread", data, nullptr, &unread);
    mr_dataset_free(data);
    mr_output shape = mr_constant_ints(g, MR_INTS(10));
    mr_output random = mr_random_uniform(g, shape, MR_FLOAT, .name = "random", .seed = 1, .seed2 = 2);
    (void)mr_random_uniform(g, shape, MR_FLOAT, .name = "unused", .seed = 1, .seed2 = 3);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, nullptr, &session, &error));
    for (int i = 0; i < 3; i++) {
        mr_tensor results[2] = {0};
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(number, random), results, nullptr, 0, &error));
        for (int j = 0; j < 2; j++) mr_tensor_deinit(&results[j]);
    }
    mr_tensor state = {0};
    CHECK_OK(mr_session_save_state(session, &state, &error));
    save_string("session", &state);
    const char *found = read_formats("session session");
    /* 10 floats take 3 samples of 128 bits, unless the kernel draws more at a time. */
    CHECK(strncmp(found, "random random 0 0 ", 18) == 0 && atoi(found + 18) >= 9);
    CHECK_CONTAINS(found, "\niterator data form 1 digest ");
    CHECK_CONTAINS(found, " seed 5 position 3\n");
    CHECK(strstr(found, "unread") == nullptr && strstr(found, "unused") == nullptr);
    mr_tensor_deinit(&state);
    mr_session_free(session);
    mr_graph_free(g);
}

/* ---- The tools ---- */

TEST(formats_journal)
{
    make_pngs("p", 9);
    CHECK_EQ(program_run("cd '%s' && mkdir -p d/a 'd/b c' && cp p/[0-4].png d/a && cp p/[5-7].png 'd/b c' && "
                         "echo text > 'd/b c/100%%: no.png'",
                         test_directory())
                 ->exit_code,
             0);
    CHECK_EQ(make("--shards 2 --on-error skip d")->exit_code, 0);
    const char *found = read_formats("journal out d");
    CHECK_CONTAINS(found, "text labels.txt\n");
    CHECK_CONTAINS(found, "shard d-");
    CHECK_CONTAINS(found, "no-image:1:b c/100%: no.png");
    /* The journal of a run with several workers. */
    for (int i = 1; i <= 2; i++)
        CHECK_EQ(
            program_run("cd '%s' && tfrecord-make --out shared --on-error skip --worker %d/2 d", test_directory(), i)
                ->exit_code,
            0);
    found = read_formats("journal shared d");
    CHECK_CONTAINS(found, "line begin 9\nline end\nline begin 9\nline end\n");
    CHECK_EQ(
        program_run("cd '%s' && tfrecord-make --out shared --on-error skip --finish d", test_directory())->exit_code,
        0);
    CHECK_CONTAINS(read_formats("journal shared d"), "shard d-");
}

TEST(formats_quarantine)
{
    mr_error error = {0};
    const char *path = strdup(test_path("r")), *side = strdup(test_path("q"));
    record_write(path, 20, 300, (mr_record_writer_options){0});
    size_t size;
    unsigned char *bytes = file_load(path, &size);
    bytes[record_begin(4, 300) + 14] ^= 1;
    file_save(path, bytes, size - 2);
    free(bytes);
    mr_record_quarantine *quarantine = nullptr;
    CHECK_OK(mr_record_quarantine_open(side, &quarantine, &error));
    mr_record_reader *reader = nullptr;
    mr_record_reader_options options = {.size = sizeof options, .damage = MR_DAMAGE_SKIP, .quarantine = quarantine};
    CHECK_OK(mr_record_reader_open(path, &options, &reader, &error));
    mr_string record;
    while (mr_record_reader_next(reader, &record, &error) == MR_OK) continue;
    mr_record_reader_close(reader);
    CHECK_OK(mr_record_quarantine_close(quarantine, &error));
    char expected[200];
    snprintf(expected, sizeof expected, "range r bad-data 4 %zu %zu\nrange r truncated 19 %zu %zu\n",
             record_begin(4, 300), 16 + record_size(4, 300), record_begin(19, 300), 14 + record_size(19, 300));
    CHECK_STR(read_formats("quarantine q"), expected);
    free((void *)path);
    free((void *)side);
}

TEST(formats_crop_ready)
{
    mr_error error = {0};
    for (int channels = 1; channels <= 3; channels += 2) {
        mr_tensor pixels = {0}, jpeg = {0}, ready = {0};
        CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(150, 320, channels), &error));
        for (int64_t i = 0; i < mr_tensor_count(&pixels); i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i * i / 7);
        CHECK_OK(mr_image_encode_jpeg(&pixels, 90, &jpeg, &error));
        mr_string bytes = mr_tensor_strings(&jpeg)[0];
        mr_crop_ready_info info;
        CHECK_OK(mr_image_crop_ready(bytes.data, bytes.size_bytes, nullptr, &ready, &info, &error));
        save_string("ready.jpg", &ready);
        char expected[80];
        snprintf(expected, sizeof expected, "crop-ready 320 150 interval %d segments ", info.restart_interval);
        CHECK_CONTAINS(read_formats("crop-ready ready.jpg"), expected);
        mr_tensor_deinit(&pixels);
        mr_tensor_deinit(&jpeg);
        mr_tensor_deinit(&ready);
    }
}
