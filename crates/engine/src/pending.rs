//! A decided operation whose answer waits for the disk.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use store::Ticket;

use crate::{Error, Result};

/// Resolves to the answer once everything it depends on is durable. Await it or wait for it;
/// dropping it changes nothing about what was decided.
pub struct Pending<T> {
    ticket: Option<Ticket>,
    answer: Option<Result<T>>,
}

impl<T> Pending<T> {
    /// An answer that depends on a commit.
    pub(crate) fn after(ticket: Ticket, answer: Result<T>) -> Pending<T> {
        Pending { ticket: Some(ticket), answer: Some(answer) }
    }

    /// An answer that depends on nothing.
    pub(crate) fn ready(answer: Result<T>) -> Pending<T> {
        Pending { ticket: None, answer: Some(answer) }
    }

    /// Has its commit begun, though it will not be waited for at once.
    pub fn begin(&mut self) {
        self.ticket.iter_mut().for_each(Ticket::begin);
    }

    /// Does what its commit waits for on this thread, unless somebody is at it.
    pub(crate) fn help(&mut self) {
        self.ticket.iter_mut().for_each(Ticket::help);
    }

    /// Blocks the thread until the answer is there.
    pub fn wait(mut self) -> Result<T> {
        if let Some(ticket) = self.ticket.take() {
            ticket.wait().map_err(Error::from)?;
        }
        self.answer.take().expect("an answer is taken once")
    }
}

impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(ticket) = &mut self.ticket {
            match Pin::new(ticket).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) => self.ticket = None,
            }
        }
        Poll::Ready(self.answer.take().expect("a future is not polled after it is ready"))
    }
}
