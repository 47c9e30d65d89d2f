/* Several elementwise operators in one call (see base/elementwise.h). All results have one shape, to which the inputs
 * are broadcast. They are computed piece by piece with the operators' own loops, so the bits are those of one call for
 * each; what is no output stays in a small buffer.
 *
 * With reductions of rows between the operators, elementwise_rows.c computes them.
 *
 * Dims that are contiguous in all inputs are merged. A piece is a part of a row of the last merged dim or, if rows are
 * short, several rows: inputs that are not contiguous are then copied into a buffer, as often as they repeat. */
#include "kernels/elementwise_chain.h"
#include "kernels/elementwise_steps.h"

#include <assert.h>
#include <string.h>

/* Smaller ones cost more calls of loops; the buffers of larger ones, which are on the stack, leave the L1 cache. */
constexpr size_t PIECE_BYTES = 4096, BUFFER_BYTES = PIECE_BYTES + MR_STEP_BUFFER_GAP;
constexpr int32_t STEPS_MAX = MR_ELEMENTWISE_STEPS_MAX, INPUTS_MAX = MR_ELEMENTWISE_INPUTS_MAX;

/* ---- Preparation ---- */

static mr_status read_list(const mr_kernel_node *node, const char *name, mr_attr_kind kind, int32_t most,
                           const mr_attr **list, mr_error *error)
{
    *list = mr_attrs_find(node->attrs, name);
    if (!*list || (*list)->kind != kind || (*list)->count < 1 || (*list)->count > most)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "attr %s is not a list of 1 to %d elements", name,
                              (int)most);
    return MR_OK;
}

static mr_status read_operand(const mr_kernel_node *node, const mr_attr *operands, int32_t index, int32_t *operand,
                              mr_error *error)
{
    int64_t value = operands->values[index].integer;
    if (value >= node->input_count || value < -(index / 2))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "operand %d does not exist", (int)index);
    *operand = (int32_t)value;
    return MR_OK;
}

static void copy_floats(void *target, const void *source, int64_t count)
{
    memmove(target, source, (size_t)count * sizeof(float));
}

static void copy_doubles(void *target, const void *source, int64_t count)
{
    memmove(target, source, (size_t)count * sizeof(double));
}

/* op  the name of the step's operator */
static mr_status read_step(const mr_kernel_node *node, const char *op, const mr_attr *operands, int32_t index,
                           mr_chain *c, mr_error *error)
{
    mr_step *s = &c->steps[index];
    const mr_kernel *kernel = mr_kernel_find(op, MR_DEVICE_CPU, node->attrs);
    s->moves = kernel && !kernel->elementwise && s->form != MR_ROW_WHOLE;
    if (s->moves) s->loops.unary = c->dtype == MR_FLOAT ? copy_floats : copy_doubles;
    if (!s->moves && (!kernel || !kernel->elementwise || !kernel->elementwise(c->dtype, &s->loops)))
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "step %d has no loop", (int)index);
    if (s->loops.reduce && s->form != MR_ROW_KEPT && s->form != MR_ROW_DROPPED)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "step %d does not reduce rows", (int)index);
    c->has_rows |= s->loops.reduce != nullptr;
    s->op = kernel->op;
    s->output = s->buffer = -1;
    MR_TRY(read_operand(node, operands, 2 * index, &s->a, error));
    if (s->moves && s->a >= 0)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "step %d does not move a result", (int)index);
    return read_operand(node, operands, 2 * index + 1, &s->b, error);
}

/* Whether a step may write its result over that of another, which no later step reads: if it is not read by this one,
 * or as many elements at a time. */
static bool may_replace(const mr_chain *c, int32_t step, int32_t other, int32_t last)
{
    return last < step ||
           (last == step && (c->steps[step].form == MR_ROW_WHOLE) == (c->steps[other].form == MR_ROW_WHOLE));
}

/* Gives buffers to the results that are no outputs, and to those that are repeated in them. A result may replace an
 * operand that is read for the last time. */
static void assign_buffers(mr_chain *c)
{
    int32_t last[STEPS_MAX] = {0};   /* by step: the last one that reads its result */
    int32_t holder[STEPS_MAX] = {0}; /* by buffer: the step whose result it has */
    for (int32_t i = 0; i < c->step_count; i++) {
        last[i] = i;
        for (int k = 0; k < 2; k++) {
            int32_t operand = k == 0 ? c->steps[i].a : c->steps[i].b;
            if (operand < 0)
                last[-1 - operand] = i;
            else
                c->last_step[operand] = i;
        }
    }
    for (int32_t i = 0; i < c->step_count; i++) {
        if (c->steps[i].output >= 0 && c->steps[i].form != MR_ROW_REPEATED) continue;
        int32_t b = 0;
        while (b < c->buffer_count && !may_replace(c, i, holder[b], last[holder[b]])) b++;
        if (b == c->buffer_count) c->buffer_count++;
        holder[b] = i;
        c->steps[i].buffer = b;
    }
    assert(c->buffer_count <= c->step_count);
}

/* The forms of the steps, if there are any. */
static mr_status read_forms(const mr_kernel_node *node, mr_chain *c, mr_error *error)
{
    const mr_attr *forms = mr_attrs_find(node->attrs, "forms");
    if (!forms) return MR_OK;
    MR_TRY(read_list(node, "forms", MR_ATTR_INT, STEPS_MAX, &forms, error));
    for (int32_t i = 0; i < c->step_count; i++) {
        if (i >= forms->count || forms->values[i].integer < MR_ROW_WHOLE || forms->values[i].integer > MR_ROW_REPEATED)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "step %d has no form", (int)i);
        c->steps[i].form = (mr_row_form)forms->values[i].integer;
    }
    return MR_OK;
}

static mr_status prepare_chain(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    mr_chain *c = prepared;
    const mr_attr *nodes, *ops, *operands, *outputs;
    MR_TRY(mr_attr_get_type(node->attrs, "T", &c->dtype, error));
    MR_TRY(read_list(node, "nodes", MR_ATTR_STRING, STEPS_MAX, &nodes, error));
    MR_TRY(read_list(node, "operands", MR_ATTR_INT, 2 * STEPS_MAX, &operands, error));
    MR_TRY(read_list(node, "ops", MR_ATTR_STRING, STEPS_MAX, &ops, error));
    MR_TRY(read_list(node, "outputs", MR_ATTR_INT, MR_ELEMENTWISE_OUTPUTS_MAX, &outputs, error));
    c->step_count = ops->count;
    c->input_count = node->input_count;
    c->output_count = outputs->count;
    if (nodes->count != c->step_count || operands->count != 2 * c->step_count || node->output_count != outputs->count ||
        node->input_count < 1 || node->input_count > INPUTS_MAX)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "the lists of its steps do not fit each other");
    MR_TRY(read_forms(node, c, error));
    for (int32_t i = 0; i < c->step_count; i++) {
        c->steps[i].node = nodes->values[i].string.data;
        MR_TRY(read_step(node, ops->values[i].string.data, operands, i, c, error));
    }
    for (int32_t i = 0; i < outputs->count; i++) {
        int64_t index = outputs->values[i].integer;
        if (index < 0 || index >= c->step_count || c->steps[index].output >= 0)
            return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "output %d is not that of a step", (int)i);
        c->steps[index].output = i;
    }
    assign_buffers(c);
    return MR_OK;
}

/* ---- Pieces ---- */

typedef enum spread {
    SPREAD_NONE,   /* one pointer, to a row or to one element */
    SPREAD_ROW,    /* one short row that repeats */
    SPREAD_PIECES, /* each piece is copied */
} spread;

typedef struct operand {
    spread spread;
    bool is_scalar; /* one element for a piece */
    int64_t strides[MR_RANK_MAX];
} operand;

typedef struct job {
    const mr_chain *chain;
    size_t size; /* of an element */
    int rank;    /* of the merged dims */
    int64_t dims[MR_RANK_MAX];
    int64_t rows, row_pieces; /* pieces of a long row; 0: pieces of several rows */
    int64_t piece;            /* elements, or rows */
    bool is_single;           /* one piece is all */
    operand inputs[INPUTS_MAX];
    mr_chain_data data;
} job;

typedef struct buffers {
    alignas(64) char results[MR_STEP_BUFFERS_MAX][BUFFER_BYTES];
    char copies[INPUTS_MAX][BUFFER_BYTES];
} buffers;

static int64_t row_offset(const job *job, const operand *operand, int64_t row)
{
    int64_t offset = 0;
    for (int i = job->rank - 2; i >= 0; i--) {
        offset += row % job->dims[i] * operand->strides[i];
        row /= job->dims[i];
    }
    return offset;
}

/* Copies rows of an operand that is not contiguous. */
static void copy_rows(const job *job, int32_t input, int64_t row, int64_t count, char *to)
{
    const operand *operand = &job->inputs[input];
    const int64_t inner = job->dims[job->rank - 1];
    const size_t row_bytes = (size_t)inner * job->size;
    for (int64_t i = 0; i < count; i++, to += row_bytes) {
        const char *from = job->data.inputs[input] + (size_t)row_offset(job, operand, row + i) * job->size;
        if (operand->strides[job->rank - 1] != 0)
            memcpy(to, from, row_bytes);
        else if (job->chain->dtype == MR_FLOAT)
            for (int64_t k = 0; k < inner; k++) ((float *)to)[k] = *(const float *)from;
        else
            for (int64_t k = 0; k < inner; k++) ((double *)to)[k] = *(const double *)from;
    }
}

/* Fetches the lines of the next piece while this one is computed: a loop over a short piece ends before the processor
 * has recognized its streams. */
static void fetch(const job *job, const char *const from[INPUTS_MAX], int64_t at, int64_t count)
{
    constexpr size_t LINE_BYTES = 64;
    const size_t size_bytes = (size_t)count * job->size;
    for (int32_t i = 0; i < job->chain->input_count; i++)
        for (size_t b = 0; b < size_bytes && job->inputs[i].spread == SPREAD_NONE && !job->inputs[i].is_scalar;
             b += LINE_BYTES)
            __builtin_prefetch(from[i] + size_bytes + b);
    for (int32_t i = 0; i < job->chain->output_count; i++)
        for (size_t b = 0; b < size_bytes && !job->data.replaces_input[i]; b += LINE_BYTES)
            __builtin_prefetch(job->data.outputs[i] + (size_t)at * job->size + size_bytes + b, 1);
}

/* Computes all steps of a piece, whose outputs begin at element `at`.
 * from  by input */
static void run_steps(const job *job, const char *const from[INPUTS_MAX], int64_t at, int64_t count, buffers *buffers)
{
    const mr_chain *c = job->chain;
    const char *results[STEPS_MAX];
    if (!job->is_single) fetch(job, from, at, count);
    assert(count > 0 && (size_t)count * job->size <= PIECE_BYTES);
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        const char *a = s->a >= 0 ? from[s->a] : results[-1 - s->a], *b = s->b >= 0 ? from[s->b] : results[-1 - s->b];
        const bool a_scalar = s->a >= 0 && job->inputs[s->a].is_scalar,
                   b_scalar = s->b >= 0 && job->inputs[s->b].is_scalar;
        char *to = s->output >= 0 ? job->data.outputs[s->output] + (size_t)at * job->size : buffers->results[s->buffer];
        results[i] = to;
        assert(!a_scalar || s->loops.binary);
        if (s->loops.unary)
            s->loops.unary(to, a, count);
        else
            s->loops.binary(to, a, b, count, mr_operands_of(a_scalar, b_scalar));
    }
}

static void run_long_rows(const job *job, int64_t begin, int64_t end, buffers *buffers)
{
    const int last = job->rank - 1;
    const int64_t inner = job->dims[last];
    const char *from[INPUTS_MAX] = {0};
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit / job->row_pieces, at = unit % job->row_pieces * job->piece;
        for (int32_t i = 0; i < job->chain->input_count; i++) {
            const operand *input = &job->inputs[i];
            from[i] =
                job->data.inputs[i] + (size_t)(row_offset(job, input, row) + at * input->strides[last]) * job->size;
        }
        const int64_t count = MR_MIN(job->piece, inner - at);
        run_steps(job, from, row * inner + at, count, buffers);
    }
}

static void run_short_rows(const job *job, int64_t begin, int64_t end, buffers *buffers)
{
    const int64_t inner = job->dims[job->rank - 1];
    const char *from[INPUTS_MAX] = {0};
    for (int32_t i = 0; i < job->chain->input_count; i++) {
        const operand *input = &job->inputs[i];
        from[i] = input->spread == SPREAD_NONE ? job->data.inputs[i] : buffers->copies[i];
        if (input->spread == SPREAD_ROW) copy_rows(job, i, 0, MR_MIN(job->piece, job->rows), buffers->copies[i]);
    }
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t row = unit * job->piece, count = MR_MIN(job->piece, job->rows - row);
        for (int32_t i = 0; i < job->chain->input_count; i++) {
            const operand *input = &job->inputs[i];
            if (input->spread == SPREAD_PIECES) copy_rows(job, i, row, count, buffers->copies[i]);
            if (input->spread == SPREAD_NONE && !input->is_scalar)
                from[i] = job->data.inputs[i] + (size_t)(row * inner) * job->size;
        }
        run_steps(job, from, row * inner, count * inner, buffers);
    }
}

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    const job *job = context;
    buffers buffers; /* not initialized: a step writes its result before others read it */
    if (job->row_pieces > 0)
        run_long_rows(job, begin, end, &buffers);
    else
        run_short_rows(job, begin, end, &buffers);
}

/* ---- The call ---- */

/* Merges the dims that follow each other in all inputs. */
static void merge_dims(job *job, const mr_shape *shapes, mr_shape wide)
{
    const int32_t inputs = job->chain->input_count;
    int64_t strides[INPUTS_MAX][MR_RANK_MAX];
    for (int32_t i = 0; i < inputs; i++) mr_broadcast_strides(shapes[i], wide, strides[i]);
    for (int d = 0; d < wide.rank; d++) {
        if (wide.dims[d] == 1) continue;
        bool merges = job->rank > 0;
        for (int32_t i = 0; i < inputs; i++)
            merges = merges && job->inputs[i].strides[job->rank - 1] == strides[i][d] * wide.dims[d];
        if (!merges) job->dims[job->rank++] = 1;
        job->dims[job->rank - 1] *= wide.dims[d];
        for (int32_t i = 0; i < inputs; i++) job->inputs[i].strides[job->rank - 1] = strides[i][d];
    }
    if (job->rank > 0) return;
    job->rank = 1; /* one element */
    job->dims[0] = 1;
    for (int32_t i = 0; i < inputs; i++) job->inputs[i].strides[0] = 1;
}

static void find_spread(const job *job, operand *input)
{
    bool is_contiguous = true, is_constant = true;
    int64_t stride = 1;
    for (int d = job->rank - 1; d >= 0; d--) {
        is_contiguous &= input->strides[d] == stride;
        if (d < job->rank - 1) is_constant &= input->strides[d] == 0;
        stride *= job->dims[d];
    }
    input->is_scalar = is_constant && input->strides[job->rank - 1] == 0;
    if (job->row_pieces > 0)
        input->is_scalar = input->strides[job->rank - 1] == 0;
    else if (!is_contiguous && !input->is_scalar)
        input->spread = is_constant ? SPREAD_ROW : SPREAD_PIECES;
}

static void run_all_pieces(mr_pool *pool, job *job, int64_t pieces, int64_t elements)
{
    const int64_t grain = MR_MAX(1, MR_GRAIN / elements / job->chain->step_count);
    job->is_single = pieces == 1;
    if (job->is_single)
        run_pieces(job, 0, 1);
    else
        mr_pool_for(pool, pieces, grain, run_pieces, job);
}

/* Computes the outputs, which have been allocated. */
static void run_job(mr_pool *pool, job *job, const mr_shape *shapes, mr_shape wide)
{
    const int64_t count = mr_shape_count(wide), most = (int64_t)(PIECE_BYTES / job->size);
    if (count == 0) return;
    merge_dims(job, shapes, wide);
    const int64_t inner = job->dims[job->rank - 1];
    const bool is_long = job->rank == 1 || inner > most / 2;
    job->rows = count / inner;
    job->row_pieces = is_long ? (inner + most - 1) / most : 0;
    job->piece = is_long ? most : most / inner;
    for (int32_t i = 0; i < job->chain->input_count; i++) find_spread(job, &job->inputs[i]);
    if (is_long)
        run_all_pieces(pool, job, job->rows * job->row_pieces, MR_MIN(most, inner));
    else
        run_all_pieces(pool, job, (job->rows + job->piece - 1) / job->piece, inner * job->piece);
}

/* The same for inputs of one shape and single elements. */
static void run_flat_job(mr_pool *pool, job *job, int64_t count)
{
    const int64_t most = (int64_t)(PIECE_BYTES / job->size);
    if (count == 0) return;
    job->rank = 1;
    job->dims[0] = count;
    job->rows = 1;
    job->row_pieces = (count + most - 1) / most;
    job->piece = most;
    run_all_pieces(pool, job, job->row_pieces, most);
}

/* The node of a step, for messages: the chain itself is not in the user's graph. */
static mr_kernel_node node_of(const mr_kernel_call *call, const mr_step *s)
{
    mr_kernel_node node = *call->node;
    node.name = s->node;
    node.op = s->op;
    return node;
}

/* The number of the operand b of step i among its node's inputs: a sum of several is a step for each but the first. */
static int operand_number(const mr_chain *c, int32_t i)
{
    int number = 1;
    for (int32_t k = i; k > 0 && strcmp(c->steps[k - 1].node, c->steps[i].node) == 0; k--) number++;
    return number;
}

/* The shape of a reduction of the last dimension, or of what a step moves.
 * width    of the rows in which a result is repeated
 * operand  the shape of the step's operand */
static mr_status find_row_shape(const mr_kernel_call *call, const mr_chain *c, int32_t i, int64_t width,
                                mr_shape operand, mr_shape *result, mr_error *error)
{
    const mr_step *s = &c->steps[i];
    const mr_kernel_node node = node_of(call, s);
    const bool is_dropped = s->moves && c->steps[-1 - s->a].form == MR_ROW_DROPPED;
    *result = operand;
    if (is_dropped && s->form != MR_ROW_DROPPED && operand.rank < MR_RANK_MAX)
        result->dims[result->rank++] = 1;
    else if (result->rank < 1 && !is_dropped)
        return mr_kernel_fail(&node, error, MR_INVALID_ARGUMENT, "a scalar has no last dimension");
    if (s->form == MR_ROW_DROPPED && !is_dropped) result->rank--;
    if (s->form == MR_ROW_KEPT) result->dims[result->rank - 1] = 1;
    if (s->form == MR_ROW_REPEATED) result->dims[result->rank - 1] = width;
    return MR_OK;
}

/* The shape of each step. *is_one_shape: that of all, also where operands need only have as many elements. */
static mr_status find_shapes(const mr_kernel_call *call, const mr_chain *c, const mr_shape *inputs, mr_shape *results,
                             bool *is_one_shape, mr_error *error)
{
    int64_t width = 1; /* of the rows that are reduced */
    *is_one_shape = true;
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        mr_tensor operands[2] = {{.dtype = c->dtype}, {.dtype = c->dtype}};
        operands[0].shape = s->a >= 0 ? inputs[s->a] : results[-1 - s->a];
        operands[1].shape = s->b >= 0 ? inputs[s->b] : results[-1 - s->b];
        results[i] = operands[0].shape;
        if (s->loops.reduce || s->moves) {
            MR_TRY(find_row_shape(call, c, i, width, operands[0].shape, &results[i], error));
            if (s->loops.reduce) width = operands[0].shape.dims[operands[0].shape.rank - 1];
            continue;
        }
        if (s->loops.unary) continue;
        if (s->loops.rule == MR_OPERANDS_SAME_SHAPE && mr_shape_equal(operands[0].shape, operands[1].shape)) continue;
        const mr_kernel_node node = node_of(call, s);
        if (s->loops.rule == MR_OPERANDS_SAME_SHAPE) {
            mr_tensor numbered[STEPS_MAX + 1] = {operands[0]};
            const int number = operand_number(c, i);
            numbered[number] = operands[1];
            return mr_kernel_same_shape(&(mr_kernel_call){.node = &node, .inputs = numbered}, 0, number, error);
        }
        const mr_kernel_call one = {.node = &node, .device = call->device, .inputs = operands};
        mr_shape b;
        MR_TRY(mr_binary_shape(&one, s->loops.rule, &b, &results[i], error));
        if (s->loops.rule == MR_OPERANDS_SAME_COUNT && !mr_shape_equal(operands[1].shape, b)) *is_one_shape = false;
    }
    for (int32_t i = 1; i < c->step_count && !c->has_rows; i++) *is_one_shape &= mr_shape_equal(results[i], results[0]);
    return MR_OK;
}

/* One step with all rows at once: a reduction, or what only has another shape afterwards. */
static void run_row_step(const mr_chain *c, const mr_step *s, const char *from, mr_shape shape, char *to,
                         int64_t target_count)
{
    const size_t size = mr_dtype_size(c->dtype);
    const int64_t count = mr_shape_count(shape), width = s->loops.reduce ? shape.dims[shape.rank - 1] : 1;
    if (s->loops.reduce) {
        for (int64_t r = 0; r < target_count; r++, from += (size_t)width * size)
            s->loops.reduce(to + (size_t)r * size, from, width);
        return;
    }
    for (int64_t i = 0; i < target_count; i++) /* each element as often as it is repeated */
        memcpy(to + (size_t)i * size, from + (size_t)(i * count / target_count) * size, size);
}

/* Computes one step after the other, each into a tensor of its own. On failure the others are empty. */
static mr_status run_each(const mr_kernel_call *call, const mr_chain *c, const mr_shape *inputs, const mr_shape *shapes,
                          mr_tensor *results, mr_error *error)
{
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        const mr_status status = mr_tensor_init_on(&results[i], call->device, c->dtype, shapes[i], error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "%s (%s)", s->node, s->op);
        if (s->loops.reduce || s->moves) {
            run_row_step(c, s, s->a >= 0 ? call->inputs[s->a].data : results[-1 - s->a].data,
                         s->a >= 0 ? inputs[s->a] : shapes[-1 - s->a], results[i].data, mr_shape_count(shapes[i]));
            continue;
        }
        mr_chain one = {.dtype = c->dtype, .input_count = s->loops.unary ? 1 : 2, .step_count = 1, .output_count = 1};
        one.steps[0] = (mr_step){.loops = s->loops, .b = s->loops.unary ? 0 : 1};
        job job = {.chain = &one, .size = mr_dtype_size(c->dtype)};
        mr_shape operands[2];
        for (int k = 0; k < one.input_count; k++) {
            const int32_t from = k == 0 ? s->a : s->b;
            job.data.inputs[k] = from >= 0 ? call->inputs[from].data : results[-1 - from].data;
            operands[k] = from >= 0 ? inputs[from] : results[-1 - from].shape;
        }
        if (s->loops.binary && s->loops.rule == MR_OPERANDS_SAME_COUNT) operands[1] = operands[0];
        job.data.outputs[0] = results[i].data;
        run_job(call->device->pool, &job, operands, shapes[i]);
    }
    return MR_OK;
}

/* Results have different shapes, or an operand that is not broadcast has another one. */
static mr_status run_apart(mr_kernel_call *call, const mr_chain *c, const mr_shape *inputs, const mr_shape *shapes,
                           mr_error *error)
{
    mr_tensor results[STEPS_MAX] = {0};
    mr_status status = run_each(call, c, inputs, shapes, results, error);
    for (int32_t i = 0; i < c->step_count; i++) {
        const int32_t output = c->steps[i].output;
        if (status == MR_OK && output >= 0)
            call->outputs[output] = results[i];
        else
            mr_tensor_deinit(&results[i]);
    }
    return status;
}

static bool is_same_shape(const mr_shape *a, const mr_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static bool is_one_element(const mr_shape *shape)
{
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1) return false;
    return true;
}

/* Whether the inputs have one shape, *wide, or are single elements that the steps broadcast to it: the usual case,
 * which needs no search for shapes. */
static bool is_flat(const mr_kernel_call *call, const mr_chain *c, const mr_shape **wide, operand *inputs)
{
    *wide = nullptr;
    for (int32_t i = 0; i < c->input_count; i++) {
        const mr_shape *shape = &call->inputs[i].shape;
        inputs[i].is_scalar = is_one_element(shape);
        if (inputs[i].is_scalar) continue;
        inputs[i].strides[0] = 1;
        if (!*wide) *wide = shape;
        if (!is_same_shape(*wide, shape)) return false;
    }
    for (int32_t i = 0; i < c->input_count; i++)
        if (!*wide || call->inputs[i].shape.rank > (*wide)->rank) return false;
    for (int32_t i = 0; i < c->step_count; i++) {
        const mr_step *s = &c->steps[i];
        const bool a_wide = s->a < 0 || !inputs[s->a].is_scalar, b_wide = s->b < 0 || !inputs[s->b].is_scalar;
        const bool broadcasts = s->loops.binary && s->loops.rule == MR_OPERANDS_BROADCAST;
        if (s->loops.rule == MR_OPERANDS_BIAS || !(broadcasts ? a_wide || b_wide : a_wide && b_wide)) return false;
    }
    return true;
}

/* Takes the place of an input that no later step reads, if there is one. Not what has one element for each row: an
 * input of its shape may be a row that all others need. */
static mr_status create_output(mr_kernel_call *call, const mr_chain *c, int32_t at, const mr_shape *shape,
                               mr_error *error)
{
    const mr_kernel_node *chain_node = call->node, node = node_of(call, &c->steps[at]);
    const bool is_wide = c->steps[at].form == MR_ROW_WHOLE || c->steps[at].form == MR_ROW_REPEATED;
    int32_t reused = is_wide ? 0 : c->input_count;
    while (reused < c->input_count &&
           !(call->may_reuse && call->may_reuse[reused] && call->inputs[reused].buffer && c->last_step[reused] <= at &&
             is_same_shape(&call->inputs[reused].shape, shape)))
        reused++;
    call->node = &node;
    const mr_status status = reused < c->input_count
                                 ? mr_kernel_forward(call, c->steps[at].output, reused, *shape, error)
                                 : mr_kernel_output(call, c->steps[at].output, *shape, error);
    call->node = chain_node;
    return status;
}

/* shapes  by step, or one of all */
static mr_status create_outputs(mr_kernel_call *call, const mr_chain *c, const mr_shape *shapes, bool is_one_shape,
                                mr_chain_data *data, mr_error *error)
{
    /* Pointers are read before forwarding, which may move a reference out of inputs[]. */
    for (int32_t i = 0; i < c->input_count; i++) data->inputs[i] = call->inputs[i].data;
    for (int32_t i = 0; i < c->step_count; i++) {
        const int32_t output = c->steps[i].output;
        if (output < 0) continue;
        MR_TRY(create_output(call, c, i, is_one_shape ? shapes : &shapes[i], error));
        data->outputs[output] = call->outputs[output].data;
        for (int32_t k = 0; k < c->input_count; k++)
            data->replaces_input[output] |= data->outputs[output] == data->inputs[k];
    }
    return MR_OK;
}

/* A chain with reductions, or with many results at a time. */
static mr_status run_rows(mr_kernel_call *call, const mr_chain *c, mr_error *error)
{
    mr_shape inputs[INPUTS_MAX], shapes[STEPS_MAX], wide;
    mr_chain_data data = {0};
    bool is_usual; /* the rules of all operators are */
    for (int32_t i = 0; i < c->input_count; i++) inputs[i] = call->inputs[i].shape;
    MR_TRY(find_shapes(call, c, inputs, shapes, &is_usual, error));
    if (!is_usual || c->buffer_count > MR_STEP_BUFFERS_MAX || !mr_rows_fit(c, inputs, shapes, &wide))
        return run_apart(call, c, inputs, shapes, error);
    MR_TRY(create_outputs(call, c, shapes, false, &data, error));
    mr_rows_run(c, inputs, wide, &data, call->device->pool);
    return MR_OK;
}

static mr_status run_chain(mr_kernel_call *call, mr_error *error)
{
    const mr_chain *c = call->prepared;
    job job = {.chain = c, .size = mr_dtype_size(c->dtype)};
    const mr_shape *flat = nullptr;
    for (int32_t i = 0; i < c->input_count; i++) assert(call->inputs[i].dtype == c->dtype);
    if (c->has_rows || c->buffer_count > MR_STEP_BUFFERS_MAX) return run_rows(call, c, error);
    if (is_flat(call, c, &flat, job.inputs)) {
        assert(flat);
        const mr_shape wide = *flat;
        MR_TRY(create_outputs(call, c, &wide, true, &job.data, error));
        run_flat_job(call->device->pool, &job, mr_shape_count(wide));
        return MR_OK;
    }
    mr_shape inputs[INPUTS_MAX], shapes[STEPS_MAX];
    bool is_one_shape = true;
    for (int32_t i = 0; i < c->input_count; i++) inputs[i] = call->inputs[i].shape;
    MR_TRY(find_shapes(call, c, inputs, shapes, &is_one_shape, error));
    if (!is_one_shape) return run_apart(call, c, inputs, shapes, error);
    MR_TRY(create_outputs(call, c, shapes, true, &job.data, error));
    run_job(call->device->pool, &job, inputs, shapes[0]);
    return MR_OK;
}

mr_status mr_elementwise_visit(const mr_kernel_call *call, mr_elementwise_see see, void *context, mr_error *error)
{
    const mr_chain *c = call->prepared;
    mr_shape inputs[INPUTS_MAX], shapes[STEPS_MAX];
    mr_tensor results[STEPS_MAX] = {0};
    bool is_one_shape = true;
    for (int32_t i = 0; i < c->input_count; i++) inputs[i] = call->inputs[i].shape;
    MR_TRY(find_shapes(call, c, inputs, shapes, &is_one_shape, error));
    mr_status status = run_each(call, c, inputs, shapes, results, error);
    for (int32_t i = 0; i < c->step_count; i++) {
        /* Of a sum of several operands only the last step is the node's result. */
        const char *node = c->steps[i].node;
        const bool is_last = i + 1 == c->step_count || strcmp(node, c->steps[i + 1].node) != 0;
        if (status == MR_OK && is_last) status = see(context, node, &results[i], error);
        mr_tensor_deinit(&results[i]);
    }
    return status;
}

static const mr_kernel kernels[] = {
    {.op = MR_ELEMENTWISE_OP,
     .types = "T: float, double",
     .run = run_chain,
     .prepared_size_bytes = sizeof(mr_chain),
     .prepare = prepare_chain},
};
MR_KERNEL_FAMILY(elementwise_chain);
