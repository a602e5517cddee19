#include "report/error_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/number.h"

namespace llmperf::report {
namespace {

using calibrate::GroupErrors;

// What people call the kinds of group_rows().
constexpr std::pair<std::string_view, std::string_view> kKindTitles[] = {
    {"runtime_phase", "runtime, phase"}, {"batch_band", "batch"}, {"runtime_batch_band", "runtime, batch"},
    {"m_band", "rows of gemm"},          {"layout", "heads"},     {"site", "weight matrix"},
};
std::string kind_title(const std::string& by) {
  for (const auto& [kind, title] : kKindTitles) {
    if (kind == by) return std::string(title);
  }
  return by;
}

std::vector<Column> columns(bool by, bool baselines) {
  std::vector<Column> list;
  if (by) list.push_back({"by", true});
  list.insert(list.end(), {{"group", true}, {"rows"}, {"mean"}, {"median"}, {"p90"}, {"bias"}});
  if (baselines) list.insert(list.end(), {{"roofline"}, {"fitted r."}});
  return list;
}

std::vector<std::string> cells(const GroupErrors& g, const std::string& by, bool baselines) {
  std::vector<std::string> list;
  if (!by.empty()) list.push_back(by);
  list.insert(list.end(),
              {g.name, std::to_string(g.errors.rows), error_text(g.errors.mape), error_text(g.errors.median_ape),
               error_text(g.errors.p90_ape), signed_error_text(g.errors.bias)});
  if (baselines) list.insert(list.end(), {error_text(g.roofline_mape), error_text(g.fitted_roofline_mape)});
  return list;
}

Table worst_table(std::vector<GroupErrors> groups, std::size_t shown, bool baselines) {
  const std::size_t all = groups.size();
  std::stable_sort(groups.begin(), groups.end(),
                   [](const GroupErrors& a, const GroupErrors& b) { return a.errors.mape > b.errors.mape; });
  groups.resize(shown);
  Table t{fmt::format("The {} worst of {} groups by {}", shown, all, kind_title(groups.front().by)),
          columns(false, baselines),
          {}};
  for (const GroupErrors& g : groups) t.rows.push_back(cells(g, "", baselines));
  return t;
}

}  // namespace

std::string error_text(double share) { return format_share(share); }

std::string signed_error_text(double share) {
  const std::string text = format_share(share);
  if (text == "0.0 %" || text == "-0.0 %") return "0.0 %";
  return share > 0 ? "+" + text : text;
}

std::vector<Table> error_tables(const std::string& title, std::span<const GroupErrors> groups, bool baselines) {
  constexpr std::size_t kMany = 16;
  constexpr std::size_t kWorst = 10;
  std::vector<Table> tables = {{title, columns(true, baselines), {}}};
  for (std::size_t begin = 0; begin < groups.size();) {
    std::size_t end = begin;
    while (end < groups.size() && groups[end].by == groups[begin].by) ++end;
    const std::span<const GroupErrors> kind = groups.subspan(begin, end - begin);
    begin = end;
    if (kind.size() > kMany) {
      tables.push_back(worst_table({kind.begin(), kind.end()}, kWorst, baselines));
    } else if (kind.size() > 1) {
      for (const GroupErrors& g : kind) tables.front().rows.push_back(cells(g, kind_title(g.by), baselines));
    }
  }
  if (tables.front().rows.empty()) tables.erase(tables.begin());
  return tables;
}

Json errors_json(const GroupErrors& e, bool baselines) {
  Json json = {{"rows", e.errors.rows},
               {"mape", number(e.errors.mape)},
               {"median_ape", number(e.errors.median_ape)},
               {"p90_ape", number(e.errors.p90_ape)},
               {"max_ape", number(e.errors.max_ape)},
               {"bias", number(e.errors.bias)}};
  if (baselines) {
    json["roofline_mape"] = number(e.roofline_mape);
    json["fitted_roofline_mape"] = number(e.fitted_roofline_mape);
  }
  return json;
}

Json groups_json(std::span<const GroupErrors> groups, bool baselines) {
  Json list = Json::array();
  for (const GroupErrors& g : groups) {
    Json json = {{"by", g.by}, {"name", g.name}};
    json.update(errors_json(g, baselines));
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace llmperf::report
