#include "report/html_phases.h"

#include <algorithm>
#include <map>

#include "base/number.h"
#include "report/html_generic.h"

namespace llmperf::report {
namespace {

struct Section {
  HtmlWriter& page;
  const Json& document;
  const Labels& labels;
  std::set<std::string>& done;

  const Json* take(const char* key) const {
    const Json* value = find(document, key);
    if (value == nullptr || value->is_null() || is_scalar(*value) || value->empty()) return nullptr;
    done.insert(key);
    return value;
  }
  std::string phase_name(const Json& phase) const { return labels.value("name", find_text(phase, "name")); }
  std::string of_phase(std::string_view text, const Json& phase) const {
    return labels.text("one_phase", {labels.text(text), phase_name(phase)});
  }
};

HtmlCell share_cell(double share) { return {format_share(share), plain(share)}; }

void write_assumptions(const Section& s) {
  s.page.open_section("assumptions", s.labels.text("assumptions"), 2);
  if (const Json* inputs = s.take("inputs")) write_object(s.page, *inputs, "inputs", 3, s.labels);
  for (const char* key : {"error_band", "extrapolations", "notes"}) {
    const Json* value = s.take(key);
    if (value == nullptr) continue;
    s.page.open_section({}, s.labels.title(key), 3);
    write_value(s.page, *value, key, 4, s.labels);
    s.page.close_section();
  }
  s.page.close_section();
}

void write_roofline(const Section& s, const Json& phases) {
  const Json* roofs = s.take("roofs");
  if (roofs == nullptr) return;
  s.page.open_section("roofline", s.labels.text("roofline"), 2);
  for (const Json& phase : phases) {
    s.page.figure("roofline", find_text(phase, "name"), s.of_phase("roofline", phase));
  }
  for (const auto& [key, title] : {std::pair{"memory", "memory_roofs"}, std::pair{"compute", "compute_roofs"}}) {
    const Json* rows = find(*roofs, key);
    if (rows == nullptr || !is_list_of_objects(*rows)) continue;
    HtmlTable table = table_of(*rows, key, s.labels);
    table.name = std::string("roofs-") + key;
    table.caption = s.labels.text(title);
    s.page.table(table);
  }
  s.page.close_section();
}

// Times of a phase's ops added up by what binds them, less what runs at the same time: they add up to the phase.
HtmlTable by_bound(const Section& s, const Json& phases) {
  HtmlTable table{"time-by-bound",
                  s.labels.text("time_by_bound"),
                  {{"phase", s.labels.key("phase"), false},
                   {"bound", s.labels.key("bound"), false},
                   {"time_s", s.labels.key("time_s"), true},
                   {"share", s.labels.text("share"), true}},
                  {}};
  for (const Json& phase : phases) {
    std::map<std::string, double> times;
    double all = 0;
    const Json* ops = find(phase, "ops");
    if (ops == nullptr || !is_list_of_objects(*ops)) continue;
    for (const Json& op : *ops) {
      const double time = find_number(op, "time_s").value_or(0);
      times[find_text(op, "bound")] += time;
      all += time;
    }
    for (const auto& [bound, time] : times) {
      table.rows.push_back({{s.phase_name(phase), {}},
                            {s.labels.value("bound", bound), {}},
                            {format_seconds(Seconds{time}), plain(time)},
                            share_cell(all > 0 ? time / all : 0)});
    }
    for (const char* key : {"overlapped_s", "pipelined_s"}) {
      const double saved = find_number(phase, key).value_or(0);
      if (saved == 0) continue;
      table.rows.push_back({{s.phase_name(phase), {}},
                            {s.labels.key(key), {}},
                            shown(number(-saved), "time_s", {}, s.labels),
                            share_cell(all > 0 ? -saved / all : 0)});
    }
  }
  return table;
}

void write_time(const Section& s, const Json& phases) {
  s.page.open_section("time", s.labels.text("time"), 2);
  for (const Json& phase : phases) {
    const std::string name = find_text(phase, "name");
    s.page.figure("time-by-op", name, s.of_phase("time_by_op", phase));
    s.page.figure("time-by-bound", name, s.of_phase("time_by_bound", phase));
  }
  HtmlTable table = table_of(phases, "phases", s.labels, {"ops"});
  table.caption = s.labels.text("phases");
  s.page.table(table);
  s.page.table(by_bound(s, phases));
  if (const Json* classes = s.take("classes")) write_value(s.page, *classes, "classes", 3, s.labels);
  s.page.close_section();
}

// The columns that a reader looks at first; what a column is to be left out for, where all rows say it.
struct OpColumn {
  const char* key;
  const char* usual;
};
constexpr OpColumn kOpColumns[] = {{"name", ""},           {"kind", ""},   {"class", ""},        {"shape", ""},
                                   {"count", ""},          {"time_s", ""}, {"share", ""},        {"of_roof", ""},
                                   {"bound", ""},          {"flops", ""},  {"bytes", ""},        {"network_bytes", "0"},
                                   {"hidden_s", "0"},      {"roof_s", ""}, {"matrix_dtype", ""}, {"weights", ""},
                                   {"place", "\"device\""}};

// The op as a row of those columns, with its share of the phase and of its roof.
Json op_row(const Json& op, double all) {
  Json row = Json::object();
  const double time = find_number(op, "time_s").value_or(0);
  for (const OpColumn& column : kOpColumns) {
    const std::string key = column.key;
    if (key == "share") {
      row[key] = number(all > 0 ? time / all : 0);
    } else if (key == "of_roof") {
      const auto roof = find_number(op, "roof_s");
      row[key] = roof && time > 0 ? number(*roof / time) : Json(nullptr);
    } else if (const auto value = op.find(key); value != op.end() && is_scalar(*value)) {
      row[key] = *value;
    }
  }
  return row;
}

std::set<std::string> usual_columns(const Json& rows) {
  std::set<std::string> usual;
  for (const OpColumn& column : kOpColumns) {
    if (*column.usual == '\0') continue;
    const Json value = Json::parse(column.usual);
    const bool same = std::all_of(rows.begin(), rows.end(), [&](const Json& row) {
      const auto found = row.find(column.key);
      return found == row.end() || *found == value;
    });
    if (same) usual.insert(column.key);
  }
  return usual;
}

void write_exchanges(const Section& s, const Json& ops) {
  Json rows = Json::array();
  for (const Json& op : ops) {
    const auto collective = op.find("collective");
    if (collective == op.end() || !collective->is_object()) continue;
    Json row = {{"name", find_text(op, "name")}};
    row.update(*collective);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  HtmlTable table = table_of(rows, "exchanges", s.labels);
  table.caption = s.labels.text("exchanges");
  s.page.table(table);
}

void write_ops(const Section& s, const Json& phases) {
  s.page.open_section("ops", s.labels.text("op_table"), 2);
  for (const Json& phase : phases) {
    const Json* ops = find(phase, "ops");
    if (ops == nullptr || !is_list_of_objects(*ops)) continue;
    double all = 0;
    for (const Json& op : *ops) all += find_number(op, "time_s").value_or(0);
    Json rows = Json::array();
    for (const Json& op : *ops) rows.push_back(op_row(op, all));
    s.page.open_section({}, s.phase_name(phase), 3);
    HtmlTable table = table_of(rows, "ops", s.labels, usual_columns(rows));
    table.caption = s.of_phase("op_table", phase);
    s.page.table(table);
    write_exchanges(s, *ops);
    s.page.close_section();
  }
  s.page.close_section();
}

// The parts of a memory, the largest part of a part left to the details below: they add up to the total.
HtmlTable memory_table(const Section& s, const std::string& key, const Json& memory) {
  HtmlTable table{key,
                  s.labels.text(key == "memory" ? "memory_device" : "memory_host"),
                  {{"part", s.labels.text("part"), false},
                   {"bytes", s.labels.text("needed"), true},
                   {"share", s.labels.text("of_capacity"), true}},
                  {}};
  const double capacity = find_number(memory, "capacity_bytes").value_or(0);
  const auto add = [&](const std::string& label, double bytes) {
    table.rows.push_back({{label, {}},
                          {format_bytes_binary(Bytes{bytes}), plain(bytes)},
                          capacity > 0 ? share_cell(bytes / capacity) : HtmlCell{}});
  };
  for (const auto& [name, value] : memory.items()) {
    if (value.is_number() && name.ends_with("_bytes")) add(s.labels.key(name), value.get<double>());
  }
  const auto total = find_number(memory, "total_bytes");
  if (total && capacity > *total) add(s.labels.text("free"), capacity - *total);
  return table;
}

void write_memory(const Section& s) {
  const Json* memory = s.take("memory");
  if (memory == nullptr || !memory->is_object()) return;
  s.page.open_section("memory", s.labels.text("memory"), 2);
  s.page.figure("memory", {}, s.labels.text("memory_device"));
  s.page.table(memory_table(s, "memory", *memory));
  if (const Json* host = s.take("host_memory"); host != nullptr && host->is_object()) {
    s.page.table(memory_table(s, "host_memory", *host));
  }
  if (const Json* stages = s.take("stages")) write_value(s.page, *stages, "stages", 3, s.labels);
  s.page.close_section();
}

void write_context(const Section& s) {
  const Json* curve = s.take("context_curve");
  if (curve == nullptr || !is_list_of_objects(*curve)) return;
  s.page.open_section("context", s.labels.text("context"), 2);
  s.page.figure("context", {}, s.labels.text("context_caption"));
  HtmlTable table = table_of(*curve, "context_curve", s.labels);
  table.caption = s.labels.text("context_caption");
  s.page.table(table);
  s.page.close_section();
}

}  // namespace

std::set<std::string> write_phase_sections(HtmlWriter& page, const Json& document, const Labels& labels) {
  std::set<std::string> done;
  const Section s{page, document, labels, done};
  write_assumptions(s);
  const Json* phases = find(document, "phases");
  if (phases != nullptr && is_list_of_objects(*phases)) {
    done.insert("phases");
    write_roofline(s, *phases);
    write_time(s, *phases);
    write_ops(s, *phases);
  }
  write_memory(s);
  write_context(s);
  return done;
}

}  // namespace llmperf::report
