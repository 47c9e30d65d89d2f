/* The journal: a record of finished shards, one line for each. It is append-only.
 *
 *     millrace tfrecord-make journal 2
 *     begin 83f0c1d2a4b5e697 0000000000000000 4000             plan, run, rows
 *     shard 5c1f0a9e33b2d870 93ab01e2c4d5f677 83f0c1d2a4b5e697 1812 3 182340112 1763700000123456789 \
 *           flowers-train-00000-of-00004.tfrecord oriented:12:daisy/1.jpg damaged:3:rose/7.jpg
 *     end 0000000000000000                                     or: failed 0000000000000000 why
 *
 * A shard's line (a single line in the file) contains its fingerprint, plan, records, skipped rows, the file's size and
 * modification time, name and remarks. It is appended after the shard has its final name, and is valid only for a file
 * of that size and time. A truncated line, left by a killed run, is ignored. Names are escaped as in a URL.
 *
 * The journal also distinguishes this dataset's own shards of an earlier run, which may be replaced and removed, from
 * files of other origin, which may not. So before a shard with a new name is written, it gets a line of zeros, and
 * after a shard was removed, a line "removed 0 NAME": a later file of that name is not this dataset's. labels.txt also
 * has a line, whose first number is the hash of its text.
 *
 * A single process writes .NAME.journal, and holds an exclusive lock on the directory. With several workers, each
 * writes .NAME.worker-2-of-8.journal, and they hold a shared lock; the process that joins their shards holds the
 * exclusive lock and copies all lines to .NAME.journal. Every process reads all journals. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/file.h"
#include "common/shard_name.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char title[] = "millrace tfrecord-make journal 2\n", old_title[] = "millrace tfrecord-make journal 1\n";
static constexpr size_t JOURNAL_SIZE_MAX = (size_t)256 << 20;

/* ---- Words of a line ---- */

/* Prints everything except letters, digits and a few punctuation characters as %xx. */
static void print_escaped(FILE *file, const char *text)
{
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte > ' ' && byte < 0x7f && byte != '%' && byte != ':')
            fputc(byte, file);
        else
            fprintf(file, "%%%02x", byte);
    }
}

static int hex(char digit)
{
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Unescapes in place. */
static char *unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        char value = *from;
        if (*from == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0) {
            value = (char)(hex(from[1]) * 16 + hex(from[2]));
            from += 2;
        }
        *to++ = value;
    }
    *to = '\0';
    return text;
}

/* The next word of a line; null at its end. */
static char *next_word(char **line)
{
    char *word;
    while ((word = strsep(line, " ")) && !*word) {}
    return word;
}

static bool next_number(char **line, int base, uint64_t *number)
{
    char *word = next_word(line), *end = nullptr;
    if (!word) return false;
    errno = 0;
    *number = strtoull(word, &end, base);
    return errno == 0 && end != word && !*end;
}

/* ---- Reading ---- */

/* name, length  the name, which need not end there */
static journal_line *find_prefix(const journal *journal, const char *name, size_t length)
{
    for (int64_t i = 0; i < journal->line_count; i++)
        if (strncmp(journal->lines[i].name, name, length) == 0 && !journal->lines[i].name[length])
            return &journal->lines[i];
    return nullptr;
}

static journal_line *find_line(const journal *journal, const char *name)
{
    return find_prefix(journal, name, strlen(name));
}

static void forget_line(journal *journal, const char *name)
{
    journal_line *line = find_line(journal, name);
    if (!line) return;
    assert(line >= journal->lines && line < journal->lines + journal->line_count);
    free(line->name);
    shard_report_deinit(&line->report);
    *line = journal->lines[--journal->line_count];
}

/* The line with that name, cleared; a new one if none exists. */
static mr_status fresh_line(journal *journal, const char *name, journal_line **found, mr_error *error)
{
    *found = find_line(journal, name);
    assert(journal->line_count >= 0 && (journal->lines || journal->line_count == 0));
    if (*found) {
        shard_report_deinit(&(*found)->report);
        **found = (journal_line){.name = (*found)->name};
        return MR_OK;
    }
    size_t size = ((size_t)journal->line_count + 1) * sizeof(journal_line);
    journal_line *lines = realloc(journal->lines, size);
    if (!lines) return fail_memory(error, size);
    journal->lines = lines;
    lines[journal->line_count] = (journal_line){.name = strdup(name)};
    if (!lines[journal->line_count].name) return fail_memory(error, strlen(name));
    *found = &lines[journal->line_count++];
    return MR_OK;
}

static bool remark_of(const char *word, remark *found)
{
    for (int i = 0; i < REMARK_COUNT; i++)
        if (strcmp(remark_name((remark)i), word) == 0) {
            *found = (remark)i;
            return true;
        }
    return false;
}

static mr_status read_shard(journal *journal, char *rest, mr_error *error)
{
    uint64_t numbers[7];
    for (int i = 0; i < 7; i++)
        if (!next_number(&rest, i < 3 ? 16 : 10, &numbers[i])) return MR_OK;
    char *name = next_word(&rest);
    if (!name) return MR_OK;
    journal_line *line;
    MR_TRY(fresh_line(journal, unescape(name), &line, error));
    line->fingerprint[0] = numbers[0];
    line->fingerprint[1] = numbers[1];
    line->plan = numbers[2];
    line->report.records = (int64_t)numbers[3];
    line->report.skipped = (int64_t)numbers[4];
    line->report.size_bytes = numbers[5];
    line->modified_ns = (int64_t)numbers[6];
    for (char *word; (word = next_word(&rest));) {
        char *kind = strsep(&word, ":"), *count = strsep(&word, ":");
        remark remark;
        if (count && word && remark_of(kind, &remark))
            MR_TRY(shard_report_remark(&line->report, remark, strtoll(count, nullptr, 10), unescape(word), error));
    }
    return MR_OK;
}

/* Lines of version 1 contain a fingerprint and a name, which is last and may contain blanks. These shards belong to
 * this dataset and are written again. */
static mr_status read_old_line(journal *journal, const char *line, mr_error *error)
{
    journal_line *known;
    return strlen(line) > 34 ? fresh_line(journal, line + 34, &known, error) : MR_OK;
}

static mr_status read_line(journal *journal, journal_worker *worker, char *line, mr_error *error)
{
    char *word = next_word(&line);
    uint64_t number;
    if (!word) return MR_OK;
    if (strcmp(word, "shard") == 0) return read_shard(journal, line, error);
    if (!next_number(&line, 16, &number)) return MR_OK;
    if (strcmp(word, "removed") == 0) {
        char *name = next_word(&line);
        if (name) forget_line(journal, unescape(name));
    }
    if (!worker) return MR_OK;
    if (strcmp(word, "begin") == 0) {
        uint64_t rows = 0;
        worker->plan = number;
        worker->is_done = false;
        free(worker->failure);
        worker->failure = nullptr;
        (void)next_number(&line, 16, &worker->run);
        (void)next_number(&line, 10, &rows);
        worker->row_count = (int64_t)rows;
    } else if (strcmp(word, "end") == 0) {
        worker->is_done = number == worker->run;
    } else if (strcmp(word, "failed") == 0 && line) {
        free(worker->failure);
        worker->failure = strdup(unescape(line));
        if (!worker->failure) return fail_memory(error, strlen(line));
    }
    return MR_OK;
}

/* Whether a file is a journal. A killed run may have left only the beginning of the title. */
static bool is_journal(const char *bytes, size_t size)
{
    size_t length = size < sizeof(title) - 1 ? size : sizeof(title) - 1;
    return memcmp(bytes, title, length) == 0 || memcmp(bytes, old_title, length) == 0;
}

/* Lines that do not have the expected form are ignored: their shards are written again. */
static mr_status read_journal(journal *journal, const char *path, journal_worker *worker, mr_error *error)
{
    char *bytes = nullptr;
    size_t size = 0;
    MR_TRY(file_read_all(path, JOURNAL_SIZE_MAX, &bytes, &size, error));
    bool old = strncmp(bytes, old_title, sizeof(old_title) - 1) == 0;
    mr_status status = MR_OK;
    if (!is_journal(bytes, size))
        status = mr_fail(error, MR_ALREADY_EXISTS,
                         "%s: is not a journal of this version of tfrecord-make and would be replaced; remove it or "
                         "choose another --name",
                         path);
    if (old || strncmp(bytes, title, sizeof(title) - 1) == 0) {
        char *line = bytes + sizeof(title) - 1;
        for (char *end; status == MR_OK && (end = strchr(line, '\n')); line = end + 1) {
            *end = '\0';
            status = old ? read_old_line(journal, line, error) : read_line(journal, worker, line, error);
        }
    }
    free(bytes);
    return status;
}

/* Returns what follows "NAME-SPLIT-00001-of-00004.tfrecord" (".index", ".partial", …), for any split; null: another
 * file. */
static const char *after_shard_name(const options *options, const char *file)
{
    static const char ending[] = ".tfrecord";
    size_t length = strlen(options->name);
    if (strncmp(file, options->name, length) != 0 || file[length] != '-') return nullptr;
    for (const char *at = strchr(file + length + 1, '-'); at; at = strchr(at + 1, '-')) {
        const char *end = shard_number_end(at);
        if (end && strncmp(end, ending, sizeof ending - 1) == 0) return end + sizeof ending - 1;
    }
    return nullptr;
}

/* Whether a file that after_shard_name accepts is of one of this run's splits. */
static bool is_of_splits(const options *options, const char *file)
{
    const char *split = file + strlen(options->name) + 1;
    for (int i = 0; i < options->split_count; i++) {
        size_t length = strlen(options->splits[i].name);
        if (strncmp(split, options->splits[i].name, length) == 0 && shard_number_end(split + length)) return true;
    }
    return false;
}

/* Whether a file is the journal of a worker. */
static bool is_worker_journal(const options *options, const char *file, journal_worker *worker)
{
    size_t length = strlen(options->name);
    int used = 0;
    if (*file != '.' || strncmp(file + 1, options->name, length) != 0) return false;
    return sscanf(file + 1 + length, ".worker-%" SCNd32 "-of-%" SCNd32 ".journal%n", &worker->worker,
                  &worker->worker_count, &used) == 2 &&
           used > 0 && !file[1 + length + (size_t)used] && worker->worker >= 1 &&
           worker->worker <= worker->worker_count;
}

static mr_status path_in(const options *options, const char *name, char **path, mr_error *error)
{
    if (asprintf(path, "%s/%s", options->out, name) >= 0) return MR_OK;
    *path = nullptr;
    return fail_memory(error, strlen(name));
}

static void forget(journal *journal)
{
    for (int64_t i = 0; i < journal->line_count; i++) {
        free(journal->lines[i].name);
        shard_report_deinit(&journal->lines[i].report);
    }
    for (int32_t i = 0; i < journal->worker_count; i++) free(journal->workers[i].failure);
    journal->line_count = 0;
    journal->worker_count = 0;
}

static mr_status read_worker(journal *journal, const char *file, journal_worker worker, mr_error *error)
{
    size_t size = ((size_t)journal->worker_count + 1) * sizeof(worker);
    journal_worker *workers = realloc(journal->workers, size);
    if (!workers) return fail_memory(error, size);
    journal->workers = workers;
    char *path;
    MR_TRY(path_in(journal->options, file, &path, error));
    workers[journal->worker_count] = worker;
    mr_status status = read_journal(journal, path, &workers[journal->worker_count++], error);
    free(path);
    /* It may have been removed meanwhile by the process that joins the shards. */
    return status == MR_NOT_FOUND ? MR_OK : status;
}

mr_status journal_read(journal *journal, mr_error *error)
{
    char *path, *name;
    forget(journal);
    if (asprintf(&name, ".%s.journal", journal->options->name) < 0) return fail_memory(error, 1);
    mr_status status = path_in(journal->options, name, &path, error);
    free(name);
    MR_TRY(status);
    if (file_exists(path)) status = read_journal(journal, path, nullptr, error);
    free(path);
    MR_TRY(status);
    DIR *directory = opendir(journal->options->out);
    if (!directory) return file_fail(error, errno, "read directory", journal->options->out);
    for (struct dirent *entry; status == MR_OK && (entry = readdir(directory));) {
        journal_worker worker = {0};
        if (is_worker_journal(journal->options, entry->d_name, &worker))
            status = read_worker(journal, entry->d_name, worker, error);
    }
    closedir(directory);
    return status;
}

/* ---- Checking the output directory ---- */

static const shard *find_shard(const plan *plan, const char *name, size_t length)
{
    for (int32_t i = 0; i < plan->shard_count; i++)
        if (strncmp(plan->shards[i].name, name, length) == 0 && !plan->shards[i].name[length]) return &plan->shards[i];
    return nullptr;
}

static mr_status remove_in(const options *options, const char *name, mr_error *error)
{
    char *path;
    MR_TRY(path_in(options, name, &path, error));
    mr_status status = file_remove(path, error);
    free(path);
    return status;
}

/* Whether a file is the journal of another dataset. */
static bool is_of_others(const options *options, const char *file)
{
    size_t length = strlen(options->name);
    return *file == '.' && source_has_ending(file, ".journal") &&
           !(strncmp(file + 1, options->name, length) == 0 && file[1 + length] == '.');
}

/* Handles a file with a shard's name. rest: what follows ".tfrecord" */
static mr_status settle_file(const journal *journal, const plan *plan, const char *file, const char *rest, bool removes,
                             mr_error *error)
{
    const options *options = journal->options;
    size_t length = (size_t)(rest - file);
    bool is_known = find_prefix(journal, file, length) != nullptr;
    if (!is_known && !is_of_splits(options, file)) return MR_OK;
    if (shard_is_partial(rest)) {
        const shard *shard = find_shard(plan, file, length);
        bool ours = options->worker_count == 0 || (shard && shard->worker == options->worker);
        return ours && removes ? remove_in(options, file, error) : MR_OK;
    }
    bool is_planned = find_shard(plan, file, length) != nullptr;
    bool conflicts = !*rest || (strcmp(rest, ".index") == 0 && is_planned);
    if (is_known || !conflicts) return MR_OK;
    return mr_fail(error, MR_ALREADY_EXISTS,
                   "%s/%s was not written for this dataset and would be %s; remove it or choose another --name",
                   options->out, file, is_planned ? "replaced" : "read together with the new files");
}

/* Removes partial files of a killed run. Unknown shards are an error, because they would be replaced, or a reader of
 * NAME-train-* would read both. */
static mr_status settle(journal *journal, const source *source, const plan *plan, bool removes, mr_error *error)
{
    DIR *directory = opendir(journal->options->out);
    if (!directory) return file_fail(error, errno, "read directory", journal->options->out);
    mr_status status = MR_OK;
    for (struct dirent *entry; status == MR_OK && (entry = readdir(directory));) {
        const char *rest = after_shard_name(journal->options, entry->d_name);
        journal->has_others |= is_of_others(journal->options, entry->d_name);
        if (rest) status = settle_file(journal, plan, entry->d_name, rest, removes, error);
    }
    closedir(directory);
    return status == MR_OK ? label_files_check(source, journal, error) : status;
}

/* ---- Opening and writing ---- */

/* Appends a complete line with one write and syncs the file. */
static mr_status write_line(journal *journal, char *line, size_t size, mr_error *error)
{
    /* Exactly one line, with a single line break at its end: a line without it counts as truncated. */
    assert(journal->descriptor >= 0 && size > 0 && memchr(line, '\n', size) == line + size - 1);
    ssize_t written = write(journal->descriptor, line, size);
    if (written == (ssize_t)size && fdatasync(journal->descriptor) == 0) return MR_OK;
    return file_fail(error, written < 0 ? errno : ENOSPC, "write", journal->path);
}

static mr_status lock(journal *journal, mr_error *error)
{
    const options *options = journal->options;
    journal->lock = open(options->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->lock < 0) return file_fail(error, errno, "open", options->out);
    int kind = options->worker_count > 0 ? LOCK_SH : LOCK_EX;
    /* On file systems without locks, continue without one. */
    if (flock(journal->lock, kind | LOCK_NB) == 0 || errno != EWOULDBLOCK) return MR_OK;
    return mr_fail(error, MR_UNAVAILABLE, "%s: another tfrecord-make is writing to this directory", options->out);
}

/* Opens this process's journal. Writes the title if it is new, and terminates a truncated last line. */
static mr_status open_own(journal *journal, mr_error *error)
{
    const options *options = journal->options;
    int made = options->worker_count > 0 ? asprintf(&journal->path, "%s/.%s.worker-%d-of-%d.journal", options->out,
                                                    options->name, options->worker, options->worker_count)
                                         : asprintf(&journal->path, "%s/.%s.journal", options->out, options->name);
    if (made < 0) {
        journal->path = nullptr;
        return fail_memory(error, strlen(options->out));
    }
    char head[sizeof(title)] = "";
    size_t size = 0;
    if (file_exists(journal->path)) {
        char *bytes = nullptr;
        MR_TRY(file_read_all(journal->path, JOURNAL_SIZE_MAX, &bytes, &size, error));
        memcpy(head, bytes, size < sizeof(head) - 1 ? size : sizeof(head) - 1);
        free(bytes);
    }
    /* A journal of another version, or with a truncated title, is restarted. Lines read from it remain known. */
    bool fresh = strcmp(head, title) != 0;
    if (fresh) MR_TRY(file_write_all(journal->path, title, sizeof(title) - 1, error));
    journal->descriptor = open(journal->path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (journal->descriptor < 0) return file_fail(error, errno, "open", journal->path);
    if (options->worker_count > 0 && flock(journal->descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return mr_fail(error, MR_UNAVAILABLE, "%s: worker %d of %d is already running in this directory", options->out,
                       options->worker, options->worker_count);
    char last = '\n';
    if (!fresh && pread(journal->descriptor, &last, 1, (off_t)size - 1) == 1 && last != '\n')
        return write_line(journal, "\n", 1, error);
    return MR_OK;
}

/* Closes a stream of open_memstream and writes its text. If memory ran out, the stream has failed or the text is
 * null. */
static mr_status end_line(journal *journal, FILE *file, char **text, const size_t *size, mr_error *error)
{
    bool is_good = !ferror(file);
    is_good = fclose(file) == 0 && is_good && *text;
    mr_status status = is_good ? write_line(journal, *text, *size, error) : fail_memory(error, *size);
    free(*text);
    return status;
}

static mr_status write_shard(journal *journal, const journal_line *line, mr_error *error)
{
    const shard_report *report = &line->report;
    char *text = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) return fail_memory(error, 256);
    fprintf(file, "shard %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " ",
            line->fingerprint[0], line->fingerprint[1], line->plan, report->records, report->skipped,
            report->size_bytes, (uint64_t)line->modified_ns);
    print_escaped(file, line->name);
    for (int i = 0; i < REMARK_COUNT; i++) {
        if (report->remarks[i].count == 0) continue;
        fprintf(file, " %s:%" PRId64 ":", remark_name((remark)i), report->remarks[i].count);
        print_escaped(file, report->remarks[i].first);
    }
    fputc('\n', file);
    return end_line(journal, file, &text, &size, error);
}

static mr_status remove_worker_journals(const journal *journal, mr_error *error)
{
    for (int32_t i = 0; i < journal->worker_count; i++) {
        char *name = nullptr;
        if (asprintf(&name, ".%s.worker-%d-of-%d.journal", journal->options->name, journal->workers[i].worker,
                     journal->workers[i].worker_count) < 0)
            return fail_memory(error, 1);
        mr_status status = remove_in(journal->options, name, error);
        free(name);
        MR_TRY(status);
    }
    return MR_OK;
}

/* Copies all lines of the workers' journals to this process's journal; the workers' journals are then removed. */
static mr_status take_over(journal *journal, mr_error *error)
{
    for (int64_t i = 0; i < journal->line_count; i++) MR_TRY(write_shard(journal, &journal->lines[i], error));
    return remove_worker_journals(journal, error);
}

mr_status journal_open(const options *options, const source *source, const plan *plan, uint64_t run, journal *journal,
                       mr_error *error)
{
    *journal = (struct journal){.options = options, .descriptor = -1, .lock = -1};
    pthread_mutex_init(&journal->mutex, nullptr);
    MR_TRY(lock(journal, error));
    MR_TRY(journal_read(journal, error));
    MR_TRY(settle(journal, source, plan, true, error));
    MR_TRY(open_own(journal, error));
    if (journal->worker_count > 0 && options->worker_count == 0) MR_TRY(take_over(journal, error));
    char *line = nullptr;
    int size = asprintf(&line, "begin %016" PRIx64 " %016" PRIx64 " %" PRId64 "\n", plan->hash, run, plan->row_count);
    if (size < 0) return fail_memory(error, 1);
    mr_status status = write_line(journal, line, (size_t)size, error);
    free(line);
    return status;
}

mr_status journal_inspect(const options *options, const source *source, const plan *plan, journal *journal,
                          mr_error *error)
{
    *journal = (struct journal){.options = options, .descriptor = -1, .lock = -1};
    pthread_mutex_init(&journal->mutex, nullptr);
    MR_TRY(journal_read(journal, error));
    return settle(journal, source, plan, false, error);
}

const journal_line *journal_find(const journal *journal, const plan *plan, const shard *shard, bool any_time)
{
    assert(shard >= plan->shards && shard < plan->shards + plan->shard_count);
    const journal_line *line = find_line(journal, shard->name);
    if (!line) return nullptr;
    bool same = line->fingerprint[0] == shard->fingerprint[0] && line->fingerprint[1] == shard->fingerprint[1];
    if (!same && (!any_time || line->plan != plan->hash)) return nullptr;
    /* The line must match the current file, and the index must have the line's number of records. */
    file_stamp stamp;
    if (file_stamp_of(shard->path, &stamp, nullptr) != MR_OK || stamp.size_bytes != line->report.size_bytes ||
        stamp.modified_ns != line->modified_ns)
        return nullptr;
    mr_record_index index = {0};
    bool is_there = mr_record_index_open(shard->path, &index, nullptr) == MR_OK && index.origin == MR_INDEX_LOADED &&
                    index.count == (uint64_t)line->report.records;
    mr_record_index_deinit(&index);
    return is_there ? line : nullptr;
}

mr_status journal_claim(journal *journal, const shard *shard, mr_error *error)
{
    if (find_line(journal, shard->name)) return MR_OK;
    pthread_mutex_lock(&journal->mutex);
    mr_status status = write_shard(journal, &(journal_line){.name = (char *)shard->name}, error);
    pthread_mutex_unlock(&journal->mutex);
    return status;
}

bool journal_has_text(const journal *journal, const char *name, uint64_t hash)
{
    const journal_line *line = find_line(journal, name);
    return line && line->fingerprint[0] == hash;
}

mr_status journal_add_text(journal *journal, const char *name, uint64_t hash, mr_error *error)
{
    if (journal_has_text(journal, name, hash)) return MR_OK;
    return write_shard(journal, &(journal_line){.name = (char *)name, .fingerprint = {hash}}, error);
}

mr_status journal_add(journal *journal, const plan *plan, const shard *shard, shard_report *report, mr_error *error)
{
    assert(shard >= plan->shards && shard < plan->shards + plan->shard_count);
    assert(report->records + report->skipped == shard->count);
    file_stamp stamp;
    MR_TRY(file_stamp_of(shard->path, &stamp, error));
    report->size_bytes = stamp.size_bytes;
    journal_line line = {.name = (char *)shard->name,
                         .fingerprint = {shard->fingerprint[0], shard->fingerprint[1]},
                         .plan = plan->hash,
                         .modified_ns = stamp.modified_ns,
                         .report = *report};
    pthread_mutex_lock(&journal->mutex);
    mr_status status = write_shard(journal, &line, error);
    pthread_mutex_unlock(&journal->mutex);
    return status;
}

mr_status journal_add_end(journal *journal, uint64_t run, const char *failure, mr_error *error)
{
    char *text = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) return fail_memory(error, 256);
    fprintf(file, "%s %016" PRIx64, failure ? "failed" : "end", run);
    if (failure) {
        fputc(' ', file);
        print_escaped(file, failure);
    }
    fputc('\n', file);
    return end_line(journal, file, &text, &size, error);
}

void journal_touch(journal *journal)
{
    (void)futimens(journal->descriptor, nullptr);
}

static mr_status write_removed(journal *journal, const char *name, mr_error *error)
{
    char *text = nullptr;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) return fail_memory(error, 256);
    fputs("removed 0 ", file);
    print_escaped(file, name);
    fputc('\n', file);
    return end_line(journal, file, &text, &size, error);
}

/* Removes a shard and its index. */
static mr_status remove_shard(const char *path, mr_error *error)
{
    char *index = nullptr;
    if (asprintf(&index, "%s.index", path) < 0) return fail_memory(error, 1);
    mr_status status = file_remove(path, error);
    if (status == MR_OK) status = file_remove(index, error);
    free(index);
    return status;
}

mr_status journal_finish(journal *journal, const plan *plan, int64_t *removed, mr_error *error)
{
    *removed = 0;
    for (int64_t i = 0; i < journal->line_count; i++) {
        const char *name = journal->lines[i].name, *rest = after_shard_name(journal->options, name);
        if (!rest || *rest || find_shard(plan, name, strlen(name))) continue;
        char *path;
        MR_TRY(path_in(journal->options, name, &path, error));
        *removed += file_exists(path);
        mr_status status = remove_shard(path, error);
        free(path);
        if (status == MR_OK) status = write_removed(journal, name, error);
        MR_TRY(status);
    }
    return MR_OK;
}

mr_status journal_discard(journal *journal, const plan *plan, mr_error *error)
{
    bool knows_others = false;
    for (int32_t i = 0; plan && i < plan->shard_count; i++) MR_TRY(remove_shard(plan->shards[i].path, error));
    for (int64_t i = 0; i < journal->line_count && !knows_others; i++) {
        char *path;
        MR_TRY(path_in(journal->options, journal->lines[i].name, &path, error));
        knows_others = file_exists(path);
        free(path);
    }
    return knows_others ? MR_OK : file_remove(journal->path, error);
}

void journal_deinit(journal *journal)
{
    if (!journal->options) return;
    forget(journal);
    free(journal->lines);
    free(journal->workers);
    free(journal->path);
    if (journal->descriptor >= 0) (void)close(journal->descriptor);
    if (journal->lock >= 0) (void)close(journal->lock);
    pthread_mutex_destroy(&journal->mutex);
    *journal = (struct journal){0};
}
