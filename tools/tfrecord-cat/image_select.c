/* See pick.h. */
#include "tfrecord-cat/image_select.h"
#include "common/query/patterns.h"

#include "common/query/values.h"

#include <inttypes.h>
#include <string.h>

static bool give_feature(const mr_feature_view *feature, bytes_value *at, take_bytes_value *take, void *context)
{
    if (feature->kind != MR_FEATURE_BYTES) return true;
    values values = values_of(feature);
    value value;
    for (at->index = 0; values_next(&values, &value); at->index++) {
        at->bytes = value.bytes;
        if (!take(context, at)) return false;
    }
    return true;
}

void image_select_values(const view *view, take_bytes_value *take, void *context)
{
    for (size_t i = 0; i < view->count; i++) {
        const entry *entry = &view->entries[i];
        bytes_value at = {.entry = entry};
        if (entry->is_hidden) continue;
        if (!entry->is_list) {
            if (!give_feature(&entry->feature, &at, take, context)) return;
            continue;
        }
        mr_feature_list_view list = entry->list;
        mr_feature_view step;
        for (; mr_feature_list_next(&list, &step, nullptr) == MR_OK; at.step++)
            if (!give_feature(&step, &at, take, context)) return;
    }
}

mr_image_format image_select_format(mr_string bytes)
{
    static const struct {
        const char *magic;
        size_t size;
        mr_image_format format;
    } magics[] = {{"\xff\xd8\xff", 3, MR_IMAGE_JPEG},
                  {"\x89PNG\r\n\x1a\n", 8, MR_IMAGE_PNG},
                  {"GIF87a", 6, MR_IMAGE_GIF},
                  {"GIF89a", 6, MR_IMAGE_GIF}};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (bytes.size_bytes >= magics[i].size && memcmp(bytes.data, magics[i].magic, magics[i].size) == 0)
            return magics[i].format;
    mr_image_info info = {0};
    mr_status status = mr_image_probe(bytes.data, bytes.size_bytes, &info, nullptr);
    return status == MR_OK || status == MR_UNIMPLEMENTED ? info.format : MR_IMAGE_UNKNOWN;
}

/* The best candidate so far. */
typedef struct choice {
    const options *options;
    const entry *seen; /* entry whose first image has been considered */
    bytes_value best;
    int rank; /* rank of its name */
    uint64_t pixels;
} choice;

static int rank_of(const entry *entry)
{
    if (entry->is_list) return 1;
    return mr_string_equal(entry->name, MR_STR("image/encoded")) ? 3
           : mr_string_equal(entry->name, MR_STR("image"))       ? 2
                                                                 : 1;
}

/* Compares by name, then by pixels, then by bytes; of equal candidates the first is kept. */
static bool take_candidate(void *context, const bytes_value *value)
{
    choice *choice = context;
    mr_image_info info = {0};
    int rank = rank_of(value->entry);
    if (choice->seen == value->entry || !patterns_select(choice->options->features, value->entry->name)) return true;
    if (rank < 3 && image_select_format(value->bytes) == MR_IMAGE_UNKNOWN) return true;
    choice->seen = value->entry;
    (void)mr_image_probe(value->bytes.data, value->bytes.size_bytes, &info, nullptr);
    uint64_t pixels = info.width > 0 && info.height > 0 ? (uint64_t)info.width * (uint64_t)info.height : 0;
    bool is_better =
        rank > choice->rank || (rank == choice->rank && pixels > choice->pixels) ||
        (rank == choice->rank && pixels == choice->pixels && value->bytes.size_bytes > choice->best.bytes.size_bytes);
    if (is_better) {
        choice->best = *value;
        choice->rank = rank;
        choice->pixels = pixels;
    }
    return rank < 3;
}

bool image_select(const view *view, const options *options, bytes_value *image)
{
    choice choice = {.options = options};
    image_select_values(view, take_candidate, &choice);
    *image = choice.best;
    return image->entry != nullptr;
}

const entry *image_select_entry(const view *view, const char *name)
{
    mr_string wanted = mr_string_from(name);
    for (size_t i = 0; i < view->count; i++)
        if (!view->entries[i].is_hidden && mr_string_equal(view->entries[i].name, wanted)) return &view->entries[i];
    return nullptr;
}

/* The first value of the first of these features that has one of the kind; null: none. names ends with null. */
static const entry *first_value(const view *view, const char *const *names, mr_feature_kind kind, value *value)
{
    for (; *names; names++) {
        const entry *entry = image_select_entry(view, *names);
        if (!entry || entry->is_list || entry->feature.kind != kind) continue;
        values values = values_of(&entry->feature);
        if (values_next(&values, value)) return entry;
    }
    return nullptr;
}

void image_select_caption(const view *view, const tfds *tfds, caption *caption)
{
    static const char *const texts[] = {"image/class/text", "label/text", "class/text", "label", "class", nullptr},
                             *const numbers[] = {"image/class/label", "label", "class", nullptr},
                             *const names[] = {"image/filename", "filename", "file_name", "__key__", nullptr};
    value value;
    *caption = (struct caption){};
    if (first_value(view, texts, MR_FEATURE_BYTES, &value)) caption->text = value.bytes;
    const entry *number = first_value(view, numbers, MR_FEATURE_INT64, &value);
    if (number) {
        caption->has_number = true;
        caption->number = value.integer;
        snprintf(caption->digits, sizeof(caption->digits), "%" PRId64, value.integer);
        const char *label = tfds ? tfds_label(tfds_find(tfds, number->name), value.integer) : nullptr;
        if (caption->text.size_bytes == 0) caption->text = mr_string_from(label ? label : caption->digits);
    }
    if (first_value(view, names, MR_FEATURE_BYTES, &value)) caption->filename = value.bytes;
}
