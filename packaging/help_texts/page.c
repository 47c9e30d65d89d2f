#include "packaging/help_texts/page.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Running a program ---- */

/* What the program prints; argument may be null. */
static char *run(const char *program, const char *option, const char *argument)
{
    int ends[2];
    if (pipe(ends) != 0) fail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) fail("fork: %s", strerror(errno));
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LC_ALL", "C.UTF-8", 1);
        setenv("COLUMNS", "80", 1);
        execl(program, program, option, argument, nullptr);
        fprintf(stderr, "%s: %s\n", program, strerror(errno));
        _exit(1);
    }
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    if (file == nullptr) fail("fdopen: %s", strerror(errno));
    char *text = read_all(file);
    fclose(file);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        fail("%s %s %s failed", program, option, argument == nullptr ? "" : argument);
    return text;
}

/* ---- Blocks ---- */

static block *new_block(block_kind kind, const char *text)
{
    block *new = calloc(1, sizeof *new);
    if (new == nullptr) fail("out of memory");
    *new = (block){.kind = kind, .text = format("%s", text), .name = "", .argument = ""};
    return new;
}

static regex_t compiled(const char *pattern)
{
    regex_t expression;
    if (regcomp(&expression, pattern, REG_EXTENDED) != 0) fail("wrong regular expression: %s", pattern);
    return expression;
}

static char *group(const char *line, regmatch_t found)
{
    return found.rm_so < 0 ? "" : format("%.*s", (int)(found.rm_eo - found.rm_so), line + found.rm_so);
}

/* A line that begins an option or an operand as a block; null for other lines. */
static block *read_option(const char *line)
{
    static regex_t option, operand;
    static bool is_compiled;
    if (!is_compiled) {
        option = compiled("^  (-([[:alnum:]_]), |    )?--([[:alnum:]_-]+)( ([^ ]+)|(\\[=[^ ]+\\]))?(  +([^ ].*))?$");
        operand = compiled("^  ([A-Z][A-Z]+|\\([[:alnum:]_ ]+\\))  +([^ ].*)$");
        is_compiled = true;
    }
    regmatch_t found[9];
    if (regexec(&option, line, 9, found, 0) == 0) {
        block *new = new_block(BLOCK_OPTION, group(line, found[8]));
        new->letter = *group(line, found[2]);
        new->name = group(line, found[3]);
        new->argument = group(line, found[found[6].rm_so < 0 ? 5 : 6]);
        return new;
    }
    if (regexec(&operand, line, 3, found, 0) != 0) return nullptr;
    block *new = new_block(BLOCK_OPTION, group(line, found[2]));
    new->argument = group(line, found[1]);
    return new;
}

static bool is_title(const char *line)
{
    size_t length = 0;
    while (is_word(line[length]) || line[length] == ' ') length++;
    return isupper((unsigned char)*line) && strcmp(line + length, ":") == 0;
}

static list read_blocks(const char *text)
{
    list lines = split(text, "\n"), blocks = {0};
    bool is_joined = false; // whether a line continues a paragraph or verbatim lines
    for (size_t i = 0; i < lines.count; i++) {
        char *line = lines.items[i];
        block *last = blocks.count > 0 ? blocks.items[blocks.count - 1] : nullptr, *option = read_option(line);
        size_t indent = strspn(line, " ");
        if (line[indent] == '\0') {
            is_joined = false;
        } else if (option != nullptr) {
            push(&blocks, option);
        } else if (indent >= 10 && last != nullptr && last->kind == BLOCK_OPTION) {
            last->text = strip(format("%s %s", last->text, line + indent));
        } else if (indent >= 2) {
            if (!is_joined || last == nullptr || last->kind != BLOCK_LINES)
                push(&blocks, last = new_block(BLOCK_LINES, ""));
            push(&last->lines, line);
            is_joined = true;
        } else if (is_title(line)) {
            push(&blocks, new_block(BLOCK_TITLE, format("%.*s", (int)strlen(line) - 1, line)));
        } else if (is_joined && last != nullptr && last->kind == BLOCK_PARAGRAPH) {
            last->text = format("%s %s", last->text, line);
        } else {
            push(&blocks, new_block(BLOCK_PARAGRAPH, line));
            is_joined = true;
        }
    }
    return blocks;
}

static block *pop_first(page *p, list *blocks)
{
    if (blocks->count == 0) fail("%s: its help has no line \"usage: \"", p->name);
    blocks->count--;
    return *blocks->items++;
}

static bool is_option(const block *checked, const char *name)
{
    return checked->kind == BLOCK_OPTION && strcmp(checked->name, name) == 0;
}

/* ---- Parts of a page ---- */

/* Moves the sentence about the exit status out of the paragraphs, and returns those that are not empty. */
static list take_exit_status(list blocks, page *p)
{
    list others = {0};
    regex_t sentence = compiled("(The )?[Ee]xit status:? ([0-9] .*)$");
    for (size_t i = 0; i < blocks.count; i++) {
        block *from = blocks.items[i];
        regmatch_t found[3];
        if (from->kind == BLOCK_PARAGRAPH && regexec(&sentence, from->text, 3, found, 0) == 0) {
            char *text = group(from->text, found[2]);
            if (ends_with(text, ".")) text[strlen(text) - 1] = '\0';
            list parts = split(text, ", ");
            p->exit_status = (list){0};
            for (size_t j = 0; j < parts.count; j++) {
                char *part = parts.items[j];
                if (isdigit((unsigned char)part[0]) && part[1] == ' ') {
                    push(&p->exit_status, part);
                } else { // a comma within a meaning
                    char **last = (char **)&p->exit_status.items[p->exit_status.count - 1];
                    *last = format("%s, %s", *last, part);
                }
            }
            from->text = strip(format("%.*s", (int)found[0].rm_so, from->text));
            if (*from->text == '\0') continue;
        }
        push(&others, from);
    }
    return others;
}

static section *add_section(page *p, char *title, list blocks)
{
    section *new = calloc(1, sizeof *new);
    if (new == nullptr) fail("out of memory");
    *new = (section){.title = title, .blocks = blocks};
    push(&p->sections, new);
    return new;
}

/* The sections of a program with topics: one for each, in the order in which the help lists them. */
static void read_topics(page *p, const char *program, list blocks, const block *announced)
{
    static const char begin[] = "TOPIC is ", end[] = ", or an option";
    const char *topics = strstr(announced->text, begin) + strlen(begin), *topics_end = strstr(topics, end);
    if (topics_end == nullptr) fail("%s: \"TOPIC is a, b\" does not end in \"%s\"", p->name, end);
    p->topics = split(format("%.*s", (int)(topics_end - topics), topics), ", ");
    for (size_t i = 0; i < blocks.count; i++) {
        block *other = blocks.items[i];
        if (other->kind == BLOCK_PARAGRAPH && other != announced) push(&p->description, other);
    }
    for (size_t i = 0; i < p->topics.count; i++) {
        char *title = format("%s", (char *)p->topics.items[i]);
        *title = (char)toupper((unsigned char)*title);
        add_section(p, title, read_blocks(run(program, "--help", p->topics.items[i])));
    }
}

static bool has_option(list blocks, const char *name)
{
    for (size_t i = 0; i < blocks.count; i++)
        if (is_option(blocks.items[i], name)) return true;
    return false;
}

/* Adds the details of each option. Options that only the help about another option shows are a section of their own. */
static void read_details(page *p, const char *program)
{
    list queue = {0}, hidden = {0};
    for (size_t i = 0; i < p->sections.count; i++) {
        const section *of = p->sections.items[i];
        for (size_t j = 0; j < of->blocks.count; j++) {
            block *option = of->blocks.items[j];
            if (*option->name != '\0' && !is_option(option, "help") && !is_option(option, "version"))
                push(&queue, option);
        }
    }
    for (size_t i = 0; i < queue.count; i++) {
        block *option = queue.items[i];
        list found = read_blocks(run(program, "--help", option->name));
        for (size_t j = 0; j < found.count; j++) {
            block *new = found.items[j];
            if (new->kind != BLOCK_OPTION) {
                push(&option->details, new);
            } else if (!has_option(queue, new->name)) {
                push(&queue, new);
                push(&hidden, new);
            }
        }
    }
    if (hidden.count > 0) add_section(p, "Options of some commands", hidden);
}

/* The sections of a program without topics: the groups of its help. */
static void read_groups(page *p, const char *program, list blocks)
{
    bool has_details = false;
    section *last = nullptr;
    for (size_t i = 0; i < blocks.count; i++) {
        block *next = blocks.items[i];
        if (next->kind == BLOCK_TITLE) {
            last = add_section(p, next->text, (list){0});
        } else if (next->kind == BLOCK_OPTION) {
            if (last == nullptr) last = add_section(p, "", (list){0});
            push(&last->blocks, next);
            has_details = has_details || (is_option(next, "help") && *next->argument != '\0');
        } else {
            push(&p->description, next);
        }
    }
    if (has_details) read_details(p, program);
}

static char *read_version(const char *program)
{
    list parts = split(run(program, "--version", nullptr), "(");
    if (parts.count < 2) fail("%s --version prints no \"(\"", program);
    return strip(replace(parts.items[1], ")", ""));
}

page *page_read(const char *program)
{
    page *p = calloc(1, sizeof *p);
    if (p == nullptr) fail("out of memory");
    p->name = base_name(program);
    p->version = read_version(program);
    list blocks = take_exit_status(read_blocks(run(program, "--help", nullptr)), p);
    const char *first = pop_first(p, &blocks)->text, *begin = format("%s ", p->name);
    if (!starts_with(first, begin) || !ends_with(first, "."))
        fail("%s: the first sentence of its help is not \"%s does something.\"", p->name, p->name);
    p->purpose = format("%.*s", (int)(strlen(first) - strlen(begin) - 1), first + strlen(begin));
    block *next = pop_first(p, &blocks);
    for (; !starts_with(next->text, "usage: "); next = pop_first(p, &blocks)) push(&p->examples, next);
    p->usage = next->text + strlen("usage: ");
    const block *announced = nullptr;
    for (size_t i = 0; announced == nullptr && i < blocks.count; i++) {
        const block *checked = blocks.items[i];
        if (checked->kind == BLOCK_PARAGRAPH && strstr(checked->text, "TOPIC is ") != nullptr) announced = checked;
    }
    if (announced != nullptr)
        read_topics(p, program, blocks, announced);
    else
        read_groups(p, program, blocks);
    for (size_t i = 0; i < p->sections.count; i++) {
        list found = ((section *)p->sections.items[i])->blocks;
        for (size_t j = 0; j < found.count; j++) {
            block *option = found.items[j];
            if (option->kind == BLOCK_OPTION && *option->name != '\0') push(&p->options, option);
        }
    }
    return p;
}
