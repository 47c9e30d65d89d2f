/* Matrices built from diagonals, diagonals of matrices, and bands. A diagonal d of a matrix has the elements
 * (i, i + d); each one is a strided copy for all matrices at once. */
#include "kernels/common.h"
#include <inttypes.h>
#include <string.h>

/* ---- Tensors ---- */

static mr_status diag(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int rank = input->shape.rank;
    if (rank < 1) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Input must be at least rank 1, got 0");
    if (2 * rank > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    mr_shape shape = {.rank = 2 * rank};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = input->shape.dims[i % rank];
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    static const char zeros[16];
    if (!sink.is_string) mr_fill_elements(sink.data, zeros, sink.element_size, sink.count, call->device->pool);
    int64_t count = mr_tensor_count(input);
    mr_copy copy = {.rank = 1,
                    .element_size = sink.element_size,
                    .dims = {count},
                    .target_strides = {count + 1},
                    .source_strides = {1},
                    .target = sink.data,
                    .source = input->data};
    if (sink.count > 0) mr_copy_strided(copy, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status diag_part(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int rank = input->shape.rank, half = rank / 2;
    if (rank % 2 != 0) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The rank of the tensor should be even and positive, got shape %s",
                              mr_shape_text(input->shape, text, sizeof text));
    }
    mr_shape shape = {.rank = half};
    for (int i = 0; i < half; i++) {
        shape.dims[i] = input->shape.dims[i];
        if (input->shape.dims[i] != input->shape.dims[i + half]) {
            char text[MR_SHAPE_TEXT_SIZE];
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Invalid shape %s: dimensions %d and %d do not match.",
                                  mr_shape_text(input->shape, text, sizeof text), i, i + half);
        }
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    mr_copy copy = {.rank = 1,
                    .element_size = sink.element_size,
                    .dims = {sink.count},
                    .target_strides = {1},
                    .source_strides = {sink.count + 1},
                    .target = sink.data,
                    .source = input->data};
    if (sink.count > 0) mr_copy_strided(copy, call->device->pool);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- Matrices ---- */

/* Where a diagonal starts in its row of the packed tensor if it is shorter than the longest one. */
typedef struct alignment {
    bool super_left, sub_left; /* diagonals above the main one (and itself), and below it */
} alignment;

static mr_status prepare_alignment(const mr_kernel_node *node, void *prepared, mr_error *)
{
    mr_string align = mr_attr_string_or(node->attrs, "align", "LEFT_LEFT");
    alignment *a = prepared;
    a->super_left = align.size_bytes > 5 && memcmp(align.data, "LEFT_", 5) == 0;
    a->sub_left = align.size_bytes > 5 && memcmp(align.data + align.size_bytes - 5, "_LEFT", 5) == 0;
    return MR_OK;
}

typedef struct diagonals {
    int64_t lower, upper; /* the range of diagonals */
    int64_t longest;      /* the length of the longest one: of a row of the packed tensor */
    int64_t batch, rows, columns;
} diagonals;

/* Input `index` is a scalar or has one or two elements. */
static mr_status read_range(mr_kernel_call *call, int index, diagonals *d, mr_error *error)
{
    const mr_tensor *k = &call->inputs[index];
    int64_t count = mr_tensor_count(k);
    if (k->shape.rank > 1) {
        char text[MR_SHAPE_TEXT_SIZE];
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "diag_index must be a scalar or vector, received shape: %s",
                              mr_shape_text(k->shape, text, sizeof text));
    }
    if (count < 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Expected diag_index to have at least 1 element");
    if (count > 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "diag_index must have only one or two elements, received %" PRId64 " elements.", count);
    d->lower = ((const int32_t *)k->data)[0];
    d->upper = ((const int32_t *)k->data)[count - 1];
    if (d->lower > d->upper)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "lower_diag_index must not be larger than upper_diag_index: %" PRId64 " > %" PRId64,
                              d->lower, d->upper);
    return MR_OK;
}

static int64_t length_of(const diagonals *d, int64_t diagonal)
{
    return MR_MIN(d->rows + MR_MIN(diagonal, 0), d->columns - MR_MAX(diagonal, 0));
}

/* Checks that the range is inside the matrix, and stores the longest length in it. */
static mr_status check_range(mr_kernel_call *call, diagonals *d, mr_error *error)
{
    if (d->lower != 0 && (d->lower <= -d->rows || d->lower >= d->columns))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "lower_diag_index is out of bound: %" PRId64 ". It must be between %" PRId64
                              " and %" PRId64,
                              d->lower, -d->rows, d->columns);
    if (d->upper != 0 && (d->upper <= -d->rows || d->upper >= d->columns))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "upper_diag_index is out of bound: %" PRId64 " It must be between %" PRId64
                              " and %" PRId64,
                              d->upper, -d->rows, d->columns);
    d->longest = MR_MIN(d->rows + MR_MIN(d->upper, 0), d->columns - MR_MAX(d->lower, 0));
    return MR_OK;
}

/* Copies all diagonals between matrices [batch, rows, columns] and packed [batch, diagonals, longest], in which the
 * uppermost one is first. */
static void copy_diagonals(mr_kernel_call *call, const diagonals *d, size_t element_size, char *target,
                           const char *source, bool to_matrices)
{
    const alignment *align = call->prepared;
    int64_t count = d->upper - d->lower + 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t diagonal = d->upper - i, length = length_of(d, diagonal);
        bool is_left = diagonal >= 0 ? align->super_left : align->sub_left;
        int64_t packed = i * d->longest + (is_left ? 0 : d->longest - length);
        int64_t matrix = MR_MAX(-diagonal, 0) * d->columns + MR_MAX(diagonal, 0);
        if (length <= 0) continue;
        mr_copy copy = {.rank = 2, .element_size = element_size, .dims = {d->batch, length}};
        int64_t *to_matrix = to_matrices ? copy.target_strides : copy.source_strides;
        int64_t *to_packed = to_matrices ? copy.source_strides : copy.target_strides;
        to_matrix[0] = d->rows * d->columns;
        to_matrix[1] = d->columns + 1;
        to_packed[0] = count * d->longest;
        to_packed[1] = 1;
        copy.target = target + (to_matrices ? matrix : packed) * (int64_t)element_size;
        copy.source = source + (to_matrices ? packed : matrix) * (int64_t)element_size;
        mr_copy_strided(copy, call->device->pool);
    }
}

static mr_status at_least(mr_kernel_call *call, int index, const char *name, int rank, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    if (call->inputs[index].shape.rank >= rank) return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be at least %d-dim, received shape: %s",
                          name, rank, mr_shape_text(call->inputs[index].shape, text, sizeof text));
}

/* The number of rows or columns of a new matrix: given, or -1. */
static mr_status read_size(mr_kernel_call *call, int index, const char *name, int64_t *size, mr_error *error)
{
    if (call->inputs[index].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be a scalar", name);
    return mr_kernel_int(call, index, name, size, error);
}

static mr_status matrix_sizes(mr_kernel_call *call, diagonals *d, mr_error *error)
{
    int64_t least_rows = d->longest - MR_MIN(d->upper, 0), least_columns = d->longest + MR_MAX(d->lower, 0);
    d->rows = d->columns = -1;
    if (call->node->input_count > 1) {
        MR_TRY(read_size(call, 2, "num_rows", &d->rows, error));
        MR_TRY(read_size(call, 3, "num_cols", &d->columns, error));
        if (call->inputs[4].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "padding_value must be a scalar");
    }
    if (d->rows != -1 && d->rows < least_rows)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The number of rows is too small.");
    if (d->columns != -1 && d->columns < least_columns)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "The number of columns is too small.");
    if (d->rows == -1 && d->columns == -1) d->rows = d->columns = MR_MAX(least_rows, least_columns);
    if (d->rows == -1) d->rows = least_rows;
    if (d->columns == -1) d->columns = least_columns;
    if (d->rows != least_rows && d->columns != least_columns)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
                              "and diagonal.");
    return MR_OK;
}

static mr_status matrix_diag(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    diagonals d = {0};
    MR_TRY(at_least(call, 0, "diagonal", 1, error));
    if (call->node->input_count > 1) MR_TRY(read_range(call, 1, &d, error));
    int rank = input->shape.rank, lead = rank - (d.lower < d.upper ? 2 : 1);
    if (d.lower < d.upper) {
        MR_TRY(at_least(call, 0, "diagonal", 2, error));
        if (input->shape.dims[rank - 2] != d.upper - d.lower + 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "The number of diagonals provided in the input does not match the lower_diag_index "
                                  "and upper_diag_index range.");
    }
    if (lead + 2 > MR_RANK_MAX)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "more than %d dimensions", MR_RANK_MAX);
    d.longest = input->shape.dims[rank - 1];
    MR_TRY(matrix_sizes(call, &d, error));
    mr_shape shape = {.rank = lead + 2};
    for (int i = 0; i < lead; i++) shape.dims[i] = input->shape.dims[i];
    shape.dims[lead] = d.rows;
    shape.dims[lead + 1] = d.columns;
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    d.batch = mr_dims_product(&shape, 0, lead);
    static const char zeros[16];
    mr_fill_elements(sink.data, call->node->input_count > 4 ? call->inputs[4].data : zeros, sink.element_size,
                     sink.count, call->device->pool);
    if (sink.count > 0 && mr_tensor_count(input) > 0)
        copy_diagonals(call, &d, sink.element_size, sink.data, input->data, true);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status matrix_diag_part(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    diagonals d = {0};
    MR_TRY(at_least(call, 0, "input", 2, error));
    if (call->node->input_count > 1) {
        MR_TRY(read_range(call, 1, &d, error));
        if (mr_tensor_count(&call->inputs[2]) != 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Padding must be scalar.");
    }
    mr_shape shape = input->shape;
    d.rows = shape.dims[shape.rank - 2];
    d.columns = shape.dims[shape.rank - 1];
    MR_TRY(check_range(call, &d, error));
    int lead = shape.rank - 2;
    shape.dims[lead] = shape.dims[lead + 1] = 0;
    shape.rank = lead;
    if (d.lower < d.upper) shape.dims[shape.rank++] = d.upper - d.lower + 1;
    shape.dims[shape.rank++] = d.longest;
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, shape, &sink, error));
    d.batch = mr_dims_product(&shape, 0, lead);
    if (d.lower < d.upper)
        mr_fill_elements(sink.data, call->inputs[2].data, sink.element_size, sink.count, call->device->pool);
    if (sink.count > 0 && mr_tensor_count(input) > 0)
        copy_diagonals(call, &d, sink.element_size, sink.data, input->data, false);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

static mr_status check_set_diag(mr_kernel_call *call, const diagonals *d, mr_error *error)
{
    mr_shape input = call->inputs[0].shape, diagonal = call->inputs[1].shape, wanted = input;
    int64_t count = d->upper - d->lower + 1;
    wanted.rank = input.rank - 2;
    if (count > 1) wanted.dims[wanted.rank++] = count;
    wanted.dims[wanted.rank++] = d->longest;
    for (int i = wanted.rank; i < MR_RANK_MAX; i++) wanted.dims[i] = 0;
    if (count > 1 && (diagonal.rank < 2 || diagonal.dims[diagonal.rank - 2] != count))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "The number of diagonals provided in `diag` is not consistent with `lower_diag_index` "
                              "and `upper_diag_index`");
    if (mr_shape_equal(diagonal, wanted)) return MR_OK;
    char i[MR_SHAPE_TEXT_SIZE], g[MR_SHAPE_TEXT_SIZE], w[MR_SHAPE_TEXT_SIZE];
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is "
                          "not equal to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput "
                          "shape: %s\nDiagonal shape: %s\nExpected diagonal shape: %s",
                          mr_shape_text(input, i, sizeof i), mr_shape_text(diagonal, g, sizeof g),
                          mr_shape_text(wanted, w, sizeof w));
}

static mr_status matrix_set_diag(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    diagonals d = {0};
    MR_TRY(at_least(call, 0, "input", 2, error));
    MR_TRY(at_least(call, 1, "diagonal", 1, error));
    if (call->node->input_count > 2) MR_TRY(read_range(call, 2, &d, error));
    int lead = input->shape.rank - 2;
    d.batch = mr_dims_product(&input->shape, 0, lead);
    d.rows = input->shape.dims[lead];
    d.columns = input->shape.dims[lead + 1];
    MR_TRY(check_range(call, &d, error));
    MR_TRY(check_set_diag(call, &d, error));
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, input->shape, &sink, error));
    if (sink.count > 0) {
        memcpy(sink.data, input->data, (size_t)sink.count * sink.element_size);
        copy_diagonals(call, &d, sink.element_size, sink.data, call->inputs[1].data, true);
    }
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* ---- Bands ---- */

typedef struct band_job {
    char *target;
    const char *source;
    size_t element_size;
    int64_t rows, columns, lower, upper; /* lower and upper: the number of diagonals, or negative: all */
} band_job;

static void copy_bands(void *context, int64_t begin, int64_t end)
{
    const band_job *job = context;
    size_t size = job->element_size;
    for (int64_t row = begin; row < end; row++) {
        int64_t i = row % job->rows;
        int64_t first = job->lower < 0 ? 0 : MR_MIN(MR_MAX(i - job->lower, 0), job->columns);
        int64_t last = job->upper < 0 ? job->columns : MR_MIN(i + job->upper + 1, job->columns);
        char *to = job->target + (size_t)(row * job->columns) * size;
        const char *from = job->source + (size_t)(row * job->columns) * size;
        last = MR_MAX(last, first);
        memset(to, 0, (size_t)first * size);
        memcpy(to + (size_t)first * size, from + (size_t)first * size, (size_t)(last - first) * size);
        memset(to + (size_t)last * size, 0, (size_t)(job->columns - last) * size);
    }
}

static mr_status matrix_band_part(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *input = &call->inputs[0];
    int64_t widths[2];
    int rank = input->shape.rank;
    MR_TRY(at_least(call, 0, "input", 2, error));
    static const char *const names[] = {"num_lower", "num_upper"}, *const what[] = {"rows", "columns"};
    for (int i = 0; i < 2; i++) {
        char text[MR_SHAPE_TEXT_SIZE];
        if (call->inputs[i + 1].shape.rank != 0)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be scalar, got shape %s", names[i],
                                  mr_shape_text(call->inputs[i + 1].shape, text, sizeof text));
        MR_TRY(mr_kernel_int(call, i + 1, names[i], &widths[i], error));
        if (widths[i] > input->shape.dims[rank - 2 + i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s must be negative or less or equal to number of %s (%" PRId64 ") got: %" PRId64,
                                  names[i], what[i], input->shape.dims[rank - 2 + i], widths[i]);
    }
    mr_sink sink;
    MR_TRY(mr_sink_init(call, 0, input->shape, &sink, error));
    band_job job = {sink.data, input->data, sink.element_size, input->shape.dims[rank - 2], input->shape.dims[rank - 1],
                    widths[0], widths[1]};
    if (sink.count > 0)
        mr_pool_for(call->device->pool, sink.count / job.columns, MR_MAX(1, MR_GRAIN / job.columns), copy_bands, &job);
    return mr_sink_finish(call, &sink, MR_OK, error);
}

/* clang-format off */
#define ALIGNED .prepared_size_bytes = sizeof(alignment), .prepare = prepare_alignment
/* clang-format on */

static const mr_kernel kernels[] = {
    {.op = "Diag", .run = diag},
    {.op = "DiagPart", .run = diag_part},
    {.op = "MatrixDiag", .run = matrix_diag, ALIGNED},
    {.op = "BatchMatrixDiag", .run = matrix_diag, ALIGNED},
    {.op = "MatrixDiagV2", .run = matrix_diag, .host_inputs = 7 << 1, ALIGNED},
    {.op = "MatrixDiagV3", .run = matrix_diag, .host_inputs = 7 << 1, ALIGNED},
    {.op = "MatrixDiagPart", .run = matrix_diag_part, ALIGNED},
    {.op = "BatchMatrixDiagPart", .run = matrix_diag_part, ALIGNED},
    {.op = "MatrixDiagPartV2", .run = matrix_diag_part, .host_inputs = 1 << 1, ALIGNED},
    {.op = "MatrixDiagPartV3", .run = matrix_diag_part, .host_inputs = 1 << 1, ALIGNED},
    {.op = "MatrixSetDiag", .run = matrix_set_diag, ALIGNED},
    {.op = "BatchMatrixSetDiag", .run = matrix_set_diag, ALIGNED},
    {.op = "MatrixSetDiagV2", .run = matrix_set_diag, .host_inputs = 1 << 2, ALIGNED},
    {.op = "MatrixSetDiagV3", .run = matrix_set_diag, .host_inputs = 1 << 2, ALIGNED},
    {.op = "MatrixBandPart", .run = matrix_band_part, .host_inputs = 3 << 1},
    {.op = "BatchMatrixBandPart", .run = matrix_band_part, .host_inputs = 3 << 1},
};
MR_KERNEL_FAMILY(array_diagonal);
