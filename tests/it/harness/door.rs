//! A listener whose connections can all be cut.

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// Serves whoever comes until `stop`. All connections that are open end when `cut` changes.
pub(crate) async fn open<F>(
    listener: TcpListener,
    cut: watch::Receiver<u64>,
    stop: CancellationToken,
    serve: impl Fn(TcpStream) -> F,
) where
    F: Future<Output: Send> + Send + 'static,
{
    // Dropping the set ends every connection.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else { continue };
        let (served, mut cut) = (serve(stream), cut.clone());
        cut.mark_unchanged();
        connections.spawn(async move {
            tokio::select! {
                _ = cut.changed() => {}
                _ = served => {}
            }
        });
    }
}
