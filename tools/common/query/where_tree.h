/* The expression tree that where_parse.c builds and where.c evaluates: nodes in an array, children before parents. */
#ifndef MR_TOOLS_COMMON_WHERE_TREE_H
#define MR_TOOLS_COMMON_WHERE_TREE_H

#include "common/query/where.h"

#define WHERE_NODES_MAX 1000
#define WHERE_TEXT_MAX 16'384

typedef enum node_kind {
    /* Operands. */
    NODE_INTEGER,
    NODE_NUMBER,
    NODE_TEXT,
    NODE_FEATURE,
    NODE_SIZE,  /* of a feature: number of values */
    NODE_STEPS, /* of a feature list: number of steps */
    NODE_BYTES, /* of an operand's text: its length */
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
    uint16_t left, right; /* indexes into nodes */
    uint16_t name;        /* index into names: NODE_FEATURE, NODE_SIZE, NODE_STEPS, NODE_EXISTS */
    int64_t integer;
    double number;
    mr_string text; /* NODE_TEXT, and the right side of NODE_MATCHES and NODE_CONTAINS; in where.texts */
    size_t at;
} node;

struct where {
    node *nodes;
    mr_string *names; /* point into texts */
    char *texts;
    size_t texts_size;
    uint16_t node_count, name_count, root;
};

static inline bool node_is_condition(const node *node)
{
    return node->kind >= NODE_EQUAL;
}

#endif
