#include "kernel.h"

#include <cmath>
#include <cstring>

namespace standin {
namespace {

std::int64_t place(const aclTensor& tensor, std::initializer_list<std::int64_t> index) {
  std::int64_t at = tensor.offset;
  std::size_t axis = 0;
  for (const std::int64_t i : index) at += i * tensor.strides[axis++];
  return at;
}

std::int64_t place(const aclTensor& tensor, std::int64_t i) {
  std::int64_t at = tensor.offset;
  for (std::size_t axis = tensor.shape.size(); axis-- > 0;) {
    at += i % tensor.shape[axis] * tensor.strides[axis];
    i /= tensor.shape[axis];
  }
  return at;
}

double read(const aclTensor& tensor, std::int64_t at) {
  if (tensor.type == ACL_INT4) {
    const int byte = static_cast<unsigned char>(tensor.data[at / 2]);
    const int nibble = at % 2 == 0 ? byte & 15 : byte >> 4;
    return nibble < 8 ? nibble : nibble - 16;
  }
  return load(tensor.data + at * static_cast<std::int64_t>(size_of(tensor.type)), tensor.type);
}

template <class T>
double load_as(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

std::size_t size_of(aclDataType type) {
  switch (type) {
    case ACL_INT64:
    case ACL_UINT64: return 8;
    case ACL_FLOAT:
    case ACL_INT32: return 4;
    case ACL_FLOAT16:
    case ACL_BF16: return 2;
    default: return 1;
  }
}

double from_fp16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double size = exponent == 31  ? INFINITY
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

std::uint16_t to_fp16(double value) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (size == 0) return static_cast<std::uint16_t>(sign);
  int exponent = std::max(std::ilogb(size), -14);
  double steps = std::nearbyint(std::ldexp(size, 10 - exponent));
  if (steps >= 2048) {
    ++exponent;
    steps = 1024;
  }
  const int bits = steps < 1024 ? static_cast<int>(steps) : ((exponent + 15) << 10) + static_cast<int>(steps) - 1024;
  return static_cast<std::uint16_t>(sign | bits);
}

double load(const char* data, aclDataType type) {
  switch (type) {
    case ACL_FLOAT: return load_as<float>(data);
    case ACL_INT64: return load_as<std::int64_t>(data);
    case ACL_INT32: return load_as<std::int32_t>(data);
    case ACL_INT8: return load_as<std::int8_t>(data);
    case ACL_FLOAT16: return from_fp16(static_cast<std::uint16_t>(load_as<std::uint16_t>(data)));
    case ACL_BF16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(load_as<std::uint16_t>(data)) << 16;
      return load_as<float>(reinterpret_cast<const char*>(&bits));
    }
    default: return load_as<std::uint8_t>(data);
  }
}

void store(char* data, aclDataType type, double value) {
  const auto as = [&](auto element) { std::memcpy(data, &element, sizeof element); };
  switch (type) {
    case ACL_FLOAT: as(static_cast<float>(value)); break;
    case ACL_INT32: as(static_cast<std::int32_t>(std::lrint(value))); break;
    case ACL_INT8: as(static_cast<std::int8_t>(std::lrint(value))); break;
    case ACL_FLOAT16: as(to_fp16(value)); break;
    case ACL_BF16: {
      const auto narrow = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      as(static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
      break;
    }
    default: violation("a kernel that stores another type than it computes in");
  }
}

double get(const aclTensor& tensor, std::initializer_list<std::int64_t> index) {
  return read(tensor, place(tensor, index));
}
double get(const aclTensor& tensor, std::int64_t i) { return read(tensor, place(tensor, i)); }
void put(const aclTensor& tensor, std::initializer_list<std::int64_t> index, double value) {
  store(tensor.data + place(tensor, index) * static_cast<std::int64_t>(size_of(tensor.type)), tensor.type, value);
}
void put(const aclTensor& tensor, std::int64_t i, double value) {
  store(tensor.data + place(tensor, i) * static_cast<std::int64_t>(size_of(tensor.type)), tensor.type, value);
}
std::int64_t elements(const aclTensor& tensor) {
  std::int64_t product = 1;
  for (const std::int64_t size : tensor.shape) product *= size;
  return product;
}

bool Checks::holds(bool condition, const std::string& what) {
  if (!condition && code_ == 0) {
    code_ = 161002;
    violation(op_ + " refused: " + what);
  }
  return good();
}

void Checks::absent(const char* name, const void* argument) {
  holds(argument == nullptr, std::string(name) + " is given");
}

bool Checks::rank(const char* name, const aclTensor* tensor, Types types, std::size_t rank) {
  if (code_ != 0) return false;
  if (tensor == nullptr) {
    code_ = 161001;
    violation(op_ + " refused: no " + name);
    return false;
  }
  if (!holds(live(tensor, "tensor") || live(tensor, "list tensor"), std::string(name) + " is no tensor")) return false;
  bool known = false;
  for (const aclDataType type : types) known = known || type == tensor->type;
  holds(known, std::string(name) + " has another type");
  return holds(tensor->shape.size() == rank, std::string(name) + " has another number of dimensions");
}

bool Checks::tensor(const char* name, const aclTensor* tensor, Types types, std::initializer_list<std::int64_t> shape) {
  if (!rank(name, tensor, types, shape.size())) return false;
  std::size_t axis = 0;
  for (const std::int64_t size : shape) {
    holds(size < 0 || tensor->shape[axis] == size, std::string(name) + " has another shape");
    ++axis;
  }
  return good();
}

int Checks::finish(const std::vector<const aclTensor*>& used, std::uint64_t* workspace, aclOpExecutor** executor,
                   std::uint64_t workspace_bytes, Task run) {
  if (!good()) return code_;
  std::vector<std::pair<const char*, std::size_t>> memory;
  for (const aclTensor* tensor : used) {
    std::int64_t stored = 1;
    for (const std::int64_t size : tensor->storage) stored *= size;
    const std::size_t bytes = tensor->type == ACL_INT4 ? static_cast<std::size_t>(stored + 1) / 2
                                                       : static_cast<std::size_t>(stored) * size_of(tensor->type);
    memory.emplace_back(tensor->data, bytes);
  }
  auto* made = new aclOpExecutor;
  made->op = op_;
  made->workspace = workspace_bytes;
  made->run = [memory, run = std::move(run), op = op_](Stream& stream) {
    for (const auto& [data, bytes] : memory) {
      if (!is_device_memory(data, bytes)) {
        violation(op + " ran on memory that was freed");
        return 507015;
      }
    }
    return run(stream);
  };
  born(made, "executor");
  *workspace = workspace_bytes;
  *executor = made;
  return 0;
}

int failed_launch(aclOpExecutor* executor, int code) {
  if (live(executor, "executor") && !executor->repeatable && dies(executor, "executor", "launch")) delete executor;
  return code;
}

int launch(const char* op, void* workspace, std::uint64_t bytes, aclOpExecutor* executor, void* stream) {
  const auto refuse = [&](const std::string& what) {
    violation(std::string(op) + " " + what);
    return 561103;
  };
  if (!live(executor, "executor")) return refuse("launched with an executor that is not there, or used up");
  if (executor->op != op) return refuse("launched with an executor of " + executor->op);
  if (bytes != executor->workspace) return refuse("launched with another workspace size than asked for");
  if (bytes > 0 && !is_device_memory(workspace, bytes)) return refuse("launched with too small a workspace");
  Task task = [run = executor->run, pending = Pending(executor->pending)](Stream& on) { return run(on); };
  const int code = enqueue(stream, op, std::move(task), true);
  if (!executor->repeatable && dies(executor, "executor", op)) delete executor;
  return code;
}

}  // namespace standin
