! SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
!
! usage: heat
!
! Heat on a plate, in threads of OpenMP: each has a band of it, and waits for its neighbours in none of its turns. In
! turn 3, row 5 the second thread comes to stay in wait_for_ever; all others come to the end of their turns, and wait
! there.
module plate
  use iso_c_binding
  implicit none
  integer, parameter :: turns = 6, rows = 8, columns = 16, stalled_turn = 3, stalled_row = 5

  interface
    integer(c_int) function pause_for_signal() bind(c, name="pause")
      import :: c_int
    end function
  end interface
contains
  subroutine wait_for_ever()
    integer(c_int) :: result

    result = -1
    do while (result < 0) ! always, which no compiler knows
      result = pause_for_signal()
    end do
  end subroutine

  subroutine smooth(row)
    real(8), intent(inout) :: row(columns)
    integer :: column

    do column = 2, columns - 1
      row(column) = (row(column - 1) + row(column) + row(column + 1)) / 3
    end do
  end subroutine

  subroutine sweep(band, thread)
    real(8), intent(inout) :: band(columns, rows)
    integer, intent(in) :: thread
    integer :: turn, row

    do turn = 1, turns
      do row = 1, rows
        if (thread == 1 .and. turn == stalled_turn .and. row == stalled_row) call wait_for_ever()
        if (thread /= 1 .and. turn == turns .and. row == rows) call wait_for_ever()
        call smooth(band(:, row))
      end do
    end do
  end subroutine
end module

program heat
  use omp_lib
  use plate
  implicit none
  real(8) :: bands(columns, rows, 4)

  bands = 1
  !$omp parallel num_threads(4)
  call sweep(bands(:, :, omp_get_thread_num() + 1), omp_get_thread_num())
  !$omp end parallel
  print *, sum(bands)
end program
