# cmake --install gives a relocatable bundle: bin/assay, lib/ with the third-party libraries, studies.
install(TARGETS assay RUNTIME DESTINATION bin)
