/* The entries of the code view: a tree of calls of Python, with the nodes that the innermost calls created. */
#include "base/status.h"
#include "graph/train/profiler_view.h"

#include <assert.h>
#include <string.h>

#define GRADIENT_SUFFIX " (gradient)"

typedef struct calls {
    mr_profile_view *view;
    mr_name_table names;   /* "PARENT:NAME" -> index in view->entries */
    mr_name_table forward; /* nodes that have traces and are no gradients -> index in `sorted` */
    const mr_profile_node **sorted;
    int32_t capacity;
} calls;

/* The name of the node whose gradient a node computes, as tfprof finds it: "…gradients/NAME_grad/…". Null: none. */
static const char *forward_name(mr_arena *arena, const char *name, bool *is_gradient)
{
    const char *prefix = strstr(name, "gradients/"), *suffix = strstr(name, "_grad/");
    const char *start = prefix != nullptr ? prefix + strlen("gradients/") : nullptr;
    *is_gradient = start != nullptr && suffix != nullptr && suffix != start;
    if (!*is_gradient) return nullptr;
    return mr_arena_strndup(arena, start, suffix > start ? (size_t)(suffix - start) : strlen(start));
}

static mr_status add_call(calls *c, mr_view_entry *parent, int32_t parent_index, const char *name, int32_t *index,
                          mr_error *error)
{
    mr_profile_view *view = c->view;
    const char *key = mr_arena_printf(&view->arena, "%d:%s", (int)parent_index, name);
    if (key == nullptr) return mr_fail_memory(error, strlen(name));
    *index = mr_name_table_get(&c->names, key, -1);
    if (*index >= 0) return MR_OK;
    if (view->entry_count == c->capacity) {
        if (c->capacity > INT32_MAX / 2) return mr_fail_memory(error, SIZE_MAX);
        const int32_t capacity = c->capacity > 0 ? 2 * c->capacity : 256;
        mr_view_entry **entries = MR_ARENA_NEW(&view->arena, mr_view_entry *, (size_t)capacity);
        if (entries == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof(mr_view_entry *));
        if (c->capacity > 0) memcpy(entries, view->entries, (size_t)c->capacity * sizeof(mr_view_entry *));
        view->entries = entries;
        c->capacity = capacity;
    }
    mr_view_entry *made = mr_view_entry_new(view, name, nullptr);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->parent = parent;
    *index = view->entry_count;
    view->entries[view->entry_count++] = made;
    return mr_name_table_set(&c->names, key, *index, error);
}

/* Adds a node to the entry of the innermost of these calls. */
static mr_status add_node(calls *c, const mr_profile_node *caller, const char *suffix, const mr_profile_node *node,
                          mr_error *error)
{
    mr_view_entry *parent = c->view->root;
    int32_t index = -1;
    assert(caller->trace_count > 0);
    for (int32_t i = 0; i < caller->trace_count; i++) {
        const char *name =
            *suffix == '\0' ? caller->traces[i] : mr_arena_printf(&c->view->arena, "%s%s", caller->traces[i], suffix);
        if (name == nullptr) return mr_fail_memory(error, 1);
        MR_TRY(add_call(c, parent, index, name, &index, error));
        parent = c->view->entries[index];
    }
    mr_view_node *added = MR_ARENA_NEW(&c->view->arena, mr_view_node, 1);
    if (added == nullptr) return mr_fail_memory(error, sizeof *added);
    *added = (mr_view_node){.node = node};
    if (parent->last_node != nullptr)
        parent->last_node->next = added;
    else
        parent->first_node = added;
    parent->last_node = added;
    parent->created_count++;
    return MR_OK;
}

/* Either the nodes that a program's calls created, or those of their gradients, below the calls that created the nodes
 * whose gradients they compute. Other gradients have no entry, as in tfprof. */
static mr_status add_nodes(calls *c, int32_t count, bool of_gradients, mr_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        bool is_gradient;
        const mr_profile_node *node = c->sorted[i];
        if (node->trace_count == 0) continue;
        const char *name = forward_name(&c->view->arena, node->name, &is_gradient);
        if (is_gradient && name == nullptr) return mr_fail_memory(error, strlen(node->name));
        if (is_gradient != of_gradients) continue;
        if (is_gradient) {
            const int32_t forward = mr_name_table_get(&c->forward, name, -1);
            if (forward >= 0) MR_TRY(add_node(c, c->sorted[forward], GRADIENT_SUFFIX, node, error));
            continue;
        }
        MR_TRY(mr_name_table_set(&c->forward, node->name, i, error));
        MR_TRY(add_node(c, node, "", node, error));
    }
    return MR_OK;
}

/* Moves the nodes that an entry's call created into an array, which mr_view_add_nodes reads. */
static mr_status finish_entry(mr_profile_view *view, mr_view_entry *e, mr_error *error)
{
    if (e->created_count == 0) return MR_OK;
    const mr_profile_node **nodes = MR_ARENA_NEW(&view->arena, const mr_profile_node *, (size_t)e->created_count);
    if (nodes == nullptr) return mr_fail_memory(error, (size_t)e->created_count * sizeof *nodes);
    int32_t count = 0;
    for (const mr_view_node *each = e->first_node; each != nullptr; each = each->next) nodes[count++] = each->node;
    assert(count == e->created_count);
    return mr_view_add_nodes(view, e, nodes, count, error);
}

mr_status mr_view_add_calls(mr_profile_view *view, const mr_profile *profile, mr_error *error)
{
    calls c = {.view = view, .sorted = mr_view_sorted_nodes(view, profile)};
    mr_status status = c.sorted != nullptr ? add_nodes(&c, profile->node_count, false, error)
                                           : mr_fail_memory(error, (size_t)profile->node_count * sizeof(void *));
    if (status == MR_OK && view->entry_count == 0)
        status = mr_fail(error, MR_NOT_FOUND,
                         "profile: no node has code traces; mr_profile_add_op_log adds those of a Python program");
    if (status == MR_OK) status = add_nodes(&c, profile->node_count, true, error);
    for (int32_t i = 0; status == MR_OK && i < view->entry_count; i++)
        status = finish_entry(view, view->entries[i], error);
    mr_name_table_deinit(&c.names);
    mr_name_table_deinit(&c.forward);
    return status;
}
