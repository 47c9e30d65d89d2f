/* DecodeJSONExample: Examples in protobuf's JSON form to serialized Examples.
 *
 * The message is written while it is read, in the order of the text. As in TensorFlow's parser, names may be in either
 * form (int64List, int64_list) and without quotes, strings may have single quotes, and a comma may follow the last
 * element. The nesting of an Example is fixed, so that the depth of the calls is too. */
#include "kernels/text.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct json {
    const char *at, *end;
    const char *fault; /* null: none */
} json;

typedef enum list_kind { LIST_NONE, LIST_BYTES, LIST_FLOAT, LIST_INT64 } list_kind; /* the fields of a Feature */

static bool fail(json *j, const char *fault)
{
    if (!j->fault) j->fault = fault;
    return false;
}

/* ---- Wire format ---- */

static void put_varint(mr_text_builder *out, uint64_t value)
{
    char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = (char)(value | 0x80);
    bytes[size++] = (char)value;
    mr_text_add(out, bytes, size);
}

static void put_bytes(mr_text_builder *out, int field, const mr_text_builder *bytes)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, bytes->size_bytes);
    mr_text_add(out, bytes->data, bytes->size_bytes);
}

/* ---- Tokens ---- */

static void skip_space(json *j)
{
    while (j->at < j->end && mr_text_is_space(*j->at)) j->at++;
}

/* Takes the character if it is next. */
static bool take(json *j, char c)
{
    skip_space(j);
    if (j->at == j->end || *j->at != c) return false;
    j->at++;
    return true;
}

static bool expect(json *j, char c, const char *fault)
{
    return take(j, c) || fail(j, j->at == j->end ? "Unexpected end of string." : fault);
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* Takes the word if it is next, and ends there. */
static bool take_word(json *j, const char *word)
{
    size_t size = strlen(word);
    skip_space(j);
    if ((size_t)(j->end - j->at) < size || memcmp(j->at, word, size) != 0) return false;
    if ((size_t)(j->end - j->at) > size && is_name(j->at[size])) return false;
    j->at += size;
    return true;
}

static bool read_hex(json *j, int32_t *unit)
{
    *unit = 0;
    if (j->end - j->at < 4) return fail(j, "Illegal hex string.");
    for (int i = 0; i < 4; i++) {
        char c = *j->at++;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
        if (digit < 0 || digit > 15 || (c > '9' && c < 'A')) return fail(j, "Invalid escape sequence.");
        *unit = *unit << 4 | digit;
    }
    return true;
}

/* What follows "\u". A surrogate without its other half becomes U+FFFD. */
static bool read_unicode(json *j, mr_text_builder *text)
{
    int32_t unit, low;
    char bytes[4];
    if (!read_hex(j, &unit)) return false;
    if (unit >= 0xd800 && unit < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' && j->at[1] == 'u') {
        j->at += 2;
        if (!read_hex(j, &low)) return false;
        unit = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
    }
    mr_text_add(text, bytes, mr_utf8_encode(unit, bytes));
    return true;
}

static bool read_escape(json *j, mr_text_builder *text)
{
    static const char from[] = "bfnrtv", to[] = "\b\f\n\r\t\v";
    if (j->at == j->end) return fail(j, "Closing quote expected in string.");
    char c = *j->at++;
    if (c == 'u') return read_unicode(j, text);
    const char *known = c != '\0' ? strchr(from, c) : nullptr;
    mr_text_add(text, known ? &to[known - from] : &c, 1);
    return true;
}

static bool is_quote(json *j)
{
    skip_space(j);
    return j->at < j->end && (*j->at == '"' || *j->at == '\'');
}

static bool read_string(json *j, mr_text_builder *text)
{
    char quote = *j->at++;
    text->size_bytes = 0;
    for (;;) {
        const char *begin = j->at;
        while (j->at < j->end && *j->at != quote && *j->at != '\\') j->at++;
        mr_text_add(text, begin, (size_t)(j->at - begin));
        if (j->at == j->end) return fail(j, "Closing quote expected in string.");
        if (*j->at++ == quote) return true;
        if (!read_escape(j, text)) return false;
    }
}

/* Reads a key and the colon after it. */
static bool read_key(json *j, mr_text_builder *key)
{
    if (is_quote(j)) {
        if (!read_string(j, key)) return false;
    } else {
        const char *begin = j->at;
        while (j->at < j->end && is_name(*j->at)) j->at++;
        if (j->at == begin)
            return fail(j, j->at == j->end ? "Unexpected end of string." : "Expected an object key or }.");
        key->size_bytes = 0;
        mr_text_add(key, begin, (size_t)(j->at - begin));
    }
    return expect(j, ':', "Expected : between key:value pair.");
}

static bool is_key(const mr_text_builder *key, const char *a, const char *b)
{
    mr_string text = {key->data, key->size_bytes};
    return mr_string_equal(text, mr_string_from(a)) || mr_string_equal(text, mr_string_from(b));
}

/* After an element: whether another one follows. */
static bool has_more(json *j, char close, bool *more)
{
    *more = false;
    if (take(j, close)) return true;
    if (!expect(j, ',', close == '}' ? "Expected , or } after key:value pair." : "Expected , or ] after array value."))
        return false;
    *more = !take(j, close);
    return true;
}

/* ---- Values ---- */

/* The number or the name of a number that is next, as text. */
static mr_string read_number(json *j)
{
    skip_space(j);
    const char *begin = j->at;
    while (j->at < j->end && (is_name(*j->at) || *j->at == '+' || *j->at == '-' || *j->at == '.')) j->at++;
    return (mr_string){begin, (size_t)(j->at - begin)};
}

static bool is_octal_or_hex(mr_string text)
{
    size_t sign = text.size_bytes > 0 && text.data[0] == '-';
    return text.size_bytes > sign + 1 && text.data[sign] == '0' && text.data[sign + 1] != '.' &&
           text.data[sign + 1] != 'e' && text.data[sign + 1] != 'E';
}

static bool to_double(mr_string text, double *value)
{
    bool has_digits = text.size_bytes > 0;
    for (size_t i = 0; i < text.size_bytes && has_digits; i++) has_digits = strchr("0123456789+-.eE", text.data[i]);
    return has_digits && mr_text_to_double(text, value);
}

static bool put_int64(json *j, mr_string text, mr_text_builder *out)
{
    int64_t value;
    double number;
    bool fits = mr_text_to_int64(text, &value);
    if (!fits && to_double(text, &number) && number == trunc(number) && fabs(number) < 0x1p63) {
        value = (int64_t)number;
        fits = true;
    }
    if (!fits) return fail(j, "invalid value for type TYPE_INT64");
    put_varint(out, 1 << 3);
    put_varint(out, (uint64_t)value);
    return true;
}

static bool put_float(json *j, mr_string text, mr_text_builder *out)
{
    double number;
    if (mr_string_equal(text, MR_STR("NaN")))
        number = (double)NAN;
    else if (mr_string_equal(text, MR_STR("Infinity")) || mr_string_equal(text, MR_STR("-Infinity")))
        number = text.data[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (!to_double(text, &number) || fabs(number) > (double)FLT_MAX)
        return fail(j, "invalid value for type TYPE_FLOAT");
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    char bytes[4] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), (char)(bits >> 24)};
    put_varint(out, 1 << 3 | 5);
    mr_text_add(out, bytes, sizeof bytes);
    return true;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Base64 of either alphabet, with or without padding. */
static bool put_base64(json *j, mr_string text, mr_text_builder *bytes, mr_text_builder *out)
{
    uint32_t bits = 0;
    int held = 0;
    size_t size = text.size_bytes;
    while (size > 0 && text.size_bytes - size < 2 && text.data[size - 1] == '=') size--;
    bytes->size_bytes = 0;
    for (size_t i = 0; i < size; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) return fail(j, "invalid value for type TYPE_BYTES");
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        char byte = (char)(bits >> held);
        mr_text_add(bytes, &byte, 1);
    }
    if (size % 4 == 1) return fail(j, "invalid value for type TYPE_BYTES");
    put_bytes(out, 1, bytes);
    return true;
}

/* Texts of one call, which its levels use in turn. */
typedef struct texts {
    mr_text_builder key, name, value, bytes, list, feature, entry, features, example;
} texts;

static bool read_value(json *j, list_kind kind, texts *t)
{
    bool is_text = is_quote(j);
    if (!is_text && take_word(j, "null")) return true;
    if (is_text && !read_string(j, &t->value)) return false;
    mr_string text = is_text ? (mr_string){t->value.data, t->value.size_bytes} : read_number(j);
    if (!is_text && text.size_bytes == 0)
        return fail(j, j->at == j->end ? "Unexpected end of string. Expected a value." : "Expected a value.");
    if (!is_text && is_octal_or_hex(text)) return fail(j, "Octal/hex numbers are not valid JSON values.");
    if (kind == LIST_BYTES)
        return is_text ? put_base64(j, text, &t->bytes, &t->list) : fail(j, "invalid value for type TYPE_BYTES");
    return kind == LIST_FLOAT ? put_float(j, text, &t->list) : put_int64(j, text, &t->list);
}

static bool read_values(json *j, list_kind kind, texts *t)
{
    bool more = true;
    if (!take(j, '[')) return read_value(j, kind, t);
    if (take(j, ']')) return true;
    while (more)
        if (!read_value(j, kind, t) || !has_more(j, ']', &more)) return false;
    return true;
}

/* ---- Messages ---- */

/* Reads an object with read_field for each key, or null. */
static bool read_object(json *j, mr_text_builder *key, bool (*read_field)(json *j, texts *t), texts *t)
{
    bool more = true;
    if (take_word(j, "null")) return true;
    if (!expect(j, '{', "Expected a message.")) return false;
    if (take(j, '}')) return true;
    while (more)
        if (!read_key(j, key) || !read_field(j, t) || !has_more(j, '}', &more)) return false;
    return true;
}

static bool read_list_field(json *j, list_kind kind, texts *t)
{
    if (!is_key(&t->key, "value", "value")) return fail(j, "value: Cannot find field.");
    return read_values(j, kind, t);
}

#define LIST_READER(name, kind)                                                                                        \
    static bool name(json *j, texts *t)                                                                                \
    {                                                                                                                  \
        return read_list_field(j, kind, t);                                                                            \
    }
LIST_READER(read_bytes_field, LIST_BYTES)
LIST_READER(read_float_field, LIST_FLOAT)
LIST_READER(read_int64_field, LIST_INT64)

static bool read_feature_field(json *j, texts *t)
{
    list_kind kind = is_key(&t->key, "bytesList", "bytes_list")   ? LIST_BYTES
                     : is_key(&t->key, "floatList", "float_list") ? LIST_FLOAT
                     : is_key(&t->key, "int64List", "int64_list") ? LIST_INT64
                                                                  : LIST_NONE;
    if (kind == LIST_NONE) return fail(j, "feature: Cannot find field.");
    if (take_word(j, "null")) return true;
    if (t->feature.size_bytes > 0) return fail(j, "oneof field 'kind' is already set");
    t->list.size_bytes = 0;
    bool (*const read_field)(json *, texts *) = kind == LIST_BYTES   ? read_bytes_field
                                                : kind == LIST_FLOAT ? read_float_field
                                                                     : read_int64_field;
    if (!read_object(j, &t->key, read_field, t)) return false;
    put_bytes(&t->feature, (int)kind, &t->list);
    return true;
}

/* An entry of the map from names to features; its key is t->name. */
static bool read_entry(json *j, texts *t)
{
    t->entry.size_bytes = 0;
    put_bytes(&t->entry, 1, &t->name);
    t->feature.size_bytes = 0;
    if (!take_word(j, "null")) {
        if (!read_object(j, &t->key, read_feature_field, t)) return false;
        put_bytes(&t->entry, 2, &t->feature);
    }
    put_bytes(&t->features, 1, &t->entry);
    return true;
}

static bool read_features_field(json *j, texts *t)
{
    if (!is_key(&t->key, "feature", "feature")) return fail(j, "features: Cannot find field.");
    return read_object(j, &t->name, read_entry, t);
}

static bool read_example_field(json *j, texts *t)
{
    if (!is_key(&t->key, "features", "features")) return fail(j, "Cannot find field.");
    if (take_word(j, "null")) return true;
    t->features.size_bytes = 0;
    if (!read_object(j, &t->key, read_features_field, t)) return false;
    put_bytes(&t->example, 1, &t->features);
    return true;
}

static bool read_example(json *j, texts *t)
{
    t->example.size_bytes = 0;
    skip_space(j);
    if (j->at == j->end) return fail(j, "Unexpected end of string. Expected a value.");
    if (*j->at != '{') return fail(j, "Root element must be a message.");
    if (!read_object(j, &t->key, read_example_field, t)) return false;
    skip_space(j);
    return j->at == j->end || fail(j, "Parsing terminated before end of input.");
}

static mr_status decode_json_example(mr_kernel_call *call, mr_error *error)
{
    mr_text_output output;
    texts t = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        mr_string text = mr_tensor_strings(&call->inputs[0])[i];
        json j = {.at = text.data, .end = text.size_bytes > 0 ? text.data + text.size_bytes : text.data};
        status = read_example(&j, &t)
                     ? mr_text_put(&output, i, &t.example, error)
                     : mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Error while parsing JSON: %s", j.fault);
    }
    mr_text_builder *const all[] = {&t.key,     &t.name,  &t.value,    &t.bytes,  &t.list,
                                    &t.feature, &t.entry, &t.features, &t.example};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->failed && status == MR_OK) status = mr_fail_memory(error, all[i]->size_bytes);
        mr_text_deinit(all[i]);
    }
    return mr_text_end(call, &output, status, error);
}

static const mr_kernel kernels[] = {
    {.op = "DecodeJSONExample", .run = decode_json_example},
};
MR_KERNEL_FAMILY(decode_json);
