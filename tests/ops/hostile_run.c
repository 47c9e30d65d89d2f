/* Builds one hostile case into a graph and runs it in a session. */
#include "tests/ops/hostile.h"
#include <float.h>
#include <millrace/image.h>

/* ---- Values ---- */

static double special_number(int special)
{
    static const double numbers[] = {0.0, -0.0, NAN,  INFINITY, -INFINITY, 1e300, -1e300, 1e-310,
                                     3e9, -3e9, 1e19, -1e19,    9.3e18,    255.5, -0.5,   FLT_MAX};
    return numbers[(size_t)(special - 1) % (sizeof numbers / sizeof numbers[0])];
}

static double number_at(const hostile_input *input, int64_t index)
{
    if (index == 0 && input->special > 0) return special_number(input->special);
    if (input->value_count > 0) return (double)input->values[index % input->value_count];
    return 0.5 + 0.25 * (double)(index % 7);
}

static int64_t integer_at(const hostile_input *input, int64_t index)
{
    return input->value_count > 0 ? input->values[index % input->value_count] : index % 3;
}

static void fill(const hostile_input *input, mr_tensor *tensor)
{
    void *data = tensor->data;
    for (int64_t i = 0, count = mr_tensor_count(tensor); i < count; i++) {
        double number = number_at(input, i);
        uint64_t integer = (uint64_t)integer_at(input, i);
        switch (input->dtype) {
        case MR_FLOAT:
            ((float *)data)[i] = (float)number;
            break;
        case MR_DOUBLE:
            ((double *)data)[i] = number;
            break;
        case MR_HALF:
            ((uint16_t *)data)[i] = mr_float_to_half((float)number);
            break;
        case MR_BFLOAT16:
            ((uint16_t *)data)[i] = mr_float_to_bfloat16((float)number);
            break;
        case MR_BOOL:
            ((bool *)data)[i] = integer != 0;
            break;
        case MR_COMPLEX64:
            ((float *)data)[2 * i] = (float)number;
            ((float *)data)[2 * i + 1] = (float)(i % 2);
            break;
        case MR_COMPLEX128:
            ((double *)data)[2 * i] = number;
            ((double *)data)[2 * i + 1] = (double)(i % 2);
            break;
        default: /* little-endian: the low bytes of the integer */
            memset((char *)data + (size_t)i * mr_dtype_size(input->dtype), 0, mr_dtype_size(input->dtype));
            memcpy((char *)data + (size_t)i * mr_dtype_size(input->dtype), &integer,
                   mr_dtype_size(input->dtype) < sizeof integer ? mr_dtype_size(input->dtype) : sizeof integer);
            break;
        }
    }
}

/* A small JPEG or PNG image, created once. */
static mr_string image_bytes(bool is_png)
{
    static mr_tensor encoded[2];
    if (encoded[is_png].data == nullptr) {
        mr_error error = {0};
        mr_tensor pixels = {0};
        CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(5, 7, 3), &error));
        for (int i = 0; i < 5 * 7 * 3; i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i * 37);
        if (is_png)
            CHECK_OK(mr_image_encode_png(&pixels, &encoded[is_png], &error));
        else
            CHECK_OK(mr_image_encode_jpeg(&pixels, 90, &encoded[is_png], &error));
        mr_tensor_deinit(&pixels);
    }
    return mr_tensor_strings(&encoded[is_png])[0];
}

/* Two pixels, red and green, as a GIF and a BMP. */
static mr_string frame_bytes(bool is_gif)
{
    static const char gif[] = "GIF89a\2\0\1\0\x80\0\0\xff\0\0\0\xff\0,\0\0\0\0\2\0\1\0\0\2\2\x44\x0a\0;";
    static const char bmp[] = "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\2\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\x8\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\0\xff\0\0";
    return is_gif ? (mr_string){gif, sizeof gif - 1} : (mr_string){bmp, sizeof bmp};
}

static mr_status fill_strings(const hostile_input *input, mr_tensor *tensor, mr_error *error)
{
    char text[1024];
    mr_string value = {text, 0};
    if (strcmp(input->text, "$PNG") == 0 || strcmp(input->text, "$JPEG") == 0)
        value = image_bytes(input->text[1] == 'P');
    else if (strcmp(input->text, "$GIF") == 0 || strcmp(input->text, "$BMP") == 0)
        value = frame_bytes(input->text[1] == 'G');
    else if (strncmp(input->text, "$DIR", 4) == 0)
        value.size_bytes = (size_t)snprintf(text, sizeof text, "%s%s", test_directory(), input->text + 4);
    else
        value = mr_string_from(input->text);
    int64_t count = mr_shape_count(input->shape);
    mr_string *values = calloc(count > 0 ? (size_t)count : 1, sizeof *values);
    CHECK(values != nullptr);
    for (int64_t i = 0; i < count; i++) values[i] = value;
    mr_status status = mr_tensor_init_strings(tensor, input->shape, values, error);
    free(values);
    return status;
}

mr_status hostile_tensor(const hostile_input *input, mr_tensor *tensor, mr_error *error)
{
    *tensor = (mr_tensor){.dtype = input->dtype};
    if (input->form == HOSTILE_NULL_HANDLE) return MR_OK;
    if (input->dtype == MR_STRING) return fill_strings(input, tensor, error);
    MR_TRY(mr_tensor_init(tensor, input->dtype, input->shape, error));
    fill(input, tensor);
    return MR_OK;
}

/* ---- The graph ---- */

typedef struct build {
    const hostile_case *of;
    mr_graph *graph;
    mr_output inputs[HOSTILE_INPUTS_MAX];
    mr_tensor values[HOSTILE_INPUTS_MAX];
    mr_feed feeds[HOSTILE_INPUTS_MAX];
    int32_t feed_count;
    mr_node *node;
} build;

static mr_output add_const(build *b, const mr_tensor *value)
{
    mr_node_builder builder = mr_node_begin(b->graph, "Const", "constant");
    mr_node_set_tensor(&builder, "value", value);
    mr_node_set_dtype(&builder, "dtype", value->dtype);
    return mr_node_finish(&builder);
}

static mr_output add_typed(build *b, const char *op, mr_dtype dtype, mr_shape shape)
{
    mr_node_builder builder = mr_node_begin(b->graph, op, nullptr);
    mr_node_set_dtype(&builder, "dtype", dtype);
    mr_node_set_shape(&builder, "shape", shape);
    return mr_node_finish(&builder);
}

static mr_output add_iterator(build *b)
{
    mr_node_builder builder = mr_node_begin(b->graph, "IteratorV2", nullptr);
    mr_node_set_string(&builder, "shared_name", "iterator");
    mr_node_set_string(&builder, "container", "");
    mr_node_set_dtypes(&builder, "output_types", MR_DTYPES(MR_FLOAT));
    mr_node_set_shapes(&builder, "output_shapes", MR_SHAPES(MR_SCALAR));
    return mr_node_finish(&builder);
}

static mr_output add_fed(build *b, mr_dtype dtype, mr_shape shape, mr_tensor value)
{
    mr_output output = add_typed(b, "Placeholder", dtype, shape);
    b->feeds[b->feed_count++] = (mr_feed){output, value};
    return output;
}

static mr_output add_tensor(build *b, int index)
{
    const hostile_input *input = &b->of->inputs[index];
    if (input->source == HOSTILE_CONST) return add_const(b, &b->values[index]);
    mr_shape known = input->source == HOSTILE_FED_UNKNOWN ? MR_SHAPE_UNKNOWN : input->shape;
    for (int d = 0; d < known.rank && input->source == HOSTILE_FED_PARTIAL; d++)
        if ((index + d) % 2 == 0) known.dims[d] = -1;
    return add_fed(b, input->dtype, known, b->values[index]);
}

static mr_output first_variable(const build *b, int index)
{
    for (int i = 0; i < index; i++)
        if (b->of->inputs[i].form == HOSTILE_REF || b->of->inputs[i].form == HOSTILE_HANDLE) return b->inputs[i];
    return (mr_output){0};
}

/* ---- Lists, optionals, stacks and arrays ---- */

static mr_output add_int(build *b, int64_t count, const int32_t *values)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    CHECK_OK(mr_tensor_init(&tensor, MR_INT32, count < 0 ? MR_SCALAR : MR_SHAPE(count), &error));
    for (int64_t i = 0; i < mr_tensor_count(&tensor); i++)
        mr_tensor_int32s(&tensor)[i] = values != nullptr ? values[i] : (int32_t)i;
    mr_output output = add_const(b, &tensor);
    mr_tensor_deinit(&tensor);
    return output;
}

static mr_output add_node(build *b, const char *op, const mr_output *inputs, int count, const char *type_attr,
                          mr_dtype dtype)
{
    mr_node_builder builder = mr_node_begin(b->graph, op, nullptr);
    for (int i = 0; i < count; i++) mr_node_add_input(&builder, inputs[i]);
    if (type_attr != nullptr) mr_node_set_dtype(&builder, type_attr, dtype);
    return mr_node_finish(&builder);
}

static mr_output add_list(build *b, const mr_tensor *value)
{
    int32_t unknown = -1;
    mr_output any = add_int(b, -1, &unknown);
    if (value->shape.rank == 0)
        return add_node(b, "EmptyTensorList", (mr_output[]){any, any}, 2, "element_dtype", value->dtype);
    return add_node(b, "TensorListFromTensor", (mr_output[]){add_const(b, value), any}, 2, nullptr, 0);
}

static mr_output add_optional(build *b, const mr_tensor *value)
{
    mr_output component = add_const(b, value);
    mr_node_builder builder = mr_node_begin(b->graph, "OptionalFromValue", nullptr);
    mr_node_add_input_list(&builder, (mr_outputs){&component, 1});
    return mr_node_finish(&builder);
}

/* ---- Queues, readers and datasets ---- */

/* The handle, after the node that fills the resource. */
static mr_output after(build *b, mr_output handle, mr_output fills)
{
    mr_node_builder builder = mr_node_begin(b->graph, mr_output_is_ref(handle) ? "RefIdentity" : "Identity", nullptr);
    mr_node_add_input(&builder, handle);
    mr_node_add_control_input(&builder, fills.node);
    return mr_node_finish(&builder);
}

/* A closed queue of three vectors; with priorities if the operator's name says so. */
static mr_output fill_queue(build *b, mr_output handle, const char *op)
{
    mr_tensor rows = {0}, priorities = {0};
    mr_error error = {0};
    CHECK_OK(mr_tensor_init(&rows, MR_FLOAT, MR_SHAPE(3, 2), &error));
    CHECK_OK(mr_tensor_init(&priorities, MR_INT64, MR_SHAPE(3), &error));
    memset(rows.data, 0, mr_tensor_size_bytes(&rows));
    memset(priorities.data, 0, mr_tensor_size_bytes(&priorities));
    bool is_old = mr_output_is_ref(handle), is_priority = strstr(op, "Priority") != nullptr;
    mr_output components[] = {add_const(b, &priorities), add_const(b, &rows)};
    mr_node_builder enqueue = mr_node_begin(b->graph, is_old ? "QueueEnqueueMany" : "QueueEnqueueManyV2", nullptr);
    mr_node_add_input(&enqueue, handle);
    mr_node_add_input_list(&enqueue, (mr_outputs){components + !is_priority, 1 + is_priority});
    mr_output filled = mr_node_finish(&enqueue);
    mr_node_builder close = mr_node_begin(b->graph, is_old ? "QueueClose" : "QueueCloseV2", nullptr);
    mr_node_add_input(&close, handle);
    mr_node_add_control_input(&close, filled.node);
    mr_tensor_deinit(&rows);
    mr_tensor_deinit(&priorities);
    return after(b, handle, mr_node_finish(&close));
}

static mr_output add_range(build *b)
{
    mr_node_builder builder = mr_node_begin(b->graph, "RangeDataset", nullptr);
    for (int64_t i = 0; i < 3; i++) {
        mr_tensor number = {0};
        mr_error error = {0};
        CHECK_OK(mr_tensor_init_int64(&number, i == 0 ? 0 : i == 1 ? 5 : 1, &error));
        mr_node_add_input(&builder, add_const(b, &number));
        mr_tensor_deinit(&number);
    }
    mr_node_set_dtypes(&builder, "output_types", MR_DTYPES(MR_INT64));
    mr_node_set_shapes(&builder, "output_shapes", MR_SHAPES(MR_SCALAR));
    return mr_node_finish(&builder);
}

static mr_output add_named(build *b, const char *op)
{
    if (strcmp(op, "RangeDataset") == 0) return add_range(b);

    mr_node_builder builder = mr_node_begin(b->graph, op, nullptr);
    bool is_queue = strstr(op, "Queue") != nullptr || strcmp(op, "Barrier") == 0;
    bool is_accumulator = strstr(op, "Accumulator") != nullptr;
    int64_t seed = 3;
    for (int i = 0; i < 2 && strcmp(op, "AnonymousRandomSeedGenerator") == 0; i++) {
        mr_tensor number = {0};
        mr_error error = {0};
        CHECK_OK(mr_tensor_init_int64(&number, seed, &error));
        mr_node_add_input(&builder, add_const(b, &number));
        mr_tensor_deinit(&number);
    }
    if (strcmp(op, "ThreadPoolHandle") == 0) {
        mr_node_set_int(&builder, "num_threads", 2);
        mr_node_set_string(&builder, "display_name", "threads");
    }
    if (is_accumulator) mr_node_set_dtype(&builder, "dtype", MR_FLOAT);
    if (is_accumulator) mr_node_set_shape(&builder, "shape", MR_SHAPE_UNKNOWN);
    if (is_queue) mr_node_set_dtypes(&builder, "component_types", MR_DTYPES(MR_FLOAT));
    if (is_queue) mr_node_set_shapes(&builder, "shapes", MR_SHAPES(MR_SHAPE(2)));
    mr_output handle = mr_node_finish(&builder);
    return is_queue && strcmp(op, "Barrier") != 0 && handle.node->id >= 0 ? fill_queue(b, handle, op) : handle;
}

static mr_output add_stack(build *b, const mr_tensor *value)
{
    int32_t any = -1;
    mr_output stack = add_node(b, "StackV2", (mr_output[]){add_int(b, -1, &any)}, 1, "elem_type", value->dtype);
    return after(b, stack, add_node(b, "StackPushV2", (mr_output[]){stack, add_const(b, value)}, 2, nullptr, 0));
}

static mr_output add_array(build *b, const mr_tensor *value)
{
    int32_t rows = value->shape.rank > 0 && value->shape.dims[0] < 1 << 14 ? (int32_t)value->shape.dims[0] : 0;
    mr_output array = add_node(b, "TensorArrayV3", (mr_output[]){add_int(b, -1, &rows)}, 1, "dtype", value->dtype);
    if (value->shape.rank == 0) return array;
    mr_output inputs[] = {array, add_int(b, rows, nullptr), add_const(b, value), {array.node, 1}};
    return after(b, array, add_node(b, "TensorArrayScatterV3", inputs, 4, nullptr, 0));
}

static mr_status add_input(build *b, int index, mr_error *error)
{
    const hostile_input *input = &b->of->inputs[index];
    if (input->form != HOSTILE_OTHER_HANDLE && input->form != HOSTILE_NAMED_HANDLE &&
        input->form != HOSTILE_FIRST_VARIABLE)
        MR_TRY(hostile_tensor(input, &b->values[index], error));
    switch (input->form) {
    case HOSTILE_TENSOR:
        b->inputs[index] = add_tensor(b, index);
        break;
    case HOSTILE_REF:
        b->inputs[index] = add_typed(b, "VariableV2", input->dtype, input->shape);
        break;
    case HOSTILE_HANDLE:
        b->inputs[index] = add_typed(b, "VarHandleOp", input->dtype, input->shape);
        break;
    case HOSTILE_OTHER_HANDLE:
        b->inputs[index] = add_iterator(b);
        break;
    case HOSTILE_NAMED_HANDLE:
        b->inputs[index] = add_named(b, input->text);
        break;
    case HOSTILE_NULL_HANDLE:
        b->inputs[index] = add_fed(b, input->dtype == MR_VARIANT ? MR_VARIANT : MR_RESOURCE, MR_SHAPE_UNKNOWN,
                                   (mr_tensor){.dtype = input->dtype == MR_VARIANT ? MR_VARIANT : MR_RESOURCE});
        break;
    case HOSTILE_FIRST_VARIABLE:
        b->inputs[index] = first_variable(b, index);
        break;
    case HOSTILE_LIST:
        b->inputs[index] = add_list(b, &b->values[index]);
        break;
    case HOSTILE_OPTIONAL:
        b->inputs[index] = add_optional(b, &b->values[index]);
        break;
    case HOSTILE_STACK:
        b->inputs[index] = add_stack(b, &b->values[index]);
        break;
    case HOSTILE_ARRAY:
        b->inputs[index] = add_array(b, &b->values[index]);
        break;
    }
    return MR_OK;
}

static mr_status add_attr(mr_node_builder *builder, const hostile_attr *from, mr_error *error)
{
    mr_attr_value values[HOSTILE_VALUES_MAX] = {0};
    mr_tensor tensor = {0};
    mr_attr attr = {.name = from->name, .kind = from->kind, .is_list = from->is_list, .count = from->count}, copy;
    attr.values = values;
    if (from->kind == MR_ATTR_TENSOR) {
        hostile_input value = {.dtype = (mr_dtype)from->ints[0], .shape = from->shape, .text = ""};
        MR_TRY(hostile_tensor(&value, &tensor, error));
    }
    for (int32_t i = 0; i < from->count; i++) switch (from->kind) {
        case MR_ATTR_INT:
            values[i].integer = from->ints[i];
            break;
        case MR_ATTR_TYPE:
            values[i].type = (int32_t)from->ints[i];
            break;
        case MR_ATTR_BOOL:
            values[i].boolean = from->ints[i] != 0;
            break;
        case MR_ATTR_FLOAT:
            values[i].number = from->number;
            break;
        case MR_ATTR_SHAPE:
            values[i].shape = from->shape;
            break;
        case MR_ATTR_TENSOR:
            values[i].tensor = tensor;
            break;
        case MR_ATTR_FUNCTION:
            values[i].function.name = from->text;
            break;
        default:
            values[i].string = mr_string_from(from->text);
            break;
        }
    mr_status status = mr_attr_copy(builder->graph, &attr, &copy, error);
    if (status == MR_OK) status = mr_node_put_attr(builder->node, copy, error);
    mr_tensor_deinit(&tensor);
    return status;
}

static mr_status build_graph(build *b, mr_error *error)
{
    const hostile_case *c = b->of;
    for (int i = 0; i < c->input_count; i++) MR_TRY(add_input(b, i, error));
    mr_node_builder builder = mr_node_begin(b->graph, c->def->op->name, "tested");
    for (int i = 0; i < c->input_count;) {
        int count = 1;
        while (i + count < c->input_count && !c->inputs[i + count].opens_argument) count++;
        mr_node_add_input_list(&builder, (mr_outputs){&b->inputs[i], count});
        i += count;
    }
    for (int i = 0; i < c->attr_count && builder.node != nullptr; i++) MR_TRY(add_attr(&builder, &c->attrs[i], error));
    b->node = mr_node_finish(&builder).node;
    return mr_graph_status(b->graph, error);
}

/* ---- The run ---- */

static mr_status initialize(build *b, mr_session *session, mr_error *error)
{
    for (int i = 0; i < b->of->input_count; i++) {
        const hostile_input *input = &b->of->inputs[i];
        bool is_variable = input->form == HOSTILE_REF || input->form == HOSTILE_HANDLE;
        if (is_variable && !input->is_uninitialized)
            MR_TRY(mr_session_write_variable(session, b->inputs[i], &b->values[i], error));
    }
    return MR_OK;
}

/* Reads every byte, so that a sanitizer detects a tensor that is smaller than its shape. */
static uint64_t touch(const mr_tensor *tensor)
{
    uint64_t sum = 0;
    if (tensor->dtype == MR_STRING) {
        for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
            mr_string text = mr_tensor_strings(tensor)[i];
            for (size_t b = 0; b < text.size_bytes; b++) sum += (unsigned char)text.data[b];
        }
        return sum;
    }
    for (size_t i = 0; i < mr_tensor_size_bytes(tensor); i++) sum += ((const unsigned char *)tensor->data)[i];
    return sum;
}

/* As in TensorFlow, the gradient of SoftmaxCrossEntropyWithLogits has the broadcast shape. */
static bool has_loose_shape(const build *b)
{
    return strcmp(b->of->def->op->name, "SoftmaxCrossEntropyWithLogits") == 0;
}

/* As in TensorFlow, these take operands of other shapes with as many elements, which their gradients then broadcast. */
static bool has_loose_gradient(const build *b)
{
    static const char *const names[] = {"TanhGrad",       "SigmoidGrad", "InvGrad",
                                        "ReciprocalGrad", "RsqrtGrad",   "SqrtGrad"};
    bool is_named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) is_named |= strcmp(b->of->def->op->name, names[i]) == 0;
    return is_named || has_loose_shape(b);
}

static void check_output(const build *b, int32_t index, const mr_tensor *output)
{
    static volatile uint64_t sink;
    mr_output at = {b->node, index};
    char inferred[MR_SHAPE_TEXT_SIZE], found[MR_SHAPE_TEXT_SIZE];
    if (output->dtype != mr_output_dtype(at))
        test_fail(__FILE__, __LINE__, "output %d is a %s, inferred is %s", index, mr_dtype_name(output->dtype),
                  mr_dtype_name(mr_output_dtype(at)));
    bool is_checked = !mr_output_is_ref(at) && !has_loose_shape(b);
    if (is_checked && !mr_shape_compatible(output->shape, mr_output_shape(at)))
        test_fail(__FILE__, __LINE__, "output %d has shape %s, inferred is %s", index,
                  mr_shape_text(output->shape, found, sizeof found),
                  mr_shape_text(mr_output_shape(at), inferred, sizeof inferred));
    sink = sink + touch(output);
}

static bool is_real(mr_dtype dtype)
{
    return dtype == MR_FLOAT || dtype == MR_DOUBLE || dtype == MR_HALF || dtype == MR_BFLOAT16;
}

/* Computes the gradients of the real outputs with respect to the real inputs. Missing or failing gradients are not
 * errors. */
static void run_gradients(build *b, mr_session *session)
{
    mr_output xs[HOSTILE_INPUTS_MAX], ys[HOSTILE_OUTPUTS_MAX], gradients[HOSTILE_INPUTS_MAX] = {0};
    int inputs[HOSTILE_INPUTS_MAX];
    int32_t x_count = 0, y_count = 0, count = 0;
    for (int i = 0; i < b->of->input_count; i++) {
        if (b->of->inputs[i].form != HOSTILE_TENSOR || !is_real(b->of->inputs[i].dtype)) continue;
        inputs[x_count] = i;
        xs[x_count++] = b->inputs[i];
    }
    for (int32_t i = 0; i < mr_node_output_count(b->node) && y_count < HOSTILE_OUTPUTS_MAX; i++)
        if (is_real(mr_output_dtype((mr_output){b->node, i}))) ys[y_count++] = (mr_output){b->node, i};
    if (x_count == 0 || y_count == 0) return;
    mr_gradients(b->graph, (mr_outputs){ys, y_count}, (mr_outputs){xs, x_count}, nullptr, gradients);
    mr_error error = {0};
    if (mr_graph_status(b->graph, &error) != MR_OK) return;
    for (int32_t i = 0; i < x_count; i++) {
        if (gradients[i].node == nullptr) continue;
        inputs[count] = inputs[i];
        gradients[count++] = gradients[i];
    }
    mr_tensor results[HOSTILE_INPUTS_MAX] = {0};
    if (mr_session_run(session, (mr_feeds){b->feeds, b->feed_count}, (mr_outputs){gradients, count}, results, nullptr,
                       0, &error) != MR_OK)
        return;
    for (int32_t i = 0; i < count; i++) {
        char given[MR_SHAPE_TEXT_SIZE], found[MR_SHAPE_TEXT_SIZE];
        bool is_one = mr_tensor_count(&results[i]) == 1; /* some TensorFlow operators accept [1] as a scalar */
        if (!is_one && !has_loose_gradient(b) && !mr_shape_equal(results[i].shape, b->values[inputs[i]].shape))
            test_fail(__FILE__, __LINE__, "the gradient by input %d has shape %s, the input %s", inputs[i],
                      mr_shape_text(results[i].shape, found, sizeof found),
                      mr_shape_text(b->values[inputs[i]].shape, given, sizeof given));
        mr_tensor_deinit(&results[i]);
    }
}

/* What a staging area gives is missing, so the operator waits. Queues are closed. */
static int64_t time_limit_ms(const build *b)
{
    bool waits = (b->of->def->op->flags & MR_OP_WAITS) != 0 && strncmp(b->of->def->op->name, "Queue", 5) != 0;
    return !waits ? 0 : b->of->is_patient ? 10000 : 10;
}

static mr_status run_session(build *b, hostile_result *result)
{
    mr_session *session = nullptr;
    MR_TRY(mr_session_new(b->graph, MR_OPTIONS(mr_session_options, .threads = 1), &session, &result->error));
    mr_status status = initialize(b, session, &result->error);
    mr_output fetches[HOSTILE_OUTPUTS_MAX];
    for (int32_t i = 0; i < mr_node_output_count(b->node) && result->output_count < HOSTILE_OUTPUTS_MAX; i++) {
        mr_output output = {b->node, i};
        if (mr_dtype_size(mr_output_dtype(output)) > 0) fetches[result->output_count++] = output;
    }
    if (status == MR_OK)
        status = mr_session_run_with(session, MR_OPTIONS(mr_run_options, .timeout_ms = time_limit_ms(b)),
                                     (mr_feeds){b->feeds, b->feed_count}, (mr_outputs){fetches, result->output_count},
                                     result->outputs, &b->node, 1, &result->error);
    for (int32_t i = 0; i < result->output_count && status == MR_OK; i++)
        check_output(b, fetches[i].index, &result->outputs[i]);
    if (status == MR_OK && b->of->with_gradients) run_gradients(b, session);
    if (status != MR_OK) result->output_count = 0;
    mr_session_free(session);
    return status;
}

void hostile_run(const hostile_case *run, hostile_result *result)
{
    *result = (hostile_result){0};
    build b = {.of = run, .graph = mr_graph_new()};
    CHECK(b.graph != nullptr);
    result->status = build_graph(&b, &result->error);
    result->was_built = result->status == MR_OK;
    if (result->status == MR_OK) result->status = run_session(&b, result);
    CHECK(result->status == MR_OK || result->error.message[0] != '\0');
    for (int i = 0; i < run->input_count; i++) mr_tensor_deinit(&b.values[i]);
    mr_graph_free(b.graph);
}

void hostile_result_deinit(hostile_result *result)
{
    for (int32_t i = 0; i < result->output_count; i++) mr_tensor_deinit(&result->outputs[i]);
    *result = (hostile_result){0};
}
