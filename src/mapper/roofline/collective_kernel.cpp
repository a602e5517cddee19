#include "mapper/roofline/kernels.h"

namespace llmperf::mapper {

using hardware::Parameter;

cost::Cluster driven(const cost::Cluster& cluster, const hardware::RuntimeProfile& profile) {
  const hardware::ParameterValues& values = profile.values;
  const auto drive = [&](cost::Links& links, Parameter share, Parameter step) {
    const Seconds own{get(values, step)};
    links.per_device = get(values, share) * links.per_device;
    links.per_link = get(values, share) * links.per_link;
    links.latency = links.latency_stated ? std::max(own, links.latency) : own;
    links.launch = Seconds{get(values, Parameter::collective_launch)};
    if (profile.choices.small_collective > 0) {
      links.small = Bytes{static_cast<double>(profile.choices.small_collective)};
      links.setup = Seconds{get(values, Parameter::collective_setup)};
    }
    links.reduce = get(values, Parameter::collective_reduce);
  };
  // Of PCIe, whose library takes other ways through the host than between neighbours.
  const auto drive_host = [&](cost::Links& links, BytesPerSecond link) {
    links.per_device = get(values, Parameter::collective_direct_share) * link;
    links.per_link = links.per_device;
    links.host->bridge = get(values, Parameter::collective_bridge_share) * link;
    links.host->sockets = get(values, Parameter::collective_sockets_share) * link;
    links.host->latency = std::max(links.latency, links.host->latency);
  };
  cost::Cluster result = cluster;
  // HCCL's all-gather over the sixteen dies of an Atlas 800 A3 reaches the rate of a die's port and no more (0.2 ms to
  // 3 ms, ascend-910c): what the links between the dies of a card would add is not counted on.
  result.devices_per_package = 1;
  for (cost::Links* links : {&result.inside, &result.supernode}) {
    drive(*links, Parameter::collective_share, Parameter::collective_step);
  }
  if (result.inside.host) drive_host(result.inside, cluster.inside.per_device);
  drive(result.between, Parameter::network_share, Parameter::network_step);
  if (profile.choices.exchange_tokens > 0) {
    // Of the links as they are: the kernel moves the bytes itself.
    result.experts = {.tokens = static_cast<double>(profile.choices.exchange_tokens),
                      .launch = Seconds{get(values, Parameter::exchange_launch)},
                      .there = Seconds{get(values, Parameter::exchange_there)},
                      .round = Seconds{get(values, Parameter::exchange_round)},
                      .share = get(values, Parameter::exchange_share) / get(values, Parameter::collective_share)};
    if (profile.choices.exchange_network) {
      result.experts->network = get(values, Parameter::exchange_share) / get(values, Parameter::network_share);
    }
  }
  if (profile.choices.rings) {
    result.inside.chunks = {.copy = get(values, Parameter::collective_copy_share) * cluster.inside.per_device,
                            .fill = Seconds{get(values, Parameter::collective_fill)}};
  }
  result.inside.reduces = result.inside.reduces && profile.choices.switch_reduces;
  if (result.inside.reduces && result.inside.chunks) {
    result.inside.chunks->in_switch = get(values, Parameter::switch_share) * cluster.inside.per_device;
    result.inside.chunks->switch_launch = Seconds{get(values, Parameter::switch_launch)};
  }
  if (profile.choices.custom_all_reduce > 0) {
    const BytesPerSecond link = cluster.inside.per_device;
    result.inside.custom = {.most = Bytes{static_cast<double>(profile.choices.custom_all_reduce)},
                            .fastest = profile.choices.custom_fastest,
                            .launch = Seconds{get(values, Parameter::custom_launch)},
                            .rank = Seconds{get(values, Parameter::custom_rank)},
                            .one_shot = get(values, Parameter::custom_share) * link,
                            .second = Seconds{get(values, Parameter::custom_second)},
                            .two_shot = get(values, Parameter::custom_second_share) * link,
                            .with_norm = get(values, Parameter::custom_norm)};
  }
  return result;
}

}  // namespace llmperf::mapper
