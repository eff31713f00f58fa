(* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause *)
(* OCaml: its garbage collector looks return addresses up, at collections inside of calls. *)
let stop = ref false

let[@inline never] make n = Array.init n (fun i -> if i land 31 = 0 then Gc.minor (); string_of_int i)

let[@inline never] rec deep level = if level = 0 then Array.length (make 100) else deep (level - 1) + 1

let work () = deep 20

let rec loop rounds wrong =
  if !stop then Printf.printf "%s: %d of %d rounds were wrong\n" (if wrong = 0 then "unharmed" else "HARMED") wrong rounds
  else begin
    let wrong = if work () = 120 then wrong else wrong + 1 in
    (try Unix.sleepf 0.002 with Unix.Unix_error _ -> ());
    loop (rounds + 1) wrong
  end

let () =
  if Array.length Sys.argv > 1 then begin
    Sys.set_signal Sys.sigterm (Sys.Signal_handle (fun _ -> stop := true));
    print_endline "ready";
    loop 0 0
  end
  else Printf.printf "result %d\n" (work ())
