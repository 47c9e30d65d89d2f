/* Advice: what in a profile takes the most time, and what could be faster. */
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/profiler_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct advice {
    mr_profile_advice list; /* what the program sees */
    mr_arena arena;
    mr_advice *items;
    int32_t capacity;
} advice;

static const char expensive[] = "ExpensiveOperationChecker";
static const char operation[] = "OperationChecker";
static const char utilization[] = "AcceleratorUtilizationChecker";

/* text: in the arena; null: no memory. Names in it may have control characters. */
static mr_status add(advice *a, const char *checker, char *text, mr_error *error)
{
    if (text == nullptr) return mr_fail_memory(error, 256);
    for (char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f) *at = '?';
    if (a->list.count == a->capacity) {
        const int32_t capacity = a->capacity > 0 ? 2 * a->capacity : 16;
        mr_advice *items = MR_ARENA_NEW(&a->arena, mr_advice, (size_t)capacity);
        if (items == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *items);
        if (a->capacity > 0) memcpy(items, a->items, (size_t)a->capacity * sizeof *items);
        a->items = items;
        a->list.items = items;
        a->capacity = capacity;
    }
    a->items[a->list.count++] = (mr_advice){checker, text};
    return MR_OK;
}

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* ---- Expensive operators and scopes ---- */

constexpr int32_t EXPENSIVE_MAX = 3;

static mr_status add_expensive(advice *a, const mr_profile *profile, mr_profile_kind kind, const char *what,
                               int64_t min_micros, mr_error *error)
{
    mr_profile_view *view;
    const mr_profile_options options = {
        .size = sizeof options, .min_micros = min_micros, .order_by = MR_PROFILE_MICROS};
    MR_TRY(mr_profile_view_new(profile, kind, &options, &view, error));
    const mr_profile_entry *root = mr_profile_view_root(view);
    mr_status status = MR_OK;
    for (int32_t i = 0; status == MR_OK && i < root->child_count && i < EXPENSIVE_MAX; i++) {
        const mr_profile_entry *entry = root->children[i];
        const mr_profile_figures *figures = kind == MR_PROFILE_OP ? &entry->own : &entry->total;
        if (figures->micros == 0) break;
        status = add(a, expensive,
                     mr_arena_printf(&a->arena, "%s %s takes %.3f ms, %.1f %% of the time (%.3f ms on accelerators)",
                                     what, entry->name, (double)figures->micros / 1e3,
                                     percent(figures->micros, root->total.micros),
                                     (double)figures->accelerator_micros / 1e3),
                     error);
    }
    mr_profile_view_free(view);
    return status;
}

/* ---- Forms of operators ---- */

static bool is_on_accelerator(const mr_profile_node *node)
{
    return node->device != nullptr && strstr(node->device, "gpu") != nullptr;
}

static mr_status check_operators(advice *a, const mr_profile *profile, mr_error *error)
{
    const mr_profile_node *normalization = nullptr, *nhwc = nullptr;
    bool has_fused = false;
    for (int32_t i = 0; i < profile->node_count; i++) {
        const mr_profile_node *node = profile->nodes[i];
        if (normalization == nullptr && strstr(node->name, "BatchNorm") != nullptr) normalization = node;
        if (nhwc == nullptr && node->uses_nhwc && is_on_accelerator(node)) nhwc = node;
        has_fused |= strncmp(node->op, "FusedBatchNorm", 14) == 0;
    }
    if (normalization != nullptr && !has_fused)
        MR_TRY(add(a, operation,
                   mr_arena_printf(&a->arena,
                                   "%s belongs to a batch normalization of single operators; FusedBatchNorm is faster",
                                   normalization->name),
                   error));
    if (nhwc != nullptr)
        MR_TRY(add(
            a, operation,
            mr_arena_printf(&a->arena, "%s runs on a GPU with data_format NHWC; NCHW may be faster there", nhwc->name),
            error));
    return MR_OK;
}

/* ---- Utilization ---- */

static int by_device(const void *a, const void *b)
{
    const mr_profile_node *const *x = a, *const *y = b;
    return strcmp((*x)->device, (*y)->device);
}

/* The last step of nodes that have the same device. */
static mr_status check_device(advice *a, const mr_profile_node *const *nodes, int32_t count, mr_error *error)
{
    int64_t start = INT64_MAX, end = 0, busy = 0;
    for (int32_t i = 0; i < count; i++) {
        const mr_profile_execution *last = nodes[i]->executions;
        if (last == nullptr || last->start_micros == 0) continue;
        start = last->start_micros < start ? last->start_micros : start;
        end = last->end_micros > end ? last->end_micros : end;
        busy = mr_profile_add(busy, last->figures.accelerator_micros);
    }
    if (end <= start) return MR_OK;
    const double share = percent(busy, end - start);
    return add(a, utilization,
               mr_arena_printf(&a->arena, "%s computes for %.1f %% of the step%s", nodes[0]->device, share,
                               share < 50 ? ", which is little" : ""),
               error);
}

static mr_status check_utilization(advice *a, const mr_profile *profile, mr_error *error)
{
    const mr_profile_node **nodes = MR_ARENA_NEW(&a->arena, const mr_profile_node *, (size_t)profile->node_count + 1);
    if (nodes == nullptr) return mr_fail_memory(error, (size_t)profile->node_count * sizeof(mr_profile_node *));
    int32_t count = 0;
    for (int32_t i = 0; i < profile->node_count; i++)
        if (is_on_accelerator(profile->nodes[i])) nodes[count++] = profile->nodes[i];
    qsort(nodes, (size_t)count, sizeof(mr_profile_node *), by_device);
    for (int32_t begin = 0, last; begin < count; begin = last) {
        for (last = begin + 1; last < count && strcmp(nodes[last]->device, nodes[begin]->device) == 0; last++) {}
        MR_TRY(check_device(a, nodes + begin, last - begin, error));
    }
    return MR_OK;
}

/* ---- Advice ---- */

static mr_status examine(advice *a, const mr_profile *profile, mr_error *error)
{
    if (profile->step_count > 0) {
        MR_TRY(add_expensive(a, profile, MR_PROFILE_OP, "operator", 1, error));
        MR_TRY(add_expensive(a, profile, MR_PROFILE_SCOPE, "scope", 100, error));
        MR_TRY(check_utilization(a, profile, error));
    }
    return check_operators(a, profile, error);
}

mr_status mr_profile_advise(const mr_profile *profile, mr_profile_advice **list, mr_error *error)
{
    if (list == nullptr) return mr_session_null("mr_profile_advise: advice", error);
    *list = nullptr;
    if (profile == nullptr) return mr_session_null("mr_profile_advise: profile", error);
    advice *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    const mr_status status = examine(made, profile, error);
    if (status == MR_OK)
        *list = &made->list;
    else
        mr_profile_advice_free(&made->list);
    return status;
}

void mr_profile_advice_free(mr_profile_advice *list)
{
    static_assert(offsetof(advice, list) == 0);
    if (list == nullptr) return;
    advice *a = (advice *)list;
    mr_arena_deinit(&a->arena);
    free(a);
}
