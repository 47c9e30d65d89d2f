/* The errors of ParseExample and its relatives, in TensorFlow's words. */
#include "graph/state/parse_example.h"

#include <inttypes.h>
#include <stdio.h>

constexpr int SHOWN_BYTES = 200;

/* "Name: x, ", or nothing for a single Example. */
static const char *name_text(const mr_example_fault *fault, const mr_tensor *names, bool single, char *text,
                             size_t size)
{
    mr_string name = MR_STR("<unknown>");
    int64_t count = names ? mr_tensor_count(names) : 0, at = count == 1 ? 0 : fault->record;
    if (at < count && mr_tensor_strings(names)[at].size_bytes > 0) name = mr_tensor_strings(names)[at];
    text[0] = '\0';
    if (!single)
        snprintf(text, size, "Name: %.*s, ",
                 (int)(name.size_bytes < (size_t)SHOWN_BYTES ? name.size_bytes : (size_t)SHOWN_BYTES), name.data);
    return text;
}

/* "Key: a, Index: 1.  ", or without the index for a single Example. */
static const char *key_text(const mr_example_fault *fault, bool single, char *text, size_t size)
{
    int shown = (int)(fault->name.size_bytes < (size_t)SHOWN_BYTES ? fault->name.size_bytes : (size_t)SHOWN_BYTES);
    int64_t index = fault->in_lists ? fault->step : fault->record;
    int used = snprintf(text, size, "Key: %.*s", shown, fault->name.data);
    if (single)
        snprintf(text + used, size - (size_t)used, ".  ");
    else
        snprintf(text + used, size - (size_t)used, ", Index: %" PRId64 ".  ", index);
    return text;
}

static const char *kind_text(mr_dtype dtype)
{
    return dtype == MR_STRING ? "bytes" : mr_dtype_name(dtype);
}

static mr_status missing(const mr_kernel_call *call, const mr_example_fault *f, const char *name, mr_error *error)
{
    int shown = (int)(f->name.size_bytes < (size_t)SHOWN_BYTES ? f->name.size_bytes : (size_t)SHOWN_BYTES);
    if (f->in_lists)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%sFeature list '%.*s' is required but could not be found.  Did you mean to include it "
                              "in feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?",
                              name, shown, f->name.data);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "%sFeature: %.*s (data type: %s) is required but could not be found.",
                          f->in_context ? "" : name, shown, f->name.data, mr_dtype_name(f->dtype));
}

static mr_status wrong_dtype(const mr_kernel_call *call, const mr_example_fault *f, const char *name, const char *key,
                             mr_error *error)
{
    int shown = (int)(f->name.size_bytes < (size_t)SHOWN_BYTES ? f->name.size_bytes : (size_t)SHOWN_BYTES);
    const char *dtype = mr_dtype_name(f->dtype), *found = mr_dtype_name(f->found);
    bool is_dense = f->form == MR_FIXED_LEN || f->form == MR_FIXED_LEN_SEQUENCE;
    if (f->in_lists)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%sFeature list: %.*s, Index: %" PRId64 ".  Data types don't match. Expected type: %s",
                              name, shown, f->name.data, f->step, dtype);
    if (f->in_context)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%sContext feature: %.*s.  Data types don't match. Expected type: %s", name, shown,
                              f->name.data, dtype);
    return is_dense ? mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                     "%s%sData types don't match. Data type: %s but expected type: %s", name, key,
                                     found, dtype)
                    : mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                                     "%s%sData types don't match. Expected type: %s, Actual type: %s", name, key, dtype,
                                     found);
}

static mr_status wrong_count(const mr_kernel_call *call, const mr_example_fault *f, const char *name, const char *key,
                             bool single, mr_error *error)
{
    char text[MR_SHAPE_TEXT_SIZE];
    const char *shape = mr_shape_text(f->shape, text, sizeof text);
    bool is_padded = f->form == MR_FIXED_LEN_SEQUENCE && !f->in_lists;
    if (f->in_context || f->in_lists)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%s%sNumber of values != expected.  values size: %zu but output shape: %s", name, key,
                              f->count, shape);
    if (single || (f->dtype == MR_STRING && !is_padded))
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "%s%sCan't parse serialized Example.", name, key);
    if (is_padded)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                              "%s%sNumber of %s values is not a multiple of stride length. Saw %zu values but output "
                              "shape is: [?%s%s",
                              name, key, kind_text(f->dtype), f->count, f->shape.rank > 0 ? "," : "", shape + 1);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT,
                          "%s%sNumber of %s values != expected.  Values size: %zu but output shape: %s", name, key,
                          kind_text(f->dtype), f->count, shape);
}

static mr_status damaged(const mr_kernel_call *call, const mr_example_fault *f, const char *name,
                         const mr_error *reason, mr_error *error)
{
    constexpr int LABEL_BYTES = 6; /* "Name: " */
    if (!f->in_context && !f->in_lists)
        return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Could not parse example input: %s",
                              reason->message);
    return mr_kernel_fail(call->node, error, MR_INVALID_ARGUMENT, "Invalid protocol message input, example id: %s%s",
                          name + LABEL_BYTES, reason->message);
}

mr_status mr_parse_fail(const mr_kernel_call *call, const mr_example_fault *fault, const mr_tensor *names, bool single,
                        mr_status status, const mr_error *reason, mr_error *error)
{
    char name[SHOWN_BYTES + 16], key[SHOWN_BYTES + 48];
    name_text(fault, names, single, name, sizeof name);
    key_text(fault, single, key, sizeof key);
    switch (fault->kind) {
    case MR_FAULT_NONE:
        return mr_fail(error, status, "%s", reason->message);
    case MR_FAULT_DAMAGED:
        return damaged(call, fault, name, reason, error);
    case MR_FAULT_MISSING:
        return missing(call, fault, name, error);
    case MR_FAULT_DTYPE:
        return wrong_dtype(call, fault, name, key, error);
    case MR_FAULT_COUNT:
        return wrong_count(call, fault, name, key, single, error);
    }
    return MR_INTERNAL;
}
