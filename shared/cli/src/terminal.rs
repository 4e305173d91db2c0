//! Images in a terminal.

use std::env;
use std::io::{IsTerminal, stderr};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::context::typed;
use crate::failure::{Outcome, usage};

/// How a terminal shows images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graphics {
    /// The graphics protocol of kitty, which Ghostty, WezTerm and Konsole have, too.
    Kitty,
    /// Inline images of iTerm2.
    Iterm,
}

/// Bytes of a part of an image in kitty's protocol.
const PART_BYTES: usize = 4096;

impl Graphics {
    /// The protocol of this process's terminal, by its environment. `None` within a multiplexer, which drops images.
    pub fn of_environment() -> Option<Self> {
        let has = |name: &str| env::var_os(name).is_some();
        let term = env::var("TERM").unwrap_or_default();
        let program = env::var("TERM_PROGRAM").unwrap_or_default();
        if has("TMUX") || has("STY") {
            return None;
        }
        match () {
            () if term.contains("kitty") || term.contains("ghostty") || has("KITTY_WINDOW_ID") => Some(Graphics::Kitty),
            () if ["WezTerm", "ghostty"].contains(&program.as_str()) => Some(Graphics::Kitty),
            () if program == "iTerm.app" => Some(Graphics::Iterm),
            () => None,
        }
    }

    /// The characters that show a PNG.
    pub fn show(self, png: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(png);
        match self {
            Graphics::Iterm => format!("\x1b]1337;File=inline=1;size={}:{text}\x07\n", png.len()),
            Graphics::Kitty => {
                let parts: Vec<&str> =
                    text.as_bytes().chunks(PART_BYTES).filter_map(|part| std::str::from_utf8(part).ok()).collect();
                let last = parts.len().saturating_sub(1);
                let commands = parts.iter().enumerate().map(|(at, part)| {
                    let head = if at == 0 { "f=100,a=T," } else { "" };
                    format!("\x1b_G{head}m={};{part}\x1b\\", u8::from(at < last))
                });
                commands.chain(["\n".to_owned()]).collect()
            }
        }
    }
}

/// Ends the line of a question and turns the echo of the terminal on when it is dropped.
struct Echo;

impl Drop for Echo {
    fn drop(&mut self) {
        eprintln!();
        let _ = Command::new("stty").arg("echo").status();
    }
}

/// Asks for a secret on the terminal that standard input is, without an echo. Fails with the advice `otherwise` when standard error
/// is no terminal, where the question would not be seen.
pub async fn secret(question: &str, otherwise: &str) -> Outcome<String> {
    if !stderr().is_terminal() {
        return usage(format!("standard error is not a terminal to ask on: {otherwise}"));
    }
    eprint!("{question}: ");
    // An interrupt drops this future while the line is read with the echo off, and nothing else turns it on again.
    let echo = Echo;
    let line = typed(|_| console::Term::stderr().read_secure_line()).await;
    std::mem::forget(echo);
    Ok(line?.trim().to_owned())
}

/// An address that a terminal can open (OSC 8).
pub fn link(url: &str) -> String {
    format!("\x1b]8;;{url}\x1b\\{url}\x1b]8;;\x1b\\")
}

/// Opens an address in the browser of this machine; `false` when there is none.
pub fn browse(url: &str) -> bool {
    let open = |program: &str| {
        let mut command = Command::new(program);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    };
    ["xdg-open", "open"].into_iter().any(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_sent_whole_in_parts_that_say_whether_more_follow() {
        let png = vec![7; 8000];
        let shown = Graphics::Kitty.show(&png);
        let parts: Vec<&str> = shown.trim_end().split("\x1b\\").filter(|part| !part.is_empty()).collect();
        let heads: Vec<&str> = parts.iter().map(|part| part.split(';').next().expect("a head")).collect();
        assert_eq!(heads, ["\x1b_Gf=100,a=T,m=1", "\x1b_Gm=1", "\x1b_Gm=0"]);
        let text: String = parts.iter().map(|part| part.split_once(';').expect("data").1).collect();
        assert_eq!(BASE64_STANDARD.decode(text).expect("base64"), png);
        assert!(Graphics::Iterm.show(&png).starts_with("\x1b]1337;File=inline=1;size=8000:"));
    }
}
