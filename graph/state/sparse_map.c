/* Maps of sparse tensors: a sparse tensor that passes through a queue is a number, its handle, while the map has it. */
#include "graph/state/sparse_parts.h"
#include "graph/state/state.h"

#include "base/mutex.h"
#include "graph/run/session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define FAIL(...) mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct entry entry;
struct entry {
    entry *next; /* in its bucket */
    int64_t handle;
    mr_sparse_part part;
};

typedef struct sparse_map {
    mr_resource resource;
    pthread_mutex_t mutex; /* guards what follows */
    entry **buckets;       /* a power of two of them, or none */
    int64_t bucket_count, count, next_handle;
} sparse_map;

static void free_entry(entry *e)
{
    mr_sparse_part_deinit(&e->part);
    free(e);
}

static void clear(sparse_map *map)
{
    for (int64_t i = 0; i < map->bucket_count; i++)
        while (map->buckets[i]) {
            entry *first = map->buckets[i];
            map->buckets[i] = first->next;
            free_entry(first);
        }
    map->count = map->next_handle = 0;
}

static void map_reset(mr_resource *resource)
{
    sparse_map *map = (sparse_map *)resource;
    pthread_mutex_lock(&map->mutex);
    clear(map);
    pthread_mutex_unlock(&map->mutex);
}

static void map_deinit(mr_resource *resource)
{
    sparse_map *map = (sparse_map *)resource;
    clear(map);
    free(map->buckets);
    pthread_mutex_destroy(&map->mutex);
}

static const mr_resource_class map_class = {
    .name = "map of sparse tensors", .size_bytes = sizeof(sparse_map), .deinit = map_deinit, .reset = map_reset};

/* The map that the node names, by shared_name or by its own name. */
static mr_status map_named(const mr_kernel_call *call, sparse_map **map, mr_error *error)
{
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a map of sparse tensors is named outside of a session");
    mr_session *session = call->run->session;
    mr_string container = mr_attr_string_or(call->node->attrs, "container", "");
    mr_string shared = mr_attr_string_or(call->node->attrs, "shared_name", "");
    mr_arena arena = {0};
    mr_resource *resource = nullptr;
    bool made = false;
    const char *in = mr_arena_strndup(&arena, container.data, container.size_bytes);
    const char *name =
        shared.size_bytes > 0 ? mr_arena_strndup(&arena, shared.data, shared.size_bytes) : call->node->name;
    pthread_mutex_lock(&session->mutex);
    mr_status status = in && name ? mr_resource_make(&session->resources, &map_class, in, name, &resource, &made, error)
                                  : mr_fail_memory(error, container.size_bytes + shared.size_bytes);
    *map = (sparse_map *)resource;
    if (made) pthread_mutex_init(&(*map)->mutex, nullptr);
    pthread_mutex_unlock(&session->mutex);
    mr_arena_deinit(&arena);
    return status;
}

static mr_status grow(sparse_map *map, mr_error *error)
{
    assert(mr_mutex_is_held(&map->mutex) && (map->bucket_count & (map->bucket_count - 1)) == 0);
    if (map->count < map->bucket_count) return MR_OK;
    int64_t count = map->bucket_count ? 2 * map->bucket_count : 16;
    entry **larger = calloc((size_t)count, sizeof(entry *));
    if (!larger) return mr_fail_memory(error, (size_t)count * sizeof(entry *));
    for (int64_t i = 0; i < map->bucket_count; i++)
        while (map->buckets[i]) {
            entry *e = map->buckets[i], **bucket = &larger[e->handle & (count - 1)];
            map->buckets[i] = e->next;
            e->next = *bucket;
            *bucket = e;
        }
    free(map->buckets);
    map->buckets = larger;
    map->bucket_count = count;
    return MR_OK;
}

/* Takes the part's tensors. */
static mr_status map_add(sparse_map *map, mr_sparse_part *part, int64_t *handle, mr_error *error)
{
    entry *made = malloc(sizeof *made);
    if (!made) return mr_fail_memory(error, sizeof *made);
    pthread_mutex_lock(&map->mutex);
    mr_status status = grow(map, error);
    if (status == MR_OK) {
        *handle = map->next_handle++;
        entry **bucket = &map->buckets[*handle & (map->bucket_count - 1)];
        *made = (entry){.next = *bucket, .handle = *handle, .part = *part};
        *part = (mr_sparse_part){0};
        *bucket = made;
        map->count++;
    }
    pthread_mutex_unlock(&map->mutex);
    if (status != MR_OK) free(made);
    return status;
}

/* Removes the entry; false if there is none. */
static bool map_take(sparse_map *map, int64_t handle, mr_sparse_part *part)
{
    entry *found = nullptr;
    pthread_mutex_lock(&map->mutex);
    entry **at = map->bucket_count ? &map->buckets[handle & (map->bucket_count - 1)] : nullptr;
    while (at && *at && (*at)->handle != handle) at = &(*at)->next;
    if (at && *at) {
        found = *at;
        *at = found->next;
        assert(map->count > 0 && found->handle < map->next_handle);
        map->count--;
    }
    pthread_mutex_unlock(&map->mutex);
    if (!found) return false;
    *part = found->part;
    free(found);
    return true;
}

/* ---- Operators ---- */

static mr_status add_sparse(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    sparse_map *map;
    mr_sparse_part part;
    MR_TRY(mr_sparse_read_parts(call, 0, 1, 2, &s, error));
    char text[MR_SPARSE_TEXT_SIZE];
    for (int64_t d = 0; d < s.rank; d++)
        if (s.shape[d] < 0) return FAIL("Dimension %" PRId64 " must be >= 0", s.shape[d]);
    if (mr_sparse_check_shape(call, &s, nullptr) != MR_OK)
        return FAIL("Shape [%s] would have more than 2**63 - 1 elements",
                    mr_sparse_text(s.shape, s.rank, ",", text, sizeof text));
    MR_TRY(map_named(call, &map, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    MR_TRY(mr_sparse_part_of(call, &part, error));
    mr_status status = map_add(map, &part, mr_tensor_int64s(&call->outputs[0]), error);
    mr_sparse_part_deinit(&part);
    return status;
}

typedef struct adding {
    sparse_map *map;
    int64_t *handles;
    bool are_empty; /* as in TensorFlow, the rows without values get their handles last */
} adding;

static mr_status add_row(void *context, int64_t row, mr_sparse_part *part, mr_error *error)
{
    const adding *a = context;
    bool is_empty = mr_tensor_count(&part->values) == 0;
    return is_empty == a->are_empty ? map_add(a->map, part, &a->handles[row], error) : MR_OK;
}

static mr_status add_many_sparse(mr_kernel_call *call, mr_error *error)
{
    mr_sparse s;
    adding a;
    MR_TRY(mr_sparse_read(call, 0, 1, 2, &s, error));
    if (s.rank <= 1) return FAIL("Rank of input SparseTensor should be > 1, but saw rank: %" PRId64, s.rank);
    MR_TRY(mr_sparse_check_indices(call, &s, error));
    MR_TRY(map_named(call, &a.map, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(s.shape[0]), error));
    a.handles = mr_tensor_int64s(&call->outputs[0]);
    a.are_empty = false;
    MR_TRY(mr_sparse_rows(call, &s, add_row, &a, error));
    a.are_empty = true;
    return mr_sparse_rows(call, &s, add_row, &a, error);
}

static mr_status check_part(const mr_kernel_call *call, const mr_sparse_part *part, int64_t index, mr_error *error)
{
    if (part->values.dtype == call->node->output_dtypes[1]) return MR_OK;
    return FAIL("Requested SparseTensor of type %s but SparseTensor[%" PRId64 "].values.dtype() == %s",
                mr_dtype_name(call->node->output_dtypes[1]), index, mr_dtype_name(part->values.dtype));
}

static mr_status take_many_sparse(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *handles = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    sparse_map *map;
    mr_sparse_part *parts = nullptr;
    if (handles->shape.rank != 1)
        return FAIL("sparse_handles should be a vector but received shape %s",
                    mr_shape_text(handles->shape, text, sizeof text));
    int64_t count = handles->shape.dims[0];
    if (count < 1) return FAIL("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    MR_TRY(map_named(call, &map, error));
    MR_TRY(mr_sparse_memory(call, count, sizeof *parts, &parts, error));
    for (int64_t i = 0; i < count; i++) parts[i] = (mr_sparse_part){0};
    mr_status status = MR_OK;
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        int64_t handle = mr_tensor_int64s(handles)[i];
        status = map_take(map, handle, &parts[i])
                     ? check_part(call, &parts[i], i, error)
                     : FAIL("Unable to find SparseTensor: %" PRId64 " in map: %s", handle, map->resource.name);
    }
    if (status == MR_OK) status = mr_sparse_join(call, handles->shape, parts, count, error);
    for (int64_t i = 0; i < count; i++) mr_sparse_part_deinit(&parts[i]);
    free(parts);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "AddSparseToTensorsMap", .run = add_sparse},
    {.op = "AddManySparseToTensorsMap", .run = add_many_sparse},
    {.op = "TakeManySparseFromTensorsMap", .run = take_many_sparse},
};
const mr_kernel_table mr_state_kernels_sparse_map = {kernels, sizeof kernels / sizeof kernels[0]};
