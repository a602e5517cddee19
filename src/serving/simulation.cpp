#include "serving/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "serving/random.h"

namespace llmperf::serving {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kDraftStreams = std::uint64_t{1} << 32;  // beside those of the workload

class Replica {
 public:
  Replica(const Pool& pool, const Deployment& deployment, const Workload& workload, std::int32_t index, Run& run,
          const RunOptions& options, std::vector<KvStore*> tiers)
      : pool_(&pool),
        deployment_(&deployment),
        scheduler_(of_all_ranks(pool.settings, pool.ranks), workload, pool.blocks * pool.ranks, deployment.drafts),
        index_(index),
        run_(&run),
        timeline_(options.timeline),
        gaps_(options.gaps),
        random_(options.seed, kDraftStreams + static_cast<std::uint64_t>(index)),
        tier_free_(tiers.size()) {
    scheduler_.set_tiers(std::move(tiers));
  }

  const Scheduler& scheduler() const { return scheduler_; }
  Sequence make(std::int32_t request, Seconds now) const { return scheduler_.make(request, now); }
  void add(Sequence& s, double now) {
    const bool planned_ahead = pool_->settings.asynchronous && pool_->stages == 1 && !flights_.empty();
    (planned_ahead ? late_ : arrived_).push_back(&s);
    wake(now);
  }
  // Those that no plan has seen yet.
  template <class Visit>
  void each_unseen(Visit visit) const {
    for (const Sequence* s : arrived_) visit(*s);
    for (const Sequence* s : late_) visit(*s);
  }
  std::int64_t requests() const {
    return static_cast<std::int64_t>(scheduler_.running().size() + scheduler_.incoming().size()) + waiting();
  }

  std::int64_t waiting() const {
    return static_cast<std::int64_t>(scheduler_.waiting().size() + arrived_.size() + late_.size());
  }

  // When something happens here next.
  double next() const {
    double at = kNever;
    if (!flights_.empty()) at = flights_.front().end;
    if (pending_ && static_cast<std::int64_t>(flights_.size()) < pool_->stages) {
      at = std::min(at, std::max(stage_free_, wake_));
    }
    for (const auto& [ready, sequence] : arriving_) at = std::min(at, ready);
    return at;
  }

  // What happens at next(), and all that follows before `horizon`. Sequences that ended are listed.
  void step(double horizon, std::vector<Sequence*>& ended) {
    const double now = next();
    while (!flights_.empty() && flights_.front().end <= now) land(ended);
    std::erase_if(arriving_, [&](const auto& one) {
      if (one.first > now) return false;
      scheduler_.join(*one.second);
      wake(now);
      return true;
    });
    const bool free = static_cast<std::int64_t>(flights_.size()) < pool_->stages && stage_free_ <= now;
    // What ended may send the next request, of a closed loop, or go on elsewhere, at once.
    if (!ended.empty()) horizon = now;
    if (pending_ && free) launch(now, horizon);
  }

 private:
  struct Flight {
    Step step = {};
    double begin = 0;
    double end = 0;
    double last = 0;  // … of its steps began at
    double seconds = 0;
  };

  static EngineSettings of_all_ranks(EngineSettings settings, std::int64_t ranks) {
    settings.max_batched_tokens *= ranks;
    settings.max_sequences *= ranks;
    settings.max_prefill_tokens *= ranks;
    return settings;
  }
  void wake(double now) {
    if (!pending_) wake_ = now;
    pending_ = true;
  }

  // Of ranks that step together, the one with most.
  estimate::StepTime time(const Step& step, std::int64_t more, bool with_prompts) {
    const std::int64_t ranks = pool_->ranks;
    const std::int64_t count = static_cast<std::int64_t>(step.decodes.size());
    chunks_.clear();
    if (with_prompts) {
      for (const Piece& p : step.prompts) chunks_.push_back({p.tokens, p.context});
      if (ranks > 1) {
        std::ranges::sort(chunks_, std::greater{}, &estimate::Chunk::tokens);
        for (std::size_t i = 0; i * static_cast<std::size_t>(ranks) < chunks_.size(); ++i) {
          chunks_[i] = chunks_[i * static_cast<std::size_t>(ranks)];
        }
        chunks_.resize(static_cast<std::size_t>(divide_up(static_cast<std::int64_t>(chunks_.size()), ranks)));
      }
    }
    estimate::StepShape shape{.decodes = divide_up(count, ranks), .chunks = chunks_};
    if (count > 0) {
      shape.context_sum =
          ranks == 1 ? step.context_sum + count * more : shape.decodes * ((step.context_sum + count * more) / count);
      shape.context_max = step.context_max + more;
    }
    return time(shape);
  }
  estimate::StepTime time(const estimate::StepShape& shape) const {
    const EngineSettings& s = pool_->settings;
    estimate::StepTime t = pool_->cost(shape);
    t.latency = t.latency * deployment_->pace;
    t.interval = t.interval * deployment_->pace;
    if (!s.asynchronous) {
      t.latency += s.host_step;
      t.interval += s.host_step;
    }
    return t;
  }
  double alone(const Piece& p) const {
    const estimate::Chunk chunk{p.tokens, p.context};
    return time({.chunks = {&chunk, 1}}).latency.value;
  }

  void look(double now) {
    unseen_steps_ = 0;
    for (Sequence* s : arrived_) {
      scheduler_.add(*s);
      s->causes[static_cast<std::size_t>(Cause::queue)] += now - s->arrived.value;
      begin_waiting(*s);
    }
    arrived_.clear();
  }

  void launch(double now, double horizon) {
    clocks_[static_cast<std::size_t>(scheduler_.blocked())] += now - planned_;
    planned_ = now;
    Flight flight{.begin = now};
    Step& step = flight.step;
    if (scheduler_.running().empty() || unseen_steps_ >= pool_->settings.recv_interval) look(now);
    scheduler_.plan(step);
    for (Sequence* s : std::exchange(late_, {})) arrived_.push_back(s);
    if (step.empty() && !arrived_.empty()) {  // nothing was planned ahead
      look(now);
      scheduler_.plan(step);
    }
    unseen_steps_ = step.prompts.empty() ? unseen_steps_ + 1 : pool_->settings.recv_interval;  // behind prompts at once
    // Those that were preempted wait again.
    for (Sequence* s : scheduler_.waiting()) {
      if (s->seen && s->preemptions == 0 && s->priority == scheduler_.waiting().back()->priority) break;
      if (!s->seen) begin_waiting(*s);
    }
    run_->preemptions += step.preempted;
    receive(now);
    pending_ = !step.empty() || step.preempted > 0;  // what lost its blocks may have them now
    if (step.empty()) return;
    const estimate::StepTime t = time(step, 0, true);
    flight.seconds = t.latency.value;
    flight.end = now + flight.seconds;
    flight.last = now;
    stage_free_ = pool_->stages == 1 ? flight.end : now + t.interval.value;
    if (!flights_.empty()) flight.end = std::max(flight.end, flights_.back().end);
    for (const Piece& p : step.prompts) {
      Sequence& s = *p.sequence;
      run_->prompt_tokens += p.tokens;
      if (s.generated > 0) continue;
      settle_clocks(s);
      // Of pieces that overlap in a pipeline the time that is new.
      const double seconds = flight.end - std::max(now, s.told.value);
      const double own = std::min(alone(p), seconds);
      s.told = Seconds{flight.end};
      s.causes[static_cast<std::size_t>(Cause::prefill)] += own;
      s.causes[static_cast<std::size_t>(Cause::interference)] += seconds - own;
    }
    // After a step that preempted something the next one may admit it again.
    const bool steady = step.preempted == 0 && step.prompts.empty() && arrived_.empty() &&
                        step.decodes.size() == scheduler_.running().size() && pool_->stages == 1 &&
                        deployment_->drafts == 0;
    for (const auto& [ready, sequence] : arriving_) horizon = std::min(horizon, ready);
    if (steady) run_ahead(flight, horizon);
    flights_.push_back(std::move(flight));
  }

  // The same sequences are decoded until one ends, something arrives or a block is missing.
  void run_ahead(Flight& flight, double horizon) {
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    for (const Sequence* s : flight.step.decodes) limit = std::min(limit, s->output - s->generated);
    if (limit > 1) limit = scheduler_.steps_with_room(limit);
    std::int64_t steps = 1;
    const std::int64_t count = static_cast<std::int64_t>(flight.step.decodes.size());
    while (steps < limit && flight.end < horizon) {
      if (steps == 1) {
        for (Sequence* s : flight.step.decodes) gap(*s, flight.end, flight);
        settle_gaps(flight);
      } else {
        keep_gap(flight.seconds, count);
        run_->gap_causes.decode += flight.seconds * d(count);
      }
      flight.last = flight.end;
      flight.seconds = time(flight.step, steps, false).latency.value;
      flight.end += flight.seconds;
      ++steps;
    }
    if (steps == 1) return;
    scheduler_.advance(steps - 1);
    for (Sequence* s : flight.step.decodes) s->last = Seconds{flight.last};
    flight.step.context_sum += count * (steps - 1);
    flight.step.context_max += steps - 1;
    run_->steps += steps - 1;
    unseen_steps_ = (unseen_steps_ + steps - 2) % pool_->settings.recv_interval + 1;
    log(flight, flight.last, steps - 1);
    flight.begin = flight.last;
    stage_free_ = flight.end;
  }

  // The first flight has ended.
  void land(std::vector<Sequence*>& ended) {
    Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const double now = flight.end;
    wake(now);
    ++run_->steps;
    log(flight, now, 1);
    const bool guesses = deployment_->drafts > 0 && !flight.step.decodes.empty();
    if (guesses) guess(flight.step.decodes.size());
    const std::size_t before = ended.size();
    scheduler_.complete(
        flight.step, guesses ? &kept_ : nullptr,
        [&](Sequence& s, std::int64_t tokens) {
          if (s.generated > tokens) {
            gap(s, now, flight);
          } else {
            s.first = Seconds{now};
            double known = 0;
            for (const double c : s.causes) known += c;
            s.causes[static_cast<std::size_t>(Cause::budget)] += std::max(0.0, now - s.arrived.value - known);
          }
          s.last = Seconds{now};
        },
        ended_);
    settle_gaps(flight);
    ended.insert(ended.end(), ended_.begin(), ended_.end());
    ended_.clear();
    for (std::size_t i = before; i < ended.size(); ++i) finish(*ended[i]);
  }

  void gap(const Sequence& s, double now, const Flight& flight) {
    if (s.last.value == flight.last) {
      ++alike_;
    } else {
      keep_gap(now - s.last.value, 1);
      run_->gap_causes.stall += std::max(0.0, now - s.last.value - flight.seconds);
      ++others_;
    }
  }
  void keep_gap(double seconds, std::int64_t count) {
    if (gaps_) run_->gaps.emplace_back(seconds, count);
  }
  void settle_gaps(const Flight& flight) {
    if (alike_ > 0) keep_gap(flight.end - flight.last, alike_);
    if (alike_ + others_ > 0) {
      double own = flight.seconds;
      if (flight.step.decodes.empty()) {
        own = 0;  // a sequence that was preempted is computed again
      } else if (!flight.step.prompts.empty()) {
        own = std::min(own, time(flight.step, 0, false).latency.value);
      }
      run_->gap_causes.decode += own * d(alike_ + others_);
      run_->gap_causes.prefill += (flight.seconds - own) * d(alike_ + others_);
    }
    alike_ = others_ = 0;
  }

  void guess(std::size_t sequences) {
    kept_.assign(sequences, 1);
    for (std::int64_t& kept : kept_) {
      while (kept <= deployment_->drafts && random_.uniform() < deployment_->acceptance.of(kept - 1)) ++kept;
    }
  }

  // What it has waited for until it was admitted.
  void settle_clocks(Sequence& s) {
    if (s.seen) {
      for (std::size_t i = 0; i < clocks_.size(); ++i) s.causes[i] += clocks_[i] - s.waited[i];
    }
    s.seen = false;
  }
  void begin_waiting(Sequence& s) {
    s.seen = true;
    s.waited = clocks_;
  }

  // Keys and values of those that blocks were taken for are sent, one request after the other.
  void receive(double now) {
    const KvTransfer& t = deployment_->transfer;
    for (Sequence* s : scheduler_.incoming()) {
      if (std::ranges::find(arriving_, s, &std::pair<double, Sequence*>::second) != arriving_.end()) continue;
      const bool fetches = s->fetched > 0;
      const BytesPerSecond rate = fetches ? *pool_->tiers[s->tier].rate : t.rate;
      double seconds = (t.per_token * d(fetches ? s->fetched : s->input) / rate).value;
      if (t.per_layer && !fetches) seconds /= d(t.layers);
      double& free = fetches ? tier_free_[s->tier] : link_free_;
      free = std::max(free, now) + seconds;
      const double there = free + (fetches ? 0 : t.latency.value);
      settle_clocks(*s);
      s->causes[static_cast<std::size_t>(Cause::kv)] += there - now;
      arriving_.emplace_back(there, s);
    }
  }

  void finish(const Sequence& s) {
    Served& r = run_->requests[static_cast<std::size_t>(s.request)];
    if (r.first.value == 0) r.first = s.first;
    r.last = s.last;
    r.reused += s.reused;
    r.fetched += s.fetched;
    r.preemptions += s.preemptions;
    r.replica = index_;
    if (s.first.value == 0) return;  // which came from elsewhere
    for (std::size_t i = 0; i < s.causes.size(); ++i) r.causes[i] += s.causes[i];
  }

  void log(const Flight& flight, double end, std::int64_t steps) {
    const double seconds = end - std::max(flight.begin, logged_);  // stages' steps overlap
    logged_ = end;
    const std::int64_t blocks = scheduler_.cache().used();
    run_->busy += seconds;
    run_->decode_seconds +=
        (end - flight.begin) * static_cast<double>(flight.step.decodes.size() + flight.step.prompts.size());
    run_->waiting_seconds += seconds * d(waiting());
    const double held = scheduler_.cache().blocks() > 0 ? d(blocks) / d(scheduler_.cache().blocks()) : 0;
    run_->kv_seconds += seconds * held;
    run_->kv_peak_share = std::max(run_->kv_peak_share, held);
    if (!timeline_) return;
    Interval i{.begin = Seconds{flight.begin},
               .end = Seconds{end},
               .replica = index_,
               .steps = static_cast<std::int32_t>(steps),
               .decodes = static_cast<std::int32_t>(flight.step.decodes.size()),
               .prompts = static_cast<std::int32_t>(flight.step.prompts.size()),
               .waiting = waiting(),
               .blocks = blocks,
               .kv_share = held};
    for (const Piece& p : flight.step.prompts) i.prompt_tokens += p.tokens;
    run_->timeline.push_back(i);
  }

  const Pool* pool_;
  const Deployment* deployment_;
  Scheduler scheduler_;
  std::int32_t index_;
  Run* run_;
  bool timeline_;
  bool gaps_;
  Random random_;
  std::deque<Flight> flights_;
  std::vector<std::pair<double, Sequence*>> arriving_;  // when what is sent of them will be there
  std::vector<Sequence*> arrived_;                      // that the next plan sees
  // … and the one after it: an engine that is asynchronous has planned the next step when the one that runs began.
  std::vector<Sequence*> late_;
  std::vector<Sequence*> ended_;
  std::vector<std::int64_t> kept_;
  std::vector<estimate::Chunk> chunks_;
  Causes clocks_ = {};
  double planned_ = 0;  // the last plan's time
  double stage_free_ = 0;
  double wake_ = 0;
  double link_free_ = 0;
  std::vector<double> tier_free_;
  double logged_ = 0;
  std::int64_t unseen_steps_ = 0;  // of decode, since it looked for new requests
  bool pending_ = false;           // a plan may find something to do
  std::int64_t alike_ = 0, others_ = 0;
};

class Simulation {
 public:
  Simulation(const Deployment& deployment, const Workload& workload, const RunOptions& options)
      : deployment_(&deployment), workload_(&workload), options_(&options) {
    run_.requests.resize(workload.requests.size());
    for (std::size_t i = 0; i < workload.requests.size(); ++i) {
      const Request& r = workload.requests[i];
      run_.requests[i] = {.sent = r.sent, .input = r.input, .output = r.output, .of = r.of};
    }
    run_.replicas = deployment.pool.replicas;
    add_pool(deployment.pool, 0, prompts_);
    if (deployment.decode) {
      add_pool(*deployment.decode, static_cast<std::int32_t>(deployment.pool.replicas), decodes_);
      run_.replicas += deployment.decode->replicas;
    }
    sequences_.resize(workload.requests.size() * (deployment.decode ? 2 : 1));
    turns_.resize(workload.requests.size());
  }

  Run run() {
    check();
    const std::size_t requests = workload_->requests.size();
    const std::size_t at_once = workload_->concurrency ? static_cast<std::size_t>(*workload_->concurrency) : requests;
    // In a closed loop those that are let go are sent; in an open one each at its time, if the loop lets it.
    while (sent_ < std::min(at_once, requests)) send(0);
    // What ends at one replica may send something to another.
    const bool pooled = std::ranges::any_of(deployment_->pool.tiers, &KvTier::shared);
    const bool follow = std::ranges::any_of(workload_->requests, [](const Request& r) { return r.after >= 0; });
    const bool coupled = all_.size() > 1 && (workload_->concurrency || deployment_->decode || pooled || follow);
    std::vector<Sequence*> ended;
    std::int64_t events = 0;
    while (true) {
      if (enough_ || ((++events & 255) == 0 && options_->stop != nullptr && options_->stop->load())) {
        run_.interrupted = true;
        break;
      }
      if ((events & 4095) == 0 && options_->progress) options_->progress(static_cast<std::int64_t>(done_));
      double first = kNever;
      double second = kNever;
      Replica* next = nullptr;
      for (const auto& r : all_) {
        const double at = r->next();
        if (at < first) {
          second = first;
          first = at;
          next = r.get();
        } else {
          second = std::min(second, at);
        }
      }
      double arrival = kNever;
      if (!arrivals_.empty()) arrival = arrivals_.top().at;
      if (arrival == kNever && next == nullptr) break;
      if (arrival <= first) {
        arrive(arrivals_.top());
        arrivals_.pop();
        continue;
      }
      next->step(std::min(arrival, coupled ? second : kNever), ended);
      for (Sequence* s : ended) end(*s);
      ended.clear();
    }
    if (!run_.interrupted && done_ < requests) throw std::logic_error("internal error: requests were left unserved");
    run_.begin = requests == 0 ? Seconds{} : run_.requests.front().sent;
    return std::move(run_);
  }

 private:
  struct Arrival {
    double at = 0;
    std::int32_t request = 0;
    bool operator<(const Arrival& other) const {  // the queue's top is the largest
      return at != other.at ? at > other.at : request > other.request;
    }
  };
  struct Turn {
    double over = kNever;    // when it ended
    std::int32_t next = -1;  // of its session, that waits for it
  };

  void add_pool(const Pool& pool, std::int32_t first, std::vector<Replica*>& list) {
    std::vector<KvStore*> first_stores;  // a pool over the network is one for all replicas
    for (std::int64_t i = 0; i < pool.replicas; ++i) {
      const auto index = first + static_cast<std::int32_t>(i);
      std::vector<KvStore*> tiers;
      for (std::size_t t = 0; t < pool.tiers.size(); ++t) {
        if (i == 0 || !pool.tiers[t].shared()) {
          constexpr double kMost = 1e15;
          const double tokens = std::min(kMost, pool.tiers[t].size / deployment_->transfer.per_token);
          stores_.push_back(std::make_unique<KvStore>(static_cast<std::int64_t>(tokens)));
          if (i == 0) first_stores.push_back(stores_.back().get());
        }
        tiers.push_back(pool.tiers[t].shared() ? first_stores[t] : stores_.back().get());
      }
      all_.push_back(
          std::make_unique<Replica>(pool, *deployment_, *workload_, index, run_, *options_, std::move(tiers)));
      list.push_back(all_.back().get());
    }
  }

  void check() const {
    check(deployment_->pool, deployment_->decode.has_value());
    if (deployment_->decode) check(*deployment_->decode, false);
  }
  void check(const Pool& pool, bool prompts_alone) const {
    const EngineSettings& s = pool.settings;
    const bool parts = s.kind == EngineKind::llama_cpp && !s.unified_kv;  // a slot has its own
    const std::int64_t room = pool.blocks * s.block_size / (parts ? s.max_sequences : 1);
    // What is preempted is computed again with what it generated.
    const bool again =
        s.kind == EngineKind::vllm || (s.kind == EngineKind::trtllm && s.admission == Admission::max_utilisation);
    const bool chunks = s.chunked_prefill || s.kind == EngineKind::sglang || s.kind == EngineKind::llama_cpp;
    for (std::size_t i = 0; i < workload_->requests.size(); ++i) {
      const Request& r = workload_->requests[i];
      const std::int64_t output = prompts_alone ? 1 : r.output;
      if (r.input + output + deployment_->drafts > room) {
        throw Error::infeasible(
            fmt::format("request {} of {} and {} tokens is longer than the KV cache, which has room for {} tokens",
                        i + 1, r.input, output, format_count(d(room))),
            "more devices, narrower weights or a narrower KV cache; or leave such requests out");
      }
      if (!chunks && r.input + (again ? output - 1 : 0) > s.max_batched_tokens * pool.ranks) {
        throw Error::infeasible(
            fmt::format("request {} of {} and {} tokens is longer than a step, which computes {} tokens at most", i + 1,
                        r.input, output, format_count(d(s.max_batched_tokens * pool.ranks))),
            "chunked prefill, or a larger `max-batched-tokens`");
      }
    }
  }

  // The next one, or of a session whose last turn has no answer yet, once it has; its place in the loop is taken.
  void send(double now) {
    const auto request = static_cast<std::int32_t>(sent_++);
    const std::int32_t before = workload_->requests[static_cast<std::size_t>(request)].after;
    Turn* last = before < 0 ? nullptr : &turns_[static_cast<std::size_t>(before)];
    if (last != nullptr && last->over == kNever) {
      last->next = request;
    } else {
      go(request, now);
    }
  }
  // Into the engine once the front end is done with it.
  void go(std::int32_t request, double now) {
    const Request& r = workload_->requests[static_cast<std::size_t>(request)];
    double at = r.sent.value;
    if (r.after >= 0) {
      const auto before = static_cast<std::size_t>(r.after);
      at += turns_[before].over - workload_->requests[before].sent.value;
    }
    if (workload_->open) now = std::max(now, at);
    run_.requests[static_cast<std::size_t>(request)].sent = Seconds{now};
    arrivals_.push({now + deployment_->pool.settings.frontend.value, request});
  }

  void arrive(const Arrival& arrival) {
    Replica& replica = choose(prompts_, arrival.request);
    const std::optional<std::int64_t>& most = deployment_->pool.settings.max_queue;
    if (most && replica.waiting() >= *most) {
      Served& served = run_.requests[static_cast<std::size_t>(arrival.request)];
      served.rejected = true;
      over(arrival.request, arrival.at);
      return;
    }
    Sequence& s = sequences_[static_cast<std::size_t>(arrival.request)];
    const Served& r = run_.requests[static_cast<std::size_t>(arrival.request)];
    s = replica.make(arrival.request, r.sent);
    if (deployment_->decode) s.output = 1;
    replica.add(s, arrival.at);
  }

  void end(const Sequence& s) {
    const bool first_half = deployment_->decode && &s < &sequences_[workload_->requests.size()];
    const Request& r = workload_->requests[static_cast<std::size_t>(s.request)];
    // vLLM's decode computes the last token of the prompt again; the others go on with the token that they are sent.
    const bool again = deployment_->pool.settings.kind == EngineKind::vllm;
    if (first_half && (again || r.output > 1)) {
      Replica& replica = choose(decodes_, s.request);
      Sequence& other = sequences_[static_cast<std::size_t>(s.request) + workload_->requests.size()];
      other = replica.make(s.request, s.last);
      other.remote = true;
      if (!again) {
        other.generated = 1;
        other.last = s.last;
      } else {
        run_.requests[static_cast<std::size_t>(s.request)].first = {};
      }
      replica.add(other, s.last.value);
      return;
    }
    Served& served = run_.requests[static_cast<std::size_t>(s.request)];
    served.ended = true;
    run_.end = std::max(run_.end, served.last);
    over(s.request, s.last.value);
  }
  // Ended or rejected: the next turn is sent, and of a closed loop the next request.
  void over(std::int32_t request, double now) {
    const auto at = static_cast<std::size_t>(request);
    ++done_;
    if (options_->goes_on && !options_->goes_on(run_.requests[at])) enough_ = true;
    turns_[at].over = now;
    if (turns_[at].next >= 0) go(turns_[at].next, now);
    if (sent_ < workload_->requests.size()) send(now);
  }

  // Of the replicas of a pool.
  Replica& choose(const std::vector<Replica*>& pool, std::int32_t request) {
    if (pool.size() == 1) return *pool.front();
    if (deployment_->router == Router::round_robin) return *pool[dealt_[&pool == &prompts_ ? 0 : 1]++ % pool.size()];
    // Requests that are there; or what Dynamo's router adds up: blocks of prompts that are still to be computed, this
    // one's among them, and blocks of those that run.
    const auto load = [&](const Replica& r) {
      const Scheduler& s = r.scheduler();
      if (deployment_->router == Router::least_loaded) return d(r.requests());
      const Sequence q = r.make(request, {});
      const KvCache::Hit hit = s.cache().find(q.content, q.input - 1);
      std::int64_t blocks = s.cache().blocks_of(q.input) - hit.blocks + s.cache().used();
      for (const Sequence* w : s.waiting()) blocks += s.cache().blocks_of(w->input);
      r.each_unseen([&](const Sequence& w) { blocks += s.cache().blocks_of(w.input); });
      return d(blocks);
    };
    Replica* best = pool.front();
    double least = load(*best);
    for (std::size_t i = 1; i < pool.size(); ++i) {
      const double l = load(*pool[i]);
      if (l < least) {
        best = pool[i];
        least = l;
      }
    }
    return *best;
  }

  const Deployment* deployment_;
  const Workload* workload_;
  const RunOptions* options_;
  Run run_;
  std::vector<std::unique_ptr<KvStore>> stores_;
  std::vector<std::unique_ptr<Replica>> all_;
  std::vector<Replica*> prompts_, decodes_;
  std::vector<Sequence> sequences_;  // with disaggregation those of decode behind those of prompts
  std::priority_queue<Arrival> arrivals_;
  std::size_t sent_ = 0;
  std::size_t done_ = 0;
  bool enough_ = false;
  std::array<std::size_t, 2> dealt_ = {};  // to replicas of prompts and of decode
  std::vector<Turn> turns_;                // requests as those of sessions
};

}  // namespace

Run simulate(const Deployment& deployment, const Workload& workload, const RunOptions& options) {
  return Simulation(deployment, workload, options).run();
}

}  // namespace llmperf::serving
