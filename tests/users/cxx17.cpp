// A C++17 program that uses the public headers as C++ allows: options by name, lists, a dataset, records and a graph. It
// is linked with libmillrace.so, without a C++ library, and compiled with -pedantic.
#include <millrace/millrace.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) return printf("%s:%d: %s is false: %s\n", __FILE__, __LINE__, #condition, error.message), 1; \
    } while (0)

static mr_status add_one(void *, const mr_element *input, mr_random *, mr_element *output, mr_error *error)
{
    output->count = 1;
    return mr_tensor_init_int64(&output->tensors[0], mr_tensor_int64s(&input->tensors[0])[0] + 1, error);
}

static int use_dataset(int64_t batch_size)
{
    mr_error error = {};
    mr_element_spec spec = {};
    spec.count = 1;
    spec.dtypes[0] = MR_INT64;
    spec.shapes[0] = MR_SCALAR;
    mr_dataset *dataset = mr_dataset_range(0, 100, 1);
    dataset = mr_dataset_shuffle(mr_dataset_take(dataset, batch_size * 2), .seed = 7, .buffer_size = 50,
                                 .reshuffle_each_iteration = false);
    dataset = mr_dataset_map(dataset, add_one, nullptr, &spec);
    dataset = mr_dataset_batch(dataset, batch_size, .drop_remainder = true);
    mr_iterator *iterator = nullptr;
    CHECK(mr_iterator_new(dataset, MR_OPTIONS(mr_iterator_options, .threads = 2), &iterator, &error) == MR_OK);
    mr_element element = {};
    int64_t sum = 0, batches = 0;
    mr_status status;
    for (; (status = mr_iterator_next(iterator, &element, &error)) == MR_OK; batches++)
        for (int64_t i = 0; i < batch_size; i++) sum += mr_tensor_int64s(&element.tensors[0])[i];
    CHECK(status == MR_OUT_OF_RANGE && batches == 2 && sum == batch_size * (2 * batch_size + 1));
    mr_element_deinit(&element);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    return 0;
}

/* Options inside options, and options in a variable. */
static int use_nested_options()
{
    mr_error error = {};
    mr_string bytes = MR_STR("not an image");
    mr_tensor encoded = {};
    CHECK(mr_tensor_init_strings(&encoded, MR_SHAPE(1), &bytes, &error) == MR_OK);
    mr_dataset *dataset =
        mr_dataset_decode_image(mr_dataset_from_slices(&encoded, 1), .seed = 3,
                                .image = MR_OPTIONS(mr_image_options, .height = 8, .width = 6, .crop = MR_CROP_CENTER));
    mr_shape shape = mr_dataset_spec(dataset)->shapes[0];
    CHECK(mr_dataset_status(dataset, &error) == MR_OK && shape.dims[0] == 8 && shape.dims[1] == 6);
    mr_iterator_options options = {};
    mr_iterator *iterator = nullptr;
    CHECK(mr_iterator_new(dataset, &options, &iterator, &error) == MR_INVALID_ARGUMENT);
    options.size = sizeof options;
    CHECK(mr_iterator_new(dataset, &options, &iterator, &error) == MR_OK);
    mr_iterator_free(iterator);
    mr_dataset_free(dataset);
    mr_tensor_deinit(&encoded);
    return 0;
}

static int use_records(const char *path)
{
    mr_error error = {};
    mr_example_encoder encoder = {};
    mr_example_add_bytes(&encoder, "image/format", MR_STR("jpeg"));
    mr_example_add_int64(&encoder, "image/height", 480);
    mr_string record = {};
    CHECK(mr_example_finish(&encoder, &record, &error) == MR_OK);
    mr_record_writer *writer = nullptr;
    CHECK(mr_record_writer_open(path, nullptr, &writer, &error) == MR_OK);
    CHECK(mr_record_writer_append(writer, record.data, record.size_bytes, &error) == MR_OK);
    CHECK(mr_record_writer_close(writer, &error) == MR_OK);
    mr_example_encoder_deinit(&encoder);

    mr_record_reader *reader = nullptr;
    CHECK(mr_record_reader_open(path, nullptr, &reader, &error) == MR_OK);
    CHECK(mr_record_reader_next(reader, &record, &error) == MR_OK);
    int64_t height = 0;
    CHECK(mr_example_get_int64(record, "image/height", &height, &error) == MR_OK && height == 480);
    CHECK(mr_record_reader_next(reader, &record, &error) == MR_OUT_OF_RANGE);
    mr_record_reader_close(reader);
    return 0;
}

static int use_graph()
{
    mr_error error = {};
    mr_graph *g = mr_graph_new();
    mr_output images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 4, 4, 1), .name = "images");
    const float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    mr_output filter = mr_constant_floats(g, MR_SHAPE(3, 3, 1, 1), ones, nullptr);
    mr_output h = mr_relu(g, mr_conv2d(g, images, filter, .strides = MR_INTS(1, 1, 1, 1), .padding = MR_VALID));
    mr_output sum = mr_sum(g, mr_add_n(g, MR_OUTPUTS(h, h)), mr_constant_ints(g, MR_INTS(0, 1, 2, 3)));
    mr_output logits = mr_layer_dense(g, mr_layer_flatten(g, h), .units = 2, .kernel_initializer.kind = MR_INIT_ONES);
    mr_node *train = mr_minimize(g, mr_adam(.learning_rate = 0.5f),
                                 mr_mean(g, logits, mr_constant_ints(g, MR_INTS(0, 1))), mr_output{});
    CHECK(mr_graph_status(g, &error) == MR_OK);
    mr_node *initializer = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, nullptr);

    mr_session *session = nullptr;
    CHECK(mr_session_new(g, nullptr, &session, &error) == MR_OK);
    mr_tensor input = {}, results[2] = {};
    float pixels[16];
    for (float &pixel : pixels) pixel = 1;
    CHECK(mr_tensor_init_copy(&input, MR_FLOAT, MR_SHAPE(1, 4, 4, 1), pixels, &error) == MR_OK);
    CHECK(mr_session_run(session, MR_NO_FEEDS, mr_outputs{}, nullptr, &initializer, 1, &error) == MR_OK);
    CHECK(mr_session_run(session, MR_FEEDS({images, input}), MR_OUTPUTS(sum, logits), results, nullptr, 0, &error) ==
          MR_OK);
    CHECK(mr_tensor_floats(&results[0])[0] == 72 && mr_tensor_floats(&results[1])[1] == 36);
    for (mr_tensor &result : results) mr_tensor_deinit(&result);
    CHECK(mr_session_run(session, MR_FEEDS({images, input}), mr_outputs{}, nullptr, &train, 1, &error) == MR_OK);
    mr_tensor_deinit(&input);
    mr_session_free(session);
    mr_graph_free(g);
    return 0;
}

static size_t name_bytes(const mr_warm_start_options *options)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < options->names.count; i++) bytes += strlen(options->names.items[i]);
    return bytes;
}

/* An option whose value is computed with the same MR_OPTIONS again. */
static size_t nested_bytes(int depth)
{
    if (depth == 0) return 1;
    return name_bytes(MR_OPTIONS(mr_warm_start_options, .names = MR_NAMES("abc", "d"),
                                 .pattern = nested_bytes(depth - 1) > 0 ? nullptr : "x"));
}

/* The arrays of lists exist as long as the call: also those of two structs of one type, and of the second of two calls
 * at one place. */
static int use_lists_in_options()
{
    mr_error error = {};
    for (size_t i = 0; i < 3; i++) {
        const char *name = &"ccc"[i];
        size_t both = name_bytes(MR_OPTIONS(mr_warm_start_options, .names = MR_NAMES("a", "bbbbb", name))) +
                      10 * name_bytes(MR_OPTIONS(mr_warm_start_options, .names = MR_NAMES(name)));
        CHECK(both == 6 + 11 * (3 - i));
    }
    CHECK(name_bytes(MR_OPTIONS(mr_warm_start_options, .names = {})) == 0);
    CHECK(nested_bytes(3) == 4);
    return 0;
}

int main(int count, char **arguments)
{
    mr_error error = {};
    CHECK(count == 2);
    CHECK(strcmp(mr_version(), MR_VERSION) == 0);
    return use_dataset(10) || use_nested_options() || use_records(arguments[1]) || use_graph() ||
           use_lists_in_options();
}
