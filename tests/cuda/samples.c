/* The list of samples: at least one for every kernel row of cuda/, and more for kernels with several code paths. */
#include "tests/cuda/samples.h"

#define FLOATS(...) {.dtype = MR_FLOAT, .shape = MR_SHAPE(__VA_ARGS__)}
#define BETWEEN(from, to, ...) {.dtype = MR_FLOAT, .shape = MR_SHAPE(__VA_ARGS__), .low = from, .high = to}
#define ONE_FLOAT {.dtype = MR_FLOAT, .shape = {0}, .low = 0.1, .high = 0.9}
#define GIVEN(n, ...) {.dtype = MR_INT32, .shape = MR_SHAPE(n), .ints = {__VA_ARGS__}, .is_given = true}
#define GIVEN_ONE(value) {.dtype = MR_INT32, .shape = {0}, .ints = {value}, .is_given = true}
#define INTS(type, from, to, ...) {.dtype = type, .shape = MR_SHAPE(__VA_ARGS__), .low = from, .high = to}

#define TYPE(attr, value)                                                                                              \
    {                                                                                                                  \
        .name = attr, .kind = MR_ATTR_TYPE, .ints = { value }                                                          \
    }
#define FLAG(attr, value)                                                                                              \
    {                                                                                                                  \
        .name = attr, .kind = MR_ATTR_BOOL, .ints = { value }                                                          \
    }
#define INT(attr, value)                                                                                               \
    {                                                                                                                  \
        .name = attr, .kind = MR_ATTR_INT, .ints = { value }                                                           \
    }
#define NUMBER(attr, value) {.name = attr, .kind = MR_ATTR_FLOAT, .number = value}
#define STRING(attr, value) {.name = attr, .kind = MR_ATTR_STRING, .string = value}
#define LIST(attr, n, ...)                                                                                             \
    {                                                                                                                  \
        .name = attr, .kind = MR_ATTR_INT, .is_list = true, .count = n, .ints = { __VA_ARGS__ }                        \
    }
#define T_FLOAT TYPE("T", MR_FLOAT)

/* One input, and one output of the same shape. */
#define UNARY(operator, from, to)                                                                                      \
    {                                                                                                                  \
        .name = "unary", .op = operator, .input_count = 1, .output_count = 1, .inputs = {BETWEEN(from, to, 3, 700)},   \
        .outputs = {MR_FLOAT}, .attrs = {                                                                              \
            T_FLOAT                                                                                                    \
        }                                                                                                              \
    }
#define BINARY_OF(operator, what, a, b)                                                                                \
    {                                                                                                                  \
        .name = what, .op = operator, .input_count = 2, .output_count = 1, .inputs = {a, b}, .outputs = {MR_FLOAT},    \
        .attrs = {                                                                                                     \
            T_FLOAT                                                                                                    \
        }                                                                                                              \
    }
#define BINARY(operator) BINARY_OF(operator, "binary", BETWEEN(0.5, 2, 5, 7), BETWEEN(0.5, 2, 5, 7))
#define COMPARISON(operator, type)                                                                                     \
    {                                                                                                                  \
        .name = "comparison", .op = operator, .input_count = 2, .output_count = 1,                                     \
        .inputs = {INTS(type, 0, 4, 60), INTS(type, 0, 4, 60)}, .outputs = {MR_BOOL}, .attrs = {                       \
            TYPE("T", type)                                                                                            \
        }                                                                                                              \
    }
#define COMPARISONS(operator)                                                                                          \
    COMPARISON(operator, MR_FLOAT), COMPARISON(operator, MR_INT32), COMPARISON(operator, MR_INT64)

/* in: the input; axes: an int32 input; keep: keep_dims */
#define REDUCE(operator, what, in, axes, keep)                                                                         \
    {                                                                                                                  \
        .name = what, .op = operator, .input_count = 2, .output_count = 1, .inputs = {in, axes},                       \
        .outputs = {MR_FLOAT}, .attrs = {                                                                              \
            T_FLOAT,                                                                                                   \
            TYPE("Tidx", MR_INT32),                                                                                    \
            FLAG("keep_dims", keep)                                                                                    \
        }                                                                                                              \
    }

#define WINDOW_ATTRS(stride, pad)                                                                                      \
    LIST("ksize", 4, 1, 3, 3, 1), STRING("padding", pad), LIST("strides", 4, 1, stride, stride, 1)
#define POOL(operator, stride, pad)                                                                                    \
    {                                                                                                                  \
        .name = pad #stride, .op = operator, .input_count = 1, .output_count = 1, .inputs = {FLOATS(2, 9, 8, 5)},      \
        .outputs = {MR_FLOAT}, .attrs = {                                                                              \
            T_FLOAT,                                                                                                   \
            STRING("data_format", "NHWC"),                                                                             \
            WINDOW_ATTRS(stride, pad)                                                                                  \
        }                                                                                                              \
    }
#define POOL_GRADS(stride, pad, height, width)                                                                         \
    {.name = pad #stride,                                                                                              \
     .op = "MaxPoolGrad",                                                                                              \
     .input_count = 3,                                                                                                 \
     .output_count = 1,                                                                                                \
     .inputs = {INTS(MR_FLOAT, 0, 4, 2, 9, 8, 5), FLOATS(2, height, width, 5), FLOATS(2, height, width, 5)},           \
     .outputs = {MR_FLOAT},                                                                                            \
     .attrs = {T_FLOAT, STRING("data_format", "NHWC"), WINDOW_ATTRS(stride, pad)}},                                    \
    {                                                                                                                  \
        .name = pad #stride, .op = "AvgPoolGrad", .input_count = 2, .output_count = 1,                                 \
        .inputs = {GIVEN(4, 2, 9, 8, 5), FLOATS(2, height, width, 5)}, .outputs = {MR_FLOAT}, .attrs = {               \
            T_FLOAT,                                                                                                   \
            STRING("data_format", "NHWC"),                                                                             \
            WINDOW_ATTRS(stride, pad)                                                                                  \
        }                                                                                                              \
    }

#define CONV_ATTRS(stride, dilation, pad)                                                                              \
    {T_FLOAT, STRING("data_format", "NHWC"), LIST("dilations", 4, 1, dilation, dilation, 1), STRING("padding", pad),   \
     LIST("strides", 4, 1, stride, stride, 1)}
/* Images [2, 8, 7, 3], filters [size, size, 3, 4], and the output's height and width. */
#define CONVS(what, size, stride, dilation, pad, height, width)                                                        \
    {.name = what,                                                                                                     \
     .op = "Conv2D",                                                                                                   \
     .input_count = 2,                                                                                                 \
     .output_count = 1,                                                                                                \
     .inputs = {FLOATS(2, 8, 7, 3), FLOATS(size, size, 3, 4)},                                                         \
     .outputs = {MR_FLOAT},                                                                                            \
     .attrs = CONV_ATTRS(stride, dilation, pad),                                                                       \
     .tolerance = 1e-4f},                                                                                              \
        {.name = what,                                                                                                 \
         .op = "Conv2DBackpropInput",                                                                                  \
         .input_count = 3,                                                                                             \
         .output_count = 1,                                                                                            \
         .inputs = {GIVEN(4, 2, 8, 7, 3), FLOATS(size, size, 3, 4), FLOATS(2, height, width, 4)},                      \
         .outputs = {MR_FLOAT},                                                                                        \
         .attrs = CONV_ATTRS(stride, dilation, pad),                                                                   \
         .tolerance = 1e-4f},                                                                                          \
        {.name = what,                                                                                                 \
         .op = "Conv2DBackpropFilter",                                                                                 \
         .input_count = 3,                                                                                             \
         .output_count = 1,                                                                                            \
         .inputs = {FLOATS(2, 8, 7, 3), GIVEN(4, size, size, 3, 4), FLOATS(2, height, width, 4)},                      \
         .outputs = {MR_FLOAT},                                                                                        \
         .attrs = CONV_ATTRS(stride, dilation, pad),                                                                   \
         .tolerance = 1e-4f}

#define MATMUL(what, a_rows, a_columns, b_rows, b_columns, ta, tb)                                                     \
    {.name = what,                                                                                                     \
     .op = "MatMul",                                                                                                   \
     .input_count = 2,                                                                                                 \
     .output_count = 1,                                                                                                \
     .inputs = {FLOATS(a_rows, a_columns), FLOATS(b_rows, b_columns)},                                                 \
     .outputs = {MR_FLOAT},                                                                                            \
     .attrs = {T_FLOAT, FLAG("transpose_a", ta), FLAG("transpose_b", tb)},                                             \
     .tolerance = 1e-4f}

#define CHANNELS BETWEEN(0.5, 2, 37)
#define NORM(operator, what, training, factor, count, types)                                                           \
    {.name = what,                                                                                                     \
     .op = operator,                                                                                                   \
     .input_count = 5,                                                                                                 \
     .output_count = count,                                                                                            \
     .inputs = {BETWEEN(4, 7, 4, 10, 9, 37), CHANNELS, CHANNELS, CHANNELS, CHANNELS},                                  \
     .outputs = {MR_FLOAT, MR_FLOAT, MR_FLOAT, MR_FLOAT, MR_FLOAT, MR_FLOAT},                                          \
     .attrs = {T_FLOAT types, STRING("data_format", "NHWC"), NUMBER("epsilon", 0.001f),                                \
               NUMBER("exponential_avg_factor", factor), FLAG("is_training", training)},                               \
     .outputs_ignored = 1 << 5 | (training ? 0 : 1 << 3 | 1 << 4),                                                     \
     .tolerance = 1e-4f}
#define NORM_GRAD(operator, what, training, inputs_given, types)                                                       \
    {.name = what,                                                                                                     \
     .op = operator,                                                                                                   \
     .input_count = inputs_given,                                                                                      \
     .output_count = 5,                                                                                                \
     .inputs = {FLOATS(4, 10, 9, 37), BETWEEN(0, 2, 4, 10, 9, 37), CHANNELS, CHANNELS, CHANNELS, ONE_FLOAT},           \
     .outputs = {MR_FLOAT, MR_FLOAT, MR_FLOAT, MR_FLOAT, MR_FLOAT},                                                    \
     .attrs = {T_FLOAT types, STRING("data_format", "NHWC"), NUMBER("epsilon", 0.001f),                                \
               FLAG("is_training", training)},                                                                         \
     .outputs_ignored = 1 << 3 | 1 << 4,                                                                               \
     .tolerance = 1e-4f}
#define AND_U , TYPE("U", MR_FLOAT)

#define CAST(from, to)                                                                                                 \
    {                                                                                                                  \
        .name = #from #to, .op = "Cast", .input_count = 1, .output_count = 1, .inputs = {INTS(from, 0, 9, 50)},        \
        .outputs = {to}, .attrs = {                                                                                    \
            TYPE("DstT", to),                                                                                          \
            TYPE("SrcT", from),                                                                                        \
            FLAG("Truncate", 0)                                                                                        \
        }                                                                                                              \
    }
#define CASTS(from)                                                                                                    \
    CAST(from, MR_FLOAT), CAST(from, MR_DOUBLE), CAST(from, MR_INT32), CAST(from, MR_INT64), CAST(from, MR_BOOL)

#define FORWARDED(operator)                                                                                            \
    {                                                                                                                  \
        .name = "as it is", .op = operator, .input_count = 1, .output_count = 1, .inputs = {FLOATS(3, 4)},             \
        .outputs = {MR_FLOAT}, .attrs = {                                                                              \
            T_FLOAT                                                                                                    \
        }                                                                                                              \
    }
#define SHAPED(operator, types)                                                                                        \
    {                                                                                                                  \
        .name = "shape", .op = operator, .input_count = 1, .output_count = 1, .inputs = {FLOATS(3, 4)},                \
        .outputs = {MR_INT32}, .attrs = {                                                                              \
            T_FLOAT types                                                                                              \
        }                                                                                                              \
    }
#define AND_OUT_TYPE , TYPE("out_type", MR_INT32)

#define EXTREME(operator, type, dimension)                                                                             \
    {                                                                                                                  \
        .name = "dimension " #dimension, .op = operator, .input_count = 2, .output_count = 1,                          \
        .inputs = {INTS(MR_FLOAT, 0, 5, 4, 6, 5), GIVEN_ONE(dimension)}, .outputs = {type}, .attrs = {                 \
            T_FLOAT,                                                                                                   \
            TYPE("Tidx", MR_INT32),                                                                                    \
            TYPE("output_type", type)                                                                                  \
        }                                                                                                              \
    }

#define SELECT(operator, what, c0, c1, a0, a1, b0, b1)                                                                 \
    {                                                                                                                  \
        .name = what, .op = operator, .input_count = 3, .output_count = 1,                                             \
        .inputs = {INTS(MR_BOOL, -1, 1, c0, c1), FLOATS(a0, a1), FLOATS(b0, b1)}, .outputs = {MR_FLOAT}, .attrs = {    \
            T_FLOAT                                                                                                    \
        }                                                                                                              \
    }
#define SELECT_ROWS                                                                                                    \
    {                                                                                                                  \
        .name = "rows", .op = "Select", .input_count = 3, .output_count = 1,                                           \
        .inputs = {INTS(MR_BOOL, -1, 1, 4), INTS(MR_INT64, 0, 9, 4, 5), INTS(MR_INT64, 10, 19, 4, 5)},                 \
        .outputs = {MR_INT64}, .attrs = {                                                                              \
            TYPE("T", MR_INT64)                                                                                        \
        }                                                                                                              \
    }

#define VARIABLE BETWEEN(0.1, 1, 700)
#define ADAM(operator, nesterov)                                                                                       \
    {                                                                                                                  \
        .name = "adam", .op = operator, .input_count = 10, .output_count = 0,                                          \
        .inputs = {VARIABLE,  VARIABLE,  VARIABLE,  ONE_FLOAT, ONE_FLOAT,                                              \
                   ONE_FLOAT, ONE_FLOAT, ONE_FLOAT, ONE_FLOAT, VARIABLE},                                              \
        .attrs = {                                                                                                     \
            T_FLOAT,                                                                                                   \
            FLAG("use_locking", 0),                                                                                    \
            FLAG("use_nesterov", nesterov)                                                                             \
        }                                                                                                              \
    }
#define MOMENTUM(operator, nesterov)                                                                                   \
    {                                                                                                                  \
        .name = "momentum", .op = operator, .input_count = 5, .output_count = 0,                                       \
        .inputs = {VARIABLE, VARIABLE, ONE_FLOAT, VARIABLE, ONE_FLOAT}, .attrs = {                                     \
            T_FLOAT,                                                                                                   \
            FLAG("use_locking", 0),                                                                                    \
            FLAG("use_nesterov", nesterov)                                                                             \
        }                                                                                                              \
    }
#define DESCENT(operator)                                                                                              \
    {                                                                                                                  \
        .name = "descent", .op = operator, .input_count = 3, .output_count = 0,                                        \
        .inputs = {VARIABLE, ONE_FLOAT, VARIABLE}, .attrs = {                                                          \
            T_FLOAT,                                                                                                   \
            FLAG("use_locking", 0)                                                                                     \
        }                                                                                                              \
    }
#define ASSIGN(operator, attr)                                                                                         \
    {                                                                                                                  \
        .name = "in place", .op = operator, .input_count = 2, .output_count = 0, .inputs = {VARIABLE, VARIABLE},       \
        .attrs = {                                                                                                     \
            TYPE(attr, MR_FLOAT)                                                                                       \
        }                                                                                                              \
    }

static const sample samples[] = {
    UNARY("Neg", -2, 2),
    UNARY("Abs", -2, 2),
    UNARY("Square", -2, 2),
    UNARY("Sqrt", 0, 2),
    UNARY("Rsqrt", 0.1, 2),
    UNARY("Reciprocal", 0.1, 2),
    UNARY("Inv", 0.1, 2),
    UNARY("Exp", -3, 3),
    UNARY("Log", 0.1, 3),
    UNARY("Tanh", -3, 3),
    UNARY("Sigmoid", -3, 3),
    UNARY("Relu", -3, 3),
    UNARY("Relu6", -3, 9),
    {.name = "in place",
     .op = "Relu",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(999)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT},
     .reuses = true},
    BINARY("Add"),
    BINARY("AddV2"),
    BINARY("Sub"),
    BINARY("Mul"),
    BINARY("Div"),
    BINARY("RealDiv"),
    BINARY("DivNoNan"),
    {.name = "by zero",
     .op = "DivNoNan",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(9), {.dtype = MR_FLOAT, .shape = {0}, .is_given = true}},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    SELECT("Select", "of one shape", 4, 5, 4, 5, 4, 5),
    SELECT_ROWS,
    SELECT("SelectV2", "of one shape", 4, 5, 4, 5, 4, 5),
    SELECT("SelectV2", "broadcast", 4, 1, 1, 5, 4, 5),
    BINARY("Maximum"),
    BINARY("Minimum"),
    BINARY("SquaredDifference"),
    BINARY_OF("Sub", "scalar left", ONE_FLOAT, FLOATS(300)),
    BINARY_OF("Sub", "scalar right", FLOATS(300), FLOATS(1, 1)),
    BINARY_OF("Sub", "two scalars", ONE_FLOAT, FLOATS(1, 1)),
    BINARY_OF("Sub", "rows", FLOATS(4, 5, 6), FLOATS(6)),
    BINARY_OF("Sub", "columns", FLOATS(4, 5, 1), FLOATS(4, 1, 6)),
    BINARY_OF("Sub", "middle", FLOATS(1, 5, 1), FLOATS(3, 2, 5, 4)),
    BINARY_OF("Sub", "nothing", FLOATS(0, 5), FLOATS(5)),
    BINARY("ReluGrad"),
    BINARY_OF("Relu6Grad", "both ends", FLOATS(400), BETWEEN(-3, 9, 400)),
    BINARY("SigmoidGrad"),
    BINARY("TanhGrad"),
    BINARY("SqrtGrad"),
    BINARY("RsqrtGrad"),
    BINARY("ReciprocalGrad"),
    BINARY("InvGrad"),
    COMPARISONS("Equal"),
    COMPARISONS("NotEqual"),
    COMPARISONS("Less"),
    COMPARISONS("LessEqual"),
    COMPARISONS("Greater"),
    COMPARISONS("GreaterEqual"),
    {.name = "bias",
     .op = "BiasAdd",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(2, 3, 4, 5), FLOATS(5)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, STRING("data_format", "NHWC")}},
    {.name = "bias of NCHW",
     .op = "BiasAdd",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(2, 5, 4, 3), FLOATS(5)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, STRING("data_format", "NCHW")}},
    {.name = "three",
     .op = "AddN",
     .input_count = 3,
     .output_count = 1,
     .inputs = {FLOATS(99), FLOATS(99), FLOATS(99)},
     .outputs = {MR_FLOAT},
     .attrs = {INT("N", 3), T_FLOAT},
     .reuses = true},
    {.name = "more than one launch",
     .op = "AddN",
     .input_count = 18,
     .output_count = 1,
     .inputs = {FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9),
                FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9), FLOATS(9)},
     .outputs = {MR_FLOAT},
     .attrs = {INT("N", 18), T_FLOAT}},
    REDUCE("Sum", "all", FLOATS(50, 21), GIVEN(2, 0, 1), 0),
    REDUCE("Sum", "all in chunks", FLOATS(70000), GIVEN(1, 0), 1),
    REDUCE("Sum", "rows", FLOATS(50, 21), GIVEN(1, 1), 0),
    REDUCE("Sum", "columns", FLOATS(50, 21), GIVEN(1, 0), 1),
    REDUCE("Sum", "columns in chunks", FLOATS(3000, 40), GIVEN(1, 0), 0),
    REDUCE("Sum", "middle", FLOATS(4, 50, 6), GIVEN(1, -2), 0),
    REDUCE("Sum", "outer and inner", FLOATS(4, 5, 6, 7), GIVEN(2, 1, 3), 0),
    REDUCE("Sum", "first and third", FLOATS(4, 5, 6, 7), GIVEN(2, 0, 2), 1),
    REDUCE("Sum", "none", FLOATS(4, 5), GIVEN(0), 0),
    REDUCE("Sum", "of nothing", FLOATS(0, 5), GIVEN(1, 0), 0),
    REDUCE("Mean", "height and width", FLOATS(4, 6, 5, 33), GIVEN(2, 1, 2), 0),
    REDUCE("Mean", "a scalar", ONE_FLOAT, GIVEN(0), 0),
    REDUCE("Max", "rows", FLOATS(50, 21), GIVEN(1, 1), 0),
    REDUCE("Max", "columns in chunks", FLOATS(3000, 40), GIVEN(1, 0), 0),
    REDUCE("Min", "columns", FLOATS(50, 21), GIVEN(1, 0), 0),
    {.name = "few",
     .op = "L2Loss",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(7, 9)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "many",
     .op = "L2Loss",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(300, 200)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "bias",
     .op = "BiasAddGrad",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(4, 20, 9, 37)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, STRING("data_format", "NHWC")}},
    {.name = "bias of NCHW",
     .op = "BiasAddGrad",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(4, 6, 9, 5)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, STRING("data_format", "NCHW")}},
    NORM("FusedBatchNorm", "training", 1, 1, 5, ),
    NORM("FusedBatchNormV2", "training", 1, 1, 5, AND_U),
    NORM("FusedBatchNormV3", "moving", 1, 0.25f, 6, AND_U),
    NORM("FusedBatchNormV3", "inference", 0, 1, 6, AND_U),
    NORM_GRAD("FusedBatchNormGrad", "training", 1, 5, ),
    NORM_GRAD("FusedBatchNormGradV2", "training", 1, 5, AND_U),
    NORM_GRAD("FusedBatchNormGradV3", "training", 1, 6, AND_U),
    NORM_GRAD("FusedBatchNormGradV3", "inference", 0, 6, AND_U),
    POOL("MaxPool", 2, "SAME"),
    POOL("MaxPool", 1, "VALID"),
    POOL("AvgPool", 2, "SAME"),
    POOL("AvgPool", 3, "VALID"),
    POOL_GRADS(2, "SAME", 5, 4),
    POOL_GRADS(1, "SAME", 9, 8),
    POOL_GRADS(3, "VALID", 3, 2),
    {.name = "rows",
     .op = "Softmax",
     .input_count = 1,
     .output_count = 1,
     .inputs = {BETWEEN(-4, 4, 5, 10)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "many classes",
     .op = "Softmax",
     .input_count = 1,
     .output_count = 1,
     .inputs = {BETWEEN(-4, 4, 2, 3, 700)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "rows",
     .op = "LogSoftmax",
     .input_count = 1,
     .output_count = 1,
     .inputs = {BETWEEN(-4, 4, 5, 200)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "dense labels",
     .op = "SoftmaxCrossEntropyWithLogits",
     .input_count = 2,
     .output_count = 2,
     .inputs = {BETWEEN(-4, 4, 6, 150), BETWEEN(0, 0.01, 6, 150)},
     .outputs = {MR_FLOAT, MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "int64 labels",
     .op = "SparseSoftmaxCrossEntropyWithLogits",
     .input_count = 2,
     .output_count = 2,
     .inputs = {BETWEEN(-4, 4, 6, 10), INTS(MR_INT64, 0, 10, 6)},
     .outputs = {MR_FLOAT, MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tlabels", MR_INT64)}},
    {.name = "int32 labels",
     .op = "SparseSoftmaxCrossEntropyWithLogits",
     .input_count = 2,
     .output_count = 2,
     .inputs = {BETWEEN(-4, 4, 6, 300), INTS(MR_INT32, 0, 300, 6)},
     .outputs = {MR_FLOAT, MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tlabels", MR_INT32)}},
    CONVS("same", 3, 1, 1, "SAME", 8, 7),
    CONVS("valid", 3, 1, 1, "VALID", 6, 5),
    CONVS("one by one", 1, 1, 1, "SAME", 8, 7),
    CONVS("strided, uneven padding", 3, 2, 1, "SAME", 4, 4),
    CONVS("strided, no padding", 3, 2, 1, "VALID", 3, 3),
    CONVS("dilated", 3, 1, 2, "SAME", 8, 7),
    CONVS("even window", 4, 1, 1, "SAME", 8, 7),
    MATMUL("plain", 7, 20, 20, 9, 0, 0),
    MATMUL("left transposed", 20, 7, 20, 9, 1, 0),
    MATMUL("right transposed", 7, 20, 9, 20, 0, 1),
    MATMUL("both transposed", 20, 7, 9, 20, 1, 1),
    MATMUL("nothing inside", 3, 0, 0, 4, 0, 0),
    FORWARDED("Identity"),
    FORWARDED("StopGradient"),
    FORWARDED("PreventGradient"),
    FORWARDED("Snapshot"),
    {.name = "shape",
     .op = "Reshape",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(3, 4), GIVEN(2, 6, -1)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tshape", MR_INT32)}},
    {.name = "shape",
     .op = "ExpandDims",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(3, 4), GIVEN_ONE(1)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tdim", MR_INT32)}},
    {.name = "shape",
     .op = "Squeeze",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(3, 1, 4)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, LIST("squeeze_dims", 0, 0)}},
    SHAPED("Shape", AND_OUT_TYPE),
    {.name = "shape",
     .op = "ShapeN",
     .input_count = 2,
     .output_count = 2,
     .inputs = {FLOATS(3, 4), FLOATS(5)},
     .outputs = {MR_INT32, MR_INT32},
     .attrs = {INT("N", 2), T_FLOAT, TYPE("out_type", MR_INT32)}},
    SHAPED("Size", AND_OUT_TYPE),
    SHAPED("Rank", ),
    {.name = "float",
     .op = "Fill",
     .input_count = 2,
     .output_count = 1,
     .inputs = {GIVEN(2, 30, 20), ONE_FLOAT},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("index_type", MR_INT32)}},
    {.name = "int64",
     .op = "Fill",
     .input_count = 2,
     .output_count = 1,
     .inputs = {GIVEN(1, 30), {.dtype = MR_INT64, .shape = {0}, .low = 7, .high = 9}},
     .outputs = {MR_INT64},
     .attrs = {TYPE("T", MR_INT64), TYPE("index_type", MR_INT32)}},
    {.name = "bool",
     .op = "Fill",
     .input_count = 2,
     .output_count = 1,
     .inputs = {GIVEN(1, 30), {.dtype = MR_BOOL, .shape = {0}, .low = 1, .high = 2}},
     .outputs = {MR_BOOL},
     .attrs = {TYPE("T", MR_BOOL), TYPE("index_type", MR_INT32)}},
    {.name = "float",
     .op = "ZerosLike",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(30, 4)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT}},
    {.name = "float",
     .op = "OnesLike",
     .input_count = 1,
     .output_count = 1,
     .inputs = {FLOATS(30, 4)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT},
     .reuses = true},
    {.name = "float",
     .op = "Tile",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(2, 3, 4), GIVEN(3, 2, 1, 3)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tmultiples", MR_INT32)}},
    {.name = "int64",
     .op = "Tile",
     .input_count = 2,
     .output_count = 1,
     .inputs = {INTS(MR_INT64, 0, 99, 3), GIVEN(1, 4)},
     .outputs = {MR_INT64},
     .attrs = {TYPE("T", MR_INT64), TYPE("Tmultiples", MR_INT32)}},
    {.name = "float",
     .op = "BroadcastTo",
     .input_count = 2,
     .output_count = 1,
     .inputs = {FLOATS(3, 1), GIVEN(3, 2, 3, 4)},
     .outputs = {MR_FLOAT},
     .attrs = {T_FLOAT, TYPE("Tidx", MR_INT32)}},
    {.name = "bool",
     .op = "BroadcastTo",
     .input_count = 2,
     .output_count = 1,
     .inputs = {INTS(MR_BOOL, -1, 1, 3, 1), GIVEN(2, 3, 4)},
     .outputs = {MR_BOOL},
     .attrs = {TYPE("T", MR_BOOL), TYPE("Tidx", MR_INT32)}},
    CASTS(MR_FLOAT),
    CASTS(MR_DOUBLE),
    CASTS(MR_INT32),
    CASTS(MR_INT64),
    CASTS(MR_UINT8),
    CASTS(MR_BOOL),
    EXTREME("ArgMax", MR_INT64, -1),
    EXTREME("ArgMax", MR_INT32, 1),
    EXTREME("ArgMin", MR_INT64, 0),
    EXTREME("ArgMin", MR_INT32, 2),
    {.name = "seeded",
     .op = "RandomUniform",
     .input_count = 1,
     .output_count = 1,
     .inputs = {GIVEN(2, 67, 15)},
     .outputs = {MR_FLOAT},
     .attrs = {TYPE("T", MR_INT32), TYPE("dtype", MR_FLOAT), INT("seed", 87654321), INT("seed2", 12345)}},
    DESCENT("ApplyGradientDescent"),
    MOMENTUM("ApplyMomentum", 0),
    MOMENTUM("ApplyMomentum", 1),
    ADAM("ApplyAdam", 0),
    ADAM("ApplyAdam", 1),
    DESCENT("ResourceApplyGradientDescent"),
    MOMENTUM("ResourceApplyMomentum", 1),
    ADAM("ResourceApplyAdam", 0),
    ASSIGN("AssignAdd", "T"),
    ASSIGN("AssignSub", "T"),
    ASSIGN("AssignAddVariableOp", "dtype"),
    ASSIGN("AssignSubVariableOp", "dtype"),
};

int32_t sample_count(void)
{
    return (int32_t)(sizeof samples / sizeof *samples);
}

const sample *sample_at(int32_t index)
{
    return &samples[index];
}
