#include "serving/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "base/number.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "descriptor/csv.h"
#include "descriptor/node.h"
#include "serving/random.h"

namespace llmperf::serving {
namespace {

// kNothing: it says nothing that a load hangs on, or what other columns say as well.
enum Column : std::uint8_t { kTime, kInput, kOutput, kSession, kHashes, kTokens, kNothing, kColumns };
struct Columns {
  std::string_view names;  // in small letters, each between two commas
  Column column;
  double unit = 1;  // of times, in seconds
};
constexpr Columns kNames[] = {
    {",arrival_s,timestamp,arrival_time,arrived_at,arrival_timestamp,", kTime},
    {",timestamp_ms,arrival_ms,", kTime, 1e-3},
    {",arrival_time_ns,", kTime, 1e-9},
    {",input_tokens,contexttokens,input_length,request tokens,num_prefill_tokens,prompt_tokens,prompt_size,input_toks,",
     kInput},
    {",output_tokens,generatedtokens,output_length,response tokens,num_decode_tokens,completion_tokens,token_size,"
     "output_toks,",
     kOutput},
    {",session,session_id,session id,chat_id,", kSession},
    {",hash_ids,", kHashes},
    {",input_tok_ids,", kTokens},
    {",output_tok_ids,request_id,id,total tokens,", kNothing},
};
const Columns* column_of(std::string_view name) {
  const std::string wanted = "," + to_lower(name) + ",";
  const auto found =
      std::ranges::find_if(kNames, [&](const Columns& c) { return c.names.find(wanted) != std::string_view::npos; });
  return found == std::end(kNames) || name.find(',') != std::string_view::npos ? nullptr : &*found;
}

constexpr std::int64_t kTokensOfBlock = 16;  // of Qwen-Bailian's blocks, and of those that token ids are put into

// "2023-11-16 18:17:03.9799600", with a T for the blank and a Z or +00:00 behind it, if you like.
std::optional<double> date_seconds(std::string_view text) {
  for (const std::string_view zone : {"Z", "+00:00"}) {
    if (text.ends_with(zone)) text.remove_suffix(zone.size());
  }
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) -> std::optional<std::int64_t> {
    std::int64_t n = 0;
    for (const char c : text.substr(at, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      n = n * 10 + (c - '0');
    }
    return n;
  };
  const auto year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2),
             minute = number(14, 2), second = number(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  double fraction = 0;
  if (text.size() > 19) {
    if (text[19] != '.') return std::nullopt;
    double unit = 0.1;
    for (const char c : text.substr(20)) {
      if (c < '0' || c > '9') return std::nullopt;
      fraction += unit * (c - '0');
      unit /= 10;
    }
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return d(days * 86400 + *hour * 3600 + *minute * 60 + *second) + fraction;
}

// A row as it was found; the places are for messages.
struct Field {
  std::string text;
  int column = 0;
  double unit = 1;
};
struct Row {
  int line = 0;
  std::array<std::optional<Field>, kColumns> fields = {};
  std::vector<std::uint64_t> hashes = {};
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, std::int64_t most)
      : text_(text), problems_(file), most_(most > 0 ? most : std::numeric_limits<std::int64_t>::max()) {
    trace_.workload.name = file;
  }

  Trace read() {
    const std::string_view content = trim(text_);
    if (content.starts_with('{')) {
      read_lines();
    } else if (content.starts_with('[')) {
      read_array();
    } else {
      read_csv();
    }
    if (problems_.empty() && trace_.workload.requests.empty()) problems_.add(1, 1, "a trace without a request");
    problems_.throw_if_any();
    if (!passed_over_.empty()) {
      trace_.notes.push_back(
          fmt::format("passed over of the trace, though it may change the load: {}",
                      join(std::vector<std::string>(passed_over_.begin(), passed_over_.end()), ", ")));
    }
    if (conversations_ > 0) {
      trace_.notes.push_back(fmt::format(
          "lengths of {} conversations are estimated from their text, of whose ASCII four characters are taken for a "
          "token and of others each for 0.7; {} are left out as vLLM's benchmark leaves them out",
          format_count(d(conversations_)), format_count(d(left_out_))));
    }
    return std::move(trace_);
  }

 private:
  bool done() const { return problems_.full() || static_cast<std::int64_t>(trace_.workload.requests.size()) >= most_; }

  void read_csv() {
    const std::string_view header = text_.substr(0, text_.find('\n'));
    const bool tabs = header.find('\t') != std::string_view::npos && header.find(',') == std::string_view::npos;
    descriptor::CsvReader csv(text_, problems_, 1, tabs ? '\t' : ',');
    if (!csv.next()) return;
    std::array<std::optional<std::size_t>, kColumns> columns = {};
    std::vector<std::string> names;
    double unit = 1;
    for (std::size_t i = 0; i < csv.cells().size(); ++i) {
      names.push_back(csv.cells()[i].text);
      const Columns* c = column_of(csv.cells()[i].text);
      if (c == nullptr || c->column == kHashes || c->column == kTokens) {  // of which a cell has no list
        pass_over(names.back());
      } else if (!columns[c->column]) {
        columns[c->column] = i;
        if (c->column == kTime) unit = c->unit;
      }
    }
    for (const auto& [column, name] : {std::pair{kInput, "input_tokens"}, std::pair{kOutput, "output_tokens"}}) {
      if (columns[column]) continue;
      problems_.add(csv.line(), 1, fmt::format("no column of {}: there are {}", name, quote(join(names, ", "))),
                    "columns: arrival_s (or timestamp), input_tokens, output_tokens");
    }
    if (!problems_.empty()) return;
    while (!done() && csv.next()) {
      Row row{.line = csv.line()};
      for (std::size_t c = 0; c < kHashes; ++c) {
        if (!columns[c] || *columns[c] >= csv.cells().size()) continue;
        const descriptor::CsvCell& cell = csv.cells()[*columns[c]];
        if (!cell.text.empty()) row.fields[c] = Field{cell.text, cell.column, unit};
      }
      add(row, 1);
    }
  }

  void read_json(std::string_view one, int line) {
    try {
      read_object(descriptor::parse_json(one, problems_.file(), {.max_bytes = kMaxTraceBytes}).root, line);
    } catch (const Error& error) {
      for (const Diagnostic& found : error.diagnostics()) {
        problems_.add(line + std::max(found.where.line, 1) - 1, found.where.column, found.message, found.hint);
      }
    }
  }
  void read_lines() {
    std::string_view rest = text_;
    for (int line = 1; !rest.empty() && !done(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const std::string_view one = trim(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (!one.empty()) read_json(one, line);
    }
  }
  // Item by item, as files of conversations are larger than a tree of them should be.
  void read_array() {
    int line = 1;
    int begun = 1;
    int depth = 0;
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text_.size() && !done(); ++i) {
      const char c = text_[i];
      if (c == '\n') ++line;
      if (quoted) {
        if (c == '\\') ++i;
        quoted = c != '"';
      } else if (c == '"') {
        quoted = true;
      } else if ((c == '{' || c == '[') && ++depth == 2) {
        begin = i;
        begun = line;
      } else if ((c == '}' || c == ']') && --depth == 1) {
        read_json(text_.substr(begin, i + 1 - begin), begun);
      }
    }
    if (depth != 0 && !done() && problems_.empty()) problems_.add(begun, 1, "the list does not end");
  }

  void pass_over(const std::string& name) {
    constexpr std::size_t kNamed = 16;
    if (passed_over_.size() < kNamed) passed_over_.insert(name.substr(0, 64));
  }

  // ShareGPT's conversations: the first two turns are a prompt and an answer. Those that vLLM's benchmark prunes
  // (vllm/benchmarks/datasets.py, is_valid_sequence) are pruned.
  void read_conversation(const descriptor::Node& turns, int line) {
    std::array<std::int64_t, 2> lengths = {};
    for (std::size_t i = 0; i < lengths.size() && i < turns.items.size(); ++i) {
      for (const descriptor::Node::Entry& entry : turns.items[i].entries) {
        if (entry.key != "value" && entry.key != "content") continue;
        double tokens = 0;
        for (const char c : entry.value.scalar) {
          const auto byte = static_cast<unsigned char>(c);
          tokens += byte < 0x80 ? 0.25 : byte >= 0xC0 ? 0.7 : 0;
        }
        lengths[i] = static_cast<std::int64_t>(std::ceil(tokens));
      }
    }
    const auto [prompt, answer] = lengths;
    if (prompt < 4 || answer < 4 || prompt > 1024 || prompt + answer > 2048) {
      ++left_out_;
      return;
    }
    ++conversations_;
    Row row{.line = line};
    row.fields[kInput] = Field{std::to_string(prompt)};
    row.fields[kOutput] = Field{std::to_string(answer)};
    add(row, 1);
  }

  void read_object(const descriptor::Node& object, int line) {
    Row row{.line = line};
    bool chat = false;
    bool hashed = false;
    for (const descriptor::Node::Entry& entry : object.entries) {
      if (entry.key == "conversations" || entry.key == "messages") return read_conversation(entry.value, line);
      const Columns* c = column_of(entry.key);
      chat = chat || entry.key == "chat_id";
      if (c == nullptr) {
        pass_over(entry.key);
      } else if (c->column == kHashes || c->column == kTokens) {
        hashed = hashed || c->column == kHashes;
        std::uint64_t block = 0;
        std::size_t of_block = 0;
        for (const descriptor::Node& item : entry.value.items) {
          const std::optional<std::int64_t> id = parse_int(item.scalar);
          if (!id || *id < 0) {
            problems_.add(line, item.column,
                          fmt::format("{} is no {}", quote(item.scalar), c->names.substr(1, c->names.size() - 3)));
            return;
          }
          if (c->column == kHashes) {
            row.hashes.push_back(static_cast<std::uint64_t>(*id));
            continue;
          }
          block = mixed(block ^ static_cast<std::uint64_t>(*id + 1));
          if (++of_block % kTokensOfBlock == 0) row.hashes.push_back(std::exchange(block, 0) >> 8);
        }
      } else if (entry.value.kind == descriptor::Node::Kind::scalar) {
        row.fields[c->column] = Field{entry.value.scalar, entry.value.column, c->unit};
      }
    }
    // Mooncake's are milliseconds; nothing else tells them from seconds.
    const bool mooncake = hashed && !chat;
    if (mooncake && row.fields[kTime]) row.fields[kTime]->unit = 1e-3;
    hash_tokens_ = mooncake ? 512 : kTokensOfBlock;
    add(row, 1);
  }

  std::optional<std::int64_t> tokens(const Row& row, Column column, std::string_view what) {
    const std::optional<Field>& field = row.fields[column];
    if (!field) {
      problems_.add(row.line, 1, fmt::format("no {}", what));
      return std::nullopt;
    }
    const std::optional<std::int64_t> n = parse_int(field->text);
    if (!n || *n < 1 || *n > kMaxLength) {
      problems_.add(
          row.line, field->column,
          fmt::format("{} of {}: a number of tokens from 1 to {} is expected", what, quote(field->text), kMaxLength),
          n && *n == 0 ? "a request that failed? leave it out" : "");
      return std::nullopt;
    }
    return n;
  }

  void add(const Row& row, int column) {
    Workload& w = trace_.workload;
    const std::optional<std::int64_t> input = tokens(row, kInput, "input tokens");
    const std::optional<std::int64_t> output = tokens(row, kOutput, "output tokens");
    if (!input || !output) return;
    Request r;
    r.input = *input;
    r.output = *output;
    const std::optional<Field>& time = row.fields[kTime];
    if (w.requests.empty()) trace_.timed = time.has_value();
    if (time.has_value() != trace_.timed) {
      problems_.add(row.line, column, trace_.timed ? "no time" : "a time, where the first request has none");
      return;
    }
    if (time) {
      std::optional<double> at = parse_double(time->text);
      if (at) at = *at * time->unit;
      if (!at) at = date_seconds(time->text);
      if (!at || !(std::abs(*at) < 1e12)) {
        problems_.add(row.line, time->column, fmt::format("{} is no time", quote(time->text)),
                      "seconds, or a date: 2023-11-16 18:17:03.97");
        return;
      }
      if (w.requests.empty()) first_ = *at;
      r.sent = Seconds{*at - first_};
      if (!w.requests.empty() && r.sent < w.requests.back().sent) {
        problems_.add(row.line, time->column, fmt::format("{} is before the request above", quote(time->text)),
                      "times must not decrease: sort the trace");
        return;
      }
    }
    r.first_segment = static_cast<std::int32_t>(w.segments.size());
    std::int64_t end = 0;
    for (const std::uint64_t hash : row.hashes) {
      if (end >= r.input) break;
      end = std::min(end + hash_tokens_, r.input);
      w.segments.push_back({mixed(hash + 1) >> 3, end});
    }
    if (row.fields[kSession]) {
      const auto [said, first] = said_.try_emplace(row.fields[kSession]->text);
      auto& [known, id, last] = said->second;
      r.after = first ? -1 : last;
      last = static_cast<std::int32_t>(w.requests.size());
      r.session = row.hashes.empty();
      // A turn that is no longer than what was said before is not its continuation.
      if (first || (r.session && r.input < known)) id = sessions_++;
      if (r.session) w.segments.push_back({mixed(id + 1) >> 3, r.input});
      known = r.input + r.output;
    }
    r.segments = static_cast<std::int32_t>(w.segments.size()) - r.first_segment;
    w.requests.push_back(r);
  }

  std::string_view text_;
  descriptor::Problems problems_;
  std::int64_t most_;
  Trace trace_;
  double first_ = 0;
  std::int64_t hash_tokens_ = 512;
  // By session tokens, an id, and the last request.
  std::unordered_map<std::string, std::tuple<std::int64_t, std::uint64_t, std::int32_t>> said_;
  std::uint64_t sessions_ = 0;
  std::set<std::string> passed_over_;  // columns
  std::int64_t conversations_ = 0, left_out_ = 0;
};

}  // namespace

Trace read_trace(std::string_view text, const std::string& file, std::int64_t most) {
  return Reader(text, file, most).read();
}

Trace load_trace(const std::string& path, std::int64_t most) {
  // What has an extension is a file, whatever the extension says.
  const bool file = descriptor::is_path(path) || path.find('.') != std::string::npos;
  const descriptor::Text text = file ? descriptor::Text{path, descriptor::read_text_file(path, kMaxTraceBytes)}
                                     : descriptor::load_text(descriptor::Kind::trace, path, kMaxTraceBytes);
  return read_trace(text.text, text.path, most);
}

Trace first_of(const Trace& trace, std::int64_t most) {
  const Workload& all = trace.workload;
  Trace part{.workload = {}, .timed = trace.timed, .notes = trace.notes};
  part.workload.name = all.name;
  const auto n = std::min(all.requests.size(), static_cast<std::size_t>(most));
  part.workload.requests.assign(all.requests.begin(), all.requests.begin() + static_cast<std::ptrdiff_t>(n));
  if (n > 0) {
    const Request& last = part.workload.requests.back();
    part.workload.segments.assign(all.segments.begin(), all.segments.begin() + last.first_segment + last.segments);
  }
  return part;
}

double mean_known_tokens(const Workload& requests) {
  // What a prompt has in common with an earlier one ends at the first segment that is new.
  std::unordered_map<std::uint64_t, std::int64_t> longest;  // by id
  double sum = 0;
  for (const Request& r : requests.requests) {
    std::int64_t known = 0;
    bool same = true;
    for (const Segment& s : requests.content(r)) {
      const auto [seen, first] = longest.try_emplace(s.id, 0);
      if (same) known = std::max(known, std::min(seen->second, s.end));
      same = same && seen->second >= s.end;
      seen->second = std::max(seen->second, s.end + (r.session ? r.output : 0));
    }
    sum += d(std::min(known, r.input - 1));
  }
  return requests.requests.empty() ? 0 : sum / d(static_cast<std::int64_t>(requests.requests.size()));
}

Workload sent_as(Trace trace, const Load& load) {
  Workload w = std::move(trace.workload);
  w.concurrency = load.concurrency;
  w.open = trace.timed && !load.concurrency;
  if (trace.timed && (w.open || load.rate)) {  // times that were recorded are those at which turns were sent
    for (Request& r : w.requests) r.after = -1;
  }
  if (!load.rate) {
    if (trace.timed || load.concurrency) return w;
    throw Error::bad_input(fmt::format("{} has lengths and no times", w.name), "say `rate` or `concurrency`");
  }
  w.open = true;
  const auto n = static_cast<std::int64_t>(w.requests.size());
  if (!trace.timed) {
    Load other = load;
    other.requests = n;
    other.trace.reset();
    const Workload times = make_workload(other);
    for (std::size_t i = 0; i < w.requests.size(); ++i) w.requests[i].sent = times.requests[i].sent;
    w.endless = true;
    return w;
  }
  if (const double own = w.requests_per_second(); own > 0) {
    for (Request& r : w.requests) r.sent = r.sent * (own / *load.rate);
  }
  return w;
}

}  // namespace llmperf::serving
