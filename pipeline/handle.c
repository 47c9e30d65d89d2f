/* Handles: the table of all iterators that have one (handle.h).
 *
 * Lock order: the table's mutex is acquired alone. It is never held while an iterator is used; pins keep the iterator
 * alive. */
#include "pipeline/handle.h"

#include "pipeline/pipeline.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct entry {
    mr_iterator *iterator; /* null: invalidated */
    uint64_t generation;   /* number of times the entry has been used */
    int32_t pins;
    bool is_taken; /* from new until free has finished */
} entry;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t unpinned; /* the last pin of an invalidated entry has been released */
    entry *entries;
    uint32_t count, capacity;
    uint64_t process; /* random; differs between processes */
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER, .unpinned = PTHREAD_COND_INITIALIZER};

/* "iterator-" process "-" index "-" generation, in hexadecimal digits. */
constexpr size_t TEXT_BYTES = 9 + 16 + 1 + 8 + 1 + 16;

/* Lock held. An unused entry; null if out of memory. */
static entry *find_entry(void)
{
    for (uint32_t i = 0; i < table.count; i++)
        if (!table.entries[i].is_taken) return &table.entries[i];
    assert(table.count <= table.capacity);
    if (table.count == table.capacity) {
        uint32_t capacity = table.capacity == 0 ? 8 : 2 * table.capacity;
        entry *entries = realloc(table.entries, capacity * sizeof *entries);
        if (entries == nullptr) return nullptr;
        table.entries = entries;
        table.capacity = capacity;
    }
    entry *found = &table.entries[table.count++];
    *found = (entry){0};
    return found;
}

mr_status mr_handle_new(mr_iterator *iterator, mr_handle *handle, mr_error *error)
{
    pthread_mutex_lock(&table.mutex);
    if (table.process == 0) table.process = mr_digest(mr_digest(1, (uint64_t)getpid()), mr_now_ns()) | 1;
    entry *found = find_entry();
    if (found != nullptr) {
        assert(!found->is_taken && found->pins == 0 && found->iterator == nullptr);
        found->iterator = iterator;
        found->is_taken = true;
        *handle = (mr_handle){(uint32_t)(found - table.entries), ++found->generation};
    }
    pthread_mutex_unlock(&table.mutex);
    return found != nullptr ? MR_OK : mr_fail_memory(error, sizeof *found);
}

void mr_handle_invalidate(mr_handle handle)
{
    pthread_mutex_lock(&table.mutex);
    assert(table.entries[handle.index].is_taken && table.entries[handle.index].generation == handle.generation);
    table.entries[handle.index].iterator = nullptr;
    pthread_mutex_unlock(&table.mutex);
}

void mr_handle_free(mr_handle handle)
{
    pthread_mutex_lock(&table.mutex);
    assert(table.entries[handle.index].is_taken && table.entries[handle.index].generation == handle.generation);
    assert(table.entries[handle.index].iterator == nullptr);
    while (table.entries[handle.index].pins > 0) pthread_cond_wait(&table.unpinned, &table.mutex);
    table.entries[handle.index].is_taken = false;
    pthread_mutex_unlock(&table.mutex);
}

mr_status mr_handle_write(mr_handle handle, mr_tensor *tensor, mr_error *error)
{
    char text[TEXT_BYTES + 1];
    snprintf(text, sizeof text, "iterator-%016llx-%08x-%016llx", (unsigned long long)table.process, handle.index,
             (unsigned long long)handle.generation);
    return mr_tensor_init_string(tensor, (mr_string){text, TEXT_BYTES}, error);
}

static bool read_digits(const char *text, int count, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        const char *digits = "0123456789abcdef", *digit = text[i] == '\0' ? nullptr : strchr(digits, text[i]);
        if (digit == nullptr) return false;
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static mr_status read_handle(const mr_tensor *tensor, uint64_t *process, mr_handle *handle, mr_error *error)
{
    uint64_t index = 0;
    if (tensor->dtype == MR_STRING && mr_tensor_count(tensor) == 1) {
        mr_string string = mr_tensor_strings(tensor)[0];
        const char *text = string.data;
        if (string.size_bytes == TEXT_BYTES && memcmp(text, "iterator-", 9) == 0 &&
            read_digits(text + 9, 16, process) && text[25] == '-' && read_digits(text + 26, 8, &index) &&
            text[34] == '-' && read_digits(text + 35, 16, &handle->generation)) {
            handle->index = (uint32_t)index;
            return MR_OK;
        }
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "not a handle of an iterator");
}

mr_status mr_handle_acquire(const mr_tensor *tensor, mr_handle *handle, mr_iterator **iterator, mr_error *error)
{
    uint64_t process = 0;
    MR_TRY(read_handle(tensor, &process, handle, error));
    mr_status status = MR_OK;
    pthread_mutex_lock(&table.mutex);
    if (process != table.process)
        status = mr_fail(error, MR_NOT_FOUND, "the handle belongs to an iterator of another process");
    else if (handle->index >= table.count || handle->generation == 0 ||
             handle->generation > table.entries[handle->index].generation)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "not a handle of an iterator");
    else if (handle->generation != table.entries[handle->index].generation ||
             table.entries[handle->index].iterator == nullptr)
        status = mr_fail(error, MR_NOT_FOUND, "the iterator of the handle has been freed");
    if (status == MR_OK) {
        assert(table.entries[handle->index].is_taken && table.entries[handle->index].pins >= 0);
        *iterator = table.entries[handle->index].iterator;
        table.entries[handle->index].pins++;
    }
    pthread_mutex_unlock(&table.mutex);
    return status;
}

void mr_handle_release(mr_handle handle)
{
    pthread_mutex_lock(&table.mutex);
    entry *pinned = &table.entries[handle.index];
    assert(handle.index < table.count && pinned->pins > 0 && pinned->is_taken);
    if (--pinned->pins == 0 && pinned->iterator == nullptr) pthread_cond_broadcast(&table.unpinned);
    pthread_mutex_unlock(&table.mutex);
}
