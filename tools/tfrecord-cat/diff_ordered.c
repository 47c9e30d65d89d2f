/* --diff in order: finds the fewest changed, inserted and deleted records.
 *
 * While records are equal, both sides are read in parallel. At a difference, records are read ahead as hashes and
 * aligned: first a few, then four times as many, until the alignment ends in equal records again. The differences
 * before those are reported. Bytes are kept only for differences that may be printed. */
#include "tfrecord-cat/diff.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t ALIGN_FIRST = 64;
/* An alignment is accepted if it ends in this number of equal records. */
static constexpr size_t RUN_GOOD = 8;
/* Bytes of a side's records kept for printing. */
static constexpr size_t KEPT_BYTES_MAX = (size_t)16 << 20;

/* A record that was read ahead. */
typedef struct ahead {
    uint64_t number;  /* across all files */
    uint64_t in_file; /* in its file */
    int32_t file;
    mr_string bytes; /* owned; data is null if not kept */
} ahead;

typedef struct stream {
    side_reader reader;
    ahead *ahead; /* owned; ALIGN_MAX entries, count of them used */
    hash *hashes; /* owned; their hashes */
    size_t count, kept_bytes;
    bool has_ended;
} stream;

/* Consecutive records that only one side has. */
typedef struct run {
    const stream *stream;
    ahead first;
    uint64_t count;
} run;

typedef struct ordered {
    stream a, b;
    aligner *aligner; /* owned; null until the first difference */
    uint64_t changed, only_a, only_b;
    uint64_t shown; /* differences printed; a run counts as one */
    uint64_t shown_records;
    run run;
    pass *pass;
} ordered;

/* ---- Reading ---- */

/* The next record; *has_record is false at the end. */
static mr_status read_next(stream *stream, mr_string *record, bool *has_record, mr_error *error)
{
    *has_record = false;
    if (stream->has_ended) return MR_OK;
    mr_status status = side_next(&stream->reader, record, error);
    *has_record = status == MR_OK;
    stream->has_ended = status != MR_OK;
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* Appends the record that was read last to those read ahead. */
static mr_status push(stream *stream, mr_string record, bool keeps, mr_error *error)
{
    assert(stream->count < ALIGN_MAX && stream->reader.reader);
    ahead *last = &stream->ahead[stream->count];
    *last = (ahead){.number = stream->reader.number,
                    .in_file = mr_record_reader_number(stream->reader.reader),
                    .file = stream->reader.file};
    if (keeps && (stream->kept_bytes == 0 || stream->kept_bytes + record.size_bytes <= KEPT_BYTES_MAX)) {
        char *copy = malloc(record.size_bytes + 1);
        if (!copy)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a record of %zu bytes", record.size_bytes);
        if (record.size_bytes > 0) memcpy(copy, record.data, record.size_bytes);
        last->bytes = (mr_string){copy, record.size_bytes};
        stream->kept_bytes += record.size_bytes;
    }
    stream->hashes[stream->count++] = hash_of(record);
    return MR_OK;
}

static mr_status read_ahead(ordered *o, stream *stream, size_t count, mr_error *error)
{
    while (stream->count < count) {
        mr_string record;
        bool has_record;
        MR_TRY(read_next(stream, &record, &has_record, error));
        if (!has_record) return MR_OK;
        if (stream == &o->a) pass_add(o->pass, 1);
        MR_TRY(push(stream, record, o->shown < SHOWN_MAX, error));
    }
    return MR_OK;
}

/* Drops the first records that were read ahead. */
static void drop(stream *stream, size_t count)
{
    assert(count <= stream->count && stream->count <= ALIGN_MAX);
    for (size_t i = 0; i < count; i++) {
        if (stream->ahead[i].bytes.data) stream->kept_bytes -= stream->ahead[i].bytes.size_bytes;
        free((char *)stream->ahead[i].bytes.data);
    }
    stream->count -= count;
    memmove(stream->ahead, stream->ahead + count, stream->count * sizeof(ahead));
    memmove(stream->hashes, stream->hashes + count, stream->count * sizeof(hash));
    assert(stream->count > 0 || stream->kept_bytes == 0);
}

/* ---- Reporting ---- */

/* Prints the position of a record if its side has several files: " (record 7 of b-00001)". */
static void print_position(const stream *stream, const ahead *record)
{
    const side *side = stream->reader.side;
    if (side->count == 1) return;
    printf(" (record %" PRIu64 " of ", record->in_file);
    print_path(stdout, side->paths[record->file]);
    putchar(')');
}

static bool begin_showing(ordered *o, uint64_t records)
{
    if (o->shown == SHOWN_MAX) return false;
    if (o->pass->is_shown) progress_hide(&o->pass->progress);
    o->shown++;
    o->shown_records += records;
    return true;
}

static void end_run(ordered *o)
{
    run run = o->run;
    o->run = (struct run){0};
    if (run.count == 0 || !begin_showing(o, run.count)) return;
    printf(run.count == 1 ? "record %" PRIu64 : "records %" PRIu64, run.first.number);
    print_position(run.stream, &run.first);
    if (run.count > 1) printf(" to %" PRIu64, run.first.number + run.count - 1);
    printf(run.count == 1 ? " is only in " : " are only in ");
    print_path(stdout, run.stream->reader.side->name);
    putchar('\n');
}

static void print_unmatched(ordered *o, const stream *stream, const ahead *record)
{
    if (o->run.count > 0 && o->run.stream != stream) end_run(o);
    if (o->run.count++ == 0) o->run = (run){stream, *record, 1};
    ++*(stream == &o->a ? &o->only_a : &o->only_b);
}

static void print_pair(ordered *o, const ahead *a, const ahead *b)
{
    end_run(o);
    o->changed++;
    if (!begin_showing(o, 1)) return;
    printf("record %" PRIu64, a->number);
    print_position(&o->a, a);
    if (b->number != a->number) {
        printf(" and record %" PRIu64 " of ", b->number);
        print_path(stdout, o->b.reader.side->name);
    }
    print_position(&o->b, b);
    printf(b->number != a->number ? " differ\n" : " differs\n");
    if (a->bytes.data && b->bytes.data) diff_records(a->bytes, b->bytes);
}

/* ---- Realignment ---- */

/* The number of steps up to the last equal records; *run: the length of that run. */
static size_t last_same(const uint8_t *path, size_t length, size_t *run)
{
    size_t end = length;
    while (end > 0 && path[end - 1] != ALIGN_SAME) end--;
    *run = 0;
    while (*run < end && path[end - 1 - *run] == ALIGN_SAME) ++*run;
    return end;
}

/* The first records read ahead differ. */
static mr_status align_ahead(ordered *o, mr_error *error)
{
    stream *a = &o->a, *b = &o->b;
    if (!o->aligner && !(o->aligner = aligner_new()))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory to compare records");
    const uint8_t *path = nullptr;
    size_t length = 0, end = 0, same = 0;
    bool is_all = false;
    for (size_t size = ALIGN_FIRST; size <= ALIGN_MAX && !is_all && (same < RUN_GOOD || end < length); size *= 4) {
        MR_TRY(read_ahead(o, a, size, error));
        MR_TRY(read_ahead(o, b, size, error));
        const align_row a_row = {a->hashes, a->count < size ? a->count : size, a->has_ended && a->count <= size},
                        b_row = {b->hashes, b->count < size ? b->count : size, b->has_ended && b->count <= size};
        length = align(o->aligner, &a_row, &b_row, &path);
        end = last_same(path, length, &same);
        is_all = a_row.is_last && b_row.is_last;
    }
    /* The next alignment begins after the last equal records. */
    if (end > 0) length = end;
    size_t i = 0, j = 0;
    for (size_t step = 0; step < length; step++) {
        if (path[step] == ALIGN_SAME)
            end_run(o);
        else if (path[step] == ALIGN_PAIR)
            print_pair(o, &a->ahead[i], &b->ahead[j]);
        else if (path[step] == ALIGN_ONLY_A)
            print_unmatched(o, a, &a->ahead[i]);
        else
            print_unmatched(o, b, &b->ahead[j]);
        i += path[step] != ALIGN_ONLY_B;
        j += path[step] != ALIGN_ONLY_A;
    }
    assert(length > 0 && i <= a->count && j <= b->count);
    drop(a, i);
    drop(b, j);
    return MR_OK;
}

/* Compares the records read ahead until none are left. */
static mr_status compare_ahead(ordered *o, mr_error *error)
{
    stream *a = &o->a, *b = &o->b;
    while (a->count > 0 || b->count > 0) {
        MR_TRY(read_ahead(o, a, 1, error));
        MR_TRY(read_ahead(o, b, 1, error));
        size_t same = 0;
        while (same < a->count && same < b->count && hash_is_same(a->hashes[same], b->hashes[same])) same++;
        if (same > 0) {
            end_run(o);
            drop(a, same);
            drop(b, same);
        } else if (a->count == 0 || b->count == 0) {
            stream *rest = a->count > 0 ? a : b;
            for (size_t i = 0; i < rest->count; i++) print_unmatched(o, rest, &rest->ahead[i]);
            drop(rest, rest->count);
            MR_TRY(read_ahead(o, rest, 1, error));
        } else {
            MR_TRY(align_ahead(o, error));
        }
    }
    return MR_OK;
}

static mr_status compare(ordered *o, mr_error *error)
{
    mr_string a_record, b_record;
    bool has_a, has_b;
    for (;;) {
        MR_TRY(read_next(&o->a, &a_record, &has_a, error));
        MR_TRY(read_next(&o->b, &b_record, &has_b, error));
        if (!has_a && !has_b) return MR_OK;
        pass_add(o->pass, 1);
        if (has_a && has_b && mr_string_equal(a_record, b_record)) {
            end_run(o);
            continue;
        }
        if (has_a) MR_TRY(push(&o->a, a_record, true, error));
        if (has_b) MR_TRY(push(&o->b, b_record, true, error));
        MR_TRY(compare_ahead(o, error));
    }
}

static void sum_up(const ordered *o)
{
    uint64_t all = o->changed + o->only_a + o->only_b, a_seen = o->a.reader.seen, b_seen = o->b.reader.seen;
    if (all == 0) {
        printf("the same %" PRIu64 " record%s\n", a_seen, a_seen == 1 ? "" : "s");
        return;
    }
    uint64_t more = all - o->shown_records, most = a_seen > b_seen ? a_seen : b_seen;
    if (more > 0) printf("and %" PRIu64 " more record%s\n", more, more == 1 ? " that differs" : "s that differ");
    printf("%" PRIu64 " of %" PRIu64 " record%s differ%s", all, most, most == 1 ? "" : "s", all == 1 ? "s" : "");
    if (o->only_a + o->only_b > 0) {
        printf(": %" PRIu64 " changed, %" PRIu64 " only in ", o->changed, o->only_a);
        print_path(stdout, o->a.reader.side->name);
        printf(", %" PRIu64 " only in ", o->only_b);
        print_path(stdout, o->b.reader.side->name);
    }
    putchar('\n');
}

static bool stream_init(stream *stream, const side *side)
{
    *stream = (struct stream){
        .reader = {.side = side}, .ahead = calloc(ALIGN_MAX, sizeof(ahead)), .hashes = calloc(ALIGN_MAX, sizeof(hash))};
    return stream->ahead && stream->hashes;
}

static void stream_deinit(stream *stream)
{
    if (stream->ahead && stream->hashes) drop(stream, stream->count);
    side_deinit(&stream->reader);
    free(stream->ahead);
    free(stream->hashes);
}

int diff_ordered(const side *a, const side *b)
{
    pass pass;
    ordered o = {.pass = &pass};
    mr_error error = {0};
    bool has_memory = stream_init(&o.a, a);
    has_memory = stream_init(&o.b, b) && has_memory;
    if (has_memory) {
        pass_begin(&pass, "compare", 0);
        mr_status status = compare(&o, &error);
        if (status == MR_OK) end_run(&o);
        pass_end(&pass);
        if (status == MR_OK) sum_up(&o);
    } else {
        (void)mr_fail(&error, MR_RESOURCE_EXHAUSTED, "no memory to compare records");
    }
    stream_deinit(&o.a);
    stream_deinit(&o.b);
    aligner_free(o.aligner);
    if (error.status != MR_OK) return print_error(&error);
    return o.changed + o.only_a + o.only_b > 0;
}
