#include "mapper/machine.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "mapper/tile/tile_mapper.h"

namespace llmperf::mapper {
namespace {

constexpr std::array<std::string_view, 3> kTileModels = {"default", "published", "roofline"};

bool sends_weights(const graph::Op& op) {
  const auto* sent = std::get_if<graph::Transfer>(&op.body);
  return sent && sent->weights;
}

}  // namespace

std::string_view name(TileModel model) { return kTileModels[static_cast<std::size_t>(model)]; }

TileModel parse_tile_model(std::string_view name) {
  for (std::size_t i = 0; i < kTileModels.size(); ++i) {
    if (kTileModels[i] == name) return static_cast<TileModel>(i);
  }
  throw Error::bad_input("`tile-model`: unknown model " + quote(name), "one of default, published, roofline");
}

Machine::Machine(const hardware::Device& device, const cost::Cluster& cluster, const hardware::Device* host,
                 BytesPerSecond link, const hardware::RuntimeProfile* profile, TileModel tiles, const HostSide& side)
    : device_(device), link_(link), pinned_(side.pinned), cluster_(cluster) {
  if (host) host_.emplace(*host);
  if (host) staging_ = host->staging;
  if (host && side.profile) {
    host_profile_.emplace(*side.profile);
    if (profile) {
      using enum hardware::Parameter;
      host_profile_->values[index(gemm_memory_share)] *= get(profile->values, host_memory_share);
    }
    host_efficiency_.emplace(*host, *host_profile_, *host_);
  }
  if (profile && profile->choices.tile_mappings && !device.tile_array) {
    throw Error::bad_input("`runtime`: " + profile->name + " maps ops to tiles, and " + device.name + " has none");
  }
  if (profile) efficiency_.emplace(device, *profile, device_);
  // What says nothing of mappings is still no faster than the best of them.
  if (device.tile_array && (profile || tiles != TileModel::roofline)) {
    const bool maps = profile && profile->choices.tile_mappings;
    tiles_ =
        std::make_unique<tile::TileMapper>(device, !profile && tiles == TileModel::published, maps ? profile : nullptr);
  }
}
Machine::~Machine() = default;

OpTime Machine::time(const graph::Op& op, const cost::Work& work) const {
  switch (op.place) {
    case graph::Place::link: {
      OpTime t = time_over_link(work, link_);
      if (const auto staged = staging(op)) t.total = std::max(t.total, work.network / *staged);
      const auto share = upload_share(op);
      if (share) t.total = t.total / get(efficiency_->profile().values, *share);
      if (share == hardware::Parameter::upload_pinned_share) {  // such a copy starts as a kernel does
        t.total += Seconds(get(efficiency_->profile().values, hardware::Parameter::vector_launch));
      }
      return t;
    }
    case graph::Place::network:
      return efficiency_ ? efficiency_->collective(op, cluster_)
                         : time_of(cost::collective_cost(cluster_, std::get<graph::Collective>(op.body)));
    case graph::Place::host: return host_efficiency_ ? host_efficiency_->time(op, work) : roofline(op.place).time(work);
    default: break;
  }
  if (!parts_.empty()) return mean_time(op, work);
  if (const tile::TileMapper* mapper = tiles()) return mapper->time(op, work, device_.time(work));
  OpTime t = efficiency_ ? efficiency_->time(op, work) : device_.time(work);
  if (tiles_) t.total = std::max(t.total, tiles_->time(op, work, device_.time(work)).total);
  return t;
}

const tile::TileMapper* Machine::tiles() const {
  return !efficiency_ || efficiency_->profile().choices.tile_mappings ? tiles_.get() : nullptr;
}

void Machine::search_mappings(std::span<const graph::Op> ops) const {
  if (tiles_ && parts_.empty()) tiles_->search(ops, [this](const graph::Op& op) { return work(op); });
}

OpTime Machine::mean_time(const graph::Op& op, const cost::Work& work) const {
  if (op.layer_kind < 0) return parts_.back().machine->time(op, work);
  OpTime mean;
  double most = 0;
  for (const Part& part : parts_) {
    const double share = part.shares[static_cast<std::size_t>(op.layer_kind)];
    if (share <= 0) continue;
    const OpTime t = part.machine->time(op, work);
    for (Seconds OpTime::*of : {&OpTime::total, &OpTime::matrix, &OpTime::vector, &OpTime::memory, &OpTime::roof}) {
      mean.*of += share * (t.*of);
    }
    if (share * t.total.value > most) mean.bound = t.bound;
    most = std::max(most, share * t.total.value);
  }
  return mean;
}

std::optional<BytesPerSecond> Machine::staging(const graph::Op& op) const {
  return efficiency_ && sends_weights(op) && !pinned_ ? staging_ : std::nullopt;
}

std::optional<hardware::Parameter> Machine::upload_share(const graph::Op& op) const {
  if (!efficiency_ || !sends_weights(op) || staging(op)) return std::nullopt;
  return pinned_ ? hardware::Parameter::upload_pinned_share : hardware::Parameter::upload_share;
}

double Machine::hidden_share(const graph::Op& op) const {
  const auto* c = std::get_if<graph::Collective>(&op.body);
  if (!efficiency_ || c == nullptr || c->kind != graph::CollectiveKind::all_reduce) return op.hidden;
  const hardware::RuntimeProfile& profile = efficiency_->profile();
  const auto limit = static_cast<double>(profile.choices.overlap_bytes);
  if (limit > 0 && c->bytes().value > limit) return 0;
  return get(profile.values, hardware::Parameter::collective_hidden);
}

}  // namespace llmperf::mapper
