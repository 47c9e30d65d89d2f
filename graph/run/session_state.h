/* What a session holds beside its variables and must be saved with them: how far each random operator has drawn, and
 * where each iterator stands in its data. With both restored, a resumed run equals the unbroken one bit for bit.
 *
 * Saver writes the state as one more key of the checkpoint, MR_SESSION_STATE_KEY; TensorFlow ignores keys that its graph
 * does not restore.
 *
 * Locks: the session's mutex guards its tables and is never held while an iterator is waited for, so producers of a
 * pipeline may use the session at any time. An iterator's mutex is held while it saves or restores. */
#ifndef MR_GRAPH_RUN_SESSION_STATE_H
#define MR_GRAPH_RUN_SESSION_STATE_H

#include <millrace/session.h>

#define MR_SESSION_STATE_KEY "millrace/session_state"

/* state    an MR_STRING scalar, owned by the caller
 * threads  any, also during runs: the state of a random operator or iterator is then from before or after such a run */
mr_status mr_session_save_state(mr_session *session, mr_tensor *state, mr_error *error);

/* What the state knows of nodes that this graph does not have is passed over. Random operators that it does not name
 * start anew, for they had drawn nothing; iterators that it does not name stay where they are, and those that it names
 * are made when the session has not made them yet.
 * state    an MR_STRING scalar; its bytes may be hostile
 * errors   MR_INVALID_ARGUMENT, MR_DATA_LOSS: the state is damaged, or an iterator's place is of another pipeline;
 *          the session's state is then not defined, and a restore that succeeds puts it right */
mr_status mr_session_restore_state(mr_session *session, const mr_tensor *state, mr_error *error);
/* The same for random operators alone; iterators stay where they are. */
mr_status mr_session_restore_random(mr_session *session, const mr_tensor *state, mr_error *error);

#endif
