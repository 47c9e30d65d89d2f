/* Entries of views: what they are compared with, and how they are ordered. */
#include "graph/train/profiler_view.h"

#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Entries ---- */

mr_view_entry *mr_view_entry_new(mr_profile_view *view, const char *name, const mr_profile_node *node)
{
    mr_view_entry *made = MR_ARENA_NEW(&view->arena, mr_view_entry, 1);
    if (made == nullptr) return nullptr;
    made->node = node;
    made->entry = (mr_profile_entry){.size = sizeof made->entry, .name = mr_arena_strdup(&view->arena, name)};
    made->entry.op = node == nullptr ? "" : mr_arena_strdup(&view->arena, node->op);
    made->entry.device = "";
    if (node != nullptr && node->device != nullptr) made->entry.device = mr_arena_strdup(&view->arena, node->device);
    const bool is_complete = made->entry.name != nullptr && made->entry.op != nullptr && made->entry.device != nullptr;
    return is_complete ? made : nullptr;
}

static int by_name(const void *a, const void *b)
{
    const mr_profile_node *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

const mr_profile_node **mr_view_sorted_nodes(mr_profile_view *view, const mr_profile *profile)
{
    const size_t count = (size_t)profile->node_count;
    const mr_profile_node **nodes = MR_ARENA_NEW(&view->arena, const mr_profile_node *, count + 1);
    if (nodes == nullptr) return nullptr;
    for (size_t i = 0; i < count; i++) nodes[i] = profile->nodes[i];
    qsort(nodes, count, sizeof(mr_profile_node *), by_name);
    return nodes;
}

void mr_view_prepend(mr_view_list *list, mr_view_list before)
{
    if (before.first == nullptr) return;
    assert(before.last->next == nullptr);
    before.last->next = list->first;
    if (list->last == nullptr) list->last = before.last;
    list->first = before.first;
}

const mr_view_entry *mr_view_next(const mr_view_entry *e, int32_t *depth)
{
    if (e->below.first != nullptr) {
        ++*depth;
        return e->below.first;
    }
    while (e != nullptr && e->next == nullptr) {
        e = e->parent;
        --*depth;
    }
    return e != nullptr ? e->next : nullptr;
}

int64_t mr_view_column(mr_profile_column column, const mr_profile_figures *figures)
{
    switch (column) {
    case MR_PROFILE_BYTES:
        return figures->requested_bytes;
    case MR_PROFILE_PEAK_BYTES:
        return figures->peak_bytes;
    case MR_PROFILE_RESIDUAL_BYTES:
        return figures->residual_bytes;
    case MR_PROFILE_OUTPUT_BYTES:
        return figures->output_bytes;
    case MR_PROFILE_MICROS:
        return figures->micros;
    case MR_PROFILE_ACCELERATOR_MICROS:
        return figures->accelerator_micros;
    case MR_PROFILE_CPU_MICROS:
        return figures->cpu_micros;
    case MR_PROFILE_PARAMS:
        return figures->parameters;
    case MR_PROFILE_FLOAT_OPS:
        return figures->float_ops;
    case MR_PROFILE_OCCURRENCE:
        return figures->definition_count;
    default:
        return 0;
    }
}

static int by_key(const void *a, const void *b)
{
    const mr_view_entry *x = *(mr_view_entry *const *)a, *y = *(mr_view_entry *const *)b;
    if (x->sort_key != y->sort_key) return x->sort_key > y->sort_key ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static int by_entry_name(const void *a, const void *b)
{
    const mr_view_entry *x = *(mr_view_entry *const *)a, *y = *(mr_view_entry *const *)b;
    const int order = strcmp(x->entry.name, y->entry.name); /* calls may have the same name */
    return order != 0 ? order : x->position - y->position;
}

mr_status mr_view_set_children(mr_profile_view *view, mr_view_entry *parent, mr_view_list list, bool is_ordered,
                               mr_error *error)
{
    int32_t count = 0;
    for (mr_view_entry *each = list.first; each != nullptr; each = each->next) count++;
    parent->below = (mr_view_list){0};
    parent->entry.child_count = 0;
    if (count == 0) return MR_OK;
    mr_view_entry **items = MR_ARENA_NEW(&view->arena, mr_view_entry *, (size_t)count);
    if (items == nullptr) return mr_fail_memory(error, (size_t)count * sizeof(mr_view_entry *));
    int32_t i = 0;
    for (mr_view_entry *each = list.first; each != nullptr; each = each->next, i++) {
        items[i] = each;
        each->position = i;
        each->sort_key = mr_view_column(view->options.order_by, &each->entry.total);
    }
    const bool by_figure = view->options.order_by != MR_PROFILE_NAME;
    if (is_ordered) qsort(items, (size_t)count, sizeof(mr_view_entry *), by_figure ? by_key : by_entry_name);
    for (i = 0; i < count; i++) {
        items[i]->parent = parent;
        items[i]->next = i + 1 < count ? items[i + 1] : nullptr;
    }
    static_assert(offsetof(mr_view_entry, entry) == 0);
    parent->below = (mr_view_list){items[0], items[count - 1]};
    parent->entry.children = (const mr_profile_entry *const *)items;
    parent->entry.child_count = count;
    return MR_OK;
}

/* ---- What counts and what is shown ---- */

mr_status mr_view_match(const mr_view_patterns *patterns, const char *text, bool *matches, mr_error *error)
{
    *matches = patterns->matches_all;
    for (int32_t i = 0; i < patterns->count && !*matches; i++) {
        const mr_status status = mr_regex_matches_all(&patterns->items[i], mr_string_from(text), matches, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "profile: %.100s", text);
    }
    return MR_OK;
}

mr_status mr_view_counts(const mr_profile_view *view, const mr_profile_node *node, bool *counts, mr_error *error)
{
    *counts = view->types.matches_all;
    if (*counts) return MR_OK;
    MR_TRY(mr_view_match(&view->types, node->op, counts, error));
    if (!*counts && node->device != nullptr) MR_TRY(mr_view_match(&view->types, node->device, counts, error));
    for (const mr_profile_type *type = node->types; type != nullptr && !*counts; type = type->next)
        MR_TRY(mr_view_match(&view->types, type->name, counts, error));
    return MR_OK;
}

static bool is_large_enough(const mr_profile_view *view, const mr_profile_entry *entry)
{
    const mr_profile_options *o = &view->options;
    const mr_profile_figures *total = &entry->total, *own = &entry->own;
    if (view->kind == MR_PROFILE_OP || view->kind == MR_PROFILE_CODE) own = total;
    return total->requested_bytes >= o->min_bytes && total->peak_bytes >= o->min_peak_bytes &&
           total->residual_bytes >= o->min_residual_bytes && total->output_bytes >= o->min_output_bytes &&
           total->micros >= o->min_micros && total->accelerator_micros >= o->min_accelerator_micros &&
           total->cpu_micros >= o->min_cpu_micros && own->parameters >= o->min_params &&
           own->float_ops >= o->min_float_ops && own->run_count >= o->min_occurrence;
}

mr_status mr_view_shows(const mr_profile_view *view, const mr_view_entry *entry, int32_t depth, bool *shows,
                        mr_error *error)
{
    bool is_hidden = false;
    *shows = depth <= view->options.max_depth && is_large_enough(view, &entry->entry);
    if (*shows) MR_TRY(mr_view_match(&view->shows, entry->entry.name, shows, error));
    if (*shows) MR_TRY(mr_view_match(&view->hides, entry->entry.name, &is_hidden, error));
    *shows = *shows && !is_hidden;
    return MR_OK;
}
