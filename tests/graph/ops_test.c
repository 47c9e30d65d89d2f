/* The operator registry: every row can be parsed, is complete, and can be found. */
#include "builtin/builtin.h"
#include "graph/ir/graph.h"
#include "graph/ir/signature.h"
#include "tests/test.h"
#include <millrace/ops.h>

TEST(every_row_parses)
{
    mr_arena arena = {0};
    mr_builtin_register();
    CHECK(mr_op_count() > 200);
    for (int32_t i = 0; i < mr_op_count(); i++) {
        mr_error error = {0};
        mr_op_def def;
        const mr_op *op = mr_op_at(i)->op;
        CHECK_OK(mr_op_def_parse(op, &arena, &def, &error));
        if (op->shape == nullptr || op->doc == nullptr)
            test_fail(__FILE__, __LINE__, "%s has no shape function or no doc", op->name);
        mr_op_def_deinit(&def);
        CHECK(mr_op_find(op->name) == mr_op_at(i));
        if (i > 0) CHECK(strcmp(mr_op_at(i - 1)->op->name, op->name) < 0);
    }
    CHECK(mr_op_find("NoSuchOperator") == nullptr);
    mr_arena_deinit(&arena);
}

TEST(signature_describes_arguments)
{
    mr_arena arena = {0};
    mr_error error = {0};
    mr_op_def def;
    const mr_op op = {.name = "Test",
                      .signature = "ref: Ref(T), list: N * T, mixed: Tlist, fixed: int32, refs: Ref(N * T) -> out: T",
                      .attrs = "T: {float, int64} = float; N: int >= 2; Tlist: list(type) >= 1; "
                               "mode: {'A', 'B'} = 'B'; shape: shape = [2, -1]; open: shape = unknown; "
                               "ratio: float = 0.5; steps: list(int) = [1, -2]; flag: bool = true; f: func"};
    CHECK_OK(mr_op_def_parse(&op, &arena, &def, &error));
    CHECK_EQ(def.input_count, 5);
    CHECK(def.inputs[0].is_ref && strcmp(def.inputs[0].type_attr, "T") == 0);
    CHECK_STR(def.inputs[1].number_attr, "N");
    CHECK_STR(def.inputs[2].types_attr, "Tlist");
    CHECK_EQ(def.inputs[3].dtype, MR_INT32);
    CHECK(def.inputs[4].is_ref && def.inputs[4].number_attr != nullptr);
    CHECK_EQ(mr_op_def_attr(&def, "T")->allowed_types, 1u << MR_FLOAT | 1u << MR_INT64);
    CHECK_EQ(mr_op_def_attr(&def, "T")->default_value.type, MR_FLOAT);
    CHECK_EQ(mr_op_def_attr(&def, "N")->minimum, 2);
    CHECK_EQ(mr_op_def_attr(&def, "mode")->allowed_string_count, 2);
    CHECK(mr_shape_equal(mr_op_def_attr(&def, "shape")->default_value.shape, MR_SHAPE(2, -1)));
    CHECK_EQ(mr_op_def_attr(&def, "open")->default_value.shape.rank, -1);
    CHECK_EQ(mr_op_def_attr(&def, "steps")->default_list.values[1].integer, -2);
    CHECK(mr_op_def_attr(&def, "flag")->default_value.boolean);
    CHECK_EQ(mr_op_def_attr(&def, "f")->kind, MR_ATTR_FUNCTION);
    CHECK(mr_op_attr_is_deduced(&def, "Tlist") && !mr_op_attr_is_deduced(&def, "mode"));
    mr_arena_deinit(&arena);
}

TEST(invalid_row_is_an_error_with_its_position)
{
    mr_arena arena = {0};
    const mr_op rows[] = {
        {.name = "A", .signature = "x: T -> y: T", .attrs = "T: {float, nothing}"},
        {.name = "B", .signature = "x: U -> y: T", .attrs = "T: type"},
        {.name = "C", .signature = "x: float", .attrs = ""},
        {.name = "D", .signature = "-> y: float", .attrs = "a: int = x"},
        {.name = "E", .signature = "-> y: float,", .attrs = nullptr},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mr_error error = {0};
        mr_op_def def;
        CHECK_STATUS(mr_op_def_parse(&rows[i], &arena, &def, &error), MR_INTERNAL);
        CHECK(strstr(error.message, rows[i].name) != nullptr);
    }
    mr_arena_deinit(&arena);
}
