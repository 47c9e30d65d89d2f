/* Runs a fuzz target on all files of the given directories, so that earlier findings are tested again. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);
/* Part of the sanitizers' runtimes. */
[[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)(void));

static const char *replayed;

static void name_replayed(void)
{
    fprintf(stderr, "FAILED %s\n", replayed);
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return perror(path), 1;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(size > 0 ? (size_t)size : 1);
    bool whole = bytes && size >= 0 && fread(bytes, 1, (size_t)size, file) == (size_t)size;
    fclose(file);
    if (!whole) return fprintf(stderr, "%s: cannot be read\n", path), free(bytes), 1;
    replayed = path;
    LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(name_replayed);
    for (int i = 1; i < argc; i++) {
        DIR *directory = opendir(argv[i]);
        if (!directory) return perror(argv[i]), 1;
        for (struct dirent *entry; (entry = readdir(directory));) {
            if (entry->d_name[0] == '.') continue;
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            failed += replay_file(path);
        }
        closedir(directory);
    }
    return failed != 0;
}
