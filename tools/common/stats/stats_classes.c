/* Class balance: the frequency of each label, with its text. A label with two texts counts as two classes, so that the
 * mistake is visible. */
#include "common/stats/stats.h"

#include <stdlib.h>
#include <string.h>

static const struct pair {
    const char *label, *text;
} pairs[STATS_CLASSES] = {{"image/class/label", "image/class/text"},
                          {"image/object/class/label", "image/object/class/text"},
                          {"label", "label/text"},
                          {"objects/label", "objects/label/text"}};

/* Number of values of one record for which no memory is allocated. */
static constexpr size_t FEW = 32;

const char *stats_classes_name(int index)
{
    return pairs[index].label;
}

void stats_class_view(class_views *views, const mr_feature_view *feature)
{
    /* Most names are none of these: the first letters suffice to see that. */
    if (feature->name.size_bytes < 5 || !strchr("ilo", feature->name.data[0])) return;
    for (int i = 0; i < STATS_CLASSES; i++) {
        if (mr_string_equal(feature->name, mr_string_from(pairs[i].label))) views->labels[i] = *feature;
        if (mr_string_equal(feature->name, mr_string_from(pairs[i].text))) views->texts[i] = *feature;
    }
}

static bool count_class(classes *classes, const int64_t *label, mr_string text)
{
    char key[TOP_TEXT_MAX];
    size_t size = 1;
    key[0] = label ? 'n' : 't';
    if (label) memcpy(key + 1, label, sizeof(*label)), size += sizeof(*label);
    size_t used = text.size_bytes < STATS_CLASS_TEXT_MAX ? text.size_bytes : STATS_CLASS_TEXT_MAX;
    if (used > 0) memcpy(key + size, text.data, used);
    classes->counts.is_text = true;
    classes->counts.limit = STATS_CLASSES_MAX;
    return top_add_text(&classes->counts, (mr_string){key, size + used}, 1);
}

/* The number of values of a view; 0 if it is of another kind. */
static size_t count_of(const mr_feature_view *view, mr_feature_kind kind)
{
    size_t count = 0;
    return view->kind == kind && mr_feature_count(view, &count, nullptr) == MR_OK ? count : 0;
}

/* The name of a label for which the record has no text. */
static mr_string name_of(const tfds_feature *meaning, const int64_t *label)
{
    const char *name = label ? tfds_label(meaning, *label) : nullptr;
    return name ? mr_string_from(name) : (mr_string){nullptr, 0};
}

static bool count_values(classes *classes, const mr_feature_view *label, const mr_feature_view *text,
                         const tfds_feature *meaning)
{
    int64_t few_labels[FEW], *labels = few_labels;
    mr_string few_texts[FEW], *texts = few_texts;
    size_t label_count = count_of(label, MR_FEATURE_INT64), text_count = count_of(text, MR_FEATURE_BYTES);
    if (label->kind == MR_FEATURE_BYTES && (text_count = count_of(label, MR_FEATURE_BYTES)) > 0) text = label;
    if (label_count > 0 && text_count != label_count) text_count = 0;
    size_t count = label_count > 0 ? label_count : text_count;
    if (count == 0) return true;
    if (count > FEW) {
        labels = malloc(count * sizeof(*labels));
        texts = malloc(count * sizeof(*texts));
    }
    bool is_done = labels && texts;
    if (is_done && label_count > 0) is_done = mr_feature_int64s(label, labels, count, nullptr) == MR_OK;
    if (is_done && text_count > 0) is_done = mr_feature_bytes(text, texts, count, nullptr) == MR_OK;
    for (size_t i = 0; i < count && is_done; i++)
        is_done = count_class(classes, label_count > 0 ? &labels[i] : nullptr,
                              text_count > 0 ? texts[i] : name_of(meaning, &labels[i]));
    if (count > FEW) free(labels), free(texts);
    classes->records++;
    return is_done;
}

bool stats_classes_add(stats *stats, const class_views *views, const tfds *tfds)
{
    for (int i = 0; i < STATS_CLASSES; i++)
        if (views->labels[i].kind != MR_FEATURE_NONE || views->texts[i].kind != MR_FEATURE_NONE)
            if (!count_values(&stats->classes[i], &views->labels[i], &views->texts[i],
                              tfds_find(tfds, mr_string_from(pairs[i].label))))
                return false;
    return true;
}

bool stats_classes_list(const classes *classes, balance_class **list, size_t *count)
{
    *count = 0;
    *list = nullptr;
    if (classes->counts.count == 0) return true;
    top_entry *entries = malloc(classes->counts.count * sizeof(*entries));
    *list = malloc(classes->counts.count * sizeof(**list));
    bool has_memory = entries && *list;
    if (has_memory) *count = top_list(&classes->counts, entries, classes->counts.count);
    for (size_t i = 0; i < *count; i++) {
        mr_string key = entries[i].text;
        balance_class *entry = &(*list)[i];
        size_t head = key.data[0] == 'n' ? 1 + sizeof(int64_t) : 1;
        *entry = (balance_class){.count = entries[i].count, .has_label = head > 1};
        if (entry->has_label) memcpy(&entry->label, key.data + 1, sizeof(entry->label));
        entry->text = (mr_string){key.data + head, key.size_bytes - head};
    }
    free(entries);
    return has_memory;
}
