# Writes OUTPUT: a C++ file that defines embedded_files() with the text of every data file, sorted by kind and name.
cmake_minimum_required(VERSION 3.25)
set(rows "")
foreach(pair "model|models|yaml" "device|hardware/devices|yaml" "runtime|hardware/runtimes|yaml" "engine|hardware/engines|yaml"
             "measurements|hardware/measurements|csv" "trace|hardware/traces|csv" "program|programs|yaml" "scenario|scenarios|yaml")
  string(REPLACE "|" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 folder)
  list(GET pair 2 extension)
  file(GLOB names RELATIVE ${ROOT}/${folder} ${ROOT}/${folder}/*.${extension})
  list(TRANSFORM names REPLACE "\\.${extension}$" "")
  list(SORT names COMPARE STRING)
  foreach(name ${names})
    file(READ ${ROOT}/${folder}/${name}.${extension} text)
    string(APPEND rows "    {Kind::${kind}, \"${name}\", \"${folder}/${name}.${extension}\", R\"embedded(${text})embedded\"sv},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT} "// Generated from models/, hardware/, programs/ and scenarios/.
#include \"descriptor/catalog.h\"

namespace llmperf::descriptor {
namespace {
using namespace std::literals;  // sv: lengths without counting, which clang does only so far in a constant
constexpr EmbeddedFile kFiles[] = {
${rows}};
}  // namespace

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

}  // namespace llmperf::descriptor
")
