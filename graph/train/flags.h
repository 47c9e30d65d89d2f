/* The flags of a program, for the files that define, parse and print them. */
#ifndef MR_GRAPH_TRAIN_FLAGS_H
#define MR_GRAPH_TRAIN_FLAGS_H

#include "base/arena.h"
#include <millrace/flags.h>

typedef enum mr_flag_kind {
    MR_FLAG_STRING,
    MR_FLAG_BOOL,
    MR_FLAG_INT,
    MR_FLAG_FLOAT,
    MR_FLAG_ENUM,
    MR_FLAG_LIST
} mr_flag_kind;

typedef struct mr_flag {
    mr_flag_kind kind;
    bool is_multi;
    bool is_special; /* --help and the like: not part of the program's flags */
    bool required, case_insensitive;
    const char *name, *short_name, *help; /* short_name null: none */
    const char *default_text;             /* null: none */
    void *value;                          /* the variable */
    mr_names values;                      /* of an enum */
    double lower, upper;                  /* infinite: none */
    int32_t count;                        /* times given */
    void *items;                          /* of several values: in the arena */
    int32_t item_count, item_capacity;
} mr_flag;

typedef struct mr_flag_rule {
    mr_flag **flags; /* mutually exclusive */
    int32_t count;
    bool required;
    mr_status (*check)(void *context, const mr_flags *flags, mr_error *error); /* or: this function */
    void *context;
} mr_flag_rule;

struct mr_flags {
    mr_arena arena;
    mr_error error; /* the first one of a definition */
    const char *usage, *program;
    mr_flag **flags; /* sorted by name */
    int32_t flag_count, flag_capacity;
    mr_flag_rule *rules;
    int32_t rule_count, rule_capacity;
    mr_names arguments;
    bool wants_help, wants_full_help, wants_short_help;
    const char *help;
};

/* Finds a flag by its name or short name; null: none. */
mr_flag *mr_flag_find(const mr_flags *flags, const char *name);
/* Sets the flag's variable from text. errors: MR_INVALID_ARGUMENT with the flag and the text */
mr_status mr_flag_parse(mr_flags *flags, mr_flag *flag, const char *text, mr_error *error);
/* Whether the variable has a value, of the command line or the default. */
bool mr_flag_is_given(const mr_flag *flag);
/* Whether a variable of several values is a list: without a null or a negative count. */
bool mr_flag_has_list(const mr_flag *flag);
/* Checks the bounds of a default. */
bool mr_flag_is_valid(const mr_flag *flag);
/* Value number `index`, as it would be given; null: no memory. */
const char *mr_flag_value_text(const mr_flag *flag, int32_t index, mr_arena *arena);
/* The number of values: 1 unless the flag has several. */
int32_t mr_flag_value_count(const mr_flag *flag);
/* What a value must be, "an integer >= 1"; "": any text. Returns text. */
#define MR_FLAG_RULE_SIZE 128
const char *mr_flag_describe(const mr_flag *flag, char *text, size_t size_bytes);
/* The index of an enum's value; -1: it is none. */
int32_t mr_flag_find_value(const mr_flag *flag, const char *text);
/* Grows an array in the arena by one zeroed item, which is returned; null: no memory. items: the address of its pointer
 * */
void *mr_flags_push(mr_arena *arena, void *items, int32_t *count, int32_t *capacity, size_t item_size);

/* Replaces --flagfile in a list of arguments by the flags of the file. */
mr_status mr_flags_expand(mr_flags *flags, mr_names arguments, bool stops_at_first, mr_names *expanded,
                          mr_error *error);
/* The help, in the arena; null: no memory. */
const char *mr_flags_render_help(mr_flags *flags, bool is_full);

#endif
