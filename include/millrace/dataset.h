/* Datasets: input pipelines with the semantics of tf.data.
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
 * A dataset is a description; an iterator runs it. Each builder takes ownership of its input, which is freed with the
 * result, and returns a new dataset. A dataset keeps its first error: later builders pass it on, and mr_iterator_new
 * reports it.
 *
 * The order of elements is deterministic. Random numbers are a function of (seed, epoch, element), so elements are the
 * same at any number of threads. Shuffle, shard, repeat, take and skip over a source with an index (records, slices,
 * range) permute element numbers before any byte is read: a global shuffle costs no memory. */
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

/* Maximum number of components of an element. */
#define MR_COMPONENTS_MAX 32

/* The structure of an element: dtype and shape of each component. Shapes may have unknown sizes. */
typedef struct mr_element_spec {
    int32_t count;
    mr_dtype dtypes[MR_COMPONENTS_MAX];
    mr_shape shapes[MR_COMPONENTS_MAX];
    const char *names[MR_COMPONENTS_MAX]; /* borrowed from the dataset; null for a component without a name */
} mr_element_spec;

/* One element: the tensors of its components. {0} is the empty element. Copying the struct moves it.
 *
 * A function that delivers an element, such as mr_iterator_next, releases the previous tensors and stores new ones in
 * the same array. It allocates an array only if there is none or it is too small, before it takes the next element, so
 * that nothing is lost when that fails with MR_RESOURCE_EXHAUSTED. On an error, and at the end of a sequence, it
 * releases the array too, so that the element is {0}.
 *
 * An element that a user function fills (`output`, `next_state`) has room for MR_COMPONENTS_MAX components, all empty
 * unless the function's type says otherwise: set the first tensors and `count`, and leave the other fields as they
 * are.
 *
 * `mr_element view = {.count = 2, .tensors = pair}` borrows the array and its tensors, for functions that take a const
 * element: mr_element_deinit releases nothing of it. */
typedef struct mr_element {
    int32_t count;      /* number of components */
    int32_t capacity;   /* number of tensors that the array has room for; 0: the array is borrowed, or there is none */
    mr_tensor *tensors; /* the first `count` are owned; null if there is no array */
} mr_element;
/* Creates an element of `count` empty tensors for the caller to fill. The target is overwritten.
 * errors  MR_INVALID_ARGUMENT: count is below 0 or above MR_COMPONENTS_MAX; MR_RESOURCE_EXHAUSTED */
MR_API mr_status mr_element_init(mr_element *element, int32_t count, mr_error *error);
/* Releases the tensors and the array, and empties the struct. */
MR_API void mr_element_deinit(mr_element *element);
/* The tensor of a component; null if there is no such component. Borrowed. For programs that must not depend on the
 * size of mr_tensor. */
MR_API mr_tensor *mr_element_tensor(const mr_element *element, int32_t index);

/* A repeat count and a cardinality: without end. */
#define MR_INFINITE (-1)

/* Builders check their arguments. A null pointer where none is allowed, or a count, size or number of threads outside
 * its limits, or an option that has no effect, makes the result a dataset that has failed with MR_INVALID_ARGUMENT. A
 * null options pointer means the defaults.
 *
 * The results of user functions are checked too. Components that do not match the spec, tensors without elements in
 * memory, and shapes that are not fully known fail that element with MR_INVALID_ARGUMENT. */

/* ---- Sources ---- */

MR_API mr_dataset *mr_dataset_range(int64_t start, int64_t stop, int64_t step);         /* int64 scalars */
MR_API mr_dataset *mr_dataset_from_tensors(const mr_tensor *components, int32_t count); /* one element */
MR_API mr_dataset *mr_dataset_from_slices(const mr_tensor *components, int32_t count);  /* rows along dimension 0 */

/* The rows along dimension 0 of one sparse tensor of rank r: Dataset.from_sparse_tensor_slices. Elements have three
 * components, as parse_example gives them for MR_SPARSE: indices [n, r - 1], values [n] and dense shape [r - 1]. Rows
 * may be empty.
 * indices      int64 [n, r], r ≥ 1, ordered by row
 * values       [n]; referenced, like the indices, not copied
 * dense_shape  int64 [r]
 * errors       MR_INVALID_ARGUMENT for other shapes and dtypes, and for an index outside dense_shape (which TensorFlow
 *              drops or passes on); MR_UNIMPLEMENTED, as in TensorFlow, when the rows are not in order */
MR_API mr_dataset *mr_dataset_from_sparse_slices(const mr_tensor *indices, const mr_tensor *values,
                                                 const mr_tensor *dense_shape);

/* Serialized records (string scalars) of TFRecord files, file after file. Files with an index, and plain files, whose
 * headers are scanned to build one, can be shuffled globally without memory.
 * pattern  a path, a glob ("train-*.tfrecord") or "name@16" for name-00000-of-00016, …; matches are sorted by name */
MR_API mr_dataset *mr_dataset_records(const char *pattern);
MR_API mr_dataset *mr_dataset_record_files(const char *const *paths, int32_t count);

/* The sorted names of the files that match a pattern (string scalars). See mr_paths_match. */
MR_API mr_dataset *mr_dataset_list_files(const char *pattern);
/* A directory with one subdirectory of images for each class. Components: the file's bytes ("image/encoded"), the label
 * ("image/class/label", int64; classes are sorted by name) and the path ("image/filename"). Files are recognized as
 * JPEG and PNG by their names and sorted by path. Nothing is decoded; decode_image may follow. Files are opened lazily,
 * so a global shuffle of the directory costs nothing. */
MR_API mr_dataset *mr_dataset_image_directory(const char *path);
/* Fixed-length records (string scalars) of all files that match a pattern: tf.data.FixedLengthRecordDataset. GZIP files
 * are decompressed first.
 * header_bytes, footer_bytes  skipped at the start and at the end of each file
 * errors  MR_INVALID_ARGUMENT when the rest of a file is not a multiple of record_bytes */
typedef struct mr_fixed_length_options {
    size_t size; /* of this struct (api.h) */
    size_t header_bytes, footer_bytes;
} mr_fixed_length_options;
MR_API mr_dataset *mr_dataset_fixed_length_(const char *pattern, size_t record_bytes,
                                            const mr_fixed_length_options *options);
#define mr_dataset_fixed_length(pattern, record_bytes, ...)                                                            \
    MR_WITH_SIZE_(mr_dataset_fixed_length_((pattern), (record_bytes), &options_), mr_fixed_length_options, __VA_ARGS__)
/* Rows along dimension 0 of NumPy arrays: one component for each path, or, for an .npz, one for each of its arrays. */
MR_API mr_dataset *mr_dataset_npy(const char *const *paths, int32_t count);
/* Samples of webdataset tar files: consecutive members whose names are equal up to the first dot after the last slash.
 * One string component for each extension, then the sample's name ("__key__"). Headers are read when the dataset is
 * built, contents on demand, so the samples can be shuffled globally without memory.
 * extensions  "jpg", "cls", …; "jpg;jpeg;png" takes the first of these that a sample has. A sample that lacks one of
 *             the components is skipped */
MR_API mr_dataset *mr_dataset_tar(const char *pattern, const char *const *extensions, int32_t count);
/* Lines of text files (string scalars) without LF and without any CR: tf.data.TextLineDataset. GZIP files are
 * decompressed first.
 * limits  a line has at most MR_LINE_SIZE_MAX bytes; a longer one is an error */
#define MR_LINE_SIZE_MAX ((size_t)256 << 20)
MR_API mr_dataset *mr_dataset_text_lines(const char *pattern);
typedef struct mr_csv_column {
    int32_t index;                  /* of the column in the file, from 0; ascending */
    mr_dtype dtype;                 /* MR_FLOAT, MR_DOUBLE, MR_INT32, MR_INT64 or MR_STRING */
    const mr_tensor *default_value; /* for empty cells: a scalar of dtype; null: an empty cell is an error */
} mr_csv_column;
typedef struct mr_csv_options {
    size_t size;          /* of this struct (api.h) */
    bool has_header;      /* skip the first row of each file */
    char separator;       /* 0: comma */
    const char *na_value; /* a cell with this text counts as empty, too; null: only "" does */
    int32_t column_count; /* cells in every row; any other number is an error. 0: extra columns are ignored, as with
                             select_cols in tf.data, which otherwise requires all columns to be selected */
    bool no_quotes;       /* quotes are ordinary characters: use_quote_delim=False */
} mr_csv_options;
/* Rows of CSV files as tf.data's CsvDataset reads them: one scalar for each selected column. An empty line is a row of
 * one empty cell. A file without the header row that has_header requires is empty. A bad row is reported once and
 * skipped; a bad row whose end is hidden by a quote ends its file. */
MR_API mr_dataset *mr_dataset_csv_(const char *pattern, const mr_csv_column *columns, int32_t count,
                                   const mr_csv_options *options);
#define mr_dataset_csv(pattern, columns, count, ...)                                                                   \
    MR_WITH_SIZE_(mr_dataset_csv_((pattern), (columns), (count), &options_), mr_csv_options, __VA_ARGS__)

/* A source implemented by the program. The calls of one iteration are serialized, but come from any thread.
 * open   starts an iteration; *state is passed to next, skip and close. Null: state is null
 * next   fills output, which is empty on entry and owned by the pipeline on return. MR_OUT_OF_RANGE ends the iteration
 * skip   advances by count elements without producing them. Null: next is called and the elements are dropped
 * A saved state counts elements: restore calls open, then skip, so a generator must produce the same elements again. */
typedef struct mr_generator {
    mr_status (*open)(void *context, uint64_t iteration, void **state, mr_error *error);
    mr_status (*next)(void *context, void *state, mr_element *output, mr_error *error);
    mr_status (*skip)(void *context, void *state, uint64_t count, mr_error *error);
    void (*close)(void *context, void *state);
    void (*release)(void *context); /* called when the dataset is freed */
} mr_generator;
/* generator, spec  copied; only next is required */
MR_API mr_dataset *mr_dataset_generator(const mr_generator *generator, void *context, const mr_element_spec *spec);
/* An endless sequence of random int64 numbers below 2³², as tf.data's; a function of (seed, iteration, position). */
MR_API mr_dataset *mr_dataset_random(uint64_t seed);

/* ---- Transformations ---- */

typedef struct mr_shuffle_options {
    size_t size; /* of this struct (api.h) */
    /* Buffer size in elements; 0: the complete input, which must have an index. Element numbers are buffered where the
     * input has an index, otherwise elements, which count towards the iterator's budget. */
    int64_t buffer_size;
    uint64_t seed;
    bool reshuffle_each_iteration; /* default true */
} mr_shuffle_options;
#define MR_SHUFFLE_DEFAULTS .reshuffle_each_iteration = true
MR_API mr_dataset *mr_dataset_shuffle_(mr_dataset *input, const mr_shuffle_options *options);
#define mr_dataset_shuffle(input, ...)                                                                                 \
    MR_WITH_SIZE_(mr_dataset_shuffle_((input), &options_), mr_shuffle_options, MR_SHUFFLE_DEFAULTS, __VA_ARGS__)

/* A negative count means no limit, as in tf.data. */
MR_API mr_dataset *mr_dataset_repeat(mr_dataset *input, int64_t count); /* negative: indefinitely (MR_INFINITE) */
MR_API mr_dataset *mr_dataset_take(mr_dataset *input, int64_t count);   /* negative: all elements */
MR_API mr_dataset *mr_dataset_skip(mr_dataset *input, int64_t count);   /* negative: skip all elements */
MR_API mr_dataset *mr_dataset_shard(mr_dataset *input, int64_t count, int64_t index);
MR_API mr_dataset *mr_dataset_prefetch(mr_dataset *input, int32_t depth); /* elements; 0: tuned */

/* The last stage: elements are delivered on the device, `depth` of them ahead of the consumer, as with
 * tf.data.experimental.prefetch_to_device. For a GPU, batches are assembled in pinned memory and copied by a dedicated
 * thread and stream, concurrently with decoding and with the kernels of a step. Work that a session or
 * mr_tensor_to_host queues on the device after mr_iterator_next is ordered after the copy without a wait on the host.
 * Device memory that is returned while queued work still reads it is refilled only after that work. On the CPU this is
 * a prefetch.
 *
 * Elements that are copied but not delivered do not count as consumed. States and digests are the same with and without
 * this stage, and for any device. A session passes the batch to its kernels without a copy where they run on this
 * device.
 *
 * device  one of TensorFlow's names, "/gpu:0" or "/device:CPU:0" (device.h); open until the dataset is freed
 * depth   elements, 0 to 1024; 0: tuned on the CPU, 2 on a GPU. A GPU holds one more, and those that the program holds
 * memory  on the device, in addition to the budget, which counts host memory
 * limits  only options may follow: MR_INVALID_ARGUMENT. Strings stay in host memory. Host memory that is not pinned
 *         (padded, ragged and sparse batches, single elements of unknown size) is copied by the driver in pieces:
 *         slower, but still concurrent with everything else
 * errors  of the dataset: the device's. Of an element: no memory on the device, or a failed copy, reported once; the
 *         next call continues with the next element */
MR_API mr_dataset *mr_dataset_prefetch_to_device(mr_dataset *input, const char *device, int32_t depth);
/* The same without a thread: an element is copied when it is requested. A prefetch that follows turns it into
 * prefetch_to_device, as in tf.data. */
MR_API mr_dataset *mr_dataset_copy_to_device(mr_dataset *input, const char *device);

/* Options of a dataset, for the iterators that run it; 0 leaves an option unset. An iterator's own options take
 * precedence, then those of the dataset nearest to the end; of several inputs, the last one that sets the option. They
 * apply to the complete pipeline, except for options inside datasets that functions return.
 *
 * These are threading.private_threadpool_size and autotune.ram_budget of tf.data's Options. The others either belong to
 * the iterator here (tune) or have no meaning: the order is always deterministic, and no graph rewrite exists that
 * could be disabled. */
typedef struct mr_dataset_options {
    size_t size;         /* of this struct (api.h) */
    int32_t threads;     /* of the pipeline, all stages together: 1 to 1024 */
    size_t budget_bytes; /* of all stages */
    /* Identifies the behavior of the user functions up to this dataset. It is part of the digest that states, caches
     * and snapshots are checked against (see mr_dataset_cache). Change it whenever such a function, or data that it
     * uses, changes what it returns. Not passed on to iterators or to later datasets. 0: none */
    uint64_t version;
} mr_dataset_options;
MR_API mr_dataset *mr_dataset_with_options_(mr_dataset *input, const mr_dataset_options *options);
#define mr_dataset_with_options(input, ...)                                                                            \
    MR_WITH_SIZE_(mr_dataset_with_options_((input), &options_), mr_dataset_options, __VA_ARGS__)
/* The options that apply to its iterators. Borrowed from the dataset. */
MR_API const mr_dataset_options *mr_dataset_options_of(const mr_dataset *dataset);

/* A batch's number alone determines its elements: if one of them fails, the batch is that error, and the next batch
 * starts after this one's last element. (In tf.data the next batch starts after the element that failed.) */
typedef struct mr_batch_options {
    size_t size; /* of this struct (api.h) */
    bool drop_remainder;
} mr_batch_options;
MR_API mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *options);
#define mr_dataset_batch(input, size, ...)                                                                             \
    MR_WITH_SIZE_(mr_dataset_batch_((input), (size), &options_), mr_batch_options, __VA_ARGS__)

/* How the last step is filled when the data do not divide evenly. */
typedef enum mr_distribute_policy {
    MR_DISTRIBUTE_PAD = 0, /* with elements from the beginning */
    MR_DISTRIBUTE_DROP,    /* the last step is dropped */
    MR_DISTRIBUTE_MASK,    /* as PAD, and a last component "mask" (bool [batch]) is false for the padding */
} mr_distribute_policy;
/* One worker's part of every batch of global_batch elements: batches of global_batch / workers. All workers have the
 * same number of steps. The elements of a step are a function of (seed, epoch, step), so a saved state may be restored
 * on another number of workers without repeating or missing an element, provided that all workers restore the state of
 * the same step, and global_batch and the seeds are unchanged.
 * input  has an index, and a known or infinite length; the same on every worker */
MR_API mr_dataset *mr_dataset_distribute(mr_dataset *input, int64_t global_batch, int64_t workers, int64_t worker,
                                         mr_distribute_policy policy);

typedef struct mr_padded_batch_options {
    size_t size;                     /* of this struct (api.h) */
    const mr_shape *padded_shapes;   /* one for each component; -1: the longest of the batch. Null: pad every unknown
                                        size to the longest */
    const mr_tensor *padding_values; /* one scalar of its dtype for each component; null: 0 and "" */
    bool drop_remainder;
} mr_padded_batch_options;
/* A batch of elements of different sizes, padded. padded_shapes and padding_values are copied.
 * errors  MR_INVALID_ARGUMENT for the batch if an element is larger than padded_shapes; MR_RESOURCE_EXHAUSTED if the
 *         sizes of different elements combine to a batch that is larger than both the budget and 1 GiB */
MR_API mr_dataset *mr_dataset_padded_batch_(mr_dataset *input, int64_t size, const mr_padded_batch_options *options);
#define mr_dataset_padded_batch(input, size, ...)                                                                      \
    MR_WITH_SIZE_(mr_dataset_padded_batch_((input), (size), &options_), mr_padded_batch_options, __VA_ARGS__)

typedef struct mr_ragged_batch_options {
    size_t size; /* of this struct (api.h) */
    bool drop_remainder;
    mr_dtype row_splits_dtype; /* MR_INT64 or MR_INT32; 0: MR_INT64 */
} mr_ragged_batch_options;
/* A batch of elements of different sizes without padding: Dataset.ragged_batch, dense_to_ragged_batch. A component
 * whose last unknown size is in dimension d is replaced by d + 2 tensors: the values [n] + the sizes after d, then d +
 * 1 tensors of row splits, the outermost ([batch + 1]) first, as parse_example gives MR_RAGGED. Components whose sizes
 * are all known, or whose rank is unknown, are batched as by mr_dataset_batch.
 * errors  MR_INVALID_ARGUMENT for the batch if an element does not match the input's spec, or if row splits do not fit
 *         into int32; MR_RESOURCE_EXHAUSTED when the splits are larger than both the budget and 1 GiB */
MR_API mr_dataset *mr_dataset_dense_to_ragged_batch_(mr_dataset *input, int64_t size,
                                                     const mr_ragged_batch_options *options);
#define mr_dataset_dense_to_ragged_batch(input, size, ...)                                                             \
    MR_WITH_SIZE_(mr_dataset_dense_to_ragged_batch_((input), (size), &options_), mr_ragged_batch_options, __VA_ARGS__)
/* A batch of elements of different sizes as one sparse tensor of all their values, including zeros:
 * Dataset.sparse_batch, dense_to_sparse_batch. One component becomes indices [n, 1 + r], values [n] and the dense shape
 * [1 + r]: the number of elements, then row_shape.
 * row_shape  of rank r; -1: the longest of the batch
 * errors     MR_INVALID_ARGUMENT for the batch if an element has another rank; MR_DATA_LOSS, as in TensorFlow, if it is
 *            larger than row_shape; MR_RESOURCE_EXHAUSTED when the indices are larger than both the budget and 1 GiB */
MR_API mr_dataset *mr_dataset_dense_to_sparse_batch_(mr_dataset *input, int64_t size, mr_shape row_shape,
                                                     const mr_batch_options *options);
#define mr_dataset_dense_to_sparse_batch(input, size, row_shape, ...)                                                  \
    MR_WITH_SIZE_(mr_dataset_dense_to_sparse_batch_((input), (size), (row_shape), &options_), mr_batch_options,        \
                  __VA_ARGS__)

typedef struct mr_random mr_random;
MR_API double mr_random_unit(mr_random *random);                           /* [0, 1) */
MR_API double mr_random_range(mr_random *random, double low, double high); /* [low, high) */
MR_API uint64_t mr_random_below(mr_random *random, uint64_t limit); /* [0, limit), without bias; 0 if limit is 0 */
MR_API double mr_random_normal(mr_random *random);                  /* mean 0, standard deviation 1 */
/* Maps an element to an element. Called concurrently for different elements.
 * input   borrowed for the call. A tensor without a buffer points into the pipeline's memory: it may be returned as a
 *         result, but not kept elsewhere (see own_input)
 * random  generator of this element: the same sequence on any thread, another one in the next epoch
 * output  count is 0 on entry and set by the function. A numeric tensors[i] whose shape the spec knows points to memory
 *         for its elements (data, no buffer): fill it, and nothing is allocated or copied. Or overwrite it with an
 *         owned tensor, or a reference to an input. On return the pipeline owns the tensors */
typedef mr_status (*mr_map_function)(void *context, const mr_element *input, mr_random *random, mr_element *output,
                                     mr_error *error);
typedef struct mr_map_options {
    size_t size;                /* of this struct (api.h) */
    int32_t num_parallel_calls; /* 0: tuned */
    uint64_t seed;
    void (*release)(void *context); /* called when the dataset is freed; may be null */
    bool own_input; /* every tensor of input has its own buffer, so that references may be kept; the function may also
                       take a tensor over, and leaves {0} */
} mr_map_options;
/* spec  the structure of the results; copied */
MR_API mr_dataset *mr_dataset_map_(mr_dataset *input, mr_map_function function, void *context,
                                   const mr_element_spec *spec, const mr_map_options *options);
#define mr_dataset_map(input, function, context, spec, ...)                                                            \
    MR_WITH_SIZE_(mr_dataset_map_((input), (function), (context), (spec), &options_), mr_map_options, __VA_ARGS__)

/* ---- Filtering ---- */

/* Sets *keep to whether the element passes. Called concurrently for different elements; input is borrowed. */
typedef mr_status (*mr_predicate)(void *context, const mr_element *input, bool *keep, mr_error *error);
typedef struct mr_function_options {
    size_t size;                    /* of this struct (api.h) */
    int32_t num_parallel_calls;     /* filter only; 0: tuned */
    void (*release)(void *context); /* called when the dataset is freed; may be null */
} mr_function_options;
MR_API mr_dataset *mr_dataset_filter_(mr_dataset *input, mr_predicate predicate, void *context,
                                      const mr_function_options *options);
#define mr_dataset_filter(input, predicate, context, ...)                                                              \
    MR_WITH_SIZE_(mr_dataset_filter_((input), (predicate), (context), &options_), mr_function_options, __VA_ARGS__)
/* Ends before the first element that the predicate rejects. The predicate is called in order, one element at a time. */
MR_API mr_dataset *mr_dataset_take_while_(mr_dataset *input, mr_predicate predicate, void *context,
                                          const mr_function_options *options);
#define mr_dataset_take_while(input, predicate, context, ...)                                                          \
    MR_WITH_SIZE_(mr_dataset_take_while_((input), (predicate), (context), &options_), mr_function_options, __VA_ARGS__)

/* Returns whether an element that failed is skipped; if not, its error is delivered. error is borrowed. Called in
 * order, one failure at a time, by the thread that takes elements, with the pipeline's lock held: it must not call the
 * iterator. */
typedef bool (*mr_ignore_function)(void *context, const mr_error *error);
typedef struct mr_ignore_errors_options {
    size_t size;                /* of this struct (api.h) */
    int64_t errors_max;         /* elements (after batch: batches) that may fail in each iteration; 0: no limit */
    mr_ignore_function ignores; /* decides on each failure within the limit; null: all are skipped */
    void *context;              /* of ignores; must outlive the iterators */
} mr_ignore_errors_options;
/* Skips elements whose stages failed. The first failure beyond errors_max is delivered. An error that ends the input
 * permanently, such as a file that cannot be opened, still ends it: nothing is retried indefinitely. */
MR_API mr_dataset *mr_dataset_ignore_errors_(mr_dataset *input, const mr_ignore_errors_options *options);
#define mr_dataset_ignore_errors(input, ...)                                                                           \
    MR_WITH_SIZE_(mr_dataset_ignore_errors_((input), &options_), mr_ignore_errors_options, __VA_ARGS__)
/* ---- Several datasets as one ---- */

/* The components of all inputs side by side; as long as the shortest. Takes ownership of the inputs. */
MR_API mr_dataset *mr_dataset_zip(mr_dataset *const *inputs, int32_t count);
/* The elements of first, then those of second. Takes ownership of both, which have the same dtypes. Sizes that differ
 * become unknown. */
MR_API mr_dataset *mr_dataset_concatenate(mr_dataset *first, mr_dataset *second);
/* Inserts the element's number, counted from start, as component 0 (int64). An element whose number would exceed
 * INT64_MAX is MR_INVALID_ARGUMENT. */
MR_API mr_dataset *mr_dataset_enumerate(mr_dataset *input, int64_t start);

/* Creates a dataset from an element. input is borrowed for the call (its tensors may be referenced); output is owned by
 * the pipeline on return. Called in order, one call at a time. */
typedef mr_status (*mr_dataset_function)(void *context, const mr_element *input, mr_dataset **output, mr_error *error);
/* All elements of the first element's dataset, then those of the second's, and so on.
 * spec  the structure of the elements of these datasets; copied */
MR_API mr_dataset *mr_dataset_flat_map_(mr_dataset *input, mr_dataset_function function, void *context,
                                        const mr_element_spec *spec, const mr_function_options *options);
#define mr_dataset_flat_map(input, function, context, spec, ...)                                                       \
    MR_WITH_SIZE_(mr_dataset_flat_map_((input), (function), (context), (spec), &options_), mr_function_options,        \
                  __VA_ARGS__)
typedef struct mr_interleave_options {
    size_t size;          /* of this struct (api.h) */
    int64_t cycle_length; /* number of datasets that are open at the same time; 0: 16 */
    int64_t block_length; /* consecutive elements of one dataset; 0: 1 */
    bool parallel;        /* a thread for each open dataset reads ahead. The order is the same */
    void (*release)(void *context);
} mr_interleave_options;
/* block_length elements of each of cycle_length open datasets, round robin. A dataset that has ended is skipped, and
 * the next element's dataset takes its position when that comes around again. The order is deterministic, in parallel
 * too. */
MR_API mr_dataset *mr_dataset_interleave_(mr_dataset *input, mr_dataset_function function, void *context,
                                          const mr_element_spec *spec, const mr_interleave_options *options);
#define mr_dataset_interleave(input, function, context, spec, ...)                                                     \
    MR_WITH_SIZE_(mr_dataset_interleave_((input), (function), (context), (spec), &options_), mr_interleave_options,    \
                  __VA_ARGS__)

typedef struct mr_sample_options {
    size_t size;                /* of this struct (api.h) */
    uint64_t seed;              /* sample_from_datasets only */
    bool stop_on_empty_dataset; /* end with the first dataset that ends; default false. (In tf.data the default of
                                   choose_from_datasets is true.) */
} mr_sample_options;
/* Each element from one of the datasets, chosen at random. Takes ownership of the inputs, which have one structure.
 * weights  one for each dataset, not negative, with a finite sum; a dataset of weight 0 is never chosen; null: equal
 *          weights. When a dataset has ended, the weights of the others apply among themselves */
MR_API mr_dataset *mr_dataset_sample_from_datasets_(mr_dataset *const *inputs, const double *weights, int32_t count,
                                                    const mr_sample_options *options);
#define mr_dataset_sample_from_datasets(inputs, weights, count, ...)                                                   \
    MR_WITH_SIZE_(mr_dataset_sample_from_datasets_((inputs), (weights), (count), &options_), mr_sample_options,        \
                  __VA_ARGS__)
/* Each element from the dataset whose index is the next element of choices (int64 scalars). Takes ownership of all
 * inputs. The index of a dataset that has ended is skipped. */
MR_API mr_dataset *mr_dataset_choose_from_datasets_(mr_dataset *const *inputs, int32_t count, mr_dataset *choices,
                                                    const mr_sample_options *options);
#define mr_dataset_choose_from_datasets(inputs, count, choices, ...)                                                   \
    MR_WITH_SIZE_(mr_dataset_choose_from_datasets_((inputs), (count), (choices), &options_), mr_sample_options,        \
                  __VA_ARGS__)

/* ---- State from element to element ---- */

/* Computes the key, or class, of an element, which is borrowed. */
typedef mr_status (*mr_key_function)(void *context, const mr_element *input, int64_t *key, mr_error *error);

/* Computes the next state and an output from the state and an element. Called in order. state and input are borrowed;
 * next_state and output are empty on entry and owned by the pipeline on return. */
typedef mr_status (*mr_scan_function)(void *context, const mr_element *state, const mr_element *input,
                                      mr_element *next_state, mr_element *output, mr_error *error);
/* initial  the state before the first element of each iteration; its tensors are referenced. Dtypes are fixed, shapes
 *          may change
 * state    saved completely with the iterator's state: keep it small */
MR_API mr_dataset *mr_dataset_scan_(mr_dataset *input, const mr_element *initial, mr_scan_function function,
                                    void *context, const mr_element_spec *spec, const mr_function_options *options);
#define mr_dataset_scan(input, initial, function, context, spec, ...)                                                  \
    MR_WITH_SIZE_(mr_dataset_scan_((input), (initial), (function), (context), (spec), &options_), mr_function_options, \
                  __VA_ARGS__)
/* Computes the next state from the state and an element. */
typedef mr_status (*mr_reduce_function)(void *context, const mr_element *state, const mr_element *input,
                                        mr_element *next_state, mr_error *error);
/* Runs the dataset, which stays the caller's, to its end. state is the initial state on entry and the final one on
 * return; on an error it is the state after the last element that was reduced. */
MR_API mr_status mr_dataset_reduce(mr_dataset *dataset, mr_element *state, mr_reduce_function function, void *context,
                                   mr_error *error);
/* Drops elements (one scalar of int32, int64 or string) that have occurred before.
 * memory  holds every distinct element */
MR_API mr_dataset *mr_dataset_unique(mr_dataset *input);
/* The only element of a dataset, which stays the caller's: Dataset.get_single_element.
 * element  previous tensors are released; owned by the caller on return
 * errors   MR_INVALID_ARGUMENT when there is none or more than one; the dataset's own */
MR_API mr_status mr_dataset_get_single_element(mr_dataset *dataset, mr_element *element, mr_error *error);
/* The rows of dimension 0 of all components as elements. */
MR_API mr_dataset *mr_dataset_unbatch(mr_dataset *input);
/* Batches of another size: unbatch, then batch. */
MR_API mr_dataset *mr_dataset_rebatch_(mr_dataset *input, int64_t size, const mr_batch_options *options);
#define mr_dataset_rebatch(input, size, ...)                                                                           \
    MR_WITH_SIZE_(mr_dataset_rebatch_((input), (size), &options_), mr_batch_options, __VA_ARGS__)
/* Fails with MR_FAILED_PRECONDITION unless the input has exactly count elements. MR_INFINITE: fails if it ends. Other
 * negative counts are MR_INVALID_ARGUMENT. */
MR_API mr_dataset *mr_dataset_assert_cardinality(mr_dataset *input, int64_t count);

typedef struct mr_resample_options {
    size_t size;                /* of this struct (api.h) */
    const double *initial_dist; /* of the input, one part for each class; null: estimated while running */
    uint64_t seed;
    void (*release)(void *context);
} mr_resample_options;
/* Drops elements at random so that the classes are distributed as target_dist. Component 0 of the result is the class
 * (int64).
 * class_of     returns a class from 0 to class_count - 1
 * target_dist  class_count parts with a sum of 1; copied */
MR_API mr_dataset *mr_dataset_rejection_resample_(mr_dataset *input, mr_key_function class_of, void *context,
                                                  const double *target_dist, int32_t class_count,
                                                  const mr_resample_options *options);
#define mr_dataset_rejection_resample(input, class_of, context, target_dist, class_count, ...)                         \
    MR_WITH_SIZE_(                                                                                                     \
        mr_dataset_rejection_resample_((input), (class_of), (context), (target_dist), (class_count), &options_),       \
        mr_resample_options, __VA_ARGS__)

/* ---- Caching ---- */

/* Stores the elements of the first iteration; later iterations read them instead of the input.
 *
 * A cache file is valid for every iterator, in any process, whose input has the same digest: the kinds and settings of
 * all datasets before the cache and the contents of their sources. Names and times of files are not part of it, so a
 * copied data set has the same digest, and changed data or settings have another one. For large files the digest covers
 * the size and evenly spaced blocks. The code of user functions is represented by mr_dataset_options.version; the
 * iterator's seed is not part of the digest. The elements of list_files are paths, which are part of its digest.
 *
 * One iterator writes the file. Others that run at the same time, in this process or another, compute the elements and
 * do not wait. The file gets its final name when the first iteration is complete; a writer that dies leaves nothing
 * that blocks others. The cache of another input, and a damaged cache, are replaced, with a warning in the statistics.
 * path    null: in memory, limited by the iterator's budget. Otherwise the name of a record file (with index)
 * errors  MR_INVALID_ARGUMENT when path is an existing file that is not a cache; it is left unchanged */
MR_API mr_dataset *mr_dataset_cache(mr_dataset *input, const char *path);
typedef struct mr_dataset_snapshot_options {
    size_t size; /* of this struct (api.h) */
    bool gzip;   /* seekable GZIP */
} mr_dataset_snapshot_options;
/* A cache in a directory, in a file whose name is computed from the input's digest: a changed pipeline, or other data,
 * creates another file. */
MR_API mr_dataset *mr_dataset_snapshot_(mr_dataset *input, const char *directory,
                                        const mr_dataset_snapshot_options *options);
#define mr_dataset_snapshot(input, directory, ...)                                                                     \
    MR_WITH_SIZE_(mr_dataset_snapshot_((input), (directory), &options_), mr_dataset_snapshot_options, __VA_ARGS__)

/* ---- Windows and groups ---- */

/* Creates a dataset from the elements of one window. The function owns window; output is owned by the pipeline on
 * return. *output = window passes the window on unchanged, *output = mr_dataset_batch(window, …) makes it a batch.
 * Called in order, one call at a time. */
typedef mr_status (*mr_window_function)(void *context, mr_dataset *window, mr_dataset **output, mr_error *error);
typedef struct mr_window_options {
    size_t size;         /* of this struct (api.h) */
    int64_t window_size; /* elements of a window; required */
    int64_t shift;       /* from one window to the next, in elements of the input; 0: window_size */
    int64_t stride;      /* from one element of a window to the next; 0: 1 */
    bool drop_remainder;
    void (*release)(void *context);
} mr_window_options;
/* The elements of the datasets that function creates from each window, in order: tf.data's window().flat_map().
 * function  null: each window is one batch
 * spec      the structure of these elements; copied; may be null when function is
 * memory    the elements of one window */
MR_API mr_dataset *mr_dataset_window_(mr_dataset *input, mr_window_function function, void *context,
                                      const mr_element_spec *spec, const mr_window_options *options);
#define mr_dataset_window(input, function, context, spec, ...)                                                         \
    MR_WITH_SIZE_(mr_dataset_window_((input), (function), (context), (spec), &options_), mr_window_options, __VA_ARGS__)

/* As mr_window_function, for the elements of one key. */
typedef mr_status (*mr_group_function)(void *context, int64_t key, mr_dataset *window, mr_dataset **output,
                                       mr_error *error);
typedef struct mr_group_options {
    size_t size;                                             /* of this struct (api.h) */
    int64_t window_size;                                     /* number of elements of one key in a window */
    int64_t (*window_size_func)(void *context, int64_t key); /* or: depends on the key alone; null: window_size */
    void (*release)(void *context);
} mr_group_options;
/* Collects elements by key. When a key has a full window, the elements of the dataset that function creates from it
 * come next. At the end of the input the incomplete windows follow, ordered by key.
 * memory  at most one window for each key */
MR_API mr_dataset *mr_dataset_group_by_window_(mr_dataset *input, mr_key_function key, mr_group_function function,
                                               void *context, const mr_element_spec *spec,
                                               const mr_group_options *options);
#define mr_dataset_group_by_window(input, key, function, context, spec, ...)                                           \
    MR_WITH_SIZE_(mr_dataset_group_by_window_((input), (key), (function), (context), (spec), &options_),               \
                  mr_group_options, __VA_ARGS__)

typedef struct mr_bucket_options {
    size_t size;                     /* of this struct (api.h) */
    const mr_shape *padded_shapes;   /* as in mr_padded_batch_options */
    const mr_tensor *padding_values; /* as in mr_padded_batch_options */
    bool pad_to_bucket_boundary;     /* pad unknown sizes to the bucket's boundary - 1 instead of the longest element;
                                        elements must be shorter than the last boundary */
    bool no_padding;
    bool drop_remainder; /* drop batches of fewer than batch_sizes elements */
    void (*release)(void *context);
} mr_bucket_options;
/* Batches of elements of similar length: bucket b takes lengths from boundaries[b - 1] to boundaries[b] - 1.
 * length       returns the length of an element
 * boundaries   ascending; boundary_count of them
 * batch_sizes  boundary_count + 1 */
MR_API mr_dataset *mr_dataset_bucket_by_sequence_length_(mr_dataset *input, mr_key_function length, void *context,
                                                         const int64_t *boundaries, int32_t boundary_count,
                                                         const int64_t *batch_sizes, const mr_bucket_options *options);
#define mr_dataset_bucket_by_sequence_length(input, length, context, boundaries, boundary_count, batch_sizes, ...)     \
    MR_WITH_SIZE_(mr_dataset_bucket_by_sequence_length_((input), (length), (context), (boundaries), (boundary_count),  \
                                                        (batch_sizes), &options_),                                     \
                  mr_bucket_options, __VA_ARGS__)

/* Parses serialized Examples: one or more tensors for each feature, in the order of the features (example.h). Before
 * batch it parses single records, after batch complete batches, as tf.io.parse_example does. */
MR_API mr_dataset *mr_dataset_parse_example(mr_dataset *input, const mr_feature *features, int32_t count);
/* The same for SequenceExamples: the components of the context, then those of the feature lists. */
MR_API mr_dataset *mr_dataset_parse_sequence_example(mr_dataset *input, const mr_feature *context,
                                                     int32_t context_count, const mr_feature *lists,
                                                     int32_t list_count);

/* Decodes a component (string scalars: JPEG or PNG) to pixels as specified by mr_image_options (image.h): crop or pad,
 * resize, flip, change colors, normalize, layout and dtype in one pass, directly into the batch when batch follows.
 * Random choices depend on the seed, the epoch and the element alone.
 * errors  MR_INVALID_ARGUMENT for options that mr_image_check rejects, or a result of more than 100,000,000 pixels */
typedef struct mr_decode_options {
    size_t size; /* of this struct (api.h) */
    int32_t component;
    int32_t num_parallel_calls;    /* 0: tuned */
    uint64_t seed;                 /* of all random choices */
    const mr_image_options *image; /* copied; null: the defaults */
} mr_decode_options;
MR_API mr_dataset *mr_dataset_decode_image_(mr_dataset *input, const mr_decode_options *options);
#define mr_dataset_decode_image(input, ...)                                                                            \
    MR_WITH_SIZE_(mr_dataset_decode_image_((input), &options_), mr_decode_options, __VA_ARGS__)

/* Adds a reference; free releases one. Null is allowed. */
MR_API mr_dataset *mr_dataset_ref(mr_dataset *dataset);
MR_API void mr_dataset_free(mr_dataset *dataset);
MR_API mr_status mr_dataset_status(const mr_dataset *dataset, mr_error *error);
MR_API const mr_element_spec *mr_dataset_spec(const mr_dataset *dataset);
/* The number of elements, MR_INFINITE or MR_CARDINALITY_UNKNOWN, as in tf.data, but never more than is certain: an
 * infinite repetition is MR_INFINITE only if its input is known not to be empty, which tf.data does not check. */
#define MR_CARDINALITY_UNKNOWN (-2)
MR_API int64_t mr_dataset_cardinality(const mr_dataset *dataset);

/* ---- Iterators ---- */

/* The current activity of one thread of a pipeline, for the watchdog. */
typedef struct mr_thread_work {
    const char *stage; /* static; null: idle, waiting for work or for a free slot */
    bool is_waiting;   /* waits for an element of this stage, instead of processing one */
    uint64_t number;   /* of the element */
    uint64_t since_ns; /* duration so far; elements that take microseconds are not timed one by one */
    char where[200];   /* "flowers-00001.tfrecord: record 17", or "element 17" */
} mr_thread_work;
/* Called on a separate thread while the caller of mr_iterator_next waits. It may cancel the iterator, but not free it.
 * waited_ns  duration of the wait so far
 * threads    borrowed for the call; the first 256 of all stages, including nested pipelines */
typedef void (*mr_watchdog_function)(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count);

/* Whether threads, prefetch depths and read-ahead are tuned while the iterator runs, from measured waiting times.
 * Tuning never affects the elements. */
typedef enum mr_tune {
    MR_TUNE_AUTO, /* on if `threads` is 0 */
    MR_TUNE_ON,
    MR_TUNE_OFF,
} mr_tune;
/* Called inside mr_iterator_next for each decision of the tuner.
 * line  the change and its reason: "records+decode_image: 1 -> 2 threads: its caller waited 61 % of 0.10 s, 1 thread
 *       worked 98 % of it"; borrowed for the call */
typedef void (*mr_tuned_function)(void *context, const char *line);

typedef struct mr_iterator_options {
    size_t size; /* of this struct (api.h) */
    /* Threads of the pipeline, all stages together; the maximum when tuned. 0: one for each available processor. */
    int32_t threads;
    /* Tuned settings start with the values that the datasets specify (a prefetch depth; num_parallel_calls, which is
     * also their maximum) and change within threads and budget_bytes. */
    mr_tune tune;
    int32_t threads_first; /* initial number of threads when tuned, otherwise an error; 0: all */
    mr_tuned_function tuned;
    void *tuned_context;
    /* Limit on the memory that all stages together hold between calls. 0: half of the memory available to the process,
     * of which at most 1 GiB is for reading ahead. Elements that must be kept have priority: those of a cache, of
     * windows and groups, of a shuffle without an index, values of unique. A stage whose elements do not fit fails
     * permanently with MR_RESOURCE_EXHAUSTED; the message states what it requested and what the other stages hold. The
     * rest is for reading ahead (finished and unfinished batches, memory of the threads), which is reduced instead of
     * failing.
     *
     * The next element to deliver is always produced, even if it exceeds the budget. So more may be used while elements
     * are large: for each engine (a chain of stages up to one that keeps, chooses or mixes elements), the batch or
     * element that it delivers next, with its record and its decoder's memory. Memory held by others is not counted:
     * the caller's elements, the slices and file tables of datasets, memory of user functions. Queues have their own
     * limits. */
    size_t budget_bytes;
    uint64_t seed; /* combined with the seed of every stage */
    /* Allocator for batches; null: ordinary memory, or pinned memory before prefetch_to_device. */
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
    /* Calls watchdog when mr_iterator_next has waited this long, and again every watchdog_ns; 0: never. */
    uint64_t watchdog_ns;
    mr_watchdog_function watchdog;
    void *watchdog_context;
    /* File for a Chrome trace (chrome://tracing, ui.perfetto.dev), about 120 bytes for each task: a track for each
     * thread with its tasks and their rows, waiting as gaps; counters of slots in flight and ready. It ends with the
     * iterator or mr_iterator_trace_stop. Null: none */
    const char *trace_path;
    bool digest; /* compute mr_iterator_digest; costs a CRC of every byte delivered */
} mr_iterator_options;

/* errors  the dataset's first error */
MR_API mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                                 mr_error *error);
MR_API void mr_iterator_free(mr_iterator *iterator); /* cancels and joins; null is allowed */

/* An iterator for elements of a structure, without a dataset: Iterator.from_structure. Until mr_iterator_initialize,
 * every call fails with MR_FAILED_PRECONDITION.
 * spec    copied, without the names; sizes of -1 and shapes of unknown rank match any */
MR_API mr_status mr_iterator_new_from_spec(const mr_element_spec *spec, const mr_iterator_options *options,
                                           mr_iterator **iterator, mr_error *error);
/* Replaces what the iterator runs by the dataset, from its first element. Any iterator can be initialized any number of
 * times, with the same dataset or others. Options and seed stay; a digest restarts. Elements that the caller holds stay
 * valid.
 * dataset  referenced
 * errors   MR_INVALID_ARGUMENT when the number of components or a dtype differs, or a shape is incompatible with the
 *          iterator's; the dataset's first error; MR_CANCELLED after mr_iterator_cancel, which is permanent. On an
 *          error the iterator continues with what it ran before. Where the dataset's spec is less specific than the
 *          iterator's, an element of another shape is an error of mr_iterator_next, reported once
 * threads  as mr_iterator_next */
MR_API mr_status mr_iterator_initialize(mr_iterator *iterator, mr_dataset *dataset, mr_error *error);
/* The structure of its elements; names are null. Borrowed from the iterator. */
MR_API const mr_element_spec *mr_iterator_spec(const mr_iterator *iterator);

/* The next element. Previous tensors of element are released first. The caller owns the new ones, whose memory returns
 * to the pipeline for reuse when they are released. They are in host memory, or, after prefetch_to_device, on the
 * device.
 * errors   MR_OUT_OF_RANGE at the end, MR_CANCELLED after mr_iterator_cancel, or a stage's error, which names stage,
 *          file and record. An element or batch whose processing fails is an error once, and the next call continues
 *          with the next one; a source that cannot be read in order fails permanently. So do, until
 *          mr_iterator_initialize or mr_iterator_restore, stages that depend on earlier elements (batches of filtered
 *          elements, shuffle, scan, …) after MR_RESOURCE_EXHAUSTED
 * threads  one caller at a time, unless the iterator has a handle; cancel may be called from any thread */
MR_API mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error);
MR_API void mr_iterator_cancel(mr_iterator *iterator);

/* The state: everything that is needed to continue with the element after the last one delivered, bit for bit, in
 * another process and with another number of threads. Elements prefetched but not delivered are not counted. A restored
 * iterator takes over the seed of the saved one.
 *
 * A state belongs to the pipeline and the data that it was saved with, identified by the digest that mr_dataset_cache
 * describes. The first save or restore reads the sources for it: tensors completely, at memory speed, and up to about
 * 64 MiB of files. To restore, a source without an index (generator without skip, compressed records) and stages that
 * depend on earlier elements (unique) process the elements before the saved position one by one; mr_iterator_cancel
 * ends that.
 * state   an MR_STRING scalar; save: owned by the caller
 * errors  those of reading the sources; restore: MR_INVALID_ARGUMENT when the state is damaged, or belongs to another
 *         pipeline or other data */
MR_API mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *state, mr_error *error);
MR_API mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *state, mr_error *error);

/* ---- Iterators by handle ----
 *
 * A handle is a short string that names an iterator, as tf.data's string_handle: a step is fed with the handle of the
 * training or of the validation iterator, and each keeps its position. Handles may be copied and passed to other
 * threads freely: after the iterator is freed its handle is invalid permanently, and using it is an error.
 *
 * After the first call of mr_iterator_handle, calls of an iterator (next, initialize, save, restore, by handle or not)
 * may come from any thread at any time; they are serialized. mr_iterator_free cancels and waits for calls by handle;
 * the owner's own calls must have returned. A function inside a pipeline must not call its own iterator.
 *
 * handle  an MR_STRING scalar, owned by the caller
 * errors  MR_INVALID_ARGUMENT: not a handle, or the elements do not match spec; MR_NOT_FOUND: the iterator is freed, or
 *         belonged to another process; and those of the call without a handle */
MR_API mr_status mr_iterator_handle(mr_iterator *iterator, mr_tensor *handle, mr_error *error);
/* spec  the expected structure, compared as by mr_iterator_initialize before an element is taken; null: any */
MR_API mr_status mr_iterator_next_by_handle(const mr_tensor *handle, const mr_element_spec *spec, mr_element *element,
                                            mr_error *error);
MR_API mr_status mr_iterator_save_by_handle(const mr_tensor *handle, mr_tensor *state, mr_error *error);
MR_API mr_status mr_iterator_restore_by_handle(const mr_tensor *handle, const mr_tensor *state, mr_error *error);

/* A digest of everything delivered so far: of each element its number, dtypes, shapes and bytes; of each error
 * delivered instead of an element its status. Equal if the elements and their order are equal, at any number of
 * threads. Restarts on restore. 0 unless the option `digest` is set. */
MR_API uint64_t mr_iterator_digest(const mr_iterator *iterator);

/* Ends the trace. errors: MR_UNAVAILABLE when it could not be written completely */
MR_API mr_status mr_iterator_trace_stop(mr_iterator *iterator, mr_error *error);

/* The tuner's status. */
typedef struct mr_tuned {
    bool is_on, is_settled;
    uint64_t decisions; /* changes so far, including those that were reverted */
    char line[320];     /* the last change; empty if there was none */
} mr_tuned;
/* threads  as mr_iterator_next */
MR_API void mr_iterator_tuned(const mr_iterator *iterator, mr_tuned *tuned);

/* Size of a stage's warning, including its terminating zero. */
#define MR_WARNING_SIZE 400
/* Statistics of each stage, source first. */
typedef struct mr_stage_statistics {
    const char *stage; /* "records", "decode_image", …; static */
    uint64_t elements;
    uint64_t bytes;
    uint64_t busy_ns;        /* processing, summed over all threads */
    uint64_t input_wait_ns;  /* waiting for the previous stage */
    uint64_t output_wait_ns; /* waiting for the next stage */
    size_t held_bytes;       /* current share of budget_bytes: what the stage keeps, including nested pipelines; for the
                                last stage of an engine also what all its stages have read ahead and work with */
    int32_t threads;         /* currently working, over all stages of its engine */
    /* Of stages that deliver through slots (batches, or blocks of elements); 0 for others: */
    int32_t slots_max; /* current size of the window */
    double occupancy;  /* mean fraction of the window's slots, the delivered one excluded, that were ready when one was
                          delivered, 0 to 1. Near 0 the consumer waits for the pipeline, near 1 the pipeline waits for
                          the consumer */
    /* The first problem that the stage, or a nested one, worked around: "data.cache: the cache of another pipeline or
     * of other data; it is replaced". Empty without */
    char warning[MR_WARNING_SIZE];
} mr_stage_statistics;
MR_API int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity);
/* The same as a table for a live display: times in seconds, lines of at most `columns` (at least 60) characters; then a
 * line for each warning, which may be longer. Returns the length without the terminating zero, which may exceed the
 * capacity, as snprintf does. */
MR_API size_t mr_iterator_statistics_text(mr_iterator *iterator, int32_t columns, char *text, size_t capacity_bytes);

#ifdef __cplusplus
}
#endif
#endif
