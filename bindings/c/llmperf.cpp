// The C interface: what a page and other programs ask (llmperf.h). Measurements and Arrow have files of their own,
// which a page does without.
#include "bindings/c/llmperf.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/version.h"
#include "bindings/c/call.h"
#include "hardware/device.h"
#include "model/video/video_dit.h"
#include "points/selection.h"
#include "result/document.h"
#include "result/serving.h"
#include "service/capacity.h"
#include "service/catalog.h"
#include "service/estimate.h"
#include "service/serve.h"
#include "service/sweep.h"

using namespace llmperf;
using c::answered;
using c::Asked;
using c::tell;

namespace {

constexpr const char* kWanted = "`model` and `hw` at least";
constexpr std::int64_t kMostThreads = 1024;

const std::string kNothing;

const char* given(const std::string& text, size_t* size) {
  if (size != nullptr) *size = text.size();
  return text.c_str();
}

void estimated(llmperf_session& session, std::string_view json, llmperf_result& result) {
  Asked asked(json, {});
  const request::Request request = asked.request();
  service::check_complete(request, kWanted);
  const auto made = std::make_shared<service::Estimated>(request, asked.sources(session));
  const std::vector<result::Column> columns = made->columns();
  std::vector<std::string> names;
  std::vector<result::Kind> kinds;
  std::vector<std::size_t> all;
  for (const result::Column& column : columns) {
    all.push_back(all.size());
    names.emplace_back(column.name);
    kinds.push_back(column.kind);
  }
  points::Row row;
  made->fill(row);
  result.columns = c::Columns(names, kinds, all);
  result.columns.add(row);
  result.columns.finish();
  result.document = [made] { return made->json(); };
  if (const auto error = made->infeasible()) tell(result, *error);
}

void explained(llmperf_session& session, std::string_view json, llmperf_result& result) {
  constexpr std::string_view kBeside[] = {"number"};
  Asked asked(json, kBeside);
  const request::Request request = asked.request();
  service::check_complete(request, kWanted);
  result.json = service::explain(request, asked.sources(session), asked.text("number")).json();
}

// Rows of a sweep: those that are kept all, as columns, or those that a selection keeps.
struct KeptRows {
  c::Columns columns;
  points::Selection kept = points::Selection::all();
};

void swept(llmperf_session& session, std::string_view json, llmperf_result& result) {
  constexpr std::string_view kBeside[] = {"where", "top", "by", "pareto", "columns", "threads"};
  Asked asked(json, kBeside);
  const service::Sweep sweep(asked.swept(), "", asked.sources(session));
  const auto commas = [&](const char* key) {
    std::string list;
    for (const std::string& item : asked.texts(key)) list += (list.empty() ? "" : ",") + item;
    return list;
  };
  const points::RowChoice choice = points::row_choice({.where = asked.text("where"),
                                                       .top = asked.count("top", 1, 100'000),
                                                       .by = asked.text("by"),
                                                       .pareto = commas("pareto"),
                                                       .columns = commas("columns")},
                                                      sweep.columns());
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  const auto threads = static_cast<std::size_t>(asked.count("threads", 1, kMostThreads).value_or(cores));
  const auto made = std::make_shared<result::SweepResult>();
  made->axes = sweep.swept();
  made->columns = sweep.columns();
  made->shown = choice.shown;
  made->selection = choice.text;
  const std::vector<std::size_t> written = made->written();
  const bool all = choice.selection.keeps_all();
  const c::Interruptible call(session);
  const std::vector<points::Chunk> chunks = sweep.grid().chunks({});
  KeptRows gathered{.columns = c::Columns(sweep.columns(), sweep.kinds(), written), .kept = choice.selection};
  service::run<KeptRows>(
      sweep, chunks, threads, gathered,
      [&](const points::Row& row, KeptRows& of) {
        if (choice.where && !(*choice.where)(row)) return;
        all ? of.columns.add(row) : of.kept.offer(row);
      },
      [&](const KeptRows& of) {
        gathered.columns.add(of.columns);
        return !call.stopped();
      },
      *made, &call.stopped());
  result.columns = std::move(gathered.columns);
  made->front = result::front_of(gathered.kept, sweep.columns());
  for (const points::Row& row : gathered.kept.take()) result.columns.add(row);
  result.columns.finish();
  if (made->failed > 0) {
    tell(result, Error::failed(fmt::format("{} of {} points failed; the first: {}", made->failed, made->points,
                                           made->first_error)));
  }
  if (call.stopped()) result.status = c::kInterrupted;
  result.document = [made, &columns = result.columns] {
    // Rows again, of the columns that were kept.
    result::SweepResult rows = *made;
    const std::vector<std::size_t> shown = rows.written();
    for (std::size_t r = 0; r < columns.rows(); ++r) {
      points::Row& row = rows.rows.emplace_back();
      for (const std::string& name : rows.columns) row.add_none(name);
      for (std::size_t i = 0; i < shown.size(); ++i) columns.cell(i, r, row[shown[i]]);
    }
    return result::sweep_document(rows);
  };
}

void served(llmperf_session& session, std::string_view json, llmperf_result& result) {
  Asked asked(json, {});
  const request::Request request = asked.request();
  service::check_complete(request, kWanted);
  const c::Interruptible call(session);
  const auto run = std::make_shared<service::Served>(request, asked.sources(session),
                                                     service::ServeOptions{.stop = &call.stopped()});
  if (run->nothing()) {
    tell(result, Error::failed("interrupted before a request had ended"));
    result.status = c::kInterrupted;
    return;
  }
  result.status = run->result().interrupted ? c::kInterrupted : run->misses() ? c::kMissed : 0;
  result.json = run->json();
}

void found(llmperf_session& session, std::string_view json, llmperf_result& result) {
  constexpr std::string_view kBeside[] = {"pd", "minimise", "threads", "fleet", "day", "scale_time", "api_price"};
  constexpr std::string_view kLists[] = {"hw", "tp", "weights", "engine"};
  Asked asked(json, kBeside);
  service::CapacityQuery query{.request = asked.request(kLists),
                               .fleet = asked.text("fleet"),
                               .day = asked.text("day"),
                               .scale_time = asked.text("scale_time"),
                               .api_price = asked.text("api_price"),
                               .disaggregated = asked.is("pd")};
  for (const char* name : {"model", "rate", "slo"}) {
    if (!(query.fleet + query.day).empty() && name == std::string_view("rate")) continue;
    if (!get(query.request, request::field(name))) {
      throw Error::bad_input(std::string("`") + name + "` is required", "`model`, `rate` and `slo` at least");
    }
  }
  if (const std::string what = asked.text("minimise"); !what.empty()) {
    const auto known = std::find(result::kMinimised.begin(), result::kMinimised.end(), what);
    if (known == result::kMinimised.end()) {
      throw Error::bad_input("`minimise`: there is no '" + what + "'", "cost, devices or energy");
    }
    query.minimise = static_cast<result::Minimise>(known - result::kMinimised.begin());
  }
  query.threads = static_cast<unsigned>(asked.count("threads", 1, kMostThreads).value_or(0));
  const c::Interruptible call(session);
  const result::CapacityResult answer = service::search_capacity(query, asked.sources(session), &call.stopped());
  if (answer.interrupted) {
    result.status = c::kInterrupted;
  } else if (answer.best() == nullptr) {
    tell(result, Error::infeasible("nothing meets the bounds; the nearest there is stands in the document",
                                   "looser `slo`, more of `hw`, `tp` or `weights`"));
  }
  result.json = result::document("llmperf.capacity", answer);
}

// ---- What there is.

const char* type_of(const request::Field& field) {
  constexpr const char* kTypes[] = {"text", "count", "number", "bytes", "switch"};
  return kTypes[field.member.index()];
}

// The fields of requests, for what makes forms, arguments or stubs of them.
std::string fields_document() {
  using Json = nlohmann::ordered_json;
  constexpr std::pair<char, const char*> kWorkloads[] = {
      {'t', "text"}, {'v', "video"}, {'r', "training"}, {'s', "serving"}};
  Json fields = Json::array();
  for (const request::Field& field : request::fields()) {
    Json& one = fields.emplace_back(Json{{"name", field.name},
                                         {"key", key_of(field)},
                                         {"flag", "--" + std::string(field.name)},
                                         {"type", type_of(field)},
                                         {"form", field.type},
                                         {"group", field.group},
                                         {"about", field.about},
                                         {"workloads", Json::array()}});
    for (const auto& [letter, name] : kWorkloads) {
      if (field.workloads.find(letter) != std::string_view::npos) one["workloads"].push_back(name);
    }
    if (!field.otherwise.empty()) one["default"] = field.otherwise;
    using Sort = request::Values::Sort;
    if (const auto values = field.values.all(); !values.empty()) one["values"] = values;
    one["open"] = field.values.sort != Sort::words;
    if (one["type"] == "count" || one["type"] == "number") {
      one["least"] = field.least;
      one["most"] = field.most;
    }
  }
  return Json{{"schema", "llmperf.fields"}, {"fields", std::move(fields)}}.dump(2) + "\n";
}

void listed(std::string_view json, llmperf_result& result) {
  constexpr std::string_view kBeside[] = {"kind", "name"};
  const Asked asked(json, kBeside);
  const std::string kind = asked.text("kind");
  const std::string name = asked.text("name");
  if (kind != "model") asked.refuse_fields();
  const bool one = kind == "model" || kind == "device" || kind == "runtime";
  if (one == name.empty()) {
    throw Error::bad_input(one ? "`name` is required" : "`name` is for a model, a device or a runtime");
  }
  if (kind == "fields") {
    result.json = fields_document();
  } else if (kind == "models") {
    result.json = result::document("llmperf.models", service::list_models());
  } else if (kind == "hardware") {
    result.json = result::document("llmperf.hardware_list", service::list_devices());
  } else if (kind == "runtimes") {
    result.json = result::document("llmperf.runtime_list", service::list_runtimes());
  } else if (kind == "measurements") {
    result.json = result::document("llmperf.measurement_list", service::list_measurements());
  } else if (kind == "scenarios") {
    result.json = result::document("llmperf.studies", service::list_studies());
  } else if (kind == "device") {
    result.json = result::document("llmperf.hardware", hardware::load_device(name));
  } else if (kind == "runtime") {
    result.json = result::document("llmperf.runtime", service::show_runtime(name));
  } else if (kind == "model" && model::is_video_dit(name)) {
    result.json = result::document("llmperf.video_model", result::VideoModelShown{model::load_video_dit(name)});
  } else if (kind == "model") {
    result.json = result::document("llmperf.model", service::ShownModel(name, asked.request(), false).shown());
  } else {
    throw Error::bad_input("`kind`: there is no '" + kind + "'",
                           "models, hardware, runtimes, measurements, scenarios, fields; model, device, runtime");
  }
}

}  // namespace

llmperf_session* llmperf_open(void) { return new (std::nothrow) llmperf_session; }

void llmperf_close(llmperf_session* session) { delete session; }

void llmperf_interrupt(llmperf_session* session) {
  if (session == nullptr) return;
  const std::scoped_lock lock(session->mutex);
  for (std::atomic<bool>* stopped : session->running) *stopped = true;
}

namespace {

using Ask = void(llmperf_session&, std::string_view, llmperf_result&);

llmperf_result* ask(Ask* question, llmperf_session* session, const char* request, size_t size) {
  return answered([&](llmperf_result& result) {
    if (session == nullptr) throw Error::bad_input("there is no session");
    question(*session, c::view(request, size), result);
  });
}

}  // namespace

llmperf_result* llmperf_estimate(llmperf_session* session, const char* request, size_t size) {
  return ask(estimated, session, request, size);
}
llmperf_result* llmperf_explain(llmperf_session* session, const char* request, size_t size) {
  return ask(explained, session, request, size);
}
llmperf_result* llmperf_sweep(llmperf_session* session, const char* request, size_t size) {
  return ask(swept, session, request, size);
}
llmperf_result* llmperf_serve(llmperf_session* session, const char* request, size_t size) {
  return ask(served, session, request, size);
}
llmperf_result* llmperf_capacity(llmperf_session* session, const char* request, size_t size) {
  return ask(found, session, request, size);
}
llmperf_result* llmperf_catalog(llmperf_session*, const char* request, size_t size) {
  return answered([&](llmperf_result& result) { listed(c::view(request, size), result); });
}

void llmperf_free(llmperf_result* result) { delete result; }

int llmperf_status(const llmperf_result* result) { return result == nullptr ? 1 : result->status; }

const char* llmperf_json(llmperf_result* result, size_t* size) {
  if (result == nullptr) return given(kNothing, size);
  if (!result->json) {
    try {
      result->json = result->document ? result->document() : result->error;
    } catch (const std::exception& error) {
      try {
        tell(*result, Error::failed(error.what()));
        result->json = result->error;
      } catch (...) {
        result->json.emplace();
      }
    }
  }
  return given(*result->json, size);
}

const char* llmperf_error(llmperf_result* result, size_t* size) {
  return given(result == nullptr ? kNothing : result->error, size);
}

const char* llmperf_text(llmperf_result* result, size_t* size) {
  return given(result == nullptr ? kNothing : result->text, size);
}

size_t llmperf_rows(const llmperf_result* result) { return result == nullptr ? 0 : result->columns.rows(); }

size_t llmperf_columns(const llmperf_result* result) { return result == nullptr ? 0 : result->columns.all().size(); }

llmperf_column_data llmperf_column(const llmperf_result* result, size_t index) {
  if (index >= llmperf_columns(result)) return {};
  const c::ColumnOfCells& column = result->columns.all()[index];
  if (column.kind == LLMPERF_TEXTS) {
    return {column.name.c_str(), column.kind, nullptr, column.offsets.data(), column.text.c_str()};
  }
  return {column.name.c_str(), column.kind, column.numbers.data(), nullptr, nullptr};
}

const double* llmperf_numbers(const llmperf_result* result, size_t* count) {
  const bool any = result != nullptr && result->columns.rows() > 0;
  if (count != nullptr) *count = any ? result->columns.first().size() : 0;
  return any ? result->columns.first().data() : nullptr;
}

const char* llmperf_version(void) try {
  static const std::string document = llmperf::result::version_document(llmperf::this_build());
  return document.c_str();
} catch (const std::exception&) {  // of memory
  return "";
}
