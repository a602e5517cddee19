#include "result/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/number.h"
#include "base/text.h"
#include "result/parts.h"

namespace llmperf::result {
namespace {

using program::LoweredOp;

struct FusedInstruction {
  std::string_view name;
  int line;
};
// An exchange of the program.
struct KernelExchange {
  Kernel kernel;
  Exchanged exchanged;
};
struct IdleOp {
  std::string_view name;
  std::int64_t count;
};
struct ProductLines {
  program::Role role;
  std::vector<int> lines;
};
struct Block {
  const program::Program* program;
  const program::TransformerBlock* block;
};

std::vector<std::string> types(const Kernel& k, const std::vector<program::TensorId>& tensors) {
  std::vector<std::string> texts;
  for (const auto tensor : tensors) texts.push_back(text_of(k.study->program->type(tensor)));
  return texts;
}

std::vector<FusedInstruction> fused(const Kernel& k) {
  std::vector<FusedInstruction> all;
  if (k.lowered().nodes.size() < 2) return all;
  for (const auto node : k.lowered().nodes) {
    const auto& instruction = *k.study->program->node(node).instruction;
    all.push_back({instruction.name, instruction.line});
  }
  return all;
}

std::vector<KernelExchange> exchanges(const ProgramStudy& study) {
  const cost::Cluster charged = study.setup->charged_cluster();
  std::vector<KernelExchange> all;
  for (const Kernel& k : kernels_of(study)) {
    if (k.op().op.place != graph::Place::network) continue;
    Exchanged exchange = *exchanged({&k.op(), &charged});
    exchange.of_plan = false;
    all.push_back({k, exchange});
  }
  return all;
}

// Ops that do no work, by name and how many there are.
std::vector<IdleOp> idle(const ProgramStudy& study) {
  std::map<std::string_view, std::int64_t> counts;
  for (const program::Node& node : study.program->nodes) {
    const auto c = node.traits.op_class;
    if (c == program::OpClass::free || c == program::OpClass::transfer) ++counts[node.instruction->name];
  }
  std::vector<IdleOp> all;
  for (const auto& [name, count] : counts) all.push_back({name, count});
  return all;
}

}  // namespace

Type program_file(Fields<ProgramStudy> f) {
  using F = ProgramStudy;
  return f.of("file", "that it was read from", [](const F& x) { return x.program->module->source->name(); })
      .of<&F::program, &program::Program::module, &program::Module::instructions>("instructions", "in it");
}

Type program_inputs(Fields<ProgramStudy> f) {
  using I = ProgramStudy;
  return f.group<&program_file>("program", "its text")
      .of("hardware", "the device",
          [](const I& i) {
            return HardwareUsed{i.setup->device, figures_used(*i.setup, i.estimate->products)};
          })
      .of<&I::setup, &program::ProgramSetup::devices>("devices", "that run it")
      .json("devices_per_node", "of a node", [](const I& i) { return i.setup->cluster.devices_per_node; })
      .of("fuse", "\"none\" or \"elementwise\"",
          [](const I& i) { return i.setup->fusion == program::Fusion::none ? "none" : "elementwise"; })
      .of("runtime", "the runtime profile; null for the speed of light",
          [](const I& i) { return runtime_used(*i.setup); });
}

Type program_memory(Fields<ProgramStudy> f) {
  using M = ProgramStudy;
  using E = program::ProgramEstimate;
  return f.of<&M::estimate, &E::memory, &cost::Memory::weights>("weight_bytes", "the sum of the two below")
      .of<&M::estimate, &E::lowered, &program::Lowered::arguments>("argument_bytes: arguments", "of the program")
      .of<&M::estimate, &E::lowered, &program::Lowered::constants>("constant_bytes: constants", "of the program")
      .of<&M::estimate, &E::memory, &cost::Memory::kv_cache>("kv_cache_bytes", "none")
      .of<&M::estimate, &E::memory, &cost::Memory::activation>("activation_bytes", "the most alive at once")
      .of<&M::estimate, &E::memory, &cost::Memory::reserve>("reserve_bytes", "what the runtime keeps for itself")
      .of<&M::estimate, &E::memory, &cost::Memory::total>("total_bytes", "the sum")
      .of<&M::estimate, &E::capacity>("capacity_bytes", "what there is");
}

Type program_flops(Fields<ProgramStudy> f) {
  using F = ProgramStudy;
  using E = program::ProgramEstimate;
  using P = estimate::Phase;
  return f.of<&F::estimate, &E::phase, &P::work, &cost::Work::matrix>("matrix", "of the matrix engine")
      .of<&F::estimate, &E::phase, &P::work, &cost::Work::vector>("vector", "of the vector engine")
      .of("total", "the sum", [](const F& x) {
        const cost::Work& w = x.estimate->phase().work;
        return w.matrix + w.vector;
      });
}

Type fields_of(Fields<program::AttentionShape> f) {
  using A = program::AttentionShape;
  return f.of<&A::kind>("kind", "of itself or of another sequence")
      .of<&A::batch>("batch", "sequences")
      .of<&A::queries>("queries", "of a sequence")
      .of<&A::keys>("keys", "that a query is multiplied with")
      .of<&A::heads>("heads", "of queries")
      .of<&A::kv_heads>("kv_heads", "of keys and values")
      .of<&A::head_dim>("head_dim", "of queries and keys")
      .of<&A::v_head_dim>("v_head_dim: V head dim", "of values")
      .of<&A::masked>("masked", "by query and key: causal, as a rule")
      .of<&A::rotary>("rotary", "whether positions are");
}

Type fields_of(Fields<program::FeedForwardShape> f) {
  using F = program::FeedForwardShape;
  return f.of<&F::intermediate>("intermediate", "width")
      .of<&F::gated>("gated", "whether it is")
      .of<&F::experts>("experts", "0: dense");
}

Type fields_of(Fields<ProductLines> f) {
  return f.of<&ProductLines::role>("role", "in the block")
      .of<&ProductLines::lines>("lines", "where products of that role stand");
}

Type fields_of(Fields<Block> f) {
  using B = Block;
  using T = program::TransformerBlock;
  return f.of<&B::block, &T::name>("name", "of the block")
      .of<&B::block, &T::layers>("layers", "that are alike")
      .of<&B::block, &T::again>("again", "whether they are layers of a block before, run over other tokens")
      .of<&B::block, &T::hidden>("hidden", "width")
      .of<&B::block, &T::attentions>("attentions", "of a layer")
      .of<&B::block, &T::feed_forward>("feed_forward", "null: none was recognised")
      .of("products", "of all layers", [](const B& b) {
        std::vector<ProductLines> products;
        for (const auto& product : b.block->products) {
          products.push_back({product.role, {}});
          for (const auto node : product.nodes) {
            products.back().lines.push_back(b.program->node(node).instruction->line);
          }
        }
        return products;
      });
}

Type fields_of(Fields<KernelExchange> f) {
  using E = KernelExchange;
  return f.of<&E::kernel, &Kernel::name>("name", "of the op")
      .of<&E::kernel, &Kernel::line>("line", "where it stands")
      .of("count", "executions", [](const E& e) { return e.kernel.op().op.count; })
      .of<&E::kernel, &Kernel::groups>("groups", "of devices that exchange")
      .spread<&E::exchanged>()
      .of("inserted", "by a partition", [](const E& e) { return e.kernel.last().inserted.has_value(); })
      .of("time_s", "of all executions", [](const E& e) { return e.kernel.op().step_time(); });
}

Type fields_of(Fields<program::Loop> f) {
  using L = program::Loop;
  return f.of<&L::name>("name", "by which `llmperf graph` is told how often it runs")
      .of("line", "where it stands", [](const L& l) { return l.instruction->line; })
      .of<&L::trips>("trips", "how often it runs")
      .of<&L::known>("known", "whether the program or the command says so")
      .of<&L::most>("most", "`trips` is as often as it can run, something else may end it before");
}

Type fields_of(Fields<program::Program::Unknown> f) {
  using U = program::Program::Unknown;
  return f.of<&U::name>("name", "of the op or custom call")
      .of<&U::line>("line", "of the first")
      .of<&U::count>("count", "how many");
}

Type fields_of(Fields<IdleOp> f) {
  return f.of<&IdleOp::name>("name", "of the instruction").of<&IdleOp::count>("count", "how many");
}

Type fields_of(Fields<FusedInstruction> f) {
  using F = FusedInstruction;
  return f.of<&F::name>("name", "of the instruction").of<&F::line>("line", "where it stands");
}

Type fields_of(Fields<Kernel> f) {
  using K = Kernel;
  return f.of<&K::name>("name", "of the instruction, or what is fused")
      .of("kind", "as of an estimate", [](const K& k) { return graph::kind_of(k.op().op); })
      .of<&K::lowered, &LoweredOp::op_class>("class", "of the instruction")
      .of<&K::line>("line", "where it stands in the text")
      .of("scope", "place in the source",
          [](const K& k) { return program::scope_of(*k.study->program->module, *k.last().instruction); })
      .of("shape", "text for people", [](const K& k) { return shape_text(k.op().op); })
      .of("operands", "types", [](const K& k) { return types(k, k.last().operands); })
      .of("results", "types", [](const K& k) { return types(k, k.last().results); })
      .row<&K::results>("result", "types")
      .of("count", "executions", [](const K& k) { return k.op().op.count; })
      .spread([](const K& k) {
        return CountedWork{&k.op().work, d(k.op().op.count)};
      })
      .of("matrix_dtype", "operand type of the matrix product", [](const K& k) { return k.op().work.matrix_dtype; })
      .of("time_s", "of all executions", [](const K& k) { return k.op().step_time(); })
      .of("roof_s", "the bound that it is held against",
          [](const K& k) { return k.op().time.roof * d(k.op().op.count); })
      .of("bound", "what binds it", [](const K& k) { return k.op().time.bound; })
      .of("utilisation", "of the matrix peak", [](const K& k) { return k.study->estimate->of_peak[k.index]; })
      .of<&K::role>("role", "\"qkv\" of a product in a transformer block; else null")
      .when([](const K& k) { return !k.role().empty(); })
      .row<&K::groups>("groups", "of devices that exchange")
      .of<&fused>("fused", "instructions in it, where there are several");
}

Type fields_of(Fields<ProgramStudy> f) {
  using S = ProgramStudy;
  using E = program::ProgramEstimate;
  using P = estimate::Phase;
  using W = cost::Work;
  return f
      .of("label", "what the times are: \"upper bound, uncalibrated\", or the runtime profile",
          [](const S& s) { return label(*s.setup); })
      .row<&S::setup, &program::ProgramSetup::name>("program", "its name")
      .row("hardware", "its name", [](const S& s) { return s.setup->device->name; })
      .row("runtime", "the runtime profile, or \"none\"",
           [](const S& s) { return s.setup->profile ? s.setup->profile->name : std::string("none"); })
      .group<&program_inputs>("inputs", "as resolved")
      .flat()
      .of<&S::estimate, &E::fits>("fits", "whether its memory does")
      .group<&program_memory>("memory", "of a device")
      .flat()
      .of<&S::estimate, &E::phase, &P::time>("time_s", "of one execution of the program")
      .of<&S::estimate, &E::phase, &P::roof>("roof_s", "the bound that it is held against")
      .of<&S::estimate, &E::phase, &P::bound>("bound", "what binds most of the time")
      .group<&program_flops>("flops", "of all executions of all ops")
      .row<&S::estimate, &E::phase, &P::work, &W::matrix>("matrix_flops", "of the matrix engine")
      .row<&S::estimate, &E::phase, &P::work, &W::vector>("vector_flops", "of the vector engine")
      .of<&S::estimate, &E::phase, &P::work, &W::bytes>("bytes", "memory traffic")
      .of<&S::estimate, &E::phase, &P::work, &W::network>("network_bytes", "sent to other devices")
      .json("network_time_s", "of all exchanges",
            [](const S& s) { return s.estimate->phase().bound_time[static_cast<std::size_t>(mapper::Bound::network)]; })
      .json<&S::estimate, &E::peak>("matrix_peak_flops_per_s", "of the type that most products are in")
      .of<&S::estimate, &E::utilisation>("utilisation", "products over what the peak could do in the time")
      .of<&S::estimate, &E::kinds>("kinds", "ops by kind")
      .of<&S::estimate, &E::scopes>("scopes", "ops by place in the source")
      .of("blocks", "transformer blocks",
          [](const S& s) {
            std::vector<Block> blocks;
            for (const auto& block : s.blocks->blocks) blocks.push_back({s.program, &block});
            return blocks;
          })
      .of<&exchanges>("collectives", "between devices")
      .of<&S::program, &program::Program::loops>("loops", "of the program")
      .of<&S::program, &program::Program::unknown>("unknown", "ops and custom calls that no work is counted for")
      .row("unknown", "how many of them",
           [](const S& s) { return static_cast<std::int64_t>(s.program->unknown.size()); })
      .of<&idle>("without_work", "instructions that do nothing on the device")
      .of<&all_notes>("notes", "what was assumed")
      .of<&kernels_of>("ops", "kernels in their order");
}

std::vector<Kernel> kernels_of(const ProgramStudy& study) {
  std::vector<Kernel> kernels;
  for (std::size_t n = 0; n < study.estimate->lowered.ops.size(); ++n) kernels.push_back({&study, n});
  return kernels;
}

int Kernel::line() const { return last().instruction->line; }

std::string Kernel::name() const {
  const LoweredOp& op = lowered();
  const program::Node& last = this->last();
  if (last.inserted && last.inserted->kind) return std::string(graph::name(*last.inserted->kind));
  if (op.copy) return std::string(op.op.name);
  if (op.nodes.size() == 1) {
    const std::string name(last.instruction->name);
    return last.instruction->op() == "custom_call" ? fmt::format("{} @{}", name, program::target_of(*last.instruction))
                                                   : name;
  }
  // The kinds in it, the most frequent first.
  std::map<std::string_view, int> kinds;
  for (const auto node : op.nodes) ++kinds[study->program->node(node).instruction->op()];
  std::vector<std::pair<std::string_view, int>> sorted(kinds.begin(), kinds.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& [kind, count] : sorted) names.emplace_back(kind);
  constexpr std::size_t kMost = 4;
  const bool more = names.size() > kMost;
  if (more) names.resize(kMost);
  return fmt::format("fusion of {} ({}{})", op.nodes.size(), join(names, ", "), more ? " …" : "");
}

std::string Kernel::results() const {
  std::vector<std::string> types;
  for (const auto result : last().results) types.push_back(text_of(study->program->type(result)));
  return join(types, ", ");
}

std::string Kernel::role() const {
  const LoweredOp& op = lowered();
  const auto node = static_cast<std::size_t>(op.nodes.back());
  if (op.copy || node >= study->blocks->roles.size()) return {};
  const program::Role role = study->blocks->roles[node];
  return role == program::Role::other ? std::string() : std::string(program::name(role));
}

std::vector<std::string> all_notes(const ProgramStudy& study) {
  std::vector<std::string> notes = study.program->notes;
  std::int64_t transfers = 0;
  for (const auto& node : study.program->nodes) {
    transfers += node.traits.op_class == program::OpClass::transfer ? node.count : 0;
  }
  if (transfers > 0) {
    notes.push_back(fmt::format("{} sends, receives, feeds and calls of the host take no time here", transfers));
  }
  const auto irregular = std::any_of(
      study.program->nodes.begin(), study.program->nodes.end(),
      [](const program::Node& node) { return node.inserted && node.inserted->kind && !node.inserted->regular; });
  if (irregular)
    notes.emplace_back("devices that exchange are not evenly spaced: where they lie in nodes is approximate");
  const auto uneven = std::any_of(study.estimate->lowered.ops.begin(), study.estimate->lowered.ops.end(),
                                  [](const LoweredOp& op) { return op.uneven; });
  if (uneven) notes.emplace_back("groups of a collective differ in size: the largest is counted");
  const std::vector<program::TensorId>& copied = study.estimate->lowered.copied_arguments;
  if (!copied.empty()) {
    Bytes bytes;
    std::vector<std::string> names;
    for (const auto argument : copied) {
      bytes += study.program->type(argument).bytes();
      names.push_back(fmt::format("%{}", study.program->tensor(argument).name));
    }
    constexpr std::size_t kMost = 8;
    const bool more = names.size() > kMost;
    if (more) names.resize(kMost);
    notes.push_back(fmt::format("changed, not donated and so copied first ({}): {}{}", format_bytes(bytes),
                                join(names, ", "), more ? " …" : ""));
  }
  notes.insert(notes.end(), study.blocks->notes.begin(), study.blocks->notes.end());
  notes.insert(notes.end(), study.setup->notes.begin(), study.setup->notes.end());
  return notes;
}

}  // namespace llmperf::result
