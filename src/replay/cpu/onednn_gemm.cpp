// Each thread of the pool runs a primitive on its own piece, made for one thread. The weights are reordered once, to
// the layout that the primitive asks for, as inference runtimes do when they load a model: the bytes stay the same but
// for padding. The scratch memory is ours, one per thread: oneDNN's own belongs to the thread that created a primitive.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "replay/cpu/gemm_operation.h"
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
  X(version) X(engine_create) X(engine_destroy) X(stream_create) X(stream_destroy)                             \
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

Loaded<OneDnn> load_onednn() {
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
const Loaded<OneDnn>& loaded_onednn() {
  static const auto* const library = new Loaded<OneDnn>(load_onednn());
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
    throw Refusal{fmt::format("oneDNN: {}: {} (status {})", call, meaning, static_cast<int>(status))};
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

// The columns that some threads compute, with their weights in the layout that oneDNN chose.
struct Slab {
  Range n;
  dnnl_memory_desc_t packed;
  std::int64_t offset = 0;  // in a copy of the weights of one product
};

class OneDnnGemm final : public GemmOperation {
 public:
  OneDnnGemm(const Workshop& shop, const GemmPlan& plan, const OneDnn& dnn)
      : GemmOperation(shop, plan, 1),
        dnn_(dnn),
        engine_(make_handle("dnnl_engine_create", dnn.engine_destroy, dnn.engine_create, dnnl_cpu, std::size_t{0})) {
    if (plan.joined && division().slabs() > 1) {
      rows_ = zeroed(*shop.pool, plan.shape.m * plan.shape.n * bytes_of(plan.output));
    }
    const OneThread one(dnn);
    const int threads = shop.pool->threads();
    std::vector<PrimitiveDescHandle> descs;
    for (int thread = 0; thread < threads; ++thread) {
      streams_.push_back(make_handle("dnnl_stream_create", dnn.stream_destroy, dnn.stream_create, engine_.get(),
                                     static_cast<unsigned>(dnnl_stream_default_flags)));
      descs.push_back(describe(division().piece(thread)));
    }
    pack(shop, descs);
    for (int thread = 0; thread < threads; ++thread) {
      add_worker(thread, descs[static_cast<std::size_t>(thread)].get());
    }
  }

  // "brgemm:avx512_core_bf16", "ref:any"
  const std::string& implementation() const { return implementation_; }

  void execute(const Team& team, std::int64_t turn) override {
    const Worker& worker = workers_[static_cast<std::size_t>(team.thread)];
    if (worker.primitive == nullptr) return;
    const OneThread one(dnn_);
    const std::int64_t first = division().piece(team.thread).batch.first;
    for (std::size_t i = 0; i < worker.sources.size(); ++i) {
      const std::int64_t product = turn % copies() * plan().shape.batch + first + static_cast<std::int64_t>(i);
      const dnnl_exec_arg_t arguments[] = {
          {DNNL_ARG_SRC, worker.sources[i].get()},
          {DNNL_ARG_WEIGHTS, weights_[weights_index(product, division().slab_of(team.thread))].get()},
          {DNNL_ARG_DST, worker.results[i].get()},
          {DNNL_ARG_SCRATCHPAD, worker.scratch_memory.get()}};
      const dnnl_status_t status = dnn_.primitive_execute(
          worker.primitive.get(), streams_[static_cast<std::size_t>(team.thread)].get(), 4, arguments);
      if (status != dnnl_success) failed_.store(static_cast<int>(status), std::memory_order_relaxed);
    }
    if (rows_.bytes() > 0) join(division().piece(team.thread));
  }

  std::byte* y() const override { return rows_.bytes() > 0 ? rows_.data() : GemmOperation::y(); }

  std::vector<float> read() const override {
    const std::vector<float> pieces = GemmOperation::read();
    std::vector<float> result(pieces.size());
    const calibrate::GemmShape& s = plan().shape;
    for (std::size_t thread = 0; thread < workers_.size(); ++thread) {
      const GemmPiece piece = division().piece(static_cast<int>(thread));
      for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
        auto from = pieces.begin() + result_offset(piece, b);
        for (std::int64_t i = piece.m.first; i < piece.m.last; ++i, from += piece.n.size()) {
          std::copy(from, from + piece.n.size(), result.begin() + (b * s.m + i) * s.n + piece.n.first);
        }
      }
    }
    return result;
  }

  std::string failure() const override {
    const int status = failed_.load(std::memory_order_relaxed);
    return status == 0 ? std::string() : fmt::format("dnnl_primitive_execute failed with status {}", status);
  }

 private:
  struct Worker {
    PrimitiveHandle primitive{nullptr, nullptr};
    std::vector<MemoryHandle> sources, results;  // of each product that the thread computes
    Buffer scratch;
    MemoryHandle scratch_memory{nullptr, nullptr};
  };

  std::size_t weights_index(std::int64_t product, int slab) const {
    return static_cast<std::size_t>(product * division().slabs() + slab);
  }
  // Elements before a piece of product b: of the pieces of earlier rows, then of earlier columns of these rows.
  std::int64_t result_offset(const GemmPiece& piece, std::int64_t b) const {
    const calibrate::GemmShape& s = plan().shape;
    return b * s.m * s.n + piece.m.first * s.n + piece.m.size() * piece.n.first;
  }
  // Brings a piece, whose rows lie without gaps, to its place in [m, n].
  void join(const GemmPiece& piece) {
    const std::int64_t element = bytes_of(plan().output);
    const std::int64_t width = piece.n.size() * element;
    const std::byte* from = GemmOperation::y() + result_offset(piece, 0) * element;
    for (std::int64_t i = piece.m.first; i < piece.m.last; ++i, from += width) {
      std::memcpy(rows_.data() + (i * plan().shape.n + piece.n.first) * element, from, static_cast<std::size_t>(width));
    }
  }
  MemoryHandle memory(const dnnl_memory_desc_t& desc, void* data) const {
    return make_handle("dnnl_memory_create", dnn_.memory_destroy, dnn_.memory_create, &desc, engine_.get(), data);
  }

  // Null for a thread without work.
  PrimitiveDescHandle describe(const GemmPiece& piece) {
    if (piece.empty()) return {nullptr, dnn_.primitive_desc_destroy};
    const calibrate::GemmShape& s = plan().shape;
    const dnnl_memory_desc_t source = matrix(dnn_, plan().input, piece.m.size(), s.k, s.k, 1);
    const dnnl_memory_desc_t result = matrix(dnn_, plan().output, piece.m.size(), piece.n.size(), piece.n.size(), 1);
    dnnl_memory_desc_t weights = matrix(dnn_, plan().input, s.k, piece.n.size(), 1, s.k);
    weights.format_kind = dnnl_format_kind_any;
    dnnl_matmul_desc_t product;
    check(dnn_.matmul_desc_init(&product, &source, &weights, nullptr, &result), "dnnl_matmul_desc_init");
    const auto attributes =
        make_handle("dnnl_primitive_attr_create", dnn_.primitive_attr_destroy, dnn_.primitive_attr_create);
    check(dnn_.primitive_attr_set_scratchpad_mode(attributes.get(), dnnl_scratchpad_mode_user),
          "dnnl_primitive_attr_set_scratchpad_mode");
    if (plan().input == Element::s8) {
      check(dnn_.primitive_attr_set_output_scales(attributes.get(), 1, 0, &plan().scale),
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

  // Reorders the weights, which came as one copy of [batch, n, k], into all copies of [batch] slabs.
  void pack(const Workshop& shop, const std::vector<PrimitiveDescHandle>& descs) {
    const calibrate::GemmShape& s = plan().shape;
    std::int64_t product = 0;  // bytes
    for (int slab = 0; slab < division().slabs(); ++slab) {
      const auto index = static_cast<std::size_t>(slab);
      if (descs[index] == nullptr) continue;
      const dnnl_memory_desc_t* chosen = dnn_.primitive_desc_query_md(descs[index].get(), dnnl_query_weights_md, 0);
      slabs_.push_back({division().piece(slab).n, *chosen, product});
      product += whole_lines(static_cast<std::int64_t>(dnn_.memory_desc_get_size(chosen)));
    }
    const std::int64_t copy = product * s.batch;
    Buffer packed = zeroed(*shop.pool, copy * copies());
    for (std::int64_t i = 0; i < s.batch * copies(); ++i) {
      for (int slab = 0; slab < division().slabs(); ++slab) {
        const auto index = static_cast<std::size_t>(slab);
        if (index >= slabs_.size()) {
          weights_.emplace_back(nullptr, dnn_.memory_destroy);
          continue;
        }
        weights_.push_back(memory(slabs_[index].packed, packed.data() + i * product + slabs_[index].offset));
        if (i < s.batch) reorder(i, slabs_[index], weights_.back().get());
      }
    }
    replicate(*shop.pool, packed.data(), copy, copies());
    repack(std::move(packed), copy);
  }

  void reorder(std::int64_t product, const Slab& slab, dnnl_memory* to) {
    const calibrate::GemmShape& s = plan().shape;
    const dnnl_memory_desc_t plain = matrix(dnn_, plan().input, s.k, slab.n.size(), 1, s.k);
    const std::byte* data = w(0) + (product * s.n + slab.n.first) * s.k * bytes_of(plan().input);
    const MemoryHandle from = memory(plain, const_cast<std::byte*>(data));
    const auto desc =
        make_handle("dnnl_reorder_primitive_desc_create", dnn_.primitive_desc_destroy,
                    dnn_.reorder_primitive_desc_create, &plain, engine_.get(), &slab.packed, engine_.get(), nullptr);
    const auto primitive =
        make_handle("dnnl_primitive_create", dnn_.primitive_destroy, dnn_.primitive_create, desc.get());
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to}};
    check(dnn_.primitive_execute(primitive.get(), streams_.front().get(), 2, arguments), "dnnl_primitive_execute");
  }

  void add_worker(int thread, dnnl_primitive_desc* desc) {
    Worker worker;
    if (desc != nullptr) {
      const calibrate::GemmShape& s = plan().shape;
      const GemmPiece piece = division().piece(thread);
      worker.primitive = make_handle("dnnl_primitive_create", dnn_.primitive_destroy, dnn_.primitive_create, desc);
      const dnnl_memory_desc_t* scratch = dnn_.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
      worker.scratch = Buffer(static_cast<std::int64_t>(dnn_.memory_desc_get_size(scratch)) + 1);
      worker.scratch_memory = memory(*scratch, worker.scratch.data());
      const dnnl_memory_desc_t source = matrix(dnn_, plan().input, piece.m.size(), s.k, s.k, 1);
      const dnnl_memory_desc_t result = matrix(dnn_, plan().output, piece.m.size(), piece.n.size(), piece.n.size(), 1);
      for (std::int64_t b = piece.batch.first; b < piece.batch.last; ++b) {
        worker.sources.push_back(memory(source, x() + (b * s.m + piece.m.first) * s.k * bytes_of(plan().input)));
        worker.results.push_back(
            memory(result, GemmOperation::y() + result_offset(piece, b) * bytes_of(plan().output)));
      }
    }
    workers_.push_back(std::move(worker));
  }

  const OneDnn& dnn_;
  Handle<dnnl_engine> engine_;
  std::vector<Handle<dnnl_stream>> streams_;  // per thread
  std::vector<Slab> slabs_;
  std::vector<MemoryHandle> weights_;  // [copies, batch, slabs]
  std::vector<Worker> workers_;        // per thread
  Buffer rows_;                        // the pieces joined, where that is wanted
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

std::unique_ptr<GemmOperation> make_onednn_gemm(const Workshop& shop, const GemmPlan& plan) {
  const auto& [library, reason] = loaded_onednn();
  require(library.has_value(), reason);
  auto made = std::make_unique<OneDnnGemm>(shop, plan, *library);
  // Loops that are there to compare with: anything of ours is faster.
  require(!made->implementation().starts_with("ref") || shop.gemm == Gemm::onednn,
          "oneDNN has only its reference implementation");
  return made;
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

std::unique_ptr<GemmOperation> make_onednn_gemm(const Workshop&, const GemmPlan&) {
  std::string why_not;
  onednn_name(why_not);
  throw Refusal{why_not};
}

#endif
}  // namespace llmperf::replay::cpu
