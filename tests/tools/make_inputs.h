/* Small inputs of every kind that tfrecord-make reads, in the test's directory. */
#ifndef MR_TESTS_TOOLS_MAKE_INPUTS_H
#define MR_TESTS_TOOLS_MAKE_INPUTS_H

#include "tests/records/record_data.h"
#include "tests/tools/program.h"

#include <millrace/formats.h>
#include <millrace/image.h>

#include <stdarg.h>
#include <sys/stat.h>

/* Saves a PNG whose pixels depend on number. */
static inline void make_png(const char *path, int number, int width, int height)
{
    mr_error error = {0};
    mr_tensor pixels = {0}, bytes = {0};
    CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(height, width, 3), &error));
    for (int64_t i = 0; i < mr_tensor_count(&pixels); i++) mr_tensor_uint8s(&pixels)[i] = (uint8_t)(i * (number + 3));
    CHECK_OK(mr_image_encode_png(&pixels, &bytes, &error));
    mr_string png = mr_tensor_strings(&bytes)[0];
    file_save(path, png.data, png.size_bytes);
    mr_tensor_deinit(&pixels);
    mr_tensor_deinit(&bytes);
}

/* Saves DIR/0.png … with widths of 20 + i and a height of 10. */
static inline void make_pngs(const char *directory, int count)
{
    mkdir(test_path("%s", directory), 0777);
    for (int i = 0; i < count; i++) make_png(test_path("%s/%d.png", directory, i), i, 20 + i, 10);
}

static inline void save_text(const char *name, const char *text)
{
    file_save(test_path("%s", name), text, strlen(text));
}

/* Runs tfrecord-make in the test's directory; all output goes to out. */
[[gnu::format(printf, 1, 2)]] static inline const program_result *make(const char *format, ...)
{
    char arguments[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    return program_run("cd '%s' && rm -rf out && tfrecord-make --out out %s", test_directory(), arguments);
}

/* The features of all records in the files of out that match pattern, as sorted JSON Lines. */
static inline const char *records_of(const char *pattern, const char *features)
{
    const program_result *result =
        program_run("cd '%s' && tfrecord-cat --json --features '%s' out/%s | sed 's/.*\"features\": //; s/}$//' | sort",
                    test_directory(), features, pattern);
    CHECK_EQ(result->exit_code, 0);
    return result->output;
}

static inline const char *records(const char *features)
{
    return records_of("*.tfrecord", features);
}

/* The number of records in the files of out that match pattern. */
static inline int count_records(const char *pattern)
{
    return atoi(
        program_run("cd '%s' && tfrecord-cat --json out/%s 2>/dev/null | wc -l", test_directory(), pattern)->output);
}

/* The number of rows that --on-error skip left out, according to the report. */
static inline int count_skipped(const char *output)
{
    const char *found = strstr(output, " could not be used and ");
    if (!found) return 0;
    while (found > output && found[-1] != '\n') found--;
    return atoi(found);
}

/* The number before a remark of the report; 0 if the report does not have it. */
static inline int count_noted(const char *output, const char *what)
{
    const char *found = strstr(output, what);
    if (!found) return 0;
    while (found > output && found[-1] != '\n') found--;
    return atoi(found);
}

#endif
