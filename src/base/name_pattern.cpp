// A pattern becomes a small program (Thompson 1968, "Regular Expression Search Algorithm"), and matching holds the set
// of its steps that may be next: at each character every step is looked at once at most.
#include "base/name_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"

namespace llmperf {

class PatternReader {
 public:
  using Step = NamePattern::Step;
  using Characters = NamePattern::Characters;

  explicit PatternReader(std::string_view text) : text_(text) {
    if (text.size() <= kLongestText) return;
    at_ = kLongestText;
    fail("a pattern may not be longer");
  }

  std::vector<Step> glob() {
    while (!done()) {
      const char c = take();
      if (c == '*') {
        steps_.push_back({Step::Kind::split, 3});
        put(Characters().set());
        steps_.push_back({Step::Kind::jump, -2});
      } else {
        put(c == '[' ? set('!') : c == '?' ? Characters().set() : only(c));
      }
    }
    return std::move(steps_);
  }

  std::vector<Step> expression() {
    choice(0);
    if (!done()) fail("a ) without its (");
    return std::move(steps_);
  }

 private:
  static constexpr int kDeepest = 32;                // groups in one another
  static constexpr std::size_t kMostRepeated = 200;  // steps that are copies, for {n,m}
  static constexpr std::int64_t kMostTimes = 200;

  bool done() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !done() && text_[at_] == c; }
  char take() { return text_[at_++]; }
  bool take_if(char c) {
    const bool found = next_is(c);
    at_ += found ? 1 : 0;
    return found;
  }
  // Of the character that was taken last.
  [[noreturn]] void fail(std::string_view what) const {
    throw Error::bad_input(fmt::format("character {}: {}", std::max<std::size_t>(at_, 1), what));
  }

  std::int32_t steps_from(std::size_t place) const { return static_cast<std::int32_t>(steps_.size() - place); }
  void put(const Characters& one_of) { steps_.push_back({.characters = one_of}); }

  void choice(int depth) {
    std::vector<std::size_t> ends;  // of the alternatives before the last
    for (std::size_t begin = steps_.size();; begin = steps_.size()) {
      while (!done() && !next_is('|') && !next_is(')')) repeated(depth);
      if (!take_if('|')) break;
      steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(begin), {Step::Kind::split, steps_from(begin) + 2});
      ends.push_back(steps_.size());
      steps_.push_back({Step::Kind::jump});
    }
    for (const std::size_t end : ends) steps_[end].to = steps_from(end);
  }

  void repeated(int depth) {
    const std::size_t begin = steps_.size();
    atom(depth);
    std::int64_t least = 1;
    std::int64_t most = 1;  // negative: any number
    if (take_if('*')) {
      least = 0, most = -1;
    } else if (take_if('+')) {
      most = -1;
    } else if (take_if('?')) {
      least = 0;
    } else if (take_if('{')) {
      least = times();
      most = !take_if(',') ? least : next_is('}') ? -1 : times();
      if (!take_if('}')) fail("a repetition that does not end");
      if (most >= 0 && most < least) fail("a repetition of more than it allows");
    } else {
      return;
    }
    take_if('?');  // as few as possible: which of several matches is found does not matter here
    const std::vector<Step> one(steps_.begin() + static_cast<std::ptrdiff_t>(begin), steps_.end());
    const auto length = static_cast<std::int32_t>(one.size());
    copied_ += static_cast<std::size_t>(std::max<std::int64_t>({most, least, 1}) - 1) * (one.size() + 1);
    if (copied_ > kMostRepeated) fail("a repetition of too much");
    steps_.resize(begin);
    const auto copy = [&](std::int32_t passed_over) {
      if (passed_over > 0) steps_.push_back({Step::Kind::split, passed_over});
      steps_.insert(steps_.end(), one.begin(), one.end());
    };
    for (std::int64_t i = 0; i < least; ++i) copy(0);
    if (most < 0 && least > 0) steps_.push_back({Step::Kind::split, -length});
    if (most < 0 && least == 0) {
      copy(length + 2);
      steps_.push_back({Step::Kind::jump, -length - 1});
    }
    // Each of those that may be missing lies in the one before it, so that the first that is missing is the last.
    for (auto left = static_cast<std::int32_t>(most - least); left > 0; --left) copy(left * (length + 1));
  }

  std::int64_t times() {
    const std::size_t begin = at_;
    while (!done() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    const auto number = parse_int(text_.substr(begin, at_ - begin));
    if (!number || *number > kMostTimes) fail(fmt::format("a repetition is of up to {} times", kMostTimes));
    return *number;
  }

  void atom(int depth) {
    const char c = take();
    switch (c) {
      case '(':
        if (depth == kDeepest) fail("groups too deep in one another");
        if (take_if('?') && !take_if(':')) {
          const std::string_view how = text_.substr(at_, 2);
          fail(how.starts_with('=') || how.starts_with('!')   ? "a look-ahead"
               : how == "<=" || how == "<!"                   ? "a look-behind"
               : how.starts_with('<') || how.starts_with('P') ? "a group with a name"
                                                              : "a group with flags");
        }
        choice(depth + 1);
        if (!take_if(')')) fail("a ) is missing");
        return;
      case '[': return put(set('^'));
      case '\\': return put(escaped());
      case '.': return put(Characters().set());
      case '$': return steps_.push_back({Step::Kind::end});
      case '^': return steps_.push_back({Step::Kind::begin});
      case '*':
      case '+':
      case '?':
      case '{': fail("nothing to repeat");
      default: return put(only(c));
    }
  }

  Characters only(char c) const {
    Characters one;
    const auto code = static_cast<unsigned char>(c);
    if (code >= one.size()) fail("no ASCII");
    return one.set(code);
  }
  Characters between(char first, char last) const {
    only(first), only(last);
    if (last < first) fail("a range that does not go up");
    Characters range;
    for (char c = first; c < last; ++c) range.set(static_cast<std::size_t>(c));
    return range.set(static_cast<std::size_t>(last));
  }

  // After the backslash.
  Characters escaped() {
    if (done()) fail("nothing behind a backslash");
    const char c = take();
    const Characters digits = between('0', '9');
    const Characters word = digits | between('a', 'z') | between('A', 'Z') | only('_');
    const Characters blank = between('\t', '\r') | only(' ');
    switch (c) {
      case 'd': return digits;
      case 'D': return ~digits;
      case 'w': return word;
      case 'W': return ~word;
      case 's': return blank;
      case 'S': return ~blank;
      case 'b':
      case 'B': fail("a word boundary");
      default: break;
    }
    const Characters one = only(c);
    if ((digits & one).any()) fail("a back reference");
    if ((word & one).any()) fail(fmt::format("an unknown escape \\{}", c));
    return one;
  }

  // After the bracket; `negation` in front means all others.
  Characters set(char negation) {
    Characters members;
    const bool others = take_if(negation);
    for (bool first = true; first || !next_is(']'); first = false) {
      if (done()) fail("a ] is missing");
      const char c = take();
      if (c == '\\') {
        members |= escaped();
      } else if (c == '[' && next_is(':')) {
        fail("a class with a name");
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
  std::size_t at_ = 0;
  std::size_t copied_ = 0;
  std::vector<Step> steps_;
};

NamePattern NamePattern::glob(std::string_view text) {
  NamePattern pattern;
  pattern.is_glob_ = true;
  pattern.steps_ = PatternReader(text).glob();
  return pattern;
}

NamePattern NamePattern::regex(std::string_view text) {
  NamePattern pattern;
  pattern.steps_ = PatternReader(text).expression();
  return pattern;
}

bool NamePattern::run(std::string_view name, bool anywhere) const {
  std::vector<std::size_t> current;  // steps that take a character
  std::vector<std::size_t> next;
  std::vector<std::size_t> open;                        // steps that are still to be followed
  std::vector<std::size_t> seen(steps_.size() + 1, 0);  // at which position, counted from 1
  for (std::size_t at = 0; at <= name.size(); ++at) {
    bool matched = false;
    next.clear();
    const auto follow = [&](std::size_t first) {
      for (open.push_back(first); !open.empty();) {
        const std::size_t step = open.back();
        open.pop_back();
        if (std::exchange(seen[step], at + 1) == at + 1) continue;
        if (step == steps_.size()) {
          matched = true;
          continue;
        }
        const auto& [kind, to, characters] = steps_[step];
        const std::size_t target = step + static_cast<std::size_t>(to);
        if (kind == Step::Kind::take) next.push_back(step);
        if (kind == Step::Kind::split || kind == Step::Kind::jump) open.push_back(target);
        const bool passed = kind == Step::Kind::begin ? at == 0 : kind == Step::Kind::end && at == name.size();
        if (kind == Step::Kind::split || passed) open.push_back(step + 1);
      }
    };
    for (const std::size_t step : current) {
      const auto code = static_cast<unsigned char>(name[at - 1]);
      if (code < steps_[step].characters.size() && steps_[step].characters.test(code)) follow(step + 1);
    }
    if (at == 0 || anywhere) follow(0);
    if (matched && (!is_glob_ || at == name.size() || name[at] == '.')) return true;
    std::swap(current, next);
  }
  return false;
}

}  // namespace llmperf
