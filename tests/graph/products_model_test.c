/* Random programs of matrix products, sums, vectors that are added to rows, and variables that change between their
 * readers: with and without optimizations they compute the same. */
#include "base/random.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int VARIABLES = 3, RECORDS_MAX = 60, FETCHES = 4;

/* A node of the program. It comes after the records in `after`, itself included. */
typedef struct record {
    mr_output output;
    bool is_matrix; /* of size x size; otherwise an update, which only others wait for */
    bool is_used;   /* no other node may use it */
    uint64_t after;
} record;

typedef struct variable {
    mr_variable made;
    mr_output views[2]; /* two ways of reading it, without an order */
    bool is_matrix;
    uint64_t readers;
    int updated; /* the record of the last update; -1 */
} variable;

typedef struct program {
    mr_graph *graph;
    mr_random random;
    int64_t size;
    mr_output x;
    variable variables[VARIABLES];
    record records[RECORDS_MAX];
    int count;
} program;

static int below(program *p, int count)
{
    return (int)mr_random_below(&p->random, (uint64_t)count);
}

static int add_record(program *p, mr_output output, bool is_matrix, uint64_t after)
{
    CHECK(p->count < RECORDS_MAX);
    p->records[p->count] = (record){output, is_matrix, false, after | 1ull << p->count};
    return p->count++;
}

static int any_matrix(program *p)
{
    int at = below(p, p->count);
    while (!p->records[at].is_matrix || p->records[at].is_used) at = (at + 1) % p->count;
    return at;
}

/* The record, after another one. */
static int gate(program *p, int at, int before)
{
    mr_output passed = mr_identity(p->graph, p->records[at].output);
    mr_node_add_control(passed.node, p->records[before].output.node);
    return add_record(p, passed, true, p->records[at].after | p->records[before].after);
}

/* A product of the record, which is part of a sum that nobody waits for, whereas others may wait for the product. */
static int product_in_sum(program *p, int at)
{
    const record from = p->records[at], other = p->records[any_matrix(p)];
    const uint64_t after = from.after | other.after;
    mr_output made = mr_mat_mul(p->graph, from.output, other.output, .transpose_a = below(p, 2));
    const int product = add_record(p, made, true, after);
    p->records[product].is_used = true;
    add_record(p, mr_add_v2(p->graph, made, p->x), true, after);
    return product;
}

/* The matrix, after the variable's last update, as an operand beside the variable: it may wait for the update, or for
 * anything after that. */
static int beside(program *p, const variable *v, int at)
{
    if (v->updated < 0 || p->records[at].after >> v->updated & 1) return at;
    int before = v->updated;
    for (int i = 0; i < 8; i++) {
        const int other = below(p, p->count);
        if (p->records[other].after >> v->updated & 1) before = other;
    }
    if (p->records[before].is_matrix && !p->records[before].is_used && below(p, 2)) before = product_in_sum(p, before);
    return gate(p, at, before);
}

static void add_product(program *p)
{
    const bool transposed[] = {below(p, 2), below(p, 2)};
    if (below(p, 3) == 0) {
        const record a = p->records[any_matrix(p)], b = p->records[any_matrix(p)];
        mr_output made =
            mr_mat_mul(p->graph, a.output, b.output, .transpose_a = transposed[0], .transpose_b = transposed[1]);
        add_record(p, made, true, a.after | b.after);
        return;
    }
    variable *v = &p->variables[below(p, 2)];
    const record other = p->records[beside(p, v, any_matrix(p))];
    const mr_output view = v->views[below(p, 2)];
    const bool is_left = below(p, 4) == 0;
    mr_output made = mr_mat_mul(p->graph, is_left ? view : other.output, is_left ? other.output : view,
                                .transpose_a = transposed[0], .transpose_b = transposed[1]);
    v->readers |= 1ull << add_record(p, made, true, other.after);
}

static void add_sum(program *p)
{
    record terms[3];
    mr_output outputs[3];
    uint64_t after = 0;
    for (int i = 0; i < 3; i++) {
        terms[i] = p->records[i == 0 ? p->count - 1 : any_matrix(p)];
        if (!terms[i].is_matrix) terms[i] = p->records[any_matrix(p)];
        outputs[i] = terms[i].output;
    }
    const int count = 2 + below(p, 2);
    for (int i = 0; i < count; i++) after |= terms[i].after;
    const mr_outputs list = {outputs, count};
    const bool is_pair = count == 2 && below(p, 3) > 0;
    mr_output made = is_pair ? mr_add_v2(p->graph, outputs[0], outputs[1]) : mr_add_n(p->graph, list);
    add_record(p, made, true, after);
}

/* The gradient of weights that several steps share. */
static void add_sum_of_products(program *p)
{
    mr_output outputs[3];
    uint64_t after = 0;
    const mr_outputs list = {outputs, 2 + below(p, 2)};
    for (int i = 0; i < list.count; i++) {
        const record a = p->records[any_matrix(p)], b = p->records[any_matrix(p)];
        outputs[i] = mr_mat_mul(p->graph, a.output, b.output, .transpose_a = true);
        after |= a.after | b.after;
    }
    add_record(p, mr_add_n(p->graph, list), true, after);
}

static void add_bias(program *p)
{
    variable *v = &p->variables[VARIABLES - 1];
    int at = p->records[p->count - 1].is_matrix ? p->count - 1 : any_matrix(p);
    at = beside(p, v, at);
    const mr_output view = v->views[below(p, 2)], matrix = p->records[at].output;
    mr_output made = below(p, 2)   ? mr_bias_add(p->graph, matrix, view)
                     : below(p, 2) ? mr_add_v2(p->graph, matrix, view)
                                   : mr_add_v2(p->graph, view, matrix);
    v->readers |= 1ull << add_record(p, made, true, p->records[at].after);
}

/* Adds a matrix, or its sums, to the variable, after all that have read it: each is waited for, or a later one. */
static void add_update(program *p)
{
    variable *v = &p->variables[below(p, VARIABLES)];
    const record from = p->records[any_matrix(p)];
    mr_output small = mr_mul(p->graph, from.output, mr_constant_float(p->graph, 0.125f));
    if (!v->is_matrix) small = mr_sum(p->graph, small, mr_constant_int32(p->graph, 0));
    mr_output update = mr_assign_add(p->graph, v->made.ref, small);
    uint64_t after = from.after, waited = v->readers | (v->updated >= 0 ? 1ull << v->updated : 0);
    while (waited & ~after) {
        const record *later = &p->records[below(p, p->count)];
        if (!(later->after & waited & ~after)) continue;
        mr_node_add_control(update.node, later->output.node);
        after |= later->after;
    }
    v->updated = add_record(p, update, false, after);
    v->readers = 0;
}

static void make_variable(program *p, int index)
{
    variable *v = &p->variables[index];
    char name[8];
    snprintf(name, sizeof name, "v%d", index);
    v->is_matrix = index < VARIABLES - 1;
    v->updated = -1;
    const int64_t count = v->is_matrix ? p->size * p->size : p->size;
    float *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++) values[i] = ((float)below(p, 2000) / 1000 - 1) / (float)p->size;
    mr_shape shape = v->is_matrix ? MR_SHAPE(p->size, p->size) : MR_SHAPE(p->size);
    v->made = mr_variable_new(p->graph, name, mr_constant_floats(p->graph, shape, values, nullptr));
    v->views[0] = v->made.value;
    v->views[1] = mr_identity(p->graph, v->made.value);
    free(values);
}

static void make_program(program *p)
{
    static const int64_t sizes[] = {1, 3, 16, 17, 40};
    p->graph = mr_graph_new();
    p->size = sizes[below(p, 5)];
    p->x = below(p, 2) ? mr_placeholder(p->graph, MR_FLOAT, .shape = MR_SHAPE(p->size, p->size))
                       : mr_placeholder(p->graph, MR_FLOAT);
    for (int i = 0; i < VARIABLES; i++) make_variable(p, i);
    add_record(p, p->x, true, 0);
    const int steps = 3 + below(p, 22);
    for (int i = 0; i < steps && p->count < RECORDS_MAX - 6; i++) {
        const int choice = below(p, 13);
        if (choice == 12)
            add_sum_of_products(p);
        else if (choice < 5)
            add_product(p);
        else if (choice < 7)
            add_sum(p);
        else if (choice < 9)
            add_bias(p);
        else if (choice < 10)
            add_record(p,
                       mr_tanh(p->graph, p->records[p->count - 1].is_matrix ? p->records[p->count - 1].output : p->x),
                       true, p->records[p->count - 1].is_matrix ? p->records[p->count - 1].after : 1);
        else if (choice < 11)
            gate(p, any_matrix(p), below(p, p->count));
        else
            add_update(p);
    }
}

static void run_program(const program *p, bool is_plain, const mr_tensor *x, const mr_output *items,
                        mr_tensor (*results)[FETCHES + VARIABLES], int *fused)
{
    static const char *const kernels[] = {"_MatMulBias", "_AccumulateMatMul", "_SumOfMatMuls", "_TransposeMatrix"};
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_node *initializers[VARIABLES], *targets[RECORDS_MAX];
    int target_count = 0;
    for (int i = 0; i < VARIABLES; i++) initializers[i] = p->variables[i].made.initializer;
    for (int i = 0; i < p->count; i++)
        if (!p->records[i].is_matrix) targets[target_count++] = p->records[i].output.node;
    CHECK_OK(mr_session_new(p->graph, MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = is_plain),
                            &session, &error));
    mr_session_trace(session, true);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, initializers, VARIABLES, &error));
    for (int step = 0; step < 2; step++) {
        CHECK_OK(mr_session_run(session, MR_FEEDS({p->x, *x}), (mr_outputs){items, FETCHES}, results[step], targets,
                                target_count, &error));
        static mr_node_time times[1000];
        const int ran = mr_session_trace_times(session, times, 1000);
        for (int i = 0; i < ran; i++)
            for (int k = 0; k < 4; k++) fused[k] += strcmp(times[i].op, kernels[k]) == 0;
        mr_output values[VARIABLES];
        for (int i = 0; i < VARIABLES; i++) values[i] = p->variables[i].made.value;
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){values, VARIABLES}, results[step] + FETCHES, nullptr,
                                0, &error));
    }
    mr_session_free(session);
}

static void compare(const mr_tensor *a, const mr_tensor *b)
{
    double largest = 1;
    CHECK(mr_shape_equal(a->shape, b->shape));
    const int64_t count = mr_tensor_count(a);
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)mr_tensor_floats(b)[i]));
    for (int64_t i = 0; i < count; i++)
        CHECK_NEAR(mr_tensor_floats(a)[i] / largest, mr_tensor_floats(b)[i] / largest, 2e-5);
}

TEST(products_model)
{
    mr_error error = {0};
    int fused[4] = {0}, plain[4] = {0};
    const int rounds = test_is_sanitized() ? 600 : 3000;
    for (int round = 0; round < rounds; round++) {
        program p = {.random = mr_random_at(test_seed(), 11, (uint64_t)round, 0)};
        make_program(&p);
        mr_tensor x = {0}, results[2][2][FETCHES + VARIABLES] = {0};
        CHECK_OK(mr_tensor_init(&x, MR_FLOAT, MR_SHAPE(p.size, p.size), &error));
        for (int64_t i = 0; i < p.size * p.size; i++)
            mr_tensor_floats(&x)[i] = ((float)below(&p, 2000) / 1000 - 1) / (float)p.size;
        mr_output items[FETCHES];
        for (int i = 0; i < FETCHES; i++) items[i] = p.records[i == 0 ? p.count - 1 : any_matrix(&p)].output;
        if (!p.records[p.count - 1].is_matrix) items[0] = p.x;
        run_program(&p, false, &x, items, results[0], fused);
        run_program(&p, true, &x, items, results[1], plain);
        for (int step = 0; step < 2; step++)
            for (int i = 0; i < FETCHES + VARIABLES; i++) {
                compare(&results[0][step][i], &results[1][step][i]);
                for (int j = 0; j < 2; j++) mr_tensor_deinit(&results[j][step][i]);
            }
        mr_tensor_deinit(&x);
        mr_graph_free(p.graph);
    }
    for (int k = 0; k < 4; k++) {
        CHECK(fused[k] > 0);
        CHECK_EQ(plain[k], 0);
    }
}
