#!/usr/bin/env python3
"""Measures a GPU with PyTorch and writes tables that `armilla validate` reads (docs/validation.md).

    python3 tools/measure_device.py kernels  --gpu H100-SXM5-80GB -o kernels.csv
    python3 tools/measure_device.py training --gpu H100-SXM5-80GB -o training.csv --memory memory.csv
    armilla validate kernels.csv training.csv memory.csv

kernels     matrix products (bf16, fp8 where there is one; their gradients; groups), fused attention, and kernels that
            are bound by memory. The device is kept waiting until all calls of a measurement are in its queue, so that
            the host does not count; calls take turns among buffers that together exceed the L2 cache; the time is the
            median of several runs. Products are measured twice: "burst" after a pause, "in a loop" after half a second
            of the same work, when the clocks have settled.
training    steps of decoders in plain PyTorch on one GPU: median time of a step and the allocator's peak, for an eager
            host and under torch.compile (with and without CUDA graphs), parameters in bf16, in fp32 with autocast, or
            under FSDP2's mixed precision.

Exit code: 0, 1 when something could not be measured (each is named), 2 for wrong input.
"""

import argparse
import csv
import re
import statistics
import sys
import time

SOURCE = "tools/measure_device.py, PyTorch {torch}, CUDA {cuda}"
BEYOND_CACHE = 192 << 20  # bytes of all buffers that take turns
KERNEL_FIELDS = ["gpu", "op", "dtype", "batch", "m", "n", "k", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv", "time_us",
                 "tflops", "tier", "source", "notes"]
PLAN_FIELDS = ["id", "source", "model", "layers", "hidden", "heads", "ffn_hidden", "kv_heads", "vocab", "seq_len", "params_B",
               "gpu", "gpus", "gpus_per_node", "tp", "pp", "dp", "cp", "ep", "vpp", "micro_batch", "global_batch",
               "precision", "recompute", "sequence_parallel", "zero_stage", "schedule"]


class Clock:
    """Times of calls on the device, without the host's."""

    def __init__(self, torch):
        self.torch = torch
        self.cycles_per_ms = self._calibrate()

    def _calibrate(self):
        cycles = 20_000_000
        self.torch.cuda._sleep(cycles)
        return cycles / self._events(lambda: self.torch.cuda._sleep(cycles))

    def _events(self, run):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def queued(self, calls):
        """Milliseconds of all calls, which are in the queue before the first one starts."""
        started = time.perf_counter()
        for call in calls:
            call()
        self.torch.cuda.synchronize()
        host_ms = (time.perf_counter() - started) * 1e3
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(int(self.cycles_per_ms * (1.5 * host_ms + 0.2)))
        begin.record()
        for call in calls:
            call()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end)

    def burst(self, calls, repeats=5):
        """Microseconds of one call, the median of some runs with pauses between."""
        calls = (calls * 8)[:max(8, min(len(calls), 64))]
        self.queued(calls)
        times = []
        for _ in range(repeats):
            time.sleep(0.002)
            times.append(self.queued(calls))
        return statistics.median(times) / len(calls) * 1e3

    def loop(self, calls, burst_us, seconds=0.5):
        """Microseconds of one call once the clocks have settled."""
        rounds = max(1, int(seconds * 1e6 / (burst_us * len(calls))))
        for _ in range(rounds):
            for call in calls:
                call()
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        measured = max(1, rounds // 3)
        for _ in range(measured):
            for call in calls:
                call()
        end.record()
        self.torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3 / (measured * len(calls))


class Kernels:
    def __init__(self, torch, gpu, quick):
        self.torch, self.gpu, self.quick = torch, gpu, quick
        self.clock = Clock(torch)
        self.rows, self.failed = [], []
        self.source = SOURCE.format(torch=torch.__version__, cuda=torch.version.cuda)

    def turns(self, make, size):
        """Calls on buffers of their own, as many as leave no cache warm."""
        return [make() for _ in range(max(1, min(16, -(-BEYOND_CACHE // max(size, 1)))))]

    def row(self, op, dtype, time_us, flops=0, notes="burst", **sizes):
        self.rows.append({"gpu": self.gpu, "op": op, "dtype": dtype, "time_us": f"{time_us:.4g}", "tier": "A",
                          "tflops": f"{flops / time_us / 1e6:.4g}" if flops else "", "source": self.source, "notes": notes,
                          **sizes})

    def measure(self, op, dtype, make, size, flops=0, loop=False, notes="", **sizes):
        try:
            calls = self.turns(make, size)
            burst = self.clock.burst(calls)
            self.row(op, dtype, burst, flops, "burst" + notes, **sizes)
            if loop and burst > 40:
                self.row(op, dtype, self.clock.loop(calls, burst), flops, "in a loop" + notes, **sizes)
        except (RuntimeError, AttributeError, ValueError) as error:
            self.failed.append(f"{op} {dtype} {sizes}: {str(error).splitlines()[0][:160]}")

    def random(self, *shape, dtype=None):
        return self.torch.randn(shape, device="cuda", dtype=self.torch.float32).to(dtype or self.torch.bfloat16)

    def products(self):
        torch = self.torch
        sizes = []
        for hidden, wide in ((1024, 4096), (2048, 8192), (4096, 14336), (8192, 28672)):
            for tokens in (1024, 2048, 4096, 8192, 16384):
                sizes += [(tokens, n, k) for n, k in ((3 * hidden, hidden), (hidden, hidden), (wide, hidden), (hidden, wide))]
        sizes += [(4096, 1600, 1600), (4096, 6400, 1600), (4096, 1600, 6400), (8192, 768, 3072), (8192, 50304, 768),
                  (4096, 128256, 4096)]
        for m, n, k in sizes[::3] if self.quick else sizes:
            size, flops = 2 * (m * k + n * k + m * n), 2 * m * n * k

            def forward():  # y = x w^T
                x, w, y = self.random(m, k), self.random(n, k), self.random(m, n)
                return lambda: torch.mm(x, w.t(), out=y)

            def weight():  # dw = dy^T x, the tokens are summed over
                x, dy, dw = self.random(m, k), self.random(m, n), self.random(n, k)
                return lambda: torch.mm(dy.t(), x, out=dw)

            self.measure("gemm", "bf16xbf16->bf16", forward, size, flops, True, "; forward (x w^T)", m=m, n=n, k=k)
            if m in (4096, 8192):
                self.measure("gemm", "bf16xbf16->bf16", weight, size, flops, True, "; weight gradient (dy^T x)", m=n, n=k, k=m)
            if hasattr(torch, "_scaled_mm") and hasattr(torch, "float8_e4m3fn"):
                one = torch.ones((), device="cuda")

                def narrow():
                    x, w = self.random(m, k).to(torch.float8_e4m3fn), self.random(n, k).to(torch.float8_e4m3fn)
                    return lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                                    use_fast_accum=True)

                self.measure("gemm", "fp8xfp8->bf16", narrow, size, flops, True, "; forward, per tensor", m=m, n=n, k=k)

    def groups(self):
        torch = self.torch
        for count, tokens in ((8, 512), (8, 2048), (16, 1024), (32, 256), (32, 1024), (64, 128), (64, 512)):
            for n, k in ((1536, 4096), (4096, 1536), (4096, 2048), (2048, 7168), (14336, 4096)):
                size = 2 * count * (tokens * k + n * k + tokens * n)
                if size > 12 << 30:
                    continue

                def grouped():
                    x, w = self.random(count * tokens, k), self.random(count, n, k)
                    ends = torch.arange(1, count + 1, device="cuda", dtype=torch.int32) * tokens
                    return lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)

                def one_by_one():
                    x, w = self.random(count, tokens, k), self.random(count, n, k)
                    y = self.random(count, tokens, n)

                    def run():
                        for i in range(count):
                            torch.mm(x[i], w[i].t(), out=y[i])
                    return run

                flops = 2 * count * tokens * n * k
                self.measure("grouped_gemm", "bf16xbf16->bf16", grouped, size, flops, True, "; one kernel", batch=count,
                             m=tokens, n=n, k=k)
                if not self.quick:
                    self.measure("grouped_gemm", "bf16xbf16->bf16", one_by_one, size, flops, True, "; a kernel per group",
                                 batch=count, m=tokens, n=n, k=k)

    def attention(self):
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backends = (("FlashAttention-2", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION))
        cases = [(16, 12, 12, 64, 1024), (4, 16, 16, 64, 2048), (2, 32, 32, 128, 2048), (1, 32, 8, 128, 4096),
                 (2, 32, 8, 128, 8192), (1, 64, 8, 128, 8192), (1, 32, 32, 128, 16384), (4, 25, 25, 64, 1024), (1, 16, 16, 96, 2048)]
        for name, backend in backends:
            for batch, heads, kv_heads, dim, length in cases:
                for causal in (True, False):
                    flops = 4 * batch * heads * length * length * dim // (2 if causal else 1)

                    def make(backward):
                        q = self.random(batch, heads, length, dim).requires_grad_()
                        # Repeated, as PyTorch's own models do.
                        k, v = (self.random(batch, heads, length, dim).requires_grad_() for _ in range(2))
                        gradient = self.random(batch, heads, length, dim)

                        def forward():
                            with sdpa_kernel(backend):
                                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                        if not backward:
                            return forward
                        out = forward()
                        return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

                    mask = "causal" if causal else "full"
                    size = 8 * batch * heads * length * dim
                    shape = dict(batch=batch, heads=heads, kv_heads=heads, head_dim=dim, seq_q=length, seq_kv=length)
                    self.measure(f"attention_fwd({mask})", "bfloat16", lambda: make(False), size, flops, False,
                                 f"; {name} of PyTorch", **shape)
                    self.measure(f"attention_bwd({mask})", "bfloat16", lambda: make(True), size, flops * 5 // 2, False,
                                 f"; {name} of PyTorch", **shape)

    def memory_bound(self):
        torch = self.torch
        ops, functional = torch.ops.aten, torch.nn.functional
        shapes = [(256, 1024), (1024, 1024), (4096, 1024), (2048, 4096), (8192, 4096), (16384, 8192), (8192, 768), (4096, 1600)]
        for m, n in shapes:
            new = lambda dtype=None, columns=n: self.random(m, columns, dtype=dtype)
            weight, bias = self.random(n), self.random(n)
            wide32 = torch.float32

            def norm_backward():
                x, dy = new(), new()
                _, mean, deviation = ops.native_layer_norm(x, [n], weight, bias, 1e-5)
                return lambda: ops.native_layer_norm_backward(dy, x, [n], mean, deviation, weight, bias, [True, True, True])

            def rms_backward():
                x, dy = new(), new()
                y, deviation = ops._fused_rms_norm(x, [n], weight, 1e-5)
                return lambda: ops._fused_rms_norm_backward(dy, x, [n], deviation, weight, [True, True])

            def binary(run, dtype=None):
                def make():
                    a, b, c = new(dtype), new(dtype), new(dtype)
                    return lambda: run(a, b, c)
                return make

            def gather():
                x, index, y = new(), torch.randperm(m, device="cuda"), new()
                return lambda: torch.index_select(x, 0, index, out=y)

            def scatter():
                x, index, y = new(), torch.randperm(m, device="cuda"), new()
                return lambda: y.index_add_(0, index, x)

            def embedding():
                table, index, y = self.random(50304, n), torch.randint(50304, (m,), device="cuda"), new()
                return lambda: torch.index_select(table, 0, index, out=y)

            def embedding_backward():
                dy, index = new(), torch.randint(50304, (m,), device="cuda")
                return lambda: ops.embedding_dense_backward(dy, index, 50304, -1, False)

            def cast(source, target):
                def make():
                    a, b = new(source), new(source).to(target)
                    return lambda: b.copy_(a)
                return make

            size = 6 * m * n
            e = m * n
            todo = [
                ("layer_norm_fwd", "bfloat16", binary(lambda a, b, c: ops.native_layer_norm(a, [n], weight, bias, 1e-5)), 4 * e),
                ("layer_norm_bwd", "bfloat16", norm_backward, 6 * e),
                ("rms_norm_fwd", "bfloat16", binary(lambda a, b, c: ops._fused_rms_norm(a, [n], weight, 1e-5)), 4 * e),
                ("rms_norm_bwd", "bfloat16", rms_backward, 6 * e),
                ("add", "bfloat16", binary(lambda a, b, c: torch.add(a, b, out=c)), 6 * e),
                ("gelu_fwd", "bfloat16", binary(lambda a, b, c: ops.gelu.out(a, approximate="tanh", out=c)), 4 * e),
                ("gelu_bwd", "bfloat16", binary(lambda a, b, c: ops.gelu_backward.grad_input(a, b, approximate="tanh", grad_input=c)), 6 * e),
                ("silu_fwd", "bfloat16", binary(lambda a, b, c: ops.silu.out(a, out=c)), 4 * e),
                ("mul", "bfloat16", binary(lambda a, b, c: torch.mul(a, b, out=c)), 6 * e),
                ("softmax_fwd", "bfloat16", binary(lambda a, b, c: torch.softmax(a, -1)), 4 * e),
                ("softmax_bwd", "bfloat16", binary(lambda a, b, c: ops._softmax_backward_data(a, b, -1, torch.bfloat16)), 6 * e),
                ("log_softmax_fwd", "fp32", binary(lambda a, b, c: torch.log_softmax(a, -1), wide32), 8 * e),
                ("log_softmax_bwd", "fp32", binary(lambda a, b, c: ops._log_softmax_backward_data(a, b, -1, wide32), wide32), 12 * e),
                ("dropout", "bfloat16", binary(lambda a, b, c: ops.native_dropout(a, 0.1, True)), 5 * e),
                ("copy", "bfloat16", binary(lambda a, b, c: b.copy_(a)), 4 * e),
                ("transpose", "bfloat16", binary(lambda a, b, c: b.view(n, m).copy_(a.t())), 4 * e),
                ("cast bf16->fp32", "bfloat16", cast(torch.bfloat16, wide32), 6 * e),
                ("cast fp32->bf16", "fp32", cast(wide32, torch.bfloat16), 6 * e),
                ("cast bf16->fp8", "bfloat16", cast(torch.bfloat16, torch.float8_e4m3fn), 3 * e),
                ("amax", "bfloat16", binary(lambda a, b, c: torch.amax(a)), 2 * e),
                ("sum rows", "bfloat16", binary(lambda a, b, c: torch.sum(a, 0)), 2 * e),
                ("zero", "fp32", binary(lambda a, b, c: a.zero_(), wide32), 4 * e),
                ("accumulate", "fp32", binary(lambda a, b, c: a.add_(b), wide32), 12 * e),
                ("gather rows", "bfloat16", gather, 4 * e),
                ("scatter rows", "bfloat16", scatter, 6 * e),
                ("emb", "bfloat16", embedding, 4 * e),
                ("lookup_bwd", "bfloat16", embedding_backward, 4 * e),
            ]
            for op, dtype, make, moved in todo:
                self.measure(op, dtype, make, max(size, moved), notes=f"; {moved} bytes", m=m, n=n)
        for elements in (1 << 20, 1 << 23, 1 << 26, 1 << 28):
            for way in ("fused", "foreach"):
                def adam():
                    p = torch.nn.Parameter(self.random(elements, dtype=torch.float32))
                    p.grad = self.random(elements, dtype=torch.float32)
                    optimizer = torch.optim.AdamW([p], **{way: True})
                    optimizer.step()
                    return optimizer.step
                self.measure(f"adam {way}", "fp32", adam, 1 << 40, notes=f"; {28 * elements} bytes", m=elements, n=1)


def decoder_class(torch):
    nn, functional = torch.nn, torch.nn.functional

    def rotate(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    grouped = getattr(functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)

    class Experts(nn.Module):
        """Gated experts without dropped tokens: route, permute, a grouped product per matrix, weigh and add up."""

        def __init__(self, c):
            super().__init__()
            self.c = c
            self.router = nn.Linear(c["hidden"], c["experts"], bias=False)
            scale = c["hidden"] ** -0.5
            for name, rows, columns in (("up", c["hidden"], c["ffn"]), ("gate", c["hidden"], c["ffn"]), ("down", c["ffn"], c["hidden"])):
                setattr(self, name, nn.Parameter(torch.randn(c["experts"], rows, columns) * scale))

        def forward(self, x):
            weights, chosen = torch.topk(torch.softmax(self.router(x).float(), -1), self.c["top"], -1)
            order = torch.argsort(chosen.view(-1), stable=True)
            tokens = order // self.c["top"]
            ends = torch.cumsum(torch.bincount(chosen.view(-1), minlength=self.c["experts"]), 0).to(torch.int32)
            y = x[tokens]
            y = functional.silu(grouped(y, self.gate, offs=ends)) * grouped(y, self.up, offs=ends)
            y = grouped(y, self.down, offs=ends) * weights.view(-1)[order].unsqueeze(-1).to(x.dtype)
            return torch.zeros_like(x).index_add(0, tokens, y)

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c, head = c, c["hidden"] // c["heads"]
            norm = nn.RMSNorm if c["gated"] else nn.LayerNorm
            self.norm1, self.norm2 = norm(c["hidden"]), norm(c["hidden"])
            bias = not c["gated"]
            self.qkv = nn.Linear(c["hidden"], (c["heads"] + 2 * c["kv_heads"]) * head, bias=bias)
            self.out = nn.Linear(c["hidden"], c["hidden"], bias=bias)
            self.up = nn.Linear(c["hidden"], c["ffn"], bias=bias)
            self.gate = nn.Linear(c["hidden"], c["ffn"], bias=False) if c["gated"] else None
            self.down = nn.Linear(c["ffn"], c["hidden"], bias=bias)
            if c["experts"]:
                self.up = self.gate = self.down = None
                self.mlp = Experts(c)

        def forward(self, x, cos, sin):
            c, head = self.c, self.c["hidden"] // self.c["heads"]
            b, s, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).split([c["heads"] * head, c["kv_heads"] * head, c["kv_heads"] * head], -1)
            q, k, v = (t.view(b, s, -1, head).transpose(1, 2) for t in (q, k, v))
            if c["gated"]:
                q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=c["kv_heads"] != c["heads"])
            x = x + self.out(a.transpose(1, 2).reshape(b, s, -1))
            y = self.norm2(x)
            if c["experts"]:
                return x + self.mlp(y.view(b * s, -1)).view(b, s, -1)
            y = functional.silu(self.gate(y)) * self.up(y) if c["gated"] else functional.gelu(self.up(y), approximate="tanh")
            return x + self.down(y)

    class Decoder(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c = c
            self.tokens = nn.Embedding(c["vocab"], c["hidden"])
            self.places = None if c["gated"] else nn.Embedding(c["length"], c["hidden"])
            self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
            self.norm = (nn.RMSNorm if c["gated"] else nn.LayerNorm)(c["hidden"])
            self.head = nn.Linear(c["hidden"], c["vocab"], bias=False)
            if not c["gated"]:
                self.head.weight = self.tokens.weight

        def forward(self, tokens, targets):
            c = self.c
            x = self.tokens(tokens)
            cos = sin = None
            if c["gated"]:
                head = c["hidden"] // c["heads"]
                angles = torch.outer(torch.arange(tokens.shape[1], device=x.device).float(),
                                     1e4 ** (-torch.arange(0, head, 2, device=x.device) / head))
                angles = torch.cat((angles, angles), -1)
                cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            else:
                x = x + self.places(torch.arange(tokens.shape[1], device=x.device))
            if torch.is_autocast_enabled():
                x = x.to(torch.get_autocast_dtype("cuda"))
                cos, sin = (None if t is None else t.to(x.dtype) for t in (cos, sin))
            for block in self.blocks:
                if c["recompute"]:
                    from torch.utils.checkpoint import checkpoint
                    x = checkpoint(block, x, cos, sin, use_reentrant=False)
                else:
                    x = block(x, cos, sin)
            logits = self.head(self.norm(x))
            return functional.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))

    return Decoder


def gpt(name, layers, hidden, heads, batch, **more):
    return dict(name=name, layers=layers, hidden=hidden, heads=heads, kv_heads=heads, ffn=4 * hidden, vocab=50304, length=1024,
                gated=False, batch=batch, **more)


def llama(name, layers, hidden, heads, kv_heads, ffn, batch, vocab=128256, length=4096, **more):
    return dict(name=name, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, ffn=ffn, vocab=vocab, length=length,
                gated=True, batch=batch, **more)


def training_cases():
    cases = [
        gpt("gpt-tiny", 4, 512, 8, 4), gpt("gpt2-124M", 12, 768, 12, 1), gpt("gpt2-124M", 12, 768, 12, 4), gpt("gpt2-124M", 12, 768, 12, 16),
        gpt("gpt2-124M", 12, 768, 12, 16, steps=4), gpt("gpt2-350M", 24, 1024, 16, 1),
        gpt("gpt2-350M", 24, 1024, 16, 8), gpt("gpt2-774M", 36, 1280, 20, 8),
        gpt("gpt2-1558M", 48, 1600, 25, 4),
        llama("llama-160M", 12, 768, 12, 12, 2048, 8, vocab=32000, length=2048),
        llama("llama-1B", 16, 2048, 32, 8, 8192, 2), llama("llama-1B", 16, 2048, 32, 8, 8192, 2, recompute=True),
        llama("llama-1B", 16, 2048, 32, 8, 8192, 4, vocab=32000), llama("llama-3B", 28, 3072, 24, 8, 8192, 1, recompute=True),
        llama("llama-8B-6layers", 6, 4096, 32, 8, 14336, 2), llama("llama-8B-6layers", 6, 4096, 32, 8, 14336, 1, length=8192),
        llama("llama-70B-2layers", 2, 8192, 64, 8, 28672, 1, vocab=32000),
        llama("moe-8x", 8, 2048, 16, 16, 5632, 4, vocab=32000, length=2048, experts=8, top=2),
        llama("moe-64x", 8, 2048, 16, 16, 1408, 4, vocab=32000, length=2048, experts=64, top=6),
    ]
    return cases


def attention_in_use(torch):
    """Which kernel PyTorch chooses for fused attention on this device, in the words of docs/validation.md."""
    from torch.profiler import ProfilerActivity, profile
    q = torch.randn(2, 8, 1024, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as traced:
        torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    used = " ".join(event.key for event in traced.key_averages())
    return "cuDNN attention" if "cudnn_attention" in used else "FlashAttention-2" if "flash_attention" in used else "other attention"


def train(torch, case, way, precision, device_rows, kernels=None):
    case = {"recompute": False, "steps": 1, "experts": 0, "top": 0, **case}
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = decoder_class(torch)(case)
    if precision == "bf16 params":
        model = model.to(torch.bfloat16)
    if precision == "FSDP2":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    if way != "eager":
        for block in model.blocks if precision == "FSDP2" else ():
            block.compile()
    run = model
    if way != "eager" and precision != "FSDP2":
        run = torch.compile(model, mode="reduce-overhead" if way == "graphs" else "default")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(case["vocab"], (case["batch"], case["length"]), device="cuda")

    def step():
        for _ in range(case["steps"]):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=precision == "autocast"):
                loss = run(tokens, tokens)
            (loss / case["steps"]).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times, host = [], []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(4):
            step()
        host.append((time.perf_counter() - started) / 4)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - started) / 4)
    peak = torch.cuda.max_memory_allocated() / (1 << 30)
    reserved = torch.cuda.max_memory_reserved() / (1 << 30)
    if kernels is not None:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as traced:
            step()
            torch.cuda.synchronize()
        found = [(e.key, e.count, e.self_device_time_total) for e in traced.key_averages() if e.self_device_time_total > 0]
        kernels.append((case["name"], case["batch"], way, precision, sorted(found, key=lambda e: -e[2])))
    parameters = sum(p.numel() for p in model.parameters())
    compiled = {"eager": "eager", "compile": "torch.compile", "graphs": "torch.compile with CUDA graphs"}[way]
    notes = f"plain PyTorch with {attention_in_use(torch)}, {compiled}, {precision}, fused AdamW; host {1e3 * statistics.median(host):.1f} ms a step"
    if case["experts"]:
        notes += (f"; num-experts={case['experts']}; moe-router-topk={case['top']}; "
                  f"moe-ffn-hidden-size={case['ffn']}")
    row = {"source": SOURCE.format(torch=torch.__version__, cuda=torch.version.cuda), "model": case["name"],
           "layers": case["layers"], "hidden": case["hidden"], "heads": case["heads"], "ffn_hidden": case["ffn"],
           "kv_heads": case["kv_heads"], "vocab": case["vocab"], "seq_len": case["length"], "params_B": f"{parameters / 1e9:.4f}",
           "gpus": 1, "gpus_per_node": 1, "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "vpp": 1, "micro_batch": case["batch"],
           "global_batch": case["batch"] * case["steps"], "precision": "bf16", "recompute": "full" if case["recompute"] else "none",
           "sequence_parallel": 0, "zero_stage": "fsdp" if precision == "FSDP2" else 0, "schedule": "none", "tier": "A", "notes": notes}
    device_rows.append((row, statistics.median(times), peak, reserved))


def measure_training(torch, args):
    rows, failed, kernels = [], [], [] if args.profile else None
    torch.distributed.init_process_group("nccl", init_method="tcp://localhost:29511", rank=0, world_size=1)
    begun = time.perf_counter()
    for way in args.ways.split(","):
        for case in (c for c in training_cases() if re.search(args.models, f"{c['name']} x {c['batch']}")):
            for precision in ("bf16 params", "FSDP2" if case["gated"] else "autocast"):
                if time.perf_counter() - begun > args.seconds:
                    failed.append(f"{case['name']} {way} {precision}: no time left")
                    continue
                try:
                    train(torch, case, way, precision, rows, kernels)
                except torch.OutOfMemoryError:
                    failed.append(f"{case['name']} {way} {precision}: out of memory")
                except RuntimeError as error:
                    failed.append(f"{case['name']} {way} {precision}: {str(error).splitlines()[0][:160]}")
            torch._dynamo.reset()
    torch.distributed.destroy_process_group()
    fields = PLAN_FIELDS + ["tier", "notes"]
    for path, extra in ((args.output, ["step_time_s"]), (args.memory, ["peak_GiB", "reserved_GiB", "measure", "rank_scope"])):
        if not path:
            continue
        with open(path, "w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, fields + extra)
            table.writeheader()
            for number, (row, seconds, peak, reserved) in enumerate(rows, 1):
                if path == args.memory and "CUDA graphs" in row["notes"]:
                    continue  # their memory is a pool of its own, which the allocator's peak leaves out
                figures = {"step_time_s": f"{seconds:.6g}", "peak_GiB": f"{peak:.4g}", "reserved_GiB": f"{reserved:.4g}",
                           "measure": "torch max_memory_allocated", "rank_scope": "one rank"}
                table.writerow({"id": f"{args.family}-{number}", "gpu": args.gpu, **row, **{key: figures[key] for key in extra}})
    if args.profile:
        with open(args.profile, "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["model", "micro_batch", "way", "precision", "kernel", "count", "time_us"])
            for name, batch, way, precision, found in kernels:
                table.writerows([name, batch, way, precision, key[:160], count, f"{total:.1f}"] for key, count, total in found)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kernels", "training"])
    parser.add_argument("--gpu", required=True, help="the device's name in the tables, for example H100-SXM5-80GB")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.csv")
    parser.add_argument("--memory", metavar="FILE.csv", help="training: where the peaks go")
    parser.add_argument("--profile", metavar="FILE.csv", help="training: the device's kernels of one step, by name")
    parser.add_argument("--ways", default="eager,compile", help="training: of the host, of eager, compile, graphs")
    parser.add_argument("--models", default="", metavar="REGEX", help="training: only those whose 'name x batch' matches")
    parser.add_argument("--seconds", type=float, default=1e9, help="training: begin no case after so long")
    parser.add_argument("--family", default="measured", help="training: the rows' id, in front of their number")
    parser.add_argument("--quick", action="store_true", help="kernels: a third of the shapes")
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        parser.error("PyTorch is not installed")
    if not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device")
    if args.what == "training":
        failed = measure_training(torch, args)
    else:
        kernels = Kernels(torch, args.gpu, args.quick)
        for part in (kernels.memory_bound, kernels.attention, kernels.groups, kernels.products):
            started = time.perf_counter()
            part()
            torch.cuda.empty_cache()
            print(f"{part.__name__}: {len(kernels.rows)} rows, {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
            with open(args.output, "w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, KERNEL_FIELDS)
                table.writeheader()
                table.writerows(kernels.rows)
        failed = kernels.failed
    for text in failed:
        print(f"not measured: {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
