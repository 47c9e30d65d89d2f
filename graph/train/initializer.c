/* Initial values of variables, as operators of the graph: NAME/Initializer/…, with TensorFlow's names and formulas. For
 * a part of a partitioned variable, numbers of inputs and outputs are those of the complete variable. */
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <math.h>
#include <string.h>

/* ---- Scales ---- */

/* Number of inputs and outputs of one unit: a matrix is [in, out], a filter [height, width, in, out]. */
static void fans_of(mr_shape shape, double *fan_in, double *fan_out)
{
    *fan_in = *fan_out = shape.rank == 1 ? (double)shape.dims[0] : 1;
    if (shape.rank < 2) return;
    double field = 1;
    for (int32_t i = 0; i < shape.rank - 2; i++) field *= (double)shape.dims[i];
    *fan_in = field * (double)shape.dims[shape.rank - 2];
    *fan_out = field * (double)shape.dims[shape.rank - 1];
}

static mr_output scaled(mr_graph *graph, const mr_initial *initial, double scale, mr_fan_mode mode,
                        mr_distribution distribution)
{
    /* The standard deviation of a standard normal distribution truncated at ±2. */
    constexpr double TRUNCATED_STD = 0.87962566103423978;
    double fan_in, fan_out;
    fans_of(initial->full, &fan_in, &fan_out);
    double fan = mode == MR_FAN_IN ? fan_in : mode == MR_FAN_OUT ? fan_out : (fan_in + fan_out) / 2;
    double variance = scale / fmax(1, fan);
    double limit = sqrt(3 * variance);
    if (distribution == MR_DISTRIBUTION_UNIFORM) return mr_initial_uniform(graph, initial, -limit, limit);
    bool truncated = distribution == MR_DISTRIBUTION_TRUNCATED_NORMAL;
    return mr_initial_normal(graph, initial->shape, initial->dtype, 0, sqrt(variance) / (truncated ? TRUNCATED_STD : 1),
                             truncated, initial->initializer->seed);
}

static mr_output unit_scaled(mr_graph *graph, const mr_initial *initial, double factor)
{
    double inputs = 1;
    for (int32_t i = 0; i < initial->full.rank - 1; i++) inputs *= (double)initial->full.dims[i];
    double limit = sqrt(3 / fmax(1, inputs)) * factor;
    return mr_initial_uniform(graph, initial, -limit, limit);
}

/* ---- Checks ---- */

static bool is_constant(mr_initializer_kind kind)
{
    return kind == MR_INIT_ZEROS || kind == MR_INIT_ONES || kind == MR_INIT_CONSTANT || kind == MR_INIT_IDENTITY ||
           kind == MR_INIT_VALUE;
}

bool mr_initializer_is_omitted(const mr_initializer *i)
{
    return i->kind == MR_INIT_DEFAULT && i->scale == 0 && i->seed == 0 && i->mean == 0 && i->min == 0 && i->max == 0 &&
           i->mode == MR_FAN_IN && i->distribution == MR_DISTRIBUTION_TRUNCATED_NORMAL && i->values == nullptr &&
           i->value.node == nullptr;
}

static bool needs_scale(const mr_initializer *initializer)
{
    bool is_bounded = initializer->min != 0 || initializer->max != 0;
    return (initializer->kind == MR_INIT_UNIFORM && !is_bounded) || initializer->kind == MR_INIT_NORMAL ||
           initializer->kind == MR_INIT_TRUNCATED_NORMAL;
}

/* Kinds with a scale, factor or gain whose default is 1. */
static bool has_gain(mr_initializer_kind kind)
{
    return kind == MR_INIT_VARIANCE_SCALING || kind == MR_INIT_UNIFORM_UNIT_SCALING || kind == MR_INIT_ORTHOGONAL ||
           kind == MR_INIT_IDENTITY || kind == MR_INIT_DELTA_ORTHOGONAL || kind == MR_INIT_CONVOLUTION_ORTHOGONAL;
}

static bool has_fractions(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
}

const char *mr_initializer_wrong_options(const mr_initializer *i)
{
    mr_initializer_kind kind = i->kind;
    bool is_normal = kind == MR_INIT_NORMAL || kind == MR_INIT_TRUNCATED_NORMAL;
    if ((unsigned)kind > MR_INIT_CONVOLUTION_ORTHOGONAL) return "kind is not one of mr_initializer_kind";
    if (needs_scale(i) && !(isfinite(i->scale) && i->scale > 0))
        return "scale is required by this kind, and must be finite and greater than 0";
    if (has_gain(kind) && !(isfinite(i->scale) && i->scale >= 0)) return "scale must be finite and at least 0";
    if (!needs_scale(i) && !has_gain(kind) && (kind != MR_INIT_CONSTANT || i->values != nullptr) && i->scale != 0)
        return kind == MR_INIT_CONSTANT ? "scale has no effect with values" : "scale has no effect for this kind";
    if (!isfinite(i->scale)) return "scale must be finite";
    if (is_constant(kind) && i->seed != 0) return "seed has no effect for this kind, which is not random";
    if (!is_normal && i->mean != 0) return "mean has no effect for this kind";
    if (!isfinite(i->mean)) return "mean must be finite";
    if (kind != MR_INIT_UNIFORM && (i->min != 0 || i->max != 0)) return "min and max have no effect for this kind";
    if ((i->min != 0 || i->max != 0) && !(isfinite(i->min) && isfinite(i->max) && i->min < i->max))
        return "min must be less than max, and both finite";
    if (kind != MR_INIT_VARIANCE_SCALING && (i->mode != MR_FAN_IN || i->distribution != 0))
        return "mode and distribution have no effect for this kind";
    if ((unsigned)i->mode > MR_FAN_AVG) return "mode is not one of mr_fan_mode";
    if ((unsigned)i->distribution > MR_DISTRIBUTION_UNIFORM) return "distribution is not one of mr_distribution";
    if (kind != MR_INIT_CONSTANT && i->values != nullptr) return "values has no effect for this kind";
    if (kind == MR_INIT_VALUE && i->value.node == nullptr) return "value is required by this kind";
    if (kind != MR_INIT_VALUE && i->value.node != nullptr) return "value has no effect for this kind";
    return nullptr;
}

static bool is_integer(double value, double least, double end)
{
    return value >= least && value < end && value == trunc(value);
}

/* Whether a finite number is a value of the dtype. A float format rounds it, but not to infinity. */
static bool has_number(mr_dtype dtype, double value)
{
    switch (dtype) {
    case MR_DOUBLE:
    case MR_COMPLEX128:
        return isfinite(value);
    case MR_FLOAT:
    case MR_COMPLEX64:
        return isfinite((float)value);
    case MR_HALF:
        return isfinite(mr_half_to_float(mr_float_to_half((float)value)));
    case MR_BFLOAT16:
        return isfinite(mr_bfloat16_to_float(mr_float_to_bfloat16((float)value)));
    case MR_BOOL:
        return is_integer(value, 0, 2);
    case MR_INT8:
        return is_integer(value, -0x1p7, 0x1p7);
    case MR_UINT8:
        return is_integer(value, 0, 0x1p8);
    case MR_INT16:
        return is_integer(value, -0x1p15, 0x1p15);
    case MR_UINT16:
        return is_integer(value, 0, 0x1p16);
    case MR_INT32:
        return is_integer(value, -0x1p31, 0x1p31);
    case MR_UINT32:
        return is_integer(value, 0, 0x1p32);
    case MR_INT64:
        return is_integer(value, -0x1p63, 0x1p63);
    case MR_UINT64:
        return is_integer(value, 0, 0x1p64);
    default:
        return false;
    }
}

/* Options that are no values of the dtype. The difference of the bounds of UNIFORM is computed in float dtypes only. */
static const char *wrong_numbers(const mr_initializer *i, mr_dtype dtype)
{
    const bool is_bounded = i->min != 0 || i->max != 0;
    const double min = is_bounded ? (double)i->min : -(double)i->scale;
    const double max = is_bounded ? (double)i->max : (double)i->scale;
    /* The largest range of UNIFORM_UNIT_SCALING: a variable with one input. */
    const double range = i->kind == MR_INIT_UNIFORM ? max - min : 2 * sqrt(3) * (double)i->scale;
    switch (i->kind) {
    case MR_INIT_CONSTANT:
        return i->values != nullptr || has_number(dtype, i->scale) ? nullptr
                                                                   : "scale is not a value of the variable's dtype";
    case MR_INIT_UNIFORM:
        if (!has_number(dtype, min) || !has_number(dtype, max))
            return is_bounded ? "min or max is not a value of the variable's dtype"
                              : "scale is not a value of the variable's dtype";
        [[fallthrough]];
    case MR_INIT_UNIFORM_UNIT_SCALING:
        return !has_fractions(dtype) || has_number(dtype, range) ? nullptr
                                                                 : "the range is too large for the variable's dtype";
    case MR_INIT_NORMAL:
    case MR_INIT_TRUNCATED_NORMAL:
        if (!has_number(dtype, i->mean)) return "mean is not a value of the variable's dtype";
        [[fallthrough]];
    case MR_INIT_ORTHOGONAL:
    case MR_INIT_IDENTITY:
    case MR_INIT_DELTA_ORTHOGONAL:
    case MR_INIT_CONVOLUTION_ORTHOGONAL:
        return has_number(dtype, i->scale) ? nullptr : "scale is not a value of the variable's dtype";
    default:
        return nullptr;
    }
}

/* The graph of MR_INIT_CONVOLUTION_ORTHOGONAL grows with the kernel. */
constexpr int64_t CONVOLUTION_SIZE_MAX = 16;

/* What does not fit the variable. */
static const char *wrong_variable(const mr_initializer *i, mr_shape full, mr_dtype dtype)
{
    bool is_integer_range = i->kind == MR_INIT_UNIFORM && (dtype == MR_INT32 || dtype == MR_INT64);
    bool is_any = i->kind == MR_INIT_ZEROS || i->kind == MR_INIT_VALUE || i->values != nullptr;
    bool is_number = i->kind == MR_INIT_ONES || i->kind == MR_INIT_CONSTANT;
    if (!is_any && !is_integer_range && !has_fractions(dtype) && !(is_number && has_number(dtype, 1)))
        return "this kind does not compute values of the variable's dtype";
    if (i->kind == MR_INIT_ZEROS && (dtype == MR_RESOURCE || dtype == MR_VARIANT))
        return "this kind does not compute values of the variable's dtype";
    const char *wrong = wrong_numbers(i, dtype);
    if (wrong != nullptr) return wrong;
    if (i->kind == MR_INIT_ORTHOGONAL && full.rank < 2) return "the variable needs at least 2 dimensions";
    if (i->kind == MR_INIT_IDENTITY && full.rank != 2) return "the variable must be a matrix";
    bool is_kernel = i->kind == MR_INIT_DELTA_ORTHOGONAL || i->kind == MR_INIT_CONVOLUTION_ORTHOGONAL;
    if (is_kernel && (full.rank < 3 || full.rank > 5)) return "the variable must be a kernel of 3 to 5 dimensions";
    if (is_kernel && full.dims[full.rank - 2] > full.dims[full.rank - 1])
        return "the kernel must not have more inputs than outputs";
    for (int32_t d = 0; i->kind == MR_INIT_CONVOLUTION_ORTHOGONAL && d < full.rank - 2; d++)
        if (full.dims[d] != full.dims[0] || full.dims[d] < 1 || full.dims[d] > CONVOLUTION_SIZE_MAX)
            return "the kernel's sizes must be equal, and 1 to 16";
    if (i->values != nullptr && !mr_shape_equal(i->values->shape, full)) return "values has another shape";
    if (i->values != nullptr && i->values->dtype != dtype) return "values has another dtype";
    if (i->kind == MR_INIT_VALUE && mr_output_dtype(i->value) != dtype) return "value has another dtype";
    return nullptr;
}

bool mr_initializer_check(mr_graph *graph, const char *name, const mr_initializer *initializer, mr_shape full,
                          mr_dtype dtype)
{
    const char *wrong = mr_initializer_wrong_options(initializer);
    if (wrong == nullptr) wrong = wrong_variable(initializer, full, dtype);
    if (wrong == nullptr) return true;
    char text[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "the initializer of %s: %s (kind %d, scale %g; the variable is %s %s)", name, wrong,
                        (int)initializer->kind, (double)initializer->scale, mr_dtype_name(dtype),
                        mr_shape_text(full, text, sizeof text));
    return false;
}

/* ---- The value ---- */

static mr_output bounded(mr_graph *graph, const mr_initial *initial)
{
    const mr_initializer *i = initial->initializer;
    bool is_bounded = i->min != 0 || i->max != 0;
    return mr_initial_uniform(graph, initial, is_bounded ? i->min : -i->scale, is_bounded ? i->max : i->scale);
}

mr_output mr_initial_value(mr_graph *graph, const void *context)
{
    const mr_initial *initial = context;
    const mr_initializer *i = initial->initializer;
    float gain = i->scale != 0 ? i->scale : 1;
    switch (i->kind) {
    case MR_INIT_ZEROS:
        return mr_initial_filled(graph, initial, 0, "zeros");
    case MR_INIT_ONES:
        return mr_initial_filled(graph, initial, 1, "ones");
    case MR_INIT_CONSTANT:
        return i->values != nullptr ? mr_initial_elements(graph, initial)
                                    : mr_initial_filled(graph, initial, i->scale, "Const");
    case MR_INIT_UNIFORM:
        return bounded(graph, initial);
    case MR_INIT_NORMAL:
    case MR_INIT_TRUNCATED_NORMAL:
        return mr_initial_normal(graph, initial->shape, initial->dtype, i->mean, i->scale,
                                 i->kind == MR_INIT_TRUNCATED_NORMAL, i->seed);
    case MR_INIT_HE_NORMAL:
        return scaled(graph, initial, 2, MR_FAN_IN, MR_DISTRIBUTION_TRUNCATED_NORMAL);
    case MR_INIT_HE_UNIFORM:
        return scaled(graph, initial, 2, MR_FAN_IN, MR_DISTRIBUTION_UNIFORM);
    case MR_INIT_LECUN_NORMAL:
        return scaled(graph, initial, 1, MR_FAN_IN, MR_DISTRIBUTION_TRUNCATED_NORMAL);
    case MR_INIT_LECUN_UNIFORM:
        return scaled(graph, initial, 1, MR_FAN_IN, MR_DISTRIBUTION_UNIFORM);
    case MR_INIT_GLOROT_NORMAL:
        return scaled(graph, initial, 1, MR_FAN_AVG, MR_DISTRIBUTION_TRUNCATED_NORMAL);
    case MR_INIT_VARIANCE_SCALING:
        return scaled(graph, initial, gain, i->mode, i->distribution);
    case MR_INIT_UNIFORM_UNIT_SCALING:
        return unit_scaled(graph, initial, gain);
    case MR_INIT_ORTHOGONAL:
        return mr_initial_orthogonal(graph, initial);
    case MR_INIT_DELTA_ORTHOGONAL:
        return mr_initial_delta_orthogonal(graph, initial);
    case MR_INIT_CONVOLUTION_ORTHOGONAL:
        return mr_initial_convolution_orthogonal(graph, initial);
    case MR_INIT_IDENTITY:
        return mr_initial_identity(graph, initial);
    case MR_INIT_VALUE:
        return i->value;
    case MR_INIT_DEFAULT:
    case MR_INIT_GLOROT_UNIFORM:
        break;
    }
    return scaled(graph, initial, 1, MR_FAN_AVG, MR_DISTRIBUTION_UNIFORM);
}
