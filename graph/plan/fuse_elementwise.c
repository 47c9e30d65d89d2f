/* Fuse elementwise: computes elementwise operators that depend on each other in one call, which reads and writes memory
 * once (kernels/elementwise_chain.c). Floats and doubles on the CPU.
 *
 * A group begins with each such node. In topological order, the group of a node and the group of a node whose output it
 * reads become one if their results have the same static shape, if they run under the same conditions, and if no path
 * leaves the new group and comes back to it. Results that others read are outputs of the group.
 *
 * Reductions of the last dimension are members, too: softmax, its gradient, and the normalization of a layer are one
 * call, which computes row by row. What has one element for each row belongs to it, also if it is moved in between (see
 * row_forms.c).
 *
 * All of a group is computed when the last input is there. So either no member comes after an update of a reference
 * variable, since updates wait for these, or all do, and then after all updates of what they read; and all come after
 * the same nodes that may wait. */
#include "graph/plan/plan.h"

#include <assert.h>
#include <string.h>

constexpr int32_t STEPS_MAX = MR_ELEMENTWISE_STEPS_MAX, INPUTS_MAX = MR_ELEMENTWISE_INPUTS_MAX,
                  OUTPUTS_MAX = MR_ELEMENTWISE_OUTPUTS_MAX;
/* Positions in the topological order that a group may span, and edges that are examined for a path: groups that are
 * farther apart stay so. */
constexpr int32_t SPAN_MAX = 256, EDGES_MAX = 512;
/* Updates of a variable that are examined: the gradients of an embedding are two. */
constexpr int32_t UPDATES_MAX = 8;

typedef struct group {
    int32_t members[STEPS_MAX]; /* plan nodes, in topological order */
    int32_t count, step_count;
    uint64_t waiting;   /* see find_waiting */
    bool after_updates; /* see plan.h */
    bool has_rows;      /* it reduces rows */
    mr_shape wide;      /* then: of what is reduced */
} group;

typedef struct fuser {
    mr_planner *planner;
    int32_t *order, order_count; /* topological */
    int32_t *position;           /* by node: in order */
    int32_t *low;                /* by position: the first position of the groups that begin before it and end after */
    int32_t *uses;               /* by value, see plan.h */
    int32_t *instead;            /* by value: the value that replaces it */
    group **group_of;            /* by node; null: it is not elementwise */
    int32_t *visited;            /* by node: the last search that has reached it */
    int32_t search;
    int32_t *stack;
    int32_t *updates; /* by value, for variables: the nodes that update it */
} fuser;

/* ---- Elementwise nodes ---- */

/* Whether the node may be computed later than now, with others. */
static bool may_be_member(const mr_plan_node *node)
{
    return node->live && node->kernel && !node->is_copy && !node->attrs && !node->pinned && node->control_count == 0 &&
           !node->outputs_at && node->output_count == 1 && mr_node_flow(node->node) == MR_FLOW_NONE &&
           node->device->kind == MR_DEVICE_CPU && node->input_count > 0;
}

/* Whether the node only computes a row loop of floats or doubles. */
static bool is_elementwise(const mr_planner *planner, const mr_plan_node *node)
{
    mr_elementwise loops;
    if (!node->kernel->elementwise) return false;
    const mr_plan_value *value = &planner->values[node->first_output];
    const mr_dtype dtype = value->dtype;
    if ((dtype != MR_FLOAT && dtype != MR_DOUBLE) || value->shape.rank < 0 || mr_shape_count(value->shape) == 1)
        return false;
    for (int32_t i = 0; i < node->input_count; i++) {
        if (planner->values[node->inputs[i]].dtype != dtype) return false;
    }
    if (!node->kernel->elementwise(dtype, &loops) || loops.reduce || (loops.unary && node->input_count != 1))
        return false;
    if (loops.rule == MR_OPERANDS_BIAS)
        return mr_string_equal(mr_attr_string_or(&node->node->attrs, "data_format", "NHWC"), MR_STR("NHWC"));
    return loops.unary || node->input_count == 2 ||
           (node->input_count > 2 && mr_plan_fusion_role(node) == MR_FUSION_SUM);
}

/* Those that may wait and come before the node, as bits; the last bit is that of all from the 64th on. */
static mr_status find_waiting(fuser *f, uint64_t **waiting, mr_error *error)
{
    const mr_planner *planner = f->planner;
    uint64_t *before = MR_ARENA_NEW(&f->planner->arena, uint64_t, (size_t)planner->node_count + 1);
    if (!before) return mr_fail_memory(error, (size_t)planner->node_count * sizeof *before);
    int count = 0;
    for (int32_t i = 0; i < f->order_count; i++) {
        const mr_plan_node *node = &planner->nodes[f->order[i]];
        for (int32_t j = 0; j < node->input_count + node->control_count; j++) {
            const int32_t from = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                       : node->controls[j - node->input_count];
            if (from >= 0) before[f->order[i]] |= before[from];
        }
        if (!mr_plan_waits(node)) continue;
        before[f->order[i]] |= 1ull << count;
        if (count < 63) count++;
    }
    *waiting = before;
    return MR_OK;
}

static void count_updates(fuser *f)
{
    const mr_planner *planner = f->planner;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; node->live && j < node->input_count; j++) {
            const int32_t handle = mr_plan_updates(node, j) ? mr_plan_handle(planner, node->inputs[j]) : -1;
            if (handle >= 0) f->updates[handle]++;
        }
    }
}

/* Whether the node updates the variable. */
static bool updates_variable(const mr_planner *planner, int32_t index, int32_t handle)
{
    const mr_plan_node *node = &planner->nodes[index];
    for (int32_t i = 0; i < node->input_count; i++)
        if (mr_plan_updates(node, i) && mr_plan_handle(planner, node->inputs[i]) == handle) return true;
    return false;
}

/* Whether all updates of a variable come before its value is there: it is the output of one of them, and each other one
 * comes directly before one of those that were found. */
static bool is_settled(const fuser *f, int32_t handle, int32_t value)
{
    const mr_planner *planner = f->planner;
    int32_t found[UPDATES_MAX], count = 0;
    const int32_t producer = planner->values[value].producer;
    if (producer >= 0 && updates_variable(planner, producer, handle)) found[count++] = producer;
    for (int32_t i = 0; i < count; i++) {
        const mr_plan_node *node = &planner->nodes[found[i]];
        for (int32_t j = 0; j < node->input_count + node->control_count; j++) {
            const int32_t before = j < node->input_count ? planner->values[node->inputs[j]].producer
                                                         : node->controls[j - node->input_count];
            if (before < 0 || !updates_variable(planner, before, handle)) continue;
            int32_t k = 0;
            while (k < count && found[k] != before) k++;
            if (k < count) continue;
            if (count == UPDATES_MAX) return false;
            found[count++] = before;
        }
    }
    return count == f->updates[handle];
}

/* Whether a node that comes after an update reads the same values later. */
static bool may_be_late(const fuser *f, const mr_plan_node *node)
{
    const mr_planner *planner = f->planner;
    if (node->region > 0) return false;
    for (int32_t i = 0; i < node->input_count; i++) {
        const int32_t handle = mr_plan_variable_of(planner, node->inputs[i]);
        if (handle < 0 || planner->values[handle].dtype == MR_RESOURCE) continue;
        if (!is_settled(f, handle, node->inputs[i])) return false;
    }
    return true;
}

/* The inputs that a call reads: not the constant that says what is reduced or how it is moved. */
static int32_t operand_count(const mr_planner *planner, const mr_plan_node *node)
{
    return mr_plan_reduces_rows(planner, node) || mr_plan_moves_rows(planner, node) ? 1 : node->input_count;
}

static mr_status find_groups(fuser *f, mr_error *error)
{
    mr_planner *planner = f->planner;
    bool *after_updates;
    uint64_t *waiting;
    MR_TRY(mr_plan_after_updates(planner, &after_updates, error));
    MR_TRY(find_waiting(f, &waiting, error));
    for (int32_t i = 0; i < planner->node_count; i++) {
        const mr_plan_node *node = &planner->nodes[i];
        if (waiting[i] >> 63 || !may_be_member(node)) continue;
        const bool reduces = mr_plan_reduces_rows(planner, node);
        if (!reduces && !mr_plan_moves_rows(planner, node) && !is_elementwise(planner, node)) continue;
        if (after_updates[i] && !may_be_late(f, node)) continue;
        const int32_t steps = operand_count(planner, node) < 2 ? 1 : node->input_count - 1;
        if (steps > STEPS_MAX || node->input_count > INPUTS_MAX) continue;
        group *made = MR_ARENA_NEW(&planner->arena, group, 1);
        if (!made) return mr_fail_memory(error, sizeof *made);
        *made = (group){
            .members = {i}, .count = 1, .step_count = steps, .waiting = waiting[i], .after_updates = after_updates[i]};
        made->has_rows = reduces;
        if (reduces) made->wide = planner->values[node->inputs[0]].shape;
        f->group_of[i] = made;
    }
    return MR_OK;
}

/* ---- Merging ---- */

static bool contains(const group *g, int32_t node)
{
    for (int32_t i = 0; i < g->count; i++)
        if (g->members[i] == node) return true;
    return false;
}

/* The values that the group reads and does not compute; false: more than INPUTS_MAX. */
static bool find_inputs(const fuser *f, const group *g, int32_t inputs[INPUTS_MAX], int32_t *count)
{
    const mr_planner *planner = f->planner;
    *count = 0;
    for (int32_t i = 0; i < g->count; i++) {
        const mr_plan_node *node = &planner->nodes[g->members[i]];
        for (int32_t j = 0; j < operand_count(planner, node); j++) {
            int32_t k = 0;
            const int32_t value = node->inputs[j];
            if (planner->values[value].kind == MR_VALUE_OUTPUT && contains(g, planner->values[value].producer))
                continue;
            while (k < *count && inputs[k] != value) k++;
            if (k < *count) continue;
            if (*count == INPUTS_MAX) return false;
            inputs[(*count)++] = value;
        }
    }
    return true;
}

/* The members whose results others read or that are fetched, by their places; false: more than OUTPUTS_MAX. */
static bool find_outputs(const fuser *f, const group *g, int32_t outputs[OUTPUTS_MAX], int32_t *count)
{
    const mr_planner *planner = f->planner;
    *count = 0;
    for (int32_t i = 0; i < g->count; i++) {
        const int32_t value = planner->nodes[g->members[i]].first_output;
        int32_t inside = 0;
        for (int32_t k = 0; k < g->count; k++)
            for (int32_t j = 0; j < planner->nodes[g->members[k]].input_count; j++)
                inside += planner->nodes[g->members[k]].inputs[j] == value;
        assert(inside <= f->uses[value]);
        if (inside == f->uses[value]) continue;
        if (*count == OUTPUTS_MAX) return false;
        outputs[(*count)++] = i;
    }
    return *count > 0;
}

static int32_t first_position(const fuser *f, const group *g)
{
    return f->position[g->members[0]];
}

static int32_t last_position(const fuser *f, const group *g)
{
    return f->position[g->members[g->count - 1]];
}

/* Whether a node, with the group that it is in, ends before this position. */
static bool ends_before(const fuser *f, int32_t node, int32_t position)
{
    return (f->group_of[node] ? last_position(f, f->group_of[node]) : f->position[node]) < position;
}

/* Adds what a node comes after, from the position `low` on, to the search; false: a member of the group, or too
 * much. */
static bool push_before(fuser *f, const group *g, int32_t node, int32_t low, int32_t *depth, int32_t *seen)
{
    const bool is_member = contains(g, node);
    const mr_planner *planner = f->planner;
    const mr_plan_node *n = &planner->nodes[node];
    for (int32_t j = 0; j < n->input_count + n->control_count; j++) {
        if (++*seen > EDGES_MAX) return false;
        if (j < n->input_count && mr_plan_is_back_edge(planner, n, j)) continue;
        const int32_t from =
            j < n->input_count ? planner->values[n->inputs[j]].producer : n->controls[j - n->input_count];
        if (from < 0) continue;
        if (contains(g, from)) {
            if (is_member) continue;
            return false;
        }
        if (f->visited[from] == f->search || ends_before(f, from, low)) continue;
        /* What leaves a loop comes after all that enters it, without an edge between them. */
        if (mr_node_flow(planner->nodes[from].node) == MR_FLOW_EXIT) return false;
        const group *other = f->group_of[from];
        for (int32_t i = 0; i < (other ? other->count : 1); i++) {
            const int32_t reached = other ? other->members[i] : from;
            f->visited[reached] = f->search;
            f->stack[(*depth)++] = reached;
        }
    }
    return true;
}

/* Whether a path leaves the group and comes back: then its members cannot be computed at one time. */
static bool is_convex(fuser *f, const group *g)
{
    int32_t depth = 0, seen = 0, low = first_position(f, g);
    /* A path can go back in the order only inside a group. No group is on both sides of `low`, so none goes below. */
    while (f->low[low] < low) low = f->low[low];
    f->search++;
    for (int32_t i = 0; i < g->count; i++)
        if (!push_before(f, g, g->members[i], low, &depth, &seen)) return false;
    while (depth > 0)
        if (!push_before(f, g, f->stack[--depth], low, &depth, &seen)) return false;
    return true;
}

static bool may_join(const fuser *f, int32_t producer, int32_t consumer)
{
    const mr_plan_node *p = &f->planner->nodes[producer], *c = &f->planner->nodes[consumer];
    const mr_plan_value *a = &f->planner->values[p->first_output], *b = &f->planner->values[c->first_output];
    const group *first = f->group_of[producer], *second = f->group_of[consumer];
    if (p->region != c->region || p->condition != c->condition || p->device != c->device) return false;
    if (a->dtype != b->dtype) return false;
    if (first->has_rows && second->has_rows) return mr_shape_equal(first->wide, second->wide);
    if (first->has_rows || second->has_rows) return true; /* their forms are found when they are together */
    return mr_shape_equal(a->shape, b->shape) && !mr_plan_moves_rows(f->planner, p) &&
           !mr_plan_moves_rows(f->planner, c);
}

/* Makes one group of two if that is possible. */
static mr_status join(fuser *f, group *first, group *second, mr_error *error)
{
    int32_t values[INPUTS_MAX], outputs[OUTPUTS_MAX], count;
    if (first->step_count + second->step_count > STEPS_MAX || first->waiting != second->waiting ||
        first->after_updates != second->after_updates)
        return MR_OK;
    group both = {.step_count = first->step_count + second->step_count,
                  .waiting = first->waiting,
                  .after_updates = first->after_updates,
                  .has_rows = first->has_rows || second->has_rows,
                  .wide = first->has_rows ? first->wide : second->wide};
    mr_row_form forms[STEPS_MAX];
    int32_t i = 0, j = 0;
    while (i < first->count || j < second->count) {
        const bool takes_first = j == second->count ||
                                 (i < first->count && f->position[first->members[i]] < f->position[second->members[j]]);
        both.members[both.count++] = takes_first ? first->members[i++] : second->members[j++];
    }
    const int32_t begin = first_position(f, &both), end = last_position(f, &both);
    if (end - begin > SPAN_MAX) return MR_OK;
    if (both.has_rows && !mr_plan_row_forms(f->planner, both.members, both.count, both.wide, forms)) return MR_OK;
    if (!find_inputs(f, &both, values, &count) || !find_outputs(f, &both, outputs, &count)) return MR_OK;
    if (!is_convex(f, &both)) return MR_OK;
    group *made = MR_ARENA_NEW(&f->planner->arena, group, 1);
    if (!made) return mr_fail_memory(error, sizeof *made);
    *made = both;
    for (int32_t k = 0; k < made->count; k++) f->group_of[made->members[k]] = made;
    for (int32_t k = begin + 1; k <= end; k++)
        if (f->low[k] > begin) f->low[k] = begin;
    return MR_OK;
}

static mr_status merge_groups(fuser *f, mr_error *error)
{
    const mr_planner *planner = f->planner;
    for (int32_t i = 0; i < f->order_count; i++) {
        const int32_t consumer = f->order[i];
        const mr_plan_node *node = &planner->nodes[consumer];
        for (int32_t j = 0; f->group_of[consumer] && j < node->input_count; j++) {
            const int32_t producer = planner->values[node->inputs[j]].producer;
            if (producer < 0 || !f->group_of[producer] || f->group_of[producer] == f->group_of[consumer]) continue;
            if (may_join(f, producer, consumer)) MR_TRY(join(f, f->group_of[producer], f->group_of[consumer], error));
        }
    }
    return MR_OK;
}

/* ---- Replacing ---- */

/* The lists that become attrs. */
typedef struct lists {
    mr_attr_value *nodes, *ops, *operands, *outputs, *forms;
    int32_t step_count;
    int32_t result_of[STEPS_MAX];   /* by member: the step that computes its result */
    mr_row_form form_of[STEPS_MAX]; /* by member */
} lists;

static int32_t operand_of(const fuser *f, const group *g, const lists *l, const int32_t *inputs, int32_t value)
{
    const mr_plan_value *v = &f->planner->values[value];
    for (int32_t i = 0; v->kind == MR_VALUE_OUTPUT && i < g->count; i++)
        if (g->members[i] == v->producer) return -1 - l->result_of[i];
    int32_t k = 0;
    while (inputs[k] != value) k++;
    return k;
}

static void add_step(lists *l, const mr_plan_node *node, int32_t a, int32_t b, mr_row_form form)
{
    assert(l->step_count < STEPS_MAX);
    l->nodes[l->step_count].string = mr_string_from(node->name ? node->name : node->node->name);
    l->ops[l->step_count].string = mr_string_from(node->kernel->op);
    l->operands[2 * l->step_count].integer = a;
    l->operands[2 * l->step_count + 1].integer = b;
    l->forms[l->step_count].integer = form;
    l->step_count++;
}

/* A sum of several operands is a step for each from the second on. Before one with whole rows, it is repeated in them
 * like its operands. */
static void add_member(const fuser *f, const group *g, int32_t member, const int32_t *inputs, lists *l)
{
    const mr_planner *planner = f->planner;
    const mr_plan_node *node = &planner->nodes[g->members[member]];
    const int32_t first = operand_of(f, g, l, inputs, node->inputs[0]);
    const mr_row_form form = l->form_of[member];
    bool is_one = g->has_rows && mr_plan_is_one_of_row(planner, g->members, l->form_of, member, node->inputs[0]);
    if (operand_count(planner, node) == 1) {
        add_step(l, node, first, first, form);
    } else {
        for (int32_t j = 1; j < node->input_count; j++) {
            is_one = is_one && mr_plan_is_one_of_row(planner, g->members, l->form_of, member, node->inputs[j]);
            add_step(l, node, j == 1 ? first : -l->step_count, operand_of(f, g, l, inputs, node->inputs[j]),
                     form == MR_ROW_WHOLE && is_one ? MR_ROW_REPEATED : form);
        }
    }
    l->result_of[member] = l->step_count - 1;
}

static const mr_attrs *make_attrs(fuser *f, const group *g, const int32_t *inputs, const int32_t *outputs,
                                  int32_t output_count)
{
    mr_arena *arena = &f->planner->kept;
    const size_t steps = (size_t)g->step_count;
    lists l = {.nodes = MR_ARENA_NEW(arena, mr_attr_value, steps),
               .ops = MR_ARENA_NEW(arena, mr_attr_value, steps),
               .operands = MR_ARENA_NEW(arena, mr_attr_value, 2 * steps),
               .outputs = MR_ARENA_NEW(arena, mr_attr_value, (size_t)output_count),
               .forms = MR_ARENA_NEW(arena, mr_attr_value, steps)};
    mr_attrs *made = MR_ARENA_NEW(arena, mr_attrs, 1);
    mr_attr *items = MR_ARENA_NEW(arena, mr_attr, 6);
    mr_attr_value *type = MR_ARENA_NEW(arena, mr_attr_value, 1);
    if (!l.nodes || !l.ops || !l.operands || !l.outputs || !l.forms || !made || !items || !type) return nullptr;
    [[maybe_unused]] const bool fits =
        !g->has_rows || mr_plan_row_forms(f->planner, g->members, g->count, g->wide, l.form_of);
    assert(fits);
    for (int32_t i = 0; i < g->count; i++) add_member(f, g, i, inputs, &l);
    assert(l.step_count == g->step_count);
    for (int32_t i = 0; i < output_count; i++) l.outputs[i].integer = l.result_of[outputs[i]];
    type->type = (int32_t)f->planner->values[f->planner->nodes[g->members[0]].first_output].dtype;
    const mr_attr attrs[] = {{"T", MR_ATTR_TYPE, false, 1, type},
                             {"nodes", MR_ATTR_STRING, true, l.step_count, l.nodes},
                             {"operands", MR_ATTR_INT, true, 2 * l.step_count, l.operands},
                             {"ops", MR_ATTR_STRING, true, l.step_count, l.ops},
                             {"outputs", MR_ATTR_INT, true, output_count, l.outputs}};
    made->items = items;
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) items[made->count++] = attrs[i];
    if (!g->has_rows) return made;
    return mr_plan_attrs_with(f->planner, made, (mr_attr){"forms", MR_ATTR_INT, true, l.step_count, l.forms});
}

/* The member that computes the group: the last one that is not only a view. */
static int32_t host_of(const fuser *f, const group *g)
{
    int32_t i = g->count - 1;
    while (mr_plan_moves_rows(f->planner, &f->planner->nodes[g->members[i]])) i--;
    return g->members[i];
}

/* Whether one call is better: moves alone cost nothing. */
static bool is_worth(const fuser *f, const group *g)
{
    int32_t computed = 0;
    for (int32_t i = 0; i < g->count; i++)
        computed += !mr_plan_moves_rows(f->planner, &f->planner->nodes[g->members[i]]);
    return computed > 1;
}

/* Makes its host compute the group. */
static mr_status replace(fuser *f, const group *g, mr_error *error)
{
    mr_planner *planner = f->planner;
    int32_t outputs[OUTPUTS_MAX], count, input_count = 0, output_count = 0;
    int32_t *inputs = MR_ARENA_NEW(&planner->arena, int32_t, INPUTS_MAX);
    bool *refs = MR_ARENA_NEW(&planner->arena, bool, INPUTS_MAX);
    if (!inputs || !refs) return mr_fail_memory(error, INPUTS_MAX * sizeof *inputs);
    [[maybe_unused]] const bool fits =
        find_inputs(f, g, inputs, &input_count) && find_outputs(f, g, outputs, &output_count);
    assert(fits);
    const mr_attrs *attrs = make_attrs(f, g, inputs, outputs, output_count);
    if (!attrs) return mr_fail_memory(error, sizeof *attrs);
    const int32_t host = host_of(f, g);
    const mr_kernel *kernel = mr_kernel_find(MR_ELEMENTWISE_OP, planner->nodes[host].device->kind, attrs);
    if (!kernel) return MR_OK;
    const int32_t first_output = planner->value_count;
    for (int32_t i = 0; i < output_count; i++) {
        const int32_t before = planner->nodes[g->members[outputs[i]]].first_output;
        mr_plan_value value = planner->values[before];
        value.computes = planner->nodes[value.producer].node;
        value.producer = host;
        value.index = i;
        MR_TRY(mr_plan_add_value(planner, value, &count, error));
        assert(count == first_output + i);
        f->instead[before] = count;
    }
    for (int32_t i = 0; i < g->count; i++) planner->nodes[g->members[i]].live = g->members[i] == host;
    mr_plan_node *node = &planner->nodes[host];
    node->kernel = kernel;
    node->attrs = attrs;
    node->inputs = inputs;
    node->input_is_ref = refs;
    node->input_count = input_count;
    node->first_output = first_output;
    node->output_count = output_count;
    return MR_OK;
}

static mr_status replace_groups(fuser *f, mr_error *error)
{
    mr_planner *planner = f->planner;
    const int32_t value_count = planner->value_count;
    for (int32_t i = 0; i < planner->node_count; i++) {
        const group *g = f->group_of[i];
        if (g && g->members[0] == i && is_worth(f, g)) MR_TRY(replace(f, g, error));
    }
    for (int32_t i = 0; i < planner->node_count; i++) {
        mr_plan_node *node = &planner->nodes[i];
        for (int32_t j = 0; j < node->input_count; j++)
            if (node->inputs[j] < value_count) node->inputs[j] = f->instead[node->inputs[j]];
        for (int32_t j = 0; j < node->control_count; j++) {
            const group *g = f->group_of[node->controls[j]];
            if (g && is_worth(f, g)) node->controls[j] = host_of(f, g);
        }
    }
    for (int32_t i = 0; i < planner->signature->fetch_count; i++)
        planner->fetch_values[i] = f->instead[planner->fetch_values[i]];
    return MR_OK;
}

mr_status mr_plan_fuse_elementwise(mr_planner *planner, mr_error *error)
{
    const size_t nodes = (size_t)planner->node_count + 1, values = (size_t)planner->value_count + 1;
    fuser f = {.planner = planner};
    MR_TRY(mr_plan_topological(planner, &f.order, &f.order_count, error));
    f.position = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f.low = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f.instead = MR_ARENA_NEW(&planner->arena, int32_t, values);
    f.group_of = MR_ARENA_NEW(&planner->arena, group *, nodes);
    f.visited = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f.stack = MR_ARENA_NEW(&planner->arena, int32_t, nodes);
    f.updates = MR_ARENA_NEW(&planner->arena, int32_t, values);
    if (!f.updates || !f.position || !f.low || !f.instead || !f.group_of || !f.visited || !f.stack)
        return mr_fail_memory(error, nodes * sizeof(void *));
    for (int32_t i = 0; i < f.order_count; i++) f.position[f.order[i]] = f.low[i] = i;
    for (int32_t i = 0; i < planner->value_count; i++) f.instead[i] = i;
    MR_TRY(mr_plan_uses(planner, &f.uses, error));
    count_updates(&f);
    MR_TRY(find_groups(&f, error));
    MR_TRY(merge_groups(&f, error));
    return replace_groups(&f, error);
}
