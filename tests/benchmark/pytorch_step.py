#!/usr/bin/env python3
"""The peer of nn_worker/backend/benchmark/step_benchmark.cc: the same step in PyTorch.

    pytorch_step.py [--model=deepfm|dlrm] [--batch=N] [--precision=F32|TF32|BF16|F16] [--seconds=3]
                    [--capture=true|false] [--card=0] [--device=cuda|cpu]
                    [--compile=none|default|max-autotune]

A step begins with unique rows and the ids' places in them on the device, and ends with the
gradients of these rows and a fused Adam step of the dense parameters. Labels are copied in from
pinned memory in each step, as Network::Train copies them. Models and sizes are those of
step_benchmark.

The settings are PyTorch's best: loss and gradients are compiled, and the whole step, optimizer
included, is one CUDA graph. The graphs of torch.compile(mode="reduce-overhead") would leave the
optimizer out. max-autotune also tries kernels for each product, which takes minutes for each
configuration. BF16 and F16 are autocast, and F16 has a GradScaler.

Prints one JSON line for each configuration, as step_benchmark does. Needs torch 2.11 or later.
"""
import argparse
import gc
import json
import math
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

FEATURES, NUMERICS, DIM = 26, 13, 16
WINDOW_SECONDS = 0.1
WARM_UP_STEPS = 4
VOCABULARY_OF_SAMPLE = 0.63  # about half of the ids are distinct (model_step.cc)
HALVES = {"BF16": torch.bfloat16, "F16": torch.float16}


def mlp(sizes, last_relu):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


class DeepFm(nn.Module):
    ROW_VALUES = DIM + 1  # the last is the linear weight

    def __init__(self):
        super().__init__()
        self.deep = mlp([FEATURES * DIM + NUMERICS, 400, 400, 400, 1], last_relu=False)
        self.numeric_linear = nn.Linear(NUMERICS, 1, bias=False)

    def forward(self, values, numeric):
        embeddings, linear = values[..., :DIM], values[..., DIM]
        total = embeddings.sum(1)
        pairs = 0.5 * (total * total - (embeddings * embeddings).sum(1)).sum(1, keepdim=True)
        deep = self.deep(torch.cat([embeddings.flatten(1), numeric], 1))
        return deep + pairs + linear.sum(1, keepdim=True) + self.numeric_linear(numeric)


class Dlrm(nn.Module):
    ROW_VALUES = DIM

    def __init__(self):
        super().__init__()
        self.bottom = mlp([NUMERICS, 512, 256, 64, DIM], last_relu=True)
        vectors = FEATURES + 1
        pairs = vectors * (vectors - 1) // 2
        self.top = mlp([DIM + pairs, 1024, 1024, 512, 256, 1], last_relu=False)
        self.register_buffer("pairs", torch.tril_indices(vectors, vectors, -1))

    def forward(self, values, numeric):
        bottom = self.bottom(numeric)
        vectors = torch.cat([bottom.unsqueeze(1), values], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return self.top(torch.cat([bottom, products[:, self.pairs[0], self.pairs[1]]], 1))


MODELS = {"deepfm": DeepFm, "dlrm": Dlrm}


class Part:
    """Rows, ids and numerics on the device; the labels there and in pinned memory."""

    def __init__(self, batch, row_values, device):
        vocabulary = 1 + int(VOCABULARY_OF_SAMPLE * batch)
        ids = torch.randint(vocabulary, (batch, FEATURES)) + vocabulary * torch.arange(FEATURES)
        unique, places = ids.unique(return_inverse=True)
        rows = torch.empty(len(unique), row_values).uniform_(-0.25, 0.25)
        numeric = torch.empty(batch, NUMERICS).uniform_(-1, 1)
        labels = (numeric.sum(1) + rows[places, 0].sum(1) > 0).float().unsqueeze(1)
        self.rows = rows.to(device).requires_grad_()
        self.ids = places.int().to(device)
        self.numeric = numeric.to(device)
        self.host_labels = labels.pin_memory() if device.type == "cuda" else labels
        self.labels = labels.to(device)


class Step:
    def __init__(self, arguments, model, batch, precision):
        on_card = arguments.device == "cuda"
        self.device = torch.device(arguments.device, arguments.card if on_card else None)
        torch.manual_seed(1)
        self.dense = MODELS[model]().to(self.device)
        self.part = Part(batch, self.dense.ROW_VALUES, self.device)
        self.optimizer = torch.optim.Adam(self.dense.parameters(), lr=1e-3, fused=True,
                                          capturable=on_card)
        self.half = HALVES.get(precision)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=precision == "F16")
        torch.set_float32_matmul_precision("high" if precision == "TF32" else "highest")
        self.loss_of = self.loss
        if arguments.compile != "none":
            mode = "max-autotune-no-cudagraphs" if arguments.compile == "max-autotune" else None
            self.loss_of = torch.compile(self.loss, mode=mode, dynamic=False, fullgraph=True)
        self.graph = self.last_loss = None
        if on_card and arguments.capture == "true":
            self.capture()

    def loss(self, rows, ids, numeric, labels):
        values = functional.embedding(ids, rows)
        if self.half is not None:
            values, numeric = values.to(self.half), numeric.to(self.half)
        with torch.autocast(self.device.type, self.half, enabled=self.half is not None,
                            cache_enabled=False):
            logits = self.dense(values, numeric)
        return functional.binary_cross_entropy_with_logits(logits.float(), labels)

    def enqueue(self):
        part = self.part
        part.rows.grad = None
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(part.rows, part.ids, part.numeric, part.labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        # Without its history, which would tie the next step to this one's stream.
        self.last_loss = loss.detach()

    # Steps on a stream of their own come first, as CUDA graphs demand; the first of them compiles.
    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.enqueue()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.enqueue()
        self.graph = graph

    def run(self):
        self.part.labels.copy_(self.part.host_labels, non_blocking=True)
        if self.graph is None:
            self.enqueue()
        else:
            self.graph.replay()

    def seconds_of(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.run()
        if self.device.type == "cuda":
            end = torch.cuda.Event()
            end.record()
            end.synchronize()
        return time.perf_counter() - begin


def measure(arguments, model, batch, precision):
    step = Step(arguments, model, batch, precision)
    first_loss, shortest, i = None, math.inf, 0
    warm = time.perf_counter() + arguments.seconds / 5
    while i < WARM_UP_STEPS or time.perf_counter() < warm:
        shortest = min(shortest, step.seconds_of(1))
        first_loss = step.last_loss.item() if first_loss is None else first_loss
        i += 1
    steps = max(1, round(WINDOW_SECONDS / shortest))
    rates, end = [], time.perf_counter() + arguments.seconds
    while not rates or time.perf_counter() < end:
        rates.append(steps * batch / step.seconds_of(steps))
    loss = step.last_loss.item()
    if not math.isfinite(loss):
        sys.exit(f"pytorch_step: the loss of {model} with batch {batch} in {precision} is {loss}")
    on_card = step.device.type == "cuda"
    rate = statistics.median(rates)
    print(json.dumps({
        "benchmark": "step", "peer": "pytorch_step", "torch": torch.__version__,
        "device": torch.cuda.get_device_name(step.device) if on_card else "cpu",
        "model": model, "batch": batch, "precision": precision,
        "capture": step.graph is not None, "compile": arguments.compile,
        "samples_per_second": round(rate),
        "us_per_step": round(1e6 * batch / rate, 1), "windows": len(rates),
        "first_loss": round(first_loss, 5), "loss": round(loss, 5), "rows": len(step.part.rows),
        "device_memory_bytes": torch.cuda.max_memory_allocated() if on_card else 0,
    }), flush=True)


def parse():
    def count(text):
        if int(text) <= 0:
            raise ValueError
        return int(text)

    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS)
    parser.add_argument("--batch", type=count)
    parser.add_argument("--precision", choices=["F32", "TF32", "BF16", "F16"])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--capture", choices=["true", "false"], default="true")
    parser.add_argument("--card", type=int, default=0)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--compile", choices=["none", "default", "max-autotune"],
                        default="default")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("this PyTorch finds no card; --device=cpu checks this with a small batch")
    if arguments.device == "cpu" and arguments.precision == "TF32":
        parser.error("TF32 needs a card: give --device=cuda")
    return arguments


def main():
    arguments = parse()
    on_card = arguments.device == "cuda"
    if on_card:
        torch.cuda.set_device(arguments.card)
    batches = [8192, 65536, 131072] if on_card else [256]
    precisions = ["F32", "TF32", "BF16", "F16"] if on_card else ["F32", "BF16", "F16"]
    for model in [arguments.model] if arguments.model else MODELS:
        for batch in [arguments.batch] if arguments.batch else batches:
            for precision in [arguments.precision] if arguments.precision else precisions:
                measure(arguments, model, batch, precision)
                torch.compiler.reset()
                gc.collect()
                if on_card:
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()


if __name__ == "__main__":
    main()
