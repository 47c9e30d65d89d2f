/* towers: trains on several devices at once, as TensorFlow's CIFAR-10 tutorial does. Each tower computes the gradients
 * of its part of the batch on its own device; the towers share their variables, which get the mean of the gradients.
 *
 *     towers [STEPS]
 *
 * Trains once with one tower and once with several, and prints both losses and the largest difference between the
 * variables, which is only rounding. */
#include <math.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOWERS = 2, BATCH = 96, CLASSES = 3, UNITS = 32 };

/* ---- Devices ---- */

/* A GPU of the tower's own, or, if the machine does not have so many, the CPU. */
static void choose_device(int32_t tower, char *name, size_t size_bytes)
{
    mr_device *device = nullptr;
    snprintf(name, size_bytes, "/gpu:%d", (int)tower);
    if (mr_device_open(name, &device, nullptr) != MR_OK) snprintf(name, size_bytes, "/cpu:0");
    mr_device_close(device);
}

/* Variables are stored on the CPU, where all towers read them; all else of a tower is on its device. */
static const char *place(void *device, const mr_node *node)
{
    return strcmp(mr_node_op(node), "VariableV2") == 0 ? "/cpu:0" : device;
}

/* ---- The model ---- */

static mr_output scale(mr_graph *g, mr_output values, float factor)
{
    return mr_mul(g, values, mr_constant_float(g, factor));
}

/* A new batch in each run: points [BATCH, 2] of spirals with CLASSES arms, and the numbers of their arms. */
static void make_points(mr_graph *g, mr_output *points, mr_output *labels)
{
    mr_output shape = mr_constant_ints(g, MR_INTS(BATCH));
    *labels = mr_random_uniform_int(g, shape, mr_constant_int64(g, 0), mr_constant_int64(g, CLASSES));
    mr_output radius = mr_random_uniform(g, shape, MR_FLOAT), noise = mr_random_uniform(g, shape, MR_FLOAT);
    mr_output arm = scale(g, mr_cast(g, *labels, MR_FLOAT), 6.2831853f / CLASSES);
    mr_output angle = mr_add_n(g, MR_OUTPUTS(arm, scale(g, radius, 4), scale(g, noise, 0.3f)));
    mr_output x = mr_mul(g, radius, mr_cos(g, angle)), y = mr_mul(g, radius, mr_sin(g, angle));
    *points = mr_pack(g, MR_OUTPUTS(x, y), .axis = 1);
}

typedef struct model {
    mr_output loss, weights; /* weights: all variables, one after the other */
    mr_node *train, *init;
} model;

/* The loss of a part of the batch. All towers have the variables of the scope "spiral". */
static mr_output tower(mr_graph *g, mr_output points, mr_output labels)
{
    mr_graph_push_variable_scope(g, "spiral", .reuse = MR_AUTO_REUSE);
    mr_output hidden = mr_layer_dense(g, points, .units = UNITS, .activation = mr_activation_tanh, .name = "hidden1");
    hidden = mr_layer_dense(g, hidden, .units = UNITS, .activation = mr_activation_tanh, .name = "hidden2");
    mr_output logits = mr_layer_dense(g, hidden, .units = CLASSES, .name = "logits");
    mr_graph_pop_variable_scope(g);
    return mr_loss_sparse_softmax_cross_entropy(g, labels, logits);
}

/* Replaces the gradients of the first tower by the means over all of them. */
static void average(mr_graph *g, const mr_gradients_and_variables *lists, int32_t count)
{
    for (int32_t i = 0; i < lists[0].count; i++) {
        mr_output gradients[TOWERS];
        for (int32_t t = 0; t < count; t++) gradients[t] = lists[t].items[i].gradient;
        mr_output sum = mr_add_n(g, MR_OUTPUTS_OF(gradients, count));
        lists[0].items[i].gradient = scale(g, sum, 1 / (float)count);
    }
}

static mr_output all_variables(mr_graph *g)
{
    mr_output flat[16];
    int32_t count = mr_graph_variable_count(g, MR_TRAINABLE_VARIABLES);
    for (int32_t i = 0; i < count; i++) {
        mr_output value = mr_graph_variable(g, MR_TRAINABLE_VARIABLES, i).value;
        flat[i] = mr_reshape(g, value, mr_constant_ints(g, MR_INTS(-1)));
    }
    return mr_concat_v2(g, MR_OUTPUTS_OF(flat, count), mr_constant_int32(g, 0));
}

static model build(mr_graph *g, int32_t count)
{
    model m = {0};
    mr_output all_points, all_labels, losses[TOWERS];
    make_points(g, &all_points, &all_labels);
    mr_output_range points = mr_split(g, mr_constant_int32(g, 0), all_points, .num_split = count);
    mr_output_range labels = mr_split(g, mr_constant_int32(g, 0), all_labels, .num_split = count);
    mr_gradients_and_variables lists[TOWERS];
    for (int32_t t = 0; t < count; t++) {
        char scope[32], device[32];
        snprintf(scope, sizeof scope, "tower_%d", (int)t);
        choose_device(t, device, sizeof device);
        mr_graph_push_scope(g, scope);
        mr_graph_push_device_function(g, place, device);
        losses[t] = tower(g, mr_output_at(points, t), mr_output_at(labels, t));
        lists[t] = mr_compute_gradients(g, losses[t]);
        mr_graph_pop_device(g);
        mr_graph_pop_scope(g);
        printf("%s of %d: %s\n", scope, (int)count, device);
    }
    average(g, lists, count);
    m.train = mr_apply_gradients(g, mr_momentum(.learning_rate = 0.1f, .momentum = 0.9f), lists[0], (mr_output){0});
    m.loss = scale(g, mr_add_n(g, MR_OUTPUTS_OF(losses, count)), 1 / (float)count);
    m.weights = all_variables(g);
    m.init = mr_initialize_variables(g, MR_GLOBAL_VARIABLES, "init");
    return m;
}

/* ---- Training ---- */

/* Trains with `count` towers. Both runs have the same seeds, so the same points and initial values. */
static mr_status train(int32_t count, int steps, mr_tensor *weights, mr_error *error)
{
    mr_graph *g = mr_graph_new();
    mr_session *session = nullptr;
    mr_tensor loss = {0};
    /* The graph's seed is that of the initial values; the session's, that of all other random numbers. */
    mr_graph_set_seed(g, 1);
    const mr_session_options *seeded = MR_OPTIONS(mr_session_options, .has_seed = true, .seed = 1);
    model m = build(g, count);
    mr_status status = mr_session_new(g, seeded, &session, error);
    if (status == MR_OK) status = mr_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &m.init, 1, error);
    for (int step = 1; status == MR_OK && step <= steps; step++) {
        status = mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m.loss), &loss, &m.train, 1, error);
        if (status == MR_OK && (step == 1 || step % 100 == 0))
            printf("step %d  loss %.5f\n", step, (double)mr_tensor_floats(&loss)[0]);
        mr_tensor_deinit(&loss);
    }
    if (status == MR_OK)
        status = mr_session_run(session, MR_NO_FEEDS, MR_OUTPUTS(m.weights), weights, nullptr, 0, error);
    mr_session_free(session);
    mr_graph_free(g);
    return status;
}

/* Returns the largest difference between elements. */
static double compare(const mr_tensor *a, const mr_tensor *b)
{
    double largest = 0;
    for (int64_t i = 0; i < mr_tensor_count(a); i++) {
        const double difference = fabs((double)mr_tensor_floats(a)[i] - (double)mr_tensor_floats(b)[i]);
        if (!(difference <= largest)) largest = difference; /* also if it is NaN */
    }
    return largest;
}

int main(int argc, char **argv)
{
    char *end = "";
    const long steps = argc > 1 ? strtol(argv[1], &end, 10) : 300;
    if (argc > 2 || *end != '\0' || steps < 1 || steps > 1000000) return fprintf(stderr, "usage: towers [STEPS]\n"), 2;
    mr_error error = {0};
    mr_tensor one = {0}, several = {0};
    mr_status status = train(1, (int)steps, &one, &error);
    if (status == MR_OK) status = train(TOWERS, (int)steps, &several, &error);
    if (status == MR_OK)
        printf("largest difference of %lld weights: %.1e\n", (long long)mr_tensor_count(&one), compare(&one, &several));
    if (status != MR_OK) fprintf(stderr, "towers: %s\n", error.message);
    mr_tensor_deinit(&one);
    mr_tensor_deinit(&several);
    return status == MR_OK ? 0 : 1;
}
