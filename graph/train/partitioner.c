/* Partitioners: into how many parts a variable is divided, with the formulas of tf.fixed_size_partitioner,
 * variable_axis_size_partitioner and min_max_variable_partitioner. */
#include "graph/train/variable_store.h"

#include <inttypes.h>
#include <math.h>

/* Size of an element in bytes; a string counts as 16. */
static double element_bytes(mr_dtype dtype)
{
    return dtype == MR_STRING ? 16 : (double)mr_dtype_size(dtype);
}

static double count_parts(const mr_partitioner *partitioner, mr_shape shape, mr_dtype dtype)
{
    double length = (double)shape.dims[partitioner->axis];
    double total_bytes = (double)mr_shape_count(shape) * element_bytes(dtype), parts_max = partitioner->parts_max;
    if (partitioner->kind == MR_PARTITION_FIXED_SIZE) return fmin(parts_max, length);
    if (partitioner->kind == MR_PARTITION_MIN_MAX) {
        double part_bytes = partitioner->size_bytes != 0 ? (double)partitioner->size_bytes : 256 << 10;
        return fmax(1, fmin(fmin(length, parts_max), ceil(total_bytes / part_bytes)));
    }
    if (length == 0 || total_bytes == 0) return 1;
    double rows = fmax(1, floor((double)partitioner->size_bytes / (total_bytes / length)));
    double parts = ceil(length / rows);
    return parts_max > 0 ? fmin(parts_max, parts) : parts;
}

static const char *wrong_partitioner(const mr_partitioner *partitioner, mr_shape shape)
{
    bool is_sized = partitioner->kind != MR_PARTITION_FIXED_SIZE, is_axis = partitioner->kind == MR_PARTITION_AXIS_SIZE;
    if ((unsigned)partitioner->kind > MR_PARTITION_MIN_MAX) return "kind is not one of mr_partitioner_kind";
    if (partitioner->parts_max < 0 || (partitioner->parts_max == 0 && !is_axis))
        return "parts_max is required by this kind, and must be at least 1";
    if (!is_sized && partitioner->size_bytes != 0) return "size_bytes has no effect for this kind";
    if (partitioner->size_bytes < 0 || (partitioner->size_bytes == 0 && is_axis))
        return "size_bytes is required by this kind, and must be at least 1";
    if (partitioner->axis < 0 || partitioner->axis >= shape.rank) return "the shape does not have this axis";
    return nullptr;
}

bool mr_partitioner_apply(mr_graph *graph, const char *name, const mr_partitioner *partitioner, mr_shape shape,
                          mr_dtype dtype, int32_t *axis, int32_t *parts)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const char *wrong = mr_shape_count(shape) < 0 ? "the shape of a partitioned variable must be fully known"
                                                  : wrong_partitioner(partitioner, shape);
    if (wrong != nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "the partitioner of %s: %s (shape %s, axis %d, parts_max %d, size_bytes %" PRId64 ")", name,
                            wrong, mr_shape_text(shape, text, sizeof text), partitioner->axis, partitioner->parts_max,
                            partitioner->size_bytes);
        return false;
    }
    *axis = partitioner->axis;
    *parts = (int32_t)fmax(1, fmin(count_parts(partitioner, shape, dtype), INT32_MAX));
    return true;
}
