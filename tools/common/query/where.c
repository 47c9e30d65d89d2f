/* Evaluates --where for a record: finds the features named by the expression in one pass over the record, then
 * evaluates the tree. A comparison iterates over the values of its features, so no list is copied to memory. */
#include "common/query/values.h"
#include "common/query/where_tree.h"
#include "common/text.h"

#include <inttypes.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* A pattern is searched in this many bytes of a value. */
static constexpr size_t MATCHED_MAX = 65'536;

/* A feature name in the current record. */
typedef struct found {
    mr_feature_view feature;
    mr_feature_list_view list;
    bool is_list;
    size_t count; /* number of values in all steps */
} found;

/* The position of a NODE_FEATURE. */
typedef struct cursor {
    values values;
    mr_feature_list_view list;
    value value; /* the single value that is used at every index */
    bool is_one, is_list;
} cursor;

typedef struct operand {
    enum { OPERAND_NONE, OPERAND_INTEGER, OPERAND_NUMBER, OPERAND_TEXT } kind;
    bool is_float;   /* an unmodified value of a float feature */
    bool is_literal; /* a literal of the expression */
    int64_t integer;
    double number;
    mr_string text;
} operand;

struct where_state {
    const where *where;
    const tfds *tfds; /* metadata of the records' directory; null: none */
    bool has_failed;  /* memory has run out */
    found *found;
    cursor *cursors;   /* for each node */
    regex_t *regexes;  /* for each node */
    bool *has_regex;   /* for each node */
    bool *was_seen;    /* for each name */
    bool *was_missed;  /* for each node: text was compared with a number */
    bool *was_matched; /* for each node: comparable values were compared */
    uint64_t records, odd_records;
};

/* ---- Find ---- */

static void find_features(where_state *state, mr_string record)
{
    const where *where = state->where;
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    mr_status status;
    while ((status = mr_example_next_feature(&walk, &feature, nullptr)) == MR_OK) {
        if (feature.kind == MR_FEATURE_NONE) continue;
        for (uint16_t i = 0; i < where->name_count; i++)
            if (mr_string_equal(feature.name, where->names[i])) state->found[i].feature = feature;
    }
    if (status != MR_OUT_OF_RANGE) {
        state->odd_records++;
        memset(state->found, 0, where->name_count * sizeof(found));
    }
}

/* Names missing from the context of a SequenceExample may be feature lists. */
static void find_lists(where_state *state, mr_string record)
{
    const where *where = state->where;
    mr_example_cursor walk = {.record = record};
    mr_feature_list_view list;
    while (mr_sequence_next_list(&walk, &list, nullptr) == MR_OK)
        for (uint16_t i = 0; i < where->name_count; i++)
            if (state->found[i].feature.kind == MR_FEATURE_NONE && mr_string_equal(list.name, where->names[i])) {
                state->found[i].list = list;
                state->found[i].is_list = true;
            }
}

static size_t count_values(const found *found)
{
    size_t total = 0, count;
    if (!found->is_list) return mr_feature_count(&found->feature, &count, nullptr) == MR_OK ? count : 0;
    mr_feature_list_view list = found->list;
    mr_feature_view step;
    while (mr_feature_list_next(&list, &step, nullptr) == MR_OK)
        if (mr_feature_count(&step, &count, nullptr) == MR_OK) total += count;
    return total;
}

static void find(where_state *state, mr_string record)
{
    const where *where = state->where;
    if (where->name_count == 0) return;
    memset(state->found, 0, where->name_count * sizeof(found));
    find_features(state, record);
    bool is_missing = false;
    for (uint16_t i = 0; i < where->name_count; i++) is_missing |= state->found[i].feature.kind == MR_FEATURE_NONE;
    if (is_missing) find_lists(state, record);
    for (uint16_t i = 0; i < where->name_count; i++) {
        found *found = &state->found[i];
        if (found->feature.kind == MR_FEATURE_NONE && !found->is_list) continue;
        state->was_seen[i] = true;
        found->count = count_values(found);
    }
}

/* ---- Operands ---- */

/* Goes to the first value; returns the number of indexes, SIZE_MAX if one value is used for all of them. */
static size_t begin(where_state *state, uint16_t index)
{
    const node *node = &state->where->nodes[index];
    size_t left, right;
    switch (node->kind) {
    case NODE_FEATURE: {
        const found *found = &state->found[node->name];
        cursor *cursor = &state->cursors[index];
        *cursor = (struct cursor){.is_list = found->is_list, .list = found->list};
        if (!found->is_list) cursor->values = values_of(&found->feature);
        return found->count == 1 ? SIZE_MAX : found->count;
    }
    case NODE_BYTES:
    case NODE_NEGATE:
        return begin(state, node->left);
    case NODE_ADD:
    case NODE_SUBTRACT:
    case NODE_MULTIPLY:
    case NODE_DIVIDE:
    case NODE_REMAINDER:
        left = begin(state, node->left);
        right = begin(state, node->right);
        return left < right ? left : right;
    case NODE_STEPS:
        return state->found[node->name].is_list ? SIZE_MAX : 0;
    default:
        return SIZE_MAX;
    }
}

static bool next_value(cursor *cursor, value *value)
{
    while (!values_next(&cursor->values, value)) {
        mr_feature_view step;
        if (!cursor->is_list || mr_feature_list_next(&cursor->list, &step, nullptr) != MR_OK) return false;
        cursor->values = values_of(&step);
    }
    return true;
}

static operand operand_of(const value *value)
{
    switch (value->kind) {
    case MR_FEATURE_INT64:
        return (operand){.kind = OPERAND_INTEGER, .integer = value->integer};
    case MR_FEATURE_FLOAT:
        return (operand){.kind = OPERAND_NUMBER, .number = (double)value->number, .is_float = true};
    case MR_FEATURE_BYTES:
        return (operand){.kind = OPERAND_TEXT, .text = value->bytes};
    case MR_FEATURE_NONE:
        break;
    }
    return (operand){};
}

static operand feature_value(where_state *state, uint16_t index, uint16_t name)
{
    cursor *cursor = &state->cursors[index];
    if (!cursor->is_one) {
        cursor->value.kind = MR_FEATURE_NONE;
        if (!next_value(cursor, &cursor->value)) cursor->value.kind = MR_FEATURE_NONE;
        cursor->is_one = state->found[name].count == 1;
    }
    return operand_of(&cursor->value);
}

static double number_of(const operand *operand)
{
    return operand->kind == OPERAND_INTEGER ? (double)operand->integer : operand->number;
}

/* Integers stay integers where possible; a quotient is a floating-point number. */
static operand calculate(node_kind kind, const operand *left, const operand *right)
{
    bool is_number = left->kind != OPERAND_NONE && left->kind != OPERAND_TEXT && right->kind != OPERAND_NONE &&
                     right->kind != OPERAND_TEXT;
    if (!is_number) return (operand){};
    bool are_integers = left->kind == OPERAND_INTEGER && right->kind == OPERAND_INTEGER;
    double a = number_of(left), b = number_of(right);
    operand result = {.kind = OPERAND_INTEGER};
    switch (kind) {
    case NODE_ADD:
        if (are_integers && !__builtin_add_overflow(left->integer, right->integer, &result.integer)) return result;
        return (operand){.kind = OPERAND_NUMBER, .number = a + b};
    case NODE_SUBTRACT:
        if (are_integers && !__builtin_sub_overflow(left->integer, right->integer, &result.integer)) return result;
        return (operand){.kind = OPERAND_NUMBER, .number = a - b};
    case NODE_MULTIPLY:
        if (are_integers && !__builtin_mul_overflow(left->integer, right->integer, &result.integer)) return result;
        return (operand){.kind = OPERAND_NUMBER, .number = a * b};
    case NODE_DIVIDE:
        return b == 0 ? (operand){} : (operand){.kind = OPERAND_NUMBER, .number = a / b};
    default:
        break;
    }
    if (b == 0) return (operand){};
    if (!are_integers) return (operand){.kind = OPERAND_NUMBER, .number = fmod(a, b)};
    if (right->integer != -1) result.integer = left->integer % right->integer;
    return result;
}

/* The value at the next index. */
static operand evaluate(where_state *state, uint16_t index)
{
    const node *node = &state->where->nodes[index];
    operand left, right;
    switch (node->kind) {
    case NODE_INTEGER:
        return (operand){.kind = OPERAND_INTEGER, .integer = node->integer, .is_literal = true};
    case NODE_NUMBER:
        return (operand){.kind = OPERAND_NUMBER, .number = node->number, .is_literal = true};
    case NODE_TEXT:
        return (operand){.kind = OPERAND_TEXT, .text = node->text};
    case NODE_FEATURE:
        return feature_value(state, index, node->name);
    case NODE_SIZE:
        return (operand){.kind = OPERAND_INTEGER, .integer = (int64_t)state->found[node->name].count};
    case NODE_STEPS: {
        size_t steps = 0;
        if (mr_feature_list_count(&state->found[node->name].list, &steps, nullptr) != MR_OK) return (operand){};
        return (operand){.kind = OPERAND_INTEGER, .integer = (int64_t)steps};
    }
    case NODE_BYTES:
        left = evaluate(state, node->left);
        if (left.kind != OPERAND_TEXT) return (operand){};
        return (operand){.kind = OPERAND_INTEGER, .integer = (int64_t)left.text.size_bytes};
    case NODE_NEGATE:
        left = (operand){.kind = OPERAND_INTEGER};
        right = evaluate(state, node->left);
        return calculate(NODE_SUBTRACT, &left, &right);
    default:
        left = evaluate(state, node->left);
        right = evaluate(state, node->right);
        return calculate(node->kind, &left, &right);
    }
}

/* ---- Conditions ---- */

/* Returns -1, 0 or 1; 2 if unordered (NaN). Exact, also beyond 2^53. */
static int compare_mixed(int64_t integer, double number)
{
    if (isnan(number)) return 2;
    if (number >= 0x1p63) return -1;
    if (number < -0x1p63) return 1;
    int64_t truncated = (int64_t)number;
    if (integer != truncated) return integer < truncated ? -1 : 1;
    double fraction = number - (double)truncated;
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
}

static int compare_numbers(const operand *left, const operand *right)
{
    if (left->kind == OPERAND_INTEGER && right->kind == OPERAND_INTEGER)
        return left->integer < right->integer ? -1 : left->integer > right->integer;
    if (left->kind == OPERAND_INTEGER) return compare_mixed(left->integer, right->number);
    if (right->kind == OPERAND_INTEGER) {
        int order = compare_mixed(right->integer, left->number);
        return order == 2 ? 2 : -order;
    }
    double a = left->number, b = right->number;
    /* A float is compared with the nearest float of a literal: "score == 0.9" finds it. */
    if (left->is_float && right->is_literal) b = (double)(float)b;
    if (right->is_float && left->is_literal) a = (double)(float)a;
    return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

static int compare_texts(mr_string left, mr_string right)
{
    size_t common = left.size_bytes < right.size_bytes ? left.size_bytes : right.size_bytes;
    int order = common > 0 ? memcmp(left.data, right.data, common) : 0;
    if (order == 0) order = left.size_bytes < right.size_bytes ? -1 : left.size_bytes > right.size_bytes;
    return order < 0 ? -1 : order > 0;
}

static bool has_order(node_kind kind, int order)
{
    switch (kind) {
    case NODE_EQUAL:
        return order == 0;
    case NODE_UNEQUAL:
        return order != 0;
    case NODE_LESS:
        return order == -1;
    case NODE_LESS_EQUAL:
        return order == -1 || order == 0;
    case NODE_GREATER:
        return order == 1;
    default:
        return order == 1 || order == 0;
    }
}

static bool has_match(where_state *state, uint16_t index, mr_string text)
{
    const node *node = &state->where->nodes[index];
    if (node->kind == NODE_CONTAINS)
        return node->text.size_bytes == 0 || (text.size_bytes > 0 && memmem(text.data, text.size_bytes, node->text.data,
                                                                            node->text.size_bytes) != nullptr);
    size_t size = text.size_bytes < MATCHED_MAX ? text.size_bytes : MATCHED_MAX;
    /* regexec reports lack of memory as no match. */
    int at = re_search(&state->regexes[index], size > 0 ? text.data : "", (int)size, 0, (int)size, nullptr);
    state->has_failed |= at == -2;
    return at >= 0;
}

/* Replaces a class number by the name of the class, if there is one. */
static void name_class(const where_state *state, uint16_t index, operand *operand)
{
    const node *node = &state->where->nodes[index];
    if (operand->kind != OPERAND_INTEGER || node->kind != NODE_FEATURE) return;
    const char *label = tfds_label(tfds_find(state->tfds, state->where->names[node->name]), operand->integer);
    if (label) *operand = (struct operand){.kind = OPERAND_TEXT, .text = mr_string_from(label)};
}

/* Whether the comparison is true at one index. */
static bool holds_at(where_state *state, uint16_t index, bool is_search)
{
    const node *node = &state->where->nodes[index];
    operand left = evaluate(state, node->left);
    if (left.kind == OPERAND_NONE) return false;
    if (is_search) {
        name_class(state, node->left, &left);
        *(left.kind == OPERAND_TEXT ? &state->was_matched[index] : &state->was_missed[index]) = true;
        return left.kind == OPERAND_TEXT && has_match(state, index, left.text);
    }
    operand right = evaluate(state, node->right);
    if (right.kind == OPERAND_NONE) return false;
    if (right.kind == OPERAND_TEXT) name_class(state, node->left, &left);
    if (left.kind == OPERAND_TEXT) name_class(state, node->right, &right);
    bool fits = (left.kind == OPERAND_TEXT) == (right.kind == OPERAND_TEXT);
    *(fits ? &state->was_matched[index] : &state->was_missed[index]) = true;
    if (!fits) return false;
    return has_order(node->kind,
                     left.kind == OPERAND_TEXT ? compare_texts(left.text, right.text) : compare_numbers(&left, &right));
}

/* Whether the comparison is true at any index. */
static bool compare(where_state *state, uint16_t index)
{
    const node *node = &state->where->nodes[index];
    bool is_search = node->kind == NODE_MATCHES || node->kind == NODE_CONTAINS;
    size_t count = begin(state, node->left), other = is_search ? SIZE_MAX : begin(state, node->right);
    if (other < count) count = other;
    if (count == SIZE_MAX) count = 1;
    for (size_t i = 0; i < count; i++)
        if (holds_at(state, index, is_search)) return true;
    return false;
}

static bool is_true(where_state *state, uint16_t index)
{
    const node *node = &state->where->nodes[index];
    switch (node->kind) {
    case NODE_AND:
        return is_true(state, node->left) && is_true(state, node->right);
    case NODE_OR:
        return is_true(state, node->left) || is_true(state, node->right);
    case NODE_NOT:
        return !is_true(state, node->left);
    case NODE_EXISTS: {
        const found *found = &state->found[node->name];
        return found->is_list || found->feature.kind != MR_FEATURE_NONE;
    }
    default:
        return compare(state, index);
    }
}

void where_set_tfds(where_state *state, const tfds *tfds)
{
    state->tfds = tfds;
}

bool where_matches(where_state *state, mr_string record)
{
    state->records++;
    find(state, record);
    return is_true(state, state->where->root) && !state->has_failed;
}

bool where_has_failed(const where_state *state)
{
    return state->has_failed;
}

/* ---- States ---- */

where_state *where_state_new(const where *where)
{
    where_state *state = calloc(1, sizeof(where_state));
    if (!state) return nullptr;
    size_t nodes = where->node_count, names = where->name_count + 1u;
    state->where = where;
    state->found = calloc(names, sizeof(found));
    state->cursors = calloc(nodes, sizeof(cursor));
    state->regexes = calloc(nodes, sizeof(regex_t));
    state->has_regex = calloc(nodes, 1);
    state->was_seen = calloc(names, 1);
    state->was_missed = calloc(nodes, 1);
    state->was_matched = calloc(nodes, 1);
    bool is_good = state->found && state->cursors && state->regexes && state->has_regex && state->was_seen &&
                   state->was_missed && state->was_matched;
    for (size_t i = 0; i < nodes && is_good; i++) {
        if (where->nodes[i].kind != NODE_MATCHES) continue;
        is_good = regcomp(&state->regexes[i], where->nodes[i].text.data, REG_EXTENDED | REG_NOSUB) == 0;
        state->has_regex[i] = is_good;
    }
    if (is_good) return state;
    where_state_free(state);
    return nullptr;
}

void where_state_free(where_state *state)
{
    if (!state) return;
    for (size_t i = 0; state->has_regex && i < state->where->node_count; i++)
        if (state->has_regex[i]) regfree(&state->regexes[i]);
    free(state->found);
    free(state->cursors);
    free(state->regexes);
    free(state->has_regex);
    free(state->was_seen);
    free(state->was_missed);
    free(state->was_matched);
    free(state);
}

void where_state_merge(where_state *state, where_state *other)
{
    if (!other) return;
    state->records += other->records;
    state->odd_records += other->odd_records;
    for (size_t i = 0; i < state->where->name_count; i++) state->was_seen[i] |= other->was_seen[i];
    for (size_t i = 0; i < state->where->node_count; i++) {
        state->was_missed[i] |= other->was_missed[i];
        state->was_matched[i] |= other->was_matched[i];
    }
    where_state_free(other);
}

void where_notes(const where_state *state, FILE *file)
{
    const where *where = state->where;
    if (state->records == 0) return;
    for (size_t i = 0; i < where->name_count; i++) {
        if (state->was_seen[i]) continue;
        fputs("tfrecord-cat: --where: no record has a feature \"", file);
        (void)text_print(file, where->names[i], 200);
        fputs("\"\n", file);
    }
    for (size_t i = 0; i < where->node_count; i++)
        if (state->was_missed[i] && !state->was_matched[i])
            fprintf(file,
                    "tfrecord-cat: --where: at character %zu text is compared with a number, which is always false\n",
                    where->nodes[i].at + 1);
    if (state->odd_records > 0)
        fprintf(file,
                "tfrecord-cat: --where: %" PRIu64 " record%s Example%s; without features most conditions are false\n",
                state->odd_records, state->odd_records == 1 ? " is not an" : "s are not",
                state->odd_records == 1 ? "" : "s");
}
