/* Writes a program's man page and its completions for bash, zsh and fish, from what it prints for --help.
 *
 *     help-texts OUTPUT_DIR PROGRAM…
 *
 * Writes man/NAME.1, bash/NAME, zsh/_NAME and fish/NAME.fish below OUTPUT_DIR. The environment variable MILLRACE_DATE
 * ("22 Nov 2026") is the date of the man pages. A help text has this form:
 *
 *     NAME does something.                    the sentence becomes the section NAME
 *
 *         NAME examples
 *
 *     usage: NAME [options] FILE
 *
 *     paragraphs, options, operands           options may be in groups: "Show:" on a line of its own
 *
 *     exit status: 0 success, 1 failure
 *
 * "TOPIC is a, b, or an option" announces topics, whose options replace those of the short text. Otherwise --help NAME
 * prints more about an option if the program has "--help [NAME]". */
#include "packaging/help_texts/page.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* MILLRACE_DATE as "2026-11-22". */
static const char *man_date(void)
{
    static char date[16];
    const char *text = getenv("MILLRACE_DATE");
    struct tm time = {0};
    const char *end = text == nullptr ? nullptr : strptime(text, "%d %b %Y", &time);
    if (end == nullptr || *end != '\0') fail("MILLRACE_DATE is not a date such as \"22 Nov 2026\"");
    strftime(date, sizeof date, "%Y-%m-%d", &time);
    return date;
}

static int compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

static void write_completion(const char *path, void write(FILE *, const page *), const page *p)
{
    FILE *out = create_file(path);
    write(out, p);
    close_file(out, path);
}

int main(int argc, char **argv)
{
    if (argc < 3) fail("usage: help-texts OUTPUT_DIR PROGRAM…");
    const char *output = argv[1], *date = man_date();
    create_directory(output);
    static const char *const directories[] = {"man", "bash", "zsh", "fish"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        create_directory(format("%s/%s", output, directories[i]));
    for (int i = 2; i < argc; i++) {
        const page *p = page_read(argv[i]);
        list others = {0};
        for (int j = 2; j < argc; j++)
            if (j != i) push(&others, (char *)base_name(argv[j]));
        if (others.count > 1) qsort(others.items, others.count, sizeof *others.items, compare);
        const char *path = format("%s/man/%s.1", output, p->name);
        FILE *out = create_file(path);
        man_write(out, p, date, others);
        close_file(out, path);
        write_completion(format("%s/bash/%s", output, p->name), bash_write, p);
        write_completion(format("%s/zsh/_%s", output, p->name), zsh_write, p);
        write_completion(format("%s/fish/%s.fish", output, p->name), fish_write, p);
    }
    return 0;
}
