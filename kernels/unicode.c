/* Strings and code points: UnicodeDecode, UnicodeEncode, UnicodeTranscode, UnicodeScript.
 *
 * Input encodings: UTF-8; UTF-16 and UTF-32 with a byte order in the name or in the text; US-ASCII; ISO-8859-1;
 * windows-1252. Names are compared without case, "-", "_" and spaces. */
#include "kernels/unicode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum encoding {
    UTF_8,
    UTF_16, /* the byte order mark, if there is one, determines the order, otherwise big-endian */
    UTF_16_BE,
    UTF_16_LE,
    UTF_32,
    UTF_32_BE,
    UTF_32_LE,
    ASCII,
    LATIN_1,
    WINDOWS_1252,
    ENCODING_COUNT
} encoding;

typedef struct settings {
    encoding input, output;
    int32_t replacement;
    bool ignores, is_strict, replaces_control;
} settings;

static bool find_encoding(mr_string name, encoding *found)
{
    static const struct {
        const char *name;
        encoding encoding;
    } names[] = {{"utf8", UTF_8},          {"utf16", UTF_16},
                 {"utf16be", UTF_16_BE},   {"utf16le", UTF_16_LE},
                 {"utf32", UTF_32},        {"utf32be", UTF_32_BE},
                 {"utf32le", UTF_32_LE},   {"usascii", ASCII},
                 {"ascii", ASCII},         {"iso88591", LATIN_1},
                 {"latin1", LATIN_1},      {"l1", LATIN_1},
                 {"cp1252", WINDOWS_1252}, {"windows1252", WINDOWS_1252}};
    char plain[16];
    size_t size = 0;
    for (size_t i = 0; i < name.size_bytes; i++) {
        char c = name.data[i];
        if (c == '-' || c == '_' || c == ' ') continue;
        if (size == sizeof plain - 1) return false;
        plain[size++] = c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
    }
    plain[size] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, plain) != 0) continue;
        *found = names[i].encoding;
        return true;
    }
    return false;
}

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    settings *s = prepared;
    mr_string policy = mr_attr_string_or(node->attrs, "errors", "replace");
    int64_t replacement = mr_attr_int_or(node->attrs, "replacement_char", 0xfffd);
    s->ignores = mr_string_equal(policy, MR_STR("ignore"));
    s->is_strict = mr_string_equal(policy, MR_STR("strict"));
    s->replaces_control = mr_attr_bool_or(node->attrs, "replace_control_characters", false);
    if (replacement < 0 || replacement > 0x10ffff)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "replacement_char out of unicode codepoint range");
    s->replacement = (int32_t)replacement;
    mr_string input = mr_attr_string_or(node->attrs, "input_encoding", "UTF-8");
    mr_string output = mr_attr_string_or(node->attrs, "output_encoding", "UTF-8");
    if (!find_encoding(output, &s->output))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Invalid encoding: %.*s", (int)output.size_bytes,
                              output.data);
    if (!find_encoding(input, &s->input))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Could not create converter for input encoding: %.*s",
                              (int)input.size_bytes, input.data);
    return MR_OK;
}

/* ---- Decoding ---- */

/* Reads a text from its beginning; next returns one character and its length in bytes. */
typedef struct reader {
    mr_string text;
    size_t at;
    encoding encoding;
} reader;

static uint32_t unit_at(const reader *r, size_t at, size_t width, bool is_little)
{
    uint32_t unit = 0;
    for (size_t i = 0; i < width; i++)
        unit = unit << 8 | (unsigned char)r->text.data[at + (is_little ? width - 1 - i : i)];
    return unit;
}

static void next_16(reader *r, bool is_little, int32_t *c, bool *is_valid)
{
    size_t left = r->text.size_bytes - r->at;
    *c = 0xfffd;
    *is_valid = false;
    if (left < 2) {
        r->at += left;
        return;
    }
    uint32_t unit = unit_at(r, r->at, 2, is_little);
    r->at += 2;
    if (unit < 0xd800 || unit > 0xdfff) {
        *c = (int32_t)unit;
        *is_valid = true;
        return;
    }
    if (unit >= 0xdc00) return;
    if (left < 4) {
        r->at += left - 2;
        return;
    }
    uint32_t second = unit_at(r, r->at, 2, is_little);
    if (second < 0xdc00 || second > 0xdfff) return;
    r->at += 2;
    *c = (int32_t)(0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00));
    *is_valid = true;
}

static void next_32(reader *r, bool is_little, int32_t *c, bool *is_valid)
{
    size_t left = r->text.size_bytes - r->at;
    uint32_t unit = left >= 4 ? unit_at(r, r->at, 4, is_little) : UINT32_MAX;
    r->at += left >= 4 ? 4 : left;
    *is_valid = unit <= 0x10ffff && !(unit >= 0xd800 && unit <= 0xdfff);
    *c = *is_valid ? (int32_t)unit : 0xfffd;
}

static int32_t windows_1252(unsigned char c)
{
    static const uint16_t high[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                      0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                      0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                      0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    return c >= 0x80 && c < 0xa0 ? high[c - 0x80] : c;
}

/* A byte order mark is part of the first character. */
static void skip_mark(reader *r)
{
    size_t size = r->text.size_bytes, width = r->encoding == UTF_32 ? 4 : 2;
    bool is_little = false;
    if (size >= width && unit_at(r, 0, width, false) == 0xfeff)
        r->at = width;
    else if (size >= width && unit_at(r, 0, width, true) == 0xfeff)
        r->at = width, is_little = true;
    r->encoding = width == 2 ? (is_little ? UTF_16_LE : UTF_16_BE) : is_little ? UTF_32_LE : UTF_32_BE;
}

/* False at the end of the text. */
static bool next(reader *r, int32_t *c, size_t *length, bool *is_valid)
{
    size_t start = r->at;
    if (r->at == 0 && r->text.size_bytes > 0 && (r->encoding == UTF_16 || r->encoding == UTF_32)) skip_mark(r);
    if (r->at >= r->text.size_bytes) return false;
    unsigned char byte = (unsigned char)r->text.data[r->at];
    *is_valid = true;
    switch (r->encoding) {
    case UTF_8:
        r->at += mr_utf8_decode(r->text, r->at, c, is_valid);
        break;
    case UTF_16:
    case UTF_16_BE:
    case UTF_16_LE:
        next_16(r, r->encoding == UTF_16_LE, c, is_valid);
        break;
    case UTF_32:
    case UTF_32_BE:
    case UTF_32_LE:
        next_32(r, r->encoding == UTF_32_LE, c, is_valid);
        break;
    default:
        *is_valid = r->encoding != ASCII || byte < 0x80;
        *c = r->encoding == WINDOWS_1252 ? windows_1252(byte) : *is_valid ? byte : 0xfffd;
        r->at++;
        break;
    }
    *length = r->at - start;
    return true;
}

/* Applies the settings to a character; false if it is left out. *is_wrong reports a malformed one. */
static bool admit(const settings *s, int32_t *c, bool is_valid, bool *is_wrong)
{
    if (is_valid && !(s->replaces_control && *c <= 0x1f)) return true;
    *is_wrong = true;
    *c = s->replacement;
    return !s->ignores;
}

/* ---- Encoding ---- */

/* UTF-16 units, as TensorFlow collects them: two surrogates that follow each other are one character. */
typedef struct units {
    mr_text_builder bytes; /* of uint16_t */
} units;

static void add_unit(units *u, uint32_t unit)
{
    uint16_t narrow = (uint16_t)unit;
    mr_text_add(&u->bytes, &narrow, sizeof narrow);
}

static void add_code_point(units *u, int32_t c)
{
    if (c < 0 || c > 0x10ffff) return;
    if (c < 0x10000) {
        add_unit(u, (uint32_t)c);
        return;
    }
    add_unit(u, 0xd800 + (((uint32_t)c - 0x10000) >> 10));
    add_unit(u, 0xdc00 + ((uint32_t)c & 0x3ff));
}

/* Appends the units in the output encoding, and empties them. */
static void encode(units *u, encoding output, mr_text_builder *text)
{
    const uint16_t *items = (const uint16_t *)u->bytes.data;
    size_t count = u->bytes.size_bytes / 2;
    char bytes[4];
    text->failed |= u->bytes.failed;
    for (size_t i = 0; i < count; i++) {
        int32_t c = items[i];
        if (output == UTF_16_BE) {
            mr_text_add(text, (unsigned char[]){c >> 8 & 255, c & 255}, 2);
            continue;
        }
        if (c >= 0xd800 && c < 0xdc00 && i + 1 < count && items[i + 1] >= 0xdc00 && items[i + 1] <= 0xdfff)
            c = 0x10000 + ((c - 0xd800) << 10) + (items[++i] - 0xdc00);
        if (output == UTF_8)
            mr_text_add(text, bytes, mr_utf8_encode(c, bytes));
        else
            mr_text_add(text, (unsigned char[]){0, c >> 16 & 255, c >> 8 & 255, c & 255}, 4);
    }
    u->bytes.size_bytes = 0;
}

/* ---- The operators ---- */

static mr_status transcode(mr_kernel_call *call, mr_error *error)
{
    const settings *s = call->prepared;
    mr_text_output output;
    mr_text_builder text = {0};
    units u = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    bool is_wrong = false;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        reader r = {.text = mr_tensor_strings(&call->inputs[0])[i], .encoding = s->input};
        int32_t c;
        size_t length;
        for (bool is_valid; next(&r, &c, &length, &is_valid);)
            if (admit(s, &c, is_valid, &is_wrong)) add_code_point(&u, c);
        encode(&u, s->output, &text);
        status = mr_text_put(&output, i, &text, error);
    }
    if (status == MR_OK && is_wrong && s->is_strict)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid formatting on input string");
    mr_text_deinit(&text);
    mr_text_deinit(&u.bytes);
    return mr_text_end(call, &output, status, error);
}

static void put_split(mr_tensor *splits, int64_t i, int64_t value)
{
    if (splits->dtype == MR_INT64)
        mr_tensor_int64s(splits)[i] = value;
    else
        mr_tensor_int32s(splits)[i] = (int32_t)value;
}

static mr_status decode(mr_kernel_call *call, mr_error *error)
{
    const settings *s = call->prepared;
    bool has_offsets = call->node->output_count > 2, is_wrong = false;
    int64_t rows = mr_tensor_count(&call->inputs[0]), total = 0;
    mr_text_builder characters = {0}, starts = {0};
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(rows + 1), error));
    put_split(&call->outputs[0], 0, 0);
    for (int64_t i = 0; i < rows; i++) {
        reader r = {.text = mr_tensor_strings(&call->inputs[0])[i], .encoding = s->input};
        int64_t start = 0;
        size_t length;
        int32_t c;
        for (bool is_valid; next(&r, &c, &length, &is_valid); start += (int64_t)length) {
            if (!admit(s, &c, is_valid, &is_wrong)) continue;
            mr_text_add(&characters, &c, sizeof c);
            if (has_offsets) mr_text_add(&starts, &start, sizeof start);
            total++;
        }
        put_split(&call->outputs[0], i + 1, total);
    }
    mr_status status = characters.failed || starts.failed ? mr_fail_memory(error, (size_t)total * 8) : MR_OK;
    if (status == MR_OK && is_wrong && s->is_strict)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid formatting on input string");
    if (status == MR_OK && total > INT32_MAX)
        status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are too many characters");
    if (status == MR_OK) status = mr_kernel_output(call, 1, MR_SHAPE(total), error);
    if (status == MR_OK && total > 0) memcpy(call->outputs[1].data, characters.data, characters.size_bytes);
    if (status == MR_OK && has_offsets) status = mr_kernel_output(call, 2, MR_SHAPE(total), error);
    if (status == MR_OK && has_offsets && total > 0) memcpy(call->outputs[2].data, starts.data, starts.size_bytes);
    mr_text_deinit(&characters);
    mr_text_deinit(&starts);
    return status;
}

static int64_t split_at(const mr_tensor *splits, int64_t i)
{
    return splits->dtype == MR_INT64 ? mr_tensor_int64s(splits)[i] : mr_tensor_int32s(splits)[i];
}

static mr_status check_splits(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *splits = &call->inputs[1];
    int64_t count = mr_tensor_count(splits), size = mr_tensor_count(&call->inputs[0]);
    if (call->inputs[0].shape.rank != 1 || splits->shape.rank != 1 || count == 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "input_splits must be a vector with at least one "
                              "element, and input_values a vector");
    if (split_at(splits, 0) != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "First value in input_splits must be zero.");
    if (split_at(splits, count - 1) != size)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Last value in input_splits must be equal to length of input_tensor.");
    for (int64_t i = 1; i < count; i++)
        if (split_at(splits, i) < split_at(splits, i - 1))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Values in input_splits must be equal or in ascending order.");
    return MR_OK;
}

static bool is_character(int32_t c)
{
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return false;
    return !(c >= 0xfdd0 && c <= 0xfdef) && (c & 0xfffe) != 0xfffe;
}

static mr_status encode_rows(mr_kernel_call *call, mr_error *error)
{
    const settings *s = call->prepared;
    const mr_tensor *splits = &call->inputs[1];
    const int32_t *values = mr_tensor_int32s(&call->inputs[0]);
    mr_text_output output;
    mr_text_builder text = {0};
    units u = {0};
    MR_TRY(check_splits(call, error));
    MR_TRY(mr_text_begin(call, 0, MR_SHAPE(mr_tensor_count(splits) - 1), &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        for (int64_t j = split_at(splits, i); j < split_at(splits, i + 1) && status == MR_OK; j++) {
            int32_t c = values[j];
            bool is_wrong = !is_character(c);
            if (is_wrong && s->is_strict)
                status = mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                        "Code point is out of range for Unicode, or a noncharacter.");
            /* Ignored ones are written as they are, as in TensorFlow, if the encoding can express them. */
            add_code_point(&u, is_wrong && !s->ignores ? s->replacement : c);
        }
        encode(&u, s->output, &text);
        if (status == MR_OK) status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    mr_text_deinit(&u.bytes);
    return mr_text_end(call, &output, status, error);
}

static mr_status script(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    int32_t *scripts = mr_tensor_int32s(&call->outputs[0]);
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        int32_t c = mr_tensor_int32s(input)[i];
        int low = 0, high = mr_unicode_script_count;
        while (low + 1 < high) {
            int middle = (low + high) / 2;
            if ((int64_t)(mr_unicode_scripts[middle] >> 8) <= c)
                low = middle;
            else
                high = middle;
        }
        scripts[i] = c < 0 || c > 0x10ffff ? -1 : (int32_t)(mr_unicode_scripts[low] & 255);
    }
    return MR_OK;
}

#define WITH_SETTINGS .prepared_size_bytes = sizeof(settings), .prepare = prepare
static const mr_kernel kernels[] = {
    {.op = "UnicodeTranscode", .run = transcode, WITH_SETTINGS},
    {.op = "UnicodeDecode", .run = decode, WITH_SETTINGS},
    {.op = "UnicodeDecodeWithOffsets", .run = decode, WITH_SETTINGS},
    {.op = "UnicodeEncode", .run = encode_rows, WITH_SETTINGS},
    {.op = "UnicodeScript", .run = script},
};
MR_KERNEL_FAMILY(unicode);
