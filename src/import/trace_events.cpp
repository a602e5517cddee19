// nlohmann's SAX parser says what comes next; a small state machine keeps the few members of an event that matter and
// skips the rest, however large. Positions are those the stream has been read to.
#include "import/trace_events.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "base/text.h"

namespace llmperf::import {
namespace {

using Json = nlohmann::json;
using Value = TraceValue;

// Hands a stream on and counts lines on the way.
class CountingBuffer : public std::streambuf {
 public:
  explicit CountingBuffer(std::streambuf& from) : from_(&from) {
    setg(data_.data(), data_.data(), data_.data());
    counted_ = gptr();
  }

  int line() {
    count();
    return line_;
  }
  int column() {
    count();
    return column_;
  }

 protected:
  int_type underflow() override {
    count();
    const std::streamsize got = from_->sgetn(data_.data(), static_cast<std::streamsize>(data_.size()));
    setg(data_.data(), data_.data(), data_.data() + std::max<std::streamsize>(got, 0));
    counted_ = gptr();
    return got > 0 ? traits_type::to_int_type(data_[0]) : traits_type::eof();
  }

 private:
  // Every character once: positions are asked for at every event.
  void count() {
    for (; counted_ != gptr(); ++counted_) {
      ++column_;
      if (*counted_ == '\n') {
        ++line_;
        column_ = 1;
      }
    }
  }

  std::streambuf* from_;
  const char* counted_ = nullptr;
  std::array<char, 1 << 16> data_;
  int line_ = 1;
  int column_ = 1;
};

// Members of an event, and of its "args".
enum class Member : unsigned char { none, skipped, args, name, category, phase, duration, argument };

class Handler : public nlohmann::json_sax<Json> {
 public:
  Handler(CountingBuffer& buffer, descriptor::Problems& problems, const std::function<void(TraceEvent&)>& take)
      : buffer_(&buffer), problems_(&problems), take_(&take) {}

  bool found_events() const { return found_; }

  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar({.text = value ? "True" : "False"}); }
  bool number_integer(number_integer_t value) override {
    return scalar({.text = std::to_string(value), .whole = value}, static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    std::optional<std::int64_t> whole;
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) whole = static_cast<std::int64_t>(value);
    return scalar({.text = std::to_string(value), .whole = whole}, static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override { return scalar({.text = text}, value); }
  bool string(string_t& value) override { return scalar({.text = std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(std::size_t) override {
    ++depth_;
    if (depth_ == event_depth_) {
      event_ = {};
      complete_ = false;
      kept_ = 0;
      member_ = Member::none;
    }
    return true;
  }
  bool key(string_t& key) override {
    if (depth_ == 1 && event_depth_ == 0) {
      events_next_ = key == "traceEvents";
    } else if (depth_ == event_depth_) {
      member_ = event_member(key);
    } else if (depth_ == event_depth_ + 1 && in_args_or_enter()) {
      member_ = Member::argument;
      argument_ = std::move(key);
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == event_depth_ && complete_) {
      event_.line = buffer_->line();
      event_.column = buffer_->column() - 1;
      (*take_)(event_);
      if (problems_->full()) return false;
    }
    if (depth_ == event_depth_ + 1 && member_ == Member::argument) member_ = Member::args;
    --depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && events_next_ && event_depth_ == 0)) {
      event_depth_ = depth_ + 1;
      found_ = true;
    } else if (Value* list = argument_list()) {
      open_.push_back(nullptr);
      if (open_.size() == 1) {
        *list = {};
        list->list = true;
        open_.back() = list;
      } else if (Value* parent = open_[open_.size() - 2]; parent != nullptr && open_.size() <= kMostNested && keep()) {
        parent->items.push_back({});
        parent->items.back().list = true;
        open_.back() = &parent->items.back();
      }
    }
    return true;
  }
  bool end_array() override {
    if (!open_.empty()) open_.pop_back();
    if (depth_ + 1 == event_depth_ && event_depth_ > 0) {
      event_depth_ = 0;  // the list of events ends
      events_next_ = false;
    }
    --depth_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string_view message = error.what();
    const std::size_t dash = message.find(" - ");
    if (dash != std::string_view::npos) message.remove_prefix(dash + 3);
    message = message.substr(0, message.find("; last read: "));
    const bool truncated = message.find("unexpected end of input") != std::string_view::npos ||
                           message.find("missing closing quote") != std::string_view::npos;
    problems_->add(buffer_->line(), std::max(buffer_->column() - 1, 1),
                   fmt::format("not valid JSON: {}", message.substr(0, 200)),
                   truncated ? "is the file truncated?" : "");
    return false;
  }

 private:
  // Enough for any operator; keeps a hostile file from filling memory with one event.
  static constexpr std::size_t kMostNested = 3;
  static constexpr std::size_t kMostValues = 4096;
  static constexpr std::size_t kMostText = 4096;

  static Member event_member(std::string_view key) {
    constexpr std::pair<std::string_view, Member> kMembers[] = {{"name", Member::name},
                                                                {"cat", Member::category},
                                                                {"ph", Member::phase},
                                                                {"dur", Member::duration},
                                                                {"args", Member::args}};
    for (const auto& [name, member] : kMembers) {
      if (name == key) return member;
    }
    return Member::skipped;
  }
  bool in_args_or_enter() const { return member_ == Member::args || member_ == Member::argument; }

  bool keep() { return ++kept_ <= kMostValues; }

  // The list that the current argument is kept in, if it is one that matters.
  Value* argument_list() {
    if (member_ != Member::argument || depth_ < event_depth_ + 2) return nullptr;
    if (argument_ == "Input Dims" || argument_ == "Input dims") return &event_.shapes;
    if (argument_ == "Input type") return &event_.types;
    if (argument_ == "Concrete Inputs") return &event_.concrete;
    return nullptr;
  }

  bool scalar(Value value, std::optional<double> number = std::nullopt) {
    if (event_depth_ == 0 || depth_ < event_depth_) return true;
    if (value.text.size() > kMostText) value.text.resize(kMostText);
    if (depth_ == event_depth_) {
      event_value(std::move(value), number);
    } else if (member_ == Member::argument && depth_ == event_depth_ + 1) {
      argument(value);
    } else if (!open_.empty() && open_.back() != nullptr && keep()) {
      open_.back()->items.push_back(std::move(value));
    }
    return true;
  }

  void event_value(Value value, std::optional<double> number) {
    switch (member_) {
      case Member::name: event_.name = std::move(value.text); break;
      case Member::category: event_.category = std::move(value.text); break;
      case Member::phase: complete_ = value.text == "X"; break;
      case Member::duration: event_.duration = number; break;
      default: break;
    }
  }

  void argument(const Value& value) {
    // Versions of the profiler differ in capitals.
    if (argument_ == "External id" || argument_ == "external id") event_.external_id = value.whole;
    if (argument_ == "correlation") event_.correlation = value.whole;
    if (argument_ == "graph node id") event_.in_graph = value.whole.value_or(0) != 0;
    if (argument_ == "Collective name") event_.collective = value.text;
    if (argument_ == "dtype") event_.dtype = value.text;
    if (argument_ == "In msg nelems") event_.sent = value.whole;
    if (argument_ == "Out msg nelems") event_.received = value.whole;
    if (argument_ == "Group size") event_.ranks = value.whole;
  }

  CountingBuffer* buffer_;
  descriptor::Problems* problems_;
  const std::function<void(TraceEvent&)>* take_;
  int depth_ = 0;
  int event_depth_ = 0;  // at which the members of events stand; 0 outside of the list of events
  bool events_next_ = false;
  bool found_ = false;
  Member member_ = Member::none;
  std::string argument_;
  std::vector<Value*> open_;  // lists of the argument that are open; null for one that is not kept
  std::size_t kept_ = 0;
  bool complete_ = false;
  TraceEvent event_;
};

}  // namespace

void read_trace_events(std::istream& stream, descriptor::Problems& problems,
                       const std::function<void(TraceEvent&)>& take) {
  CountingBuffer buffer(*stream.rdbuf());
  std::istream counted(&buffer);
  Handler handler(buffer, problems, take);
  Json::sax_parse(counted, &handler);
  if (problems.empty() && !handler.found_events()) {
    problems.add(1, 1, "holds no events: neither a list nor an object with \"traceEvents\"");
  }
}

}  // namespace llmperf::import
