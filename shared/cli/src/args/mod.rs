//! The arguments of the command line.

mod examples;
mod graph;
mod library;
mod operations;
mod work;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use domain::canvas::Theme;

pub use graph::*;
pub use library::*;
pub use operations::example;
pub use work::*;

/// Work with canvases of Canvas Service
///
/// Things are named by their handles, ids, short names (n12) and titles, or by the beginning of an id or title (4 characters) that only
/// one of them has. A canvas also has the URL of its page.
#[derive(Parser)]
#[command(name = "canvas", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub struct Arguments {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUS: &str = "\
Exit status: 0 done, 1 the work failed or was canceled, or the review says no, 2 usage, 3 refused input, \
4 credential or role, 5 not found, 6 conflict, 7 funds, 8 unreachable or busy after retries, 9 still running at the \
timeout, 130 interrupted. An interruption never cancels work.";

/// The heading of the options of every command, which come after those of the command itself.
const EVERY: &str = "Options of every command";

/// Options of every command.
#[derive(Args)]
pub struct Global {
    /// Print the service's answer as JSON, and errors as JSON on standard error
    #[arg(long, global = true, help_heading = EVERY)]
    pub json: bool,
    /// Print only the handles of what is made or listed, one a line, and no progress
    #[arg(long, short, global = true, help_heading = EVERY)]
    pub quiet: bool,
    /// Profile of the configuration to use
    #[arg(long, global = true, help_heading = EVERY, value_name = "NAME", env = "CANVAS_PROFILE")]
    pub profile: Option<String>,
    /// Address of the service, for example https://canvas.example.com
    #[arg(long, global = true, help_heading = EVERY, value_name = "URL", env = "CANVAS_BASE_URL")]
    pub base_url: Option<String>,
    /// Whether the address is an argument, and the profile comes from the environment, over which arguments take precedence.
    #[arg(skip)]
    pub address_precedes_profile: bool,
}

impl Arguments {
    /// Parses the arguments of the process.
    ///
    /// # Errors
    ///
    /// If they are not understood, or ask for help.
    pub fn from_env() -> Result<Self, clap::Error> {
        let matches = command().try_get_matches().map_err(with_hint)?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        arguments.global.address_precedes_profile = matches.value_source("base_url") == Some(ValueSource::CommandLine)
            && matches.value_source("profile") == Some(ValueSource::EnvVariable);
        Ok(arguments)
    }
}

/// The command line with the examples of its commands.
pub fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}

/// Words for which there is another command, or that are only for people in the console.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["rm", "delete", "remove"],
        "'canvas node rm' deletes nodes; canvases and assets are deleted in the console ('canvas open' opens it)",
    ),
    (&["share", "members", "invite"], "canvases are shared in the console: 'canvas open' opens it"),
    (&["token", "tokens"], "tokens are made and revoked in the console, under Settings"),
    (
        &["copy", "cp", "duplicate"],
        "an operation node.duplicate copies a node: 'canvas apply --example node.duplicate'",
    ),
];

/// Adds to the error about an unknown command what there is instead.
fn with_hint(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some((_, hint)) = HINTS.iter().find(|(names, _)| names.contains(&name.as_str())) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*hint).into()]));
    }
    error
}

/// A parser of the names in a list of values.
fn one_of<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> PossibleValuesParser {
    all.iter().map(|it| name(*it)).collect::<Vec<_>>().into()
}

#[derive(Subcommand)]
pub enum Command {
    /// Sign in to a service in the browser, or store a token of it
    Login(Login),
    /// End the access of a profile and forget it
    Logout,
    /// Show whose token is used, what it may do and the balance
    Whoami,
    /// Show the balance and the budgets of the token
    Credits,
    /// List connections to providers of models
    #[command(subcommand)]
    Connection(Connection),
    /// Choose between stored services
    #[command(subcommand)]
    Profile(Profile),
    /// Check the address, the clock, the token and the versions
    Doctor,
    /// List canvases
    #[command(aliases = ["ls", "boards"])]
    List(Listing),
    /// Make a canvas
    New(New),
    /// Rename a canvas
    Rename(Rename),
    /// Find canvases, nodes of a canvas, assets and Elements that contain a text
    Find(Find),
    /// Write a canvas to a folder: its document and render, and the files that it shows
    Export(Export),
    /// Use a canvas where none is named, and show which one
    Use(Use),
    /// Open a canvas in a browser
    Open(OnCanvas),
    /// Show a canvas as text
    Show(Show),
    /// Show a canvas as an image
    View(View),
    /// Apply a batch of operations to a canvas
    Apply(Apply),
    /// Add, change, move or delete nodes
    #[command(subcommand)]
    Node(Node),
    /// Connect two nodes
    Connect(Connect),
    /// Delete connections
    Disconnect(Disconnect),
    /// Follow canvases and runs until nothing runs
    Watch(Watch),
    /// Show the findings of a canvas, and whether it may be called done
    Review(OnCanvas),
    /// Upload, download and list images
    #[command(subcommand)]
    Asset(Asset),
    /// List and run Image Actions
    #[command(subcommand)]
    Action(Action),
    /// Generate images from a prompt
    Generate(Generate),
    /// Edit images with a prompt
    Edit(Edit),
    /// Make variations of an image
    Vary(Vary),
    /// Generate a video
    Video(Video),
    /// List, run and copy Recipes
    #[command(subcommand)]
    Recipe(Recipe),
    /// List models
    #[command(subcommand)]
    Model(Model),
    /// List, show, wait for and cancel runs
    #[command(subcommand)]
    Run(Run),
    /// Keep reusable Elements
    #[command(subcommand)]
    Element(Element),
    /// Keep collections of Elements
    #[command(subcommand)]
    Collection(Collection),
    /// Import images from the web
    #[command(subcommand)]
    Import(Import),
    /// Send any request
    Api(Api),
    /// Send the webhooks of your runs to a local address
    Listen(Listen),
    /// List and replay the deliveries of your webhooks, or send one to a local address
    #[command(subcommand, alias = "webhooks")]
    Webhook(Webhook),
    /// Serve the tools for AI agents (MCP) on standard input and output
    Mcp {
        /// The directory whose files the tools may read; the present one without it
        #[arg(long, value_name = "DIRECTORY", default_value = ".")]
        root: PathBuf,
    },
    /// Give agents the skills for the tools
    #[command(subcommand)]
    Skills(Skills),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write manual pages
    Man {
        /// Where to write them; the page of canvas itself goes to standard output without it
        #[arg(value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
    },
}

#[derive(Args)]
pub struct Login {
    /// Show a code to type in a browser on another machine
    #[arg(long)]
    pub device: bool,
    /// Read an agent token from standard input instead
    #[arg(long, conflicts_with = "device")]
    pub token_stdin: bool,
}

#[derive(Subcommand)]
pub enum Profile {
    /// List the profiles
    List,
    /// Use a profile from now on
    Use {
        /// Its name
        name: String,
    },
}

#[derive(Subcommand)]
pub enum Skills {
    /// Copy the skills to a directory, in place of earlier copies
    Install {
        /// The directory of an agent's skills; each skill is a folder in it
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
    },
}

#[derive(Args)]
pub struct Listing {
    /// Read all pages; with --json, one item a line
    #[arg(long)]
    pub all: bool,
    /// Items of a page
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// The page after another one
    #[arg(long, allow_hyphen_values = true, value_name = "CURSOR", conflicts_with = "all")]
    pub cursor: Option<String>,
}

#[derive(Args)]
pub struct New {
    /// Title
    pub title: String,
    /// Id of the canvas, instead of one that is made up
    #[arg(long)]
    pub id: Option<String>,
    /// Make it a canvas of type agent
    #[arg(long)]
    pub agent: bool,
}

/// The canvas that a command works on.
#[derive(Args, Clone)]
pub struct On {
    /// The canvas; without it, the one of `canvas use`
    #[arg(long, value_name = "CANVAS", env = "CANVAS_ON")]
    pub on: Option<String>,
}

/// The canvas that a command shows.
#[derive(Args)]
pub struct OnCanvas {
    /// The canvas; without it, the one of `canvas use`
    #[arg(value_name = "CANVAS", env = "CANVAS_ON")]
    pub on: Option<String>,
}

#[derive(Args)]
pub struct Rename {
    /// The canvas
    pub canvas: String,
    /// New title
    pub title: String,
}

#[derive(Args)]
pub struct Find {
    /// The text
    pub text: String,
    #[command(flatten)]
    pub on: On,
}

#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    pub canvas: OnCanvas,
    /// The folder
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
}

#[derive(Subcommand)]
pub enum Connection {
    /// List the connections
    List(Listing),
}

#[derive(Args)]
pub struct Use {
    /// The canvas
    pub canvas: Option<String>,
    /// Use none any more
    #[arg(long, conflicts_with = "canvas")]
    pub none: bool,
}

#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    pub canvas: OnCanvas,
    /// Only this Section and its members
    #[arg(long, value_name = "NODE")]
    pub section: Option<String>,
    /// With the ids of nodes, connections and assets
    #[arg(long)]
    pub ids: bool,
    /// The next page of a long outline
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[derive(Args)]
pub struct View {
    #[command(flatten)]
    pub canvas: OnCanvas,
    /// Write the PNG to this file or folder; - is standard output
    #[arg(long, short, value_name = "FILE|DIR|-")]
    pub output: Option<PathBuf>,
    /// Only this Section
    #[arg(long, value_name = "NODE", conflicts_with = "nodes")]
    pub section: Option<String>,
    /// Only these nodes
    #[arg(long = "node", value_name = "NODE")]
    pub nodes: Vec<String>,
    /// Width in pixels, 256 to 2048
    #[arg(long, value_name = "PIXELS")]
    pub width: Option<u32>,
    /// Number the nodes, and print which number is which node
    #[arg(long)]
    pub labels: bool,
    /// Colors; light without it
    #[arg(long, value_parser = one_of(Theme::ALL, Theme::as_str))]
    pub theme: Option<String>,
}

#[derive(Args)]
pub struct Watch {
    /// Canvases, runs and jobs, - for those on standard input; all of your runs without any
    pub subjects: Vec<String>,
    /// Give up after this time
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
}
