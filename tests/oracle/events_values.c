/* For events_oracle.py. `events_values write DIRECTORY` writes values without a graph, hyperparameters and the
 * projector's configuration; `events_values read FILE` prints each event of a file. */
#include <millrace/millrace.h>

#include <stdio.h>
#include <string.h>

static mr_status write_values(mr_event_writer *writer, mr_error *error)
{
    mr_tensor numbers = {0}, image = {0}, audio = {0}, encoded = {0};
    float values[100];
    uint8_t pixels[60];
    for (int i = 0; i < 100; i++) values[i] = (float)(i * 29 % 41) / 41.0f - 0.5f;
    for (int i = 0; i < 60; i++) pixels[i] = (uint8_t)(i * 4);
    MR_TRY(mr_tensor_init_copy(&numbers, MR_FLOAT, MR_SHAPE(100), values, error));
    MR_TRY(mr_tensor_init_copy(&image, MR_UINT8, MR_SHAPE(4, 5, 3), pixels, error));
    MR_TRY(mr_tensor_init_copy(&audio, MR_FLOAT, MR_SHAPE(50, 2), values, error));
    MR_TRY(mr_image_encode_png(&image, &encoded, error));
    MR_TRY(mr_event_writer_add_scalar(writer, 1, "loss", 0.5f, error));
    MR_TRY(mr_event_writer_add_histogram(writer, 2, "weights", &numbers, error));
    MR_TRY(mr_event_writer_add_image(writer, 3, "image", &image, error));
    MR_TRY(mr_event_writer_add_image(writer, 4, "encoded", &encoded, error));
    MR_TRY(mr_event_writer_add_audio(writer, 5, "audio", &audio, 8000, error));
    MR_TRY(mr_event_writer_add_text(writer, 6, "text", "**first**", error));
    MR_TRY(mr_event_writer_add_text(writer, 7, "text", "second", error));
    MR_TRY(mr_event_writer_add_session_log(writer, 8, MR_SESSION_STOP, nullptr, error));
    MR_TRY(mr_event_writer_add_run_metadata(writer, 9, "run", (mr_string){0}, error));
    mr_tensor_deinit(&numbers);
    mr_tensor_deinit(&image);
    mr_tensor_deinit(&audio);
    mr_tensor_deinit(&encoded);
    return MR_OK;
}

static mr_status write_hparams(mr_event_writer *writer, mr_error *error)
{
    const mr_hparam run[] = {{.name = "rate", .type = MR_HPARAM_FLOAT64, .number = 0.125},
                             {.name = "optimizer", .type = MR_HPARAM_STRING, .text = "adam"},
                             {.name = "is_wide", .type = MR_HPARAM_BOOL, .flag = true}};
    const mr_hparam optimizers[] = {{.type = MR_HPARAM_STRING, .text = "adam"},
                                    {.type = MR_HPARAM_STRING, .text = "sgd"}};
    const mr_hparam_info hparams[] = {
        {.name = "rate", .type = MR_HPARAM_FLOAT64, .has_interval = true, .min = 0.0625, .max = 0.5},
        {.name = "optimizer",
         .type = MR_HPARAM_STRING,
         .display_name = "Optimizer",
         .description = "which",
         .discrete = optimizers,
         .discrete_count = 2},
        {.name = "is_wide", .type = MR_HPARAM_BOOL}};
    const mr_hparam_metric metrics[] = {{.tag = "loss", .is_training = true},
                                        {.group = "eval", .tag = "accuracy", .display_name = "Accuracy"}};
    MR_TRY(mr_event_writer_add_hparams_experiment(writer,
                                                  MR_OPTIONS(mr_hparams_experiment_options, .description = "search",
                                                             .user = "me", .time_created_secs = 100, .hparams = hparams,
                                                             .hparam_count = 3, .metrics = metrics, .metric_count = 2),
                                                  error));
    MR_TRY(mr_event_writer_add_hparams_start(
        writer, run, 3, MR_OPTIONS(mr_hparams_start_options, .group_name = "g", .start_time_secs = 101), error));
    return mr_event_writer_add_hparams_end(writer, MR_HPARAMS_SUCCESS, 102, error);
}

static mr_status write_all(const char *directory, mr_error *error)
{
    mr_event_writer *writer = nullptr;
    const mr_projector_embedding embeddings[] = {
        {.tensor_name = "embedding:0", .metadata_path = "labels \"x\"\\\n\xc3\xa9.tsv"},
        {.tensor_name = "other",
         .tensor_path = "other.tsv",
         .rows = 10,
         .columns = 3,
         .sprite_path = "sprite.png",
         .sprite_width = 16,
         .sprite_height = 12},
    };
    MR_TRY(mr_event_writer_open_with(
        directory, MR_OPTIONS(mr_event_writer_options, .filename_suffix = ".mine", .flush_secs = 1), &writer, error));
    MR_TRY(write_values(writer, error));
    MR_TRY(mr_event_writer_reopen(writer, error));
    MR_TRY(write_hparams(writer, error));
    MR_TRY(mr_event_writer_close(writer, error));
    return mr_projector_config_write(directory, "model.ckpt-7", embeddings, 2, error);
}

static void print_value(const mr_event_value *v)
{
    printf("  %s [%s|%s|%.*s] ", v->tag, v->plugin_name, v->display_name, (int)v->plugin_data.size_bytes,
           v->plugin_data.data != nullptr ? v->plugin_data.data : "");
    if (v->kind == MR_EVENT_VALUE_SCALAR) printf("scalar %.9g\n", (double)v->scalar);
    if (v->kind == MR_EVENT_VALUE_IMAGE)
        printf("image %d %d %d %zu\n", v->image.height, v->image.width, v->image.channels, v->image.encoded.size_bytes);
    if (v->kind == MR_EVENT_VALUE_AUDIO)
        printf("audio %g %lld %lld %zu %s\n", (double)v->audio.sample_rate, (long long)v->audio.channels,
               (long long)v->audio.frames, v->audio.encoded.size_bytes, v->audio.content_type);
    if (v->kind == MR_EVENT_VALUE_HISTOGRAM) {
        double sum = 0;
        for (int64_t i = 0; i < v->histogram.bucket_count; i++) sum += v->histogram.counts[i] * (double)(i + 1);
        printf("histogram %.17g %.17g %.17g %.17g %lld %.17g\n", v->histogram.min, v->histogram.max,
               v->histogram.number, v->histogram.sum, (long long)v->histogram.bucket_count, sum);
    }
    if (v->kind == MR_EVENT_VALUE_TENSOR) {
        char text[MR_SHAPE_TEXT_SIZE];
        printf("tensor %s %s\n", mr_dtype_name(v->tensor.dtype), mr_shape_text(v->tensor.shape, text, sizeof text));
    }
}

static mr_status read_all(const char *path, mr_error *error)
{
    mr_event_reader *reader = nullptr;
    const mr_event_message *event = nullptr;
    MR_TRY(mr_event_reader_open(path, &reader, error));
    mr_status status;
    while ((status = mr_event_reader_next(reader, &event, error)) == MR_OK) {
        printf("%d %lld %.17g %zu %s %d %s\n", (int)event->kind, (long long)event->step, event->wall_time,
               event->bytes.size_bytes, event->tag != nullptr ? event->tag : "-", (int)event->session,
               event->checkpoint_path != nullptr ? event->checkpoint_path : "-");
        for (int32_t i = 0; i < event->value_count; i++) print_value(&event->values[i]);
    }
    mr_event_reader_close(reader);
    return status == MR_OUT_OF_RANGE ? MR_OK : status;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    if (argc != 3) return 1;
    mr_status status = strcmp(argv[1], "write") == 0 ? write_all(argv[2], &error) : read_all(argv[2], &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    return status != MR_OK;
}
