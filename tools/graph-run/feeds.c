#include "graph-run/feeds.h"

#include "graph-run/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int by_name_and_step(const void *a, const void *b)
{
    const feed_array *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : x->step < y->step ? -1 : x->step > y->step;
}

/* "x:0@3.npy": the name, and the step. */
static mr_status parse_name(const feeds *f, int32_t member, feed_array *array, mr_error *error)
{
    const char *name = f->zip.members[member].name, *file = mr_input_file_name(f->file);
    size_t length = strlen(name);
    if (length < 5 || strcmp(name + length - 4, ".npy") != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s is not an array", file, name);
    array->member = member;
    array->name = strndup(name, length - 4);
    if (!array->name) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    char *at = strrchr(array->name, '@'), *end;
    errno = 0;
    if (at) array->step = strtoll(at + 1, &end, 10);
    if (at && (!isdigit((unsigned char)at[1]) || *end || errno || array->step < 1))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s: @ is not followed by a step (1, 2, …)", file, name);
    if (at) *at = '\0';
    /* x and x:0 are the same output. */
    char *colon = strrchr(array->name, ':');
    if (colon && colon > array->name && strcmp(colon, ":0") == 0) *colon = '\0';
    return MR_OK;
}

static mr_status check_unique(const feeds *f, mr_error *error)
{
    char step[40] = "";
    for (int32_t i = 1; i < f->count; i++) {
        const feed_array *array = &f->arrays[i];
        if (by_name_and_step(array - 1, array) != 0) continue;
        if (array->step > 0) snprintf(step, sizeof step, " in step %" PRId64, array->step);
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s is fed twice%s", mr_input_file_name(f->file),
                       array->name, step);
    }
    return MR_OK;
}

mr_status feeds_open(feeds *f, const char *path, mr_error *error)
{
    MR_TRY(mr_input_file_open(path, false, &f->file, error));
    MR_TRY(mr_zip_open(f->file, &f->zip, error));
    if (f->zip.count == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: no arrays", path);
    if (f->zip.count > INT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: too many arrays", path);
    f->arrays = calloc((size_t)f->zip.count, sizeof *f->arrays);
    if (!f->arrays) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    for (; f->count < (int32_t)f->zip.count; f->count++) {
        feed_array *array = &f->arrays[f->count];
        MR_TRY(parse_name(f, f->count, array, error));
        if (array->step > f->last_step) f->last_step = array->step;
    }
    qsort(f->arrays, (size_t)f->count, sizeof *f->arrays, by_name_and_step);
    return check_unique(f, error);
}

void feeds_close(feeds *f)
{
    for (int64_t i = 0; f->arrays && i < f->zip.count; i++) free(f->arrays[i].name);
    free(f->arrays);
    mr_zip_deinit(&f->zip);
    mr_input_file_close(f->file);
    *f = (feeds){0};
}

int32_t feeds_next(const feeds *f, int32_t first)
{
    int32_t next = first + 1;
    while (next < f->count && strcmp(f->arrays[next].name, f->arrays[first].name) == 0) next++;
    return next;
}

mr_status feeds_check(const feeds *f, int32_t first, int64_t steps, mr_error *error)
{
    int64_t step = 1;
    if (f->arrays[first].step == 0) return MR_OK; /* in each step */
    for (int32_t i = first, end = feeds_next(f, first); i < end && f->arrays[i].step == step; i++) step++;
    if (step > steps) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s has no value for step %" PRId64, mr_input_file_name(f->file),
                   f->arrays[first].name, step);
}

static mr_status read_array(const feeds *f, const feed_array *array, mr_dtype dtype, mr_tensor *value, mr_error *error)
{
    mr_input_file *part = nullptr;
    mr_npy npy;
    const mr_zip_member *member = &f->zip.members[array->member];
    mr_tensor made = {0};
    mr_status status = mr_zip_extract(f->file, member, &part, error);
    if (status == MR_OK) status = mr_npy_open(part, 0, &npy, error);
    if (status == MR_OK) status = mr_npy_read(part, &npy, &made, error);
    mr_input_file_close(part);
    if (status == MR_OK) status = value_convert(&made, dtype, error);
    if (status != MR_OK) {
        const char *file = mr_input_file_name(f->file);
        mr_tensor_deinit(&made);
        /* Errors of the array itself name the file already. */
        if (error && strncmp(error->message, file, strlen(file)) == 0) return status;
        return mr_fail_prefix(error, status, "%s: %.200s", file, member->name);
    }
    mr_tensor_deinit(value);
    *value = made;
    return MR_OK;
}

mr_status feeds_read(const feeds *f, int32_t first, int64_t step, mr_dtype dtype, mr_tensor *value, mr_error *error)
{
    const feed_array *each = f->arrays[first].step == 0 ? &f->arrays[first] : nullptr, *found = nullptr;
    feed_array key = {.name = f->arrays[first].name, .step = step};
    found = bsearch(&key, f->arrays, (size_t)f->count, sizeof key, by_name_and_step);
    if (found) return read_array(f, found, dtype, value, error);
    if (!each)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s has no value for step %" PRId64,
                       mr_input_file_name(f->file), key.name, step);
    /* The step before had this value, unless it had one of its own. */
    key.step = step - 1;
    bool is_same = step > 1 && !bsearch(&key, f->arrays, (size_t)f->count, sizeof key, by_name_and_step);
    return is_same ? MR_OK : read_array(f, each, dtype, value, error);
}
