/* Formats records as text on all processors: each thread formats batches of records into its own buffers, which are
 * written in file order. A sample, a range or a head is small and is processed by one thread. */
#include "tfrecord-cat/walk.h"

#include <stdlib.h>

/* Batches with a longer record are written piece by piece, by the writing thread. */
static constexpr size_t LONG_RECORD = (size_t)4 << 20;
static constexpr int32_t THREADS_MAX = 64;

/* State of one thread. */
typedef struct maker {
    void *state;
    where_state *where;
} maker;

typedef struct texts {
    const options *options;
    const text_format *format;
    maker makers[64 + 1]; /* one for each thread, and one for the writer */
    int32_t threads;
    out out; /* to the standard output */
    bool has_failed;
} texts;
static_assert(THREADS_MAX == 64);

/* Result of a batch; faults are lines for the standard error. */
typedef struct result {
    out text, faults;
} result;

static void close_makers(texts *texts)
{
    for (int32_t i = 0; i <= texts->threads; i++) {
        if (texts->makers[i].state) texts->format->close(texts->makers[i].state);
        if (i > 0 && texts->makers[0].where) where_state_merge(texts->makers[0].where, texts->makers[i].where);
    }
}

static bool open_makers(texts *texts)
{
    const options *options = texts->options;
    bool is_good = true;
    for (int32_t i = 0; i <= texts->threads; i++) {
        maker *maker = &texts->makers[i];
        maker->state = texts->format->open(options, texts->format->shared);
        if (options->where) maker->where = where_state_new(options->where);
        is_good = is_good && maker->state && (maker->where || !options->where);
    }
    return is_good;
}

static mr_status fail_memory(mr_error *error)
{
    return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
}

static mr_status put(const texts *texts, void *state, const record_position *position, out *out, mr_error *error)
{
    mr_status status = texts->format->put(state, position, out, error);
    if (status == MR_OK && out->has_failed) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for its text");
    return status;
}

/* ---- One thread ---- */

static bool put_one(void *context, const record_position *position)
{
    texts *texts = context;
    mr_error error = {0};
    mr_status status = put(texts, texts->makers[0].state, position, &texts->out, &error);
    (void)out_write(&texts->out, stdout);
    if (status != MR_OK) texts->has_failed = print_record_error(position, &error);
    return status != MR_RESOURCE_EXHAUSTED;
}

/* ---- All threads ---- */

static void discard(void *context, void *made)
{
    result *result = made;
    if (!result) return;
    out_deinit(&result->text);
    out_deinit(&result->faults);
    free(result);
}

static record_position position_of(const mr_record_batch *batch, size_t i)
{
    return (record_position){.path = batch->path,
                             .number = batch->first + i,
                             .offset = mr_record_batch_offset(batch, i),
                             .record = batch->records[i]};
}

static bool has_long(const mr_record_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (batch->records[i].size_bytes > LONG_RECORD) return true;
    return false;
}

static mr_status work(void *context, mr_record_batch *batch, mr_error *error)
{
    const texts *texts = context;
    const maker *maker = &texts->makers[batch->thread + 1];
    if (has_long(batch)) return MR_OK;
    result *result = calloc(1, sizeof(struct result));
    if (!result) return fail_memory(error);
    batch->result = result;
    if (maker->where) where_set_tfds(maker->where, tfds_set_find(&texts->options->tfds, batch->path));
    for (size_t i = 0; i < batch->count; i++) {
        record_position position = position_of(batch, i);
        mr_error fault = {0};
        if (maker->where && !where_matches(maker->where, position.record)) {
            if (where_has_failed(maker->where)) return fail_memory(error);
            continue;
        }
        mr_status status = put(texts, maker->state, &position, &result->text, &fault);
        if (status == MR_OK) continue;
        if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", fault.message);
        name_position(&position, &fault);
        out_text(&result->faults, "tfrecord-cat: ");
        out_text(&result->faults, fault.message);
        out_char(&result->faults, '\n');
        if (result->faults.has_failed) return fail_memory(error);
    }
    return MR_OK;
}

static void write_result(texts *texts, result *result)
{
    if (result->faults.size > 0) {
        fflush(stdout);
        texts->has_failed = true;
        (void)out_write(&result->faults, stderr);
    }
    (void)out_write(&result->text, stdout);
    discard(nullptr, result);
}

static mr_status take(void *context, const mr_record_batch *batch, mr_error *error)
{
    texts *texts = context;
    if (batch->result) {
        write_result(texts, batch->result);
    } else {
        where_state *where = texts->makers[0].where;
        if (where) where_set_tfds(where, tfds_set_find(&texts->options->tfds, batch->path));
        for (size_t i = 0; i < batch->count && !ferror(stdout); i++) {
            record_position position = position_of(batch, i);
            if (!where || where_matches(where, position.record)) (void)put_one(texts, &position);
            if (where && where_has_failed(where)) return fail_memory(error);
        }
    }
    return ferror(stdout) ? mr_fail(error, MR_CANCELLED, "standard output is closed") : MR_OK;
}

static void damaged(void *context, const mr_record_damage *damage, const mr_error *error)
{
    texts *texts = context;
    texts->has_failed = print_error(error);
}

static mr_status file_done(void *context, int32_t file, const mr_record_totals *totals, const mr_error *error)
{
    texts *texts = context;
    if (!error || error->status == MR_OK) return MR_OK;
    if (error->status != MR_CANCELLED) texts->has_failed = print_error(error);
    return error->status == MR_CANCELLED || error->status == MR_RESOURCE_EXHAUSTED ? error->status : MR_OK;
}

static void scan(texts *texts)
{
    const options *options = texts->options;
    mr_record_scan_options scan = {.size = sizeof scan,
                                   .threads = texts->threads,
                                   .damage = MR_DAMAGE_SKIP,
                                   .context = texts,
                                   .work = work,
                                   .take = take,
                                   .discard = discard,
                                   .damaged = damaged,
                                   .file_done = file_done};
    mr_error error = {0};
    mr_status status = mr_record_scan((const char *const *)options->paths, options->path_count, &scan, nullptr, &error);
    if (status != MR_OK && !ferror(stdout) && !texts->has_failed) texts->has_failed = print_error(&error);
}

int walk_texts(const options *options, const text_format *format)
{
    texts *texts = calloc(1, sizeof(struct texts));
    if (!texts) return print_no_memory();
    *texts = (struct texts){.options = options, .format = format, .out = {.file = stdout}};
    struct options rest = *options;
    rest.where = nullptr;
    bool is_complete = !walk_selects(&rest);
    int32_t threads = thread_count(options);
    texts->threads = is_complete ? (threads < THREADS_MAX ? threads : THREADS_MAX) : 0;
    int exit_code = 0;
    if (!open_makers(texts))
        exit_code = print_no_memory();
    else if (is_complete)
        scan(texts);
    else
        exit_code = walk_records(options, put_one, texts);
    close_makers(texts);
    if (texts->makers[0].where && is_complete && !ferror(stdout)) where_notes(texts->makers[0].where, stderr);
    where_state_free(texts->makers[0].where);
    if (texts->has_failed) exit_code = 1;
    out_deinit(&texts->out);
    free(texts);
    return exit_code;
}
