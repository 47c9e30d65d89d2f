/* The devices of the process: device names, reference counts, and copies of tensors between devices. */
#include "base/arguments.h"
#include "base/buffer.h"
#include "base/device.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const mr_device_entry *_Atomic entries[MR_DEVICE_KIND_COUNT];

void mr_device_register(const mr_device_entry *entry)
{
    assert((unsigned)entry->kind < MR_DEVICE_KIND_COUNT);
    atomic_store(&entries[entry->kind], entry);
}

const mr_device_entry *mr_device_entry_find(mr_device_kind kind)
{
    return (unsigned)kind < MR_DEVICE_KIND_COUNT ? atomic_load(&entries[kind]) : nullptr;
}

/* ---- Names ---- */

typedef struct piece {
    const char *text;
    size_t size_bytes;
} piece;

static bool is(piece p, const char *word)
{
    return p.size_bytes == strlen(word) && strncasecmp(p.text, word, p.size_bytes) == 0;
}

/* Returns the text up to the next separator; skips a colon. */
static piece next_piece(const char **text, const char *separators)
{
    piece p = {*text, strcspn(*text, separators)};
    *text += p.size_bytes;
    if (**text == ':') ++*text;
    return p;
}

static bool read_index(piece p, int *index)
{
    *index = 0;
    if (p.size_bytes == 0 || is(p, "*")) return true;
    for (size_t i = 0; i < p.size_bytes; i++) {
        if (p.text[i] < '0' || p.text[i] > '9' || i == 6) return false;
        *index = *index * 10 + (p.text[i] - '0');
    }
    return true;
}

/* Parses one part, up to the slash: "device:GPU:1", "gpu:1" or "job:localhost". */
static bool parse_part(const char *text, mr_device_kind *kind, int *index, bool *is_device)
{
    piece type = next_piece(&text, ":/");
    *is_device = false;
    if (is(type, "job") || is(type, "replica") || is(type, "task")) return true;
    if (is(type, "device")) type = next_piece(&text, ":/");
    *is_device = true;
    if (is(type, "GPU"))
        *kind = MR_DEVICE_GPU;
    else if (is(type, "CPU"))
        *kind = MR_DEVICE_CPU;
    else
        return false;
    return read_index(next_piece(&text, ":/"), index) && (*text == '/' || *text == '\0');
}

mr_status mr_device_parse(const char *name, mr_device_kind *kind, int *index, mr_error *error)
{
    bool found = false, is_right = true;
    for (const char *at = name; *at != '\0' && is_right; at += strcspn(at, "/")) {
        at += strspn(at, "/");
        if (*at == '\0') break;
        bool is_device = false;
        is_right = parse_part(at, kind, index, &is_device) && !(found && is_device);
        found |= is_device;
    }
    if (found && is_right) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "\"%.100s\": not a device name (expected, for example, \"/gpu:0\" or \"/device:CPU:0\")", name);
}

/* ---- Open devices ---- */

static struct {
    pthread_mutex_t mutex;
    struct {
        mr_device *device; /* null: closed */
        int64_t references;
    } opened[MR_DEVICE_KIND_COUNT][MR_DEVICES_MAX];
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static mr_status open_device(mr_device_kind kind, int index, mr_device **device, mr_error *error)
{
    const mr_device_entry *entry = mr_device_entry_find(kind);
    if (entry != nullptr) return entry->open(index, device, error);
    if (kind == MR_DEVICE_CPU && index == 0) return mr_device_cpu_new(nullptr, device, error);
    return kind == MR_DEVICE_CPU
               ? mr_fail(error, MR_UNAVAILABLE, "CPU %d does not exist: all processors are CPU 0", index)
               : mr_fail(error, MR_UNAVAILABLE, "this program was built without GPU support");
}

mr_status mr_device_retain(mr_device_kind kind, int index, mr_device **device, mr_error *error)
{
    *device = nullptr;
    assert((unsigned)kind < MR_DEVICE_KIND_COUNT);
    if (index < 0 || index >= MR_DEVICES_MAX)
        return mr_fail(error, MR_UNAVAILABLE, "device %d does not exist: device numbers are 0 to %d", index,
                       MR_DEVICES_MAX - 1);
    pthread_mutex_lock(&table.mutex);
    typeof(table.opened[0][0]) *slot = &table.opened[kind][index];
    assert(slot->references >= 0 && (slot->device != nullptr) == (slot->references > 0));
    mr_status status = slot->device != nullptr ? MR_OK : open_device(kind, index, &slot->device, error);
    if (status == MR_OK) {
        slot->references++;
        *device = slot->device;
    } else {
        slot->device = nullptr;
    }
    pthread_mutex_unlock(&table.mutex);
    return status;
}

mr_status mr_device_retain_named(const char *name, mr_device **device, mr_error *error)
{
    mr_device_kind kind = MR_DEVICE_CPU;
    int index = 0;
    if (name == nullptr || device == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_device_open: %s is null", name == nullptr ? "name" : "device");
    *device = nullptr;
    MR_TRY(mr_device_parse(name, &kind, &index, error));
    return mr_device_retain(kind, index, device, error);
}

void mr_device_close(mr_device *device)
{
    if (device == nullptr) return;
    mr_device *gone = nullptr;
    pthread_mutex_lock(&table.mutex);
    for (int i = 0; i < MR_DEVICES_MAX; i++) {
        typeof(table.opened[0][0]) *slot = &table.opened[device->kind][i];
        if (slot->device != device) continue;
        assert(slot->references > 0);
        if (--slot->references > 0) break;
        gone = device;
        slot->device = nullptr;
        break;
    }
    mr_device_free(gone);
    pthread_mutex_unlock(&table.mutex);
}

const char *mr_device_name(const mr_device *device)
{
    return device != nullptr ? device->name : "";
}

/* ---- Tensors ---- */

mr_device *mr_tensor_device(const mr_tensor *tensor)
{
    return tensor == nullptr || tensor->buffer == nullptr ? nullptr : tensor->buffer->device;
}

mr_status mr_tensor_to_host(const mr_tensor *tensor, mr_tensor *copy, mr_error *error)
{
    MR_REFUSE_NULL(tensor, error);
    MR_REFUSE_NULL(copy, error);
    mr_device *device = mr_tensor_device(tensor);
    if (device == nullptr) {
        *copy = mr_tensor_ref(tensor);
        return MR_OK;
    }
    MR_TRY(mr_tensor_init(copy, tensor->dtype, tensor->shape, error));
    mr_status status =
        device->functions->copy_out(device, copy->data, tensor->data, mr_tensor_size_bytes(tensor), error);
    if (status == MR_OK) status = device->functions->wait(device, error);
    if (status != MR_OK) mr_tensor_deinit(copy);
    return status;
}

mr_status mr_tensor_to_device(const mr_tensor *tensor, mr_device *device, mr_tensor *copy, mr_error *error)
{
    mr_tensor host = {0};
    MR_REFUSE_NULL(tensor, error);
    MR_REFUSE_NULL(device, error);
    MR_REFUSE_NULL(copy, error);
    if (device->kind == MR_DEVICE_CPU || tensor->dtype == MR_STRING || tensor->dtype == MR_DTYPE_INVALID)
        return mr_tensor_to_host(tensor, copy, error);
    if (mr_tensor_device(tensor) == device) {
        *copy = mr_tensor_ref(tensor);
        return MR_OK;
    }
    *copy = (mr_tensor){0};
    MR_TRY(mr_tensor_to_host(tensor, &host, error));
    mr_status status = mr_tensor_init_on(copy, device, host.dtype, host.shape, error);
    if (status == MR_OK)
        status = device->functions->copy_in(device, copy->data, host.data, mr_tensor_size_bytes(&host), error);
    if (status == MR_OK) status = device->functions->wait(device, error);
    mr_tensor_deinit(&host);
    if (status != MR_OK) mr_tensor_deinit(copy);
    return status;
}
