// SPDX-License-Identifier: GPL-2.0-only
/* A file's mmap, which may be mmap_prepare, is called by vfs_mmap() (6.17) */
#include <linux/fs.h>

int probe(struct file *file, struct vm_area_struct *vma);
int probe(struct file *file, struct vm_area_struct *vma)
{
	return vfs_mmap(file, vma);
}
