// A device that ops can be executed on and timed. The one interface between what replays a graph (replay.h) and what
// knows a device: src/replay/cpu, src/replay/ascend. A further backend is one file that implements it, and a line in
// src/cli/replay.cpp.
//
// Life of a backend: describe() at any time; prepare() an op as often as wanted; run() prepared ops in any order and
// number; destroy them, which releases what they hold on the device; destroy the backend last. One thread makes all of
// these calls. Errors are llmperf::Error: of the kind `failed`, naming the function that failed, its code and what the
// code means; whatever was acquired before is released. After an error the backend can still be destroyed, and nothing
// else is promised.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"
#include "measure/op_row.h"

namespace llmperf::replay {

// What a device says of itself: goes into the files that its measurements are written to.
struct Description {
  std::string backend;                                     // "cpu", "ascend"
  std::string device;                                      // a name fit for the column `hardware`: "ascend-910b4"
  std::string title;                                       // for people: "AMD EPYC 9654, 96 cores"
  std::vector<std::pair<std::string, std::string>> facts;  // "threads": "2", "driver": "24.1.rc3", in reading order
};

// An op with its operands and whatever one execution needs, on the device. Destroying it releases all of that.
class Prepared {
 public:
  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  virtual ~Prepared() = default;
};

// Why a backend cannot run an op: a kernel or a library it does not have, a constraint that the shape breaks. No error:
// the op is reported and left out. Thrown from the depth of a preparation, and what prepare() returns.
struct Unavailable {
  std::string reason;  // "ApplyRotaryPosEmb takes heads of 128 elements, not 64"
};
// The op needs what does not hold.
inline void require(bool holds, std::string reason) {
  if (!holds) throw Unavailable{std::move(reason)};
}

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual Description describe() const = 0;

  // Allocates the op's operands and fills them as operands.h says. What a model reads from memory in every step (the
  // weights of a product, the cache of attention, the table of a gather) is there `copies` times, one of which each
  // execution takes in turn, as the layers of a model do; 0: as many as the device's caches cannot hold.
  std::variant<std::unique_ptr<Prepared>, Unavailable> prepare(const measure::OpRow& op, std::int64_t copies) {
    try {
      return make(op, copies);
    } catch (Unavailable& unavailable) {
      return std::move(unavailable);
    }
  }

  // Executes the sequence, one op after the other, `passes` times, and returns how long all of it took by the device's
  // own clock, from the start of the first to the end of the last. The device is warm: it executed the sequence at
  // least once before. An op may stand in the sequence several times. Where a device is fed by a host, the passes are
  // enqueued before the clock starts as far as its queue allows, or are one captured graph, so that the host is not
  // what is timed.
  virtual Seconds run(std::span<Prepared* const> sequence, std::int64_t passes) = 0;

  // What one execution makes of the operands as they were filled, in the order that operands.h gives. For comparing
  // backends; the op can be run afterwards as before.
  virtual std::vector<float> result(Prepared& op) = 0;

 private:
  // As prepare(). Throws Unavailable.
  virtual std::unique_ptr<Prepared> make(const measure::OpRow& op, std::int64_t copies) = 0;
};

}  // namespace llmperf::replay
