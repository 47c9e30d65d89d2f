/* The entries of the scope view and of the graph view, with the tree that they form before some are removed. */
#include "base/status.h"
#include "graph/train/profiler_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Scopes ---- */

typedef struct scopes {
    mr_profile_view *view;
    mr_name_table names; /* -> index in view->entries */
    int32_t capacity;
} scopes;

static mr_status add_entry(scopes *s, const char *name, const mr_profile_node *node, int32_t *index, mr_error *error)
{
    mr_profile_view *view = s->view;
    if (view->entry_count == s->capacity) {
        if (s->capacity > INT32_MAX / 2) return mr_fail_memory(error, SIZE_MAX);
        const int32_t capacity = s->capacity > 0 ? 2 * s->capacity : 256;
        mr_view_entry **entries = MR_ARENA_NEW(&view->arena, mr_view_entry *, (size_t)capacity);
        if (entries == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof(mr_view_entry *));
        if (s->capacity > 0) memcpy(entries, view->entries, (size_t)s->capacity * sizeof(mr_view_entry *));
        view->entries = entries;
        s->capacity = capacity;
    }
    mr_view_entry *made = mr_view_entry_new(view, name, node);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    *index = view->entry_count;
    view->entries[view->entry_count++] = made;
    return mr_name_table_set(&s->names, made->entry.name, *index, error);
}

/* The entry of a scope, which is added with those around it if it does not exist. */
static mr_status find_scope(scopes *s, char *name, mr_view_entry **scope, mr_error *error)
{
    mr_view_entry *above = s->view->root;
    for (char *slash = name; *slash != '\0'; slash++) {
        if (*slash != '/') continue;
        *slash = '\0';
        int32_t index = mr_name_table_get(&s->names, name, -1);
        mr_status status = MR_OK;
        if (index < 0) {
            status = add_entry(s, name, nullptr, &index, error);
            if (status == MR_OK) s->view->entries[index]->parent = above;
        }
        *slash = '/';
        MR_TRY(status);
        above = s->view->entries[index];
    }
    *scope = above;
    return MR_OK;
}

static int by_name(const void *a, const void *b)
{
    const mr_view_entry *x = *(mr_view_entry *const *)a, *y = *(mr_view_entry *const *)b;
    return strcmp(x->entry.name, y->entry.name);
}

static mr_status add_scopes(scopes *s, const mr_profile *profile, mr_error *error)
{
    const mr_profile_node **nodes = mr_view_sorted_nodes(s->view, profile);
    if (nodes == nullptr) return mr_fail_memory(error, (size_t)profile->node_count * sizeof(mr_profile_node *));
    /* A scope that is a node comes before the nodes in it. */
    for (int32_t i = 0; i < profile->node_count; i++) {
        mr_view_entry *scope;
        int32_t index;
        char *name = mr_arena_strdup(&s->view->arena, nodes[i]->name);
        if (name == nullptr) return mr_fail_memory(error, strlen(nodes[i]->name) + 1);
        MR_TRY(find_scope(s, name, &scope, error));
        MR_TRY(add_entry(s, name, nodes[i], &index, error));
        s->view->entries[index]->parent = scope;
    }
    if (s->view->entry_count > 0)
        qsort(s->view->entries, (size_t)s->view->entry_count, sizeof(mr_view_entry *), by_name);
    return MR_OK;
}

mr_status mr_view_add_scopes(mr_profile_view *view, const mr_profile *profile, mr_error *error)
{
    scopes s = {.view = view};
    const mr_status status = add_scopes(&s, profile, error);
    mr_name_table_deinit(&s.names);
    return status;
}

/* ---- Inputs ---- */

typedef struct frame {
    mr_view_entry *entry;
    int32_t next_input;
} frame;

typedef struct search {
    mr_profile_view *view;
    const mr_profile *profile;
    bool *is_visited; /* by index of the node */
    frame *frames;
    int32_t depth;
} search;

/* Appends the node's entry, whose inputs are searched next. */
static mr_status enter(search *s, const mr_profile_node *node, int32_t index, mr_view_entry *parent, mr_error *error)
{
    mr_view_entry *made = mr_view_entry_new(s->view, node->name, node);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    assert(!s->is_visited[index] && s->depth < s->profile->node_count);
    made->parent = parent;
    s->is_visited[index] = true;
    s->view->entries[s->view->entry_count++] = made;
    s->frames[s->depth++] = (frame){made, 0};
    return MR_OK;
}

static mr_status search_inputs(search *s, mr_error *error)
{
    while (s->depth > 0) {
        frame *top = &s->frames[s->depth - 1];
        if (top->next_input == top->entry->node->input_count) {
            s->depth--;
            continue;
        }
        const int32_t input = top->entry->node->inputs[top->next_input++].node;
        if (!s->is_visited[input]) MR_TRY(enter(s, s->profile->nodes[input], input, top->entry, error));
    }
    return MR_OK;
}

mr_status mr_view_add_inputs(mr_profile_view *view, const mr_profile *profile, mr_error *error)
{
    const size_t count = (size_t)profile->node_count;
    search s = {.view = view, .profile = profile};
    bool *is_read = MR_ARENA_NEW(&view->arena, bool, count + 1);
    const mr_profile_node **nodes = mr_view_sorted_nodes(view, profile);
    s.is_visited = MR_ARENA_NEW(&view->arena, bool, count + 1);
    s.frames = MR_ARENA_NEW(&view->arena, frame, count + 1);
    view->entries = MR_ARENA_NEW(&view->arena, mr_view_entry *, count + 1);
    if (!is_read || !nodes || !s.is_visited || !s.frames || !view->entries)
        return mr_fail_memory(error, count * sizeof(frame));
    for (size_t i = 0; i < count; i++)
        for (int32_t j = 0; j < profile->nodes[i]->input_count; j++) is_read[profile->nodes[i]->inputs[j].node] = true;
    for (size_t i = 0; i < count; i++) {
        const int32_t index = mr_name_table_get(&profile->names, nodes[i]->name, -1);
        assert(index >= 0 && profile->nodes[index] == nodes[i]);
        if (is_read[index]) continue;
        MR_TRY(enter(&s, nodes[i], index, view->root, error));
        MR_TRY(search_inputs(&s, error));
    }
    return MR_OK;
}
