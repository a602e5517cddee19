// What llama-bench prints: with -o json, jsonl, csv and sql the same fields, with md a table of those that differ from
// the defaults. Every form becomes records of the same fields, and a record a step. What llama-batched-bench and
// sweep-bench print (a table, or jsonl) holds a prompt and a generation on each line, which become two records; how all
// of them ran stands above the table ("main: n_kv_max = 20480, n_batch = 2048, …").
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/integer.h"
#include "base/list.h"
#include "base/load_once.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/csv.h"
#include "descriptor/node.h"
#include "estimate/setup.h"
#include "hardware/device.h"
#include "import/collector.h"
#include "import/runs.h"
#include "model/gguf/tensors.h"
#include "model/model_file.h"
#include "model/parameters.h"

namespace llmperf::import {
namespace {

using descriptor::Problems;
using measure::Phase;
using measure::StepRow;

// One test, by llama-bench's names of its fields; of a table what the table has.
struct Record {
  std::map<std::string, std::string, std::less<>> fields;
  int line = 0;

  std::string_view operator[](std::string_view field) const {
    const auto found = fields.find(field);
    return found == fields.end() ? std::string_view() : found->second;
  }
  // 0: not said.
  std::int64_t integer(std::string_view field) const { return parse_int((*this)[field]).value_or(0); }
  double number(std::string_view field) const { return parse_double((*this)[field]).value_or(0); }
};

// ---- The forms

std::string_view truth(std::string_view text) { return text == "true" ? "1" : text == "false" ? "0" : text; }

// Of a line of batched-bench `pl` sequences that have nothing before them, or share their prompt, or generate one after
// the other; of one of sweep-bench, which has no `pl`, one sequence behind `n_kv` tokens.
void add_batched(const Record& line, std::vector<Record>& records) {
  const bool sweep = line["pl"].empty();
  for (const bool prompt : {true, false}) {
    const std::string_view tokens = line[prompt ? "pp" : "tg"];
    if (parse_int(tokens).value_or(0) <= 0) continue;
    const bool one = sweep || line[prompt ? "is_pp_shared" : "is_tg_separate"] == "1";
    Record& record = records.emplace_back(line);
    record.fields[prompt ? "n_prompt" : "n_gen"] = tokens;
    record.fields["n_depth"] = sweep ? line["n_kv"] : prompt ? "0" : line["pp"];
    record.fields["n_sequences"] = one ? "1" : line["pl"];
    record.fields["avg_ts"] = line[prompt ? "speed_pp" : "speed_tg"];
  }
}

void add_object(const descriptor::Node& node, std::vector<Record>& records) {
  Record record;
  record.line = node.line;
  for (const descriptor::Node::Entry& entry : node.entries) {
    if (entry.value.kind == descriptor::Node::Kind::scalar) {
      record.fields[entry.key] = entry.value.quoted ? entry.value.scalar : truth(entry.value.scalar);
    }
  }
  record["speed_tg"].empty() ? records.push_back(std::move(record)) : add_batched(record, records);
}

void read_csv(std::string_view text, Problems& problems, std::vector<Record>& records) {
  descriptor::CsvReader reader(text, problems);
  std::vector<descriptor::CsvCell> names;
  const auto header = [&] {
    names = reader.cells();
    return true;
  };
  read_rows(reader, problems, header, [&] {
    Record& record = records.emplace_back();
    record.line = reader.line();
    for (std::size_t i = 0; i < names.size(); ++i) record.fields[names[i].text] = truth(reader.cells()[i].text);
  });
}

// INSERT INTO llama_bench (a, b) VALUES ('1', '2'); a quote inside of a value is as it is.
void read_insert(std::string_view line, int number, Problems& problems, std::vector<Record>& records) {
  const std::size_t open = line.find('(');
  const std::size_t close = line.find(')', open);
  const std::size_t values = line.find("('", close);
  const std::size_t end = line.rfind("')");
  if (close == std::string_view::npos || values == std::string_view::npos || end == std::string_view::npos ||
      end < values + 2) {
    problems.add(number, 1, "not an insertion of names and values");
    return;
  }
  const std::vector<std::string_view> names = split(line.substr(open + 1, close - open - 1), ',');
  std::string_view rest = line.substr(values + 2, end - values - 2);
  Record record;
  record.line = number;
  constexpr std::string_view kBetween = "', '";
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    const std::size_t at = rest.find(kBetween);
    more = at != std::string_view::npos;
    if (count < names.size()) record.fields[std::string(trim(names[count]))] = rest.substr(0, at);
    if (more) rest.remove_prefix(at + kBetween.size());
  }
  if (count == names.size()) {
    records.push_back(std::move(record));
  } else {
    problems.add(number, 1, fmt::format("{} values of {} fields", count, names.size()));
  }
}

// What the table calls fields otherwise.
constexpr std::pair<std::string_view, std::string_view> kShort[] = {
    {"model", "model_type"}, {"backend", "backends"},   {"ngl", "n_gpu_layers"},   {"threads", "n_threads"},
    {"sm", "split_mode"},    {"nkvo", "no_kv_offload"}, {"fa", "flash_attn"},      {"ts", "tensor_split"},
    {"dev", "devices"},      {"embd", "embeddings"},    {"nopo", "no_op_offload"}, {"ot", "tensor_buft_overrides"},
};

// "pp512", "tg128", "pp512+tg128", "pp 512 @ d4096".
void read_test(std::string_view text, Record& record) {
  std::string close(text);
  std::erase(close, ' ');
  std::string_view rest = close;
  const auto take = [&](std::string_view prefix, const char* field) {
    if (!rest.starts_with(prefix)) return;
    rest.remove_prefix(prefix.size());
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    record.fields[field] = rest.substr(0, end);
    rest.remove_prefix(end);
  };
  take("pp", "n_prompt");
  take("+", "n_gen");
  take("tg", "n_gen");
  take("@d", "n_depth");
}

// "8.03 B" of parameters.
void read_parameters(std::string_view text, Record& record) {
  const std::vector<std::string_view> parts = words(text);
  const std::optional<double> value = parts.size() == 2 ? parse_double(parts[0]) : std::nullopt;
  if (!value) return;
  const double unit = parts[1] == "B" ? 1e9 : 1e6;
  record.fields["model_n_params"] = fmt::format("{:.0f}", *value * unit);
  record.fields["rounding"] = fmt::format("{}", 0.005 / *value);
}

class Tables {
 public:
  explicit Tables(std::vector<Record>& records) : records_(&records) {}

  void read(std::string_view line, int number) {
    line = trim(line);
    if (line.starts_with('|')) return row(line, number);
    if (line.starts_with("build:")) return build(line);
    if (line.find("n_kv_max = ") != std::string_view::npos) return settings(line.substr(line.find("n_kv_max")));
    note_device(line);
  }

 private:
  void row(std::string_view line, int number) {
    std::vector<std::string> cells;
    for (const std::string_view cell : split(line.substr(1), '|')) cells.emplace_back(trim(cell));
    if (!cells.empty() && cells.back().empty()) cells.pop_back();
    const auto has = [&](const char* name) { return contains(cells, name); };
    if (has("t/s") || has("S_TG t/s")) {
      batched_ = !has("t/s");
      names_ = std::move(cells);
      for (std::string& name : names_) {
        for (const auto& [shown, field] : kShort) {
          if (name == shown) name = field;
        }
        // "S_PP t/s" of batched-bench is the speed_pp of its jsonl, "B" its pl.
        if (batched_) name = to_lower(name.substr(0, name.find(' ')));
        if (batched_ && name.starts_with("s_")) name.insert(1, "peed");
        if (batched_ && name == "b") name = "pl";
      }
      return;
    }
    const bool rule = std::all_of(cells.begin(), cells.end(), [](const std::string& cell) {
      return cell.find_first_not_of("-:") == std::string::npos;
    });
    if (rule || cells.size() != names_.size()) return;
    Record record;
    if (batched_) record.fields = settings_;
    record.line = number;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (names_[i] == "test") {
        read_test(cells[i], record);
      } else if (names_[i] == "params") {
        read_parameters(cells[i], record);
      } else if (names_[i] == "t/s") {
        record.fields["avg_ts"] = cells[i].substr(0, cells[i].find(' '));
      } else {
        record.fields[names_[i]] = cells[i];
      }
    }
    if (!devices_.empty()) record.fields["gpu_info"] = join(devices_, ", ");
    batched_ ? add_batched(record, *records_) : records_->push_back(std::move(record));
  }

  // "n_kv_max = 20480, n_batch = 2048, flash_attn = 1" above a table.
  void settings(std::string_view line) {
    settings_.clear();
    for (const std::string_view part : split(line, ',')) {
      const std::size_t is = part.find('=');
      if (is != std::string_view::npos) settings_[std::string(trim(part.substr(0, is)))] = trim(part.substr(is + 1));
    }
  }

  // "build: 4ffc47cb (6421)" is below its tables.
  void build(std::string_view line) {
    const std::size_t open = line.find('(');
    if (open == std::string_view::npos) return;
    for (; built_ < records_->size(); ++built_) {
      (*records_)[built_].fields["build_number"] = line.substr(open + 1, line.find(')', open) - open - 1);
    }
    devices_.clear();
  }

  // Of what CUDA and ROCm log before the table: "Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes".
  void note_device(std::string_view line) {
    const std::size_t colon = line.find(": ");
    const std::size_t comma = line.find(',');
    if (!line.starts_with("Device ") || colon == std::string_view::npos || comma == std::string_view::npos) return;
    if (comma > colon) devices_.emplace_back(line.substr(colon + 2, comma - colon - 2));
  }

  std::vector<Record>* records_;
  std::vector<std::string> names_;                            // of the table's columns
  bool batched_ = false;                                      // the table is of batched-bench or sweep-bench
  std::map<std::string, std::string, std::less<>> settings_;  // of all that such a table holds
  std::vector<std::string> devices_;                          // that were logged since the last build
  std::size_t built_ = 0;                                     // records whose build is known
};

std::vector<Record> read_records(std::string_view text, Problems& problems) {
  std::vector<Record> records;
  const std::string_view start = trim(text);
  const std::string_view heading = start.substr(0, start.find('\n'));
  if (start.starts_with('[') || trim(heading) == "{") {
    for (const descriptor::Node& node : read_documents(text, problems)) add_object(node, records);
  } else if (!heading.starts_with('{') && heading.find(",avg_ts") != std::string_view::npos) {
    read_csv(text, problems, records);
  } else {  // one record on a line, whatever else was printed beside it
    Tables tables(records);
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
      ++number;
      if (problems.full()) break;
      if (line.starts_with('{')) {
        for (const descriptor::Node& node : read_documents(line, problems, number - 1)) add_object(node, records);
      } else if (line.starts_with("INSERT INTO ")) {
        read_insert(line, number, problems, records);
      } else {
        tables.read(line, number);
      }
    }
  }
  if (records.empty() && problems.empty()) {
    problems.add(0, 0, "holds no test of llama-bench",
                 "read is what it prints with -o json, jsonl, csv, md or sql, and what llama-batched-bench and "
                 "llama-sweep-bench print");
  }
  return records;
}

// ---- What is built in

struct KnownModel {
  std::string name;
  model::Decoder decoder;
  double parameters = 0;
};
const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> known = [] {
    std::vector<KnownModel> list;
    for (const std::string& name : descriptor::names(descriptor::Kind::model)) {
      try {
        model::Decoder decoder = model::load_decoder(name);
        if (decoder.causal) continue;  // embedding models and rerankers, of another model's layers
        const double parameters = d(model::count_parameters(decoder).total);
        list.push_back({name, std::move(decoder), parameters});
      } catch (const Error& error) {  // a model of video, or a file of the search path that is none
        if (error.kind() != ErrorKind::bad_input) throw;
      }
    }
    return list;
  }();
  return known;
}

// Letters and digits, in one case.
std::string letters(std::string_view text) {
  std::string result = to_lower(text);
  std::erase_if(result, std::not_fn(is_letter_or_digit));
  return result;
}

bool same_shape(const model::Decoder& a, const model::Decoder& b) {
  return a.hidden == b.hidden && a.vocab == b.vocab && a.kinds == b.kinds && a.layer_kinds == b.layer_kinds &&
         a.tied_embeddings == b.tied_embeddings;
}

// The model of an architecture by its parameters; of several the one that the file is called after, or any where all of
// them run alike.
const KnownModel* model_of(const Record& record, std::string& remark) {
  constexpr double kClose = 2e-3;
  const std::string_view type = record["model_type"];
  const std::string architecture = letters(type.substr(0, type.find(' ')));
  const double parameters = record.number("model_n_params");
  std::vector<const KnownModel*> found;
  for (const KnownModel& known : known_models()) {
    if (letters(model::gguf_architecture_name(known.decoder)) != architecture) continue;
    if (std::abs(known.parameters / parameters - 1) < kClose + record.number("rounding")) found.push_back(&known);
  }
  if (found.empty()) {
    remark = "no built-in model of so many parameters: `model`";
    return nullptr;
  }
  const std::string file = letters(record["model_filename"]);
  const KnownModel* called = nullptr;
  for (const KnownModel* one : found) {
    if (file.find(letters(one->name)) != std::string::npos &&
        (called == nullptr || called->name.size() < one->name.size())) {
      called = one;
    }
  }
  if (called != nullptr) return called;
  const bool alike = std::all_of(found.begin(), found.end(),
                                 [&](const KnownModel* one) { return same_shape(one->decoder, found[0]->decoder); });
  if (!alike) remark = "several models of so many parameters: `model`";
  return alike ? found[0] : nullptr;
}

// "llama 8B Q4_K - Medium", "llama 7B mostly Q4_0", "gpt-oss 20B MXFP4 MoE", "llama 8B IQ4_XS - 4.25 bpw": the format
// is behind architecture and size.
std::string format_of(std::string_view type) {
  std::string text = to_lower(type);
  for (int i = 0; i < 2; ++i) text.erase(0, text.find(' ') == std::string::npos ? text.size() : text.find(' ') + 1);
  for (const std::string_view before : {"mostly ", "all "}) {
    if (text.starts_with(before)) text.erase(0, before.size());
  }
  text.resize(std::min(text.find(" (guessed)"), text.size()));
  const std::size_t dash = text.find(" - ");
  std::string size = dash == std::string::npos ? "" : text.substr(dash + 3, 1);
  text.resize(std::min(dash, text.size()));
  if (size == "s" || size == "m" || size == "l") text += '_' + size;
  std::replace(text.begin(), text.end(), ' ', '_');
  if (text == "iq3_s_mix") text = "iq3_m";
  if (text == "q2_k_m") text = "q2_k";
  const model::GgufFileType* known = model::find_gguf_file_type(text);
  return known == nullptr ? "" : std::string(known->name);
}

// ---- From a record to a step

constexpr std::string_view kUnknown = "unknown";  // Options::hardware where it is not said

// Words that tell models of one number apart.
constexpr std::string_view kTelling[] = {"laptop", "mobile", "max", "ti",    "super", "xt",  "xtx",
                                         "gre",    "pro",    "ada", "ultra", "d",     "plus"};

std::vector<std::string> words_of_title(std::string_view title) {
  std::string text = to_lower(title);
  std::replace_if(text.begin(), text.end(), std::not_fn(is_letter_or_digit), ' ');
  std::vector<std::string> list;
  for (const std::string_view word : words(text)) {
    if (word == "gb" && !list.empty()) {  // "80 GB" is "80GB"
      list.back() += word;
    } else {
      list.emplace_back(word.starts_with("sxm") ? "sxm" : word);
    }
  }
  return list;
}

bool is_cache(std::string_view type) {
  try {
    model::parse_kv_scheme(std::string(type));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Of every device that is built in or on the search path.
struct Titled {
  std::string name;
  std::vector<std::string> title;
};
const std::vector<Titled>& titled_devices() {
  static const std::vector<Titled> titled = [] {
    std::vector<Titled> list;
    for (const std::string& name : descriptor::names(descriptor::Kind::device)) {
      try {
        list.push_back({name, words_of_title(hardware::load_device(name).title)});
      } catch (const Error& error) {  // a file of the search path that is none
        if (error.kind() != ErrorKind::bad_input) throw;
      }
    }
    return list;
  }();
  return titled;
}

// What is read above and below, and what changes no time. Other columns (of forks: fmoe, mla, rtr) are named.
// clang-format off
constexpr std::string_view kKnown =
    "model_type model_filename model_n_params model_size size rounding backends gpu_info cpu_info devices n_gpu_layers "
    "n_threads n_batch n_ubatch split_mode tensor_split no_kv_offload no_op_offload n_cpu_moe tensor_buft_overrides "
    "mmap embeddings flash_attn type_k type_v rpc rpc_servers cuda rocm metal vulkan sycl opencl kompute blas gpu_blas mg "
    "dio build_number build_commit test_time n_prompt n_gen n_depth n_sequences is_pp_shared is_tg_separate avg_ts avg_ns "
    "main_gpu cpu_mask cpu_strict poll numa prio delay use_mmap use_direct_io stddev_ns stddev_ts samples_ns "
    "samples_ts n_kv_max n_threads_batch pp tg pl n_kv t_pp t_tg t speed_pp speed_tg speed s";
// clang-format on

class Steps {
 public:
  Steps(const Options& options, Collector& into) : options_(&options), into_(&into) {
    if (!options.model.empty()) own_.emplace_back().decoder = model::load_decoder(options.model);
    if (options.weights.empty()) return;
    const model::GgufFileType* type = model::find_gguf_file_type(to_lower(options.weights));
    if (!type) throw Error::bad_input("`weights`: no format of GGUF files " + quote(options.weights), "q4_k_m");
    weights_ = type->name;
  }

  void add(const Record& record) {
    measure::Row row;
    row.line = record.line;
    StepRow step;
    std::string remark = fill(record, step, row);
    static const std::vector<std::string_view> known = words(kKnown);
    for (const auto& [field, value] : record.fields) {
      if (!contains(known, field)) into_->pass_over(field);
    }
    const std::string_view type = record["model_type"];
    constexpr double kLongest = 1e12;
    const double rate = record.number("avg_ts");
    const double tokens =
        (d(record.integer("n_prompt")) + d(record.integer("n_gen"))) * d(std::max<std::int64_t>(step.batch, 1));
    const Seconds time{rate > 0 ? std::clamp(tokens / rate, 0.0, kLongest) : 0};
    if (remark.empty()) row.extra = {format_significant(d(step.new_tokens) * d(step.batch) / row.latency.value)};
    row.of = std::move(step);
    into_->add(Class::step, std::string(type.empty() ? "no model" : type), time, {row}, std::move(remark));
  }

 private:
  // Why the record is no measurement; empty: it is.
  std::string fill(const Record& record, StepRow& step, measure::Row& row) {
    step.runtime = "llama.cpp";
    step.tool = name(Source::llama_bench);
    std::string remark = fill_test(record, step, row);
    if (remark.empty()) remark = fill_platform(record, step, row);
    return remark;
  }

  std::string fill_test(const Record& record, StepRow& step, measure::Row& row) {
    const std::int64_t prompt = record.integer("n_prompt");
    const std::int64_t generated = record.integer("n_gen");
    const double rate = record.number("avg_ts");
    if (prompt > 0 && generated > 0) return "prompt and generation in one test";
    if (prompt <= 0 && generated <= 0) return "no tokens";
    if (!(rate > 0)) return "no time";
    if (std::max({prompt, generated, record.integer("n_depth")}) > kMostTokens) return "sizes out of range";
    step.phase = prompt > 0 ? Phase::prefill : Phase::decode;
    step.new_tokens = prompt > 0 ? prompt : 1;
    step.depth = std::max<std::int64_t>(0, record.integer("n_depth"));
    step.gen_tokens = prompt > 0 ? 0 : generated;
    step.context = *step.depth + step.gen_tokens / 2;
    if (!record["n_sequences"].empty()) step.batch = record.integer("n_sequences");
    if (step.batch < 1 || step.batch > kMostRequests) return "sizes out of range";
    row.latency = Seconds{d(step.new_tokens) * d(step.batch) / rate};
    constexpr std::int64_t kBatch = 512;  // llama.cpp's own
    const std::int64_t ubatch = record.integer("n_ubatch") > 0 ? record.integer("n_ubatch") : kBatch;
    step.ubatch = record.integer("n_batch") > 0 ? std::min(ubatch, record.integer("n_batch")) : ubatch;
    const std::string_view keys = record["type_k"].empty() ? "f16" : record["type_k"];
    const std::string_view values = record["type_v"].empty() ? "f16" : record["type_v"];
    if (keys != "f16" || values != "f16")
      step.kv = keys == values ? std::string(keys) : fmt::format("{}/{}", keys, values);
    if (record["flash_attn"] == "1" || record["flash_attn"] == "0") step.flash_attention = record["flash_attn"] == "1";
    const std::string_view day = record["test_time"].substr(0, 10);
    if (day.size() == 10 && day.find_first_not_of("0123456789-") == std::string_view::npos) step.measured = day;
    const std::int64_t number = record.integer("build_number");
    step.build = number > 0 ? fmt::format("b{}", number) : step.measured;
    if (!is_cache(keys) || !is_cache(values)) return "type of the cache not known";
    step.weights = options_->weights.empty() ? format_of(record["model_type"]) : weights_;
    return step.weights.empty() ? "format not known: `weights`" : "";
  }

  std::string fill_platform(const Record& record, StepRow& step, measure::Row& row) {
    constexpr std::pair<std::string_view, std::string_view> kNeutral[] = {
        {"n_cpu_moe", "0"},     {"tensor_buft_overrides", "none"},
        {"no_kv_offload", "0"}, {"no_op_offload", "0"},
        {"embeddings", "0"},    {"rpc", "0"},
        {"rpc_servers", "0"}};
    for (const auto& [field, neutral] : kNeutral) {
      if (!record[field].empty() && record[field] != neutral) return fmt::format("{} is {}", field, record[field]);
    }
    std::string remark;
    const KnownModel* model = own_.empty() ? model_of(record, remark) : own_.data();
    if (model == nullptr) return remark;
    step.model = own_.empty() ? model->name : options_->model;

    const bool said = !record["backends"].empty() || !record["cuda"].empty();  // earlier a field for each
    step.backend = said ? backend_of(record) : "";
    if (said && step.backend.empty()) return fmt::format("backend {}", record["backends"]);
    const bool cpu = step.backend == "cpu";
    std::vector<std::string> gpus = gpus_of(record);
    row.hardware = options_->hardware;
    if (row.hardware == kUnknown) {
      row.hardware = device_called(cpu ? std::string(record["cpu_info"]) : gpus.empty() ? std::string() : gpus[0]);
    }
    if (row.hardware.empty()) row.hardware = kUnknown;
    const hardware::Device* device = load(row.hardware);
    const bool apart = device != nullptr ? estimate::has_own_memory(*device) : !cpu && step.backend != "metal";

    const std::int64_t threads = std::max<std::int64_t>(0, record.integer("n_threads"));
    if (cpu) step.threads = threads;
    if (cpu) return "";
    const std::optional<std::int64_t> layers = parse_int(record["n_gpu_layers"]);
    const bool partial = layers && *layers >= 0 && *layers <= model->decoder.num_layers();
    if (partial && !apart) return "layers on the CPU of the same chip";
    if (partial) {
      step.gpu_layers = layers;
      step.threads = threads;
      step.host = !options_->host.empty() ? options_->host : device_called(std::string(record["cpu_info"]));
      if (step.host.empty()) return "layers on a CPU: `host`";
    }
    return apart ? fill_cards(record, gpus, step) : "";
  }

  // Which of the cards run the model, and how they share it.
  std::string fill_cards(const Record& record, std::vector<std::string>& gpus, StepRow& step) const {
    const std::string_view mode = record["split_mode"];
    if (mode == "none") gpus.resize(std::min<std::size_t>(gpus.size(), 1));
    const std::string_view chosen = record["devices"];
    if (!chosen.empty() && chosen != "auto" && chosen != "none") {
      gpus.resize(std::min(gpus.size(), split(chosen, '/').size()));
    }
    std::vector<double> shares;
    for (const std::string_view share : split(record["tensor_split"], '/')) {
      if (parse_double(share).value_or(0) > 0) shares.push_back(*parse_double(share));
    }
    const bool even = std::all_of(shares.begin(), shares.end(), [&](double share) { return share == shares[0]; });
    if (!even) return "cards with unequal shares (tensor_split)";
    if (!shares.empty()) gpus.resize(std::min(gpus.size(), shares.size()));
    const auto cards = static_cast<std::int64_t>(std::max<std::size_t>(gpus.size(), 1));
    step.n_gpu = mode == "none" ? 1 : options_->ranks.value_or(cards);
    if (step.n_gpu == 1) return "";
    if (std::any_of(gpus.begin(), gpus.end(), [&](const std::string& gpu) { return gpu != gpus[0]; })) {
      return "cards of different kinds";
    }
    step.split = mode.empty() ? "layer" : mode;
    return step.split == "layer" || step.split == "row" || step.split == "tensor" ? ""
                                                                                  : fmt::format("split {}", step.split);
  }

  static std::vector<std::string> gpus_of(const Record& record) {
    std::string text(record["gpu_info"]);
    std::replace(text.begin(), text.end(), '/', ',');
    std::vector<std::string> gpus;
    for (const std::string_view gpu : split(text, ',')) {
      if (!trim(gpu).empty()) gpus.emplace_back(trim(gpu));
    }
    return gpus;
  }

  // "CUDA", "Metal,BLAS"; earlier a field for each. Of a program that could also reach devices elsewhere ("Vulkan,RPC")
  // the others, unless it lists such devices. Empty: one that profiles do not know, or devices elsewhere.
  static std::string backend_of(const Record& record) {
    std::string text = to_lower(record["backends"]);
    const bool fields = record["backends"].empty();
    if (to_lower(record["gpu_info"]).find("rpc") != std::string::npos) return "";
    std::replace(text.begin(), text.end(), '+', ',');
    bool cpu = text.empty();
    std::string found;
    for (const std::string_view known : {"cuda", "rocm", "metal", "vulkan", "sycl"}) {
      const bool metal = known == "metal" && text.find("mtl") != std::string::npos;
      const bool listed = metal || text.find(known) != std::string::npos;
      if (found.empty() && (fields ? record[known] == "1" : listed)) found = known;
    }
    for (const std::string_view one : split(text, ',')) cpu = cpu || trim(one) == "cpu" || trim(one) == "blas";
    return !found.empty() ? found : cpu ? "cpu" : "";
  }

  // The device that a driver calls so; empty: none, or not one alone.
  std::string device_called(const std::string& text) {
    return load_once(called_, text,
                     [&] { return text.empty() || descriptor::is_path(text) ? std::string() : find_device(text); });
  }
  std::string find_device(const std::string& text) {
    if (const hardware::Device* device = load(text)) return device->name;
    const std::vector<std::string> own = words_of_title(text);
    std::string best;
    std::size_t most = 0;
    bool alone = false;
    for (const Titled& titled : titled_devices()) {
      const std::vector<std::string>& title = titled.title;
      const bool inside =
          std::all_of(title.begin(), title.end(), [&](const auto& word) { return contains(own, word); });
      const bool other = std::any_of(std::begin(kTelling), std::end(kTelling), [&](std::string_view word) {
        return contains(own, word) && !contains(title, word);
      });
      if (!inside || other || title.size() < most) continue;
      alone = title.size() > most;
      most = title.size();
      best = titled.name;
    }
    return alone ? best : "";
  }
  const hardware::Device* load(const std::string& name) {
    const auto [at, added] = devices_.try_emplace(name);
    if (added) {
      try {
        at->second = hardware::load_device(name);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
      }
    }
    return at->second ? &*at->second : nullptr;
  }

  const Options* options_;
  Collector* into_;
  std::vector<KnownModel> own_;  // the model that was named
  std::string weights_;          // likewise
  std::map<std::string, std::string> called_;
  std::map<std::string, std::optional<hardware::Device>> devices_;
};

}  // namespace

void read_llama_bench(std::string_view text, const Options& options, Problems& problems, Collector& into) {
  Steps steps(options, into);
  for (const Record& record : read_records(text, problems)) steps.add(record);
}

}  // namespace llmperf::import
