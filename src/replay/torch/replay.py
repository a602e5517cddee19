#!/usr/bin/env python3
"""Times the ops of a model on this machine through PyTorch, and writes what they took as a CSV that llmperf calibrates from.

    python3 replay.py [--device cuda|npu|mps|xpu|cpu] [--seconds 300] [-o rows.csv]

Python 3.8 and PyTorch 1.13, or newer ones, are all that is needed. Fused kernels of packages that are installed (flash_attn, flashinfer,
flash_mla, fla, torch_npu, triton) are used. What was measured stays in the file whatever happens, and the same command goes on with it.
"""
from __future__ import annotations
import argparse, contextlib, csv, ctypes, dataclasses, datetime, functools, importlib, itertools, json, math, os  # noqa: E401
import pathlib, platform, re, shlex, signal, statistics, subprocess, sys, time, warnings  # noqa: E401
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a kernel a row is not worth a pool of compilers
try:
  import torch, torch.nn.functional as F  # noqa: E401
  NO_TORCH = "" if hasattr(torch, "__version__") else "a folder of that name stands near"
except Exception as error:  # also OSError, of a library that it lacks
  NO_TORCH = str(error) or type(error).__name__

# What is timed: llmperf puts a model's ops here, in the kernel schema of its measurements; value: seconds of a step that a row stands for.
DEVICE = ""  # that the rows are for; empty: what torch finds
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
,copy_to_device,fp16,,,,,,,,,,,,,,,,,,,,,,65536,weights,,
,copy_to_host,fp16,,,,,,,,,,,,,,,,,,,,,,65536,kv_cache,,
"""
# Whole steps: what their line of measurements says, and [times, [[row of ROWS from 0, or -1 of an op without one, executions], ...]].
STEPS = """\
[{"columns": {"model": "example", "weights": "fp32", "batch": 1, "phase": "prefill", "new_tokens": 64, "context": 0},
  "blocks": [[1, [[27, 1]]], [2, [[15, 1], [0, 1], [21, 1], [28, 1], [7, 1], [23, 1]]]]}]
"""

SHAPE = ("op dtype weights ranks batch m n k hidden inter topk experts tp ep distribution q_len kv_len heads kv_heads head_dim causal "
         "kv_dtype window bytes power copies page").split()
WORDS = ("op", "dtype", "weights", "distribution", "causal", "kv_dtype", "power")  # columns that are no numbers
SILENT = dict(word.split("=") for word in "batch=1 tp=1 ep=1 ranks=1 causal=1 distribution=balanced window=0 copies=0 page=0".split())
RESULT = "latency_us spread_us repetitions kernel runtime mode sets clock_mhz power_w temperature_c untrusted".split()
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
HALF, ANY = "bf16, fp16", ", ".join(BYTES)
PACKAGES = ("torch_npu", "triton", "flash_attn", "flash_attn_interface", "flashinfer", "flash_mla", "fla")
Tensor = Any
class Unavailable(Exception): """Why a row cannot run here. It is told, and the next kernel or row is tried."""
def unless(*pairs: Any) -> str:  # of conditions, each with what is to be said behind it, the first that does not hold; or empty
  return next((str(why) for holds, why in zip(pairs[::2], pairs[1::2]) if not holds), "")

class Row:
  def __init__(self, cells: Dict[str, str], index: int = -1) -> None:
    self.cells, self.index = cells, index
    self.op = "all_to_all" if self.text("op") == "alltoall" else self.text("op")
    self.dtype, self.exchanges = self.text("dtype") or "fp16", self.op in (*COLLECTIVES, "matmul_all_reduce")
    self.family = "collective" if self.op in COLLECTIVES else re.sub(r"_(prefill|decode|products|to_\w+)$", "", self.op.split(":")[0])
  def text(self, column: str) -> str: return self.cells.get(column, "")
  def n(self, column: str, default: int = 0) -> int: return int(float(self.cells.get(column) or default))
  def key(self) -> str:  # cells that say no more than empty ones are left out
    return " ".join([self.op, self.dtype] + [f"{c}={self.text(c)}" for c in SHAPE[2:] if self.text(c) not in ("", SILENT.get(c))])
  def __str__(self) -> str: return self.key() + (f" ({self.text('name')[:60]})" if self.text("name") else "")
  def problem(self) -> str:  # what makes the line no row, empty where it is one
    wrong = [c for c in SHAPE if c not in WORDS and not re.fullmatch(r"(?a:\d{1,15}(\.0*)?)?", self.text(c))]
    lacking = [c for c in getattr(FAMILIES.get(self.family), "sizes", "").split() if not wrong and not self.n(c)]
    return unless(not wrong, f"{', '.join(wrong)}: no such size", self.family in FAMILIES, f"op '{self.op[:40]}' is not replayed",
                  self.dtype in BYTES, f"dtype '{self.dtype[:40]}' is not replayed", not lacking, f"{', '.join(lacking)}: not given")
def cells_of(line: str) -> List[str]:
  return quietly(lambda: [c.strip() for c in next(csv.reader([line.replace("\0", "?")], strict=True))], [])
def parse(text: str) -> Tuple[List[str], List[Row], List[str]]:
  """The columns, the rows, and what is wrong with lines that are none: the others are read."""
  lines = [(i, cells_of(line)) for i, line in enumerate(text.split("\n"), 1) if line.strip() and not line.startswith("#")]
  columns = lines[0][1] if lines else []
  if columns.count("op") != 1 or len(set(columns)) < len(columns): raise ValueError("the first line has no column 'op', or one twice")
  read = [(number, Row(dict(zip(columns, cells)), index), len(cells)) for index, (number, cells) in enumerate(lines[1:])]
  told = [(i, row, unless(n == len(columns), f"{n} cells under {len(columns)} columns") or row.problem()) for i, row, n in read]
  return columns, [row for _, row, why in told if not why], [f"line {i}: {why}" for i, _, why in told if why]

def package(name: str) -> Any: return importlib.import_module(name)
def content_of(path: str) -> str: return pathlib.Path(path).read_text(encoding="utf-8-sig", errors="replace")
def found_in(path: str, pattern: str) -> str: return quietly(lambda: re.findall(pattern, content_of(path), re.M)[0].strip(), "")
def quietly(call: Callable[[], Any], otherwise: Any = None) -> Any:
  try: return call()
  except Exception: return otherwise
@functools.lru_cache(maxsize=None)  # what is broken may take seconds to say so
def missing(names: str) -> str:  # the first of "module:attribute ..." that is not there, or is broken; empty where all are
  there = lambda module, _, path: functools.reduce(getattr, filter(None, path.split(".")), package(module))
  return next((name.replace(":", ".") for name in names.split() if quietly(lambda: there(*name.partition(":"))) is None), "")

class Device:  # what torch has: its clock, its memory, its sensors, and whether it captures graphs
  def __init__(self, kind: str, number: int = 0, cache: int = 0) -> None:
    self.kind, self.number, self.api = kind, number, getattr(torch, kind, None)  # type: str, int, Any
    self.where = torch.device("cpu") if kind == "cpu" else torch.device(kind, number)
    self.hip = kind == "cuda" and bool(getattr(torch.version, "hip", None))
    if kind not in ("cpu", "mps"): getattr(self.api, "set_device")(number)
    processor = found_in("/proc/cpuinfo", r"model name\s*:(.+)") or found_in("/sys/devices/virtual/dmi/id/product_name", "(.+)")  # of ARM
    processor = processor or (sys.platform == "darwin" and subprocess.getoutput("sysctl -n machdep.cpu.brand_string")) or platform.machine()
    self.title = str(quietly(lambda: self.api.get_device_name(number)) or (processor if kind in ("cpu", "mps") else kind))
    self.name = re.sub(r"[^a-z0-9.]+", "-", self.title.lower()).strip("-") or kind
    properties = quietly(lambda: self.api.get_device_properties(number))
    self.capability: Tuple[int, int] = quietly(lambda: self.api.get_device_capability(number), (0, 0)) if kind == "cuda" else (0, 0)
    self.major = 0 if self.hip else self.capability[0]  # of NVIDIA's: 9 is Hopper; AMD's MI300 says 9.4
    self.fp8 = "float8_e4m3fnuz" if self.hip and str(getattr(properties, "gcnArchName", "")).startswith("gfx942") else "float8_e4m3fn"
    # Drivers do not tell of AMD's, Ascend's and Intel's last caches, nor of Apple's. A processor's keep a part of twice their size.
    sizes = [found_in(f"/sys/devices/system/cpu/cpu0/cache/index{i}/size", r"^(\d+)K") if kind == "cpu" else "" for i in range(5)]
    known = {"cuda": 256 if self.hip else 0, "npu": 192, "mps": 96, "xpu": 408 if getattr(properties, "has_fp64", 1) else 24}.get(kind, 0)
    known = max(known << 20, int(getattr(properties, "L2_cache_size", 0)), *(int(size or 0) << 10 for size in sizes))
    self.flushed = cache or (8 if kind == "cpu" else 2) * (known or 64 << 20)
    self.graph_class: Any = getattr(self.api, {"cuda": "CUDAGraph", "npu": "NPUGraph", "xpu": "XPUGraph"}.get(kind, "-"), None)
    self.nvml: Any = quietly(self.nvidia) if kind == "cuda" and not self.hip else None
  def free(self) -> int:
    told = {"cpu": lambda: int(found_in("/proc/meminfo", r"MemAvailable:\s*(\d+)")) << 10,
            "mps": lambda: self.api.recommended_max_memory() - self.api.current_allocated_memory()}
    free = lambda: self.api.mem_get_info(self.number)[0] + self.api.memory_reserved() - self.api.memory_allocated()
    return int(quietly(told.get(self.kind, free), 4 << 30))
  def synchronize(self) -> Any: return self.api.synchronize() if self.kind != "cpu" else None
  def tidy(self) -> bool:  # gives unused memory back; false where it cannot: torch captures no more then
    return quietly(lambda: getattr(self.api, "empty_cache", bool)(), self) is not self
  def nvidia(self) -> Callable[..., float]:  # reads a figure by the driver's library, which knows this device by its UUID
    library, handle, value = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint()
    named = f"GPU-{self.api.get_device_properties(self.number).uuid}".encode()
    if library.nvmlInit_v2() or library.nvmlDeviceGetHandleByUUID(named, ctypes.byref(handle)): raise OSError("no such device")
    return lambda what, *more: 0.0 if getattr(library, "nvmlDeviceGet" + what)(handle, *more, ctypes.byref(value)) else float(value.value)
  def sensors(self) -> List[Optional[float]]:  # clock in MHz, power in W, temperature in C; none where nothing tells
    read, n = self.nvml, self.number  # of power_draw torch says that it is in mW, and gives AMD's W
    of_amd: Any = (lambda: self.api.clock_rate(n), lambda: self.api.power_draw(n), lambda: self.api.temperature(n))
    of_nvidia: Any = (lambda: read("ClockInfo", 1), lambda: read("PowerUsage") / 1e3, lambda: read("Temperature", 0))
    return [quietly(sensor) or None for sensor in (of_amd if self.hip else of_nvidia)]
  def facts(self) -> List[str]:
    driver = found_in("/proc/driver/nvidia/version", "NVRM.*?: (.+)") or found_in("/usr/local/Ascend/driver/version.info", "Version=(.+)")
    told = {"device": self.title, "torch": torch.__version__, "Python": platform.python_version(), "system": platform.platform(),
            "driver": driver, "CUDA": getattr(torch.version, "cuda", ""), "ROCm": getattr(torch.version, "hip", ""), "date":
            datetime.date.today(), "threads": torch.get_num_threads() if self.kind == "cpu" else "", "command": " ".join(sys.argv),
            **{name: getattr(package(name), "__version__", "is there") for name in PACKAGES if not missing(name)}}
    return [f"{name}: {text}" for name, text in told.items() if text]

class Ranks:  # this process among those that torchrun started, alone without it; rank 0 decides, over a group of the hosts
  def __init__(self, kind: str) -> None:
    told = all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))  # schedulers leave some of them
    limit, (self.rank, self.size) = datetime.timedelta(0, 120), (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])) if told else (0, 1)
    if self.size > 1:
      torch.distributed.init_process_group({"cuda": "nccl", "npu": "hccl", "xpu": "xccl"}.get(kind, "gloo"), timeout=limit)
      self.hosts = torch.distributed.new_group(backend="gloo", timeout=limit)
  def agreed(self, value: float, largest: bool = False) -> float:  # the largest of all, or what rank 0 says
    number, dist = torch.tensor([value], dtype=torch.float64), torch.distributed
    if self.size > 1: dist.all_reduce(number, dist.ReduceOp.MAX, self.hosts) if largest else dist.broadcast(number, 0, self.hosts)
    return float(number[0])
  def together(self, step: Callable[[], Any]) -> Any:  # fails where any rank fails: those that went on would wait for it for ever
    result, failed = None, None  # type: Any, Optional[Exception]
    try: result = step()
    except Exception as error: failed = error
    if self.agreed(float(failed is not None), largest=True): raise failed or Unavailable("another rank cannot run it")
    return result

# Element i of operand j is the same number on every machine (src/replay/operands.h), so that results can be compared.
EXACT = 1 << 22  # tensors of more elements repeat their first ones
@functools.lru_cache(maxsize=16)
def numbers_of(operand: int, count: int) -> Tensor:  # in [-1, 1), spread evenly, in fp32 on the host: a finaliser of MurmurHash3
  h = torch.arange(count, dtype=torch.int64).mul_(0x9E3779B9).add_((operand + 1) * 0x85EBCA6B).bitwise_and_(0xFFFFFFFF)
  for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)): h = h.bitwise_xor_(h >> shift).mul_(factor).bitwise_and_(0xFFFFFFFF)
  return ((h.bitwise_xor_(h >> 16) >> 8) - (1 << 23)).to(torch.float32) * (1.0 / (1 << 23))

class Op(NamedTuple):  # what executes a row
  calls: List[Callable[[], Any]]  # one for each set of operands
  seen: Callable[[Any], Any] = lambda result: result  # what of the result of one call is compared

class Lab:  # makes operands on a device; without one on the host in fp64, where is computed what results are compared with
  def __init__(self, device: Any, rank: int = 0, fp8: str = "") -> None:  # a Device or none
    self.device, self.rank, self.where = device, rank, device.where if device else torch.device("cpu")
    self.fp8 = fp8 or (device.fp8 if device else "float8_e4m3fn")
  def type_of(self, dtype: str) -> Any:  # torch before 2.1 has no fp8, and says so
    return getattr(torch, {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "int8": "int8", "fp8": self.fp8}[dtype])
  def room(self, size: float, on_host: bool = False) -> None:
    free = self.device.free() if self.device and not on_host else 1 << 34
    if size > 0.9 * free: raise Unavailable(f"needs {size / 2**30:,.1f} GiB at once, and {free / 2**30:,.1f} GiB are free")
  def fill(self, operand: int, shape: Sequence[int], scale: float = 1.0, offset: float = 0.0, dtype: str = "fp32") -> Tensor:
    if (count := math.prod(shape)) < 1: raise Unavailable("has an operand without elements")
    self.room(count * (BYTES[dtype] if self.device else 8))
    first = numbers_of(operand, 1 << max(12, (min(count, EXACT) - 1).bit_length()))[:count] * scale + offset
    first = (first.round() if dtype == "int8" else first).to(self.type_of(dtype))
    if not self.device: return first.to(torch.float64).reshape(tuple(shape))
    return first.to(self.where).repeat(-(-count // EXACT))[:count].reshape(tuple(shape))
  def integers(self, count: int, step: int = 1, dtype: Any = None) -> Tensor:
    self.room(16 * count)
    return (torch.arange(count, dtype=torch.int64, device=self.where) * step).to(dtype or torch.int32)
  def full(self, shape: Sequence[int], value: float, dtype: Any = None) -> Tensor:
    return torch.full(tuple(shape), value, dtype=dtype or torch.float32, device=self.where)

@dataclasses.dataclass
class Kernel:
  name: str
  build: Callable[[Any], Op]
  devices: str = "cuda npu mps xpu cpu"
  needs: str = ""  # "module:attribute ..."
  dtypes: str = "fp32, bf16, fp16"
  fits: Callable[[Any], str] = lambda family: ""  # why not for this shape; "-": a reader need not hear of it (a prompt in a decode kernel)
  def why_not(self, family: Family) -> str:
    return unless(family.lab.device.kind in self.devices.split(), "-") or self.fits(family) or unless(
        not missing(self.needs), f"{missing(self.needs)} is not here", family.row.dtype in self.dtypes, f"takes {self.dtypes}")

class Family:  # a kind of op, with the kernels known for it by preference; `plain` also computes what results are compared with
  sizes, kernels = "", []  # type: str, List[Kernel] # sizes: columns that every row has
  plain: Callable[..., Op]
  def __init__(self, lab: Lab, row: Row) -> None:
    self.lab, self.row, self.full, self.integers, self.page = lab, row, lab.full, lab.integers, row.n("page")
    self.fill: Callable[..., Tensor] = functools.partial(lab.fill, dtype=row.dtype)
    self.part, self.detail, self.fewer = 1.0, "", ""  # of operands, how much a call reads; of a kernel that is built, what is to be told
    self.m, self.width, self.k, self.batch = row.n("m"), row.n("n"), row.n("k"), row.n("batch", 1)
    self.heads, self.kv_heads, self.share = row.n("heads"), row.n("kv_heads"), row.n("heads") // max(1, row.n("kv_heads"))
  def copies(self, read: float) -> int:  # sets of operands that the caches cannot hold, so many bytes of each
    return min(self.row.n("copies") or int(self.lab.device.flushed // max(1.0, read)) + 1, 4096)
  def turns(self, *first: Tensor) -> List[Tuple[Tensor, ...]]:  # what a model reads from memory, as often as caches cannot hold it
    if not self.lab.device: return [first]
    size = max(1, sum(t.numel() * t.element_size() for t in first))
    wanted, fit = self.copies(size * self.part), int(0.4 * self.lab.device.free() // size)
    if fit < wanted > 1: self.fewer = f"memory holds {max(1, fit)} of {wanted} sets of operands"
    return [first] + [tuple(t.clone() for t in first) for _ in range(min(wanted, fit) - 1)]
  def over(self, call: Callable[..., Any], *first: Tensor, **more: Any) -> Op:
    return Op([functools.partial(call, *turn) for turn in self.turns(*first)], **more)
  def tolerance(self) -> float:
    return {"fp32": 256 * 2.0**-24, "bf16": 8 * 2.0**-8, "fp16": 8 * 2.0**-11, "int8": 2 / 127, "fp8": 0.1}[self.row.dtype]
def first_of(result: Any) -> Any: return result[0] if isinstance(result, (tuple, list)) else result

class Gemm(Family):
  """x [batch, m, k] times the transpose of w [batch, n, k]; the scheme says how w is stored: w8a8, fp8, int8 or w4a16, in groups."""
  sizes = "m n k"
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    named = {"w8a16": "int8", "int4": "w4a16", row.dtype: ""}.get(row.text("weights"), row.text("weights"))
    self.scheme, _, group = re.sub("^(awq|gptq)", "w4a16", named or {"int8": "w8a8", "fp8": "fp8"}.get(row.dtype, "")).partition("-g")
    self.group, self.root = int(group) if group.isdigit() and int(group) else self.k, 1 / math.sqrt(max(1, self.k))
    self.blocks, self.scheme = self.scheme == "fp8-block128", self.scheme.replace("-block128", "")
    self.most, self.many = {"w8a8": 127.0, "int8": 127.0, "w4a16": 7.0}.get(self.scheme, 1.0), [self.batch] if self.batch > 1 else []
  def x(self) -> Tensor: return self.fill(0, (*self.many, self.m, self.k), 127.0 if self.row.dtype == "int8" else 1.0)
  def w(self) -> Tensor:
    stored, scale = {"": (self.row.dtype, self.root), "fp8": ("fp8", 1.0)}.get(self.scheme, ("int8", self.most))
    return self.fill(1, (*self.many, self.width, self.k), scale, dtype=stored)
  def plain(self) -> Op:
    x, w = self.x(), self.w()
    if self.scheme: x, w = x / (127 if self.row.dtype == "int8" else 1), w * (self.root / self.most)  # on the host, to compare with
    return self.over(lambda w: F.linear(x, w) if x.dim() == 2 else torch.bmm(x, w.transpose(1, 2)), w)
  def int4_weights(self) -> Op:
    x, q, pack = self.x(), (self.w() + 8).to(torch.int32), torch._convert_weight_to_int4pack
    packed = quietly(lambda: pack((q[:, ::2] << 4 | q[:, 1::2]).to(torch.uint8), 8))  # newer versions take two to a byte
    scales = F.pad(self.full((self.k // self.group, self.width, 1), self.root / 7, x.dtype), (0, 1))  # and no zero points
    return self.over(lambda w: torch._weight_int4pack_mm(x, w, self.group, scales), pack(q, 8) if packed is None else packed)
  def scaled(self) -> Op:  # activations of another type become fp8 by a cast, as those with a scale that is known before do
    of, columns = ((self.k // 128, self.m), (self.width // 128, self.k // 128)) if self.blocks else ((), ())  # 1 x 128, and 128 x 128
    x, one, scale = self.x(), self.full(of, 1.0).t(), self.full(columns, self.root).t()
    more: Dict[str, Any] = {"out_dtype": self.lab.type_of(self.row.dtype if self.row.dtype in HALF else "bf16")}
    if self.lab.device.major == 9 and not self.blocks: more["use_fast_accum"] = True  # as engines do; others know no such thing
    self.detail = ", ".join(["with a cast"] * (self.row.dtype != "fp8") + ["fast accumulation"] * ("use_fast_accum" in more))
    return self.over(lambda w: first_of(torch._scaled_mm(x.to(w.dtype), w.t(), scale_a=one, scale_b=scale, **more)), self.w())
  def int8(self) -> Op:
    return self.over(lambda w, x=self.x(): torch._int_mm(x, w.t()), self.w(), seen=lambda y: y.cpu().double() * (self.root / 127**2))
  def npu_quantised(self) -> Op:
    npu, x, given, whole = package("torch_npu"), self.x(), self.full((self.m,), 1 / 127), self.row.dtype == "int8"
    out, self.detail = (torch.float16, "") if whole else (x.dtype, "with npu_dynamic_quant")
    scale = self.full((self.width,), self.root / 127, torch.bfloat16 if out == torch.bfloat16 else torch.float32)
    call = lambda w, left, steps: npu.npu_quant_matmul(left, w.t(), scale, pertoken_scale=steps, output_dtype=out)
    return self.over(lambda w: call(w, *((x, given) if whole else npu.npu_dynamic_quant(x))), self.w())
  def npu_weights(self) -> Op:
    npu, x, w, group = package("torch_npu"), self.x(), self.w().t(), self.group if self.group < self.k else 0
    scale = self.full((self.k // group, self.width) if group else (self.width,), self.root / self.most, x.dtype)
    w = w if self.scheme == "int8" else npu.npu_convert_weight_to_int4pack(w.contiguous().to(torch.int32))
    return self.over(lambda w: npu.npu_weight_quant_batchmatmul(x, w, scale, antiquant_group_size=group), w)
  def takes(self, schemes: str, of: int = 1, k_of: int = 1, more: int = 0) -> str:
    return unless(self.scheme in schemes.split(), "-", self.batch == 1, "takes one matrix", self.m > more, f"takes more than {more} rows",
                  self.width % of == self.k % k_of == 0, f"takes multiples of {k_of}", self.k % self.group == 0, "takes whole groups")
  def tolerance(self) -> float: return super().tolerance() + {"w8a8": 2 / 127, "fp8": 0.1}.get(self.scheme, 0.0)
  kernels = [
      Kernel("torch linear", plain, fits=lambda s: unless(not s.scheme, "-")),
      Kernel("torch._scaled_mm", scaled, "cuda xpu", "torch:_scaled_mm torch:float8_e4m3fn", ANY, lambda s: s.takes("fp8", 16, 16)
             if not s.blocks else s.takes("fp8", 128, 512, 1) or unless(s.row.dtype == "fp8" and s.lab.device.major == 9, "is for Hopper")),
      Kernel("npu_quant_matmul", npu_quantised, "npu", "torch_npu:npu_quant_matmul", "bf16, fp16, int8", lambda s: s.takes("w8a8")),
      Kernel("npu_weight_quant_batchmatmul", npu_weights, "npu", "torch_npu", HALF, lambda s: s.takes("int8 w4a16")),
      Kernel("torch._int_mm", int8, "cuda cpu xpu", "torch:_int_mm", "int8", lambda s: s.takes("w8a8", 8, 8, 16)),
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
  sizes, rope = "batch q_len kv_len heads kv_heads head_dim", 0  # of latent attention: how much of a key, behind the rest, is rotated
  def __init__(self, lab: Lab, row: Row) -> None:
    super().__init__(lab, row)
    self.q_len, self.kv_len, self.absorbed = row.n("q_len"), row.n("kv_len"), row.op == "mla_decode"  # absorbed: values are a part of keys
    self.d = self.dv = row.n("head_dim")
    if self.rope: self.d, self.dv, self.kv_heads = (576, 512, 1) if self.absorbed else (192, 128, self.heads)
    self.cached, self.share = row.text("kv_dtype") or row.dtype, self.heads // max(1, self.kv_heads)
    self.scale = 1 / math.sqrt(max(1, 192 if self.rope else self.d))
    self.causal = row.text("causal").lower() not in ("0", "false") and self.q_len > 1  # a query alone is the last one
    self.window = row.n("window") if row.n("window") < self.kv_len else 0
    self.simple = self.q_len == 1 or not (self.window or (self.causal and self.q_len < self.kv_len))  # no mask but that of a whole prompt
    self.part = min(1.0, (self.window + self.q_len - 1) / max(1, self.kv_len)) if self.window else 1.0
  def q(self) -> Tensor: return self.fill(0, (self.batch, self.q_len, self.heads, self.d))
  def kv(self) -> List[Tensor]:
    cache = lambda i, d: self.fill(i, (self.batch, self.kv_len, self.kv_heads, d), dtype=self.cached)
    return [k := cache(1, self.d), k[..., :self.dv] if self.absorbed else cache(2, self.dv)]
  def visible_kv(self) -> List[Tensor]:  # of a query alone those that it sees, so that kernels without windows do for it
    if self.q_len > 1: return self.kv()
    self.part, seen = 1.0, [x[:, -self.window:] for x in self.kv()]
    return seen if self.absorbed else [x.contiguous() for x in seen]
  def over_cache(self, call: Callable[..., Any], k: Tensor, v: Tensor, **more: Any) -> Op:
    """Values that are a part of the keys are no operand of their own: they are read once."""
    return self.over(lambda k: call(k, k[..., :self.dv]), k, **more) if self.absorbed else self.over(call, k, v, **more)
  def pages(self, page: int, *caches: Tensor) -> Tuple[Tensor, ...]:
    """Pools [pages, page, ...]: page p of sequence b is number p batch + b. The last tensor says which are whose."""
    count, pools, self.detail = -(-self.kv_len // page), [], f"pages of {page}"
    for x in caches:
      self.lab.room(1.1 * x.numel() * x.element_size())
      pool = x.new_zeros((count, self.batch, page, *x.shape[2:]))
      for p, part in enumerate(x.split(page, 1)): pool[p, :, :part.shape[1]] = part
      pools.append(pool.flatten(0, 1))
    return (*pools, self.integers(count * self.batch).reshape(count, self.batch).t().contiguous())
  def visible(self) -> Tensor:  # [q_len, kv_len]: which queries see which keys
    at, key = (torch.arange(first, self.kv_len, device=self.lab.where) for first in (self.kv_len - self.q_len, 0))
    return (key <= at[:, None] if self.causal else key >= 0) & (key > at[:, None] - (self.window or self.kv_len + 1))
  def plain(self) -> Op:
    k, v = (x.transpose(1, 2).contiguous() for x in self.kv())
    self.lab.room(3 * self.batch * self.heads * self.q_len * self.kv_len * k.element_size())
    q = self.q().unflatten(2, (self.kv_heads, self.share)).permute(0, 2, 3, 1, 4).flatten(2, 3).contiguous()
    hidden = ~self.visible().repeat(self.share, 1) if self.causal or self.window else torch.zeros((), dtype=torch.bool, device=k.device)
    scores = lambda k: torch.softmax((torch.matmul(q, k.transpose(2, 3)) * self.scale).masked_fill(hidden, -math.inf), -1)
    seen = lambda y: y.unflatten(2, (self.share, self.q_len)).permute(0, 3, 1, 2, 4)
    return self.over_cache(lambda k, v: torch.matmul(scores(k), v), k, v, seen=seen)
  def flash(self, module: str, table: str) -> Op:
    flash, (k, v) = package(module), self.kv()
    q, window = self.q().to(k.dtype), (self.window - 1, 0 if self.window else -1)
    more: Dict[str, Any] = {"softmax_scale": self.scale, "causal": self.causal, "window_size": window}
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
  def flash_mla(self) -> Op:
    mla, q, (pool, table) = package("flash_mla"), self.q(), self.pages(64, self.kv()[0])
    lengths, more = self.full((self.batch,), self.kv_len, torch.int32), {"softmax_scale": self.scale, "causal": self.causal}
    plan = mla.get_mla_metadata(lengths, self.q_len * self.heads, 1)
    return self.over(lambda kv: mla.flash_mla_with_kvcache(q, kv, table, lengths, self.dv, *plan, **more)[0], pool)
  def torch_own(self, backend: str = "") -> Op:
    """Of one query, those that share a head of keys stand as the queries of one head, which needs neither a mask nor more heads."""
    (k, v), folded = self.visible_kv(), self.q_len == 1
    more: Dict[str, Any] = {"scale": self.scale}
    q = self.q().reshape(self.batch, self.kv_heads, self.share, self.d) if folded else self.q().transpose(1, 2)
    if self.simple: more["is_causal"] = self.causal
    elif self.causal and not self.window and self.lab.device.capability >= (8, 0) and not missing("torch.nn.attention.bias"):
      bias, self.detail = package("torch.nn.attention.bias"), "causal_lower_right" + ", keys repeated" * (self.share > 1)  # flash takes it
      more["attn_mask"], k, v = bias.causal_lower_right(self.q_len, self.kv_len), *(x.repeat_interleave(self.share, 2) for x in (k, v))
    else:  # of another mask torch computes all scores, and mostly writes them
      self.lab.room(3 * self.batch * self.heads * self.q_len * self.kv_len * q.element_size())
      more["attn_mask"], self.detail = self.visible(), "with a mask"
    if q.shape[1] != k.shape[2]: more["enable_gqa"] = True
    own = package("torch.nn.attention") if backend else None
    within = (lambda: own.sdpa_kernel(getattr(own.SDPBackend, backend))) if own else contextlib.nullcontext
    def call(k: Tensor, v: Tensor) -> Tensor:
      with within(): return F.scaled_dot_product_attention(q, k.transpose(1, 2), v.transpose(1, 2), **more)
    return self.over_cache(call, k, v, seen=lambda y: y if folded else y.transpose(1, 2))
  def npu(self, scale: str, fused: bool = True) -> Op:
    q, (k, v), phase = self.q(), self.visible_kv(), "incre" if self.q_len == 1 else "prompt"
    named = getattr(package("torch_npu"), "npu_fused_infer_attention_score" if fused else f"npu_{phase}_flash_attention")
    more: Dict[str, Any] = {"num_heads": self.heads, "num_key_value_heads": self.kv_heads, "input_layout": "BSND", scale: self.scale}
    kernel = lambda *operands, **rest: first_of(named(*operands, **more, **rest))
    if self.causal:  # a mask is told by its kind
      more.update(sparse_mode=4 if self.window else 3, pre_tokens=self.window - 1 if self.window else 2**31 - 1, next_tokens=0)
      more["atten_mask"] = torch.ones((2048, 2048), dtype=torch.bool, device=self.lab.where).triu(1)
    if self.rope:  # what is rotated stands in tensors of its own; of latents the rest is both keys and values
      (q, turned), (k, key) = ([t.contiguous() for t in x.split([self.d - self.rope, self.rope], -1)] for x in (q, k))
      if self.absorbed: return self.over(lambda k, key: kernel(q, k, k, query_rope=turned, key_rope=key), k, key)
      return self.over(lambda k, key, v: kernel(q, k, v, query_rope=turned, key_rope=key), k, key, v)
    if self.page:
      k, v, more["block_table"] = self.pages(self.page, k.flatten(2), v.flatten(2))
      more.update(block_size=self.page, actual_seq_lengths_kv=[self.kv_len] * self.batch)
    return self.over(lambda k, v: kernel(q, k, v), k, v)
  def takes(self, fp8: bool = False, pages: bool = False, widest: int = 256, masks: bool = True, least: Tuple[int, int] = (0, 0),
            only: int = 0, alike: bool = False) -> str:
    return unless(self.d == self.dv or not alike, "-", self.heads == self.share * self.kv_heads, "its heads do not share keys evenly",
                  self.kv_len >= self.q_len, "its queries do not follow from its keys", pages or not self.page, "takes no such pages",
                  self.cached == self.row.dtype or (fp8 and self.cached == "fp8"), f"takes no cache in {self.cached[:20]}",
                  self.d <= widest and not self.d % 8, f"takes heads of a multiple of 8 up to {widest}",
                  masks or self.simple, "takes no window and no prompt behind a cache",
                  self.lab.device.capability >= least, f"is for compute capability {least[0]}.{least[1]} and later",
                  only in (0, self.lab.device.major), f"is for compute capability {only}")
  def tolerance(self) -> float: return super().tolerance() + (0.1 if self.cached == "fp8" else 0.0)
  kernels = [
      Kernel("FlashMLA", flash_mla, "cuda", "flash_mla:flash_mla_with_kvcache", HALF,
             lambda s: unless(s.absorbed, "-") or s.takes(pages=s.page in (0, 64), widest=576, only=9)),
      Kernel("FlashAttention 3", lambda s: s.flash("flash_attn_interface", "page_table"), "cuda", "flash_attn_interface:flash_attn_func",
             HALF, lambda s: s.takes(True, True, only=9)),
      Kernel("FlashAttention 2", lambda s: s.flash("flash_attn", "block_table"), "cuda", "flash_attn:flash_attn_func", HALF,
             lambda s: s.takes(pages=s.page % 256 == 0, least=(8, 0), alike=True)),
      Kernel("FlashInfer", flashinfer, "cuda", "flashinfer", HALF, lambda s: s.takes(True, True, least=(7, 5), alike=True)),
      *(Kernel("npu_fused_infer_attention_score" + told, functools.partial(lambda scale, s: s.npu(scale), scale), "npu",
               "torch_npu:npu_fused_infer_attention_score", HALF, lambda s: s.takes(pages=not (s.rope or s.window), widest=512 + s.rope))
        for told, scale in (("", "scale"), (" before 7.0", "scale_value"))),
      Kernel("npu flash attention", lambda s: s.npu("scale_value", False), "npu", "torch_npu", HALF,
             lambda s: s.takes(widest=512, alike=True)),
      *(Kernel(f"torch {name} attention", functools.partial(lambda b, s: s.torch_own(b + "_ATTENTION"), name.upper()), "cuda",
               f"torch.nn.attention:SDPBackend.{name.upper()}_ATTENTION", HALF, lambda s: s.takes(masks=False, least=(8, 0)))
        for name in ("cuDNN", "flash")),
      Kernel("torch attention", torch_own, needs="torch.nn.functional:scaled_dot_product_attention", fits=lambda s: s.takes(widest=1024)),
      Kernel("torch matmul and softmax", plain, fits=lambda s: s.takes(widest=1024))]

class Latent(Attention):  # of DeepSeek's widths: a prompt on expanded keys and values, new tokens on latents, one for all heads
  sizes, rope = "batch q_len kv_len heads", 64

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
    self.lab.room(8 * self.m * (self.topk + self.all), on_host=True)
    turn, ep = torch.arange(self.m * self.topk).reshape(self.m, self.topk) % self.all, self.all // self.held
    picks = turn % ep * self.held + turn // ep  # of so many devices, that the next expert is the next one's
    if self.row.text("distribution") == "uniform":
      picks = torch.rand((self.m, self.all), generator=torch.Generator().manual_seed(1)).topk(self.topk, 1).indices
    self.counts, self.x = torch.bincount(picks.flatten(), minlength=self.all)[:self.held].tolist(), self.fill(0, (self.m, self.hidden))
    self.part = sum(count > 0 for count in self.counts) / self.held  # how many experts are read
    self.logits = torch.zeros(self.m, self.all).scatter_(1, picks, 20.0).to(self.x.dtype).to(self.lab.where)
    shapes = (1, (2 if self.gate else 1) * self.inner, self.hidden), (2, self.hidden, self.inner)
    return [self.fill(i, (self.held, n, k), 1 / math.sqrt(k)) for i, n, k in shapes]
  def ordered(self) -> Tuple[Tensor, ...]:  # tokens by expert, their rows, how much each counts, where those of each expert end
    scores, picks = torch.topk(torch.softmax(self.logits.float(), -1), self.topk)
    expert, order = picks.flatten().sort(stable=True)
    ends, order = torch.searchsorted(expert, torch.arange(1, self.held + 1, device=expert.device)).to(torch.int32), order[:sum(self.counts)]
    tokens = torch.div(order, self.topk, rounding_mode="floor")
    return tokens, self.x.index_select(0, tokens), scores.flatten()[order][:, None].to(self.x.dtype), ends
  def with_product(self, product: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Op:  # of rows, matrices, and where rows of each end
    matrices, before, self.detail = self.operands(), self.ordered(), "" if self.products else "routed by a chain"
    def call(up: Tensor, down: Tensor) -> Any:
      tokens, rows, share, ends = before if self.products else self.ordered()
      h = product(rows, up, ends)
      y = product(F.silu(h[:, :self.inner]) * h[:, self.inner:] if self.gate else F.silu(h), down, ends)
      return y if self.products else torch.zeros_like(self.x).index_add_(0, tokens, y * share)
    return self.over(call, *matrices)
  def plain(self) -> Op:  # the host knows how many rows each expert has, as no model's does
    return self.with_product(lambda x, w, _: torch.cat([F.linear(rows, w[e]) for e, rows in enumerate(x.split(self.counts)) if len(rows)]))
  def npu(self) -> Op:
    npu = package("torch_npu")
    product = functools.partial(npu.npu_grouped_matmul, split_item=2, group_type=0, group_list_type=0)
    def call(up: Tensor, down: Tensor) -> Any:
      shares, picks, places = npu.npu_moe_gating_top_k_softmax(self.logits, None, k=self.topk)
      rows, places, expert = npu.npu_moe_init_routing(self.x, places, picks, self.m)
      ends = npu.npu_moe_compute_expert_tokens(expert, self.all).to(torch.int64)
      y = product([npu.npu_swiglu(product([rows], [up], group_list=ends)[0])], [down], group_list=ends)[0]
      return npu.npu_moe_finalize_routing(y, None, None, None, shares, places, picks)
    return self.over(call, *(w.transpose(1, 2).contiguous() for w in self.operands()))
  def takes(self) -> str:
    return unless(self.topk <= self.all and self.held and self.inner and not self.all % self.held, "its experts cannot be divided so",
                  self.row.text("weights") in ("", self.row.dtype), f"takes no experts in {self.row.text('weights')[:30]}",
                  self.row.text("distribution") in ("", "balanced", "uniform"), f"takes no {self.row.text('distribution')[:30]} rows")
  kernels = [
      Kernel("npu_grouped_matmul", npu, "npu", "torch_npu:npu_grouped_matmul torch_npu:npu_moe_init_routing", HALF,
             lambda s: s.takes() or unless(s.gate and s.held == s.all and not s.products, "takes all experts, with a gate")),
      Kernel("torch grouped_mm", lambda s: s.with_product(lambda x, w, ends: torch._grouped_mm(x, w.transpose(1, 2), offs=ends)), "cuda",
             "torch:_grouped_mm", "bf16", lambda s: s.takes() or unless(s.lab.device.major >= 9, "is a loop on this device")),
      Kernel("torch linear of each expert", plain, fits=takes)]

def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
  y = x if x.dtype == torch.float64 else x.float()
  return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * gamma
def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor: return F.layer_norm(x, x.shape[-1:], gamma, beta, 1e-6)
def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
  return x * cosine + torch.cat((-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]), -1) * sine

class Vector(Family):
  """Operands by letter: x [m, n], w [m, 2 n], gamma g, beta b [n]; of rope queries, keys, cosines, sines. One set: cached, as a model's."""
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
      turned = [self.fill(i, (self.tokens, max(1, h), n))[:, :h] for i, h in enumerate((self.heads, self.kv_heads))]
      angle = torch.arange(self.tokens)[:, None, None] * 1e4 ** (-2 * (torch.arange(n) % (n // 2)).double() / n)
      return turned + [t.to(turned[0].dtype).to(self.lab.where) for t in (angle.cos(), angle.sin())]
    made = {"x": ((self.m, n), 1.0, 0.0), "w": ((self.m, 2 * n), 1.0, 0.0), "g": ((n,), 1 / 8, 1.0), "b": ((n,), 1 / 8, 0.0)}
    return [self.fill(i, *made[letter]) for i, letter in enumerate(self.functions[self.kind][0])]
  def with_function(self, call: Callable[..., Any]) -> Op:
    operands = self.operands()  # of those that a narrow type makes equal, sampling may pick any: what is there is compared, not where
    seen = (lambda i: operands[0].gather(1, i.reshape(-1, 1).long())) if self.kind == "sampling" else lambda y: y
    return Op([functools.partial(call, *operands)], seen=seen)
  def plain(self) -> Op: return self.with_function(self.functions[self.kind][1])
  def compiled(self) -> Op:
    torch._dynamo.reset()  # else it gives up after some shapes
    return self.with_function(torch.compile(self.functions[self.kind][1], dynamic=False))
  def flashinfer(self) -> Op:
    infer, at = package("flashinfer"), self.integers(self.tokens)
    return self.with_function({  # the sum and its norm are made in place, of ever the same tensors: numbers settle, time does not change
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
    return unless(self.kind in (kinds.split() or self.functions), "-" if kinds else "no such op", self.m and self.width, "m, n: not given",
                  self.kind != "rope" or not (self.m % (self.heads + self.kv_heads) or self.width % 2), "its rows are no whole tokens")
  kernels = [
      Kernel("flashinfer", flashinfer, "cuda", "flashinfer:fused_add_rmsnorm", HALF, lambda s: s.takes(s.fused)),
      Kernel("torch_npu", npu, "npu", "torch_npu:npu_add_rms_norm torch_npu:npu_swiglu", fits=lambda s: s.takes(s.fused)),
      Kernel("torch.compile", compiled, "cuda xpu", "torch:compile triton", fits=lambda s: s.takes(s.fused + " add_layer_norm")),
      Kernel("torch chain", plain, fits=lambda s: s.takes(s.fused + " add_layer_norm")), Kernel("torch", plain, fits=takes)]

class Gather(Family):
  """Rows of a table [k, n]. Each execution picks others, or a large table would be read from the caches."""
  sizes = "m n k"
  def plain(self) -> Op:
    picks, tables = self.integers(self.m, 7919, torch.int64), self.turns(self.fill(0, (self.k, self.width)))
    count = max(len(tables), self.copies(self.m * self.width * BYTES[self.row.dtype])) if self.lab.device else 1
    return Op([functools.partial(F.embedding, (picks + i * self.m) % self.k, *tables[i % len(tables)]) for i in range(count)])
  kernels = [Kernel("torch embedding", plain)]

class CacheWrite(Family):
  """Keys and values [m, kv_heads, head_dim] go to the first places of caches that are as large as whole pages of 16 are."""
  sizes = "m kv_heads head_dim"
  def with_write(self, write: Callable[[Tensor, Tensor, Tensor], Tensor], places: Tensor) -> Op:
    new = [self.fill(i, (self.m, self.kv_heads, self.row.n("head_dim"))) for i in (0, 1)]
    caches = [x.new_zeros((-(-self.m // 16) * 16, *x.shape[1:])) for x in new]
    self.part = self.m / len(caches[0])
    return self.over(lambda *into: [write(c, places, x) for c, x in zip(into, new)], *caches, seen=lambda y: [c[:self.m] for c in y])
  def plain(self) -> Op: return self.with_write(lambda cache, at, x: cache.index_copy_(0, at, x), self.integers(self.m, dtype=torch.int64))
  def npu(self) -> Op: return self.with_write(package("torch_npu").npu_scatter_nd_update_, self.integers(self.m)[:, None])
  kernels = [Kernel("npu_scatter_nd_update_", npu, "npu", "torch_npu:npu_scatter_nd_update_"), Kernel("torch index_copy_", plain)]

class Copy(Family):
  """Over the link between host and device: from or to memory of the host that is page-locked, as engines have it, where that works."""
  sizes = "bytes"
  def plain(self, pinned: bool = False) -> Op:
    first = self.fill(0, (self.row.n("bytes") // BYTES[self.row.dtype],))
    if not self.lab.device: return Op([lambda: first])
    ways = [(x, torch.empty(x.shape, dtype=x.dtype, pin_memory=pinned)) for x, in self.turns(first)]
    if {"copy_to_device": True, "copy_to_host": False}[self.row.op]: ways = [(host.copy_(x), x.zero_()) for x, host in ways]
    return Op([functools.partial(to.copy_, of, non_blocking=True) for of, to in ways])
  kernels = [Kernel("torch copy_, pinned", lambda s: s.plain(True), "cuda npu xpu", dtypes=ANY),
             Kernel("torch copy_", plain, dtypes=ANY, fits=lambda s: unless(s.lab.device.kind != "cpu", "the device is the host: no link"))]

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
        results.append(torch.matmul(query[:, :, None], state := state + key[..., None] * value[:, :, None])[:, :, 0])
      return torch.stack(results, 1).to(v.dtype)
    return self.over(call, first)
  def fla(self) -> Op:
    rule, (first, q, k, v, decay, much) = package("fla.ops.gated_delta_rule"), self.operands()
    alone, decay = q.shape[1] == 1, decay.float().log()  # of a token alone heads may share keys
    kernel = rule.fused_recurrent_gated_delta_rule if alone else rule.chunk_gated_delta_rule
    q, k = (x if alone else x.repeat_interleave(self.share, 2) for x in (q, k))
    more = {"g": decay, "beta": much, "scale": 1.0, "output_final_state": True}
    return self.over(lambda state: kernel(q, k, v, initial_state=state, **more)[0], first)
  def takes(self, kinds: str, longest: int = 1 << 40) -> str:
    return unless(self.row.op.split(":")[-1] in kinds.split(), f"is for {kinds}", self.row.n("q_len") <= longest, "takes no prompt",
                  self.heads == self.share * self.kv_heads, "its heads do not share keys evenly")
  kernels = [Kernel("flash-linear-attention", fla, "cuda xpu npu", "fla.ops.gated_delta_rule:chunk_gated_delta_rule", HALF,
                    lambda s: s.takes("gated_delta_net")),
             Kernel("torch, token by token", plain, fits=lambda s: s.takes("gated_delta_net mamba2", 1))]

class Collective(Family):
  """Of the whole tensor on one rank: what all-reduce and reduce-scatter take, and all-gather makes. Sums in place may become infinite."""
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
    gather = dist.all_gather_into_tensor if dist.get_backend() != "gloo" else lambda y, x: dist.all_gather(list(y.chunk(self.size)), x)
    call = {"all_gather": lambda: gather(y, x), "reduce_scatter": lambda: dist.reduce_scatter_tensor(y, x),
            "all_reduce": lambda: dist.all_reduce(x), "all_to_all": lambda: dist.all_to_all_single(y, x)}[self.row.op]
    return Op([call], seen=lambda _: x if self.row.op == "all_reduce" else y)
  kernels = [Kernel("torch.distributed", library)]

FAMILIES = {"gemm": Gemm, "matmul_all_reduce": MatmulAllReduce, "attention": Attention, "mla": Latent, "moe": Experts, "vector": Vector,
            "gather": Gather, "kv_write": CacheWrite, "copy": Copy, "scan": Scan, "collective": Collective}

def reason_of(error: BaseException) -> str:
  text = "out of memory" if isinstance(error, MemoryError) else " ".join(str(error).split()) or type(error).__name__
  return "out of memory" if "out of memory" in text and not isinstance(error, Unavailable) else text[:300]
def small(row: Row) -> Row:  # quick on the host, and alike in what kernels ask for: lone queries, whole prompts, windows, widths modulo 16
  most = {"m": 32, "n": 256, "k": 256, "batch": 2, "kv_len": 77, "q_len": 33, "window": 50, "hidden": 128, "bytes": 4096}
  if row.text("kv_dtype") == "fp8": most.update(kv_len=29, q_len=13, window=20)  # fewer, of which one too many shows beyond the tolerance
  most.update(window=most["window"] * (row.n("window") < row.n("kv_len")), k=512 if "block" in row.text("weights") else 256)
  most.update({"moe": {"inter": 64 * max(1, row.n("tp"))}, "scan": {"k": 1 << 20, "n": 1 << 20},  # widths of a state are not changed
               "vector": {"m": 9 * max(1, row.n("heads") + row.n("kv_heads"))}}.get(row.family, {}))  # 9 whole tokens
  sizes = {c: min(row.n(c), v) + (row.n(c) % 16 if row.n(c) > v and c in "nk" else 0) for c, v in most.items() if row.n(c)}
  sizes.update({"q_len": sizes["kv_len"]} if row.n("q_len") == row.n("kv_len") > 0 else {})
  return Row({**row.cells, **{c: str(v) for c, v in sizes.items()}, "copies": "1"}, row.index)
def relative_error(*results: Any) -> float:  # to what is right, the second; infinite where shapes differ or something is no number
  got, right = (torch.cat([t.detach().cpu().double().flatten() for t in (r if isinstance(r, (tuple, list)) else [r])]) for r in results)
  same = got.numel() == right.numel() and bool(torch.isfinite(got).all())
  return float((got - right).norm() / right.norm().clamp(min=1e-30)) if same else math.inf

class Chooser:  # which kernel, and whether it computes what it should
  def __init__(self, lab: Lab, ranks: Ranks, named: str = "") -> None:
    self.lab, self.ranks, self.named, self.checked = lab, ranks, named.lower(), {}  # type: Lab, Ranks, str, Dict[str, str]
    self.trying, self.avoided = lambda what: None, []  # type: Callable[[str], Any], List[str] # told what may end the program; what did
  def made(self, kernel: Kernel, row: Row) -> Tuple[Family, Op, Any]:  # what a kernel makes of a row, and what its first call gives
    family = FAMILIES[row.family](self.lab, row)
    op = self.ranks.together(lambda: kernel.build(family))
    return family, op, self.ranks.together(lambda: (op.calls[0](), self.lab.device.synchronize()))[0]
  def wrong(self, kernel: Kernel, row: Row) -> str:  # with results on a small shape; found out once for all rows that it stands for
    alike, known = small(row), f"{kernel.name} {small(row).key()}"
    if known not in self.checked:
      try:
        family, op, result = self.made(kernel, alike)
        plain, allowed = FAMILIES[row.family](Lab(None, self.lab.rank, self.lab.device.fp8), alike).plain(), family.tolerance()
        error = relative_error(op.seen(result), plain.seen(plain.calls[0]()))
        self.checked[known] = "" if error <= allowed else f"results differ from fp64 by {error:.2g}, and {allowed:.2g} is allowed"
      except Exception as failed:  # it may have taken a compiler long to fail: not again
        if reason_of(failed) != "out of memory": self.checked[known] = "!" + reason_of(failed)
        raise
    if self.checked[known].startswith("!"): raise Unavailable(self.checked[known][1:])
    return self.checked[known]
  def op(self, row: Row) -> Tuple[Op, str, str]:  # that of the best kernel that works, its name, and why not to trust it
    family = FAMILIES[row.family](self.lab, row)
    known = [(kernel, kernel.why_not(family)) for kernel in family.kernels if self.named in kernel.name.lower()]
    kernels, told = [k for k, why in known if not why], [f"{k.name}: {why}" for k, why in known if why not in ("", "-")]
    for last, kernel in enumerate(kernels, 1 - len(kernels)):  # one with wrong results stands for the op only where there is no other
      attempt = " ".join(f"{row.key()}: {kernel.name}".split())
      try:
        if attempt in self.avoided: raise Unavailable("ended this program when it ran before; delete that line of the file to try again")
        self.trying(attempt)
        wrong = self.wrong(kernel, row)
        if wrong and last < 0: raise Unavailable(wrong)
        family, op, _ = self.made(kernel, row)
        return op, ", ".join(filter(None, (kernel.name, family.detail))), "; ".join(filter(None, (wrong, family.fewer)))
      except Exception as error: told.append(f"{kernel.name}: {reason_of(error)}")
      self.lab.device.tidy()  # what was made of it is gone now
    raise Unavailable("; ".join(told) or f"there is no kernel for {row.op} in {row.dtype} {row.text('weights')[:30]} here")

Timing = NamedTuple("Timing", [("mode", str), ("median", float), ("minimum", float), ("spread", float), ("passes", int),
                               ("sensors", List[Optional[float]]), ("untrusted", str)])
Run = Callable[..., float]  # executes so many passes and says the seconds of all; calls what it is given before it waits for them
class Timer:  # how long it takes: samples of many executions, operands in turn, until there are enough
  SAMPLE, BUDGET, FEWEST, ENOUGH, MOST, SUSTAINED = 5e-3, 0.4, 5, 9, 31, 3.0
  LOAD = {"cuda": 0.05, "npu": 0.05, "mps": 0.1, "xpu": 0.1}  # s, until the clock of a device that slept is up
  def __init__(self, device: Device, ranks: Ranks, deadline: float = math.inf) -> None:
    self.device, self.ranks, self.deadline, self.note, self.broken = device, ranks, deadline, "", False  # broken: captures no more
    self.sample = self.SAMPLE * (4 if device.kind == "mps" else 1)  # where to wait takes 0.3 ms
  def long(self, seconds: float) -> bool:  # for doing it again and again in the time that is left
    return self.ranks.agreed(seconds - max(1.0, 0.25 * (self.deadline - time.perf_counter()))) > 0
  def warmed(self, run: Run, load: float) -> int:  # until it gets no faster, for so many seconds; says of how many passes a sample is
    begin, passes, steady, last = time.perf_counter(), 1, 0, math.inf
    for look in itertools.count():
      seconds = max(run(passes), 1e-9)
      if seconds < self.sample and passes < 10**6:
        passes = int(min(max(math.ceil(self.sample / seconds * passes), passes + 1), 4 * passes, 10**6))
        continue
      steady, last = 0 if seconds < 0.95 * last else steady + 1, seconds
      settled = steady >= (1 if seconds > 20 * self.sample else 2) or look >= 60  # what is very long is not disturbed so much
      if self.long(seconds) or (settled and self.ranks.agreed(time.perf_counter() - begin) >= load): break
    return passes
  def timing(self, mode: str, run: Run, sustained: bool = False) -> Timing:
    passes, sensed = self.warmed(run, self.SUSTAINED if sustained else self.LOAD.get(self.device.kind, 0.0)), []  # type: int, List[Any]
    read = lambda: sensed.append(self.device.sensors())  # while it works: the clock of a device that waits is another
    samples = [run(passes, read) / passes]
    quarters = lambda: statistics.quantiles(samples, n=4, method="inclusive")
    steady = lambda low, mid, high: len(samples) >= self.ENOUGH and max(high - mid, mid - low) <= 0.005 * mid  # more would say no more
    more = lambda: len(samples) < self.MOST and sum(samples) * passes < self.BUDGET and not steady(*quarters())
    while (len(samples) < self.FEWEST or more()) and not self.long(samples[-1] * passes): samples.append(run(passes) / passes)
    samples.append(run(passes, read) / passes)
    low, mid, high = quarters()
    before, (after, power, heat) = sensed[0][0], sensed[-1]  # power is the mean of a second: an op's only if it ran for longer
    moved = before and after and abs(after - before) > 0.05 * before
    untrusted = [f"the clock {'fell' if after < before else 'rose'} from {before:.0f} to {after:.0f} MHz"] if moved else []
    if len(samples) < self.FEWEST: untrusted.append(f"{len(samples)} samples for want of time")
    sensors = [after, power if sustained else None, heat]
    return Timing(mode, mid, min(samples), high - low, passes * len(samples), sensors, "; ".join(untrusted))
  def times(self, op: Op, sustained: bool = False, graph: bool = True) -> List[Timing]:  # in a graph, where there are any, and one by one
    calls, self.note = itertools.cycle(op.calls), ""
    found = [self.timing("eager", self.runner(lambda: next(calls)()), sustained)]
    if graph and self.device.graph_class:
      try: found.insert(0, self.timing("graph", self.ranks.together(lambda: self.captured(op.calls, found[0].median)), sustained))
      except Exception as error: self.note, self.broken = f"not captured: {reason_of(error)}", not self.device.tidy()
    return found
  def captured(self, calls: Sequence[Callable[[], Any]], each: float) -> Run:
    wanted, graph, api = max(1, min(200, int(self.sample / max(each, 1e-7)))), self.device.graph_class(), self.device.api
    inside = -(-wanted // len(calls)) * len(calls)  # every set of operands as often
    self.device.synchronize()
    with api.stream(api.current_stream()), api.graph(graph):  # of a capture that fails torch leaves its own stream the current one
      for i in range(inside): calls[i % len(calls)]()
    return self.runner(graph.replay, inside)
  def runner(self, launch: Callable[[], Any], inside: int = 1) -> Run:
    event = getattr(self.device.api, "Event", None) if self.device.kind not in ("cpu", "mps") else None  # of mps: the host's
    def run(passes: int, meanwhile: Callable[[], Any] = bool) -> float:
      times, marks = -(-passes // inside), [event(enable_timing=True) for _ in range(2)] if event else []
      marks[0].record() if marks else self.device.synchronize()
      begin = time.perf_counter()
      for _ in range(times): launch()
      if marks: marks[1].record()
      meanwhile()
      self.device.synchronize()
      seconds = marks[0].elapsed_time(marks[1]) * 1e-3 if marks else time.perf_counter() - begin
      return self.ranks.agreed(seconds * passes / (times * inside), largest=True)
    return run

class Output:  # the file of rows: whole after every row, and read again where it is there
  def __init__(self, path: str, columns: Iterable[str], unit: str, notes: Sequence[str]) -> None:
    self.path, self.unit, self.not_run = path, unit, {}  # type: str, str, Dict[str, str]
    lines = content_of(path).split("\n") if os.path.exists(path) else []
    told = [re.sub("^running: ", self.ENDED, line[2:]) for line in lines if line.startswith("# ") and not line.startswith("# not run: ")]
    table = [cells_of(line) for line in lines if line and not line.startswith("#")]
    if (table and unit not in table[0]) or any(note.startswith(("device:", "torch:", "threads:")) and note not in notes for note in told):
      raise Unavailable(f"{path} holds something else, or rows of another device or torch; name another file with -o")
    self.notes = list(dict.fromkeys([*notes, *(note for note in told if note.split(":")[0] not in {n.split(":")[0] for n in notes})]))
    self.columns = list(dict.fromkeys([*(table[0] if table else []), *columns]))
    rows = [dict(zip(table[0], cells)) for cells in table[1:] if len(cells) == len(table[0])]  # not what was left half written
    self.rows = [r for r in rows if 0 < quietly(lambda: float(r[unit]), 0) < math.inf and "want of time" not in str(r)]
  ENDED, UNCAPTURED = "ended the program: ", "not to be captured: "
  def noted(self, start: str) -> List[str]: return [note[len(start):] for note in self.notes if note.startswith(start)]
  def save(self, running: str = "") -> None:  # `running`: what is tried, in case that it ends the program
    notes = self.notes + [f"running: {running}"] * bool(running) + [f"not run: {what}: {why}" for what, why in self.not_run.items()]
    with open(self.path + ".part", "w", encoding="utf-8", newline="") as file:
      file.writelines(f"# {' '.join(note.split())}\n" for note in notes)
      writer = csv.DictWriter(file, self.columns, restval="", extrasaction="ignore", lineterminator="\n")
      writer.writeheader()
      writer.writerows(self.rows)
    os.replace(self.path + ".part", self.path)
  def add(self, cells: Dict[str, str], timing: Timing, kernel: str, seconds: float, wrong: str, sets: int = 1) -> None:
    sensed = {name: "" if s is None else f"{s:.4g}" for name, s in zip(("clock_mhz", "power_w", "temperature_c"), timing.sensors)}
    self.rows.append({**cells, self.unit: f"{seconds * (1e6 if self.unit == 'latency_us' else 1e3):.6g}", "kernel": kernel, **sensed,
                      "mode": timing.mode, "execution": timing.mode, "sets": str(sets), "spread_us": f"{timing.spread * 1e6:.3g}",
                      "repetitions": str(timing.passes), "untrusted": "; ".join(filter(None, (timing.untrusted, wrong)))})

class Session:
  def __init__(self, options: argparse.Namespace, device: Device, ranks: Ranks, columns: Sequence[str]) -> None:
    self.options, self.device, self.ranks, self.begin = options, device, ranks, time.perf_counter()
    self.chooser, self.timer = Chooser(Lab(device, ranks.rank), ranks, options.kernel), Timer(device, ranks, self.begin + options.seconds)
    names = [c for c in ["hardware", *columns, *["page"] * bool(options.page)] if c not in RESULT and c != "value"] + RESULT
    self.notes = ["Ops replayed through PyTorch: " + (options.rows or WHAT), *device.facts(), "latency_us: median of samples, the minimum "
                  "of collectives. spread_us: between quartiles. mode: in a graph, or launched one by one. sets: of operands in turn."]
    self.output = Output(options.output, names, "latency_us", self.notes)
  def say(self, text: str, end: str = "\n") -> Any: return print(text, end=end, flush=True) if self.ranks.rank == 0 else None
  def save(self, output: Output, running: str = "") -> None:
    if self.ranks.rank == 0: output.save(running)
    if not running and not self.device.tidy(): raise Unavailable("torch captures no more after that; the same command goes on")
  def late(self, share: float = 1.0) -> bool: return self.ranks.agreed(time.perf_counter() - self.begin >= self.options.seconds * share) > 0
  def replay(self, rows: Sequence[Row], share: float) -> int:  # says how many are left for want of time
    self.chooser.avoided, self.chooser.trying = self.output.noted(Output.ENDED), functools.partial(self.save, self.output)
    done = {Row(r).key() for r in self.output.rows if self.options.kernel.lower() in r.get("kernel", "").lower()}
    left = [r for r in rows if self.ranks.agreed(r.key() not in done)]
    if len(left) < len(rows): self.say(f"{len(rows) - len(left)} of {len(rows)} rows are there already.")
    for i, row in enumerate(left):
      if self.late(share): return len(left) - i
      self.say(f"[{i + 1}/{len(left)}] {row} ... ", end="")
      try: self.one(row, self.output)
      except Exception as error:
        self.output.not_run[str(row)] = reason_of(error)
        self.say(f"not run: {reason_of(error)}")
        if quietly(lambda: float(self.chooser.lab.full((1,), 1.0))) != 1.0:  # what was running stands in the file, and is not tried again
          raise Unavailable("the device does not answer any more; the same command goes on with the other rows") from error
      self.save(self.output)
    return 0
  def one(self, row: Row, output: Output) -> None:
    needed = row.n("ranks") if row.exchanges else 1
    if needed != self.ranks.size: raise Unavailable(f"is for {needed} process{'es' if needed > 1 else ''}, not {self.ranks.size}")
    op, kernel, wrong = self.ranks.together(lambda: self.chooser.op(row))
    times = self.timer.times(op, row.text("power") == "sustained", kernel not in output.noted(output.UNCAPTURED))
    if self.timer.broken: output.notes.append(output.UNCAPTURED + kernel)
    cells = {**row.cells, "hardware": self.options.hardware or row.text("hardware") or self.device.name}
    for t in times: output.add(cells, t, kernel, t.minimum if row.exchanges else t.median, wrong, len(op.calls))
    told = "; ".join(filter(None, (kernel, wrong, self.timer.note)))
    self.say(", ".join(f"{t.median * 1e6:.4g} us {t.mode}" for t in times) + f" ({told})")
  def steps(self, steps: Sequence[Dict[str, Any]], rows: Sequence[Row]) -> None:
    self.chooser.trying = lambda what: None  # rows have tried it
    names = ["hardware", *(c for s in steps for c in s["columns"]), "execution", "latency_ms", *RESULT[1:4], *RESULT[7:]]
    output = Output("{}.steps{}".format(*os.path.splitext(self.options.output)), names, "latency_ms", self.notes)
    for step in steps:
      cells = {"hardware": self.device.name, **{c: str(v) for c, v in step["columns"].items()}}
      cells["hardware"] = self.options.hardware or cells["hardware"]
      same = [r for r in output.rows if all(r.get(c) == v for c, v in cells.items())]
      if self.late() or any("without " not in r["untrusted"] for r in same): continue
      self.say(f"whole step: {' '.join(cells.values())} ... ", end="")
      try: timings, kernels, wrong = self.step(step["blocks"], {r.index: r for r in rows})
      except Exception as error: timings, kernels, wrong = [], "", f"not run: {reason_of(error)}"
      output.rows = [r for r in output.rows if r not in same or not timings]
      for timing in timings: output.add(cells, timing, kernels, timing.median, wrong)
      told = filter(None, (wrong, self.timer.note if timings else ""))
      self.say(", ".join([*(f"{t.median * 1e3:.4g} ms {t.mode}" for t in timings), *told]))
      if output.rows: self.save(output)
  def step(self, blocks: Sequence[Any], known: Dict[int, Row]) -> Tuple[List[Timing], str, str]:
    """A whole step, its ops in order, operands in turn: how long, by which kernels, and what is wrong with it."""
    made, lacking = {}, []  # type: Dict[int, Tuple[Op, str, str]], List[str]
    for index in sorted({place[0] for _, places in blocks for place in places}):
      try: made[index] = self.chooser.op(known[index])
      except Exception: lacking.append(str(known.get(index) or f"row {index}"))
    turns = {index: itertools.cycle(op.calls) for index, (op, _, _) in made.items()}
    calls = [next(turns[i]) for times, places in blocks for i, n in places * times if i in made for _ in range(n)]
    def execute() -> None:  # what a call gives is freed, and its place used by the next, as in a model
      for call in calls: call()
    notes = ["without " + ", ".join(lacking)] * bool(lacking) + [wrong for _, _, wrong in made.values() if wrong]
    kernels, wrong = ("; ".join(dict.fromkeys(texts)) for texts in ([kernel for _, kernel, _ in made.values()], notes))
    return self.timer.times(Op([execute])) if calls else [], kernels, wrong

def arguments() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0], epilog="What is timed: " + WHAT)
  parser.add_argument("--device", default="", help="cuda, npu, mps, xpu or cpu, with a number behind a colon; without it that of the rows")
  parser.add_argument("--seconds", type=float, default=300, help="no row starts later than that (300); the most valuable ones come first")
  parser.add_argument("-o", "--output", default="rows.csv", help="where rows go (rows.csv); what is there already is not timed again")
  parser.add_argument("--ops", default="", help=f"only these kinds, by commas: {', '.join(FAMILIES)}, steps, or words of the column op")
  parser.add_argument("--kernel", default="", help="only kernels whose name has this in it, where they are several")
  parser.add_argument("--rows", metavar="FILE", help="times the rows of a file of measurements in place of those in this program")
  parser.add_argument("--hardware", default="", help="what the column hardware says; without it what the rows say, or the device's name")
  parser.add_argument("--page", type=int, default=0, help="attention reads its cache in pages of so many tokens")
  parser.add_argument("--cache-mb", type=int, default=0, help="what operands take turns to exceed; without it some times the caches")
  return parser
def found_device() -> str:
  there = lambda kind: getattr(torch.backends if kind == "mps" else torch, kind).is_available()
  return next((kind for kind in ("npu", "cuda", "xpu", "mps") if quietly(lambda: there(kind))), "cpu")
def main(words: Optional[Sequence[str]] = None) -> int:
  options = arguments().parse_args(words)
  if NO_TORCH: sys.exit(f"This Python has no PyTorch ({NO_TORCH}): run this with the one that has it (pytorch.org/get-started)")
  warnings.filterwarnings("ignore")
  torch.set_grad_enabled(False)
  for name in ("SIGTERM", "SIGHUP"): quietly(lambda: signal.signal(getattr(signal, name), lambda n, _: sys.exit(128 + n)))
  missing("torch_npu")  # which makes torch.npu
  kind, _, number = options.device.partition(":")
  kind = kind or DEVICE or found_device()
  try:
    columns, everything, wrong = parse(content_of(options.rows) if options.rows else ROWS)
    device, ranks = Device(kind, int(os.environ.get("LOCAL_RANK", number or 0)), options.cache_mb << 20), Ranks(kind)
    session = Session(options, device, ranks, columns)
  except Exception as error: sys.exit(f"This does not work: {reason_of(error)} (torch finds {found_device()} here: see --device)")
  for row in everything if options.page else ():
    if row.family in ("attention", "mla") and not row.n("page"): row.cells["page"] = str(options.page)
  wanted = set(filter(None, options.ops.split(",")))
  rows = [r for r in {r.key(): r for r in reversed(everything)}.values() if not wanted or wanted & {r.family, r.op, r.op.split(":")[0]}]
  rows.sort(key=lambda r: (-quietly(lambda: float(r.text("value")), 0.0), r.index))
  steps = [] if options.rows or options.kernel or (wanted and "steps" not in wanted) else json.loads(STEPS)
  session.say(f"{options.rows or WHAT}: {len(rows)} rows on {device.title} ({kind}), at most {options.seconds:g} s, to {options.output}")
  session.say("".join(f"left out: {line}\n" for line in wrong), end="")
  return whole(session, rows, steps, everything)
def whole(session: Session, rows: Sequence[Row], steps: Sequence[Any], everything: Sequence[Row]) -> int:
  options, output, status, left = session.options, session.output, 0, 0
  try:
    session.save(output)
    left = session.replay(rows, 0.85 if steps else 1.0)
    if steps and session.ranks.size == 1: session.steps(steps, everything)
  except BaseException as error:
    status = 1 if isinstance(error, Exception) else int(getattr(error, "code", 130))  # 130 of a person, 128 and more of signals
    if status == 1: session.say(f"\nThis does not go on: {reason_of(error)}")
    else: quietly(lambda: session.save(output))  # without what was running
  more = f". {left or 'Some'} are left: the same command goes on with them." if left or status else "."
  session.say(f"\n{len(output.rows)} rows are in {options.output}, and why {len(output.not_run)} others could not run{more}")
  for count in sorted({r.n("ranks") for r in rows if r.exchanges and session.ranks.size == 1}):
    session.say(f"Next, on {count} devices:\n  torchrun --nproc_per_node {count} {shlex.join(sys.argv)} --ops matmul_all_reduce,collective")
  if session.ranks.size > 1 and not status: quietly(lambda: (session.ranks.agreed(0), torch.distributed.destroy_process_group()))
  hardware = output.rows[0].get("hardware", "") if output.rows else ""
  told = f"Next (--hw: or your file):\n  llmperf calibrate {shlex.quote(options.output)} --hw {hardware} -o profile.yaml"
  session.say(told if hardware else "Nothing is measured yet.")
  return status
if __name__ == "__main__": sys.exit(main())
