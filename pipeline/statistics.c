/* Statistics as text: one line for each stage. Numbers have up to four digits, a letter and a unit, so that columns are
 * aligned for any values. */
#include <assert.h>
#include <millrace/dataset.h>
#include <stdarg.h>
#include <stdio.h>

constexpr int32_t STAGES_SHOWN = 64;

/* Text truncated to its capacity; the full length is counted. */
typedef struct text {
    char *bytes;
    size_t size_bytes, capacity_bytes;
} text;

[[gnu::format(printf, 2, 3)]] static void put(text *t, const char *format, ...)
{
    size_t left = t->size_bytes < t->capacity_bytes ? t->capacity_bytes - t->size_bytes : 0;
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(left > 0 ? t->bytes + t->size_bytes : nullptr, left, format, arguments);
    va_end(arguments);
    if (size > 0) t->size_bytes += (size_t)size;
}

/* "17", "9.53k", "12.3M": at most 5 characters, plus the unit's. */
static void put_number(text *t, uint64_t number, const char *unit)
{
    static const char letters[] = {'k', 'M', 'G', 'T', 'P', 'E'};
    if (number < 10000) {
        put(t, " %5u%s", (unsigned)number, unit);
        return;
    }
    double value = (double)number * 1e-3;
    int letter = 0;
    for (; value >= 999.5; value *= 1e-3) letter++;
    assert(letter < (int)sizeof letters);
    put(t, " %4.*f%c%s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, letters[letter], unit);
}

/* Seconds: "0.012s", "34.56s", "12345s". */
static void put_seconds(text *t, uint64_t ns)
{
    double seconds = (double)ns * 1e-9;
    if (seconds < 99999)
        put(t, " %5.*fs", seconds < 9.9995 ? 3 : seconds < 99.995 ? 2 : seconds < 999.95 ? 1 : 0, seconds);
    else
        put(t, " %4.0fks", seconds * 1e-3);
}

static void put_stage(text *t, int32_t width, const mr_stage_statistics *s)
{
    assert(s->stage != nullptr && width > 0);
    put(t, "%-*.*s", (int)width, (int)width, s->stage);
    put_number(t, s->elements, "");
    put_number(t, s->bytes, "B");
    put_number(t, s->held_bytes, "B");
    put_seconds(t, s->busy_ns);
    put_seconds(t, s->input_wait_ns);
    put_seconds(t, s->output_wait_ns);
    if (s->slots_max > 0)
        put(t, " %3.0f%%\n", s->occupancy * 100);
    else
        put(t, "    -\n");
}

size_t mr_iterator_statistics_text(mr_iterator *iterator, int32_t columns, char *bytes, size_t capacity_bytes)
{
    if (iterator == nullptr) return 0;
    /* Widths of the numbers, and of the longest stage name. */
    constexpr int32_t NUMBERS = 46, NAME_MAX = 28, NAME_MIN = 14;
    mr_stage_statistics stages[STAGES_SHOWN];
    int32_t count = mr_iterator_statistics(iterator, stages, STAGES_SHOWN);
    int32_t width = columns - NUMBERS < NAME_MIN   ? NAME_MIN
                    : columns - NUMBERS > NAME_MAX ? NAME_MAX
                                                   : columns - NUMBERS;
    text t = {.bytes = bytes, .capacity_bytes = capacity_bytes};
    if (capacity_bytes > 0) bytes[0] = '\0';
    put(&t, "%-*s %5s %6s %6s %6s %6s %6s %4s\n", (int)width, "stage", "items", "bytes", "held", "busy", "in", "out",
        "full");
    for (int32_t i = 0; i < count && i < STAGES_SHOWN; i++) put_stage(&t, width, &stages[i]);
    for (int32_t i = 0; i < count && i < STAGES_SHOWN; i++)
        if (stages[i].warning[0] != '\0') put(&t, "%s: warning: %s\n", stages[i].stage, stages[i].warning);
    if (count > STAGES_SHOWN) put(&t, "and %d more\n", (int)(count - STAGES_SHOWN));
    return t.size_bytes;
}
