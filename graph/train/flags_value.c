/* Values of flags: read from text and written as text. */
#include "base/status.h"
#include "graph/train/flags.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer texts are no numbers. */
constexpr size_t NUMBER_MAX = 400;

void *mr_flags_push(mr_arena *arena, void *items, int32_t *count, int32_t *capacity, size_t item_size)
{
    assert(*count >= 0 && *count <= *capacity);
    char *list;
    memcpy((void *)&list, items, sizeof list); /* a pointer of any type */
    if (*count == *capacity) {
        const int32_t larger = *capacity == 0 ? 8 : *capacity > INT32_MAX / 2 ? INT32_MAX : *capacity * 2;
        if (larger == *capacity) return nullptr;
        char *grown = mr_arena_alloc_array(arena, (size_t)larger, item_size);
        if (grown == nullptr) return nullptr;
        if (*count > 0) memcpy(grown, list, (size_t)*count * item_size);
        memcpy(items, (const void *)&grown, sizeof grown);
        list = grown;
        *capacity = larger;
    }
    return list + (size_t)(*count)++ * item_size;
}

/* ---- Numbers, as Python's int() and float() read them ---- */

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool is_digit(char byte, int base)
{
    if (base == 16 && ((byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F'))) return true;
    return byte >= '0' && byte < (base == 8 ? '8' : '9' + 1);
}

/* Copies without white space around the text, and without underscores between digits. False: too long, or an underscore
 * elsewhere. */
static bool strip(const char *text, int base, bool starts_with_digit, char *copy)
{
    size_t length = strlen(text), used = 0;
    while (length > 0 && is_space(*text)) text++, length--;
    while (length > 0 && is_space(text[length - 1])) length--;
    if (length > NUMBER_MAX) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '_') {
            copy[used++] = text[i];
            continue;
        }
        const bool after_digit = i > 0 ? is_digit(text[i - 1], base) : starts_with_digit;
        if (!after_digit || i + 1 == length || !is_digit(text[i + 1], base)) return false;
    }
    copy[used] = '\0';
    return true;
}

static bool read_int(const char *text, int64_t *value, const char **fault)
{
    char copy[NUMBER_MAX + 1] = "";
    const bool has_prefix = strlen(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o');
    const int base = !has_prefix ? 10 : text[1] == 'x' ? 16 : 8;
    *fault = "is not an integer";
    if (has_prefix) text += 2;
    if ((has_prefix && is_space(*text)) || !strip(text, base, has_prefix, copy)) return false;
    const char *digits = copy;
    if (!has_prefix && (*digits == '-' || *digits == '+')) digits++;
    if (*digits == '\0') return false;
    for (const char *at = digits; *at != '\0'; at++)
        if (!is_digit(*at, base)) return false;
    errno = 0;
    *value = strtoll(copy, nullptr, base);
    *fault = "does not fit in 64 bits";
    return errno == 0;
}

/* Digits, a point, digits, an exponent: what strtod reads besides hexadecimal numbers and nan(…). */
static bool is_decimal(const char *text)
{
    size_t digits = 0;
    if (*text == '-' || *text == '+') text++;
    for (; is_digit(*text, 10); text++) digits++;
    if (*text == '.') text++;
    for (; is_digit(*text, 10); text++) digits++;
    if (digits == 0) return false;
    if (*text != 'e' && *text != 'E') return *text == '\0';
    text++;
    if (*text == '-' || *text == '+') text++;
    if (!is_digit(*text, 10)) return false;
    while (is_digit(*text, 10)) text++;
    return *text == '\0';
}

static bool is_named_number(const char *text)
{
    if (*text == '-' || *text == '+') text++;
    return strcasecmp(text, "inf") == 0 || strcasecmp(text, "infinity") == 0 || strcasecmp(text, "nan") == 0;
}

static bool read_float(const char *text, double *value)
{
    char copy[NUMBER_MAX + 1] = "";
    if (!strip(text, 10, false, copy) || !(is_decimal(copy) || is_named_number(copy))) return false;
    *value = strtod(copy, nullptr);
    return true;
}

static bool is_inside(const mr_flag *flag, double value)
{
    if (isinf(flag->lower) && isinf(flag->upper)) return true;
    return value >= flag->lower && value <= flag->upper; /* not a NaN */
}

/* ---- Texts ---- */

static bool read_bool(const char *text, bool *value)
{
    *value = strcasecmp(text, "true") == 0 || strcasecmp(text, "t") == 0 || strcmp(text, "1") == 0;
    return *value || strcasecmp(text, "false") == 0 || strcasecmp(text, "f") == 0 || strcmp(text, "0") == 0;
}

int32_t mr_flag_find_value(const mr_flag *flag, const char *text)
{
    for (int32_t i = 0; i < flag->values.count; i++)
        if (flag->case_insensitive ? strcasecmp(flag->values.items[i], text) == 0
                                   : strcmp(flag->values.items[i], text) == 0)
            return i;
    return -1;
}

/* Reads one part of a list with commas, up to the comma or the end. Null: no memory, or *fault. */
static const char *read_part(const char **text, mr_arena *arena, const char **fault)
{
    const char *at = *text;
    const bool is_quoted = *at == '"';
    char *part = mr_arena_alloc(arena, strlen(at) + 1);
    size_t used = 0, start = 0;
    if (part == nullptr) return nullptr;
    *fault = nullptr;
    if (is_quoted) {
        for (at++; *at != '\0' && !(*at == '"' && at[1] != '"'); at++) {
            if (*at == '"') at++;
            part[used++] = *at;
        }
        if (*at != '"') *fault = "has a quote without an end";
        at += *at == '"';
        if (*fault == nullptr && *at != ',' && *at != '\0') *fault = "has text after a closing quote";
    } else {
        for (; *at != ',' && *at != '\0'; at++) {
            if (*at == '\n' || *at == '\r') *fault = "has a line break outside of quotes";
            part[used++] = *at;
        }
    }
    *text = at;
    while (used > 0 && is_space(part[used - 1])) used--;
    while (start < used && is_space(part[start])) start++;
    part[used] = '\0';
    return *fault == nullptr ? part + start : nullptr;
}

static mr_status read_list(mr_flags *flags, const mr_flag *flag, const char *text, mr_error *error)
{
    const char **items = nullptr, *at = text, *fault = nullptr;
    int32_t count = 0, capacity = 0;
    while (*text != '\0') {
        const char **slot = mr_flags_push(&flags->arena, &items, &count, &capacity, sizeof *items);
        const char *part = slot != nullptr ? read_part(&at, &flags->arena, &fault) : nullptr;
        if (fault != nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%s=%.200s: the list %s", flag->name, text, fault);
        if (part == nullptr) return mr_fail_memory(error, strlen(text));
        *slot = part;
        if (*at == '\0') break;
        at++;
    }
    *(mr_names *)flag->value = (mr_names){items, count};
    return MR_OK;
}

/* ---- Setting ---- */

/* Where the next value is stored. Null: no memory. */
static void *slot_of(mr_flags *flags, mr_flag *flag)
{
    const size_t size = flag->kind == MR_FLAG_INT     ? sizeof(int64_t)
                        : flag->kind == MR_FLAG_FLOAT ? sizeof(double)
                                                      : sizeof(char *);
    if (!flag->is_multi) return flag->value;
    return mr_flags_push(&flags->arena, &flag->items, &flag->item_count, &flag->item_capacity, size);
}

static void show_items(const mr_flag *flag)
{
    if (!flag->is_multi) return;
    if (flag->kind == MR_FLAG_INT)
        *(mr_ints *)flag->value = (mr_ints){flag->items, flag->item_count};
    else if (flag->kind == MR_FLAG_FLOAT)
        *(mr_doubles *)flag->value = (mr_doubles){flag->items, flag->item_count};
    else
        *(mr_names *)flag->value = (mr_names){flag->items, flag->item_count};
}

static mr_status fail_value(const mr_flag *flag, const char *text, const char *fault, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%s=%.200s: the value %s", flag->name, text, fault);
}

static mr_status fail_rule(const mr_flag *flag, const char *text, mr_error *error)
{
    char rule[MR_FLAG_RULE_SIZE];
    return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%s=%.200s: the value is not %s", flag->name, text,
                   mr_flag_describe(flag, rule, sizeof rule));
}

static mr_status set_text(mr_flags *flags, mr_flag *flag, const char *text, const char *source, mr_error *error)
{
    const char *copy = mr_arena_strdup(&flags->arena, source);
    const char **slot = copy != nullptr ? slot_of(flags, flag) : nullptr;
    if (slot == nullptr) return mr_fail_memory(error, strlen(text));
    *slot = copy;
    return MR_OK;
}

static mr_status set_int(mr_flags *flags, mr_flag *flag, const char *text, mr_error *error)
{
    int64_t number;
    const char *fault;
    if (!read_int(text, &number, &fault)) return fail_value(flag, text, fault, error);
    if (!is_inside(flag, (double)number)) return fail_rule(flag, text, error);
    int64_t *slot = slot_of(flags, flag);
    if (slot == nullptr) return mr_fail_memory(error, sizeof *slot);
    *slot = number;
    return MR_OK;
}

static mr_status set_float(mr_flags *flags, mr_flag *flag, const char *text, mr_error *error)
{
    double number;
    if (!read_float(text, &number)) return fail_value(flag, text, "is not a number", error);
    if (!is_inside(flag, number)) return fail_rule(flag, text, error);
    double *slot = slot_of(flags, flag);
    if (slot == nullptr) return mr_fail_memory(error, sizeof *slot);
    *slot = number;
    return MR_OK;
}

static mr_status set_value(mr_flags *flags, mr_flag *flag, const char *text, mr_error *error)
{
    int32_t index;
    switch (flag->kind) {
    case MR_FLAG_STRING:
        return set_text(flags, flag, text, text, error);
    case MR_FLAG_BOOL:
        if (read_bool(text, flag->value)) return MR_OK;
        return fail_value(flag, text, "is not true, t, 1, false, f or 0", error);
    case MR_FLAG_INT:
        return set_int(flags, flag, text, error);
    case MR_FLAG_FLOAT:
        return set_float(flags, flag, text, error);
    case MR_FLAG_ENUM:
        index = mr_flag_find_value(flag, text);
        if (index < 0) return fail_rule(flag, text, error);
        return set_text(flags, flag, text, flag->values.items[index], error);
    case MR_FLAG_LIST:
        return read_list(flags, flag, text, error);
    }
    assert(false);
    return MR_INTERNAL;
}

mr_status mr_flag_parse(mr_flags *flags, mr_flag *flag, const char *text, mr_error *error)
{
    MR_TRY(set_value(flags, flag, text, error));
    if (flag->count < INT32_MAX) flag->count++;
    show_items(flag);
    return MR_OK;
}

/* ---- Values ---- */

int32_t mr_flag_value_count(const mr_flag *flag)
{
    if (!flag->is_multi) return 1;
    return flag->kind == MR_FLAG_INT     ? ((const mr_ints *)flag->value)->count
           : flag->kind == MR_FLAG_FLOAT ? ((const mr_doubles *)flag->value)->count
                                         : ((const mr_names *)flag->value)->count;
}

static bool is_list_of_texts(mr_names list)
{
    if (list.count < 0 || (list.count > 0 && list.items == nullptr)) return false;
    for (int32_t i = 0; i < list.count; i++)
        if (list.items[i] == nullptr) return false;
    return true;
}

bool mr_flag_has_list(const mr_flag *flag)
{
    if (!flag->is_multi && flag->kind != MR_FLAG_LIST) return true;
    if (flag->kind == MR_FLAG_INT) {
        const mr_ints *list = flag->value;
        return list->count == 0 || (list->count > 0 && list->items != nullptr);
    }
    if (flag->kind == MR_FLAG_FLOAT) {
        const mr_doubles *list = flag->value;
        return list->count == 0 || (list->count > 0 && list->items != nullptr);
    }
    return is_list_of_texts(*(const mr_names *)flag->value);
}

bool mr_flag_is_given(const mr_flag *flag)
{
    if (flag->count > 0) return true;
    if (flag->kind == MR_FLAG_LIST) return ((const mr_names *)flag->value)->count > 0;
    if (flag->is_multi) return mr_flag_value_count(flag) > 0;
    const bool is_text = flag->kind == MR_FLAG_STRING || flag->kind == MR_FLAG_ENUM;
    return is_text && *(const char *const *)flag->value != nullptr;
}

static const char *text_at(const mr_flag *flag, int32_t index)
{
    return flag->is_multi ? ((const mr_names *)flag->value)->items[index] : *(const char *const *)flag->value;
}

static double number_at(const mr_flag *flag, int32_t index)
{
    if (flag->kind == MR_FLAG_FLOAT)
        return flag->is_multi ? ((const mr_doubles *)flag->value)->items[index] : *(const double *)flag->value;
    return (double)(flag->is_multi ? ((const mr_ints *)flag->value)->items[index] : *(const int64_t *)flag->value);
}

bool mr_flag_is_valid(const mr_flag *flag)
{
    for (int32_t i = 0; i < mr_flag_value_count(flag); i++) {
        if (flag->kind == MR_FLAG_ENUM && mr_flag_find_value(flag, text_at(flag, i)) < 0) return false;
        if ((flag->kind == MR_FLAG_INT || flag->kind == MR_FLAG_FLOAT) && !is_inside(flag, number_at(flag, i)))
            return false;
    }
    return true;
}

/* The shortest text that reads back as the same number, as Python writes it. */
static const char *float_text(double value, mr_arena *arena)
{
    char digits[40];
    if (isnan(value)) return "nan";
    if (isinf(value)) return value > 0 ? "inf" : "-inf";
    int precision = 0;
    do snprintf(digits, sizeof digits, "%.*e", precision, value);
    while (strtod(digits, nullptr) != value && ++precision < 17);
    const int exponent = (int)strtol(strchr(digits, 'e') + 1, nullptr, 10);
    if (exponent < -4 || exponent >= 16) return mr_arena_strdup(arena, digits);
    return mr_arena_printf(arena, "%.*f", precision - exponent > 1 ? precision - exponent : 1, value);
}

/* A part of a list, in quotes if needed. */
static const char *part_text(const char *part, mr_arena *arena)
{
    if (strpbrk(part, ",\"\n\r") == nullptr) return part;
    char *text = mr_arena_alloc(arena, 2 * strlen(part) + 3), *at = text;
    if (text == nullptr) return nullptr;
    *at++ = '"';
    for (; *part != '\0'; part++) {
        if (*part == '"') *at++ = '"';
        *at++ = *part;
    }
    *at = '"';
    return text;
}

static const char *list_text(mr_names list, mr_arena *arena)
{
    const char *text = list.count == 1 && list.items[0][0] == '\0' ? "\"\"" : "";
    for (int32_t i = 0; text != nullptr && i < list.count; i++) {
        const char *part = part_text(list.items[i], arena);
        text = part != nullptr ? mr_arena_printf(arena, "%s%s%s", text, i > 0 ? "," : "", part) : nullptr;
    }
    return text;
}

const char *mr_flag_value_text(const mr_flag *flag, int32_t index, mr_arena *arena)
{
    switch (flag->kind) {
    case MR_FLAG_BOOL:
        return *(const bool *)flag->value ? "true" : "false";
    case MR_FLAG_INT:
        return mr_arena_printf(arena, "%" PRId64,
                               flag->is_multi ? ((const mr_ints *)flag->value)->items[index]
                                              : *(const int64_t *)flag->value);
    case MR_FLAG_FLOAT:
        return float_text(number_at(flag, index), arena);
    case MR_FLAG_LIST:
        return list_text(*(const mr_names *)flag->value, arena);
    default:
        return text_at(flag, index) != nullptr ? text_at(flag, index) : "";
    }
}

const char *mr_flag_describe(const mr_flag *flag, char *text, size_t size_bytes)
{
    const char *name = flag->kind == MR_FLAG_INT ? "an integer" : "a number";
    const bool has_lower = isfinite(flag->lower), has_upper = isfinite(flag->upper);
    size_t used = 0;
    text[0] = '\0';
    if (flag->kind == MR_FLAG_LIST) snprintf(text, size_bytes, "a comma separated list");
    if (flag->kind == MR_FLAG_ENUM) {
        used = (size_t)snprintf(text, size_bytes, "one of ");
        for (int32_t i = 0; i < flag->values.count && used < size_bytes; i++)
            used += (size_t)snprintf(text + used, size_bytes - used, "%s%s", i > 0 ? "|" : "", flag->values.items[i]);
    }
    if (flag->kind != MR_FLAG_INT && flag->kind != MR_FLAG_FLOAT) return text;
    if (has_lower && has_upper)
        snprintf(text, size_bytes, "%s in the range [%.15g, %.15g]", name, flag->lower, flag->upper);
    else if (has_lower)
        snprintf(text, size_bytes, "%s >= %.15g", name, flag->lower);
    else if (has_upper)
        snprintf(text, size_bytes, "%s <= %.15g", name, flag->upper);
    else
        snprintf(text, size_bytes, "%s", name);
    return text;
}
