! SPDX-License-Identifier: GPL-2.0
!
! Fortran programs: the old binding, with MPI_IN_PLACE, MPI_BOTTOM's like, requests in
! arrays, and the new one. A test passes if it does on all ranks.

module tests
  use mpi
  implicit none
  integer :: me, ranks, done = 0, failed = 0
contains
  subroutine check(good, name)
    logical, intent(in) :: good
    character(len=*), intent(in) :: name
    logical :: all
    integer :: ierr
    call pmpi_allreduce(good, all, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    done = done + 1
    if (.not. all) failed = failed + 1
    if (me == 0 .and. all) print '("ok ", i0, " - ", a)', done, name
    if (me == 0 .and. .not. all) print '("not ok ", i0, " - ", a)', done, name
  end subroutine

  subroutine old_binding
    integer :: n(1000), total(1000), i, ierr, requests(3), statuses(MPI_STATUS_SIZE, 3), at, &
      status(MPI_STATUS_SIZE), got
    double precision :: x(10), y(10)
    logical :: flag
    n = [(i + me, i = 1, 1000)]
    call mpi_allreduce(n, total, 1000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(ierr == MPI_SUCCESS .and. &
      all(total == [(ranks * i + ranks * (ranks - 1) / 2, i = 1, 1000)]), "allreduce")
    call mpi_allreduce(MPI_IN_PLACE, n, 1000, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(all(n == total), "allreduce in place")
    x = me
    call mpi_reduce(x, y, 10, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
    call check(me /= 0 .or. all(y == ranks - 1), "reduce")

    got = -1
    call mpi_iallreduce(me, at, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, requests(1), ierr)
    call mpi_irecv(got, 1, MPI_INTEGER, mod(me + ranks - 1, ranks), 0, MPI_COMM_WORLD, &
      requests(2), ierr)
    call mpi_isend(me, 1, MPI_INTEGER, mod(me + 1, ranks), 0, MPI_COMM_WORLD, requests(3), ierr)
    call mpi_waitall(3, requests, statuses, ierr)
    call check(at == ranks - 1 .and. got == mod(me + ranks - 1, ranks) .and. &
      statuses(MPI_SOURCE, 2) == got .and. all(requests == MPI_REQUEST_NULL), "waitall")

    call mpi_ibarrier(MPI_COMM_WORLD, requests(2), ierr)
    call mpi_waitany(3, requests, at, status, ierr)
    call check(at == 2 .and. requests(2) == MPI_REQUEST_NULL, "waitany counts from 1")
    if (me == 0) x = 5
    call mpi_ibcast(x, 10, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, requests(1), ierr)
    flag = .false.
    do while (.not. flag)
      call mpi_test(requests(1), flag, MPI_STATUS_IGNORE, ierr)
    end do
    call check(all(x == 5), "test")
  end subroutine

  ! ALLREDUCE_INIT is the MPI's name for it
  subroutine persistent
    integer :: n(10), total(10), i, ierr, request, status(MPI_STATUS_SIZE)
    logical :: good
    good = .true.
    call ALLREDUCE_INIT(n, total, 10, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &
      request, ierr)
    do i = 1, 5
      n = me + i
      total = -1
      call mpi_start(request, ierr)
      call mpi_wait(request, status, ierr)
      good = good .and. all(total == ranks - 1 + i) .and. request /= MPI_REQUEST_NULL
    end do
    call check(good, "a persistent request")
    call mpi_request_free(request, ierr)
    call check(request == MPI_REQUEST_NULL, "a persistent request is freed")
  end subroutine
end module

subroutine new_binding
  use mpi_f08
  use tests, only: check, me, ranks
  implicit none
  real :: x(100)
  type(MPI_Request) :: request
  x = me
  call MPI_Allreduce(MPI_IN_PLACE, x, 100, MPI_REAL, MPI_SUM, MPI_COMM_WORLD)
  call check(all(x == ranks * (ranks - 1) / 2), "mpi_f08, in place")
  x = me
  call MPI_Ibcast(x, 100, MPI_REAL, 1, MPI_COMM_WORLD, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all(x == 1), "mpi_f08, wait")
end subroutine

program fortran
  use tests
  implicit none
  integer :: ierr
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, ranks, ierr)
  call old_binding
  call persistent
  call new_binding
  if (me == 0) print '("1..", i0)', done
  call mpi_finalize(ierr)
  if (failed > 0) stop 1
end program
