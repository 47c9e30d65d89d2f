/* A graph as the map function of a Dataset.
 *
 * A pipeline works on several elements concurrently, but a session's step on one. So each concurrent worker thread gets
 * a session of its own, created on first use and kept for later elements. The nodes between inputs and outputs must be
 * stateless, so it does not matter which session computes an element. */
#include "base/arena.h"
#include "graph/ir/graph.h"
#include "pipeline/pipeline.h"

#include <millrace/train.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct map_worker {
    struct map_worker *next;
    mr_session *session;
    mr_step *step; /* owned by the session */
} map_worker;

typedef struct graph_map {
    mr_graph *graph; /* owned */
    int32_t input_count, output_count;
    mr_output inputs[MR_COMPONENTS_MAX], outputs[MR_COMPONENTS_MAX];
    pthread_mutex_t mutex; /* guards idle, and the graph while a session is created from it */
    map_worker *idle;
} graph_map;

static void map_release(void *context)
{
    graph_map *map = context;
    for (map_worker *worker = map->idle, *next; worker != nullptr; worker = next) {
        next = worker->next;
        mr_session_free(worker->session);
        free(worker);
    }
    mr_graph_free(map->graph);
    pthread_mutex_destroy(&map->mutex);
    free(map);
}

static mr_status worker_new(graph_map *map, map_worker **made, mr_error *error)
{
    map_worker *worker = calloc(1, sizeof *worker);
    if (worker == nullptr) return mr_fail_memory(error, sizeof *worker);
    mr_status status =
        mr_session_new(map->graph, MR_OPTIONS(mr_session_options, .threads = 1), &worker->session, error);
    if (status == MR_OK)
        status = mr_session_prepare(worker->session, map->inputs, map->input_count,
                                    (mr_outputs){map->outputs, map->output_count}, nullptr, 0, &worker->step, error);
    if (status != MR_OK) {
        mr_session_free(worker->session);
        free(worker);
        return status;
    }
    *made = worker;
    return MR_OK;
}

static mr_status map_run(void *context, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    graph_map *map = context;
    mr_status status = MR_OK;
    pthread_mutex_lock(&map->mutex);
    map_worker *worker = map->idle;
    if (worker != nullptr)
        map->idle = worker->next;
    else
        status = worker_new(map, &worker, error);
    pthread_mutex_unlock(&map->mutex);
    MR_TRY(status);
    status = mr_step_run(worker->step, input->tensors, output->tensors, error);
    if (status == MR_OK) output->count = map->output_count;
    pthread_mutex_lock(&map->mutex);
    worker->next = map->idle;
    map->idle = worker;
    pthread_mutex_unlock(&map->mutex);
    return status;
}

/* Follows the outputs back to the inputs. The error names a node that is not stateless, or not fed. */
static mr_status check_stateless(const graph_map *map, mr_arena *arena, mr_error *error)
{
    size_t node_count = (size_t)mr_graph_node_count(map->graph);
    bool *seen = MR_ARENA_NEW(arena, bool, node_count);
    mr_node **open = MR_ARENA_NEW(arena, mr_node *, node_count);
    if (seen == nullptr || open == nullptr) return mr_fail_memory(error, node_count * sizeof *open);
    size_t open_count = 0;
    for (int32_t i = 0; i < map->input_count; i++) seen[map->inputs[i].node->id] = true;
    for (int32_t i = 0; i < map->output_count; i++) {
        mr_node *node = map->outputs[i].node;
        if (!seen[node->id]) open[open_count++] = node;
        seen[node->id] = true;
    }
    while (open_count > 0) {
        mr_node *node = open[--open_count];
        if (node->def == nullptr || (node->def->op->flags & MR_OP_STATEFUL))
            return mr_fail(error, MR_INVALID_ARGUMENT, "map: %s (%s) is not stateless", mr_node_name(node),
                           mr_node_op(node));
        int32_t input_count = mr_node_input_count(node);
        for (int32_t i = 0; i < input_count + mr_node_control_count(node); i++) {
            mr_node *before = i < input_count ? mr_node_input(node, i).node : mr_node_control(node, i - input_count);
            if (!seen[before->id]) open[open_count++] = before;
            seen[before->id] = true;
        }
    }
    return MR_OK;
}

static mr_status check(const graph_map *map, const mr_element_spec *spec, mr_error *error)
{
    MR_TRY(mr_graph_status(map->graph, error));
    if (map->input_count != spec->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "map: the graph takes %d inputs, an element has %d components",
                       map->input_count, spec->count);
    if (map->output_count < 1 || map->output_count > MR_COMPONENTS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "map: the graph has %d outputs, but must have 1 to %d",
                       map->output_count, MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < spec->count; i++) {
        char element[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
        mr_output input = map->inputs[i];
        if (mr_output_dtype(input) == spec->dtypes[i] && mr_shape_compatible(mr_output_shape(input), spec->shapes[i]))
            continue;
        return mr_fail(error, MR_INVALID_ARGUMENT, "map: input %s is %s %s, but component %d of the elements is %s %s",
                       mr_node_name(input.node), mr_dtype_name(mr_output_dtype(input)),
                       mr_shape_text(mr_output_shape(input), wanted, sizeof wanted), i, mr_dtype_name(spec->dtypes[i]),
                       mr_shape_text(spec->shapes[i], element, sizeof element));
    }
    mr_arena arena = {0};
    mr_status status = check_stateless(map, &arena, error);
    mr_arena_deinit(&arena);
    return status;
}

/* Digest of the nodes, and of which of them are inputs and outputs; these determine the function completely. */
static mr_status digest_graph(const graph_map *map, uint64_t *digest, mr_error *error)
{
    mr_tensor graph_def = {0};
    MR_TRY(mr_graph_export(map->graph, &graph_def, error));
    *digest = mr_digest_tensor((uint64_t)map->input_count, &graph_def);
    mr_tensor_deinit(&graph_def);
    for (int32_t i = 0; i < map->input_count; i++)
        *digest = mr_digest(mr_digest_text(*digest, mr_node_name(map->inputs[i].node)), (uint64_t)map->inputs[i].index);
    for (int32_t i = 0; i < map->output_count; i++)
        *digest =
            mr_digest(mr_digest_text(*digest, mr_node_name(map->outputs[i].node)), (uint64_t)map->outputs[i].index);
    return MR_OK;
}

mr_dataset *mr_dataset_map_graph(mr_dataset *input, mr_graph *graph, mr_outputs inputs, mr_outputs outputs)
{
    graph_map *map = calloc(1, sizeof *map);
    if (input == nullptr || map == nullptr) {
        free(map);
        mr_graph_free(graph);
        return input == nullptr ? nullptr : mr_dataset_fail(input, MR_RESOURCE_EXHAUSTED, "map: out of memory");
    }
    *map = (graph_map){.graph = graph,
                       .input_count = inputs.items != nullptr ? inputs.count : 0,
                       .output_count = outputs.items != nullptr ? outputs.count : 0};
    pthread_mutex_init(&map->mutex, nullptr);
    for (int32_t i = 0; inputs.items && i < map->input_count && i < MR_COMPONENTS_MAX; i++)
        map->inputs[i] = inputs.items[i];
    for (int32_t i = 0; outputs.items && i < map->output_count && i < MR_COMPONENTS_MAX; i++)
        map->outputs[i] = outputs.items[i];
    mr_error error = {0};
    uint64_t digest = 0;
    mr_status status = mr_dataset_failed(input) ? MR_OK : check(map, mr_dataset_spec(input), &error);
    if (status == MR_OK && !mr_dataset_failed(input)) status = digest_graph(map, &digest, &error);
    if (status != MR_OK) {
        map_release(map);
        return mr_dataset_fail_with(input, &error);
    }
    mr_element_spec spec = {.count = outputs.count};
    for (int32_t i = 0; i < outputs.count && i < MR_COMPONENTS_MAX; i++) {
        spec.dtypes[i] = mr_output_dtype(map->outputs[i]);
        spec.shapes[i] = mr_output_shape(map->outputs[i]);
    }
    mr_dataset *dataset = mr_dataset_map(input, map_run, map, &spec, .own_input = true, .release = map_release);
    if (!mr_dataset_failed(dataset)) dataset->function_settings = digest;
    return dataset;
}
