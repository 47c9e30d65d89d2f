/* Masks: COCO's segmentation of an object as an image with one channel, 1 on the object and 0 elsewhere, as
 * TensorFlow's Object Detection API stores it in image/object/mask. */
#ifndef MR_TOOLS_TFRECORD_MAKE_MASK_H
#define MR_TOOLS_TFRECORD_MAKE_MASK_H

#include "tfrecord-make/boxes.h"

#include <jansson.h>

/* Fills mask[height * width], row by row, from polygons ("[[x, y, x, y, …], …]", of which the union is taken) or from
 * the runs of {"size": [height, width], "counts": […] or "text"}. A pixel belongs to a polygon under the same rule as
 * in COCO's own tools.
 * errors  MR_DATA_LOSS: no segmentation, an invalid one, or one of another size */
mr_status mask_fill(const json_t *segmentation, int64_t width, int64_t height, uint8_t *mask, mr_error *error);

/* Encodes the mask of an annotated image as PNG for the image of the facts, with the same rotation and resizing.
 * png  an MR_STRING scalar */
mr_status mask_encode(uint8_t *mask, const placing *placing, const image_facts *facts, mr_tensor *png, mr_error *error);

#endif
