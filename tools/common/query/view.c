/* Selection and checks of a record's features. */
#include "common/query/view.h"

#include "common/query/patterns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* With fewer features, names are compared pairwise. */
static constexpr size_t FEW = 16;
/* Limits the cost of names crafted to collide in the table; beyond it, duplicates are both shown. */
static constexpr size_t PROBES_MAX = 1'000;

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

static mr_status read_features(view *view, const char *features, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK) {
        if (!patterns_select(features, feature.name)) continue;
        entry entry = {.feature = feature, .name = feature.name};
        entry.is_damaged = mr_feature_count(&feature, &entry.count, nullptr) != MR_OK;
        MR_TRY(add(view, &entry, error));
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_status read_lists(view *view, const char *features, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    mr_status status;
    while ((status = mr_sequence_next_list(&walk, &list, nullptr)) == MR_OK) {
        if (!patterns_select(features, list.name)) continue;
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

mr_status view_read(view *view, const char *features, bool is_raw, mr_string record, mr_error *error)
{
    view->count = 0;
    view->is_damaged = false;
    view->form = MR_EXAMPLE_NONE;
    if (is_raw) return MR_OK;
    mr_status status = read_features(view, features, record, error);
    if (status == MR_RESOURCE_EXHAUSTED) return status;
    if (status == MR_OK) view->form = form_of(record, view->count > 0);
    if (view->form == MR_EXAMPLE_NONE) {
        view->count = 0;
        view->is_damaged = false;
        return MR_OK;
    }
    if (view->form == MR_EXAMPLE_SEQUENCE) MR_TRY(read_lists(view, features, record, error));
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
