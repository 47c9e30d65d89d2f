/* What --html makes:
 *
 *     DIR/index.html, view.css, view.js    the same for all records
 *     DIR/data/about.js                    about({…}): how many records, pages, classes
 *     DIR/data/page-000000.js              page(0, […]): 200 records
 *     DIR/data/search-000000.js            search(0, first, […]): what is searched of some thousands of records
 *     DIR/thumbs/00000/00000000.jpg        thumbnails, a thousand in a folder, by the record's number among the selected
 *
 * Data is in scripts because a page that was opened from the disk may load those, and nothing else. index.html comes last,
 * so that a run that was ended has none. */
#ifndef MR_TOOLS_TFRECORD_CAT_HTML_H
#define MR_TOOLS_TFRECORD_CAT_HTML_H

#include "tools/tfrecord-cat/pick.h"

#define HTML_PAGE_RECORDS 200
#define THUMBNAIL_SIDE_MAX 320
#define THUMBNAIL_PATH_SIZE 64

/* ---- thumbnail.c ---- */

typedef struct thumbnail {
    mr_image_info info; /* of the picture, as far as it is known */
    int64_t width, height;
    mr_tensor jpeg; /* an MR_STRING scalar; empty when there is none */
    mr_error fault; /* why there is none, or what is wrong with it */
} thumbnail;

/* A JPEG of at most THUMBNAIL_SIDE_MAX pixels a side; small pictures keep their size. Of a damaged one what can be seen, with
 * the fault. What is transparent is on white.
 * threads  any */
void thumbnail_make(mr_string picture, thumbnail *thumbnail);
void thumbnail_deinit(thumbnail *thumbnail);

/* ---- html_record.c ---- */

/* A JavaScript string, which may also stand in HTML's script element: quotes, <, >, &, controls, U+2028 and U+2029 escaped,
 * bytes that are no UTF-8 as U+FFFD, cut with "…" at that many bytes. */
void html_string(out *out, mr_string text, size_t max);
/* A record as an object for page(), and as a list for search(). thumbnail_path: null for no thumbnail. */
void html_record(out *out, const options *options, const view *view, const place *place, int32_t file,
                 const caption *caption, const bytes_value *picture, const thumbnail *thumbnail,
                 const char *thumbnail_path);
void html_search(out *out, const view *view, uint64_t number, const caption *caption);

#endif
