#include "report/difference_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number.h"
#include "base/text.h"
#include "report/json.h"
#include "report/quantity.h"

namespace llmperf::report {
namespace {

// Ratios nearer to 1 than this say nothing: they would print as 1.
constexpr double kSmallRatio = 5e-3;

void add_ratio(const char* what, double before, double after, std::vector<std::string>& parts) {
  if (before <= 0 || after <= 0) {
    if (before > 0 || after > 0) parts.push_back(fmt::format("{} {}", after > 0 ? "adds" : "no", what));
    return;
  }
  const double ratio = after / before;
  if (std::abs(ratio - 1) > kSmallRatio) parts.push_back(fmt::format("{} x {}", what, format_significant(ratio, 3)));
}

}  // namespace

std::string change_cell(double before, double after) {
  if (!differs(before, after)) return "-";
  return (after > before ? "+" : "-") + format_seconds(Seconds{std::abs(after - before)});
}

std::string relative_cell(double before, double after) {
  if (!differs(before, after) || before == 0) return "-";
  const double percent = (after / before - 1) * 100;
  return std::abs(percent) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", percent);
}

std::string share_cell(double share) { return format_share(std::abs(share) < 5e-4 ? 0 : share); }

std::string value_text(const std::string& key, const SavedValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "-";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "yes" : "no";
  if (const auto* number = std::get_if<double>(&value)) return quantity_text(key, *number);
  return std::get<std::string>(value);
}

std::string reason(const OpChange& op) {
  if (!op.changes()) return "";
  if (op.name == kOverlapped || op.name == kPipelined) {
    return op.name == kOverlapped ? "what runs beside other ops" : "what stages do at the same time";
  }
  if (!op.before.present) return "added: " + op.after.shape;
  if (!op.after.present) return "does not run any more";
  std::vector<std::string> parts;
  if (op.before.weights != op.after.weights) {
    const auto stored = [](const std::string& format) { return format.empty() ? std::string("plain") : format; };
    parts.push_back(fmt::format("weights {} -> {}", stored(op.before.weights), stored(op.after.weights)));
  }
  if (op.before.count != op.after.count) {
    parts.push_back(fmt::format("count {} -> {}", plain(op.before.count), plain(op.after.count)));
  }
  add_ratio("FLOPs", op.before.flops, op.after.flops, parts);
  add_ratio("bytes", op.before.bytes, op.after.bytes, parts);
  add_ratio("network", op.before.network, op.after.network, parts);
  if (op.before.bound != op.after.bound) {
    parts.push_back(fmt::format("bound {} -> {}", op.before.bound, op.after.bound));
  }
  if (!parts.empty()) return join(parts, ", ");
  return op.before.flops + op.before.bytes + op.before.network > 0 ? "same work, other speed" : "host and runtime";
}

}  // namespace llmperf::report
