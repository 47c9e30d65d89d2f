/* Trains under a supervisor for supervisor_oracle.py.
 *
 *     supervisor_run DIRECTORY STEPS BASENAME */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static mr_status train(mr_supervisor *supervisor, mr_session *session, mr_variable step, mr_node *update,
                       long long steps, mr_error *error)
{
    mr_tensor value = {0};
    for (long long i = 0; i < steps && !mr_supervisor_should_stop(supervisor); i++)
        MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &update, 1, error));
    MR_TRY(mr_session_read_variable(session, step.ref, &value, error));
    const int64_t last = mr_tensor_int64s(&value)[0];
    mr_tensor_deinit(&value);
    return mr_saver_save(mr_supervisor_saver(supervisor), session, mr_supervisor_save_path(supervisor), last, error);
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc != 4) return 2;
    mr_graph *g = mr_graph_new();
    mr_variable step = mr_global_step(g);
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES}, .use_resource = true);
    mr_output target = mr_constant_floats(g, MR_SHAPE(2), (float[]){3, -2}, "target");
    mr_output loss = mr_sum(g, mr_square(g, mr_sub(g, w.value, target)), mr_constant_int32(g, 0), .name = "loss");
    mr_summary_scalar(g, "error", loss);
    mr_node *update = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.01f), loss, step.ref);
    mr_supervisor *supervisor = nullptr;
    mr_session *session = nullptr;
    mr_status status = mr_supervisor_new(
        g, MR_OPTIONS(mr_supervisor_options, .logdir = argv[1], .checkpoint_basename = argv[3]), &supervisor, &error);
    if (status == MR_OK) status = mr_supervisor_open_session(supervisor, nullptr, &session, &error);
    usleep(500000); /* the services run once */
    if (status == MR_OK) status = train(supervisor, session, step, update, atoll(argv[2]), &error);
    status = mr_supervisor_close_session(supervisor, status, &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    mr_supervisor_free(supervisor);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
