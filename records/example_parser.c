/* Finding features by name in the wire bytes of Examples: one pass, no object, no allocation for each record.
 *
 * The records of a file are alike: the n-th entry of one mostly has the name that the n-th entry of the record before
 * had. So each name is first compared with that one, and only looked up in the table when it is another. Either way
 * whole names are compared. */
#include "records/example_parser.h"

#include "base/arena.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Entries of a record whose names are remembered. */
static constexpr size_t GUESSES_MAX = 64;
static constexpr int32_t FEATURES_MAX = 1 << 16;

/* ---- Names ---- */

static inline uint64_t load64(const unsigned char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

static inline bool is_name(const unsigned char *a, const unsigned char *b, size_t size)
{
    if (size < 8) {
        for (size_t i = 0; i < size; i++)
            if (a[i] != b[i]) return false;
        return true;
    }
    for (size_t i = 0; i + 8 < size; i += 8)
        if (load64(a + i) != load64(b + i)) return false;
    return load64(a + size - 8) == load64(b + size - 8);
}

static inline uint64_t hash_name(const unsigned char *name, size_t size, uint64_t seed)
{
    uint64_t hash = seed ^ size;
    for (size_t i = 0; i + 8 <= size; i += 8) {
        hash = (hash ^ load64(name + i)) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    if (size % 8 != 0) {
        uint64_t word = 0;
        memcpy(&word, name + size / 8 * 8, size % 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15;
        hash ^= hash >> 32;
    }
    return hash;
}

static int32_t find_slot(const mr_example_parser *parser, const unsigned char *name, size_t size)
{
    for (uint32_t at = (uint32_t)hash_name(name, size, parser->seed) & parser->mask;; at = (at + 1) & parser->mask) {
        int32_t slot = parser->table[at];
        if (slot < 0) return -1;
        const mr_string *known = &parser->slots[slot].name;
        if (known->size_bytes == size && is_name(name, (const unsigned char *)known->data, size)) return slot;
    }
}

/* Fills the table under a seed; returns how many names are not at their own place. */
static int32_t fill_table(mr_example_parser *parser, uint64_t seed)
{
    int32_t displaced = 0;
    parser->seed = seed;
    for (uint32_t i = 0; i <= parser->mask; i++) parser->table[i] = -1;
    for (int32_t i = 0; i < parser->count; i++) {
        mr_string name = parser->slots[i].name;
        uint32_t home = (uint32_t)hash_name((const unsigned char *)name.data, name.size_bytes, seed) & parser->mask;
        uint32_t at = home;
        while (parser->table[at] >= 0) at = (at + 1) & parser->mask;
        parser->table[at] = i;
        displaced += at != home;
    }
    return displaced;
}

/* ---- Making a parser ---- */

int32_t mr_feature_tensor_count(const mr_feature *feature)
{
    return feature->form == MR_VARIABLE ? 3 : feature->form == MR_RAGGED ? 2 : 1;
}

static mr_status check_feature(const mr_feature *feature, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (!feature->name) return mr_fail(error, MR_INVALID_ARGUMENT, "a feature has no name");
    if (feature->dtype != MR_FLOAT && feature->dtype != MR_INT64 && feature->dtype != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "feature \"%s\" is asked for as %s; Examples hold float, int64 and string", feature->name,
                       mr_dtype_name(feature->dtype));
    bool has_shape = feature->form == MR_FIXED || feature->form == MR_FIXED_SEQUENCE;
    int64_t stride = has_shape ? mr_shape_count(feature->shape) : 1;
    int32_t rank_max = feature->form == MR_FIXED_SEQUENCE ? MR_RANK_MAX - 2 : MR_RANK_MAX - 1;
    if (stride < 0 || feature->shape.rank > rank_max || (stride == 0 && feature->form == MR_FIXED_SEQUENCE))
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" cannot have the shape %s", feature->name,
                       mr_shape_text(feature->shape, text, sizeof(text)));
    const mr_tensor *fallback = feature->fallback;
    if (!fallback) return MR_OK;
    int64_t wanted = feature->form == MR_FIXED ? stride : 1;
    if (!has_shape)
        return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" is of variable length, so it takes no fallback",
                       feature->name);
    if (fallback->dtype != feature->dtype || mr_tensor_count(fallback) != wanted)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "feature \"%s\" takes %" PRId64 " values of %s as fallback, not %" PRId64 " of %s",
                       feature->name, wanted, mr_dtype_name(feature->dtype), mr_tensor_count(fallback),
                       mr_dtype_name(fallback->dtype));
    return MR_OK;
}

static mr_example_slot make_slot(const mr_feature *feature, mr_string name, int32_t tensor)
{
    bool has_shape = feature->form == MR_FIXED || feature->form == MR_FIXED_SEQUENCE;
    return (mr_example_slot){
        .name = name,
        .dtype = feature->dtype,
        .kind = feature->dtype == MR_FLOAT   ? MR_FEATURE_FLOAT
                : feature->dtype == MR_INT64 ? MR_FEATURE_INT64
                                             : MR_FEATURE_BYTES,
        .form = feature->form,
        .shape = has_shape ? feature->shape : MR_SCALAR,
        .stride = has_shape ? mr_shape_count(feature->shape) : 1,
        .fallback = feature->fallback ? mr_tensor_ref(feature->fallback) : (mr_tensor){0},
        .tensor = tensor,
        .is_kept_for_empty = has_shape,
    };
}

static mr_status check_names(const mr_example_parser *parser, mr_error *error)
{
    for (int32_t i = 0; i < parser->count; i++) {
        mr_string name = parser->slots[i].name;
        /* The table has the first of equal names before the second. */
        if (find_slot(parser, (const unsigned char *)name.data, name.size_bytes) != i)
            return mr_fail(error, MR_INVALID_ARGUMENT, "feature \"%s\" is asked for twice", name.data);
    }
    return MR_OK;
}

mr_status mr_example_parser_new(const mr_feature *features, int32_t count, mr_example_parser **parser, mr_error *error)
{
    if (count < 0 || count > FEATURES_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%" PRId32 " features cannot be asked for, at most %" PRId32, count,
                       FEATURES_MAX);
    size_t names_size = 0;
    for (int32_t i = 0; i < count; i++) {
        MR_TRY(check_feature(&features[i], error));
        names_size += strlen(features[i].name) + 1;
    }
    uint32_t table_size = 8;
    while (table_size < 4 * (uint32_t)count) table_size *= 2;

    mr_example_parser *made = calloc(1, sizeof(*made));
    if (!made) return mr_fail_memory(error, sizeof(*made));
    made->slots = calloc((size_t)count + 1, sizeof(mr_example_slot));
    made->names = malloc(names_size + 1);
    made->table = malloc(table_size * sizeof(int32_t));
    made->mask = table_size - 1;
    if (!made->slots || !made->names || !made->table) {
        mr_example_parser_free(made);
        return mr_fail_memory(error, names_size);
    }
    char *next = made->names;
    for (int32_t i = 0; i < count; i++) {
        size_t size = strlen(features[i].name);
        memcpy(next, features[i].name, size + 1);
        made->slots[made->count++] = make_slot(&features[i], (mr_string){next, size}, made->tensor_count);
        made->tensor_count += mr_feature_tensor_count(&features[i]);
        next += size + 1;
    }
    /* With a quarter of the places taken, a few seeds mostly find one under which no two names meet. */
    uint64_t best_seed = 0;
    int32_t best = INT32_MAX;
    for (uint64_t seed = 0; seed < 32 && best > 0; seed++) {
        int32_t displaced = fill_table(made, seed);
        if (displaced < best) {
            best = displaced;
            best_seed = seed;
        }
    }
    (void)fill_table(made, best_seed);
    mr_status status = check_names(made, error);
    if (status != MR_OK) {
        mr_example_parser_free(made);
        return status;
    }
    *parser = made;
    return MR_OK;
}

void mr_example_parser_free(mr_example_parser *parser)
{
    if (!parser) return;
    for (int32_t i = 0; i < parser->count; i++) mr_tensor_deinit(&parser->slots[i].fallback);
    free(parser->slots);
    free(parser->names);
    free(parser->table);
    free(parser);
}

/* ---- Finding ---- */

/* The names that the entries of the record before had, and their slots (-1: not asked for). */
typedef struct guesses {
    size_t count;
    struct {
        const unsigned char *name;
        size_t size;
        int32_t slot;
    } items[GUESSES_MAX];
} guesses;

static inline int32_t guess_slot(const mr_example_parser *parser, guesses *guesses, size_t position, mr_wire name)
{
    size_t size = mr_wire_left(&name);
    if (position < guesses->count && guesses->items[position].size == size &&
        is_name(name.next, guesses->items[position].name, size))
        return guesses->items[position].slot;
    int32_t slot = find_slot(parser, name.next, size);
    if (position < GUESSES_MAX && position <= guesses->count) {
        guesses->items[position].name = name.next;
        guesses->items[position].size = size;
        guesses->items[position].slot = slot;
        if (position == guesses->count) guesses->count++;
    }
    return slot;
}

/* Walks one record and notes where each slot's feature is. Returns null, or the place of the damage. */
static const unsigned char *locate(const mr_example_parser *parser, mr_string record, bool single, guesses *guesses,
                                   mr_located *located)
{
    for (int32_t i = 0; i < parser->count; i++) located[i].kind = MR_FEATURE_NONE;
    mr_wire wire = mr_wire_of(record), features;
    size_t position = 0;
    while (wire.next < wire.end) {
        if (!mr_wire_tag(&wire, MR_TAG_BYTES(1))) {
            if (!mr_wire_skip(&wire)) return wire.next;
            continue;
        }
        if (!mr_wire_bytes(&wire, &features)) return wire.next;
        for (; features.next < features.end; position++) {
            mr_wire_entry entry;
            if (!mr_wire_entry_read(&features, &entry)) return features.next;
            int32_t slot = guess_slot(parser, guesses, position, entry.name);
            if (slot < 0) continue;
            mr_feature_kind kind;
            if (!mr_wire_kind(&entry.feature, &kind)) return entry.feature.next;
            if (kind == MR_FEATURE_NONE && (single || parser->slots[slot].is_kept_for_empty)) continue;
            located[slot] = (mr_located){entry.feature.next, (uint32_t)mr_wire_left(&entry.feature), kind};
        }
    }
    return nullptr;
}

const char *mr_example_where(int64_t record, bool single, char text[MR_EXAMPLE_WHERE_SIZE])
{
    text[0] = '\0';
    if (!single) (void)snprintf(text, MR_EXAMPLE_WHERE_SIZE, "record %" PRId64 ": ", record);
    return text;
}

static mr_status fail_damaged(mr_string record, int64_t number, bool single, const unsigned char *at, mr_error *error)
{
    char where[MR_EXAMPLE_WHERE_SIZE];
    return mr_fail(error, MR_DATA_LOSS, "%sthe Example is damaged at byte %zu of %zu",
                   mr_example_where(number, single, where), (size_t)(at - (const unsigned char *)record.data),
                   record.size_bytes);
}

mr_status mr_example_find(const mr_example_parser *parser, mr_string record, mr_feature_view *views, mr_error *error)
{
    static constexpr int32_t ON_STACK = 32;
    mr_located few[ON_STACK], *located = few;
    if (parser->count > ON_STACK) {
        located = malloc((size_t)parser->count * sizeof(mr_located));
        if (!located) return mr_fail_memory(error, (size_t)parser->count * sizeof(mr_located));
    }
    guesses none = {.count = 0};
    const unsigned char *at = locate(parser, record, true, &none, located);
    mr_status status = at ? fail_damaged(record, 0, true, at, error) : MR_OK;
    for (int32_t i = 0; i < parser->count && status == MR_OK; i++) {
        views[i] = (mr_feature_view){.name = parser->slots[i].name, .kind = located[i].kind};
        if (located[i].kind == MR_FEATURE_NONE) continue;
        mr_wire list = {located[i].next, located[i].next + located[i].size_bytes};
        if (!mr_wire_bytes(&list, &list)) status = fail_damaged(record, 0, true, list.next, error);
        views[i].list = (mr_string){(const char *)list.next, mr_wire_left(&list)};
    }
    if (located != few) free(located);
    return status;
}

/* ---- Parsing ---- */

static mr_status parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count, bool single,
                       mr_located *located, int64_t *counts, mr_tensor *tensors, mr_error *error)
{
    guesses guesses = {.count = 0};
    for (int64_t i = 0; i < record_count; i++) {
        const unsigned char *at = locate(parser, records[i], single, &guesses, located + i * parser->count);
        if (at) return fail_damaged(records[i], i, single, at, error);
    }
    for (int32_t i = 0; i < parser->count; i++) {
        const mr_example_slot *slot = &parser->slots[i];
        MR_TRY(mr_example_column(slot, records, record_count, single, located + i, parser->count, counts,
                                 tensors + slot->tensor, error));
    }
    return MR_OK;
}

mr_status mr_example_parse(const mr_example_parser *parser, const mr_string *records, int64_t record_count, bool single,
                           mr_tensor *tensors, mr_error *error)
{
    assert(record_count >= 0 && (!single || record_count == 1));
    for (int32_t i = 0; i < parser->tensor_count; i++) tensors[i] = (mr_tensor){0};
    size_t located_size, counts_size;
    if (__builtin_mul_overflow((size_t)record_count, (size_t)parser->count * sizeof(mr_located), &located_size) ||
        __builtin_mul_overflow((size_t)record_count, sizeof(int64_t), &counts_size))
        return mr_fail_memory(error, SIZE_MAX);
    mr_located *located = malloc(located_size + 1);
    int64_t *counts = malloc(counts_size + 1);
    mr_status status = located && counts ? parse(parser, records, record_count, single, located, counts, tensors, error)
                                         : mr_fail_memory(error, located_size + counts_size);
    free(located);
    free(counts);
    if (status == MR_OK) return MR_OK;
    for (int32_t i = 0; i < parser->tensor_count; i++) mr_tensor_deinit(&tensors[i]);
    return status;
}
