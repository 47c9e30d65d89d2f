/* Fuzz target: Examples. The bytes are iterated, searched, and parsed into columns of every form, alone and in a batch
 * with a valid record. Parsed tensors must be consistent with the record. */
#include <millrace/example.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void need(bool holds)
{
    if (!holds) abort();
}

static const mr_feature features[] = {
    {.name = "a", .dtype = MR_INT64, .form = MR_VAR_LEN},
    {.name = "b", .dtype = MR_FLOAT, .form = MR_VAR_LEN},
    {.name = "c", .dtype = MR_STRING, .form = MR_VAR_LEN},
    {.name = "d", .dtype = MR_INT64, .form = MR_RAGGED},
    {.name = "e", .dtype = MR_STRING, .form = MR_RAGGED},
    {.name = "f", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .shape = {.rank = 1, .dims = {2}}},
    {.name = "image/encoded", .dtype = MR_STRING, .form = MR_FIXED_LEN_SEQUENCE},
    {.name = "image/height", .dtype = MR_FLOAT, .form = MR_FIXED_LEN_SEQUENCE},
};
static constexpr int COUNT = sizeof features / sizeof features[0];
static constexpr int TENSORS_MAX = 3 * COUNT;

static void walk(mr_string record)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK) {
        size_t count;
        if (mr_feature_count(&feature, &count, nullptr) != MR_OK) continue;
        need(count <= record.size_bytes);
        mr_string *values = malloc((count + 1) * sizeof(mr_string));
        if (feature.kind == MR_FEATURE_BYTES) need(mr_feature_bytes(&feature, values, count, nullptr) == MR_OK);
        if (feature.kind == MR_FEATURE_FLOAT)
            need(mr_feature_floats(&feature, (float *)values, count, nullptr) == MR_OK);
        if (feature.kind == MR_FEATURE_INT64)
            need(mr_feature_int64s(&feature, (int64_t *)values, count, nullptr) == MR_OK);
        free(values);
    }
    need(status == MR_OUT_OF_RANGE || status == MR_DATA_LOSS);
}

static void parse(const mr_feature *asked, int32_t count, const mr_string *records, int64_t record_count, bool single)
{
    mr_example_parser *parser = nullptr;
    mr_tensor tensors[TENSORS_MAX];
    need(mr_example_parser_new(asked, count, &parser, nullptr) == MR_OK);
    if (mr_example_parse(parser, records, record_count, single, tensors, nullptr) == MR_OK) {
        int32_t tensor_count = 0;
        for (int32_t i = 0; i < count; i++) tensor_count += mr_feature_tensor_count(&asked[i]);
        for (int32_t i = 0; i < tensor_count; i++) {
            size_t total = 0;
            for (int64_t j = 0; tensors[i].dtype == MR_STRING && j < mr_tensor_count(&tensors[i]); j++)
                total += mr_tensor_strings(&tensors[i])[j].size_bytes;
            need(total <= records[0].size_bytes);
            mr_tensor_deinit(&tensors[i]);
        }
    }
    mr_feature_view views[COUNT];
    if (mr_example_find(parser, records[0], views, nullptr) == MR_OK)
        for (int32_t i = 0; i < count; i++) need(views[i].list.size_bytes <= records[0].size_bytes);
    mr_example_parser_free(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    /* A copy of exactly this size, so that a sanitizer detects reads past the end. */
    uint8_t *copy = malloc(size_bytes ? size_bytes : 1);
    need(copy != nullptr);
    memcpy(copy, bytes, size_bytes);
    const mr_string records[] = {{(const char *)copy, size_bytes}, {"", 0}};
    walk(records[0]);
    parse(features, COUNT, records, 1, true);
    parse(features, COUNT, records, 2, false);
    for (int32_t i = 0; i < COUNT; i++) {
        mr_feature fixed = {.name = features[i].name, .dtype = features[i].dtype};
        parse(&features[i], 1, records, 2, false);
        parse(&fixed, 1, records, 1, true);
    }
    free(copy);
    return 0;
}
