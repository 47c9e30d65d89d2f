/* Code shared by all sources: the lists of rows and classes, and the keys of an image. */
#include "tfrecord-make/make.h"

#include "common/file.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A larger file is not accepted as an image. */
static constexpr size_t IMAGE_SIZE_MAX = (size_t)1 << 30;
static constexpr size_t TEXT_BLOCK_BYTES = (size_t)64 << 10;

mr_status source_bytes_reserve(source_bytes *bytes, size_t size_bytes, mr_error *error)
{
    if (size_bytes <= bytes->capacity_bytes) return MR_OK;
    free(bytes->data);
    *bytes = (source_bytes){0};
    size_t capacity = size_bytes + size_bytes / 4;
    bytes->data = malloc(capacity);
    if (!bytes->data) return fail_memory(error, capacity);
    bytes->capacity_bytes = capacity;
    return MR_OK;
}

bool source_is_image_name(const char *name)
{
    return image_format_of_name(name) != MR_IMAGE_UNKNOWN;
}

static mr_status read_file(const char *path, source_bytes *bytes, mr_error *error)
{
    int descriptor;
    MR_TRY(file_open(path, &descriptor, error));
    off_t size = lseek(descriptor, 0, SEEK_END);
    size_t done = 0;
    bytes->size_bytes = 0;
    mr_status status = MR_OK;
    if (size < 0 || (uint64_t)size > IMAGE_SIZE_MAX)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "%s: larger than the maximum size of an image (%zu bytes)", path,
                         IMAGE_SIZE_MAX);
    if (status == MR_OK) status = source_bytes_reserve(bytes, (size_t)size + 1, error);
    if (status == MR_OK) status = file_read_at(descriptor, path, 0, bytes->data, (size_t)size, &done, error);
    (void)close(descriptor);
    bytes->size_bytes = done;
    return status;
}

mr_status source_read_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    char *path = nullptr;
    if (source->directory && *row->name != '/' && asprintf(&path, "%s/%s", source->directory, row->name) < 0)
        return fail_memory(error, strlen(row->name));
    mr_status status = read_file(path ? path : row->name, bytes, error);
    free(path);
    *has_image = status == MR_OK;
    return status;
}

mr_status source_fail_row(const source *source, const row *row, mr_status status, mr_error *error)
{
    if (source->names_are_positions) return mr_fail_prefix(error, status, "%s: %s", source->input, row->name);
    const char *directory =
        source->functions->directory ? source->functions->directory(source, row) : source->directory;
    if (directory && *row->name != '/') return mr_fail_prefix(error, status, "%s/%s", directory, row->name);
    return mr_fail_prefix(error, status, "%s", row->name);
}

mr_status source_note_path(source *source, const char *path, mr_error *error)
{
    bool leads_out = *path == '/';
    for (const char *part = path; part && !leads_out; part = strchr(part, '/')) {
        part += *part == '/';
        leads_out = strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]);
    }
    return leads_out
               ? source_note(source, "image is outside the image directory|images are outside the image directory",
                             path, error)
               : MR_OK;
}

char *source_keep(source *source, const char *text, size_t size_bytes)
{
    if (size_bytes + 1 > source->text_room) {
        size_t block = size_bytes + 1 > TEXT_BLOCK_BYTES ? size_bytes + 1 : TEXT_BLOCK_BYTES;
        source->text = arena_alloc(&source->arena, block);
        source->text_room = source->text ? block : 0;
        if (!source->text) return nullptr;
    }
    char *copy = source->text;
    assert(copy && source->text_room > size_bytes);
    memcpy(copy, text, size_bytes);
    copy[size_bytes] = '\0';
    source->text += size_bytes + 1;
    source->text_room -= size_bytes + 1;
    return copy;
}

mr_status source_add_row(source *source, const row *row, mr_error *error)
{
    /* The array grows at powers of two. */
    int64_t count = source->row_count;
    if ((count & (count - 1)) == 0) {
        size_t size = (size_t)(count ? 2 * count : 1) * sizeof(*row);
        struct row *grown = realloc(source->rows, size);
        if (!grown) return fail_memory(error, size);
        source->rows = grown;
    }
    size_t length = strlen(row->name);
    char *name = source_keep(source, row->name, length);
    if (!name) return fail_memory(error, length);
    assert(row->split >= 0 && row->split <= source->split_count);
    struct row *added = &source->rows[source->row_count++];
    *added = *row;
    added->name = name;
    if (!row->hash) added->hash = plan_hash(0, name, length);
    source->size_bytes += row->size_bytes;
    return MR_OK;
}

mr_status source_add_class(source *source, const char *name, mr_error *error)
{
    int32_t count = source->class_count;
    if (count == INT32_MAX) return mr_fail(error, MR_INVALID_ARGUMENT, "%s: too many classes", source->input);
    if ((count & (count - 1)) == 0) {
        size_t size = (size_t)(count ? 2 * (size_t)count : 1) * sizeof(char *);
        char **grown = realloc(source->classes, size);
        if (!grown) return fail_memory(error, size);
        source->classes = grown;
    }
    if (name && strchr(name, '\n'))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the name of the class \"%s\" contains a line break",
                       source->input, name);
    char *copy = name ? source_keep(source, name, strlen(name)) : nullptr;
    if (name && !copy) return fail_memory(error, strlen(name));
    source->classes[source->class_count++] = copy;
    return MR_OK;
}

mr_status source_note(source *source, const char *what, const char *example, mr_error *error)
{
    int i = 0;
    while (i < source->note_count && strcmp(source->notes[i].what, what) != 0) i++;
    assert(i < SOURCE_NOTES_MAX);
    if (i == source->note_count) {
        char *first = source_keep(source, example, strlen(example));
        if (!first) return fail_memory(error, strlen(example));
        source->notes[source->note_count++].what = what;
        source->notes[i].first = first;
    }
    source->notes[i].count++;
    return MR_OK;
}

mr_status source_remark(source *source, mr_error *error, const char *format, ...)
{
    if (source->remark_count == SOURCE_REMARKS_MAX) return MR_OK;
    char *text = nullptr;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&text, format, args);
    va_end(args);
    char *kept = size < 0 ? nullptr : source_keep(source, text, (size_t)size);
    if (size >= 0) free(text);
    if (!kept) return fail_memory(error, size < 0 ? 0 : (size_t)size);
    source->remarks[source->remark_count++] = kept;
    return MR_OK;
}

mr_status source_declare(source *source, const char *key, mr_error *error)
{
    uint32_t number;
    return names_add(&source->features, mr_string_from(key), &number, error);
}

/* ---- Splits that the input names ---- */

bool source_takes_splits(const source *source)
{
    return !options_is_given(source->options, "split");
}

bool source_is_split_name(mr_string name)
{
    static const char barred[] = "/@*?[\n"; /* and NUL: not allowed in file names or patterns */
    if (name.size_bytes == 0 || name.size_bytes >= SPLIT_NAME_BYTES) return false;
    for (size_t i = 0; i < name.size_bytes; i++)
        if (memchr(barred, name.data[i], sizeof(barred))) return false;
    return true;
}

mr_status source_find_split(source *source, mr_string name, int8_t *split, mr_error *error)
{
    assert(source->split_count <= SPLITS_MAX);
    *split = 0;
    if (!source_is_split_name(name)) return MR_OK;
    int i = 0;
    while (i < source->split_count && !mr_string_equal(mr_string_from(source->splits[i]), name)) i++;
    if (i == SPLITS_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: names more than %d splits: %s, %s, … and %.*s; --split overrides them", source->input,
                       SPLITS_MAX, source->splits[0], source->splits[1], (int)name.size_bytes, name.data);
    if (i == source->split_count) {
        memcpy(source->splits[i], name.data, name.size_bytes);
        source->split_count++;
    }
    *split = (int8_t)(i + 1);
    return MR_OK;
}

void source_deinit(source *source)
{
    if (source->functions && source->functions->deinit) source->functions->deinit(source);
    free(source->rows);
    free(source->excluded);
    free(source->classes);
    names_deinit(&source->features);
    arena_deinit(&source->arena);
    *source = (struct source){0};
}

mr_status source_image(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    *has_image = false;
    bytes->size_bytes = 0;
    if (!source->functions->image) return MR_OK;
    return source->functions->image(source, row, bytes, has_image, error);
}

mr_status source_content(const source *source, const row *row, source_bytes *bytes, bool *has_image, mr_error *error)
{
    if (!source->functions->content) return source_image(source, row, bytes, has_image, error);
    *has_image = false;
    return source->functions->content(source, row, bytes, has_image, error);
}

static const char *color_name(mr_color_space color)
{
    switch (color) {
    case MR_COLOR_GRAY:
        return "Gray";
    case MR_COLOR_CMYK:
        return "CMYK";
    default:
        return "RGB";
    }
}

mr_status source_add_features(const source *source, const row *row, const image_facts *facts,
                              mr_example_encoder *encoder, mr_error *error)
{
    const features to = {encoder, source->in, &source->features};
    if (facts) {
        const mr_image_info *info = &facts->info;
        put_bytes(&to, "image/encoded", facts->encoded);
        put_bytes(&to, "image/format", info->format == MR_IMAGE_JPEG ? MR_STR("jpeg") : MR_STR("png"));
        put_int64(&to, "image/height", info->height);
        put_int64(&to, "image/width", info->width);
        put_int64(&to, "image/channels", info->channels);
        put_bytes(&to, "image/colorspace", mr_string_from(color_name(info->color)));
    }
    return source->functions->add_features(source, row, facts, &to, error);
}
