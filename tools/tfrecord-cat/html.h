/* What --html makes:
 *
 *     DIR/index.html, view.css, view.js    the same for all records
 *     DIR/data/about.js                    about({…}): how many records, pages, classes
 *     DIR/data/page-000000.js              page(0, […]): 200 records
 *     DIR/data/search-000000.js            search(0, first, […]): what is searched of some thousands of records
 *     DIR/thumbs/00000/00000000.jpg        thumbnails, a thousand in a directory, by the record's number among the selected
 *     DIR/images/00000/00000000.jpg        the full images, as long as there is room for them
 *
 * Data is in scripts because a page that was opened from the disk may load those, and nothing else. index.html comes last,
 * so that a run that was ended has none. */
#ifndef MR_TOOLS_TFRECORD_CAT_HTML_H
#define MR_TOOLS_TFRECORD_CAT_HTML_H

#include "tools/tfrecord-cat/pick.h"

#define HTML_PAGE_RECORDS 200
#define THUMBNAIL_SIDE_MAX 320
#define THUMBNAIL_PATH_SIZE 64
/* Full images are stored in the order of the records up to these sizes, of one and of all. */
#define HTML_IMAGE_BYTES_MAX ((size_t)16 << 20)
#define HTML_IMAGES_BYTES_MAX ((uint64_t)1 << 30)

/* ---- thumbnail.c ---- */

typedef struct thumbnail {
    mr_image_info info; /* of the image, as far as it is known */
    int64_t width, height;
    mr_tensor jpeg; /* an MR_STRING scalar; empty when there is none */
    mr_error fault; /* why there is none, or what is wrong with it */
} thumbnail;

/* A JPEG of at most THUMBNAIL_SIDE_MAX pixels a side; small images keep their size. Of a damaged one what can be seen, with
 * the fault. What is transparent is on white.
 * threads  any */
void thumbnail_make(mr_string image, thumbnail *thumbnail);
void thumbnail_deinit(thumbnail *thumbnail);

/* ---- html_record.c ---- */

/* A JavaScript string, which may also stand in HTML's script element: quotes, <, >, &, controls, U+2028 and U+2029 escaped,
 * bytes that are no UTF-8 as U+FFFD, cut with "…" at that many bytes. */
void html_string(out *out, mr_string text, size_t max);
/* A record for page() and search(). */
typedef struct html_row {
    const options *options; /* --features of what is shown */
    const view *view;
    const place *place;
    int32_t file;
    const caption *caption;
    const tfds *tfds;           /* may be null */
    const bytes_value *image;   /* null: none */
    const thumbnail *thumbnail; /* zeros: none */
    const char *thumbnail_path; /* null: none */
} html_row;
/* An object without its closing brace: html.c may add where the full image is. */
void html_record(out *out, const html_row *row);
/* A list. */
void html_search(out *out, const html_row *row);
/* The class of each box, at most TOP_TEXT_MAX bytes, a byte with its length before each. */
void html_box_classes(out *out, const html_row *row);

/* ---- html_name.c ---- */

/* What the data set is called: by its directory's own words, or by what the names of its files have in common. */
void html_dataset_name(out *out, const options *options);

/* ---- html_clean.c ---- */

/* Removes the pages, thumbnails and images of an earlier run from its directory. */
mr_status html_clean(const char *directory, mr_error *error);

#endif
