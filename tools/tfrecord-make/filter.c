/* --include and --exclude: selects rows. A row may have several paths, such as those of a sample's members. It is
 * left out if one of them is excluded, or if none is included. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/glob.h"

#include <stdlib.h>
#include <string.h>

/* Every pattern is tried, so that patterns that match nothing are known. */
static bool match_each(const char *const *globs, int count, const char *path, bool *used)
{
    bool matches = false;
    for (int i = 0; i < count; i++) {
        if (!glob_match(globs[i], path)) continue;
        used[i] = matches = true;
    }
    return matches;
}

void filter_match(source *source, row *row, const char *path)
{
    const options *options = source->options;
    row->is_included |= match_each(options->include, options->include_count, path, source->include_used);
    row->is_excluded |= match_each(options->exclude, options->exclude_count, path, source->exclude_used);
}

bool filter_accepts(const source *source, const row *row)
{
    return !row->is_excluded && (row->is_included || source->options->include_count == 0);
}

mr_status filter_accepts_directory(source *source, const char *path, bool *enters, mr_error *error)
{
    const options *options = source->options;
    char *directory = nullptr;
    *enters = true;
    if (options->exclude_count == 0) return MR_OK;
    if (asprintf(&directory, "%s/", path) < 0) return fail_memory(error, strlen(path));
    *enters = !match_each(options->exclude, options->exclude_count, directory, source->exclude_used);
    free(directory);
    return *enters
               ? MR_OK
               : source_note(source, "directory left out by --exclude|directories left out by --exclude", path, error);
}

mr_status filter_count_excluded(source *source, const char *path, mr_error *error)
{
    return source_note(source, "file left out by --include or --exclude|files left out by --include or --exclude", path,
                       error);
}

static mr_status mark_rows(source *source, mr_error *error)
{
    source->excluded = calloc((size_t)source->row_count + 1, sizeof(bool));
    if (!source->excluded) return fail_memory(error, (size_t)source->row_count);
    for (int64_t i = 0; i < source->row_count; i++) {
        const row *row = &source->rows[i];
        if (filter_accepts(source, row)) continue;
        source->excluded[i] = true;
        source->excluded_count++;
        source->size_bytes -= row->size_bytes;
        MR_TRY(filter_count_excluded(source, row->name, error));
    }
    return MR_OK;
}

mr_status filter_rows(source *source, mr_error *error)
{
    const options *options = source->options;
    if (options->include_count + options->exclude_count == 0) return MR_OK;
    MR_TRY(mark_rows(source, error));
    if (source->excluded_count == source->row_count)
        return mr_fail(error, MR_NOT_FOUND, "%s: --include and --exclude leave no %s", source->input, source->row_noun);
    for (int i = 0; i < options->include_count; i++)
        if (!source->include_used[i])
            return mr_fail(error, MR_NOT_FOUND, "--include '%s' matches nothing in %s", options->include[i],
                           source->input);
    for (int i = 0; i < options->exclude_count; i++)
        if (!source->exclude_used[i])
            MR_TRY(source_remark(source, error, "warning: --exclude '%s' matches nothing", options->exclude[i]));
    return MR_OK;
}
