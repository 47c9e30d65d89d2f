/* Run: one run of a step. Sets the feeds, runs the calls up to the guard and the others, and takes the results. */
#include "graph/run/session.h"

#include <assert.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static mr_status set_feeds(const mr_step *step, mr_plan *plan, const mr_tensor *values, mr_error *error)
{
    for (int32_t i = 0; i < step->feed_count; i++) {
        const mr_output feed = step->feeds[i];
        const mr_node_output *known = &feed.node->outputs[feed.index];
        const mr_tensor *value = &values[i];
        if (value->dtype != known->dtype)
            return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot feed a %s for %s:%d, which is a %s",
                           mr_dtype_name(value->dtype), feed.node->name, (int)feed.index, mr_dtype_name(known->dtype));
        if (!mr_shape_compatible(value->shape, known->shape)) {
            char fed[MR_SHAPE_TEXT_SIZE], declared[MR_SHAPE_TEXT_SIZE];
            return mr_fail(error, MR_INVALID_ARGUMENT, "Cannot feed value of shape %s for %s:%d, which has shape %s",
                           mr_shape_text(value->shape, fed, sizeof fed), feed.node->name, (int)feed.index,
                           mr_shape_text(known->shape, declared, sizeof declared));
        }
        if (plan->feed_is_read[i] && mr_tensor_device(value)) {
            MR_TRY(mr_tensor_to_host(value, &plan->fed[i], error));
            value = &plan->fed[i];
        }
        plan->slots[plan->feed_slots[i]] = *value;
    }
    return MR_OK;
}

static mr_status take_results(const mr_step *step, mr_plan *plan, mr_tensor *results, mr_error *error)
{
    for (int32_t i = 0; i < step->fetch_count; i++) {
        mr_tensor *slot = &plan->slots[plan->fetch_slots[i]];
        if (plan->fetch_is_ref[i]) {
            MR_TRY(mr_variable_read(slot->data, &results[i], error));
        } else if (plan->fetch_is_last[i]) {
            results[i] = *slot;
            *slot = (mr_tensor){0};
        } else {
            results[i] = mr_tensor_ref(slot);
        }
    }
    return MR_OK;
}

/* Runs all calls; if there is a guard, first the calls up to it. */
static mr_status run_all(mr_step *step, const mr_tensor *values, bool trace, bool *diverged, mr_error *error)
{
    mr_plan *plan = step->plan;
    uint64_t began_ns = trace ? now_ns() : 0;
    int32_t done = 0;
    plan->traced_count = 0;
    if (step->guard >= 0) {
        MR_TRY(mr_guard_run(step, began_ns, diverged, error));
        if (*diverged) return mr_guard_examine(step, values, error);
        done = plan->guard_calls;
    }
    return mr_plan_run_calls(plan, done, plan->call_count, began_ns, error);
}

/* Between runs all slots except constants are empty. */
static void assert_is_idle(const mr_plan *plan)
{
#ifndef NDEBUG
    for (int32_t i = 0; i < plan->owned_count; i++) {
        assert(plan->owned[i] >= 0 && plan->owned[i] < plan->slot_count);
        assert(!plan->slots[plan->owned[i]].buffer);
    }
    for (int32_t i = 0; i < plan->kept_count; i++) assert(!plan->kept[i].buffer);
#else
    (void)plan;
#endif
}

mr_status mr_plan_run(mr_step *step, const mr_tensor *values, mr_tensor *results, bool trace, bool *diverged,
                      mr_error *error)
{
    mr_plan *plan = step->plan;
    assert(mr_mutex_is_held(&step->mutex));
    assert(plan && plan->graph_version == step->session->graph->version);
    assert_is_idle(plan);
    for (int32_t i = 0; i < step->fetch_count; i++) results[i] = (mr_tensor){0};
    mr_status status = set_feeds(step, plan, values, error);
    if (status == MR_OK) status = run_all(step, values, trace, diverged, error);
    for (int32_t i = 0; i < plan->wait_count; i++) {
        mr_status waited = plan->waits[i]->functions->wait(plan->waits[i], status == MR_OK ? error : nullptr);
        if (status == MR_OK) status = waited;
    }
    if (status == MR_OK) status = take_results(step, plan, results, error);
    if (status != MR_OK || plan->wait_count > 0)
        for (int32_t i = 0; i < plan->owned_count; i++) mr_tensor_deinit(&plan->slots[plan->owned[i]]);
    for (int32_t i = 0; i < plan->kept_count; i++) mr_tensor_deinit(&plan->kept[i]);
    for (int32_t i = 0; i < step->feed_count; i++) {
        mr_tensor_deinit(&plan->fed[i]);
        plan->slots[plan->feed_slots[i]] = (mr_tensor){0};
    }
    assert_is_idle(plan);
    if (status == MR_OK) return MR_OK;
    for (int32_t i = 0; i < step->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}
