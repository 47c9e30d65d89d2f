/* fold_constants: a session of its own computes the values of nodes that depend on constants only. Only values that
 * remain are computed and stored: those that another node, or the caller, reads. */
#include "base/status.h"
#include "graph/train/transform.h"

#include <stdlib.h>
#include <string.h>

constexpr int64_t CONSTANT_BYTES_MAX = 10 << 20;
/* Nodes with more outputs are kept. */
constexpr int32_t OUTPUTS_MAX = 8;

typedef struct folding {
    mr_transforming *t;
    int32_t count;          /* of nodes before folding */
    bool *inputs, *outputs; /* by node */
    int8_t *state;          /* by node: 0: not visited, 1: in progress, 2: constant, 3: not constant */
    mr_graph *graph;        /* the graph before folding */
    mr_session *session;
    int64_t limit_bytes;
} folding;

/* Whether the operator may be evaluated once instead of in each run. */
static bool may_fold(const folding *f, int32_t node)
{
    constexpr unsigned EXCLUDED = MR_OP_STATEFUL | MR_OP_PLACEHOLDER | MR_OP_CALL | MR_OP_WAITS | MR_OP_GET_NEXT;
    const mr_node *source = mr_graph_find(f->graph, f->t->r.nodes[node]->name);
    if (source == nullptr || source->def == nullptr || source->output_count == 0 || f->inputs[node]) return false;
    if (source->output_count > OUTPUTS_MAX || (source->output_count > 1 && f->outputs[node])) return false;
    if ((source->def->op->flags & EXCLUDED) != 0 || source->def->op->flow != MR_FLOW_NONE) return false;
    if (source->def->op->writes != 0) return false;
    for (int32_t i = 0; i < source->output_count; i++)
        if (source->outputs[i].is_ref || source->outputs[i].dtype == MR_RESOURCE ||
            source->outputs[i].dtype == MR_VARIANT || source->outputs[i].dtype == MR_DTYPE_INVALID)
            return false;
    return true;
}

/* Iterative depth-first search; a node on a cycle is not constant. */
static mr_status find_constants(folding *f, mr_error *error)
{
    const mr_rewrite *r = &f->t->r;
    int32_t *stack = MR_ARENA_NEW(&f->t->r.arena, int32_t, (size_t)r->count + 1);
    size_t *next = MR_ARENA_NEW(&f->t->r.arena, size_t, (size_t)r->count + 1);
    if (stack == nullptr || next == nullptr) return mr_fail_memory(error, (size_t)r->count * sizeof *next);
    for (int32_t first = 0; first < r->count; first++) {
        int32_t depth = 0;
        if (r->removed[first] || f->state[first] != 0) continue;
        stack[depth++] = first;
        f->state[first] = 1;
        while (depth > 0) {
            const int32_t node = stack[depth - 1];
            if (next[node] == 0 && !may_fold(f, node)) f->state[node] = 3;
            if (f->state[node] == 3 || next[node] == r->nodes[node]->n_input) {
                if (f->state[node] == 1) f->state[node] = 2;
                depth--;
                continue;
            }
            const mr_rewrite_input input = mr_rewrite_input_of(r, r->nodes[node]->input[next[node]]);
            if (input.node < 0 || f->state[input.node] == 1 || f->state[input.node] == 3) {
                f->state[node] = 3;
            } else if (f->state[input.node] == 0) {
                f->state[input.node] = 1;
                stack[depth++] = input.node;
            } else {
                next[node]++;
            }
        }
    }
    return MR_OK;
}

/* Replaces one output. The node with a single output becomes the constant; of any other node, the readers of an output
 * read a new constant. */
static mr_status replace(folding *f, int32_t node, int32_t index, mr_error *error)
{
    mr_rewrite *r = &f->t->r;
    mr_tensor value = {0};
    mr_node *source = mr_graph_find(f->graph, r->nodes[node]->name);
    mr_status status = mr_session_run(f->session, MR_NO_FEEDS, MR_OUTPUTS({source, index}), &value, nullptr, 0, error);
    if (status != MR_OK && f->t->transform->ignore_errors) return MR_OK;
    if (status != MR_OK) return mr_fail_prefix(error, status, "%s: fold_constants", r->what);
    if (mr_tensor_count(&value) * (int64_t)mr_dtype_size(value.dtype) <= f->limit_bytes) {
        if (source->output_count == 1) {
            status = mr_rewrite_make_constant(r, node, &value, error);
        } else {
            const char *name = mr_arena_printf(&r->arena, "%s__cf__%d", r->nodes[node]->name, index);
            const int32_t constant = name != nullptr ? mr_rewrite_add_constant(r, name, &value, error) : -1;
            if (constant < 0) status = mr_fail_memory(error, 64);
            if (constant >= 0) mr_rewrite_replace_readers(r, (mr_rewrite_input){node, index}, r->nodes[constant]->name);
        }
    }
    mr_tensor_deinit(&value);
    return status;
}

/* Replaces what a node that is not constant, or the caller, reads. */
static mr_status replace_all(folding *f, mr_error *error)
{
    mr_rewrite *r = &f->t->r;
    const int32_t count = f->count;
    bool *read = MR_ARENA_NEW(&r->arena, bool, ((size_t)count + 1) * OUTPUTS_MAX);
    if (read == nullptr) return mr_fail_memory(error, (size_t)count * OUTPUTS_MAX);
    for (int32_t i = 0; i < count; i++) {
        if (f->outputs[i]) read[i * OUTPUTS_MAX] = true;
        for (size_t j = 0; !r->removed[i] && f->state[i] == 3 && j < r->nodes[i]->n_input; j++) {
            const mr_rewrite_input input = mr_rewrite_input_of(r, r->nodes[i]->input[j]);
            if (input.node >= 0 && input.index >= 0 && input.index < OUTPUTS_MAX)
                read[input.node * OUTPUTS_MAX + input.index] = true;
        }
    }
    for (int32_t i = 0; i < count; i++)
        for (int32_t j = 0; !r->removed[i] && f->state[i] == 2 && j < OUTPUTS_MAX; j++)
            if (read[i * OUTPUTS_MAX + j] && !mr_rewrite_is(r, i, "Const")) MR_TRY(replace(f, i, j, error));
    return MR_OK;
}

/* A constant needs no order: control inputs from it are removed. */
static void drop_controls(folding *f)
{
    mr_rewrite *r = &f->t->r;
    for (int32_t i = 0; i < r->count; i++) {
        Mr__NodeDef *def = r->nodes[i];
        size_t kept = 0;
        for (size_t j = 0; !r->removed[i] && j < def->n_input; j++) {
            const mr_rewrite_input input = mr_rewrite_input_of(r, def->input[j]);
            const bool is_idle = input.index < 0 && mr_rewrite_is(r, input.node, "Const") &&
                                 r->nodes[input.node]->n_input == 0 &&
                                 (input.node >= f->count || !f->inputs[input.node]);
            if (!is_idle) def->input[kept++] = def->input[j];
        }
        if (!r->removed[i]) def->n_input = kept;
    }
}

static mr_status fold(folding *f, mr_error *error)
{
    mr_rewrite *r = &f->t->r;
    mr_tensor bytes = {0};
    MR_TRY(mr_transform_marks(f->t, "input", f->t->inputs, &f->inputs, error));
    MR_TRY(mr_transform_marks(f->t, "output", f->t->outputs, &f->outputs, error));
    f->state = MR_ARENA_NEW(&r->arena, int8_t, (size_t)r->count + 1);
    if (f->state == nullptr) return mr_fail_memory(error, (size_t)r->count);
    f->graph = mr_graph_create();
    if (f->graph == nullptr) return mr_fail_memory(error, sizeof(mr_graph));
    MR_TRY(mr_rewrite_finish(r, &bytes, error));
    const mr_string all = mr_tensor_strings(&bytes)[0];
    mr_status status = mr_graph_import(f->graph, all.data, all.size_bytes, nullptr, error);
    mr_tensor_deinit(&bytes);
    if (status != MR_OK) return status;
    MR_TRY(mr_session_new(f->graph, nullptr, &f->session, error));
    MR_TRY(find_constants(f, error));
    MR_TRY(replace_all(f, error));
    return MR_OK;
}

mr_status mr_transform_fold_constants(mr_transforming *t, mr_error *error)
{
    const int64_t limit = t->transform->maximum_constant;
    folding f = {.t = t, .count = t->r.count, .limit_bytes = limit > 0 ? limit : CONSTANT_BYTES_MAX};
    mr_status status = fold(&f, error);
    mr_session_free(f.session);
    mr_graph_free(f.graph);
    if (status != MR_OK) return status;
    drop_controls(&f);
    return mr_transform_prune(t, error);
}
