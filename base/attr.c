/* Attribute lookup by name, and accessors that report a missing attr or one of another kind. */
#include "base/attr.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const mr_attr *mr_attrs_find(const mr_attrs *attrs, const char *name)
{
    if (attrs == nullptr) return nullptr;
    int32_t low = 0, high = attrs->count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        assert(middle >= low && middle < high && attrs->items[middle].name != nullptr);
        assert(middle + 1 == attrs->count || strcmp(attrs->items[middle].name, attrs->items[middle + 1].name) < 0);
        int order = strcmp(attrs->items[middle].name, name);
        if (order == 0) return &attrs->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return nullptr;
}

static const char *kind_name(mr_attr_kind kind)
{
    static const char *const names[] = {"nothing", "a string", "an int",   "a float",    "a bool",
                                        "a type",  "a shape",  "a tensor", "a function", "a placeholder"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "nothing";
}

/* Gets the single value of a required attr. */
static mr_status get(const mr_attrs *attrs, const char *name, mr_attr_kind kind, const mr_attr_value **value,
                     mr_error *error)
{
    const mr_attr *attr = mr_attrs_find(attrs, name);
    if (attr == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is missing", name);
    if (attr->is_list) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is a list, not %s", name, kind_name(kind));
    if (attr->kind != kind || attr->count < 1)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is %s, not %s", name, kind_name(attr->kind),
                       kind_name(kind));
    *value = &attr->values[0];
    return MR_OK;
}

static const mr_attr_value *get_or_null(const mr_attrs *attrs, const char *name, mr_attr_kind kind)
{
    const mr_attr *attr = mr_attrs_find(attrs, name);
    return attr != nullptr && !attr->is_list && attr->kind == kind && attr->count >= 1 ? &attr->values[0] : nullptr;
}

static mr_dtype plain_type(int32_t type)
{
    if (type > MR_DTYPE_REF) type -= MR_DTYPE_REF;
    return type > 0 && type < MR_DTYPE_COUNT ? (mr_dtype)type : MR_DTYPE_INVALID;
}

mr_status mr_attr_get_int(const mr_attrs *attrs, const char *name, int64_t *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_INT, &found, error));
    *value = found->integer;
    return MR_OK;
}

mr_status mr_attr_get_float(const mr_attrs *attrs, const char *name, float *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_FLOAT, &found, error));
    *value = found->number;
    return MR_OK;
}

mr_status mr_attr_get_bool(const mr_attrs *attrs, const char *name, bool *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_BOOL, &found, error));
    *value = found->boolean;
    return MR_OK;
}

mr_status mr_attr_get_type(const mr_attrs *attrs, const char *name, mr_dtype *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_TYPE, &found, error));
    *value = plain_type(found->type);
    return MR_OK;
}

mr_status mr_attr_get_shape(const mr_attrs *attrs, const char *name, mr_shape *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_SHAPE, &found, error));
    *value = found->shape;
    return MR_OK;
}

mr_status mr_attr_get_string(const mr_attrs *attrs, const char *name, mr_string *value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_STRING, &found, error));
    *value = found->string;
    return MR_OK;
}

mr_status mr_attr_get_tensor(const mr_attrs *attrs, const char *name, const mr_tensor **value, mr_error *error)
{
    const mr_attr_value *found;
    MR_TRY(get(attrs, name, MR_ATTR_TENSOR, &found, error));
    *value = &found->tensor;
    return MR_OK;
}

mr_status mr_attr_get_ints(const mr_attrs *attrs, const char *name, int64_t *values, int32_t capacity, int32_t *count,
                           mr_error *error)
{
    const mr_attr *attr = mr_attrs_find(attrs, name);
    if (attr == nullptr) return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is missing", name);
    if (!attr->is_list || (attr->kind != MR_ATTR_INT && attr->count > 0))
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s is not a list of ints", name);
    if (attr->count > capacity)
        return mr_fail(error, MR_INVALID_ARGUMENT, "attr %s has %d ints, at most %d are allowed", name, attr->count,
                       capacity);
    for (int32_t i = 0; i < attr->count; i++) values[i] = attr->values[i].integer;
    *count = attr->count;
    return MR_OK;
}

int64_t mr_attr_int_or(const mr_attrs *attrs, const char *name, int64_t default_value)
{
    const mr_attr_value *found = get_or_null(attrs, name, MR_ATTR_INT);
    return found != nullptr ? found->integer : default_value;
}

float mr_attr_float_or(const mr_attrs *attrs, const char *name, float default_value)
{
    const mr_attr_value *found = get_or_null(attrs, name, MR_ATTR_FLOAT);
    return found != nullptr ? found->number : default_value;
}

bool mr_attr_bool_or(const mr_attrs *attrs, const char *name, bool default_value)
{
    const mr_attr_value *found = get_or_null(attrs, name, MR_ATTR_BOOL);
    return found != nullptr ? found->boolean : default_value;
}

mr_dtype mr_attr_type_or(const mr_attrs *attrs, const char *name, mr_dtype default_value)
{
    const mr_attr_value *found = get_or_null(attrs, name, MR_ATTR_TYPE);
    return found != nullptr ? plain_type(found->type) : default_value;
}

mr_string mr_attr_string_or(const mr_attrs *attrs, const char *name, const char *default_value)
{
    const mr_attr_value *found = get_or_null(attrs, name, MR_ATTR_STRING);
    return found != nullptr ? found->string : default_value != nullptr ? mr_string_from(default_value) : (mr_string){0};
}

const char *mr_attrs_types_text(const mr_attrs *attrs, char *text, size_t size_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < attrs->count && used < size_bytes; i++) {
        const mr_attr *attr = &attrs->items[i];
        if (attr->kind != MR_ATTR_TYPE || attr->is_list || attr->name[0] == '_') continue;
        int32_t type = attr->values[0].type;
        if (type > MR_DTYPE_REF) type -= MR_DTYPE_REF;
        int written = snprintf(text + used, size_bytes - used, "%s%s=%s", used ? ", " : " for ", attr->name,
                               mr_dtype_name((mr_dtype)type));
        used += written > 0 ? (size_t)written : 0;
    }
    return text;
}
