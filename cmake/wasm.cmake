# The engine of pages (bindings/wasm): what computes, as WebAssembly, built by emscripten in the build folder as a project
# of its own. Without emscripten the build succeeds all the same, and pages say what to install.
# LLMPERF_ENGINE_FOLDER has engine.js, engine.wasm and engine.wasm.xz, which are LLMPERF_ENGINE_FILES, or the text `failed`.
option(LLMPERF_EXPLORER "What computes as WebAssembly, for pages that answer themselves (needs emscripten)" ON)
set(LLMPERF_ENGINE_FOLDER "")
set(LLMPERF_ENGINE_FILES "")
if(LLMPERF_EXPLORER)
  find_program(LLMPERF_EMCC emcc DOC "emscripten's compiler")
  find_program(LLMPERF_EMCMAKE emcmake DOC "emscripten's way to configure a project")
  set(LLMPERF_ENGINE_FOLDER ${PROJECT_BINARY_DIR}/engine)
endif()

function(llmperf_build_engine)
  if(NOT LLMPERF_EXPLORER)
    return()
  endif()
  set(folder ${LLMPERF_ENGINE_FOLDER})
  set(missing "")
  if(CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(missing "this llmperf was built without the engine of pages, which is not made where programs are cross-compiled or sanitized")
  elseif(NOT LLMPERF_EMCC OR NOT LLMPERF_EMCMAKE)
    set(missing "emscripten was not there when llmperf was built: apt-get install emscripten")
  endif()
  if(missing)
    file(MAKE_DIRECTORY ${folder})
    file(CONFIGURE OUTPUT ${folder}/failed CONTENT "${missing}" @ONLY)  # written when it is another text
    return()
  endif()
  file(REMOVE ${folder}/failed)

  set(source ${PROJECT_SOURCE_DIR}/bindings/wasm)
  get_target_property(json nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
  get_target_property(fmt fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp ${PROJECT_SOURCE_DIR}/src/*.h
    ${PROJECT_SOURCE_DIR}/bindings/c/*.cpp ${PROJECT_SOURCE_DIR}/bindings/c/*.h ${source}/*)
  list(FILTER sources EXCLUDE REGEX "/src/(cli|report|replay|import|measure)/")
  set(files ${folder}/engine.js ${folder}/engine.wasm ${folder}/engine.wasm.xz)
  set(script ${PROJECT_SOURCE_DIR}/cmake/build_engine.cmake)
  add_custom_command(OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DFOLDER=${folder} -DEMBED=$<TARGET_FILE:llmperf_embed_data>
      -DEMCMAKE=${LLMPERF_EMCMAKE} "-DGENERATOR=${CMAKE_GENERATOR}" -DMAKE=${CMAKE_MAKE_PROGRAM}
      "-DHEADERS=${json};${fmt};/usr/include" -DVERSION=${PROJECT_VERSION} -P ${script}
    DEPENDS llmperf_embed_data ${LLMPERF_DATA_FILES} ${sources} ${script}
    COMMENT "Compiling the engine of pages to WebAssembly" VERBATIM)
  add_custom_target(llmperf_engine ALL DEPENDS ${files})
  set(LLMPERF_ENGINE_FILES ${files} PARENT_SCOPE)
endfunction()
llmperf_build_engine()
