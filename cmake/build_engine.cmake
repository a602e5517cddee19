# Writes FOLDER/engine.js, engine.wasm and engine.wasm.xz: the project SOURCE (bindings/wasm) built with emscripten in
# FOLDER/build. EMBED writes the data; HEADERS: folders of which one has fmt and one nlohmann.
cmake_minimum_required(VERSION 3.25)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}); -DLLMPERF_EXPLORER=OFF builds without the engine of pages\n${said}")
  endif()
endfunction()

# Headers of ours alone: all of /usr/include would stand before emscripten's C library.
set(headers ${FOLDER}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(library fmt nlohmann)
  find_path(found ${library} PATHS ${HEADERS} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(CREATE_LINK ${found}/${library} ${headers}/${library} SYMBOLIC)
  unset(found)
endforeach()
file(MAKE_DIRECTORY ${FOLDER})
cmake_path(SET root NORMALIZE ${SOURCE}/../..)
run("writing the engine's data" ${EMBED} ${FOLDER}/embedded.new ${root} engine)
file(COPY_FILE ${FOLDER}/embedded.new ${FOLDER}/embedded.cpp ONLY_IF_DIFFERENT)

# Debian's emscripten needs node's packages of Debian, which a node from elsewhere does not look for.
set(ENV{NODE_PATH} "/usr/share/nodejs:$ENV{NODE_PATH}")
foreach(variable CXXFLAGS CFLAGS CPPFLAGS LDFLAGS CXX CC)  # of the program's compiler
  unset(ENV{${variable}})
endforeach()
run("configuring the engine" ${EMCMAKE} ${CMAKE_COMMAND} -G ${GENERATOR} -DCMAKE_MAKE_PROGRAM=${MAKE} -S ${SOURCE}
  -B ${FOLDER}/build -DCMAKE_BUILD_TYPE=None -DLLMPERF_EMBEDDED=${FOLDER}/embedded.cpp -DLLMPERF_HEADERS=${headers}
  -DLLMPERF_VERSION=${VERSION})
cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
run("compiling the engine" ${CMAKE_COMMAND} --build ${FOLDER}/build --parallel ${cores})
foreach(name engine.js engine.wasm)
  file(COPY_FILE ${FOLDER}/build/${name} ${FOLDER}/${name})
endforeach()
# A quarter smaller than gzip has it: a page carries it as text. By emscripten's Python, since CMake cannot say that what is
# packed is text and code without alignment (lc, pb), which is half a percent.
set(pack "import lzma, sys
whole = open(sys.argv[1], 'rb').read()
kind = [{'id': lzma.FILTER_LZMA2, 'preset': 9 | lzma.PRESET_EXTREME, 'lc': 4, 'lp': 0, 'pb': 0}]
open(sys.argv[2], 'wb').write(lzma.compress(whole, lzma.FORMAT_XZ, lzma.CHECK_CRC32, None, kind))")
run("packing the engine" python3 -c "${pack}" ${FOLDER}/engine.wasm ${FOLDER}/engine.wasm.xz)
