/* Scaffolds: what is needed to make a session ready, given or created, and how it is used (tf.train.Scaffold). */
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

static mr_output uninitialized_globals(mr_graph *graph)
{
    const int32_t count = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    if (count == 0) return (mr_output){0};
    mr_variable *variables = calloc((size_t)count, sizeof *variables);
    if (variables == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for a list of variables");
    for (int32_t i = 0; i < count; i++) variables[i] = mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i);
    const mr_output names =
        mr_report_uninitialized_variables(graph, (mr_variables){variables, count}, "report_uninitialized_variables");
    free(variables);
    return names;
}

/* ---- Given ---- */

static mr_status check_node(const mr_graph *graph, const mr_node *node, const char *what, const char *name,
                            mr_error *error)
{
    if (node == nullptr || mr_node_graph(node) == graph) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s belongs to another graph", what, name);
}

/* Names, or the integers of mr_assert_variables_initialized. */
static mr_status check_ready_op(const mr_graph *graph, mr_output op, const char *what, const char *name,
                                mr_error *error)
{
    if (op.node == nullptr) return MR_OK;
    MR_TRY(check_node(graph, op.node, what, name, error));
    if (op.index < 0 || op.index >= mr_node_output_count(op.node))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is output %d of %s, which has %d", what, name, (int)op.index,
                       mr_node_name(op.node), (int)mr_node_output_count(op.node));
    const mr_dtype dtype = mr_output_dtype(op);
    if (dtype != MR_STRING && dtype != MR_INT32)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is %s, not a vector of strings", what, name,
                       mr_dtype_name(dtype));
    const int32_t rank = mr_output_shape(op).rank;
    if (dtype == MR_STRING && rank >= 0 && rank != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has rank %d, not 1", what, name, (int)rank);
    return MR_OK;
}

static mr_status check_feeds(const char *what, const char *name, mr_feeds feeds, const mr_node *node, const char *of,
                             mr_error *error)
{
    MR_TRY(mr_session_check_list(name, feeds.items, feeds.count, error));
    if (feeds.count == 0 || node != nullptr) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s has no effect without %s", what, name, of);
}

static mr_status check_given(const mr_graph *graph, const mr_scaffold *given, const char *what, mr_error *error)
{
    MR_TRY(check_node(graph, given->init_op, what, "init_op", error));
    MR_TRY(check_node(graph, given->local_init_op, what, "local_init_op", error));
    MR_TRY(check_ready_op(graph, given->ready_op, what, "ready_op", error));
    MR_TRY(check_ready_op(graph, given->ready_for_local_init_op, what, "ready_for_local_init_op", error));
    MR_TRY(check_node(graph, given->summary.node, what, "summary", error));
    if (given->summary.node != nullptr && mr_output_dtype(given->summary) != MR_STRING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: summary is %s, not a serialized summary", what,
                       mr_dtype_name(mr_output_dtype(given->summary)));
    if (given->saver != nullptr && mr_saver_graph(given->saver) != graph)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the saver belongs to another graph", what);
    MR_TRY(check_feeds(what, "init_feeds", given->init_feeds, given->init_op, "init_op", error));
    MR_TRY(
        check_feeds(what, "local_init_feeds", given->local_init_feeds, given->local_init_op, "local_init_op", error));
    if (given->init_context != nullptr && given->init_fn == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: init_context has no effect without init_fn", what);
    return MR_OK;
}

static mr_status copy_feeds(mr_feeds feeds, mr_feed **copies, int32_t *count, mr_error *error)
{
    if (feeds.count == 0) return MR_OK;
    *copies = calloc((size_t)feeds.count, sizeof **copies);
    if (*copies == nullptr) return mr_fail_memory(error, (size_t)feeds.count * sizeof **copies);
    for (; *count < feeds.count; ++*count)
        (*copies)[*count] = (mr_feed){feeds.items[*count].output, mr_tensor_ref(&feeds.items[*count].value)};
    return MR_OK;
}

mr_status mr_scaffold_copy(mr_ready_scaffold *s, const mr_graph *graph, const mr_scaffold *given, const char *what,
                           mr_error *error)
{
    MR_TRY(check_given(graph, given, what, error));
    *s = (mr_ready_scaffold){.init_op = given->init_op,
                             .local_init_op = given->local_init_op,
                             .init_fn = given->init_fn,
                             .init_context = given->init_context,
                             .ready_op = given->ready_op,
                             .ready_for_local_init_op = given->ready_for_local_init_op,
                             .summary = given->summary,
                             .saver = given->saver};
    MR_TRY(copy_feeds(given->init_feeds, &s->init_feeds, &s->init_feed_count, error));
    return copy_feeds(given->local_init_feeds, &s->local_init_feeds, &s->local_init_feed_count, error);
}

static mr_status check_omissions(const mr_scaffold *s, mr_scaffold_omissions omit, mr_error *error)
{
    const char *both = omit.init_op && s->init_op != nullptr               ? "init_op"
                       : omit.local_init_op && s->local_init_op != nullptr ? "local_init_op"
                       : omit.ready_op && s->ready_op.node != nullptr      ? "ready_op"
                       : omit.summary && s->summary.node != nullptr        ? "summary"
                       : omit.saver && s->saver != nullptr                 ? "saver"
                                                                           : nullptr;
    if (both == nullptr) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: %s excludes no_%s", both, both);
}

mr_status mr_scaffold_finalize(mr_ready_scaffold *s, mr_graph *graph, const mr_scaffold *given,
                               mr_scaffold_omissions omit, mr_error *error)
{
    mr_scaffold own;
    mr_saver *found_saver = nullptr;
    MR_TRY(MR_OPTIONS_READ(mr_scaffold, &own, given, error));
    MR_TRY(mr_scaffold_find_parts(graph, &own, omit, &found_saver, error));
    const mr_status status = mr_scaffold_copy(s, graph, &own, "scaffold", error);
    if (found_saver != nullptr) {
        s->saver = found_saver;
        s->owns_saver = true;
    }
    MR_TRY(status);
    MR_TRY(check_omissions(&own, omit, error));
    if (s->init_op == nullptr && !omit.init_op)
        s->init_op = mr_initialize_variables(graph, MR_GLOBAL_VARIABLES, "init");
    if (s->ready_op.node == nullptr && !omit.ready_op)
        s->ready_op = mr_report_uninitialized_variables(graph, (mr_variables){0}, "report_uninitialized_variables");
    if (s->ready_for_local_init_op.node == nullptr && !omit.ready_op && !omit.local_init_op)
        s->ready_for_local_init_op = uninitialized_globals(graph);
    if (s->local_init_op == nullptr && !omit.local_init_op) s->local_init_op = local_initializers(graph);
    if (s->summary.node == nullptr && !omit.summary) s->summary = mr_summary_merge_all(graph);
    if (s->saver == nullptr && !omit.saver && mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES) > 0) {
        s->saver = mr_saver_new(graph);
        s->owns_saver = true;
    }
    MR_TRY(mr_graph_status(graph, error));
    return mr_scaffold_store_parts(graph, s, &own, error);
}

static void free_feeds(mr_feed *feeds, int32_t count)
{
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&feeds[i].value);
    free(feeds);
}

void mr_scaffold_deinit(mr_ready_scaffold *s)
{
    free_feeds(s->init_feeds, s->init_feed_count);
    free_feeds(s->local_init_feeds, s->local_init_feed_count);
    if (s->owns_saver) mr_saver_free(s->saver);
    *s = (mr_ready_scaffold){0};
}

/* ---- Ready ---- */

static mr_status run_node(mr_session *session, const mr_feed *feeds, int32_t feed_count, mr_node *node, mr_error *error)
{
    if (node == nullptr) return MR_OK;
    return mr_session_run(session, (mr_feeds){feeds, feed_count}, (mr_outputs){0}, nullptr, &node, 1, error);
}

/* Reports the names, at most a few of them. */
static void report_names(const mr_tensor *names, const char *when, mr_error *reason)
{
    char text[400] = "";
    size_t used = 0;
    const int64_t count = mr_tensor_count(names);
    for (int64_t i = 0; i < count && i < 5 && used < sizeof text; i++) {
        const mr_string name = mr_tensor_strings(names)[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i > 0 ? ", " : "",
                                 (int)(name.size_bytes < 60 ? name.size_bytes : 60), name.data);
    }
    (void)mr_fail(reason, MR_FAILED_PRECONDITION, "%" PRId64 " variables are not initialized%s: %s%s", count, when,
                  text, count > 5 ? ", …" : "");
}

/* Ready are: no names; integers, as those of mr_assert_variables_initialized, which fails instead. */
static mr_status check_ready(mr_output op, mr_session *session, const char *when, bool *is_ready, mr_error *reason,
                             mr_error *error)
{
    mr_tensor names = {0};
    mr_error failure = {0};
    *is_ready = true;
    if (op.node == nullptr) return MR_OK;
    mr_status status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){&op, 1}, &names, nullptr, 0, &failure);
    if (status == MR_FAILED_PRECONDITION && strstr(failure.message, "uninitialized") != nullptr) {
        *is_ready = false;
        (void)mr_fail(reason, status, "%s", failure.message);
        return MR_OK;
    }
    if (status != MR_OK) return mr_fail(error, status, "%s", failure.message);
    if (names.dtype == MR_STRING && mr_tensor_count(&names) > 0) {
        *is_ready = false;
        report_names(&names, when, reason);
    }
    mr_tensor_deinit(&names);
    return MR_OK;
}

/* The state of iterators and random operators is restored after the local initializers, which may start iterators. */
mr_status mr_scaffold_complete(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint,
                               const char *before, bool *is_ready, mr_error *reason, mr_error *error)
{
    char when[100];
    *is_ready = true;
    snprintf(when, sizeof when, "%s%s", before != nullptr ? " after " : "", before != nullptr ? before : "");
    if (s->local_init_op != nullptr)
        MR_TRY(check_ready(s->ready_for_local_init_op, session, when, is_ready, reason, error));
    if (!*is_ready) return MR_OK;
    MR_TRY(run_node(session, s->local_init_feeds, s->local_init_feed_count, s->local_init_op, error));
    if (checkpoint != nullptr) MR_TRY(mr_saver_restore_state(s->saver, session, checkpoint, true, error));
    snprintf(when, sizeof when, " after %s%slocal_init_op", before != nullptr ? before : "",
             before != nullptr ? " and " : "");
    return check_ready(s->ready_op, session, when, is_ready, reason, error);
}

static mr_status initialize(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint, mr_error *error)
{
    if (checkpoint != nullptr && s->saver == nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION, "%s: the graph has no variables to restore", checkpoint);
    if (checkpoint != nullptr) return mr_saver_restore_variables(s->saver, session, checkpoint, error);
    if (s->init_op == nullptr && s->init_fn == nullptr && s->local_init_op == nullptr)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "there is no checkpoint, and no init_op, init_fn or local_init_op to initialize the session");
    MR_TRY(run_node(session, s->init_feeds, s->init_feed_count, s->init_op, error));
    if (s->init_fn == nullptr) return MR_OK;
    mr_error reason = {0};
    const mr_status status = s->init_fn(s->init_context, session, &reason);
    if (status == MR_OK) return MR_OK;
    return mr_fail(error, status, "%s", reason.message[0] != '\0' ? reason.message : "init_fn failed");
}

mr_status mr_scaffold_prepare(const mr_ready_scaffold *s, mr_session *session, const char *checkpoint, mr_error *error)
{
    bool is_ready;
    mr_error reason = {0};
    MR_TRY(initialize(s, session, checkpoint, error));
    MR_TRY(mr_scaffold_complete(s, session, checkpoint, checkpoint != nullptr ? "the restore" : "init_op", &is_ready,
                                &reason, error));
    return is_ready ? MR_OK : mr_fail(error, reason.status, "%s", reason.message);
}
