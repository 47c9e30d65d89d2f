/* Iterates over the selected records. Numbers run across all files, and a damaged region counts as one record, so that
 * a record has the same number whether it is found by an index or by reading from the start. */
#include "tfrecord-cat/walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int print_error(const mr_error *error)
{
    fflush(stdout);
    fprintf(stderr, "tfrecord-cat: %s\n", error->message);
    return 1;
}

int print_no_memory(void)
{
    mr_error error = {0};
    (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "out of memory");
    return print_error(&error);
}

void name_position(const record_position *position, mr_error *error)
{
    (void)mr_fail_prefix(error, error->status, "%s: record %" PRIu64 " at byte %" PRIu64, text_path(position->path),
                         position->number, position->offset);
}

int print_record_error(const record_position *position, mr_error *error)
{
    name_position(position, error);
    return print_error(error);
}

/* Passes a selected record on to take. */
static void deliver(walk *walk, const record_position *position)
{
    if (walk->where && !where_matches(walk->where, position->record)) {
        if (where_has_failed(walk->where)) walk->has_failed = walk->is_done = print_no_memory();
        return;
    }
    if (walk->sample) {
        if (!sample_offer(walk->sample, walk->before + position->number, position))
            walk->has_failed = walk->is_done = true;
        return;
    }
    if (!walk->take(walk->context, position) || ++walk->taken >= walk->options->head || ferror(stdout))
        walk->is_done = true;
}

/* ---- By number ---- */

bool numbered_open(numbered *numbered, const char *path)
{
    *numbered = (struct numbered){.path = path};
    return strcmp(path, "-") != 0 && mr_record_file_open(path, &numbered->file, nullptr) == MR_OK;
}

mr_status numbered_read(numbered *numbered, uint64_t number, record_position *position, mr_error *error)
{
    /* Records are contiguous and numbers mostly increase. */
    if (number < numbered->number) numbered->number = numbered->offset = 0;
    while (numbered->number < number)
        numbered->offset += mr_record_file_record_size(numbered->file, numbered->number++) + MR_RECORD_HEADER_BYTES +
                            MR_RECORD_FOOTER_BYTES;
    size_t size =
        (size_t)mr_record_file_record_size(numbered->file, number) + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    if (size > numbered->capacity) {
        free(numbered->bytes);
        numbered->bytes = malloc(size);
        numbered->capacity = numbered->bytes ? size : 0;
        if (!numbered->bytes) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a record of %zu bytes", size);
    }
    *position = (struct record_position){.path = numbered->path, .number = number, .offset = numbered->offset};
    return mr_record_file_read(numbered->file, number, numbered->bytes, &position->record, error);
}

void numbered_close(numbered *numbered)
{
    mr_record_file_close(numbered->file);
    free(numbered->bytes);
    *numbered = (struct numbered){};
}

/* Reads the records of a file that are in the range; false if the file has to be read from its start. */
static bool walk_by_number(walk *walk, const char *path)
{
    numbered numbered;
    if (!numbered_open(&numbered, path)) return false;
    const options *options = walk->options;
    uint64_t count = mr_record_file_count(numbered.file);
    uint64_t begin = options->range_begin > walk->before ? options->range_begin - walk->before : 0;
    uint64_t end = options->range_end - walk->before < count ? options->range_end - walk->before : count;
    bool needs_bytes = !walk->sample || walk->where;
    for (uint64_t i = begin; i < end && !walk->is_done; i++) {
        record_position position = {.path = path, .number = i};
        mr_error error = {0};
        if (needs_bytes && numbered_read(&numbered, i, &position, &error) != MR_OK)
            walk->has_failed = print_error(&error);
        else
            deliver(walk, &position);
    }
    walk->before += count;
    numbered_close(&numbered);
    return true;
}

/* ---- In order ---- */

static void walk_in_order(walk *walk, const char *path)
{
    const options *options = walk->options;
    mr_record_reader *reader = nullptr;
    mr_error error = {0};
    if (mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) {
        walk->has_failed = print_error(&error);
        return;
    }
    uint64_t good = 0;
    while (!walk->is_done) {
        record_position position = {.path = path};
        mr_status status = mr_record_reader_next(reader, &position.record, &error);
        if (status == MR_OUT_OF_RANGE) break;
        if (status != MR_OK) walk->has_failed = print_error(&error);
        /* The reader continues after damage; other errors end the file. */
        if (status == MR_DATA_LOSS) continue;
        if (status != MR_OK) break;
        good++;
        position.number = mr_record_reader_number(reader);
        position.offset = mr_record_reader_offset(reader);
        uint64_t number = walk->before + position.number;
        if (number >= options->range_begin && number < options->range_end) deliver(walk, &position);
        if (number + 1 >= options->range_end) break;
    }
    walk->before += good + mr_record_reader_lost(reader);
    mr_record_reader_close(reader);
}

static void walk_path(walk *walk, int32_t file)
{
    const options *options = walk->options;
    const char *path = options->paths[file];
    if (walk->before >= options->range_end) {
        walk->is_done = true;
        return;
    }
    if (walk->where) where_set_tfds(walk->where, tfds_set_find(&options->tfds, path));
    bool skips = options->range_begin > walk->before;
    bool is_counted = walk->sample && walk->sample->is_seekable && !walk->where;
    if ((skips || is_counted) && walk_by_number(walk, path)) return;
    walk_in_order(walk, path);
}

/* ---- All ---- */

static void print_missing(walk *walk)
{
    const options *options = walk->options;
    mr_error error = {0};
    bool is_empty = options->range_begin == options->range_end;
    if (walk->has_failed || is_empty || options->range_begin == 0 || options->range_begin < walk->before) return;
    (void)mr_fail(&error, MR_NOT_FOUND, "there is no record %" PRIu64 ", only %" PRIu64 " (numbered from 0)",
                  options->range_begin, walk->before);
    walk->has_failed = print_error(&error);
}

static int walk_files(const options *options, int32_t first, int32_t end, take_record *take, void *context)
{
    walk walk = {.options = options, .take = take, .context = context, .is_done = options->head == 0};
    sample sample;
    if (options->where && !(walk.where = where_state_new(options->where))) return print_no_memory();
    if (options->sample != UINT64_MAX) {
        sample_init(&sample, options);
        walk.sample = &sample;
    }
    for (int32_t i = first; i < end && !walk.is_done; i++) {
        if (walk.sample) sample_begin_file(walk.sample, options->paths[i]);
        walk_path(&walk, i);
    }
    if (!walk.is_done) print_missing(&walk);
    if (walk.where && !walk.is_done) where_notes(walk.where, stderr);
    where_state_free(walk.where);
    if (walk.sample) {
        if (sample_deliver(walk.sample, take, context) != 0) walk.has_failed = true;
        sample_deinit(walk.sample);
    }
    return walk.has_failed;
}

int walk_file(const options *options, int32_t file, take_record *take, void *context)
{
    return walk_files(options, file, file + 1, take, context);
}

int walk_records(const options *options, take_record *take, void *context)
{
    return walk_files(options, 0, options->path_count, take, context);
}

bool walk_selects(const options *options)
{
    return options->range_begin > 0 || options->range_end != UINT64_MAX || options->where ||
           options->sample != UINT64_MAX || options->head != UINT64_MAX;
}

static bool count_one(void *context, const record_position *position)
{
    ++*(uint64_t *)context;
    return true;
}

int walk_count(const options *options)
{
    uint64_t count = 0;
    int exit_code = walk_records(options, count_one, &count);
    printf("%" PRIu64 "\n", count);
    return exit_code;
}
