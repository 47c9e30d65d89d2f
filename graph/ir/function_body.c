/* Function bodies: turns a FunctionDef with the attrs of a call into a GraphDef, and imports that as a graph.
 *
 * Inside a FunctionDef an input is "argument", "argument:1" of a list argument, or "node:output:1", where output is the
 * name of an argument of the node's operator. Each argument becomes _Arg nodes, every input "node:3", and an attr whose
 * value is the name of an attr of the function gets that attr's value. */
#include "graph/ir/function_def.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive outputs that one name stands for. */
typedef struct range {
    const char *node; /* of list arguments: the prefix of the nodes' names */
    bool is_argument, is_list;
    int32_t first, count;
} range;

typedef struct making {
    mr_arena arena;
    mr_graph *graph; /* that has the library */
    const Mr__FunctionDef *def;
    const mr_attrs *attrs;
    mr_name_table names; /* name -> range */
    range *ranges;
    int32_t range_count, range_capacity;
    Mr__NodeDef **nodes;
    size_t node_count;
    int32_t input_count, input_capacity;
    Mr__NodeDef **input_nodes;
} making;

/* ---- Attrs ---- */

static mr_status find_value(making *m, const char *name, Mr__AttrValue **value, mr_error *error)
{
    const mr_attr *given = m->attrs != nullptr ? mr_attrs_find(m->attrs, name) : nullptr;
    if (given != nullptr) return mr_attr_write(given, &m->arena, value, error);
    for (size_t i = 0; i < m->def->signature->n_attr; i++) {
        const Mr__OpDef__AttrDef *attr = m->def->signature->attr[i];
        *value = attr->default_value;
        if (strcmp(attr->name, name) == 0 && *value != nullptr) return MR_OK;
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "attr %.200s has no value", name);
}

static mr_status replace_attrs(making *m, Mr__AttrEntry ***entries, size_t count, mr_error *error);

static mr_status replace_function(making *m, Mr__NameAttrList **function, mr_error *error)
{
    Mr__NameAttrList *made = mr_arena_copy(&m->arena, *function, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    *function = made;
    return replace_attrs(m, &made->attr, made->n_attr, error);
}

static mr_status replace_list(making *m, Mr__AttrValue *value, mr_error *error)
{
    Mr__AttrValue__ListValue *list = mr_arena_copy(&m->arena, value->list, sizeof *list);
    if (list == nullptr) return mr_fail_memory(error, sizeof *list);
    value->list = list;
    list->func = mr_arena_copy(&m->arena, list->func, list->n_func * sizeof *list->func);
    if (list->func == nullptr) return mr_fail_memory(error, list->n_func * sizeof *list->func);
    for (size_t i = 0; i < list->n_func; i++) MR_TRY(replace_function(m, &list->func[i], error));
    return MR_OK;
}

static mr_status replace_attr(making *m, Mr__AttrEntry *entry, mr_error *error)
{
    if (entry->value == nullptr) return MR_OK;
    if (entry->value->value_case == MR__ATTR_VALUE__VALUE_PLACEHOLDER)
        return find_value(m, entry->value->placeholder, &entry->value, error);
    bool has_function = entry->value->value_case == MR__ATTR_VALUE__VALUE_FUNC;
    bool has_functions = entry->value->value_case == MR__ATTR_VALUE__VALUE_LIST && entry->value->list->n_func > 0;
    if (!has_function && !has_functions) return MR_OK;
    Mr__AttrValue *value = entry->value = mr_arena_copy(&m->arena, entry->value, sizeof *value);
    if (value == nullptr) return mr_fail_memory(error, sizeof *value);
    return has_function ? replace_function(m, &value->func, error) : replace_list(m, value, error);
}

/* Replaces the entries by copies that have values. */
static mr_status replace_attrs(making *m, Mr__AttrEntry ***entries, size_t count, mr_error *error)
{
    Mr__AttrEntry **made = MR_ARENA_NEW(&m->arena, Mr__AttrEntry *, count + 1);
    if (made == nullptr) return mr_fail_memory(error, count * sizeof *made);
    for (size_t i = 0; i < count; i++) {
        made[i] = mr_arena_copy(&m->arena, (*entries)[i], sizeof **made);
        if (made[i] == nullptr) return mr_fail_memory(error, sizeof **made);
        MR_TRY(replace_attr(m, made[i], error));
    }
    *entries = made;
    return MR_OK;
}

static const Mr__AttrValue *node_attr(const Mr__NodeDef *node, const char *name)
{
    for (size_t i = 0; name != nullptr && i < node->n_attr; i++)
        if (strcmp(node->attr[i]->key, name) == 0) return node->attr[i]->value;
    return nullptr;
}

/* ---- Names ---- */

static mr_status add_range(making *m, const char *name, range added, mr_error *error)
{
    if (mr_name_table_get(&m->names, name, -1) >= 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "duplicate name %.200s", name);
    if (m->range_count == m->range_capacity) {
        int32_t capacity = m->range_capacity ? 2 * m->range_capacity : 64;
        range *larger = MR_ARENA_NEW(&m->arena, range, (size_t)capacity);
        if (larger == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        if (m->range_count > 0) memcpy(larger, m->ranges, (size_t)m->range_count * sizeof *larger);
        m->ranges = larger;
        m->range_capacity = capacity;
    }
    m->ranges[m->range_count] = added;
    return mr_name_table_set(&m->names, name, m->range_count++, error);
}

/* The number of tensors of an output of a node. */
static mr_status count_of(const Mr__NodeDef *node, const mr_op_argument *argument, int64_t *count, mr_error *error)
{
    const Mr__AttrValue *number = node_attr(node, argument->number_attr),
                        *types = node_attr(node, argument->types_attr);
    *count = 1;
    if (argument->number_attr != nullptr)
        *count = number != nullptr && number->value_case == MR__ATTR_VALUE__VALUE_I ? number->i : -1;
    if (argument->types_attr != nullptr)
        *count =
            types != nullptr && types->value_case == MR__ATTR_VALUE__VALUE_LIST ? (int64_t)types->list->n_type : -1;
    if (*count < 0 || *count > 1 << 20)
        return mr_fail(error, MR_INVALID_ARGUMENT, "node %.200s: output %.200s has no valid number", node->name,
                       argument->name);
    return MR_OK;
}

static mr_status name_outputs(making *m, const Mr__NodeDef *node, mr_error *error)
{
    const mr_op_def *def = mr_op_find(node->op);
    if (def == nullptr) def = mr_function_library_op(m->graph->functions, node->op);
    if (def == nullptr)
        return mr_fail(error, MR_UNIMPLEMENTED, "node %.200s: unknown operator %.200s", node->name, node->op);
    int64_t first = 0;
    for (int32_t i = 0; i < def->output_count; i++) {
        int64_t count;
        MR_TRY(count_of(node, &def->outputs[i], &count, error));
        char *name = mr_arena_printf(&m->arena, "%s:%s", node->name, def->outputs[i].name);
        if (name == nullptr) return mr_fail_memory(error, strlen(node->name));
        MR_TRY(
            add_range(m, name, (range){.node = node->name, .first = (int32_t)first, .count = (int32_t)count}, error));
        first += count;
        if (first > 1 << 20) return mr_fail(error, MR_INVALID_ARGUMENT, "node %.200s: too many outputs", node->name);
    }
    return MR_OK;
}

/* The outputs that an input's text stands for. */
static mr_status find_range(making *m, const char *text, range *found, mr_error *error)
{
    int32_t index = mr_name_table_get(&m->names, text, -1);
    if (index >= 0) {
        *found = m->ranges[index];
        return MR_OK;
    }
    const char *colon = strrchr(text, ':');
    char *end = nullptr;
    long number = colon != nullptr ? strtol(colon + 1, &end, 10) : -1;
    char *prefix = colon != nullptr ? mr_arena_strndup(&m->arena, text, (size_t)(colon - text)) : nullptr;
    index = prefix != nullptr && *end == '\0' && colon[1] >= '0' && colon[1] <= '9'
                ? mr_name_table_get(&m->names, prefix, -1)
                : -1;
    if (index < 0) return mr_fail(error, MR_INVALID_ARGUMENT, "input %.200s does not exist", text);
    const range *whole = &m->ranges[index];
    if (number >= whole->count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "input %.200s does not exist: there are %d outputs", text,
                       (int)whole->count);
    *found = *whole;
    found->first += (int32_t)number;
    found->count = 1;
    return MR_OK;
}

/* "node:3" for output i of a range. */
static char *output_text(making *m, const range *r, int32_t i)
{
    if (!r->is_argument) return mr_arena_printf(&m->arena, "%s:%d", r->node, (int)(r->first + i));
    return r->is_list ? mr_arena_printf(&m->arena, "%s/%d", r->node, (int)(r->first + i))
                      : mr_arena_strdup(&m->arena, r->node);
}

/* ---- Arguments ---- */

static mr_status keep_input_node(making *m, Mr__NodeDef *node, mr_error *error)
{
    if (m->input_count == m->input_capacity) {
        int32_t capacity = m->input_capacity ? 2 * m->input_capacity : 16;
        Mr__NodeDef **larger = MR_ARENA_NEW(&m->arena, Mr__NodeDef *, (size_t)capacity);
        if (larger == nullptr) return mr_fail_memory(error, (size_t)capacity * sizeof *larger);
        if (m->input_count > 0) memcpy(larger, m->input_nodes, (size_t)m->input_count * sizeof(Mr__NodeDef *));
        m->input_nodes = larger;
        m->input_capacity = capacity;
    }
    m->input_nodes[m->input_count++] = node;
    return MR_OK;
}

static mr_status add_argument_node(making *m, const char *name, int32_t dtype, mr_error *error)
{
    typedef struct argument_node {
        Mr__NodeDef node;
        Mr__AttrValue values[2];
        Mr__AttrEntry entries[2];
        Mr__AttrEntry *pointers[2];
    } argument_node;
    argument_node *made = MR_ARENA_NEW(&m->arena, argument_node, 1);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    mr__node_def__init(&made->node);
    for (int i = 0; i < 2; i++) {
        mr__attr_value__init(&made->values[i]);
        mr__attr_entry__init(&made->entries[i]);
        made->entries[i].value = &made->values[i];
        made->pointers[i] = &made->entries[i];
    }
    made->entries[0].key = "T";
    made->values[0].value_case = MR__ATTR_VALUE__VALUE_TYPE;
    made->values[0].type = dtype;
    made->entries[1].key = "index";
    made->values[1].value_case = MR__ATTR_VALUE__VALUE_I;
    made->values[1].i = m->input_count;
    made->node.name = (char *)name;
    made->node.op = "_Arg";
    made->node.n_attr = 2;
    made->node.attr = made->pointers;
    return keep_input_node(m, &made->node, error);
}

static mr_status make_argument(making *m, const Mr__OpDef__ArgDef *argument, mr_error *error)
{
    Mr__AttrValue *number = nullptr, *type = nullptr;
    bool is_list = *argument->number_attr != '\0' || *argument->type_list_attr != '\0';
    int64_t count = 1;
    if (*argument->number_attr != '\0') {
        MR_TRY(find_value(m, argument->number_attr, &number, error));
        count = number->value_case == MR__ATTR_VALUE__VALUE_I ? number->i : -1;
    }
    if (*argument->type_list_attr != '\0') {
        MR_TRY(find_value(m, argument->type_list_attr, &type, error));
        count = type->value_case == MR__ATTR_VALUE__VALUE_LIST ? (int64_t)type->list->n_type : -1;
    } else if (*argument->type_attr != '\0') {
        MR_TRY(find_value(m, argument->type_attr, &type, error));
        if (type->value_case != MR__ATTR_VALUE__VALUE_TYPE) count = -1;
    }
    if (count < 0 || count > 1 << 16)
        return mr_fail(error, MR_INVALID_ARGUMENT, "argument %.200s has no valid type", argument->name);
    range made = {.node = argument->name, .is_argument = true, .is_list = is_list, .first = 0, .count = (int32_t)count};
    MR_TRY(add_range(m, argument->name, made, error));
    for (int32_t i = 0; i < count; i++) {
        char *name = output_text(m, &(range){.node = argument->name, .is_argument = true, .is_list = is_list}, i);
        if (name == nullptr) return mr_fail_memory(error, 64);
        int32_t dtype = type == nullptr                                  ? argument->type
                        : type->value_case == MR__ATTR_VALUE__VALUE_LIST ? type->list->type[i]
                                                                         : type->type;
        MR_TRY(add_argument_node(m, name, dtype, error));
    }
    return MR_OK;
}

/* ---- Nodes ---- */

static mr_status copy_node(making *m, const Mr__NodeDef *from, Mr__NodeDef **made, mr_error *error)
{
    *made = mr_arena_copy(&m->arena, from, sizeof **made);
    if (*made == nullptr) return mr_fail_memory(error, sizeof **made);
    return replace_attrs(m, &(*made)->attr, (*made)->n_attr, error);
}

static mr_status connect_node(making *m, Mr__NodeDef *node, mr_error *error)
{
    size_t count = 0;
    char **texts = nullptr;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (size_t i = 0; i < node->n_input; i++) {
            range found = {.count = 1};
            bool is_control = *node->input[i] == '^';
            if (!is_control) MR_TRY(find_range(m, node->input[i], &found, error));
            for (int32_t j = 0; j < found.count; j++, at++) {
                if (pass == 0) continue;
                texts[at] = is_control ? mr_arena_strdup(&m->arena, node->input[i]) : output_text(m, &found, j);
                if (texts[at] == nullptr) return mr_fail_memory(error, 64);
            }
        }
        count = at;
        if (pass == 0) texts = MR_ARENA_NEW(&m->arena, char *, count + 1);
        if (texts == nullptr) return mr_fail_memory(error, count * sizeof *texts);
    }
    node->n_input = count;
    node->input = texts;
    return MR_OK;
}

static mr_status make_nodes(making *m, Mr__GraphDef *graph_def, mr_error *error)
{
    const Mr__FunctionDef *def = m->def;
    for (size_t i = 0; i < def->signature->n_input_arg; i++)
        MR_TRY(make_argument(m, def->signature->input_arg[i], error));
    size_t total = def->n_node_def + (size_t)m->input_count;
    m->nodes = MR_ARENA_NEW(&m->arena, Mr__NodeDef *, total + 1);
    if (m->nodes == nullptr) return mr_fail_memory(error, total * sizeof *m->nodes);
    for (int32_t i = 0; i < m->input_count; i++) m->nodes[m->node_count++] = m->input_nodes[i];
    for (size_t i = 0; i < def->n_node_def; i++) {
        Mr__NodeDef *node;
        MR_TRY(copy_node(m, def->node_def[i], &node, error));
        MR_TRY(name_outputs(m, node, error));
        m->nodes[m->node_count++] = node;
    }
    for (size_t i = (size_t)m->input_count; i < total; i++) {
        mr_status status = connect_node(m, m->nodes[i], error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "node %.200s", m->nodes[i]->name);
    }
    graph_def->n_node = total;
    graph_def->node = m->nodes;
    return MR_OK;
}

/* ---- The body ---- */

static const char *find_entry(Mr__StringEntry *const *entries, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i]->key, key) == 0) return entries[i]->value;
    return nullptr;
}

static mr_status find_results(making *m, mr_function_body *body, mr_error *error)
{
    const Mr__FunctionDef *def = m->def;
    for (size_t i = 0; i < def->signature->n_output_arg; i++) {
        const char *name = def->signature->output_arg[i]->name;
        const char *text = find_entry(def->ret, def->n_ret, name);
        range found;
        if (text == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "result %.200s has no value", name);
        MR_TRY(find_range(m, text, &found, error));
        for (int32_t j = 0; j < found.count; j++) {
            mr_output *all = mr_graph_grow(body->graph, body->outputs, body->output_count, sizeof *all);
            char *output = output_text(m, &found, j);
            if (all == nullptr || output == nullptr) return mr_fail_memory(error, 64);
            body->outputs = all;
            all[body->output_count] = mr_graph_find_output(body->graph, output);
            if (all[body->output_count].node == nullptr)
                return mr_fail(error, MR_INVALID_ARGUMENT, "result %.200s: %.200s does not exist", name, text);
            body->output_count++;
        }
    }
    return MR_OK;
}

static mr_status add_target(mr_function_body *body, mr_node *node, mr_error *error)
{
    for (int32_t i = 0; i < body->target_count; i++)
        if (body->targets[i] == node) return MR_OK;
    mr_node **all = mr_graph_grow(body->graph, body->targets, body->target_count, sizeof *all);
    if (all == nullptr) return mr_fail_memory(error, sizeof *all);
    body->targets = all;
    all[body->target_count++] = node;
    return MR_OK;
}

/* As in TensorFlow, what has side effects runs even if no result depends on it. */
static mr_status find_targets(making *m, mr_function_body *body, mr_error *error)
{
    for (int32_t i = 0; i < body->graph->node_count; i++) {
        mr_node *node = body->graph->nodes[i];
        if (mr_node_has_flag(node, MR_OP_STATEFUL) && strcmp(node->op, "_Arg") != 0)
            MR_TRY(add_target(body, node, error));
    }
    for (size_t i = 0; i < m->def->n_control_ret; i++) {
        mr_node *node = mr_graph_find(body->graph, m->def->control_ret[i]->value);
        if (node == nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "control result %.200s does not exist",
                           m->def->control_ret[i]->value);
        MR_TRY(add_target(body, node, error));
    }
    return MR_OK;
}

static mr_status find_ends(making *m, mr_function_body *body, mr_error *error)
{
    body->inputs = MR_ARENA_NEW(&body->graph->arena, mr_output, (size_t)m->input_count + 1);
    if (body->inputs == nullptr) return mr_fail_memory(error, sizeof *body->inputs);
    for (int32_t i = 0; i < m->input_count; i++)
        body->inputs[i] = (mr_output){mr_graph_find(body->graph, m->input_nodes[i]->name), 0};
    body->input_count = m->input_count;
    MR_TRY(find_results(m, body, error));
    return find_targets(m, body, error);
}

static mr_status make_body(making *m, mr_function_body *body, mr_error *error)
{
    Mr__GraphDef graph_def = MR__GRAPH_DEF__INIT;
    Mr__VersionDef versions = MR__VERSION_DEF__INIT;
    MR_TRY(make_nodes(m, &graph_def, error));
    versions.producer = m->graph->producer;
    graph_def.versions = &versions;
    body->graph = mr_graph_create();
    if (body->graph == nullptr) return mr_fail_memory(error, sizeof *body->graph);
    body->graph->functions = m->graph->functions;
    body->graph->borrows_functions = true;
    MR_TRY(mr_graph_read(body->graph, &graph_def, m->graph->library_size_bytes + (1 << 16), nullptr, error));
    return find_ends(m, body, error);
}

mr_status mr_function_body_init(mr_function_body *body, const mr_graph *graph, const char *function,
                                const mr_attrs *attrs, mr_error *error)
{
    *body = (mr_function_body){0};
    const mr_library_function *found = mr_function_library_find(graph->functions, function);
    if (found == nullptr) return mr_fail(error, MR_NOT_FOUND, "Function %.200s is not defined", function);
    making m = {.graph = (mr_graph *)graph, .def = found->def, .attrs = attrs};
    mr_status status = make_body(&m, body, error);
    mr_name_table_deinit(&m.names);
    mr_arena_deinit(&m.arena);
    if (status == MR_OK) return MR_OK;
    mr_function_body_deinit(body);
    return mr_fail_prefix(error, status, "function %.200s", function);
}

void mr_function_body_deinit(mr_function_body *body)
{
    mr_graph_free(body->graph);
    *body = (mr_function_body){0};
}
