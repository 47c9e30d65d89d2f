/* projector_config.pbtxt: the configuration of TensorBoard's projector, in protobuf's text format. */
#include "base/arena.h"
#include "base/status.h"
#include "records/io/file.h"

#include <inttypes.h>
#include <millrace/events.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text so far, in an arena. */
typedef struct output {
    mr_arena *arena;
    const char *text; /* null: no memory */
} output;

[[gnu::format(printf, 2, 3)]] static void print(output *out, const char *format, ...)
{
    va_list args;
    char *added = nullptr;
    va_start(args, format);
    int length = vasprintf(&added, format, args);
    va_end(args);
    out->text = length >= 0 && out->text != nullptr ? mr_arena_printf(out->arena, "%s%s", out->text, added) : nullptr;
    if (length >= 0) free(added);
}

/* The text with escapes of C, as TensorFlow writes it. */
static const char *escaped(mr_arena *arena, const char *text)
{
    char *result = mr_arena_alloc(arena, 4 * strlen(text) + 1), *end = result;
    for (const unsigned char *c = (const unsigned char *)text; result != nullptr && *c != '\0'; c++) {
        if (*c == '"' || *c == '\\' || *c == '\'' || *c == '\n') {
            *end++ = '\\';
            *end++ = *c == '\n' ? 'n' : (char)*c;
        } else if (*c < 0x20 || *c >= 0x7f) {
            end += snprintf(end, 5, "\\%03o", (unsigned)*c);
        } else {
            *end++ = (char)*c;
        }
    }
    return result;
}

/* Prints `name: "text"`; a null or empty text is left out. */
static void print_text(output *out, const char *indent, const char *name, const char *text)
{
    if (text == nullptr || *text == '\0') return;
    const char *quoted = escaped(out->arena, text);
    if (quoted == nullptr)
        out->text = nullptr;
    else
        print(out, "%s%s: \"%s\"\n", indent, name, quoted);
}

static void print_sizes(output *out, const char *indent, const char *name, int64_t first, int64_t second)
{
    if (first > 0) print(out, "%s%s: %" PRId64 "\n%s%s: %" PRId64 "\n", indent, name, first, indent, name, second);
}

static mr_status check(const mr_projector_embedding *e, int32_t index, mr_error *error)
{
    if ((e->tensor_name == nullptr || *e->tensor_name == '\0') &&
        (e->tensor_path == nullptr || *e->tensor_path == '\0'))
        return mr_fail(error, MR_INVALID_ARGUMENT, "embedding %d has neither a tensor_name nor a tensor_path", index);
    const char *name = e->tensor_name != nullptr ? e->tensor_name : e->tensor_path;
    if (e->rows < 0 || e->columns < 0 || e->rows > UINT32_MAX || e->columns > UINT32_MAX ||
        (e->rows == 0) != (e->columns == 0))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "embedding %s: rows and columns are %" PRId64 " and %" PRId64 ", but must both be set, or none",
                       name, e->rows, e->columns);
    bool has_sprite = e->sprite_path != nullptr && *e->sprite_path != '\0';
    bool has_size = e->sprite_width > 0 && e->sprite_height > 0;
    if (has_sprite ? !has_size : (e->sprite_width != 0 || e->sprite_height != 0))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "embedding %s: a sprite has a path, a width and a height (found %s, %d and %d)", name,
                       has_sprite ? e->sprite_path : "no path", e->sprite_width, e->sprite_height);
    return MR_OK;
}

static void print_all(output *out, const char *checkpoint, const mr_projector_embedding *embeddings, int32_t count)
{
    print_text(out, "", "model_checkpoint_path", checkpoint);
    for (int32_t i = 0; i < count; i++) {
        const mr_projector_embedding *e = &embeddings[i];
        print(out, "embeddings {\n");
        print_text(out, "  ", "tensor_name", e->tensor_name);
        print_text(out, "  ", "metadata_path", e->metadata_path);
        print_text(out, "  ", "bookmarks_path", e->bookmarks_path);
        print_sizes(out, "  ", "tensor_shape", e->rows, e->columns);
        if (e->sprite_width > 0) {
            print(out, "  sprite {\n");
            print_text(out, "    ", "image_path", e->sprite_path);
            print_sizes(out, "    ", "single_image_dim", e->sprite_width, e->sprite_height);
            print(out, "  }\n");
        }
        print_text(out, "  ", "tensor_path", e->tensor_path);
        print(out, "}\n");
    }
}

mr_status mr_projector_config_write(const char *directory, const char *checkpoint,
                                    const mr_projector_embedding *embeddings, int32_t count, mr_error *error)
{
    if (directory == nullptr || *directory == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "the directory of the projector's configuration is empty");
    if (count < 0 || (count > 0 && embeddings == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the list of embeddings has %d items%s", directory, count,
                       embeddings == nullptr ? ", but is null" : "");
    for (int32_t i = 0; i < count; i++) MR_TRY(check(&embeddings[i], i, error));
    MR_TRY(mr_file_make_directories(directory, error));
    mr_arena arena = {0};
    output out = {&arena, ""};
    print_all(&out, checkpoint, embeddings, count);
    const char *path = mr_arena_printf(&arena, "%s/projector_config.pbtxt", directory);
    mr_status status = out.text != nullptr && path != nullptr
                           ? mr_file_write_all(path, out.text, strlen(out.text), error)
                           : mr_fail_memory(error, 1);
    mr_arena_deinit(&arena);
    return status;
}
