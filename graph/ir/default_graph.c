/* The default graph of each thread: the last graph that the thread pushed, or one of its own. */
#include "graph/ir/graph.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

constexpr int32_t PUSHED_MAX = 64;

typedef struct default_graphs {
    mr_graph *own; /* owned; null until it is needed */
    void (*free_own)(mr_graph *graph);
    int32_t count;
    mr_graph *pushed[PUSHED_MAX]; /* borrowed; the last one is the default */
} default_graphs;

/* Null until the thread needs it. */
static thread_local default_graphs *mine;

/* Frees what `mine` refers to when its thread ends. */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool has_key;

static void end_thread(void *context)
{
    default_graphs *ending = context;
    assert(ending == mine);
    mine = nullptr;
    if (ending->own != nullptr) ending->free_own(ending->own);
    free(ending);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, end_thread) == 0;
}

/* A library that is unloaded cannot be called when a thread ends. */
[[gnu::destructor]] static void delete_key(void)
{
    if (has_key) (void)pthread_key_delete(key);
}

/* Null without memory. */
static default_graphs *default_graphs_of_thread(void)
{
    if (mine != nullptr) return mine;
    (void)pthread_once(&key_once, make_key);
    default_graphs *made = has_key ? calloc(1, sizeof *made) : nullptr;
    if (made == nullptr) return nullptr;
    if (pthread_setspecific(key, made) != 0) {
        free(made);
        return nullptr;
    }
    mine = made;
    return made;
}

mr_graph *mr_graph_default_or_create(mr_graph *(*create)(void), void (*free_created)(mr_graph *graph))
{
    default_graphs *d = default_graphs_of_thread();
    if (d == nullptr) return nullptr;
    assert(d->count >= 0 && d->count <= PUSHED_MAX);
    if (d->count > 0) return d->pushed[d->count - 1];
    if (d->own != nullptr) return d->own;
    d->free_own = free_created;
    d->own = create();
    return d->own;
}

void mr_graph_push_default(mr_graph *graph)
{
    default_graphs *d = default_graphs_of_thread();
    if (d == nullptr) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "mr_graph_push_default: no memory");
    } else if (d->count == PUSHED_MAX) {
        (void)mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "mr_graph_push_default: %d graphs are pushed already",
                            PUSHED_MAX);
    } else {
        d->pushed[d->count++] = graph;
    }
}

void mr_graph_pop_default(mr_graph *graph)
{
    default_graphs *d = mine;
    if (d == nullptr || d->count == 0) {
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION,
                            "mr_graph_pop_default: no default graph is pushed in this thread");
    } else if (d->pushed[d->count - 1] != graph) {
        (void)mr_graph_fail(graph, MR_FAILED_PRECONDITION,
                            "mr_graph_pop_default: the default graph of this thread is another one; pop the graph that "
                            "was pushed last first");
    } else {
        d->count--;
    }
}

mr_status mr_graph_reset_default(mr_error *error)
{
    if (mine == nullptr) return MR_OK;
    assert(mine->count >= 0 && mine->count <= PUSHED_MAX);
    if (mine->count > 0)
        return mr_fail(error, MR_FAILED_PRECONDITION,
                       "mr_graph_reset_default: %d graphs are pushed in this thread; pop them first", mine->count);
    if (mine->own != nullptr) mine->free_own(mine->own);
    assert(mine->own == nullptr); /* mr_graph_free has called mr_graph_forget_default */
    return MR_OK;
}

void mr_graph_forget_default(const mr_graph *graph)
{
    default_graphs *d = mine;
    if (d == nullptr) return;
    if (d->own == graph) d->own = nullptr;
    int32_t kept = 0;
    for (int32_t i = 0; i < d->count; i++)
        if (d->pushed[i] != graph) d->pushed[kept++] = d->pushed[i];
    d->count = kept;
}
