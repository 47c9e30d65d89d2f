/* Views of a profile: options, which entries count and are shown, and their totals. */
#include "graph/train/profiler_view.h"

#include "base/options.h"
#include "base/status.h"
#include "graph/run/session.h"
#include "records/io/file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---- */

typedef struct minimum {
    const char *name;
    int64_t value;
} minimum;

static mr_status check_numbers(const mr_profile_options *o, mr_profile_kind kind, mr_error *error)
{
    const minimum minimums[] = {
        {"min_bytes", o->min_bytes},
        {"min_peak_bytes", o->min_peak_bytes},
        {"min_residual_bytes", o->min_residual_bytes},
        {"min_output_bytes", o->min_output_bytes},
        {"min_micros", o->min_micros},
        {"min_accelerator_micros", o->min_accelerator_micros},
        {"min_cpu_micros", o->min_cpu_micros},
        {"min_params", o->min_params},
        {"min_float_ops", o->min_float_ops},
        {"min_occurrence", o->min_occurrence},
        {"max_depth", o->max_depth},
    };
    for (size_t i = 0; i < sizeof minimums / sizeof *minimums; i++)
        if (minimums[i].value < 0)
            return mr_fail(error, MR_INVALID_ARGUMENT, "profile: %s is %lld, less than 0", minimums[i].name,
                           (long long)minimums[i].value);
    if (o->max_depth > MR_PROFILE_DEPTH_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: max_depth is %d, more than %d", o->max_depth,
                       MR_PROFILE_DEPTH_MAX);
    if ((kind == MR_PROFILE_OP || kind == MR_PROFILE_CODE) && o->min_occurrence > 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: min_occurrence has no effect in the %s view",
                       kind == MR_PROFILE_OP ? "operator" : "code");
    return MR_OK;
}

static mr_status check_columns(const mr_profile_options *o, mr_error *error)
{
    constexpr uint32_t all = 2 * (uint32_t)MR_PROFILE_OP_TYPES - 1;
    const uint32_t order = (uint32_t)o->order_by;
    if (((uint32_t)o->select & ~all) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: select has a column that does not exist: 0x%x",
                       (unsigned)((uint32_t)o->select & ~all));
    if ((order & ~all) != 0 || (order & (order - 1)) != 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: order_by is no column: 0x%x", (unsigned)order);
    if (order == MR_PROFILE_DEVICE || order == MR_PROFILE_OP_TYPES)
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: order_by is %s, which has no order",
                       order == MR_PROFILE_DEVICE ? "MR_PROFILE_DEVICE" : "MR_PROFILE_OP_TYPES");
    return MR_OK;
}

static mr_status check_step(const mr_profile *profile, const int64_t *step, mr_error *error)
{
    char list[160] = "";
    if (step == nullptr || mr_profile_has_step(profile, *step)) return MR_OK;
    size_t used = 0;
    for (int32_t i = 0; i < profile->step_count && used + 32 < sizeof list; i++) {
        const bool is_last_shown = used + 64 >= sizeof list && i + 1 < profile->step_count;
        const int written = snprintf(list + used, sizeof list - used, "%s%lld%s", i > 0 ? ", " : "",
                                     (long long)profile->steps[i], is_last_shown ? ", …" : "");
        used += written > 0 ? (size_t)written : 0;
        if (is_last_shown) break;
    }
    return profile->step_count == 0
               ? mr_fail(error, MR_NOT_FOUND, "profile: step %lld: no run was added", (long long)*step)
               : mr_fail(error, MR_NOT_FOUND, "profile: no run of step %lld was added; there are %s", (long long)*step,
                         list);
}

static mr_status read_options(mr_profile_view *view, const mr_profile *profile, const mr_profile_options *given,
                              mr_error *error)
{
    mr_profile_options *o = &view->options;
    MR_TRY(MR_OPTIONS_READ(mr_profile_options, o, given, error));
    MR_TRY(check_numbers(o, view->kind, error));
    MR_TRY(check_columns(o, error));
    MR_TRY(check_step(profile, o->step, error));
    if (o->max_depth == 0) o->max_depth = 100;
    if (o->select == 0) o->select = MR_PROFILE_MICROS;
    if (view->kind == MR_PROFILE_CODE) o->account_displayed_op_only = false;
    return MR_OK;
}

/* ---- Patterns ---- */

static void patterns_deinit(mr_view_patterns *patterns)
{
    for (int32_t i = 0; i < patterns->count; i++) mr_regex_deinit(&patterns->items[i]);
    *patterns = (mr_view_patterns){0};
}

/* default_all: an empty list matches everything; otherwise, nothing. */
static mr_status patterns_init(mr_profile_view *view, mr_view_patterns *patterns, const char *option, mr_names names,
                               bool default_all, mr_error *error)
{
    if (names.count < 0 || (names.count > 0 && names.items == nullptr))
        return mr_fail(error, MR_INVALID_ARGUMENT, "profile: the list %s is invalid", option);
    patterns->matches_all = names.count == 0 && default_all;
    if (names.count == 0) return MR_OK;
    patterns->items = MR_ARENA_NEW(&view->arena, mr_regex, (size_t)names.count);
    if (patterns->items == nullptr) return mr_fail_memory(error, (size_t)names.count * sizeof(mr_regex));
    for (int32_t i = 0; i < names.count; i++) {
        if (names.items[i] == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "profile: %s[%d] is null", option, i);
        const mr_status status = mr_regex_init(&patterns->items[i], mr_string_from(names.items[i]), true, error);
        if (status != MR_OK) return mr_fail_prefix(error, status, "profile: %s[%d]", option, i);
        patterns->count++;
        patterns->matches_all |= strcmp(names.items[i], ".*") == 0;
    }
    return MR_OK;
}

static mr_status init_patterns(mr_profile_view *view, mr_error *error)
{
    const mr_profile_options *o = &view->options;
    MR_TRY(patterns_init(view, &view->types, "account_type_regexes", o->account_type_regexes, true, error));
    MR_TRY(patterns_init(view, &view->starts, "start_name_regexes", o->start_name_regexes, true, error));
    MR_TRY(patterns_init(view, &view->trims, "trim_name_regexes", o->trim_name_regexes, false, error));
    MR_TRY(patterns_init(view, &view->shows, "show_name_regexes", o->show_name_regexes, true, error));
    return patterns_init(view, &view->hides, "hide_name_regexes", o->hide_name_regexes, false, error);
}

static void deinit_patterns(mr_profile_view *view)
{
    patterns_deinit(&view->types);
    patterns_deinit(&view->starts);
    patterns_deinit(&view->trims);
    patterns_deinit(&view->shows);
    patterns_deinit(&view->hides);
}

/* ---- Which entries count ---- */

/* Whether an entry counts, and its own figures. Those of the code view have been found. */
static mr_status account_own(const mr_profile_view *view, mr_view_entry *e, mr_error *error)
{
    if (e->created_count > 0) return MR_OK;
    e->entry.is_accounted = view->types.matches_all;
    if (e->node != nullptr) MR_TRY(mr_view_counts(view, e->node, &e->entry.is_accounted, error));
    if (view->kind != MR_PROFILE_CODE) e->entry.own = (mr_profile_figures){.definition_count = 1};
    if (e->node != nullptr) e->entry.own = mr_profile_node_figures(e->node, view->options.step);
    return MR_OK;
}

/* Entries that do not count are removed. In the scope view and the code view, those above others that count stay. */
static mr_status account(mr_profile_view *view, mr_error *error)
{
    for (int32_t i = view->entry_count - 1; i >= 0; i--) {
        mr_view_entry *e = view->entries[i];
        const mr_view_list below = e->below;
        MR_TRY(account_own(view, e, error));
        e->is_kept = e->entry.is_accounted || (view->kind != MR_PROFILE_GRAPH && below.first != nullptr);
        if (!e->is_kept) {
            mr_view_prepend(&e->parent->below, below);
            continue;
        }
        e->entry.total = e->entry.own;
        for (mr_view_entry *each = below.first; each != nullptr; each = each->next) {
            each->parent = e;
            mr_profile_figures_add(&e->entry.total, &each->entry.total);
        }
        mr_view_prepend(&e->parent->below, (mr_view_list){e, e});
    }
    for (mr_view_entry *each = view->root->below.first; each != nullptr; each = each->next) {
        each->parent = view->root;
        mr_profile_figures_add(&view->root->entry.total, &each->entry.total);
    }
    return MR_OK;
}

/* ---- Which entries are shown ---- */

/* The depth of an entry, 0 if the view does not get there: it is below one that is trimmed, or not below a start. */
static mr_status find_depth(const mr_profile_view *view, mr_view_entry *e, mr_error *error)
{
    const mr_view_entry *above = e->parent->is_started ? e->parent : view->root;
    e->is_started = e->parent->is_started;
    if (!e->is_started) MR_TRY(mr_view_match(&view->starts, e->entry.name, &e->is_started, error));
    const bool is_reached =
        e->is_started && above->depth > 0 && !above->is_trimmed && above->depth <= view->options.max_depth;
    e->depth = is_reached ? above->depth + 1 : 0;
    return MR_OK;
}

static mr_status choose(mr_profile_view *view, mr_error *error)
{
    view->root->depth = 1;
    MR_TRY(mr_view_match(&view->trims, view->root->entry.name, &view->root->is_trimmed, error));
    for (int32_t i = 0; i < view->entry_count; i++) {
        mr_view_entry *e = view->entries[i];
        if (!e->is_kept) continue;
        MR_TRY(find_depth(view, e, error));
        if (e->depth == 0) continue;
        MR_TRY(mr_view_match(&view->trims, e->entry.name, &e->is_trimmed, error));
        if (view->kind == MR_PROFILE_CODE && e->is_trimmed) continue;
        MR_TRY(mr_view_shows(view, e, e->depth, &e->is_shown, error));
    }
    return MR_OK;
}

/* Orders what is below an entry. */
static mr_status finish_entry(mr_profile_view *view, mr_view_entry *e, mr_error *error)
{
    if (view->options.account_displayed_op_only) {
        e->entry.total = e->entry.own;
        for (const mr_view_entry *each = e->below.first; each != nullptr; each = each->next)
            mr_profile_figures_add(&e->entry.total, &each->entry.total);
    }
    return mr_view_set_children(view, e, e->below, true, error);
}

/* Entries below hidden ones move up. */
static mr_status arrange(mr_profile_view *view, mr_error *error)
{
    for (int32_t i = 0; i < view->entry_count; i++) view->entries[i]->below = (mr_view_list){0};
    view->root->below = (mr_view_list){0};
    for (int32_t i = view->entry_count - 1; i >= 0; i--) {
        mr_view_entry *e = view->entries[i], *parent = e->parent;
        if (!e->is_kept) continue;
        e->next = nullptr;
        if (e->is_shown) {
            MR_TRY(finish_entry(view, e, error));
            mr_view_prepend(&parent->below, (mr_view_list){e, e});
        } else {
            mr_view_prepend(&parent->below, e->below);
            e->below = (mr_view_list){0};
        }
    }
    if (view->options.account_displayed_op_only) view->root->entry.own.definition_count = 1; /* as in TensorFlow */
    return finish_entry(view, view->root, error);
}

/* ---- Views ---- */

static void number_entries(const mr_profile_view *view)
{
    int32_t depth = 0, number = 0;
    for (mr_view_entry *e = view->root; e != nullptr; e = (mr_view_entry *)mr_view_next(e, &depth))
        e->number = number++;
}

static mr_status make(mr_profile_view *view, const mr_profile *profile, mr_error *error)
{
    view->root = mr_view_entry_new(view, MR_PROFILE_ROOT, nullptr);
    if (view->root == nullptr) return mr_fail_memory(error, sizeof *view->root);
    if (view->kind == MR_PROFILE_OP) return mr_view_make_ops(view, profile, error);
    MR_TRY(view->kind == MR_PROFILE_SCOPE   ? mr_view_add_scopes(view, profile, error)
           : view->kind == MR_PROFILE_GRAPH ? mr_view_add_inputs(view, profile, error)
                                            : mr_view_add_calls(view, profile, error));
    MR_TRY(account(view, error));
    MR_TRY(choose(view, error));
    return arrange(view, error);
}

mr_status mr_profile_view_new(const mr_profile *profile, mr_profile_kind kind, const mr_profile_options *options,
                              mr_profile_view **view, mr_error *error)
{
    if (view == nullptr) return mr_session_null("mr_profile_view_new: view", error);
    *view = nullptr;
    if (profile == nullptr) return mr_session_null("mr_profile_view_new: profile", error);
    if ((unsigned)kind > MR_PROFILE_CODE)
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_profile_view_new: %d is no kind of view", (int)kind);
    mr_profile_view *made = calloc(1, sizeof *made);
    if (made == nullptr) return mr_fail_memory(error, sizeof *made);
    made->kind = kind;
    made->arena.limit_bytes = MR_PROFILE_VIEW_BYTES_MAX;
    mr_status status = read_options(made, profile, options, error);
    if (status == MR_OK) status = init_patterns(made, error);
    if (status == MR_OK) status = make(made, profile, error);
    deinit_patterns(made);
    made->options.step = nullptr; /* as the lists, the caller's */
    made->options.account_type_regexes = made->options.start_name_regexes = made->options.trim_name_regexes =
        made->options.show_name_regexes = made->options.hide_name_regexes = (mr_names){0};
    if (status == MR_OK) number_entries(made);
    if (status == MR_OK) status = mr_view_print(made, error);
    if (status == MR_OK)
        *view = made;
    else
        mr_profile_view_free(made);
    return status;
}

void mr_profile_view_free(mr_profile_view *view)
{
    if (view == nullptr) return;
    mr_arena_deinit(&view->arena);
    free(view->text);
    free(view);
}

const mr_profile_entry *mr_profile_view_root(const mr_profile_view *view)
{
    return view != nullptr ? &view->root->entry : nullptr;
}

const char *mr_profile_view_text(const mr_profile_view *view)
{
    return view != nullptr ? view->text : nullptr;
}

mr_status mr_profile_view_write(const mr_profile_view *view, const char *path, mr_error *error)
{
    if (view == nullptr || path == nullptr || *path == '\0')
        return mr_fail(error, MR_INVALID_ARGUMENT, "mr_profile_view_write: the %s",
                       view == nullptr   ? "view is null"
                       : path == nullptr ? "path is null"
                                         : "path is empty");
    return mr_file_write_all(path, view->text, view->text_size_bytes, error);
}
