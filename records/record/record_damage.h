/* Damage, as the readers of records tell it: sentences, and the side file for what was lost. */
#ifndef MR_RECORDS_RECORD_DAMAGE_H
#define MR_RECORDS_RECORD_DAMAGE_H

#include <millrace/record.h>

/* The sentence about data whose checksum does not hold; returns MR_DATA_LOSS. */
mr_status mr_damage_report_data(mr_error *problem, const char *path, uint64_t record, uint64_t offset,
                                uint32_t computed, uint32_t stored);
/* The same about a header (12 bytes) that does not hold. */
mr_status mr_damage_report_header(mr_error *problem, const char *path, uint64_t record, uint64_t offset,
                                  const void *header);

/* Data does not hold, but a header follows where it should: is it that record alone that is lost? Bytes that were cut out of
 * it can be as many as the records behind it have, which then lie inside what it says is its own and end where it ends.
 *
 * bytes   the record with its header and footer
 * return  where in it those records begin; size_bytes when there are none */
size_t mr_damage_find_hidden(const char *bytes, size_t size_bytes);

/* ---- A place's way into the quarantine: begin, its bytes in one or more pieces, end ---- */

/* False: the place is there already, and nothing is to be added. */
bool mr_record_quarantine_begin(mr_record_quarantine *quarantine, const mr_record_damage *damage);
/* offset  of these bytes in the stream */
mr_status mr_record_quarantine_add(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, uint64_t offset, const void *bytes, size_t size_bytes,
                                   mr_error *error);
/* damage  with its size */
mr_status mr_record_quarantine_end(mr_record_quarantine *quarantine, const mr_record_damage *damage,
                                   const mr_error *problem, mr_error *error);

#endif
