/* Operators that check, print or mark tensors. Printing is what these operators are for, so they write to the standard
 * streams, which the library otherwise leaves alone. */
#include "base/rights.h"
#include "base/show.h"
#include "kernels/common.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- CheckNumerics ---- */

typedef struct findings {
    bool nan, positive, negative; /* infinities by their sign */
} findings;

#define LOOK(type)                                                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        type value = ((const type *)input->data)[i];                                                                   \
        found.nan |= value != value;                                                                                   \
        found.positive |= value == (type)INFINITY;                                                                     \
        found.negative |= value == (type) - INFINITY;                                                                  \
    }

static findings look(const mr_tensor *input)
{
    int64_t count = mr_tensor_count(input);
    findings found = {0};
    if (input->dtype == MR_FLOAT) {
        LOOK(float)
    } else if (input->dtype == MR_DOUBLE) {
        LOOK(double)
    } else {
        uint16_t infinity = input->dtype == MR_HALF ? 0x7c00 : 0x7f80;
        for (int64_t i = 0; i < count; i++) {
            uint16_t bits = ((const uint16_t *)input->data)[i];
            found.nan |= (bits & 0x7fff) > infinity;
            found.positive |= bits == infinity;
            found.negative |= bits == (infinity | 0x8000);
        }
    }
    return found;
}

static mr_status check(mr_kernel_call *call, bool with_signs, mr_error *error)
{
    findings found = look(&call->inputs[0]);
    const char *words[3];
    int count = 0;
    if (with_signs && found.negative) words[count++] = "-Inf";
    if (with_signs && found.positive) words[count++] = "+Inf";
    if (!with_signs && (found.negative || found.positive)) words[count++] = "Inf";
    if (found.nan) words[count++] = "NaN";
    if (count == 0) {
        call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
        return MR_OK;
    }
    mr_string message = mr_attr_string_or(call->node->attrs, "message", "");
    static const char *const between[3][2] = {{"", ""}, {" and ", ""}, {", ", ", and "}};
    const char *const *gaps = between[count - 1];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%.*s : Tensor had %s%s%s%s%s values",
                          (int)MR_MIN(message.size_bytes, (size_t)200), message.data, words[0], gaps[0],
                          count > 1 ? words[1] : "", gaps[1], count > 2 ? words[2] : "");
}

static mr_status check_numerics(mr_kernel_call *call, mr_error *error)
{
    return check(call, false, error);
}

static mr_status check_numerics_v2(mr_kernel_call *call, mr_error *error)
{
    return check(call, true, error);
}

/* ---- Identities ---- */

static mr_status identity(mr_kernel_call *call, mr_error *)
{
    call->outputs[0] = mr_tensor_ref(&call->inputs[0]);
    return MR_OK;
}

static mr_status ensure_shape(mr_kernel_call *call, mr_error *error)
{
    mr_shape expected;
    char found[MR_SHAPE_TEXT_SIZE], wanted[MR_SHAPE_TEXT_SIZE];
    MR_TRY(mr_attr_get_shape(call->node->attrs, "shape", &expected, error));
    if (!mr_shape_compatible(call->inputs[0].shape, expected))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Shape of tensor input %s is not compatible with expected shape %s.",
                              mr_shape_text(call->inputs[0].shape, found, sizeof found),
                              mr_shape_text(expected, wanted, sizeof wanted));
    return identity(call, error);
}

static mr_status timestamp(mr_kernel_call *call, mr_error *error)
{
    struct timespec now;
    MR_TRY(mr_kernel_output(call, 0, MR_SCALAR, error));
    clock_gettime(CLOCK_REALTIME, &now);
    mr_tensor_doubles(&call->outputs[0])[0] = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    return MR_OK;
}

/* ---- Print ---- */

/* Writes a text at once, so that lines of different threads are not mixed. Failures are ignored, as in TensorFlow. */
static void write_text(FILE *stream, const char *text, size_t size)
{
    (void)fwrite(text, 1, size, stream);
    (void)fflush(stream);
}

static mr_status print(mr_kernel_call *call, mr_error *error)
{
    const mr_attrs *attrs = call->node->attrs;
    int64_t first = mr_attr_int_or(attrs, "first_n", -1), most = mr_attr_int_or(attrs, "summarize", 3);
    MR_TRY(identity(call, error));
    if (first >= 0 && call->invocation >= (uint64_t)first) return MR_OK;
    char *text = nullptr;
    size_t size = 0;
    FILE *line = open_memstream(&text, &size);
    if (line == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_string message = mr_attr_string_or(attrs, "message", "");
    (void)fwrite(message.data, 1, message.size_bytes, line);
    for (int32_t i = 1; i < call->node->input_count; i++) {
        fputc('[', line);
        mr_tensor_show(&call->inputs[i], most, line);
        fputc(']', line);
    }
    fputc('\n', line);
    if (fclose(line) == 0) write_text(stderr, text, size);
    free(text);
    return MR_OK;
}

typedef struct printer {
    enum { TO_STDERR, TO_STDOUT, TO_LOG, TO_FILE } to;
    char level; /* of the log: I, W, E */
    mr_string path, end;
} printer;

static mr_status prepare_printer(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    static const struct {
        const char *name;
        int to;
        char level;
    } streams[] = {{"stderr", TO_STDERR, 0},
                   {"stdout", TO_STDOUT, 0},
                   {"log(info)", TO_LOG, 'I'},
                   {"log(warning)", TO_LOG, 'W'},
                   {"log(error)", TO_LOG, 'E'}};
    printer *p = prepared;
    mr_string stream = mr_attr_string_or(node->attrs, "output_stream", "stderr");
    p->end = mr_attr_string_or(node->attrs, "end", "\n");
    if (stream.size_bytes > 7 && memcmp(stream.data, "file://", 7) == 0) {
        p->to = TO_FILE;
        p->path = (mr_string){stream.data + 7, stream.size_bytes - 7};
        return MR_OK;
    }
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        if (!mr_string_equal(stream, mr_string_from(streams[i].name))) continue;
        p->to = streams[i].to;
        p->level = streams[i].level;
        return MR_OK;
    }
    return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT,
                          "Unknown output stream: %.*s, Valid streams are: stdout stderr log(info) log(warning) "
                          "log(error)",
                          (int)MR_MIN(stream.size_bytes, (size_t)100), stream.data);
}

/* "2024-05-06 07:08:09.123456: I " */
static void write_log_head(FILE *line, char level)
{
    struct timespec now;
    struct tm local;
    char date[32], head[64];
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &local) == nullptr) return;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(head, sizeof head, "%s.%06ld: %c ", date, now.tv_nsec / 1000, level);
    fputs(head, line);
}

static mr_status append_to_file(mr_kernel_call *call, mr_string path, const char *text, size_t size, mr_error *error)
{
    char name[4096];
    if (path.size_bytes >= sizeof name || memchr(path.data, 0, path.size_bytes) != nullptr)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the path of output_stream is too long");
    memcpy(name, path.data, path.size_bytes);
    name[path.size_bytes] = 0;
    MR_TRY(mr_kernel_check_write(call, name, error));
    FILE *file = fopen(name, "a");
    if (file == nullptr) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s cannot be opened", name);
    bool is_written = fwrite(text, 1, size, file) == size;
    is_written = fclose(file) == 0 && is_written;
    return is_written ? MR_OK : mr_kernel_fail(call->node, error, MR_INTERNAL, "%s cannot be written", name);
}

static mr_status print_v2(mr_kernel_call *call, mr_error *error)
{
    const printer *p = call->prepared;
    const mr_tensor *input = &call->inputs[0];
    char shape[MR_SHAPE_TEXT_SIZE], *text = nullptr;
    size_t size = 0;
    if (input->shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input is expected to be scalar, but got %s",
                              mr_shape_text(input->shape, shape, sizeof shape));
    FILE *line = open_memstream(&text, &size);
    if (line == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_string message = mr_tensor_strings(input)[0];
    if (p->to == TO_LOG) write_log_head(line, p->level);
    if (message.size_bytes > 0) (void)fwrite(message.data, 1, message.size_bytes, line);
    (void)fwrite(p->end.data, 1, p->end.size_bytes, line);
    if (p->to == TO_LOG) fputc('\n', line);
    mr_status status = MR_OK;
    if (fclose(line) == 0) {
        if (p->to == TO_FILE)
            status = append_to_file(call, p->path, text, size, error);
        else
            write_text(p->to == TO_STDOUT ? stdout : stderr, text, size);
    }
    free(text);
    return status;
}

static mr_status guarantee_const(mr_kernel_call *call, mr_error *error)
{
    if (call->inputs[0].dtype == MR_RESOURCE)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Input tensor cannot be a resource variable handle.");
    return identity(call, error);
}

static mr_status abort_run(mr_kernel_call *call, mr_error *error)
{
    mr_string message = mr_attr_string_or(call->node->attrs, "error_msg", "");
    return mr_kernel_fail(call->node, error, MR_ABORTED, "%.*s", (int)MR_MIN(message.size_bytes, (size_t)500),
                          message.size_bytes > 0 ? message.data : "");
}

static const mr_kernel kernels[] = {
    {.op = "Abort", .run = abort_run},
    {.op = "CheckNumerics", .run = check_numerics},
    {.op = "CheckNumericsV2", .run = check_numerics_v2},
    {.op = "EnsureShape", .run = ensure_shape},
    {.op = "GuaranteeConst", .run = guarantee_const},
    {.op = "DebugGradientIdentity", .run = identity},
    {.op = "Copy", .run = identity},
    {.op = "CopyHost", .run = identity},
    {.op = "Timestamp", .run = timestamp},
    {.op = "Print", .run = print, .host_inputs = ~1u & 0x7fffffff},
    {.op = "PrintV2", .run = print_v2, .prepared_size_bytes = sizeof(printer), .prepare = prepare_printer},
};
MR_KERNEL_FAMILY(debug);
