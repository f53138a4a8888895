# What leaves the repository: libraries for applications, made from folders of src/, and their installation.

set(PERDURE_CMAKE_DIR "${CMAKE_CURRENT_LIST_DIR}")
if(PERDURE_INSTALL)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(PERDURE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/perdure")
endif()

# perdure_component(core TARGET perdure FOLDERS base store LIBS Threads::Threads): one library made of those folders,
# static, or shared with BUILD_SHARED_LIBS. Applications link it as perdure::TARGET, without the prefix perdure_, and
# ask for it by find_package(perdure COMPONENTS core). PUBLIC names other components that its headers need.
function(perdure_component name)
  cmake_parse_arguments(ARG "" "TARGET" "FOLDERS;LIBS;PUBLIC" ${ARGN})
  string(REGEX REPLACE "^perdure_" "" export_name ${ARG_TARGET})
  set(objects)
  foreach(folder ${ARG_FOLDERS})
    list(APPEND objects $<TARGET_OBJECTS:perdure_${folder}_objects>)
  endforeach()
  add_library(${ARG_TARGET} ${objects})
  add_library(perdure::${export_name} ALIAS ${ARG_TARGET})
  set_target_properties(${ARG_TARGET} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${export_name}
                                                 VERSION ${PROJECT_VERSION}
                                                 SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${ARG_TARGET} PUBLIC cxx_std_23)
  target_include_directories(${ARG_TARGET} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>")
  # The flags bring no more than the sanitizers here: there is nothing left to compile.
  target_link_libraries(${ARG_TARGET} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_LIBS} $<BUILD_INTERFACE:perdure_flags>)
  set_property(GLOBAL APPEND PROPERTY PERDURE_COMPONENTS ${name})
  if(NOT PERDURE_INSTALL)
    return()
  endif()
  target_include_directories(${ARG_TARGET} INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  install(TARGETS ${ARG_TARGET} EXPORT perdure_${name})
  install(EXPORT perdure_${name} FILE perdure_${name}Targets.cmake NAMESPACE perdure:: DESTINATION ${PERDURE_PACKAGE_DIR})
endfunction()

# After the last component: the headers, and the files by which others find all of it.
function(perdure_install_package)
  if(NOT PERDURE_INSTALL)
    return()
  endif()
  get_property(PERDURE_COMPONENTS GLOBAL PROPERTY PERDURE_COMPONENTS)
  set(made "${CMAKE_CURRENT_BINARY_DIR}/package")
  string(REGEX REPLACE "[^/]+" ".." PERDURE_PC_PREFIX "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  if(NOT BUILD_SHARED_LIBS)
    # So that pkg-config need not be told --static, when there is nothing but the archive.
    set(BUILD_SHARED_LIBS OFF)
    set(PERDURE_PC_LIBS " -llmdb -pthread")
  endif()
  configure_package_config_file("${PERDURE_CMAKE_DIR}/perdureConfig.cmake.in" "${made}/perdureConfig.cmake"
                                INSTALL_DESTINATION ${PERDURE_PACKAGE_DIR} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  # Before 1.0, a minor version may break the API.
  write_basic_package_version_file("${made}/perdureConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  configure_file("${PERDURE_CMAKE_DIR}/perdure.pc.in" "${made}/perdure.pc" @ONLY)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/perdure" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILES_MATCHING PATTERN "*.h")
  install(FILES "${made}/perdureConfig.cmake" "${made}/perdureConfigVersion.cmake"
                "${PERDURE_CMAKE_DIR}/FindLMDB.cmake" "${PERDURE_CMAKE_DIR}/FindLibNATS.cmake" DESTINATION ${PERDURE_PACKAGE_DIR})
  install(FILES "${made}/perdure.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
