/* Operators on the bytes and characters of each string: lengths, substrings, case, white space, base64. */
#include "kernels/text.h"
#include "kernels/unicode.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static mr_status string_length(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    bool by_character = mr_string_equal(mr_attr_string_or(call->node->attrs, "unit", "BYTE"), MR_STR("UTF8_CHAR"));
    MR_TRY(mr_kernel_output(call, 0, input->shape, error));
    int32_t *lengths = mr_tensor_int32s(&call->outputs[0]);
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        mr_string text = mr_tensor_strings(input)[i];
        size_t length = by_character ? 0 : text.size_bytes;
        for (size_t at = 0; by_character && at < text.size_bytes; at++) length += !mr_utf8_is_trail(text.data[at]);
        lengths[i] = (int32_t)length;
    }
    return MR_OK;
}

static mr_status string_strip(mr_kernel_call *call, mr_error *error)
{
    mr_text_output output;
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    for (int64_t i = 0; i < output.count; i++) {
        mr_string text = mr_tensor_strings(&call->inputs[0])[i];
        while (text.size_bytes > 0 && mr_text_is_space(text.data[text.size_bytes - 1])) text.size_bytes--;
        while (text.size_bytes > 0 && mr_text_is_space(text.data[0]))
            text = (mr_string){text.data + 1, text.size_bytes - 1};
        output.items[i] = text;
    }
    return mr_text_end(call, &output, MR_OK, error);
}

/* ---- Case ---- */

static mr_status prepare_case(const mr_kernel_node *node, void *, mr_error *error)
{
    mr_string encoding = mr_attr_string_or(node->attrs, "encoding", "");
    if (encoding.size_bytes == 0 || mr_string_equal(encoding, MR_STR("utf-8"))) return MR_OK;
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                          "only utf-8 or '' (no encoding) is supported, received %.*s", (int)encoding.size_bytes,
                          encoding.data);
}

static mr_status change_case(mr_kernel_call *call, bool to_upper, mr_error *error)
{
    bool is_utf8 = mr_attr_string_or(call->node->attrs, "encoding", "").size_bytes > 0;
    char first = to_upper ? 'a' : 'A';
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        mr_string one = mr_tensor_strings(&call->inputs[0])[i];
        if (is_utf8)
            mr_unicode_change_case(one, to_upper, &text);
        else
            mr_text_add_string(&text, one);
        for (size_t at = 0; !is_utf8 && at < text.size_bytes; at++)
            if (text.data[at] >= first && text.data[at] < first + 26) text.data[at] ^= 32;
        status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

static mr_status string_lower(mr_kernel_call *call, mr_error *error)
{
    return change_case(call, false, error);
}

static mr_status string_upper(mr_kernel_call *call, mr_error *error)
{
    return change_case(call, true, error);
}

/* ---- Substr ---- */

static bool forward(mr_string text, int64_t characters, size_t *at)
{
    int64_t counted = 0;
    for (; counted < characters && *at < text.size_bytes; counted++) do
            ++*at;
        while (*at < text.size_bytes && mr_utf8_is_trail(text.data[*at]));
    return counted == characters;
}

static bool backward(mr_string text, int64_t characters, size_t *at)
{
    int64_t counted = 0;
    for (; counted < characters && *at > 0; counted++) do
            --*at;
        while (*at > 0 && mr_utf8_is_trail(text.data[*at]));
    return counted == characters;
}

/* Both count characters. A negative pos counts from the end. */
static bool part_of_characters(mr_string text, int64_t pos, int64_t len, mr_string *part)
{
    size_t begin = 0, end;
    if (pos >= 0) {
        if (!forward(text, pos, &begin)) return false;
        end = begin;
        (void)forward(text, len, &end);
    } else {
        int64_t skipped = (int64_t)(-(uint64_t)pos - (uint64_t)len);
        end = text.size_bytes;
        if (skipped < 0) skipped = 0;
        if (!backward(text, skipped, &end)) return false;
        begin = end;
        if (!backward(text, (int64_t)(-(uint64_t)pos - (uint64_t)skipped), &begin)) return false;
    }
    *part = (mr_string){text.data + begin, end - begin};
    return true;
}

/* Both count bytes. A negative len is the rest. */
static bool part_of_bytes(mr_string text, int64_t pos, int64_t len, mr_string *part)
{
    int64_t size = (int64_t)text.size_bytes, begin = pos < 0 ? size + pos : pos;
    if (begin < 0 || begin > size) return false;
    int64_t rest = size - begin;
    *part = (mr_string){text.data + begin, (size_t)(len < 0 || len > rest ? rest : len)};
    return true;
}

static int64_t integer_at(const mr_tensor *tensor, int64_t i)
{
    return tensor->dtype == MR_INT64 ? mr_tensor_int64s(tensor)[i] : mr_tensor_int32s(tensor)[i];
}

typedef struct substr {
    mr_shape output;
    int64_t input_strides[2], pos_strides[2]; /* of the last two dimensions, if the shapes differ */
    bool broadcasts;
} substr;

static mr_status plan_substr(mr_kernel_call *call, substr *s, mr_error *error)
{
    mr_shape input = call->inputs[0].shape, pos = call->inputs[1].shape, len = call->inputs[2].shape;
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    *s = (substr){.output = input};
    if (!mr_shape_equal(pos, len))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "pos and len should have the same shape, got: %s vs. %s", mr_shape_text(pos, a, sizeof a),
                              mr_shape_text(len, b, sizeof b));
    if (pos.rank == 0 || mr_shape_equal(input, pos)) return MR_OK;
    s->broadcasts = true;
    int rank = MR_MAX(input.rank, pos.rank);
    s->output = (mr_shape){.rank = rank};
    int64_t input_stride = 1, pos_stride = 1;
    for (int i = 1; i <= rank; i++) {
        int64_t m = i <= input.rank ? input.dims[input.rank - i] : 1, n = i <= pos.rank ? pos.dims[pos.rank - i] : 1;
        if (m != n && m != 1 && n != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                                  mr_shape_text(input, a, sizeof a), mr_shape_text(pos, b, sizeof b));
        s->output.dims[rank - i] = m == 1 ? n : m;
        if (i > 2) continue;
        s->input_strides[2 - i] = m == 1 ? 0 : input_stride;
        s->pos_strides[2 - i] = n == 1 ? 0 : pos_stride;
        if (i == 1) input_stride = m;
        if (i == 1) pos_stride = n;
    }
    if (rank > 2)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "Substr broadcast not implemented for %d dimensions",
                              rank);
    return MR_OK;
}

static mr_status substr_error(mr_kernel_call *call, const substr *s, bool by_character, int64_t pos, mr_string text,
                              int64_t i, mr_error *error)
{
    int64_t columns = s->broadcasts ? s->output.dims[s->output.rank - 1] : 1;
    bool is_matrix = s->broadcasts && s->output.rank == 2;
    if (by_character)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "pos %" PRId64 " out of range for string at index %" PRId64, pos,
                              is_matrix ? i / columns : i);
    int shown = (int)MR_MIN(text.size_bytes, (size_t)200);
    if (is_matrix)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "pos %" PRId64 " out of range for string b'%.*s' at index (%" PRId64 ", %" PRId64 ")",
                              pos, shown, text.data, i / columns, i % columns);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "pos %" PRId64 " out of range for string b'%.*s' at index %" PRId64, pos, shown, text.data,
                          i);
}

static mr_status run_substr(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *pos = &call->inputs[1], *len = &call->inputs[2];
    bool by_character = mr_string_equal(mr_attr_string_or(call->node->attrs, "unit", "BYTE"), MR_STR("UTF8_CHAR"));
    bool is_scalar = pos->shape.rank == 0;
    substr s;
    mr_text_output output;
    MR_TRY(plan_substr(call, &s, error));
    MR_TRY(mr_text_begin(call, 0, s.output, &output, error));
    mr_status status = MR_OK;
    int64_t columns = s.broadcasts ? s.output.dims[s.output.rank - 1] : 1;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        assert(columns > 0); /* there is an element */
        int64_t row = i / columns, column = i % columns;
        int64_t from = s.broadcasts ? row * s.input_strides[0] + column * s.input_strides[1] : i;
        int64_t at = s.broadcasts ? row * s.pos_strides[0] + column * s.pos_strides[1] : is_scalar ? 0 : i;
        mr_string text = mr_tensor_strings(&call->inputs[0])[from];
        int64_t p = integer_at(pos, at), l = integer_at(len, at);
        if (text.data == nullptr) text.data = "";
        bool found = by_character ? part_of_characters(text, p, l, &output.items[i])
                                  : part_of_bytes(text, p, l, &output.items[i]);
        if (!found) status = substr_error(call, &s, by_character, p, text, i, error);
    }
    return mr_text_end(call, &output, status, error);
}

/* ---- Base64, with - and _ in place of + and / ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static mr_status encode_base64(mr_kernel_call *call, mr_error *error)
{
    bool pad = mr_attr_bool_or(call->node->attrs, "pad", false);
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        mr_string one = mr_tensor_strings(&call->inputs[0])[i];
        for (size_t at = 0; at < one.size_bytes; at += 3) {
            size_t count = MR_MIN(one.size_bytes - at, (size_t)3);
            uint32_t bits = 0;
            for (size_t j = 0; j < 3; j++) bits = bits << 8 | (j < count ? (unsigned char)one.data[at + j] : 0);
            char group[4];
            for (int j = 0; j < 4; j++) group[j] = alphabet[bits >> (18 - 6 * j) & 63];
            mr_text_add(&text, group, count + 1);
            if (pad) mr_text_add(&text, "==", 3 - count);
        }
        status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

static mr_status decode_one(mr_kernel_call *call, mr_string text, mr_text_builder *result, mr_error *error)
{
    /* Padding is part of a group of four. */
    size_t size = text.size_bytes;
    for (int i = 0; i < 2 && text.size_bytes % 4 == 0 && size > 0 && text.data[size - 1] == '='; i++) size--;
    if (size % 4 == 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Base64 string length cannot be 1 modulo 4.");
    uint32_t bits = 0;
    for (size_t i = 0; i < size; i++) {
        const char *found = text.data[i] ? strchr(alphabet, text.data[i]) : nullptr;
        if (found == nullptr)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid character found in base64.");
        bits = bits << 6 | (uint32_t)(found - alphabet);
        if (i % 4 != 3) continue;
        mr_text_add(result, (unsigned char[]){bits >> 16 & 255, bits >> 8 & 255, bits & 255}, 3);
        bits = 0;
    }
    if (size % 4 == 2) mr_text_add(result, (unsigned char[]){bits >> 4 & 255}, 1);
    if (size % 4 == 3) mr_text_add(result, (unsigned char[]){bits >> 10 & 255, bits >> 2 & 255}, 2);
    return MR_OK;
}

static mr_status decode_base64(mr_kernel_call *call, mr_error *error)
{
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        status = decode_one(call, mr_tensor_strings(&call->inputs[0])[i], &text, error);
        if (status == MR_OK) status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

static const mr_kernel kernels[] = {
    {.op = "StringLength", .run = string_length},
    {.op = "StringStrip", .run = string_strip},
    {.op = "StringLower", .run = string_lower, .prepared_size_bytes = 1, .prepare = prepare_case},
    {.op = "StringUpper", .run = string_upper, .prepared_size_bytes = 1, .prepare = prepare_case},
    {.op = "Substr", .run = run_substr},
    {.op = "EncodeBase64", .run = encode_base64},
    {.op = "DecodeBase64", .run = decode_base64},
};
MR_KERNEL_FAMILY(string_bytes);
