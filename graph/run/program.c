/* The lifetime of programs. */
#include "graph/run/program.h"

#include "graph/run/frame.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_program_new(mr_program **program, mr_error *error)
{
    *program = calloc(1, sizeof **program);
    if (!*program) return mr_fail_memory(error, sizeof **program);
    (*program)->references = 1;
    pthread_mutex_init(&(*program)->mutex, nullptr);
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
    mr_frames_free(program);
    for (int32_t i = 0; i < program->constant_count; i++) mr_tensor_deinit(&program->slots[program->constants[i]]);
    pthread_mutex_destroy(&program->mutex);
    mr_arena_deinit(&program->arena);
    free(program);
}

mr_status mr_call_named(const mr_kernel_node *node, mr_status status, mr_error *error)
{
    if (!error) return status;
    size_t length = strlen(node->name);
    if (strncmp(error->message, node->name, length) == 0 && strncmp(error->message + length, " (", 2) == 0)
        return status;
    return mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}
