//! `forge serve`.

use super::report::{open_in_browser, parse_zone};
use crate::context::Context;
use crate::error::CommandError;
use crate::mcp::http::{self, AccessToken, HttpLimits};
use crate::mcp::runtime;
use crate::serve::PageServer;
use crate::verb::{OpenedStore, PrintedReport, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_report::PageZone;
use std::net::SocketAddr;
use tokio::sync::watch;

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Port on this machine; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Open the pages in a browser
    #[arg(long)]
    pub open: bool,

    /// Zone of the times: utc, local or a distance from UTC such as +01:00
    #[arg(long, value_name = "ZONE", default_value = "local", value_parser = parse_zone)]
    pub zone: PageZone,
}

impl Verb for ServeArgs {
    const NAME: &'static str = "serve";
    type Opened = OpenedStore;
    type Report = PrintedReport;
    const ACCESS: StoreAccess = StoreAccess::Follow;

    fn check(&self, context: &Context) -> Result<(), CommandError> {
        if context.global.json {
            return Err(CommandError::invalid("'forge serve' serves pages, and has no JSON")
                .hinted("'forge story --json' has what the pages say"));
        }
        Ok(())
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let redactor = workspace::redactor(context).unwrap_or_default();
        let (store, zone) = (opened.store.clone(), self.zone);
        let runtime = runtime()?;
        runtime.block_on(async {
            let loopback = SocketAddr::from(([127, 0, 0, 1], self.port));
            let (listener, address) = http::listen(loopback).await?;
            let (stop, stopping) = watch::channel(false);
            let access = (AccessToken::new()?, address.port());
            let server = PageServer::new(store, redactor, zone, access, stopping);
            let start = server.start_address();
            context.out.print_notice(&format!("serving on {start}"));
            if self.open {
                open_in_browser(context, &start);
            }
            let stopped = async move {
                super::mcp::stop_signal().await;
                // Open pages keep their connections to wait for events. This ends them, so that the
                // server can stop.
                let _ = stop.send(true);
            };
            http::serve(listener, server.router(), HttpLimits::default(), stopped).await;
            Ok(PrintedReport)
        })
    }
}
