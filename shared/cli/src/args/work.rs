//! Arguments of what runs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::action::Medium;
use domain::job::{JobStatus, MaskMode, RunKind};

use super::{Listing, On, Position, one_of};

#[derive(Subcommand)]
pub enum Action {
    /// List the Actions
    List {
        /// What they read; images without it
        #[arg(long, value_parser = one_of(Medium::ALL, Medium::as_str))]
        medium: Option<String>,
        #[command(flatten)]
        search: Search,
    },
    /// Show an Action and its parameters
    Show {
        /// Its key, for example resize
        action: String,
    },
    /// Run an Action, or several in a row, each on what the one before it made
    Run {
        /// Its key, for example resize
        action: String,
        /// Images, or a video: nodes, assets, files or https: URLs; - is standard input. With --with, --then, or more than the Action reads, each gets a result of its own
        #[arg(required = true)]
        inputs: Vec<String>,
        /// A parameter, as name=value
        #[arg(long = "param", short, value_name = "NAME=VALUE")]
        params: Vec<String>,
        /// The second image of an Action that reads two
        #[arg(long, value_name = "PICTURE")]
        with: Option<String>,
        /// The next Action, as {"action": …, "params": {…}, "with": …}; repeat it for more
        #[arg(long, value_name = "JSON")]
        then: Vec<String>,
        /// The empty image node that receives the result, instead of a new one; one for each result
        #[arg(long = "target", value_name = "NODE", conflicts_with_all = ["x", "y", "near", "section"])]
        targets: Vec<String>,
        #[command(flatten)]
        position: Position,
        #[command(flatten)]
        start: Box<CanvasStart>,
    },
}

/// Options of every list that can be searched.
#[derive(Args)]
pub struct Search {
    /// Only what contains this text
    #[arg(long, short, value_name = "TEXT")]
    pub search: Option<String>,
    #[command(flatten)]
    pub listing: Listing,
}

/// Options of every start of work.
#[derive(Args)]
pub struct Start {
    /// Say what it would cost, and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Agree to every price up to this, and start nothing that costs more
    #[arg(long, value_name = "CREDITS")]
    pub max_credits: Option<u64>,
    /// Agree to the price
    #[arg(long, short)]
    pub yes: bool,
    /// Start it once more, for a new charge, also when the same command was run before
    #[arg(long)]
    pub new_attempt: bool,
    /// Print the run and return without waiting for it
    #[arg(long)]
    pub no_wait: bool,
    /// Give up waiting after this time; the work goes on
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Write what is made to a file or folder, too; - is standard output
    #[arg(long, short, value_name = "FILE|DIR|-", conflicts_with_all = ["no_wait", "dry_run"])]
    pub output: Option<PathBuf>,
}

/// Options of every start of work on a canvas.
#[derive(Args)]
pub struct CanvasStart {
    #[command(flatten)]
    pub on: On,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Args)]
pub struct Generate {
    /// What to make; - is standard input
    #[arg(long, value_name = "TEXT", required_unless_present = "prompt_node")]
    pub prompt: Option<String>,
    /// The text node or sticky that holds the prompt
    #[arg(long, value_name = "NODE", conflicts_with = "prompt")]
    pub prompt_node: Option<String>,
    /// An image to use: a node, an asset, a file or an https: URL, with =ROLE after it if it has one
    #[arg(long = "reference", short, value_name = "PICTURE[=ROLE]")]
    pub references: Vec<String>,
    #[command(flatten)]
    pub options: GenerationOptions,
}

#[derive(Args)]
pub struct Edit {
    #[command(flatten)]
    pub generate: Generate,
    /// The image to change: a node, an asset, a file or an https: URL
    #[arg(long, value_name = "PICTURE")]
    pub source: Option<String>,
    /// A mask of the source, named as the source. White changes, or what is transparent
    #[arg(long, value_name = "PICTURE", requires = "source")]
    pub mask: Option<String>,
    /// What of the mask is read
    #[arg(long, value_name = "MODE", requires = "mask", value_parser = one_of(MaskMode::ALL, MaskMode::as_str))]
    pub mask_mode: Option<String>,
    /// Change what the mask keeps, and the reverse
    #[arg(long, requires = "mask")]
    pub invert_mask: bool,
    /// Width of the transition at the edge of the mask, 0 to 64
    #[arg(long, value_name = "PIXELS", requires = "mask")]
    pub feather: Option<u32>,
    /// Take the model's image as it is, and restore nothing
    #[arg(long, requires = "mask")]
    pub no_composite: bool,
}

#[derive(Args)]
pub struct Vary {
    /// The image: a node, an asset, a file or an https: URL
    #[arg(value_name = "PICTURE")]
    pub source: String,
    #[command(flatten)]
    pub options: GenerationOptions,
}

/// Options of everything that makes images with a model.
#[derive(Args)]
pub struct GenerationOptions {
    /// The model: its handle, or its name
    #[arg(long, short)]
    pub model: Option<String>,
    /// An Element to use: element:<id>@v<n>
    #[arg(long = "element", value_name = "HANDLE")]
    pub elements: Vec<String>,
    /// Number of images, 1 to 4
    #[arg(long, short = 'n')]
    pub count: Option<u32>,
    /// Size, as the model names it
    #[arg(long)]
    pub size: Option<String>,
    /// Quality, as the model names it
    #[arg(long)]
    pub quality: Option<String>,
    /// Title of the new nodes
    #[arg(long)]
    pub title: Option<String>,
    /// Empty image nodes that receive the images, instead of new ones
    #[arg(long = "target", value_name = "NODE", conflicts_with_all = ["x", "y", "near", "section", "title"])]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub position: Position,
    #[command(flatten)]
    pub wanted: Wanted,
    #[command(flatten)]
    pub start: CanvasStart,
}

#[derive(Args)]
pub struct Wanted {
    /// Number of outputs that are wanted, if the start makes fewer: what is left is owed
    #[arg(long, value_name = "COUNT")]
    pub asked: Option<u32>,
    /// Ended run or job that this one makes up for
    #[arg(long, value_name = "RUN")]
    pub retry_of: Option<String>,
}

#[derive(Args)]
pub struct Video {
    /// What to make; - is standard input
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,
    /// The model: its handle, or its name
    #[arg(long, short)]
    pub model: String,
    /// The first frame: a node, an asset, a file or an https: URL
    #[arg(long, value_name = "PICTURE")]
    pub first_frame: Option<String>,
    /// The last frame
    #[arg(long, value_name = "PICTURE")]
    pub last_frame: Option<String>,
    /// An image to use
    #[arg(long = "reference", short, value_name = "PICTURE")]
    pub references: Vec<String>,
    /// Length
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Aspect ratio, for example 16:9
    #[arg(long, value_name = "RATIO")]
    pub aspect_ratio: Option<String>,
    /// Resolution, for example 720p
    #[arg(long)]
    pub resolution: Option<String>,
    /// Make sound, too
    #[arg(long)]
    pub audio: bool,
    /// The canvas of the nodes that are named, and of the node that receives the video; without it, the one of `canvas use`
    #[arg(long, value_name = "CANVAS", env = "CANVAS_ON")]
    pub on: Option<String>,
    /// Put the video on the canvas, in a new node; also where it goes says so
    #[arg(long)]
    pub place: bool,
    /// Put the video on the canvas, in this video node
    #[arg(long, value_name = "NODE", conflicts_with_all = ["place", "x", "y", "near", "section", "title"])]
    pub target: Option<String>,
    /// Title of the new node
    #[arg(long)]
    pub title: Option<String>,
    #[command(flatten)]
    pub position: Position,
    #[command(flatten)]
    pub wanted: Wanted,
    #[command(flatten)]
    pub start: Start,
}

#[derive(Subcommand)]
pub enum Recipe {
    /// List the Recipes
    List(Search),
    /// Show a Recipe and its ports
    Show {
        /// The Recipe
        recipe: String,
        /// One of its versions
        #[arg(long)]
        version: Option<String>,
    },
    /// Run a Recipe on a canvas
    Run {
        /// The Recipe
        recipe: String,
        /// An input, as name=value: a text, or a picture (a node, an asset, a file or an https: URL); name=- reads standard input
        #[arg(long = "input", short, value_name = "NAME=VALUE")]
        inputs: Vec<String>,
        /// One of its versions
        #[arg(long)]
        version: Option<String>,
        /// A copy of the Recipe that stands on the canvas, instead of a new one
        #[arg(long, value_name = "NODE")]
        instance: Option<String>,
        /// The model of all its images
        #[arg(long, short)]
        model: Option<String>,
        /// Near this node
        #[arg(long, value_name = "NODE")]
        near: Option<String>,
        /// In this Section
        #[arg(long, value_name = "NODE")]
        section: Option<String>,
        #[command(flatten)]
        start: CanvasStart,
    },
    /// Copy a Recipe onto a canvas
    Fork {
        /// The Recipe
        recipe: String,
        /// One of its versions
        #[arg(long)]
        version: Option<String>,
        #[command(flatten)]
        on: On,
        #[command(flatten)]
        position: Position,
    },
}

#[derive(Subcommand)]
pub enum Model {
    /// List the models
    List(Search),
    /// Show a model and its parameters
    Show {
        /// The model
        model: String,
    },
}

#[derive(Subcommand)]
pub enum Run {
    /// List runs and jobs
    List {
        /// Their kind
        #[arg(long, value_parser = one_of(RunKind::ALL, RunKind::as_str))]
        kind: Option<String>,
        /// Their status
        #[arg(long, value_parser = one_of(JobStatus::ALL, JobStatus::as_str))]
        status: Option<String>,
        /// Those that write to a canvas
        #[arg(long, value_name = "CANVAS")]
        on: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a run or job
    Show {
        /// The run or job
        run: String,
    },
    /// Wait until runs and jobs have ended
    Wait {
        /// The runs and jobs; - is standard input
        #[arg(required = true)]
        runs: Vec<String>,
        /// Give up after this time in all; the work goes on
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// Write what is made to a file or folder, too; - is standard output
        #[arg(long, short, value_name = "FILE|DIR|-")]
        output: Option<PathBuf>,
    },
    /// Cancel runs and jobs, and wait up to 10 s for their end
    Cancel {
        /// The runs and jobs; - is standard input
        #[arg(required = true)]
        runs: Vec<String>,
        /// Delete the nodes that were made for it and are still empty
        #[arg(long)]
        remove_targets: bool,
    },
    /// Keep a video as an asset, which stays when the record of the job is removed
    Keep {
        /// The job
        job: String,
        /// Store it in this canvas instead of your own assets
        #[arg(long, value_name = "CANVAS")]
        on: Option<String>,
        /// Show it in this video node of the canvas
        #[arg(long, value_name = "NODE", requires = "on")]
        target: Option<String>,
    },
    /// Download the file of a video
    Output {
        /// The job
        job: String,
        /// Where to write it: a file, a folder, or - for standard output
        #[arg(long, short, value_name = "FILE|DIR|-")]
        output: PathBuf,
    },
}
