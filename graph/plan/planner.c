/* The planner: runs the passes in sequence. */
#include "base/cpu.h"
#include "graph/plan/plan.h"

#include <assert.h>

static void release_constants(mr_planner *planner)
{
    for (int32_t i = 0; i < planner->value_count; i++) mr_tensor_deinit(&planner->values[i].constant);
}

mr_status mr_plan_make(const mr_signature *signature, const mr_plan_context *context, mr_program **program,
                       mr_error *error)
{
    mr_planner planner = {.context = context, .signature = signature};
    uint64_t version = context->graph->version;
    static const struct pass {
        mr_status (*run)(mr_planner *, mr_error *);
        bool is_optimization;
    } passes[] = {
        {mr_plan_prune, false},
        {mr_plan_flow, false},
        {mr_plan_place, false},
        {mr_plan_fold, false},
        {mr_plan_share, true},
        {mr_plan_loosen, true},
        {mr_plan_drop, true},
        {mr_plan_fuse, true},
        {mr_plan_fuse_pool, true},
        {mr_plan_fuse_products, true},
        {mr_plan_fuse_steps, true},
        {mr_plan_fuse_adam, true},
        {mr_plan_fuse_heads, true},
        {mr_plan_recompute_elementwise, true},
        {mr_plan_fuse_elementwise, true},
        {mr_plan_copy, false},
        {mr_plan_order, false},
        {mr_plan_recompute, true},
        {mr_plan_segments, false},
        {mr_plan_lower, false},
    };
    mr_status status = mr_graph_status(context->graph, error);
    bool flushes = mr_cpu_flush_subnormals(true); /* folding computes as runs do */
    for (size_t i = 0; status == MR_OK && i < sizeof passes / sizeof passes[0]; i++)
        if (mr_plan_optimizes(&planner) || !passes[i].is_optimization) status = passes[i].run(&planner, error);
    (void)mr_cpu_flush_subnormals(flushes);
    release_constants(&planner);
    mr_arena_deinit(&planner.arena);
    mr_arena_deinit(&planner.kept);
    if (status != MR_OK) return status;
    assert(planner.program && context->graph->version == version); /* planning does not change the graph */
    planner.program->graph_version = version;
    *program = planner.program;
    return MR_OK;
}
