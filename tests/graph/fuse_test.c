/* Fused nodes: fewer kernel calls, with bit-for-bit the same results as the separate nodes. Fetching the value between
 * two nodes prevents their fusion. */
#include "tests/graph/ran.h"
#include <millrace/ops.h>
#include <millrace/session.h>

TEST(fuse_batch_norm_and_relu)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 5, 5, 19));
    mr_output scale = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(19)),
              offset = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(19));
    mr_output none = mr_fill(g, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 0));
    mr_output normal = mr_fused_batch_norm_v3(g, x, scale, offset, none, none).y;
    mr_output h = mr_relu(g, normal);
    mr_output loss = mr_sum(g, mr_mul(g, h, x), mr_constant_ints(g, MR_INTS(0, 1, 2, 3)));
    mr_output gradients[3];
    mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(x, scale, offset), nullptr, gradients);
    mr_session *session = nullptr;
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 2), &session, &error));
    mr_session_trace(session, true);
    mr_tensor image = {0}, factors = {0}, levels = {0}, fused[5] = {0}, apart[6] = {0};
    CHECK_OK(mr_tensor_init(&image, MR_FLOAT, MR_SHAPE(2, 5, 5, 19), &error));
    CHECK_OK(mr_tensor_init(&factors, MR_FLOAT, MR_SHAPE(19), &error));
    CHECK_OK(mr_tensor_init(&levels, MR_FLOAT, MR_SHAPE(19), &error));
    for (int i = 0; i < 950; i++) mr_tensor_floats(&image)[i] = sinf((float)(i * i % 977));
    for (int i = 0; i < 19; i++)
        mr_tensor_floats(&factors)[i] = 1 + (float)i / 19, mr_tensor_floats(&levels)[i] = (float)(i - 9) / 9;
    mr_feeds feeds = MR_FEEDS({x, image}, {scale, factors}, {offset, levels});
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(loss, gradients[0], gradients[1], gradients[2], h), fused,
                            nullptr, 0, &error));
    CHECK_EQ(ran(session, "Relu") + ran(session, "ReluGrad"), 0);
    CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(loss, gradients[0], gradients[1], gradients[2], h, normal),
                            apart, nullptr, 0, &error));
    /* The normalization's output is fetched, so Relu and ReluGrad are computed with what is elementwise beside them. */
    CHECK_EQ(ran(session, "_FusedBatchNormEx"), 0);
    CHECK(ran(session, "_Elementwise") >= 2);
    for (int i = 0; i < 5; i++) {
        CHECK(mr_shape_equal(fused[i].shape, apart[i].shape));
        CHECK(memcmp(fused[i].data, apart[i].data, mr_tensor_size_bytes(&fused[i])) == 0);
        mr_tensor_deinit(&fused[i]);
    }
    for (int i = 0; i < 6; i++) mr_tensor_deinit(&apart[i]);
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&factors);
    mr_tensor_deinit(&levels);
    mr_session_free(session);
    mr_graph_free(g);
}

/* What waits for a node that would be fused still comes after all that the node comes after. */
TEST(fuse_keeps_the_order_of_what_waits)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 1.0f));
    mr_output update = mr_assign_add(g, w.ref, mr_constant_float(g, 10.0f));
    mr_output x = mr_identity(g, mr_placeholder(g, MR_FLOAT, .name = "x", .shape = MR_SHAPE(2, 3, 3, 4)));
    mr_node_add_control(x.node, update.node);
    mr_output four = mr_constant_floats(g, MR_SHAPE(4), (float[]){1, 2, 3, 4}, nullptr);
    mr_output none = mr_fill(g, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 0));
    mr_output relu = mr_relu(g, mr_fused_batch_norm_v3(g, x, four, four, none, none).y);
    mr_output later = mr_identity(g, mr_constant_float(g, 0.5f));
    mr_node_add_control(later.node, relu.node);
    mr_output sum = mr_add_v2(g, later, w.value), total = mr_sum(g, relu, mr_constant_ints(g, MR_INTS(0, 1, 2, 3)));
    mr_session *session = nullptr;
    mr_tensor image = {0}, results[2] = {0};
    CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1), &session, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    CHECK_OK(mr_tensor_init(&image, MR_FLOAT, MR_SHAPE(2, 3, 3, 4), &error));
    for (int i = 0; i < 72; i++) mr_tensor_floats(&image)[i] = (float)(i % 7);
    for (int step = 1; step < 4; step++) {
        mr_feeds feeds = MR_FEEDS({mr_graph_find_output(g, "x:0"), image});
        CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(total, sum), results, nullptr, 0, &error));
        CHECK(mr_tensor_floats(&results[1])[0] == 1.5f + 10 * (float)step);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&results[i]);
    }
    mr_tensor_deinit(&image);
    mr_session_free(session);
    mr_graph_free(g);
}

/* A loss whose gradient is multiplied by a column that is known, fed, computed from the loss, or not alone in reading
 * the gradient. */
typedef enum column_case {
    COLUMN_KNOWN,
    COLUMN_FED,
    COLUMN_OF_LOSS,
    COLUMN_SHARED,
    COLUMN_WIDE,
    COLUMN_CASES
} column_case;

static mr_output scaled_gradient(mr_graph *g, column_case which, mr_output logits, mr_output labels, mr_output weights,
                                 mr_output *loss)
{
    mr_sparse_softmax_cross_entropy_with_logits_outputs made =
        mr_sparse_softmax_cross_entropy_with_logits(g, logits, labels);
    *loss = made.loss;
    mr_output column = mr_expand_dims(g, weights, mr_constant_int32(g, -1));
    if (which == COLUMN_KNOWN)
        column =
            mr_cast(g, mr_constant_floats(g, MR_SHAPE(3, 1), (float[]){0.5f, -2, 3}, nullptr), mr_output_dtype(logits));
    if (which == COLUMN_OF_LOSS) column = mr_mul(g, column, mr_expand_dims(g, made.loss, mr_constant_int32(g, 1)));
    if (which == COLUMN_WIDE) column = mr_mul(g, column, logits);
    mr_output scaled = mr_mul(g, column, made.backprop);
    return which == COLUMN_SHARED ? mr_add_v2(g, mr_neg(g, made.backprop), scaled) : scaled;
}

TEST(fuse_loss_and_scale)
{
    constexpr int64_t CLASSES = 1037;
    for (int round = 0; round < 2 * COLUMN_CASES; round++) {
        const int which = round % COLUMN_CASES;
        const mr_dtype dtype = round < COLUMN_CASES ? MR_FLOAT : MR_DOUBLE;
        mr_error error = {0};
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3, CLASSES)),
                  labels = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(3)),
                  weights = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3)), loss;
        mr_output gradient =
            scaled_gradient(g, (column_case)which, mr_cast(g, x, dtype), labels, mr_cast(g, weights, dtype), &loss);
        mr_tensor values[3] = {0}, results[2][2] = {0};
        CHECK_OK(mr_tensor_init(&values[0], MR_FLOAT, MR_SHAPE(3, CLASSES), &error));
        CHECK_OK(mr_tensor_init(&values[1], MR_INT32, MR_SHAPE(3), &error));
        CHECK_OK(mr_tensor_init(&values[2], MR_FLOAT, MR_SHAPE(3), &error));
        for (int i = 0; i < 3 * CLASSES; i++) mr_tensor_floats(&values[0])[i] = 3 * sinf((float)(i * i % 977));
        for (int i = 0; i < 3; i++) {
            mr_tensor_int32s(&values[1])[i] = i * 518;
            mr_tensor_floats(&values[2])[i] = 1.5f - (float)i;
        }
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = nullptr;
            CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 2, .no_optimization = plain == 1),
                                    &session, &error));
            mr_session_trace(session, true);
            mr_feeds feeds = MR_FEEDS({x, values[0]}, {labels, values[1]}, {weights, values[2]});
            CHECK_OK(mr_session_run(session, feeds, MR_OUTPUTS(loss, gradient), results[plain], nullptr, 0, &error));
            const bool fuses = !plain && (which == COLUMN_KNOWN || which == COLUMN_FED);
            CHECK_EQ(ran(session, "_ScaledSparseSoftmaxCrossEntropyWithLogits"), fuses);
            mr_session_free(session);
        }
        for (int i = 0; i < 2; i++) {
            CHECK(mr_shape_equal(results[0][i].shape, results[1][i].shape));
            CHECK(memcmp(results[0][i].data, results[1][i].data, mr_tensor_size_bytes(&results[0][i])) == 0);
            for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][i]);
        }
        for (int i = 0; i < 3; i++) mr_tensor_deinit(&values[i]);
        mr_graph_free(g);
    }
}

/* The gradient of LeakyRelu from its output is that from its input, which other readers keep. A negative alpha turns
 * the sign. */
TEST(fuse_leaky_relu_keeps_its_gradient)
{
    static const float alphas[] = {0.2f, 0, 1, 3, INFINITY, -0.5f, NAN};
    static const float numbers[] = {0, -0.0f, 1, -1, 1e-30f, -1e-30f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN, 1e-45f};
    static const mr_dtype dtypes[] = {MR_FLOAT, MR_DOUBLE, MR_HALF, MR_BFLOAT16};
    constexpr int COUNT = sizeof numbers / sizeof *numbers;
    mr_error error = {0};
    for (int i = 0; i < 7 * 4 * 2; i++) {
        const float alpha = alphas[i % 7];
        const mr_dtype dtype = dtypes[i / 7 % 4];
        mr_graph *g = mr_graph_new();
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(COUNT));
        mr_output features = mr_cast(g, x, dtype), above = mr_leaky_relu(g, features, .alpha = alpha);
        mr_output other = mr_leaky_relu(g, features, .alpha = 0.3f); /* reads it, too */
        mr_output loss = i < 28 ? above : mr_add(g, above, other);
        mr_output gradient;
        mr_gradients(g, MR_OUTPUTS(loss), MR_OUTPUTS(x), nullptr, &gradient);
        mr_tensor fed = {0}, results[2][2] = {0};
        CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SHAPE(COUNT), numbers, &error));
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = nullptr;
            CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1, .no_optimization = plain == 1),
                                    &session, &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, fed}), MR_OUTPUTS(loss, gradient), results[plain], nullptr, 0,
                                    &error));
            mr_session_free(session);
        }
        for (int k = 0; k < 2; k++) {
            CHECK(memcmp(results[0][k].data, results[1][k].data, mr_tensor_size_bytes(&results[0][k])) == 0);
            for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][k]);
        }
        mr_tensor_deinit(&fed);
        mr_graph_free(g);
    }
}

/* A normalization whose scale and offset are variables, and whose gradient comes after updates, also by another name:
 * Relu's gradient has the sign of the forward pass. Each version of the operators; the third reserve space is fetched
 * once, which leaves it as it is. */
TEST(fuse_batch_norm_after_updates)
{
    enum { UPDATES_NOTHING, UPDATES_AVERAGE, UPDATES_OFFSET, UPDATES_OFFSET_BY_NAME, UPDATES_SCALE, UPDATES_COUNT };
    constexpr int VERSIONS = 4;
    mr_error error = {0};
    for (int i = 0; i < UPDATES_COUNT * VERSIONS; i++) {
        const int which = i / VERSIONS, version = i % VERSIONS; /* 0: V3, its reserve space is fetched */
        mr_graph *g = mr_graph_new();
        mr_output average = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(4), .name = "average");
        mr_output offset = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(4), .name = "offset");
        mr_output other = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(4), .shared_name = "offset", .name = "other");
        mr_output start = mr_constant_floats(g, MR_SHAPE(4), (float[]){0.5f, -1, 0, 2}, nullptr);
        mr_output scale = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(4), .name = "scale");
        mr_output starts[] = {mr_assign(g, average, start), mr_assign(g, offset, start), mr_assign(g, scale, start)};
        mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(2, 3, 3, 4)), value = mr_identity(g, offset);
        mr_output factor = mr_identity(g, scale);
        mr_output none = mr_fill(g, mr_constant_ints(g, MR_INTS(0)), mr_constant_float(g, 0));
        mr_fused_batch_norm_v3_outputs norm = {0};
        if (version == 1) {
            mr_fused_batch_norm_outputs v1 = mr_fused_batch_norm(g, x, factor, value, none, none);
            norm = (mr_fused_batch_norm_v3_outputs){
                .y = v1.y, v1.batch_mean, v1.batch_variance, v1.reserve_space_1, v1.reserve_space_2};
        } else if (version == 2) {
            mr_fused_batch_norm_v2_outputs v2 = mr_fused_batch_norm_v2(g, x, factor, value, none, none);
            norm = (mr_fused_batch_norm_v3_outputs){
                .y = v2.y, v2.batch_mean, v2.batch_variance, v2.reserve_space_1, v2.reserve_space_2};
        } else {
            norm = mr_fused_batch_norm_v3(g, x, factor, value, none, none);
        }
        mr_output relu = mr_relu(g, norm.y), ten = mr_mul(g, start, mr_constant_float(g, 10));
        mr_output updated = which == UPDATES_AVERAGE          ? average
                            : which == UPDATES_SCALE          ? scale
                            : which == UPDATES_OFFSET_BY_NAME ? other
                                                              : offset;
        mr_output update = mr_assign_add(g, updated, ten);
        mr_node_add_control(update.node, relu.node);
        mr_output one = mr_fill(g, mr_constant_ints(g, MR_INTS(2, 3, 3, 4)), mr_constant_float(g, 1));
        if (which != UPDATES_NOTHING) mr_node_add_control(one.node, update.node);
        mr_output masked = mr_relu_grad(g, one, relu);
        mr_output gradient;
        if (version == 1)
            gradient =
                mr_fused_batch_norm_grad(g, masked, x, factor, norm.reserve_space_1, norm.reserve_space_2).x_backprop;
        else if (version == 2)
            gradient = mr_fused_batch_norm_grad_v2(g, masked, x, factor, norm.reserve_space_1, norm.reserve_space_2)
                           .x_backprop;
        else
            gradient = mr_fused_batch_norm_grad_v3(g, masked, x, factor, norm.reserve_space_1, norm.reserve_space_2,
                                                   norm.reserve_space_3)
                           .x_backprop;
        mr_output last = version == 0 ? norm.reserve_space_3 : norm.reserve_space_2;
        mr_tensor image = {0}, results[2][4] = {0};
        CHECK_OK(mr_tensor_init(&image, MR_FLOAT, MR_SHAPE(2, 3, 3, 4), &error));
        for (int k = 0; k < 72; k++) mr_tensor_floats(&image)[k] = sinf((float)(k * k % 977));
        for (int plain = 0; plain < 2; plain++) {
            mr_session *session = nullptr;
            CHECK_OK(mr_session_new(g, MR_OPTIONS(mr_session_options, .threads = 1, .no_optimization = plain == 1),
                                    &session, &error));
            mr_session_trace(session, true);
            for (int k = 0; k < 3; k++)
                CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &starts[k].node, 1, &error));
            CHECK_OK(mr_session_run(session, MR_FEEDS({x, image}), MR_OUTPUTS(gradient, relu, norm.batch_mean, last),
                                    results[plain], nullptr, 0, &error));
            CHECK_EQ(ran(session, "_FusedBatchNormEx"), plain == 0);
            CHECK_EQ(ran(session, "_FusedBatchNormGradEx"), plain == 0 && version != 0);
            mr_session_free(session);
        }
        for (int k = 0; k < 4; k++) {
            CHECK(mr_shape_equal(results[0][k].shape, results[1][k].shape));
            CHECK(memcmp(results[0][k].data, results[1][k].data, mr_tensor_size_bytes(&results[0][k])) == 0);
            for (int plain = 0; plain < 2; plain++) mr_tensor_deinit(&results[plain][k]);
        }
        mr_tensor_deinit(&image);
        mr_graph_free(g);
    }
}
