/* Mutexes: a check for assertions. */
#ifndef MR_BASE_MUTEX_H
#define MR_BASE_MUTEX_H

#include <pthread.h>

/* For assertions that the caller holds the mutex: true if any thread does. */
static inline bool mr_mutex_is_held(const pthread_mutex_t *mutex)
{
    if (pthread_mutex_trylock((pthread_mutex_t *)mutex) != 0) return true;
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
    return false;
}

#endif
