/* The most frequent values of a long stream in bounded memory: a table of counts. When it is full, the same amount is
 * subtracted from all counts, and values without a count are dropped (Misra and Gries; same bounds as space-saving).
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
 * Up to `limit` distinct values every count is exact. Beyond that, a count is too small by at most `error`, which is at
 * most 2 / limit of the sum of all counts added: every more frequent value is in the table. Merging in any order keeps
 * this bound. */
#ifndef MR_TOOLS_COMMON_TOP_H
#define MR_TOOLS_COMMON_TOP_H

#include <millrace/tensor.h>

#define TOP_LIMIT 2048
/* A longer text is not counted by value. */
#define TOP_TEXT_MAX 64

/* {0} counts numbers, up to TOP_LIMIT distinct ones exactly; {.is_text = true} counts texts. One thread at a time. */
typedef struct top {
    bool is_text;
    uint32_t limit;    /* maximum number of distinct values, at least 2; 0: TOP_LIMIT */
    uint32_t count;    /* distinct values in the table */
    uint32_t capacity; /* slots, a power of two, or 0 */
    uint64_t error;    /* subtracted from every count so far; 0: all counts are exact */
    uint64_t total;    /* sum of the counts added */
    struct top_slot *slots;
    char *texts; /* one text per slot */
} top;

/* Adds count (at least 1) to a value's count. False when there is no memory. */
[[nodiscard]] bool top_add_number(top *top, int64_t number, uint64_t count);
/* text  at most TOP_TEXT_MAX bytes of any kind */
[[nodiscard]] bool top_add_text(top *top, mr_string text, uint64_t count);
[[nodiscard]] bool top_merge(top *top, const struct top *other);

typedef struct top_entry {
    uint64_t count;
    int64_t number;
    mr_string text; /* borrowed until the next change */
} top_entry;
/* Lists the entries with the largest counts in descending order, equal counts by value; returns their number. */
size_t top_list(const top *top, top_entry *entries, size_t most);
/* A value's count; 0 if it is not in the table. */
uint64_t top_number_count(const top *top, int64_t number);
uint64_t top_text_count(const top *top, mr_string text);
/* For numbers: the sum of the counts of all smaller numbers; and the number below which a fraction `rank` of all counts
 * lies, 0 when empty. Exact when error is 0. */
uint64_t top_below(const top *top, int64_t number);
int64_t top_quantile(const top *top, double rank);
size_t top_size_bytes(const top *top);
void top_deinit(top *top);

#endif
