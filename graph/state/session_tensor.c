/* GetSessionHandle, GetSessionTensor and DeleteSessionTensor. A handle is "node;number;device", as in TensorFlow, whose
 * Python module reads the device from it. */
#include "graph/state/session_tensor.h"

#include "base/mutex.h"
#include "graph/run/session.h"
#include "graph/state/members.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kept kept;
struct kept {
    kept *next;
    char *handle;     /* owned */
    mr_tensor tensor; /* owned */
};

typedef struct store {
    mr_resource resource;
    pthread_mutex_t mutex; /* guards what follows */
    kept *first;           /* the newest first */
    uint64_t made;
} store;

static void free_kept(kept *k)
{
    mr_tensor_deinit(&k->tensor);
    free(k->handle);
    free(k);
}

static void store_deinit(mr_resource *resource)
{
    store *s = (store *)resource;
    while (s->first) {
        kept *next = s->first->next;
        free_kept(s->first);
        s->first = next;
    }
    pthread_mutex_destroy(&s->mutex);
}

static const mr_resource_class store_class = {
    .name = "session tensors", .size_bytes = sizeof(store), .deinit = store_deinit};

static mr_status store_of(mr_session *session, store **found, mr_error *error)
{
    mr_resource *resource = nullptr;
    bool made = false;
    pthread_mutex_lock(&session->mutex);
    mr_status status = mr_resource_make(&session->resources, &store_class, "", "", &resource, &made, error);
    if (made) pthread_mutex_init(&((store *)resource)->mutex, nullptr);
    pthread_mutex_unlock(&session->mutex);
    *found = (store *)resource;
    return status;
}

static mr_status find_store(const mr_kernel_call *call, store **found, mr_error *error)
{
    if (!call->run) return mr_fail(error, MR_UNIMPLEMENTED, "a tensor is kept outside of a session");
    return store_of(call->run->session, found, error);
}

static mr_status keep(mr_kernel_call *call, mr_error *error)
{
    static const char device[] = "/job:localhost/replica:0/task:0/device:CPU:0";
    store *s;
    MR_TRY(find_store(call, &s, error));
    kept *k = calloc(1, sizeof *k);
    if (!k) return mr_fail_memory(error, sizeof *k);
    mr_status status = mr_members_source(call, 0, &k->tensor, error);
    pthread_mutex_lock(&s->mutex);
    uint64_t number = s->made++;
    pthread_mutex_unlock(&s->mutex);
    if (status == MR_OK && asprintf(&k->handle, "%s;%" PRIu64 ";%s", call->node->name, number, device) < 0) {
        k->handle = nullptr;
        status = mr_fail_memory(error, sizeof device);
    }
    if (status == MR_OK) status = mr_tensor_init_string(&call->outputs[0], mr_string_from(k->handle), error);
    if (status != MR_OK) {
        free_kept(k);
        return status;
    }
    pthread_mutex_lock(&s->mutex);
    assert(number < s->made); /* so that no other tensor has its handle */
    k->next = s->first;
    s->first = k;
    pthread_mutex_unlock(&s->mutex);
    return MR_OK;
}

/* Finds the link to the tensor of a handle. If there is none, *link is null. */
static kept **find(store *s, mr_string handle)
{
    assert(mr_mutex_is_held(&s->mutex));
    kept **link = &s->first;
    while (*link && !mr_string_equal(mr_string_from((*link)->handle), handle)) link = &(*link)->next;
    return link;
}

static mr_status find_named(const mr_kernel_call *call, store **s, mr_error *error)
{
    if (mr_tensor_count(&call->inputs[0]) != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "handle must be scalar");
    return find_store(call, s, error);
}

static mr_status get_kept(store *s, mr_string handle, mr_tensor *tensor, mr_error *error)
{
    pthread_mutex_lock(&s->mutex);
    kept *k = *find(s, handle);
    if (k) *tensor = mr_tensor_ref(&k->tensor);
    pthread_mutex_unlock(&s->mutex);
    if (k) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "The tensor with handle '%.*s' is not in the session store.",
                   (int)MR_MIN(handle.size_bytes, (size_t)200), handle.data);
}

mr_status mr_session_tensor(mr_session *session, mr_string handle, mr_tensor *tensor, mr_error *error)
{
    store *s;
    MR_TRY(store_of(session, &s, error));
    return get_kept(s, handle, tensor, error);
}

static mr_status get(mr_kernel_call *call, mr_error *error)
{
    store *s;
    MR_TRY(find_named(call, &s, error));
    mr_string handle = mr_tensor_strings(&call->inputs[0])[0];
    MR_TRY(get_kept(s, handle, &call->outputs[0], error));
    mr_dtype found = call->outputs[0].dtype, expected = call->node->output_dtypes[0];
    if (found == expected) return MR_OK;
    mr_tensor_deinit(&call->outputs[0]);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the tensor with handle '%.*s' is %s, not %s",
                          (int)MR_MIN(handle.size_bytes, (size_t)200), handle.data, mr_dtype_name(found),
                          mr_dtype_name(expected));
}

static mr_status forget(mr_kernel_call *call, mr_error *error)
{
    store *s;
    MR_TRY(find_named(call, &s, error));
    mr_string handle = mr_tensor_strings(&call->inputs[0])[0];
    pthread_mutex_lock(&s->mutex);
    kept **link = find(s, handle), *k = *link;
    if (k) *link = k->next;
    pthread_mutex_unlock(&s->mutex);
    if (!k)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Failed to delete a tensor with handle '%.*s' in the session store.",
                              (int)MR_MIN(handle.size_bytes, (size_t)200), handle.data);
    free_kept(k);
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "GetSessionHandle", .run = keep},
    {.op = "GetSessionTensor", .run = get},
    {.op = "DeleteSessionTensor", .run = forget},
};
const mr_kernel_table mr_state_kernels_session_tensor = {kernels, sizeof kernels / sizeof kernels[0]};
