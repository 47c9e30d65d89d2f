/* Record files of Examples for the tests of the tools, and a pseudo-terminal of any width to run the tools on. */
#ifndef MR_TESTS_TOOLS_EXAMPLES_H
#define MR_TESTS_TOOLS_EXAMPLES_H

#include "tests/tools/program.h"

#include <millrace/example.h>
#include <millrace/record.h>

#include <fcntl.h>
#include <sys/ioctl.h>

/* Encodes example i: "label" is i, "ids" has i % 4 values, "box" has four, "text" and "raw" are bytes, and every second
 * example has "maybe". */
static inline mr_string examples_record(mr_example_encoder *encoder, int i)
{
    mr_error error = {0};
    mr_string record;
    const int64_t integers[] = {i, -i, INT64_MAX};
    const float box[] = {0.5f, 0.25f, (float)i, 1e-9f};
    mr_example_add_int64(encoder, "label", i);
    mr_example_add_int64_list(encoder, "ids", integers, (size_t)i % 4);
    mr_example_add_float_list(encoder, "box", box, 4);
    mr_example_add_bytes(encoder, "text", MR_STR("gr\xc3\xbc\xc3\x9f dich, \"Welt\"\n"));
    mr_example_add_bytes(encoder, "raw", MR_STR("\x00\x01\xff"));
    if (i % 2) mr_example_add_bytes(encoder, "maybe", MR_STR("\x1b[2J"));
    CHECK_OK(mr_example_finish(encoder, &record, &error));
    return record;
}

/* Writes a file of examples first … first + count - 1. */
static inline void examples_write_from(const char *path, int first, int count, mr_record_writer_options options)
{
    options.size = sizeof options;
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_example_encoder encoder = {0};
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = first; i < first + count; i++) {
        mr_string record = examples_record(&encoder, i);
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    }
    mr_example_encoder_deinit(&encoder);
    CHECK_OK(mr_record_writer_close(writer, &error));
}

static inline void examples_write(const char *path, int count, mr_record_writer_options options)
{
    examples_write_from(path, 0, count, options);
}

/* Writes a file with a single record. */
static inline void examples_write_one(const char *path, mr_string record)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    CHECK_OK(mr_record_writer_open(path, nullptr, &writer, &error));
    CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
    CHECK_OK(mr_record_writer_close(writer, &error));
}

/* The number of columns of the longest line; a UTF-8 character counts as one column. */
static inline int examples_columns(const char *text)
{
    int columns = 0, most = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '\n')
            columns = 0;
        else if (*at != '\r' && (*at & 0xc0) != 0x80)
            columns++;
        most = columns > most ? columns : most;
    }
    return most;
}

/* Runs a command whose standard output is a terminal of the given width; returns the output. */
[[gnu::format(printf, 2, 3)]] static inline const char *examples_on_terminal(int columns, const char *format, ...)
{
    static char output[1 << 14], command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) test_skip("needs a pseudo terminal");
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    CHECK_EQ(ioctl(terminal, TIOCSWINSZ, &size), 0);
    const char *name = ptsname(terminal);
    int keep = open(name, O_RDWR | O_NOCTTY);
    CHECK_EQ(program_run("(%s; printf '\\001') > %s", command, name)->exit_code, 0);
    size_t used = 0;
    while (used < sizeof output - 1 && (used == 0 || output[used - 1] != '\1')) {
        ssize_t got = read(terminal, output + used, sizeof output - 1 - used);
        CHECK(got > 0);
        used += (size_t)got;
    }
    output[used] = '\0';
    close(keep);
    close(terminal);
    return output;
}

#endif
