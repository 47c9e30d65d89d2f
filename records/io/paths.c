/* Expansion of path patterns: a name, a glob, or "name@16" for sharded names. */
#include "base/arguments.h"
#include "base/status.h"
#include "records/io/file.h"

#include <millrace/record.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shard numbers have five digits. */
static constexpr long SHARDS_MAX = 99'999;

void mr_paths_free(char **paths, int32_t count)
{
    for (int32_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
}

/* Splits "dir/name@16.tfrecord" into dir/name, 16 and ".tfrecord". Only the last '@' counts, and it must be in the last
 * path component. */
static bool split_sharded(const char *pattern, size_t *stem_bytes, long *count, const char **suffix)
{
    const char *at = strrchr(pattern, '@');
    if (at == nullptr || strchr(at, '/') != nullptr || at == pattern || !isdigit((unsigned char)at[1])) return false;
    char *end;
    *count = strtol(at + 1, &end, 10);
    *suffix = end;
    *stem_bytes = (size_t)(at - pattern);
    return end - at <= 6 && (*end == '\0' || *end == '.') && *count > 0 && *count <= SHARDS_MAX;
}

static mr_status match_shards(const char *pattern, size_t stem_bytes, long shards, const char *suffix, char ***paths,
                              int32_t *count, mr_error *error)
{
    assert(shards > 0 && shards <= SHARDS_MAX);
    char **found = calloc((size_t)shards, sizeof(char *));
    if (found == nullptr) return mr_fail_memory(error, (size_t)shards * sizeof(char *));
    long missing = 0, first_missing = 0;
    for (long i = 0; i < shards; i++) {
        if (asprintf(&found[i], "%.*s-%05ld-of-%05ld%s", (int)stem_bytes, pattern, i, shards, suffix) < 0) {
            found[i] = nullptr;
            mr_paths_free(found, (int32_t)shards);
            return mr_fail_memory(error, stem_bytes);
        }
        if (!mr_file_exists(found[i]) && missing++ == 0) first_missing = i;
    }
    if (missing > 0) {
        mr_status status = mr_fail(error, MR_NOT_FOUND, "%s: %ld of %ld files are missing, the first is %s", pattern,
                                   missing, shards, found[first_missing]);
        mr_paths_free(found, (int32_t)shards);
        return status;
    }
    *paths = found;
    *count = (int32_t)shards;
    return MR_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether a directory could not be read for a temporary reason. Directories without read permission have no matches. */
static int is_for_now(const char *path, int reason)
{
    (void)path;
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE;
}

static mr_status match_glob(const char *pattern, char ***paths, int32_t *count, mr_error *error)
{
    glob_t found = {0};
    int result = glob(pattern, 0, is_for_now, &found);
    if (result == GLOB_ABORTED) {
        globfree(&found);
        return mr_fail(error, MR_RESOURCE_EXHAUSTED,
                       "%s: a directory cannot be read: out of memory, or too many open files", pattern);
    }
    if (result == GLOB_NOSPACE || found.gl_pathc > INT32_MAX) {
        size_t size_bytes = found.gl_pathc * sizeof(char *);
        /* If memory is exhausted, some C libraries have already freed the result and set a null pointer. */
        if (found.gl_pathv != nullptr) globfree(&found);
        return mr_fail_memory(error, size_bytes);
    }
    char **kept = calloc(found.gl_pathc + 1, sizeof(char *));
    int32_t kept_count = 0;
    mr_status status = kept != nullptr ? MR_OK : mr_fail_memory(error, found.gl_pathc * sizeof(char *));
    for (size_t i = 0; result == 0 && i < found.gl_pathc && status == MR_OK; i++) {
        const char *path = found.gl_pathv[i];
        if (ends_with(path, ".index") && !ends_with(pattern, ".index")) continue;
        if (ends_with(path, ".idx") && !ends_with(pattern, ".idx")) continue;
        if (ends_with(path, MR_FILE_PARTIAL) && !ends_with(pattern, MR_FILE_PARTIAL)) continue;
        assert((size_t)kept_count < found.gl_pathc);
        kept[kept_count] = strdup(path);
        if (kept[kept_count] != nullptr)
            kept_count++;
        else
            status = mr_fail_memory(error, strlen(path));
    }
    globfree(&found);
    if (status == MR_OK && kept_count == 0) status = mr_fail(error, MR_NOT_FOUND, "%s: no such file", pattern);
    if (status != MR_OK) {
        mr_paths_free(kept, kept_count);
        return status;
    }
    *paths = kept;
    *count = kept_count;
    return MR_OK;
}

mr_status mr_paths_match(const char *pattern, char ***paths, int32_t *count, mr_error *error)
{
    MR_REFUSE_NULL(paths, error);
    MR_REFUSE_NULL(count, error);
    *paths = nullptr;
    *count = 0;
    size_t stem_bytes;
    long shards;
    const char *suffix;
    if (pattern == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "the pattern is null");
    if (!mr_file_exists(pattern)) {
        if (split_sharded(pattern, &stem_bytes, &shards, &suffix))
            return match_shards(pattern, stem_bytes, shards, suffix, paths, count, error);
        return match_glob(pattern, paths, count, error);
    }
    char **one = calloc(1, sizeof(char *));
    char *copy = strdup(pattern);
    if (one == nullptr || copy == nullptr) {
        free(one);
        free(copy);
        return mr_fail_memory(error, strlen(pattern));
    }
    one[0] = copy;
    *paths = one;
    *count = 1;
    return MR_OK;
}
