/* Pages to look through records: see html.h. A batch is read; threads make thumbnails, write them, and make of each record
 * what the pages and the search hold of it; this is put together in order. */
#include "tools/tfrecord-cat/html.h"

#include "records/file.h"
#include "tools/common/top.h"
#include "tools/tfrecord-cat/batches.h"
#include "tools/tfrecord-cat/rewrite.h"
#include "tools/tfrecord-cat/walk.h"

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

/* A search file ends behind so many records or bytes. */
static constexpr uint64_t SEARCH_RECORDS = 5'000;
static constexpr size_t SEARCH_BYTES = (size_t)2 << 20;
static constexpr uint64_t THUMBNAILS_PER_FOLDER = 1'000;
/* Classes that can be chosen by a list, and paths of files that are named, at most. */
static constexpr size_t CLASSES_MAX = 1'000;
static constexpr int32_t FILES_MAX = 100'000;

/* Of one record. */
typedef struct made {
    out page, search;
    char label[TOP_TEXT_MAX];
    size_t label_bytes;
    bool has_picture, has_fault, is_starved; /* is_starved: the fault is a lack of memory */
    mr_error error;                          /* its thumbnail cannot be written, or there is no memory */
} made;

typedef struct html {
    const options *options;
    options all; /* the same without --features: label, name and boxes are shown whatever is */
    const char *folder;
    out page, search;
    uint64_t records, pages, searches, search_first, pictures, faults, starved;
    uint64_t thumbnail_folders; /* that are there */
    top labels;
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

static mr_status write_thumbnail(const html *html, const thumbnail *thumbnail, const char *name, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s", html->folder, name) < 0) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory");
    mr_status status = put_file(path, *mr_tensor_strings(&thumbnail->jpeg), error);
    free(path);
    return status;
}

static void make_one(const html *html, const batch_item *item, view *view, made *made)
{
    const place *place = &item->place;
    caption caption = {};
    bytes_value picture = {};
    thumbnail thumbnail = {};
    char name[THUMBNAIL_PATH_SIZE];
    if (view_read(view, &html->all, place->record, &made->error) != MR_OK) return;
    pick_caption(view, tfds_set_find(&html->options->tfds, place->path), &caption);
    made->has_picture = pick_picture(view, &picture);
    if (view->form == MR_EXAMPLE_NONE && pick_format(place->record) != MR_IMAGE_UNKNOWN) {
        picture.bytes = place->record;
        made->has_picture = true;
    }
    if (made->has_picture) thumbnail_make(picture.bytes, &thumbnail);
    made->has_fault = thumbnail.fault.status != MR_OK;
    made->is_starved = thumbnail.fault.status == MR_RESOURCE_EXHAUSTED;
    snprintf(name, sizeof(name), "thumbs/%05" PRIu64 "/%08" PRIu64 ".jpg", item->ordinal / THUMBNAILS_PER_FOLDER,
             item->ordinal);
    bool has_thumbnail = thumbnail.jpeg.data != nullptr;
    if (has_thumbnail && write_thumbnail(html, &thumbnail, name, &made->error) != MR_OK) {
        thumbnail_deinit(&thumbnail);
        return;
    }
    html_record(&made->page, html->options, view, place, file_of(html->options, place->path), &caption,
                made->has_picture ? &picture : nullptr, &thumbnail, has_thumbnail ? name : nullptr);
    html_search(&made->search, view, place->number, &caption);
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

/* ---- In order ---- */

/* DIR/data/NAME-000000.js: name(number, …[ rows ]); rows is then empty. */
static mr_status write_rows(html *html, const char *name, uint64_t number, const char *head, out *rows, mr_error *error)
{
    char *path = nullptr;
    out text = {};
    out_text(&text, head);
    out_bytes(&text, rows->bytes, rows->size);
    out_text(&text, "\n]);\n");
    bool is_whole = !rows->has_failed && !text.has_failed &&
                    asprintf(&path, "%s/data/%s-%06" PRIu64 ".js", html->folder, name, number) >= 0;
    mr_status status = is_whole ? put_file(path, (mr_string){text.bytes, text.size}, error)
                                : mr_fail(error, MR_RESOURCE_EXHAUSTED, "no memory for a page");
    if (is_whole) free(path);
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

static mr_status add(html *html, const made *made, mr_error *error)
{
    if (!made) return mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
    if (made->error.status != MR_OK) {
        *error = made->error;
        return error->status;
    }
    add_row(&html->page, &made->page);
    add_row(&html->search, &made->search);
    html->records++;
    html->pictures += made->has_picture;
    html->faults += made->has_fault;
    html->starved += made->is_starved;
    if (made->label_bytes > 0 && !top_add_text(&html->labels, (mr_string){made->label, made->label_bytes}, 1))
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
    if (html->records % HTML_PAGE_RECORDS == 0) MR_TRY(end_page(html, error));
    if (html->records - html->search_first == SEARCH_RECORDS || html->search.size > SEARCH_BYTES)
        MR_TRY(end_search(html, error));
    return MR_OK;
}

static mr_status make_thumbnail_folders(html *html, uint64_t last, mr_error *error)
{
    for (; html->thumbnail_folders <= last / THUMBNAILS_PER_FOLDER; html->thumbnail_folders++) {
        char *path = nullptr;
        if (asprintf(&path, "%s/thumbs/%05" PRIu64, html->folder, html->thumbnail_folders) < 0)
            return mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
        mr_status status = mr_file_make_directories(path, error);
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
    free(made);
}

static bool take(void *context, mr_pool *pool, progress *progress, batch_item *items, size_t count)
{
    html *html = context;
    html_work work = {html, items};
    mr_status status = make_thumbnail_folders(html, items[count - 1].ordinal, &html->error);
    if (status == MR_OK) mr_pool_for(pool, (int64_t)count, 1, make, &work);
    for (size_t i = 0; i < count; i++) {
        if (status == MR_OK) status = add(html, items[i].result, &html->error);
        free_made(items[i].result);
    }
    progress_note(progress, "%" PRIu64 " records", html->records);
    return status == MR_OK;
}

/* ---- The whole ---- */

static void put_number(out *out, const char *name, uint64_t number)
{
    out_text(out, name);
    out_integer(out, (int64_t)number);
}

static void put_classes(const html *html, out *out)
{
    top_entry *entries = malloc(CLASSES_MAX * sizeof(*entries));
    size_t count = entries && html->labels.count > 0 ? top_list(&html->labels, entries, CLASSES_MAX) : 0;
    out->has_failed |= !entries;
    out_text(out, ",\n\"classes\":[");
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
    put_number(&out, ",\"pictures\":", html->pictures);
    put_number(&out, ",\"faults\":", html->faults);
    out_text(&out, ",\n\"files\":[");
    for (int32_t i = 0; i < options->path_count && i < FILES_MAX; i++) {
        if (i > 0) out_text(&out, ",\n");
        html_string(&out, mr_string_from(text_path(options->paths[i])), SIZE_MAX);
    }
    out_char(&out, ']');
    put_classes(html, &out);
    out_text(&out, "});\n");
    mr_status status = MR_OK;
    if (out.has_failed || asprintf(&path, "%s/data/about.js", html->folder) < 0)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
    else
        status = put_file(path, (mr_string){out.bytes, out.size}, error);
    free(path);
    out_deinit(&out);
    return status;
}

static mr_status write_text(const html *html, const char *name, const char *text, mr_error *error)
{
    char *path = nullptr;
    if (asprintf(&path, "%s/%s", html->folder, name) < 0)
        return mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
    mr_status status = put_file(path, mr_string_from(text), error);
    free(path);
    return status;
}

static mr_status finish(html *html, mr_error *error)
{
    MR_TRY(end_page(html, error));
    MR_TRY(end_search(html, error));
    MR_TRY(write_about(html, error));
    MR_TRY(write_text(html, "view.css", view_css, error));
    MR_TRY(write_text(html, "view.js", view_js, error));
    return write_text(html, "index.html", index_html, error);
}

/* The folder without an index.html: pages that are there are replaced only when that is asked for. */
static mr_status begin(html *html, mr_error *error)
{
    char *path = nullptr, *data = nullptr;
    mr_status status = MR_OK;
    if (asprintf(&path, "%s/index.html", html->folder) < 0) path = nullptr;
    if (asprintf(&data, "%s/data", html->folder) < 0) data = nullptr;
    if (!path || !data)
        status = mr_fail(error, MR_RESOURCE_EXHAUSTED, "there is not enough memory");
    else if (mr_file_exists(path) && !html->options->is_forced)
        status = mr_fail(error, MR_ALREADY_EXISTS, "%s: is there already; --force replaces it", path);
    if (status == MR_OK) status = mr_file_make_directories(data, error);
    if (status == MR_OK) status = mr_file_remove(path, error);
    free(path);
    free(data);
    return status;
}

static void report(const html *html)
{
    printf("%" PRIu64 " record%s on %" PRIu64 " page%s: ", html->records, html->records == 1 ? "" : "s", html->pages,
           html->pages == 1 ? "" : "s");
    print_path(stdout, html->folder);
    puts("/index.html");
    if (html->pictures > 0) printf("  %" PRIu64 " picture%s\n", html->pictures, html->pictures == 1 ? "" : "s");
    if (html->faults > 0) printf("  %" PRIu64 " %s not decode\n", html->faults, html->faults == 1 ? "does" : "do");
}

int html_run(const options *options)
{
    html html = {.options = options, .all = *options, .folder = options->argument, .labels = {.is_text = true}};
    if (!*html.folder) return refuse("--html: where to?");
    html.all.features = nullptr;
    if (begin(&html, &html.error) != MR_OK) return complain(&html.error);
    int exit_code = batches_run(options, "pages", take, &html);
    mr_status status = html.error.status;
    if (status == MR_OK) status = finish(&html, &html.error);
    if (status == MR_OK && html.starved > 0)
        (void)mr_fail(&html.error, MR_RESOURCE_EXHAUSTED, "no memory for %" PRIu64 " thumbnail%s", html.starved,
                      html.starved == 1 ? "" : "s");
    if (status == MR_OK) report(&html);
    if (html.error.status != MR_OK) exit_code = complain(&html.error);
    top_deinit(&html.labels);
    out_deinit(&html.page);
    out_deinit(&html.search);
    return exit_code;
}
