/* Float operations of one call of a node, by its operator: the formulas of TensorFlow's statistic "flops". An operator
 * that is not in the table has none. */
#include "graph/train/profiler_flops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

typedef struct row {
    const char *op;
    mr_flops_formula formula;
    int64_t factor;
} row;

/* Sorted by name. */
static const row rows[] = {
    {"Add", MR_FLOPS_OUTPUT, 1},
    {"AddN", MR_FLOPS_ADD_N, 1},
    {"AddV2", MR_FLOPS_OUTPUT, 1},
    {"ArgMax", MR_FLOPS_REDUCTION, 0},
    {"ArgMin", MR_FLOPS_REDUCTION, 0},
    {"AssignAdd", MR_FLOPS_INPUT, 1},
    {"AssignSub", MR_FLOPS_INPUT, 1},
    {"AvgPool", MR_FLOPS_POOL, 1},
    {"AvgPoolGrad", MR_FLOPS_AVG_POOL_GRAD, 2},
    {"BatchMatMul", MR_FLOPS_MAT_MUL, 2},
    {"BatchMatMulV2", MR_FLOPS_MAT_MUL, 2},
    {"BatchMatMulV3", MR_FLOPS_MAT_MUL, 2},
    {"BiasAdd", MR_FLOPS_INPUT, 1},
    {"BiasAddGrad", MR_FLOPS_REDUCTION, 0},
    {"Conv2D", MR_FLOPS_CONVOLUTION, 2},
    {"Conv2DBackpropFilter", MR_FLOPS_CONV_BACKPROP_FILTER, 2},
    {"Conv2DBackpropInput", MR_FLOPS_CONV_BACKPROP_INPUT, 2},
    {"Conv3D", MR_FLOPS_CONVOLUTION, 2},
    {"DepthwiseConv2dNative", MR_FLOPS_DEPTHWISE, 2},
    {"Dilation2D", MR_FLOPS_DEPTHWISE, 2},
    {"Equal", MR_FLOPS_OUTPUT, 1},
    {"Greater", MR_FLOPS_OUTPUT, 1},
    {"GreaterEqual", MR_FLOPS_OUTPUT, 1},
    {"L2Loss", MR_FLOPS_L2_LOSS, 3},
    {"Less", MR_FLOPS_OUTPUT, 1},
    {"LessEqual", MR_FLOPS_OUTPUT, 1},
    {"Log", MR_FLOPS_INPUT, 1},
    {"MatMul", MR_FLOPS_MAT_MUL, 2},
    {"MaxPool", MR_FLOPS_POOL, 1},
    {"MaxPoolGrad", MR_FLOPS_MAX_POOL_GRAD, 1},
    {"Maximum", MR_FLOPS_OUTPUT, 1},
    {"Mean", MR_FLOPS_REDUCTION, 1},
    {"Minimum", MR_FLOPS_OUTPUT, 1},
    {"Mul", MR_FLOPS_OUTPUT, 1},
    {"Neg", MR_FLOPS_INPUT, 1},
    {"NotEqual", MR_FLOPS_OUTPUT, 1},
    {"Pow", MR_FLOPS_OUTPUT, 1},
    {"RealDiv", MR_FLOPS_OUTPUT, 1},
    {"Reciprocal", MR_FLOPS_INPUT, 1},
    {"Rsqrt", MR_FLOPS_INPUT, 2},
    {"RsqrtGrad", MR_FLOPS_OUTPUT, 4},
    {"Softmax", MR_FLOPS_INPUT, 5},
    {"Square", MR_FLOPS_INPUT, 1},
    {"SquaredDifference", MR_FLOPS_OUTPUT, 2},
    {"Sub", MR_FLOPS_OUTPUT, 1},
    {"Sum", MR_FLOPS_REDUCTION, 0},
};

static int compare_row(const void *key, const void *element)
{
    return strcmp(key, ((const row *)element)->op);
}

/* The product of the elements begin … end of a list of ints; 0 if the attr has no such list. */
static int64_t list_product(const mr_node *node, const char *name, int32_t begin, int32_t end)
{
    const mr_attr *attr = mr_attrs_find(&node->attrs, name);
    int64_t product = 1;
    if (attr == nullptr || attr->kind != MR_ATTR_INT || !attr->is_list || attr->count < end) return 0;
    for (int32_t i = begin; i < end; i++) {
        if (attr->values[i].integer <= 0) return 0;
        product = mr_profile_multiply(product, attr->values[i].integer);
    }
    return product;
}

static bool needs_nhwc(mr_flops_formula formula)
{
    return formula == MR_FLOPS_POOL || formula == MR_FLOPS_AVG_POOL_GRAD || formula == MR_FLOPS_MAX_POOL_GRAD ||
           formula == MR_FLOPS_CONV_BACKPROP_INPUT || formula == MR_FLOPS_CONV_BACKPROP_FILTER;
}

void mr_flops_rule_init(mr_flops_rule *rule, const mr_node *node)
{
    const row *found = bsearch(node->op, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_row);
    *rule = (mr_flops_rule){0};
    if (found == nullptr) return;
    /* As in TensorFlow, these are only known for this format. */
    if (needs_nhwc(found->formula) &&
        !mr_string_equal(mr_attr_string_or(&node->attrs, "data_format", ""), MR_STR("NHWC")))
        return;
    const bool is_transposed =
        mr_attr_bool_or(&node->attrs, "transpose_a", false) || mr_attr_bool_or(&node->attrs, "adj_x", false);
    *rule = (mr_flops_rule){.formula = found->formula,
                            .factor = found->factor,
                            .kernel_area = list_product(node, "ksize", 0, 4),
                            .stride_area = list_product(node, "strides", 1, 3),
                            .reduced_axis = is_transposed ? 2 : 1};
}

/* ---- Formulas ---- */

/* The shape of an input. False: it is not completely known, or has less than rank_min dimensions. */
static bool input_shape(const mr_profile *profile, const mr_profile_node *node, int32_t input, int32_t rank_min,
                        mr_shape *shape)
{
    if (input >= node->input_count || node->inputs[input].index < 0) return false;
    const mr_profile_node *source = profile->nodes[node->inputs[input].node];
    if (node->inputs[input].index >= source->output_count) return false;
    *shape = source->outputs[node->inputs[input].index];
    return mr_shape_count(*shape) >= 0 && shape->rank >= rank_min;
}

static bool output_shape(const mr_profile_node *node, int32_t rank_min, mr_shape *shape)
{
    if (node->output_count == 0) return false;
    *shape = node->outputs[0];
    return mr_shape_count(*shape) >= 0 && shape->rank >= rank_min;
}

static int64_t dims_product(mr_shape shape, int32_t end)
{
    int64_t product = 1;
    assert(end <= shape.rank);
    for (int32_t i = 0; i < end; i++) product = mr_profile_multiply(product, shape.dims[i]);
    return product;
}

/* image · filter · 2 / (channels · strides); `image` is the input of the convolution whose gradient it is. */
static int64_t backprop(const mr_flops_rule *rule, mr_shape image, mr_shape filter)
{
    const int64_t divisor = mr_profile_multiply(image.dims[image.rank - 1], rule->stride_area);
    const int64_t product = mr_profile_multiply(mr_shape_count(image), mr_shape_count(filter));
    return divisor > 0 ? mr_profile_multiply(rule->factor, product) / divisor : 0;
}

static int64_t convolution(const mr_profile *profile, const mr_profile_node *node)
{
    const mr_flops_rule *rule = &node->flops;
    mr_shape image, filter, output;
    if (!input_shape(profile, node, 0, 0, &image) || !input_shape(profile, node, 1, 3, &filter) ||
        !output_shape(node, 0, &output))
        return 0;
    /* [spatial …, in, out]; of a depthwise one each output has one input channel. */
    const int64_t terms = dims_product(filter, rule->formula == MR_FLOPS_DEPTHWISE ? 2 : filter.rank - 1);
    return mr_profile_multiply(rule->factor, mr_profile_multiply(terms, mr_shape_count(output)));
}

static int64_t convolution_gradient(const mr_profile *profile, const mr_profile_node *node)
{
    mr_shape image, filter;
    const bool is_known = node->flops.formula == MR_FLOPS_CONV_BACKPROP_INPUT
                              ? output_shape(node, 1, &image) && input_shape(profile, node, 1, 0, &filter)
                              : input_shape(profile, node, 0, 1, &image) && output_shape(node, 0, &filter);
    return is_known ? backprop(&node->flops, image, filter) : 0;
}

static int64_t pool_gradient(const mr_profile *profile, const mr_profile_node *node)
{
    const mr_flops_rule *rule = &node->flops;
    mr_shape shape;
    if (!input_shape(profile, node, 1, 0, &shape)) return 0;
    const int64_t terms = mr_profile_multiply(rule->kernel_area, mr_shape_count(shape));
    return rule->formula == MR_FLOPS_MAX_POOL_GRAD ? mr_profile_add(terms, mr_shape_count(shape))
                                                   : mr_profile_multiply(rule->factor, terms);
}

static int64_t product(const mr_profile *profile, const mr_profile_node *node)
{
    mr_shape left, output;
    if (!input_shape(profile, node, 0, 2, &left) || !output_shape(node, 0, &output)) return 0;
    const int64_t terms = left.dims[left.rank - node->flops.reduced_axis];
    return mr_profile_multiply(node->flops.factor, mr_profile_multiply(terms, mr_shape_count(output)));
}

static int64_t element_wise(const mr_profile *profile, const mr_profile_node *node)
{
    const mr_flops_rule *rule = &node->flops;
    mr_shape input, output;
    int32_t inputs = 0;
    const bool has_input = input_shape(profile, node, 0, 0, &input), has_output = output_shape(node, 0, &output);
    const int64_t in = has_input ? mr_shape_count(input) : 0, out = has_output ? mr_shape_count(output) : 0;
    switch (rule->formula) {
    case MR_FLOPS_INPUT:
        return mr_profile_multiply(rule->factor, in);
    case MR_FLOPS_OUTPUT:
        return mr_profile_multiply(rule->factor, out);
    case MR_FLOPS_POOL:
        return mr_profile_multiply(rule->kernel_area, out);
    case MR_FLOPS_L2_LOSS:
        return in > 0 ? mr_profile_multiply(rule->factor, in) - 1 : 0;
    case MR_FLOPS_REDUCTION: /* an addition less than elements for each sum, and for a mean a division */
        return has_input && has_output && in + out * (rule->factor - 1) > 0 ? in + out * (rule->factor - 1) : 0;
    default:
        assert(rule->formula == MR_FLOPS_ADD_N);
        while (inputs < node->input_count && node->inputs[inputs].index >= 0) inputs++;
        return inputs > 0 ? mr_profile_multiply(inputs - 1, in) : 0;
    }
}

int64_t mr_profile_count_float_ops(const mr_profile *profile, const mr_profile_node *node)
{
    switch (node->flops.formula) {
    case MR_FLOPS_NONE:
        return 0;
    case MR_FLOPS_SET:
        return node->float_ops;
    case MR_FLOPS_CONVOLUTION:
    case MR_FLOPS_DEPTHWISE:
        return convolution(profile, node);
    case MR_FLOPS_CONV_BACKPROP_INPUT:
    case MR_FLOPS_CONV_BACKPROP_FILTER:
        return convolution_gradient(profile, node);
    case MR_FLOPS_AVG_POOL_GRAD:
    case MR_FLOPS_MAX_POOL_GRAD:
        return pool_gradient(profile, node);
    case MR_FLOPS_MAT_MUL:
        return product(profile, node);
    default:
        return element_wise(profile, node);
    }
}
