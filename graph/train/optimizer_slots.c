/* Slots of optimizers by TensorFlow's names (Optimizer.get_slot). */
#include "base/options.h"
#include "graph/train/optimizer_kinds.h"
#include "graph/train/optimizer_wrapper.h"

#include <assert.h>
#include <string.h>

/* In the order of the slots of a form. */
static const mr_name slot_names[][MR_OPTIMIZER_SLOTS_MAX] = {
    [MR_GRADIENT_DESCENT] = {nullptr},
    [MR_MOMENTUM] = {"momentum"},
    [MR_ADAM] = {"m", "v"},
    [MR_ADAGRAD] = {"accumulator"},
    [MR_ADADELTA] = {"accum", "accum_update"},
    [MR_RMS_PROP] = {"rms", "momentum"},
    [MR_FTRL] = {"accum", "linear"},
    [MR_ADAGRAD_DA] = {"gradient_accumulator", "gradient_squared_accumulator"},
    [MR_PROXIMAL_GRADIENT_DESCENT] = {nullptr},
    [MR_PROXIMAL_ADAGRAD] = {"accumulator"},
    [MR_LAZY_ADAM] = {"m", "v"},
    [MR_ADAM_W] = {"m", "v"},
    [MR_LARS] = {"momentum"},
    [MR_MOMENTUM_W] = {"momentum"},
    [MR_AMSGRAD] = {"m", "v", "vhat"},
    [MR_ADA_MAX] = {"m", "v"},
    [MR_POWER_SIGN] = {"m"},
    [MR_ADD_SIGN] = {"m"},
};
static const mr_name centered_names[MR_OPTIMIZER_SLOTS_MAX] = {"rms", "mg", "momentum"};

/* The optimizer inside of wrappers, and its form. Null: it is not valid. */
static const mr_optimizer_form *form_of(const mr_optimizer *given, mr_optimizer *optimizer)
{
    if (given == nullptr || MR_OPTIONS_READ(mr_optimizer, optimizer, given, nullptr) != MR_OK) return nullptr;
    while (optimizer->wrapper != nullptr) *optimizer = optimizer->wrapper->inner;
    return mr_optimizer_form_of(optimizer);
}

static mr_names names_of(const mr_optimizer *optimizer, const mr_optimizer_form *form)
{
    assert((size_t)optimizer->kind < sizeof slot_names / sizeof *slot_names);
    const bool is_centered = optimizer->kind == MR_RMS_PROP && optimizer->centered;
    return (mr_names){is_centered ? centered_names : slot_names[optimizer->kind], (int32_t)strlen(form->slots)};
}

mr_names mr_optimizer_slot_names(const mr_optimizer *optimizer)
{
    mr_optimizer inner;
    const mr_optimizer_form *form = form_of(optimizer, &inner);
    return form != nullptr ? names_of(&inner, form) : (mr_names){0};
}

/* The global variable "OWNER/FORM", or "OWNER/FORM_1", … */
static mr_variable find(const mr_graph *graph, const char *owner, const char *form, int32_t number)
{
    const size_t length = strlen(owner), form_length = strlen(form);
    for (int32_t i = 0; i < mr_graph_variable_count(graph, MR_GLOBAL_VARIABLES); i++) {
        const mr_variable variable = mr_graph_variable(graph, MR_GLOBAL_VARIABLES, i);
        const char *name = variable.ref.node != nullptr ? mr_node_name(variable.ref.node) : "";
        if (strncmp(name, owner, length) != 0 || name[length] != '/') continue;
        name += length + 1;
        if (strncmp(name, form, form_length) != 0) continue;
        name += form_length;
        const bool is_first = number == 0 && *name == '\0';
        if (is_first || (number > 0 && name[0] == '_' && name[1] == '0' + number && name[2] == '\0')) return variable;
    }
    return (mr_variable){0};
}

mr_variable mr_optimizer_slot(const mr_graph *graph, const mr_optimizer *optimizer, mr_variable variable,
                              const char *name)
{
    mr_optimizer inner;
    const mr_optimizer_form *form = form_of(optimizer, &inner);
    if (graph == nullptr || form == nullptr || name == nullptr || variable.ref.node == nullptr) return (mr_variable){0};
    const mr_names names = names_of(&inner, form);
    int32_t index = names.count - 1;
    while (index >= 0 && strcmp(names.items[index], name) != 0) index--;
    if (index < 0) return (mr_variable){0};
    const char *own = mr_optimizer_slot_name(&inner, form, index);
    int32_t number = 0; /* slots before it that have the same name */
    for (int32_t i = 0; i < index; i++) number += strcmp(mr_optimizer_slot_name(&inner, form, i), own) == 0;
    return find(graph, mr_node_name(variable.ref.node), own, number);
}
