/* The internal part of event files, in addition to <millrace/summary.h>. */
#ifndef MR_RECORDS_EVENT_H
#define MR_RECORDS_EVENT_H

#include <millrace/train.h>

typedef struct Mr__Event Mr__Event;

/* mr_event_writer_open with a suffix for the file's name, which may be empty. */
mr_status mr_event_writer_open_suffix(const char *directory, const char *suffix, mr_event_writer **writer,
                                      mr_error *error);
/* mr_event_writer_add with the metadata of all values. */
mr_status mr_event_writer_add_unchanged(mr_event_writer *writer, int64_t step, mr_string summary, mr_error *error);
/* mr_event_writer_add_event; the step is that of the event. */
mr_status mr_event_writer_import_event(mr_event_writer *writer, int64_t step, mr_string event, mr_error *error);
/* Sets the event's time, and writes it. */
mr_status mr_event_writer_append(mr_event_writer *writer, Mr__Event *event, mr_error *error);
/* errors  MR_INVALID_ARGUMENT: the tag is null or empty */
mr_status mr_event_writer_check_tag(const mr_event_writer *writer, const char *tag, mr_error *error);

#endif
