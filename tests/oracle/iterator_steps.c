/* Runs steps of three iterators for iterator_oracle.py: iterator_steps THREADS < steps. a and b are created from a
 * structure, c from a dataset. A step is two letters:
 *
 *     a1   initialize a with dataset 1 (0 to 3)     a.   its next element     ah   its next element by its handle
 *
 * Prints a line for each step: the number, "end", "uninitialized", "mismatch", or "ok". */
#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>

static mr_dataset *dataset(int which)
{
    switch (which) {
    case 0:
        return mr_dataset_range(0, 3, 1);
    case 1:
        return mr_dataset_prefetch(mr_dataset_range(10, 17, 2), 2);
    case 2:
        return mr_dataset_repeat(mr_dataset_skip(mr_dataset_range(20, 24, 1), 1), 2);
    default:
        return mr_dataset_batch(mr_dataset_range(0, 4, 1), 2);
    }
}

static const char *word(mr_status status)
{
    return status == MR_OK                    ? "ok"
           : status == MR_OUT_OF_RANGE        ? "end"
           : status == MR_FAILED_PRECONDITION ? "uninitialized"
           : status == MR_INVALID_ARGUMENT    ? "mismatch"
                                              : "failed";
}

static mr_status step(mr_iterator *iterator, int what, mr_element *element)
{
    const mr_element_spec *spec = mr_iterator_spec(iterator);
    if (what == '.') return mr_iterator_next(iterator, element, nullptr);
    if (what == 'h') {
        mr_tensor handle = {0};
        MR_TRY(mr_iterator_handle(iterator, &handle, nullptr));
        mr_status status = mr_iterator_next_by_handle(&handle, spec, element, nullptr);
        mr_tensor_deinit(&handle);
        return status;
    }
    mr_dataset *d = dataset(what - '0');
    mr_status status = mr_iterator_initialize(iterator, d, nullptr);
    mr_dataset_free(d);
    return status;
}

int main(int argc, char **argv)
{
    mr_iterator_options options = {.size = sizeof options, .threads = argc > 1 ? (int)strtol(argv[1], nullptr, 10) : 1};
    const mr_element_spec number = {.count = 1, .dtypes = {MR_INT64}};
    mr_iterator *iterators[3];
    mr_dataset *own = dataset(1);
    if (mr_iterator_new_from_spec(&number, &options, &iterators[0], nullptr) != MR_OK ||
        mr_iterator_new_from_spec(&number, &options, &iterators[1], nullptr) != MR_OK ||
        mr_iterator_new(own, &options, &iterators[2], nullptr) != MR_OK)
        return 1;
    mr_dataset_free(own);
    mr_element element = {0};
    for (char line[16]; fgets(line, sizeof line, stdin);) {
        if (line[0] < 'a' || line[0] > 'c') continue;
        mr_status status = step(iterators[line[0] - 'a'], line[1], &element);
        if (status == MR_OK && element.count == 1)
            printf("%lld\n", (long long)mr_tensor_int64s(&element.tensors[0])[0]);
        else
            printf("%s\n", word(status));
        mr_element_deinit(&element);
    }
    for (int i = 0; i < 3; i++) mr_iterator_free(iterators[i]);
    return 0;
}
