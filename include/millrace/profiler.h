/* Profiles: the parameters, floating-point operations, memory and time of a graph by scope, by data flow, by operator
 * or by line of Python (tf.profiler).
 *
 * ```c
 * mr_error error = {0};
 * mr_graph *g = mr_graph_new();
 * mr_profile *profile = nullptr;
 * mr_profile_view *view = nullptr;
 * mr_variable w = mr_get_variable(g, "layer/w", MR_SHAPE(3, 2));
 * mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(4, 3), .name = "x");
 * (void)mr_mat_mul(g, x, w.value, .name = "layer/product");
 * if (mr_profile_new(g, &profile, &error) != MR_OK) return 1;
 * if (mr_profile_view_new(profile, MR_PROFILE_SCOPE, MR_OPTIONS(mr_profile_options, MR_PROFILE_TRAINABLE_PARAMETERS),
 *                         &view, &error) == MR_OK) {
 *     printf("%s", mr_profile_view_text(view));
 *     printf("%lld parameters\n", (long long)mr_profile_view_root(view)->total.parameters);
 * }
 * mr_profile_view_free(view);
 * mr_profile_free(profile);
 * mr_graph_free(g);
 * ```
 *
 * A profile is created from a graph and takes the RunMetadata of any number of traced runs (mr_run_options.metadata,
 * `trace`; those of TensorFlow have the same form). A view selects entries, adds their figures up and orders them.
 * Views, options and texts are those of tf.profiler.profile; without its header of options and explanations.
 *
 * Code view. It groups nodes by the lines of Python that created them. These are not in a graph's file: they are in the
 * OpLogProto that tf.profiler.write_op_log writes ("tfprof_log"), for mr_profile_add_op_log. A graph built in C has no
 * such lines; its views are the other three.
 *
 * One thread at a time for each profile. A view is independent of its profile once it is created, and can be read by
 * any number of threads. */
#ifndef MILLRACE_PROFILER_H
#define MILLRACE_PROFILER_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_profile mr_profile;

/* Creates a profile of a graph (tf.profiler.Profiler). What is needed is copied: nodes that are added later are no part
 * of it. For a graph in a file, see mr_model_open (model.h).
 * errors  those of the graph; MR_INVALID_ARGUMENT: a name with more than 256 scopes; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_profile_new(const mr_graph *graph, mr_profile **profile, mr_error *error);
MR_API void mr_profile_free(mr_profile *profile); /* null is allowed */

/* Adds the calls of a traced run (Profiler.add_step). Calls that the graph does not have become entries of their own,
 * except for _SOURCE, RecvTensor and copies between devices. Shapes that the graph does not know are taken from the
 * outputs of the calls, so that more nodes have float operations. The RunMetadata may be hostile.
 * step    any number from 0 on; several runs with the same one count as one step
 * errors  MR_INVALID_ARGUMENT: no RunMetadata, or one without step_stats; the profile is then unchanged.
 *         MR_RESOURCE_EXHAUSTED: the run may have been added in part */
MR_API mr_status mr_profile_add_run(mr_profile *profile, int64_t step, mr_string run_metadata, mr_error *error);

/* Gives a node a type that account_type_regexes can select (the types of TensorFlow's OpLogProto). Each node has the
 * name of its operator as a type, in lower case the device on which it ran, and "_trainable_variables" if it is in that
 * collection.
 * errors  MR_NOT_FOUND: no node of that name; MR_INVALID_ARGUMENT: an empty type */
MR_API mr_status mr_profile_add_type(mr_profile *profile, const char *node, const char *type, mr_error *error);
/* Sets the float operations of one call of a node, such as one of a custom operator, instead of those that are computed
 * from shapes.
 * errors  MR_NOT_FOUND: no node of that name; MR_INVALID_ARGUMENT: less than 0 */
MR_API mr_status mr_profile_set_float_ops(mr_profile *profile, const char *node, int64_t float_ops, mr_error *error);

/* Adds an OpLogProto: the types, float operations and code traces of nodes, as tf.profiler.write_op_log writes them.
 * Entries for nodes that the profile does not have are ignored. Traces of a node that has some are kept. The OpLogProto
 * may be hostile.
 * errors  MR_INVALID_ARGUMENT: no OpLogProto, a trace whose strings do not exist, or float operations less than 0. Some
 *         entries may have been added */
MR_API mr_status mr_profile_add_op_log(mr_profile *profile, mr_string op_log, mr_error *error);

/* ---- Views ---- */

typedef enum mr_profile_kind {
    /* A tree of name scopes. Scopes that are no nodes have an entry without figures of its own. */
    MR_PROFILE_SCOPE,
    /* A tree of inputs: below a node are the nodes that it reads or runs after. A node that several others read appears
     * only below the first one. At the top are the nodes that no other one reads. */
    MR_PROFILE_GRAPH,
    /* A list of operators. The total of an entry comprises the entries after it. */
    MR_PROFILE_OP,
    /* A tree of calls of Python, "model.py:12:layer". The innermost ones have the figures of the nodes that they
     * created. Nodes of gradients are below the calls of the forward nodes, marked " (gradient)". */
    MR_PROFILE_CODE,
} mr_profile_kind;

/* Columns, to select and to order by. Figures of a call are those of its RunMetadata. */
typedef enum mr_profile_column {
    MR_PROFILE_NAME = 0,           /* only to order by: ascending. All others are descending, by totals */
    MR_PROFILE_BYTES = 1,          /* requested_bytes */
    MR_PROFILE_PEAK_BYTES = 2,     /* peak_bytes */
    MR_PROFILE_RESIDUAL_BYTES = 4, /* residual_bytes */
    MR_PROFILE_OUTPUT_BYTES = 8,   /* output_bytes */
    MR_PROFILE_MICROS = 16,        /* micros, accelerator_micros and cpu_micros; ordered by micros */
    MR_PROFILE_ACCELERATOR_MICROS = 32,
    MR_PROFILE_CPU_MICROS = 64,
    MR_PROFILE_PARAMS = 128,
    MR_PROFILE_FLOAT_OPS = 256,
    MR_PROFILE_OCCURRENCE = 512, /* run_count and definition_count; ordered by definition_count */
    MR_PROFILE_DEVICE = 1024,    /* only to select */
    MR_PROFILE_OP_TYPES = 2048,  /* only to select */
} mr_profile_column;

/* Regular expressions have RE2's syntax and must match a complete name or type. An empty list has the default. */
typedef struct mr_profile_options {
    size_t size; /* of this struct (api.h) */
    /* The step; null: the average over the steps in which a node ran. Borrowed during the call. */
    const int64_t *step;
    /* Entries with less are hidden, and the entries below them move up. 0: no minimum. Bytes and times are compared
     * with totals. The others are compared with an entry's own figure; in the operator view and the code view
     * min_params and min_float_ops with totals, and min_occurrence is an error because TensorFlow ignores it there. */
    int64_t min_bytes, min_peak_bytes, min_residual_bytes, min_output_bytes;
    int64_t min_micros, min_accelerator_micros, min_cpu_micros;
    int64_t min_params, min_float_ops, min_occurrence;
    /* Entries below this depth are hidden; the root has depth 1. In the operator view at most max_depth + 1 operators
     * are considered. At most 10000; default 100. */
    int32_t max_depth;
    mr_profile_column order_by;
    int32_t select; /* columns of the text: MR_PROFILE_MICROS | MR_PROFILE_BYTES; default MR_PROFILE_MICROS */
    /* Types of nodes that count; default ".*". Others have no entry. A node that several match counts once. */
    mr_names account_type_regexes;
    mr_names start_name_regexes;    /* entries with which the view starts; default ".*" */
    mr_names trim_name_regexes;     /* entries below which the view ends; before which, in the operator and code view */
    mr_names show_name_regexes;     /* entries that are not hidden; default ".*" */
    mr_names hide_name_regexes;     /* entries that are hidden */
    bool account_displayed_op_only; /* totals comprise only entries that are not hidden; ignored in the code view */
} mr_profile_options;

/* The list of MR_PROFILE_TRAINABLE_PARAMETERS. */
static inline mr_names mr_profile_trainable_types_(void)
{
    static const mr_name items[] = {"_trainable_variables"};
    const mr_names list = {items, 1};
    return list;
}

/* Ready-made options of tf.profiler.ProfileOptionBuilder, members to begin an initializer with:
 *
 * mr_profile_options options = {.size = sizeof options, MR_PROFILE_TIME_AND_MEMORY};
 * options.min_micros = 100;
 *
 * trainable_variables_parameter */
#define MR_PROFILE_TRAINABLE_PARAMETERS                                                                                \
    .max_depth = 10000, .select = MR_PROFILE_PARAMS, .account_type_regexes = mr_profile_trainable_types_(),            \
    .account_displayed_op_only = true
/* float_operation */
#define MR_PROFILE_FLOAT_OPERATIONS                                                                                    \
    .min_float_ops = 1, .max_depth = 10000, .order_by = MR_PROFILE_FLOAT_OPS, .select = MR_PROFILE_FLOAT_OPS,          \
    .account_displayed_op_only = true
/* time_and_memory */
#define MR_PROFILE_TIME_AND_MEMORY                                                                                     \
    .min_bytes = 1, .min_micros = 1, .max_depth = 10000, .order_by = MR_PROFILE_MICROS,                                \
    .select = MR_PROFILE_MICROS | MR_PROFILE_BYTES, .account_displayed_op_only = true

/* What an entry uses. Sums that exceed INT64_MAX are INT64_MAX. */
typedef struct mr_profile_figures {
    /* Elements of the attr "shape", which variables and placeholders have: 1 for a scalar, 0 if a size is unknown. */
    int64_t parameters;
    /* Of all calls; if the node has run in no step that was added, of one call. 0 for operators without a known number,
     * such as those that move data, and if a shape is unknown. As tf.RegisterStatistics("flops") has them, except that
     * control inputs of AddN are not counted, and that BatchMatMul considers adj_x. */
    int64_t float_ops;
    /* Memory of the calls: all that was requested, the most that was in use, what remained afterwards, and what the
     * outputs have. A RunMetadata of this library only has the outputs: these are then also what was requested and the
     * most in use. */
    int64_t requested_bytes, peak_bytes, residual_bytes, output_bytes;
    /* Times of the calls in µs, at least 1 for each: accelerator_micros in streams of a device ("stream:all"),
     * cpu_micros all others, micros the sum. A RunMetadata of this library has no streams: for a GPU it has the time in
     * which calls are launched. */
    int64_t micros, accelerator_micros, cpu_micros;
    int64_t run_count;        /* calls */
    int64_t definition_count; /* nodes and scopes */
} mr_profile_figures;

/* An entry of a view, borrowed from it (GraphNodeProto, MultiGraphNodeProto). */
typedef struct mr_profile_entry mr_profile_entry;
struct mr_profile_entry {
    size_t size;              /* of this struct (api.h) */
    const char *name;         /* of the node, scope or operator; "_TFProfRoot" */
    const char *op;           /* the operator; "" for scopes and the root */
    const char *device;       /* on which it ran, in lower case; "": it did not run, or several */
    mr_profile_figures own;   /* the figures of the entry itself */
    mr_profile_figures total; /* with those of the entries below it, or in the operator view after it */
    bool is_accounted;        /* false: it is shown for the entries below it */
    const mr_profile_entry *const *children;
    int32_t child_count;
    const mr_profile_entry *const *nodes; /* operator and code view: the nodes of the entry that count, by name */
    int32_t node_count;
};

typedef struct mr_profile_view mr_profile_view;
/* Creates a view.
 * options  null: the defaults
 * errors   MR_NOT_FOUND: the step has no run, with those that have, or no node has code traces; MR_INVALID_ARGUMENT: an
 *          option that is out of range or has no effect, or an invalid regular expression; MR_RESOURCE_EXHAUSTED: more
 *          than 1 GiB of entries, more than 256 MiB of text, or a regular expression that takes too long */
MR_API mr_status mr_profile_view_new(const mr_profile *profile, mr_profile_kind kind, const mr_profile_options *options,
                                     mr_profile_view **view, mr_error *error);
MR_API void mr_profile_view_free(mr_profile_view *view); /* null is allowed */
/* The root, whose total has all entries that count. Its children are the entries of the view. Borrowed; null of a null
 * view. */
MR_API const mr_profile_entry *mr_profile_view_root(const mr_profile_view *view);
/* The view as tfprof prints it: a line of column titles, and a line for each entry. Control characters of names are
 * written as "\x1b". Borrowed; null of a null view. */
MR_API const char *mr_profile_view_text(const mr_profile_view *view);
/* Writes the text to a file, which is replaced atomically.
 * errors  those of writing the file */
MR_API mr_status mr_profile_view_write(const mr_profile_view *view, const char *path, mr_error *error);

/* Writes the view for pprof, compressed with gzip and replaced atomically: "pprof -http=: view.pb.gz". An entry is a
 * function whose callers are the entries above it; the samples are calls, time, accelerator_time, memory, float_ops and
 * parameters. (TensorFlow's pprof output has its view of Python's lines.)
 * errors  those of writing the file; MR_RESOURCE_EXHAUSTED: more than 256 MiB */
MR_API mr_status mr_profile_view_write_pprof(const mr_profile_view *view, const char *path, mr_error *error);

/* ---- Advice ---- */

/* One finding (tf.profiler.advise). */
typedef struct mr_advice {
    /* "ExpensiveOperationChecker": the operators and the scopes at the top that take the most time;
     * "OperationChecker": a faster form of an operator exists;
     * "AcceleratorUtilizationChecker": how much of the last step a device computed */
    const char *checker;
    const char *text; /* one line */
} mr_advice;
typedef struct mr_profile_advice {
    const mr_advice *items;
    int32_t count;
} mr_profile_advice;
/* Examines a profile; what no run was added for is not examined.
 * advice  owned by the caller: mr_profile_advice_free
 * errors  MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_profile_advise(const mr_profile *profile, mr_profile_advice **advice, mr_error *error);
MR_API void mr_profile_advice_free(mr_profile_advice *advice); /* null is allowed */

#ifdef __cplusplus
}
#endif
#endif
