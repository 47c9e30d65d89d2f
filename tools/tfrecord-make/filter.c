/* --include and --exclude: which rows take part. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"
#include "tools/common/glob.h"

#include <stdlib.h>

static const char left_out[] = "file left out by --include or --exclude|files left out by --include or --exclude";

static bool matches_any(const char *const *globs, int count, const char *path)
{
    for (int i = 0; i < count; i++)
        if (glob_match(globs[i], path)) return true;
    return false;
}

bool filter_keeps(const options *options, const char *path)
{
    if (options->include_count > 0 && !matches_any(options->include, options->include_count, path)) return false;
    return !matches_any(options->exclude, options->exclude_count, path);
}

bool filter_enters(const options *options, const char *path)
{
    return !matches_any(options->exclude, options->exclude_count, path);
}

mr_status filter_note(source *source, const char *path, mr_error *error)
{
    return source_note(source, left_out, path, error);
}

mr_status filter_rows(source *source, mr_error *error)
{
    const options *options = source->options;
    if (options->include_count + options->exclude_count == 0) return MR_OK;
    int64_t kept = 0;
    source->excluded = calloc((size_t)source->row_count + 1, sizeof(bool));
    if (!source->excluded) return mr_fail_memory(error, (size_t)source->row_count);
    for (int64_t i = 0; i < source->row_count; i++) {
        if (filter_keeps(options, source->rows[i].name)) {
            kept++;
            continue;
        }
        source->excluded[i] = true;
        MR_TRY(filter_note(source, source->rows[i].name, error));
    }
    if (kept > 0) return MR_OK;
    return mr_fail(error, MR_NOT_FOUND, "%s: --include and --exclude leave no %s", source->input, source->row_noun);
}
