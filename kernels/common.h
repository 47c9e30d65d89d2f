/* Common code of the kernels: reading small inputs, outputs of any dtype, and lists of types for templates. */
#ifndef MR_KERNELS_COMMON_H
#define MR_KERNELS_COMMON_H

#include "base/cpu.h"
#include "base/kernel.h"
#include "base/pool.h"

/* Defines the table of a family. Use it at the end of the family's file, after `static const mr_kernel kernels[]`. */
#define MR_KERNEL_FAMILY(name)                                                                                         \
    extern const mr_kernel_table mr_kernels_##name;                                                                    \
    const mr_kernel_table mr_kernels_##name = {kernels, sizeof kernels / sizeof kernels[0]}

/* The types that a template is instantiated for: X(dtype, C type, suffix). */
#define MR_EACH_SIGNED(X)                                                                                              \
    X(MR_FLOAT, float, float)                                                                                          \
    X(MR_DOUBLE, double, double)                                                                                       \
    X(MR_INT32, int32_t, int32) X(MR_INT64, int64_t, int64) X(MR_INT8, int8_t, int8) X(MR_INT16, int16_t, int16)
#define MR_EACH_UNSIGNED(X)                                                                                            \
    X(MR_UINT8, uint8_t, uint8)                                                                                        \
    X(MR_UINT16, uint16_t, uint16) X(MR_UINT32, uint32_t, uint32) X(MR_UINT64, uint64_t, uint64)
#define MR_EACH_NUMBER(X) MR_EACH_SIGNED(X) MR_EACH_UNSIGNED(X)

/* Like MR_EACH_NUMBER, but integers use the unsigned type of the same width: sums and products of signed integers wrap
 * as in TensorFlow, and the unsigned ones have the same bits. */
#define MR_EACH_WRAPPING_NUMBER(X)                                                                                     \
    X(MR_FLOAT, float, float)                                                                                          \
    X(MR_DOUBLE, double, double)                                                                                       \
    X(MR_INT32, uint32_t, int32)                                                                                       \
    X(MR_INT64, uint64_t, int64) X(MR_INT8, uint8_t, int8) X(MR_INT16, uint16_t, int16) MR_EACH_UNSIGNED(X)

/* Number of elements of a cheap loop that one thread processes at a time. Fewer do not justify waking another
 * thread. */
constexpr int64_t MR_GRAIN = 16384;

#define MR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define MR_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Before a loop with a constant count: one copy of its body for each pass. A sanitizer would compile these for minutes,
 * and checks the loop as well. */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define MR_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define MR_UNROLL _Pragma("clang loop unroll(full)")
#endif

/* Defines `name`, a table of function pointers indexed by CPU level. All are compiled from the always-inlined function
 * `name_body`, which the compiler vectorizes for each level. */
#define MR_INLINE static inline __attribute__((always_inline))
#define MR_LEVELS(name, parameters, arguments)                                                                         \
    static void name##_plain parameters                                                                                \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }                                                                                                                  \
    MR_TARGET_AVX2 static void name##_avx2 parameters                                                                  \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }                                                                                                                  \
    MR_TARGET_AVX512 static void name##_avx512 parameters                                                              \
    {                                                                                                                  \
        name##_body arguments;                                                                                         \
    }                                                                                                                  \
    static void(*const name[3]) parameters = {name##_plain, name##_avx2, name##_avx512};

/* Reads an integer input (int32 or int64) as int64. More than capacity elements are an error that names `what`. */
mr_status mr_kernel_ints(const mr_kernel_call *call, int input, const char *what, int64_t *values, int capacity,
                         int *count, mr_error *error);
/* Reads the integer of a scalar input. */
mr_status mr_kernel_int(const mr_kernel_call *call, int input, const char *what, int64_t *value, mr_error *error);
/* Reads the integer of an input that may have any rank, but only one element. */
mr_status mr_kernel_single_int(const mr_kernel_call *call, int input, const char *what, int64_t *value,
                               mr_error *error);
/* Reads a shape from an input; every size must be at least 0. */
mr_status mr_kernel_shape(const mr_kernel_call *call, int input, mr_shape *shape, mr_error *error);
/* Fails if inputs a and b have different shapes. */
mr_status mr_kernel_same_shape(const mr_kernel_call *call, int a, int b, mr_error *error);
/* Fails, in TensorFlow's words, unless the inputs have as many elements. */
mr_status mr_kernel_same_count(const mr_kernel_call *call, int a, int b, mr_error *error);
/* Converts an axis in [-rank, rank) to one in [0, rank). */
mr_status mr_kernel_axis(const mr_kernel_call *call, int64_t axis, int rank, int *result, mr_error *error);

/* Writes the position of a flat index in a shape, "[1,2]" or "" for a scalar, to text and returns text. */
constexpr size_t MR_POSITION_TEXT_SIZE = 192;
char *mr_position_text(mr_shape shape, int64_t index, char *text, size_t size_bytes);

/* Writes integers as the output's dtype. A value that does not fit into int32 is an error; int16 and uint16 wrap, as in
 * TensorFlow's ArgMax. */
mr_status mr_kernel_put_ints(mr_kernel_call *call, int index, mr_shape shape, const int64_t *values, mr_error *error);

/* The destination of one output's elements, for kernels that move elements without reading them. Strings borrow their
 * bytes from the buffer of a tensor: they are collected in scratch memory and copied at the end. */
typedef struct mr_sink {
    void *data;
    size_t element_size;
    int64_t count;
    int index;
    mr_shape shape;
    bool is_string;
} mr_sink;
mr_status mr_sink_init(mr_kernel_call *call, int index, mr_shape shape, mr_sink *sink, mr_error *error);
/* Finishes a sink; must be called after every successful init.
 * failed  the status of the kernel, which is returned if it is not MR_OK */
mr_status mr_sink_finish(mr_kernel_call *call, mr_sink *sink, mr_status failed, mr_error *error);

/* Copies between two strided views: target[sum(i·target_strides)] = source[sum(i·source_strides)]. Strides count
 * elements and may be zero or negative in the source; both pointers are at index 0. */
constexpr int MR_COPY_RANK_MAX = 2 * MR_RANK_MAX;
typedef struct mr_copy {
    int rank;
    size_t element_size;
    int64_t dims[MR_COPY_RANK_MAX];
    int64_t target_strides[MR_COPY_RANK_MAX];
    int64_t source_strides[MR_COPY_RANK_MAX];
    char *target;
    const char *source;
} mr_copy;
void mr_copy_strided(mr_copy copy, mr_pool *pool);

/* The product of dims[begin, end) of a tensor; 0 if it overflows, since a tensor with such dims has no elements. */
int64_t mr_dims_product(const mr_shape *shape, int begin, int end);

/* Row-major strides in elements; all 0 for a shape without elements, whose dims may have any size. */
void mr_shape_strides(mr_shape shape, int64_t strides[MR_RANK_MAX]);

/* Kernels that compute half types in float begin with MR_HALF_AS_FLOAT(run), where run is the kernel's own function: if
 * an input or output has a half type, run is called once more with inputs converted to float and float outputs, which
 * are then rounded. */
bool mr_kernel_has_half(const mr_kernel_call *call);
mr_status mr_kernel_as_float(const mr_kernel_call *call, mr_kernel_run run, mr_error *error);
#define MR_HALF_AS_FLOAT(run)                                                                                          \
    if (mr_kernel_has_half(call)) return mr_kernel_as_float(call, run, error)
constexpr int MR_HALF_TENSORS_MAX = 24; /* most inputs, and most outputs, of a kernel that uses it */

/* target[i] = *element, count times; element_size 1, 2, 4, 8 or 16. */
void mr_fill_elements(void *target, const void *element, size_t element_size, int64_t count, mr_pool *pool);

#endif
