/* Damage reports of the record readers: messages, and the quarantine file for the damaged bytes. */
#ifndef MR_RECORDS_RECORD_DAMAGE_H
#define MR_RECORDS_RECORD_DAMAGE_H

#include <millrace/record.h>

/* Reports data whose checksum does not match; returns MR_DATA_LOSS. */
mr_status mr_damage_report_data(const char *path, uint64_t record, uint64_t offset, uint32_t computed, uint32_t stored,
                                mr_error *error);
/* The same for an invalid header (12 bytes). */
mr_status mr_damage_report_header(const char *path, uint64_t record, uint64_t offset, const void *header,
                                  mr_error *error);
/* The same for a record that is longer than the rest of the file.
 * length  according to its header, if that is complete
 * left    bytes from the start of the header to the end of the file */
mr_status mr_damage_report_truncated(const char *path, uint64_t record, uint64_t offset, uint64_t length, uint64_t left,
                                     mr_error *error);

/* Checks the options of a reader or a scan that concern damage.
 * errors  MR_INVALID_ARGUMENT: an invalid policy, or an option that only MR_DAMAGE_SKIP uses */
mr_status mr_damage_check_options(const char *path, mr_damage_policy damage, uint64_t damage_max,
                                  const mr_record_quarantine *quarantine, mr_error *error);

/* Finds valid records inside a record whose data is damaged but which is followed by a valid header. If bytes were lost
 * whose number equals the total size of records that follow, those records are inside the range that the damaged record
 * claims, and the last of them ends where it ends.
 *
 * bytes   the damaged record with its header and footer
 * return  offset of the first such record in bytes; size_bytes if there is none */
size_t mr_damage_find_hidden(const char *bytes, size_t size_bytes);

/* ---- Opening a quarantine ---- */

/* As mr_record_quarantine_open, but without reading the existing contents. */
mr_status mr_record_quarantine_new(const char *path, mr_record_quarantine **quarantine, mr_error *error);
/* Marks a range as written. */
void mr_record_quarantine_remember(mr_record_quarantine *quarantine, mr_string path, uint64_t offset);

/* ---- Writing a damaged range to the quarantine: begin, its bytes in one or more pieces, end ---- */

/* False: the range has already been written, and must not be added. */
bool mr_record_quarantine_begin(mr_record_quarantine *quarantine, const mr_record_damage *damage);
/* offset  of these bytes in the stream */
mr_status mr_record_quarantine_add(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, uint64_t offset, const void *bytes, size_t size_bytes,
                                   mr_error *error);
/* damage  including its size */
mr_status mr_record_quarantine_end(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, mr_error *error);

#endif
