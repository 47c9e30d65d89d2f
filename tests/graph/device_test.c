/* Two devices in one graph. The second device works in host memory, but its addresses are invalid on the CPU: an access
 * to its memory without a copy crashes. */
#include "base/buffer.h"
#include "base/kernel.h"
#include "builtin/builtin.h"
#include "tests/test.h"
#include <millrace/ops.h>
#include <millrace/session.h>

/* ---- The device ---- */

constexpr uintptr_t AWAY = (uintptr_t)1 << 60;
static int copies_in, copies_out, copies_within, waits, live_buffers;

static void *away(void *host)
{
    return (void *)((uintptr_t)host + AWAY);
}

static void *here(const void *device)
{
    CHECK((uintptr_t)device >= AWAY);
    return (void *)((uintptr_t)device - AWAY);
}

static void release(void *context, void *data)
{
    (void)context;
    free(here(data));
    live_buffers--;
}

static mr_status allocate(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    void *host = malloc(size_bytes ? size_bytes : 1);
    live_buffers++;
    MR_TRY(mr_buffer_wrap(away(host), size_bytes, release, nullptr, buffer, error));
    (*buffer)->device = device;
    return MR_OK;
}

static mr_status allocate_host(mr_device *device, size_t size_bytes, mr_buffer **buffer, mr_error *error)
{
    (void)device;
    return mr_buffer_new(size_bytes, buffer, error);
}

static mr_status copy_in(mr_device *device, void *target, const void *host, size_t size_bytes, mr_error *error)
{
    (void)device;
    (void)error;
    memcpy(here(target), host, size_bytes);
    copies_in++;
    return MR_OK;
}

static mr_status copy_out(mr_device *device, void *host, const void *source, size_t size_bytes, mr_error *error)
{
    (void)device;
    (void)error;
    memcpy(host, here(source), size_bytes);
    copies_out++;
    return MR_OK;
}

static mr_status copy_within(mr_device *device, void *target, const void *source, size_t size_bytes, mr_error *error)
{
    (void)device;
    (void)error;
    memcpy(here(target), here(source), size_bytes);
    copies_within++;
    return MR_OK;
}

static mr_status wait_for(mr_device *device, mr_error *error)
{
    (void)device;
    (void)error;
    waits++;
    return MR_OK;
}

static void free_device(mr_device *device)
{
    free(device);
}

static const mr_device_functions functions = {.allocate = allocate,
                                              .allocate_host = allocate_host,
                                              .copy_in = copy_in,
                                              .copy_out = copy_out,
                                              .copy = copy_within,
                                              .wait = wait_for,
                                              .free = free_device};

static mr_status open_device(int index, mr_device **device, mr_error *error)
{
    if (index > 0) return mr_fail(error, MR_NOT_FOUND, "there is one device only");
    *device = calloc(1, sizeof **device);
    **device = (mr_device){.functions = &functions, .kind = MR_DEVICE_GPU, .name = "/device:GPU:0"};
    return MR_OK;
}

/* ---- Its kernels ---- */

static mr_status square(mr_kernel_call *call, mr_error *error)
{
    const float *x = here(call->inputs[0].data);
    int64_t count = mr_tensor_count(&call->inputs[0]);
    MR_TRY(mr_kernel_forward(call, 0, 0, call->inputs[0].shape, error));
    float *y = here(call->outputs[0].data);
    for (int64_t i = 0; i < count; i++) y[i] = x[i] * x[i];
    return MR_OK;
}

static mr_status identity(mr_kernel_call *call, mr_error *error)
{
    (void)error;
    call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
    return MR_OK;
}

/* The host reads the sizes of the new shape. */
static mr_status reshape(mr_kernel_call *call, mr_error *error)
{
    mr_shape shape = {.rank = (int32_t)mr_tensor_count(&call->inputs[1])};
    for (int32_t i = 0; i < shape.rank; i++) shape.dims[i] = mr_tensor_int32s(&call->inputs[1])[i];
    return mr_tensor_reshape(&call->inputs[0], shape, &call->outputs[0], error);
}

static mr_status add_to(mr_kernel_call *call, mr_error *error)
{
    (void)error;
    float *target = here(call->inputs[0].data);
    const float *source = here(call->inputs[1].data);
    for (int64_t i = 0; i < mr_tensor_count(&call->inputs[0]); i++) target[i] += source[i];
    return MR_OK;
}

static const mr_kernel kernels[] = {
    {.op = "Square", .device = MR_DEVICE_GPU, .types = "T: float", .run = square},
    {.op = "Identity", .device = MR_DEVICE_GPU, .types = "T: float", .run = identity},
    {.op = "Reshape", .device = MR_DEVICE_GPU, .types = "T: float", .run = reshape, .host_inputs = 1 << 1},
    {.op = "AssignAdd", .device = MR_DEVICE_GPU, .types = "T: float", .run = add_to, .updates = 1},
};
static const mr_kernel_table table = {kernels, sizeof kernels / sizeof kernels[0]};

static mr_graph *new_graph(void)
{
    static const mr_device_entry entry = {.kind_name = "GPU", .kind = MR_DEVICE_GPU, .open = open_device};
    mr_kernel_table_register(&table); /* takes precedence over tables of other devices of this kind */
    mr_builtin_register();
    mr_device_register(&entry);
    return mr_graph_new();
}

static mr_session *open_session(mr_graph *g)
{
    mr_error error = {0};
    mr_session *session = nullptr;
    mr_session_options options = {
        .size = sizeof options, .threads = 1, .device = "/device:GPU:0", .log_device_placement = true};
    CHECK_OK(mr_session_new(g, &options, &session, &error));
    return session;
}

static float run_scalar(mr_session *session, mr_feeds feeds, mr_output fetch)
{
    mr_error error = {0};
    mr_tensor result = {0};
    CHECK_OK(mr_session_run(session, feeds, (mr_outputs){&fetch, 1}, &result, nullptr, 0, &error));
    float value = mr_tensor_floats(&result)[0];
    mr_tensor_deinit(&result);
    return value;
}

/* ---- The tests ---- */

TEST(devices_copies_stand_between_them)
{
    mr_error error = {0};
    mr_graph *g = new_graph();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output there = mr_square(g, mr_square(g, x, .name = "first"), .name = "second");
    mr_output back = mr_floor(g, there, .name = "back"); /* has no kernel on the device */
    mr_output again = mr_square(g, mr_reshape(g, back, mr_constant_ints(g, MR_INTS(1, 1))), .name = "again");
    mr_session *session = open_session(g);
    mr_tensor two = {0};
    CHECK_OK(mr_tensor_init_float(&two, 2, &error));
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, two}), again), 256, 0);
    CHECK_EQ(copies_in, 2);  /* x, back */
    CHECK_EQ(copies_out, 2); /* second, the result */
    CHECK(waits >= 2);
    const char *notes = mr_session_log(session);
    CHECK(strstr(notes, "second (Square): /device:GPU:0\n") != nullptr);
    CHECK(strstr(notes, "back (Floor): /device:CPU:0\n") != nullptr);
    CHECK(strstr(notes, "Floor has no GPU kernel: back runs on the CPU\n") != nullptr);
    copies_in = copies_out = 0;
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, two}), back), 16, 0);
    CHECK_EQ(copies_in, 1);
    CHECK_EQ(copies_out, 1);
    mr_tensor_deinit(&two);
    mr_session_free(session);
    CHECK_EQ(live_buffers, 0);
    mr_graph_free(g);
}

/* A value that several nodes use is copied once; a constant is copied when the plan is created. */
TEST(devices_a_value_is_copied_once)
{
    mr_error error = {0};
    mr_graph *g = new_graph();
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    mr_output a = mr_square(g, x), b = mr_square(g, mr_identity(g, x));
    mr_output quotient = mr_floor_div(g, a, b); /* has no kernel on the device */
    mr_session *session = open_session(g);
    mr_tensor three = {0};
    CHECK_OK(mr_tensor_init_float(&three, 3, &error));
    CHECK_NEAR(run_scalar(session, MR_FEEDS({x, three}), quotient), 1, 0);
    CHECK_EQ(copies_in, 1);
    CHECK_EQ(copies_out, 2);
    mr_tensor_deinit(&three);
    mr_session_free(session);
    CHECK_EQ(live_buffers, 0);
    mr_graph_free(g);
}

TEST(devices_variables_live_there)
{
    mr_error error = {0};
    mr_graph *g = new_graph();
    mr_variable w = mr_variable_new(g, "w", mr_constant_float(g, 3.0f));
    mr_output step = mr_assign_add(g, w.ref, mr_constant_float(g, 1.0f));
    mr_output y = mr_square(g, w.value);
    mr_session *session = open_session(g);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, y), 9, 0);
    CHECK(strstr(mr_session_log(session), "w (VariableV2): /device:GPU:0\n") != nullptr);
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(session, w.ref, &value, &error));
    CHECK_NEAR(mr_tensor_floats(&value)[0], 3, 0);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &step.node, 1, &error));
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, y), 16, 0);
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, w.ref), 4, 0);
    CHECK_NEAR(mr_tensor_floats(&value)[0], 3, 0);
    CHECK_OK(mr_session_write_variable(session, w.ref, &value, &error));
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, w.value), 3, 0);
    mr_tensor_deinit(&value);
    mr_session_free(session);
    CHECK_EQ(live_buffers, 0);
    mr_graph_free(g);
}

/* A variable that some node of the graph can use only on the CPU is placed there, with all nodes that use it. */
TEST(devices_a_variable_stays_where_all_can_use_it)
{
    mr_error error = {0};
    mr_graph *g = new_graph();
    mr_variable w = mr_variable_new(g, "w", mr_constant_floats(g, MR_SHAPE(1), (float[]){3}, nullptr));
    mr_output row = mr_constant_ints(g, MR_INTS(0)), one = mr_constant_floats(g, MR_SHAPE(1), (float[]){1}, nullptr);
    mr_output less = mr_scatter_sub(g, w.ref, row, one); /* has no kernel on the device */
    mr_output y = mr_square(g, w.value, .name = "y");
    mr_session *session = open_session(g);
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &w.initializer, 1, &error));
    CHECK_OK(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &less.node, 1, &error));
    CHECK_NEAR(run_scalar(session, MR_NO_FEEDS, y), 4, 0);
    CHECK(strstr(mr_session_log(session), "w (VariableV2) is on the CPU: there is no GPU kernel for ScatterSub") !=
          nullptr);
    CHECK(strstr(mr_session_log(session), "y (Square): /device:GPU:0\n") != nullptr);
    mr_session_free(session);
    CHECK_EQ(live_buffers, 0);
    mr_graph_free(g);
}

TEST(session_refuses_a_device_name_that_is_none)
{
    static const char *const names[] = {"bogus", "/bogus", "/gpu:", "gpu:0", "/device:GPU:-1"};
    mr_graph *g = new_graph();
    mr_output y = mr_square(g, mr_constant_float(g, 3));
    (void)y;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mr_error error = {0};
        mr_session *session = nullptr;
        mr_session_options options = {.size = sizeof options, .threads = 1, .device = names[i]};
        CHECK_STATUS(mr_session_new(g, &options, &session, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, names[i]);
    }
    mr_graph_free(g);
}
