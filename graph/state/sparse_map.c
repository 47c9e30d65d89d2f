/* AddSparseToTensorsMap, AddManySparseToTensorsMap and TakeManySparseFromTensorsMap. A map has sparse tensors in their
 * serialized form (serialized.h), because what is taken is joined in the same way as what is deserialized. */
#include "graph/state/serialized.h"

#include "graph/run/session.h"
#include "kernels/common.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry entry;
struct entry {
    entry *next;
    int64_t handle;
    mr_tensor strings; /* owned; three of them */
};

typedef struct sparse_map {
    mr_resource resource;
    pthread_mutex_t mutex; /* guards what follows */
    entry **buckets;       /* owned; a power of two of them */
    int64_t bucket_count, count;
    int64_t made; /* also the next handle */
} sparse_map;

static void free_entry(entry *e)
{
    mr_tensor_deinit(&e->strings);
    free(e);
}

static void map_deinit(mr_resource *resource)
{
    sparse_map *map = (sparse_map *)resource;
    for (int64_t i = 0; i < map->bucket_count; i++)
        while (map->buckets[i]) {
            entry *next = map->buckets[i]->next;
            free_entry(map->buckets[i]);
            map->buckets[i] = next;
        }
    free(map->buckets);
    pthread_mutex_destroy(&map->mutex);
}

static const mr_resource_class map_class = {
    .name = "sparse tensors map", .size_bytes = sizeof(sparse_map), .deinit = map_deinit};

static mr_status make_map(const mr_kernel_call *call, const char *container, const char *name, sparse_map **map,
                          mr_error *error)
{
    mr_session *session = call->run->session;
    mr_resource *resource = nullptr;
    bool made = false;
    pthread_mutex_lock(&session->mutex);
    mr_status status = mr_resource_make(&session->resources, &map_class, container, name, &resource, &made, error);
    if (made) pthread_mutex_init(&((sparse_map *)resource)->mutex, nullptr);
    pthread_mutex_unlock(&session->mutex);
    *map = (sparse_map *)resource;
    return status;
}

/* The map that the node names, by shared_name or by its own name. */
static mr_status find_map(const mr_kernel_call *call, sparse_map **map, mr_error *error)
{
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a map of sparse tensors is named outside of a session");
    mr_string container = mr_attr_string_or(call->node->attrs, "container", "");
    mr_string shared = mr_attr_string_or(call->node->attrs, "shared_name", "");
    mr_arena arena = {0};
    const char *in = mr_arena_strndup(&arena, container.data, container.size_bytes);
    const char *name =
        shared.size_bytes > 0 ? mr_arena_strndup(&arena, shared.data, shared.size_bytes) : call->node->name;
    mr_status status = in && name ? make_map(call, in, name, map, error)
                                  : mr_fail_memory(error, container.size_bytes + shared.size_bytes);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Entries: the mutex is held ---- */

static entry **link_of(const sparse_map *map, int64_t handle)
{
    if (map->bucket_count == 0) return nullptr;
    entry **link = &map->buckets[handle & (map->bucket_count - 1)];
    while (*link && (*link)->handle != handle) link = &(*link)->next;
    return link;
}

static mr_status grow(sparse_map *map, mr_error *error)
{
    if (map->count < map->bucket_count) return MR_OK;
    int64_t wider = MR_MAX(2 * map->bucket_count, 64);
    entry **buckets = calloc((size_t)wider, sizeof *buckets);
    if (!buckets) return mr_fail_memory(error, (size_t)wider * sizeof *buckets);
    for (int64_t i = 0; i < map->bucket_count; i++)
        while (map->buckets[i]) {
            entry *e = map->buckets[i];
            map->buckets[i] = e->next;
            e->next = buckets[e->handle & (wider - 1)];
            buckets[e->handle & (wider - 1)] = e;
        }
    free(map->buckets);
    map->buckets = buckets;
    map->bucket_count = wider;
    return MR_OK;
}

static mr_status add_strings(sparse_map *map, const mr_string *texts, int64_t *handle, mr_error *error)
{
    MR_TRY(grow(map, error));
    entry *e = calloc(1, sizeof *e);
    if (!e) return mr_fail_memory(error, sizeof *e);
    mr_status status = mr_tensor_init_strings(&e->strings, MR_SHAPE(3), texts, error);
    if (status != MR_OK) {
        free(e);
        return status;
    }
    *handle = e->handle = map->made++;
    entry **link = link_of(map, e->handle);
    e->next = nullptr;
    *link = e;
    map->count++;
    return MR_OK;
}

/* ---- Operators ---- */

/* Whether each part of the sparse tensor in inputs 0 to 2 has values. The caller frees the array. */
static mr_status find_filled(const mr_kernel_call *call, bool parts, int64_t count, bool **filled, mr_error *error)
{
    const mr_tensor *indices = &call->inputs[0];
    bool *found = *filled = calloc((size_t)count + 1, sizeof *found);
    if (!found) return mr_fail_memory(error, (size_t)count);
    if (!parts) found[0] = true;
    for (int64_t i = 0; parts && i < indices->shape.dims[0]; i++)
        found[mr_tensor_int64s(indices)[i * indices->shape.dims[1]]] = true;
    return MR_OK;
}

/* Parts without values get their handles after the others, as in TensorFlow. */
static mr_status add(mr_kernel_call *call, bool parts, mr_error *error)
{
    sparse_map *map;
    mr_tensor strings = {0};
    MR_TRY(find_map(call, &map, error));
    MR_TRY(mr_serialized_inputs(call, parts, &strings, error));
    int64_t count = parts ? strings.shape.dims[0] : 1;
    bool *filled = nullptr;
    mr_status status = find_filled(call, parts, count, &filled, error);
    if (status == MR_OK)
        status = mr_tensor_init(&call->outputs[0], MR_INT64, parts ? MR_SHAPE(count) : MR_SCALAR, error);
    int64_t *handles = call->outputs[0].data;
    pthread_mutex_lock(&map->mutex);
    for (int empty = 0; empty < 2; empty++)
        for (int64_t i = 0; i < count && status == MR_OK; i++)
            if (filled[i] != empty) status = add_strings(map, mr_tensor_strings(&strings) + 3 * i, &handles[i], error);
    pthread_mutex_unlock(&map->mutex);
    free(filled);
    mr_tensor_deinit(&strings);
    return status;
}

static mr_status add_one(mr_kernel_call *call, mr_error *error)
{
    return add(call, false, error);
}

static mr_status add_many(mr_kernel_call *call, mr_error *error)
{
    return add(call, true, error);
}

static mr_status unlink_entry(const mr_kernel_call *call, sparse_map *map, int64_t handle, entry **taken,
                              mr_error *error)
{
    entry **link = link_of(map, handle);
    if (!link || !*link)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Unable to find SparseTensor: %" PRId64 " in map: %s", handle, map->resource.name);
    *taken = *link;
    *link = (*taken)->next;
    map->count--;
    return MR_OK;
}

/* The strings of the entries as a matrix. */
static mr_status join_entries(entry *const *entries, int64_t count, mr_tensor *strings, mr_error *error)
{
    mr_string *texts = calloc((size_t)count + 1, 3 * sizeof *texts);
    if (!texts) return mr_fail_memory(error, (size_t)count * 3 * sizeof *texts);
    for (int64_t i = 0; i < count; i++)
        memcpy(texts + 3 * i, mr_tensor_strings(&entries[i]->strings), 3 * sizeof *texts);
    mr_status status = mr_tensor_init_strings(strings, MR_SHAPE(count, 3), texts, error);
    free(texts);
    return status;
}

static mr_status take(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *handles = &call->inputs[0];
    char text[MR_SHAPE_TEXT_SIZE];
    sparse_map *map;
    if (handles->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "sparse_handles should be a vector but received shape %s",
                              mr_shape_text(handles->shape, text, sizeof text));
    MR_TRY(find_map(call, &map, error));
    int64_t count = handles->shape.dims[0], found = 0;
    entry **entries = calloc((size_t)count + 1, sizeof(entry *));
    if (!entries) return mr_fail_memory(error, (size_t)count * sizeof *entries);
    mr_status status = MR_OK;
    mr_tensor strings = {0};
    pthread_mutex_lock(&map->mutex);
    for (; found < count && status == MR_OK; found += status == MR_OK)
        status = unlink_entry(call, map, mr_tensor_int64s(handles)[found], &entries[found], error);
    pthread_mutex_unlock(&map->mutex);
    if (status == MR_OK) status = join_entries(entries, count, &strings, error);
    if (status == MR_OK) status = mr_serialized_outputs(call, &strings, error);
    mr_tensor_deinit(&strings);
    for (int64_t i = 0; i < found; i++) free_entry(entries[i]);
    free(entries);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "AddSparseToTensorsMap", .run = add_one},
    {.op = "AddManySparseToTensorsMap", .run = add_many},
    {.op = "TakeManySparseFromTensorsMap", .run = take},
};
const mr_kernel_table mr_state_kernels_sparse_map = {kernels, sizeof kernels / sizeof kernels[0]};
