#include "graph/train/rewrite.h"

#include "base/status.h"
#include "graph/train/near_names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

mr_status mr_rewrite_init(mr_rewrite *r, const char *what, const mr_graph *graph, mr_error *error)
{
    *r = (mr_rewrite){.what = what};
    MR_TRY(mr_graph_status(graph, error));
    mr_status status = mr_graph_write(graph, &r->arena, &r->def, error);
    if (status != MR_OK) return status;
    r->count = r->capacity = (int32_t)r->def->n_node;
    r->nodes = r->def->node;
    r->removed = MR_ARENA_NEW(&r->arena, bool, (size_t)r->count + 1);
    if (r->removed == nullptr) return mr_fail_memory(error, (size_t)r->count);
    for (int32_t i = 0; i < r->count; i++) MR_TRY(mr_name_table_set(&r->ids, r->nodes[i]->name, i, error));
    return MR_OK;
}

void mr_rewrite_deinit(mr_rewrite *r)
{
    mr_name_table_deinit(&r->ids);
    mr_arena_deinit(&r->arena);
}

mr_status mr_rewrite_finish(mr_rewrite *r, mr_tensor *graph_def, mr_error *error)
{
    Mr__NodeDef **kept = MR_ARENA_NEW(&r->arena, Mr__NodeDef *, (size_t)r->count + 1);
    size_t count = 0;
    mr_string bytes = {0};
    if (kept == nullptr) return mr_fail_memory(error, (size_t)r->count * sizeof *kept);
    for (int32_t i = 0; i < r->count; i++)
        if (!r->removed[i]) kept[count++] = r->nodes[i];
    assert(count <= (size_t)r->count);
    r->def->node = kept;
    r->def->n_node = count;
    MR_TRY(mr_proto_pack(r->def, &r->arena, &bytes, error));
    return mr_tensor_init_string(graph_def, bytes, error);
}

/* ---- Nodes by name ---- */

int32_t mr_rewrite_find(const mr_rewrite *r, const char *name)
{
    const int32_t found = mr_name_table_get(&r->ids, name, -1);
    return found >= 0 && r->removed[found] ? -1 : found;
}

mr_rewrite_input mr_rewrite_input_of(const mr_rewrite *r, const char *text)
{
    if (*text == '^') return (mr_rewrite_input){mr_rewrite_find(r, text + 1), -1};
    const char *colon = strrchr(text, ':');
    if (colon == nullptr) return (mr_rewrite_input){mr_rewrite_find(r, text), 0};
    char name[MR_OUTPUT_NAME_SIZE];
    const size_t length = (size_t)(colon - text);
    if (length < sizeof name) {
        memcpy(name, text, length);
        name[length] = '\0';
        return (mr_rewrite_input){mr_rewrite_find(r, name), (int32_t)strtol(colon + 1, nullptr, 10)};
    }
    /* A longer name: the rare case. */
    char *copy = strndup(text, length);
    if (copy == nullptr) return (mr_rewrite_input){-1, 0};
    const mr_rewrite_input input = {mr_rewrite_find(r, copy), (int32_t)strtol(colon + 1, nullptr, 10)};
    free(copy);
    return input;
}

mr_status mr_rewrite_require(const mr_rewrite *r, const char *role, const char *name, int32_t *index, mr_error *error)
{
    if (name == nullptr || *name == '\0' || *name == '^')
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: an %s is %s", r->what, role,
                       name == nullptr ? "null" : "no name of a node");
    const mr_rewrite_input input = mr_rewrite_input_of(r, name);
    *index = input.node;
    if (input.node >= 0 && input.index > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the %s %.200s is not the name of a node", r->what, role, name);
    if (input.node >= 0) return MR_OK;
    char text[MR_NEAR_NAMES_SIZE];
    mr_near_names near = {.name = name};
    for (int32_t i = 0; i < r->count; i++)
        if (!r->removed[i]) mr_near_names_add(&near, r->nodes[i]->name);
    return mr_fail(error, MR_NOT_FOUND, "%s: the %s %.200s is not in the graph%s", r->what, role, name,
                   mr_near_names_text(&near, text, sizeof text));
}

mr_status mr_rewrite_mark(const mr_rewrite *r, const char *role, mr_names names, bool *marks, mr_error *error)
{
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the list of %ss has %d names at null", r->what, role,
                       names.count);
    for (int32_t i = 0; i < names.count; i++) {
        int32_t index = -1;
        MR_TRY(mr_rewrite_require(r, role, names.items[i], &index, error));
        marks[index] = true;
    }
    return MR_OK;
}

mr_rewrite_input mr_rewrite_data_input(const mr_rewrite *r, int32_t node, int32_t index)
{
    const Mr__NodeDef *def = r->nodes[node];
    if ((size_t)index >= def->n_input || *def->input[index] == '^') return (mr_rewrite_input){-1, 0};
    return mr_rewrite_input_of(r, def->input[index]);
}

int32_t mr_rewrite_data_count(const mr_rewrite *r, int32_t node)
{
    const Mr__NodeDef *def = r->nodes[node];
    int32_t count = 0;
    while ((size_t)count < def->n_input && *def->input[count] != '^') count++;
    return count;
}

/* ---- Readers ---- */

mr_status mr_rewrite_keep_reachable(mr_rewrite *r, const bool *marks, const bool *ends, mr_error *error)
{
    int32_t *stack = MR_ARENA_NEW(&r->arena, int32_t, (size_t)r->count + 1);
    bool *seen = MR_ARENA_NEW(&r->arena, bool, (size_t)r->count + 1);
    int32_t depth = 0;
    if (stack == nullptr || seen == nullptr) return mr_fail_memory(error, (size_t)r->count * sizeof *stack);
    for (int32_t i = 0; i < r->count; i++)
        if (marks[i] && !r->removed[i]) {
            seen[i] = true;
            stack[depth++] = i;
        }
    while (depth > 0) {
        const int32_t node = stack[--depth];
        if (ends != nullptr && ends[node]) continue;
        for (size_t j = 0; j < r->nodes[node]->n_input; j++) {
            const mr_rewrite_input input = mr_rewrite_input_of(r, r->nodes[node]->input[j]);
            if (input.node < 0 || seen[input.node]) continue;
            seen[input.node] = true;
            stack[depth++] = input.node;
        }
    }
    for (int32_t i = 0; i < r->count; i++) r->removed[i] |= !seen[i];
    return MR_OK;
}

/* The output of the node `name` that an input is; -1: a control input; -2: another node. */
static int32_t output_of(const char *text, const char *name, size_t length)
{
    const bool is_control = *text == '^';
    text += is_control;
    if (strncmp(text, name, length) != 0 || (text[length] != '\0' && text[length] != ':')) return -2;
    return is_control ? -1 : text[length] == ':' ? (int32_t)strtol(text + length + 1, nullptr, 10) : 0;
}

int32_t mr_rewrite_reader_count(const mr_rewrite *r, int32_t node)
{
    const char *name = r->nodes[node]->name;
    const size_t length = strlen(name);
    int32_t count = 0;
    for (int32_t i = 0; i < r->count; i++)
        for (size_t j = 0; !r->removed[i] && j < r->nodes[i]->n_input; j++)
            count += output_of(r->nodes[i]->input[j], name, length) >= 0;
    return count;
}

bool mr_rewrite_is_read(const mr_rewrite *r, int32_t node, int32_t index)
{
    const char *name = r->nodes[node]->name;
    const size_t length = strlen(name);
    for (int32_t i = 0; i < r->count; i++)
        for (size_t j = 0; !r->removed[i] && j < r->nodes[i]->n_input; j++)
            if (output_of(r->nodes[i]->input[j], name, length) == index) return true;
    return false;
}

void mr_rewrite_replace_readers(mr_rewrite *r, mr_rewrite_input output, char *text)
{
    const char *name = r->nodes[output.node]->name;
    const size_t length = strlen(name);
    for (int32_t i = 0; i < r->count; i++)
        for (size_t j = 0; !r->removed[i] && j < r->nodes[i]->n_input; j++)
            if (output_of(r->nodes[i]->input[j], name, length) == output.index) r->nodes[i]->input[j] = text;
}

/* ---- Changes ---- */

int32_t mr_rewrite_add(mr_rewrite *r, const char *op, const char *name, mr_error *error)
{
    const char *unique = mr_arena_strdup(&r->arena, name);
    for (int32_t i = 1; unique != nullptr && mr_name_table_get(&r->ids, unique, -1) >= 0; i++)
        unique = mr_arena_printf(&r->arena, "%s_%d", name, i);
    Mr__NodeDef *node = MR_ARENA_NEW(&r->arena, Mr__NodeDef, 1);
    if (r->count == r->capacity) {
        const int32_t capacity = r->capacity * 2 + 16;
        Mr__NodeDef **nodes = MR_ARENA_NEW(&r->arena, Mr__NodeDef *, (size_t)capacity);
        bool *removed = MR_ARENA_NEW(&r->arena, bool, (size_t)capacity);
        if (nodes == nullptr || removed == nullptr) return (void)mr_fail_memory(error, (size_t)capacity), -1;
        memcpy(nodes, r->nodes, (size_t)r->count * sizeof(Mr__NodeDef *));
        memcpy(removed, r->removed, (size_t)r->count * sizeof *removed);
        r->nodes = nodes;
        r->removed = removed;
        r->capacity = capacity;
    }
    if (unique == nullptr || node == nullptr) return (void)mr_fail_memory(error, sizeof *node), -1;
    mr__node_def__init(node);
    node->name = (char *)unique;
    node->op = (char *)op;
    if (mr_name_table_set(&r->ids, unique, r->count, error) != MR_OK) return -1;
    assert(r->count >= 0 && r->count < r->capacity && !r->removed[r->count]);
    r->nodes[r->count] = node;
    return r->count++;
}

mr_status mr_rewrite_set_inputs(mr_rewrite *r, int32_t node, const char *const *inputs, size_t count, mr_error *error)
{
    Mr__NodeDef *def = r->nodes[node];
    def->input = MR_ARENA_NEW(&r->arena, char *, count + 1);
    if (def->input == nullptr) return mr_fail_memory(error, count * sizeof *def->input);
    for (def->n_input = 0; def->n_input < count; def->n_input++) {
        def->input[def->n_input] = mr_arena_strdup(&r->arena, inputs[def->n_input]);
        if (def->input[def->n_input] == nullptr) return mr_fail_memory(error, 64);
    }
    return MR_OK;
}

/* Replaces the control input "^name" of a reader by the control inputs of the removed node. */
static mr_status pass_controls(mr_rewrite *r, int32_t reader, const Mr__NodeDef *removed, mr_error *error)
{
    Mr__NodeDef *def = r->nodes[reader];
    size_t at = 0, count = 0;
    while (at < def->n_input && !(*def->input[at] == '^' && strcmp(def->input[at] + 1, removed->name) == 0)) at++;
    if (at == def->n_input) return MR_OK;
    char **inputs = MR_ARENA_NEW(&r->arena, char *, def->n_input + removed->n_input);
    if (inputs == nullptr) return mr_fail_memory(error, def->n_input * sizeof *inputs);
    for (size_t i = 0; i < def->n_input; i++)
        if (i != at) inputs[count++] = def->input[i];
    for (size_t i = 0; i < removed->n_input; i++) {
        const char *text = removed->input[i];
        const char *colon = *text == '^' ? nullptr : strrchr(text, ':');
        const size_t length = colon != nullptr ? (size_t)(colon - text) : strlen(text);
        char *control =
            *text == '^' ? mr_arena_strdup(&r->arena, text) : mr_arena_printf(&r->arena, "^%.*s", (int)length, text);
        if (control == nullptr) return mr_fail_memory(error, length);
        bool is_known = false;
        for (size_t j = 0; j < count; j++) is_known |= strcmp(inputs[j], control) == 0;
        if (!is_known) inputs[count++] = control;
    }
    assert(count < def->n_input + removed->n_input);
    def->input = inputs;
    def->n_input = count;
    return MR_OK;
}

mr_status mr_rewrite_remove(mr_rewrite *r, int32_t node, mr_error *error)
{
    r->removed[node] = true;
    for (int32_t i = 0; i < r->count; i++)
        if (!r->removed[i]) MR_TRY(pass_controls(r, i, r->nodes[node], error));
    return MR_OK;
}
