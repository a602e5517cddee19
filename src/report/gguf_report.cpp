#include "report/gguf_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/number.h"
#include "report/estimate_report.h"
#include "report/json.h"

namespace llmperf::report {
namespace {

using estimate::GgufStudyRow;

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

std::string speed(const GgufStudyRow& row, double tokens_per_second) {
  return row.offloaded ? format_significant(tokens_per_second) : "-";
}

Table table(const GgufStudy& study, std::int64_t prefill, bool host) {
  const std::int64_t layers = study.model->num_layers() + 1;
  Table t{study.model->name,
          {{"type", true},
           {"file"},
           {"BPW"},
           {host ? "device memory" : "memory"},
           {"fits", true},
           {host ? "layers on device" : "layers"},
           {fmt::format("prefill {} [t/s]", prefill)},
           {"decode [t/s]"}},
          {}};
  for (const GgufStudyRow& row : study.rows) {
    t.rows.push_back({upper(row.name), format_bytes(row.file), fmt::format("{:.2f}", row.bits_per_weight),
                      format_bytes_binary(row.memory.total()),
                      row.fits        ? "yes"
                      : row.offloaded ? "split"
                                      : "no",
                      row.offloaded ? fmt::format("{}/{}", *row.offloaded, layers) : "-",
                      speed(row, row.prefill_tokens_per_second), speed(row, row.decode_tokens_per_second)});
  }
  return t;
}

Json row_json(const GgufStudy& study, const GgufStudyRow& row) {
  const auto timed = [&](double value) { return row.offloaded ? number(value) : Json(nullptr); };
  return {{"model", study.model->name},
          {"weights", row.name},
          {"imatrix", row.imatrix},
          {"tensor_bytes", number(row.tensors)},
          {"file_bytes", number(row.file)},
          {"bits_per_weight", number(row.bits_per_weight)},
          {"device_weight_bytes", number(row.memory.weights)},
          {"kv_cache_bytes", number(row.memory.kv_cache)},
          {"compute_buffer_bytes", number(row.memory.activation)},
          {"reserve_bytes", number(row.memory.reserve)},
          {"total_bytes", number(row.memory.total())},
          {"fits", row.fits},
          {"layers", study.model->num_layers() + 1},
          {"layers_on_device", row.offloaded ? Json(*row.offloaded) : Json(nullptr)},
          {"prefill_tokens_per_second", timed(row.prefill_tokens_per_second)},
          {"decode_tokens_per_second", timed(row.decode_tokens_per_second)}};
}

}  // namespace

Report gguf_report(const std::vector<GgufStudy>& studies, const GgufStudyInputs& in) {
  const Bytes capacity = *in.device->dram().capacity;
  const std::int64_t prefill = std::min(estimate::kStudyPrompt, in.context);
  Document doc{Heading{"GGUF file types on " + in.device->title, kUncalibrated},
               Paragraph{fmt::format("one sequence of {} token{}, KV cache {}; rules of {}; {} of memory{}",
                                     format_count(static_cast<double>(in.context)), in.context == 1 ? "" : "s",
                                     in.kv.name(), name(in.era), format_bytes_binary(capacity),
                                     in.host ? "; what does not fit stays on " + in.host->title : "")}};
  Json rows = Json::array();
  for (const GgufStudy& study : studies) {
    doc.push_back(table(study, prefill, in.host != nullptr));
    for (const GgufStudyRow& row : study.rows) rows.push_back(row_json(study, row));
  }
  Fields notes;
  if (in.host) {
    notes.rows = {{"device memory",
                   "weights but the token embedding, KV cache, compute buffers and the runtime reserve, everything "
                   "offloaded"},
                  {"fits", "split: with some layers on the host; no: neither, the host is too small"},
                  {"layers on device", "the most that fit, the head being one; speeds are of that split"}};
  } else {
    notes.rows = {{"memory", "weights, KV cache, compute buffers and the runtime reserve"}};
  }
  notes.rows.emplace_back("file", "tensors as stored, and an estimate of the metadata");
  for (const std::string& note : in.notes) notes.rows.emplace_back("note", note);
  doc.push_back(notes);

  Json json = json_header("llmperf.gguf");
  json["label"] = kUncalibrated;
  json["hardware"] = in.device->name;
  json["host"] = in.host ? Json(in.host->name) : Json(nullptr);
  json["capacity_bytes"] = number(capacity);
  json["context_tokens"] = in.context;
  json["prefill_tokens"] = prefill;
  json["kv"] = in.kv.name();
  json["gguf_era"] = std::string(name(in.era));
  json["rows"] = rows;
  json["notes"] = in.notes;
  return {std::move(doc), csv_of(rows), dump(json)};
}

}  // namespace llmperf::report
