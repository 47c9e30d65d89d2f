/* Variables: their values, and the operators that name, read and assign them.
 *
 * A value is a reference to a buffer. Reading adds a reference and copies nothing. An update of a variable with a
 * handle works in place if the variable's reference is the only one, otherwise on a copy, so a value that was read
 * never changes. Other variables are always updated in place: their buffer is marked as mutable, and what leaves the
 * session is copied. Strings are never changed in place. */
#include "graph/state/state.h"

#include "base/buffer.h"
#include "base/pool.h"

#include <assert.h>
#include <string.h>

static void variable_deinit(mr_resource *resource)
{
    mr_variable_state *variable = (mr_variable_state *)resource;
    mr_tensor_deinit(&variable->value);
    pthread_mutex_destroy(&variable->mutex);
}

static void variable_reset(mr_resource *resource)
{
    mr_variable_state *variable = (mr_variable_state *)resource;
    pthread_mutex_lock(&variable->mutex);
    mr_tensor before = variable->value;
    variable->value = (mr_tensor){0};
    variable->initialized = false;
    pthread_mutex_unlock(&variable->mutex);
    mr_tensor_deinit(&before);
}

const mr_resource_class mr_variable_class = {
    .name = "variable", .size_bytes = sizeof(mr_variable_state), .deinit = variable_deinit, .reset = variable_reset};

mr_status mr_variable_uninitialized(const mr_variable_state *variable, mr_variable_use use, mr_error *error)
{
    static const struct {
        mr_status status;
        const char *prefix;
    } uses[] = {[MR_VARIABLE_READ] = {MR_FAILED_PRECONDITION, ""},
                [MR_VARIABLE_CHANGE] = {MR_NOT_FOUND, ""},
                [MR_VARIABLE_TRAIN] = {MR_INTERNAL, "Invalid variable reference. "}};
    if (!variable->by_handle)
        return mr_fail(error, MR_FAILED_PRECONDITION, "Attempting to use uninitialized value %s",
                       variable->resource.name);
    return mr_fail(
        error, uses[use].status,
        "%sCould not find variable %s. This could mean that the variable has been deleted. In TF1, it can also "
        "mean the variable is uninitialized. Debug info: container=localhost, status error message=Resource "
        "localhost/%s/N10tensorflow3VarE does not exist.",
        uses[use].prefix, variable->resource.name, variable->resource.name);
}

mr_status mr_variable_read(mr_variable_state *variable, mr_variable_use use, mr_tensor *value, mr_error *error)
{
    pthread_mutex_lock(&variable->mutex);
    bool initialized = variable->initialized;
    assert(!initialized || variable->value.dtype == variable->dtype);
    if (initialized) *value = mr_tensor_ref(&variable->value);
    pthread_mutex_unlock(&variable->mutex);
    return initialized ? MR_OK : mr_variable_uninitialized(variable, use, error);
}

mr_status mr_variable_snapshot(mr_variable_state *variable, mr_tensor *value, mr_error *error)
{
    pthread_mutex_lock(&variable->mutex);
    mr_status status = MR_OK;
    if (!variable->initialized)
        status = mr_variable_uninitialized(variable, MR_VARIABLE_READ, error);
    else if (variable->value.buffer && variable->value.buffer->is_mutable)
        status = mr_tensor_duplicate(variable->device, &variable->value, value, error);
    else
        *value = mr_tensor_ref(&variable->value);
    pthread_mutex_unlock(&variable->mutex);
    return status;
}

typedef struct copying {
    char *target;
    const char *source;
    size_t size_bytes;
} copying;

constexpr size_t PIECE_BYTES = 1 << 18;

static void copy_pieces(void *context, int64_t begin, int64_t end)
{
    const copying *c = context;
    const size_t from = (size_t)begin * PIECE_BYTES, whole = (size_t)end * PIECE_BYTES;
    memcpy(c->target + from, c->source + from, (whole < c->size_bytes ? whole : c->size_bytes) - from);
}

static mr_status copy_elements(mr_device *device, void *target, const void *source, size_t size_bytes, mr_error *error)
{
    if (size_bytes == 0 || target == source) return MR_OK;
    if (device->functions->copy) return device->functions->copy(device, target, source, size_bytes, error);
    if (device->kind != MR_DEVICE_CPU)
        return mr_fail(error, MR_UNIMPLEMENTED, "%s cannot copy within its memory", device->name);
    copying c = {.target = target, .source = source, .size_bytes = size_bytes};
    mr_pool_for(device->pool, (int64_t)((size_bytes + PIECE_BYTES - 1) / PIECE_BYTES), 1, copy_pieces, &c);
    return MR_OK;
}

mr_status mr_tensor_duplicate(mr_device *device, const mr_tensor *source, mr_tensor *copy, mr_error *error)
{
    if (source->dtype == MR_STRING)
        return mr_tensor_init_strings(copy, source->shape, mr_tensor_strings(source), error);
    MR_TRY(mr_tensor_init_on(copy, device, source->dtype, source->shape, error));
    mr_status status = copy_elements(device, copy->data, source->data, mr_tensor_size_bytes(source), error);
    if (status != MR_OK) mr_tensor_deinit(copy);
    return status;
}

static mr_status fail_shape(const mr_variable_state *variable, mr_shape expected, mr_shape found, mr_error *error)
{
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    const char *format = variable->by_handle
                             ? "Trying to assign to variable with tensor with wrong shape. Expected %s got %s"
                             : "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s";
    return mr_fail(error, MR_INVALID_ARGUMENT, format, mr_shape_text(expected, wanted, sizeof wanted),
                   mr_shape_text(found, given, sizeof given));
}

static mr_status check_value(const mr_variable_state *variable, const mr_tensor *value, bool any_shape, mr_error *error)
{
    if (value->dtype != variable->dtype)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s is a %s, but the value is a %s", variable->resource.name,
                       mr_dtype_name(variable->dtype), mr_dtype_name(value->dtype));
    if (any_shape || mr_shape_compatible(variable->shape, value->shape)) return MR_OK;
    return fail_shape(variable, variable->shape, value->shape, error);
}

/* Replaces the variable's buffer. The value is owned, and belongs to the variable afterwards. */
static void set_value(mr_variable_state *variable, mr_tensor value)
{
    pthread_mutex_lock(&variable->mutex);
    mr_tensor before = variable->value;
    bool has_bytes = value.dtype != MR_STRING && mr_dtype_size(value.dtype) > 0;
    if (value.buffer && has_bytes) value.buffer->is_mutable = !variable->by_handle;
    variable->value = value;
    variable->initialized = true;
    pthread_mutex_unlock(&variable->mutex);
    mr_tensor_deinit(&before);
}

/* Writes the elements to the variable's buffer, if it is mutable and has the right size. */
static mr_status write_in_place(mr_variable_state *variable, const mr_tensor *value, bool *written, mr_error *error)
{
    mr_status status = MR_OK;
    pthread_mutex_lock(&variable->mutex);
    mr_tensor *target = &variable->value;
    *written = target->buffer && target->buffer->is_mutable && mr_tensor_count(target) == mr_tensor_count(value);
    if (*written) {
        assert(variable->initialized && !variable->by_handle && target->dtype == value->dtype);
        status = copy_elements(variable->device, target->data, value->data, mr_tensor_size_bytes(value), error);
        if (status == MR_OK) target->shape = value->shape;
    }
    pthread_mutex_unlock(&variable->mutex);
    return status;
}

mr_status mr_variable_write(mr_variable_state *variable, const mr_tensor *value, bool take, bool any_shape,
                            mr_error *error)
{
    bool written = false;
    MR_TRY(check_value(variable, value, any_shape, error));
    MR_TRY(write_in_place(variable, value, &written, error));
    if (written) return MR_OK;
    mr_tensor own = {0};
    if (take || value->dtype == MR_STRING || mr_dtype_size(value->dtype) == 0 || !value->buffer)
        own = mr_tensor_ref(value);
    else
        MR_TRY(mr_tensor_duplicate(variable->device, value, &own, error));
    set_value(variable, own);
    return MR_OK;
}

mr_status mr_variable_own(mr_variable_state *variable, mr_error *error)
{
    mr_buffer *buffer = variable->value.buffer;
    assert(mr_mutex_is_held(&variable->mutex));
    if (!buffer || buffer->is_mutable || mr_buffer_is_unique(buffer)) return MR_OK;
    mr_tensor copy = {0};
    MR_TRY(mr_tensor_duplicate(variable->device, &variable->value, &copy, error));
    mr_tensor_deinit(&variable->value);
    variable->value = copy;
    return MR_OK;
}

/* ---- VariableV2, Variable, VarHandleOp ---- */

/* Checks that another node with the variable's name declares the same dtype and shape. */
static mr_status check_shared(const mr_variable_state *variable, mr_dtype dtype, mr_shape shape, mr_error *error)
{
    char first[MR_SHAPE_TEXT_SIZE], second[MR_SHAPE_TEXT_SIZE];
    if (variable->dtype != dtype)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the variable %s already exists as a %s, not a %s",
                       variable->resource.name, mr_dtype_name(variable->dtype), mr_dtype_name(dtype));
    if (!mr_shape_compatible(variable->shape, shape))
        return mr_fail(error, MR_INVALID_ARGUMENT, "the variable %s already exists with shape %s, not %s",
                       variable->resource.name, mr_shape_text(variable->shape, first, sizeof first),
                       mr_shape_text(shape, second, sizeof second));
    return MR_OK;
}

static mr_status make_variable(mr_resource_table *resources, const mr_node *node, mr_device *device,
                               mr_resource **resource, mr_error *error)
{
    bool made = false;
    MR_TRY(mr_resource_of_node(resources, &mr_variable_class, node, resource, &made, error));
    mr_variable_state *variable = (mr_variable_state *)*resource;
    mr_dtype dtype = mr_attr_type_or(&node->attrs, "dtype", MR_DTYPE_INVALID);
    mr_shape shape = MR_SHAPE_UNKNOWN;
    if (mr_attr_get_shape(&node->attrs, "shape", &shape, nullptr) != MR_OK) shape = MR_SHAPE_UNKNOWN;
    if (!made) return check_shared(variable, dtype, shape, error);
    pthread_mutex_init(&variable->mutex, nullptr);
    variable->dtype = dtype;
    variable->device = device;
    variable->by_handle = strcmp(node->op, "VarHandleOp") == 0;
    variable->shape = shape;
    return MR_OK;
}

static const mr_state_row rows[] = {
    {.op = "VariableV2", .make = make_variable, .on_gpu = true},
    {.op = "Variable", .make = make_variable, .on_gpu = true},
    {.op = "VarHandleOp", .make = make_variable, .on_gpu = true},
};

const mr_state_table mr_state_variable = {rows, sizeof rows / sizeof rows[0]};

/* ---- Assignment and queries ---- */

static mr_status variable_at(const mr_kernel_call *call, int input, mr_variable_state **variable, mr_error *error)
{
    mr_resource *resource;
    MR_TRY(mr_handle_get(call, input, &mr_variable_class, &resource, error));
    *variable = (mr_variable_state *)resource;
    return MR_OK;
}

/* validate_shape compares with the current value, whatever shape was declared. The owner of a feed may write to it
 * again, so only a buffer of the run itself is taken over.
 * declares_first  the first value is compared with the declared shape; otherwise it has any shape */
static mr_status set_validated(mr_kernel_call *call, bool validates, bool declares_first, mr_error *error)
{
    mr_variable_state *variable;
    MR_TRY(variable_at(call, 0, &variable, error));
    pthread_mutex_lock(&variable->mutex);
    mr_shape current = declares_first ? variable->shape : MR_SHAPE_UNKNOWN;
    if (variable->initialized) current = variable->value.shape;
    pthread_mutex_unlock(&variable->mutex);
    if (validates && !mr_shape_compatible(current, call->inputs[1].shape))
        return fail_shape(variable, current, call->inputs[1].shape, error);
    return mr_variable_write(variable, &call->inputs[1], call->may_reuse[1], true, error);
}

static mr_status assign(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(set_validated(call, mr_attr_bool_or(call->node->attrs, "validate_shape", true), true, error));
    call->outputs[0] = call->inputs[0];
    return MR_OK;
}

static mr_status assign_by_handle(mr_kernel_call *call, mr_error *error)
{
    return set_validated(call, mr_attr_bool_or(call->node->attrs, "validate_shape", false), false, error);
}

static mr_status read_by_handle(mr_kernel_call *call, mr_error *error)
{
    mr_variable_state *variable;
    MR_TRY(variable_at(call, 0, &variable, error));
    if (variable->dtype != call->node->output_dtypes[0])
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the variable %s is a %s, but a %s was requested",
                              variable->resource.name, mr_dtype_name(variable->dtype),
                              mr_dtype_name(call->node->output_dtypes[0]));
    return mr_variable_read(variable, MR_VARIABLE_READ, &call->outputs[0], error);
}

static mr_status is_initialized(mr_kernel_call *call, mr_error *error)
{
    mr_variable_state *variable;
    MR_TRY(variable_at(call, 0, &variable, error));
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    pthread_mutex_lock(&variable->mutex);
    mr_tensor_bools(&call->outputs[0])[0] = variable->initialized;
    pthread_mutex_unlock(&variable->mutex);
    return MR_OK;
}

static mr_status variable_shape(mr_kernel_call *call, mr_error *error)
{
    mr_variable_state *variable;
    MR_TRY(variable_at(call, 0, &variable, error));
    mr_tensor value = {0};
    MR_TRY(mr_variable_read(variable, MR_VARIABLE_CHANGE, &value, error));
    mr_status status = mr_kernel_output(call, 0, MR_SHAPE(value.shape.rank), error);
    for (int32_t i = 0; status == MR_OK && i < value.shape.rank; i++) {
        if (call->outputs[0].dtype == MR_INT64)
            mr_tensor_int64s(&call->outputs[0])[i] = value.shape.dims[i];
        else
            mr_tensor_int32s(&call->outputs[0])[i] = (int32_t)value.shape.dims[i];
    }
    mr_tensor_deinit(&value);
    return status;
}

static mr_status destroy(mr_kernel_call *call, mr_error *error)
{
    mr_variable_state *variable;
    MR_TRY(variable_at(call, 0, &variable, error));
    pthread_mutex_lock(&variable->mutex);
    const bool is_absent = !variable->initialized;
    pthread_mutex_unlock(&variable->mutex);
    variable_reset(&variable->resource);
    if (!is_absent || mr_attr_bool_or(call->node->attrs, "ignore_lookup_error", true)) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_NOT_FOUND, "Resource localhost/%s/N10tensorflow3VarE does not exist.",
                          variable->resource.name);
}

static mr_status pass_reference(mr_kernel_call *call, mr_error *)
{
    call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
    return MR_OK;
}

static mr_status select_reference(mr_kernel_call *call, mr_error *error)
{
    int32_t count = call->node->input_count - 1;
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Index must be a scalar");
    int32_t index = mr_tensor_int32s(&call->inputs[0])[0];
    if (index < 0 || index >= count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Index must be in the range [0, %d) but got %d",
                              (int)count, (int)index);
    call->outputs[0] = mr_tensor_ref(&call->inputs[1 + index]);
    return MR_OK;
}

/* A value that was read never changes, so there is nothing to disable. */
static mr_status keep_copies(mr_kernel_call *call, mr_error *error)
{
    mr_variable_state *variable;
    return variable_at(call, 0, &variable, error);
}

#define ON_BOTH(...)                                                                                                   \
    {.device = MR_DEVICE_CPU, __VA_ARGS__},                                                                            \
    {                                                                                                                  \
        .device = MR_DEVICE_GPU, __VA_ARGS__                                                                           \
    }
static const mr_kernel kernels[] = {
    ON_BOTH(.op = "Assign", .run = assign),
    ON_BOTH(.op = "AssignVariableOp", .run = assign_by_handle),
    ON_BOTH(.op = "ReadVariableOp", .run = read_by_handle),
    ON_BOTH(.op = "IsVariableInitialized", .run = is_initialized, .host_outputs = 1u << 31),
    ON_BOTH(.op = "VarIsInitializedOp", .run = is_initialized, .host_outputs = 1u << 31),
    ON_BOTH(.op = "VariableShape", .run = variable_shape, .host_outputs = 1u << 31),
    ON_BOTH(.op = "DestroyResourceOp", .run = destroy),
    ON_BOTH(.op = "RefIdentity", .run = pass_reference),
    ON_BOTH(.op = "DebugGradientRefIdentity", .run = pass_reference),
    {.op = "RefSelect", .run = select_reference},
    ON_BOTH(.op = "DisableCopyOnRead", .run = keep_copies),
};
const mr_kernel_table mr_state_kernels_variable = {kernels, sizeof kernels / sizeof kernels[0]};
