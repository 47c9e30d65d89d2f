/* Names of files that come from records, which may hold anything: none leaves its directory, hides, or is given twice. */
#ifndef MR_TOOLS_TFRECORD_CAT_SAFE_NAMES_H
#define MR_TOOLS_TFRECORD_CAT_SAFE_NAMES_H

#include "tools/tfrecord-cat/out.h"

/* Bytes of a name at most, so that there is room for an ending, "~2" and ".partial" in the 255 of a file system; and of a
 * part of a name. */
#define SAFE_NAME_MAX 180
#define SAFE_PART_MAX 70

/* Appends one name: slashes, backslashes, controls, bytes that are no UTF-8 and a leading dot become "%2F" and so on; too
 * long a name is cut to max bytes. False when nothing is left of it. */
bool safe_name(out *out, mr_string name, size_t max);

/* Names that were given, by their hashes. {} is empty. */
typedef struct given_names {
    struct given_name *slots; /* owned */
    size_t count, capacity;
} given_names;
/* How often the name was given before; UINT64_MAX: no memory. */
uint64_t given_names_add(given_names *names, mr_string name);
void given_names_deinit(given_names *names);

#endif
