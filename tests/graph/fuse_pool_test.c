/* MaxPool with the positions of its maxima: the same bits as without optimizations, for windows of all kinds, ties,
 * infinities and NaN. */
#include "base/random.h"
#include "tests/graph/ran.h"
#include <float.h>
#include <millrace/ops.h>
#include <millrace/session.h>

typedef struct pool_case {
    mr_shape shape;
    int64_t size[2], strides[2];
    mr_choice padding;
    bool has_relu, fetches_input, is_batch_known;
} pool_case;

/* Small numbers, which are often equal, and those with rules of their own. */
static mr_tensor draw(mr_shape shape, mr_random *random, uint64_t special)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY, -FLT_MAX, -0.0f, 1e-30f, FLT_MAX};
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

/* MaxPoolGrad of 16 channels, which are computed together, and of 8, one by one: the same bits, also if windows do not
 * reach some of the input, and whatever orig_output is. */
TEST(max_pool_grad_of_any_channels)
{
    mr_error error = {0};
    mr_random random = mr_random_at(test_seed(), 32, 0, 0);
    for (int i = 0; i < 300; i++) {
        int64_t sides[2], sizes[2], strides[2], pads[4], outs[2];
        for (int d = 0; d < 2; d++) {
            sides[d] = 1 + (int64_t)mr_random_below(&random, 7);
            sizes[d] = 1 + (int64_t)mr_random_below(&random, 4);
            strides[d] = i % 2 ? sizes[d] : 1 + (int64_t)mr_random_below(&random, 5);
            pads[2 * d] = (int64_t)mr_random_below(&random, (uint64_t)sizes[d]);
            pads[2 * d + 1] = (int64_t)mr_random_below(&random, (uint64_t)sizes[d]);
            outs[d] = sides[d] + pads[2 * d] + pads[2 * d + 1] - sizes[d];
            outs[d] = outs[d] < 0 ? 0 : outs[d] / strides[d] + 1;
        }
        if (outs[0] == 0 || outs[1] == 0) continue;
        const int64_t in = 2 * sides[0] * sides[1], out = 2 * outs[0] * outs[1];
        mr_tensor image = draw(MR_SHAPE(2, sides[0], sides[1], 16), &random, 10 * (uint64_t)(i % 3));
        mr_tensor stale = draw(MR_SHAPE(2, outs[0], outs[1], 16), &random, 5);
        mr_tensor above = draw(MR_SHAPE(2, outs[0], outs[1], 16), &random, 5), whole = {0};
        for (int part = 0; part < 3; part++) { /* all channels; the first 8; the others */
            const int64_t channels = part == 0 ? 16 : 8, first = part == 2 ? 8 : 0;
            const int64_t counts[] = {in, out, out};
            const mr_tensor *from[] = {&image, &stale, &above};
            mr_tensor fed[3] = {0}, result = {0};
            mr_graph *g = mr_graph_new();
            mr_output inputs[3];
            for (int k = 0; k < 3; k++) {
                mr_shape shape = from[k]->shape;
                shape.dims[3] = channels;
                inputs[k] = mr_placeholder(g, MR_FLOAT, .shape = shape);
                CHECK_OK(mr_tensor_init(&fed[k], MR_FLOAT, shape, &error));
                for (int64_t j = 0; j < counts[k] * channels; j++)
                    mr_tensor_floats(&fed[k])[j] = mr_tensor_floats(from[k])[j / channels * 16 + first + j % channels];
            }
            mr_output gradient =
                mr_max_pool_grad(g, inputs[0], inputs[1], inputs[2], .ksize = MR_INTS(1, sizes[0], sizes[1], 1),
                                 .strides = MR_INTS(1, strides[0], strides[1], 1), .padding = MR_EXPLICIT,
                                 .explicit_paddings = MR_INTS(0, 0, pads[0], pads[1], pads[2], pads[3], 0, 0));
            mr_session *session = nullptr;
            CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1 + i % 3), &session, &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({inputs[0], fed[0]}, {inputs[1], fed[1]}, {inputs[2], fed[2]}),
                                    MR_OUTPUTS(gradient), &result, nullptr, 0, &error));
            for (int64_t j = 0; part > 0 && j < in * 8; j++) {
                const float a = mr_tensor_floats(&result)[j], b = mr_tensor_floats(&whole)[j / 8 * 16 + first + j % 8];
                CHECK((isnan(a) && isnan(b)) || a == b);
            }
            mr_session_free(session);
            mr_graph_free(g);
            for (int k = 0; k < 3; k++) mr_tensor_deinit(&fed[k]);
            if (part == 0)
                whole = result;
            else
                mr_tensor_deinit(&result);
        }
        mr_tensor *all[] = {&image, &stale, &above, &whole};
        for (int k = 0; k < 4; k++) mr_tensor_deinit(all[k]);
    }
}
