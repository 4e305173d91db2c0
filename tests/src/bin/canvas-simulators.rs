//! The simulators of all providers, for use by hand and by programs in other processes (`tests/sdk`).
//!
//! **Guarantee.** The output is shell code: `export` lines with the address and the key of each simulator, comments that explain
//! how to point a service at them, and `# ready` as the last line, once all of them listen. They keep their state in memory and
//! run until the process is stopped (Ctrl-C, SIGTERM) or, with `--until-eof`, until standard input is closed, which also happens
//! when the parent process dies.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use testkit::providers::{FailureMode, SIMULATOR_KEY, Simulator, Vendor};

/// The comments that explain how to point a service at the simulators.
const HOW: &str = r#"
# Point a saved connection of an account at one (after `source .local/env` of deploy/local/up):
#   printf %s "$SIMULATOR_KEY" | "$CANVAS_GATEWAY_BIN" admin connection create --account demo@example.com \
#     --provider openai --name simulated --api-key-stdin --base-url "$SIMULATOR_OPENAI_URL"
# Put one in the place of the embedded runtime, when the service starts:
#   CANVAS_MANAGED_URL=$SIMULATOR_COMPATIBLE_URL CANVAS_MANAGED_PROTOCOL=openai deploy/local/up
#   CANVAS_MANAGED_URL=$SIMULATOR_COMFY_URL CANVAS_MANAGED_PROTOCOL=comfy deploy/local/up"#;

#[derive(Parser)]
#[command(about = "Simulates every provider on loopback", after_help = failure_modes())]
struct CommandLine {
    /// First of the ports, two for each simulator in the order of the output. Without it, free ports are used.
    #[arg(long)]
    port: Option<u16>,
    /// Duration of all work in seconds.
    #[arg(long, default_value_t = 0.0, value_parser = seconds)]
    latency: f64,
    /// Simulators that use HTTPS, comma separated.
    #[arg(long, value_delimiter = ',', value_parser = names(), requires = "authorities")]
    https: Vec<String>,
    /// Directory for the certificate authorities of the simulators that use HTTPS, each as <name>.pem.
    #[arg(long)]
    authorities: Option<PathBuf>,
    /// Stop when standard input is closed.
    #[arg(long)]
    until_eof: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| Duration::try_from_secs_f64(*seconds).is_ok());
    seconds.ok_or_else(|| "expected a number of seconds".to_owned())
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Vendor::ALL.iter().map(|vendor| vendor.name()))
}

fn failure_modes() -> String {
    let names = FailureMode::ALL.map(|(name, _)| name).join(", ");
    format!("A prompt that contains [[sim:NAME]] causes the failure NAME: {names}")
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let line = CommandLine::parse();
    let mut running = Vec::new();
    println!("export SIMULATOR_KEY='{SIMULATOR_KEY}'");
    for (index, vendor) in Vendor::ALL.iter().enumerate() {
        running.push(start(&line, index, *vendor).await);
    }
    println!("{HOW}\n# ready");
    if line.until_eof {
        // Blocks this thread, which has nothing else to do.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    } else {
        std::future::pending::<()>().await;
    }
}

async fn start(line: &CommandLine, index: usize, vendor: Vendor) -> Simulator {
    let name = vendor.name();
    let offset = u16::try_from(2 * index).expect("a few simulators");
    let ports = line.port.map_or([0, 0], |first| [first.saturating_add(offset), first.saturating_add(offset + 1)]);
    let https = line.https.iter().any(|wanted| wanted == name);
    let simulator = Simulator::start_at(vendor, https, ports).await;
    let simulator = simulator.unwrap_or_else(|error| panic!("{name} cannot listen on {ports:?}: {error}"));
    simulator.take(Duration::from_secs_f64(line.latency));
    let variable = name.to_ascii_uppercase().replace('-', "_");
    println!("export SIMULATOR_{variable}_URL='{}'", simulator.url());
    if let (Some(directory), Some(pem)) = (&line.authorities, simulator.ca_pem()) {
        std::fs::write(directory.join(format!("{name}.pem")), pem).expect("writes the certificate of an authority");
    }
    simulator
}
