// SGLang (python/sglang/srt/managers/{scheduler,schedule_policy,schedule_batch}.py at 00550cd). A step is one of
// prompts (extend) or one of decode, and prompts come first: while some are admitted, decodes wait.
//
//  * A prompt is admitted while tokens are left of three budgets: of the step's prompts, of the chunk, and of the
//  cache,
//    free after what is reserved for those that run: the share `token_ratio` of what they may still generate (of which
//    no more than 4,096 tokens count). Only the last prompt may be cut; the rest of it comes first in the next step.
//  * The share begins at 0.7 and falls to 0.098 within 600 steps of decode.
//  * Where the cache is out of room for a token of each, those with the fewest generated tokens (of these with the
//    longest prompt) are retracted: they go back to the queue. The share is set to what the others then have made of
//    theirs.
#include <algorithm>

#include "base/integer.h"
#include "serving/engines.h"

namespace llmperf::serving {
namespace {

constexpr double kFirstRatio = 0.7;         // SGLANG_INIT_NEW_TOKEN_RATIO
constexpr double kLeastFactor = 0.14;       // SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR
constexpr double kDecaySteps = 600;         // SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS
constexpr std::int64_t kClip = 4096;        // SGLANG_CLIP_MAX_NEW_TOKENS
constexpr std::int64_t kRetractSteps = 20;  // SGLANG_RETRACT_DECODE_STEPS

std::int64_t may_generate(const Sequence& s) { return std::min(s.output - s.generated, kClip); }

}  // namespace

double Sglang::first_ratio(const EngineSettings& settings) {
  return std::min(1.0, kFirstRatio * settings.conservativeness);
}
double Sglang::decayed(const EngineSettings& settings, double ratio, std::int64_t steps) {
  const double first = first_ratio(settings);
  return std::max(kLeastFactor * first, ratio - d(steps) * first * (1 - kLeastFactor) / kDecaySteps);
}

bool Sglang::extend(Scheduler& s, Step& step) {
  const EngineSettings& o = s.settings_;
  if (s.cut_ == nullptr && s.full_) return false;
  std::int64_t input = o.max_prefill_tokens;
  std::int64_t chunk = o.chunked_prefill ? o.max_batched_tokens : o.max_prefill_tokens;
  double room = d(s.cache_.free() * o.block_size);
  for (const Sequence* q : s.running_) {
    if (q != s.cut_) room -= d(may_generate(*q)) * s.token_ratio_;
  }
  const auto take = [&](Sequence& q, std::int64_t tokens) {
    s.allocate(q, q.computed + tokens);
    s.add_prompt(step, q, tokens);
    room -= d(tokens);
    input -= tokens;
    chunk -= tokens;
  };
  if (s.cut_ != nullptr) {
    Sequence& q = *s.cut_;
    const std::int64_t tokens = std::min(q.known() - q.computed, chunk);
    if (q.computed + tokens == q.known()) {
      s.cut_ = nullptr;
      room -= d(may_generate(q));
    }
    take(q, tokens);
  }
  s.blocked_ = Cause::queue;
  while (!s.waiting_.empty() && s.cut_ == nullptr) {
    s.blocked_ = Cause::queue;
    if (static_cast<std::int64_t>(s.running_.size()) >= o.max_sequences) break;
    s.blocked_ = Cause::budget;
    if (!step.prompts.empty() && (input <= 0 || chunk <= 0)) break;
    Sequence& q = *s.waiting_.front();
    const KvCache::Hit hit = s.find(q);
    const std::int64_t rest = q.known() - hit.blocks * o.block_size;
    const double queued = d(hit.queued * o.block_size);
    s.blocked_ = Cause::kv;
    if (d(rest + may_generate(q) + o.block_size) + queued >= room && !(s.running_.empty() && d(rest) + queued < room)) {
      s.full_ = !s.running_.empty();
      break;
    }
    s.blocked_ = Cause::budget;
    if (rest > input && !step.prompts.empty()) break;
    const std::int64_t tokens = rest <= chunk ? rest : chunk / o.block_size * o.block_size;
    if (tokens == 0) break;
    s.waiting_.pop_front();
    s.admit(q, hit);
    room -= queued;
    if (tokens < rest) {
      s.cut_ = &q;
    } else {
      room -= d(may_generate(q));
    }
    take(q, tokens);
  }
  return !step.prompts.empty();
}

void Sglang::retract(Scheduler& s, Step& step) {
  const auto fits = [&](std::int64_t tokens) {
    std::int64_t blocks = 0;
    for (const Sequence* q : s.running_) {
      if (q != s.cut_) blocks += s.lacks(*q, q->computed + tokens);
    }
    return blocks <= s.cache_.free();
  };
  if (fits(1 + s.drafts_)) return;
  while (s.running_.size() > 1 && !fits(kRetractSteps)) {
    Sequence* least = nullptr;
    for (Sequence* q : s.running_) {
      if (q == s.cut_) continue;
      if (!least || q->generated < least->generated || (q->generated == least->generated && q->input > least->input)) {
        least = q;
      }
    }
    if (least == nullptr) return;
    s.preempt(*least, false, step);
  }
  double generated = 0;
  double most = 0;
  for (const Sequence* q : s.running_) {
    generated += d(q->generated + kRetractSteps);
    most += d(q->output);
  }
  s.token_ratio_ = std::min(1.0, generated / std::max(1.0, most));
}

void Sglang::plan(Scheduler& s, Step& step) {
  const bool prompts = extend(s, step);
  if (prompts && !s.settings_.mixes) return;
  if (s.running_.empty()) return;
  if (!prompts) {
    const double before = s.token_ratio_;
    retract(s, step);
    if (step.preempted == 0) s.token_ratio_ = decayed(s.settings_, before, 1);
  }
  for (Sequence* q : s.running_) {
    if (q->flying || !q->decodes()) continue;
    if (!s.allocate(*q, q->computed + 1 + s.drafts_)) continue;
    s.add_decode(step, *q);
  }
}

}  // namespace llmperf::serving
