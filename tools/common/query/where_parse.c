/* Parses the text of --where into a tree: each function parses one level of precedence, from lowest to highest. Every
 * node is either a condition or an operand, so that type errors are reported with their position. */
#include "common/query/where_tree.h"

#include "common/regex_cost.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static constexpr int DEPTH_MAX = 100;

typedef struct parser {
    const char *text, *next;
    where *where;
    where_error *error;
    int depth;
    bool has_failed;
} parser;

[[gnu::format(printf, 3, 4)]] static uint16_t fail(parser *parser, const char *at, const char *format, ...)
{
    if (parser->has_failed) return 0;
    va_list args;
    va_start(args, format);
    parser->error->at = (size_t)(at - parser->text);
    vsnprintf(parser->error->message, sizeof(parser->error->message), format, args);
    va_end(args);
    parser->has_failed = true;
    return 0;
}

static uint16_t add(parser *parser, const char *at, node node)
{
    if (parser->has_failed) return 0;
    if (parser->where->node_count == WHERE_NODES_MAX) return fail(parser, at, "the expression is too long");
    node.at = (size_t)(at - parser->text);
    parser->where->nodes[parser->where->node_count] = node;
    return parser->where->node_count++;
}

static const node *node_at(const parser *parser, uint16_t index)
{
    return &parser->where->nodes[index];
}

static void skip_space(parser *parser)
{
    while (isspace((unsigned char)*parser->next)) parser->next++;
}

/* Consumes an operator at the current position; "<" does not match the start of "<=". */
static bool take_sign(parser *parser, const char *sign)
{
    size_t length = strlen(sign);
    skip_space(parser);
    if (strncmp(parser->next, sign, length) != 0) return false;
    if (length == 1 && strchr("<>!", *sign) && parser->next[1] == '=') return false;
    parser->next += length;
    return true;
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_name_part(char c)
{
    return is_name_start(c) || (c && (isdigit((unsigned char)c) || strchr("/.:@#$-", c)));
}

/* Reserves space in the texts, which are never longer than the expression. */
static mr_string keep(parser *parser, const char *bytes, size_t size)
{
    where *where = parser->where;
    assert(where->texts_size + size < 2 * strlen(parser->text) + 2);
    mr_string kept = {where->texts + where->texts_size, size};
    if (size > 0) memcpy(where->texts + where->texts_size, bytes, size);
    where->texts_size += size + 1;
    return kept;
}

static uint16_t name_number(parser *parser, mr_string name)
{
    where *where = parser->where;
    for (uint16_t i = 0; i < where->name_count; i++)
        if (mr_string_equal(where->names[i], name)) return i;
    assert(where->name_count <= WHERE_NODES_MAX);
    where->names[where->name_count] = name;
    return where->name_count++;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Parses the quoted text that begins here. */
static mr_string take_text(parser *parser)
{
    const char *begin = parser->next;
    char quote = *parser->next++;
    mr_string text = {parser->where->texts + parser->where->texts_size, 0};
    char *out = parser->where->texts + parser->where->texts_size;
    for (; *parser->next && *parser->next != quote; parser->next++) {
        char c = *parser->next;
        if (c == '\\') {
            c = *++parser->next;
            int high = 0, low = 0;
            if (c == 'x' && (high = hex_digit(parser->next[1])) >= 0 && (low = hex_digit(parser->next[2])) >= 0) {
                c = (char)(high << 4 | low);
                parser->next += 2;
            } else if (c == 'n' || c == 't' || c == 'r') {
                c = c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
            } else if (c != '\\' && c != '"' && c != '\'') {
                /* Keep the backslash, as a pattern needs it: \. is unchanged. */
                out[text.size_bytes++] = '\\';
                if (!c) break;
            }
        }
        out[text.size_bytes++] = c;
    }
    if (*parser->next != quote) {
        fail(parser, begin, "missing closing quote");
        return text;
    }
    parser->next++;
    parser->where->texts_size += text.size_bytes + 1;
    return text;
}

/* Parses a name, plain or quoted, up to ")". */
static bool take_name_in_parentheses(parser *parser, mr_string *name)
{
    skip_space(parser);
    if (*parser->next == '"' || *parser->next == '\'') {
        *name = take_text(parser);
    } else if (is_name_start(*parser->next)) {
        const char *begin = parser->next;
        while (is_name_part(*parser->next)) parser->next++;
        *name = keep(parser, begin, (size_t)(parser->next - begin));
    } else {
        fail(parser, parser->next, "missing feature name");
        return false;
    }
    if (!parser->has_failed && !take_sign(parser, ")")) fail(parser, parser->next, "missing \")\"");
    return !parser->has_failed;
}

static uint16_t parse_literal(parser *parser)
{
    const char *begin = parser->next;
    char *end, *real_end;
    bool is_hex = begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X');
    errno = 0;
    /* Parse only the digits: strtoll handles the preceding sign, so that INT64_MIN can be written. */
    const char *digits = begin + (*begin == '-');
    long long integer = strtoll(begin, &end, is_hex ? 16 : 10);
    bool is_integer = errno == 0 && isdigit((unsigned char)*digits);
    double number = is_hex ? 0 : strtod(begin, &real_end);
    if (!is_hex && real_end > end) is_integer = false, end = real_end;
    if (!is_hex && !is_integer) end = real_end;
    parser->next = end;
    if (end == begin || is_name_part(*end))
        return fail(parser, begin, "not a number; write a name that begins like this as feature(\"…\")");
    if (is_hex && !is_integer) return fail(parser, begin, "the number is too large");
    return is_integer ? add(parser, begin, (node){.kind = NODE_INTEGER, .integer = integer})
                      : add(parser, begin, (node){.kind = NODE_NUMBER, .number = number});
}

static uint16_t parse_or(parser *parser);

/* Requires an operand. */
static uint16_t need_operand(parser *parser, uint16_t index)
{
    if (!parser->has_failed && node_is_condition(node_at(parser, index)))
        return fail(parser, parser->text + node_at(parser, index)->at, "expected a value, found a condition");
    return index;
}

static uint16_t need_condition(parser *parser, uint16_t index)
{
    if (!parser->has_failed && !node_is_condition(node_at(parser, index)))
        return fail(parser, parser->text + node_at(parser, index)->at, "expected a comparison or exists(name)");
    return index;
}

static uint16_t parse_name(parser *parser)
{
    const char *begin = parser->next;
    while (is_name_part(*parser->next)) parser->next++;
    size_t length = (size_t)(parser->next - begin);
    mr_string name;
    skip_space(parser);
    if (*parser->next != '(') {
        name = keep(parser, begin, length);
        return add(parser, begin, (node){.kind = NODE_FEATURE, .name = name_number(parser, name)});
    }
    parser->next++;
    if (length == 5 && memcmp(begin, "bytes", 5) == 0) {
        uint16_t operand = need_operand(parser, parse_or(parser));
        if (!parser->has_failed && !take_sign(parser, ")")) return fail(parser, parser->next, "missing \")\"");
        return add(parser, begin, (node){.kind = NODE_BYTES, .left = operand});
    }
    static const struct {
        const char *name;
        node_kind kind;
    } functions[] = {{"exists", NODE_EXISTS}, {"size", NODE_SIZE}, {"steps", NODE_STEPS}, {"feature", NODE_FEATURE}};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (strlen(functions[i].name) != length || memcmp(functions[i].name, begin, length) != 0) continue;
        if (!take_name_in_parentheses(parser, &name)) return 0;
        return add(parser, begin, (node){.kind = functions[i].kind, .name = name_number(parser, name)});
    }
    return fail(parser, begin, "unknown function; the functions are exists, size, steps, bytes, feature");
}

static uint16_t parse_primary(parser *parser)
{
    skip_space(parser);
    const char *begin = parser->next;
    char c = *begin;
    if (++parser->depth > DEPTH_MAX) return fail(parser, begin, "nested too deeply");
    uint16_t result;
    if (c == '(') {
        parser->next++;
        result = parse_or(parser);
        if (!parser->has_failed && !take_sign(parser, ")")) result = fail(parser, parser->next, "missing \")\"");
    } else if (isdigit((unsigned char)c) || c == '.' ||
               (c == '-' && (isdigit((unsigned char)begin[1]) || begin[1] == '.'))) {
        result = parse_literal(parser);
    } else if (c == '-') {
        parser->next++;
        result = need_operand(parser, parse_primary(parser));
        result = add(parser, begin, (node){.kind = NODE_NEGATE, .left = result});
    } else if (c == '!') {
        parser->next++;
        result = need_condition(parser, parse_primary(parser));
        result = add(parser, begin, (node){.kind = NODE_NOT, .left = result});
    } else if (c == '"' || c == '\'') {
        mr_string text = take_text(parser);
        result = add(parser, begin, (node){.kind = NODE_TEXT, .text = text});
    } else if (is_name_start(c)) {
        result = parse_name(parser);
    } else {
        result = fail(parser, begin, c ? "expected a feature, a number or a text" : "unexpected end of the expression");
    }
    parser->depth--;
    return result;
}

/* Requires numbers on both sides, as far as types are known. */
static uint16_t arithmetic(parser *parser, const char *at, node_kind kind, uint16_t left, uint16_t right)
{
    left = need_operand(parser, left);
    right = need_operand(parser, right);
    if (!parser->has_failed && (node_at(parser, left)->kind == NODE_TEXT || node_at(parser, right)->kind == NODE_TEXT))
        return fail(parser, at, "arithmetic with text is not possible");
    return add(parser, at, (node){.kind = kind, .left = left, .right = right});
}

static uint16_t parse_product(parser *parser)
{
    uint16_t left = parse_primary(parser);
    while (!parser->has_failed) {
        skip_space(parser);
        const char *at = parser->next;
        node_kind kind = *at == '*' ? NODE_MULTIPLY : *at == '/' ? NODE_DIVIDE : NODE_REMAINDER;
        if (*at != '*' && *at != '/' && *at != '%') break;
        parser->next++;
        left = arithmetic(parser, at, kind, left, parse_primary(parser));
    }
    return left;
}

static uint16_t parse_sum(parser *parser)
{
    uint16_t left = parse_product(parser);
    while (!parser->has_failed) {
        skip_space(parser);
        const char *at = parser->next;
        if (*at != '+' && *at != '-') break;
        parser->next++;
        left = arithmetic(parser, at, *at == '+' ? NODE_ADD : NODE_SUBTRACT, left, parse_product(parser));
    }
    return left;
}

static uint16_t parse_pattern(parser *parser, const char *at, node_kind kind, uint16_t left)
{
    skip_space(parser);
    const char *begin = parser->next;
    if (*begin != '"' && *begin != '\'') return fail(parser, begin, "expected a quoted text");
    mr_string text = take_text(parser);
    if (parser->has_failed) return 0;
    ((char *)text.data)[text.size_bytes] = '\0';
    if (kind == NODE_MATCHES) {
        regex_t regex;
        const char *fault = regex_fault(text);
        if (fault) return fail(parser, begin, "%s", fault);
        int result = regcomp(&regex, text.data, REG_EXTENDED | REG_NOSUB);
        char words[80];
        if (result != 0) {
            (void)regerror(result, &regex, words, sizeof(words));
            return fail(parser, begin, "invalid pattern: %s", words);
        }
        regfree(&regex);
    }
    return add(parser, at, (node){.kind = kind, .left = left, .text = text});
}

static bool take_comparison(parser *parser, node_kind *kind)
{
    static const struct {
        const char *sign;
        node_kind kind;
    } signs[] = {{"==", NODE_EQUAL},   {"!=", NODE_UNEQUAL}, {"<=", NODE_LESS_EQUAL}, {">=", NODE_GREATER_EQUAL},
                 {"=~", NODE_MATCHES}, {"<", NODE_LESS},     {">", NODE_GREATER}};
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        if (!take_sign(parser, signs[i].sign)) continue;
        *kind = signs[i].kind;
        return true;
    }
    if (strncmp(parser->next, "contains", 8) != 0 || is_name_part(parser->next[8])) return false;
    parser->next += 8;
    *kind = NODE_CONTAINS;
    return true;
}

static uint16_t parse_comparison(parser *parser)
{
    uint16_t left = parse_sum(parser);
    if (parser->has_failed) return 0;
    skip_space(parser);
    const char *at = parser->next;
    node_kind kind, again;
    if (!take_comparison(parser, &kind)) {
        if (*at == '=') return fail(parser, at, "use == for equality");
        return left;
    }
    left = need_operand(parser, left);
    uint16_t result;
    if (kind == NODE_MATCHES || kind == NODE_CONTAINS)
        result = parse_pattern(parser, at, kind, left);
    else
        result = add(parser, at, (node){.kind = kind, .left = left, .right = need_operand(parser, parse_sum(parser))});
    if (parser->has_failed) return 0;
    skip_space(parser);
    at = parser->next;
    if (take_comparison(parser, &again)) return fail(parser, at, "comparisons cannot be chained; write a < b && b < c");
    return result;
}

static uint16_t parse_and(parser *parser)
{
    uint16_t left = parse_comparison(parser);
    while (!parser->has_failed && take_sign(parser, "&&")) {
        const char *at = parser->next - 2;
        left = need_condition(parser, left);
        uint16_t right = need_condition(parser, parse_comparison(parser));
        left = add(parser, at, (node){.kind = NODE_AND, .left = left, .right = right});
    }
    return left;
}

static uint16_t parse_or(parser *parser)
{
    uint16_t left = parse_and(parser);
    while (!parser->has_failed && take_sign(parser, "||")) {
        const char *at = parser->next - 2;
        left = need_condition(parser, left);
        uint16_t right = need_condition(parser, parse_and(parser));
        left = add(parser, at, (node){.kind = NODE_OR, .left = left, .right = right});
    }
    return left;
}

static where *allocate(size_t text_size)
{
    where *made = calloc(1, sizeof(where));
    if (!made) return nullptr;
    made->nodes = calloc(WHERE_NODES_MAX, sizeof(node));
    made->names = calloc(WHERE_NODES_MAX + 1, sizeof(mr_string));
    /* Each text needs a terminator, and takes at least one character and a separator in the expression. */
    made->texts = calloc(2 * text_size + 2, 1);
    if (made->nodes && made->names && made->texts) return made;
    where_free(made);
    return nullptr;
}

where *where_parse(const char *text, where_error *error)
{
    size_t size = strlen(text);
    *error = (where_error){.at = 0};
    parser parser = {.text = text, .next = text, .error = error};
    if (size > WHERE_TEXT_MAX) {
        (void)fail(&parser, text, "the expression is too long");
        return nullptr;
    }
    parser.where = allocate(size);
    if (!parser.where) {
        (void)fail(&parser, text, "no memory");
        return nullptr;
    }
    uint16_t root = need_condition(&parser, parse_or(&parser));
    skip_space(&parser);
    const char *at = parser.next;
    if (*at && !parser.has_failed)
        (void)fail(&parser, at,
                   *at == '&'   ? "use && for and"
                   : *at == '|' ? "use || for or"
                   : *at == ')' ? "unmatched \")\""
                                : "expected an operator: && || == != < <= > >= =~ contains + - * / %%");
    if (parser.has_failed) {
        where_free(parser.where);
        return nullptr;
    }
    parser.where->root = root;
    return parser.where;
}

bool where_has_text(const where *where)
{
    for (size_t i = 0; i < where->node_count; i++) {
        node_kind kind = where->nodes[i].kind;
        if (kind == NODE_TEXT || kind == NODE_MATCHES || kind == NODE_CONTAINS) return true;
    }
    return false;
}

void where_free(where *where)
{
    if (!where) return;
    free(where->nodes);
    free(where->names);
    free(where->texts);
    free(where);
}
