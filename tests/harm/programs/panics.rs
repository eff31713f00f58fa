// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! Panics through frames with destructors, caught by catch_unwind, resumed, inside a thread, and an array index out of
//! bounds. No compiler switch counts calls here: the program counts its own, and prints "calls NAME NUMBER".
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const NAMES: [&str; 7] = ["descend", "catcher", "resumer", "indexer", "threaded", "dropped", "all_kinds"];
static COUNTS: [AtomicU64; 7] = [
    AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0),
    AtomicU64::new(0), AtomicU64::new(0),
];

#[inline(always)]
fn called(index: usize) {
    COUNTS[index].fetch_add(1, Relaxed);
}

struct Guard(u64);

#[no_mangle]
#[inline(never)]
pub fn dropped(weight: u64) -> u64 {
    called(5);
    weight
}

impl Drop for Guard {
    fn drop(&mut self) {
        TOTAL.fetch_add(dropped(self.0), Relaxed);
    }
}

static TOTAL: AtomicU64 = AtomicU64::new(0);

#[no_mangle]
#[inline(never)]
pub fn descend(level: u64) -> u64 {
    called(0);
    let _guard = Guard(level);
    if level == 0 {
        panic!("bottom");
    }
    descend(level - 1) + 1
}

#[no_mangle]
#[inline(never)]
pub fn catcher(level: u64) -> u64 {
    called(1);
    match panic::catch_unwind(|| descend(level)) {
        Ok(_) => 0,
        Err(_) => 1000,
    }
}

#[no_mangle]
#[inline(never)]
pub fn resumer(level: u64) -> u64 {
    called(2);
    let _guard = Guard(7);
    match panic::catch_unwind(|| descend(level)) {
        Ok(n) => n,
        Err(cause) => panic::resume_unwind(cause),
    }
}

#[no_mangle]
#[inline(never)]
pub fn indexer(numbers: &[u64], index: usize) -> u64 {
    called(3);
    let _guard = Guard(numbers.len() as u64);
    numbers[index]
}

#[no_mangle]
#[inline(never)]
pub fn threaded(level: u64) -> u64 {
    called(4);
    match std::thread::spawn(move || descend(level)).join() {
        Ok(_) => 0,
        Err(_) => 100000,
    }
}

#[no_mangle]
#[inline(never)]
pub fn all_kinds(n: u64) -> u64 {
    called(6);
    let mut sum = catcher(n % 20) + threaded(n % 5);
    sum += panic::catch_unwind(|| resumer(n % 10)).unwrap_or(1);
    sum + panic::catch_unwind(|| indexer(&[1, 2, 3], n as usize)).unwrap_or(50)
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let sum: u64 = (0..40).map(all_kinds).sum();
    let total = TOTAL.load(Relaxed);
    println!("result {} {}", sum, total);
    for (name, count) in NAMES.iter().zip(&COUNTS) {
        println!("calls {} {}", name, count.load(Relaxed));
    }
    // Sums of 0..=level: for levels 0 to 19 (twice), 0 to 9 (four times) and 0 to 4 (eight times); the guards of resumer and indexer.
    let right = sum == 40 * (1000 + 100000 + 1) + 37 * 50 + 6 && total == 2 * 1330 + 4 * 165 + 8 * 20 + 40 * (7 + 3);
    std::process::exit(if right { 0 } else { 1 });
}
