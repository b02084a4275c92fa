//! What went wrong with a request, and whether asking again can help.

use std::time::Duration;

#[derive(Debug)]
pub enum Trouble {
    /// Asking again may help; not before `wait`, when the server said so.
    Again {
        wait: Option<Duration>,
        reason: String,
    },
    /// The server's answer is final. `status` is 0 when it was no answer.
    Final { status: u16, reason: String },
    /// The caller wants no more.
    Stopped,
}

impl Trouble {
    pub fn again(reason: impl ToString) -> Trouble {
        Trouble::Again {
            wait: None,
            reason: reason.to_string(),
        }
    }

    pub fn finally(reason: impl ToString) -> Trouble {
        Trouble::Final {
            status: 0,
            reason: reason.to_string(),
        }
    }
}

/// Counts tries in vain; each waits twice as long as the one before.
pub struct Patience {
    first_wait: Duration,
    tries: u32,
}

const MOST_TRIES: u32 = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The hub counts requests in windows of five minutes.
const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(310);

impl Patience {
    pub fn new(first_wait: Duration) -> Patience {
        Patience {
            first_wait,
            tries: 0,
        }
    }

    /// Something came: the tries before were not in vain.
    pub fn progressed(&mut self) {
        self.tries = 0;
    }

    /// How long to wait before the next try; the trouble itself when there shall be none.
    pub fn wait_after(&mut self, trouble: Trouble) -> Result<Duration, Trouble> {
        let Trouble::Again { wait, reason } = trouble else {
            return Err(trouble);
        };
        self.tries += 1;
        if self.tries >= MOST_TRIES {
            return Err(Trouble::finally(format!(
                "gave up after {MOST_TRIES} tries: {reason}"
            )));
        }
        let own = self.first_wait * 2u32.pow(self.tries - 1);
        Ok(match wait {
            Some(asked) => asked.clamp(self.first_wait.min(own), LONGEST_ASKED_WAIT),
            None => own.min(LONGEST_WAIT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_until_patience_ends() {
        let mut patience = Patience::new(Duration::from_millis(100));
        let waits: Vec<_> = (0..3)
            .map(|_| patience.wait_after(Trouble::again("cut")).unwrap())
            .collect();
        assert_eq!(waits, [100, 200, 400].map(Duration::from_millis));
        for _ in 3..MOST_TRIES - 1 {
            patience.wait_after(Trouble::again("cut")).unwrap();
        }
        assert!(matches!(
            patience.wait_after(Trouble::again("cut")),
            Err(Trouble::Final { .. })
        ));
    }

    #[test]
    fn waits_as_long_as_the_server_asks_within_reason() {
        let mut patience = Patience::new(Duration::from_millis(100));
        let mut asked = |seconds| {
            let trouble = Trouble::Again {
                wait: Some(Duration::from_secs(seconds)),
                reason: String::new(),
            };
            patience.wait_after(trouble).unwrap()
        };
        assert_eq!(asked(7), Duration::from_secs(7));
        assert_eq!(asked(100_000), LONGEST_ASKED_WAIT);
        assert_eq!(asked(0), Duration::from_millis(100));
    }

    #[test]
    fn a_final_answer_is_not_asked_for_again() {
        let mut patience = Patience::new(Duration::ZERO);
        assert!(patience.wait_after(Trouble::finally("no")).is_err());
    }
}
