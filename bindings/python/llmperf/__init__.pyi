# Written by scripts/python_stubs.py from the fields of a request.
from concurrent.futures import Executor
from os import PathLike
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, TypeVar, Union

Named = Union[str, PathLike[str], Dict[str, Any]]  # a name, a path, or the description itself
Count = Union[int, str]  # 4096, "4k"
Number = Union[float, str]
Text = Union[str, float, Sequence[Union[str, float]]]  # lists are joined with commas
T = TypeVar("T")
Many = Union[T, Sequence[T]]  # an axis of a sweep

__version__: str

class Error(Exception):
    errors: List[Dict[str, Any]]
    @property
    def hints(self) -> List[str]: ...

class BadInput(Error, ValueError): ...

class UnknownKeyword(BadInput, TypeError): ...

class DoesNotFit(Error):
    result: Optional[Result]

class Failed(Error, RuntimeError): ...

class Result(Mapping[str, Any]):
    status: int
    @property
    def json(self) -> str: ...
    def to_dict(self) -> Dict[str, Any]: ...
    def save(self, path: Union[str, PathLike[str]]) -> None: ...
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...

class Estimate(Result):
    numbers: Dict[str, float]
    model: Optional[str]
    hardware: Optional[str]
    batch: Optional[float]
    prompt_tokens: Optional[float]
    generate_tokens: Optional[float]
    weights: Optional[str]
    weights_kernel: Optional[str]
    kv: Optional[str]
    activations: Optional[str]
    options: Optional[str]
    devices: Optional[float]
    plan: Optional[str]
    expert_imbalance: Optional[float]
    expert_imbalance_by_number: Optional[float]
    label: Optional[str]
    runtime: Optional[str]
    extrapolated: Optional[str]
    fits: bool
    ttft_s: Optional[float]
    tpot_s: Optional[float]
    tpot_first_s: Optional[float]
    tpot_last_s: Optional[float]
    total_s: Optional[float]
    tokens_per_second: Optional[float]
    tokens_per_second_per_request: Optional[float]
    sequences_per_second: Optional[float]
    tokens_per_second_per_device: Optional[float]
    cost_per_hour: Optional[float]
    cost_per_million_input_tokens: Optional[float]
    cost_per_million_output_tokens: Optional[float]
    request_cost_per_million_output_tokens: Optional[float]
    currency: Optional[str]
    price_basis: Optional[str]
    price_source: Optional[str]
    price_date: Optional[str]
    average_power_w: Optional[float]
    joules_per_input_token: Optional[float]
    joules_per_output_token: Optional[float]
    power_basis: Optional[str]
    weight_bytes: Optional[float]
    kv_cache_bytes: Optional[float]
    state_bytes: Optional[float]
    draft_weight_bytes: Optional[float]
    draft_cache_bytes: Optional[float]
    activation_bytes: Optional[float]
    reserve_bytes: Optional[float]
    total_bytes: Optional[float]
    capacity_bytes: Optional[float]
    host_total_bytes: Optional[float]
    host_capacity_bytes: Optional[float]
    largest_batch: Optional[float]
    longest_context_tokens: Optional[float]
    kv_tokens: Optional[float]
    draft_tokens: Optional[float]
    kept_tokens: Optional[float]
    parameters: Optional[float]
    kv_bytes_per_token: Optional[float]
    height: Optional[float]
    width: Optional[float]
    frames: Optional[float]
    videos: Optional[float]
    steps: Optional[float]
    guidance: bool
    text_tokens: Optional[float]
    tokens: Optional[float]
    patches: Optional[float]
    generation_s: Optional[float]
    step_s: Optional[float]
    text_encoding_s: Optional[float]
    denoising_s: Optional[float]
    vae_decoding_s: Optional[float]
    other_s: Optional[float]
    step_utilisation: Optional[float]
    cost_per_generation: Optional[float]
    joules_per_generation: Optional[float]
    global_batch: Optional[float]
    micro_batch: Optional[float]
    sequence_tokens: Optional[float]
    gradient_bits: Optional[float]
    optimizer_bits: Optional[float]
    recompute: Optional[str]
    recomputed_share: Optional[float]
    products: Optional[str]
    lora_rank: Optional[float]
    loss: Optional[str]
    schedule: Optional[str]
    zero: Optional[float]
    interleave: Optional[float]
    compute_s: Optional[float]
    bubble_s: Optional[float]
    gradient_exposed_s: Optional[float]
    optimizer_s: Optional[float]
    host_s: Optional[float]
    overlapped_s: Optional[float]
    mfu: Optional[float]
    hfu: Optional[float]
    cost_per_step: Optional[float]
    cost_per_million_tokens: Optional[float]
    joules_per_token: Optional[float]
    gradient_bytes: Optional[float]
    optimizer_bytes: Optional[float]
    layer_activation_bytes: Optional[float]
    workspace_bytes: Optional[float]

class Calibration(Result):
    @property
    def profile(self) -> str: ...

class Sweep:
    status: int
    @property
    def columns(self) -> List[str]: ...
    @property
    def document(self) -> Dict[str, Any]: ...
    @property
    def errors(self) -> List[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, key: Union[str, int]) -> Any: ...
    def __iter__(self) -> Iterator[Dict[str, Any]]: ...
    def __getattr__(self, name: str) -> Any: ...
    def to_dict(self) -> Dict[str, List[Any]]: ...
    def to_numpy(self) -> Dict[str, Any]: ...
    def to_pandas(self) -> Any: ...
    def to_polars(self) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
def estimate(
    model: Optional[Named] = None, hw: Optional[Named] = None, *,
    must_fit: bool = True,
    # read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know are
    # passed over and named in every output
    assume: Optional[Literal["llama", "yi", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe", "gemma", "gemma2", "phi", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "minicpm3", "chatglm", "glm4", "glm4v", "glm4v_text", "glm", "gpt_oss", "ministral3", "mistral3", "mistral4", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "minimax_m2", "minimax_m3_vl", "minimax_m3", "deepseek_v4", "kimi_linear", "longcat_flash", "qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe", "qwen3_5_text", "qwen3_5", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni", "qwen2_5_omni_text", "gemma3_text", "gemma3", "gemma4_text", "gemma4", "gemma3n_text", "gemma3n", "nemotron_h", "nemotron-nas", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "lfm2", "lfm2_moe", "llama4_text", "llama4", "mimo", "mimo_v2_flash", "step3p5", "step3p7", "cohere", "cohere2", "olmo2", "olmo3", "exaone4", "exaone4_5_text", "exaone4_5", "seed_oss", "smollm3", "olmoe", "exaone", "nemotron", "internlm2", "internlm3", "bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_moe_linear_v2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense", "phimoe", "dbrx", "minimax_text_01", "minimax_m1", "minimax", "mamba", "falcon_mamba", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "baichuan", "starcoder2", "bert", "xlm-roberta", "roberta", "camembert", "modernbert"]] = None,
    # requests processed together
    batch: Optional[Count] = None,
    # prompt tokens of a request; 128k is 131072
    prompt: Optional[Count] = None,
    # tokens to generate for a request; 2k is 2048
    gen: Optional[Count] = None,
    # tokens of a request that are cached before its prompt; 4k is 4096
    depth: Optional[Count] = None,
    # new tokens of a request in a step of its prefill at most, as engines' chunked prefill cuts prompts; 8k is 8192
    # [the whole prompt]
    prefill_chunk: Optional[Count] = None,
    # images of a request, which the model's vision tower sees before the prefill; their tokens come on top of `prompt`,
    # or of `input`
    images: Optional[Count] = None,
    # of an image in pixels, before the model scales it
    image_size: Optional[Text] = None,
    # one step of continuous batching more, shown as a phase of its own: COUNTxNEW@CONTEXT for sequences that process
    # NEW tokens after CONTEXT cached ones, as in 32x1@2048,1x512@0 for 32 that decode beside a prompt
    step: Optional[Text] = None,
    # which steps the devices run: both, or prefill or decode alone, the other on other devices: memory is what that one
    # needs
    phase: Optional[Literal["both", "prefill", "decode"]] = None,
    # tokens of every sequence that a decode step processes: one, and guesses that it verifies (speculative decoding) of
    # what is not said; `draft` says it
    verify: Optional[Count] = None,
    # with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for the
    # first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with `verify` the
    # tokens that a step keeps on the mean
    accept: Optional[Text] = None,
    # speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own layer
    # for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]
    draft: Optional[Text] = None,
    # tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]
    top_k: Optional[Count] = None,
    # … or from those that together have this probability
    top_p: Optional[Number] = None,
    # bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …), mlx-q4
    # (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]
    weights: Optional[Literal["fp32", "fp16", "bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "int8", "w8a8", "w4a8", "w4a16", "w4a16-g32", "w4a16-g64", "w4a16-g128", "gptq", "awq", "nvfp4", "mxfp4", "nf4", "nf4-double", "bfp8", "bfp4", "bfp4-mlp", "mlx-q3", "mlx-q4", "mlx-q6", "mlx-q8", "exl2-2.4bpw", "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_1", "q5_k_m", "q5_0", "q5_k_s", "q4_1", "q4_k_m", "iq4_nl", "q4_k_s", "q4_0", "iq4_xs", "mxfp4_moe", "q3_k_l", "q3_k_m", "iq3_m", "iq3_s", "q3_k_s", "iq3_xs", "iq3_xxs", "q2_k", "q2_k_s", "iq2_m", "iq2_s", "iq2_xs", "tq2_0", "iq2_xxs", "tq1_0", "iq1_m", "iq1_s"]] = None,
    # KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the checkpoint's own, else
    # the activation type]
    kv: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # activation type: bf16, fp16, fp32
    activations: Optional[Literal["bf16", "fp16", "fp32"]] = None,
    # how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all alike), or a
    # JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them
    routing: Optional[Text] = None,
    # adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: all-linear]
    lora: Optional[Literal["16:qkvo", "16:all-linear"]] = None,
    # different ones of `lora` that are held, of which every request uses one [1]
    adapters: Optional[Count] = None,
    # what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of tiles
    # all,joined_vectors,prefetch_weights]
    options: Optional[Text] = None,
    # memory the runtime keeps for itself [512MiB]
    reserve_bytes: Optional[Count] = None,
    # software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of light
    runtime: Optional[Named] = None,
    # what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]
    tool: Optional[Literal["llama-bench", "llama-server", "ollama", "llama-cpp-python"]] = None,
    # eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]
    execution: Optional[Literal["eager", "graph", "static-graph", "dynamic-graph"]] = None,
    # of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady serving,
    # training) [the profile's own]
    power: Optional[Literal["short", "sustained"]] = None,
    # a device draws no more than 245W: its clock follows, its memory's does not [all of its power]
    power_limit: Optional[Text] = None,
    # arrays of tiles: default (the best mapping found), published (the published mapper's formulas) or roofline
    tile_model: Optional[Literal["default", "published", "roofline"]] = None,
    # what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device [the
    # hardware file's]
    price: Optional[Text] = None,
    # version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, 2026 [2026]
    gguf_era: Optional[Literal["2024-02", "2024", "2025", "2026"]] = None,
    # type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …
    cache_type_k: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # type of the cached values, in place of `kv`
    cache_type_v: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # GGUF: layers on the device, the head counted first, the rest on the host [all]
    gpu_layers: Optional[Literal["all"]] = None,
    # GGUF: what `devices` are for: layer (whole layers, one run of them on each) or tensor (each layer is divided by
    # heads and columns)
    split: Optional[Literal["layer", "tensor", "none"]] = None,
    # GGUF: shares of the layers on the devices of `pp`, such as 3,2 [by their memory]
    tensor_split: Optional[Text] = None,
    # GGUF: the CPU beside the device [ryzen-7950x]
    host: Optional[Text] = None,
    # GGUF: layers, from the first, whose routed experts stay on the host; the rest of them is on the device
    n_cpu_moe: Optional[Count] = None,
    # GGUF: the routed experts of all layers stay on the host
    cpu_moe: Optional[bool] = None,
    # GGUF: routed experts' matrices whose names match a regular expression stay on the host: 'ffn_up_exps=CPU'; several
    # with commas
    override_tensor: Optional[Text] = None,
    # GGUF: prompts do not take weights that are on the host to the device
    no_op_offload: Optional[bool] = None,
    # GGUF: weights on the host are in pinned memory, which reaches the device faster than a mapped file
    no_mmap: Optional[bool] = None,
    # of a CPU, as device or as host: cores that are used [all]
    cpu_threads: Optional[Count] = None,
    # of a CPU, as device or as host: NUMA nodes that are used [all]
    numa: Optional[Count] = None,
    # devices that share every matrix (tensor parallelism); 2x4: in rows x columns
    tp: Optional[Text] = None,
    # pipeline stages
    pp: Optional[Count] = None,
    # replicas of the model, each with its share of the batch
    dp: Optional[Count] = None,
    # devices that share the routed experts; a step waits for the busiest of up to 8
    ep: Optional[Count] = None,
    # experts that are held a second time, so that `ep` may divide what there then is, and devices have alike
    redundant_experts: Optional[Count] = None,
    # devices of `ep` that hold the shared expert and no others [every device holds it]
    shared_expert_ranks: Optional[Count] = None,
    # attention-FFN disaggregation: the devices of `ep` hold routed experts alone, beside those of `tp` and `dp`, which
    # hold all else; of `phase` decode
    afd: Optional[bool] = None,
    # what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]
    ep_dispatch: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # and their results back [the activations' type]
    ep_combine: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # devices that share a sequence: ulysses:4, ring:2, all-gather:2, ulysses:4xring:2
    sp: Optional[Text] = None,
    # the residual stream over the devices of `tp` too
    megatron_sp: Optional[bool] = None,
    # embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]
    embedding: Optional[Literal["sharded", "replicated"]] = None,
    # devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`
    devices: Optional[Count] = None,
    # devices of one server [the hardware file's]
    devices_per_node: Optional[Count] = None,
    # micro-batches that a batch goes through the pipeline in [as many as divide it, up to `pp`], or between attention
    # and experts (`afd`) [of 1 to 4 those that take least time]
    pipeline_batches: Optional[Count] = None,
    # 2: two micro-batches, each of half the sequences, whose exchanges between devices run beside the other's ops; 1:
    # one batch
    overlap_batches: Optional[Count] = None,
    # GGUF: tokens computed at once at most: longer prompts are cut [512]
    ubatch: Optional[Count] = None,
    # 144p to 1080p, or HEIGHTxWIDTH in pixels [720p]
    resolution: Optional[Literal["144p", "240p", "360p", "480p", "720p", "1080p"]] = None,
    # height to width of a named resolution: 9:16, 16:9, 1:1, 3:4 … [9:16]
    aspect: Optional[Literal["9:16", "16:9", "1:1", "3:4", "4:3", "9:21", "2:3", "1:2"]] = None,
    # length of the video [4]
    seconds: Optional[Number] = None,
    # length in frames; 1: an image
    frames: Optional[Count] = None,
    # denoising steps [the model's]
    steps: Optional[Count] = None,
    # classifier-free guidance, which doubles a step's batch: on, off [on]
    cfg: Optional[Union[bool, Literal["on", "off"]]] = None,
    # tokens of the prompt [as many as the model takes]
    text_tokens: Optional[Count] = None,
    # type the text encoder is held in: fp32, bf16, fp16 [the model's]
    text_weights: Optional[Literal["fp32", "bf16", "fp16"]] = None,
    # pipeline stages by their units of the depth: 0-13,14-27; each on a sub-mesh: 0-13@2x2/2d
    stages: Optional[Text] = None,
    # pieces of the latent that stages work on side by side [1]
    patches: Optional[Count] = None,
    # a ring of dies: bandwidth between neighbours, one direction [the hardware file's links]
    die_link: Optional[Text] = None,
    # one training step instead of a generation
    training: Optional[bool] = None,
    # sequences of a step, of all replicas [a micro-batch per replica and stage]
    global_batch: Optional[Count] = None,
    # sequences that a replica computes at once
    micro_batch: Optional[Count] = None,
    # tokens of a sequence; 4k is 4096
    seq: Optional[Count] = None,
    # activations computed again: none, selective (attention's scores), full or full:N of the layers, ops (every second
    # product), modules:mlp,moe_act,layernorm,mla_up_proj,core_attn, offload (inputs of layers wait on the host)
    recompute: Optional[Literal["none", "selective", "full", "ops", "modules:", "offload"]] = None,
    # what products of layers multiply: bf16, fp8, fp8-rowwise, fp8-block, mxfp8, nvfp4
    products: Optional[Literal["bf16", "fp8", "fp8-rowwise", "fp8-block", "mxfp8", "nvfp4"]] = None,
    # its state per parameter: adamw (fp32 copy and two moments), adamw-bf16 (two of 16 bits), adamw-8bit, sgd, muon
    optimizer: Optional[Literal["adamw", "adamw-bf16", "adamw-8bit", "sgd", "muon"]] = None,
    # gradients are consumed layer by layer as they come
    optimizer_in_backward: Optional[bool] = None,
    # logits: plain (whole), chunked:N (in N pieces), fused (never in memory)
    loss: Optional[Literal["plain", "chunked:8", "fused"]] = None,
    # replicas: ddp, zero1, zero2, fsdp (all divided), fsdp-grad-op (weights gathered once a micro-batch), hsdp:N (fsdp
    # over N, replicas beyond)
    dp_mode: Optional[Literal["ddp", "zero1", "zero2", "fsdp", "fsdp-grad-op", "hsdp:8"]] = None,
    # of pipeline stages: 1f1b, interleaved, zb-h1, zb-v, v-half, v-min, dualpipe
    schedule: Optional[Literal["1f1b", "interleaved", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"]] = None,
    # the largest micro-batch or seq that fits
    max: Optional[Literal["micro-batch", "seq"]] = None,
    # the host launches recorded graphs
    cuda_graphs: Optional[bool] = None,
    # divided over replicas: 1 optimiser, 2 gradients too, 3 weights too
    zero: Optional[Count] = None,
    # runs of layers on a pipeline stage
    interleave: Optional[Count] = None,
    # type of accumulated gradients: fp32, bf16, fp16 [the weights'; fp32 with `runtime`]
    gradients: Optional[Literal["fp32", "bf16", "fp16"]] = None,
    # of state per parameter [96: fp32 copy and two moments]
    optimizer_bits: Optional[Number] = None,
    # weight gradients are added up by a kernel of their own instead of the matrix product
    separate_gradients: Optional[bool] = None,
    # exchanges of tensor parallelism do not run beside products of the backward pass
    exposed_sums: Optional[bool] = None,
    # exchanges of tensor parallelism run piece by piece beside the products they belong to
    async_tp: Optional[bool] = None,
    # element-wise ops run one by one, as in PyTorch without torch.compile
    eager: Optional[bool] = None,
    # shared experts run beside tokens on their way to routed ones
    shared_expert_overlap: Optional[bool] = None,
    # share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds [serving: the
    # engine's own]
    kv_utilisation: Optional[Number] = None,
    # tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM prints
    # of its cache is of such sequences [the model's]
    max_model_len: Optional[Count] = None,
    # tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]
    block_size: Optional[Count] = None,
    # tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from 70 GiB on,
    # but for the A100; else 2048]
    max_batched_tokens: Optional[Count] = None,
    # sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]
    max_seqs: Optional[Count] = None,
) -> Estimate: ...
def explain(
    model: Optional[Named] = None, hw: Optional[Named] = None, number: Optional[str] = None, *,
    # read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know are
    # passed over and named in every output
    assume: Optional[Literal["llama", "yi", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe", "gemma", "gemma2", "phi", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "minicpm3", "chatglm", "glm4", "glm4v", "glm4v_text", "glm", "gpt_oss", "ministral3", "mistral3", "mistral4", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "minimax_m2", "minimax_m3_vl", "minimax_m3", "deepseek_v4", "kimi_linear", "longcat_flash", "qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe", "qwen3_5_text", "qwen3_5", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni", "qwen2_5_omni_text", "gemma3_text", "gemma3", "gemma4_text", "gemma4", "gemma3n_text", "gemma3n", "nemotron_h", "nemotron-nas", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "lfm2", "lfm2_moe", "llama4_text", "llama4", "mimo", "mimo_v2_flash", "step3p5", "step3p7", "cohere", "cohere2", "olmo2", "olmo3", "exaone4", "exaone4_5_text", "exaone4_5", "seed_oss", "smollm3", "olmoe", "exaone", "nemotron", "internlm2", "internlm3", "bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_moe_linear_v2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense", "phimoe", "dbrx", "minimax_text_01", "minimax_m1", "minimax", "mamba", "falcon_mamba", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "baichuan", "starcoder2", "bert", "xlm-roberta", "roberta", "camembert", "modernbert"]] = None,
    # requests processed together
    batch: Optional[Count] = None,
    # prompt tokens of a request; 128k is 131072
    prompt: Optional[Count] = None,
    # tokens to generate for a request; 2k is 2048
    gen: Optional[Count] = None,
    # tokens of a request that are cached before its prompt; 4k is 4096
    depth: Optional[Count] = None,
    # new tokens of a request in a step of its prefill at most, as engines' chunked prefill cuts prompts; 8k is 8192
    # [the whole prompt]
    prefill_chunk: Optional[Count] = None,
    # images of a request, which the model's vision tower sees before the prefill; their tokens come on top of `prompt`,
    # or of `input`
    images: Optional[Count] = None,
    # of an image in pixels, before the model scales it
    image_size: Optional[Text] = None,
    # one step of continuous batching more, shown as a phase of its own: COUNTxNEW@CONTEXT for sequences that process
    # NEW tokens after CONTEXT cached ones, as in 32x1@2048,1x512@0 for 32 that decode beside a prompt
    step: Optional[Text] = None,
    # which steps the devices run: both, or prefill or decode alone, the other on other devices: memory is what that one
    # needs
    phase: Optional[Literal["both", "prefill", "decode"]] = None,
    # tokens of every sequence that a decode step processes: one, and guesses that it verifies (speculative decoding) of
    # what is not said; `draft` says it
    verify: Optional[Count] = None,
    # with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for the
    # first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with `verify` the
    # tokens that a step keeps on the mean
    accept: Optional[Text] = None,
    # speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own layer
    # for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]
    draft: Optional[Text] = None,
    # tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]
    top_k: Optional[Count] = None,
    # … or from those that together have this probability
    top_p: Optional[Number] = None,
    # bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …), mlx-q4
    # (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]
    weights: Optional[Literal["fp32", "fp16", "bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "int8", "w8a8", "w4a8", "w4a16", "w4a16-g32", "w4a16-g64", "w4a16-g128", "gptq", "awq", "nvfp4", "mxfp4", "nf4", "nf4-double", "bfp8", "bfp4", "bfp4-mlp", "mlx-q3", "mlx-q4", "mlx-q6", "mlx-q8", "exl2-2.4bpw", "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_1", "q5_k_m", "q5_0", "q5_k_s", "q4_1", "q4_k_m", "iq4_nl", "q4_k_s", "q4_0", "iq4_xs", "mxfp4_moe", "q3_k_l", "q3_k_m", "iq3_m", "iq3_s", "q3_k_s", "iq3_xs", "iq3_xxs", "q2_k", "q2_k_s", "iq2_m", "iq2_s", "iq2_xs", "tq2_0", "iq2_xxs", "tq1_0", "iq1_m", "iq1_s"]] = None,
    # KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the checkpoint's own, else
    # the activation type]
    kv: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # activation type: bf16, fp16, fp32
    activations: Optional[Literal["bf16", "fp16", "fp32"]] = None,
    # how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all alike), or a
    # JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them
    routing: Optional[Text] = None,
    # adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: all-linear]
    lora: Optional[Literal["16:qkvo", "16:all-linear"]] = None,
    # different ones of `lora` that are held, of which every request uses one [1]
    adapters: Optional[Count] = None,
    # what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of tiles
    # all,joined_vectors,prefetch_weights]
    options: Optional[Text] = None,
    # memory the runtime keeps for itself [512MiB]
    reserve_bytes: Optional[Count] = None,
    # software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of light
    runtime: Optional[Named] = None,
    # what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]
    tool: Optional[Literal["llama-bench", "llama-server", "ollama", "llama-cpp-python"]] = None,
    # eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]
    execution: Optional[Literal["eager", "graph", "static-graph", "dynamic-graph"]] = None,
    # of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady serving,
    # training) [the profile's own]
    power: Optional[Literal["short", "sustained"]] = None,
    # a device draws no more than 245W: its clock follows, its memory's does not [all of its power]
    power_limit: Optional[Text] = None,
    # arrays of tiles: default (the best mapping found), published (the published mapper's formulas) or roofline
    tile_model: Optional[Literal["default", "published", "roofline"]] = None,
    # what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device [the
    # hardware file's]
    price: Optional[Text] = None,
    # version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, 2026 [2026]
    gguf_era: Optional[Literal["2024-02", "2024", "2025", "2026"]] = None,
    # type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …
    cache_type_k: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # type of the cached values, in place of `kv`
    cache_type_v: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # GGUF: layers on the device, the head counted first, the rest on the host [all]
    gpu_layers: Optional[Literal["all"]] = None,
    # GGUF: what `devices` are for: layer (whole layers, one run of them on each) or tensor (each layer is divided by
    # heads and columns)
    split: Optional[Literal["layer", "tensor", "none"]] = None,
    # GGUF: shares of the layers on the devices of `pp`, such as 3,2 [by their memory]
    tensor_split: Optional[Text] = None,
    # GGUF: the CPU beside the device [ryzen-7950x]
    host: Optional[Text] = None,
    # GGUF: layers, from the first, whose routed experts stay on the host; the rest of them is on the device
    n_cpu_moe: Optional[Count] = None,
    # GGUF: the routed experts of all layers stay on the host
    cpu_moe: Optional[bool] = None,
    # GGUF: routed experts' matrices whose names match a regular expression stay on the host: 'ffn_up_exps=CPU'; several
    # with commas
    override_tensor: Optional[Text] = None,
    # GGUF: prompts do not take weights that are on the host to the device
    no_op_offload: Optional[bool] = None,
    # GGUF: weights on the host are in pinned memory, which reaches the device faster than a mapped file
    no_mmap: Optional[bool] = None,
    # of a CPU, as device or as host: cores that are used [all]
    cpu_threads: Optional[Count] = None,
    # of a CPU, as device or as host: NUMA nodes that are used [all]
    numa: Optional[Count] = None,
    # devices that share every matrix (tensor parallelism); 2x4: in rows x columns
    tp: Optional[Text] = None,
    # pipeline stages
    pp: Optional[Count] = None,
    # replicas of the model, each with its share of the batch
    dp: Optional[Count] = None,
    # devices that share the routed experts; a step waits for the busiest of up to 8
    ep: Optional[Count] = None,
    # experts that are held a second time, so that `ep` may divide what there then is, and devices have alike
    redundant_experts: Optional[Count] = None,
    # devices of `ep` that hold the shared expert and no others [every device holds it]
    shared_expert_ranks: Optional[Count] = None,
    # attention-FFN disaggregation: the devices of `ep` hold routed experts alone, beside those of `tp` and `dp`, which
    # hold all else; of `phase` decode
    afd: Optional[bool] = None,
    # what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]
    ep_dispatch: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # and their results back [the activations' type]
    ep_combine: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # devices that share a sequence: ulysses:4, ring:2, all-gather:2, ulysses:4xring:2
    sp: Optional[Text] = None,
    # the residual stream over the devices of `tp` too
    megatron_sp: Optional[bool] = None,
    # embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]
    embedding: Optional[Literal["sharded", "replicated"]] = None,
    # devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`
    devices: Optional[Count] = None,
    # devices of one server [the hardware file's]
    devices_per_node: Optional[Count] = None,
    # micro-batches that a batch goes through the pipeline in [as many as divide it, up to `pp`], or between attention
    # and experts (`afd`) [of 1 to 4 those that take least time]
    pipeline_batches: Optional[Count] = None,
    # 2: two micro-batches, each of half the sequences, whose exchanges between devices run beside the other's ops; 1:
    # one batch
    overlap_batches: Optional[Count] = None,
    # GGUF: tokens computed at once at most: longer prompts are cut [512]
    ubatch: Optional[Count] = None,
    # 144p to 1080p, or HEIGHTxWIDTH in pixels [720p]
    resolution: Optional[Literal["144p", "240p", "360p", "480p", "720p", "1080p"]] = None,
    # height to width of a named resolution: 9:16, 16:9, 1:1, 3:4 … [9:16]
    aspect: Optional[Literal["9:16", "16:9", "1:1", "3:4", "4:3", "9:21", "2:3", "1:2"]] = None,
    # length of the video [4]
    seconds: Optional[Number] = None,
    # length in frames; 1: an image
    frames: Optional[Count] = None,
    # denoising steps [the model's]
    steps: Optional[Count] = None,
    # classifier-free guidance, which doubles a step's batch: on, off [on]
    cfg: Optional[Union[bool, Literal["on", "off"]]] = None,
    # tokens of the prompt [as many as the model takes]
    text_tokens: Optional[Count] = None,
    # type the text encoder is held in: fp32, bf16, fp16 [the model's]
    text_weights: Optional[Literal["fp32", "bf16", "fp16"]] = None,
    # pipeline stages by their units of the depth: 0-13,14-27; each on a sub-mesh: 0-13@2x2/2d
    stages: Optional[Text] = None,
    # pieces of the latent that stages work on side by side [1]
    patches: Optional[Count] = None,
    # a ring of dies: bandwidth between neighbours, one direction [the hardware file's links]
    die_link: Optional[Text] = None,
    # one training step instead of a generation
    training: Optional[bool] = None,
    # sequences of a step, of all replicas [a micro-batch per replica and stage]
    global_batch: Optional[Count] = None,
    # sequences that a replica computes at once
    micro_batch: Optional[Count] = None,
    # tokens of a sequence; 4k is 4096
    seq: Optional[Count] = None,
    # activations computed again: none, selective (attention's scores), full or full:N of the layers, ops (every second
    # product), modules:mlp,moe_act,layernorm,mla_up_proj,core_attn, offload (inputs of layers wait on the host)
    recompute: Optional[Literal["none", "selective", "full", "ops", "modules:", "offload"]] = None,
    # what products of layers multiply: bf16, fp8, fp8-rowwise, fp8-block, mxfp8, nvfp4
    products: Optional[Literal["bf16", "fp8", "fp8-rowwise", "fp8-block", "mxfp8", "nvfp4"]] = None,
    # its state per parameter: adamw (fp32 copy and two moments), adamw-bf16 (two of 16 bits), adamw-8bit, sgd, muon
    optimizer: Optional[Literal["adamw", "adamw-bf16", "adamw-8bit", "sgd", "muon"]] = None,
    # gradients are consumed layer by layer as they come
    optimizer_in_backward: Optional[bool] = None,
    # logits: plain (whole), chunked:N (in N pieces), fused (never in memory)
    loss: Optional[Literal["plain", "chunked:8", "fused"]] = None,
    # replicas: ddp, zero1, zero2, fsdp (all divided), fsdp-grad-op (weights gathered once a micro-batch), hsdp:N (fsdp
    # over N, replicas beyond)
    dp_mode: Optional[Literal["ddp", "zero1", "zero2", "fsdp", "fsdp-grad-op", "hsdp:8"]] = None,
    # of pipeline stages: 1f1b, interleaved, zb-h1, zb-v, v-half, v-min, dualpipe
    schedule: Optional[Literal["1f1b", "interleaved", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"]] = None,
    # the largest micro-batch or seq that fits
    max: Optional[Literal["micro-batch", "seq"]] = None,
    # the host launches recorded graphs
    cuda_graphs: Optional[bool] = None,
    # divided over replicas: 1 optimiser, 2 gradients too, 3 weights too
    zero: Optional[Count] = None,
    # runs of layers on a pipeline stage
    interleave: Optional[Count] = None,
    # type of accumulated gradients: fp32, bf16, fp16 [the weights'; fp32 with `runtime`]
    gradients: Optional[Literal["fp32", "bf16", "fp16"]] = None,
    # of state per parameter [96: fp32 copy and two moments]
    optimizer_bits: Optional[Number] = None,
    # weight gradients are added up by a kernel of their own instead of the matrix product
    separate_gradients: Optional[bool] = None,
    # exchanges of tensor parallelism do not run beside products of the backward pass
    exposed_sums: Optional[bool] = None,
    # exchanges of tensor parallelism run piece by piece beside the products they belong to
    async_tp: Optional[bool] = None,
    # element-wise ops run one by one, as in PyTorch without torch.compile
    eager: Optional[bool] = None,
    # shared experts run beside tokens on their way to routed ones
    shared_expert_overlap: Optional[bool] = None,
    # share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds [serving: the
    # engine's own]
    kv_utilisation: Optional[Number] = None,
    # tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM prints
    # of its cache is of such sequences [the model's]
    max_model_len: Optional[Count] = None,
    # tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]
    block_size: Optional[Count] = None,
    # tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from 70 GiB on,
    # but for the A100; else 2048]
    max_batched_tokens: Optional[Count] = None,
    # sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]
    max_seqs: Optional[Count] = None,
) -> Result: ...
def sweep(
    model: Optional[Many[Named]] = None, hw: Optional[Many[Named]] = None, *,
    where: Optional[str] = None,
    top: Optional[int] = None,
    by: Optional[str] = None,
    pareto: Union[str, Sequence[str], None] = None,
    columns: Union[str, Sequence[str], None] = None,
    threads: Optional[int] = None,
    executor: Optional[Executor] = None,
    # read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know are
    # passed over and named in every output
    assume: Optional[Many[Literal["llama", "yi", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe", "gemma", "gemma2", "phi", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "minicpm3", "chatglm", "glm4", "glm4v", "glm4v_text", "glm", "gpt_oss", "ministral3", "mistral3", "mistral4", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "minimax_m2", "minimax_m3_vl", "minimax_m3", "deepseek_v4", "kimi_linear", "longcat_flash", "qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe", "qwen3_5_text", "qwen3_5", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni", "qwen2_5_omni_text", "gemma3_text", "gemma3", "gemma4_text", "gemma4", "gemma3n_text", "gemma3n", "nemotron_h", "nemotron-nas", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "lfm2", "lfm2_moe", "llama4_text", "llama4", "mimo", "mimo_v2_flash", "step3p5", "step3p7", "cohere", "cohere2", "olmo2", "olmo3", "exaone4", "exaone4_5_text", "exaone4_5", "seed_oss", "smollm3", "olmoe", "exaone", "nemotron", "internlm2", "internlm3", "bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_moe_linear_v2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense", "phimoe", "dbrx", "minimax_text_01", "minimax_m1", "minimax", "mamba", "falcon_mamba", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "baichuan", "starcoder2", "bert", "xlm-roberta", "roberta", "camembert", "modernbert"]]] = None,
    # requests processed together
    batch: Optional[Many[Count]] = None,
    # prompt tokens of a request; 128k is 131072
    prompt: Optional[Many[Count]] = None,
    # tokens to generate for a request; 2k is 2048
    gen: Optional[Many[Count]] = None,
    # tokens of a request that are cached before its prompt; 4k is 4096
    depth: Optional[Many[Count]] = None,
    # new tokens of a request in a step of its prefill at most, as engines' chunked prefill cuts prompts; 8k is 8192
    # [the whole prompt]
    prefill_chunk: Optional[Many[Count]] = None,
    # images of a request, which the model's vision tower sees before the prefill; their tokens come on top of `prompt`,
    # or of `input`
    images: Optional[Many[Count]] = None,
    # of an image in pixels, before the model scales it
    image_size: Optional[Many[Text]] = None,
    # one step of continuous batching more, shown as a phase of its own: COUNTxNEW@CONTEXT for sequences that process
    # NEW tokens after CONTEXT cached ones, as in 32x1@2048,1x512@0 for 32 that decode beside a prompt
    step: Optional[Many[Text]] = None,
    # which steps the devices run: both, or prefill or decode alone, the other on other devices: memory is what that one
    # needs
    phase: Optional[Many[Literal["both", "prefill", "decode"]]] = None,
    # tokens of every sequence that a decode step processes: one, and guesses that it verifies (speculative decoding) of
    # what is not said; `draft` says it
    verify: Optional[Many[Count]] = None,
    # with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for the
    # first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with `verify` the
    # tokens that a step keeps on the mean
    accept: Optional[Many[Text]] = None,
    # speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own layer
    # for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]
    draft: Optional[Many[Text]] = None,
    # tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]
    top_k: Optional[Many[Count]] = None,
    # … or from those that together have this probability
    top_p: Optional[Many[Number]] = None,
    # bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …), mlx-q4
    # (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]
    weights: Optional[Many[Literal["fp32", "fp16", "bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "int8", "w8a8", "w4a8", "w4a16", "w4a16-g32", "w4a16-g64", "w4a16-g128", "gptq", "awq", "nvfp4", "mxfp4", "nf4", "nf4-double", "bfp8", "bfp4", "bfp4-mlp", "mlx-q3", "mlx-q4", "mlx-q6", "mlx-q8", "exl2-2.4bpw", "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_1", "q5_k_m", "q5_0", "q5_k_s", "q4_1", "q4_k_m", "iq4_nl", "q4_k_s", "q4_0", "iq4_xs", "mxfp4_moe", "q3_k_l", "q3_k_m", "iq3_m", "iq3_s", "q3_k_s", "iq3_xs", "iq3_xxs", "q2_k", "q2_k_s", "iq2_m", "iq2_s", "iq2_xs", "tq2_0", "iq2_xxs", "tq1_0", "iq1_m", "iq1_s"]]] = None,
    # KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the checkpoint's own, else
    # the activation type]
    kv: Optional[Many[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]]] = None,
    # activation type: bf16, fp16, fp32
    activations: Optional[Many[Literal["bf16", "fp16", "fp32"]]] = None,
    # how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all alike), or a
    # JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them
    routing: Optional[Many[Text]] = None,
    # adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: all-linear]
    lora: Optional[Many[Literal["16:qkvo", "16:all-linear"]]] = None,
    # different ones of `lora` that are held, of which every request uses one [1]
    adapters: Optional[Many[Count]] = None,
    # what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of tiles
    # all,joined_vectors,prefetch_weights]
    options: Optional[Many[Text]] = None,
    # memory the runtime keeps for itself [512MiB]
    reserve_bytes: Optional[Many[Count]] = None,
    # software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of light
    runtime: Optional[Many[Named]] = None,
    # what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]
    tool: Optional[Many[Literal["llama-bench", "llama-server", "ollama", "llama-cpp-python"]]] = None,
    # eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]
    execution: Optional[Many[Literal["eager", "graph", "static-graph", "dynamic-graph"]]] = None,
    # of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady serving,
    # training) [the profile's own]
    power: Optional[Many[Literal["short", "sustained"]]] = None,
    # a device draws no more than 245W: its clock follows, its memory's does not [all of its power]
    power_limit: Optional[Many[Text]] = None,
    # arrays of tiles: default (the best mapping found), published (the published mapper's formulas) or roofline
    tile_model: Optional[Many[Literal["default", "published", "roofline"]]] = None,
    # what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device [the
    # hardware file's]
    price: Optional[Many[Text]] = None,
    # version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, 2026 [2026]
    gguf_era: Optional[Many[Literal["2024-02", "2024", "2025", "2026"]]] = None,
    # type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …
    cache_type_k: Optional[Many[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]]] = None,
    # type of the cached values, in place of `kv`
    cache_type_v: Optional[Many[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]]] = None,
    # GGUF: layers on the device, the head counted first, the rest on the host [all]
    gpu_layers: Optional[Many[Literal["all"]]] = None,
    # GGUF: what `devices` are for: layer (whole layers, one run of them on each) or tensor (each layer is divided by
    # heads and columns)
    split: Optional[Many[Literal["layer", "tensor", "none"]]] = None,
    # GGUF: shares of the layers on the devices of `pp`, such as 3,2 [by their memory]
    tensor_split: Optional[Many[Text]] = None,
    # GGUF: the CPU beside the device [ryzen-7950x]
    host: Optional[Many[Text]] = None,
    # GGUF: layers, from the first, whose routed experts stay on the host; the rest of them is on the device
    n_cpu_moe: Optional[Many[Count]] = None,
    # GGUF: the routed experts of all layers stay on the host
    cpu_moe: Optional[Many[bool]] = None,
    # GGUF: routed experts' matrices whose names match a regular expression stay on the host: 'ffn_up_exps=CPU'; several
    # with commas
    override_tensor: Optional[Many[Text]] = None,
    # GGUF: prompts do not take weights that are on the host to the device
    no_op_offload: Optional[Many[bool]] = None,
    # GGUF: weights on the host are in pinned memory, which reaches the device faster than a mapped file
    no_mmap: Optional[Many[bool]] = None,
    # of a CPU, as device or as host: cores that are used [all]
    cpu_threads: Optional[Many[Count]] = None,
    # of a CPU, as device or as host: NUMA nodes that are used [all]
    numa: Optional[Many[Count]] = None,
    # devices that share every matrix (tensor parallelism); 2x4: in rows x columns
    tp: Optional[Many[Text]] = None,
    # pipeline stages
    pp: Optional[Many[Count]] = None,
    # replicas of the model, each with its share of the batch
    dp: Optional[Many[Count]] = None,
    # devices that share the routed experts; a step waits for the busiest of up to 8
    ep: Optional[Many[Count]] = None,
    # experts that are held a second time, so that `ep` may divide what there then is, and devices have alike
    redundant_experts: Optional[Many[Count]] = None,
    # devices of `ep` that hold the shared expert and no others [every device holds it]
    shared_expert_ranks: Optional[Many[Count]] = None,
    # attention-FFN disaggregation: the devices of `ep` hold routed experts alone, beside those of `tp` and `dp`, which
    # hold all else; of `phase` decode
    afd: Optional[Many[bool]] = None,
    # what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]
    ep_dispatch: Optional[Many[Literal["bf16", "fp16", "fp8", "int8"]]] = None,
    # and their results back [the activations' type]
    ep_combine: Optional[Many[Literal["bf16", "fp16", "fp8", "int8"]]] = None,
    # devices that share a sequence: ulysses:4, ring:2, all-gather:2, ulysses:4xring:2
    sp: Optional[Many[Text]] = None,
    # the residual stream over the devices of `tp` too
    megatron_sp: Optional[Many[bool]] = None,
    # embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]
    embedding: Optional[Many[Literal["sharded", "replicated"]]] = None,
    # devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`
    devices: Optional[Many[Count]] = None,
    # devices of one server [the hardware file's]
    devices_per_node: Optional[Many[Count]] = None,
    # micro-batches that a batch goes through the pipeline in [as many as divide it, up to `pp`], or between attention
    # and experts (`afd`) [of 1 to 4 those that take least time]
    pipeline_batches: Optional[Many[Count]] = None,
    # 2: two micro-batches, each of half the sequences, whose exchanges between devices run beside the other's ops; 1:
    # one batch
    overlap_batches: Optional[Many[Count]] = None,
    # GGUF: tokens computed at once at most: longer prompts are cut [512]
    ubatch: Optional[Many[Count]] = None,
    # 144p to 1080p, or HEIGHTxWIDTH in pixels [720p]
    resolution: Optional[Many[Literal["144p", "240p", "360p", "480p", "720p", "1080p"]]] = None,
    # height to width of a named resolution: 9:16, 16:9, 1:1, 3:4 … [9:16]
    aspect: Optional[Many[Literal["9:16", "16:9", "1:1", "3:4", "4:3", "9:21", "2:3", "1:2"]]] = None,
    # length of the video [4]
    seconds: Optional[Many[Number]] = None,
    # length in frames; 1: an image
    frames: Optional[Many[Count]] = None,
    # denoising steps [the model's]
    steps: Optional[Many[Count]] = None,
    # classifier-free guidance, which doubles a step's batch: on, off [on]
    cfg: Optional[Many[Union[bool, Literal["on", "off"]]]] = None,
    # tokens of the prompt [as many as the model takes]
    text_tokens: Optional[Many[Count]] = None,
    # type the text encoder is held in: fp32, bf16, fp16 [the model's]
    text_weights: Optional[Many[Literal["fp32", "bf16", "fp16"]]] = None,
    # pipeline stages by their units of the depth: 0-13,14-27; each on a sub-mesh: 0-13@2x2/2d
    stages: Optional[Many[Text]] = None,
    # pieces of the latent that stages work on side by side [1]
    patches: Optional[Many[Count]] = None,
    # a ring of dies: bandwidth between neighbours, one direction [the hardware file's links]
    die_link: Optional[Many[Text]] = None,
    # one training step instead of a generation
    training: Optional[Many[bool]] = None,
    # sequences of a step, of all replicas [a micro-batch per replica and stage]
    global_batch: Optional[Many[Count]] = None,
    # sequences that a replica computes at once
    micro_batch: Optional[Many[Count]] = None,
    # tokens of a sequence; 4k is 4096
    seq: Optional[Many[Count]] = None,
    # activations computed again: none, selective (attention's scores), full or full:N of the layers, ops (every second
    # product), modules:mlp,moe_act,layernorm,mla_up_proj,core_attn, offload (inputs of layers wait on the host)
    recompute: Optional[Many[Literal["none", "selective", "full", "ops", "modules:", "offload"]]] = None,
    # what products of layers multiply: bf16, fp8, fp8-rowwise, fp8-block, mxfp8, nvfp4
    products: Optional[Many[Literal["bf16", "fp8", "fp8-rowwise", "fp8-block", "mxfp8", "nvfp4"]]] = None,
    # its state per parameter: adamw (fp32 copy and two moments), adamw-bf16 (two of 16 bits), adamw-8bit, sgd, muon
    optimizer: Optional[Many[Literal["adamw", "adamw-bf16", "adamw-8bit", "sgd", "muon"]]] = None,
    # gradients are consumed layer by layer as they come
    optimizer_in_backward: Optional[Many[bool]] = None,
    # logits: plain (whole), chunked:N (in N pieces), fused (never in memory)
    loss: Optional[Many[Literal["plain", "chunked:8", "fused"]]] = None,
    # replicas: ddp, zero1, zero2, fsdp (all divided), fsdp-grad-op (weights gathered once a micro-batch), hsdp:N (fsdp
    # over N, replicas beyond)
    dp_mode: Optional[Many[Literal["ddp", "zero1", "zero2", "fsdp", "fsdp-grad-op", "hsdp:8"]]] = None,
    # of pipeline stages: 1f1b, interleaved, zb-h1, zb-v, v-half, v-min, dualpipe
    schedule: Optional[Many[Literal["1f1b", "interleaved", "zb-h1", "zb-v", "v-half", "v-min", "dualpipe"]]] = None,
    # the largest micro-batch or seq that fits
    max: Optional[Many[Literal["micro-batch", "seq"]]] = None,
    # the host launches recorded graphs
    cuda_graphs: Optional[Many[bool]] = None,
    # divided over replicas: 1 optimiser, 2 gradients too, 3 weights too
    zero: Optional[Many[Count]] = None,
    # runs of layers on a pipeline stage
    interleave: Optional[Many[Count]] = None,
    # type of accumulated gradients: fp32, bf16, fp16 [the weights'; fp32 with `runtime`]
    gradients: Optional[Many[Literal["fp32", "bf16", "fp16"]]] = None,
    # of state per parameter [96: fp32 copy and two moments]
    optimizer_bits: Optional[Many[Number]] = None,
    # weight gradients are added up by a kernel of their own instead of the matrix product
    separate_gradients: Optional[Many[bool]] = None,
    # exchanges of tensor parallelism do not run beside products of the backward pass
    exposed_sums: Optional[Many[bool]] = None,
    # exchanges of tensor parallelism run piece by piece beside the products they belong to
    async_tp: Optional[Many[bool]] = None,
    # element-wise ops run one by one, as in PyTorch without torch.compile
    eager: Optional[Many[bool]] = None,
    # shared experts run beside tokens on their way to routed ones
    shared_expert_overlap: Optional[Many[bool]] = None,
    # share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds [serving: the
    # engine's own]
    kv_utilisation: Optional[Many[Number]] = None,
    # tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM prints
    # of its cache is of such sequences [the model's]
    max_model_len: Optional[Many[Count]] = None,
    # tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]
    block_size: Optional[Many[Count]] = None,
    # tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from 70 GiB on,
    # but for the A100; else 2048]
    max_batched_tokens: Optional[Many[Count]] = None,
    # sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]
    max_seqs: Optional[Many[Count]] = None,
) -> Sweep: ...
def serve(
    model: Optional[Named] = None, hw: Optional[Named] = None, *,
    # read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know are
    # passed over and named in every output
    assume: Optional[Literal["llama", "yi", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe", "gemma", "gemma2", "phi", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "minicpm3", "chatglm", "glm4", "glm4v", "glm4v_text", "glm", "gpt_oss", "ministral3", "mistral3", "mistral4", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "minimax_m2", "minimax_m3_vl", "minimax_m3", "deepseek_v4", "kimi_linear", "longcat_flash", "qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe", "qwen3_5_text", "qwen3_5", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni", "qwen2_5_omni_text", "gemma3_text", "gemma3", "gemma4_text", "gemma4", "gemma3n_text", "gemma3n", "nemotron_h", "nemotron-nas", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "lfm2", "lfm2_moe", "llama4_text", "llama4", "mimo", "mimo_v2_flash", "step3p5", "step3p7", "cohere", "cohere2", "olmo2", "olmo3", "exaone4", "exaone4_5_text", "exaone4_5", "seed_oss", "smollm3", "olmoe", "exaone", "nemotron", "internlm2", "internlm3", "bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_moe_linear_v2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense", "phimoe", "dbrx", "minimax_text_01", "minimax_m1", "minimax", "mamba", "falcon_mamba", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "baichuan", "starcoder2", "bert", "xlm-roberta", "roberta", "camembert", "modernbert"]] = None,
    # images of a request, which the model's vision tower sees before the prefill; their tokens come on top of `prompt`,
    # or of `input`
    images: Optional[Count] = None,
    # of an image in pixels, before the model scales it
    image_size: Optional[Text] = None,
    # with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for the
    # first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with `verify` the
    # tokens that a step keeps on the mean
    accept: Optional[Text] = None,
    # speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own layer
    # for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]
    draft: Optional[Text] = None,
    # tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]
    top_k: Optional[Count] = None,
    # … or from those that together have this probability
    top_p: Optional[Number] = None,
    # bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …), mlx-q4
    # (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]
    weights: Optional[Literal["fp32", "fp16", "bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "int8", "w8a8", "w4a8", "w4a16", "w4a16-g32", "w4a16-g64", "w4a16-g128", "gptq", "awq", "nvfp4", "mxfp4", "nf4", "nf4-double", "bfp8", "bfp4", "bfp4-mlp", "mlx-q3", "mlx-q4", "mlx-q6", "mlx-q8", "exl2-2.4bpw", "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_1", "q5_k_m", "q5_0", "q5_k_s", "q4_1", "q4_k_m", "iq4_nl", "q4_k_s", "q4_0", "iq4_xs", "mxfp4_moe", "q3_k_l", "q3_k_m", "iq3_m", "iq3_s", "q3_k_s", "iq3_xs", "iq3_xxs", "q2_k", "q2_k_s", "iq2_m", "iq2_s", "iq2_xs", "tq2_0", "iq2_xxs", "tq1_0", "iq1_m", "iq1_s"]] = None,
    # KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the checkpoint's own, else
    # the activation type]
    kv: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # activation type: bf16, fp16, fp32
    activations: Optional[Literal["bf16", "fp16", "fp32"]] = None,
    # how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all alike), or a
    # JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them
    routing: Optional[Text] = None,
    # adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: all-linear]
    lora: Optional[Literal["16:qkvo", "16:all-linear"]] = None,
    # different ones of `lora` that are held, of which every request uses one [1]
    adapters: Optional[Count] = None,
    # what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of tiles
    # all,joined_vectors,prefetch_weights]
    options: Optional[Text] = None,
    # software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of light
    runtime: Optional[Named] = None,
    # what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]
    tool: Optional[Literal["llama-bench", "llama-server", "ollama", "llama-cpp-python"]] = None,
    # eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]
    execution: Optional[Literal["eager", "graph", "static-graph", "dynamic-graph"]] = None,
    # of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady serving,
    # training) [the profile's own]
    power: Optional[Literal["short", "sustained"]] = None,
    # a device draws no more than 245W: its clock follows, its memory's does not [all of its power]
    power_limit: Optional[Text] = None,
    # what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device [the
    # hardware file's]
    price: Optional[Text] = None,
    # version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, 2026 [2026]
    gguf_era: Optional[Literal["2024-02", "2024", "2025", "2026"]] = None,
    # type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …
    cache_type_k: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # type of the cached values, in place of `kv`
    cache_type_v: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # devices that share every matrix (tensor parallelism); 2x4: in rows x columns
    tp: Optional[Text] = None,
    # pipeline stages
    pp: Optional[Count] = None,
    # replicas of the model, each with its share of the batch
    dp: Optional[Count] = None,
    # devices that share the routed experts; a step waits for the busiest of up to 8
    ep: Optional[Count] = None,
    # experts that are held a second time, so that `ep` may divide what there then is, and devices have alike
    redundant_experts: Optional[Count] = None,
    # devices of `ep` that hold the shared expert and no others [every device holds it]
    shared_expert_ranks: Optional[Count] = None,
    # what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]
    ep_dispatch: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # and their results back [the activations' type]
    ep_combine: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]
    embedding: Optional[Literal["sharded", "replicated"]] = None,
    # devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`
    devices: Optional[Count] = None,
    # devices of one server [the hardware file's]
    devices_per_node: Optional[Count] = None,
    # GGUF: tokens computed at once at most: longer prompts are cut [512]
    ubatch: Optional[Count] = None,
    # requests per second, at random intervals; a trace's own times are scaled to it
    rate: Optional[Number] = None,
    # of the gamma distribution of the intervals: 1 is a Poisson process, less comes in bursts, inf at equal intervals
    burstiness: Optional[Literal["0.5", "1", "inf"]] = None,
    # requests under way at most: one that ends lets the next one in; beside `rate` those that come meanwhile are sent
    # later
    concurrency: Optional[Count] = None,
    # that are sent [1000; of a trace all, else the first of them]
    requests: Optional[Count] = None,
    # requests from a file: CSV or JSON lines with lengths, times (arrival_s, timestamp), hash_ids or sessions
    trace: Optional[Text] = None,
    # prompt tokens of a request: 1024 or 1k, 800-1k (even), lognormal:1k:0.8 (mean, spread of the logarithm)
    input: Optional[Text] = None,
    # tokens to generate for a request, likewise
    output: Optional[Text] = None,
    # of a closed loop whose `input` or `output` is one number: spread (evenly within 3 % of it, so that requests do not
    # end and begin together) or exact
    lengths: Optional[Literal["spread", "exact"]] = None,
    # what prompts begin with that others do as well: a share of the mean prompt (0.5) or tokens (512); 512:8 of eight
    # different ones
    prefix: Optional[Text] = None,
    # requests of several kinds, with their shares, lengths, prefixes and priorities (the lowest first): 'chat:3
    # input=500 output=200; batch:1 input=8k priority=1'; `slo` may name one: chat:ttft.p99=1s
    classes: Optional[Text] = None,
    # requests of a session, each of which begins with all that was said before, and waits for its answer
    turns: Optional[Count] = None,
    # from an answer to the next turn of its session on the mean, spread as intervals are; sessions then start at the
    # `rate` over their turns [until all sessions have had the turn before]
    think: Optional[Text] = None,
    # of all that is random
    seed: Optional[Count] = None,
    # runs with as many seeds, from `seed` on: the band says how far they differ
    seeds: Optional[Count] = None,
    # what is promised: ttft.p99=1s,tpot.p95=50ms; of ttft, tpot, itl, e2e the mean, p50, p90, p95 or p99; a bound that
    # is missed exits with 4
    slo: Optional[Union[str, Mapping[str, str]]] = None,
    # whose rules requests are scheduled by: vllm, sglang, trtllm or llama.cpp, of a version vllm@0.15.1 [the runtime's]
    engine: Optional[Literal["vllm", "sglang", "trtllm", "llama.cpp"]] = None,
    # share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds [serving: the
    # engine's own]
    kv_utilisation: Optional[Number] = None,
    # tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM prints
    # of its cache is of such sequences [the model's]
    max_model_len: Optional[Count] = None,
    # tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]
    block_size: Optional[Count] = None,
    # tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from 70 GiB on,
    # but for the A100; else 2048]
    max_batched_tokens: Optional[Count] = None,
    # sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]
    max_seqs: Optional[Count] = None,
    # blocks of that cache, whatever the memory has room for
    kv_blocks: Optional[Count] = None,
    # requests that wait at a replica at most: one that finds as many is rejected [any number]
    max_queue: Optional[Count] = None,
    # what is cached of a prompt's beginning is taken for later ones: on, off [on]
    prefix_caching: Optional[Union[bool, Literal["on", "off"]]] = None,
    # prompts that are longer than what is left of a step are cut: on, off [the engine's]
    chunked_prefill: Optional[Union[bool, Literal["on", "off"]]] = None,
    # TensorRT-LLM: a request is let in when all that it may ever need is free (guaranteed-no-evict), or when its prompt
    # is (max-utilisation)
    admission: Optional[Literal["guaranteed-no-evict", "max-utilisation"]] = None,
    # SGLang: steps of decode for one look for new requests
    scheduler_recv_interval: Optional[Count] = None,
    # engines, each on the devices of the plan, to which requests are dealt
    replicas: Optional[Count] = None,
    # how they are: round-robin, least-loaded (fewest requests), prefix-aware (fewest blocks to compute and in use)
    router: Optional[Literal["round-robin", "least-loaded", "prefix-aware"]] = None,
    # engines that compute prompts alone, and send their keys and values on
    prefill_replicas: Optional[Count] = None,
    # … to as many that decode
    decode_replicas: Optional[Count] = None,
    # … by a plan of their own: 'tp 8', 'dp 8 ep 8'
    decode_plan: Optional[Text] = None,
    # … on devices of their own
    decode_hw: Optional[Text] = None,
    # where keys and values stay that the cache lets go of: host:200GB of a replica, nvme:2TB:6GB/s, pool:10TB of all of
    # them, at the rate of the device's links unless one is said
    kv_tier: Optional[Text] = None,
    # … over a link of so much per device and direction, 50GB/s [the network of the hardware file, else its
    # interconnect]
    kv_link: Optional[Text] = None,
    # … after the prompt is computed, or per-layer, while it is
    kv_transfer: Optional[Literal["after", "per-layer"]] = None,
) -> Result: ...
def capacity(
    model: Optional[Named] = None, hw: Optional[Many[Named]] = None, *,
    fleet: Optional[str] = None,
    day: Optional[Text] = None,
    scale_time: Optional[str] = None,
    api_price: Optional[Text] = None,
    pd: bool = False,
    minimise: Literal["cost", "devices", "energy", None] = None,
    threads: Optional[int] = None,
    must_fit: bool = True,
    # read a Hugging Face config as this family, whatever its model_type says; keys that the family does not know are
    # passed over and named in every output
    assume: Optional[Literal["llama", "yi", "mistral", "mixtral", "qwen", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl", "qwen3_vl_moe_text", "qwen3_vl_moe", "qwen3_omni_moe_text", "qwen3_omni_moe", "gemma", "gemma2", "phi", "phi3", "deepseek_v2", "deepseek_v3", "kimi_k2", "minicpm3", "chatglm", "glm4", "glm4v", "glm4v_text", "glm", "gpt_oss", "ministral3", "mistral3", "mistral4", "deepseek_v32", "glm_moe_dsa", "glm4_moe_lite", "glm4_moe", "glm4v_moe", "glm4v_moe_text", "minimax_m2", "minimax_m3_vl", "minimax_m3", "deepseek_v4", "kimi_linear", "longcat_flash", "qwen3_next", "qwen3_5_moe_text", "qwen3_5_moe", "qwen3_5_text", "qwen3_5", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni", "qwen2_5_omni_text", "gemma3_text", "gemma3", "gemma4_text", "gemma4", "gemma3n_text", "gemma3n", "nemotron_h", "nemotron-nas", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "falcon_h1", "jamba", "lfm2", "lfm2_moe", "llama4_text", "llama4", "mimo", "mimo_v2_flash", "step3p5", "step3p7", "cohere", "cohere2", "olmo2", "olmo3", "exaone4", "exaone4_5_text", "exaone4_5", "seed_oss", "smollm3", "olmoe", "exaone", "nemotron", "internlm2", "internlm3", "bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_moe_linear_v2", "ernie4_5", "ernie4_5_moe", "hunyuan_v1_moe", "hunyuan_v1_dense", "phimoe", "dbrx", "minimax_text_01", "minimax_m1", "minimax", "mamba", "falcon_mamba", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "opt", "bloom", "falcon", "mpt", "baichuan", "starcoder2", "bert", "xlm-roberta", "roberta", "camembert", "modernbert"]] = None,
    # images of a request, which the model's vision tower sees before the prefill; their tokens come on top of `prompt`,
    # or of `input`
    images: Optional[Count] = None,
    # of an image in pixels, before the model scales it
    image_size: Optional[Text] = None,
    # with `draft` the chance that a token it proposes is kept when those before it are, one for all or a list for the
    # first, second … (0.85,0.7,0.6; in lists of values 0.85/0.7/0.6), or a file of such numbers; with `verify` the
    # tokens that a step keeps on the mean
    accept: Optional[Text] = None,
    # speculative decoding: what proposes N tokens for each decode step to verify, a model, mtp (the model's own layer
    # for further tokens) or eagle (an EAGLE-3 head) [N: the best of 1 to 8]
    draft: Optional[Text] = None,
    # tokens are drawn from the N likeliest, at the cost of the engine's sampler [the likeliest is taken]
    top_k: Optional[Count] = None,
    # … or from those that together have this probability
    top_p: Optional[Number] = None,
    # bf16, fp16, fp32, fp8, int8, w8a8, w4a8, w4a16[-gN] (gptq, awq), nvfp4, mxfp4, nf4, a GGUF type (q4_k_m …), mlx-q4
    # (MLX), exl2-4.0bpw (EXL2) or bits per weight [the checkpoint's own, else the activation type]
    weights: Optional[Many[Literal["fp32", "fp16", "bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "int8", "w8a8", "w4a8", "w4a16", "w4a16-g32", "w4a16-g64", "w4a16-g128", "gptq", "awq", "nvfp4", "mxfp4", "nf4", "nf4-double", "bfp8", "bfp4", "bfp4-mlp", "mlx-q3", "mlx-q4", "mlx-q6", "mlx-q8", "exl2-2.4bpw", "exl2-3.0bpw", "exl2-4.0bpw", "exl2-5.0bpw", "exl2-6.0bpw", "exl2-8.0bpw", "f32", "f16", "bf16", "q8_0", "q6_k", "q5_1", "q5_k_m", "q5_0", "q5_k_s", "q4_1", "q4_k_m", "iq4_nl", "q4_k_s", "q4_0", "iq4_xs", "mxfp4_moe", "q3_k_l", "q3_k_m", "iq3_m", "iq3_s", "q3_k_s", "iq3_xs", "iq3_xxs", "q2_k", "q2_k_s", "iq2_m", "iq2_s", "iq2_xs", "tq2_0", "iq2_xxs", "tq1_0", "iq1_m", "iq1_s"]]] = None,
    # KV cache type: bf16, fp16, fp32, fp8, int8, int4, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl [the checkpoint's own, else
    # the activation type]
    kv: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # activation type: bf16, fp16, fp32
    activations: Optional[Literal["bf16", "fp16", "fp32"]] = None,
    # how tokens choose experts: balanced, power-law:A (the r-th most popular in proportion to r^-A; 0: all alike), or a
    # JSON or CSV file of tokens by expert, by which `ep` and `redundant-experts` place them
    routing: Optional[Text] = None,
    # adapters beside frozen weights, on qkvo, qkv+o (q, k, v joint) or all-linear [trained: qkvo; served: all-linear]
    lora: Optional[Literal["16:qkvo", "16:all-linear"]] = None,
    # different ones of `lora` that are held, of which every request uses one [1]
    adapters: Optional[Count] = None,
    # what the runtime fuses: all, none, or a list of names; no_NAME switches off [all; on an array of tiles
    # all,joined_vectors,prefetch_weights]
    options: Optional[Text] = None,
    # software stack, by name (of a version: vllm@0.6) or profile file [the device's own]; none: the speed of light
    runtime: Optional[Named] = None,
    # what runs the engine and adds to its steps: llama-bench, llama-server, ollama, llama-cpp-python [nothing]
    tool: Optional[Literal["llama-bench", "llama-server", "ollama", "llama-cpp-python"]] = None,
    # eager, graph, static-graph or dynamic-graph (dispatched from the host) [the runtime's own]
    execution: Optional[Literal["eager", "graph", "static-graph", "dynamic-graph"]] = None,
    # of a profile that says what load leaves of the clock: short (a single prompt) or sustained (steady serving,
    # training) [the profile's own]
    power: Optional[Literal["short", "sustained"]] = None,
    # a device draws no more than 245W: its clock follows, its memory's does not [all of its power]
    power_limit: Optional[Text] = None,
    # what an hour of one device costs: USD, another currency (2.5EUR), or a YAML or CSV file of prices by device [the
    # hardware file's]
    price: Optional[Text] = None,
    # version of llama.cpp's rules for a GGUF `weights`: 2024-02 (before 19 February 2024), 2024, 2025, 2026 [2026]
    gguf_era: Optional[Literal["2024-02", "2024", "2025", "2026"]] = None,
    # type of the cached keys, in place of `kv`: f16, q8_0, q4_0 …
    cache_type_k: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # type of the cached values, in place of `kv`
    cache_type_v: Optional[Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "bfp8", "bfp4"]] = None,
    # devices that share every matrix (tensor parallelism); 2x4: in rows x columns
    tp: Optional[Many[Text]] = None,
    # pipeline stages
    pp: Optional[Count] = None,
    # replicas of the model, each with its share of the batch
    dp: Optional[Count] = None,
    # devices that share the routed experts; a step waits for the busiest of up to 8
    ep: Optional[Count] = None,
    # experts that are held a second time, so that `ep` may divide what there then is, and devices have alike
    redundant_experts: Optional[Count] = None,
    # devices of `ep` that hold the shared expert and no others [every device holds it]
    shared_expert_ranks: Optional[Count] = None,
    # what tokens travel to experts of other devices as: bf16, fp16, fp8, int8 [as the experts' products take them]
    ep_dispatch: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # and their results back [the activations' type]
    ep_combine: Optional[Literal["bf16", "fp16", "fp8", "int8"]] = None,
    # embedding and lm_head over the devices of `tp`: sharded, replicated [as the runtime does]
    embedding: Optional[Literal["sharded", "replicated"]] = None,
    # devices in all: what the degrees leave becomes `dp`, with GGUF formats `pp`
    devices: Optional[Count] = None,
    # devices of one server [the hardware file's]
    devices_per_node: Optional[Count] = None,
    # GGUF: tokens computed at once at most: longer prompts are cut [512]
    ubatch: Optional[Count] = None,
    # requests per second, at random intervals; a trace's own times are scaled to it
    rate: Optional[Number] = None,
    # of the gamma distribution of the intervals: 1 is a Poisson process, less comes in bursts, inf at equal intervals
    burstiness: Optional[Literal["0.5", "1", "inf"]] = None,
    # requests under way at most: one that ends lets the next one in; beside `rate` those that come meanwhile are sent
    # later
    concurrency: Optional[Count] = None,
    # that are sent [1000; of a trace all, else the first of them]
    requests: Optional[Count] = None,
    # requests from a file: CSV or JSON lines with lengths, times (arrival_s, timestamp), hash_ids or sessions
    trace: Optional[Text] = None,
    # prompt tokens of a request: 1024 or 1k, 800-1k (even), lognormal:1k:0.8 (mean, spread of the logarithm)
    input: Optional[Text] = None,
    # tokens to generate for a request, likewise
    output: Optional[Text] = None,
    # of a closed loop whose `input` or `output` is one number: spread (evenly within 3 % of it, so that requests do not
    # end and begin together) or exact
    lengths: Optional[Literal["spread", "exact"]] = None,
    # what prompts begin with that others do as well: a share of the mean prompt (0.5) or tokens (512); 512:8 of eight
    # different ones
    prefix: Optional[Text] = None,
    # requests of several kinds, with their shares, lengths, prefixes and priorities (the lowest first): 'chat:3
    # input=500 output=200; batch:1 input=8k priority=1'; `slo` may name one: chat:ttft.p99=1s
    classes: Optional[Text] = None,
    # requests of a session, each of which begins with all that was said before, and waits for its answer
    turns: Optional[Count] = None,
    # from an answer to the next turn of its session on the mean, spread as intervals are; sessions then start at the
    # `rate` over their turns [until all sessions have had the turn before]
    think: Optional[Text] = None,
    # of all that is random
    seed: Optional[Count] = None,
    # runs with as many seeds, from `seed` on: the band says how far they differ
    seeds: Optional[Count] = None,
    # what is promised: ttft.p99=1s,tpot.p95=50ms; of ttft, tpot, itl, e2e the mean, p50, p90, p95 or p99; a bound that
    # is missed exits with 4
    slo: Optional[Union[str, Mapping[str, str]]] = None,
    # whose rules requests are scheduled by: vllm, sglang, trtllm or llama.cpp, of a version vllm@0.15.1 [the runtime's]
    engine: Optional[Many[Literal["vllm", "sglang", "trtllm", "llama.cpp"]]] = None,
    # share of the memory that an engine may use; says how many blocks and tokens its KV cache then holds [serving: the
    # engine's own]
    kv_utilisation: Optional[Number] = None,
    # tokens of the longest sequence, prompt and generated, which the engine's memory must hold one of; what vLLM prints
    # of its cache is of such sequences [the model's]
    max_model_len: Optional[Count] = None,
    # tokens of a block of that cache [16; SGLang and llama.cpp 1, TensorRT-LLM 32]
    block_size: Optional[Count] = None,
    # tokens of the largest step, whose activations leave the cache the rest [the engine's: of vLLM 8192 from 70 GiB on,
    # but for the A100; else 2048]
    max_batched_tokens: Optional[Count] = None,
    # sequences of the largest step [the engine's: of vLLM 1024 where it is of 8192 tokens, else 256]
    max_seqs: Optional[Count] = None,
    # blocks of that cache, whatever the memory has room for
    kv_blocks: Optional[Count] = None,
    # requests that wait at a replica at most: one that finds as many is rejected [any number]
    max_queue: Optional[Count] = None,
    # what is cached of a prompt's beginning is taken for later ones: on, off [on]
    prefix_caching: Optional[Union[bool, Literal["on", "off"]]] = None,
    # prompts that are longer than what is left of a step are cut: on, off [the engine's]
    chunked_prefill: Optional[Union[bool, Literal["on", "off"]]] = None,
    # TensorRT-LLM: a request is let in when all that it may ever need is free (guaranteed-no-evict), or when its prompt
    # is (max-utilisation)
    admission: Optional[Literal["guaranteed-no-evict", "max-utilisation"]] = None,
    # SGLang: steps of decode for one look for new requests
    scheduler_recv_interval: Optional[Count] = None,
    # engines, each on the devices of the plan, to which requests are dealt
    replicas: Optional[Count] = None,
    # how they are: round-robin, least-loaded (fewest requests), prefix-aware (fewest blocks to compute and in use)
    router: Optional[Literal["round-robin", "least-loaded", "prefix-aware"]] = None,
    # engines that compute prompts alone, and send their keys and values on
    prefill_replicas: Optional[Count] = None,
    # … to as many that decode
    decode_replicas: Optional[Count] = None,
    # … by a plan of their own: 'tp 8', 'dp 8 ep 8'
    decode_plan: Optional[Text] = None,
    # … on devices of their own
    decode_hw: Optional[Text] = None,
    # where keys and values stay that the cache lets go of: host:200GB of a replica, nvme:2TB:6GB/s, pool:10TB of all of
    # them, at the rate of the device's links unless one is said
    kv_tier: Optional[Text] = None,
    # … over a link of so much per device and direction, 50GB/s [the network of the hardware file, else its
    # interconnect]
    kv_link: Optional[Text] = None,
    # … after the prompt is computed, or per-layer, while it is
    kv_transfer: Optional[Literal["after", "per-layer"]] = None,
) -> Result: ...
def validate(measurements: Union[Named, Sequence[Named]], *, hw: Optional[Named] = None,
             runtime: Optional[Named] = None, model: Optional[Named] = None,
             weights: Optional[Text] = None) -> Result: ...
def capacities(studies: Sequence[Mapping[str, Any]], *, executor: Optional[Executor] = None) -> List[Result]: ...
def calibrate(measurements: Union[Named, Sequence[Named]], hw: Named, *, runtime: Optional[Named] = None,
              start: Optional[Named] = None, model: Optional[Named] = None,
              weights: Optional[Text] = None) -> Calibration: ...
def models(name: Optional[Named] = None) -> Any: ...
def hardware(name: Optional[Named] = None) -> Any: ...
def runtimes(name: Optional[Named] = None) -> Any: ...
def measurements() -> List[Dict[str, Any]]: ...
def fields() -> List[Dict[str, Any]]: ...
def version() -> Dict[str, Any]: ...
