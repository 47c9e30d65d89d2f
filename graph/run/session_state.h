/* The state of a session that must be saved with the variables: the position of each random operator in its random
 * sequence and of each iterator in its data. If both are restored, a resumed run equals the uninterrupted one bit for
 * bit.
 *
 * Saver writes the state as one more key of the checkpoint, MR_SESSION_STATE_KEY; TensorFlow ignores keys that its
 * graph does not restore.
 *
 * Locks: the session's mutex guards its tables and is never held while waiting for an iterator, so producers of a
 * pipeline may use the session at any time. An iterator's mutex is held while its state is saved or restored. */
#ifndef MR_GRAPH_RUN_SESSION_STATE_H
#define MR_GRAPH_RUN_SESSION_STATE_H

#include <millrace/session.h>

#define MR_SESSION_STATE_KEY "millrace/session_state"

/* state    an MR_STRING scalar, owned by the caller
 * threads  any, also during runs: the state of a random operator or iterator is then from before or after such a run */
mr_status mr_session_save_state(mr_session *session, mr_tensor *state, mr_error *error);

/* Entries for nodes that this graph does not have are ignored. Random operators without an entry restart, because they
 * had drawn nothing. Iterators without an entry are unchanged; those with an entry are created if they do not exist.
 * state    an MR_STRING scalar; its bytes are not trusted
 * errors   MR_INVALID_ARGUMENT, MR_DATA_LOSS: the state is damaged, or an iterator's state belongs to another pipeline.
 *          The session's state is then undefined until a restore succeeds */
mr_status mr_session_restore_state(mr_session *session, const mr_tensor *state, mr_error *error);
/* The same for random operators only; iterators are unchanged. */
mr_status mr_session_restore_random(mr_session *session, const mr_tensor *state, mr_error *error);

#endif
