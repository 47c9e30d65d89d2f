/* autoencoder: learns to describe an image of a digit with a few numbers, and to draw it again from them. Convolutions
 * make the image smaller; transposed convolutions make it larger again.
 *
 *     autoencoder [STEPS]
 *
 * The digits are drawn by the program. Prints the mean squared error of a pixel before and after the training, and two
 * images next to their reconstructions. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, SIZE = 16, PIXELS = SIZE * SIZE, CODE = 16, SHOWN = 2 };

/* ---- Digits ---- */

/* A number below the limit, from a linear congruential generator. */
static int draw(int limit)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)limit);
}

/* Draws a random digit, of 6 x 10 pixels, somewhere in the image. Pixels are 0 to 1. */
static void draw_digit(float *image)
{
    static const char *const font[10] = {
        "####.##.##.####", ".#.##..#..#.###", "###..#####..###", "###..####..####", "#.##.####..#..#",
        "####..###..####", "####..####.####", "###..#..#..#..#", "####.#####.####", "####.####..####",
    };
    const char *shape = font[draw(10)];
    const int left = 1 + draw(SIZE - 7), top = 1 + draw(SIZE - 11);
    const float ink = 0.7f + 0.03f * (float)draw(11);
    memset(image, 0, PIXELS * sizeof *image);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 6; x++)
            if (shape[y / 2 * 3 + x / 2] == '#') image[(top + y) * SIZE + left + x] = ink;
}

static void print_image_row(const float *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    for (int x = 0; x < SIZE; x++) putchar(shades[(int)(pixels[x] * 9.999f)]);
}

/* ---- The model ---- */

typedef struct model {
    mr_output images, copies, error; /* float [BATCH, SIZE, SIZE, 1]; the same; a scalar */
    mr_node *init, *train;
} model;

static model build(mr_graph *g)
{
    model m = {0};
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(BATCH, SIZE, SIZE, 1), .name = "images");

    /* 16 x 16 x 1 -> 8 x 8 x 8 -> 4 x 4 x 16 -> 16 numbers */
    mr_output h = mr_layer_conv2d(g, m.images, .filters = 8, .kernel_size = 5, .strides = 2, .same = true,
                                  .activation = mr_activation_relu);
    h = mr_layer_conv2d(g, h, .filters = 16, .kernel_size = 3, .strides = 2, .same = true,
                        .activation = mr_activation_relu);
    mr_output code = mr_layer_dense(g, mr_layer_flatten(g, h), .units = CODE, .name = "code");

    /* and back */
    h = mr_layer_dense(g, code, .units = 4 * 4 * 16, .activation = mr_activation_relu);
    h = mr_reshape(g, h, mr_constant_ints(g, MR_INTS(BATCH, 4, 4, 16)));
    h = mr_layer_conv2d_transpose(g, h, .filters = 8, .kernel_size = 3, .strides = 2, .same = true,
                                  .activation = mr_activation_relu);
    mr_output logits = mr_layer_conv2d_transpose(g, h, .filters = 1, .kernel_size = 5, .strides = 2, .same = true);
    m.copies = mr_sigmoid(g, logits);

    m.error = mr_loss_mean_squared_error(g, m.images, m.copies);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 3e-3f), m.error, (mr_output){0});
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

static void fill_batch(mr_tensor *images)
{
    for (int i = 0; i < BATCH; i++) draw_digit(mr_tensor_floats(images) + i * PIXELS);
}

/* Runs the model for digits that it has not seen. */
static mr_status test(mr_session *session, const model *m, mr_tensor *images, const char *label, bool prints_images,
                      mr_error *error)
{
    mr_tensor results[2] = {0};
    fill_batch(images);
    mr_feeds feeds = MR_FEEDS({m->images, *images});
    MR_TRY(mr_session_run(session, feeds, MR_OUTPUTS(m->error, m->copies), results, nullptr, 0, error));
    printf("%s: error %.4f\n", label, (double)mr_tensor_floats(&results[0])[0]);
    for (int y = 0; prints_images && y < SIZE * SHOWN; y++) {
        print_image_row(mr_tensor_floats(images) + y * SIZE);
        printf(" | ");
        print_image_row(mr_tensor_floats(&results[1]) + y * SIZE);
        putchar('\n');
    }
    mr_tensor_deinit(&results[0]);
    mr_tensor_deinit(&results[1]);
    return MR_OK;
}

static mr_status learn(mr_session *session, const model *m, mr_tensor *images, long steps, mr_error *error)
{
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    MR_TRY(test(session, m, images, "before", false, error));
    for (long step = 1; step <= steps; step++) {
        mr_tensor result = {0};
        fill_batch(images);
        mr_feeds feeds = MR_FEEDS({m->images, *images});
        MR_TRY(mr_session_run(session, feeds, MR_OUTPUTS(m->error), &result, &m->train, 1, error));
        if (step % 200 == 0) printf("step %ld  error %.4f\n", step, (double)mr_tensor_floats(&result)[0]);
        mr_tensor_deinit(&result);
    }
    return test(session, m, images, "after", true, error);
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 1000;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000)
        return fprintf(stderr, "usage: autoencoder [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_tensor images = {0};
    mr_graph_set_seed(g, 1);
    model m = build(g);
    mr_status status = mr_session_new(g, nullptr, &session, &error);
    if (status == MR_OK) status = mr_tensor_init(&images, MR_FLOAT, MR_SHAPE(BATCH, SIZE, SIZE, 1), &error);
    if (status == MR_OK) status = learn(session, &m, &images, steps, &error);
    if (status != MR_OK) fprintf(stderr, "autoencoder: %s\n", error.message);
    mr_tensor_deinit(&images);
    mr_session_free(session);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
