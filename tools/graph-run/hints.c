#include "graph-run/hints.h"

#include "graph-run/restore.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "--first A or --first B": the initializers that are iterators' or variables'. Returns their number. */
static int list_firsts(const about *a, bool of_iterators, char *text, size_t size)
{
    int count = 0;
    size_t used = 0;
    *text = '\0';
    for (int32_t i = 0; i < a->initializers.count && count < 4; i++) {
        const mr_node *node = a->initializers.items[i];
        bool is_fitting = of_iterators ? strcmp(mr_node_op(node), "MakeIterator") == 0
                                       : i < a->top_initializers && strcmp(mr_node_op(node), "NoOp") == 0;
        if (!is_fitting) continue;
        int length = snprintf(text + used, size - used, "%s--first %s", count ? " or " : "", mr_node_name(node));
        if (length < 0 || (size_t)length >= size - used) return count;
        used += (size_t)length;
        count++;
    }
    return count;
}

static void add_firsts(mr_model *model, bool of_iterators, mr_error *error)
{
    about a;
    char firsts[400], before[MR_ERROR_SIZE];
    snprintf(before, sizeof before, "%s", error->message);
    if (about_find(model, &a, nullptr) == MR_OK && list_firsts(&a, of_iterators, firsts, sizeof firsts) > 0)
        (void)mr_fail(error, error->status, "%.600s (%s%s)", before, firsts,
                      of_iterators ? "" : ", or --restore a checkpoint");
    about_deinit(&a);
}

void hints_add(mr_model *model, const options *o, mr_error *error)
{
    static const char waited[] = "Timed out waiting for notification", device[] = "session.device: ";
    char before[MR_ERROR_SIZE];
    snprintf(before, sizeof before, "%s", error->message);
    const char *at = strstr(before, waited);
    if (at && o->timeout > 0)
        (void)mr_fail(error, error->status, "%.*snot finished after %g s (--timeout %g)%s", (int)(at - before), before,
                      o->timeout, o->timeout, at + strlen(waited));
    else if (strncmp(before, device, strlen(device)) == 0)
        (void)mr_fail(error, error->status, "--device: %s", before + strlen(device));
    else if (strstr(before, "the iterator has not been initialized"))
        add_firsts(model, true, error);
    else if (strstr(before, "uninitialized value") || strstr(before, "Could not find variable"))
        add_firsts(model, false, error);
}

void hints_add_graph(const char *path, mr_error *error)
{
    char prefix[4096], meta[sizeof prefix + 8], before[MR_ERROR_SIZE];
    mr_error unused = {0};
    if (restore_find(path, prefix, sizeof prefix, &unused) != MR_OK) return;
    snprintf(before, sizeof before, "%s", error->message);
    snprintf(meta, sizeof meta, "%s.meta", prefix);
    if (strcmp(meta, path) == 0 || access(meta, R_OK) != 0) return;
    (void)mr_fail(error, error->status, "%.600s (the graph of this checkpoint is in %.1000s)", before, meta);
}
