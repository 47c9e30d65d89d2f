/* map with a function in other processes (processes.h). Rows are mapped in blocks, whose layout the public header
 * describes. A process may write anywhere in its area at any time: each number is read once, and checked. */
#include "base/status.h"
#include "pipeline/block.h"
#include "pipeline/processes.h"

#include <stdlib.h>
#include <string.h>

constexpr uint64_t ALIGNMENT = 64, PROGRESS_WORDS = 8, ROW_WORDS = 4, FIELD_WORDS = 15;
static_assert(3 + MR_RANK_MAX <= FIELD_WORDS);
/* A layout that does not fit into an area ends here. */
constexpr uint64_t TOO_LARGE = 2 * MR_PROCESSES_AREA_BYTES;
/* A block has fewer rows if those of fixed size have more bytes. */
constexpr uint64_t FIXED_BYTES_MAX = (uint64_t)16 << 20;
/* Smaller blocks of one row are not counted in the budget. */
constexpr uint64_t RESERVED_BYTES = (uint64_t)1 << 20;

/* A row whose process has ended. */
typedef struct mr_block_failure {
    struct mr_block_failure *next;
    uint64_t row;
    mr_error reason;
} mr_block_failure;

typedef struct process_map_settings {
    mr_processes *processes;
    mr_process_map_options options;
} process_map_settings;

static uint64_t align(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_fixed(const mr_element_spec *spec, int32_t i)
{
    return spec->dtypes[i] != MR_STRING && mr_shape_count(spec->shapes[i]) >= 0;
}

/* Reserves count x size_bytes, and returns where they begin. */
static uint64_t place(uint64_t *end, uint64_t count, uint64_t size_bytes)
{
    uint64_t begin = *end, all_bytes;
    bool fits = !__builtin_mul_overflow(count, size_bytes, &all_bytes) && begin <= MR_PROCESSES_AREA_BYTES &&
                all_bytes <= MR_PROCESSES_AREA_BYTES - begin;
    *end = fits ? align(begin + all_bytes) : TOO_LARGE;
    return begin;
}

/* For all components of variable size of an element. */
static uint64_t fields_bytes(const mr_element_spec *spec)
{
    uint64_t count = 0;
    for (int32_t i = 0; i < spec->count; i++) count += !is_fixed(spec, i);
    return count * FIELD_WORDS * sizeof(uint64_t);
}

/* 0: the component has no fixed size; TOO_LARGE at most. */
static uint64_t fixed_bytes(const mr_element_spec *spec, int32_t i)
{
    uint64_t size_bytes;
    if (!is_fixed(spec, i)) return 0;
    uint64_t count = (uint64_t)mr_shape_count(spec->shapes[i]);
    if (__builtin_mul_overflow(count, mr_dtype_size(spec->dtypes[i]), &size_bytes)) return TOO_LARGE;
    return size_bytes < TOO_LARGE ? size_bytes : TOO_LARGE;
}

static void place_arrays(const mr_element_spec *spec, uint64_t rows, uint64_t *end, uint64_t *arrays)
{
    for (int32_t i = 0; i < spec->count; i++) arrays[i] = place(end, rows, fixed_bytes(spec, i));
}

static mr_block_layout layout_of(const mr_dataset *dataset, int32_t rows_max)
{
    uint64_t rows = (uint64_t)rows_max, end = PROGRESS_WORDS * sizeof(uint64_t);
    mr_block_layout l = {
        .rows = place(&end, rows, ROW_WORDS * sizeof(uint64_t)),
        .input_fields_bytes = fields_bytes(&dataset->input->spec),
        .output_fields_bytes = fields_bytes(&dataset->spec),
    };
    l.inputs = place(&end, rows, l.input_fields_bytes);
    l.outputs = place(&end, rows, l.output_fields_bytes);
    place_arrays(&dataset->input->spec, rows, &end, l.input_arrays);
    place_arrays(&dataset->spec, rows, &end, l.output_arrays);
    l.heap = end;
    return l;
}

static uint64_t *words(const mr_block *block, uint64_t offset)
{
    void *at = block->area->data + offset;
    return at;
}

static uint64_t read_word(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static const process_map_settings *settings_of(const mr_block *block)
{
    return block->work->dataset->settings;
}

int32_t mr_block_rows(const mr_work *work, int32_t rows_max)
{
    const mr_dataset *dataset = work->dataset;
    uint64_t row_bytes = 0;
    for (int32_t i = 0; i < dataset->input->spec.count; i++) row_bytes += fixed_bytes(&dataset->input->spec, i);
    for (int32_t i = 0; i < dataset->spec.count; i++) row_bytes += fixed_bytes(&dataset->spec, i);
    uint64_t rows = row_bytes > 0 ? FIXED_BYTES_MAX / row_bytes : MR_BLOCK_ROWS_MAX;
    rows = rows < MR_BLOCK_ROWS_MAX ? rows : MR_BLOCK_ROWS_MAX;
    if (rows < 1) rows = 1;
    return rows < (uint64_t)rows_max ? (int32_t)rows : rows_max;
}

size_t mr_block_fixed_bytes(const mr_work *work, int32_t rows_max)
{
    return layout_of(work->dataset, rows_max).heap;
}

mr_status mr_block_begin(mr_block *block, const mr_work *work, int32_t rows_max, mr_error *error)
{
    assert(mr_work_maps_blocks(work) && rows_max >= 1 && rows_max <= MR_BLOCK_ROWS_MAX);
    *block = (mr_block){.work = work, .layout = layout_of(work->dataset, rows_max), .rows_max = rows_max};
    MR_TRY(mr_area_acquire(settings_of(block)->processes, &block->area, error));
    mr_status status = mr_area_reserve(block->area, block->layout.heap, error);
    if (status != MR_OK) {
        mr_block_end(block);
        return status;
    }
    block->end_bytes = block->layout.heap;
    return MR_OK;
}

void mr_block_end(mr_block *block)
{
    while (block->failures != nullptr) {
        mr_block_failure *failure = block->failures;
        block->failures = failure->next;
        free(failure);
    }
    if (block->area != nullptr) mr_area_release(block->area);
    block->area = nullptr;
}

bool mr_block_is_full(const mr_block *block)
{
    return block->rows == block->rows_max || block->end_bytes - block->layout.heap >= MR_BLOCK_BYTES;
}

/* ---- Inputs ---- */

static uint64_t value_bytes(const mr_value *value)
{
    uint64_t count = (uint64_t)mr_shape_count(value->shape);
    if (value->dtype != MR_STRING) return count * mr_dtype_size(value->dtype);
    uint64_t size_bytes = count * sizeof(uint64_t);
    for (uint64_t k = 0; k < count; k++) size_bytes += ((const mr_string *)value->data)[k].size_bytes;
    return size_bytes;
}

static void copy_strings(char *target, const mr_value *value)
{
    uint64_t count = (uint64_t)mr_shape_count(value->shape);
    const mr_string *strings = value->data;
    char *bytes = target + count * sizeof(uint64_t);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t size_bytes = strings[k].size_bytes;
        memcpy(target + k * sizeof size_bytes, &size_bytes, sizeof size_bytes);
        if (size_bytes > 0) memcpy(bytes, strings[k].data, size_bytes);
        bytes += size_bytes;
    }
}

/* A component of variable size: appends its elements to the heap. */
static mr_status add_variable(mr_block *block, uint64_t field, const mr_value *value, uint64_t *end, mr_error *error)
{
    uint64_t size_bytes = value_bytes(value);
    MR_TRY(mr_area_reserve(block->area, align(*end + size_bytes), error));
    uint64_t *word = words(block, field);
    word[0] = *end;
    word[1] = size_bytes;
    word[2] = (uint64_t)value->shape.rank;
    for (int32_t d = 0; d < value->shape.rank; d++) word[3 + d] = (uint64_t)value->shape.dims[d];
    if (value->dtype == MR_STRING)
        copy_strings(block->area->data + *end, value);
    else if (size_bytes > 0)
        memcpy(block->area->data + *end, value->data, size_bytes);
    *end = align(*end + size_bytes);
    return MR_OK;
}

mr_status mr_block_add(mr_block *block, uint64_t epoch, uint64_t number, mr_workspace *workspace, mr_error *error)
{
    const mr_work *work = block->work;
    const mr_element_spec *spec = &work->dataset->input->spec;
    const mr_block_layout *l = &block->layout;
    uint64_t row = (uint64_t)block->rows, field = l->inputs + row * l->input_fields_bytes, end = block->end_bytes;
    assert(block->rows < block->rows_max && workspace->count == spec->count);
    for (int32_t i = 0; i < spec->count; i++) {
        const mr_value *value = &workspace->values[i];
        if (!is_fixed(spec, i)) {
            MR_TRY(add_variable(block, field, value, &end, error));
            field += FIELD_WORDS * sizeof(uint64_t);
            continue;
        }
        size_t row_bytes = mr_spec_row_bytes(spec, i);
        if (value->dtype != spec->dtypes[i] || !mr_shape_equal(value->shape, spec->shapes[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "component %d does not have the dtype and shape of the input",
                           i);
        if (row_bytes > 0) memcpy(block->area->data + l->input_arrays[i] + row * row_bytes, value->data, row_bytes);
    }
    uint64_t *header = words(block, l->rows) + row * ROW_WORDS;
    memset(header, 0, ROW_WORDS * sizeof *header);
    if (mr_processes_are_random(settings_of(block)->processes)) {
        mr_random random = mr_random_at(work->seed, epoch, number, work->purpose);
        header[2] = mr_random_below(&random, (uint64_t)1 << 63);
        header[3] = mr_random_below(&random, (uint64_t)1 << 63);
    }
    block->end_bytes = end;
    block->rows++;
    return MR_OK;
}

/* ---- Running ---- */

/* The process has ended in this row. The failure is not in the area, where processes could damage it. */
static mr_status fail_row(mr_block *block, uint64_t row, const mr_error *reason, mr_error *error)
{
    mr_block_failure *failure = malloc(sizeof *failure);
    if (failure == nullptr) return mr_fail_memory(error, sizeof *failure);
    *failure = (mr_block_failure){.next = block->failures, .row = row, .reason = *reason};
    block->failures = failure;
    return MR_OK;
}

/* After a process has ended: the row that it was working on. What it has appended to the heap is kept. */
static mr_status find_end(mr_block *block, uint64_t first, uint64_t *row, mr_error *error)
{
    uint64_t at = read_word(words(block, 0)), used = read_word(words(block, 0) + 1);
    *row = at >= first && at < (uint64_t)block->rows ? at : first;
    if (used <= block->end_bytes || used > MR_PROCESSES_AREA_BYTES) return MR_OK;
    MR_TRY(mr_area_reserve(block->area, used, error));
    block->end_bytes = used;
    return MR_OK;
}

mr_status mr_block_run(mr_block *block, const _Atomic bool *stop, mr_error *error)
{
    for (uint64_t first = 0; first < (uint64_t)block->rows;) {
        mr_error reason = {0};
        uint64_t end_bytes = block->end_bytes;
        words(block, 0)[0] = first;
        words(block, 0)[1] = 0;
        mr_status status =
            mr_area_exchange(block->area, block->rows_max, block->rows, (int32_t)first, &end_bytes, stop, &reason);
        if (status == MR_OK) {
            if (end_bytes > block->end_bytes) MR_TRY(mr_area_reserve(block->area, end_bytes, error));
            block->end_bytes = end_bytes > block->end_bytes ? end_bytes : block->end_bytes;
            return MR_OK;
        }
        if (status == MR_CANCELLED && stop != nullptr && atomic_load(stop)) {
            if (error != nullptr) *error = reason;
            return status;
        }
        /* The rows before have been mapped; those after it are mapped by another process. */
        uint64_t at;
        MR_TRY(find_end(block, first, &at, error));
        reason.status = status;
        MR_TRY(fail_row(block, at, &reason, error));
        first = at + 1;
    }
    return MR_OK;
}

/* ---- Outputs ---- */

static mr_status fail_damaged(int32_t i, mr_error *error)
{
    return mr_fail(error, MR_INTERNAL, "component %d: the worker process has damaged the shared memory", i);
}

/* The strings of a component whose elements are at data. */
static mr_status take_strings(mr_workspace *workspace, mr_value *value, const uint64_t *sizes, uint64_t size_bytes,
                              mr_error *error)
{
    uint64_t count = (uint64_t)mr_shape_count(value->shape);
    int32_t index = (int32_t)(value - workspace->values);
    if (count > size_bytes / sizeof(uint64_t)) return fail_damaged(index, error);
    mr_string *strings = &value->string;
    if (count != 1) strings = mr_arena_alloc(&workspace->scratch, count * sizeof *strings + 1);
    if (strings == nullptr) return mr_fail_memory(error, count * sizeof *strings);
    uint64_t at = count * sizeof(uint64_t);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t string_bytes = read_word(&sizes[k]);
        if (string_bytes > size_bytes - at) return fail_damaged(index, error);
        strings[k] = (mr_string){.data = (char *)sizes + at, .size_bytes = string_bytes};
        at += string_bytes;
    }
    value->data = strings;
    return MR_OK;
}

static mr_status take_variable(const mr_block *block, uint64_t field, int32_t i, mr_workspace *workspace,
                               mr_error *error)
{
    const mr_element_spec *spec = &block->work->dataset->spec;
    const uint64_t *word = words(block, field);
    mr_value *value = &workspace->values[i];
    uint64_t offset = read_word(&word[0]), size_bytes = read_word(&word[1]), rank = read_word(&word[2]);
    if (offset > block->end_bytes || size_bytes > block->end_bytes - offset || offset % ALIGNMENT != 0 ||
        rank > MR_RANK_MAX)
        return fail_damaged(i, error);
    value->shape = (mr_shape){.rank = (int32_t)rank};
    for (uint64_t d = 0; d < rank; d++) value->shape.dims[d] = (int64_t)read_word(&word[3 + d]);
    int64_t count = mr_shape_count(value->shape);
    if (count < 0) return fail_damaged(i, error);
    if (!mr_shape_compatible(value->shape, spec->shapes[i]))
        return mr_fail(error, MR_INVALID_ARGUMENT, "component %d of the result does not have the expected shape", i);
    value->data = block->area->data + offset;
    if (value->dtype == MR_STRING) return take_strings(workspace, value, words(block, offset), size_bytes, error);
    return (uint64_t)count == size_bytes / mr_dtype_size(value->dtype) ? MR_OK : fail_damaged(i, error);
}

/* The failure of a row that its process has described. */
static mr_status described_failure(const mr_block *block, const uint64_t *header, mr_error *error)
{
    uint64_t offset = read_word(&header[1]), size_bytes;
    if (offset > block->end_bytes || block->end_bytes - offset < sizeof size_bytes || offset % sizeof size_bytes != 0)
        return fail_damaged(0, error);
    size_bytes = read_word(words(block, offset));
    offset += sizeof size_bytes;
    if (size_bytes > block->end_bytes - offset) return fail_damaged(0, error);
    return mr_processes_failure(settings_of(block)->processes, block->area->data + offset, size_bytes, error);
}

static mr_status row_failure(const mr_block *block, uint64_t row, mr_error *error)
{
    mr_status status = MR_OK;
    for (const mr_block_failure *f = block->failures; f != nullptr && status == MR_OK; f = f->next) {
        if (f->row != row) continue;
        if (error != nullptr) *error = f->reason;
        status = f->reason.status;
    }
    const uint64_t *header = words(block, block->layout.rows) + row * ROW_WORDS;
    if (status == MR_OK && read_word(header) != 0) status = described_failure(block, header, error);
    return status == MR_OUT_OF_RANGE ? mr_fail_out_of_range(error) : status;
}

static mr_status own_values(mr_workspace *workspace, mr_error *error)
{
    for (int32_t i = 0; i < workspace->count; i++) {
        mr_tensor tensor = {0};
        MR_TRY(mr_value_to_tensor(&workspace->values[i], &tensor, error));
        mr_value_take(&workspace->values[i], &tensor);
    }
    return MR_OK;
}

mr_status mr_block_take(mr_block *block, int32_t row, bool copies, mr_workspace *workspace, mr_error *error)
{
    const mr_element_spec *spec = &block->work->dataset->spec;
    const mr_block_layout *l = &block->layout;
    assert(row >= 0 && row < block->rows && workspace->count == 0);
    MR_TRY(row_failure(block, (uint64_t)row, error));
    uint64_t field = l->outputs + (uint64_t)row * l->output_fields_bytes;
    workspace->count = spec->count;
    for (int32_t i = 0; i < spec->count; i++) {
        mr_value *value = &workspace->values[i];
        value->dtype = spec->dtypes[i];
        value->is_in_row = false;
        value->tensor = (mr_tensor){0};
        if (is_fixed(spec, i)) {
            value->shape = spec->shapes[i];
            value->data = block->area->data + l->output_arrays[i] + (uint64_t)row * mr_spec_row_bytes(spec, i);
            continue;
        }
        MR_TRY(take_variable(block, field, i, workspace, error));
        field += FIELD_WORDS * sizeof(uint64_t);
    }
    return copies ? own_values(workspace, error) : MR_OK;
}

/* ---- The dataset ---- */

static uint64_t process_map_digest(const mr_dataset *dataset)
{
    const process_map_settings *s = dataset->settings;
    return mr_digest(s->options.seed, (uint64_t)dataset->spec.count);
}

/* A block of one row: for complete batches, and for maps after another one. Values that the caller keeps must not
 * borrow from the area. */
static mr_status process_map_work(const mr_work *work, uint64_t epoch, uint64_t number, mr_workspace *workspace,
                                  mr_error *error)
{
    mr_block block;
    uint64_t size_bytes = mr_block_fixed_bytes(work, 1);
    for (int32_t i = 0; i < workspace->count; i++) size_bytes += value_bytes(&workspace->values[i]);
    if (size_bytes >= RESERVED_BYTES && size_bytes < TOO_LARGE) workspace->reserve(workspace, size_bytes);
    MR_TRY(mr_block_begin(&block, work, 1, error));
    mr_status status = mr_block_add(&block, epoch, number, workspace, error);
    if (status == MR_OK) status = mr_block_run(&block, workspace->stop, error);
    if (status == MR_OK) {
        for (int32_t i = 0; i < workspace->count; i++) mr_value_deinit(&workspace->values[i]);
        workspace->count = 0;
        status = mr_block_take(&block, 0, true, workspace, error);
    }
    mr_block_end(&block);
    return status;
}

static void process_map_deinit(mr_dataset *dataset)
{
    mr_processes_free(((const process_map_settings *)dataset->settings)->processes);
}

/* The name and the digest of map: states and caches are the same. */
static const mr_dataset_kind process_map_kind = {.name = "map",
                                                 .role = MR_ROLE_WORK,
                                                 .digest = process_map_digest,
                                                 .work = process_map_work,
                                                 .deinit = process_map_deinit};

bool mr_work_maps_blocks(const mr_work *work)
{
    return work->dataset->kind == &process_map_kind;
}

/* Resources cannot leave the process. */
static mr_dataset *check_dtypes(mr_dataset *dataset, const mr_element_spec *spec, const char *what)
{
    for (int32_t i = 0; i < spec->count; i++)
        if (spec->dtypes[i] == MR_RESOURCE || spec->dtypes[i] == MR_VARIANT)
            return mr_dataset_fail(dataset, MR_INVALID_ARGUMENT,
                                   "map: component %d of the %s cannot be passed to another process", i, what);
    return dataset;
}

mr_dataset *mr_dataset_map_in_processes_(mr_dataset *input, mr_processes *processes, const mr_element_spec *spec,
                                         const mr_process_map_options *given)
{
    mr_process_map_options options;
    input = MR_DATASET_READ(mr_process_map_options, &options, input, given);
    mr_dataset *dataset = mr_dataset_new(&process_map_kind, input, sizeof(process_map_settings));
    if (mr_dataset_is_unallocated(dataset)) {
        mr_processes_free(processes);
        return dataset;
    }
    *(process_map_settings *)dataset->settings = (process_map_settings){processes, options};
    if (mr_dataset_failed(dataset)) return dataset;
    if (mr_dataset_failed(mr_dataset_require(dataset, processes != nullptr, "processes"))) return dataset;
    if (mr_dataset_failed(mr_dataset_check_threads(dataset, options.num_parallel_calls))) return dataset;
    if (mr_dataset_failed(check_dtypes(dataset, &input->spec, "input"))) return dataset;
    dataset->is_heavy = true;
    dataset->seed = options.seed;
    if (mr_dataset_failed(mr_dataset_take_spec(dataset, spec))) return dataset;
    return check_dtypes(dataset, &dataset->spec, "result");
}

int32_t mr_process_map_threads(const mr_dataset *dataset)
{
    if (dataset->kind != &process_map_kind) return 0;
    return ((const process_map_settings *)dataset->settings)->options.num_parallel_calls;
}
