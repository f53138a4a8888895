# LibPQ::LibPQ. CMake's own FindPostgreSQL asks for the headers of the server as well, which a client has no use for.
find_path(LIBPQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql)
find_library(LIBPQ_LIBRARY pq)
mark_as_advanced(LIBPQ_INCLUDE_DIR LIBPQ_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibPQ REQUIRED_VARS LIBPQ_LIBRARY LIBPQ_INCLUDE_DIR)

if(LibPQ_FOUND AND NOT TARGET LibPQ::LibPQ)
  add_library(LibPQ::LibPQ UNKNOWN IMPORTED)
  set_target_properties(LibPQ::LibPQ PROPERTIES IMPORTED_LOCATION "${LIBPQ_LIBRARY}"
                                                INTERFACE_INCLUDE_DIRECTORIES "${LIBPQ_INCLUDE_DIR}")
endif()
