# Writes OUTPUT: a C++ file that defines embedded_files() with the text of every data file, sorted by kind and name.
cmake_minimum_required(VERSION 3.25)
set(rows "")
foreach(pair "model|models" "device|hardware/devices")
  string(REPLACE "|" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 folder)
  file(GLOB names RELATIVE ${ROOT}/${folder} ${ROOT}/${folder}/*.yaml)
  list(TRANSFORM names REPLACE "\\.yaml$" "")
  list(SORT names COMPARE STRING)
  foreach(name ${names})
    file(READ ${ROOT}/${folder}/${name}.yaml text)
    string(APPEND rows "    {Kind::${kind}, \"${name}\", \"${folder}/${name}.yaml\", R\"embedded(${text})embedded\"},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "// Generated from models/ and hardware/devices/.
#include \"descriptor/catalog.h\"

namespace llmperf::descriptor {
namespace {
constexpr EmbeddedFile kFiles[] = {
${rows}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

}  // namespace llmperf::descriptor
")
