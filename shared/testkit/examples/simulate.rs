//! Runs provider simulators for clients in other processes: `simulate openai fal=https …` prints a line
//! `<name> <base URL> <CA file or ->` for each, then runs until its standard input ends.

use std::io::Read;

use testkit::providers::{Simulator, Vendor};

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("starts a runtime");
    let running: Vec<Simulator> = std::env::args().skip(1).map(|argument| runtime.block_on(start(&argument))).collect();
    // Whoever started us ends us by closing the pipe, also when it dies.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    drop(running);
}

async fn start(argument: &str) -> Simulator {
    let (name, https) = argument.strip_suffix("=https").map_or((argument, false), |name| (name, true));
    let vendor = Vendor::ALL.into_iter().find(|(known, _)| *known == name);
    let (_, vendor) = vendor.unwrap_or_else(|| panic!("no simulator is called {name}"));
    let simulator = if https { Simulator::start_https(vendor).await } else { Simulator::start(vendor).await };
    let ca = match simulator.ca_pem() {
        Some(pem) => {
            let file = std::env::temp_dir().join(format!("simulate-{name}-{}.pem", std::process::id()));
            std::fs::write(&file, pem).expect("writes the CA file");
            file.display().to_string()
        }
        None => "-".to_owned(),
    };
    println!("{name} {} {ca}", simulator.url());
    simulator
}
