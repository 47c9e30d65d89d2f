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

/* Builders check their arguments: a null pointer that is not allowed, a count, size or number of threads that cannot be is
 * the dataset's MR_INVALID_ARGUMENT; so is an option that has no effect, given the others. Null options are the defaults.
 *
 * What functions of the program return is checked too: components that are not as the spec says, without elements, or of a
 * shape that is not fully known are the element's MR_INVALID_ARGUMENT. */

/* ---- Sources ---- */

mr_dataset *mr_dataset_range(int64_t start, int64_t stop, int64_t step);         /* int64 scalars */
mr_dataset *mr_dataset_from_tensors(const mr_tensor *components, int32_t count); /* one element */
mr_dataset *mr_dataset_from_slices(const mr_tensor *components, int32_t count);  /* rows along dimension 0 */

/* The rows of one sparse tensor of rank r along dimension 0, as Dataset.from_sparse_tensor_slices: three components, indices
 * [n, r - 1], values [n] and dense shape [r - 1], as parse_example has them for MR_SPARSE. Any row may be empty.
 * indices      int64 [n, r], r ≥ 1, in the order of their rows
 * values       [n], shared like the indices, not copied
 * dense_shape  int64 [r]
 * errors       MR_INVALID_ARGUMENT for other shapes and dtypes, and for an index that is outside of dense_shape (which
 *              TensorFlow leaves out or hands on); MR_UNIMPLEMENTED, as there, when the rows are not in order */
mr_dataset *mr_dataset_from_sparse_slices(const mr_tensor *indices, const mr_tensor *values,
                                          const mr_tensor *dense_shape);

/* Serialised records (string scalars) of TFRecord files, in the order of the files. Files with an index, or plain
 * files, which are indexed by hopping over their headers, can be shuffled whole without memory.
 * pattern  a path, a glob ("train-*.tfrecord") or "name@16" for name-00000-of-00016 … ; matches are sorted by name */
mr_dataset *mr_dataset_records(const char *pattern);
mr_dataset *mr_dataset_record_files(const char *const *paths, int32_t count);

/* The names of the files that a pattern matches (string scalars), sorted. See mr_paths_match. */
mr_dataset *mr_dataset_list_files(const char *pattern);
/* A folder of pictures, a folder in it for each class: the file's bytes ("image/encoded"), the label ("image/class/label",
 * int64: classes sorted by name) and the path ("image/filename"). JPEG and PNG by their names; sorted by path. Nothing is
 * converted; decode_image follows. Files are read when they are asked for, so the folder is shuffled whole for nothing. */
mr_dataset *mr_dataset_picture_folder(const char *path);
/* Records of one length (string scalars) of all files of a pattern. Each file has header_bytes before them and
 * footer_bytes behind; what does not divide is an error. GZIP files are inflated first. */
typedef struct mr_fixed_length_options {
    size_t header_bytes, footer_bytes;
} mr_fixed_length_options;
mr_dataset *mr_dataset_fixed_length_(const char *pattern, size_t record_bytes, const mr_fixed_length_options *options);
#define mr_dataset_fixed_length(pattern, record_bytes, ...)                                                            \
    mr_dataset_fixed_length_((pattern), (record_bytes), &(mr_fixed_length_options){__VA_ARGS__})
/* Rows along dimension 0 of NumPy arrays, side by side: one component for each path; in an .npz one for each array. */
mr_dataset *mr_dataset_npy(const char *const *paths, int32_t count);
/* Samples of webdataset tars: members whose names are equal up to the first dot behind the last slash, one after the
 * other. One string component for each extension ("jpg", "cls", …; several as "jpg;jpeg;png": the first that is there),
 * and the sample's name last ("__key__"). A sample that lacks one is left out. Headers are read when the dataset is made,
 * bytes when they are asked for: the whole is shuffled without memory. */
mr_dataset *mr_dataset_tar(const char *pattern, const char *const *extensions, int32_t count);
/* Lines (string scalars) of text files, without their LF and without any CR, as tf.data's TextLineDataset. GZIP files are
 * inflated first.
 * errors  a line is at most MR_LINE_SIZE_MAX long */
#define MR_LINE_SIZE_MAX ((size_t)256 << 20)
mr_dataset *mr_dataset_text_lines(const char *pattern);
typedef struct mr_csv_column {
    int32_t index;             /* which of the file's columns, from 0, ascending */
    mr_dtype dtype;            /* MR_FLOAT, MR_DOUBLE, MR_INT32, MR_INT64 or MR_STRING */
    const mr_tensor *fallback; /* for empty cells: one value of that dtype; null: they are an error */
} mr_csv_column;
typedef struct mr_csv_options {
    bool has_header;      /* the first row of each file is passed over */
    char separator;       /* 0: a comma */
    const char *na_value; /* also taken as an empty cell; null: "" alone */
    int32_t cells;        /* of every row; another number is an error. 0: more than are asked for are let be, as with
                             select_cols in tf.data, where all have to be asked for otherwise */
    bool no_quotes;       /* quotes are characters as any other: use_quote_delim = False */
} mr_csv_options;
/* Rows of CSV files as tf.data's CsvDataset reads them: one scalar for each column that is asked for. A line without a
 * character is a row of one empty cell. A file without the row that has_header wants is empty. A bad row is an error once;
 * one whose end a quote hides is that of its file, too. */
mr_dataset *mr_dataset_csv_(const char *pattern, const mr_csv_column *columns, int32_t count,
                            const mr_csv_options *options);
#define mr_dataset_csv(pattern, columns, count, ...)                                                                   \
    mr_dataset_csv_((pattern), (columns), (count), &(mr_csv_options){__VA_ARGS__})

/* A source that the program feeds. All calls for one iteration come one after the other, from any thread.
 * open   begins an iteration; *state is handed to next and close. May be null: state is then null
 * next   fills output (empty on entry, owned by the pipeline on return). MR_OUT_OF_RANGE is the end
 * skip   moves on over count elements without making them; null: next is called and the elements are dropped
 * Saved places count elements: restore opens and skips, so a generator has to give the same elements again. */
typedef struct mr_generator {
    mr_status (*open)(void *context, uint64_t iteration, void **state, mr_error *error);
    mr_status (*next)(void *context, void *state, mr_element *output, mr_error *error);
    mr_status (*skip)(void *context, void *state, uint64_t count, mr_error *error);
    void (*close)(void *context, void *state);
    void (*release)(void *context); /* when the dataset is freed */
} mr_generator;
/* generator, spec  copied; next is needed, all else may be null */
mr_dataset *mr_dataset_generator(const mr_generator *generator, void *context, const mr_element_spec *spec);
/* Random int64 numbers without end, below 2³² as tf.data's. A function of (seed, iteration, position). */
mr_dataset *mr_dataset_random(uint64_t seed);

/* ---- Transformations ---- */

typedef struct mr_shuffle_options {
    /* Elements; 0: all of them (needs a source with an index). Numbers are held where there is an index, else elements:
     * of the iterator's budget. */
    int64_t buffer;
    uint64_t seed;
    bool same_every_iteration; /* reshuffle_each_iteration = False */
} mr_shuffle_options;
mr_dataset *mr_dataset_shuffle_(mr_dataset *input, const mr_shuffle_options *options);
#define mr_dataset_shuffle(input, ...) mr_dataset_shuffle_((input), &(mr_shuffle_options){__VA_ARGS__})

/* A negative count stands for the number of elements or passes without limit, as in tf.data. */
mr_dataset *mr_dataset_repeat(mr_dataset *input, int64_t count); /* negative: MR_FOREVER */
mr_dataset *mr_dataset_take(mr_dataset *input, int64_t count);   /* negative: all elements */
mr_dataset *mr_dataset_skip(mr_dataset *input, int64_t count);   /* negative: skips all elements */
mr_dataset *mr_dataset_shard(mr_dataset *input, int64_t count, int64_t index);
mr_dataset *mr_dataset_prefetch(mr_dataset *input, int32_t depth); /* elements; 0: tuned */

/* The last stage: elements come out on the device, and `depth` of them are there before they are asked for, as with
 * tf.data.experimental.prefetch_to_device. On a GPU batches are made in pinned memory and copied by a thread and a stream
 * of their own, beside decoding and beside the kernels of a step; what is queued on the device after mr_iterator_next, by a
 * session or by mr_tensor_to_host, comes after the copy, without anybody waiting for it; and memory that is given back
 * while queued work still reads it is filled again behind that work. On the CPU it is a prefetch.
 *
 * Elements that are copied but not handed out are not counted as consumed. Places are the same with it and without, also
 * on another device; so are digests. In a session the batch goes to the kernels as it is where they run on this device.
 *
 * device  one of TensorFlow's names, "/gpu:0" or "/device:CPU:0" (device.h); held until the dataset is freed
 * depth   elements, 0 to 1024; 0: tuned on the CPU, 2 on a GPU. A GPU holds one more, and those that the program does
 * memory  on the device beside the budget, which counts what is on the host
 * limits  nothing but options may follow: MR_INVALID_ARGUMENT. Strings stay in host memory. From host memory that is not
 *         pinned (padded, ragged and sparse batches, single elements of unknown size) the driver copies in pieces: slower,
 *         and still beside everything else
 * errors  of the dataset: the device's. Of an element: no memory on the device, or a copy that failed, once; the next call
 *         goes on behind it */
mr_dataset *mr_dataset_prefetch_to_device(mr_dataset *input, const char *device, int32_t depth);
/* The same without a thread: an element is copied when it is asked for. prefetch may follow, and makes
 * prefetch_to_device of it, as in tf.data. */
mr_dataset *mr_dataset_copy_to_device(mr_dataset *input, const char *device);

/* What a dataset asks of the iterators that run it: 0 says nothing. An iterator's own options come first, then those of the
 * dataset nearest to the end; of several inputs the last one that says something. They hold for the whole pipeline, but not
 * from inside the datasets that functions make.
 *
 * Of tf.data's Options these are threading.private_threadpool_size and autotune.ram_budget. The others have no meaning
 * here, or are the iterator's (tune): the order is always deterministic, and nothing is rewritten that could be switched
 * off. */
typedef struct mr_dataset_options {
    int32_t threads;     /* of the pipeline, all stages together: 1 to 1024 */
    size_t budget_bytes; /* over all stages */
    /* Identifies what functions of the user below this dataset do: part of the digest that a state, a cache and a snapshot
     * are checked against (see cache). Change it whenever such a function, or the data that it uses, changes what it
     * returns. It is not passed on to iterators or to later datasets. 0: none */
    uint64_t version;
} mr_dataset_options;
mr_dataset *mr_dataset_with_options_(mr_dataset *input, const mr_dataset_options *options);
#define mr_dataset_with_options(input, ...) mr_dataset_with_options_((input), &(mr_dataset_options){__VA_ARGS__})
/* What its iterators get, where they say nothing themselves. Borrowed from the dataset */
const mr_dataset_options *mr_dataset_options_of(const mr_dataset *dataset);

/* Which elements a batch has follows from its number alone: where one of them fails the batch is that error, and the next
 * begins behind it. (In tf.data the next batch begins behind the element that failed.) */
typedef struct mr_batch_options {
    bool drop_remainder;
} mr_batch_options;
mr_dataset *mr_dataset_batch_(mr_dataset *input, int64_t size, const mr_batch_options *options);
#define mr_dataset_batch(input, size, ...) mr_dataset_batch_((input), (size), &(mr_batch_options){__VA_ARGS__})

/* What makes the last step whole, when the data do not divide. */
typedef enum mr_distribute_policy {
    MR_DISTRIBUTE_PAD = 0, /* elements from the beginning */
    MR_DISTRIBUTE_DROP,    /* the last step is left out */
    MR_DISTRIBUTE_MASK,    /* as PAD, and a last component "mask" (bool [batch]) is false for those */
} mr_distribute_policy;
/* One worker's part of every batch of global_batch elements: batches of global_batch / workers. All workers have equally
 * many steps. A step's elements follow from (seed, epoch, step) alone: a saved place may be restored on another number of
 * workers, with nothing seen twice or missed, as long as all of them restore the place of the same step and global_batch
 * and the seeds stay.
 * input  of known length, or endless, and with an index; the same on every worker */
mr_dataset *mr_dataset_distribute(mr_dataset *input, int64_t global_batch, int64_t workers, int64_t worker,
                                  mr_distribute_policy policy);

typedef struct mr_padded_batch_options {
    const mr_shape *shapes;  /* to pad to, one for each component: -1 is the longest of the batch. null: every size that
                                is not known is padded to the longest */
    const mr_tensor *values; /* to pad with: one scalar of its dtype for each component; null: 0 and "" */
    bool drop_remainder;
} mr_padded_batch_options;
/* A batch of elements whose sizes differ. shapes and values are copied.
 * errors  MR_INVALID_ARGUMENT for the batch if an element is larger than `shapes`; MR_RESOURCE_EXHAUSTED if sizes of
 *         several elements make a batch that is larger than the budget and than 1 GiB */
mr_dataset *mr_dataset_padded_batch_(mr_dataset *input, int64_t size, const mr_padded_batch_options *options);
#define mr_dataset_padded_batch(input, size, ...)                                                                      \
    mr_dataset_padded_batch_((input), (size), &(mr_padded_batch_options){__VA_ARGS__})

typedef struct mr_ragged_batch_options {
    bool drop_remainder;
    mr_dtype splits_dtype; /* MR_INT64 or MR_INT32; 0: MR_INT64 */
} mr_ragged_batch_options;
/* A batch of elements whose sizes differ, without padding: Dataset.ragged_batch, dense_to_ragged_batch. A component whose last
 * unknown size is in dimension d becomes, in its place, the values [n] + the sizes behind d and d + 1 tensors of row splits,
 * the outermost ([batch + 1]) first: as parse_example gives MR_RAGGED. Components whose sizes are all known, or not even
 * their number, are batched as by mr_dataset_batch.
 * errors  an element that is not of the input's spec is its batch's MR_INVALID_ARGUMENT; splits that do not fit into int32
 *         too; MR_RESOURCE_EXHAUSTED when the splits are larger than the budget and than 1 GiB */
mr_dataset *mr_dataset_dense_to_ragged_batch_(mr_dataset *input, int64_t size, const mr_ragged_batch_options *options);
#define mr_dataset_dense_to_ragged_batch(input, size, ...)                                                             \
    mr_dataset_dense_to_ragged_batch_((input), (size), &(mr_ragged_batch_options){__VA_ARGS__})
/* A batch of elements whose sizes differ as one sparse tensor that has all their values, zeros too: Dataset.sparse_batch,
 * dense_to_sparse_batch. From one component come indices [n, 1 + r], values [n] and dense shape [1 + r]: elements in the
 * batch, then row_shape.
 * row_shape  of rank r; -1 is the longest of the batch
 * errors     an element of another rank is its batch's MR_INVALID_ARGUMENT, one that is larger MR_DATA_LOSS, as in TensorFlow;
 *            MR_RESOURCE_EXHAUSTED when the indices are larger than the budget and than 1 GiB */
mr_dataset *mr_dataset_dense_to_sparse_batch_(mr_dataset *input, int64_t size, mr_shape row_shape,
                                              const mr_batch_options *options);
#define mr_dataset_dense_to_sparse_batch(input, size, row_shape, ...)                                                  \
    mr_dataset_dense_to_sparse_batch_((input), (size), (row_shape), &(mr_batch_options){__VA_ARGS__})

/* A function from element to element. It runs on several threads at once, for several elements.
 * input   lent for the call. A tensor of it without a buffer lies where the pipeline has it: a share of it may be passed
 *         on as a result, but not kept elsewhere (see own_input)
 * random  numbers of this element: the same whatever thread runs it, other ones in the next epoch
 * output  count is 0 on entry, and set by the function. tensors[i] of numbers whose shape the spec knows comes with room
 *         for them (data, no buffer) to be filled: nothing is allocated or copied then. Or it may be overwritten with a
 *         tensor of its own, or a share of an input; what is there on return is owned by the pipeline */
typedef struct mr_random mr_random;
double mr_random_unit(mr_random *random);                           /* [0, 1) */
double mr_random_range(mr_random *random, double low, double high); /* [low, high) */
uint64_t mr_random_below(mr_random *random, uint64_t limit);        /* [0, limit), without bias; 0 if limit is 0 */
double mr_random_normal(mr_random *random);                         /* mean 0, deviation 1 */
typedef mr_status (*mr_map_function)(void *context, const mr_element *input, mr_random *random, mr_element *output,
                                     mr_error *error);
typedef struct mr_map_options {
    int32_t threads; /* elements worked on at once; 0: tuned */
    uint64_t seed;
    void (*release)(void *context); /* called when the dataset is freed; may be null */
    bool own_input;                 /* every tensor of input has a buffer of its own, of which shares may be kept */
} mr_map_options;
/* spec  what the function makes; copied */
mr_dataset *mr_dataset_map_(mr_dataset *input, mr_map_function function, void *context, const mr_element_spec *spec,
                            const mr_map_options *options);
#define mr_dataset_map(input, function, context, spec, ...)                                                            \
    mr_dataset_map_((input), (function), (context), (spec), &(mr_map_options){__VA_ARGS__})

/* ---- What lets elements fall ---- */

/* Whether an element stays. It runs on several threads at once; input is borrowed. */
typedef mr_status (*mr_predicate)(void *context, const mr_element *input, bool *stays, mr_error *error);
typedef struct mr_function_options {
    int32_t threads;                /* filter: elements worked on at once; 0: tuned */
    void (*release)(void *context); /* called when the dataset is freed; may be null */
} mr_function_options;
mr_dataset *mr_dataset_filter_(mr_dataset *input, mr_predicate predicate, void *context,
                               const mr_function_options *options);
#define mr_dataset_filter(input, predicate, context, ...)                                                              \
    mr_dataset_filter_((input), (predicate), (context), &(mr_function_options){__VA_ARGS__})
/* Ends before the first element that does not stay. The predicate is asked for one element at a time, in order. */
mr_dataset *mr_dataset_take_while_(mr_dataset *input, mr_predicate predicate, void *context,
                                   const mr_function_options *options);
#define mr_dataset_take_while(input, predicate, context, ...)                                                          \
    mr_dataset_take_while_((input), (predicate), (context), &(mr_function_options){__VA_ARGS__})

/* Whether an element that failed is skipped; false: its error is delivered. error is borrowed. Called for one failure at a
 * time, in order, by the thread that takes elements and with the pipeline's lock held: it must not call the iterator. */
typedef bool (*mr_ignore_function)(void *context, const mr_error *error);
typedef struct mr_ignore_errors_options {
    int64_t budget;             /* so many elements (batches, after batch) may fail in each iteration; 0: any number */
    mr_ignore_function ignores; /* decides on each failure within the budget; null: all are skipped */
    void *context;              /* of ignores; must outlive the iterators */
} mr_ignore_errors_options;
/* Elements that fail before it are left out. One more than the budget is the error again. What ends its input for good,
 * a file that cannot be opened say, still ends it: nothing is tried for ever. */
mr_dataset *mr_dataset_ignore_errors_(mr_dataset *input, const mr_ignore_errors_options *options);
#define mr_dataset_ignore_errors(input, ...)                                                                           \
    mr_dataset_ignore_errors_((input), &(mr_ignore_errors_options){__VA_ARGS__})

/* ---- Several datasets as one ---- */

/* Components side by side; as long as the shortest. The inputs are taken over. */
mr_dataset *mr_dataset_zip(mr_dataset *const *inputs, int32_t count);
/* All of first, then all of second: both taken over, of the same dtypes. Shapes that differ become unknown. */
mr_dataset *mr_dataset_concatenate(mr_dataset *first, mr_dataset *second);
/* The element's number, from start on, as a first component (int64). Wraps behind INT64_MAX. */
mr_dataset *mr_dataset_enumerate(mr_dataset *input, int64_t start);

/* A dataset for an element; input is borrowed for the call (its tensors may be shared), output is owned by the pipeline
 * on return. One call at a time, in order. */
typedef mr_status (*mr_dataset_function)(void *context, const mr_element *input, mr_dataset **output, mr_error *error);
/* All elements of the first element's dataset, then those of the second's …
 * spec  what all those datasets give; copied */
mr_dataset *mr_dataset_flat_map_(mr_dataset *input, mr_dataset_function function, void *context,
                                 const mr_element_spec *spec, const mr_function_options *options);
#define mr_dataset_flat_map(input, function, context, spec, ...)                                                       \
    mr_dataset_flat_map_((input), (function), (context), (spec), &(mr_function_options){__VA_ARGS__})
typedef struct mr_interleave_options {
    int64_t cycle_length; /* datasets that are open at once; 0: 16 */
    int64_t block_length; /* elements of one in turn; 0: 1 */
    bool parallel;        /* each open dataset is read ahead by a thread of its own. The order is the same */
    void (*release)(void *context);
} mr_interleave_options;
/* block_length elements of each of cycle_length open datasets in turn. One that has ended is passed over, and its place
 * goes to the next element's dataset when its turn comes again. The order is exact, also in parallel. */
mr_dataset *mr_dataset_interleave_(mr_dataset *input, mr_dataset_function function, void *context,
                                   const mr_element_spec *spec, const mr_interleave_options *options);
#define mr_dataset_interleave(input, function, context, spec, ...)                                                     \
    mr_dataset_interleave_((input), (function), (context), (spec), &(mr_interleave_options){__VA_ARGS__})

typedef struct mr_sample_options {
    uint64_t seed;      /* sample_from */
    bool stop_on_empty; /* end with the first dataset that ends; otherwise the others go on. tf.data's
                           choose_from_datasets stops where nothing else is said */
} mr_sample_options;
/* Each element from one of the datasets, drawn at random. The inputs are taken over, of one structure.
 * weights  one for each, not negative, with a finite sum; one of 0 leaves its dataset out; null: all equal. When
 *          datasets have ended, the others come as often as their weights say among themselves */
mr_dataset *mr_dataset_sample_from_(mr_dataset *const *inputs, const double *weights, int32_t count,
                                    const mr_sample_options *options);
#define mr_dataset_sample_from(inputs, weights, count, ...)                                                            \
    mr_dataset_sample_from_((inputs), (weights), (count), &(mr_sample_options){__VA_ARGS__})
/* Each element from the dataset whose number choices (int64 scalars, taken over) says. A choice of a dataset that has ended
 * is skipped. */
mr_dataset *mr_dataset_choose_from_(mr_dataset *const *inputs, int32_t count, mr_dataset *choices,
                                    const mr_sample_options *options);
#define mr_dataset_choose_from(inputs, count, choices, ...)                                                            \
    mr_dataset_choose_from_((inputs), (count), (choices), &(mr_sample_options){__VA_ARGS__})

/* ---- State from element to element ---- */

/* The key, or class, of an element, which is borrowed. */
typedef mr_status (*mr_key_function)(void *context, const mr_element *input, int64_t *key, mr_error *error);

/* From the state and an element to the next state and an output, one after the other. state and input are borrowed;
 * next_state and output are empty on entry, and owned by the pipeline on return. */
typedef mr_status (*mr_scan_function)(void *context, const mr_element *state, const mr_element *input,
                                      mr_element *next_state, mr_element *output, mr_error *error);
/* initial  the state before the first element of every iteration: copied (a share). Its dtypes stay, shapes may change
 * place    the state is saved as it is: keep it small */
mr_dataset *mr_dataset_scan_(mr_dataset *input, const mr_element *initial, mr_scan_function function, void *context,
                             const mr_element_spec *spec, const mr_function_options *options);
#define mr_dataset_scan(input, initial, function, context, spec, ...)                                                  \
    mr_dataset_scan_((input), (initial), (function), (context), (spec), &(mr_function_options){__VA_ARGS__})
/* From the state and an element to the next state. */
typedef mr_status (*mr_reduce_function)(void *context, const mr_element *state, const mr_element *input,
                                        mr_element *next_state, mr_error *error);
/* Runs the dataset, which is not taken over, to its end. state holds the initial state, and then the last; on an error it
 * is as the last element that was good left it. */
mr_status mr_dataset_reduce(mr_dataset *dataset, mr_element *state, mr_reduce_function function, void *context,
                            mr_error *error);
/* Elements (one scalar of int32, int64 or string) that have not been there before.
 * memory  every one of them */
mr_dataset *mr_dataset_unique(mr_dataset *input);
/* The only element of a dataset, which is not taken over: Dataset.get_single_element.
 * element  what it held is given back; owned by the caller on return
 * errors   MR_INVALID_ARGUMENT when there is none or more than one; the dataset's own */
mr_status mr_dataset_get_single(mr_dataset *dataset, mr_element *element, mr_error *error);
/* Rows of dimension 0 of all components as elements. */
mr_dataset *mr_dataset_unbatch(mr_dataset *input);
/* Batches of another size: unbatch, then batch. */
mr_dataset *mr_dataset_rebatch_(mr_dataset *input, int64_t size, const mr_batch_options *options);
#define mr_dataset_rebatch(input, size, ...) mr_dataset_rebatch_((input), (size), &(mr_batch_options){__VA_ARGS__})
/* Fails with MR_FAILED_PRECONDITION where the input does not have exactly count elements (MR_FOREVER: ends). Other
 * negative counts are MR_INVALID_ARGUMENT. */
mr_dataset *mr_dataset_assert_cardinality(mr_dataset *input, int64_t count);

typedef struct mr_resample_options {
    const double *initial; /* of the input, one for each class; null: estimated as elements come */
    uint64_t seed;
    void (*release)(void *context);
} mr_resample_options;
/* Lets elements fall at random so that classes come as target says; component 0 of the result is the class (int64).
 * class_of  a class from 0 to class_count - 1
 * target    class_count parts that add up to 1; copied */
mr_dataset *mr_dataset_rejection_resample_(mr_dataset *input, mr_key_function class_of, void *context,
                                           const double *target, int32_t class_count,
                                           const mr_resample_options *options);
#define mr_dataset_rejection_resample(input, class_of, context, target, class_count, ...)                              \
    mr_dataset_rejection_resample_((input), (class_of), (context), (target), (class_count),                            \
                                   &(mr_resample_options){__VA_ARGS__})

/* ---- Kept elements ---- */

/* Elements of the first pass are kept, and later passes read them instead of the input.
 *
 * A cache file is read by every iterator, also of other processes, whose input has the same digest: the kinds and settings
 * of all datasets before it and the content of their sources. Names and times of files do not count, so a copied data set
 * is the same one; changed data, or another setting, is another one. Of large files the digest covers the sizes and evenly
 * spaced blocks. Functions of the user are not seen: mr_dataset_options.version stands for them; nor is the iterator's
 * seed. list_files delivers paths, which are part of its digest.
 *
 * One iterator writes the file; others that run meanwhile, in this process or another, compute the elements and do not
 * wait. The file gets its name when the first pass is complete, and a writer that dies leaves nothing that is in the way. A
 * cache of another input, or one that is damaged, is replaced, with a warning in the statistics.
 * path    null: in memory, which the iterator's budget limits. Otherwise the name of a record file (with index)
 * errors  MR_INVALID_ARGUMENT when path is a file that is not a cache, which is left as it is */
mr_dataset *mr_dataset_cache(mr_dataset *input, const char *path);
typedef struct mr_dataset_snapshot_options {
    bool gzip; /* seekable GZIP */
} mr_dataset_snapshot_options;
/* cache to a file in a directory, under a name computed from the input's digest, so that a changed pipeline or other data
 * make another one. */
mr_dataset *mr_dataset_snapshot_(mr_dataset *input, const char *folder, const mr_dataset_snapshot_options *options);
#define mr_dataset_snapshot(input, folder, ...)                                                                        \
    mr_dataset_snapshot_((input), (folder), &(mr_dataset_snapshot_options){__VA_ARGS__})

/* ---- Windows and groups ---- */

/* A dataset made of the elements of one window: window is taken over; output is owned by the pipeline on return. To pass
 * the window on as it is: *output = window; to make a batch of it: *output = mr_dataset_batch(window, …). One call at a
 * time, in order. */
typedef mr_status (*mr_window_function)(void *context, mr_dataset *window, mr_dataset **output, mr_error *error);
typedef struct mr_window_options {
    int64_t size;
    int64_t shift;  /* from window to window, in elements of the input; 0: size */
    int64_t stride; /* from element to element of a window; 0: 1 */
    bool drop_remainder;
    void (*release)(void *context);
} mr_window_options;
/* What function makes of each window, one after the other: window().flat_map() of tf.data in one.
 * function  null: each window as one batch
 * spec      what those datasets give, copied; may be null when function is
 * memory    the elements of one window */
mr_dataset *mr_dataset_window_(mr_dataset *input, mr_window_function function, void *context,
                               const mr_element_spec *spec, const mr_window_options *options);
#define mr_dataset_window(input, function, context, spec, ...)                                                         \
    mr_dataset_window_((input), (function), (context), (spec), &(mr_window_options){__VA_ARGS__})

/* As mr_window_function, for the elements of one key. */
typedef mr_status (*mr_group_function)(void *context, int64_t key, mr_dataset *window, mr_dataset **output,
                                       mr_error *error);
typedef struct mr_group_options {
    int64_t window_size;                                   /* elements of one key that make a window */
    int64_t (*window_size_of)(void *context, int64_t key); /* or: for each key, always the same; null: window_size */
    void (*release)(void *context);
} mr_group_options;
/* Collects elements by key; as soon as a key has a window full of them, what function makes of it comes next. At the end
 * of the input the rest comes, in the order of the keys.
 * memory  at most a window of each key that occurs */
mr_dataset *mr_dataset_group_by_window_(mr_dataset *input, mr_key_function key, mr_group_function function,
                                        void *context, const mr_element_spec *spec, const mr_group_options *options);
#define mr_dataset_group_by_window(input, key, function, context, spec, ...)                                           \
    mr_dataset_group_by_window_((input), (key), (function), (context), (spec), &(mr_group_options){__VA_ARGS__})

typedef struct mr_bucket_options {
    const mr_shape *shapes;  /* as mr_padded_batch_options */
    const mr_tensor *values; /* … */
    bool pad_to_boundary; /* sizes that are not known are padded to the bucket's boundary − 1, not to the longest; no
                                element may then be as long as the last boundary */
    bool no_padding;
    bool drop_remainder; /* batches of fewer than batch_sizes elements are left out */
    void (*release)(void *context);
} mr_bucket_options;
/* Batches of elements of similar length: bucket b takes lengths from boundaries[b − 1] to boundaries[b] − 1.
 * length       of an element
 * boundaries   ascending; boundary_count of them
 * batch_sizes  boundary_count + 1 */
mr_dataset *mr_dataset_bucket_by_sequence_length_(mr_dataset *input, mr_key_function length, void *context,
                                                  const int64_t *boundaries, int32_t boundary_count,
                                                  const int64_t *batch_sizes, const mr_bucket_options *options);
#define mr_dataset_bucket_by_sequence_length(input, length, context, boundaries, boundary_count, batch_sizes, ...)     \
    mr_dataset_bucket_by_sequence_length_((input), (length), (context), (boundaries), (boundary_count), (batch_sizes), \
                                          &(mr_bucket_options){__VA_ARGS__})

/* Serialised Examples to their features: the tensors of each, in the order of the features (see example.h).
 * Before batch it parses single records, after batch whole batches, as tf.io.parse_example does. */
mr_dataset *mr_dataset_parse_example(mr_dataset *input, const mr_feature *features, int32_t count);
/* The same for SequenceExamples: the components of the context, then those of the feature lists. */
mr_dataset *mr_dataset_parse_sequence_example(mr_dataset *input, const mr_feature *context, int32_t context_count,
                                              const mr_feature *lists, int32_t list_count);

/* Decodes component `component` (string scalars: JPEG or PNG) into pixels, as options say (see mr_image_options in
 * image.h): crop or pad, resize, flip, colours, normalise, layout and dtype in one pass, straight into the batch when
 * batch follows. What is left to chance depends on the seed, the epoch and the element alone.
 * errors  MR_INVALID_ARGUMENT for options that mr_image_check refuses, or a result of more than 100,000,000 pixels */
typedef struct mr_decode_options {
    int32_t component;
    int32_t threads; /* 0: tuned */
    uint64_t seed;   /* of all that is left to chance */
    mr_image_options image;
} mr_decode_options;
mr_dataset *mr_dataset_decode_image_(mr_dataset *input, const mr_decode_options *options);
#define mr_dataset_decode_image(input, ...) mr_dataset_decode_image_((input), &(mr_decode_options){__VA_ARGS__})

/* Another hold on the dataset; free gives one back. Null is allowed. */
mr_dataset *mr_dataset_ref(mr_dataset *dataset);
void mr_dataset_free(mr_dataset *dataset);
mr_status mr_dataset_status(const mr_dataset *dataset, mr_error *error);
const mr_element_spec *mr_dataset_spec(const mr_dataset *dataset);
/* Elements in all; MR_FOREVER; -2 when not known. As tf.data's, but never more than is certain: without end is what is
 * repeated for ever and is known not to be empty, where tf.data does not ask. */
#define MR_CARDINALITY_UNKNOWN (-2)
int64_t mr_dataset_cardinality(const mr_dataset *dataset);

/* ---- Iterators ---- */

/* What one thread of a pipeline does: for the watchdog. */
typedef struct mr_thread_work {
    const char *stage; /* static; null: nothing, it waits for work or for room */
    bool is_waiting;   /* it asks this stage for an element, instead of working on one */
    uint64_t number;   /* of the element */
    uint64_t since_ns; /* for so long; elements that take microseconds are not timed one by one */
    char where[200];   /* "flowers-00001.tfrecord: record 17", or "element 17" */
} mr_thread_work;
/* Called on a thread of its own, while the caller of mr_iterator_next waits; it may cancel the iterator, not free it.
 * waited_ns  so long so far
 * threads    lent for the call; the first 256 of all stages, inner pipelines too */
typedef void (*mr_watchdog_function)(void *context, uint64_t waited_ns, const mr_thread_work *threads, int32_t count);

/* Whether threads, what is made ahead and what is asked for ahead of files are tuned while the iterator runs, from what is
 * measured: not what it delivers. */
typedef enum mr_tune {
    MR_TUNE_AUTO, /* where `threads` is 0 */
    MR_TUNE_ON,
    MR_TUNE_OFF,
} mr_tune;
/* Called inside mr_iterator_next, for each decision of the tuner.
 * line  what and why: "records+decode_image: 1 -> 2 threads: its caller waited 61 % of 0.10 s, 1 thread worked 98 % of
 *       it"; lent for the call */
typedef void (*mr_tuned_function)(void *context, const char *line);

typedef struct mr_iterator_options {
    /* Of the pipeline, all stages together, and the most when it is tuned; 0: one for each usable processor. */
    int32_t threads;
    /* What is tuned begins with what the datasets ask for (a depth of prefetch; threads of a map, which are its most) and
     * changes it within threads and budget_bytes. */
    mr_tune tune;
    int32_t threads_first; /* of the pipeline in the beginning, when it is tuned, and else an error; 0: all */
    mr_tuned_function tuned;
    void *tuned_context;
    /* Of all that the stages hold between calls, together; 0: 1 GiB. What is kept comes first: elements of a cache, of
     * windows and groups, and of a shuffle where they have no index, values of unique. A stage whose elements do not fit is
     * MR_RESOURCE_EXHAUSTED for good, and says what it wanted and who holds the rest. What is left is for reading ahead,
     * which becomes less instead of failing: batches ready and in the making, and what threads keep.
     * The next element to deliver is always produced, even if it exceeds the budget. So there may be more, while elements
     * are large: for each engine (a chain of stages up
     * to one that keeps, chooses or mixes elements) the batch or element that it delivers next, with its record and what its
     * decoder needs. Not counted is what others hold: the caller its elements, datasets their slices and tables of files,
     * functions of the user what they like; queues have limits of their own. */
    size_t budget_bytes;
    uint64_t seed; /* mixed into every stage's seed */
    /* Memory for batches; null: plain, or behind prefetch_to_device what the GPU copies from without a stop. */
    mr_status (*allocate)(void *context, size_t size_bytes, mr_buffer **buffer, mr_error *error);
    void *allocate_context;
    /* When mr_iterator_next has waited that long, and again after each further watchdog_ns; 0: never. */
    uint64_t watchdog_ns;
    mr_watchdog_function watchdog;
    void *watchdog_context;
    /* A Chrome trace (chrome://tracing, ui.perfetto.dev) is written to this file, about 120 bytes a task: a lane for each
     * thread, its tasks with their rows, waiting as gaps; slots in flight and ready as counters. It ends with the iterator
     * or mr_iterator_trace_stop. null: none */
    const char *trace_path;
    bool digest; /* mr_iterator_digest; costs a CRC of every byte that is delivered */
} mr_iterator_options;

/* errors  the dataset's first error */
mr_status mr_iterator_new(mr_dataset *dataset, const mr_iterator_options *options, mr_iterator **iterator,
                          mr_error *error);
void mr_iterator_free(mr_iterator *iterator); /* cancels, joins; null is allowed */

/* An iterator for elements of a structure, without a dataset yet: Iterator.from_structure of tf.data. Until initialize every
 * call is MR_FAILED_PRECONDITION.
 * spec    copied, but for the names; sizes of -1 and shapes of unknown rank are any */
mr_status mr_iterator_new_from_spec(const mr_element_spec *spec, const mr_iterator_options *options,
                                    mr_iterator **iterator, mr_error *error);
/* Begins the dataset from its first element, in the place of what the iterator ran before: as often as wanted, with the same
 * dataset or others, and of iterators of mr_iterator_new too. The same options and seed hold for all of them; a digest
 * begins anew. Elements that are still held stay good.
 * dataset  shared
 * errors   MR_INVALID_ARGUMENT when its components are not as many, not of the same dtypes, or of shapes that exclude those
 *          of the iterator; the dataset's first error; MR_CANCELLED after cancel, which is for good. The iterator goes on
 *          with what it ran before. Where the dataset leaves open what the iterator's spec says, an element of another
 *          shape is an error of mr_iterator_next, once
 * threads  as next */
mr_status mr_iterator_initialize(mr_iterator *iterator, mr_dataset *dataset, mr_error *error);
/* What its elements look like; names are null. Borrowed from the iterator. */
const mr_element_spec *mr_iterator_spec(const mr_iterator *iterator);

/* The next element. The caller owns it; its tensors go back to the pipeline for reuse when they are given back. They are in
 * host memory, or behind prefetch_to_device on the device. What element held is given back first.
 * errors   MR_OUT_OF_RANGE at the end, MR_CANCELLED after cancel, or a stage's error (which names stage, file, record).
 *          An element or batch that fails in its work is an error once, and the call after it goes on behind it; a source
 *          that cannot be read in order stays failed. So does, until initialize or restore, what depends on elements
 *          before (batches of filtered elements, shuffle, scan, …) where memory was short: MR_RESOURCE_EXHAUSTED
 * threads  one caller at a time, unless it has a handle; cancel may be called from any */
mr_status mr_iterator_next(mr_iterator *iterator, mr_element *element, mr_error *error);
void mr_iterator_cancel(mr_iterator *iterator);

/* The state: everything that is needed to continue with the element after the last one delivered, bit for bit, in another
 * process and at another number of threads. Elements prefetched but not delivered are not counted. A restored iterator
 * takes over the seed of the one that was saved.
 *
 * A state belongs to the pipeline and the data that it was saved with, by the digest that cache describes. The first save
 * or restore reads the sources for it: tensors completely, at memory speed, and up to about 64 MiB of files. To restore, a
 * source without an index (generator without skip, compressed records) and stages that depend on earlier elements
 * (unique) pass over the elements before the saved position one by one; mr_iterator_cancel ends that.
 * place   the state: an MR_STRING scalar, owned by the caller
 * errors  those of reading the sources; restore: MR_INVALID_ARGUMENT when the state is damaged, of another pipeline or
 *         of other data */
mr_status mr_iterator_save(mr_iterator *iterator, mr_tensor *place, mr_error *error);
mr_status mr_iterator_restore(mr_iterator *iterator, const mr_tensor *place, mr_error *error);

/* ---- Iterators by handle ----
 *
 * A handle is a short string that names an iterator, as tf.data's string_handle: a step is fed with the handle of the
 * training or of the validation data, and each of them keeps its place. It may be copied, kept and handed to other threads
 * without care: once the iterator is freed it names nothing, for ever, and says so.
 *
 * From the first handle on, the calls of an iterator (next, initialize, save, restore, by handle or not) may come from any
 * thread at any time and take turns. mr_iterator_free cancels those that are under way and waits for them; only the
 * owner's own calls must be over. A function inside a pipeline must not ask for elements of its own iterator.
 *
 * handle  an MR_STRING scalar, owned by the caller
 * errors  MR_INVALID_ARGUMENT: no handle, or elements that are not of spec; MR_NOT_FOUND: its iterator is freed, or was one
 *         of another process; and those of the call without a handle */
mr_status mr_iterator_handle(mr_iterator *iterator, mr_tensor *handle, mr_error *error);
/* spec  what is expected, compared as by mr_iterator_initialize before anything is taken; null: anything */
mr_status mr_iterator_next_by_handle(const mr_tensor *handle, const mr_element_spec *spec, mr_element *element,
                                     mr_error *error);
mr_status mr_iterator_save_by_handle(const mr_tensor *handle, mr_tensor *place, mr_error *error);
mr_status mr_iterator_restore_by_handle(const mr_tensor *handle, const mr_tensor *place, mr_error *error);

/* Of every element delivered so far: its number, dtypes, shapes and bytes, and of errors that took an element's place
 * their status. Equal where the elements and their order are equal, at any number of threads. restore begins it anew.
 * 0 when it was not asked for. */
uint64_t mr_iterator_digest(const mr_iterator *iterator);

/* Ends the trace. errors: MR_UNAVAILABLE when it could not be written whole */
mr_status mr_iterator_trace_stop(mr_iterator *iterator, mr_error *error);

/* What the tuner does. */
typedef struct mr_tuned {
    bool is_on, is_settled;
    uint64_t decisions; /* changes so far, those that were taken back too */
    char line[320];     /* the last one; empty without */
} mr_tuned;
/* threads  as mr_iterator_next */
void mr_iterator_tuned(const mr_iterator *iterator, mr_tuned *tuned);

/* The size of a stage's warning with its closing zero. */
#define MR_WARNING_SIZE 400
/* Statistics of each stage, source first. */
typedef struct mr_stage_statistics {
    const char *stage; /* "records", "decode_image", …; static */
    uint64_t elements;
    uint64_t bytes;
    uint64_t busy_ns;        /* working, over all threads */
    uint64_t input_wait_ns;  /* waiting for the stage before */
    uint64_t output_wait_ns; /* waiting for the stage after */
    size_t held_bytes; /* of budget_bytes, now: what the stage keeps, pipelines inside it too, or, of the last stage of
                              * an engine, what all of them have read ahead and work with */
    int32_t threads;   /* at work now, over all stages of its engine */
    /* Of stages that deliver through slots (batches, or blocks of elements); 0 and 0 of others: */
    int32_t slots_max; /* the window now */
    double occupancy;  /* slots that were ready behind the one delivered, of the others in the window: 0 to 1, over all
                        * so far. Near 0 the consumer waits for the pipeline, near 1 the pipeline for the consumer */
    /* What the stage worked around and the user should know: "data.cache: the cache of another pipeline or of other data;
     * it is replaced". The first one, stages inside it too; empty without */
    char warning[MR_WARNING_SIZE];
} mr_stage_statistics;
int32_t mr_iterator_statistics(mr_iterator *iterator, mr_stage_statistics *statistics, int32_t capacity);
/* The same as a table, times in seconds, of lines of at most `columns` (at least 60), to be shown and shown again; then a
 * line for each warning, which may be longer. Returns its size without the closing zero, which may be more than fits, as
 * snprintf does. */
size_t mr_iterator_statistics_text(mr_iterator *iterator, int32_t columns, char *text, size_t capacity_bytes);

#ifdef __cplusplus
}
#endif
#endif
