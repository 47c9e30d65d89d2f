/* SerializeTensor and ParseTensor: tensors as TensorProto messages. */
#include "graph/ir/convert.h"
#include "graph/state/serialized.h"

#include "kernels/text.h"
#include "proto/proto.h"
#include <string.h>

/* ---- Writing: TensorFlow's bytes, with all elements in tensor_content unless they are strings ---- */

static void add_varint(mr_text_builder *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) mr_text_add(out, (unsigned char[]){(value & 0x7f) | 0x80}, 1);
    mr_text_add(out, (unsigned char[]){value & 0x7f}, 1);
}

/* The tag of a field whose value has a length. */
static void add_bytes(mr_text_builder *out, int field, const void *bytes, size_t size_bytes)
{
    add_varint(out, (uint64_t)field << 3 | 2);
    add_varint(out, size_bytes);
    mr_text_add(out, bytes, size_bytes);
}

static void add_shape(mr_text_builder *out, mr_shape shape)
{
    mr_text_builder dims = {0}, dim = {0};
    for (int i = 0; i < shape.rank; i++) {
        dim.size_bytes = 0;
        if (shape.dims[i] != 0) {
            add_varint(&dim, 1 << 3);
            add_varint(&dim, (uint64_t)shape.dims[i]);
        }
        add_bytes(&dims, 2, dim.data, dim.size_bytes);
    }
    add_bytes(out, 2, dims.data, dims.size_bytes);
    out->failed |= dims.failed || dim.failed;
    mr_text_deinit(&dims);
    mr_text_deinit(&dim);
}

/* Strings as a variant: VariantTensorDataProto with type_name and one of its tensors. */
constexpr char STRINGS_NAME[] = "millrace::Strings";

static void add_tensor(mr_text_builder *out, const mr_tensor *tensor)
{
    add_varint(out, 1 << 3);
    add_varint(out, tensor->dtype);
    add_shape(out, tensor->shape);
    int64_t count = mr_tensor_count(tensor);
    if (tensor->dtype != MR_STRING && count > 0) add_bytes(out, 4, tensor->data, mr_tensor_size_bytes(tensor));
    for (int64_t i = 0; tensor->dtype == MR_STRING && i < count; i++)
        add_bytes(out, 8, mr_tensor_strings(tensor)[i].data, mr_tensor_strings(tensor)[i].size_bytes);
}

static void add_variant(mr_text_builder *out, const mr_tensor *strings)
{
    mr_text_builder content = {0}, tensor = {0};
    add_varint(out, 1 << 3);
    add_varint(out, MR_VARIANT);
    add_shape(out, MR_SCALAR);
    add_tensor(&tensor, strings);
    add_bytes(&content, 1, STRINGS_NAME, sizeof STRINGS_NAME - 1);
    add_bytes(&content, 3, tensor.data, tensor.size_bytes);
    add_bytes(out, 15, content.data, content.size_bytes);
    out->failed |= content.failed || tensor.failed;
    mr_text_deinit(&content);
    mr_text_deinit(&tensor);
}

static mr_status serialize(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *tensor = &call->inputs[0], *strings = mr_serialized_strings(tensor);
    mr_text_builder out = {0};
    if (mr_dtype_size(tensor->dtype) == 0 && !strings)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a tensor of %s cannot be serialized",
                              mr_dtype_name(tensor->dtype));
    if (strings)
        add_variant(&out, strings);
    else
        add_tensor(&out, tensor);
    mr_status status = out.failed
                           ? mr_fail_memory(error, out.size_bytes)
                           : mr_tensor_init_string(&call->outputs[0], (mr_string){out.data, out.size_bytes}, error);
    mr_text_deinit(&out);
    return status;
}

/* ---- Reading ---- */

static mr_status read_variant(mr_kernel_call *call, const Mr__TensorProto *proto, mr_import_budget *budget,
                              mr_error *error)
{
    const Mr__VariantTensorDataProto *data = proto->n_variant_val == 1 ? proto->variant_val[0] : nullptr;
    bool is_ours = data && strcmp(data->type_name, STRINGS_NAME) == 0 && data->n_tensors == 1 &&
                   data->tensors[0]->dtype == MR_STRING;
    if (!is_ours)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Cannot parse tensor from proto: the variant was not written by SerializeTensor");
    MR_TRY(mr_tensor_read(data->tensors[0], budget, &call->outputs[0], error));
    return mr_serialized_wrap(&call->outputs[0], error);
}

static mr_status read_tensor(mr_kernel_call *call, mr_string bytes, mr_arena *arena, mr_error *error)
{
    mr_dtype wanted = call->node->output_dtypes[0];
    Mr__TensorProto *proto = nullptr;
    mr_error reason = {0};
    mr_import_budget budget = {.tensor_bytes = (size_t)1 << 32};
    mr_status status = mr_proto_unpack_as(tensor_proto, bytes, arena, &proto, &reason);
    if (status == MR_OK && wanted == MR_VARIANT && proto->dtype == MR_VARIANT)
        return read_variant(call, proto, &budget, error);
    if (status == MR_OK && (mr_dtype)proto->dtype != wanted && mr_dtype_size((mr_dtype)proto->dtype) > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Type mismatch between parsed tensor (%s) and dtype (%s)",
                              mr_dtype_name((mr_dtype)proto->dtype), mr_dtype_name(wanted));
    if (status == MR_OK) status = mr_tensor_read(proto, &budget, &call->outputs[0], &reason);
    if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", reason.message);
    if (status != MR_OK)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Cannot parse tensor from proto: %s",
                              reason.message);
    if (call->outputs[0].dtype == wanted) return MR_OK;
    mr_tensor_deinit(&call->outputs[0]);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Cannot parse tensor from proto");
}

static mr_status parse(mr_kernel_call *call, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Expected `serialized` to be a scalar, got shape: %s",
                              mr_shape_text(call->inputs[0].shape, text, sizeof text));
    mr_arena arena = {0};
    mr_status status = read_tensor(call, mr_tensor_strings(&call->inputs[0])[0], &arena, error);
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "SerializeTensor", .run = serialize},
    {.op = "ParseTensor", .run = parse},
};
const mr_kernel_table mr_state_kernels_serialize = {kernels, sizeof kernels / sizeof kernels[0]};
