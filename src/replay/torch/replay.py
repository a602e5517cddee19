#!/usr/bin/env python3
"""Times the ops of a model on this machine through PyTorch, and writes what they took as a CSV that llmperf calibrates from.

    python3 replay.py [--device cuda|npu|mps|xpu|cpu] [--seconds 300] [-o rows.csv]

Python 3.8 and PyTorch 1.13, or newer ones, are all that is needed. Fused kernels of packages that are installed (flash_attn, flashinfer,
flash_mla, fla, torch_npu, triton) are used. What was measured stays in the file whatever happens, and the same command goes on with it.
"""
from __future__ import annotations
import argparse, contextlib, csv, ctypes, dataclasses, datetime, functools, importlib, itertools, json, math, os, pathlib  # noqa: E401
import platform, re, signal, statistics, sys, time, warnings  # noqa: E401
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple
try:
  import torch, torch.nn.functional as F  # noqa: E401
  TORCH = hasattr(torch, "__version__")  # else a folder of that name that stands near
except ImportError:
  TORCH = False

# What is timed. llmperf puts a model's ops between the quotes; here stand examples of every kind. ROWS is in the kernel schema of
# llmperf's measurements, with what the model calls an op, how often a step executes it, and the seconds of a step that it stands for.
WHAT = "examples of every kind of op"
ROWS = """\
hardware,op,dtype,weights,ranks,batch,m,n,k,hidden,inter,topk,experts,tp,ep,distribution,q_len,kv_len,heads,kv_heads,head_dim,causal,kv_dtype,window,bytes,name,count,value
,gemm,fp32,,,,256,512,512,,,,,,,,,,,,,,,,,qkv_proj,2,
,gemm,bf16,,,3,16,64,128,,,,,,,,,,,,,,,,,absorbed,,
,gemm,fp32,w8a8,,,64,256,256,,,,,,,,,,,,,,,,,up_proj,,
,gemm,bf16,int8,,,8,256,256,,,,,,,,,,,,,,,,,down_proj,,
,gemm,bf16,w4a16-g128,,,8,256,256,,,,,,,,,,,,,,,,,down_proj,,
,gemm,fp8,,,,64,256,256,,,,,,,,,,,,,,,,,down_proj,,
,matmul_all_reduce,bf16,,2,,64,256,256,,,,,,,,,,,,,,,,,o_proj+all_reduce,,
,attention_prefill,fp32,,,1,,,,,,,,,,,128,128,8,2,64,1,,,,attention,2,
,attention_prefill,bf16,,,1,,,,,,,,,,,64,192,8,2,64,1,,64,,attention,,
,attention_decode,fp32,,,4,,,,,,,,,,,1,256,8,2,64,1,,,,attention,,
,attention_decode,bf16,,,4,,,,,,,,,,,1,256,8,2,64,1,fp8,,,attention,,
,mla_prefill,fp32,,,1,,,,,,,,,,,64,64,4,,,,,,,attention,,
,mla_decode,fp32,,,2,,,,,,,,,,,1,128,8,,,,,,,attention,,
,moe,fp32,,,,16,,,128,64,2,8,1,1,balanced,,,,,,,,,,experts,,
,moe_products,fp32,,,,16,,,128,64,2,8,1,2,balanced,,,,,,,,,,experts,,
,vector:rms_norm,fp32,,,,64,512,,,,,,,,,,,,,,,,,,norm,2,
,vector:layer_norm,fp32,,,,64,512,,,,,,,,,,,,,,,,,,norm,,
,vector:add,fp32,,,,64,512,,,,,,,,,,,,,,,,,,residual,,
,vector:multiply,fp32,,,,64,512,,,,,,,,,,,,,,,,,,gate,,
,vector:add_rms_norm,bf16,,,,64,512,,,,,,,,,,,,,,,,,,norm,,
,vector:add_layer_norm,fp32,,,,64,512,,,,,,,,,,,,,,,,,,norm,,
,vector:rope,fp32,,,,640,64,,,,,,,,,,,8,2,,,,,,rope,2,
,vector:activation,fp32,,,,64,512,,,,,,,,,,,,,,,,,,activation,,
,vector:gated_activation,fp32,,,,64,512,,,,,,,,,,,,,,,,,,activation,2,
,vector:softmax,fp32,,,,64,512,,,,,,,,,,,,,,,,,,router,,
,vector:sampling,fp32,,,,4,4096,,,,,,,,,,,,,,,,,,sampling,,
,vector:elementwise,fp32,,,,64,512,,,,,,,,,,,,,,,,,262144,copy,,
,gather,fp32,,,,64,512,4096,,,,,,,,,,,,,,,,,embedding,1,
,kv_write,fp32,,,,64,,,,,,,,,,,,,2,64,,,,,kv_write,2,
,scan:gated_delta_net,fp32,,,2,,64,64,,,,,,,,1,,8,4,,,,,,scan,,
,scan:mamba2,fp32,,,1,,32,32,,,,,,,,1,,4,2,,,,,,scan,,
,all_reduce,fp32,,2,,,,,,,,,,,,,,,,,,,,65536,all_reduce,,
,all_gather,fp32,,2,,,,,,,,,,,,,,,,,,,,65536,all_gather,,
,reduce_scatter,fp32,,2,,,,,,,,,,,,,,,,,,,,65536,reduce_scatter,,
,all_to_all,fp32,,2,,,,,,,,,,,,,,,,,,,,65536,all_to_all,,
"""
# Whole steps: "columns", what their line of measurements says, and "blocks": [[times, [[row, executions], ...]], ...], rows numbered
# from 0 as they stand in ROWS; a number that no row has is an op that cannot be replayed.
STEPS = """\
[{"columns": {"model": "example", "weights": "fp32", "batch": 1, "phase": "prefill", "new_tokens": 64, "context": 0},
  "blocks": [[1, [[27, 1]]], [2, [[15, 1], [0, 1], [21, 1], [28, 1], [7, 1], [23, 1]]]]}]
"""

# ---- Rows.
SHAPE = ("op dtype weights ranks batch m n k hidden inter topk experts tp ep distribution q_len kv_len heads kv_heads head_dim causal "
         "kv_dtype window bytes power copies").split()
WORDS = ("op", "dtype", "weights", "distribution", "causal", "kv_dtype", "power")  # columns that are no numbers
SILENT = {"batch": "1", "tp": "1", "ep": "1", "ranks": "1", "causal": "1", "distribution": "balanced", "window": "0", "copies": "0"}
RESULT = "latency_us spread_us repetitions kernel runtime mode clock_mhz power_w temperature_c untrusted".split()
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
HALF = "bf16 fp16"
PACKAGES = ("torch_npu", "triton", "flash_attn", "flash_attn_interface", "flashinfer", "flash_mla", "fla")
Tensor = Any
class Unavailable(Exception):
  """Why a row cannot run here. It is told, and the next kernel or row is tried."""
FAILURES = Unavailable, RuntimeError, ValueError, TypeError, AttributeError, AssertionError, LookupError, OSError, ImportError, MemoryError
def unless(*pairs: Any) -> str:
  """Of conditions, each with what is to be said behind it, the first that does not hold; empty where all do."""
  return next((str(why) for holds, why in zip(pairs[::2], pairs[1::2]) if not holds), "")

class Row:
  def __init__(self, cells: Dict[str, str], index: int = -1) -> None:
    self.cells, self.index = cells, index
    self.op = {"matmul": "gemm", "alltoall": "all_to_all"}.get(self.text("op"), self.text("op"))
    self.dtype, self.exchanges = self.text("dtype") or "fp16", self.op in (*COLLECTIVES, "matmul_all_reduce")
    self.family = "collective" if self.op in COLLECTIVES else re.sub(r"_(prefill|decode|products)$", "", self.op.split(":")[0])
  def text(self, column: str) -> str: return self.cells.get(column, "")
  def n(self, column: str, default: int = 0) -> int: return int(float(self.cells.get(column) or default))
  def key(self) -> str:
    """Equal texts are the same op: cells that say no more than empty ones are left out."""
    return " ".join([self.op, self.dtype] + [f"{c}={self.text(c)}" for c in SHAPE[2:] if self.text(c) not in ("", SILENT.get(c))])
  def __str__(self) -> str:
    words = [self.op, self.dtype, self.text("weights")] + [f"{c} {self.text(c)}" for c in SHAPE[3:] if self.text(c)]
    return " ".join(filter(None, words)) + (f" ({self.text('name')[:60]})" if self.text("name") else "")
  def problem(self) -> str:
    """What makes the line no row, empty where it is one."""
    wrong = [c for c in SHAPE if c not in WORDS and not re.fullmatch(r"\d{0,12}(\d{3})?(\.0*)?", self.text(c))]
    lacking = [c for c in getattr(FAMILIES.get(self.family), "sizes", "").split() if not wrong and not self.n(c)]
    return unless(not wrong, f"{', '.join(wrong)}: no such size", self.family in FAMILIES, f"op '{self.op[:40]}' is not replayed",
                  self.dtype in BYTES, f"dtype '{self.dtype[:40]}' is not replayed", not lacking, f"{', '.join(lacking)}: not given")
def cells_of(line: str) -> List[str]:
  return quietly(lambda: [c.strip() for c in next(csv.reader([line.replace("\0", "?")], strict=True))], [])
def parse(text: str) -> Tuple[List[str], List[Row], List[str]]:
  """The columns, the rows, and what is wrong with lines that are none: the others are read."""
  lines = [(i, cells_of(line)) for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
  columns = lines[0][1] if lines else []
  if columns.count("op") != 1 or len(set(columns)) < len(columns): raise ValueError("the first line has no column 'op', or one twice")
  told = [(number, Row(dict(zip(columns, cells)), index), len(cells)) for index, (number, cells) in enumerate(lines[1:])]
  wrong = {r.index: f"line {i}: {unless(n == len(columns), f'{n} cells under {len(columns)} columns') or r.problem()}" for i, r, n in told
           if n != len(columns) or r.problem()}
  return columns, [r for _, r, _ in told if r.index not in wrong], list(wrong.values())

# ---- The device.
def package(name: str) -> Any: return importlib.import_module(name)
def content_of(path: str) -> str: return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
def found_in(path: str, pattern: str) -> str: return quietly(lambda: re.findall(pattern, content_of(path), re.M)[0].strip(), "")
def quietly(call: Callable[[], Any], otherwise: Any = None) -> Any:
  try: return call()
  except Exception: return otherwise
def missing(names: str) -> str:
  """The first of the things "module:attribute" that is not there, empty where all are. What is broken is not there."""
  for module, _, path in (name.partition(":") for name in names.split()):
    found = quietly(lambda: functools.reduce(getattr, filter(None, path.split(".")), package(module)))
    if found is None: return f"{module}.{path}".strip(".")
  return ""

class Device:
  """What torch has: its clock, its memory, its sensors, and whether it captures graphs."""
  def __init__(self, kind: str, number: int = 0, cache: int = 0) -> None:
    self.kind, self.number, self.api = kind, number, getattr(torch, kind, None)  # type: str, int, Any
    self.where = torch.device("cpu") if kind == "cpu" else torch.device(kind, number)
    self.hip = kind == "cuda" and bool(getattr(torch.version, "hip", None))
    if kind not in ("cpu", "mps"): getattr(self.api, "set_device")(number)
    processor = found_in("/proc/cpuinfo", r"model name\s*:(.+)") or platform.processor() or platform.machine()
    self.title = str(quietly(lambda: self.api.get_device_name(number)) or (processor if kind in ("cpu", "mps") else kind))
    self.name = re.sub(r"[^a-z0-9.]+", "-", self.title.lower()).strip("-") or kind
    self.capability: Tuple[int, int] = quietly(lambda: self.api.get_device_capability(number), (0, 0)) if kind == "cuda" else (0, 0)
    # AMD's and Ascend's drivers do not tell of the caches behind the second level. A processor's keep a part of twice their size.
    sizes = [found_in(f"/sys/devices/system/cpu/cpu0/cache/index{i}/size", r"^(\d+)K") if kind == "cpu" else "" for i in range(5)]
    known = [256 << 20 if self.hip else {"npu": 192 << 20, "mps": 48 << 20}.get(kind, 0)] + [int(s or 0) << 10 for s in sizes]
    known.append(int(quietly(lambda: self.api.get_device_properties(number).L2_cache_size, 0)))
    self.flushed = cache or (8 if kind == "cpu" else 2) * (max(known) or 64 << 20)
    self.graph_class: Any = getattr(self.api, {"cuda": "CUDAGraph", "npu": "NPUGraph", "xpu": "XPUGraph"}.get(kind, "-"), None)
  def free(self) -> int:
    told = {"cpu": lambda: int(found_in("/proc/meminfo", r"MemAvailable:\s*(\d+)")) << 10, "mps": lambda: self.api.recommended_max_memory()}
    free = lambda: self.api.mem_get_info(self.number)[0] + self.api.memory_reserved() - self.api.memory_allocated()
    return int(quietly(told.get(self.kind, free), 4 << 30))
  def synchronize(self) -> Any: return self.api.synchronize() if self.kind != "cpu" else None
  def stopwatch(self) -> Callable[[], float]:
    """Starts now. Called, it says the seconds until then, by the device's own clock where it has one."""
    if self.kind == "cpu" or not hasattr(self.api, "Event"):
      self.synchronize()
      begin = time.perf_counter()
      return lambda: (self.synchronize(), time.perf_counter() - begin)[1]
    start, end = self.api.Event(enable_timing=True), self.api.Event(enable_timing=True)
    start.record()
    return lambda: (end.record(), self.synchronize(), float(start.elapsed_time(end)) * 1e-3)[2]
  def sensors(self) -> List[Optional[float]]:
    """Clock in MHz, power in W, temperature in C, by the driver's own library; none where nothing tells."""
    def read(of_amd: str, of_nvidia: str, *more: int) -> float:
      if self.hip: return float(getattr(self.api, of_amd)(self.number))
      library, handle, value = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint()
      seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[self.number:]
      index = int(seen[0]) if seen and seen[0].isdigit() else self.number
      failed = library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
      return math.nan if failed or getattr(library, "nvmlDeviceGet" + of_nvidia)(handle, *more, ctypes.byref(value)) else float(value.value)
    asked: Any = (1, "clock_rate", "ClockInfo", 1), (1e3, "power_draw", "PowerUsage"), (1, "temperature", "Temperature", 0)
    told = [quietly(lambda: read(*names) / unit, math.nan) if self.kind == "cuda" else math.nan for unit, *names in asked]
    return [t if t == t else None for t in told]
  def facts(self) -> List[str]:
    driver = found_in("/proc/driver/nvidia/version", "NVRM.*?: (.+)") or found_in("/usr/local/Ascend/driver/version.info", "Version=(.+)")
    told = {"device": self.title, "torch": torch.__version__, "Python": platform.python_version(), "system": platform.platform(),
            "driver": driver, "CUDA": getattr(torch.version, "cuda", ""), "ROCm": getattr(torch.version, "hip", ""), "date":
            datetime.date.today(), "threads": torch.get_num_threads() if self.kind == "cpu" else "", "command": " ".join(sys.argv),
            **{name: getattr(package(name), "__version__", "is there") for name in PACKAGES if not missing(name)}}
    return [f"{name}: {text}" for name, text in told.items() if text]

class Ranks:
  """This process among those that torchrun started, alone without it. Rank 0 decides, over a group of the hosts."""
  def __init__(self, kind: str) -> None:
    self.rank, self.size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if self.size > 1:
      torch.distributed.init_process_group({"cuda": "nccl", "npu": "hccl", "xpu": "xccl"}.get(kind, "gloo"))
      self.hosts = torch.distributed.new_group(backend="gloo")
  def agreed(self, value: float, largest: bool = False) -> float:
    """The largest of all, or what rank 0 says."""
    number = torch.tensor([value], dtype=torch.float64)
    dist = torch.distributed
    if self.size > 1: dist.all_reduce(number, dist.ReduceOp.MAX, self.hosts) if largest else dist.broadcast(number, 0, self.hosts)
    return float(number[0])

# ---- Operands: element i of operand j is the same number on every machine (src/replay/operands.h), so that results can be compared.
EXACT = 1 << 22  # tensors of more elements repeat their first ones
@functools.lru_cache(maxsize=16)
def numbers_of(operand: int, count: int) -> Tensor:
  """In [-1, 1), spread evenly, in fp32 on the host: a finaliser of MurmurHash3 on both numbers."""
  low = 0xFFFFFFFF
  h = torch.arange(count, dtype=torch.int64).mul_(0x9E3779B9).add_((operand + 1) * 0x85EBCA6B).bitwise_and_(low)
  for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)): h = h.bitwise_xor_(h >> shift).mul_(factor).bitwise_and_(low)
  return ((h.bitwise_xor_(h >> 16) >> 8) - (1 << 23)).to(torch.float32) * (1.0 / (1 << 23))
def torch_type(dtype: str) -> Any:  # torch before 2.1 has no fp8, and says so
  return getattr(torch, {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8", "fp8": "float8_e4m3fn"}[dtype])

@dataclasses.dataclass
class Op:
  """What executes a row: a call for each set of operands, and what of its results is compared."""
  calls: List[Callable[[], Any]]
  seen: Callable[[Any], Any] = lambda result: result
  within: Callable[[], Any] = contextlib.nullcontext

class Lab:
  """Makes operands on a device; without one on the host in fp64, where is computed what results are compared with."""
  def __init__(self, device: Any, page: int = 0, rank: int = 0) -> None:  # a Device or none
    self.device, self.page, self.rank, self.where = device, page, rank, device.where if device else torch.device("cpu")
  def room(self, size: float) -> None:
    free = self.device.free() if self.device else 1 << 34
    if size > 0.9 * free: raise Unavailable(f"needs {size / 2**30:,.1f} GiB at once, and {free / 2**30:,.1f} GiB are free")
  def fill(self, operand: int, shape: Sequence[int], dtype: str, scale: float = 1.0, offset: float = 0.0) -> Tensor:
    count = functools.reduce(lambda a, b: a * b, shape, 1)
    if count < 1: raise Unavailable("has an operand without elements")
    self.room(count * (BYTES[dtype] if self.device else 8))
    first = numbers_of(operand, 1 << max(12, (min(count, EXACT) - 1).bit_length()))[:count] * scale + offset
    first = (first.round() if dtype == "int8" else first).to(torch_type(dtype))
    if not self.device: return first.to(torch.float64).reshape(tuple(shape))
    first, whole = first.to(self.where), torch.empty(count, dtype=first.dtype, device=self.where)
    for at in range(0, count, EXACT): whole[at:at + EXACT] = first[:count - at]
    return whole.reshape(tuple(shape))
  def integers(self, count: int, step: int = 1, dtype: Any = None) -> Tensor:
    self.room(16 * count)
    return (torch.arange(count, dtype=torch.int64) * step).to(dtype or torch.int32).to(self.where)
  def full(self, shape: Sequence[int], value: float, dtype: Any = None) -> Tensor:
    return torch.full(tuple(shape), value, dtype=dtype or torch.float32, device=self.where)

# ---- Kernels: a class for each kind of op, with those that are known for it by preference. `plain`, of torch alone, also computes on
# the host what results are compared with.
@dataclasses.dataclass
class Kernel:
  name: str
  build: Callable[[Any], Op]
  devices: str = "cuda npu mps xpu cpu"
  needs: str = ""  # "module:attribute ..."
  dtypes: str = "fp32 bf16 fp16"
  fits: Callable[[Any], str] = lambda family: ""  # why not for this shape; "-": nothing that a reader wants to hear of
  def why_not(self, family: Family) -> str:
    lacking = unless(family.lab.device.kind in self.devices.split(), "-") or self.fits(family)
    return lacking or unless(not missing(self.needs), missing(self.needs) + " is not here", family.row.dtype in self.dtypes.split(),
                             f"takes {self.dtypes.replace(' ', ', ')}")

class Family:
  sizes, kernels = "", []  # type: str, List[Kernel] # columns that every row has; by preference
  plain: Callable[..., Op]
  def __init__(self, lab: Lab, row: Row) -> None:
    self.lab, self.row, self.full, self.integers, self.page = lab, row, lab.full, lab.integers, lab.page
    self.m, self.width, self.k, self.batch = row.n("m"), row.n("n"), row.n("k"), row.n("batch", 1)
    self.heads, self.kv_heads, self.share = row.n("heads"), row.n("kv_heads"), row.n("heads") // max(1, row.n("kv_heads"))
  def fill(self, operand: int, shape: Sequence[int], scale: float = 1.0, offset: float = 0.0, dtype: str = "") -> Tensor:
    return self.lab.fill(operand, shape, dtype or self.row.dtype, scale, offset)
  def turns(self, *first: Tensor) -> List[Tuple[Tensor, ...]]:
    """What a model reads from memory, as often as the device's caches cannot hold it."""
    if not self.lab.device: return [first]
    size = max(1, sum(t.numel() * t.element_size() for t in first))
    copies = min(self.row.n("copies") or min(256, self.lab.device.flushed // size + 1), 4096, int(0.4 * self.lab.device.free() // size))
    return [first] + [tuple(t.clone() for t in first) for _ in range(copies - 1)]
  def over(self, call: Callable[..., Any], *first: Tensor, **more: Any) -> Op:
    return Op([functools.partial(call, *turn) for turn in self.turns(*first)], **more)
  def tolerance(self) -> float:
    return {"fp32": 256 * 2.0**-24, "bf16": 8 * 2.0**-8, "fp16": 8 * 2.0**-11, "int8": 2 / 127, "fp8": 0.1}[self.row.dtype]
def first_of(result: Any) -> Any: return result[0] if isinstance(result, (tuple, list)) else result

class Gemm(Family):
  """x [batch, m, k] times the transpose of w [batch, n, k]; the scheme says how w is stored."""
  sizes = "m n k"
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    named = {"w8a16": "int8", "int4": "w4a16", row.dtype: ""}.get(row.text("weights"), row.text("weights"))
    self.scheme, _, group = re.sub("^(awq|gptq)", "w4a16", named or {"int8": "w8a8", "fp8": "fp8"}.get(row.dtype, "")).partition("-g")
    self.group, self.root = int(group) if group.isdigit() and int(group) else self.k, 1 / math.sqrt(max(1, self.k))
    self.most, self.many = {"w8a8": 127.0, "int8": 127.0, "w4a16": 7.0}.get(self.scheme, 1.0), [self.batch] if self.batch > 1 else []
  def x(self) -> Tensor: return self.fill(0, (*self.many, self.m, self.k), 127.0 if self.row.dtype == "int8" else 1.0)
  def w(self) -> Tensor:
    stored, scale = {"": (self.row.dtype, self.root), "fp8": ("fp8", 1.0)}.get(self.scheme, ("int8", self.most))
    return self.fill(1, (*self.many, self.width, self.k), scale, dtype=stored)
  def plain(self) -> Op:
    x, w = self.x(), self.w()
    if self.scheme: x, w = x / (127 if self.row.dtype == "int8" else 1), w * (self.root / self.most)  # on the host, to compare with
    return self.over(lambda w: F.linear(x, w) if x.dim() == 2 else torch.bmm(x, w.transpose(1, 2)), w)
  def dynamic(self) -> Op:  # of processors: it quantises the activations itself
    engines = torch.backends.quantized
    engines.engine = next(e for e in ("x86", "fbgemm", "onednn", "qnnpack") if e in engines.supported_engines)
    x, turns = self.x(), self.turns(torch._make_per_tensor_quantized_tensor(self.w(), self.root / 127, 0))
    return Op([functools.partial(torch.ops.quantized.linear_dynamic, x, torch.ops.quantized.linear_prepack(w, None)) for w, in turns])
  def int4_weights(self) -> Op:
    x, q, pack = self.x(), (self.w() + 8).to(torch.int32), torch._convert_weight_to_int4pack
    packed = quietly(lambda: pack((q[:, ::2] << 4 | q[:, 1::2]).to(torch.uint8), 8))  # newer versions take two to a byte
    scales = self.full((self.k // self.group, self.width, 2), 0.0, x.dtype)
    scales[..., 0] = self.root / 7
    return self.over(lambda w: torch._weight_int4pack_mm(x, w, self.group, scales), pack(q, 8) if packed is None else packed)
  def scaled(self) -> Op:  # activations of another type become fp8 by a cast, as those with a scale that is known before do
    x, one, scale = self.x(), self.full((), 1.0), self.full((), self.root)
    out = torch_type(self.row.dtype if self.row.dtype in HALF else "bf16")
    return self.over(lambda w: first_of(torch._scaled_mm(x.to(w.dtype), w.t(), scale_a=one, scale_b=scale, out_dtype=out)), self.w())
  def int8(self) -> Op:
    x = self.x()
    return self.over(lambda w: torch._int_mm(x, w.t()), self.w(), seen=lambda y: y.double() * (self.root / 127**2))
  def npu_quantised(self) -> Op:
    npu, x, given = package("torch_npu"), self.x(), self.full((self.m,), 1 / 127)
    out, quantised = (torch.float16, lambda: (x, given)) if self.row.dtype == "int8" else (x.dtype, lambda: npu.npu_dynamic_quant(x))
    scale = self.full((self.width,), self.root / 127, torch.bfloat16 if out == torch.bfloat16 else torch.float32)
    call = lambda w, left, steps: npu.npu_quant_matmul(left, w.t(), scale, pertoken_scale=steps, output_dtype=out)
    return self.over(lambda w: call(w, *quantised()), self.w())
  def npu_weights(self) -> Op:
    npu, x, w, group = package("torch_npu"), self.x(), self.w().t(), self.group if self.group < self.k else 0
    scale = self.full((self.k // group, self.width) if group else (self.width,), self.root / self.most, x.dtype)
    w = w if self.scheme == "int8" else npu.npu_convert_weight_to_int4pack(w.contiguous().to(torch.int32))
    return self.over(lambda w: npu.npu_weight_quant_batchmatmul(x, w, scale, antiquant_group_size=group), w)
  def takes(self, schemes: str, of: int = 1, k_of: int = 1, more: int = 0) -> str:
    return unless(self.scheme and self.scheme in schemes.split(), "-", self.batch == 1, "multiplies one matrix", self.m > more,
                  f"takes more than {more} rows", not self.width % of and not self.k % max(of, k_of), f"takes multiples of {max(of, k_of)}",
                  self.k % self.group == 0, "k is no multiple of the group")
  def tolerance(self) -> float: return super().tolerance() + {"w8a8": 2 / 127, "fp8": 0.1}.get(self.scheme, 0.0)
  kernels = [
      Kernel("torch linear", plain, fits=lambda s: unless(not s.scheme, "-")),
      Kernel("torch._scaled_mm", scaled, "cuda xpu", "torch:_scaled_mm torch:float8_e4m3fn", " ".join(BYTES), lambda s: s.takes("fp8", 16)),
      Kernel("npu_quant_matmul", npu_quantised, "npu", "torch_npu:npu_quant_matmul", "bf16 fp16 int8", lambda s: s.takes("w8a8")),
      Kernel("npu_weight_quant_batchmatmul", npu_weights, "npu", "torch_npu:npu_weight_quant_batchmatmul", HALF,
             lambda s: s.takes("int8 w4a16")),
      Kernel("torch._int_mm", int8, "cuda cpu xpu", "torch:_int_mm", "int8", lambda s: s.takes("w8a8", 8, more=16)),
      Kernel("torch linear_dynamic", dynamic, "cpu", "torch:ops.quantized.linear_dynamic", "fp32", lambda s: s.takes("w8a8")),
      Kernel("torch._weight_int4pack_mm", int4_weights, "cuda mps", "torch:_weight_int4pack_mm", "bf16",
             lambda s: s.takes("w4a16", 8, 128) or unless(s.group in (32, 64, 128, 256), "takes groups of 32, 64, 128 or 256"))]

class MatmulAllReduce(Family):
  """A product whose results are added up over ranks by the same kernel."""
  sizes = "m n k ranks"
  def operands(self, r: int) -> Tuple[Tensor, Tensor]:
    return self.fill(2 * r, (self.m, self.k)), self.fill(2 * r + 1, (self.width, self.k), 1 / math.sqrt(self.k))
  def plain(self) -> Op: return Op([lambda: sum(F.linear(*self.operands(r)) for r in range(self.row.n("ranks")))])
  def npu(self) -> Op:
    npu, (x, w), group = package("torch_npu"), self.operands(self.lab.rank), torch.distributed.distributed_c10d._get_default_group()
    name = (group._get_backend(torch.device("npu")) if hasattr(group, "_get_backend") else group).get_hccl_comm_name(self.lab.rank)
    return self.over(lambda w: npu.npu_mm_all_reduce_base(x, w.t(), name, reduce_op="sum"), w)
  kernels = [Kernel("npu_mm_all_reduce_base", npu, "npu", "torch_npu:npu_mm_all_reduce_base", HALF)]

class Attention(Family):
  """Q [batch, q_len, heads, d] over caches K and V [batch, kv_len, kv_heads, d or dv]; query i sees kv_len - q_len + i + 1 keys."""
  sizes = "batch q_len kv_len heads kv_heads head_dim"
  rope = 0  # of latent attention: how much of a key, behind the rest, is rotated
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.q_len, self.kv_len, self.d, self.dv = row.n("q_len"), row.n("kv_len"), row.n("head_dim"), row.n("head_dim")
    self.cached, self.scale = row.text("kv_dtype") or row.dtype, 1 / math.sqrt(max(1, self.d))
    self.causal = row.text("causal").lower() not in ("0", "false") and self.q_len > 1  # a query alone is the last one
    self.window = row.n("window") if row.n("window") < self.kv_len else 0
    self.simple = not self.window and (self.q_len in (1, self.kv_len) or not self.causal)  # no mask but that of a whole prompt
  def q(self) -> Tensor: return self.fill(0, (self.batch, self.q_len, self.heads, self.d))
  def kv(self) -> List[Tensor]:
    return [self.fill(i, (self.batch, self.kv_len, self.kv_heads, d), dtype=self.cached) for i, d in ((1, self.d), (2, self.dv))]
  def pages(self, page: int, *caches: Tensor) -> Tuple[Tensor, ...]:
    """Pools [pages, page, ...]: page p of sequence b is number p batch + b. The last tensor says which are whose."""
    count = -(-self.kv_len // page)
    whole = [torch.cat((x, x.new_zeros((self.batch, count * page - self.kv_len, *x.shape[2:]))), 1) for x in caches]
    table = self.integers(count * self.batch).reshape(count, self.batch).t().contiguous()
    return (*(x.unflatten(1, (count, page)).transpose(0, 1).flatten(0, 1) for x in whole), table)
  def visible(self) -> Tensor:
    """[q_len, kv_len]: which queries see which keys."""
    at, key = (torch.arange(first, self.kv_len, device=self.lab.where) for first in (self.kv_len - self.q_len, 0))
    return (key <= at[:, None] if self.causal else key >= 0) & (key > at[:, None] - (self.window or self.kv_len + 1))
  def plain(self) -> Op:
    (k, v), shape = self.kv(), (self.batch, self.kv_heads, self.share, self.q_len, self.dv)
    self.lab.room(3 * self.batch * self.heads * self.q_len * self.kv_len * k.element_size())
    q = self.q().unflatten(2, (self.kv_heads, self.share)).permute(0, 2, 3, 1, 4).flatten(2, 3).contiguous()
    hidden = ~self.visible().repeat(self.share, 1) if self.causal or self.window else torch.zeros((), dtype=torch.bool, device=k.device)
    return self.over(lambda k, v: torch.matmul(torch.softmax((torch.matmul(q, k) * self.scale).masked_fill(hidden, -math.inf), -1), v),
                     k.permute(0, 2, 3, 1).contiguous(), v.transpose(1, 2).contiguous(),
                     seen=lambda y: y.reshape(shape).permute(0, 3, 1, 2, 4))
  def flash(self, module: str, table: str) -> Op:
    flash, (k, v) = package(module), self.kv()
    q = self.q().to(k.dtype) if self.cached == "fp8" else self.q()
    more: Dict[str, Any] = {"window_size": (self.window - 1, 0)} if self.window else {}
    more.update(softmax_scale=self.scale, causal=self.causal)
    if self.q_len > 1 and not self.page: return self.over(lambda k, v: first_of(flash.flash_attn_func(q, k, v, **more)), k, v)
    more["cache_seqlens"] = self.full((self.batch,), self.kv_len, torch.int32)
    if self.page: k, v, more[table] = self.pages(self.page, k, v)
    return self.over(lambda k, v: first_of(flash.flash_attn_with_kvcache(q, k, v, **more)), k, v)
  def flashinfer(self) -> Op:
    infer, page, q = package("flashinfer"), self.page or 16, self.q().flatten(0, 1)
    k, v, table = self.pages(page, *self.kv())
    last, workspace = self.full((self.batch,), (self.kv_len - 1) % page + 1, torch.int32), self.full((128 << 20,), 0, torch.uint8)
    told = self.integers(self.batch + 1, table.shape[1]), table.flatten(), last, self.heads, self.kv_heads, self.d, page
    more = {"sm_scale": self.scale, "window_left": self.window - 1, "q_data_type": q.dtype, "kv_data_type": k.dtype}
    made = infer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD") if self.q_len > 1 else infer.BatchDecodeWithPagedKVCacheWrapper(
        workspace, "NHD", use_tensor_cores=self.share >= 4)
    queries = ([self.integers(self.batch + 1, self.q_len)], {"causal": self.causal}) if self.q_len > 1 else ([], {})
    made.plan(*queries[0], *told, **queries[1], **more)
    return self.over(lambda k, v: made.run(q, (k, v)), k, v)
  def torch_own(self, backend: str = "") -> Op:
    """Of one query, those that share a head of keys stand as the queries of one head, which needs neither a mask nor more heads."""
    (k, v), folded = self.kv(), self.q_len == 1 and self.simple
    q = self.q().reshape(self.batch, self.kv_heads, self.share, self.d) if folded else self.q().transpose(1, 2)
    more: Dict[str, Any] = {} if folded else {"is_causal": self.causal} if self.simple else {"attn_mask": self.visible()}
    more.update({"scale": self.scale, **({"enable_gqa": True} if self.share > 1 and not folded else {})})
    own = package("torch.nn.attention") if backend else None
    return self.over(lambda k, v: F.scaled_dot_product_attention(q, k.transpose(1, 2), v.transpose(1, 2), **more), k, v,
                     seen=lambda y: y if folded else y.transpose(1, 2),
                     within=(lambda: own.sdpa_kernel(getattr(own.SDPBackend, backend))) if own else contextlib.nullcontext)
  def npu(self, fused: bool = True) -> Op:
    npu, q, (k, v), most = package("torch_npu"), self.q(), self.kv(), 2**31 - 1
    more: Dict[str, Any] = {"num_heads": self.heads, "num_key_value_heads": self.kv_heads, "input_layout": "BSND"}
    if self.causal:
      mask = torch.ones((2048, 2048), dtype=torch.bool, device=self.lab.where).triu(1)
      more.update(atten_mask=mask, sparse_mode=4 if self.window else 3, pre_tokens=self.window - 1 if self.window else most, next_tokens=0)
    if not fused:
      kernel = npu.npu_incre_flash_attention if self.q_len == 1 else npu.npu_prompt_flash_attention
      return self.over(lambda k, v: kernel(q, k, v, scale_value=self.scale, **more), k, v)
    more["scale"], kernel = self.scale, npu.npu_fused_infer_attention_score
    if self.rope:  # what is rotated stands in tensors of its own
      (q, more["query_rope"]), (k, key) = ([t.contiguous() for t in x.split([self.d - self.rope, self.rope], -1)] for x in (q, k))
      return self.over(lambda k, key, v: kernel(q, k, v, key_rope=key, **more)[0], k, key, v.contiguous())
    if self.page:
      k, v, more["block_table"] = self.pages(self.page, k.flatten(2), v.flatten(2))
      more.update(block_size=self.page, actual_seq_lengths_kv=[self.kv_len] * self.batch)
    return self.over(lambda k, v: kernel(q, k, v, **more)[0], k, v)
  def takes(self, fp8: bool = False, pages: bool = False, widest: int = 256, masks: bool = True, least: Tuple[int, int] = (0, 0)) -> str:
    return unless(
        self.kv_heads and self.heads == self.share * self.kv_heads, "its heads do not share those of keys evenly",
        self.kv_len >= self.q_len, "its queries do not follow from its keys", pages or not self.page, "takes no such pages",
        self.cached == self.row.dtype or (fp8 and self.cached == "fp8"), f"takes no cache in {self.cached[:20]}",
        self.d <= widest and not self.d % 8, f"takes heads of a multiple of 8 up to {widest}",
        masks or self.simple, "takes no window and no prompt behind a cache",
        self.lab.device.capability >= least, f"is for compute capability {least[0]}.{least[1]} and later")
  def tolerance(self) -> float: return super().tolerance() + (0.1 if self.cached == "fp8" else 0.0)
  kernels = [
      Kernel("FlashAttention 3", lambda s: s.flash("flash_attn_interface", "page_table"), "cuda", "flash_attn_interface:flash_attn_func",
             HALF, lambda s: s.takes(True, True, least=(9, 0))),
      Kernel("FlashAttention 2", lambda s: s.flash("flash_attn", "block_table"), "cuda", "flash_attn:flash_attn_func", HALF,
             lambda s: s.takes(pages=s.page % 256 == 0, least=(8, 0)) or unless(s.d == s.dv, "-")),
      Kernel("FlashInfer", flashinfer, "cuda", "flashinfer:BatchDecodeWithPagedKVCacheWrapper", HALF,
             lambda s: s.takes(True, True, least=(7, 5)) or unless(s.d == s.dv, "-")),
      Kernel("npu_fused_infer_attention_score", npu, "npu", "torch_npu:npu_fused_infer_attention_score", HALF,
             lambda s: s.takes(pages=not s.rope, widest=512 + s.rope, masks=s.q_len > 1)),
      Kernel("npu flash attention", lambda s: s.npu(False), "npu", "torch_npu:npu_prompt_flash_attention", HALF,
             lambda s: s.takes(widest=512, masks=s.q_len > 1) or unless(s.d == s.dv, "-")),
      *(Kernel(f"torch {name} attention", functools.partial(lambda b, s: s.torch_own(b + "_ATTENTION"), name.upper()), "cuda",
               f"torch.nn.attention:SDPBackend.{name.upper()}_ATTENTION", HALF, lambda s: s.takes(masks=False, least=(8, 0)))
        for name in ("cuDNN", "flash")),
      Kernel("torch attention", torch_own, needs="torch.nn.functional:scaled_dot_product_attention", fits=lambda s: s.takes(widest=1024)),
      Kernel("torch matmul and softmax", plain, fits=lambda s: s.takes(widest=1024))]

class Latent(Attention):
  """Of DeepSeek's widths: a prompt on expanded keys of 192 and values of 128, new tokens on latents of 512 + 64, one for all heads."""
  sizes, rope = "batch q_len kv_len heads", 64
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.absorbed = row.op == "mla_decode"
    self.d, self.dv, self.kv_heads, self.share = (576, 512, 1, self.heads) if self.absorbed else (192, 128, self.heads, 1)
    self.scale, self.causal = 1 / math.sqrt(192), self.q_len > 1
  def kv(self) -> List[Tensor]:
    k, v = super().kv()
    return [k, k[..., :self.dv] if self.absorbed else v]
  def flash_mla(self) -> Op:
    mla, q, (pool, table) = package("flash_mla"), self.q(), self.pages(64, self.kv()[0])
    lengths, more = self.full((self.batch,), self.kv_len, torch.int32), {"softmax_scale": self.scale, "causal": self.causal}
    plan = mla.get_mla_metadata(lengths, self.q_len * self.heads, 1)
    return self.over(lambda kv: mla.flash_mla_with_kvcache(q, kv, table, lengths, self.dv, *plan, **more)[0], pool)
  kernels = [Kernel("FlashMLA", flash_mla, "cuda", "flash_mla:flash_mla_with_kvcache", HALF,
                    lambda s: unless(s.absorbed, "-") or s.takes(pages=True, widest=576, least=(9, 0))), *Attention.kernels]

class Experts(Family):
  """Routed experts, from the router's logits to the sum of their results; moe_products: from rows in order to their results."""
  sizes = "m hidden inter topk experts"
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.hidden, self.topk, self.all, self.products = row.n("hidden"), row.n("topk"), row.n("experts"), row.op == "moe_products"
    self.held, self.inner = self.all // max(1, row.n("ep", 1)), row.n("inter") // max(1, row.n("tp", 1))
    self.gate = (self.hidden, row.n("inter")) != (2688, 1856)  # those of Nemotron 3 Nano have none
  def operands(self) -> List[Tensor]:
    """Rows are dealt to experts in turn, or drawn evenly by every token. A token's picks score alike, others nothing beside them."""
    self.lab.room(8 * self.m * (self.topk + self.all))
    picks = (torch.arange(self.m * self.topk) % self.all).reshape(self.m, self.topk)
    if self.row.text("distribution") == "uniform":
      picks = torch.rand((self.m, self.all), generator=torch.Generator().manual_seed(1)).topk(self.topk, 1).indices
    self.counts, self.x = torch.bincount(picks.flatten(), minlength=self.all)[:self.held].tolist(), self.fill(0, (self.m, self.hidden))
    self.logits = torch.zeros(self.m, self.all).scatter_(1, picks, 20.0).to(self.x.dtype).to(self.lab.where)
    shapes = (1, (2 if self.gate else 1) * self.inner, self.hidden), (2, self.hidden, self.inner)
    return [self.fill(i, (self.held, n, k), 1 / math.sqrt(k)) for i, n, k in shapes]
  def ordered(self) -> Tuple[Tensor, ...]:
    """Tokens by expert, their rows, how much each counts, and where those of each expert end."""
    scores, picks = torch.topk(torch.softmax(self.logits.float(), -1), self.topk)
    expert, order = picks.flatten().sort()
    ends, order = torch.searchsorted(expert, torch.arange(1, self.held + 1, device=expert.device)).to(torch.int32), order[:sum(self.counts)]
    tokens = torch.div(order, self.topk, rounding_mode="floor")
    return tokens, self.x.index_select(0, tokens), scores.flatten()[order][:, None].to(self.x.dtype), ends
  def with_product(self, product: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Op:
    """`product` of rows by expert, the experts' matrices, and where each one's rows end."""
    matrices, before = self.operands(), self.ordered()
    def call(up: Tensor, down: Tensor) -> Any:
      tokens, rows, share, ends = before if self.products else self.ordered()
      h = product(rows, up, ends)
      y = product(F.silu(h[:, :self.inner]) * h[:, self.inner:] if self.gate else F.silu(h), down, ends)
      return y if self.products else torch.zeros_like(self.x).index_add_(0, tokens, y * share)
    return self.over(call, *matrices)
  def plain(self) -> Op:  # the host knows how many rows each expert has, as no model's does
    return self.with_product(lambda x, w, _: torch.cat([F.linear(rows, w[e]) for e, rows in enumerate(x.split(self.counts)) if len(rows)]))
  def npu(self) -> Op:
    npu, matrices = package("torch_npu"), self.operands()
    product = functools.partial(npu.npu_grouped_matmul, split_item=2, group_type=0, group_list_type=0)
    def call(up: Tensor, down: Tensor) -> Any:
      shares, picks, places = npu.npu_moe_gating_top_k_softmax(self.logits, None, k=self.topk)
      rows, places, expert = npu.npu_moe_init_routing(self.x, places, picks, self.m)
      ends = npu.npu_moe_compute_expert_tokens(expert, self.all).to(torch.int64)
      y = product([npu.npu_swiglu(product([rows], [up], group_list=ends)[0])], [down], group_list=ends)[0]
      return npu.npu_moe_finalize_routing(y, None, None, None, shares, places, picks)
    return self.over(call, *(w.transpose(1, 2).contiguous() for w in matrices))
  def takes(self) -> str:
    dealt, weights = self.row.text("distribution")[:30], self.row.text("weights")[:30]
    return unless(self.topk <= self.all and self.held and self.inner and not self.all % self.held, "its experts cannot be divided so",
                  weights in ("", self.row.dtype), f"experts in {weights} are not replayed",
                  dealt in ("", "balanced", "uniform"), f"rows dealt as {dealt} are not replayed")
  kernels = [
      Kernel("npu_grouped_matmul", npu, "npu", "torch_npu:npu_grouped_matmul torch_npu:npu_moe_init_routing", HALF,
             lambda s: s.takes() or unless(s.gate and s.held == s.all and not s.products, "takes all experts, with a gate")),
      Kernel("torch grouped_mm", lambda s: s.with_product(lambda x, w, ends: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)), "cuda",
             "torch:_grouped_mm", "bf16", takes), Kernel("torch linear of each expert", plain, fits=takes)]

# Norms and element-wise ops: plain functions of their operands, which torch.compile makes one kernel of where Triton is.
def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
  y = x if x.dtype == torch.float64 else x.float()
  return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * gamma
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor: return F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-6)
def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
  return x * cosine + torch.cat((-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]), -1) * sine

class Vector(Family):
  """Operands by letter: x [m, n], w [m, 2 n], gamma g and beta b [n]; of rope queries, keys, cosines and sines."""
  functions: Dict[str, Tuple[str, Callable[..., Any]]] = {
      "rms_norm": ("xg", rms_norm), "layer_norm": ("xgb", layer_norm), "add": ("xx", lambda x, y: x + y),
      "add_rms_norm": ("xxg", lambda x, y, g: (rms_norm(x + y, g), x + y)), "softmax": ("x", lambda x: torch.softmax(x, -1)),
      "add_layer_norm": ("xxgb", lambda x, y, g, b: (layer_norm(x + y, g, b), x + y)), "activation": ("x", lambda x: F.silu(x)),
      "gated_activation": ("w", lambda x: F.silu(x[:, :x.shape[1] // 2]) * x[:, x.shape[1] // 2:]), "multiply": ("xx", lambda x, y: x * y),
      "sampling": ("x", lambda x: x.argmax(-1)), "elementwise": ("x", lambda x: x.clone()),
      "rope": ("", lambda q, k, c, s: (rotated(q, c, s), rotated(k, c, s)))}
  fused = "rms_norm add_rms_norm gated_activation rope"
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.kind, self.heads = row.op.split(":")[-1], self.heads or 1
    if self.kind == "elementwise" and not self.width: self.m, self.width = 1, row.n("bytes") // (2 * BYTES[row.dtype])  # read and written
    self.tokens = self.m // (self.heads + self.kv_heads)
  def operands(self) -> List[Tensor]:
    n = self.width
    if self.kind == "rope":
      turn = 1e4 ** (-2 * (torch.arange(n) % (n // 2)).double() / n)
      angle = self.integers(self.tokens, dtype=torch.int64).cpu()[:, None, None] * turn
      kind = torch_type(self.row.dtype) if self.lab.device else torch.float64
      turned = [self.fill(i, (self.tokens, max(1, h), n))[:, :h] for i, h in enumerate((self.heads, self.kv_heads))]
      return turned + [t.to(kind).to(self.lab.where) for t in (angle.cos(), angle.sin())]
    made = {"x": ((self.m, n), 1.0, 0.0), "w": ((self.m, 2 * n), 1.0, 0.0), "g": ((n,), 1 / 8, 1.0), "b": ((n,), 1 / 8, 0.0)}
    return [self.fill(i, *made[letter]) for i, letter in enumerate(self.functions[self.kind][0])]
  def with_function(self, call: Callable[..., Any]) -> Op:
    """Of elements that a narrow type makes equal, sampling may pick any: what is there is compared, not where."""
    operands = self.operands()
    seen = (lambda i: operands[0].gather(1, i.reshape(-1, 1).long())) if self.kind == "sampling" else lambda y: y
    return Op([functools.partial(call, *operands)], seen=seen)
  def plain(self) -> Op: return self.with_function(self.functions[self.kind][1])
  def compiled(self) -> Op:
    torch._dynamo.reset()  # else it gives up after some shapes
    return self.with_function(torch.compile(self.functions[self.kind][1], dynamic=False))
  def flashinfer(self) -> Op:
    infer, at = package("flashinfer"), self.integers(self.tokens)
    return self.with_function({  # the sum and its norm are made in place
        "rms_norm": lambda x, g: infer.rmsnorm(x, g, eps=1e-6),
        "add_rms_norm": lambda x, y, g: infer.fused_add_rmsnorm(x, y, g, eps=1e-6) or (x, y),
        "gated_activation": infer.silu_and_mul, "rope": lambda q, k, c, s: infer.apply_rope_pos_ids(q, k, at, rope_theta=1e4)}[self.kind])
  def npu(self) -> Op:
    npu = package("torch_npu")
    return self.with_function({
        "rms_norm": lambda x, g: npu.npu_rms_norm(x, g, epsilon=1e-6)[0], "gated_activation": npu.npu_swiglu,
        "add_rms_norm": lambda x, y, g: npu.npu_add_rms_norm(x, y, g, epsilon=1e-6)[::2],
        "rope": lambda q, k, c, s: tuple(npu.npu_rotary_mul(x[None], c[None], s[None])[0] for x in (q, k))}[self.kind])
  def takes(self, kinds: str = "") -> str:
    return unless(self.kind in (kinds.split() or self.functions), "-" if kinds else "no such kind of op is replayed", self.m and self.width,
                  "m and n are not given", self.kind != "rope" or not (self.m % (self.heads + self.kv_heads) or self.width % 2),
                  "its rows are no whole tokens of heads and kv_heads")
  kernels = [
      Kernel("flashinfer", flashinfer, "cuda", "flashinfer:fused_add_rmsnorm", HALF, lambda s: s.takes(s.fused)),
      Kernel("torch_npu", npu, "npu", "torch_npu:npu_add_rms_norm torch_npu:npu_swiglu", fits=lambda s: s.takes(s.fused)),
      Kernel("torch.compile", compiled, "cuda xpu", "torch:compile triton", fits=lambda s: s.takes(s.fused + " add_layer_norm")),
      Kernel("torch chain", plain, fits=lambda s: s.takes(s.fused + " add_layer_norm")), Kernel("torch", plain, fits=takes)]

class Gather(Family):
  sizes = "m n k"
  def plain(self) -> Op:
    picks = self.integers(self.m, 7919, torch.int64) % self.k
    return self.over(lambda table: F.embedding(picks, table), self.fill(0, (self.k, self.width)))
  kernels = [Kernel("torch embedding", plain)]

class CacheWrite(Family):
  """Keys and values [m, kv_heads, head_dim] go to the first places of caches that are as large as whole pages are."""
  sizes = "m kv_heads head_dim"
  def with_write(self, page: int, write: Callable[[List[Tensor], Tensor, Tensor], Any]) -> Op:
    new = [self.fill(i, (self.m, self.kv_heads, self.row.n("head_dim"))) for i in (0, 1)]
    caches = [x.new_zeros((-(-self.m // page) * page, *x.shape[1:])) for x in new]
    return self.over(lambda a, b: (write(new, a, b), (a, b))[1], *caches, seen=lambda y: [c[:self.m] for c in y])
  def plain(self) -> Op:
    places = self.integers(self.m, dtype=torch.int64)
    return self.with_write(128, lambda new, a, b: (a.index_copy_(0, places, new[0]), b.index_copy_(0, places, new[1])))
  def flashinfer(self) -> Op:
    infer, page, many, pages = package("flashinfer"), self.page or 16, self.integers, -(-self.m // (self.page or 16))
    told = [many(self.m, 0), many(self.m), many(pages), many(2, pages), many(1) + (self.m - 1) % page + 1]
    return self.with_write(page, lambda new, a, b: infer.append_paged_kv_cache(
        *new, *told[:2], tuple(c.view(-1, page, *c.shape[1:]) for c in (a, b)), *told[2:]))
  def npu(self) -> Op:
    write, places = package("torch_npu").npu_scatter_nd_update_, self.integers(self.m)[:, None]
    return self.with_write(128, lambda new, a, b: (write(a, places, new[0]), write(b, places, new[1])))
  kernels = [Kernel("flashinfer append_paged_kv_cache", flashinfer, "cuda", "flashinfer:append_paged_kv_cache", HALF),
             Kernel("npu_scatter_nd_update_", npu, "npu", "torch_npu:npu_scatter_nd_update_"), Kernel("torch index_copy_", plain)]

class Scan(Family):
  """A recurrence with a state [k, n] of each head: it decays, then a key times a value (of the delta net less what is there) is added."""
  sizes = "batch q_len heads kv_heads k n"
  def operands(self) -> List[Tensor]:
    tokens, keys, heads, root = (self.batch, self.row.n("q_len")), (self.kv_heads, self.k), (self.heads,), 1 / math.sqrt(self.k)
    state = self.fill(5, (self.batch, self.heads, self.k, self.width), dtype="fp32") * (1.0 if tokens[1] == 1 else 0.0)
    shapes = (keys, root, 0.0), (keys, root, 0.0), ((self.heads, self.width), 1.0, 0.0), (heads, 1 / 8, 7 / 8), (heads, 0.5, 0.5)
    return [state] + [self.fill(i, (*tokens, *shape), scale, offset) for i, (shape, scale, offset) in enumerate(shapes)]
  def plain(self) -> Op:
    (first, q, k, v, decay, much), delta = self.operands(), self.row.op == "scan:gated_delta_net"
    def call(state: Tensor) -> Any:
      results = []
      for t in range(q.shape[1]):
        query, key = (x[:, t].repeat_interleave(self.share, 1).to(state.dtype) for x in (q, k))
        state, value = state * decay[:, t, :, None, None], v[:, t].to(state.dtype)
        value = (value - torch.matmul(key[:, :, None], state)[:, :, 0] if delta else value) * much[:, t, :, None]
        state = state + key[..., None] * value[:, :, None]
        results.append(torch.matmul(query[:, :, None], state)[:, :, 0])
      return torch.stack(results, 1).to(v.dtype)
    return self.over(call, first)
  def fla(self) -> Op:
    rule, (first, q, k, v, decay, much) = package("fla.ops.gated_delta_rule"), self.operands()
    q, k, decay = *(x.repeat_interleave(self.share, 2) for x in (q, k)), decay.float().log()
    kernel = rule.fused_recurrent_gated_delta_rule if q.shape[1] == 1 else rule.chunk_gated_delta_rule
    return self.over(lambda s: kernel(q, k, v, decay, much, scale=1.0, initial_state=s, output_final_state=True)[0], first)
  def takes(self, kinds: str, longest: int = 1 << 40) -> str:
    return unless(self.row.op.split(":")[-1] in kinds.split(), f"is for {kinds}", self.heads == self.share * self.kv_heads,
                  "its heads do not share those of keys evenly", self.row.n("q_len") <= longest, "takes no prompt")
  kernels = [Kernel("flash-linear-attention", fla, "cuda xpu npu", "fla.ops.gated_delta_rule:chunk_gated_delta_rule", HALF,
                    lambda s: s.takes("gated_delta_net")),
             Kernel("torch, token by token", plain, fits=lambda s: s.takes("gated_delta_net mamba2", 1))]

class Collective(Family):
  """Of the whole tensor on one rank: what all-reduce and reduce-scatter take, and all-gather makes."""
  sizes = "ranks bytes"
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.size, self.each = row.n("ranks"), row.n("bytes") // BYTES[row.dtype] // row.n("ranks", 1)
  def sent(self, rank: int) -> Tensor: return self.fill(rank, (self.each if self.row.op == "all_gather" else self.each * self.size,))
  def plain(self) -> Op:
    parts, own = [self.sent(r) for r in range(self.size)], slice(self.lab.rank * self.each, (self.lab.rank + 1) * self.each)
    return Op([{"all_reduce": lambda: sum(parts), "all_gather": lambda: torch.cat(parts), "reduce_scatter": lambda: sum(parts)[own],
                "all_to_all": lambda: torch.cat([p[own] for p in parts])}[self.row.op]])
  def library(self) -> Op:
    dist, x = torch.distributed, self.sent(self.lab.rank)
    y = x.new_zeros(self.each * (1 if self.row.op == "reduce_scatter" else self.size))
    gather = getattr(dist, "all_gather_into_tensor", None) if dist.get_backend() != "gloo" else None
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    call = {"all_gather": lambda: gather(y, x) if gather else dist.all_gather(list(y.chunk(self.size)), x), "reduce_scatter": lambda:
            scatter(y, x), "all_reduce": lambda: dist.all_reduce(x), "all_to_all": lambda: dist.all_to_all_single(y, x)}[self.row.op]
    return Op([call], seen=lambda _: x if self.row.op == "all_reduce" else y)
  kernels = [Kernel("torch.distributed", library)]

FAMILIES = {"gemm": Gemm, "matmul_all_reduce": MatmulAllReduce, "attention": Attention, "mla": Latent, "moe": Experts, "vector": Vector,
            "gather": Gather, "kv_write": CacheWrite, "scan": Scan, "collective": Collective}

# ---- Which kernel, and whether it computes what it should.
def reason_of(error: BaseException) -> str:
  text = "out of memory" if isinstance(error, MemoryError) else " ".join(str(error).split()) or type(error).__name__
  return "out of memory" if "out of memory" in text and not isinstance(error, Unavailable) else text[:300]
def small(row: Row) -> Row:
  """A row alike that is quickly computed on the host; what the choice of a kernel hangs on stays."""
  most = {"m": 32, "n": 256, "k": 256, "batch": 2, "kv_len": 77, "q_len": 33, "window": 50, "hidden": 128, "bytes": 4096}
  most.update({"moe": {"inter": 64 * max(1, row.n("tp"))}, "scan": {"k": 1 << 20, "n": 1 << 20},
               "vector": {"m": 9 * max(1, row.n("heads") + row.n("kv_heads"))}}.get(row.family, {}))
  sizes = {c: min(row.n(c), v) + (row.n(c) % 16 if row.n(c) > v and c in "nk" else 0) for c, v in most.items() if row.n(c)}
  sizes.update({"q_len": sizes["kv_len"]} if row.n("q_len") == row.n("kv_len") > 0 else {})
  return Row({**row.cells, **{c: str(v) for c, v in sizes.items()}, "copies": "1"}, row.index)
def relative_error(*results: Any) -> float:
  """Norm of the difference over that of what is right, the second; infinite where shapes differ or something is no number."""
  got, right = (torch.cat([t.detach().cpu().double().flatten() for t in (r if isinstance(r, (tuple, list)) else [r])]) for r in results)
  same = got.numel() == right.numel() and bool(torch.isfinite(got).all())
  return float((got - right).norm() / right.norm().clamp(min=1e-30)) if same else math.inf

class Chooser:
  def __init__(self, lab: Lab, named: str = "") -> None:
    self.lab, self.named, self.checked = lab, named.lower(), {}  # type: Tuple[Lab, str, Dict[str, str]]
  def wrong(self, kernel: Kernel, row: Row) -> str:
    """What is wrong with results on a small shape, empty where they are right. Found out once for all rows that it stands for."""
    alike = small(row)
    known = f"{kernel.name} {alike.key()}"
    if known not in self.checked:
      family, right = (FAMILIES[row.family](lab, alike) for lab in (self.lab, Lab(None, rank=self.lab.rank)))
      op, plain, allowed = kernel.build(family), right.plain(), family.tolerance()
      with op.within(): error = relative_error(op.seen(op.calls[0]()), plain.seen(plain.calls[0]()))
      self.checked[known] = "" if error <= allowed else f"results differ from fp64 by {error:.2g}, and {allowed:.2g} is allowed"
    return self.checked[known]
  def candidates(self, row: Row) -> Tuple[List[Kernel], List[str]]:
    """Kernels by preference, and why others are none."""
    family = FAMILIES[row.family](self.lab, row)
    told = [(kernel, kernel.why_not(family)) for kernel in family.kernels if self.named in kernel.name.lower()]
    return [k for k, why in told if not why], [f"{k.name}: {why}" for k, why in told if why not in ("", "-")]
  def op(self, row: Row) -> Tuple[Op, str, str]:
    """That of the best kernel that works, its name, and what is wrong with its results. Raises Unavailable where none works."""
    kernels, told = self.candidates(row)
    for last, kernel in enumerate(kernels, 1 - len(kernels)):  # one with wrong results stands for the op only where there is no other
      try:
        wrong = self.wrong(kernel, row)
        if wrong and last < 0: raise Unavailable(wrong)
        op = kernel.build(FAMILIES[row.family](self.lab, row))
        with op.within(): op.calls[0]()
        self.lab.device.synchronize()
        return op, kernel.name, wrong
      except FAILURES as error: told.append(f"{kernel.name}: {reason_of(error)}")
    raise Unavailable("; ".join(told) or f"there is no kernel for {row.op} in {row.dtype} {row.text('weights')[:30]} here")

# ---- How long it takes: samples of many executions, operands in turn, until there are enough.
Timing = NamedTuple("Timing", [("mode", str), ("median", float), ("minimum", float), ("spread", float), ("passes", int),
                               ("sensors", List[Optional[float]]), ("untrusted", str)])
class Timer:
  SAMPLE, BUDGET, FEWEST, MOST = 5e-3, 0.4, 5, 31
  def __init__(self, device: Device, ranks: Ranks) -> None:
    self.device, self.ranks, self.note = device, ranks, ""
  def timing(self, mode: str, run: Callable[[int], float], sustained: bool = False) -> Timing:
    """`run` executes so many passes and says the seconds of all. Looks until two in a row take long enough and get no faster."""
    passes, enough, looks, last, begin = 1, 0, 0, math.inf, time.perf_counter()
    samples: List[float] = []
    while (enough < 2 and passes < 10**6 and looks < 60) or (sustained and self.ranks.agreed(time.perf_counter() - begin) < 3):
      seconds, looks = max(run(passes), 1e-9), looks + 1
      if seconds < self.SAMPLE: enough, passes = 0, int(min(max(math.ceil(self.SAMPLE / seconds * passes), passes + 1), 4 * passes, 10**6))
      else:  # what is very long is not disturbed so much
        enough, last = (0 if seconds < 0.95 * last else enough + (2 if seconds >= 20 * self.SAMPLE else 1)), seconds
    before = self.device.sensors()
    while len(samples) < self.MOST and (len(samples) < self.FEWEST or sum(samples) * passes < self.BUDGET):
      samples.append(run(passes) / passes)
    after, (low, middle, high) = self.device.sensors(), statistics.quantiles(samples, n=4, method="inclusive")
    fell = f"the clock fell from {before[0]:.0f} to {after[0]:.0f} MHz" if before[0] and after[0] and after[0] < 0.95 * before[0] else ""
    return Timing(mode, middle, min(samples), high - low, passes * len(samples), after, fell)
  def times(self, op: Op, sustained: bool = False) -> List[Timing]:
    """Captured in a graph, where the device has them, and launched one by one."""
    turn, found, device = 0, [], self.device
    def eager(passes: int) -> float:
      nonlocal turn
      watch = device.stopwatch()
      for turn in range(turn + 1, turn + 1 + passes): op.calls[turn % len(op.calls)]()
      return self.ranks.agreed(watch(), largest=True)
    with op.within():
      alone = self.timing("eager", eager, sustained)
      if device.graph_class:
        try: found.append(self.timing("graph", self.captured(op.calls, alone.median), sustained))
        except FAILURES as error: self.note = f"not captured: {reason_of(error)}{device.synchronize() or ''}"
    return found + [alone]
  def captured(self, calls: Sequence[Callable[[], Any]], each: float) -> Callable[[int], float]:
    inside, graph = -(-max(1, min(200, int(self.SAMPLE / max(each, 1e-7)))) // len(calls)) * len(calls), self.device.graph_class()
    self.device.synchronize()
    with self.device.api.graph(graph):
      for i in range(inside): calls[i % len(calls)]()
    def run(passes: int) -> float:
      watch, times = self.device.stopwatch(), -(-passes // inside)
      for _ in range(times): graph.replay()
      return self.ranks.agreed(watch() * passes / (times * inside), largest=True)
    return run

# ---- The file of rows: whole after every row, and read again where it is there.
class Output:
  def __init__(self, path: str, columns: Iterable[str], unit: str, notes: Sequence[str]) -> None:
    self.path, self.unit, self.not_run = path, unit, {}  # type: Tuple[str, str, Dict[str, str]]
    lines = content_of(path).splitlines() if os.path.exists(path) else []
    kept = [line[2:] for line in lines if line.startswith("# ") and not line.startswith("# not run: ")]
    table = [cells_of(line) for line in lines if line and not line.startswith("#")]
    if any(note.startswith("device: ") and note not in notes for note in kept) or (table and unit not in table[0]):
      raise Unavailable(f"{path} holds something else, or rows of another device; name another file with -o")
    self.notes, self.columns = list(dict.fromkeys([*kept, *notes])), list(dict.fromkeys([*(table[0] if table else []), *columns]))
    rows = [dict(zip(table[0], cells)) for cells in table[1:] if len(cells) == len(table[0])]  # not what was left half written
    self.rows = [row for row in rows if quietly(lambda: float(row[unit]), 0) > 0]
  def save(self) -> Any:
    with open(self.path + ".part", "w", encoding="utf-8", newline="") as file:
      for note in self.notes + [f"not run: {what}: {why}" for what, why in self.not_run.items()]:
        file.write("# " + " ".join(note.split()) + "\n")
      writer = csv.DictWriter(file, self.columns, restval="", extrasaction="ignore", lineterminator="\n")
      writer.writeheader()
      writer.writerows(self.rows)
    os.replace(self.path + ".part", self.path)
  def add(self, cells: Dict[str, str], timing: Timing, kernel: str, seconds: float, wrong: str) -> None:
    sensed = {name: "" if s is None else f"{s:.4g}" for name, s in zip(("clock_mhz", "power_w", "temperature_c"), timing.sensors)}
    figure = f"{seconds * (1e6 if self.unit == 'latency_us' else 1e3):.6g}"
    self.rows.append({**cells, self.unit: figure, "spread_us": f"{timing.spread * 1e6:.3g}", "repetitions": str(timing.passes),
                      "kernel": kernel, "mode": timing.mode, "execution": timing.mode, **sensed,
                      "untrusted": "; ".join(filter(None, (timing.untrusted, wrong)))})

class Session:
  def __init__(self, options: argparse.Namespace, device: Device, ranks: Ranks) -> None:
    self.options, self.device, self.ranks, self.begin = options, device, ranks, time.perf_counter()
    self.chooser = Chooser(Lab(device, options.page, ranks.rank), options.kernel)
    self.timer = Timer(device, ranks)
  def say(self, text: str, end: str = "\n") -> Any: return print(text, end=end, flush=True) if self.ranks.rank == 0 else None
  def save(self, output: Output) -> Output: return (output.save() if self.ranks.rank == 0 else None, output)[1]
  def late(self, share: float = 1.0) -> bool: return self.ranks.agreed(time.perf_counter() - self.begin >= self.options.seconds * share) > 0
  def notes(self) -> List[str]:
    """What the file says of itself, and how fast copies between host and device are, which no row says."""
    found = ["Ops replayed through PyTorch: " + (self.options.rows or WHAT), *self.device.facts(),
             "latency_us: median over samples of many executions, operands in turn; of collectives the minimum. spread_us: between the "
             "quartiles. mode: captured in a graph, or launched one by one."]
    host: Any = quietly(lambda: torch.empty(1 << 26, dtype=torch.int8, pin_memory=True)) if self.device.graph_class else None
    for name in ("to the device", "to the host") if host is not None else ():
      pair = (host.to(self.device.where), host)[::1 if name == "to the device" else -1]
      seconds = self.timer.times(Op([functools.partial(pair[0].copy_, pair[1], non_blocking=True)]))[-1].median
      found.append(f"copies of 64 MiB {name}: {(1 << 26) / seconds / 1e9:.3g} GB/s")
    return found
  def here(self, row: Row) -> str:
    needed = row.n("ranks") if row.exchanges else 1
    return unless(needed == self.ranks.size, f"is for {needed} process{'es (see torchrun)' if needed > 1 else ''}, not {self.ranks.size}")
  def replay(self, rows: Sequence[Row], output: Output, share: float) -> int:
    """Times what is not there yet. Says how many rows are left for want of time."""
    done = {Row(r).key() for r in output.rows if self.options.kernel.lower() in r.get("kernel", "").lower()}
    left = [r for r in rows if self.ranks.agreed(r.key() not in done)]
    if len(left) < len(rows): self.say(f"{len(rows) - len(left)} of {len(rows)} rows are there already.")
    for i, row in enumerate(left):
      if self.late(share): return len(left) - i
      self.say(f"[{i + 1}/{len(left)}] {row} ... ", end="")
      try: self.one(row, output)
      except FAILURES as error:
        output.not_run[str(row)] = reason_of(error)
        self.say(f"not run: {reason_of(error)}")
        if not quietly(lambda: (self.device.synchronize(), float(self.chooser.lab.full((1,), 1.0)))[1]):
          self.save(output)
          raise Unavailable("the device does not answer any more; the same command goes on with the other rows") from error
      self.save(output)
      quietly(lambda: self.device.api.empty_cache())
    return 0
  def one(self, row: Row, output: Output) -> None:
    why, op, kernel, wrong = self.here(row), None, "", ""
    try: op, kernel, wrong = (None, "", "") if why else self.chooser.op(row)
    except FAILURES as error: why = reason_of(error)
    if self.ranks.agreed(float(op is None), largest=True) or op is None: raise Unavailable(why or "another rank cannot run it")
    times = self.timer.times(op, row.text("power") == "sustained")
    for timing in times:
      hardware = self.options.hardware or row.text("hardware") or self.device.name
      output.add({**row.cells, "hardware": hardware}, timing, kernel, timing.minimum if row.exchanges else timing.median, wrong)
    told, self.timer.note = "; ".join(filter(None, (kernel, wrong, self.timer.note))), ""
    self.say(", ".join(f"{t.median * 1e6:.4g} us {t.mode}" for t in times) + f" ({told})")
  def steps(self, steps: Sequence[Dict[str, Any]], rows: Sequence[Row], output: Output) -> None:
    """Whole steps: their ops in order, operands in turn."""
    known, same = {r.index: r for r in rows}, ("model", "phase", "batch", "new_tokens", "context")
    for step in steps:
      cells = {c: str(v) for c, v in step["columns"].items()}
      if any(all(r.get(c) == cells.get(c) for c in same) for r in output.rows) or self.late(): continue
      self.say(f"whole step: {' '.join(cells.values())} ... ", end="")
      made, lacking = {}, []  # type: Tuple[Dict[int, Any], List[str]]
      try:
        for index in sorted({place[0] for _, places in step["blocks"] for place in places}):
          try: made[index] = itertools.cycle(self.chooser.op(known[index])[0].calls)
          except FAILURES: lacking.append(str(known.get(index) or f"row {index}"))
        calls = [next(made[i]) for times, places in step["blocks"] for i, n in places * times if i in made for _ in range(n)]
        for timing in self.timer.times(Op([lambda: [call() for call in calls] and None])) if calls else []:
          output.add({"hardware": self.options.hardware or self.device.name, **cells}, timing, "", timing.median,
                     f"without {', '.join(lacking)}" if lacking else "")
          self.say(f"{timing.median * 1e3:.4g} ms {timing.mode} ", end="")
        self.say("")
        self.save(output)
      except FAILURES as error: self.say(f"not run: {reason_of(error)}")

def arguments() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0], epilog="What is timed: " + WHAT)
  add = parser.add_argument
  add("--device", default="", help="cuda, npu, mps, xpu or cpu, with a number behind a colon; without it what torch finds")
  add("--seconds", type=float, default=300, help="no row starts later than that (300); the most valuable ones come first")
  add("-o", "--output", default="rows.csv", help="where rows go (rows.csv); what is there already is not timed again")
  add("--ops", default="", help=f"only these kinds, by commas: {', '.join(FAMILIES)}, steps, or words of the column op")
  add("--list", action="store_true", help="say what would run with which kernel, and run nothing")
  add("--kernel", default="", help="only kernels whose name has this in it, where they are several")
  add("--rows", metavar="FILE", help="times the rows of a file of measurements in place of those in this program")
  add("--hardware", default="", help="what the column hardware says; without it what the rows say, or the device's name")
  add("--page", type=int, default=0, help="attention reads its cache in pages of so many tokens")
  add("--cache-mb", type=int, default=0, help="what operands take turns to exceed; without it a multiple of the device's cache")
  return parser
def found_device() -> str:
  found = {"mps": lambda: torch.backends.mps.is_available()}
  return next((k for k in ("npu", "cuda", "xpu", "mps") if quietly(found.get(k, lambda: getattr(torch, k).is_available()))), "cpu")
def main(words: Optional[Sequence[str]] = None) -> int:
  options = arguments().parse_args(words)
  if not TORCH: sys.exit("PyTorch is not installed for this Python: run this with the one that has it (https://pytorch.org/get-started)")
  missing("torch_npu")  # which makes torch.npu
  kind, _, number = (options.device or found_device()).partition(":")
  try:
    columns, rows, wrong = parse(content_of(options.rows) if options.rows else ROWS)
    device = Device(kind, int(os.environ.get("LOCAL_RANK", number or 0)), options.cache_mb << 20)
  except FAILURES as error: sys.exit(f"This does not work: {reason_of(error)} (torch finds {found_device()} here: see --device)")
  wanted = set(filter(None, options.ops.split(",")))
  rows = [r for r in {r.key(): r for r in reversed(rows)}.values() if not wanted or wanted & {r.family, r.op, r.op.split(":")[0]}]
  rows.sort(key=lambda r: (-quietly(lambda: float(r.text("value")), 0.0), r.index))
  steps = [] if options.rows or (wanted and "steps" not in wanted) else json.loads(STEPS)
  warnings.filterwarnings("ignore")
  for name in ("SIGTERM", "SIGHUP"): quietly(lambda: signal.signal(getattr(signal, name), lambda n, _: sys.exit(128 + n)))
  session = Session(options, device, Ranks(kind))
  session.say(f"{options.rows or WHAT}: {len(rows)} rows on {device.title} ({kind}), at most {options.seconds:g} s, to {options.output}")
  for line in wrong: session.say(f"left out: {line}")
  if not options.list: return whole(session, columns, rows, steps)
  for row in rows:
    kernels, told = session.chooser.candidates(row)
    session.say(f"{row}: {session.here(row) or (kernels[0].name if kernels else 'not run: ' + ('; '.join(told) or 'no kernel here'))}")
  return 0

def whole(session: Session, columns: Sequence[str], rows: Sequence[Row], steps: Sequence[Dict[str, Any]]) -> int:
  options, status, left, output = session.options, 0, 0, None
  try:
    with torch.no_grad():
      notes = session.notes()
      names = [c for c in ["hardware", *columns] if c not in RESULT and c != "value"]
      output = session.save(Output(options.output, names + RESULT, "latency_us", notes))
      left = session.replay(rows, output, 0.85 if steps else 1.0)
      if steps and session.ranks.size == 1:
        names = ["hardware", *(c for s in steps for c in s["columns"]), "execution", "latency_ms", *RESULT[1:3], *RESULT[6:]]
        session.steps(steps, rows, Output(re.sub(r"(\.csv)?$", ".steps.csv", options.output, count=1), names, "latency_ms", notes))
  except (KeyboardInterrupt, SystemExit) as error: status = int(getattr(error, "code", 130))
  except FAILURES as error: status, _ = 1, session.say(f"\nThis does not go on: {reason_of(error)}")
  if output is None: return status or 1
  more = f". {left or 'Some'} are left: the same command goes on with them." if left or status else "."
  session.say(f"\n{len(output.rows)} rows are in {options.output}, and why {len(output.not_run)} others could not run{more}")
  for count in sorted({r.n("ranks") for r in rows if r.exchanges and session.ranks.size == 1}):
    session.say(f"Next, for what {count} devices exchange:\n  torchrun --nproc_per_node {count} {sys.argv[0]} "
                f"--device {session.device.kind} --ops matmul_all_reduce,collective -o {options.output}")
  if session.ranks.size > 1: quietly(lambda: (session.ranks.agreed(0), torch.distributed.destroy_process_group()))
  hardware = output.rows[0].get("hardware", "") if output.rows else options.hardware or session.device.name
  session.say(f"Next:\n  llmperf calibrate {options.output} --hw {hardware} -o profile.yaml")
  return status

if __name__ == "__main__": sys.exit(main())
