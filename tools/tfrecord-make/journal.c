/* The journal: a line for each finished shard, with a fingerprint of what it was made of.
 *
 *     millrace tfrecord-make journal 1
 *     5c1f0a9e33b2d870 93ab01e2c4d5f677 flowers-train-00000-of-00004.tfrecord
 *
 * A line is added when the shard has its final name, and struck (by a line with zeros) before the shard is made anew, so
 * a line never claims what is not so; a line that was cut by a kill is no line. It also tells our own shards of an
 * earlier run, which may be replaced and removed, from files that somebody else put there, which may not. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"
#include "records/file.h"

#include <millrace/record.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char title[] = "millrace tfrecord-make journal 1\n";
static constexpr size_t JOURNAL_SIZE_MAX = (size_t)64 << 20;

static struct journal_line *find_line(const journal *journal, const char *name)
{
    for (int64_t i = 0; i < journal->line_count; i++)
        if (strcmp(journal->lines[i].name, name) == 0) return &journal->lines[i];
    return nullptr;
}

static mr_status set_line(journal *journal, const char *name, const uint64_t fingerprint[2], mr_error *error)
{
    struct journal_line *line = find_line(journal, name);
    if (!line) {
        size_t size = ((size_t)journal->line_count + 1) * sizeof(*line);
        struct journal_line *lines = realloc(journal->lines, size);
        if (!lines) return mr_fail_memory(error, size);
        journal->lines = lines;
        line = &lines[journal->line_count];
        line->name = strdup(name);
        if (!line->name) return mr_fail_memory(error, strlen(name));
        journal->line_count++;
    }
    line->fingerprint[0] = fingerprint[0];
    line->fingerprint[1] = fingerprint[1];
    return MR_OK;
}

/* Lines of the file that was there. What is not a line as we write it is passed over: its shard is made again. */
static mr_status read_lines(journal *journal, char *bytes, mr_error *error)
{
    if (strncmp(bytes, title, sizeof(title) - 1) != 0) return MR_OK;
    char *line = bytes + sizeof(title) - 1;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        uint64_t fingerprint[2];
        int used = 0;
        /* The name is last in our reading, as it may hold blanks. */
        if (sscanf(line, "%16" SCNx64 " %16" SCNx64 " %n", &fingerprint[0], &fingerprint[1], &used) != 2 ||
            used != 34 || !line[used])
            continue;
        MR_TRY(set_line(journal, line + used, fingerprint, error));
    }
    return MR_OK;
}

static mr_status write_line(journal *journal, const char *name, const uint64_t fingerprint[2], mr_error *error)
{
    char *line = nullptr;
    int size = asprintf(&line, "%016" PRIx64 " %016" PRIx64 " %s\n", fingerprint[0], fingerprint[1], name);
    if (size < 0) return mr_fail_memory(error, strlen(name));
    ssize_t written = write(journal->descriptor, line, (size_t)size);
    free(line);
    if (written == size && fdatasync(journal->descriptor) == 0) return MR_OK;
    return mr_file_fail(error, written < 0 ? errno : ENOSPC, "write", journal->path);
}

/* "name-split-00001-of-00004.tfrecord" and what is after it (".index", ".partial", …); null: another file. */
static const char *after_shard_name(const options *options, const char *file)
{
    size_t length = strlen(options->name);
    if (strncmp(file, options->name, length) != 0 || file[length] != '-') return nullptr;
    for (int i = 0; i < options->split_count; i++) {
        const char *next = file + length + 1;
        size_t split = strlen(options->splits[i].name);
        if (strncmp(next, options->splits[i].name, split) != 0) continue;
        next += split;
        static const char shape[] = "-00000-of-00000.tfrecord";
        size_t at = 0;
        while (shape[at] && (shape[at] == '0' ? isdigit((unsigned char)next[at]) : next[at] == shape[at])) at++;
        if (!shape[at]) return next + at;
    }
    return nullptr;
}

static bool is_planned(const plan *plan, const char *name)
{
    for (int32_t i = 0; i < plan->shard_count; i++)
        if (strcmp(plan->shards[i].name, name) == 0) return true;
    return false;
}

static mr_status remove_in(const char *folder, const char *name, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s", folder, name) < 0) return mr_fail_memory(error, strlen(name));
    mr_status status = mr_file_remove(path, error);
    free(path);
    return status;
}

/* Half files of a run that was killed go; shards of another count that we do not know are an error, because a reader that
 * takes NAME-train-* would read both. */
static mr_status settle(const options *options, const plan *plan, const journal *journal, mr_error *error)
{
    DIR *folder = opendir(options->out);
    if (!folder) return mr_file_fail(error, errno, "read folder", options->out);
    mr_status status = MR_OK;
    for (struct dirent *entry; status == MR_OK && (entry = readdir(folder));) {
        const char *rest = after_shard_name(options, entry->d_name);
        if (!rest) continue;
        if (strcmp(rest, MR_FILE_PARTIAL) == 0 || strcmp(rest, ".index" MR_FILE_PARTIAL) == 0)
            status = remove_in(options->out, entry->d_name, error);
        else if (!*rest && !is_planned(plan, entry->d_name) && !find_line(journal, entry->d_name))
            status = mr_fail(error, MR_ALREADY_EXISTS,
                             "%s/%s is there from elsewhere and would be read together with the new files; remove it "
                             "or choose another --name",
                             options->out, entry->d_name);
    }
    closedir(folder);
    return status;
}

mr_status journal_open(const options *options, const plan *plan, journal *journal, mr_error *error)
{
    *journal = (struct journal){.descriptor = -1};
    journal->lock = open(options->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (journal->lock < 0) return mr_file_fail(error, errno, "open", options->out);
    if (flock(journal->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return mr_fail(error, MR_UNAVAILABLE, "%s: another tfrecord-make is at work there", options->out);
    if (asprintf(&journal->path, "%s/.%s.journal", options->out, options->name) < 0) {
        journal->path = nullptr;
        return mr_fail_memory(error, strlen(options->out));
    }
    char *bytes = nullptr;
    size_t size = 0;
    if (mr_file_exists(journal->path)) {
        MR_TRY(mr_file_read_whole(journal->path, JOURNAL_SIZE_MAX, &bytes, &size, error));
        mr_status status = read_lines(journal, bytes, error);
        free(bytes);
        MR_TRY(status);
    }
    MR_TRY(settle(options, plan, journal, error));
    /* Written anew in one piece, so that a cut line has nothing appended to it. */
    mr_file_output output = {0};
    MR_TRY(mr_file_output_open(&output, journal->path, true, error));
    mr_status status = mr_file_output_write(&output, title, sizeof(title) - 1, error);
    for (int64_t i = 0; i < journal->line_count && status == MR_OK; i++) {
        const struct journal_line *line = &journal->lines[i];
        char *text = nullptr;
        int length = asprintf(&text, "%016" PRIx64 " %016" PRIx64 " %s\n", line->fingerprint[0], line->fingerprint[1],
                              line->name);
        status = length < 0 ? mr_fail_memory(error, strlen(line->name))
                            : mr_file_output_write(&output, text, (size_t)length, error);
        free(length < 0 ? nullptr : text);
    }
    if (status != MR_OK) {
        mr_file_output_abandon(&output);
        return status;
    }
    MR_TRY(mr_file_output_commit(&output, error));
    journal->descriptor = open(journal->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return journal->descriptor < 0 ? mr_file_fail(error, errno, "open", journal->path) : MR_OK;
}

bool journal_has(const journal *journal, const shard *shard)
{
    const struct journal_line *line = find_line(journal, shard->name);
    if (!line || line->fingerprint[0] != shard->fingerprint[0] || line->fingerprint[1] != shard->fingerprint[1])
        return false;
    /* The index says that the file is the one that was written with it, and how many records it holds. */
    mr_record_index index = {0};
    bool is_there = mr_record_index_open(shard->path, &index, nullptr) == MR_OK && index.origin == MR_INDEX_LOADED &&
                    index.count == (uint64_t)shard->count;
    mr_record_index_deinit(&index);
    return is_there;
}

mr_status journal_add(journal *journal, const shard *shard, mr_error *error)
{
    MR_TRY(write_line(journal, shard->name, shard->fingerprint, error));
    return set_line(journal, shard->name, shard->fingerprint, error);
}

mr_status journal_strike(journal *journal, const shard *shard, mr_error *error)
{
    static const uint64_t none[2];
    MR_TRY(write_line(journal, shard->name, none, error));
    return set_line(journal, shard->name, none, error);
}

mr_status journal_finish(journal *journal, const options *options, const plan *plan, int64_t *removed, mr_error *error)
{
    *removed = 0;
    for (int64_t i = 0; i < journal->line_count; i++) {
        const char *name = journal->lines[i].name;
        const char *rest = after_shard_name(options, name);
        if (!rest || *rest || is_planned(plan, name)) continue;
        char *path = nullptr, *index = nullptr;
        if (asprintf(&path, "%s/%s", options->out, name) < 0) return mr_fail_memory(error, strlen(name));
        if (asprintf(&index, "%s.index", path) < 0) {
            free(path);
            return mr_fail_memory(error, strlen(name));
        }
        bool is_there = mr_file_exists(path);
        mr_status status = mr_file_remove(path, error);
        if (status == MR_OK) status = mr_file_remove(index, error);
        free(path);
        free(index);
        MR_TRY(status);
        *removed += is_there;
    }
    return MR_OK;
}

void journal_deinit(journal *journal)
{
    for (int64_t i = 0; i < journal->line_count; i++) free(journal->lines[i].name);
    free(journal->lines);
    free(journal->path);
    if (journal->descriptor >= 0) (void)close(journal->descriptor);
    if (journal->lock >= 0) (void)close(journal->lock);
    *journal = (struct journal){.descriptor = -1, .lock = -1};
}
