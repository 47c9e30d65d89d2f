/* What a record says of its image: the bytes, the class, the file it came from. The usual names of TensorFlow's data sets
 * are known, and those of tensorflow_datasets. */
#ifndef MR_TOOLS_TFRECORD_CAT_PICK_H
#define MR_TOOLS_TFRECORD_CAT_PICK_H

#include "tools/tfrecord-cat/tfds.h"
#include "tools/tfrecord-cat/view.h"

#include <millrace/image.h>

/* One value of a bytes feature. */
typedef struct bytes_value {
    const entry *entry; /* null: the record itself */
    uint64_t step;      /* of a feature list */
    uint64_t index;     /* in its list */
    mr_string bytes;
} bytes_value;

/* Gives every bytes value of entries that are not hidden, in order, until take returns false. */
typedef bool take_bytes_value(void *context, const bytes_value *value);
void pick_values(const view *view, take_bytes_value *take, void *context);

/* What bytes begin like; MR_IMAGE_UNKNOWN: no image. */
mr_image_format pick_format(mr_string bytes);
/* The main image among the features that --features selects: image/encoded, else image, else the largest in pixels, then in
 * bytes. Of a feature or a list with several the first counts. False: there is none. */
bool pick_image(const view *view, const options *options, bytes_value *image);

/* The entry of a name that is meant; null: none. */
const entry *pick_entry(const view *view, const char *name);

/* Stays where it is: text may point to digits. */
typedef struct caption {
    mr_string text; /* of the class; into the record or tfds, or the number's digits; empty: none */
    bool has_number;
    int64_t number;
    char digits[24];
    mr_string filename; /* as it is in the record; empty: none */
} caption;
/* tfds  may be null */
void pick_caption(const view *view, const tfds *tfds, caption *caption);

#endif
