# Writes OUTPUT: a C++ file that defines html_assets() with the style and the bundled script of ROOT (reports/web).
# FOLDER takes npm's packages. Whatever is missing for the script, OUTPUT is written and says so.
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
  file(WRITE ${FOLDER}/banner.js "/*!\n${echarts}\nLicensed under the Apache License, "
    "Version 2.0: www.apache.org/licenses/LICENSE-2.0\n\nzrender:\n${zrender}*/\n")
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
    run(failed ${CMAKE_COMMAND} -E env NODE_PATH=${FOLDER}/node_modules ${esbuild}
      ${ROOT}/src/main.js --bundle --minify --format=iife --target=es2020 --charset=ascii --legal-comments=none
      "--define:process.env.NODE_ENV=\"production\"" --log-level=warning --outfile=${FOLDER}/bundle.js)
    if(failed)
      message(FATAL_ERROR "reports/web does not bundle: ${failed}")  # our own mistake: not to be passed over
    endif()
  endif()
  set(${error} "${failed}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY ${FOLDER})
file(READ ${ROOT}/report.css style)
bundle(missing)
if(missing)
  set(code "")
  message(NOTICE "HTML reports will have no charts: ${missing}")
  if(CHARTS)
    file(WRITE ${FOLDER}/failed "${missing}")
  endif()
else()
  file(READ ${FOLDER}/banner.js banner)
  file(READ ${FOLDER}/bundle.js code)
  string(PREPEND code "${banner}")
  file(READ ${ROOT}/scripted.css scripted)
  string(APPEND style "${scripted}")
  # Inside a script element either would end or escape it; esbuild writes <\/script.
  string(FIND "${code}" "</script" closing)
  string(FIND "${code}" "<!--" comment)
  if(NOT closing EQUAL -1 OR NOT comment EQUAL -1)
    message(FATAL_ERROR "the bundle of reports/web holds </script or <!--")
  endif()
endif()
file(WRITE ${OUTPUT} "// Generated from reports/web.
#include \"report/html/assets.h\"

namespace llmperf::report {
namespace {
constexpr char kStyle[] = R\"embedded(${style})embedded\";
constexpr char kScript[] = R\"embedded(${code})embedded\";
}  // namespace

const HtmlAssets& html_assets() {
  static constexpr HtmlAssets kAssets{{kStyle, sizeof kStyle - 1}, {kScript, sizeof kScript - 1}, \"${missing}\"};
  return kAssets;
}

}  // namespace llmperf::report
")
