/* The features of many records: which kinds each has, how many values, in how many records; and from that the C to parse
 * them with. */
#include "tools/common/progress.h"
#include "tools/tfrecord-cat/cat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file in which every record has other names would fill the memory. */
static constexpr size_t FEATURES_MAX = 10'000;

typedef struct column {
    char *name; /* owned */
    size_t name_size;
    uint64_t kinds[4];  /* records in which it has each mr_feature_kind */
    size_t least, most; /* values, where it has a kind */
    uint64_t last_record;
} column;

struct schema {
    column *columns;
    size_t count;
    uint64_t records;
    size_t guess; /* records are alike: where the next name is likely found */
};

schema *schema_new(void)
{
    return calloc(1, sizeof(schema));
}

void schema_free(schema *schema)
{
    for (size_t i = 0; i < schema->count; i++) free(schema->columns[i].name);
    free(schema->columns);
    free(schema);
}

static column *find_column(schema *schema, mr_string name)
{
    for (size_t i = 0; i < schema->count; i++) {
        size_t at = (schema->guess + i) % schema->count;
        column *column = &schema->columns[at];
        if (column->name_size == name.size_bytes && memcmp(column->name, name.data, name.size_bytes) == 0) {
            schema->guess = at + 1;
            return column;
        }
    }
    if (schema->count == FEATURES_MAX) return nullptr;
    column *grown = realloc(schema->columns, (schema->count + 1) * sizeof(column));
    if (!grown) return nullptr;
    schema->columns = grown;
    column *made = &grown[schema->count];
    *made = (column){.name = malloc(name.size_bytes + 1), .name_size = name.size_bytes, .least = SIZE_MAX};
    if (!made->name) return nullptr;
    if (name.size_bytes > 0) memcpy(made->name, name.data, name.size_bytes);
    made->name[name.size_bytes] = '\0';
    schema->guess = ++schema->count;
    return made;
}

mr_status schema_add(schema *schema, mr_string record, mr_error *error)
{
    mr_example_walk walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    size_t count;
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK)
        MR_TRY(mr_feature_count(&feature, &count, error));
    if (status != MR_OUT_OF_RANGE) return status;
    walk = (mr_example_walk){.record = record};
    schema->records++;
    while (mr_example_next_feature(&walk, &feature, nullptr) == MR_OK) {
        column *column = find_column(schema, feature.name);
        if (!column) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "more than %zu different features", FEATURES_MAX);
        (void)mr_feature_count(&feature, &count, nullptr);
        if (column->last_record == schema->records) continue; /* its second time in this record */
        column->last_record = schema->records;
        column->kinds[feature.kind]++;
        if (feature.kind == MR_FEATURE_NONE) continue;
        if (count < column->least) column->least = count;
        if (count > column->most) column->most = count;
    }
    return MR_OK;
}

static int compare_columns(const void *a, const void *b)
{
    return strcmp(((const column *)a)->name, ((const column *)b)->name);
}

static uint64_t present(const column *column)
{
    return column->kinds[1] + column->kinds[2] + column->kinds[3];
}

static int kind_count(const column *column)
{
    return (column->kinds[1] > 0) + (column->kinds[2] > 0) + (column->kinds[3] > 0);
}

static const char *type_name(const column *column)
{
    if (kind_count(column) > 1) return "mixed";
    return column->kinds[1] ? "bytes" : column->kinds[2] ? "float" : column->kinds[3] ? "int64" : "none";
}

static void print_row(const schema *schema, const column *column, int name_columns)
{
    mr_string name = {column->name, column->name_size};
    char values[48] = "-";
    if (column->least == column->most)
        snprintf(values, sizeof(values), "%zu", column->most);
    else if (kind_count(column) > 0)
        snprintf(values, sizeof(values), "%zu to %zu", column->least, column->most);
    int used = text_print(stdout, name, name_columns);
    printf("%*s  %-5s  %-12s  ", name_columns - used, "", type_name(column), values);
    double part = 100.0 * (double)present(column) / (double)schema->records;
    if (present(column) == schema->records)
        printf("all\n");
    else if (part >= 99.95)
        printf("all but %" PRIu64 "\n", schema->records - present(column));
    else
        printf("%.1f %%\n", part);
}

/* The initialiser of one feature. */
static void print_feature(const schema *schema, const column *column)
{
    static const char *const dtypes[] = {"", "MR_STRING", "MR_FLOAT", "MR_INT64"};
    int kind = column->kinds[1] ? 1 : column->kinds[2] ? 2 : 3;
    printf("    {.name = \"");
    (void)text_print(stdout, (mr_string){column->name, column->name_size}, INT32_MAX);
    printf("\", .dtype = %s", dtypes[kind]);
    if (column->least != column->most)
        printf(", .form = MR_VARIABLE},\n");
    else {
        if (column->most != 1) printf(", .shape = MR_SHAPE(%zu)", column->most);
        printf("},%s\n",
               present(column) < schema->records ? " /* not in all: add .fallback, or it is an error */" : "");
    }
}

void schema_print(const schema *schema)
{
    printf("%" PRIu64 " record%s\n", schema->records, schema->records == 1 ? "" : "s");
    if (schema->count == 0) return;
    qsort(schema->columns, schema->count, sizeof(column), compare_columns);
    int columns = progress_columns(STDOUT_FILENO, 100), most = columns - 34 > 12 ? columns - 34 : 12, name = 7;
    for (size_t i = 0; i < schema->count; i++) {
        int used = text_columns((mr_string){schema->columns[i].name, schema->columns[i].name_size});
        if (used > name) name = used < most ? used : most;
    }
    printf("\n%-*s  %-5s  %-12s  %s\n", name, "feature", "type", "values", "present");
    for (size_t i = 0; i < schema->count; i++) print_row(schema, &schema->columns[i], name);
    printf("\nconst mr_feature features[] = {\n");
    for (size_t i = 0; i < schema->count; i++) {
        const column *column = &schema->columns[i];
        if (kind_count(column) == 1 && strlen(column->name) == column->name_size) print_feature(schema, column);
    }
    printf("};\n");
}
