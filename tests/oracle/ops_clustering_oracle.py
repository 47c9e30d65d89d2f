"""k-means: the same choices and neighbors as TensorFlow's."""
import numpy as np
from ops_compare import add, main, values


def clustering():
    for seed in [0, 1, 77, 2**40 + 3]:
        for points, samples in [([1, 1], 1), ([20, 3], 4), ([50, 2], 12), ([300, 8], 12)]:
            for retries in [0, 1, -1, 5]:
                add("KmeansPlusPlusInitialization", 0, points=values(points), num_to_sample=samples, seed=seed,
                    num_retries_per_sample=retries)
        for count in [1, 2, 40, 500]:
            add("KMC2ChainInitialization", 0, distances=values([count], low=0), seed=seed)
    for points, centers, k in [([1, 1], [1, 1], 1), ([9, 3], [5, 3], 1), ([9, 3], [5, 3], 3), ([9, 3], [5, 3], 9),
                               ([200, 16], [3000, 16], 7), ([4, 2], [0, 2], 2), ([4, 2], [3, 2], 0)]:
        add("NearestNeighbors", 1e-5, points=values(points), centers=values(centers), k=np.int64(k))


main(clustering)
