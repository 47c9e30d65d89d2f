/* The table of a session's resources, and handles to them. */
#include "graph/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_names(const char *container, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = container; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    hash *= 0x100000001b3u;
    for (const char *at = name; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static mr_resource *find(const mr_resource_table *table, const mr_resource_class *class, const char *container,
                         const char *name, uint64_t hash)
{
    if (table->bucket_count == 0) return nullptr;
    for (mr_resource *at = table->buckets[hash & (table->bucket_count - 1)]; at; at = at->next)
        if (at->hash == hash && at->class == class && strcmp(at->name, name) == 0 &&
            strcmp(at->container, container) == 0)
            return at;
    return nullptr;
}

mr_resource *mr_resource_find(const mr_resource_table *table, const mr_resource_class *class, const char *container,
                              const char *name)
{
    return find(table, class, container, name, hash_names(container, name));
}

static mr_status grow(mr_resource_table *table, mr_error *error)
{
    if (table->count < table->bucket_count) return MR_OK;
    uint32_t count = table->bucket_count ? 2 * table->bucket_count : 64;
    mr_resource **larger = calloc(count, sizeof(mr_resource *));
    if (!larger) return mr_fail_memory(error, count * sizeof(mr_resource *));
    for (mr_resource *at = table->first; at; at = at->later) {
        at->next = larger[at->hash & (count - 1)];
        larger[at->hash & (count - 1)] = at;
    }
    free(table->buckets);
    table->buckets = larger;
    table->bucket_count = count;
    return MR_OK;
}

mr_status mr_resource_make(mr_resource_table *table, const mr_resource_class *class, const char *container,
                           const char *name, mr_resource **resource, bool *made, mr_error *error)
{
    uint64_t hash = hash_names(container, name);
    *made = false;
    assert(table->bucket_count == 0 || (table->bucket_count & (table->bucket_count - 1)) == 0);
    assert(table->count <= table->bucket_count && (table->count == 0) == (table->first == nullptr));
    *resource = find(table, class, container, name, hash);
    if (*resource) return MR_OK;
    MR_TRY(grow(table, error));
    assert(class->size_bytes >= sizeof(mr_resource));
    mr_resource *new = mr_arena_alloc(&table->arena, class->size_bytes);
    if (!new) return mr_fail_memory(error, class->size_bytes);
    *new = (mr_resource){.class = class,
                         .container = mr_arena_strdup(&table->arena, container),
                         .name = mr_arena_strdup(&table->arena, name),
                         .hash = hash};
    if (!new->container || !new->name) return mr_fail_memory(error, strlen(name) + strlen(container));
    mr_resource **bucket = &table->buckets[hash & (table->bucket_count - 1)];
    new->next = *bucket;
    *bucket = new;
    if (table->last)
        table->last->later = new;
    else
        table->first = new;
    table->last = new;
    table->count++;
    *resource = new;
    *made = true;
    return MR_OK;
}

void mr_resource_table_deinit(mr_resource_table *table)
{
    for (mr_resource *at = table->first; at; at = at->later) at->class->deinit(at);
    free(table->buckets);
    mr_arena_deinit(&table->arena);
    *table = (mr_resource_table){0};
}

mr_status mr_resource_names(const mr_node *node, mr_arena *arena, const char **container, const char **name,
                            mr_error *error)
{
    mr_string asked = mr_attr_string_or(&node->attrs, "container", "");
    mr_string shared = mr_attr_string_or(&node->attrs, "shared_name", "");
    *container = mr_arena_strndup(arena, asked.data, asked.size_bytes);
    *name = shared.size_bytes > 0 ? mr_arena_strndup(arena, shared.data, shared.size_bytes)
                                  : mr_arena_strdup(arena, node->name);
    if (!*container || !*name) return mr_fail_memory(error, shared.size_bytes + asked.size_bytes);
    return MR_OK;
}

mr_status mr_resource_of_node(mr_resource_table *table, const mr_resource_class *class, const mr_node *node,
                              mr_resource **resource, bool *made, mr_error *error)
{
    mr_arena arena = {0};
    const char *container, *name;
    mr_status status = mr_resource_names(node, &arena, &container, &name, error);
    if (status == MR_OK) status = mr_resource_make(table, class, container, name, resource, made, error);
    mr_arena_deinit(&arena);
    return status;
}

static void destroy(mr_buffer *buffer)
{
    mr_resource *resource = buffer->owner;
    assert(&resource->buffer == buffer);
    resource->class->deinit(resource);
    free(resource);
}

mr_status mr_resource_new(const mr_resource_class *class, mr_resource **resource, mr_error *error)
{
    assert(class->size_bytes >= sizeof(mr_resource));
    mr_resource *new = *resource = calloc(1, class->size_bytes);
    if (!new) return mr_fail_memory(error, class->size_bytes);
    mr_buffer_init(&new->buffer, new, 0, destroy, new);
    new->class = class;
    new->container = new->name = "";
    return MR_OK;
}

/* A tensor that was fed in place of a handle has a buffer of another kind. */
mr_resource *mr_tensor_any_resource(const mr_tensor *tensor)
{
    return tensor->buffer && tensor->buffer->destroy != destroy ? nullptr : tensor->data;
}

mr_resource *mr_tensor_resource(const mr_tensor *tensor, const mr_resource_class *class)
{
    mr_resource *resource = mr_tensor_any_resource(tensor);
    return resource && resource->class == class ? resource : nullptr;
}

mr_status mr_handle_get(const mr_kernel_call *call, int input, const mr_resource_class *class, mr_resource **resource,
                        mr_error *error)
{
    *resource = mr_tensor_resource(&call->inputs[input], class);
    if (*resource) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input %d is not a %s", input, class->name);
}
