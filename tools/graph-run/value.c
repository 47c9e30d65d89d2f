/* Text to tensors and back. The parser makes two passes: the first computes the shape, the second stores the
 * elements. */
#include "graph-run/value.h"

#include "common/text.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *at;
    mr_dtype dtype;
    mr_shape shape;
    int64_t found[MR_RANK_MAX]; /* number of elements of the open list at each depth */
    bool known[MR_RANK_MAX];    /* whether the size at that depth is known */
    int32_t rank;               /* -1 before the first element */
    int64_t count;
    void *elements;     /* null in the first pass */
    mr_string *strings; /* point into bytes */
    char *bytes;
    size_t used_bytes;
} parser;

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

/* The limits of an integer dtype; false for any other dtype. */
static bool integer_limits(mr_dtype dtype, int64_t *min, uint64_t *max)
{
    static const struct {
        mr_dtype dtype;
        int64_t min;
        uint64_t max;
    } limits[] = {
        {MR_INT8, INT8_MIN, INT8_MAX},    {MR_UINT8, 0, UINT8_MAX},         {MR_INT16, INT16_MIN, INT16_MAX},
        {MR_UINT16, 0, UINT16_MAX},       {MR_INT32, INT32_MIN, INT32_MAX}, {MR_UINT32, 0, UINT32_MAX},
        {MR_INT64, INT64_MIN, INT64_MAX}, {MR_UINT64, 0, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].dtype != dtype) continue;
        *min = limits[i].min;
        *max = limits[i].max;
        return true;
    }
    return false;
}

/* Elements are little-endian, like the machine: an integer's bytes are the low bytes of the word. */
static void put_integer(parser *p, uint64_t word)
{
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    size_t size = mr_dtype_size(p->dtype);
    memcpy((char *)p->elements + (size_t)p->count * size, &word, size);
}

/* False when a finite number is out of the dtype's range. */
static bool put_float(parser *p, double number)
{
    void *to = p->elements;
    float narrow = (float)number;
    uint16_t half = p->dtype == MR_BFLOAT16 ? mr_float_to_bfloat16(narrow) : mr_float_to_half(narrow);
    double stored = p->dtype == MR_DOUBLE     ? number
                    : p->dtype == MR_FLOAT    ? (double)narrow
                    : p->dtype == MR_BFLOAT16 ? (double)mr_bfloat16_to_float(half)
                                              : (double)mr_half_to_float(half);
    if (isfinite(number) && !isfinite(stored)) return false;
    if (!to) return true;
    if (p->dtype == MR_DOUBLE)
        ((double *)to)[p->count] = number;
    else if (p->dtype == MR_FLOAT)
        ((float *)to)[p->count] = narrow;
    else
        ((uint16_t *)to)[p->count] = half;
    return true;
}

static mr_status parse_text(parser *p, mr_error *error)
{
    const char *begin = ++p->at;
    size_t length = 0;
    for (; *p->at && *p->at != '"'; p->at++, length++) {
        if (*p->at == '\\' && p->at[1]) p->at++;
        if (p->strings) p->bytes[p->used_bytes + length] = *p->at;
    }
    if (*p->at != '"') return mr_fail(error, MR_INVALID_ARGUMENT, "\"%s has no closing quote", begin);
    p->at++;
    if (p->strings) p->strings[p->count] = (mr_string){p->bytes + p->used_bytes, length};
    p->used_bytes += length;
    return MR_OK;
}

/* What is missing, and where. */
static mr_status fail_at(const parser *p, const char *what, mr_error *error)
{
    if (*p->at == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "%s at the end", what);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s at \"%.20s\"", what, p->at);
}

/* The length of a number: everything up to the end of the element. */
static int token_length(const char *at)
{
    size_t length = strcspn(at, ",[] \t\n\v\f\r");
    return length < 40 ? (int)length : 40;
}

static mr_status bad_element(const parser *p, const char *what, mr_error *error)
{
    if (token_length(p->at) == 0) return fail_at(p, "missing value", error);
    return mr_fail(error, MR_INVALID_ARGUMENT, "%.*s is %s %s", token_length(p->at), p->at, what,
                   mr_dtype_name(p->dtype));
}

static bool ends_element(const char *end)
{
    return *end == '\0' || *end == ',' || *end == ']' || isspace((unsigned char)*end);
}

static mr_status parse_bool(parser *p, mr_error *error)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"true", true}, {"false", false}, {"1", true}, {"0", false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].text);
        if (strncmp(p->at, words[i].text, length) != 0 || !ends_element(p->at + length)) continue;
        if (p->elements) ((bool *)p->elements)[p->count] = words[i].value;
        p->at += length;
        return MR_OK;
    }
    return bad_element(p, "not true, false, 1 or 0, as required for", error);
}

static mr_status parse_integer(parser *p, int64_t min, uint64_t max, mr_error *error)
{
    char *end;
    bool negative = *p->at == '-';
    const char *digits = p->at + (negative || *p->at == '+');
    if (!isdigit((unsigned char)*digits)) return bad_element(p, "not an integer, as required for", error);
    errno = 0;
    uint64_t magnitude = strtoull(digits, &end, 10);
    if (!ends_element(end)) return bad_element(p, "not an integer, as required for", error);
    uint64_t limit = negative ? -(uint64_t)min : max;
    if (errno == ERANGE || magnitude > limit) return bad_element(p, "out of range for", error);
    if (p->elements) put_integer(p, negative ? -magnitude : magnitude);
    p->at = end;
    return MR_OK;
}

static mr_status parse_float(parser *p, mr_error *error)
{
    char *end;
    errno = 0;
    double number = strtod(p->at, &end);
    if (end == p->at || !ends_element(end)) return bad_element(p, "not a number, as required for", error);
    if ((errno == ERANGE && isinf(number)) || !put_float(p, number)) return bad_element(p, "too large for", error);
    p->at = end;
    return MR_OK;
}

static mr_status parse_element(parser *p, mr_error *error)
{
    int64_t min;
    uint64_t max;
    if (p->dtype == MR_STRING && *p->at == '"') return parse_text(p, error);
    if (p->dtype == MR_STRING) return bad_element(p, "not in double quotes, as required in a list of", error);
    if (p->dtype == MR_BOOL) return parse_bool(p, error);
    return integer_limits(p->dtype, &min, &max) ? parse_integer(p, min, max, error) : parse_float(p, error);
}

static mr_status parse_any(parser *p, int32_t depth, mr_error *error)
{
    skip_space(p);
    if (*p->at != '[') {
        if (p->rank >= 0 && p->rank != depth) return mr_fail(error, MR_INVALID_ARGUMENT, "lists of unequal depth");
        p->rank = depth;
        MR_TRY(parse_element(p, error));
        p->count++;
        return MR_OK;
    }
    if (depth == MR_RANK_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "lists nested deeper than %d", MR_RANK_MAX);
    p->at++;
    int64_t elements = 0;
    for (skip_space(p); *p->at != ']'; skip_space(p)) {
        MR_TRY(parse_any(p, depth + 1, error));
        elements++;
        skip_space(p);
        if (*p->at == ',')
            p->at++;
        else if (*p->at != ']')
            return fail_at(p, "missing , or ]", error);
    }
    p->at++;
    if (p->known[depth] && p->shape.dims[depth] != elements)
        return mr_fail(error, MR_INVALID_ARGUMENT, "lists at the same level have %" PRId64 " and %" PRId64 " elements",
                       p->shape.dims[depth], elements);
    p->known[depth] = true;
    p->shape.dims[depth] = elements;
    if (depth + 1 > p->shape.rank) p->shape.rank = depth + 1;
    return MR_OK;
}

/* ---- Conversion ---- */

static bool is_float(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
}

static bool is_integer(mr_dtype dtype)
{
    int64_t min;
    uint64_t max;
    return integer_limits(dtype, &min, &max);
}

static double float_at(const void *data, mr_dtype dtype, int64_t i)
{
    if (dtype == MR_DOUBLE) return ((const double *)data)[i];
    if (dtype == MR_FLOAT) return (double)((const float *)data)[i];
    uint16_t half = ((const uint16_t *)data)[i];
    return (double)(dtype == MR_HALF ? mr_half_to_float(half) : mr_bfloat16_to_float(half));
}

/* The element as a word, whose sign is extended. */
static uint64_t integer_at(const void *data, mr_dtype dtype, int64_t i, bool *negative)
{
    int64_t min;
    uint64_t max, word = 0;
    size_t size = mr_dtype_size(dtype);
    memcpy(&word, (const char *)data + (size_t)i * size, size);
    bool is_signed = integer_limits(dtype, &min, &max) && min < 0;
    *negative = is_signed && word >> (8 * size - 1) & 1;
    if (*negative && size < sizeof word) word |= ~(uint64_t)0 << (8 * size);
    return word;
}

/* Converts element p->count of an array with the elements of p. */
static mr_status convert_element(parser *p, const void *data, mr_dtype dtype, mr_error *error)
{
    if (is_float(dtype)) {
        double number = float_at(data, dtype, p->count);
        if (put_float(p, number)) return MR_OK;
        return mr_fail(error, MR_INVALID_ARGUMENT, "element %" PRId64 ", %g, is too large for %s", p->count, number,
                       mr_dtype_name(p->dtype));
    }
    int64_t min = 0;
    uint64_t max = 1; /* of booleans */
    bool negative;
    uint64_t word = integer_at(data, dtype, p->count, &negative);
    double number = negative ? (double)(int64_t)word : (double)word;
    (void)integer_limits(p->dtype, &min, &max);
    bool fits = is_float(p->dtype) ? put_float(p, number) : negative ? (int64_t)word >= min : word <= max;
    if (!fits)
        return mr_fail(error, MR_INVALID_ARGUMENT, "element %" PRId64 ", %s%" PRIu64 ", is out of range for %s",
                       p->count, negative ? "-" : "", negative ? -word : word, mr_dtype_name(p->dtype));
    if (!is_float(p->dtype)) put_integer(p, word);
    return MR_OK;
}

mr_status value_convert(mr_tensor *value, mr_dtype dtype, mr_error *error)
{
    mr_dtype from = value->dtype, to = dtype;
    int64_t count = mr_tensor_count(value);
    if (from == to) return MR_OK;
    bool is_complex = from == MR_COMPLEX128 && to == MR_COMPLEX64;
    if (is_complex) from = MR_DOUBLE, to = MR_FLOAT, count *= 2;
    if (!(is_float(from) && is_float(to)) && !(is_integer(from) && (is_float(to) || is_integer(to) || to == MR_BOOL)))
        return mr_fail(error, MR_INVALID_ARGUMENT, "dtype %s; %s is required", mr_dtype_name(value->dtype),
                       mr_dtype_name(dtype));
    mr_tensor made = {0};
    MR_TRY(mr_tensor_init(&made, dtype, value->shape, error));
    parser p = {.dtype = to, .elements = made.data};
    mr_status status = MR_OK;
    for (; p.count < count && status == MR_OK; p.count++) status = convert_element(&p, value->data, from, error);
    mr_tensor_deinit(status == MR_OK ? value : &made);
    if (status == MR_OK) *value = made;
    return status;
}

/* ---- Parsing ---- */

mr_status value_parse(const char *text, mr_dtype dtype, mr_tensor *value, mr_error *error)
{
    if (text[0] == '@') {
        MR_TRY(mr_npy_load(text + 1, value, error));
        mr_status status = value_convert(value, dtype, error);
        if (status == MR_OK) return MR_OK;
        mr_tensor_deinit(value);
        return mr_fail_prefix(error, status, "%s", text + 1);
    }
    if (dtype == MR_STRING && text[0] != '"' && text[0] != '[')
        return mr_tensor_init_string(value, mr_string_from(text), error);
    int64_t min;
    uint64_t max;
    if (!is_float(dtype) && dtype != MR_STRING && dtype != MR_BOOL && !integer_limits(dtype, &min, &max))
        return mr_fail(error, MR_UNIMPLEMENTED, "a %s cannot be written as text; use @FILE.npy", mr_dtype_name(dtype));
    parser measure = {.at = text, .dtype = dtype, .rank = -1};
    MR_TRY(parse_any(&measure, 0, error));
    skip_space(&measure);
    if (*measure.at)
        return mr_fail(error, MR_INVALID_ARGUMENT, "unexpected text \"%.20s\" after the value", measure.at);
    if (measure.rank >= 0 && measure.rank != measure.shape.rank)
        return mr_fail(error, MR_INVALID_ARGUMENT, "lists of unequal depth");
    parser fill = {.at = text, .dtype = dtype, .rank = -1};
    if (dtype != MR_STRING) {
        MR_TRY(mr_tensor_init(value, dtype, measure.shape, error));
        fill.elements = value->data;
        return parse_any(&fill, 0, error);
    }
    fill.strings = calloc((size_t)measure.count + 1, sizeof *fill.strings);
    fill.bytes = malloc(measure.used_bytes + 1);
    mr_status status =
        fill.strings && fill.bytes ? parse_any(&fill, 0, error) : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    if (status == MR_OK) status = mr_tensor_init_strings(value, measure.shape, fill.strings, error);
    free(fill.strings);
    free(fill.bytes);
    return status;
}

/* ---- Printing ---- */

/* NaN without the sign that C prints. */
static void print_number(FILE *file, int digits, double number)
{
    if (isnan(number))
        fputs("nan", file);
    else
        fprintf(file, "%.*g", digits, number);
}

static void print_complex(FILE *file, int digits, double real, double imaginary)
{
    fputc('(', file);
    print_number(file, digits, real);
    fputs(", ", file);
    print_number(file, digits, imaginary);
    fputc(')', file);
}

static void print_element(FILE *file, const mr_tensor *value, int64_t i)
{
    const void *data = value->data;
    switch (value->dtype) {
    case MR_FLOAT:
        print_number(file, 9, (double)((const float *)data)[i]);
        break;
    case MR_DOUBLE:
        print_number(file, 17, ((const double *)data)[i]);
        break;
    case MR_HALF:
        print_number(file, 5, (double)mr_half_to_float(((const uint16_t *)data)[i]));
        break;
    case MR_BFLOAT16:
        print_number(file, 4, (double)mr_bfloat16_to_float(((const uint16_t *)data)[i]));
        break;
    case MR_INT8:
        fprintf(file, "%d", ((const int8_t *)data)[i]);
        break;
    case MR_UINT8:
        fprintf(file, "%u", ((const uint8_t *)data)[i]);
        break;
    case MR_INT16:
        fprintf(file, "%d", ((const int16_t *)data)[i]);
        break;
    case MR_UINT16:
        fprintf(file, "%u", ((const uint16_t *)data)[i]);
        break;
    case MR_INT32:
        fprintf(file, "%" PRId32, ((const int32_t *)data)[i]);
        break;
    case MR_UINT32:
        fprintf(file, "%" PRIu32, ((const uint32_t *)data)[i]);
        break;
    case MR_INT64:
        fprintf(file, "%" PRId64, ((const int64_t *)data)[i]);
        break;
    case MR_UINT64:
        fprintf(file, "%" PRIu64, ((const uint64_t *)data)[i]);
        break;
    case MR_BOOL:
        fputs(((const bool *)data)[i] ? "true" : "false", file);
        break;
    case MR_COMPLEX64:
        print_complex(file, 9, (double)((const float *)data)[2 * i], (double)((const float *)data)[2 * i + 1]);
        break;
    case MR_COMPLEX128:
        print_complex(file, 17, ((const double *)data)[2 * i], ((const double *)data)[2 * i + 1]);
        break;
    case MR_STRING:
        fputc('"', file);
        text_print(file, mr_tensor_strings(value)[i], 200);
        fputc('"', file);
        break;
    default:
        fputc('?', file);
        break;
    }
}

static void print_list(FILE *file, const mr_tensor *value, int32_t depth, int64_t at, int64_t most)
{
    if (depth == value->shape.rank) {
        print_element(file, value, at);
        return;
    }
    int64_t count = value->shape.dims[depth], step = 1;
    for (int32_t i = depth + 1; i < value->shape.rank; i++) step *= value->shape.dims[i];
    bool is_innermost = depth + 1 == value->shape.rank;
    fputc('[', file);
    for (int64_t i = 0; i < count; i++) {
        if (count > most && i == most / 2) {
            fputs(is_innermost ? ", …" : ",\n…", file);
            i = count - most / 2;
        }
        if (i > 0) fputs(is_innermost ? ", " : ",\n", file);
        if (i > 0 && !is_innermost) fprintf(file, "%*s", (int)depth + 1, "");
        print_list(file, value, depth + 1, at + i * step, most);
    }
    fputc(']', file);
}

void value_print(FILE *file, const mr_tensor *value, int64_t elements_max)
{
    print_list(file, value, 0, 0, elements_max);
    fputc('\n', file);
}
