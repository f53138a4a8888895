# GrpcCpp::GrpcCpp: gRPC for C++ with the small runtime of protocol buffers, and the programs that make code of a .proto.
# The CMake package of gRPC is not used: it brings in OpenSSL as a shared library, which the perdure binary links
# statically.
find_path(GRPCCPP_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(GRPCCPP_LIBRARY grpc++)
find_library(GRPCCPP_CORE_LIBRARY grpc)
find_library(GRPCCPP_GPR_LIBRARY gpr)
find_library(GRPCCPP_PROTOBUF_LIBRARY protobuf-lite)
# The headers of gRPC use its mutex.
find_library(GRPCCPP_ABSL_LIBRARY absl_synchronization)
find_program(GRPCCPP_PROTOC protoc)
find_program(GRPCCPP_PLUGIN grpc_cpp_plugin)
mark_as_advanced(GRPCCPP_INCLUDE_DIR GRPCCPP_LIBRARY GRPCCPP_CORE_LIBRARY GRPCCPP_GPR_LIBRARY GRPCCPP_PROTOBUF_LIBRARY
                 GRPCCPP_ABSL_LIBRARY GRPCCPP_PROTOC GRPCCPP_PLUGIN)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GrpcCpp REQUIRED_VARS GRPCCPP_LIBRARY GRPCCPP_CORE_LIBRARY GRPCCPP_GPR_LIBRARY
                                  GRPCCPP_PROTOBUF_LIBRARY GRPCCPP_ABSL_LIBRARY GRPCCPP_INCLUDE_DIR
                                  GRPCCPP_PROTOC GRPCCPP_PLUGIN)

if(GrpcCpp_FOUND AND NOT TARGET GrpcCpp::GrpcCpp)
  add_library(GrpcCpp::GrpcCpp UNKNOWN IMPORTED)
  set_target_properties(GrpcCpp::GrpcCpp PROPERTIES
                        IMPORTED_LOCATION "${GRPCCPP_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${GRPCCPP_INCLUDE_DIR}"
                        INTERFACE_COMPILE_DEFINITIONS GRPC_USE_PROTO_LITE
                        INTERFACE_LINK_LIBRARIES
                        "${GRPCCPP_CORE_LIBRARY};${GRPCCPP_GPR_LIBRARY};${GRPCCPP_PROTOBUF_LIBRARY};${GRPCCPP_ABSL_LIBRARY}")
endif()
