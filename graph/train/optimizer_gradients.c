/* The gradients of a loss with respect to variables, as Optimizer.compute_gradients. */
#include "base/options.h"
#include "graph/train/gradients.h"
#include "graph/train/optimizer_wrapper.h"

static bool fail(mr_graph *graph, const char *what)
{
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "compute_gradients: %s", what);
    return false;
}

/* Whether the gradients of some operators take a gradient of this shape, as in TensorFlow: products broadcast it, and
 * reductions and Reshape reshape it. The gradients of others report it when they are built. */
static bool fits(mr_shape loss, mr_shape gradient)
{
    if (loss.rank < 0 || gradient.rank < 0) return true;
    const int64_t count = mr_shape_count(loss), given = mr_shape_count(gradient);
    if (count < 0 || given < 0 || count == given) return true;
    if (gradient.rank > loss.rank) return false;
    for (int32_t i = 1; i <= gradient.rank; i++) {
        const int64_t dim = gradient.dims[gradient.rank - i];
        if (dim != 1 && dim != loss.dims[loss.rank - i]) return false;
    }
    return true;
}

static bool check_grad_loss(mr_graph *graph, mr_output loss, mr_output gradient)
{
    if (gradient.node == nullptr) return true;
    if (gradient.node->graph != graph || gradient.index < 0 || gradient.index >= gradient.node->output_count)
        return fail(graph, "grad_loss is no output of this graph");
    /* A loss that is not valid is reported by the gradients. */
    if (loss.node == nullptr || loss.node->graph != graph || loss.index < 0 || loss.index >= loss.node->output_count)
        return true;
    const mr_dtype dtype = mr_output_dtype(gradient), expected = mr_output_dtype(loss);
    const mr_shape shape = mr_output_shape(gradient), full = mr_output_shape(loss);
    if (dtype == expected && fits(full, shape)) return true;
    char text[MR_SHAPE_TEXT_SIZE], expected_text[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                        "compute_gradients: grad_loss %s is %s %s, but the loss %s is %s %s; the dtype must be the "
                        "same, and the shape the same or one that broadcasts to it",
                        mr_node_name(gradient.node), mr_dtype_name(dtype), mr_shape_text(shape, text, sizeof text),
                        mr_node_name(loss.node), mr_dtype_name(expected),
                        mr_shape_text(full, expected_text, sizeof expected_text));
    return false;
}

/* TensorFlow updates a variable that is in the list twice, twice. */
static bool check_duplicates(mr_graph *graph, mr_variables list)
{
    for (int32_t i = 0; i < list.count; i++)
        for (int32_t j = 0; j < i; j++) {
            if (list.items[i].ref.node != list.items[j].ref.node) continue;
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "compute_gradients: the variable %s is in the list of variables twice, at %d and %d",
                                mr_node_name(list.items[i].ref.node), (int)j, (int)i);
            return false;
        }
    return true;
}

static bool check(mr_graph *graph, mr_output loss, const mr_compute_gradients_options *o)
{
    if ((unsigned)o->gate_gradients > MR_GATE_GRAPH) return fail(graph, "unknown gate_gradients");
    if ((unsigned)o->aggregation_method > MR_AGGREGATION_EXPERIMENTAL_ACCUMULATE_N)
        return fail(graph, "unknown aggregation_method");
    if (!check_grad_loss(graph, loss, o->grad_loss)) return false;
    if (o->variables.count < 0 || (o->variables.count > 0 && o->variables.items == nullptr))
        return fail(graph, "the list of variables is not valid");
    for (int32_t i = 0; i < o->variables.count; i++) {
        if (o->variables.items[i].ref.node == nullptr && o->variables.items[i].value.node != nullptr) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "compute_gradients: variable %d is partitioned; its parts are variables: "
                                "mr_variable_parts",
                                i);
            return false;
        }
        if (o->variables.items[i].ref.node == nullptr || o->variables.items[i].ref.node->graph != graph) {
            (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                                "compute_gradients: variable %d is not a variable of the graph", i);
            return false;
        }
    }
    return check_duplicates(graph, o->variables);
}

static mr_gradients_and_variables differentiate(mr_graph *graph, mr_output loss, const mr_compute_gradients_options *o)
{
    const mr_gradients_and_variables none = {0};
    const int32_t count =
        o->variables.count > 0 ? o->variables.count : mr_graph_variable_count(graph, MR_TRAINABLE_VARIABLES);
    const size_t size = (size_t)count + 1;
    mr_gradient_and_variable *items = MR_ARENA_NEW(&graph->arena, mr_gradient_and_variable, size);
    mr_output *refs = MR_ARENA_NEW(&graph->arena, mr_output, size),
              *found = MR_ARENA_NEW(&graph->arena, mr_output, size);
    if (items == nullptr || refs == nullptr || found == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an optimizer");
        return none;
    }
    for (int32_t i = 0; i < count; i++) {
        items[i].variable =
            o->variables.count > 0 ? o->variables.items[i] : mr_graph_variable(graph, MR_TRAINABLE_VARIABLES, i);
        refs[i] = items[i].variable.ref;
    }
    mr_gradients_with(graph, MR_OUTPUTS(loss), (mr_outputs){refs, count},
                      o->grad_loss.node != nullptr ? &o->grad_loss : nullptr,
                      &(mr_gradients_mode){.method = o->aggregation_method,
                                           .gate_ops = o->gate_gradients == MR_GATE_OP,
                                           .colocate = o->colocate_gradients_with_ops},
                      found);
    if (o->gate_gradients == MR_GATE_GRAPH) mr_gradients_gate(graph, found, count);
    if (mr_graph_status(graph, nullptr) != MR_OK) return none;
    for (int32_t i = 0; i < count; i++) items[i].gradient = found[i];
    return (mr_gradients_and_variables){items, count};
}

mr_gradients_and_variables mr_compute_gradients_(mr_graph *graph, mr_output loss,
                                                 const mr_compute_gradients_options *given)
{
    const mr_gradients_and_variables none = {0};
    mr_compute_gradients_options options;
    mr_error error = {0};
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return none;
    const mr_status status = MR_OPTIONS_READ(mr_compute_gradients_options, &options, given, &error);
    if (status != MR_OK) (void)mr_graph_fail(graph, status, "%s", error.message);
    return status == MR_OK && check(graph, loss, &options) ? differentiate(graph, loss, &options) : none;
}

mr_gradients_and_variables mr_optimizer_compute_gradients_(mr_graph *graph, const mr_optimizer *given, mr_output loss,
                                                           const mr_compute_gradients_options *given_options)
{
    const mr_gradients_and_variables none = {0};
    if (graph == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return none;
    mr_optimizer optimizer;
    mr_compute_gradients_options options;
    mr_error error = {0};
    mr_status status = given != nullptr ? MR_OPTIONS_READ(mr_optimizer, &optimizer, given, &error)
                                        : mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer is null");
    if (status == MR_OK) status = MR_OPTIONS_READ(mr_compute_gradients_options, &options, given_options, &error);
    if (status == MR_OK && optimizer.wrapper != nullptr && optimizer.wrapper->graph != graph)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "the optimizer belongs to another graph");
    if (status != MR_OK) {
        (void)mr_graph_fail(graph, status, "%s", error.message);
        return none;
    }
    if (!check(graph, loss, &options)) return none;
    /* The innermost wrapper differentiates what the outer ones have made of the loss. */
    mr_optimizer_wrapper *wrapper = optimizer.wrapper;
    while (wrapper != nullptr && wrapper->kind->compute == nullptr) wrapper = wrapper->inner.wrapper;
    return wrapper != nullptr ? wrapper->kind->compute(wrapper, loss, &options) : differentiate(graph, loss, &options);
}
