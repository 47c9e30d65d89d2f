/* Input producers, readers and batches on queues, for queue_inputs_oracle.py. Prints a line for each element, record or
 * batch, and one for the status that ended them. Strings are printed in hexadecimal.
 *
 *     queue_inputs strings EPOCHS SHUFFLE STRING …
 *     queue_inputs range LIMIT EPOCHS SHUFFLE
 *     queue_inputs slices ROWS EPOCHS SHUFFLE
 *     queue_inputs limit EPOCHS
 *     queue_inputs read KIND SKIP HEADER RECORD FOOTER HOP UP_TO FILE …
 *     queue_inputs batch LIMIT EPOCHS SIZE CAPACITY SMALLER MANY PAD KEEP SHUFFLE LEAST PRODUCERS */
#include <millrace/queue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_tensor(const mr_tensor *tensor)
{
    printf("[");
    for (int32_t d = 0; d < tensor->shape.rank; d++) printf("%lld,", (long long)tensor->shape.dims[d]);
    printf("]");
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) {
        if (tensor->dtype != MR_STRING) {
            printf(" %lld", (long long)mr_tensor_int64s(tensor)[i]);
            continue;
        }
        mr_string string = mr_tensor_strings(tensor)[i];
        printf(" x");
        for (size_t b = 0; b < string.size_bytes; b++) printf("%02x", (unsigned char)string.data[b]);
    }
}

static void print_element(mr_tensor *tensors, int32_t count)
{
    for (int32_t c = 0; c < count; c++) {
        if (c > 0) printf(" ");
        print_tensor(&tensors[c]);
        mr_tensor_deinit(&tensors[c]);
    }
    printf("\n");
}

/* ---- Input producers ---- */

static mr_status take_all(mr_queue *queue, mr_error *error)
{
    mr_tensor tensors[MR_COMPONENTS_MAX] = {0};
    mr_status status;
    while ((status = mr_queue_dequeue(queue, tensors, error)) == MR_OK)
        print_element(tensors, mr_queue_describe(queue)->component_count);
    return status;
}

static mr_status slices(int64_t rows, const mr_input_producer_options *options, mr_coordinator *coordinator,
                        mr_queue **queue, mr_error *error)
{
    mr_tensor components[2] = {0};
    mr_status status = mr_tensor_init(&components[0], MR_INT64, MR_SHAPE(rows), error);
    if (status == MR_OK) status = mr_tensor_init(&components[1], MR_INT64, MR_SHAPE(rows, 2), error);
    for (int64_t i = 0; i < rows && status == MR_OK; i++) {
        mr_tensor_int64s(&components[0])[i] = i;
        mr_tensor_int64s(&components[1])[2 * i] = mr_tensor_int64s(&components[1])[2 * i + 1] = 10 * i;
    }
    if (status == MR_OK) status = mr_slice_input_producer(components, 2, options, coordinator, queue, error);
    for (int c = 0; c < 2; c++) mr_tensor_deinit(&components[c]);
    return status;
}

static mr_status produce(char **words, int count, mr_coordinator *coordinator, mr_error *error)
{
    mr_queue *queue = nullptr;
    mr_status status;
    int64_t number = strtoll(words[1], nullptr, 10);
    int at = strcmp(words[0], "strings") == 0 ? 1 : 2;
    mr_input_producer_options options = {.size = sizeof options,
                                         .epochs = strtoll(words[at], nullptr, 10),
                                         .no_shuffle = strcmp(words[at + 1], "0") == 0};
    options.seed = options.no_shuffle ? 0 : 5;
    if (at == 1)
        status =
            mr_string_input_producer((const char *const *)&words[3], count - 3, &options, coordinator, &queue, error);
    else if (strcmp(words[0], "range") == 0)
        status = mr_range_input_producer(number, &options, coordinator, &queue, error);
    else
        status = slices(number, &options, coordinator, &queue, error);
    if (status == MR_OK) status = take_all(queue, error);
    mr_queue_unref(queue);
    return status;
}

static mr_status limit(int64_t epochs, mr_error *error)
{
    mr_tensor seven = {0};
    mr_element output = {0};
    MR_TRY(mr_tensor_init_int64(&seven, 7, error));
    mr_limit_epochs limited = {&seven, 1, epochs, 0};
    mr_status status;
    while ((status = mr_limit_epochs_produce(&limited, &output, error)) == MR_OK)
        print_element(output.tensors, output.count);
    mr_element_deinit(&output);
    mr_tensor_deinit(&seven);
    return status;
}

/* ---- Readers ---- */

static mr_status read_files(char **words, int count, mr_coordinator *coordinator, mr_error *error)
{
    static const char *const kinds[] = {"whole", "text", "fixed", "record"};
    mr_reader_kind kind = MR_READER_WHOLE_FILE;
    for (int i = 0; i < 4; i++)
        if (strcmp(words[1], kinds[i]) == 0) kind = (mr_reader_kind)i;
    mr_reader_options options = {.size = sizeof options,
                                 .skip_header_lines = (int32_t)strtol(words[2], nullptr, 10),
                                 .header_bytes = strtoull(words[3], nullptr, 10),
                                 .record_bytes = strtoull(words[4], nullptr, 10),
                                 .footer_bytes = strtoull(words[5], nullptr, 10),
                                 .hop_bytes = strtoull(words[6], nullptr, 10)};
    int64_t up_to = strtoll(words[7], nullptr, 10);
    mr_queue *names = nullptr;
    mr_reader *reader = nullptr;
    MR_TRY(mr_string_input_producer((const char *const *)&words[8], count - 8,
                                    MR_OPTIONS(mr_input_producer_options, .epochs = 1, .no_shuffle = true), coordinator,
                                    &names, error));
    mr_status status = mr_reader_new(kind, &options, &reader, error);
    for (int errors = 0; status != MR_OUT_OF_RANGE && reader != nullptr && errors < 3;) {
        mr_tensor pair[2] = {0};
        status = up_to > 0 ? mr_reader_read_up_to(reader, names, up_to, &pair[0], &pair[1], error)
                           : mr_reader_read(reader, names, &pair[0], &pair[1], error);
        if (status == MR_OK) {
            print_element(pair, 2);
            continue;
        }
        errors++;
        if (status != MR_OUT_OF_RANGE) puts(mr_status_name(status));
    }
    if (reader != nullptr)
        printf("%lld records, %lld files\n", (long long)mr_reader_records_produced(reader),
               (long long)mr_reader_work_units_completed(reader));
    mr_reader_free(reader);
    mr_queue_unref(names);
    return status;
}

/* ---- Batches ---- */

typedef struct numbers {
    int64_t next, limit, epochs;
    bool are_many, are_ragged;
} numbers;

/* Appends a tensor of this shape with the values first, first + step, … */
static mr_status put(mr_element *output, mr_shape shape, int64_t first, int64_t step, mr_error *error)
{
    mr_tensor *to = &output->tensors[output->count];
    MR_TRY(mr_tensor_init(to, MR_INT64, shape, error));
    output->count++;
    for (int64_t i = 0; i < mr_tensor_count(to); i++) mr_tensor_int64s(to)[i] = first + i * step;
    return MR_OK;
}

/* x and [x, 2x]. are_ragged: the second component is [0 … x modulo 4). are_many: three such rows. */
static mr_status produce_number(void *context, mr_element *output, mr_error *error)
{
    numbers *n = context;
    if (n->next == n->limit * n->epochs) return mr_fail(error, MR_OUT_OF_RANGE, "no more");
    int64_t x = n->next++ % n->limit;
    MR_TRY(put(output, n->are_many ? MR_SHAPE(3) : MR_SCALAR, x, 100, error));
    if (n->are_ragged) return put(output, n->are_many ? MR_SHAPE(3, x % 4) : MR_SHAPE(x % 4), 0, 1, error);
    return put(output, n->are_many ? MR_SHAPE(3, 2) : MR_SHAPE(2), x, x, error);
}

static bool keeps(void *context, const mr_element *element)
{
    (void)context;
    return mr_tensor_int64s(&element->tensors[0])[0] % 3 != 0;
}

static mr_status batch(char **words, mr_coordinator *coordinator, mr_error *error)
{
    int64_t w[12];
    for (int i = 1; i < 12; i++) w[i] = strtoll(words[i], nullptr, 10);
    static numbers each[8];
    mr_producer producers[8];
    for (int64_t i = 0; i < w[11]; i++) {
        each[i] = (numbers){.limit = w[1], .epochs = w[2], .are_many = w[6] != 0, .are_ragged = w[7] != 0};
        producers[i] = (mr_producer){produce_number, &each[i], nullptr};
    }
    mr_element_spec spec = {
        .count = 2, .dtypes = {MR_INT64, MR_INT64}, .shapes = {MR_SCALAR, w[7] != 0 ? MR_SHAPE(-1) : MR_SHAPE(2)}};
    mr_train_batch_options options = {.size = sizeof options,
                                      .batch_size = w[3],
                                      .capacity = w[4],
                                      .allow_smaller_final_batch = w[5] != 0,
                                      .enqueue_many = w[6] != 0,
                                      .dynamic_pad = w[7] != 0,
                                      .keep = w[8] != 0 ? keeps : nullptr,
                                      .shuffle = w[9] != 0,
                                      .min_after_dequeue = w[10],
                                      .seed = w[9] != 0 ? 9 : 0};
    mr_queue *queue = nullptr;
    mr_element element = {0};
    MR_TRY(mr_train_batch(producers, (int32_t)w[11], &spec, &options, coordinator, &queue, error));
    mr_status status;
    while ((status = mr_train_batch_next(queue, &element, error)) == MR_OK) {
        print_element(element.tensors, element.count);
        element.count = 0;
    }
    mr_element_deinit(&element);
    mr_queue_unref(queue);
    return status;
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    mr_coordinator *coordinator = nullptr;
    if (argc < 3 || mr_coordinator_new(&coordinator, &error) != MR_OK) return 1;
    const char *word = argv[1];
    mr_status status;
    if (strcmp(word, "limit") == 0)
        status = limit(strtoll(argv[2], nullptr, 10), &error);
    else if (strcmp(word, "read") == 0)
        status = read_files(&argv[1], argc - 1, coordinator, &error);
    else if (strcmp(word, "batch") == 0)
        status = batch(&argv[1], coordinator, &error);
    else
        status = produce(&argv[1], argc - 1, coordinator, &error);
    puts(mr_status_name(status));
    mr_coordinator_free(coordinator);
    return 0;
}
