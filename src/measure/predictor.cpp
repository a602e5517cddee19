#include "measure/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/integer.h"
#include "base/list.h"
#include "base/load_once.h"
#include "base/text.h"
#include "mapper/roofline/efficiency.h"
#include "mapper/roofline/step_overhead.h"
#include "measure/row_ops.h"
#include "model/model_file.h"
#include "model/parameters.h"

namespace llmperf::measure {
namespace {

// A text that two ops share when they take the same time.
std::string key_of(const graph::Op& op, const cost::Work& work, const mapper::Machine& machine) {
  std::string key;
  const auto add = [&](double x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
  for (const double x :
       {d(static_cast<std::int64_t>(op.body.index())), d(static_cast<int>(op.place)), d(op.launches),
        d(static_cast<int>(machine.efficiency()->profile().choices.power)),
        d(static_cast<int>(machine.efficiency()->profile().choices.eager)), work.matrix.value, work.vector.value,
        work.weights.value, work.activations_read.value, work.activations_written.value, work.kv_read.value,
        work.kv_written.value, work.network.value}) {
    add(x);
  }
  add(machine.upload_share(op) ? 1 : 0);
  mapper::each_extent(op, add);
  return key;
}

}  // namespace

struct Predictor::Case {
  std::unique_ptr<estimate::Estimator> estimator;
  double parameters = 0;
  std::string note = {};
};
struct Predictor::UniqueOp {
  graph::Op op;
  cost::Work work;
  const mapper::Machine* machine;
  const hardware::KernelChoices& choices() const { return machine->efficiency()->profile().choices; }
};

Predictor::Predictor(const Measurements& measurements, const std::vector<std::size_t>& rows,
                     const hardware::Device& device, const hardware::RuntimeProfile& profile, Refusals* refused)
    : device_(device), profile_(profile) {
  Refusals own;
  Refusals& refusals = refused != nullptr ? *refused : own;
  for (const std::size_t row : rows) {
    const Row& r = measurements.rows[row];
    items_of_.emplace_back().begin = items_.size();
    roofs_.emplace_back();
    try {
      if (const auto* step = std::get_if<StepRow>(&r.of)) {
        add_step(*step);
      } else {
        add_op(std::get<OpRow>(r.of));
      }
    } catch (const Error& error) {
      refusals.add(measurements, row, error);
      items_.resize(items_of_.back().begin);
      items_of_.pop_back();
      roofs_.pop_back();
      continue;
    }
    rows_.push_back(row);
    RowItems& items = items_of_.back();
    items.prompt_end = items_.size();
    if (items.of == nullptr) items.end = items.prompt_end;
  }
  own.throw_if_any();
  dependents_.resize(hardware::kAllParameters);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    for (const std::size_t p : mapper::parameters_of(ops_[i].op, ops_[i].choices())) dependents_[p].push_back(i);
    if (ops_[i].machine->upload_share(ops_[i].op) != hardware::Parameter::upload_pinned_share) continue;
    dependents_[index(hardware::Parameter::upload_pinned_share)].push_back(i);
    dependents_[index(hardware::Parameter::vector_launch)].push_back(i);
  }
  op_seconds_.resize(ops_.size());
  trial_.resize(ops_.size());
}

Predictor::~Predictor() = default;

namespace {

// Backends of llama.cpp, and what the families of devices begin with on which they run.
constexpr std::pair<std::string_view, std::string_view> kBackends[] = {
    {"cuda", "nvidia"},   {"rocm", "amd"},    {"hip", "amd"},      {"metal", "apple"},
    {"vulkan", "nvidia"}, {"vulkan", "amd"},  {"vulkan", "intel"}, {"vulkan", "apple"},
    {"sycl", "intel"},    {"cann", "ascend"}, {"cpu", "cpu"}};

void check_backend(const StepRow& row, const hardware::Device& device) {
  const std::string name = row.backend.substr(0, row.backend.find('?'));
  std::vector<std::string> fit;
  for (const auto& [backend, family] : kBackends) {
    if (device.family.starts_with(family)) fit.emplace_back(backend);
  }
  if (name.empty() || contains(fit, name)) return;
  throw Error::bad_input(fmt::format("'backend': {} of {} does not run on {}", quote(name), row.runtime, device.name),
                         fit.empty() ? "" : fmt::format("known: {}", join(fit, ", ")));
}

}  // namespace

estimate::Choices Predictor::choices_of(const StepRow& row, const model::Decoder& decoder) {
  estimate::Choices choices = step_choices(row, profile_, decoder);
  if (row.ubatch > 0) choices.micro_batch = row.ubatch;
  const bool drafts = row.phase == Phase::verify && row.new_tokens > 1 && decoder.next_token_layers > 0;
  if (drafts && model::gguf_weights(*choices.weights) == nullptr) {
    auto file = std::make_shared<model::ModelFile>();
    file->decoder = model::next_token_draft(decoder);
    choices.draft = estimate::Draft{.kind = estimate::Draft::Kind::next_token,
                                    .file = std::move(file),
                                    .tokens = row.new_tokens - 1,
                                    .acceptance = {}};
  }
  if (!estimate::has_own_memory(device_)) return choices;
  if (!row.host.empty()) {
    choices.host = &load_once(hosts_, row.host, [&] { return hardware::load_device(row.host); });
  }
  if (row.gpu_layers && *row.gpu_layers <= decoder.num_layers()) {
    if (row.host.empty()) {
      throw Error::bad_input(fmt::format("'gpu_layers' leaves layers of {} to a CPU", row.model),
                             "'host' names its device");
    }
    choices.gpu_layers = row.gpu_layers;
  }
  return choices;
}

const Predictor::Case& Predictor::case_of(const StepRow& row) {
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", row.model, row.weights, row.kv, row.tp, row.ep,
                  row.dp, row.pp, row.execution, row.options, row.n_gpu, row.split, row.gpu_layers.value_or(-1),
                  row.host, row.flash_attention ? static_cast<int>(*row.flash_attention) : -1, row.ubatch, row.threads,
                  row.phase == Phase::verify ? row.new_tokens : 0);
  std::unique_ptr<Case>& found = cases_[key];
  if (found) return *found;
  std::unique_ptr<model::Decoder>& decoder = models_[row.model];
  if (!decoder) decoder = std::make_unique<model::Decoder>(model::load_decoder(row.model));
  estimate::Choices choices = choices_of(row, *decoder);
  if (const auto broken = graph::problems(*decoder, choices.plan); !broken.empty()) {
    throw Error::bad_input(broken.front().message, broken.front().hint);
  }
  auto made = std::make_unique<Case>();
  const hardware::Device* cpu = device_.kind == hardware::DeviceKind::cpu ? &device_ : choices.host;
  if (row.threads > 0 && cpu != nullptr) {
    choices.threads = std::min(row.threads, cpu->cores.value_or(row.threads));
    if (*choices.threads < row.threads) {  // they share the cores
      made->note = fmt::format("{} threads on {} cores of {}: as one each", row.threads, *cpu->cores, cpu->name);
    }
  }
  made->estimator = std::make_unique<estimate::Estimator>(estimate::make_setup(*decoder, device_, choices));
  made->parameters = d(model::count_parameters(*decoder).total);
  found = std::move(made);
  return *found;
}

const std::string& Predictor::note(std::size_t row) const {
  static const std::string kNone;
  return items_of_[row].of == nullptr ? kNone : items_of_[row].of->note;
}

const estimate::Setup* Predictor::setup_of(std::size_t row) const {
  return items_of_[row].of == nullptr ? nullptr : &items_of_[row].of->estimator->setup();
}

bool Predictor::runs(std::size_t row, const StepRow& step) const {
  const estimate::Estimator& estimator = *items_of_[row].of->estimator;
  const std::int64_t length = step.context + step.new_tokens;
  return length <= estimator.setup().execution.model->max_position.value_or(length) &&
         estimator.fits({.batch = step.batch, .prompt = 1, .generate = length});
}

void Predictor::add_step(const StepRow& row) {
  check_backend(row, device_);
  const Case& of = case_of(row);
  estimate::Estimator& estimator = *of.estimator;
  const estimate::Setup& setup = estimator.setup();
  RowItems& items = items_of_.back();
  items.of = &of;
  items.prompts = row.phase == Phase::prefill;
  items.layers = d(setup.execution.model->num_layers());
  items.parameters = of.parameters;
  graph::SequenceGroup& group = items.group;
  group = {estimator.replica_batch({.batch = row.batch}), row.new_tokens, row.context, row.phase == Phase::verify};
  group.count = running_batch(estimator, profile_, row, group);
  items.sequences = d(group.count);
  if (setup.execution.plan.pipeline > 1) {
    items.micro_batches = estimator.micro_batches({.batch = group.count * setup.execution.plan.data});
    group.count = (group.count + items.micro_batches - 1) / items.micro_batches;
  }
  graph::Graph graph;
  graph::build_step(setup.execution, {&group, 1}, graph::Part::all, graph);
  RowRoof& roof = roofs_.back();
  for (const graph::Op& op : graph) add(op, estimator.machine(), roof, setup.host);
  const estimate::Estimator* drafts = estimator.draft();
  if (drafts != nullptr && items.micro_batches == 0) add_drafts(*drafts, row, roof);
  if (items.micro_batches > 0) roof.roof = pipelined(items).roof;
  items.end = items_.size();
  items.prompts_per_step = row.prompts_per_step();
  if (items.prompts_per_step == 0) return;
  const graph::SequenceGroup mixed[] = {group, {1, row.prompt, 0}};
  graph::build_step(setup.execution, mixed, graph::Part::all, graph);
  RowRoof of_prompt;
  for (const graph::Op& op : graph) add(op, estimator.machine(), of_prompt, setup.host);
  roof.compute += of_prompt.compute * items.prompts_per_step;
  roof.memory += of_prompt.memory * items.prompts_per_step;
  roof.network += of_prompt.network * items.prompts_per_step;
  roof.products += of_prompt.products * items.prompts_per_step;
  roof.kernels += of_prompt.kernels * items.prompts_per_step;
}

// As Estimator::phase has it: the steps in a row stand for the middle one, and what is made of a verified token's
// states is made once.
void Predictor::add_drafts(const estimate::Estimator& drafts, const StepRow& row, RowRoof& roof) {
  const estimate::Setup& setup = drafts.setup();
  const std::int64_t steps = setup.serving.drafts;
  const graph::SequenceGroup group = {drafts.replica_batch({.batch = row.batch}), 1, row.context + (steps - 1) / 2};
  graph::Graph graph;
  graph::build_step(setup.execution, {&group, 1}, graph::Part::all, graph);
  for (graph::Op& op : graph) {
    op.count *= op.tag == graph::Tag::join_states ? 1 : steps;
    add(op, drafts.machine(), roof, setup.host);
  }
  items_of_.back().layers += d(setup.execution.model->num_layers() * steps);
}

const estimate::Phase& Predictor::pipelined(const RowItems& row) {
  row.of->estimator->step(row.group, row.micro_batches, phase_);
  return phase_;
}

void Predictor::add_op(const OpRow& row) {
  if (std::holds_alternative<TransferShape>(row.shape) && !estimate::has_own_memory(device_)) {
    throw Error::bad_input(fmt::format("{} has no memory of its own to copy to", device_.name));
  }
  for (const graph::Op& op : ops_of(row, profile_)) add(op, machine_of(row), roofs_.back());
}

// A profile that says nothing of power makes no difference between loads.
const mapper::Machine& Predictor::machine_of(const OpRow& row) {
  using hardware::Power;
  const auto* gemm = std::get_if<GemmShape>(&row.shape);
  const Power own = profile_.choices.power;
  const Power power = own == Power::none || !gemm ? own : hardware::parse_power(gemm->power).value_or(own);
  const bool eager = row.mode.empty() ? profile_.choices.eager : row.mode == kEager;
  Loaded& load = loads_[{power, eager}];
  if (!load.machine) {
    load.profile = profile_;
    load.profile.choices.power = power;
    load.profile.choices.eager = eager;
    load.machine = std::make_unique<mapper::Machine>(device_, cost::make_cluster(device_), nullptr,
                                                     estimate::link_of(device_).per_direction, &load.profile,
                                                     mapper::TileModel::mapped, mapper::HostSide{.pinned = true});
  }
  return *load.machine;
}

namespace {

// Of products of 16-bit operands; by the vector engines where there are no others.
FlopsPerSecond rate_of_products(const hardware::Device& device) {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    if (const hardware::Peak* peak = device.find_peak(hardware::Engine::matrix, dtype)) return peak->rate;
  }
  return device.find_peak(hardware::Engine::vector, Dtype::fp16)->rate;
}

}  // namespace

void Predictor::add(const graph::Op& op, const mapper::Machine& machine, RowRoof& roof, const hardware::Device* host) {
  const cost::Work work = machine.work(op);
  const double count = d(op.count);
  // The speed of light of the op, without the profile.
  const mapper::OpTime light =
      op.place == graph::Place::network
          ? mapper::time_of(cost::collective_cost(machine.cluster(), std::get<graph::Collective>(op.body)))
      : op.place == graph::Place::link ? machine.time(op, work)
                                       : machine.roofline(op.place).time(work);
  roof.kernels += count * op.launches;
  roof.compute += (light.matrix + light.vector) * count;
  roof.memory += light.memory * count;
  roof.network += light.network * count;
  const bool on_host = op.place == graph::Place::host && host != nullptr;
  roof.products += work.matrix / rate_of_products(on_host ? *host : device_) * count;
  // Of a measured copy, too, the link's own rate is the roof.
  const bool linked = op.place == graph::Place::network || (op.place == graph::Place::link && host == nullptr);
  roof.roof += (linked ? light.roof : light.total) * count;
  const auto [it, added] = index_.try_emplace(key_of(op, work, machine), static_cast<std::uint32_t>(ops_.size()));
  if (added) ops_.push_back({op, work, &machine});
  items_.push_back({it->second, count, op.overlaps});
}

double Predictor::seconds_of(std::size_t op) const {
  const UniqueOp& unique = ops_[op];
  return unique.machine->time(unique.op, unique.work).total.value;
}

double Predictor::row_seconds(const RowItems& row, const std::vector<double>& op_seconds,
                              const mapper::StepOverhead* overhead) const {
  double device = 0;
  double before = 0;
  for (std::size_t i = row.begin; i < row.end; ++i) {
    const Item& item = items_[i];
    const double seconds = op_seconds[item.op] * item.count;
    device += seconds;
    if (item.overlaps) device -= ops_[item.op].machine->hidden_share(ops_[item.op].op) * std::min(seconds, before);
    before = seconds;
  }
  return overhead ? device + overhead->time(Seconds{device}, row.layers, row.sequences).value : device;
}

double Predictor::others_prompts(const RowItems& row, const std::vector<double>& op_seconds) const {
  if (row.end == row.prompt_end) return 0;
  double seconds = 0;
  for (std::size_t i = row.end; i < row.prompt_end; ++i) seconds += op_seconds[items_[i].op] * items_[i].count;
  for (std::size_t i = row.begin; i < row.end; ++i) seconds -= op_seconds[items_[i].op] * items_[i].count;
  return seconds * row.prompts_per_step * get(profile_.values, hardware::Parameter::step_prompts);
}

std::vector<mapper::StepOverhead> Predictor::overheads() const {
  std::vector<mapper::StepOverhead> result;
  for (const RowItems& row : items_of_) {
    if (row.of == nullptr) continue;
    const estimate::Setup& setup = row.of->estimator->setup();
    mapper::StepOverhead& overhead = result.emplace_back(
        profile_.values,
        setup.dispatch_of(row.prompts, row.group.count, row.group.count * row.group.new_tokens, row.group.context),
        row.prompts, profile_.choices.overlapped);
    for (std::size_t i = row.begin; i < row.end; ++i) overhead.add(ops_[items_[i].op].op, items_[i].count);
  }
  return result;
}

void Predictor::predict(std::span<const double> values, std::optional<std::size_t> changed, std::span<double> seconds) {
  std::copy(values.begin(), values.end(), profile_.values.begin());
  for (auto& [how, load] : loads_) load.profile.values = profile_.values;
  std::vector<mapper::StepOverhead> trial_overheads;
  if (!changed) {
    for (std::size_t i = 0; i < ops_.size(); ++i) op_seconds_[i] = seconds_of(i);
    overheads_ = overheads();
  } else {
    trial_ = op_seconds_;
    for (const std::size_t i : dependents_[*changed]) trial_[i] = seconds_of(i);
    if (hardware::of_host(*changed)) trial_overheads = overheads();
  }
  const std::vector<double>& times = changed ? trial_ : op_seconds_;
  const std::vector<mapper::StepOverhead>& steps = trial_overheads.empty() ? overheads_ : trial_overheads;
  std::size_t step = 0;
  for (std::size_t i = 0; i < items_of_.size(); ++i) {
    if (items_of_[i].micro_batches > 0) {
      seconds[i] = pipelined(items_of_[i]).time.value;
      ++step;
    } else {
      seconds[i] = row_seconds(items_of_[i], times, items_of_[i].of ? &steps[step++] : nullptr);
    }
    seconds[i] += others_prompts(items_of_[i], times);
  }
}

estimate::Shares Predictor::shares(std::size_t row) const {
  const RowItems& items = items_of_[row];
  estimate::Shares shares = {};
  const auto share = [&](estimate::Part part) -> double& { return shares[static_cast<std::size_t>(part)]; };
  const auto add = [&](std::size_t i, double times) {
    const Item& item = items_[i];
    share(estimate::part_of(ops_[item.op].op)) += op_seconds_[item.op] * item.count * times;
  };
  for (std::size_t i = items.begin; i < items.end; ++i) add(i, 1);
  const double own = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (items.of != nullptr) {
    const auto step = std::count_if(items_of_.begin(), items_of_.begin() + static_cast<std::ptrdiff_t>(row),
                                    [](const RowItems& r) { return r.of != nullptr; });
    share(estimate::Part::host) +=
        overheads_[static_cast<std::size_t>(step)].time(Seconds{own}, items.layers, items.sequences).value;
  }
  const double prompts = items.prompts_per_step * get(profile_.values, hardware::Parameter::step_prompts);
  for (std::size_t i = items.end; i < items.prompt_end; ++i) add(i, prompts);
  estimate::normalise(shares);
  return shares;
}

std::vector<std::size_t> Predictor::parameters() const {
  const bool steps = std::any_of(items_of_.begin(), items_of_.end(), [](const RowItems& r) { return r.of != nullptr; });
  std::vector<bool> launches(hardware::kAllParameters);
  for (const UniqueOp& op : ops_) {
    if (const auto host = mapper::host_parameter_of(op.op, op.choices())) launches[*host] = true;
  }
  std::vector<std::size_t> result;
  for (std::size_t p = 0; p < hardware::kAllParameters; ++p) {
    const bool of_step = steps && p < hardware::kParameters && hardware::of_host(p);
    if (!dependents_[p].empty() || launches[p] || of_step) result.push_back(p);
  }
  return result;
}

}  // namespace llmperf::measure
