/* A training run that takes milliseconds and has everything that must be resumed: records that are shuffled, decoded,
 * cropped and flipped at random, batch normalization, dropout, Adam's slots, a decaying learning rate. */
#ifndef MR_TESTS_TRAIN_SMALL_TRAINING_H
#define MR_TESTS_TRAIN_SMALL_TRAINING_H

#include "tests/test.h"

#include <millrace/millrace.h>

constexpr int small_records = 37, small_classes = 3;

/* Small images of three kinds of stripes, in one record file. */
static inline void small_records_write(const char *path)
{
    mr_error error = {0};
    mr_record_writer *writer = nullptr;
    mr_record_writer_options options = {.size = sizeof options, .index = true, .atomic = true};
    mr_example_encoder encoder = {0};
    CHECK_OK(mr_record_writer_open(path, &options, &writer, &error));
    for (int i = 0; i < small_records; i++) {
        mr_tensor pixels = {0}, encoded = {0};
        CHECK_OK(mr_tensor_init(&pixels, MR_UINT8, MR_SHAPE(12 + i % 3, 10, 3), &error));
        for (int64_t at = 0; at < mr_tensor_count(&pixels); at++)
            mr_tensor_uint8s(&pixels)[at] = (uint8_t)(at / 3 % (2 + i % small_classes) * 90 + i);
        CHECK_OK(mr_image_encode_png(&pixels, &encoded, &error));
        mr_example_add_bytes(&encoder, "image/encoded", mr_tensor_strings(&encoded)[0]);
        mr_example_add_int64(&encoder, "image/class/label", i % small_classes);
        mr_string record;
        CHECK_OK(mr_example_finish(&encoder, &record, &error));
        CHECK_OK(mr_record_writer_append(writer, record.data, record.size_bytes, &error));
        mr_tensor_deinit(&pixels);
        mr_tensor_deinit(&encoded);
    }
    CHECK_OK(mr_record_writer_close(writer, &error));
    mr_example_encoder_deinit(&encoder);
}

static inline mr_output small_network(mr_graph *g, mr_output images)
{
    mr_output h = mr_layer_conv2d(g, images, .filters = 4, .kernel_size = 3, .same = true, .use_bias = false);
    h = mr_relu(g, mr_layer_batch_normalization(g, h, .training = true));
    h = mr_layer_dropout(g, mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2)), .rate = 0.4f,
                         .training = true);
    return mr_layer_dense(g, h, .units = small_classes);
}

typedef struct small_graph {
    mr_graph *graph;
    mr_output loss;
    mr_node *update;
} small_graph;

static inline small_graph small_graph_new(const char *records)
{
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 3);
    mr_feature features[] = {{"image/encoded", MR_STRING}, {"image/class/label", MR_INT64}};
    mr_image_options image = {
        .size = sizeof image, .height = 6, .width = 6, .crop = MR_CROP_RANDOM_RESIZED, .area_min = 0.5f};
    image.random_flip_left_right = true;
    mr_dataset *d = mr_dataset_repeat(mr_dataset_shuffle(mr_dataset_records(records), .seed = 5), MR_INFINITE);
    d = mr_dataset_decode_image(mr_dataset_parse_example(d, features, 2), .seed = 6, .image = &image);
    d = mr_dataset_prefetch(mr_dataset_batch(d, 8, .drop_remainder = true), 2);
    mr_output batch[2] = {0};
    mr_graph_iterator(g, "data", d, MR_OPTIONS(mr_iterator_options, .threads = 2), batch);
    mr_dataset_free(d);
    mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, batch[1], small_network(g, batch[0]));
    mr_variable step = mr_global_step(g);
    mr_output rate = mr_cosine_decay(g, 0.01f, step.value, 200, 0.1f);
    mr_summary_scalar(g, "loss", loss);
    mr_summary_histogram(g, "kernel", mr_graph_find_output(g, "conv2d/kernel/read"));
    return (small_graph){g, loss, mr_minimize(g, mr_adam(.learning_rate_output = rate), loss, step.ref)};
}

static inline mr_status small_training(const char *records, const char *directory, int64_t last_step,
                                       int64_t save_checkpoint_steps, mr_error *error)
{
    const small_graph small = small_graph_new(records);
    const mr_session_options session = {.size = sizeof session, .threads = 2};
    mr_status status =
        mr_training_run(small.graph, small.update,
                        MR_TRAINING_OPTIONS(.checkpoint_dir = directory, .last_step = last_step,
                                            .save_checkpoint_steps = save_checkpoint_steps, .save_summaries_steps = 2,
                                            .max_to_keep = 3, .loss = small.loss, .session = &session),
                        error);
    mr_graph_free(small.graph);
    return status;
}

/* The same under a monitored training session. */
static inline mr_status small_monitored_training(const char *records, const char *directory, int64_t last_step,
                                                 int64_t save_checkpoint_steps, mr_error *error)
{
    const small_graph small = small_graph_new(records);
    const mr_session_options options = {.size = sizeof options, .threads = 2};
    mr_saver *saver = mr_saver_new(small.graph, .max_to_keep = 3);
    mr_monitored_session *session = nullptr;
    mr_status status = mr_monitored_training_session_new(
        small.graph,
        MR_OPTIONS(mr_monitored_training_session_options, .checkpoint_dir = directory, .session = &options,
                   .save_checkpoint_steps = save_checkpoint_steps, .save_summaries_steps = 2,
                   .scaffold = MR_OPTIONS(mr_scaffold, .saver = saver),
                   .hooks = MR_HOOKS(mr_stop_at_step_hook(.last_step = last_step), mr_nan_tensor_hook(small.loss))),
        &session, error);
    while (status == MR_OK && !mr_monitored_session_should_stop(session))
        status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &small.update, 1, error);
    status = mr_monitored_session_close(session, status, error);
    mr_saver_free(saver);
    mr_graph_free(small.graph);
    return status;
}

#endif
