/* Losses that compare the true classes of an example with a few sampled ones: tf.nn.sampled_softmax_loss and nce_loss.
 * Weights and biases are only gathered from, so that their gradients are rows. */
#include "graph/train/layers.h"
#include "graph/train/losses.h"
#include <millrace/ops.h>

#include <inttypes.h>

typedef struct sampled_loss {
    mr_sampled_loss_options options;
    mr_variables weights, biases;
    mr_output labels;         /* int64 [batch, num_true] */
    mr_output inputs;         /* [batch, dim] */
    mr_output flat;           /* labels as a vector */
    mr_sampled_values values; /* of the sampler */
    mr_output logits;         /* result: [batch, num_true + num_sampled], the true classes first */
    mr_output targets;        /* result: of the same shape, 1 / num_true or 0 */
} sampled_loss;

/* ---- Checks ---- */

/* Whether the value has this form. A size of -1 matches any. */
static bool check_form(mr_graph *graph, const char *name, mr_output value, mr_shape expected)
{
    char texts[2][MR_SHAPE_TEXT_SIZE];
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (value.node == nullptr) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s are required", name);
        return false;
    }
    mr_shape shape = mr_output_shape(value);
    if (mr_shape_compatible(shape, expected)) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have shape %s, but must have %s", name,
                        mr_shape_text(shape, texts[0], sizeof texts[0]),
                        mr_shape_text(expected, texts[1], sizeof texts[1]));
    return false;
}

static bool check_dtype(mr_graph *graph, const char *name, mr_dtype dtype, bool fits, const char *expected)
{
    if (fits) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s are %s, but must be %s", name, mr_dtype_name(dtype), expected);
    return false;
}

static bool check_floating(mr_graph *graph, const char *name, mr_output value)
{
    mr_dtype dtype = mr_output_dtype(value);
    return check_dtype(graph, name, dtype, mr_train_is_floating(dtype), "floating");
}

static bool check_ids(mr_graph *graph, const char *name, mr_output value)
{
    mr_dtype dtype = mr_output_dtype(value);
    return check_dtype(graph, name, dtype, dtype == MR_INT32 || dtype == MR_INT64, "int32 or int64");
}

/* The size of a dimension, -1 if it is not known. */
static int64_t size_of(mr_shape shape, int32_t dimension)
{
    return shape.rank > dimension ? shape.dims[dimension] : -1;
}

/* Checks the parts of weights [rows, dim] or biases [rows]. */
static bool check_table(mr_graph *graph, const char *name, mr_variables table, mr_shape row_form, int64_t num_classes)
{
    int64_t rows = 0;
    if (table.items == nullptr || table.count < 1) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have no part", name);
        return false;
    }
    for (int32_t i = 0; i < table.count; i++) {
        mr_output value = table.items[i].value;
        mr_shape shape = mr_variable_shape_of(table.items[i]);
        if (!check_form(graph, name, value, row_form) || !check_floating(graph, name, value)) return false;
        int64_t size = size_of(shape, 0);
        rows = size < 0 || rows < 0 ? -1 : rows + size;
    }
    if (rows < 0 || rows >= num_classes) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s have %" PRId64 " rows, but num_classes is %" PRId64, name, rows,
                        num_classes);
    return false;
}

static bool check_max(mr_graph *graph, const char *option, int64_t value)
{
    if (value <= INT32_MAX) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s is %" PRId64 ", but must be at most %d", option, value,
                        INT32_MAX);
    return false;
}

static bool check_sampler(mr_graph *graph, const sampled_loss *loss)
{
    const mr_sampled_loss_options *o = &loss->options;
    const mr_sampled_values *values = &o->sampled_values;
    if (values->sampled_candidates.node == nullptr && values->true_expected_count.node == nullptr &&
        values->sampled_expected_count.node == nullptr) {
        if (o->num_sampled <= o->num_classes) return true;
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT,
                            "num_sampled is %" PRId64 ", but there are only %" PRId64 " classes to sample from",
                            o->num_sampled, o->num_classes);
        return false;
    }
    if (o->seed != 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "seed has no effect together with sampled_values");
        return false;
    }
    int64_t batch = size_of(mr_output_shape(loss->labels), 0);
    return check_form(graph, "sampled_candidates", values->sampled_candidates, MR_SHAPE(o->num_sampled)) &&
           check_ids(graph, "sampled_candidates", values->sampled_candidates) &&
           check_form(graph, "true_expected_count", values->true_expected_count, MR_SHAPE(batch, o->num_true)) &&
           check_floating(graph, "true_expected_count", values->true_expected_count) &&
           check_form(graph, "sampled_expected_count", values->sampled_expected_count, MR_SHAPE(o->num_sampled)) &&
           check_floating(graph, "sampled_expected_count", values->sampled_expected_count);
}

static bool check(mr_graph *graph, const sampled_loss *loss)
{
    const mr_sampled_loss_options *o = &loss->options;
    if (!mr_train_check_required(graph, "num_sampled", o->num_sampled) ||
        !mr_train_check_required(graph, "num_classes", o->num_classes) ||
        !mr_train_check_count(graph, "num_true", o->num_true, 1) || !check_max(graph, "num_sampled", o->num_sampled) ||
        !check_max(graph, "num_true", o->num_true))
        return false;
    if ((unsigned)o->partition_strategy > MR_PARTITION_DIV) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "partition_strategy %d is not one of mr_partition_strategy",
                            (int)o->partition_strategy);
        return false;
    }
    if (!check_form(graph, "labels", loss->labels, MR_SHAPE(-1, o->num_true)) ||
        !check_ids(graph, "labels", loss->labels))
        return false;
    int64_t batch = size_of(mr_output_shape(loss->labels), 0);
    if (!check_form(graph, "inputs", loss->inputs, MR_SHAPE(batch, -1)) ||
        !check_floating(graph, "inputs", loss->inputs))
        return false;
    mr_shape weights = MR_SHAPE(-1, size_of(mr_output_shape(loss->inputs), 1));
    return check_table(graph, "weights", loss->weights, weights, o->num_classes) &&
           check_table(graph, "biases", loss->biases, MR_SHAPE(-1), o->num_classes) && check_sampler(graph, loss);
}

/* ---- Logits ---- */

static mr_output cast_like(mr_graph *graph, mr_output value, mr_output like)
{
    if (mr_graph_status(graph, nullptr) != MR_OK || mr_output_dtype(value) == mr_output_dtype(like)) return value;
    return mr_cast(graph, value, mr_output_dtype(like));
}

static mr_output join(mr_graph *graph, mr_output first, mr_output second)
{
    return mr_concat_v2(graph, MR_OUTPUTS(first, second), mr_constant_int32(graph, 0));
}

/* The samples, without gradients. */
static void sample(mr_graph *graph, sampled_loss *loss)
{
    const mr_sampled_loss_options *o = &loss->options;
    mr_sampled_values values = o->sampled_values;
    if (values.sampled_candidates.node == nullptr) {
        int64_t seed, seed2;
        mr_train_seed_pair(graph, o->seed, &seed, &seed2);
        mr_log_uniform_candidate_sampler_outputs drawn = mr_log_uniform_candidate_sampler(
            graph, loss->labels, .num_true = o->num_true, .num_sampled = o->num_sampled, .unique = true,
            .range_max = o->num_classes, .seed = seed, .seed2 = seed2);
        values = (mr_sampled_values){drawn.sampled_candidates, drawn.true_expected_count, drawn.sampled_expected_count};
    }
    loss->values.sampled_candidates =
        cast_like(graph, mr_stop_gradient(graph, values.sampled_candidates), loss->labels);
    loss->values.true_expected_count = mr_stop_gradient(graph, values.true_expected_count);
    loss->values.sampled_expected_count = mr_stop_gradient(graph, values.sampled_expected_count);
}

/* The rows of the table for the true classes, [batch * num_true, …], and for the sampled ones, [num_sampled, …]. */
static void look_up(mr_graph *graph, const sampled_loss *loss, mr_variables table, mr_output ids, int32_t rank,
                    mr_output *of_true, mr_output *of_sampled)
{
    mr_output rows = mr_embedding_lookup(graph, table, ids, .partition_strategy = loss->options.partition_strategy);
    rows = cast_like(graph, rows, loss->inputs);
    mr_output begin = mr_constant_int32s(graph, MR_SHAPE(rank), (int32_t[]){0, 0}, nullptr);
    mr_output all = mr_constant_ints(graph, MR_INTS(-1)), count = mr_shape_of(graph, loss->flat), split = count;
    mr_output size = rank == 2 ? join(graph, count, all) : count;
    *of_true = mr_slice(graph, rows, begin, size);
    if (rank == 2) split = join(graph, count, mr_constant_ints(graph, MR_INTS(0)));
    all = mr_constant_int32s(graph, MR_SHAPE(rank), (int32_t[]){-1, -1}, nullptr);
    *of_sampled = mr_slice(graph, rows, split, all);
}

/* [rows], a product with a vector of ones as in TensorFlow */
static mr_output sum_rows(mr_graph *graph, mr_output matrix)
{
    mr_output one = mr_constant_ints(graph, MR_INTS(1));
    mr_output columns = mr_slice(graph, mr_shape_of(graph, matrix), one, one);
    mr_output ones = mr_fill(graph, join(graph, columns, one), cast_like(graph, mr_constant_float(graph, 1), matrix));
    return mr_reshape(graph, mr_mat_mul(graph, matrix, ones), mr_constant_ints(graph, MR_INTS(-1)));
}

/* The products of each input with the rows of its true classes, [batch, num_true]. */
static mr_output true_products(mr_graph *graph, const sampled_loss *loss, mr_output rows)
{
    mr_output one = mr_constant_ints(graph, MR_INTS(1)), any = mr_constant_ints(graph, MR_INTS(-1));
    mr_output dim = mr_slice(graph, mr_shape_of(graph, rows), one, one);
    mr_output by_example = mr_constant_ints(graph, MR_INTS(-1, loss->options.num_true));
    rows = mr_reshape(graph, rows, join(graph, by_example, dim));
    mr_output products = mr_mul(graph, mr_expand_dims(graph, loss->inputs, mr_constant_int32(graph, 1)), rows);
    products = mr_reshape(graph, products, join(graph, any, dim));
    return mr_reshape(graph, sum_rows(graph, products), by_example);
}

/* Makes the logits of sampled classes that are true ones hugely negative. */
static mr_output remove_hits(mr_graph *graph, const sampled_loss *loss, mr_output logits)
{
    int64_t seed, seed2;
    mr_train_seed_pair(graph, 0, &seed, &seed2);
    mr_compute_accidental_hits_outputs hits =
        mr_compute_accidental_hits(graph, loss->labels, loss->values.sampled_candidates,
                                   .num_true = loss->options.num_true, .seed = seed, .seed2 = seed2);
    mr_output column = mr_constant_ints(graph, MR_INTS(-1, 1));
    mr_output examples = mr_reshape(graph, hits.indices, column);
    mr_output positions = mr_reshape(graph, mr_cast(graph, hits.ids, MR_INT32), column);
    mr_output indices =
        mr_concat_v2(graph, MR_OUTPUTS(examples, positions), mr_constant_int32(graph, 1), .name = "sparse_indices");
    mr_output batch = mr_slice(graph, mr_shape_of(graph, loss->labels), mr_constant_ints(graph, MR_INTS(0)),
                               mr_constant_ints(graph, MR_INTS(1)));
    mr_output shape = join(graph, batch, mr_constant_ints(graph, MR_INTS(loss->options.num_sampled)));
    mr_output weights = cast_like(graph, hits.weights, logits);
    mr_output zero = cast_like(graph, mr_constant_float(graph, 0), logits);
    return mr_add_v2(graph, logits,
                     mr_sparse_to_dense(graph, indices, shape, weights, zero, .validate_indices = false));
}

static mr_output subtract_log(mr_graph *graph, mr_output logits, mr_output count)
{
    return mr_sub(graph, logits, cast_like(graph, mr_log(graph, count), logits));
}

static void compute_logits(mr_graph *graph, sampled_loss *loss)
{
    mr_output weights[2], biases[2];
    if (mr_output_dtype(loss->labels) != MR_INT64) loss->labels = mr_cast(graph, loss->labels, MR_INT64);
    loss->flat = mr_reshape(graph, loss->labels, mr_constant_ints(graph, MR_INTS(-1)));
    sample(graph, loss);
    mr_output ids = join(graph, loss->flat, loss->values.sampled_candidates);
    look_up(graph, loss, loss->weights, ids, 2, &weights[0], &weights[1]);
    mr_output sampled = mr_mat_mul(graph, loss->inputs, weights[1], .transpose_b = true);
    look_up(graph, loss, loss->biases, ids, 1, &biases[0], &biases[1]);
    mr_output by_example = mr_constant_ints(graph, MR_INTS(-1, loss->options.num_true));
    mr_output bias = mr_reshape(graph, biases[0], by_example);
    mr_output trues = mr_add_v2(graph, true_products(graph, loss, weights[0]), bias);
    sampled = mr_add_v2(graph, sampled, biases[1]);
    if (loss->options.remove_accidental_hits) sampled = remove_hits(graph, loss, sampled);
    if (loss->options.subtract_log_q) {
        trues = subtract_log(graph, trues, loss->values.true_expected_count);
        sampled = subtract_log(graph, sampled, loss->values.sampled_expected_count);
    }
    mr_output axis = mr_constant_int32(graph, 1);
    mr_output num_true = cast_like(graph, mr_constant_float(graph, (float)loss->options.num_true), loss->inputs);
    loss->logits = mr_concat_v2(graph, MR_OUTPUTS(trues, sampled), axis);
    mr_output shares = mr_real_div(graph, mr_ones_like(graph, trues), num_true);
    loss->targets = mr_concat_v2(graph, MR_OUTPUTS(shares, mr_zeros_like(graph, sampled)), axis);
}

/* ---- Losses ---- */

/* A partitioned variable stands for its parts. */
static mr_variables parts_of(mr_graph *graph, mr_variables table)
{
    const bool is_single = table.count == 1 && table.items != nullptr && table.items->value.node != nullptr;
    return is_single ? mr_variable_parts(graph, *table.items) : table;
}

/* Computes logits and targets in the loss's scope. False after an error of the graph. */
static bool compute(mr_graph *graph, const char *name, const mr_sampled_loss_options *given, sampled_loss *loss)
{
    bool is_read = MR_LAYER_READ(mr_sampled_loss_options, graph, &loss->options, given);
    mr_graph_push_scope(graph, is_read && loss->options.name != nullptr ? loss->options.name : name);
    loss->weights = parts_of(graph, loss->weights);
    loss->biases = parts_of(graph, loss->biases);
    if (is_read && mr_graph_status(graph, nullptr) == MR_OK && check(graph, loss)) compute_logits(graph, loss);
    mr_graph_pop_scope(graph);
    return mr_graph_status(graph, nullptr) == MR_OK;
}

static mr_output with_batch(mr_graph *graph, mr_output losses, const sampled_loss *loss)
{
    if (mr_graph_status(graph, nullptr) == MR_OK)
        mr_output_set_shape(losses, MR_SHAPE(size_of(mr_output_shape(loss->labels), 0)));
    return losses;
}

mr_output mr_sampled_softmax_loss_(mr_graph *graph, mr_variables weights, mr_variables biases, mr_output labels,
                                   mr_output inputs, const mr_sampled_loss_options *given)
{
    sampled_loss loss = {.weights = weights, .biases = biases, .labels = labels, .inputs = inputs};
    if (graph == nullptr) return (mr_output){0};
    if (!compute(graph, "sampled_softmax_loss", given, &loss)) return mr_graph_failed_output(graph);
    mr_output targets = mr_stop_gradient(graph, loss.targets, .name = "labels_stop_gradient");
    mr_output losses =
        mr_softmax_cross_entropy_with_logits(graph, loss.logits, targets, .name = "softmax_cross_entropy_with_logits")
            .loss;
    return with_batch(graph, losses, &loss);
}

mr_output mr_nce_loss_(mr_graph *graph, mr_variables weights, mr_variables biases, mr_output labels, mr_output inputs,
                       const mr_sampled_loss_options *given)
{
    sampled_loss loss = {.weights = weights, .biases = biases, .labels = labels, .inputs = inputs};
    if (graph == nullptr) return (mr_output){0};
    if (!compute(graph, "nce_loss", given, &loss)) return mr_graph_failed_output(graph);
    mr_output losses = mr_loss_sigmoid(graph, loss.targets, loss.logits, "sampled_losses");
    return with_batch(graph, sum_rows(graph, losses), &loss);
}
