/* MaxPool with the positions of its maxima: the same bits as without optimizations, for windows of all kinds, ties,
 * infinities and NaN. */
#include "base/random.h"
#include "tests/test.h"
#include <float.h>
#include <millrace/ops.h>
#include <millrace/session.h>

static int ran(const mr_session *session, const char *op)
{
    mr_node_time times[64];
    int count = mr_session_trace_times(session, times, 64), found = 0;
    for (int i = 0; i < count; i++) found += strcmp(times[i].op, op) == 0;
    return found;
}

typedef struct pool_case {
    mr_shape shape;
    int64_t size[2], strides[2];
    mr_choice padding;
    bool has_relu, fetches_input, is_batch_known;
} pool_case;

/* Small numbers, which are often equal, and those with rules of their own. */
static mr_tensor draw(mr_shape shape, mr_random *random, uint64_t special)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY, -FLT_MAX, -0.0f, 1e-45f, FLT_MAX};
    mr_error error = {0};
    mr_tensor t = {0};
    CHECK_OK(mr_tensor_init(&t, MR_FLOAT, shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&t); i++) {
        const bool is_special = mr_random_below(random, 100) < special;
        mr_tensor_floats(&t)[i] =
            is_special ? numbers[mr_random_below(random, 7)] : (float)mr_random_below(random, 5) - 2;
    }
    return t;
}

/* The bits, except that any NaN equals any other. */
static void check_same(const mr_tensor *a, const mr_tensor *b)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        const float x = mr_tensor_floats(a)[i], y = mr_tensor_floats(b)[i];
        CHECK((isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0);
    }
}

static void check_case(const pool_case *c, mr_random *random)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_shape shape = c->shape;
    if (!c->is_batch_known) shape.dims[0] = -1;
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = shape);
    mr_output input = c->has_relu ? mr_relu(g, x) : mr_cast(g, mr_cast(g, x, MR_DOUBLE), MR_FLOAT);
    mr_output pooled = mr_max_pool(g, input, .ksize = MR_INTS(1, c->size[0], c->size[1], 1),
                                   .strides = MR_INTS(1, c->strides[0], c->strides[1], 1), .padding = c->padding);
    mr_shape outputs = mr_output_shape(pooled);
    mr_output weights = mr_placeholder(g, MR_FLOAT, .shape = outputs);
    mr_output loss = mr_mul(g, pooled, weights), gradient;
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(x), nullptr, &gradient);
    mr_tensor image = draw(c->shape, random, mr_random_below(random, 3) * 10), results[2][3] = {0};
    CHECK_OK(mr_graph_status(g, &error));
    outputs.dims[0] = c->shape.dims[0];
    mr_tensor factors = draw(outputs, random, mr_random_below(random, 2) * 10);
    const int count = c->fetches_input ? 3 : 2;
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = nullptr;
        const mr_session_options options = {
            .size = sizeof options, .threads = 1 + (int)mr_random_below(random, 3), .no_optimization = plain == 1};
        CHECK_OK(mr_session_new(g, &options, &session, &error));
        mr_session_trace(session, true);
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, image}, {weights, factors}),
                                (mr_outputs){(mr_output[]){gradient, pooled, input}, count}, results[plain], nullptr, 0,
                                &error));
        const bool is_apart = c->size[0] <= c->strides[0] && c->size[1] <= c->strides[1];
        const bool is_fused = plain == 0 && c->shape.dims[3] % 16 == 0 && !c->fetches_input &&
                              c->size[0] * c->size[1] <= 128 && (is_apart || !c->has_relu);
        CHECK_EQ(ran(session, "MaxPoolGrad"), !is_fused);
        CHECK_EQ(ran(session, c->has_relu ? "_MaxPoolPositionsReluGrad" : "_MaxPoolPositionsGrad"), is_fused);
        mr_session_free(session);
    }
    for (int i = 0; i < count; i++) check_same(&results[0][i], &results[1][i]);
    for (int i = 0; i < 3; i++)
        for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][i]);
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&factors);
    mr_graph_free(g);
}

TEST(fuse_pool_model)
{
    mr_random random = mr_random_at(test_seed(), 31, 0, 0);
    for (int i = 0; i < (test_is_sanitized() ? 100 : 600); i++) {
        const pool_case c = {
            .shape =
                MR_SHAPE(1 + (int64_t)mr_random_below(&random, 3), 4 + (int64_t)mr_random_below(&random, 9),
                         4 + (int64_t)mr_random_below(&random, 9), 16 << mr_random_below(&random, 3) >> (i % 7 == 0)),
            .size = {1 + (int64_t)mr_random_below(&random, 4), 1 + (int64_t)mr_random_below(&random, 4)},
            .strides = {1 + (int64_t)mr_random_below(&random, 4), 1 + (int64_t)mr_random_below(&random, 4)},
            .padding = mr_random_below(&random, 2) ? MR_SAME : MR_VALID,
            .has_relu = i % 2 == 0,
            .fetches_input = i % 5 == 0,
            .is_batch_known = i % 3 == 0};
        check_case(&c, &random);
    }
    /* The number of places that a byte can name, and one more. */
    for (int64_t width = 16; width <= 17; width++)
        check_case(&(pool_case){.shape = MR_SHAPE(2, 9, 19, 16),
                                .size = {8, width},
                                .strides = {1, 1},
                                .padding = MR_SAME,
                                .is_batch_known = true},
                   &random);
}
