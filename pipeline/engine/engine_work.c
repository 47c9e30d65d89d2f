/* Work: what a worker does with a task, the rows of a slot that it has taken, without the lock. */
#include "pipeline/block.h"
#include "pipeline/engine/engine_internal.h"

#include <assert.h>
#include <millrace/processes.h>

/* Of tasks with more rows than this, only every SAMPLE-th row is timed, and counted SAMPLE times. */
constexpr int32_t SAMPLE = 8;
/* Prefetch distance in rows. Shuffled rows are not in cache. */
constexpr int32_t AHEAD = 8;

static void tally(mr_tally *t, uint64_t elements, uint64_t bytes, uint64_t busy_ns)
{
    t->elements += elements;
    t->bytes += bytes;
    t->busy_ns += busy_ns;
}

static uint64_t values_bytes(const mr_workspace *workspace)
{
    uint64_t size_bytes = 0;
    for (int32_t i = 0; i < workspace->count; i++) {
        const mr_value *value = &workspace->values[i];
        int64_t count = mr_shape_count(value->shape);
        if (value->dtype != MR_STRING)
            size_bytes += (uint64_t)count * mr_dtype_size(value->dtype);
        else
            for (int64_t k = 0; k < count; k++) size_bytes += ((const mr_string *)value->data)[k].size_bytes;
    }
    return size_bytes;
}

/* Reads the item's components into the workspace. */
static mr_status read_item(const mr_engine *engine, mr_item *item, mr_workspace *workspace, mr_error *error)
{
    if (item->payload == nullptr) {
        assert(engine->plan.source != nullptr);
        assert(engine->plan.source->count < 0 || item->number < (uint64_t)engine->plan.source->count);
        return engine->plan.source->kind->read(engine->plan.source, item->number, workspace, error);
    }
    assert(item->payload->count >= 0 && item->payload->count <= MR_COMPONENTS_MAX);
    workspace->count = item->payload->count;
    for (int32_t i = 0; i < workspace->count; i++) mr_value_take(&workspace->values[i], &item->payload->tensors[i]);
    return MR_OK;
}

/* "decode_image: flowers-00001.tfrecord: record 17: ". */
static void prefix_location(const mr_engine *engine, const char *stage, const mr_item *item, mr_error *error)
{
    char where[512] = "";
    const mr_dataset *source = engine->plan.source;
    if (source != nullptr) source->kind->describe(source, item->number, where, sizeof where);
    mr_status status = error->status;
    if (source == nullptr)
        (void)mr_fail_prefix(error, status, "%s: element %llu", stage, (unsigned long long)item->number);
    else if (stage != source->kind->name)
        (void)mr_fail_prefix(error, status, "%s: %s", stage, where);
    else
        (void)mr_fail_prefix(error, status, "%s", stage);
}

/* The whole struct is not cleared, because the message is long. */
static void clear_error(mr_error *error)
{
    error->status = MR_OK;
    error->message[0] = '\0';
}

/* What is known about the row that is being processed. */
typedef struct row_state {
    int32_t row;
    int32_t weight;    /* how often its times are counted; 0: it is not timed */
    const char *stage; /* that processes it */
    uint64_t start_ns; /* of that stage */
} row_state;

static mr_status start_row(mr_engine *engine, mr_worker *worker, mr_slot *slot, row_state *r)
{
    mr_workspace *workspace = &worker->workspace;
    mr_item *item = &slot->items[r->row];
    assert(r->row >= 0 && r->row < slot->rows && workspace->count == 0 && !workspace->is_dropped);
    mr_slot_set_rows(slot, r->row, workspace);
    r->stage = engine->plan.source != nullptr ? engine->plan.source->kind->name : engine->plan.last->kind->name;
    mr_note_element(&worker->note, item->number, MR_NOTE_RECORD);
    mr_note_stage(&worker->note, r->stage);
    clear_error(&workspace->error);
    r->start_ns = r->weight > 0 ? mr_now_ns() : 0;
    if (r->weight > 0) mr_note_since(&worker->note, r->start_ns);
    mr_status status = read_item(engine, item, workspace, &workspace->error);
    if (r->weight > 0 && item->payload == nullptr) {
        uint64_t now_ns = mr_now_ns();
        tally(&worker->tallies[0], 0, status == MR_OK ? values_bytes(workspace) * (uint64_t)r->weight : 0,
              (now_ns - r->start_ns) * (uint64_t)r->weight);
        r->start_ns = now_ns;
    }
    return status;
}

/* The works from begin to end - 1. */
static mr_status do_works(mr_engine *engine, mr_worker *worker, const mr_item *item, row_state *r, int32_t begin,
                          int32_t end)
{
    mr_workspace *workspace = &worker->workspace;
    mr_status status = MR_OK;
    for (int32_t i = begin; i < end && status == MR_OK && !workspace->is_dropped; i++) {
        const mr_work *work = &engine->plan.works[i];
        r->stage = work->dataset->kind->name;
        mr_note_stage(&worker->note, r->stage);
        if (r->weight > 0) mr_note_since(&worker->note, r->start_ns);
        status = work->dataset->kind->work(work, item->epoch, item->number, workspace, &workspace->error);
        worker->tallies[i + 1].elements++;
        if (r->weight == 0) continue;
        uint64_t now_ns = mr_now_ns();
        tally(&worker->tallies[i + 1], 0, status == MR_OK ? values_bytes(workspace) * (uint64_t)r->weight : 0,
              (now_ns - r->start_ns) * (uint64_t)r->weight);
        r->start_ns = now_ns;
    }
    return status;
}

static void finish_row(mr_engine *engine, mr_worker *worker, mr_slot *slot, row_state *r, mr_status status)
{
    mr_workspace *workspace = &worker->workspace;
    if (workspace->is_dropped) {
        slot->is_row_dropped[r->row] = true;
    } else if (status == MR_OK) {
        assert(workspace->count == slot->plan->count);
        r->stage = engine->plan.last->kind->name;
        status = mr_slot_store(slot, r->row, workspace, &workspace->error);
    }
    if (status != MR_OK) {
        workspace->error.status = status;
        prefix_location(engine, r->stage, &slot->items[r->row], &workspace->error);
        mr_slot_fail_row(slot, r->row, &workspace->error);
    }
    mr_workspace_clear(workspace);
}

static void do_row(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t row, int32_t weight)
{
    if (slot->failures[row] != nullptr) return;
    row_state r = {.row = row, .weight = weight};
    mr_status status = start_row(engine, worker, slot, &r);
    if (status == MR_OK) status = do_works(engine, worker, &slot->items[row], &r, 0, engine->plan.work_count);
    finish_row(engine, worker, slot, &r, status);
}

/* ---- Rows that are mapped in blocks ---- */

/* The first work that maps blocks; -1: none does. Later ones map row by row. */
static int32_t block_work(const mr_engine *engine)
{
    for (int32_t i = 0; i < engine->plan.work_count; i++)
        if (mr_work_maps_blocks(&engine->plan.works[i])) return i;
    return -1;
}

bool mr_engine_maps_blocks(const mr_engine *engine)
{
    return block_work(engine) >= 0;
}

/* Reads rows from `row` on and adds them to the block, until it is full. Returns the row after the last one; numbers of
 * the rows in the block are stored in `added`. */
static int32_t fill_block(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t row, int32_t end, int32_t at,
                          mr_block *block, int32_t *added)
{
    for (; row < end && !mr_block_is_full(block); row++) {
        if (slot->failures[row] != nullptr) continue;
        mr_workspace *workspace = &worker->workspace;
        mr_item *item = &slot->items[row];
        row_state r = {.row = row, .weight = row % SAMPLE == 0 ? SAMPLE : 0};
        mr_status status = start_row(engine, worker, slot, &r);
        if (status == MR_OK) status = do_works(engine, worker, item, &r, 0, at);
        if (status == MR_OK && !workspace->is_dropped) {
            r.stage = engine->plan.works[at].dataset->kind->name;
            status = mr_block_add(block, item->epoch, item->number, workspace, &workspace->error);
            if (status == MR_OK) {
                added[block->rows - 1] = row;
                mr_workspace_clear(workspace);
                continue;
            }
        }
        finish_row(engine, worker, slot, &r, status);
    }
    return row;
}

/* Counts a block's memory in the budget. *reserved_bytes are already counted for the task. */
static void reserve_block(mr_worker *worker, uint64_t block_bytes, uint64_t *reserved_bytes)
{
    worker->block_bytes = block_bytes;
    if (block_bytes <= *reserved_bytes || block_bytes > MR_PROCESSES_AREA_BYTES) return;
    worker->workspace.reserve(&worker->workspace, block_bytes - *reserved_bytes);
    *reserved_bytes = block_bytes;
}

/* Maps the rows in the block, and finishes them. */
static void run_block(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t at, mr_block *block,
                      const int32_t *added, uint64_t *reserved_bytes)
{
    mr_workspace *workspace = &worker->workspace;
    const char *stage = engine->plan.works[at].dataset->kind->name;
    bool copies = at + 1 < engine->plan.work_count;
    uint64_t start_ns = mr_now_ns();
    mr_note_stage(&worker->note, stage);
    mr_note_since(&worker->note, start_ns);
    mr_error *error = &worker->block_error;
    clear_error(error);
    mr_status run_status = mr_block_run(block, workspace->stop, error);
    reserve_block(worker, block->end_bytes, reserved_bytes);
    tally(&worker->tallies[at + 1], (uint64_t)block->rows, 0, mr_now_ns() - start_ns);
    for (int32_t k = 0; k < block->rows; k++) {
        row_state r = {.row = added[k], .weight = added[k] % SAMPLE == 0 ? SAMPLE : 0, .stage = stage};
        if (r.weight > 0) r.start_ns = mr_now_ns();
        clear_error(&workspace->error);
        mr_slot_set_rows(slot, r.row, workspace);
        mr_status status = run_status;
        if (status != MR_OK)
            workspace->error = *error;
        else
            status = mr_block_take(block, k, copies, workspace, &workspace->error);
        if (status == MR_OK)
            status = do_works(engine, worker, &slot->items[r.row], &r, at + 1, engine->plan.work_count);
        finish_row(engine, worker, slot, &r, status);
    }
}

static void do_block_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t row, int32_t end, int32_t at)
{
    const mr_work *work = &engine->plan.works[at];
    uint64_t reserved_bytes = 0;
    while (row < end && !atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed)) {
        mr_block block;
        int32_t rows_max = mr_block_rows(work, end - row);
        int32_t added[MR_BLOCK_ROWS_MAX] = {0};
        mr_error *error = &worker->block_error;
        clear_error(error);
        /* Elements of variable size probably need as much as before. */
        uint64_t fixed_bytes = mr_block_fixed_bytes(work, rows_max);
        uint64_t likely_bytes = worker->block_bytes > fixed_bytes ? worker->block_bytes : fixed_bytes;
        reserve_block(worker, likely_bytes, &reserved_bytes);
        mr_status status = mr_block_begin(&block, work, rows_max, error);
        if (status != MR_OK) {
            row_state r = {.row = row++, .stage = work->dataset->kind->name};
            if (slot->failures[r.row] != nullptr) continue;
            worker->workspace.error = *error;
            finish_row(engine, worker, slot, &r, status);
            continue;
        }
        row = fill_block(engine, worker, slot, row, end, at, &block, added);
        reserve_block(worker, block.end_bytes, &reserved_bytes);
        if (block.rows > 0) run_block(engine, worker, slot, at, &block, added, &reserved_bytes);
        mr_block_end(&block);
    }
}

static void flush_tallies(mr_engine *engine, mr_worker *worker)
{
    for (int32_t i = 0; i <= engine->plan.work_count; i++) {
        mr_counters *counters = i == 0 ? engine->plan.source_counters : engine->plan.works[i - 1].counters;
        mr_tally *t = &worker->tallies[i];
        if (counters != nullptr) {
            if (t->elements > 0) mr_count(&counters->elements, t->elements);
            if (t->bytes > 0) mr_count(&counters->bytes, t->bytes);
            if (t->busy_ns > 0) mr_count(&counters->busy_ns, t->busy_ns);
        }
        *t = (mr_tally){0};
    }
}

/* Copies rows that are unmodified source memory, in runs between rows that failed when they were pulled. */
static void copy_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t begin, int32_t end)
{
    const mr_dataset *source = engine->plan.source;
    uint64_t start_ns = mr_now_ns();
    mr_note_element(&worker->note, slot->items[begin].number, MR_NOTE_RECORD);
    mr_note_stage(&worker->note, source->kind->name);
    mr_note_since(&worker->note, start_ns);
    for (int32_t row = begin, next; row < end; row = next + 1) {
        for (next = row; next < end && slot->failures[next] == nullptr;) next++;
        if (next == row) continue;
        mr_slot_set_rows(slot, row, &worker->workspace);
        source->kind->copy(source, &slot->items[row], next - row, worker->workspace.rows);
    }
    uint64_t bytes = (uint64_t)(end - begin) * (slot->plan->fixed_bytes / (uint64_t)slot->plan->rows);
    tally(&worker->tallies[0], 0, bytes, mr_now_ns() - start_ns);
}

void mr_engine_do_rows(mr_engine *engine, mr_worker *worker, mr_slot *slot, int32_t begin, int32_t end)
{
    if (engine->copies) {
        copy_rows(engine, worker, slot, begin, end);
        flush_tallies(engine, worker);
        return;
    }
    int32_t block_at = block_work(engine);
    if (block_at >= 0) {
        do_block_rows(engine, worker, slot, begin, end, block_at);
        flush_tallies(engine, worker);
        return;
    }
    bool is_sampled = end - begin > SAMPLE;
    const mr_dataset *source = engine->plan.source;
    bool has_prefetch = source != nullptr && source->kind->prefetch != nullptr;
    for (int32_t row = begin; row < end; row++) {
        /* The rows will not be delivered any more. */
        if (atomic_load_explicit(&engine->is_cancelled, memory_order_relaxed)) break;
        if (has_prefetch && row + AHEAD < end) source->kind->prefetch(source, slot->items[row + AHEAD].number);
        int32_t weight = !is_sampled ? 1 : row % SAMPLE == 0 ? SAMPLE : 0;
        do_row(engine, worker, slot, row, weight);
    }
    flush_tallies(engine, worker);
}

void mr_engine_count_workspace(mr_engine *engine, mr_worker *worker)
{
    size_t workspace_bytes = mr_workspace_trim(&worker->workspace);
    if (workspace_bytes == worker->workspace_bytes) return;
    mr_budget_add(engine->plan.run, engine->plan.counters, (ptrdiff_t)(workspace_bytes - worker->workspace_bytes));
    worker->workspace_bytes = workspace_bytes;
}

/* The work after batch, on the complete batch. */
static mr_status do_batch_works(mr_engine *engine, mr_worker *worker, mr_slot *slot, const char **stage,
                                mr_error *error)
{
    mr_workspace *workspace = &worker->workspace;
    assert(workspace->count == 0 && slot->result_count <= MR_COMPONENTS_MAX);
    workspace->count = slot->result_count;
    for (int32_t c = 0; c < workspace->count; c++) mr_value_take(&workspace->values[c], &slot->results[c]);
    slot->result_count = 0;
    for (int32_t i = 0; i < engine->plan.batch_work_count; i++) {
        const mr_work *work = &engine->plan.batch_works[i];
        uint64_t start_ns = mr_now_ns();
        *stage = work->dataset->kind->name;
        mr_note_stage(&worker->note, *stage);
        mr_note_since(&worker->note, start_ns);
        MR_TRY(work->dataset->kind->work(work, slot->epoch, slot->number, workspace, error));
        mr_count(&work->counters->busy_ns, mr_now_ns() - start_ns);
        mr_count(&work->counters->elements, 1);
        mr_count(&work->counters->bytes, values_bytes(workspace));
    }
    for (int32_t c = 0; c < workspace->count; c++) {
        MR_TRY(mr_value_to_tensor(&workspace->values[c], &slot->results[c], error));
        slot->result_count = c + 1;
    }
    return MR_OK;
}

void mr_engine_do_batch(mr_engine *engine, mr_worker *worker, mr_slot *slot)
{
    mr_error *error = &worker->workspace.error;
    assert(slot->done == slot->rows && slot->result_count == 0 && !slot->is_complete);
    *error = (mr_error){0};
    if (mr_slot_failure(slot) != nullptr) return;
    const char *stage = "batch";
    uint64_t start_ns = mr_now_ns();
    mr_note_element(&worker->note, slot->number, MR_NOTE_BATCH);
    mr_note_stage(&worker->note, stage);
    mr_note_since(&worker->note, start_ns);
    for (int32_t c = 0; c < MR_COMPONENTS_MAX; c++) worker->workspace.rows[c] = nullptr;
    mr_status status = mr_slot_assemble(slot, error);
    mr_count(&engine->plan.batch_counters->busy_ns, mr_now_ns() - start_ns);
    mr_count(&engine->plan.batch_counters->elements, 1);
    mr_count(&engine->plan.batch_counters->bytes, slot->plan->fixed_bytes + slot->extra_bytes);
    if (status == MR_OK && engine->plan.batch_work_count > 0)
        status = do_batch_works(engine, worker, slot, &stage, error);
    if (status != MR_OK) {
        error->status = status;
        (void)mr_fail_prefix(error, status, "%s: batch %llu", stage, (unsigned long long)slot->number);
        mr_slot_fail(slot, error);
    }
    mr_workspace_clear(&worker->workspace);
    mr_trace *trace = mr_watch_trace(engine->plan.run->watch);
    if (trace != nullptr) mr_trace_slice(trace, "batch", start_ns, mr_now_ns(), (uint64_t)slot->rows);
}
