/* The help of a program with flags. */
#include "graph/train/flags.h"

#include <string.h>

constexpr size_t WIDTH = 80;

/* Text that grows in the flags' arena. */
typedef struct text {
    mr_arena *arena;
    char *bytes; /* null: no memory */
    size_t used, capacity;
} text;

static void put(text *t, const char *bytes, size_t length)
{
    if (t->bytes == nullptr) return;
    if (t->used + length + 1 > t->capacity) {
        const size_t larger = 2 * (t->used + length + 1);
        char *grown = mr_arena_alloc(t->arena, larger);
        if (grown != nullptr) memcpy(grown, t->bytes, t->used);
        t->bytes = grown;
        t->capacity = larger;
        if (grown == nullptr) return;
    }
    memcpy(t->bytes + t->used, bytes, length);
    t->used += length;
    t->bytes[t->used] = '\0';
}

static void put_text(text *t, const char *bytes)
{
    put(t, bytes, strlen(bytes));
}

/* Puts words into lines of at most WIDTH columns; a longer word has a line of its own. Line breaks of the text remain.
 * first, later: the indentation of the first line and of those after it */
static void put_wrapped(text *t, const char *words, size_t first, size_t later)
{
    size_t column = 0;
    bool is_first = true;
    for (const char *at = words; *at != '\0';) {
        at += strspn(at, " \t\r");
        if (*at == '\n') {
            put_text(t, "\n");
            column = 0;
            is_first = false;
            at++;
            continue;
        }
        const size_t length = strcspn(at, " \t\r\n");
        if (length == 0) break;
        if (column > 0 && column + 1 + length > WIDTH) {
            put_text(t, "\n");
            column = 0;
            is_first = false;
        }
        const size_t indent = is_first ? first : later;
        for (size_t i = 0; column == 0 && i < indent; i++) put_text(t, " ");
        if (column > 0) put_text(t, " ");
        put(t, at, length);
        column += length + (column > 0 ? 1 : indent);
        at += length;
    }
    put_text(t, "\n");
}

/* "<red|green>: ", or "" for a flag that is no enum; null: no memory. */
static const char *values_text(const mr_flag *flag, mr_arena *arena)
{
    if (flag->kind != MR_FLAG_ENUM) return "";
    const char *values = "<";
    for (int32_t i = 0; values != nullptr && i < flag->values.count; i++)
        values = mr_arena_printf(arena, "%s%s%s", values, i > 0 ? "|" : "", flag->values.items[i]);
    return values != nullptr ? mr_arena_printf(arena, "%s>: ", values) : nullptr;
}

/* The first line of a flag, "-n,--name: help". */
static const char *head_text(const mr_flag *flag, mr_arena *arena)
{
    const bool has_short = flag->short_name != nullptr;
    const char *values = values_text(flag, arena);
    if (values == nullptr) return nullptr;
    return mr_arena_printf(arena, "%s%s%s--%s%s: %s%s%s", has_short ? "-" : "", has_short ? flag->short_name : "",
                           has_short ? "," : "", flag->kind == MR_FLAG_BOOL ? "[no]" : "", flag->name, values,
                           flag->help, flag->is_multi ? " Repeat this flag to specify a list of values." : "");
}

/* A line in parentheses below it. */
static void put_note(text *t, const char *before, const char *note, const char *after)
{
    const char *line = mr_arena_printf(t->arena, "(%s%s%s)", before, note, after);
    if (line != nullptr)
        put_wrapped(t, line, 4, 4);
    else
        t->bytes = nullptr;
}

static void put_flag(text *t, const mr_flag *flag)
{
    char rule[MR_FLAG_RULE_SIZE];
    const char *head = head_text(flag, t->arena);
    if (head == nullptr) {
        t->bytes = nullptr;
        return;
    }
    put_wrapped(t, head, 2, 4);
    if (flag->default_text != nullptr && !flag->is_special) put_note(t, "default: '", flag->default_text, "'");
    if (flag->required) put_note(t, "", "required", "");
    if (flag->kind != MR_FLAG_ENUM && *mr_flag_describe(flag, rule, sizeof rule) != '\0') put_note(t, "", rule, "");
}

const char *mr_flags_render_help(mr_flags *flags, bool is_full)
{
    text t = {.arena = &flags->arena, .bytes = mr_arena_alloc(&flags->arena, 4096), .capacity = 4096};
    if (*flags->usage != '\0') {
        put_wrapped(&t, flags->usage, 0, 0);
        put_text(&t, "\n");
    }
    put_text(&t, "USAGE: ");
    put_text(&t, flags->program);
    put_text(&t, " [flags]\nflags:\n\n");
    put_text(&t, flags->program);
    put_text(&t, ":\n");
    for (int32_t i = 0; i < flags->flag_count; i++)
        if (!flags->flags[i]->is_special) put_flag(&t, flags->flags[i]);
    if (!is_full) {
        put_text(&t, "\nTry --helpfull to get a list of all flags.\n");
        return t.bytes;
    }
    put_text(&t, "\nall programs:\n");
    for (int32_t i = 0; i < flags->flag_count; i++)
        if (flags->flags[i]->is_special) put_flag(&t, flags->flags[i]);
    put_text(&t, "  --flagfile: Insert the flags in this file, one a line.\n"
                 "  --undefok: Names of flags, separated by commas, that need not be defined.\n");
    return t.bytes;
}
