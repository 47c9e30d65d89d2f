/* The suites "networks", training steps of peer_networks.py, "conv", single layers of peer_conv.py, and "gemm",
 * products of peer_gemm.py, and "kernels", those of peer_kernels.py. All sides are fed from memory and run in turn. */
#include "tools/bench/run.h"

static const run_row rows[] = {
    {"mlp", 1.5, RUN_NETWORK},         {"cnn", 1.2, RUN_NETWORK},       {"resnet-20", 1.4, RUN_NETWORK},
    {"lstm", 1.5, RUN_NETWORK},        {"autoencoder", 1, RUN_NETWORK}, {"dcgan", 1.3, RUN_NETWORK},
    {"transformer", 1.2, RUN_NETWORK}, {"word2vec", 2, RUN_NETWORK},    {"resnet-50", 1.2, RUN_NETWORK},
};

BENCH(networks, "training steps of networks of the usual sizes")
{
    bench_run_rows(report, "networks", rows, sizeof rows / sizeof rows[0]);
}

BENCH(gemm, "products of matrices beside oneDNN, OpenBLAS and MKL")
{
    bench_run_tasks(report, "gemm", 0.95);
}

BENCH(conv, "convolutions of the usual networks, forward and both gradients")
{
    bench_run_tasks(report, "conv", 0.95);
}

BENCH(kernels, "reductions, softmax, pooling, moving, optimizers, random numbers")
{
    bench_run_tasks(report, "kernels", 0.95);
}
