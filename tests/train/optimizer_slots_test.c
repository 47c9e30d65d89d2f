/* Slots by the names that TensorFlow gives them. */
#include "tests/test.h"

#include <millrace/millrace.h>
#include <string.h>

/* The names of TensorFlow's get_slot_names, and of the variables of get_slot. */
static void check_slots(mr_graph *g, const mr_optimizer *optimizer, mr_names names, mr_names variables)
{
    mr_error error = {0};
    mr_variable w = mr_get_variable(g, "w", MR_SHAPE(2), .initializer = {.kind = MR_INIT_ONES});
    mr_variable other = mr_get_variable(g, "other", MR_SCALAR);
    const mr_output loss = mr_l2_loss(g, w.value);
    for (int32_t i = 0; i < names.count; i++)
        CHECK(mr_optimizer_slot(g, optimizer, w, names.items[i]).ref.node == nullptr); /* not yet */
    (void)mr_minimize(g, optimizer, loss, mr_global_step(g).ref, .variables = MR_VARIABLES(w));
    CHECK_OK(mr_graph_status(g, &error));
    const mr_names found = mr_optimizer_slot_names(optimizer);
    CHECK_EQ(found.count, names.count);
    for (int32_t i = 0; i < names.count; i++) {
        CHECK_STR(found.items[i], names.items[i]);
        const mr_variable slot = mr_optimizer_slot(g, optimizer, w, names.items[i]);
        CHECK(slot.ref.node != nullptr);
        CHECK_STR(mr_node_name(slot.ref.node), variables.items[i]);
        CHECK(mr_optimizer_slot(g, optimizer, other, names.items[i]).ref.node == nullptr);
    }
    CHECK(mr_optimizer_slot(g, optimizer, w, "none").ref.node == nullptr);
    CHECK(mr_optimizer_slot(g, optimizer, w, nullptr).ref.node == nullptr);
    CHECK(mr_optimizer_slot(g, optimizer, (mr_variable){0}, "m").ref.node == nullptr);
    CHECK(mr_optimizer_slot(nullptr, optimizer, w, "m").ref.node == nullptr);
    CHECK(mr_optimizer_slot(g, nullptr, w, "m").ref.node == nullptr);
    mr_graph_free(g);
}

TEST(optimizers_have_slots_by_name)
{
    check_slots(mr_graph_new(), mr_gradient_descent(.learning_rate = 1), (mr_names){0}, (mr_names){0});
    check_slots(mr_graph_new(), mr_momentum(.learning_rate = 1, .momentum = 0.9f), MR_NAMES("momentum"),
                MR_NAMES("w/Momentum"));
    check_slots(mr_graph_new(), mr_adam(), MR_NAMES("m", "v"), MR_NAMES("w/Adam", "w/Adam_1"));
    check_slots(mr_graph_new(), mr_lazy_adam(), MR_NAMES("m", "v"), MR_NAMES("w/Adam", "w/Adam_1"));
    check_slots(mr_graph_new(), mr_adagrad(.learning_rate = 1), MR_NAMES("accumulator"), MR_NAMES("w/Adagrad"));
    check_slots(mr_graph_new(), mr_adadelta(), MR_NAMES("accum", "accum_update"),
                MR_NAMES("w/Adadelta", "w/Adadelta_1"));
    check_slots(mr_graph_new(), mr_rms_prop(.learning_rate = 1), MR_NAMES("rms", "momentum"),
                MR_NAMES("w/RMSProp", "w/RMSProp_1"));
    check_slots(mr_graph_new(), mr_rms_prop(.learning_rate = 1, .centered = true), MR_NAMES("rms", "mg", "momentum"),
                MR_NAMES("w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"));
    check_slots(mr_graph_new(), mr_ftrl(.learning_rate = 1), MR_NAMES("accum", "linear"),
                MR_NAMES("w/Ftrl", "w/Ftrl_1"));
    check_slots(mr_graph_new(), mr_adagrad_da(.learning_rate = 1),
                MR_NAMES("gradient_accumulator", "gradient_squared_accumulator"),
                MR_NAMES("w/AdagradDA", "w/AdagradDA_1"));
    check_slots(mr_graph_new(), mr_proximal_adagrad(.learning_rate = 1), MR_NAMES("accumulator"),
                MR_NAMES("w/ProximalAdagrad"));
    check_slots(mr_graph_new(), mr_amsgrad(), MR_NAMES("m", "v", "vhat"),
                MR_NAMES("w/AMSGrad", "w/AMSGrad_1", "w/AMSGrad_2"));
    mr_graph *g = mr_graph_new();
    check_slots(g, mr_loss_scale_optimizer(g, mr_adam(), .fixed_loss_scale = 8), MR_NAMES("m", "v"),
                MR_NAMES("w/Adam", "w/Adam_1"));
}
