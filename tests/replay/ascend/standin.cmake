# Stand-ins for CANN's shared libraries: compiled against stand-in headers, never installed. Three installations of them
# are put under <build>/tests/replay/ascend: `standin` (all), `split` (ops in several libraries, without collectives) and
# `reduced` (a CANN that lacks some ops), and `broken` (a runtime library without functions).
set(standin ${CMAKE_CURRENT_SOURCE_DIR}/replay/ascend/standin)
set(standin_home ${CMAKE_CURRENT_BINARY_DIR}/replay/ascend)
set(standin_includes ${standin}/include ${standin_home}/include)

# The headers of ops, each by itself as CANN has them.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${standin}/aclnnop.h)
file(READ ${standin}/aclnnop.h declarations)
string(REPLACE ";" "@semicolon@" declarations "${declarations}")
string(REGEX MATCHALL "// header [a-z0-9_.]+\n[^/]+" headers "${declarations}")
foreach(header IN LISTS headers)
  string(REGEX MATCH "// header ([a-z0-9_.]+)\n(.+)" header "${header}")
  set(name ${CMAKE_MATCH_1})
  string(REPLACE "@semicolon@" ";" declared "${CMAKE_MATCH_2}")
  file(CONFIGURE OUTPUT ${standin_home}/include/aclnnop/${name} @ONLY
    CONTENT "#pragma once\n#include \"aclnn/aclnn_base.h\"\nextern \"C\" {\n@declared@}\n")
endforeach()

function(standin_library target name home)
  add_library(${target} SHARED ${ARGN})
  target_include_directories(${target} PRIVATE ${standin} SYSTEM ${standin_includes})
  # CANN's enums are other types than ours, of the same size: what the function check of UBSan calls another function.
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_link_libraries(${target} PRIVATE Threads::Threads)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${standin_home}/${home}/lib64)
endfunction()

standin_library(standin_ascendcl ascendcl standin ${standin}/core.cpp ${standin}/ascendcl.cpp ${standin}/graphs.cpp)
standin_library(standin_nnopbase nnopbase standin ${standin}/nnopbase.cpp)
standin_library(standin_hccl hccl standin ${standin}/hccl.cpp ${standin}/kernel.cpp)
standin_library(standin_opapi opapi standin ${standin}/opapi_matmul.cpp ${standin}/opapi_attention.cpp
  ${standin}/opapi_vector.cpp ${standin}/opapi_moe.cpp)
standin_library(standin_opapi_nn opapi_nn split ${standin}/opapi_matmul.cpp)
standin_library(standin_opapi_math opapi_math split ${standin}/opapi_vector.cpp)
standin_library(standin_opapi_transformer opapi_transformer split ${standin}/opapi_attention.cpp
  ${standin}/opapi_moe.cpp)
standin_library(standin_opapi_reduced opapi reduced ${standin}/opapi_matmul.cpp)
standin_library(standin_broken ascendcl broken ${standin}/broken.cpp)
target_link_libraries(standin_nnopbase PRIVATE standin_ascendcl)
target_link_libraries(standin_hccl PRIVATE standin_nnopbase standin_ascendcl)
foreach(ops standin_opapi standin_opapi_nn standin_opapi_math standin_opapi_transformer standin_opapi_reduced)
  target_link_libraries(${ops} PRIVATE standin_hccl standin_nnopbase standin_ascendcl)
endforeach()

file(WRITE ${standin_home}/standin/ascend_toolkit_install.info "package_name=Ascend-cann-toolkit\nversion=8.1.RC1\n")

# One runtime for all of them: the same files, so that they are loaded once.
add_custom_target(standin_homes ALL
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_ascendcl> ${standin_home}/split/lib64/libascendcl.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_nnopbase> ${standin_home}/split/lib64/libnnopbase.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_ascendcl> ${standin_home}/reduced/lib64/libascendcl.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_nnopbase> ${standin_home}/reduced/lib64/libnnopbase.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_nnopbase> ${standin_home}/broken/lib64/libnnopbase.so
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:standin_opapi> ${standin_home}/broken/lib64/libopapi.so
  DEPENDS standin_opapi standin_opapi_nn standin_opapi_math standin_opapi_transformer standin_opapi_reduced
    standin_hccl standin_broken)

add_dependencies(test_replay standin_homes)
target_include_directories(test_replay PRIVATE ${standin})
target_compile_definitions(test_replay PRIVATE LLMPERF_STANDIN_HOME="${standin_home}")
target_link_libraries(test_replay PRIVATE ${CMAKE_DL_LIBS})
# What is loaded once is found again: without CANN is another process.
llmperf_add_test(replay_ascend_without_cann $<TARGET_FILE:test_replay> "[.without_cann]")
llmperf_add_test(replay_ascend_reduced_cann $<TARGET_FILE:test_replay> "[.reduced_cann]")
llmperf_add_test(replay_ascend_broken_cann $<TARGET_FILE:test_replay> "[.broken_cann]")

# The comparison of our declarations with CANN's headers (option LLMPERF_CANN): it accepts the stand-in's, and refuses
# headers with one other argument.
llmperf_cann_ops(${standin_home})
set(cann_check ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -DLLMPERF_CANN_CHECK -I${PROJECT_SOURCE_DIR}/src
  -I${standin_home})
list(TRANSFORM standin_includes PREPEND -I OUTPUT_VARIABLE cann_includes)
set(cann_check_file ${PROJECT_SOURCE_DIR}/src/replay/ascend/check/cann_check.cpp)
add_test(NAME cann_declarations COMMAND ${cann_check} ${cann_includes} ${cann_check_file})
# A header like the stand-in's, with `from` in it replaced.
function(cann_declarations_refuse name header from to)
  foreach(folder IN LISTS standin_includes)
    if(EXISTS ${folder}/${header})
      file(READ ${folder}/${header} text)
    endif()
  endforeach()
  string(REGEX REPLACE "${from}" "${to}" changed "${text}")
  if(changed STREQUAL text)
    message(FATAL_ERROR "${header} has no ${from}")
  endif()
  file(WRITE ${standin_home}/wrong/${name}/${header} "${changed}")
  add_test(NAME cann_declarations_refuse_${name}
    COMMAND ${cann_check} -I${standin_home}/wrong/${name} ${cann_includes} ${cann_check_file})
  set_tests_properties(cann_declarations_refuse_${name} PROPERTIES
    PASS_REGULAR_EXPRESSION "CANN declares|static assertion|static_assert")
endfunction()
cann_declarations_refuse(aclrt acl/acl_rt.h "size_t size, aclrtMem" "int size, aclrtMem")
cann_declarations_refuse(aclnn aclnnop/aclnn_matmul.h "int8_t cubeMathType" "int cubeMathType")
cann_declarations_refuse(grouped aclnnop/aclnn_grouped_matmul_v4.h "int64_t splitItem," "int64_t splitItem, const aclIntArray* tuning,")
cann_declarations_refuse(value acl/acl_base.h "ACL_BF16 = 27" "ACL_BF16 = 28")
cann_declarations_refuse(hccl hccl/hccl.h "char[*] commName" "int commName")
