// The parsers of command-line values: any text gives a value within its rules or a bad-input Error with a message.
#include <cmath>
#include <string>

#include "base/error.h"
#include "cli/output.h"
#include "cost/limits.h"
#include "fuzz.h"
#include "hardware/runtime.h"
#include "model/quantization.h"

namespace {

using namespace llmperf;

template <class Check>
void accept_or_explain(Check check) {
  try {
    check();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty());
    for (const Diagnostic& d : error.diagnostics()) require(!d.message.empty());
  }
}

bool is_width(double bits) { return std::isfinite(bits) && bits > 0 && bits <= 128; }

}  // namespace

void fuzz_cli(std::string_view input) {
  const std::string text(input);
  accept_or_explain([&] {
    const std::int64_t value = cli::count_value("--n", text, 1, 1000);
    require(value >= 1 && value <= 1000);
  });
  accept_or_explain([&] {
    const double value = cli::number_value("--p", text, 0, 1);
    require(value >= 0 && value <= 1);
  });
  accept_or_explain([&] {
    const double value = cli::amount_value("--reserve", text).value;
    require(value >= 0 && value <= 1e18);
  });
  accept_or_explain([&] {
    for (const std::string& item : cli::list_value("--model", text)) require(!item.empty());
  });
  accept_or_explain([&] { cli::format_value("--format", text); });
  accept_or_explain([&] { cli::export_format(text); });
  accept_or_explain([&] {
    const model::WeightScheme scheme = model::parse_weight_scheme(text);
    for (const model::StoredFormat& f : {scheme.linear, scheme.expert, scheme.embedding, scheme.other}) {
      const double bytes = f.bytes(1000, 3000).value;
      require(is_width(f.bits) && std::isfinite(bytes) && bytes > 0);
    }
    // The name of a scheme is a scheme of the same name.
    require(model::parse_weight_scheme(scheme.name).name == scheme.name);
  });
  accept_or_explain([&] { model::parse_kv_scheme(text); });
  accept_or_explain([&] { model::parse_activation_dtype(text); });
  accept_or_explain([&] {
    const hardware::RuntimeOptions options = hardware::parse_runtime_options(text);
    require(hardware::parse_runtime_options(hardware::format_runtime_options(options)) == options);
  });
  accept_or_explain([&] {
    const cost::LimitPrecision precision = cost::parse_limit_precision(text, 16);
    require(is_width(precision.weight_bits) && is_width(precision.kv_bits) && is_width(precision.stored_weight_bits));
  });
}
