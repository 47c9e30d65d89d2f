/* Random loops against a model that computes them directly: variables that change places, that several others take
 * over, that keep their value, are constants or depend on the predicate; scalars and vectors, which take different
 * paths. */
#include "graph/ir/graph.h"
#include "graph/run/session.h"
#include "tests/test.h"

#include <millrace/ops.h>

constexpr int VARIABLES_MAX = 6, VALUES_MAX = 24, ELEMENTS = 3;

typedef enum maker {
    OTHER,    /* the value of another variable, or its own */
    CONSTANT, /* one that enters the loop */
    IDENTITY,
    ADD,
    SUBTRACT,
    MULTIPLY,
    SMALLER, /* 1 or 0 */
    MAKER_COUNT,
} maker;

/* How a value of an iteration comes from earlier ones. Values 0 … are the variables, the constants, and twice variable
 * 0, which is computed before the decision. */
typedef struct rule {
    maker maker;
    int a, b;
} rule;

typedef struct random_loop {
    int variables, constants, rules;
    bool is_vector;
    int limit;      /* the loop runs while variable 0 is smaller */
    bool both_ways; /* the predicate also depends on a value computed in the head */
    rule body[VALUES_MAX];
    int next[VARIABLES_MAX]; /* values; variable 0 counts */
    int start[VARIABLES_MAX + 2];
} random_loop;

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static random_loop make_random(uint64_t *random)
{
    random_loop l = {.variables = 1 + (int)draw(random, VARIABLES_MAX),
                     .constants = 2,
                     .rules = (int)draw(random, 8),
                     .is_vector = draw(random, 3) == 0,
                     .limit = (int)draw(random, 7),
                     .both_ways = draw(random, 2) == 0};
    int values = l.variables + l.constants;
    for (int i = 0; i < values; i++) l.start[i] = (int)draw(random, 9) - 4;
    l.start[0] = 0;
    values++;
    for (int i = 0; i < l.rules; i++, values++)
        l.body[i] = (rule){.maker = (maker)draw(random, MAKER_COUNT),
                           .a = (int)draw(random, (uint32_t)values),
                           .b = (int)draw(random, (uint32_t)values)};
    for (int i = 1; i < l.variables; i++)
        l.next[i] =
            draw(random, 2) == 0 ? (int)draw(random, (uint32_t)values) : (int)draw(random, (uint32_t)l.variables);
    return l;
}

static uint32_t compute(const rule *r, const uint32_t *values)
{
    uint32_t a = values[r->a], b = values[r->b];
    switch (r->maker) {
    case ADD:
        return a + b;
    case SUBTRACT:
        return a - b;
    case MULTIPLY:
        return a * b;
    case SMALLER:
        return (int32_t)a < (int32_t)b;
    default:
        return a;
    }
}

/* The variables after the loop, and twice the first. */
static void run_model(const random_loop *l, int element, uint32_t *variables)
{
    uint32_t values[VALUES_MAX] = {0};
    int twice = l->variables + l->constants, first = twice + 1;
    for (int i = 0; i < twice; i++) values[i] = (uint32_t)(l->start[i] + (i > 0 ? element : 0));
    while ((int32_t)values[0] < l->limit) {
        uint32_t next[VARIABLES_MAX];
        values[twice] = 2 * values[0];
        for (int i = 0; i < l->rules; i++) values[first + i] = compute(&l->body[i], values);
        next[0] = values[0] + 1;
        for (int i = 1; i < l->variables; i++) next[i] = values[l->next[i]];
        memcpy(values, next, sizeof next[0] * (size_t)l->variables);
    }
    memcpy(variables, values, sizeof values[0] * (size_t)l->variables);
    variables[l->variables] = 2 * values[0];
}

static mr_output node_of(mr_graph *g, const rule *r, const mr_output *values)
{
    mr_output a = values[r->a], b = values[r->b];
    switch (r->maker) {
    case ADD:
        return mr_add(g, a, b);
    case SUBTRACT:
        return mr_sub(g, a, b);
    case MULTIPLY:
        return mr_mul(g, a, b);
    case SMALLER:
        return mr_cast(g, mr_less(g, a, b), MR_INT32);
    case IDENTITY:
        return mr_identity(g, a);
    default:
        return a;
    }
}

static mr_output start_value(mr_graph *g, const random_loop *l, int index)
{
    if (!l->is_vector || index == 0) return mr_constant_int32(g, l->start[index]);
    mr_output elements[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) elements[i] = mr_constant_int32(g, l->start[index] + i);
    return mr_pack(g, MR_OUTPUTS(elements[0], elements[1], elements[2]));
}

static mr_output predicate_of(mr_graph *g, const random_loop *l, const mr_output *merges)
{
    mr_output limit = mr_enter(g, mr_constant_int32(g, l->limit), .frame_name = "loop", .is_constant = true);
    mr_output less = mr_less(g, merges[0], limit);
    if (l->both_ways) less = mr_logical_and(g, less, mr_logical_not(g, mr_greater_equal(g, merges[0], limit)));
    return mr_loop_cond(g, less);
}

/* Builds the loop; exits[i] is variable i after it, and the last one twice the first. */
static void build(mr_graph *g, const random_loop *l, mr_output *exits)
{
    mr_output values[VALUES_MAX], merges[VARIABLES_MAX], ways[VARIABLES_MAX];
    int twice = l->variables + l->constants, first = twice + 1;
    for (int i = 0; i < twice; i++) {
        bool is_constant = i >= l->variables;
        values[i] = mr_enter(g, start_value(g, l, i), .frame_name = "loop", .is_constant = is_constant);
        if (!is_constant) merges[i] = mr_merge(g, MR_OUTPUTS(values[i], values[i])).output;
    }
    mr_output proceed = predicate_of(g, l, merges);
    for (int i = 0; i < twice; i++) { /* a constant that is not switched would start iterations forever */
        mr_switch_outputs outputs = mr_switch(g, i < l->variables ? merges[i] : values[i], proceed);
        values[i] = outputs.output_true;
        if (i < l->variables) ways[i] = outputs.output_false;
    }
    mr_switch_outputs doubled = mr_switch(g, mr_add(g, merges[0], merges[0]), proceed);
    values[twice] = doubled.output_true;
    exits[l->variables] = mr_exit(g, doubled.output_false);
    for (int i = 0; i < l->rules; i++) values[first + i] = node_of(g, &l->body[i], values);
    mr_output one = mr_enter(g, mr_constant_int32(g, 1), .frame_name = "loop", .is_constant = true);
    for (int i = 0; i < l->variables; i++) {
        mr_output next = i == 0 ? mr_add(g, values[0], one) : values[l->next[i]];
        merges[i].node->inputs[1] = mr_next_iteration(g, next);
        g->version++;
        exits[i] = mr_exit(g, ways[i]);
    }
}

static void check_results(const random_loop *l, const mr_tensor *results)
{
    for (int element = 0; element < ELEMENTS; element++) {
        uint32_t expected[VARIABLES_MAX + 1];
        run_model(l, l->is_vector ? element : 0, expected);
        for (int i = 0; i <= l->variables; i++) {
            int64_t count = mr_tensor_count(&results[i]), index = count == 1 ? 0 : element;
            CHECK(index < count);
            CHECK_EQ(mr_tensor_int32s(&results[i])[index], (int32_t)expected[i]);
        }
    }
}

/* Which exits are fetched changes what the plan contains. */
static void run_one(uint64_t *random)
{
    random_loop l = make_random(random);
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output exits[VARIABLES_MAX + 1];
    build(g, &l, exits);
    CHECK_OK(mr_graph_status(g, &error));
    mr_session *session = nullptr;
    bool plain = draw(random, 4) == 0; /* with a token for each step of the loop */
    CHECK_OK(
        mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1, .no_optimization = plain), &session, &error));
    for (int run = 0; run < 3; run++) {
        mr_tensor results[VARIABLES_MAX + 1] = {0};
        mr_tensor one = {0};
        CHECK_OK(
            mr_session_run(session, MR_NO_FEEDS, (mr_outputs){exits, l.variables + 1}, results, nullptr, 0, &error));
        check_results(&l, results);
        int alone = (int)draw(random, (uint32_t)l.variables + 1);
        CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){&exits[alone], 1}, &one, nullptr, 0, &error));
        CHECK_EQ(mr_tensor_int32s(&one)[0], mr_tensor_int32s(&results[alone])[0]);
        mr_tensor_deinit(&one);
        for (int i = 0; i <= l.variables; i++) mr_tensor_deinit(&results[i]);
    }
    mr_session_free(session);
    mr_graph_free(g);
}

TEST(loop_model_random_loops)
{
    uint64_t random = test_seed();
    for (int i = 0; i < 400; i++) run_one(&random);
}
