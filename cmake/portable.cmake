# A portable program needs nothing of the machine it runs on but glibc and libgcc: fmt, yaml-cpp and libstdc++ are linked in.
# (libgcc stays shared: GCC 12's static unwinder asks for a function of glibc 2.35.)
option(LLMPERF_PORTABLE "Link fmt, yaml-cpp and libstdc++ statically where that is possible" OFF)

# What of ours links, and what an installed library of ours wants to be linked with it.
set(LLMPERF_FMT fmt::fmt)
set(LLMPERF_YAML yaml-cpp)
set(LLMPERF_NEEDS_FMT ON)

if(LLMPERF_PORTABLE)
  # Debian has fmt as a shared library only. Its headers alone cost a tenth more of every build, so that its one source, which
  # is a header too, is compiled by src/base once. What that takes is known of fmt 9; newer ones are used as headers.
  if(fmt_VERSION VERSION_LESS 10)
    add_library(llmperf_fmt INTERFACE)  # fmt::fmt without its library
    get_target_property(include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
    get_target_property(definitions fmt::fmt INTERFACE_COMPILE_DEFINITIONS)
    target_include_directories(llmperf_fmt SYSTEM INTERFACE ${include})
    target_compile_definitions(llmperf_fmt INTERFACE ${definitions})
    set(LLMPERF_FMT_SOURCE base/linked/fmt.cpp)
    set(LLMPERF_FMT $<BUILD_INTERFACE:llmperf_fmt>)
  else()
    set(LLMPERF_FMT $<BUILD_INTERFACE:fmt::fmt-header-only>)
  endif()
  set(LLMPERF_NEEDS_FMT OFF)

  find_library(LLMPERF_YAML_ARCHIVE libyaml-cpp.a)
  if(LLMPERF_YAML_ARCHIVE)
    add_library(llmperf_yaml INTERFACE)
    target_include_directories(llmperf_yaml SYSTEM INTERFACE ${YAML_CPP_INCLUDE_DIR})
    target_link_libraries(llmperf_yaml INTERFACE ${LLMPERF_YAML_ARCHIVE})
    # Other programs find theirs.
    set(LLMPERF_YAML $<BUILD_INTERFACE:llmperf_yaml> $<INSTALL_INTERFACE:yaml-cpp>)
  else()
    message(NOTICE "There is no libyaml-cpp.a: the program will need the shared one")
  endif()
endif()

# Of a program or shared library of ours.
function(llmperf_portable target)
  if(LLMPERF_PORTABLE)
    # What of libstdc++ nothing calls is left out: it asks for a function of glibc 2.36.
    target_link_options(${target} PRIVATE -static-libstdc++ LINKER:--gc-sections)
  endif()
endfunction()
