/* Distinct names and their numbers; the classes of a source, and the --labels file. */
#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t LABELS_SIZE_MAX = (size_t)256 << 20;

/* ---- Names ---- */

static uint32_t *find_slot(const names *names, mr_string text)
{
    /* At least one slot is free, so every search ends. */
    assert((names->slot_count & (names->slot_count - 1)) == 0 && names->count < names->slot_count);
    uint32_t slot = (uint32_t)plan_hash(0, text.data, text.size_bytes) & (names->slot_count - 1);
    for (; names->slots[slot]; slot = (slot + 1) & (names->slot_count - 1)) {
        const char *there = names->texts[names->slots[slot] - 1];
        if (strlen(there) == text.size_bytes && memcmp(there, text.data, text.size_bytes) == 0) break;
    }
    return &names->slots[slot];
}

static mr_status grow_names(names *names, mr_error *error)
{
    uint32_t count = names->slot_count ? 2 * names->slot_count : 64;
    uint32_t *slots = count ? calloc(count, sizeof(uint32_t)) : nullptr;
    char **texts = slots ? realloc(names->texts, count * sizeof(char *)) : nullptr;
    if (!texts) {
        free(slots);
        return fail_memory(error, (size_t)count * sizeof(char *));
    }
    free(names->slots);
    names->texts = texts;
    names->slots = slots;
    names->slot_count = count;
    for (uint32_t i = 0; i < names->count; i++) {
        uint32_t *slot = find_slot(names, mr_string_from(texts[i]));
        assert(*slot == 0); /* texts are distinct */
        *slot = i + 1;
    }
    return MR_OK;
}

mr_status names_add(names *names, mr_string text, uint32_t *number, mr_error *error)
{
    if (2 * (uint64_t)names->count >= names->slot_count) MR_TRY(grow_names(names, error));
    uint32_t *slot = find_slot(names, text);
    if (!*slot) {
        char *copy = arena_strndup(&names->arena, text.size_bytes ? text.data : "", text.size_bytes);
        if (!copy) return fail_memory(error, text.size_bytes);
        assert(2 * (uint64_t)names->count < names->slot_count);
        names->texts[names->count] = copy;
        *slot = ++names->count;
    }
    *number = *slot - 1;
    return MR_OK;
}

int64_t names_find(const names *names, mr_string text)
{
    return names->slot_count ? (int64_t)*find_slot(names, text) - 1 : -1;
}

void names_deinit(names *names)
{
    free(names->texts);
    free(names->slots);
    arena_deinit(&names->arena);
    *names = (struct names){0};
}

/* ---- Classes ---- */

/* Reads the --labels file: line n + 1 is label n; an empty line is a number without a class. */
static mr_status read_labels(source *source, names *known, mr_error *error)
{
    const char *path = source->in->labels;
    char *text = nullptr;
    size_t size;
    MR_TRY(file_read_all(path, LABELS_SIZE_MAX, &text, &size, error));
    mr_status status = MR_OK;
    if (memchr(text, '\0', size))
        status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: contains a NUL byte; not a text file", path);
    char *line = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
    for (char *next; status == MR_OK && *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        if (length > 0 && line[length - 1] == '\r') length--;
        line[length] = '\0';
        uint32_t number = 0;
        if (length > 0 && names_find(known, (mr_string){line, length}) >= 0)
            status = mr_fail(error, MR_INVALID_ARGUMENT, "%s: the class \"%s\" occurs twice", path, line);
        /* An empty line still uses a number, under a name that no class can have. */
        char none[32];
        snprintf(none, sizeof(none), "\n%d", source->class_count);
        if (status == MR_OK)
            status = names_add(known, length ? (mr_string){line, length} : mr_string_from(none), &number, error);
        if (status == MR_OK) status = source_add_class(source, length ? line : nullptr, error);
    }
    free(text);
    if (status == MR_OK && source->class_count == 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: contains no class", path);
    return status;
}

/* Parses a whole number in canonical form: no sign, no leading zero. */
static bool is_number(const char *text, int32_t *number)
{
    size_t length = strlen(text);
    if (length == 0 || length > 9 || strspn(text, "0123456789") != length || (*text == '0' && length > 1)) return false;
    *number = (int32_t)strtol(text, nullptr, 10);
    return true;
}

static bool are_numbers(const names *names)
{
    int32_t number;
    for (uint32_t i = 0; i < names->count; i++)
        if (!is_number(names->texts[i], &number)) return false;
    return true;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the sorted names as classes, numbered from `first`. */
static mr_status sort_classes(source *source, const names *names, int32_t first, int32_t *labels, mr_error *error)
{
    char **sorted = malloc((names->count + 1) * sizeof(char *));
    if (!sorted) return fail_memory(error, names->count * sizeof(char *));
    for (uint32_t i = 0; i < names->count; i++) sorted[i] = names->texts[i];
    qsort(sorted, names->count, sizeof(char *), compare_texts);
    mr_status status = MR_OK;
    for (int32_t i = 0; i < first && status == MR_OK; i++) status = source_add_class(source, nullptr, error);
    for (uint32_t i = 0; i < names->count && status == MR_OK; i++) {
        labels[names_find(names, mr_string_from(sorted[i]))] = first + (int32_t)i;
        status = source_add_class(source, sorted[i], error);
    }
    free(sorted);
    return status;
}

/* The label of a name in the --labels file; -1: none. */
static int64_t known_label(const source *source, const names *known, const char *name, bool by_number)
{
    int32_t number;
    if (by_number && is_number(name, &number))
        return number < source->class_count && source->classes[number] ? number : -1;
    return names_find(known, mr_string_from(name));
}

static mr_status fail_unknown(const source *source, const char *name, uint32_t others, bool by_number, mr_error *error)
{
    char more[64] = "";
    if (others > 0) snprintf(more, sizeof(more), " (nor are %" PRIu32 " more)", others);
    if (by_number)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: the label %s has no line in %s, whose lines are counted from 0%s; add lines to "
                       "it%s",
                       source->input, name, source->in->labels, more,
                       source->in->append_labels ? "; --append-labels has no effect on labels that are numbers" : "");
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the class \"%s\" is not in %s%s; append it there as a new line%s",
                   source->input, name, source->in->labels, more,
                   source->in->append_labels ? "" : ", or number it with --append-labels");
}

/* Appends the classes that the --labels file lacks after its last label, sorted. missing: the missing names */
static mr_status append_classes(source *source, const names *names, char **missing, uint32_t count, int32_t *labels,
                                mr_error *error)
{
    qsort(missing, count, sizeof(char *), compare_texts);
    for (uint32_t i = 0; i < count; i++) {
        labels[names_find(names, mr_string_from(missing[i]))] = source->class_count;
        MR_TRY(source_add_class(source, missing[i], error));
    }
    return MR_OK;
}

/* Looks up the labels of names in the --labels file. If all names are numbers, they are line numbers of the file,
 * unless it contains them as names. */
static mr_status look_up(source *source, const names *names, const struct names *known, int32_t *labels,
                         mr_error *error)
{
    bool by_number = are_numbers(names) && names->count > 0 && names_find(known, mr_string_from(names->texts[0])) < 0;
    uint32_t missing_count = 0;
    char **missing = malloc(((size_t)names->count + 1) * sizeof(char *));
    if (!missing) return fail_memory(error, names->count * sizeof(char *));
    for (uint32_t i = 0; i < names->count; i++) {
        int64_t label = known_label(source, known, names->texts[i], by_number);
        labels[i] = (int32_t)label;
        if (label < 0) missing[missing_count++] = names->texts[i];
    }
    assert(missing_count <= names->count);
    mr_status status = MR_OK;
    if (by_number && missing_count == 0 && source->in->append_labels)
        status = mr_fail(error, MR_INVALID_ARGUMENT,
                         "--append-labels has no effect: the labels of %s are numbers, which are lines of %s",
                         source->input, source->in->labels);
    else if (missing_count > 0 && (by_number || !source->in->append_labels))
        status = fail_unknown(source, missing[0], missing_count - 1, by_number, error);
    else
        status = append_classes(source, names, missing, missing_count, labels, error);
    free(missing);
    return status;
}

mr_status source_set_classes(source *source, const names *found, int32_t first, int32_t **labels, mr_error *error)
{
    assert(source->class_count == 0);
    *labels = calloc((size_t)found->count + 1, sizeof(int32_t));
    if (!*labels) return fail_memory(error, found->count * sizeof(int32_t));
    if (source->in->labels) {
        names known = {0};
        mr_status status = read_labels(source, &known, error);
        if (status == MR_OK) status = look_up(source, found, &known, *labels, error);
        names_deinit(&known);
        return status;
    }
    if (first == 0 && are_numbers(found)) {
        for (uint32_t i = 0; i < found->count; i++) (void)is_number(found->texts[i], &(*labels)[i]);
        return MR_OK;
    }
    return sort_classes(source, found, first, *labels, error);
}
