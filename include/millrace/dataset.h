/* Datasets: input pipelines, as tf.data has them.
 *
 * ```c
 * mr_error error = {0};
 * mr_dataset *d = mr_dataset_range(0, 100, 1);
 * d = mr_dataset_shuffle(d, .seed = 7);
 * d = mr_dataset_batch(d, 32);
 * d = mr_dataset_prefetch(d, 2);
 * mr_iterator *iterator = nullptr;
 * if (mr_iterator_new(d, nullptr, &iterator, &error) != MR_OK) return 1;
 * mr_element element = {0};
 * mr_status status;
 * while ((status = mr_iterator_next(iterator, &element, &error)) == MR_OK)
 *     printf("%lld numbers\n", (long long)mr_tensor_count(&element.tensors[0]));
 * if (status != MR_OUT_OF_RANGE) fprintf(stderr, "%s\n", error.message);
 * mr_element_deinit(&element);
 * mr_iterator_free(iterator);
 * mr_dataset_free(d);
 * ```
 *
 * A dataset describes; an iterator runs. Each builder takes its input over (it is freed with the result) and returns a
 * new dataset. A dataset keeps its first error, as a graph does: later builders pass it on, mr_iterator_new reports it.
 *
 * Order is exact and random numbers are a function of (seed, epoch, element), so elements are the same at any number of
 * threads. A source with an index (records, slices, range) under shuffle, shard, repeat, take and skip permutes element
 * numbers before any byte is read: a whole shuffle costs no memory. */
#ifndef MILLRACE_DATASET_H
#define MILLRACE_DATASET_H

#include <millrace/example.h>
#include <millrace/image.h>
#include <millrace/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_dataset mr_dataset;
typedef struct mr_iterator mr_iterator;

/* The most components of an element. */
#define MR_COMPONENTS_MAX 32

/* What every element looks like: dtype and shape of each component. Shapes may have unknown sizes. */
typedef struct mr_element_spec {
    int32_t count;
    mr_dtype dtypes[MR_COMPONENTS_MAX];
    mr_shape shapes[MR_COMPONENTS_MAX];
    const char *names[MR_COMPONENTS_MAX]; /* borrowed from the dataset; null where there is none */
} mr_element_spec;

/* One element: owned tensors. {0} is the empty element; next fills it and gives back what it held. */
typedef struct mr_element {
    int32_t count;
    mr_tensor tensors[MR_COMPONENTS_MAX];
} mr_element;
void mr_element_deinit(mr_element *element);

#define MR_FOREVER (-1)

/* ---- Sources ---- */

mr_dataset *mr_dataset_range(int64_t start, int64_t stop, int64_t step);         /* int64 scalars */
mr_dataset *mr_dataset_from_tensors(const mr_tensor *components, int32_t count); /* one element */
mr_dataset *mr_dataset_from_slices(const mr_tensor *components, int32_t count);  /* rows along dimension 0 */

/* Serialised records (string scalars) of TFRecord files, in the order of the files. Files with an index, or plain
 * files, which are indexed by hopping over their headers, can be shuffled whole without memory.
 * pattern  a path, a glob ("train-*.tfrecord") or "name@16" for name-00000-of-00016 … ; matches are sorted by name */
mr_dataset *mr_dataset_records(const char *pattern);
mr_dataset *mr_dataset_record_files(const char *const *paths, int32_t count);

/* ---- Transformations ---- */

typedef struct mr_shuffle_options {
    int64_t buffer; /* elements; 0: all of them (needs a source with an index) */
    uint64_t seed;
    bool same_every_iteration; /* reshuffle_each_iteration = False */
} mr_shuffle_options;
mr_dataset *mr_dataset_shuffle_(mr_dataset *input, const mr_shuffle_options *options);
#define mr_dataset_shuffle(input, ...) mr_dataset_shuffle_((input), &(mr_shuffle_options){__VA_ARGS__})

mr_dataset *mr_dataset_repeat(mr_dataset *input, int64_t count); /* MR_FOREVER */
mr_dataset *mr_dataset_take(mr_dataset *input, int64_t count);   /* -1: all */
mr_dataset *mr_dataset_skip(mr_dataset *input, int64_t count);   /* -1: all */
mr_dataset *mr_dataset_shard(mr_dataset *input, int64_t count, int64_t index);
mr_dataset *mr_dataset_prefetch(mr_dataset *input, int32_t depth); /* elements; 0: tuned */

typedef struct mr_batch_options {
    bool drop_remainder;
} mr_batch_options;
mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *options);
#define mr_dataset_batch(input, size, ...) mr_dataset_batch_((input), (size), &(mr_batch_options){__VA_ARGS__})

/* A function from element to element. It runs on several threads at once, for several elements.
 * random  numbers of this element: the same whatever thread runs it, other ones in the next epoch
 * output  empty on entry; owned by the pipeline on return. output->tensors[i] may be taken from input by share */
typedef struct mr_random mr_random;
double mr_random_unit(mr_random *random);                           /* [0, 1) */
double mr_random_range(mr_random *random, double low, double high); /* [low, high) */
uint64_t mr_random_below(mr_random *random, uint64_t limit);        /* [0, limit), without bias; limit > 0 */
double mr_random_normal(mr_random *random);                         /* mean 0, deviation 1 */
typedef mr_status (*mr_map_function)(void *context, const mr_element *input, mr_random *random, mr_element *output,
                                     mr_error *error);
typedef struct mr_map_options {
    int32_t threads; /* elements worked on at once; 0: tuned */
    uint64_t seed;
    void (*release)(void *context); /* called when the dataset is freed; may be null */
} mr_map_options;
/* spec  what the function makes; copied */
mr_dataset *mr_dataset_map_(mr_dataset *input, mr_map_function function, void *context, const mr_element_spec *spec,
                            const mr_map_options *options);
#define mr_dataset_map(input, function, context, spec, ...)                                                            \
    mr_dataset_map_((input), (function), (context), (spec), &(mr_map_options){__VA_ARGS__})

/* Serialised Examples to their features: one component for each feature of the spec, in its order (see example.h).
 * Before batch it parses single records, after batch whole batches, as tf.io.parse_example does. */
mr_dataset *mr_dataset_parse_example(mr_dataset *input, const mr_feature *features, int32_t count);

/* Decodes component `component` (string scalars: JPEG or PNG) into pixels, as options say (see mr_image_options in
 * image.h): crop, resize, flip, normalise, layout and dtype in one pass, straight into the batch when batch follows. */
typedef struct mr_decode_options {
    int32_t component;
    int32_t threads; /* 0: tuned */
    uint64_t seed;   /* of crops and flips */
    mr_image_options image;
} mr_decode_options;
mr_dataset *mr_dataset_decode_image_(mr_dataset *input, const mr_decode_options *options);
#define mr_dataset_decode_image(input, ...) mr_dataset_decode_image_((input), &(mr_decode_options){__VA_ARGS__})

/* Another hold on the dataset; free gives one back. Null is allowed. */
mr_dataset *mr_dataset_ref(mr_dataset *dataset);
void mr_dataset_free(mr_dataset *dataset);
mr_status mr_dataset_status(const mr_dataset *dataset, mr_error *error);
const mr_element_spec *mr_dataset_spec(const mr_dataset *dataset);
/* Elements in all; MR_FOREVER; -2 when not known. */
#define MR_CARDINALITY_UNKNOWN (-2)
int64_t mr_dataset_cardinality(const mr_dataset *dataset);

/* ---- Iterators ---- */

typedef struct mr_iterator_options {
    int32_t threads;     /* of the pipeline, all stages together; 0: one for each usable processor */
    size_t budget_bytes; /* over all stages; 0: 1 GiB */
    uint64_t seed;       /* mixed into every stage's seed */
    /* Memory for batches; null: plain. A GPU gives memory here that it copies from without a stop. */
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
} mr_iterator_options;

/* errors  the dataset's first error */
mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                          mr_error *error);
void mr_iterator_free(mr_iterator *iterator); /* cancels, joins; null is allowed */

/* The next element. The caller owns it; its tensors go back to the pipeline for reuse when they are given back. What
 * element held is given back first.
 * errors   MR_OUT_OF_RANGE at the end, MR_CANCELLED after cancel, or a stage's error (which names stage, file, record).
 *          An element or batch that fails in its work is an error once, and the call after it goes on behind it; a source
 *          that cannot be read in order stays failed
 * threads  one caller at a time; cancel may be called from any */
mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error);
void mr_iterator_cancel(mr_iterator *iterator);

/* The place: everything that is needed to go on with the element after the last one delivered, bit for bit, in another
 * process and at another number of threads. Elements prefetched but not delivered are not counted. A restored iterator
 * takes over the seed of the one that was saved.
 * place   an MR_STRING scalar, owned by the caller
 * errors  restore: MR_INVALID_ARGUMENT when the place is damaged or of another pipeline */
mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *place, mr_error *error);
mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error);

/* Statistics of each stage, source first. */
typedef struct mr_stage_statistics {
    const char *stage; /* "records", "decode_image", …; static */
    uint64_t elements;
    uint64_t bytes;
    uint64_t busy_ns;        /* working, over all threads */
    uint64_t input_wait_ns;  /* waiting for the stage before */
    uint64_t output_wait_ns; /* waiting for the stage after */
    int32_t threads;
} mr_stage_statistics;
int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity);

#ifdef __cplusplus
}
#endif
#endif
