# Has the built program write its manual pages and completion scripts: cmake -DPROGRAM=… -DOUT=FOLDER -P write_pages.cmake
file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT})
execute_process(COMMAND ${PROGRAM} man --out ${OUT}/man1 COMMAND_ERROR_IS_FATAL ANY)
foreach(shell bash zsh fish)
  execute_process(COMMAND ${PROGRAM} completion ${shell} OUTPUT_FILE ${OUT}/llmperf.${shell} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
