/* --diff: whether two sets of files hold the same records, in order or (diff_unordered.c) in any. How records are put
 * into files and how those are compressed makes no difference. */
#include "tools/tfrecord-cat/diff.h"

#include <inttypes.h>
#include <string.h>

static constexpr uint64_t MEMORY_BYTES = (uint64_t)512 << 20;
static constexpr uint64_t MEMORY_BYTES_MIN = (uint64_t)1 << 20;

mr_status side_next(side_reader *reader, mr_string *record, mr_error *error)
{
    mr_error problem;
    while (reader->file < reader->side->count) {
        if (!reader->reader)
            MR_TRY(mr_record_reader_open(reader->side->paths[reader->file], nullptr, &reader->reader, error));
        /* A file's end is no fault. */
        problem.status = MR_OK;
        mr_status status = mr_record_reader_next(reader->reader, record, &problem);
        if (status == MR_OK) {
            reader->number = reader->seen++;
            return MR_OK;
        }
        if (status != MR_OUT_OF_RANGE) return mr_fail(error, status, "%s", problem.message);
        side_deinit(reader);
        reader->file++;
    }
    return MR_OUT_OF_RANGE;
}

void side_deinit(side_reader *reader)
{
    mr_record_reader_free(reader->reader);
    reader->reader = nullptr;
}

/* Where a record is, when its side has several files: " (record 7 of b-00001)". */
static void print_place(const side_reader *reader)
{
    if (reader->side->count == 1) return;
    printf(" (record %" PRIu64 " of ", mr_record_reader_number(reader->reader));
    print_path(stdout, reader->side->paths[reader->file]);
    putchar(')');
}

static void show_difference(const side_reader *a, const side_reader *b, mr_string a_record, mr_string b_record)
{
    printf("record %" PRIu64, a->number);
    print_place(a);
    print_place(b);
    printf(" differs\n");
    diff_records(a_record, b_record);
}

/* Reads the rest of a side; returns how many there were. */
static mr_status count_rest(side_reader *reader, uint64_t *count, mr_error *error)
{
    mr_string record;
    mr_status status;
    while ((status = side_next(reader, &record, error)) == MR_OK) ++*count;
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

static void say_only_in(const side *side, uint64_t count)
{
    if (count == 0) return;
    printf("%" PRIu64 " more record%s in ", count, count == 1 ? "" : "s");
    print_path(stdout, side->name);
    putchar('\n');
}

static mr_status diff_ordered(side_reader *a, side_reader *b, uint64_t *differing, pass *pass, mr_error *error)
{
    mr_string a_record, b_record;
    uint64_t a_rest = 0, b_rest = 0;
    for (;;) {
        mr_status a_status = side_next(a, &a_record, error);
        if (a_status != MR_OK && a_status != MR_OUT_OF_RANGE) return a_status;
        mr_status b_status = side_next(b, &b_record, error);
        if (b_status != MR_OK && b_status != MR_OUT_OF_RANGE) return b_status;
        a_rest = a_status == MR_OK;
        b_rest = b_status == MR_OK;
        if (!a_rest || !b_rest) break;
        pass_add(pass, 1);
        if (mr_string_equal(a_record, b_record)) continue;
        if (++*differing <= SHOWN_MAX) {
            if (pass->is_shown) progress_hide(&pass->progress);
            show_difference(a, b, a_record, b_record);
        }
    }
    if (a_rest) MR_TRY(count_rest(a, &a_rest, error));
    if (b_rest) MR_TRY(count_rest(b, &b_rest, error));
    if (*differing > SHOWN_MAX) printf("and %" PRIu64 " more records that differ\n", *differing - SHOWN_MAX);
    say_only_in(a->side, a_rest);
    say_only_in(b->side, b_rest);
    if (*differing + a_rest + b_rest > 0)
        printf("%" PRIu64 " of %" PRIu64 " records differ\n", *differing + a_rest + b_rest,
               a->seen > b->seen ? a->seen : b->seen);
    *differing += a_rest + b_rest;
    return MR_OK;
}

/* The files of FILE argument `argument`. */
static side side_of(const options *options, int32_t argument)
{
    side side = {0};
    for (int32_t i = 0; i < options->path_count; i++) {
        if (options->path_arguments[i] != argument) continue;
        if (side.count++ == 0) side.paths = options->paths + i;
    }
    if (side.count > 0) side.name = side.paths[0];
    return side;
}

int diff_run(const options *options)
{
    uint64_t memory_bytes = MEMORY_BYTES;
    if (options->has_missing) return 1;
    side a = side_of(options, 0), b = side_of(options, 1);
    if (options->argument_count != 2 || a.count == 0 || b.count == 0)
        return refuse("--diff compares two FILEs; each may be a folder or a quoted pattern");
    if (options->memory && (!parse_size(options->memory, &memory_bytes) || memory_bytes < MEMORY_BYTES_MIN))
        return refuse("--memory: \"%s\" is no size of at least 1M", options->memory);
    if (options->is_unordered) return diff_unordered(&a, &b, memory_bytes);
    side_reader a_reader = {.side = &a}, b_reader = {.side = &b};
    mr_error error = {0};
    uint64_t differing = 0;
    pass pass;
    pass_begin(&pass, "compare", 0);
    mr_status status = diff_ordered(&a_reader, &b_reader, &differing, &pass, &error);
    pass_end(&pass);
    if (status == MR_OK && differing == 0) printf("the same %" PRIu64 " records\n", a_reader.seen);
    side_deinit(&a_reader);
    side_deinit(&b_reader);
    if (status != MR_OK) return complain(&error);
    return differing > 0;
}
