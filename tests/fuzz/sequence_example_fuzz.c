/* Fuzz target: SequenceExamples. The kind of the record is detected; it is iterated, and parsed into columns of every
 * form, alone and between valid records. It is also parsed as an Example, in the forms that combine several features.
 * Parsed tensors must be consistent. */
#include <millrace/example.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

static const char *const keys[] = {"d", "f"};
static const mr_partition partitions[] = {{.kind = MR_ROW_SPLITS, .key = "f"},
                                          {.kind = MR_UNIFORM_ROW_LENGTH, .length = 2},
                                          {.kind = MR_ROW_LENGTHS, .key = "d"},
                                          {.kind = MR_UNIFORM_ROW_LENGTH, .length = 1}};
static const mr_partition starts[] = {{.kind = MR_ROW_STARTS, .key = "f"}};
static const mr_partition limits[] = {{.kind = MR_ROW_LIMITS, .key = "f"}, {.kind = MR_VALUE_ROWIDS, .key = "d"}};

/* The requested features; each form uses the entries a, d and f of the record. */
static const mr_feature forms[] = {
    {.name = "a", .dtype = MR_INT64, .form = MR_VAR_LEN},
    {.name = "a", .dtype = MR_STRING, .form = MR_RAGGED},
    {.name = "a", .dtype = MR_FLOAT, .form = MR_RAGGED, .partitions = partitions, .partition_count = 4},
    {.name = "a", .dtype = MR_INT64, .form = MR_RAGGED, .partitions = starts, .partition_count = 1},
    {.name = "a", .dtype = MR_STRING, .form = MR_RAGGED, .partitions = limits, .partition_count = 2},
    {.name = "a",
     .dtype = MR_FLOAT,
     .form = MR_FIXED_LEN_SEQUENCE,
     .shape = {.rank = 1, .dims = {2}},
     .allow_missing = true},
    {.name = "a", .dtype = MR_STRING, .form = MR_FIXED_LEN_SEQUENCE, .allow_missing = true},
    {.name = "a", .dtype = MR_INT64},
    {.name = "a", .dtype = MR_INT64, .form = MR_SPARSE, .shape = {.rank = 2, .dims = {5, 1000}}, .index_keys = keys},
};
static constexpr int FORMS = sizeof forms / sizeof forms[0];
static constexpr int TENSORS_MAX = 32;

static void walk(mr_string record)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    mr_feature_view step;
    mr_status status;
    bool is_whole = true;
    while ((status = mr_sequence_next_list(&walk, &list, nullptr)) == MR_OK) {
        size_t steps = 0, count, seen = 0;
        bool is_counted = mr_feature_list_count(&list, &steps, nullptr) == MR_OK;
        while ((status = mr_feature_list_next(&list, &step, nullptr)) == MR_OK) {
            seen++;
            if (mr_feature_count(&step, &count, nullptr) == MR_OK) need(count <= record.size_bytes);
        }
        need(status != MR_OUT_OF_RANGE || (is_counted && seen == steps));
        is_whole = is_whole && status == MR_OUT_OF_RANGE;
    }
    need(status == MR_OUT_OF_RANGE || status == MR_DATA_LOSS);
    if (mr_example_form_of(record) == MR_EXAMPLE_SEQUENCE) need(is_whole && status == MR_OUT_OF_RANGE);
}

/* Splits never decrease, and the last one equals the number of items. */
static void check_splits(const mr_tensor *splits, int64_t items)
{
    int64_t count = mr_tensor_count(splits);
    if (count == 0) return;
    const int64_t *values = mr_tensor_int64s(splits);
    need(values[0] == 0 && values[count - 1] == items);
    for (int64_t i = 1; i < count; i++) need(values[i] >= values[i - 1]);
}

static void check(const mr_feature *feature, mr_tensor *tensors, int32_t count)
{
    if (feature->form == MR_RAGGED) {
        int64_t items = tensors[0].shape.dims[0];
        for (int32_t i = count - 1; i > 0; i--) {
            check_splits(&tensors[i], items);
            items = mr_tensor_count(&tensors[i]) - 1;
        }
    }
    if (feature->form == MR_SPARSE || feature->form == MR_VAR_LEN)
        need(tensors[0].shape.dims[0] == mr_tensor_count(&tensors[1]));
    for (int32_t i = 0; i < count; i++) mr_tensor_deinit(&tensors[i]);
}

static void parse_sequence(int form, bool is_list, const mr_string *records, int64_t count, bool single)
{
    static mr_sequence_parser *parsers[FORMS][2]; /* reused for all inputs */
    mr_sequence_parser **parser = &parsers[form][is_list];
    mr_tensor tensors[TENSORS_MAX];
    const mr_feature *feature = &forms[form];
    if (!*parser && mr_sequence_parser_new(feature, !is_list, feature, is_list, parser, nullptr) != MR_OK) return;
    if (mr_sequence_parse(*parser, records, count, single, tensors, nullptr) == MR_OK)
        check(feature, tensors, is_list ? mr_sequence_tensor_count(feature) : mr_feature_tensor_count(feature));
}

static void parse_example(int form, const mr_string *records, int64_t count, bool single)
{
    static mr_example_parser *parsers[FORMS]; /* reused for all inputs */
    mr_tensor tensors[TENSORS_MAX];
    if (!parsers[form]) need(mr_example_parser_new(&forms[form], 1, &parsers[form], nullptr) == MR_OK);
    if (mr_example_parse(parsers[form], records, count, single, tensors, nullptr) == MR_OK)
        check(&forms[form], tensors, mr_feature_tensor_count(&forms[form]));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    /* A copy of exactly this size, so that a sanitizer detects reads past the end. */
    uint8_t *copy = malloc(size_bytes ? size_bytes : 1);
    need(copy != nullptr);
    memcpy(copy, bytes, size_bytes);
    const mr_string records[] = {{"", 0}, {(const char *)copy, size_bytes}, {"\x12\x00", 2}};
    walk(records[1]);
    for (int form = 0; form < FORMS; form++) {
        parse_example(form, &records[1], 1, true);
        parse_example(form, records, 3, false);
        for (int is_list = 0; is_list < 2; is_list++) {
            parse_sequence(form, is_list, &records[1], 1, true);
            parse_sequence(form, is_list, records, 3, false);
        }
    }
    free(copy);
    return 0;
}
