"""Trains a linear classifier on a directory of images with JAX.

    python jax_loop.py photos"""
import os
import sys

import jax
import jax.numpy as jnp

import millrace as mr


@jax.jit
def step(weights, images, labels):
    def loss(weights):
        scores = jax.nn.log_softmax(images.reshape(len(images), -1) @ weights)
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1))

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.001 * gradient, value


def main(directory):
    dataset = mr.Dataset.image_directory(directory).shuffle(seed=1).repeat(3)
    dataset = dataset.decode_image(32, crop="random_resized", flip=True, mean=124, std=58)
    dataset = dataset.batch(8, drop_remainder=True).prefetch()
    weights = jnp.zeros((32 * 32 * 3, len(os.listdir(directory))))
    for number, (images, labels, names) in enumerate(dataset.jax()):
        weights, loss = step(weights, images, labels)
        if number % 100 == 0:
            print(f"step {number}: loss {loss:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
