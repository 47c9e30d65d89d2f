/* How a run is told of: rate over the last seconds, time left, loss; as text for the caller to write. */
#ifndef MR_GRAPH_TRAIN_PROGRESS_H
#define MR_GRAPH_TRAIN_PROGRESS_H

#include <millrace/train.h>

typedef struct mr_progress {
    const mr_training_options *options; /* borrowed */
    int64_t first_step, step;
    double start, shown;                /* seconds; shown: when text was last given */
    double window_start, window_middle; /* the rate is of the steps since window_start, 2 to 4 seconds ago */
    int64_t window_start_step, window_middle_step;
    bool has_loss, line_is_open;
    float loss;
} mr_progress;

void mr_progress_begin(mr_progress *progress, const mr_training_options *options, int64_t step);
void mr_progress_loss(mr_progress *progress, float loss);
/* After each step; shows it when it is time. */
void mr_progress_step(mr_progress *progress, int64_t step);
/* Steps a second, 0 when not known yet. */
double mr_progress_rate(const mr_progress *progress);
/* Shows the last step and ends the line; done, when there is nothing left to do, also when nothing was done. */
void mr_progress_end(mr_progress *progress, int64_t step, bool done);

#endif
