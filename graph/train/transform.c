/* The list of transforms, and those that only remove nodes. */
#include "graph/train/transform.h"

#include "base/status.h"

#include <string.h>

/* ---- strip_unused_nodes ---- */

static mr_status make_placeholder(mr_transforming *t, int32_t node, mr_error *error)
{
    mr_rewrite *r = &t->r;
    const mr_output output = {mr_graph_find(t->graph, r->nodes[node]->name), 0};
    if (output.node == nullptr || output.node->output_count == 0 || output.node->outputs[0].is_ref ||
        output.node->outputs[0].dtype == MR_DTYPE_INVALID)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the input %.200s (%s) cannot be a placeholder", r->what,
                       r->nodes[node]->name, r->nodes[node]->op);
    if (mr_rewrite_is(r, node, "Placeholder")) return MR_OK;
    if (mr_rewrite_is_read(r, node, 1))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the input %.200s (%s) has several outputs that are read",
                       r->what, r->nodes[node]->name, r->nodes[node]->op);
    Mr__AttrValue *shape = MR_ARENA_NEW(&r->arena, Mr__AttrValue, 1);
    if (shape == nullptr) return mr_fail_memory(error, sizeof *shape);
    mr__attr_value__init(shape);
    shape->value_case = MR__ATTR_VALUE__VALUE_SHAPE;
    MR_TRY(mr_shape_write(mr_output_shape(output), &r->arena, &shape->shape, error));
    r->nodes[node]->op = (char *)"Placeholder";
    r->nodes[node]->n_input = 0;
    mr_rewrite_clear_attrs(r, node);
    MR_TRY(mr_rewrite_set_type(r, node, "dtype", mr_output_dtype(output), error));
    return mr_rewrite_set_attr(r, node, "shape", shape, error);
}

static mr_status strip_unused(mr_transforming *t, mr_error *error)
{
    bool *outputs, *inputs;
    MR_TRY(mr_transform_marks(t, "output", t->outputs, &outputs, error));
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    for (int32_t i = 0; i < t->r.count; i++)
        if (inputs[i]) MR_TRY(make_placeholder(t, i, error));
    /* An input that no output needs remains: it can be fed. */
    for (int32_t i = 0; i < t->r.count; i++) outputs[i] |= inputs[i];
    return mr_rewrite_keep_reachable(&t->r, outputs, inputs, error);
}

/* ---- remove_nodes ---- */

static bool is_of(const mr_transforming *t, int32_t node)
{
    for (int32_t i = 0; i < t->transform->ops.count; i++)
        if (mr_rewrite_is(&t->r, node, t->transform->ops.items[i])) return true;
    return false;
}

static bool has_further_readers(const mr_rewrite *r, int32_t node)
{
    bool is_read = false;
    for (int32_t i = 1; i < 8 && !is_read; i++) is_read = mr_rewrite_is_read(r, node, i);
    return is_read;
}

static mr_status remove_nodes(mr_transforming *t, mr_error *error)
{
    mr_rewrite *r = &t->r;
    const mr_names ops = t->transform->ops;
    bool *outputs, *inputs;
    if (ops.count <= 0 || ops.items == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: remove_nodes without names of operators", r->what);
    for (int32_t i = 0; i < ops.count; i++)
        if (ops.items[i] == nullptr || mr_op_find(ops.items[i]) == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: remove_nodes: there is no operator %.100s", r->what,
                           ops.items[i] != nullptr ? ops.items[i] : "null");
    MR_TRY(mr_transform_marks(t, "output", t->outputs, &outputs, error));
    MR_TRY(mr_transform_marks(t, "input", t->inputs, &inputs, error));
    for (int32_t i = 0; i < r->count; i++) {
        if (r->removed[i] || outputs[i] || inputs[i] || !is_of(t, i)) continue;
        const int32_t inputs_count = mr_rewrite_data_count(r, i);
        const bool has_controls = (size_t)inputs_count != r->nodes[i]->n_input;
        if (inputs_count == 0 || has_controls || has_further_readers(r, i)) continue;
        mr_rewrite_replace_readers(r, (mr_rewrite_input){i, 0}, r->nodes[i]->input[0]);
        MR_TRY(mr_rewrite_remove(r, i, error));
    }
    return MR_OK;
}

/* ---- The list ---- */

static const struct {
    const char *name;
    mr_status (*apply)(mr_transforming *t, mr_error *error);
} transforms[] = {
    [MR_TRANSFORM_STRIP_UNUSED_NODES] = {"strip_unused_nodes", strip_unused},
    [MR_TRANSFORM_FOLD_CONSTANTS] = {"fold_constants", mr_transform_fold_constants},
    [MR_TRANSFORM_FOLD_BATCH_NORMS] = {"fold_batch_norms", mr_transform_fold_products},
    [MR_TRANSFORM_FOLD_OLD_BATCH_NORMS] = {"fold_old_batch_norms", mr_transform_fold_norms},
    [MR_TRANSFORM_QUANTIZE_WEIGHTS] = {"quantize_weights", mr_transform_quantize},
    [MR_TRANSFORM_REMOVE_NODES] = {"remove_nodes", remove_nodes},
};

static mr_status check_transform(const char *what, int32_t index, const mr_transform *t, mr_error *error)
{
    const char *useless = nullptr;
    if (t->kind < MR_TRANSFORM_STRIP_UNUSED_NODES || t->kind > MR_TRANSFORM_REMOVE_NODES)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: transform %d has the kind %d, which does not exist", what,
                       index, (int)t->kind);
    if (t->ops.count != 0 && t->kind != MR_TRANSFORM_REMOVE_NODES) useless = "ops";
    if (t->minimum_size != 0 && t->kind != MR_TRANSFORM_QUANTIZE_WEIGHTS) useless = "minimum_size";
    if (t->maximum_constant != 0 && t->kind != MR_TRANSFORM_FOLD_CONSTANTS) useless = "maximum_constant";
    if (t->ignore_errors && t->kind != MR_TRANSFORM_FOLD_CONSTANTS) useless = "ignore_errors";
    if (useless != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s: %s has no effect", what, transforms[t->kind].name, useless);
    if (t->minimum_size < 0 || t->maximum_constant < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s: %s is negative", what, transforms[t->kind].name,
                       t->minimum_size < 0 ? "minimum_size" : "maximum_constant");
    return MR_OK;
}

static mr_status check(const mr_graph *graph, mr_names outputs, mr_transforms list, const mr_tensor *result,
                       mr_error *error)
{
    const char *what = "mr_graph_transform";
    if (graph == nullptr || result == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %s is null", what, graph == nullptr ? "graph" : "graph_def");
    if (outputs.count == 0) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: there are no outputs", what);
    if (list.count < 0 || (list.count > 0 && list.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %d transforms at null", what, list.count);
    for (int32_t i = 0; i < list.count; i++) MR_TRY(check_transform(what, i, &list.items[i], error));
    return MR_OK;
}

mr_status mr_graph_transform(const mr_graph *graph, mr_names inputs, mr_names outputs, mr_transforms list,
                             mr_tensor *graph_def, mr_error *error)
{
    MR_TRY(check(graph, outputs, list, graph_def, error));
    *graph_def = (mr_tensor){0};
    mr_transforming t = {.graph = graph, .inputs = inputs, .outputs = outputs};
    bool *marks;
    mr_status status = mr_rewrite_init(&t.r, "mr_graph_transform", graph, error);
    if (status == MR_OK) status = mr_transform_marks(&t, "output", outputs, &marks, error);
    if (status == MR_OK) status = mr_transform_marks(&t, "input", inputs, &marks, error);
    for (int32_t i = 0; status == MR_OK && i < list.count; i++) {
        t.transform = &list.items[i];
        status = transforms[t.transform->kind].apply(&t, error);
    }
    if (status == MR_OK) status = mr_rewrite_finish(&t.r, graph_def, error);
    mr_rewrite_deinit(&t.r);
    return status;
}
