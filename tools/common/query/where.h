/* --where: an expression that selects records.
 *
 *     expression := condition { "||" condition }, "&&" binds closer, "!" closest, parentheses
 *     condition  := operand == != < <= > >= operand | operand =~ "regex" | operand contains "text" | exists(name)
 *     operand    := name | feature("any name") | number | "text" | 'text' | size(name) | steps(name) | bytes(operand)
 *                   | operand + - * / % operand | -operand | (operand)
 *
 * A name is a feature: letters, digits and _ / . : @ # $ - , the first a letter or _ (so the operators - and / need
 * spaces around them). A comparison with a list is true if it is true for any of its values; two lists are compared
 * value by value at the same index. A comparison is false, including !=, if a feature is missing or of the other type
 * (text, number).
 *
 * ```c
 * where_error error;
 * where *where = where_parse("image/width > 500 && image/class/text == 'cat'", &error);
 * where_state *state = where ? where_state_new(where) : nullptr;
 * if (state && where_matches(state, record)) …
 * ``` */
#ifndef MR_TOOLS_COMMON_WHERE_H
#define MR_TOOLS_COMMON_WHERE_H

#include "common/query/tfds.h"

#include <millrace/example.h>

#include <stdio.h>

typedef struct where where;
typedef struct where_error {
    size_t at; /* byte offset in the text */
    char message[120];
} where_error;

/* Null when the text is not a valid expression. Owned by the caller: where_free. */
where *where_parse(const char *text, where_error *error);
void where_free(where *where);
/* Whether the expression compares with a text, so that class names matter. */
bool where_has_text(const where *where);

/* State that one thread needs to evaluate records; borrows where. Null: no memory. */
typedef struct where_state where_state;
where_state *where_state_new(const where *where);
/* Metadata of the directory of the following records, by which class numbers are compared with texts: borrowed; null:
 * none. */
void where_set_tfds(where_state *state, const tfds *tfds);
/* A record that is not an Example has no features. */
bool where_matches(where_state *state, mr_string record);
/* Memory has run out in where_matches: its results are meaningless. */
bool where_has_failed(const where_state *state);
/* Adds what another state has seen to the statistics of where_notes, and frees it. Null is allowed. */
void where_state_merge(where_state *state, where_state *other);
/* Prints warnings about likely mistakes: names that no record has, text compared with numbers. */
void where_notes(const where_state *state, FILE *file);
void where_state_free(where_state *state);

#endif
