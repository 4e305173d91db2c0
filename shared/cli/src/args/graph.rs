//! Arguments of what changes a canvas.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use domain::graph::{Purpose, Role};

use super::operations::kinds;
use super::{On, one_of};

#[derive(Args)]
pub struct Apply {
    /// A file with the body of the operations route, or its array of operations; - is standard input
    #[arg(required_unless_present = "example")]
    pub file: Option<PathBuf>,
    /// Print a body with an operation of this kind, and do nothing
    #[arg(long, value_name = "KIND", value_parser = kinds(), conflicts_with_all = ["file", "dry_run", "rebase", "force"])]
    pub example: Option<String>,
    #[command(flatten)]
    pub write: Write,
}

/// Options of every batch.
#[derive(Args, Clone)]
pub struct Write {
    #[command(flatten)]
    pub on: On,
    /// Say what would change and which findings it would have, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Apply it also when others changed the canvas, as long as they did not touch what it reads or writes
    #[arg(long)]
    pub rebase: bool,
    /// Apply it in spite of blocking findings
    #[arg(long)]
    pub force: bool,
}

#[derive(Subcommand)]
pub enum Node {
    /// Add a node
    Add(NodeAdd),
    /// Change a node
    Set(NodeSet),
    /// Move a node
    Move {
        /// The node
        node: String,
        /// Left edge
        #[arg(allow_negative_numbers = true)]
        x: f64,
        /// Upper edge
        #[arg(allow_negative_numbers = true)]
        y: f64,
        /// Move the members of a Section with it
        #[arg(long)]
        with_members: bool,
        #[command(flatten)]
        write: Write,
    },
    /// Delete nodes
    Rm {
        /// The nodes; - is standard input
        #[arg(required = true)]
        nodes: Vec<String>,
        #[command(flatten)]
        write: Write,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub enum NodeKind {
    Text,
    Sticky,
    Image,
    Video,
}

#[derive(Args)]
pub struct NodeAdd {
    /// Its type
    pub kind: NodeKind,
    /// Title
    #[arg(long)]
    pub title: Option<String>,
    /// Text of a text node or sticky; - is standard input
    #[arg(long)]
    pub text: Option<String>,
    /// Image of an image node, or video of a video node: an asset, a file or an https: URL
    #[arg(long, value_name = "PICTURE")]
    pub asset: Option<String>,
    /// What an image or video shows, for those who cannot see it; empty if it is decorative
    #[arg(long, value_name = "TEXT")]
    pub alt: Option<String>,
    #[command(flatten)]
    pub position: Position,
    /// Width
    #[arg(long)]
    pub width: Option<f64>,
    /// Height
    #[arg(long)]
    pub height: Option<f64>,
    #[command(flatten)]
    pub write: Write,
}

/// Where something goes. Without any of these, the service chooses a free place.
#[derive(Args, Clone)]
pub struct Position {
    /// Left edge
    #[arg(long, allow_negative_numbers = true, requires = "y")]
    pub x: Option<f64>,
    /// Upper edge
    #[arg(long, allow_negative_numbers = true, requires = "x")]
    pub y: Option<f64>,
    /// Near this node
    #[arg(long, value_name = "NODE")]
    pub near: Option<String>,
    /// In this Section
    #[arg(long, value_name = "NODE")]
    pub section: Option<String>,
}

#[derive(Args)]
pub struct NodeSet {
    /// The node
    pub node: String,
    /// New title
    #[arg(long)]
    pub title: Option<String>,
    /// New text; - is standard input
    #[arg(long)]
    pub text: Option<String>,
    /// What the image or video shows, for those who cannot see it; empty if it is decorative
    #[arg(long, value_name = "TEXT")]
    pub alt: Option<String>,
    /// New width
    #[arg(long)]
    pub width: Option<f64>,
    /// New height
    #[arg(long)]
    pub height: Option<f64>,
    #[command(flatten)]
    pub write: Write,
}

#[derive(Args)]
pub struct Connect {
    /// The node it starts at
    pub from: String,
    /// The node it ends at
    pub to: String,
    /// What it is for
    #[arg(long, default_value = "flow", value_parser = one_of(Purpose::ALL, Purpose::as_str))]
    pub purpose: String,
    /// What a reference is for
    #[arg(long, value_parser = one_of(Role::ALL, Role::as_str))]
    pub role: Option<String>,
    #[command(flatten)]
    pub write: Write,
}

#[derive(Args)]
pub struct Disconnect {
    /// The connections; - is standard input
    #[arg(required = true)]
    pub connections: Vec<String>,
    #[command(flatten)]
    pub write: Write,
}
