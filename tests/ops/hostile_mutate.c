/* The mutations of a hostile case. Each changes one thing: a size everywhere it occurs, a rank, a dtype, a value, the
 * number of inputs, an attr, or the source of a tensor. */
#include "tests/ops/hostile.h"

static const int64_t sizes[] = {0, 0, 0, 1, 1, 2, 5, 7, 17, 1ll << 31, 1ll << 62, INT64_MAX};
static const int64_t extremes[] = {0,
                                   1,
                                   -1,
                                   -2,
                                   2,
                                   3,
                                   4,
                                   5,
                                   8,
                                   9,
                                   INT32_MAX,
                                   INT32_MIN,
                                   -INT32_MAX,
                                   1ll << 31,
                                   1 << 28,
                                   1ll << 62,
                                   100000,
                                   INT64_MAX,
                                   INT64_MIN,
                                   1ll << 32,
                                   INT32_MAX - 1,
                                   INT64_MIN + 1,
                                   255,
                                   256,
                                   -128,
                                   64,
                                   65};
#define COUNT(list) ((int64_t)(sizeof(list) / sizeof(list)[0]))
#define PICK(random, list) ((list)[mr_random_below(random, (uint64_t)COUNT(list))])

static int below(mr_random *random, int limit)
{
    return (int)mr_random_below(random, (uint64_t)limit);
}

static bool one_in(mr_random *random, int count)
{
    return below(random, count) == 0;
}

/* Keeps all tensors of the tests small: if the product of the sizes is large, one of them becomes zero. */
static void bound(mr_shape *shape, mr_random *random)
{
    constexpr int64_t elements_max = 1 << 14;
    int64_t count = mr_shape_count(*shape);
    if (shape->rank > 0 && (count < 0 || count > elements_max)) shape->dims[below(random, shape->rank)] = 0;
}

/* Replaces one size wherever it occurs, also among the values, so that the inputs still match. */
static void replace_size(hostile_case *c, mr_random *random)
{
    hostile_input *input = &c->inputs[below(random, c->input_count)];
    if (input->shape.rank <= 0) return;
    int64_t old = input->shape.dims[below(random, input->shape.rank)], size = PICK(random, sizes);
    bool with_values = one_in(random, 2);
    for (int i = 0; i < c->input_count; i++) {
        for (int d = 0; d < c->inputs[i].shape.rank; d++)
            if (c->inputs[i].shape.dims[d] == old) c->inputs[i].shape.dims[d] = size;
        for (int v = 0; with_values && v < c->inputs[i].value_count; v++)
            if (c->inputs[i].values[v] == old) c->inputs[i].values[v] = size;
        bound(&c->inputs[i].shape, random);
    }
}

static void change_shape(hostile_input *input, mr_random *random)
{
    mr_shape *shape = &input->shape;
    switch (below(random, 6)) {
    case 0:
        *shape = MR_SCALAR;
        break;
    case 1:
        if (shape->rank > 0) shape->rank--;
        break;
    case 2:
        if (shape->rank < MR_RANK_MAX) shape->dims[shape->rank++] = PICK(random, sizes);
        break;
    case 3:
        while (shape->rank < MR_RANK_MAX) shape->dims[shape->rank++] = 1;
        break;
    default:
        if (shape->rank > 0) shape->dims[below(random, shape->rank)] = PICK(random, sizes);
        break;
    }
    bound(shape, random);
}

static void change_values(hostile_input *input, mr_random *random)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "no/such/directory/file",
                                        "0 0 0,1",
                                        "3 4 0,2:-",
                                        "%s%n",
                                        "a text of more than sixty-three bytes, which is as much as some buffers hold"};
    if (input->dtype == MR_STRING) {
        input->text = PICK(random, texts);
        return;
    }
    if (input->value_count == 0) {
        input->special = 1 + below(random, 16);
        input->values[input->value_count++] = PICK(random, extremes);
        for (int i = below(random, 3); i > 0; i--) input->values[input->value_count++] = below(random, 4);
        return;
    }
    if (one_in(random, 6) && input->value_count < HOSTILE_VALUES_MAX) {
        input->values[input->value_count++] = PICK(random, extremes);
        if (input->shape.rank == 1) input->shape.dims[0] = input->value_count;
        return;
    }
    input->values[below(random, input->value_count)] = PICK(random, extremes);
}

static mr_dtype pick_dtype(const mr_op_attr *rule, mr_random *random)
{
    for (int tries = 0; tries < 50; tries++) {
        mr_dtype dtype = (mr_dtype)(1 + below(random, MR_DTYPE_COUNT - 1));
        bool is_allowed = rule == nullptr || rule->allowed_types == 0 || (rule->allowed_types >> dtype & 1) != 0;
        if (is_allowed && (mr_dtype_size(dtype) > 0 || one_in(random, 8))) return dtype;
    }
    return MR_FLOAT;
}

static const mr_op_argument *argument_of(const hostile_case *c, int input)
{
    int argument = -1;
    for (int i = 0; i <= input; i++) argument += c->inputs[i].opens_argument;
    return argument >= 0 && argument < c->def->input_count ? &c->def->inputs[argument] : nullptr;
}

/* Changes all inputs of one type attr, so that they still agree; rarely a single one. */
static void change_dtype(hostile_case *c, mr_random *random)
{
    int chosen = below(random, c->input_count);
    const mr_op_argument *argument = argument_of(c, chosen);
    bool alone = argument == nullptr || argument->type_attr == nullptr || one_in(random, 10);
    const mr_op_attr *rule = alone ? nullptr : mr_op_def_attr(c->def, argument->type_attr);
    mr_dtype dtype = pick_dtype(rule, random);
    for (int i = 0; i < c->input_count; i++) {
        const mr_op_argument *other = argument_of(c, i);
        bool is_alike = !alone && other != nullptr && other->type_attr != nullptr &&
                        strcmp(other->type_attr, argument->type_attr) == 0;
        if ((i == chosen || is_alike) && c->inputs[i].form != HOSTILE_NULL_HANDLE) c->inputs[i].dtype = dtype;
    }
    for (int i = 0; i < c->attr_count && !alone; i++)
        if (strcmp(c->attrs[i].name, argument->type_attr) == 0 && c->attrs[i].kind == MR_ATTR_TYPE)
            c->attrs[i].ints[0] = dtype;
}

static void change_count(hostile_case *c, mr_random *random)
{
    int at = below(random, c->input_count);
    if (one_in(random, 2) || c->input_count == HOSTILE_INPUTS_MAX) {
        memmove(&c->inputs[at], &c->inputs[at + 1], (size_t)(c->input_count - at - 1) * sizeof c->inputs[0]);
        c->input_count--;
        return;
    }
    memmove(&c->inputs[at + 1], &c->inputs[at], (size_t)(c->input_count - at) * sizeof c->inputs[0]);
    c->inputs[at + 1].opens_argument = one_in(random, 8);
    c->input_count++;
}

static void change_form(hostile_case *c, mr_random *random)
{
    hostile_input *input = &c->inputs[below(random, c->input_count)];
    if (input->form == HOSTILE_TENSOR && !one_in(random, 6)) {
        input->source = (hostile_source)below(random, HOSTILE_SOURCE_COUNT);
    } else if (input->form == HOSTILE_REF || input->form == HOSTILE_HANDLE) {
        if (one_in(random, 2))
            input->is_uninitialized = true;
        else if (one_in(random, 2))
            input->form = HOSTILE_FIRST_VARIABLE;
        else
            input->form = input->form == HOSTILE_REF ? HOSTILE_TENSOR : HOSTILE_OTHER_HANDLE + below(random, 2);
    } else {
        input->form = (hostile_form)below(random, HOSTILE_NULL_HANDLE + 1);
    }
}

/* ---- Attrs ---- */

static hostile_attr *find_attr(hostile_case *c, const mr_op_attr *rule)
{
    for (int i = 0; i < c->attr_count; i++)
        if (strcmp(c->attrs[i].name, rule->name) == 0) return &c->attrs[i];
    if (c->attr_count == HOSTILE_ATTRS_MAX) return nullptr;
    hostile_attr *attr = &c->attrs[c->attr_count++];
    *attr = (hostile_attr){.name = rule->name, .kind = rule->kind, .is_list = rule->is_list, .text = ""};
    attr->count = rule->is_list && rule->has_default ? rule->default_list.count : 1;
    if (attr->count > HOSTILE_VALUES_MAX) attr->count = HOSTILE_VALUES_MAX;
    for (int i = 0; i < attr->count && rule->is_list && rule->has_default; i++)
        attr->ints[i] = rule->default_list.values[i].integer;
    if (rule->kind == MR_ATTR_TYPE) attr->ints[0] = MR_FLOAT;
    return attr;
}

static void change_list(hostile_attr *attr, mr_random *random)
{
    int32_t count = one_in(random, 2) ? 0 : 1 + below(random, HOSTILE_VALUES_MAX);
    for (int32_t i = attr->count; i < count; i++)
        attr->ints[i] = attr->kind == MR_ATTR_TYPE ? MR_FLOAT : PICK(random, extremes);
    attr->count = count;
}

static const char *pick_word(const mr_op_attr *rule, mr_random *random)
{
    static const char *const words[] = {"", "NCHW", "SAME ", "no such word",
                                        "a text of more than sixty-three bytes, which is as much as some buffers hold"};
    if (rule->allowed_string_count > 0 && !one_in(random, 6))
        return rule->allowed_strings[below(random, rule->allowed_string_count)];
    return PICK(random, words);
}

static void change_attr(hostile_case *c, mr_random *random)
{
    static const float numbers[] = {0, -0.0f, 1, -1, 0.5f, 1e-30f, 3e38f, -3e38f, NAN, INFINITY, -INFINITY};
    if (c->def->attr_count == 0) return;
    const mr_op_attr *rule = &c->def->attrs[below(random, c->def->attr_count)];
    if (mr_op_attr_is_deduced(c->def, rule->name) && !one_in(random, 8)) return;
    hostile_attr *attr = find_attr(c, rule);
    if (attr == nullptr) return;
    if (one_in(random, 20)) {
        attr->kind = (mr_attr_kind)(MR_ATTR_STRING + below(random, MR_ATTR_TENSOR - MR_ATTR_STRING + 1));
        attr->is_list = one_in(random, 2);
        attr->count = attr->is_list ? attr->count : 1;
        return;
    }
    if (attr->is_list && one_in(random, 4)) {
        change_list(attr, random);
        return;
    }
    int at = attr->count > 0 ? below(random, attr->count) : 0;
    switch (attr->kind) {
    case MR_ATTR_INT:
        attr->ints[at] = one_in(random, 2) ? below(random, 12) - 3 : PICK(random, extremes);
        break;
    case MR_ATTR_BOOL:
        attr->ints[0] = one_in(random, 2);
        break;
    case MR_ATTR_TYPE:
        attr->ints[at] = pick_dtype(one_in(random, 8) ? nullptr : rule, random);
        break;
    case MR_ATTR_FLOAT:
        attr->number = PICK(random, numbers);
        break;
    case MR_ATTR_SHAPE:
        if (one_in(random, 3) || attr->shape.rank <= 0)
            attr->shape = one_in(random, 2) ? MR_SHAPE_UNKNOWN : MR_SHAPE(2, -1, 1ll << 62);
        else
            attr->shape.dims[below(random, attr->shape.rank)] = PICK(random, extremes);
        break;
    case MR_ATTR_TENSOR:
        attr->ints[0] = pick_dtype(nullptr, random);
        attr->shape = one_in(random, 2) ? MR_SCALAR : MR_SHAPE(PICK(random, sizes) % 32);
        break;
    default:
        attr->text = pick_word(rule, random);
        break;
    }
}

void hostile_mutate(hostile_case *changed, mr_random *random)
{
    int kind = changed->input_count == 0 ? 12 : below(random, 16);
    if (kind < 4)
        replace_size(changed, random);
    else if (kind < 6)
        change_shape(&changed->inputs[below(random, changed->input_count)], random);
    else if (kind < 9)
        change_values(&changed->inputs[below(random, changed->input_count)], random);
    else if (kind < 10)
        change_dtype(changed, random);
    else if (kind < 11)
        change_count(changed, random);
    else if (kind < 12)
        change_form(changed, random);
    else
        change_attr(changed, random);
}
