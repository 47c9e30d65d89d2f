/* Random programs of nested conditionals and loops: as graphs, and an interpreter of them that computes with dual
 * numbers. */
#ifndef MR_TESTS_GRAPH_CONTROL_FLOW_MODEL_H
#define MR_TESTS_GRAPH_CONTROL_FLOW_MODEL_H

#include <millrace/control_flow.h>
#include <millrace/ops.h>

#include <math.h>
#include <stdlib.h>

constexpr int VALUES_MAX = 200, STATEMENTS_MAX = 5, VARIABLES_MAX = 3, DEPTH_MAX = 3;

/* A value and its slope by x. */
typedef struct dual {
    double value, slope;
} dual;

typedef enum statement_kind { MEAN, PRODUCT, CONSTANT, IF, LOOP } statement_kind;
typedef struct block block;
/* Each statement adds a value to those that the statements behind it may use; a loop adds one for each variable. */
typedef struct statement {
    statement_kind kind;
    int a, b; /* indices of values; of IF: a is compared with number */
    float number;
    int count, variables; /* of LOOP: iterations, and variables that begin with values a, a - 1, … */
    block *first, *second;
} statement;
struct block {
    int count;
    statement statements[STATEMENTS_MAX];
    int results[VARIABLES_MAX];
};

static int below(uint64_t *state, int limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)limit);
}

/* values  number of values that the block may use */
static block *make_block(uint64_t *state, int values, int depth, int results)
{
    block *b = calloc(1, sizeof *b);
    b->count = 1 + below(state, STATEMENTS_MAX);
    for (int i = 0; i < b->count; i++) {
        statement *s = &b->statements[i];
        s->kind = (statement_kind)below(state, depth < DEPTH_MAX ? 5 : 3);
        s->a = below(state, values);
        s->b = below(state, values);
        s->number = (float)(below(state, 200) - 100) / 70;
        s->count = below(state, 4);
        s->variables = 1 + below(state, s->a + 1 < VARIABLES_MAX ? s->a + 1 : VARIABLES_MAX);
        if (s->kind == IF) {
            s->first = make_block(state, values, depth + 1, 1);
            s->second = make_block(state, values, depth + 1, 1);
        } else if (s->kind == LOOP) {
            s->first = make_block(state, values + s->variables, depth + 1, s->variables);
        }
        values += s->kind == LOOP ? s->variables : 1;
    }
    for (int i = 0; i < results; i++) b->results[i] = below(state, values);
    return b;
}

static void free_block(block *b)
{
    for (int i = 0; b != nullptr && i < b->count; i++) {
        free_block(b->statements[i].first);
        free_block(b->statements[i].second);
    }
    free(b);
}

/* is_close  set if a comparison is so close that rounding decides */
static void interpret(const block *b, const dual *given, int count, dual *results, int result_count, bool *is_close)
{
    dual v[VALUES_MAX];
    for (int i = 0; i < count; i++) v[i] = given[i];
    for (int i = 0; i < b->count; i++) {
        const statement *s = &b->statements[i];
        dual x = v[s->a], y = v[s->b], next[VARIABLES_MAX];
        switch (s->kind) {
        case MEAN:
            v[count++] = (dual){(x.value + y.value) * 0.5, (x.slope + y.slope) * 0.5};
            break;
        case PRODUCT:
            v[count++] = (dual){sin(x.value) * y.value, cos(x.value) * x.slope * y.value + sin(x.value) * y.slope};
            break;
        case CONSTANT:
            v[count++] = (dual){(double)s->number, 0};
            break;
        case IF:
            *is_close |= fabs(x.value - (double)s->number) < 1e-4;
            interpret(x.value < (double)s->number ? s->first : s->second, v, count, next, 1, is_close);
            v[count++] = next[0];
            break;
        case LOOP:
            for (int j = 0; j < s->variables; j++) v[count + j] = v[s->a - j];
            for (int k = 0; k < s->count; k++) {
                interpret(s->first, v, count + s->variables, next, s->variables, is_close);
                for (int j = 0; j < s->variables; j++) v[count + j] = next[j];
            }
            count += s->variables;
            break;
        }
    }
    for (int i = 0; i < result_count; i++) results[i] = v[b->results[i]];
}

static void build(mr_graph *g, const block *b, const mr_output *given, int count, mr_output *results, int result_count);

static void build_loop(mr_graph *g, const statement *s, mr_output *v, int count)
{
    mr_output initial[VARIABLES_MAX + 1], variables[VARIABLES_MAX + 1], inner[VALUES_MAX], next[VARIABLES_MAX + 1];
    for (int j = 0; j < s->variables; j++) initial[j] = v[s->a - j];
    initial[s->variables] = mr_constant_int32(g, 0);
    mr_while_loop *loop = mr_while_loop_begin(g, MR_OUTPUTS_OF(initial, s->variables + 1), variables,
                                              .parallel_iterations = 1 + s->b % 4);
    mr_output test = mr_less(g, variables[s->variables], mr_constant_int32(g, s->count));
    mr_while_loop_body(loop, test, variables);
    for (int j = 0; j < count; j++) inner[j] = v[j];
    for (int j = 0; j < s->variables; j++) inner[count + j] = variables[j];
    build(g, s->first, inner, count + s->variables, next, s->variables);
    next[s->variables] = mr_add(g, variables[s->variables], mr_constant_int32(g, 1));
    mr_while_loop_end(loop, MR_OUTPUTS_OF(next, s->variables + 1), variables);
    for (int j = 0; j < s->variables; j++) v[count + j] = variables[j];
}

static void build(mr_graph *g, const block *b, const mr_output *given, int count, mr_output *results, int result_count)
{
    mr_output v[VALUES_MAX];
    for (int i = 0; i < count; i++) v[i] = given[i];
    for (int i = 0; i < b->count; i++) {
        const statement *s = &b->statements[i];
        mr_output x = v[s->a], y = v[s->b], branch = {0};
        mr_cond *cond = nullptr;
        switch (s->kind) {
        case MEAN:
            v[count++] = mr_mul(g, mr_add(g, x, y), mr_constant_float(g, 0.5f));
            break;
        case PRODUCT:
            v[count++] = mr_mul(g, mr_sin(g, x), y);
            break;
        case CONSTANT: /* of x's shape, which is not known if x's is not */
            v[count++] = mr_add(g, mr_zeros_like(g, x), mr_constant_float(g, s->number));
            break;
        case IF:
            cond = mr_cond_begin(g, mr_less(g, mr_reshape(g, x, mr_constant_ints(g, (mr_ints){(int64_t[]){0}, 0})),
                                            mr_constant_float(g, s->number)));
            build(g, s->first, v, count, &branch, 1);
            mr_cond_else(cond, MR_OUTPUTS(branch));
            build(g, s->second, v, count, &branch, 1);
            mr_cond_end(cond, MR_OUTPUTS(branch), &v[count++]);
            break;
        case LOOP:
            build_loop(g, s, v, count);
            count += s->variables;
            break;
        }
    }
    for (int i = 0; i < result_count; i++) results[i] = v[b->results[i]];
}

#endif
