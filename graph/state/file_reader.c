/* Readers: the resources, and the operators that name and use them. */
#include "graph/state/queue.h"
#include "graph/state/waiting.h"

#include "base/options.h"

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
        if (mr_attr_string_or(&node->attrs, "encoding", "").size_bytes > 0)
            return mr_fail(error, MR_UNIMPLEMENTED, "encoding is not supported");
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
    if (count < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "num_records must be at least 1, but is %lld",
                              (long long)count);
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
};
const mr_kernel_table mr_state_kernels_file_reader = {kernels, sizeof kernels / sizeof kernels[0]};
