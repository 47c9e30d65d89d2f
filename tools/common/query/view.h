/* The selected features of a record, in file order, each checked for damage.
 *
 * ```c
 * view view = {};
 * if (view_read(&view, "label,image*", false, record, &error) == MR_OK)
 *     for (size_t i = 0; i < view.count; i++) … view.entries[i] …
 * view_deinit(&view);
 * ``` */
#ifndef MR_TOOLS_COMMON_VIEW_H
#define MR_TOOLS_COMMON_VIEW_H

#include <millrace/example.h>

/* A record with more features is an error, which limits memory. */
#define VIEW_ENTRIES_MAX 1'000'000

typedef struct entry {
    mr_feature_view feature;   /* of an Example or a context */
    mr_feature_list_view list; /* of a feature list */
    mr_string name;
    size_t count;    /* number of values; of a feature list: steps */
    bool is_list;    /* a feature list */
    bool is_damaged; /* its values cannot be read */
    bool is_hidden;  /* superseded by another of the same name: the last that has a kind, else the last */
} entry;

typedef struct view {
    mr_example_form form; /* MR_EXAMPLE_NONE: bytes, no entries */
    entry *entries;       /* the context's first, then feature lists */
    size_t count, capacity;
    bool is_damaged; /* an entry is damaged */
    uint32_t *table; /* hash table of the last record with many features: entry index + 1 */
    size_t table_capacity;
} view;

/* Reads a record; the views point into it and are valid until the next read.
 * features  patterns (patterns.h), null: all
 * is_raw    the record is not parsed: no entries
 * errors    MR_RESOURCE_EXHAUSTED: no memory or too many features; no other errors */
mr_status view_read(view *view, const char *features, bool is_raw, mr_string record, mr_error *error);
void view_deinit(view *view);

#endif
