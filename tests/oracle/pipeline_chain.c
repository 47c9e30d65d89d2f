/* Runs chains of datasets for pipeline_oracle.py. Each line of stdin is a chain:
 *
 *     range 0 37 1 map repeat 2 batch 4 0 take 3
 *
 * Prints for each chain its cardinality, each element as its shape and its numbers ("error" for one that fails), and
 * "end". */
#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_status affine(void *context, const mr_element *input, mr_random *random, mr_element *output, mr_error *error)
{
    (void)context;
    (void)random;
    MR_TRY(mr_tensor_init(&output->tensors[0], MR_INT64, input->tensors[0].shape, error));
    output->count = 1;
    const int64_t *from = mr_tensor_int64s(&input->tensors[0]);
    int64_t *to = mr_tensor_int64s(&output->tensors[0]);
    for (int64_t i = 0; i < mr_tensor_count(&input->tensors[0]); i++) to[i] = 3 * from[i] + 1;
    return MR_OK;
}

static int64_t number(void)
{
    const char *word = strtok(nullptr, " \n");
    return word == nullptr ? 0 : strtoll(word, nullptr, 10);
}

static mr_dataset *chain(char *line)
{
    mr_dataset *d = nullptr;
    for (const char *word = strtok(line, " \n"); word != nullptr; word = strtok(nullptr, " \n")) {
        if (strcmp(word, "range") == 0) {
            int64_t start = number(), stop = number();
            d = mr_dataset_range(start, stop, number());
        } else if (strcmp(word, "map") == 0) {
            mr_element_spec spec = *mr_dataset_spec(d);
            d = mr_dataset_map(d, affine, nullptr, &spec);
        } else if (strcmp(word, "repeat") == 0) {
            d = mr_dataset_repeat(d, number());
        } else if (strcmp(word, "take") == 0) {
            d = mr_dataset_take(d, number());
        } else if (strcmp(word, "skip") == 0) {
            d = mr_dataset_skip(d, number());
        } else if (strcmp(word, "shard") == 0) {
            int64_t count = number();
            d = mr_dataset_shard(d, count, number());
        } else if (strcmp(word, "batch") == 0) {
            int64_t size = number();
            d = mr_dataset_batch(d, size, .drop_remainder = number() != 0);
        } else if (strcmp(word, "prefetch") == 0) {
            d = mr_dataset_prefetch(d, (int32_t)number());
        } else if (strcmp(word, "shuffle") == 0) {
            d = mr_dataset_shuffle(d, .buffer_size = number(), .seed = 1);
        }
    }
    return d;
}

static void print(const mr_tensor *tensor)
{
    char text[MR_SHAPE_TEXT_SIZE];
    printf("%s", mr_shape_text(tensor->shape, text, sizeof text));
    for (int64_t i = 0; i < mr_tensor_count(tensor); i++) printf(" %lld", (long long)mr_tensor_int64s(tensor)[i]);
    printf("\n");
}

int main(int argc, char **argv)
{
    int limit = argc > 1 ? (int)strtol(argv[1], nullptr, 10) : 100;
    int threads = argc > 2 ? (int)strtol(argv[2], nullptr, 10) : 2;
    for (char line[4096]; fgets(line, sizeof line, stdin);) {
        mr_error error = {0};
        mr_dataset *d = chain(line);
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        printf("%lld\n", (long long)mr_dataset_cardinality(d));
        mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error);
        for (int i = 0; i < limit && status == MR_OK; i++) {
            status = mr_iterator_next(iterator, &element, &error);
            if (status == MR_OK) print(&element.tensors[0]);
        }
        if (status != MR_OK && status != MR_OUT_OF_RANGE) printf("error\n");
        printf("end\n");
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
    return 0;
}
