/* Statistics as text: one line a stage. Numbers have four digits and a letter, so that columns hold whatever they count. */
#include <assert.h>
#include <millrace/dataset.h>
#include <stdarg.h>
#include <stdio.h>

constexpr int32_t STAGES_SHOWN = 64;

/* Text that is cut where the room ends, and measured in full. */
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

/* "17", "9.53k", "12.3M": at most 5 characters. */
static void put_number(text *t, uint64_t number)
{
    static const char letters[] = {'k', 'M', 'G', 'T', 'P', 'E'};
    if (number < 10000) {
        put(t, " %6u", (unsigned)number);
        return;
    }
    double value = (double)number * 1e-3;
    int letter = 0;
    for (; value >= 999.5; value *= 1e-3) letter++;
    assert(letter < (int)sizeof letters);
    put(t, " %5.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, letters[letter]);
}

/* Seconds: "0.012", "34.56", "12345". */
static void put_seconds(text *t, uint64_t ns)
{
    double seconds = (double)ns * 1e-9;
    if (seconds < 99999)
        put(t, " %5.*f", seconds < 9.9995 ? 3 : seconds < 99.995 ? 2 : seconds < 999.95 ? 1 : 0, seconds);
    else
        put(t, " %4.0fk", seconds * 1e-3);
}

static void put_stage(text *t, int32_t width, const mr_stage_statistics *s)
{
    assert(s->stage != nullptr && width > 0);
    put(t, "%-*.*s", (int)width, (int)width, s->stage);
    put_number(t, s->elements);
    put_number(t, s->bytes);
    put_number(t, s->held_bytes);
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
    /* What the numbers take, and names of stages. */
    constexpr int32_t NUMBERS = 44, NAME_MAX = 28;
    mr_stage_statistics stages[STAGES_SHOWN];
    int32_t count = mr_iterator_statistics(iterator, stages, STAGES_SHOWN);
    int32_t width = columns - NUMBERS < 16 ? 16 : columns - NUMBERS > NAME_MAX ? NAME_MAX : columns - NUMBERS;
    text t = {.bytes = bytes, .capacity_bytes = capacity_bytes};
    if (capacity_bytes > 0) bytes[0] = '\0';
    put(&t, "%-*s %6s %6s %6s %5s %5s %5s %4s\n", (int)width, "stage", "items", "bytes", "held", "busy", "in", "out",
        "full");
    for (int32_t i = 0; i < count && i < STAGES_SHOWN; i++) put_stage(&t, width, &stages[i]);
    if (count > STAGES_SHOWN) put(&t, "and %d more\n", (int)(count - STAGES_SHOWN));
    return t.size_bytes;
}
