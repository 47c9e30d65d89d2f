/* Options of initializers: those without effect, numbers that are not finite, and numbers that the variable's dtype
 * does not have are errors that name the variable. */
#include "tests/test.h"

#include <math.h>
#include <millrace/millrace.h>
#include <string.h>

static mr_status create(mr_initializer initializer, mr_dtype dtype, mr_shape shape, bool in_scope, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    if (initializer.kind == MR_INIT_VALUE && initializer.value.node == nullptr)
        initializer.value = mr_constant_floats(g, MR_SHAPE(1, 2, 2), (float[4]){0}, "given");
    if (in_scope) mr_graph_push_variable_scope(g, "scope", .initializer = initializer);
    (void)mr_get_variable(g, "v", shape, .dtype = dtype,
                          .initializer = in_scope ? (mr_initializer){.kind = MR_INIT_DEFAULT} : initializer);
    if (in_scope) mr_graph_pop_variable_scope(g);
    const mr_status status = mr_graph_status(g, error);
    mr_graph_free(g);
    return status;
}

/* A valid initializer of this kind, and a shape that it fits. */
static mr_initializer valid(mr_initializer_kind kind, mr_shape *shape)
{
    const bool needs_scale = kind == MR_INIT_UNIFORM || kind == MR_INIT_NORMAL || kind == MR_INIT_TRUNCATED_NORMAL;
    *shape = kind == MR_INIT_IDENTITY ? MR_SHAPE(2, 2) : MR_SHAPE(1, 2, 2);
    return (mr_initializer){.kind = kind, .scale = needs_scale ? 0.5f : 0};
}

TEST(initializers_refuse_numbers_that_are_not_finite)
{
    const float numbers[] = {INFINITY, -INFINITY, NAN};
    for (int kind = MR_INIT_DEFAULT; kind <= MR_INIT_CONVOLUTION_ORTHOGONAL; kind++) {
        mr_shape shape;
        mr_error error = {0};
        CHECK_OK(create(valid((mr_initializer_kind)kind, &shape), MR_FLOAT, shape, false, &error));
        for (int i = 0; i < 24; i++) {
            mr_initializer initializer = valid((mr_initializer_kind)kind, &shape);
            float *const options[] = {&initializer.scale, &initializer.mean, &initializer.min, &initializer.max};
            *options[i / 6] = numbers[i % 3];
            const mr_status status = create(initializer, MR_FLOAT, shape, i / 3 % 2 == 1, &error);
            if (status != MR_INVALID_ARGUMENT || strstr(error.message, "the initializer of ") == nullptr)
                test_fail(__FILE__, __LINE__, "kind %d, case %d: %s: %s", kind, i, mr_status_name(status),
                          error.message);
        }
    }
}

TEST(initializers_refuse_options_without_effect)
{
    const mr_tensor values = {.dtype = MR_FLOAT, .shape = MR_SCALAR};
    for (int kind = MR_INIT_DEFAULT; kind <= MR_INIT_CONVOLUTION_ORTHOGONAL; kind++) {
        const bool is_constant = kind == MR_INIT_ZEROS || kind == MR_INIT_ONES || kind == MR_INIT_CONSTANT ||
                                 kind == MR_INIT_IDENTITY || kind == MR_INIT_VALUE;
        const bool is_normal = kind == MR_INIT_NORMAL || kind == MR_INIT_TRUNCATED_NORMAL;
        const bool has_scale = is_normal || kind == MR_INIT_CONSTANT || kind == MR_INIT_UNIFORM ||
                               (kind >= MR_INIT_VARIANCE_SCALING && kind != MR_INIT_VALUE);
        const bool is_scaling = kind == MR_INIT_VARIANCE_SCALING;
        for (int option = 0; option < 8; option++) {
            mr_shape shape;
            mr_error error = {0};
            mr_initializer initializer = valid((mr_initializer_kind)kind, &shape);
            const bool has_effect[] = {has_scale, !is_constant, is_normal,  false,
                                       false,     is_scaling,   is_scaling, kind == MR_INIT_CONSTANT};
            if (has_effect[option] || (kind == MR_INIT_UNIFORM && (option == 3 || option == 4))) continue;
            if (option == 0) initializer.scale = 1;
            if (option == 1) initializer.seed = 1;
            if (option == 2) initializer.mean = 1;
            if (option == 3) initializer.min = -1;
            if (option == 4) initializer.max = 1;
            if (option == 5) initializer.mode = MR_FAN_OUT;
            if (option == 6) initializer.distribution = MR_DISTRIBUTION_UNIFORM;
            if (option == 7) initializer.values = &values;
            for (int in_scope = 0; in_scope < 2; in_scope++) {
                const mr_status status = create(initializer, MR_FLOAT, shape, in_scope == 1, &error);
                if (status != MR_INVALID_ARGUMENT || strstr(error.message, "no effect for this kind") == nullptr)
                    test_fail(__FILE__, __LINE__, "kind %d, option %d: %s: %s", kind, option, mr_status_name(status),
                              error.message);
            }
        }
    }
}

TEST(initializers_refuse_numbers_that_the_dtype_does_not_have)
{
    static const struct {
        mr_dtype dtype;
        mr_initializer initializer;
        const char *text; /* null: valid */
    } cases[] = {
        {MR_INT32, {.kind = MR_INIT_CONSTANT, .scale = 2.5f}, "scale is not a value"},
        {MR_INT32, {.kind = MR_INIT_CONSTANT, .scale = 0x1p31f}, "scale is not a value"},
        {MR_INT32, {.kind = MR_INIT_CONSTANT, .scale = -0x1p31f}, nullptr},
        {MR_INT64, {.kind = MR_INIT_CONSTANT, .scale = 0x1p63f}, "scale is not a value"},
        {MR_INT64, {.kind = MR_INIT_CONSTANT, .scale = -0x1p63f}, nullptr},
        {MR_UINT64, {.kind = MR_INIT_CONSTANT, .scale = 0x1p63f}, nullptr},
        {MR_UINT64, {.kind = MR_INIT_CONSTANT, .scale = -1}, "scale is not a value"},
        {MR_UINT8, {.kind = MR_INIT_CONSTANT, .scale = 255}, nullptr},
        {MR_UINT8, {.kind = MR_INIT_CONSTANT, .scale = 256}, "scale is not a value"},
        {MR_INT8, {.kind = MR_INIT_CONSTANT, .scale = -129}, "scale is not a value"},
        {MR_BOOL, {.kind = MR_INIT_CONSTANT, .scale = 1}, nullptr},
        {MR_BOOL, {.kind = MR_INIT_CONSTANT, .scale = 2}, "scale is not a value"},
        {MR_HALF, {.kind = MR_INIT_CONSTANT, .scale = 65504}, nullptr},
        {MR_HALF, {.kind = MR_INIT_CONSTANT, .scale = 1e6f}, "scale is not a value"},
        {MR_DOUBLE, {.kind = MR_INIT_CONSTANT, .scale = 3e38f}, nullptr},
        {MR_COMPLEX64, {.kind = MR_INIT_CONSTANT, .scale = -2.5f}, nullptr},
        {MR_STRING, {.kind = MR_INIT_CONSTANT, .scale = 1}, "does not compute values of the variable's dtype"},
        {MR_QINT8, {.kind = MR_INIT_ONES}, "does not compute values of the variable's dtype"},
        {MR_QINT8, {.kind = MR_INIT_ZEROS}, nullptr},
        {MR_VARIANT, {.kind = MR_INIT_ZEROS}, "does not compute values of the variable's dtype"},
        {MR_HALF, {.kind = MR_INIT_NORMAL, .scale = 1, .mean = 1e6f}, "mean is not a value"},
        {MR_HALF, {.kind = MR_INIT_TRUNCATED_NORMAL, .scale = 1e6f}, "scale is not a value"},
        {MR_INT32, {.kind = MR_INIT_UNIFORM, .scale = 0.5f}, "scale is not a value"},
        {MR_INT32, {.kind = MR_INIT_UNIFORM, .min = 0, .max = 1.5f}, "min or max is not a value"},
        {MR_INT32, {.kind = MR_INIT_UNIFORM, .min = -2e9f, .max = 2e9f}, nullptr},
        {MR_FLOAT, {.kind = MR_INIT_UNIFORM, .min = -3e38f, .max = 3e38f}, "the range is too large"},
        {MR_FLOAT, {.kind = MR_INIT_UNIFORM, .scale = 3e38f}, "the range is too large"},
        {MR_FLOAT, {.kind = MR_INIT_UNIFORM, .scale = 1e38f}, nullptr},
        {MR_HALF, {.kind = MR_INIT_UNIFORM_UNIT_SCALING, .scale = 60000}, "the range is too large"},
        {MR_HALF, {.kind = MR_INIT_ORTHOGONAL, .scale = 1e6f}, "scale is not a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_error error = {0};
        const mr_status status = create(cases[i].initializer, cases[i].dtype, MR_SHAPE(2, 3, 3), false, &error);
        const char *text = cases[i].text;
        if (text == nullptr ? status != MR_OK : status != MR_INVALID_ARGUMENT || strstr(error.message, text) == nullptr)
            test_fail(__FILE__, __LINE__, "case %zu: %s: %s", i, mr_status_name(status), error.message);
    }
}

TEST(initializers_refuse_scale_next_to_values)
{
    mr_error error = {0};
    mr_tensor values = {0};
    CHECK_OK(mr_tensor_init(&values, MR_FLOAT, MR_SHAPE(2), &error));
    mr_tensor_floats(&values)[0] = mr_tensor_floats(&values)[1] = INFINITY;
    mr_initializer initializer = {.kind = MR_INIT_CONSTANT, .values = &values};
    CHECK_OK(create(initializer, MR_FLOAT, MR_SHAPE(2), false, &error));
    initializer.scale = 1;
    CHECK_STATUS(create(initializer, MR_FLOAT, MR_SHAPE(2), false, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the initializer of v: scale has no effect with values");
    mr_tensor_deinit(&values);
}
