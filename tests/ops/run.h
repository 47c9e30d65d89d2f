/* Runs one kernel in a test as a plan would, with the given attrs and inputs.
 *
 * run_op(&(op_run){.op = "Relu", .inputs = {x}, .threads = 2}, outputs);
 *
 * The attr T is MR_FLOAT unless attrs specify it; output dtypes are those of the first input by default. A failure ends
 * the test, or is checked with expect_error. */
#ifndef MR_TESTS_OPS_RUN_H
#define MR_TESTS_OPS_RUN_H

#include "base/cpu.h"
#include "base/kernel.h"
#include "base/pool.h"
#include "base/random.h"
#include "builtin/builtin.h"
#include "tests/test.h"

constexpr int OP_INPUTS_MAX = 8, OP_ATTRS_MAX = 12, OP_OUTPUTS_MAX = 8;

typedef struct op_attr {
    const char *name;
    char kind; /* i: ints, s: text, b: bool, f: number */
    int count; /* for a list; 0: one value */
    int64_t ints[8];
    const char *text;
    float number;
} op_attr;

typedef struct op_run {
    const char *op;
    mr_tensor inputs[OP_INPUTS_MAX]; /* up to the first without a dtype */
    op_attr attrs[OP_ATTRS_MAX];     /* up to the first without a name */
    int output_count;                /* 0: one */
    mr_dtype output_dtypes[OP_OUTPUTS_MAX];
    int threads;              /* 0: one */
    bool reuse;               /* outputs may reuse the memory of inputs */
    const char *expect_error; /* a part of the message; the run must fail */
} op_run;

/* The tensors that these functions return may be used inside an expression; they are released when the test's process
 * ends. */
static inline mr_tensor kept(mr_tensor tensor)
{
    static struct kept_buffer {
        struct kept_buffer *next;
        mr_buffer *buffer;
    } *first;
    struct kept_buffer *one = malloc(sizeof *one);
    CHECK(one != nullptr);
    *one = (struct kept_buffer){first, tensor.buffer};
    first = one;
    return tensor;
}

/* The outputs are owned by the caller; these tests release them by ending their process. */
static inline void run_op(const op_run *run, mr_tensor *outputs)
{
    mr_error error = {0};
    mr_attr items[OP_ATTRS_MAX + 1];
    mr_attr_value values[OP_ATTRS_MAX + 1][8] = {0};
    mr_dtype input_dtypes[OP_INPUTS_MAX] = {0}, output_dtypes[OP_OUTPUTS_MAX] = {0};
    mr_tensor inputs[OP_INPUTS_MAX];
    bool may_reuse[OP_INPUTS_MAX];
    mr_builtin_register();
    mr_pool *pool = nullptr;
    mr_device *device = nullptr;
    CHECK_OK(mr_pool_new(run->threads ? run->threads : 1, &pool, &error));
    CHECK_OK(mr_device_cpu_new(pool, &device, &error));
    mr_attrs attrs = {.items = items};
    for (int i = 0; i < OP_ATTRS_MAX && run->attrs[i].name; i++) {
        const op_attr *from = &run->attrs[i];
        mr_attr *to = &items[attrs.count++];
        *to = (mr_attr){.name = from->name, .is_list = from->count > 0, .values = values[i]};
        to->count = from->count > 0 ? from->count : 1;
        to->kind = from->kind == 'i'   ? MR_ATTR_INT
                   : from->kind == 's' ? MR_ATTR_STRING
                   : from->kind == 'b' ? MR_ATTR_BOOL
                                       : MR_ATTR_FLOAT;
        for (int v = 0; v < to->count; v++) {
            if (from->kind == 'i') values[i][v].integer = from->ints[v];
            if (from->kind == 'b') values[i][v].boolean = from->ints[v] != 0;
            if (from->kind == 'f') values[i][v].number = from->number;
            if (from->kind == 's') values[i][v].string = mr_string_from(from->text);
        }
    }
    static const char *const type_attrs[] = {"T", "U", "Tidx", "Tlabels"};
    for (int t = 0; t < 4 && attrs.count <= OP_ATTRS_MAX; t++) {
        static mr_attr_value types[4];
        if (attrs.count >= OP_ATTRS_MAX) break;
        types[t].type = t < 2 ? (int32_t)run->inputs[0].dtype : MR_INT32;
        items[attrs.count++] = (mr_attr){.name = type_attrs[t], .kind = MR_ATTR_TYPE, .count = 1, .values = &types[t]};
    }
    for (int i = 0; i < attrs.count; i++) /* sorted by name */
        for (int j = i + 1; j < attrs.count; j++)
            if (strcmp(items[i].name, items[j].name) > 0) {
                mr_attr swapped = items[i];
                items[i] = items[j];
                items[j] = swapped;
            }
    mr_kernel_node node = {.name = "tested",
                           .op = run->op,
                           .attrs = &attrs,
                           .input_dtypes = input_dtypes,
                           .output_dtypes = output_dtypes,
                           .device = device};
    while (node.input_count < OP_INPUTS_MAX && run->inputs[node.input_count].dtype != MR_DTYPE_INVALID) {
        inputs[node.input_count] = mr_tensor_ref(&run->inputs[node.input_count]);
        may_reuse[node.input_count] = run->reuse;
        input_dtypes[node.input_count] = run->inputs[node.input_count].dtype;
        node.input_count++;
    }
    node.output_count = run->output_count ? run->output_count : 1;
    for (int i = 0; i < node.output_count; i++)
        output_dtypes[i] = run->output_dtypes[i] != MR_DTYPE_INVALID ? run->output_dtypes[i] : run->inputs[0].dtype;
    const mr_kernel *kernel = mr_kernel_find(run->op, MR_DEVICE_CPU, &attrs);
    if (!kernel) test_fail(__FILE__, __LINE__, "no kernel for %s", run->op);
    void *prepared = kernel->prepare ? calloc(1, kernel->prepared_size_bytes) : nullptr;
    mr_status status = kernel->prepare ? kernel->prepare(&node, prepared, &error) : MR_OK;
    memset(outputs, 0, sizeof *outputs * (size_t)node.output_count);
    mr_kernel_random random = {0};
    mr_kernel_call call = {.node = &node,
                           .prepared = prepared,
                           .device = device,
                           .inputs = inputs,
                           .may_reuse = may_reuse,
                           .outputs = outputs,
                           .random = &random};
    if (status == MR_OK) status = kernel->run(&call, &error);
    for (int i = 0; i < node.input_count; i++) mr_tensor_deinit(&inputs[i]);
    if (run->expect_error) {
        CHECK(status != MR_OK);
        CHECK_CONTAINS(error.message, run->expect_error);
        CHECK_CONTAINS(error.message, "tested");
    } else {
        CHECK_OK(status);
    }
    for (int i = 0; i < node.output_count; i++) (void)kept(outputs[i]);
    free(prepared);
    mr_device_free(device);
    mr_pool_free(pool);
}

static inline mr_tensor run_op_one(const op_run *run)
{
    mr_tensor outputs[OP_OUTPUTS_MAX];
    run_op(run, outputs);
    return outputs[0];
}

/* Numbers in [-1, 1) that depend on the seed of this run and on `which`. */
static inline mr_tensor random_floats(mr_shape shape, uint64_t which)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init(&tensor, MR_FLOAT, shape, &error));
    mr_random random = mr_random_at(test_seed(), which, 0, 0);
    for (int64_t i = 0; i < mr_tensor_count(&tensor); i++)
        mr_tensor_floats(&tensor)[i] = (float)mr_random_range(&random, -1, 1);
    return kept(tensor);
}

static inline mr_tensor floats_of(mr_shape shape, const float *values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_FLOAT, shape, values, &error));
    return kept(tensor);
}

static inline mr_tensor int32s_of(int64_t count, const int32_t *values)
{
    mr_error error = {0};
    mr_tensor tensor = {0};
    CHECK_OK(mr_tensor_init_copy(&tensor, MR_INT32, MR_SHAPE(count), values, &error));
    return kept(tensor);
}
#define INT32S(...) int32s_of((int64_t)(sizeof((int32_t[]){__VA_ARGS__}) / 4), (int32_t[]){__VA_ARGS__})

static inline mr_tensor int32_of(int32_t value)
{
    mr_tensor scalar = {0};
    CHECK(mr_tensor_init_int32(&scalar, value, nullptr) == MR_OK);
    return kept(scalar);
}

static inline void check_same_bits(const mr_tensor *a, const mr_tensor *b)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    CHECK(memcmp(a->data, b->data, mr_tensor_size_bytes(a)) == 0);
}

/* |a - b| <= tolerance · max(1, |b|) everywhere. */
static inline void check_close(const mr_tensor *a, const mr_tensor *b, double tolerance)
{
    CHECK(mr_shape_equal(a->shape, b->shape));
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        double x = (double)mr_tensor_floats(a)[i], y = (double)mr_tensor_floats(b)[i];
        if (!(fabs(x - y) <= tolerance * fmax(1, fabs(y))))
            test_fail(__FILE__, __LINE__, "element %lld is %.9g, the oracle's %.9g", (long long)i, x, y);
    }
}

/* Limits this process to a level of the processor; call it before the first kernel. False if the machine does not
 * support the level. */
static inline bool use_level(const char *name, mr_cpu_level level)
{
    setenv("MILLRACE_CPU", name, 1);
    return mr_cpu() == level;
}

#endif
