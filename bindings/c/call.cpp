#include "bindings/c/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "base/list.h"
#include "base/text.h"
#include "descriptor/catalog.h"
#include "points/values.h"

namespace llmperf::c {
namespace {

using descriptor::Node;
using request::Field;

constexpr descriptor::JsonRules kRequestRules = {std::size_t{8} << 20};

bool is_file(const Field& field, const Node& value) {
  const auto sort = field.values.sort;
  if (value.kind == Node::Kind::sequence) {
    return std::any_of(value.items.begin(), value.items.end(), [&](const Node& item) { return is_file(field, item); });
  }
  if (sort == request::Values::Sort::files) return true;
  const bool described = value.kind == Node::Kind::mapping || descriptor::is_inline(value.scalar);
  return sort == request::Values::Sort::paths && (described || descriptor::is_path(value.scalar));
}

int status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::failed: return 1;
    case ErrorKind::bad_input: return 2;
    case ErrorKind::infeasible: return kInfeasible;
  }
  return 1;
}

}  // namespace

Asked::Asked(std::string_view json, std::span<const std::string_view> beside)
    : fields_(descriptor::parse_json(json, "request", kRequestRules)) {
  std::vector<Node::Entry>& entries = fields_.root.entries;
  const auto is_beside = [&](const Node::Entry& entry) { return contains(beside, entry.key); };
  const auto first = std::stable_partition(entries.begin(), entries.end(), std::not_fn(is_beside));
  beside_.assign(std::make_move_iterator(first), std::make_move_iterator(entries.end()));
  entries.erase(first, entries.end());
}

request::Request Asked::request(std::span<const std::string_view> joined) const {
  if (joined.empty()) return request::parse_request(fields_);
  descriptor::Document fields = fields_;
  for (Node::Entry& entry : fields.root.entries) {
    if (entry.value.kind != Node::Kind::sequence || !contains(joined, entry.key)) continue;
    Node list;
    list.kind = Node::Kind::scalar;
    list.quoted = true;
    list.line = entry.value.line;
    list.column = entry.value.column;
    for (const Node& item : entry.value.items) {
      if (item.kind != Node::Kind::scalar) refuse(entry.key, item, "names or numbers");
      list.scalar += (list.scalar.empty() ? "" : ",") + item.scalar;
    }
    entry.value = std::move(list);
  }
  return request::parse_request(fields);
}

void Asked::refuse_fields() const {
  descriptor::Problems problems(fields_.file);
  const descriptor::Reader mapping(fields_.root, problems, "a request");  // reports what is none
  for (const Node::Entry& entry : fields_.root.entries) {
    problems.add(entry.line, entry.column, quote(entry.key) + " has no effect here", "leave it out");
  }
  problems.throw_if_any();
}

std::vector<service::Swept> Asked::swept() const {
  descriptor::Problems problems(fields_.file);
  const descriptor::Reader mapping(fields_.root, problems, "a request");  // reports what is none
  std::vector<service::Swept> swept;
  for (const Node::Entry& entry : fields_.root.entries) {
    const Field* field = request::find_key(entry, problems);
    if (field == nullptr || entry.value.kind == Node::Kind::null) continue;
    service::Swept of{field, {}};
    if (entry.value.kind == Node::Kind::sequence && !field->is_switch()) {
      if (entry.value.items.empty()) problems.add(entry.value, quote(entry.key) + " is an empty list");
      for (const Node& item : entry.value.items) {
        std::optional<std::string> value = request::typed(*field, item, problems);
        if (value && contains(of.values, *value)) problems.add(item, quote(*value) + " is given twice");
        if (value) of.values.push_back(*std::move(value));
      }
    } else if (std::optional<std::string> value = request::typed(*field, entry.value, problems)) {
      const bool whole = field->is_switch() || entry.value.kind == Node::Kind::mapping || descriptor::is_inline(*value);
      of.values = whole ? std::vector{*value}
                        : points::expand_values(fmt::format("`{}`", field->name), *value, field->separator,
                                                static_cast<std::int64_t>(field->kilo));
    }
    if (!of.values.empty()) swept.push_back(std::move(of));
  }
  problems.throw_if_any();
  return swept;
}

const Node* Asked::find(std::string_view key) const {
  const auto found = std::find_if(beside_.begin(), beside_.end(), [&](const Node::Entry& e) { return e.key == key; });
  return found == beside_.end() || found->value.kind == Node::Kind::null ? nullptr : &found->value;
}

void Asked::refuse(std::string_view key, const Node& value, const std::string& wanted) const {
  throw Error(ErrorKind::bad_input, {{.where = {fields_.file, value.line, value.column, {}},
                                      .message = fmt::format("`{}` takes {}", key, wanted),
                                      .hint = {}}});
}

std::string Asked::text(std::string_view key) const {
  const Node* value = find(key);
  if (value == nullptr) return {};
  if (value->kind == Node::Kind::mapping) return descriptor::to_json(*value);
  if (value->kind != Node::Kind::scalar) refuse(key, *value, "a text");
  return value->scalar;
}

std::vector<std::string> Asked::texts(std::string_view key) const {
  const Node* value = find(key);
  if (value == nullptr) return {};
  if (value->kind == Node::Kind::scalar) return {value->scalar};
  std::vector<std::string> all;
  for (const Node& item : value->items) {
    if (item.kind != Node::Kind::scalar) refuse(key, item, "texts");
    all.push_back(item.scalar);
  }
  return all;
}

std::optional<std::int64_t> Asked::count(std::string_view key, std::int64_t least, std::int64_t most) const {
  const Node* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Node::Kind::scalar) refuse(key, *value, "a number");
  return request::count_value(fmt::format("`{}`", key), value->scalar, least, most);
}

bool Asked::is(std::string_view key) const {
  const Node* value = find(key);
  if (value == nullptr) return false;
  if (value->scalar != "true" && value->scalar != "false") refuse(key, *value, "true or false");
  return value->scalar == "true";
}

request::Sources& Asked::sources(llmperf_session& session) {
  descriptor::Problems ignored(fields_.file);
  for (const Node::Entry& entry : fields_.root.entries) {
    const Field* field = request::find_key(entry, ignored);
    if (field == nullptr || is_file(*field, entry.value)) return own_;
  }
  return session.sources;
}

Interruptible::Interruptible(llmperf_session& session) : session_(session) {
  const std::scoped_lock lock(session_.mutex);
  session_.running.insert(&stopped_);
}

Interruptible::~Interruptible() {
  const std::scoped_lock lock(session_.mutex);
  session_.running.erase(&stopped_);
}

void tell(llmperf_result& result, const Error& error) {
  using Json = nlohmann::ordered_json;
  result.status = status_of(error.kind());
  Json errors = Json::array();
  for (const Diagnostic& d : error.diagnostics()) {
    Json& one = errors.emplace_back(Json{{"message", d.message}});
    if (!d.hint.empty()) one["hint"] = d.hint;
    if (!d.where.file.empty()) one["file"] = d.where.file;
    if (d.where.line > 0) one["line"] = d.where.line;
    if (d.where.column > 0) one["column"] = d.where.column;
  }
  const Json document = {{"schema", "llmperf.error"}, {"status", result.status}, {"errors", std::move(errors)}};
  result.error = document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

llmperf_result* answered(const std::function<void(llmperf_result&)>& ask) noexcept {
  std::unique_ptr<llmperf_result> result;
  try {
    result = std::make_unique<llmperf_result>();
    try {
      ask(*result);
    } catch (const Error& error) {
      tell(*result, error);
    } catch (const std::bad_alloc&) {
      tell(*result, Error::failed("out of memory"));
    } catch (const std::exception& error) {
      tell(*result, Error::failed(error.what()));
    }
  } catch (...) {  // not even memory for saying so
    result.reset();
  }
  return result.release();
}

}  // namespace llmperf::c
