#include "replay/ascend/op.h"

#include <fmt/format.h>

#include "base/error.h"

namespace llmperf::replay::ascend {
namespace {

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace

void* Part::allocate(std::size_t bytes) {
  memory_.push_back(device.allocate(bytes));
  return memory_.back().get();
}

void* Part::store(std::span<const float> values, cann::DataType type) {
  const std::vector<std::byte> stored = encode(values, type);
  void* data = allocate(stored.size());
  device.write(data, stored);
  return data;
}

Tensor Part::make(void* data, cann::DataType type, const Shape& view, const Shape& strides, const Shape& stored) {
  const cann::Functions& cann = device.cann();
  aclTensor* tensor = cann.aclCreateTensor(view.data(), view.size(), type, strides.data(), 0, cann::Format::nd,
                                           stored.data(), stored.size(), data);
  if (tensor == nullptr) throw Error::failed("aclCreateTensor failed: it made no tensor");
  return own<Tensor>(cann, tensor);
}

aclTensor* Part::tensor(void* data, cann::DataType type, const Shape& shape) {
  tensors_.push_back(make(data, type, shape, dense_strides(shape), shape));
  return tensors_.back().get();
}

aclTensor* Part::transposed(std::span<const float> values, cann::DataType type, const Shape& stored) {
  void* data = store(values, type);
  Shape view = stored;
  Shape strides = dense_strides(view);
  std::swap(view[view.size() - 1], view[view.size() - 2]);
  std::swap(strides[view.size() - 1], strides[view.size() - 2]);
  tensors_.push_back(make(data, type, view, strides, stored));
  return tensors_.back().get();
}

aclTensorList* Part::list(void* data, cann::DataType type, const Shape& shape) {
  Tensor tensor = make(data, type, shape, dense_strides(shape), shape);
  const aclTensor* only = tensor.get();
  aclTensorList* list = device.cann().aclCreateTensorList(&only, 1);
  if (list == nullptr) throw Error::failed("aclCreateTensorList failed: it made no list");
  static_cast<void>(tensor.release());  // destroyed with the list
  lists_.push_back(own<TensorList>(device.cann(), list));
  return list;
}

aclIntArray* Part::array(std::span<const std::int64_t> values) {
  const cann::Functions& cann = device.cann();
  require(cann.aclCreateIntArray && cann.aclDestroyIntArray, "aclCreateIntArray is not in the libraries of this CANN");
  aclIntArray* array = cann.aclCreateIntArray(values.data(), values.size());
  if (array == nullptr) throw Error::failed("aclCreateIntArray failed: it made no array");
  arrays_.push_back(own<IntArray>(cann, array));
  return array;
}

aclScalar* Part::scalar(float value) {
  aclScalar* scalar = device.cann().aclCreateScalar(&value, cann::DataType::fp32);
  if (scalar == nullptr) throw Error::failed("aclCreateScalar failed: it made no scalar");
  scalars_.push_back(own<Scalar>(device.cann(), scalar));
  return scalar;
}

Step::Step(Device& device, const char* name, cann::Launch* launch, Plan plan)
    : device_(&device), name_(name), launch_(launch), plan_(std::move(plan)) {
  Executor executor = planned();
  const cann::Functions& cann = device.cann();
  // Refused by ops that copy between host and device inside; then it is one executor per launch.
  repeatable_ = cann.repeatable_executors() && cann.aclSetAclOpExecutorRepeatable(executor.get()) == cann::kSuccess;
  executors_.push_back(std::move(executor));
}

Executor Step::planned() {
  const std::string function = std::string(name_) + "GetWorkspaceSize";
  aclOpExecutor* executor = nullptr;
  const cann::Status status = plan_(&workspace_bytes_, &executor);
  const cann::Functions& cann = device_->cann();
  if (cann::is_refusal(status)) throw Unavailable{cann::describe_failure(cann, status, function)};
  cann::check(cann, status, function);
  Executor owned = own<Executor>(cann, executor);
  device_->reserve_workspace(workspace_bytes_);
  return owned;
}

void Step::stock(std::size_t launches) {
  if (repeatable_) return;
  try {
    while (executors_.size() < launches) executors_.push_back(planned());
  } catch (const Unavailable& refusal) {
    throw Error::failed(refusal.reason);
  }
}

void Step::enqueue(cann::Stream stream) {
  if (executors_.empty()) stock(1);
  aclOpExecutor* executor = executors_.front().get();
  if (!repeatable_) {
    static_cast<void>(executors_.front().release());  // the launch releases it
    executors_.pop_front();
  }
  void* workspace = workspace_bytes_ > 0 ? device_->workspace() : nullptr;
  cann::check(device_->cann(), launch_(workspace, workspace_bytes_, executor, stream), name_);
}

aclTensor* Part::output(cann::DataType type, const Shape& shape) {
  const std::size_t count = element_count(shape);
  void* data = allocate(stored_bytes(type, count));
  outputs.push_back({data, count, type});
  return tensor(data, type, shape);
}

void Part::stock(std::size_t executions) {
  for (std::vector<Step>& steps : copies) {
    for (Step& one : steps) one.stock(executions / copies.size() + 1);
  }
}

void Part::enqueue() {
  if (call) return call(device.stream());
  for (Step& one : copies[turn]) one.enqueue(device.stream());
  turn = (turn + 1) % copies.size();
}

void Part::fill_again() const {
  for (const Overwritten& operand : overwritten) device.write(operand.data, operand.filled);
}

std::vector<float> Part::read() const {
  std::vector<float> values;
  for (const Output& output : outputs) {
    const std::vector<float> more = device.read(output.data, output.count, output.type);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

Op::Op(RankGroup& ranks, const std::function<std::unique_ptr<Part>(int rank, Device& device)>& make)
    : group(&ranks), parts(static_cast<std::size_t>(ranks.size())) {
  try {
    ranks.on_each([&](int rank, Device& device) { parts[static_cast<std::size_t>(rank)] = make(rank, device); });
  } catch (...) {
    ranks.on_each_quietly([&](int rank, Device&) { parts[static_cast<std::size_t>(rank)].reset(); });
    throw;
  }
}

Op::~Op() {
  if (group != nullptr) {
    group->on_each_quietly([&](int rank, Device&) { parts[static_cast<std::size_t>(rank)].reset(); });
  }
}

}  // namespace llmperf::replay::ascend
