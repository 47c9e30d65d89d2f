/* Conditionals and loops in the graph, as tf.cond, tf.case and tf.while_loop, with their gradients.
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
 *
 * mr_output y = {0}; // y = x < 1 ? x * 2 : x * x
 * mr_cond *cond = mr_cond_begin(g, mr_less(g, x, mr_constant_float(g, 1)));
 * mr_cond_else(cond, MR_OUTPUTS(mr_mul(g, x, mr_constant_float(g, 2))));
 * mr_cond_end(cond, MR_OUTPUTS(mr_mul(g, x, x)), &y);
 *
 * mr_output v[2], result[2]; // i = 0, product = 1; while (i < 3) i += 1, product *= y
 * mr_output zero = mr_constant_int32(g, 0), one = mr_constant_float(g, 1);
 * mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS(zero, one), v, .parallel_iterations = 10);
 * mr_while_loop_body(loop, mr_less(g, v[0], mr_constant_int32(g, 3)), v);
 * mr_while_loop_end(loop, MR_OUTPUTS(mr_add(g, v[0], mr_constant_int32(g, 1)), mr_mul(g, v[1], y)), result);
 *
 * mr_output gradient = {0};
 * mr_gradients(g, MR_OUTPUTS(result[1]), MR_OUTPUTS(x), nullptr, &gradient);
 * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * mr_graph_free(g);
 * ```
 *
 * What is built between begin and end belongs to the branch or to the loop. It may use any output from outside.
 * Outside, only the results may be used, not what was built inside. Conditionals and loops nest.
 *
 * The nodes are TensorFlow 1's (Switch, Merge, Enter, NextIteration, Exit, LoopCond), with its names, so TensorFlow
 * runs these graphs too. A begin without its end leaves the graph inside; the session reports it. Objects belong to
 * the graph. Errors are recorded in the graph; the results are then outputs that later builders pass on. */
#ifndef MILLRACE_CONTROL_FLOW_H
#define MILLRACE_CONTROL_FLOW_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Conditionals ---- */

typedef struct mr_cond mr_cond;
typedef struct mr_cond_options {
    size_t size;      /* of this struct (api.h) */
    const char *name; /* default "cond" */
} mr_cond_options;
/* Begins a conditional with the branch that runs if pred is true.
 * pred  a bool scalar */
MR_API mr_cond *mr_cond_begin_(mr_graph *graph, mr_output pred, const mr_cond_options *options);
#define mr_cond_begin(graph, pred, ...)                                                                                \
    MR_WITH_SIZE_(mr_cond_begin_((graph), (pred), &options_), mr_cond_options, __VA_ARGS__)
/* Ends the first branch and begins the one that runs if pred is false.
 * results  of the first branch; any number, also outputs from outside */
MR_API void mr_cond_else(mr_cond *cond, mr_outputs results);
/* Ends the second branch.
 * results  of the second branch: as many, and of the same dtypes
 * merged   receives a result of either branch for each of them; null if there are none
 * errors   MR_INVALID_ARGUMENT: the branches differ in the number or in the dtypes of their results */
MR_API void mr_cond_end(mr_cond *cond, mr_outputs results, mr_output *merged);

/* ---- Loops ---- */

typedef struct mr_while_loop mr_while_loop;
typedef struct mr_while_loop_options {
    size_t size;                 /* of this struct (api.h) */
    int32_t parallel_iterations; /* iterations that may run at the same time: default 10, at least 1 */
    /* Allows gradients; default true. The values of all iterations are kept only if a gradient is built. */
    bool back_prop;
    /* Kept values may be moved to the host's memory; no effect on a CPU. */
    bool swap_memory;
    /* The shapes that the variables have in all iterations, one for each; default: those of the initial values. */
    mr_shapes shape_invariants;
    const char *name; /* default "while" */
} mr_while_loop_options;
#define MR_WHILE_LOOP_DEFAULTS .parallel_iterations = 10, .back_prop = true
/* Begins a loop with its test: what is built next decides whether another iteration follows.
 * initial    the initial values, at least one
 * variables  receives the values at the beginning of an iteration, as many */
MR_API mr_while_loop *mr_while_loop_begin_(mr_graph *graph, mr_outputs initial, mr_output *variables,
                                           const mr_while_loop_options *options);
#define mr_while_loop_begin(graph, initial, variables, ...)                                                            \
    MR_WITH_SIZE_(mr_while_loop_begin_((graph), (initial), (variables), &options_), mr_while_loop_options,             \
                  MR_WHILE_LOOP_DEFAULTS, __VA_ARGS__)
/* Ends the test and begins the body, which computes the next values.
 * test       a bool scalar; false ends the loop
 * variables  receives the values that the body uses */
MR_API void mr_while_loop_body(mr_while_loop *loop, mr_output test, mr_output *variables);
/* Ends the body.
 * next    the next values: as many as variables, of the same dtypes and shapes
 * finals  receives the values after the last iteration
 * errors  MR_INVALID_ARGUMENT: a next value has another dtype, or a shape that the variable must not take */
MR_API void mr_while_loop_end(mr_while_loop *loop, mr_outputs next, mr_output *finals);

#ifdef __cplusplus
}
#endif
#endif
