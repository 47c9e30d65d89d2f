/* Specifications that parse every column of a schema, printed as a C header and as a Python module. */
#ifndef MR_TOOLS_TFRECORD_CAT_SCHEMA_SPEC_H
#define MR_TOOLS_TFRECORD_CAT_SCHEMA_SPEC_H

#include "common/stats/schema.h"

void schema_print_c(const schema *schema);
void schema_print_python(const schema *schema);

#endif
