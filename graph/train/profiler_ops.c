/* The operator view: one entry for each operator, in a list whose totals comprise what follows. */
#include "base/status.h"
#include "graph/train/profiler_view.h"

#include <stdlib.h>
#include <string.h>

static int by_op(const void *a, const void *b)
{
    const mr_profile_node *const *x = a, *const *y = b;
    const int order = strcmp((*x)->op, (*y)->op);
    return order != 0 ? order : strcmp((*x)->name, (*y)->name);
}

mr_status mr_view_add_nodes(mr_profile_view *view, mr_view_entry *entry, const mr_profile_node *const *nodes,
                            int32_t count, mr_error *error)
{
    mr_view_entry *e = entry;
    const mr_profile_entry **items = MR_ARENA_NEW(&view->arena, const mr_profile_entry *, (size_t)count);
    if (items == nullptr) return mr_fail_memory(error, (size_t)count * sizeof(mr_profile_entry *));
    for (int32_t i = 0; i < count; i++) {
        bool counts;
        MR_TRY(mr_view_counts(view, nodes[i], &counts, error));
        if (!counts) continue;
        mr_view_entry *node = mr_view_entry_new(view, nodes[i]->name, nodes[i]);
        if (node == nullptr) return mr_fail_memory(error, sizeof *node);
        node->entry.own = node->entry.total = mr_profile_node_figures(nodes[i], view->options.step);
        node->entry.is_accounted = true;
        mr_profile_figures_add(&e->entry.own, &node->entry.own);
        if (e->entry.node_count == 0)
            e->entry.device = node->entry.device;
        else if (strcmp(e->entry.device, node->entry.device) != 0)
            e->entry.device = "";
        items[e->entry.node_count++] = &node->entry;
    }
    e->entry.nodes = items;
    e->entry.total = e->entry.own;
    e->entry.is_accounted = e->entry.node_count > 0;
    return MR_OK;
}

static mr_status add_entries(mr_profile_view *view, const mr_profile *profile, mr_view_list *list, mr_error *error)
{
    const mr_profile_node **nodes = mr_view_sorted_nodes(view, profile);
    if (nodes == nullptr) return mr_fail_memory(error, (size_t)profile->node_count * sizeof(mr_profile_node *));
    if (profile->node_count > 0) qsort(nodes, (size_t)profile->node_count, sizeof(mr_profile_node *), by_op);
    for (int32_t begin = 0, end; begin < profile->node_count; begin = end) {
        for (end = begin + 1; end < profile->node_count && strcmp(nodes[end]->op, nodes[begin]->op) == 0; end++) {}
        mr_view_entry *e = mr_view_entry_new(view, nodes[begin]->op, nullptr);
        if (e == nullptr) return mr_fail_memory(error, sizeof *e);
        e->entry.op = e->entry.name;
        MR_TRY(mr_view_add_nodes(view, e, nodes + begin, end - begin, error));
        if (!e->entry.is_accounted) continue;
        if (list->first == nullptr)
            list->first = e;
        else
            list->last->next = e;
        list->last = e;
    }
    return MR_OK;
}

/* The totals of entries and of the root, from the last entry on. */
static void add_totals(mr_profile_view *view)
{
    const mr_profile_entry *root = &view->root->entry;
    mr_profile_figures total = {0};
    for (int32_t i = root->child_count - 1; i >= 0; i--) {
        mr_view_entry *e = (mr_view_entry *)root->children[i];
        mr_profile_figures_add(&total, &e->entry.own);
        e->entry.total = total;
    }
    view->root->entry.total = total;
}

/* The entries from the first start on that are shown. */
static mr_status choose(mr_profile_view *view, mr_view_list *shown, mr_error *error)
{
    bool is_started = false, is_trimmed = false;
    int32_t depth = 0;
    for (mr_view_entry *e = view->root->below.first, *next; e != nullptr; e = next) {
        next = e->next;
        e->next = nullptr;
        if (!is_started) MR_TRY(mr_view_match(&view->starts, e->entry.name, &is_started, error));
        if (!is_started || is_trimmed || depth > view->options.max_depth) continue;
        MR_TRY(mr_view_match(&view->trims, e->entry.name, &is_trimmed, error));
        if (is_trimmed) continue;
        MR_TRY(mr_view_shows(view, e, depth++, &e->is_shown, error));
        if (!e->is_shown) continue;
        if (shown->first == nullptr)
            shown->first = e;
        else
            shown->last->next = e;
        shown->last = e;
    }
    return MR_OK;
}

/* Entries are ordered by their own figures, and keep this order. */
mr_status mr_view_make_ops(mr_profile_view *view, const mr_profile *profile, mr_error *error)
{
    mr_view_list list = {0}, shown = {0};
    MR_TRY(add_entries(view, profile, &list, error));
    MR_TRY(mr_view_set_children(view, view->root, list, true, error));
    add_totals(view);
    MR_TRY(choose(view, &shown, error));
    MR_TRY(mr_view_set_children(view, view->root, shown, false, error));
    if (view->options.account_displayed_op_only) add_totals(view);
    return MR_OK;
}
