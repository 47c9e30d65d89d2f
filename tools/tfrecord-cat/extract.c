/* --extract: writes images, and other bytes, from records to files DIR/CLASS/NAME.
 *
 * A batch of records is read; threads find its images and their preferred names; final names are assigned in order, so
 * that they depend only on the records; threads write the files. A file gets its name when it is complete, and an
 * existing file with the same bytes is kept, so an interrupted run can be resumed. */
#include "common/file.h"
#include "common/query/patterns.h"
#include "tfrecord-cat/batches.h"
#include "tfrecord-cat/image_select.h"
#include "tfrecord-cat/rewrite.h"
#include "tfrecord-cat/safe_names.h"
#include "tfrecord-cat/walk.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maximum number of unwritable files that are reported one by one; the others are only counted. */
static constexpr uint64_t PRINTED_MAX = 10;
/* Number of records that are processed together, and maximum number of files for one record; limits memory. */
static constexpr size_t AT_ONCE = 256;
static constexpr size_t FILES_MAX = 100'000;
/* Maximum number of directories below the class that a file's name may contain. */
static constexpr int DEPTH_MAX = 16;

/* A value to be written to a file. */
typedef struct target {
    mr_string bytes;
    size_t directory, stem,
        end; /* offsets in names: directory "CLASS" ends at directory, "NAME" at stem, the extension at end */
    const char *ending; /* static; null: the name has an extension */
    char *path;         /* owned; below the output directory */
    mr_error *error;    /* owned; why it is not written; null: it is written */
} target;

/* Values of one record. */
typedef struct targets {
    target *items; /* owned */
    size_t count, capacity;
    out names;
    bool has_failed, is_too_many;
} targets;

typedef struct extract {
    const options *options;
    options all; /* the same without --features: class and name are always read */
    given_names names;
    atomic_uint_fast64_t files, bytes, kept;
    atomic_bool is_out_of_memory;
    uint64_t records, without, renamed, directories, rejected, cut;
    bool has_failed;
} extract;

/* Work for threads. */
typedef struct batch_work {
    extract *extract;
    batch_item *items;
} batch_work;

/* ---- Values of a record ---- */

typedef struct finder {
    const extract *extract;
    const record_position *position;
    targets *targets;
    const caption *caption;
    bytes_value main; /* the image that gets the plain file name */
} finder;

static const char *ending_of(mr_image_format format)
{
    static const char *const endings[] = {
        [MR_IMAGE_JPEG] = ".jpg",    [MR_IMAGE_PNG] = ".png",      [MR_IMAGE_GIF] = ".gif",   [MR_IMAGE_BMP] = ".bmp",
        [MR_IMAGE_WEBP] = ".webp",   [MR_IMAGE_TIFF] = ".tif",     [MR_IMAGE_HEIC] = ".heic", [MR_IMAGE_AVIF] = ".avif",
        [MR_IMAGE_JPEG_XL] = ".jxl", [MR_IMAGE_JPEG_2000] = ".jp2"};
    const char *ending = (size_t)format < sizeof(endings) / sizeof(*endings) ? endings[format] : nullptr;
    return ending ? ending : ".bin";
}

/* The length of a name's extension if it is that of an image format, which is returned in *format. */
static size_t known_ending(mr_string name, mr_image_format *format)
{
    static const struct {
        const char *text;
        mr_image_format format;
    } rows[] = {{".jpg", MR_IMAGE_JPEG},    {".jpeg", MR_IMAGE_JPEG},    {".jpe", MR_IMAGE_JPEG},
                {".jfif", MR_IMAGE_JPEG},   {".png", MR_IMAGE_PNG},      {".gif", MR_IMAGE_GIF},
                {".bmp", MR_IMAGE_BMP},     {".webp", MR_IMAGE_WEBP},    {".tif", MR_IMAGE_TIFF},
                {".tiff", MR_IMAGE_TIFF},   {".heic", MR_IMAGE_HEIC},    {".avif", MR_IMAGE_AVIF},
                {".jxl", MR_IMAGE_JPEG_XL}, {".jp2", MR_IMAGE_JPEG_2000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        size_t length = strlen(rows[i].text);
        if (name.size_bytes <= length || strncasecmp(name.data + name.size_bytes - length, rows[i].text, length) != 0)
            continue;
        *format = rows[i].format;
        return length;
    }
    return 0;
}

/* The record's file and number, used as a name if it has none: "train-00000-of-00004-00000007". */
static void put_number_name(out *out, const record_position *position)
{
    const char *slash = strrchr(position->path, '/'), *base = slash ? slash + 1 : position->path;
    const char *end = strstr(base, ".tfrecord");
    char number[32];
    if (strcmp(base, "-") == 0) base = "record", end = nullptr;
    (void)safe_name(out, (mr_string){base, end && end > base ? (size_t)(end - base) : strlen(base)}, SAFE_PART_MAX);
    snprintf(number, sizeof(number), "-%08" PRIu64, position->number);
    out_text(out, number);
}

/* Appends the directories of the record's file name below its class, "cat/young/1.jpg" of "cat": "young/"; *name is the
 * rest. */
static void put_subdirectories(out *out, mr_string directory, mr_string *name)
{
    mr_string rest = *name;
    bool is_below = directory.size_bytes > 0 && rest.size_bytes > directory.size_bytes + 1 &&
                    memcmp(rest.data, directory.data, directory.size_bytes) == 0 &&
                    rest.data[directory.size_bytes] == '/';
    if (is_below) rest = (mr_string){rest.data + directory.size_bytes + 1, rest.size_bytes - directory.size_bytes - 1};
    const char *slash;
    for (int depth = 0; rest.size_bytes > 0 && (slash = memchr(rest.data, '/', rest.size_bytes)); depth++) {
        mr_string part = {rest.data, (size_t)(slash - rest.data)};
        if (is_below && depth < DEPTH_MAX && safe_name(out, part, SAFE_NAME_MAX)) out_char(out, '/');
        rest = (mr_string){slash + 1, rest.size_bytes - part.size_bytes - 1};
    }
    *name = rest;
}

/* Appends the step of a list, and the index of one of several values: ".00012.3". */
static void put_place(out *out, const bytes_value *value)
{
    char number[64];
    if (value->entry && value->entry->is_list) {
        snprintf(number, sizeof(number), ".%05" PRIu64, value->step);
        out_text(out, number);
    }
    if (value->index > 0) {
        snprintf(number, sizeof(number), ".%" PRIu64, value->index);
        out_text(out, number);
    }
}

/* "CLASS/NAME" for the main image; "CLASS/NAME.FEATURE" for other images of the record, "CLASS/NAME.FEATURE.00012" for
 * frames. */
static void put_image_name(const finder *finder, target *target, const bytes_value *value, mr_image_format format)
{
    out *out = &finder->targets->names;
    const caption *caption = finder->caption;
    mr_string name = caption->filename;
    if (caption->text.size_bytes == 0 || !safe_name(out, caption->text, SAFE_NAME_MAX)) out_text(out, "no class");
    out_char(out, '/');
    put_subdirectories(out, caption->text, &name);
    target->directory = out->size;
    mr_image_format named_format = MR_IMAGE_UNKNOWN;
    size_t ending = known_ending(name, &named_format);
    bool is_main = value->bytes.data == finder->main.bytes.data && (!value->entry || !value->entry->is_list);
    bool keeps = ending > 0 && named_format == format && is_main;
    if (!safe_name(out, (mr_string){name.data, name.size_bytes - ending}, is_main ? SAFE_NAME_MAX : SAFE_PART_MAX))
        put_number_name(out, finder->position);
    if (!is_main) {
        out_char(out, '.');
        if (value->entry) (void)safe_name(out, value->entry->name, SAFE_PART_MAX);
        put_place(out, value);
    }
    target->stem = out->size;
    target->ending = keeps ? nullptr : ending_of(format);
    if (keeps) out_bytes(out, name.data + name.size_bytes - ending, ending);
}

/* "FEATURE/NUMBER" for other bytes. */
static void put_value_name(const finder *finder, target *target, const bytes_value *value)
{
    out *out = &finder->targets->names;
    if (!value->entry || !safe_name(out, value->entry->name, SAFE_NAME_MAX)) out_text(out, "records");
    out_char(out, '/');
    target->directory = out->size;
    put_number_name(out, finder->position);
    put_place(out, value);
    target->stem = out->size;
    target->ending = text_is_readable(value->bytes) ? ".txt" : ".bin";
}

static bool take_value(void *context, const bytes_value *value)
{
    finder *finder = context;
    targets *targets = finder->targets;
    const options *options = finder->extract->options;
    mr_image_format format = image_select_format(value->bytes);
    bool is_encoded = value->entry && mr_string_equal(value->entry->name, MR_STR("image/encoded"));
    if (options->features && value->entry && !patterns_select(options->features, value->entry->name)) return true;
    if (!options->features && !options->is_raw && format == MR_IMAGE_UNKNOWN && !is_encoded) return true;
    if (targets->count == FILES_MAX) {
        targets->is_too_many = true;
        return false;
    }
    if (targets->count == targets->capacity) {
        size_t capacity = targets->capacity ? 2 * targets->capacity : 1;
        target *grown = reallocarray(targets->items, capacity, sizeof(target));
        targets->has_failed |= !grown;
        if (!grown) return false;
        targets->items = grown;
        targets->capacity = capacity;
    }
    target *target = &targets->items[targets->count++];
    *target = (struct target){.bytes = value->bytes};
    size_t begin = targets->names.size;
    if (format != MR_IMAGE_UNKNOWN || is_encoded)
        put_image_name(finder, target, value, format);
    else
        put_value_name(finder, target, value);
    target->end = targets->names.size;
    target->directory -= begin;
    target->stem -= begin;
    target->end -= begin;
    return true;
}

static void find(void *context, int64_t begin, int64_t end)
{
    const batch_work *work = context;
    view view = {};
    for (int64_t i = begin; i < end; i++) {
        batch_item *item = &work->items[i];
        targets *targets = calloc(1, sizeof(*targets));
        item->result = targets;
        if (!targets) continue;
        caption caption = {};
        finder finder = {work->extract, &item->position, targets, &caption, {}};
        if (view_read(&view, work->extract->all.features, work->extract->all.is_raw, item->position.record, nullptr) !=
            MR_OK) {
            targets->has_failed = true;
            continue;
        }
        if (work->extract->options->is_raw) {
            bytes_value value = {.bytes = item->position.record};
            finder.main = value;
            (void)take_value(&finder, &value);
            continue;
        }
        image_select_caption(&view, tfds_set_find(&work->extract->options->tfds, item->position.path), &caption);
        (void)image_select(&view, work->extract->options, &finder.main);
        image_select_values(&view, take_value, &finder);
    }
    view_deinit(&view);
}

/* ---- Names, in order ---- */

/* "DIR/CLASS/NAME~2.jpg"; null: no memory. */
static char *settle_path(extract *extract, const target *target, const char *name)
{
    const char *ending = target->ending ? target->ending : name + target->stem;
    int ending_length = target->ending ? (int)strlen(ending) : (int)(target->end - target->stem);
    for (uint64_t number = 1;;) {
        char *path = nullptr, mark[32] = "";
        if (number > 1) snprintf(mark, sizeof(mark), "~%" PRIu64, number);
        if (asprintf(&path, "%s/%.*s%s%.*s", extract->options->argument, (int)target->stem, name, mark, ending_length,
                     ending) < 0)
            return nullptr;
        uint64_t before = given_names_add(&extract->names, mr_string_from(path));
        if (before == 0) {
            extract->renamed += number > 1;
            return path;
        }
        free(path);
        if (before == UINT64_MAX) return nullptr;
        number = number == 1 ? before + 1 : number + 1;
    }
}

/* Creates the directory of a path; false on failure, which is reported. */
static bool make_directory(extract *extract, char *path)
{
    char *slash = strrchr(path, '/');
    mr_error error = {0};
    slash[1] = '\0'; /* with the slash, so that no file can have this name */
    uint64_t before = given_names_add(&extract->names, mr_string_from(path));
    slash[0] = '\0';
    mr_status status = before == 0 ? file_make_directories(path, &error) : MR_OK;
    extract->directories += before == 0;
    return status == MR_OK || (print_error(&error), false);
}

static bool settle(extract *extract, targets *targets)
{
    size_t at = 0;
    if (!targets || targets->has_failed || targets->names.has_failed) return print_no_memory(), false;
    extract->records++;
    extract->cut += targets->is_too_many;
    extract->has_failed |= targets->is_too_many;
    extract->without += targets->count == 0;
    for (size_t i = 0; i < targets->count; i++) {
        target *target = &targets->items[i];
        target->path = settle_path(extract, target, targets->names.bytes + at);
        at += target->end;
        if (!target->path) return print_no_memory(), false;
        char *slash = strrchr(target->path, '/');
        char first = slash[1];
        if (!make_directory(extract, target->path)) return false;
        slash[0] = '/';
        slash[1] = first;
    }
    return true;
}

/* ---- Files ---- */

/* Whether the file contains exactly these bytes. */
static bool has_contents(const char *path, mr_string bytes)
{
    char piece[1 << 14];
    int descriptor;
    if (file_open(path, &descriptor, nullptr) != MR_OK) return false;
    size_t at = 0, done = 1;
    while (done > 0) {
        if (file_read_at(descriptor, path, at, piece, sizeof(piece), &done, nullptr) != MR_OK) break;
        if (done > bytes.size_bytes - at || memcmp(piece, bytes.data + at, done) != 0) break;
        at += done;
    }
    close(descriptor);
    return done == 0 && at == bytes.size_bytes;
}

/* Keeps an error for the reporting thread; an error is large, so it is allocated only when needed. */
static void keep_fault(extract *extract, target *target, const mr_error *error)
{
    target->error = malloc(sizeof(*error));
    if (target->error)
        *target->error = *error;
    else
        atomic_store(&extract->is_out_of_memory, true);
}

static void write_target(extract *extract, target *target)
{
    struct stat about;
    mr_error fault = {0}, *error = &fault;
    if (lstat(target->path, &about) == 0) {
        bool is_same = S_ISREG(about.st_mode) && (uint64_t)about.st_size == target->bytes.size_bytes &&
                       has_contents(target->path, target->bytes);
        if (is_same) {
            atomic_fetch_add(&extract->kept, 1);
            return;
        }
        if (!extract->options->is_forced) {
            (void)mr_fail(error, MR_ALREADY_EXISTS, "%s: exists with other bytes; --force replaces it", target->path);
            keep_fault(extract, target, error);
            return;
        }
        if (output_reject_input(extract->options, target->path, "", error) != MR_OK) {
            keep_fault(extract, target, error);
            return;
        }
    }
    if (file_write_unsynced(target->path, target->bytes.data, target->bytes.size_bytes, error) != MR_OK) {
        keep_fault(extract, target, error);
        return;
    }
    atomic_fetch_add(&extract->files, 1);
    atomic_fetch_add(&extract->bytes, target->bytes.size_bytes);
}

static void write_targets(void *context, int64_t begin, int64_t end)
{
    const batch_work *work = context;
    for (int64_t i = begin; i < end; i++) {
        targets *targets = work->items[i].result;
        for (size_t j = 0; j < targets->count; j++) write_target(work->extract, &targets->items[j]);
    }
}

/* False when no more can be written. */
static bool report_targets(extract *extract, const targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        const mr_error *error = targets->items[i].error;
        if (!error) continue;
        extract->has_failed = true;
        if (extract->rejected++ < PRINTED_MAX) (void)print_error(error);
        if (error->status != MR_ALREADY_EXISTS) return false;
    }
    return true;
}

static void free_targets(targets *targets)
{
    if (!targets) return;
    for (size_t i = 0; i < targets->count; i++) {
        free(targets->items[i].path);
        free(targets->items[i].error);
    }
    free(targets->items);
    out_deinit(&targets->names);
    free(targets);
}

static bool take_some(extract *extract, pool *pool, batch_item *items, size_t count)
{
    batch_work work = {extract, items};
    bool is_good = true;
    pool_for(pool, (int64_t)count, 4, find, &work);
    for (size_t i = 0; i < count && is_good; i++) is_good = settle(extract, items[i].result);
    if (is_good) {
        pool_for(pool, (int64_t)count, 1, write_targets, &work);
        for (size_t i = 0; i < count && is_good; i++) is_good = report_targets(extract, items[i].result);
        if (atomic_load(&extract->is_out_of_memory)) is_good = print_no_memory() == 0;
    }
    for (size_t i = 0; i < count; i++) free_targets(items[i].result);
    extract->has_failed |= !is_good;
    return is_good;
}

static bool take(void *context, pool *pool, progress *progress, batch_item *items, size_t count)
{
    extract *extract = context;
    bool is_good = true;
    for (size_t i = 0; i < count && is_good; i += AT_ONCE) {
        is_good = take_some(extract, pool, items + i, count - i < AT_ONCE ? count - i : AT_ONCE);
        progress_note(progress, "%" PRIu64 " files", (uint64_t)atomic_load(&extract->files));
    }
    return is_good;
}

/* ---- The command ---- */

static void print_count(uint64_t count, const char *one, const char *many)
{
    if (count > 0) printf("  %" PRIu64 " %s\n", count, count == 1 ? one : many);
}

static void report(extract *extract)
{
    char size[PROGRESS_TEXT_SIZE];
    uint64_t files = atomic_load(&extract->files), kept = atomic_load(&extract->kept);
    printf("%" PRIu64 " file%s, %s, in ", files, files == 1 ? "" : "s",
           progress_size_text(atomic_load(&extract->bytes), size));
    if (extract->directories > 1) printf("%" PRIu64 " directories of ", extract->directories);
    print_path(stdout, extract->options->argument);
    putchar('\n');
    print_count(kept, "existed already", "existed already");
    print_count(extract->renamed, "has a duplicate name: NAME~2", "have duplicate names: NAME~2 and so on");
    print_count(extract->rejected, "was not written", "were not written");
    print_count(extract->cut, "record has more than 100,000 files: the others were omitted",
                "records have more than 100,000 files: the others were omitted");
    const char *things = extract->options->features ? "such bytes" : "image";
    char one[64], many[64];
    snprintf(one, sizeof(one), "record has no %s", things);
    snprintf(many, sizeof(many), "records have no %s", things);
    print_count(extract->without, one, many);
}

int extract_run(const options *options)
{
    extract extract = {.options = options, .all = *options};
    mr_error error = {0};
    extract.all.features = nullptr;
    if (file_make_directories(options->argument, &error) != MR_OK) return print_error(&error);
    int exit_code = batches_run(options, "extract", take, &extract);
    report(&extract);
    given_names_deinit(&extract.names);
    return extract.has_failed ? 1 : exit_code;
}
