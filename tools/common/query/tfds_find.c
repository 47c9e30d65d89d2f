/* Lookup of a feature in the metadata of a tensorflow_datasets directory. */
#include "common/query/tfds.h"

#include <string.h>

const tfds_feature *tfds_find(const tfds *tfds, mr_string name)
{
    /* A sequence in a sequence is stored as two features of the record. */
    static const char ragged[] = "/ragged_flat_values";
    size_t size = name.size_bytes, ending = sizeof(ragged) - 1;
    if (size > ending && memcmp(name.data + size - ending, ragged, ending) == 0) size -= ending;
    for (size_t i = 0; tfds && i < tfds->feature_count; i++)
        if (mr_string_equal(mr_string_from(tfds->features[i].name), (mr_string){name.data, size}))
            return &tfds->features[i];
    return nullptr;
}

const char *tfds_label(const tfds_feature *feature, int64_t number)
{
    bool has_name = feature && number >= 0 && (uint64_t)number < feature->label_count;
    return has_name ? feature->labels[number] : nullptr;
}
