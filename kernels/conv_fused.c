/* Convolutions of images that are first resized or padded: the kernels of the parts, one after another. */
#include "kernels/common.h"

#include <millrace/image.h>
#include <string.h>

/* Runs the kernel of another operator, whose attrs the node has, on `count` tensors. Only output 0 is made. */
static mr_status run_part(mr_kernel_call *call, const char *op, const mr_attrs *attrs, mr_tensor *inputs, int count,
                          const void *prepared, mr_tensor *output, mr_error *error)
{
    const mr_kernel *kernel = mr_kernel_find(op, MR_DEVICE_CPU, attrs);
    mr_dtype dtypes[3] = {0};
    alignas(max_align_t) char memory[256];
    if (!kernel || kernel->prepared_size_bytes > sizeof memory) return mr_kernel_unsupported(call->node, error);
    for (int i = 0; i < count; i++) dtypes[i] = inputs[i].dtype;
    mr_kernel_node node = *call->node;
    node.op = op;
    node.input_count = count;
    node.input_dtypes = dtypes;
    if (!prepared && kernel->prepare) MR_TRY(kernel->prepare(&node, memory, error));
    mr_kernel_call part = {.node = &node,
                           .prepared = prepared ? prepared : memory,
                           .device = call->device,
                           .inputs = inputs,
                           .outputs = output};
    return kernel->run(&part, error);
}

static mr_status pad_and_convolve(mr_kernel_call *call, mr_tensor *images, int paddings, mr_error *error)
{
    mr_tensor padded = {0}, to_pad[] = {*images, call->inputs[paddings]};
    const mr_tensor *sizes = &call->inputs[paddings];
    if (images->shape.rank != 4)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "input must be 4-dimensional");
    if (sizes->shape.rank != 2 || sizes->shape.dims[0] != 4 || sizes->shape.dims[1] != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "paddings must have the shape [4,2]");
    MR_TRY(run_part(call, "MirrorPad", call->node->attrs, to_pad, 2, nullptr, &padded, error));
    mr_tensor to_convolve[] = {padded, call->inputs[paddings + 1]};
    mr_status status = run_part(call, "Conv2D", call->node->attrs, to_convolve, 2, nullptr, &call->outputs[0], error);
    mr_tensor_deinit(&padded);
    return status;
}

static mr_status pad_conv(mr_kernel_call *call, mr_error *error)
{
    return pad_and_convolve(call, &call->inputs[0], 1, error);
}

static mr_status resize_pad_conv(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(resize_pad_conv);
    mr_tensor resized = {0};
    mr_resize_options options = {.size = sizeof options,
                                 .method = MR_RESIZE_BILINEAR,
                                 .align_corners = mr_attr_bool_or(call->node->attrs, "resize_align_corners", false)};
    mr_tensor to_resize[] = {call->inputs[0], call->inputs[1]};
    MR_TRY(run_part(call, "ResizeBilinear", call->node->attrs, to_resize, 2, &options, &resized, error));
    mr_status status = pad_and_convolve(call, &resized, 2, error);
    mr_tensor_deinit(&resized);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "FusedPadConv2D", .run = pad_conv},
    {.op = "FusedResizeAndPadConv2D", .types = "T: half, float", .run = resize_pad_conv},
};
MR_KERNEL_FAMILY(conv_fused);
