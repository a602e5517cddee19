# Sources that the build writes (and cmake/web.cmake): commands of this folder, as one of src would hold up every object of the library that
# has its source, and of those that link it. So only the object of that source waits for it.

# models/, hardware/, programs/ and scenarios/ become constants, so that the binary needs no files at run time.
file(GLOB LLMPERF_DATA_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.yaml ${PROJECT_SOURCE_DIR}/hardware/devices/*.yaml
  ${PROJECT_SOURCE_DIR}/hardware/runtimes/*.yaml ${PROJECT_SOURCE_DIR}/hardware/engines/*.yaml
  ${PROJECT_SOURCE_DIR}/hardware/measurements/*.csv ${PROJECT_SOURCE_DIR}/hardware/traces/*.csv
  ${PROJECT_SOURCE_DIR}/programs/*.yaml ${PROJECT_SOURCE_DIR}/scenarios/*.yaml)
set(LLMPERF_DATA_SOURCE ${PROJECT_BINARY_DIR}/embedded/data.cpp)
add_custom_command(OUTPUT ${LLMPERF_DATA_SOURCE}
  COMMAND llmperf_embed_data ${LLMPERF_DATA_SOURCE} ${PROJECT_SOURCE_DIR}
  DEPENDS llmperf_embed_data ${LLMPERF_DATA_FILES} COMMENT "Embedding models and devices")
add_custom_target(llmperf_data DEPENDS ${LLMPERF_DATA_SOURCE})

# What the HTML report calls things, the scripts of completion and the program of replays: texts that a function returns.
function(llmperf_text name input function folder)
  string(TOLOWER ${name} file)
  set(output ${PROJECT_BINARY_DIR}/embedded/${file}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DFUNCTION=${function} -DFOLDER=${folder} -P ${script}
    DEPENDS ${input} ${script} COMMENT "Embedding ${file}")
  add_custom_target(llmperf_${file} DEPENDS ${output})
  set(LLMPERF_${name}_SOURCE ${output} PARENT_SCOPE)
endfunction()
llmperf_text(TORCH ${PROJECT_SOURCE_DIR}/src/replay/torch/replay.py torch_program replay)
llmperf_text(LABELS ${PROJECT_SOURCE_DIR}/reports/labels.csv labels_csv report)
foreach(shell bash zsh fish)
  llmperf_text(COMPLETION_${shell} ${PROJECT_SOURCE_DIR}/src/cli/completion/llmperf.${shell} ${shell}_script cli)
endforeach()
