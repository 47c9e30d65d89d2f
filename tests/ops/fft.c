/* Samples of the operators of graph/ops/fft.c. */
#include "tests/ops/sample.h"

/* clang-format off */
SAMPLES(
    {"FFT", "complex64[2,6]", ""},
    {"FFT2D", "complex128[2,3,37]", ""},
    {"FFT3D", "complex64[2,3,4,5]", ""},
    {"IFFT", "complex64[2,6]", ""},
    {"IFFT2D", "complex64[2,3,4]", ""},
    {"IFFT3D", "complex64[2,3,4,5]", ""},
    {"BatchFFT", "complex64[2,6]", ""},
    {"BatchFFT2D", "complex64[2,3,4]", ""},
    {"BatchFFT3D", "complex64[2,3,4,5]", ""},
    {"BatchIFFT", "complex64[2,6]", ""},
    {"BatchIFFT2D", "complex64[2,3,4]", ""},
    {"BatchIFFT3D", "complex64[2,3,4,5]", ""},
    {"RFFT", "float[2,6]; int32[1]=5", ""},
    {"RFFT2D", "float[2,6,5]; int32[2]=6,4", ""},
    {"RFFT3D", "double[2,6,5,4]; int32[3]=6,5,4", "Tcomplex=complex128"},
    {"IRFFT", "complex64[2,6]; int32[1]=9", ""},
    {"IRFFT2D", "complex64[2,6,5]; int32[2]=6,8", ""},
    {"IRFFT3D", "complex64[2,6,5,4]; int32[3]=6,5,6", ""})
/* clang-format on */
