// One list of fields gives the JSON, the row and its columns, and the documentation.
#include "result/field.h"

#include "catch.h"
#include "result/document.h"
#include "result/row.h"

namespace llmperf::result::field_test {
namespace {

enum class Colour { red, green };
std::string_view name(Colour colour) { return colour == Colour::red ? "red" : "green"; }

struct Wheel {
  double radius_m = 0;
};
struct Cart {
  std::string label = "cart \"one\"";
  Colour colour = Colour::green;
  std::int64_t horses = 2;
  Seconds trip{1.5};
  Bytes load{4096};
  std::optional<double> price;
  bool fits = true;
  Wheel front{0.5};
  std::vector<Wheel> wheels = {{0.5}, {0.75}};
  Map<Wheel> spare = {{"left", {0.25}}};
};

Type fields_of(Fields<Wheel> f) { return f.of<&Wheel::radius_m>("radius_m", "half of it"); }
Type fields_of(Fields<Cart> f) {
  constexpr auto fits = [](const Cart& c) { return c.fits; };
  return f.of<&Cart::label>("label", "what it says")
      .of<&Cart::colour>("colour", "as painted")
      .of<&Cart::horses>("horses", "in front")
      .where(fits)
      .of<&Cart::trip>("trip_s", "there and back")
      .only_where(fits)
      .of<&Cart::load>("load_bytes", "on it")
      .always()
      .json<&Cart::price>("price_usd", "asked for")
      .row<&Cart::fits>("fits", "or not")
      .flat<&Cart::front>("front", "the first")
      .of<&Cart::wheels>("wheels", "all")
      .of<&Cart::spare>("spare", "by side")
      .spread([](const Cart& c) { return c.front; });
}

std::string cells(const points::Row& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    text += std::string(row.name(i)) + "=" + cell_text(row[i]) + ";";
  }
  return text;
}

}  // namespace

TEST_CASE("Fields are a document, in their order, with null where there is nothing") {
  Cart cart;
  const std::string json = document("llmperf.cart", cart);
  const std::string expected = R"(  "label": "cart \"one\"",
  "colour": "green",
  "horses": 2,
  "trip_s": 1.5,
  "load_bytes": 4096,
  "price_usd": null,
  "front": {
    "radius_m": 0.5
  },
  "wheels": [
    {
      "radius_m": 0.5
    },
    {
      "radius_m": 0.75
    }
  ],
  "spare": {
    "left": {
      "radius_m": 0.25
    }
  },
  "radius_m": 0.5
}
)";
  CHECK(json.substr(json.find("  \"label\"")) == expected);
  cart.fits = false;
  const std::string not_there = document("llmperf.cart", cart);
  CHECK(not_there.find("\"trip_s\": null") != std::string::npos);
  CHECK(not_there.find("load_bytes") == std::string::npos);
}

TEST_CASE("Fields are the cells of a row: texts, numbers and truths, and those of flat objects") {
  Cart cart;
  points::Row row;
  fill_row(row, &cart);
  CHECK(cells(row) ==
        "label=cart \"one\";colour=green;horses=2;trip_s=1.5;load_bytes=4096;fits=true;radius_m=0.5;radius_m=0.5;");
  cart.fits = false;
  row.clear();
  fill_row(row, &cart);
  CHECK(cells(row) ==
        "label=cart \"one\";colour=green;horses=2;trip_s=;load_bytes=;fits=false;radius_m=0.5;radius_m=0.5;");
  row.clear();
  fill_row<Cart>(row, nullptr);
  CHECK(cells(row) == "label=;colour=;horses=;trip_s=;load_bytes=;fits=;radius_m=;radius_m=;");
  CHECK(columns(type_of<Cart>()).size() == row.size());
}

TEST_CASE("Fields are documented with what their values are") {
  CHECK(documentation({"llmperf.cart", "llmperf cart --json", &type_of<Cart>}) == R"(## llmperf.cart

`llmperf cart --json`

| key | value | meaning |
|---|---|---|
| `label` | text | what it says |
| `colour` | text | as painted |
| `horses` | number | in front |
| `trip_s` | number or null | there and back |
| `load_bytes` | number, may be absent | on it |
| `price_usd` | number or null | asked for |
| `front` | object | the first |
| `front.radius_m` | number | half of it |
| `wheels[]` | list of objects | all |
| `wheels[].radius_m` | number | half of it |
| `spare{}` | objects by name | by side |
| `spare{}.radius_m` | number | half of it |
| `radius_m` | number | half of it |
)");
}

}  // namespace llmperf::result::field_test
