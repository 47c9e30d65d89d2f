/* The image of a record: its bytes, class and file name, under the usual feature names of TensorFlow's datasets and of
 * tensorflow_datasets. */
#ifndef MR_TOOLS_TFRECORD_CAT_PICK_H
#define MR_TOOLS_TFRECORD_CAT_PICK_H

#include "common/query/tfds.h"
#include "common/query/view.h"
#include "tfrecord-cat/cat.h"

#include <millrace/image.h>

/* One value of a bytes feature. */
typedef struct bytes_value {
    const entry *entry; /* null: the record itself */
    uint64_t step;      /* in a feature list */
    uint64_t index;     /* in its list */
    mr_string bytes;
} bytes_value;

/* Passes every bytes value of entries that are not hidden to take, in order, until take returns false. */
typedef bool take_bytes_value(void *context, const bytes_value *value);
void image_select_values(const view *view, take_bytes_value *take, void *context);

/* The image format that the first bytes indicate; MR_IMAGE_UNKNOWN: not an image. */
mr_image_format image_select_format(mr_string bytes);
/* The main image among the features selected by --features: image/encoded, else image, else the largest in pixels, then
 * in bytes. Of a feature or list with several images, the first counts. False: there is none. */
bool image_select(const view *view, const options *options, bytes_value *image);

/* The entry of a name; if several have it, the effective one; null: none. */
const entry *image_select_entry(const view *view, const char *name);

/* Must not be moved: text may point to digits. */
typedef struct caption {
    mr_string text; /* class; points into the record, tfds or digits; empty: none */
    bool has_number;
    int64_t number;
    char digits[24];
    mr_string filename; /* as stored in the record; empty: none */
} caption;
/* tfds  may be null */
void image_select_caption(const view *view, const tfds *tfds, caption *caption);

#endif
