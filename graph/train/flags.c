/* Flags: their definitions and rules (flags.h). */
#include "graph/train/flags.h"
#include "base/options.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- The list ---- */

/* Keeps the first error. */
[[gnu::format(printf, 3, 4)]] static void fail(mr_flags *flags, mr_status status, const char *format, ...)
{
    va_list args;
    if (flags->error.status != MR_OK) return;
    va_start(args, format);
    (void)mr_fail_va(&flags->error, status, format, args);
    va_end(args);
}

static void fail_memory(mr_flags *flags)
{
    fail(flags, MR_RESOURCE_EXHAUSTED, "no memory for flags");
}

mr_flag *mr_flag_find(const mr_flags *flags, const char *name)
{
    for (int32_t i = 0; name != nullptr && i < flags->flag_count; i++) {
        mr_flag *flag = flags->flags[i];
        if (strcmp(flag->name, name) == 0) return flag;
        if (flag->short_name != nullptr && strcmp(flag->short_name, name) == 0) return flag;
    }
    return nullptr;
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return name != nullptr && *name != '\0' && *name != '-' && name[strspn(name, letters)] == '\0';
}

static bool is_reserved(const mr_flags *flags, const char *name)
{
    const mr_flag *flag = mr_flag_find(flags, name);
    return strcmp(name, "flagfile") == 0 || strcmp(name, "undefok") == 0 || (flag != nullptr && flag->is_special);
}

/* Enters the flag in the order of names. */
static void enter(mr_flags *flags, mr_flag *flag)
{
    if (mr_flags_push(&flags->arena, &flags->flags, &flags->flag_count, &flags->flag_capacity, sizeof(mr_flag *)) ==
        nullptr) {
        fail_memory(flags);
        return;
    }
    int32_t at = flags->flag_count - 1;
    for (; at > 0 && strcmp(flags->flags[at - 1]->name, flag->name) > 0; at--) flags->flags[at] = flags->flags[at - 1];
    flags->flags[at] = flag;
}

/* ---- Definitions ---- */

static mr_names copy_names(mr_flags *flags, mr_names names)
{
    const char **copies = MR_ARENA_NEW(&flags->arena, const char *, (size_t)names.count + 1);
    for (int32_t i = 0; copies != nullptr && i < names.count; i++) {
        copies[i] = mr_arena_strdup(&flags->arena, names.items[i]);
        if (copies[i] == nullptr) copies = nullptr;
    }
    if (copies == nullptr) fail_memory(flags);
    return copies != nullptr ? (mr_names){copies, names.count} : (mr_names){0};
}

static bool check_values(mr_flags *flags, const char *name, mr_names values)
{
    bool is_list = values.items != nullptr && values.count > 0;
    for (int32_t i = 0; is_list && i < values.count; i++) is_list = values.items[i] != nullptr;
    if (!is_list) fail(flags, MR_INVALID_ARGUMENT, "flag --%s: its values are not a list of texts", name);
    return is_list;
}

static bool check_names(mr_flags *flags, const char *name, const mr_flag_options *o)
{
    if (!is_name(name)) {
        fail(flags, MR_INVALID_ARGUMENT, "a flag cannot have the name \"%.100s\"", name != nullptr ? name : "(null)");
        return false;
    }
    const char *short_name = o->short_name;
    if (short_name != nullptr && !is_name(short_name)) {
        fail(flags, MR_INVALID_ARGUMENT, "flag --%s cannot have the short name \"%.100s\"", name, short_name);
        return false;
    }
    const char *both[] = {name, short_name};
    for (size_t i = 0; i < 2 && both[i] != nullptr; i++) {
        const bool is_special = is_reserved(flags, both[i]);
        if (!is_special && mr_flag_find(flags, both[i]) == nullptr && (i == 0 || strcmp(both[1], name) != 0)) continue;
        fail(flags, MR_ALREADY_EXISTS, "flag --%s is %s", both[i], is_special ? "reserved" : "defined twice");
        return false;
    }
    return true;
}

static bool check_options(mr_flags *flags, const mr_flag *flag)
{
    const bool is_number = flag->kind == MR_FLAG_INT || flag->kind == MR_FLAG_FLOAT;
    const char *idle = !is_number && (isfinite(flag->lower) || isfinite(flag->upper)) ? "bounds have"
                       : flag->case_insensitive && flag->kind != MR_FLAG_ENUM         ? "case_insensitive has"
                                                                                      : nullptr;
    if (idle != nullptr)
        fail(flags, MR_INVALID_ARGUMENT, "flag --%s: %s no effect on a flag of this type", flag->name, idle);
    else if (!(flag->lower <= flag->upper))
        fail(flags, MR_INVALID_ARGUMENT, "flag --%s: the lower bound %g is not at most the upper bound %g", flag->name,
             flag->lower, flag->upper);
    else if (flag->value == nullptr)
        fail(flags, MR_INVALID_ARGUMENT, "flag --%s: value is null", flag->name);
    else if (!mr_flag_has_list(flag))
        fail(flags, MR_INVALID_ARGUMENT, "flag --%s: its default is not a list of values", flag->name);
    else
        return true;
    return false;
}

/* The default as it would be given; of several values, with commas. */
static const char *default_text(mr_flags *flags, const mr_flag *flag)
{
    const int32_t count = mr_flag_value_count(flag);
    const char *text = count > 0 ? mr_flag_value_text(flag, 0, &flags->arena) : "";
    for (int32_t i = 1; text != nullptr && i < count; i++) {
        const char *value = mr_flag_value_text(flag, i, &flags->arena);
        text = value != nullptr ? mr_arena_printf(&flags->arena, "%s,%s", text, value) : nullptr;
    }
    if (text == nullptr) fail_memory(flags);
    return text;
}

static void read_default(mr_flags *flags, mr_flag *flag)
{
    const bool has_default =
        flag->kind == MR_FLAG_BOOL || (!flag->is_multi && (flag->kind == MR_FLAG_INT || flag->kind == MR_FLAG_FLOAT))
            ? !flag->required
            : mr_flag_is_given(flag);
    if (!has_default) return;
    if (mr_flag_is_valid(flag)) {
        flag->default_text = default_text(flags, flag);
        return;
    }
    char rule[MR_FLAG_RULE_SIZE];
    fail(flags, MR_INVALID_ARGUMENT, "flag --%s: its default is not %s", flag->name,
         mr_flag_describe(flag, rule, sizeof rule));
}

static mr_flag *define(mr_flags *flags, mr_flag_kind kind, bool is_multi, const char *name, void *value,
                       const mr_names *values, const char *help, const mr_flag_options *given)
{
    mr_flag_options o = {.lower_bound = -INFINITY, .upper_bound = INFINITY};
    if (flags == nullptr || flags->error.status != MR_OK) return nullptr;
    if (given != nullptr && MR_OPTIONS_READ(mr_flag_options, &o, given, &flags->error) != MR_OK) return nullptr;
    if (!check_names(flags, name, &o) || (values != nullptr && !check_values(flags, name, *values))) return nullptr;
    mr_flag *flag = MR_ARENA_NEW(&flags->arena, mr_flag, 1);
    if (flag == nullptr) return fail_memory(flags), nullptr;
    *flag = (mr_flag){.kind = kind,
                      .is_multi = is_multi,
                      .required = o.required,
                      .case_insensitive = o.case_insensitive,
                      .name = mr_arena_strdup(&flags->arena, name),
                      .short_name = o.short_name != nullptr ? mr_arena_strdup(&flags->arena, o.short_name) : nullptr,
                      .help = mr_arena_strdup(&flags->arena, help != nullptr ? help : "(no help available)"),
                      .value = value,
                      .lower = o.lower_bound,
                      .upper = o.upper_bound};
    if (flag->name == nullptr || flag->help == nullptr || (o.short_name != nullptr && flag->short_name == nullptr))
        return fail_memory(flags), nullptr;
    if (!check_options(flags, flag)) return nullptr;
    if (values != nullptr) flag->values = copy_names(flags, *values);
    read_default(flags, flag);
    if (flags->error.status == MR_OK) enter(flags, flag);
    return flag;
}

void mr_flags_string_(mr_flags *flags, const char *name, const char **value, const char *help,
                      const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_STRING, false, name, (void *)value, nullptr, help, options);
}

void mr_flags_bool_(mr_flags *flags, const char *name, bool *value, const char *help, const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_BOOL, false, name, value, nullptr, help, options);
}

void mr_flags_int_(mr_flags *flags, const char *name, int64_t *value, const char *help, const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_INT, false, name, value, nullptr, help, options);
}

void mr_flags_float_(mr_flags *flags, const char *name, double *value, const char *help, const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_FLOAT, false, name, value, nullptr, help, options);
}

void mr_flags_enum_(mr_flags *flags, const char *name, const char **value, mr_names values, const char *help,
                    const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_ENUM, false, name, (void *)value, &values, help, options);
}

void mr_flags_list_(mr_flags *flags, const char *name, mr_names *value, const char *help,
                    const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_LIST, false, name, value, nullptr, help, options);
}

void mr_flags_multi_string_(mr_flags *flags, const char *name, mr_names *value, const char *help,
                            const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_STRING, true, name, value, nullptr, help, options);
}

void mr_flags_multi_int_(mr_flags *flags, const char *name, mr_ints *value, const char *help,
                         const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_INT, true, name, value, nullptr, help, options);
}

void mr_flags_multi_float_(mr_flags *flags, const char *name, mr_doubles *value, const char *help,
                           const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_FLOAT, true, name, value, nullptr, help, options);
}

void mr_flags_multi_enum_(mr_flags *flags, const char *name, mr_names *value, mr_names values, const char *help,
                          const mr_flag_options *options)
{
    (void)define(flags, MR_FLAG_ENUM, true, name, value, &values, help, options);
}

/* ---- Rules ---- */

static mr_flag_rule *add_rule(mr_flags *flags)
{
    mr_flag_rule *rule =
        mr_flags_push(&flags->arena, &flags->rules, &flags->rule_count, &flags->rule_capacity, sizeof *rule);
    if (rule == nullptr) fail_memory(flags);
    return rule;
}

void mr_flags_mutually_exclusive(mr_flags *flags, mr_names names, bool required)
{
    if (flags == nullptr || flags->error.status != MR_OK) return;
    if (names.count < 2 || names.items == nullptr) {
        fail(flags, MR_INVALID_ARGUMENT, "mr_flags_mutually_exclusive: names are not a list of at least 2");
        return;
    }
    mr_flag **found = (mr_flag **)mr_arena_alloc_array(&flags->arena, (size_t)names.count, sizeof *found);
    mr_flag_rule *rule = found != nullptr ? add_rule(flags) : nullptr;
    if (rule == nullptr) {
        fail_memory(flags);
        return;
    }
    for (int32_t i = 0; i < names.count; i++) {
        found[i] = mr_flag_find(flags, names.items[i]);
        if (found[i] == nullptr)
            fail(flags, MR_INVALID_ARGUMENT, "mr_flags_mutually_exclusive: there is no flag --%.100s",
                 names.items[i] != nullptr ? names.items[i] : "(null)");
        else if ((found[i]->kind == MR_FLAG_BOOL) != (found[0]->kind == MR_FLAG_BOOL))
            fail(flags, MR_INVALID_ARGUMENT,
                 "mr_flags_mutually_exclusive: of --%s and --%s, only one is a boolean flag", found[0]->name,
                 found[i]->name);
        if (found[i] == nullptr) return;
    }
    *rule = (mr_flag_rule){.flags = found, .count = names.count, .required = required};
}

void mr_flags_validator(mr_flags *flags, mr_status (*check)(void *context, const mr_flags *flags, mr_error *error),
                        void *context)
{
    if (flags == nullptr || flags->error.status != MR_OK) return;
    if (check == nullptr) {
        fail(flags, MR_INVALID_ARGUMENT, "mr_flags_validator: check is null");
        return;
    }
    mr_flag_rule *rule = add_rule(flags);
    if (rule != nullptr) *rule = (mr_flag_rule){.check = check, .context = context};
}

/* ---- Lifetime ---- */

mr_flags *mr_flags_new(const char *usage)
{
    static const struct {
        const char *name, *help;
    } special[] = {
        {"help", "Print the program's flags."}, {"helpshort", "The same."}, {"helpfull", "Print all flags."}};
    mr_flags *flags = calloc(1, sizeof *flags);
    if (flags == nullptr) return nullptr;
    bool *const values[] = {&flags->wants_help, &flags->wants_short_help, &flags->wants_full_help};
    flags->program = "program";
    flags->usage = usage != nullptr ? mr_arena_strdup(&flags->arena, usage) : "";
    if (flags->usage == nullptr) fail_memory(flags);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
        mr_flag *flag =
            define(flags, MR_FLAG_BOOL, false, special[i].name, values[i], nullptr, special[i].help, nullptr);
        if (flag != nullptr) flag->is_special = true;
    }
    return flags;
}

void mr_flags_free(mr_flags *flags)
{
    if (flags == nullptr) return;
    mr_arena_deinit(&flags->arena);
    free(flags);
}
