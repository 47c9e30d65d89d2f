/* What --verify finds wrong with a record whose checksums hold. */
#ifndef MR_TOOLS_TFRECORD_CAT_VERIFY_H
#define MR_TOOLS_TFRECORD_CAT_VERIFY_H

#include "tools/tfrecord-cat/cat.h"

/* One for each thread; {} is ready. */
typedef struct checker {
    bool decodes;      /* every pixel of every image */
    mr_string *values; /* owned */
    size_t capacity;
    mr_error error; /* of the moment: clearing one for each feature would take most of the time */
} checker;
void checker_deinit(checker *checker);

/* Told of each fault. kind: "bad Example", "bad image"; message is a sentence without the record's place. */
typedef void take_fault(void *context, const char *kind, const char *message);
/* Whether the record is an Example or a SequenceExample whose every value reads, and its images have good headers.
 * threads  any, each with a checker of its own */
void checker_check(checker *checker, mr_string record, take_fault *take, void *context);

#endif
