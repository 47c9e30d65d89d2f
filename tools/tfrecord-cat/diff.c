/* --diff: compares the records of two sets of files, in order (diff_ordered.c) or in any order (diff_unordered.c). The
 * division into files and compression make no difference. */
#include "tfrecord-cat/diff.h"

static constexpr uint64_t MEMORY_BYTES = (uint64_t)512 << 20;
static constexpr uint64_t MEMORY_BYTES_MIN = (uint64_t)1 << 20;

mr_status side_next(side_reader *reader, mr_string *record, mr_error *error)
{
    mr_error problem;
    while (reader->file < reader->side->count) {
        if (!reader->reader)
            MR_TRY(mr_record_reader_open(reader->side->paths[reader->file], nullptr, &reader->reader, error));
        /* The end of a file is not an error. */
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
    mr_record_reader_close(reader->reader);
    reader->reader = nullptr;
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
        return usage_error("--diff requires two FILEs; each may be a directory or a quoted pattern");
    if (options->memory && (!parse_size(options->memory, &memory_bytes) || memory_bytes < MEMORY_BYTES_MIN))
        return usage_error("--memory: \"%s\" is not a size of at least 1M", options->memory);
    if (options->is_unordered) return diff_unordered(&a, &b, memory_bytes);
    return diff_ordered(&a, &b);
}
