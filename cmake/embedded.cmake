# Sources that the build writes (and cmake/web.cmake): commands of this folder, as one of src would hold up every object of the library that
# has its source, and of those that link it. So only the object of that source waits for it.

# models/, hardware/, programs/ and scenarios/ become string constants, so that the binary needs no files at run time.
file(GLOB data CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.yaml ${PROJECT_SOURCE_DIR}/hardware/devices/*.yaml
  ${PROJECT_SOURCE_DIR}/hardware/runtimes/*.yaml ${PROJECT_SOURCE_DIR}/hardware/engines/*.yaml
  ${PROJECT_SOURCE_DIR}/hardware/measurements/*.csv ${PROJECT_SOURCE_DIR}/hardware/traces/*.csv
  ${PROJECT_SOURCE_DIR}/programs/*.yaml ${PROJECT_SOURCE_DIR}/scenarios/*.yaml)
set(LLMPERF_DATA_SOURCE ${PROJECT_BINARY_DIR}/embedded/data.cpp)
add_custom_command(OUTPUT ${LLMPERF_DATA_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${LLMPERF_DATA_SOURCE} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${data} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake COMMENT "Embedding models and devices")
add_custom_target(llmperf_data DEPENDS ${LLMPERF_DATA_SOURCE})

# What the HTML report calls things.
set(LLMPERF_LABELS_SOURCE ${PROJECT_BINARY_DIR}/embedded/labels.cpp)
add_custom_command(OUTPUT ${LLMPERF_LABELS_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/reports/labels.csv -DOUTPUT=${LLMPERF_LABELS_SOURCE} -DFUNCTION=labels_csv
    -DHEADER=report/html/labels.h -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/reports/labels.csv ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake COMMENT "Embedding labels")
add_custom_target(llmperf_labels DEPENDS ${LLMPERF_LABELS_SOURCE})
