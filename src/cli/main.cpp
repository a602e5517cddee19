#include "cli/command_line.h"

int main(int argc, char** argv) { return llmperf::cli::run(argc, argv); }
