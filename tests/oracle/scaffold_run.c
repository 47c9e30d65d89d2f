/* Trains an imported graph for scaffold_oracle.py, with what its collections have.
 *
 *     scaffold_run FILE.meta DIRECTORY LAST_STEP monitored|supervisor
 *
 * Prints the numbers of nodes before and after the session was created, and the names of savers' nodes. */
#include <millrace/millrace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_status monitor(mr_graph *g, mr_node *train, char **argv, mr_error *error)
{
    mr_monitored_session *session = NULL;
    mr_status status = mr_monitored_training_session_new(
        g,
        MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = argv[2], .save_checkpoint_steps = 1,
                   .save_summaries_steps = 1, .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = atoll(argv[3])))),
        &session, error);
    while (status == MR_OK && !mr_monitored_session_should_stop(session))
        status = mr_monitored_session_run(session, MR_NO_FEEDS, MR_VALUE_(mr_outputs, NULL, 0), NULL, &train, 1, error);
    return mr_monitored_session_close(session, status, error);
}

static mr_status supervise(mr_graph *g, mr_node *train, char **argv, mr_error *error)
{
    mr_supervisor *supervisor = NULL;
    mr_session *session = NULL;
    mr_status status = mr_supervisor_new(g, MR_OPTIONS(mr_supervisor_options, .logdir = argv[2], .save_model_secs = -1),
                                         &supervisor, error);
    if (status == MR_OK) status = mr_supervisor_open_session(supervisor, NULL, &session, error);
    for (long long i = atoll(argv[3]); status == MR_OK && i > 0; i--) {
        status = mr_session_run(session, MR_NO_FEEDS, MR_VALUE_(mr_outputs, NULL, 0), NULL, &train, 1, error);
        if (status == MR_OK) status = mr_supervisor_save(supervisor, error);
    }
    status = mr_supervisor_close_session(supervisor, status, error);
    mr_supervisor_free(supervisor);
    return status;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc != 5) return 2;
    static char bytes[1 << 20];
    FILE *file = fopen(argv[1], "rb");
    if (file == NULL) return 1;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    mr_graph *g = mr_graph_new();
    mr_status status = mr_graph_import_meta(g, bytes, size, &error);
    const int32_t before = mr_graph_node_count(g);
    mr_node *train = mr_graph_find(g, "train");
    if (status == MR_OK) status = *argv[4] == 'm' ? monitor(g, train, argv, &error) : supervise(g, train, argv, &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    printf("%d %d\n", (int)before, (int)mr_graph_node_count(g));
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
