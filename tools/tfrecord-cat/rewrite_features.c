/* --features and --rename for record files that are rewritten. A record is parsed only down to the entries of its maps:
 * entries that stay are copied unchanged, a renamed entry gets another key, and the enclosing lengths are rewritten. */
#include "common/query/patterns.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"
#include "tfrecord-cat/rewrite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Bytes fields: field 1 of a record is its features (or context), field 2 its feature lists; field 1 of those is a map
 * entry, whose field 1 is the key. */
enum { TAG_FIRST = 0x0a, TAG_SECOND = 0x12 };

typedef struct renaming {
    mr_string from, to;     /* point into texts */
    bool is_here, was_here; /* found in the current map; in any map */
} renaming;

typedef struct reshape {
    const options *options;
    take_record *take;
    void *context;
    char *texts; /* owned */
    renaming *renames;
    size_t rename_count;
    bool *patterns_used; /* owned; one for each pattern of --features */
    size_t pattern_count;
    out record, map, entry; /* being built */
    uint64_t records;
    bool has_failed;
} reshape;

bool rewrites_features(const options *options)
{
    return options->features || options->rename;
}

/* ---- --rename ---- */

/* The position of "=" in a pair; its size if there is none. */
static size_t pair_middle(mr_string pair)
{
    size_t at = 0;
    while (at < pair.size_bytes && pair.data[at] != '=')
        at += pair.data[at] == '\\' && at + 1 < pair.size_bytes ? 2 : 1;
    return at;
}

/* Returns the exit code: 2 if the list is invalid, which is reported. */
static int read_renames(reshape *reshape)
{
    const char *text = reshape->options->rename;
    mr_string pair;
    size_t pairs = 0, used = 0;
    for (const char *at = text; pattern_next(&at, &pair);) pairs++;
    reshape->renames = calloc(pairs + 1, sizeof(renaming));
    reshape->texts = text ? malloc(strlen(text) + 1) : nullptr;
    if (!reshape->renames || (text && !reshape->texts)) return print_no_memory();
    while (pattern_next(&text, &pair)) {
        size_t middle = pair_middle(pair);
        if (middle == 0 || middle + 1 >= pair.size_bytes)
            return usage_error("--rename: \"%.*s\" is not OLD=NEW", (int)pair.size_bytes, pair.data);
        renaming *made = &reshape->renames[reshape->rename_count];
        char *from = reshape->texts + used, *to;
        used += pattern_unescape((mr_string){pair.data, middle}, from);
        to = reshape->texts + used;
        *made = (renaming){.from = {from, (size_t)(to - from)}};
        used += pattern_unescape((mr_string){pair.data + middle + 1, pair.size_bytes - middle - 1}, to);
        made->to = (mr_string){to, (size_t)(reshape->texts + used - to)};
        for (size_t i = 0; i < reshape->rename_count; i++)
            if (mr_string_equal(reshape->renames[i].from, made->from) ||
                mr_string_equal(reshape->renames[i].to, made->to))
                return usage_error("--rename: \"%.*s\" repeats a name", (int)pair.size_bytes, pair.data);
        if (!patterns_select(reshape->options->features, made->from))
            return usage_error("--rename: --features excludes \"%.*s\"", (int)made->from.size_bytes, made->from.data);
        reshape->rename_count++;
    }
    return 0;
}

static renaming *rename_of(const reshape *reshape, mr_string name)
{
    for (size_t i = 0; i < reshape->rename_count; i++)
        if (mr_string_equal(reshape->renames[i].from, name)) return &reshape->renames[i];
    return nullptr;
}

/* ---- Names of a record ---- */

/* The next name of the context or of the lists; false at the end. */
static bool next_name(mr_example_cursor *walk, bool are_lists, mr_string *name)
{
    mr_feature_view feature;
    mr_feature_list_view list;
    mr_status status =
        are_lists ? mr_sequence_next_list(walk, &list, nullptr) : mr_example_next_feature(walk, &feature, nullptr);
    if (status == MR_OK) *name = are_lists ? list.name : feature.name;
    return status == MR_OK;
}

static void note_patterns(reshape *reshape, mr_string name)
{
    const char *text = reshape->options->features;
    mr_string pattern;
    for (size_t i = 0; pattern_next(&text, &pattern); i++) {
        assert(i < reshape->pattern_count);
        if (!reshape->patterns_used[i]) reshape->patterns_used[i] = pattern_matches(pattern, name);
    }
}

/* Checks that no two features of a map get the same name. */
static mr_status check_names(reshape *reshape, mr_string record, bool are_lists, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_string name;
    for (size_t i = 0; i < reshape->rename_count; i++) reshape->renames[i].is_here = false;
    while (next_name(&walk, are_lists, &name)) {
        renaming *renamed = rename_of(reshape, name);
        if (renamed) renamed->is_here = renamed->was_here = true;
        note_patterns(reshape, name);
    }
    walk = (mr_example_cursor){.record = record};
    while (reshape->rename_count > 0 && next_name(&walk, are_lists, &name)) {
        if (!patterns_select(reshape->options->features, name) || rename_of(reshape, name)) continue;
        for (size_t i = 0; i < reshape->rename_count; i++) {
            char text[200];
            if (!reshape->renames[i].is_here || !mr_string_equal(reshape->renames[i].to, name)) continue;
            (void)text_copy(text, sizeof text, name, 60);
            return mr_fail(error, MR_ALREADY_EXISTS, "--rename: feature \"%s\" already exists", text);
        }
    }
    return MR_OK;
}

/* ---- Wire format ---- */

typedef struct field {
    mr_string bytes;   /* the complete field */
    mr_string payload; /* contents of a bytes field */
    unsigned char tag; /* 0: neither TAG_FIRST nor TAG_SECOND */
} field;

static bool take_varint(mr_string *rest, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; shift < 70 && rest->size_bytes > 0; shift += 7) {
        unsigned char byte = (unsigned char)*rest->data;
        *rest = (mr_string){rest->data + 1, rest->size_bytes - 1};
        if (shift < 64) *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Removes a field from the front; false if it is damaged. */
static bool take_field(mr_string *rest, field *field)
{
    const char *begin = rest->data;
    uint64_t tag, size = 0;
    if (!take_varint(rest, &tag)) return false;
    uint64_t type = tag & 7;
    if (type == 0 && !take_varint(rest, &size)) return false;
    if (type == 2 && !take_varint(rest, &size)) return false;
    if (type == 0) size = 0;
    if (type == 1 || type == 5) size = type == 1 ? 8 : 4;
    if (type == 3 || type == 4 || type > 5 || size > rest->size_bytes) return false;
    *field = (struct field){.payload = {rest->data, (size_t)size}};
    if (tag == TAG_FIRST || tag == TAG_SECOND) field->tag = (unsigned char)tag;
    *rest = (mr_string){rest->data + size, rest->size_bytes - (size_t)size};
    field->bytes = (mr_string){begin, (size_t)(rest->data - begin)};
    return true;
}

static void put_bytes(out *out, unsigned char tag, mr_string payload)
{
    uint64_t left = payload.size_bytes;
    out_char(out, (char)tag);
    for (; left >= 0x80; left >>= 7) out_char(out, (char)(left | 0x80));
    out_char(out, (char)left);
    out_bytes(out, payload.data, payload.size_bytes);
}

/* The key of a map entry: the last field 1. False if it is damaged. */
static bool key_of(mr_string entry, mr_string *key)
{
    field field;
    *key = MR_STR("");
    while (entry.size_bytes > 0) {
        if (!take_field(&entry, &field)) return false;
        if (field.tag == TAG_FIRST) *key = field.payload;
    }
    return true;
}

/* Appends a map entry with another key and the rest unchanged. */
static void put_renamed(reshape *reshape, mr_string entry, mr_string name)
{
    field field;
    reshape->entry.size = 0;
    put_bytes(&reshape->entry, TAG_FIRST, name);
    while (entry.size_bytes > 0 && take_field(&entry, &field))
        if (field.tag != TAG_FIRST) out_bytes(&reshape->entry, field.bytes.data, field.bytes.size_bytes);
    put_bytes(&reshape->map, TAG_FIRST, (mr_string){reshape->entry.bytes, reshape->entry.size});
}

/* Rewrites a map into reshape->map. */
static bool put_map(reshape *reshape, mr_string map)
{
    reshape->map.size = 0;
    while (map.size_bytes > 0) {
        field field;
        mr_string key;
        if (!take_field(&map, &field) || field.tag != TAG_FIRST || !key_of(field.payload, &key)) return false;
        const renaming *renamed = rename_of(reshape, key);
        if (!patterns_select(reshape->options->features, key)) continue;
        if (renamed)
            put_renamed(reshape, field.payload, renamed->to);
        else
            out_bytes(&reshape->map, field.bytes.data, field.bytes.size_bytes);
    }
    return true;
}

static mr_status put_record(reshape *reshape, mr_string record, mr_error *error)
{
    mr_example_form form = mr_example_form_of(record);
    if (form == MR_EXAMPLE_NONE)
        return mr_fail(error, MR_INVALID_ARGUMENT, "not an Example, as --features and --rename require");
    MR_TRY(check_names(reshape, record, false, error));
    if (form == MR_EXAMPLE_SEQUENCE) MR_TRY(check_names(reshape, record, true, error));
    assert(reshape->entry.size <= reshape->entry.capacity && !reshape->record.file);
    reshape->record.size = 0;
    while (record.size_bytes > 0) {
        field field;
        if (!take_field(&record, &field)) return mr_fail(error, MR_DATA_LOSS, "the Example is damaged");
        bool is_map = field.tag == TAG_FIRST || (field.tag == TAG_SECOND && form == MR_EXAMPLE_SEQUENCE);
        if (is_map && !put_map(reshape, field.payload)) return mr_fail(error, MR_DATA_LOSS, "the Example is damaged");
        if (is_map)
            put_bytes(&reshape->record, field.tag, (mr_string){reshape->map.bytes, reshape->map.size});
        else
            out_bytes(&reshape->record, field.bytes.data, field.bytes.size_bytes);
    }
    if (reshape->record.has_failed || reshape->map.has_failed || reshape->entry.has_failed)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for it");
    return MR_OK;
}

/* ---- All records ---- */

static bool reshape_one(void *context, const record_position *position)
{
    reshape *reshape = context;
    struct record_position changed = *position;
    mr_error error = {0};
    if (put_record(reshape, position->record, &error) != MR_OK) {
        reshape->has_failed = print_record_error(position, &error);
        return false;
    }
    reshape->records++;
    changed.record = (mr_string){reshape->record.bytes, reshape->record.size};
    return reshape->take(reshape->context, &changed);
}

/* A name or pattern that occurs in no record is an error: the feature to be removed would be kept. */
static void report_unused(reshape *reshape)
{
    const char *text = reshape->options->features;
    mr_string pattern;
    mr_error error = {0};
    if (reshape->records == 0 || reshape->has_failed) return;
    for (size_t i = 0; pattern_next(&text, &pattern); i++)
        if (!reshape->patterns_used[i])
            (void)mr_fail(&error, MR_NOT_FOUND, "--features: no record has a feature that matches \"%.*s\"",
                          (int)pattern.size_bytes, pattern.data);
    for (size_t i = 0; i < reshape->rename_count; i++)
        if (!reshape->renames[i].was_here)
            (void)mr_fail(&error, MR_NOT_FOUND, "--rename: no record has a feature \"%.*s\"",
                          (int)reshape->renames[i].from.size_bytes, reshape->renames[i].from.data);
    if (error.status != MR_OK) reshape->has_failed = print_error(&error);
}

int rewrite_walk(const options *options, take_record *take, void *context)
{
    if (!rewrites_features(options)) return walk_records(options, take, context);
    reshape reshape = {.options = options, .take = take, .context = context};
    const char *text = options->features;
    for (mr_string pattern; pattern_next(&text, &pattern);) reshape.pattern_count++;
    reshape.patterns_used = calloc(reshape.pattern_count + 1, sizeof(bool));
    int exit_code = reshape.patterns_used ? read_renames(&reshape) : print_no_memory();
    if (exit_code == 0) {
        exit_code = walk_records(options, reshape_one, &reshape);
        report_unused(&reshape);
    }
    free(reshape.patterns_used);
    free(reshape.renames);
    free(reshape.texts);
    out_deinit(&reshape.record);
    out_deinit(&reshape.map);
    out_deinit(&reshape.entry);
    return reshape.has_failed ? 1 : exit_code;
}
