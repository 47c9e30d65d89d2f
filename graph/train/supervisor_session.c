/* The session of a supervisor, which other threads use until it is closed. */
#include "base/status.h"
#include "graph/train/supervisor.h"

#include <assert.h>

mr_session *mr_supervisor_enter(mr_supervisor *supervisor, mr_error *error)
{
    pthread_mutex_lock(&supervisor->session_mutex);
    mr_session *session = supervisor->session;
    assert(supervisor->session_users >= 0);
    supervisor->session_users += session != nullptr;
    pthread_mutex_unlock(&supervisor->session_mutex);
    if (session == nullptr) (void)mr_fail(error, MR_FAILED_PRECONDITION, "the supervisor has no open session");
    return session;
}

void mr_supervisor_leave(mr_supervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->session_mutex);
    assert(supervisor->session_users > 0);
    if (--supervisor->session_users == 0) pthread_cond_broadcast(&supervisor->session_left);
    pthread_mutex_unlock(&supervisor->session_mutex);
}

void mr_supervisor_show_session(mr_supervisor *supervisor, mr_session *session)
{
    pthread_mutex_lock(&supervisor->session_mutex);
    assert(supervisor->session == nullptr && supervisor->session_users == 0);
    supervisor->session = session;
    pthread_mutex_unlock(&supervisor->session_mutex);
}

mr_session *mr_supervisor_take_session(mr_supervisor *supervisor)
{
    pthread_mutex_lock(&supervisor->session_mutex);
    mr_session *session = supervisor->session;
    supervisor->session = nullptr;
    while (supervisor->session_users > 0) pthread_cond_wait(&supervisor->session_left, &supervisor->session_mutex);
    assert(supervisor->session == nullptr && supervisor->session_users == 0);
    pthread_mutex_unlock(&supervisor->session_mutex);
    return session;
}
