/* Samples of the operators of graph/ops/quantized.c. */
#include "tests/ops/sample.h"

/* clang-format off */
#define LIMITS "; float[]=-1; float[]=2"
SAMPLES(
    {"QuantizedAdd", "quint8[2,3]; quint8[3]" LIMITS LIMITS, ""},
    {"QuantizedMul", "quint8[2,3]; quint8[3]" LIMITS LIMITS, ""},
    {"QuantizedBiasAdd", "quint8[2,3]; quint8[3]" LIMITS LIMITS, "out_type=qint32"},
    {"QuantizedMatMul", "quint8[2,3]; quint8[3,4]" LIMITS LIMITS, ""},
    {"QuantizedConv2D", "quint8[2,4,5,3]; quint8[2,3,3,2]" LIMITS LIMITS, "strides=1,1,1,1; padding=SAME"},
    {"QuantizedMaxPool", "quint8[2,4,5,3]" LIMITS, "ksize=1,2,3,1; strides=1,1,2,1; padding=SAME"},
    {"QuantizedAvgPool", "quint8[2,4,5,3]" LIMITS, "ksize=1,2,3,1; strides=1,1,2,1; padding=VALID"},
    {"QuantizedRelu", "quint8[2,3]" LIMITS, ""},
    {"QuantizedRelu6", "qint32[2,3]" LIMITS, "out_type=qint32"},
    {"QuantizedReluX", "quint8[2,3]; float[]=1" LIMITS, ""},
    {"QuantizedConcat", "int32[]=1; quint8[2,3]+quint8[2,4]; float[]=-1+float[]=-2; float[]=2+float[]=1", ""},
    {"QuantizedBatchNormWithGlobalNormalization",
     "quint8[2,4,5,3]" LIMITS "; quint8[3]" LIMITS "; quint8[3]" LIMITS "; quint8[3]" LIMITS "; quint8[3]" LIMITS,
     "out_type=qint32; variance_epsilon=0.001; scale_after_normalization=true"},
    {"QuantizedInstanceNorm", "quint8[2,4,5,3]" LIMITS, ""},
    {"QuantizedResizeBilinear", "quint8[2,4,5,3]; int32[2]=6,7" LIMITS, ""},
    {"QuantizeDownAndShrinkRange", "qint32[2,3]" LIMITS, "out_type=quint8"},
    {"RequantizationRange", "qint32[2,3]" LIMITS, ""},
    {"Requantize", "qint32[2,3]" LIMITS LIMITS, "out_type=quint8"})
/* clang-format on */
