//! Draws the instance of a shipped Recipe, for visual inspection: `cargo run -p canvas-canvas --example instance [name] >
//! instance.svg`.

use canvas::instance::{self, Filling, Ids, Instance};
use canvas::placement::Location;
use canvas::svg::{Drawing, EmbeddedImage, Style};
use canvas::{Graph, Options};
use domain::id::RecipeId;
use domain::recipe::Version;
use domain::recipe::file::{RecipeFile, SHIPPED};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "ad-copy-and-banner".into());
    let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name).ok_or("no shipped Recipe has this name")?;
    let definition = serde_json::from_str::<RecipeFile>(text)?.definition();
    let fillings: Vec<Filling> =
        definition.inputs.iter().map(|input| Filling { held: input.default.clone(), ..Filling::default() }).collect();
    let instance = Instance {
        recipe: &RecipeId::parse(&name)?,
        version: Version(0),
        definition: &definition,
        ids: &Ids::generate(definition.inputs.len(), definition.outputs.len()),
        fillings: &fillings,
        x: None,
        y: None,
        location: &Location::default(),
    };
    let mut graph = Graph::new(definition.name.clone(), 0, vec![], vec![]);
    instance::place(&mut graph, &instance, Options { agent: true, force: false })?;
    let (nodes, connections) = graph.into_parts();
    print!(
        "{}",
        Drawing::new(&definition.name, &nodes, &connections, Style::default()).finish(|_| EmbeddedImage::Pending)
    );
    Ok(())
}
