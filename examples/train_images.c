/* train-images: trains a convolutional network on images.
 *
 *     tfrecord-make --out records photos    converts images to records; photos contains one directory for each class
 *     train-images records run              trains; after an interruption, the same command resumes
 *     train-images records run --evaluate   prints the accuracy of the last checkpoint on the validation images
 *
 * run/ then contains checkpoints and event files: loss, accuracy, learning rate, images, histograms. */
#include <millrace/millrace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A few unusable files among many photographs are normal and do not affect the result. More of them indicate a fault
 * of the disk or of the conversion, which should be found before hours of training. */
enum { SIZE = 64, BATCH = 32, BUFFER = 1000, BAD_RECORDS_MAX = 10 };

/* Records that cannot be used. Each is counted once, in however many epochs it occurs. */
typedef struct bad_records {
    int64_t count, max;
    char **messages; /* each names file and record */
} bad_records;

typedef struct arguments {
    const char *records, *run;
    int64_t steps;
    int classes;
    bool evaluate, restart_data;
    bad_records *bad;
} arguments;

/* Skips a record while at most max records are bad. Called by the pipeline for each element that fails. */
static bool skip_bad(void *context, const mr_error *error)
{
    bad_records *bad = context;
    if (error->status != MR_DATA_LOSS && error->status != MR_INVALID_ARGUMENT) return false;
    for (int64_t i = 0; i < bad->count; i++)
        if (strcmp(bad->messages[i], error->message) == 0) return true;
    char **messages = realloc(bad->messages, (size_t)(bad->count + 1) * sizeof *messages);
    if (messages != nullptr) bad->messages = messages;
    if (bad->count == bad->max || messages == nullptr) return false;
    messages[bad->count] = strdup(error->message);
    if (messages[bad->count] == nullptr) return false;
    bad->count++;
    fprintf(stderr, "%strain-images: skipped: %s\n", isatty(2) ? "\r\033[K" : "", error->message);
    return true;
}

/* Builds the pipeline from records to batches: images [BATCH, SIZE, SIZE, 3] of about -2 … 2 and labels [BATCH], as
 * outputs of the graph. */
static void images(mr_graph *g, const arguments *a, bool training, mr_output batch[2])
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/*-%s-*.tfrecord", a->records, training ? "train" : "validation");
    mr_dataset *d = mr_dataset_records(pattern);
    /* Compressed records have no random access, which a global shuffle needs. */
    bool is_stream = mr_dataset_status(d, nullptr) == MR_OK && mr_dataset_cardinality(d) == MR_CARDINALITY_UNKNOWN;
    if (training && is_stream)
        fprintf(stderr, "train-images: no random access to compressed records: shuffling %d at a time\n", BUFFER);
    if (training)
        d = mr_dataset_repeat(mr_dataset_shuffle(d, .buffer_size = is_stream ? BUFFER : 0, .seed = 1), MR_INFINITE);
    mr_feature features[] = {{"image/encoded", MR_STRING}, {"image/class/label", MR_INT64}};
    d = mr_dataset_parse_example(d, features, 2);
    mr_image_options image = {
        .size = sizeof image, .height = SIZE, .width = SIZE, .mean = {124, 117, 104}, .std = {59, 57, 57}};
    image.crop = training ? MR_CROP_RANDOM_RESIZED : MR_CROP_CENTER;
    image.area_min = 0.5f;
    image.random_flip_left_right = training;
    d = mr_dataset_decode_image(d, .seed = 2, .image = &image);
    d = mr_dataset_ignore_errors(d, .ignores = skip_bad, .context = a->bad);
    d = mr_dataset_prefetch(mr_dataset_batch(d, BATCH, .drop_remainder = training), 2);
    mr_graph_iterator(g, training ? "training" : "validation", d, nullptr, batch);
    mr_dataset_free(d); /* the graph has its own reference */
}

/* Convolution, batch normalization, relu, pooling. */
static mr_output block(mr_graph *g, mr_output h, int filters, bool training)
{
    h = mr_layer_conv2d(g, h, .filters = filters, .kernel_size = 3, .same = true, .use_bias = false,
                        .weight_decay = 1e-4f, .kernel_initializer = {.kind = MR_INIT_HE_NORMAL});
    h = mr_relu(g, mr_layer_batch_normalization(g, h, .training = training, .momentum = 0.9f));
    return mr_layer_max_pool(g, h, .pool_size = 2);
}

/* The logits of each class. */
static mr_output network(mr_graph *g, mr_output images, int classes, bool training)
{
    mr_output h = block(g, images, 16, training);
    h = block(g, h, 32, training);
    h = block(g, h, 64, training);
    h = block(g, h, 64, training);
    h = mr_layer_dropout(g, mr_layer_flatten(g, h), .rate = 0.3f, .training = training);
    return mr_layer_dense(g, h, .units = classes, .weight_decay = 1e-4f);
}

static void show(void *context, const char *text)
{
    fputs(text, context);
}

static mr_status train(mr_graph *g, const arguments *a, mr_error *error)
{
    mr_output batch[2] = {0};
    mr_graph_set_seed(g, 1);
    images(g, a, true, batch);
    mr_output logits = network(g, batch[0], a->classes, true);
    mr_loss_sparse_softmax_cross_entropy(g, batch[1], logits);
    mr_output loss = mr_loss_total(g), accuracy = mr_accuracy(g, batch[1], logits);
    mr_variable step = mr_global_step(g);
    mr_output rate = mr_cosine_decay(g, 3e-3f, step.value, a->steps, 0.01f);
    mr_node *update = mr_minimize(g, mr_adam(.learning_rate_output = rate), loss, step.ref);
    mr_summary_scalar(g, "loss", loss);
    mr_summary_scalar(g, "accuracy", accuracy);
    mr_summary_scalar(g, "learning_rate", rate);
    mr_summary_image(g, "images", batch[0], 4);
    mr_summary_histogram(g, "kernel", mr_graph_find_output(g, "conv2d/kernel/read"));
    return mr_training_run(g, update,
                           MR_TRAINING_OPTIONS(.checkpoint_dir = a->run, .last_step = a->steps,
                                               .save_checkpoint_steps = 100, .save_summaries_steps = 20, .loss = loss,
                                               .restart_data = a->restart_data, .progress = show,
                                               .progress_context = stderr, .is_terminal = isatty(2), .unit = "images",
                                               .units_per_step = BATCH),
                           error);
}

static mr_status evaluate(mr_graph *g, const arguments *a, mr_error *error)
{
    mr_output batch[2] = {0};
    images(g, a, false, batch);
    mr_output logits = network(g, batch[0], a->classes, false);
    mr_output best = mr_arg_max(g, logits, mr_constant_int32(g, 1));
    mr_output hits = mr_cast(g, mr_equal(g, best, batch[1]), MR_FLOAT);
    mr_saver *saver = mr_saver_new(g);
    mr_session *session = nullptr;
    char checkpoint[4096];
    mr_status status = mr_session_new(g, nullptr, &session, error);
    if (status == MR_OK) status = mr_latest_checkpoint(a->run, checkpoint, sizeof checkpoint, error);
    if (status == MR_OK) status = mr_saver_restore(saver, session, checkpoint, error);
    double right = 0, all = 0;
    mr_tensor result = {0};
    while (status == MR_OK) {
        status = mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(hits), &result, nullptr, 0, error);
        for (int64_t i = 0; i < mr_tensor_count(&result); i++, all++) right += (double)mr_tensor_floats(&result)[i];
        mr_tensor_deinit(&result);
    }
    mr_saver_free(saver);
    mr_session_free(session);
    if (status != MR_OUT_OF_RANGE) return status;
    if (all == 0) return mr_fail(error, MR_NOT_FOUND, "%s has no validation images", a->records);
    return printf("validation accuracy: %.1f %%\n", 100 * right / all), MR_OK;
}

/* labels.txt has one line for each class. */
static int count_classes(const char *records)
{
    char text[4096];
    int lines = 0;
    snprintf(text, sizeof text, "%s/labels.txt", records);
    FILE *file = fopen(text, "r");
    while (file != nullptr && fgets(text, sizeof text, file) != nullptr) lines++;
    if (file != nullptr) fclose(file);
    return lines;
}

static const char usage[] = "train-images trains a convolutional network on images.\n"
                            "\n"
                            "    tfrecord-make --out records photos\n"
                            "    train-images records run\n"
                            "\n"
                            "usage: train-images RECORDS RUN [options]\n"
                            "\n"
                            "An interrupted run is resumed by the same command.\n"
                            "\n"
                            "  RECORDS                directory of records written by tfrecord-make\n"
                            "  RUN                    directory of checkpoints and event files\n"
                            "  --steps N              train until step N (default 800)\n"
                            "  --max-bad-records N    skip up to N records that cannot be read or decoded\n"
                            "                         (default 10); 0: the first one ends the run\n"
                            "  --restart-data         resume from the saved weights, but restart the data\n"
                            "                         from the beginning, for example after RECORDS changed\n"
                            "  --evaluate             print the accuracy on the validation records\n"
                            "  --help                 print this help\n"
                            "  --version              print the version\n"
                            "\n"
                            "exit status: 0 success, 1 failure, 2 invalid options\n";

/* Returns -1 to continue, otherwise the exit status. */
static int parse_arguments(mr_flags *flags, int argc, char **argv, arguments *a)
{
    bool version = false;
    mr_error error = {0};
    mr_flags_int(flags, "steps", &a->steps, nullptr, .lower_bound = 1);
    mr_flags_int(flags, "max-bad-records", &a->bad->max, nullptr, .lower_bound = 0);
    mr_flags_bool(flags, "restart-data", &a->restart_data, nullptr);
    mr_flags_bool(flags, "evaluate", &a->evaluate, nullptr);
    mr_flags_bool(flags, "version", &version, nullptr);
    mr_status status = mr_flags_parse(flags, argc, argv, &error);
    const mr_names rest = mr_flags_arguments(flags);
    if (mr_flags_help(flags) != nullptr) return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? 1 : 0;
    if (version) return puts("train-images (millrace) " MR_VERSION) < 0 || fflush(stdout) != 0 ? 1 : 0;
    const bool has_steps = mr_flags_count(flags, "steps") > 0;
    if (status == MR_OK && a->evaluate && (has_steps || a->restart_data)) {
        fprintf(stderr, "train-images: %s has no effect with --evaluate, which does not train\n",
                has_steps ? "--steps" : "--restart-data");
        return 2;
    }
    if (status == MR_OK && rest.count != 2)
        status = mr_fail(&error, MR_INVALID_ARGUMENT, "expected RECORDS and RUN, found %d arguments", (int)rest.count);
    if (status != MR_OK)
        return fprintf(stderr,
                       "train-images: %s\nusage: train-images RECORDS RUN [options]\nTry 'train-images --help'.\n",
                       error.message),
               2;
    a->records = rest.items[0], a->run = rest.items[1];
    return -1;
}

static void report(mr_status status, const mr_error *error, const bad_records *bad)
{
    if (bad->count > 0)
        fprintf(stderr, "train-images: %lld bad record%s skipped (--max-bad-records %lld)\n", (long long)bad->count,
                bad->count == 1 ? " was" : "s were", (long long)bad->max);
    if (status != MR_OK) fprintf(stderr, "train-images: %s\n", error->message);
    if (status == MR_FAILED_PRECONDITION)
        fprintf(stderr, "train-images: --restart-data resumes with the saved weights and the current data\n");
}

int main(int argc, char **argv)
{
    bad_records bad = {.max = BAD_RECORDS_MAX};
    arguments a = {.steps = 800, .bad = &bad};
    mr_flags *flags = mr_flags_new(nullptr);
    int exit_code = parse_arguments(flags, argc, argv, &a);
    if (exit_code >= 0) return mr_flags_free(flags), exit_code;
    (void)signal(SIGXFSZ, SIG_IGN); /* a checkpoint that exceeds the file size limit is an error */
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    a.classes = count_classes(a.records);
    if (a.classes == 1) fprintf(stderr, "train-images: %s has a single class, so any accuracy is 100 %%\n", a.records);
    mr_status status =
        a.classes == 0 ? mr_fail(&error, MR_NOT_FOUND, "%s has no labels.txt; write it with tfrecord-make", a.records)
        : a.evaluate   ? evaluate(g, &a, &error)
                       : train(g, &a, &error);
    report(status, &error, &bad);
    mr_graph_free(g);
    for (int64_t i = 0; i < bad.count; i++) free(bad.messages[i]);
    free(bad.messages);
    mr_flags_free(flags);
    return status == MR_OK ? 0 : 1;
}
