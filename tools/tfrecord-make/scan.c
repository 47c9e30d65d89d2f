/* The folder of pictures: every folder in it that holds pictures is a class. */
#include "tools/tfrecord-make/make.h"

#include "base/arena.h"
#include "records/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Folders below folders; a link that leads back up ends here. */
static constexpr int DEPTH_MAX = 32;

static bool is_picture_name(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcasecmp(dot, endings[i]) == 0) return true;
    return false;
}

/* Files that systems leave in folders of pictures, which nobody misses. */
static bool is_litter(const char *name)
{
    return strcasecmp(name, "Thumbs.db") == 0 || strcasecmp(name, "desktop.ini") == 0;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static mr_status add_picture(listing *listing, const char *path, const struct stat *about, mr_error *error)
{
    /* Grows at powers of two. */
    int64_t count = listing->picture_count;
    if ((count & (count - 1)) == 0) {
        picture *grown = realloc(listing->pictures, (size_t)(count ? 2 * count : 1) * sizeof(picture));
        if (!grown) return mr_fail_memory(error, (size_t)count * sizeof(picture));
        listing->pictures = grown;
    }
    char *copy = strdup(path);
    if (!copy) return mr_fail_memory(error, strlen(path));
    mr_file_stamp stamp = mr_file_stamp_from(about);
    listing->pictures[listing->picture_count++] = (picture){.path = copy,
                                                            .size_bytes = stamp.size_bytes,
                                                            .modified_ns = stamp.modified_ns,
                                                            .hash = plan_hash(0, path, strlen(path)),
                                                            .label = listing->class_count};
    listing->size_bytes += stamp.size_bytes;
    return MR_OK;
}

/* The names in a folder, sorted; owned. path: below the top folder, "" is the top itself. */
static mr_status list_names(const char *folder, const char *path, struct dirent ***entries, int *count, mr_error *error)
{
    char *full = nullptr;
    if (asprintf(&full, *path ? "%s/%s" : "%s", folder, path) < 0) return mr_fail_memory(error, strlen(folder));
    *count = scandir(full, entries, visible, compare_names);
    mr_status status = *count < 0 ? mr_file_fail(error, errno, "read folder", full) : MR_OK;
    free(full);
    return status;
}

/* What a path below the top folder is. A link to nowhere counts as a file: if it has a picture's name, reading it will
 * say what is wrong with it. */
static mr_status stat_below(const char *folder, const char *path, struct stat *about, mr_error *error)
{
    char *full = nullptr;
    if (asprintf(&full, "%s/%s", folder, path) < 0) return mr_fail_memory(error, strlen(folder));
    if (stat(full, about) != 0) *about = (struct stat){.st_mode = S_IFREG};
    free(full);
    return MR_OK;
}

static mr_status leave_out(listing *listing, const char *path, const char *name, mr_error *error)
{
    if (is_litter(name)) return MR_OK;
    if (listing->left_out++ == 0 && !(listing->left_out_first = strdup(path)))
        return mr_fail_memory(error, strlen(path));
    return MR_OK;
}

static mr_status scan_class(const char *folder, const char *path, int depth, listing *listing, mr_error *error);

static mr_status scan_entry(const char *folder, const char *path, const char *name, int depth, listing *listing,
                            mr_error *error)
{
    struct stat about;
    MR_TRY(stat_below(folder, path, &about, error));
    if (S_ISDIR(about.st_mode)) return scan_class(folder, path, depth + 1, listing, error);
    if (!S_ISREG(about.st_mode) || !is_picture_name(name)) return leave_out(listing, path, name, error);
    return add_picture(listing, path, &about, error);
}

/* Adds the pictures of a class folder and of the folders below it. */
static mr_status scan_class(const char *folder, const char *path, int depth, listing *listing, mr_error *error)
{
    if (depth > DEPTH_MAX)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s/%s: folders lie more than %d deep", folder, path, DEPTH_MAX);
    struct dirent **entries = nullptr;
    int count;
    MR_TRY(list_names(folder, path, &entries, &count, error));
    mr_status status = MR_OK;
    for (int i = 0; i < count; i++) {
        char *below = nullptr;
        if (status == MR_OK && asprintf(&below, "%s/%s", path, entries[i]->d_name) < 0) {
            below = nullptr;
            status = mr_fail_memory(error, strlen(path));
        }
        if (status == MR_OK) status = scan_entry(folder, below, entries[i]->d_name, depth, listing, error);
        free(below);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* A name in the top folder. */
static mr_status scan_top(const char *folder, const char *name, listing *listing, mr_error *error)
{
    struct stat about;
    MR_TRY(stat_below(folder, name, &about, error));
    if (!S_ISDIR(about.st_mode)) {
        if (S_ISREG(about.st_mode) && is_picture_name(name))
            listing->loose++;
        else
            return leave_out(listing, name, name, error);
        return MR_OK;
    }
    int64_t before = listing->picture_count;
    MR_TRY(scan_class(folder, name, 1, listing, error));
    if (listing->picture_count == before) return MR_OK;
    if (strchr(name, '\n'))
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the class folder \"%s\" has a line break in its name", folder,
                       name);
    char *copy = strdup(name);
    if (!copy) return mr_fail_memory(error, strlen(name));
    listing->classes[listing->class_count++] = copy;
    return MR_OK;
}

static mr_status check_listing(const char *folder, const listing *listing, mr_error *error)
{
    if (listing->picture_count > 0) return MR_OK;
    if (listing->loose > 0)
        return mr_fail(error, MR_NOT_FOUND,
                       "%s: %lld pictures lie in the folder itself; they belong in one folder for each class, as in "
                       "%s/daisy/1.jpg",
                       folder, (long long)listing->loose, folder);
    return mr_fail(error, MR_NOT_FOUND, "%s: no pictures (.jpg, .jpeg, .png) in class folders, as in %s/daisy/1.jpg",
                   folder, folder);
}

mr_status scan_folder(const char *folder, listing *listing, mr_error *error)
{
    struct dirent **entries = nullptr;
    int count;
    *listing = (struct listing){0};
    MR_TRY(list_names(folder, "", &entries, &count, error));
    mr_status status = MR_OK;
    listing->classes = calloc((size_t)count + 1, sizeof(char *));
    if (!listing->classes) status = mr_fail_memory(error, (size_t)count * sizeof(char *));
    for (int i = 0; i < count; i++) {
        if (status == MR_OK) status = scan_top(folder, entries[i]->d_name, listing, error);
        free(entries[i]);
    }
    free(entries);
    return status == MR_OK ? check_listing(folder, listing, error) : status;
}

void listing_deinit(listing *listing)
{
    for (int32_t i = 0; i < listing->class_count; i++) free(listing->classes[i]);
    for (int64_t i = 0; i < listing->picture_count; i++) free(listing->pictures[i].path);
    free(listing->classes);
    free(listing->pictures);
    free(listing->left_out_first);
    *listing = (struct listing){0};
}
