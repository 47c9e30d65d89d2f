/* A record as the commands show it: the features that --features selects, in file order, each checked for damage.
 *
 * ```c
 * view view = {};
 * if (view_read(&view, options, record, &error) == MR_OK)
 *     for (size_t i = 0; i < view.count; i++) … view.entries[i] …
 * view_deinit(&view);
 * ``` */
#ifndef MR_TOOLS_TFRECORD_CAT_VIEW_H
#define MR_TOOLS_TFRECORD_CAT_VIEW_H

#include "tfrecord-cat/cat.h"

/* A record with more features is refused, which limits memory. */
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

/* Views into record, valid until the next read. */
mr_status view_read(view *view, const options *options, mr_string record, mr_error *error);
void view_deinit(view *view);

/* Whether --features selects a name. */
bool view_selects(const options *options, mr_string name);
/* Reads the next pattern of "a,b*,c\,d" from *text on, including its backslashes; false at the end. */
bool view_next_pattern(const char **text, mr_string *pattern);
/* Whether a pattern excludes what it matches: it begins with "!". */
bool view_is_drop(mr_string pattern);
/* Whether a pattern, without its "!", matches a name. */
bool view_pattern_matches(mr_string pattern, mr_string name);
/* Whether a pattern contains * or ?; if not, the name it stands for, written to a buffer of the pattern's size. */
bool view_is_glob(mr_string pattern);
size_t view_pattern_name(mr_string pattern, char *name);

#endif
