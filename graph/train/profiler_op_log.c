/* OpLogProtos: what Python knows of the nodes of a graph, that is their types, float operations and code traces. */
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/profiler_node.h"
#include "proto/profile.pb-c.h"
#include "proto/proto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    mr_profile *profile;
    mr_arena arena; /* of the message */
    Mr__OpLogProto *log;
} reading;

static int by_key(const void *a, const void *b)
{
    const Mr__OpLogString *x = *(Mr__OpLogString *const *)a, *y = *(Mr__OpLogString *const *)b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static mr_status find_string(const reading *r, const Mr__OpLogEntry *entry, int64_t id, const char **text,
                             mr_error *error)
{
    Mr__OpLogString wanted = {.key = id};
    const Mr__OpLogString *key = &wanted;
    Mr__OpLogString *const *found =
        r->log->n_id_to_string == 0
            ? nullptr
            : bsearch(&key, r->log->id_to_string, r->log->n_id_to_string, sizeof(Mr__OpLogString *), by_key);
    if (found == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_profile_add_op_log: a trace of %.200s refers to the string %" PRId64
                       ", which does not exist",
                       entry->name, id);
    *text = (*found)->value;
    return MR_OK;
}

/* "model.py:12:layer", as tfprof names a call. */
static mr_status name_trace(const reading *r, const Mr__OpLogEntry *entry, const Mr__CodeTrace *trace,
                            const char **name, mr_error *error)
{
    constexpr size_t FUNCTION_MAX = 20;
    const char *file, *function;
    MR_TRY(find_string(r, entry, trace->file_id, &file, error));
    MR_TRY(find_string(r, entry, trace->function_id, &function, error));
    const char *slash = strrchr(file, '/');
    const bool is_long = strlen(function) >= FUNCTION_MAX;
    *name = mr_arena_printf(&r->profile->arena, "%s:%d:%.*s%s", slash != nullptr ? slash + 1 : file, (int)trace->lineno,
                            is_long ? (int)FUNCTION_MAX - 3 : (int)FUNCTION_MAX, function, is_long ? "..." : "");
    return *name != nullptr ? MR_OK : mr_fail_memory(error, strlen(file));
}

static mr_status add_traces(const reading *r, const Mr__OpLogEntry *entry, mr_profile_node *node, mr_error *error)
{
    const Mr__CodeDef *code = entry->code_def;
    if (code == nullptr || code->n_traces == 0 || node->trace_count > 0) return MR_OK;
    if (code->n_traces > INT32_MAX) return mr_fail_memory(error, SIZE_MAX);
    const char **traces = MR_ARENA_NEW(&r->profile->arena, const char *, code->n_traces);
    if (traces == nullptr) return mr_fail_memory(error, code->n_traces * sizeof *traces);
    for (size_t i = 0; i < code->n_traces; i++) MR_TRY(name_trace(r, entry, code->traces[i], &traces[i], error));
    node->traces = traces;
    node->trace_count = (int32_t)code->n_traces;
    return MR_OK;
}

static bool has_type(const mr_profile_node *node, const char *name)
{
    const mr_profile_type *type = node->types;
    while (type != nullptr && strcmp(type->name, name) != 0) type = type->next;
    return type != nullptr;
}

static mr_status add_entry(const reading *r, const Mr__OpLogEntry *entry, mr_error *error)
{
    const int32_t index = mr_name_table_get(&r->profile->names, entry->name, -1);
    if (index < 0) return MR_OK;
    mr_profile_node *node = r->profile->nodes[index];
    for (size_t i = 0; i < entry->n_types; i++)
        if (*entry->types[i] != '\0' && !has_type(node, entry->types[i]))
            MR_TRY(mr_profile_add_type(r->profile, node->name, entry->types[i], error));
    if (entry->float_ops < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "mr_profile_add_op_log: %.200s has %" PRId64 " float operations, less than 0", entry->name,
                       entry->float_ops);
    if (entry->float_ops > 0) MR_TRY(mr_profile_set_float_ops(r->profile, node->name, entry->float_ops, error));
    return add_traces(r, entry, node, error);
}

static mr_status add_log(reading *r, mr_string bytes, mr_error *error)
{
    mr_status status = mr_proto_unpack_as(op_log_proto, bytes, &r->arena, &r->log, error);
    if (status == MR_DATA_LOSS) status = mr_fail_prefix(error, MR_INVALID_ARGUMENT, "mr_profile_add_op_log");
    MR_TRY(status);
    if (r->log->n_id_to_string > 0)
        qsort(r->log->id_to_string, r->log->n_id_to_string, sizeof(Mr__OpLogString *), by_key);
    for (size_t i = 0; i < r->log->n_log_entries; i++) MR_TRY(add_entry(r, r->log->log_entries[i], error));
    return MR_OK;
}

mr_status mr_profile_add_op_log(mr_profile *profile, mr_string op_log, mr_error *error)
{
    if (profile == nullptr) return mr_session_null("mr_profile_add_op_log: profile", error);
    if (op_log.data == nullptr && op_log.size_bytes > 0) return mr_session_null("mr_profile_add_op_log: op_log", error);
    reading r = {.profile = profile};
    const mr_status status = add_log(&r, op_log, error);
    mr_arena_deinit(&r.arena);
    return status;
}
