#include "cli/command.h"

int main(int argc, char** argv) { return llmperf::cli::run(argc, argv); }
