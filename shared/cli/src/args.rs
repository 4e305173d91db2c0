//! The arguments of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Work with canvases of Canvas Service
///
/// A CANVAS is named by its handle (canvas:<owner>:<id>), by its id when it is your own, or by the URL of its page.
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

/// Options of every command.
#[derive(Args)]
pub struct Global {
    /// Print the service's answer as JSON, and errors as JSON on standard error
    #[arg(long, global = true)]
    pub json: bool,
    /// Print results only, no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Profile of the configuration to use
    #[arg(long, global = true, value_name = "NAME", env = "CANVAS_PROFILE")]
    pub profile: Option<String>,
    /// Address of the service, for example https://canvas.example.com
    #[arg(long, global = true, value_name = "URL", env = "CANVAS_BASE_URL")]
    pub base_url: Option<String>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Store a token for an address
    Login(Login),
    /// Forget the token of a profile
    Logout,
    /// Show whose token is used, what it may do and the balance
    Whoami,
    /// Choose between stored services
    #[command(subcommand)]
    Profile(Profile),
    /// Check the address, the clock, the token and the versions
    Doctor,
    /// List canvases
    List(Listing),
    /// Make a canvas
    New(New),
    /// Open a canvas in a browser
    Open(OnCanvas),
    /// Show a canvas as text
    Show(Show),
    /// Show a canvas as a picture
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
    /// Follow canvases and runs until the runs have ended
    Watch(Watch),
    /// Show the findings of a canvas, and whether it may be called done
    Review(OnCanvas),
    /// Upload, download and list pictures
    #[command(subcommand)]
    Asset(Asset),
    /// List and run Image Actions
    #[command(subcommand)]
    Action(Action),
    /// Generate pictures from a prompt
    Generate(Generate),
    /// Edit pictures with a prompt
    Edit(Generate),
    /// Make variations of a picture
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
    /// Import pictures from the web
    #[command(subcommand)]
    Import(Import),
    /// Send any request
    Api(Api),
    /// Send the webhooks of your runs to a local address
    Listen(Listen),
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
    /// Read the token from standard input instead of asking for it
    #[arg(long)]
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

#[derive(Args)]
pub struct Listing {
    /// Read all pages; with --json, one item a line
    #[arg(long)]
    pub all: bool,
    /// Items of a page
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    /// The page after another one
    #[arg(long, value_name = "CURSOR", conflicts_with = "all")]
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

#[derive(Args)]
pub struct OnCanvas {
    /// The canvas
    pub canvas: String,
}

#[derive(Args)]
pub struct Show {
    /// The canvas
    pub canvas: String,
    /// Only this Section and its members
    #[arg(long, value_name = "NODE")]
    pub section: Option<String>,
}

#[derive(Args)]
pub struct View {
    /// The canvas
    pub canvas: String,
    /// Write the PNG to this file; - is standard output
    #[arg(long, short, value_name = "FILE")]
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
}

#[derive(Args)]
pub struct Apply {
    /// A file with the body of the operations route, or its array of operations; - is standard input
    pub file: PathBuf,
    #[command(flatten)]
    pub write: Write,
}

/// Options of every batch.
#[derive(Args)]
pub struct Write {
    /// The canvas
    #[arg(long, value_name = "CANVAS")]
    pub on: String,
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
        /// The nodes
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
    /// Picture of an image node
    #[arg(long, value_name = "HANDLE")]
    pub asset: Option<String>,
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
    /// flow, reference, list, first_frame or last_frame
    #[arg(long, default_value = "flow")]
    pub purpose: String,
    /// What a reference is for, for example identity
    #[arg(long)]
    pub role: Option<String>,
    #[command(flatten)]
    pub write: Write,
}

#[derive(Args)]
pub struct Disconnect {
    /// The connections
    #[arg(required = true)]
    pub connections: Vec<String>,
    #[command(flatten)]
    pub write: Write,
}

#[derive(Args)]
pub struct Watch {
    /// Canvases, runs and jobs; all of your runs without any
    pub subjects: Vec<String>,
    /// Give up after this time
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
}

#[derive(Subcommand)]
pub enum Asset {
    /// Upload pictures
    Put {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Put them on this canvas, each as a node
        #[arg(long, value_name = "CANVAS")]
        on: Option<String>,
        /// Upload them once more if they were uploaded before
        #[arg(long)]
        again: bool,
    },
    /// Download a picture
    Get {
        /// The asset
        asset: String,
        /// Where to write it; - is standard output
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// A smaller rendition: 64, 128, 256, 512, 1024 or 2048 pixels wide
        #[arg(long, value_name = "PIXELS")]
        width: Option<u32>,
    },
    /// Show what is known about a picture
    Show {
        /// The asset
        asset: String,
    },
    /// List pictures
    List {
        /// Those of a canvas instead of your own
        #[arg(long, value_name = "CANVAS")]
        on: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
}

#[derive(Subcommand)]
pub enum Action {
    /// List the Actions
    List(Search),
    /// Show an Action and its parameters
    Show {
        /// Its key, for example resize
        action: String,
    },
    /// Run an Action
    Run {
        /// Its key, for example resize
        action: String,
        /// Pictures: node: or asset: handles
        #[arg(required = true)]
        inputs: Vec<String>,
        /// A parameter, as name=value
        #[arg(long = "param", short, value_name = "NAME=VALUE")]
        params: Vec<String>,
        /// The empty image node that receives the result, instead of a new one
        #[arg(long, value_name = "NODE", conflicts_with_all = ["x", "y", "near", "section"])]
        target: Option<String>,
        #[command(flatten)]
        position: Position,
        #[command(flatten)]
        start: CanvasStart,
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
    /// Start nothing that costs more credits than this
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
}

/// Options of every start of work on a canvas.
#[derive(Args)]
pub struct CanvasStart {
    /// The canvas
    #[arg(long, value_name = "CANVAS")]
    pub on: String,
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
    /// A picture to use, as HANDLE or HANDLE=ROLE
    #[arg(long = "reference", short, value_name = "HANDLE[=ROLE]")]
    pub references: Vec<String>,
    #[command(flatten)]
    pub making: Making,
}

#[derive(Args)]
pub struct Vary {
    /// The picture: a node: or asset: handle
    pub source: String,
    #[command(flatten)]
    pub making: Making,
}

/// Options of everything that makes pictures with a model.
#[derive(Args)]
pub struct Making {
    /// The model: its handle, or its name
    #[arg(long, short)]
    pub model: Option<String>,
    /// An Element to use: element:<id>@v<n>
    #[arg(long = "element", value_name = "HANDLE")]
    pub elements: Vec<String>,
    /// Number of pictures, 1 to 4
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
    /// Empty image nodes that receive the pictures, instead of new ones
    #[arg(long = "target", value_name = "NODE", conflicts_with_all = ["x", "y", "near", "section", "title"])]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub position: Position,
    #[command(flatten)]
    pub start: CanvasStart,
}

#[derive(Args)]
pub struct Video {
    /// What to make; - is standard input
    #[arg(long, value_name = "TEXT")]
    pub prompt: String,
    /// The model: its handle, or its name
    #[arg(long, short)]
    pub model: String,
    /// The first frame: a node: or asset: handle
    #[arg(long, value_name = "HANDLE")]
    pub first_frame: Option<String>,
    /// The last frame
    #[arg(long, value_name = "HANDLE")]
    pub last_frame: Option<String>,
    /// A picture to use
    #[arg(long = "reference", short, value_name = "HANDLE")]
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
    /// The canvas of the nodes that are named
    #[arg(long, value_name = "CANVAS")]
    pub on: Option<String>,
    /// Write the film to this file when it is done
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
        /// An input, as name=value: a text, or a node: or asset: handle; name=- reads standard input
        #[arg(long = "input", short, value_name = "NAME=VALUE")]
        inputs: Vec<String>,
        /// One of its versions
        #[arg(long)]
        version: Option<String>,
        /// A copy of the Recipe that stands on the canvas, instead of a new one
        #[arg(long, value_name = "NODE")]
        instance: Option<String>,
        /// The model of all its pictures
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
        /// The canvas
        #[arg(long, value_name = "CANVAS")]
        on: String,
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
        /// image, action, video or recipe
        #[arg(long)]
        kind: Option<String>,
        /// queued, running, succeeded, …
        #[arg(long)]
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
        /// The runs and jobs
        #[arg(required = true)]
        runs: Vec<String>,
        /// Give up after this time
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
    /// Cancel a run or job
    Cancel {
        /// The run or job
        run: String,
        /// Delete the nodes that were made for it and are still empty
        #[arg(long)]
        remove_targets: bool,
    },
    /// Download the film of a video
    Output {
        /// The job
        job: String,
        /// Where to write it; - is standard output
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
}

#[derive(Subcommand)]
pub enum Element {
    /// List Elements
    List {
        /// active, archived or all
        #[arg(long)]
        state: Option<String>,
        #[command(flatten)]
        search: Search,
    },
    /// Show an Element, or one of its versions
    Show {
        /// The Element
        element: String,
    },
    /// List the versions of an Element
    Versions {
        /// The Element
        element: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Make an Element
    Create {
        /// Name
        name: String,
        /// Its type, for example product/object
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        /// Pictures of it
        #[arg(long = "source", value_name = "ASSET", required = true)]
        sources: Vec<String>,
        /// How to use it
        #[arg(long)]
        guidelines: Option<String>,
        /// Collections it belongs to
        #[arg(long = "collection", value_name = "ID")]
        collections: Vec<String>,
    },
    /// Archive an Element
    Archive {
        /// The Element
        element: String,
    },
    /// Restore an archived Element
    Restore {
        /// The Element
        element: String,
    },
}

#[derive(Subcommand)]
pub enum Collection {
    /// List collections
    List(Listing),
    /// Make a collection
    Create {
        /// Name
        name: String,
    },
    /// Rename a collection
    Rename {
        /// The collection
        collection: String,
        /// New name
        name: String,
    },
    /// Delete a collection; its Elements stay
    Delete {
        /// The collection
        collection: String,
    },
}

#[derive(Subcommand)]
pub enum Import {
    /// Import a picture
    Image {
        /// Its URL
        url: String,
        /// The canvas
        #[arg(long, value_name = "CANVAS")]
        on: String,
        /// Title of the node
        #[arg(long)]
        title: Option<String>,
    },
    /// Import the pictures of a product page
    Product {
        /// URL of the page
        url: String,
        /// The canvas
        #[arg(long, value_name = "CANVAS")]
        on: String,
        /// One variant of the product, as key=value
        #[arg(long, value_name = "KEY=VALUE")]
        variant: Option<String>,
        /// Title of the Section
        #[arg(long)]
        title: Option<String>,
    },
}

#[derive(Args)]
pub struct Api {
    /// GET, POST, PATCH or DELETE
    pub method: http::Method,
    /// The path below the root of the API, with its query
    pub path: String,
    /// The body: JSON, @FILE, or @- for standard input
    #[arg(long, short, value_name = "BODY")]
    pub data: Option<String>,
    /// A header, as Name: value
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    pub headers: Vec<String>,
}

#[derive(Args)]
pub struct Listen {
    /// Where to send the webhooks, for example http://127.0.0.1:3000/hooks
    #[arg(long, value_name = "URL")]
    pub forward_to: String,
    /// The secret they are signed with; without it, standard input is read
    #[arg(long, value_name = "SECRET", env = "CANVAS_WEBHOOK_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
}
