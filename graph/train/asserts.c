/* Assertions, with the conditions and the texts of tf.debugging. Each is an Assert without the conditional that
 * TensorFlow puts around it to save copies from a GPU. */
#include <millrace/asserts.h>

#include "base/options.h"
#include "graph/train/train.h"
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

constexpr int32_t DATA_MAX = 256;

/* One assertion that is being built, in a scope of its own. */
typedef struct assertion {
    mr_graph *graph;
    mr_assertion_options options;
    mr_output data[DATA_MAX];
    int32_t count;
} assertion;

static const char *check_options(const mr_assertion_options *o, bool is_near)
{
    const bool has_tolerance = !isnan(o->rtol) || !isnan(o->atol);
    if (o->data.count < 0 || (o->data.count > 0 && o->data.items == nullptr)) return "data is not a list";
    if (o->data.count > DATA_MAX) return "data has more than 256 outputs";
    if (o->data.count > 0 && o->message != nullptr) return "message has no effect with data";
    if (o->summarize < -1) return "summarize must be at least -1";
    if (has_tolerance && !is_near) return "rtol and atol have an effect on near only";
    if (!(isnan(o->rtol) || (o->rtol >= 0 && !isinf(o->rtol))) ||
        !(isnan(o->atol) || (o->atol >= 0 && !isinf(o->atol))))
        return "rtol and atol must be finite and at least 0";
    return nullptr;
}

/* Opens the scope, which finish or stop closes. Whether the options are valid. */
static bool begin(assertion *a, mr_graph *graph, const char *name, const mr_assertion_options *given, bool is_near)
{
    static const mr_assertion_options defaults = {.size = sizeof defaults, MR_ASSERTION_DEFAULTS};
    mr_error error = {0};
    *a = (assertion){.graph = graph};
    const mr_status status =
        MR_OPTIONS_READ(mr_assertion_options, &a->options, given != nullptr ? given : &defaults, &error);
    mr_graph_push_scope(graph, status == MR_OK && a->options.name != nullptr ? a->options.name : name);
    const char *wrong = status != MR_OK ? error.message : check_options(&a->options, is_near);
    if (wrong != nullptr) (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s", wrong);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static mr_node *stop(const assertion *a)
{
    mr_graph_pop_scope(a->graph);
    return mr_graph_failed_output(a->graph).node;
}

static void show(assertion *a, mr_output value)
{
    if (a->count < DATA_MAX) a->data[a->count++] = value;
}

static void show_text(assertion *a, const char *text)
{
    show(a, mr_constant_string(a->graph, text != nullptr ? text : ""));
}

/* "x (dense/kernel:0) = " and the value. */
static void show_value(assertion *a, const char *name, mr_output value)
{
    char output[MR_OUTPUT_NAME_SIZE];
    show_text(a, mr_arena_printf(&a->graph->arena, "%s (%s) = ", name, mr_output_name(value, output, sizeof output)));
    show(a, value);
}

/* The message as TensorFlow's unary assertions begin with it. */
static const char *prefix_of(const assertion *a)
{
    const char *message = a->options.message;
    if (message == nullptr || *message == '\0') return "";
    const char *text = mr_arena_printf(&a->graph->arena, "%s.  ", message);
    return text != nullptr ? text : message;
}

/* The dimensions of a value. */
static mr_output all_axes(mr_graph *graph, mr_output value)
{
    const int32_t rank = mr_output_shape(value).rank;
    int32_t axes[MR_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) axes[i] = i;
    if (rank >= 0) return mr_constant_int32s(graph, MR_SHAPE(rank), axes, "Const");
    return mr_range(graph, mr_constant_int32(graph, 0), mr_rank(graph, value), mr_constant_int32(graph, 1));
}

static mr_node *finish(assertion *a, mr_output holds)
{
    mr_graph *graph = a->graph;
    if (mr_graph_status(graph, nullptr) != MR_OK) return stop(a);
    const bool has_own = a->options.data.count > 0;
    const mr_outputs data = has_own ? a->options.data : (mr_outputs){a->data, a->count};
    const int32_t summarize = a->options.summarize != 0 ? a->options.summarize : 3;
    mr_output all = mr_output_shape(holds).rank == 0 ? holds : mr_all(graph, holds, all_axes(graph, holds));
    mr_node *node = mr_assert(graph, all, data, .summarize = summarize, .name = "Assert");
    mr_graph_pop_scope(graph);
    return node;
}

/* Records an error unless the output belongs to the graph. */
static bool check_input(const assertion *a, const char *name, mr_output output)
{
    if (output.node != nullptr && mr_node_graph(output.node) == a->graph && output.node->id >= 0) return true;
    (void)mr_graph_fail(a->graph, MR_INVALID_ARGUMENT, "%s is not an output of the graph", name);
    return false;
}

/* ---- Two values ---- */

static mr_output tolerance(const assertion *a, const char *name, float given, mr_dtype dtype)
{
    double value = given;
    if (isnan(given))
        value = 10 * (dtype == MR_DOUBLE     ? 0x1p-52
                      : dtype == MR_HALF     ? 0x1p-10
                      : dtype == MR_BFLOAT16 ? 0x1p-7
                                             : 0x1p-23);
    return mr_train_scalar(a->graph, name, dtype, value);
}

static mr_output is_near(assertion *a, mr_output x, mr_output y)
{
    mr_graph *graph = a->graph;
    const mr_dtype dtype = mr_output_dtype(x);
    if (!mr_train_is_floating(dtype))
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "x is %s, not floating point", mr_dtype_name(dtype));
    const mr_output rtol = tolerance(a, "rtol", a->options.rtol, dtype);
    const mr_output atol = tolerance(a, "atol", a->options.atol, dtype);
    const mr_output limit = mr_add_v2(graph, atol, mr_mul(graph, rtol, mr_abs(graph, y)));
    return mr_less(graph, mr_abs(graph, mr_sub(graph, x, y)), limit);
}

static mr_output compare(assertion *a, mr_comparison comparison, mr_output x, mr_output y)
{
    mr_graph *graph = a->graph;
    switch (comparison) {
    case MR_COMPARE_EQUAL:
        return mr_equal(graph, x, y);
    case MR_COMPARE_NONE_EQUAL:
        return mr_not_equal(graph, x, y);
    case MR_COMPARE_LESS:
        return mr_less(graph, x, y);
    case MR_COMPARE_LESS_EQUAL:
        return mr_less_equal(graph, x, y);
    case MR_COMPARE_GREATER:
        return mr_greater(graph, x, y);
    case MR_COMPARE_GREATER_EQUAL:
        return mr_greater_equal(graph, x, y);
    case MR_COMPARE_NEAR:
        return is_near(a, x, y);
    }
    return mr_graph_failed_output(graph);
}

mr_node *mr_assert_compare_(mr_graph *graph, mr_comparison comparison, mr_output x, mr_output y,
                            const mr_assertion_options *options)
{
    static const struct {
        const char *name, *text;
    } kinds[] = {
        [MR_COMPARE_EQUAL] = {"assert_equal", "=="},    [MR_COMPARE_NONE_EQUAL] = {"assert_none_equal", "!="},
        [MR_COMPARE_LESS] = {"assert_less", "<"},       [MR_COMPARE_LESS_EQUAL] = {"assert_less_equal", "<="},
        [MR_COMPARE_GREATER] = {"assert_greater", ">"}, [MR_COMPARE_GREATER_EQUAL] = {"assert_greater_equal", ">="},
        [MR_COMPARE_NEAR] = {"assert_near", ""},
    };
    assertion a;
    if (graph == nullptr) return nullptr;
    if ((unsigned)comparison > MR_COMPARE_NEAR)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_assert_compare: unknown comparison %d", (int)comparison)
            .node;
    const bool near = comparison == MR_COMPARE_NEAR;
    if (!begin(&a, graph, kinds[comparison].name, options, near) || !check_input(&a, "x", x) ||
        !check_input(&a, "y", y))
        return stop(&a);
    const mr_output holds = compare(&a, comparison, x, y);
    if (near)
        show_text(&a, prefix_of(&a));
    else if (a.options.message != nullptr)
        show_text(&a, a.options.message);
    show_text(&a, near ? "x and y not equal to tolerance"
                       : mr_arena_printf(&graph->arena,
                                         "Condition x %s y did not hold element-wise:", kinds[comparison].text));
    show_value(&a, "x", x);
    show_value(&a, "y", y);
    return finish(&a, holds);
}

/* ---- Signs ---- */

mr_node *mr_assert_sign_(mr_graph *graph, mr_sign_kind sign, mr_output x, const mr_assertion_options *options)
{
    static const struct {
        const char *name, *text;
    } kinds[] = {
        [MR_SIGN_POSITIVE] = {"assert_positive", "> 0"},
        [MR_SIGN_NEGATIVE] = {"assert_negative", "< 0"},
        [MR_SIGN_NON_NEGATIVE] = {"assert_non_negative", ">= 0"},
        [MR_SIGN_NON_POSITIVE] = {"assert_non_positive", "<= 0"},
    };
    assertion a;
    if (graph == nullptr) return nullptr;
    if ((unsigned)sign > MR_SIGN_NON_POSITIVE)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_assert_sign: unknown sign %d", (int)sign).node;
    if (!begin(&a, graph, kinds[sign].name, options, false) || !check_input(&a, "x", x)) return stop(&a);
    const mr_output zero = mr_train_scalar(graph, "Const", mr_output_dtype(x), 0);
    const mr_output holds = sign == MR_SIGN_POSITIVE       ? mr_less(graph, zero, x)
                            : sign == MR_SIGN_NEGATIVE     ? mr_less(graph, x, zero)
                            : sign == MR_SIGN_NON_NEGATIVE ? mr_less_equal(graph, zero, x)
                                                           : mr_less_equal(graph, x, zero);
    show_text(&a, prefix_of(&a));
    show_text(&a, mr_arena_printf(&graph->arena, "Condition x %s did not hold element-wise:", kinds[sign].text));
    show_value(&a, "x", x);
    return finish(&a, holds);
}

/* ---- Order ---- */

/* Each element but the first minus the one before it. */
static mr_output differences(mr_graph *graph, mr_output x)
{
    const mr_output flat = mr_reshape(graph, x, mr_constant_ints(graph, MR_INTS(-1)));
    const mr_output zero = mr_constant_ints(graph, MR_INTS(0)), one = mr_constant_ints(graph, MR_INTS(1));
    const mr_output count = mr_shape_of(graph, flat);
    const mr_output rest = mr_maximum(graph, mr_sub(graph, count, one), zero);
    const mr_output start = mr_minimum(graph, one, count);
    return mr_sub(graph, mr_slice(graph, flat, start, rest), mr_slice(graph, flat, zero, rest));
}

static mr_output is_ordered(mr_graph *graph, mr_output x, const char *name, bool strictly)
{
    assertion a;
    if (graph == nullptr) return (mr_output){0};
    if (!begin(&a, graph, name, nullptr, false) || !check_input(&a, "x", x)) {
        (void)stop(&a);
        return mr_graph_failed_output(graph);
    }
    const mr_output between = differences(graph, x), zero = mr_train_scalar(graph, "Const", mr_output_dtype(x), 0);
    const mr_output holds = strictly ? mr_less(graph, zero, between) : mr_less_equal(graph, zero, between);
    const mr_output all = mr_all(graph, holds, mr_constant_ints(graph, MR_INTS(0)));
    mr_graph_pop_scope(graph);
    return all;
}

mr_output mr_is_non_decreasing(mr_graph *graph, mr_output x)
{
    return is_ordered(graph, x, "is_non_decreasing", false);
}

mr_output mr_is_strictly_increasing(mr_graph *graph, mr_output x)
{
    return is_ordered(graph, x, "is_strictly_increasing", true);
}

mr_output mr_verify_all_finite(mr_graph *graph, mr_output x, const char *message)
{
    if (graph == nullptr) return (mr_output){0};
    if (message == nullptr) return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "mr_verify_all_finite: message is null");
    mr_graph_push_scope(graph, "VerifyFinite");
    mr_node *check = mr_check_numerics(graph, x, .message = message).node;
    mr_graph_push_control_dependencies(graph, &check, 1);
    const mr_output result = mr_identity(graph, x, .name = "control_dependency");
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    return result;
}

/* ---- Ranks ---- */

/* The rank is known: it is right, or an error. */
static mr_node *check_known(const assertion *a, mr_output x, bool holds, const char *expected)
{
    mr_graph *graph = a->graph;
    char name[MR_OUTPUT_NAME_SIZE], shape[MR_SHAPE_TEXT_SIZE];
    mr_node *node = mr_graph_failed_output(graph).node;
    if (holds)
        node = mr_no_op(graph, .name = "static_checks_determined_all_ok");
    else
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%sTensor %s must have %s.  Received rank %d, shape %s",
                            prefix_of(a), mr_output_name(x, name, sizeof name), expected, (int)mr_output_shape(x).rank,
                            mr_shape_text(mr_output_shape(x), shape, sizeof shape));
    mr_graph_pop_scope(graph);
    return node;
}

static bool check_rank(const assertion *a, int64_t rank)
{
    if (rank >= 0 && rank <= INT32_MAX) return true;
    (void)mr_graph_fail(a->graph, MR_INVALID_ARGUMENT, "rank is %lld, but must be at least 0, and at most %d",
                        (long long)rank, INT32_MAX);
    return false;
}

static void show_rank(assertion *a, mr_output x, const char *relation, const mr_output *ranks, int32_t count)
{
    char name[MR_OUTPUT_NAME_SIZE];
    show_text(a, prefix_of(a));
    show_text(a, mr_arena_printf(&a->graph->arena, "Tensor %s must have rank%s", mr_output_name(x, name, sizeof name),
                                 relation));
    for (int32_t i = 0; i < count; i++) show(a, ranks[i]);
    show_text(a, "Received shape: ");
    show(a, mr_shape_of(a->graph, x));
}

mr_node *mr_assert_rank_in_(mr_graph *graph, mr_output x, mr_ints ranks, const mr_assertion_options *options)
{
    constexpr int32_t RANKS_MAX = 64;
    assertion a;
    char expected[32 * 24] = "rank in";
    size_t used = strlen(expected);
    if (graph == nullptr) return nullptr;
    if (!begin(&a, graph, "assert_rank_in", options, false) || !check_input(&a, "x", x)) return stop(&a);
    if (ranks.count < 1 || ranks.count > RANKS_MAX || ranks.items == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "there must be 1 to 64 ranks");
        return stop(&a);
    }
    const int32_t own = mr_output_shape(x).rank;
    bool is_one = false;
    for (int32_t i = 0; i < ranks.count; i++) {
        if (!check_rank(&a, ranks.items[i])) return stop(&a);
        is_one |= ranks.items[i] == own;
        used +=
            (size_t)snprintf(expected + used, sizeof expected - used, "%s%d", i > 0 ? ", " : " ", (int)ranks.items[i]);
    }
    if (own >= 0) return check_known(&a, x, is_one, expected);
    mr_output items[RANKS_MAX], holds = {0};
    for (int32_t i = 0; i < ranks.count; i++) items[i] = mr_constant_int32(graph, (int32_t)ranks.items[i]);
    const mr_output rank = mr_rank(graph, x);
    for (int32_t i = 0; i < ranks.count; i++) {
        const mr_output is_this = mr_equal(graph, items[i], rank);
        holds = i == 0 ? is_this : mr_logical_or(graph, holds, is_this);
    }
    show_rank(&a, x, " in", items, ranks.count);
    return finish(&a, holds);
}

static mr_node *assert_rank(mr_graph *graph, mr_output x, int32_t rank, bool at_least,
                            const mr_assertion_options *options)
{
    assertion a;
    char expected[64];
    if (graph == nullptr) return nullptr;
    if (!begin(&a, graph, at_least ? "assert_rank_at_least" : "assert_rank", options, false) ||
        !check_input(&a, "x", x) || !check_rank(&a, rank))
        return stop(&a);
    const int32_t own = mr_output_shape(x).rank;
    snprintf(expected, sizeof expected, "rank%s %d", at_least ? " at least" : "", (int)rank);
    if (own >= 0) return check_known(&a, x, at_least ? own >= rank : own == rank, expected);
    const mr_output limit = mr_constant_int32(graph, rank), found = mr_rank(graph, x);
    const mr_output holds = at_least ? mr_greater_equal(graph, found, limit) : mr_equal(graph, found, limit);
    show_rank(&a, x, at_least ? " at least" : "", &limit, 1);
    return finish(&a, holds);
}

mr_node *mr_assert_rank_(mr_graph *graph, mr_output x, int32_t rank, const mr_assertion_options *options)
{
    return assert_rank(graph, x, rank, false, options);
}

mr_node *mr_assert_rank_at_least_(mr_graph *graph, mr_output x, int32_t rank, const mr_assertion_options *options)
{
    return assert_rank(graph, x, rank, true, options);
}
