#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "import/collector.h"

namespace llmperf::import {

std::string collective_in(std::string_view name) {
  // In letters alone: all_reduce, allreduce, AllReduce and all-reduce are one. Longer names stand before their parts.
  constexpr std::pair<std::string_view, std::string_view> kCollectiveNames[] = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"alltoallv", "alltoallv"},  {"alltoall", "all_to_all"},  {"broadcast", "broadcast"},
      {"sendrecv", "sendrecv"},    {"hypercube", "hypercube"},  {"scatter", "scatter"},
      {"gather", "gather"},        {"reduce", "reduce"}};
  std::string letters;
  for (const char c : to_lower(name)) {
    if (c >= 'a' && c <= 'z') letters += c;
  }
  for (const auto& [text, collective] : kCollectiveNames) {
    if (letters.find(text) != std::string::npos) return std::string(collective);
  }
  return {};
}

Mapped collective_row(const std::string& collective, std::int64_t ranks, double bytes, std::optional<Dtype> dtype) {
  const std::optional<graph::CollectiveKind> kind = measure::collective_kind(collective);
  if (!kind) return kNoSuchOp;
  if (!dtype) return kNoElementType;
  if (!(bytes > 0)) return "nothing sent";
  return measure::OpRow{collective, *dtype, measure::CollectiveShape{*kind, ranks, Bytes{std::ceil(bytes)}}};
}

// ---- hccl_test prints a line per size, its columns set apart by '|':
//
//   data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
//   67108864          | 812.40         | 82.60551             | success
//
// data_size is the size of the full tensor: for all-gather every rank contributes data_size / ranks. Nothing says how
// many ranks there were, and the collective is in the name of the program only.

namespace {

using descriptor::Problems;

// A part of a line and the 1-based byte at which it starts.
struct Field {
  std::string_view text;
  int column;
};

// The collective asked for, or that of the file's name; reported as a problem when there is neither.
std::string collective_of(const Options& options, descriptor::Problems& problems, int line) {
  if (!options.collective.empty()) return options.collective;
  const std::string& file = problems.file();
  const std::string found = collective_in(std::string_view(file).substr(file.rfind('/') + 1));
  if (found.empty()) {
    problems.add(line, 1, "does not say which collective was measured",
                 "`op` all_reduce, all_gather, reduce_scatter or all_to_all");
  }
  return found;
}

std::vector<Field> fields_of(std::string_view line) {
  std::vector<Field> fields;
  for (const std::string_view part : split(line, '|')) {
    const std::string_view text = trim(part);
    const char* start = text.empty() ? part.data() : text.data();
    fields.push_back({text, static_cast<int>(start - line.data()) + 1});
  }
  return fields;
}

class HcclTest {
 public:
  HcclTest(const Options& options, Problems& problems, Collector& into)
      : options_(&options), problems_(&problems), into_(&into) {}

  void read(std::string_view text) {
    int number = 0;
    for (const std::string_view line : split(text, '\n')) {
      if (problems_->full()) return;
      read_line(line, ++number);
    }
    if (!has_header_) {
      problems_->add(0, 0, "is no output of hccl_test: no line with 'data_size(Bytes):' and 'aveg_time(us):'");
    } else if (rows_ == 0 && problems_->empty()) {
      problems_->add(0, 0, "holds a header line and no rows");
    }
  }

 private:
  void read_line(std::string_view line, int number) {
    if (line.find('|') == std::string_view::npos) return;
    const std::vector<Field> fields = fields_of(line);
    if (line.find("data_size") != std::string_view::npos) {
      read_header(fields, number);
    } else if (size_ < fields.size() && time_ < fields.size() && parse_double(fields[size_].text)) {
      read_row(fields, number);
    }
  }

  void read_header(const std::vector<Field>& fields, int number) {
    size_ = time_ = check_ = std::string_view::npos;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view name = fields[i].text;
      if (name.starts_with("data_size")) size_ = i;
      if (name.starts_with("aveg_time") || name.starts_with("avg_time")) time_ = i;
      if (name.starts_with("check_result")) check_ = i;
    }
    if (size_ == std::string_view::npos || time_ == std::string_view::npos) return;
    if (has_header_) return;
    has_header_ = true;
    collective_ = collective_of(*options_, *problems_, number);
    if (!options_->ranks) problems_->add(number, 1, "does not say how many ranks took part", "`ranks` N");
  }

  void read_row(const std::vector<Field>& fields, int number) {
    ++rows_;
    const std::optional<std::int64_t> size = parse_int(fields[size_].text);
    if (!size || *size < 0) {
      problems_->add(number, fields[size_].column, fmt::format("not a size in bytes: {}", quote(fields[size_].text)));
      return;
    }
    const std::optional<Seconds> time = read_microseconds(fields[time_].text, number, fields[time_].column, *problems_);
    if (!time) return;
    Execution e{.type = collective_,
                .of = Class::communication,
                .time = *time,
                .mapped = collective_row(collective_, options_->ranks.value_or(2), static_cast<double>(*size),
                                         options_->dtype.value_or(Dtype::fp32)),
                .line = number};
    if (check_ < fields.size() && to_lower(fields[check_].text) == "failed") e.mapped = "wrong results";
    into_->add(e);
  }

  const Options* options_;
  Problems* problems_;
  Collector* into_;
  bool has_header_ = false;
  std::size_t size_ = std::string_view::npos;
  std::size_t time_ = std::string_view::npos;
  std::size_t check_ = std::string_view::npos;
  std::string collective_;
  std::int64_t rows_ = 0;
};

}  // namespace

void read_hccl_test(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  HcclTest(options, problems, into).read(text);
}

// ---- nccl-tests (all_reduce_perf and its kin) prints comments that start with '#' and a line per size:
//
//   # Collective test starting: all_reduce_perf            (versions since 2.17)
//   # nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 …
//   #  Rank  0 Group  0 Pid  1234 on node device  0 [0000:18:00] NVIDIA H100
//   #       size  count  type  redop  root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
//           1024    256  float   sum    -1  13.50   0.08   0.13      0  13.20   0.08   0.14      0
//
// Old versions print the same without '#'.
//
// The first half of the times is out of place, the second in place. size is the larger of what a rank sends and what it
// receives, which is the full tensor of every collective: the output of all-gather, the input of reduce-scatter.

namespace {

std::vector<Field> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<Field> words;
  for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
    words.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

// Launchers put before every line whose it is: "[0] ", "[1,0]<stdout>:" (mpirun), "3: " (srun), "worker-0: ". Blanks
// keep the columns right.
std::string without_tag(std::string_view line) {
  std::string result(line);
  std::size_t end = 0;
  if (line.starts_with('[')) {
    constexpr std::string_view kStream = "<stdout>:";
    end = line.find(']') + 1;
    if (line.substr(end).starts_with(kStream)) end += kStream.size();
  } else if (const std::size_t blank = line.find(' '); blank != std::string_view::npos && blank > 0) {
    if (line[blank - 1] == ':') end = blank;
  }
  result.replace(0, end, end, ' ');
  return result;
}

class NcclTests {
 public:
  NcclTests(const Options& options, Problems& problems, Collector& into)
      : options_(&options), problems_(&problems), into_(&into) {}

  void read(std::string_view text) {
    for (const std::string_view raw : split(text, '\n')) {
      if (problems_->full()) return;
      ++line_;
      const std::string line = without_tag(raw);
      std::vector<Field> words = words_of(line);
      if (words.empty()) continue;
      if (words.front().text.starts_with('#')) {  // which old versions left out
        words.front().text.remove_prefix(1);
        if (words.front().text.empty()) words.erase(words.begin());
        read_comment(line, words);
      } else if (words.size() > 2 && parse_int(words[0].text) && parse_int(words[1].text)) {
        if (!columns_.empty()) read_row(words);
      } else {
        read_comment(line, words);
      }
    }
    if (!has_header_) {
      problems_->add(0, 0, "is no output of nccl-tests: no line '# size count type … time algbw busbw'");
    } else if (rows_ == 0 && problems_->empty()) {
      problems_->add(0, 0, "holds a header line and no rows");
    }
  }

 private:
  void read_comment(std::string_view line, const std::vector<Field>& words) {
    constexpr std::string_view kStarting = "Collective test starting:";
    const std::size_t starting = line.find(kStarting);
    const auto number_after = [&](std::string_view name) -> std::optional<std::int64_t> {
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (words[i].text == name) return parse_int(words[i + 1].text);
      }
      return std::nullopt;
    };
    const auto is = [&](std::size_t i, std::string_view text) { return i < words.size() && words[i].text == text; };
    if (starting != std::string_view::npos) {
      collective_ = collective_in(line.substr(starting + kStarting.size()));
    } else if (is(0, "nThread")) {  // a run begins
      group_ranks_.clear();
      columns_.clear();
      const std::int64_t threads = number_after("nThread").value_or(0);
      const std::int64_t gpus = number_after("nGpus").value_or(0);
      local_ranks_ = threads > 0 && threads < 1000 && gpus > 0 && gpus < 1000 ? threads * gpus : 0;
    } else if (is(0, "Rank") && number_after("Pid")) {
      ++group_ranks_[number_after("Group").value_or(0)];
    } else if (is(0, "size") &&
               std::any_of(words.begin(), words.end(), [](const Field& w) { return w.text == "algbw"; })) {
      read_header(words);
    }
  }

  void read_header(const std::vector<Field>& words) {
    columns_.clear();
    for (const Field& w : words) columns_.emplace_back(w.text);
    has_header_ = true;
    if (std::find(columns_.begin(), columns_.end(), "cputime") != columns_.end()) {
      problems_->add(line_, 1, "the times are of the CPU (nccl-tests -C 1), not of the collectives");
      columns_.clear();
    }
    const std::string& wanted = options_->collective;
    if (!collective_.empty() && !wanted.empty() && collective_ != collective_in(wanted)) {
      problems_->add(line_, 1, fmt::format("measures {}, and `op` says {}", collective_, quote(wanted)));
    }
    if (collective_.empty()) collective_ = collective_of(*options_, *problems_, line_);
    find_ranks();
  }

  // Ranks of a communicator are the lines of one group. Without such lines, of a single process.
  void find_ranks() {
    std::int64_t said = group_ranks_.empty() ? 0 : group_ranks_.begin()->second;
    if (said == 0 && local_ranks_ > 1) said = local_ranks_;
    ranks_ = options_->ranks.value_or(said);
    if (said > 0 && !group_ranks_.empty() && ranks_ != said) {
      problems_->add(line_, 1, fmt::format("lists {} ranks, and `ranks` says {}", said, ranks_));
    } else if (ranks_ == 0) {
      problems_->add(line_, 1, "does not say how many ranks took part", "`ranks` N");
    }
  }

  // Where the nth column of that name stands in a row.
  std::optional<std::size_t> column(std::string_view name, int nth = 0) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == name && nth-- == 0) return i;
    }
    return std::nullopt;
  }

  void read_row(std::vector<Field> words) {
    ++rows_;
    const std::optional<std::size_t> redop = column("redop");
    if (redop && words.size() + 1 == columns_.size()) {  // no reduction: some versions leave the field blank
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*redop), Field{"none", words[2].column});
    }
    const bool stamped = column("timestamp").has_value();
    if (words.size() < columns_.size() || (words.size() > columns_.size() && !stamped)) {
      problems_->add(line_, words.front().column,
                     fmt::format("{} fields, and the header has {}", words.size(), columns_.size()));
      return;
    }
    const std::optional<std::int64_t> size = parse_int(words.front().text);
    if (*size < 0) {
      problems_->add(line_, words.front().column, fmt::format("not a size in bytes: {}", quote(words.front().text)));
      return;
    }
    const std::optional<std::size_t> type = column("type");
    const std::optional<Dtype> dtype = type ? element_type(words[*type].text).dtype : std::nullopt;
    const Mapped mapped =
        collective_row(collective_, std::max<std::int64_t>(ranks_, 2), static_cast<double>(*size), dtype);
    const Half out_of_place = half(words, 0);
    const Half in_place = half(words, 1);
    add(out_of_place, mapped);
    // In place, all-to-all is not supported: its results are not checked where the others are.
    add(in_place, out_of_place.checked && !in_place.checked ? Mapped("results not checked") : mapped);
  }

  struct Half {
    std::optional<Seconds> time;
    bool checked = false;
    bool wrong = false;
  };
  Half half(const std::vector<Field>& words, int nth) {
    Half result;
    const std::optional<std::size_t> time = column("time", nth);
    if (!time) return result;
    if (words[*time].text != "N/A") {
      result.time = read_microseconds(words[*time].text, line_, words[*time].column, *problems_);
    }
    std::optional<std::size_t> wrong = column("#wrong", nth);
    if (!wrong) wrong = column("error", nth);
    if (wrong && words[*wrong].text != "N/A") {
      const std::optional<double> count = parse_double(words[*wrong].text);
      result.checked = true;
      // Old versions print the largest error instead, which rounding makes small but not zero.
      result.wrong = columns_[*wrong] == "#wrong" ? count != 0.0 : !count;
    }
    return result;
  }

  void add(const Half& half, const Mapped& mapped) {
    if (!half.time) return;
    into_->add({.type = collective_,
                .of = Class::communication,
                .time = *half.time,
                .mapped = half.wrong ? Mapped("wrong results") : mapped,
                .line = line_});
  }

  const Options* options_;
  Problems* problems_;
  Collector* into_;
  int line_ = 0;
  bool has_header_ = false;
  std::vector<std::string> columns_;
  std::string collective_;
  std::map<std::int64_t, std::int64_t> group_ranks_;
  std::int64_t local_ranks_ = 0;
  std::int64_t ranks_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

void read_nccl_tests(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  NcclTests(options, problems, into).read(text);
}

}  // namespace llmperf::import
