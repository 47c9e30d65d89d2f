"""GenerateVocabRemapping and LoadAndRemapMatrix give TensorFlow's results."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from ops_compare import add, generator, main, values

ROWS, COLUMNS = 40, 7


def vocabularies(directory):
    words = [f"word{i}" for i in range(60)]
    for name, count in (("old", ROWS), ("new", 30)):
        with open(os.path.join(directory, name), "w") as file:
            file.write("".join(word + "\n" for word in generator.permutation(words)[:count]))
    for offset, count in ((0, 30), (5, 10), (29, 1), (30, 0)):
        for size in (-1, 13):
            add("GenerateVocabRemapping", 0, new_vocab_file=os.path.join(directory, "new"),
                old_vocab_file=os.path.join(directory, "old"), new_vocab_offset=offset, num_new_vocab=count,
                old_vocab_size=size)


def ids(count, size, missing):
    result = generator.permutation(size)[:count].astype(np.int64)
    result[generator.permutation(count)[:missing]] = -1
    return result


def matrices(directory):
    path = os.path.join(directory, "model")
    matrix = values([ROWS, COLUMNS])
    for name, slices in (("matrix", [""]), ("parts", ["40 7 0,16:-", "40 7 16,24:-"])):
        parts = [matrix] if len(slices) == 1 else [matrix[:16], matrix[16:]]
        file = path + name
        tf.raw_ops.SaveV2(prefix=file, tensor_names=[name] * len(slices), shape_and_slices=slices, tensors=parts)
    return path


def load(path):
    for name in ("matrix", "parts"):
        for rows, missing in ((40, 0), (12, 3), (5, 5), (0, 0), (33, 20)):
            for columns, lost in ((0, 0), (7, 0), (4, 2), (3, 3)):
                for most in (-1, 1, 6):
                    row_ids, column_ids = ids(rows, ROWS, missing), ids(columns, COLUMNS, lost)
                    width = columns or COLUMNS
                    count = rows * width - (rows - missing) * (width - lost)
                    add("LoadAndRemapMatrix", 0, ckpt_path=path + name, old_tensor_name=name, row_remapping=row_ids,
                        col_remapping=column_ids, initializing_values=values([count]), num_rows=rows, num_cols=width,
                        max_rows_in_memory=most)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        with tf.init_scope():
            saved = matrices(scratch)
        main(lambda: vocabularies(scratch), lambda: load(saved))
