/* Runs the kernels of a file of cases and writes their outputs, for ops_compare.py:
 *
 *     ops_run cases results
 *
 * All numbers are little-endian; text is its length (u32) and its bytes.
 * cases    count, then for each: operator, attrs (count; name, kind letter, is list, count, values), inputs (count;
 *          tensors), outputs (count; dtypes), runs
 * tensor   dtype, rank, sizes (i64), elements; a string element is text
 * results  for each case: status, message, and each output of the last run as a tensor */
#include "base/kernel.h"
#include "base/pool.h"
#include "builtin/builtin.h"
#include "graph/state/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *in, *out;

static void take(void *to, size_t size)
{
    if (size > 0 && fread(to, size, 1, in) != 1) {
        fprintf(stderr, "ops_run: the file of cases is cut short\n");
        exit(1);
    }
}

static uint32_t take_u32(void)
{
    uint32_t value;
    take(&value, sizeof value);
    return value;
}

static int64_t take_i64(void)
{
    int64_t value;
    take(&value, sizeof value);
    return value;
}

static mr_string take_text(void)
{
    size_t size = take_u32();
    char *text = calloc(size + 1, 1);
    take(text, size);
    return (mr_string){text, size};
}

static mr_shape take_shape(void)
{
    mr_shape shape = {.rank = (int32_t)take_u32()};
    for (int i = 0; i < shape.rank && i < MR_RANK_MAX; i++) shape.dims[i] = take_i64();
    return shape;
}

static mr_tensor take_tensor(void)
{
    mr_error error = {0};
    mr_tensor tensor;
    mr_dtype dtype = (mr_dtype)take_u32();
    mr_shape shape = take_shape();
    int64_t count = mr_shape_count(shape);
    mr_status status;
    if (dtype == MR_STRING) {
        mr_string *strings = calloc((size_t)count + 1, sizeof *strings);
        for (int64_t i = 0; i < count; i++) strings[i] = take_text();
        status = mr_tensor_init_strings(&tensor, shape, strings, &error);
    } else {
        status = mr_tensor_init(&tensor, dtype, shape, &error);
        if (status == MR_OK) take(tensor.data, mr_tensor_size_bytes(&tensor));
    }
    if (status != MR_OK) {
        fprintf(stderr, "ops_run: %s\n", error.message);
        exit(1);
    }
    return tensor;
}

static mr_attr_value take_value(char kind)
{
    mr_attr_value value = {0};
    switch (kind) {
    case 's':
        value.string = take_text();
        break;
    case 'i':
        value.integer = take_i64();
        break;
    case 'f':
        take(&value.number, sizeof value.number);
        break;
    case 'b':
        value.boolean = take_u32() != 0;
        break;
    case 't':
        value.type = (int32_t)take_u32();
        break;
    case 'p':
        value.shape = take_shape();
        break;
    default:
        fprintf(stderr, "ops_run: attr kind %c\n", kind);
        exit(1);
    }
    return value;
}

static mr_attr take_attr(void)
{
    static const struct {
        char letter;
        mr_attr_kind kind;
    } kinds[] = {{'s', MR_ATTR_STRING}, {'i', MR_ATTR_INT},  {'f', MR_ATTR_FLOAT},
                 {'b', MR_ATTR_BOOL},   {'t', MR_ATTR_TYPE}, {'p', MR_ATTR_SHAPE}};
    mr_attr attr = {.name = take_text().data};
    char letter = take_text().data[0];
    attr.is_list = take_u32() != 0;
    attr.count = (int32_t)take_u32();
    attr.values = calloc((size_t)attr.count + 1, sizeof *attr.values);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].letter == letter) attr.kind = kinds[i].kind;
    for (int i = 0; i < attr.count; i++) attr.values[i] = take_value(letter);
    return attr;
}

static void put_u32(uint32_t value)
{
    fwrite(&value, sizeof value, 1, out);
}

static void put_text(const char *text, size_t size)
{
    put_u32((uint32_t)size);
    fwrite(text, 1, size, out);
}

static void put_tensor(const mr_tensor *tensor)
{
    put_u32(tensor->dtype);
    put_u32((uint32_t)tensor->shape.rank);
    for (int i = 0; i < tensor->shape.rank; i++) fwrite(&tensor->shape.dims[i], 8, 1, out);
    if (tensor->dtype != MR_STRING) {
        fwrite(tensor->data, 1, mr_tensor_size_bytes(tensor), out);
        return;
    }
    const mr_string *strings = mr_tensor_strings(tensor);
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) put_text(strings[i].data, strings[i].size_bytes);
}

static int compare_attrs(const void *a, const void *b)
{
    return strcmp(((const mr_attr *)a)->name, ((const mr_attr *)b)->name);
}

static void run_case(mr_device *device)
{
    constexpr int MOST = 64;
    mr_attr items[MOST];
    mr_tensor inputs[MOST], outputs[MOST] = {0};
    mr_dtype input_dtypes[MOST], output_dtypes[MOST];
    const bool may_reuse[MOST] = {false};
    mr_error error = {0};
    const char *op = take_text().data;
    mr_attrs attrs = {.count = (int32_t)take_u32(), .items = items};
    for (int i = 0; i < attrs.count && i < MOST; i++) items[i] = take_attr();
    qsort(items, (size_t)attrs.count, sizeof *items, compare_attrs);
    mr_kernel_node node = {.name = "case",
                           .op = op,
                           .attrs = &attrs,
                           .input_dtypes = input_dtypes,
                           .output_dtypes = output_dtypes,
                           .device = device};
    node.input_count = (int32_t)take_u32();
    for (int i = 0; i < node.input_count && i < MOST; i++) {
        inputs[i] = take_tensor();
        input_dtypes[i] = inputs[i].dtype;
    }
    node.output_count = (int32_t)take_u32();
    for (int i = 0; i < node.output_count && i < MOST; i++) output_dtypes[i] = (mr_dtype)take_u32();
    uint32_t runs = take_u32();
    const mr_kernel *kernel = mr_kernel_find(op, MR_DEVICE_CPU, &attrs);
    mr_status status = kernel ? MR_OK : mr_fail(&error, MR_UNIMPLEMENTED, "no kernel");
    void *prepared = nullptr;
    if (kernel && kernel->prepare) {
        prepared = calloc(1, kernel->prepared_size_bytes);
        status = kernel->prepare(&node, prepared, &error);
    }
    mr_kernel_random random = {0};
    mr_node_memory memory = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    for (uint32_t run = 0; run < runs && status == MR_OK; run++) {
        for (int i = 0; i < node.output_count; i++) mr_tensor_deinit(&outputs[i]);
        mr_kernel_call call = {.node = &node,
                               .prepared = prepared,
                               .device = device,
                               .inputs = inputs,
                               .may_reuse = may_reuse,
                               .outputs = outputs,
                               .state = &memory,
                               .invocation = run,
                               .random = &random};
        status = kernel->run(&call, &error);
    }
    put_u32(status);
    put_text(error.message, strlen(error.message));
    for (int i = 0; i < node.output_count && status == MR_OK; i++) put_tensor(&outputs[i]);
    for (int i = 0; i < node.output_count; i++) mr_tensor_deinit(&outputs[i]);
    for (int i = 0; i < node.input_count; i++) mr_tensor_deinit(&inputs[i]);
    free(prepared);
    free(memory.data);
}

int main(int count, char **arguments)
{
    mr_error error = {0};
    mr_pool *pool;
    mr_device *device;
    if (count != 3 || !(in = fopen(arguments[1], "rb")) || !(out = fopen(arguments[2], "wb"))) {
        fprintf(stderr, "use: ops_run cases results\n");
        return 1;
    }
    mr_builtin_register();
    if (mr_pool_new(2, &pool, &error) != MR_OK || mr_device_cpu_new(pool, &device, &error) != MR_OK) {
        fprintf(stderr, "ops_run: %s\n", error.message);
        return 1;
    }
    for (uint32_t cases = take_u32(); cases > 0; cases--) run_case(device);
    mr_device_free(device);
    mr_pool_free(pool);
    return fclose(out) == 0 ? 0 : 1;
}
