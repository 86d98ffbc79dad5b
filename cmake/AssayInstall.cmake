# cmake --install gives a relocatable bundle: bin/assay, lib/ with the third-party libraries beside it
# (found through $ORIGIN/../lib), share/assay with the ready studies and the torch worker. Only the C library and the loader stay
# the host's: the bundle runs on another Linux with the same or a newer C library.
set_target_properties(assay PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS assay RUNTIME_DEPENDENCY_SET assay_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET assay_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libpthread\\.so" "^libdl\\.so"
                            "^librt\\.so" "^libresolv\\.so" "linux-vdso"
        DIRECTORIES /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /lib/${CMAKE_LIBRARY_ARCHITECTURE}
        DESTINATION lib)
# The libraries find one another in lib/ as well.
install(CODE [[
  find_program(PATCHELF patchelf)
  file(GLOB libraries "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/*.so*")
  foreach(library ${libraries})
    if(NOT IS_SYMLINK ${library})
      execute_process(COMMAND ${PATCHELF} --set-rpath $ORIGIN ${library} COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
]])
install(DIRECTORY ${CMAKE_SOURCE_DIR}/studies DESTINATION share/assay OPTIONAL)
# The torch worker is found from bin/assay as ../share/assay/workers.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/workers DESTINATION share/assay
        FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE PATTERN "tests" EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/assay)
# The installed program's account of itself: manual pages, and completion where shells look for it.
install(CODE [[
  set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  set(program "${prefix}/bin/assay")
  execute_process(COMMAND ${program} man --folder ${prefix}/share/man/man1 COMMAND_ERROR_IS_FATAL ANY)
  set(file_bash bash-completion/completions/assay)
  set(file_zsh zsh/site-functions/_assay)
  set(file_fish fish/vendor_completions.d/assay.fish)
  foreach(shell bash zsh fish)
    execute_process(COMMAND ${program} completion ${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE ${prefix}/share/${file_${shell}} "${script}")
  endforeach()
]])
