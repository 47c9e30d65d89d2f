/* The summary as one JSON object (--json), for programs that start this one.
 *
 *     {"input": "photos", "format": "directory", "rows": 2700, "classes": ["daisy", "rose"], "dry_run": false,
 *      "splits": [{"name": "train", "records": 2430, "size_bytes": …, "files":
 *      ["out/photos-train-00000-of-00001.tfrecord"]}, …], "written": 2700, "reused": 0, "skipped": 0, "removed": 0,
 *      "seconds": 1.2, "remarks": {"oriented": {"count": 12, "example": "daisy/1.jpg"}}, "notes": [{"count": 1, "text":
 *      "…", "example": "…"}], "source_remarks": ["warning: …"],
 *      "duplicates": {"same": 0, "contradicting": 0, "crossing": 0, "dropped": 0}}
 *
 * Text that is not UTF-8 has U+FFFD in place of each bad byte. */
#include "tfrecord-make/make.h"

#include "common/arena.h"
#include "common/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *text_of(mr_string bytes)
{
    if (text_is_utf8(bytes)) return json_stringn(bytes.data, bytes.size_bytes);
    char *text = malloc(3 * bytes.size_bytes + 1), *to = text;
    if (!text) return nullptr;
    for (size_t i = 0; i < bytes.size_bytes; i++) {
        if ((unsigned char)bytes.data[i] < 0x80)
            *to++ = bytes.data[i];
        else
            to = mempcpy(to, "\xef\xbf\xbd", 3);
    }
    json_t *value = json_stringn(text, (size_t)(to - text));
    free(text);
    return value;
}

static json_t *text(const char *text)
{
    return text_of(mr_string_from(text));
}

/* jansson treats null values as errors, so a failed allocation makes one of these calls fail. */
static bool set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool is_ours(const work *work, const shard *shard)
{
    return work->options->worker_count == 0 || shard->worker == work->options->worker;
}

static bool add_split(const work *work, int split, json_t *splits)
{
    const options *options = work->options;
    json_t *object = json_object(), *files = json_array();
    int64_t rows = 0;
    bool good = object && files;
    for (int32_t i = 0; i < work->plan->shard_count && good; i++) {
        const shard *shard = &work->plan->shards[i];
        if (shard->split != split || !is_ours(work, shard)) continue;
        rows += shard->count;
        good = json_array_append_new(files, text(shard->path)) == 0;
    }
    good = good && set(object, "name", text(options->splits[split].name));
    good = good && set(object, "records", json_integer(options->dry_run ? rows : work->splits[split].records));
    if (!options->dry_run)
        good = good && set(object, "size_bytes", json_integer((json_int_t)work->splits[split].size_bytes));
    good = good && json_object_set(object, "files", files) == 0;
    json_decref(files);
    if (good) return json_array_append_new(splits, object) == 0;
    json_decref(object);
    return false;
}

static bool add_splits(const work *work, json_t *root)
{
    json_t *splits = json_array();
    bool good = splits && json_object_set_new(root, "splits", splits) == 0;
    for (int i = 0; i < work->options->split_count && good; i++) good = add_split(work, i, splits);
    return good;
}

static bool add_classes(const work *work, json_t *root)
{
    json_t *classes = json_array();
    bool good = classes && json_object_set_new(root, "classes", classes) == 0;
    for (int32_t i = 0; i < work->source->class_count && good; i++) {
        const char *name = work->source->classes[i];
        good = json_array_append_new(classes, name ? text(name) : json_null()) == 0;
    }
    return good;
}

static bool add_remarks(const work *work, const shard_report *sum, json_t *root)
{
    json_t *remarks = json_object();
    bool good = remarks && json_object_set_new(root, "remarks", remarks) == 0;
    for (int i = 0; i < REMARK_COUNT && good; i++) {
        if (sum->remarks[i].count == 0) continue;
        json_t *object = json_object();
        good = object && set(remarks, remark_name((remark)i), object);
        good = good && set(object, "count", json_integer(sum->remarks[i].count));
        good = good && set(object, "example", text(sum->remarks[i].first));
    }
    return good;
}

static bool add_notes(const source *source, json_t *root)
{
    json_t *notes = json_array();
    bool good = notes && json_object_set_new(root, "notes", notes) == 0;
    for (int i = 0; i < source->note_count && good; i++) {
        const char *what = source->notes[i].what, *many = strchr(what, '|');
        json_t *object = json_object();
        good = object && json_array_append_new(notes, object) == 0;
        good = good && set(object, "count", json_integer(source->notes[i].count));
        good = good && set(object, "text", text(many ? many + 1 : what));
        good = good && set(object, "example", text(source->notes[i].first));
    }
    return good;
}

static bool add_source_remarks(const source *source, json_t *root)
{
    json_t *remarks = json_array();
    bool good = remarks && json_object_set_new(root, "source_remarks", remarks) == 0;
    for (int i = 0; i < source->remark_count && good; i++)
        good = json_array_append_new(remarks, text(source->remarks[i])) == 0;
    return good;
}

static bool add_duplicates(const duplicates_found *found, json_t *root)
{
    json_t *object = json_object();
    bool good = object && json_object_set_new(root, "duplicates", object) == 0;
    good = good && set(object, "same", json_integer(found->same.count));
    good = good && set(object, "contradicting", json_integer(found->contradicting.count));
    good = good && set(object, "crossing", json_integer(found->crossing.count));
    return good && set(object, "dropped", json_integer(found->dropped));
}

static bool add_input(const work *work, json_t *root)
{
    static const char *const formats[] = {"auto", "directory", "list",  "regression", "table",
                                          "coco", "voc",       "numpy", "tar"};
    return set(root, "input", text(work->options->input)) && set(root, "format", text(formats[work->source->format])) &&
           set(root, "rows", json_integer(work->source->row_count - work->source->excluded_count)) &&
           add_classes(work, root) && set(root, "dry_run", json_boolean(work->options->dry_run));
}

static bool add_result(const work *work, const shard_report *sum, double seconds, int64_t removed, int32_t planned,
                       json_t *root)
{
    if (work->options->dry_run) return set(root, "finished_files", json_integer(planned));
    return set(root, "written", json_integer(work->written)) && set(root, "reused", json_integer(work->reused)) &&
           set(root, "skipped", json_integer(sum->skipped)) && set(root, "removed", json_integer(removed)) &&
           set(root, "seconds", json_real(seconds)) && add_remarks(work, sum, root);
}

mr_status report_json(const work *work, double seconds, int64_t removed, int32_t planned, mr_error *error)
{
    shard_report sum = {0};
    json_t *root = json_object();
    mr_status status = root ? MR_OK : fail_memory(error, sizeof(sum));
    for (int i = 0; i < work->options->split_count && status == MR_OK; i++)
        status = shard_report_add(&sum, &work->splits[i], error);
    if (status == MR_OK &&
        !(add_input(work, root) && add_splits(work, root) && add_result(work, &sum, seconds, removed, planned, root) &&
          add_notes(work->source, root) && add_source_remarks(work->source, root) && add_duplicates(work->found, root)))
        status = fail_memory(error, sizeof(sum));
    if (status == MR_OK && json_dumpf(root, stdout, JSON_INDENT(2)) != 0 && !ferror(stdout))
        status = fail_memory(error, sizeof(sum));
    if (status == MR_OK) putchar('\n');
    shard_report_deinit(&sum);
    json_decref(root);
    return status;
}
