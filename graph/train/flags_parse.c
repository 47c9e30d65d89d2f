/* Flags on the command line. */
#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "graph/train/flags.h"
#include "graph/train/near_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* An argument that is not a flag of the program. */
typedef struct other {
    const char *text;
    const char *name; /* of a flag that is not defined; null: an argument */
} other;

typedef struct parsing {
    mr_flags *flags;
    mr_flags_parse_options options;
    mr_names arguments;
    int32_t at; /* the next one */
    other *others;
    int32_t other_count, other_capacity;
    const char **undefok; /* lists of names, separated by commas */
    int32_t undefok_count, undefok_capacity;
    bool is_at_end; /* the rest are arguments */
} parsing;

static mr_status keep(parsing *p, const char *text, const char *name, mr_error *error)
{
    other *o = mr_flags_push(&p->flags->arena, &p->others, &p->other_count, &p->other_capacity, sizeof *o);
    if (o == nullptr) return mr_fail_memory(error, sizeof *o);
    *o = (other){text, name};
    if (name == nullptr && p->options.stop_at_first_argument) p->is_at_end = true;
    return MR_OK;
}

static mr_status next_value(parsing *p, const char *argument, const char **value, mr_error *error)
{
    if (*value != nullptr) return MR_OK;
    if (p->at == p->arguments.count) return mr_fail(error, MR_INVALID_ARGUMENT, "flag %.200s: no value", argument);
    *value = p->arguments.items[p->at++];
    return MR_OK;
}

static mr_status set(parsing *p, mr_flag *flag, const char *value, mr_error *error)
{
    MR_TRY(mr_flag_parse(p->flags, flag, value, error));
    const mr_flags *f = p->flags;
    if (f->wants_help || f->wants_short_help || f->wants_full_help) p->is_at_end = true;
    return MR_OK;
}

/* value  null: there is no "=" */
static mr_status parse_flag(parsing *p, const char *argument, const char *name, const char *value, mr_error *error)
{
    if (strcmp(name, "undefok") == 0) {
        MR_TRY(next_value(p, argument, &value, error));
        const char **list =
            mr_flags_push(&p->flags->arena, &p->undefok, &p->undefok_count, &p->undefok_capacity, sizeof *list);
        if (list == nullptr) return mr_fail_memory(error, sizeof *list);
        *list = value;
        return MR_OK;
    }
    mr_flag *flag = mr_flag_find(p->flags, name);
    if (flag != nullptr) {
        if (flag->kind == MR_FLAG_BOOL && value == nullptr) value = "true";
        MR_TRY(next_value(p, argument, &value, error));
        return set(p, flag, value, error);
    }
    flag = strncmp(name, "no", 2) == 0 ? mr_flag_find(p->flags, name + 2) : nullptr;
    if (flag == nullptr || flag->kind != MR_FLAG_BOOL) return keep(p, argument, name, error);
    if (value != nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "flag %.200s takes no value", argument);
    return set(p, flag, "false", error);
}

static mr_status parse_argument(parsing *p, const char *argument, mr_error *error)
{
    const char *text = argument + (argument[0] == '-') + (argument[0] == '-' && argument[1] == '-');
    const char *equals = strchr(text, '=');
    const size_t length = equals != nullptr ? (size_t)(equals - text) : strlen(text);
    if (argument[0] == '-' && strcmp(argument, "--") == 0) {
        p->is_at_end = true;
        return p->options.known_only ? keep(p, argument, nullptr, error) : MR_OK;
    }
    if (argument[0] != '-' || length == 0) return keep(p, argument, nullptr, error);
    const char *name = mr_arena_strndup(&p->flags->arena, text, length);
    if (name == nullptr) return mr_fail_memory(error, length);
    return parse_flag(p, argument, name, equals != nullptr ? equals + 1 : nullptr, error);
}

/* ---- Flags that are not defined ---- */

static bool is_in_list(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list;; at++) {
        at += strspn(at, " \t");
        const size_t size = strcspn(at, ",");
        size_t used = size;
        while (used > 0 && (at[used - 1] == ' ' || at[used - 1] == '\t')) used--;
        if (used == length && strncmp(at, name, length) == 0) return true;
        at += size;
        if (*at == '\0') return false;
    }
}

static bool may_be_undefined(const parsing *p, const char *name)
{
    for (int32_t i = 0; i < p->undefok_count; i++)
        if (is_in_list(p->undefok[i], name) || (strncmp(name, "no", 2) == 0 && is_in_list(p->undefok[i], name + 2)))
            return true;
    return false;
}

static mr_status fail_undefined(const parsing *p, const other *o, mr_error *error)
{
    mr_near_names near = {.name = o->name};
    for (int32_t i = 0; i < p->flags->flag_count; i++) mr_near_names_add(&near, p->flags->flags[i]->name);
    assert(near.count > 0);
    /* Distances are in halves. A name with more than half of its characters wrong is not meant. */
    if (near.distances[0] > (int32_t)strlen(o->name))
        return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%.200s is not defined", o->name);
    return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%.200s is not defined; the nearest is --%.200s", o->name,
                   near.nearest[0]);
}

/* The arguments of the program: those that are no flags, and the rest. */
static mr_status collect(parsing *p, mr_error *error)
{
    const size_t most = (size_t)p->other_count + (size_t)(p->arguments.count - p->at);
    const char **items = MR_ARENA_NEW(&p->flags->arena, const char *, most + 1);
    int32_t count = 0;
    if (items == nullptr) return mr_fail_memory(error, most * sizeof *items);
    for (int32_t i = 0; i < p->other_count; i++) {
        const other *o = &p->others[i];
        if (o->name != nullptr && may_be_undefined(p, o->name)) continue;
        if (o->name != nullptr && !p->options.known_only) return fail_undefined(p, o, error);
        items[count++] = o->text;
    }
    while (p->at < p->arguments.count) items[count++] = p->arguments.items[p->at++];
    assert((size_t)count <= most);
    p->flags->arguments = (mr_names){items, count};
    return MR_OK;
}

/* ---- Rules ---- */

static mr_status check_exclusive(const mr_flag_rule *rule, mr_error *error)
{
    const mr_flag *first = nullptr;
    for (int32_t i = 0; i < rule->count; i++) {
        const mr_flag *flag = rule->flags[i];
        const bool is_given = flag->kind == MR_FLAG_BOOL ? *(const bool *)flag->value : mr_flag_is_given(flag);
        if (is_given && first != nullptr)
            return mr_fail(error, MR_INVALID_ARGUMENT, "flags --%s and --%s exclude each other", first->name,
                           flag->name);
        if (is_given) first = flag;
    }
    if (first != nullptr || !rule->required) return MR_OK;
    char names[300];
    size_t used = 0;
    names[0] = '\0';
    for (int32_t i = 0; i < rule->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", i > 0 ? ", " : "", rule->flags[i]->name);
    return mr_fail(error, MR_INVALID_ARGUMENT, "one of the flags %s is required", names);
}

static mr_status check_validator(const mr_flag_rule *rule, const mr_flags *flags, mr_error *error)
{
    mr_error reason = {0};
    const mr_status status = rule->check(rule->context, flags, &reason);
    if (status == MR_OK) return MR_OK;
    return mr_fail(error, status, "%s", reason.message[0] != '\0' ? reason.message : "the validator failed");
}

static mr_status check_rules(const mr_flags *flags, mr_error *error)
{
    for (int32_t i = 0; i < flags->flag_count; i++)
        if (flags->flags[i]->required && !mr_flag_is_given(flags->flags[i]))
            return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%s is required", flags->flags[i]->name);
    for (int32_t i = 0; i < flags->rule_count; i++) {
        const mr_flag_rule *rule = &flags->rules[i];
        MR_TRY(rule->check != nullptr ? check_validator(rule, flags, error) : check_exclusive(rule, error));
    }
    return MR_OK;
}

/* ---- Parsing ---- */

/* The flags may outlive the strings. */
static mr_status copy_arguments(mr_flags *flags, int argc, char *const *argv, mr_names *arguments, mr_error *error)
{
    const char **items = MR_ARENA_NEW(&flags->arena, const char *, (size_t)argc + 1);
    for (int i = 0; items != nullptr && i < argc; i++) {
        if (argv[i] == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "mr_flags_parse: argv[%d] is null", i);
        items[i] = mr_arena_strdup(&flags->arena, argv[i]);
        if (items[i] == nullptr) items = nullptr;
    }
    if (items == nullptr) return mr_fail_memory(error, (size_t)argc * sizeof *items);
    const char *slash = strrchr(items[0], '/');
    flags->program = slash != nullptr ? slash + 1 : items[0];
    *arguments = (mr_names){items + 1, argc - 1};
    return MR_OK;
}

static mr_status parse(parsing *p, mr_error *error)
{
    mr_flags *flags = p->flags;
    while (p->at < p->arguments.count && !p->is_at_end) MR_TRY(parse_argument(p, p->arguments.items[p->at++], error));
    if (!(flags->wants_help || flags->wants_short_help || flags->wants_full_help)) {
        MR_TRY(collect(p, error));
        return check_rules(flags, error);
    }
    flags->help = mr_flags_render_help(flags, flags->wants_full_help);
    flags->wants_help = flags->wants_short_help = flags->wants_full_help = false;
    return flags->help != nullptr ? MR_OK : mr_fail_memory(error, 1);
}

mr_status mr_flags_parse_with(mr_flags *flags, int argc, char *const *argv, const mr_flags_parse_options *options,
                              mr_error *error)
{
    parsing p = {.flags = flags};
    if (flags == nullptr) return mr_session_null("mr_flags_parse: flags", error);
    if (argc < 1 || argv == nullptr)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_flags_parse: argv must contain the program's name");
    if (flags->error.status != MR_OK) return mr_fail(error, flags->error.status, "%s", flags->error.message);
    MR_TRY(MR_OPTIONS_READ(mr_flags_parse_options, &p.options, options, error));
    flags->help = nullptr;
    flags->arguments = (mr_names){0};
    MR_TRY(copy_arguments(flags, argc, argv, &p.arguments, error));
    MR_TRY(mr_flags_expand(flags, p.arguments, p.options.stop_at_first_argument, &p.arguments, error));
    return parse(&p, error);
}

mr_status mr_flags_parse(mr_flags *flags, int argc, char *const *argv, mr_error *error)
{
    return mr_flags_parse_with(flags, argc, argv, nullptr, error);
}

mr_names mr_flags_arguments(const mr_flags *flags)
{
    return flags != nullptr ? flags->arguments : (mr_names){0};
}

const char *mr_flags_help(const mr_flags *flags)
{
    return flags != nullptr ? flags->help : nullptr;
}

int32_t mr_flags_count(const mr_flags *flags, const char *name)
{
    const mr_flag *flag = flags != nullptr ? mr_flag_find(flags, name) : nullptr;
    return flag != nullptr ? flag->count : -1;
}

mr_status mr_flags_set(mr_flags *flags, const char *name, const char *value, mr_error *error)
{
    if (flags == nullptr) return mr_session_null("mr_flags_set: flags", error);
    if (flags->error.status != MR_OK) return mr_fail(error, flags->error.status, "%s", flags->error.message);
    mr_flag *flag = mr_flag_find(flags, name);
    if (flag == nullptr || flag->is_special)
        return mr_fail(error, MR_NOT_FOUND, "flag --%.200s is not defined", name != nullptr ? name : "(null)");
    if (value == nullptr && flag->kind != MR_FLAG_BOOL)
        return mr_fail(error, MR_INVALID_ARGUMENT, "flag --%s: no value", flag->name);
    return mr_flag_parse(flags, flag, value != nullptr ? value : "true", error);
}
