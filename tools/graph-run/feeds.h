/* --feeds: the values of each step, from a .npz. */
#ifndef MR_TOOLS_GRAPH_RUN_FEEDS_H
#define MR_TOOLS_GRAPH_RUN_FEEDS_H

#include <millrace/formats.h>
#include <millrace/session.h>

/* An array of the file. */
typedef struct feed_array {
    int32_t member; /* of the zip */
    int64_t step;   /* 0: each step */
    char *name;     /* of the output, without :0; owned */
} feed_array;

/* {0} is empty. Arrays are read when they are fed. */
typedef struct feeds {
    mr_input_file *file;
    mr_zip zip;
    feed_array *arrays; /* sorted by name, then by step */
    int32_t count;
    int64_t last_step; /* the largest number after @; 0: none */
} feeds;

mr_status feeds_open(feeds *f, const char *path, mr_error *error);
void feeds_close(feeds *f);
/* The index of the first array of each output; returns the index of the next one's, or count. */
int32_t feeds_next(const feeds *f, int32_t first);
/* Whether the output whose first array is that has a value in each of the steps.
 * errors  MR_INVALID_ARGUMENT */
mr_status feeds_check(const feeds *f, int32_t first, int64_t steps, mr_error *error);
/* Reads the value of the output whose first array is that, if it differs from that of the step before.
 * step    from 1
 * value   replaced
 * errors  MR_INVALID_ARGUMENT: no value for this step, or a dtype that is not converted (value_convert) */
mr_status feeds_read(const feeds *f, int32_t first, int64_t step, mr_dtype dtype, mr_tensor *value, mr_error *error);

#endif
