/* Elementwise operators: selects the loop for a type, broadcasts, converts half types to float, and distributes work
 * over threads. An operator supplies loops over contiguous rows. */
#ifndef MR_KERNELS_ELEMENTWISE_H
#define MR_KERNELS_ELEMENTWISE_H

#include "kernels/common.h"

/* Where a CPU level has no vector instructions for a loop, or a sanitizer prevents vectorization, scalar code is
 * intended. */
#pragma clang diagnostic ignored "-Wpass-failed"
/* Asserts to the compiler that the elements of a row are independent, even if the output is one of the inputs. */
#define MR_EACH_ELEMENT _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < count; i++)

/* 1, which the compiler does not know: a product with it is 0 for a subnormal number where the processor is set to
 * treat those as 0. */
extern const float mr_one;

/* loops is indexed by the input's dtype. float_levels, if set, replaces loops[MR_FLOAT]. Half types without a loop of
 * their own use the float loop. */
typedef struct mr_unary {
    mr_unary_loop loops[MR_DTYPE_COUNT];
    const mr_unary_loop *float_levels;
} mr_unary;
mr_status mr_unary_run(mr_kernel_call *call, const mr_unary *unary, mr_error *error);
/* See mr_kernel.elementwise. */
bool mr_unary_describe(const mr_unary *unary, mr_dtype dtype, mr_elementwise *elementwise);

typedef struct mr_binary {
    mr_binary_loop loops[MR_DTYPE_COUNT];
    const mr_binary_loop *float_levels;
    bool nonzero_b;     /* integers: a 0 in b is an error */
    bool nonnegative_b; /* integers: a negative number in b is an error */
    mr_operand_rule rule;
} mr_binary;
mr_status mr_binary_run(mr_kernel_call *call, const mr_binary *binary, mr_error *error);
bool mr_binary_describe(const mr_binary *binary, mr_dtype dtype, mr_elementwise *elementwise);
/* The shape of the result for operands with the shapes of the call's two inputs. Where the rule is that of a bias, or
 * that of the same count, b is used with the shape *b. */
mr_status mr_binary_shape(const mr_kernel_call *call, mr_operand_rule rule, mr_shape *b, mr_shape *result,
                          mr_error *error);
/* Checks the operands of a BiasAdd with the channels in that dimension. */
mr_status mr_bias_check(const mr_kernel_call *call, int channel, bool is_last, mr_error *error);

/* Concatenates strings, with broadcasting. */
mr_status mr_string_add(mr_kernel_call *call, mr_error *error);

/* Broadcasts two shapes; the error names both if they are incompatible. */
mr_status mr_kernel_broadcast(const mr_kernel_call *call, mr_shape a, mr_shape b, mr_shape *result, mr_error *error);
/* The strides of `shape` when it is broadcast to `wide`: 0 along repeated dimensions, and all 0 for a shape without
 * elements. */
void mr_broadcast_strides(mr_shape shape, mr_shape wide, int64_t strides[MR_RANK_MAX]);

/* The body of a binary loop: `expression` of a and b, for each of the three operand kinds. */
#define MR_BINARY_BODY(name, type, out_type, expression)                                                               \
    MR_INLINE void name##_body(void *target, const void *a_row, const void *b_row, int64_t count,                      \
                               mr_operands operands)                                                                   \
    {                                                                                                                  \
        out_type *to = target;                                                                                         \
        const type *as = a_row, *bs = b_row;                                                                           \
        if (operands == MR_A_SCALAR) {                                                                                 \
            const type a = *as;                                                                                        \
            MR_EACH_ELEMENT                                                                                            \
            {                                                                                                          \
                const type b = bs[i];                                                                                  \
                to[i] = (out_type)(expression);                                                                        \
            }                                                                                                          \
        } else if (operands == MR_B_SCALAR) {                                                                          \
            const type b = *bs;                                                                                        \
            MR_EACH_ELEMENT                                                                                            \
            {                                                                                                          \
                const type a = as[i];                                                                                  \
                to[i] = (out_type)(expression);                                                                        \
            }                                                                                                          \
        } else {                                                                                                       \
            MR_EACH_ELEMENT                                                                                            \
            {                                                                                                          \
                const type a = as[i], b = bs[i];                                                                       \
                to[i] = (out_type)(expression);                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
#define MR_BINARY_LOOP(name, type, out_type, expression)                                                               \
    MR_BINARY_BODY(name, type, out_type, expression)                                                                   \
    static void name(void *target, const void *a, const void *b, int64_t count, mr_operands operands)                  \
    {                                                                                                                  \
        name##_body(target, a, b, count, operands);                                                                    \
    }
/* The same for each CPU level: `name` is the table of the three functions. */
#define MR_BINARY_LEVELS(name, type, out_type, expression)                                                             \
    MR_BINARY_BODY(name, type, out_type, expression)                                                                   \
    MR_LEVELS(name, (void *target, const void *a, const void *b, int64_t count, mr_operands operands),                 \
              (target, a, b, count, operands))

#define MR_UNARY_BODY(name, type, out_type, expression)                                                                \
    MR_INLINE void name##_body(void *target, const void *source, int64_t count)                                        \
    {                                                                                                                  \
        out_type *to = target;                                                                                         \
        const type *from = source;                                                                                     \
        MR_EACH_ELEMENT                                                                                                \
        {                                                                                                              \
            const type x = from[i];                                                                                    \
            to[i] = (out_type)(expression);                                                                            \
        }                                                                                                              \
    }
#define MR_UNARY_LOOP(name, type, out_type, expression)                                                                \
    MR_UNARY_BODY(name, type, out_type, expression)                                                                    \
    static void name(void *target, const void *source, int64_t count)                                                  \
    {                                                                                                                  \
        name##_body(target, source, count);                                                                            \
    }
#define MR_UNARY_LEVELS(name, type, out_type, expression)                                                              \
    MR_UNARY_BODY(name, type, out_type, expression)                                                                    \
    MR_LEVELS(name, (void *target, const void *source, int64_t count), (target, source, count))

#endif
