# What Debian wants of a package and other installations do not: a copyright file and a changelog of its own form, manual
# pages and changelogs compressed, and completions of packages in a folder of zsh's that is theirs.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where it is set
set(changelog "llmperf (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * CHANGELOG.md says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")

function(add_documents package component)
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
  if(NOT IS_DIRECTORY ${root})
    return()
  endif()
  set(folder ${root}/usr/share/doc/${package})
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/debian/copyright ${folder}/copyright)
  file(REMOVE ${folder}/LICENSE)  # which the copyright file names
  file(WRITE ${folder}/changelog.Debian "${changelog}")
  file(GLOB compressed ${folder}/changelog* ${root}/usr/share/man/man1/*.1)
  if(EXISTS ${folder}/CHANGELOG.md)
    file(RENAME ${folder}/CHANGELOG.md ${folder}/changelog)
    list(APPEND compressed ${folder}/changelog)
  endif()
  execute_process(COMMAND gzip -9nf ${compressed} COMMAND_ERROR_IS_FATAL ANY)
  set(zsh ${root}/usr/share/zsh)
  if(IS_DIRECTORY ${zsh}/site-functions)
    file(RENAME ${zsh}/site-functions ${zsh}/vendor-completions)
  endif()
endfunction()

add_documents(llmperf program)
add_documents(llmperf-dev library)
