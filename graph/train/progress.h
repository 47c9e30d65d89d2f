/* Progress of a run: steps per second, time left and loss, as text that the caller prints. */
#ifndef MR_GRAPH_TRAIN_PROGRESS_H
#define MR_GRAPH_TRAIN_PROGRESS_H

#include <millrace/train.h>

typedef struct mr_progress {
    const mr_training_options *options; /* borrowed */
    int64_t first_step, step;
    double start, shown;                /* seconds; shown: time of the last text */
    double window_start, window_middle; /* the rate is measured over the steps since window_start, 2 to 4 seconds ago */
    int64_t window_start_step, window_middle_step;
    bool has_loss, line_is_open;
    float loss;
} mr_progress;

void mr_progress_begin(mr_progress *progress, const mr_training_options *options, int64_t step);
void mr_progress_loss(mr_progress *progress, float loss);
/* Call after each step. Reports it if enough time has passed. */
void mr_progress_step(mr_progress *progress, int64_t step);
/* Steps per second; 0 if not known yet. */
double mr_progress_rate(const mr_progress *progress);
/* Reports the last step and ends the line. done: nothing is left to do, also if no step ran. */
void mr_progress_end(mr_progress *progress, int64_t step, bool done);

#endif
