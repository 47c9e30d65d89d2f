"""Embeddings, sampling losses, wide models, factorization, clustering, text."""
from training import *


def word_pairs(step, vocabulary, batch):
    center = ints(step, vocabulary, batch)
    return center, ((center + ints(step, 3, batch, salt=1) + 1) % vocabulary)[:, None].astype(np.int64)


@each(kind=["nce", "sampled_softmax", "negative"])
def word2vec(kind):
    vocabulary, size, batch = 30, 8, 16
    center, context = tf.placeholder(tf.int32, [batch]), tf.placeholder(tf.int64, [batch, 1])
    with tf.device("/cpu:0"):
        embeddings = tf.Variable(tf.random_uniform([vocabulary, size], -1.0, 1.0), name="embeddings")
        embed = tf.nn.embedding_lookup(embeddings, center)
    weights = tf.Variable(tf.truncated_normal([vocabulary, size], stddev=1.0 / np.sqrt(size)))
    biases = tf.Variable(tf.zeros([vocabulary]))
    if kind == "nce":
        losses = tf.nn.nce_loss(weights=weights, biases=biases, labels=context, inputs=embed, num_sampled=6,
                                num_classes=vocabulary)
    elif kind == "sampled_softmax":
        losses = tf.nn.sampled_softmax_loss(weights=weights, biases=biases, labels=context, inputs=embed,
                                            num_sampled=6, num_classes=vocabulary, seed=9)
    else:
        sampled, _, _ = tf.nn.fixed_unigram_candidate_sampler(
            context, 1, 6, False, vocabulary, distortion=0.75, unigrams=list(range(1, vocabulary + 1)), seed=3)
        true = tf.reduce_sum(embed * tf.gather(weights, context[:, 0]), 1)
        noise = tf.matmul(embed, tf.gather(weights, sampled), transpose_b=True) + tf.gather(biases, sampled)
        losses = tf.nn.softplus(-true) + tf.reduce_sum(tf.nn.softplus(noise), 1)
    loss = tf.reduce_mean(losses)
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized = embeddings / norm
    similarity = tf.matmul(tf.nn.embedding_lookup(normalized, tf.constant([1, 2, 3])), normalized, transpose_b=True)
    nearest = tf.nn.top_k(similarity, 4)
    return Training(([loss], [train]), ([nearest.values, similarity], []),
                    feed=lambda i: dict(zip([center, context], word_pairs(i, vocabulary, batch))))


@each(kind=["uniform", "log_uniform", "learned_unigram"])
def candidate_sampler(kind):
    true = tf.placeholder(tf.int64, [4, 1])
    sampler = getattr(tf.nn, {"uniform": "uniform_candidate_sampler", "log_uniform": "log_uniform_candidate_sampler",
                              "learned_unigram": "learned_unigram_candidate_sampler"}[kind])
    ids, true_count, count = sampler(true, 1, 5, True, 20, seed=3)
    w = tf.get_variable("w", [20])
    loss = tf.reduce_sum(tf.square(tf.gather(w, ids)))
    loss = loss + tf.reduce_sum(tf.log(true_count)) + tf.reduce_sum(tf.log(count))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return Training(([loss, ids], [train]), feed=lambda i: {true: ints(i, 20, 4, 1, dtype=np.int64)})


@each(kind=["mod", "div"])
def partitioned_embedding(kind):
    """Variables in four parts, looked up with embedding_lookup_sparse; FTRL and Adagrad on the parts."""
    ids = tf.sparse_placeholder(tf.int64, name="ids")
    weights = tf.sparse_placeholder(tf.float32, name="weights")
    y = tf.placeholder(tf.float32, [4])
    table = tf.get_variable("table", [18, 5], partitioner=tf.fixed_size_partitioner(4),
                            initializer=tf.truncated_normal_initializer(stddev=0.3))
    bags = [tf.nn.embedding_lookup_sparse(table, ids, weights, partition_strategy=kind, combiner=c)
            for c in ("sum", "mean", "sqrtn")]
    bags.append(tf.nn.safe_embedding_lookup_sparse(list(table), ids, default_id=3, partition_strategy=kind))
    with tf.variable_scope("dense", partitioner=tf.min_max_variable_partitioner(3, min_slice_size=4)):
        logits = tf.layers.dense(tf.reshape(tf.concat(bags, 1), [4, 20]), 1)[:, 0]
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    loss += 1e-3 * tf.nn.l2_loss(tf.convert_to_tensor(table))
    train = tf.train.AdagradOptimizer(0.2).minimize(loss)

    def feed(i):
        counts = [1, 3, 2, 1]
        index = np.array([[b, t] for b, k in enumerate(counts) for t in range(k)], np.int64)
        shape = np.array([4, 3], np.int64)
        return {ids.indices: index, ids.values: ints(i, 18, 7, dtype=np.int64), ids.dense_shape: shape,
                weights.indices: index, weights.values: np.abs(floats(i, 7)) + 0.1, weights.dense_shape: shape,
                y: ints(i, 2, 4, salt=1).astype(np.float32)}

    return Training(([loss], [train]), feed=feed)


@program
def wide_and_deep():
    """Columns of tf.feature_column: buckets, hashes, crosses, vocabularies, embeddings; two optimizers."""
    c = tf.feature_column
    features = {
        "age": tf.placeholder(tf.float32, [None, 1]),
        "hours": tf.placeholder(tf.float32, [None, 1]),
        "education": tf.placeholder(tf.string, [None, 1]),
        "job": tf.placeholder(tf.string, [None, 1]),
    }
    y = tf.placeholder(tf.float32, [None, 1])
    age, hours = c.numeric_column("age", normalizer_fn=lambda v: v / 100), c.numeric_column("hours")
    buckets = c.bucketized_column(c.numeric_column("age"), [18, 25, 40, 65])
    education = c.categorical_column_with_vocabulary_list("education", ["school", "college", "master"],
                                                          num_oov_buckets=1)
    job = c.categorical_column_with_hash_bucket("job", 10)
    cross = c.crossed_column([buckets, "education"], 20)
    wide = c.linear_model(features, [buckets, education, job, cross])
    h = c.input_layer(features, [age, hours, c.indicator_column(education), c.embedding_column(job, 4)])
    with tf.variable_scope("dnn"):
        for units in (8, 4):
            h = tf.layers.dense(h, units, tf.nn.relu)
        deep = tf.layers.dense(h, 1)
    logits = wide + deep
    loss = tf.losses.sigmoid_cross_entropy(y, logits)
    linear = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "linear_model")
    others = [v for v in tf.trainable_variables() if v not in linear]
    step = tf.train.get_or_create_global_step()
    train = tf.group(
        tf.train.FtrlOptimizer(0.2, l1_regularization_strength=1e-3).minimize(loss, var_list=linear),
        tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=others))
    with tf.control_dependencies([train]):
        train = tf.assign_add(step, 1).op
    with tf.name_scope("metrics"):
        auc, update_auc = tf.metrics.auc(y, tf.sigmoid(logits))
        accuracy, update = tf.metrics.accuracy(y, tf.round(tf.sigmoid(logits)))

    def feed(i):
        ages = ints(i, 80, 8, 1)
        word = lambda salt, *words: np.array(words, object)[ints(i, len(words), 8, 1, salt=salt)]
        return {features["age"]: ages.astype(np.float32), features["hours"]: floats(i, 8, 1),
                features["education"]: word(1, "school", "college", "master", "none"),
                features["job"]: word(2, "clerk", "driver", "teacher", "cook", "nurse"), y: (ages > 40) * 1.0}

    return Training(([loss], [train]), ([], [update_auc.op, update.op]), ([auc, accuracy], []), feed=feed)


@program
def matrix_factorization():
    users, items = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None])
    rating = tf.placeholder(tf.float32, [None])
    with tf.variable_scope("factors", regularizer=lambda w: 1e-3 * tf.nn.l2_loss(w)):
        p = tf.get_variable("users", [12, 4], initializer=tf.random_normal_initializer(stddev=0.3))
        q = tf.get_variable("items", [9, 4], initializer=tf.random_normal_initializer(stddev=0.3))
    bias = tf.get_variable("bias", [9], initializer=tf.zeros_initializer())
    mean = tf.get_variable("mean", [], initializer=tf.constant_initializer(3.0))
    predicted = mean + tf.gather(bias, items) + tf.reduce_sum(
        tf.nn.embedding_lookup(p, users) * tf.nn.embedding_lookup(q, items), 1)
    loss = tf.losses.mean_squared_error(rating, predicted) + tf.losses.get_regularization_loss()
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-4).minimize(loss)
    rmse = tf.sqrt(tf.reduce_mean(tf.square(rating - predicted)))
    best = tf.nn.top_k(tf.matmul(p, q, transpose_b=True), 3).values
    return Training(([loss, rmse], [train]), ([best], []), feed=lambda i: {
        users: ints(i, 12, 10), items: ints(i, 9, 10, salt=1), rating: ints(i, 5, 10, salt=2) + 1.0})


@program
def factorization_machine():
    x = tf.sparse_placeholder(tf.float32, shape=[6, 20])
    y = tf.placeholder(tf.float32, [6, 1])
    v = tf.get_variable("v", [20, 4], initializer=tf.random_normal_initializer(stddev=0.1))
    w = tf.get_variable("w", [20, 1], initializer=tf.zeros_initializer())
    squared = tf.SparseTensor(x.indices, tf.square(x.values), x.dense_shape)
    pairs = 0.5 * tf.reduce_sum(tf.square(tf.sparse_tensor_dense_matmul(x, v))
                                - tf.sparse_tensor_dense_matmul(squared, tf.square(v)), 1, keepdims=True)
    linear = tf.sparse_tensor_dense_matmul(x, w)
    loss = tf.losses.log_loss(y, tf.sigmoid(linear + pairs + tf.sparse_reduce_sum(x, 1, keep_dims=True) * 0.01))
    train = tf.train.FtrlOptimizer(0.1).minimize(loss)

    def feed(i):
        flat = np.sort(rng(i).choice(120, 30, replace=False))
        return {x: tf.SparseTensorValue(np.stack([flat // 20, flat % 20], 1), np.ones(30, np.float32), [6, 20]),
                y: ints(i, 2, 6, 1).astype(np.float32)}

    return Training(([loss], [train]), feed=feed)


@program
def k_means():
    """Mini-batches that move centers with scatter operations and counts per cluster."""
    x = tf.placeholder(tf.float32, [12, 2])
    centers = tf.Variable(tf.random_normal([4, 2], seed=1), name="centers", trainable=False)
    counts = tf.Variable(tf.zeros([4]), name="counts", trainable=False)
    history = tf.Variable(tf.zeros([4], tf.int64), name="last_used", trainable=False)
    step = tf.train.get_or_create_global_step()
    distances = tf.reduce_sum(tf.squared_difference(x[:, None], centers[None]), 2)
    nearest = tf.argmin(distances, 1)
    inertia = tf.reduce_sum(tf.reduce_min(distances, 1))
    sums = tf.unsorted_segment_sum(x, nearest, 4)
    found, _, number = tf.unique_with_counts(nearest)
    with tf.control_dependencies([sums, inertia]):
        count = tf.scatter_add(counts, found, tf.cast(number, tf.float32))
    moved = (tf.gather(sums, found) - tf.gather(centers, found) * tf.cast(number, tf.float32)[:, None]) / tf.gather(
        count, found)[:, None]
    update = tf.scatter_add(centers, found, moved)
    used = tf.scatter_update(history, found, tf.fill(tf.shape(found), step))
    with tf.control_dependencies([update, used]):
        advance = tf.assign_add(step, 1)
    return Training(([inertia], [advance]), ([history, counts], []), feed=lambda i: {x: blobs(i, 12, 2, 4)[0]})


@program
def gaussian_mixture():
    """Expectation maximization with assignments, Cholesky factors and triangular solves."""
    x = tf.placeholder(tf.float32, [20, 2])
    mean = tf.Variable(floats(3, 3, 2), name="mean")
    covariance = tf.Variable(tf.eye(2, batch_shape=[3]) * 2, name="covariance")
    logit = tf.Variable(tf.zeros([3]), name="weights")
    factor = tf.cholesky(covariance)
    centered = x[None] - mean[:, None]
    whitened = tf.matrix_triangular_solve(factor, tf.transpose(centered, [0, 2, 1]))
    log_det = 2 * tf.reduce_sum(tf.log(tf.matrix_diag_part(factor)), 1)
    log_p = -0.5 * (tf.reduce_sum(tf.square(whitened), 1) + log_det[:, None] + 2 * np.log(2 * np.pi))
    joint = log_p + tf.nn.log_softmax(logit)[:, None]
    evidence = tf.reduce_logsumexp(joint, 0)
    r = tf.exp(joint - evidence)
    total = tf.reduce_sum(r, 1)
    new_mean = tf.matmul(r, x) / total[:, None]
    moved = x[None] - new_mean[:, None]
    new_covariance = tf.einsum("kn,kni,knj->kij", r, moved, moved) / total[:, None, None] + 0.05 * tf.eye(2)
    loss = -tf.reduce_mean(evidence)
    with tf.control_dependencies([loss, new_mean, new_covariance, total]):
        update = tf.group(mean.assign(new_mean), covariance.assign(new_covariance), logit.assign(tf.log(total)))
    return Training(([loss], [update]), feed=lambda i: {x: blobs(i, 20, 2, 3)[0]}, steps=10, tolerance=1e-3)


@program
def logistic_regression_by_newton():
    """Hessians from tf.gradients and tf.hessians, a linear solve."""
    x, y = tf.placeholder(tf.float32, [16, 4]), tf.placeholder(tf.float32, [16])
    w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
    z = tf.tensordot(x, w, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z)) + 0.05 * tf.nn.l2_loss(w)
    gradient, hessian = tf.gradients(loss, w)[0], tf.hessians(loss, w)[0]
    step = tf.squeeze(tf.matrix_solve(hessian + 0.01 * tf.eye(4), gradient[:, None]), 1)
    train = tf.assign_sub(w, step)
    with tf.control_dependencies([loss]):
        train = tf.group(train)
    return Training(([hessian], []), ([loss], [train]), feed=lambda i: {
        x: floats(i, 16, 4), y: ints(i, 2, 16).astype(np.float32)}, steps=8)


@program
def text_classification():
    """Strings in the graph: lower case, split, a lookup table with unknown buckets, padded batches, convolutions."""
    text, y = tf.placeholder(tf.string, [None]), tf.placeholder(tf.int32, [None])
    words = ["good", "bad", "film", "very", "not", "the"]
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(words, np.arange(len(words), dtype=np.int64)), 3)
    reverse = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(np.arange(len(words), dtype=np.int64), words), "UNK")
    clean = tf.strings.regex_replace(tf.strings.lower(text), "[^a-z ]", "")
    tokens = tf.string_split(clean)
    ids = tf.SparseTensor(tokens.indices, table.lookup(tokens.values), tokens.dense_shape)
    dense = tf.sparse_tensor_to_dense(ids, default_value=9)
    back = reverse.lookup(tf.minimum(dense, 10))
    h = tf.nn.embedding_lookup(tf.get_variable("table", [10, 6]), dense)
    h = tf.concat([tf.reduce_max(tf.layers.conv1d(h, 4, k, padding="same", activation=tf.nn.relu), 1) for k in (2, 3)],
                  1)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(h, 2))
    train = tf.train.AdamOptimizer(0.02, epsilon=1e-3).minimize(loss)
    joined = tf.reduce_join(back, 1, separator=" ")
    hashed = tf.string_to_hash_bucket_fast(tokens.values, 50)
    strong = tf.string_to_hash_bucket_strong(tokens.values, 50, key=[1, 2])
    printed = tf.string_join([joined, tf.as_string(tf.strings.length(joined))], ":")

    def feed(i):
        pick = lambda n, salt: " ".join(np.array(words + ["Odd!", "BAD", "wörd"])[ints(i, 9, n, salt=salt)])
        texts = [pick(2 + k, k) for k in range(4)]
        return {text: np.array(texts, object), y: ["good" in t for t in texts]}

    return Training(([loss, printed, hashed, strong], [train]), feed=feed)
