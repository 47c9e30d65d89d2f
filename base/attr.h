/* Attributes: the named constants of a node, as TensorFlow's AttrValue.
 *
 * A value holds exactly one kind. Lists hold elements of one kind, and know which when they are empty. Everything that
 * a value points to lives in the arena it was made in. */
#ifndef MR_BASE_ATTR_H
#define MR_BASE_ATTR_H

#include <millrace/tensor.h>

typedef enum mr_attr_kind {
    MR_ATTR_NONE = 0,
    MR_ATTR_STRING,
    MR_ATTR_INT,
    MR_ATTR_FLOAT,
    MR_ATTR_BOOL,
    MR_ATTR_TYPE,
    MR_ATTR_SHAPE,
    MR_ATTR_TENSOR,
    MR_ATTR_FUNCTION,    /* function.name and its own attrs */
    MR_ATTR_PLACEHOLDER, /* inside function bodies: the name of the function's attr, in string */
} mr_attr_kind;

typedef struct mr_attrs mr_attrs;

typedef struct mr_attr_value {
    union {
        mr_string string;
        int64_t integer;
        float number;
        bool boolean;
        int32_t type; /* mr_dtype, with MR_DTYPE_REF where the graph says so */
        mr_shape shape;
        mr_tensor tensor; /* shared; the holder of the attrs gives it back */
        struct {
            const char *name;
            const mr_attrs *attrs;
        } function;
    };
} mr_attr_value;

typedef struct mr_attr {
    const char *name;
    mr_attr_kind kind;
    bool is_list;
    int32_t count; /* elements of a list; 1 otherwise */
    mr_attr_value *values;
} mr_attr;

/* Sorted by name. */
struct mr_attrs {
    int32_t count;
    mr_attr *items;
};

const mr_attr *mr_attrs_find(const mr_attrs *attrs, const char *name);

/* Readers for kernels and shape functions. An attr that is missing or of another kind is an error that names it;
 * the …_or forms give the default_value when it is missing. */
mr_status mr_attr_get_int(const mr_attrs *attrs, const char *name, int64_t *value, mr_error *error);
mr_status mr_attr_get_float(const mr_attrs *attrs, const char *name, float *value, mr_error *error);
mr_status mr_attr_get_bool(const mr_attrs *attrs, const char *name, bool *value, mr_error *error);
mr_status mr_attr_get_type(const mr_attrs *attrs, const char *name, mr_dtype *value, mr_error *error);
mr_status mr_attr_get_shape(const mr_attrs *attrs, const char *name, mr_shape *value, mr_error *error);
mr_status mr_attr_get_string(const mr_attrs *attrs, const char *name, mr_string *value, mr_error *error);
mr_status mr_attr_get_tensor(const mr_attrs *attrs, const char *name, const mr_tensor **value, mr_error *error);
/* A list of ints: at most capacity; *count is set. */
mr_status mr_attr_get_ints(const mr_attrs *attrs, const char *name, int64_t *values, int32_t capacity, int32_t *count,
                           mr_error *error);
int64_t mr_attr_int_or(const mr_attrs *attrs, const char *name, int64_t default_value);
float mr_attr_float_or(const mr_attrs *attrs, const char *name, float default_value);
bool mr_attr_bool_or(const mr_attrs *attrs, const char *name, bool default_value);
mr_dtype mr_attr_type_or(const mr_attrs *attrs, const char *name, mr_dtype default_value);
mr_string mr_attr_string_or(const mr_attrs *attrs, const char *name, const char *default_value);

#endif
