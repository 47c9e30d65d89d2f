/* Images of any real dtype as floats. */
#ifndef MR_KERNELS_IMAGE_FLOATS_H
#define MR_KERNELS_IMAGE_FLOATS_H

#include "kernels/common.h"

/* The elements as floats: the tensor's own, or a copy in *owned, which the caller frees. */
mr_status mr_image_floats(const mr_kernel_call *call, const mr_tensor *images, const float **floats, float **owned,
                          mr_error *error);

#endif
