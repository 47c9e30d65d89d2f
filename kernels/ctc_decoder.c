/* CTCGreedyDecoder and CTCBeamSearchDecoder: label sequences from the outputs of a network trained with CTC.
 *
 * The beam search keeps the beam_width most probable label sequences after each step. A sequence is a path in a tree;
 * its probability is split into that of alignments that end with a blank and of those that end with its last label. */
#include "kernels/common.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

constexpr double LOG_ZERO = -__builtin_inf();

typedef struct decoder_attrs {
    bool merges;
    int64_t blank, beam_width, top_paths;
} decoder_attrs;

static mr_status prepare(const mr_kernel_node *node, void *prepared, mr_error *error)
{
    decoder_attrs *attrs = prepared;
    *attrs = (decoder_attrs){.merges = mr_attr_bool_or(node->attrs, "merge_repeated", true),
                             .blank = mr_attr_int_or(node->attrs, "blank_index", -1),
                             .beam_width = mr_attr_int_or(node->attrs, "beam_width", 1),
                             .top_paths = mr_attr_int_or(node->attrs, "top_paths", 1)};
    if (attrs->top_paths < 1 || attrs->beam_width < 1)
        return mr_kernel_fail(node, error, MR_INVALID_ARGUMENT, "beam_width and top_paths must be positive");
    return MR_OK;
}

static mr_status check_inputs(const mr_kernel_call *call, mr_error *error)
{
    mr_shape inputs = call->inputs[0].shape, lengths = call->inputs[1].shape;
    const char *reason = inputs.rank != 3                         ? "inputs is not a 3-Tensor"
                         : mr_tensor_count(&call->inputs[0]) == 0 ? "inputs must not be empty"
                         : lengths.rank != 1                      ? "sequence_length is not a vector"
                         : inputs.dims[2] >= INT32_MAX            ? "num_classes cannot exceed max int"
                                                                  : nullptr;
    if (reason != nullptr) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s", reason);
    if (lengths.dims[0] != inputs.dims[1])
        return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION,
                              "len(sequence_length) != batch_size.  len(sequence_length):  %" PRId64
                              " batch_size: %" PRId64,
                              lengths.dims[0], inputs.dims[1]);
    for (int64_t b = 0; b < lengths.dims[0]; b++)
        if (((const int32_t *)call->inputs[1].data)[b] > inputs.dims[0])
            return mr_kernel_fail(call->node, error, MR_FAILED_PRECONDITION, "sequence_length(%" PRId64 ") <= %" PRId64,
                                  b, inputs.dims[0]);
    return MR_OK;
}

/* Decoded labels of one path: those of row b are the next counts[b] elements of labels. */
typedef struct decoded {
    int64_t *counts;
    int32_t *labels;
    int64_t size, capacity;
} decoded;

static bool push_label(decoded *d, int32_t label)
{
    if (d->size == d->capacity) {
        int64_t capacity = MR_MAX(64, 2 * d->capacity);
        int32_t *labels = realloc(d->labels, (size_t)capacity * sizeof *labels);
        if (labels == nullptr) return false;
        d->labels = labels;
        d->capacity = capacity;
    }
    d->labels[d->size++] = label;
    return true;
}

/* Stores a path's labels as a sparse matrix in outputs path, paths + path and 2 · paths + path. */
static mr_status put_path(mr_kernel_call *call, const decoded *d, int64_t path, int64_t paths, int64_t batch,
                          mr_error *error)
{
    int first = (int)path, second = (int)(paths + path), third = (int)(2 * paths + path);
    MR_TRY(mr_kernel_output(call, first, MR_SHAPE(d->size, 2), error));
    MR_TRY(mr_kernel_output(call, second, MR_SHAPE(d->size), error));
    MR_TRY(mr_kernel_output(call, third, MR_SHAPE(2), error));
    int64_t *indices = call->outputs[first].data, *values = call->outputs[second].data, at = 0, longest = 0;
    for (int64_t b = 0; b < batch; b++) {
        longest = MR_MAX(longest, d->counts[b]);
        for (int64_t t = 0; t < d->counts[b]; t++, at++) {
            indices[2 * at] = b;
            indices[2 * at + 1] = t;
            values[at] = d->labels[at];
        }
    }
    int64_t *shape = call->outputs[third].data;
    shape[0] = batch;
    shape[1] = longest;
    return MR_OK;
}

static double input_at(const mr_tensor *inputs, int64_t t, int64_t b, int64_t c)
{
    int64_t at = (t * inputs->shape.dims[1] + b) * inputs->shape.dims[2] + c;
    return inputs->dtype == MR_FLOAT ? (double)((const float *)inputs->data)[at] : ((const double *)inputs->data)[at];
}

static void put_score(mr_kernel_call *call, int64_t at, double score)
{
    mr_tensor *scores = &call->outputs[call->node->output_count - 1];
    if (scores->dtype == MR_FLOAT)
        ((float *)scores->data)[at] = (float)score;
    else
        ((double *)scores->data)[at] = score;
}

static mr_status greedy_rows(mr_kernel_call *call, int64_t blank, decoded *d, mr_error *error)
{
    const decoder_attrs *attrs = call->prepared;
    const mr_tensor *inputs = &call->inputs[0];
    const int32_t *lengths = call->inputs[1].data;
    for (int64_t b = 0; b < inputs->shape.dims[1]; b++) {
        int64_t previous = -1, begin = d->size;
        double score = 0;
        for (int64_t t = 0; t < lengths[b]; t++) {
            int64_t chosen = 0;
            for (int64_t c = 1; c < inputs->shape.dims[2]; c++)
                if (input_at(inputs, t, b, c) > input_at(inputs, t, b, chosen)) chosen = c;
            score -= input_at(inputs, t, b, chosen);
            if (chosen != blank && !(attrs->merges && chosen == previous) && !push_label(d, (int32_t)chosen))
                return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
            previous = chosen;
        }
        d->counts[b] = d->size - begin;
        put_score(call, b, score);
    }
    return MR_OK;
}

static mr_status greedy(mr_kernel_call *call, mr_error *error)
{
    const decoder_attrs *attrs = call->prepared;
    MR_TRY(check_inputs(call, error));
    int64_t batch = call->inputs[0].shape.dims[1], classes = call->inputs[0].shape.dims[2];
    int64_t blank = attrs->blank < 0 ? classes + attrs->blank : attrs->blank;
    if (blank < 0 || blank >= classes)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "blank_index expected to be between %" PRId64 " and %" PRId64 " but was %" PRId64,
                              -classes, classes - 1, attrs->blank);
    MR_TRY(mr_kernel_output(call, 3, MR_SHAPE(batch, 1), error));
    decoded d = {.counts = calloc((size_t)batch, sizeof *d.counts)};
    mr_status status = d.counts == nullptr ? mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory")
                                           : greedy_rows(call, blank, &d, error);
    if (status == MR_OK) status = put_path(call, &d, 0, 1, batch, error);
    free(d.counts);
    free(d.labels);
    return status;
}

/* ---- Beam search ---- */

typedef struct probability {
    double total, blank, label; /* logarithms */
} probability;

typedef struct beam {
    struct beam *parent, *children; /* classes - 1 of them, or null */
    int32_t label;                  /* -1: the empty sequence */
    uint64_t order;                 /* among equal probabilities the earlier one is preferred */
    probability before, now;
} beam;

typedef struct block {
    struct block *next;
    beam beams[];
} block;

typedef struct search {
    int64_t classes, width, leaf_count, leaf_capacity;
    beam **leaves; /* a heap with the least probable at the front */
    beam root;
    block *blocks;
    uint64_t pushed;
} search;

static const probability impossible = {LOG_ZERO, LOG_ZERO, LOG_ZERO};

static double log_sum(double a, double b)
{
    if (a == LOG_ZERO) return b;
    if (b == LOG_ZERO) return a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

static bool is_worse(const beam *a, const beam *b)
{
    return a->now.total < b->now.total || (a->now.total == b->now.total && a->order > b->order);
}

static void sift_down(search *s, int64_t at)
{
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= s->leaf_count) return;
        if (child + 1 < s->leaf_count && is_worse(s->leaves[child + 1], s->leaves[child])) child++;
        if (!is_worse(s->leaves[child], s->leaves[at])) return;
        beam *swapped = s->leaves[at];
        s->leaves[at] = s->leaves[child];
        s->leaves[child] = swapped;
        at = child;
    }
}

/* Adds a leaf; a full heap drops its least probable one. */
static bool push(search *s, beam *leaf)
{
    leaf->order = s->pushed++;
    if (s->leaf_count == s->width) {
        assert(s->leaves != nullptr);
        s->leaves[0] = leaf;
        sift_down(s, 0);
        return true;
    }
    if (s->leaf_count == s->leaf_capacity) {
        int64_t capacity = MR_MAX(16, 2 * s->leaf_capacity);
        beam **leaves = realloc((void *)s->leaves, (size_t)capacity * sizeof *leaves);
        if (leaves == nullptr) return false;
        s->leaves = leaves;
        s->leaf_capacity = capacity;
    }
    int64_t at = s->leaf_count++;
    s->leaves[at] = leaf;
    while (at > 0 && is_worse(s->leaves[at], s->leaves[(at - 1) / 2])) {
        beam *swapped = s->leaves[at];
        s->leaves[at] = s->leaves[(at - 1) / 2];
        s->leaves[(at - 1) / 2] = swapped;
        at = (at - 1) / 2;
    }
    return true;
}

static bool is_candidate(const search *s, const probability *p)
{
    return p->total > LOG_ZERO && (s->leaf_count < s->width || p->total > s->leaves[0]->now.total);
}

static int compare_leaves(const void *a, const void *b)
{
    const beam *x = *(const beam *const *)a, *y = *(const beam *const *)b;
    return is_worse(x, y) ? 1 : is_worse(y, x) ? -1 : 0;
}

static bool add_children(search *s, beam *parent)
{
    int64_t count = s->classes - 1;
    block *one = malloc(sizeof *one + (size_t)count * sizeof(beam));
    if (one == nullptr) return false;
    one->next = s->blocks;
    s->blocks = one;
    parent->children = one->beams;
    for (int64_t i = 0; i < count; i++)
        one->beams[i] = (beam){.parent = parent, .label = (int32_t)i, .before = impossible, .now = impossible};
    return true;
}

/* Extends a sequence by each label that makes it a candidate. x are log probabilities. */
static bool grow(search *s, beam *leaf, const double *x)
{
    if (leaf->children == nullptr && !add_children(s, leaf)) return false;
    for (int32_t label = 0; label < s->classes - 1; label++) {
        beam *child = &leaf->children[label];
        if (child->now.total != LOG_ZERO) continue;
        double previous = label == leaf->label ? leaf->before.blank : leaf->before.total;
        child->now = (probability){.blank = LOG_ZERO, .label = x[label] + previous};
        child->now.total = child->now.label;
        if (!is_candidate(s, &child->now)) {
            child->before = child->now = impossible;
            continue;
        }
        if (s->leaf_count == s->width) s->leaves[0]->now = impossible;
        if (!push(s, child)) return false;
    }
    return true;
}

/* leaves: scratch space for the leaves before this step */
static bool step(search *s, const double *x)
{
    int64_t count = s->leaf_count;
    beam **before = malloc((size_t)count * sizeof *before);
    if (before == nullptr) return false;
    memcpy((void *)before, (void *)s->leaves, (size_t)count * sizeof *before);
    qsort((void *)before, (size_t)count, sizeof *before, compare_leaves);
    s->leaf_count = 0;
    bool fine = true;
    for (int64_t i = 0; i < count; i++) before[i]->before = before[i]->now;
    for (int64_t i = 0; i < count && fine; i++) {
        beam *b = before[i];
        if (b->parent != nullptr) {
            if (b->parent->now.total != LOG_ZERO) {
                double previous = b->label == b->parent->label ? b->parent->before.blank : b->parent->before.total;
                b->now.label = log_sum(b->now.label, previous);
            }
            b->now.label += x[b->label];
        }
        b->now.blank = b->before.total + x[s->classes - 1];
        b->now.total = log_sum(b->now.blank, b->now.label);
        fine = push(s, b);
    }
    for (int64_t i = 0; i < count && fine; i++)
        if (is_candidate(s, &before[i]->before)) fine = grow(s, before[i], x);
    free((void *)before);
    return fine;
}

static void reset(search *s)
{
    while (s->blocks != nullptr) {
        block *next = s->blocks->next;
        free(s->blocks);
        s->blocks = next;
    }
    s->root = (beam){.label = -1, .before = impossible, .now = {0, 0, LOG_ZERO}};
    s->leaf_count = 0;
    s->pushed = 0;
}

static bool put_labels(const beam *leaf, bool merges, decoded *d, int64_t row)
{
    int64_t begin = d->size;
    int32_t previous = -1;
    for (const beam *b = leaf; b->parent != nullptr; b = b->parent) {
        if ((!merges || b->label != previous) && !push_label(d, b->label)) return false;
        previous = b->label;
    }
    for (int64_t i = begin, j = d->size - 1; i < j; i++, j--) {
        int32_t swapped = d->labels[i];
        d->labels[i] = d->labels[j];
        d->labels[j] = swapped;
    }
    assert(d->counts != nullptr);
    d->counts[row] = d->size - begin;
    return true;
}

static bool search_row(const mr_kernel_call *call, search *s, int64_t b, double *x)
{
    const mr_tensor *inputs = &call->inputs[0];
    reset(s);
    if (!push(s, &s->root)) return false;
    for (int64_t t = 0; t < ((const int32_t *)call->inputs[1].data)[b]; t++) {
        double most = LOG_ZERO, sum = 0;
        for (int64_t c = 0; c < s->classes; c++) most = fmax(most, input_at(inputs, t, b, c));
        for (int64_t c = 0; c < s->classes; c++) sum += exp(input_at(inputs, t, b, c) - most);
        for (int64_t c = 0; c < s->classes; c++) x[c] = input_at(inputs, t, b, c) - (most + log(sum));
        if (!step(s, x)) return false;
    }
    qsort((void *)s->leaves, (size_t)s->leaf_count, sizeof *s->leaves, compare_leaves);
    return true;
}

static mr_status beam_rows(mr_kernel_call *call, search *s, decoded *paths, double *x, mr_error *error)
{
    const decoder_attrs *attrs = call->prepared;
    for (int64_t b = 0; b < call->inputs[0].shape.dims[1]; b++) {
        bool fine = search_row(call, s, b, x);
        if (fine && attrs->top_paths > s->leaf_count)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Less leaves in the beam search than requested.");
        for (int64_t p = 0; p < attrs->top_paths && fine; p++) {
            fine = put_labels(s->leaves[p], attrs->merges, &paths[p], b);
            put_score(call, b * attrs->top_paths + p, s->leaves[p]->now.total);
        }
        if (!fine) return mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    }
    return MR_OK;
}

static mr_status beam_search(mr_kernel_call *call, mr_error *error)
{
    const decoder_attrs *attrs = call->prepared;
    MR_TRY(check_inputs(call, error));
    int64_t batch = call->inputs[0].shape.dims[1], paths = attrs->top_paths;
    if (paths > attrs->beam_width)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "requested more paths than the beam width.");
    MR_TRY(mr_kernel_output(call, call->node->output_count - 1, MR_SHAPE(batch, paths), error));
    search s = {.classes = call->inputs[0].shape.dims[2], .width = attrs->beam_width};
    decoded *found = calloc((size_t)paths, sizeof *found);
    double *x = calloc((size_t)s.classes, sizeof *x);
    mr_status status = MR_OK;
    bool fine = found != nullptr && x != nullptr;
    for (int64_t p = 0; p < paths && fine; p++) {
        found[p].counts = calloc((size_t)batch, sizeof *found[p].counts);
        fine = found[p].counts != nullptr;
    }
    if (!fine) status = mr_kernel_fail(call->node, error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (status == MR_OK) status = beam_rows(call, &s, found, x, error);
    for (int64_t p = 0; p < paths && status == MR_OK; p++) status = put_path(call, &found[p], p, paths, batch, error);
    for (int64_t p = 0; found != nullptr && p < paths; p++) {
        free(found[p].counts);
        free(found[p].labels);
    }
    reset(&s);
    free((void *)s.leaves);
    free(found);
    free(x);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "CTCGreedyDecoder", .run = greedy, .prepared_size_bytes = sizeof(decoder_attrs), .prepare = prepare},
    {.op = "CTCBeamSearchDecoder",
     .run = beam_search,
     .prepared_size_bytes = sizeof(decoder_attrs),
     .prepare = prepare},
};
MR_KERNEL_FAMILY(ctc_decoder);
