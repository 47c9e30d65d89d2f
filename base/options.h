/* Structs of options that start with their size, as a program passes them: <millrace/api.h> has the rules. */
#ifndef MR_BASE_OPTIONS_H
#define MR_BASE_OPTIONS_H

#include <millrace/status.h>

/* Copies the options that a public function was given into *options, whose type has this name and size. Null: all zero.
 * Members that the given struct lacks are zero. After an error *options has the members that could be read.
 * errors  MR_INVALID_ARGUMENT: the size is not set, or a member that the library does not know is not zero */
mr_status mr_options_read(void *options, size_t size, const void *given, const char *type, mr_error *error);
#define MR_OPTIONS_READ(type, options, given, error) mr_options_read((options), sizeof(type), (given), #type, (error))

#endif
