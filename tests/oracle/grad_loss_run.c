/* The gradients of losses of each shape for gradients of the loss of each shape, for grad_loss_oracle.py, which has the
 * same lists. Prints a line for each pair: the loss, the shape, and the gradient of w, or "refused". */
#include <millrace/millrace.h>

#include <stdio.h>

enum { LOSSES = 19, SHAPES = 12 };

/* Of w, which is float [2, 3] */
static mr_output loss_of(mr_graph *g, mr_output w, int kind)
{
    const mr_output two = mr_constant_float(g, 2), all = mr_constant_ints(g, MR_INTS(0, 1));
    mr_output ones = mr_constant_floats(g, MR_SHAPE(3, 2), (float[]){1, 1, 1, 1, 1, 1}, "ones");
    switch (kind) {
    case 0:
        return mr_square(g, w);
    case 1:
        return mr_mul(g, w, w);
    case 2:
        return mr_exp(g, w);
    case 3:
        return mr_add_v2(g, w, two);
    case 4:
        return mr_sum(g, w, all);
    case 5:
        return mr_identity(g, w);
    case 6:
        return mr_reshape(g, w, mr_constant_ints(g, MR_INTS(-1)));
    case 7:
        return mr_relu(g, w);
    case 8:
        return mr_sparse_softmax_cross_entropy_with_logits(
                   g, w, mr_constant_int32s(g, MR_SHAPE(2), (int32_t[]){1, 2}, "labels"))
            .loss;
    case 9:
        return mr_mul(g, mr_square(g, w), two);
    case 10:
        return mr_mat_mul(g, w, ones);
    case 11:
        return mr_add_v2(g, mr_sum(g, w, all), mr_sum(g, mr_square(g, w), all));
    case 12:
        return mr_transpose(g, w, mr_constant_ints(g, MR_INTS(1, 0)));
    case 13:
        return mr_tanh(g, w);
    case 14:
        return mr_sigmoid(g, w);
    case 15:
        return mr_log(g, w);
    case 16:
        return mr_real_div(g, w, two);
    case 17:
        return mr_sub(g, w, mr_square(g, w));
    default:
        return mr_mean(g, mr_square(g, w), mr_constant_ints(g, MR_INTS(1)));
    }
}

static mr_status run(int kind, mr_shape shape, mr_tensor *value, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = NULL;
    mr_tensor given = {0};
    mr_output gradient = {0};
    const float start[] = {0.5f, 1, 1.5f, 2, 2.5f, 3};
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(2, 3), start, "start"));
    mr_output loss = loss_of(g, w.value, kind);
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    mr_status status = mr_tensor_init(&given, MR_FLOAT, shape, error);
    for (int64_t i = 0; status == MR_OK && i < mr_tensor_count(&given); i++)
        mr_tensor_floats(&given)[i] = 1 + (float)i / 2;
    if (status == MR_OK) {
        mr_gradients_and_variables list = mr_compute_gradients(g, loss, .grad_loss = mr_constant(g, &given, "given"));
        if (list.count == 1) gradient = list.items[0].gradient;
        status = mr_graph_status(g, error);
    }
    if (status == MR_OK) status = mr_session_new(g, NULL, &session, error);
    if (status == MR_OK)
        status = mr_session_run(session, MR_NO_FEEDS, MR_VALUE_(mr_outputs, NULL, 0), NULL, &init, 1, error);
    if (status == MR_OK)
        status = mr_session_run(session, MR_NO_FEEDS, MR_VALUE_(mr_outputs, &gradient, 1), value, NULL, 0, error);
    mr_session_free(session);
    mr_tensor_deinit(&given);
    mr_graph_free(g);
    return status;
}

int main(void)
{
    const mr_shape shapes[SHAPES] = {MR_SCALAR,      MR_SHAPE(1),       MR_SHAPE(3),    MR_SHAPE(2, 1),
                                     MR_SHAPE(2, 3), MR_SHAPE(1, 1),    MR_SHAPE(6),    MR_SHAPE(2),
                                     MR_SHAPE(4),    MR_SHAPE(1, 2, 3), MR_SHAPE(3, 2), MR_SHAPE(1, 3)};
    for (int kind = 0; kind < LOSSES; kind++)
        for (int i = 0; i < SHAPES; i++) {
            mr_error error = {0};
            mr_tensor value = {0};
            printf("%d %d", kind, i);
            if (run(kind, shapes[i], &value, &error) != MR_OK) printf(" refused %s", error.message);
            for (int64_t j = 0; value.dtype == MR_FLOAT && j < mr_tensor_count(&value); j++)
                printf(" %.9g", (double)mr_tensor_floats(&value)[j]);
            printf("\n");
            mr_tensor_deinit(&value);
        }
    return 0;
}
