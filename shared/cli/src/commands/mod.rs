//! The commands.

pub mod account;
mod api;
mod assets;
mod batch;
mod boards;
mod canvases;
mod catalogs;
mod elements;
mod files;
mod imports;
mod listen;
pub mod login;
mod pictures;
mod runs;
pub mod skills;
mod starts;
mod waits;
mod watch;
mod webhooks;
mod work;

use crate::args::{Command, Connection};
use crate::context::Context;
use crate::failure::{Failure, Outcome, file};

/// Carries out a command that talks to the service.
pub async fn run(context: &Context, command: Command) -> Outcome {
    match command {
        Command::Whoami => account::whoami(context).await,
        Command::Doctor => account::doctor(context).await,
        Command::List(listing) => canvases::list(context, &listing).await,
        Command::Rename(rename) => boards::rename(context, rename).await,
        Command::Find(find) => boards::find(context, find).await,
        Command::Export(export) => boards::export(context, export).await,
        Command::Credits => account::credits(context).await,
        Command::Connection(Connection::List(listing)) => account::connections(context, &listing).await,
        Command::New(new) => canvases::new(context, &new).await,
        Command::Use(used) => canvases::use_canvas(context, &used).await,
        Command::Open(on) => canvases::open(context, on.on.as_deref()).await,
        Command::Show(show) => canvases::show(context, &show).await,
        Command::View(view) => canvases::view(context, &view).await,
        Command::Review(on) => canvases::review(context, on.on.as_deref()).await,
        Command::Apply(apply) => batch::apply(context, &apply).await,
        Command::Node(node) => batch::node(context, node).await,
        Command::Connect(connect) => batch::connect(context, connect).await,
        Command::Disconnect(disconnect) => batch::disconnect(context, disconnect).await,
        Command::Watch(watch) => watch::watch(context, &watch).await,
        Command::Asset(asset) => assets::run(context, asset).await,
        Command::Action(action) => catalogs::action(context, action).await,
        Command::Generate(generate) => starts::generate(context, generate).await,
        Command::Edit(edit) => starts::edit(context, edit).await,
        Command::Vary(vary) => starts::vary(context, vary).await,
        Command::Video(video) => starts::video(context, video).await,
        Command::Recipe(recipe) => catalogs::recipe(context, recipe).await,
        Command::Model(model) => catalogs::model(context, model).await,
        Command::Run(run) => runs::run(context, run).await,
        Command::Element(element) => elements::element(context, element).await,
        Command::Collection(collection) => elements::collection(context, collection).await,
        Command::Import(import) => imports::run(context, import).await,
        Command::Api(api) => api::run(context, &api).await,
        Command::Listen(listen) => listen::run(context, &listen).await,
        Command::Webhook(webhook) => webhooks::run(context, webhook).await,
        Command::Mcp { root } => {
            let directory = tools::Root::new(&root).map_err(|error| file(&root, &error))?;
            let served = tools::stdio(context.tools(), directory, &context.origin).await;
            served.map_err(|error| Failure::Disconnected(format!("MCP on standard input and output: {error}")))
        }
        // These need no service and are done before.
        Command::Login(_)
        | Command::Logout
        | Command::Profile(_)
        | Command::Skills(_)
        | Command::Completions { .. }
        | Command::Man { .. } => Ok(()),
    }
}
