// Gathers the executions that importers find, and makes of them measurements and a summary.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "import/import.h"
#include "import/mapped.h"

namespace llmperf::import {

// `count` executions that took `time` together.
struct Execution {
  std::string type;
  Class of = Class::kernel;
  Seconds time;
  Mapped mapped;
  int line = 0;
  std::int64_t count = 1;
};

class Collector {
 public:
  Collector(Source source, std::string hardware) : source_(source), hardware_(std::move(hardware)) {}

  void start_file(const std::string& path);
  void add(const Execution& execution);
  Imported finish();

 private:
  struct Measured {
    calibrate::OpRow op;
    std::string type;
    std::size_t file;
    int line;
    std::vector<double> times;  // s
  };
  struct Type {
    TypeSummary summary;
    std::map<std::string, std::int64_t> remarks;  // executions by why they were left out
  };

  calibrate::Row row(Measured& measured) const;

  Source source_;
  std::string hardware_;
  std::vector<calibrate::Measurements::File> files_;
  std::vector<Measured> measured_;
  std::map<std::pair<std::string, std::string>, std::size_t> known_;  // type, op: index into measured_
  std::map<std::pair<Class, std::string>, Type> types_;
};

}  // namespace llmperf::import
