// SPDX-License-Identifier: GPL-2.0-only
/* Flags of a mapping have a type of their own (7.0) */
#include <linux/mm.h>
#include <linux/shmem_fs.h>

struct file *probe(void);
struct file *probe(void)
{
	return shmem_file_setup("probe", 0, mk_vma_flags(VMA_NORESERVE_BIT));
}
