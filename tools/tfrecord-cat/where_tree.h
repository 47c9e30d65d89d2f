/* What where_parse.c makes and where.c walks: nodes in an array, children before parents. */
#ifndef MR_TOOLS_TFRECORD_CAT_WHERE_TREE_H
#define MR_TOOLS_TFRECORD_CAT_WHERE_TREE_H

#include "tools/tfrecord-cat/where.h"

#define WHERE_NODES_MAX 1000
#define WHERE_TEXT_MAX 16'384

typedef enum node_kind {
    /* Operands. */
    NODE_INTEGER,
    NODE_NUMBER,
    NODE_TEXT,
    NODE_FEATURE,
    NODE_SIZE,  /* of a feature: how many values */
    NODE_STEPS, /* of a feature list */
    NODE_BYTES, /* of an operand's text: how long */
    NODE_NEGATE,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_DIVIDE,
    NODE_REMAINDER,
    /* Conditions. */
    NODE_EQUAL,
    NODE_UNEQUAL,
    NODE_LESS,
    NODE_LESS_EQUAL,
    NODE_GREATER,
    NODE_GREATER_EQUAL,
    NODE_MATCHES,
    NODE_CONTAINS,
    NODE_EXISTS,
    NODE_NOT,
    NODE_AND,
    NODE_OR
} node_kind;

typedef struct node {
    node_kind kind;
    uint16_t left, right; /* nodes */
    uint16_t name;        /* of names: NODE_FEATURE, NODE_SIZE, NODE_STEPS, NODE_EXISTS */
    int64_t integer;
    double number;
    mr_string text; /* of NODE_TEXT, and of the right side of NODE_MATCHES and NODE_CONTAINS; in where.texts */
    size_t at;
} node;

struct where {
    node *nodes;
    mr_string *names; /* in texts */
    char *texts;
    size_t texts_size;
    uint16_t node_count, name_count, root;
};

static inline bool node_is_condition(const node *node)
{
    return node->kind >= NODE_EQUAL;
}

/* Why a pattern is not given to regcomp; null: it is. Static. */
const char *where_pattern_fault(mr_string pattern);

#endif
