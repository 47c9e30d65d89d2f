/* A limited set of open files, closed by the CLOCK algorithm.
 *
 * One atomic number says whether a file is open and how many callers have acquired it, so that reading an open file
 * takes no lock. The lock guards the list of open files; files are opened and closed while it is held. A file that is
 * not acquired is closed by changing its number from 0 to CLOSED; a later acquire then takes the lock. */
#include "records/io/open_file.h"

#include "base/status.h"
#include "records/io/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static constexpr int32_t CLOSED = -1;
static constexpr int LIMIT_MAX = 1024, LIMIT_MIN = 8;

struct mr_open_file {
    _Atomic int32_t users;         /* number of callers that have acquired it, or CLOSED */
    _Atomic bool is_recent;        /* acquired since the hand last passed it */
    int descriptor;                /* valid unless CLOSED */
    mr_open_file *next, *previous; /* neighbors in the ring of open files; guarded by the mutex */
    dev_t device;
    ino_t inode;
    mr_file_stamp stamp;
    bool is_random;
    char path[];
};

static struct {
    pthread_mutex_t mutex;
    mr_open_file *hand; /* in the ring: the next file to examine; null: no file is open */
    int count, limit;   /* limit > 0: set by a test, instead of open_max */
    bool is_reclaimed;  /* mr_file_open uses this list to close idle files */
} list = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- The ring; mutex locked ---- */

/* Queried for each file that is opened, because the process may lower its limit at any time. */
static int open_max(void)
{
    if (list.limit > 0) return list.limit;
    struct rlimit files;
    int limit = LIMIT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < (rlim_t)limit) limit = (int)(files.rlim_cur / 4);
    return limit < LIMIT_MIN ? LIMIT_MIN : limit;
}

static void insert(mr_open_file *file)
{
    assert(file->next == nullptr && file->previous == nullptr);
    if (list.hand == nullptr) {
        assert(list.count == 0);
        list.hand = file->next = file->previous = file;
    } else { /* before the hand: it is examined last */
        file->next = list.hand;
        file->previous = list.hand->previous;
        file->previous->next = file->next->previous = file;
    }
    assert(file->next->previous == file && file->previous->next == file);
    list.count++;
}

static void take_out(mr_open_file *file)
{
    assert(list.count > 0 && file->next != nullptr && file->previous->next == file && file->next->previous == file);
    list.count--;
    if (list.hand == file) list.hand = file->next;
    if (list.count == 0) list.hand = nullptr;
    file->previous->next = file->next;
    file->next->previous = file->previous;
    file->next = file->previous = nullptr;
    assert((list.hand == nullptr) == (list.count == 0));
}

/* Closes a file that is not acquired; a recently used one only if there is no other. False: all files are acquired. */
static bool close_one(void)
{
    for (int i = 2 * list.count; i > 0; i--) {
        mr_open_file *file = list.hand;
        assert(file != nullptr && list.count > 0);
        list.hand = file->next;
        int32_t nobody = 0;
        if (atomic_exchange_explicit(&file->is_recent, false, memory_order_relaxed)) continue;
        if (!atomic_compare_exchange_strong(&file->users, &nobody, CLOSED)) continue;
        take_out(file);
        (void)close(file->descriptor);
        file->descriptor = -1;
        return true;
    }
    return false;
}

/* For other files, when the process has too many open files. */
static bool reclaim(void)
{
    (void)pthread_mutex_lock(&list.mutex);
    bool is_closed = close_one();
    (void)pthread_mutex_unlock(&list.mutex);
    return is_closed;
}

/* Opens and acquires a file whose number is CLOSED. */
static mr_status open_again(mr_open_file *file, struct stat *about, mr_error *error)
{
    assert(atomic_load(&file->users) == CLOSED && file->descriptor < 0);
    while (list.count >= open_max() && close_one()) {}
    mr_error problem = {0};
    mr_status status = mr_file_open_once(file->path, &file->descriptor, &problem);
    while (status == MR_RESOURCE_EXHAUSTED && close_one())
        status = mr_file_open_once(file->path, &file->descriptor, &problem);
    if (status != MR_OK) return mr_fail(error, status, "%s", problem.message);
    assert(file->descriptor >= 0);
    if (!list.is_reclaimed) mr_file_set_reclaim(reclaim);
    list.is_reclaimed = true;
    if (fstat(file->descriptor, about) != 0) {
        status = mr_file_fail(error, errno, "read", file->path);
        (void)close(file->descriptor);
        file->descriptor = -1;
        return status;
    }
    if (file->is_random) (void)posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_RANDOM);
    insert(file);
    atomic_store(&file->users, 1);
    return MR_OK;
}

/* ---- Open, free ---- */

mr_status mr_open_file_new(const char *path, bool is_random, mr_open_file **file, struct stat *about, mr_error *error)
{
    size_t size_bytes = strlen(path) + 1;
    mr_open_file *created = calloc(1, sizeof *created + size_bytes);
    if (created == nullptr) return mr_fail_memory(error, sizeof *created + size_bytes);
    memcpy(created->path, path, size_bytes);
    atomic_init(&created->users, CLOSED);
    created->is_random = is_random;
    created->descriptor = -1;
    (void)pthread_mutex_lock(&list.mutex);
    mr_status status = open_again(created, about, error);
    (void)pthread_mutex_unlock(&list.mutex);
    if (status != MR_OK) {
        free(created);
        return status;
    }
    created->stamp = mr_file_stamp_from(about);
    created->device = about->st_dev;
    created->inode = about->st_ino;
    mr_open_file_release(created);
    *file = created;
    return MR_OK;
}

void mr_open_file_free(mr_open_file *file)
{
    if (file == nullptr) return;
    (void)pthread_mutex_lock(&list.mutex);
    assert(atomic_load(&file->users) <= 0);
    if (atomic_load(&file->users) != CLOSED) {
        take_out(file);
        (void)close(file->descriptor);
    }
    (void)pthread_mutex_unlock(&list.mutex);
    free(file);
}

/* ---- Acquire, release ---- */

static bool acquire_open(mr_open_file *file)
{
    int32_t users = atomic_load_explicit(&file->users, memory_order_relaxed);
    while (users != CLOSED) {
        assert(users >= 0 && users < INT32_MAX);
        if (atomic_compare_exchange_weak_explicit(&file->users, &users, users + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

mr_status mr_open_file_acquire(mr_open_file *file, int *descriptor, mr_error *error)
{
    if (!acquire_open(file)) {
        mr_status status = MR_OK;
        struct stat about = {0};
        (void)pthread_mutex_lock(&list.mutex);
        /* Another thread may have opened it in the meantime. */
        bool is_opened = !acquire_open(file);
        if (is_opened) status = open_again(file, &about, error);
        (void)pthread_mutex_unlock(&list.mutex);
        MR_TRY(status);
        mr_file_stamp now = mr_file_stamp_from(&about);
        if (is_opened && (about.st_dev != file->device || about.st_ino != file->inode ||
                          now.size_bytes != file->stamp.size_bytes || now.modified_ns != file->stamp.modified_ns)) {
            mr_open_file_release(file);
            return mr_fail(error, MR_ABORTED, "%s: the file was changed while it was in use", file->path);
        }
    }
    if (!atomic_load_explicit(&file->is_recent, memory_order_relaxed))
        atomic_store_explicit(&file->is_recent, true, memory_order_relaxed);
    *descriptor = file->descriptor;
    assert(*descriptor >= 0);
    return MR_OK;
}

void mr_open_file_release(mr_open_file *file)
{
    int32_t users = atomic_fetch_sub_explicit(&file->users, 1, memory_order_release);
    assert(users > 0);
    (void)users;
}

void mr_open_file_limit(int limit)
{
    (void)pthread_mutex_lock(&list.mutex);
    list.limit = limit;
    (void)pthread_mutex_unlock(&list.mutex);
}

int mr_open_file_count(void)
{
    (void)pthread_mutex_lock(&list.mutex);
    int count = list.count;
    assert(count >= 0 && (count == 0) == (list.hand == nullptr));
    (void)pthread_mutex_unlock(&list.mutex);
    return count;
}
