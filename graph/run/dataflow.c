/* Dataflow: runs a program with conditionals or loops, segment by segment, on the calling thread.
 *
 * A segment whose tokens have all come is queued. It runs, or is skipped if one of them was dead; then it sends tokens
 * along its edges: to segments of its own frame, to the next iteration of its loop, into a loop or out of it.
 *
 * A loop starts when everything that enters it has come. Each iteration has a frame; what a segment forwards to the
 * next iteration creates that iteration's frame. A frame is finished when nothing in it is queued and the iterations
 * before it are finished, and the loop with its last frame. An exit that never had a value then sends dead tokens.
 *
 * A straight loop (see mr_straight_loop) needs no tokens: its iterations follow one another in its first frame, until
 * something else is queued.
 *
 * Invariants: frame->busy counts the frame's queued segments and its loops, so a frame with busy == 0 changes only
 * through tokens from the frame before it. loop->first is the oldest iteration, and its frame is not finished. */
#include "graph/run/dataflow.h"
#include "graph/run/waiting.h"

#include "base/buffer.h"
#include "graph/state/run.h"
#include "graph/state/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A straight loop lets other segments run after so many iterations. */
constexpr int32_t TURN_ITERATIONS = 256;

typedef struct runner {
    mr_program *program;
    mr_frame *outer; /* of region 0; it keeps the queue */
    int32_t head, count;
    mr_waiting waiting;
    uint64_t began_ns;
} runner;

/* ---- The queue ---- */

static mr_status grow_queue(runner *r, mr_error *error)
{
    int32_t capacity = r->outer->queue_capacity, doubled = capacity ? 2 * capacity : 64;
    assert(r->count == capacity && (capacity & (capacity - 1)) == 0);
    mr_queued *larger = malloc((size_t)doubled * sizeof *larger);
    if (!larger) return mr_fail_memory(error, (size_t)doubled * sizeof *larger);
    for (int32_t i = 0; i < r->count; i++) larger[i] = r->outer->queue[(r->head + i) & (capacity - 1)];
    free(r->outer->queue);
    r->outer->queue = larger;
    r->outer->queue_capacity = doubled;
    r->head = 0;
    return MR_OK;
}

static mr_segment_state *state_of(mr_frame *frame, int32_t segment)
{
    assert(segment >= frame->region->first_segment);
    assert(segment < frame->region->first_segment + frame->region->segment_count);
    return &frame->states[segment - frame->region->first_segment];
}

static mr_status append(runner *r, mr_frame *frame, int32_t segment, mr_error *error)
{
    if (r->count == r->outer->queue_capacity) MR_TRY(grow_queue(r, error));
    assert(r->count >= 0 && r->count < r->outer->queue_capacity);
    assert(r->head >= 0 && r->head < r->outer->queue_capacity);
    r->outer->queue[(r->head + r->count++) & (r->outer->queue_capacity - 1)] = (mr_queued){frame, segment};
    return MR_OK;
}

static mr_status enqueue(runner *r, mr_frame *frame, int32_t segment, mr_error *error)
{
    assert(!state_of(frame, segment)->is_queued && state_of(frame, segment)->pending == 0);
    MR_TRY(append(r, frame, segment, error));
    state_of(frame, segment)->is_queued = true;
    frame->busy++;
    return MR_OK;
}

static mr_queued dequeue(runner *r)
{
    assert(r->count > 0 && r->count <= r->outer->queue_capacity && r->head < r->outer->queue_capacity);
    mr_queued next = r->outer->queue[r->head];
    r->head = (r->head + 1) & (r->outer->queue_capacity - 1);
    r->count--;
    return next;
}

static mr_status enqueue_if_ready(runner *r, mr_frame *frame, int32_t segment, mr_error *error)
{
    const mr_segment_state *state = state_of(frame, segment);
    bool is_ready = state->pending == 0 && !state->is_queued;
    if (r->program->segments[segment].is_merge) is_ready &= state->input >= 0 || state->is_dead;
    return is_ready ? enqueue(r, frame, segment, error) : MR_OK;
}

/* ---- Frames and loops ---- */

static mr_status start_frame(runner *r, mr_frame *frame, mr_error *error)
{
    const mr_region *region = frame->region;
    const mr_segment *segments = r->program->segments + region->first_segment;
    assert(frame->program == r->program && frame->busy == 0);
    assert((frame->loop == nullptr) == (region->parent < 0)); /* iterations are in loops, and only they */
    for (int32_t i = 0; i < region->segment_count; i++)
        frame->states[i] = (mr_segment_state){
            .pending = frame->iteration > 0 ? segments[i].pending_later : segments[i].pending,
            .input = segments[i].is_merge ? segments[i].ready_input : -1,
        };
    if (region->slot_count > 0)
        memcpy(frame->uses, region->use_counts, (size_t)region->slot_count * sizeof *frame->uses);
    for (int32_t i = 0; i < region->invariant_count; i++)
        frame->slots[region->invariants[i]] = frame->loop->constants[region->invariants[i]];
    for (int32_t i = 0; i < region->segment_count; i++)
        MR_TRY(enqueue_if_ready(r, frame, region->first_segment + i, error));
    return MR_OK;
}

static void end_frame(mr_frame *frame)
{
    const mr_region *region = frame->region;
    assert(frame->busy == 0 && frame->loop != nullptr);
    assert(frame->later == nullptr || frame->later->iteration == frame->iteration + 1 || region->straight.is_straight);
    mr_frame_clear(frame);
    for (int32_t i = 0; i < region->invariant_count; i++) frame->slots[region->invariants[i]] = (mr_tensor){0};
    frame->loop = nullptr;
    frame->later = nullptr;
    frame->iteration = 0;
    frame->run = nullptr;
    mr_frame_give(frame);
}

/* The next iteration, which this may create. */
static mr_status later_frame(runner *r, mr_frame *frame, mr_frame **later, mr_error *error)
{
    assert(frame->loop); /* only a loop has a next iteration */
    *later = frame->later;
    if (*later) return MR_OK;
    if (frame->iteration == INT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "a loop has too many iterations");
    MR_TRY(mr_frame_take(r->program, frame->loop->region, later, error));
    (*later)->run = frame->run;
    (*later)->depth = frame->depth;
    (*later)->loop = frame->loop;
    (*later)->iteration = frame->iteration + 1;
    assert(frame->loop->latest == frame);
    frame->later = frame->loop->latest = *later;
    return start_frame(r, *later, error);
}

static void end_loop(mr_loop *loop)
{
    const mr_region *region = &loop->outer->program->regions[loop->region];
    assert(loop->is_running && !loop->first);
    for (int32_t i = 0; i < region->invariant_count; i++) mr_tensor_deinit(&loop->constants[region->invariants[i]]);
    loop->is_running = false;
}

/* The loop in the frame, which the first value or token that enters it starts. */
static mr_status enter_loop(runner *r, mr_frame *frame, int32_t region, mr_loop **entered, mr_error *error)
{
    const mr_region *inner = &r->program->regions[region];
    mr_loop *loop = *entered = &frame->loops[inner->loop_index];
    assert(loop->region == region && loop->outer == frame);
    if (loop->is_running) return MR_OK;
    MR_TRY(mr_frame_take(r->program, region, &loop->first, error));
    loop->first->loop = loop;
    loop->first->run = frame->run;
    loop->first->depth = frame->depth;
    loop->latest = loop->first;
    loop->waiting = inner->enter_tokens;
    loop->is_dead = false;
    loop->is_running = true;
    if (inner->segment_count > 0) memset(loop->has_left, 0, (size_t)inner->segment_count);
    frame->busy++;
    return MR_OK;
}

static mr_status send(runner *r, mr_frame *frame, const mr_edge *edge, bool is_dead, mr_error *error)
{
    mr_segment_state *state = state_of(frame, edge->target);
    const mr_segment *segment = &r->program->segments[edge->target];
    if (state->is_queued) {
        assert(segment->is_merge && edge->merge_input >= 0); /* a later input of a merge that has one */
        return MR_OK;
    }
    if (edge->merge_input >= 0) {
        if (is_dead)
            state->is_dead = ++state->dead == segment->merge_inputs && state->input < 0;
        else if (state->input < 0)
            state->input = edge->merge_input;
    } else {
        assert(state->pending > 0);
        state->pending--;
        state->is_dead |= is_dead && !edge->is_order && !segment->is_merge;
    }
    return enqueue_if_ready(r, frame, edge->target, error);
}

static mr_status finish_frames(runner *r, mr_loop *loop, mr_error *error);

static mr_status finish_loop(runner *r, mr_loop *loop, mr_error *error)
{
    mr_frame *outer = loop->outer;
    const mr_region *region = &r->program->regions[loop->region];
    for (int32_t i = 0; i < region->segment_count; i++) {
        const mr_segment *segment = &r->program->segments[region->first_segment + i];
        for (int32_t j = segment->first_edge; j < segment->end_edge && !loop->has_left[i]; j++)
            if (r->program->edges[j].kind == MR_EDGE_EXIT) MR_TRY(send(r, outer, &r->program->edges[j], true, error));
    }
    end_loop(loop);
    assert(outer->busy > 0);
    if (--outer->busy > 0 || !outer->loop) return MR_OK;
    return finish_frames(r, outer->loop, error);
}

/* Ends the loop's oldest iterations, as far as they are finished, and the loop with the last one. */
static mr_status finish_frames(runner *r, mr_loop *loop, mr_error *error)
{
    assert(loop->is_running);
    while (loop->first && loop->first->busy == 0) {
        mr_frame *done = loop->first;
        assert(done->loop == loop && (done->later != nullptr || done == loop->latest));
        loop->first = done->later;
        end_frame(done);
    }
    return loop->first ? MR_OK : finish_loop(r, loop, error);
}

static mr_status enter(runner *r, mr_frame *frame, const mr_edge *edge, bool is_dead, mr_error *error)
{
    mr_loop *loop;
    MR_TRY(enter_loop(r, frame, edge->target, &loop, error));
    assert(loop->waiting > 0);
    loop->is_dead |= is_dead;
    if (--loop->waiting > 0) return MR_OK;
    if (!loop->is_dead) MR_TRY(start_frame(r, loop->first, error));
    return finish_frames(r, loop, error); /* of a dead loop, or one without a segment that can start */
}

/* Releases the slots that no other segment has yet to read. */
static void end_uses(const mr_program *program, mr_frame *frame, int32_t index)
{
    const mr_segment *segment = &program->segments[index];
    for (int32_t i = segment->first_use; i < segment->end_use; i++) {
        int32_t slot = program->uses[i];
        assert(frame->uses[slot] > 0);
        if (--frame->uses[slot] == 0) mr_tensor_deinit(&frame->slots[slot]);
    }
}

/* Sends the tokens of a segment that has run, or was skipped. */
static mr_status finish_segment(runner *r, mr_frame *frame, int32_t index, bool is_dead, mr_error *error)
{
    const mr_segment *segment = &r->program->segments[index];
    bool leaves = false;
    end_uses(r->program, frame, index);
    for (int32_t i = segment->first_edge; i < segment->end_edge; i++) {
        const mr_edge *edge = &r->program->edges[i];
        bool dead = is_dead || (edge->predicate >= 0 && frame->branches[edge->predicate] != edge->branch);
        mr_frame *later;
        switch (edge->kind) {
        case MR_EDGE_SAME:
            MR_TRY(send(r, frame, edge, dead, error));
            break;
        case MR_EDGE_NEXT:
            if (dead) break; /* the loop ends */
            MR_TRY(later_frame(r, frame, &later, error));
            MR_TRY(send(r, later, edge, false, error));
            break;
        case MR_EDGE_ENTER:
            MR_TRY(enter(r, frame, edge, dead, error));
            break;
        case MR_EDGE_EXIT:
            if (dead) break;
            assert(frame->loop);
            if (frame->loop->has_left[index - frame->region->first_segment])
                return mr_fail(error, MR_INVALID_ARGUMENT, "a loop is left in more than one iteration");
            MR_TRY(send(r, frame->loop->outer, edge, false, error));
            leaves = true;
            break;
        }
    }
    if (leaves) frame->loop->has_left[index - frame->region->first_segment] = true;
    assert(frame->busy > 0);
    if (--frame->busy > 0 || !frame->loop) return MR_OK;
    return finish_frames(r, frame->loop, error);
}

/* ---- Calls ---- */

static mr_status take_input(mr_frame *frame, const mr_call *call, int32_t input, mr_tensor *value, mr_error *error)
{
    mr_tensor *slot = &frame->slots[call->inputs[input].slot];
    if (call->inputs[input].mode == MR_INPUT_READ) return mr_frame_read_variable(frame, call, input, value, error);
    *value = *slot;
    if (mr_frame_is_last_use(frame, &call->inputs[input]))
        slot->buffer = nullptr; /* moved */
    else
        mr_buffer_ref(slot->buffer);
    return MR_OK;
}

/* Forwards an input to a slot of this frame or of another one. */
static mr_status forward(mr_frame *frame, const mr_call *call, int32_t input, mr_frame *to, int32_t slot,
                         mr_error *error)
{
    if (to->slots[slot].dtype != MR_DTYPE_INVALID)
        return mr_fail(error, MR_INVALID_ARGUMENT, "its output already has a value");
    return take_input(frame, call, input, &to->slots[slot], error);
}

static mr_status read_predicate(const mr_tensor *predicate, bool *value, mr_error *error)
{
    char shape[MR_SHAPE_TEXT_SIZE];
    if (predicate->dtype != MR_BOOL || mr_tensor_count(predicate) != 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "The second input must be a scalar, but it has shape %s",
                       mr_shape_text(predicate->shape, shape, sizeof shape));
    *value = mr_tensor_bools(predicate)[0];
    return MR_OK;
}

static mr_status run_switch(mr_frame *frame, const mr_call *call, mr_error *error)
{
    const mr_tensor *predicate = &frame->slots[call->inputs[1].slot];
    mr_tensor value = {0};
    bool branch = false;
    if (call->inputs[1].mode == MR_INPUT_READ) MR_TRY(take_input(frame, call, 1, &value, error));
    if (value.buffer) predicate = &value;
    mr_status status = read_predicate(predicate, &branch, error);
    mr_tensor_deinit(&value);
    if (status != MR_OK) return status;
    frame->branches[call->flow_index] = branch;
    return forward(frame, call, 0, frame, call->first_output + branch, error);
}

static mr_status run_merge(mr_frame *frame, const mr_call *call, int32_t input, mr_error *error)
{
    /* The variable of a loop: in the first iteration its initial value, later what the last iteration forwarded. */
    for (int32_t i = call->input_count - 1; i >= 0 && input < 0; i--)
        if (frame->slots[call->inputs[i].slot].dtype != MR_DTYPE_INVALID) input = i;
    if (input < 0) return mr_fail(error, MR_INTERNAL, "no input has a value");
    MR_TRY(forward(frame, call, input, frame, call->first_output, error));
    if (call->flow_index == 0) return MR_OK;
    mr_tensor *index = &frame->slots[call->first_output + 1];
    MR_TRY(mr_tensor_init_on(index, call->device, MR_INT32, MR_SCALAR, error));
    mr_tensor_int32s(index)[0] = input;
    return MR_OK;
}

static mr_status run_enter(runner *r, mr_frame *frame, const mr_call *call, mr_error *error)
{
    mr_loop *loop;
    MR_TRY(enter_loop(r, frame, call->flow_index, &loop, error));
    if (call->is_constant) return take_input(frame, call, 0, &loop->constants[call->first_output], error);
    return forward(frame, call, 0, loop->first, call->first_output, error);
}

static mr_status run_flow(runner *r, mr_frame *frame, const mr_call *call, int32_t merge_input, mr_error *error)
{
    mr_frame *later;
    switch (call->flow) {
    case MR_FLOW_SWITCH:
        return run_switch(frame, call, error);
    case MR_FLOW_MERGE:
        return run_merge(frame, call, merge_input, error);
    case MR_FLOW_ENTER:
        return run_enter(r, frame, call, error);
    case MR_FLOW_EXIT:
        return forward(frame, call, 0, frame->loop->outer, call->first_output, error);
    case MR_FLOW_NEXT_ITERATION:
        MR_TRY(later_frame(r, frame, &later, error));
        return forward(frame, call, 0, later, call->first_output, error);
    case MR_FLOW_NONE:
    case MR_FLOW_TRIGGER:
        break;
    }
    return MR_OK; /* a constant, or a node that only orders others */
}

/* A graph from outside may leave a value out. */
static mr_status check_inputs(const mr_frame *frame, const mr_call *call, mr_error *error)
{
    for (int32_t i = 0; i < call->input_count && call->flow != MR_FLOW_MERGE; i++)
        if (frame->slots[call->inputs[i].slot].dtype == MR_DTYPE_INVALID)
            return mr_fail(error, MR_INVALID_ARGUMENT, "input %d has no value in this iteration", (int)i);
    return MR_OK;
}

static mr_status run_segment(runner *r, mr_frame *frame, int32_t index, mr_error *error)
{
    const mr_segment *segment = &r->program->segments[index];
    int32_t merge_input = segment->is_merge ? state_of(frame, index)->input : -1;
    for (int32_t i = segment->first_call; i < segment->end_call; i++) {
        const mr_call *call = &r->program->calls[i];
        mr_status status = check_inputs(frame, call, error);
        if (status == MR_OK && call->run) {
            MR_TRY(mr_frame_run_call(frame, call, r->outer, r->began_ns, error));
            continue;
        }
        if (status == MR_OK) status = run_flow(r, frame, call, merge_input, error);
        if (status == MR_OK) status = mr_frame_end_call(frame, call, r->outer, error);
        if (status != MR_OK) return mr_call_named(&call->node, status, error);
    }
    return MR_OK;
}

/* ---- Straight loops ---- */

static void move(mr_frame *frame, const mr_move *moves, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        assert(moves[i].from >= 0 && moves[i].from < frame->region->slot_count);
        assert(moves[i].to >= 0 && moves[i].to < frame->region->slot_count && moves[i].to != moves[i].from);
        mr_tensor *from = &frame->slots[moves[i].from], *to = &frame->slots[moves[i].to];
        if (to->buffer) mr_buffer_unref(to->buffer);
        *to = *from;
        if (moves[i].is_last)
            *from = (mr_tensor){0};
        else
            (void)mr_buffer_ref(to->buffer);
    }
}

static mr_status run_iteration_calls(const runner *r, mr_frame *frame, const int32_t *calls, int32_t count,
                                     mr_error *error)
{
    for (int32_t i = 0; i < count; i++)
        MR_TRY(mr_frame_run_call(frame, &r->program->calls[calls[i]], r->outer, r->began_ns, error));
    return MR_OK;
}

/* Runs the head, and decides whether the body follows. */
static mr_status run_head(const runner *r, mr_frame *frame, bool *goes_on, mr_error *error)
{
    const mr_straight_loop *loop = &frame->region->straight;
    mr_tensor *predicate = &frame->slots[loop->predicate];
    bool branch = false;
    MR_TRY(run_iteration_calls(r, frame, loop->head, loop->head_count, error));
    mr_status status = read_predicate(predicate, &branch, error);
    if (status != MR_OK) return mr_call_named(&loop->decision->node, status, error);
    if (loop->predicate_is_last) mr_tensor_deinit(predicate);
    *goes_on = branch == loop->branch;
    return MR_OK;
}

static mr_status run_body(const runner *r, mr_frame *frame, mr_error *error)
{
    const mr_straight_loop *loop = &frame->region->straight;
    MR_TRY(run_iteration_calls(r, frame, loop->body, loop->body_count, error));
    move(frame, loop->next, loop->next_count);
    for (int32_t i = 0; i < loop->release_count; i++) mr_tensor_deinit(&frame->slots[loop->releases[i]]);
    if (frame->iteration == INT32_MAX) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "a loop has too many iterations");
    frame->iteration++;
    return MR_OK;
}

/* Runs iterations until the loop ends, or until it is something else's turn. */
static mr_status run_straight(runner *r, mr_frame *frame, mr_error *error)
{
    const mr_straight_loop *loop = &frame->region->straight;
    bool goes_on = false;
    assert(frame == frame->loop->first && frame == frame->loop->latest && frame->busy == 1);
    if (frame->iteration == 0) move(frame, loop->enter, loop->enter_count);
    for (int32_t i = 1;; i++) {
        if (mr_run_is_stopped(r->outer->run)) return mr_run_stopped(r->outer->run, error);
        MR_TRY(run_head(r, frame, &goes_on, error));
        if (!goes_on) break;
        MR_TRY(run_body(r, frame, error));
        if (r->count > 0 && i % TURN_ITERATIONS == 0) return append(r, frame, frame->region->first_segment, error);
    }
    MR_TRY(run_segment(r, frame, loop->exit, error));
    return finish_segment(r, frame, loop->exit, false, error);
}

/* ---- Runs ---- */

/* After an error: ends the loops in the frame, and what they contain. */
static void abandon(mr_frame *frame)
{
    for (int32_t i = 0; i < frame->region->loop_count; i++) {
        mr_loop *loop = &frame->loops[i];
        if (!loop->is_running) continue;
        for (mr_frame *at; (at = loop->first) != nullptr;) {
            loop->first = at->later;
            abandon(at);
            end_frame(at);
        }
        end_loop(loop);
    }
    frame->busy = 0;
}

static mr_status check_guard(const runner *r, mr_frame *frame, int32_t segment, bool *diverged, mr_error *error)
{
    if (frame != r->outer || segment != r->program->guard_segment) return MR_OK;
    return mr_guard_check(frame, diverged, error);
}

/* Ends a segment that has run, unless the run ends because of the guard. */
static mr_status end_segment(runner *r, mr_frame *frame, int32_t segment, bool *diverged, mr_error *error)
{
    MR_TRY(check_guard(r, frame, segment, diverged, error));
    return *diverged ? MR_OK : finish_segment(r, frame, segment, false, error);
}

static mr_status run_queued(runner *r, bool *diverged, mr_error *error)
{
    mr_queued next = dequeue(r);
    if (mr_run_is_stopped(r->outer->run)) return mr_run_stopped(r->outer->run, error);
    if (next.frame->region->straight.is_straight) return run_straight(r, next.frame, error);
    if (state_of(next.frame, next.segment)->is_dead) return finish_segment(r, next.frame, next.segment, true, error);
    MR_TRY(run_segment(r, next.frame, next.segment, error));
    if (r->program->segments[next.segment].waits && next.frame->would_wait) {
        next.frame->would_wait = false;
        return mr_waiting_park(&r->waiting, next.frame, next.segment, error);
    }
    return end_segment(r, next.frame, next.segment, diverged, error);
}

/* Nothing can run until a call that waits is done. */
static mr_status run_waiting(runner *r, bool *diverged, mr_error *error)
{
    mr_frame *frame;
    int32_t segment;
    MR_TRY(mr_waiting_next(&r->waiting, &frame, &segment, error));
    const mr_call *call = &r->program->calls[r->program->segments[segment].first_call];
    MR_TRY(mr_frame_end_call(frame, call, r->outer, error));
    return end_segment(r, frame, segment, diverged, error);
}

mr_status mr_frame_run_segments(mr_frame *frame, uint64_t began_ns, bool *diverged, mr_error *error)
{
    runner r = {.program = frame->program, .outer = frame, .began_ns = began_ns};
    mr_status status = start_frame(&r, frame, error);
    frame->may_wait = false;
    while (status == MR_OK && !*diverged && (r.count > 0 || r.waiting.count > 0))
        status = r.count > 0 ? run_queued(&r, diverged, error) : run_waiting(&r, diverged, error);
    mr_waiting_end(&r.waiting);
    if (status == MR_OK && !*diverged && frame->program->signature.guard >= 0 && frame->program->guard_segment < 0)
        status = mr_guard_check(frame, diverged, error);
    if (status == MR_OK && !*diverged && frame->busy > 0)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "a loop waits for a value that is never computed");
    abandon(frame);
    return status;
}
