/* Attributes: the named constants of a node, TensorFlow's AttrValue.
 *
 * A value has exactly one kind. All elements of a list have the same kind, which is recorded even if the list is empty.
 * Everything that a value points to is allocated from the arena that the value was created in. */
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
    MR_ATTR_FUNCTION,    /* function.name and the attrs of the function */
    MR_ATTR_PLACEHOLDER, /* inside function bodies: the name of the function's attr, stored in `string` */
} mr_attr_kind;

typedef struct mr_attrs mr_attrs;

typedef struct mr_attr_value {
    union {
        mr_string string;
        int64_t integer;
        float number;
        bool boolean;
        int32_t type; /* mr_dtype, plus MR_DTYPE_REF if the graph specifies a reference type */
        mr_shape shape;
        mr_tensor tensor; /* referenced; released by the owner of the attrs */
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
    int32_t count; /* elements of a list; otherwise 1 */
    mr_attr_value *values;
} mr_attr;

/* Sorted by name. */
struct mr_attrs {
    int32_t count;
    mr_attr *items;
};

const mr_attr *mr_attrs_find(const mr_attrs *attrs, const char *name);

/* Accessors for kernels and shape functions. If the attr is missing or of another kind, the error names it; the …_or
 * forms return default_value instead. */
mr_status mr_attr_get_int(const mr_attrs *attrs, const char *name, int64_t *value, mr_error *error);
mr_status mr_attr_get_float(const mr_attrs *attrs, const char *name, float *value, mr_error *error);
mr_status mr_attr_get_bool(const mr_attrs *attrs, const char *name, bool *value, mr_error *error);
mr_status mr_attr_get_type(const mr_attrs *attrs, const char *name, mr_dtype *value, mr_error *error);
mr_status mr_attr_get_shape(const mr_attrs *attrs, const char *name, mr_shape *value, mr_error *error);
mr_status mr_attr_get_string(const mr_attrs *attrs, const char *name, mr_string *value, mr_error *error);
mr_status mr_attr_get_tensor(const mr_attrs *attrs, const char *name, const mr_tensor **value, mr_error *error);
/* Reads a list of ints; more than `capacity` are an error. *count is the number read. */
mr_status mr_attr_get_ints(const mr_attrs *attrs, const char *name, int64_t *values, int32_t capacity, int32_t *count,
                           mr_error *error);
int64_t mr_attr_int_or(const mr_attrs *attrs, const char *name, int64_t default_value);
float mr_attr_float_or(const mr_attrs *attrs, const char *name, float default_value);
bool mr_attr_bool_or(const mr_attrs *attrs, const char *name, bool default_value);
mr_dtype mr_attr_type_or(const mr_attrs *attrs, const char *name, mr_dtype default_value);
mr_string mr_attr_string_or(const mr_attrs *attrs, const char *name, const char *default_value);

/* " for T=half, Tidx=int32": the types in the attrs, for errors; returns text. */
const char *mr_attrs_types_text(const mr_attrs *attrs, char *text, size_t size_bytes);

#endif
