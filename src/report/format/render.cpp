#include <stdexcept>

#include "report/document.h"
#include "report/html/html.h"
#include "result/json.h"

namespace llmperf::report {

std::string with_command(std::string json, const std::string& command) {
  constexpr std::string_view kEnd = "\n}\n";
  if (command.empty() || !json.ends_with(kEnd)) return json;
  std::string key = dump(Json{{"command", command}});  // "{\n  \"command\": …\n}\n"
  json.resize(json.size() - kEnd.size());
  return json + "," + key.substr(1);
}

std::string render(const Report& report, Format format, const Rendering& rendering) {
  switch (format) {
    case Format::table: return render_text(report.document, rendering.colour);
    case Format::md: return render_markdown(report.document);
    case Format::csv: return render_csv(report.csv);
    case Format::json: return with_command(report.json, rendering.command);
    case Format::html: return render_html(with_command(report.json, rendering.command), rendering.language);
    case Format::trace:
      if (!report.trace) throw std::logic_error("a report without a step has no trace");
      return report.trace(rendering.command);
  }
  return {};
}

}  // namespace llmperf::report
