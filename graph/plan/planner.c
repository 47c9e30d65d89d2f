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
    static mr_status (*const passes[])(mr_planner *, mr_error *) = {
        mr_plan_prune,
        mr_plan_flow,
        mr_plan_place,
        mr_plan_fold,
        mr_plan_share,
        mr_plan_drop,
        mr_plan_fuse,
        mr_plan_fuse_pool,
        mr_plan_fuse_products,
        mr_plan_fuse_steps,
        mr_plan_fuse_elementwise,
        mr_plan_copy,
        mr_plan_order,
        mr_plan_recompute,
        mr_plan_segments,
        mr_plan_lower,
    };
    bool optimizes = mr_plan_optimizes(&planner);
    mr_status status = mr_graph_status(context->graph, error);
    bool flushes = mr_cpu_flush_subnormals(true); /* folding computes as runs do */
    for (size_t i = 0; status == MR_OK && i < sizeof passes / sizeof passes[0]; i++) {
        bool is_optional = passes[i] == mr_plan_share || passes[i] == mr_plan_drop || passes[i] == mr_plan_fuse ||
                           passes[i] == mr_plan_fuse_pool || passes[i] == mr_plan_fuse_products ||
                           passes[i] == mr_plan_fuse_steps || passes[i] == mr_plan_fuse_elementwise ||
                           passes[i] == mr_plan_recompute;
        if (optimizes || !is_optional) status = passes[i](&planner, error);
    }
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
