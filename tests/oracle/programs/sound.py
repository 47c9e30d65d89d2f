"""Sound: spectrograms, cepstra, filters."""
from training import *


def tones(step, batch=4, length=512):
    t = np.arange(length) / 8000.0
    labels = ints(step, 3, batch)
    waves = np.stack([np.sin(2 * np.pi * 300 * (k + 1) * t) for k in labels])
    return (waves + 0.1 * floats(step, batch, length)).astype(np.float32) * 0.5, labels


def classify(features, y, optimizer=None):
    logits = tf.layers.dense(tf.layers.flatten(features), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    return loss, (optimizer or tf.train.GradientDescentOptimizer(0.01)).minimize(loss)


@program
def speech_commands():
    """The audio operators of the tutorial, of one clip at a time."""
    wave, y = tf.placeholder(tf.float32, [512, 1]), tf.placeholder(tf.int32, [1])
    shifted = tf.slice(tf.pad(wave, [[20, 0], [0, 0]]), [0, 0], [512, 1])
    spectrogram = tf.raw_ops.AudioSpectrogram(input=shifted, window_size=128, stride=64, magnitude_squared=True)
    mfcc = tf.raw_ops.Mfcc(spectrogram=spectrogram, sample_rate=8000, upper_frequency_limit=3900,
            filterbank_channel_count=20,
                              dct_coefficient_count=10)
    plain = tf.raw_ops.AudioSpectrogram(input=wave, window_size=100, stride=50)
    loss, train = classify(mfcc * 0.1, y)
    wav = tf.audio.encode_wav(wave, 8000)
    audio, rate = tf.audio.decode_wav(wav, desired_channels=1, desired_samples=400)

    def feed(i):
        x, labels = tones(i, 1)
        return {wave: x.T, y: labels}
    return Training(([loss, spectrogram, mfcc, plain, audio, rate], [train]), feed=feed)


@program
def mel_cepstra():
    x, y = tf.placeholder(tf.float32, [None, 512]), tf.placeholder(tf.int32, [None])
    emphasis = tf.get_variable("emphasis", [], initializer=tf.constant_initializer(0.9))
    wave = x[:, 1:] - emphasis * x[:, :-1]
    stft = tf.signal.stft(wave, 128, 64, fft_length=256, window_fn=tf.signal.hamming_window, pad_end=True)
    power = tf.math.real(stft * tf.math.conj(stft))
    mel = tf.signal.linear_to_mel_weight_matrix(20, 129, 8000, 80.0, 3600.0)
    log_mel = tf.math.log(tf.tensordot(power, mel, 1) + 1e-3)
    mfcc = tf.signal.mfccs_from_log_mel_spectrograms(log_mel)[..., :12]
    loss, train = classify(tf.tanh(mfcc), y)
    return Training(([loss, mfcc], [train]), feed=lambda i: dict(zip((x, y), tones(i))))


@program
def inverse_transforms():
    """Griffin and Lim's reconstruction; MDCT and DCT of every kind; overlap-and-add of learned frames."""
    x = tf.placeholder(tf.float32, [2, 512])
    gain = tf.get_variable("gain", [65], initializer=tf.ones_initializer())
    magnitude = tf.cast(tf.abs(tf.signal.stft(x, 128, 32)) * gain, tf.complex64)
    spectrum = magnitude
    for _ in range(2):
        wave = tf.signal.inverse_stft(spectrum, 128, 32, window_fn=tf.signal.inverse_stft_window_fn(32))
        again = tf.signal.stft(wave, 128, 32)
        phase = again / tf.cast(tf.maximum(1e-3, tf.abs(again)), tf.complex64)
        spectrum = magnitude * phase
    loss = tf.reduce_mean(tf.square(wave - x[:, :wave.shape[1]]))
    mdct = tf.signal.mdct(x, 64, window_fn=tf.signal.kaiser_bessel_derived_window)
    back = tf.signal.inverse_mdct(mdct * gain[0], window_fn=tf.signal.vorbis_window)
    dcts = [tf.signal.dct(x[:, :16], type=k, norm=n) for k, n in ((1, None), (2, "ortho"), (3, None), (4, "ortho"))]
    inverse = [tf.signal.idct(d * gain[1], type=k, norm=n)
               for d, (k, n) in zip(dcts, ((1, None), (2, "ortho"), (3, None), (4, "ortho")))]
    loss += tf.reduce_mean(tf.square(back)) + tf.add_n([tf.reduce_mean(tf.square(v)) for v in inverse]) * 1e-3
    frames = tf.signal.frame(x, 32, 16, pad_end=True, pad_value=0.5) * tf.signal.kaiser_window(32, 8.0)
    loss += tf.reduce_mean(tf.abs(tf.signal.overlap_and_add(frames * gain[2], 16)))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return Training(([loss, mdct] + dcts, [train]), feed=lambda i: {x: tones(i, 2)[0]}, tolerance=5e-4)


@program
def two_dimensional_spectra():
    x = tf.placeholder(tf.float32, [2, 8, 8])
    mask = tf.get_variable("mask", [8, 5], initializer=tf.ones_initializer())
    f = tf.signal.rfft2d(x) * tf.cast(mask, tf.complex64)
    y = tf.signal.irfft2d(f, fft_length=[8, 8])
    full = tf.signal.fftshift(tf.signal.fft2d(tf.cast(x, tf.complex64)), axes=[1, 2])
    c = tf.signal.ifft2d(tf.signal.ifftshift(full, axes=[1, 2]) * tf.complex(mask[0, 0], mask[0, 1]))
    w = tf.signal.irfft3d(tf.signal.rfft3d(tf.stop_gradient(x * mask[1, 1])), [2, 8, 8])
    w = tf.stop_gradient(w)
    z = tf.signal.ifft3d(tf.signal.fft3d(tf.complex(x, x * mask[2, 2])))
    loss = tf.reduce_mean(tf.square(y - x[:, ::-1])) + tf.reduce_mean(tf.abs(c)) + tf.reduce_mean(w * x)
    loss += tf.reduce_mean(tf.square(tf.imag(z))) + tf.reduce_mean(tf.square(tf.math.angle(tf.complex(x + 9,
            x * mask[3, 3]))))
    with tf.control_dependencies([loss]):  # of which w, without a gradient, may otherwise read the updated mask
        train = tf.train.MomentumOptimizer(0.1, 0.5, use_nesterov=True).minimize(loss)
    return Training(([loss], [train]), feed=lambda i: {x: floats(i, 2, 8, 8)})


@program
def sound_files():
    """Augmented speech from encoded files, in a queue-less dataset."""
    waves = [tones(i, 1)[0].T for i in range(6)]
    with tf.Graph().as_default(), tf.Session() as session:
        files = [session.run(tf.audio.encode_wav(w, 8000)) for w in waves]
    data = tf.data.Dataset.from_tensor_slices((files, [0, 1, 2, 0, 1, 2])).repeat()

    def load(contents, label):
        wave = tf.audio.decode_wav(contents).audio[:, 0]
        wave *= tf.random.uniform([], 0.5, 1.0, seed=4)
        wave = tf.roll(wave, tf.random.uniform([], -20, 20, tf.int32, seed=5), 0)
        return tf.abs(tf.signal.stft(wave, 64, 32, pad_end=True))[:16], label
    x, y = tf.data.make_one_shot_iterator(data.map(load).batch(3)).get_next()
    loss, train = classify(tf.math.log1p(tf.reshape(x, [3, 16, 33])), y)
    tf.summary.audio("sound", tf.random.stateless_uniform([2, 100, 1], [1, 2], -1, 1), 8000, max_outputs=2)
    merged = tf.summary.merge_all()
    return Training(([loss, merged], [train]), summaries=[merged.name])
