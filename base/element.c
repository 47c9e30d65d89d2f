/* Elements: the tensors of one element of a dataset or a queue. */
#include <millrace/dataset.h>

void mr_element_deinit(mr_element *element)
{
    for (int32_t i = 0; i < element->count && i < MR_COMPONENTS_MAX; i++) mr_tensor_deinit(&element->tensors[i]);
    element->count = 0;
}
