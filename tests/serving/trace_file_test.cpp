// Traces as they are published, and what is wrong with them by line and column.
#include "serving/trace_file.h"

#include "base/error.h"
#include "catch.h"

namespace llmperf::trace_file_test {

using namespace llmperf::serving;

namespace {

std::vector<std::string> problems(std::string_view text) {
  std::vector<std::string> lines;
  try {
    read_trace(text, "t");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::bad_input);
    for (const Diagnostic& found : error.diagnostics()) {
      lines.push_back(format_diagnostic({found.where, found.message, ""}));
    }
  }
  return lines;
}
std::string problem(std::string_view text) {
  const std::vector<std::string> all = problems(text);
  REQUIRE(all.size() == 1);
  return all.front();
}

}  // namespace

TEST_CASE("Azure's traces have dates") {
  const Trace t = read_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:46.6805900,374,44\n"
      "2023-11-16 18:15:50.9951690,396,109\n"
      "2023-11-17 00:00:00,879,55\n",
      "azure.csv");
  CHECK(t.timed);
  const Workload& w = t.workload;
  REQUIRE(w.requests.size() == 3);
  CHECK(w.requests[0].sent.value == 0);
  CHECK(w.requests[1].sent.value == Approx(4.314579).margin(1e-6));
  CHECK(w.requests[2].sent.value == Approx(20653.31941).margin(1e-5));  // 5 h 44 min 13.32 s to midnight
  CHECK(w.requests[2].input == 879);
  CHECK(w.requests[2].output == 55);
  CHECK(w.name == "azure.csv");
  // Those of 2024 have a time zone; a leap day is a day.
  const Trace later = read_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-02-28 23:59:59.5+00:00,1,1\n2024-03-01T00:00:00Z,1,1\n", "t");
  CHECK(later.workload.requests[1].sent.value == Approx(86400.5));
}

TEST_CASE("Splitwise's traces have a size of the prompt and one of the tokens that follow") {
  const Trace t = read_trace(
      "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
      "0,2,0,1,1,4000,30\n1,2,0,3.5,1,2000,7\n",
      "t");
  REQUIRE(t.workload.requests.size() == 2);
  CHECK(t.workload.requests[1].sent.value == 2.5);
  CHECK(t.workload.requests[0].input == 4000);
  CHECK(t.workload.requests[1].output == 7);
}

TEST_CASE("LLMServingSim's traces have nanoseconds, as tables with tabs and as objects with the ids of tokens") {
  const Trace tabs =
      read_trace("input_toks\toutput_toks\tarrival_time_ns\n10\t70\t1000000000\n22\t104\t1500000000\n", "t");
  REQUIRE(tabs.workload.requests.size() == 2);
  CHECK(tabs.workload.requests[1].sent.value == Approx(0.5));
  CHECK(tabs.workload.requests[1].input == 22);
  CHECK(tabs.notes.empty());
  // 40 tokens, of which the first 32 are alike, and 40 of which the first 31 are: whole blocks of 16 count.
  const auto ids = [](int alike, int from) {
    std::string list;
    for (int i = 0; i < 40; ++i) list += (i > 0 ? "," : "") + std::to_string(i < alike ? i : from + i);
    return list;
  };
  const auto line = [&](int alike, int from) {
    return R"({"input_toks":40,"output_toks":2,"arrival_time_ns":0,"input_tok_ids":[)" + ids(alike, from) +
           "],\"output_tok_ids\":[1,2]}\n";
  };
  const Trace t = read_trace(line(40, 0) + line(32, 100) + line(31, 200), "t");
  CHECK(mean_known_tokens(t.workload) == Approx((32 + 16) / 3.0));
  CHECK(t.notes.empty());
}

TEST_CASE("of ShareGPT's conversations the first two turns are a prompt and an answer, of estimated lengths") {
  const std::string forty(40, 'a');
  const std::string human = R"({"from": "human", "value": ")";
  const std::string gpt = R"({"from": "gpt", "value": ")";
  const Trace t =
      read_trace(R"([{"id": "a_0", "conversations": [)" + human + forty + "\"}, " + gpt + forty + forty + "\"}, " +
                     human + "more\"}]},\n" + R"({"id": "b_0", "conversations": [)" + human + "{[\\\"\"}, " + gpt +
                     forty + "\"}]},\n" + R"({"id": "c_0", "conversations": [)" + human +
                     "\u4f60\u597d\u4e16\u754c\u4f60\u597d\u4e16\u754c\"}, " + gpt + forty + "\"}]}]\n",
                 "t");
  REQUIRE(t.workload.requests.size() == 2);  // the second prompt has one token, and vLLM wants four
  CHECK_FALSE(t.timed);
  CHECK(t.workload.requests[0].input == 10);
  CHECK(t.workload.requests[0].output == 20);
  CHECK(t.workload.requests[1].input == 6);  // 8 x 0.7
  REQUIRE(t.notes.size() == 1);
  CHECK(t.notes[0].find("estimated") != std::string::npos);
  CHECK(read_trace(R"([{"input_tokens": 5, "output_tokens": 6}])", "t").workload.requests[0].input == 5);
  CHECK(problem("[{\"input_tokens\": 5, \"output_tokens\": 6}") == "t:1:1: the list does not end");
  CHECK(problem("[\n{\"input_tokens\": 5,\n \"output_tokens\": ]}]").rfind("t:3:", 0) == 0);
}

TEST_CASE("what of a trace is not known is named") {
  const Trace t = read_trace("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens,Region\n0,2,5,6,eu\n", "t");
  REQUIRE(t.notes.size() == 1);
  CHECK(t.notes[0].find("NumImages, Region") != std::string::npos);
  const Trace lines = read_trace(R"({"input_tokens": 5, "output_tokens": 6, "num_images": 2, "request_id": 7})", "t");
  REQUIRE(lines.notes.size() == 1);
  CHECK(lines.notes[0].find("num_images") != std::string::npos);
  CHECK(lines.notes[0].find("request_id") == std::string::npos);
}

TEST_CASE("Mooncake's traces have milliseconds, and blocks of 512 tokens") {
  const Trace t = read_trace(
      R"({"timestamp": 27482, "input_length": 1100, "output_length": 52, "hash_ids": [46, 47, 48]}
{"timestamp": 30535, "input_length": 600, "output_length": 26, "hash_ids": [46, 49]}
{"timestamp": 30536, "input_length": 5, "output_length": 1, "hash_ids": []})",
      "t");
  const Workload& w = t.workload;
  REQUIRE(w.requests.size() == 3);
  CHECK(w.requests[1].sent.value == Approx(3.053));
  CHECK(w.requests[2].sent.value == Approx(3.054));  // no blocks, and milliseconds all the same
  const std::span<const Segment> a = w.content(w.requests[0]);
  const std::span<const Segment> b = w.content(w.requests[1]);
  REQUIRE(a.size() == 3);
  REQUIRE(b.size() == 2);
  CHECK(a[0].end == 512);
  CHECK(a[1].end == 1024);
  CHECK(a[2].end == 1100);
  CHECK(a[0].id == b[0].id);
  CHECK(a[1].id != b[1].id);
  CHECK(b[1].end == 600);
  CHECK(w.content(w.requests[2]).empty());
  CHECK(mean_known_tokens(w) == Approx(512.0 / 3));  // the second's first block
}

TEST_CASE("Qwen-Bailian's traces have seconds, and blocks of 16 tokens") {
  const Trace t = read_trace(
      R"({"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, "output_length": 205, "type": "text", "turn": 1, "hash_ids": [1, 2, 3]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 63.614, "input_length": 20, "output_length": 1, "type": "text", "turn": 2, "hash_ids": [1, 9]})",
      "t");
  const Workload& w = t.workload;
  CHECK(w.requests[1].sent.value == Approx(2.5));
  REQUIRE(w.content(w.requests[0]).size() == 3);
  CHECK(w.content(w.requests[0])[1].end == 32);
  CHECK(w.content(w.requests[0])[2].end == 40);
  CHECK(w.content(w.requests[0])[0].id == w.content(w.requests[1])[0].id);
}

TEST_CASE("BurstGPT's sessions go on with what was said before, where there is room for it") {
  const Trace t = read_trace(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,s1,2,ChatGPT,100,20,120,Conversation log\n"
      "45,s1,2,ChatGPT,150,20,170,Conversation log\n"
      "46,s2,2,ChatGPT,150,20,170,Conversation log\n"
      "50,s1,2,ChatGPT,30,20,50,Conversation log\n"
      "51,s3,2,ChatGPT,30,20,50,Conversation log\n"
      "52,,2,GPT-4,30,20,50,API log\n",
      "t");
  const Workload& w = t.workload;
  REQUIRE(w.requests.size() == 6);
  const auto id = [&](std::size_t i) { return w.content(w.requests[i])[0].id; };
  CHECK(id(0) == id(1));
  CHECK(w.content(w.requests[1])[0].end == 150);
  CHECK(w.requests[1].session);
  CHECK(id(2) != id(0));
  CHECK(id(3) != id(0));  // 30 tokens cannot begin with 170
  CHECK(id(4) != id(2));
  CHECK(id(4) != id(3));
  CHECK(w.content(w.requests[5]).empty());
  CHECK_FALSE(w.requests[5].session);
}

TEST_CASE("Vidur's traces have lengths alone") {
  Trace t = read_trace("num_prefill_tokens,num_decode_tokens,pd_ratio\n1000,20,50\n2000,10,200\n", "arxiv.csv");
  CHECK_FALSE(t.timed);
  CHECK_THROWS_AS(sent_as(t, {}), Error);
  Load load;
  load.rate = 4;
  const Workload w = sent_as(t, load);
  CHECK(w.open);
  CHECK(w.requests.back().sent.value == Approx(0.5));  // requests / rate
  CHECK(w.requests.back().input == 2000);
  Load closed;
  closed.concurrency = 1;
  CHECK_FALSE(sent_as(t, closed).open);
  CHECK(sent_as(t, closed).concurrency == 1);
}

TEST_CASE("our own traces, as CSV or lines of JSON") {
  const Trace csv =
      read_trace("# made by hand\narrival_s,input_tokens,output_tokens,session\n0.5,10,2,a\n0.5,20,3,\n", "t");
  CHECK(csv.workload.requests[1].sent.value == 0);
  CHECK(csv.workload.requests[0].session);
  CHECK_FALSE(csv.workload.requests[1].session);
  const Trace json = read_trace(
      "{\"arrival_s\": 1e1, \"input_tokens\": 10, \"output_tokens\": 2}\n\n"
      "{\"arrival_s\": 10.25, \"input_tokens\": 11, \"output_tokens\": 1}\n",
      "t");
  CHECK(json.workload.requests[1].sent.value == 0.25);
  CHECK(json.workload.requests[1].input == 11);
  CHECK(read_trace("arrival_s,input_tokens,output_tokens\n1,1,1\n2,x,1\n", "t", 1).workload.requests.size() == 1);
}

TEST_CASE("a trace is sent as it stands, at a rate, or in a closed loop") {
  const Trace t = read_trace("arrival_s,input_tokens,output_tokens\n0,1,1\n1,1,1\n4,1,1\n", "t");
  CHECK(t.workload.requests_per_second() == 0.5);
  CHECK(sent_as(t, {}).requests.back().sent.value == 4);
  Load faster;
  faster.rate = 2;
  const Workload w = sent_as(t, faster);
  CHECK(w.requests[1].sent.value == 0.25);  // four times as fast
  CHECK(w.requests_per_second() == 2);
  Load closed;
  closed.concurrency = 2;
  CHECK_FALSE(sent_as(t, closed).open);
}

TEST_CASE("turns of a trace wait for answers where it does not say when they were sent") {
  constexpr const char* kRows = "10,1,a\n10,1,b\n20,1,a\n5,1,a\n9,1,\n";
  const auto after = [](const Workload& w) {
    std::vector<int> all;
    for (const Request& r : w.requests) all.push_back(r.after);
    return all;
  };
  const std::vector<int> in_turn = {-1, -1, 0, 2, -1};
  const std::vector<int> nobody(5, -1);
  const Trace untimed = read_trace(std::string("input_tokens,output_tokens,session\n") + kRows, "t");
  Load rate, closed;
  rate.rate = 2;
  closed.concurrency = 2;
  CHECK(after(sent_as(untimed, rate)) == in_turn);
  CHECK(after(sent_as(untimed, closed)) == in_turn);
  const Trace timed =
      read_trace("arrival_s,input_tokens,output_tokens,session\n0,10,1,a\n0,10,1,b\n1,20,1,a\n2,5,1,a\n2,9,1,\n", "t");
  CHECK(after(sent_as(timed, {})) == nobody);
  CHECK(after(sent_as(timed, rate)) == nobody);
  CHECK(after(sent_as(timed, closed)) == in_turn);  // whose times are not the recorded ones
}

TEST_CASE("a load may be the first requests of a trace, at its rate") {
  const auto trace = std::make_shared<const Trace>(
      read_trace("arrival_s,input_tokens,output_tokens,session\n0,10,1,a\n1,20,1,a\n4,40,1,a\n", "t"));
  Load load;
  load.trace = trace;
  load.rate = 2;
  load.requests = 2;
  const Workload w = make_workload(load);
  REQUIRE(w.requests.size() == 2);
  CHECK(w.requests[1].sent.value == 0.5);  // of two requests a second apart at one each half a second
  CHECK(w.requests[1].input == 20);
  CHECK(w.segments.size() == 2);
  load.requests = 1000;
  CHECK(make_workload(load).requests.size() == 3);
  // 11 tokens were said before the second turn, 21 before the third.
  CHECK(mean_known_tokens(trace->workload) == Approx((11.0 + 21) / 3));

  Load lengths;
  lengths.trace = std::make_shared<const Trace>(read_trace("input_tokens,output_tokens\n10,1\n20,1\n", "t"));
  lengths.rate = 4;
  const Workload random = make_workload(lengths);
  CHECK(random.requests[1].input == 20);
  CHECK(random.requests.back().sent.value == Approx(0.5));  // two at four per second, as made traffic
}

TEST_CASE("what is wrong with a trace has its line and column") {
  const std::string head = "arrival_s,input_tokens,output_tokens\n";
  CHECK(problem(head + "3,1,1\n2,1,1\n") == "t:3:1: '2' is before the request above");
  CHECK(problem(head + "0,0,1\n") == "t:2:3: input tokens of '0': a number of tokens from 1 to 10000000 is expected");
  CHECK(problem(head + "0,1,-4\n") ==
        "t:2:5: output tokens of '-4': a number of tokens from 1 to 10000000 is expected");
  CHECK(problem(head + "0,99999999999999999999,1\n") ==
        "t:2:3: input tokens of '99999999999999999999': a number of tokens from 1 to 10000000 is expected");
  CHECK(problem(head + "0,,1\n") == "t:2:1: no input tokens");
  CHECK(problem(head + "1e300,1,1\n") == "t:2:1: '1e300' is no time");
  CHECK(problem(head + "noon,1,1\n") == "t:2:1: 'noon' is no time");
  CHECK(problem(head + "2023-13-01 00:00:00,1,1\n") == "t:2:1: '2023-13-01 00:00:00' is no time");
  CHECK(problem(head + "0,1,1\n,1,1\n") == "t:3:1: no time");
  CHECK(problem(head) == "t:1:1: a trace without a request");
  CHECK(problem("arrival_s,output_tokens\n1,1\n") ==
        "t:1:1: no column of input_tokens: there are 'arrival_s, output_tokens'");
  CHECK(problem("").find("without a request") != std::string::npos);
}

TEST_CASE("all that is wrong with a trace is said at once") {
  const std::string head = "arrival_s,input_tokens,output_tokens\n";
  CHECK(problems(head + "0,0,1\n1,1,1\n2,1,x\n").size() == 2);
  const std::vector<std::string> json = problems(
      "{\"input_tokens\": 1, \"output_tokens\": 1}\n{\"input_tokens\": 1, \n{\"input_tokens\": 0, \"output_tokens\": "
      "1}\n[1]\n");
  REQUIRE(json.size() == 4);
  CHECK(json[0].starts_with("t:2:"));
  CHECK(json[1].starts_with("t:3:18: input tokens of '0'"));
  CHECK(json[2] == "t:4:1: no input tokens");
  CHECK(problem(R"({"input_length": 1, "output_length": 1, "hash_ids": [-3]})") == "t:1:54: '-3' is no hash_id");
}

}  // namespace llmperf::trace_file_test
