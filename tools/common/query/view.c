/* Selection and checks of a record's features. */
#include "tfrecord-cat/view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* With fewer features, names are compared pairwise. */
static constexpr size_t FEW = 16;
/* Limits the cost of names crafted to collide in the table; beyond it, duplicates are both shown. */
static constexpr size_t PROBES_MAX = 1'000;

/* ---- --features ---- */

bool view_next_pattern(const char **text, mr_string *pattern)
{
    const char *begin = *text, *end = begin;
    if (!begin) return false;
    while (*end && *end != ',') end += *end == '\\' && end[1] ? 2 : 1;
    *pattern = (mr_string){begin, (size_t)(end - begin)};
    *text = *end ? end + 1 : nullptr;
    return true;
}

bool view_is_drop(mr_string pattern)
{
    return pattern.size_bytes > 0 && pattern.data[0] == '!';
}

bool view_is_glob(mr_string pattern)
{
    for (size_t i = 0; i < pattern.size_bytes; i++) {
        if (pattern.data[i] == '\\')
            i++;
        else if (pattern.data[i] == '*' || pattern.data[i] == '?')
            return true;
    }
    return false;
}

size_t view_pattern_name(mr_string pattern, char *name)
{
    size_t size = 0;
    for (size_t i = 0; i < pattern.size_bytes; i++) {
        if (pattern.data[i] == '\\' && i + 1 < pattern.size_bytes) i++;
        name[size++] = pattern.data[i];
    }
    return size;
}

/* "*" matches any bytes, "?" one byte, a backslash makes the next byte literal. Only the last star is retried, so the
 * time is at most the product of both lengths. */
static bool glob_matches(mr_string pattern, mr_string name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;
    while (n < name.size_bytes) {
        bool is_escape = p + 1 < pattern.size_bytes && pattern.data[p] == '\\';
        if (p < pattern.size_bytes && pattern.data[p] == '*') {
            star = ++p;
            from = n;
        } else if (p < pattern.size_bytes &&
                   ((pattern.data[p] == '?' && !is_escape) || pattern.data[p + is_escape] == name.data[n])) {
            p += 1u + is_escape;
            n++;
        } else if (star != SIZE_MAX) {
            p = star;
            n = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size_bytes && pattern.data[p] == '*') p++;
    return p == pattern.size_bytes;
}

bool view_pattern_matches(mr_string pattern, mr_string name)
{
    if (view_is_drop(pattern)) pattern = (mr_string){pattern.data + 1, pattern.size_bytes - 1};
    return glob_matches(pattern, name);
}

bool view_selects(const options *options, mr_string name)
{
    const char *text = options->features;
    bool has_keep = false, is_kept = false;
    mr_string pattern;
    while (view_next_pattern(&text, &pattern)) {
        bool matches = view_pattern_matches(pattern, name);
        if (matches && view_is_drop(pattern)) return false;
        has_keep |= !view_is_drop(pattern);
        is_kept |= matches;
    }
    return is_kept || !has_keep;
}

/* ---- Entries ---- */

static mr_status add(view *view, const entry *entry, mr_error *error)
{
    if (view->count == VIEW_ENTRIES_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the record has more than %d features", VIEW_ENTRIES_MAX);
    if (view->count == view->capacity) {
        size_t capacity = view->capacity ? 2 * view->capacity : 64;
        struct entry *grown = reallocarray(view->entries, capacity, sizeof(struct entry));
        if (!grown) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for the record's features");
        view->entries = grown;
        view->capacity = capacity;
    }
    assert(view->count < view->capacity);
    view->entries[view->count++] = *entry;
    view->is_damaged |= entry->is_damaged;
    return MR_OK;
}

static mr_status read_features(view *view, const options *options, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK) {
        if (!view_selects(options, feature.name)) continue;
        entry entry = {.feature = feature, .name = feature.name};
        entry.is_damaged = mr_feature_count(&feature, &entry.count, nullptr) != MR_OK;
        MR_TRY(add(view, &entry, error));
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_status read_lists(view *view, const options *options, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    mr_status status;
    while ((status = mr_sequence_next_list(&walk, &list, nullptr)) == MR_OK) {
        if (!view_selects(options, list.name)) continue;
        entry entry = {.list = list, .name = list.name, .is_list = true};
        mr_feature_list_view steps = list;
        mr_feature_view step;
        size_t values;
        mr_status end;
        while ((end = mr_feature_list_next(&steps, &step, nullptr)) == MR_OK) {
            entry.count++;
            entry.is_damaged |= mr_feature_count(&step, &values, nullptr) != MR_OK;
        }
        entry.is_damaged |= end != MR_OUT_OF_RANGE;
        MR_TRY(add(view, &entry, error));
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* ---- Duplicate names ---- */

static uint64_t hash(mr_string name, bool is_list)
{
    uint64_t value = 0xcbf29ce484222325 + is_list;
    for (size_t i = 0; i < name.size_bytes; i++) value = (value ^ (unsigned char)name.data[i]) * 0x100000001b3;
    return value ^ value >> 29;
}

/* Of two entries with one name, the one that is superseded. Lists have no kind: the later one wins. */
static entry *hidden_of(entry *earlier, entry *later)
{
    bool falls_back = !later->is_list && later->feature.kind == MR_FEATURE_NONE;
    return falls_back && earlier->feature.kind != MR_FEATURE_NONE ? later : earlier;
}

static bool is_same(const entry *a, const entry *b)
{
    return a->is_list == b->is_list && mr_string_equal(a->name, b->name);
}

static void hide_few(view *view)
{
    for (size_t i = 1; i < view->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!view->entries[j].is_hidden && is_same(&view->entries[i], &view->entries[j]))
                hidden_of(&view->entries[j], &view->entries[i])->is_hidden = true;
}

static mr_status hide_many(view *view, mr_error *error)
{
    size_t capacity = 64;
    while (capacity < 2 * view->count) capacity *= 2;
    if (capacity > view->table_capacity) {
        uint32_t *grown = reallocarray(view->table, capacity, sizeof(uint32_t));
        if (!grown) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for the record's features");
        view->table = grown;
        view->table_capacity = capacity;
    }
    assert(2 * view->count <= capacity && (capacity & (capacity - 1)) == 0);
    memset(view->table, 0, capacity * sizeof(uint32_t));
    for (size_t i = 0; i < view->count; i++) {
        entry *entry = &view->entries[i];
        size_t at = hash(entry->name, entry->is_list);
        for (size_t end = at + PROBES_MAX; at < end; at++) {
            uint32_t *slot = &view->table[at & (capacity - 1)];
            struct entry *other = *slot ? &view->entries[*slot - 1] : nullptr;
            if (other && !is_same(entry, other)) continue;
            struct entry *hidden = other ? hidden_of(other, entry) : nullptr;
            if (hidden) hidden->is_hidden = true;
            if (hidden != entry) *slot = (uint32_t)i + 1;
            break;
        }
    }
    return MR_OK;
}

/* As mr_example_form_of, without iterating over features that were already read. */
static mr_example_form form_of(mr_string record, bool has_features)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    if (!has_features) return mr_example_form_of(record);
    if (mr_sequence_next_list(&walk, &list, nullptr) == MR_OUT_OF_RANGE) return MR_EXAMPLE_PLAIN;
    return mr_example_form_of(record);
}

mr_status view_read(view *view, const options *options, mr_string record, mr_error *error)
{
    view->count = 0;
    view->is_damaged = false;
    view->form = MR_EXAMPLE_NONE;
    if (options->is_raw) return MR_OK;
    mr_status status = read_features(view, options, record, error);
    if (status == MR_RESOURCE_EXHAUSTED) return status;
    if (status == MR_OK) view->form = form_of(record, view->count > 0);
    if (view->form == MR_EXAMPLE_NONE) {
        view->count = 0;
        view->is_damaged = false;
        return MR_OK;
    }
    if (view->form == MR_EXAMPLE_SEQUENCE) MR_TRY(read_lists(view, options, record, error));
    if (view->count > FEW) return hide_many(view, error);
    hide_few(view);
    return MR_OK;
}

void view_deinit(view *view)
{
    free(view->entries);
    free(view->table);
    *view = (struct view){};
}
