#include "packaging/help_texts/page.h"

#include <ctype.h>
#include <string.h>

constexpr size_t summary_max = 70; // characters

/* The first sentence of what the help says about an option. */
static char *summary(const block *option)
{
    const char *text = option->text;
    size_t length = 0, end = 0, characters = 0;
    for (; text[length] != '\0'; length++) {
        if ((text[length] == '.' || text[length] == ';') && text[length + 1] == ' ') break;
        if (((unsigned char)text[length] & 0xc0) == 0x80) continue; // the rest of a character
        if (text[length] == ' ' && characters < summary_max) end = length;
        characters++;
    }
    if (characters <= summary_max) return format("%.*s", (int)length, text);
    while (end > 0 && (text[end - 1] == ',' || text[end - 1] == ':')) end--;
    return format("%.*s…", (int)end, text);
}

/* Whether the long form has an optional value after "=", and the short form none: "-p, --profile[=VIEW]". */
static bool is_attached(const block *option)
{
    return strncmp(option->argument, "[=", 2) == 0;
}

/* The values that an option may have; none: any. */
static list choices(const page *p, const block *option)
{
    list names = {0};
    if (strcmp(option->name, "help") == 0 && *option->argument != '\0') {
        for (size_t i = 0; i < p->topics.count; i++) push(&names, p->topics.items[i]);
        if (p->topics.count > 0)
            push(&names, "all");
        else
            for (size_t i = 0; i < p->options.count; i++) push(&names, ((block *)p->options.items[i])->name);
    } else if (strchr(option->argument, '|') != nullptr) {
        names = split(option->argument, "|");
    }
    return names;
}

/* The name of an option's value, plain; "" if it has none. */
static char *value_name(const block *option)
{
    if (strchr(option->argument, '|') != nullptr) return "value";
    char *name = format("%s", option->argument), *end = name;
    for (const char *at = name + (is_attached(option) ? 2 : 0); *at != '\0'; at++)
        if (isalnum((unsigned char)*at) || *at == '=' || *at == '/') *end++ = *at;
    *end = '\0';
    return name;
}

static bool has_optional_value(const block *option)
{
    return *option->argument == '[';
}

/* "-o" and "--out". */
static list names_of(const block *option)
{
    list names = {0};
    if (option->letter != '\0') push(&names, format("-%c", option->letter));
    push(&names, format("--%s", option->name));
    return names;
}

void bash_write(FILE *out, const page *p)
{
    const char *function = format("_%s", replace(p->name, "-", "_"));
    fprintf(out,
            "# bash completion of %s. A value without choices, and an operand, is completed as a file name.\n"
            "%s()\n"
            "{\n"
            "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
            "    [[ $current == = ]] && current=\n"
            "    [[ $previous == = ]] && previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
            "    COMPREPLY=()\n"
            "    case $previous in\n",
            p->name, function);
    list names = {0};
    for (size_t i = 0; i < p->options.count; i++) {
        const block *option = p->options.items[i];
        push(&names, format("--%s", option->name));
        list values = choices(p, option);
        if (values.count == 0) continue;
        fprintf(out, "    %s) mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$current\"); return ;;\n",
                join(names_of(option), "|"), join(values, " "));
    }
    fprintf(out,
            "    esac\n"
            "    [[ $current != -* ]] || mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$current\")\n"
            "}\n"
            "complete -o bashdefault -o default -F %s %s\n",
            join(names, " "), function, p->name);
}

static void write_zsh_option(FILE *out, const page *p, const block *option)
{
    list names = names_of(option), values = choices(p, option);
    const char *value = value_name(option);
    char *text = replace(replace(replace(summary(option), "\\", "\\\\"), "[", "\\["), "]", "\\]");
    text = replace(text, "'", "'\\''");
    const char *excluded = "";
    if (strstr(option->text, "repeat") != nullptr)
        excluded = "*";
    else if (names.count > 1)
        excluded = format("(%s)", join(names, " "));
    const char *action = " ", *argument = "";
    if (values.count > 0)
        action = format("(%s)", join(values, " "));
    else if (strcmp(value, "DIR") == 0)
        action = "_files -/";
    else if (strcmp(value, "FILE") == 0)
        action = "_files";
    if (*value != '\0')
        argument = replace(format(":%s%s:%s", has_optional_value(option) ? ":" : "", value, action), "'", "");
    for (size_t i = 0; i < names.count; i++) {
        const char *name = names.items[i], *suffix = "";
        bool has_value = *value != '\0' && (name[1] == '-' || !is_attached(option));
        if (has_value) suffix = name[1] != '-' ? "+" : has_optional_value(option) ? "=-" : "=";
        fprintf(out, "    '%s%s%s[%s]%s' \\\n", excluded, name, suffix, text, has_value ? argument : "");
    }
}

void zsh_write(FILE *out, const page *p)
{
    fprintf(out, "#compdef %s\n\n_arguments -s -S \\\n", p->name);
    for (size_t i = 0; i < p->options.count; i++) write_zsh_option(out, p, p->options.items[i]);
    fputs("    '*:file:_files'\n", out);
}

void fish_write(FILE *out, const page *p)
{
    fprintf(out, "# fish completion of %s\n", p->name);
    for (size_t i = 0; i < p->options.count; i++) {
        const block *option = p->options.items[i];
        list values = choices(p, option);
        fprintf(out, "complete -c %s", p->name);
        if (option->letter != '\0') fprintf(out, " -s %c", option->letter);
        fprintf(out, " -l %s", option->name);
        if (values.count > 0)
            fprintf(out, "%s -a '%s'", has_optional_value(option) ? " -f" : " -x", join(values, " "));
        else if (*value_name(option) != '\0' && !is_attached(option))
            fputs(" -r", out);
        fprintf(out, " -d '%s'\n", replace(replace(summary(option), "\\", "\\\\"), "'", "\\'"));
    }
}
