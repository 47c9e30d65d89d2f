/* Programs of other versions: every kind of function that takes options accepts a struct that is shorter or longer than
 * the library's. */
#include "tests/test.h"

#include <millrace/millrace.h>

#include <glob.h>

/* Calls a function with these options and returns its result, or the first error of what it built. */
typedef mr_status use_options(const void *options, mr_error *error);

static mr_status status_of(mr_dataset *dataset, mr_error *error)
{
    mr_status status = mr_dataset_status(dataset, error);
    mr_dataset_free(dataset);
    return status;
}

static mr_status end(mr_graph *graph, mr_error *error)
{
    mr_status status = mr_graph_status(graph, error);
    mr_graph_free(graph);
    return status;
}

static mr_output images(mr_graph *graph)
{
    return mr_placeholder(graph, MR_FLOAT, .shape = MR_SHAPE(-1, 8, 8, 3));
}

static mr_status use_iterator(const void *options, mr_error *error)
{
    mr_iterator *iterator = nullptr;
    mr_dataset *dataset = mr_dataset_range(0, 10, 1);
    mr_status status = mr_iterator_new(dataset, options, &iterator, error);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return status;
}

static mr_status use_queue(const void *options, mr_error *error)
{
    mr_queue *queue = nullptr;
    mr_status status = mr_queue_new(MR_QUEUE_RANDOM_SHUFFLE, options, &queue, error);
    if (status == MR_OK) CHECK_EQ(mr_queue_describe(queue)->size, sizeof(mr_queue_options));
    mr_queue_unref(queue);
    return status;
}

static mr_status use_profile(const void *options, mr_error *error)
{
    mr_graph *graph = mr_graph_new();
    mr_profile *profile = nullptr;
    mr_profile_view *view = nullptr;
    mr_status status = mr_profile_new(graph, &profile, error);
    if (status == MR_OK) status = mr_profile_view_new(profile, MR_PROFILE_SCOPE, options, &view, error);
    mr_profile_view_free(view);
    mr_profile_free(profile);
    mr_graph_free(graph);
    return status;
}

static mr_status use_writer(const void *options, mr_error *error)
{
    mr_record_writer *writer = nullptr;
    mr_status status = mr_record_writer_open(test_path("w"), options, &writer, error);
    if (status == MR_OK) mr_record_writer_discard(writer);
    return status;
}

static mr_status use_scan(const void *options, mr_error *error)
{
    return mr_record_scan(nullptr, 0, options, nullptr, error);
}

static mr_status use_image(const void *options, mr_error *error)
{
    return mr_image_check(options, error);
}

static mr_status use_shuffle(const void *options, mr_error *error)
{
    return status_of(mr_dataset_shuffle_(mr_dataset_range(0, 10, 1), options), error);
}

static mr_status use_batch(const void *options, mr_error *error)
{
    return status_of(mr_dataset_padded_batch_(mr_dataset_range(0, 10, 1), 3, options), error);
}

static mr_status use_decode(const void *options, mr_error *error)
{
    return status_of(mr_dataset_decode_image_(mr_dataset_list_files(test_path("w")), options), error);
}

static mr_status use_csv(const void *options, mr_error *error)
{
    const mr_csv_column column = {.index = 0, .dtype = MR_INT64};
    return status_of(mr_dataset_csv_(test_path("w"), &column, 1, options), error);
}

static mr_status use_sample(const void *options, mr_error *error)
{
    mr_dataset *inputs[] = {mr_dataset_range(0, 10, 1), mr_dataset_range(5, 9, 1)};
    return status_of(mr_dataset_sample_from_datasets_(inputs, nullptr, 2, options), error);
}

static mr_status use_conv2d(const void *options, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    (void)mr_layer_conv2d_(g, images(g), options);
    return end(g, error);
}

static mr_status use_variable(const void *options, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    (void)mr_variable_new_(g, "v", mr_constant_float(g, 1), options);
    return end(g, error);
}

static mr_status use_saver(const void *options, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    (void)mr_variable_new(g, "v", mr_constant_float(g, 1));
    mr_saver_free(mr_saver_new_(g, options));
    return end(g, error);
}

static mr_status use_optimizer(const void *options, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_output v = mr_variable_new(g, "v", mr_constant_float(g, 1)).value;
    (void)mr_minimize(g, options, mr_square(g, v), (mr_output){0});
    return end(g, error);
}

static mr_status use_training(const void *options, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    (void)mr_variable_new(g, "v", mr_constant_float(g, 1));
    mr_training *training = nullptr;
    mr_status status = mr_training_new(g, options, &training, error);
    mr_training_free(training);
    mr_graph_free(g);
    return status;
}

constexpr size_t MORE = 64;

/* A call with a struct of this size, whose bytes are those of options, which is longer. A block of this size lets the
 * address sanitizer see reads after it. */
static mr_status call(use_options *use, const unsigned char *options, size_t size, mr_error *error)
{
    unsigned char *given = malloc(size);
    CHECK(given != nullptr);
    memcpy(given, options, size);
    if (size >= sizeof size) memcpy(given, &size, sizeof size);
    *error = (mr_error){0};
    mr_status status = use(given, error);
    free(given);
    return status;
}

/* Pointers are not split: sizes are multiples of theirs. */
static void check_sizes(const char *type, use_options *use, const void *valid, size_t full)
{
    mr_error error = {0}, other = {0};
    unsigned char options[4096] = {0};
    CHECK(full + MORE <= sizeof options && full % sizeof(void *) == 0);
    memcpy(options, valid, full);
    CHECK_OK(call(use, options, full, &error));
    for (size_t size = sizeof size; size < full; size += sizeof(void *)) {
        /* The same as a full struct whose other members are zero. */
        unsigned char cut[4096] = {0};
        memcpy(cut, options, size);
        mr_status expected = call(use, cut, full, &other);
        CHECK_EQ(call(use, options, size, &error), expected);
        CHECK_STR(error.message, other.message);
    }
    for (size_t size = full; size <= full + MORE; size++) CHECK_OK(call(use, options, size, &error));
    for (size_t i = full; i < full + MORE; i++) {
        options[i] = 1;
        CHECK_OK(call(use, options, i, &error));
        CHECK_STATUS(call(use, options, full + MORE, &error), MR_INVALID_ARGUMENT);
        CHECK_CONTAINS(error.message, type);
        CHECK_CONTAINS(error.message, "this version of the library, " MR_VERSION ", does not have");
        options[i] = 0;
    }
    memset(options, 0, sizeof(size_t));
    CHECK_STATUS(use(options, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, type);
    CHECK_CONTAINS(error.message, "size is 0: set it with MR_OPTIONS");
}

#define CHECK_SIZES(use, type, ...)                                                                                    \
    check_sizes(#type ": ", (use), &(type){.size = sizeof(type), __VA_ARGS__}, sizeof(type))

TEST(options_of_functions_with_any_size)
{
    CHECK_SIZES(use_iterator, mr_iterator_options, .threads = 2, .tune = MR_TUNE_ON, .threads_first = 1, .seed = 7,
                .budget_bytes = 1 << 20, .digest = true);
    CHECK_SIZES(use_queue, mr_queue_options, .capacity = 5, .component_count = 1, .dtypes = {MR_INT64},
                .min_after_dequeue = 2, .seed = 3, .name = "q");
    CHECK_SIZES(use_writer, mr_record_writer_options, .compression = MR_COMPRESSION_GZIP, .level = 5, .index = true,
                .seek_bytes = 4096, .threads = 1);
    CHECK_SIZES(use_scan, mr_record_scan_options, .threads = 2, .damage = MR_DAMAGE_SKIP, .damage_max = 5);
    CHECK_SIZES(use_image, mr_image_options, .height = 8, .width = 8, .crop = MR_CROP_RANDOM, .pixels_max = 1000);
    CHECK_SIZES(use_training, mr_training_options, MR_TRAINING_OPTIONS_DEFAULTS);
    CHECK_SIZES(use_profile, mr_profile_options, MR_PROFILE_TIME_AND_MEMORY);
}

TEST(options_of_datasets_with_any_size)
{
    fclose(fopen(test_path("w"), "w"));
    CHECK_SIZES(use_shuffle, mr_shuffle_options, .buffer_size = 5, .seed = 9, MR_SHUFFLE_DEFAULTS);
    CHECK_SIZES(use_batch, mr_padded_batch_options, .padded_shapes = &(mr_shape){0}, .drop_remainder = true);
    const mr_image_options image = {.size = sizeof image, .height = 8, .width = 8};
    CHECK_SIZES(use_decode, mr_decode_options, .seed = 4, .image = &image);
    CHECK_SIZES(use_csv, mr_csv_options, .separator = ';', .has_header = true, .na_value = "?");
    CHECK_SIZES(use_sample, mr_sample_options, .seed = 4, .stop_on_empty_dataset = true);
}

TEST(options_of_graphs_with_any_size)
{
    CHECK_SIZES(use_conv2d, mr_conv_layer, .filters = 3, .kernel_size = 2, .name = "c", MR_CONV2D_LAYER_DEFAULTS);
    CHECK_SIZES(use_variable, mr_variable_options, MR_VARIABLE_DEFAULTS);
    CHECK_SIZES(use_saver, mr_saver_options, MR_SAVER_DEFAULTS);
    CHECK_SIZES(use_optimizer, mr_optimizer, MR_OPTIMIZER_DEFAULTS, .kind = MR_ADAM);
}

/* A program of an earlier version has the defaults of its own macros. */
TEST(options_keep_the_defaults_of_the_caller)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    struct {
        size_t size;
        bool trainable, canary;
    } old = {.size = offsetof(mr_variable_options, local), .trainable = true, .canary = true};
    (void)mr_variable_new_(g, "v", mr_constant_float(g, 1), (const mr_variable_options *)&old);
    CHECK_OK(mr_graph_status(g, &error));
    CHECK_EQ(mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES), 1);
    CHECK_EQ(mr_graph_variable_count(g, MR_LOCAL_VARIABLES), 0);
    mr_graph_free(g);
}

static void count_release(void *context)
{
    (*(int *)context)++;
}

static mr_status pass(void *, const mr_element *, mr_random *, mr_element *, mr_error *)
{
    return MR_OK;
}

/* What a builder took ownership of is released when it refuses the options, and the first error stays. */
TEST(options_that_are_refused_are_released)
{
    mr_error error = {0};
    int count = 0;
    struct {
        mr_map_options known;
        int64_t unknown;
    } newer = {{.size = sizeof newer, .release = count_release}, 1};
    mr_dataset *d = mr_dataset_map_(mr_dataset_range(0, 3, 1), pass, &count, nullptr, &newer.known);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "mr_map_options: ");
    mr_dataset_free(d);
    CHECK_EQ(count, 1);
    d = mr_dataset_map_(mr_dataset_range(0, 3, 0), pass, &count, nullptr, &newer.known);
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "range");
    mr_dataset_free(d);
    CHECK_EQ(count, 2);
}

/* Whether the struct of this name holds options that a function of the library receives. */
static bool has_options(const char *name)
{
    static const char *const endings[] = {"_options", "_layer", "mr_optimizer"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(name), ending = strlen(endings[i]);
        if (length >= ending && strcmp(name + length - ending, endings[i]) == 0) return true;
    }
    return false;
}

/* ops.h is not among them: its builders are compiled into the program. */
TEST(options_start_with_their_size)
{
    glob_t headers = {0};
    int count = 0;
    CHECK(glob(test_bin("../include/millrace/*.h"), 0, nullptr, &headers) == 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) {
        const char *path = headers.gl_pathv[i];
        if (strcmp(strrchr(path, '/'), "/ops.h") == 0) continue;
        FILE *file = fopen(path, "r");
        CHECK(file != nullptr);
        char line[1024], name[200] = "";
        while (fgets(line, sizeof line, file) != nullptr) {
            if (name[0] != '\0' && strncmp(line, "    size_t size;", 16) != 0)
                test_fail(__FILE__, __LINE__, "%s: %s does not start with its size: %s", path, name, line);
            if (sscanf(line, "typedef struct %199s {", name) != 1 || strchr(line, '{') == nullptr || !has_options(name))
                name[0] = '\0';
            count += name[0] != '\0';
        }
        fclose(file);
    }
    globfree(&headers);
    CHECK(count >= 41);
}
