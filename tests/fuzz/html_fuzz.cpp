// Saved results made into HTML: any text gives a page that ends as one, in which nothing of the text is markup or ends
// a script element, or a bad-input Error with a message.
#include <string>

#include "base/error.h"
#include "fuzz.h"
#include "report/html/html.h"

namespace {

using namespace llmperf;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

void fuzz_html(std::string_view text) {
  try {
    const std::string page = report::render_html(std::string(text), report::Language::chinese);
    require(page.ends_with("</html>\n"));
    require(count(page, "<main>") == 1 && count(page, "</main>") == 1);
    require(count(page, "<section") == count(page, "</section>") && count(page, "<td") == count(page, "</td>"));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::bad_input && !error.diagnostics().empty());
  }
}
