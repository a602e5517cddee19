#include <CLI/CLI.hpp>

#include "cli/candidates.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/completion_scripts.h"

namespace llmperf::cli {

void add_completion(CLI::App& root, Action& action) {
  CLI::App* command = root.add_subcommand("completion", "script that completes llmperf's command lines in a shell");
  command->require_subcommand(1);
  for (const CompletionScript& script : completion_scripts()) {
    CLI::App* shell = command->add_subcommand(std::string(script.shell), std::string(script.about));
    shell->callback([&script, &action] {
      action = [&script] {
        write_stdout(std::string(script.text));
        return kExitDone;
      };
    });
  }
  // What the scripts ask; of no use to a person, so not in the help.
  CLI::App* asked = command->add_subcommand("candidates", "what may stand in place of the last of these words");
  asked->group("");
  auto words = std::make_shared<std::vector<std::string>>();
  asked->add_option("words", *words, "behind --: the command line without the program's name");
  asked->callback([words, &action] {
    action = [words] {
      CLI::App fresh;
      Action none;
      add_commands(fresh, none);
      write_stdout(to_text(candidates(fresh, *words)));
      return kExitDone;
    };
  });
}

}  // namespace llmperf::cli
