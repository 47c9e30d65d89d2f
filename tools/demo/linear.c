/* Softmax regression: a single dense layer on the pixels, fed by the same kind of pipeline as the network. */
#include "demo/linear.h"

#include <millrace/millrace.h>

constexpr int side = 32;
constexpr int batch_size = 64;
constexpr int epochs = 12;

static mr_dataset *images(const char *pattern, bool training)
{
    const mr_feature features[] = {
        {.name = "image/encoded", .dtype = MR_STRING, .shape = MR_SCALAR},
        {.name = "image/class/label", .dtype = MR_INT64, .shape = MR_SCALAR},
    };
    mr_dataset *data = mr_dataset_records(pattern);
    if (training) {
        data = mr_dataset_shuffle(data, .seed = 1);
        data = mr_dataset_repeat(data, epochs);
    }
    data = mr_dataset_parse_example(data, features, 2);
    data = mr_dataset_decode_image(data, .component = 0,
                                   .image = MR_OPTIONS(mr_image_options, .height = side, .width = side,
                                                       .crop = MR_CROP_CENTER, .mean = {128, 128, 128},
                                                       .std = {64, 64, 64}));
    return mr_dataset_prefetch(mr_dataset_batch(data, batch_size), 2);
}

/* Runs fetch until the data ends and returns its mean over the batches. */
static mr_status run_to_end(mr_session *session, mr_output fetch, mr_node *target, double *mean, mr_error *error)
{
    double sum = 0, count = 0;
    for (;;) {
        mr_tensor value = {0};
        mr_status status =
            mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(fetch), &value, &target, target != nullptr, error);
        if (status == MR_OUT_OF_RANGE) break;
        MR_TRY(status);
        sum += mr_tensor_floats(&value)[0];
        count++;
        mr_tensor_deinit(&value);
    }
    *mean = count > 0 ? sum / count : 0;
    return MR_OK;
}

static mr_status train_and_evaluate(mr_graph *g, mr_session **session, mr_dataset *train, mr_dataset *validation,
                                    int class_count, double *accuracy, mr_error *error)
{
    mr_output data[2] = {0}, held_out[2] = {0};
    mr_graph_iterator(g, "train", train, nullptr, data);
    mr_graph_iterator(g, "validation", validation, nullptr, held_out);
    mr_variable weights =
        mr_get_variable(g, "weights", MR_SHAPE(side * side * 3, class_count), (mr_initializer){.kind = MR_INIT_ZEROS});
    mr_output x = mr_reshape(g, data[0], mr_constant_ints(g, MR_INTS(-1, side * side * 3)));
    mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, data[1], mr_mat_mul(g, x, weights.value));
    mr_node *step = mr_minimize(g, mr_adam(.learning_rate = 3e-4f), loss, (mr_output){0});
    mr_output held_out_x = mr_reshape(g, held_out[0], mr_constant_ints(g, MR_INTS(-1, side * side * 3)));
    mr_output right = mr_accuracy(g, held_out[1], mr_mat_mul(g, held_out_x, weights.value));
    mr_node *init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");

    double mean_loss;
    MR_TRY(mr_session_new(g, nullptr, session, error));
    MR_TRY(mr_session_run(*session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, error));
    MR_TRY(run_to_end(*session, loss, step, &mean_loss, error));
    return run_to_end(*session, right, nullptr, accuracy, error);
}

mr_status linear_accuracy(const char *train, const char *validation, int class_count, double *accuracy, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_dataset *train_data = images(train, true), *validation_data = images(validation, false);
    mr_status status = train_and_evaluate(g, &session, train_data, validation_data, class_count, accuracy, error);
    mr_session_free(session);
    mr_graph_free(g);
    mr_dataset_free(train_data);
    mr_dataset_free(validation_data);
    return status;
}
