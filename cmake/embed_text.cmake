# Writes OUTPUT: a C++ file that defines FUNCTION in namespace llmperf::FOLDER, which returns the text of INPUT.
cmake_minimum_required(VERSION 3.25)
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Generated.
#include <string_view>

namespace llmperf::${FOLDER} {

std::string_view ${FUNCTION}();
std::string_view ${FUNCTION}() { return R\"embedded(${text})embedded\"; }

}  // namespace llmperf::${FOLDER}
")
