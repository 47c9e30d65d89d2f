/* The saved state of a session: "millrace state 1\n", then a sequence of entries:
 *   kind      1 byte: 'r' a random operator, 'i' an iterator
 *   name      4 bytes little-endian length, bytes; the name of the node
 *   payload   4 bytes little-endian length, bytes; 'r': seed, seed2, draws as 8 bytes little-endian each; 'i': the
 *             iterator's state
 * The state is an MR_STRING scalar; the checkpoint protects it with a checksum. */
#include "graph/run/session_state.h"

#include "graph/run/session.h"
#include "graph/state/iterator.h"
#include <assert.h>
#include <millrace/train.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[] = "millrace state 1\n";
constexpr size_t MAGIC_BYTES = sizeof MAGIC - 1;

/* ---- Save ---- */

typedef struct text {
    char *bytes;
    size_t size_bytes, capacity_bytes;
} text;

static mr_status append(text *t, const void *bytes, size_t size_bytes, mr_error *error)
{
    assert(t->size_bytes <= t->capacity_bytes);
    if (size_bytes > t->capacity_bytes - t->size_bytes) {
        size_t capacity_bytes = 2 * t->capacity_bytes + size_bytes;
        char *larger = realloc(t->bytes, capacity_bytes);
        if (!larger) return mr_fail_memory(error, capacity_bytes);
        t->bytes = larger;
        t->capacity_bytes = capacity_bytes;
    }
    if (size_bytes > 0) memcpy(t->bytes + t->size_bytes, bytes, size_bytes);
    t->size_bytes += size_bytes;
    return MR_OK;
}

static void put_little(unsigned char *bytes, uint64_t word, int count)
{
    for (int i = 0; i < count; i++) bytes[i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get_little(const unsigned char *bytes, int count)
{
    uint64_t word = 0;
    for (int i = 0; i < count; i++) word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

static mr_status append_sized(text *t, const char *bytes, size_t size_bytes, mr_error *error)
{
    unsigned char length[4];
    if (size_bytes > UINT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the session's state is too large");
    put_little(length, size_bytes, 4);
    MR_TRY(append(t, length, sizeof length, error));
    return append(t, bytes, size_bytes, error);
}

static mr_status append_entry(text *t, char kind, const char *name, const char *payload, size_t size_bytes,
                              mr_error *error)
{
    MR_TRY(append(t, &kind, 1, error));
    MR_TRY(append_sized(t, name, strlen(name), error));
    return append_sized(t, payload, size_bytes, error);
}

/* The session's own seeds are used only if the node has none. Otherwise they are omitted, so that equal runs save equal
 * bytes. */
static mr_status save_random(text *t, const mr_node_state *state, mr_error *error)
{
    const mr_attrs *attrs = &state->node->attrs;
    bool seeded = mr_attr_int_or(attrs, "seed", 0) != 0 || mr_attr_int_or(attrs, "seed2", 0) != 0;
    unsigned char words[24];
    put_little(words, seeded ? 0 : state->random.seed, 8);
    put_little(words + 8, seeded ? 0 : state->random.seed2, 8);
    put_little(words + 16, __atomic_load_n(&state->random.draws, __ATOMIC_RELAXED), 8);
    return append_entry(t, 'r', state->node->name, (const char *)words, sizeof words, error);
}

static mr_status save_iterator(text *t, mr_iterator_state *state, mr_error *error)
{
    mr_tensor place = {0};
    pthread_mutex_lock(&state->mutex);
    mr_status status = state->iterator ? mr_iterator_save(state->iterator, &place, error) : MR_OK;
    pthread_mutex_unlock(&state->mutex);
    if (status == MR_OK && place.dtype == MR_STRING) {
        mr_string bytes = mr_tensor_strings(&place)[0];
        status = append_entry(t, 'i', state->node->name, bytes.data, bytes.size_bytes, error);
    }
    mr_tensor_deinit(&place);
    return status;
}

/* Iterators that have a node. Resources live as long as the session, so the list stays valid without its mutex. */
typedef struct iterators {
    mr_iterator_state **items;
    int32_t count;
} iterators;

mr_iterator *mr_session_iterator(mr_session *session, mr_node *iterator)
{
    mr_arena arena = {0};
    const char *container, *name;
    mr_resource *resource = nullptr;
    if (session == nullptr || iterator == nullptr) return nullptr;
    pthread_mutex_lock(&session->mutex);
    if (mr_resource_names(iterator, &arena, &container, &name, nullptr) == MR_OK)
        resource = mr_resource_find(&session->resources, &mr_iterator_class, container, name);
    pthread_mutex_unlock(&session->mutex);
    mr_arena_deinit(&arena);
    if (!resource) return nullptr;
    return __atomic_load_n(&((mr_iterator_state *)resource)->iterator, __ATOMIC_ACQUIRE);
}

/* The caller holds the session's mutex. */
static mr_status list_iterators(mr_session *session, mr_arena *arena, iterators *found, mr_error *error)
{
    found->items = MR_ARENA_NEW(arena, mr_iterator_state *, (size_t)session->resources.count + 1);
    if (!found->items) return mr_fail_memory(error, session->resources.count * sizeof *found->items);
    for (mr_resource *at = session->resources.first; at; at = at->later) {
        if (at->class != &mr_iterator_class || !((mr_iterator_state *)at)->node) continue;
        assert((uint32_t)found->count < session->resources.count);
        found->items[found->count++] = (mr_iterator_state *)at;
    }
    return MR_OK;
}

/* Saves the random operators. The caller holds the session's mutex. */
static mr_status save_all_random(mr_session *session, text *t, mr_error *error)
{
    MR_TRY(append(t, MAGIC, MAGIC_BYTES, error));
    for (int32_t i = 0; i < session->states.capacity; i++) {
        const mr_node_state *state = session->states.items[i];
        assert(!state || state->node->id == i);
        if (state && __atomic_load_n(&state->random.draws, __ATOMIC_RELAXED) > 0) MR_TRY(save_random(t, state, error));
    }
    return MR_OK;
}

static mr_status save_all(mr_session *session, text *t, mr_arena *arena, mr_error *error)
{
    iterators found = {0};
    pthread_mutex_lock(&session->mutex);
    mr_status status = save_all_random(session, t, error);
    if (status == MR_OK) status = list_iterators(session, arena, &found, error);
    pthread_mutex_unlock(&session->mutex);
    for (int32_t i = 0; status == MR_OK && i < found.count; i++) status = save_iterator(t, found.items[i], error);
    return status;
}

mr_status mr_session_save_state(mr_session *session, mr_tensor *state, mr_error *error)
{
    *state = (mr_tensor){0};
    text t = {0};
    mr_arena arena = {0};
    mr_status status = save_all(session, &t, &arena, error);
    assert(t.size_bytes <= t.capacity_bytes);
    if (status == MR_OK) status = mr_tensor_init_string(state, (mr_string){t.bytes, t.size_bytes}, error);
    free(t.bytes);
    mr_arena_deinit(&arena);
    return status;
}

/* ---- Restore ---- */

typedef struct entry {
    char kind;
    char *name; /* null-terminated, in the arena */
    mr_string payload;
} entry;

static mr_status damaged(mr_error *error)
{
    return mr_fail(error, MR_DATA_LOSS, "the saved state of the session is damaged");
}

static bool take_sized(mr_string *rest, mr_string *bytes)
{
    if (rest->size_bytes < 4) return false;
    size_t length = (size_t)get_little((const unsigned char *)rest->data, 4);
    if (length > rest->size_bytes - 4) return false;
    *bytes = (mr_string){rest->data + 4, length};
    *rest = (mr_string){rest->data + 4 + length, rest->size_bytes - 4 - length};
    return true;
}

static mr_status take_entry(mr_string *rest, mr_arena *arena, entry *e, mr_error *error)
{
    assert(rest->size_bytes > 0);
    e->kind = rest->data[0];
    *rest = (mr_string){rest->data + 1, rest->size_bytes - 1};
    mr_string name;
    if (!take_sized(rest, &name) || !take_sized(rest, &e->payload)) return damaged(error);
    e->name = mr_arena_strndup(arena, name.data, name.size_bytes);
    return e->name ? MR_OK : mr_fail_memory(error, name.size_bytes);
}

static mr_status restore_random(mr_session *session, const mr_node *node, mr_string payload, mr_error *error)
{
    if (payload.size_bytes != 24) return damaged(error);
    mr_node_state *state = nullptr;
    const unsigned char *words = (const unsigned char *)payload.data;
    pthread_mutex_lock(&session->mutex);
    mr_status status = mr_session_node_state(session, &session->states, node, &state, error);
    if (status == MR_OK) {
        assert(state->node == node);
        state->random.seed = get_little(words, 8);
        state->random.seed2 = get_little(words + 8, 8);
        __atomic_store_n(&state->random.draws, get_little(words + 16, 8), __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&session->mutex);
    return status;
}

static mr_status restore_iterator(mr_session *session, const mr_node *node, mr_string payload, mr_error *error)
{
    const mr_state_row *row = mr_state_find(node->op);
    mr_resource *resource = nullptr;
    if (row) {
        pthread_mutex_lock(&session->mutex);
        mr_status made = row->make(&session->resources, node, session->cpu, &resource, error);
        pthread_mutex_unlock(&session->mutex);
        MR_TRY(made);
    }
    if (!resource || resource->class != &mr_iterator_class)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s (%s) is not an iterator in this graph, but was one when "
                       "the state was saved",
                       node->name, node->op);
    mr_iterator_state *state = (mr_iterator_state *)resource;
    if (!state->source) return MR_OK; /* no dataset: nothing to restore */
    mr_tensor place = {0};
    MR_TRY(mr_tensor_init_string(&place, payload, error));
    pthread_mutex_lock(&state->mutex);
    mr_status status = mr_iterator_start(state, nullptr, error);
    if (status == MR_OK) status = mr_iterator_restore(state->iterator, &place, error);
    pthread_mutex_unlock(&state->mutex);
    mr_tensor_deinit(&place);
    return status == MR_OK ? MR_OK : mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
}

/* An operator without an entry restarts: it had drawn nothing when the state was saved. */
static void forget_random(mr_session *session)
{
    pthread_mutex_lock(&session->mutex);
    for (int32_t i = 0; i < session->states.capacity; i++)
        if (session->states.items[i]) __atomic_store_n(&session->states.items[i]->random.draws, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&session->mutex);
}

static mr_status restore_all(mr_session *session, mr_string rest, bool with_iterators, mr_arena *arena, mr_error *error)
{
    while (rest.size_bytes > 0) {
        entry e;
        MR_TRY(take_entry(&rest, arena, &e, error));
        const mr_node *node = mr_graph_find(session->graph, e.name);
        if (!node) continue;
        switch (e.kind) {
        case 'r':
            MR_TRY(restore_random(session, node, e.payload, error));
            break;
        case 'i':
            if (with_iterators) MR_TRY(restore_iterator(session, node, e.payload, error));
            break;
        default:
            return damaged(error);
        }
    }
    return MR_OK;
}

static mr_status restore(mr_session *session, const mr_tensor *state, bool with_iterators, mr_error *error)
{
    if (state->dtype != MR_STRING || mr_tensor_count(state) != 1) return damaged(error);
    mr_string bytes = mr_tensor_strings(state)[0];
    if (bytes.size_bytes < MAGIC_BYTES || memcmp(bytes.data, MAGIC, MAGIC_BYTES) != 0) return damaged(error);
    mr_arena arena = {0};
    forget_random(session);
    mr_string entries = {bytes.data + MAGIC_BYTES, bytes.size_bytes - MAGIC_BYTES};
    mr_status status = restore_all(session, entries, with_iterators, &arena, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_session_restore_state(mr_session *session, const mr_tensor *state, mr_error *error)
{
    return restore(session, state, true, error);
}

mr_status mr_session_restore_random(mr_session *session, const mr_tensor *state, mr_error *error)
{
    return restore(session, state, false, error);
}
