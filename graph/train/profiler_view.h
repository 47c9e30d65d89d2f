/* A view while it is made. Its entries are in one array, in which an entry comes after the one that it is below; so a
 * pass from the start goes from the top down and one from the end from the bottom up, without recursion: the graph view
 * of a long chain is as deep as the chain. */
#ifndef MR_GRAPH_TRAIN_PROFILER_VIEW_H
#define MR_GRAPH_TRAIN_PROFILER_VIEW_H

#include "graph/train/profiler_node.h"
#include "kernels/regex.h"

constexpr size_t MR_PROFILE_VIEW_BYTES_MAX = (size_t)1 << 30;
constexpr size_t MR_PROFILE_TEXT_BYTES_MAX = (size_t)256 << 20;
constexpr int32_t MR_PROFILE_DEPTH_MAX = 10000;

typedef struct mr_view_entry mr_view_entry;

/* Entries with the same parent, linked by `next`. */
typedef struct mr_view_list {
    mr_view_entry *first, *last;
} mr_view_list;

/* A node that a call of the code view created. */
typedef struct mr_view_node {
    const mr_profile_node *node;
    struct mr_view_node *next;
} mr_view_node;

struct mr_view_entry {
    mr_profile_entry entry;      /* what the program sees */
    const mr_profile_node *node; /* null: a scope, an operator or the root */
    mr_view_entry *parent;       /* null: the root */
    mr_view_entry *next;
    mr_view_list below; /* of which entries are collected */
    int32_t depth;      /* 0: the view does not get there */
    bool is_kept;       /* it counts, or it is a scope above one that counts */
    bool is_started;    /* it is one of start_name_regexes, or below one */
    bool is_shown, is_trimmed;
    int64_t sort_key;                     /* by which its list is ordered, descending */
    int32_t position;                     /* among entries with the same key */
    int32_t number;                       /* in the order of lines; the root's is 0 */
    mr_view_node *first_node, *last_node; /* code view: all nodes, of which entry.nodes are those that count */
    int32_t created_count;
};

/* Compiled regular expressions of one option. */
typedef struct mr_view_patterns {
    mr_regex *items;
    int32_t count;
    bool matches_all; /* ".*": any text, also one that is not UTF-8 */
} mr_view_patterns;

struct mr_profile_view {
    mr_arena arena;
    mr_profile_kind kind;
    mr_profile_options options; /* with the defaults; lists and step are null after mr_profile_view_new */
    mr_view_patterns types, starts, trims, shows, hides;
    mr_view_entry *root;
    mr_view_entry **entries; /* all but the root */
    int32_t entry_count;
    char *text; /* owned: free() */
    size_t text_size_bytes;
};

/* Whether one of the patterns matches the complete text.
 * errors  MR_RESOURCE_EXHAUSTED: matching takes too long */
mr_status mr_view_match(const mr_view_patterns *patterns, const char *text, bool *matches, mr_error *error);
/* Whether the node has a type that counts: its operator, its device, or one that was added to it. */
mr_status mr_view_counts(const mr_profile_view *view, const mr_profile_node *node, bool *counts, mr_error *error);
/* Whether an entry is at least as large as the minimums, not too deep, and has a name that is not hidden. */
mr_status mr_view_shows(const mr_profile_view *view, const mr_view_entry *entry, int32_t depth, bool *shows,
                        mr_error *error);
/* Makes a list the children of an entry.
 * is_ordered  by the column of the options; false: in the order of the list */
mr_status mr_view_set_children(mr_profile_view *view, mr_view_entry *parent, mr_view_list list, bool is_ordered,
                               mr_error *error);
/* Joins the lists. `before` is then part of `list`. */
void mr_view_prepend(mr_view_list *list, mr_view_list before);
/* A new entry. Null: no memory. */
mr_view_entry *mr_view_entry_new(mr_profile_view *view, const char *name, const mr_profile_node *node);
/* The entry after e in the order of lines, in which those below an entry follow it; keeps the depth. Null: the end. */
const mr_view_entry *mr_view_next(const mr_view_entry *e, int32_t *depth);
/* The figure by which a column orders. */
int64_t mr_view_column(mr_profile_column column, const mr_profile_figures *figures);
/* The nodes of the profile by name. Null: no memory. */
const mr_profile_node **mr_view_sorted_nodes(mr_profile_view *view, const mr_profile *profile);

/* The array of entries, with their parents (profiler_tree.c). */
mr_status mr_view_add_scopes(mr_profile_view *view, const mr_profile *profile, mr_error *error);
mr_status mr_view_add_inputs(mr_profile_view *view, const mr_profile *profile, mr_error *error);
mr_status mr_view_add_calls(mr_profile_view *view, const mr_profile *profile, mr_error *error); /* profiler_code.c */
/* The entry's nodes and figures: of these nodes, those that count (profiler_ops.c). */
mr_status mr_view_add_nodes(mr_profile_view *view, mr_view_entry *entry, const mr_profile_node *const *nodes,
                            int32_t count, mr_error *error);
/* The complete operator view (profiler_ops.c). */
mr_status mr_view_make_ops(mr_profile_view *view, const mr_profile *profile, mr_error *error);
/* Writes view->text (profiler_text.c). */
mr_status mr_view_print(mr_profile_view *view, mr_error *error);

#endif
