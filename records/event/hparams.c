/* Events for TensorBoard's plugin HParams: a tensor without elements, whose metadata is a message of the plugin. */
#include "base/options.h"
#include "proto/event.pb-c.h"
#include "proto/plugins.pb-c.h"
#include "proto/proto.h"
#include "records/event/event.h"

#include <math.h>
#include <millrace/events.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static mr_status now_unless(double *secs, const char *where, mr_error *error)
{
    if (!isfinite(*secs) || *secs < 0)
        return mr_fail(error, MR_INVALID_ARGUMENT, "%s: the time is %g s, but must be finite and not negative", where,
                       *secs);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (*secs == 0) *secs = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    return MR_OK;
}

static char *text_of(const char *text)
{
    return (char *)(text != nullptr ? text : protobuf_c_empty_string);
}

/* Writes data under a tag of the plugin. The arena contains the data's parts and is freed. */
static mr_status add(mr_event_writer *writer, const char *tag, Mr__HparamsPluginData *data, mr_arena *arena,
                     mr_error *error)
{
    constexpr int32_t dtype_float = 1;
    Mr__TensorShapeProto__Dim none = MR__TENSOR_SHAPE_PROTO__DIM__INIT, *dims[] = {&none};
    Mr__TensorShapeProto shape = MR__TENSOR_SHAPE_PROTO__INIT;
    Mr__TensorProto tensor = MR__TENSOR_PROTO__INIT;
    Mr__SummaryMetadata__PluginData plugin = MR__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    Mr__SummaryMetadata metadata = MR__SUMMARY_METADATA__INIT;
    Mr__Summary__Value value = MR__SUMMARY__VALUE__INIT, *values[] = {&value};
    Mr__Summary summary = MR__SUMMARY__INIT;
    Mr__Event event = MR__EVENT__INIT;
    mr_string content = {0};
    mr_status status = mr_proto_pack(data, arena, &content, error);
    shape.n_dim = 1;
    shape.dim = dims;
    tensor.dtype = dtype_float;
    tensor.tensor_shape = &shape;
    plugin.plugin_name = (char *)"hparams";
    plugin.content = (ProtobufCBinaryData){.len = content.size_bytes, .data = (uint8_t *)content.data};
    metadata.plugin_data = &plugin;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = MR__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    summary.n_value = 1;
    summary.value = values;
    event.what_case = MR__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    if (status == MR_OK) status = mr_event_writer_append(writer, &event, error);
    mr_arena_deinit(arena);
    return status;
}

static mr_status write_value(const mr_hparam *hparam, const char *where, Mr__HparamValue *value, mr_error *error)
{
    mr__hparam_value__init(value);
    switch (hparam->type) {
    case MR_HPARAM_STRING:
        value->kind_case = MR__HPARAM_VALUE__KIND_STRING_VALUE;
        value->string_value = text_of(hparam->text);
        return MR_OK;
    case MR_HPARAM_BOOL:
        value->kind_case = MR__HPARAM_VALUE__KIND_BOOL_VALUE;
        value->bool_value = hparam->flag;
        return MR_OK;
    case MR_HPARAM_FLOAT64:
        value->kind_case = MR__HPARAM_VALUE__KIND_NUMBER_VALUE;
        value->number_value = hparam->number;
        return MR_OK;
    }
    return mr_fail(error, MR_INVALID_ARGUMENT, "hyperparameter %s: type %d is not one of mr_hparam_type", where,
                   (int)hparam->type);
}

static mr_status check_list(const char *what, const void *items, int32_t count, mr_error *error)
{
    if (count == 0 || (count > 0 && items != nullptr)) return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "the list of %s has %d items%s", what, count,
                   items == nullptr ? ", but is null" : "");
}

static mr_status check_name(const char *name, const char *what, int32_t index, mr_error *error)
{
    if (name != nullptr && *name != '\0') return MR_OK;
    return mr_fail(error, MR_INVALID_ARGUMENT, "%s %d has no name", what, index);
}

static mr_status write_hparams(const mr_hparam *hparams, int32_t count, mr_arena *arena, Mr__HparamSessionStart *start,
                               mr_error *error)
{
    size_t length = (size_t)count;
    Mr__HparamSessionStart__Entry *entries = MR_ARENA_NEW(arena, Mr__HparamSessionStart__Entry, length);
    Mr__HparamValue *values = MR_ARENA_NEW(arena, Mr__HparamValue, length);
    start->hparams = MR_ARENA_NEW(arena, Mr__HparamSessionStart__Entry *, length);
    if (count > 0 && (entries == nullptr || values == nullptr || start->hparams == nullptr))
        return mr_fail_memory(error, length * sizeof *entries);
    for (int32_t i = 0; i < count; i++) {
        MR_TRY(check_name(hparams[i].name, "hyperparameter", i, error));
        for (int32_t j = 0; j < i; j++)
            if (strcmp(hparams[j].name, hparams[i].name) == 0)
                return mr_fail(error, MR_INVALID_ARGUMENT, "hyperparameter %s is given twice", hparams[i].name);
        MR_TRY(write_value(&hparams[i], hparams[i].name, &values[i], error));
        mr__hparam_session_start__entry__init(&entries[i]);
        entries[i].key = (char *)hparams[i].name;
        entries[i].value = &values[i];
        start->hparams[i] = &entries[i];
    }
    start->n_hparams = length;
    return MR_OK;
}

mr_status mr_event_writer_add_hparams_start(mr_event_writer *writer, const mr_hparam *hparams, int32_t count,
                                            const mr_hparams_start_options *given, mr_error *error)
{
    mr_hparams_start_options options;
    MR_TRY(MR_OPTIONS_READ(mr_hparams_start_options, &options, given, error));
    MR_TRY(check_list("hyperparameters", hparams, count, error));
    MR_TRY(now_unless(&options.start_time_secs, "the start of a run", error));
    mr_arena arena = {0};
    Mr__HparamSessionStart start = MR__HPARAM_SESSION_START__INIT;
    Mr__HparamsPluginData data = MR__HPARAMS_PLUGIN_DATA__INIT;
    start.group_name = text_of(options.group_name);
    start.model_uri = text_of(options.model_uri);
    start.monitor_url = text_of(options.monitor_url);
    start.start_time_secs = options.start_time_secs;
    data.data_case = MR__HPARAMS_PLUGIN_DATA__DATA_SESSION_START_INFO;
    data.session_start_info = &start;
    mr_status status = write_hparams(hparams, count, &arena, &start, error);
    if (status == MR_OK) return add(writer, "_hparams_/session_start_info", &data, &arena, error);
    mr_arena_deinit(&arena);
    return status;
}

mr_status mr_event_writer_add_hparams_end(mr_event_writer *writer, mr_hparams_status status, double end_time_secs,
                                          mr_error *error)
{
    if (status < MR_HPARAMS_SUCCESS || status > MR_HPARAMS_RUNNING)
        return mr_fail(error, MR_INVALID_ARGUMENT, "the end of a run: status %d is not one of mr_hparams_status",
                       (int)status);
    MR_TRY(now_unless(&end_time_secs, "the end of a run", error));
    mr_arena arena = {0};
    Mr__HparamSessionEnd end = MR__HPARAM_SESSION_END__INIT;
    Mr__HparamsPluginData data = MR__HPARAMS_PLUGIN_DATA__INIT;
    end.status = (int32_t)status;
    end.end_time_secs = end_time_secs;
    data.data_case = MR__HPARAMS_PLUGIN_DATA__DATA_SESSION_END_INFO;
    data.session_end_info = &end;
    return add(writer, "_hparams_/session_end_info", &data, &arena, error);
}

/* ---- Experiments ---- */

static mr_status write_domain(const mr_hparam_info *given, mr_arena *arena, Mr__HparamInfo *info, mr_error *error)
{
    MR_TRY(check_list("discrete values", given->discrete, given->discrete_count, error));
    if (given->has_interval) {
        if (given->discrete_count > 0 || given->type != MR_HPARAM_FLOAT64 || !(given->min <= given->max))
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "hyperparameter %s: an interval is of float64, with min <= max and without discrete values",
                           given->name);
        Mr__HparamInterval *interval = MR_ARENA_NEW(arena, Mr__HparamInterval, 1);
        if (interval == nullptr) return mr_fail_memory(error, sizeof *interval);
        mr__hparam_interval__init(interval);
        interval->min_value = given->min;
        interval->max_value = given->max;
        info->domain_case = MR__HPARAM_INFO__DOMAIN_DOMAIN_INTERVAL;
        info->domain_interval = interval;
    } else if (given->discrete_count > 0) {
        size_t length = (size_t)given->discrete_count;
        Mr__HparamValues *list = MR_ARENA_NEW(arena, Mr__HparamValues, 1);
        Mr__HparamValue *values = MR_ARENA_NEW(arena, Mr__HparamValue, length);
        Mr__HparamValue **items = MR_ARENA_NEW(arena, Mr__HparamValue *, length);
        if (list == nullptr || values == nullptr || items == nullptr)
            return mr_fail_memory(error, length * sizeof *values);
        mr__hparam_values__init(list);
        for (size_t i = 0; i < length; i++) {
            if (given->discrete[i].type != given->type)
                return mr_fail(error, MR_INVALID_ARGUMENT, "hyperparameter %s: discrete value %zu is of another type",
                               given->name, i);
            MR_TRY(write_value(&given->discrete[i], given->name, &values[i], error));
            items[i] = &values[i];
        }
        list->n_values = length;
        list->values = items;
        info->domain_case = MR__HPARAM_INFO__DOMAIN_DOMAIN_DISCRETE;
        info->domain_discrete = list;
    }
    return MR_OK;
}

static mr_status write_infos(const mr_hparams_experiment_options *o, mr_arena *arena, Mr__HparamExperiment *experiment,
                             mr_error *error)
{
    size_t length = (size_t)o->hparam_count;
    Mr__HparamInfo *infos = MR_ARENA_NEW(arena, Mr__HparamInfo, length);
    experiment->hparam_infos = MR_ARENA_NEW(arena, Mr__HparamInfo *, length);
    if (length > 0 && (infos == nullptr || experiment->hparam_infos == nullptr))
        return mr_fail_memory(error, length * sizeof *infos);
    for (size_t i = 0; i < length; i++) {
        const mr_hparam_info *given = &o->hparams[i];
        MR_TRY(check_name(given->name, "hyperparameter", (int32_t)i, error));
        if (given->type < MR_HPARAM_STRING || given->type > MR_HPARAM_FLOAT64)
            return mr_fail(error, MR_INVALID_ARGUMENT, "hyperparameter %s: type %d is not one of mr_hparam_type",
                           given->name, (int)given->type);
        mr__hparam_info__init(&infos[i]);
        infos[i].name = (char *)given->name;
        infos[i].display_name = text_of(given->display_name);
        infos[i].description = text_of(given->description);
        infos[i].type = (int32_t)given->type;
        MR_TRY(write_domain(given, arena, &infos[i], error));
        experiment->hparam_infos[i] = &infos[i];
    }
    experiment->n_hparam_infos = length;
    return MR_OK;
}

static mr_status write_metrics(const mr_hparams_experiment_options *o, mr_arena *arena,
                               Mr__HparamExperiment *experiment, mr_error *error)
{
    constexpr int32_t training = 1, validation = 2;
    size_t length = (size_t)o->metric_count;
    Mr__HparamMetricInfo *infos = MR_ARENA_NEW(arena, Mr__HparamMetricInfo, length);
    Mr__HparamMetricName *names = MR_ARENA_NEW(arena, Mr__HparamMetricName, length);
    experiment->metric_infos = MR_ARENA_NEW(arena, Mr__HparamMetricInfo *, length);
    if (length > 0 && (infos == nullptr || names == nullptr || experiment->metric_infos == nullptr))
        return mr_fail_memory(error, length * sizeof *infos);
    for (size_t i = 0; i < length; i++) {
        const mr_hparam_metric *given = &o->metrics[i];
        MR_TRY(check_name(given->tag, "metric", (int32_t)i, error));
        if (given->is_training && given->is_validation)
            return mr_fail(error, MR_INVALID_ARGUMENT, "metric %s is both of training and of validation", given->tag);
        mr__hparam_metric_name__init(&names[i]);
        names[i].group = text_of(given->group);
        names[i].tag = (char *)given->tag;
        mr__hparam_metric_info__init(&infos[i]);
        infos[i].name = &names[i];
        infos[i].display_name = text_of(given->display_name);
        infos[i].description = text_of(given->description);
        infos[i].dataset_type = given->is_training ? training : given->is_validation ? validation : 0;
        experiment->metric_infos[i] = &infos[i];
    }
    experiment->n_metric_infos = length;
    return MR_OK;
}

mr_status mr_event_writer_add_hparams_experiment(mr_event_writer *writer, const mr_hparams_experiment_options *given,
                                                 mr_error *error)
{
    mr_hparams_experiment_options options;
    MR_TRY(MR_OPTIONS_READ(mr_hparams_experiment_options, &options, given, error));
    MR_TRY(check_list("hyperparameters", options.hparams, options.hparam_count, error));
    MR_TRY(check_list("metrics", options.metrics, options.metric_count, error));
    MR_TRY(now_unless(&options.time_created_secs, "an experiment", error));
    mr_arena arena = {0};
    Mr__HparamExperiment experiment = MR__HPARAM_EXPERIMENT__INIT;
    Mr__HparamsPluginData data = MR__HPARAMS_PLUGIN_DATA__INIT;
    experiment.description = text_of(options.description);
    experiment.user = text_of(options.user);
    experiment.time_created_secs = options.time_created_secs;
    data.data_case = MR__HPARAMS_PLUGIN_DATA__DATA_EXPERIMENT;
    data.experiment = &experiment;
    mr_status status = write_infos(&options, &arena, &experiment, error);
    if (status == MR_OK) status = write_metrics(&options, &arena, &experiment, error);
    if (status == MR_OK) return add(writer, "_hparams_/experiment", &data, &arena, error);
    mr_arena_deinit(&arena);
    return status;
}
