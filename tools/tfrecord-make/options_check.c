/* Options that have no effect: see options_table.h. */
#include "tfrecord-make/options_table.h"

#include "tfrecord-make/make.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static int find_row(const char *name)
{
    int i = 0;
    while (i < OPTION_ROW_COUNT && strcmp(option_rows[i].name, name) != 0) i++;
    assert(i < OPTION_ROW_COUNT); /* a new option needs a row */
    return i;
}

void options_give(options *options, const char *name)
{
    options->given |= UINT64_C(1) << find_row(name);
}

bool options_is_given(const options *options, const char *name)
{
    return options->given >> find_row(name) & 1;
}

/* Describes kinds of input in words: "lists and tables", "CSV, COCO". */
static void describe_inputs(uint32_t inputs, char *text, size_t size_bytes)
{
    static const struct {
        uint32_t inputs;
        const char *text;
    } names[] = {{INPUT_LISTS | INPUT_TABLES, "lists and tables"},
                 {INPUT_CSV, "CSV"},
                 {INPUT_LISTS, "lists of images"},
                 {INPUT_TABLES, "tables"},
                 {INPUT_LIST_CSV, "a CSV list of images"},
                 {INPUT_LIST_JSON, "a JSON Lines list of images"},
                 {INPUT_TABLE_CSV, "a CSV table"},
                 {INPUT_TABLE_JSON, "a JSON Lines table"},
                 {INPUT_DIRECTORY, "class directories"},
                 {INPUT_COCO, "COCO"},
                 {INPUT_VOC, "VOC"},
                 {INPUT_NUMPY, "NumPy"},
                 {INPUT_TAR, "tar"}};
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if ((inputs & names[i].inputs) != names[i].inputs) continue;
        inputs &= ~names[i].inputs;
        used += (size_t)snprintf(text + used, size_bytes - used, "%s%s", used ? ", " : "", names[i].text);
        assert(used < size_bytes);
    }
}

mr_status options_check_mode(const options *options, mr_error *error)
{
    for (int i = 0; i < OPTION_ROW_COUNT; i++) {
        const option_row *row = &option_rows[i];
        if ((options->given >> i & 1) == 0) continue;
        if (row->needs && !options_is_given(options, row->needs))
            return mr_fail(error, MR_INVALID_ARGUMENT, "--%s has no effect without --%s", row->name, row->needs);
        for (int j = 0; j < 2; j++)
            if (row->conflicts[j] && options_is_given(options, row->conflicts[j]))
                return mr_fail(error, MR_INVALID_ARGUMENT, "--%s has no effect with --%s", row->name,
                               row->conflicts[j]);
        if (row->is_for_making && options->survey)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--%s has no effect with --survey, which writes no records",
                           row->name);
        if (row->is_for_ranks && !worker_has_rank())
            return mr_fail(error, MR_INVALID_ARGUMENT,
                           "--%s has no effect here: it applies only to processes started by mpirun or srun",
                           row->name);
    }
    return MR_OK;
}

mr_status options_check_input(const options *options, input_kind kind, mr_error *error)
{
    char found[64], wanted[256];
    for (int i = 0; i < OPTION_ROW_COUNT; i++) {
        const option_row *row = &option_rows[i];
        if ((options->given >> i & 1) == 0 || (row->inputs & kind)) continue;
        describe_inputs(kind, found, sizeof(found));
        describe_inputs(row->inputs, wanted, sizeof(wanted));
        return mr_fail(error, MR_INVALID_ARGUMENT, "--%s applies to %s, but %s is read as %s", row->name, wanted,
                       options->input, found);
    }
    return MR_OK;
}

mr_status options_check_images(const options *options, input_kind kind, mr_error *error)
{
    for (int i = 0; i < OPTION_ROW_COUNT; i++)
        if ((options->given >> i & 1) && option_rows[i].is_for_images)
            return mr_fail(error, MR_INVALID_ARGUMENT, "--%s applies to images, but %s contains none%s",
                           option_rows[i].name, options->input,
                           kind == INPUT_NUMPY ? "; --image ARRAY names the array of images" : "");
    return MR_OK;
}
