/* Cumulative sums and products along a dimension. */
#include "graph/ir/op.h"

static const mr_op scan_ops[] = {
    {.name = "Cumsum",
     .signature = "x: T, axis: Tidx -> out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_shape_unchanged,
     .doc = "Computes the cumulative sum along axis, excluding the element itself if exclusive."},
    {.name = "Cumprod",
     .signature = "x: T, axis: Tidx -> out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: numbertype; Tidx: {int32, int64} = int32",
     .shape = mr_shape_unchanged,
     .doc = "Computes the cumulative product along axis, excluding the element itself if exclusive."},
    {.name = "CumulativeLogsumexp",
     .signature = "x: T, axis: Tidx -> out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: {bfloat16, half, float, double}; Tidx: {int32, "
              "int64} = int32",
     .shape = mr_shape_unchanged,
     .doc = "Computes the logarithm of the cumulative sum of exp(x) along axis without overflow."},
};

const mr_op_table mr_ops_scan = {scan_ops, sizeof scan_ops / sizeof scan_ops[0]};
