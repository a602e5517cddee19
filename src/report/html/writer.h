// The elements of a report page, as the front end in reports/web expects them. Every text is escaped here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llmperf::report {

// Text made safe between tags and in quoted attributes.
std::string html_escaped(std::string_view text);

struct HtmlCell {
  std::string text;   // for people
  std::string value;  // exact, of a number; else empty
  bool provenance = false;
};
struct HtmlField {
  std::string label;
  HtmlCell cell;
};
struct HtmlColumn {
  std::string key;
  std::string label;
  bool number = false;
};
struct HtmlTable {
  std::string name;
  std::string caption;
  std::vector<HtmlColumn> columns;
  std::vector<std::vector<HtmlCell>> rows;
};
enum class Tone { plain, good, warn, bad };
struct HtmlCard {
  std::string label;
  std::string value;
  std::string note;  // may be empty
  Tone tone = Tone::plain;
};

class HtmlWriter {
 public:
  // A heading and what belongs to it: the page's own sections are of level 2, those in them deeper.
  void open_section(std::string_view id, std::string_view title, int level);
  void close_section() { out_ += "</section>\n"; }
  // What a reader opens: a section of the page where it has an id, else something small behind one line.
  void open_fold(std::string_view css, std::string_view id, std::string_view summary);
  void close_fold() { out_ += "</details>\n"; }
  // Figures beside each other where there is room.
  void open_figures() { out_ += "<div class=\"figures\">\n"; }
  void close_figures() { out_ += "</div>\n"; }
  // What stands between backticks, here and in lists, is code.
  void paragraph(std::string_view text, std::string_view css = {});
  // Seen only where scripts do not run.
  void without_script(std::string_view text);
  void list(const std::vector<std::string>& items);
  void fields(const std::vector<HtmlField>& fields);
  void cards(const std::vector<HtmlCard>& cards);
  void table(const HtmlTable& table);
  // Hidden until the script has drawn it, of a phase or of what stands at a path of the document; both may be empty.
  void figure(std::string_view chart, std::string_view phase, std::string_view title, std::string_view rows = {});
  void command(std::string_view text);
  // A drawing from the document: an image, so that nothing in it runs. `unscripted`: seen where scripts do not run.
  void svg_image(std::string_view svg, std::string_view title, bool unscripted = false);

  const std::string& html() const { return out_; }

 private:
  std::string out_;
  std::string heading_;  // the last one
};

}  // namespace llmperf::report
