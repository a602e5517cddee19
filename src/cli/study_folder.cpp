#include "cli/study_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "cli/values.h"

namespace llmperf::cli {
namespace {

constexpr const char* kReadme = "README.md";

}  // namespace

StudyFolder::StudyFolder(std::string path, const std::vector<SectionPlan>& plans, report::Language language)
    : path_(std::move(path)), language_(language) {
  std::error_code problem;
  std::filesystem::create_directories(path_, problem);
  if (!problem && !std::filesystem::is_directory(path_)) problem = std::make_error_code(std::errc::not_a_directory);
  if (problem) throw Error::failed(fmt::format("cannot write {}: {}", path_, problem.message()));
  const auto open = [&](const std::string& name) { open_[name] = std::make_unique<WrittenFile>(path_ + "/" + name); };
  for (const SectionPlan& plan : plans) {
    for (const std::string& form : plan.section->write) open(plan.section->name + "." + form);
  }
  open(kReadme);
}

void StudyFolder::commit(const std::string& name, const std::string& text) {
  WrittenFile& file = *open_.at(name);
  file.commit(text);
  written_.push_back(file.path());
}

void StudyFolder::write(const report::SectionResult& result, const report::Report* single) {
  for (const std::string& form : result.section->write) {
    const std::string name = result.section->name + "." + form;
    const report::Format format = export_format(name);
    if (format == report::Format::csv) {
      if (!result.rows.columns.empty()) commit(name, render_csv(result.rows));
    } else if (format == report::Format::md) {
      commit(name, render_markdown(section_page(result)));
    } else if (single != nullptr) {
      commit(name, render(*single, format, {.language = language_, .command = result.commands.front()}));
    }
  }
}

void StudyFolder::write_readme(const report::Report& study) { commit(kReadme, render_markdown(study.document)); }

}  // namespace llmperf::cli
