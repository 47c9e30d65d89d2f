/* Typed columns: see columns.h. */
#include "tfrecord-make/columns.h"

#include "tfrecord-make/make.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static constexpr int32_t COLUMNS_MAX = 1 << 16;
static constexpr int FIELD_DEPTH_MAX = 8;
static constexpr size_t FIELD_NAME_MAX = 1024;
/* A longer text is not a number. */
static constexpr size_t NUMBER_SIZE_MAX = 400;

/* ---- Lists of names ---- */

bool list_next(const char **next, mr_string *name)
{
    if (!*next || !**next) return false;
    size_t size = strcspn(*next, ",");
    *name = (mr_string){*next, size};
    *next += size + ((*next)[size] == ',');
    return true;
}

bool list_has(const char *list, mr_string text)
{
    mr_string name;
    while (list_next(&list, &name))
        if (mr_string_equal(name, text)) return true;
    return false;
}

/* ---- Columns ---- */

const char *column_type_name(column_type type)
{
    static const char *const type_names[] = {"nothing", "int64", "float", "bytes"};
    return type_names[type];
}

static bool parse_type(mr_string text, column_type *type)
{
    for (int i = COLUMN_INT64; i <= COLUMN_BYTES; i++)
        if (mr_string_equal(text, mr_string_from(column_type_name((column_type)i)))) {
            *type = (column_type)i;
            return true;
        }
    return false;
}

/* Applies --types to a column. columns_check_types reports what cannot be parsed. */
static void set_given_type(const columns *columns, column *column)
{
    const char *next = columns->in->types;
    for (mr_string part; list_next(&next, &part);) {
        const char *equals = memrchr(part.data, '=', part.size_bytes);
        mr_string name = {part.data, equals ? (size_t)(equals - part.data) : 0};
        if (!equals || !mr_string_equal(name, mr_string_from(column->name))) continue;
        column->is_given = parse_type((mr_string){equals + 1, part.size_bytes - name.size_bytes - 1}, &column->type);
    }
}

mr_status columns_check_types(const columns *columns, const char *input, mr_error *error)
{
    const char *next = columns->in->types;
    for (mr_string part; list_next(&next, &part);) {
        const char *equals = memrchr(part.data, '=', part.size_bytes);
        if (!equals)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--types: \"%.*s\" is not COLUMN=TYPE", (int)part.size_bytes,
                           part.data);
        mr_string name = {part.data, (size_t)(equals - part.data)};
        mr_string type = {equals + 1, part.size_bytes - name.size_bytes - 1};
        column_type known;
        if (!parse_type(type, &known))
            return mr_fail(error, MR_INVALID_ARGUMENT, "--types: \"%.*s\" is not int64, float or bytes",
                           (int)type.size_bytes, type.data);
        if (names_find(&columns->names, name) < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--types: %s has no column \"%.*s\"", input,
                           (int)name.size_bytes, name.data);
    }
    return MR_OK;
}

mr_status columns_add(columns *columns, mr_string name, int32_t *index, mr_error *error)
{
    uint32_t number;
    MR_TRY(names_add(&columns->names, name, &number, error));
    *index = (int32_t)number;
    assert((int32_t)number <= columns->count && columns->count <= columns->capacity);
    if ((int32_t)number < columns->count) return MR_OK;
    if (columns->count == COLUMNS_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "more than %d columns", COLUMNS_MAX);
    if (columns->count == columns->capacity) {
        int32_t capacity = columns->capacity ? 2 * columns->capacity : 16;
        column *grown = realloc(columns->items, (size_t)capacity * sizeof(column));
        if (!grown) return fail_memory(error, (size_t)capacity * sizeof(column));
        columns->items = grown;
        columns->capacity = capacity;
    }
    column *added = &columns->items[columns->count++];
    *added = (column){.name = columns->names.texts[number]};
    set_given_type(columns, added);
    return MR_OK;
}

int32_t columns_find(const columns *columns, const char *name)
{
    return (int32_t)names_find(&columns->names, mr_string_from(name));
}

uint64_t columns_hash(const columns *columns, uint64_t hash)
{
    for (int32_t i = 0; i < columns->count; i++) {
        const column *column = &columns->items[i];
        uint64_t type = (uint64_t)column->type << 1 | column->is_taken;
        hash = plan_hash(hash, column->name, strlen(column->name));
        hash = plan_hash(hash, &type, sizeof(type));
    }
    return hash;
}

void columns_deinit(columns *columns)
{
    names_deinit(&columns->names);
    free(columns->items);
    *columns = (struct columns){0};
}

/* A column is text, rather than numbers with mistakes, if its values that are not numbers outnumber its numbers by
 * more than this. */
static constexpr int64_t OTHERS_MAX = 64;

bool column_is_open(const column *column)
{
    return column->others <= OTHERS_MAX + column->numbers;
}

void column_see(column *column, column_type type, uint64_t row, mr_string text)
{
    assert(type >= COLUMN_NONE && type <= COLUMN_BYTES);
    if (!column->is_given && type > column->type) column->type = type;
    if (type == COLUMN_INT64 || type == COLUMN_FLOAT) column->numbers++;
    if (type != COLUMN_BYTES || column->others++ > 0) return;
    column->odd_row = row;
    size_t size = text.size_bytes < sizeof(column->odd_text) ? text.size_bytes : sizeof(column->odd_text) - 1;
    if (size > 0) memcpy(column->odd_text, text.data, size);
    column->odd_text[size] = '\0';
}

int32_t columns_find_usual(const columns *columns, const char *usual)
{
    static const char blanks[] = " \t";
    for (mr_string name; list_next(&usual, &name);) {
        int64_t exact = names_find(&columns->names, name);
        if (exact >= 0) return (int32_t)exact;
        for (int32_t i = 0; i < columns->count; i++) {
            const char *begin = columns->items[i].name + strspn(columns->items[i].name, blanks);
            size_t size = strlen(begin);
            while (size > 0 && strchr(blanks, begin[size - 1])) size--;
            if (size == name.size_bytes && strncasecmp(begin, name.data, size) == 0) return i;
        }
    }
    return -1;
}

/* ---- Values in texts ---- */

/* Parses an optional sign and digits. zeros: leading zeros are allowed */
static bool parse_int64(mr_string text, bool zeros, int64_t *value)
{
    size_t i = text.size_bytes > 0 && (text.data[0] == '-' || text.data[0] == '+');
    bool is_negative = i && text.data[0] == '-';
    if (i == text.size_bytes) return false;
    if (!zeros && text.data[i] == '0' && text.size_bytes > i + 1) return false;
    int64_t number = 0;
    for (; i < text.size_bytes; i++) {
        int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, is_negative ? -digit : digit, &number))
            return false;
    }
    *value = number;
    return true;
}

/* Digits with a point and an exponent, "nan", "inf" or "infinity"; not the other forms that strtod accepts. */
static bool is_float(mr_string text)
{
    size_t i = text.size_bytes > 0 && (text.data[0] == '-' || text.data[0] == '+'), digits = 0;
    const char *word = text.data + i;
    size_t rest = text.size_bytes - i;
    if ((rest == 3 && (strncasecmp(word, "nan", 3) == 0 || strncasecmp(word, "inf", 3) == 0)) ||
        (rest == 8 && strncasecmp(word, "infinity", 8) == 0))
        return true;
    for (bool has_point = false; i < text.size_bytes; i++) {
        char c = text.data[i];
        if (c >= '0' && c <= '9')
            digits++;
        else if (c == '.' && !has_point)
            has_point = true;
        else
            break;
    }
    if (digits == 0) return false;
    if (i == text.size_bytes) return true;
    if (text.data[i] != 'e' && text.data[i] != 'E') return false;
    int64_t exponent;
    return parse_int64((mr_string){text.data + i + 1, text.size_bytes - i - 1}, true, &exponent);
}

column_type column_type_of_text(mr_string text)
{
    int64_t number;
    size_t digits = text.size_bytes > 1 && (text.data[0] == '-' || text.data[0] == '+');
    if (text.size_bytes == 0 || text.size_bytes > NUMBER_SIZE_MAX) return COLUMN_BYTES;
    if (parse_int64(text, false, &number)) return COLUMN_INT64;
    /* The remaining texts of digits alone have a leading zero or more digits than an int64. */
    while (digits < text.size_bytes && text.data[digits] >= '0' && text.data[digits] <= '9') digits++;
    if (digits == text.size_bytes) return COLUMN_BYTES;
    return is_float(text) ? COLUMN_FLOAT : COLUMN_BYTES;
}

static mr_status fail_value(const char *reason, mr_string text, mr_error *error)
{
    return mr_fail(error, MR_INVALID_ARGUMENT, "\"%.*s\" %s", text.size_bytes > 60 ? 60 : (int)text.size_bytes,
                   text.data ? text.data : "", reason);
}

static mr_status float_of(double number, mr_string text, float *value, mr_error *error)
{
    *value = (float)number;
    if (isinf(*value) && !isinf(number)) return fail_value("is too large for a float", text, error);
    return MR_OK;
}

mr_status float_of_text(mr_string text, float *value, mr_error *error)
{
    char copy[NUMBER_SIZE_MAX + 1];
    if (text.size_bytes == 0 || text.size_bytes > NUMBER_SIZE_MAX || !is_float(text))
        return fail_value("is not a number", text, error);
    memcpy(copy, text.data, text.size_bytes);
    copy[text.size_bytes] = '\0';
    errno = 0;
    double number = strtod(copy, nullptr);
    if (errno == ERANGE && isinf(number)) return fail_value("is too large for a float", text, error);
    return float_of(number, text, value, error);
}

mr_status column_put_text(const column *column, mr_string text, const char *key, const features *to, mr_error *error)
{
    int64_t integer;
    float number;
    switch (column->type) {
    case COLUMN_INT64:
        if (!parse_int64(text, true, &integer)) return fail_value("is not an int64", text, error);
        put_int64(to, key, integer);
        return MR_OK;
    case COLUMN_FLOAT:
        MR_TRY(float_of_text(text, &number, error));
        put_float(to, key, number);
        return MR_OK;
    case COLUMN_BYTES:
        put_bytes(to, key, text);
        return MR_OK;
    default:
        return MR_OK;
    }
}

/* ---- Values in JSON ---- */

json_t *json_object_from(const char *text, size_t size_bytes, mr_error *error)
{
    json_error_t reason;
    json_t *value = json_loadb(text, size_bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    if (!value) {
        (void)mr_fail(error, MR_DATA_LOSS, "not a JSON object: %s", reason.text);
        return nullptr;
    }
    if (json_is_object(value)) return value;
    json_decref(value);
    (void)mr_fail(error, MR_DATA_LOSS, "not a JSON object: it must start with {");
    return nullptr;
}

column_type column_type_of_json(const json_t *value)
{
    column_type type = COLUMN_NONE;
    switch (json_typeof(value)) {
    case JSON_NULL:
        return COLUMN_NONE;
    case JSON_INTEGER:
    case JSON_TRUE:
    case JSON_FALSE:
        return COLUMN_INT64;
    case JSON_REAL:
        return COLUMN_FLOAT;
    case JSON_ARRAY:
        for (size_t i = 0; i < json_array_size(value); i++) {
            column_type one = column_type_of_json(json_array_get(value, i));
            if (one > type) type = one;
        }
        return type;
    default:
        return COLUMN_BYTES;
    }
}

mr_status float_of_json(const json_t *value, float *number, mr_error *error)
{
    if (json_is_boolean(value)) {
        *number = json_is_true(value);
        return MR_OK;
    }
    if (!json_is_number(value)) return mr_fail(error, MR_INVALID_ARGUMENT, "a value is not a number");
    char text[64];
    double wide = json_number_value(value);
    snprintf(text, sizeof(text), "%g", wide);
    return float_of(wide, mr_string_from(text), number, error);
}

/* The values of a list, with nested ones in order; a single value is a list of one. */
typedef struct flat_list {
    const json_t **values; /* owned */
    size_t count, capacity;
} flat_list;

static mr_status flatten(flat_list *list, const json_t *value, mr_error *error)
{
    if (json_is_array(value)) {
        /* jansson limits the depth to 2,048. */
        for (size_t i = 0; i < json_array_size(value); i++) MR_TRY(flatten(list, json_array_get(value, i), error));
        return MR_OK;
    }
    if (json_is_null(value)) return mr_fail(error, MR_INVALID_ARGUMENT, "null in a list is not supported");
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        const json_t **grown = realloc(list->values, capacity * sizeof(json_t *));
        if (!grown) return fail_memory(error, capacity * sizeof(json_t *));
        list->values = grown;
        list->capacity = capacity;
    }
    list->values[list->count++] = value;
    return MR_OK;
}

static mr_status put_int64s(const flat_list *list, const char *key, const features *to, mr_error *error)
{
    int64_t *numbers = malloc((list->count + 1) * sizeof(int64_t));
    if (!numbers) return fail_memory(error, list->count * sizeof(int64_t));
    mr_status status = MR_OK;
    for (size_t i = 0; i < list->count && status == MR_OK; i++) {
        const json_t *value = list->values[i];
        if (!json_is_integer(value) && !json_is_boolean(value))
            status = mr_fail(error, MR_INVALID_ARGUMENT, "a value is not an int64");
        numbers[i] = json_is_true(value) ? 1 : json_integer_value(value);
    }
    if (status == MR_OK) put_int64_list(to, key, numbers, list->count);
    free(numbers);
    return status;
}

static mr_status put_floats(const flat_list *list, const char *key, const features *to, mr_error *error)
{
    float *numbers = malloc((list->count + 1) * sizeof(float));
    if (!numbers) return fail_memory(error, list->count * sizeof(float));
    mr_status status = MR_OK;
    for (size_t i = 0; i < list->count && status == MR_OK; i++)
        status = float_of_json(list->values[i], &numbers[i], error);
    if (status == MR_OK) put_float_list(to, key, numbers, list->count);
    free(numbers);
    return status;
}

/* Puts strings unchanged, and other values as JSON text. */
static mr_status put_texts(const flat_list *list, const char *key, const features *to, mr_error *error)
{
    mr_string *texts = calloc(list->count + 1, sizeof(mr_string));
    char **owned = calloc(list->count + 1, sizeof(char *));
    mr_status status = texts && owned ? MR_OK : fail_memory(error, list->count * sizeof(mr_string));
    for (size_t i = 0; i < list->count && status == MR_OK; i++) {
        const json_t *value = list->values[i];
        if (json_is_string(value)) {
            texts[i] = (mr_string){json_string_value(value), json_string_length(value)};
            continue;
        }
        owned[i] = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        if (owned[i])
            texts[i] = mr_string_from(owned[i]);
        else
            status = fail_memory(error, 64);
    }
    if (status == MR_OK) put_bytes_list(to, key, texts, list->count);
    for (size_t i = 0; owned && i < list->count; i++) free(owned[i]);
    free(owned);
    free(texts);
    return status;
}

mr_status column_put_json(const column *column, const json_t *value, const char *key, const features *to,
                          mr_error *error)
{
    if (json_is_null(value) || column->type == COLUMN_NONE) return MR_OK;
    flat_list list = {0};
    mr_status status = flatten(&list, value, error);
    if (status == MR_OK)
        status = column->type == COLUMN_INT64   ? put_int64s(&list, key, to, error)
                 : column->type == COLUMN_FLOAT ? put_floats(&list, key, to, error)
                                                : put_texts(&list, key, to, error);
    free(list.values);
    return status;
}

/* name: the prefix from the enclosing objects, with room for FIELD_NAME_MAX */
static mr_status each_field(const json_t *object, char *name, size_t used, int depth, take_field take, void *context,
                            mr_error *error)
{
    const char *key;
    json_t *value;
    if (depth > FIELD_DEPTH_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "objects are nested more than %d deep", FIELD_DEPTH_MAX);
    json_object_foreach((json_t *)object, key, value)
    {
        size_t size = strlen(key);
        if (size >= FIELD_NAME_MAX - used - 1)
            return mr_fail(error, MR_INVALID_ARGUMENT, "a field name is longer than %zu bytes", FIELD_NAME_MAX);
        memcpy(name + used, key, size);
        if (json_is_object(value)) {
            name[used + size] = '/';
            MR_TRY(each_field(value, name, used + size + 1, depth + 1, take, context, error));
        } else if (!json_is_null(value)) {
            MR_TRY(take(context, (mr_string){name, used + size}, value, error));
        }
    }
    return MR_OK;
}

mr_status json_each_field(const json_t *object, take_field take, void *context, mr_error *error)
{
    char name[FIELD_NAME_MAX];
    return each_field(object, name, 0, 0, take, context, error);
}
