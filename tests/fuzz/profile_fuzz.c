/* Fuzz target: a RunMetadata or an OpLogProto that is added to the profile of a small graph. Every view of what was
 * accepted can be made. */
#include <millrace/ops.h>
#include <millrace/profiler.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static mr_profile *make_profile(void)
{
    mr_graph *g = mr_graph_new();
    mr_profile *profile = nullptr;
    mr_output x = mr_placeholder(g, MR_FLOAT, .shape = MR_SHAPE(-1, 3), .name = "x");
    mr_output w = mr_variable_v2(g, MR_FLOAT, .shape = MR_SHAPE(3, 2), .name = "net/w");
    (void)mr_relu(g, mr_mat_mul(g, x, w, .name = "net/product"), .name = "net/Relu");
    if (mr_profile_new(g, &profile, nullptr) != MR_OK) abort();
    mr_graph_free(g);
    return profile;
}

static void check_entry(const mr_profile_entry *entry, const mr_profile_figures *above)
{
    if (entry->name == nullptr || entry->total.micros < 0 || entry->total.output_bytes < 0) abort();
    if (above != nullptr && entry->total.run_count > above->run_count) abort();
    for (int32_t i = 0; i < entry->child_count; i++) check_entry(entry->children[i], &entry->total);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    mr_profile *profile = make_profile();
    mr_error error = {0};
    mr_status status = mr_profile_add_run(profile, 1, MR_VALUE_(mr_string, (const char *)bytes, size_bytes), &error);
    if (status != MR_OK && error.message[0] == '\0') abort();
    (void)mr_profile_add_op_log(profile, MR_VALUE_(mr_string, (const char *)bytes, size_bytes), &error);
    for (int kind = MR_PROFILE_SCOPE; kind <= MR_PROFILE_CODE; kind++) {
        const mr_profile_options options = {.size = sizeof options, .select = 0xfff, .order_by = MR_PROFILE_MICROS};
        mr_profile_view *view = nullptr;
        status = mr_profile_view_new(profile, (mr_profile_kind)kind, &options, &view, &error);
        const bool has_no_traces = kind == MR_PROFILE_CODE && status == MR_NOT_FOUND;
        if (status != MR_OK && status != MR_RESOURCE_EXHAUSTED && !has_no_traces) abort();
        if (status == MR_OK) check_entry(mr_profile_view_root(view), nullptr);
        mr_profile_view_free(view);
    }
    mr_profile_advice *advice = nullptr;
    if (mr_profile_advise(profile, &advice, &error) == MR_OK) mr_profile_advice_free(advice);
    mr_profile_free(profile);
    return 0;
}
