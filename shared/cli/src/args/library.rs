//! Arguments of what is kept, and of everything else.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::asset::{AssetKindFilter, AssetSort, UploadMetadata};
use domain::element::{ElementType, Lifecycle};
use domain::limits::RENDITION_WIDTHS;
use domain::webhook::DeliveryStatus;

use super::{Listing, On, Search, one_of};

#[derive(Subcommand)]
pub enum Asset {
    /// Upload images or videos
    Put {
        /// The files, or folders of files; - is a file on standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The files of the folders in folders, too
        #[arg(long, short)]
        recursive: bool,
        /// Put them on this canvas, each as a node, with a folder among them all in one grid; without it, the one of `canvas use`
        #[arg(long, value_name = "CANVAS", env = "CANVAS_ON")]
        on: Option<String>,
        /// Put them on no canvas
        #[arg(long)]
        no_canvas: bool,
        /// Without a node, for example a mask
        #[arg(long)]
        no_node: bool,
        /// Private metadata: auto removes it and keeps the original for you, keep leaves it, strip removes it for good
        #[arg(long, value_name = "RULE", value_parser = one_of(UploadMetadata::ALL, UploadMetadata::as_str))]
        metadata: Option<String>,
        /// Upload them once more if they were uploaded before
        #[arg(long)]
        again: bool,
    },
    /// Download images and videos
    Get {
        /// Assets, and nodes of the canvas; - is standard input
        #[arg(required = true)]
        assets: Vec<String>,
        /// Where to write them: a file, a folder, or - for standard output
        #[arg(long, short, value_name = "FILE|DIR|-")]
        output: PathBuf,
        #[command(flatten)]
        on: On,
        /// A smaller rendition of this width; of a video, of its poster
        #[arg(long, value_name = "PIXELS", value_parser = PossibleValuesParser::new(RENDITION_WIDTHS.map(|it| it.to_string())))]
        width: Option<String>,
        /// The file as it was uploaded, if you own the asset and private metadata was removed from it
        #[arg(long, conflicts_with = "width")]
        original: bool,
    },
    /// Show what is known about an image or video
    Show {
        /// The asset, or a node of the canvas
        asset: String,
        #[command(flatten)]
        on: On,
    },
    /// List images, or videos
    List {
        /// Their kind; images and prompts without it
        #[arg(long, value_parser = one_of(AssetKindFilter::ALL, AssetKindFilter::as_str))]
        kind: Option<String>,
        /// Those of a canvas instead of your own
        #[arg(long, value_name = "CANVAS")]
        on: Option<String>,
        /// Only what this model made, by the provider's id
        #[arg(long)]
        model: Option<String>,
        /// Only what was stored at this time or later
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only what was stored before this time
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Only what a node with this tag shows
        #[arg(long)]
        tag: Option<String>,
        /// Their order; last changed first without it
        #[arg(long, value_name = "ORDER", value_parser = one_of(AssetSort::ALL, AssetSort::as_str))]
        sort: Option<String>,
        #[command(flatten)]
        search: Search,
    },
}

#[derive(Subcommand)]
pub enum Element {
    /// List Elements
    List {
        /// Their state; active without it
        #[arg(long, value_parser = one_of(Lifecycle::ALL, Lifecycle::as_str))]
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
        /// Its type
        #[arg(long = "type", value_name = "TYPE", value_parser = one_of(ElementType::ALL, ElementType::as_str))]
        kind: String,
        /// Images of it: assets, files, or nodes of the canvas of `canvas use`
        #[arg(long = "source", value_name = "PICTURE")]
        sources: Vec<String>,
        /// How to use it
        #[arg(long)]
        guidelines: Option<String>,
        /// Collections it belongs to
        #[arg(long = "collection", value_name = "ID")]
        collections: Vec<String>,
    },
    /// Change an Element: appends a version in which what is not named stays as it is
    Update {
        /// The Element
        element: String,
        /// Name
        #[arg(long)]
        name: Option<String>,
        /// Its type
        #[arg(long = "type", value_name = "TYPE", value_parser = one_of(ElementType::ALL, ElementType::as_str))]
        kind: Option<String>,
        /// Images of it, instead of those it has
        #[arg(long = "source", value_name = "PICTURE")]
        sources: Vec<String>,
        /// How to use it
        #[arg(long)]
        guidelines: Option<String>,
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
    /// Import an image
    Image {
        /// Its URL
        url: String,
        #[command(flatten)]
        on: On,
        /// Write them to a file or folder, too; - is standard output
        #[arg(long, short, value_name = "FILE|DIR|-")]
        output: Option<PathBuf>,
        /// Title of the node
        #[arg(long)]
        title: Option<String>,
    },
    /// Import the images of a product page
    Product {
        /// URL of the page
        url: String,
        #[command(flatten)]
        on: On,
        /// Write them to a file or folder, too; - is standard output
        #[arg(long, short, value_name = "FILE|DIR|-")]
        output: Option<PathBuf>,
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

#[derive(Subcommand)]
pub enum Webhook {
    /// List deliveries, the newest first
    List {
        /// Only those with this status
        #[arg(long, value_parser = one_of(DeliveryStatus::ALL, DeliveryStatus::as_str))]
        status: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Send finished deliveries once more: the same events, signed again
    Replay(Replay),
    /// Send the event of an ended run to a local address, as 'canvas listen' does
    Trigger {
        /// The run
        run: String,
        #[command(flatten)]
        to: Listen,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub struct Replay {
    /// The deliveries, webhook:ID; - reads them from standard input
    #[arg(value_name = "DELIVERY")]
    pub deliveries: Vec<String>,
    /// All failed ones whose run was started at this time or later, such as 2026-01-02T03:04:05Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Args)]
pub struct Listen {
    /// Where to send the webhooks, for example http://127.0.0.1:3000/hooks
    #[arg(long, value_name = "URL")]
    pub forward_to: String,
    /// The secret they are signed with, 32 to 512 characters; without it, it is asked for or read from standard input
    #[arg(long, value_name = "SECRET", env = "CANVAS_WEBHOOK_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
}
