A=1 vllm serve Qwen/Qwen3-8B -tp 2 \
  --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}' --max-model-len 32k --port 80
