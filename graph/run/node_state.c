/* The states of stateful nodes. */
#include "graph/run/session.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static uint64_t system_random(void)
{
    uint64_t word;
    if (getrandom(&word, sizeof word, 0) == (ssize_t)sizeof word) return word;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
}

/* From the session's seed and the node's name, so that the order of nodes and their number do not matter. */
static void set_random(const mr_session *session, const mr_node *node, mr_kernel_random *random)
{
    if (!session->options.has_seed) {
        random->seed = system_random();
        random->seed2 = system_random();
        return;
    }
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
    for (const char *c = node->name; *c != '\0'; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    random->seed = (uint64_t)session->options.seed;
    random->seed2 = hash | 1; /* both 0 mean that the seed is not set */
}

mr_status mr_session_node_state(mr_session *session, mr_node_states *states, const mr_node *node, mr_node_state **state,
                                mr_error *error)
{
    assert(mr_mutex_is_held(&session->mutex));
    assert(node->id >= 0 && node->id < node->graph->node_count);
    if (node->id >= states->capacity) {
        int32_t capacity = node->graph->node_count;
        mr_node_state **larger = realloc(states->items, (size_t)capacity * sizeof(mr_node_state *));
        if (!larger) return mr_fail_memory(error, (size_t)capacity * sizeof(mr_node_state *));
        for (int32_t i = states->capacity; i < capacity; i++) larger[i] = nullptr;
        states->items = larger;
        states->capacity = capacity;
    }
    if (!states->items[node->id]) {
        mr_node_state *made = calloc(1, sizeof *made);
        if (!made) return mr_fail_memory(error, sizeof *made);
        made->node = node;
        pthread_mutex_init(&made->memory.mutex, nullptr);
        set_random(session, node, &made->random);
        states->items[node->id] = made;
    }
    *state = states->items[node->id];
    assert((*state)->node == node);
    return MR_OK;
}

void mr_node_states_deinit(mr_node_states *states)
{
    for (int32_t i = 0; i < states->capacity; i++) {
        mr_node_state *state = states->items[i];
        if (!state) continue;
        free(state->memory.data);
        pthread_mutex_destroy(&state->memory.mutex);
        free(state);
    }
    free(states->items);
    *states = (mr_node_states){0};
}
