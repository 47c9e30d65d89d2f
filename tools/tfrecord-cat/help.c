/* --help: composed from the tables of commands and settings, in groups, wrapped to the width of the terminal. */
#include "common/progress.h"
#include "common/text.h"
#include "tfrecord-cat/cat.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* The column at which descriptions of options begin, and the maximum width of text. */
static constexpr int SENTENCE_COLUMN = 22;
static constexpr int COLUMNS_MAX = 96;

static const char *const group_names[GROUP_COUNT] = {
    [GROUP_SHOW] = "Show",          [GROUP_SUMMARY] = "Summarize", [GROUP_CHECK] = "Check and repair",
    [GROUP_EXPORT] = "Export",      [GROUP_REWRITE] = "Rewrite",   [GROUP_SELECT] = "Select records",
    [GROUP_FORM] = "Output format",
};

static const char examples[] = "    tfrecord-cat train-00000-of-00004.tfrecord\n"
                               "    tfrecord-cat --count 'records/*.tfrecord'\n"
                               "    tfrecord-cat --schema flowers-train@4.tfrecord\n"
                               "    tfrecord-cat --json -n 10 records | jq .features\n"
                               "    gunzip < data.gz | tfrecord-cat --record 7 -\n";

static const char files[] =
    "FILE is a record file, a directory (all record files in and below it), a quoted glob, NAME@N"
    " for NAME-00000-of-0000N …, or - for the standard input, which is also read if no FILE is"
    " given. Files may be plain, GZIP or ZLIB.";

static void print_option(FILE *file, char letter, const char *name, const char *argument, const char *help, int columns)
{
    char option[128];
    if (!name)
        snprintf(option, sizeof(option), "  (no option)");
    else
        snprintf(option, sizeof(option), "  %c%c%c --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
                 letter ? ',' : ' ', name, argument ? " " : "", argument ? argument : "");
    int used = text_columns(mr_string_from(option));
    fputs(option, file);
    if (used + 2 > SENTENCE_COLUMN) fputc('\n', file), used = 0;
    fprintf(file, "%*s", SENTENCE_COLUMN - used, "");
    text_wrap(file, help, strlen(help), SENTENCE_COLUMN, SENTENCE_COLUMN, columns);
}

static void print_group(FILE *file, group group, int columns)
{
    bool has_title = false;
    for (const command *c = commands; c->run; c++) {
        if (c->group != group) continue;
        if (!has_title) fprintf(file, "\n%s:\n", group_names[group]);
        has_title = true;
        print_option(file, c->letter, c->name, c->argument, c->help, columns);
    }
    for (const setting *s = settings; s->name; s++) {
        if (s->group != group || !s->is_common) continue;
        if (!has_title) fprintf(file, "\n%s:\n", group_names[group]);
        has_title = true;
        print_option(file, s->letter, s->name, s->argument, s->help, columns);
    }
}

/* Paragraphs are wrapped; lines that begin with a space are printed unchanged. */
static void print_paragraphs(FILE *file, const char *text, int columns)
{
    while (*text) {
        const char *end = *text == ' ' ? strchr(text, '\n') : strstr(text, "\n\n");
        size_t size = end ? (size_t)(end - text) : strlen(text);
        if (*text == ' ')
            fprintf(file, "%.*s\n", (int)size, text);
        else
            text_wrap(file, text, size, 0, 0, columns);
        text += size;
        if (*text == '\n') text++;
        for (; *text == '\n'; text++) fputc('\n', file);
    }
}

/* The settings that belong only to this command. */
static void print_own(FILE *file, const char *command, int columns)
{
    bool is_first = true;
    for (const setting *s = settings; s->name; s++) {
        if (s->is_common || !list_contains(s->of, command)) continue;
        if (is_first) fputc('\n', file);
        is_first = false;
        print_option(file, s->letter, s->name, s->argument, s->help, columns);
    }
}

/* The settings that the command shares with others, by name. */
static void print_common(FILE *file, const char *command, int columns)
{
    char text[256] = "Also:";
    size_t used = strlen(text);
    for (const setting *s = settings; s->name; s++)
        if (s->is_common && list_contains(s->of, command))
            used += (size_t)snprintf(text + used, sizeof text - used, " --%s", s->name);
    assert(used < sizeof text);
    if (strchr(text, ' ')) fputc('\n', file), text_wrap(file, text, used, 0, 0, columns);
}

static int print_topic(FILE *file, const char *topic, int columns)
{
    char letter = 0;
    group group = GROUP_COUNT;
    const char *argument = nullptr, *help = nullptr, *more = nullptr;
    for (const command *c = commands; c->run; c++)
        if (c->name && strcmp(c->name, topic) == 0)
            letter = c->letter, group = c->group, argument = c->argument, help = c->help, more = c->more;
    for (const setting *s = settings; s->name; s++)
        if (strcmp(s->name, topic) == 0)
            letter = s->letter, group = s->group, argument = s->argument, help = s->help, more = s->more;
    if (group == GROUP_COUNT) return usage_error("there is no help about \"%s\"", topic);
    print_option(file, letter, topic, argument, help, columns);
    print_own(file, topic, columns);
    print_common(file, topic, columns);
    if (more) fputc('\n', file), print_paragraphs(file, more, columns);
    return 0;
}

int help_print(FILE *file, const char *topic)
{
    int columns = progress_columns(file == stdout ? STDOUT_FILENO : STDERR_FILENO, 80);
    if (columns > COLUMNS_MAX) columns = COLUMNS_MAX;
    if (topic) return print_topic(file, topic + strspn(topic, "-"), columns);
    fprintf(file, "tfrecord-cat shows the contents of TFRecord files.\n\n%s\n", examples);
    fputs("usage: tfrecord-cat [options] FILE…\n\n", file);
    text_wrap(file, files, strlen(files), 0, 0, columns);
    for (group group = 0; group < GROUP_COUNT; group++) print_group(file, group, columns);
    fputs("\nOther:\n", file);
    print_option(file, 'h', "help", "[NAME]", "print this help, or details of one option", columns);
    print_option(file, 0, "version", nullptr, "print the version", columns);
    static const char end[] =
        "--help NAME, such as --help where or --help diff, prints details, including the memory limit of each"
        " command. Exit status: 0 success, 1 an error or an unreadable file, 2 invalid options.";
    fputc('\n', file);
    text_wrap(file, end, strlen(end), 0, 0, columns);
    return 0;
}
