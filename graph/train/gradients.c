/* Reverse-mode differentiation of a graph, as tf.gradients.
 *
 * Only nodes between the xs and the ys matter: those that depend on an x and on which a y depends. Each of them waits
 * until all such consumers have contributed their partial gradients. These are then added, the gradient function of its
 * operator runs, and the results are passed to its inputs. The traversal uses arrays indexed by node id, so it neither
 * recurses nor loops indefinitely on imported graphs with cycles: a node on a cycle never gets all its partial
 * gradients, and is reported.
 *
 * Loops that were built here are differentiated (loop_gradient.h). The gradients of a loop's body are built in the
 * context of the backward loop. A Switch of a loop is processed twice: when the gradient of its exit is known, which
 * begins the backward loop, and when that of the body is, which closes it. All exits of a loop are processed
 * together. */
#include "graph/train/gradients.h"
#include "graph/ir/function.h"
#include "graph/ir/sparse_rows.h"
#include "graph/train/loop_gradient.h"
#include "graph/train/open_scopes.h"
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
    bool is_y;      /* has a y as output */
    bool done;      /* its gradient is built */
    int32_t waits;  /* edges to nodes between that have not been processed */
    share **shares; /* by output */
} place;

typedef struct sweep {
    mr_graph *graph;
    mr_arena arena;
    int32_t count;
    place *places;
    int32_t *queue; /* ids; each is added once, and the Switch of a loop twice */
    int32_t queue_count;
    mr_loop_gradients loops;
    mr_gradients_mode options;
} sweep;

static bool is_trainable(mr_dtype dtype)
{
    return mr_train_is_floating(dtype) || dtype == MR_COMPLEX64 || dtype == MR_COMPLEX128 || dtype == MR_RESOURCE;
}

static mr_status no_memory(sweep *s)
{
    (void)mr_graph_fail(s->graph, MR_RESOURCE_EXHAUSTED, "out of memory");
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
        p->is_y = true;
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

static bool is_loop_node(const mr_node *node, mr_flow flow)
{
    return mr_node_flow(node) == flow && node->flow != nullptr && node->flow->is_loop;
}

/* Adds the gradients of all loops between, outer ones first, and all exits of these loops. */
static mr_status add_loops(sweep *s)
{
    for (int32_t at = 0; at < s->queue_count; at++) {
        const mr_node *node = s->graph->nodes[s->queue[at]];
        if (!is_loop_node(node, MR_FLOW_EXIT) || !node->flow->back_prop) continue;
        if (mr_loop_gradient_add(&s->loops, node) == nullptr) return mr_graph_status(s->graph, nullptr);
        for (int32_t i = 0; i < node->flow->exit_count; i++) {
            const mr_node *exit = node->flow->exits[i].node;
            if (exit->id >= s->count || s->places[exit->id].between) continue;
            s->places[exit->id].between = true;
            place *p = &s->places[exit->inputs[0].node->id];
            if (p->between) p->waits++;
        }
    }
    return MR_OK;
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

/* A sum of sparse gradients is sparse: the rows of all. */
static void join_rows(sweep *s, mr_output sum, const mr_output *terms, int32_t count)
{
    mr_graph *graph = s->graph;
    mr_output *values = MR_ARENA_NEW(&s->arena, mr_output, (size_t)count);
    mr_output *indices = MR_ARENA_NEW(&s->arena, mr_output, (size_t)count), size = {0};
    if (values == nullptr || indices == nullptr || mr_graph_status(graph, nullptr) != MR_OK) return;
    for (int32_t i = 0; i < count; i++) {
        const mr_sparse_rows *rows = mr_graph_find_rows(graph, terms[i]);
        if (rows == nullptr) return;
        values[i] = rows->values;
        indices[i] = rows->indices;
        size = rows->count;
        if (mr_output_dtype(indices[i]) != mr_output_dtype(indices[0])) return;
    }
    mr_output axis = mr_constant_int32(graph, 0);
    mr_graph_note_rows(graph, (mr_sparse_rows){sum, mr_concat_v2(graph, MR_OUTPUTS_OF(values, count), axis),
                                               mr_concat_v2(graph, MR_OUTPUTS_OF(indices, count), axis), size});
}

/* Of dense terms, in pairs with the experimental methods, so that a term can be released early. */
static mr_output add_terms(sweep *s, const mr_node *node, const mr_output *terms, int32_t count)
{
    bool in_pairs = s->options.method != MR_AGGREGATION_ADD_N;
    for (int32_t i = 0; i < count; i++) in_pairs &= mr_graph_find_rows(s->graph, terms[i]) == nullptr;
    if (!in_pairs) return mr_add_n(s->graph, MR_OUTPUTS_OF(terms, count));
    const char *scope = mr_arena_printf(&s->graph->arena, "%s_gradient_sum", node->name);
    mr_graph_push_scope(s->graph, scope != nullptr ? scope : "gradient_sum");
    mr_output sum = terms[0];
    for (int32_t i = 1; i < count; i++) sum = mr_add_n(s->graph, MR_OUTPUTS(sum, terms[i]));
    mr_graph_pop_scope(s->graph);
    return sum;
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
    first->grad = add_terms(s, node, terms, count);
    join_rows(s, first->grad, terms, count);
    first->next = nullptr;
    return first->grad;
}

/* Narrows the gradient's shape to that of the input. They contradict each other after a gradient of a y, or one of the
 * program, has another shape than its output. The gradient of a resource has the shape of its value. */
static mr_status set_shape(sweep *s, const mr_node *node, int32_t index, mr_output grad)
{
    const mr_output input = node->inputs[index];
    const mr_shape shape = mr_output_shape(input);
    if (mr_output_dtype(input) == MR_RESOURCE) return MR_OK;
    if (mr_shape_compatible(mr_output_shape(grad), shape)) {
        if (shape.rank >= 0) mr_output_set_shape(grad, shape);
        return MR_OK;
    }
    char found[MR_SHAPE_TEXT_SIZE], expected[MR_SHAPE_TEXT_SIZE];
    (void)mr_graph_fail(
        s->graph, MR_INVALID_ARGUMENT,
        "gradients: the gradient of input %d of node %s (%s) has shape %s, but the input %s has %s; does "
        "the gradient of the loss have the shape of the loss?",
        (int)index, node->name, node->op, mr_shape_text(mr_output_shape(grad), found, sizeof found), input.node->name,
        mr_shape_text(shape, expected, sizeof expected));
    return MR_INVALID_ARGUMENT;
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

static bool is_several(const mr_op_argument *argument)
{
    return argument->number_attr != nullptr || argument->types_attr != nullptr;
}

/* Whether the gradient function of an operator can be called for a node of another one. */
static bool fits(const mr_op_def *def, const mr_node *node)
{
    if (def == nullptr || def->gradient == nullptr || node->def == nullptr) return false;
    if (def->input_count != node->def->input_count || def->output_count != node->def->output_count) return false;
    for (int32_t i = 0; i < def->input_count; i++)
        if (is_several(&def->inputs[i]) != is_several(&node->def->inputs[i])) return false;
    for (int32_t i = 0; i < def->attr_count; i++)
        if (mr_attrs_find(&node->attrs, def->attrs[i].name) == nullptr) return false;
    return true;
}

/* Finds the gradient of a node whose operator is overridden.
 * errors  MR_NOT_FOUND, MR_INVALID_ARGUMENT; recorded in the graph */
static mr_status check_override(sweep *s, const mr_node *node, const char *name, const mr_op_def *def)
{
    if (mr_graph_custom_gradient(s->graph, name) != nullptr || fits(def, node)) return MR_OK;
    const bool exists = def != nullptr && def->gradient != nullptr;
    const mr_status status = exists ? MR_INVALID_ARGUMENT : MR_NOT_FOUND;
    (void)mr_graph_fail(s->graph, status, "the gradient %s of node %s (%s) %s", name, node->name, node->op,
                        exists ? "needs an operator with other inputs or attrs" : "is not registered");
    return status;
}

/* Calls a gradient of the program, and checks what it returns. */
static mr_status call_custom(sweep *s, const mr_custom_gradient *custom, mr_node *node, const mr_output *grads,
                             mr_output *results)
{
    const mr_callback callback = mr_callback_begin(s->graph);
    custom->function(custom->context, s->graph, node, grads, results);
    (void)mr_callback_end(s->graph, &callback, "mr_graph_register_gradient", custom->name);
    MR_TRY(mr_graph_status(s->graph, nullptr));
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_output result = results[i], input = node->inputs[i];
        if (result.node == nullptr) continue;
        const bool is_output = result.node->graph == s->graph && result.index >= 0 &&
                               result.index < result.node->output_count && result.node->id >= 0;
        if (is_output && mr_output_dtype(result) == mr_output_dtype(input) &&
            mr_shape_compatible(mr_output_shape(result), mr_output_shape(input)))
            continue;
        (void)mr_graph_fail(s->graph, MR_INVALID_ARGUMENT, "the gradient %s of node %s (%s) returned for input %d %s",
                            custom->name, node->name, node->op, (int)i,
                            is_output ? "another dtype or shape than that of the input" : "no output of the graph");
        return MR_INVALID_ARGUMENT;
    }
    return MR_OK;
}

/* Runs the gradient function of a node whose partial gradients are complete, in scope "NODE_grad", on the node's
 * device. */
static mr_status call_gradient(sweep *s, mr_node *node, mr_output *grads, mr_output *results)
{
    mr_attr_value callee = called_function(s->graph, node);
    bool is_call = callee.function.name != nullptr, is_flow = mr_loop_gradient_handles(node);
    const char *name = mr_node_gradient_name(node);
    const mr_custom_gradient *custom = mr_graph_custom_gradient(s->graph, name);
    const mr_op_def *def = name == node->op ? node->def : mr_op_find(name);
    if (name != node->op) {
        is_call = is_flow = false;
        MR_TRY(check_override(s, node, name, def));
    }
    if (!is_call && !is_flow && custom == nullptr && (def == nullptr || def->gradient == nullptr)) {
        if (node->def != nullptr && (node->def->op->flags & MR_OP_NOT_DIFFERENTIABLE) != 0) return MR_OK;
        (void)mr_graph_fail(s->graph, MR_UNIMPLEMENTED, "the operator %s of node %s has no gradient", node->op,
                            node->name);
        return MR_UNIMPLEMENTED;
    }
    char *scope = mr_arena_printf(&s->arena, "%s_grad", node->name);
    if (scope == nullptr) return no_memory(s);
    mr_graph_push_scope(s->graph, scope);
    mr_graph_push_device(s->graph, node->device);
    if (s->options.colocate) mr_graph_push_colocation(s->graph, node);
    mr_status status = MR_OK;
    if (is_call)
        status = add_symbolic_gradient(s, node, &callee, grads, results);
    else if (is_flow)
        mr_loop_gradient_call(&s->loops, node, grads, results);
    else if (custom != nullptr)
        status = call_custom(s, custom, node, grads, results);
    else
        def->gradient(
            &(mr_gradient_call){.graph = s->graph, .node = node, .grad_outputs = grads, .grad_inputs = results});
    if (s->options.colocate) mr_graph_pop_colocation(s->graph);
    mr_graph_pop_device(s->graph);
    mr_graph_pop_scope(s->graph);
    return status == MR_OK ? mr_graph_status(s->graph, nullptr) : status;
}

/* Makes the context of the node's gradient current; is_before: that of the gradients of its outputs. */
static void enter_context(sweep *s, const mr_node *node, bool is_before)
{
    const mr_loop_gradient *loop = mr_loop_gradient_of(&s->loops, node, is_before);
    (void)mr_flow_enter(s->graph, loop != nullptr ? mr_loop_gradient_context(loop) : s->loops.base);
}

/* Queues the exits of a loop that are ready. Those without a gradient get zeros if any other one has a gradient, or if
 * they must. */
static mr_status enter_exits(sweep *s, mr_loop_exits *exits, bool with_zeros)
{
    for (const mr_node_list *e = exits->deferred; e != nullptr; e = e->next) {
        mr_node *exit = e->node;
        if (with_zeros && s->places[exit->id].shares == nullptr && is_trainable(mr_output_dtype((mr_output){exit, 0})))
            MR_TRY(add_share(s, (mr_output){exit, 0}, mr_loop_gradient_zeros(&s->loops, (mr_output){exit, 0})));
        enter(s, exit->id);
    }
    exits->deferred = nullptr;
    return mr_graph_status(s->graph, nullptr);
}

/* Keeps an exit that is ready until all exits of its loop are. */
static mr_status defer_exit(sweep *s, mr_node *exit, bool with_zeros)
{
    mr_loop_exits *exits = mr_loop_gradient_exits(mr_loop_gradient_of(&s->loops, exit, false));
    mr_node_list *added = MR_ARENA_NEW(&s->graph->arena, mr_node_list, 1);
    if (added == nullptr) return no_memory(s);
    *added = (mr_node_list){.node = exit, .next = exits->deferred};
    exits->deferred = added;
    exits->has_gradient |= s->places[exit->id].shares != nullptr;
    if (--exits->pending > 0) return MR_OK;
    return enter_exits(s, exits, with_zeros || exits->has_gradient);
}

/* Queues the node if its gradients are complete: of a loop's Switch, those of one of its outputs. */
static mr_status enter_if_ready(sweep *s, mr_node *node)
{
    int32_t waits = --s->places[node->id].waits;
    if (waits == 0 && is_loop_node(node, MR_FLOW_EXIT) && mr_loop_gradient_of(&s->loops, node, false) != nullptr)
        return defer_exit(s, node, false);
    if (waits == 0 || (waits > 0 && is_loop_node(node, MR_FLOW_SWITCH))) enter(s, node->id);
    return MR_OK;
}

/* Of one result, nothing is to be waited for. */
static void gate(const sweep *s, mr_output *results, int32_t count)
{
    int32_t given = 0;
    for (int32_t i = 0; i < count; i++) given += results[i].node != nullptr;
    if (given > 1) mr_gradients_gate(s->graph, results, count);
}

/* Passes the gradients of the node's outputs to its inputs. */
static mr_status go_back(sweep *s, mr_node *node)
{
    bool given = false, leads_on = false;
    mr_output *grads = MR_ARENA_NEW(&s->arena, mr_output, (size_t)node->output_count + 1);
    mr_output *results = MR_ARENA_NEW(&s->arena, mr_output, (size_t)node->input_count + 1);
    if (grads == nullptr || results == nullptr) return no_memory(s);
    enter_context(s, node, true);
    for (int32_t i = 0; i < node->output_count; i++) {
        grads[i] = total(s, node, i);
        given |= grads[i].node != nullptr && is_trainable(node->outputs[i].dtype);
    }
    for (int32_t i = 0; i < node->input_count; i++) leads_on |= s->places[node->inputs[i].node->id].between;
    enter_context(s, node, false);
    mr_status status = given && leads_on ? call_gradient(s, node, grads, results) : MR_OK;
    if (s->options.gate_ops && status == MR_OK) gate(s, results, node->input_count);
    (void)mr_flow_enter(s->graph, s->loops.base);
    for (int32_t i = 0; i < node->input_count && status == MR_OK; i++) {
        mr_output input = node->inputs[i];
        place *p = &s->places[input.node->id];
        if (!p->between) continue;
        if (results[i].node != nullptr) {
            status = set_shape(s, node, i, results[i]);
            if (status == MR_OK) status = add_share(s, input, results[i]);
        }
        if (status == MR_OK) status = enter_if_ready(s, input.node);
    }
    return status;
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
    for (int32_t i = 0; i < s->count; i++) {
        if (!s->places[i].between || s->places[i].waits != 0) continue;
        mr_node *node = s->graph->nodes[i];
        if (is_loop_node(node, MR_FLOW_EXIT) && mr_loop_gradient_of(&s->loops, node, false) != nullptr)
            MR_TRY(defer_exit(s, node, true));
        else
            enter(s, i);
    }
    for (int32_t at = 0; at < s->queue_count; at++) {
        MR_TRY(go_back(s, s->graph->nodes[s->queue[at]]));
        s->places[s->queue[at]].done = true;
    }
    mr_loop_gradients_finish(&s->loops);
    return mr_graph_status(s->graph, nullptr);
}

static mr_status differentiate(sweep *s, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys, mr_output *gradients)
{
    s->places = MR_ARENA_NEW(&s->arena, place, (size_t)s->count);
    s->queue = MR_ARENA_NEW(&s->arena, int32_t, 2 * (size_t)s->count + 1);
    if (s->places == nullptr || s->queue == nullptr) return no_memory(s);
    MR_TRY(mark_from(s, xs));
    mark_between(s, ys);
    MR_TRY(add_loops(s));
    MR_TRY(sweep_back(s, ys, grad_ys));
    for (int32_t i = 0; i < xs.count; i++) {
        mr_node *node = xs.items[i].node;
        if (s->places[node->id].between && !s->places[node->id].done) {
            (void)mr_graph_fail(s->graph, MR_UNIMPLEMENTED, "node %s is part of a loop", node->name);
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
    mr_gradients_with(graph, ys, xs, grad_ys, &(mr_gradients_mode){0}, gradients);
}

void mr_gradients_with(mr_graph *graph, mr_outputs ys, mr_outputs xs, const mr_output *grad_ys,
                       const mr_gradients_mode *options, mr_output *gradients)
{
    if (ys.count < 0 || xs.count < 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: %d ys and %d xs", (int)ys.count, (int)xs.count);
        return;
    }
    if ((xs.items == nullptr || gradients == nullptr) && xs.count > 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: the array of %s is null",
                            xs.items == nullptr ? "xs" : "results");
        return;
    }
    for (int32_t i = 0; i < xs.count; i++) gradients[i] = (mr_output){0};
    mr_status status = mr_graph_status(graph, nullptr);
    if (status == MR_OK && (!belongs(graph, ys) || !belongs(graph, xs))) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: ys and xs must be outputs of this graph");
        status = MR_INVALID_ARGUMENT;
    }
    for (int32_t i = 0; status == MR_OK && grad_ys != nullptr && i < ys.count; i++) {
        if (grad_ys[i].node == nullptr || belongs(graph, (mr_outputs){&grad_ys[i], 1})) continue;
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "gradients: grad_ys must be outputs of this graph");
        status = MR_INVALID_ARGUMENT;
    }
    if (status == MR_OK) {
        sweep s = {.graph = graph, .count = mr_graph_node_count(graph), .options = *options};
        s.loops = (mr_loop_gradients){.graph = graph, .base = graph->flow};
        mr_graph_push_scope(graph, "gradients");
        status = differentiate(&s, ys, xs, grad_ys, gradients);
        (void)mr_flow_enter(graph, s.loops.base);
        mr_graph_pop_scope(graph);
        mr_arena_deinit(&s.arena);
    }
    if (status != MR_OK)
        for (int32_t i = 0; i < xs.count; i++) gradients[i] = mr_graph_failed_output(graph);
}
