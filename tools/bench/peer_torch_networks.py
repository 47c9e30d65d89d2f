"""PyTorch's side of the suite "networks": the networks of peer_networks.py, at the same sizes.

    peer_torch_networks.py THREADS PART

Prints "task TASK" for each network whose name contains PART, then "ready VERSION". Afterwards each input line is
"TASK COUNT"; the answer is "value SECONDS SETTING", the average time of a step with the fastest setting: eager or
compiled, with channels last where there are convolutions. BENCH_TORCH_COMPILE=0 leaves out compilation, which takes
minutes."""
import os
import sys
import time

threads, part = int(sys.argv[1]), sys.argv[2]
os.environ["OMP_NUM_THREADS"] = str(threads)
os.environ["KMP_BLOCKTIME"] = "1"  # threads that wait for the next call must not disturb millrace meanwhile
import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(threads)
torch.manual_seed(1)
compiles = os.environ.get("BENCH_TORCH_COMPILE", "1") != "0"


def conv(channels, filters, size, stride=1, bias=True):
    return nn.Conv2d(channels, filters, size, stride, size // 2, bias=bias)


def conv_transpose(channels, filters, size):
    return nn.ConvTranspose2d(channels, filters, size, 2, padding=size // 2, output_padding=1)


def batch_norm(channels):
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Classes(nn.Module):
    """A network and its loss."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, y):
        return F.cross_entropy(self.network(x), y)


def images(batch, size, channels, labels=10):
    return torch.randn(batch, channels, size, size), torch.randint(0, labels, (batch,))


def mlp():
    network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return Classes(network), lambda p: torch.optim.Adam(p, 1e-3), (torch.randn(128, 784), torch.randint(0, 10, (128,)))


def cnn():
    network = nn.Sequential(conv(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), conv(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10))  # fmt: skip
    return Classes(network), lambda p: torch.optim.Adam(p, 1e-4), images(128, 28, 1)


class Block(nn.Module):
    """Of a residual network: `layers` and a shortcut."""

    def __init__(self, layers, shortcut):
        super().__init__()
        self.layers, self.shortcut = layers, shortcut

    def forward(self, x):
        return F.relu(self.layers(x) + self.shortcut(x))


def shortcut(channels, filters, stride):
    if stride == 1 and channels == filters:
        return nn.Identity()
    return nn.Sequential(conv(channels, filters, 1, stride, False), batch_norm(filters))


def momentum(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def resnet20():
    layers, channels = [conv(3, 16, 3, 1, False), batch_norm(16), nn.ReLU()], 16
    for filters in [16, 32, 64]:
        for block in range(3):
            stride = 2 if filters > 16 and block == 0 else 1
            inner = nn.Sequential(conv(channels, filters, 3, stride, False), batch_norm(filters), nn.ReLU(),
                                  conv(filters, filters, 3, 1, False), batch_norm(filters))  # fmt: skip
            layers.append(Block(inner, shortcut(channels, filters, stride)))
            channels = filters
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return Classes(nn.Sequential(*layers)), momentum, images(128, 32, 3)


def resnet50():
    layers = [conv(3, 64, 7, 2, False), batch_norm(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks in [(64, 3), (128, 4), (256, 6), (512, 3)]:
        for block in range(blocks):
            stride = 2 if width > 64 and block == 0 else 1
            inner = nn.Sequential(conv(channels, width, 1, 1, False), batch_norm(width), nn.ReLU(),
                                  conv(width, width, 3, stride, False), batch_norm(width), nn.ReLU(),
                                  conv(width, 4 * width, 1, 1, False), batch_norm(4 * width))  # fmt: skip
            layers.append(Block(inner, shortcut(channels, 4 * width, stride)))
            channels = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return Classes(nn.Sequential(*layers)), momentum, images(16, 224, 3, 1000)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(10000, 200), nn.LSTM(200, 200, 2, batch_first=True)
        self.logits = nn.Linear(200, 10000)

    def forward(self, ids, targets):
        return F.cross_entropy(self.logits(self.lstm(self.embedding(ids))[0].reshape(-1, 200)), targets.reshape(-1))


def lstm():
    ids = torch.randint(0, 10000, (2, 20, 20))
    return Language(), lambda p: torch.optim.SGD(p, 1.0), (ids[0], ids[1])


class Layer(nn.Module):
    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.joined = (nn.Linear(units, units) for _ in range(4))
        self.norms = nn.ModuleList([nn.LayerNorm(units), nn.LayerNorm(units)])
        self.dense = nn.Sequential(nn.Linear(units, 4 * units), nn.ReLU(), nn.Linear(4 * units, units))

    def forward(self, x):
        split = lambda t: t.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)))
        x = self.norms[0](x + self.joined(y.transpose(1, 2).reshape(x.shape)))
        return self.norms[1](x + self.dense(x))


class Transformer(nn.Module):
    def __init__(self, units=512, words=10000, length=128):
        super().__init__()
        self.embedding = nn.Embedding(words, units)
        self.positions = nn.Parameter(torch.randn(length, units) * 0.02)
        self.layers, self.logits = nn.Sequential(*(Layer(units, 8) for _ in range(6))), nn.Linear(units, words)

    def forward(self, ids, targets):
        x = self.layers(self.embedding(ids) + self.positions)
        return F.cross_entropy(self.logits(x.reshape(-1, x.shape[2])), targets.reshape(-1))


def transformer():
    ids = torch.randint(0, 10000, (2, 8, 128))
    return Transformer(), lambda p: torch.optim.Adam(p, 1e-4), (ids[0], ids[1])


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(conv(1, 16, 3, 2), nn.ReLU(), conv(16, 32, 3, 2), nn.ReLU(),
                                    conv_transpose(32, 16, 3), nn.ReLU(), conv_transpose(16, 1, 3))  # fmt: skip

    def forward(self, x):
        return F.mse_loss(self.layers(x), x)


def autoencoder():
    return Autoencoder(), lambda p: torch.optim.Adam(p, 1e-3), (torch.randn(64, 1, 28, 28),)


class Words(nn.Module):
    """NCE, whose gradients are sparse."""

    def __init__(self, words=50000, units=128):
        super().__init__()
        self.words = words
        self.table, self.rows, self.biases = (nn.Embedding(words, n, sparse=True) for n in (units, units, 1))

    def forward(self, inputs, labels):
        drawn = (torch.rand(64) * torch.log(torch.tensor(self.words + 1.0))).exp().long() - 1  # log-uniform
        ids = torch.cat([labels, drawn.clamp(0, self.words - 1)])
        embedded, rows, biases = self.table(inputs), self.rows(ids), self.biases(ids)[:, 0]
        count = len(inputs)
        of_labels = (embedded * rows[:count]).sum(1) + biases[:count]
        of_drawn = embedded @ rows[count:].t() + biases[count:]
        return (F.softplus(-of_labels) + F.softplus(of_drawn).sum(1)).mean()


def word2vec():
    ids = torch.randint(0, 50000, (2, 128))
    return Words(), lambda p: torch.optim.SGD(p, 1.0), (ids[0], ids[1])


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm = nn.Linear(100, 4 * 4 * 512), batch_norm(512)
        layers, channels = [], 512
        for filters in [256, 128, 64]:
            layers += [conv_transpose(channels, filters, 5), batch_norm(filters), nn.ReLU()]
            channels = filters
        self.layers = nn.Sequential(*layers, conv_transpose(64, 3, 5), nn.Tanh())

    def forward(self, noise):
        return self.layers(F.relu(self.norm(self.dense(noise).reshape(-1, 512, 4, 4))))


def discriminator():
    layers, channels = [], 3
    for layer, filters in enumerate([64, 128, 256, 512]):
        layers += [conv(channels, filters, 5, 2), *([batch_norm(filters)] if layer else []), nn.LeakyReLU(0.2)]
        channels = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * 4 * 512, 1))


class Task:
    """A network with one loss."""

    def __init__(self, make, setting):
        self.model, optimizer, self.inputs = make()
        if "channels" in setting:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.inputs = [t.to(memory_format=torch.channels_last) if t.dim() == 4 else t for t in self.inputs]
        self.optimizer = optimizer(self.model.parameters())
        self.loss = torch.compile(self.model) if "compiled" in setting else self.model

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*self.inputs)
        loss.backward()
        if isinstance(self.model, Language):
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        return loss.item()


class Gan:
    """A step of the discriminator and one of the generator, of 64 x 64 images."""

    def __init__(self, setting):
        self.real, self.noise = torch.randn(32, 3, 64, 64), torch.randn(32, 100)
        self.models = [Generator(), discriminator()]
        if "channels" in setting:
            self.models = [model.to(memory_format=torch.channels_last) for model in self.models]
            self.real = self.real.to(memory_format=torch.channels_last)
        self.optimizers = [torch.optim.Adam(m.parameters(), 2e-4, (0.5, 0.999)) for m in self.models]
        self.calls = [torch.compile(m) for m in self.models] if "compiled" in setting else self.models

    def step(self):
        generate, judge = self.calls
        entropy = F.binary_cross_entropy_with_logits
        fake = generate(self.noise)
        self.optimizers[1].zero_grad(set_to_none=True)
        of_real, of_fake = judge(self.real), judge(fake.detach())
        loss = entropy(of_real, torch.ones_like(of_real)) + entropy(of_fake, torch.zeros_like(of_fake))
        loss.backward()
        self.optimizers[1].step()
        self.optimizers[0].zero_grad(set_to_none=True)
        of_fake = judge(fake)
        entropy(of_fake, torch.ones_like(of_fake)).backward()
        self.optimizers[0].step()
        return loss.item()


NETWORKS = {
    "mlp": mlp,
    "cnn": cnn,
    "resnet-20": resnet20,
    "lstm": lstm,
    "autoencoder": autoencoder,
    "dcgan": Gan,
    "transformer": transformer,
    "word2vec": word2vec,
    "resnet-50": resnet50,
}
CONVOLUTIONS = {"cnn", "resnet-20", "autoencoder", "dcgan", "resnet-50"}


def timed(task, count):
    start = time.perf_counter()
    for _ in range(count):
        task.step()
    return (time.perf_counter() - start) / count


def fastest(name):
    """The task with the fastest setting, and its name."""
    settings = ["eager", "compiled"] if compiles and name != "word2vec" else ["eager"]  # compiled, nothing is sparse
    if name in CONVOLUTIONS:
        settings = ["eager", *(setting + "_channels_last" for setting in settings)]
    best = None
    for setting in settings:
        make = NETWORKS[name]
        task = make(setting) if make is Gan else Task(make, setting)
        timed(task, 2)
        count = max(1, int(0.5 / timed(task, 1)))
        seconds = min(timed(task, count) for _ in range(3))
        if best is None or seconds < best[0]:
            best = seconds, setting, task
    return best[2], best[1]


chosen = {}
for name in NETWORKS:
    if part in name:
        print("task", name, flush=True)
print("ready", torch.__version__, flush=True)
for line in sys.stdin:
    name, count = line.rsplit(" ", 1)
    if name not in chosen:
        chosen[name] = fastest(name)
    task, setting = chosen[name]
    print("value", timed(task, max(1, int(count))), setting, flush=True)
