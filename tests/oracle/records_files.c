/* Copies and encodes records with millrace, for records_oracle.py:
 *
 *     records_files copy SOURCE TARGET none|gzip|zlib     writes every record of SOURCE to TARGET
 *     records_files encode TARGET                         writes Examples whose values the script knows */
#include <millrace/example.h>
#include <millrace/record.h>

#include <stdio.h>
#include <string.h>

static int fail(const mr_error *error)
{
    fprintf(stderr, "%s: %s\n", mr_status_name(error->status), error->message);
    return 1;
}

static int copy(const char *source, const char *target, const char *compression)
{
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = {.size = sizeof options,
                                        .compression = strcmp(compression, "gzip") == 0   ? MR_COMPRESSION_GZIP
                                                       : strcmp(compression, "zlib") == 0 ? MR_COMPRESSION_ZLIB
                                                                                          : MR_COMPRESSION_NONE};
    if (mr_record_reader_open(source, nullptr, &reader, &error) != MR_OK) return fail(&error);
    if (mr_record_writer_open(target, &options, &writer, &error) != MR_OK) return fail(&error);
    mr_string record;
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK)
        if (mr_record_writer_append(writer, record.data, record.size_bytes, &error) != MR_OK) return fail(&error);
    if (status != MR_OUT_OF_RANGE) return fail(&error);
    mr_record_reader_close(reader);
    return mr_record_writer_close(writer, &error) == MR_OK ? 0 : fail(&error);
}

static int encode(const char *target)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    if (mr_record_writer_open(target, nullptr, &writer, &error) != MR_OK) return fail(&error);
    mr_example_encoder encoder = {0};
    for (int64_t i = 0; i < 50; i++) {
        int64_t integers[60];
        float floats[60];
        mr_string strings[60];
        char text[60][8];
        for (int64_t j = 0; j < i; j++) {
            integers[j] = (j % 2 ? -1 : 1) * (INT64_MAX >> j);
            floats[j] = (float)j / 3 - 5;
            strings[j] = (mr_string){text[j], (size_t)snprintf(text[j], sizeof text[j], "%0*d", (int)(j % 7), (int)j)};
        }
        mr_example_add_int64_list(&encoder, "integers", integers, (size_t)i);
        mr_example_add_float_list(&encoder, "floats", floats, (size_t)i);
        mr_example_add_bytes_list(&encoder, "strings", strings, (size_t)i);
        mr_example_add_int64(&encoder, "number", -i);
        mr_string record;
        if (mr_example_finish(&encoder, &record, &error) != MR_OK) return fail(&error);
        if (mr_record_writer_append(writer, record.data, record.size_bytes, &error) != MR_OK) return fail(&error);
    }
    mr_example_encoder_deinit(&encoder);
    return mr_record_writer_close(writer, &error) == MR_OK ? 0 : fail(&error);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "copy") == 0) return copy(argv[2], argv[3], argv[4]);
    if (argc == 3 && strcmp(argv[1], "encode") == 0) return encode(argv[2]);
    return 2;
}
