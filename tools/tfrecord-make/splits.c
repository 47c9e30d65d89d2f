/* The splits: chooses the split of each row. It depends only on names, labels and the groups that features name, so
 * every worker and every later run compute the same splits.
 *
 *   default       as named by the input, or by the hash of the path: a row keeps its split when others are added
 *   --group-by    by the hash of the group's name: likewise for the group
 *   --stratify    each class is sorted by the hashes of its paths and divided by the fractions, so that each split gets
 *                 its fraction of the class to within one row. The first boundary is shifted by a fraction of a row
 *                 that depends on the label, so that many small classes do not all round in the same direction. Added
 *                 rows can move other rows of their class. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/regex_cost.h"

#include <assert.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of pairs of parentheses in the pattern of --group-by. */
static constexpr size_t GROUPS_MAX = 32;

/* position: 0 ≤ … < 1 */
static uint8_t split_at(const options *options, double position)
{
    double end = 0;
    for (int i = 0; i < options->split_count; i++) {
        end += options->splits[i].fraction;
        if (position < end) return (uint8_t)i;
    }
    return (uint8_t)(options->split_count - 1);
}

static double position_of(uint64_t hash)
{
    return (double)(hash >> 11) * 0x1p-53;
}

/* ---- --stratify ---- */

typedef struct ranked {
    int32_t label;
    uint64_t hash;
    int64_t row;
} ranked;

static int compare_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->label != y->label) return x->label < y->label ? -1 : 1;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static mr_status stratify(const options *options, const source *source, uint8_t *splits, mr_error *error)
{
    size_t size = ((size_t)source->row_count + 1) * sizeof(ranked), count = 0;
    ranked *rows = malloc(size);
    if (!rows) return fail_memory(error, size);
    for (int64_t i = 0; i < source->row_count; i++) {
        const row *row = &source->rows[i];
        if (source_is_excluded(source, i)) continue;
        if (row->label < 0 || source->has_boxes) {
            free(rows);
            return mr_fail(error, MR_INVALID_ARGUMENT, "%s: --stratify requires one label for each %s, but %s has none",
                           source->input, source->row_noun, row->name);
        }
        rows[count++] = (ranked){row->label, row->hash, i};
    }
    qsort(rows, count, sizeof(ranked), compare_ranked);
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && rows[end].label == rows[begin].label) end++;
        double moved = position_of(plan_hash(6, &rows[begin].label, sizeof(rows[begin].label)));
        for (size_t i = begin; i < end; i++)
            splits[rows[i].row] = split_at(options, ((double)(i - begin) + moved) / (double)(end - begin));
    }
    free(rows);
    return MR_OK;
}

/* ---- --group-by ---- */

typedef struct grouping {
    const options *options;
    const source *source;
    uint8_t *splits;
    const regex_t *pattern; /* null: the group is a feature */
    pthread_mutex_t mutex;
    mr_status status; /* the error of the first row that fails */
    mr_error error;
    int64_t failed;
} grouping;

static mr_status hash_by_pattern(const grouping *grouping, const row *row, uint64_t *hash, mr_error *error)
{
    regmatch_t parts[GROUPS_MAX + 1];
    size_t count = grouping->pattern->re_nsub + 1, i = 1;
    assert(count > 1 && count <= GROUPS_MAX + 1);
    if (regexec(grouping->pattern, row->name, count, parts, 0) != 0) i = count;
    while (i < count && parts[i].rm_so < 0) i++;
    if (i == count)
        return mr_fail(error, MR_INVALID_ARGUMENT, "does not match --group-by %s", grouping->options->group_by);
    *hash = plan_hash(7, row->name + parts[i].rm_so, (size_t)(parts[i].rm_eo - parts[i].rm_so));
    return MR_OK;
}

static mr_status hash_by_feature(const grouping *grouping, const row *row, mr_example_encoder *encoder, uint64_t *hash,
                                 mr_error *error)
{
    const char *name = grouping->options->group_by;
    const features to = {encoder, grouping->source->in, &grouping->source->features};
    mr_string record;
    mr_status status = grouping->source->functions->add_features(grouping->source, row, nullptr, &to, error);
    mr_status finished = mr_example_finish(encoder, &record, status == MR_OK ? error : nullptr);
    if (status != MR_OK || finished != MR_OK) return status != MR_OK ? status : finished;
    mr_example_cursor walk = {.record = record};
    mr_feature_view feature;
    while ((status = mr_example_next_feature(&walk, &feature, error)) == MR_OK)
        if (feature.name.size_bytes == strlen(name) && memcmp(feature.name.data, name, strlen(name)) == 0) {
            /* Equal values have equal bytes, because the same encoder writes them. */
            *hash = plan_hash(7, feature.list.data, feature.list.size_bytes);
            return MR_OK;
        }
    if (status != MR_OUT_OF_RANGE) return status;
    return mr_fail(error, MR_INVALID_ARGUMENT, "has no feature \"%s\" (--group-by)", name);
}

static void group_some(void *context, int64_t begin, int64_t end)
{
    grouping *grouping = context;
    mr_example_encoder encoder = {0};
    for (int64_t i = begin; i < end; i++) {
        const row *row = &grouping->source->rows[i];
        mr_error error = {0};
        uint64_t hash = row->hash;
        if (source_is_excluded(grouping->source, i)) continue;
        mr_status status = grouping->pattern ? hash_by_pattern(grouping, row, &hash, &error)
                                             : hash_by_feature(grouping, row, &encoder, &hash, &error);
        grouping->splits[i] = split_at(grouping->options, position_of(hash));
        if (status == MR_OK) continue;
        pthread_mutex_lock(&grouping->mutex);
        if (grouping->status == MR_OK || i < grouping->failed) {
            grouping->status = status;
            grouping->error = error;
            grouping->failed = i;
        }
        pthread_mutex_unlock(&grouping->mutex);
        break;
    }
    mr_example_encoder_deinit(&encoder);
}

static mr_status run_grouping(grouping *grouping, pool *pool, mr_error *error)
{
    const source *source = grouping->source;
    pthread_mutex_init(&grouping->mutex, nullptr);
    pool_for(pool, source->row_count, 64, group_some, grouping);
    pthread_mutex_destroy(&grouping->mutex);
    if (grouping->status == MR_OK) return MR_OK;
    if (error) *error = grouping->error;
    return source_fail_row(source, &source->rows[grouping->failed], grouping->status, error);
}

static mr_status group(const options *options, const source *source, pool *pool, uint8_t *splits, mr_error *error)
{
    grouping grouping = {.options = options, .source = source, .splits = splits};
    if (!strchr(options->group_by, '(')) {
        if (source->has_boxes)
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "%s: --group-by requires a pattern for paths here, such as '([^/]*)/'", source->input);
        return run_grouping(&grouping, pool, error);
    }
    if (source->names_are_positions)
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s: rows have no paths; --group-by requires the name of a feature here", source->input);
    const char *danger = regex_fault(mr_string_from(options->group_by));
    if (danger)
        return mr_fail(error, MR_INVALID_ARGUMENT, "--group-by: \"%s\" is not a valid pattern: %s", options->group_by,
                       danger);
    regex_t pattern;
    int fault = regcomp(&pattern, options->group_by, REG_EXTENDED);
    if (fault != 0) {
        char reason[128];
        (void)regerror(fault, &pattern, reason, sizeof(reason));
        return mr_fail(error, MR_INVALID_ARGUMENT, "--group-by: \"%s\" is not a valid pattern: %s", options->group_by,
                       reason);
    }
    grouping.pattern = &pattern;
    mr_status status = MR_OK;
    if (pattern.re_nsub == 0 || pattern.re_nsub > GROUPS_MAX)
        status = mr_fail(error, MR_INVALID_ARGUMENT, "--group-by: \"%s\" has %zu pairs of parentheses, not 1 to %zu",
                         options->group_by, pattern.re_nsub, GROUPS_MAX);
    /* On one thread: regexec locks the pattern, so that more would only wait for each other. */
    if (status == MR_OK) status = run_grouping(&grouping, nullptr, error);
    regfree(&pattern);
    return status;
}

mr_status splits_choose(const options *options, const source *source, pool *pool, uint8_t **splits, mr_error *error)
{
    static_assert(SPLITS_MAX <= UINT8_MAX);
    *splits = calloc((size_t)source->row_count + 1, sizeof(uint8_t));
    if (!*splits) return fail_memory(error, (size_t)source->row_count);
    if (source->split_count > 0 && (options->stratify || options->group_by))
        return mr_fail(error, MR_INVALID_ARGUMENT,
                       "%s names the split of each %s, so --%s has no effect; --split overrides them", source->input,
                       source->row_noun, options->stratify ? "stratify" : "group-by");
    if (options->stratify) return stratify(options, source, *splits, error);
    if (options->group_by) return group(options, source, pool, *splits, error);
    for (int64_t i = 0; i < source->row_count; i++) {
        const row *row = &source->rows[i];
        (*splits)[i] = row->split > 0 ? (uint8_t)(row->split - 1) : split_at(options, position_of(row->hash));
    }
    return MR_OK;
}
