/* Opening a quarantine: reads its existing contents, so that known ranges are not written again. Apart from
 * record_quarantine.c because it uses the record reader, which writes to the quarantine. */
#include "base/arguments.h"
#include "records/record/record_damage.h"

#include <millrace/example.h>

#include <sys/stat.h>

/* Reads the ranges written by an earlier run; what cannot be read is ignored. */
static void remember_ranges(mr_record_quarantine *quarantine, const char *path)
{
    mr_record_reader *reader = nullptr;
    const mr_record_reader_options options = {.size = sizeof options, .damage = MR_DAMAGE_SKIP};
    struct stat about;
    /* A device may be endless. */
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode)) return;
    if (mr_record_reader_open(path, &options, &reader, nullptr) != MR_OK) return;
    mr_string record, file;
    int64_t offset;
    while (mr_record_reader_next(reader, &record, nullptr) == MR_OK)
        if (mr_example_get_bytes(record, "file", &file, nullptr) == MR_OK &&
            mr_example_get_int64(record, "offset", &offset, nullptr) == MR_OK)
            mr_record_quarantine_remember(quarantine, file, (uint64_t)offset);
    mr_record_reader_close(reader);
}

mr_status mr_record_quarantine_open(const char *path, mr_record_quarantine **quarantine, mr_error *error)
{
    MR_REFUSE_NULL(path, error);
    MR_REFUSE_NULL(quarantine, error);
    MR_TRY(mr_record_quarantine_new(path, quarantine, error));
    remember_ranges(*quarantine, path);
    return MR_OK;
}
