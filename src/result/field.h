// What a result says, declared once. Beside each result struct fields_of() lists its fields: the key with its unit,
// what it means, where the value comes from, and when there is one. Everything that is written from a result (JSON, the
// cells of a row and their columns, the documentation of both) is a loop over that list, so that a new field is one
// line:
//
//   Type fields_of(Fields<cost::Memory> f) {
//     using M = cost::Memory;
//     return f.of<&M::weights>("weight_bytes", "of the weights")
//         .of<&M::total>("total_bytes", "the sum");
//   }
//
// A value is a truth, a number, a quantity, a text, an enum that has a name(), a struct with fields of its own, a range
// of these, a variant of the plain ones, a Map of these by name, or an optional or a pointer to one of these, which is
// null when it is empty. What it is follows from the type of the member or function, so that a schema needs no result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.h"

namespace llmperf::result {

struct Type;

// A value whose kind is data.
using Value = std::variant<std::monostate, bool, double, std::string>;
// Values by names that are data: the figures of a device.
template <class T>
using Map = std::vector<std::pair<std::string, T>>;

// What is done with values.
class Visitor {
 public:
  virtual void nothing() = 0;
  virtual void truth(bool value) = 0;
  virtual void number(double value) = 0;
  virtual void integer(std::int64_t value) { number(static_cast<double>(value)); }
  virtual void text(std::string_view value) = 0;
  virtual void object(const Type& type, const void* object) = 0;
  // The items of a list, and of a map each after its key, come between begin and end.
  virtual void begin(bool map) = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end() = 0;

 protected:
  ~Visitor() = default;
};

// any: one of the others but an object, or nothing.
enum class Kind : std::uint8_t { truth, integer, number, text, any, object };
struct Shape {
  Kind kind = Kind::object;
  bool nullable = false;
  bool map = false;
  bool nulls = false;               // in a map
  int lists = 0;                    // [] around it
  const Type& (*type)() = nullptr;  // of an object
};

// Where a field is written: in JSON, as a column of rows, or both. Objects and lists are in JSON alone.
enum class In : std::uint8_t { both, json, row };

// What a number is of, where the end of its key does not say it: a share of one, or bytes that lie in memory.
enum class Unit : std::uint8_t { of_key, share, held };

// What a field is declared with: its key, after a colon what people call it where that is not the key spelt out, and
// at the end the unit of a share or of what lies in memory: "ttft_s", "kv: KV cache", "mfu: %", "total_bytes: memory
// needed GiB".
struct Declared {
  constexpr Declared(const char* text) : Declared(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  constexpr Declared(std::string_view text)                                   // NOLINT(google-explicit-constructor)
      : key(text.substr(0, text.find(": "))) {
    if (key.size() == text.size()) return;
    text.remove_prefix(key.size() + 1);
    for (const auto& [end, of] : {std::pair{std::string_view(" %"), Unit::share}, {" GiB", Unit::held}}) {
      if (!text.ends_with(end)) continue;
      text.remove_suffix(end.size());
      unit = of;
    }
    if (!text.empty()) label = text.substr(1);
  }
  std::string_view key;
  std::string_view label;
  Unit unit = Unit::of_key;
};

// What a field is, for the documentation. The engine of pages has none: what it is given is dropped.
#ifdef LLMPERF_WITHOUT_DOCS
struct Doc {
  constexpr Doc() = default;
  constexpr Doc(const char*) {}  // NOLINT(google-explicit-constructor)
  constexpr operator std::string_view() const { return {}; }
};
#else
using Doc = std::string_view;
#endif

struct Field {
  std::string_view key;
  std::string_view label;  // where it is not the key, spelt out
  std::string_view doc;
  Shape shape;
  void (*visit)(const void* object, Visitor& visitor);
  In in = In::both;
  bool (*there)(const void* object) = nullptr;  // null: always
  bool left_out = false;                        // the key too, where it is not there; otherwise the value is null
  bool flat = false;                            // the fields of this object are columns, too
  bool spread = false;                          // … and are keys of what holds the object, which has none itself
  Unit unit = Unit::of_key;
};

struct Type {
  std::vector<Field> fields;
  std::string_view name = {};  // of a type that several results have: documented once, under it
  std::string_view doc = {};   // what holds for all of them
};

template <class T>
class Fields;

// What `Build` lists of a T, for an object in a document that says more of what the document is of.
template <class T, Type (*Build)(Fields<T>)>
const Type& group_of() {
  static const Type type = Build(Fields<T>());
  return type;
}

// Of a T: what fields_of() lists, or T::fields() where the list stands in the struct itself.
template <class T>
const Type& type_of() {
  static const Type type = [] {
    if constexpr (requires { T::fields(); }) {
      return T::fields();
    } else {
      return fields_of(Fields<T>());
    }
  }();
  return type;
}

namespace detail {

template <class T>
inline constexpr bool is_quantity = false;
template <class D>
inline constexpr bool is_quantity<Quantity<D>> = true;
template <class T>
inline constexpr bool is_optional = std::is_pointer_v<T>;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<Map<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
template <class T>
inline constexpr bool is_text = std::is_convertible_v<const T&, std::string_view>;

template <class T>
void visit(Visitor& v, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    v.truth(value);
  } else if constexpr (std::is_integral_v<T>) {
    v.integer(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    v.number(value);
  } else if constexpr (std::is_enum_v<T>) {
    v.text(name(value));
  } else if constexpr (is_quantity<T>) {
    v.number(value.value);
  } else if constexpr (is_text<T>) {
    v.text(value);
  } else if constexpr (is_optional<T>) {
    value ? visit(v, *value) : v.nothing();
  } else if constexpr (std::is_same_v<T, std::monostate>) {
    v.nothing();
  } else if constexpr (is_variant<T>) {
    std::visit([&](const auto& one) { visit(v, one); }, value);
  } else if constexpr (is_map<T>) {
    v.begin(true);
    for (const auto& [key, item] : value) {
      v.key(key);
      visit(v, item);
    }
    v.end();
  } else if constexpr (std::ranges::range<T>) {
    v.begin(false);
    for (const auto& item : value) visit(v, static_cast<const std::ranges::range_value_t<T>&>(item));
    v.end();
  } else {
    v.object(type_of<T>(), &value);
  }
}

template <class T>
constexpr Shape shape_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return {Kind::truth};
  } else if constexpr (std::is_integral_v<T>) {
    return {Kind::integer};
  } else if constexpr (std::is_floating_point_v<T> || is_quantity<T>) {
    return {Kind::number};
  } else if constexpr (std::is_enum_v<T> || is_text<T>) {
    return {Kind::text};
  } else if constexpr (is_variant<T>) {
    return {Kind::any};
  } else if constexpr (is_optional<T>) {
    Shape shape = shape_of<std::remove_cvref_t<decltype(*std::declval<T>())>>();
    shape.nullable = true;
    return shape;
  } else if constexpr (is_map<T>) {
    Shape shape = shape_of<typename T::value_type::second_type>();
    shape.map = true;
    shape.nulls = std::exchange(shape.nullable, false);
    return shape;
  } else if constexpr (std::ranges::range<T>) {
    Shape shape = shape_of<std::ranges::range_value_t<T>>();
    ++shape.lists;
    return shape;
  } else {
    return {.kind = Kind::object, .type = &type_of<T>};
  }
}

template <auto First, auto... Rest, class T>
decltype(auto) follow(const T& object) {
  if constexpr (sizeof...(Rest) == 0) {
    return std::invoke(First, object);
  } else {
    decltype(auto) next = std::invoke(First, object);
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(next)>>) {
      return follow<Rest...>(*next);
    } else {
      static_assert(std::is_lvalue_reference_v<decltype(next)>, "what is on the way must not be a temporary");
      return follow<Rest...>(next);
    }
  }
}

}  // namespace detail

// The fields of a T, in the order in which they are written.
template <class T>
class Fields {
 public:
  // What a path of members gives, each of what the one before is or points to. A member is a function without
  // arguments, too, or a function of the object.
  template <auto... Path>
  Fields& of(Declared key, Doc doc) {
    return this->of(key, doc, [](const T& object) -> decltype(auto) { return detail::follow<Path...>(object); });
  }
  // What a lambda without captures gives for the object.
  template <class Get>
  Fields& of(Declared key, Doc doc, Get) {
    static_assert(std::is_empty_v<Get>, "a function is a template argument: of<&function>(key, doc)");
    using Got = std::remove_cvref_t<std::invoke_result_t<Get, const T&>>;
    const Shape shape = detail::shape_of<Got>();
    const bool cell = shape.kind != Kind::object && shape.lists == 0 && !shape.map;
    type_.fields.push_back(
        {.key = key.key,
         .label = key.label,
         .doc = doc,
         .shape = shape,
         .visit = [](const void* object,
                     Visitor& visitor) { detail::visit<Got>(visitor, Get()(*static_cast<const T*>(object))); },
         .in = cell ? In::both : In::json,
         .there = there_,
         .left_out = left_out_,
         .unit = key.unit});
    last().shape.nullable |= there_ != nullptr && !left_out_;
    return *this;
  }
  // In JSON alone; in rows alone; an object whose fields are columns, too.
  template <auto... Path, class... Get>
  Fields& json(Declared key, Doc doc, Get... get) {
    return this->template of<Path...>(key, doc, get...).json();
  }
  template <auto... Path, class... Get>
  Fields& row(Declared key, Doc doc, Get... get) {
    return this->template of<Path...>(key, doc, get...).row();
  }
  template <auto... Path, class... Get>
  Fields& flat(Declared key, Doc doc, Get... get) {
    return this->template of<Path...>(key, doc, get...).flat();
  }
  // An object whose fields say more of the same.
  template <Type (*Build)(Fields<T>)>
  Fields& group(Declared key, Doc doc) {
    constexpr auto type = &group_of<T, Build>;
    type_.fields.push_back(
        {.key = key.key,
         .label = key.label,
         .doc = doc,
         .shape = {.kind = Kind::object, .nullable = there_ != nullptr && !left_out_, .type = type},
         .visit = [](const void* object, Visitor& visitor) { visitor.object(group_of<T, Build>(), object); },
         .in = In::json,
         .there = there_,
         .left_out = left_out_});
    return *this;
  }
  // The fields of another object as if they were this one's.
  template <class Get>
  Fields& spread(Get get) {
    this->of("", "", get);
    last().spread = true;
    return this->flat();
  }
  template <auto... Path>
  Fields& spread() {
    return this->spread([](const T& object) -> decltype(auto) { return detail::follow<Path...>(object); });
  }
  // Until always(): null, or an empty cell, where `there` gives false; with only_where() the key is left out.
  template <class There>
  Fields& where(There) {
    there_ = &holds<There>;
    left_out_ = false;
    return *this;
  }
  template <class There>
  Fields& only_where(There there) {
    where(there);
    left_out_ = true;
    return *this;
  }
  Fields& always() {
    there_ = nullptr;
    left_out_ = false;
    return *this;
  }

  // ---- Of the field before

  // Null, or an empty cell, where `there` gives false.
  template <class There>
  Fields& when(There) {
    last().there = &holds<There>;
    last().shape.nullable = true;
    last().left_out = false;
    return *this;
  }
  // … and its key is left out.
  template <class There>
  Fields& only_when(There there) {
    const bool nullable = last().shape.nullable;
    this->when(there);
    last().shape.nullable = nullable;
    last().left_out = true;
    return *this;
  }
  Fields& json() {
    last().in = In::json;
    return *this;
  }
  Fields& row() {
    last().in = In::row;
    return *this;
  }
  Fields& flat() {
    last().in = In::both;
    last().flat = true;
    return *this;
  }

  // Ends the list of a type that is documented under a name of its own, with what holds for all fields.
  Fields& named(std::string_view name, Doc doc = {}) {
    type_.name = name;
    type_.doc = doc;
    return *this;
  }
  operator Type() { return std::move(type_); }  // NOLINT(google-explicit-constructor): ends the list

 private:
  template <class There>
  static bool holds(const void* object) {
    return There()(*static_cast<const T*>(object));
  }
  Field& last() { return type_.fields.back(); }
  Type type_;
  bool (*there_)(const void* object) = nullptr;
  bool left_out_ = false;
};

}  // namespace llmperf::result
