/* Elementwise operators around reductions of the last dimension, in one call: what is a whole row of one result may be
 * one element of another, which is repeated again for a third. Some rows are computed at a time, all steps of them,
 * with the loops and reductions of the operators, so the bits are those of one call for each. */
#include "kernels/elementwise_steps.h"

#include <assert.h>
#include <string.h>

constexpr int32_t STEPS_MAX = MR_ELEMENTWISE_STEPS_MAX, INPUTS_MAX = MR_ELEMENTWISE_INPUTS_MAX;

/* ---- Shapes ---- */

/* Whether an input of a step whose result has one element for each row has that, too, or one for all. */
static bool is_narrow(mr_shape input, mr_shape wide, mr_row_form form)
{
    return mr_shape_count(input) == 1 ||
           mr_shape_equal(input, mr_narrow_shape(wide, form == MR_ROW_DROPPED ? MR_ROW_DROPPED : MR_ROW_KEPT));
}

/* Whether an operand of a step with whole rows has one element for each. */
static bool is_one_of_row(const mr_chain *c, const mr_shape *inputs, int32_t from)
{
    if (from < 0) return c->steps[-1 - from].form != MR_ROW_WHOLE;
    return inputs[from].rank == 0 || inputs[from].dims[inputs[from].rank - 1] == 1;
}

bool mr_rows_fit(const mr_chain *c, const mr_shape *inputs, const mr_shape *results, mr_shape *wide)
{
    int32_t first = 0;
    while (first < c->step_count && !c->steps[first].loops.reduce) first++;
    assert(first < c->step_count);
    const int32_t reduced = c->steps[first].a;
    *wide = reduced >= 0 ? inputs[reduced] : results[-1 - reduced];
    if (wide->rank < 1 || wide->dims[wide->rank - 1] == 0) return false;
    if (wide->dims[wide->rank - 1] > MR_ROW_BYTES_MAX / (int64_t)mr_dtype_size(c->dtype)) return false;
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        const bool is_wide = s->form == MR_ROW_WHOLE || s->form == MR_ROW_REPEATED;
        if (!mr_shape_equal(results[i], is_wide ? *wide : mr_narrow_shape(*wide, s->form))) return false;
        if (s->loops.reduce && s->a >= 0 && !mr_shape_equal(inputs[s->a], *wide)) return false;
        if (s->form == MR_ROW_WHOLE && s->loops.binary && is_one_of_row(c, inputs, s->a) &&
            is_one_of_row(c, inputs, s->b))
            return false;
        if (s->loops.reduce || s->form == MR_ROW_WHOLE) continue;
        if (s->a >= 0 && !is_narrow(inputs[s->a], *wide, s->form)) return false;
        if (s->b >= 0 && !is_narrow(inputs[s->b], *wide, s->form)) return false;
    }
    return true;
}

/* ---- Rows ---- */

/* How an input continues from one row to the next. */
typedef enum advance {
    BY_ROWS,     /* all of its elements follow each other */
    BY_ELEMENTS, /* one for each row */
    NOT,         /* one for all */
    BY_STRIDES,  /* a row, or one element, somewhere else */
} advance;

typedef struct operand {
    const char *data;
    advance advance;
    bool is_scalar; /* BY_STRIDES: one element for a row */
    int64_t strides[MR_RANK_MAX];
} operand;

typedef struct job {
    const mr_chain *chain;
    const mr_chain_data *data;
    size_t size; /* of an element */
    mr_shape wide;
    int64_t width, rows, piece; /* elements of a row, all rows, and those of a piece */
    operand inputs[INPUTS_MAX]; /* of steps with whole rows */
} job;

/* The rows that are computed at one time. */
typedef struct piece {
    const job *job;
    int64_t row, count;
    const char *results[STEPS_MAX];
} piece;

typedef struct row_buffers {
    alignas(64) char results[MR_STEP_BUFFERS_MAX][MR_ROW_BYTES_MAX + MR_STEP_BUFFER_GAP];
} row_buffers;

static operand describe_input(const job *job, mr_shape shape, const char *data)
{
    operand made = {.data = data, .advance = BY_STRIDES};
    const int last = job->wide.rank - 1;
    if (mr_shape_count(shape) == 1)
        made.advance = NOT;
    else if (mr_shape_equal(shape, job->wide))
        made.advance = BY_ROWS;
    else if (mr_shape_equal(shape, mr_narrow_shape(job->wide, MR_ROW_KEPT)))
        made.advance = BY_ELEMENTS;
    else
        mr_broadcast_strides(shape, job->wide, made.strides);
    made.is_scalar =
        made.advance == NOT || made.advance == BY_ELEMENTS || (made.advance == BY_STRIDES && made.strides[last] == 0);
    return made;
}

static const char *at_row(const job *job, const operand *operand, int64_t row)
{
    switch (operand->advance) {
    case BY_ROWS:
        return operand->data + (size_t)(row * job->width) * job->size;
    case BY_ELEMENTS:
        return operand->data + (size_t)row * job->size;
    case NOT:
        return operand->data;
    case BY_STRIDES:
        break;
    }
    int64_t offset = 0;
    for (int i = job->wide.rank - 2; i >= 0; i--) {
        offset += row % job->wide.dims[i] * operand->strides[i];
        row /= job->wide.dims[i];
    }
    return operand->data + (size_t)offset * job->size;
}

/* The operand of a step with whole rows; the rows of a piece are numbered from 0. */
static operand wide_operand(const piece *p, int32_t from)
{
    if (from < 0)
        return (operand){.data = p->results[-1 - from],
                         .advance = p->job->chain->steps[-1 - from].form == MR_ROW_WHOLE ? BY_ROWS : BY_ELEMENTS,
                         .is_scalar = p->job->chain->steps[-1 - from].form != MR_ROW_WHOLE};
    operand made = p->job->inputs[from];
    if (made.advance != BY_STRIDES) made.data = at_row(p->job, &made, p->row);
    return made;
}

static void run_wide(const piece *p, const mr_step *s, char *to)
{
    const job *job = p->job;
    const operand a = wide_operand(p, s->a), b = wide_operand(p, s->b);
    const size_t row_bytes = (size_t)job->width * job->size;
    if (s->loops.unary && a.advance == BY_ROWS) {
        s->loops.unary(to, a.data, p->count * job->width);
        return;
    }
    if ((a.advance == BY_ROWS || a.advance == NOT) && (b.advance == BY_ROWS || b.advance == NOT)) {
        s->loops.binary(to, a.data, b.data, p->count * job->width, mr_operands_of(a.is_scalar, b.is_scalar));
        return;
    }
    for (int64_t r = 0; r < p->count; r++, to += row_bytes) {
        const char *a_row = at_row(job, &a, a.advance == BY_STRIDES ? p->row + r : r);
        const char *b_row = at_row(job, &b, b.advance == BY_STRIDES ? p->row + r : r);
        if (s->loops.unary)
            s->loops.unary(to, a_row, job->width);
        else
            s->loops.binary(to, a_row, b_row, job->width, mr_operands_of(a.is_scalar, b.is_scalar));
    }
}

static void run_reduction(const piece *p, const mr_step *s, char *to)
{
    const job *job = p->job;
    const size_t row_bytes = (size_t)job->width * job->size;
    const char *from = wide_operand(p, s->a).data;
    assert(wide_operand(p, s->a).advance == BY_ROWS);
    for (int64_t r = 0; r < p->count; r++, to += job->size, from += row_bytes) s->loops.reduce(to, from, job->width);
}

/* The operand of a step with one element for each row. *is_scalar: it has one for all. */
static const char *narrow_operand(const piece *p, int32_t from, bool *is_scalar)
{
    const job *job = p->job;
    *is_scalar = from >= 0 && job->inputs[from].advance == NOT;
    if (from < 0) return p->results[-1 - from];
    return job->data->inputs[from] + (*is_scalar ? 0 : (size_t)p->row * job->size);
}

static void run_narrow(const piece *p, const mr_step *s, char *to)
{
    bool a_scalar, b_scalar;
    const char *a = narrow_operand(p, s->a, &a_scalar), *b = narrow_operand(p, s->b, &b_scalar);
    const bool are_both = a_scalar && b_scalar; /* if there is one row */
    assert(!are_both || s->loops.unary || p->job->rows == 1);
    if (s->loops.unary)
        s->loops.unary(to, a, p->count);
    else
        s->loops.binary(to, a, b, p->count, are_both ? MR_BOTH_ROWS : mr_operands_of(a_scalar, b_scalar));
}

static void repeat(const piece *p, const char *from, char *to)
{
    const int64_t width = p->job->width;
    for (int64_t r = 0; r < p->count; r++)
        for (int64_t k = 0; k < width; k++)
            if (p->job->chain->dtype == MR_FLOAT)
                ((float *)to)[r * width + k] = ((const float *)from)[r];
            else
                ((double *)to)[r * width + k] = ((const double *)from)[r];
}

/* Fetches the next rows while these are computed. */
static void fetch(const piece *p)
{
    constexpr size_t LINE_BYTES = 64;
    const job *job = p->job;
    const mr_chain *c = job->chain;
    const size_t row_bytes = (size_t)job->width * job->size, size_bytes = (size_t)p->count * row_bytes;
    const size_t next = (size_t)(p->row + p->count) * row_bytes;
    if (p->row + 2 * p->count > job->rows) return;
    for (int32_t i = 0; i < c->input_count; i++)
        for (size_t b = 0; b < size_bytes && job->inputs[i].advance == BY_ROWS; b += LINE_BYTES)
            __builtin_prefetch(job->inputs[i].data + next + b);
    for (int32_t i = 0; i < c->step_count; i++) {
        const int32_t output = c->steps[i].output;
        if (output < 0 || c->steps[i].form != MR_ROW_WHOLE || job->data->replaces_input[output]) continue;
        for (size_t b = 0; b < size_bytes; b += LINE_BYTES)
            __builtin_prefetch(job->data->outputs[output] + next + b, 1);
    }
}

static void run_piece(piece *p, row_buffers *buffers)
{
    const job *job = p->job;
    const mr_chain *c = job->chain;
    const size_t row_bytes = (size_t)job->width * job->size;
    assert(p->count > 0 && (size_t)p->count * row_bytes <= (size_t)MR_ROW_BYTES_MAX);
    fetch(p);
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        const bool is_wide = s->form == MR_ROW_WHOLE || s->form == MR_ROW_REPEATED;
        char *output = s->output < 0
                           ? nullptr
                           : job->data->outputs[s->output] + (size_t)p->row * (is_wide ? row_bytes : job->size);
        char *to = s->buffer >= 0 ? buffers->results[s->buffer] : output;
        if (s->loops.reduce)
            run_reduction(p, s, to);
        else if (s->form == MR_ROW_WHOLE)
            run_wide(p, s, to);
        else
            run_narrow(p, s, to);
        p->results[i] = to;
        if (output && s->form == MR_ROW_REPEATED) repeat(p, to, output);
    }
}

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    const job *job = context;
    row_buffers buffers; /* not initialized: a step writes its result before others read it */
    for (int64_t i = begin; i < end; i++) {
        piece p = {.job = job, .row = i * job->piece};
        p.count = MR_MIN(job->piece, job->rows - p.row);
        run_piece(&p, &buffers);
    }
}

void mr_rows_run(const mr_chain *chain, const mr_shape *inputs, mr_shape wide, const mr_chain_data *data, mr_pool *pool)
{
    job job = {.chain = chain,
               .data = data,
               .size = mr_dtype_size(chain->dtype),
               .wide = wide,
               .width = wide.dims[wide.rank - 1],
               .rows = 1};
    for (int i = 0; i < wide.rank - 1; i++) job.rows *= wide.dims[i];
    if (job.rows == 0 || job.width == 0) return;
    for (int32_t i = 0; i < chain->input_count; i++) job.inputs[i] = describe_input(&job, inputs[i], data->inputs[i]);
    job.piece = MR_MAX(1, MR_ROW_BYTES_MAX / (int64_t)job.size / job.width);
    const int64_t grain = MR_MAX(1, MR_GRAIN / (job.piece * job.width) / chain->step_count);
    mr_pool_for(pool, (job.rows + job.piece - 1) / job.piece, grain, run_pieces, &job);
}
