/* Our side of records_oracle.py:
 *
 *     records_files copy SOURCE TARGET none|gzip|zlib     every record of SOURCE, written again
 *     records_files encode TARGET                         Examples of our encoder, which the script knows
 *     records_files parse SOURCE SPEC BATCH|single        parses batches and prints their tensors, or "error"
 *
 * SPEC is a text file with a line for each feature: name dtype form shape(comma-separated or -) fallback(or -). */
#include <millrace/example.h>
#include <millrace/record.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int FEATURES_MAX = 16;
static constexpr int BATCH_MAX = 64;

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
    mr_record_writer_options options = {.compression = strcmp(compression, "gzip") == 0   ? MR_COMPRESSION_GZIP
                                                       : strcmp(compression, "zlib") == 0 ? MR_COMPRESSION_ZLIB
                                                                                          : MR_COMPRESSION_NONE};
    if (mr_record_reader_open(source, nullptr, &reader, &error) != MR_OK) return fail(&error);
    if (mr_record_writer_open(target, &options, &writer, &error) != MR_OK) return fail(&error);
    mr_string record;
    mr_status status;
    while ((status = mr_record_reader_next(reader, &record, &error)) == MR_OK)
        if (mr_record_writer_append(writer, record.data, record.size_bytes, &error) != MR_OK) return fail(&error);
    if (status != MR_OUT_OF_RANGE) return fail(&error);
    mr_record_reader_free(reader);
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

typedef struct spec {
    int32_t count;
    mr_feature features[FEATURES_MAX];
    mr_tensor fallbacks[FEATURES_MAX];
    char names[FEATURES_MAX][64];
} spec;

static void make_fallback(mr_feature *feature, mr_tensor *fallback, const char *text)
{
    mr_error error = {0};
    mr_shape shape = feature->form == MR_FIXED ? feature->shape : MR_SCALAR;
    int64_t count = mr_shape_count(shape);
    mr_string *strings = calloc((size_t)count + 1, sizeof(mr_string));
    for (int64_t i = 0; i < count; i++) strings[i] = mr_string_from(text);
    if (feature->dtype == MR_STRING) {
        if (mr_tensor_init_strings(fallback, shape, strings, &error) != MR_OK) exit(fail(&error));
    } else {
        if (mr_tensor_init(fallback, feature->dtype, shape, &error) != MR_OK) exit(fail(&error));
        for (int64_t i = 0; i < count; i++) {
            if (feature->dtype == MR_FLOAT)
                mr_tensor_floats(fallback)[i] = strtof(text, nullptr);
            else
                mr_tensor_int64s(fallback)[i] = strtoll(text, nullptr, 10);
        }
    }
    free(strings);
    feature->fallback = fallback;
}

static bool load_spec(const char *path, spec *spec)
{
    FILE *file = fopen(path, "r");
    char dtype[16], form[16], shape[64], fallback[64];
    if (!file) return false;
    while (fscanf(file, "%63s %15s %15s %63s %63s", spec->names[spec->count], dtype, form, shape, fallback) == 5) {
        mr_feature *feature = &spec->features[spec->count];
        feature->name = spec->names[spec->count];
        feature->dtype = mr_dtype_parse(dtype);
        feature->form = strcmp(form, "fixed") == 0      ? MR_FIXED
                        : strcmp(form, "sequence") == 0 ? MR_FIXED_SEQUENCE
                        : strcmp(form, "variable") == 0 ? MR_VARIABLE
                                                        : MR_RAGGED;
        for (char *part = strtok(shape, ","); part && strcmp(part, "-") != 0; part = strtok(nullptr, ","))
            feature->shape.dims[feature->shape.rank++] = atoll(part);
        if (strcmp(fallback, "-") != 0) make_fallback(feature, &spec->fallbacks[spec->count], fallback);
        spec->count++;
    }
    fclose(file);
    return true;
}

static void print_tensor(const mr_tensor *tensor)
{
    char text[MR_SHAPE_TEXT_SIZE];
    printf(" %s%s", mr_dtype_name(tensor->dtype), mr_shape_text(tensor->shape, text, sizeof text));
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
        if (tensor->dtype == MR_INT64) printf(" %" PRId64, mr_tensor_int64s(tensor)[i]);
        if (tensor->dtype == MR_FLOAT) {
            uint32_t bits;
            memcpy(&bits, &mr_tensor_floats(tensor)[i], 4);
            printf(" %08x", bits);
        }
        if (tensor->dtype == MR_STRING) {
            mr_string value = mr_tensor_strings(tensor)[i];
            printf(" '");
            for (size_t j = 0; j < value.size_bytes; j++) printf("%02x", (unsigned char)value.data[j]);
        }
    }
    printf(";");
}

static void parse_batch(const mr_example_parser *parser, const spec *spec, const mr_string *records, int64_t count,
                        bool single)
{
    mr_error error = {0};
    mr_tensor tensors[3 * FEATURES_MAX];
    int32_t tensor_count = 0;
    for (int32_t i = 0; i < spec->count; i++) tensor_count += mr_feature_tensor_count(&spec->features[i]);
    if (mr_example_parse(parser, records, count, single, tensors, &error) != MR_OK) {
        printf("error %s\n", error.message);
        return;
    }
    printf("ok");
    for (int32_t i = 0; i < tensor_count; i++) {
        print_tensor(&tensors[i]);
        mr_tensor_deinit(&tensors[i]);
    }
    printf("\n");
}

static int parse(const char *source, const char *spec_path, const char *batch)
{
    static spec spec;
    mr_error error = {0};
    mr_example_parser *parser = nullptr;
    mr_record_reader *reader = nullptr;
    bool single = strcmp(batch, "single") == 0;
    int64_t batch_size = single ? 1 : atoll(batch);
    if (!load_spec(spec_path, &spec) || batch_size < 1 || batch_size > BATCH_MAX) return 1;
    if (mr_example_parser_new(spec.features, spec.count, &parser, &error) != MR_OK) return fail(&error);
    if (mr_record_reader_open(source, nullptr, &reader, &error) != MR_OK) return fail(&error);
    mr_string records[BATCH_MAX], record;
    int64_t count = 0;
    mr_status status = MR_OK;
    while (status == MR_OK) {
        status = mr_record_reader_next(reader, &record, &error);
        if (status == MR_OK) {
            char *bytes = malloc(record.size_bytes + 1);
            memcpy(bytes, record.data, record.size_bytes);
            records[count++] = (mr_string){bytes, record.size_bytes};
        }
        if (count < batch_size && (status == MR_OK || count == 0)) continue;
        parse_batch(parser, &spec, records, count, single);
        while (count > 0) free((char *)records[--count].data);
    }
    mr_record_reader_free(reader);
    mr_example_parser_free(parser);
    for (int32_t i = 0; i < spec.count; i++) mr_tensor_deinit(&spec.fallbacks[i]);
    return status == MR_OUT_OF_RANGE ? 0 : fail(&error);
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "copy") == 0) return copy(argv[2], argv[3], argv[4]);
    if (argc == 3 && strcmp(argv[1], "encode") == 0) return encode(argv[2]);
    if (argc == 5 && strcmp(argv[1], "parse") == 0) return parse(argv[2], argv[3], argv[4]);
    return 2;
}
