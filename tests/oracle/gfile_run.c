/* For gfile_oracle.py: reads commands, one a line, with arguments that end with a tab: "copy\tf\tg\t1\t", and prints
 * the code and the result of each. Paths are relative to the working directory. */
#include <millrace/file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_names(const mr_tensor *names)
{
    for (int64_t i = 0; i < mr_tensor_count(names); i++)
        printf("%.*s,", (int)mr_tensor_strings(names)[i].size_bytes, mr_tensor_strings(names)[i].data);
}

static mr_status print_visit(void *, const char *directory, const mr_tensor *subdirectories, const mr_tensor *files,
                             mr_error *)
{
    printf("%s:", directory);
    print_names(subdirectories);
    printf(":");
    print_names(files);
    printf(";");
    return MR_OK;
}

static mr_status run(char **arguments, mr_error *error)
{
    const char *command = arguments[0], *path = arguments[1], *other = arguments[2];
    mr_tensor value = {0};
    mr_gfile_about about;
    mr_status status = MR_INTERNAL;
    if (strcmp(command, "exists") == 0) status = (printf("%d", mr_gfile_exists(path)), MR_OK);
    if (strcmp(command, "isdir") == 0) status = (printf("%d", mr_gfile_is_directory(path)), MR_OK);
    if (strcmp(command, "stat") == 0) {
        status = mr_gfile_stat(path, &about, error);
        if (status == MR_OK) printf("%d %lld", about.is_directory, about.is_directory ? 0 : (long long)about.length);
    }
    if (strcmp(command, "list") == 0) status = mr_gfile_list_directory(path, &value, error);
    if (strcmp(command, "glob") == 0) status = mr_gfile_glob(path, &value, error);
    if (strcmp(command, "read") == 0) status = mr_gfile_read(path, &value, error);
    if (strcmp(command, "write") == 0) status = mr_gfile_write(path, mr_string_from(other), error);
    if (strcmp(command, "makedirs") == 0) status = mr_gfile_make_directories(path, error);
    if (strcmp(command, "mkdir") == 0) status = mr_gfile_make_directory(path, error);
    if (strcmp(command, "remove") == 0) status = mr_gfile_remove(path, error);
    if (strcmp(command, "rmtree") == 0) status = mr_gfile_delete_recursively(path, error);
    if (strcmp(command, "copy") == 0) status = mr_gfile_copy(path, other, *arguments[3] == '1', error);
    if (strcmp(command, "rename") == 0) status = mr_gfile_rename(path, other, *arguments[3] == '1', error);
    if (strcmp(command, "walk") == 0) status = mr_gfile_walk(path, *other == '1', print_visit, nullptr, error);
    print_names(&value);
    mr_tensor_deinit(&value);
    return status;
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        char *arguments[4] = {"", "", "", ""}, *rest = line;
        for (int i = 0; i < 4 && strchr(rest, '\t') != nullptr; i++) arguments[i] = strsep(&rest, "\t");
        mr_error error = {0};
        mr_status status = run(arguments, &error);
        printf("\t%d\n", (int)status);
    }
    return 0;
}
