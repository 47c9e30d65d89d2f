/* A set of tags. */
#ifndef MR_RECORDS_TAGS_H
#define MR_RECORDS_TAGS_H

#include "base/status.h"

#include <stdint.h>

/* {0} is empty. */
typedef struct mr_tag_set {
    char **items; /* owned, sorted */
    size_t count, capacity;
} mr_tag_set;

bool mr_tag_set_contains(const mr_tag_set *set, const char *tag);
/* Adds a copy of the tag; one that the set contains is not added again. */
mr_status mr_tag_set_add(mr_tag_set *set, const char *tag, mr_error *error);
void mr_tag_set_deinit(mr_tag_set *set);

#endif
