/* The generator of <millrace/ops.h>: writes for each row of graph/ops a builder with its options, its outputs and its
 * comment.
 *
 * A builder is an inline function that calls mr_node_begin … mr_node_finish, and a macro that takes options by name:
 * see MR_WITH_OPTIONS_ in <millrace/api.h>. Defaults that are not zero come before the caller's options. */
#include "builtin/builtin.h"
#include "graph/ir/signature.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines: collected, then broken after a comma if they are too long ---- */

constexpr size_t line_max = 120;
static char line[8192];
static size_t line_length;

[[gnu::format(printf, 1, 2)]] static void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(line + line_length, sizeof line - line_length, format, args);
    va_end(args);
    assert(written >= 0 && (size_t)written < sizeof line - line_length);
    line_length += (size_t)written;
}

/* begin: prefix of all lines but the first; end: suffix of all lines but the last, such as " \\" in a macro. */
static void print_line(const char *begin, const char *end)
{
    const char *at = line;
    size_t indent = 0;
    while (indent + strlen(at) > line_max - strlen(end)) {
        size_t length = line_max - strlen(end) - indent;
        while (length > 0 && !(at[length - 1] == ' ' && (length == 1 || at[length - 2] == ','))) length--;
        if (length == 0) break;
        printf("%.*s%s\n%s", (int)length - 1, at, end, begin);
        at += length;
        indent = strlen(begin);
    }
    printf("%s\n", at);
    line_length = 0;
    *line = '\0';
}

/* The row's own name, or "FusedBatchNormV3" to "mr_fused_batch_norm_v3", with TensorFlow's rule for its Python
 * functions. */
static const char *builder_name(const mr_op *row, char *text, size_t size_bytes)
{
    if (row->builder != nullptr) return row->builder;
    const char *op = row->name;
    size_t length = (size_t)snprintf(text, size_bytes, "mr_");
    for (const char *at = op; *at != '\0' && length + 3 < size_bytes; at++) {
        bool begins =
            at > op && isupper((unsigned char)*at) && (islower((unsigned char)at[-1]) || islower((unsigned char)at[1]));
        if (begins) text[length++] = '_';
        text[length++] = (char)tolower((unsigned char)*at);
    }
    text[length] = '\0';
    return text;
}

/* ---- Choices: every string that an attr allows, as a constant ---- */

constexpr int choices_max = 256;
static const char *choices[choices_max];
static int choice_count;

static void collect_choices(void)
{
    for (int32_t i = 0; i < mr_op_count(); i++) {
        const mr_op_def *def = mr_op_at(i);
        for (int32_t j = 0; j < def->attr_count; j++)
            for (int32_t k = 0; k < def->attrs[j].allowed_string_count; k++) {
                const char *text = def->attrs[j].allowed_strings[k];
                int at = 0;
                while (at < choice_count && strcmp(choices[at], text) != 0) at++;
                if (at == choice_count && *text != '\0' && choice_count < choices_max) choices[choice_count++] = text;
            }
    }
}

static void print_choices(void)
{
    printf("/* Values of string attributes with a fixed set of values: .padding = MR_SAME. */\ntypedef enum mr_choice "
           "{\n    MR_CHOICE_DEFAULT "
           "= 0,\n");
    for (int i = 0; i < choice_count; i++) {
        printf("    MR_");
        for (const char *at = choices[i]; *at != '\0'; at++)
            putchar(isalnum((unsigned char)*at) ? toupper((unsigned char)*at) : '_');
        printf(",\n");
    }
    printf("} mr_choice;\n\n"
           "/* Returns the attribute's text; null for MR_CHOICE_DEFAULT. Static. */\n"
           "static inline const char *mr_choice_text(mr_choice choice)\n{\n"
           "    static const char *const texts[] = {\n        0,\n");
    for (int i = 0; i < choice_count; i++) printf("        \"%s\",\n", choices[i]);
    printf("    };\n    return (unsigned)choice < sizeof texts / sizeof texts[0] ? texts[choice] : 0;\n}\n\n");
}

/* ---- Options ---- */

static bool is_choice(const mr_op_attr *attr)
{
    return attr->kind == MR_ATTR_STRING && !attr->is_list && attr->allowed_string_count > 0;
}

/* A required dtype comes after the inputs. */
static bool is_positional(const mr_op_attr *attr)
{
    return attr->kind == MR_ATTR_TYPE && !attr->is_list && !attr->has_default;
}

static bool is_option(const mr_op_def *def, const mr_op_attr *attr)
{
    return !mr_op_attr_is_deduced(def, attr->name) && !is_positional(attr);
}

/* The attr's name, unless C++ reserves it. */
static const char *option_name(const mr_op_attr *attr)
{
    static const char *const reserved[][2] = {
        {"template", "template_"}, {"new", "new_"},           {"delete", "delete_"},
        {"class", "class_"},       {"operator", "operator_"}, {"namespace", "namespace_"},
        {"this", "this_"},
    };
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (strcmp(reserved[i][0], attr->name) == 0) return reserved[i][1];
    return attr->name;
}

static const char *option_type(const mr_op_attr *attr)
{
    if (is_choice(attr)) return "mr_choice ";
    static const char *const types[][2] = {
        [MR_ATTR_STRING] = {"const char *", "mr_strings "}, [MR_ATTR_INT] = {"int64_t ", "mr_ints "},
        [MR_ATTR_FLOAT] = {"float ", "mr_floats "},         [MR_ATTR_BOOL] = {"bool ", nullptr},
        [MR_ATTR_TYPE] = {"mr_dtype ", "mr_dtypes "},       [MR_ATTR_SHAPE] = {"mr_shape ", "mr_shapes "},
        [MR_ATTR_TENSOR] = {"const mr_tensor *", nullptr},  [MR_ATTR_FUNCTION] = {"const char *", "mr_strings "},
    };
    return types[attr->kind][attr->is_list];
}

static const char *setter(const mr_op_attr *attr)
{
    static const char *const names[][2] = {
        [MR_ATTR_STRING] = {"string", "strings"}, [MR_ATTR_INT] = {"int", "ints"},
        [MR_ATTR_FLOAT] = {"float", "floats"},    [MR_ATTR_BOOL] = {"bool", nullptr},
        [MR_ATTR_TYPE] = {"dtype", "dtypes"},     [MR_ATTR_SHAPE] = {"shape", "shapes"},
        [MR_ATTR_TENSOR] = {"tensor", nullptr},   [MR_ATTR_FUNCTION] = {"function", "functions"},
    };
    return names[attr->kind][attr->is_list];
}

/* The shortest decimal that yields this float; static. */
static const char *float_text(float value)
{
    static char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, nullptr) == value) break;
    }
    return text;
}

/* Prints the option's default as a comment. */
static void print_default_comment(const mr_op_attr *attr)
{
    const mr_attr_value *value = &attr->default_value;
    if (!attr->has_default)
        printf(" /* required */");
    else if (attr->is_list)
        return;
    else if (attr->kind == MR_ATTR_INT && value->integer != 0)
        printf(" /* default: %lld */", (long long)value->integer);
    else if (attr->kind == MR_ATTR_FLOAT && value->number != 0)
        printf(" /* default: %s */", float_text(value->number));
    else if (attr->kind == MR_ATTR_BOOL && value->boolean)
        printf(" /* default: true */");
    else if (attr->kind == MR_ATTR_TYPE)
        printf(" /* default: %s */", mr_dtype_name((mr_dtype)value->type));
    else if (attr->kind == MR_ATTR_STRING && value->string.size_bytes > 0)
        printf(" /* default: \"%s\" */", value->string.data);
    else if (attr->kind == MR_ATTR_SHAPE)
        printf(" /* default: %s */", value->shape.rank < 0 ? "unknown" : "scalar");
}

/* The initializer of a default that is not zero. */
static void add_default(const mr_op_attr *attr)
{
    if (attr->is_list) return;
    const mr_attr_value *value = &attr->default_value;
    switch (attr->kind) {
    case MR_ATTR_INT:
        if (attr->has_default && value->integer != 0) add(".%s = %lld, ", option_name(attr), (long long)value->integer);
        return;
    case MR_ATTR_FLOAT:
        if (attr->has_default && value->number != 0)
            add(".%s = (float)%s, ", option_name(attr), float_text(value->number));
        return;
    case MR_ATTR_BOOL:
        if (attr->has_default && value->boolean) add(".%s = true, ", option_name(attr));
        return;
    case MR_ATTR_SHAPE:
        add(".%s = MR_SHAPE_UNSET, ", option_name(attr));
        return;
    default:
        return;
    }
}

static void print_options(const mr_op_def *def, const char *name)
{
    printf("typedef struct %s_options {\n    const char *name;\n", name);
    for (int32_t i = 0; i < def->attr_count; i++) {
        const mr_op_attr *attr = &def->attrs[i];
        if (!is_option(def, attr)) continue;
        printf("    %s%s;", option_type(attr), option_name(attr));
        print_default_comment(attr);
        printf("\n");
    }
    printf("} %s_options;\n", name);
}

/* ---- Outputs ---- */

static bool is_list_argument(const mr_op_argument *argument)
{
    return argument->number_attr != nullptr || argument->types_attr != nullptr;
}

static const char *output_type(const mr_op_argument *argument)
{
    return is_list_argument(argument) ? "mr_output_range" : "mr_output";
}

static void add_result_type(const mr_op_def *def, const char *name)
{
    if (def->output_count == 0)
        add("mr_node *");
    else if (def->output_count == 1)
        add("%s ", output_type(&def->outputs[0]));
    else
        add("%s_outputs ", name);
}

static void print_return(const mr_op_def *def, const char *name)
{
    if (def->output_count == 0) {
        printf("    return mr_node_finish(&builder_).node;\n");
        return;
    }
    if (def->output_count == 1) {
        if (is_list_argument(&def->outputs[0]))
            printf("    return mr_node_output_range(mr_node_finish(&builder_).node, \"%s\");\n", def->outputs[0].name);
        else
            printf("    return mr_node_finish(&builder_);\n");
        return;
    }
    printf("    mr_node *node_ = mr_node_finish(&builder_).node;\n    %s_outputs outputs_;\n", name);
    for (int32_t i = 0; i < def->output_count; i++) {
        const char *output = def->outputs[i].name;
        if (is_list_argument(&def->outputs[i]))
            printf("    outputs_.%s = mr_node_output_range(node_, \"%s\");\n", output, output);
        else
            printf("    outputs_.%s = mr_output_at(mr_node_output_range(node_, \"%s\"), 0);\n", output, output);
    }
    printf("    return outputs_;\n");
}

/* ---- One operator ---- */

static void print_comment(const mr_op_def *def)
{
    printf("/* %s\n *\n", def->op->doc);
    add(" * %s(%s)", def->op->name, def->op->signature);
    print_line(" *     ", "");
    for (int32_t i = 0; i < def->attr_count; i++) {
        const mr_op_attr *attr = &def->attrs[i];
        if (attr->allowed_types == 0) continue;
        add(" * %s  ", attr->name);
        const char *separator = "";
        for (int dtype = 1; dtype < MR_DTYPE_COUNT; dtype++)
            if (attr->allowed_types >> dtype & 1) {
                add("%s%s", separator, mr_dtype_name((mr_dtype)dtype));
                separator = ", ";
            }
        print_line(" *     ", "");
    }
    printf(" */\n");
}

static void print_function(const mr_op_def *def, const char *name)
{
    add("static inline ");
    add_result_type(def, name);
    add("%s_(mr_graph *graph_", name);
    for (int32_t i = 0; i < def->input_count; i++)
        add(", %s %s_", is_list_argument(&def->inputs[i]) ? "mr_outputs" : "mr_output", def->inputs[i].name);
    for (int32_t i = 0; i < def->attr_count; i++)
        if (is_positional(&def->attrs[i]) && !mr_op_attr_is_deduced(def, def->attrs[i].name))
            add(", mr_dtype %s_", def->attrs[i].name);
    add(", const %s_options *options_)", name);
    print_line("    ", "");
    printf("{\n    mr_node_builder builder_ = mr_node_begin(graph_, \"%s\", options_->name);\n", def->op->name);
    for (int32_t i = 0; i < def->input_count; i++)
        printf("    mr_node_add_input%s(&builder_, %s_);\n", is_list_argument(&def->inputs[i]) ? "_list" : "",
               def->inputs[i].name);
    for (int32_t i = 0; i < def->attr_count; i++) {
        const mr_op_attr *attr = &def->attrs[i];
        if (mr_op_attr_is_deduced(def, attr->name)) continue;
        if (is_positional(attr))
            printf("    mr_node_set_dtype(&builder_, \"%s\", %s_);\n", attr->name, attr->name);
        else if (is_choice(attr))
            printf("    mr_node_set_string(&builder_, \"%s\", mr_choice_text(options_->%s));\n", attr->name,
                   option_name(attr));
        else
            printf("    mr_node_set_%s(&builder_, \"%s\", options_->%s);\n", setter(attr), attr->name,
                   option_name(attr));
    }
    print_return(def, name);
    printf("}\n");
}

static void print_macro(const mr_op_def *def, const char *name)
{
    printf("#define %s(graph_", name);
    for (int32_t i = 0; i < def->input_count; i++) printf(", %s_", def->inputs[i].name);
    for (int32_t i = 0; i < def->attr_count; i++)
        if (is_positional(&def->attrs[i]) && !mr_op_attr_is_deduced(def, def->attrs[i].name))
            printf(", %s_", def->attrs[i].name);
    printf(", ...) \\\n");
    add("    MR_WITH_OPTIONS_(%s_((graph_)", name);
    for (int32_t i = 0; i < def->input_count; i++) add(", (%s_)", def->inputs[i].name);
    for (int32_t i = 0; i < def->attr_count; i++)
        if (is_positional(&def->attrs[i]) && !mr_op_attr_is_deduced(def, def->attrs[i].name))
            add(", (%s_)", def->attrs[i].name);
    add(", &options_), %s_options, ", name);
    for (int32_t i = 0; i < def->attr_count; i++)
        if (is_option(def, &def->attrs[i])) add_default(&def->attrs[i]);
    add("__VA_ARGS__)");
    print_line("        ", " \\");
    printf("\n");
}

static void print_operator(const mr_op_def *def)
{
    char text[128];
    const char *name = builder_name(def->op, text, sizeof text);
    print_comment(def);
    print_options(def, name);
    if (def->output_count > 1) {
        printf("typedef struct %s_outputs {\n", name);
        for (int32_t i = 0; i < def->output_count; i++)
            printf("    %s %s;\n", output_type(&def->outputs[i]), def->outputs[i].name);
        printf("} %s_outputs;\n", name);
    }
    print_function(def, name);
    print_macro(def, name);
}

static const char opening[] =
    "/* Operators: a builder for each, generated by graph/header from the rows of graph/ops.\n"
    " *\n"
    " * ```c\n"
    " * mr_error error = {0};\n"
    " * mr_graph *g = mr_graph_new();\n"
    " * mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 28, 28, 1));\n"
    " * mr_output filter = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(3, 3, 1, 16), .name = \"filter\");\n"
    " * mr_output h = mr_conv2d(g, images, filter, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_SAME);\n"
    " * h = mr_max_pool(g, mr_relu(g, h), .ksize = MR_INTS(1, 2, 2, 1), .strides = MR_INTS(1, 2, 2, 1),\n"
    " *                 .padding = MR_VALID);\n"
    " * if (mr_graph_status(g, &error) != MR_OK) fprintf(stderr, \"%s\\n\", error.message);\n"
    " * printf(\"%s\\n\", mr_node_name(h.node));\n"
    " * mr_graph_free(g);\n"
    " * ```\n"
    " *\n"
    " * Inputs come first, then a dtype that no input determines, then options by name. The defaults of options are\n"
    " * TensorFlow's. Attributes that follow from the inputs (T, N) are deduced. A list of inputs is MR_OUTPUTS(a, b), "
    "or\n"
    " * MR_OUTPUTS_OF(array, count). Several outputs are returned as a struct, a list of outputs as an "
    "mr_output_range.\n"
    " * The names are those of TensorFlow's Python functions (tf.raw_ops in snake case). */\n"
    "#ifndef MILLRACE_OPS_H\n#define MILLRACE_OPS_H\n\n#include <millrace/graph.h>\n\n";

int main(void)
{
    mr_builtin_register_operators();
    fputs(opening, stdout);
    collect_choices();
    print_choices();
    for (int32_t i = 0; i < mr_op_count(); i++) print_operator(mr_op_at(i));
    puts("#endif");
    return fflush(stdout) == 0 ? 0 : 1;
}
