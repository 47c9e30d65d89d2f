/* The scan decoder compared with libjpeg's own: the same rows, and the same messages for damaged images. */
#include "kernels/image/jpeg.h"
#include "kernels/image/jpeg_bytes.h"
#include "tests/kernels/images.h"
#include "tests/test.h"

typedef struct outcome {
    mr_status status;
    mr_error error;
    int32_t rows;
    unsigned char *pixels; /* rows of row_width x channels */
    size_t size_bytes;
} outcome;

static outcome read_window(mr_jpeg_reader *reader, test_bytes file, const mr_image_decode_options *options,
                           const mr_image_region *window)
{
    outcome result = {0};
    mr_error *error = &result.error;
    result.status = mr_jpeg_reader_open(reader, file.bytes, file.size_bytes, options, error);
    if (result.status != MR_OK) return result;
    mr_image_region region = {0, 0, reader->width, reader->height, false};
    if (window != nullptr && window->x + window->width <= reader->width && window->y + window->height <= reader->height)
        region = *window;
    result.status = mr_jpeg_reader_start(reader, &region, error);
    if (result.status != MR_OK) return result;
    size_t row_bytes = (size_t)reader->row_width * (size_t)reader->channels;
    result.size_bytes = row_bytes * (size_t)region.height;
    result.pixels = calloc(result.size_bytes + 1, 1);
    for (; result.rows < region.height && result.status == MR_OK; result.rows++)
        result.status = mr_jpeg_reader_row(reader, result.pixels + (size_t)result.rows * row_bytes, error);
    if (result.status == MR_OK) result.status = mr_jpeg_reader_finish(reader, error);
    return result;
}

/* Compares our decoder with libjpeg's. may_miss: our decoder may not detect damage outside the window. */
static void check_same(mr_jpeg_reader *reader, test_bytes file, const mr_image_decode_options *options,
                       const mr_image_region *window, bool may_miss, const char *what, int number)
{
    reader->always_plain = true;
    outcome theirs = read_window(reader, file, options, window);
    reader->always_plain = false;
    outcome ours = read_window(reader, file, options, window);
    bool missed = may_miss && theirs.status == MR_DATA_LOSS && ours.status == MR_OK;
    if (!missed) {
        if (ours.status != theirs.status || strcmp(ours.error.message, theirs.error.message) != 0)
            test_fail(__FILE__, __LINE__, "%s %d: ours %s %s, libjpeg's %s %s", what, number,
                      mr_status_name(ours.status), ours.error.message, mr_status_name(theirs.status),
                      theirs.error.message);
        CHECK_EQ(ours.rows, theirs.rows);
        CHECK_EQ(ours.size_bytes, theirs.size_bytes);
        if (ours.size_bytes > 0 && (!may_miss || theirs.status == MR_OK) &&
            memcmp(ours.pixels, theirs.pixels, ours.size_bytes) != 0)
            test_fail(__FILE__, __LINE__, "%s %d: other pixels", what, number);
    }
    free(ours.pixels);
    free(theirs.pixels);
}

static test_bytes segmented(test_bytes file, int32_t mcus)
{
    mr_error error = {0};
    mr_tensor ready = {0};
    CHECK_OK(mr_image_crop_ready(file.bytes, file.size_bytes,
                                 MR_OPTIONS(mr_crop_ready_options, .restart_interval = mcus), &ready, nullptr, &error));
    mr_string bytes = mr_tensor_strings(&ready)[0];
    test_bytes result = {malloc(bytes.size_bytes), bytes.size_bytes};
    memcpy(result.bytes, bytes.data, bytes.size_bytes);
    mr_tensor_deinit(&ready);
    return result;
}

TEST(jpeg_scan_reads_what_libjpeg_reads)
{
    mr_jpeg_reader reader = {0};
    for (int kind = 0; kind < test_jpeg_kind_count; kind++)
        for (int size = 0; size < 12; size++) {
            mr_random random = mr_random_at(test_seed(), (uint64_t)kind, (uint64_t)size, 3);
            int width = 1 + (int)mr_random_below(&random, 200), height = 1 + (int)mr_random_below(&random, 120);
            test_bytes file = test_jpeg(width, height, test_jpeg_kinds[kind]);
            bool cmyk = test_jpeg_kinds[kind].channels == 4;
            for (int way = 0; way < 4; way++) {
                mr_image_decode_options options = {.size = sizeof options,
                                                   .channels = way == 1 && !cmyk ? 1 : 3,
                                                   .ratio = way == 2   ? 8
                                                            : way == 3 ? 2
                                                                       : 1};
                check_same(&reader, file, &options, nullptr, false, "kind", kind);
                check_same(&reader, file, &options, &(mr_image_region){width / 8 / 2, 0, 1, 1, false}, false, "kind",
                           kind);
            }
            free(file.bytes);
        }
    mr_jpeg_reader_deinit(&reader);
}

/* Every position of a window and every segment length, for all samplings and odd sizes. */
TEST(jpeg_scan_crops_of_segments_equal_a_crop_of_the_full_image)
{
    mr_error error = {0};
    static const int32_t segments[] = {1, 2, 3, 0, 7, 1000};
    mr_jpeg_reader reader = {0};
    for (int kind = 0; kind < test_jpeg_kind_count; kind++) {
        int width = 131, height = 67;
        mr_random random = mr_random_at(test_seed(), (uint64_t)kind, 1, 4);
        test_bytes file = test_jpeg(width, height, test_jpeg_kinds[kind]);
        mr_image_decode_options options = {.size = sizeof options, .channels = 3};
        mr_tensor whole = {0};
        CHECK_OK(mr_image_decode(file.bytes, file.size_bytes, &options, &whole, &error));
        for (size_t s = 0; s < sizeof(segments) / sizeof(segments[0]); s++) {
            test_bytes ready = segmented(file, segments[s]);
            for (int i = 0; i < width + height; i++) {
                mr_image_region window = {.width = 1 + (int)mr_random_below(&random, 40),
                                          .height = 1 + (int)mr_random_below(&random, 30)};
                window.x = i < width ? i : (int)mr_random_below(&random, (uint64_t)width);
                window.y = i < width ? (int)mr_random_below(&random, (uint64_t)height) : i - width;
                if (window.width > width - window.x) window.width = width - window.x;
                if (window.height > height - window.y) window.height = height - window.y;
                outcome got = read_window(&reader, ready, &options, &window);
                CHECK_OK(got.status);
                size_t row_bytes = (size_t)reader.row_width * 3;
                for (int y = 0; y < window.height; y++)
                    if (memcmp(got.pixels + (size_t)y * row_bytes + (size_t)reader.row_left * 3,
                               mr_tensor_uint8s(&whole) + (size_t)((window.y + y) * width + window.x) * 3,
                               (size_t)window.width * 3) != 0)
                        test_fail(__FILE__, __LINE__, "kind %d, segments of %d: %d x %d at (%d, %d): row %d differs",
                                  kind, segments[s], window.width, window.height, window.x, window.y, y);
                free(got.pixels);
            }
            free(ready.bytes);
        }
        mr_tensor_deinit(&whole);
        free(file.bytes);
    }
    mr_jpeg_reader_deinit(&reader);
}

static size_t scan_begin(test_bytes file)
{
    for (size_t i = 0; i + 3 < file.size_bytes; i++)
        if (file.bytes[i] == 0xff && file.bytes[i + 1] == 0xda)
            return i + 2 + (size_t)(file.bytes[i + 2] << 8 | file.bytes[i + 3]);
    return file.size_bytes;
}

/* Modifies the scan once: a bit, a byte, a marker, or several bytes inserted or removed. */
static void damage(test_bytes *file, size_t begin, mr_random *random)
{
    size_t at = begin + mr_random_below(random, file->size_bytes - begin - 4);
    size_t length = 1 + mr_random_below(random, 40);
    switch (mr_random_below(random, 7)) {
    case 0:
        file->bytes[at] ^= (unsigned char)(1u << mr_random_below(random, 8));
        break;
    case 1:
        file->bytes[at] = 0xff;
        break;
    case 2:
        file->bytes[at] = 0xff;
        file->bytes[at + 1] = (unsigned char)(0xd0 + mr_random_below(random, 10));
        break;
    case 3:
        if (length > file->size_bytes - at) length = file->size_bytes - at;
        memmove(file->bytes + at, file->bytes + at + length, file->size_bytes - at - length);
        file->size_bytes -= length;
        break;
    case 4:
        memmove(file->bytes + at + length, file->bytes + at, file->size_bytes - at);
        memset(file->bytes + at, (int)mr_random_below(random, 2) * 0xff, length);
        file->size_bytes += length;
        break;
    case 5:
        for (size_t i = 0; i < length && at + i < file->size_bytes; i++)
            file->bytes[at + i] = (unsigned char)mr_random_next32(random);
        break;
    default:
        /* Changes the number of a restart marker. */
        for (size_t i = at; i + 1 < file->size_bytes; i++)
            if (file->bytes[i] == 0xff && file->bytes[i + 1] >= 0xd0 && file->bytes[i + 1] <= 0xd7) {
                file->bytes[i + 1] = (unsigned char)(0xd0 + mr_random_below(random, 8));
                break;
            }
        break;
    }
}

TEST(jpeg_scan_damaged_is_what_libjpeg_makes_of_it)
{
    static const int kinds[] = {0, 2, 1, 8, 13, 17};
    mr_jpeg_reader reader = {0};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int32_t mcus = -1; mcus <= 3; mcus += 2) {
            test_bytes plain = test_jpeg(150, 90, test_jpeg_kinds[kinds[k]]);
            test_bytes file = mcus < 0 ? plain : segmented(plain, mcus);
            test_bytes copy = {malloc(file.size_bytes + 100), file.size_bytes};
            for (int i = 0; i < 120; i++) {
                mr_random random = mr_random_at(test_seed(), (uint64_t)i, k, (uint64_t)(mcus + 1));
                memcpy(copy.bytes, file.bytes, file.size_bytes);
                copy.size_bytes = file.size_bytes;
                damage(&copy, scan_begin(file), &random);
                mr_image_decode_options options = {.size = sizeof options,
                                                   .channels = 3,
                                                   .accept_damaged = i % 3 == 1,
                                                   .try_recover_truncated = i % 3 == 2,
                                                   .ratio = i % 5 == 0 ? 4 : 1};
                check_same(&reader, copy, &options, nullptr, false, "damage", i);
                if (options.ratio != 1) continue;
                mr_image_region window = {.width = 40, .height = 30, .x = i * 7 % 111, .y = i * 5 % 61};
                check_same(&reader, copy, MR_OPTIONS(mr_image_decode_options, .channels = 3), &window, true,
                           "damage and crop", i);
            }
            free(copy.bytes);
            if (mcus >= 0) free(file.bytes);
            free(plain.bytes);
        }
    mr_jpeg_reader_deinit(&reader);
}

/* Damage outside the segments that a crop overlaps has no effect; damage inside them is detected. */
TEST(jpeg_scan_reads_only_the_segments_of_a_crop)
{
    mr_error error = {0};
    test_bytes plain = test_jpeg(256, 128, test_jpeg_kinds[2]), file = segmented(plain, 4);
    mr_jpeg_reader reader = {0};
    mr_image_decode_options options = {.size = sizeof options, .channels = 3};
    mr_image_region window = {.x = 10, .y = 70, .width = 30, .height = 10};
    outcome before = read_window(&reader, file, &options, &window);
    CHECK_OK(before.status);
    size_t at = scan_begin(file);
    /* The first segment is at the top left; nearly all of it is removed. */
    size_t end = at + 4;
    while (file.bytes[end] != 0xff || file.bytes[end + 1] == 0) end++;
    memmove(file.bytes + at + 4, file.bytes + end, file.size_bytes - end);
    file.size_bytes -= end - at - 4;
    outcome after = read_window(&reader, file, &options, &window);
    CHECK_OK(after.status);
    CHECK(memcmp(before.pixels, after.pixels, before.size_bytes) == 0);
    mr_tensor whole = {0};
    CHECK_STATUS(mr_image_decode(file.bytes, file.size_bytes, nullptr, &whole, &error), MR_DATA_LOSS);
    free(before.pixels);
    free(after.pixels);
    free(file.bytes);
    free(plain.bytes);
    mr_jpeg_reader_deinit(&reader);
}

/* libjpeg by itself would use the tables of the previous image. */
TEST(jpeg_without_tables_does_not_take_those_of_another)
{
    test_bytes other = test_jpeg(90, 70, test_jpeg_kinds[2]), before = segmented(other, 4);
    for (int marker = 0xc4; marker <= 0xdb; marker += 0xdb - 0xc4) {
        test_bytes file = test_jpeg(64, 48, test_jpeg_kinds[2]);
        for (size_t i = 2; i + 3 < scan_begin(file);) {
            size_t length = 2 + (size_t)(file.bytes[i + 2] << 8 | file.bytes[i + 3]);
            if (file.bytes[i + 1] == marker) file.bytes[i + 1] = 0xfe; /* marker of a comment segment */
            i += length;
        }
        mr_image_decode_options options = {.size = sizeof options, .channels = 3};
        for (int plain = 0; plain < 2; plain++) {
            mr_jpeg_reader fresh = {.always_plain = plain != 0}, used = {.always_plain = plain != 0};
            outcome expected = read_window(&fresh, file, &options, nullptr);
            free(read_window(&used, before, &options, nullptr).pixels);
            outcome got = read_window(&used, file, &options, nullptr);
            /* An image without Huffman tables uses the standard ones, as in motion JPEG. */
            CHECK_EQ(expected.status, marker == 0xc4 ? MR_OK : MR_DATA_LOSS);
            CHECK_EQ(got.status, expected.status);
            CHECK(strcmp(got.error.message, expected.error.message) == 0);
            CHECK(got.size_bytes == expected.size_bytes &&
                  (got.size_bytes == 0 || memcmp(got.pixels, expected.pixels, got.size_bytes) == 0));
            free(expected.pixels);
            free(got.pixels);
            mr_jpeg_reader_deinit(&fresh);
            mr_jpeg_reader_deinit(&used);
        }
        free(file.bytes);
    }
    free(before.bytes);
    free(other.bytes);
}

TEST(jpeg_bytes_of_all_processors_agree)
{
    const mr_jpeg_bytes_table *plain = mr_jpeg_bytes(MR_CPU_PLAIN);
    unsigned char source[400], expected[400 + mr_jpeg_bytes_slack], got[400 + mr_jpeg_bytes_slack];
    for (mr_cpu_level level = MR_CPU_PLAIN; level <= mr_cpu(); level++)
        for (uint64_t i = 0; i < 4000; i++) {
            mr_random random = mr_random_at(test_seed(), i, 0, 5);
            size_t size = mr_random_below(&random, sizeof(source) + 1);
            size_t capacity = mr_random_below(&random, sizeof(source) + 1);
            uint64_t often = 1 + mr_random_below(&random, 100);
            for (size_t k = 0; k < size; k++) {
                source[k] = (unsigned char)mr_random_next32(&random);
                if (mr_random_below(&random, often) == 0) source[k] = 0xff;
                if (k > 0 && source[k - 1] == 0xff && mr_random_below(&random, 12) != 0) source[k] = 0;
            }
            unsigned char *own = malloc(size + 1); /* exact size, so that a sanitizer detects reads past the end */
            memcpy(own, source, size);
            const mr_jpeg_bytes_table *table = mr_jpeg_bytes(level);
            const unsigned char *a = own, *b = own;
            size_t count = plain->unstuff(expected, capacity, &a, own + size);
            CHECK_EQ(table->unstuff(got, capacity, &b, own + size), count);
            CHECK(a == b);
            CHECK(memcmp(expected, got, count) == 0);
            CHECK(plain->find_marker(own, own + size) == table->find_marker(own, own + size));
            free(own);
        }
}
