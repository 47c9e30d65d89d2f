/* Bytes of strings: as numbers (DecodeRaw, DecodePaddedRaw), and decompressed (DecodeCompressed). */
#include "kernels/text.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

/* The size of the unit in which bytes are ordered: a complex number has two. */
static size_t unit_size(mr_dtype dtype)
{
    size_t size = mr_dtype_size(dtype);
    return dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 ? size / 2 : size;
}

static void reverse_units(char *bytes, size_t size_bytes, size_t unit)
{
    for (size_t at = 0; unit > 1 && at + unit <= size_bytes; at += unit)
        for (size_t i = 0; i < unit / 2; i++) {
            char swapped = bytes[at + i];
            bytes[at + i] = bytes[at + unit - 1 - i];
            bytes[at + unit - 1 - i] = swapped;
        }
}

/* Writes the strings, each in `length` bytes: cut, or followed by zeros. */
static mr_status put_bytes(mr_kernel_call *call, int64_t length, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_dtype dtype = call->node->output_dtypes[0];
    bool is_little = mr_attr_bool_or(call->node->attrs, "little_endian", true);
    mr_shape shape = input->shape;
    if (shape.rank == MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    shape.dims[shape.rank++] = length / (int64_t)mr_dtype_size(dtype);
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    if (length == 0) return MR_OK;
    for (int64_t i = 0, count = mr_tensor_count(input); i < count; i++) {
        mr_string text = mr_tensor_strings(input)[i];
        char *target = (char *)call->outputs[0].data + i * length;
        size_t copied = MR_MIN(text.size_bytes, (size_t)length);
        if (copied > 0) memcpy(target, text.data, copied);
        memset(target + copied, 0, (size_t)length - copied);
        if (!is_little) reverse_units(target, (size_t)length, unit_size(dtype));
        for (int64_t j = 0; dtype == MR_BOOL && j < length; j++) target[j] = target[j] != 0;
    }
    return MR_OK;
}

static mr_status decode_raw(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    mr_dtype dtype = call->node->output_dtypes[0];
    int64_t count = mr_tensor_count(input), width = (int64_t)mr_dtype_size(dtype);
    const mr_string *texts = mr_tensor_strings(input);
    int64_t length = count > 0 ? (int64_t)texts[0].size_bytes : 0;
    for (int64_t i = 1; i < count; i++)
        if ((int64_t)texts[i].size_bytes != length)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "DecodeRaw requires input strings to all be the same size, but element %" PRId64
                                  " has size %" PRId64 " != %zu",
                                  i, length, texts[i].size_bytes);
    if (length % width != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input to DecodeRaw has length %" PRId64 " that is not a multiple of %" PRId64
                              ", the size of %s",
                              length, width, mr_dtype_name(dtype));
    return put_bytes(call, length, error);
}

static mr_status decode_padded_raw(mr_kernel_call *call, mr_error *error)
{
    int64_t length, width = (int64_t)mr_dtype_size(call->node->output_dtypes[0]);
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "k must be scalar, got shape %s",
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    MR_TRY(mr_kernel_int(call, 1, "fixed_length", &length, error));
    if (length % width != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "fixed_length (%" PRId64 ") must be a multiple of the size of out_type (%" PRId64 ")",
                              length, width);
    if (length <= 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "fixed_length (%" PRId64 ") must be greater than zero.", length);
    return put_bytes(call, length, error);
}

/* ---- DecodeCompressed ---- */

typedef enum compression { COMPRESSION_NONE, COMPRESSION_ZLIB, COMPRESSION_GZIP } compression;

static mr_status prepare_compressed(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_string type = mr_attr_string_or(node->attrs, "compression_type", "");
    compression *kind = prepared;
    *kind = mr_string_equal(type, MR_STR("ZLIB"))   ? COMPRESSION_ZLIB
            : mr_string_equal(type, MR_STR("GZIP")) ? COMPRESSION_GZIP
                                                    : COMPRESSION_NONE;
    if (*kind == COMPRESSION_NONE && type.size_bytes > 0)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "Only ZLIB, GZIP or NONE are supported compressions");
    return MR_OK;
}

/* The stream may be cut short; what it has is then the result, as in TensorFlow. Bytes after it are ignored. */
static mr_status inflate_one(mr_kernel_call *call, mr_string text, mr_text_builder *result, mr_error *error)
{
    constexpr size_t STEP = 64 * 1024;
    z_stream stream = {.next_in = (unsigned char *)text.data};
    unsigned char buffer[STEP];
    int window = *(const compression *)call->prepared == COMPRESSION_GZIP ? MAX_WBITS + 16 : MAX_WBITS, code = Z_OK;
    if (text.size_bytes > UINT32_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the compressed string is too large");
    stream.avail_in = (unsigned)text.size_bytes;
    if (inflateInit2(&stream, window) != Z_OK) return mr_fail_memory(error, 40'000);
    while (code == Z_OK && !result->failed) {
        stream.next_out = buffer;
        stream.avail_out = STEP;
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR)
            mr_text_add(result, buffer, STEP - stream.avail_out);
    }
    mr_status status = MR_OK;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        status = mr_kernel_fail(call->node, error, MR_DATA_LOSS, "inflate() failed with error %d: %s", code,
                                stream.msg ? stream.msg : "");
    inflateEnd(&stream);
    return status;
}

static mr_status decode_compressed(mr_kernel_call *call, mr_error *error)
{
    mr_text_output output;
    mr_text_builder text = {0};
    MR_TRY(mr_text_begin(call, 0, call->inputs[0].shape, &output, error));
    mr_status status = MR_OK;
    for (int64_t i = 0; i < output.count && status == MR_OK; i++) {
        output.items[i] = mr_tensor_strings(&call->inputs[0])[i];
        if (*(const compression *)call->prepared == COMPRESSION_NONE) continue;
        status = inflate_one(call, output.items[i], &text, error);
        output.items[i] = (mr_string){0};
        if (status == MR_OK) status = mr_text_put(&output, i, &text, error);
    }
    mr_text_deinit(&text);
    return mr_text_end(call, &output, status, error);
}

static const mr_kernel kernels[] = {
    {.op = "DecodeRaw", .run = decode_raw},
    {.op = "DecodePaddedRaw", .run = decode_padded_raw},
    {.op = "DecodeCompressed",
     .run = decode_compressed,
     .prepared_size_bytes = sizeof(compression),
     .prepare = prepare_compressed},
};
MR_KERNEL_FAMILY(decode_raw);
