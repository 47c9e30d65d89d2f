/* Networks with normalizations, whose activations are computed again in the backward pass, and whose sums with
 * shortcuts are part of the normalization: the same numbers as without optimizations. */
#include "base/random.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

static int ran(const mr_session *session, const char *op)
{
    static mr_node_time times[4096];
    int count = mr_session_trace_times(session, times, 4096), found = 0;
    for (int i = 0; i < count; i++) found += strcmp(times[i].op, op) == 0;
    return found;
}

constexpr int PARAMETERS_MAX = 64, ACTIVATIONS_MAX = 64, FETCHES_MAX = PARAMETERS_MAX + 4;

typedef struct network {
    mr_graph *graph;
    mr_random *random;
    int64_t channels;
    mr_output mean;                       /* of the last normalization */
    mr_shape shape;                       /* of the fed batch */
    mr_output parameters[PARAMETERS_MAX]; /* filters, scales and offsets */
    mr_output activations[ACTIVATIONS_MAX];
    int parameter_count, activation_count;
} network;

static float draw(network *n)
{
    return (float)mr_random_below(n->random, 2001) / 1000 - 1;
}

static mr_output parameter(network *n, mr_shape shape)
{
    static float numbers[64 * 64];
    const int64_t count = mr_shape_count(shape);
    CHECK(count <= 64 * 64 && n->parameter_count < PARAMETERS_MAX);
    for (int64_t i = 0; i < count; i++) numbers[i] = draw(n);
    return n->parameters[n->parameter_count++] = mr_constant_floats(n->graph, shape, numbers, nullptr);
}

static mr_output keep(network *n, mr_output activation)
{
    CHECK(n->activation_count < ACTIVATIONS_MAX);
    return n->activations[n->activation_count++] = activation;
}

/* A convolution and its normalization. */
static mr_output normalized(network *n, mr_output x)
{
    mr_graph *g = n->graph;
    const int64_t size = 1 + 2 * (int64_t)mr_random_below(n->random, 2), c = n->channels;
    mr_output filter = parameter(n, size == 1 || c > 16 ? MR_SHAPE(1, 1, c, c) : MR_SHAPE(size, size, c, c));
    mr_output conv = keep(n, mr_conv2d(g, x, filter, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME));
    mr_output scale = parameter(n, MR_SHAPE(c)), offset = parameter(n, MR_SHAPE(c));
    mr_output none = mr_fill(g, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 0));
    if (mr_random_below(n->random, 3) == 0) {
        mr_fused_batch_norm_outputs v1 = mr_fused_batch_norm(g, conv, scale, offset, none, none);
        n->mean = v1.batch_mean;
        return keep(n, v1.y);
    }
    if (mr_random_below(n->random, 3) == 0) {
        mr_fused_batch_norm_v2_outputs v2 = mr_fused_batch_norm_v2(g, conv, scale, offset, none, none);
        n->mean = v2.batch_mean;
        return keep(n, v2.y);
    }
    mr_fused_batch_norm_v3_outputs v3 = mr_fused_batch_norm_v3(g, conv, scale, offset, none, none);
    n->mean = v3.batch_mean;
    return keep(n, v3.y);
}

/* Input of the same shape, for one image or for all. */
static mr_output constant_side(network *n)
{
    mr_shape shape = n->shape;
    if (mr_random_below(n->random, 2) == 0) shape.dims[0] = 1;
    const int64_t count = mr_shape_count(shape);
    float *numbers = malloc((size_t)count * sizeof *numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = draw(n);
    mr_output side = mr_constant_floats(n->graph, shape, numbers, nullptr);
    free(numbers);
    return side;
}

static mr_output layer(network *n, mr_output x)
{
    mr_graph *g = n->graph;
    mr_output inner, side;
    switch (mr_random_below(n->random, 8)) {
    case 0:
        return keep(n, mr_relu(g, normalized(n, x)));
    case 1:
        return normalized(n, x);
    case 2:
        side = normalized(n, x);
        inner = normalized(n, keep(n, mr_relu(g, normalized(n, x))));
        break;
    case 3:
        side = constant_side(n);
        inner = normalized(n, x);
        break;
    case 4: /* of the same shape, but after the normalization */
        inner = normalized(n, x);
        side = mr_add(g, constant_side(n), mr_stop_gradient(g, n->mean));
        break;
    default:
        side = x;
        inner = normalized(n, keep(n, mr_relu(g, normalized(n, x))));
    }
    mr_output sum = mr_random_below(n->random, 2) ? mr_add_v2(g, inner, side) : mr_add(g, side, inner);
    return keep(n, mr_relu(g, keep(n, sum)));
}

/* Any zero equals any other: a gradient of Relu multiplies, so that its zeros have signs. */
static void check_same(const mr_tensor *a, const mr_tensor *b, int fetch)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        const float x = mr_tensor_floats(a)[i], y = mr_tensor_floats(b)[i];
        if (!(x == y || (isnan(x) && isnan(y))))
            test_fail(__FILE__, __LINE__, "element %lld of fetch %d is %.9g, not %.9g", (long long)i, fetch, (double)x,
                      (double)y);
    }
}

/* Returns how many activations were computed again. has_batch: set to whether the size of the batch was known */
static int check_network(mr_random *random, bool *has_batch)
{
    static const int64_t channels[] = {1, 3, 8, 16, 17, 32};
    mr_error error = {0};
    network n = {.graph = mr_graph_new(), .random = random, .channels = channels[mr_random_below(random, 6)]};
    mr_graph *g = n.graph;
    const int64_t size = mr_random_below(random, 3) == 0 ? 24 : 1 + (int64_t)mr_random_below(random, 12);
    n.shape = MR_SHAPE(1 + (int64_t)mr_random_below(random, 4), size, size, n.channels);
    mr_shape declared = n.shape;
    *has_batch = mr_random_below(random, 2) == 0;
    if (!*has_batch) declared.dims[0] = -1;
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = declared), h = x;
    const int layers = 1 + (int)mr_random_below(random, 5);
    for (int i = 0; i < layers; i++) h = layer(&n, h);
    mr_output weights = mr_placeholder(g, MR_FLOAT, .shape = declared), fetches[FETCHES_MAX];
    mr_output loss = mr_sum(g, mr_mul(g, h, weights), mr_constant_ints(g, MR_INTS(0, 1, 2, 3)));
    int count = 0;
    fetches[count++] = loss;
    mr_gradients(g, MR_OUTPUTS(loss), (mr_outputs){n.parameters, n.parameter_count}, nullptr, fetches + count);
    count += n.parameter_count;
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(x), nullptr, fetches + count++);
    if (mr_random_below(random, 3) == 0)
        fetches[count++] = n.activations[mr_random_below(random, (uint64_t)n.activation_count)];
    CHECK_OK(mr_graph_status(g, &error));
    mr_tensor image = {0}, factors = {0}, results[2][FETCHES_MAX] = {0};
    CHECK_OK(mr_tensor_init(&image, MR_FLOAT, n.shape, &error));
    CHECK_OK(mr_tensor_init(&factors, MR_FLOAT, n.shape, &error));
    for (int64_t i = 0; i < mr_tensor_count(&image); i++)
        mr_tensor_floats(&image)[i] = draw(&n), mr_tensor_floats(&factors)[i] = draw(&n);
    if (mr_random_below(random, 5) == 0) /* a gradient that is not finite, also where Relu's is 0 */
        mr_tensor_floats(&factors)[mr_random_below(random, (uint64_t)mr_tensor_count(&factors))] =
            mr_random_below(random, 2) ? NAN : INFINITY;
    int recomputed = 0;
    const bool keeps = mr_random_below(random, 5) == 0;
    for (int plain = 0; plain < 2; plain++) {
        mr_session *session = nullptr;
        const mr_session_options options = {.size = sizeof options,
                                            .threads = 1 + (int)mr_random_below(random, 3),
                                            .no_optimization = plain == 1,
                                            .no_recompute = keeps};
        CHECK_OK(mr_session_new(g, &options, &session, &error));
        mr_session_trace(session, true);
        CHECK_OK(mr_session_run(session, MR_FEEDS({x, image}, {weights, factors}), (mr_outputs){fetches, count},
                                results[plain], nullptr, 0, &error));
        recomputed += ran(session, "_FusedBatchNormApply");
        if (keeps) CHECK_EQ(recomputed, 0);
        if (plain) CHECK_EQ(recomputed + ran(session, "_FusedBatchNormEx"), recomputed);
        mr_session_free(session);
    }
    for (int i = 0; i < count; i++) {
        check_same(&results[0][i], &results[1][i], i);
        for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][i]);
    }
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&factors);
    mr_graph_free(g);
    return recomputed;
}

TEST(recompute_any_network)
{
    const int cases = test_is_sanitized() ? 30 : 150;
    int recomputed[2] = {0};
    for (int i = 0; i < cases; i++) {
        mr_random random = mr_random_at(test_seed(), 33, (uint64_t)i, 0);
        bool has_batch;
        const int count = check_network(&random, &has_batch);
        recomputed[has_batch] += count;
    }
    if (recomputed[false] < cases / 10 || (recomputed[true] == 0 && !test_is_sanitized()))
        test_fail(__FILE__, __LINE__, "%d and %d", recomputed[false], recomputed[true]);
}
