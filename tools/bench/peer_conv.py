"""The layers of the suite "conv": each convolution of the usual networks alone, forward and both gradients."""
import numpy as np
import tensorflow.compat.v1 as tf

rng = np.random.default_rng(1)
# network, batch, then (size of the image, channels, filters, size of the filter, stride)
LAYERS = [
    ("lenet", 128, [(28, 1, 32, 5, 1), (14, 32, 64, 5, 1)]),
    ("resnet-20", 128, [(32, 3, 16, 3, 1), (32, 16, 16, 3, 1), (32, 16, 32, 3, 2), (16, 32, 32, 3, 1),
                        (8, 64, 64, 3, 1)]),
    ("vgg", 8, [(112, 64, 128, 3, 1), (28, 256, 512, 3, 1)]),
    ("dcgan", 32, [(64, 3, 64, 5, 2), (32, 64, 128, 5, 2), (16, 128, 256, 5, 2), (8, 256, 512, 5, 2)]),
    ("resnet-50", 16, [(224, 3, 64, 7, 2), (56, 64, 64, 1, 1), (56, 64, 64, 3, 1), (56, 64, 256, 1, 1),
                       (56, 256, 64, 1, 1), (56, 128, 128, 3, 2), (56, 256, 512, 1, 2), (28, 128, 512, 1, 1),
                       (28, 512, 128, 1, 1), (28, 128, 128, 3, 1), (14, 256, 1024, 1, 1), (14, 1024, 256, 1, 1),
                       (14, 256, 256, 3, 1), (14, 512, 512, 3, 2), (14, 1024, 2048, 1, 2), (7, 512, 2048, 1, 1),
                       (7, 2048, 512, 1, 1), (7, 512, 512, 3, 1)]),
]


def make(batch, size, channels, filters, window, stride, kind):
    out = -(-size // stride)
    image, kernel = [batch, size, size, channels], [window, window, channels, filters]
    result = [batch, out, out, filters]
    holder = lambda shape: tf.placeholder(tf.float32, shape)
    strides = [1, stride, stride, 1]
    if kind == "forward":
        inputs = [holder(image), holder(kernel)]
        y = tf.nn.conv2d(*inputs, strides, "SAME")
    elif kind == "input":
        inputs = [holder(kernel), holder(result)]
        y = tf.nn.conv2d_backprop_input(image, *inputs, strides, "SAME")
    else:
        inputs = [holder(image), holder(result)]
        y = tf.nn.conv2d_backprop_filter(inputs[0], kernel, inputs[1], strides, "SAME")
    return {x: rng.normal(size=x.shape.as_list()) for x in inputs}, [], [y.op]


CONVOLUTIONS = {
    f"{network} {size}x{channels} {window}x{window}x{filters}{' by 2' if stride == 2 else ''} {kind}":
        lambda arguments=(batch, size, channels, filters, window, stride, kind): make(*arguments)
    for network, batch, layers in LAYERS
    for size, channels, filters, window, stride in layers
    for kind in ["forward", "input", "filter"]
}  # fmt: skip
