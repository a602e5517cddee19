// What the commands print: a report of each result. Which fields people see, in which order and with which words, is
// said in the chapter of that name under pages/; CSV and JSON are the fields as src/result declares them.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"

namespace llmperf {
struct Explanation;
}
namespace llmperf::measure {
struct Validation;
struct Calibration;
}  // namespace llmperf::measure
namespace llmperf::import {
struct Imported;
}
namespace llmperf::replay {
struct Study;
}
namespace llmperf::hardware {
struct Device;
struct RuntimeProfile;
}  // namespace llmperf::hardware

namespace llmperf::result {
struct CapacityResult;
struct Generation;
struct Serving;
struct Training;
struct Video;
struct ProgramStudy;
struct ParallelStudy;
struct StrategyStudy;
struct ModelShown;
struct VideoModelShown;
struct ModelList;
struct DeviceList;
struct RuntimeList;
struct MeasurementList;
struct Limits;
struct GgufLimits;
struct CollectiveStudy;
struct Difference;
struct Differences;
struct TextComparison;
struct VideoComparison;
struct Explainable;
struct MappingStudy;
struct SelfTest;
struct StepMapping;
struct SweepResult;
struct StudyList;
struct StudySummary;
}  // namespace llmperf::result

namespace llmperf::report {

// The first screen; all tables; … and every op.
enum class Detail { summary, full, ops };

// `llmperf estimate`, and `--training`.
Report estimate_report(const Generation& generation, Detail detail, Trace trace = {});
Report video_report(const Video& video, Detail detail, Trace trace = {});
Report training_report(const Training& training, Detail detail, Trace trace = {});

// `llmperf serve`; its CSV has a row for each request. The bounds that are missed, each as text.
Report serving_report(const Serving& serving, Trace trace = {});
std::vector<std::string> missed_bounds(const Serving& serving);

// `llmperf graph`. `json`: whether it is wanted; of a program of many ops it is by far the largest part.
Report program_report(const ProgramStudy& study, Detail detail, bool json);

// `llmperf capacity`.
Report capacity_report(const result::CapacityResult& result);

// `llmperf parallel`, and `--symbolic`.
Report parallel_report(const ParallelStudy& study);
Report strategy_report(const StrategyStudy& study);

// `llmperf compare` of two sets of options.
Report compare_report(const TextComparison& compared);
Report compare_report(const VideoComparison& compared);

// `llmperf list` and `llmperf show`.
Report model_report(const ModelShown& shown);
Report video_model_report(const VideoModelShown& shown);
Report model_list_report(const ModelList& list);
Report hardware_report(const hardware::Device& device);
Report hardware_list_report(const DeviceList& list);
// Every number of a profile with its meaning, where it comes from and how sure it is.
Report runtime_report(const hardware::RuntimeProfile& profile);
Report runtime_list_report(const RuntimeList& list);
Report measurement_list_report(const MeasurementList& list);

// `llmperf limits`: the closed form, and models in GGUF file types.
Report limits_report(const Limits& limits);
Report gguf_report(const GgufLimits& limits);

// `llmperf compare` of two results, and of several with the first of them.
Report difference_report(const Difference& difference);
Report differences_report(const Differences& differences);

// `llmperf explain`: one number, or the paths of all.
Report explain_report(const Explanation& explanation);
Report explainable_report(const Explainable& explainable);

// `llmperf map-collective`; throws Error(bad_input) when the algorithm asked for does not exist for the collective.
Report collective_report(CollectiveStudy study);
// `llmperf map`; draws the schedule of the best mapping into the study.
Report mapping_report(MappingStudy& study);
// `llmperf map model`.
Report step_mapping_report(const result::StepMapping& study);

// Of measurements. Tables list every row while there are few, else the worst; CSV and JSON hold all. The CSV of a
// calibration is its parameters.
Report validate_report(const measure::Validation& validation);
Report calibrate_report(const measure::Calibration& calibration);
Report import_report(const import::Imported& imported);
Report replay_report(const replay::Study& study);
Report self_test_report(const SelfTest& test);

// `llmperf sweep` and `merge`: the outputs that need all rows at once.
Report sweep_report(const SweepResult& result);
Report study_list_report(const StudyList& list);
Report study_summary_report(const StudySummary& summary);

}  // namespace llmperf::report
