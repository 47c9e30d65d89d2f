/* Checks of a record; see verify.h. A bytes value is an image if it begins like one; under the name image/encoded, used
 * by TensorFlow's datasets, it must be one. */
#include "tfrecord-cat/verify.h"

#include <millrace/image.h>

#include <stdlib.h>
#include <string.h>

/* Minimum size of an image in bytes. */
static constexpr size_t IMAGE_MIN_BYTES = 24;
/* Maximum length of a name in a message. */
static constexpr int NAME_COLUMNS = 60;

typedef struct check {
    checker *checker;
    take_fault *take;
    void *context;
} check;

void checker_deinit(checker *checker)
{
    free(checker->values);
    *checker = (struct checker){};
}

[[gnu::format(printf, 3, 4)]] static void report_fault(const check *check, const char *kind, const char *format, ...)
{
    mr_error error = {0};
    va_list args;
    va_start(args, format);
    (void)mr_fail_va(&error, MR_DATA_LOSS, format, args);
    va_end(args);
    check->take(check->context, kind, error.message);
}

static void report_value_fault(const check *check, const char *kind, mr_string name, const char *message)
{
    char text[256];
    (void)text_copy(text, sizeof text, name, NAME_COLUMNS);
    report_fault(check, kind, "%s: %s", text, message);
}

/* ---- Images ---- */

static bool begins_like_a_image(mr_string bytes)
{
    static const struct {
        const char *magic;
        size_t size;
    } magics[] = {{"\xff\xd8\xff", 3}, {"\x89PNG\r\n\x1a\n", 8}, {"GIF87a", 6}, {"GIF89a", 6}};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (bytes.size_bytes >= magics[i].size && memcmp(bytes.data, magics[i].magic, magics[i].size) == 0) return true;
    return false;
}

static void check_image(const check *check, mr_string name, mr_string bytes)
{
    mr_image_info info = {0};
    mr_error error = {0};
    mr_status status = mr_image_probe(bytes.data, bytes.size_bytes, &info, &error);
    /* Formats that are recognized by name only have no header check. */
    if (status == MR_UNIMPLEMENTED) return;
    if (status == MR_OK && check->checker->decodes && (info.format == MR_IMAGE_JPEG || info.format == MR_IMAGE_PNG)) {
        mr_tensor image = {0};
        status = mr_image_decode(bytes.data, bytes.size_bytes, nullptr, &image, &error);
        mr_tensor_deinit(&image);
        if (status == MR_UNIMPLEMENTED) return;
    }
    if (status != MR_OK) report_value_fault(check, "bad image", name, error.message);
}

static void check_bytes(const check *check, const mr_feature_view *feature, mr_string name, size_t count)
{
    checker *checker = check->checker;
    bool is_encoded = mr_string_equal(name, MR_STR("image/encoded"));
    if (count == 0 || (!is_encoded && feature->list.size_bytes < IMAGE_MIN_BYTES)) return;
    if (count > checker->capacity) {
        mr_string *grown = reallocarray(checker->values, count, sizeof(mr_string));
        if (!grown) {
            report_value_fault(check, "not checked", name, "no memory for its values");
            return;
        }
        checker->values = grown;
        checker->capacity = count;
    }
    if (mr_feature_bytes(feature, checker->values, count, &checker->error) != MR_OK) {
        report_value_fault(check, "bad Example", name, checker->error.message);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (is_encoded || begins_like_a_image(checker->values[i])) check_image(check, name, checker->values[i]);
}

/* ---- Examples ---- */

static void check_feature(const check *check, const mr_feature_view *feature, mr_string name)
{
    mr_error *error = &check->checker->error;
    size_t count;
    if (mr_feature_count(feature, &count, error) != MR_OK)
        report_value_fault(check, "bad Example", name, "its values are damaged");
    else if (feature->kind == MR_FEATURE_BYTES)
        check_bytes(check, feature, name, count);
}

static mr_status check_features(const check *check, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    /* Formatting the end-of-features message for every record would be slow: it is requested only if there is another
     * error. */
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK)
        check_feature(check, &feature, feature.name);
    if (status == MR_OUT_OF_RANGE) return MR_OK;
    walk = (mr_example_cursor){.record = record};
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK);
    return status;
}

static mr_status check_lists(const check *check, mr_string record, mr_error *error)
{
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    mr_status status;
    while ((status = mr_sequence_next_list(&walk, &list, error)) == MR_OK) {
        mr_feature_view step;
        mr_error problem = {0};
        while ((status = mr_feature_list_next(&list, &step, &problem)) == MR_OK) check_feature(check, &step, list.name);
        if (status != MR_OUT_OF_RANGE) report_value_fault(check, "bad Example", list.name, problem.message);
    }
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

/* Whether the record is exactly one field 1, as nearly every Example is: then it is not a SequenceExample. */
static bool is_features_alone(mr_string record)
{
    uint64_t length = 0;
    size_t at = 1;
    if (record.size_bytes < 2 || record.data[0] != 0x0a) return false;
    for (int shift = 0; at < record.size_bytes && shift < 35; shift += 7) {
        unsigned char byte = (unsigned char)record.data[at++];
        length |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return length == record.size_bytes - at;
    }
    return false;
}

void checker_check(checker *checker, mr_string record, take_fault *take, void *context)
{
    const check check = {checker, take, context};
    mr_error *error = &checker->error;
    mr_status status = check_features(&check, record, error);
    if (status == MR_OK && is_features_alone(record)) return;
    mr_example_form form = mr_example_form_of(record);
    if (status == MR_OK && form == MR_EXAMPLE_SEQUENCE) status = check_lists(&check, record, error);
    if (status != MR_OK)
        report_fault(&check, "bad Example", "%s", error->message);
    else if (form == MR_EXAMPLE_NONE)
        report_fault(&check, "bad Example", "neither an Example nor a SequenceExample (--raw skips this check)");
}
