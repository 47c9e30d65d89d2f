/* LSTMBlockCell, BlockLSTM, GRUBlockCell and their gradients. The gates of an LSTM are four blocks of columns of one
 * product: i, ci, f, o, or i, f, ci, o in the second version of BlockLSTM. */
#include "kernels/matmul.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell_attrs {
    float forget_bias, clip;
    bool peephole;
    int64_t input_gate, forget_gate; /* the blocks of ci and f */
} cell_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    (void)error;
    cell_attrs *attrs = prepared;
    size_t length = strlen(node->op);
    bool second = length > 2 && strcmp(node->op + length - 2, "V2") == 0;
    *attrs = (cell_attrs){.forget_bias = mr_attr_float_or(node->attrs, "forget_bias", 0),
                          .clip = mr_attr_float_or(node->attrs, "cell_clip", 0),
                          .peephole = mr_attr_bool_or(node->attrs, "use_peephole", false),
                          .input_gate = second ? 2 : 1,
                          .forget_gate = second ? 1 : 2};
    return MR_OK;
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* The sizes of a cell, and scratch memory for one step. */
typedef struct lstm {
    const cell_attrs *attrs;
    int64_t batch, inputs, cells;
    const float *w, *wci, *wcf, *wco, *b;
    float *xh;    /* [batch, inputs + cells] */
    float *gates; /* [batch, 4 · cells] */
    float *xh_gradient, *w_part;
} lstm;

static mr_status expect(const mr_kernel_call *call, int index, mr_shape shape, const char *name, mr_error *error)
{
    const mr_shape *given = &call->inputs[index].shape;
    if (given->rank != shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s must be %dD", name, shape.rank);
    for (int i = 0; i < shape.rank; i++)
        if (given->dims[i] != shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "%s.dim_size(%d) does not match the other inputs: %" PRId64 " vs. %" PRId64, name, i,
                                  given->dims[i], shape.dims[i]);
    return MR_OK;
}

/* Reads the sizes from x, whose rank is checked, and cs_prev, and checks the inputs [first + 1, first + 8). */
static mr_status read_lstm(const mr_kernel_call *call, int first, lstm *l, mr_error *error)
{
    mr_shape x = call->inputs[first].shape, cs = call->inputs[first + 1].shape;
    if (cs.rank != 2) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "cs_prev must be 2D");
    *l = (lstm){.attrs = call->prepared,
                .batch = x.dims[x.rank - 2],
                .inputs = x.dims[x.rank - 1],
                .cells = cs.dims[1],
                .w = call->inputs[first + 3].data,
                .wci = call->inputs[first + 4].data,
                .wcf = call->inputs[first + 5].data,
                .wco = call->inputs[first + 6].data,
                .b = call->inputs[first + 7].data};
    int64_t gates, rows;
    if (__builtin_mul_overflow(l->cells, 4, &gates) || __builtin_add_overflow(l->inputs, l->cells, &rows))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the cell is too large");
    MR_TRY(expect(call, first + 1, MR_SHAPE(l->batch, l->cells), "cs_prev", error));
    MR_TRY(expect(call, first + 2, MR_SHAPE(l->batch, l->cells), "h_prev", error));
    MR_TRY(expect(call, first + 3, MR_SHAPE(rows, gates), "w", error));
    static const char *const names[] = {"wci", "wcf", "wco"};
    for (int i = 0; i < 3; i++) MR_TRY(expect(call, first + 4 + i, MR_SHAPE(l->cells), names[i], error));
    return expect(call, first + 7, MR_SHAPE(gates), "b", error);
}

/* Allocates xh and gates, and for gradients xh_gradient and w_part, as one block at *block. */
static mr_status allocate(const mr_kernel_call *call, lstm *l, bool gradients, float **block, mr_error *error)
{
    int64_t row, wide, weights = 0, total;
    bool fails = __builtin_mul_overflow(l->batch, l->inputs + l->cells, &row) || row > INT64_MAX / 32 ||
                 __builtin_mul_overflow(l->batch, 4 * l->cells, &wide) || wide > INT64_MAX / 32 ||
                 (gradients && __builtin_mul_overflow(l->inputs + l->cells, 4 * l->cells, &weights)) ||
                 weights > INT64_MAX / 32;
    total = fails ? 0 : 2 * row + wide + weights + 1;
    *block = fails ? nullptr : malloc((size_t)total * sizeof(float));
    if (*block == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    l->xh = *block;
    l->xh_gradient = l->xh + row;
    l->gates = l->xh_gradient + row;
    l->w_part = l->gates + wide;
    return MR_OK;
}

/* target [rows, a + b] = two matrices side by side. */
static void join(float *target, const float *a, const float *b, int64_t rows, int64_t a_size, int64_t b_size)
{
    for (int64_t r = 0; r < rows; r++) {
        if (a_size > 0) memcpy(target + r * (a_size + b_size), a + r * a_size, (size_t)a_size * sizeof(float));
        if (b_size > 0) memcpy(target + r * (a_size + b_size) + a_size, b + r * b_size, (size_t)b_size * sizeof(float));
    }
}

/* The seven activations of one step, [batch, cells] each. */
typedef struct step {
    const float *x, *cs_prev, *h_prev;
    float *i, *cs, *f, *o, *ci, *co, *h;
} step;

static mr_status lstm_step(mr_kernel_call *call, const lstm *l, const step *s, mr_error *error)
{
    const cell_attrs *attrs = l->attrs;
    int64_t n = l->cells;
    join(l->xh, s->x, s->h_prev, l->batch, l->inputs, n);
    mr_product product = {l->batch, 4 * n, l->inputs + n, l->xh, l->w, l->gates};
    if (n > 0 && l->inputs + n > 0) MR_TRY(mr_product_run(call, MR_FLOAT, &product, nullptr, error));
    for (int64_t at = 0; at < l->batch * n; at++) {
        int64_t c = at % n;
        const float *gate = l->gates + at / n * 4 * n + c, *bias = l->b + c;
        float previous = s->cs_prev[at];
        float i = gate[0] + bias[0], o = gate[3 * n] + bias[3 * n];
        float f = gate[attrs->forget_gate * n] + bias[attrs->forget_gate * n] + attrs->forget_bias;
        if (attrs->peephole) {
            i += previous * l->wci[c];
            f += previous * l->wcf[c];
        }
        s->i[at] = i = sigmoid(i);
        s->f[at] = f = sigmoid(f);
        float ci = s->ci[at] = tanhf(gate[attrs->input_gate * n] + bias[attrs->input_gate * n]);
        float cs = i * ci + f * previous;
        if (attrs->clip > 0) cs = cs < -attrs->clip ? -attrs->clip : cs > attrs->clip ? attrs->clip : cs;
        s->cs[at] = cs;
        if (attrs->peephole) o += cs * l->wco[c];
        s->o[at] = o = sigmoid(o);
        float co = s->co[at] = tanhf(cs);
        s->h[at] = o * co;
    }
    return MR_OK;
}

/* Without inputs and cells the products of lstm_step have no terms, which mr_product_run computes as zeros too. */
static step step_of(mr_kernel_call *call, int first, int64_t offset)
{
    float *out[7];
    for (int i = 0; i < 7; i++) out[i] = (float *)call->outputs[i].data + offset;
    return (step){.x = call->inputs[first].data,
                  .cs_prev = call->inputs[first + 1].data,
                  .h_prev = call->inputs[first + 2].data,
                  .i = out[0],
                  .cs = out[1],
                  .f = out[2],
                  .o = out[3],
                  .ci = out[4],
                  .co = out[5],
                  .h = out[6]};
}

static mr_status lstm_cell(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(lstm_cell);
    lstm l;
    float *block;
    if (call->inputs[0].shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be rank 2 but is rank %d",
                              call->inputs[0].shape.rank);
    MR_TRY(read_lstm(call, 0, &l, error));
    for (int i = 0; i < 7; i++) MR_TRY(mr_kernel_output(call, i, MR_SHAPE(l.batch, l.cells), error));
    if (l.batch == 0 || l.cells == 0) return MR_OK;
    MR_TRY(allocate(call, &l, false, &block, error));
    step s = step_of(call, 0, 0);
    mr_status status = lstm_step(call, &l, &s, error);
    free(block);
    return status;
}

static mr_status read_length(const mr_kernel_call *call, int64_t steps, int64_t *length, mr_error *error)
{
    if (call->inputs[0].shape.rank != 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "`seq_len_max_tensor` must be rank 0 but is rank %d", call->inputs[0].shape.rank);
    *length = *(const int64_t *)call->inputs[0].data;
    if (*length < 0 || *length > steps)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "seq_len_max must be between 0 and %" PRId64 " but is %" PRId64, steps, *length);
    return MR_OK;
}

/* Steps after seq_len_max are zeros; TensorFlow leaves those of the gates unset. */
static mr_status block_lstm(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(block_lstm);
    const mr_tensor *x = &call->inputs[1];
    lstm l;
    float *block;
    int64_t length;
    if (x->shape.rank != 3) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be 3D");
    MR_TRY(read_length(call, x->shape.dims[0], &length, error));
    MR_TRY(read_lstm(call, 1, &l, error));
    for (int i = 0; i < 7; i++) {
        MR_TRY(mr_kernel_output(call, i, MR_SHAPE(x->shape.dims[0], l.batch, l.cells), error));
        if (mr_tensor_count(&call->outputs[i]) > 0)
            memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
    }
    int64_t size = l.batch * l.cells;
    if (size == 0 || length == 0) return MR_OK;
    MR_TRY(allocate(call, &l, false, &block, error));
    mr_status status = MR_OK;
    for (int64_t t = 0; t < length && status == MR_OK; t++) {
        step s = step_of(call, 1, t * size);
        s.x += t * l.batch * l.inputs;
        if (t > 0) {
            s.cs_prev = s.cs - size;
            s.h_prev = s.h - size;
        }
        status = lstm_step(call, &l, &s, error);
    }
    free(block);
    return status;
}

/* ---- Gradients ---- */

typedef struct back_step {
    const float *cs_prev, *i, *cs, *f, *o, *ci, *co, *cs_gradient, *h_gradient; /* of this step */
    float *cs_prev_gradient;
    float *wci_gradient, *wcf_gradient, *wco_gradient; /* added to */
} back_step;

/* Computes the gates' gradients. With `carried` the given gradients are those of cs and h that the following step
 * returned, and are added. */
static void lstm_back(const lstm *l, const back_step *s, float *gates, const float *cs_carried, const float *h_carried,
                      int64_t h_stride)
{
    int64_t n = l->cells;
    for (int64_t at = 0; at < l->batch * n; at++) {
        int64_t c = at % n, row = at / n;
        float dh = s->h_gradient[at] + (h_carried != nullptr ? h_carried[row * h_stride + c] : 0);
        float dcs = s->cs_gradient[at] + (cs_carried != nullptr ? cs_carried[at] : 0);
        float i = s->i[at], f = s->f[at], o = s->o[at], ci = s->ci[at], co = s->co[at];
        float d_o = o * (1 - o) * dh * co;
        dcs = (1 - co * co) * dh * o + dcs;
        if (l->attrs->peephole) dcs += d_o * l->wco[c];
        float dci = (1 - ci * ci) * dcs * i;
        float df = f * (1 - f) * dcs * s->cs_prev[at];
        float di = i * (1 - i) * dcs * ci;
        float *gate = gates + row * 4 * n + c;
        gate[0] = di;
        gate[l->attrs->input_gate * n] = dci;
        gate[l->attrs->forget_gate * n] = df;
        gate[3 * n] = d_o;
        float previous = dcs * f;
        if (l->attrs->peephole) {
            previous += di * l->wci[c] + df * l->wcf[c];
            s->wci_gradient[c] += di * s->cs_prev[at];
            s->wcf_gradient[c] += df * s->cs_prev[at];
            s->wco_gradient[c] += d_o * s->cs[at];
        }
        s->cs_prev_gradient[at] = previous;
    }
}

static mr_status lstm_cell_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(lstm_cell_grad);
    lstm l;
    static const char *const names[] = {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"};
    if (call->inputs[0].shape.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be rank 2 but is rank %d",
                              call->inputs[0].shape.rank);
    MR_TRY(read_lstm(call, 0, &l, error));
    for (int i = 0; i < 8; i++) MR_TRY(expect(call, 8 + i, MR_SHAPE(l.batch, l.cells), names[i], error));
    MR_TRY(mr_kernel_output(call, 0, MR_SHAPE(l.batch, l.cells), error));
    MR_TRY(mr_kernel_output(call, 1, MR_SHAPE(l.batch, 4 * l.cells), error));
    for (int i = 2; i < 5; i++) {
        MR_TRY(mr_kernel_output(call, i, MR_SHAPE(l.cells), error));
        if (l.cells > 0) memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
    }
    if (l.cells == 0) return MR_OK;
    back_step s = {.cs_prev = call->inputs[1].data,
                   .i = call->inputs[8].data,
                   .cs = call->inputs[9].data,
                   .f = call->inputs[10].data,
                   .o = call->inputs[11].data,
                   .ci = call->inputs[12].data,
                   .co = call->inputs[13].data,
                   .cs_gradient = call->inputs[14].data,
                   .h_gradient = call->inputs[15].data,
                   .cs_prev_gradient = call->outputs[0].data,
                   .wci_gradient = call->outputs[2].data,
                   .wcf_gradient = call->outputs[3].data,
                   .wco_gradient = call->outputs[4].data};
    lstm_back(&l, &s, call->outputs[1].data, nullptr, nullptr, 0);
    return MR_OK;
}

/* The products of one step: the gradients of x and h, and the sums of those of w and b. */
static mr_status back_products(mr_kernel_call *call, const lstm *l, const float *x, const float *h_prev,
                               float *x_gradient, float *w_gradient, float *b_gradient, mr_error *error)
{
    int64_t rows = l->inputs + l->cells, wide = 4 * l->cells;
    mr_product to_input = {l->batch, rows, wide, l->gates, l->w, l->xh_gradient, .b_transposed = true};
    MR_TRY(mr_product_run(call, MR_FLOAT, &to_input, nullptr, error));
    for (int64_t r = 0; r < l->batch && l->inputs > 0; r++)
        memcpy(x_gradient + r * l->inputs, l->xh_gradient + r * rows, (size_t)l->inputs * sizeof(float));
    join(l->xh, x, h_prev, l->batch, l->inputs, l->cells);
    mr_product to_weights = {rows, wide, l->batch, l->xh, l->gates, l->w_part, .a_transposed = true};
    MR_TRY(mr_product_run(call, MR_FLOAT, &to_weights, nullptr, error));
    for (int64_t i = 0; i < rows * wide; i++) w_gradient[i] += l->w_part[i];
    for (int64_t i = 0; i < l->batch * wide; i++) b_gradient[i % wide] += l->gates[i];
    return MR_OK;
}

static mr_status block_lstm_grad(mr_kernel_call *call, mr_error *error)
{
    MR_HALF_AS_FLOAT(block_lstm_grad);
    const mr_tensor *x = &call->inputs[1];
    lstm l;
    float *block;
    int64_t length;
    static const char *const names[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
    if (x->shape.rank != 3)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "x must be rank 3 but is rank %d", x->shape.rank);
    MR_TRY(read_length(call, x->shape.dims[0], &length, error));
    MR_TRY(read_lstm(call, 1, &l, error));
    for (int i = 0; i < 9; i++)
        MR_TRY(expect(call, 9 + i, MR_SHAPE(x->shape.dims[0], l.batch, l.cells), names[i], error));
    for (int i = 0; i < 8; i++) {
        MR_TRY(mr_kernel_output(call, i, call->inputs[1 + i].shape, error));
        if (mr_tensor_count(&call->outputs[i]) > 0)
            memset(call->outputs[i].data, 0, mr_tensor_size_bytes(&call->outputs[i]));
    }
    int64_t size = l.batch * l.cells;
    if (size == 0 || length == 0) return MR_OK;
    MR_TRY(allocate(call, &l, true, &block, error));
    const float *in[18];
    float *out[8];
    for (int i = 1; i < 18; i++) in[i] = call->inputs[i].data;
    for (int i = 0; i < 8; i++) out[i] = call->outputs[i].data;
    mr_status status = MR_OK;
    int64_t rows = l.inputs + l.cells;
    for (int64_t t = length - 1; t >= 0 && status == MR_OK; t--) {
        bool last = t == length - 1;
        back_step s = {.cs_prev = t == 0 ? in[2] : in[10] + (t - 1) * size,
                       .i = in[9] + t * size,
                       .cs = in[10] + t * size,
                       .f = in[11] + t * size,
                       .o = in[12] + t * size,
                       .ci = in[13] + t * size,
                       .co = in[14] + t * size,
                       .cs_gradient = in[16] + t * size,
                       .h_gradient = in[17] + t * size,
                       .cs_prev_gradient = out[1],
                       .wci_gradient = out[4],
                       .wcf_gradient = out[5],
                       .wco_gradient = out[6]};
        lstm_back(&l, &s, l.gates, last ? nullptr : out[1], last ? nullptr : l.xh_gradient + l.inputs, rows);
        status = back_products(call, &l, in[1] + t * l.batch * l.inputs, t == 0 ? in[3] : in[15] + (t - 1) * size,
                               out[0] + t * l.batch * l.inputs, out[3], out[7], error);
    }
    for (int64_t r = 0; r < l.batch && status == MR_OK; r++)
        memcpy(out[2] + r * l.cells, l.xh_gradient + r * rows + l.inputs, (size_t)l.cells * sizeof(float));
    free(block);
    return status;
}

/* ---- GRU ---- */

typedef struct gru {
    int64_t batch, inputs, cells;
    float *xh, *gates; /* [batch, inputs + cells] twice, [batch, 2 · cells] */
} gru;

/* expect() with TensorFlow's messages: sizes names what each dimension must be. */
static mr_status expect_gru(const mr_kernel_call *call, int index, mr_shape shape, const char *name,
                            const char *const sizes[2], mr_error *error)
{
    const mr_shape *given = &call->inputs[index].shape;
    bool is_state = index == 1 || index > 5;
    if (given->rank != shape.rank)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Rank of %s must be %d, got %d",
                              strcmp(name, "w_ru") == 0 ? "w_ru_"
                              : strcmp(name, "c") == 0  ? "w_c"
                                                        : name,
                              shape.rank, given->rank);
    for (int i = 0; i < shape.rank; i++)
        if (given->dims[i] != shape.dims[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s.%s(%d) != %s: %" PRId64 " vs. %" PRId64,
                                  name, is_state ? "dims" : "dim_size", i, sizes[i], given->dims[i], shape.dims[i]);
    return MR_OK;
}

static const char *const gru_state[] = {"batch_size", "cell_size"};

static mr_status read_gru(const mr_kernel_call *call, gru *g, float **block, mr_error *error)
{
    mr_shape x = call->inputs[0].shape, h = call->inputs[1].shape;
    int64_t rows, wide, total, row;
    *block = nullptr;
    if (x.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Rank of x must be 2, got %d", x.rank);
    if (h.rank != 2)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Rank of h_prev must be 2, got %d", h.rank);
    *g = (gru){.batch = x.dims[0], .inputs = x.dims[1], .cells = h.dims[1]};
    if (__builtin_add_overflow(g->inputs, g->cells, &rows) || __builtin_mul_overflow(g->cells, 2, &wide))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "the cell is too large");
    static const char *const gates[] = {"input_size + cell_size", "cell_size * 2"}, *const candidate[] = {
                                                                                        "input_size + cell_size",
                                                                                        "cell_size"};
    MR_TRY(expect_gru(call, 1, MR_SHAPE(g->batch, g->cells), "h_prev", gru_state, error));
    MR_TRY(expect_gru(call, 2, MR_SHAPE(rows, wide), "w_ru", gates, error));
    MR_TRY(expect_gru(call, 3, MR_SHAPE(rows, g->cells), "w_c", candidate, error));
    MR_TRY(expect_gru(call, 4, MR_SHAPE(wide), "b_ru", gates + 1, error));
    MR_TRY(expect_gru(call, 5, MR_SHAPE(g->cells), "b_c", candidate + 1, error));
    if (__builtin_mul_overflow(g->batch, rows, &row) || __builtin_mul_overflow(g->batch, wide, &total) ||
        row > INT64_MAX / 64 || total > INT64_MAX / 64)
        return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "the cell is too large");
    *block = malloc((size_t)(2 * row + total + 1) * sizeof(float));
    if (*block == nullptr) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    g->xh = *block;
    g->gates = g->xh + 2 * row;
    return MR_OK;
}

static mr_status gru_forward(mr_kernel_call *call, const gru *g, mr_error *error)
{
    const float *x = call->inputs[0].data, *h_prev = call->inputs[1].data, *b_ru = call->inputs[4].data,
                *b_c = call->inputs[5].data;
    float *r = call->outputs[0].data, *u = call->outputs[1].data, *c = call->outputs[2].data,
          *h = call->outputs[3].data;
    int64_t n = g->cells, rows = g->inputs + n, count = g->batch * n;
    join(g->xh, x, h_prev, g->batch, g->inputs, n);
    mr_product first = {g->batch, 2 * n, rows, g->xh, call->inputs[2].data, g->gates};
    MR_TRY(mr_product_run(call, MR_FLOAT, &first, nullptr, error));
    for (int64_t at = 0; at < count; at++) {
        const float *gate = g->gates + at / n * 2 * n + at % n;
        r[at] = sigmoid(gate[0] + b_ru[at % n]);
        u[at] = sigmoid(gate[n] + b_ru[n + at % n]);
        g->xh[at / n * rows + g->inputs + at % n] = h_prev[at] * r[at];
    }
    mr_product second = {g->batch, n, rows, g->xh, call->inputs[3].data, c};
    MR_TRY(mr_product_run(call, MR_FLOAT, &second, nullptr, error));
    for (int64_t at = 0; at < count; at++) {
        c[at] = tanhf(c[at] + b_c[at % n]);
        h[at] = u[at] * (h_prev[at] - c[at]) + c[at];
    }
    return MR_OK;
}

static mr_status gru_cell(mr_kernel_call *call, mr_error *error)
{
    gru g;
    float *block;
    MR_TRY(read_gru(call, &g, &block, error));
    mr_status status = MR_OK;
    for (int i = 0; i < 4 && status == MR_OK; i++)
        status = mr_kernel_output(call, i, MR_SHAPE(g.batch, g.cells), error);
    if (status == MR_OK && g.batch > 0 && g.cells > 0) status = gru_forward(call, &g, error);
    free(block);
    return status;
}

static mr_status gru_backward(mr_kernel_call *call, const gru *g, mr_error *error)
{
    const float *in[10];
    for (int i = 0; i < 10; i++) in[i] = call->inputs[i].data;
    const float *h_prev = in[1], *r = in[6], *u = in[7], *c = in[8], *dh = in[9];
    float *dx = call->outputs[0].data, *dh_prev = call->outputs[1].data, *dc_bar = call->outputs[2].data,
          *d_gates = call->outputs[3].data;
    int64_t n = g->cells, rows = g->inputs + n, count = g->batch * n;
    float *first = g->xh, *second = g->xh + g->batch * rows;
    for (int64_t at = 0; at < count; at++) {
        dc_bar[at] = dh[at] * (1 - u[at]) * (1 - c[at] * c[at]);
        d_gates[at / n * 2 * n + n + at % n] = dh[at] * (h_prev[at] - c[at]) * u[at] * (1 - u[at]);
    }
    mr_product through_c = {g->batch, rows, n, dc_bar, in[3], second, .b_transposed = true};
    MR_TRY(mr_product_run(call, MR_FLOAT, &through_c, nullptr, error));
    for (int64_t at = 0; at < count; at++) {
        float dhr = second[at / n * rows + g->inputs + at % n];
        d_gates[at / n * 2 * n + at % n] = dhr * h_prev[at] * r[at] * (1 - r[at]);
    }
    mr_product through_gates = {g->batch, rows, 2 * n, d_gates, in[2], first, .b_transposed = true};
    MR_TRY(mr_product_run(call, MR_FLOAT, &through_gates, nullptr, error));
    for (int64_t row = 0; row < g->batch; row++)
        for (int64_t k = 0; k < g->inputs; k++)
            dx[row * g->inputs + k] = first[row * rows + k] + second[row * rows + k];
    for (int64_t at = 0; at < count; at++) {
        int64_t from = at / n * rows + g->inputs + at % n;
        dh_prev[at] = first[from] + second[from] * r[at] + dh[at] * u[at];
    }
    return MR_OK;
}

static mr_status gru_cell_grad(mr_kernel_call *call, mr_error *error)
{
    gru g;
    float *block;
    static const char *const names[] = {"r", "u", "c", "d_h"};
    MR_TRY(read_gru(call, &g, &block, error));
    mr_status status = MR_OK;
    for (int i = 0; i < 4 && status == MR_OK; i++)
        status = expect_gru(call, 6 + i, MR_SHAPE(g.batch, g.cells), names[i], gru_state, error);
    int64_t widths[4] = {g.inputs, g.cells, g.cells, 2 * g.cells};
    for (int i = 0; i < 4 && status == MR_OK; i++)
        status = mr_kernel_output(call, i, MR_SHAPE(g.batch, widths[i]), error);
    if (status == MR_OK && g.cells == 0 && mr_tensor_count(&call->outputs[0]) > 0)
        memset(call->outputs[0].data, 0, mr_tensor_size_bytes(&call->outputs[0]));
    if (status == MR_OK && g.batch > 0 && g.cells > 0) status = gru_backward(call, &g, error);
    free(block);
    return status;
}

#define ROW(name, function, host)                                                                                      \
    {.op = name, .run = function, .prepared_size_bytes = sizeof(cell_attrs), .prepare = prepare, .host_inputs = host}
static const mr_kernel kernels[] = {
    ROW("LSTMBlockCell", lstm_cell, 0),
    ROW("LSTMBlockCellGrad", lstm_cell_grad, 0),
    ROW("BlockLSTM", block_lstm, 1 << 0),
    ROW("BlockLSTMV2", block_lstm, 1 << 0),
    ROW("BlockLSTMGrad", block_lstm_grad, 1 << 0),
    ROW("BlockLSTMGradV2", block_lstm_grad, 1 << 0),
    {.op = "GRUBlockCell", .run = gru_cell},
    {.op = "GRUBlockCellGrad", .run = gru_cell_grad},
};
MR_KERNEL_FAMILY(rnn);
