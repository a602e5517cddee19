// Matching maps the set of positions of a name where a part of the pattern may begin to the set of those where it
// may end, while the pattern is read; a part that repeats is read again. Sets cannot blow up the way backtracking
// does.
#include "model/name_pattern.h"

#include <bitset>

namespace llmperf::model {
namespace {

class PatternRun {
 public:
  using Positions = std::bitset<NamePattern::kLongest + 1>;  // in the name, between characters

  PatternRun(std::string_view pattern, std::string_view name) : text_(pattern), name_(name) {}

  // Where a match that begins with the name may end; nothing when the pattern is not understood.
  std::optional<Positions> ends(bool is_glob) {
    const Positions reached = is_glob ? glob() : choice(Positions().set(0), 0);
    return sound_ && done() ? std::optional(reached) : std::nullopt;
  }

 private:
  using Characters = std::bitset<128>;
  static constexpr int kDeepest = 4;  // groups in one another

  bool done() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !done() && text_[at_] == c; }
  char take() { return text_[at_++]; }
  bool take_if(char c) {
    const bool found = next_is(c);
    at_ += found ? 1 : 0;
    return found;
  }

  Positions glob() {
    Positions reached = Positions().set(0);
    while (sound_ && !done()) {
      const char c = take();
      if (c != '*') {
        reached = step(reached, c == '[' ? set('!') : c == '?' ? Characters().set() : only(c));
        continue;
      }
      for (std::size_t i = 1; i <= name_.size(); ++i) reached[i] = reached[i] || reached[i - 1];
    }
    return reached;
  }

  Positions choice(const Positions& from, int depth) {
    Positions reached;
    do {
      Positions sequence = from;
      while (sound_ && !done() && !next_is('|') && !next_is(')')) sequence = repeated(sequence, depth);
      reached |= sequence;
    } while (sound_ && take_if('|'));
    return reached;
  }

  Positions repeated(const Positions& from, int depth) {
    const std::size_t begin = at_;
    Positions reached = atom(from, depth);
    if (!next_is('*') && !next_is('+') && !next_is('?')) return reached;
    const char how = take();
    take_if('?');  // as few as possible: which of several matches is found does not matter here
    const std::size_t end = at_;
    Positions fresh = how == '?' ? Positions() : reached;
    if (how != '+') reached |= from;
    while (sound_ && fresh.any()) {
      at_ = begin;
      const Positions next = atom(fresh, depth);
      fresh = next & ~reached;
      reached |= next;
      at_ = end;
    }
    return reached;
  }

  Positions atom(const Positions& from, int depth) {
    const char c = take();
    switch (c) {
      case '(': {
        // Groups that look ahead or set flags begin with a question mark too.
        sound_ = depth < kDeepest && (!take_if('?') || take_if(':'));
        if (!sound_) return {};
        const Positions reached = choice(from, depth + 1);
        sound_ = sound_ && take_if(')');
        return reached;
      }
      case '[': return step(from, set('^'));
      case '\\': return step(from, escaped());
      case '.': return step(from, Characters().set());
      case '$': return from & Positions().set(name_.size());
      case '^': sound_ = sound_ && at_ == 1; return from;
      case '*':
      case '+':
      case '?':
      case '{': sound_ = false; return {};
      default: return step(from, only(c));
    }
  }

  Positions step(const Positions& from, const Characters& characters) const {
    Positions reached;
    for (std::size_t i = 0; i < name_.size() && from.any(); ++i) {
      const auto code = static_cast<unsigned char>(name_[i]);
      if (from.test(i) && code < characters.size() && characters.test(code)) reached.set(i + 1);
    }
    return reached;
  }

  Characters only(char c) {
    Characters one;
    const auto code = static_cast<unsigned char>(c);
    if (code < one.size()) one.set(code);
    sound_ = sound_ && code < one.size();
    return one;
  }
  static Characters between(char first, char last) {
    Characters range;
    const std::size_t end = static_cast<unsigned char>(last);
    for (std::size_t c = static_cast<unsigned char>(first); c <= end && c < range.size(); ++c) range.set(c);
    return range;
  }

  // After the backslash.
  Characters escaped() {
    if (done()) sound_ = false;
    if (!sound_) return {};
    const char c = take();
    const Characters digits = between('0', '9');
    const Characters word = digits | between('a', 'z') | between('A', 'Z') | only('_');
    if (c == 'd') return digits;
    if (c == 'D') return ~digits;
    if (c == 'w') return word;
    if (c == 'W') return ~word;
    if (word.test(static_cast<unsigned char>(c) % word.size())) sound_ = false;  // \b and the like
    return only(c);
  }

  // After the bracket; `negation` in front means all others.
  Characters set(char negation) {
    Characters members;
    const bool others = take_if(negation);
    for (bool first = true; first || !next_is(']'); first = false) {
      if (done()) sound_ = false;
      if (!sound_) return members;
      const char c = take();
      if (c == '\\') {
        members |= escaped();
      } else if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        take();
        members |= between(c, take());
      } else {
        members |= only(c);
      }
    }
    take();
    return others ? ~members : members;
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

}  // namespace

std::optional<NamePattern> NamePattern::read(std::string_view text, bool is_glob) {
  if (text.size() > kLongest || !PatternRun(text, "").ends(is_glob)) return std::nullopt;
  return NamePattern(text, is_glob);
}

bool NamePattern::matches(std::string_view name) const {
  if (name.size() > kLongest) return false;
  const PatternRun::Positions ends = *PatternRun(text_, name).ends(is_glob_);
  if (!is_glob_) return ends.any();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.' && ends.test(i)) return true;
  }
  return ends.test(name.size());
}

}  // namespace llmperf::model
