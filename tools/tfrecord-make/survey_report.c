/* The report of --survey: charts, unusual properties, duplicates, faults, and the advice derived from them. */
#include "tfrecord-make/survey.h"

#include "common/arena.h"
#include "common/chart/balance.h"
#include "common/file.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static constexpr int BINS_TERMINAL = 10, BINS_SVG = 24;
static constexpr int COLUMNS_PLAIN = 80, COLUMNS_MAX = 100;
static constexpr int CHARTS_MAX = 1 + IMAGES_CHARTS_MAX;
/* Minimum fraction of bytes that a resize must save to be worth the loss of another encoding. */
static constexpr double SAVING_MIN = 0.15;

/* Properties of images. The sentences for faults are in remark.c. */
static const struct {
    const char *one, *many;
} oddities[] = {
    [REMARK_ORIENTED] = {"image has an EXIF orientation, which decoders ignore; --upright applies it",
                         "images have an EXIF orientation, which decoders ignore; --upright applies it"},
    [REMARK_CMYK] = {"image is CMYK, which programs decode differently; --encode jpeg converts it to RGB",
                     "images are CMYK, which programs decode differently; --encode jpeg converts them to RGB"},
    [REMARK_WIDE] = {"image has 16 bits per channel, of which most programs decode 8",
                     "images have 16 bits per channel, of which most programs decode 8"},
    [REMARK_ANIMATED] = {"image is animated; decoders use its first frame",
                         "images are animated; decoders use their first frames"},
    [REMARK_MISLABELLED] = {"image has another format than its name indicates; its content is used",
                            "images have another format than their names indicate; their content is used"},
};
static constexpr int ODDITIES = sizeof(oddities) / sizeof(*oddities);

/* ---- Charts ---- */

/* Counts the rows of each class: of the source's classes, or of label numbers. *made is 0 if rows have no labels. */
static mr_status classes_chart(const source *source, chart *chart, int *made, mr_error *error)
{
    int32_t most = -1;
    for (int64_t i = 0; i < source->row_count; i++) most = source->rows[i].label > most ? source->rows[i].label : most;
    *made = 0;
    if (most < 0) return MR_OK;
    size_t count = (size_t)most + 1;
    balance_class *classes = calloc(count, sizeof(*classes));
    if (!classes) return fail_memory(error, count * sizeof(*classes));
    uint64_t total = 0;
    for (int64_t i = 0; i < source->row_count; i++) {
        if (source->rows[i].label < 0 || source_is_excluded(source, i)) continue;
        classes[source->rows[i].label].count++;
        total++;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = i < (size_t)source->class_count ? source->classes[i] : nullptr;
        if (classes[i].count == 0 && !name) continue;
        classes[kept++] = (balance_class){.count = classes[i].count,
                                          .has_label = true,
                                          .label = (int64_t)i,
                                          .text = name ? mr_string_from(name) : (mr_string){0}};
    }
    char unit[32];
    snprintf(unit, sizeof(unit), "%ss", source->row_noun);
    balance_chart(chart, "Classes", unit, classes, kept, total, true);
    *made = 1;
    free(classes);
    return MR_OK;
}

static mr_status write_svg(const options *options, const source *source, const survey *survey, const chart *charts,
                           int count, mr_error *error)
{
    char *text = nullptr, note[160], number[CHART_NUMBER_SIZE], size[PROGRESS_TEXT_SIZE];
    size_t text_size = 0;
    const char *slash = strrchr(options->input, '/');
    snprintf(note, sizeof(note), "%s %ss, %s",
             chart_number((double)(source->row_count - source->excluded_count), number), source->row_noun,
             progress_size_text(survey->images.size_bytes, size));
    FILE *file = open_memstream(&text, &text_size);
    if (!file) return fail_memory(error, 0);
    int bad = chart_svg_write(file, slash && slash[1] ? slash + 1 : options->input, note, charts, count);
    bad |= fclose(file);
    mr_status status =
        bad || !text ? fail_memory(error, text_size) : file_write_all(options->svg, text, text_size, error);
    free(text);
    return status;
}

static mr_status show_charts(const options *options, const source *source, const survey *survey, mr_error *error)
{
    int columns = progress_columns(STDOUT_FILENO, COLUMNS_PLAIN), first;
    chart *charts = calloc((size_t)CHARTS_MAX, sizeof(*charts));
    if (!charts) return fail_memory(error, (size_t)CHARTS_MAX * sizeof(*charts));
    mr_status status = classes_chart(source, charts, &first, error);
    int count = first + images_charts(&survey->images, BINS_TERMINAL, charts + first);
    for (int i = 0; i < count && status == MR_OK; i++) {
        putchar('\n');
        chart_print(stdout, &charts[i], columns < COLUMNS_MAX ? columns : COLUMNS_MAX, chart_is_utf8());
    }
    count = first + images_charts(&survey->images, BINS_SVG, charts + first);
    if (status == MR_OK && options->svg) status = write_svg(options, source, survey, charts, count, error);
    free(charts);
    return status;
}

/* ---- Sentences ---- */

static void print_kind(const source *source, const survey *survey, int kind, const char *one, const char *many)
{
    int64_t count = survey->remarks[kind];
    if (count == 0) return;
    print_wrapped("%" PRId64 " %s (%s%s)", count, count == 1 ? one : many, source->rows[survey->firsts[kind]].name,
                  count > 1 ? ", …" : "");
}

static void print_oddities(const source *source, const survey *survey)
{
    const images *images = &survey->images;
    for (int i = 0; i < ODDITIES; i++) print_kind(source, survey, i, oddities[i].one, oddities[i].many);
    if (images->alpha > 0)
        print_wrapped("%" PRIu64 " %s an alpha channel", images->alpha,
                      images->alpha == 1 ? "image has" : "images have");
    if (images->profiles > 0)
        print_wrapped("%" PRIu64 " %s a color profile, which training decoders ignore", images->profiles,
                      images->profiles == 1 ? "image has" : "images have");
    if (survey->without > 0) print_wrapped("%" PRId64 " %ss have no image", survey->without, source->row_noun);
}

static void print_faults(const options *options, const source *source, const survey *survey)
{
    int64_t looked = survey->rows - survey->without;
    if (survey->faulty == 0) {
        print_wrapped("%s", options->treatment.check ? "no faults: every image was decoded"
                                                     : "no faults in the headers; nothing else was read (--no-check)");
        return;
    }
    print_wrapped("%" PRId64 " of %" PRId64 " images cannot be used; --on-error skip leaves them out:", survey->faulty,
                  looked);
    for (int i = (int)REMARK_FAULTS; i < REMARK_COUNT; i++)
        print_kind(source, survey, i, remark_sentence((remark)i, false), remark_sentence((remark)i, true));
    for (int i = 0; i < survey->fault_count; i++)
        print_wrapped("  %s: %s", source->rows[survey->faults[i].row].name, survey->faults[i].reason);
    if (survey->faulty > survey->fault_count)
        print_wrapped("  … %" PRId64 " more", survey->faulty - survey->fault_count);
}

/* ---- Advice ---- */

/* The fraction of all bytes that the resize would save, extrapolated from the sampled images to all large ones. */
static double saving_of(const survey *survey)
{
    if (survey->tried_bytes == 0 || survey->usable_bytes == 0) return 0;
    double left = (double)survey->tried_left / (double)survey->tried_bytes;
    return (1 - left) * (double)survey->large_bytes / (double)survey->usable_bytes;
}

static void print_resize(const options *options, const survey *survey)
{
    const images *images = &survey->images;
    char median[CHART_NUMBER_SIZE], left[PROGRESS_TEXT_SIZE];
    double saving = saving_of(survey), size = (double)survey->usable_bytes;
    chart_number(numbers_quantile(&images->shorter, 0.5), median);
    if (survey->large_count == 0)
        print_wrapped(
            "advice: no resize; no image has a shorter side above %d pixels, up to which random crops of %d benefit",
            survey->advised, options->crop);
    else if (saving < SAVING_MIN)
        print_wrapped(
            "advice: no resize; the median shorter side is %s pixels, random crops of %d benefit from up to %d, and"
            " --shorter-side %d would save only %.0f %% of the bytes (measured on %d images)",
            median, options->crop, survey->advised, survey->advised, saving > 0 ? 100 * saving : 0, survey->try_count);
    else
        print_wrapped(
            "advice: --shorter-side %d; the median shorter side is %s pixels, and random crops of %d benefit from up to"
            " %d. %.0f %% of the images become smaller: %.0f %% of the bytes are saved (%s remain; measured on %d"
            " images), and %.0f %% of the pixels need not be decoded",
            survey->advised, median, options->crop, survey->advised,
            100.0 * (double)survey->large_count / (double)images->count, 100 * saving,
            progress_size_text((uint64_t)(size * (1 - saving)), left), survey->try_count,
            survey->pixels > 0 ? 100 * (1 - survey->pixels_left / survey->pixels) : 0);
    if (survey->small_count > 0)
        print_wrapped("%" PRId64
                      " %s (%.1f %%) with a shorter side below the crop size of %d will be enlarged for cropping",
                      survey->small_count, survey->small_count == 1 ? "image" : "images",
                      100.0 * (double)survey->small_count / (double)images->count, options->crop);
}

mr_status survey_report(const options *options, const source *source, const survey *survey,
                        const duplicates_found *found, mr_error *error)
{
    MR_TRY(show_charts(options, source, survey, error));
    putchar('\n');
    if (!source->has_images) {
        print_wrapped("there are no images to examine");
        return MR_OK;
    }
    print_oddities(source, survey);
    report_duplicates(options, found);
    print_faults(options, source, survey);
    if (survey->images.count > 0) print_resize(options, survey);
    return MR_OK;
}
