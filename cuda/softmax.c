/* Softmax and its losses on the GPU: rows of classes. */
#include "cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/kernels.h"
#include "kernels/common.h"

#include <string.h>

typedef struct prepared {
    mr_cu_function function;
} prepared;

static mr_status prepare(const mr_kernel_node *node, void *memory, mr_error *error)
{
    const char *name = strcmp(node->op, "Softmax") == 0 ? "softmax" : "log_softmax";
    if (strcmp(node->op, "SoftmaxCrossEntropyWithLogits") == 0) name = "dense_loss";
    if (strcmp(node->op, "SparseSoftmaxCrossEntropyWithLogits") == 0)
        name = node->input_dtypes[1] == MR_INT32 ? "sparse_loss_int32" : "sparse_loss_int64";
    return mr_cuda_find(node->device, MR_CUDA_softmax, name, &((prepared *)memory)->function, error);
}

static mr_status launch(mr_kernel_call *call, mr_gpu_softmax *a, mr_error *error)
{
    const prepared *p = call->prepared;
    if (a->classes == 0 && a->rows > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "there are no classes");
    a->in = call->inputs[0].data;
    return mr_cuda_launch(call, p->function, (mr_cuda_grid){.x = a->rows, .y = 1, .width = 128}, a, error);
}

static mr_status softmax(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape;
    if (shape.rank < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "logits is a scalar");
    MR_TRY(mr_kernel_output(call, 0, shape, error));
    int64_t classes = shape.dims[shape.rank - 1], count = mr_shape_count(shape);
    if (count == 0) return MR_OK;
    mr_gpu_softmax a = {.out = call->outputs[0].data, .classes = classes, .rows = count / classes};
    return launch(call, &a, error);
}

static mr_status loss(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = call->inputs[0].shape, labels = call->inputs[1].shape;
    bool dense = call->node->input_dtypes[1] == MR_FLOAT;
    bool fits = shape.rank == 2 &&
                (dense ? mr_shape_equal(shape, labels) : labels.rank == 1 && labels.dims[0] == shape.dims[0]);
    if (!fits) {
        char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "the shapes of logits, %s, and labels, %s, do not match",
                              mr_shape_text(shape, a, sizeof a), mr_shape_text(labels, b, sizeof b));
    }
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(shape.dims[0]), error));
    MR_TRY(mr_kernel_output(call, 1, shape, error));
    mr_gpu_softmax a = {.labels = call->inputs[1].data,
                        .loss = call->outputs[0].data,
                        .out = call->outputs[1].data,
                        .rows = shape.dims[0],
                        .classes = shape.dims[1]};
    return launch(call, &a, error);
}

#define ROW(name, function, type_list)                                                                                 \
    {.op = name,                                                                                                       \
     .device = MR_DEVICE_GPU,                                                                                          \
     .types = type_list,                                                                                               \
     .run = function,                                                                                                  \
     .prepared_size_bytes = sizeof(prepared),                                                                          \
     .prepare = prepare}

static const mr_kernel kernels[] = {
    ROW("Softmax", softmax, "T: float"),
    ROW("LogSoftmax", softmax, "T: float"),
    ROW("SoftmaxCrossEntropyWithLogits", loss, "T: float"),
    ROW("SparseSoftmaxCrossEntropyWithLogits", loss, "T: float; Tlabels: int32, int64"),
};

MR_CUDA_FAMILY(softmax);
