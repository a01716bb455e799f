# SPDX-License-Identifier: GPL-2.0
#
# The contenders of the speed study: one program each, all with the same rank.o.
# Built only for `make bench`, because they need two MPIs. And the test of the page.

BENCH_B := $(B)/selftests/bench
BENCH_PROGRAMS := $(addprefix $(BENCH_B)/,rank_zcoll rank_bound rank_call rank_openmpi \
	rank_mpich rank_verbs rank_tcp)
OBJS += $(addprefix $(BENCH_B)/,rank.o rank_zcoll.o rank_bound.o rank_call.o rank_openmpi.o \
	rank_mpich.o wire.o wire_verbs.o wire_tcp.o)

bench-programs: $(BENCH_PROGRAMS)

$(BENCH_B)/rank_zcoll: $(BENCH_B)/rank.o $(BENCH_B)/rank_zcoll.o $(B)/lib/libzcoll.a
$(BENCH_B)/rank_zcoll: LDLIBS = $(LIB_LIBS)

$(BENCH_B)/rank_bound: $(BENCH_B)/rank.o $(BENCH_B)/rank_bound.o $(B)/engine/libzcengine.a
$(BENCH_B)/rank_bound: LDLIBS = -pthread
$(BENCH_B)/rank_bound.o: override CPPFLAGS += -Ikmod/engine

$(BENCH_B)/rank_call: $(BENCH_B)/rank.o $(BENCH_B)/rank_call.o

# An MPI is known by its compiler; rank_mpi.c is the same for both
$(BENCH_B)/rank_openmpi.o $(BENCH_B)/rank_openmpi: CC = mpicc.openmpi
$(BENCH_B)/rank_mpich.o $(BENCH_B)/rank_mpich: CC = mpicc.mpich
$(BENCH_B)/rank_openmpi.o $(BENCH_B)/rank_mpich.o: selftests/bench/rank_mpi.c
	$(compile)
$(BENCH_B)/rank_openmpi: $(BENCH_B)/rank.o $(BENCH_B)/rank_openmpi.o
$(BENCH_B)/rank_mpich: $(BENCH_B)/rank.o $(BENCH_B)/rank_mpich.o

# Bounds between nodes
$(BENCH_B)/rank_verbs: $(addprefix $(BENCH_B)/,rank.o wire.o wire_verbs.o)
$(BENCH_B)/rank_verbs: LDLIBS = -lrdmacm -libverbs -pthread
$(BENCH_B)/rank_tcp: $(addprefix $(BENCH_B)/,rank.o wire.o wire_tcp.o)

$(BENCH_PROGRAMS):
	$(link)

HOST_TESTS += selftests/bench/page_test.sh

.PHONY: bench-programs
