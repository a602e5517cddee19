// Which hardware, plan, weights and engine serve a rate of requests within bounds, and what that costs: the search
// behind `llmperf capacity`.
//
// Lists in `hw`, `tp`, `ep`, `dp`, `pp`, `weights` and `engine` span the candidates. Where no plan is said they are
// tensor parallelism over 1, 2, 4 … devices of a node, with experts divided alike or dealt out, experts over up to four
// nodes whose devices each serve sequences of their own, and for what no node holds two and four stages; where no
// weights are said, the checkpoint's own and of wide ones those of 8 and 4 bits that the device multiplies. Each is
// screened in closed form (its weights fit, a request alone meets the bounds, a ceiling of its rate:
// serving/capacity.h), which bounds what it costs from below; in the order of that bound they are simulated, each until
// a rate that it misses puts what it costs beyond kNear times the best that was found. The answer does not depend on
// how many threads there are.
#pragma once

#include <atomic>
#include <functional>

#include "request/request.h"
#include "request/sources.h"
#include "result/serving.h"

namespace llmperf::service {

inline constexpr double kNear = 1.5;

struct CapacityQuery {
  request::Request request = {};  // `hw`, `tp`, `weights` and `engine` may be lists, `hw` all
  std::string ep = {};            // a list, like `dp` (or auto) and `pp`; else that of the request
  std::string dp = {};
  std::string pp = {};
  // "16xh200-sxm,8xh100-sxm": what there is. What is asked for is then the highest rate that keeps the promise.
  std::string fleet = {};
  // Rates of equal parts of a day, "2,1,1,4,9,7", or "trace": of its hours. The highest is what is to be served.
  std::string day = {};
  std::string scale_time = {};  // "180s": that a replica takes to start, paid and of no use; "wake", "wake:7GB/s"
  std::string api_price = {};   // "0.27,1.10": of a million tokens in and out, that own devices are held against
  bool disaggregated = false;   // prompts and decode on replicas of their own as well
  result::Minimise minimise = result::Minimise::cost;
  unsigned threads = 0;  // 0: as many as there are cores
};

// `progress` is told how many of how many candidates are done. Throws Error(bad_input).
result::CapacityResult search_capacity(const CapacityQuery& query, request::Sources& sources,
                                       const std::atomic<bool>* stop = nullptr,
                                       const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace llmperf::service
