// SGLang (python/sglang/srt/managers/{scheduler,schedule_policy,schedule_batch}.py at 00c8672). A step is one of
// prompts (extend) or one of decode, and prompts come first: while some are admitted, decodes wait.
//
//  * A prompt is admitted while tokens are left of three budgets: of the step's prompts, of the chunk, and of the
//    cache: free after all that the step's prompts may generate, and after the share `token_ratio` of what those that
//    run may still generate (of which no more than 4,096 tokens count). Once one is refused for the cache none is
//    admitted until one ends or is retracted. Only the last prompt may be cut; its rest comes first in the next step.
//  * The share begins at 0.7 and falls to 0.098 within 600 steps of decode; an idle server begins anew.
//  * Where the cache is out of room for a token of each, those with the fewest generated tokens (of these with the
//    longest prompt) are retracted until it has: at least one, which goes to the end of the queue. The share is set to
//    what the others will have made of theirs in 20 steps.
#include <algorithm>
#include <limits>

#include "base/integer.h"
#include "serving/scheduler.h"

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
  if (s.cut_ != nullptr ? s.cut_->flying : s.full_) return false;
  const auto whole = [&](std::int64_t tokens) { return divide_up(tokens, o.block_size) * o.block_size; };
  std::int64_t input = o.max_prefill_tokens;
  std::int64_t chunk = o.chunked_prefill ? o.max_batched_tokens : std::numeric_limits<std::int64_t>::max() / 2;
  double room = d(s.cache_.free() * o.block_size);
  for (const Sequence* q : s.running_) {
    if (q == s.cut_) continue;
    room -= d(may_generate(*q)) * s.token_ratio_;
    if (o.mixes) --room, --input, --chunk;  // its token is in the step
  }
  const auto take = [&](Sequence& q, std::int64_t tokens) {
    if (q.computed + tokens == q.known()) room -= d(std::min(q.output, kClip));
    s.allocate(q, q.computed + tokens);
    s.add_prompt(step, q, tokens);
    room -= d(whole(tokens) + o.block_size);
    input -= whole(tokens);
    chunk -= whole(tokens);
  };
  if (s.cut_ != nullptr) {
    Sequence& q = *s.cut_;
    const std::int64_t blocks = s.cache_.free() + q.held.blocks;
    const std::int64_t some = room >= 1 ? std::min(chunk, static_cast<std::int64_t>(room)) : chunk;
    const std::int64_t tokens = std::min({q.known() - q.computed, some, blocks * o.block_size - q.computed});
    if (tokens <= 0) return false;
    if (q.computed + tokens == q.known()) s.cut_ = nullptr;
    take(q, tokens);
  }
  while (s.cut_ == nullptr && !s.full_) {
    Sequence* first = s.next();
    if (first == nullptr) break;
    Sequence& q = *first;
    s.blocked_ = Cause::budget;
    if (!step.prompts.empty() && (input <= 0 || chunk <= 0)) break;
    const KvCache::Hit hit = s.find(q);
    const std::int64_t rest = q.known() - hit.blocks * o.block_size;
    const double left = room - d(hit.queued * o.block_size);
    s.blocked_ = Cause::kv;
    // Alone it is admitted in any case: max_tokens is cut to what there is.
    if (d(rest + may_generate(q) + o.block_size) >= left && !(s.running_.empty() && d(rest) < left)) {
      s.full_ = !s.running_.empty();
      break;
    }
    s.blocked_ = Cause::budget;
    if (whole(rest) >= input && !step.prompts.empty()) break;
    const std::int64_t tokens = whole(rest) <= chunk ? rest : chunk / o.block_size * o.block_size;
    if (tokens <= 0) break;
    s.waiting_.pop_front();
    s.admit(q, hit);
    room = left;
    if (tokens < rest) s.cut_ = &q;
    take(q, tokens);
    if (room <= 0) {
      s.full_ = true;
      s.blocked_ = Cause::kv;
    }
  }
  return !step.prompts.empty();
}

// Whether there was no room.
bool Sglang::retract(Scheduler& s, Step& step) {
  const auto fits = [&] {
    std::int64_t blocks = 0;
    for (const Sequence* q : s.running_) {
      if (q != s.cut_ && !q->flying) blocks += s.lacks(*q, q->computed + 1 + s.drafts_);
    }
    return blocks <= s.cache_.free();
  };
  if (fits()) return false;
  while (step.preempted == 0 || !fits()) {
    Sequence* least = nullptr;
    std::int64_t others = -1;
    for (Sequence* q : s.running_) {
      if (q == s.cut_ || q->under_way > 0) continue;
      ++others;
      // With drafts it is the last one.
      if (least == nullptr || s.drafts_ > 0 || q->generated < least->generated ||
          (q->generated == least->generated && q->input >= least->input)) {
        least = q;
      }
    }
    if (others < 1) break;
    s.preempt(*least, false, step);
  }
  if (!fits() && s.cut_ != nullptr && !s.cut_->flying) {  // the engine gives up here
    s.preempt(*s.cut_, false, step);
    s.cut_ = nullptr;
  }
  double generated = 0;
  double most = 1;
  for (const Sequence* q : s.running_) {
    if (q == s.cut_) continue;
    generated += d(q->generated + kRetractSteps);
    most += d(q->output);
  }
  s.token_ratio_ = std::min(1.0, generated / most);
  s.full_ = false;
  return true;
}

void Sglang::plan(Scheduler& s, Step& step) {
  const bool prompts = extend(s, step);
  if (prompts && !s.settings_.mixes) return;
  if (s.running_.empty()) {
    if (s.waiting_.empty()) s.token_ratio_ = first_ratio(s.settings_);
    return;
  }
  if (!prompts && !retract(s, step)) s.token_ratio_ = decayed(s.settings_, s.token_ratio_, 1);
  for (Sequence* q : s.running_) {
    if (q->flying || !q->decodes()) continue;
    if (!s.allocate(*q, q->computed + 1 + s.drafts_)) continue;
    s.add_decode(step, *q);
  }
}

}  // namespace llmperf::serving
