/* Reads dumps, ours and those of tfdbg: the names of the files say what they contain. */
#include "base/arena.h"
#include "base/status.h"
#include "graph/ir/convert.h"
#include "graph/train/dump.h"
#include "proto/event.pb-c.h"
#include "records/io/file.h"

#include <millrace/file.h>

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

constexpr int32_t ITEMS_MAX = 10'000'000;

struct mr_dump {
    mr_arena arena; /* has the names */
    mr_dump_item *items;
    int32_t count, capacity;
};

/* While files are listed. */
typedef struct listing {
    mr_dump *dump;
    const char *root;   /* the directory of a device */
    const char *device; /* its name */
} listing;

/* ---- Names ---- */

/* The number at the end of a text before `end`, after a separator, which becomes the end. False: there is none. */
static bool take_number(const char *text, const char **end, char separator, int64_t *number)
{
    const char *begin = *end;
    uint64_t value = 0;
    while (begin > text && isdigit((unsigned char)begin[-1])) begin--;
    if (begin == *end || *end - begin > 18 || begin == text || begin[-1] != separator) return false;
    for (const char *c = begin; c < *end; c++) value = 10 * value + (uint64_t)(*c - '0');
    *number = (int64_t)value;
    *end = begin - 1;
    return true;
}

/* Reads "NODE_OUTPUT_OP_TIME" or "NODE_OUTPUT_OP_TIME-INDEX". Sets *node_length, *op and its length. */
static bool parse_name(const char *name, mr_dump_item *item, size_t *node_length, mr_string *op, int64_t *index)
{
    const char *end = name + strlen(name);
    int64_t output;
    *index = 0;
    (void)take_number(name, &end, '-', index);
    if (!take_number(name, &end, '_', &item->time_us)) return false;
    const char *op_end = end;
    while (end > name && end[-1] != '_') end--;
    if (end == name || end == op_end) return false;
    *op = (mr_string){end, (size_t)(op_end - end)};
    end--;
    if (!take_number(name, &end, '_', &output) || output > INT32_MAX || end == name) return false;
    item->output = (int32_t)output;
    *node_length = (size_t)(end - name);
    return true;
}

/* "_tfdbg_device_,job_localhost,replica_0,device_CPU_0": the name of the device. */
static char *device_name(mr_arena *arena, const char *directory)
{
    char *name = mr_arena_strdup(arena, directory + strlen(MR_DUMP_DEVICE));
    for (char *part = name; part != nullptr && *part != '\0'; part++) {
        if (*part == ',') *part = '/';
        if (*part == '_') *part = ':';
    }
    return name;
}

/* ---- The list ---- */

static mr_status add_room(mr_dump *dump, mr_error *error)
{
    if (dump->count < dump->capacity) return MR_OK;
    if (dump->count == ITEMS_MAX)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "the dump has more than %d files", (int)ITEMS_MAX);
    int32_t capacity = dump->capacity > 0 ? 2 * dump->capacity : 64;
    mr_dump_item *grown = realloc(dump->items, (size_t)capacity * sizeof *grown);
    if (grown == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *grown);
    dump->items = grown;
    dump->capacity = capacity;
    return MR_OK;
}

/* Anything else, such as a pipe, could block a reader. */
static mr_status check_file(const char *path, uint64_t *size_bytes, mr_error *error)
{
    struct stat about;
    if (stat(path, &about) != 0) return mr_file_fail(error, errno, "read", path);
    if (!S_ISREG(about.st_mode)) return mr_fail(error, MR_DATA_LOSS, "%s: not a regular file", path);
    *size_bytes = (uint64_t)about.st_size;
    return MR_OK;
}

/* directory: of the file, below the device's */
static mr_status add_file(listing *l, const char *directory, mr_string name, mr_error *error)
{
    mr_dump *dump = l->dump;
    mr_dump_item item = {.device = l->device};
    size_t node_length = 0;
    mr_string op = {0};
    int64_t index = 0;
    char *path = mr_arena_printf(&dump->arena, "%s/%.*s", directory, (int)name.size_bytes, name.data);
    if (path == nullptr) return mr_fail_memory(error, name.size_bytes);
    const char *base = path + strlen(directory) + 1;
    if (strcmp(directory, l->root) == 0 && strncmp(base, MR_DUMP_GRAPH, strlen(MR_DUMP_GRAPH)) == 0) return MR_OK;
    if (!parse_name(base, &item, &node_length, &op, &index))
        return mr_fail(error, MR_DATA_LOSS, "%s: not the name of a dumped value, NODE_OUTPUT_OP_TIME", path);
    MR_TRY(check_file(path, &item.size_bytes, error));
    const char *scope = directory + strlen(l->root);
    if (*scope == '/') scope++;
    item.path = path;
    item.node = mr_arena_printf(&dump->arena, "%s%s%.*s", scope, *scope != '\0' ? "/" : "", (int)node_length, base);
    item.debug_op = mr_arena_printf(&dump->arena, "%.*s", (int)op.size_bytes, op.data);
    if (item.node == nullptr || item.debug_op == nullptr) return mr_fail_memory(error, node_length);
    MR_TRY(add_room(dump, error));
    assert(dump->count < dump->capacity && dump->capacity <= 2 * ITEMS_MAX);
    dump->items[dump->count++] = item;
    return MR_OK;
}

static mr_status add_files(void *context, const char *directory, const mr_tensor *, const mr_tensor *files,
                           mr_error *error)
{
    for (int64_t i = 0, count = mr_tensor_count(files); i < count; i++)
        MR_TRY(add_file(context, directory, mr_tensor_strings(files)[i], error));
    return MR_OK;
}

/* The index after the time, of values with the same time. */
static int64_t index_of(const mr_dump_item *item)
{
    const char *base = strrchr(item->path, '/') + 1, *end = base + strlen(base);
    int64_t index = 0;
    (void)take_number(base, &end, '-', &index);
    return index;
}

static int by_time(const void *a, const void *b)
{
    const mr_dump_item *x = a, *y = b;
    if (x->time_us != y->time_us) return x->time_us < y->time_us ? -1 : 1;
    int64_t i = index_of(x), j = index_of(y);
    if (i != j) return i < j ? -1 : 1;
    return strcmp(x->path, y->path);
}

static mr_status list_device(mr_dump *dump, const char *path, mr_string name, mr_error *error)
{
    char *root = mr_arena_printf(&dump->arena, "%s/%.*s", path, (int)name.size_bytes, name.data);
    char *device = root != nullptr ? device_name(&dump->arena, root + strlen(path) + 1) : nullptr;
    if (device == nullptr) return mr_fail_memory(error, name.size_bytes);
    listing l = {.dump = dump, .root = root, .device = device};
    return mr_gfile_walk(root, true, add_files, &l, error);
}

static mr_status list_dump(mr_dump *dump, const char *path, mr_error *error)
{
    mr_tensor names = {0};
    bool is_dump = false;
    MR_TRY(mr_gfile_list_directory(path, &names, error));
    mr_status status = MR_OK;
    for (int64_t i = 0, count = mr_tensor_count(&names); i < count && status == MR_OK; i++) {
        mr_string name = mr_tensor_strings(&names)[i];
        if (name.size_bytes < strlen(MR_DUMP_PREFIX) || strncmp(name.data, MR_DUMP_PREFIX, strlen(MR_DUMP_PREFIX)) != 0)
            continue;
        if (strncmp(name.data, MR_DUMP_GRAPH, strlen(MR_DUMP_GRAPH)) == 0) continue; /* in that of a device */
        is_dump = true;
        if (name.size_bytes >= strlen(MR_DUMP_DEVICE) &&
            strncmp(name.data, MR_DUMP_DEVICE, strlen(MR_DUMP_DEVICE)) == 0)
            status = list_device(dump, path, name, error);
    }
    mr_tensor_deinit(&names);
    if (status == MR_OK && !is_dump)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: not the dump of a run: it has no " MR_DUMP_PREFIX " files",
                       path);
    return status;
}

mr_status mr_dump_open(const char *path, mr_dump **dump, mr_error *error)
{
    if (dump == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_open: dump is null");
    *dump = nullptr;
    if (path == nullptr || *path == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "the path of the dump is empty");
    mr_dump *d = calloc(1, sizeof *d);
    if (d == nullptr) return mr_fail_memory(error, sizeof *d);
    mr_status status = list_dump(d, path, error);
    if (status != MR_OK) {
        mr_dump_close(d);
        return status;
    }
    if (d->count > 0) qsort(d->items, (size_t)d->count, sizeof *d->items, by_time);
    *dump = d;
    return MR_OK;
}

void mr_dump_close(mr_dump *dump)
{
    if (dump == nullptr) return;
    mr_arena_deinit(&dump->arena);
    free(dump->items);
    free(dump);
}

int32_t mr_dump_count(const mr_dump *dump)
{
    return dump != nullptr ? dump->count : 0;
}

const mr_dump_item *mr_dump_item_at(const mr_dump *dump, int32_t index)
{
    return dump != nullptr && index >= 0 && index < dump->count ? &dump->items[index] : nullptr;
}

/* ---- Values ---- */

/* Without elements although its shape has some: TensorFlow writes uninitialized tensors and handles so. */
static bool is_unset(const Mr__TensorProto *proto)
{
    if (proto->dtype == MR_RESOURCE || proto->dtype == MR_VARIANT) return true;
    if (proto->tensor_content.len > 0 || proto->n_string_val > 0) return false;
    int64_t count = 1;
    for (size_t i = 0; proto->tensor_shape != nullptr && i < proto->tensor_shape->n_dim; i++)
        if (proto->tensor_shape->dim[i]->size == 0) count = 0;
    return count != 0 && proto->n_float_val + proto->n_double_val + proto->n_int_val + proto->n_int64_val +
                                 proto->n_bool_val + proto->n_half_val + proto->n_scomplex_val + proto->n_dcomplex_val +
                                 proto->n_uint32_val + proto->n_uint64_val ==
                             0;
}

static mr_status read_event(mr_string bytes, mr_arena *arena, mr_tensor *value, mr_error *error)
{
    Mr__Event *event = nullptr;
    mr_import_budget budget = {.tensor_bytes = MR_DUMP_FILE_BYTES_MAX};
    MR_TRY(mr_proto_unpack_as(event, bytes, arena, &event, error));
    if (event->what_case != MR__EVENT__WHAT_SUMMARY || event->summary->n_value != 1 ||
        event->summary->value[0]->value_case != MR__SUMMARY__VALUE__VALUE_TENSOR)
        return mr_fail(error, MR_DATA_LOSS, "not an Event with one tensor");
    const Mr__TensorProto *proto = event->summary->value[0]->tensor;
    return is_unset(proto) ? MR_OK : mr_tensor_read(proto, &budget, value, error);
}

mr_status mr_dump_read_file(const char *path, mr_tensor *value, mr_error *error)
{
    char *bytes = nullptr;
    size_t size_bytes = 0;
    mr_arena arena = {0};
    if (value == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_read: value is null");
    *value = (mr_tensor){0};
    if (path == nullptr || *path == '\0') return mr_fail(error, MR_INVALID_ARGUMENT, "the path of the value is empty");
    uint64_t expected_bytes;
    MR_TRY(check_file(path, &expected_bytes, error));
    MR_TRY(mr_file_read_all(path, MR_DUMP_FILE_BYTES_MAX, &bytes, &size_bytes, error));
    mr_status status = read_event((mr_string){bytes, size_bytes}, &arena, value, error);
    mr_arena_deinit(&arena);
    free(bytes);
    if (status == MR_OK) return MR_OK;
    return mr_fail_prefix(error, status == MR_INVALID_ARGUMENT ? MR_DATA_LOSS : status, "%s", path);
}

mr_status mr_dump_read(const mr_dump *dump, int32_t index, mr_tensor *value, mr_error *error)
{
    const mr_dump_item *item = mr_dump_item_at(dump, index);
    if (value == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_read: value is null");
    *value = (mr_tensor){0};
    if (dump == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_read: dump is null");
    if (item == nullptr)
        return mr_fail(error, MR_OUT_OF_RANGE, "the dump has %d values; there is no %d", (int)mr_dump_count(dump),
                       (int)index);
    return mr_dump_read_file(item->path, value, error);
}

mr_status mr_dump_find(const mr_dump *dump,
                       bool (*accepts)(void *context, const mr_dump_item *item, const mr_tensor *value), void *context,
                       int32_t from, int32_t *index, mr_error *error)
{
    if (index == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_find: index is null");
    *index = -1;
    if (dump == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_find: dump is null");
    if (accepts == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_dump_find: accepts is null");
    for (int32_t i = from > 0 ? from : 0; i < mr_dump_count(dump); i++) {
        mr_tensor value = {0};
        MR_TRY(mr_dump_read(dump, i, &value, error));
        bool is_found = accepts(context, &dump->items[i], &value);
        mr_tensor_deinit(&value);
        if (!is_found) continue;
        *index = i;
        return MR_OK;
    }
    return MR_OK;
}

bool mr_dump_has_inf_or_nan(void *, const mr_dump_item *, const mr_tensor *value)
{
    return value != nullptr && value->dtype != MR_DTYPE_INVALID && mr_dump_is_nonfinite(value);
}
