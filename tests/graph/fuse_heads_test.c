/* Batched products that read and write heads in place: the same values as products of transposed tensors. */
#include "base/random.h"
#include "tests/graph/ran.h"
#include <math.h>
#include <millrace/ops.h>
#include <millrace/session.h>

typedef enum way {
    ALONE,     /* each transposed tensor has one reader */
    SHARED,    /* a transposed operand has two, both products */
    SQUARED,   /* both operands are one tensor */
    CHAINED,   /* the result is an operand of another product */
    WIDE,      /* the other operand has another dimension, of which the batches are a part */
    TAKEN,     /* the result is fetched as it is, and negated */
    PASSED_ON, /* the result, through two identities, one of which waits */
    AWAITED,   /* the result is, by its reader, too */
    WAYS,      /* in the following some Transposes remain */
    FETCHED = WAYS,
    OTHER_USE,   /* of a transposed operand */
    RESULT_USED, /* before it is transposed */
    OTHER_ORDER,
    ORDER_FED,
    ALL,
} way;

typedef struct graph {
    mr_graph *graph;
    mr_output x, y, order, fetches[2];
    int fetch_count, remaining; /* Transposes of the optimized plan */
} graph;

typedef struct sizes {
    int64_t batch[2], heads[2], rows[2], columns[2];
    int wide; /* 0 and 1: an operand, in WIDE */
    bool has_heads[3], adj_x, adj_y, is_first_version, is_unknown;
} sizes;

static mr_shape shape_of(const sizes *s, int i)
{
    return s->has_heads[i] ? MR_SHAPE(s->batch[i], s->rows[i], s->heads[i], s->columns[i])
                           : MR_SHAPE(s->batch[i], s->heads[i], s->rows[i], s->columns[i]);
}

static mr_output multiply(mr_graph *g, const sizes *s, mr_output x, mr_output y)
{
    return s->is_first_version ? mr_batch_mat_mul(g, x, y, .adj_x = s->adj_x, .adj_y = s->adj_y)
                               : mr_batch_mat_mul_v2(g, x, y, .adj_x = s->adj_x, .adj_y = s->adj_y);
}

static mr_output widen(mr_graph *g, const sizes *s, mr_output x)
{
    const mr_shape one = shape_of(s, s->wide);
    const mr_output sizes = mr_constant_ints(g, MR_INTS(2, one.dims[0], one.dims[1], one.dims[2], one.dims[3]));
    const mr_output both[] = {x, mr_neg(g, x)};
    return mr_reshape(g, mr_concat(g, mr_constant_int32(g, 0), ((mr_outputs){both, 2})), sizes);
}

static graph make_graph(const sizes *s, way way, bool is_long)
{
    mr_graph *g = mr_graph_new();
    graph made = {.graph = g, .fetch_count = 1};
    const mr_shape unknown = MR_SHAPE(-1, -1, -1, -1);
    made.x = mr_placeholder(g, MR_FLOAT, .shape = s->is_unknown ? unknown : shape_of(s, 0));
    made.y = mr_placeholder(g, MR_FLOAT, .shape = s->is_unknown ? unknown : shape_of(s, 1));
    made.order = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(4));
    const mr_output swap = mr_cast(g, mr_constant_ints(g, MR_INTS(0, 2, 1, 3)), is_long ? MR_INT64 : MR_INT32);
    const mr_output order = way == ORDER_FED ? made.order : swap;
    mr_output x = s->has_heads[0] ? mr_transpose(g, made.x, order) : made.x;
    mr_output y = s->has_heads[1] ? mr_transpose(g, made.y, order) : made.y;
    if (way == SQUARED) y = x;
    if (way == WIDE) *(s->wide == 0 ? &x : &y) = widen(g, s, s->wide == 0 ? x : y);
    const mr_output product = multiply(g, s, x, y);
    mr_output z = product;
    if (way == PASSED_ON) {
        z = mr_identity(g, z);
        mr_node_add_control(z.node, made.x.node);
        z = mr_identity(g, z);
    }
    if (s->has_heads[2]) z = mr_transpose(g, z, way == OTHER_ORDER ? mr_constant_ints(g, MR_INTS(0, 2, 3, 1)) : order);
    made.fetches[0] = way == CHAINED ? mr_batch_mat_mul_v2(g, z, z, .adj_y = true) : mr_identity(g, z);
    made.fetches[1] = mr_neg(g, product);
    if (way == TAKEN) {
        made.fetches[0] = z;
        made.fetches[1] = mr_neg(g, z);
    }
    if (way == SHARED) made.fetches[1] = multiply(g, s, x, mr_neg(g, y));
    if (way == FETCHED) made.fetches[1] = x;
    if (way == OTHER_USE) made.fetches[1] = mr_neg(g, x);
    if (way == AWAITED) mr_node_add_control(made.fetches[0].node, z.node);
    if (way == TAKEN || way == SHARED || way == FETCHED || way == OTHER_USE || way == RESULT_USED) made.fetch_count = 2;
    /* What remains of the Transposes. */
    const bool x_stays = s->has_heads[0] && (way == FETCHED || way == OTHER_USE || way == ORDER_FED);
    const bool y_stays = s->has_heads[1] && way != SQUARED && (way == ORDER_FED || way == SHARED);
    const bool z_stays = s->has_heads[2] && (way >= OTHER_ORDER || way == RESULT_USED);
    made.remaining = x_stays + y_stays + z_stays;
    return made;
}

static int run(const graph *g, bool is_plain, int threads, const mr_tensor inputs[3], mr_tensor results[2],
               mr_status wanted)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g->graph, MR_OPTIONS(mr_session_options, .threads = threads, .no_optimization = is_plain),
                            &session, &error));
    mr_session_trace(session, true);
    CHECK_EQ(mr_session_run(session, MR_FEEDS({g->x, inputs[0]}, {g->y, inputs[1]}, {g->order, inputs[2]}),
                            (mr_outputs){g->fetches, g->fetch_count}, results, nullptr, 0, &error),
             wanted);
    const int transposes = ran(session, "Transpose");
    mr_session_free(session);
    return transposes;
}

static mr_tensor random_floats_of(mr_random *random, mr_shape shape)
{
    mr_error error = {0};
    mr_tensor made = {0};
    CHECK_OK(mr_tensor_init(&made, MR_FLOAT, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&made); i++)
        mr_tensor_floats(&made)[i] = (float)mr_random_below(random, 2000) / 1000 - 1;
    return made;
}

static void check_equal(const mr_tensor *a, const mr_tensor *b, bool same_bits)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        const float x = mr_tensor_floats(a)[i], y = mr_tensor_floats(b)[i];
        if (same_bits ? x != y : fabsf(x - y) > 1e-4f * (1 + fabsf(x))) CHECK(false);
    }
}

static sizes random_sizes(mr_random *random, way way)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 15, 16, 17, 31, 33, 64, 127, 128, 129, 160, 200};
    const int64_t m = lengths[mr_random_below(random, 15)], n = lengths[mr_random_below(random, 15)];
    const int64_t k = lengths[mr_random_below(random, 15)], batch = 1 + (int64_t)mr_random_below(random, 3);
    const int64_t heads = 1 + (int64_t)mr_random_below(random, 4);
    const uint64_t bits = mr_random_below(random, 256);
    sizes s = {.batch = {batch, batch}, .heads = {heads, heads}, .adj_x = bits & 1, .adj_y = bits & 2};
    for (int i = 0; i < 3; i++) s.has_heads[i] = bits >> (2 + i) & 1;
    s.is_first_version = bits & 32;
    s.is_unknown = bits & 64;
    if (way == SQUARED) s.adj_y = !s.adj_x;
    s.rows[0] = s.adj_x ? k : m;
    s.columns[0] = s.adj_x ? m : k;
    s.rows[1] = way == SQUARED ? s.rows[0] : s.adj_y ? n : k;
    s.columns[1] = way == SQUARED ? s.columns[0] : s.adj_y ? k : n;
    if (!s.is_first_version && bits & 128) s.batch[bits & 1] = 1; /* broadcast */
    if (!s.is_first_version && way != SQUARED && mr_random_below(random, 3) == 0) s.heads[bits >> 1 & 1] = 1;
    s.wide = bits & 1;
    if (way == WIDE) {
        s.is_first_version = s.has_heads[s.wide] = s.has_heads[2] = false;
        s.has_heads[1 - s.wide] = true;
    }
    if (mr_random_below(random, 30) == 0) s.batch[0] = s.batch[1] = 0;
    return s;
}

TEST(plan_reads_and_writes_heads_in_place)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 4, 0, 0);
    mr_tensor order = {0};
    CHECK_OK(mr_tensor_init(&order, MR_INT32, MR_SHAPE(4), &error));
    memcpy(order.data, (const int32_t[]){0, 2, 1, 3}, 16);
    for (int round = 0; round < (test_is_sanitized() ? 100 : 600); round++) {
        const way way = (enum way)(round % ALL);
        const sizes s = random_sizes(&random, way);
        const graph g = make_graph(&s, way, round % 3 == 0);
        const mr_tensor inputs[3] = {random_floats_of(&random, shape_of(&s, 0)),
                                     random_floats_of(&random, shape_of(&s, 1)), order};
        mr_tensor plain[2] = {0}, fused[2] = {0};
        run(&g, true, 1, inputs, plain, MR_OK);
        CHECK_EQ(run(&g, false, 1 + (int)mr_random_below(&random, 3), inputs, fused, MR_OK), g.remaining);
        /* A product of vectors adds in another order. */
        const bool same_bits = way != CHAINED && s.rows[0] > 1 && s.columns[0] > 1 && s.rows[1] > 1 && s.columns[1] > 1;
        for (int i = 0; i < g.fetch_count; i++) check_equal(&fused[i], &plain[i], same_bits);
        for (int i = 0; i < 2; i++) {
            mr_tensor_deinit(&plain[i]);
            mr_tensor_deinit(&fused[i]);
            mr_tensor_deinit((mr_tensor *)&inputs[i]);
        }
        mr_graph_free(g.graph);
    }
    mr_tensor_deinit(&order);
}

TEST(products_of_heads_refuse_other_sizes)
{
    mr_random random = mr_random_at(test_seed(), 5, 0, 0);
    const sizes s = {.batch = {2, 2},
                     .heads = {3, 3},
                     .rows = {4, 5},
                     .columns = {5, 6},
                     .has_heads = {true, true, true},
                     .is_unknown = true};
    static const mr_shape shapes[][2] = {
        {{4, {2, 4, 3, 5}}, {4, {2, 4, 3, 6}}}, /* inner sizes */
        {{4, {2, 4, 3, 5}}, {4, {3, 5, 3, 6}}}, /* batches */
        {{4, {2, 4, 2, 5}}, {4, {2, 5, 3, 6}}}, /* heads */
    };
    for (int i = 0; i < 3; i++) {
        const graph g = make_graph(&s, ALONE, false);
        mr_tensor inputs[3] = {random_floats_of(&random, shapes[i][0]), random_floats_of(&random, shapes[i][1])};
        mr_error error = {0};
        mr_tensor results[2] = {0};
        CHECK_OK(mr_tensor_init(&inputs[2], MR_INT32, MR_SHAPE(4), &error));
        run(&g, false, 1, inputs, results, MR_INVALID_ARGUMENT);
        for (int j = 0; j < 3; j++) mr_tensor_deinit(&inputs[j]);
        mr_graph_free(g.graph);
    }
}
