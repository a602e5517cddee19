# What `cmake --install` puts where, in two components: the program, with the C interface beside it, and the library for
# other programs. scripts/package.sh makes packages of them.
include(CMakePackageConfigHelpers)

# ---- The program, with its completions and the manual pages, which it writes itself.
install(TARGETS llmperf COMPONENT program)
if(NOT CMAKE_CROSSCOMPILING)
  set(written ${PROJECT_BINARY_DIR}/written)
  # Written by the build, so that installing writes nothing there.
  add_custom_command(OUTPUT ${written}.stamp
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:llmperf> -DOUT=${written} -P ${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${written}.stamp
    DEPENDS llmperf ${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake COMMENT "Writing manual pages" VERBATIM)
  add_custom_target(llmperf_pages ALL DEPENDS ${written}.stamp)
  install(DIRECTORY ${written}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${written}/explorer.html DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program OPTIONAL)
endif()
set(data ${CMAKE_INSTALL_DATADIR})
set(completion ${PROJECT_SOURCE_DIR}/src/cli/completion)
install(FILES ${completion}/llmperf.bash DESTINATION ${data}/bash-completion/completions RENAME llmperf COMPONENT program)
install(FILES ${completion}/llmperf.zsh DESTINATION ${data}/zsh/site-functions RENAME _llmperf COMPONENT program)
install(FILES ${completion}/llmperf.fish DESTINATION ${data}/fish/vendor_completions.d COMPONENT program)
if(TARGET llmperf_c)
  install(TARGETS llmperf_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program)
  install(FILES bindings/c/llmperf.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT program)
  install(DIRECTORY examples/c DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT program)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# ---- The library: one target llmperf::llmperf over a static library per folder.
get_property(libraries GLOBAL PROPERTY llmperf_libraries)
install(TARGETS llmperf_library ${libraries} EXPORT llmperf ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/llmperf)
install(EXPORT llmperf NAMESPACE llmperf:: FILE llmperf-targets.cmake DESTINATION ${package} COMPONENT library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/llmperf-config.cmake.in ${PROJECT_BINARY_DIR}/llmperf-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/llmperf-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/llmperf-config.cmake ${PROJECT_BINARY_DIR}/llmperf-config-version.cmake
  DESTINATION ${package} COMPONENT library)

# Headers, but for those that include a library's (JSON, mostly), themselves or through another: they are for our own files.
set(source ${PROJECT_SOURCE_DIR}/src)
file(GLOB_RECURSE headers RELATIVE ${source} CONFIGURE_DEPENDS ${source}/*.h)
list(FILTER headers EXCLUDE REGEX "^cli/|/check/")
set(public ${headers})
set(before "")
while(NOT "${public}" STREQUAL "${before}")
  set(before ${public})
  foreach(header IN LISTS before)
    file(STRINGS ${source}/${header} includes REGEX "^#include")
    foreach(include IN LISTS includes)
      # <vector> and <sys/stat.h> are of the system, <fmt/format.h> is of a library.
      if(include MATCHES "<(nlohmann|fmt|CLI|Eigen|yaml-cpp)/|<dnnl" OR (include MATCHES "\"(.+)\"" AND NOT CMAKE_MATCH_1 IN_LIST before))
        list(REMOVE_ITEM public ${header})
      endif()
    endforeach()
  endforeach()
endwhile()
foreach(header IN LISTS public)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${source}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/llmperf/${folder} COMPONENT library)
endforeach()
install(DIRECTORY examples/estimate DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT library)
