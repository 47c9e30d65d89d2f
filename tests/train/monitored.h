/* A small graph for tests of monitored sessions and hooks. */
#ifndef MR_TESTS_TRAIN_MONITORED_H
#define MR_TESTS_TRAIN_MONITORED_H

#include "tests/test.h"

#include <dirent.h>
#include <millrace/millrace.h>

typedef struct model {
    mr_graph *graph;
    mr_node *train; /* w += 1 / (step + 1), step += 1 */
    mr_output loss;
    mr_variable w, step;
} model;

static inline model build(void)
{
    model m = {.graph = mr_graph_new()};
    mr_graph *g = m.graph;
    m.step = mr_global_step(g);
    m.w = mr_get_variable(g, "w", MR_SCALAR, (mr_initializer){.kind = MR_INIT_ONES});
    m.loss = mr_square(g, m.w.value, .name = "loss");
    mr_summary_scalar(g, "loss", m.loss);
    mr_graph_push_control_dependencies(g, &m.loss.node, 1); /* a loss of a run is that before its update */
    mr_output next = mr_variable_assign_add(
        g, m.w, mr_reciprocal(g, mr_cast(g, mr_add_v2(g, m.step.value, mr_constant_int64(g, 1)), MR_FLOAT)));
    mr_graph_push_control_dependencies(g, &next.node, 1);
    m.train = mr_variable_assign_add(g, m.step, mr_constant_int64(g, 1)).node;
    mr_graph_pop_control_dependencies(g);
    mr_graph_pop_control_dependencies(g);
    return m;
}

static inline mr_status run(mr_monitored_session *session, const model *m, mr_error *error)
{
    return mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->train, 1, error);
}

static inline mr_status run_all(mr_monitored_session *session, const model *m, mr_error *error)
{
    mr_status status = MR_OK;
    while (status == MR_OK && !mr_monitored_session_should_stop(session)) status = run(session, m, error);
    return status;
}

static inline float value_of(mr_monitored_session *session, mr_variable variable)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(mr_monitored_session_raw(session), variable.ref, &value, &error));
    float number = mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    return number;
}

/* The number of files in the directory whose names contain `part`. */
static inline int files(const char *directory, const char *part)
{
    int count = 0;
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries != nullptr && (entry = readdir(entries)) != nullptr;)
        count += strstr(entry->d_name, part) != nullptr;
    if (entries != nullptr) closedir(entries);
    return count;
}

#endif
