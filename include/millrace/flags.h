/* Flags of programs: --learning_rate=0.1 (tf.flags, absl.flags).
 *
 * ```c
 * int64_t steps = 1000;
 * double learning_rate = 0.1;
 * bool verbose = false;
 * const char *optimizer = "adam", *data_dir = nullptr;
 * char *arguments[] = {"train", "--steps=20", "--optimizer", "sgd", "--verbose", "--data_dir=flowers", "rest"};
 * mr_error error = {0};
 * mr_flags *flags = mr_flags_new("Trains a model.");
 * mr_flags_int(flags, "steps", &steps, "Number of steps.", .lower_bound = 1);
 * mr_flags_float(flags, "learning_rate", &learning_rate, "Initial learning rate.");
 * mr_flags_bool(flags, "verbose", &verbose, "Print the loss.", .short_name = "v");
 * mr_flags_enum(flags, "optimizer", &optimizer, MR_NAMES("adam", "sgd"), "The optimizer.");
 * mr_flags_string(flags, "data_dir", &data_dir, "Directory of the data.", .required = true);
 * if (mr_flags_parse(flags, 7, arguments, &error) != MR_OK) fprintf(stderr, "%s\n", error.message);
 * if (mr_flags_help(flags) != nullptr) fputs(mr_flags_help(flags), stdout);
 * printf("%lld steps, %s, %s\n", (long long)steps, data_dir, mr_flags_arguments(flags).items[0]);
 * mr_flags_free(flags);
 * ```
 *
 * A flag is bound to a variable of the program, whose value is the default. Parsing sets the variable.
 *
 * On the command line:
 *   --name=value, --name value, -name   one and two dashes are the same; the last one wins; a flag of several values
 *                                       collects those of all its occurrences instead of the default
 *   --name, --noname                    of a boolean flag; or --name=true, t, 1, false, f, 0, in any case
 *   --flagfile=FILE                     the flags in the file, one a line, at this place; lines that start with # or //
 *                                       are comments; "~/" is the home directory
 *   --undefok=a,b                       ignore --a and --b if they are not defined
 *   --help, --helpfull                  parsing ends here, and mr_flags_help returns the text
 *   --                                  the rest are arguments
 *
 * Numbers are written as in Python: 1_000, 0x1f, 0o17, 1e-3, inf, nan. An integer has 64 bits.
 *
 * Errors. A function that defines a flag does not return an error: the flags keep the first one, and mr_flags_parse
 * returns it. Options follow the rules of api.h. One thread at a time. */
#ifndef MILLRACE_FLAGS_H
#define MILLRACE_FLAGS_H

#include <millrace/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_flags mr_flags;

/* usage  what the program does, the first lines of the help; may be null; copied. Null if memory is exhausted */
MR_API mr_flags *mr_flags_new(const char *usage);
/* And the strings that the variables refer to. Null is allowed. */
MR_API void mr_flags_free(mr_flags *flags);

/* ---- Definitions ---- */

typedef struct mr_flag_options {
    size_t size;            /* of this struct (api.h) */
    const char *short_name; /* another name: "v" */
    bool required; /* it must be given ("--list=", too), unless a default of a string, enum or list is not null */
    /* Of numbers, also the default: */
    double lower_bound, upper_bound; /* default: none */
    bool case_insensitive;           /* of enums; the value is that of the definition */
} mr_flag_options;
#define MR_FLAG_DEFAULTS_ .lower_bound = -__builtin_inf(), .upper_bound = __builtin_inf()
#define MR_FLAG_(call, ...) MR_WITH_SIZE_(call, mr_flag_options, MR_FLAG_DEFAULTS_, __VA_ARGS__)

/* Floats of a flag of several values. */
typedef struct mr_doubles {
    const double *items;
    int32_t count;
} mr_doubles;

/* name   letters, digits, "_", "-" and "."; not one of the flags above
 * value  borrowed: the variable; its value is the default. Strings and lists of the default are borrowed, those of the
 *        command line owned by the flags. A null string and an empty list are no value
 * help   copied; null: none */
MR_API void mr_flags_string_(mr_flags *flags, const char *name, const char **value, const char *help,
                             const mr_flag_options *options);
MR_API void mr_flags_bool_(mr_flags *flags, const char *name, bool *value, const char *help,
                           const mr_flag_options *options);
MR_API void mr_flags_int_(mr_flags *flags, const char *name, int64_t *value, const char *help,
                          const mr_flag_options *options);
MR_API void mr_flags_float_(mr_flags *flags, const char *name, double *value, const char *help,
                            const mr_flag_options *options);
/* values  at least 1; copied */
MR_API void mr_flags_enum_(mr_flags *flags, const char *name, const char **value, mr_names values, const char *help,
                           const mr_flag_options *options);
/* One value with commas, "a,b": a list of the parts without white space around them. A part in quotes may contain
 * commas, and quotes that are doubled. */
MR_API void mr_flags_list_(mr_flags *flags, const char *name, mr_names *value, const char *help,
                           const mr_flag_options *options);
/* Flags that are given several times. */
MR_API void mr_flags_multi_string_(mr_flags *flags, const char *name, mr_names *value, const char *help,
                                   const mr_flag_options *options);
MR_API void mr_flags_multi_int_(mr_flags *flags, const char *name, mr_ints *value, const char *help,
                                const mr_flag_options *options);
MR_API void mr_flags_multi_float_(mr_flags *flags, const char *name, mr_doubles *value, const char *help,
                                  const mr_flag_options *options);
MR_API void mr_flags_multi_enum_(mr_flags *flags, const char *name, mr_names *value, mr_names values, const char *help,
                                 const mr_flag_options *options);
#define mr_flags_string(flags, name, value, help, ...)                                                                 \
    MR_FLAG_(mr_flags_string_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_bool(flags, name, value, help, ...)                                                                   \
    MR_FLAG_(mr_flags_bool_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_int(flags, name, value, help, ...)                                                                    \
    MR_FLAG_(mr_flags_int_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_float(flags, name, value, help, ...)                                                                  \
    MR_FLAG_(mr_flags_float_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_enum(flags, name, value, values, help, ...)                                                           \
    MR_FLAG_(mr_flags_enum_((flags), (name), (value), (values), (help), &options_), __VA_ARGS__)
#define mr_flags_list(flags, name, value, help, ...)                                                                   \
    MR_FLAG_(mr_flags_list_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_multi_string(flags, name, value, help, ...)                                                           \
    MR_FLAG_(mr_flags_multi_string_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_multi_int(flags, name, value, help, ...)                                                              \
    MR_FLAG_(mr_flags_multi_int_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_multi_float(flags, name, value, help, ...)                                                            \
    MR_FLAG_(mr_flags_multi_float_((flags), (name), (value), (help), &options_), __VA_ARGS__)
#define mr_flags_multi_enum(flags, name, value, values, help, ...)                                                     \
    MR_FLAG_(mr_flags_multi_enum_((flags), (name), (value), (values), (help), &options_), __VA_ARGS__)

/* ---- Rules that are checked after parsing, in their order ---- */

/* At most one of these flags is given; with required, exactly one. Of boolean flags: is true. A string, enum or list
 * with a value counts as given.
 * names  of defined flags, at least 2; either all are boolean or none is; copied */
MR_API void mr_flags_mutually_exclusive(mr_flags *flags, mr_names names, bool required);
/* Called with the values set.
 * context  borrowed
 * errors   returned by mr_flags_parse */
MR_API void mr_flags_validator(mr_flags *flags,
                               mr_status (*check)(void *context, const mr_flags *flags, mr_error *error),
                               void *context);

/* ---- Parsing ---- */

typedef struct mr_flags_parse_options {
    size_t size;                 /* of this struct (api.h) */
    bool known_only;             /* flags that are not defined are arguments, as for tf.app.run */
    bool stop_at_first_argument; /* what follows the first argument are arguments, also if they start with "-" */
} mr_flags_parse_options;
/* Sets the variables from argv[1] on; again, after an earlier call, it adds to what was given then. After an error some
 * variables may have been set.
 * argv    argc strings, borrowed during the call; argv[0] is the program's name for the help
 * errors  of a definition; MR_INVALID_ARGUMENT, with the flag: a flag that is not defined, with the nearest name; no
 *         value, or one that is not valid; a rule. Those of opening and reading a file of flags, which must not include
 *         itself; MR_RESOURCE_EXHAUSTED: all files of a call together have more than 1 MiB */
MR_API mr_status mr_flags_parse(mr_flags *flags, int argc, char *const *argv, mr_error *error);
/* The same with options, which may be null. */
MR_API mr_status mr_flags_parse_with(mr_flags *flags, int argc, char *const *argv,
                                     const mr_flags_parse_options *options, mr_error *error);
/* The arguments that are not flags, of the last call. Borrowed. */
MR_API mr_names mr_flags_arguments(const mr_flags *flags);
/* The help, if --help or --helpfull was given; otherwise null. Borrowed. Rules have not been checked then. */
MR_API const char *mr_flags_help(const mr_flags *flags);

/* ---- Flags by name ---- */

/* How often the flag was given; -1: it is not defined. */
MR_API int32_t mr_flags_count(const mr_flags *flags, const char *name);
/* Sets a flag as if it had been given.
 * value  null: --name of a boolean flag
 * errors MR_NOT_FOUND: not defined; MR_INVALID_ARGUMENT: the value is not valid */
MR_API mr_status mr_flags_set(mr_flags *flags, const char *name, const char *value, mr_error *error);
/* The values of the flags as lines of a file of flags, in the order of their names; flags without a value are left out;
 * an empty list that was given is not (flags_into_string).
 * text  owned by the caller: free() */
MR_API mr_status mr_flags_into_string(const mr_flags *flags, char **text, mr_error *error);
/* Appends these lines to a file, which is created if it does not exist (append_flags_into_file). */
MR_API mr_status mr_flags_append_to_file(const mr_flags *flags, const char *path, mr_error *error);

#ifdef __cplusplus
}
#endif
#endif
