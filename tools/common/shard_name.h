/* Names of shards, and of the partial files that an interrupted program leaves next to its output. */
#ifndef MR_TOOLS_COMMON_SHARD_NAME_H
#define MR_TOOLS_COMMON_SHARD_NAME_H

#include <millrace/tensor.h>

/* "STEM-00001-of-00004ENDING". Owned by the caller: free(); null if there is no memory. */
char *shard_name(mr_string stem, uint64_t index, uint64_t count, const char *ending);

/* The first shard number in a name, "-00001-of-00004" with five or more digits each; null: there is none. */
const char *shard_number_find(const char *name);
/* The text after a shard number; null: the text does not begin with one. */
const char *shard_number_end(const char *text);

/* Whether `rest`, the text after a record file's name, makes it the name of a partial file or of its index. */
bool shard_is_partial(const char *rest);

#endif
