/* Every checksum and every Example of a file. A fault is a line: file, record, byte, kind, and what it is in words. */
#include "tools/common/progress.h"
#include "tools/tfrecord-cat/cat.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct context {
    const char *path;
    progress *progress;
    int64_t faults;
} context;

static void fault(context *context, uint64_t record, uint64_t offset, const char *kind, const char *message)
{
    if (context->progress->is_terminal) progress_hide(context->progress);
    /* The reader's sentences begin with file and place, which are in the line already. */
    const char *path = text_path(context->path), *words = message;
    size_t length = strlen(path);
    if (strncmp(message, path, length) == 0 && strncmp(message + length, ": record ", 9) == 0)
        words = strstr(message + length + 2, ": ");
    if (words && words != message) message = words + 2;
    printf("%s: record %" PRIu64 ", byte %" PRIu64 ": %s: %s\n", path, record, offset, kind, message);
    context->faults++;
}

static void damaged(void *opaque, const mr_record_damage *damage, const mr_error *error)
{
    fault(opaque, damage->record, damage->offset, mr_damage_kind_name(damage->kind), error->message);
}

static mr_status check_example(mr_string record, mr_error *error)
{
    mr_example_walk walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    size_t count;
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK)
        MR_TRY(mr_feature_count(&feature, &count, error));
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* An index that is not of this file does no harm, but reading goes the slow way. */
static void check_index(const char *path)
{
    mr_record_index index = {0};
    if (mr_record_index_open(path, &index, nullptr) != MR_OK) return;
    if (index.origin == MR_INDEX_STALE) printf("%s: its .index is stale and is not used\n", path);
    if (index.origin == MR_INDEX_DAMAGED) printf("%s: its .index is damaged and is not used\n", path);
    mr_record_index_deinit(&index);
}

int64_t verify_file(const char *path, bool is_raw)
{
    progress progress;
    context context = {.path = path, .progress = &progress};
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_record_reader_options options = {.damage = MR_DAMAGE_SKIP, .damaged = damaged, .context = &context};
    if (mr_record_reader_open(path, &options, &reader, &error) != MR_OK) {
        fprintf(stderr, "tfrecord-cat: %s\n", error.message);
        return -1;
    }
    progress_begin(&progress, "verify", "records", 0);
    mr_string record;
    mr_status status;
    uint64_t records = 0, bytes = 0;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK) {
        records++;
        bytes += record.size_bytes;
        mr_error problem = {0};
        if (!is_raw && check_example(record, &problem) != MR_OK)
            fault(&context, mr_record_reader_number(reader), mr_record_reader_offset(reader), "bad Example",
                  problem.message);
        if (progress.is_terminal) progress_add(&progress, 1);
    }
    progress_end(&progress);
    mr_record_reader_free(reader);
    if (status != MR_OUT_OF_RANGE) {
        fprintf(stderr, "tfrecord-cat: %s\n", error.message);
        return -1;
    }
    char size[PROGRESS_TEXT_SIZE];
    printf("%s: %" PRIu64 " good record%s, %s, ", text_path(path), records, records == 1 ? "" : "s",
           progress_size_text(bytes, size));
    if (context.faults == 0)
        printf("no faults\n");
    else
        printf("%" PRId64 " fault%s\n", context.faults, context.faults == 1 ? "" : "s");
    if (strcmp(path, "-") != 0) check_index(path);
    return context.faults;
}
