/* Record files that a command writes: each appears under its name when it is whole, none replaces an input. */
#include "records/file.h"
#include "tools/tfrecord-cat/rewrite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Five digits in the names. */
static constexpr uint64_t SHARDS_MAX = 100'000;

bool outputs_need_totals(const options *options)
{
    return options->shards != UINT64_MAX || options->shard_size;
}

uint64_t outputs_shards(const options *options, const totals *totals)
{
    uint64_t shards = 1, size;
    if (options->shards != UINT64_MAX) {
        shards = options->shards;
    } else if (options->shard_size) {
        if (!parse_size(options->shard_size, &size) || size == 0) {
            (void)refuse("--shard-size: \"%s\" is no size, such as 200M", options->shard_size);
            return 0;
        }
        shards = totals->size_bytes ? (totals->size_bytes - 1) / size + 1 : 1;
    }
    if (shards >= 1 && shards <= SHARDS_MAX) return shards;
    (void)refuse("%" PRIu64 " shards are not from 1 to %" PRIu64, shards, SHARDS_MAX);
    return 0;
}

/* ---- Names ---- */

/* "x.tfrecord.gz" is "x" and ".tfrecord.gz": what is behind the last slash's first ".tfrecord". */
static size_t stem_length(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".tfrecord");
    return end && end > name ? (size_t)(end - path) : strlen(path);
}

/* Owned; null without memory. */
static char *shard_path(const char *path, bool is_numbered, uint64_t i, uint64_t count)
{
    if (!is_numbered) return strdup(strcmp(path, "-") == 0 ? "/dev/stdout" : path);
    size_t stem = stem_length(path);
    char *name = nullptr;
    return asprintf(&name, "%.*s-%05" PRIu64 "-of-%05" PRIu64 "%s", (int)stem, path, i, count, path + stem) < 0
               ? nullptr
               : name;
}

/* Whether the output is there already, as one of the inputs or as anything; tells so. */
static bool is_taken(const options *options, const char *path)
{
    struct stat output, input;
    if (stat(path, &output) != 0) return false;
    mr_error error = {0};
    for (int32_t i = 0; i < options->path_count; i++) {
        if (stat(options->paths[i], &input) != 0 || input.st_dev != output.st_dev || input.st_ino != output.st_ino)
            continue;
        (void)mr_fail(&error, MR_INVALID_ARGUMENT, "%s: is one of the files that are read", path);
        (void)complain(&error);
        return true;
    }
    if (options->is_forced && S_ISREG(output.st_mode)) return false;
    (void)mr_fail(&error, MR_ALREADY_EXISTS, "%s: is there already%s", path,
                  S_ISREG(output.st_mode) ? "; --force replaces it" : "");
    (void)complain(&error);
    return true;
}

static void take_compression(outputs *outputs, const options *options)
{
    mr_record_writer_options *writing = &outputs->writing;
    *writing = (mr_record_writer_options){.atomic = true, .index = true};
    switch ((compress_form)options->compress) {
    case COMPRESS_NONE:
        return;
    case COMPRESS_SEEKABLE:
        writing->compression = MR_COMPRESSION_GZIP;
        writing->seek_bytes = MR_RECORD_SEEK_BYTES;
        writing->threads = thread_count(options);
        return;
    case COMPRESS_GZIP:
    case COMPRESS_ZLIB:
        writing->compression = options->compress == COMPRESS_GZIP ? MR_COMPRESSION_GZIP : MR_COMPRESSION_ZLIB;
        writing->index = false;
        return;
    }
}

int outputs_begin(outputs *outputs, const options *options, const totals *totals)
{
    *outputs = (struct outputs){.count = 1};
    if (options->has_missing) return outputs_refuse_damage();
    if (!options->out) return refuse("--%s: where to? --out FILE says it", options->command->name);
    bool is_stream = strcmp(options->out, "-") == 0, is_numbered = totals != nullptr;
    if (is_stream && is_numbered) return refuse("shards cannot go to the standard output");
    take_compression(outputs, options);
    if (is_stream) outputs->writing.atomic = outputs->writing.index = false;
    if (totals) {
        outputs->total_bytes = totals->size_bytes;
        outputs->count = outputs_shards(options, totals);
        if (outputs->count == 0) return 2;
    }
    mr_error error = {0};
    outputs->paths = calloc(outputs->count, sizeof(char *));
    for (uint64_t i = 0; outputs->paths && i < outputs->count; i++) {
        outputs->paths[i] = shard_path(options->out, is_numbered, i, outputs->count);
        if (!outputs->paths[i] || (!is_stream && is_taken(options, outputs->paths[i]))) {
            outputs->count = i + 1;
            return 1;
        }
    }
    if (outputs->paths) return 0;
    (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " names", outputs->count);
    return complain(&error);
}

/* ---- Writing ---- */

static mr_status close_shard(outputs *outputs, mr_error *error)
{
    mr_record_writer *writer = outputs->writer;
    outputs->writer = nullptr;
    return writer ? mr_record_writer_close(writer, error) : MR_OK;
}

static mr_status next_shard(outputs *outputs, mr_error *error)
{
    MR_TRY(close_shard(outputs, error));
    const char *path = outputs->paths[outputs->next++];
    /* The index of what is replaced goes first: beside the new file it would be another one's. */
    if (outputs->writing.atomic && !outputs->writing.index) {
        char *index = nullptr;
        if (asprintf(&index, "%s.index", path) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
        mr_status status = mr_file_remove(index, error);
        free(index);
        MR_TRY(status);
    }
    return mr_record_writer_open(path, &outputs->writing, &outputs->writer, error);
}

/* The shard that a byte of all records falls into. */
static uint64_t shard_of(const outputs *outputs, uint64_t byte)
{
    if (outputs->count == 1 || byte >= outputs->total_bytes) return outputs->count - 1;
    return (uint64_t)((unsigned __int128)byte * outputs->count / outputs->total_bytes);
}

mr_status outputs_append(outputs *outputs, mr_string record, mr_error *error)
{
    uint64_t shard = shard_of(outputs, outputs->bytes);
    while (outputs->next <= shard) MR_TRY(next_shard(outputs, error));
    outputs->bytes += record.size_bytes + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    outputs->records++;
    return mr_record_writer_append(outputs->writer, record.data, record.size_bytes, error);
}

mr_status outputs_finish(outputs *outputs, mr_error *error)
{
    while (outputs->next < outputs->count) MR_TRY(next_shard(outputs, error));
    return close_shard(outputs, error);
}

int outputs_refuse_damage(void)
{
    mr_error error = {0};
    (void)mr_fail(&error, MR_DATA_LOSS, "nothing is written, because of this; --salvage saves what is whole");
    return complain(&error);
}

void outputs_report(const outputs *outputs)
{
    if (!outputs->writing.atomic) return;
    char size[PROGRESS_TEXT_SIZE];
    printf("%" PRIu64 " records, %s, to ", outputs->records, progress_size_text(outputs->bytes, size));
    if (outputs->count > 1) printf("%" PRIu64 " files, the first ", outputs->count);
    print_path(stdout, outputs->paths[0]);
    putchar('\n');
}

void outputs_deinit(outputs *outputs)
{
    mr_record_writer_abandon(outputs->writer);
    for (uint64_t i = 0; outputs->paths && i < outputs->count; i++) free(outputs->paths[i]);
    free(outputs->paths);
    *outputs = (struct outputs){0};
}
