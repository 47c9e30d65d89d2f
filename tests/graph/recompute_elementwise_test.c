/* Sums and products that the backward pass reads again are computed again for it: the same bits, in less memory. */
#include "base/random.h"
#include "proto/proto.h"
#include "proto/run.pb-c.h"
#include "tests/test.h"

#include <millrace/ops.h>
#include <millrace/session.h>

constexpr int LAYERS = 10;

typedef struct network {
    mr_graph *graph;
    mr_output x, loss, sources[2 * LAYERS + 1], gradients[2 * LAYERS + 1];
    int count;
} network;

/* A normalization of rows, as in a transformer. */
static mr_output normalize(network *n, mr_output x, mr_output scale, mr_output offset)
{
    mr_graph *g = n->graph;
    const mr_output axis = mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){-1}, nullptr);
    const mr_output mean = mr_mean(g, x, axis, .keep_dims = true);
    const mr_output difference = mr_sub(g, x, mean);
    const mr_output variance = mr_mean(g, mr_square(g, difference), axis, .keep_dims = true);
    const mr_output factor = mr_rsqrt(g, mr_add(g, variance, mr_constant_float(g, 1e-5f)));
    return mr_add(g, mr_mul(g, mr_mul(g, difference, factor), scale), offset);
}

static network make_network(mr_random *random, int64_t rows, int64_t width)
{
    network n = {.graph = mr_graph_new()};
    mr_graph *g = n.graph;
    n.x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(rows, width));
    n.sources[n.count++] = n.x;
    mr_output y = n.x;
    for (int i = 0; i < LAYERS; i++) {
        for (int k = 0; k < 2; k++) n.sources[n.count++] = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(width));
        y = normalize(&n, y, n.sources[n.count - 2], n.sources[n.count - 1]);
        const int others = 1 + (int)mr_random_below(random, 4); /* which are not elementwise */
        for (int k = 0; k < others; k++) {
            y = mr_reverse_v2(g, y, mr_constant_int32s(g, MR_SHAPE(1), (int32_t[]){k % 2}, nullptr));
            if (mr_random_below(random, 2)) y = mr_tanh(g, y);
            if (mr_random_below(random, 3) == 0) y = mr_mul(g, y, mr_sigmoid(g, y));
        }
    }
    n.loss = mr_sum(g, mr_square(g, y), mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){0, 1}, nullptr));
    mr_gradients(g, MR_OUTPUTS(n.loss), (mr_outputs){n.sources, n.count}, nullptr, n.gradients);
    return n;
}

typedef struct outcome {
    mr_tensor values[2 * LAYERS + 2];
    int64_t stored_bytes; /* of the outputs of all calls */
} outcome;

static int64_t count_outputs(const mr_tensor *bytes)
{
    mr_error error = {0};
    mr_arena arena = {0};
    Mr__RunMetadata *metadata = nullptr;
    int64_t total = 0;
    CHECK_OK(mr_proto_unpack_as(run_metadata, mr_tensor_strings(bytes)[0], &arena, &metadata, &error));
    for (size_t i = 0; i < metadata->step_stats->n_dev_stats; i++)
        for (size_t j = 0; j < metadata->step_stats->dev_stats[i]->n_node_stats; j++) {
            const Mr__NodeExecStats *node = metadata->step_stats->dev_stats[i]->node_stats[j];
            for (size_t k = 0; k < node->n_output; k++)
                total += node->output[k]->tensor_description->allocation_description->requested_bytes;
        }
    mr_arena_deinit(&arena);
    return total;
}

static outcome run(const network *n, const mr_feed *feeds, mr_session_options options)
{
    outcome result = {0};
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_tensor metadata = {0};
    mr_output fetches[2 * LAYERS + 2] = {n->loss};
    for (int i = 0; i < n->count; i++) fetches[i + 1] = n->gradients[i];
    CHECK_OK(mr_session_new(n->graph, &options, &session, &error));
    const mr_run_options traced = {.size = sizeof traced, .trace = true, .metadata = &metadata};
    CHECK_OK(mr_session_run_with(session, &traced, (mr_feeds){feeds, n->count}, (mr_outputs){fetches, n->count + 1},
                                 result.values, nullptr, 0, &error));
    result.stored_bytes = count_outputs(&metadata);
    mr_tensor_deinit(&metadata);
    mr_session_free(session);
    return result;
}

TEST(recompute_elementwise)
{
    static const int64_t widths[] = {31, 32, 100, 512, 2048, 2100};
    mr_random random = mr_random_at(test_seed(), 71, 0, 0);
    for (int round = 0; round < 12; round++) {
        const int64_t width = widths[round % 6], rows = 1 + 40'000 / width;
        network n = make_network(&random, rows, width);
        mr_error error = {0};
        mr_feed feeds[2 * LAYERS + 1];
        CHECK_OK(mr_graph_status(n.graph, &error));
        for (int i = 0; i < n.count; i++) {
            feeds[i] = (mr_feed){n.sources[i], {0}};
            CHECK_OK(
                mr_tensor_init(&feeds[i].value, MR_FLOAT, i == 0 ? MR_SHAPE(rows, width) : MR_SHAPE(width), &error));
            for (int64_t k = 0; k < mr_tensor_count(&feeds[i].value); k++)
                mr_tensor_floats(&feeds[i].value)[k] = (float)mr_random_below(&random, 2000) / 1000 - 1;
        }
        outcome outcomes[3];
        for (int i = 0; i < 3; i++)
            outcomes[i] = run(&n, feeds,
                              (mr_session_options){.size = sizeof(mr_session_options),
                                                   .threads = 1 + (int)mr_random_below(&random, 3),
                                                   .no_recompute = i == 1,
                                                   .no_optimization = i == 2});
        CHECK(outcomes[0].stored_bytes < outcomes[1].stored_bytes);
        CHECK(outcomes[1].stored_bytes < outcomes[2].stored_bytes);
        for (int i = 0; i <= n.count; i++)
            for (int k = 2; k >= 0; k--) {
                const mr_tensor *a = &outcomes[k].values[i], *b = &outcomes[0].values[i];
                CHECK(mr_shape_equal(a->shape, b->shape));
                CHECK(memcmp(a->data, b->data, mr_tensor_size_bytes(a)) == 0);
                mr_tensor_deinit(&outcomes[k].values[i]);
            }
        for (int i = 0; i < n.count; i++) mr_tensor_deinit(&feeds[i].value);
        mr_graph_free(n.graph);
    }
}
