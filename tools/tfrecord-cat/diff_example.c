/* Prints the differences between two Examples, feature by feature. */
#include "tfrecord-cat/diff.h"

#include "common/query/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static constexpr size_t FEATURES_MAX = 1024;
static constexpr int LINES_MAX = 20;
static constexpr int NAME_COLUMNS = 60;
static constexpr int TEXT_COLUMNS = 24;

typedef struct features {
    size_t count;
    mr_feature_view views[FEATURES_MAX]; /* by name */
} features;

static int compare_names(mr_string a, mr_string b)
{
    size_t least = a.size_bytes < b.size_bytes ? a.size_bytes : b.size_bytes;
    int order = least ? memcmp(a.data, b.data, least) : 0;
    if (order != 0) return order;
    return a.size_bytes < b.size_bytes ? -1 : a.size_bytes > b.size_bytes;
}

static int by_name(const void *a, const void *b)
{
    return compare_names(((const mr_feature_view *)a)->name, ((const mr_feature_view *)b)->name);
}

/* False: not an Example, too many features, or a duplicate name. */
static bool take_features(mr_string record, features *features)
{
    mr_example_cursor walk = {.record = record};
    features->count = 0;
    mr_feature_view view;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &view, nullptr)) == MR_OK) {
        if (features->count == FEATURES_MAX) return false;
        features->views[features->count++] = view;
    }
    if (status != MR_OUT_OF_RANGE) return false;
    qsort(features->views, features->count, sizeof(mr_feature_view), by_name);
    for (size_t i = 1; i < features->count; i++)
        if (by_name(&features->views[i - 1], &features->views[i]) == 0) return false;
    return true;
}

static const char *kind_name(mr_feature_kind kind)
{
    static const char *const names[] = {"nothing", "bytes", "float", "int64"};
    return kind <= MR_FEATURE_INT64 ? names[kind] : "nothing";
}

/* ---- Values ---- */

static void print_text(mr_string bytes)
{
    char size[PROGRESS_TEXT_SIZE];
    if (text_is_readable(bytes)) {
        putchar('"');
        (void)text_print(stdout, bytes, TEXT_COLUMNS);
        putchar('"');
    } else {
        printf("%s", progress_size_text(bytes.size_bytes, size));
    }
}

static void print_bytes(mr_string a, mr_string b)
{
    size_t at = 0;
    while (at < a.size_bytes && at < b.size_bytes && a.data[at] == b.data[at]) at++;
    print_text(a);
    printf(" and ");
    print_text(b);
    if (!text_is_readable(a) || !text_is_readable(b) || at >= (size_t)TEXT_COLUMNS) printf(", from byte %zu on", at);
}

/* Both have the same kind. */
static bool is_equal(const value *a, const value *b)
{
    if (a->kind == MR_FEATURE_BYTES) return mr_string_equal(a->bytes, b->bytes);
    if (a->kind == MR_FEATURE_FLOAT) return memcmp(&a->number, &b->number, sizeof(float)) == 0;
    return a->integer == b->integer;
}

static void print_pair(const value *a, const value *b)
{
    if (a->kind == MR_FEATURE_BYTES)
        print_bytes(a->bytes, b->bytes);
    else if (a->kind == MR_FEATURE_FLOAT)
        printf("%.9g and %.9g", (double)a->number, (double)b->number);
    else
        printf("%" PRId64 " and %" PRId64, a->integer, b->integer);
}

/* ---- Features ---- */

static void print_name(mr_string name)
{
    printf("  ");
    (void)text_print(stdout, name, NAME_COLUMNS);
    printf(": ");
}

/* Prints a line if they differ; returns whether they do. */
static bool diff_feature(const mr_feature_view *a, const mr_feature_view *b)
{
    size_t a_count = 0, b_count = 0, i = 0;
    if (a->kind == b->kind && mr_string_equal(a->list, b->list)) return false;
    if (a->kind != b->kind) {
        print_name(a->name);
        printf("%s and %s\n", kind_name(a->kind), kind_name(b->kind));
        return true;
    }
    if (mr_feature_count(a, &a_count, nullptr) != MR_OK || mr_feature_count(b, &b_count, nullptr) != MR_OK) {
        print_name(a->name);
        printf("the list cannot be read\n");
        return true;
    }
    values a_values = values_of(a), b_values = values_of(b);
    value a_value = {0}, b_value = {0};
    bool are_both = false;
    while ((are_both = values_next(&a_values, &a_value) && values_next(&b_values, &b_value)) &&
           is_equal(&a_value, &b_value))
        i++;
    if (!are_both && a_count == b_count) return false;
    print_name(a->name);
    if (a_count != b_count) printf("%zu and %zu values", a_count, b_count);
    if (a_count != b_count && are_both) printf("; ");
    if (are_both && (a_count > 1 || b_count > 1)) printf("value %zu is ", i);
    if (are_both) print_pair(&a_value, &b_value);
    putchar('\n');
    return true;
}

static void diff_features(const features *a, const features *b)
{
    int lines = 0;
    for (size_t i = 0, j = 0; (i < a->count || j < b->count) && lines < LINES_MAX;) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_names(a->views[i].name, b->views[j].name);
        if (order != 0) {
            print_name(order < 0 ? a->views[i].name : b->views[j].name);
            printf("only in the %s\n", order < 0 ? "first" : "second");
            lines++;
        } else {
            lines += diff_feature(&a->views[i], &b->views[j]);
        }
        i += order <= 0;
        j += order >= 0;
    }
    if (lines == LINES_MAX) printf("  …\n");
    if (lines == 0) printf("  same features, encoded differently\n");
}

void diff_records(mr_string a, mr_string b)
{
    static features both[2]; /* only one thread compares */
    bool are_examples = mr_example_form_of(a) == MR_EXAMPLE_PLAIN && mr_example_form_of(b) == MR_EXAMPLE_PLAIN &&
                        take_features(a, &both[0]) && take_features(b, &both[1]);
    if (are_examples) {
        diff_features(&both[0], &both[1]);
    } else {
        size_t at = 0;
        while (at < a.size_bytes && at < b.size_bytes && a.data[at] == b.data[at]) at++;
        printf("  %zu and %zu bytes, different from byte %zu on\n", a.size_bytes, b.size_bytes, at);
    }
}
