docker run -v ~/x:/y vllm/vllm-openai:v0.11.0 --model "Qwen/Qwen3-8B" > log 2>&1 &
