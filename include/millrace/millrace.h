/* All of millrace: records, datasets, graphs, training. */
#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

#include <millrace/api.h>
#include <millrace/control_flow.h>
#include <millrace/dataset.h>
#include <millrace/debug.h>
#include <millrace/device.h>
#include <millrace/dlpack.h>
#include <millrace/events.h>
#include <millrace/example.h>
#include <millrace/file.h>
#include <millrace/flags.h>
#include <millrace/formats.h>
#include <millrace/graph.h>
#include <millrace/hooks.h>
#include <millrace/image.h>
#include <millrace/layers.h>
#include <millrace/losses.h>
#include <millrace/metrics.h>
#include <millrace/model.h>
#include <millrace/monitored.h>
#include <millrace/ops.h>
#include <millrace/optimizer_wrappers.h>
#include <millrace/optimizers.h>
#include <millrace/processes.h>
#include <millrace/profiler.h>
#include <millrace/queue.h>
#include <millrace/queue_runners.h>
#include <millrace/record.h>
#include <millrace/rnn.h>
#include <millrace/run.h>
#include <millrace/saved_model.h>
#include <millrace/saver.h>
#include <millrace/seq2seq.h>
#include <millrace/session.h>
#include <millrace/session_manager.h>
#include <millrace/status.h>
#include <millrace/summary.h>
#include <millrace/supervisor.h>
#include <millrace/tensor.h>
#include <millrace/train.h>
#include <millrace/transform.h>
#include <millrace/variables.h>
#include <millrace/warm_start.h>

#endif
