/* Checks of --verify on a record whose checksums match. */
#ifndef MR_TOOLS_TFRECORD_CAT_VERIFY_H
#define MR_TOOLS_TFRECORD_CAT_VERIFY_H

#include "tfrecord-cat/cat.h"

/* One for each thread; {} is initialized. */
typedef struct checker {
    bool decodes;      /* every pixel of every image */
    mr_string *values; /* owned */
    size_t capacity;
    mr_error error; /* reused: clearing an error for each feature would take most of the time */
} checker;
void checker_deinit(checker *checker);

/* Called for each fault. kind: "bad Example", "bad image"; message describes it without the record's position. */
typedef void take_fault(void *context, const char *kind, const char *message);
/* Checks that the record is an Example or SequenceExample whose values can all be read, and that its images have valid
 * headers.
 * threads  any, each with its own checker */
void checker_check(checker *checker, mr_string record, take_fault *take, void *context);

#endif
