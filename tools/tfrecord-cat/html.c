/* --html: pages for browsing records; see html.h. A batch is read; threads create and write thumbnails and format each
 * record for the pages and the search; the results are combined in order. */
#include "tfrecord-cat/html.h"

#include "common/file.h"
#include "common/stats/top.h"
#include "tfrecord-cat/batches.h"
#include "tfrecord-cat/rewrite.h"
#include "tfrecord-cat/walk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char index_html[] = {
#embed "view.html" suffix(, '\0')
};
static const char view_css[] = {
#embed "view.css" suffix(, '\0')
};
static const char view_js[] = {
#embed "view.js" suffix(, '\0')
};

/* Maximum number of records and bytes of a search file. */
static constexpr uint64_t SEARCH_RECORDS = 5'000;
static constexpr size_t SEARCH_BYTES = (size_t)2 << 20;
static constexpr uint64_t THUMBNAILS_PER_DIRECTORY = 1'000;
/* Maximum number of classes in a selection list, and of file paths that are listed. */
static constexpr size_t CLASSES_MAX = 1'000;
static constexpr int32_t FILES_MAX = 100'000;

/* Results of one record. */
typedef struct made {
    out page, search, boxes; /* boxes: see html_box_classes */
    char label[TOP_TEXT_MAX];
    size_t label_bytes;
    mr_string image; /* points into the record: a full image that browsers can show; empty: none */
    const char *image_ending;
    bool has_room;                         /* it is within the size limits */
    bool has_image, has_fault, is_starved; /* is_starved: the fault is lack of memory */
    mr_error error;                        /* the thumbnail cannot be written, or no memory */
} made;

typedef struct html {
    const options *options;
    options all; /* the same without --features: label, name and boxes are always shown */
    const char *directory;
    out page, search;
    uint64_t records, pages, searches, search_first, images, faults, starved;
    uint64_t directories; /* directories of 1,000 thumbnails and images created so far */
    uint64_t image_bytes; /* of the full images */
    top labels, boxes;
    mr_error error;
} html;

typedef struct html_work {
    html *html;
    batch_item *items;
} html_work;

/* ---- On any thread ---- */

static int32_t file_of(const options *options, const char *path)
{
    for (int32_t i = 0; i < options->path_count; i++)
        if (options->paths[i] == path || strcmp(options->paths[i], path) == 0) return i;
    return 0;
}

static mr_status write_bytes(const html *html, const char *name, mr_string bytes, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s", html->directory, name) < 0)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    mr_status status = output_reject_input(html->options, path, "", error);
    if (status == MR_OK) status = file_write_unsynced(path, bytes.data, bytes.size_bytes, error);
    free(path);
    return status;
}

/* "thumbs/00000/00000007.jpg" of record 7. */
static void name_image(char name[THUMBNAIL_PATH_SIZE], const char *directory, uint64_t ordinal, const char *ending)
{
    snprintf(name, THUMBNAIL_PATH_SIZE, "%s/%05" PRIu64 "/%08" PRIu64 "%s", directory,
             ordinal / THUMBNAILS_PER_DIRECTORY, ordinal, ending);
}

/* Selects the full image if browsers show it as decoders see it: browsers rotate by EXIF. */
static void note_image(made *made, mr_string image, const mr_image_info *info)
{
    static const char *const endings[] = {
        [MR_IMAGE_JPEG] = ".jpg", [MR_IMAGE_PNG] = ".png",   [MR_IMAGE_GIF] = ".gif",
        [MR_IMAGE_BMP] = ".bmp",  [MR_IMAGE_WEBP] = ".webp", [MR_IMAGE_AVIF] = ".avif"};
    mr_image_format format = image_select_format(image);
    if ((size_t)format >= sizeof endings / sizeof *endings || !endings[format] || info->orientation > 1) return;
    if (image.size_bytes > HTML_IMAGE_BYTES_MAX) return;
    made->image = image;
    made->image_ending = endings[format];
}

static void make_one(const html *html, const batch_item *item, view *view, made *made)
{
    const record_position *position = &item->position;
    caption caption = {};
    bytes_value image = {};
    thumbnail thumbnail = {};
    char name[THUMBNAIL_PATH_SIZE];
    if (view_read(view, html->all.features, html->all.is_raw, position->record, &made->error) != MR_OK) return;
    const tfds *tfds = tfds_set_find(&html->options->tfds, position->path);
    image_select_caption(view, tfds, &caption);
    made->has_image = image_select(view, &html->all, &image);
    if (view->form == MR_EXAMPLE_NONE && image_select_format(position->record) != MR_IMAGE_UNKNOWN) {
        image.bytes = position->record;
        made->has_image = true;
    }
    if (made->has_image) thumbnail_make(image.bytes, &thumbnail);
    made->has_fault = thumbnail.fault.status != MR_OK;
    made->is_starved = thumbnail.fault.status == MR_RESOURCE_EXHAUSTED;
    if (made->has_image) note_image(made, image.bytes, &thumbnail.info);
    name_image(name, "thumbs", item->ordinal, ".jpg");
    bool has_thumbnail = thumbnail.jpeg.data != nullptr;
    if (has_thumbnail && write_bytes(html, name, *mr_tensor_strings(&thumbnail.jpeg), &made->error) != MR_OK) {
        thumbnail_deinit(&thumbnail);
        return;
    }
    const html_row row = {.options = html->options,
                          .view = view,
                          .position = position,
                          .file = file_of(html->options, position->path),
                          .caption = &caption,
                          .tfds = tfds,
                          .image = made->has_image ? &image : nullptr,
                          .thumbnail = &thumbnail,
                          .thumbnail_path = has_thumbnail ? name : nullptr};
    html_record(&made->page, &row);
    html_search(&made->search, &row);
    html_box_classes(&made->boxes, &row);
    made->label_bytes = caption.text.size_bytes < TOP_TEXT_MAX ? caption.text.size_bytes : TOP_TEXT_MAX;
    if (made->label_bytes > 0) memcpy(made->label, caption.text.data, made->label_bytes);
    thumbnail_deinit(&thumbnail);
}

static void make(void *context, int64_t begin, int64_t end)
{
    const html_work *work = context;
    view view = {};
    for (int64_t i = begin; i < end; i++) {
        made *made = calloc(1, sizeof(*made));
        work->items[i].result = made;
        if (made) make_one(work->html, &work->items[i], &view, made);
    }
    view_deinit(&view);
}

static void write_images(void *context, int64_t begin, int64_t end)
{
    const html_work *work = context;
    for (int64_t i = begin; i < end; i++) {
        made *made = work->items[i].result;
        char name[THUMBNAIL_PATH_SIZE];
        if (!made || !made->has_room) continue;
        name_image(name, "images", work->items[i].ordinal, made->image_ending);
        (void)write_bytes(work->html, name, made->image, &made->error);
    }
}

/* ---- In order ---- */

/* The choice of full images that are stored depends only on the order of the records. */
static void choose_images(html *html, const batch_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        made *made = items[i].result;
        if (!made || made->image.size_bytes == 0) continue;
        if (made->image.size_bytes > HTML_IMAGES_BYTES_MAX - html->image_bytes) continue;
        made->has_room = true;
        html->image_bytes += made->image.size_bytes;
        assert(html->image_bytes <= HTML_IMAGES_BYTES_MAX);
    }
}

/* Closes the record's object, adding the path of the full image. */
static void end_object(made *made, uint64_t ordinal)
{
    char name[THUMBNAIL_PATH_SIZE];
    if (made->has_room) {
        name_image(name, "images", ordinal, made->image_ending);
        out_text(&made->page, ",\"i\":");
        html_string(&made->page, mr_string_from(name), sizeof name);
    }
    out_char(&made->page, '}');
}

/* Writes DIR/data/NAME-000000.js: name(number, …[ rows ]); empties rows. */
static mr_status write_rows(html *html, const char *name, uint64_t number, const char *head, out *rows, mr_error *error)
{
    char *path = nullptr;
    out text = {};
    out_text(&text, head);
    out_bytes(&text, rows->bytes, rows->size);
    out_text(&text, "\n]);\n");
    bool is_complete = !rows->has_failed && !text.has_failed &&
                       asprintf(&path, "%s/data/%s-%06" PRIu64 ".js", html->directory, name, number) >= 0;
    mr_status status = is_complete ? file_write_unsynced(path, text.bytes, text.size, error)
                                   : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a page");
    if (is_complete) free(path);
    out_deinit(&text);
    rows->size = 0;
    return status;
}

static mr_status end_page(html *html, mr_error *error)
{
    char head[64];
    if (html->page.size == 0) return MR_OK;
    snprintf(head, sizeof(head), "page(%" PRIu64 ", [", html->pages);
    return write_rows(html, "page", html->pages++, head, &html->page, error);
}

static mr_status end_search(html *html, mr_error *error)
{
    char head[96];
    if (html->search.size == 0) return MR_OK;
    snprintf(head, sizeof(head), "search(%" PRIu64 ", %" PRIu64 ", [", html->searches, html->search_first);
    html->search_first = html->records;
    return write_rows(html, "search", html->searches++, head, &html->search, error);
}

static void add_row(out *rows, const out *row)
{
    out_text(rows, rows->size > 0 ? ",\n" : "\n");
    out_bytes(rows, row->bytes, row->size);
    rows->has_failed |= row->has_failed;
}

static mr_status add(html *html, made *made, uint64_t ordinal, mr_error *error)
{
    if (!made) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (made->error.status != MR_OK) {
        *error = made->error;
        return error->status;
    }
    end_object(made, ordinal);
    add_row(&html->page, &made->page);
    add_row(&html->search, &made->search);
    for (size_t i = 0; i < made->boxes.size; i += 1 + (size_t)made->boxes.bytes[i])
        if (!top_add_text(&html->boxes, (mr_string){made->boxes.bytes + i + 1, (size_t)made->boxes.bytes[i]}, 1))
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (made->boxes.has_failed) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    html->records++;
    html->images += made->has_image;
    html->faults += made->has_fault;
    html->starved += made->is_starved;
    if (made->label_bytes > 0 && !top_add_text(&html->labels, (mr_string){made->label, made->label_bytes}, 1))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    if (html->records % HTML_PAGE_RECORDS == 0) MR_TRY(end_page(html, error));
    if (html->records - html->search_first == SEARCH_RECORDS || html->search.size > SEARCH_BYTES)
        MR_TRY(end_search(html, error));
    return MR_OK;
}

static mr_status make_directories(html *html, uint64_t last, mr_error *error)
{
    static const char *const names[] = {"thumbs", "images"};
    for (; html->directories <= last / THUMBNAILS_PER_DIRECTORY; html->directories++)
        for (int i = 0; i < 2; i++) {
            char *path = nullptr;
            if (asprintf(&path, "%s/%s/%05" PRIu64, html->directory, names[i], html->directories) < 0)
                return mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
            mr_status status = file_make_directories(path, error);
            free(path);
            MR_TRY(status);
        }
    return MR_OK;
}

static void free_made(made *made)
{
    if (!made) return;
    out_deinit(&made->page);
    out_deinit(&made->search);
    out_deinit(&made->boxes);
    free(made);
}

static bool take(void *context, pool *pool, progress *progress, batch_item *items, size_t count)
{
    html *html = context;
    html_work work = {html, items};
    mr_status status = make_directories(html, items[count - 1].ordinal, &html->error);
    if (status == MR_OK) {
        pool_for(pool, (int64_t)count, 1, make, &work);
        choose_images(html, items, count);
        pool_for(pool, (int64_t)count, 1, write_images, &work);
    }
    for (size_t i = 0; i < count; i++) {
        if (status == MR_OK) status = add(html, items[i].result, items[i].ordinal, &html->error);
        free_made(items[i].result);
    }
    progress_note(progress, "%" PRIu64 " records", html->records);
    return status == MR_OK;
}

/* ---- All pages ---- */

static void put_number(out *out, const char *name, uint64_t number)
{
    out_text(out, name);
    out_integer(out, (int64_t)number);
}

static void put_classes(const top *classes, const char *name, out *out)
{
    top_entry *entries = malloc(CLASSES_MAX * sizeof(*entries));
    size_t count = entries && classes->count > 0 ? top_list(classes, entries, CLASSES_MAX) : 0;
    out->has_failed |= !entries;
    out_text(out, name);
    for (size_t i = 0; i < count; i++) {
        out_text(out, i > 0 ? ",\n[" : "\n[");
        html_string(out, entries[i].text, TOP_TEXT_MAX);
        put_number(out, ",", entries[i].count);
        out_char(out, ']');
    }
    out_char(out, ']');
    free(entries);
}

static mr_status write_about(const html *html, mr_error *error)
{
    const options *options = html->options;
    out out = {};
    char *path = nullptr;
    put_number(&out, "about({\"records\":", html->records);
    put_number(&out, ",\"page\":", HTML_PAGE_RECORDS);
    put_number(&out, ",\"pages\":", html->pages);
    put_number(&out, ",\"searches\":", html->searches);
    put_number(&out, ",\"images\":", html->images);
    put_number(&out, ",\"faults\":", html->faults);
    out_text(&out, ",\n\"files\":[");
    for (int32_t i = 0; i < options->path_count && i < FILES_MAX; i++) {
        if (i > 0) out_text(&out, ",\n");
        html_string(&out, mr_string_from(text_path(options->paths[i])), SIZE_MAX);
    }
    out_char(&out, ']');
    put_classes(&html->labels, ",\n\"classes\":[", &out);
    put_classes(&html->boxes, ",\n\"boxes\":[", &out);
    out_text(&out, ",\n\"name\":");
    html_dataset_name(&out, options);
    out_text(&out, "});\n");
    mr_status status = MR_OK;
    if (out.has_failed || asprintf(&path, "%s/data/about.js", html->directory) < 0)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    else
        status = file_write_unsynced(path, out.bytes, out.size, error);
    free(path);
    out_deinit(&out);
    return status;
}

static mr_status finish(html *html, mr_error *error)
{
    MR_TRY(end_page(html, error));
    MR_TRY(end_search(html, error));
    MR_TRY(write_about(html, error));
    MR_TRY(write_bytes(html, "view.css", mr_string_from(view_css), error));
    MR_TRY(write_bytes(html, "view.js", mr_string_from(view_js), error));
    return write_bytes(html, "index.html", mr_string_from(index_html), error);
}

/* Prepares the directory without an index.html. Existing pages are replaced only with --force. */
static mr_status begin(html *html, mr_error *error)
{
    char *path = nullptr, *data = nullptr;
    mr_status status = MR_OK;
    if (asprintf(&path, "%s/index.html", html->directory) < 0) path = nullptr;
    if (asprintf(&data, "%s/data", html->directory) < 0) data = nullptr;
    if (!path || !data)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "out of memory");
    else
        status = output_allow(html->options, path, "", error);
    if (status == MR_OK) status = file_make_directories(data, error);
    /* Remove the page first, so that no page remains without its images. */
    bool replaces = status == MR_OK && file_exists(path);
    if (status == MR_OK) status = file_remove(path, error);
    if (status == MR_OK && replaces) status = html_clean(html->directory, error);
    free(path);
    free(data);
    return status;
}

static void report(const html *html)
{
    printf("%" PRIu64 " record%s on %" PRIu64 " page%s: ", html->records, html->records == 1 ? "" : "s", html->pages,
           html->pages == 1 ? "" : "s");
    print_path(stdout, html->directory);
    puts("/index.html");
    if (html->images > 0) printf("  %" PRIu64 " image%s\n", html->images, html->images == 1 ? "" : "s");
    if (html->faults > 0) printf("  %" PRIu64 " %s not decode\n", html->faults, html->faults == 1 ? "does" : "do");
}

int html_run(const options *options)
{
    html html = {.options = options,
                 .all = *options,
                 .directory = options->argument,
                 .labels = {.is_text = true},
                 .boxes = {.is_text = true}};
    html.all.features = nullptr;
    if (begin(&html, &html.error) != MR_OK) return print_error(&html.error);
    int exit_code = batches_run(options, "pages", take, &html);
    mr_status status = html.error.status;
    if (status == MR_OK) status = finish(&html, &html.error);
    if (status == MR_OK && html.starved > 0)
        (void)mr_fail(&html.error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " thumbnail%s", html.starved,
                      html.starved == 1 ? "" : "s");
    if (status == MR_OK) report(&html);
    if (html.error.status != MR_OK) exit_code = print_error(&html.error);
    top_deinit(&html.labels);
    top_deinit(&html.boxes);
    out_deinit(&html.page);
    out_deinit(&html.search);
    return exit_code;
}
