/* Trains under a monitored training session for monitored_oracle.py, and prints what its logging hook logs.
 *
 *     monitored_run DIRECTORY LAST_STEP SAVE_STEPS SUMMARY_STEPS LOG_ITERATIONS COUNT_STEPS */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

static void print(void *, const char *line)
{
    printf("%s\n", line);
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc != 7) return 2;
    mr_graph *g = mr_graph_new();
    mr_variable step = mr_global_step(g);
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES}, .use_resource = true);
    mr_output target = mr_constant_floats(g, MR_SHAPE(2), (float[]){3, -2}, "target");
    mr_output loss = mr_sum(g, mr_square(g, mr_sub(g, w.value, target)), mr_constant_int32(g, 0), .name = "loss");
    mr_summary_scalar(g, "error", loss);
    mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.01f), loss, step.ref);
    mr_monitored_session *session = nullptr;
    mr_status status = mr_monitored_training_session_new(
        g,
        MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = argv[1],
                   .save_checkpoint_steps = atoll(argv[3]), .save_summaries_steps = atoll(argv[4]),
                   .log_step_count_steps = atoll(argv[6]),
                   .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = atoll(argv[2])),
                                     mr_logging_tensor_hook(MR_OUTPUTS(loss), .every_n_iter = atoll(argv[5]),
                                                            .names = MR_NAMES("loss"), .at_end = true, .log = print))),
        &session, &error);
    while (status == MR_OK && !mr_monitored_session_should_stop(session))
        status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error);
    status = mr_monitored_session_close(session, status, &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
