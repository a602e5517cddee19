# Writes OUTPUT: a C++ file that defines html_assets() and explorer_assets() with the styles and the bundled scripts of
# ROOT (reports/web). FOLDER takes npm's packages. ENGINE: a folder with engine.js, engine.wasm and engine.wasm.xz, or with `failed`, which
# says why there are none; empty where they were not asked for. Whatever is missing, OUTPUT is written and says so.
cmake_minimum_required(VERSION 3.25)

# Runs a command in FOLDER; its last words go into `error` when it fails.
function(run error)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE status OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  if(status EQUAL 0)
    set(${error} "" PARENT_SCOPE)
  else()
    message(NOTICE "${said}")
    list(GET ARGN 0 program)
    set(${error} "${program} failed (${status})" PARENT_SCOPE)
  endif()
endfunction()

# The packages as the lock file names them, unless FOLDER has them already.
function(install_packages error)
  file(SHA256 ${ROOT}/package-lock.json wanted)
  string(APPEND wanted " tests=${TESTS}")
  set(stamp ${FOLDER}/installed)
  if(EXISTS ${stamp})
    file(READ ${stamp} have)
  endif()
  if(have STREQUAL wanted)
    set(${error} "" PARENT_SCOPE)
    return()
  endif()
  file(REMOVE ${stamp})
  file(COPY ${ROOT}/package.json ${ROOT}/package-lock.json DESTINATION ${FOLDER})
  set(options --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-retry-mintimeout=1000)
  if(NOT TESTS)
    list(APPEND options --omit=dev)  # the browser's driver
  endif()
  run(failed ${NPM} ci ${options})
  if(NOT failed)
    file(WRITE ${stamp} "${wanted}")
  else()
    set(failed "npm could not fetch the packages of reports/web when llmperf was built")
  endif()
  set(${error} "${failed}" PARENT_SCOPE)
endfunction()

# The licences of what is bundled want to travel with it.
function(write_banner)
  file(READ ${FOLDER}/node_modules/echarts/NOTICE echarts)
  file(READ ${FOLDER}/node_modules/zrender/LICENSE zrender)
  file(READ ${FOLDER}/node_modules/yaml/LICENSE yaml)
  file(WRITE ${FOLDER}/banner.js "/*!\n${echarts}\nLicensed under the Apache License, "
    "Version 2.0: www.apache.org/licenses/LICENSE-2.0\n\nzrender:\n${zrender}*/\n")
  file(WRITE ${FOLDER}/explorer_banner.js "/*!\nyaml:\n${yaml}\n"
    "xz-decompress (c) Tim Perry, after xzwasm (c) Steve Sanderson, with walloc (c) Igalia, S.L.: MIT. It contains "
    "xz-embedded by Lasse Collin and Igor Pavlov: public domain.\n*/\n")
endfunction()

# Our own mistake does not pass: a bundle is made, or nothing is built.
function(bundle_script source name)
  run(failed ${CMAKE_COMMAND} -E env NODE_PATH=${FOLDER}/node_modules ${FOLDER}/node_modules/.bin/esbuild
    ${ROOT}/${source} --bundle --minify --format=iife --target=es2020 --charset=ascii --legal-comments=none
    "--define:process.env.NODE_ENV=\"production\"" --log-level=warning --outfile=${FOLDER}/${name})
  if(failed)
    message(FATAL_ERROR "reports/web does not bundle: ${failed}")
  endif()
endfunction()

# The text of scripts, one behind the other. Inside a script element either would end or escape it; esbuild writes
# <\/script.
function(read_scripts text)
  set(all "")
  foreach(path ${ARGN})
    file(READ ${path} one)
    string(APPEND all "${one}")
  endforeach()
  foreach(mark "</script" "<!--")
    string(FIND "${all}" "${mark}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${ARGN} holds ${mark}")
    endif()
  endforeach()
  set(${text} "${all}" PARENT_SCOPE)
endfunction()

# The reason why there is no bundle in `error`, empty when there is one.
function(bundle error)
  if(NOT CHARTS)
    set(${error} "this llmperf was built without charts (LLMPERF_CHARTS=OFF)" PARENT_SCOPE)
    return()
  elseif(NOT NPM)
    set(${error} "this llmperf was built without npm" PARENT_SCOPE)
    return()
  endif()
  install_packages(failed)
  set(esbuild ${FOLDER}/node_modules/.bin/esbuild)
  if(NOT failed)
    # Its program is an optional package: npm succeeds without it.
    run(failed ${esbuild} --version)
    if(failed)
      file(REMOVE ${FOLDER}/installed)
      set(failed "npm could not fetch esbuild's program for this machine when llmperf was built")
    endif()
  endif()
  if(NOT failed)
    write_banner()
    bundle_script(src/main.js bundle.js)
    bundle_script(src/explorer/main.js explorer.js)
    bundle_script(src/explorer/engine.js engine.js)
  endif()
  set(${error} "${failed}" PARENT_SCOPE)
endfunction()

# A page carries text.
function(base64 text path)
  execute_process(COMMAND ${NODE} -e "process.stdout.write(require('fs').readFileSync(process.argv[1]).toString('base64'))"
    ${path} OUTPUT_VARIABLE encoded RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${path} cannot be read by node (${status})")
  endif()
  set(${text} "${encoded}" PARENT_SCOPE)
endfunction()

# What the explorer offers, as JSON.
function(list_catalog text)
  execute_process(COMMAND ${NODE} ${ROOT}/catalog.cjs ${ENGINE} OUTPUT_VARIABLE catalog RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the engine in ${ENGINE} does not answer (${status})")
  endif()
  set(${text} "${catalog}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${FOLDER})
file(READ ${ROOT}/report.css style)
foreach(part code explorer_style engine packed catalog explorer)
  set(${part} "")
endforeach()
bundle(missing)
if(missing)
  message(NOTICE "HTML reports will have no charts: ${missing}")
  if(CHARTS)
    file(WRITE ${FOLDER}/failed "${missing}")
  endif()
else()
  read_scripts(code ${FOLDER}/banner.js ${FOLDER}/bundle.js)
  file(READ ${ROOT}/scripted.css scripted)
  string(APPEND style "${scripted}")
endif()

# Of the explorer all, or nothing.
set(explorer_missing "${missing}")
if(NOT explorer_missing)
  if(NOT ENGINE)
    set(explorer_missing "this llmperf was built without the engine for pages (LLMPERF_EXPLORER=OFF)")
  elseif(EXISTS ${ENGINE}/failed)
    file(READ ${ENGINE}/failed explorer_missing)
    string(STRIP "${explorer_missing}" explorer_missing)
  endif()
endif()
if(NOT explorer_missing)
  file(READ ${ROOT}/explorer.css explorer_style)
  # emscripten leaves half of its loader as it was written.
  run(failed ${FOLDER}/node_modules/.bin/esbuild ${ENGINE}/engine.js --minify --target=es2020 --charset=ascii
    --log-level=warning --outfile=${FOLDER}/loader.js)
  if(failed)
    message(FATAL_ERROR "the engine's loader is not a script: ${failed}")
  endif()
  read_scripts(engine ${FOLDER}/loader.js ${FOLDER}/engine.js)
  read_scripts(explorer ${FOLDER}/explorer_banner.js ${FOLDER}/explorer.js)
  base64(packed ${ENGINE}/engine.wasm.xz)
  list_catalog(catalog)
endif()
file(WRITE ${OUTPUT} "// Generated from reports/web.
#include \"report/html/assets.h\"

namespace llmperf::report {
namespace {
")
foreach(part style code explorer_style engine packed catalog explorer)
  file(APPEND ${OUTPUT} "constexpr char k_${part}[] = R\"embedded(${${part}})embedded\";\n")
endforeach()
file(APPEND ${OUTPUT} "
template <std::size_t kSize>
constexpr std::string_view view(const char (&text)[kSize]) {
  return {text, kSize - 1};
}
}  // namespace

const HtmlAssets& html_assets() {
  static constexpr HtmlAssets kAssets{view(k_style), view(k_code), \"${missing}\"};
  return kAssets;
}

const ExplorerAssets& explorer_assets() {
  static constexpr ExplorerAssets kAssets{view(k_explorer_style), view(k_engine), view(k_packed),
                                          view(k_catalog), view(k_explorer), \"${explorer_missing}\"};
  return kAssets;
}

}  // namespace llmperf::report
")
