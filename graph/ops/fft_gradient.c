/* Gradients of Fourier transforms: those of complex ones are the reverse transforms, scaled. Half of the result of a
 * real transform is that of a complex one, and the other half is not used. */
#include "graph/ir/graph.h"
#include "graph/ops/gradients.h"
#include <millrace/ops.h>

#define G call->grad_outputs[0]

/* The sizes of the last dimensions. */
static mr_output inner_sizes(mr_gradient_call *call, mr_output x, int32_t rank)
{
    mr_graph *g = call->graph;
    mr_output sizes = mr_gradient_shape(call, x), count = mr_constant_ints(g, MR_INTS(rank));
    return mr_slice(g, sizes, mr_sub(g, mr_shape_of(g, sizes), count), count);
}

/* The product of sizes as a scalar of like's dtype. */
static mr_output product(mr_gradient_call *call, mr_output sizes, mr_output like)
{
    mr_graph *g = call->graph;
    return mr_cast(g, mr_prod(g, sizes, mr_constant_ints(g, MR_INTS(0))), mr_output_dtype(like));
}

static mr_output transform(mr_gradient_call *call, mr_output x, int32_t rank, bool reverse)
{
    static const char *const names[2][3] = {{"FFT", "FFT2D", "FFT3D"}, {"IFFT", "IFFT2D", "IFFT3D"}};
    return mr_gradient_node(call, names[reverse][rank - 1], MR_OUTPUTS(x));
}

static void forward(mr_gradient_call *call, int32_t rank)
{
    call->grad_inputs[0] =
        mr_mul(call->graph, transform(call, G, rank, true), product(call, inner_sizes(call, G, rank), G));
}

static void reverse(mr_gradient_call *call, int32_t rank)
{
    call->grad_inputs[0] =
        mr_div(call->graph, transform(call, G, rank, false), product(call, inner_sizes(call, G, rank), G));
}

/* Pads with zeros, or crops, the last dimensions of x to the given sizes. */
static mr_output resized(mr_gradient_call *call, mr_output x, mr_output sizes, int32_t rank)
{
    mr_graph *g = call->graph;
    mr_output before = mr_gradient_shape(call, x), none = mr_constant_ints(g, MR_INTS(0));
    mr_output outer = mr_slice(g, before, none, mr_sub(g, mr_shape_of(g, before), mr_constant_ints(g, MR_INTS(rank))));
    mr_output after = mr_concat_v2(g, MR_OUTPUTS(outer, sizes), mr_constant_int32(g, 0));
    mr_output common = mr_minimum(g, before, after), zeros = mr_zeros_like(g, before);
    mr_output pads = mr_pack(g, MR_OUTPUTS(zeros, mr_sub(g, after, common)), .axis = 1);
    return mr_pad(g, mr_slice(g, x, zeros, common), pads);
}

/* The real part of the complex transform of the gradient, padded with zeros to the full length. */
static void real_forward(mr_gradient_call *call, int32_t rank)
{
    mr_graph *g = call->graph;
    mr_output x = gradient_input(call, 0), lengths = gradient_input(call, 1);
    mr_output padded = resized(call, G, lengths, rank);
    mr_output result = mr_real(g, transform(call, padded, rank, true), .Tout = mr_output_dtype(x));
    result = mr_mul(g, result, product(call, lengths, result));
    call->grad_inputs[0] = resized(call, result, inner_sizes(call, x, rank), rank);
}

/* The transform of the gradient; elements that stand for two of the full spectrum count twice. */
static void real_reverse(mr_gradient_call *call, int32_t rank)
{
    mr_graph *g = call->graph;
    mr_output x = gradient_input(call, 0), lengths = gradient_input(call, 1);
    mr_dtype dtype = mr_output_dtype(x);
    mr_output spectrum =
        rank == 1 ? mr_rfft(g, G, lengths, .Tcomplex = dtype) : mr_rfft2d(g, G, lengths, .Tcomplex = dtype);
    mr_output zero = mr_constant_int32(g, 0), one = mr_constant_int32(g, 1), two = mr_constant_int32(g, 2);
    mr_output length =
        mr_squeeze(g, mr_slice(g, lengths, mr_constant_ints(g, MR_INTS(rank - 1)), mr_constant_ints(g, MR_INTS(1))));
    mr_output k = mr_range(g, zero, mr_add_v2(g, mr_floor_div(g, length, two), one), one);
    mr_output first = mr_cast(g, mr_equal(g, k, zero), MR_INT32);
    mr_output middle = mr_cast(g, mr_equal(g, mr_mul(g, k, two), length), MR_INT32);
    mr_output counts = mr_sub(g, mr_sub(g, two, first), middle);
    mr_output factors = mr_div(g, mr_cast(g, counts, dtype), product(call, lengths, x));
    call->grad_inputs[0] = resized(call, mr_mul(g, spectrum, factors), inner_sizes(call, x, rank), rank);
}

#define GRADIENT(name, function, rank)                                                                                 \
    static void name(mr_gradient_call *call)                                                                           \
    {                                                                                                                  \
        function(call, rank);                                                                                          \
    }
GRADIENT(fft_gradient, forward, 1)
GRADIENT(fft2d_gradient, forward, 2)
GRADIENT(fft3d_gradient, forward, 3)
GRADIENT(ifft_gradient, reverse, 1)
GRADIENT(ifft2d_gradient, reverse, 2)
GRADIENT(ifft3d_gradient, reverse, 3)
GRADIENT(rfft_gradient, real_forward, 1)
GRADIENT(rfft2d_gradient, real_forward, 2)
GRADIENT(irfft_gradient, real_reverse, 1)
GRADIENT(irfft2d_gradient, real_reverse, 2)

static const mr_gradient gradients[] = {
    {"FFT", fft_gradient},       {"FFT2D", fft2d_gradient},     {"FFT3D", fft3d_gradient}, {"IFFT", ifft_gradient},
    {"IFFT2D", ifft2d_gradient}, {"IFFT3D", ifft3d_gradient},   {"RFFT", rfft_gradient},   {"RFFT2D", rfft2d_gradient},
    {"IRFFT", irfft_gradient},   {"IRFFT2D", irfft2d_gradient},
};

const mr_gradient_table mr_gradients_fft = {gradients, sizeof gradients / sizeof gradients[0]};
