/* Totals of what is to be rewritten, computed before anything is written: records, bytes, and whether all of it is
 * undamaged. */
#include "common/file.h"
#include "tfrecord-cat/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool parse_size(const char *text, uint64_t *size_bytes)
{
    static const char units[] = "KMGTP";
    char *end;
    double value = strtod(text, &end);
    if (end == text || *text == '-' || !(value >= 0)) return false;
    double scale = 1;
    const char *unit = *end ? strchr(units, *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end) : nullptr;
    if (unit) {
        for (const char *at = units; at <= unit; at++) scale *= 1024;
        end++;
        if (*end == 'i') end++;
    }
    if (*end == 'B') end++;
    if (*end || value * scale >= 9e18) return false;
    *size_bytes = (uint64_t)(value * scale);
    return true;
}

/* ---- Temporary files ---- */

/* The directory of a path, owned; null without memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

mr_status scratch_open(const char *near, int *descriptor, mr_error *error)
{
    const char *temporary = getenv("TMPDIR");
    char *directory =
             strcmp(near, "-") == 0 ? strdup(temporary && *temporary ? temporary : "/tmp") : directory_of(near),
         *name = nullptr;
    mr_status status = MR_OK;
    *descriptor = directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    /* Not every file system has unnamed files. */
    if (directory && *descriptor < 0 && asprintf(&name, "%s/.tfrecord-cat-XXXXXX", directory) >= 0) {
        *descriptor = mkostemp(name, O_CLOEXEC);
        if (*descriptor >= 0) (void)unlink(name);
    }
    if (*descriptor < 0)
        status = file_fail(error, errno ? errno : ENOMEM, "create a file in", directory ? directory : "");
    free(directory);
    free(name);
    return status;
}

/* ---- Messages ---- */

void print_path(FILE *file, const char *path)
{
    static constexpr int COLUMNS_MAX = 10'000;
    (void)text_print(file, mr_string_from(text_path(path)), COLUMNS_MAX);
}

void pass_begin(pass *pass, const char *task, uint64_t records)
{
    pass->is_shown = isatty(STDERR_FILENO);
    if (pass->is_shown) progress_begin(&pass->progress, task, "records", records);
}

void pass_add(pass *pass, uint64_t records)
{
    if (pass->is_shown) progress_add(&pass->progress, records);
}

void pass_end(pass *pass)
{
    if (pass->is_shown) progress_end(&pass->progress);
}

/* ---- Copy and count ---- */

typedef struct counting {
    totals *totals;
    mr_record_writer *writer; /* null: count only */
    pass pass;
    mr_error error;
} counting;

static bool count_record(void *context, const record_position *position)
{
    counting *counting = context;
    counting->totals->records++;
    counting->totals->size_bytes += position->record.size_bytes + MR_RECORD_HEADER_BYTES + MR_RECORD_FOOTER_BYTES;
    pass_add(&counting->pass, 1);
    return !counting->writer || mr_record_writer_append(counting->writer, position->record.data,
                                                        position->record.size_bytes, &counting->error) == MR_OK;
}

static bool can_be_read_twice(const options *options)
{
    for (int32_t i = 0; i < options->path_count; i++) {
        struct stat about;
        if (strcmp(options->paths[i], "-") == 0) return false;
        if (stat(options->paths[i], &about) == 0 && !S_ISREG(about.st_mode)) return false;
    }
    return true;
}

/* Changes the options to select all records of the copy. */
static void name_copy(options *options, totals *totals)
{
    options->record = options->sample = options->head = options->range_end = UINT64_MAX;
    options->range_begin = 0;
    options->where = nullptr;
    options->features = options->rename = nullptr;
    totals->copy_paths[0] = totals->copy_path;
    options->paths = totals->copy_paths;
    options->path_arguments = &totals->copy_argument;
    options->path_count = 1;
}

int totals_read(options *options, const char *near, totals *totals)
{
    *totals = (struct totals){.copy_descriptor = -1};
    counting counting = {.totals = totals};
    if (!can_be_read_twice(options)) {
        if (scratch_open(near, &totals->copy_descriptor, &counting.error) != MR_OK) return print_error(&counting.error);
        snprintf(totals->copy_path, sizeof totals->copy_path, "/proc/self/fd/%d", totals->copy_descriptor);
        if (mr_record_writer_open(totals->copy_path, nullptr, &counting.writer, &counting.error) != MR_OK)
            return print_error(&counting.error);
    }
    pass_begin(&counting.pass, counting.writer ? "copy" : "count", 0);
    int exit_code = rewrite_walk(options, count_record, &counting);
    pass_end(&counting.pass);
    if (counting.writer && counting.error.status == MR_OK)
        (void)mr_record_writer_close(counting.writer, &counting.error);
    else
        mr_record_writer_discard(counting.writer);
    if (counting.error.status != MR_OK) return print_error(&counting.error);
    if (counting.writer) name_copy(options, totals);
    return exit_code;
}

void totals_deinit(totals *totals)
{
    if (totals->copy_descriptor >= 0) (void)close(totals->copy_descriptor);
    totals->copy_descriptor = -1;
}
