/* Which form the input has: by what is asked for, or by its name and what lies in it. */
#include "tools/tfrecord-make/make.h"

#include "records/file.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool source_has_ending(const char *name, const char *endings)
{
    size_t length = strlen(name);
    for (const char *next = endings; *next;) {
        size_t size = strcspn(next, " ");
        if (length > size && strncasecmp(name + length - size, next, size) == 0) return true;
        next += size + (next[size] == ' ');
    }
    return false;
}

/* What a folder holds: VOC's Annotations or .xml files, archives, or else class folders. */
static input_format format_of_folder(const char *path)
{
    input_format format = FORMAT_FOLDER;
    DIR *folder = opendir(path);
    if (!folder) return format;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        if (strcmp(entry->d_name, "Annotations") == 0 || source_has_ending(entry->d_name, ".xml")) {
            format = FORMAT_VOC;
            break;
        }
        if (source_has_ending(entry->d_name, SOURCE_TAR_ENDINGS)) format = FORMAT_TAR;
    }
    closedir(folder);
    return format;
}

static mr_status recognise(const char *path, input_format *format, mr_error *error)
{
    static const struct {
        const char *endings;
        input_format format;
    } forms[] = {{".csv .tsv .jsonl .ndjson .csv.gz .tsv.gz .jsonl.gz .ndjson.gz", FORMAT_LIST},
                 {".json", FORMAT_COCO},
                 {".npy .npz", FORMAT_NUMPY},
                 {SOURCE_TAR_ENDINGS, FORMAT_TAR}};
    struct stat about;
    if (stat(path, &about) != 0) return mr_file_fail(error, errno, "open", path);
    if (S_ISDIR(about.st_mode)) {
        *format = format_of_folder(path);
        return MR_OK;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (source_has_ending(path, forms[i].endings)) {
            *format = forms[i].format;
            return MR_OK;
        }
    return mr_fail(error, MR_INVALID_ARGUMENT,
                   "%s: what is it? Its name ends in none of .csv, .tsv, .jsonl, .json, .npy, .npz and .tar; --format "
                   "says it",
                   path);
}

mr_status source_open(const options *options, source *source, mr_error *error)
{
    static mr_status (*const opens[])(struct source *, mr_error *) = {
        [FORMAT_FOLDER] = source_folder_open, [FORMAT_LIST] = source_list_open, [FORMAT_REGRESSION] = source_list_open,
        [FORMAT_TABLE] = source_table_open,   [FORMAT_COCO] = source_coco_open, [FORMAT_VOC] = source_voc_open,
        [FORMAT_NUMPY] = source_numpy_open,   [FORMAT_TAR] = source_tar_open,
    };
    *source = (struct source){.options = options, .input = options->input, .in = &options->in, .row_noun = "picture"};
    input_format format = options->in.format;
    if (format == FORMAT_AUTO) MR_TRY(recognise(options->input, &format, error));
    source->format = format;
    /* The names of features are in every record. */
    for (int i = 0; i < options->in.key_count; i++) {
        const key_change *change = &options->in.keys[i];
        source->facts_hash = plan_hash(source->facts_hash, change->from, change->from_size);
        source->facts_hash = plan_hash(source->facts_hash, change->to, strlen(change->to));
    }
    MR_TRY(opens[format](source, error));
    if (source->row_count == 0) return mr_fail(error, MR_NOT_FOUND, "%s: holds no rows", source->input);
    return MR_OK;
}
