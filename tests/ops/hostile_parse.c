/* Hostile cases as text: parses a sample, and describes a case on one line. */
#include "tests/ops/hostile.h"
#include <ctype.h>

typedef struct reader {
    const hostile_sample *sample;
    const char *at;
} reader;

[[noreturn]] static void fail(const reader *r, const char *reason)
{
    test_fail(__FILE__, __LINE__, "sample %s \"%s\" | \"%s\": %s at \"%s\"", r->sample->op, r->sample->inputs,
              r->sample->attrs, reason, r->at);
}

static void skip_space(reader *r)
{
    while (*r->at == ' ') r->at++;
}

static bool accept(reader *r, char wanted)
{
    if (*r->at != wanted) return false;
    r->at++;
    return true;
}

/* The text up to one of the characters in `ends`; kept for the lifetime of the process. */
static const char *take_text(reader *r, const char *ends)
{
    static mr_arena texts;
    size_t length = strcspn(r->at, ends);
    const char *text = mr_arena_strndup(&texts, r->at, length);
    CHECK(text != nullptr);
    r->at += length;
    return text;
}

static int64_t take_integer(reader *r)
{
    char *end = nullptr;
    int64_t value = strtoll(r->at, &end, 10);
    if (end == r->at) fail(r, "not a number");
    r->at = end;
    return value;
}

static int take_integers(reader *r, int64_t *values)
{
    int count = 0;
    do {
        if (count == HOSTILE_VALUES_MAX) fail(r, "too many numbers");
        values[count++] = take_integer(r);
    } while (accept(r, ','));
    return count;
}

static mr_shape take_shape(reader *r)
{
    mr_shape shape = MR_SCALAR;
    if (!accept(r, '[')) fail(r, "no shape");
    while (!accept(r, ']')) {
        if (shape.rank == MR_RANK_MAX) fail(r, "too many dimensions");
        shape.dims[shape.rank++] = take_integer(r);
        (void)accept(r, ',');
    }
    return shape;
}

static void take_input(reader *r, hostile_case *parsed, bool opens_argument)
{
    if (parsed->input_count == HOSTILE_INPUTS_MAX) fail(r, "too many inputs");
    hostile_input *input = &parsed->inputs[parsed->input_count++];
    *input = (hostile_input){.opens_argument = opens_argument};
    if (accept(r, '&'))
        input->form = HOSTILE_REF;
    else if (accept(r, '@'))
        input->form = HOSTILE_HANDLE;
    else if (accept(r, '!'))
        input->form = HOSTILE_OTHER_HANDLE;
    else if (accept(r, '#'))
        input->form = HOSTILE_NAMED_HANDLE;
    else if (accept(r, '^'))
        input->form = HOSTILE_LIST;
    else if (accept(r, '?'))
        input->form = HOSTILE_OPTIONAL;
    else if (accept(r, '~'))
        input->form = HOSTILE_STACK;
    else if (accept(r, '%'))
        input->form = HOSTILE_ARRAY;
    input->dtype = mr_dtype_parse(take_text(r, "["));
    if (input->dtype == MR_DTYPE_INVALID) fail(r, "no dtype");
    if (input->dtype == MR_VARIANT && input->form == HOSTILE_TENSOR) input->form = HOSTILE_NULL_HANDLE;
    input->shape = take_shape(r);
    input->text = "";
    if (!accept(r, '=')) return;
    if (input->dtype == MR_STRING || input->form == HOSTILE_NAMED_HANDLE)
        input->text = take_text(r, ";+");
    else
        input->value_count = take_integers(r, input->values);
}

static void take_inputs(reader *r, hostile_case *parsed)
{
    bool opens_argument = true;
    for (skip_space(r); *r->at != '\0'; skip_space(r)) {
        take_input(r, parsed, opens_argument);
        opens_argument = !accept(r, '+');
        if (opens_argument && *r->at != '\0' && !accept(r, ';')) fail(r, "no \";\"");
    }
}

static void take_attr(reader *r, hostile_case *parsed)
{
    if (parsed->attr_count == HOSTILE_ATTRS_MAX) fail(r, "too many attrs");
    hostile_attr *attr = &parsed->attrs[parsed->attr_count++];
    *attr = (hostile_attr){.name = take_text(r, "="), .count = 1, .text = ""};
    const mr_op_attr *rule = mr_op_def_attr(parsed->def, attr->name);
    if (rule == nullptr || !accept(r, '=')) fail(r, "no such attr");
    attr->kind = rule->kind;
    attr->is_list = rule->is_list;
    switch (rule->kind) {
    case MR_ATTR_INT:
        attr->count = take_integers(r, attr->ints);
        break;
    case MR_ATTR_BOOL:
        attr->ints[0] = strcmp(take_text(r, ";"), "true") == 0;
        break;
    case MR_ATTR_FLOAT: {
        const char *text = take_text(r, ";");
        attr->number = strtof(text, nullptr); /* all elements of a list have the first value */
        for (const char *at = text; attr->is_list && *at != '\0'; at++) attr->count += *at == ',';
        break;
    }
    case MR_ATTR_TYPE:
        attr->ints[0] = mr_dtype_parse(take_text(r, ";"));
        break;
    case MR_ATTR_SHAPE:
        attr->shape = take_shape(r);
        break;
    case MR_ATTR_TENSOR:
        attr->ints[0] = mr_dtype_parse(take_text(r, "["));
        attr->shape = take_shape(r);
        break;
    default:
        attr->text = take_text(r, ";");
        break;
    }
    if (accept(r, ';')) skip_space(r);
}

void hostile_parse(const hostile_sample *sample, hostile_case *parsed)
{
    reader r = {sample, sample->inputs};
    *parsed = (hostile_case){.def = mr_op_find(sample->op)};
    if (parsed->def == nullptr) fail(&r, "no such operator");
    take_inputs(&r, parsed);
    r.at = sample->attrs;
    while (*r.at != '\0') take_attr(&r, parsed);
}

/* ---- Describing ---- */

typedef struct writer {
    char *text;
    size_t size_bytes, used;
} writer;

[[gnu::format(printf, 2, 3)]] static void put(writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int written = vsnprintf(w->text + w->used, w->size_bytes - w->used, format, args);
    va_end(args);
    if (written > 0)
        w->used += (size_t)written < w->size_bytes - w->used ? (size_t)written : w->size_bytes - w->used - 1;
}

static void put_values(writer *w, const int64_t *values, int count)
{
    for (int i = 0; i < count; i++) put(w, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
}

static void describe_input(writer *w, const hostile_input *input)
{
    static const char *const forms[] = {
        "", "&", "@", "iterator ", "named ", "null ", "first variable ", "list ", "optional ", "stack ", "array "};
    static const char *const sources[] = {"", "fed ", "fed with every second size ", "fed with unknown shape "};
    char text[MR_SHAPE_TEXT_SIZE];
    put(w, "%s%s%s%s%s", input->is_uninitialized ? "uninitialized " : "", sources[input->source], forms[input->form],
        mr_dtype_name(input->dtype), mr_shape_text(input->shape, text, sizeof text));
    if (input->dtype == MR_STRING) put(w, "=%.40s", input->text);
    if (input->value_count > 0) put(w, "=");
    put_values(w, input->values, input->value_count);
    if (input->special > 0) put(w, " special %d", input->special);
}

static void describe_attr(writer *w, const hostile_attr *attr)
{
    char text[MR_SHAPE_TEXT_SIZE];
    put(w, "; %s%s=", attr->name, attr->is_list ? " list" : "");
    switch (attr->kind) {
    case MR_ATTR_INT:
    case MR_ATTR_BOOL:
        put_values(w, attr->ints, attr->count);
        break;
    case MR_ATTR_TYPE:
        for (int i = 0; i < attr->count; i++) put(w, "%s ", mr_dtype_name((mr_dtype)attr->ints[i]));
        break;
    case MR_ATTR_FLOAT:
        put(w, "%g", (double)attr->number);
        break;
    case MR_ATTR_SHAPE:
        put(w, "%d times %s", attr->count, mr_shape_text(attr->shape, text, sizeof text));
        break;
    case MR_ATTR_TENSOR:
        put(w, "%s%s", mr_dtype_name((mr_dtype)attr->ints[0]), mr_shape_text(attr->shape, text, sizeof text));
        break;
    default:
        put(w, "%.60s", attr->text);
        break;
    }
}

void hostile_describe(const hostile_case *described, char *text, size_t size_bytes)
{
    writer w = {text, size_bytes, 0};
    put(&w, "%s(", described->def->op->name);
    for (int i = 0; i < described->input_count; i++) {
        if (i > 0) put(&w, "%s", described->inputs[i].opens_argument ? "; " : " + ");
        describe_input(&w, &described->inputs[i]);
    }
    put(&w, ")");
    for (int i = 0; i < described->attr_count; i++) describe_attr(&w, &described->attrs[i]);
}
