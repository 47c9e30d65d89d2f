/* Names of shards, and of what a program leaves beside a file that it had no time to finish. */
#ifndef MR_TOOLS_COMMON_SHARD_NAME_H
#define MR_TOOLS_COMMON_SHARD_NAME_H

/* What follows a shard's number, "-00001-of-00004"; null: the text does not begin with one. */
const char *shard_number_end(const char *text);

/* Whether the end of a name, behind that of a record file, is that of a half file or of its index. */
bool shard_is_partial(const char *rest);

#endif
