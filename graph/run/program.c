/* The lifetime of programs. */
#include "graph/run/program.h"

#include "base/elementwise.h"
#include "graph/run/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_program_new(mr_program **program, mr_error *error)
{
    *program = calloc(1, sizeof **program);
    if (!*program) return mr_fail_memory(error, sizeof **program);
    (*program)->references = 1;
    return MR_OK;
}

mr_program *mr_program_ref(mr_program *program)
{
    int before = __atomic_fetch_add(&program->references, 1, __ATOMIC_RELAXED);
    assert(before > 0);
    (void)before;
    return program;
}

void mr_program_unref(mr_program *program)
{
    if (!program || __atomic_sub_fetch(&program->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int32_t i = 0; i < program->region_count; i++) {
        mr_region *region = &program->regions[i];
        mr_frames_free(region);
        for (int32_t j = 0; j < region->constant_count; j++) mr_tensor_deinit(&region->slots[region->constants[j]]);
        pthread_mutex_destroy(&region->mutex);
    }
    mr_arena_deinit(&program->arena);
    free(program);
}

mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error)
{
    if (!error || strcmp(node->op, MR_ELEMENTWISE_OP) == 0) return status; /* names the node of its step */
    size_t length = strlen(node->name);
    if (strncmp(error->message, node->name, length) == 0 && strncmp(error->message + length, " (", 2) == 0)
        return status;
    return mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}
