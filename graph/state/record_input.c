/* RecordInput. Each epoch reads every file once, in an order of its own, and no record of the next epoch comes before
 * the last one of this. A record is drawn from a buffer of file_buffer_size records, which the next ones of the epoch
 * fill up first. Files are read by the calls themselves: file_parallelism has no effect. */
#include "graph/state/state.h"

#include "base/random.h"
#include "graph/run/session.h"
#include "kernels/common.h"

#include <assert.h>
#include <glob.h>
#include <millrace/record.h>
#include <stdlib.h>
#include <string.h>

constexpr int64_t BATCH_MAX = 1 << 24;

typedef struct record_input {
    mr_resource resource;
    pthread_mutex_t mutex; /* guards what follows */
    char **paths;          /* owned, in order */
    int64_t path_count;
    uint64_t seed, epoch;
    double shift; /* of the order of the files from one epoch to the next, as a share of them */
    int64_t next; /* file of the epoch */
    mr_record_reader *reader;
    mr_tensor *buffer; /* owned; string scalars */
    int64_t count, room, limit;
    bool found_any; /* a record in this epoch */
    mr_random random;
} record_input;

static void clear_paths(record_input *input)
{
    for (int64_t i = 0; i < input->path_count; i++) free(input->paths[i]);
    free(input->paths);
    input->paths = nullptr;
    input->path_count = 0;
}

static void input_deinit(mr_resource *resource)
{
    record_input *input = (record_input *)resource;
    clear_paths(input);
    for (int64_t i = 0; i < input->count; i++) mr_tensor_deinit(&input->buffer[i]);
    free(input->buffer);
    mr_record_reader_close(input->reader);
    pthread_mutex_destroy(&input->mutex);
}

static const mr_resource_class input_class = {
    .name = "record input", .size_bytes = sizeof(record_input), .deinit = input_deinit};

static mr_status find_input(const mr_kernel_call *call, record_input **found, mr_error *error)
{
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "records are read outside of a session");
    mr_session *session = call->run->session;
    mr_resource *resource = nullptr;
    bool made = false;
    pthread_mutex_lock(&session->mutex);
    mr_status status =
        mr_resource_make(&session->resources, &input_class, "", call->node->name, &resource, &made, error);
    if (made) pthread_mutex_init(&((record_input *)resource)->mutex, nullptr);
    pthread_mutex_unlock(&session->mutex);
    *found = (record_input *)resource;
    return status;
}

/* Patterns match names that start with a dot too, but not "." and "..". */
static bool is_listed(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static mr_status list_files(const mr_kernel_call *call, record_input *input, mr_error *error)
{
    mr_string given = mr_attr_string_or(call->node->attrs, "file_pattern", "");
    glob_t found = {0};
    char *pattern = strndup(given.size_bytes > 0 ? given.data : "", given.size_bytes);
    if (!pattern) return mr_fail_memory(error, given.size_bytes);
    int code = glob(pattern, GLOB_PERIOD, nullptr, &found);
    mr_status status = code == GLOB_NOSPACE ? mr_fail_memory(error, given.size_bytes) : MR_OK;
    if (status == MR_OK) input->paths = calloc(found.gl_pathc + 1, sizeof *input->paths);
    if (status == MR_OK && !input->paths) status = mr_fail_memory(error, found.gl_pathc * sizeof *input->paths);
    for (size_t i = 0; i < found.gl_pathc && status == MR_OK; i++) {
        if (!is_listed(found.gl_pathv[i])) continue;
        input->paths[input->path_count] = strdup(found.gl_pathv[i]);
        if (input->paths[input->path_count])
            input->path_count++;
        else
            status = mr_fail_memory(error, strlen(found.gl_pathv[i]));
    }
    if (status == MR_OK && input->path_count == 0)
        status = mr_kernel_fail(call->node, error, MR_NOT_FOUND, "Found no files at %s", pattern);
    if (status != MR_OK) clear_paths(input);
    globfree(&found);
    free(pattern);
    return status;
}

static mr_status start(const mr_kernel_call *call, record_input *input, mr_error *error)
{
    const mr_attrs *attrs = call->node->attrs;
    float shift = mr_attr_float_or(attrs, "file_shuffle_shift_ratio", 0);
    input->seed = (uint64_t)mr_attr_int_or(attrs, "file_random_seed", 301);
    input->limit = MR_MAX(mr_attr_int_or(attrs, "file_buffer_size", 10'000), 1);
    input->shift = shift > 0 && shift < 1 ? (double)shift : 0;
    input->random = mr_random_at(input->seed, 0, 0, 0);
    assert(input->paths == nullptr && input->path_count == 0);
    return list_files(call, input, error);
}

static mr_status open_next(record_input *input, mr_error *error)
{
    assert(!input->reader && input->next >= 0 && input->next < input->path_count);
    mr_permutation order = mr_permutation_init((uint64_t)input->path_count, input->seed, 0);
    uint64_t step = (uint64_t)(input->shift * (double)input->path_count);
    uint64_t at = step > 0 ? (uint64_t)input->next + step * input->epoch : (uint64_t)input->next;
    if (step == 0) order = mr_permutation_init((uint64_t)input->path_count, input->seed, input->epoch);
    const char *path = input->paths[mr_permutation_at(&order, at % (uint64_t)input->path_count)];
    MR_TRY(mr_record_reader_open(path, nullptr, &input->reader, error));
    input->next++;
    return MR_OK;
}

static mr_status put(record_input *input, mr_string record, mr_error *error)
{
    assert(input->count >= 0 && input->count <= input->room && input->count < input->limit);
    if (input->count == input->room) {
        int64_t room = MR_MAX(2 * input->room, 64);
        mr_tensor *buffer = reallocarray(input->buffer, (size_t)room, sizeof *buffer);
        if (!buffer) return mr_fail_memory(error, (size_t)room * sizeof *buffer);
        input->buffer = buffer;
        input->room = room;
    }
    MR_TRY(mr_tensor_init_string(&input->buffer[input->count], record, error));
    input->count++;
    input->found_any = true;
    return MR_OK;
}

/* Reads until the buffer is full or the epoch has ended. */
static mr_status fill(record_input *input, mr_error *error)
{
    while (input->count < input->limit) {
        if (!input->reader && input->next == input->path_count) return MR_OK;
        if (!input->reader) MR_TRY(open_next(input, error));
        mr_string record;
        mr_status status = mr_record_reader_next(input->reader, &record, error);
        if (status == MR_OK) status = put(input, record, error);
        if (status == MR_OK) continue;
        mr_record_reader_close(input->reader);
        input->reader = nullptr;
        if (status != MR_OUT_OF_RANGE) return status;
    }
    return MR_OK;
}

static mr_status draw(const mr_kernel_call *call, record_input *input, mr_tensor *record, mr_error *error)
{
    MR_TRY(fill(input, error));
    if (input->count == 0) {
        if (!input->found_any) return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE, "the files have no records");
        input->epoch++;
        input->next = 0;
        input->found_any = false;
        MR_TRY(fill(input, error));
        if (input->count == 0) return mr_kernel_fail(call->node, error, MR_OUT_OF_RANGE, "the files have no records");
    }
    assert(input->count > 0 && input->count <= input->limit && input->count <= input->room);
    mr_tensor *at = &input->buffer[mr_random_below(&input->random, (uint64_t)input->count)];
    *record = *at;
    *at = input->buffer[--input->count];
    return MR_OK;
}

static mr_status draw_many(const mr_kernel_call *call, record_input *input, int64_t count, mr_tensor *records,
                           mr_error *error)
{
    if (input->path_count == 0) MR_TRY(start(call, input, error));
    mr_string *texts = calloc((size_t)count + 1, sizeof *texts);
    mr_tensor *drawn = calloc((size_t)count + 1, sizeof *drawn);
    mr_status status = texts && drawn ? MR_OK : mr_fail_memory(error, (size_t)count * sizeof *drawn);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        status = draw(call, input, &drawn[i], error);
        if (status == MR_OK) texts[i] = mr_tensor_strings(&drawn[i])[0];
    }
    if (status == MR_OK) status = mr_tensor_init_strings(records, MR_SHAPE(count), texts, error);
    for (int64_t i = 0; drawn && i < count; i++) mr_tensor_deinit(&drawn[i]);
    free(drawn);
    free(texts);
    return status;
}

static mr_status read_records(mr_kernel_call *call, mr_error *error)
{
    record_input *input;
    int64_t count = mr_attr_int_or(call->node->attrs, "batch_size", 32);
    if (count < 0 || count > BATCH_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "batch_size is %lld, expected 0 to %lld",
                              (long long)count, (long long)BATCH_MAX);
    MR_TRY(find_input(call, &input, error));
    pthread_mutex_lock(&input->mutex);
    mr_status status = draw_many(call, input, count, &call->outputs[0], error);
    pthread_mutex_unlock(&input->mutex);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "RecordInput", .run = read_records},
};
const mr_kernel_table mr_state_kernels_record_input = {kernels, sizeof kernels / sizeof kernels[0]};
