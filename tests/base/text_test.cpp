#include "base/text.h"

#include "base/utf8.h"
#include "catch.h"

namespace llmperf::text_test {

using Names = std::vector<std::string>;

TEST_CASE("a typo finds the name it was meant to be") {
  const Names models = {"qwen-7b", "qwen1.5-7b", "llama-3-70b", "mixtral-8x7b"};
  CHECK(nearest_names("qwen7b", models).front() == "qwen-7b");
  CHECK(nearest_names("QWEN-7B", models).front() == "qwen-7b");
  CHECK(nearest_names("lama-3-70b", models) == Names{"llama-3-70b"});
  // What differs in separators alone is meant, and nothing else.
  CHECK(nearest_names("q4km", Names{"q4_0", "q4_k_s", "q4_k_m"}) == Names{"q4_k_m"});
  CHECK(nearest_names("llama3.1-8b", Names{"llama-3-8b", "llama-3.1-8b"}) == Names{"llama-3.1-8b"});
  CHECK(nearest_names("rtx490", Names{"rtx3090", "rtx4090", "h100"}).front() == "rtx4090");
}

TEST_CASE("two neighbouring letters swapped are one edit, so they outrank two replaced ones") {
  CHECK(nearest_names("haeds", Names{"hoods", "heads"}) == Names{"heads", "hoods"});
}

TEST_CASE("a part of a name finds the names that contain it") {
  CHECK(nearest_names("mixtral", Names{"mixtral-8x22b-instruct", "qwen-7b"}) == Names{"mixtral-8x22b-instruct"});
}

TEST_CASE("names that share nothing with the text are not suggested, however short") {
  CHECK(nearest_names("x", Names{"a", "bc"}).empty());
  CHECK(nearest_names("zzzzzzzz", Names{"qwen-7b"}).empty());
  CHECK(nearest_names("", Names{"qwen-7b"}).empty());
}

TEST_CASE("at most `limit` names, each once, nearest first") {
  const Names names = {"abcde", "abcef", "abcfg", "abcd", "abcd"};
  CHECK(nearest_names("abc", names, 2) == Names{"abcd", "abcde"});
  CHECK(nearest_names("abc", names).size() == 3);
}

TEST_CASE("very long text has no nearest names and costs nothing") {
  CHECK(nearest_names(std::string(1'000'000, 'a'), Names{"a"}).empty());
}

TEST_CASE("hints read as questions, or list what is known") {
  CHECK(name_hint("had", Names{"head"}) == "did you mean 'head'?");
  CHECK(name_hint("abc", Names{"abcd", "abce"}) == "did you mean 'abcd' or 'abce'?");
  CHECK(name_hint("abc", Names{"abcd", "abce", "abcf"}) == "did you mean 'abcd', 'abce' or 'abcf'?");
  CHECK(name_hint("xxxxxx", Names{"one", "two"}) == "known names: one, two");
  CHECK(name_hint("xxxxxx", Names{"1", "2", "3", "4", "5", "6", "7", "8", "9"}) ==
        "known names: 1, 2, 3, 4, 5, 6, 7, 8, …");
  CHECK(name_hint("x", Names{}).empty());
}

TEST_CASE("wide characters take two columns, combining marks none, broken bytes one each") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("模型") == 4);
  CHECK(display_width("ｆ") == 2);
  CHECK(display_width("한글") == 4);
  CHECK(display_width("é") == 1);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("…µ×") == 3);
  CHECK(display_width("🚀") == 2);
  CHECK(display_width("a\xFF\xC3") == 3);
  CHECK(display_width("") == 0);
}

TEST_CASE("padding counts columns, not bytes, and never cuts") {
  CHECK(pad("模", 4, true) == "模  ");
  CHECK(pad("7", 3, false) == "  7");
  CHECK(pad("long", 2, true) == "long");
}

TEST_CASE("quoted text cannot disturb the terminal or flood it") {
  CHECK(quote("n_head") == "'n_head'");
  CHECK(quote("模型") == "'模型'");
  CHECK(quote("a\x1b[31m\n") == "'a\\x1b[31m\\x0a'");
  CHECK(quote("\xFF") == "'\\xff'");
  CHECK(quote(std::string(1000, 'x')) == "'" + std::string(60, 'x') + "…'");
  CHECK(display_width(quote(std::string(1000, '\xFF'))) < 70);
  // An escaped character of four bytes takes 16 places, of which none is left here.
  CHECK(quote(std::string(59, 'x') + "\xF3\xA0\x84\x80") == "'" + std::string(59, 'x') + "…'");
}

TEST_CASE("only well-formed UTF-8 decodes") {
  const auto decodes = [](std::string_view text) {
    std::size_t offset = 0;
    return decode_utf8(text, offset).has_value();
  };
  CHECK(decodes("a"));
  CHECK(decodes("\xF4\x8F\xBF\xBF"));        // U+10FFFF
  CHECK_FALSE(decodes("\xF4\x90\x80\x80"));  // beyond it
  CHECK_FALSE(decodes("\xC0\x80"));          // overlong NUL
  CHECK_FALSE(decodes("\xE0\x80\x80"));
  CHECK_FALSE(decodes("\xED\xA0\x80"));  // surrogate
  CHECK_FALSE(decodes("\x80"));
  CHECK_FALSE(decodes("\xE4\xBD"));  // cut off
}

TEST_CASE("splitting keeps empty parts; trimming, lowering and joining do what they say") {
  CHECK(split("a::b", ':') == std::vector<std::string_view>{"a", "", "b"});
  CHECK(split("", ':') == std::vector<std::string_view>{""});
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim("   ").empty());
  CHECK(to_lower("RTX 4090 Ä") == "rtx 4090 Ä");
  CHECK(join(Names{"a", "", "b"}, ", ") == "a, , b");
  CHECK(join(Names{}, ", ").empty());
}

TEST_CASE("what reorders or hides text is an escape, of the same character to who reads JSON, or a question mark") {
  CHECK(without_unsafe("a\u202eb\u2069", true) == "a\\u202eb\\u2069");
  CHECK(without_unsafe("\U000e0041", true) == "\\udb40\\udc41");  // a pair
  CHECK(without_unsafe("a\u200fb\U000e0041", false) == "a?b?");
  for (const char* text : {"plain", "a\nb", "模型", "f\u200d", "\xff"}) {  // line ends are written by others
    CHECK(without_unsafe(text, true) == text);
    CHECK(without_unsafe(text, false) == text);
  }
}

}  // namespace llmperf::text_test
