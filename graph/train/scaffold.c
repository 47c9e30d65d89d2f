/* How a monitored session is made ready: initialized, or restored, and checked (tf.train.Scaffold, SessionManager). */
#include "graph/train/scaffold.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_INITIALIZERS "table_initializer"

/* The initializers of local variables and of tables, as one node. */
static mr_node *local_initializers(mr_graph *graph)
{
    const int32_t count = mr_graph_collection_count(graph, TABLE_INITIALIZERS);
    mr_node **nodes = calloc((size_t)count + 1, sizeof(mr_node *));
    if (nodes == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for initializers").node;
    nodes[0] = mr_initialize_variables(graph, MR_LOCAL_VARIABLES, "init_local");
    for (int32_t i = 0; i < count; i++) nodes[i + 1] = mr_graph_collection_item(graph, TABLE_INITIALIZERS, i).node;
    mr_node *all = count == 0 ? nodes[0] : mr_group(graph, nodes, count + 1, "group_deps");
    free(nodes);
    return all;
}

static mr_status check_node(const mr_graph *graph, const mr_node *node, const char *name, mr_error *error)
{
    if (node == nullptr || mr_node_graph(node) == graph) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: %s belongs to another graph", name);
}

static mr_status check_given(const mr_graph *graph, const mr_scaffold *given, mr_error *error)
{
    MR_TRY(check_node(graph, given->init_op, "init_op", error));
    MR_TRY(check_node(graph, given->local_init_op, "local_init_op", error));
    MR_TRY(check_node(graph, given->ready_op.node, "ready_op", error));
    MR_TRY(check_node(graph, given->summary.node, "summary", error));
    if (given->summary.node != nullptr && mr_output_dtype(given->summary) != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: summary is %s, not a serialized summary",
                       mr_dtype_name(mr_output_dtype(given->summary)));
    if (given->saver != nullptr && mr_saver_graph(given->saver) != graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: the saver belongs to another graph");
    MR_TRY(mr_session_check_list("scaffold: init_feeds", given->init_feeds.items, given->init_feeds.count, error));
    if (given->init_feeds.count > 0 && given->init_op == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: init_feeds has no effect without init_op");
    if (given->init_context != nullptr && given->init_fn == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: init_context has no effect without init_fn");
    return MR_OK;
}

mr_status mr_scaffold_finalize(mr_ready_scaffold *s, mr_graph *graph, const mr_scaffold *given, mr_error *error)
{
    mr_scaffold own;
    MR_TRY(MR_OPTIONS_READ(mr_scaffold, &own, given, error));
    MR_TRY(check_given(graph, &own, error));
    *s = (mr_ready_scaffold){.init_op = own.init_op,
                             .local_init_op = own.local_init_op,
                             .init_fn = own.init_fn,
                             .init_context = own.init_context,
                             .ready_op = own.ready_op,
                             .summary = own.summary,
                             .saver = own.saver};
    if (own.init_feeds.count > 0) {
        s->init_feeds = calloc((size_t)own.init_feeds.count, sizeof *s->init_feeds);
        if (s->init_feeds == nullptr)
            return mr_fail_memory(error, (size_t)own.init_feeds.count * sizeof *s->init_feeds);
        for (int32_t i = 0; i < own.init_feeds.count; i++)
            s->init_feeds[s->init_feed_count++] =
                (mr_feed){own.init_feeds.items[i].output, mr_tensor_ref(&own.init_feeds.items[i].value)};
    }
    if (s->init_op == nullptr) s->init_op = mr_initialize_variables(graph, MR_GLOBAL_VARIABLES, "init");
    if (s->ready_op.node == nullptr)
        s->ready_op = mr_report_uninitialized_variables(graph, (mr_variables){0}, "report_uninitialized_variables");
    if (s->local_init_op == nullptr) s->local_init_op = local_initializers(graph);
    if (s->summary.node == nullptr) s->summary = mr_summary_merge_all(graph);
    if (s->saver == nullptr && mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES) > 0) {
        s->saver = mr_saver_new(graph);
        s->owns_saver = true;
    }
    return mr_graph_status(graph, error);
}

void mr_scaffold_deinit(mr_ready_scaffold *s)
{
    for (int32_t i = 0; i < s->init_feed_count; i++) mr_tensor_deinit(&s->init_feeds[i].value);
    free(s->init_feeds);
    if (s->owns_saver) mr_saver_free(s->saver);
    *s = (mr_ready_scaffold){0};
}

static mr_status run_node(mr_session *session, mr_feeds feeds, mr_node *node, mr_error *error)
{
    return mr_session_run(session, feeds, (mr_outputs){0}, nullptr, &node, 1, error);
}

/* The names that ready_op returns, at most a few of them. */
static mr_status check_ready(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint, mr_error *error)
{
    mr_tensor names = {0};
    char text[400] = "";
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){&s->ready_op, 1}, &names, nullptr, 0, error));
    const int64_t count = mr_tensor_count(&names);
    mr_status status = MR_OK;
    if (names.dtype != MR_STRING) {
        status = mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: ready_op is %s, not a vector of strings",
                         mr_dtype_name(names.dtype));
    } else if (count > 0) {
        size_t used = 0;
        for (int64_t i = 0; i < count && i < 5 && used < sizeof text; i++) {
            const mr_string name = mr_tensor_strings(&names)[i];
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? ", " : "",
                                     (int)(name.size_bytes < 60 ? name.size_bytes : 60), name.data);
        }
        status = mr_fail(error, MR_FAILED_PRECONDITION,
                         "%" PRId64 " variables are not initialized after %s and local_init_op: %s%s", count,
                         checkpoint != nullptr ? "the restore" : "init_op", text, count > 5 ? ", …" : "");
    }
    mr_tensor_deinit(&names);
    return status;
}

/* The state of iterators and random operators is restored after the local initializers, which may start iterators. */
static mr_status restore(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint, mr_error *error)
{
    if (s->saver == nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the graph has no variables to restore", checkpoint);
    MR_TRY(mr_saver_restore_variables(s->saver, session, checkpoint, error));
    MR_TRY(run_node(session, MR_NO_FEEDS, s->local_init_op, error));
    return mr_saver_restore_state(s->saver, session, checkpoint, true, error);
}

mr_status mr_scaffold_prepare(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint, mr_error *error)
{
    if (checkpoint != nullptr) {
        MR_TRY(restore(s, session, checkpoint, error));
    } else {
        MR_TRY(run_node(session, (mr_feeds){s->init_feeds, s->init_feed_count}, s->init_op, error));
        if (s->init_fn != nullptr) MR_TRY(s->init_fn(s->init_context, session, error));
        MR_TRY(run_node(session, MR_NO_FEEDS, s->local_init_op, error));
    }
    return check_ready(s, session, checkpoint, error);
}
