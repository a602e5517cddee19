// `llmperf man`: manual pages, written from the same description of the command line as --help.
//
// roff of the man macros. In text a backslash, a hyphen that is to stay one and everything beyond ASCII are escaped,
// and a line must not start with a dot or an apostrophe, which would make it a request.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "base/utf8.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/files.h"
#include "cli/output.h"

namespace llmperf::cli {
namespace {

// ---- What the pages say beyond --help.

// Commands that work as they stand where the files exist that they name; a test runs them.
struct Example {
  std::string_view command;  // the subcommand's name
  std::string_view about;
  std::string_view words;  // what to type
};
constexpr Example kExamples[] = {
    {"estimate", "Latency and memory of a model on one card, with the time of every operation:",
     "llmperf estimate -m qwen-7b --hw rtx4090 --detail ops"},
    {"estimate", "With 4-bit weights on two cards, also as a file for scripts:",
     "llmperf estimate -m llama-3-70b --hw rtx4090 --weights w4a16 --tp 2 --export estimate.json"},
    {"capacity", "The cheapest GPUs that serve 20 requests a second within a promise:",
     "llmperf capacity -m llama-3.3-70b --rate 20 --slo ttft.p99=1s,tpot.p95=50ms --weights bf16,fp8"},
    {"serve", "How traffic fares on a serving engine, and whether it keeps a promise:",
     "llmperf serve -m llama-3.1-8b --hw h100-sxm --rate 10 --slo ttft.p99=1s,tpot.p95=50ms"},
    {"compare", "What running without flash attention costs:",
     "llmperf compare -m qwen-7b --hw rtx4090 --options all --with all,no_flash_attention"},
    {"explain",
     "Where the size of the KV cache comes from:", "llmperf explain memory.kv_cache_bytes -m qwen-7b --hw rtx4090"},
    {"graph", "Operations and time of a program, here of two devices:",
     "llmperf graph program.mlir --hw a100-sxm-80gb --devices 2"},
    {"limits", "A family of models side by side:", "llmperf limits -m qwen-1.8b,qwen-7b,qwen-14b --hw rtx4090"},
    {"map", "The best mapping of a product on an array of tiles, drawn:",
     "llmperf map gemm --hw tx8 --m 512 --n 2048 --k 2048 --svg schedule.svg"},
    {"map", "The ops of a decode step, and which results stay in the tiles' memory:",
     "llmperf map model --model qwen3-0.6b --hw tx8 --phase decode"},
    {"map-collective", "An all-reduce of eight devices over all sizes:",
     "llmperf map-collective --hw a100-sxm-80gb --op all-reduce --ranks 8 --sweep"},
    {"parallel", "The five fastest plans over eight devices:",
     "llmperf parallel -m llama-3-70b --hw a100-sxm-80gb --devices 8 --top 5"},
    {"sweep", "Every combination of models, batches and weights that fits, as CSV:",
     "llmperf sweep -m qwen-7b,qwen-14b --hw rtx4090 --batch 1-64*2 --weights bf16,w4a16 --where fits --export "
     "rows.csv"},
    {"merge", "The parts of a sweep that ran as --shard 1/2 and --shard 2/2:",
     "llmperf merge part1.csv part2.csv --export rows.csv"},
    {"run", "A study that is built in, into a folder:", "llmperf run qwen1.5-rtx4090 -o study"},
    {"explore", "A page that computes by itself, opened at a request:",
     "llmperf explore -m llama-3.1-8b --hw h100-sxm --batch 16 -o what-if.html"},
    {"report", "An HTML report of a result that was saved:", "llmperf report result.json -o report.html"},
    {"calibrate", "A profile fitted to measurements of one's own:",
     "llmperf calibrate measurements.csv --hw rtx4090 -o profile.yaml"},
    {"validate",
     "Predictions beside the measurements that are built in:", "llmperf validate rtx4090-qwen1.5 --max-mape 0.1"},
    {"replay", "The products of a small model, timed on this machine:",
     "llmperf replay --sweep gemm --dtype fp32 --hw ryzen-7950x -o timings.csv"},
    {"import", "Measurements of a test program's output:",
     "llmperf import nccl-tests all_reduce_perf.txt --hw a100-sxm-80gb -o measurements.csv"},
    {"list", "Names to give to --model:", "llmperf list models"},
    {"show", "Every figure of a device, with its source:", "llmperf show hardware rtx4090"},
    {"completion", "Completion in this session of bash:", "eval \"$(llmperf completion bash)\""},
    {"help", "The flags of a subcommand, by what they are about:", "llmperf help sweep"},
    {"man", "This page:", "llmperf man man"},
};

struct Entry {
  std::string_view term;
  std::string_view text;
};
constexpr Entry kExitStatuses[] = {
    {"0", "done"},
    {"1", "something failed: a file cannot be written, a device does not answer"},
    {"2", "the command line or an input is wrong"},
    {"3", "it cannot be done: the model does not fit"},
    {"4", "a threshold that was stated is exceeded"},
    {"130, 143, 129", "interrupted by Ctrl-C, SIGTERM, SIGHUP; what was finished is kept"},
    {"141", "nobody reads its output any more"},
};

constexpr Entry kEnvironment[] = {
    {"LLMPERF_PATH",
     "folders, separated by colons, that are searched for models/NAME.yaml, hardware/devices/NAME.yaml and so on "
     "before "
     "what is built in"},
    {"NO_COLOR", "when it is not empty, headings on a terminal are not bold"},
};

constexpr Entry kFiles[] = {
    {"NAME.yaml", "a model, a device or a profile of one's own: any argument with a slash or such an ending is a path"},
    {"config.json", "of Hugging Face, as --model, or the folder it is in"},
    {"hf_quant_config.json", "beside config.json: how NVIDIA's checkpoints are quantised"},
    {"NAME.gguf", "as --model; its header only is read"},
};

// Of llmperf(1).
constexpr std::string_view kManDescription =
    "llmperf says how fast a language model, or a diffusion transformer for video, runs on a piece of hardware, what "
    "limits it and whether it fits. It turns a model and a request into a list of operations, counts the work of each, "
    "and times it with the figures of the hardware and the profile of a software stack. It works offline; models, "
    "hardware and profiles are part of the program.";

// ---- The pages.

struct ManPage {
  std::string name;  // "llmperf-estimate"
  std::string text;  // roff, for section 1
};

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t start = offset;
    const char32_t c = decode_utf8(text, offset).value_or(U'?');
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c > 0x7e) {
      out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(c));
    } else {
      if (start == 0 && c == '.') out += "\\&";
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

class Page {
 public:
  explicit Page(const std::string& name) {
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    // Without a date: the same sources make the same page.
    line(fmt::format(R"(.TH {} 1 "" "llmperf {}" "llmperf manual")", escaped(title), source_version()));
  }
  void section(std::string_view title) { line(fmt::format(".SH {}", title)); }
  void subsection(std::string_view title) { line(fmt::format(R"(.SS "{}")", escaped(title))); }
  void line(const std::string& roff) { text_ += roff + "\n"; }
  void entry(const std::string& term, const std::string& roff) { line(".TP\n" + term + "\n" + roff); }
  void entries(std::string_view title, std::span<const Entry> all) {
    section(title);
    for (const Entry& e : all) entry(bold(e.term), escaped(e.text) + ".");
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::vector<const Command*> visible(const Command& command) {
  std::vector<const Command*> all;
  for (const Command& inner : command.commands) {
    if (!inner.hidden) all.push_back(&inner);
  }
  return all;
}

// "-m, --model MODEL"; of an argument its name.
std::string term(const Flag& flag) {
  if (flag.is_argument()) return italic(flag.name);
  return (flag.letter.empty() ? "" : bold(flag.letter) + ", ") + bold(flag.name) +
         (flag.takes_value() ? " " + italic(flag.type) : "");
}

std::string names_of(std::vector<std::string> flags) {
  std::sort(flags.begin(), flags.end());
  for (std::string& flag : flags) flag = bold(flag);
  return join(flags, ", ");
}

std::string meaning(const Flag& flag) {
  std::string text = escaped(flag.about);
  if (!flag.about.empty() && !flag.about.ends_with('.') && !flag.about.ends_with("…")) text += ".";
  if (!flag.otherwise.empty()) text += " Default: " + escaped(flag.otherwise) + ".";
  if (flag.must && !flag.is_argument()) text += " Required.";
  if (!flag.needs.empty()) text += " Only with " + names_of(flag.needs) + ".";
  if (!flag.excludes.empty()) text += " Not with " + names_of(flag.excludes) + ".";
  return text;
}

std::string synopsis(const std::string& words, const Command& command) {
  std::string text = bold(words);
  for (const Flag& flag : command.flags) {
    if (!flag.is_argument()) continue;
    const std::string name = italic(flag.name) + (flag.repeats ? " ..." : "");
    text += flag.must ? " " + name : " [" + name + "]";
  }
  for (const Flag& flag : command.flags) {
    if (flag.must && !flag.is_argument()) text += " " + bold(flag.name) + " " + italic(flag.type);
  }
  if (!visible(command).empty()) text += " " + italic("SUBCOMMAND");
  return text + " [" + italic("OPTION") + " ...]";
}

void write_options(Page& page, const Command& command) {
  for (const bool arguments : {true, false}) {
    for (const Flag& flag : command.flags) {
      if (flag.is_argument() == arguments) page.entry(term(flag), meaning(flag));
    }
  }
  page.entry(bold("-h") + ", " + bold("--help"), "Print this help message and exit.");
}

// Exit status, environment, files and the examples of one subcommand or of all, in the usual order.
void write_end(Page& page, std::span<const Command* const> commands) {
  page.entries("EXIT STATUS", kExitStatuses);
  page.entries("ENVIRONMENT", kEnvironment);
  page.entries("FILES", kFiles);
  bool any = false;
  for (const Example& example : kExamples) {
    const bool wanted = std::any_of(commands.begin(), commands.end(),
                                    [&](const Command* command) { return command->name == example.command; });
    if (!wanted) continue;
    if (!any) page.section("EXAMPLES");
    page.line((any ? ".PP\n" : "") + escaped(example.about));
    any = true;
    page.line(".PP\n.in +4n\n.nf\n" + bold(example.words) + "\n.fi\n.in");
  }
}

ManPage program_page(const Command& root) {
  Page page(root.name);
  const std::vector<const Command*> commands = visible(root);
  page.section("NAME");
  page.line(root.name + " \\- performance model of language models on accelerators");
  page.section("SYNOPSIS");
  page.line(synopsis(root.name, root));
  page.section("DESCRIPTION");
  page.line(escaped(kManDescription));
  page.section("SUBCOMMANDS");
  for (const Command* command : commands) page.entry(bold(command->name), escaped(command->about) + ".");
  page.section("OPTIONS");
  write_options(page, root);
  write_end(page, commands);
  page.section("SEE ALSO");
  std::vector<std::string> others;
  for (const Command* command : commands) others.push_back(bold(root.name + "-" + command->name) + "(1)");
  page.line(join(others, ",\n"));
  return {root.name, page.text()};
}

ManPage command_page(const Command& root, const Command& command) {
  const std::string name = root.name + "-" + command.name;
  const std::string words = root.name + " " + command.name;
  const std::vector<const Command*> commands = visible(command);
  Page page(name);
  page.section("NAME");
  page.line(escaped(name) + " \\- " + escaped(command.about));
  page.section("SYNOPSIS");
  if (commands.empty()) page.line(synopsis(words, command));
  for (const Command* inner : commands) {
    page.line((inner == commands.front() ? "" : ".PP\n") + synopsis(words + " " + inner->name, *inner));
  }
  page.section("DESCRIPTION");
  std::string what = command.about;
  what[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(what[0])));
  page.line(escaped(what) + ".");
  page.section("OPTIONS");
  write_options(page, command);
  for (const Command* inner : commands) {
    page.subsection(words + " " + inner->name);
    page.line(escaped(inner->about) + ".");
    write_options(page, *inner);
  }
  const Command* self = &command;
  write_end(page, {&self, 1});
  page.section("SEE ALSO");
  page.line(bold(root.name) + "(1)");
  return {name, page.text()};
}

struct ManFlags {
  std::string name;
  std::string out;
};

void write_pages(const std::vector<ManPage>& pages, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error::failed(fmt::format("cannot write {}: {}", folder, error.message()));
  for (const ManPage& page : pages) {
    WrittenFile((std::filesystem::path(folder) / (page.name + ".1")).string()).commit(page.text);
  }
}

int man_action(const ManFlags& flags, const Context&) {
  Command root = all_commands();
  for (Command& command : root.described().commands) {
    for (Command& inner : command.described().commands) inner.described();
  }
  std::vector<ManPage> pages = {program_page(root)};
  for (const Command* command : visible(root)) pages.push_back(command_page(root, *command));
  if (!flags.out.empty()) {
    if (!flags.name.empty()) throw Error::bad_input("--out writes all pages", "leave out " + quote(flags.name));
    write_pages(pages, flags.out);
    return kExitDone;
  }
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    names.push_back(page.name == root.name ? page.name : page.name.substr(root.name.size() + 1));
    if (names.back() != (flags.name.empty() ? root.name : flags.name)) continue;
    write_stdout(page.text);
    return kExitDone;
  }
  throw Error::bad_input("there is no manual page of " + quote(flags.name), name_hint(flags.name, names));
}

}  // namespace

void describe_man(Command& command) {
  ManFlags& flags = command.runs(man_action);
  command.add("SUBCOMMAND", flags.name, "", "whose page [the program's]");
  command.add("-o,--out", flags.out, "DIR", "write all pages into this folder instead");
}

}  // namespace llmperf::cli
