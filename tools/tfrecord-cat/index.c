/* --index and --repair-index: create and repair the index files, which store the offsets of the records of a file. */
#include "common/file.h"
#include "tfrecord-cat/rewrite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The name of DALI's index of a file, as in its documentation. Owned; null without memory. */
static char *dali_path(const char *path)
{
    char *name = nullptr;
    return asprintf(&name, "%s.idx", path) < 0 ? nullptr : name;
}

static void print_result(const char *path, const mr_record_index *index, const char *what)
{
    print_path(stdout, path);
    printf(": %" PRIu64 " record%s, ", index->count, index->count == 1 ? "" : "s");
    if (index->point_count > 0) printf("%" PRIu64 " point%s, ", index->point_count, index->point_count == 1 ? "" : "s");
    if (index->compression != MR_COMPRESSION_NONE && index->point_count == 0 && index->count > 0)
        printf("not seekable, ");
    printf("%s\n", what);
}

static const char *origin_name(mr_index_origin origin)
{
    switch (origin) {
    case MR_INDEX_LOADED:
        return "the index is up to date";
    case MR_INDEX_STALE:
        return "rebuilt, the index was stale";
    case MR_INDEX_DAMAGED:
        return "rebuilt, the index was damaged";
    default:
        return "created";
    }
}

static bool is_same(const mr_record_index *a, const mr_record_index *b)
{
    return a->count == b->count && a->point_count == b->point_count && a->compression == b->compression &&
           memcmp(a->offsets, b->offsets, (a->count + 1) * sizeof(uint64_t)) == 0 &&
           (a->point_count == 0 || memcmp(a->points, b->points, a->point_count * sizeof(mr_record_point)) == 0);
}

/* Returns the file's index, loaded or built and written; *origin is the state of the existing one. */
static mr_status refresh(const options *options, const char *path, mr_record_index *index, mr_index_origin *origin,
                         mr_error *error)
{
    mr_error problem = {0};
    mr_status status = mr_record_index_open(path, index, &problem);
    *origin = index->origin;
    if (status == MR_UNIMPLEMENTED) {
        /* Compressed: reading the whole file is worthwhile here. */
        status = mr_record_index_build(path, thread_count(options), index, &problem);
    }
    if (status != MR_OK) return mr_fail(error, status, "%s", problem.message);
    return *origin == MR_INDEX_LOADED ? MR_OK : mr_record_index_write(path, index, error);
}

/* Imports DALI's index as the file's own if it matches every header. */
static mr_status import_dali(const options *options, const char *path, mr_record_index *index, mr_error *error)
{
    char *name = dali_path(path);
    if (!name) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = mr_dali_index_read(name, index, error);
    free(name);
    if (status == MR_OK) status = mr_record_index_check(path, thread_count(options), index, error);
    if (status == MR_OK) status = mr_record_index_write(path, index, error);
    return status;
}

static mr_status export_dali(const char *path, const mr_record_index *index, mr_error *error)
{
    char *name = dali_path(path);
    if (!name) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = mr_dali_index_write(name, index, error);
    free(name);
    return status;
}

static mr_status index_file(const options *options, const char *path, mr_error *error)
{
    mr_record_index index = {0};
    mr_index_origin origin = MR_INDEX_BUILT;
    const char *what;
    mr_status status;
    if (options->from_dali) {
        status = import_dali(options, path, &index, error);
        what = "imported from DALI's index";
    } else {
        status = refresh(options, path, &index, &origin, error);
        what = origin_name(origin);
        if (status == MR_OK && options->to_dali) {
            status = export_dali(path, &index, error);
            what = "DALI's index written";
        }
    }
    if (status == MR_OK) print_result(path, &index, what);
    mr_record_index_deinit(&index);
    return status;
}

/* Compares the index files of a file with its contents, and rewrites those that are wrong. */
static mr_status repair_file(const options *options, const char *path, mr_error *error)
{
    mr_record_index made = {0}, found = {0}, dali = {0};
    MR_TRY(mr_record_index_build(path, thread_count(options), &made, error));
    const char *what = "the index is correct";
    mr_error problem = {0};
    mr_status status = mr_record_index_open(path, &found, &problem);
    if (status == MR_RESOURCE_EXHAUSTED) {
        mr_record_index_deinit(&made);
        return mr_fail(error, status, "%s", problem.message);
    }
    mr_index_origin origin = found.origin;
    bool is_right = status == MR_OK && origin == MR_INDEX_LOADED && is_same(&found, &made);
    status = MR_OK;
    if (!is_right) {
        what = origin == MR_INDEX_LOADED ? "rebuilt, the index was wrong" : origin_name(origin);
        status = mr_record_index_write(path, &made, error);
    }
    char *name = dali_path(path);
    if (status == MR_OK && !name) status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    if (status == MR_OK && file_exists(name) && made.compression == MR_COMPRESSION_NONE) {
        bool is_current = mr_dali_index_read(name, &dali, &problem) == MR_OK && is_same(&dali, &made);
        if (problem.status == MR_RESOURCE_EXHAUSTED) {
            status = mr_fail(error, problem.status, "%s", problem.message);
        } else if (!is_current) {
            status = mr_dali_index_write(name, &made, error);
            what = is_right ? "DALI's index rebuilt" : "both indexes rebuilt";
        }
    }
    if (status == MR_OK) print_result(path, &made, what);
    free(name);
    mr_record_index_deinit(&dali);
    mr_record_index_deinit(&found);
    mr_record_index_deinit(&made);
    return status;
}

static int each_file(const options *options, mr_status (*run)(const struct options *, const char *, mr_error *))
{
    int exit_code = 0;
    for (int32_t i = 0; i < options->path_count; i++) {
        mr_error error = {0};
        if (strcmp(options->paths[i], "-") == 0)
            return usage_error("--%s: standard input has no index", options->command->name);
        if (run(options, options->paths[i], &error) != MR_OK) exit_code = print_error(&error);
    }
    return exit_code;
}

int index_run(const options *options)
{
    if (options->to_dali && options->from_dali) return usage_error("--dali and --from-dali: only one of them");
    return each_file(options, index_file);
}

int repair_index_run(const options *options)
{
    return each_file(options, repair_file);
}
