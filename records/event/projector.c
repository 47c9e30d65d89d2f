/* projector_config.pbtxt: the configuration of TensorBoard's projector, in protobuf's text format. */
#include "base/arena.h"
#include "base/status.h"
#include "records/io/file.h"

#include <inttypes.h>
#include <millrace/events.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints `name: "text"`, with escapes; a null or empty text is left out. */
static void print_text(FILE *out, const char *indent, const char *name, const char *text)
{
    if (text == nullptr || *text == '\0') return;
    fprintf(out, "%s%s: \"", indent, name);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++)
        if (*c == '"' || *c == '\\' || *c == '\'')
            fprintf(out, "\\%c", *c);
        else if (*c == '\n')
            fputs("\\n", out);
        else if (*c < 0x20 || *c >= 0x7f)
            fprintf(out, "\\%03o", (unsigned)*c);
        else
            fputc(*c, out);
    fputs("\"\n", out);
}

static void print_sizes(FILE *out, const char *indent, const char *name, int64_t first, int64_t second)
{
    if (first > 0) fprintf(out, "%s%s: %" PRId64 "\n%s%s: %" PRId64 "\n", indent, name, first, indent, name, second);
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

static void print(FILE *out, const char *checkpoint, const mr_projector_embedding *embeddings, int32_t count)
{
    print_text(out, "", "model_checkpoint_path", checkpoint);
    for (int32_t i = 0; i < count; i++) {
        const mr_projector_embedding *e = &embeddings[i];
        fputs("embeddings {\n", out);
        print_text(out, "  ", "tensor_name", e->tensor_name);
        print_text(out, "  ", "metadata_path", e->metadata_path);
        print_text(out, "  ", "bookmarks_path", e->bookmarks_path);
        print_sizes(out, "  ", "tensor_shape", e->rows, e->columns);
        if (e->sprite_width > 0) {
            fputs("  sprite {\n", out);
            print_text(out, "    ", "image_path", e->sprite_path);
            print_sizes(out, "    ", "single_image_dim", e->sprite_width, e->sprite_height);
            fputs("  }\n", out);
        }
        print_text(out, "  ", "tensor_path", e->tensor_path);
        fputs("}\n", out);
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
    char *text = nullptr, *path = nullptr;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == nullptr) return mr_fail_memory(error, 1);
    print(out, checkpoint, embeddings, count);
    bool is_good = fclose(out) == 0 && asprintf(&path, "%s/projector_config.pbtxt", directory) >= 0;
    mr_status status = is_good ? mr_file_write_all(path, text, size, error) : mr_fail_memory(error, size);
    if (is_good) free(path);
    free(text);
    return status;
}
