# Writes OUTPUT: a C++ file that defines FUNCTION, declared in HEADER in namespace llmperf::report, which returns the text of INPUT.
cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated.
#include \"${HEADER}\"

namespace llmperf::report {

std::string_view ${FUNCTION}() { return R\"embedded(${text})embedded\"; }

}  // namespace llmperf::report
")
