/* Null pointers, and lists that are null but not empty, as arguments of public functions: each is refused with the name
 * of the function and of the argument, or has no effect. */
#include "tests/test.h"

#include <millrace/millrace.h>

/* Requires a variable `mr_error error` in scope. */
#define REFUSED(call, part)                                                                                            \
    do {                                                                                                               \
        CHECK_STATUS((call), MR_INVALID_ARGUMENT);                                                                     \
        CHECK_CONTAINS(error.message, part);                                                                           \
    } while (0)

static const mr_string absent = {nullptr, 5};

TEST(null_arguments_of_event_writers_are_refused)
{
    mr_error error = {0};
    mr_event_writer *w = nullptr;
    mr_graph *g = mr_graph_new();
    mr_tensor one = {0};
    CHECK_OK(mr_tensor_init_float(&one, 1, &error));
    REFUSED(mr_event_writer_open(test_directory(), nullptr, &error), "writer is null");
    REFUSED(mr_event_writer_open_with(test_directory(), nullptr, nullptr, &error), "writer is null");
    REFUSED(mr_event_writer_reopen(nullptr, &error), "mr_event_writer_reopen: writer is null");
    REFUSED(mr_event_writer_flush(nullptr, &error), "writer is null");
    REFUSED(mr_event_writer_add(nullptr, 1, MR_STR(""), &error), "writer is null");
    REFUSED(mr_event_writer_add_event(nullptr, MR_STR(""), &error), "writer is null");
    REFUSED(mr_event_writer_add_scalar(nullptr, 1, "tag", 1, &error), "writer is null");
    REFUSED(mr_event_writer_add_graph(nullptr, g, &error), "writer is null");
    REFUSED(mr_event_writer_add_graph_def(nullptr, 1, MR_STR(""), &error), "writer is null");
    REFUSED(mr_event_writer_add_meta_graph_def(nullptr, 1, MR_STR(""), &error), "writer is null");
    REFUSED(mr_event_writer_add_run_metadata(nullptr, 1, "tag", MR_STR(""), &error), "writer is null");
    REFUSED(mr_event_writer_add_session_log(nullptr, 1, MR_SESSION_START, nullptr, &error), "writer is null");
    REFUSED(mr_event_writer_add_histogram(nullptr, 1, "tag", &one, &error), "writer is null");
    REFUSED(mr_event_writer_add_image(nullptr, 1, "tag", &one, &error), "writer is null");
    REFUSED(mr_event_writer_add_audio(nullptr, 1, "tag", &one, 8000, &error), "writer is null");
    REFUSED(mr_event_writer_add_text(nullptr, 1, "tag", "text", &error), "writer is null");
    REFUSED(mr_event_writer_add_hparams_start(nullptr, nullptr, 0, nullptr, &error), "writer is null");
    REFUSED(mr_event_writer_add_hparams_end(nullptr, MR_HPARAMS_SUCCESS, 0, &error), "writer is null");
    REFUSED(mr_event_writer_add_hparams_experiment(nullptr, nullptr, &error), "writer is null");
    CHECK(mr_event_writer_path(nullptr) == nullptr);
    CHECK_OK(mr_event_writer_open(test_directory(), &w, &error));
    REFUSED(mr_event_writer_add(w, 1, absent, &error), "are null");
    REFUSED(mr_event_writer_add_event(w, absent, &error), "are null");
    REFUSED(mr_event_writer_add_graph_def(w, 1, absent, &error), "are null");
    REFUSED(mr_event_writer_add_meta_graph_def(w, 1, absent, &error), "are null");
    REFUSED(mr_event_writer_add_run_metadata(w, 1, "tag", absent, &error), "are null");
    CHECK_OK(mr_event_writer_close(w, &error));
    mr_tensor_deinit(&one);
    mr_graph_free(g);
}

TEST(null_arguments_of_event_readers_files_and_timelines_are_refused)
{
    mr_error error = {0};
    mr_event_reader *reader = nullptr;
    const mr_event_message *event = nullptr;
    REFUSED(mr_event_reader_open("events", nullptr, &error), "reader is null");
    REFUSED(mr_event_reader_next(nullptr, &event, &error), "reader is null");
    mr_event_writer *w = nullptr;
    CHECK_OK(mr_event_writer_open(test_directory(), &w, &error));
    CHECK_OK(mr_event_reader_open(mr_event_writer_path(w), &reader, &error));
    REFUSED(mr_event_reader_next(reader, nullptr, &error), "event is null");
    mr_event_reader_close(reader);
    CHECK_OK(mr_event_writer_close(w, &error));
    REFUSED(mr_timeline_write(absent, test_path("timeline"), &error), "are null");
    REFUSED(mr_gfile_stat(test_directory(), nullptr, &error), "about is null");
    REFUSED(mr_gfile_read(test_directory(), nullptr, &error), "contents is null");
    REFUSED(mr_gfile_list_directory(test_directory(), nullptr, &error), "names is null");
    REFUSED(mr_gfile_glob("*", nullptr, &error), "paths is null");
}

TEST(null_arguments_of_node_builders_are_errors_of_the_graph)
{
    mr_error error = {0};
    mr_node_add_input(nullptr, (mr_output){0});
    mr_node_add_input_list(nullptr, (mr_outputs){0});
    mr_node_add_control_input(nullptr, nullptr);
    mr_node_set_device(nullptr, "/cpu:0");
    mr_node_set_int(nullptr, "a", 1);
    mr_node_set_ints(nullptr, "a", MR_INTS(1));
    mr_node_set_string(nullptr, "a", "b");
    CHECK(mr_node_finish(nullptr).node == nullptr);
    CHECK(mr_graph_find(nullptr, "x") == nullptr);
    CHECK(mr_graph_find_output(nullptr, "x:0").node == nullptr);
    mr_graph_register_gradient(nullptr, "x", nullptr, nullptr);
    mr_graph_seed_pair(nullptr, nullptr, nullptr, nullptr);
    mr_graph *g = mr_graph_new();
    mr_output x = mr_constant_float(g, 1);
    CHECK_EQ(mr_node_output_range(x.node, nullptr).count, 0);
    mr_graph_seed_pair(g, nullptr, nullptr, nullptr);
    mr_node_builder builder = mr_node_begin(g, "NoOp", nullptr);
    mr_node_set_int(&builder, nullptr, 1);
    (void)mr_node_finish(&builder);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the name of an attr is null");
    mr_graph_free(g);

    g = mr_graph_new();
    CHECK_STR(mr_graph_unique_name(g, nullptr), "");
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(g);

    g = mr_graph_new();
    mr_output gradient = {0};
    mr_gradients(g, (mr_outputs){0}, (mr_outputs){nullptr, 1}, nullptr, &gradient);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "the array of xs is null");
    mr_graph_free(g);

    g = mr_graph_new();
    mr_output variables[2] = {0};
    (void)mr_while_loop_begin(g, ((mr_outputs){nullptr, 2}), variables);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    mr_graph_free(g);
}

static void check_layer(mr_output (*build)(mr_graph *graph, mr_output images), const char *part)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    (void)build(g, mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 8, 8, 3)));
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, part);
    mr_graph_free(g);
}

static mr_output kernel_sizes(mr_graph *g, mr_output images)
{
    return mr_layer_conv2d(g, images, .filters = 1, .kernel_sizes = {nullptr, 2});
}

static mr_output negative_sizes(mr_graph *g, mr_output images)
{
    return mr_layer_conv2d(g, images, .filters = 1, .kernel_size = 3, .strides_each = {nullptr, -1});
}

static mr_output pool_sizes(mr_graph *g, mr_output images)
{
    return mr_layer_max_pool(g, images, .pool_sizes = {nullptr, 2});
}

static mr_output noise_shape(mr_graph *g, mr_output images)
{
    return mr_layer_dropout(g, images, .training = true, .noise_shape = {nullptr, 4});
}

TEST(null_lists_of_layers_are_errors)
{
    check_layer(kernel_sizes, "kernel_sizes is null, with a count of 2");
    check_layer(negative_sizes, "with a count of -1");
    check_layer(pool_sizes, "pool_sizes is null");
    check_layer(noise_shape, "noise_shape must have a size");
}

TEST(null_arguments_of_training_and_hooks_are_refused)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    mr_output loss = mr_l2_loss(g, w.value);
    mr_node *train = mr_minimize(g, mr_gradient_descent(.learning_rate = 0.1f), loss, mr_global_step(g).ref);
    mr_training *training = nullptr;
    CHECK_OK(mr_training_new(g, nullptr, &training, &error));
    REFUSED(mr_training_step(training, train, MR_NO_FEEDS, (mr_outputs){nullptr, 1}, nullptr, &error),
            "fetches is null");
    REFUSED(mr_training_step(training, train, MR_NO_FEEDS, (mr_outputs){nullptr, -1}, nullptr, &error),
            "the count is -1");
    REFUSED(mr_training_step(training, train, MR_NO_FEEDS, MR_OUTPUTS(loss), nullptr, &error), "results is null");
    CHECK_OK(mr_training_step(training, train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error));
    mr_training_free(training);
    REFUSED(mr_training_step(nullptr, train, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &error), "training is null");
    REFUSED(mr_training_save(nullptr, &error), "training is null");
    CHECK_EQ(mr_training_global_step(nullptr), -1);
    CHECK(mr_training_session(nullptr) == nullptr);
    CHECK(mr_session_iterator(nullptr, train) == nullptr);
    mr_graph_free(g);

    int32_t count = 7;
    const mr_watch watch = {0};
    CHECK(mr_hook_run_session(nullptr) == nullptr);
    CHECK_EQ(mr_hook_run_caller_feeds(nullptr).count, 0);
    CHECK_EQ(mr_hook_run_caller_fetches(nullptr).count, 0);
    CHECK(mr_hook_run_results(nullptr, &count) == nullptr);
    CHECK_EQ(count, 0);
    CHECK(mr_hook_run_metadata(nullptr) == nullptr);
    CHECK(mr_hook_run_should_stop(nullptr));
    mr_hook_run_request_stop(nullptr);
    mr_hook_run_trace(nullptr);
    REFUSED(mr_hook_run_fetch(nullptr, (mr_outputs){0}, &error), "run is null");
    REFUSED(mr_hook_run_feed(nullptr, MR_NO_FEEDS, &error), "run is null");
    REFUSED(mr_hook_run_watch(nullptr, &watch, &error), "run is null");
    REFUSED(mr_run_return(nullptr, 0, nullptr, &error), "call is null");
}

TEST(null_outputs_of_a_graph_iterator_are_an_error)
{
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_dataset *d = mr_dataset_range(0, 3, 1);
    (void)mr_graph_iterator(g, nullptr, d, nullptr, nullptr);
    CHECK_STATUS(mr_graph_status(g, &error), MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "outputs is null");
    mr_dataset_free(d);
    mr_graph_free(g);
    d = mr_dataset_map_graph(mr_dataset_range(0, 3, 1), mr_graph_new(), (mr_outputs){nullptr, 1},
                             (mr_outputs){nullptr, 1});
    CHECK_STATUS(mr_dataset_status(d, &error), MR_INVALID_ARGUMENT);
    mr_dataset_free(d);
}

TEST(null_arguments_of_devices_and_tensors_are_refused)
{
    mr_error error = {0};
    mr_device *device = nullptr;
    mr_tensor t = {0}, copy = {0};
    REFUSED(mr_device_open(nullptr, &device, &error), "name is null");
    REFUSED(mr_device_open("/cpu:0", nullptr, &error), "device is null");
    CHECK_STR(mr_device_name(nullptr), "");
    CHECK(mr_tensor_device(nullptr) == nullptr);
    CHECK_OK(mr_device_open("/cpu:0", &device, &error));
    REFUSED(mr_tensor_to_host(nullptr, &copy, &error), "tensor is null");
    REFUSED(mr_tensor_to_host(&t, nullptr, &error), "copy is null");
    REFUSED(mr_tensor_to_device(nullptr, device, &copy, &error), "tensor is null");
    REFUSED(mr_tensor_to_device(&t, nullptr, &copy, &error), "device is null");
    REFUSED(mr_tensor_to_device(&t, device, nullptr, &error), "copy is null");
    REFUSED(mr_tensor_init_string(&t, absent, &error), "element 0 is null");
    CHECK(t.buffer == nullptr);
    mr_device_close(device);
}

TEST(null_arguments_of_records_are_refused)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_record_reader *reader = nullptr;
    mr_record_index index = {0};
    mr_record_file *file = nullptr;
    mr_string record = {0};
    uint64_t count = 0;
    REFUSED(mr_record_writer_open(nullptr, nullptr, &writer, &error), "path is null");
    REFUSED(mr_record_writer_open(test_path("r"), nullptr, nullptr, &error), "writer is null");
    REFUSED(mr_record_writer_append(nullptr, "a", 1, &error), "writer is null");
    REFUSED(mr_record_writer_append_many(nullptr, "a", &count, 1, &error), "writer is null");
    REFUSED(mr_record_writer_flush(nullptr, false, &error), "writer is null");
    REFUSED(mr_record_writer_close(nullptr, &error), "writer is null");
    CHECK_EQ(mr_record_writer_count(nullptr), 0);
    CHECK_EQ(mr_record_writer_size(nullptr), 0);
    REFUSED(mr_record_reader_open(nullptr, nullptr, &reader, &error), "path is null");
    REFUSED(mr_record_reader_open(test_path("r"), nullptr, nullptr, &error), "reader is null");
    REFUSED(mr_record_reader_next(nullptr, &record, &error), "reader is null");
    CHECK_EQ(mr_record_reader_number(nullptr), 0);
    REFUSED(mr_record_index_open(nullptr, &index, &error), "path is null");
    REFUSED(mr_record_index_open(test_path("r"), nullptr, &error), "index is null");
    REFUSED(mr_record_index_build(test_path("r"), 1, nullptr, &error), "index is null");
    REFUSED(mr_record_index_write(test_path("r"), nullptr, &error), "index is null");
    REFUSED(mr_record_count(nullptr, 1, &count, &error), "path is null");
    REFUSED(mr_record_count(test_path("r"), 1, nullptr, &error), "count is null");
    REFUSED(mr_record_file_open(nullptr, &file, &error), "path is null");
    REFUSED(mr_record_file_read(nullptr, 0, nullptr, &record, &error), "file is null");
    CHECK_EQ(mr_record_file_count(nullptr), 0);
    CHECK(mr_record_file_path(nullptr) == nullptr);
    mr_record_index_deinit(nullptr);
}

TEST(null_arguments_of_examples_and_formats_are_refused)
{
    mr_error error = {0};
    mr_string record = {0};
    mr_feature_view feature = {0};
    mr_example_encoder encoder = {0};
    mr_tensor tensor = {0};
    mr_input_file *file = nullptr;
    size_t count = 0;
    mr_example_add_int64(nullptr, "a", 1);
    mr_example_add_bytes(nullptr, "a", MR_STR("b"));
    mr_example_encoder_deinit(nullptr);
    mr_sequence_encoder_deinit(nullptr);
    REFUSED(mr_example_finish(nullptr, &record, &error), "encoder is null");
    REFUSED(mr_example_finish(&encoder, nullptr, &error), "record is null");
    mr_example_encoder_deinit(&encoder);
    REFUSED(mr_feature_count(nullptr, &count, &error), "feature is null");
    REFUSED(mr_feature_count(&feature, nullptr, &error), "count is null");
    REFUSED(mr_input_file_open(nullptr, false, &file, &error), "path is null");
    REFUSED(mr_input_file_open(test_path("f"), false, nullptr, &error), "file is null");
    CHECK_EQ(mr_input_file_size(nullptr), 0);
    REFUSED(mr_npy_load(nullptr, &tensor, &error), "path is null");
    REFUSED(mr_npy_load(test_path("f"), nullptr, &error), "tensor is null");
    REFUSED(mr_npy_save(test_path("f"), nullptr, &error), "tensor is null");
    mr_csv_row_deinit(nullptr);
    mr_zip_deinit(nullptr);
    REFUSED(mr_csv_reader_next(nullptr, nullptr, &error), "reader is null");
}

TEST(null_arguments_of_iterators_and_images_are_refused)
{
    mr_error error = {0};
    mr_iterator *iterator = nullptr;
    mr_element element = {0};
    mr_tensor t = {0};
    mr_dataset *d = mr_dataset_range(0, 3, 1);
    REFUSED(mr_iterator_new(d, nullptr, nullptr, &error), "iterator is null");
    REFUSED(mr_iterator_next(nullptr, &element, &error), "iterator is null");
    REFUSED(mr_iterator_save(nullptr, &t, &error), "iterator is null");
    REFUSED(mr_iterator_restore(nullptr, &t, &error), "iterator is null");
    REFUSED(mr_dataset_get_single_element(d, nullptr, &error), "element is null");
    mr_iterator_cancel(nullptr);
    CHECK_OK(mr_iterator_new(d, nullptr, &iterator, &error));
    REFUSED(mr_iterator_next(iterator, nullptr, &error), "element is null");
    mr_iterator_free(iterator);
    mr_dataset_free(d);
    REFUSED(mr_image_probe("x", 1, nullptr, &error), "info is null");
    REFUSED(mr_image_decode("x", 1, nullptr, nullptr, &error), "image is null");
    REFUSED(mr_image_encode_jpeg(nullptr, 90, &t, &error), "image is null");
    REFUSED(mr_image_encode_png(nullptr, &t, &error), "image is null");
    REFUSED(mr_image_orient(nullptr, 3, &t, &error), "image is null");
}
