// Comparing what a backend computes with the reference.
#pragma once

#include <memory>
#include <string>

#include "measure/op_row.h"
#include "replay/backend.h"

namespace llmperf::replay::cpu {

// Fails the test unless the backend runs the op and its result is the reference's within the error that the type
// allows: bf16 has 8 bits, and sums of n terms of either type err by their rounding.
void check_op(Backend& backend, const measure::OpRow& op);

// Fails unless the op comes back as unavailable with a reason that contains `text`.
void check_unavailable(Backend& backend, const measure::OpRow& op, const std::string& text);

std::unique_ptr<Prepared> prepared(Backend& backend, const measure::OpRow& op, std::int64_t copies = 1);

}  // namespace llmperf::replay::cpu
