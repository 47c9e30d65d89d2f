/* Readers: the resources, and the operators that name and use them. */
#include "graph/state/queue.h"
#include "graph/state/waiting.h"

#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader_state {
    mr_resource resource;
    mr_reader *reader;
} reader_state;

static void reader_deinit(mr_resource *resource)
{
    mr_reader_free(((reader_state *)resource)->reader);
}

static void reader_reset(mr_resource *resource)
{
    mr_reader *reader = ((reader_state *)resource)->reader;
    if (reader) mr_reader_reset(reader);
}

static const mr_resource_class reader_class = {
    .name = "reader", .size_bytes = sizeof(reader_state), .deinit = reader_deinit, .reset = reader_reset};

static mr_status read_size(const mr_node *node, const char *attr, size_t *size, mr_error *error)
{
    int64_t value = mr_attr_int_or(&node->attrs, attr, 0);
    if (value < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s must be >= 0 but got %lld", attr, (long long)value);
    *size = (size_t)value;
    return MR_OK;
}

static mr_status new_reader(const mr_node *node, mr_reader_kind kind, mr_reader **reader, mr_error *error)
{
    mr_reader_options options = {.size = sizeof options};
    if (kind == MR_READER_TEXT_LINE) {
        int64_t skip = mr_attr_int_or(&node->attrs, "skip_header_lines", 0);
        if (skip < 0 || skip > INT32_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "skip_header_lines is %lld", (long long)skip);
        options.skip_header_lines = (int32_t)skip;
    }
    if (kind == MR_READER_FIXED_LENGTH) {
        MR_TRY(read_size(node, "header_bytes", &options.header_bytes, error));
        MR_TRY(read_size(node, "record_bytes", &options.record_bytes, error));
        MR_TRY(read_size(node, "footer_bytes", &options.footer_bytes, error));
        MR_TRY(read_size(node, "hop_bytes", &options.hop_bytes, error));
        /* GZIP is detected; TensorFlow ignores an encoding that it does not know. */
        options.zlib = mr_string_equal(mr_attr_string_or(&node->attrs, "encoding", ""), MR_STR("ZLIB"));
    }
    return mr_reader_new(kind, &options, reader, error);
}

static mr_status make_reader(mr_resource_table *resources, const mr_node *node, mr_reader_kind kind,
                             mr_resource **resource, mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &reader_class, node, resource, &made, error));
    reader_state *state = (reader_state *)*resource;
    return state->reader ? MR_OK : new_reader(node, kind, &state->reader, error);
}

#define MAKE(function, kind)                                                                                           \
    static mr_status function(mr_resource_table *resources, const mr_node *node, mr_device *, mr_resource **resource,  \
                              mr_error *error)                                                                         \
    {                                                                                                                  \
        return make_reader(resources, node, kind, resource, error);                                                    \
    }
MAKE(make_whole, MR_READER_WHOLE_FILE)
MAKE(make_lines, MR_READER_TEXT_LINE)
MAKE(make_fixed, MR_READER_FIXED_LENGTH)
MAKE(make_records, MR_READER_TF_RECORD)
MAKE(make_identity, MR_READER_IDENTITY)

static const mr_state_row rows[] = {
    {.op = "WholeFileReaderV2", .make = make_whole},         {.op = "WholeFileReader", .make = make_whole},
    {.op = "TextLineReaderV2", .make = make_lines},          {.op = "TextLineReader", .make = make_lines},
    {.op = "FixedLengthRecordReaderV2", .make = make_fixed}, {.op = "FixedLengthRecordReader", .make = make_fixed},
    {.op = "TFRecordReaderV2", .make = make_records},        {.op = "TFRecordReader", .make = make_records},
    {.op = "IdentityReaderV2", .make = make_identity},       {.op = "IdentityReader", .make = make_identity},
};

const mr_state_table mr_state_file_reader = {rows, sizeof rows / sizeof rows[0]};

/* ---- Use ---- */

static mr_status reader_at(const mr_kernel_call *call, mr_reader **reader, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, 0, &reader_class, &resource, error));
    *reader = ((reader_state *)resource)->reader;
    if (*reader) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "the reader was not created");
}

/* count -1: one record */
static mr_status read_records(mr_kernel_call *call, int64_t count, mr_error *error)
{
    mr_reader *reader;
    mr_resource *names;
    MR_TRY(reader_at(call, &reader, error));
    MR_TRY(mr_handle_get(call, 1, &mr_queue_class, &names, error));
    mr_queue *queue = ((mr_queue_state *)names)->queue;
    if (!queue) return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "the queue was not created");
    mr_queue_waiting waiting;
    mr_queue_waiting_init(&waiting, call);
    mr_status status =
        mr_reader_read_with(reader, queue, count, &call->outputs[0], &call->outputs[1], &waiting.patience, error);
    return mr_queue_waiting_end(&waiting, status, error);
}

static mr_status read_one(mr_kernel_call *call, mr_error *error)
{
    return read_records(call, -1, error);
}

static mr_status read_up_to(mr_kernel_call *call, mr_error *error)
{
    if (call->inputs[2].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_records must be a scalar");
    int64_t count = mr_tensor_int64s(&call->inputs[2])[0];
    if (count < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_records must not be negative, but is %lld",
                              (long long)count);
    if (count == 0) {
        MR_TRY(mr_tensor_init(&call->outputs[0], MR_STRING, MR_SHAPE(0), error));
        return mr_tensor_init(&call->outputs[1], MR_STRING, MR_SHAPE(0), error);
    }
    return read_records(call, count, error);
}

static mr_status records_produced(mr_kernel_call *call, mr_error *error)
{
    mr_reader *reader;
    MR_TRY(reader_at(call, &reader, error));
    return mr_tensor_init_int64(&call->outputs[0], mr_reader_records_produced(reader), error);
}

static mr_status work_units_completed(mr_kernel_call *call, mr_error *error)
{
    mr_reader *reader;
    MR_TRY(reader_at(call, &reader, error));
    return mr_tensor_init_int64(&call->outputs[0], mr_reader_work_units_completed(reader), error);
}

static mr_status reset(mr_kernel_call *call, mr_error *error)
{
    mr_reader *reader;
    MR_TRY(reader_at(call, &reader, error));
    mr_reader_reset(reader);
    return MR_OK;
}

/* ---- Saved state: TensorFlow's ReaderBaseState ---- */

enum { STARTED = 1, FINISHED = 2, PRODUCED = 3, WORK = 4 };

static size_t put_varint(char *text, uint64_t value)
{
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) text[size++] = (char)(value | 0x80);
    text[size++] = (char)value;
    return size;
}

static mr_status serialize_state(mr_kernel_call *call, mr_error *error)
{
    constexpr size_t FIELD_BYTES_MAX = 11;
    mr_reader *reader;
    mr_reader_progress p;
    MR_TRY(reader_at(call, &reader, error));
    MR_TRY(mr_reader_save(reader, &p, error));
    const int64_t numbers[] = {p.started, p.finished, p.produced};
    size_t work_bytes = p.work ? strlen(p.work) : 0, size = 0;
    char *text = malloc(4 * FIELD_BYTES_MAX + work_bytes);
    mr_status status = text ? MR_OK : mr_fail_memory(error, work_bytes);
    for (int i = 0; text && i < 3; i++)
        if (numbers[i] != 0) {
            text[size++] = (char)((STARTED + i) << 3);
            size += put_varint(text + size, (uint64_t)numbers[i]);
        }
    if (text && work_bytes > 0) {
        text[size++] = WORK << 3 | 2;
        size += put_varint(text + size, work_bytes);
        memcpy(text + size, p.work, work_bytes);
        size += work_bytes;
    }
    if (text) status = mr_tensor_init_string(&call->outputs[0], (mr_string){text, size}, error);
    free(text);
    free(p.work);
    return status;
}

static bool take_varint(mr_string *text, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && text->size_bytes > 0; shift += 7) {
        uint8_t byte = (uint8_t)*text->data++;
        text->size_bytes--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Takes a field; one of another number or type is skipped. */
static bool take_field(mr_string *text, int64_t numbers[3], mr_string *work)
{
    uint64_t tag, value;
    if (!take_varint(text, &tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
    uint64_t field = tag >> 3, type = tag & 7, skipped = type == 1 ? 8 : type == 5 ? 4 : 0;
    if (type == 3 || type == 4 || type > 5) return false;
    if (type == 0 || type == 2) {
        if (!take_varint(text, &value)) return false;
        if (type == 0 && field <= PRODUCED) numbers[field - STARTED] = (int64_t)value;
        skipped = type == 2 ? value : 0;
    }
    if (skipped > text->size_bytes) return false;
    if (type == 2 && field == WORK) *work = (mr_string){text->data, skipped};
    text->data += skipped;
    text->size_bytes -= skipped;
    return true;
}

/* The text as in C, for messages. */
static const char *escaped(mr_string text, char *shown, size_t size)
{
    size_t used = 0;
    shown[0] = '\0';
    for (size_t i = 0; i < text.size_bytes && used + 5 < size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        const char *format = c == '"' || c == '\'' || c == '\\' ? "\\%c" : c >= ' ' && c < 0x7f ? "%c" : "\\%03o";
        used += (size_t)snprintf(shown + used, size - used, format, c);
    }
    return shown;
}

static const char *reader_name(const mr_kernel_call *call)
{
    mr_resource *resource = mr_tensor_any_resource(&call->inputs[0]);
    return resource ? resource->name : "";
}

static mr_status restore_state(mr_kernel_call *call, mr_error *error)
{
    char shown[MR_SHAPE_TEXT_SIZE + 200];
    const mr_tensor *state = &call->inputs[1];
    mr_reader *reader;
    int64_t numbers[3] = {0};
    mr_string work = {0};
    MR_TRY(reader_at(call, &reader, error));
    if (state->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Reader state must be scalar, but had shape: %s",
                              mr_shape_text(state->shape, shown, sizeof shown));
    if (!mr_reader_has_state(reader)) return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "Reader RestoreState");
    mr_string text = mr_tensor_strings(state)[0], left = text;
    bool is_valid = true;
    while (is_valid && left.size_bytes > 0) is_valid = take_field(&left, numbers, &work);
    if (!is_valid || (work.size_bytes > 0 && memchr(work.data, 0, work.size_bytes)))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Could not parse state for IdentityReader '%s': %s", reader_name(call),
                              escaped(text, shown, sizeof shown));
    const char *fault = numbers[0] < 0 || numbers[1] < 0 || numbers[2] < 0 ? "Unexpected negative value"
                        : numbers[0] > numbers[1]                          ? "Inconsistent work started vs. finished"
                                                                           : nullptr;
    if (fault)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%s when restoring in IdentityReader '%s': work_started: %lld", fault, reader_name(call),
                              (long long)numbers[0]);
    mr_reader_progress p = {.started = numbers[0], .finished = numbers[1], .produced = numbers[2]};
    if (work.size_bytes > 0 && !(p.work = strndup(work.data, work.size_bytes)))
        return mr_fail_memory(error, work.size_bytes);
    mr_status status = mr_reader_restore(reader, &p, error);
    free(p.work);
    return status;
}

#define BOTH(name, function)                                                                                           \
    {.op = name, .run = function},                                                                                     \
    {                                                                                                                  \
        .op = name "V2", .run = function                                                                               \
    }
static const mr_kernel kernels[] = {
    BOTH("ReaderRead", read_one),
    BOTH("ReaderReadUpTo", read_up_to),
    BOTH("ReaderNumRecordsProduced", records_produced),
    BOTH("ReaderNumWorkUnitsCompleted", work_units_completed),
    BOTH("ReaderReset", reset),
    BOTH("ReaderSerializeState", serialize_state),
    BOTH("ReaderRestoreState", restore_state),
};
const mr_kernel_table mr_state_kernels_file_reader = {kernels, sizeof kernels / sizeof kernels[0]};
