#include "descriptor/packed.h"

#include "base/text.h"
#include "catch.h"
#include "descriptor/catalog.h"

namespace llmperf::packed_test {

using namespace llmperf::descriptor;

namespace {

bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.quoted != b.quoted || a.scalar != b.scalar || a.items.size() != b.items.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!same(a.items[i], b.items[i])) return false;
  }
  const auto same_entry = [](const Node::Entry& x, const Node::Entry& y) {
    return x.key == y.key && same(x.value, y.value);
  };
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(), same_entry);
}

Node yaml(const std::string& text) { return parse_yaml(text, "toy.yaml").root; }

}  // namespace

TEST_CASE("a packed tree reads back as it was, but for its positions") {
  for (const std::string text :
       {"a: 1\nb: \"1\"\nc:\nd: ''\n", "[]", "{}", "- {x: [], y: {}}\n- [[1, 2], [3]]\n- ~\n", "12:34",
        "k: \"3:abc, l5:q2:xy\"\n\"m9:1:\": \"µs — 中文\"\n", "text: |\n  two\n  lines\n"}) {
    CAPTURE(text);
    const Node node = yaml(text);
    CHECK(same(unpack(pack(node)), node));
    CHECK(unpack(pack(node)).line == 0);
  }
  CHECK(pack(yaml("a: 12")) == "m10:1:1:as2:12");
}

TEST_CASE("every built-in tree is that of its file") {
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.ends_with(".yaml")) continue;
    CAPTURE(file.path);
    const std::string path = std::string(LLMPERF_SOURCE_DIR "/") + std::string(file.path);
    CHECK(same(load(file.kind, std::string(file.name)).root, parse_file(path).root));
  }
}

TEST_CASE("values of the outermost mapping: a scalar, the scalars of a list, or nothing") {
  const std::string packed =
      pack(yaml("first: {name: inner, list: [x]}\nname: outer\nlist: [a, \"b\"]\nmixed: [a, {b: 1}]\nnone:\n"));
  const auto at = [&](std::string_view key) {
    std::vector<std::string> texts;
    for (const std::string_view text : packed_values(packed, key)) texts.emplace_back(text);
    return join(texts, "|");
  };
  CHECK(at("name") == "outer");
  CHECK(at("list") == "a|b");
  CHECK(at("mixed") == "a");
  CHECK(at("first").empty());
  CHECK(at("none").empty());
  CHECK(at("inner").empty());
  CHECK(packed_values(pack(yaml("[name]")), "name").empty());
}

}  // namespace llmperf::packed_test
