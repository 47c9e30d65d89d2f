/* Checks that rows, kernels and samples match: every row has a kernel and a sample, and every kernel has a row. */
#include "builtin/builtin.h"
#include "graph/state/state.h"
#include "tests/ops/hostile.h"

typedef struct search {
    const char *op;
    bool found;
} search;

static void find_kernel(void *context, const mr_kernel *kernel)
{
    search *s = context;
    s->found |= kernel->device == MR_DEVICE_CPU && strcmp(kernel->op, s->op) == 0;
}

/* Resources and constants need no kernel. */
static bool can_run(const mr_op *op)
{
    search s = {.op = mr_op_kernel_name(op)};
    mr_kernel_each(find_kernel, &s);
    return s.found || mr_state_find(op->name) != nullptr || (op->flags & MR_OP_CONSTANT) != 0;
}

TEST(ops_every_row_has_a_kernel)
{
    int faults = 0;
    mr_builtin_register();
    for (int32_t i = 0; i < mr_op_count(); i++) {
        const mr_op *op = mr_op_at(i)->op;
        if (can_run(op)) continue;
        faults++;
        fprintf(stderr, "%s has no kernel\n", op->name);
    }
    CHECK_EQ(faults, 0);
}

TEST(ops_every_row_has_a_sample)
{
    int faults = 0;
    mr_builtin_register();
    for (int32_t i = 0; i < mr_op_count(); i++) {
        bool found = false;
        for (int j = 0; j < hostile_sample_count() && !found; j++)
            found = strcmp(hostile_sample_at(j)->op, mr_op_at(i)->op->name) == 0;
        if (!found) fprintf(stderr, "%s has no sample in tests/ops\n", mr_op_at(i)->op->name);
        faults += !found;
    }
    CHECK_EQ(faults, 0);
}

static bool is_fused_into(const mr_fusion *fusion, const char *kernel)
{
    const char *names[] = {fusion->kernel,    fusion->sum,    fusion->accumulate, fusion->bias,
                           fusion->transpose, fusion->scaled, fusion->positions,  fusion->relu_positions,
                           fusion->recompute, fusion->heads,  fusion->adam};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i] && strcmp(names[i], kernel) == 0) return true;
    return false;
}

/* A kernel belongs to an operator or to a fusion. */
static void count_without_row(void *context, const mr_kernel *kernel)
{
    bool found = mr_op_find(kernel->op) != nullptr || strcmp(kernel->op, MR_ELEMENTWISE_OP) == 0;
    for (int32_t i = 0; i < mr_op_count() && !found; i++) found = is_fused_into(&mr_op_at(i)->op->fusion, kernel->op);
    if (!found) fprintf(stderr, "the kernel %s has no row\n", kernel->op);
    *(int *)context += !found;
}

TEST(ops_every_kernel_has_a_row)
{
    int faults = 0;
    mr_builtin_register();
    mr_kernel_each(count_without_row, &faults);
    CHECK_EQ(faults, 0);
}

/* A kernel updates only inputs that its row declares as written, and only references and handles. For kernels of
 * fusions, which have no row, the planner asks the kernel. */
static void count_undeclared_updates(void *context, const mr_kernel *kernel)
{
    const mr_op_def *def = mr_op_find(kernel->op);
    if (def == nullptr || (kernel->updates & ~def->op->writes) == 0) return;
    fprintf(stderr, "the kernel %s updates inputs that its row does not write\n", kernel->op);
    ++*(int *)context;
}

TEST(ops_rows_declare_what_is_written)
{
    int faults = 0;
    mr_builtin_register();
    mr_kernel_each(count_undeclared_updates, &faults);
    for (int32_t i = 0; i < mr_op_count(); i++) {
        const mr_op_def *def = mr_op_at(i);
        for (int32_t j = 0; j < 32; j++) {
            if ((def->op->writes >> j & 1) == 0) continue;
            bool can = j < def->input_count && (def->inputs[j].is_ref || def->inputs[j].dtype == MR_RESOURCE);
            if (!can) fprintf(stderr, "%s: input %d is not a variable\n", def->op->name, (int)j);
            faults += !can;
        }
    }
    CHECK_EQ(faults, 0);
}
