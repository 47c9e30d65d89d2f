/* line-fit: fits a line to noisy points. The smallest complete program.
 *
 *     line-fit
 *
 * A graph with two variables, a loss and an optimizer; a session that runs it; points that are fed at each step. */
#include <millrace/millrace.h>
#include <stdio.h>

/* The line, and the amplitude of the noise around it. */
static const float slope = 3.0f, offset = -2.0f, noise = 0.2f;

/* Generates count points: x in [-1, 1), y = slope x + offset + noise, from a fixed sequence of numbers. */
static void make_points(uint32_t *state, int64_t count, float *x, float *y)
{
    for (int64_t i = 0; i < 2 * count; i++) {
        *state = *state * 1664525 + 1013904223;
        float number = (float)(*state >> 8) / (1 << 23) - 1;
        if (i % 2 == 0)
            x[i / 2] = number;
        else
            y[i / 2] = slope * x[i / 2] + offset + noise * number;
    }
}

static mr_status fit(mr_graph *g, mr_error *error)
{
    /* The graph. */
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "x");
    mr_output y = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1), .name = "y");
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 0.0f));
    mr_variable b = mr_variable_new(g, "b", mr_constant_float(g, 0.0f));
    mr_output line = mr_add_v2(g, mr_mul(g, w.value, x), b.value);
    mr_output loss = mr_loss_mean_squared_error(g, y, line);
    mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.2f), loss, (mr_output){0});
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");

    /* The session: initial values, then 300 steps of 20 points each. */
    mr_session *session = nullptr;
    mr_tensor xs = {0}, ys = {0}, results[3] = {0};
    MR_TRY(mr_session_new(g, nullptr, &session, error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    MR_TRY(mr_tensor_init(&xs, MR_FLOAT, MR_SHAPE(20), error));
    MR_TRY(mr_tensor_init(&ys, MR_FLOAT, MR_SHAPE(20), error));
    uint32_t state = 1;
    for (int step = 1; step <= 300; step++) {
        make_points(&state, 20, mr_tensor_floats(&xs), mr_tensor_floats(&ys));
        mr_outputs fetches = MR_OUTPUTS(loss, w.value, b.value);
        MR_TRY(mr_session_run(session, MR_FEEDS({x, xs}, {y, ys}), fetches, results, &train, 1, error));
        if (step == 1 || step % 100 == 0)
            printf("step %3d  loss %.4f  y = %.2f x %+.2f\n", step, (double)mr_tensor_floats(&results[0])[0],
                   (double)mr_tensor_floats(&results[1])[0], (double)mr_tensor_floats(&results[2])[0]);
        for (int i = 0; i < 3; i++) mr_tensor_deinit(&results[i]);
    }
    mr_tensor_deinit(&xs);
    mr_tensor_deinit(&ys);
    mr_session_free(session);
    return MR_OK;
}

int main(void)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_status status = fit(g, &error);
    if (status != MR_OK) fprintf(stderr, "line-fit: %s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
