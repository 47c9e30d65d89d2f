/* See survey.h. Rows are examined in chunks of a fixed size. The chunks of a round are merged in order, so the
 * figures do not depend on the number of threads. */
#include "tfrecord-make/survey.h"

#include <stdlib.h>
#include <string.h>

static constexpr int64_t PART_ROWS = 32;
/* Chunks of a round for each thread. */
static constexpr int64_t ROUND_PARTS = 8;

typedef struct look {
    const options *options;
    const source *source;
    progress *progress;
    survey *parts;
    int64_t begin; /* first row of the round */
    mr_status *statuses;
    mr_error *errors;
} look;

int32_t survey_side(int32_t crop)
{
    static const int32_t sides[] = {128, 160, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 3072, 4096};
    for (size_t i = 0; i < sizeof(sides) / sizeof(*sides); i++)
        if (sides[i] >= 2.2 * crop) return sides[i];
    return 3 * crop;
}

static void add_remark(survey *survey, remark remark, int64_t count, int64_t row)
{
    if (survey->remarks[remark] == 0) survey->firsts[remark] = row;
    survey->remarks[remark] += count;
}

static void add_fault(survey *survey, int64_t row, uint32_t remarks, const mr_error *error)
{
    for (int i = (int)REMARK_FAULTS; i < REMARK_COUNT; i++)
        if (remarks & REMARK_BIT(i)) add_remark(survey, (remark)i, 1, row);
    survey->faulty++;
    if (survey->fault_count == SURVEY_FAULTS) return;
    survey_fault *fault = &survey->faults[survey->fault_count++];
    fault->row = row;
    snprintf(fault->reason, sizeof(fault->reason), "%s", error->message);
}

/* Keeps the large images whose names have the smallest hashes. */
static void draw(const source *source, survey *survey, int64_t row)
{
    int at = survey->try_count;
    uint64_t hash = source->rows[row].hash;
    while (at > 0 && source->rows[survey->tries[at - 1]].hash > hash) at--;
    if (at == SURVEY_TRIES) return;
    if (survey->try_count < SURVEY_TRIES) survey->try_count++;
    memmove(&survey->tries[at + 1], &survey->tries[at], (size_t)(survey->try_count - 1 - at) * sizeof(*survey->tries));
    survey->tries[at] = row;
}

static void measure(const look *look, survey *survey, int64_t row, const mr_image_info *info, size_t size_bytes)
{
    int32_t shorter = info->width < info->height ? info->width : info->height;
    double pixels = (double)info->width * info->height, part = (double)survey->advised / shorter;
    survey->usable_bytes += size_bytes;
    survey->pixels += pixels;
    survey->pixels_left += shorter > survey->advised ? pixels * part * part : pixels;
    survey->small_count += shorter < look->options->crop;
    if (shorter <= survey->advised) return;
    survey->large_count++;
    survey->large_bytes += size_bytes;
    draw(look->source, survey, row);
}

/* An image that cannot be used is counted only by its format: the figures and the advice describe the others. */
static mr_status look_at_image(const look *look, survey *survey, int64_t number, mr_string bytes, mr_error *error)
{
    mr_image_info info = {0};
    mr_error reason = {0};
    uint32_t remarks = 0;
    mr_status status =
        image_probe(&look->options->treatment, look->source->rows[number].name, bytes, &info, &remarks, &reason);
    bool is_image = (remarks & (REMARK_BIT(REMARK_EMPTY) | REMARK_BIT(REMARK_NO_IMAGE))) == 0;
    uint32_t kinds = remarks;
    if (status == MR_OK && look->options->treatment.check) status = image_check(bytes, &info, &remarks, &reason);
    if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", reason.message);
    if (is_image && !images_add(&survey->images, status, &info, bytes.size_bytes))
        return fail_memory(error, sizeof(survey->images));
    if (status == MR_OK) measure(look, survey, number, &info, bytes.size_bytes);
    for (int i = 0; i < (int)REMARK_FAULTS; i++)
        if (kinds & REMARK_BIT(i)) add_remark(survey, (remark)i, 1, number);
    if (status != MR_OK) add_fault(survey, number, remarks, &reason);
    return MR_OK;
}

/* Examines one row. The only error is running out of memory. */
static mr_status look_at(const look *look, survey *survey, int64_t number, source_bytes *bytes, mr_error *error)
{
    const row *row = &look->source->rows[number];
    mr_error reason = {0};
    bool has_image = false;
    survey->rows++;
    mr_status status = source_image(look->source, row, bytes, &has_image, &reason);
    if (status == MR_RESOURCE_EXHAUSTED) return mr_fail(error, status, "%s", reason.message);
    if (status != MR_OK) {
        add_fault(survey, number, REMARK_BIT(row->is_faulty ? REMARK_NO_ROW : REMARK_UNREADABLE), &reason);
        return MR_OK;
    }
    if (!has_image) {
        survey->without++;
        return MR_OK;
    }
    return look_at_image(look, survey, number, (mr_string){bytes->data, bytes->size_bytes}, error);
}

static void look_at_part(void *context, int64_t begin, int64_t end)
{
    const look *look = context;
    for (int64_t part = begin; part < end; part++) {
        source_bytes bytes = {0};
        survey *survey = &look->parts[part];
        int64_t first = look->begin + part * PART_ROWS, last = first + PART_ROWS;
        if (last > look->source->row_count) last = look->source->row_count;
        mr_status status = MR_OK;
        for (int64_t i = first; i < last && status == MR_OK; i++) {
            if (!source_is_excluded(look->source, i)) status = look_at(look, survey, i, &bytes, &look->errors[part]);
            progress_add(look->progress, 1);
        }
        if (status == MR_OK && !images_flush(&survey->images))
            status = fail_memory(&look->errors[part], sizeof(*survey));
        look->statuses[part] = status;
        free(bytes.data);
    }
}

static mr_status merge(const source *source, survey *survey, const struct survey *part, mr_error *error)
{
    survey->rows += part->rows;
    survey->without += part->without;
    survey->faulty += part->faulty;
    for (int i = 0; i < REMARK_COUNT; i++)
        if (part->remarks[i] > 0) add_remark(survey, (remark)i, part->remarks[i], part->firsts[i]);
    for (int i = 0; i < part->fault_count && survey->fault_count < SURVEY_FAULTS; i++)
        survey->faults[survey->fault_count++] = part->faults[i];
    survey->usable_bytes += part->usable_bytes;
    survey->large_count += part->large_count;
    survey->large_bytes += part->large_bytes;
    survey->small_count += part->small_count;
    survey->pixels += part->pixels;
    survey->pixels_left += part->pixels_left;
    for (int i = 0; i < part->try_count; i++) draw(source, survey, part->tries[i]);
    return images_merge(&survey->images, &part->images) ? MR_OK : fail_memory(error, sizeof(*survey));
}

static mr_status look_at_all(look *look, pool *pool, survey *survey, mr_error *error)
{
    int64_t parts = ROUND_PARTS * pool_thread_count(pool), rows = look->source->row_count;
    mr_status status = MR_OK;
    for (; look->begin < rows && status == MR_OK; look->begin += parts * PART_ROWS) {
        int64_t left = (rows - look->begin + PART_ROWS - 1) / PART_ROWS, count = left < parts ? left : parts;
        for (int64_t i = 0; i < count; i++) look->parts[i] = (struct survey){.advised = survey->advised};
        pool_for(pool, count, 1, look_at_part, look);
        for (int64_t i = 0; i < count; i++) {
            if (status == MR_OK) status = look->statuses[i];
            if (status == MR_OK)
                status = merge(look->source, survey, &look->parts[i], error);
            else if (status == look->statuses[i] && error)
                *error = look->errors[i];
            survey_deinit(&look->parts[i]);
        }
    }
    return status;
}

/* ---- Savings by resizing ---- */

typedef struct trial {
    const source *source;
    survey *survey;
    treatment treatment;
    uint64_t before[SURVEY_TRIES], after[SURVEY_TRIES];
} trial;

static void try_some(void *context, int64_t begin, int64_t end)
{
    trial *trial = context;
    source_bytes bytes = {0};
    image image = {0};
    for (int64_t i = begin; i < end; i++) {
        const row *row = &trial->source->rows[trial->survey->tries[i]];
        bool has_image = false;
        if (source_image(trial->source, row, &bytes, &has_image, nullptr) != MR_OK || !has_image) continue;
        mr_string before = {bytes.data, bytes.size_bytes};
        if (image_treat(&trial->treatment, row->name, before, &image, nullptr) != MR_OK) continue;
        trial->before[i] = before.size_bytes;
        trial->after[i] = image.facts.encoded.size_bytes;
    }
    image_deinit(&image);
    free(bytes.data);
}

static void try_resizing(const options *options, const source *source, pool *pool, survey *survey)
{
    trial trial = {.source = source,
                   .survey = survey,
                   .treatment = {.shorter_side = survey->advised, .quality = options->treatment.quality}};
    pool_for(pool, survey->try_count, 1, try_some, &trial);
    for (int i = 0; i < survey->try_count; i++) {
        survey->tried_bytes += trial.before[i];
        survey->tried_left += trial.after[i];
    }
}

mr_status survey_look(const options *options, const source *source, pool *pool, survey *survey, mr_error *error)
{
    progress progress;
    size_t parts = (size_t)ROUND_PARTS * (size_t)pool_thread_count(pool);
    look look = {.options = options, .source = source, .progress = &progress};
    *survey = (struct survey){.advised = survey_side(options->crop)};
    if (!source->has_images) return MR_OK;
    look.parts = calloc(parts, sizeof(*look.parts));
    look.statuses = calloc(parts, sizeof(*look.statuses));
    look.errors = calloc(parts, sizeof(*look.errors));
    mr_status status = look.parts && look.statuses && look.errors ? MR_OK : fail_memory(error, parts * sizeof(*survey));
    progress_begin(&progress, "survey", "images", (uint64_t)source->row_count);
    if (status == MR_OK) status = look_at_all(&look, pool, survey, error);
    if (status == MR_OK) try_resizing(options, source, pool, survey);
    progress_end(&progress);
    free(look.parts);
    free(look.statuses);
    free(look.errors);
    return status;
}

void survey_deinit(survey *survey)
{
    images_deinit(&survey->images);
}

mr_status survey_run(options *options, mr_error *error)
{
    pool *pool = nullptr;
    source source = {0};
    duplicates_found found = {0};
    uint8_t *splits = nullptr;
    survey *survey = calloc(1, sizeof(*survey));
    if (!survey) return fail_memory(error, sizeof(*survey));
    mr_status status = pool_new(options->jobs, &pool, error);
    if (status == MR_OK) status = source_open(options, &source, error);
    if (status == MR_OK) report_source(options, &source);
    if (status == MR_OK) status = splits_choose(options, &source, pool, &splits, error);
    if (status == MR_OK) status = survey_look(options, &source, pool, survey, error);
    if (status == MR_OK) status = duplicates_find(options, &source, splits, pool, &found, error);
    if (status == MR_OK) status = survey_report(options, &source, survey, &found, error);
    duplicates_deinit(&found);
    free(splits);
    survey_deinit(survey);
    free(survey);
    source_deinit(&source);
    pool_free(pool);
    return status;
}
