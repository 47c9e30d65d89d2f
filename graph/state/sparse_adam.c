/* The kernel of graph/plan/fuse_adam.c: Adam's update of a variable whose gradient has rows at indices.
 *
 *   m = m * beta_m, and rows_m are added to it
 *   v = v * beta_v, and rows_v are added to it
 *   variable -= rate * m / (sqrt(v) + epsilon)
 *
 * Each row of the variable has a list of the indices that name it, in their order. Rows without one are updated
 * together. */
#include "graph/state/change.h"

#include <assert.h>
#include <stdlib.h>
#include <tgmath.h>

constexpr int64_t PIECE = 1024; /* elements of three variables, which stay in a first cache */

typedef struct adam {
    const mr_tensor *variable, *m, *v, *rate, *beta_m, *beta_v, *epsilon, *indices, *rows_m, *rows_v;
    int64_t width;  /* elements of a row */
    int64_t *first; /* by row: the first index that names it, or -1 */
    int64_t *next;  /* by index: the next one that names the same row, or -1 */
} adam;

/* Elements [at, at + count) of m and v are decayed; they get a part of the rows at `index`, from `column` on; and the
 * variable is moved by them. */
#define LOOPS_OF(T)                                                                                                    \
    MR_INLINE void decay_##T##_body(const adam *a, int64_t at, int64_t count)                                          \
    {                                                                                                                  \
        T *restrict m = (T *)a->m->data + at, *restrict v = (T *)a->v->data + at;                                      \
        const T beta_m = *(const T *)a->beta_m->data, beta_v = *(const T *)a->beta_v->data;                            \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            m[i] *= beta_m;                                                                                            \
            v[i] *= beta_v;                                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    MR_LEVELS(decay_##T, (const adam *a, int64_t at, int64_t count), (a, at, count))                                   \
    MR_INLINE void add_to_##T(T *restrict slot, const mr_tensor *rows, int64_t from, int64_t count)                    \
    {                                                                                                                  \
        const T *restrict row = rows->data;                                                                            \
        if (rows->shape.rank == 0)                                                                                     \
            for (int64_t i = 0; i < count; i++) slot[i] += row[0];                                                     \
        else                                                                                                           \
            for (int64_t i = 0; i < count; i++) slot[i] += row[from + i];                                              \
    }                                                                                                                  \
    MR_INLINE void add_##T##_body(const adam *a, int64_t at, int64_t count, int64_t index, int64_t column)             \
    {                                                                                                                  \
        add_to_##T((T *)a->m->data + at, a->rows_m, index * a->width + column, count);                                 \
        add_to_##T((T *)a->v->data + at, a->rows_v, index * a->width + column, count);                                 \
    }                                                                                                                  \
    MR_LEVELS(add_##T, (const adam *a, int64_t at, int64_t count, int64_t index, int64_t column),                      \
              (a, at, count, index, column))                                                                           \
    MR_INLINE void move_##T##_body(const adam *a, int64_t at, int64_t count)                                           \
    {                                                                                                                  \
        T *restrict x = (T *)a->variable->data + at;                                                                   \
        const T *restrict m = (const T *)a->m->data + at, *restrict v = (const T *)a->v->data + at;                    \
        const T rate = *(const T *)a->rate->data, epsilon = *(const T *)a->epsilon->data;                              \
        for (int64_t i = 0; i < count; i++) x[i] -= rate * m[i] / (sqrt(v[i]) + epsilon);                              \
    }                                                                                                                  \
    MR_LEVELS(move_##T, (const adam *a, int64_t at, int64_t count), (a, at, count))                                    \
    static void update_##T(const adam *a, int64_t row, int64_t end)                                                    \
    {                                                                                                                  \
        const int level = mr_cpu();                                                                                    \
        for (int64_t at = row * a->width, stop = end * a->width; at < stop; at += PIECE) {                             \
            const int64_t count = MR_MIN(PIECE, stop - at);                                                            \
            decay_##T[level](a, at, count);                                                                            \
            for (int64_t i = a->first[row]; i >= 0; i = a->next[i])                                                    \
                add_##T[level](a, at, count, i, at - row * a->width);                                                  \
            move_##T[level](a, at, count);                                                                             \
        }                                                                                                              \
    }
LOOPS_OF(float)
LOOPS_OF(double)

static void update_rows(void *context, int64_t begin, int64_t end)
{
    const adam *a = context;
    while (begin < end) {
        int64_t stop = begin + 1; /* of rows that are updated together */
        while (a->first[begin] < 0 && stop < end && a->first[stop] < 0) stop++;
        if (a->variable->dtype == MR_FLOAT)
            update_float(a, begin, stop);
        else
            update_double(a, begin, stop);
        begin = stop;
    }
}

/* Finds the indices that name each row. */
static void link_rows(const adam *a, int64_t rows)
{
    for (int64_t row = 0; row < rows; row++) a->first[row] = -1;
    for (int64_t i = mr_tensor_count(a->indices) - 1; i >= 0; i--) {
        const int64_t row = mr_change_index(a->indices, i);
        assert(row >= 0 && row < rows);
        a->next[i] = a->first[row];
        a->first[row] = i;
    }
}

/* Errors are those of the nodes that this call replaces. */
static mr_status check(const mr_kernel_call *call, const adam *a, mr_error *error)
{
    const mr_attr *nodes = mr_attrs_find(call->node->attrs, "nodes");
    if (!nodes || nodes->count != 2)
        return mr_kernel_fail(call->node, error, MR_INTERNAL, "the nodes that add rows are not named");
    char wanted[MR_SHAPE_TEXT_SIZE], given[MR_SHAPE_TEXT_SIZE];
    for (int i = 0; i < 2; i++) {
        const mr_tensor *slot = i == 0 ? a->m : a->v;
        mr_kernel_node node = *call->node;
        node.name = nodes->values[i].string.data;
        node.op = "ScatterAdd";
        MR_TRY(mr_scatter_check(&node, slot, a->indices, i == 0 ? a->rows_m : a->rows_v, error));
        if (!mr_shape_equal(slot->shape, a->variable->shape))
            return mr_kernel_fail(
                call->node, error, MR_INVALID_ARGUMENT,
                "Cannot update variable with shape %s using a Tensor with shape %s, shapes must be equal.",
                mr_shape_text(a->variable->shape, wanted, sizeof wanted),
                mr_shape_text(slot->shape, given, sizeof given));
    }
    return MR_OK;
}

static mr_status apply_sparse_adam(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *in = call->inputs;
    adam a = {&in[0], &in[1], &in[2], &in[3], &in[4], &in[5], &in[6], &in[7], &in[8], &in[9]};
    MR_TRY(check(call, &a, error));
    const int64_t rows = a.variable->shape.dims[0], count = mr_tensor_count(a.indices);
    a.width = mr_dims_product(&a.variable->shape, 1, a.variable->shape.rank);
    if (rows == 0 || a.width == 0) return MR_OK;
    a.first = malloc((size_t)rows * sizeof *a.first);
    a.next = malloc((size_t)MR_MAX(count, 1) * sizeof *a.next);
    mr_status status = MR_OK;
    if (a.first && a.next) {
        link_rows(&a, rows);
        mr_pool_for(call->device->pool, rows, MR_MAX(MR_GRAIN / a.width, 1), update_rows, &a);
    } else {
        status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    }
    free(a.first);
    free(a.next);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "_ApplySparseAdam", .types = "T: float, double", .run = apply_sparse_adam, .updates = 0b111},
};
const mr_kernel_table mr_state_kernels_sparse_adam = {kernels, sizeof kernels / sizeof kernels[0]};
