/* Encodings, scripts and cases of characters. */
#ifndef MR_KERNELS_UNICODE_H
#define MR_KERNELS_UNICODE_H

#include "kernels/text.h"

typedef struct mr_case_range {
    int32_t first, last, step, delta;
} mr_case_range;
typedef struct mr_case_special {
    int32_t character;
    int32_t to[3]; /* 0: fewer */
} mr_case_special;
typedef struct mr_character_range {
    int32_t first, last;
} mr_character_range;

/* unicode_tables.c; sorted by character. */
extern const uint32_t mr_unicode_scripts[];
extern const mr_case_range mr_unicode_lower[], mr_unicode_upper[];
extern const mr_case_special mr_unicode_upper_special[];
extern const mr_character_range mr_unicode_cased[], mr_unicode_ignorable[];
extern const int mr_unicode_script_count, mr_unicode_lower_count, mr_unicode_upper_count,
    mr_unicode_upper_special_count, mr_unicode_cased_count, mr_unicode_ignorable_count;

/* Appends the text in upper or lower case, up to its first zero byte as in TensorFlow. Malformed bytes become
 * U+FFFD. */
void mr_unicode_change_case(mr_string text, bool to_upper, mr_text_builder *result);

#endif
