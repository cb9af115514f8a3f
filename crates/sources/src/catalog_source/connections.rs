//! Connections to a server of ours, so many at the same time and no more: each costs memory, and
//! whoever reaches the port may open them.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tonic::transport::server::{Connected, TcpConnectInfo};

/// One connection, and its place among those that may be there.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

/// What comes in, `max` at the same time. One more is closed at once, so that its sender notices and
/// tries again later.
pub(super) fn at_most(
    max: usize,
    listener: TcpListener,
) -> impl Stream<Item = io::Result<Connection>> {
    let places = Arc::new(Semaphore::new(max));
    stream::unfold((listener, places), async |(listener, places)| {
        loop {
            let accepted = listener.accept().await;
            let stream =
                match accepted.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream)) {
                    Ok(stream) => stream,
                    Err(error) => return Some((Err(error), (listener, places))),
                };
            if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
                return Some((Ok(Connection { stream, _place: place }), (listener, places)));
            }
        }
    })
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn one_too_many_is_closed_and_one_that_left_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut incoming = std::pin::pin!(at_most(1, listener));
        let _one = TcpStream::connect(address).await.unwrap();
        let first = incoming.next().await.unwrap().unwrap();
        let mut another = TcpStream::connect(address).await.unwrap();
        let mut byte = [0];
        tokio::select! {
            taken = incoming.next() => panic!("one too many: {taken:?}"),
            read = another.read(&mut byte) => assert_eq!(read.unwrap(), 0),
        }
        drop(first);
        let _later = TcpStream::connect(address).await.unwrap();
        incoming.next().await.unwrap().unwrap();
    }
}
