namespace llmperf::cli {
int run(int argc, const char* const* argv);  // of cli/command.h, which takes longer to read than all of this
}

int main(int argc, char** argv) { return llmperf::cli::run(argc, argv); }
