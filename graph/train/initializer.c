/* Initial values of variables, as operators of the graph: NAME/Initializer/…, with TensorFlow's names and formulas. */
#include "graph/ir/graph.h"
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <math.h>
#include <string.h>

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

static mr_output named_shape(mr_graph *graph, mr_shape shape)
{
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < shape.rank; i++) sizes[i] = (int32_t)shape.dims[i];
    return mr_constant_int32s(graph, MR_SHAPE(shape.rank), sizes, "shape");
}

static mr_output uniform(mr_graph *graph, mr_shape shape, double limit, const mr_initializer *initializer)
{
    int64_t seed = 0, seed2 = 0;
    mr_train_seed_pair(graph, initializer->seed, &seed, &seed2);
    mr_graph_push_scope(graph, "random_uniform");
    mr_output sizes = named_shape(graph, shape);
    mr_output low = mr_train_float(graph, "min", (float)-limit), high = mr_train_float(graph, "max", (float)limit);
    mr_output unit = mr_random_uniform(graph, sizes, MR_FLOAT, .seed = seed, .seed2 = seed2);
    mr_output width = mr_sub(graph, high, low, .name = "sub");
    mr_output spread = mr_mul(graph, unit, width, .name = "mul");
    mr_output value = mr_add_v2(graph, spread, low, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return value;
}

static mr_output normal(mr_graph *graph, mr_shape shape, double std, bool truncated, const mr_initializer *initializer)
{
    int64_t seed = 0, seed2 = 0;
    mr_train_seed_pair(graph, initializer->seed, &seed, &seed2);
    mr_graph_push_scope(graph, truncated ? "truncated_normal" : "random_normal");
    mr_output sizes = named_shape(graph, shape);
    mr_output mean = mr_train_float(graph, "mean", 0), scale = mr_train_float(graph, "stddev", (float)std);
    mr_output unit = truncated ? mr_truncated_normal(graph, sizes, MR_FLOAT, .seed = seed, .seed2 = seed2)
                               : mr_random_standard_normal(graph, sizes, MR_FLOAT, .seed = seed, .seed2 = seed2);
    mr_output spread = mr_mul(graph, unit, scale, .name = "mul");
    mr_output value = mr_add_v2(graph, spread, mean, .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return value;
}

/* Small values are a Const, as in TensorFlow; larger ones are filled when they are needed. */
static mr_output filled(mr_graph *graph, mr_shape shape, float value, const char *name)
{
    constexpr int64_t CONST_MAX = 1000;
    int64_t count = mr_shape_count(shape);
    if (count >= 0 && count < CONST_MAX) {
        float elements[CONST_MAX];
        for (int64_t i = 0; i < count; i++) elements[i] = value;
        return mr_constant_floats(graph, shape, elements, name);
    }
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < shape.rank; i++) sizes[i] = (int32_t)shape.dims[i];
    mr_graph_push_scope(graph, name);
    mr_output dims = mr_constant_int32s(graph, MR_SHAPE(shape.rank), sizes, "shape_as_tensor");
    mr_output result = mr_fill(graph, dims, mr_train_float(graph, "Const", value), .name = mr_train_own_name(graph));
    mr_graph_pop_scope(graph);
    return result;
}

static bool is_random(mr_initializer_kind kind)
{
    return kind != MR_INIT_ZEROS && kind != MR_INIT_ONES && kind != MR_INIT_CONSTANT;
}

static bool is_scaled(mr_initializer_kind kind)
{
    return kind == MR_INIT_UNIFORM || kind == MR_INIT_NORMAL || kind == MR_INIT_TRUNCATED_NORMAL;
}

/* Records an error for an option that is missing, out of range, or without effect for the kind. */
static bool check(mr_graph *graph, const char *name, const mr_initializer *initializer)
{
    mr_initializer_kind kind = initializer->kind;
    const char *wrong = nullptr;
    if ((unsigned)kind > MR_INIT_HE_NORMAL)
        wrong = "kind is not one of mr_initializer_kind";
    else if (is_scaled(kind) && !(isfinite(initializer->scale) && initializer->scale > 0))
        wrong = "scale is required by this kind, and must be finite and greater than 0";
    else if (!is_scaled(kind) && kind != MR_INIT_CONSTANT && initializer->scale != 0)
        wrong = "scale has no effect for this kind";
    else if (!is_random(kind) && initializer->seed != 0)
        wrong = "seed has no effect for this kind, which is not random";
    if (wrong == nullptr) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "the initializer of %s: %s (kind %d, scale %g)", name, wrong,
                        (int)kind, (double)initializer->scale);
    return false;
}

static mr_output initial_value(mr_graph *graph, mr_shape shape, const mr_initializer *initializer)
{
    /* The standard deviation of a standard normal distribution truncated at ±2. */
    constexpr double TRUNCATED_STD = 0.87962566103423978;
    double fan_in, fan_out;
    fans_of(shape, &fan_in, &fan_out);
    switch (initializer->kind) {
    case MR_INIT_ZEROS:
        return filled(graph, shape, 0, "zeros");
    case MR_INIT_ONES:
        return filled(graph, shape, 1, "ones");
    case MR_INIT_CONSTANT:
        return filled(graph, shape, initializer->scale, "Const");
    case MR_INIT_UNIFORM:
        return uniform(graph, shape, initializer->scale, initializer);
    case MR_INIT_NORMAL:
        return normal(graph, shape, initializer->scale, false, initializer);
    case MR_INIT_TRUNCATED_NORMAL:
        return normal(graph, shape, initializer->scale, true, initializer);
    case MR_INIT_HE_NORMAL:
        return normal(graph, shape, sqrt(2 / fmax(1, fan_in)) / TRUNCATED_STD, true, initializer);
    case MR_INIT_DEFAULT:
    case MR_INIT_GLOROT_UNIFORM:
        break;
    }
    return uniform(graph, shape, sqrt(3 / fmax(1, (fan_in + fan_out) / 2)), initializer);
}

mr_variable mr_train_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer,
                              bool trainable)
{
    const char *scope = mr_graph_scope(graph);
    if (mr_shape_count(shape) < 0) {
        char text[MR_SHAPE_TEXT_SIZE];
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "variable %s: its shape %s is not fully known", name,
                            mr_shape_text(shape, text, sizeof text));
    }
    if (!check(graph, name, &initializer)) return mr_variable_new(graph, name, mr_graph_failed_output(graph));
    const char *inner = mr_arena_printf(&graph->arena, "%s%s%s/Initializer/", scope, *scope != '\0' ? "/" : "", name);
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    mr_graph_push_scope(graph, inner != nullptr ? inner : name);
    mr_output initial = initial_value(graph, shape, &initializer);
    mr_graph_pop_scope(graph);
    mr_graph_pop_control_dependencies(graph);
    return mr_variable_new(graph, name, initial, .trainable = trainable);
}

mr_variable mr_get_variable(mr_graph *graph, const char *name, mr_shape shape, mr_initializer initializer)
{
    return mr_train_variable(graph, name, shape, initializer, true);
}
