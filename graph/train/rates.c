/* The step counter, and learning rates that decay with it. */
#include "graph/train/train.h"
#include <millrace/ops.h>

#include <float.h>
#include <string.h>

mr_variable mr_global_step(mr_graph *graph)
{
    int32_t count = mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES);
    for (int32_t i = 0; i < count; i++) {
        mr_variable variable = mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i);
        if (strcmp(mr_node_name(variable.ref.node), "global_step") == 0) return variable;
    }
    mr_graph_push_scope(graph, "");
    mr_graph_push_control_dependencies(graph, nullptr, 0);
    int64_t zero = 0;
    mr_tensor value = {0};
    mr_error error = {0};
    mr_status status = mr_tensor_init_copy(&value, MR_INT64, MR_SCALAR, &zero, &error);
    if (status != MR_OK) (void)mr_graph_record(graph, status, &error);
    mr_graph_push_scope(graph, "global_step/Initializer/");
    mr_output initial = mr_constant(graph, &value, "zeros");
    mr_graph_pop_scope(graph);
    mr_variable variable = mr_variable_new(graph, "global_step", initial, .trainable = false);
    mr_graph_pop_control_dependencies(graph);
    mr_graph_pop_scope(graph);
    mr_tensor_deinit(&value);
    mr_graph_add_to_collection(graph, "global_step", variable.ref);
    return variable;
}

static mr_output as_float(mr_graph *graph, mr_output step)
{
    return mr_output_dtype(step) == MR_FLOAT ? step : mr_cast(graph, step, MR_FLOAT);
}

static mr_output exponential_decay(mr_graph *graph, float rate, mr_output step, int64_t steps, float decay,
                                   bool staircase)
{
    mr_output first = mr_train_float(graph, "initial_learning_rate", rate);
    mr_output length = mr_train_float(graph, "decay_steps", (float)steps);
    mr_output factor = mr_train_float(graph, "decay_rate", decay);
    mr_output part = mr_real_div(graph, as_float(graph, step), length, .name = "truediv");
    if (staircase) part = mr_floor(graph, part);
    return mr_mul(graph, first, mr_pow(graph, factor, part), .name = mr_train_own_name(graph));
}

mr_output mr_exponential_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps,
                               float decay_rate, bool staircase)
{
    mr_graph_push_scope(graph, "ExponentialDecay");
    mr_output value = mr_graph_failed_output(graph);
    if (mr_train_check_number(graph, "learning_rate", learning_rate, 0) &&
        mr_train_check_count(graph, "decay_steps", decay_steps, 1) &&
        mr_train_check_number(graph, "decay_rate", decay_rate, FLT_MIN))
        value = exponential_decay(graph, learning_rate, global_step, decay_steps, decay_rate, staircase);
    mr_graph_pop_scope(graph);
    return value;
}

static mr_output cosine_decay(mr_graph *graph, float rate, mr_output step, int64_t steps, float floor)
{
    mr_output first = mr_train_float(graph, "initial_learning_rate", rate);
    mr_output length = mr_train_float(graph, "decay_steps", (float)steps);
    mr_output done = mr_real_div(graph, mr_minimum(graph, as_float(graph, step), length), length, .name = "truediv");
    mr_output angle = mr_mul(graph, mr_train_float(graph, "Const", 3.14159265f), done);
    mr_output wave = mr_add_v2(graph, mr_train_float(graph, "add/x", 1), mr_cos(graph, angle), .name = "add");
    mr_output half = mr_mul(graph, mr_train_float(graph, "mul/x", 0.5f), wave);
    mr_output scaled = mr_mul(graph, mr_train_float(graph, "mul/x", 1 - floor), half);
    mr_output share = mr_add_v2(graph, scaled, mr_train_float(graph, "add/y", floor), .name = "add");
    return mr_mul(graph, first, share, .name = mr_train_own_name(graph));
}

mr_output mr_cosine_decay(mr_graph *graph, float learning_rate, mr_output global_step, int64_t decay_steps, float alpha)
{
    mr_graph_push_scope(graph, "CosineDecay");
    mr_output value = mr_graph_failed_output(graph);
    if (mr_train_check_number(graph, "learning_rate", learning_rate, 0) &&
        mr_train_check_count(graph, "decay_steps", decay_steps, 1) &&
        mr_train_check_range(graph, "alpha", alpha, 0, 1, true))
        value = cosine_decay(graph, learning_rate, global_step, decay_steps, alpha);
    mr_graph_pop_scope(graph);
    return value;
}
