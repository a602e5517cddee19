// Each thread of the pool runs a primitive on its own piece, made for one thread. The weights are reordered once, to
// the layout that the primitive asks for, as inference runtimes do when they load a model: the bytes stay the same but
// for padding. The scratch memory is ours, one per thread: oneDNN's own belongs to the thread that created a primitive.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "replay/cpu/operation.h"
#include "replay/library.h"

#ifdef LLMPERF_HAVE_ONEDNN
#include <dnnl.h>
#endif

namespace llmperf::replay::cpu {
#if defined(LLMPERF_HAVE_ONEDNN) && DNNL_VERSION_MAJOR == 2
namespace {

// ---- oneDNN's C functions, found when the library is loaded.

// clang-format off
#define LLMPERF_ONEDNN_FUNCTIONS(X)                                                                            \
  X(version) X(get_effective_cpu_isa) X(engine_create) X(engine_destroy) X(stream_create) X(stream_destroy)    \
  X(memory_desc_init_by_strides) X(memory_desc_get_size) X(memory_create) X(memory_destroy)                    \
  X(matmul_desc_init) X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_output_scales)   \
  X(primitive_attr_set_scratchpad_mode) X(primitive_desc_create) X(primitive_desc_destroy)                     \
  X(primitive_desc_query) X(primitive_desc_query_md) X(reorder_primitive_desc_create)                          \
  X(primitive_create) X(primitive_destroy) X(primitive_execute)
// clang-format on

struct OneDnn {
  Library library;
// NOLINTNEXTLINE(bugprone-macro-parentheses): names cannot stand in parentheses here
#define LLMPERF_ONEDNN_MEMBER(name) decltype(&dnnl_##name) name = nullptr;
  LLMPERF_ONEDNN_FUNCTIONS(LLMPERF_ONEDNN_MEMBER)
#undef LLMPERF_ONEDNN_MEMBER
  // Of the OpenMP runtime that oneDNN divides its work with; null when it uses another.
  void (*omp_set_num_threads)(int) = nullptr;
  int (*omp_get_max_threads)() = nullptr;
};

// The library, or why there is none.
struct Loaded {
  std::optional<OneDnn> library;
  std::string why_not;
};

Loaded load_onednn() {
  // The C interface changed from version to version: only the one of the headers will do.
  const std::array<std::string, 2> names = {"libdnnl.so." + std::to_string(DNNL_VERSION_MAJOR), "libdnnl.so"};
  std::vector<std::string> problems;
  auto library = Library::open(names, {}, problems);
  if (!library) return {.library = std::nullopt, .why_not = join(problems, "; ")};
  OneDnn dnn{.library = std::move(*library)};
  const char* missing = nullptr;
#define LLMPERF_ONEDNN_FIND(name)                                                        \
  dnn.name = dnn.library.find<std::remove_pointer_t<decltype(dnn.name)>>("dnnl_" #name); \
  if (dnn.name == nullptr) missing = "dnnl_" #name;
  LLMPERF_ONEDNN_FUNCTIONS(LLMPERF_ONEDNN_FIND)
#undef LLMPERF_ONEDNN_FIND
  if (missing != nullptr) return {.library = std::nullopt, .why_not = dnn.library.path() + " lacks " + missing};
  if (dnn.version()->major != DNNL_VERSION_MAJOR) {
    return {.library = std::nullopt,
            .why_not = dnn.library.path() + " is of version " + std::to_string(dnn.version()->major) + ", not " +
                       std::to_string(DNNL_VERSION_MAJOR)};
  }
  dnn.omp_set_num_threads = dnn.library.find<void(int)>("omp_set_num_threads");
  dnn.omp_get_max_threads = dnn.library.find<int()>("omp_get_max_threads");
  if (dnn.omp_get_max_threads == nullptr) dnn.omp_set_num_threads = nullptr;
  return {.library = std::move(dnn), .why_not = {}};
}

// Never unloaded.
const Loaded& loaded_onednn() {
  static const auto* const library = new Loaded(load_onednn());
  return *library;
}

// oneDNN uses one thread of its own, the caller, while this lives: OpenMP counts for every thread apart.
class OneThread {
 public:
  explicit OneThread(const OneDnn& dnn) : dnn_(dnn) {
    if (dnn_.omp_set_num_threads == nullptr) return;
    before_ = dnn_.omp_get_max_threads();
    dnn_.omp_set_num_threads(1);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() {
    if (dnn_.omp_set_num_threads != nullptr) dnn_.omp_set_num_threads(before_);
  }

 private:
  const OneDnn& dnn_;
  int before_ = 1;
};

// A oneDNN object, destroyed by the function that oneDNN has for its kind.
template <class Object>
using Handle = std::unique_ptr<Object, dnnl_status_t (*)(Object*)>;

void check(dnnl_status_t status, const char* call) {
  const char* meaning = status == dnnl_unimplemented       ? "not implemented for this processor, types and shape"
                        : status == dnnl_out_of_memory     ? "out of memory"
                        : status == dnnl_invalid_arguments ? "invalid arguments"
                                                           : "failed";
  if (status != dnnl_success) {
    throw Unavailable{fmt::format("oneDNN: {}: {} (status {})", call, meaning, static_cast<int>(status))};
  }
}
// create(pointer to the object, arguments...), checked and owned.
template <class Object, class Create, class... Arguments>
Handle<Object> make_handle(const char* call, dnnl_status_t (*destroy)(Object*), Create create,
                           Arguments&&... arguments) {
  Object* object = nullptr;
  check(create(&object, std::forward<Arguments>(arguments)...), call);
  return {object, destroy};
}

using MemoryHandle = Handle<dnnl_memory>;
using PrimitiveHandle = Handle<dnnl_primitive>;
using PrimitiveDescHandle = Handle<dnnl_primitive_desc>;

dnnl_data_type_t type_of(Element element) {
  return element == Element::f32 ? dnnl_f32 : element == Element::bf16 ? dnnl_bf16 : dnnl_s8;
}

dnnl_memory_desc_t matrix(const OneDnn& dnn, Element element, std::int64_t rows, std::int64_t columns,
                          std::int64_t row_stride, std::int64_t column_stride) {
  const dnnl_dims_t dims = {rows, columns};
  const dnnl_dims_t strides = {row_stride, column_stride};
  dnnl_memory_desc_t desc;
  check(dnn.memory_desc_init_by_strides(&desc, 2, dims, type_of(element), strides), "dnnl_memory_desc_init_by_strides");
  return desc;
}

// A product whose weights are slabs of columns, each in the layout that oneDNN chose. Threads leave their pieces apart:
// oneDNN writes rows without gaps.
class OneDnnProduct {
 public:
  OneDnnProduct(const Workshop& shop, const GemmPlan& plan, const OneDnn& dnn, Operation& op)
      : plan_(plan),
        division_(plan.shape, shop.pool->threads()),
        dnn_(dnn),
        engine_(make_handle("dnnl_engine_create", dnn.engine_destroy, dnn.engine_create, dnnl_cpu, std::size_t{0})) {
    const measure::GemmShape& s = plan.shape;
    const std::int64_t results = s.batch * s.m * s.n;
    x_ = op.input(plan.input, s.batch * s.m * s.k, {.operand = 0});
    y_ = op.output(plan.output, results);
    pieces_ = division_.slabs() > 1 ? op.room(results * bytes_of(plan.output)) : y_;
    const OneThread one(dnn);
    std::vector<PrimitiveDescHandle> descs;
    for (int thread = 0; thread < shop.pool->threads(); ++thread) {
      streams_.push_back(make_handle("dnnl_stream_create", dnn.stream_destroy, dnn.stream_create, engine_.get(),
                                     static_cast<unsigned>(dnnl_stream_default_flags)));
      descs.push_back(describe(division_.piece(thread)));
    }
    pack(shop, descs, op);
    for (int thread = 0; thread < shop.pool->threads(); ++thread) {
      add_worker(thread, descs[static_cast<std::size_t>(thread)].get(), op);
    }
  }

  std::byte* x() const { return x_; }
  std::byte* y() const { return y_; }
  // "brgemm:avx512_core_bf16", "ref:any"
  const std::string& implementation() const { return implementation_; }

  void execute(const Team& team, std::int64_t turn) {
    const Worker& worker = workers_[static_cast<std::size_t>(team.thread)];
    if (worker.primitive == nullptr) return;
    const OneThread one(dnn_);
    const std::int64_t first = division_.piece(team.thread).batch.first;
    for (std::size_t i = 0; i < worker.sources.size(); ++i) {
      const std::int64_t product = turn % plan_.copies * plan_.shape.batch + first + static_cast<std::int64_t>(i);
      const std::size_t slab =
          static_cast<std::size_t>(product) * slabs_ + static_cast<std::size_t>(division_.slab_of(team.thread));
      const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, worker.sources[i].get()},
                                           {DNNL_ARG_WEIGHTS, weights_[slab].get()},
                                           {DNNL_ARG_DST, worker.results[i].get()},
                                           {DNNL_ARG_SCRATCHPAD, worker.scratch.get()}};
      const dnnl_status_t status = dnn_.primitive_execute(
          worker.primitive.get(), streams_[static_cast<std::size_t>(team.thread)].get(), 4, arguments);
      if (status != dnnl_success) failed_.store(static_cast<int>(status), std::memory_order_relaxed);
    }
    if (plan_.joined) join(team.thread);
  }

  // Brings a thread's piece to its place in [batch, m, n].
  void join(int thread) const {
    if (pieces_ == y_) return;
    const GemmPiece piece = division_.piece(thread);
    const measure::GemmShape& s = plan_.shape;
    const std::int64_t element = bytes_of(plan_.output);
    const std::int64_t width = piece.n.size() * element;
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      const std::byte* from = result(piece, b);
      for (std::int64_t i = piece.m.first; i < piece.m.last; ++i, from += width) {
        std::memcpy(y_ + ((b * s.m + i) * s.n + piece.n.first) * element, from, static_cast<std::size_t>(width));
      }
    }
  }

  std::string failure() const {
    const int status = failed_.load(std::memory_order_relaxed);
    return status == 0 ? std::string() : fmt::format("dnnl_primitive_execute failed with status {}", status);
  }

 private:
  // What a thread executes with: a primitive, and of each product of its batch where it reads and writes.
  struct Worker {
    PrimitiveHandle primitive{nullptr, nullptr};
    MemoryHandle scratch{nullptr, nullptr};
    std::vector<MemoryHandle> sources;
    std::vector<MemoryHandle> results;
  };
  // The columns that some threads compute.
  struct Slab {
    Range n;
    dnnl_memory_desc_t packed;
    std::int64_t offset;  // in a copy of the weights of one product
  };

  // Where a piece of product b lies, whose rows are without gaps: behind the products, rows and pieces before it.
  std::byte* result(const GemmPiece& piece, std::int64_t b) const {
    const measure::GemmShape& s = plan_.shape;
    return pieces_ + (b * s.m * s.n + piece.m.first * s.n + piece.m.size() * piece.n.first) * bytes_of(plan_.output);
  }
  MemoryHandle memory(const dnnl_memory_desc_t& desc, void* data) const {
    return make_handle("dnnl_memory_create", dnn_.memory_destroy, dnn_.memory_create, &desc, engine_.get(), data);
  }

  dnnl_memory_desc_t source_desc(const GemmPiece& piece) const {
    return matrix(dnn_, plan_.input, piece.m.size(), plan_.shape.k, plan_.shape.k, 1);
  }
  dnnl_memory_desc_t weights_desc(Range n) const {
    return matrix(dnn_, plan_.input, plan_.shape.k, n.size(), 1, plan_.shape.k);
  }
  dnnl_memory_desc_t result_desc(const GemmPiece& piece) const {
    return matrix(dnn_, plan_.output, piece.m.size(), piece.n.size(), piece.n.size(), 1);
  }

  // Null for a thread without work.
  PrimitiveDescHandle describe(const GemmPiece& piece) {
    if (piece.empty()) return {nullptr, dnn_.primitive_desc_destroy};
    const dnnl_memory_desc_t source = source_desc(piece);
    const dnnl_memory_desc_t result = result_desc(piece);
    dnnl_memory_desc_t weights = weights_desc(piece.n);
    weights.format_kind = dnnl_format_kind_any;
    dnnl_matmul_desc_t product;
    check(dnn_.matmul_desc_init(&product, &source, &weights, nullptr, &result), "dnnl_matmul_desc_init");
    const auto attributes =
        make_handle("dnnl_primitive_attr_create", dnn_.primitive_attr_destroy, dnn_.primitive_attr_create);
    check(dnn_.primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user),
          "dnnl_primitive_attr_set_scratchpad_mode");
    if (plan_.input == Element::s8) {
      check(dnn_.primitive_attr_set_output_scales(attributes.get(), 1, 0, &plan_.scale),
            "dnnl_primitive_attr_set_output_scales");
    }
    auto desc = make_handle("dnnl_primitive_desc_create", dnn_.primitive_desc_destroy, dnn_.primitive_desc_create,
                            &product, attributes.get(), engine_.get(), nullptr);
    const char* info = nullptr;
    if (dnn_.primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, static_cast<void*>(&info)) == dnnl_success) {
      implementation_ = info;
    }
    return desc;
  }

  // Reorders weights [batch, n, k] into all copies of [batch] slabs. Only slabs at the end may be empty.
  void pack(const Workshop& shop, const std::vector<PrimitiveDescHandle>& descs, Operation& op) {
    const measure::GemmShape& s = plan_.shape;
    std::vector<Slab> slabs;
    std::int64_t product = 0;  // bytes
    for (int slab = 0; slab < division_.slabs() && descs[static_cast<std::size_t>(slab)] != nullptr; ++slab) {
      const dnnl_primitive_desc* desc = descs[static_cast<std::size_t>(slab)].get();
      const dnnl_memory_desc_t* chosen = dnn_.primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
      slabs.push_back({division_.piece(slab).n, *chosen, product});
      product += whole_lines(static_cast<std::int64_t>(dnn_.memory_desc_get_size(chosen)));
    }
    const Buffer plain = filled(*shop.pool, plan_.input, s.batch * s.n * s.k, 1, plan_.weights);
    const Rotated packed = op.rotated(zeroed(*shop.pool, product * s.batch * plan_.copies));
    slabs_ = slabs.size();
    for (std::int64_t i = 0; i < s.batch * plan_.copies; ++i) {
      for (const Slab& slab : slabs) {
        weights_.push_back(memory(slab.packed, packed.data + i * product + slab.offset));
        std::byte* from = plain.data() + (i * s.n + slab.n.first) * s.k * bytes_of(plan_.input);
        if (i < s.batch) reorder(from, slab, weights_.back().get());
      }
    }
    replicate(*shop.pool, packed.data, packed.stride, packed.copies);
  }

  void reorder(std::byte* from, const Slab& slab, dnnl_memory* to) {
    const dnnl_memory_desc_t plain = weights_desc(slab.n);
    const MemoryHandle source = memory(plain, from);
    const auto desc =
        make_handle("dnnl_reorder_primitive_desc_create", dnn_.primitive_desc_destroy,
                    dnn_.reorder_primitive_desc_create, &plain, engine_.get(), &slab.packed, engine_.get(), nullptr);
    const auto primitive =
        make_handle("dnnl_primitive_create", dnn_.primitive_destroy, dnn_.primitive_create, desc.get());
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, to}};
    check(dnn_.primitive_execute(primitive.get(), streams_.front().get(), 2, arguments), "dnnl_primitive_execute");
  }

  void add_worker(int thread, dnnl_primitive_desc* desc, Operation& op) {
    Worker& worker = workers_.emplace_back();
    if (desc == nullptr) return;
    const measure::GemmShape& s = plan_.shape;
    const GemmPiece piece = division_.piece(thread);
    worker.primitive = make_handle("dnnl_primitive_create", dnn_.primitive_destroy, dnn_.primitive_create, desc);
    const dnnl_memory_desc_t* scratch = dnn_.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const auto bytes = static_cast<std::int64_t>(dnn_.memory_desc_get_size(scratch)) + 1;
    worker.scratch = memory(*scratch, op.keep(Buffer(bytes)));
    for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
      std::byte* row = x_ + (b * s.m + piece.m.first) * s.k * bytes_of(plan_.input);
      worker.sources.push_back(memory(source_desc(piece), row));
      worker.results.push_back(memory(result_desc(piece), result(piece, b)));
    }
  }

  GemmPlan plan_;
  GemmDivision division_;
  const OneDnn& dnn_;
  Handle<dnnl_engine> engine_;
  std::byte* x_ = nullptr;
  std::byte* pieces_ = nullptr;
  std::byte* y_ = nullptr;
  std::vector<Handle<dnnl_stream>> streams_;  // per thread
  std::size_t slabs_ = 0;
  std::vector<MemoryHandle> weights_;  // [copies, batch, slabs]
  std::vector<Worker> workers_;        // per thread
  std::string implementation_;
  std::atomic<int> failed_ = 0;
};

}  // namespace

std::string onednn_name(std::string& why_not) {
  const auto& [library, reason] = loaded_onednn();
  why_not = reason;
  if (!library) return {};
  const dnnl_version_t* version = library->version();
  return fmt::format("oneDNN {}.{}.{} ({})", version->major, version->minor, version->patch, library->library.path());
}

namespace {

// Without VNNI two products of 8 bits are added up in 16, where the sum of two large ones is cut off (oneDNN's
// developer guide, "Nuances of int8 computations").
bool cuts_sums_off(dnnl_cpu_isa_t isa) {
  return isa == dnnl_cpu_isa_sse41 || isa == dnnl_cpu_isa_avx || isa == dnnl_cpu_isa_avx2 ||
         isa == dnnl_cpu_isa_avx512_core;
}

}  // namespace

Product make_onednn_product(const Workshop& shop, const GemmPlan& plan) {
  const auto& [library, reason] = loaded_onednn();
  require(library.has_value(), reason);
  require(plan.input != Element::s8 || !cuts_sums_off(library->get_effective_cpu_isa()),
          "oneDNN: products of 8 bits are not implemented for this processor: it has no VNNI, and sums are cut off");
  auto op = std::make_unique<Operation>(shop, plan.copies);
  const auto made = std::make_shared<OneDnnProduct>(shop, plan, *library, *op);
  // Loops that are there to compare with: Eigen is faster.
  require(!made->implementation().starts_with("ref") || shop.gemm == Gemm::onednn,
          "oneDNN has only its reference implementation");
  op->execute = [made](const Team& team, std::int64_t turn) { made->execute(team, turn); };
  op->failure = [made] { return made->failure(); };
  op->collect = [made, threads = shop.pool->threads()](std::int64_t) {
    for (int thread = 0; thread < threads; ++thread) made->join(thread);
  };
  return {std::move(op), made->x(), made->y()};
}

#else

std::string onednn_name(std::string& why_not) {
#ifdef LLMPERF_HAVE_ONEDNN
  why_not = "this program was built with headers of a version of oneDNN other than 2";
#else
  why_not = "this program was built without oneDNN's headers";
#endif
  return {};
}

Product make_onednn_product(const Workshop&, const GemmPlan&) {
  std::string why_not;
  onednn_name(why_not);
  throw Unavailable{why_not};
}

#endif
}  // namespace llmperf::replay::cpu
