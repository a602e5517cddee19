# What `cmake --install` and `cpack` put where, in two components: the program, and the library for other programs.
include(CMakePackageConfigHelpers)

# ---- The program, with its manual pages and completions, which it writes itself.
install(TARGETS llmperf COMPONENT program)
if(NOT CMAKE_CROSSCOMPILING)
  set(written ${PROJECT_BINARY_DIR}/written)
  # Written by the build, so that installing writes nothing there.
  add_custom_command(OUTPUT ${written}.stamp
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:llmperf> -DOUT=${written} -P ${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${written}.stamp
    DEPENDS llmperf ${PROJECT_SOURCE_DIR}/cmake/write_pages.cmake COMMENT "Writing manual pages and completions" VERBATIM)
  add_custom_target(llmperf_pages ALL DEPENDS ${written}.stamp)
  install(DIRECTORY ${written}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  set(data ${CMAKE_INSTALL_DATADIR})
  install(FILES ${written}/llmperf.bash DESTINATION ${data}/bash-completion/completions RENAME llmperf COMPONENT program)
  install(FILES ${written}/llmperf.zsh DESTINATION ${data}/zsh/site-functions RENAME _llmperf COMPONENT program)
  install(FILES ${written}/llmperf.fish DESTINATION ${data}/fish/vendor_completions.d COMPONENT program)
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

# ---- Debian packages of both: llmperf and llmperf-dev.
set(LLMPERF_MAINTAINER "llmperf developers <noreply@llmperf.invalid>" CACHE STRING "Maintainer named by packages")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${LLMPERF_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
  WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_policy.cmake)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME llmperf)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libopenblas0, libdnnl2")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "llmperf says how fast a language model (or a diffusion transformer for
video) runs on a piece of hardware, what limits it and whether it fits, before
anything is bought or deployed. It works offline and answers in milliseconds.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME llmperf-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libfmt-dev, libyaml-cpp-dev")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Headers, static libraries and a CMake package of llmperf, for programs that
make estimates themselves.")
include(CPack)
