/* Assertions in the graph: nodes that fail a run, with the values, unless a condition holds (tf.Assert,
 * tf.debugging.assert_equal and its relatives).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
 * mr_node *checks[] = {mr_assert_rank(g, x, 1), mr_assert_positive(g, x, .message = "a length")};
 * mr_graph_push_control_dependencies(g, checks, 2);
 * mr_output root = mr_sqrt(g, x, .name = "root");
 * mr_graph_pop_control_dependencies(g);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * printf("%s\n", mr_node_name(root.node));
 * mr_graph_free(g);
 * ```
 *
 * An assertion is checked when its node runs: as a control dependency, as above, or as a target. The run then fails
 * with MR_INVALID_ARGUMENT: "assertion failed: [a length] [Condition x > 0 did not hold element-wise:] [x (x:0) = ]
 * [-1 2 3...]". Where the shapes in the graph already contradict, it is an error of the graph.
 *
 * Other checks of tf.debugging are builders of ops.h: mr_check_numerics, mr_print, mr_is_finite. Options follow the
 * rules of api.h. Errors are recorded in the graph. */
#ifndef MILLRACE_ASSERTS_H
#define MILLRACE_ASSERTS_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_assertion_options {
    size_t size;         /* of this struct (api.h) */
    const char *name;    /* of the scope; default "assert_equal", … */
    const char *message; /* at the beginning of the error */
    mr_outputs data;     /* what the error shows instead of message, condition and values; message is then an error */
    int32_t summarize;   /* elements that are shown of each value; default 3; -1: all */
    float rtol, atol;    /* of near: at least 0; default 10 times the machine epsilon of the dtype */
} mr_assertion_options;
#define MR_ASSERTION_DEFAULTS .rtol = __builtin_nanf(""), .atol = __builtin_nanf("")
#define MR_ASSERTION_(call, ...) MR_WITH_SIZE_(call, mr_assertion_options, MR_ASSERTION_DEFAULTS, __VA_ARGS__)

/* ---- Values ---- */

typedef enum mr_comparison {
    MR_COMPARE_EQUAL = 0, /* x == y; this and the others of all elements; x and y are broadcast */
    MR_COMPARE_NONE_EQUAL,
    MR_COMPARE_LESS,
    MR_COMPARE_LESS_EQUAL,
    MR_COMPARE_GREATER,
    MR_COMPARE_GREATER_EQUAL,
    MR_COMPARE_NEAR, /* |x - y| < atol + rtol * |y|; of floating point */
} mr_comparison;
/* x, y  of one dtype */
MR_API mr_node *mr_assert_compare_(mr_graph *graph, mr_comparison comparison, mr_output x, mr_output y,
                                   const mr_assertion_options *options);
#define mr_assert_compare(graph, comparison, x, y, ...)                                                                \
    MR_ASSERTION_(mr_assert_compare_((graph), (comparison), (x), (y), &options_), __VA_ARGS__)
#define mr_assert_equal(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_EQUAL, x, y, __VA_ARGS__)
#define mr_assert_none_equal(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_NONE_EQUAL, x, y, __VA_ARGS__)
#define mr_assert_less(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_LESS, x, y, __VA_ARGS__)
#define mr_assert_less_equal(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_LESS_EQUAL, x, y, __VA_ARGS__)
#define mr_assert_greater(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_GREATER, x, y, __VA_ARGS__)
#define mr_assert_greater_equal(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_GREATER_EQUAL, x, y, __VA_ARGS__)
#define mr_assert_near(graph, x, y, ...) mr_assert_compare(graph, MR_COMPARE_NEAR, x, y, __VA_ARGS__)

typedef enum mr_sign_kind {
    MR_SIGN_POSITIVE = 0, /* x > 0; this and the others of all elements */
    MR_SIGN_NEGATIVE,
    MR_SIGN_NON_NEGATIVE,
    MR_SIGN_NON_POSITIVE,
} mr_sign_kind;
/* x  of a real dtype */
MR_API mr_node *mr_assert_sign_(mr_graph *graph, mr_sign_kind sign, mr_output x, const mr_assertion_options *options);
#define mr_assert_sign(graph, sign, x, ...) MR_ASSERTION_(mr_assert_sign_((graph), (sign), (x), &options_), __VA_ARGS__)
#define mr_assert_positive(graph, x, ...) mr_assert_sign(graph, MR_SIGN_POSITIVE, x, __VA_ARGS__)
#define mr_assert_negative(graph, x, ...) mr_assert_sign(graph, MR_SIGN_NEGATIVE, x, __VA_ARGS__)
#define mr_assert_non_negative(graph, x, ...) mr_assert_sign(graph, MR_SIGN_NON_NEGATIVE, x, __VA_ARGS__)
#define mr_assert_non_positive(graph, x, ...) mr_assert_sign(graph, MR_SIGN_NON_POSITIVE, x, __VA_ARGS__)

/* Whether the elements, in row-major order, increase, or at least do not decrease. True of fewer than two.
 * x        of a real dtype
 * returns  a bool scalar */
MR_API mr_output mr_is_non_decreasing(mr_graph *graph, mr_output x);
MR_API mr_output mr_is_strictly_increasing(mr_graph *graph, mr_output x);
/* Returns x after it has been checked: a NaN or an infinity fails the run with the message
 * (tf.verify_tensor_all_finite).
 * x  half, bfloat16, float or double */
MR_API mr_output mr_verify_all_finite(mr_graph *graph, mr_output x, const char *message);

/* ---- Ranks. If the graph knows the rank, nothing is left to be checked when it runs. ---- */

/* ranks  one of them, at least 0; 1 to 64 of them */
MR_API mr_node *mr_assert_rank_in_(mr_graph *graph, mr_output x, mr_ints ranks, const mr_assertion_options *options);
#define mr_assert_rank_in(graph, x, ranks, ...)                                                                        \
    MR_ASSERTION_(mr_assert_rank_in_((graph), (x), (ranks), &options_), __VA_ARGS__)
MR_API mr_node *mr_assert_rank_(mr_graph *graph, mr_output x, int32_t rank, const mr_assertion_options *options);
#define mr_assert_rank(graph, x, rank, ...) MR_ASSERTION_(mr_assert_rank_((graph), (x), (rank), &options_), __VA_ARGS__)
MR_API mr_node *mr_assert_rank_at_least_(mr_graph *graph, mr_output x, int32_t rank,
                                         const mr_assertion_options *options);
#define mr_assert_rank_at_least(graph, x, rank, ...)                                                                   \
    MR_ASSERTION_(mr_assert_rank_at_least_((graph), (x), (rank), &options_), __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
