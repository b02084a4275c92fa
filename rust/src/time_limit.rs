//! Cancels parser work that exceeds its processor time: some of it has no other limit.

use llguidance::CancellationHandle;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often running work is checked.
const TICK: Duration = Duration::from_millis(5);
/// Without work for this long, the watching thread sleeps until there is some.
const QUIET_TICKS: u32 = 200;

struct Work {
    id: u64,
    clock: ThreadClock,
    until: Duration,
    handle: CancellationHandle,
}

struct Watch {
    running: Vec<Work>,
    next_id: u64,
    started: bool,
    asleep: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch {
    running: Vec::new(),
    next_id: 0,
    started: false,
    asleep: false,
});
static WAKE: Condvar = Condvar::new();

/// While it exists, `handle` is cancelled once this thread has used `limit` of processor time.
pub struct TimeLimit(u64);

impl TimeLimit {
    pub fn start(handle: &CancellationHandle, limit: Duration) -> TimeLimit {
        let clock = ThreadClock::current();
        let mut watch = lock();
        if !watch.started {
            watch.started = std::thread::Builder::new()
                .name("grammar-time".to_string())
                .spawn(observe)
                .is_ok();
        }
        let id = watch.next_id;
        watch.next_id += 1;
        watch.running.push(Work {
            id,
            until: clock.now() + limit,
            clock,
            handle: handle.clone(),
        });
        if std::mem::take(&mut watch.asleep) {
            WAKE.notify_one();
        }
        TimeLimit(id)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        lock().running.retain(|work| work.id != self.0);
    }
}

fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

fn observe() {
    let mut watch = lock();
    let mut quiet = 0;
    loop {
        let seen = watch.next_id;
        watch = WAKE
            .wait_timeout(watch, TICK)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        for work in &watch.running {
            if work.clock.now() >= work.until {
                work.handle.cancel();
            }
        }
        let idle = watch.running.is_empty() && watch.next_id == seen;
        quiet = if idle { quiet + 1 } else { 0 };
        if quiet < QUIET_TICKS {
            continue;
        }
        watch.asleep = true;
        while watch.asleep {
            watch = WAKE.wait(watch).unwrap_or_else(PoisonError::into_inner);
        }
        quiet = 0;
    }
}

/// The processor time of one thread, which must exist when it is read.
#[cfg(target_os = "linux")]
struct ThreadClock(libc::clockid_t);

#[cfg(target_os = "linux")]
impl ThreadClock {
    fn current() -> ThreadClock {
        unsafe extern "C" {
            fn pthread_getcpuclockid(
                thread: libc::pthread_t,
                clock: *mut libc::clockid_t,
            ) -> libc::c_int;
        }
        let mut clock = libc::CLOCK_MONOTONIC;
        // On failure, elapsed time is used.
        unsafe { pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        ThreadClock(clock)
    }

    fn now(&self) -> Duration {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        unsafe { libc::clock_gettime(self.0, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

/// Elapsed time: other systems have no clock for another thread's processor time.
#[cfg(not(target_os = "linux"))]
struct ThreadClock(std::time::Instant);

#[cfg(not(target_os = "linux"))]
impl ThreadClock {
    fn current() -> ThreadClock {
        ThreadClock(std::time::Instant::now())
    }

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The processor time of this thread.
#[cfg(test)]
pub fn thread_time() -> Duration {
    ThreadClock::current().now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn only_work_that_exceeds_its_time_is_cancelled() {
        let short = CancellationHandle::default();
        let long = CancellationHandle::default();
        let _long = TimeLimit::start(&long, Duration::from_secs(1_000));
        let limit = TimeLimit::start(&short, Duration::from_millis(20));
        let started = Instant::now();
        while !short.is_cancelled() {
            assert!(started.elapsed() < Duration::from_secs(60));
        }
        drop(limit);
        assert!(!long.is_cancelled());
    }

    #[test]
    fn ended_work_is_not_cancelled() {
        let handle = CancellationHandle::default();
        drop(TimeLimit::start(&handle, 2 * TICK));
        let started = Instant::now();
        while started.elapsed() < 8 * TICK {}
        assert!(!handle.is_cancelled());
    }
}
