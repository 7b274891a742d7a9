# Compiler settings that every target shares.
option(FIXIT_SANITIZE_ADDRESS "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(FIXIT_SANITIZE_THREAD "Build with ThreadSanitizer" OFF)
option(FIXIT_WERROR "Treat warnings as errors" ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

find_program(LLD_PROGRAM ld.lld)
if(LLD_PROGRAM)
  add_link_options(-fuse-ld=lld)
endif()

# -g1 keeps line tables for backtraces at a fraction of full debug information's size.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
if(FIXIT_WERROR)
  add_compile_options(-Werror)
endif()

if(FIXIT_SANITIZE_ADDRESS)
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(FIXIT_SANITIZED=1)
endif()
if(FIXIT_SANITIZE_THREAD)
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
  add_compile_definitions(FIXIT_SANITIZED=1)
endif()
