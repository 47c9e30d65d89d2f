/* Constant and random values, as operators of the graph with TensorFlow's names, for initializers and layers. */
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

/* ---- Constants ---- */

static void put_number(void *element, mr_dtype dtype, double value)
{
    switch (dtype) {
    case MR_DOUBLE:
        *(double *)element = value;
        break;
    case MR_HALF:
        *(uint16_t *)element = mr_float_to_half((float)value);
        break;
    case MR_BFLOAT16:
        *(uint16_t *)element = mr_float_to_bfloat16((float)value);
        break;
    case MR_INT32:
    case MR_UINT32:
    case MR_QINT32:
        *(int32_t *)element = (int32_t)(int64_t)value;
        break;
    case MR_INT64:
        *(int64_t *)element = (int64_t)value;
        break;
    case MR_UINT64:
        *(uint64_t *)element = (uint64_t)value;
        break;
    case MR_INT16:
    case MR_UINT16:
    case MR_QINT16:
    case MR_QUINT16:
        *(int16_t *)element = (int16_t)(int64_t)value;
        break;
    case MR_INT8:
    case MR_UINT8:
    case MR_QINT8:
    case MR_QUINT8:
        *(int8_t *)element = (int8_t)(int64_t)value;
        break;
    case MR_BOOL:
        *(bool *)element = value != 0;
        break;
    case MR_COMPLEX128:
        ((double *)element)[0] = value;
        ((double *)element)[1] = 0;
        break;
    case MR_COMPLEX64:
        ((float *)element)[1] = 0;
        [[fallthrough]];
    default:
        *(float *)element = (float)value;
        break;
    }
}

/* A constant of this shape with equal elements; strings are empty. */
static mr_output equal_elements(mr_graph *graph, const char *name, mr_dtype dtype, mr_shape shape, double value)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init(&tensor, dtype, shape, &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    size_t size = dtype == MR_STRING ? 0 : mr_dtype_size(dtype);
    char *bytes = size > 0 ? mr_tensor_data(&tensor) : nullptr;
    for (int64_t i = 0; size > 0 && i < mr_tensor_count(&tensor); i++)
        put_number(bytes + (size_t)i * size, dtype, value);
    mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

mr_output mr_train_scalar(mr_graph *graph, const char *name, mr_dtype dtype, double value)
{
    return equal_elements(graph, name, dtype, MR_SCALAR, value);
}

/* Small values are a Const, as in TensorFlow; larger ones are filled when they are needed. */
mr_output mr_initial_filled(mr_graph *graph, const mr_initial *initial, double value, const char *name)
{
    constexpr int64_t CONST_MAX = 1000;
    mr_shape shape = initial->shape;
    int64_t count = mr_shape_count(shape);
    if (count >= 0 && count < CONST_MAX) return equal_elements(graph, name, initial->dtype, shape, value);
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < shape.rank; i++) sizes[i] = (int32_t)shape.dims[i];
    mr_graph_push_scope(graph, name);
    mr_output dims = mr_constant_int32s(graph, MR_SHAPE(shape.rank), sizes, "shape_as_tensor");
    mr_output element = mr_train_scalar(graph, "Const", initial->dtype, value);
    mr_output result = mr_fill(graph, dims, element, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return result;
}

mr_output mr_initial_part(mr_graph *graph, mr_output all, const mr_initial *initial)
{
    if (initial->offset == nullptr) return all;
    int32_t begin[MR_RANK_MAX], size[MR_RANK_MAX], rank = initial->shape.rank;
    for (int32_t i = 0; i < rank; i++) {
        begin[i] = (int32_t)initial->offset[i];
        size[i] = (int32_t)initial->shape.dims[i];
    }
    return mr_slice(graph, all, mr_constant_int32s(graph, MR_SHAPE(rank), begin, "Slice/begin"),
                    mr_constant_int32s(graph, MR_SHAPE(rank), size, "Slice/size"));
}

mr_output mr_initial_elements(mr_graph *graph, const mr_initial *initial)
{
    const char *name = initial->offset == nullptr ? "Const" : "Const/all";
    return mr_initial_part(graph, mr_constant(graph, initial->initializer->values, name), initial);
}

/* ---- Random values ---- */

static mr_output named_shape(mr_graph *graph, mr_shape shape)
{
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < shape.rank; i++) sizes[i] = (int32_t)shape.dims[i];
    return mr_constant_int32s(graph, MR_SHAPE(shape.rank), sizes, "shape");
}

mr_output mr_initial_uniform(mr_graph *graph, const mr_initial *initial, double min, double max)
{
    int64_t seed = 0, seed2 = 0;
    mr_dtype dtype = initial->dtype;
    mr_train_seed_pair(graph, initial->initializer->seed, &seed, &seed2);
    mr_graph_push_scope(graph, "random_uniform");
    mr_output sizes = named_shape(graph, initial->shape), value;
    mr_output low = mr_train_scalar(graph, "min", dtype, min), high = mr_train_scalar(graph, "max", dtype, max);
    if (dtype == MR_INT32 || dtype == MR_INT64) {
        value = mr_random_uniform_int(graph, sizes, low, high, .seed = seed, .seed2 = seed2,
                                      .name = mr_train_own_name(graph));
    } else {
        mr_output unit = mr_random_uniform(graph, sizes, dtype, .seed = seed, .seed2 = seed2);
        mr_output width = mr_sub(graph, high, low, .name = "sub");
        mr_output spread = mr_mul(graph, unit, width, .name = "mul");
        value = mr_add_v2(graph, spread, low, .name = mr_train_own_name(graph));
    }
    mr_graph_pop_scope(graph);
    return value;
}

mr_output mr_initial_normal(mr_graph *graph, mr_shape shape, mr_dtype dtype, double mean, double std, bool truncated,
                            int64_t option)
{
    int64_t seed = 0, seed2 = 0;
    mr_train_seed_pair(graph, option, &seed, &seed2);
    mr_graph_push_scope(graph, truncated ? "truncated_normal" : "random_normal");
    mr_output sizes = named_shape(graph, shape);
    mr_output center = mr_train_scalar(graph, "mean", dtype, mean);
    mr_output scale = mr_train_scalar(graph, "stddev", dtype, std);
    mr_output unit = truncated ? mr_truncated_normal(graph, sizes, dtype, .seed = seed, .seed2 = seed2)
                               : mr_random_standard_normal(graph, sizes, dtype, .seed = seed, .seed2 = seed2);
    mr_output spread = mr_mul(graph, unit, scale, .name = "mul");
    mr_output value = mr_add_v2(graph, spread, center, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return value;
}
