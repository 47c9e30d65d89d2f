"""JAX: arrays of iterators."""
import gc
import os
import unittest

import numpy as np

from without_tensorflow import has, mr

if not has("jax"):
    raise unittest.SkipTest("JAX is not installed")

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

DS = mr.Dataset


class ArrayTest(unittest.TestCase):
    def test_dtypes(self):
        for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", "c8", "c16"):
            values = np.arange(6).reshape(3, 2).astype(dtype)
            with self.subTest(dtype):
                (whole,) = DS.from_tensors(values).jax()
                batch, rest = DS.from_tensor_slices(values).batch(2).jax()
                scalars = list(DS.from_tensor_slices(values[:, 1]).jax())
                pairs = ((whole, values), (batch, values[:2]), (rest, values[2:]), (scalars[1], values[1, 1]))
                for array, expected in pairs:
                    self.assertIsInstance(array, jax.Array)
                    # Without jax_enable_x64, JAX has no numbers of 64 bits.
                    self.assertEqual(array.dtype, jnp.asarray(values).dtype)
                    np.testing.assert_array_equal(np.asarray(array), expected.astype(array.dtype))

    def test_strings_and_empty(self):
        self.assertEqual(list(DS.from_tensor_slices(np.array([b"a", b"bc"])).jax()), [b"a", b"bc"])
        (empty,) = DS.from_tensors(np.zeros((0, 3), "f4")).jax()
        self.assertEqual((empty.shape, empty.dtype), ((0, 3), np.float32))

    def test_bfloat16(self):
        signature = mr.Spec("bfloat16", (3,))
        (array,) = DS.range(1).map(lambda x: jnp.array([1.5, 2, 3], jnp.bfloat16), signature).jax()
        self.assertEqual((array.dtype, array.tolist()), (jnp.bfloat16, [1.5, 2, 3]))

    def test_memory_is_shared(self):
        shared = 0
        for handle in DS.from_tensor_slices(np.zeros((64, 1024), "f4")).batch(8).dlpack():
            at = handle.numpy().__array_interface__["data"][0]
            array = jax.dlpack.from_dlpack(handle)
            shared += array.unsafe_buffer_pointer() == at
        self.assertEqual(shared, 8)

    def test_batches_live_and_keep_their_values(self):
        values = np.arange(6000.0, dtype="f4").reshape(100, 60)
        iterator = DS.from_tensor_slices(values).batch(7).jax()
        batches = list(iterator)
        del iterator
        gc.collect()
        junk = [list(DS.from_tensor_slices(-values).batch(7).jax()) for _ in range(3)]
        np.testing.assert_array_equal(np.concatenate([np.asarray(batch) for batch in batches]), values)
        self.assertEqual(len(junk), 3)

    def test_training_step(self):
        @jax.jit
        def step(weights, inputs, labels):
            def loss(w):
                return jnp.mean((inputs @ w - labels) ** 2)

            return weights - 0.1 * jax.grad(loss)(weights)

        rng = np.random.default_rng(1)
        inputs = rng.standard_normal((256, 4)).astype("f4")
        labels = inputs @ np.array([1, -2, 3, 0.5], "f4")
        weights = jnp.zeros(4)
        for x, y in DS.from_tensor_slices((inputs, labels)).shuffle(seed=1).repeat(20).batch(32).jax():
            weights = step(weights, x, y)
        np.testing.assert_allclose(np.asarray(weights), [1, -2, 3, 0.5], atol=1e-3)

    def test_state(self):
        iterator = DS.range(10).shuffle(seed=1).batch(3).jax()
        next(iterator)
        state = iterator.state()
        rest = [batch.tolist() for batch in iterator]
        iterator.restore(state)
        self.assertEqual([batch.tolist() for batch in iterator], rest)


if __name__ == "__main__":
    unittest.main()
