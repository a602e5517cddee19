// The folder that a study is written to: the files of every section, and a README.md that joins them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/study_plan.h"
#include "cli/written_file.h"
#include "report/document.h"
#include "report/study_report.h"

namespace llmperf::cli {

class StudyFolder {
 public:
  // Makes the folder and opens every file in it. Throws Error(failed) for what cannot be written.
  StudyFolder(std::string path, const std::vector<SectionPlan>& plans, report::Language language);

  // The files of a section; `single`: the command's own report where the section is one.
  void write(const report::SectionResult& result, const report::Report* single);
  void write_readme(const report::Report& study);
  // The files that are complete, in the order they were written.
  const std::vector<std::string>& written() const { return written_; }

 private:
  void commit(const std::string& name, const std::string& text);

  std::string path_;
  report::Language language_;
  std::map<std::string, std::unique_ptr<WrittenFile>> open_;  // by name
  std::vector<std::string> written_;
};

}  // namespace llmperf::cli
