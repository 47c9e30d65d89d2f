/* Iterates over the features of one Example, in file order, as views into the record. */
#include "base/arguments.h"
#include "records/example/example_wire.h"

#include <assert.h>
#include <inttypes.h>

/* Maximum number of bytes of a name in messages. */
static constexpr int NAME_BYTES_SHOWN = 100;

static mr_status damaged(mr_error *error, const mr_wire *at, const mr_example_cursor *walk)
{
    return mr_fail(error, MR_DATA_LOSS, "the Example is damaged at byte %zu of %zu",
                   (size_t)(at->next - (const unsigned char *)walk->record.data), walk->record.size_bytes);
}

mr_status mr_example_next_feature(mr_example_cursor *walk, mr_feature_view *feature, mr_error *error)
{
    MR_REFUSE_NULL(walk, error);
    MR_REFUSE_NULL(feature, error);
    mr_wire record = mr_wire_of(walk->record);
    const unsigned char *begin = record.next;
    while (walk->inner_offset == walk->inner_end) {
        /* Between Features messages. Other fields of the Example are skipped. */
        if (walk->offset == walk->record.size_bytes)
            return mr_fail(error, MR_OUT_OF_RANGE, "the Example has no more features");
        record.next = begin + walk->offset;
        mr_wire features;
        if (*record.next != MR_TAG_BYTES(1)) {
            if (!mr_wire_skip(&record)) return damaged(error, &record, walk);
        } else {
            record.next++;
            if (!mr_wire_bytes(&record, &features)) return damaged(error, &record, walk);
            walk->inner_offset = (size_t)(features.next - begin);
            walk->inner_end = (size_t)(features.end - begin);
        }
        walk->offset = (size_t)(record.next - begin);
    }
    assert(walk->inner_offset < walk->inner_end && walk->inner_end <= walk->offset);
    mr_wire features = {begin + walk->inner_offset, begin + walk->inner_end};
    mr_wire_entry entry;
    if (!mr_wire_entry_read(&features, &entry)) return damaged(error, &features, walk);
    mr_wire list = entry.feature;
    mr_feature_kind kind;
    if (!mr_wire_kind(&list, &kind)) return damaged(error, &list, walk);
    if (kind != MR_FEATURE_NONE && !mr_wire_bytes(&list, &list)) return damaged(error, &list, walk);
    walk->inner_offset = (size_t)(features.next - begin);
    *feature = (mr_feature_view){.name = {(const char *)entry.name.next, mr_wire_left(&entry.name)},
                                 .kind = kind,
                                 .list = {(const char *)list.next, mr_wire_left(&list)}};
    return MR_OK;
}

/* Counts the values of a view and checks their kind and the capacity. */
static mr_status counted(const mr_feature_view *feature, mr_feature_kind kind, size_t capacity, size_t *count,
                         mr_error *error)
{
    int shown = feature->name.size_bytes < NAME_BYTES_SHOWN ? (int)feature->name.size_bytes : NAME_BYTES_SHOWN;
    if (feature->kind != kind)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\" holds %s, not %s", shown, feature->name.data,
                       mr_feature_kind_name(feature->kind), mr_feature_kind_name(kind));
    MR_TRY(mr_feature_count(feature, count, error));
    if (*count > capacity)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%.*s\" has %zu values, more than the capacity of %zu",
                       shown, feature->name.data, *count, capacity);
    return MR_OK;
}

mr_status mr_feature_count(const mr_feature_view *feature, size_t *count, mr_error *error)
{
    MR_REFUSE_NULL(feature, error);
    MR_REFUSE_NULL(count, error);
    if (mr_wire_count(feature->kind, mr_wire_of(feature->list), count)) return MR_OK;
    int shown = feature->name.size_bytes < NAME_BYTES_SHOWN ? (int)feature->name.size_bytes : NAME_BYTES_SHOWN;
    return mr_fail(error, MR_DATA_LOSS, "the values of feature \"%.*s\" are damaged", shown, feature->name.data);
}

mr_status mr_feature_bytes(const mr_feature_view *feature, mr_string *values, size_t capacity, mr_error *error)
{
    MR_REFUSE_NULL(feature, error);
    size_t count;
    MR_TRY(counted(feature, MR_FEATURE_BYTES, capacity, &count, error));
    mr_wire_strings(mr_wire_of(feature->list), values);
    return MR_OK;
}

mr_status mr_feature_floats(const mr_feature_view *feature, float *values, size_t capacity, mr_error *error)
{
    MR_REFUSE_NULL(feature, error);
    size_t count;
    MR_TRY(counted(feature, MR_FEATURE_FLOAT, capacity, &count, error));
    mr_wire_floats(mr_wire_of(feature->list), count, values);
    return MR_OK;
}

mr_status mr_feature_int64s(const mr_feature_view *feature, int64_t *values, size_t capacity, mr_error *error)
{
    MR_REFUSE_NULL(feature, error);
    size_t count;
    MR_TRY(counted(feature, MR_FEATURE_INT64, capacity, &count, error));
    mr_wire_int64s(mr_wire_of(feature->list), count, values);
    return MR_OK;
}

/* Finds the last feature of a name that has a kind; it must have exactly one value of that kind. */
static mr_status find_one(mr_string record, const char *name, mr_feature_kind kind, mr_feature_view *found,
                          mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_string wanted = mr_string_from(name);
    mr_status status;
    if (record.data == nullptr && record.size_bytes > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the bytes of the Example are null, with a size of %zu",
                       record.size_bytes);
    found->kind = MR_FEATURE_NONE;
    mr_error end;
    while ((status = mr_example_next_feature(&walk, &feature, &end)) == MR_OK)
        if (feature.kind != MR_FEATURE_NONE && mr_string_equal(feature.name, wanted)) *found = feature;
    if (status != MR_OUT_OF_RANGE) return mr_fail(error, status, "%s", end.message);
    if (found->kind == MR_FEATURE_NONE) return mr_fail(error, MR_NOT_FOUND, "the Example has no feature \"%s\"", name);
    size_t count;
    MR_TRY(counted(found, kind, SIZE_MAX, &count, error));
    if (count == 1) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" has %zu values, not 1", name, count);
}

mr_status mr_example_get_int64(mr_string record, const char *name, int64_t *value, mr_error *error)
{
    mr_feature_view feature;
    MR_TRY(find_one(record, name, MR_FEATURE_INT64, &feature, error));
    return mr_feature_int64s(&feature, value, 1, error);
}

mr_status mr_example_get_bytes(mr_string record, const char *name, mr_string *value, mr_error *error)
{
    mr_feature_view feature;
    MR_TRY(find_one(record, name, MR_FEATURE_BYTES, &feature, error));
    return mr_feature_bytes(&feature, value, 1, error);
}

mr_status mr_example_get_float(mr_string record, const char *name, float *value, mr_error *error)
{
    mr_feature_view feature;
    MR_TRY(find_one(record, name, MR_FEATURE_FLOAT, &feature, error));
    return mr_feature_floats(&feature, value, 1, error);
}
