/* Adam's update of a sparse gradient: both moments decay in all rows, and the gradient's rows are added; the variable
 * changes in all rows. */
#include "graph/train/optimizer_kinds.h"
#include <millrace/ops.h>

static bool is_resource(mr_output ref)
{
    return mr_output_dtype(ref) == MR_RESOURCE;
}

/* The value after the node, or now. */
static mr_output value_after(mr_graph *graph, mr_output ref, mr_dtype dtype, mr_node *after)
{
    if (!is_resource(ref)) return ref;
    mr_graph_push_control_dependencies(graph, &after, after != nullptr);
    mr_output value = mr_read_variable_op(graph, ref, dtype);
    mr_graph_pop_control_dependencies(graph);
    return value;
}

/* moment = decay * moment, then + values in the rows of indices. Returns its value after that. */
static mr_output move(const mr_optimizer_update *u, mr_output moment, mr_output decay, mr_output values)
{
    mr_graph *graph = u->graph;
    const mr_dtype dtype = mr_output_dtype(values);
    mr_output decayed = mr_mul(graph, value_after(graph, moment, dtype, nullptr), decay);
    mr_output result = {0};
    if (is_resource(moment)) {
        mr_node *assigned = mr_assign_variable_op(graph, moment, decayed);
        mr_graph_push_control_dependencies(graph, &assigned, 1);
        mr_node *added = mr_resource_scatter_add(graph, moment, u->indices, values);
        mr_graph_pop_control_dependencies(graph);
        result = value_after(graph, moment, dtype, added);
    } else {
        mr_node *assigned = mr_assign(graph, moment, decayed).node;
        mr_graph_push_control_dependencies(graph, &assigned, 1);
        result = mr_scatter_add(graph, moment, u->indices, values);
        mr_graph_pop_control_dependencies(graph);
    }
    return result;
}

mr_output mr_optimizer_adam_rows(const mr_optimizer_update *u)
{
    mr_graph *graph = u->graph;
    mr_output one = mr_constant_float(graph, 1), beta1 = u->numbers[MR_NUMBER_BETA1];
    mr_output beta2 = u->numbers[MR_NUMBER_BETA2], epsilon = u->numbers[MR_NUMBER_EPSILON];
    mr_output root = mr_sqrt(graph, mr_sub(graph, one, u->powers[1]));
    mr_output rate = mr_real_div(graph, mr_mul(graph, u->rate, root), mr_sub(graph, one, u->powers[0]));
    mr_output m = move(u, u->slots[0], beta1, mr_mul(graph, u->values, mr_sub(graph, one, beta1)));
    mr_output squares = mr_mul(graph, u->values, u->values);
    mr_output v = move(u, u->slots[1], beta2, mr_mul(graph, squares, mr_sub(graph, one, beta2)));
    mr_output change = mr_real_div(graph, mr_mul(graph, rate, m), mr_add_v2(graph, mr_sqrt(graph, v), epsilon));
    return is_resource(u->variable) ? (mr_output){mr_assign_sub_variable_op(graph, u->variable, change), 0}
                                    : mr_assign_sub(graph, u->variable, change);
}
