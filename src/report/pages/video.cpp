// `llmperf estimate` of generated video.

#include <algorithm>

#include "base/number.h"
#include "base/text.h"
#include "report/pages/phase.h"
#include "report/reports.h"
#include "report/rows.h"
#include "report/table.h"
#include "result/document.h"
#include "result/generation.h"

namespace llmperf::report {
namespace {

using estimate::Phase;
using estimate::VideoEstimate;
using estimate::VideoSetup;
using graph::VideoPurpose;

// "denoising 92.0 %, VAE decoding 5.1 %, …".
std::string phase_shares(const VideoEstimate& e) {
  std::string text;
  for (const Phase& p : e.phases) {
    const bool step = p.name == estimate::kVideoPhases[1];
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", step ? "denoising" : p.name, Share{p.total() / e.generation});
  }
  return text;
}

std::string latent_text(const model::VideoShape& s) {
  return fmt::format("{} x {} x {} (frames x height x width); {} x {} x {} patches: {} tokens", s.latent_frames,
                     s.latent_height, s.latent_width, s.patch_frames, s.patch_rows, s.patch_columns, Count(s.tokens()));
}

// What of the matrix peak is reached, and why no more.
std::string utilisation_text(const VideoEstimate& e) {
  const Phase& step = e.phases[1];
  Seconds products;
  for (const estimate::OpEstimate& op : step.ops) {
    const VideoPurpose purpose = purpose_of(op.op);
    const bool multiplies = purpose == VideoPurpose::product || purpose == VideoPurpose::spatial_attention ||
                            purpose == VideoPurpose::temporal_attention || purpose == VideoPurpose::cross_attention;
    if (multiplies) products += op.step_time();
  }
  return fmt::format("{} of {} in a step, {} over the generation; products and attention take {} of a step",
                     Share{e.step_utilisation}, e.peak, Share{e.generation_utilisation},
                     Share{products / step.ops_time});
}

std::string band_line(const VideoSetup& setup) {
  if (setup.profile == nullptr) return no_band_text(setup);
  const std::optional<Band> b = band(setup);
  if (b)
    return fmt::format("±{} (9 of 10 within {}){}", band_share(b->mean), band_share(b->p90),
                       rows_text(*setup.profile, b->rows, b->rows));
  return setup.profile->error_of("video") == nullptr
             ? "none: the profile was compared with no generations"
             : "none: extrapolated beyond what was fitted, whose errors promise nothing here";
}

Table memory_table(const VideoEstimate& e, bool stages) {
  std::vector<std::pair<std::string, Bytes>> rows = {{"transformer", e.parts.transformer},
                                                     {"text encoder", e.parts.text_encoder},
                                                     {"autoencoder", e.parts.autoencoder}};
  if (e.memory.kv_cache.value > 0) rows.emplace_back("keys and values kept for patches", e.memory.kv_cache);
  const std::pair<const char*, Bytes> peaks[] = {{"encoding", e.parts.text_activation},
                                                 {"a step", e.parts.step_activation},
                                                 {"decoding", e.parts.decode_activation}};
  const auto* most = std::max_element(std::begin(peaks), std::end(peaks),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  rows.emplace_back(fmt::format("activations (peak, in {})", most->first), e.memory.activation);
  rows.emplace_back("runtime reserve", e.memory.reserve);
  rows.emplace_back("total", e.memory.total());
  return capacity_table(stages ? "Memory of a device of the fullest stage" : "Memory", e.capacity, std::move(rows));
}

Paragraph sentence(const Video& video) {
  const VideoSetup& setup = *video.setup;
  const VideoEstimate& e = *video.estimate;
  return opening(fmt::format("{} a generation, {} a step of denoising", e.generation, e.step), e.memory.total(),
                 e.capacity, cost_text(setup.price, video.spent().cost, "a generation"), setup, {band(setup)},
                 !extrapolations(setup).empty());
}

Fields headline(const Video& video, bool full) {
  const VideoSetup& setup = *video.setup;
  const VideoEstimate& e = *video.estimate;
  Fields f;
  const std::optional<Band> b = band(setup);
  f.add("request", request_text(setup));
  f.add("generation", "{} ({})", with_band(e.generation, b), phase_shares(e));
  f.add("denoising step", "{} (bound by {})", with_band(e.step, b), bound_shares(e.phases[1]));
  f.add("latent", latent_text(setup.execution.shape));
  f.add("matrix peak", utilisation_text(e));
  add_spent(setup.price, video.spent(), "a generation", f);
  add_sureness(setup, band_line(setup), extrapolations(setup), f);
  if (setup.devices() > 1) f.add("network", network_text({&e.phases[1], 1}));
  if (!full) f.add("memory", parts_text(memory_table(e, false)));
  if (!full) add_notes(setup.notes, f);
  return f;
}

// Why a step reaches what it does of the matrix peak: a class adds the products it makes over all of the step's time.
Table class_table(const VideoEstimate& e) {
  Table t = titled("A denoising step by what its kernels are for",
                   "<class, kernels, time, share, FLOPs, bytes, of peak, adds, <bound");
  const Seconds all = e.phases[1].ops_time;
  const auto share = [&](Flops flops, Seconds time) {
    return flops.value > 0 && time.value > 0 ? format_share(flops / e.peak / time) : std::string("-");
  };
  estimate::OpGroup sum;
  for (const estimate::OpGroup& c : e.classes) {
    add_row(t, c.name, c.kernels, c.time, Share{c.time / all}, Bare{c.work.matrix + c.work.vector},
            c.work.bytes() + c.work.network, share(c.work.matrix, c.time), share(c.work.matrix, all), c.bound());
    sum += c;
  }
  add_row(t, "all", sum.kernels, all, Share{1}, Bare{sum.work.matrix + sum.work.vector}, sum.work.bytes(),
          share(sum.work.matrix, all), share(sum.work.matrix, all), "");
  return t;
}

Table stage_table(const Video& video) {
  return table_of("Pipeline stages (one device of each)", video.stages,
                  "first: from, last: to, devices, weight_bytes: weights, kv_cache_bytes: kept");
}

Document document(const Video& video, Detail detail) {
  const VideoSetup& setup = *video.setup;
  const VideoEstimate& e = *video.estimate;
  const bool full = detail != Detail::summary;
  const bool stages = setup.stages.size() > 1;
  const Heading heading{setup.execution.model->name + " on " + title_text(*setup.device, setup.devices()),
                        label(setup)};
  if (!e.fits) {
    return refused(heading, of_capacity(e.memory.total(), e.capacity), request_text(setup),
                   {"", {{"latent", latent_text(setup.execution.shape)}}}, memory_table(e, stages), full);
  }
  Document doc{heading, sentence(video), headline(video, full)};
  if (!full) return doc;
  doc.push_back(phases_table(e.phases));
  doc.push_back(class_table(e));
  doc.push_back(memory_table(e, stages));
  if (stages) doc.push_back(stage_table(video));
  if (setup.devices() > 1) doc.push_back(communication_table(video.cluster, stages, e.phases[1]));
  if (detail == Detail::ops) {
    for (const Phase& p : e.phases) doc.push_back(op_table(p));
  }
  doc.push_back(rests_on(setup, figures_used(setup), setup.notes));
  return doc;
}

}  // namespace

Report video_report(const Video& video, Detail detail, Trace trace) {
  return {document(video, detail), detail == Detail::ops ? ops_csv(video.estimate->phases) : csv_of(video),
          result::document("llmperf.estimate", video), std::move(trace)};
}

}  // namespace llmperf::report
