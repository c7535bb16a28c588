//! `forge mcp`.

use crate::context::Context;
use crate::error::CommandError;
use crate::mcp::http::{self, AccessToken, HttpLimits};
use crate::mcp::work_queue::WorkQueue;
use crate::mcp::{ForgeServer, ServerSetup, line_transport, runtime};
use crate::verb::{PrintedReport, Verb, VerbResult};
use std::net::SocketAddr;

/// The environment variable with the token of an HTTP server.
const TOKEN: &str = "FORGE_MCP_TOKEN";
/// The minimum length of a token, in bytes.
const TOKEN_BYTES: usize = 16;

#[derive(Debug, clap::Args)]
pub struct McpArgs {
    /// Loopback address for HTTP, instead of standard input and output; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    pub http: Option<SocketAddr>,
}

impl Verb for McpArgs {
    const NAME: &'static str = "mcp";
    type Opened = ();
    type Report = PrintedReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let (global, environment) = (context.global.clone(), context.environment.clone());
        let forge = ForgeServer::new(ServerSetup { global, environment }, WorkQueue::start());
        let runtime = runtime()?;
        let Some(address) = self.http else {
            let served = runtime.block_on(async {
                tokio::select! {
                    served = line_transport::serve(forge, tokio::io::stdin(), tokio::io::stdout()) => served,
                    () = stop_signal() => Ok(()),
                }
            });
            // A pending read of standard input must not keep the process alive.
            runtime.shutdown_background();
            return served.map(|()| PrintedReport);
        };
        runtime.block_on(async {
            let (listener, address) = http::listen(address).await?;
            let token = match context.environment.text(TOKEN) {
                Some(token) if token.len() < TOKEN_BYTES => {
                    let text = format!("{TOKEN} has fewer than {TOKEN_BYTES} bytes");
                    return Err(CommandError::invalid(text)
                        .hinted("choose a longer one, or leave it out: then one is made"));
                }
                Some(token) => AccessToken::Bearer(token.into()),
                None => AccessToken::new()?,
            };
            announce_address(context, address, &token);
            let limits = HttpLimits::default();
            http::serve(
                listener,
                http::router(forge, address, token, limits),
                limits,
                stop_signal(),
            )
            .await;
            Ok(PrintedReport)
        })
    }
}

/// Prints to stderr where the server listens, and the token if it was generated.
fn announce_address(context: &Context, address: SocketAddr, token: &AccessToken) {
    let url = format!("http://{address}{}", http::PATH);
    let made = context.environment.text(TOKEN).is_none();
    let token = match token {
        AccessToken::Bearer(token) if made => format!(" with 'Authorization: Bearer {token}'"),
        AccessToken::Bearer(_) => format!(" with the token in {TOKEN}"),
        AccessToken::None => String::new(),
    };
    context.out.print_notice(&format!("listening on {url}{token}"));
}

/// Completes when the process receives SIGINT or SIGTERM.
pub(super) async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
