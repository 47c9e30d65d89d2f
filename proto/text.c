/* The parser writes the wire format while it reads; mr_proto_unpack then checks and unpacks it. The length of a message
 * is written as a varint of five bytes before the message is read, and set afterwards. */
#include "proto/text.h"

#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t NAME_MAX_BYTES = 64, NUMBER_MAX_BYTES = 64, LENGTH_BYTES = 5, LENGTH_MAX = INT32_MAX;
enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_BYTES = 2, WIRE_32BIT = 5 };

typedef struct parser {
    const char *begin, *at, *end;
    uint8_t *bytes; /* the result; owned */
    size_t size_bytes, capacity_bytes;
    locale_t locale; /* C's, so that the program's own one changes nothing */
    mr_error *error;
} parser;

/* ---- Errors ---- */

[[gnu::format(printf, 3, 4)]] static mr_status damaged(const parser *p, const char *at, const char *format, ...)
{
    size_t line = 1, column = 1;
    for (const char *c = p->begin; c < at; c++) {
        bool is_end = *c == '\n';
        line += is_end;
        column = is_end ? 1 : column + 1;
    }
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    return mr_fail(p->error, MR_DATA_LOSS, "line %zu, column %zu: %s", line, column, reason);
}

/* ---- Output ---- */

static mr_status put(parser *p, const void *bytes, size_t size_bytes)
{
    if (size_bytes > p->capacity_bytes - p->size_bytes) {
        size_t capacity = 2 * p->capacity_bytes + size_bytes + 256;
        uint8_t *larger = realloc(p->bytes, capacity);
        if (larger == nullptr) return mr_fail_memory(p->error, capacity);
        p->bytes = larger;
        p->capacity_bytes = capacity;
    }
    memcpy(p->bytes + p->size_bytes, bytes, size_bytes);
    p->size_bytes += size_bytes;
    return MR_OK;
}

static mr_status put_varint(parser *p, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    return put(p, bytes, count);
}

static mr_status put_tag(parser *p, const ProtobufCFieldDescriptor *field, uint32_t wire)
{
    return put_varint(p, (uint64_t)field->id << 3 | wire);
}

/* Reserves the length of a value; end_length sets it. */
static mr_status begin_length(parser *p, size_t *begin)
{
    static const uint8_t zeros[LENGTH_BYTES] = {0};
    MR_TRY(put(p, zeros, sizeof zeros));
    *begin = p->size_bytes;
    return MR_OK;
}

static mr_status end_length(parser *p, size_t begin)
{
    size_t length = p->size_bytes - begin;
    if (length > LENGTH_MAX) return damaged(p, p->at, "the message is larger than 2 GiB");
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        p->bytes[begin - LENGTH_BYTES + i] =
            (uint8_t)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80u : 0u));
    return MR_OK;
}

/* ---- Words ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(parser *p)
{
    for (; p->at < p->end; p->at++) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n') p->at++;
        if (p->at == p->end || !is_space(*p->at)) return;
    }
}

/* The next character that is not space; '\0' at the end. A NUL in the text is not a valid character anywhere. */
static char peek(parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool take(parser *p, char c)
{
    if (peek(p) != c || c == '\0') return false;
    p->at++;
    return true;
}

static size_t word_length(const parser *p)
{
    size_t length = 0;
    while (length < (size_t)(p->end - p->at) && is_word(p->at[length])) length++;
    return length;
}

/* Copies the next word; an empty one if there is none, or if it is too long. */
static void take_word(parser *p, char word[NAME_MAX_BYTES])
{
    skip_space(p);
    size_t length = word_length(p);
    if (length >= NAME_MAX_BYTES) length = 0;
    memcpy(word, p->at, length);
    word[length] = '\0';
    p->at += length;
}

/* ---- Numbers ---- */

/* "-12", "0x7f", "1e+20", "inf", without the minus sign: a number that ends before space or punctuation. */
static mr_status take_number(parser *p, char number[NUMBER_MAX_BYTES], bool *is_negative)
{
    *is_negative = take(p, '-');
    (void)peek(p);
    size_t length = 0;
    for (; length < (size_t)(p->end - p->at); length++) {
        char c = p->at[length];
        bool is_sign = (c == '+' || c == '-') && length > 0 && (p->at[length - 1] | 0x20) == 'e';
        if (!is_word(c) && c != '.' && !is_sign) break;
    }
    if (length == 0) return damaged(p, p->at, "a value is missing");
    if (length >= NUMBER_MAX_BYTES) return damaged(p, p->at, "a number of %zu characters", length);
    memcpy(number, p->at, length);
    number[length] = '\0';
    p->at += length;
    return MR_OK;
}

/* Names of enums with few values, or with gaps: of SaverDef, and of FullTypeDef. */
static const struct {
    const char *name;
    int64_t value;
} named_values[] = {
    {"LEGACY", 0},
    {"V1", 1},
    {"V2", 2},
    {"TFT_UNSET", 0},
    {"TFT_VAR", 1},
    {"TFT_ANY", 2},
    {"TFT_PRODUCT", 3},
    {"TFT_NAMED", 4},
    {"TFT_FOR_EACH", 20},
    {"TFT_CALLABLE", 100},
    {"TFT_BOOL", 200},
    {"TFT_UINT8", 201},
    {"TFT_UINT16", 202},
    {"TFT_UINT32", 203},
    {"TFT_UINT64", 204},
    {"TFT_INT8", 205},
    {"TFT_INT16", 206},
    {"TFT_INT32", 207},
    {"TFT_INT64", 208},
    {"TFT_HALF", 209},
    {"TFT_FLOAT", 210},
    {"TFT_DOUBLE", 211},
    {"TFT_COMPLEX64", 212},
    {"TFT_COMPLEX128", 213},
    {"TFT_STRING", 214},
    {"TFT_BFLOAT16", 215},
    {"TFT_TENSOR", 1000},
    {"TFT_ARRAY", 1001},
    {"TFT_OPTIONAL", 1002},
    {"TFT_LITERAL", 1003},
    {"TFT_ENCODED", 1004},
    {"TFT_SHAPE_TENSOR", 1005},
    {"TFT_DATASET", 10102},
    {"TFT_RAGGED", 10103},
    {"TFT_ITERATOR", 10104},
    {"TFT_MUTEX_LOCK", 10202},
    {"TFT_LEGACY_VARIANT", 10203},
};

/* The names of enums. Those of dtypes are DT_ and a suffix; a reference adds 100. */
static bool find_enum(const char *name, int64_t *value)
{
    static const char *const dtypes[] = {"INVALID",
                                         "FLOAT",
                                         "DOUBLE",
                                         "INT32",
                                         "UINT8",
                                         "INT16",
                                         "INT8",
                                         "STRING",
                                         "COMPLEX64",
                                         "INT64",
                                         "BOOL",
                                         "QINT8",
                                         "QUINT8",
                                         "QINT32",
                                         "BFLOAT16",
                                         "QINT16",
                                         "QUINT16",
                                         "UINT16",
                                         "COMPLEX128",
                                         "HALF",
                                         "RESOURCE",
                                         "VARIANT",
                                         "UINT32",
                                         "UINT64",
                                         "FLOAT8_E5M2",
                                         "FLOAT8_E4M3FN",
                                         "FLOAT8_E4M3FNUZ",
                                         "FLOAT8_E4M3B11FNUZ",
                                         "FLOAT8_E5M2FNUZ",
                                         "INT4",
                                         "UINT4",
                                         "INT2",
                                         "UINT2"};
    for (size_t i = 0; i < sizeof named_values / sizeof *named_values; i++) {
        if (strcmp(name, named_values[i].name) != 0) continue;
        *value = named_values[i].value;
        return true;
    }
    if (strncmp(name, "DT_", 3) != 0) return false;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        size_t length = strlen(dtypes[i]);
        if (strncmp(name + 3, dtypes[i], length) != 0) continue;
        const char *rest = name + 3 + length;
        if (*rest != '\0' && strcmp(rest, "_REF") != 0) continue;
        *value = (int64_t)i + (*rest != '\0' ? 100 : 0);
        return true;
    }
    return false;
}

static mr_status parse_integer(parser *p, const ProtobufCFieldDescriptor *field, uint64_t *value)
{
    bool is_32 = field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_UINT32;
    bool is_signed = field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_INT64;
    uint64_t max = is_32 ? (is_signed ? INT32_MAX : UINT32_MAX) : is_signed ? INT64_MAX : UINT64_MAX;
    char number[NUMBER_MAX_BYTES], *end = number;
    bool is_negative;
    skip_space(p);
    const char *at = p->at;
    MR_TRY(take_number(p, number, &is_negative));
    int64_t named;
    if (field->type == PROTOBUF_C_TYPE_INT32 && !is_negative && find_enum(number, &named)) {
        *value = (uint64_t)named;
        return MR_OK;
    }
    errno = 0;
    *value = isdigit((unsigned char)number[0]) ? strtoull(number, &end, 0) : 0;
    if (end == number || *end != '\0') return damaged(p, at, "%s: \"%s\" is not an integer", field->name, number);
    if (errno == ERANGE || *value > max + (is_negative && is_signed) || (is_negative && !is_signed && *value > 0))
        return damaged(p, at, "%s: %s%s is out of range", field->name, is_negative ? "-" : "", number);
    if (is_negative) *value = -*value;
    return MR_OK;
}

static mr_status parse_float(parser *p, const ProtobufCFieldDescriptor *field, double *value)
{
    char number[NUMBER_MAX_BYTES], *end;
    bool is_negative;
    skip_space(p);
    const char *at = p->at;
    MR_TRY(take_number(p, number, &is_negative));
    size_t length = strlen(number);
    bool is_decimal = isdigit((unsigned char)number[0]) || number[0] == '.';
    if (is_decimal && (number[length - 1] | 0x20) == 'f') number[length - 1] = '\0';
    bool is_hexadecimal = number[0] == '0' && (number[1] | 0x20) == 'x';
    *value = strtod_l(number, &end, p->locale);
    if (end == number || *end != '\0' || is_hexadecimal)
        return damaged(p, at, "%s: \"%s\" is not a number", field->name, number);
    if (is_negative) *value = -*value;
    return MR_OK;
}

static mr_status parse_bool(parser *p, const ProtobufCFieldDescriptor *field, bool *value)
{
    static const char *const words[] = {"false", "true", "False", "True", "f", "t", "0", "1"};
    char word[NAME_MAX_BYTES];
    skip_space(p);
    const char *at = p->at;
    take_word(p, word);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) != 0) continue;
        *value = i % 2 == 1;
        return MR_OK;
    }
    return damaged(p, at, "%s: neither true nor false", field->name);
}

/* ---- Strings ---- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads up to `most` digits; returns how many. */
static int take_digits(parser *p, int base, int most, uint32_t *value)
{
    int count = 0;
    for (*value = 0; count < most && p->at < p->end && digit_of(*p->at) < base; count++)
        *value = *value * (uint32_t)base + (uint32_t)digit_of(*p->at++);
    return count;
}

static mr_status put_utf8(parser *p, uint32_t c)
{
    uint8_t bytes[4];
    size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1; c >>= 6) bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
    bytes[0] = (uint8_t)(heads[count] | c);
    return put(p, bytes, count);
}

/* After a backslash. */
static mr_status parse_escape(parser *p)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *at = p->at - 1;
    uint32_t code;
    if (p->at < p->end && digit_of(*p->at) < 8) {
        (void)take_digits(p, 8, 3, &code);
        return code <= 255 ? put(p, &(uint8_t){(uint8_t)code}, 1) : damaged(p, at, "an invalid escape sequence");
    }
    char c = p->at < p->end ? *p->at++ : '\0';
    const char *name = c != '\0' ? strchr(names, c) : nullptr;
    if (name != nullptr) return put(p, &values[name - names], 1);
    if ((c == 'x' || c == 'X') && take_digits(p, 16, 2, &code) > 0) return put(p, &(uint8_t){(uint8_t)code}, 1);
    if (c == 'u' && take_digits(p, 16, 4, &code) == 4) return put_utf8(p, code);
    if (c == 'U' && take_digits(p, 16, 8, &code) == 8 && code <= 0x10ffff) return put_utf8(p, code);
    return damaged(p, at, "an invalid escape sequence");
}

/* A literal in quotes, of either kind; its bytes are appended to the result. */
static mr_status parse_literal(parser *p)
{
    const char *at = p->at;
    char quote = *p->at++;
    for (;;) {
        const char *plain = p->at;
        while (p->at < p->end && *p->at != quote && *p->at != '\\' && *p->at != '\n') p->at++;
        MR_TRY(put(p, plain, (size_t)(p->at - plain)));
        if (p->at == p->end || *p->at == '\n') return damaged(p, at, "a string without closing quote");
        if (*p->at++ == quote) return MR_OK;
        MR_TRY(parse_escape(p));
    }
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

static mr_status parse_string(parser *p, const ProtobufCFieldDescriptor *field)
{
    size_t begin;
    MR_TRY(begin_length(p, &begin));
    if (!is_quote(peek(p))) return damaged(p, p->at, "%s: a string in quotes is required", field->name);
    while (is_quote(peek(p))) MR_TRY(parse_literal(p));
    /* protobuf-c's strings end at the first NUL. */
    if (field->type == PROTOBUF_C_TYPE_STRING && memchr(p->bytes + begin, 0, p->size_bytes - begin) != nullptr)
        return damaged(p, p->at, "%s: a name with a zero byte", field->name);
    return end_length(p, begin);
}

/* ---- Fields that are skipped ---- */

static bool is_skipped(const char *name)
{
    static const char *const names[] = {"object_graph_def", "debug_info", "any_info", "full_type"};
    if (strncmp(name, "experimental_", strlen("experimental_")) == 0) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* Skips a value of any type; for a message, everything up to its closing bracket. */
static mr_status skip_value(parser *p)
{
    char closing[MR_PROTO_DEPTH_MAX];
    int depth = 0;
    const char *at = p->at;
    do {
        char c = peek(p);
        if (c == '\0') return damaged(p, at, "the value does not end");
        if (is_quote(c)) {
            size_t size_bytes = p->size_bytes;
            while (is_quote(peek(p))) MR_TRY(parse_literal(p));
            p->size_bytes = size_bytes;
        } else if (c == '{' || c == '<' || c == '[') {
            if (depth == MR_PROTO_DEPTH_MAX) return damaged(p, p->at, "nested too deeply");
            closing[depth++] = c == '{' ? '}' : c == '<' ? '>' : ']';
            p->at++;
        } else if (c == '}' || c == '>' || c == ']') {
            if (depth == 0 || closing[depth - 1] != c) return damaged(p, p->at, "%c is not expected here", c);
            depth--;
            p->at++;
        } else {
            /* A number or a word, which may have a sign; inside a message also punctuation. */
            p->at++;
            while (p->at < p->end && (is_word(*p->at) || *p->at == '.' || *p->at == '+' || *p->at == '-')) p->at++;
        }
    } while (depth > 0);
    return MR_OK;
}

/* ---- Messages ---- */

static mr_status parse_fields(parser *p, const ProtobufCMessageDescriptor *descriptor, char closing, int depth);

static mr_status parse_message(parser *p, const ProtobufCFieldDescriptor *field, int depth)
{
    size_t begin;
    char opening = peek(p);
    if (opening != '{' && opening != '<') return damaged(p, p->at, "%s: { is required", field->name);
    if (depth + 1 >= MR_PROTO_DEPTH_MAX) return damaged(p, p->at, "nested too deeply");
    p->at++;
    MR_TRY(begin_length(p, &begin));
    MR_TRY(parse_fields(p, field->descriptor, opening == '{' ? '}' : '>', depth + 1));
    return end_length(p, begin);
}

static mr_status parse_value(parser *p, const ProtobufCFieldDescriptor *field, int depth)
{
    uint64_t integer;
    double number;
    bool flag;
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        MR_TRY(put_tag(p, field, WIRE_BYTES));
        return parse_message(p, field, depth);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        MR_TRY(put_tag(p, field, WIRE_BYTES));
        return parse_string(p, field);
    case PROTOBUF_C_TYPE_BOOL:
        MR_TRY(parse_bool(p, field, &flag));
        MR_TRY(put_tag(p, field, WIRE_VARINT));
        return put_varint(p, flag);
    case PROTOBUF_C_TYPE_FLOAT:
        MR_TRY(parse_float(p, field, &number));
        MR_TRY(put_tag(p, field, WIRE_32BIT));
        return put(p, &(float){(float)number}, sizeof(float));
    case PROTOBUF_C_TYPE_DOUBLE:
        MR_TRY(parse_float(p, field, &number));
        MR_TRY(put_tag(p, field, WIRE_64BIT));
        return put(p, &number, sizeof number);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_UINT64:
        MR_TRY(parse_integer(p, field, &integer));
        MR_TRY(put_tag(p, field, WIRE_VARINT));
        return put_varint(p, integer);
    default:
        return damaged(p, p->at, "%s: its type is not supported in text", field->name);
    }
}

static mr_status parse_list(parser *p, const ProtobufCFieldDescriptor *field, int depth)
{
    p->at++;
    if (take(p, ']')) return MR_OK;
    do {
        MR_TRY(parse_value(p, field, depth));
    } while (take(p, ','));
    return take(p, ']') ? MR_OK : damaged(p, p->at, "%s: , or ] is required", field->name);
}

static mr_status parse_field(parser *p, const ProtobufCMessageDescriptor *descriptor, int depth)
{
    char name[NAME_MAX_BYTES];
    const char *at = p->at;
    if (*p->at == '[') { /* an extension, or the contents of an Any */
        MR_TRY(skip_value(p));
        (void)take(p, ':');
        return skip_value(p);
    }
    take_word(p, name);
    if (name[0] == '\0') return damaged(p, at, "a field name of %s is required", descriptor->short_name);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(descriptor, name);
    if (field == nullptr && !is_skipped(name))
        return damaged(p, at, "%s has no field %s", descriptor->short_name, name);
    bool has_colon = take(p, ':');
    char c = peek(p);
    if (!has_colon && c != '{' && c != '<') return damaged(p, p->at, "%s: : is required", name);
    if (field == nullptr) return skip_value(p);
    bool is_list = c == '[' && field->label == PROTOBUF_C_LABEL_REPEATED;
    return is_list ? parse_list(p, field, depth) : parse_value(p, field, depth);
}

/* closing  '\0': the fields end with the text */
static mr_status parse_fields(parser *p, const ProtobufCMessageDescriptor *descriptor, char closing, int depth)
{
    for (;;) {
        char c = peek(p);
        if (c == closing && (closing != '\0' || p->at == p->end)) {
            p->at += closing != '\0';
            return MR_OK;
        }
        if (p->at == p->end)
            return damaged(p, p->at, "%s does not end: %c is missing", descriptor->short_name, closing);
        MR_TRY(parse_field(p, descriptor, depth));
        if (!take(p, ',')) (void)take(p, ';');
    }
}

mr_status mr_proto_text_parse(const ProtobufCMessageDescriptor *descriptor, mr_string text, mr_string *bytes,
                              mr_error *error)
{
    const char *begin = text.size_bytes > 0 ? text.data : "";
    parser p = {.begin = begin, .at = begin, .end = begin + text.size_bytes, .error = error};
    *bytes = (mr_string){0};
    p.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (p.locale == (locale_t)0) return mr_fail_memory(error, 1);
    mr_status status = parse_fields(&p, descriptor, '\0', 0);
    freelocale(p.locale);
    if (status == MR_OK)
        *bytes = (mr_string){(const char *)p.bytes, p.size_bytes};
    else
        free(p.bytes);
    return status;
}

size_t mr_proto_text_first_name(mr_string text, const char **begin)
{
    const char *data = text.size_bytes > 0 ? text.data : "";
    parser p = {.begin = data, .at = data, .end = data + text.size_bytes};
    (void)peek(&p);
    size_t length = word_length(&p);
    *begin = p.at;
    p.at += length;
    char c = peek(&p);
    return length < NAME_MAX_BYTES && (c == ':' || c == '{' || c == '<') ? length : 0;
}
