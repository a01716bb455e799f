# SPDX-License-Identifier: GPL-2.0
#
# Tests of the library: on the host with a mock of the device, and (dev_*) with
# the device.

LIBT := $(B)/selftests/lib
LIBT_HOST := $(LIBT)/env $(LIBT)/names $(LIBT)/calls $(LIBT)/ranges
LIBT_DEV := $(LIBT)/dev_calls $(LIBT)/dev_plans $(LIBT)/dev_ring $(LIBT)/dev_errors

OBJS += $(patsubst %,%.o,$(LIBT_HOST) $(LIBT_DEV)) $(LIBT)/mock.o $(LIBT)/ranks.o

$(LIBT_HOST) $(LIBT_DEV): LDLIBS = -luring -ljansson -pthread -ldl -lm
$(LIBT_HOST) $(LIBT_DEV): %: %.o $(B)/lib/libzcoll.a
	$(link)

$(LIBT)/calls $(LIBT)/ranges: $(LIBT)/mock.o
$(LIBT)/calls $(LIBT)/ranges: LDLIBS += -Wl,--wrap=open,--wrap=ioctl,--wrap=io_uring_submit
$(LIBT_DEV): $(LIBT)/ranks.o

# What a newcomer compiles first
$(LIBT)/hello: tools/examples/hello.c $(B)/lib/libzcoll.so
	$(E) LD $(@:$(B)/%=%)
	$(Q)$(CC) -Iinclude -Iinclude/uapi -Wall -Wextra -o $@ $< -L$(B)/lib -lzcoll \
		-Wl,-rpath,'$$ORIGIN/../../lib'

$(LIBT)/show_env: LDLIBS = -luring -ljansson -pthread -ldl -lm
$(LIBT)/show_env: $(LIBT)/show_env.o $(B)/lib/libzcoll.a
	$(link)
OBJS += $(LIBT)/show_env.o

HOST_TESTS += $(LIBT_HOST) selftests/lib/header.sh selftests/lib/symbols.sh \
	selftests/lib/launchers.sh
DEV_TESTS += $(LIBT_DEV)
selftests: $(LIBT)/hello $(LIBT)/show_env $(LIBT_HOST) $(LIBT_DEV) $(B)/lib/libzcoll.so
