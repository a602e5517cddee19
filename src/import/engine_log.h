// What an engine's start-up log says of its memory: lines of vLLM (v1/worker/gpu_worker.py, v1/core/kv_cache_utils.py,
// worker/worker.py before 0.8), SGLang (model_executor/model_runner.py), TensorRT-LLM (kvCacheManager.cpp), llama.cpp
// (load_tensors, llama_kv_cache) and Ollama, which has llama.cpp's or its own.
#pragma once

#include <string>

#include "estimate/engine_memory.h"

namespace llmperf::import {

// Of what a log says several times the last counts; buffers that llama.cpp names device by device are added up. Throws
// Error(bad_input) where nothing is said.
estimate::EngineLog read_engine_log(const std::string& text, const std::string& name);

}  // namespace llmperf::import
