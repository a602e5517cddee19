# The front end of the HTML reports (reports/web): bundled by esbuild from npm's packages in the build folder, so that
# nothing built stands in the source tree, and embedded in the binary. Without npm, or when it cannot fetch, the build
# succeeds all the same: reports then have their tables and say why there are no charts.
option(LLMPERF_CHARTS "Charts in HTML reports (needs npm)" ON)
if(LLMPERF_CHARTS)
  find_program(LLMPERF_NPM npm DOC "npm, which fetches the packages of reports/web")
  find_program(LLMPERF_NODE node DOC "node, which turns the engine of pages into text")
endif()
set(LLMPERF_WEB_FOLDER ${PROJECT_BINARY_DIR}/web)  # npm's packages and the bundle
# What failed is tried again by the next configuration, not by every build.
if(EXISTS ${LLMPERF_WEB_FOLDER}/failed)
  file(REMOVE ${LLMPERF_WEB_FOLDER}/failed ${LLMPERF_WEB_FOLDER}/html_assets.cpp)
endif()

# Writes LLMPERF_WEB_SOURCE.
set(LLMPERF_WEB_SOURCE ${LLMPERF_WEB_FOLDER}/html_assets.cpp)
function(llmperf_embed_web)
  set(root ${PROJECT_SOURCE_DIR}/reports/web)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/src/*.js)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_web.cmake)
  set(npm "$<$<BOOL:${LLMPERF_CHARTS}>:${LLMPERF_NPM}>")
  set(styles ${root}/report.css ${root}/scripted.css ${root}/explorer.css ${root}/catalog.cjs)
  add_custom_command(OUTPUT ${LLMPERF_WEB_SOURCE}
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DFOLDER=${LLMPERF_WEB_FOLDER} -DOUTPUT=${LLMPERF_WEB_SOURCE} "-DNPM=${npm}"
      -DCHARTS=${LLMPERF_CHARTS} -DTESTS=${LLMPERF_TESTS} "-DNODE=${LLMPERF_NODE}" "-DENGINE=${LLMPERF_ENGINE_FOLDER}"
      -P ${script}
    DEPENDS ${sources} ${styles} ${root}/package.json ${root}/package-lock.json ${script} ${LLMPERF_ENGINE_FILES}
    COMMENT "Bundling the front end of HTML reports" VERBATIM)
  add_custom_target(llmperf_web DEPENDS ${LLMPERF_WEB_SOURCE})
endfunction()
llmperf_embed_web()
