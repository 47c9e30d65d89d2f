/* Iterates over the lists of one SequenceExample, and determines the type of a record.
 *
 *     SequenceExample { 1: Features  2: FeatureLists }     FeatureLists { 1: map entry, repeated }
 *     entry { 1: name  2: FeatureList }                    FeatureList  { 1: Feature, repeated } */
#include "base/arguments.h"
#include "records/example/example_wire.h"

#include <assert.h>

/* Maximum number of bytes of a name in messages. */
static constexpr int NAME_BYTES_SHOWN = 100;

static mr_status damaged(mr_error *error, const mr_wire *at, mr_string record)
{
    return mr_fail(error, MR_DATA_LOSS, "the SequenceExample is damaged at byte %zu of %zu",
                   (size_t)(at->next - (const unsigned char *)record.data), record.size_bytes);
}

mr_status mr_sequence_next_list(mr_example_cursor *walk, mr_feature_list_view *list, mr_error *error)
{
    MR_REFUSE_NULL(walk, error);
    MR_REFUSE_NULL(list, error);
    mr_wire record = mr_wire_of(walk->record);
    const unsigned char *begin = record.next;
    while (walk->inner_offset == walk->inner_end) {
        if (walk->offset == walk->record.size_bytes)
            return mr_fail(error, MR_OUT_OF_RANGE, "the SequenceExample has no more feature lists");
        record.next = begin + walk->offset;
        mr_wire lists;
        if (*record.next != MR_TAG_BYTES(2)) {
            if (!mr_wire_skip(&record)) return damaged(error, &record, walk->record);
        } else {
            record.next++;
            if (!mr_wire_bytes(&record, &lists)) return damaged(error, &record, walk->record);
            walk->inner_offset = (size_t)(lists.next - begin);
            walk->inner_end = (size_t)(lists.end - begin);
        }
        walk->offset = (size_t)(record.next - begin);
    }
    assert(walk->inner_offset < walk->inner_end && walk->inner_end <= walk->offset);
    mr_wire lists = {begin + walk->inner_offset, begin + walk->inner_end};
    mr_wire_entry entry;
    if (!mr_wire_entry_read(&lists, &entry)) return damaged(error, &lists, walk->record);
    walk->inner_offset = (size_t)(lists.next - begin);
    *list = (mr_feature_list_view){.name = {(const char *)entry.name.next, mr_wire_left(&entry.name)},
                                   .steps = {(const char *)entry.feature.next, mr_wire_left(&entry.feature)}};
    return MR_OK;
}

static mr_status damaged_list(mr_error *error, const mr_feature_list_view *list)
{
    int shown = list->name.size_bytes < (size_t)NAME_BYTES_SHOWN ? (int)list->name.size_bytes : NAME_BYTES_SHOWN;
    return mr_fail(error, MR_DATA_LOSS, "the steps of feature list \"%.*s\" are damaged", shown, list->name.data);
}

mr_status mr_feature_list_count(const mr_feature_list_view *list, size_t *count, mr_error *error)
{
    MR_REFUSE_NULL(list, error);
    MR_REFUSE_NULL(count, error);
    mr_wire steps = mr_wire_of(list->steps), step;
    for (*count = 0; steps.next < steps.end; ++*count)
        if (!mr_wire_tag(&steps, MR_TAG_BYTES(1)) || !mr_wire_bytes(&steps, &step)) return damaged_list(error, list);
    return MR_OK;
}

mr_status mr_feature_list_next(mr_feature_list_view *list, mr_feature_view *step, mr_error *error)
{
    MR_REFUSE_NULL(list, error);
    MR_REFUSE_NULL(step, error);
    mr_wire steps = mr_wire_of(list->steps), feature;
    mr_feature_kind kind;
    if (steps.next == steps.end) return mr_fail(error, MR_OUT_OF_RANGE, "the feature list has no more steps");
    if (!mr_wire_tag(&steps, MR_TAG_BYTES(1)) || !mr_wire_bytes(&steps, &feature) || !mr_wire_kind(&feature, &kind) ||
        (kind != MR_FEATURE_NONE && !mr_wire_bytes(&feature, &feature)))
        return damaged_list(error, list);
    list->steps = (mr_string){(const char *)steps.next, mr_wire_left(&steps)};
    *step = (mr_feature_view){
        .name = list->name, .kind = kind, .list = {(const char *)feature.next, mr_wire_left(&feature)}};
    return MR_OK;
}

/* ---- Record types ---- */

static bool is_features(mr_wire features)
{
    while (features.next < features.end) {
        mr_wire_entry entry;
        mr_feature_kind kind;
        if (!mr_wire_entry_read(&features, &entry) || !mr_wire_kind(&entry.feature, &kind)) return false;
        if (kind != MR_FEATURE_NONE && !mr_wire_bytes(&entry.feature, &entry.feature)) return false;
    }
    return true;
}

static bool is_feature_lists(mr_wire lists)
{
    while (lists.next < lists.end) {
        mr_wire_entry entry;
        if (!mr_wire_entry_read(&lists, &entry)) return false;
        mr_feature_list_view list = {.steps = {(const char *)entry.feature.next, mr_wire_left(&entry.feature)}};
        mr_feature_view step;
        mr_status status;
        while ((status = mr_feature_list_next(&list, &step, nullptr)) == MR_OK) continue;
        if (status != MR_OUT_OF_RANGE) return false;
    }
    return true;
}

mr_example_form mr_example_form_of(mr_string record)
{
    mr_wire wire = mr_wire_of(record), inner;
    bool has_features = false, has_lists = false, is_sequence = true;
    if (record.size_bytes == 0) return MR_EXAMPLE_PLAIN;
    while (wire.next < wire.end) {
        unsigned char tag = *wire.next;
        if (tag != MR_TAG_BYTES(1) && tag != MR_TAG_BYTES(2)) {
            if (!mr_wire_skip(&wire)) return MR_EXAMPLE_NONE;
            continue;
        }
        wire.next++;
        if (!mr_wire_bytes(&wire, &inner)) return MR_EXAMPLE_NONE;
        if (tag == MR_TAG_BYTES(2)) {
            has_lists = true;
            is_sequence = is_sequence && is_feature_lists(inner);
        } else {
            has_features = true;
            if (!is_features(inner)) return MR_EXAMPLE_NONE;
        }
    }
    if (has_lists && is_sequence) return MR_EXAMPLE_SEQUENCE;
    return has_features ? MR_EXAMPLE_PLAIN : MR_EXAMPLE_NONE;
}
