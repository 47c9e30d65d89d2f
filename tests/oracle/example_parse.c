/* Encodes and parses with millrace, for example_oracle.py:
 *
 *     example_parse encode TARGET                        writes SequenceExamples whose values the script knows
 *     example_parse parse SOURCE SPEC BATCH|single       parses batches; prints their tensors, or "error" and a message
 *
 * SPEC is a text file with a line for each feature; "-" means none:
 *     example|context|list name dtype form shape default_value value_key index_keys partitions flags
 * Shapes and keys are separated by commas. Partitions are splits:KEY, lengths:KEY, starts:KEY, limits:KEY, rowids:KEY
 * and uniform:LENGTH. Flags are sorted, missing and int32. */
#include <millrace/example.h>
#include <millrace/record.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static constexpr int FEATURES_MAX = 32;
static constexpr int BATCH_MAX = 1024;
static constexpr int TENSORS_MAX = 16 * FEATURES_MAX;

static int fail(const mr_error *error)
{
    fprintf(stderr, "%s: %s\n", mr_status_name(error->status), error->message);
    return 1;
}

static int encode(const char *target)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    if (mr_record_writer_open(target, nullptr, &writer, &error) != MR_OK) return fail(&error);
    mr_sequence_encoder encoder = {0};
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
        if (i % 3) mr_example_add_int64(&encoder.context, "number", -i);
        if (i % 5 == 0) mr_sequence_add_list(&encoder, "empty");
        for (int64_t step = 0; step < i % 7; step++) {
            mr_sequence_add_int64_list(&encoder, "integers", integers, (size_t)(i - step > 0 ? i - step : 0));
            mr_sequence_add_float_list(&encoder, "floats", floats, (size_t)i);
            mr_sequence_add_bytes_list(&encoder, "strings", strings, (size_t)(step < i ? step : i));
        }
        mr_string record;
        if (mr_sequence_finish(&encoder, &record, &error) != MR_OK) return fail(&error);
        if (mr_record_writer_append(writer, record.data, record.size_bytes, &error) != MR_OK) return fail(&error);
    }
    mr_sequence_encoder_deinit(&encoder);
    return mr_record_writer_close(writer, &error) == MR_OK ? 0 : fail(&error);
}

/* ---- SPEC ---- */

typedef struct spec {
    bool is_sequence;
    int32_t context_count, list_count; /* features of an Example are in context */
    mr_feature context[FEATURES_MAX], lists[FEATURES_MAX];
    mr_example_parser *example;
    mr_sequence_parser *sequence;
    int32_t tensor_count;
} spec;

static const char *name_of(const char *text)
{
    return strcmp(text, "-") == 0 ? nullptr : strdup(text);
}

static mr_tensor *make_default_value(const mr_feature *feature, const char *text)
{
    mr_error error = {0};
    mr_tensor *default_value = calloc(1, sizeof *default_value);
    mr_shape shape = feature->form == MR_FIXED_LEN ? feature->shape : MR_SCALAR;
    int64_t count = mr_shape_count(shape);
    mr_string *strings = calloc((size_t)count + 1, sizeof(mr_string));
    for (int64_t i = 0; i < count; i++) strings[i] = mr_string_from(strcmp(text, "''") == 0 ? "" : text);
    mr_status status = feature->dtype == MR_STRING ? mr_tensor_init_strings(default_value, shape, strings, &error)
                                                   : mr_tensor_init(default_value, feature->dtype, shape, &error);
    if (status != MR_OK) exit(fail(&error));
    for (int64_t i = 0; i < count; i++) {
        if (feature->dtype == MR_FLOAT) mr_tensor_floats(default_value)[i] = strtof(text, nullptr);
        if (feature->dtype == MR_INT64) mr_tensor_int64s(default_value)[i] = strtoll(text, nullptr, 10);
    }
    free(strings);
    return default_value;
}

static void read_partitions(mr_feature *feature, char *text)
{
    static const char *const kinds[] = {"splits", "lengths", "starts", "limits", "rowids", "uniform"};
    mr_partition *partitions = calloc(MR_PARTITIONS_MAX, sizeof *partitions);
    feature->partitions = partitions;
    for (char *part = strtok(text, ","); part; part = strtok(nullptr, ",")) {
        char *key = strchr(part, ':');
        mr_partition *partition = &partitions[feature->partition_count++];
        *key++ = '\0';
        while (strcmp(kinds[partition->kind], part) != 0) partition->kind++;
        if (partition->kind == MR_UNIFORM_ROW_LENGTH)
            partition->length = atoll(key);
        else
            partition->key = strdup(key);
    }
}

static bool load_spec(const char *path, spec *spec)
{
    static const char *const forms[] = {"fixed", "sequence", "variable", "ragged", "sparse"};
    FILE *file = fopen(path, "r");
    char scope[16], name[64], dtype[16], form[16], shape[64], default_value[64], value[64], keys[256], parts[256],
        flags[64];
    if (!file) return false;
    while (fscanf(file, "%15s %63s %15s %15s %63s %63s %63s %255s %255s %63s", scope, name, dtype, form, shape,
                  default_value, value, keys, parts, flags) == 10) {
        bool is_list = strcmp(scope, "list") == 0;
        spec->is_sequence = strcmp(scope, "example") != 0;
        mr_feature *feature = is_list ? &spec->lists[spec->list_count++] : &spec->context[spec->context_count++];
        *feature = (mr_feature){.name = name_of(name), .dtype = mr_dtype_parse(dtype), .value_key = name_of(value)};
        while (strcmp(forms[feature->form], form) != 0) feature->form++;
        for (char *part = strtok(shape, ","); part && strcmp(part, "-") != 0; part = strtok(nullptr, ","))
            feature->shape.dims[feature->shape.rank++] = atoll(part);
        if (strcmp(default_value, "-") != 0) feature->default_value = make_default_value(feature, default_value);
        const char **index_keys = calloc(MR_RANK_MAX, sizeof *index_keys);
        feature->index_keys = index_keys;
        for (char *part = strtok(keys, ","); part && strcmp(part, "-") != 0; part = strtok(nullptr, ","))
            *index_keys++ = strdup(part);
        if (strcmp(parts, "-") != 0) read_partitions(feature, parts);
        feature->already_sorted = strstr(flags, "sorted") != nullptr;
        feature->allow_missing = strstr(flags, "missing") != nullptr;
        if (strstr(flags, "int32")) feature->splits_dtype = MR_INT32;
    }
    fclose(file);
    return true;
}

/* ---- Parsing ---- */

static void print_tensor(const mr_tensor *tensor)
{
    char text[MR_SHAPE_TEXT_SIZE];
    printf(" %s%s", mr_dtype_name(tensor->dtype), mr_shape_text(tensor->shape, text, sizeof text));
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
        if (tensor->dtype == MR_INT64) printf(" %" PRId64, mr_tensor_int64s(tensor)[i]);
        if (tensor->dtype == MR_INT32) printf(" %" PRId32, mr_tensor_int32s(tensor)[i]);
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

/* Compares a tensor with mr_feature_tensor_spec. */
static void check_spec(mr_dtype dtype, mr_shape shape, const mr_tensor *tensor)
{
    char a[MR_SHAPE_TEXT_SIZE], b[MR_SHAPE_TEXT_SIZE];
    if (dtype == tensor->dtype && mr_shape_compatible(shape, tensor->shape)) return;
    printf(" (promised %s%s, made %s%s)", mr_dtype_name(dtype), mr_shape_text(shape, a, sizeof a),
           mr_dtype_name(tensor->dtype), mr_shape_text(tensor->shape, b, sizeof b));
}

static void check_specs(const spec *spec, const mr_tensor *tensors, int64_t batch)
{
    mr_dtype dtype;
    mr_shape shape;
    for (int32_t i = 0; i < spec->context_count; i++) {
        for (int32_t j = 0; j < mr_feature_tensor_count(&spec->context[i]); j++) {
            mr_feature_tensor_spec(&spec->context[i], batch, j, &dtype, &shape);
            check_spec(dtype, shape, tensors++);
        }
    }
    for (int32_t i = 0; i < spec->list_count; i++) {
        for (int32_t j = 0; j < mr_sequence_tensor_count(&spec->lists[i]); j++) {
            mr_sequence_tensor_spec(&spec->lists[i], batch, j, &dtype, &shape);
            check_spec(dtype, shape, tensors++);
        }
    }
}

static void parse_batch(const spec *spec, const mr_string *records, int64_t count, bool single)
{
    mr_error error = {0};
    static mr_tensor tensors[TENSORS_MAX];
    mr_status status = spec->is_sequence ? mr_sequence_parse(spec->sequence, records, count, single, tensors, &error)
                                         : mr_example_parse(spec->example, records, count, single, tensors, &error);
    if (status != MR_OK) {
        printf("error %s\n", error.message);
        return;
    }
    printf("ok");
    for (int32_t i = 0; i < spec->tensor_count; i++) print_tensor(&tensors[i]);
    check_specs(spec, tensors, single ? MR_SINGLE : count);
    for (int32_t i = 0; i < spec->tensor_count; i++) mr_tensor_deinit(&tensors[i]);
    printf("\n");
}

static mr_status make_parser(spec *spec, mr_error *error)
{
    for (int32_t i = 0; i < spec->context_count; i++) spec->tensor_count += mr_feature_tensor_count(&spec->context[i]);
    for (int32_t i = 0; i < spec->list_count; i++) spec->tensor_count += mr_sequence_tensor_count(&spec->lists[i]);
    if (!spec->is_sequence) return mr_example_parser_new(spec->context, spec->context_count, &spec->example, error);
    return mr_sequence_parser_new(spec->context, spec->context_count, spec->lists, spec->list_count, &spec->sequence,
                                  error);
}

static int parse(const char *source, const char *spec_path, const char *batch)
{
    static spec spec;
    mr_error error = {0};
    mr_record_reader *reader = nullptr;
    bool single = strcmp(batch, "single") == 0;
    int64_t batch_size = single ? 1 : atoll(batch);
    if (!load_spec(spec_path, &spec) || batch_size < 1 || batch_size > BATCH_MAX) return 1;
    if (make_parser(&spec, &error) != MR_OK) return fail(&error);
    if (mr_record_reader_open(source, nullptr, &reader, &error) != MR_OK) return fail(&error);
    static mr_string records[BATCH_MAX];
    mr_string record;
    int64_t count = 0;
    mr_status status = MR_OK;
    while (status == MR_OK) {
        status = mr_record_reader_next(reader, &record, &error);
        if (status == MR_OK) {
            char *bytes = malloc(record.size_bytes + 1);
            memcpy(bytes, record.data, record.size_bytes);
            records[count++] = (mr_string){bytes, record.size_bytes};
        }
        if (count == 0 || (count < batch_size && status == MR_OK)) continue;
        parse_batch(&spec, records, count, single);
        while (count > 0) free((char *)records[--count].data);
    }
    mr_record_reader_close(reader);
    mr_example_parser_free(spec.example);
    mr_sequence_parser_free(spec.sequence);
    return status == MR_OUT_OF_RANGE ? 0 : fail(&error);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "encode") == 0) return encode(argv[2]);
    if (argc == 5 && strcmp(argv[1], "parse") == 0) return parse(argv[2], argv[3], argv[4]);
    return 2;
}
