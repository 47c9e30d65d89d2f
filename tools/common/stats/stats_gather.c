/* See stats.h. A record is processed in two passes: the first reads all of it, so that a damaged record counts for
 * nothing and the last of duplicate names is known; the second adds it to the columns, feature by feature. */
#include "common/query/patterns.h"
#include "common/stats/stats.h"
#include "common/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A feature of the current record. */
typedef struct item {
    column *column;            /* null if it was dropped */
    mr_feature_view view;      /* for a feature */
    mr_feature_list_view list; /* for a list */
    size_t count;
} item;

/* Memory reused from record to record. */
typedef struct stats_scratch {
    item *items;
    size_t count, capacity;
    void *values; /* of one feature */
    size_t values_capacity;
} stats_scratch;

stats *stats_new(void)
{
    stats *made = calloc(1, sizeof(*made));
    if (made && !(made->scratch = calloc(1, sizeof(*made->scratch)))) {
        free(made);
        return nullptr;
    }
    if (made) made->sizes.has_no_top = true;
    return made;
}

static void free_column(column *column)
{
    if (!column) return;
    numbers_deinit(&column->lengths.numbers);
    numbers_deinit(&column->integers);
    numbers_deinit(&column->reals);
    texts_deinit(&column->texts);
    if (column->images) images_deinit(column->images);
    free(column->images);
    free((char *)column->name.data);
    free(column);
}

static void free_scratch(stats *stats)
{
    if (stats->scratch) {
        free(stats->scratch->items);
        free(stats->scratch->values);
    }
    free(stats->scratch);
    stats->scratch = nullptr;
}

void stats_free(stats *stats)
{
    if (!stats) return;
    for (size_t i = 0; i < stats->count; i++) free_column(stats->columns[i]);
    free(stats->columns);
    free(stats->slots);
    numbers_deinit(&stats->sizes);
    for (int i = 0; i < STATS_CLASSES; i++) top_deinit(&stats->classes[i].counts);
    free_scratch(stats);
    free(stats);
}

/* ---- Columns ---- */

static uint64_t hash_name(mr_string name, bool is_list)
{
    uint64_t hash = is_list ? 0x9e3779b97f4a7c15u : 0xcbf29ce484222325u;
    for (size_t i = 0; i < name.size_bytes; i++) hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* By name, features before lists. */
static int compare(const column *column, mr_string name, bool is_list)
{
    if (column->is_list != is_list) return column->is_list ? 1 : -1;
    size_t common = column->name.size_bytes < name.size_bytes ? column->name.size_bytes : name.size_bytes;
    int order = common > 0 ? memcmp(column->name.data, name.data, common) : 0;
    if (order != 0) return order;
    return column->name.size_bytes < name.size_bytes ? -1 : column->name.size_bytes > name.size_bytes;
}

static bool is_column(const column *column, mr_string name, bool is_list)
{
    return column->is_list == is_list && mr_string_equal(column->name, name);
}

static void put_slot(stats *stats, size_t index)
{
    assert(index < stats->count && stats->count < stats->slot_count);
    size_t slot = stats->columns[index]->hash & (stats->slot_count - 1);
    while (stats->slots[slot] != 0) slot = (slot + 1) & (stats->slot_count - 1);
    stats->slots[slot] = (uint32_t)index + 1;
}

/* Makes room for one more column, in the array and the hash table. */
static bool grow(stats *stats)
{
    if (stats->count < stats->capacity) return true;
    size_t capacity = stats->capacity ? 2 * stats->capacity : 32;
    column **columns = realloc(stats->columns, capacity * sizeof(*columns));
    if (!columns) return false;
    stats->columns = columns;
    uint32_t *slots = calloc(2 * capacity, sizeof(*slots));
    if (!slots) return false;
    free(stats->slots);
    stats->slots = slots;
    stats->slot_count = 2 * capacity;
    stats->capacity = capacity;
    for (size_t i = 0; i < stats->count; i++) put_slot(stats, i);
    return true;
}

/* Drops the last column by name if it sorts after this name; false if the name itself must be dropped. */
static bool make_room(stats *stats, mr_string name, bool is_list)
{
    size_t last = 0;
    stats->has_more = true;
    for (size_t i = 1; i < stats->count; i++)
        if (compare(stats->columns[i], stats->columns[last]->name, stats->columns[last]->is_list) > 0) last = i;
    if (compare(stats->columns[last], name, is_list) < 0) return false;
    if (stats->columns[last]->seen == stats->serial)
        stats->scratch->items[stats->columns[last]->seen_at].column = nullptr;
    free_column(stats->columns[last]);
    assert(stats->count == STATS_FEATURES_MAX);
    stats->columns[last] = stats->columns[--stats->count];
    memset(stats->slots, 0, stats->slot_count * sizeof(*stats->slots));
    for (size_t i = 0; i < stats->count; i++) put_slot(stats, i);
    return true;
}

/* Finds or adds the column of a name. Null with *is_full: too many columns; else no memory. */
static column *find_column(stats *stats, mr_string name, bool is_list, bool *is_full)
{
    *is_full = false;
    /* Records are similar: the next feature is likely that of the previous record. */
    size_t guess = stats->guess < stats->count ? stats->guess : 0;
    if (stats->count > 0 && is_column(stats->columns[guess], name, is_list)) {
        stats->guess = guess + 1;
        return stats->columns[guess];
    }
    uint64_t hash = hash_name(name, is_list);
    for (size_t slot = hash; stats->slot_count > 0; slot++) {
        uint32_t index = stats->slots[slot & (stats->slot_count - 1)];
        if (index == 0) break;
        if (stats->columns[index - 1]->hash != hash || !is_column(stats->columns[index - 1], name, is_list)) continue;
        stats->guess = index;
        return stats->columns[index - 1];
    }
    if (stats->count == STATS_FEATURES_MAX && !make_room(stats, name, is_list)) {
        *is_full = true;
        return nullptr;
    }
    column *made = grow(stats) ? calloc(1, sizeof(*made)) : nullptr;
    char *copy = made ? malloc(name.size_bytes + 1) : nullptr;
    if (!copy) {
        free(made);
        return nullptr;
    }
    if (name.size_bytes > 0) memcpy(copy, name.data, name.size_bytes);
    *made = (column){.name = {copy, name.size_bytes}, .hash = hash, .is_list = is_list, .reals = {.is_real = true}};
    stats->columns[stats->count++] = made;
    put_slot(stats, stats->count - 1);
    stats->guess = stats->count;
    return made;
}

/* ---- A record ---- */

static mr_status no_memory(mr_error *error)
{
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for statistics");
}

/* The item of a feature; of duplicate names the last. Null as in find_column. */
static item *add_item(stats *stats, mr_string name, bool is_list, bool *is_full)
{
    stats_scratch *scratch = stats->scratch;
    column *column = find_column(stats, name, is_list, is_full);
    if (!column) return nullptr;
    if (column->seen == stats->serial) return &scratch->items[column->seen_at];
    if (scratch->count == scratch->capacity) {
        size_t capacity = scratch->capacity ? 2 * scratch->capacity : 64;
        item *items = realloc(scratch->items, capacity * sizeof(*items));
        if (!items) return nullptr;
        scratch->items = items;
        scratch->capacity = capacity;
    }
    assert(scratch->count < scratch->capacity);
    column->seen = stats->serial;
    column->seen_at = scratch->count;
    scratch->items[scratch->count] = (item){.column = column};
    return &scratch->items[scratch->count++];
}

static mr_status walk_features(stats *stats, const stats_selection *selection, mr_string record, class_views *views,
                               mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    size_t count;
    bool is_full;
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK) {
        MR_TRY(mr_feature_count(&feature, &count, error));
        if (!patterns_select(selection->features, feature.name)) continue;
        item *item = add_item(stats, feature.name, false, &is_full);
        if (!item && !is_full) return no_memory(error);
        if (!item || (feature.kind == MR_FEATURE_NONE && item->view.kind != MR_FEATURE_NONE)) continue;
        item->view = feature;
        item->count = count;
        stats_class_view(views, &feature);
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static mr_status walk_lists(stats *stats, const stats_selection *selection, mr_string record, bool *has_lists,
                            mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    mr_feature_view step;
    mr_status status;
    size_t count, values;
    bool is_full;
    while ((status = mr_sequence_next_list(&walk, &list, error)) == MR_OK) {
        MR_TRY(mr_feature_list_count(&list, &count, error));
        for (mr_feature_list_view steps = list; mr_feature_list_next(&steps, &step, error) == MR_OK;)
            MR_TRY(mr_feature_count(&step, &values, error));
        *has_lists = true;
        if (!patterns_select(selection->features, list.name)) continue;
        item *item = add_item(stats, list.name, true, &is_full);
        if (!item && !is_full) return no_memory(error);
        if (!item) continue;
        item->list = list;
        item->count = count;
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* Ends a run of equal lengths. */
static bool end_run(lengths *lengths)
{
    uint64_t times = lengths->times;
    lengths->times = 0;
    if (times > 8) return numbers_add_repeated(&lengths->numbers, lengths->value, times);
    for (; times > 0; times--)
        if (!numbers_add_ints(&lengths->numbers, &lengths->value, 1)) return false;
    return true;
}

static bool add_length(lengths *lengths, size_t count)
{
    if (lengths->times > 0 && lengths->value != (int64_t)count && !end_run(lengths)) return false;
    lengths->value = (int64_t)count;
    lengths->times++;
    return true;
}

/* Whether bytes begin like an image of any format. */
static bool may_be_image(mr_string bytes)
{
    if (bytes.size_bytes < 16) return false;
    static const struct magic {
        size_t offset;
        mr_string bytes;
    } magics[] = {{0, MR_STR("\xff\xd8\xff")},   {0, MR_STR("\x89PNG")},
                  {0, MR_STR("GIF8")},           {0, MR_STR("BM")},
                  {8, MR_STR("WEBP")},           {0, MR_STR("II*\0")},
                  {0, MR_STR("MM\0*")},          {4, MR_STR("ftyp")},
                  {0, MR_STR("\xff\x0a")},       {0, MR_STR("\0\0\0\x0cJXL ")},
                  {0, MR_STR("\0\0\0\x0cjP  ")}, {0, MR_STR("\xff\x4f\xff\x51")}};
    for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
        if (memcmp(bytes.data + magics[i].offset, magics[i].bytes.data, magics[i].bytes.size_bytes) == 0) return true;
    return false;
}

static bool add_image(column *column, mr_string bytes)
{
    mr_image_info info = {0};
    if (!may_be_image(bytes)) return true;
    mr_status status = mr_image_probe(bytes.data, bytes.size_bytes, &info, nullptr);
    if (status == MR_INVALID_ARGUMENT) return true;
    if (!column->images && !(column->images = calloc(1, sizeof(*column->images)))) return false;
    return images_add(column->images, status, &info, bytes.size_bytes);
}

static bool add_values(stats *stats, column *column, const mr_feature_view *view, size_t count)
{
    stats_scratch *scratch = stats->scratch;
    column->kinds[view->kind]++;
    column->values += count;
    if (count == 0) return true;
    if (count > scratch->values_capacity) {
        size_t capacity = count < 64 ? 64 : count + count / 2;
        free(scratch->values);
        scratch->values = malloc(capacity * sizeof(mr_string));
        scratch->values_capacity = scratch->values ? capacity : 0;
        if (!scratch->values) return false;
    }
    void *values = scratch->values;
    switch (view->kind) {
    case MR_FEATURE_INT64:
        return mr_feature_int64s(view, values, count, nullptr) == MR_OK &&
               numbers_add_ints(&column->integers, values, count);
    case MR_FEATURE_FLOAT:
        return mr_feature_floats(view, values, count, nullptr) == MR_OK &&
               numbers_add_floats(&column->reals, values, count);
    case MR_FEATURE_BYTES:
        if (mr_feature_bytes(view, values, count, nullptr) != MR_OK) return false;
        for (size_t i = 0; i < count; i++) {
            mr_string bytes = ((const mr_string *)values)[i];
            if (!texts_add(&column->texts, bytes) || !add_image(column, bytes)) return false;
        }
        return true;
    case MR_FEATURE_NONE:
        break;
    }
    return true;
}

static bool add_steps(stats *stats, const item *item)
{
    mr_feature_list_view list = item->list;
    mr_feature_view step;
    size_t count;
    while (mr_feature_list_next(&list, &step, nullptr) == MR_OK)
        if (mr_feature_count(&step, &count, nullptr) != MR_OK || !add_values(stats, item->column, &step, count))
            return false;
    return add_length(&item->column->lengths, item->count);
}

static bool take_item(stats *stats, const item *item)
{
    column *column = item->column;
    if (!column) return true;
    column->records++;
    if (column->is_list) return add_steps(stats, item);
    if (!add_values(stats, column, &item->view, item->count)) return false;
    return item->view.kind == MR_FEATURE_NONE || add_length(&column->lengths, item->count);
}

static void add_strange(stats *stats, const record_position *position, const mr_error *error)
{
    if (stats->strange++ > 0) return;
    char path[128];
    text_copy(path, sizeof(path), mr_string_from(text_path(position->path)), 80);
    snprintf(stats->fault, sizeof(stats->fault), "%s: record %" PRIu64 " at byte %" PRIu64 ": %s", path,
             position->number, position->offset, error->message);
}

/* Reads all items of a record. */
static mr_status walk_record(stats *stats, const stats_selection *selection, mr_string record, class_views *views,
                             bool *has_lists, mr_error *error)
{
    stats->scratch->count = 0;
    stats->guess = 0;
    stats->serial++;
    MR_TRY(walk_features(stats, selection, record, views, error));
    size_t features = stats->scratch->count;
    mr_status status = walk_lists(stats, selection, record, has_lists, error);
    /* A field 2 of another type does not make it a SequenceExample, and an Example may have one. */
    if (status == MR_DATA_LOSS && mr_example_form_of(record) == MR_EXAMPLE_PLAIN) {
        stats->scratch->count = features;
        *has_lists = false;
        status = MR_OK;
    }
    if (status == MR_OK && !selection->features && stats->scratch->count == 0 &&
        mr_example_form_of(record) == MR_EXAMPLE_NONE)
        return mr_fail(error, MR_DATA_LOSS, "the record is not an Example");
    return status;
}

mr_status stats_add(stats *stats, const stats_selection *selection, const record_position *position, mr_error *error)
{
    class_views views = {0};
    mr_error local = {0};
    int64_t size = (int64_t)position->record.size_bytes;
    bool has_lists = false;
    stats->scratch->count = 0;
    if (!selection->is_raw) {
        mr_status status = walk_record(stats, selection, position->record, &views, &has_lists, &local);
        if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", local.message);
        if (status != MR_OK) {
            add_strange(stats, position, &local);
            return MR_OK;
        }
    }
    for (size_t i = 0; i < stats->scratch->count; i++)
        if (!take_item(stats, &stats->scratch->items[i])) return no_memory(error);
    const tfds *tfds = tfds_set_find(selection->tfds, position->path);
    if (!stats_classes_add(stats, &views, tfds) || !numbers_add_ints(&stats->sizes, &size, 1)) return no_memory(error);
    stats->records++;
    stats->sequences += has_lists;
    stats->size_bytes += position->record.size_bytes;
    return MR_OK;
}

/* ---- Parts ---- */

static bool flush_column(column *column)
{
    return numbers_flush(&column->lengths.numbers) && numbers_flush(&column->integers) &&
           numbers_flush(&column->reals) && texts_flush(&column->texts) &&
           (!column->images || images_flush(column->images));
}

mr_status stats_flush(stats *stats, mr_error *error)
{
    for (size_t i = 0; i < stats->count; i++)
        if (!flush_column(stats->columns[i])) return no_memory(error);
    free_scratch(stats);
    return numbers_flush(&stats->sizes) ? MR_OK : no_memory(error);
}

/* Adds the part's numbers before its run. */
static bool merge_lengths(lengths *lengths, const struct lengths *part)
{
    bool is_run = part->numbers.count == 0;
    if (is_run && lengths->times > 0 && lengths->value == part->value) {
        lengths->times += part->times;
        return true;
    }
    if (!end_run(lengths)) return false;
    if (!is_run && (!numbers_flush(&lengths->numbers) || !numbers_merge(&lengths->numbers, &part->numbers)))
        return false;
    lengths->value = part->value;
    lengths->times = part->times;
    return true;
}

static bool merge_column(column *column, const struct column *part)
{
    column->records += part->records;
    column->values += part->values;
    for (int i = 0; i < 4; i++) column->kinds[i] += part->kinds[i];
    if (part->images) {
        if (!column->images && !(column->images = calloc(1, sizeof(*column->images)))) return false;
        if (!images_merge(column->images, part->images)) return false;
    }
    return merge_lengths(&column->lengths, &part->lengths) && numbers_merge(&column->integers, &part->integers) &&
           numbers_merge(&column->reals, &part->reals) && texts_merge(&column->texts, &part->texts);
}

mr_status stats_merge(stats *stats, const struct stats *part, mr_error *error)
{
    stats->guess = 0;
    stats->serial++;
    stats->has_more |= part->has_more;
    for (size_t i = 0; i < part->count; i++) {
        bool is_full;
        const column *other = part->columns[i];
        if (other->records == 0) continue;
        column *column = find_column(stats, other->name, other->is_list, &is_full);
        if (!column && is_full) continue;
        if (!column || !merge_column(column, other)) return no_memory(error);
    }
    for (int i = 0; i < STATS_CLASSES; i++) {
        classes *classes = &stats->classes[i];
        if (part->classes[i].counts.count == 0) continue;
        classes->counts.is_text = true;
        classes->counts.limit = STATS_CLASSES_MAX;
        classes->records += part->classes[i].records;
        if (!top_merge(&classes->counts, &part->classes[i].counts)) return no_memory(error);
    }
    stats->records += part->records;
    stats->sequences += part->sequences;
    stats->size_bytes += part->size_bytes;
    if (stats->strange == 0) memcpy(stats->fault, part->fault, sizeof(stats->fault));
    stats->strange += part->strange;
    return numbers_merge(&stats->sizes, &part->sizes) ? MR_OK : no_memory(error);
}

static int compare_columns(const void *a, const void *b)
{
    const column *x = *(column *const *)a, *y = *(column *const *)b;
    return compare(x, y->name, y->is_list);
}

mr_status stats_finish(stats *stats, mr_error *error)
{
    size_t kept = 0;
    for (size_t i = 0; i < stats->count; i++) {
        column *column = stats->columns[i];
        if (column->records == 0)
            free_column(column);
        else
            stats->columns[kept++] = column;
    }
    stats->count = kept;
    if (kept > 0) qsort(stats->columns, kept, sizeof(*stats->columns), compare_columns);
    for (size_t i = 0; i < kept; i++)
        if (!end_run(&stats->columns[i]->lengths) || !flush_column(stats->columns[i])) return no_memory(error);
    return MR_OK;
}

int stats_kind_count(const column *column)
{
    return (column->kinds[1] > 0) + (column->kinds[2] > 0) + (column->kinds[3] > 0);
}

const char *stats_kind_name(const column *column)
{
    static const char *const names[] = {"none", "bytes", "float", "int64"};
    if (stats_kind_count(column) > 1) return "mixed";
    return names[column->kinds[1] ? 1 : column->kinds[2] ? 2 : column->kinds[3] ? 3 : 0];
}
