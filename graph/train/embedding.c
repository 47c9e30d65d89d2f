/* Embedding look-up, as tf.nn.embedding_lookup and embedding_lookup_sparse: rows of one table, or of a table that is
 * divided into parts. */
#include "graph/train/layers.h"
#include <millrace/ops.h>

#include <math.h>

/* ---- Checks ---- */

static bool check(mr_graph *graph, const char *what, mr_variables table, mr_output ids,
                  const mr_embedding_options *options)
{
    const char *wrong = nullptr;
    if (mr_graph_status(graph, nullptr) != MR_OK) return false;
    if (table.count < 1 || table.items == nullptr) wrong = "the table has no variable";
    for (int32_t i = 0; i < table.count && wrong == nullptr; i++) {
        if (table.items[i].value.node == nullptr)
            wrong = "a part of the table is not a variable";
        else if (mr_variable_shape_of(table.items[i]).rank == 0)
            wrong = "a part of the table is a scalar";
    }
    if (ids.node == nullptr || (mr_output_dtype(ids) != MR_INT32 && mr_output_dtype(ids) != MR_INT64))
        wrong = "ids must be int32 or int64";
    if (options->max_norm < 0 || !isfinite(options->max_norm)) wrong = "max_norm must be finite and greater than 0";
    if ((unsigned)options->partition_strategy > MR_PARTITION_DIV) wrong = "unknown partition_strategy";
    if ((unsigned)options->combiner > MR_COMBINER_SQRTN) wrong = "unknown combiner";
    if (table.count == 1 && options->partition_strategy != MR_PARTITION_MOD)
        wrong = nullptr; /* allowed, so that one program serves any number of parts */
    if (wrong == nullptr) return true;
    (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: %s", what, wrong);
    return false;
}

static bool read_options(mr_graph *graph, mr_embedding_options *options, const mr_embedding_options *given)
{
    return mr_layer_read(graph, options, sizeof *options, given, "mr_embedding_options");
}

/* ---- Rows ---- */

/* Scales rows down to max_norm (tf.clip_by_norm along the dimensions after those of ids). */
static mr_output clip(mr_graph *graph, mr_output rows, int32_t id_rank, float max_norm)
{
    int32_t axes[MR_RANK_MAX], count = 0, rank = mr_output_shape(rows).rank;
    if (max_norm == 0 || mr_graph_status(graph, nullptr) != MR_OK) return rows;
    if (rank < 0 || id_rank < 0)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "max_norm needs ids and a table of known rank");
    for (int32_t i = id_rank; i < rank; i++) axes[count++] = i;
    mr_dtype dtype = mr_output_dtype(rows);
    mr_graph_push_scope(graph, "clip_by_norm");
    mr_output over = mr_constant_int32s(graph, MR_SHAPE(count), axes, "Sum/reduction_indices");
    mr_output squares = mr_sum(graph, mr_mul(graph, rows, rows, .name = "mul"), over, .keep_dims = true);
    mr_output positive = mr_greater(graph, squares, mr_train_scalar(graph, "Greater/y", dtype, 0));
    /* The square root of 0 has no gradient: it is taken of 1 instead. */
    mr_output safe = mr_select_v2(graph, positive, squares, mr_ones_like(graph, squares), .name = "Select");
    mr_output norm = mr_select_v2(graph, positive, mr_sqrt(graph, safe), squares, .name = "Select");
    mr_output limit = mr_train_scalar(graph, "mul_1/y", dtype, max_norm);
    mr_output scaled = mr_mul(graph, rows, limit, .name = "mul");
    mr_output clipped = mr_real_div(graph, scaled, mr_maximum(graph, norm, limit), .name = "truediv");
    mr_graph_pop_scope(graph);
    return clipped;
}

static mr_output gather(mr_graph *graph, mr_variable table, mr_output ids, const char *name)
{
    mr_output axis = mr_constant_int32s(graph, MR_SCALAR, (int32_t[]){0}, "axis");
    return mr_gather_v2(graph, mr_layer_value(graph, table, "GatherV2"), ids, axis, .name = name);
}

static mr_output scalar_like(mr_graph *graph, mr_output like, int64_t value)
{
    return mr_train_scalar(graph, nullptr, mr_output_dtype(like), (double)value);
}

/* Which part has each id, and where in it. */
static bool place_ids(mr_graph *graph, mr_variables table, mr_output flat, mr_partition_strategy strategy,
                      mr_output *part, mr_output *row)
{
    mr_output count = scalar_like(graph, flat, table.count);
    if (strategy == MR_PARTITION_MOD) {
        *part = mr_floor_mod(graph, flat, count);
        *row = mr_floor_div(graph, flat, count);
        return true;
    }
    int64_t rows = 0;
    for (int32_t i = 0; i < table.count; i++) {
        mr_shape shape = mr_variable_shape_of(table.items[i]);
        int64_t size = shape.rank > 0 ? shape.dims[0] : -1;
        rows = size < 0 || rows < 0 ? -1 : rows + size;
    }
    if (rows < 0) {
        (void)mr_graph_fail(graph, MR_INVALID_ARGUMENT, "MR_PARTITION_DIV needs parts with known numbers of rows");
        return false;
    }
    int64_t each = rows / table.count, extra = rows % table.count;
    mr_output extras = scalar_like(graph, flat, extra), longer = scalar_like(graph, flat, each + 1);
    mr_output shorter = scalar_like(graph, flat, each > 0 ? each : 1), late = mr_sub(graph, flat, extras);
    *part = mr_maximum(graph, mr_floor_div(graph, flat, longer), mr_floor_div(graph, late, shorter));
    *row = mr_select_v2(graph, mr_less(graph, *part, extras), mr_floor_mod(graph, flat, longer),
                        mr_floor_mod(graph, late, shorter));
    return true;
}

/* The shape of ids followed by that of a row. */
static mr_output shape_rows(mr_graph *graph, mr_output rows, mr_output ids, mr_shape table)
{
    mr_output axis = mr_constant_int32(graph, 0), row;
    mr_shape id_shape = mr_output_shape(ids), known = {.rank = id_shape.rank + table.rank - 1};
    int32_t sizes[MR_RANK_MAX];
    bool is_known = table.rank > 0;
    for (int32_t i = 1; i < table.rank; i++) {
        sizes[i - 1] = (int32_t)table.dims[i];
        is_known = is_known && table.dims[i] >= 0;
    }
    if (is_known)
        row = mr_constant_int32s(graph, MR_SHAPE(table.rank - 1), sizes, nullptr);
    else
        row = mr_slice(graph, mr_shape_of(graph, rows), mr_constant_ints(graph, MR_INTS(1)),
                       mr_constant_ints(graph, MR_INTS(-1)));
    mr_output shape = mr_concat_v2(graph, MR_OUTPUTS(mr_shape_of(graph, ids), row), axis);
    mr_output shaped = mr_reshape(graph, rows, shape);
    if (!is_known || id_shape.rank < 0 || known.rank > MR_RANK_MAX || mr_graph_status(graph, nullptr) != MR_OK)
        return shaped;
    for (int32_t i = 0; i < known.rank; i++)
        known.dims[i] = i < id_shape.rank ? id_shape.dims[i] : table.dims[i - id_shape.rank + 1];
    mr_output_set_shape(shaped, known);
    return shaped;
}

static mr_output look_up_parts(mr_graph *graph, mr_variables table, mr_output ids, const mr_embedding_options *options)
{
    mr_output *found = MR_ARENA_NEW(&graph->arena, mr_output, 2 * (size_t)table.count);
    if (found == nullptr) return mr_graph_fail(graph, MR_RESOURCE_EXHAUSTED, "no memory for an embedding");
    mr_output *places = found + table.count, part, row;
    mr_output flat = mr_reshape(graph, ids, mr_constant_ints(graph, MR_INTS(-1)));
    mr_output zero = mr_constant_int32(graph, 0), one = mr_constant_int32(graph, 1);
    mr_output order = mr_range(graph, zero, mr_size(graph, flat), one);
    if (!place_ids(graph, table, flat, options->partition_strategy, &part, &row)) return mr_graph_failed_output(graph);
    if (mr_output_dtype(part) != MR_INT32) part = mr_cast(graph, part, MR_INT32);
    mr_output_range rows = mr_dynamic_partition(graph, row, part, .num_partitions = table.count);
    mr_output_range orders = mr_dynamic_partition(graph, order, part, .num_partitions = table.count);
    for (int32_t i = 0; i < table.count; i++) {
        places[i] = mr_output_at(orders, i);
        found[i] = gather(graph, table.items[i], mr_output_at(rows, i), nullptr);
    }
    mr_output all = mr_parallel_dynamic_stitch(graph, MR_OUTPUTS_OF(places, table.count),
                                               MR_OUTPUTS_OF(found, table.count), .name = mr_train_own_name(graph));
    return shape_rows(graph, all, ids, mr_variable_shape_of(table.items[0]));
}

static mr_output look_up(mr_graph *graph, mr_variables table, mr_output ids, const mr_embedding_options *options,
                         const char *name)
{
    mr_graph_push_scope(graph, name);
    mr_output rows = table.count > 1 ? look_up_parts(graph, table, ids, options)
                                     : gather(graph, table.items[0], ids, mr_train_own_name(graph));
    rows = clip(graph, rows, mr_output_shape(ids).rank, options->max_norm);
    if (table.count == 1) rows = mr_identity(graph, rows);
    mr_graph_pop_scope(graph);
    return rows;
}

mr_output mr_embedding_lookup_(mr_graph *graph, mr_variables table, mr_output ids, const mr_embedding_options *given)
{
    mr_embedding_options options;
    if (graph == nullptr) return (mr_output){0};
    if (!read_options(graph, &options, given)) return mr_graph_failed_output(graph);
    const char *name = options.name != nullptr ? options.name : "embedding_lookup";
    if (!check(graph, name, table, ids, &options)) return mr_graph_failed_output(graph);
    if (options.combiner != MR_COMBINER_MEAN)
        return mr_graph_fail(graph, MR_INVALID_ARGUMENT, "%s: combiner has no effect for ids that are not sparse",
                             name);
    return look_up(graph, table, ids, &options, name);
}

/* ---- Sparse ids ---- */

/* The first column of the indices: the element of the batch that an id belongs to. */
static mr_output rows_of(mr_graph *graph, mr_output indices)
{
    mr_output begin = mr_constant_ints(graph, MR_INTS(0, 0)), end = mr_constant_ints(graph, MR_INTS(0, 1));
    mr_output rows = mr_strided_slice(graph, indices, begin, end, mr_constant_ints(graph, MR_INTS(1, 1)),
                                      .begin_mask = 1, .end_mask = 1, .shrink_axis_mask = 2);
    return mr_cast(graph, rows, MR_INT32);
}

static mr_output combine(mr_graph *graph, mr_output table, mr_output ids, mr_output rows, mr_combiner combiner,
                         const char *name)
{
    if (combiner == MR_COMBINER_SUM) return mr_sparse_segment_sum(graph, table, ids, rows, .name = name);
    if (combiner == MR_COMBINER_SQRTN) return mr_sparse_segment_sqrt_n(graph, table, ids, rows, .name = name);
    return mr_sparse_segment_mean(graph, table, ids, rows, .name = name);
}

static mr_output combine_weighted(mr_graph *graph, mr_output found, mr_output which, mr_output rows, mr_output weights,
                                  mr_combiner combiner, const char *name)
{
    mr_output zero = mr_constant_int32(graph, 0);
    mr_output each = mr_gather_v2(graph, found, which, zero);
    if (mr_output_dtype(weights) != mr_output_dtype(each)) weights = mr_cast(graph, weights, mr_output_dtype(each));
    /* [n, 1, …, 1] */
    mr_output others = mr_expand_dims(graph, mr_sub(graph, mr_rank(graph, each), mr_constant_int32(graph, 1)), zero);
    mr_output ones = mr_fill(graph, others, mr_constant_int32(graph, 1), .name = "ones");
    weights = mr_reshape(graph, weights, mr_concat_v2(graph, MR_OUTPUTS(mr_shape_of(graph, weights), ones), zero));
    each = mr_mul(graph, each, weights, .name = "mul");
    if (combiner == MR_COMBINER_SUM) return mr_segment_sum(graph, each, rows, .name = name);
    mr_output sum = mr_segment_sum(graph, each, rows);
    bool is_root = combiner == MR_COMBINER_SQRTN;
    mr_output share = mr_segment_sum(graph, is_root ? mr_mul(graph, weights, weights, .name = "Pow") : weights, rows);
    return mr_div_no_nan(graph, sum, is_root ? mr_sqrt(graph, share) : share, .name = name);
}

mr_output mr_embedding_lookup_sparse_(mr_graph *graph, mr_variables table, mr_output indices, mr_output values,
                                      mr_output weights, const mr_embedding_options *given)
{
    mr_embedding_options options;
    if (graph == nullptr) return (mr_output){0};
    if (!read_options(graph, &options, given)) return mr_graph_failed_output(graph);
    const char *name = options.name != nullptr ? options.name : "embedding_lookup_sparse";
    if (!check(graph, name, table, values, &options)) return mr_graph_failed_output(graph);
    mr_graph_push_scope(graph, name);
    const char *own = mr_train_own_name(graph);
    mr_output rows = rows_of(graph, indices), result;
    mr_unique_outputs unique = mr_unique(graph, values);
    mr_output found = look_up(graph, table, unique.y, &options, "embedding_lookup");
    result = weights.node == nullptr ? combine(graph, found, unique.idx, rows, options.combiner, own)
                                     : combine_weighted(graph, found, unique.idx, rows, weights, options.combiner, own);
    mr_graph_pop_scope(graph);
    return result;
}
