// A pattern is a tree, and matching it maps the set of positions where it may begin to the set of those where it may
// end. Sets cannot blow up the way backtracking does.
#include "model/name_pattern.h"

#include <utility>

namespace llmperf::model {

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  std::optional<NamePattern> glob() {
    Node root;
    while (!done() && sound_) {
      const char c = take();
      Node one{.kind = Kind::characters, .characters = c == '[' ? set('!') : c == '*' || c == '?' ? any() : only(c)};
      if (c == '*') one = repeat(std::move(one), true, true);
      root.parts.push_back(std::move(one));
    }
    return pattern(std::move(root), true);
  }

  std::optional<NamePattern> regex() {
    Node root = choice(0);
    return pattern(std::move(root), false);
  }

 private:
  using Node = NamePattern::Node;
  using Kind = Node::Kind;
  using Characters = NamePattern::Characters;
  static constexpr int kDeepest = 4;  // groups in one another

  std::optional<NamePattern> pattern(Node root, bool whole) {
    if (!done() || !sound_ || text_.size() > NamePattern::kLongest) return std::nullopt;
    NamePattern result;
    result.root_ = std::move(root);
    result.whole_ = whole;
    return result;
  }

  bool done() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !done() && text_[at_] == c; }
  char take() { return text_[at_++]; }
  bool take_if(char c) {
    const bool found = next_is(c);
    at_ += found ? 1 : 0;
    return found;
  }

  static Node repeat(Node part, bool optional, bool many) {
    Node node{.kind = Kind::repeat, .optional = optional, .many = many};
    node.parts.push_back(std::move(part));
    return node;
  }
  Characters only(char c) {
    Characters one;
    const auto code = static_cast<unsigned char>(c);
    if (code < one.size()) one.set(code);
    sound_ = sound_ && code < one.size();
    return one;
  }
  static Characters any() { return Characters().set(); }
  static Characters between(char first, char last) {
    Characters range;
    const std::size_t end = static_cast<unsigned char>(last);
    for (std::size_t c = static_cast<unsigned char>(first); c <= end && end < range.size(); ++c) range.set(c);
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
      if (done() || !sound_) {
        sound_ = false;
        return members;
      }
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

  Node atom(int depth) {
    const char c = take();
    Node node{.kind = Kind::characters};
    if (c == '(') {
      // Groups that look ahead or set flags begin with a question mark too.
      if (depth == kDeepest || (take_if('?') && !take_if(':'))) {
        sound_ = false;
        return node;
      }
      node = choice(depth + 1);
      sound_ = sound_ && take_if(')');
    } else if (c == '[') {
      node.characters = set('^');
    } else if (c == '\\') {
      node.characters = escaped();
    } else if (c == '.') {
      node.characters = any();
    } else if (c == '$') {
      node.kind = Kind::end;
    } else if (c == '^') {
      sound_ = sound_ && at_ == 1;
      node.kind = Kind::sequence;
    } else {
      sound_ = sound_ && c != '*' && c != '+' && c != '?' && c != '{';
      node.characters = only(c);
    }
    return node;
  }

  Node choice(int depth) {
    Node alternatives{.kind = Kind::choice};
    do {
      Node sequence;
      while (sound_ && !done() && !next_is('|') && !next_is(')')) {
        Node one = atom(depth);
        if (next_is('*') || next_is('+') || next_is('?')) {
          const char how = take();
          one = repeat(std::move(one), how != '+', how != '?');
          take_if('?');  // as few as possible: which of several matches is found does not matter here
        }
        sequence.parts.push_back(std::move(one));
      }
      alternatives.parts.push_back(std::move(sequence));
    } while (sound_ && take_if('|'));
    return alternatives;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

std::optional<NamePattern> NamePattern::glob(std::string_view text) { return PatternParser(text).glob(); }
std::optional<NamePattern> NamePattern::regex(std::string_view text) { return PatternParser(text).regex(); }

NamePattern::Positions NamePattern::run(const Node& node, Positions from, std::string_view name) {
  Positions reached;
  switch (node.kind) {
    case Node::Kind::characters:
      for (std::size_t i = 0; i < name.size(); ++i) {
        const auto code = static_cast<unsigned char>(name[i]);
        if (from.test(i) && code < node.characters.size() && node.characters.test(code)) reached.set(i + 1);
      }
      return reached;
    case Node::Kind::end:
      if (from.test(name.size())) reached.set(name.size());
      return reached;
    case Node::Kind::sequence:
      for (const Node& part : node.parts) {
        if (from.none()) break;
        from = run(part, from, name);
      }
      return from;
    case Node::Kind::choice:
      for (const Node& part : node.parts) reached |= run(part, from, name);
      return reached;
    case Node::Kind::repeat: break;
  }
  if (node.optional) reached = from;
  for (;;) {
    from = run(node.parts.front(), from, name);
    const Positions fresh = from & ~reached;
    reached |= from;
    if (!node.many || fresh.none()) return reached;
    from = fresh;
  }
}

bool NamePattern::matches(std::string_view name) const {
  if (name.size() > kLongest) return false;
  const Positions ends = run(root_, Positions().set(0), name);
  if (!whole_) return ends.any();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '.' && ends.test(i)) return true;
  }
  return ends.test(name.size());
}

}  // namespace llmperf::model
