// A model descriptor (models/*.yaml) from the transformer blocks of a program.
#pragma once

#include <string>

#include "program/blocks.h"

namespace llmperf::program {

// YAML that `--model` takes: a decoder, or a video diffusion transformer whose blocks the program has (what surrounds
// them is then that of the built-in model of the same architecture). The notes in it say what was recovered and what
// was assumed. Throws Error(bad_input), saying what was found instead, when the format cannot describe the blocks.
std::string recovered_model(const Program& program, const Blocks& blocks);

}  // namespace llmperf::program
