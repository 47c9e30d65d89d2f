/* A record as a readable block: one line for each feature, cut to the width of the terminal. In a directory of
 * tensorflow_datasets, a class number is followed by its name.
 *
 *     record 0 at byte 0, 68.1 KiB
 *       image/class/text   bytes  "ball"
 *       image/encoded      bytes  «JPEG 640×480, 83.1 KiB»
 *       image/height       int64  480 */
#include "common/progress.h"
#include "common/query/values.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"

#include <millrace/image.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Columns when the output is not a terminal. */
static constexpr int COLUMNS_PLAIN = 120;
static constexpr int NAME_COLUMNS_MAX = 40;

/* The columns of a block: names, then types, then values up to the edge. */
typedef struct layout {
    int name, value;
} layout;

typedef struct show {
    const options *options;
    const char *path; /* whose name was printed last */
    view view;
    const tfds *tfds; /* metadata of that file's directory; null: none */
    out text;         /* of the current value */
    bool has_failed, is_out_of_memory;
} show;

/* Binary bytes: what they are, or their first bytes. */
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

/* Prints the buffered text; returns its columns. */
static int print_text(show *show)
{
    int used = (int)show->text.size;
    if (!out_write(&show->text, stdout)) show->is_out_of_memory = true;
    return used;
}

/* Encoded bytes, cut with "…". */
static int print_encoded(show *show, mr_string bytes, int room)
{
    int form = show->options->bytes_form;
    size_t shown = room > 4 ? (size_t)(form == BYTES_HEX ? room / 2 - 1 : room / 4 * 3 - 2) : 1;
    bool is_cut = shown < bytes.size_bytes;
    if (is_cut) bytes.size_bytes = shown;
    if (form == BYTES_HEX)
        out_hex(&show->text, bytes);
    else
        out_base64(&show->text, bytes);
    int used = print_text(show) + is_cut;
    if (is_cut) fputs("…", stdout);
    return used;
}

static int print_bytes(show *show, mr_string bytes, int room)
{
    if (show->options->bytes_form != BYTES_TEXT) return print_encoded(show, bytes, room);
    if (!text_is_readable(bytes)) return print_binary(bytes, room);
    putchar('"');
    int used = text_print(stdout, bytes, room > 4 ? room - 2 : 2);
    putchar('"');
    return used + 2;
}

/* Prints a value, and the name of its class if there is one; returns the columns. */
static int print_value(show *show, const tfds_feature *meaning, const value *value, int room)
{
    const char *label = value->kind == MR_FEATURE_INT64 ? tfds_label(meaning, value->integer) : nullptr;
    if (value->kind == MR_FEATURE_BYTES) return print_bytes(show, value->bytes, room);
    if (value->kind == MR_FEATURE_INT64)
        out_integer(&show->text, value->integer);
    else
        out_float(&show->text, value->number);
    int used = print_text(show);
    if (label && used + 4 < room) {
        used += printf(" (");
        used += text_print(stdout, mr_string_from(label), room - used - 1);
        used += printf(")");
    }
    return used;
}

/* Prints the values of a feature in at most `room` columns; returns the columns used. */
static int print_values(show *show, const mr_feature_view *feature, size_t count, int room)
{
    const tfds_feature *meaning = tfds_find(show->tfds, feature->name);
    int used = count == 1 ? 0 : printf("[%zu]", count);
    values values = values_of(feature);
    value value;
    for (size_t i = 0; values_next(&values, &value); i++) {
        /* A number has at most 20 characters; two are reserved for "…". */
        if (i > 0 && used + (feature->kind == MR_FEATURE_FLOAT ? 16 : 23) > room) return used + printf(" …") - 2;
        if (count != 1) used += printf(" ");
        used += print_value(show, meaning, &value, room - used > 8 ? room - used : 8);
    }
    return used;
}

static const char *kind_name(mr_feature_kind kind)
{
    static const char *const names[] = {"none", "bytes", "float", "int64"};
    return names[kind];
}

/* "[3 steps] int64 [2] 1 2 | 7 | …" */
static void print_steps(show *show, const entry *entry, int room)
{
    mr_feature_list_view list = entry->list;
    mr_feature_view step;
    int used = printf("[%zu step%s]", entry->count, entry->count == 1 ? "" : "s");
    for (size_t i = 0; mr_feature_list_next(&list, &step, nullptr) == MR_OK; i++) {
        size_t count = 0;
        if (used + 30 > room && i > 0) {
            fputs(" …", stdout);
            break;
        }
        used += i > 0 ? printf(" | ") : printf(" %s ", kind_name(step.kind));
        if (mr_feature_count(&step, &count, nullptr) == MR_OK && step.kind != MR_FEATURE_NONE)
            used += print_values(show, &step, count, room - used);
    }
}

static void print_entry(show *show, const entry *entry, layout layout)
{
    fputs("  ", stdout);
    int used = text_print(stdout, entry->name, layout.name);
    const char *kind = entry->is_list ? "list" : kind_name(entry->feature.kind);
    printf("%*s  %-5s  ", layout.name - used, "", kind);
    int room = layout.value - (entry->is_hidden ? 9 : 0);
    if (entry->is_damaged)
        printf("(damaged)");
    else if (entry->is_list)
        print_steps(show, entry, room);
    else if (entry->feature.kind == MR_FEATURE_NONE)
        printf("(no list)");
    else
        (void)print_values(show, &entry->feature, entry->count, room);
    puts(entry->is_hidden ? " (hidden)" : "");
}

static layout measure(const view *view, int columns)
{
    layout layout = {.name = 4};
    int most = columns / 2 < NAME_COLUMNS_MAX ? columns / 2 - 2 : NAME_COLUMNS_MAX;
    for (size_t i = 0; i < view->count; i++) {
        int name = text_columns(view->entries[i].name);
        if (name > layout.name) layout.name = name < most ? name : most;
    }
    layout.value = columns - layout.name - 11;
    if (layout.value < 12) layout.value = 12;
    return layout;
}

static void show_record(show *show, const record_position *position)
{
    char size[PROGRESS_TEXT_SIZE];
    int columns = progress_columns(STDOUT_FILENO, COLUMNS_PLAIN);
    mr_error error = {0};
    if (view_read(&show->view, show->options->features, show->options->is_raw, position->record, &error) != MR_OK) {
        (void)print_record_error(position, &error);
        show->has_failed = true;
        return;
    }
    printf("record %" PRIu64 " at byte %" PRIu64 ", %s%s\n", position->number, position->offset,
           progress_size_text(position->record.size_bytes, size),
           show->view.form == MR_EXAMPLE_SEQUENCE ? ", a SequenceExample" : "");
    if (show->view.form == MR_EXAMPLE_NONE) {
        bool is_raw = show->options->is_raw;
        fputs(is_raw ? "  " : "  (not an Example) ", stdout);
        (void)print_bytes(show, position->record, columns - (is_raw ? 2 : 15));
        putchar('\n');
        return;
    }
    layout layout = measure(&show->view, columns);
    for (size_t i = 0; i < show->view.count; i++) print_entry(show, &show->view.entries[i], layout);
}

/* Prints a file's name and finds its directory's metadata. */
static void begin_file(show *show, const char *path)
{
    if (show->options->path_count > 1) {
        (void)text_print(stdout, mr_string_from(text_path(path)), INT32_MAX);
        putchar('\n');
    }
    show->tfds = tfds_set_find(&show->options->tfds, path);
    show->path = path;
}

static bool show_one(void *context, const record_position *position)
{
    show *show = context;
    if (show->path != position->path) begin_file(show, position->path);
    show_record(show, position);
    if (show->is_out_of_memory) show->has_failed = print_no_memory();
    return !show->is_out_of_memory;
}

int show_run(const options *options)
{
    show show = {.options = options};
    int exit_code = walk_records(options, show_one, &show);
    view_deinit(&show.view);
    out_deinit(&show.text);
    return show.has_failed ? 1 : exit_code;
}
