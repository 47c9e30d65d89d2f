/* Names of shards, and of the partial files that an interrupted program leaves next to its output. */
#ifndef MR_TOOLS_COMMON_SHARD_NAME_H
#define MR_TOOLS_COMMON_SHARD_NAME_H

/* The text after a shard number, "-00001-of-00004"; null: the text does not begin with one. */
const char *shard_number_end(const char *text);

/* Whether `rest`, the text after a record file's name, makes it the name of a partial file or of its index. */
bool shard_is_partial(const char *rest);

#endif
