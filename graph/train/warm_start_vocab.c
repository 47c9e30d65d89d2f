/* Warm starts with vocabularies: rows or columns of a matrix are found by the words that they belong to, as
 * _load_and_remap_matrix_initializer of TensorFlow. */
#include "graph/train/variable_store.h"
#include "graph/train/warm_start.h"
#include <millrace/ops.h>

#include <assert.h>
#include <string.h>

/* ---- Checks ---- */

static const char *find_wrong(const mr_vocab_info *info)
{
    if (info->new_vocab == nullptr || *info->new_vocab == '\0') return "new_vocab is missing";
    if (info->old_vocab == nullptr || *info->old_vocab == '\0') return "old_vocab is missing";
    if (info->new_vocab_size < 1 || info->new_vocab_size > INT32_MAX) return "new_vocab_size must be at least 1";
    if (info->num_oov_buckets < 0) return "num_oov_buckets must be at least 0";
    if (info->old_vocab_size < 0) return "old_vocab_size must be at least 0";
    if (info->axis != 0 && info->axis != 1) return "axis must be 0 or 1";
    if (info->axis == 1 && info->old_vocab_size != 0) return "old_vocab_size has no effect on axis 1";
    return nullptr;
}

/* As mr_get_variable checks an initializer; the default is zeros. */
static const char *find_wrong_backup(mr_initializer initializer)
{
    switch (initializer.kind) {
    case MR_INIT_DEFAULT:
        initializer.kind = MR_INIT_ZEROS;
        break;
    case MR_INIT_ZEROS:
    case MR_INIT_ONES:
    case MR_INIT_UNIFORM:
    case MR_INIT_NORMAL:
    case MR_INIT_TRUNCATED_NORMAL:
        break;
    case MR_INIT_CONSTANT:
        if (initializer.values != nullptr) return "it cannot have values, as the number of elements is not known";
        break;
    default:
        return "it must be zeros, ones, constant, uniform, normal or truncated normal, as the number of elements is "
               "not known";
    }
    return mr_initializer_wrong_options(&initializer);
}

/* The matrix of the checkpoint. */
static mr_status check_key(const char *key, mr_checkpoint_reader *reader, const char *path, mr_shape *shape,
                           mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    mr_dtype dtype = MR_DTYPE_INVALID;
    for (int32_t i = 0; i < mr_checkpoint_count(reader); i++)
        if (strcmp(mr_checkpoint_key(reader, i, &dtype, shape), key) == 0) {
            if (dtype == MR_FLOAT && shape->rank == 2) return MR_OK;
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: %.200s is %s %s, but a vocabulary needs a float matrix",
                           path, key, mr_dtype_name(dtype), mr_shape_text(*shape, text, sizeof text));
        }
    return mr_fail(error, MR_NOT_FOUND, "%s has no key %.200s", path, key);
}

mr_status mr_warm_start_vocab_check(const mr_vocab_info *info, const mr_saver_item *item, const char *key,
                                    mr_checkpoint_reader *reader, const char *path, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const char *wrong = find_wrong(info);
    const mr_shape full = item->is_slice ? item->full : item->shape;
    mr_shape old;
    if (wrong != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: vocab_infos of %.200s: %s", info->name, wrong);
    wrong = find_wrong_backup(info->backup_initializer);
    if (wrong != nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "warm_start: vocab_infos of %.200s: backup_initializer: %s",
                       info->name, wrong);
    if (item->dtype != MR_FLOAT || full.rank != 2)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "warm_start: %.200s is %s %s, but a variable with a vocabulary must be a float matrix",
                       info->name, mr_dtype_name(item->dtype), mr_shape_text(full, text, sizeof text));
    const int64_t words = info->new_vocab_size + info->num_oov_buckets, size = full.dims[info->axis];
    if (size != words)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "warm_start: axis %d of %.200s is %lld, but new_vocab_size + num_oov_buckets is %lld",
                       info->axis, info->name, (long long)size, (long long)words);
    if (item->is_slice && item->shape.dims[1] != full.dims[1])
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "warm_start: %.200s is partitioned along axis 1, which a vocabulary does not allow", info->name);
    MR_TRY(check_key(key, reader, path, &old, error));
    const int32_t other = 1 - info->axis;
    const bool fits = other == 1 ? old.dims[1] == full.dims[1] : old.dims[0] >= full.dims[0];
    if (fits) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "warm_start: axis %d of %.200s is %lld, but that of %.200s in %s is %lld", other, info->name,
                   (long long)full.dims[other], key, path, (long long)old.dims[other]);
}

/* ---- Nodes ---- */

static mr_output string_scalar(mr_graph *graph, const char *text, const char *name)
{
    mr_tensor tensor = {0};
    mr_error error = {0};
    const mr_status status = mr_tensor_init_string(&tensor, mr_string_from(text), &error);
    if (status != MR_OK) return mr_graph_record(graph, status, &error);
    const mr_output constant = mr_constant(graph, &tensor, name);
    mr_tensor_deinit(&tensor);
    return constant;
}

static mr_output int32_scalar(mr_graph *graph, int64_t value)
{
    assert(value >= INT32_MIN && value <= INT32_MAX);
    return mr_constant_int32(graph, (int32_t)value);
}

/* New elements, of a shape that is known when the graph runs: int32 [2]. */
static mr_output backup(mr_graph *graph, const mr_initializer *i, mr_output shape)
{
    int64_t seed = 0, seed2 = 0;
    if (i->kind == MR_INIT_DEFAULT || i->kind == MR_INIT_ZEROS || i->kind == MR_INIT_ONES ||
        i->kind == MR_INIT_CONSTANT) {
        const double value = i->kind == MR_INIT_ONES ? 1 : i->kind == MR_INIT_CONSTANT ? (double)i->scale : 0;
        return mr_fill(graph, shape, mr_train_scalar(graph, "Const", MR_FLOAT, value));
    }
    const bool is_uniform = i->kind == MR_INIT_UNIFORM, is_range = i->min != 0 || i->max != 0;
    const float low = is_range ? i->min : -i->scale, high = is_range ? i->max : i->scale;
    mr_train_seed_pair(graph, i->seed, &seed, &seed2);
    mr_output unit;
    if (is_uniform)
        unit = mr_random_uniform(graph, shape, MR_FLOAT, .seed = seed, .seed2 = seed2);
    else if (i->kind == MR_INIT_NORMAL)
        unit = mr_random_standard_normal(graph, shape, MR_FLOAT, .seed = seed, .seed2 = seed2);
    else
        unit = mr_truncated_normal(graph, shape, MR_FLOAT, .seed = seed, .seed2 = seed2);
    const mr_output width =
        mr_train_scalar(graph, "stddev", MR_FLOAT, is_uniform ? (double)(high - low) : (double)i->scale);
    const mr_output first = mr_train_scalar(graph, "mean", MR_FLOAT, is_uniform ? (double)low : (double)i->mean);
    return mr_add_v2(graph, mr_mul(graph, unit, width), first);
}

static mr_output backup_of(mr_graph *graph, const mr_initializer *i, int64_t rows, int64_t columns)
{
    return backup(graph, i, mr_constant_ints(graph, MR_INTS(rows, columns)));
}

/* Where the words were in the old vocabulary, and how many of them were there. */
static mr_generate_vocab_remapping_outputs remap(mr_graph *graph, const mr_vocab_info *info, int64_t offset,
                                                 int64_t count)
{
    return mr_generate_vocab_remapping(graph, string_scalar(graph, info->new_vocab, "new_vocab_file"),
                                       string_scalar(graph, info->old_vocab, "old_vocab_file"),
                                       .new_vocab_offset = offset, .num_new_vocab = count,
                                       .old_vocab_size = info->old_vocab_size > 0 ? info->old_vocab_size : -1);
}

/* The rows and columns of the words. */
static mr_output load(mr_graph *graph, const mr_vocab_info *info, const char *key, const char *path, int64_t offset,
                      int64_t rows, int64_t columns)
{
    mr_output old_rows, old_columns, present;
    const mr_generate_vocab_remapping_outputs words =
        remap(graph, info, info->axis == 0 ? offset : 0, info->axis == 0 ? rows : columns);
    if (info->axis == 0) {
        old_rows = words.remapping;
        old_columns = mr_cast(graph, mr_constant_int32s(graph, MR_SHAPE(0), nullptr, nullptr), MR_INT64);
        present = mr_mul(graph, words.num_present, int32_scalar(graph, columns));
    } else {
        old_rows = mr_range(graph, mr_constant_int64(graph, offset), mr_constant_int64(graph, offset + rows),
                            mr_constant_int64(graph, 1));
        old_columns = words.remapping;
        present = mr_mul(graph, words.num_present, int32_scalar(graph, rows));
    }
    mr_output missing = mr_sub(graph, int32_scalar(graph, rows * columns), present);
    mr_output values =
        backup(graph, &info->backup_initializer, mr_pack(graph, MR_OUTPUTS(missing, int32_scalar(graph, 1))));
    return mr_load_and_remap_matrix(graph, string_scalar(graph, path, "ckpt_path"),
                                    string_scalar(graph, key, "old_tensor_name"), old_rows, old_columns, values,
                                    .num_rows = rows, .num_cols = columns);
}

static mr_output join(mr_graph *graph, mr_output first, mr_output second, int32_t axis)
{
    return mr_concat_v2(graph, MR_OUTPUTS(first, second), mr_constant_int32(graph, axis), .name = "concat");
}

void mr_warm_start_vocab(mr_graph *graph, const mr_vocab_info *info, const mr_saver_item *item, const char *key,
                         const char *path)
{
    const int64_t offset = item->is_slice ? item->slice.starts[0] : 0;
    const int64_t rows = item->shape.dims[0], columns = item->shape.dims[1], oov = info->num_oov_buckets;
    int64_t oov_rows = 0, oov_columns = 0;
    if (info->axis == 0)
        oov_rows = offset + rows > info->new_vocab_size ? offset + rows - info->new_vocab_size : 0;
    else
        oov_columns = oov;
    if (oov_rows > rows) oov_rows = rows;
    /* The matrix is loaded on the CPU of the variable's machine; the variable may be elsewhere. */
    mr_graph_push_device(graph, mr_node_device(item->ref.node));
    mr_graph_push_device(graph, "/device:CPU:0");
    mr_graph_push_scope(graph, "checkpoint_initializer");
    mr_output value;
    if (oov_rows == rows) {
        value = backup_of(graph, &info->backup_initializer, rows, columns);
    } else {
        value = load(graph, info, key, path, offset, rows - oov_rows, columns - oov_columns);
        if (oov_rows > 0) value = join(graph, value, backup_of(graph, &info->backup_initializer, oov_rows, columns), 0);
        if (oov_columns > 0)
            value = join(graph, value, backup_of(graph, &info->backup_initializer, rows, oov_columns), 1);
    }
    mr_graph_pop_scope(graph);
    mr_graph_pop_device(graph);
    mr_graph_pop_device(graph);
    if (mr_graph_status(graph, nullptr) == MR_OK) mr_output_set_shape(value, item->shape);
    mr_warm_start_assign(graph, item, value);
}
