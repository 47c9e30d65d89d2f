/* The name of a dataset, for the title of its pages. */
#include "common/shard_name.h"
#include "tfrecord-cat/html.h"

/* A file's name without its directory, and without "-00000-of-00004" and ".tfrecord…". */
static mr_string stem_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".tfrec"), *shard = shard_number_find(name);
    size_t size = end && end > name ? (size_t)(end - name) : strlen(name);
    if (shard && (size_t)(shard - name) < size) size = (size_t)(shard - name);
    return (mr_string){name, size};
}

/* Removes separators at the ends. */
static mr_string trimmed(mr_string name)
{
    while (name.size_bytes > 0 && strchr("-_. ", name.data[name.size_bytes - 1])) name.size_bytes--;
    return name;
}

/* The last component of a file's directory; empty: none. */
static mr_string directory_of(const char *path)
{
    const char *end = strrchr(path, '/'), *begin = end;
    while (begin && begin > path && begin[-1] != '/') begin--;
    return end ? (mr_string){begin, (size_t)(end - begin)} : MR_STR("");
}

void html_dataset_name(out *out, const options *options)
{
    if (options->tfds.count == 1 && options->tfds.items[0]->title) {
        html_string(out, mr_string_from(options->tfds.items[0]->title), SIZE_MAX);
        return;
    }
    const char *first = options->path_count > 0 ? options->paths[0] : "-";
    mr_string name = stem_of(first), directory = directory_of(first);
    for (int32_t i = 1; i < options->path_count; i++) {
        mr_string other = stem_of(options->paths[i]);
        size_t same = 0;
        while (same < name.size_bytes && same < other.size_bytes && name.data[same] == other.data[same]) same++;
        name.size_bytes = same;
    }
    name = trimmed(name);
    if (strcmp(first, "-") == 0) name = MR_STR("standard input");
    if (name.size_bytes == 0) name = directory;
    html_string(out, name.size_bytes > 0 ? name : MR_STR("Records"), SIZE_MAX);
}
