/* Sources of datasets: tensors, numbers and files. */
#include "graph/data/dataset.h"
#include "graph/state/serialized.h"

#include "pipeline/pipeline.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>

typedef mr_dataset *(*tensors_builder)(const mr_tensor *components, int32_t count);

/* Sparse tensors are strings in a pipeline. */
static mr_status from_components(mr_kernel_call *call, tensors_builder build, mr_error *error)
{
    mr_tensor components[MR_COMPONENTS_MAX];
    int32_t count = call->node->input_count;
    if (count > MR_COMPONENTS_MAX)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "%d components, more than %d", (int)count,
                              MR_COMPONENTS_MAX);
    for (int32_t i = 0; i < count; i++) {
        components[i] = mr_tensor_ref(&call->inputs[i]);
        mr_serialized_to_pipeline(&components[i]);
    }
    mr_dataset *dataset = build(components, count);
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&components[i]);
    return mr_data_output(call, dataset, error);
}

static mr_status tensors(mr_kernel_call *call, mr_error *error)
{
    return from_components(call, mr_dataset_from_tensors, error);
}

static mr_status slices(mr_kernel_call *call, mr_error *error)
{
    return from_components(call, mr_dataset_from_slices, error);
}

/* Dataset.enumerate is a zip with a range up to INT64_MAX. No run gets as far as the end of so many elements: a range
 * with more than MR_POSITION_SAVED_MAX ends there. */
static int64_t reachable_stop(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? start >= stop : start <= stop) return stop;
    uint64_t distance = step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if ((distance - 1) / stride < MR_POSITION_SAVED_MAX) return stop;
    return (int64_t)((uint64_t)start + (uint64_t)step * MR_POSITION_SAVED_MAX);
}

static mr_status range(mr_kernel_call *call, mr_error *error)
{
    int64_t start, stop, step;
    MR_TRY(mr_data_int(call, 0, "start", &start, error));
    MR_TRY(mr_data_int(call, 1, "stop", &stop, error));
    MR_TRY(mr_data_int(call, 2, "step", &step, error));
    if (step == 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "step must be a non-zero integer.");
    const mr_attr *types = mr_attrs_find(call->node->attrs, "output_types");
    if (types && types->count == 1 && types->values[0].type != MR_INT64)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a range of %s",
                              mr_dtype_name((mr_dtype)types->values[0].type));
    return mr_data_output(call, mr_dataset_range(start, reachable_stop(start, stop, step), step), error);
}

/* ---- Files ---- */

typedef struct paths {
    mr_arena arena;
    const char **items;
    int32_t count;
} paths;

static mr_status read_paths(const mr_kernel_call *call, paths *p, mr_error *error)
{
    const mr_tensor *names = &call->inputs[0];
    int64_t count = mr_tensor_count(names);
    *p = (paths){0};
    if (names->shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
    if (count > INT32_MAX / 2) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "too many files");
    p->items = MR_ARENA_NEW(&p->arena, const char *, (size_t)count + 1);
    if (!p->items) return mr_fail_memory(error, (size_t)count * sizeof *p->items);
    for (int64_t i = 0; i < count; i++) {
        mr_string name = mr_tensor_strings(names)[i];
        if (name.size_bytes > 0 && memchr(name.data, 0, name.size_bytes))
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "a file name contains a NUL byte");
        p->items[i] = mr_arena_strndup(&p->arena, name.data ? name.data : "", name.size_bytes);
        if (!p->items[i]) return mr_fail_memory(error, name.size_bytes);
    }
    p->count = (int32_t)count;
    return MR_OK;
}

static mr_status check_compression(const mr_kernel_call *call, int32_t input, mr_error *error)
{
    mr_string type;
    MR_TRY(mr_data_string(call, input, "compression_type", &type, error));
    if (type.size_bytes == 0 || mr_string_equal(type, MR_STR("GZIP")) || mr_string_equal(type, MR_STR("ZLIB")))
        return MR_OK;
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Unsupported compression_type.");
}

static mr_status records(mr_kernel_call *call, mr_error *error)
{
    paths p;
    MR_TRY(check_compression(call, 1, error));
    mr_status status = read_paths(call, &p, error);
    if (status == MR_OK) {
        mr_dataset *dataset = mr_dataset_record_files(p.items, p.count);
        if (dataset != nullptr && dataset->failure != nullptr && dataset->failure->status == MR_DATA_LOSS) {
            mr_dataset_free(dataset);
            dataset = mr_dataset_record_stream(p.items, p.count);
        }
        status = mr_data_output(call, dataset, error);
    }
    mr_arena_deinit(&p.arena);
    return status;
}

typedef struct file_options {
    bool has_lines;
    size_t record_bytes;
    mr_fixed_length_options fixed;
    const mr_csv_column *columns;
    int32_t column_count; /* 0: no CSV */
    mr_csv_options csv;
} file_options;

static mr_dataset *one_file(const char *path, const file_options *options)
{
    if (options->column_count > 0) return mr_dataset_csv_(path, options->columns, options->column_count, &options->csv);
    return options->has_lines ? mr_dataset_text_lines(path)
                              : mr_dataset_fixed_length_(path, options->record_bytes, &options->fixed);
}

/* Files one after the other. */
static mr_status files(mr_kernel_call *call, const file_options *options, mr_error *error)
{
    paths p;
    mr_status status = read_paths(call, &p, error);
    mr_dataset *all = nullptr;
    if (status == MR_OK && p.count == 0)
        status = mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "a dataset of no files");
    for (int32_t i = 0; i < p.count && status == MR_OK; i++) {
        mr_dataset *file = one_file(p.items[i], options);
        all = all ? mr_dataset_concatenate(all, file) : file;
    }
    if (status == MR_OK) status = mr_data_output(call, all, error);
    mr_arena_deinit(&p.arena);
    return status;
}

static mr_status lines(mr_kernel_call *call, mr_error *error)
{
    MR_TRY(check_compression(call, 1, error));
    return files(call, &(file_options){.has_lines = true}, error);
}

static mr_status fixed_length(mr_kernel_call *call, mr_error *error)
{
    int64_t header, record, footer;
    MR_TRY(mr_data_int(call, 1, "header_bytes", &header, error));
    MR_TRY(mr_data_int(call, 2, "record_bytes", &record, error));
    MR_TRY(mr_data_int(call, 3, "footer_bytes", &footer, error));
    if (header < 0 || footer < 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`header_bytes` and `footer_bytes` must be >= 0");
    if (record <= 0) return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`record_bytes` must be > 0");
    if (call->node->input_count > 5) MR_TRY(check_compression(call, 5, error));
    file_options options = {
        .record_bytes = (size_t)record,
        .fixed = {.size = sizeof options.fixed, .header_bytes = (size_t)header, .footer_bytes = (size_t)footer}};
    return files(call, &options, error);
}

/* ---- CSV ---- */

static mr_status check_columns(const mr_kernel_call *call, const mr_tensor *columns, const char *name, mr_error *error)
{
    if (columns->shape.rank != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "`%s` must be a vector.", name);
    const int64_t *indices = mr_tensor_int64s(columns);
    for (int64_t i = 0; i < columns->shape.dims[0]; i++) {
        if (i > 0 && indices[i - 1] >= indices[i])
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s should be strictly increasing indices",
                                  name);
        if (indices[i] < 0 || indices[i] > INT32_MAX / 2)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s should be non-negative indices", name);
    }
    return MR_OK;
}

/* The columns of the file, and how many it must have: all unless some are selected. */
static mr_status choose_columns(const mr_kernel_call *call, mr_csv_column *columns, int32_t count, int32_t *cells,
                                mr_error *error)
{
    const mr_tensor *selected = &call->inputs[7];
    const mr_tensor *excluded = call->node->input_count > 8 + count ? &call->inputs[8 + count] : nullptr;
    MR_TRY(check_columns(call, selected, "select_cols", error));
    if (excluded) MR_TRY(check_columns(call, excluded, "exclude_cols", error));
    int64_t chosen = mr_tensor_count(selected), left_out = excluded ? mr_tensor_count(excluded) : 0;
    if (chosen > 0 && chosen != count)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "select_cols should match output size");
    if (chosen > 0 && left_out > 0)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "Either select_cols or exclude_cols should be empty");
    int32_t index = 0;
    int64_t skipped = 0;
    for (int32_t i = 0; i < count; i++) {
        if (chosen > 0) index = (int32_t)mr_tensor_int64s(selected)[i];
        for (; skipped < left_out && mr_tensor_int64s(excluded)[skipped] == index; skipped++) index++;
        columns[i].index = index++;
    }
    *cells = chosen > 0 || skipped < left_out ? 0 : index;
    return MR_OK;
}

static mr_status read_defaults(const mr_kernel_call *call, mr_csv_column *columns, mr_tensor *defaults, int32_t count,
                               mr_error *error)
{
    for (int32_t i = 0; i < count; i++) {
        const mr_tensor *value = &call->inputs[8 + i];
        if (value->shape.rank > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "Each record default should be at most rank 1");
        if (mr_tensor_count(value) > 1)
            return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                  "There should only be 1 default per field but field %d has %lld", (int)i,
                                  (long long)mr_tensor_count(value));
        columns[i].dtype = value->dtype;
        defaults[i] = *value;
        defaults[i].shape = MR_SCALAR;
        if (mr_tensor_count(value) == 1) columns[i].default_value = &defaults[i];
    }
    return MR_OK;
}

static mr_status csv(mr_kernel_call *call, mr_error *error)
{
    mr_csv_column columns[MR_COMPONENTS_MAX] = {0};
    mr_tensor defaults[MR_COMPONENTS_MAX];
    file_options options = {.csv.size = sizeof options.csv, .columns = columns};
    mr_string separator, missing;
    bool has_quotes;
    const mr_attr *types = mr_attrs_find(call->node->attrs, "output_types");
    int32_t count = types ? types->count : 0;
    if (count < 1 || count > MR_COMPONENTS_MAX || call->node->input_count < 8 + count)
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "%d columns, more than %d", (int)count,
                              MR_COMPONENTS_MAX);
    MR_TRY(check_compression(call, 1, error));
    MR_TRY(mr_data_bool(call, 3, "header", &options.csv.has_header, error));
    MR_TRY(mr_data_string(call, 4, "field_delim", &separator, error));
    MR_TRY(mr_data_bool(call, 5, "use_quote_delim", &has_quotes, error));
    MR_TRY(mr_data_string(call, 6, "na_value", &missing, error));
    if (separator.size_bytes != 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "field_delim should be only 1 char");
    if (separator.data[0] == 0 || (missing.size_bytes > 0 && memchr(missing.data, 0, missing.size_bytes)))
        return mr_kernel_fail(call->node, error, MR_UNIMPLEMENTED, "field_delim or na_value contains a NUL byte");
    MR_TRY(read_defaults(call, columns, defaults, count, error));
    MR_TRY(choose_columns(call, columns, count, &options.csv.column_count, error));
    char *text = strndup(missing.data ? missing.data : "", missing.size_bytes);
    if (!text) return mr_fail_memory(error, missing.size_bytes);
    options.column_count = count;
    options.csv.separator = separator.data[0];
    options.csv.no_quotes = !has_quotes;
    options.csv.na_value = text;
    mr_status status = files(call, &options, error);
    free(text);
    return status;
}

static mr_status sparse_slices(mr_kernel_call *call, mr_error *error)
{
    return mr_data_output(call, mr_dataset_from_sparse_slices(&call->inputs[0], &call->inputs[1], &call->inputs[2]),
                          error);
}

/* The names of the files that match: sorted, pattern after pattern. */
static mr_status matching_files(mr_kernel_call *call, mr_error *error)
{
    const mr_tensor *patterns = &call->inputs[0];
    mr_arena arena = {0};
    glob_t found = {0};
    mr_status status = MR_OK;
    if (patterns->shape.rank > 1)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "`patterns` must be a scalar or a vector of strings.");
    int64_t count = mr_tensor_count(patterns);
    for (int64_t i = 0; i < count && status == MR_OK; i++) {
        mr_string pattern = mr_tensor_strings(patterns)[i];
        const char *text = mr_arena_strndup(&arena, pattern.data ? pattern.data : "", pattern.size_bytes);
        if (!text || glob(text, i > 0 ? GLOB_APPEND : 0, nullptr, &found) == GLOB_NOSPACE)
            status = mr_fail_memory(error, pattern.size_bytes);
    }
    mr_string *names = MR_ARENA_NEW(&arena, mr_string, found.gl_pathc + 1);
    if (status == MR_OK && !names) status = mr_fail_memory(error, found.gl_pathc * sizeof *names);
    if (status == MR_OK && found.gl_pathc == 0)
        status = mr_kernel_fail(call->node, error, MR_NOT_FOUND, "Don't find any matched files");
    mr_tensor files = {0};
    for (size_t i = 0; i < found.gl_pathc && names; i++) names[i] = mr_string_from(found.gl_pathv[i]);
    if (status == MR_OK) status = mr_tensor_init_strings(&files, MR_SHAPE((int64_t)found.gl_pathc), names, error);
    if (status == MR_OK) status = mr_data_output(call, mr_dataset_from_slices(&files, 1), error);
    mr_tensor_deinit(&files);
    if (count > 0) globfree(&found);
    mr_arena_deinit(&arena);
    return status;
}

static const mr_kernel kernels[] = {
    {.op = "MatchingFilesDataset", .run = matching_files},
    {.op = "TensorDataset", .run = tensors},
    {.op = "TensorSliceDataset", .run = slices},
    {.op = "SparseTensorSliceDataset", .run = sparse_slices},
    {.op = "RangeDataset", .run = range},
    {.op = "TFRecordDataset", .run = records},
    {.op = "TextLineDataset", .run = lines},
    {.op = "FixedLengthRecordDataset", .run = fixed_length},
    {.op = "FixedLengthRecordDatasetV2", .run = fixed_length},
    {.op = "CSVDataset", .run = csv},
    {.op = "CSVDatasetV2", .run = csv},
};
const mr_kernel_table mr_data_kernels_sources = {kernels, sizeof kernels / sizeof kernels[0]};
