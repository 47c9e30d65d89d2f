/* --schema: a table of features, and specifications that parse them. */
#include "common/progress.h"
#include "tfrecord-cat/cat.h"
#include "tfrecord-cat/schema_spec.h"

#include <inttypes.h>
#include <unistd.h>

typedef struct gathering {
    schema *schema;
    bool has_failed;
} gathering;

static bool gather(void *context, const record_position *position)
{
    gathering *gathering = context;
    mr_error error = {0};
    if (schema_add(gathering->schema, position->record, &error) == MR_OK) return true;
    (void)print_record_error(position, &error);
    gathering->has_failed = true;
    return error.status != MR_RESOURCE_EXHAUSTED;
}

/* ---- The table ---- */

static const char *type_name(const schema_column *column)
{
    static const char *const names[] = {"none", "bytes", "float", "int64"};
    mr_feature_kind kind = schema_column_kind(column);
    bool is_mixed = kind == MR_FEATURE_NONE && column->kinds[1] + column->kinds[2] + column->kinds[3] > 0;
    return is_mixed ? "mixed" : names[kind];
}

static void print_bounds(bounds bounds)
{
    char text[48] = "-";
    if (bounds.least == bounds.most)
        snprintf(text, sizeof(text), "%" PRIu64, bounds.most);
    else if (bounds.least < bounds.most)
        snprintf(text, sizeof(text), "%" PRIu64 " to %" PRIu64, bounds.least, bounds.most);
    printf("  %-12s", text);
}

static void print_presence(uint64_t present, uint64_t records)
{
    double part = 100.0 * (double)present / (double)records;
    if (present == records)
        printf("  all\n");
    else if (part >= 99.95)
        printf("  all but %" PRIu64 "\n", records - present);
    else
        printf("  %.1f %%\n", part);
}

static void print_table(const schema *schema, bool is_list)
{
    int columns = progress_columns(STDOUT_FILENO, 100), fixed = is_list ? 46 : 32, name = 7;
    int most = columns - fixed > 12 ? columns - fixed : 12;
    uint64_t records = schema_records(schema);
    bool is_first = true;
    for (size_t i = 0; i < schema->count; i++) {
        int used = text_columns(schema->columns[i].name);
        if (schema->columns[i].is_list == is_list && used > name) name = used < most ? used : most;
    }
    if (is_list && name < 12) name = 12;
    for (size_t i = 0; i < schema->count; i++) {
        const schema_column *column = &schema->columns[i];
        if (column->is_list != is_list) continue;
        if (is_first)
            printf("\n%-*s  %-5s%s  %-12s  %s\n", name,
                   is_list             ? "feature list"
                   : schema->sequences ? "context"
                                       : "feature",
                   "type", is_list ? "  steps       " : "", is_list ? "values/step" : "values", "present");
        is_first = false;
        int used = text_print(stdout, column->name, name);
        printf("%*s  %-5s", name - used, "", type_name(column));
        if (is_list) print_bounds(column->steps);
        print_bounds(column->values);
        print_presence(column->present, records);
    }
}

static void print_schema(const schema *schema)
{
    uint64_t records = schema_records(schema);
    printf("%" PRIu64 " record%s", records, records == 1 ? "" : "s");
    if (schema->sequences > 0 && schema->examples > 0)
        printf(": %" PRIu64 " SequenceExamples, the others Examples\n", schema->sequences);
    else
        printf(schema->sequences == 0   ? "\n"
               : schema->sequences == 1 ? ", a SequenceExample\n"
                                        : ", SequenceExamples\n");
    print_table(schema, false);
    print_table(schema, true);
    if (schema->is_full)
        printf("\nThere are more names: only the first %zu (%zu MiB) are distinguished.\n", schema->count,
               SCHEMA_NAMES_SIZE_MAX >> 20);
    if (schema->count == 0) return;
    printf("\n---- C ----\n\n");
    schema_print_c(schema);
    printf("\n---- Python ----\n\n");
    schema_print_python(schema);
}

int schema_run(const options *options)
{
    gathering gathering = {.schema = schema_new(options->features, options->is_raw)};
    schema *schema = gathering.schema;
    if (!schema) return print_error(&(mr_error){MR_RESOURCE_EXHAUSTED, "no memory"});
    int exit_code = walk_records(options, gather, &gathering);
    if (gathering.has_failed) exit_code = 1;
    schema_sort(schema);
    if (schema_records(schema) > 0 || exit_code == 0) {
        if (options->spec == SPEC_BOTH)
            print_schema(schema);
        else if (options->spec == SPEC_C)
            schema_print_c(schema);
        else
            schema_print_python(schema);
    }
    schema_free(schema);
    return exit_code;
}
