# LibNATS::LibNATS, for perdure's build and for those who link an installed libperdure_nats.a. The CMake package of
# Debian's libnats-dev cannot be used: it names a static library that the package does not have.
find_path(LIBNATS_INCLUDE_DIR nats/nats.h)
find_library(LIBNATS_LIBRARY nats)
mark_as_advanced(LIBNATS_INCLUDE_DIR LIBNATS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibNATS REQUIRED_VARS LIBNATS_LIBRARY LIBNATS_INCLUDE_DIR)

if(LibNATS_FOUND AND NOT TARGET LibNATS::LibNATS)
  add_library(LibNATS::LibNATS UNKNOWN IMPORTED)
  set_target_properties(LibNATS::LibNATS PROPERTIES IMPORTED_LOCATION "${LIBNATS_LIBRARY}"
                                                    INTERFACE_INCLUDE_DIRECTORIES "${LIBNATS_INCLUDE_DIR}")
endif()
