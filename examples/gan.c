/* gan: a generative adversarial network in the plane. A generator turns noise into points; a discriminator learns to
 * tell them from the points of a ring; the generator learns to deceive it, until its points form a ring, too.
 *
 *     gan [STEPS]
 *
 * Prints the losses, then how far the generated points are from the center, and a picture of them. */
#include <math.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256, NOISE = 4, UNITS = 64, ROWS = 20 };

/* The distance of the ring's points from the center, and its standard deviation. */
static const float radius = 2.0f, width = 0.1f;

/* ---- The two networks ---- */

static mr_output normal(mr_graph *g, int64_t columns)
{
    return mr_random_standard_normal(g, mr_constant_ints(g, MR_INTS(BATCH, columns)), MR_FLOAT);
}

/* Points at random angles, [BATCH, 2]. */
static mr_output ring(mr_graph *g)
{
    mr_output turns = mr_random_uniform(g, mr_constant_ints(g, MR_INTS(BATCH, 1)), MR_FLOAT);
    mr_output angles = mr_mul(g, turns, mr_constant_float(g, 6.2831853f));
    mr_output noise = mr_mul(g, normal(g, 1), mr_constant_float(g, width));
    mr_output directions = mr_concat_v2(g, MR_OUTPUTS(mr_cos(g, angles), mr_sin(g, angles)), mr_constant_int32(g, 1));
    return mr_mul(g, directions, mr_add_v2(g, noise, mr_constant_float(g, radius)));
}

/* Two hidden layers. The scope names the variables; the second network of a scope has the first one's. */
static mr_output network(mr_graph *g, const char *scope, mr_output input, int32_t outputs)
{
    mr_graph_push_variable_scope(g, scope, .reuse = MR_AUTO_REUSE);
    mr_output hidden = mr_layer_dense(g, input, .units = UNITS, .activation = mr_activation_relu, .name = "hidden1");
    hidden = mr_layer_dense(g, hidden, .units = UNITS, .activation = mr_activation_relu, .name = "hidden2");
    mr_output result = mr_layer_dense(g, hidden, .units = outputs, .name = "output");
    mr_graph_pop_variable_scope(g);
    return result;
}

/* The loss of a discriminator that should answer `label`: 1 for a point of the ring, 0 for a generated one. */
static mr_output answer(mr_graph *g, mr_output logits, float label)
{
    mr_output labels = mr_fill(g, mr_constant_ints(g, MR_INTS(BATCH, 1)), mr_constant_float(g, label));
    return mr_loss_sigmoid_cross_entropy(g, labels, logits);
}

/* Minimizes the loss by the variables of one scope (var_list in TensorFlow): the gradients of others are left out. */
static mr_node *minimize(mr_graph *g, mr_output loss, const char *scope)
{
    mr_gradients_and_variables list = mr_compute_gradients(g, loss);
    for (int32_t i = 0; i < list.count; i++) {
        const char *name = mr_node_name(list.items[i].variable.ref.node);
        if (strncmp(name, scope, strlen(scope)) != 0) list.items[i].gradient = (mr_output){0};
    }
    return mr_apply_gradients(g, mr_adam(.learning_rate = 1e-3f, .beta1 = 0.5f), list, (mr_output){0});
}

typedef struct model {
    mr_output points, generator_loss, discriminator_loss;
    mr_node *train_generator, *train_discriminator, *init;
} model;

static model build(mr_graph *g)
{
    model m = {0};
    m.points = network(g, "generator", normal(g, NOISE), 2);
    mr_output true_logits = network(g, "discriminator", ring(g), 1);
    mr_output false_logits = network(g, "discriminator", m.points, 1);
    m.discriminator_loss = mr_add_v2(g, answer(g, true_logits, 1), answer(g, false_logits, 0));
    m.generator_loss = answer(g, false_logits, 1);
    m.train_discriminator = minimize(g, m.discriminator_loss, "discriminator/");
    m.train_generator = minimize(g, m.generator_loss, "generator/");
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

/* Prints the center of the points, and the mean and the standard deviation of their distances from (0, 0). */
static void print_distances(const float *points)
{
    double x = 0, y = 0, mean = 0, squares = 0;
    for (int i = 0; i < BATCH; i++) {
        const double distance = hypot((double)points[2 * i], (double)points[2 * i + 1]);
        x += (double)points[2 * i] / BATCH;
        y += (double)points[2 * i + 1] / BATCH;
        mean += distance / BATCH;
        squares += distance * distance / BATCH;
    }
    printf("center %.2f %.2f\n", x, y);
    printf("distance %.2f (ring: %.2f)  spread %.2f (ring: %.2f)\n", mean, (double)radius,
           sqrt(fmax(0, squares - mean * mean)), (double)width);
}

/* Draws the points of the square from -2.5 to 2.5. */
static void print_picture(const float *points)
{
    char picture[ROWS][2 * ROWS];
    memset(picture, ' ', sizeof picture);
    for (int i = 0; i < BATCH; i++) {
        const float column = (points[2 * i] + 2.5f) / 5 * (2 * ROWS), row = (2.5f - points[2 * i + 1]) / 5 * ROWS;
        if (column >= 0 && column < 2 * ROWS && row >= 0 && row < ROWS) picture[(int)row][(int)column] = '*';
    }
    for (int row = 0; row < ROWS; row++) printf("%.*s\n", 2 * ROWS, picture[row]);
}

/* Each step trains the discriminator, then the generator. */
static mr_status learn(mr_session *session, const model *m, int steps, mr_error *error)
{
    mr_tensor losses[2] = {0}, points = {0};
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->init, 1, error));
    for (int step = 1; step <= steps; step++) {
        mr_outputs fetches = MR_OUTPUTS(m->discriminator_loss, m->generator_loss);
        MR_TRY(mr_session_run(session, MR_NO_FEEDS, fetches, losses, &m->train_discriminator, 1, error));
        MR_TRY(mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m->train_generator, 1, error));
        if (step % 500 == 0)
            printf("step %d  discriminator %.3f  generator %.3f\n", step, (double)mr_tensor_floats(&losses[0])[0],
                   (double)mr_tensor_floats(&losses[1])[0]);
        for (int i = 0; i < 2; i++) mr_tensor_deinit(&losses[i]);
    }
    MR_TRY(mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m->points), &points, nullptr, 0, error));
    print_picture(mr_tensor_floats(&points));
    print_distances(mr_tensor_floats(&points));
    mr_tensor_deinit(&points);
    return MR_OK;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 2000;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000) return fprintf(stderr, "usage: gan [STEPS]\n"), 2;
    mr_error error = {0};
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_graph_set_seed(g, 1);
    model m = build(g);
    /* The graph's seed is that of the initial values; the session's, that of all other random numbers. */
    const mr_session_options *seeded = MR_OPTIONS(mr_session_options, .has_seed = true, .seed = 1);
    mr_status status = mr_session_new(g, seeded, &session, &error);
    if (status == MR_OK) status = learn(session, &m, (int)steps, &error);
    if (status != MR_OK) fprintf(stderr, "gan: %s\n", error.message);
    mr_session_free(session);
    mr_graph_free(g);
    return status == MR_OK ? 0 : 1;
}
