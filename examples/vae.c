/* vae: a variational autoencoder. An encoder describes images of discs by a few numbers with a normal distribution, a
 * decoder draws images from such numbers; afterwards it draws discs that nobody has drawn before.
 *
 *     vae [STEPS]
 *
 * Prints the bound on the log likelihood of an image, in nats, before and after the training, then new images. */
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 100, SIZE = 12, PIXELS = SIZE * SIZE, LATENT = 3, UNITS = 128, SAMPLES = 3 };

/* ---- Images ---- */

/* A number from 0 to less than 1, from a linear congruential generator. */
static float draw(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / (1 << 24);
}

/* Draws discs of any place and size that fit: 1 inside, 0 outside. */
static void fill_batch(float *images)
{
    for (int i = 0; i < BATCH; i++) {
        const float radius = 1.5f + 2.5f * draw(), range = SIZE - 1 - 2 * radius;
        const float x = radius + range * draw(), y = radius + range * draw();
        for (int at = 0; at < PIXELS; at++) {
            const int column = at % SIZE, row = at / SIZE;
            const float dx = (float)column - x, dy = (float)row - y;
            *images++ = dx * dx + dy * dy <= radius * radius;
        }
    }
}

static void print_images(const float *images)
{
    static const char shades[] = " .:-=+*#%@";
    for (int row = 0; row < SIZE; row++)
        for (int i = 0; i < SAMPLES; i++)
            for (int column = 0; column < SIZE; column++) {
                const char shade = shades[(int)(images[i * PIXELS + row * SIZE + column] * 9.99f)];
                printf("%c%c%s", shade, shade, column < SIZE - 1 ? "" : i < SAMPLES - 1 ? " | " : "\n");
            }
}

/* ---- The model ---- */

typedef struct model {
    mr_output images, bound, samples; /* float [BATCH, PIXELS], scalar, [SAMPLES, PIXELS] */
    mr_node *train, *init;
} model;

static mr_output scale(mr_graph *g, mr_output values, float factor)
{
    return mr_mul(g, values, mr_constant_float(g, factor));
}

/* Numbers of the standard normal distribution, [rows, LATENT]. */
static mr_output normal(mr_graph *g, int64_t rows)
{
    return mr_random_standard_normal(g, mr_constant_ints(g, MR_INTS(rows, LATENT)), MR_FLOAT);
}

static void encode(mr_graph *g, mr_output images, mr_output *mean, mr_output *log_variance)
{
    mr_graph_push_variable_scope(g, "encoder");
    mr_output hidden = mr_layer_dense(g, images, .units = UNITS, .activation = mr_activation_relu, .name = "hidden");
    *mean = mr_layer_dense(g, hidden, .units = LATENT, .name = "mean");
    *log_variance = mr_layer_dense(g, hidden, .units = LATENT, .name = "log_variance");
    mr_graph_pop_variable_scope(g);
}

/* The logits of the pixels. What trains and what draws has the same variables. */
static mr_output decode(mr_graph *g, mr_output latent)
{
    mr_graph_push_variable_scope(g, "decoder", .reuse = MR_AUTO_REUSE);
    mr_output hidden = mr_layer_dense(g, latent, .units = UNITS, .activation = mr_activation_relu, .name = "hidden1");
    hidden = mr_layer_dense(g, hidden, .units = UNITS, .activation = mr_activation_relu, .name = "hidden2");
    mr_output logits = mr_layer_dense(g, hidden, .units = PIXELS, .name = "logits");
    mr_graph_pop_variable_scope(g);
    return logits;
}

/* The Kullback-Leibler divergence of normal distributions from the standard one: the sum of
 * (variance + mean² - 1 - log variance) / 2, for one image. */
static mr_output divergence(mr_graph *g, mr_output mean, mr_output log_variance)
{
    mr_output terms = mr_add_v2(g, mr_exp(g, log_variance), mr_square(g, mean));
    terms = mr_sub(g, terms, mr_add_v2(g, log_variance, mr_constant_float(g, 1)));
    return scale(g, mr_sum(g, terms, mr_constant_ints(g, MR_INTS(0, 1))), 0.5f / BATCH);
}

static model build(mr_graph *g)
{
    model m = {0};
    m.images = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(BATCH, PIXELS), .name = "images");
    mr_output mean, log_variance;
    encode(g, m.images, &mean, &log_variance);
    /* The random numbers do not depend on the variables, so that gradients flow through mean and deviation. */
    mr_output deviation = mr_exp(g, scale(g, log_variance, 0.5f));
    mr_output latent = mr_add_v2(g, mean, mr_mul(g, deviation, normal(g, BATCH)));
    mr_output pixel_loss = mr_loss_sigmoid_cross_entropy(g, m.images, decode(g, latent));
    mr_output loss = mr_add_v2(g, scale(g, pixel_loss, PIXELS), divergence(g, mean, log_variance));
    m.bound = mr_neg(g, loss);
    m.train = mr_minimize(g, mr_adam(.learning_rate = 1e-3f), loss, (mr_output){0});
    m.samples = mr_sigmoid(g, decode(g, normal(g, SAMPLES)));
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

static mr_status learn(mr_session *session, const model *m, int steps, mr_error *error)
{
    mr_tensor images = {0}, result = {0};
    MR_TRY(mr_tensor_init(&images, MR_FLOAT, MR_SHAPE(BATCH, PIXELS), error));
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    for (int step = 0; step <= steps; step++) { /* the bound is that before the training of the step */
        fill_batch(mr_tensor_floats(&images));
        mr_feeds feeds = MR_FEEDS({m->images, images});
        MR_TRY(mr_session_run(session, feeds, MR_OUTPUTS(m->bound), &result, &m->train, step < steps, error));
        if (step % 500 == 0 || step == steps)
            printf("step %d  bound %.2f\n", step, (double)mr_tensor_floats(&result)[0]);
        mr_tensor_deinit(&result);
    }
    mr_tensor_deinit(&images);
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m->samples), &result, nullptr, 0, error));
    print_images(mr_tensor_floats(&result));
    mr_tensor_deinit(&result);
    return MR_OK;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 2000;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000) return fprintf(stderr, "usage: vae [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_graph_set_seed(g, 1);
    model m = build(g);
    /* The graph's seed is that of the initial values; the session's, that of all other random numbers. */
    const mr_session_options *seeded = MR_OPTIONS(mr_session_options, .has_seed = true, .seed = 1);
    mr_status status = mr_session_new(g, seeded, &session, &error);
    if (status == MR_OK) status = learn(session, &m, (int)steps, &error);
    if (status != MR_OK) fprintf(stderr, "vae: %s\n", error.message);
    mr_session_free(session);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
