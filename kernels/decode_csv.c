/* DecodeCSV: each record is split into fields, one for each output. */
#include "kernels/text.h"

#include <inttypes.h>
#include <string.h>

typedef struct csv {
    char delimiter;
    bool has_quotes;
    mr_string na_value;
    int32_t count; /* of outputs */
} csv;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    csv *p = prepared;
    mr_string delimiter = mr_attr_string_or(node->attrs, "field_delim", ",");
    const mr_attr *columns = mr_attrs_find(node->attrs, "select_cols");
    p->has_quotes = mr_attr_bool_or(node->attrs, "use_quote_delim", true);
    p->na_value = mr_attr_string_or(node->attrs, "na_value", "");
    p->count = node->output_count;
    if (delimiter.size_bytes != 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "field_delim should be only 1 char");
    p->delimiter = delimiter.data[0];
    if (columns == nullptr || columns->count == 0) return MR_OK;
    if (columns->count != node->output_count)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "select_cols should match output size");
    for (int32_t i = 0; i < columns->count; i++) {
        if (columns->values[i].integer < 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "select_cols should be non-negative indices");
        if (i > 0 && columns->values[i].integer <= columns->values[i - 1].integer)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                                  "select_cols should be strictly increasing indices");
    }
    return MR_OK;
}

/* One field of a record: *field is borrowed from the record, or from text if quotes had to be removed. */
static const char *take_field(const csv *p, mr_string record, size_t *at, mr_text_builder *text, mr_string *field)
{
    const char *data = record.data;
    size_t size = record.size_bytes, begin = *at;
    if (!p->has_quotes || data[begin] != '"') {
        for (; *at < size && data[*at] != p->delimiter; ++*at)
            if ((p->has_quotes && data[*at] == '"') || data[*at] == '\n' || data[*at] == '\r')
                return "Unquoted fields cannot have quotes/CRLFs inside";
        *field = (mr_string){data + begin, *at - begin};
        ++*at;
        return nullptr;
    }
    size_t used = text->size_bytes;
    for (++*at; *at + 1 < size && (data[*at] != '"' || data[*at + 1] != p->delimiter); ++*at) {
        if (data[*at] == '"' && data[++*at] != '"') return "Quote inside a string has to be escaped by another quote";
        mr_text_add(text, data + *at, 1);
    }
    if (*at >= size || data[*at] != '"' || (*at + 1 < size && data[*at + 1] != p->delimiter))
        return "Quoted field has to end with quote followed by delim or end";
    *at += 2;
    *field = (mr_string){nullptr, text->size_bytes - used}; /* text may still move */
    return nullptr;
}

/* Splits a record into the wanted fields; *found is their number, of which at most p->count are stored. Returns null,
 * or what is wrong with the field *column. */
static const char *split(const csv *p, const mr_attr *columns, mr_string record, mr_text_builder *text,
                         mr_string *fields, int64_t *found, int64_t *column)
{
    bool all = columns == nullptr || columns->count == 0;
    *column = *found = 0;
    for (size_t at = 0; at < record.size_bytes;) {
        if (record.data[at] == '\n' || record.data[at] == '\r') {
            at++;
            continue;
        }
        mr_string field;
        size_t used = text->size_bytes;
        const char *reason = take_field(p, record, &at, text, &field);
        if (reason) return reason;
        ++*column;
        if (!all && columns->values[*found].integer != *column - 1) {
            text->size_bytes = used;
            continue;
        }
        if (*found < p->count) fields[*found] = field;
        if (++*found == p->count && !all) return nullptr;
    }
    bool wants_last = record.size_bytes > 0 && record.data[record.size_bytes - 1] == p->delimiter;
    if (!wants_last || (!all && columns->values[*found].integer != *column)) return nullptr;
    if (*found < p->count) fields[*found] = (mr_string){"", 0};
    ++*found;
    return nullptr;
}

/* Parses one field as the dtype of its output. Strings are stored in the list of the output. */
static mr_status put_field(mr_kernel_call *call, const csv *p, int32_t f, int64_t record, mr_string field,
                           mr_sink *sinks, mr_error *error)
{
    const mr_tensor *value = &call->inputs[1 + f];
    mr_sink *sink = &sinks[f];
    mr_dtype dtype = call->node->output_dtypes[f];
    char *target = (char *)sink->data + (size_t)record * sink->element_size;
    if (field.size_bytes == 0 || mr_string_equal(field, p->na_value)) {
        if (mr_tensor_count(value) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Field %d is required but missing in record %" PRId64 "!", f, record);
        memcpy(target, value->data, sink->element_size);
        return MR_OK;
    }
    bool is_valid = true;
    switch (dtype) {
    case MR_FLOAT:
        is_valid = mr_text_to_float(field, (float *)target);
        break;
    case MR_DOUBLE:
        is_valid = mr_text_to_double(field, (double *)target);
        break;
    case MR_INT32:
        is_valid = mr_text_to_int32(field, (int32_t *)target);
        break;
    case MR_INT64:
        is_valid = mr_text_to_int64(field, (int64_t *)target);
        break;
    default:
        *(mr_string *)target = field;
        break;
    }
    if (is_valid) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Field %d in record %" PRId64 " is not a valid %s: %.*s", f, record, mr_dtype_name(dtype),
                          (int)MR_MIN(field.size_bytes, (size_t)200), field.data);
}

static mr_status put_record(mr_kernel_call *call, const csv *p, int64_t index, mr_arena *arena, mr_string *fields,
                            mr_text_builder *text, mr_sink *sinks, mr_error *error)
{
    const mr_attr *columns = mr_attrs_find(call->node->attrs, "select_cols");
    mr_string record = mr_tensor_strings(&call->inputs[0])[index];
    int64_t found, column;
    text->size_bytes = 0;
    const char *reason = split(p, columns, record, text, fields, &found, &column);
    if (reason)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s: field %" PRId64 " in record %" PRId64,
                              reason, column, index);
    if (found != p->count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expect %d fields but have %" PRId64 " in record %" PRId64, p->count, found, index);
    char *unquoted = mr_arena_copy(arena, text->data ? text->data : "", text->size_bytes);
    if (text->failed || unquoted == nullptr) return mr_fail_memory(error, text->size_bytes);
    for (int32_t f = 0; f < p->count; f++) {
        if (fields[f].data == nullptr) {
            fields[f].data = unquoted;
            unquoted += fields[f].size_bytes;
        }
        MR_TRY(put_field(call, p, f, index, fields[f], sinks, error));
    }
    return MR_OK;
}

static mr_status decode_csv(mr_kernel_call *call, mr_error *error)
{
    const csv *p = call->prepared;
    for (int32_t f = 0; f < p->count; f++)
        if (call->inputs[1 + f].shape.rank > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Each record default should be at most rank 1");
    for (int32_t f = 0; f < p->count; f++)
        if (mr_tensor_count(&call->inputs[1 + f]) > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "There should only be 1 default per field but field %d has %" PRId64, f,
                                  mr_tensor_count(&call->inputs[1 + f]));
    mr_arena arena = {0};
    mr_text_builder text = {0};
    mr_sink *sinks = MR_ARENA_NEW(&arena, mr_sink, (size_t)p->count);
    mr_string *fields = MR_ARENA_NEW(&arena, mr_string, (size_t)p->count);
    mr_status status = sinks && fields ? MR_OK : mr_fail_memory(error, sizeof(mr_sink));
    int32_t made = 0;
    while (made < p->count && status == MR_OK) {
        status = mr_sink_init(call, made, call->inputs[0].shape, &sinks[made], error);
        made += status == MR_OK;
    }
    for (int64_t i = 0, count = mr_tensor_count(&call->inputs[0]); i < count && status == MR_OK; i++)
        status = put_record(call, p, i, &arena, fields, &text, sinks, error);
    for (int32_t f = 0; f < made; f++) status = mr_sink_finish(call, &sinks[f], status, error);
    mr_text_deinit(&text);
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "DecodeCSV", .run = decode_csv, .prepared_size_bytes = sizeof(csv), .prepare = prepare},
};
MR_KERNEL_FAMILY(decode_csv);
