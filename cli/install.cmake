# What an installed zeroplan is: the programs, their manual and completions, the schemas of its documents.
# Presets are inside the program, which so runs from wherever it was put.
include(GNUInstallDirs)

install(TARGETS zeroplan RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET zeroplan-gpu)
  set_target_properties(zeroplan-gpu PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # NCCL's folder
  install(TARGETS zeroplan-gpu RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(SKBUILD)  # a wheel, which has a folder for programs: cli/python
  install(TARGETS zeroplan RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${SKBUILD_METADATA_DIR}/licenses
          COMPONENT python EXCLUDE_FROM_ALL)
endif()

# zeroplan_words(FORM FILE FOLDER): what the program itself writes of its options, installed as FOLDER/FILE.
function(zeroplan_words form file folder)
  set(written ${PROJECT_BINARY_DIR}/words/${file})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:zeroplan>\" completions ${form}
                OUTPUT_FILE \"${written}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${written} DESTINATION ${folder})
endfunction()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/words)
zeroplan_words(man zeroplan.1 ${CMAKE_INSTALL_MANDIR}/man1)
zeroplan_words(bash zeroplan ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
if(ZEROPLAN_STATIC)  # what packages carry: Debian's go where its zsh looks for packages' completions
  zeroplan_words(zsh _zeroplan ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
else()
  zeroplan_words(zsh _zeroplan ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
zeroplan_words(fish zeroplan.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/cli/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/zeroplan
        FILES_MATCHING PATTERN *.json)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# script/package deb
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of zeroplan")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "planner of memory, communication and time of training large models")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(NOT ZEROPLAN_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
