/* The nodes of a profile and their figures. */
#include "graph/train/profiler_node.h"

#include "base/status.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Figures ---- */

constexpr size_t FIGURE_COUNT = sizeof(mr_profile_figures) / sizeof(int64_t);

void mr_profile_figures_add(mr_profile_figures *total, const mr_profile_figures *figures)
{
    int64_t sums[FIGURE_COUNT], more[FIGURE_COUNT];
    memcpy(sums, total, sizeof sums);
    memcpy(more, figures, sizeof more);
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        assert(sums[i] >= 0 && more[i] >= 0);
        sums[i] = mr_profile_add(sums[i], more[i]);
    }
    memcpy(total, sums, sizeof sums);
}

static mr_profile_figures average(const mr_profile_execution *executions)
{
    int64_t sums[FIGURE_COUNT], count = 0;
    mr_profile_figures figures = {0};
    for (const mr_profile_execution *each = executions; each != nullptr; each = each->next, count++)
        mr_profile_figures_add(&figures, &each->figures);
    if (count == 0) return figures;
    memcpy(sums, &figures, sizeof sums);
    for (size_t i = 0; i < FIGURE_COUNT; i++) sums[i] /= count;
    memcpy(&figures, sums, sizeof sums);
    return figures;
}

mr_profile_figures mr_profile_node_figures(const mr_profile_node *node, const int64_t *step)
{
    mr_profile_figures figures = {0};
    const mr_profile_execution *each = node->executions;
    if (step != nullptr) {
        while (each != nullptr && each->step > *step) each = each->next;
        if (each != nullptr && each->step == *step) figures = each->figures;
    } else {
        figures = average(each);
    }
    figures.parameters = mr_profile_node_parameters(node);
    figures.float_ops =
        node->executions == nullptr ? node->float_ops : mr_profile_multiply(node->float_ops, figures.run_count);
    figures.definition_count = 1;
    return figures;
}

int64_t mr_profile_node_parameters(const mr_profile_node *node)
{
    const int64_t count = mr_shape_count(node->shape);
    return count > 0 ? count : 0;
}

/* ---- Nodes ---- */

mr_status mr_profile_check_name(const char *name, mr_error *error)
{
    int scopes = 0;
    for (const char *at = name; (at = strchr(at, '/')) != nullptr; at++)
        if (++scopes > MR_PROFILE_SCOPES_MAX)
            return mr_fail(error, MR_INVALID_ARGUMENT, "profile: the name %.100s… has more than %d scopes", name,
                           MR_PROFILE_SCOPES_MAX);
    return MR_OK;
}

mr_status mr_profile_add_node(mr_profile *profile, const char *name, const char *op, mr_profile_node **node,
                              mr_error *error)
{
    if (profile->node_count == profile->node_capacity) {
        if (profile->node_capacity > INT32_MAX / 2) return mr_fail_memory(error, SIZE_MAX);
        const int32_t capacity = profile->node_capacity > 0 ? 2 * profile->node_capacity : 64;
        mr_profile_node **nodes = realloc(profile->nodes, (size_t)capacity * sizeof(mr_profile_node *));
        if (nodes == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof(mr_profile_node *));
        profile->nodes = nodes;
        profile->node_capacity = capacity;
    }
    mr_profile_node *added = MR_ARENA_NEW(&profile->arena, mr_profile_node, 1);
    if (added == nullptr) return mr_fail_memory(error, sizeof *added);
    MR_TRY(mr_name_table_set(&profile->names, name, profile->node_count, error));
    *added = (mr_profile_node){.name = name, .op = op, .shape = MR_SHAPE_UNKNOWN};
    profile->nodes[profile->node_count++] = added;
    *node = added;
    return MR_OK;
}

/* ---- Steps ---- */

static int compare_steps(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

bool mr_profile_has_step(const mr_profile *profile, int64_t step)
{
    return profile->step_count > 0 &&
           bsearch(&step, profile->steps, (size_t)profile->step_count, sizeof step, compare_steps) != nullptr;
}
