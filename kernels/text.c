/* String outputs, growing strings, UTF-8. */
#include "kernels/text.h"

#include <stdlib.h>
#include <string.h>

mr_status mr_text_begin(mr_kernel_call *call, int index, mr_shape shape, mr_text_output *output, mr_error *error)
{
    *output = (mr_text_output){0};
    MR_TRY(mr_sink_init(call, index, shape, &output->sink, error));
    output->items = output->sink.data;
    output->count = output->sink.count;
    return MR_OK;
}

mr_status mr_text_end(mr_kernel_call *call, mr_text_output *output, mr_status failed, mr_error *error)
{
    mr_status status = mr_sink_finish(call, &output->sink, failed, error);
    mr_arena_deinit(&output->arena);
    return status;
}

void mr_text_add(mr_text_builder *builder, const void *bytes, size_t size_bytes)
{
    if (size_bytes == 0 || builder->failed) return;
    size_t wanted;
    if (__builtin_add_overflow(builder->size_bytes, size_bytes, &wanted)) {
        builder->failed = true;
        return;
    }
    if (wanted > builder->capacity_bytes) {
        size_t capacity = wanted < 128 ? 256 : wanted > SIZE_MAX / 2 ? wanted : 2 * wanted;
        char *larger = realloc(builder->data, capacity);
        if (larger == nullptr) {
            builder->failed = true;
            return;
        }
        builder->data = larger;
        builder->capacity_bytes = capacity;
    }
    memcpy(builder->data + builder->size_bytes, bytes, size_bytes);
    builder->size_bytes = wanted;
}

mr_status mr_text_put(mr_text_output *output, int64_t index, mr_text_builder *builder, mr_error *error)
{
    if (builder->failed) return mr_fail_memory(error, builder->size_bytes);
    if (builder->size_bytes == 0) return MR_OK;
    char *copy = mr_arena_copy(&output->arena, builder->data, builder->size_bytes);
    if (copy == nullptr) return mr_fail_memory(error, builder->size_bytes);
    output->items[index] = (mr_string){copy, builder->size_bytes};
    builder->size_bytes = 0;
    return MR_OK;
}

size_t mr_utf8_decode(mr_string text, size_t at, int32_t *code_point, bool *is_valid)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    size_t left = text.size_bytes - at, length = 1;
    int32_t lead = bytes[0], low = 0x80, high = 0xbf;
    *is_valid = true;
    *code_point = lead;
    if (lead < 0x80) return 1;
    *code_point = 0xfffd;
    *is_valid = false;
    size_t wanted = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
    if (wanted == 0) return 1;
    int32_t value = lead & (0xff >> (wanted + 1));
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    for (; length < wanted; length++) {
        if (length >= left || bytes[length] < low || bytes[length] > high) return length;
        value = value << 6 | (bytes[length] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *code_point = value;
    *is_valid = true;
    return wanted;
}

size_t mr_utf8_encode(int32_t code_point, char bytes[4])
{
    uint32_t c = (uint32_t)code_point;
    if (c >= 0xd800 && c <= 0xdfff) c = 0xfffd;
    if (c < 0x80) {
        bytes[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)((0xf00 >> length & 0xff) | c);
    return length;
}
