/* File names derived from records, whose texts are untrusted: no name leaves its directory, is hidden, or occurs
 * twice. */
#ifndef MR_TOOLS_TFRECORD_CAT_SAFE_NAMES_H
#define MR_TOOLS_TFRECORD_CAT_SAFE_NAMES_H

#include "common/out.h"

/* Maximum size of a name in bytes, which leaves room for an extension, "~2" and ".partial" within the 255 bytes of a
 * file system; and of a part of a name. */
#define SAFE_NAME_MAX 180
#define SAFE_PART_MAX 70

/* Appends one name: slashes, backslashes, control characters, invalid UTF-8 and a leading dot become "%2F" and so on; a
 * name that is too long is cut to max bytes. False when nothing is left of it. */
bool safe_name(out *out, mr_string name, size_t max);

/* Names in use, by hash. {} is empty. */
typedef struct given_names {
    struct given_name *slots; /* owned */
    size_t count, capacity;
} given_names;
/* How often the name was added before; UINT64_MAX: no memory. */
uint64_t given_names_add(given_names *names, mr_string name);
void given_names_deinit(given_names *names);

#endif
