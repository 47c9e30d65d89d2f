/* The most frequent values of a long stream in bounded memory: a table of counts that, when it is full, takes the same
 * count off all its values and drops those that come to nothing (Misra and Gries; the same bounds as space-saving).
 *
 * ```c
 * top top = {.is_text = true};
 * if (!top_add_text(&top, MR_STR("cat"), 1) || !top_add_text(&top, MR_STR("cat"), 1)) return 1;
 * top_entry most[3];
 * size_t count = top_list(&top, most, 3);
 * printf("%.*s %" PRIu64 "\n", (int)most[0].text.size_bytes, most[0].text.data, most[0].count);
 * top_deinit(&top);
 * ```
 *
 * Up to `limit` different values every count is exact. Beyond, a count is too small by at most `error`, which is at most
 * 2 / limit of all that was added: every value more frequent than that is in the table. Merging keeps this, in any order. */
#ifndef MR_TOOLS_TOP_H
#define MR_TOOLS_TOP_H

#include <millrace/tensor.h>

#define TOP_LIMIT 2048
/* A text longer than this is not counted by its value. */
#define TOP_TEXT_MAX 64

/* {0} counts numbers, up to TOP_LIMIT different ones exactly; {.is_text = true} counts texts. One thread at a time. */
typedef struct top {
    bool is_text;
    uint32_t limit;    /* different values at most, two or more; 0: TOP_LIMIT */
    uint32_t count;    /* different values in the table */
    uint32_t capacity; /* slots, a power of two, or 0 */
    uint64_t error;    /* taken off every count so far; 0: all counts are exact */
    uint64_t total;    /* counts that were added */
    struct top_slot *slots;
    char *texts; /* slot by slot */
} top;

/* Adds count (1 or more) to a value. False when there is no memory. */
[[nodiscard]] bool top_add_number(top *top, int64_t number, uint64_t count);
/* text  at most TOP_TEXT_MAX bytes of any kind */
[[nodiscard]] bool top_add_text(top *top, mr_string text, uint64_t count);
[[nodiscard]] bool top_merge(top *top, const struct top *other);

typedef struct top_entry {
    uint64_t count;
    int64_t number;
    mr_string text; /* borrowed until the next change */
} top_entry;
/* The entries with the greatest counts, greatest first, equal ones by value; returns how many. */
size_t top_list(const top *top, top_entry *entries, size_t most);
/* A value's count; 0 when it is not in the table. */
uint64_t top_number_count(const top *top, int64_t number);
uint64_t top_text_count(const top *top, mr_string text);
/* Of numbers: the counts of all below one; and the number below which a part `rank` of all counts lies, 0 when empty. Exact
 * when error is 0. */
uint64_t top_below(const top *top, int64_t number);
int64_t top_quantile(const top *top, double rank);
size_t top_size_bytes(const top *top);
void top_deinit(top *top);

#endif
