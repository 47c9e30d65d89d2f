#include "tools/bench/run.h"

#include <millrace/formats.h>
#include <stdlib.h>
#include <string.h>

static const char *keep(task *t, const char *name)
{
    if (t->name_count == sizeof t->names / sizeof t->names[0]) return "";
    snprintf(t->names[t->name_count], sizeof t->names[0], "%s", name);
    return t->names[t->name_count++];
}

static mr_status read_description(task *t, const char *path, mr_error *error)
{
    char line[512], name[160], file[320];
    FILE *text = fopen(path, "r");
    mr_status status = text ? MR_OK : MR_NOT_FOUND;
    while (status == MR_OK && fgets(line, sizeof line, text)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "divide %lf", &t->divide) == 1 || sscanf(line, "bytes %lf", &t->bytes) == 1) continue;
        if (t->feed_count < RUN_NAMES_MAX && sscanf(line, "feed %159s %319[^\n]", name, file) == 2) {
            t->feeds[t->feed_count] = keep(t, name);
            status = mr_npy_load(file, &t->values[t->feed_count++], error);
        } else if (t->fetch_count < RUN_NAMES_MAX && sscanf(line, "fetch %159s", name) == 1) {
            t->fetches[t->fetch_count++] = keep(t, name);
        } else if (t->target_count < RUN_NAMES_MAX && sscanf(line, "target %159s", name) == 1) {
            t->targets[t->target_count++] = keep(t, name);
        } else if (sscanf(line, "first %159s", name) == 1) {
            t->first = keep(t, name);
        } else if (sscanf(line, "enqueue %d %159s", &t->enqueue_count, name) == 2) {
            t->enqueue = keep(t, name);
        } else if (sscanf(line, "cancel %159s", name) == 1) {
            t->cancel = keep(t, name);
        }
    }
    if (text) fclose(text);
    return status;
}

static mr_status read_graph(task *t, const char *path, mr_error *error)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    char *text = size > 0 ? malloc((size_t)size) : nullptr;
    bool is_read = text && fseek(file, 0, SEEK_SET) == 0 && fread(text, 1, (size_t)size, file) == (size_t)size;
    if (file) fclose(file);
    t->graph_def = (mr_string){text, is_read ? (size_t)size : 0};
    if (is_read) return MR_OK;
    snprintf(error->message, sizeof error->message, "%s cannot be read", path);
    return MR_NOT_FOUND;
}

mr_status task_init(task *t, const char *directory, const char *name, mr_error *error)
{
    char path[512];
    *t = (task){.divide = 1};
    snprintf(path, sizeof path, "%s/%s.txt", directory, name);
    MR_TRY(read_description(t, path, error));
    snprintf(path, sizeof path, "%s/%s.pb", directory, name);
    return read_graph(t, path, error);
}

void task_deinit(task *t)
{
    for (int i = 0; i < t->feed_count; i++) mr_tensor_deinit(&t->values[i]);
    free((char *)t->graph_def.data);
    *t = (task){0};
}

static mr_status run_node(task *t, const char *name, mr_error *error)
{
    mr_node *node = name ? mr_graph_find(t->graph, name) : nullptr;
    return node ? mr_session_run(t->session, MR_NO_FEEDS, (mr_outputs){0}, nullptr, &node, 1, error) : MR_OK;
}

/* Returns the mr_status that ended it. */
static void *enqueue(void *argument)
{
    task *t = argument;
    mr_status status = MR_OK;
    while (status == MR_OK) status = mr_step_run(t->enqueue_step, nullptr, nullptr, nullptr);
    return (void *)(intptr_t)status;
}

static mr_status start_threads(task *t, mr_error *error)
{
    mr_node *node = t->enqueue ? mr_graph_find(t->graph, t->enqueue) : nullptr;
    if (!node) return MR_OK;
    MR_TRY(mr_session_prepare(t->session, nullptr, 0, (mr_outputs){0}, &node, 1, &t->enqueue_step, error));
    while (t->thread_count < t->enqueue_count && t->thread_count < RUN_QUEUE_THREADS_MAX)
        if (pthread_create(&t->threads[t->thread_count], nullptr, enqueue, t) == 0)
            t->thread_count++;
        else
            return MR_RESOURCE_EXHAUSTED;
    return MR_OK;
}

mr_status task_start(task *t, int threads, mr_error *error)
{
    mr_output feeds[RUN_NAMES_MAX], fetches[RUN_NAMES_MAX];
    mr_node *targets[RUN_NAMES_MAX];
    t->graph = mr_graph_new();
    MR_TRY(mr_graph_import(t->graph, t->graph_def.data, t->graph_def.size_bytes, nullptr, error));
    mr_session_options options = {.size = sizeof options, .threads = threads};
    MR_TRY(mr_session_new(t->graph, &options, &t->session, error));
    MR_TRY(run_node(t, t->first, error));
    for (int i = 0; i < t->feed_count; i++) feeds[i] = mr_graph_find_output(t->graph, t->feeds[i]);
    for (int i = 0; i < t->fetch_count; i++) fetches[i] = mr_graph_find_output(t->graph, t->fetches[i]);
    for (int i = 0; i < t->target_count; i++) targets[i] = mr_graph_find(t->graph, t->targets[i]);
    MR_TRY(mr_session_prepare(t->session, feeds, t->feed_count, (mr_outputs){fetches, t->fetch_count}, targets,
                              t->target_count, &t->step, error));
    MR_TRY(start_threads(t, error));
    return task_run(t, error);
}

mr_status task_run(task *t, mr_error *error)
{
    mr_tensor results[RUN_NAMES_MAX] = {0};
    mr_status status = mr_step_run(t->step, t->values, results, error);
    for (int i = 0; i < t->fetch_count; i++) mr_tensor_deinit(&results[i]);
    return status;
}

mr_status task_stop(task *t, mr_error *error)
{
    mr_status status = t->thread_count > 0 ? run_node(t, t->cancel, error) : MR_OK;
    for (; t->thread_count > 0; t->thread_count--) {
        void *ended = nullptr;
        pthread_join(t->threads[t->thread_count - 1], &ended);
        if ((mr_status)(intptr_t)ended == MR_CANCELLED || status != MR_OK) continue;
        status = (mr_status)(intptr_t)ended;
        snprintf(error->message, sizeof error->message, "an enqueueing thread ended with status %d", (int)status);
    }
    mr_session_free(t->session);
    mr_graph_free(t->graph);
    t->session = nullptr;
    t->graph = nullptr;
    t->step = nullptr;
    return status;
}
