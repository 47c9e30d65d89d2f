/* Random pipelines for random_pipelines_oracle.py: random_pipelines SEED COUNT LIMIT THREADS. Prints for each pipeline
 * its text, a line "= CARDINALITY", its elements (each component's shape and numbers, separated by ';'; "error" for an
 * element that fails), and "end". */
#include "tests/pipeline/random_pipelines.h"

static void print(const mr_element *element)
{
    char text[MR_SHAPE_TEXT_SIZE];
    for (int32_t c = 0; c < element->count; c++) {
        const mr_tensor *tensor = &element->tensors[c];
        printf("%s%s", c == 0 ? "" : ";", mr_shape_text(tensor->shape, text, sizeof text));
        for (int64_t i = 0; i < mr_tensor_count(tensor); i++) printf(" %lld", (long long)mr_tensor_int64s(tensor)[i]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    uint64_t seed = strtoull(argv[1], nullptr, 10);
    long count = strtol(argv[2], nullptr, 10), limit = strtol(argv[3], nullptr, 10);
    int threads = (int)strtol(argv[4], nullptr, 10);
    for (long i = 0; i < count; i++) {
        static random_pipeline pipeline;
        mr_error error = {0};
        mr_dataset *d = random_pipeline_make(&pipeline, seed + (uint64_t)i);
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        printf("%s= %lld\n", pipeline.text, (long long)mr_dataset_cardinality(d));
        fflush(stdout);
        mr_status status = mr_iterator_new(d, MR_OPTIONS(mr_iterator_options, .threads = threads), &iterator, &error);
        for (long n = 0; n < limit && status == MR_OK; n++) {
            status = mr_iterator_next(iterator, &element, &error);
            if (status == MR_OK) print(&element);
        }
        if (status != MR_OK && status != MR_OUT_OF_RANGE) {
            printf("error\n");
            fprintf(stderr, "pipeline %llu: %s\n", (unsigned long long)seed + (unsigned long long)i, error.message);
        }
        printf("end\n");
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(d);
    }
    return 0;
}
