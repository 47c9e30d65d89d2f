/* A record as a block for people: a line for each feature, cut to the width of the terminal.
 *
 *     record 0 at byte 0, 68.1 KiB
 *       image/class/text   bytes  "ball"
 *       image/encoded      bytes  «JPEG 640×480, 83.1 KiB»
 *       image/height       int64  480 */
#include "tools/common/progress.h"
#include "tools/tfrecord-cat/cat.h"

#include <millrace/image.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the output is no terminal. */
static constexpr int COLUMNS_PLAIN = 120;
static constexpr int NAME_COLUMNS_MAX = 40;

/* The columns of a block: names, then types, then values to the edge. */
typedef struct layout {
    int name, value;
} layout;

/* Bytes that are no text: what they are, or how they begin. */
static int print_binary(mr_string bytes, int room)
{
    char size[PROGRESS_TEXT_SIZE];
    mr_image_info info;
    progress_size_text(bytes.size_bytes, size);
    if (mr_image_probe(bytes.data, bytes.size_bytes, &info, nullptr) == MR_OK)
        return printf("«%s %d×%d, %s»", mr_image_format_name(info.format), info.width, info.height, size) - 3;
    int used = printf("«%s:", size) - 1;
    size_t shown = 0;
    for (; shown < bytes.size_bytes && shown < 32 && used + 6 < room; shown++)
        used += printf(" %02x", (unsigned char)bytes.data[shown]);
    if (shown < bytes.size_bytes) fputs(" …", stdout);
    fputs("»", stdout);
    return used + 3;
}

static int print_bytes(mr_string bytes, int room)
{
    if (!text_is_readable(bytes)) return print_binary(bytes, room);
    putchar('"');
    int used = text_print(stdout, bytes, room > 4 ? room - 2 : 2);
    putchar('"');
    return used + 2;
}

/* One value of a list; returns its columns. */
static int print_value(const mr_feature_view *feature, const void *values, size_t index, int room)
{
    switch (feature->kind) {
    case MR_FEATURE_INT64:
        return printf("%" PRId64, ((const int64_t *)values)[index]);
    case MR_FEATURE_FLOAT:
        return printf("%.7g", (double)((const float *)values)[index]);
    case MR_FEATURE_BYTES:
        return print_bytes(((const mr_string *)values)[index], room);
    case MR_FEATURE_NONE:
        break;
    }
    return 0;
}

/* The values of a feature, as they were counted; owned. Null: no memory or damaged. */
static void *load_values(const mr_feature_view *feature, size_t count)
{
    void *values = calloc(count + 1, sizeof(mr_string));
    mr_status status = MR_OK;
    if (!values) return nullptr;
    if (feature->kind == MR_FEATURE_INT64) status = mr_feature_int64s(feature, values, count, nullptr);
    if (feature->kind == MR_FEATURE_FLOAT) status = mr_feature_floats(feature, values, count, nullptr);
    if (feature->kind == MR_FEATURE_BYTES) status = mr_feature_bytes(feature, values, count, nullptr);
    if (status == MR_OK) return values;
    free(values);
    return nullptr;
}

static void print_values(const mr_feature_view *feature, int room)
{
    size_t count;
    mr_error error = {0};
    if (mr_feature_count(feature, &count, &error) != MR_OK) {
        printf("(damaged)");
        return;
    }
    if (feature->kind == MR_FEATURE_NONE) {
        printf("(no list)");
        return;
    }
    void *values = load_values(feature, count);
    int used = count == 1 ? 0 : printf("[%zu]", count);
    for (size_t i = 0; values && i < count; i++) {
        /* A number has at most 20 characters; two stay free for "…". */
        if (i > 0 && used + (feature->kind == MR_FEATURE_FLOAT ? 16 : 23) > room) {
            fputs(" …", stdout);
            break;
        }
        if (count != 1) used += printf(" ");
        used += print_value(feature, values, i, room - used > 8 ? room - used : 8);
    }
    free(values);
}

static const char *kind_name(mr_feature_kind kind)
{
    static const char *const names[] = {"none", "bytes", "float", "int64"};
    return names[kind];
}

static layout measure(mr_string record, int columns)
{
    layout layout = {.name = 4};
    mr_example_walk walk = {.record = record};
    mr_feature_view feature;
    int most = columns / 2 < NAME_COLUMNS_MAX ? columns / 2 - 2 : NAME_COLUMNS_MAX;
    while (mr_example_next_feature(&walk, &feature, nullptr) == MR_OK) {
        int name = text_columns(feature.name);
        if (name > layout.name) layout.name = name < most ? name : most;
    }
    layout.value = columns - layout.name - 11;
    if (layout.value < 12) layout.value = 12;
    return layout;
}

/* True when the bytes are an Example with features, or empty. */
static bool is_example(mr_string record)
{
    mr_example_walk walk = {.record = record};
    mr_feature_view feature;
    mr_status status = MR_OK;
    int64_t count = 0;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK) count++;
    return status == MR_OUT_OF_RANGE && (count > 0 || record.size_bytes <= 2);
}

void show_record(const place *place, bool is_raw)
{
    char size[PROGRESS_TEXT_SIZE];
    int columns = progress_columns(STDOUT_FILENO, COLUMNS_PLAIN);
    printf("record %" PRIu64 " at byte %" PRIu64 ", %s\n", place->number, place->offset,
           progress_size_text(place->record.size_bytes, size));
    if (is_raw || !is_example(place->record)) {
        fputs(is_raw ? "  " : "  (no Example) ", stdout);
        print_bytes(place->record, columns - (is_raw ? 2 : 15));
        putchar('\n');
        return;
    }
    layout layout = measure(place->record, columns);
    mr_example_walk walk = {.record = place->record};
    mr_feature_view feature;
    while (mr_example_next_feature(&walk, &feature, nullptr) == MR_OK) {
        fputs("  ", stdout);
        int used = text_print(stdout, feature.name, layout.name);
        printf("%*s  %s  ", layout.name - used, "", kind_name(feature.kind));
        print_values(&feature, layout.value);
        putchar('\n');
    }
}
