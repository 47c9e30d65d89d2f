/* Runs operations on one queue, for queue_oracle.py. Reads one operation per line and prints a line for each:
 *
 *     queue fifo 4 0 i s2
 *     enqueue i=7 s2=a,b
 *     dequeue_up_to 3
 *
 * A component is its dtype (i: int64, s: string), its sizes and, after "=", its elements. "start" before an operation
 * runs it on another thread; "settle n" waits until the queue has n elements, which shows that the operation has begun,
 * and "join" prints its result. */
#include <millrace/queue.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 16 };

typedef struct operation {
    mr_queue *queue;
    char line[TEXT_MAX];
    char result[TEXT_MAX];
} operation;

static mr_dtype dtype_of(char letter)
{
    return letter == 's' ? MR_STRING : MR_INT64;
}

/* Parses "2,-1" up to the end or "="; "?" is an unknown rank. */
static const char *read_shape(const char *text, mr_shape *shape)
{
    *shape = (mr_shape){.rank = *text == '?' ? -1 : 0};
    if (*text == '?') text++;
    while (*text != 0 && *text != '=') {
        char *end = nullptr;
        shape->dims[shape->rank++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return text;
}

static mr_status read_component(char *text, mr_tensor *tensor, mr_error *error)
{
    mr_shape shape;
    char *rest = (char *)read_shape(text + 1, &shape);
    int64_t count = mr_shape_count(shape);
    mr_string *strings = calloc((size_t)count + 1, sizeof *strings);
    int64_t *numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (strings == nullptr || numbers == nullptr) abort();
    for (int64_t i = 0; i < count; i++) {
        char *word = ++rest;
        rest += strcspn(rest, ",");
        numbers[i] = strtoll(word, nullptr, 10);
        strings[i] = (mr_string){word, (size_t)(rest - word)};
    }
    mr_status status = dtype_of(*text) == MR_STRING ? mr_tensor_init_strings(tensor, shape, strings, error)
                                                    : mr_tensor_init_copy(tensor, MR_INT64, shape, numbers, error);
    free(strings);
    free(numbers);
    return status;
}

/* Prints the tensors as text and releases them. */
static void print_components(mr_tensor *tensors, int32_t count, char *text)
{
    char *at = text, *end = text + TEXT_MAX;
    for (int32_t c = 0; c < count; c++) {
        const mr_tensor *tensor = &tensors[c];
        at += snprintf(at, (size_t)(end - at), "%s%c", c == 0 ? "" : " ", tensor->dtype == MR_STRING ? 's' : 'i');
        for (int32_t d = 0; d < tensor->shape.rank; d++)
            at += snprintf(at, (size_t)(end - at), d == 0 ? "%lld" : ",%lld", (long long)tensor->shape.dims[d]);
        for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
            at += snprintf(at, (size_t)(end - at), i == 0 ? "=" : ",");
            if (tensor->dtype == MR_STRING)
                at += snprintf(at, (size_t)(end - at), "%.*s", (int)mr_tensor_strings(tensor)[i].size_bytes,
                               mr_tensor_strings(tensor)[i].data);
            else
                at += snprintf(at, (size_t)(end - at), "%lld", (long long)mr_tensor_int64s(tensor)[i]);
        }
        mr_tensor_deinit(&tensors[c]);
    }
}

static mr_status enqueue(operation *o, bool are_many, char **rest, mr_error *error)
{
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    int32_t count = 0;
    mr_status status = MR_OK;
    for (char *word; status == MR_OK && (word = strtok_r(nullptr, " \n", rest)) != nullptr;)
        status = read_component(word, &tensors[count++], error);
    if (status == MR_OK)
        status =
            are_many ? mr_queue_enqueue_many(o->queue, tensors, error) : mr_queue_enqueue(o->queue, tensors, error);
    for (int32_t c = 0; c < count; c++) mr_tensor_deinit(&tensors[c]);
    if (status == MR_OK) snprintf(o->result, sizeof o->result, "OK");
    return status;
}

static mr_status dequeue(operation *o, const char *word, char **rest, mr_error *error)
{
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    const char *count = strtok_r(nullptr, " \n", rest);
    int64_t n = count == nullptr ? 0 : strtoll(count, nullptr, 10);
    if (strcmp(word, "dequeue") == 0)
        MR_TRY(mr_queue_dequeue(o->queue, tensors, error));
    else if (strcmp(word, "dequeue_many") == 0)
        MR_TRY(mr_queue_dequeue_many(o->queue, n, tensors, error));
    else
        MR_TRY(mr_queue_dequeue_up_to(o->queue, n, tensors, error));
    print_components(tensors, mr_queue_describe(o->queue)->component_count, o->result);
    return MR_OK;
}

static void *operate(void *argument)
{
    operation *o = argument;
    mr_error error = {0};
    mr_status status = MR_OK;
    char *rest = nullptr;
    const char *word = strtok_r(o->line, " \n", &rest);
    if (strncmp(word, "enqueue", 7) == 0) {
        status = enqueue(o, strcmp(word, "enqueue_many") == 0, &rest, &error);
    } else if (strncmp(word, "dequeue", 7) == 0) {
        status = dequeue(o, word, &rest, &error);
    } else if (strcmp(word, "close") == 0) {
        mr_queue_close(o->queue, strcmp(strtok_r(nullptr, " \n", &rest), "1") == 0);
        snprintf(o->result, sizeof o->result, "OK");
    } else if (strcmp(word, "size") == 0) {
        snprintf(o->result, sizeof o->result, "%lld", (long long)mr_queue_size(o->queue));
    } else if (strcmp(word, "closed") == 0) {
        snprintf(o->result, sizeof o->result, "%s", mr_queue_is_closed(o->queue) ? "1" : "0");
    }
    if (status != MR_OK) snprintf(o->result, sizeof o->result, "%s", mr_status_name(status));
    return nullptr;
}

static mr_status make(char *line, mr_queue **queue, mr_error *error)
{
    static const char *const kinds[] = {"fifo", "shuffle", "padding", "priority"};
    char *rest = nullptr;
    (void)strtok_r(line, " \n", &rest);
    const char *word = strtok_r(nullptr, " \n", &rest);
    mr_queue_kind kind = MR_QUEUE_FIFO;
    for (int i = 0; i < 4; i++)
        if (strcmp(word, kinds[i]) == 0) kind = (mr_queue_kind)i;
    mr_queue_options options = {.size = sizeof options, .seed = kind == MR_QUEUE_RANDOM_SHUFFLE ? 7 : 0};
    options.capacity = strtoll(strtok_r(nullptr, " \n", &rest), nullptr, 10);
    options.min_after_dequeue = strtoll(strtok_r(nullptr, " \n", &rest), nullptr, 10);
    while ((word = strtok_r(nullptr, " \n", &rest)) != nullptr) {
        options.dtypes[options.component_count] = dtype_of(*word);
        (void)read_shape(word + 1, &options.shapes[options.component_count++]);
    }
    return mr_queue_new(kind, &options, queue, error);
}

int main(void)
{
    static operation here, there;
    static char line[TEXT_MAX];
    mr_queue *queue = nullptr;
    pthread_t thread;
    while (fgets(line, sizeof line, stdin) != nullptr) {
        mr_error error = {0};
        here.queue = there.queue = queue;
        if (strncmp(line, "queue ", 6) == 0) {
            mr_queue_unref(queue);
            puts(mr_status_name(make(line, &queue, &error)));
        } else if (strncmp(line, "start ", 6) == 0) {
            snprintf(there.line, sizeof there.line, "%s", line + 6);
            if (pthread_create(&thread, nullptr, operate, &there) != 0) return 1;
        } else if (strncmp(line, "settle ", 7) == 0) {
            while (mr_queue_size(queue) != strtoll(line + 7, nullptr, 10)) (void)sched_yield();
        } else if (strncmp(line, "join", 4) == 0) {
            pthread_join(thread, nullptr);
            puts(there.result);
        } else {
            snprintf(here.line, sizeof here.line, "%s", line);
            (void)operate(&here);
            puts(here.result);
        }
    }
    mr_queue_unref(queue);
    return 0;
}
