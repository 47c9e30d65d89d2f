#include "docs/reference/header.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

constexpr size_t typedef_length = sizeof "typedef " - 1;

size_t name_length(const char *text)
{
    if (!starts_with(text, "mr_") && !starts_with(text, "MR_")) return 0;
    size_t length = word_length(text);
    return length > 3 ? length : 0;
}

/* The text without what is between begin and end. */
static char *without(const char *text, const char *begin, const char *end)
{
    char *result;
    FILE *out = open_text(&result);
    for (const char *from, *to; (from = strstr(text, begin)) != nullptr; text = to + strlen(end)) {
        to = strstr(from + strlen(begin), end);
        if (to == nullptr) break;
        fwrite(text, 1, (size_t)(from - text), out);
    }
    fputs(text, out);
    fclose(out);
    return result;
}

static char *without_comments(const char *text)
{
    return without(text, "/*", "*/");
}

/* ---- Lines ---- */

/* Length of an attribute and of the space after it. */
static size_t attribute_length(const char *text)
{
    static const char *const attributes[] = {"MR_API ", "MR_NODISCARD_ "};
    size_t length = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (starts_with(text, attributes[i])) length = strlen(attributes[i]);
    const char *numbers = text + strlen("MR_PRINTF_(");
    if (starts_with(text, "MR_PRINTF_(") && isdigit((unsigned char)numbers[0]) && starts_with(numbers + 1, ", ") &&
        isdigit((unsigned char)numbers[3]) && starts_with(numbers + 4, ") "))
        length = (size_t)(numbers + 6 - text);
    return is_word(text[length]) ? length : 0;
}

static char *without_attributes(const char *text)
{
    char *result;
    FILE *out = open_text(&result);
    for (const char *at = text; *at != '\0';) {
        size_t length = at == text || !is_word(at[-1]) ? attribute_length(at) : 0;
        if (length == 0) fputc(*at++, out);
        at += length;
    }
    fclose(out);
    return result;
}

/* The lines of a header without attributes; those that only C++ sees become "#". */
static list public_lines(const char *path, const char *text)
{
    static const char cplusplus[] = "#ifdef __cplusplus", c[] = "#ifndef __cplusplus";
    list lines = split(without_attributes(text), "\n"), conditions = {0};
    for (size_t i = 0; i < lines.count; i++) {
        char *line = lines.items[i];
        bool is_else = starts_with(line, "#else"), is_end = starts_with(line, "#endif");
        if ((is_else || is_end) && conditions.count == 0) fail("%s:%zu: %s without #if", path, i + 1, line);
        if (starts_with(line, "#if")) push(&conditions, line);
        void **innermost = conditions.count > 0 ? conditions.items + conditions.count - 1 : nullptr;
        if (is_else && strcmp(*innermost, cplusplus) == 0)
            *innermost = (char *)c;
        else if (is_else && strcmp(*innermost, c) == 0)
            *innermost = (char *)cplusplus;
        if (is_end) conditions.count--;
        for (size_t j = 0; j < conditions.count; j++)
            if (strcmp(conditions.items[j], cplusplus) == 0) lines.items[i] = "#";
    }
    return lines;
}

/* Directives, the guard, and what makes the declarations C for C++. */
static bool is_ignored(const char *line)
{
    static const char guard[] = "#define MILLRACE_";
    if (starts_with(line, guard)) {
        const char *name = line + strlen(guard);
        return ends_with(format("%.*s", (int)word_length(name), name), "_H");
    }
    return (*line == '#' && !starts_with(line, "#define")) || starts_with(line, "extern \"C\"") ||
           strcmp(line, "}") == 0;
}

/* ---- Paragraphs ---- */

/* Open brackets, outside literals. */
static int depth_of(const char *code)
{
    int depth = 0;
    for (const char *at = code; *at != '\0'; at++) {
        if (*at == '"' || *at == '\'') {
            const char *end = at + 1;
            while (*end != '\0' && *end != *at) end += *end == '\\' && end[1] != '\0' ? 2 : 1;
            if (*end != '\0') at = end;
        } else {
            depth += strchr("({[", *at) != nullptr;
            depth -= strchr(")}]", *at) != nullptr;
        }
    }
    return depth;
}

static bool is_complete(const char *text)
{
    if (*text == '#') return !ends_with(strip(text), "\\");
    const char *code = strip(without_comments(text));
    return strstr(code, "/*") == nullptr && depth_of(code) == 0 && (ends_with(code, ";") || ends_with(code, "}"));
}

/* Whether a declaration is a macro whose name ends in an underscore. */
static bool is_internal(const char *declaration)
{
    static const char define[] = "#define ";
    if (!starts_with(declaration, define)) return false;
    const char *name = declaration + strlen(define);
    size_t length = word_length(name);
    return length >= 2 && name[length - 1] == '_';
}

typedef struct parser {
    header *into;
    list lines;
    size_t at;
    item *paragraph; /* takes the next declaration; null after an empty line */
} parser;

/* Appends the next line to the text. */
static char *with_next_line(parser *p, const char *text)
{
    if (p->at == p->lines.count) fail("%s:%zu: a comment or declaration does not end", p->into->path, p->at);
    return format("%s\n%s", text, (const char *)p->lines.items[p->at++]);
}

static item *add_item(parser *p, size_t line)
{
    item *added = calloc(1, sizeof *added);
    if (added == nullptr) fail("out of memory");
    added->line = (int)line;
    push(&p->into->items, added);
    return added;
}

/* A comment between declarations starts a paragraph; a section's title is an item of its own. */
static void parse_comment(parser *p)
{
    static const char section[] = "/* ---- ";
    size_t line = p->at + 1;
    char *text = p->lines.items[p->at++];
    while (strstr(text, "*/") == nullptr) text = with_next_line(p, text);
    const char *title = text + strlen(section), *end = starts_with(text, section) ? strstr(title, " ----") : nullptr;
    if (line == 1) {
        p->into->intro = text;
    } else if (end != nullptr && memchr(title, '\n', (size_t)(end - title)) == nullptr) {
        add_item(p, line)->title = format("%.*s", (int)(end - title), title);
        const char *rest = end + strlen(" ----");
        p->paragraph = nullptr;
        if (starts_with(rest + strspn(rest, "- "), "*/")) return;
        p->paragraph = add_item(p, line);
        p->paragraph->comment = format("/*%s", rest);
    } else {
        p->paragraph = add_item(p, line);
        p->paragraph->comment = text;
    }
}

static void parse_declaration(parser *p)
{
    size_t line = p->at + 1;
    char *text = p->lines.items[p->at++];
    while (p->at < p->lines.count && !is_complete(text)) text = with_next_line(p, text);
    const char *next = p->at < p->lines.count ? p->lines.items[p->at] : "";
    if (*next == ' ' && starts_with(next + strspn(next, " "), "/*")) { // the rest of a comment at the end of the line
        while (strstr(next, "*/") == nullptr) {
            text = with_next_line(p, text);
            if (p->at < p->lines.count) next = p->lines.items[p->at];
        }
        text = with_next_line(p, text);
    }
    if (p->paragraph == nullptr) p->paragraph = add_item(p, line);
    push(&p->paragraph->declarations, text);
}

/* Removes internal macros, and paragraphs that have nothing else. */
static void remove_internal(header *h)
{
    list items = {0};
    for (size_t i = 0; i < h->items.count; i++) {
        item *found = h->items.items[i];
        list declarations = {0};
        for (size_t j = 0; j < found->declarations.count; j++)
            if (!is_internal(found->declarations.items[j])) push(&declarations, found->declarations.items[j]);
        bool has_only_internal = found->declarations.count > 0 && declarations.count == 0;
        found->declarations = declarations;
        if (!has_only_internal) push(&items, found);
    }
    h->items = items;
}

header *header_read(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == nullptr) fail("%s: %s", path, strerror(errno));
    header *h = calloc(1, sizeof *h);
    if (h == nullptr) fail("out of memory");
    *h = (header){.path = path, .name = base_name(path), .intro = ""};
    h->page = replace(h->name, ".h", ".html");
    parser p = {.into = h, .lines = public_lines(path, read_all(file))};
    fclose(file);
    while (p.at < p.lines.count) {
        const char *line = p.lines.items[p.at];
        bool is_empty = *strip(line) == '\0';
        if (is_empty) p.paragraph = nullptr;
        if (is_empty || is_ignored(line))
            p.at++;
        else if (starts_with(line, "/*"))
            parse_comment(&p);
        else
            parse_declaration(&p);
    }
    remove_internal(h);
    return h;
}

/* ---- Declarations ---- */

/* Length of "#define NAME(PARAMETERS)"; 0: it has no parameters. */
static size_t macro_head_length(const char *text)
{
    const char *at = text + strlen("#define ");
    at += word_length(at);
    if (*at++ != '(') return 0;
    for (; *at != '\0' && *at != ')'; at++) {
        if (*at == '(') at += strcspn(at, ")");
        if (*at == '\0') return 0;
    }
    return *at == ')' ? (size_t)(at + 1 - text) : 0;
}

char *declaration_shown(const char *declaration)
{
    if (starts_with(declaration, "#define")) {
        size_t length = macro_head_length(declaration);
        if (length > 0) return format("%.*s", (int)length, declaration);
        list lines = split(declaration, "\\\n");
        for (size_t i = 0; lines.count > 1 && i < lines.count; i++) lines.items[i] = strip(lines.items[i]);
        return join(lines, " ");
    }
    if (starts_with(declaration, "static inline ")) {
        const char *end = strstr(declaration, "\n{");
        if (end == nullptr) fail("an inline function without a body: %s", declaration);
        const char *begin = declaration + strlen("static inline ");
        return format("%.*s;", (int)(end - begin), begin);
    }
    return format("%s", declaration);
}

/* The name of a macro, a function type, a type, or a function; "" if there is none. */
static char *declared_name(const char *text)
{
    const char *define = strstr(text, "#define ");
    if (define != nullptr) return format("%.*s", (int)word_length(define + 8), define + 8);
    if (starts_with(text, "typedef ")) {
        size_t limit = typedef_length + strcspn(text + typedef_length, ";{");
        for (size_t at = limit; at-- > typedef_length;) {
            if (!starts_with(text + at, "(*")) continue;
            size_t length = word_length(text + at + 2);
            if (length > 0 && text[at + 2 + length] == ')') return format("%.*s", (int)length, text + at + 2);
        }
        size_t end = strlen(text) - 1, begin = end;
        while (is_word(text[begin - 1])) begin--;
        if (text[end] == ';' && begin < end) return format("%.*s", (int)(end - begin), text + begin);
    }
    for (const char *at = text; *at != '\0';) {
        size_t length = word_length(at);
        const char *next = at + length;
        while (length > 0 && isspace((unsigned char)*next)) next++;
        if (length > 0 && *next == '(') return format("%.*s", (int)length, at);
        at += length > 0 ? length : 1;
    }
    return "";
}

static void add_name(list *names, const char *text)
{
    size_t length = name_length(text);
    if (length == 0) return;
    char *name = format("%.*s", (int)length, text);
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0) return;
    push(names, name);
}

list declaration_names(const char *declaration)
{
    list names = {0};
    const char *text = strip(without(without_comments(declaration), "[[", "]]"));
    add_name(&names, declared_name(text));
    if (starts_with(text, "enum") || starts_with(text, "typedef enum")) {
        for (const char *at = text; (at = strpbrk(at, "{,")) != nullptr;) {
            at++;
            at += strspn(at, " \t\n");
            if (starts_with(at, "MR_")) add_name(&names, at);
        }
    }
    if (starts_with(text, "typedef struct ")) add_name(&names, text + strlen("typedef struct "));
    return names;
}

bool declaration_is_described(const char *declaration)
{
    static const char opaque[] = "typedef struct ";
    if (strstr(declaration, "/*") != nullptr) return true;
    if (!starts_with(declaration, opaque)) return false;
    const char *name = declaration + strlen(opaque);
    int length = (int)word_length(name);
    return strcmp(declaration, format("%s%.*s %.*s;", opaque, length, name, length, name)) == 0;
}
