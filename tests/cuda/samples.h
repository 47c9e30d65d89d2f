/* Samples that compare every GPU kernel with the CPU's on the same random numbers: with the fake GPU in the tests, and
 * with a real GPU in the kit. */
#ifndef MR_TESTS_CUDA_SAMPLES_H
#define MR_TESTS_CUDA_SAMPLES_H

#include "base/device.h"
#include "base/kernel.h"

enum { SAMPLE_INPUTS_MAX = 24, SAMPLE_ATTRS_MAX = 8, SAMPLE_INTS_MAX = 8 };

typedef struct sample_input {
    mr_dtype dtype;
    mr_shape shape;
    double low, high;              /* range of uniform numbers; both 0: [-1, 1) for floats */
    int64_t ints[SAMPLE_INTS_MAX]; /* shapes and axes: used instead, if is_given */
    bool is_given;
} sample_input;

typedef struct sample_attr {
    const char *name; /* sorted by name */
    mr_attr_kind kind;
    bool is_list;
    int32_t count;
    int64_t ints[SAMPLE_INTS_MAX]; /* ints, types, bools */
    float number;
    const char *string;
} sample_attr;

typedef struct sample {
    const char *name; /* describes the variant */
    const char *op;
    int32_t input_count, output_count;
    sample_input inputs[SAMPLE_INPUTS_MAX];
    mr_dtype outputs[6];
    sample_attr attrs[SAMPLE_ATTRS_MAX];
    float tolerance;          /* relative to 1 + |expected|; 0: 1e-5 */
    uint32_t outputs_ignored; /* bit mask of outputs that may differ between the devices */
    bool reuses;              /* the first input may be overwritten */
} sample;

int32_t sample_count(void);
const sample *sample_at(int32_t index);

/* Runs the sample on both devices and compares the results.
 * errors  MR_NOT_FOUND: a device has no kernel; MR_DATA_LOSS: the results differ, with the position and both values */
mr_status sample_compare(const sample *sample, mr_device *cpu, mr_device *gpu, mr_error *error);

#endif
