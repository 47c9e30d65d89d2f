/* Discrete Fourier transforms. */
#include "graph/ir/op.h"

static mr_status unchanged(mr_shape_call *call, int32_t rank, mr_error *error)
{
    MR_TRY(mr_shape_at_least(call->inputs[0], rank, error));
    return mr_shape_unchanged(call, error);
}

/* fft_length specifies the sizes of the real array; the complex one has length / 2 + 1 elements in its last
 * dimension. */
static mr_status real_shape(mr_shape_call *call, int32_t rank, bool forward, mr_error *error)
{
    mr_shape input = call->inputs[0], lengths;
    int64_t count;
    const mr_partial *values = call->partials[1];
    MR_TRY(mr_shape_at_least(input, rank, error));
    MR_TRY(mr_shape_with_rank(call->inputs[1], 1, &lengths, error));
    MR_TRY(mr_size_merge(lengths.dims[0], rank, &count, error));
    if (input.rank < 0) return MR_OK;
    for (int32_t i = 0; i < rank; i++) {
        int64_t *size = &input.dims[input.rank - rank + i];
        bool known = values != nullptr && i < values->count && (values->known >> i & 1) != 0;
        *size = known ? values->values[i] : -1;
        if (*size >= 0 && forward && i == rank - 1 && *size != 0) *size = *size / 2 + 1;
    }
    call->outputs[0] = input;
    return MR_OK;
}

#define SHAPES(rank)                                                                                                   \
    static mr_status fft##rank##_shape(mr_shape_call *call, mr_error *error)                                           \
    {                                                                                                                  \
        return unchanged(call, rank, error);                                                                           \
    }                                                                                                                  \
    static mr_status rfft##rank##_shape(mr_shape_call *call, mr_error *error)                                          \
    {                                                                                                                  \
        return real_shape(call, rank, true, error);                                                                    \
    }                                                                                                                  \
    static mr_status irfft##rank##_shape(mr_shape_call *call, mr_error *error)                                         \
    {                                                                                                                  \
        return real_shape(call, rank, false, error);                                                                   \
    }
SHAPES(1)
SHAPES(2)
SHAPES(3)

static const mr_op fft_ops[] = {
    {.name = "FFT",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft1_shape,
     .doc = "Computes the discrete Fourier transform over the innermost dimension."},
    {.name = "BatchFFT",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft1_shape,
     .doc = "Computes the discrete Fourier transform over the innermost dimension; used by old graphs."},
    {.name = "FFT2D",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft2_shape,
     .doc = "Computes the discrete Fourier transform over the innermost 2 dimensions."},
    {.name = "BatchFFT2D",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft2_shape,
     .doc = "Computes the discrete Fourier transform over the innermost 2 dimensions; used by old graphs."},
    {.name = "FFT3D",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft3_shape,
     .doc = "Computes the discrete Fourier transform over the innermost 3 dimensions."},
    {.name = "BatchFFT3D",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft3_shape,
     .doc = "Computes the discrete Fourier transform over the innermost 3 dimensions; used by old graphs."},
    {.name = "IFFT",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft1_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost dimension."},
    {.name = "BatchIFFT",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft1_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost dimension; used by old graphs."},
    {.name = "IFFT2D",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft2_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost 2 dimensions."},
    {.name = "BatchIFFT2D",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft2_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost 2 dimensions; used by old graphs."},
    {.name = "IFFT3D",
     .signature = "input: Tcomplex -> output: Tcomplex",
     .attrs = "Tcomplex: {complex64, complex128} = complex64",
     .shape = fft3_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost 3 dimensions."},
    {.name = "BatchIFFT3D",
     .signature = "input: complex64 -> output: complex64",
     .shape = fft3_shape,
     .doc = "Computes the inverse discrete Fourier transform over the innermost 3 dimensions; used by old graphs."},
    {.name = "RFFT",
     .signature = "input: Treal, fft_length: int32 -> output: Tcomplex",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = rfft1_shape,
     .doc = "Computes the discrete Fourier transform of real numbers over the innermost dimension, without redundant "
            "elements."},
    {.name = "IRFFT",
     .signature = "input: Tcomplex, fft_length: int32 -> output: Treal",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = irfft1_shape,
     .doc = "Computes the inverse of RFFT: real numbers."},
    {.name = "RFFT2D",
     .signature = "input: Treal, fft_length: int32 -> output: Tcomplex",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = rfft2_shape,
     .doc = "Computes the discrete Fourier transform of real numbers over the innermost 2 dimensions, without "
            "redundant elements."},
    {.name = "IRFFT2D",
     .signature = "input: Tcomplex, fft_length: int32 -> output: Treal",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = irfft2_shape,
     .doc = "Computes the inverse of RFFT2D: real numbers."},
    {.name = "RFFT3D",
     .signature = "input: Treal, fft_length: int32 -> output: Tcomplex",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = rfft3_shape,
     .doc = "Computes the discrete Fourier transform of real numbers over the innermost 3 dimensions, without "
            "redundant elements."},
    {.name = "IRFFT3D",
     .signature = "input: Tcomplex, fft_length: int32 -> output: Treal",
     .attrs = "Treal: {float, double} = float; Tcomplex: {complex64, complex128} = complex64",
     .shape = irfft3_shape,
     .doc = "Computes the inverse of RFFT3D: real numbers."},
};

const mr_op_table mr_ops_fft = {fft_ops, sizeof fft_ops / sizeof fft_ops[0]};
