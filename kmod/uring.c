// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations as io_uring commands (IORING_OP_URING_CMD).
 *
 * The SQE is user memory while a command is issued: the struct is copied once,
 * and only the copy is looked at.
 *
 * A command is completed from where the verdict is known, by way of task work of
 * the submitter, with the flags that the task work is given. It is completed once:
 * by who takes zc_sub.ucmd away under zc_comm.lock.
 *
 * io_uring cannot cancel a command. When a ring, or the task that submitted, goes
 * away, newer kernels say so (compat.h): other ranks take part, so the
 * communicator is revoked, and the command completed by the ordinary path.
 *
 * Memory that is not registered is pinned while the command is issued, as other
 * drivers with passthrough commands do, and not by an io_uring worker later: so a
 * command is in its operation when the call that submits it returns.
 */
#include <linux/file.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "zcoll.h"

/* In io_uring_cmd.pdu, from submission to completion */
struct zc_uring_pdu {
	u64 seq;
	int result;
};

static struct zc_uring_pdu *zc_uring_pdu(struct io_uring_cmd *ucmd)
{
	BUILD_BUG_ON(sizeof(struct zc_uring_pdu) > sizeof(ucmd->pdu));
	return (struct zc_uring_pdu *)ucmd->pdu;
}

bool zc_uring_cancel_known(void)
{
	return ZC_COMPAT_CANCEL;
}

static void zc_uring_done(struct io_uring_cmd *ucmd, unsigned int issue_flags)
{
	zc_compat_done(ucmd, zc_uring_pdu(ucmd)->result, issue_flags);
}

ZC_COMPAT_TASK_WORK(zc_uring_task_work, zc_uring_done)

/* From any process context. The caller must not touch @ucmd afterwards. */
void zc_uring_complete(struct io_uring_cmd *ucmd, int result)
{
	zc_uring_pdu(ucmd)->result = result;
	io_uring_cmd_complete_in_task(ucmd, zc_uring_task_work);
}

static int zc_uring_copy(struct io_uring_cmd *ucmd, struct zcoll_cmd *cmd,
			 unsigned int issue_flags)
{
	struct zcoll_cmd_ptr ptr;

	BUILD_BUG_ON(sizeof(struct zcoll_cmd) != 80);
	BUILD_BUG_ON(sizeof(struct zcoll_cmd_ptr) != 16);

	if (issue_flags & IO_URING_F_SQE128) {
		memcpy(cmd, zc_compat_payload(ucmd), sizeof(*cmd));
		barrier();
		return 0;
	}
	memcpy(&ptr, zc_compat_payload(ucmd), sizeof(ptr));
	barrier();
	if (ptr.__reserved)
		return -EINVAL;
	if (copy_from_user(cmd, u64_to_user_ptr(ptr.addr), sizeof(*cmd)))
		return -EFAULT;
	return 0;
}

/* Is the caller ending, or in exec? Its address space will go, but later. */
static bool zc_uring_owner_dies(const struct zc_rank *rank)
{
	return current->mm == rank->mm && (current->in_execve || zc_process_ends(current));
}

/* The ring, or the task that submitted, goes away. Called under the ring's lock. */
static void zc_uring_cancel(struct zc_rank *rank, struct io_uring_cmd *ucmd)
{
	u64 seq = zc_uring_pdu(ucmd)->seq;
	struct zc_sub *sub = zc_rank_sub(rank, seq);
	struct zc_comm *comm = rank->comm;

	spin_lock(&comm->lock);
	if (!zc_rank_called(rank, seq) || sub->ucmd != ucmd)
		goto out_unlock;
	if (zc_uring_owner_dies(rank))
		zc_comm_failf(comm, -EOWNERDEAD,
			      "the process of rank %u ended (exit, kill or exec) with %s %llu in flight",
			      rank->rank, zc_collective_name(sub->collective), seq);
	else
		zc_comm_failf(comm, -ECANCELED,
			      "the ring of rank %u was closed, or its thread ended, with %s %llu in flight",
			      rank->rank, zc_collective_name(sub->collective), seq);
out_unlock:
	spin_unlock(&comm->lock);
}

static int zc_uring_call(struct zc_rank *rank, u32 collective, struct io_uring_cmd *ucmd,
			 unsigned int issue_flags)
{
	struct zc_call call = { .desc.collective = collective, .ucmd = ucmd };
	struct file *file;
	int err;

	if (current->mm != rank->mm)
		return -EPERM;
	if (ucmd->flags & IORING_URING_CMD_FIXED)
		return -EINVAL;
	err = zc_uring_copy(ucmd, &call.cmd, issue_flags);
	if (err)
		return err;
	err = zc_call_prepare(rank, &call);
	if (err)
		return err;

	/*
	 * Once submitted the command may complete and drop the file at any time,
	 * but what submits still looks at the endpoint.
	 */
	file = get_file(ucmd->file);
	zc_uring_pdu(ucmd)->seq = call.cmd.seq;
	/* Before others can complete it; from then on an error is a completion, too */
	zc_compat_mark_cancelable(ucmd, issue_flags);
	err = zc_call_submit(rank, &call);
	if (err)
		zc_compat_done(ucmd, err, issue_flags);
	fput(file);
	return -EIOCBQUEUED;
}

int zc_uring_cmd(struct io_uring_cmd *ucmd, unsigned int issue_flags)
{
	struct zc_rank *rank = ucmd->file->private_data;
	u32 collective = zc_collective_of(ucmd->cmd_op);

	if (zc_compat_is_cancel(issue_flags)) {
		zc_uring_cancel(rank, ucmd);
		return 0;
	}
	if (!collective)
		return -ENOTTY;
	return zc_uring_call(rank, collective, ucmd, issue_flags);
}
