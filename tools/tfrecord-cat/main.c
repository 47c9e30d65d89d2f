/* tfrecord-cat: see cat.h and --help. */
#include "tools/tfrecord-cat/cat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What goes from file to file. */
typedef struct run {
    const options *options;
    schema *schema;
    uint64_t seen; /* records so far */
    bool is_done;
    bool has_failed;
} run;

static void complain(run *run, const mr_error *error)
{
    fflush(stdout);
    fprintf(stderr, "tfrecord-cat: %s\n", error->message);
    run->has_failed = true;
}

static void take_record(run *run, const place *place)
{
    mr_error error = {0};
    switch (run->options->mode) {
    case MODE_JSON:
        json_record(place, run->options->is_raw);
        break;
    case MODE_SCHEMA:
        if (schema_add(run->schema, place->record, &error) != MR_OK) {
            (void)mr_fail_in(&error, error.status, "%s: record %" PRIu64 " at byte %" PRIu64, text_path(place->path),
                             place->number, place->offset);
            complain(run, &error);
        }
        break;
    default:
        show_record(place, run->options->is_raw);
        break;
    }
}

/* The one record that is asked for, by the index; false when the file has to be read from its beginning. */
static bool take_by_number(run *run, const char *path)
{
    mr_record_file *file = nullptr;
    if (strcmp(path, "-") == 0 || mr_record_file_open(path, &file, nullptr) != MR_OK) return false;
    uint64_t number = run->options->record - run->seen, count = mr_record_file_count(file);
    if (number < count) {
        place place = {.path = path, .number = number};
        mr_error error = {0};
        size_t size =
            (size_t)mr_record_file_record_size(file, number) + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
        void *bytes = malloc(size);
        if (!bytes)
            (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory for a record of %zu bytes", size);
        else if (mr_record_file_read(file, number, bytes, &place.record, &error) == MR_OK) {
            mr_record_index index = {0};
            if (mr_record_index_open(path, &index, nullptr) == MR_OK && number < index.count)
                place.offset = index.offsets[number];
            mr_record_index_deinit(&index);
            take_record(run, &place);
        }
        if (error.status != MR_OK) complain(run, &error);
        free(bytes);
        run->is_done = true;
    }
    run->seen += count;
    mr_record_file_free(file);
    return true;
}

static void take_file(run *run, const char *path)
{
    const options *options = run->options;
    if (options->has_record && take_by_number(run, path)) return;
    mr_record_reader *reader = nullptr;
    mr_error error = {0};
    if (mr_record_reader_open(path, nullptr, &reader, &error) != MR_OK) {
        complain(run, &error);
        return;
    }
    bool has_title = false;
    while (!run->is_done) {
        place place = {.path = path};
        mr_status status = mr_record_reader_next(reader, &place.record, &error);
        if (status == MR_OUT_OF_RANGE) break;
        if (status != MR_OK) complain(run, &error);
        /* The reader goes on behind damage; other errors end the file. */
        if (status == MR_DATA_LOSS) continue;
        if (status != MR_OK) break;
        uint64_t seen = run->seen++;
        if (options->has_record && seen != options->record) continue;
        place.number = mr_record_reader_number(reader);
        place.offset = mr_record_reader_offset(reader);
        if (!has_title && options->mode == MODE_SHOW && options->path_count > 1) printf("%s\n", text_path(path));
        has_title = true;
        take_record(run, &place);
        run->is_done = options->has_record || run->seen >= options->head || ferror(stdout);
    }
    mr_record_reader_free(reader);
}

/* Records of a file, from headers alone where that can be. */
static mr_status count_records(const char *path, uint64_t *count, mr_error *error)
{
    mr_record_index index = {0};
    *count = 0;
    if (strcmp(path, "-") != 0) {
        mr_status status = mr_record_index_open(path, &index, error);
        *count = index.count;
        mr_record_index_deinit(&index);
        if (status != MR_UNIMPLEMENTED) return status;
    }
    mr_record_reader *reader = nullptr;
    MR_TRY(mr_record_reader_open(path, &(mr_record_reader_options){.skip_checksums = true}, &reader, error));
    mr_string record;
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, error)) == MR_OK) ++*count;
    mr_record_reader_free(reader);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static void count_files(run *run)
{
    uint64_t total = 0, count;
    for (int32_t i = 0; i < run->options->path_count; i++) {
        mr_error error = {0};
        const char *path = run->options->paths[i];
        if (count_records(path, &count, &error) != MR_OK) {
            complain(run, &error);
            continue;
        }
        total += count;
        if (run->options->path_count == 1)
            printf("%" PRIu64 "\n", count);
        else
            printf("%10" PRIu64 "  %s\n", count, text_path(path));
    }
    if (run->options->path_count > 1) printf("%10" PRIu64 "  in all\n", total);
}

static void take_files(run *run)
{
    const options *options = run->options;
    for (int32_t i = 0; i < options->path_count && !run->is_done; i++) {
        if (options->mode != MODE_VERIFY)
            take_file(run, options->paths[i]);
        else
            run->has_failed |= verify_file(options->paths[i], options->is_raw) != 0;
    }
    if (options->has_record && !run->is_done && !run->has_failed) {
        fprintf(stderr, "tfrecord-cat: there is no record %" PRIu64 ", only %" PRIu64 "\n", options->record, run->seen);
        run->has_failed = true;
    }
}

int main(int argc, char **argv)
{
    options options;
    int exit_code;
    if (!options_parse(argc, argv, &options, &exit_code)) return exit_code;
    run run = {.options = &options, .has_failed = options.has_missing, .is_done = options.head == 0};
    if (options.mode == MODE_SCHEMA && !(run.schema = schema_new())) return 1;
    if (options.mode == MODE_COUNT)
        count_files(&run);
    else
        take_files(&run);
    if (run.schema && (run.seen > 0 || !run.has_failed)) schema_print(run.schema);
    if (run.schema) schema_free(run.schema);
    mr_paths_free(options.paths, options.path_count);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "tfrecord-cat: cannot write the output: %s\n", strerror(errno));
        return 1;
    }
    return run.has_failed ? 1 : 0;
}
