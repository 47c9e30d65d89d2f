/* Summaries: the data of event files. */
#include "graph/ir/op.h"

static const mr_op summary_ops[] = {
    {.name = "ScalarSummary",
     .signature = "tags: string, values: T -> summary: string",
     .attrs = "T: realnumbertype",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a Summary with one value for each tag."},
    {.name = "HistogramSummary",
     .signature = "tag: string, values: T -> summary: string",
     .attrs = "T: realnumbertype = float",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a Summary with a histogram of values."},
    {.name = "ImageSummary",
     .signature = "tag: string, tensor: T -> summary: string",
     .attrs = "max_images: int >= 1 = 3; T: {uint8, float, half, double} = float; "
              "bad_color: tensor = uint8 [255, 0, 0, 255]",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Returns a Summary with up to max_images images of tensor, encoded as PNG."},
    {.name = "MergeSummary",
     .signature = "inputs: N * string -> summary: string",
     .attrs = "N: int >= 1",
     .shape = mr_shape_scalar,
     .flags = MR_OP_NOT_DIFFERENTIABLE,
     .doc = "Merges the values of all inputs into one Summary."},
};

const mr_op_table mr_ops_summary = {summary_ops, sizeof summary_ops / sizeof summary_ops[0]};
