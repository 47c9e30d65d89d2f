/* Writes an event file for event_oracle.py: `event_files DIRECTORY < numbers` writes a scalar, a histogram of the
 * numbers (one C99 literal per line) and two images, and prints the file's path. */
#include "records/event/event.h"
#include "records/event/summary.h"

#include <stdio.h>
#include <stdlib.h>

static mr_status write_summaries(mr_event_writer *writer, mr_arena *arena, mr_histogram *histogram, mr_error *error)
{
    mr_string summary, tag = MR_STR("accuracy"), parts[2];
    char line[64];
    float value = 0.5f;
    MR_TRY(mr_event_writer_add_scalar(writer, 3, "loss", 0.125f, error));
    mr_histogram_init(histogram);
    while (fgets(line, sizeof line, stdin)) mr_histogram_add(histogram, strtod(line, nullptr));
    MR_TRY(mr_summary_pack_histogram(MR_STR("weights"), histogram, arena, &parts[0], error));
    MR_TRY(mr_summary_pack_scalars(&tag, &value, 1, arena, &parts[1], error));
    MR_TRY(mr_summary_pack_merged(parts, 2, arena, &summary, error));
    MR_TRY(mr_event_writer_add(writer, 4, summary, error));
    mr_summary_encoded_image images[] = {{1, 2, 3, MR_STR("first")}, {1, 2, 3, MR_STR("second")}};
    MR_TRY(mr_summary_pack_images(MR_STR("input"), images, 2, false, arena, &summary, error));
    return mr_event_writer_add(writer, 5, summary, error);
}

int main(int argc, char **argv)
{
    mr_error error = {0};
    mr_arena arena = {0};
    mr_event_writer *writer = nullptr;
    mr_histogram *histogram = malloc(sizeof *histogram);
    if (argc != 2 || histogram == nullptr) return 1;
    mr_status status = mr_event_writer_open(argv[1], &writer, &error);
    if (status == MR_OK) {
        printf("%s\n", mr_event_writer_path(writer));
        status = write_summaries(writer, &arena, histogram, &error);
    }
    if (status == MR_OK) status = mr_event_writer_close(writer, &error);
    if (status != MR_OK) fprintf(stderr, "%s\n", error.message);
    mr_arena_deinit(&arena);
    free(histogram);
    return status != MR_OK;
}
