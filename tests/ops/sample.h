/* Samples: a valid input for each operator. Different dimensions have different sizes where possible, so that a
 * mutation can change one of them consistently in all inputs. tests/ops/FAMILY.c has those of graph/ops/FAMILY.c:
 *
 *     SAMPLES({"Pad", "float[3,4]; int32[2,2]=1,1,2,2", ""}, {"MirrorPad", "float[3,4]; …", "mode=REFLECT"})
 *
 * A sample is text: arguments are separated by ";", the tensors of a list argument by "+".
 *     float[2,3]          numbers from a fixed pattern
 *     int32[2]=0,1        these values, repeated to fill the shape
 *     string[]=name       every element is this string; $DIR, $PNG, $JPEG, $GIF and $BMP are
 *                         expanded
 *     &float[3]           an initialized variable, by reference
 *     @float[3]           an initialized variable, by handle
 *     !resource[]         an iterator, by handle
 *     #resource[]=FIFOQueueV2   what that operator gives: a queue is closed, with three elements of float[2]
 *     #variant[]=RangeDataset   the numbers 0 to 4
 *     ^float[2,3]         a list of tensors: the rows; an empty one for a scalar
 *     ?float[2,3]         an optional with the tensor
 *     ~float[2,3]         a stack with the tensor
 *     %float[2,3]         an array of tensors: the rows; an empty one for a scalar */
#ifndef MR_TESTS_OPS_SAMPLE_H
#define MR_TESTS_OPS_SAMPLE_H

typedef struct hostile_sample {
    const char *op;
    const char *inputs;
    const char *attrs; /* "strides=1,1,1,1; padding=SAME" */
    const char
        *failure; /* part of the message if even a valid node must fail alone: nothing feeds or initializes it, or
                            it needs a loop */
} hostile_sample;

int hostile_sample_count(void);
const hostile_sample *hostile_sample_at(int index);

typedef struct hostile_sample_table {
    const hostile_sample *samples;
    int count;
    struct hostile_sample_table *next;
} hostile_sample_table;
void hostile_samples_register(hostile_sample_table *table);

/* Registers a file's samples before main. */
#define SAMPLES(...)                                                                                                   \
    [[gnu::constructor]] static void register_samples(void)                                                            \
    {                                                                                                                  \
        static const hostile_sample samples[] = {__VA_ARGS__};                                                         \
        static hostile_sample_table table = {.samples = samples, .count = sizeof samples / sizeof samples[0]};         \
        hostile_samples_register(&table);                                                                              \
    }

#endif
