/* The kernel registry: selects a kernel by operator, device and types; and creates the outputs of a run. */
#include "base/kernel.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

constexpr int TABLES_MAX = 256;

/* Which operators a table may have kernels of: a bit for the hash of each. A search passes over the other tables. */
typedef struct op_filter {
    uint64_t bits[4];
} op_filter;

static const mr_kernel_table *tables[TABLES_MAX];
static op_filter filters[TABLES_MAX];
static atomic_int table_count;

static uint8_t op_hash(const char *op)
{
    uint32_t hash = 2166136261;
    for (; *op; op++) hash = (hash ^ (uint8_t)*op) * 16777619;
    return (uint8_t)(hash >> 24);
}

void mr_kernel_table_register(const mr_kernel_table *table)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    assert(table != nullptr && (table->kernels != nullptr || table->count == 0));
    pthread_mutex_lock(&mutex);
    int count = atomic_load(&table_count);
    bool known = false;
    for (int i = 0; i < count; i++) known |= tables[i] == table;
    if (!known) {
        assert(count < TABLES_MAX);
        tables[count] = table;
        for (size_t i = 0; i < table->count; i++) {
            const uint8_t hash = op_hash(table->kernels[i].op);
            filters[count].bits[hash / 64] |= 1ull << hash % 64;
        }
        atomic_store(&table_count, count + 1);
    }
    pthread_mutex_unlock(&mutex);
}

/* Whether the dtype's name is one of the words between begin and end, which are separated by commas and spaces. */
static bool lists_dtype(const char *begin, const char *end, mr_dtype dtype)
{
    const char *name = mr_dtype_name(dtype);
    size_t length = strlen(name);
    while (begin < end) {
        size_t word = strcspn(begin, ", ;");
        if (begin + word > end) word = (size_t)(end - begin);
        if (word == length && memcmp(begin, name, length) == 0) return true;
        begin += word;
        begin += strspn(begin, ", ");
        if (word == 0 && begin < end && *begin == ';') return false;
    }
    return false;
}

/* Whether all types of an attr, single or list, are among the dtypes between begin and end. */
static bool serves_attr(const mr_attr *attr, const char *begin, const char *end)
{
    if (attr == nullptr || attr->kind != MR_ATTR_TYPE) return false;
    for (int32_t i = 0; i < attr->count; i++) {
        int32_t type = attr->values[i].type;
        if (type > MR_DTYPE_REF) type -= MR_DTYPE_REF;
        if (!lists_dtype(begin, end, (mr_dtype)type)) return false;
    }
    return true;
}

/* Matches the attrs against "T: float, double; Tidx: int32, int64". */
static bool serves(const char *types, const mr_attrs *attrs)
{
    if (types == nullptr) return true;
    while (*types != '\0') {
        types += strspn(types, " ;");
        const char *colon = strchr(types, ':');
        if (colon == nullptr) return *types == '\0';
        const char *end = colon + strcspn(colon, ";");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(colon - types), types);
        const char *begin = colon + 1 + strspn(colon + 1, " ");
        if (!serves_attr(mr_attrs_find(attrs, name), begin, end)) return false;
        types = end;
    }
    return true;
}

const mr_kernel *mr_kernel_find(const char *op, mr_device_kind device, const mr_attrs *attrs)
{
    const int count = atomic_load(&table_count);
    const uint8_t hash = op_hash(op);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; filters[i].bits[hash / 64] >> hash % 64 & 1 && j < tables[i]->count; j++) {
            const mr_kernel *kernel = &tables[i]->kernels[j];
            if (kernel->device == device && strcmp(kernel->op, op) == 0 && serves(kernel->types, attrs)) return kernel;
        }
    return nullptr;
}

void mr_kernel_each(void (*visit)(void *context, const mr_kernel *kernel), void *context)
{
    int count = atomic_load(&table_count);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < tables[i]->count; j++) visit(context, &tables[i]->kernels[j]);
}

static bool in_host_memory(uint32_t mask, int index)
{
    return (mask >> 31 & 1) != 0 || (index < 31 && (mask >> index & 1) != 0);
}

mr_status mr_kernel_fail_memory(const mr_kernel_call *call, mr_dtype dtype, mr_shape shape, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) {
        int64_t before = count;
        if (__builtin_mul_overflow(before, shape.dims[i], &count))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Encountered overflow when multiplying %lld with %lld, result: -1", (long long)before,
                                  (long long)shape.dims[i]);
    }
    return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED,
                          "OOM when allocating tensor with shape%s and type %s",
                          mr_shape_text(shape, text, sizeof text), mr_dtype_name(dtype));
}

mr_status mr_kernel_output(mr_kernel_call *call, int index, mr_shape shape, mr_error *error)
{
    assert(index >= 0 && index < call->node->output_count);
    mr_dtype dtype = call->node->output_dtypes[index];
    bool on_host = call->device->kind != MR_DEVICE_CPU && in_host_memory(call->node->host_outputs, index);
    mr_status status = on_host ? mr_tensor_init(&call->outputs[index], dtype, shape, error)
                               : mr_tensor_init_on(&call->outputs[index], call->device, dtype, shape, error);
    if (status == MR_OK) return MR_OK;
    bool is_size = mr_dtype_size(dtype) > 0 && (on_host || call->device->kind == MR_DEVICE_CPU);
    for (int i = 0; i < shape.rank; i++) is_size = is_size && shape.dims[i] >= 0;
    return is_size && shape.rank <= MR_RANK_MAX
               ? mr_kernel_fail_memory(call, dtype, shape, error)
               : mr_fail_prefix(error, status, "%s (%s)", call->node->name, call->node->op);
}

mr_status mr_kernel_forward(mr_kernel_call *call, int index, int input, mr_shape shape, mr_error *error)
{
    assert(input >= 0 && input < call->node->input_count);
    assert(index >= 0 && index < call->node->output_count);
    mr_dtype dtype = call->node->output_dtypes[index];
    mr_tensor *source = &call->inputs[input];
    if (call->may_reuse == nullptr || !call->may_reuse[input] || source->buffer == nullptr)
        return mr_kernel_output(call, index, shape, error);
    bool same_bytes = dtype == source->dtype && mr_shape_equal(shape, source->shape);
    if (!same_bytes) {
        int64_t count = mr_shape_count(shape);
        same_bytes = source->dtype != MR_STRING && count >= 0 &&
                     (size_t)count * mr_dtype_size(dtype) == mr_tensor_size_bytes(source);
    }
    bool same_memory = call->device->kind == MR_DEVICE_CPU || !in_host_memory(call->node->host_outputs, index);
    if (dtype == MR_STRING || !same_bytes || !same_memory) return mr_kernel_output(call, index, shape, error);
    call->outputs[index] = (mr_tensor){.dtype = dtype, .shape = shape, .buffer = source->buffer, .data = source->data};
    source->buffer = nullptr;
    return MR_OK;
}

mr_status mr_kernel_fail(const mr_kernel_node *node, mr_error *error, mr_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mr_status result = mr_fail_va(error, status, format, args);
    va_end(args);
    (void)mr_fail_prefix(error, status, "%s (%s)", node->name, node->op);
    return result;
}

mr_status mr_kernel_unsupported(const mr_kernel_node *node, mr_error *error)
{
    char types[256];
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "No OpKernel was registered to support Op '%s'%s", node->op,
                          mr_attrs_types_text(node->attrs, types, sizeof types));
}
