// What a report page calls the keys of a document, and its own texts, in a language: the rows of reports/labels.csv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace llmperf::report {

// reports/labels.csv, embedded: "key,en,zh" per line, no quotes. `en` is empty where a field of a
// document says it (result/field.h). Five kinds of
// keys: a JSON key ("ttft_s"), one that is a list where elsewhere it is a count ("rows[]"), a text of the page
// ("@overview"), a value of a JSON key ("bound=memory"), a sentence of a
// result ("~in the simulation only").
std::string_view labels_csv();

class Labels {
 public:
  explicit Labels(Language language) : language_(language) {}
  Language language() const { return language_; }
  // Of a JSON key.
  std::string key(std::string_view key) const;
  // The same as a heading: with a capital letter.
  std::string title(std::string_view key) const;
  // As a heading of a list, where its own row ("rows[]") or else that of the key says it.
  std::string list_title(std::string_view key) const;
  // Of a text of the page, its places {} filled in. Throws std::logic_error for an unknown one.
  std::string text(std::string_view id, const std::vector<std::string>& places = {}) const;
  // What a result says in words: whole, or part by part, as far as the rows "~batch {} (fitted up to {})" know it.
  std::string sentence(const std::string& text) const;
  // Of a value; without a row as a sentence.
  std::string value(std::string_view key, const std::string& value) const;

 private:
  Language language_;
};

}  // namespace llmperf::report
