/* Random programs of elementwise operators and reductions of rows, with operands that are broadcast, other operators
 * between them, control edges, and variables that change between their readers: with and without optimizations they
 * compute the same bits. */
#include "base/random.h"
#include "tests/test.h"
#include <math.h>
#include <millrace/control_flow.h>
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int RECORDS_MAX = 60, FETCHES = 4, INPUTS = 7, TURNED = 5, ONE_ROW = 6;

/* A node of the program. It comes after the records in `after`, itself included. */
typedef struct record {
    mr_output output;
    bool is_value; /* otherwise an update, which only others wait for */
    uint64_t after;
} record;

typedef struct program {
    mr_graph *graph;
    mr_random random;
    mr_dtype dtype;
    int64_t rows, columns;
    bool is_known;            /* the shapes are */
    bool is_batch_known;      /* otherwise the number of rows is not */
    mr_output inputs[INPUTS]; /* [rows, columns], [columns], [rows, 1], [], [1, 1], [columns, rows], [1, columns] */
    mr_variable variable;
    mr_output views[3];
    uint64_t readers;
    int updated; /* the record of the last update; -1 */
    record records[RECORDS_MAX];
    int count;
} program;

static int below(program *p, int count)
{
    return (int)mr_random_below(&p->random, (uint64_t)count);
}

static int add_record(program *p, mr_output output, bool is_value, uint64_t after)
{
    CHECK(p->count < RECORDS_MAX);
    p->records[p->count] = (record){output, is_value, after | 1ull << p->count};
    return p->count++;
}

static const record *any_value(program *p)
{
    int at = below(p, 3) == 0 ? below(p, p->count) : p->count - 1 - below(p, p->count < 4 ? p->count : 4);
    while (!p->records[at].is_value) at = (at + 1) % p->count;
    return &p->records[at];
}

static mr_shape shape_of(const program *p, int input)
{
    switch (input) {
    case 0:
        return MR_SHAPE(p->rows, p->columns);
    case 1:
        return MR_SHAPE(p->columns);
    case 2:
        return MR_SHAPE(p->rows, 1);
    case 3:
        return MR_SCALAR;
    case 4:
        return MR_SHAPE(1, 1);
    case ONE_ROW:
        return MR_SHAPE(1, p->columns);
    default:
        return MR_SHAPE(p->columns, p->rows);
    }
}

static mr_output unary(program *p, mr_output x)
{
    mr_graph *g = p->graph;
    switch (below(p, 9)) {
    case 0:
        return mr_tanh(g, x);
    case 1:
        return mr_sigmoid(g, x);
    case 2:
        return mr_relu(g, x);
    case 3:
        return mr_square(g, x);
    case 4:
        return mr_neg(g, x);
    case 5:
        return mr_sqrt(g, mr_abs(g, x));
    case 6:
        return mr_exp(g, mr_minimum(g, x, x));
    case 7:
        return mr_floor(g, x);
    default:
        return mr_softplus(g, x);
    }
}

static mr_output binary(program *p, mr_output a, mr_output b, bool is_alike)
{
    mr_graph *g = p->graph;
    switch (below(p, is_alike ? 10 : 6)) {
    case 0:
        return mr_add_v2(g, a, b);
    case 1:
        return mr_mul(g, a, b);
    case 2:
        return mr_sub(g, a, b);
    case 3:
        return mr_maximum(g, a, b);
    case 4:
        return mr_squared_difference(g, a, b);
    case 5:
        return mr_div_no_nan(g, a, b);
    case 6:
        return mr_tanh_grad(g, a, b);
    case 7:
        return mr_relu_grad(g, a, b);
    case 8:
        return mr_add_n(g, MR_OUTPUTS(a, b, a));
    default:
        return mr_add_n(g, MR_OUTPUTS(a, b));
    }
}

/* An operator that is not elementwise, so that paths leave groups and come back. */
static mr_output other(program *p, mr_output x)
{
    mr_graph *g = p->graph;
    switch (below(p, 3)) {
    case 0:
        return mr_identity(g, x);
    case 1:
        return mr_reverse_v2(g, x, mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){1}, nullptr));
    default:
        return mr_cumsum(g, x, mr_constant_int32(g, 1));
    }
}

static mr_output ints(program *p, int count, int32_t a, int32_t b)
{
    return mr_constant_int32s(p->graph, count == 1 ? MR_SHAPE(1) : MR_SHAPE(2), (int32_t[]){a, b}, nullptr);
}

static mr_output reduce(program *p, mr_output x, bool keeps)
{
    mr_graph *g = p->graph;
    const mr_output axis = below(p, 2) ? mr_constant_int32(g, below(p, 2) ? 1 : -1) : ints(p, 1, 1, 0);
    switch (below(p, 6)) {
    case 0:
        return mr_mean(g, x, axis, .keep_dims = keeps);
    case 1:
        return mr_max(g, x, axis, .keep_dims = keeps);
    case 2:
        return mr_min(g, x, axis, .keep_dims = keeps);
    case 3: /* of columns: not part of a call */
        if (keeps && p->rows == p->columns)
            return mr_sum(g, mr_transpose(g, x, ints(p, 2, 1, 0)), axis, .keep_dims = true);
        [[fallthrough]];
    default:
        return mr_sum(g, x, axis, .keep_dims = keeps);
    }
}

/* One element for each row, [rows, 1], from a reduction, with elementwise operators and moves. */
static mr_output row_result(program *p, mr_output x)
{
    mr_graph *g = p->graph;
    const bool keeps = below(p, 2);
    mr_output y = reduce(p, x, keeps);
    if (!keeps && below(p, 3) == 0) y = unary(p, y);
    if (!keeps && below(p, 3) == 0) y = mr_reverse_v2(g, y, ints(p, 1, 0, 0)); /* leaves the call */
    if (!keeps && below(p, 4) == 0) y = binary(p, y, y, true);
    if (!keeps)
        y = below(p, 2) ? mr_expand_dims(g, y, mr_constant_int32(g, 1))
                        : mr_reshape(g, y, ints(p, 2, below(p, 2) ? -1 : (int32_t)p->rows, 1));
    if (below(p, 4) == 0) y = mr_squeeze(g, y, .squeeze_dims = MR_INTS(1));
    if (below(p, 4) == 0) y = mr_stop_gradient(g, y);
    if (mr_output_shape(y).rank == 1) y = mr_reshape(g, y, ints(p, 2, -1, 1));
    if (below(p, 2)) y = unary(p, y);
    if (below(p, 3) == 0) y = binary(p, y, p->inputs[2 + below(p, 3)], false);
    if (below(p, 4) == 0) y = binary(p, y, reduce(p, x, true), true);
    return y;
}

/* A reduction of rows, and what is computed from its result and whole rows. */
static mr_output rows(program *p, mr_output a, mr_output b)
{
    if (below(p, 8) == 0) { /* of a batch of 1, which is broadcast to the others */
        const mr_output mean = mr_mean(p->graph, p->inputs[ONE_ROW], ints(p, 1, -1, 0), .keep_dims = below(p, 2));
        return binary(p, b, below(p, 2) ? mean : mr_reshape(p->graph, mean, ints(p, 2, -1, 1)), false);
    }
    mr_output y = row_result(p, a);
    const bool is_tiled = below(p, 3) == 0;
    if (is_tiled) y = mr_tile(p->graph, y, ints(p, 2, 1, (int32_t)p->columns));
    if (is_tiled && below(p, 2)) y = unary(p, y);
    if (is_tiled && below(p, 2)) y = binary(p, y, p->inputs[2 + below(p, 3)], false);
    if (is_tiled && below(p, 2)) return mr_add_n(p->graph, MR_OUTPUTS(y, y, b));
    if (is_tiled && below(p, 6) == 0) return y;
    return below(p, 2) ? binary(p, y, b, is_tiled) : binary(p, b, y, is_tiled);
}

static void add_step(program *p)
{
    const record a = *any_value(p), b = *any_value(p);
    const int choice = below(p, 22);
    if (choice >= 18) {
        add_record(p, rows(p, a.output, b.output), true, a.after | b.after);
    } else if (choice >= 16) { /* as tf.tuple: each waits for both */
        mr_node *both = mr_group(p->graph, (mr_node *[]){a.output.node, b.output.node}, 2, nullptr);
        for (int i = 0; i < 2; i++) {
            const mr_output passed = mr_identity(p->graph, i == 0 ? a.output : b.output);
            mr_node_add_control(passed.node, both);
            add_record(p, passed, true, a.after | b.after);
        }
    } else if (choice < 4) {
        add_record(p, unary(p, a.output), true, a.after);
    } else if (choice < 9) {
        add_record(p, binary(p, a.output, b.output, true), true, a.after | b.after);
    } else if (choice < 12) {
        mr_output input = p->inputs[1 + below(p, TURNED - 1)];
        if (below(p, 4) == 0) input = unary(p, input);
        if (below(p, 4) == 0) input = binary(p, input, input, true);
        const bool is_left = below(p, 2);
        add_record(p, binary(p, is_left ? input : a.output, is_left ? a.output : input, false), true, a.after);
    } else if (choice < 13 && !p->is_known && below(p, 3) == 0) {
        /* As many elements are enough. */
        mr_output turned = mr_sigmoid_grad(p->graph, a.output, p->inputs[TURNED]);
        add_record(p, below(p, 2) ? mr_mul(p->graph, turned, turned) : turned, true, a.after);
    } else if (choice < 13) {
        add_record(p, mr_bias_add(p->graph, a.output, p->inputs[1]), true, a.after);
    } else if (choice < 14) {
        add_record(p, other(p, a.output), true, a.after);
    } else if (choice < 15) { /* a reader of the variable, after the last update */
        mr_output passed = a.output;
        if (p->updated >= 0 && !(a.after >> p->updated & 1)) {
            passed = mr_identity(p->graph, a.output);
            mr_node_add_control(passed.node, p->records[p->updated].output.node);
        }
        const uint64_t after = a.after | (p->updated >= 0 ? p->records[p->updated].after : 0);
        /* Also by the reference that the update returns. */
        const int view = below(p, p->updated >= 0 ? 6 : 3);
        const mr_output read = view < 3 ? p->views[view] : p->records[p->updated].output;
        p->readers |= 1ull << add_record(p, mr_mul(p->graph, passed, read), true, after);
    } else { /* an update after all readers */
        mr_output update = mr_assign_add(p->graph, p->variable.ref, a.output);
        uint64_t after = a.after, waited = p->readers | (p->updated >= 0 ? 1ull << p->updated : 0);
        while (waited & ~after) {
            const record *later = &p->records[below(p, p->count)];
            if (!(later->after & waited & ~after)) continue;
            mr_node_add_control(update.node, later->output.node);
            after |= later->after;
        }
        p->updated = add_record(p, update, false, after);
        p->readers = 0;
    }
}

static void make_program(program *p)
{
    static const int64_t columns[] = {1,   2,   3,   31,   127,  128,  129,  255,  256, 257, 300,
                                      511, 512, 513, 1024, 1025, 1500, 2048, 2049, 32,  40,  64};
    static const int64_t rows[] = {1, 2, 3, 7, 40, 64};
    p->graph = mr_graph_new();
    p->dtype = below(p, 4) ? MR_FLOAT : MR_DOUBLE;
    p->rows = rows[below(p, 6)];
    p->columns = columns[below(p, 22)];
    if (p->columns <= 300 && below(p, 5) == 0) p->rows = p->columns; /* a row looks like one element for each */
    p->is_known = below(p, 3) > 0;
    p->is_batch_known = p->is_known && below(p, 3) > 0;
    for (int i = 0; i < INPUTS; i++) {
        mr_shape shape = shape_of(p, i);
        for (int d = 0; d < shape.rank && !p->is_known; d++) shape.dims[d] = -1;
        if ((i == 0 || i == 2 || i == ONE_ROW) && !p->is_batch_known) shape.dims[0] = -1;
        p->inputs[i] = mr_placeholder(p->graph, p->dtype, .shape = shape);
    }
    mr_output initial =
        mr_fill(p->graph,
                mr_constant_int32s(p->graph, MR_SHAPE(2), (int32_t[]){(int32_t)p->rows, (int32_t)p->columns}, nullptr),
                mr_cast(p->graph, mr_constant_float(p->graph, 0.75f), p->dtype));
    p->variable = mr_variable_new(p->graph, "v", initial);
    p->views[0] = p->variable.value;
    p->views[1] = mr_identity(p->graph, p->variable.value);
    p->views[2] = p->variable.ref;
    p->updated = -1;
    add_record(p, p->inputs[0], true, 0);
    const int steps = 3 + below(p, 40);
    for (int i = 0; i < steps && p->count < RECORDS_MAX - 3; i++) add_step(p);
}

static void run_program(const program *p, bool is_plain, const mr_tensor *values, const mr_output *items,
                        mr_tensor (*results)[FETCHES + 1], int *fused, int *reduced)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_node *targets[RECORDS_MAX];
    int target_count = 0;
    for (int i = 0; i < p->count; i++)
        if (!p->records[i].is_value) targets[target_count++] = p->records[i].output.node;
    CHECK_OK(mr_session_new(p->graph, MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = is_plain),
                            &session, &error));
    mr_session_trace(session, true);
    mr_node *initializer = p->variable.initializer;
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &initializer, 1, &error));
    mr_feed feeds[INPUTS];
    for (int i = 0; i < INPUTS; i++) feeds[i] = (mr_feed){p->inputs[i], values[i]};
    for (int step = 0; step < 2; step++) {
        CHECK_OK(mr_session_run(session, (mr_feeds){feeds, INPUTS}, (mr_outputs){items, FETCHES}, results[step],
                                targets, target_count, &error));
        static mr_node_time times[1000];
        const int ran = mr_session_trace_times(session, times, 1000);
        for (int i = 0; i < ran; i++) {
            *fused += strcmp(times[i].op, "_Elementwise") == 0;
            *reduced += strcmp(times[i].op, "Sum") == 0 || strcmp(times[i].op, "Mean") == 0;
        }
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){&p->variable.value, 1}, results[step] + FETCHES,
                                nullptr, 0, &error));
    }
    mr_session_free(session);
}

static void fill(program *p, mr_tensor *value, int input)
{
    mr_error error = {0};
    CHECK_OK(mr_tensor_init(value, p->dtype, shape_of(p, input), &error));
    const int64_t count = mr_tensor_count(value);
    for (int64_t i = 0; i < count; i++) {
        const double number = below(p, 50) == 0 ? 0 : (double)below(p, 4000) / 1000 - 2;
        if (p->dtype == MR_FLOAT)
            ((float *)value->data)[i] = (float)number;
        else
            ((double *)value->data)[i] = number;
    }
}

/* The same bits, or NaN, whose sign depends on the order of the operands of an instruction. */
static bool is_same(const mr_tensor *a, const mr_tensor *b, int64_t i)
{
    const size_t size = mr_dtype_size(a->dtype);
    if (memcmp((char *)a->data + (size_t)i * size, (char *)b->data + (size_t)i * size, size) == 0) return true;
    if (a->dtype == MR_FLOAT) return isnan(mr_tensor_floats(a)[i]) && isnan(mr_tensor_floats(b)[i]);
    return isnan(((double *)a->data)[i]) && isnan(((double *)b->data)[i]);
}

static void compare(const mr_tensor *a, const mr_tensor *b, int round)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    CHECK_EQ(a->dtype, b->dtype);
    const int64_t count = mr_tensor_count(a);
    int64_t i = 0;
    while (i < count && is_same(a, b, i)) i++;
    if (i < count) test_fail(__FILE__, __LINE__, "the results of program %d differ", round);
}

TEST(elementwise_model)
{
    int fused = 0, plain = 0, reduced[2] = {0};
    for (int round = 0; round < 2000; round++) {
        program p = {.random = mr_random_at(test_seed(), 12, (uint64_t)round, 0)};
        make_program(&p);
        mr_tensor values[INPUTS] = {0}, results[2][2][FETCHES + 1] = {0};
        for (int i = 0; i < INPUTS; i++) fill(&p, &values[i], i);
        mr_output items[FETCHES];
        for (int i = 0; i < FETCHES; i++) items[i] = any_value(&p)->output;
        run_program(&p, false, values, items, results[0], &fused, &reduced[0]);
        run_program(&p, true, values, items, results[1], &plain, &reduced[1]);
        for (int step = 0; step < 2; step++)
            for (int i = 0; i <= FETCHES; i++) {
                compare(&results[0][step][i], &results[1][step][i], round);
                for (int j = 0; j < 2; j++) mr_tensor_deinit(&results[j][step][i]);
            }
        for (int i = 0; i < INPUTS; i++) mr_tensor_deinit(&values[i]);
        mr_graph_free(p.graph);
    }
    CHECK(fused > 1000);
    CHECK(reduced[0] < reduced[1] * 3 / 4); /* the others were computed together with elementwise operators */
    CHECK_EQ(plain, 0);
}
