/* The internal part of event files, which graph/train needs in addition to <millrace/train.h>. */
#ifndef MR_RECORDS_EVENT_H
#define MR_RECORDS_EVENT_H

#include <millrace/train.h>

/* mr_event_writer_open with a suffix for the file's name. */
mr_status mr_event_writer_open_suffix(const char *directory, const char *suffix, mr_event_writer **writer,
                                      mr_error *error);
/* Writes a serialized GraphDef as an event of that step. */
mr_status mr_event_writer_add_graph_at(mr_event_writer *writer, int64_t step, mr_string graph_def, mr_error *error);
/* Writes a serialized Event as it is; the step is that of the event.
 * errors  MR_INVALID_ARGUMENT if it is damaged */
mr_status mr_event_writer_add_event(mr_event_writer *writer, int64_t step, mr_string event, mr_error *error);
/* Writes a serialized GraphDef or MetaGraphDef as an event of step 0, which TensorBoard's graph view reads. */
mr_status mr_event_writer_add_graph_def(mr_event_writer *writer, mr_string graph_def, mr_error *error);
mr_status mr_event_writer_add_meta_graph_def(mr_event_writer *writer, mr_string meta_graph_def, mr_error *error);

typedef enum mr_session_event { MR_SESSION_START = 1, MR_SESSION_STOP = 2, MR_SESSION_CHECKPOINT = 3 } mr_session_event;
/* Writes a SessionLog. When a new run starts at a step, TensorBoard hides what earlier runs wrote after that step.
 * checkpoint  its path, or null */
mr_status mr_event_writer_add_session(mr_event_writer *writer, int64_t step, mr_session_event event,
                                      const char *checkpoint, mr_error *error);
/* The file's path; borrowed. */
const char *mr_event_writer_path(const mr_event_writer *writer);

#endif
