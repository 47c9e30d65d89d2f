/* Numbers in the cells of CSV files. */
#ifndef MR_PIPELINE_SOURCES_CSV_NUMBER_H
#define MR_PIPELINE_SOURCES_CSV_NUMBER_H

#include <millrace/tensor.h>

/* Parses a cell as a float, double, int32 or int64 scalar.
 * errors  MR_INVALID_ARGUMENT, to follow the name of the cell: "\"x\" is not a valid int32" */
mr_status mr_csv_number(mr_string cell, mr_dtype dtype, mr_tensor *tensor, mr_error *error);

#endif
