/* Functions: a table by name and attrs, and calls. */
#include "graph/run/function.h"

#include "base/thread.h"
#include "graph/ir/convert.h"
#include "graph/run/execute.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct mr_function {
    mr_function *next; /* in the session's list */
    mr_string key;
    mr_session *session;
    mr_arena arena;
    mr_function_body body;
    mr_signature signature;
    mr_node_states states;
    mr_program *program; /* atomic; null until the first call */
};

/* ---- The table ---- */

/* A function's name and attrs as bytes. */
static mr_status make_key(const char *name, const mr_attrs *attrs, bool gradient, mr_arena *arena, mr_string *key,
                          mr_error *error)
{
    Mr__NameAttrList list = MR__NAME_ATTR_LIST__INIT;
    size_t count = attrs ? (size_t)attrs->count : 0;
    Mr__AttrEntry *entries = MR_ARENA_NEW(arena, Mr__AttrEntry, count + 1);
    list.attr = MR_ARENA_NEW(arena, Mr__AttrEntry *, count + 1);
    list.name = mr_arena_printf(arena, "%s%s", gradient ? "gradient of " : "", name);
    if (!entries || !list.attr || !list.name) return mr_fail_memory(error, count * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        const mr_attr *attr = &attrs->items[i];
        /* What does not change the body: shapes, and hints of other runtimes. */
        if (attr->name[0] == '_') continue;
        mr__attr_entry__init(&entries[i]);
        entries[i].key = (char *)attr->name;
        MR_TRY(mr_attr_write(attr, arena, &entries[i].value, error));
        list.attr[list.n_attr++] = &entries[i];
    }
    return mr_proto_pack(&list, arena, key, error);
}

/* Replaces the body by that of its gradient: the gradients of the results become further arguments. */
static mr_status make_gradient(mr_function *f, mr_error *error)
{
    mr_function_body *body = &f->body;
    int32_t count = body->input_count + body->output_count;
    mr_output *inputs = MR_ARENA_NEW(&f->arena, mr_output, (size_t)count + 1);
    mr_output *gradients = MR_ARENA_NEW(&f->arena, mr_output, (size_t)body->input_count + 1);
    if (!inputs || !gradients) return mr_fail_memory(error, (size_t)count * sizeof *inputs);
    for (int32_t i = 0; i < body->input_count; i++) inputs[i] = body->inputs[i];
    for (int32_t i = 0; i < body->output_count; i++) {
        mr_node_builder node = mr_node_begin(body->graph, "_Arg", "gradient");
        mr_node_set_dtype(&node, "T", mr_output_dtype(body->outputs[i]));
        mr_node_set_int(&node, "index", body->input_count + i);
        inputs[body->input_count + i] = mr_node_finish(&node);
        /* A result that nothing narrows has the shape of its gradient. */
        mr_output_set_shape(inputs[body->input_count + i], mr_output_shape(body->outputs[i]));
    }
    mr_gradients(body->graph, (mr_outputs){body->outputs, body->output_count},
                 (mr_outputs){body->inputs, body->input_count}, inputs + body->input_count, gradients);
    for (int32_t i = 0; i < body->input_count; i++)
        if (!gradients[i].node) {
            mr_node_builder zeros = mr_node_begin(body->graph, "ZerosLike", "zeros");
            mr_node_add_input(&zeros, body->inputs[i]);
            gradients[i] = mr_node_finish(&zeros);
        }
    body->outputs = gradients;
    body->output_count = body->input_count;
    body->inputs = inputs;
    body->input_count = count;
    body->target_count = 0;
    return mr_graph_status(body->graph, error);
}

static mr_status init_function(mr_function *f, const char *name, const mr_attrs *attrs, bool gradient, mr_error *error)
{
    const mr_graph *graph = f->session->graph;
    const char *known = gradient ? mr_function_library_gradient(graph->functions, name) : nullptr;
    MR_TRY(mr_function_body_init(&f->body, graph, known ? known : name, attrs, error));
    if (gradient && !known) {
        mr_status status = make_gradient(f, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "gradient of function %.200s", name);
    }
    f->signature = (mr_signature){.feed_count = f->body.input_count,
                                  .fetch_count = f->body.output_count,
                                  .target_count = f->body.target_count,
                                  .feeds = f->body.inputs,
                                  .fetches = f->body.outputs,
                                  .targets = f->body.targets,
                                  .guard = -1,
                                  .is_function = true};
    return MR_OK;
}

void mr_function_free(mr_function *f)
{
    if (!f) return;
    mr_program_unref(f->program);
    mr_node_states_deinit(&f->states);
    mr_function_body_deinit(&f->body);
    mr_arena_deinit(&f->arena);
    free(f);
}

void mr_session_free_functions(mr_session *session)
{
    for (mr_function *f = session->functions, *next; f; f = next) {
        next = f->next;
        mr_function_free(f);
    }
    session->functions = nullptr;
}

/* The caller holds the session's mutex. */
static mr_status new_function(mr_session *session, const char *name, const mr_attrs *attrs, bool gradient,
                              mr_function **function, mr_error *error)
{
    mr_function *made = calloc(1, sizeof *made);
    if (!made) return mr_fail_memory(error, sizeof *made);
    made->session = session;
    mr_status status = init_function(made, name, attrs, gradient, error);
    if (status != MR_OK) {
        mr_function_free(made);
        return status;
    }
    *function = made;
    return MR_OK;
}

static mr_status find_function(mr_session *session, const char *name, const mr_attrs *attrs, bool gradient,
                               mr_arena *arena, mr_function **function, mr_error *error)
{
    mr_string key;
    MR_TRY(make_key(name, attrs, gradient, arena, &key, error));
    assert(mr_mutex_is_held(&session->mutex));
    for (*function = session->functions; *function; *function = (*function)->next)
        if (mr_string_equal((*function)->key, key)) return MR_OK;
    mr_function *made;
    MR_TRY(new_function(session, name, attrs, gradient, &made, error));
    made->key = (mr_string){mr_arena_copy(&made->arena, key.data, key.size_bytes), key.size_bytes};
    if (!made->key.data) {
        mr_function_free(made);
        return mr_fail_memory(error, key.size_bytes);
    }
    made->next = session->functions;
    session->functions = *function = made;
    return MR_OK;
}

mr_status mr_session_function(mr_session *session, const char *name, const mr_attrs *attrs, bool gradient,
                              mr_function **function, mr_error *error)
{
    mr_arena arena = {0};
    pthread_mutex_lock(&session->mutex);
    mr_status status = find_function(session, name, attrs, gradient, &arena, function, error);
    pthread_mutex_unlock(&session->mutex);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_session_own_function(mr_session *session, const char *name, const mr_attrs *attrs, mr_function **function,
                                  mr_error *error)
{
    pthread_mutex_lock(&session->mutex);
    mr_status status = new_function(session, name, attrs, false, function, error);
    pthread_mutex_unlock(&session->mutex);
    return status;
}

int32_t mr_function_input_count(const mr_function *function)
{
    return function->signature.feed_count;
}

int32_t mr_function_output_count(const mr_function *function)
{
    return function->signature.fetch_count;
}

bool mr_function_is_stateful(const mr_function *function)
{
    return function->signature.target_count > 0;
}

mr_dtype mr_function_input_dtype(const mr_function *function, int32_t index)
{
    assert(index >= 0 && index < function->signature.feed_count);
    return mr_output_dtype(function->signature.feeds[index]);
}

mr_dtype mr_function_output_dtype(const mr_function *function, int32_t index)
{
    assert(index >= 0 && index < function->signature.fetch_count);
    return mr_output_dtype(function->signature.fetches[index]);
}

/* ---- Calls ---- */

static mr_status find_program(mr_function *f, mr_program **program, mr_error *error)
{
    *program = __atomic_load_n(&f->program, __ATOMIC_ACQUIRE);
    if (*program) return MR_OK;
    mr_session *session = f->session;
    mr_status status = MR_OK;
    pthread_mutex_lock(&session->mutex);
    if (!f->program) {
        mr_plan_context context = session->context;
        mr_program *made = nullptr;
        context.graph = f->body.graph;
        context.states = &f->states;
        status = mr_plan_make(&f->signature, &context, &made, error);
        if (status == MR_OK) __atomic_store_n(&f->program, made, __ATOMIC_RELEASE);
    }
    *program = f->program;
    pthread_mutex_unlock(&session->mutex);
    return status;
}

static mr_status run_function(mr_function *f, mr_run_context *run, int32_t depth, mr_tensor *inputs, mr_tensor *outputs,
                              mr_error *error)
{
    mr_program *program;
    mr_frame *frame;
    bool diverged = false;
    MR_TRY(mr_nesting_check(depth, error));
    MR_TRY(find_program(f, &program, error));
    MR_TRY(mr_frame_take(program, 0, &frame, error));
    frame->run = run;
    frame->depth = depth;
    int32_t before = mr_nesting_set(depth);
    mr_status status = mr_frame_run(frame, inputs, outputs, &diverged, error);
    (void)mr_nesting_set(before);
    frame->run = nullptr;
    mr_frame_give(frame);
    return status;
}

mr_status mr_function_call(mr_function *function, mr_run_context *run, int32_t depth, mr_tensor *inputs,
                           mr_tensor *outputs, mr_error *error)
{
    assert(run->session == function->session);
    mr_status status = run_function(function, run, depth, inputs, outputs, error);
    for (int32_t i = 0; i < function->signature.feed_count; i++) mr_tensor_deinit(&inputs[i]);
    return status;
}
