/* Splitting strings into sparse tensors: StringSplit, StringSplitV2. */
#include "kernels/text.h"

#include <stdlib.h>
#include <string.h>

/* The parts of all strings. */
typedef struct parts {
    mr_string *items; /* owned: free() */
    int64_t *rows;    /* owned: free() */
    int64_t count, capacity;
    int64_t row;
    bool failed;
} parts;

static void add_part(parts *p, const char *data, size_t size_bytes)
{
    if (p->count == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 64;
        mr_string *items = reallocarray(p->items, (size_t)capacity, sizeof *items);
        if (items) p->items = items;
        int64_t *rows = items ? reallocarray(p->rows, (size_t)capacity, sizeof *rows) : nullptr;
        if (rows) p->rows = rows;
        p->failed |= !rows;
        if (!rows) return;
        p->capacity = capacity;
    }
    p->items[p->count] = (mr_string){data, size_bytes};
    p->rows[p->count++] = p->row;
}

static void split_at_any(parts *p, mr_string text, mr_string delimiters, bool skip_empty)
{
    if (delimiters.size_bytes == 0) {
        for (size_t i = 0; i < text.size_bytes; i++) add_part(p, text.data + i, 1);
        return;
    }
    for (size_t i = 0, start = 0; text.size_bytes > 0 && i <= text.size_bytes && !p->failed; i++) {
        if (i < text.size_bytes && !memchr(delimiters.data, text.data[i], delimiters.size_bytes)) continue;
        if (i > start || !skip_empty) add_part(p, text.data + start, i - start);
        start = i + 1;
    }
}

static mr_string skip_space(mr_string text)
{
    size_t at = 0;
    while (at < text.size_bytes && mr_text_is_space(text.data[at])) at++;
    return (mr_string){text.data + at, text.size_bytes - at};
}

/* most: the number of splits; 0 and less: any number. */
static void split_at_space(parts *p, mr_string text, int64_t most)
{
    text = skip_space(text);
    for (int64_t splits = 1; text.size_bytes > 0 && !p->failed; splits++) {
        size_t end = 0;
        while (end < text.size_bytes && !mr_text_is_space(text.data[end])) end++;
        add_part(p, text.data, end);
        text = skip_space((mr_string){text.data + end, text.size_bytes - end});
        if (splits != most) continue;
        add_part(p, text.data, text.size_bytes);
        return;
    }
}

static void split_at_text(parts *p, mr_string text, mr_string separator, int64_t most)
{
    for (int64_t splits = 0; !p->failed && (most <= 0 || splits < most); splits++) {
        const char *found =
            text.size_bytes > 0 ? memmem(text.data, text.size_bytes, separator.data, separator.size_bytes) : nullptr;
        if (!found) break;
        size_t size = (size_t)(found - text.data);
        add_part(p, text.data, size);
        text = (mr_string){found + separator.size_bytes, text.size_bytes - size - separator.size_bytes};
    }
    add_part(p, text.data, text.size_bytes);
}

static mr_status put(mr_kernel_call *call, const parts *p, mr_error *error)
{
    if (p->failed) return mr_fail_memory(error, (size_t)p->count * sizeof *p->items);
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(p->count, 2), error));
    MR_TRY(mr_kernel_output(call, 2, MR_SHAPE(2), error));
    int64_t *indices = mr_tensor_int64s(&call->outputs[0]), *shape = mr_tensor_int64s(&call->outputs[2]), column = 0;
    shape[0] = mr_tensor_count(&call->inputs[0]);
    shape[1] = 0;
    for (int64_t i = 0; i < p->count; i++) {
        column = i > 0 && p->rows[i] == p->rows[i - 1] ? column + 1 : 0;
        indices[2 * i] = p->rows[i];
        indices[2 * i + 1] = column;
        shape[1] = MR_MAX(shape[1], column + 1);
    }
    return mr_tensor_init_strings(&call->outputs[1], MR_SHAPE(p->count), p->items, error);
}

static mr_status split(mr_kernel_call *call, bool is_second, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    const char *name = is_second ? "sep" : "delimiter";
    char text[MR_SHAPE_TEXT_SIZE];
    if (input->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be a vector, got shape: %s",
                              mr_shape_text(input->shape, text, sizeof text));
    if (call->inputs[1].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar, got shape: %s", name,
                              mr_shape_text(call->inputs[1].shape, text, sizeof text));
    mr_string separator = mr_tensor_strings(&call->inputs[1])[0];
    bool skip_empty = mr_attr_bool_or(call->node->attrs, "skip_empty", true);
    int64_t most = mr_attr_int_or(call->node->attrs, "maxsplit", -1);
    parts p = {0};
    for (; p.row < input->shape.dims[0] && !p.failed; p.row++) {
        mr_string one = mr_tensor_strings(input)[p.row];
        if (!is_second)
            split_at_any(&p, one, separator, skip_empty);
        else if (most == 0)
            add_part(&p, one.data, one.size_bytes);
        else if (separator.size_bytes == 0)
            split_at_space(&p, one, most);
        else
            split_at_text(&p, one, separator, most);
    }
    mr_status status = put(call, &p, error);
    free(p.items);
    free(p.rows);
    return status;
}

static mr_status string_split(mr_kernel_call *call, mr_error *error)
{
    return split(call, false, error);
}

static mr_status string_split_v2(mr_kernel_call *call, mr_error *error)
{
    return split(call, true, error);
}

static const mr_kernel kernels[] = {
    {.op = "StringSplit", .run = string_split},
    {.op = "StringSplitV2", .run = string_split_v2},
};
MR_KERNEL_FAMILY(string_split);
