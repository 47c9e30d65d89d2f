/* Writes the API reference: one HTML page for each public header, with a search over all names.
 *
 *     api-reference OUT HEADER…
 *
 * Each declared name is an anchor, and each use of a name links to it. A public declaration whose paragraph has no
 * comment is an error, except for an opaque type, and after the title of a section, which describes it. */
#include "docs/reference/header.h"

#include <stdlib.h>
#include <string.h>

static const char style[] = {
#embed "style.css" suffix(, 0)
};
static const char search[] = {
#embed "search.js" suffix(, 0)
};

/* ---- Anchors: the page of each name ---- */

typedef struct anchor {
    const char *name, *page;
    size_t order;
} anchor;

static struct {
    anchor *items;
    size_t count;
} anchors;

static int compare_anchors(const void *a, const void *b)
{
    const anchor *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->order > right->order) - (left->order < right->order);
}

static int compare_name(const void *name, const void *found)
{
    return strcmp(name, ((const anchor *)found)->name);
}

/* Sorts the anchors; of a name that several pages declare, the first page remains. */
static void sort_anchors(void)
{
    if (anchors.count == 0) return;
    qsort(anchors.items, anchors.count, sizeof *anchors.items, compare_anchors);
    size_t count = 1;
    for (size_t i = 1; i < anchors.count; i++)
        if (strcmp(anchors.items[i].name, anchors.items[count - 1].name) != 0)
            anchors.items[count++] = anchors.items[i];
    anchors.count = count;
}

static void add_anchors(const header *h, const item *paragraph)
{
    for (size_t i = 0; i < paragraph->declarations.count; i++) {
        list names = declaration_names(paragraph->declarations.items[i]);
        anchor *items = realloc(anchors.items, (anchors.count + names.count + 1) * sizeof *items);
        if (items == nullptr) fail("out of memory");
        anchors.items = items;
        for (size_t j = 0; j < names.count; j++) {
            anchors.items[anchors.count] = (anchor){.name = names.items[j], .page = h->page, .order = anchors.count};
            anchors.count++;
        }
    }
}

/* The page of a name, or null. */
static const char *page_of(const char *name)
{
    if (anchors.count == 0) return nullptr;
    const anchor *found = bsearch(name, anchors.items, anchors.count, sizeof *found, compare_name);
    return found == nullptr ? nullptr : found->page;
}

/* ---- Text as HTML ---- */

/* Writes escaped text in which names are links. */
static void write_linked(FILE *out, const char *text, size_t length)
{
    for (const char *at = text, *end = text + length; at < end;) {
        size_t name = at == text || !is_word(at[-1]) ? name_length(at) : 0;
        if (name > 0) {
            const char *page = page_of(format("%.*s", (int)name, at));
            if (page != nullptr)
                fprintf(out, "<a href=\"%s#%.*s\">%.*s</a>", page, (int)name, at, (int)name, at);
            else
                fwrite(at, 1, name, out);
            at += name;
            continue;
        }
        if (*at == '&')
            fputs("&amp;", out);
        else if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '>')
            fputs("&gt;", out);
        else
            fputc(*at, out);
        at++;
    }
}

static void write_code(FILE *out, const char *text)
{
    fputs("<pre>", out);
    for (const char *begin; (begin = strstr(text, "/*")) != nullptr;) {
        const char *end = strstr(begin + 2, "*/");
        if (end == nullptr) break;
        end += 2;
        write_linked(out, text, (size_t)(begin - text));
        fputs("<i>", out);
        write_linked(out, begin, (size_t)(end - begin));
        fputs("</i>", out);
        text = end;
    }
    write_linked(out, text, strlen(text));
    fputs("</pre>", out);
}

/* Text between backquotes is code. */
static void write_text(FILE *out, const char *text)
{
    for (const char *begin; (begin = strchr(text, '`')) != nullptr;) {
        const char *end = strchr(begin + 1, '`');
        if (end == nullptr) break;
        if (end == begin + 1) { // there is nothing between them
            write_linked(out, text, (size_t)(end - text));
            text = end;
            continue;
        }
        write_linked(out, text, (size_t)(begin - text));
        fputs("<code>", out);
        write_linked(out, begin + 1, (size_t)(end - begin - 1));
        fputs("</code>", out);
        text = end + 1;
    }
    write_linked(out, text, strlen(text));
}

/* ---- Comments ---- */

/* The text of a comment, without its delimiters. */
static char *plain(const char *comment)
{
    if (*comment == '\0') return "";
    const char *text = strip(comment) + 2;
    size_t length = strlen(text);
    if (ends_with(text, "*/")) length -= 2;
    while (length > 0 && strchr(" \n", text[length - 1]) != nullptr) length--;
    list lines = split(format("%.*s", (int)length, text), "\n");
    lines.items[0] = strip(lines.items[0]);
    for (size_t i = 1; i < lines.count; i++) {
        char *line = lines.items[i];
        for (const char *c = " * "; *c != '\0'; c++) line += *line == *c;
        lines.items[i] = line;
    }
    return join(lines, "\n");
}

/* Length of the term in a line "term  text"; 0: the line is not a definition. A term has at most five words. */
static size_t term_length(const char *line)
{
    const char *end = strstr(line, "  ");
    if (end == nullptr || end == line || *line == ' ' || end[strspn(end, " ")] == '\0') return 0;
    int words = 1;
    for (const char *at = line; at < end; at++) words += *at == ' ';
    return words <= 5 && strchr(".:;", end[-1]) == nullptr ? (size_t)(end - line) : 0;
}

/* Writes one paragraph. Indented lines are code; a line "term  text" starts a definition, which they continue. */
static void write_paragraph(FILE *out, const char *text)
{
    list lines = split(text, "\n");
    bool is_code = true;
    for (size_t i = 0; i < lines.count; i++) is_code = is_code && starts_with(lines.items[i], "  ");
    if (is_code) {
        for (size_t i = 0; i < lines.count; i++) lines.items[i] = (char *)lines.items[i] + 2;
        write_code(out, join(lines, "\n"));
        return;
    }
    enum { NOTHING, PARAGRAPH, DEFINITION } open = NOTHING;
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        size_t term = term_length(line);
        if (term > 0) {
            fputs(open == NOTHING ? "<dl>" : open == PARAGRAPH ? "</p><dl>" : "</dd>", out);
            fputs("<dt><code>", out);
            write_linked(out, line, term);
            fputs("</code></dt><dd>", out);
            write_text(out, line + term + strspn(line + term, " "));
            open = DEFINITION;
            continue;
        }
        bool continues = open == PARAGRAPH || (open == DEFINITION && *line == ' ');
        fputs(continues ? "\n" : open == DEFINITION ? "</dd></dl><p>" : "<p>", out);
        write_text(out, strip(line));
        if (!continues) open = PARAGRAPH;
    }
    fputs(open == PARAGRAPH ? "</p>" : "</dd></dl>", out);
}

/* Writes paragraphs, which empty lines separate. */
static void write_paragraphs(FILE *out, const char *text)
{
    text += strspn(text, "\n");
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n') length--;
    text = format("%.*s", (int)length, text);
    for (const char *end = text; (end = strchr(end, '\n')) != nullptr;) {
        const char *next = end + 1;
        for (const char *at = next; at[strspn(at, " ")] == '\n'; at = next) next = at + strspn(at, " ") + 1;
        if (next > end + 1) {
            write_paragraph(out, format("%.*s", (int)(end - text), text));
            text = next;
        }
        end = next;
    }
    write_paragraph(out, text);
}

static void write_comment(FILE *out, const char *comment)
{
    static const char begin[] = "```c\n", end[] = "\n```";
    const char *text = plain(comment);
    for (const char *code; (code = strstr(text, begin)) != nullptr;) {
        const char *code_end = strstr(code + strlen(begin), end);
        if (code_end == nullptr) break;
        write_paragraphs(out, format("%.*s", (int)(code - text), text));
        code += strlen(begin);
        write_code(out, format("%.*s", (int)(code_end - code), code));
        text = code_end + strlen(end);
    }
    write_paragraphs(out, text);
}

/* ---- Pages ---- */

static FILE *create_page(const char *directory, const char *name, const char *title, list headers)
{
    FILE *out = create_file(format("%s/%s", directory, name));
    fprintf(out,
            "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>"
            "<meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"style.css\"><nav>"
            "<h3><a href=\"index.html\">millrace</a></h3><input type=\"search\" placeholder=\"Search names ( / )\" "
            "aria-label=\"Search names\" autocomplete=\"off\"><ul id=\"found\"></ul><ul>",
            title);
    for (size_t i = 0; i < headers.count; i++) {
        const header *h = headers.items[i];
        fprintf(out, "<li><a href=\"%s\">%s</a></li>", h->page, h->name);
    }
    fputs("</ul></nav><main>", out);
    return out;
}

static void close_page(FILE *out, const char *name)
{
    fputs("</main><script src=\"search.js\"></script></html>\n", out);
    close_file(out, name);
}

static void write_item(FILE *out, const header *h, const item *shown)
{
    if (shown->title != nullptr) {
        const char *title = replace(replace(replace(shown->title, "&", "&amp;"), "<", "&lt;"), ">", "&gt;");
        fprintf(out, "<h2>%s</h2>", replace(replace(title, "\"", "&quot;"), "'", "&#x27;"));
        return;
    }
    fputs("<section>", out);
    list texts = {0};
    for (size_t i = 0; i < shown->declarations.count; i++) {
        list names = declaration_names(shown->declarations.items[i]);
        for (size_t j = 0; j < names.count; j++) {
            const char *page = page_of(names.items[j]);
            if (strcmp(page, h->page) == 0) fprintf(out, "<span id=\"%s\"></span>", (char *)names.items[j]);
        }
        push(&texts, declaration_shown(shown->declarations.items[i]));
    }
    if (texts.count > 0) write_code(out, join(texts, "\n"));
    if (shown->comment != nullptr) write_comment(out, shown->comment);
    fputs("</section>", out);
}

static void write_header(const char *directory, const header *h, list headers)
{
    FILE *out = create_page(directory, h->page, h->name, headers);
    fprintf(out, "<h1>&lt;millrace/%s&gt;</h1>", h->name);
    if (*h->intro != '\0') write_comment(out, h->intro);
    for (size_t i = 0; i < h->items.count; i++) write_item(out, h, h->items.items[i]);
    close_page(out, h->page);
}

static void write_index(const char *directory, list headers)
{
    FILE *out = create_page(directory, "index.html", "millrace", headers);
    fputs("<h1>millrace: API reference</h1><dl>", out);
    for (size_t i = 0; i < headers.count; i++) {
        const header *h = headers.items[i];
        fprintf(out, "<dt><a href=\"%s\">%s</a></dt><dd>", h->page, h->name);
        write_text(out, split(plain(h->intro), "\n").items[0]);
        fputs("</dd>", out);
    }
    fputs("</dl>", out);
    close_page(out, "index.html");
}

static void write_search(const char *directory)
{
    FILE *out = create_file(format("%s/search.js", directory));
    fputs("const NAMES = {", out);
    for (size_t i = 0; i < anchors.count; i++)
        fprintf(out, "%s\"%s\": \"%s\"", i == 0 ? "" : ", ", anchors.items[i].name, anchors.items[i].page);
    fprintf(out, "};\n%s", search);
    close_file(out, "search.js");
}

/* Prints the declarations without a comment and returns their number. */
static int report_faults(const header *h)
{
    int faults = 0;
    for (size_t i = 0; i < h->items.count; i++) {
        const item *checked = h->items.items[i], *previous = i > 0 ? h->items.items[i - 1] : nullptr;
        bool is_described = checked->comment != nullptr || (previous != nullptr && previous->title != nullptr);
        list names = {0};
        for (size_t j = 0; j < checked->declarations.count; j++) {
            const char *declaration = checked->declarations.items[j];
            is_described = is_described || declaration_is_described(declaration);
            if (names.count == 0) names = declaration_names(declaration);
        }
        if (names.count == 0 || is_described) continue;
        fprintf(stderr, "%s:%d: %s: no comment\n", h->path, checked->line, (char *)names.items[0]);
        faults++;
    }
    return faults;
}

static int compare_headers(const void *a, const void *b)
{
    const header *const *left = a, *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

int main(int argc, char **argv)
{
    if (argc < 3) fail("usage: api-reference OUT HEADER…");
    const char *directory = argv[1];
    list headers = {0};
    for (int i = 2; i < argc; i++) push(&headers, header_read(argv[i]));
    qsort(headers.items, headers.count, sizeof *headers.items, compare_headers);
    for (size_t i = 0; i < headers.count; i++) {
        const header *h = headers.items[i];
        for (size_t j = 0; j < h->items.count; j++) add_anchors(h, h->items.items[j]);
    }
    sort_anchors();
    create_directory(directory);
    for (size_t i = 0; i < headers.count; i++) write_header(directory, headers.items[i], headers);
    write_index(directory, headers);
    FILE *out = create_file(format("%s/style.css", directory));
    fputs(style, out);
    close_file(out, "style.css");
    write_search(directory);
    int faults = 0;
    for (size_t i = 0; i < headers.count; i++) faults += report_faults(headers.items[i]);
    return faults > 0 ? 1 : 0;
}
