/* --where: an expression that says which records are meant.
 *
 *     expression := condition { "||" condition }, "&&" binds closer, "!" closest, parentheses
 *     condition  := operand == != < <= > >= operand | operand =~ "regex" | operand contains "text" | exists(name)
 *     operand    := name | feature("any name") | number | "text" | 'text' | size(name) | steps(name) | bytes(operand)
 *                   | operand + - * / % operand | -operand | (operand)
 *
 * A name is a feature: letters, digits and _ / . : @ # $ - in it, the first a letter or _ (so - and / as operators stand
 * between spaces). A comparison holds when any value of a list makes it hold; of two lists the values at the same place are
 * compared. Where a feature is missing or of the other sort (text, number) it does not hold, != neither.
 *
 * ```c
 * where_error error;
 * where *where = where_parse("image/width > 500 && image/class/text == 'cat'", &error);
 * where_state *state = where ? where_state_new(where) : nullptr;
 * if (state && where_matches(state, record)) …
 * ``` */
#ifndef MR_TOOLS_TFRECORD_CAT_WHERE_H
#define MR_TOOLS_TFRECORD_CAT_WHERE_H

#include "tools/tfrecord-cat/tfds.h"

#include <millrace/example.h>

#include <stdio.h>

typedef struct where where;
typedef struct where_error {
    size_t at; /* byte of the text */
    char message[120];
} where_error;

/* Null when the text is no expression. The where is owned: where_free. */
where *where_parse(const char *text, where_error *error);
void where_free(where *where);
/* Whether a text is compared with anything, so that names of classes matter. */
bool where_has_text(const where *where);

/* What one thread needs to try records; it borrows the where. Null: no memory. */
typedef struct where_state where_state;
where_state *where_state_new(const where *where);
/* What the directory of the records that follow says, by which numbers of classes are compared with texts: borrowed; null:
 * nothing. */
void where_set_tfds(where_state *state, const tfds *tfds);
/* A record that is no Example has no features. */
bool where_matches(where_state *state, mr_string record);
/* Memory has run out in where_matches: what it returned means nothing. */
bool where_has_failed(const where_state *state);
/* Takes what another state has seen into account of where_notes, and frees that. Null is allowed. */
void where_state_merge(where_state *state, where_state *other);
/* Lines about what is likely not meant so: names that no record has, text compared with numbers. */
void where_notes(const where_state *state, FILE *file);
void where_state_free(where_state *state);

#endif
