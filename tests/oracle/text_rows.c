/* Lines of text and rows of CSV, for text_oracle.py. `text_rows` reads one data set per line from stdin:
 *
 *     text PATH
 *     csv PATH HEADER CELLS NO_QUOTES NA DTYPES     NA is - for none; DTYPES is one of "sfdil" for each column from 0
 *
 * Prints for each data set one line per element, with strings as hexadecimal bytes; "error" for an element that fails,
 * or "lost" if the rest of the file is lost with it; and "end". */
#include <millrace/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mr_dataset *read_dataset(char *line)
{
    const char *word = strtok(line, " \n"), *path = strtok(nullptr, " \n");
    if (word == nullptr || path == nullptr) return nullptr;
    if (strcmp(word, "text") == 0) return mr_dataset_text_lines(path);
    mr_csv_options options = {.size = sizeof options, .has_header = atoi(strtok(nullptr, " \n")) != 0};
    options.column_count = atoi(strtok(nullptr, " \n"));
    options.no_quotes = atoi(strtok(nullptr, " \n")) != 0;
    const char *na = strtok(nullptr, " \n"), *dtypes = strtok(nullptr, " \n");
    if (strcmp(na, "-") != 0) options.na_value = na;
    mr_csv_column columns[MR_COMPONENTS_MAX] = {0};
    int32_t count = 0;
    for (; dtypes[count] != '\0'; count++) {
        columns[count].index = count;
        columns[count].dtype = dtypes[count] == 'f'   ? MR_FLOAT
                               : dtypes[count] == 'd' ? MR_DOUBLE
                               : dtypes[count] == 'i' ? MR_INT32
                               : dtypes[count] == 'l' ? MR_INT64
                                                      : MR_STRING;
    }
    return mr_dataset_csv_(path, columns, count, &options);
}

static void print_scalar(const mr_tensor *tensor)
{
    if (tensor->dtype == MR_STRING) {
        mr_string s = mr_tensor_strings(tensor)[0];
        printf(" s");
        for (size_t i = 0; i < s.size_bytes; i++) printf("%02x", (unsigned char)s.data[i]);
    } else if (tensor->dtype == MR_INT32) {
        printf(" %d", mr_tensor_int32s(tensor)[0]);
    } else if (tensor->dtype == MR_INT64) {
        printf(" %lld", (long long)mr_tensor_int64s(tensor)[0]);
    } else if (tensor->dtype == MR_FLOAT) {
        printf(" %.9g", (double)mr_tensor_floats(tensor)[0]);
    } else {
        printf(" %.17g", mr_tensor_doubles(tensor)[0]);
    }
}

int main(void)
{
    static char line[8192];
    while (fgets(line, sizeof line, stdin) != nullptr) {
        mr_error error = {0};
        mr_iterator *iterator = nullptr;
        mr_element element = {0};
        mr_dataset *dataset = read_dataset(line);
        mr_status status = mr_iterator_new(dataset, nullptr, &iterator, &error);
        if (status != MR_OK) puts("error");
        while (status == MR_OK) {
            status = mr_iterator_next(iterator, &element, &error);
            if (status == MR_OUT_OF_RANGE) break;
            if (status != MR_OK) {
                bool is_lost = strstr(error.message, "closing quote") || strstr(error.message, "unterminated quote");
                puts(is_lost ? "lost" : "error");
                status = MR_OK;
                continue;
            }
            for (int32_t i = 0; i < element.count; i++) print_scalar(&element.tensors[i]);
            puts("");
        }
        puts("end");
        mr_element_deinit(&element);
        mr_iterator_free(iterator);
        mr_dataset_free(dataset);
    }
    return 0;
}
