/* Fold: computes what depends only on constants once, when the plan is made.
 *
 * Constants come from three sources: Const nodes; integers known from shape inference (sizes of fully known shapes and
 * what is computed from them); and stateless nodes whose inputs are all constants, which run here with their CPU
 * kernels. A result larger than FOLDED_BYTES_MAX, or REPEATED_BYTES_MAX if it only repeats numbers, is computed in each
 * run instead: the plan does not hold a step's temporary results, or the zeros of an optimizer's variables. A node
 * with control inputs, and everything whose value depends on its value, is not folded and keeps its position in the
 * order. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>
#include <time.h>

constexpr size_t FOLDED_BYTES_MAX = (size_t)10 << 20, REPEATED_BYTES_MAX = (size_t)128 << 10;
/* Of a plan. What takes longer is left to the runs, whose time can be limited. */
constexpr uint64_t FOLDING_NS_MAX = 1'000'000'000;
constexpr int32_t FOLDED_INPUTS_MAX = 64;
constexpr int32_t FOLDED_OUTPUTS_MAX = 16;

/* Inference deduced values from constants; if one of these is fed, the values may be wrong. */
static bool feeds_a_constant(const mr_signature *signature)
{
    for (int32_t i = 0; i < signature->feed_count; i++) {
        const mr_node *node = signature->feeds[i].node;
        if (node->outputs[signature->feeds[i].index].value || mr_node_has_flag(node, MR_OP_CONSTANT)) return true;
    }
    return false;
}

static void make_constant(mr_planner *planner, mr_plan_node *node, int32_t output, mr_tensor constant)
{
    mr_plan_value *value = &planner->values[node->first_output + output];
    assert(value->kind == MR_VALUE_OUTPUT && !value->is_ref && !value->constant.data);
    assert(constant.dtype == value->dtype && !mr_tensor_device(&constant));
    value->kind = MR_VALUE_CONSTANT;
    value->constant = constant;
    value->shape = constant.shape;
    value->home = nullptr;
}

/* Whether the value of a node, which is known from inference, follows from the value of a node with control inputs. */
static bool is_anchored(const mr_planner *planner, const mr_plan_node *node, const bool *anchored)
{
    for (int32_t i = 0; i < node->input_count; i++) {
        int32_t producer = planner->values[node->inputs[i]].producer;
        if (producer >= 0 && anchored[producer]) return true;
    }
    return false;
}

static bool is_known(const mr_plan_node *node)
{
    return mr_node_has_flag(node->node, MR_OP_CONSTANT) || (node->output_count == 1 && node->node->outputs[0].value);
}

/* Folds a Const, or a value known from inference. */
static bool fold_known(mr_planner *planner, mr_plan_node *node, bool trust_inference)
{
    bool is_const = mr_node_has_flag(node->node, MR_OP_CONSTANT);
    if (!is_const && (!trust_inference || node->control_count > 0 || node->output_count != 1)) return false;
    if (!is_const && (node->region > 0 || node->condition > 0)) return false;
    const mr_plan_value *value = &planner->values[node->first_output];
    if (value->kind != MR_VALUE_OUTPUT || value->is_ref) return false;
    if (!is_const && node->node->def->op->flags & MR_OP_STATEFUL) return false;
    mr_tensor known = {0};
    if (!mr_output_constant((mr_output){(mr_node *)node->node, 0}, &known)) return false;
    if (known.dtype != value->dtype) {
        mr_tensor_deinit(&known);
        return false;
    }
    make_constant(planner, node, 0, known);
    return true;
}

static size_t bytes_max(const mr_plan_node *node)
{
    return mr_node_has_flag(node->node, MR_OP_REPEATS) ? REPEATED_BYTES_MAX : FOLDED_BYTES_MAX;
}

static bool may_compute(const mr_planner *planner, const mr_plan_node *node)
{
    if (node->control_count > 0 || node->input_count == 0 || node->input_count > FOLDED_INPUTS_MAX) return false;
    if (node->output_count == 0 || node->output_count > FOLDED_OUTPUTS_MAX || node->pinned) return false;
    if (node->node->def->op->flags & MR_OP_STATEFUL || mr_node_flow(node->node) != MR_FLOW_NONE) return false;
    for (int32_t i = 0; i < node->input_count; i++) {
        const mr_plan_value *value = &planner->values[node->inputs[i]];
        if (value->kind != MR_VALUE_CONSTANT || value->is_ref || value->dtype == MR_RESOURCE) return false;
        if (planner->nodes[value->producer].control_count > 0) return false;
    }
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        if (value->is_ref || value->dtype == MR_RESOURCE || value->dtype == MR_VARIANT) return false;
        if (mr_plan_value_bytes(value) > bytes_max(node)) return false;
    }
    return true;
}

/* Runs a kernel once, outside of any plan. The outputs are owned by the caller. */
static mr_status evaluate(mr_planner *planner, const mr_plan_node *node, const mr_kernel *kernel, mr_tensor *outputs)
{
    mr_device *device = planner->context->cpu;
    assert(node->input_count <= FOLDED_INPUTS_MAX && node->output_count <= FOLDED_OUTPUTS_MAX);
    assert(kernel->device == MR_DEVICE_CPU);
    mr_tensor inputs[FOLDED_INPUTS_MAX];
    bool may_reuse[FOLDED_INPUTS_MAX] = {0};
    mr_dtype input_dtypes[FOLDED_INPUTS_MAX], output_dtypes[FOLDED_OUTPUTS_MAX];
    for (int32_t i = 0; i < node->input_count; i++) {
        assert(planner->values[node->inputs[i]].kind == MR_VALUE_CONSTANT);
        inputs[i] = planner->values[node->inputs[i]].constant;
        input_dtypes[i] = inputs[i].dtype;
    }
    for (int32_t i = 0; i < node->output_count; i++) output_dtypes[i] = planner->values[node->first_output + i].dtype;
    mr_kernel_node kernel_node = {.name = node->node->name,
                                  .op = node->node->op,
                                  .attrs = &node->node->attrs,
                                  .input_count = node->input_count,
                                  .output_count = node->output_count,
                                  .input_dtypes = input_dtypes,
                                  .output_dtypes = output_dtypes,
                                  .device = device};
    void *prepared = nullptr;
    mr_error ignored = {0};
    if (kernel->prepared_size_bytes > 0) {
        prepared = mr_arena_alloc(&planner->arena, kernel->prepared_size_bytes);
        if (!prepared) return MR_RESOURCE_EXHAUSTED;
        MR_TRY(kernel->prepare(&kernel_node, prepared, &ignored));
    }
    mr_kernel_call call = {.node = &kernel_node,
                           .prepared = prepared,
                           .device = device,
                           .inputs = inputs,
                           .may_reuse = may_reuse,
                           .outputs = outputs};
    return kernel->run(&call, &ignored);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1'000'000'000u + (uint64_t)now.tv_nsec;
}

/* A kernel that fails here fails again in the run, which reports its error. */
static void fold_computed(mr_planner *planner, mr_plan_node *node)
{
    const mr_kernel *kernel = node->kernel;
    if (kernel && kernel->device != MR_DEVICE_CPU)
        kernel = mr_kernel_find(mr_op_kernel_name(node->node->def->op), MR_DEVICE_CPU, &node->node->attrs);
    if (!kernel || !kernel->run) return;
    mr_tensor outputs[FOLDED_OUTPUTS_MAX] = {0};
    bool folded = evaluate(planner, node, kernel, outputs) == MR_OK;
    for (int32_t i = 0; i < node->output_count; i++) {
        const mr_plan_value *value = &planner->values[node->first_output + i];
        folded &= outputs[i].dtype == value->dtype && mr_tensor_size_bytes(&outputs[i]) <= bytes_max(node);
    }
    for (int32_t i = 0; i < node->output_count; i++) {
        if (folded)
            make_constant(planner, node, i, outputs[i]);
        else
            mr_tensor_deinit(&outputs[i]);
    }
    if (!folded) return;
    node->kernel = nullptr;
    node->input_count = 0;
}

mr_status mr_plan_fold(mr_planner *planner, mr_error *error)
{
    int32_t *order, count;
    MR_TRY(mr_plan_topological(planner, &order, &count, error));
    bool trust_inference = mr_plan_optimizes(planner) && !feeds_a_constant(planner->signature);
    bool *anchored = MR_ARENA_NEW(&planner->arena, bool, (size_t)planner->node_count + 1);
    if (!anchored) return mr_fail_memory(error, (size_t)planner->node_count);
    uint64_t deadline_ns = now_ns() + FOLDING_NS_MAX;
    for (int32_t i = 0; i < count; i++) {
        mr_plan_node *node = &planner->nodes[order[i]];
        bool after = is_anchored(planner, node, anchored);
        anchored[order[i]] = is_known(node) && (after || node->control_count > 0);
        if (!node->kernel && node->output_count > 0 && planner->values[node->first_output].constant.data) continue;
        if (fold_known(planner, node, trust_inference && !after)) {
            node->kernel = nullptr;
            node->input_count = 0;
        } else if (mr_plan_optimizes(planner) && may_compute(planner, node) && now_ns() < deadline_ns) {
            fold_computed(planner, node);
        }
    }
    mr_plan_sweep(planner);
    return mr_plan_check_kernels(planner, error);
}
