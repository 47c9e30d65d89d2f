/* Examples: encoding, iteration and parsing. tests/oracle compares the rules with TensorFlow; these tests check the
 * guarantees to callers, one rule at a time. */
#include "tests/test.h"

#include <millrace/example.h>
#include <stdarg.h>

/* ---- Wire format, assembled by hand ---- */

typedef struct bytes {
    unsigned char data[4096];
    size_t size;
} bytes;

static void put_varint(bytes *target, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) target->data[target->size++] = (unsigned char)(value | 0x80);
    target->data[target->size++] = (unsigned char)value;
}

static bytes field(int number, bytes payload)
{
    bytes result = {0};
    put_varint(&result, (uint64_t)number << 3 | 2);
    put_varint(&result, payload.size);
    memcpy(result.data + result.size, payload.data, payload.size);
    result.size += payload.size;
    return result;
}

static bytes join(bytes a, bytes b)
{
    memcpy(a.data + a.size, b.data, b.size);
    a.size += b.size;
    return a;
}

static bytes text(const char *value)
{
    bytes result = {.size = strlen(value)};
    memcpy(result.data, value, result.size);
    return result;
}

static bytes int64_feature(int count, ...)
{
    bytes packed = {0};
    va_list args;
    va_start(args, count);
    for (int i = 0; i < count; i++) put_varint(&packed, (uint64_t)va_arg(args, int));
    va_end(args);
    return field(3, field(1, packed));
}

static bytes entry(const char *name, bytes feature)
{
    return field(1, join(field(1, text(name)), field(2, feature)));
}

static mr_string view(const bytes *bytes)
{
    return (mr_string){(const char *)bytes->data, bytes->size};
}

/* Parses one int64 scalar of one record; returns the status, and the value in *value. */
static mr_status parse_scalar(bytes example, int64_t *value, mr_error *error)
{
    mr_error local = {0};
    mr_example_parser *parser = nullptr;
    mr_tensor tensor = {0};
    CHECK_EQ(mr_example_parser_new(&(mr_feature){.name = "a", .dtype = MR_INT64}, 1, &parser, &local), MR_OK);
    mr_string record = view(&example);
    mr_status status = mr_example_parse(parser, &record, 1, true, &tensor, error);
    if (status == MR_OK) *value = mr_tensor_int64s(&tensor)[0];
    mr_tensor_deinit(&tensor);
    mr_example_parser_free(parser);
    return status;
}

TEST(example_encoder_sorts_and_repeats_itself)
{
    mr_error error = {0};
    mr_example_encoder a = {0}, b = {0};
    mr_string first, second;
    mr_example_add_int64(&a, "z", 1);
    mr_example_add_float(&a, "b", 2);
    mr_example_add_bytes(&a, "bb", MR_STR("x"));
    CHECK_OK(mr_example_finish(&a, &first, &error));
    mr_example_add_bytes(&b, "bb", MR_STR("x"));
    mr_example_add_int64(&b, "z", 1);
    mr_example_add_float(&b, "b", 2);
    CHECK_OK(mr_example_finish(&b, &second, &error));
    CHECK(mr_string_equal(first, second));
    CHECK_OK(mr_example_finish(&b, &second, &error));
    CHECK_EQ(second.size_bytes, 2);
    mr_example_add_int64(&b, "z", 1);
    mr_example_add_float(&b, "z", 2);
    CHECK_STATUS(mr_example_finish(&b, &second, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "\"z\" was added twice");
    CHECK_OK(mr_example_finish(&b, &second, &error));
    mr_example_encoder_deinit(&a);
    mr_example_encoder_deinit(&b);
}

TEST(example_values_come_back)
{
    mr_error error = {0};
    mr_example_encoder encoder = {0};
    const int64_t integers[] = {0, 1, -1, 127, 128, INT64_MAX, INT64_MIN};
    const float floats[] = {0, -1.5f, 3e38f};
    const mr_string strings[] = {MR_STR(""), MR_STR("a\0b")};
    mr_example_add_int64_list(&encoder, "integers", integers, 7);
    mr_example_add_float_list(&encoder, "floats", floats, 3);
    mr_example_add_bytes_list(&encoder, "strings", strings, 2);
    mr_example_add_int64_list(&encoder, "none", nullptr, 0);
    mr_example_add_float(&encoder, "one", 0.25f);
    mr_string record;
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    int seen = 0;
    mr_status status;
    for (; (status = mr_example_next_feature(&walk, &feature, &error)) == MR_OK; seen++) {
        size_t count;
        int64_t read_integers[7];
        float read_floats[3];
        mr_string read_strings[2];
        CHECK_OK(mr_feature_count(&feature, &count, &error));
        if (mr_string_equal(feature.name, MR_STR("integers"))) {
            CHECK_EQ(count, 7);
            CHECK_OK(mr_feature_int64s(&feature, read_integers, 7, &error));
            CHECK(memcmp(integers, read_integers, sizeof integers) == 0);
            CHECK_STATUS(mr_feature_int64s(&feature, read_integers, 6, &error), MR_INVALID_ARGUMENT);
            CHECK_STATUS(mr_feature_floats(&feature, read_floats, 6, &error), MR_INVALID_ARGUMENT);
        } else if (mr_string_equal(feature.name, MR_STR("floats"))) {
            CHECK_OK(mr_feature_floats(&feature, read_floats, 3, &error));
            CHECK(memcmp(floats, read_floats, sizeof floats) == 0);
        } else if (mr_string_equal(feature.name, MR_STR("strings"))) {
            CHECK_OK(mr_feature_bytes(&feature, read_strings, 2, &error));
            CHECK(mr_string_equal(read_strings[0], strings[0]) && mr_string_equal(read_strings[1], strings[1]));
        } else if (mr_string_equal(feature.name, MR_STR("none"))) {
            CHECK_EQ(feature.kind, MR_FEATURE_INT64);
            CHECK_EQ(count, 0);
        }
    }
    CHECK_EQ(status, MR_OUT_OF_RANGE);
    CHECK_EQ(seen, 5);
    float one;
    int64_t integer;
    CHECK_OK(mr_example_get_float(record, "one", &one, &error));
    CHECK(one * 4 == 1);
    CHECK_STATUS(mr_example_get_int64(record, "one", &integer, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_example_get_int64(record, "integers", &integer, &error), MR_INVALID_ARGUMENT);
    CHECK_STATUS(mr_example_get_int64(record, "two", &integer, &error), MR_NOT_FOUND);
    mr_example_encoder_deinit(&encoder);
}

TEST(example_parse_follows_tensorflow_where_forms_are_rare)
{
    mr_error error = {0};
    int64_t value = 0;
    bytes plain = field(1, entry("a", int64_feature(1, 5)));
    CHECK_OK(parse_scalar(plain, &value, &error));
    CHECK_EQ(value, 5);
    /* The value precedes the key. */
    CHECK_OK(
        parse_scalar(field(1, field(1, join(field(2, int64_feature(1, 6)), field(1, text("a"))))), &value, &error));
    CHECK_EQ(value, 6);
    /* The last of two entries wins, also across messages. */
    CHECK_OK(parse_scalar(join(plain, field(1, entry("a", int64_feature(1, 7)))), &value, &error));
    CHECK_EQ(value, 7);
    /* A later entry without a list does not. */
    CHECK_OK(parse_scalar(join(plain, field(1, entry("a", (bytes){0}))), &value, &error));
    CHECK_EQ(value, 5);
    /* Unpacked; a second packed chunk is ignored. */
    CHECK_OK(parse_scalar(field(1, entry("a", field(3, (bytes){.data = {8, 9}, .size = 2}))), &value, &error));
    CHECK_EQ(value, 9);
    CHECK_OK(parse_scalar(field(1, entry("a", field(3, join(field(1, (bytes){.data = {3}, .size = 1}),
                                                            field(1, (bytes){.data = {4}, .size = 1}))))),
                          &value, &error));
    CHECK_EQ(value, 3);
    /* Unknown fields next to Features are skipped; inside Features they are damage. */
    CHECK_OK(parse_scalar(join(field(9, text("xyz")), plain), &value, &error));
    CHECK_STATUS(parse_scalar(field(1, join(field(9, text("xyz")), entry("a", int64_feature(1, 5)))), &value, &error),
                 MR_DATA_LOSS);
    /* Groups are damage. */
    CHECK_STATUS(parse_scalar(join((bytes){.data = {0x2b, 0x2c}, .size = 2}, plain), &value, &error), MR_DATA_LOSS);
}

TEST(example_parse_reports_what_is_wrong)
{
    mr_error error = {0};
    int64_t value;
    CHECK_STATUS(parse_scalar((bytes){0}, &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "feature \"a\" is missing");
    CHECK_STATUS(parse_scalar(field(1, entry("a", int64_feature(2, 1, 2))), &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "feature \"a\" has 2 values, but shape [] requires 1");
    CHECK_STATUS(parse_scalar(field(1, entry("a", field(2, (bytes){0}))), &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "feature \"a\" holds float, not int64");
    CHECK_STATUS(parse_scalar(field(1, entry("a", field(3, (bytes){0}))), &value, &error), MR_INVALID_ARGUMENT);
    CHECK_STR(error.message, "feature \"a\" has 0 values, but shape [] requires 1");
    bytes cut = field(1, entry("a", int64_feature(1, 5)));
    cut.size--;
    CHECK_STATUS(parse_scalar(cut, &value, &error), MR_DATA_LOSS);
    CHECK_CONTAINS(error.message, "damaged at byte");
}

TEST(example_parse_makes_columns)
{
    mr_error error = {0};
    const bytes examples[] = {
        field(1, join(entry("v", int64_feature(3, 1, 2, 3)), entry("s", int64_feature(2, 7, 8)))),
        field(1, entry("x", int64_feature(1, 1))),
        field(1, join(entry("v", int64_feature(1, 4)), entry("s", int64_feature(4, 1, 2, 3, 4))))};
    const mr_string records[] = {view(&examples[0]), view(&examples[1]), view(&examples[2])};
    mr_tensor default_value = {0}, pad = {0}, tensors[8];
    const int64_t defaults[] = {-1, -2};
    CHECK_OK(mr_tensor_init_copy(&default_value, MR_INT64, MR_SHAPE(2), defaults, &error));
    CHECK_OK(mr_tensor_init_int64(&pad, 99, &error));
    const mr_feature features[] = {
        {.name = "v", .dtype = MR_INT64, .form = MR_VAR_LEN},
        {.name = "s", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .shape = MR_SHAPE(2), .default_value = &pad},
        {.name = "f", .dtype = MR_INT64, .shape = MR_SHAPE(2), .default_value = &default_value},
        {.name = "r", .dtype = MR_INT64, .form = MR_RAGGED},
    };
    mr_example_parser *parser = nullptr;
    CHECK_OK(mr_example_parser_new(features, 4, &parser, &error));
    CHECK_OK(mr_example_parse(parser, records, 3, false, tensors, &error));
    const int64_t indices[] = {0, 0, 0, 1, 0, 2, 2, 0}, values[] = {1, 2, 3, 4}, dense[] = {3, 3};
    CHECK(mr_shape_equal(tensors[0].shape, MR_SHAPE(4, 2)));
    CHECK(memcmp(tensors[0].data, indices, sizeof indices) == 0);
    CHECK(memcmp(tensors[1].data, values, sizeof values) == 0);
    CHECK(memcmp(tensors[2].data, dense, sizeof dense) == 0);
    const int64_t sequence[] = {7, 8, 99, 99, 99, 99, 99, 99, 1, 2, 3, 4}, fixed[] = {-1, -2, -1, -2, -1, -2};
    CHECK(mr_shape_equal(tensors[3].shape, MR_SHAPE(3, 2, 2)));
    CHECK(memcmp(tensors[3].data, sequence, sizeof sequence) == 0);
    CHECK(memcmp(tensors[4].data, fixed, sizeof fixed) == 0);
    CHECK(mr_shape_equal(tensors[5].shape, MR_SHAPE(0)));
    CHECK(mr_shape_equal(tensors[6].shape, MR_SHAPE(4)));
    for (int i = 0; i < 7; i++) mr_tensor_deinit(&tensors[i]);
    CHECK_OK(mr_example_parse(parser, records, 0, false, tensors, &error));
    CHECK(mr_shape_equal(tensors[3].shape, MR_SHAPE(0, 0, 2)));
    for (int i = 0; i < 7; i++) mr_tensor_deinit(&tensors[i]);
    mr_example_parser_free(parser);
    mr_tensor_deinit(&default_value);
    mr_tensor_deinit(&pad);
}

TEST(example_find_returns_views_into_the_record)
{
    mr_error error = {0};
    bytes example = field(1, join(entry("a", int64_feature(1, 5)), entry("b", field(1, field(1, text("hello"))))));
    mr_string record = view(&example), value;
    const mr_feature features[] = {{.name = "b", .dtype = MR_STRING}, {.name = "c", .dtype = MR_STRING}};
    mr_example_parser *parser = nullptr;
    mr_feature_view views[2];
    CHECK_OK(mr_example_parser_new(features, 2, &parser, &error));
    CHECK_OK(mr_example_find(parser, record, views, &error));
    CHECK_OK(mr_feature_bytes(&views[0], &value, 1, &error));
    CHECK(mr_string_equal(value, MR_STR("hello")));
    CHECK(value.data > record.data && value.data < record.data + record.size_bytes);
    CHECK_EQ(views[1].kind, MR_FEATURE_NONE);
    mr_example_parser_free(parser);
}

TEST(example_parser_refuses_what_cannot_be)
{
    mr_error error = {0};
    mr_example_parser *parser = nullptr;
    mr_tensor one = {0};
    CHECK_OK(mr_tensor_init_int64(&one, 1, &error));
    const mr_feature twice[] = {{.name = "a", .dtype = MR_INT64}, {.name = "a", .dtype = MR_FLOAT}};
    CHECK_STATUS(mr_example_parser_new(twice, 2, &parser, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "twice");
    const mr_feature wrong[] = {
        {.name = "a", .dtype = MR_INT32},
        {.name = "a", .dtype = MR_INT64, .shape = MR_SHAPE(-1)},
        {.name = "a", .dtype = MR_INT64, .form = MR_FIXED_LEN_SEQUENCE, .shape = MR_SHAPE(0)},
        {.name = "a", .dtype = MR_INT64, .shape = MR_SHAPE(2), .default_value = &one},
        {.name = "a", .dtype = MR_FLOAT, .default_value = &one},
        {.name = "a", .dtype = MR_INT64, .form = MR_VAR_LEN, .default_value = &one},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_STATUS(mr_example_parser_new(&wrong[i], 1, &parser, &error), MR_INVALID_ARGUMENT);
    mr_tensor_deinit(&one);
}

TEST(example_parser_tells_many_like_names_apart)
{
    static constexpr int COUNT = 500;
    mr_error error = {0};
    static char names[COUNT][32];
    static mr_feature features[COUNT];
    mr_example_encoder encoder = {0};
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%0*d", 1 + i % 20, i);
        features[i] = (mr_feature){.name = names[i], .dtype = MR_INT64};
        mr_example_add_int64(&encoder, names[i], i);
    }
    mr_string record;
    mr_example_parser *parser = nullptr;
    static mr_tensor tensors[COUNT];
    CHECK_OK(mr_example_finish(&encoder, &record, &error));
    CHECK_OK(mr_example_parser_new(features, COUNT, &parser, &error));
    CHECK_OK(mr_example_parse(parser, &record, 1, true, tensors, &error));
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(mr_tensor_int64s(&tensors[i])[0], i);
        mr_tensor_deinit(&tensors[i]);
    }
    mr_example_parser_free(parser);
    mr_example_encoder_deinit(&encoder);
}
