/* Record files written by a command: they appear under their names when all are complete, and none replaces an input.
 *
 * FILE.partial and its index are written and synced to disk, one shard after the other. At the end each index is
 * renamed, then its file: whoever sees a file sees its index. A run that is killed before leaves only partial files,
 * which the next run removes. */
#include "common/file.h"
#include "common/output.h"
#include "common/shard_name.h"
#include "tfrecord-cat/rewrite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shard numbers have five digits. */
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
            (void)usage_error("--shard-size: \"%s\" is not a size such as 200M", options->shard_size);
            return 0;
        }
        shards = totals->size_bytes ? (totals->size_bytes - 1) / size + 1 : 1;
    }
    if (shards >= 1 && shards <= SHARDS_MAX) return shards;
    (void)usage_error("%" PRIu64 " shards: not from 1 to %" PRIu64, shards, SHARDS_MAX);
    return 0;
}

/* ---- Names ---- */

/* "x.tfrecord.gz" is "x" and ".tfrecord.gz": the suffix begins at the first ".tfrecord" after the last slash. */
static size_t stem_length(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".tfrecord");
    return end && end > name ? (size_t)(end - path) : strlen(path);
}

static const char INDEX_MAGIC[] = "MRINDEX3";

/* Owned; null without memory. */
static char *shard_path(const char *path, bool is_numbered, uint64_t i, uint64_t count)
{
    if (!is_numbered) return strdup(strcmp(path, "-") == 0 ? "/dev/stdout" : path);
    size_t stem = stem_length(path);
    return shard_name((mr_string){path, stem}, i, count, path + stem);
}

bool is_input(const options *options, const char *path)
{
    struct stat output, input;
    if (stat(path, &output) != 0) return false;
    for (int32_t i = 0; i < options->path_count; i++)
        if (stat(options->paths[i], &input) == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino)
            return true;
    return false;
}

mr_status output_reject_input(const options *options, const char *path, const char *suffix, mr_error *error)
{
    char *name = nullptr;
    if (asprintf(&name, "%s%s", path, suffix) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = MR_OK;
    if (is_input(options, name)) status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: is one of the input files", name);
    free(name);
    return status;
}

mr_status output_allow(const options *options, const char *path, const char *suffix, mr_error *error)
{
    char *name = nullptr;
    MR_TRY(output_reject_input(options, path, suffix, error));
    if (asprintf(&name, "%s%s", path, suffix) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    /* An index without its file: what a run leaves that is killed between the two renames. */
    bool is_index = strcmp(suffix, ".index") == 0 && file_begins_with(name, INDEX_MAGIC, strlen(INDEX_MAGIC));
    bool replaces = options->is_forced || is_index;
    mr_status status = output_check(name, replaces, error);
    free(name);
    return status;
}

static void take_compression(outputs *outputs, const options *options)
{
    mr_record_writer_options *writing = &outputs->writing;
    /* The first of the partial files may be the one that is locked: see clear_way. */
    *writing = (mr_record_writer_options){.size = sizeof *writing, .index = !outputs->is_stream, .no_lock = true};
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

/* Locks the output and removes leftovers of earlier runs. */
static mr_status clear_way(outputs *outputs, const options *options, mr_error *error)
{
    if (asprintf(&outputs->lock_path, "%s" FILE_PARTIAL, options->out) < 0) {
        outputs->lock_path = nullptr;
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    }
    if (is_input(options, outputs->lock_path))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: is one of the input files", outputs->lock_path);
    MR_TRY(partial_lock(outputs->lock_path, &outputs->lock, error));
    return partial_remove_all(options, stem_length(options->out), outputs->lock_path, error);
}

int outputs_begin(outputs *outputs, const options *options, const totals *totals)
{
    *outputs = (struct outputs){.count = 1, .lock = -1};
    if (options->has_missing) return outputs_reject_damage(options, 1);
    if (!options->out) return usage_error("--%s: missing --out FILE", options->command->name);
    bool is_numbered = totals != nullptr;
    outputs->is_stream = strcmp(options->out, "-") == 0;
    if (outputs->is_stream && is_numbered) return usage_error("shards cannot be written to the standard output");
    take_compression(outputs, options);
    if (totals) {
        outputs->total_bytes = totals->size_bytes;
        outputs->count = outputs_shards(options, totals);
        if (outputs->count == 0) return 2;
    }
    mr_error error = {0};
    outputs->paths = calloc(outputs->count, sizeof(char *));
    for (uint64_t i = 0; outputs->paths && i < outputs->count; i++) {
        outputs->paths[i] = shard_path(options->out, is_numbered, i, outputs->count);
        if (!outputs->paths[i])
            (void)print_no_memory();
        else if (outputs->is_stream || (output_allow(options, outputs->paths[i], "", &error) == MR_OK &&
                                        output_allow(options, outputs->paths[i], ".index", &error) == MR_OK))
            continue;
        outputs->count = i + 1;
        return error.status == MR_OK ? 1 : print_error(&error);
    }
    if (!outputs->paths)
        (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " names", outputs->count);
    else if (!outputs->is_stream)
        (void)clear_way(outputs, options, &error);
    return error.status == MR_OK ? 0 : print_error(&error);
}

/* ---- Writing ---- */

/* "PATH.partial" or, with more, "PATH.partial.index"; owned. */
static mr_status partial_path(const char *path, const char *more, char **name, mr_error *error)
{
    if (asprintf(name, "%s" FILE_PARTIAL "%s", path, more) >= 0) return MR_OK;
    *name = nullptr;
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
}

static mr_status force(const char *path, mr_error *error)
{
    int descriptor;
    MR_TRY(file_open(path, &descriptor, error));
    bool is_forced = fdatasync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
    mr_status status = is_forced ? MR_OK : file_fail(error, errno, "write", path);
    (void)close(descriptor);
    return status;
}

static mr_status close_shard(outputs *outputs, mr_error *error)
{
    mr_record_writer *writer = outputs->writer;
    outputs->writer = nullptr;
    if (!writer) return MR_OK;
    MR_TRY(mr_record_writer_close(writer, error));
    if (outputs->is_stream) return MR_OK;
    char *partial;
    MR_TRY(partial_path(outputs->paths[outputs->next - 1], "", &partial, error));
    mr_status status = force(partial, error);
    free(partial);
    return status;
}

static mr_status next_shard(outputs *outputs, mr_error *error)
{
    MR_TRY(close_shard(outputs, error));
    assert(outputs->next < outputs->count && outputs->named <= outputs->next);
    const char *path = outputs->paths[outputs->next++];
    if (outputs->is_stream) return mr_record_writer_open(path, &outputs->writing, &outputs->writer, error);
    char *partial;
    MR_TRY(partial_path(path, "", &partial, error));
    mr_status status = mr_record_writer_open(partial, &outputs->writing, &outputs->writer, error);
    free(partial);
    return status;
}

/* A file without an index removes the index of the file it replaces, which would no longer match. */
static mr_status name_shard(const outputs *outputs, const char *path, mr_error *error)
{
    char *partial = nullptr, *partial_index = nullptr, *index = nullptr;
    mr_status status = partial_path(path, "", &partial, error);
    if (status == MR_OK) status = partial_path(path, ".index", &partial_index, error);
    if (status == MR_OK && asprintf(&index, "%s.index", path) < 0) {
        index = nullptr;
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    }
    if (status == MR_OK && !outputs->writing.index) status = file_remove(index, error);
    if (status == MR_OK && outputs->writing.index) status = file_replace(partial_index, index, error);
    if (status == MR_OK) status = file_rename(partial, path, error);
    free(partial);
    free(partial_index);
    free(index);
    return status;
}

/* The shard that contains a byte offset in all records. */
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
    MR_TRY(close_shard(outputs, error));
    for (; outputs->named < outputs->count && !outputs->is_stream; outputs->named++)
        MR_TRY(name_shard(outputs, outputs->paths[outputs->named], error));
    return MR_OK;
}

int outputs_reject_damage(const options *options, int exit_code)
{
    mr_error error = {0};
    if (exit_code == 2) return exit_code; /* invalid options */
    (void)mr_fail(&error, MR_DATA_LOSS, "nothing was written because of this%s",
                  rewrites_features(options) ? "" : "; --salvage saves the good records");
    return print_error(&error);
}

void outputs_report(const outputs *outputs)
{
    if (outputs->is_stream) return;
    char size[PROGRESS_TEXT_SIZE];
    printf("%" PRIu64 " record%s, %s, to ", outputs->records, outputs->records == 1 ? "" : "s",
           progress_size_text(outputs->bytes, size));
    if (outputs->count > 1) printf("%" PRIu64 " files, the first ", outputs->count);
    print_path(stdout, outputs->paths[0]);
    putchar('\n');
}

static void remove_partial(const char *path, const char *more)
{
    char *partial;
    if (partial_path(path, more, &partial, nullptr) == MR_OK) (void)file_remove(partial, nullptr);
    free(partial);
}

void outputs_deinit(outputs *outputs)
{
    mr_record_writer_discard(outputs->writer);
    for (uint64_t i = outputs->named; i < outputs->next && !outputs->is_stream; i++) {
        remove_partial(outputs->paths[i], "");
        remove_partial(outputs->paths[i], ".index");
    }
    if (outputs->lock_path) partial_unlock(outputs->lock_path, outputs->lock);
    free(outputs->lock_path);
    for (uint64_t i = 0; outputs->paths && i < outputs->count; i++) free(outputs->paths[i]);
    free(outputs->paths);
    *outputs = (struct outputs){.lock = -1};
}
