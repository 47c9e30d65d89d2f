/* The collections of a graph in which scaffolds find their parts and store those that they create: a second scaffold of
 * the graph, or of one that is imported from its MetaGraph, uses the same nodes (Scaffold.get_or_default). */
#include "base/status.h"
#include "graph/train/saver_collection.h"
#include "graph/train/scaffold.h"

#include <assert.h>

#define INIT_OP "init_op"
#define LOCAL_INIT_OP "local_init_op"
#define READY_OP "ready_op"
#define READY_FOR_LOCAL_INIT_OP "ready_for_local_init_op"
#define SUMMARY_OP "summary_op"

static mr_status check_count(const char *collection, int32_t count, bool takes_first, const char *part, mr_error *error)
{
    if (count <= 1 || takes_first) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "scaffold: the collection %s has %d items; pass one of them as %s",
                   collection, (int)count, part);
}

static mr_status find_output(const mr_graph *graph, const char *collection, bool takes_first, const char *part,
                             mr_output *output, mr_error *error)
{
    MR_TRY(check_count(collection, mr_graph_collection_count(graph, collection), takes_first, part, error));
    *output = mr_graph_collection_item(graph, collection, 0);
    return MR_OK;
}

static mr_status find_node(const mr_graph *graph, const char *collection, bool takes_first, mr_node **node,
                           mr_error *error)
{
    mr_output output;
    MR_TRY(find_output(graph, collection, takes_first, collection, &output, error));
    *node = output.node;
    return MR_OK;
}

mr_status mr_scaffold_find_parts(mr_graph *graph, mr_scaffold *scaffold, mr_scaffold_omissions omit,
                                 mr_saver **owned_saver, mr_error *error)
{
    mr_scaffold *s = scaffold;
    const bool first = omit.takes_first;
    assert(*owned_saver == nullptr);
    if (s->init_op == nullptr && !omit.init_op) MR_TRY(find_node(graph, INIT_OP, first, &s->init_op, error));
    if (s->local_init_op == nullptr && !omit.local_init_op)
        MR_TRY(find_node(graph, LOCAL_INIT_OP, first, &s->local_init_op, error));
    if (s->ready_op.node == nullptr && !omit.ready_op)
        MR_TRY(find_output(graph, READY_OP, first, "ready_op", &s->ready_op, error));
    if (s->ready_for_local_init_op.node == nullptr && !omit.ready_op && !omit.local_init_op)
        MR_TRY(find_output(graph, READY_FOR_LOCAL_INIT_OP, first, "ready_for_local_init_op",
                           &s->ready_for_local_init_op, error));
    if (s->summary.node == nullptr && !omit.summary)
        MR_TRY(find_output(graph, SUMMARY_OP, first, "summary", &s->summary, error));
    if (s->saver != nullptr || omit.saver) return MR_OK;
    MR_TRY(check_count(MR_SAVERS, mr_saver_collection_count(graph), first, "saver", error));
    MR_TRY(mr_saver_collection_find(graph, owned_saver, error));
    s->saver = *owned_saver;
    return MR_OK;
}

/* An imported collection that has no nodes is kept as it is. */
static void store(mr_graph *graph, const char *collection, mr_output output)
{
    const mr_collection *found = mr_graph_find_collection(graph, collection);
    if (output.node == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return;
    if (found == nullptr || (found->kind == MR_COLLECTION_OUTPUTS && found->count == 0))
        mr_graph_add_to_collection(graph, collection, output);
}

mr_status mr_scaffold_store_parts(mr_graph *graph, const mr_ready_scaffold *scaffold, const mr_scaffold *found,
                                  mr_error *error)
{
    const mr_ready_scaffold *s = scaffold;
    if (found->init_op == nullptr) store(graph, INIT_OP, (mr_output){.node = s->init_op});
    if (found->local_init_op == nullptr) store(graph, LOCAL_INIT_OP, (mr_output){.node = s->local_init_op});
    if (found->ready_op.node == nullptr) store(graph, READY_OP, s->ready_op);
    if (found->ready_for_local_init_op.node == nullptr)
        store(graph, READY_FOR_LOCAL_INIT_OP, s->ready_for_local_init_op);
    if (found->summary.node == nullptr) store(graph, SUMMARY_OP, s->summary);
    MR_TRY(mr_graph_status(graph, error));
    return found->saver == nullptr && s->owns_saver ? mr_saver_collection_store(graph, error) : MR_OK;
}
