/* The parser of operator rows. A cursor moves over the text; the tokens are words, numbers, quoted strings and
 * single characters. On an error the cursor stays where it is and sets its failure flag, so callers need not check
 * each step. */
#include "graph/ir/signature.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    const char *text;
    mr_arena *arena;
    bool failed;
} cursor;

static void skip_space(cursor *c)
{
    while (*c->text == ' ') c->text++;
}

static bool accept(cursor *c, const char *token)
{
    skip_space(c);
    size_t length = strlen(token);
    if (strncmp(c->text, token, length) != 0) return false;
    c->text += length;
    return true;
}

static void expect(cursor *c, const char *token)
{
    if (!accept(c, token)) c->failed = true;
}

static bool is_word_character(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '_';
}

static const char *word(cursor *c)
{
    skip_space(c);
    size_t length = 0;
    while (is_word_character(c->text[length])) length++;
    if (length == 0) c->failed = true;
    const char *copy = mr_arena_strndup(c->arena, c->text, length);
    if (copy == nullptr) c->failed = true;
    c->text += length;
    return copy != nullptr ? copy : "";
}

static const char *quoted(cursor *c)
{
    expect(c, "'");
    const char *end = c->failed ? nullptr : strchr(c->text, '\'');
    if (end == nullptr) {
        c->failed = true;
        return "";
    }
    const char *copy = mr_arena_strndup(c->arena, c->text, (size_t)(end - c->text));
    if (copy == nullptr) c->failed = true;
    c->text = end + 1;
    return copy != nullptr ? copy : "";
}

static int64_t integer(cursor *c)
{
    char *end = nullptr;
    int64_t value = strtoll(c->text, &end, 10);
    if (end == c->text) c->failed = true;
    c->text = end;
    return value;
}

/* ---- Arguments ---- */

/* The type of an argument: an attr of the row, or a dtype. Which of the two is known only after the attrs are
 * parsed. */
static void resolve_type(const mr_op_def *def, const char *name, mr_op_argument *argument, cursor *c)
{
    const mr_op_attr *attr = mr_op_def_attr(def, name);
    if (attr == nullptr) {
        argument->dtype = mr_dtype_parse(name);
        if (argument->dtype == MR_DTYPE_INVALID) c->failed = true;
    } else if (attr->is_list) {
        argument->types_attr = name;
    } else {
        argument->type_attr = name;
    }
}

static void parse_argument(cursor *c, const mr_op_def *def, mr_op_argument *argument)
{
    *argument = (mr_op_argument){.name = word(c)};
    expect(c, ":");
    argument->is_ref = accept(c, "Ref(");
    const char *type = word(c);
    if (accept(c, "*")) {
        argument->number_attr = type;
        type = word(c);
    }
    if (argument->is_ref) expect(c, ")");
    resolve_type(def, type, argument, c);
}

static int32_t count_separators(const char *begin, const char *end, char separator)
{
    int32_t count = 0;
    for (const char *at = begin; at < end; at++) count += *at == separator;
    return count;
}

static const mr_op_argument *parse_arguments(cursor *c, const mr_op_def *def, const char *end, int32_t *count)
{
    skip_space(c);
    *count = 0;
    if (c->text >= end) return nullptr;
    int32_t total = count_separators(c->text, end, ',') + 1;
    mr_op_argument *arguments = MR_ARENA_NEW(c->arena, mr_op_argument, (size_t)total);
    if (arguments == nullptr) {
        c->failed = true;
        return nullptr;
    }
    for (int32_t i = 0; i < total && !c->failed; i++) {
        if (i > 0) expect(c, ",");
        parse_argument(c, def, &arguments[i]);
    }
    *count = total;
    return arguments;
}

/* ---- Attrs ---- */

constexpr uint32_t real_types = 1u << MR_FLOAT | 1u << MR_DOUBLE | 1u << MR_INT32 | 1u << MR_UINT8 | 1u << MR_INT16 |
                                1u << MR_INT8 | 1u << MR_INT64 | 1u << MR_BFLOAT16 | 1u << MR_UINT16 | 1u << MR_HALF |
                                1u << MR_UINT32 | 1u << MR_UINT64;
constexpr uint32_t number_types = real_types | 1u << MR_COMPLEX64 | 1u << MR_COMPLEX128 | 1u << MR_QINT8 |
                                  1u << MR_QUINT8 | 1u << MR_QINT32 | 1u << MR_QINT16 | 1u << MR_QUINT16;

static void parse_allowed(cursor *c, mr_op_attr *attr)
{
    skip_space(c);
    bool is_string = *c->text == '\'';
    attr->kind = is_string ? MR_ATTR_STRING : MR_ATTR_TYPE;
    const char *end = strchr(c->text, '}');
    int32_t total = end == nullptr ? 0 : count_separators(c->text, end, ',') + 1;
    const char **strings = MR_ARENA_NEW(c->arena, const char *, (size_t)total + 1);
    if (strings == nullptr || total == 0) {
        c->failed = true;
        return;
    }
    for (int32_t i = 0; i < total && !c->failed; i++) {
        if (i > 0) expect(c, ",");
        if (is_string) {
            strings[i] = quoted(c);
        } else {
            mr_dtype dtype = mr_dtype_parse(word(c));
            if (dtype == MR_DTYPE_INVALID) c->failed = true;
            attr->allowed_types |= 1u << dtype;
        }
    }
    expect(c, "}");
    if (is_string) {
        attr->allowed_strings = strings;
        attr->allowed_string_count = total;
    }
}

static void parse_kind(cursor *c, mr_op_attr *attr)
{
    if (accept(c, "{")) {
        parse_allowed(c, attr);
        return;
    }
    static const struct {
        const char *word;
        mr_attr_kind kind;
        uint32_t types;
    } kinds[] = {
        {"type", MR_ATTR_TYPE, 0},
        {"int", MR_ATTR_INT, 0},
        {"float", MR_ATTR_FLOAT, 0},
        {"bool", MR_ATTR_BOOL, 0},
        {"string", MR_ATTR_STRING, 0},
        {"shape", MR_ATTR_SHAPE, 0},
        {"tensor", MR_ATTR_TENSOR, 0},
        {"func", MR_ATTR_FUNCTION, 0},
        {"numbertype", MR_ATTR_TYPE, number_types},
        {"realnumbertype", MR_ATTR_TYPE, real_types},
    };
    const char *name = word(c);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].word, name) != 0) continue;
        attr->kind = kinds[i].kind;
        attr->allowed_types = kinds[i].types;
        return;
    }
    c->failed = true;
}

/* "[2, -1]", or "unknown". */
static mr_shape parse_shape(cursor *c)
{
    if (accept(c, "unknown")) return MR_SHAPE_UNKNOWN;
    mr_shape shape = MR_SCALAR;
    expect(c, "[");
    while (!c->failed && !accept(c, "]")) {
        if (shape.rank > 0) expect(c, ",");
        if (shape.rank == MR_RANK_MAX) c->failed = true;
        if (!c->failed) shape.dims[shape.rank++] = integer(c);
    }
    return shape;
}

/* "uint8 [255, 0, 0, 255]": TensorFlow's rows need only vectors of bytes. */
static void parse_tensor(cursor *c, mr_tensor *tensor)
{
    if (strcmp(word(c), "uint8") != 0) c->failed = true;
    mr_shape numbers = parse_shape(c);
    if (c->failed || mr_tensor_init(tensor, MR_UINT8, MR_SHAPE(numbers.rank), nullptr) != MR_OK) {
        c->failed = true;
        return;
    }
    for (int32_t i = 0; i < numbers.rank; i++) mr_tensor_uint8s(tensor)[i] = (uint8_t)numbers.dims[i];
}

static void parse_value(cursor *c, mr_attr_kind kind, mr_attr_value *value)
{
    skip_space(c);
    char *end = nullptr;
    switch (kind) {
    case MR_ATTR_STRING:
        value->string = mr_string_from(quoted(c));
        break;
    case MR_ATTR_INT:
        value->integer = integer(c);
        break;
    case MR_ATTR_FLOAT:
        value->number = strtof(c->text, &end);
        if (end == c->text) c->failed = true;
        c->text = end;
        break;
    case MR_ATTR_BOOL:
        value->boolean = accept(c, "true");
        if (!value->boolean) expect(c, "false");
        break;
    case MR_ATTR_TYPE:
        value->type = mr_dtype_parse(word(c));
        if (value->type == MR_DTYPE_INVALID) c->failed = true;
        break;
    case MR_ATTR_SHAPE:
        value->shape = parse_shape(c);
        break;
    case MR_ATTR_TENSOR:
        parse_tensor(c, &value->tensor);
        break;
    default:
        c->failed = true;
    }
}

static void parse_default_list(cursor *c, mr_op_attr *attr)
{
    expect(c, "[");
    const char *end = c->failed ? nullptr : strchr(c->text, ']');
    int32_t capacity = end == nullptr ? 0 : count_separators(c->text, end, ',') + 1;
    mr_attr_value *values = MR_ARENA_NEW(c->arena, mr_attr_value, (size_t)capacity + 1);
    if (values == nullptr) c->failed = true;
    int32_t count = 0;
    while (!c->failed && !accept(c, "]")) {
        if (count > 0) expect(c, ",");
        if (count == capacity) c->failed = true;
        if (!c->failed) parse_value(c, attr->kind, &values[count++]);
    }
    attr->default_list =
        (mr_attr){.name = attr->name, .kind = attr->kind, .is_list = true, .count = count, .values = values};
}

static void parse_attr(cursor *c, mr_op_attr *attr)
{
    *attr = (mr_op_attr){.name = word(c)};
    expect(c, ":");
    if (accept(c, "list(")) {
        attr->is_list = true;
        parse_kind(c, attr);
        expect(c, ")");
    } else {
        parse_kind(c, attr);
    }
    if (accept(c, ">=")) {
        skip_space(c);
        attr->has_minimum = true;
        attr->minimum = integer(c);
    }
    if (!accept(c, "=")) return;
    attr->has_default = true;
    if (attr->is_list)
        parse_default_list(c, attr);
    else
        parse_value(c, attr->kind, &attr->default_value);
}

static void parse_attrs(cursor *c, mr_op_def *def)
{
    skip_space(c);
    if (*c->text == '\0') return;
    int32_t total = count_separators(c->text, c->text + strlen(c->text), ';') + 1;
    mr_op_attr *attrs = MR_ARENA_NEW(c->arena, mr_op_attr, (size_t)total);
    if (attrs == nullptr) {
        c->failed = true;
        return;
    }
    for (int32_t i = 0; i < total && !c->failed; i++) {
        if (i > 0) expect(c, ";");
        parse_attr(c, &attrs[i]);
    }
    skip_space(c);
    if (*c->text != '\0') c->failed = true;
    def->attrs = attrs;
    def->attr_count = total;
}

mr_status mr_op_def_parse(const mr_op *op, mr_arena *arena, mr_op_def *def, mr_error *error)
{
    *def = (mr_op_def){.op = op};
    cursor c = {.text = op->attrs != nullptr ? op->attrs : "", .arena = arena};
    parse_attrs(&c, def);
    if (c.failed) return mr_fail(error, MR_INTERNAL, "operator %s: invalid attrs at \"%.40s\"", op->name, c.text);
    c.text = op->signature;
    const char *arrow = strstr(op->signature, "->");
    if (arrow == nullptr) return mr_fail(error, MR_INTERNAL, "operator %s: the signature has no \"->\"", op->name);
    def->inputs = parse_arguments(&c, def, arrow, &def->input_count);
    expect(&c, "->");
    def->outputs = parse_arguments(&c, def, c.text + strlen(c.text), &def->output_count);
    skip_space(&c);
    if (c.failed || *c.text != '\0')
        return mr_fail(error, MR_INTERNAL, "operator %s: invalid signature at \"%.40s\"", op->name, c.text);
    return MR_OK;
}

void mr_op_def_deinit(mr_op_def *def)
{
    for (int32_t i = 0; i < def->attr_count; i++) {
        mr_op_attr *attr = (mr_op_attr *)&def->attrs[i];
        if (attr->kind == MR_ATTR_TENSOR) mr_tensor_deinit(&attr->default_value.tensor);
    }
}

const mr_op_attr *mr_op_def_attr(const mr_op_def *def, const char *name)
{
    for (int32_t i = 0; i < def->attr_count; i++)
        if (strcmp(def->attrs[i].name, name) == 0) return &def->attrs[i];
    return nullptr;
}

static bool is_named(const char *candidate, const char *name)
{
    return candidate != nullptr && strcmp(candidate, name) == 0;
}

bool mr_op_attr_is_deduced(const mr_op_def *def, const char *attr)
{
    for (int32_t i = 0; i < def->input_count; i++) {
        const mr_op_argument *input = &def->inputs[i];
        if (is_named(input->type_attr, attr) || is_named(input->number_attr, attr) || is_named(input->types_attr, attr))
            return true;
    }
    return false;
}
