/* Output of --html:
 *
 *     DIR/index.html, view.css, view.js    the same for all records
 *     DIR/data/about.js                    about({…}): number of records, pages, classes
 *     DIR/data/page-000000.js              page(0, […]): 200 records
 *     DIR/data/search-000000.js            search(0, first, […]): search texts of some thousands of records
 *     DIR/thumbs/00000/00000000.jpg        thumbnails, 1,000 a directory, by number among the selected records
 *     DIR/images/00000/00000000.jpg        full images, up to a size limit
 *
 * Data is in scripts because a page opened from disk may load scripts and nothing else. index.html is written last, so
 * an interrupted run leaves none. */
#ifndef MR_TOOLS_TFRECORD_CAT_HTML_H
#define MR_TOOLS_TFRECORD_CAT_HTML_H

#include "tfrecord-cat/image_select.h"

#define HTML_PAGE_RECORDS 200
#define THUMBNAIL_SIDE_MAX 320
#define THUMBNAIL_PATH_SIZE 64
/* Full images are stored in record order up to these sizes, per image and in total. */
#define HTML_IMAGE_BYTES_MAX ((size_t)16 << 20)
#define HTML_IMAGES_BYTES_MAX ((uint64_t)1 << 30)

/* ---- thumbnail.c ---- */

typedef struct thumbnail {
    mr_image_info info; /* of the image, as far as known */
    int64_t width, height;
    mr_tensor jpeg; /* an MR_STRING scalar; empty when there is none */
    mr_error fault; /* why there is no thumbnail, or what is wrong with the image */
} thumbnail;

/* A JPEG of at most THUMBNAIL_SIDE_MAX pixels a side; small images keep their size. For a damaged image, the part that
 * decodes, and the error. Transparent pixels are blended with white.
 * threads  any */
void thumbnail_make(mr_string image, thumbnail *thumbnail);
void thumbnail_deinit(thumbnail *thumbnail);

/* ---- html_record.c ---- */

/* Appends a JavaScript string that is also safe in an HTML script element: quotes, <, >, &, control characters, U+2028
 * and U+2029 are escaped, invalid UTF-8 becomes U+FFFD. Cut with "…" at max bytes. */
void html_string(out *out, mr_string text, size_t max);
/* A record for page() and search(). */
typedef struct html_row {
    const options *options; /* --features selects what is shown */
    const view *view;
    const record_position *position;
    int32_t file;
    const caption *caption;
    const tfds *tfds;           /* may be null */
    const bytes_value *image;   /* null: none */
    const thumbnail *thumbnail; /* zeroed: none */
    const char *thumbnail_path; /* null: none */
} html_row;
/* Appends an object without its closing brace, so that html.c can add the path of the full image. */
void html_record(out *out, const html_row *row);
/* Appends a list. */
void html_search(out *out, const html_row *row);
/* Appends the class of each box, at most TOP_TEXT_MAX bytes, each preceded by one byte with its length. */
void html_box_classes(out *out, const html_row *row);

/* ---- html_name.c ---- */

/* Appends the name of the dataset: from its directory's metadata, or the common part of its file names. */
void html_dataset_name(out *out, const options *options);

/* ---- html_clean.c ---- */

/* Removes the pages, thumbnails and images of an earlier run from its directory. */
mr_status html_clean(const char *directory, mr_error *error);

#endif
