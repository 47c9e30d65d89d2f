/* Elements that the library fills, or that user functions fill for it. The array of such an element is kept from one
 * element to the next, so that in the steady state nothing is allocated. */
#ifndef MR_BASE_ELEMENT_H
#define MR_BASE_ELEMENT_H

#include <millrace/dataset.h>

/* Releases the tensors and keeps the array; an array that is borrowed is dropped. */
void mr_element_clear(mr_element *element);
/* Clears the element, and replaces its array if that has room for fewer than `capacity` tensors. Tensors of a new array
 * are empty. On an error the element is empty.
 * errors  MR_RESOURCE_EXHAUSTED */
mr_status mr_element_reserve(mr_element *element, int32_t capacity, mr_error *error);
/* For a user function: gives an element that is empty room for MR_COMPONENTS_MAX tensors. They are empty if the tensors
 * of earlier results were moved out or released by mr_element_clear_all. */
static inline mr_status mr_element_offer(mr_element *element, mr_error *error)
{
    return element->capacity >= MR_COMPONENTS_MAX ? MR_OK : mr_element_reserve(element, MR_COMPONENTS_MAX, error);
}
/* As mr_element_clear, and releases the tensors after `count` too: those of a user function that failed, or that set a
 * wrong count. */
void mr_element_clear_all(mr_element *element);

#endif
