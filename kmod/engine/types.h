/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Plain types for code that is compiled into the module, the library, the
 * simulator and the tests.
 */
#ifndef ZCOLL_ENGINE_TYPES_H
#define ZCOLL_ENGINE_TYPES_H

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef int64_t s64;
typedef int32_t s32;
#ifndef U64_MAX
#define U64_MAX UINT64_MAX
#define U32_MAX UINT32_MAX
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#ifndef noinline
#define noinline __attribute__((__noinline__))
#endif
#endif

#endif /* ZCOLL_ENGINE_TYPES_H */
