/* transfer: trains a classifier for the digits 0 to 4, then uses all its layers but the last for the digits 5 to 9, of
 * which it has seen only a few images.
 *
 *     transfer DIRECTORY [STEPS]
 *
 * The program draws the digits. The first graph is trained and saved to a checkpoint in DIRECTORY. The second graph has
 * the same layers, but a last layer of another name; a saver of the other layers restores them, and only the last layer
 * is trained. Prints the accuracy of each for new images, and for comparison that of the second graph when it starts
 * from random layers. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLASSES = 5, SIZE = 12, PIXELS = SIZE * SIZE, BATCH = 50, MANY = 2000, FEW = 100, TEST = 1000 };

/* ---- Digits ---- */

/* A number below the limit, from a linear congruential generator. */
static int draw(int limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

/* Draws a digit, of 6 x 10 pixels, somewhere in a noisy image. */
static void draw_digit(int digit, float *image)
{
    static const char *const font[10] = {
        "####.##.##.####", ".#.##..#..#.###", "###..#####..###", "###..####..####", "#.##.####..#..#",
        "####..###..####", "####..####.####", "###..#..#..#..#", "####.#####.####", "####.####..####",
    };
    const int left = draw(SIZE - 5), top = draw(SIZE - 9);
    for (int i = 0; i < PIXELS; i++) {
        const int x = i % SIZE - left, y = i / SIZE - top;
        const bool ink = x >= 0 && x < 6 && y >= 0 && y < 10 && font[digit][y / 2 * 3 + x / 2] == '#';
        image[i] = (ink ? 0.6f : 0) + 0.4f * (float)draw(256) / 255;
    }
}

typedef struct digits {
    mr_tensor images, labels; /* float [count, SIZE, SIZE, 1], int32 [count]: 0 to CLASSES - 1 */
} digits;

/* Draws digits from `first` to first + CLASSES - 1. */
static mr_status draw_digits(digits *d, int count, int first, mr_error *error)
{
    MR_TRY(mr_tensor_init(&d->images, MR_FLOAT, MR_SHAPE(count, SIZE, SIZE, 1), error));
    MR_TRY(mr_tensor_init(&d->labels, MR_INT32, MR_SHAPE(count), error));
    for (int i = 0; i < count; i++) {
        mr_tensor_int32s(&d->labels)[i] = i % CLASSES;
        draw_digit(first + i % CLASSES, mr_tensor_floats(&d->images) + i * PIXELS);
    }
    return MR_OK;
}

static void free_digits(digits *d)
{
    mr_tensor_deinit(&d->images);
    mr_tensor_deinit(&d->labels);
}

/* ---- The model ---- */

typedef struct model {
    mr_graph *graph;
    mr_saver *saver;
    mr_output images, labels, accuracy;
    mr_node *init, *train;
} model;

/* name    of the last layer
 * frozen  the last layer is trained, and the others are restored; otherwise all are trained and saved */
static model build(const char *name, bool frozen)
{
    mr_graph *g = mr_graph_new();
    mr_graph_set_seed(g, 1);
    model m = {.graph = g};
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, SIZE, SIZE, 1), .name = "images");
    m.labels = mr_placeholder(g, MR_INT32, .shape = MR_SHAPE(-1), .name = "labels");
    mr_output h = mr_layer_conv2d(g, m.images, .filters = 16, .kernel_size = 5, .activation = mr_activation_relu,
                                  .not_trainable = frozen);
    h = mr_layer_flatten(g, mr_layer_max_pool(g, h, .pool_size = 2));
    h = mr_layer_dense(g, h, .units = 64, .activation = mr_activation_relu, .not_trainable = frozen);

    mr_output logits = mr_layer_dense(g, h, .units = CLASSES, .name = name);
    mr_output loss = mr_loss_sparse_softmax_cross_entropy(g, m.labels, logits);
    m.accuracy = mr_accuracy(g, m.labels, logits);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 2e-3f), loss, (mr_output){0});
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");

    mr_output kept[4]; /* kernel and bias of the layers before the last, in the order in which they were built */
    for (int i = 0; i < 4; i++) kept[i] = mr_graph_variable(g, MR_GLOBAL_VARIABLES, i).ref;
    m.saver = frozen ? mr_saver_new(g, .variables = kept, .variable_count = 4) : mr_saver_new(g);
    return m;
}

static void free_model(model *m)
{
    mr_saver_free(m->saver);
    mr_graph_free(m->graph);
}

/* ---- Training ---- */

/* Trains with `count` digits, from `first` to first + CLASSES - 1, and prints the accuracy for others of these. */
static mr_status learn(mr_session *session, const model *m, const char *label, int first, int count, long steps,
                       mr_error *error)
{
    digits training = {0}, test = {0};
    mr_tensor accuracy = {0};
    mr_status status = draw_digits(&training, count, first, error);
    if (status == MR_OK) status = draw_digits(&test, TEST, first, error);
    for (long step = 0; step < steps && status == MR_OK; step++) {
        const int64_t begin = step * BATCH % count;
        mr_tensor images = {0}, labels = {0};
        status = mr_tensor_rows(&training.images, begin, begin + BATCH, &images, error);
        if (status == MR_OK) status = mr_tensor_rows(&training.labels, begin, begin + BATCH, &labels, error);
        mr_feeds feeds = MR_FEEDS({m->images, images}, {m->labels, labels});
        if (status == MR_OK) status = mr_session_run(session, feeds, (mr_outputs){0}, nullptr, &m->train, 1, error);
        mr_tensor_deinit(&images);
        mr_tensor_deinit(&labels);
    }
    mr_feeds feeds = MR_FEEDS({m->images, test.images}, {m->labels, test.labels});
    if (status == MR_OK) status = mr_session_run(session, feeds, MR_OUTPUTS(m->accuracy), &accuracy, nullptr, 0, error);
    if (status == MR_OK)
        printf("%s, %d images: accuracy %.1f %%\n", label, count, 100 * (double)mr_tensor_floats(&accuracy)[0]);
    mr_tensor_deinit(&accuracy);
    free_digits(&training);
    free_digits(&test);
    return status;
}

/* The digits 0 to 4, with many images. */
static mr_status train_all(const char *directory, long steps, mr_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/digits.ckpt", directory);
    model m = build("zero_to_four", false);
    mr_session *session = nullptr;
    mr_status status = mr_session_new(m.graph, nullptr, &session, error);
    if (status == MR_OK) status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error);
    if (status == MR_OK) status = learn(session, &m, "0 to 4, all layers", 0, MANY, steps, error);
    if (status == MR_OK) status = mr_saver_save(m.saver, session, path, steps, error);
    mr_session_free(session);
    free_model(&m);
    return status;
}

/* The digits 5 to 9, with few images. Without a directory, all layers but the last stay random. */
static mr_status train_last(const char *directory, long steps, mr_error *error)
{
    char path[4096];
    model m = build("five_to_nine", true);
    mr_session *session = nullptr;
    mr_status status = mr_session_new(m.graph, nullptr, &session, error);
    if (status == MR_OK) status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error);
    if (status == MR_OK && directory) status = mr_latest_checkpoint(directory, path, sizeof path, error);
    if (status == MR_OK && directory) status = mr_saver_restore(m.saver, session, path, error);
    const char *label = directory ? "5 to 9, last layer, others restored" : "5 to 9, last layer, others random";
    if (status == MR_OK) status = learn(session, &m, label, 5, FEW, steps, error);
    mr_session_free(session);
    free_model(&m);
    return status;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 2 ? strtol(argv[2], &end, 10) : 400;
    if (argc < 2 || argc > 3 || argv[1][0] == '-' || argv[1][0] == '\0' || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: transfer DIRECTORY [STEPS]\n"), 2;
    mr_error error = {0};
    mr_status status = train_all(argv[1], steps, &error);
    if (status == MR_OK) status = train_last(argv[1], steps, &error);
    if (status == MR_OK) status = train_last(nullptr, steps, &error);
    if (status != MR_OK) fprintf(stderr, "transfer: %s\n", error.message);
    return status == MR_OK ? 0 : 1;
}
