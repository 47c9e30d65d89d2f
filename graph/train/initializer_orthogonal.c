/* Orthogonal and identity initializers: the orthogonal factor of a random normal matrix, with the signs of the
 * triangular factor's diagonal, as in TensorFlow. */
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

static double gain_of(const mr_initial *initial)
{
    float scale = initial->initializer->scale;
    return scale != 0 ? (double)scale : 1;
}

static mr_output sizes_of(mr_graph *graph, const char *name, const int64_t *sizes, int32_t count)
{
    int32_t values[MR_RANK_MAX];
    for (int32_t i = 0; i < count; i++) values[i] = (int32_t)sizes[i];
    return mr_constant_int32s(graph, MR_SHAPE(count), values, name);
}

/* A matrix with orthonormal columns; rows is at least columns. */
static mr_output orthonormal(mr_graph *graph, const mr_initial *initial, int64_t rows, int64_t columns)
{
    mr_output a =
        mr_initial_normal(graph, MR_SHAPE(rows, columns), initial->dtype, 0, 1, false, initial->initializer->seed);
    mr_qr_outputs factors = mr_qr(graph, a, .full_matrices = false);
    mr_output diagonal = mr_matrix_diag_part(graph, factors.r, .name = "DiagPart");
    return mr_mul(graph, factors.q, mr_sign(graph, diagonal), .name = "mul");
}

mr_output mr_initial_orthogonal(mr_graph *graph, const mr_initial *initial)
{
    mr_shape shape = initial->shape;
    int64_t rows = 1, columns = shape.dims[shape.rank - 1];
    for (int32_t i = 0; i < shape.rank - 1; i++) rows *= shape.dims[i];
    bool is_wide = rows < columns;
    mr_output q = orthonormal(graph, initial, is_wide ? columns : rows, is_wide ? rows : columns);
    if (is_wide)
        q = mr_transpose(graph, q, mr_constant_int32s(graph, MR_SHAPE(2), (int32_t[]){1, 0}, "matrix_transpose/perm"),
                         .name = "matrix_transpose/transpose");
    q = mr_reshape(graph, q, sizes_of(graph, "Reshape/shape", shape.dims, shape.rank));
    return mr_mul(graph, mr_train_scalar(graph, "mul_1/x", initial->dtype, gain_of(initial)), q, .name = "mul_1");
}

mr_output mr_initial_delta_orthogonal(mr_graph *graph, const mr_initial *initial)
{
    mr_shape shape = initial->full;
    int32_t rank = shape.rank, center[3];
    int64_t inputs = shape.dims[rank - 2], outputs = shape.dims[rank - 1];
    mr_output q = orthonormal(graph, initial, outputs, outputs);
    q = mr_slice(graph, q, mr_constant_ints(graph, MR_INTS(0, 0)), mr_constant_ints(graph, MR_INTS(inputs, outputs)));
    q = mr_mul(graph, q, mr_train_scalar(graph, "Const", initial->dtype, gain_of(initial)), .name = "mul_1");
    for (int32_t i = 0; i < rank - 2; i++) center[i] = (int32_t)((shape.dims[i] - 1) / 2);
    mr_output at = mr_constant_int32s(graph, MR_SHAPE(1, rank - 2), center, "ScatterNd/indices");
    mr_output block = mr_expand_dims(graph, q, mr_constant_int32(graph, 0));
    return mr_initial_part(graph, mr_scatter_nd(graph, at, block, sizes_of(graph, "ScatterNd/shape", shape.dims, rank)),
                           initial);
}

mr_output mr_initial_identity(mr_graph *graph, const mr_initial *initial)
{
    int64_t rows = initial->full.dims[0], columns = initial->full.dims[1];
    int64_t least = rows < columns ? rows : columns;
    mr_graph_push_scope(graph, "eye");
    mr_output ones = mr_fill(graph, mr_constant_ints(graph, MR_INTS(least)),
                             mr_train_scalar(graph, "ones/Const", initial->dtype, 1), .name = "ones");
    mr_output eye;
    if (rows == columns) {
        eye = mr_matrix_diag(graph, ones, .name = "diag");
    } else {
        mr_output zeros = mr_fill(graph, mr_constant_ints(graph, MR_INTS(rows, columns)),
                                  mr_train_scalar(graph, "zeros/Const", initial->dtype, 0), .name = "zeros");
        eye = mr_matrix_set_diag(graph, zeros, ones, .name = "diag");
    }
    mr_graph_pop_scope(graph);
    eye = mr_initial_part(graph, eye, initial);
    return mr_mul(graph, mr_train_scalar(graph, "mul/x", initial->dtype, gain_of(initial)), eye, .name = "mul");
}
