/* Optimizers around others, against scalar models: averages and their saver, replicas, scales of the loss; mistakes.
 * The comparison with TensorFlow is tests/oracle/optimizer_wrappers_oracle.py. */
#include "tests/test.h"
#include <millrace/millrace.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The loss is w * x, so x is the gradient. */
typedef struct model {
    mr_graph *graph;
    mr_variable w, step;
    mr_output x, loss;
    mr_session *session;
} model;

static model build(bool is_resource)
{
    model m = {.graph = mr_graph_new()};
    m.step = mr_global_step(m.graph);
    m.w = mr_get_variable(m.graph, "w", MR_SCALAR, .initializer = {.kind = MR_INIT_ONES}, .use_resource = is_resource);
    m.x = mr_placeholder(m.graph, MR_FLOAT, .shape = MR_SCALAR, .name = "x");
    m.loss = mr_mul(m.graph, m.w.value, m.x);
    return m;
}

static void start(model *m)
{
    mr_error error = {0};
    mr_node *init = mr_initialize_variables(m->graph, MR_GLOBAL_VARIABLES, "init");
    CHECK_OK(mr_graph_status(m->graph, &error));
    CHECK_OK(mr_session_new(m->graph, nullptr, &m->session, &error));
    CHECK_OK(mr_session_run(m->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &init, 1, &error));
}

static void run(const model *m, mr_node *train, float x)
{
    mr_error error = {0};
    mr_tensor fed = {0};
    CHECK_OK(mr_tensor_init_copy(&fed, MR_FLOAT, MR_SCALAR, &x, &error));
    CHECK_OK(mr_session_run(m->session, MR_FEEDS({m->x, fed}), (mr_outputs){0}, nullptr, &train, 1, &error));
    mr_tensor_deinit(&fed);
}

static double read(mr_session *session, mr_output ref)
{
    mr_error error = {0};
    mr_tensor value = {0};
    CHECK_OK(mr_session_read_variable(session, ref, &value, &error));
    const double number =
        value.dtype == MR_INT64 ? (double)mr_tensor_int64s(&value)[0] : (double)mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    return number;
}

static double named(const model *m, const char *name)
{
    return read(m->session, mr_graph_find_output(m->graph, name));
}

static void end(model *m)
{
    mr_session_free(m->session);
    mr_graph_free(m->graph);
}

static float drawn(unsigned *seed)
{
    return (float)(rand_r(seed) % 2001) / 1000 - 1;
}

/* ---- Averages ---- */

static double saved(const char *path, const char *key)
{
    mr_error error = {0};
    mr_checkpoint_reader *reader = nullptr;
    mr_tensor value = {0};
    CHECK_OK(mr_checkpoint_reader_open(path, &reader, &error));
    CHECK_OK(mr_checkpoint_read(reader, key, &value, &error));
    const double number = (double)mr_tensor_floats(&value)[0];
    mr_tensor_deinit(&value);
    mr_checkpoint_reader_close(reader);
    return number;
}

static void check_averages(bool is_resource, bool is_counted, unsigned seed)
{
    mr_error error = {0};
    model m = build(is_resource);
    const mr_output count = is_counted ? m.step.value : (mr_output){0};
    const mr_optimizer *optimizer = mr_moving_average_optimizer(m.graph, mr_gradient_descent(.learning_rate = 0.5f),
                                                                .average_decay = 0.8f, .num_updates = count);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step.ref);
    mr_saver *saver = mr_swapping_saver(m.graph, optimizer);
    start(&m);
    double w = 1, average = 1;
    for (int i = 1; i <= 20; i++) {
        const float x = drawn(&seed);
        run(&m, train, x);
        w -= 0.5 * (double)x;
        const double decay = is_counted ? fmin(0.8, (1.0 + i) / (10.0 + i)) : 0.8;
        average -= (1 - decay) * (average - w);
        CHECK_NEAR(named(&m, "w"), w, 1e-5);
        CHECK_NEAR(named(&m, "w/ExponentialMovingAverage"), average, 1e-5);
    }
    const char *full = test_path("averages%u-7", seed);
    CHECK_OK(mr_saver_save(saver, m.session, test_path("averages%u", seed), 7, &error));
    CHECK_NEAR(saved(full, "w"), average, 1e-5);
    CHECK_NEAR(saved(full, "w/ExponentialMovingAverage"), w, 1e-5);
    run(&m, train, 1);
    CHECK_OK(mr_saver_restore(saver, m.session, full, &error));
    CHECK_NEAR(named(&m, "w"), w, 1e-5);
    CHECK_NEAR(named(&m, "w/ExponentialMovingAverage"), average, 1e-5);
    mr_saver_free(saver);
    end(&m);
}

TEST(moving_average_optimizer_averages_and_swaps)
{
    for (unsigned i = 0; i < 4; i++) check_averages(i % 2 == 0, i / 2 == 0, i + 1);
}

/* ---- Scales of the loss ---- */

static void check_scale(bool is_resource, unsigned seed)
{
    const int period = 1 + (int)(rand_r(&seed) % 3);
    const float initial = (float)(1 << (rand_r(&seed) % 8));
    model m = build(is_resource);
    const mr_optimizer *optimizer =
        mr_loss_scale_optimizer(m.graph, mr_momentum(.learning_rate = 0.1f, .momentum = 0.5f),
                                .initial_loss_scale = initial, .increment_period = period, .multiplier = 4);
    mr_output current = mr_loss_scale(m.graph, optimizer);
    CHECK(current.node != nullptr);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step.ref);
    start(&m);
    double w = 1, momentum = 0, scale = (double)initial;
    int64_t good = 0, step = 0;
    for (int i = 0; i < 40; i++) {
        const bool is_finite = rand_r(&seed) % 4 != 0;
        const float x = is_finite ? drawn(&seed) : i % 2 == 0 ? INFINITY : NAN;
        run(&m, train, x);
        if (is_finite) {
            momentum = 0.5 * momentum + (double)x;
            w -= 0.1 * momentum;
            step++;
            good++;
            if (good >= period) {
                good = 0;
                scale = isfinite((float)(scale * 4)) ? scale * 4 : scale;
            }
        } else {
            good = 0;
            scale = fmax(scale / 4, 1);
        }
        CHECK_NEAR(named(&m, "w"), w, 1e-5);
        CHECK_NEAR(named(&m, "w/Momentum"), momentum, 1e-5);
        CHECK_EQ((int64_t)named(&m, "good_steps"), good);
        CHECK(named(&m, "current_loss_scale") == scale);
        CHECK_EQ((int64_t)named(&m, "global_step"), step);
    }
    end(&m);
}

TEST(dynamic_loss_scale_skips_steps_that_are_not_finite)
{
    for (unsigned seed = 1; seed <= 8; seed++) check_scale(seed % 2 == 0, seed);
}

TEST(fixed_loss_scale_changes_no_gradient)
{
    model m = build(false);
    const mr_optimizer *optimizer =
        mr_loss_scale_optimizer(m.graph, mr_gradient_descent(.learning_rate = 0.5f), .fixed_loss_scale = 128);
    mr_node *train = mr_minimize(m.graph, optimizer, m.loss, m.step.ref);
    CHECK_EQ(mr_graph_variable_count(m.graph, MR_GLOBAL_VARIABLES), 2);
    start(&m);
    run(&m, train, 0.25f);
    CHECK_NEAR(named(&m, "w"), 1 - 0.125, 1e-6);
    end(&m);
}

TEST(wrappers_wrap_wrappers)
{
    model m = build(false);
    const mr_optimizer *scaled = mr_loss_scale_optimizer(m.graph, mr_adam(.learning_rate = 0.1f));
    const mr_optimizer *averaged = mr_moving_average_optimizer(m.graph, scaled, .average_decay = 0.5f);
    const mr_optimizer *outer = mr_loss_scale_optimizer(m.graph, averaged, .fixed_loss_scale = 2);
    mr_node *train = mr_minimize(m.graph, outer, m.loss, m.step.ref);
    start(&m);
    run(&m, train, 1);
    run(&m, train, NAN);
    CHECK_NEAR(named(&m, "w"), 0.9, 1e-5);
    CHECK_NEAR(named(&m, "w/ExponentialMovingAverage"), 0.5 * 0.95 + 0.5 * 0.9, 1e-5);
    CHECK_EQ((int64_t)named(&m, "global_step"), 1);
    CHECK(named(&m, "current_loss_scale") == 16384);
    end(&m);
}

/* ---- Replicas ---- */

/* One replica that computes several gradients for each update: after update n, all of n have been averaged. With tokens
 * from the start, the replica reads the variable while the chief updates it: then it has a handle. */
TEST(sync_replicas_hook_trains_in_a_monitored_session)
{
    for (int aggregate = 1; aggregate <= 3; aggregate++) {
        mr_error error = {0};
        model m = build(aggregate != 1);
        mr_output ones = mr_mul(m.graph, m.w.value, mr_constant_float(m.graph, 0.5f));
        const mr_optimizer *optimizer =
            mr_sync_replicas_optimizer(m.graph, mr_gradient_descent(.learning_rate = 0.25f),
                                       .replicas_to_aggregate = aggregate, .total_num_replicas = 1);
        mr_node *train = mr_minimize(m.graph, optimizer, ones, m.step.ref);
        mr_hook *stop = mr_stop_at_step_hook(.last_step = 9);
        mr_hook *chief = mr_sync_replicas_hook(m.graph, optimizer, true, aggregate == 1 ? 0 : -1);
        mr_monitored_session *session = nullptr;
        mr_status status = mr_monitored_session_new(
            m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(chief, stop)), &session, &error);
        CHECK_OK(status);
        int runs = 0;
        for (; status == MR_OK && !mr_monitored_session_should_stop(session); runs++)
            status = mr_monitored_session_run(session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &train, 1, &error);
        CHECK(runs >= 8 * aggregate);
        mr_session *raw = mr_monitored_session_raw(session);
        const double w = read(raw, m.w.ref), step = read(raw, m.step.ref);
        CHECK(step >= 9);
        CHECK(fabs(w - (1 - 0.125 * step)) < 0.13); /* the chief may be in its next update */
        CHECK_OK(mr_monitored_session_close(session, status, &error));
        mr_graph_free(m.graph);
    }
}

typedef struct replica {
    mr_session *session;
    mr_node *node;
    mr_output step;
    atomic_bool *should_stop;
    bool is_chief;
} replica;

static void *run_replica(void *context)
{
    const replica *r = context;
    mr_error error = {0};
    while (!*r->should_stop) {
        mr_status status = mr_session_run(r->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &r->node, 1, &error);
        if (status == MR_CANCELLED) break;
        CHECK_OK(status);
        if (!r->is_chief && read(r->session, r->step) >= 30) *r->should_stop = true;
    }
    mr_session_cancel(r->session);
    return nullptr;
}

/* Each thread has a local step of its own, as in TensorFlow; accumulators and tokens are shared. */
TEST(sync_replicas_average_the_gradients_of_all_threads)
{
    mr_error error = {0};
    model m = build(false);
    const mr_optimizer *towers[2];
    replica replicas[3];
    atomic_bool should_stop = false;
    for (int i = 0; i < 2; i++) {
        const mr_optimizer *momentum = mr_momentum(.learning_rate = 0.25f, .momentum = 0);
        towers[i] = i == 0 ? mr_sync_replicas_optimizer(m.graph, momentum, .replicas_to_aggregate = 2)
                           : mr_sync_replicas_optimizer(m.graph, momentum, .chief = towers[0]);
        mr_output loss = mr_mul(m.graph, m.w.value, mr_constant_float(m.graph, 0.5f));
        replicas[i] = (replica){.node = mr_minimize(m.graph, towers[i], loss, m.step.ref)};
    }
    const mr_sync_replicas_nodes nodes = mr_sync_replicas_nodes_of(m.graph, towers[0]);
    mr_node *tokens = mr_sync_replicas_init_tokens(m.graph, towers[0], 0);
    mr_node *locals = mr_initialize_variables(m.graph, MR_LOCAL_VARIABLES, "init_local");
    replicas[2] = (replica){.node = nodes.sync, .is_chief = true};
    CHECK_EQ(mr_graph_variable_count(m.graph, MR_GLOBAL_VARIABLES), 3); /* w, its only slot, and the step */
    CHECK(mr_sync_replicas_nodes_of(m.graph, towers[1]).sync == nullptr);
    start(&m);
    mr_node *inits[] = {locals, nodes.chief_init, tokens};
    for (int i = 0; i < 3; i++)
        CHECK_OK(mr_session_run(m.session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &inits[i], 1, &error));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        replicas[i].session = m.session;
        replicas[i].step = m.step.ref;
        replicas[i].should_stop = &should_stop;
        CHECK_EQ(pthread_create(&threads[i], nullptr, run_replica, &replicas[i]), 0);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], nullptr), 0);
    mr_session_cancel(m.session);
    CHECK_EQ(pthread_join(threads[2], nullptr), 0);
    CHECK_NEAR(named(&m, "w"), 1 - 0.125 * named(&m, "global_step"), 0.1251); /* cancelled between the two */
    CHECK(named(&m, "global_step") >= 30);
    end(&m);
}

/* A hook without a place in a run: its errors are those of the session. */
TEST(sync_replicas_hook_keeps_its_error)
{
    mr_error error = {0};
    model m = build(false);
    const mr_optimizer *sync =
        mr_sync_replicas_optimizer(m.graph, mr_gradient_descent(.learning_rate = 1), .replicas_to_aggregate = 1);
    mr_minimize(m.graph, sync, m.loss, m.step.ref);
    mr_hook *hook = mr_sync_replicas_hook(m.graph, sync, false, 4);
    mr_monitored_session *session = nullptr;
    CHECK_STATUS(mr_monitored_session_new(m.graph, MR_OPTIONS(mr_monitored_session_options, .hooks = MR_HOOKS(hook)),
                                          &session, &error),
                 MR_INVALID_ARGUMENT);
    CHECK_CONTAINS(error.message, "num_tokens is 4, but only the chief enqueues tokens");
    mr_graph_free(m.graph);
}

/* ---- Mistakes ---- */

#define CHECK_MISTAKE(code, text, ...)                                                                                 \
    do {                                                                                                               \
        mr_error error_ = {0};                                                                                         \
        model m = build(false);                                                                                        \
        __VA_ARGS__;                                                                                                   \
        CHECK_STATUS(mr_graph_status(m.graph, &error_), code);                                                         \
        CHECK_CONTAINS(error_.message, text);                                                                          \
        mr_graph_free(m.graph);                                                                                        \
    } while (0)

TEST(wrappers_report_mistakes)
{
    const mr_optimizer *descent = mr_gradient_descent(.learning_rate = 1);
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "the optimizer is null", mr_loss_scale_optimizer(m.graph, nullptr));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "fixed_loss_scale must be finite and at least 1",
                  mr_loss_scale_optimizer(m.graph, descent, .fixed_loss_scale = 0.5f));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "multiplier has no effect with fixed_loss_scale",
                  mr_loss_scale_optimizer(m.graph, descent, .fixed_loss_scale = 2, .multiplier = 2));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "increment_period must be at least 1",
                  mr_loss_scale_optimizer(m.graph, descent, .increment_period = -1));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "multiplier must be finite and greater than 0",
                  mr_loss_scale_optimizer(m.graph, descent, .multiplier = 0));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "the optimizer is none of mr_loss_scale_optimizer",
                  mr_loss_scale(m.graph, descent));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "average_decay",
                  mr_moving_average_optimizer(m.graph, descent, .average_decay = 1));
    CHECK_MISTAKE(MR_FAILED_PRECONDITION, "mr_swapping_saver: the optimizer has not been applied",
                  mr_saver_free(mr_swapping_saver(m.graph, mr_moving_average_optimizer(m.graph, descent))));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "none of mr_moving_average_optimizer",
                  mr_saver_free(mr_swapping_saver(m.graph, descent)));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "replicas_to_aggregate", mr_sync_replicas_optimizer(m.graph, descent));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "total_num_replicas",
                  mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1, .total_num_replicas = -1));
    CHECK_MISTAKE(
        MR_INVALID_ARGUMENT, "variable_averages and variables_to_average must both be given",
        mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1,
                                   .variable_averages = MR_OPTIONS(mr_moving_average_options, .decay = 0.5f)));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "variable_averages and variables_to_average must both be given",
                  mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1,
                                             .variables_to_average = MR_VARIABLES(m.w)));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "none of mr_sync_replicas_optimizer",
                  mr_sync_replicas_optimizer(m.graph, descent, .chief = descent));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "the chief's optimizer has not been applied",
                  const mr_optimizer *chief = mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1);
                  mr_sync_replicas_optimizer(m.graph, descent, .chief = chief));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "replicas_to_aggregate and total_num_replicas are the chief's",
                  const mr_optimizer *chief = mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1);
                  mr_minimize(m.graph, chief, m.loss, m.step.ref);
                  mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1, .chief = chief));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "global_step is required",
                  mr_minimize(m.graph, mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1), m.loss,
                              (mr_output){0}));
    CHECK_MISTAKE(
        MR_FAILED_PRECONDITION, "mr_sync_replicas_nodes_of: the optimizer has not been applied",
        mr_sync_replicas_nodes_of(m.graph, mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1)));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "num_tokens is 1, but must be at least 2",
                  const mr_optimizer *sync =
                      mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 3, .total_num_replicas = 1);
                  mr_minimize(m.graph, sync, m.loss, m.step.ref); mr_sync_replicas_init_tokens(m.graph, sync, 1));
    CHECK_MISTAKE(MR_FAILED_PRECONDITION, "has been applied already",
                  const mr_optimizer *sync = mr_sync_replicas_optimizer(m.graph, descent, .replicas_to_aggregate = 1);
                  mr_minimize(m.graph, sync, m.loss, m.step.ref); mr_minimize(m.graph, sync, m.loss, m.step.ref));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "none of the 0 variables has a gradient",
                  mr_apply_gradients(m.graph, mr_loss_scale_optimizer(m.graph, descent),
                                     (mr_gradients_and_variables){0}, m.step.ref));
}

TEST(wrappers_stay_in_their_graph)
{
    model other = build(false);
    const mr_optimizer *foreign = mr_loss_scale_optimizer(other.graph, mr_adam());
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "belongs to another graph", mr_minimize(m.graph, foreign, m.loss, m.step.ref));
    CHECK_MISTAKE(MR_INVALID_ARGUMENT, "belongs to another graph", mr_moving_average_optimizer(m.graph, foreign));
    mr_graph_free(other.graph);
    CHECK(mr_loss_scale_optimizer(nullptr, mr_adam()) == nullptr);
    mr_hook *hook = mr_sync_replicas_hook(nullptr, mr_adam(), true, -1);
    mr_hook_free(hook);
}
