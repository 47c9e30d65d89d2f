/* See line_finder.h. */
#include "pipeline/sources/line_finder.h"

#include <assert.h>

void mr_line_finder_reset(mr_line_finder *finder)
{
    mr_input_file_close(finder->input);
    *finder = (mr_line_finder){0};
}

/* LF after CR, also in the next piece, is the same end of a line. */
static void count_ends(mr_line_finder *finder, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        finder->ends += text[i] == '\r' || (text[i] == '\n' && !finder->is_after_return);
        finder->is_after_return = text[i] == '\r';
    }
    finder->offset += size;
}

uint64_t mr_line_find(mr_line_finder *finder, const char *path, uint64_t offset)
{
    char text[16 << 10];
    if (offset < finder->offset) mr_line_finder_reset(finder);
    if (finder->input == nullptr && mr_input_file_open(path, true, &finder->input, nullptr) != MR_OK) return 0;
    while (finder->offset < offset) {
        const uint64_t left = offset - finder->offset;
        size_t done = 0;
        const size_t size = left < sizeof text ? (size_t)left : sizeof text;
        if (mr_input_file_read(finder->input, finder->offset, text, size, &done, nullptr) != MR_OK || done == 0) {
            mr_line_finder_reset(finder);
            return 0;
        }
        count_ends(finder, text, done);
    }
    assert(finder->offset == offset);
    return finder->ends + 1;
}
