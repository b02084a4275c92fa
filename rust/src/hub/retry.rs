//! Request errors and the backoff between retries.

use std::time::Duration;

#[derive(Debug)]
pub enum FetchError {
    /// A retry may succeed, after `wait` if the server specified it.
    Retry {
        wait: Option<Duration>,
        reason: String,
    },
    /// There was no connection. A retry may succeed.
    Unreachable { reason: String },
    /// Retrying does not help. `status` is 0 if there was no HTTP response.
    Final { status: u16, reason: String },
    /// The caller stopped the operation.
    Stopped,
}

impl FetchError {
    pub fn retry(reason: impl ToString) -> FetchError {
        FetchError::Retry {
            wait: None,
            reason: reason.to_string(),
        }
    }

    /// For messages.
    pub fn reason(&self) -> &str {
        match self {
            FetchError::Retry { reason, .. }
            | FetchError::Unreachable { reason }
            | FetchError::Final { reason, .. } => reason,
            FetchError::Stopped => "stopped",
        }
    }

    pub fn fatal(reason: impl ToString) -> FetchError {
        FetchError::Final {
            status: 0,
            reason: reason.to_string(),
        }
    }
}

/// Counts failed attempts; each delay is twice the previous one.
pub struct Backoff {
    first_wait: Duration,
    attempts: u32,
    /// The limit if the host cannot be reached.
    unreachable_attempts: u32,
}

const MAX_ATTEMPTS: u32 = 8;
/// Before anything was received: a machine without network must not wait for a minute.
const FIRST_ATTEMPTS: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The hub's rate limit uses windows of five minutes.
const LONGEST_REQUESTED_WAIT: Duration = Duration::from_secs(310);

impl Backoff {
    pub fn new(first_wait: Duration) -> Backoff {
        Backoff {
            first_wait,
            attempts: 0,
            unreachable_attempts: MAX_ATTEMPTS,
        }
    }

    /// For the first request to a host: gives up early if it cannot be reached.
    pub fn first_contact(first_wait: Duration) -> Backoff {
        Backoff {
            unreachable_attempts: FIRST_ATTEMPTS,
            ..Backoff::new(first_wait)
        }
    }

    /// Resets the count after progress.
    pub fn progressed(&mut self) {
        self.attempts = 0;
    }

    /// Returns the delay before the next attempt, or the error if there is none.
    pub fn wait_after(&mut self, error: FetchError) -> Result<Duration, FetchError> {
        let (wait, reason, most) = match error {
            FetchError::Retry { wait, reason } => (wait, reason, MAX_ATTEMPTS),
            FetchError::Unreachable { reason } => (None, reason, self.unreachable_attempts),
            other => return Err(other),
        };
        self.attempts += 1;
        if self.attempts >= most {
            return Err(FetchError::fatal(format!(
                "gave up after {} attempts: {reason}",
                self.attempts
            )));
        }
        let own = self.first_wait * 2u32.pow(self.attempts - 1);
        Ok(match wait {
            Some(requested) => requested.clamp(self.first_wait.min(own), LONGEST_REQUESTED_WAIT),
            None => own.min(LONGEST_WAIT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_attempts_run_out() {
        let mut backoff = Backoff::new(Duration::from_millis(100));
        let waits: Vec<_> = (0..3)
            .map(|_| backoff.wait_after(FetchError::retry("cut")).unwrap())
            .collect();
        assert_eq!(waits, [100, 200, 400].map(Duration::from_millis));
        for _ in 3..MAX_ATTEMPTS - 1 {
            backoff.wait_after(FetchError::retry("cut")).unwrap();
        }
        assert!(matches!(
            backoff.wait_after(FetchError::retry("cut")),
            Err(FetchError::Final { .. })
        ));
    }

    #[test]
    fn the_first_contact_gives_up_within_seconds() {
        let lost = || FetchError::Unreachable {
            reason: "no route".to_string(),
        };
        let mut backoff = Backoff::first_contact(Duration::from_millis(500));
        let mut waited = Duration::ZERO;
        while let Ok(wait) = backoff.wait_after(lost()) {
            waited += wait;
        }
        assert_eq!(waited, Duration::from_millis(3500));
        assert_eq!(backoff.attempts, FIRST_ATTEMPTS);
        // A running download waits longer for the network to return.
        let mut running = Backoff::new(Duration::from_millis(500));
        assert!((1..MAX_ATTEMPTS).all(|_| running.wait_after(lost()).is_ok()));
    }

    #[test]
    fn honours_retry_after_within_limits() {
        let mut backoff = Backoff::new(Duration::from_millis(100));
        let mut requested = |seconds| {
            let error = FetchError::Retry {
                wait: Some(Duration::from_secs(seconds)),
                reason: String::new(),
            };
            backoff.wait_after(error).unwrap()
        };
        assert_eq!(requested(7), Duration::from_secs(7));
        assert_eq!(requested(100_000), LONGEST_REQUESTED_WAIT);
        assert_eq!(requested(0), Duration::from_millis(100));
    }

    #[test]
    fn final_errors_are_not_retried() {
        let mut backoff = Backoff::new(Duration::ZERO);
        assert!(backoff.wait_after(FetchError::fatal("no")).is_err());
    }
}
