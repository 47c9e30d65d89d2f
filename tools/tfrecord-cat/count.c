/* --count: the number of records of each file, by the index or the headers; compressed files are read completely. */
#include "tfrecord-cat/cat.h"

#include <inttypes.h>

int count_run(const options *options)
{
    if (walk_selects(options)) return walk_count(options);
    uint64_t total = 0, count;
    int exit_code = 0;
    for (int32_t i = 0; i < options->path_count; i++) {
        mr_error error = {0};
        const char *path = options->paths[i];
        if (mr_record_count(path, thread_count(options), &count, &error) != MR_OK) {
            exit_code = print_error(&error);
            continue;
        }
        total += count;
        printf(options->path_count == 1 ? "%" PRIu64 : "%10" PRIu64 "  ", count);
        if (options->path_count > 1) (void)text_print(stdout, mr_string_from(text_path(path)), INT32_MAX);
        putchar('\n');
    }
    if (options->path_count > 1) printf("%10" PRIu64 "  total\n", total);
    return exit_code;
}
