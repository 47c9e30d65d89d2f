/* The text of a view, in the form of tfprof. */
#include "base/status.h"
#include "graph/train/profiler_view.h"
#include "kernels/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
    const mr_profile_view *view;
    mr_text_builder text;
    int parts; /* of the current line */
} printer;

constexpr size_t CELL_SIZE = 96;

static void put(printer *p, const char *text)
{
    mr_text_add(&p->text, text, strlen(text));
}

/* A name of a file: control characters are visible. */
static void put_name(printer *p, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        char escaped[8];
        if (c >= 0x20 && c != 0x7f) {
            mr_text_add(&p->text, at, 1);
            continue;
        }
        (void)snprintf(escaped, sizeof escaped, "\\x%02x", c);
        put(p, escaped);
    }
}

static void begin_part(printer *p, const char *separator)
{
    if (p->parts++ > 0) put(p, separator);
}

static bool has(const printer *p, mr_profile_column column)
{
    return (p->view->options.select & (int32_t)column) != 0;
}

/* ---- Numbers ---- */

typedef enum unit { UNIT_NUMBER, UNIT_BYTES, UNIT_MICROS } unit;

/* "999", "1.00k", "12.30m", "4.00b"; "1.00KB", "2.00MB"; "1.00ms", "2.00sec" */
static const char *number(int64_t value, unit u, char text[static CELL_SIZE])
{
    static const char *const suffixes[][4] = {{"", "k", "m", "b"}, {"B", "KB", "MB", "MB"}, {"us", "ms", "sec", "sec"}};
    const int power = value < 1000 ? 0 : value < 1'000'000 ? 1 : value < 1'000'000'000 || u != UNIT_NUMBER ? 2 : 3;
    static const double divisors[] = {1, 1e3, 1e6, 1e9};
    if (power == 0)
        (void)snprintf(text, CELL_SIZE, "%lld%s", (long long)value, suffixes[u][0]);
    else
        (void)snprintf(text, CELL_SIZE, "%.2f%s", (double)value / divisors[power], suffixes[u][power]);
    return text;
}

/* ---- Columns ---- */

/* A figure with a column of its own. */
typedef struct figure_column {
    mr_profile_column column;
    unit unit;
    const char *title;
    const char *name; /* after the number */
} figure_column;

static const figure_column memory_columns[] = {
    {MR_PROFILE_BYTES, UNIT_BYTES, "requested bytes", ""},
    {MR_PROFILE_PEAK_BYTES, UNIT_BYTES, "peak bytes", ""},
    {MR_PROFILE_RESIDUAL_BYTES, UNIT_BYTES, "residual bytes", ""},
    {MR_PROFILE_OUTPUT_BYTES, UNIT_BYTES, "output bytes", ""},
};
static const figure_column time_columns[] = {
    {MR_PROFILE_MICROS, UNIT_MICROS, "total execution time", ""},
    {MR_PROFILE_ACCELERATOR_MICROS, UNIT_MICROS, "accelerator execution time", ""},
    {MR_PROFILE_CPU_MICROS, UNIT_MICROS, "cpu execution time", ""},
};
static const figure_column tree_columns[] = {
    {MR_PROFILE_PARAMS, UNIT_NUMBER, "# parameters", " params"},
    {MR_PROFILE_FLOAT_OPS, UNIT_NUMBER, "# float_ops", " flops"},
};
static const figure_column op_columns[] = {
    {MR_PROFILE_PARAMS, UNIT_NUMBER, "# parameters", " params"},
    {MR_PROFILE_FLOAT_OPS, UNIT_NUMBER, "# float_ops", " float_ops"},
};
constexpr size_t FIGURE_COLUMNS_MAX = 9;

/* The selected figures in their order on a line, which differs between the views. Returns their number. */
static size_t selected_columns(const printer *p, const figure_column *selected[static FIGURE_COLUMNS_MAX])
{
    size_t count = 0;
    const bool is_op = p->view->kind == MR_PROFILE_OP, is_code = p->view->kind == MR_PROFILE_CODE;
    const bool is_last = is_op || is_code; /* parameters and float operations */
    for (size_t i = 0; !is_last && i < 2; i++)
        if (has(p, tree_columns[i].column)) selected[count++] = &tree_columns[i];
    for (size_t i = 0; i < 4; i++)
        if (has(p, memory_columns[i].column)) selected[count++] = &memory_columns[i];
    for (size_t i = 0; i < 3; i++) /* the total time has all three */
        if (has(p, time_columns[i].column) || has(p, MR_PROFILE_MICROS)) selected[count++] = &time_columns[i];
    for (size_t i = 0; is_last && i < 2; i++)
        if (has(p, op_columns[i].column)) selected[count++] = is_op ? &op_columns[i] : &tree_columns[i];
    assert(count <= FIGURE_COLUMNS_MAX);
    return count;
}

static void put_title(printer *p)
{
    const figure_column *columns[FIGURE_COLUMNS_MAX];
    const size_t count = selected_columns(p, columns);
    const struct {
        mr_profile_column column;
        const char *title;
    } others[] = {
        {MR_PROFILE_DEVICE, "assigned devices"},
        {MR_PROFILE_OP_TYPES, "op types"},
        {MR_PROFILE_OCCURRENCE, p->view->kind == MR_PROFILE_OP || p->view->kind == MR_PROFILE_CODE
                                    ? "op occurrence (run|defined)"
                                    : "op count (run|defined)"},
    };
    put(p, "node name");
    for (size_t i = 0; i < count; i++) {
        put(p, " | ");
        put(p, columns[i]->title);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (!has(p, others[i].column)) continue;
        put(p, " | ");
        put(p, others[i].title);
    }
    put(p, "\n");
}

/* ---- Types ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t count_types(const mr_profile_node *node)
{
    size_t count = 1 + (node->device != nullptr);
    for (const mr_profile_type *type = node->types; type != nullptr; type = type->next) count++;
    return count;
}

static void copy_types(const mr_profile_node *node, const char **types, size_t *count)
{
    types[(*count)++] = node->op;
    if (node->device != nullptr) types[(*count)++] = node->device;
    for (const mr_profile_type *type = node->types; type != nullptr; type = type->next) types[(*count)++] = type->name;
}

/* "MatMul|mine", each once. */
static void put_joined(printer *p, const char **items, size_t count)
{
    qsort(items, count, sizeof(char *), by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && strcmp(items[i], items[i - 1]) == 0) continue;
        if (i > 0) put(p, "|");
        put_name(p, items[i]);
    }
}

static mr_status put_types(printer *p, const mr_profile_entry *e, mr_error *error)
{
    const mr_view_entry *own = (const mr_view_entry *)e;
    size_t count = own->node != nullptr ? count_types(own->node) : 0, used = 0;
    for (int32_t i = 0; i < e->node_count; i++) count += count_types(((const mr_view_entry *)e->nodes[i])->node);
    const char **types = calloc(count + 1, sizeof(char *));
    if (types == nullptr) return mr_fail_memory(error, count * sizeof(char *));
    if (own->node != nullptr) copy_types(own->node, types, &used);
    for (int32_t i = 0; i < e->node_count; i++) copy_types(((const mr_view_entry *)e->nodes[i])->node, types, &used);
    assert(used == count);
    if (count == 0 && p->view->kind != MR_PROFILE_CODE)
        types[used++] = p->view->kind == MR_PROFILE_GRAPH ? "_TFGraphParent" : "_kTFScopeParent";
    put_joined(p, types, used);
    free(types);
    return MR_OK;
}

/* The devices of an operator's nodes; a node that has not run has an empty one. */
static mr_status put_devices(printer *p, const mr_profile_entry *e, mr_error *error)
{
    const char **devices = calloc((size_t)e->node_count + 1, sizeof(char *));
    if (devices == nullptr) return mr_fail_memory(error, (size_t)e->node_count * sizeof(char *));
    for (int32_t i = 0; i < e->node_count; i++) devices[i] = e->nodes[i]->device;
    put_joined(p, devices, (size_t)e->node_count);
    free(devices);
    return MR_OK;
}

/* ---- Lines of a tree: "net/w (3x2, 6/6 params)" ---- */

static void put_shape(printer *p, mr_shape shape)
{
    if (shape.rank < 0) return;
    begin_part(p, ", ");
    if (shape.rank == 0) put(p, "1");
    for (int32_t i = 0; i < shape.rank; i++) {
        char size[CELL_SIZE];
        (void)snprintf(size, sizeof size, "%s%lld", i > 0 ? "x" : "", (long long)shape.dims[i]);
        put(p, size);
    }
}

/* "own/total"; "--" for an entry that is only there for those below it. */
static void put_pair(printer *p, const mr_profile_entry *e, int64_t own, int64_t total, unit u)
{
    char text[CELL_SIZE];
    put(p, e->is_accounted ? number(own, u, text) : "--");
    put(p, "/");
    put(p, number(total, u, text));
}

static mr_status put_tree_line(printer *p, const mr_profile_entry *e, mr_error *error)
{
    const figure_column *columns[FIGURE_COLUMNS_MAX];
    const size_t count = selected_columns(p, columns);
    const mr_view_entry *own = (const mr_view_entry *)e;
    p->parts = 0;
    put_name(p, e->name);
    put(p, " (");
    for (size_t i = 0; i < count; i++) {
        if (columns[i]->column == MR_PROFILE_PARAMS && own->node != nullptr) put_shape(p, own->node->shape);
        begin_part(p, ", ");
        put_pair(p, e, mr_view_column(columns[i]->column, &e->own), mr_view_column(columns[i]->column, &e->total),
                 columns[i]->unit);
        put(p, columns[i]->name);
    }
    const bool is_code = p->view->kind == MR_PROFILE_CODE;
    if (has(p, MR_PROFILE_DEVICE) && (is_code ? e->node_count > 0 : *e->device != '\0')) {
        begin_part(p, ", ");
        if (is_code)
            MR_TRY(put_devices(p, e, error));
        else
            put_name(p, e->device);
    }
    if (has(p, MR_PROFILE_OP_TYPES)) {
        begin_part(p, ", ");
        MR_TRY(put_types(p, e, error));
    }
    if (has(p, MR_PROFILE_OCCURRENCE)) {
        begin_part(p, ", ");
        if (is_code) {
            put(p, "occurrence N/A in code view)\n");
            return MR_OK;
        }
        put_pair(p, e, e->own.run_count, e->total.run_count, UNIT_NUMBER);
        put(p, "|");
        put_pair(p, e, 1, e->total.definition_count, UNIT_NUMBER);
    }
    put(p, ")\n");
    return MR_OK;
}

/* ---- Lines of operators: "MatMul            4 params (100.00%, 50.00%)" ---- */

static double percent(int64_t part, int64_t all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

/* The share of the entry and those after it, and of the entry alone, of the root's total. */
static void put_share(printer *p, const mr_profile_entry *e, const figure_column *column)
{
    char figure[CELL_SIZE], cell[2 * CELL_SIZE], padded[2 * CELL_SIZE];
    const int64_t own = mr_view_column(column->column, &e->own), total = mr_view_column(column->column, &e->total);
    const int64_t all = mr_view_column(column->column, &p->view->root->entry.total);
    /* As in tfprof, an operator without memory has no share. */
    const bool has_share = column->unit == UNIT_BYTES ? own > 0 : total > 0;
    (void)snprintf(cell, sizeof cell, "%s%s (%.2f%%, %.2f%%)", number(own, column->unit, figure), column->name,
                   has_share ? percent(total, all) : 0.0, has_share ? percent(own, all) : 0.0);
    (void)snprintf(padded, sizeof padded, "%30s", cell);
    begin_part(p, ", ");
    put(p, padded);
}

static mr_status put_op_line(printer *p, const mr_profile_entry *e, mr_error *error)
{
    const figure_column *columns[FIGURE_COLUMNS_MAX];
    const size_t count = selected_columns(p, columns), start = p->text.size_bytes;
    p->parts = 0;
    put_name(p, e->name);
    while (p->text.size_bytes < start + 25 && !p->text.failed) put(p, " ");
    for (size_t i = 0; i < count; i++) put_share(p, e, columns[i]);
    if (has(p, MR_PROFILE_DEVICE)) {
        begin_part(p, ", ");
        MR_TRY(put_devices(p, e, error));
    }
    if (has(p, MR_PROFILE_OP_TYPES)) {
        begin_part(p, ", ");
        MR_TRY(put_types(p, e, error));
    }
    if (has(p, MR_PROFILE_OCCURRENCE)) {
        char cell[CELL_SIZE], padded[CELL_SIZE];
        (void)snprintf(cell, sizeof cell, "%lld|%d", (long long)e->own.run_count, e->node_count);
        (void)snprintf(padded, sizeof padded, "%10s", cell);
        begin_part(p, ", ");
        put(p, padded);
    }
    put(p, "\n");
    return MR_OK;
}

/* ---- Views ---- */

static mr_status print_entries(printer *p, mr_error *error)
{
    const bool is_op = p->view->kind == MR_PROFILE_OP;
    int32_t depth = 0;
    put_title(p);
    for (const mr_view_entry *e = p->view->root; e != nullptr; e = mr_view_next(e, &depth)) {
        if (p->text.failed) return mr_fail_memory(error, p->text.size_bytes);
        if (p->text.size_bytes > MR_PROFILE_TEXT_BYTES_MAX)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "profile: the text is larger than %zu MiB; reduce max_depth",
                           MR_PROFILE_TEXT_BYTES_MAX >> 20);
        for (int32_t i = 0; !is_op && i < depth; i++) put(p, "  ");
        if (!is_op)
            MR_TRY(put_tree_line(p, &e->entry, error));
        else if (e->parent != nullptr) /* the root of operators has no line */
            MR_TRY(put_op_line(p, &e->entry, error));
    }
    mr_text_add(&p->text, "", 1);
    return p->text.failed ? mr_fail_memory(error, p->text.size_bytes) : MR_OK;
}

mr_status mr_view_print(mr_profile_view *view, mr_error *error)
{
    printer p = {.view = view};
    const mr_status status = print_entries(&p, error);
    if (status != MR_OK) {
        mr_text_deinit(&p.text);
        return status;
    }
    view->text = p.text.data;
    view->text_size_bytes = p.text.size_bytes - 1;
    return MR_OK;
}
