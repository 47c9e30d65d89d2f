/* The specification that parses every feature of a schema: a C header for mr_example_parser_new or
 * mr_sequence_parser_new, a Python module for tf.io.parse_example or tf.io.parse_sequence_example. It parses the
 * records from which the schema was computed: a feature that every record has with the same length is fixed, all others
 * have a variable length. Features that no specification can parse are comments. */
#include "tfrecord-cat/schema_spec.h"

#include "common/text.h"

#include <inttypes.h>
#include <string.h>

/* ---- Obstacles ---- */

/* Why a column cannot be parsed, or null. */
static const char *obstacle(const schema_column *column, bool is_python)
{
    if (!is_python && memchr(column->name.data, 0, column->name.size_bytes)) return "has a NUL in its name";
    if (is_python && !text_is_utf8(column->name)) return "has a name that is not UTF-8";
    if (column->kinds[1] + column->kinds[2] + column->kinds[3] == 0) return "never has values";
    if (schema_column_kind(column) == MR_FEATURE_NONE) return "has values of several kinds";
    return nullptr;
}

/* A feature that some records lack has no natural default value: it is parsed with a variable length. */
static bool is_fixed(const schema *schema, const schema_column *column)
{
    return schema_column_is_fixed(column) && (column->is_list || column->present == schema_records(schema));
}

/* Prints ", in 93 % of records" unless all records have it. */
static void print_note(const schema *schema, const schema_column *column, const char *open, const char *close)
{
    uint64_t records = schema_records(schema);
    bool is_all = column->present == records, is_fixed = schema_column_is_fixed(column);
    if ((is_fixed && is_all) || column->values.least > column->values.most) return;
    printf("%s", open);
    if (column->values.least == column->values.most)
        printf("%" PRIu64, column->values.most);
    else
        printf("%" PRIu64 " to %" PRIu64, column->values.least, column->values.most);
    printf(" value%s%s", column->values.most == 1 ? "" : "s", column->is_list ? " a step" : "");
    if (!is_all) printf(", in %" PRIu64 " of %" PRIu64, column->present, records);
    printf("%s", close);
}

/* ---- C ---- */

/* Also safe inside a comment, which it neither ends nor begins. */
static void put_c_string(mr_string text)
{
    putchar('"');
    for (size_t i = 0; i < text.size_bytes; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_by_star = (i > 0 && text.data[i - 1] == '*') || (i + 1 < text.size_bytes && text.data[i + 1] == '*');
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20 || c >= 0x7f || (c == '/' && is_by_star))
            printf("\\%03o", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void put_c_feature(const schema *schema, const schema_column *column)
{
    static const char *const dtypes[] = {"", "MR_STRING", "MR_FLOAT", "MR_INT64"};
    const char *why = obstacle(column, false);
    printf(why ? "    /* " : "    {.name = ");
    put_c_string(column->name);
    if (why) {
        printf(" %s */\n", why);
        return;
    }
    printf(", .dtype = %s", dtypes[schema_column_kind(column)]);
    bool fixed = is_fixed(schema, column);
    if (!fixed) printf(", .form = MR_VAR_LEN");
    if (fixed && column->is_list) printf(", .form = MR_FIXED_LEN_SEQUENCE");
    if (fixed && column->values.most != 1) printf(", .shape = {.rank = 1, .dims = {%" PRIu64 "}}", column->values.most);
    if (fixed && column->is_list && column->present < schema_records(schema)) printf(", .allow_missing = true");
    printf("},");
    print_note(schema, column, " /* ", " */");
    putchar('\n');
}

/* The number of columns that are parsed. */
static size_t count_requested(const schema *schema, bool is_list, bool is_python)
{
    size_t count = 0;
    for (size_t i = 0; i < schema->count; i++)
        count += schema->columns[i].is_list == is_list && !obstacle(&schema->columns[i], is_python);
    return count;
}

/* The array, or a null pointer if it would be empty. */
static void put_c_array(const schema *schema, const char *name, bool is_list)
{
    bool is_empty = count_requested(schema, is_list, false) == 0;
    printf(is_empty ? "static const mr_feature *const %s = nullptr;\n" : "static const mr_feature %s[] = {\n", name);
    for (size_t i = 0; i < schema->count; i++)
        if (schema->columns[i].is_list == is_list && (!is_empty || obstacle(&schema->columns[i], false)))
            put_c_feature(schema, &schema->columns[i]);
    if (!is_empty) printf("};\n");
}

void schema_print_c(const schema *schema)
{
    size_t features = count_requested(schema, false, false), lists = count_requested(schema, true, false);
    printf("#include <millrace/dataset.h>\n\n");
    if (schema->sequences == 0) {
        printf("/* mr_example_parser_new(features, %zu, …), mr_dataset_parse_example(d, features, %zu) */\n", features,
               features);
        put_c_array(schema, "features", false);
        return;
    }
    printf("/* mr_sequence_parser_new(context, %zu, lists, %zu, …),\n"
           "   mr_dataset_parse_sequence_example(d, context, %zu, lists, %zu) */\n",
           features, lists, features, lists);
    put_c_array(schema, "context", false);
    put_c_array(schema, "lists", true);
}

/* ---- Python ---- */

/* Writes UTF-8 with everything that is not ASCII as \u or \U. */
static void put_python_string(mr_string text)
{
    putchar('"');
    for (size_t i = 0; i < text.size_bytes;) {
        unsigned char c = (unsigned char)text.data[i++];
        uint32_t point = c < 0x80 ? c : c < 0xe0 ? c & 0x1f : c < 0xf0 ? c & 0x0f : c & 0x07;
        for (int more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3; more > 0 && i < text.size_bytes; more--)
            point = point << 6 | ((unsigned char)text.data[i++] & 0x3f);
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (point < 0x20 || point == 0x7f)
            printf("\\x%02x", point);
        else if (point < 0x80)
            putchar((int)point);
        else
            printf(point < 0x10000 ? "\\u%04x" : "\\U%08x", point);
    }
    putchar('"');
}

static void put_python_feature(const schema *schema, const schema_column *column)
{
    static const char *const dtypes[] = {"", "tf.string", "tf.float32", "tf.int64"};
    const char *why = obstacle(column, true);
    printf("    ");
    if (why) {
        printf("# ");
        (void)text_print(stdout, column->name, 60);
        printf(" %s\n", why);
        return;
    }
    put_python_string(column->name);
    char shape[32] = "[]";
    if (column->values.most != 1) snprintf(shape, sizeof(shape), "[%" PRIu64 "]", column->values.most);
    const char *dtype = dtypes[schema_column_kind(column)];
    if (!is_fixed(schema, column))
        printf(": tf.io.VarLenFeature(%s),", dtype);
    else if (!column->is_list)
        printf(": tf.io.FixedLenFeature(%s, %s),", shape, dtype);
    else
        printf(": tf.io.FixedLenSequenceFeature(%s, %s%s),", shape, dtype,
               column->present < schema_records(schema) ? ", allow_missing=True" : "");
    print_note(schema, column, "  # ", "");
    putchar('\n');
}

static void put_python_dict(const schema *schema, const char *name, bool is_list)
{
    printf("%s = {\n", name);
    for (size_t i = 0; i < schema->count; i++)
        if (schema->columns[i].is_list == is_list) put_python_feature(schema, &schema->columns[i]);
    printf("}\n");
}

void schema_print_python(const schema *schema)
{
    printf("import tensorflow as tf\n\n");
    if (schema->sequences == 0) {
        printf("# tf.io.parse_example(records, features)\n");
        put_python_dict(schema, "features", false);
        return;
    }
    printf("# tf.io.parse_sequence_example(records, context, lists)\n");
    put_python_dict(schema, "context", false);
    put_python_dict(schema, "lists", true);
}
