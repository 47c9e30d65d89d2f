"""Linear algebra and statistics: decompositions, filters, samplers, solvers."""
from training import *


@each(dtype=["float32", "float64"])
def gaussian_process(dtype):
    """Hyperparameters by the marginal likelihood, through a Cholesky decomposition."""
    kind = tf.as_dtype(dtype)
    x, y = tf.placeholder(kind, [None, 2]), tf.placeholder(kind, [None])
    raw = tf.get_variable("raw", [4], kind, initializer=tf.constant_initializer([0.1, 0.2, -1.0, 0.0]))
    length, amplitude, noise = tf.nn.softplus(raw[0]), tf.exp(raw[1]), tf.nn.softplus(raw[2]) + 0.05

    def kernel(a, b):
        distance = tf.reduce_sum(tf.math.squared_difference(a[:, None], b[None]), -1)
        return amplitude * tf.exp(-distance / (2 * length**2))

    k = tf.linalg.set_diag(kernel(x, x), tf.linalg.diag_part(kernel(x, x)) + noise)
    chol = tf.linalg.cholesky(k)
    alpha = tf.linalg.cholesky_solve(chol, (y - raw[3])[:, None])
    loss = 0.5 * tf.matmul((y - raw[3])[:, None], alpha, transpose_a=True)[0, 0]
    loss += tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol)))
    test = kernel(tf.constant([[0.5, 0.5]], kind), x)
    mean = tf.matmul(test, alpha)
    v = tf.linalg.triangular_solve(chol, tf.transpose(test))
    variance = amplitude - tf.reduce_sum(v**2)
    train = tf.train.AdamOptimizer(tf.constant(0.02, kind)).minimize(loss)

    def feed(i):
        points = floats(i, 10, 2)
        return {x: points, y: np.sin(points[:, 0])}
    return Training(([loss, mean, variance], [train]), feed=feed)


@program
def kalman_filter():
    z = tf.placeholder(tf.float64, [12, 1])
    q = tf.get_variable("q", [], tf.float64, tf.constant_initializer(-1.0))
    r = tf.get_variable("r", [], tf.float64, tf.constant_initializer(0.0))
    f = tf.get_variable("f", dtype=tf.float64, initializer=tf.constant([[1.0, 1.0], [0.0, 1.0]], tf.float64))
    h, eye = tf.constant([[1.0, 0.0]], tf.float64), tf.eye(2, dtype=tf.float64)

    def step(state, z):
        x, p, _ = state
        x, p = tf.matmul(f, x), tf.matmul(f, tf.matmul(p, f, transpose_b=True)) + tf.exp(q) * eye
        s = tf.matmul(h, tf.matmul(p, h, transpose_b=True)) + tf.exp(r)
        gain = tf.matmul(p, tf.matmul(h, tf.linalg.inv(s), transpose_a=True))
        error = z[None] - tf.matmul(h, x)
        nll = 0.5 * (tf.linalg.logdet(s) + tf.reduce_sum(error * tf.linalg.solve(s, error)))
        return x + tf.matmul(gain, error), tf.matmul(eye - tf.matmul(gain, h), p), nll
    xs, ps, nll = tf.scan(step, z, (tf.zeros([2, 1], tf.float64), eye, tf.zeros([], tf.float64)), back_prop=True)
    loss = tf.reduce_mean(nll)
    train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
    return Training(([loss, xs, tf.linalg.trace(ps)], [train]),
                    feed=lambda i: {z: np.cumsum(floats(i, 12, 1), 0).astype(np.float64)})


@program
def decompositions():
    """Gradients through Qr, Svd, SelfAdjointEigV2, Lu, LogMatrixDeterminant, and their batches."""
    a = tf.placeholder(tf.float32, [3, 5, 4])
    w = tf.get_variable("w", [4, 4], initializer=tf.orthogonal_initializer())
    x = tf.einsum("bij,jk->bik", a, w)
    s, u, v = tf.linalg.svd(x)
    q, r = tf.linalg.qr(x)
    g = tf.matmul(x, x, transpose_a=True) + 0.5 * tf.linalg.eye(4, batch_shape=[3])
    e, vectors = tf.linalg.eigh(g)
    sign, logdet = tf.linalg.slogdet(g)
    lu, p = tf.linalg.lu(g)
    loss = tf.reduce_mean(s[:, 0]) + tf.reduce_mean(tf.abs(r)) + 0.1 * tf.reduce_mean(q**4)
    loss += tf.reduce_mean(tf.math.log(e)) + tf.reduce_mean(vectors**4) - 0.1 * tf.reduce_mean(logdet)
    loss += 0.1 * tf.reduce_mean(u**4) + 0.1 * tf.reduce_mean(tf.abs(v) * s[:, None])
    loss += 1e-3 * tf.reduce_mean(tf.linalg.det(g)) + tf.reduce_mean(tf.linalg.pinv(g)) * 0.1
    loss += tf.reduce_mean(tf.linalg.expm(0.1 * g)) * 0.01 + tf.reduce_mean(tf.linalg.norm(x, ord="fro", axis=[1, 2]))
    loss += 0.1 * tf.reduce_mean(tf.linalg.norm(x, ord=2, axis=[1, 2]))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    return Training(([loss, s, e, sign, logdet, p, tf.abs(r), tf.linalg.matrix_rank(x)], [train]),
                    feed=lambda i: {a: floats(i, 3, 5, 4)}, tolerance=1e-3)


@program
def structured_matrices():
    b = tf.placeholder(tf.float32, [2, 6, 3])
    d = tf.get_variable("d", [3, 6], initializer=tf.random_uniform_initializer(0.1, 0.5, seed=1))
    diagonals = tf.stack([d[0], 2 + d[1], d[2]])
    x = tf.linalg.tridiagonal_solve(tf.tile(diagonals[None], [2, 1, 1]), b, diagonals_format="compact")
    y = tf.linalg.tridiagonal_matmul(tf.tile(diagonals[None], [2, 1, 1]), b, diagonals_format="compact")
    full = tf.linalg.diag(tf.tile(tf.stack([d[0], d[1]])[None], [2, 1, 1]), k=(-1, 0), num_rows=6, num_cols=6,
                          align="LEFT_RIGHT")
    band = tf.linalg.band_part(tf.matmul(b, b, transpose_b=True), 1, 2) + full
    least = tf.linalg.lstsq(band + 3 * tf.eye(6), b, l2_regularizer=0.1, fast=True)
    parts = tf.linalg.diag_part(band, k=(-1, 2), padding_value=0.5)
    moved = tf.linalg.set_diag(band, parts * 2, k=(-1, 2))
    circulant = tf.linalg.LinearOperatorLowRankUpdate(tf.linalg.LinearOperatorDiag(1 + d[0]), tf.reshape(d[1:], [6, 2]))
    kron = tf.linalg.LinearOperatorKronecker([tf.linalg.LinearOperatorFullMatrix(tf.eye(2) + d[0, 0]),
                                              tf.linalg.LinearOperatorFullMatrix(tf.eye(3) * 2 + d[1, 1])])
    loss = tf.reduce_mean(x**2) + tf.reduce_mean(y**2) + tf.reduce_mean(least**2) + tf.reduce_mean(moved**2)
    loss += tf.reduce_mean(circulant.solve(b[0])) ** 2 + circulant.log_abs_determinant()
    loss += tf.reduce_mean(kron.matmul(b[1])) ** 2 + 0.1 * kron.determinant()
    loss += tf.reduce_mean(tf.linalg.cross(b, b[:, ::-1]) * d[0, :3]) + tf.linalg.trace(tf.linalg.diag(d[2]))
    loss += tf.reduce_mean(tf.tensordot(b, tf.tensor_scatter_nd_add(tf.zeros([3, 2]), [[0, 0], [2, 1]], d[0, :2]), 1))
    train = tf.train.AdagradOptimizer(0.05).minimize(loss)
    return Training(([loss, parts], [train]), feed=lambda i: {b: floats(i, 2, 6, 3)}, tolerance=5e-4)


@program
def quasi_newton():
    """L-BFGS with a line search, as nested while loops of vectors."""
    start = tf.placeholder(tf.float64, [4])
    best = tf.get_variable("best", [4], tf.float64, tf.zeros_initializer(), trainable=False)

    def objective(x):
        return tf.reduce_sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def slope(x):
        return tf.gradients(objective(x), x)[0]

    def step(k, x, g, hessian):
        direction = -tf.linalg.matvec(hessian, g)
        armijo = lambda t: objective(x + t * direction) > objective(x) + 1e-4 * t * tf.tensordot(g, direction, 1)
        t = tf.while_loop(armijo, lambda t: t * 0.5, [tf.constant(1.0, tf.float64)], maximum_iterations=20)
        s = t * direction
        new = slope(x + s)
        y = new - g
        rho = 1 / tf.tensordot(y, s, 1)
        left = tf.eye(4, dtype=tf.float64) - rho * s[:, None] * y[None]
        better = tf.matmul(tf.matmul(left, hessian), left, transpose_b=True) + rho * s[:, None] * s[None]
        hessian = tf.cond((rho > 0) & (rho < 1e6), lambda: better, lambda: tf.eye(4, dtype=tf.float64))
        return k + 1, x + s, new, hessian
    k, x, g, _ = tf.while_loop(lambda k, x, g, h: (k < 15) & (tf.norm(g) > 1e-6), step,
                               [0, start, slope(start), tf.eye(4, dtype=tf.float64)], back_prop=False)
    with tf.control_dependencies([tf.Assert(tf.math.is_finite(objective(x)), [x])]):
        update = tf.assign(best, 0.5 * (best + x))
    return Training(([k, x, objective(x), update], []), feed=lambda i: {start: rng(i).uniform(-1, 1, 4)})


@program
def ordinary_differential_equation():
    """A Runge-Kutta integrator with a learned right side, and a field that conserves energy."""
    x0 = tf.placeholder(tf.float32, [5, 2])
    w1 = tf.get_variable("w1", [2, 8], initializer=tf.glorot_normal_initializer(seed=3))
    w2 = tf.get_variable("w2", [8, 2], initializer=tf.glorot_normal_initializer(seed=4))
    f = lambda x: tf.matmul(tf.tanh(tf.matmul(x**3, w1)), w2)

    def rk4(i, x, path):
        k1 = f(x)
        k2, h = f(x + 0.05 * k1), 0.1
        k3 = f(x + 0.05 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))
        return i + 1, x, path.write(i, x)
    path = tf.TensorArray(tf.float32, 8, element_shape=[5, 2], clear_after_read=False)
    _, x, path = tf.while_loop(lambda i, *_: i < 8, rk4, [0, x0, path], swap_memory=True, parallel_iterations=3)
    rotation = tf.constant([[0.9, -0.4], [0.4, 0.9]])
    loss = tf.reduce_mean(tf.square(path.stack()[-1] - tf.matmul(x0, rotation))) + tf.reduce_mean(path.read(3) ** 2)
    train = tf.train.RMSPropOptimizer(0.01, centered=True, momentum=0.5, epsilon=1e-3).minimize(loss)
    return Training(([loss, path.concat()], [train]), feed=lambda i: {x0: floats(i, 5, 2)})


@program
def hamiltonian_monte_carlo():
    state = tf.get_variable("state", [4, 2], initializer=tf.zeros_initializer(), use_resource=True)
    accepted = tf.get_variable("accepted", [], tf.int32, tf.zeros_initializer(), use_resource=True)
    precision = tf.constant([[1.2, 0.4], [0.4, 0.8]])

    def energy(q):
        return 0.5 * tf.reduce_sum(tf.matmul(q, precision) * q, 1)

    q0 = state.read_value()
    p0 = tf.random_normal([4, 2], seed=7)
    force = lambda q: tf.gradients(energy(q), q)[0]
    q, p = q0, p0 - 0.1 * force(q0)
    q, p = tf.while_loop(lambda i, q, p: i < 5, lambda i, q, p: (i + 1, q + 0.2 * p, p - 0.2 * force(q + 0.2 * p)),
                         (0, q, p))[1:]
    p += 0.1 * force(q)
    ratio = energy(q0) + 0.5 * tf.reduce_sum(p0**2, 1) - energy(q) - 0.5 * tf.reduce_sum(p**2, 1)
    keep = tf.math.log(tf.random_uniform([4], seed=8)) < ratio
    new = tf.where(tf.tile(keep[:, None], [1, 2]), q, q0)
    with tf.control_dependencies([new]):
        updates = [tf.assign(state, new), tf.assign_add(accepted, tf.reduce_sum(tf.cast(keep, tf.int32)))]
    return Training(([new, ratio], updates), steps=10)


@program
def evolution_strategy():
    mean = tf.get_variable("mean", [6], initializer=tf.constant_initializer(2.0))
    sigma = tf.get_variable("sigma", [], initializer=tf.constant_initializer(0.5))
    noise = tf.random.stateless_normal([8, 6], tf.stack([tf.train.get_or_create_global_step(), 5]))
    noise = tf.concat([noise, -noise], 0)
    people = mean + sigma * noise
    fitness = -tf.map_fn(lambda x: tf.reduce_sum(x**2 - 3 * tf.cos(2 * x)), people)
    rank = tf.cast(tf.argsort(tf.argsort(fitness)), tf.float32) / 15.0 - 0.5
    step = tf.reduce_mean(rank[:, None] * noise, 0) / sigma
    best = tf.nn.top_k(fitness, 3)
    elite = tf.gather(people, best.indices)
    _, variance = tf.nn.moments(elite, [0])
    with tf.control_dependencies([fitness, step, variance]):
        update = tf.group(tf.assign_add(mean, 0.3 * step), tf.assign(sigma, 0.98 * sigma))
    with tf.control_dependencies([update]):
        tick = tf.assign_add(tf.train.get_global_step(), 1)
    return Training(([fitness, best.values, variance, tf.sort(fitness, direction="DESCENDING")], [tick]))


@program
def game_of_life():
    board = tf.get_variable("board", dtype=tf.int32, initializer=ints(0, 2, 10, 10), trainable=False)
    padded = tf.concat([board[-1:], board, board[:1]], 0)
    padded = tf.concat([padded[:, -1:], padded, padded[:, :1]], 1)
    near = tf.add_n([padded[i:i + 10, j:j + 10] for i in range(3) for j in range(3) if (i, j) != (1, 1)])
    rolled = sum(tf.roll(tf.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    new = tf.cast((tf.equal(board, 1) & tf.equal(near, 2)) | tf.equal(near, 3), tf.int32)
    packed = tf.reduce_sum(tf.bitwise.left_shift(new, tf.range(10)), 1)
    bits = tf.raw_ops.PopulationCount(x=packed)
    alive = tf.bitwise.bitwise_xor(packed, tf.bitwise.right_shift(packed, tf.ones_like(packed)))
    fetches = [new, bits, alive, tf.reduce_all(tf.equal(near, rolled))]
    with tf.control_dependencies(fetches):
        update = board.assign(new)
    return Training((fetches, [update]))


@program
def mandelbrot():
    y, x = np.mgrid[-1.2:1.2:0.3, -2:1:0.3]
    c = tf.constant((x + 1j * y).astype(np.complex64))
    z = tf.Variable(tf.zeros_like(c), trainable=False)
    n = tf.Variable(tf.zeros(c.shape, tf.int16), trainable=False)
    new = z * z + c
    inside = tf.abs(new) < 4
    new = tf.where(inside, new, tf.zeros_like(new))
    fetches = [tf.real(new), tf.imag(new), tf.reduce_sum(tf.cast(inside, tf.int64)), tf.conj(new)]
    with tf.control_dependencies(fetches):
        step = tf.group(z.assign(new), n.assign_add(tf.cast(inside, tf.int16)))
    return Training((fetches, [step]))


@program
def hopfield_and_ising():
    patterns = tf.sign(tf.constant(floats(3, 3, 12)))
    w = tf.get_variable("w", initializer=tf.linalg.set_diag(tf.matmul(patterns, patterns, transpose_a=True) / 12,
                                                            tf.zeros([12])), trainable=False)
    noisy = tf.placeholder(tf.float32, [12])
    settled = tf.foldl(lambda s, i: tf.where(tf.range(12) > i, s, tf.sign(tf.linalg.matvec(w, s) + 1e-3)),
                       tf.range(12), noisy)
    energy = -0.5 * tf.einsum("i,ij,j->", settled, w, settled)
    spins = tf.Variable(tf.sign(tf.random_normal([8, 8], seed=2)), trainable=False)
    kernel = tf.constant([[0, 1, 0], [1, 0, 1], [0, 1, 0]], tf.float32)[:, :, None, None]
    field = tf.nn.conv2d(spins[None, ..., None], kernel, 1, [[0, 0], [1, 1], [1, 1], [0, 0]])[0, ..., 0]
    flip = tf.random_uniform([8, 8], seed=9) < tf.exp(-2 * 0.4 * spins * field)
    black = tf.equal(tf.math.floormod(tf.range(8)[:, None] + tf.range(8), 2), 0)
    new = tf.where(flip & black, -spins, spins)
    fetches = [settled, energy, tf.reduce_mean(new)]
    with tf.control_dependencies(fetches):
        updates = [spins.assign(new), tf.assign(w, 0.99 * w + 0.01 * settled[:, None] * settled)]
    return Training((fetches, updates),
                    feed=lambda i: {noisy: np.sign(floats(i, 12))})


@program
def self_organizing_map():
    x = tf.placeholder(tf.float32, [3])
    grid = tf.constant([[i, j] for i in range(4) for j in range(4)], tf.float32)
    w = tf.Variable(tf.random_uniform([16, 3], seed=1))
    step = tf.Variable(0.0, trainable=False)
    best = tf.argmin(tf.norm(x - w, axis=1), output_type=tf.int32)
    where = tf.gather(grid, best)
    radius = 2.0 * tf.exp(-step / 10)
    rate = 0.3 * tf.exp(-tf.reduce_sum((grid - where) ** 2, 1) / (2 * radius**2))
    with tf.control_dependencies([best, radius]):
        move = w.assign_add(rate[:, None] * (x - w))
    with tf.control_dependencies([move]):
        tick = step.assign_add(1)
    return Training(([best, radius], [tick]), feed=lambda i: {x: rng(i).uniform(size=3).astype(np.float32)})


@program
def soft_decision_tree():
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
    depth, leaves = 3, 8
    w = tf.get_variable("w", [5, leaves - 1], initializer=tf.variance_scaling_initializer(2.0, "fan_avg", seed=1))
    b = tf.get_variable("b", [leaves - 1], initializer=tf.zeros_initializer())
    leaf = tf.get_variable("leaf", [leaves, 3], initializer=tf.random_normal_initializer(seed=3))
    right = tf.sigmoid(tf.matmul(x, w) + b)
    path = tf.ones_like(right[:, :1])
    for level in range(depth):
        gate = right[:, 2**level - 1:2 ** (level + 1) - 1]
        path = tf.reshape(tf.stack([path * (1 - gate), path * gate], 2), [-1, 2 ** (level + 1)])
    p = tf.matmul(path, tf.nn.softmax(leaf))
    loss = -tf.reduce_mean(tf.math.log(tf.gather_nd(p, tf.stack([tf.range(tf.shape(y, out_type=tf.int64)[0],
            dtype=tf.int64), y], 1))))
    usage = tf.reduce_mean(path, 0)
    loss += 0.1 * tf.reduce_sum(tf.math.xlogy(usage, usage))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)

    def feed(i):
        a, c = blobs(i, 12, 5, 3)
        return {x: a, y: c.astype(np.int64)}
    return Training(([loss, tf.math.in_top_k(p, y, 2)], [train]), feed=feed)


@program
def special_functions():
    """Likelihoods of beta, gamma, Poisson and Student's distributions, and functions of rational powers."""
    x = tf.placeholder(tf.float32, [20])
    raw = tf.get_variable("raw", [6], initializer=tf.constant_initializer([1.0, 0.5, -0.3, 0.2, 0.7, 0.4]))
    a, b, u = tf.nn.softplus(raw[0]) + 0.5, tf.nn.softplus(raw[1]) + 0.5, tf.clip_by_value(x, 0.05, 0.95)
    beta = (a - 1) * tf.math.log(u) + tf.math.xlog1py(b - 1, -u) - tf.math.lbeta(tf.stack([a, b]))
    gamma = a * tf.math.log(b) - tf.math.lgamma(a) + tf.math.xlogy(a - 1, u) - b * u
    poisson = tf.nn.log_poisson_loss(tf.round(x * 5), raw[2] + x, compute_full_loss=True)
    student = tf.math.lgamma((a + 1) / 2) - tf.math.lgamma(a / 2) - (a + 1) / 2 * tf.math.log1p(x**2 / a)
    cdf = tf.math.igamma(tf.fill([20], 1.5), u * b) + tf.math.igammac(tf.fill([20], 2.5), u * a)
    cdf += tf.math.betainc(tf.fill([20], 1.5), tf.fill([20], 2.0), tf.sigmoid(x * raw[3]))
    normal = tf.math.erf(x * raw[3]) + tf.math.erfc(x * raw[4]) + tf.math.ndtri(tf.sigmoid(raw[5] * x))
    erfinv = tf.math.erfinv(tf.tanh(raw[3] * x) * 0.9) + tf.math.expm1(raw[4] * x) + tf.math.bessel_i0e(x * raw[0])
    more = tf.math.bessel_i1e(x * raw[1]) + tf.math.digamma(a + u) + tf.math.polygamma(tf.ones([20]), b + u)
    more += tf.math.zeta(tf.fill([20], 2.5), u + b) + tf.sinh(raw[2] * x) + tf.cosh(raw[3] * x) + tf.asinh(x * raw[4])
    more += tf.acosh(1 + u * a) + tf.atanh(0.9 * tf.tanh(x * raw[5])) + tf.atan2(x * raw[0], 1 + u) + tf.tan(u * raw[1])
    more += tf.asin(0.5 * u * raw[4]) + tf.acos(0.5 * u * raw[5]) + tf.math.rsqrt(a + u) + tf.math.softsign(x * raw[0])
    more += tf.math.divide_no_nan(x * raw[0], tf.floor(x)) + tf.math.multiply_no_nan(raw[1] * x, tf.floor(x))
    more += tf.math.cumulative_logsumexp(x * raw[2], reverse=True) + tf.math.cumprod(1 + 0.1 * u * raw[3],
            exclusive=True)
    more += tf.math.reduce_euclidean_norm(x * raw[3]) + tf.math.reduce_variance(x * raw[4])
    more += tf.math.reduce_std(x * raw[5])
    loss = tf.reduce_mean(poisson - beta - gamma - student + cdf + normal + erfinv + 0.1 * more)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    integers = tf.cast(x * 10, tf.int32)
    fetch = [tf.truncatediv(integers, 3), tf.truncatemod(integers, 3), integers // 3, integers % 3, tf.math.rint(x),
             tf.bitcast(x, tf.int32), tf.math.nextafter(x, tf.zeros_like(x)), tf.math.is_nan(x / tf.zeros_like(x))]
    return Training(([loss, beta, gamma] + fetch, [train]), feed=lambda i: {x: np.abs(floats(i, 20))}, tolerance=5e-4)
