/* A GraphDef that is being rewritten: nodes by name, their inputs as text, their attrs. Everything is in the arena.
 *
 * Nodes are only appended and marked as removed, so that an index stays valid; mr_rewrite_finish leaves out the removed
 * ones. A pass changes inputs by replacing their text. */
#ifndef MR_GRAPH_TRAIN_REWRITE_H
#define MR_GRAPH_TRAIN_REWRITE_H

#include "graph/ir/convert.h"
#include <millrace/session.h>

typedef struct mr_rewrite {
    mr_arena arena;
    const char *what; /* the function, for errors */
    Mr__GraphDef *def;
    int32_t count;
    int32_t capacity;
    Mr__NodeDef **nodes;
    bool *removed;
    mr_name_table ids;
} mr_rewrite;

/* An input: "name", "name:1" or "^name". */
typedef struct mr_rewrite_input {
    int32_t node;  /* index; -1: does not exist */
    int32_t index; /* of the output; -1: a control input */
} mr_rewrite_input;

/* The nodes of a graph. deinit in any case. */
mr_status mr_rewrite_init(mr_rewrite *r, const char *what, const mr_graph *graph, mr_error *error);
void mr_rewrite_deinit(mr_rewrite *r);
/* Serializes what remains. */
mr_status mr_rewrite_finish(mr_rewrite *r, mr_tensor *graph_def, mr_error *error);

/* The index of a node that is not removed; -1: none. */
int32_t mr_rewrite_find(const mr_rewrite *r, const char *name);
/* The index of the node with that name, "y" or "y:0".
 * role    "output", for errors
 * errors  MR_NOT_FOUND with the nearest names */
mr_status mr_rewrite_require(const mr_rewrite *r, const char *role, const char *name, int32_t *index, mr_error *error);
/* Checks a list of names and marks its nodes. */
mr_status mr_rewrite_mark(const mr_rewrite *r, const char *role, mr_names names, bool *marks, mr_error *error);
mr_rewrite_input mr_rewrite_input_of(const mr_rewrite *r, const char *text);
/* Input `index` among the data inputs; node -1: the node has fewer. */
mr_rewrite_input mr_rewrite_data_input(const mr_rewrite *r, int32_t node, int32_t index);
int32_t mr_rewrite_data_count(const mr_rewrite *r, int32_t node);
/* Removes all nodes that the marked ones do not depend on. Inputs of nodes in `ends`, which may be null, do not
 * count. */
mr_status mr_rewrite_keep_reachable(mr_rewrite *r, const bool *marks, const bool *ends, mr_error *error);
/* The number of data inputs of all nodes that are an output of this node. */
int32_t mr_rewrite_reader_count(const mr_rewrite *r, int32_t node);
/* Whether an input is this output of the node; index -1: a control input. */
bool mr_rewrite_is_read(const mr_rewrite *r, int32_t node, int32_t index);

/* Appends a node with this name, which is made unique. -1 with an error if memory is exhausted. */
int32_t mr_rewrite_add(mr_rewrite *r, const char *op, const char *name, mr_error *error);
/* A new Const. Its device is none. */
int32_t mr_rewrite_add_constant(mr_rewrite *r, const char *name, const mr_tensor *value, mr_error *error);
/* Makes an existing node a Const without inputs. */
mr_status mr_rewrite_make_constant(mr_rewrite *r, int32_t node, const mr_tensor *value, mr_error *error);
/* Sets the inputs of a node; each text is copied. */
mr_status mr_rewrite_set_inputs(mr_rewrite *r, int32_t node, const char *const *inputs, size_t count, mr_error *error);
/* Every input that is this output becomes `text`. */
void mr_rewrite_replace_readers(mr_rewrite *r, mr_rewrite_input output, char *text);
/* Removes a node. Control inputs that name it become those that it has. */
mr_status mr_rewrite_remove(mr_rewrite *r, int32_t node, mr_error *error);

/* ---- Attrs ---- */

const Mr__AttrValue *mr_rewrite_attr(const mr_rewrite *r, int32_t node, const char *name);
/* The attr as a dtype, bool or float; the default value if it is missing. */
mr_dtype mr_rewrite_type(const mr_rewrite *r, int32_t node, const char *name, mr_dtype otherwise);
/* Sets or replaces an attr; the value is borrowed. */
mr_status mr_rewrite_set_attr(mr_rewrite *r, int32_t node, const char *name, Mr__AttrValue *value, mr_error *error);
mr_status mr_rewrite_set_type(mr_rewrite *r, int32_t node, const char *name, mr_dtype value, mr_error *error);
mr_status mr_rewrite_set_string(mr_rewrite *r, int32_t node, const char *name, const char *value, mr_error *error);
void mr_rewrite_clear_attrs(mr_rewrite *r, int32_t node);
bool mr_rewrite_is(const mr_rewrite *r, int32_t node, const char *op);
/* The value of a Const, also behind Identity nodes; false if it is not one.
 * *node  the Const */
bool mr_rewrite_constant(const mr_rewrite *r, mr_rewrite_input input, int32_t *node, mr_tensor *value);

#endif
