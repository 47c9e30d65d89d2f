/* --verify: checks every checksum, every Example and every image header, with several threads. Each fault is a line:
 * file, record, byte offset, kind and message; lines are in file order. */
#include "tfrecord-cat/verify.h"
#include "common/progress.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Number of faults of a batch that are printed; the others are only counted. */
static constexpr uint64_t PRINTED_MAX = 10'000;

typedef struct verify {
    const options *options;
    checker *checkers; /* one for each thread */
    progress progress;
    atomic_uint_fast64_t bytes; /* less than a MiB of progress not yet reported */
    uint64_t faults;            /* of the file being reported */
    uint64_t bad_records;       /* its records whose checksums hold, with at least one fault */
    uint64_t all_faults;
    bool has_failed;
} verify;

/* The findings of a thread in a batch: lines in memory. */
typedef struct findings {
    FILE *file; /* appends to text */
    out text;
    uint64_t count;
    uint64_t records; /* with faults */
    size_t last;      /* index of the last of these in the batch */
} findings;

/* The position of the record being checked. */
typedef struct spot {
    findings **findings; /* null until the first finding */
    const mr_record_batch *batch;
    size_t i;
    bool is_out_of_memory;
} spot;

static void put_fault(FILE *file, const char *path, uint64_t record, uint64_t offset, const char *kind,
                      const char *message)
{
    (void)text_print(file, mr_string_from(text_path(path)), INT32_MAX);
    fprintf(file, ": record %" PRIu64 ", byte %" PRIu64 ": %s: ", record, offset, kind);
    /* Messages contain quotation marks of their own. */
    if (text_is_readable(mr_string_from(message)))
        fputs(message, file);
    else
        (void)text_print(file, mr_string_from(message), INT32_MAX);
    fputc('\n', file);
}

/* ---- Any thread ---- */

static void take_found(void *context, const char *kind, const char *message)
{
    spot *spot = context;
    findings *findings = *spot->findings;
    if (!findings) {
        findings = calloc(1, sizeof(*findings));
        if (findings && !(findings->file = out_stream(&findings->text))) {
            free(findings);
            findings = nullptr;
        }
        spot->is_out_of_memory |= !findings;
        if (!findings) return;
        *spot->findings = findings;
    }
    if (findings->count == 0 || findings->last != spot->i) findings->records++;
    findings->last = spot->i;
    if (findings->count++ < PRINTED_MAX)
        put_fault(findings->file, spot->batch->path, spot->batch->first + spot->i,
                  mr_record_batch_offset(spot->batch, spot->i), kind, message);
}

static void count_bytes(verify *verify, const mr_record_batch *batch)
{
    const mr_string *last = &batch->records[batch->count - 1];
    uint64_t bytes = (uint64_t)(last->data + last->size_bytes - batch->records[0].data);
    uint64_t before = atomic_fetch_add_explicit(&verify->bytes, bytes, memory_order_relaxed);
    uint64_t units = ((before + bytes) >> 20) - (before >> 20);
    if (units > 0) progress_add(&verify->progress, units);
}

static mr_status check_batch(void *context, mr_record_batch *batch, mr_error *error)
{
    verify *verify = context;
    findings *findings = nullptr;
    spot spot = {.findings = &findings, .batch = batch};
    for (; spot.i < batch->count && !verify->options->is_raw; spot.i++)
        checker_check(&verify->checkers[batch->thread], batch->records[spot.i], take_found, &spot);
    if (findings) spot.is_out_of_memory |= fclose(findings->file) != 0 || findings->text.has_failed;
    batch->result = findings;
    if (spot.is_out_of_memory) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for its faults");
    count_bytes(verify, batch);
    return MR_OK;
}

static void discard(void *context, void *result)
{
    findings *findings = result;
    out_deinit(&findings->text);
    free(findings);
}

/* ---- In order ---- */

static mr_status print_findings(void *context, const mr_record_batch *batch, mr_error *error)
{
    verify *verify = context;
    findings *findings = batch->result;
    if (verify->progress.is_terminal) progress_hide(&verify->progress);
    (void)out_write(&findings->text, stdout);
    if (findings->count > PRINTED_MAX) printf("… and %" PRIu64 " more nearby\n", findings->count - PRINTED_MAX);
    verify->faults += findings->count;
    verify->bad_records += findings->records;
    discard(nullptr, findings);
    return ferror(stdout) ? mr_fail(error, MR_CANCELLED, "standard output is closed") : MR_OK;
}

/* Removes file and position, and sometimes the kind, from the start of the reader's messages: the line already has
 * them. */
static const char *without_place(const char *message, const char *path, const char *kind)
{
    const char *name = text_path(path);
    size_t length = strlen(name);
    if (strncmp(message, name, length) != 0 || strncmp(message + length, ": record ", 9) != 0) return message;
    const char *words = strstr(message + length + 2, ": ");
    if (!words) return message;
    size_t kind_length = strlen(kind);
    bool has_kind = strncmp(words + 2, kind, kind_length) == 0 && strncmp(words + 2 + kind_length, ": ", 2) == 0;
    return words + 2 + (has_kind ? kind_length + 2 : 0);
}

static void print_damage(void *context, const mr_record_damage *damage, const mr_error *problem)
{
    verify *verify = context;
    if (verify->progress.is_terminal) progress_hide(&verify->progress);
    const char *kind = mr_damage_kind_name(damage->kind);
    put_fault(stdout, damage->path, damage->record, damage->offset, kind,
              without_place(problem->message, damage->path, kind));
    verify->faults++;
}

/* An index of another version of the file does no harm, but reading is slower. */
static void check_index(verify *verify, const char *path)
{
    mr_record_index index = {0};
    mr_error error = {0};
    if (mr_record_index_open(path, &index, &error) == MR_RESOURCE_EXHAUSTED) verify->has_failed = print_error(&error);
    if (error.status != MR_OK) return;
    if (index.origin == MR_INDEX_STALE) {
        (void)text_print(stdout, mr_string_from(path), INT32_MAX);
        printf(": ignoring stale .index\n");
    } else if (index.origin == MR_INDEX_DAMAGED) {
        (void)mr_fail(&error, MR_DATA_LOSS, "%s: ignoring .index, which is damaged or cannot be read", path);
        verify->has_failed = print_error(&error);
    }
    mr_record_index_deinit(&index);
}

static bool has_index(const char *path)
{
    char name[PATH_MAX];
    struct stat about;
    return snprintf(name, sizeof name, "%s.index", path) < (int)sizeof name && stat(name, &about) == 0;
}

static mr_status end_file(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    verify *verify = context;
    const char *path = verify->options->paths[file];
    char size[PROGRESS_TEXT_SIZE];
    if (verify->progress.is_terminal) progress_hide(&verify->progress);
    if (error->status != MR_OK) {
        verify->has_failed = true;
        (void)print_error(error);
    } else {
        (void)text_print(stdout, mr_string_from(text_path(path)), INT32_MAX);
        uint64_t good = totals->records - verify->bad_records;
        printf(": %" PRIu64 " good record%s, ", good, good == 1 ? "" : "s");
        if (verify->bad_records > 0) printf("%" PRIu64 " bad, ", verify->bad_records);
        printf("%s, ", progress_size_text(totals->size_bytes, size));
        if (verify->faults == 0)
            printf("no faults\n");
        else
            printf("%" PRIu64 " fault%s\n", verify->faults, verify->faults == 1 ? "" : "s");
        if (strcmp(path, "-") != 0 && has_index(path)) check_index(verify, path);
    }
    verify->all_faults += verify->faults;
    verify->faults = verify->bad_records = 0;
    return ferror(stdout) ? MR_CANCELLED : MR_OK;
}

uint64_t total_mib(const options *options)
{
    uint64_t bytes = 0;
    for (int32_t i = 0; i < options->path_count; i++) {
        struct stat about;
        if (stat(options->paths[i], &about) != 0 || !S_ISREG(about.st_mode)) return 0;
        unsigned char magic[2] = {0};
        FILE *file = fopen(options->paths[i], "rb");
        if (!file) continue;
        size_t got = fread(magic, 1, sizeof magic, file);
        fclose(file);
        /* The uncompressed size of a GZIP or ZLIB file is unknown. */
        if (got == 2 && ((magic[0] == 0x1f && magic[1] == 0x8b) || (magic[0] & 0x8f) == 8)) {
            if (magic[0] == 0x1f || (magic[0] * 256 + magic[1]) % 31 == 0) return 0;
        }
        bytes += (uint64_t)about.st_size;
    }
    return bytes >> 20;
}

int verify_run(const options *options)
{
    int32_t threads = thread_count(options);
    verify verify = {.options = options, .checkers = calloc((size_t)threads, sizeof(checker))};
    if (!verify.checkers) return print_error(&(mr_error){MR_RESOURCE_EXHAUSTED, "no memory"});
    for (int32_t i = 0; i < threads; i++) verify.checkers[i].decodes = options->decodes;
    const mr_record_scan_options scan = {.size = sizeof scan,
                                         .threads = threads,
                                         .damage = MR_DAMAGE_SKIP,
                                         .context = &verify,
                                         .work = check_batch,
                                         .take = print_findings,
                                         .takes_results = true,
                                         .discard = discard,
                                         .damaged = print_damage,
                                         .file_done = end_file};
    mr_error error = {0};
    progress_begin(&verify.progress, "verify", "MiB", total_mib(options));
    mr_status status = mr_record_scan((const char *const *)options->paths, options->path_count, &scan, nullptr, &error);
    progress_end(&verify.progress);
    if (status != MR_OK && status != MR_CANCELLED) verify.has_failed = print_error(&error);
    for (int32_t i = 0; i < threads; i++) checker_deinit(&verify.checkers[i]);
    free(verify.checkers);
    return verify.has_failed || verify.all_faults > 0 || status != MR_OK ? 1 : 0;
}
