/* COCO's JSON of boxes, read value by value: the file is an object whose "images", "annotations" and "categories" are lists;
 * of these one element at a time is parsed, everything else is passed over. Memory: the largest element. */
#ifndef MR_TOOLS_TFRECORD_MAKE_COCO_H
#define MR_TOOLS_TFRECORD_MAKE_COCO_H

#include <millrace/formats.h>

typedef struct coco_image {
    int64_t id, width, height; /* width and height 0: not said */
    mr_string file_name;       /* borrowed for the call; without NUL */
} coco_image;

typedef struct coco_box {
    int64_t image, category;
    double x, y, width, height, area; /* finite; pixels */
    bool is_crowd;
} coco_box;

/* Called in the order of the file, where annotations may come before what they speak of. */
typedef struct coco_functions {
    mr_status (*image)(void *context, const coco_image *image, mr_error *error);
    mr_status (*box)(void *context, const coco_box *box, mr_error *error);
    mr_status (*no_box)(void *context, mr_error *error); /* an annotation without a box: a caption */
    mr_status (*category)(void *context, int64_t id, mr_string name, mr_error *error);
} coco_functions;
/* errors  MR_DATA_LOSS with the byte: no JSON; with the element: what it lacks */
mr_status coco_read(const mr_input_file *file, const coco_functions *functions, void *context, mr_error *error);

#endif
