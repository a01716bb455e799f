# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libzcoll-mpi, once for each MPI that is installed, of the same sources; an MPI is known by
# its compiler. All of libzcoll is in it, so that one file is preloaded.

MPI_B := $(B)/lib/mpi
MPIS := $(foreach m,openmpi mpich,$(if $(shell command -v mpicc.$m),$m))
MPI_SRCS := absent blocking comm data environment errors forms fortran_wait guard limits line memory nonblocking \
	operation persistent queue requests setup stats take types wait
MPI_SRCS_openmpi := fortran_calls
MPI_SRCS_FORTRAN := fortran_calls fortran_wait
MPI_LIBS := $(MPIS:%=$(MPI_B)/%/libzcoll-mpi.so)

# Of one MPI
define mpi-library
MPI_OBJS_$1 := $$(patsubst %,$$(MPI_B)/$1/%.o,$$(MPI_SRCS) $$(MPI_SRCS_$1))
OBJS += $$(MPI_OBJS_$1)

$$(MPI_B)/$1/%.o: CC = mpicc.$1
$$(MPI_OBJS_$1): override CFLAGS += -fPIC
$(MPI_SRCS_FORTRAN:%=$(MPI_B)/$1/%.o): override CFLAGS += -Wno-missing-prototypes
$$(MPI_OBJS_$1): $$(MPI_B)/$1/%.o: lib/mpi/%.c
	$$(compile)

$$(MPI_B)/$1/libzcoll-mpi.so: $$(MPI_OBJS_$1) $$(B)/lib/libzcoll.a lib/mpi/libzcoll-mpi.map
	$$(E) LD $$(@:$$(B)/%=%)
	$$(Q)mpicc.$1 $$(CFLAGS) $$(LDFLAGS) -shared -Wl,-soname,libzcoll-mpi.so -Wl,-z,defs \
		-Wl,--version-script=lib/mpi/libzcoll-mpi.map -o $$@ $$(filter %.o %.a,$$^) \
		-luring -ljansson -lnettle -lm -pthread -ldl
endef
$(foreach m,$(MPIS),$(eval $(call mpi-library,$m)))

mpi: $(MPI_LIBS) ## build the library that is preloaded into MPI programs
	$(Q)$(foreach m,$(filter-out $(MPIS),openmpi mpich),echo "  SKIP    lib/mpi for $m: there is no mpicc.$m";)

lib: mpi

.PHONY: mpi
