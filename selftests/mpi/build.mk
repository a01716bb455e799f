# SPDX-License-Identifier: GPL-2.0
#
# Programs that use MPI and know nothing of zcoll, built for each MPI that is installed
# (MPIS of lib/mpi/build.mk). They are run by selftests/mpi/run.

MPIT_B := $(B)/selftests/mpi
ALLREDUCE_INIT_openmpi := mpix_allreduce_init
ALLREDUCE_INIT_mpich := mpi_allreduce_init
MPIT_NAMES := results mixes derived errors threads locked refused

define mpi-tests
MPIT_OBJS_$1 := $$(MPIT_NAMES:%=$$(MPIT_B)/$1/%.o)
MPIT_PROGS += $$(MPIT_OBJS_$1:.o=)
OBJS += $$(MPIT_OBJS_$1)

$$(MPIT_B)/$1/%: CC = mpicc.$1
# MPI_STATUSES_IGNORE of MPICH is an address without memory
$$(MPIT_OBJS_$1): override CFLAGS += -Wno-stringop-overflow
$$(MPIT_OBJS_$1): $$(MPIT_B)/$1/%.o: selftests/mpi/%.c
	$$(compile)
$$(MPIT_OBJS_$1:.o=): LDLIBS = -pthread -ldl
$$(MPIT_OBJS_$1:.o=): %: %.o
	$$(link)

# Fortran, where there is a compiler. MPICH's module mpi has no interfaces for buffers, so
# that their types seem to differ
MPIT_PROGS += $(if $(shell command -v mpifort.$1),$$(MPIT_B)/$1/fortran)
$$(MPIT_B)/$1/fortran: selftests/mpi/fortran.f90
	$$(E) FC $$(@:$$(B)/%=%)
	$$(Q)mkdir -p $$(@D)
	$$(Q)mpifort.$1 -O2 -g -w -cpp -DALLREDUCE_INIT=$$(ALLREDUCE_INIT_$1) -J $$(@D) -o $$@ $$<
endef
$(foreach m,$(MPIS),$(eval $(call mpi-tests,$m)))

selftests-mpi: $(MPIT_PROGS) mpi

HOST_TESTS += selftests/mpi/host.sh
selftests: selftests-mpi

.PHONY: selftests-mpi
