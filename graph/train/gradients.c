/* Reverse-mode differentiation of a graph, as tf.gradients.
 *
 * Only nodes between the xs and the ys matter: those that depend on an x and on which a y depends. Each of them waits
 * until all such consumers have contributed their partial gradients. These are then added, the gradient function of its
 * operator runs, and the results are passed to its inputs. The traversal uses arrays indexed by node id, so it neither
 * recurses nor loops indefinitely on (imported) graphs with cycles: a node on a cycle never gets all its partial
 * gradients, and is reported. */
#include "graph/ir/function.h"
#include "graph/ir/graph.h"
#include <millrace/ops.h>

#include <stdlib.h>
#include <string.h>

typedef struct share {
    struct share *next;
    mr_output grad;
} share;

typedef struct place {
    bool from_xs;   /* depends on an x, or has one as output */
    bool between;   /* from_xs, and a y depends on it */
    bool is_x;      /* has an x as output */
    bool done;      /* its gradient is built */
    int32_t waits;  /* edges to nodes between that have not been processed */
    share **shares; /* by output */
} place;

typedef struct sweep {
    mr_graph *graph;
    mr_arena arena;
    int32_t count;
    place *places;
    int32_t *queue; /* ids; each is added once */
    int32_t queue_count;
} sweep;

static bool is_trainable(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16 ||
           dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 || dtype == MR_RESOURCE;
}

static mr_status no_memory(sweep *s)
{
    (void)mr_graph_fail(s->graph, MR_RESOURCE_EXHAUSTED, "gradients: out of memory");
    return MR_RESOURCE_EXHAUSTED;
}

/* The consumers of all nodes, as one array of ids with the index where each node's part begins. */
typedef struct consumers {
    int32_t *begin;
    int32_t *ids;
} consumers;

static mr_status find_consumers(sweep *s, consumers *c)
{
    mr_node **nodes = s->graph->nodes;
    c->begin = MR_ARENA_NEW(&s->arena, int32_t, (size_t)s->count + 2);
    if (c->begin == nullptr) return no_memory(s);
    int32_t *ends = c->begin + 1; /* becomes begin after each edge has advanced its source's end */
    size_t edges = 0;
    for (int32_t i = 0; i < s->count; i++)
        for (int32_t j = 0; j < nodes[i]->input_count; j++, edges++) ends[nodes[i]->inputs[j].node->id + 1]++;
    for (int32_t i = 0; i < s->count; i++) ends[i + 1] += ends[i];
    c->ids = MR_ARENA_NEW(&s->arena, int32_t, edges + 1);
    if (c->ids == nullptr) return no_memory(s);
    for (int32_t i = 0; i < s->count; i++)
        for (int32_t j = 0; j < nodes[i]->input_count; j++) c->ids[ends[nodes[i]->inputs[j].node->id]++] = i;
    return MR_OK;
}

static void enter(sweep *s, int32_t id)
{
    s->queue[s->queue_count++] = id;
}

/* Marks the nodes that depend on an x through edges that carry gradients. */
static mr_status mark_from(sweep *s, mr_outputs xs)
{
    consumers c;
    MR_TRY(find_consumers(s, &c));
    for (int32_t i = 0; i < xs.count; i++) {
        place *p = &s->places[xs.items[i].node->id];
        p->is_x = true;
        if (!p->from_xs) enter(s, xs.items[i].node->id);
        p->from_xs = true;
    }
    for (int32_t at = 0; at < s->queue_count; at++) {
        int32_t id = s->queue[at];
        for (int32_t k = c.begin[id]; k < c.begin[id + 1]; k++) {
            mr_node *consumer = s->graph->nodes[c.ids[k]];
            if (s->places[consumer->id].from_xs) continue;
            for (int32_t j = 0; j < consumer->input_count; j++) {
                mr_output input = consumer->inputs[j];
                if (input.node->id != id || !is_trainable(mr_output_dtype(input))) continue;
                s->places[consumer->id].from_xs = true;
                enter(s, consumer->id);
                break;
            }
        }
    }
    return MR_OK;
}

/* Marks those among them on which a y depends, and counts the edges to them. */
static void mark_between(sweep *s, mr_outputs ys)
{
    s->queue_count = 0;
    for (int32_t i = 0; i < ys.count; i++) {
        place *p = &s->places[ys.items[i].node->id];
        if (!p->from_xs || p->between) continue;
        p->between = true;
        enter(s, ys.items[i].node->id);
    }
    for (int32_t at = 0; at < s->queue_count; at++) {
        mr_node *node = s->graph->nodes[s->queue[at]];
        for (int32_t j = 0; j < node->input_count; j++) {
            place *p = &s->places[node->inputs[j].node->id];
            if (!p->from_xs) continue;
            p->waits++;
            if (p->between) continue;
            p->between = true;
            enter(s, node->inputs[j].node->id);
        }
    }
}

static mr_status add_share(sweep *s, mr_output to, mr_output grad)
{
    place *p = &s->places[to.node->id];
    if (p->shares == nullptr) p->shares = MR_ARENA_NEW(&s->arena, share *, (size_t)to.node->output_count);
    share *added = MR_ARENA_NEW(&s->arena, share, 1);
    if (p->shares == nullptr || added == nullptr) return no_memory(s);
    *added = (share){.grad = grad};
    share **end = &p->shares[to.index];
    while (*end != nullptr) end = &(*end)->next;
    *end = added;
    return MR_OK;
}

/* The sum of the partial gradients of one output, which then replaces them; {0} if there are none. */
static mr_output total(sweep *s, mr_node *node, int32_t index)
{
    share *first = s->places[node->id].shares != nullptr ? s->places[node->id].shares[index] : nullptr;
    if (first == nullptr) return (mr_output){0};
    if (first->next == nullptr) return first->grad;
    int32_t count = 0;
    for (share *one = first; one != nullptr; one = one->next) count++;
    mr_output *terms = MR_ARENA_NEW(&s->arena, mr_output, (size_t)count);
    if (terms == nullptr) {
        (void)no_memory(s);
        return mr_graph_failed_output(s->graph);
    }
    count = 0;
    for (share *one = first; one != nullptr; one = one->next) terms[count++] = one->grad;
    first->grad = mr_add_n(s->graph, MR_OUTPUTS_OF(terms, count));
    first->next = nullptr;
    return first->grad;
}

/* Narrows the gradient's shape to its input's unless they contradict each other. */
static void set_shape(mr_output grad, mr_output input)
{
    mr_shape shape = mr_output_shape(input);
    if (shape.rank >= 0 && mr_shape_compatible(mr_output_shape(grad), shape)) mr_output_set_shape(grad, shape);
}

/* The function that a node calls; its name is null if it calls none. */
static mr_attr_value called_function(const mr_graph *graph, const mr_node *node)
{
    if (mr_function_library_op(graph->functions, node->op) != nullptr)
        return (mr_attr_value){.function = {.name = node->op, .attrs = &node->attrs}};
    if (strcmp(node->op, "PartitionedCall") != 0 && strcmp(node->op, "StatefulPartitionedCall") != 0)
        return (mr_attr_value){0};
    const mr_attr *f = mr_attrs_find(&node->attrs, "f");
    bool is_function = f != nullptr && f->kind == MR_ATTR_FUNCTION && f->count == 1;
    return is_function ? f->values[0] : (mr_attr_value){0};
}

/* The gradients of a call of a function are a SymbolicGradient of the function. */
static mr_status add_symbolic_gradient(sweep *s, mr_node *node, const mr_attr_value *call, const mr_output *grads,
                                       mr_output *results)
{
    int32_t count = node->input_count + node->output_count;
    mr_dtype *dtypes = MR_ARENA_NEW(&s->arena, mr_dtype, (size_t)count + 1);
    if (dtypes == nullptr) return no_memory(s);
    mr_output *given = MR_ARENA_NEW(&s->arena, mr_output, (size_t)node->output_count + 1);
    if (given == nullptr) return no_memory(s);
    for (int32_t i = 0; i < node->output_count; i++) {
        mr_output output = {node, i};
        given[i] = grads[i].node == nullptr ? mr_zeros_like(s->graph, output) : grads[i];
    }
    mr_node_builder b = mr_node_begin(s->graph, "SymbolicGradient", "SymbolicGradient");
    for (int32_t i = 0; i < count; i++) {
        mr_output input = i < node->input_count ? node->inputs[i] : given[i - node->input_count];
        mr_node_add_input(&b, input);
        dtypes[i] = mr_output_dtype(input);
    }
    mr_node_set_dtypes(&b, "Tin", (mr_dtypes){dtypes, count});
    mr_node_set_dtypes(&b, "Tout", (mr_dtypes){dtypes, node->input_count});
    mr_node_set_instance(&b, "f", call->function.name, call->function.attrs);
    mr_node *made = mr_node_finish(&b).node;
    for (int32_t i = 0; made != nullptr && i < node->input_count && i < made->output_count; i++)
        if (is_trainable(node->inputs[i].node->outputs[node->inputs[i].index].dtype)) results[i] = (mr_output){made, i};
    return mr_graph_status(s->graph, nullptr);
}

/* Runs the gradient function of a node whose partial gradients are complete, in scope "NODE_grad", on the node's
 * device. */
static mr_status call_gradient(sweep *s, mr_node *node, mr_output *grads, mr_output *results)
{
    mr_attr_value callee = called_function(s->graph, node);
    bool is_call = callee.function.name != nullptr;
    if (!is_call && (node->def == nullptr || node->def->gradient == nullptr)) {
        if (node->def != nullptr && (node->def->op->flags & MR_OP_NOT_DIFFERENTIABLE) != 0) return MR_OK;
        (void)mr_graph_fail(s->graph, MR_UNIMPLEMENTED, "gradients: the operator %s of node %s has no gradient",
                            node->op, node->name);
        return MR_UNIMPLEMENTED;
    }
    char *scope = mr_arena_printf(&s->arena, "%s_grad", node->name);
    if (scope == nullptr) return no_memory(s);
    mr_graph_push_scope(s->graph, scope);
    mr_graph_push_device(s->graph, node->device);
    mr_status status = MR_OK;
    if (is_call)
        status = add_symbolic_gradient(s, node, &callee, grads, results);
    else
        node->def->gradient(
            &(mr_gradient_call){.graph = s->graph, .node = node, .grad_outputs = grads, .grad_inputs = results});
    mr_graph_pop_device(s->graph);
    mr_graph_pop_scope(s->graph);
    return status == MR_OK ? mr_graph_status(s->graph, nullptr) : status;
}

/* Passes the gradients of the node's outputs to its inputs. */
static mr_status go_back(sweep *s, mr_node *node)
{
    bool given = false, leads_on = false;
    mr_output *grads = MR_ARENA_NEW(&s->arena, mr_output, (size_t)node->output_count + 1);
    mr_output *results = MR_ARENA_NEW(&s->arena, mr_output, (size_t)node->input_count + 1);
    if (grads == nullptr || results == nullptr) return no_memory(s);
    for (int32_t i = 0; i < node->output_count; i++) {
        grads[i] = total(s, node, i);
        given |= grads[i].node != nullptr && is_trainable(node->outputs[i].dtype);
    }
    for (int32_t i = 0; i < node->input_count; i++) leads_on |= s->places[node->inputs[i].node->id].between;
    if (given && leads_on) MR_TRY(call_gradient(s, node, grads, results));
    for (int32_t i = 0; i < node->input_count; i++) {
        mr_output input = node->inputs[i];
        place *p = &s->places[input.node->id];
        if (!p->between) continue;
        if (results[i].node != nullptr) {
            set_shape(results[i], input);
            MR_TRY(add_share(s, input, results[i]));
        }
        if (--p->waits == 0) enter(s, input.node->id);
    }
    return MR_OK;
}

static mr_status sweep_back(sweep *s, mr_outputs ys, const mr_output *grad_ys)
{
    for (int32_t i = 0; i < ys.count; i++) {
        mr_output y = ys.items[i], grad = grad_ys != nullptr ? grad_ys[i] : (mr_output){0};
        if (!s->places[y.node->id].between) continue;
        if (grad.node == nullptr) {
            char *name = mr_arena_printf(&s->arena, "grad_ys_%d", i);
            if (name == nullptr) return no_memory(s);
            mr_output one = mr_cast(s->graph, mr_constant_float(s->graph, 1.0f), mr_output_dtype(y));
            if (mr_output_dtype(y) == MR_FLOAT) one = mr_constant_float(s->graph, 1.0f);
            grad = mr_fill(s->graph, mr_shape_of(s->graph, y), one, .name = name);
        }
        MR_TRY(add_share(s, y, grad));
    }
    s->queue_count = 0;
    for (int32_t i = 0; i < s->count; i++)
        if (s->places[i].between && s->places[i].waits == 0) enter(s, i);
    for (int32_t at = 0; at < s->queue_count; at++) {
        MR_TRY(go_back(s, s->graph->nodes[s->queue[at]]));
        s->places[s->queue[at]].done = true;
    }
    return MR_OK;
}

static mr_status differentiate(sweep *s, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys, mr_output *gradients)
{
    s->places = MR_ARENA_NEW(&s->arena, place, (size_t)s->count);
    s->queue = MR_ARENA_NEW(&s->arena, int32_t, (size_t)s->count + 1);
    if (s->places == nullptr || s->queue == nullptr) return no_memory(s);
    MR_TRY(mark_from(s, xs));
    mark_between(s, ys);
    MR_TRY(sweep_back(s, ys, grad_ys));
    for (int32_t i = 0; i < xs.count; i++) {
        mr_node *node = xs.items[i].node;
        if (s->places[node->id].between && !s->places[node->id].done) {
            (void)mr_graph_fail(s->graph, MR_UNIMPLEMENTED, "gradients: node %s is part of a loop", node->name);
            return MR_UNIMPLEMENTED;
        }
        gradients[i] = total(s, node, xs.items[i].index);
    }
    return MR_OK;
}

static bool belongs(mr_graph *graph, mr_outputs list)
{
    if (list.count < 0 || (list.items == nullptr && list.count > 0)) return false;
    for (int32_t i = 0; i < list.count; i++)
        if (list.items[i].node == nullptr || list.items[i].node->graph != graph || list.items[i].index < 0 ||
            list.items[i].index >= list.items[i].node->output_count)
            return false;
    return true;
}

void mr_gradients(mr_graph *graph, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys, mr_output *gradients)
{
    if (ys.count < 0 || xs.count < 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: %d ys and %d xs", (int)ys.count, (int)xs.count);
        return;
    }
    if (gradients == nullptr && xs.count > 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: the array of results is null");
        return;
    }
    for (int32_t i = 0; i < xs.count; i++) gradients[i] = (mr_output){0};
    mr_status status = mr_graph_status(graph, nullptr);
    if (status == MR_OK && (!belongs(graph, ys) || !belongs(graph, xs))) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: ys and xs must be outputs of this graph");
        status = MR_INVALID_ARGUMENT;
    }
    if (status == MR_OK) {
        sweep s = {.graph = graph, .count = mr_graph_node_count(graph)};
        mr_graph_push_scope(graph, "gradients");
        status = differentiate(&s, ys, xs, grad_ys, gradients);
        mr_graph_pop_scope(graph);
        mr_arena_deinit(&s.arena);
    }
    if (status != MR_OK)
        for (int32_t i = 0; i < xs.count; i++) gradients[i] = mr_graph_failed_output(graph);
}
