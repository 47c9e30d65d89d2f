/* The orthogonal initializer of convolutions (Xiao et al. 2018): a kernel of 1 to 3 dimensions that preserves norms,
 * composed of kernels of size 2 from random projections, as TensorFlow's ConvolutionOrthogonal1D to 3D. */
#include "graph/train/variable_store.h"
#include <millrace/ops.h>

#include <assert.h>

/* Matrices by position in a kernel whose `rank` dimensions all have this size; row-major. */
typedef struct kernel {
    int32_t size, count;
    mr_output *at;
} kernel;

typedef struct work {
    mr_graph *graph;
    const mr_initial *initial;
    int32_t rank;  /* spatial dimensions */
    int64_t units; /* outputs */
    int64_t seed;  /* of the next random matrix; as the initializer's option */
} work;

static bool make_kernel(const work *w, int32_t size, kernel *k)
{
    *k = (kernel){.size = size, .count = 1};
    for (int32_t i = 0; i < w->rank; i++) k->count *= size;
    k->at = MR_ARENA_NEW(&w->graph->arena, mr_output, (size_t)k->count);
    if (k->at == nullptr) (void)mr_graph_fail(w->graph, MR_RESOURCE_EXHAUSTED, "no memory for an initializer");
    return k->at != nullptr;
}

/* TensorFlow counts a seed up; no seed, and 0, stay. */
static int64_t next_seed(work *w)
{
    int64_t seed = w->seed;
    if (seed != 0 && seed != MR_SEED_ZERO) w->seed++;
    return seed;
}

static mr_output orthogonal_matrix(work *w)
{
    mr_graph *g = w->graph;
    mr_output a = mr_initial_normal(g, MR_SHAPE(w->units, w->units), w->initial->dtype, 0, 1, false, next_seed(w));
    mr_qr_outputs factors = mr_qr(g, a, .full_matrices = false);
    return mr_mul(g, factors.q, mr_sign(g, mr_matrix_diag_part(g, factors.r, .name = "DiagPart")), .name = "mul");
}

/* A random projection on a subspace. */
static mr_output projection(work *w)
{
    mr_graph *g = w->graph;
    mr_output q = orthogonal_matrix(w);
    mr_output drawn = mr_initial_normal(g, MR_SHAPE(w->units), MR_FLOAT, 0, 1, false, next_seed(w));
    mr_output mask = mr_cast(g, mr_greater(g, drawn, mr_train_float(g, "Greater/y", 0)), w->initial->dtype);
    mr_output c = mr_mul(g, q, mask, .name = "Mul");
    return mr_mat_mul(g, c, c, .transpose_b = true);
}

static mr_output identity(const work *w)
{
    mr_graph *g = w->graph;
    mr_output ones = mr_fill(g, mr_constant_ints(g, MR_INTS(w->units)),
                             mr_train_scalar(g, "eye/ones/Const", w->initial->dtype, 1), .name = "eye/ones");
    return mr_matrix_diag(g, ones, .name = "eye/diag");
}

/* A kernel of size 2: the product of a projection, or of its complement, for each dimension. In 3 dimensions TensorFlow
 * exchanges the two. */
static bool make_block(work *w, kernel *block)
{
    mr_graph *g = w->graph;
    mr_output factors[3][2];
    assert(w->rank >= 1 && w->rank <= 3);
    for (int32_t i = 0; i < w->rank; i++) {
        mr_output p = projection(w), rest = mr_sub(g, identity(w), p);
        factors[i][0] = w->rank == 3 ? rest : p;
        factors[i][1] = w->rank == 3 ? p : rest;
    }
    if (!make_kernel(w, 2, block)) return false;
    for (int32_t at = 0; at < block->count; at++) {
        block->at[at] = factors[0][at >> (w->rank - 1) & 1];
        for (int32_t i = 1; i < w->rank; i++)
            block->at[at] = mr_mat_mul(g, block->at[at], factors[i][at >> (w->rank - 1 - i) & 1]);
    }
    return true;
}

/* Adds to `at` of the result: a[position of i] b[offset], if both positions exist. */
static void add_product(const work *w, const kernel *a, const kernel *b, int32_t offset, const int32_t *position,
                        mr_output *sum)
{
    int32_t index = 0;
    for (int32_t i = 0; i < w->rank; i++) {
        int32_t own = position[i] - (offset >> (w->rank - 1 - i) & 1);
        if (own < 0 || own >= a->size) return;
        index = index * a->size + own;
    }
    mr_output product = mr_mat_mul(w->graph, a->at[index], b->at[offset]);
    *sum = sum->node == nullptr ? product : mr_add_v2(w->graph, *sum, product, .name = "add");
}

/* Convolves a kernel with one of size 2. */
static bool convolve(const work *w, kernel *a, const kernel *b)
{
    kernel result;
    if (!make_kernel(w, a->size + 1, &result)) return false;
    for (int32_t at = 0; at < result.count; at++) {
        int32_t position[3], rest = at;
        for (int32_t i = w->rank - 1; i >= 0; i--, rest /= result.size) position[i] = rest % result.size;
        result.at[at] = (mr_output){0};
        for (int32_t offset = b->count - 1; offset >= 0; offset--)
            add_product(w, a, b, offset, position, &result.at[at]);
    }
    *a = result;
    return true;
}

mr_output mr_initial_convolution_orthogonal(mr_graph *graph, const mr_initial *initial)
{
    mr_shape shape = initial->full;
    work w = {.graph = graph,
              .initial = initial,
              .rank = shape.rank - 2,
              .units = shape.dims[shape.rank - 1],
              .seed = initial->initializer->seed};
    int64_t inputs = shape.dims[shape.rank - 2];
    int32_t sizes[MR_RANK_MAX];
    for (int32_t i = 0; i < shape.rank; i++) sizes[i] = (int32_t)shape.dims[i];
    mr_output first = mr_slice(graph, orthogonal_matrix(&w), mr_constant_ints(graph, MR_INTS(0, 0)),
                               mr_constant_ints(graph, MR_INTS(inputs, w.units)));
    mr_output all = first;
    if (shape.dims[0] > 1) {
        kernel p, block;
        if (!make_block(&w, &p)) return mr_graph_failed_output(graph);
        for (int64_t size = 2; size < shape.dims[0] && mr_graph_status(graph, nullptr) == MR_OK; size++)
            if (!make_block(&w, &block) || !convolve(&w, &p, &block)) return mr_graph_failed_output(graph);
        for (int32_t i = 0; i < p.count; i++) p.at[i] = mr_mat_mul(graph, first, p.at[i]);
        all = mr_pack(graph, MR_OUTPUTS_OF(p.at, p.count), .name = "stack");
    }
    all = mr_reshape(graph, all, mr_constant_int32s(graph, MR_SHAPE(shape.rank), sizes, "Reshape/shape"));
    float scale = initial->initializer->scale;
    mr_output gain = mr_train_scalar(graph, "Const", initial->dtype, scale != 0 ? (double)scale : 1);
    return mr_initial_part(graph, mr_mul(graph, all, gain, .name = "mul"), initial);
}
