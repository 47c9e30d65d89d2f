/* Profiles of graphs: creation, and what the program adds to the nodes. */
#include "graph/train/profiler_flops.h"

#include "base/status.h"
#include "graph/run/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

static mr_status add_type(mr_profile *profile, mr_profile_node *node, const char *name, mr_error *error)
{
    mr_profile_type *type = MR_ARENA_NEW(&profile->arena, mr_profile_type, 1);
    if (type == nullptr) return mr_fail_memory(error, sizeof *type);
    type->name = mr_arena_strdup(&profile->arena, name);
    if (type->name == nullptr) return mr_fail_memory(error, strlen(name) + 1);
    type->next = node->types;
    node->types = type;
    return MR_OK;
}

/* ---- The graph ---- */

static int by_node_name(const void *a, const void *b)
{
    const mr_node *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Control inputs are sorted, as in the files that TensorFlow writes. */
static mr_status copy_inputs(mr_profile *profile, const mr_node *node, mr_profile_node *copy, mr_error *error)
{
    const size_t count = (size_t)node->input_count + (size_t)node->control_count;
    if (count == 0) return MR_OK;
    copy->inputs = MR_ARENA_NEW(&profile->arena, mr_profile_input, count);
    const mr_node **controls = MR_ARENA_NEW(&profile->arena, const mr_node *, (size_t)node->control_count + 1);
    if (copy->inputs == nullptr || controls == nullptr) return mr_fail_memory(error, count * sizeof *copy->inputs);
    for (int32_t i = 0; i < node->input_count; i++)
        copy->inputs[copy->input_count++] = (mr_profile_input){node->inputs[i].node->id, node->inputs[i].index};
    for (int32_t i = 0; i < node->control_count; i++) controls[i] = node->controls[i];
    qsort(controls, (size_t)node->control_count, sizeof(mr_node *), by_node_name);
    for (int32_t i = 0; i < node->control_count; i++)
        copy->inputs[copy->input_count++] = (mr_profile_input){controls[i]->id, -1};
    return MR_OK;
}

static mr_status copy_outputs(mr_profile *profile, const mr_node *node, mr_profile_node *copy, mr_error *error)
{
    if (node->output_count == 0) return MR_OK;
    copy->outputs = MR_ARENA_NEW(&profile->arena, mr_shape, (size_t)node->output_count);
    if (copy->outputs == nullptr) return mr_fail_memory(error, (size_t)node->output_count * sizeof(mr_shape));
    /* Files of TensorFlow may also have the shapes that Python knew, such as those in loops. */
    const mr_attr *known = mr_attrs_find(&node->attrs, "_output_shapes");
    if (known != nullptr && (known->kind != MR_ATTR_SHAPE || !known->is_list || known->count != node->output_count))
        known = nullptr;
    for (int32_t i = 0; i < node->output_count; i++) {
        copy->outputs[i] = node->outputs[i].shape;
        mr_shape merged;
        if (known != nullptr && mr_shape_merge(copy->outputs[i], known->values[i].shape, &merged, nullptr) == MR_OK)
            copy->outputs[i] = merged;
    }
    copy->output_count = node->output_count;
    return MR_OK;
}

static mr_status copy_node(mr_profile *profile, const mr_node *node, mr_error *error)
{
    mr_profile_node *copy;
    const char *name = mr_arena_strdup(&profile->arena, node->name), *op = mr_arena_strdup(&profile->arena, node->op);
    const mr_attr *shape = mr_attrs_find(&node->attrs, "shape");
    if (name == nullptr || op == nullptr) return mr_fail_memory(error, strlen(node->name) + 1);
    MR_TRY(mr_profile_check_name(name, error));
    MR_TRY(mr_profile_add_node(profile, name, op, &copy, error));
    MR_TRY(copy_inputs(profile, node, copy, error));
    MR_TRY(copy_outputs(profile, node, copy, error));
    if (shape != nullptr && shape->kind == MR_ATTR_SHAPE && !shape->is_list) copy->shape = shape->values[0].shape;
    copy->uses_nhwc = mr_string_equal(mr_attr_string_or(&node->attrs, "data_format", ""), MR_STR("NHWC"));
    mr_flops_rule_init(&copy->flops, node);
    return MR_OK;
}

static mr_status copy_graph(mr_profile *profile, const mr_graph *graph, mr_error *error)
{
    MR_TRY(mr_graph_check_complete(graph, error));
    for (int32_t i = 0; i < graph->node_count; i++) {
        assert(graph->nodes[i]->id == i && profile->node_count == i);
        MR_TRY(copy_node(profile, graph->nodes[i], error));
    }
    profile->graph_node_count = profile->node_count;
    for (int32_t i = 0; i < profile->node_count; i++)
        profile->nodes[i]->float_ops = mr_profile_count_float_ops(profile, profile->nodes[i]);
    const int32_t count = mr_graph_variable_count(graph, MR_TRAINABLE_VARIABLES);
    for (int32_t i = 0; i < count; i++) {
        const mr_node *variable = mr_graph_variable(graph, MR_TRAINABLE_VARIABLES, i).ref.node;
        if (variable == nullptr) continue;
        assert(variable->id < profile->node_count && profile->nodes != nullptr);
        MR_TRY(add_type(profile, profile->nodes[variable->id], MR_PROFILE_TRAINABLE, error));
    }
    return MR_OK;
}

mr_status mr_profile_new(const mr_graph *graph, mr_profile **profile, mr_error *error)
{
    if (profile == nullptr) return mr_session_null("mr_profile_new: profile", error);
    *profile = nullptr;
    if (graph == nullptr) return mr_session_null("mr_profile_new: graph", error);
    mr_profile *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    const mr_status status = copy_graph(made, graph, error);
    if (status == MR_OK)
        *profile = made;
    else
        mr_profile_free(made);
    return status;
}

void mr_profile_free(mr_profile *profile)
{
    if (profile == nullptr) return;
    mr_name_table_deinit(&profile->names);
    mr_arena_deinit(&profile->arena);
    free(profile->nodes);
    free(profile->steps);
    free(profile);
}

/* ---- What the program adds ---- */

static mr_status find_node(const mr_profile *profile, const char *function, const char *name, mr_profile_node **node,
                           mr_error *error)
{
    if (profile == nullptr || name == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the %s is null", function,
                       profile == nullptr ? "profile" : "name of the node");
    const int32_t index = mr_name_table_get(&profile->names, name, -1);
    if (index < 0) return mr_fail(error, MR_NOT_FOUND, "%s: the profile has no node %s", function, name);
    *node = profile->nodes[index];
    return MR_OK;
}

mr_status mr_profile_add_type(mr_profile *profile, const char *node, const char *type, mr_error *error)
{
    mr_profile_node *found;
    MR_TRY(find_node(profile, "mr_profile_add_type", node, &found, error));
    if (type == nullptr || *type == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_profile_add_type: the type of %s is %s", node,
                       type == nullptr ? "null" : "empty");
    return add_type(profile, found, type, error);
}

mr_status mr_profile_set_float_ops(mr_profile *profile, const char *node, int64_t float_ops, mr_error *error)
{
    mr_profile_node *found;
    MR_TRY(find_node(profile, "mr_profile_set_float_ops", node, &found, error));
    if (float_ops < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_profile_set_float_ops: %s has %lld float operations, less than 0", node,
                       (long long)float_ops);
    found->flops = (mr_flops_rule){.formula = MR_FLOPS_SET};
    found->float_ops = float_ops;
    return MR_OK;
}
