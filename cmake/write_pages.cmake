# Has the built program write its manual pages and, where it has one, the explorer's page:
# cmake -DPROGRAM=… -DOUT=FOLDER -P write_pages.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
execute_process(COMMAND ${PROGRAM} man --out ${OUT}/man1 COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
if(help MATCHES "\n  explore ")
  execute_process(COMMAND ${PROGRAM} explore -o ${OUT}/explorer.html RESULT_VARIABLE status ERROR_VARIABLE why)
  if(NOT status EQUAL 0)
    message(NOTICE "${why}")  # built without it
  endif()
endif()
