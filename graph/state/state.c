/* The operators that name a resource, and the kernel tables of graph/state/. */
#include "graph/state/state.h"

#include "graph/state/iterator.h"
#include <string.h>

mr_status mr_variable_make(mr_session *session, const mr_node *node, mr_device *device, mr_resource **resource,
                           mr_error *error);

static const mr_state_row rows[] = {
    {.op = "VariableV2", .make = mr_variable_make, .on_gpu = true},
    {.op = "Variable", .make = mr_variable_make, .on_gpu = true},
    {.op = "VarHandleOp", .make = mr_variable_make, .on_gpu = true},
    {.op = "IteratorV2", .make = mr_iterator_make},
    {.op = "Iterator", .make = mr_iterator_make},
};

const mr_state_row *mr_state_find(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].op, op) == 0) return &rows[i];
    return nullptr;
}

#define FAMILIES(X) X(basic) X(variable) X(update) X(optimizer) X(iterator) X(checkpoint) X(summary)

#define DECLARE(name) extern const mr_kernel_table mr_state_##name##_kernels;
FAMILIES(DECLARE)
#undef DECLARE

static void register_all(void)
{
#define REGISTER(name) mr_kernel_table_register(&mr_state_##name##_kernels);
    FAMILIES(REGISTER)
#undef REGISTER
}

void mr_state_register(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_all);
}
