#include "packaging/help_texts/page.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

constexpr size_t line_max = 78;

/* ---- Text for groff ---- */

/* Writes a character; one outside ASCII by its number. Returns its length. */
static size_t write_character(FILE *out, const char *at)
{
    static const struct {
        char character;
        const char *text;
    } escapes[] = {{'\\', "\\e"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (*at != escapes[i].character) continue;
        fputs(escapes[i].text, out);
        return 1;
    }
    unsigned char first = (unsigned char)*at;
    if (first < 128) {
        fputc(first, out);
        return 1;
    }
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    unsigned number = first & (0x7fU >> length);
    for (size_t i = 1; i < length; i++) number = number << 6 | ((unsigned char)at[i] & 0x3fU);
    fprintf(out, "\\[u%04X]", number);
    return length;
}

/* Text without characters that groff would replace or take as a request. Minus signs of options and ranges are kept,
 * hyphens of words are not. */
static char *roff(const char *text, bool is_code)
{
    char *result;
    FILE *out = open_text(&result);
    if (*text == '.') fputs("\\&", out);
    bool is_option = false; // within the name of an option, after "--"
    for (const char *at = text; *at != '\0';) {
        bool follows_word = at > text && (is_word(at[-1]) || at[-1] == '\\');
        is_option = (is_word(*at) || *at == '-') && (is_option || (at - text >= 2 && at[-1] == '-' && at[-2] == '-'));
        if (*at == '-' && (is_code || is_option || !follows_word || !is_word(at[1]))) fputc('\\', out);
        at += write_character(out, at);
    }
    fclose(out);
    return result;
}

static char *roff_option(const block *option)
{
    if (*option->name == '\0') return format(".I %s", roff(option->argument, false));
    char *label = format("\\fB\\-\\-%s\\fR", replace(option->name, "-", "\\-"));
    if (option->letter != '\0') label = format("\\fB\\-%c\\fR, %s", option->letter, label);
    if (*option->argument == '\0') return label;
    const char *space = strncmp(option->argument, "[=", 2) == 0 ? "" : " ";
    return format("%s%s\\fI%s\\fR", label, space, roff(option->argument, true));
}

/* ---- Lines ---- */

static void add_blocks(list *lines, list blocks, char *request)
{
    for (size_t i = 0; i < blocks.count; i++) {
        const block *next = blocks.items[i];
        push(lines, next->kind == BLOCK_OPTION ? ".TP" : request);
        if (next->kind == BLOCK_OPTION) {
            push(lines, roff_option(next));
            push(lines, roff(next->text, false));
            add_blocks(lines, next->details, ".IP");
        } else if (next->kind == BLOCK_LINES) {
            size_t margin = SIZE_MAX;
            for (size_t j = 0; j < next->lines.count; j++) {
                size_t indent = strspn(next->lines.items[j], " ");
                if (indent < margin) margin = indent;
            }
            push(lines, ".nf");
            for (size_t j = 0; j < next->lines.count; j++)
                push(lines, format("    %s", roff((char *)next->lines.items[j] + margin, true)));
            push(lines, ".fi");
        } else {
            push(lines, roff(next->text, false));
        }
    }
}

/* Writes a paragraph as lines of source. */
static void write_wrapped(FILE *out, const char *text)
{
    list words = split(text, " ");
    size_t column = 0;
    for (size_t i = 0; i < words.count; i++) {
        const char *word = words.items[i];
        if (column > 0 && column + 1 + strlen(word) > line_max) {
            fputc('\n', out);
            column = 0;
            if (*word == '.' || *word == '\'') word = format("\\&%s", word);
        } else if (column > 0) {
            column += (size_t)fprintf(out, " ");
        }
        column += (size_t)fprintf(out, "%s", word);
    }
    fputc('\n', out);
}

static void write_lines(FILE *out, list lines)
{
    bool is_verbatim = false;
    const char *previous = "";
    for (size_t i = 0; i < lines.count; i++) {
        const char *line = lines.items[i];
        bool follows_heading = starts_with(previous, ".SH") || starts_with(previous, ".SS");
        previous = line;
        // A paragraph macro directly after a heading has no effect.
        if (follows_heading && strcmp(line, ".PP") == 0) continue;
        is_verbatim = strcmp(line, ".nf") == 0 || (is_verbatim && strcmp(line, ".fi") != 0);
        if (is_verbatim || *line == '.' || strlen(line) <= line_max)
            fprintf(out, "%s\n", line);
        else
            write_wrapped(out, line);
    }
}

void man_write(FILE *out, const page *p, const char *date, list others)
{
    char *name = roff(p->name, true), *purpose = roff(p->purpose, false), *upper = format("%s", p->name);
    for (char *at = upper; *at != '\0'; at++) *at = (char)toupper((unsigned char)*at);
    size_t command = strcspn(p->usage, " ");
    list lines = {0};
    push(&lines, format(".TH %s 1 \"%s\" \"%s\" \"User Commands\"", roff(upper, true), date, p->version));
    push(&lines, ".SH NAME");
    push(&lines, format("%s \\- %s", name, purpose));
    push(&lines, ".SH SYNOPSIS");
    push(&lines,
         format("\\fB%s\\fR%s", roff(format("%.*s", (int)command, p->usage), true), roff(p->usage + command, true)));
    push(&lines, ".SH DESCRIPTION");
    push(&lines, format(".B %s", name));
    push(&lines, format("%s.", purpose));
    add_blocks(&lines, p->description, ".PP");
    push(&lines, ".SH OPTIONS");
    for (size_t i = 0; i < p->sections.count; i++) {
        const section *next = p->sections.items[i];
        if (*next->title != '\0') push(&lines, format(".SS %s", roff(next->title, false)));
        add_blocks(&lines, next->blocks, ".PP");
    }
    push(&lines, ".SH EXIT STATUS");
    for (size_t i = 0; i < p->exit_status.count; i++) {
        const char *status = p->exit_status.items[i];
        push(&lines, ".TP");
        push(&lines, format(".B %c", *status));
        push(&lines, roff(status + 2, false));
    }
    push(&lines, ".SH EXAMPLES");
    add_blocks(&lines, p->examples, ".PP");
    push(&lines, ".SH SEE ALSO");
    for (size_t i = 0; i < others.count; i++)
        push(&lines, format(".BR %s (1)%s", roff(others.items[i], true), i + 1 < others.count ? "," : ""));
    write_lines(out, lines);
}
