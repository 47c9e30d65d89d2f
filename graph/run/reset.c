/* mr_session_reset. */
#include "graph/run/session.h"

#include <string.h>

typedef struct containers {
    const char *const *names;
    int32_t count;
} containers;

/* Resources that name no container are in "localhost". */
static bool has_container(const containers *all, const char *container)
{
    const char *name = container[0] != '\0' ? container : "localhost";
    if (all->count == 0) return strcmp(name, "localhost") == 0;
    for (int32_t i = 0; i < all->count; i++)
        if (strcmp(all->names[i], name) == 0) return true;
    return false;
}

/* Resources live as long as the session, so the list stays valid without its mutex. */
static mr_status list_resources(mr_session *session, const containers *all, mr_arena *arena, mr_resource ***found,
                                size_t *count, mr_error *error)
{
    pthread_mutex_lock(&session->mutex);
    *found = MR_ARENA_NEW(arena, mr_resource *, (size_t)session->resources.count + 1);
    for (mr_resource *at = session->resources.first; at && *found; at = at->later)
        if (has_container(all, at->container)) (*found)[(*count)++] = at;
    pthread_mutex_unlock(&session->mutex);
    return *found ? MR_OK : mr_fail_memory(error, sizeof **found);
}

mr_status mr_session_reset(mr_session *session, const char *const *names, int32_t count, mr_error *error)
{
    if (!session) return mr_session_null("mr_session_reset: session", error);
    MR_TRY(mr_session_check_list("mr_session_reset: containers", names, count, error));
    for (int32_t i = 0; i < count; i++)
        if (!names[i]) return mr_session_null("mr_session_reset: the name of a container", error);
    if (!mr_cancellation_pause(&session->runs))
        return mr_fail(error, MR_FAILED_PRECONDITION, "The session cannot be reset while a run is in progress.");
    containers all = {names, count};
    mr_arena arena = {0};
    mr_resource **found = nullptr;
    size_t found_count = 0;
    mr_status status = list_resources(session, &all, &arena, &found, &found_count, error);
    for (size_t i = 0; i < found_count; i++)
        if (found[i]->class->reset) found[i]->class->reset(found[i]);
    mr_cancellation_resume(&session->runs);
    mr_arena_deinit(&arena);
    return status;
}
