//! Positions of an instance's nodes, read from left to right: inputs, steps, outputs.
//!
//! Inputs are in columns of at most four to the left of the sticky note. Outputs are to its right; an output that
//! uses earlier outputs is one column further than these, so that a chain reads in order. All columns are centered on
//! one line.

use domain::graph::{NodeType, Position};
use domain::recipe::{Definition, Input};

use super::Filling;
use crate::geometry::fitted_within;
use crate::placement::{Frame, LAYER_GAP, columns_of};

/// Distance between the nodes of a column, in canvas units.
pub const ROW_GAP: f64 = 48.0;
/// Width of the sticky note, in canvas units.
const INSTANCE_WIDTH: f64 = 360.0;
/// Height of the sticky note without its lines, and its least height, in canvas units.
const INSTANCE_HEIGHT: f64 = 240.0;
/// Height of a line of the sticky note's text, in canvas units. A step counts as two lines, because it is usually
/// longer than one.
const LINE: f64 = 24.0;

/// Longest side of an image port, in canvas units.
const PORT_SIDE: f64 = 240.0;

/// The frames of an instance's nodes, relative to the top left corner of the whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The sticky note.
    pub instance: Frame,
    /// The inputs, in order.
    pub inputs: Vec<Frame>,
    /// The outputs, in order.
    pub outputs: Vec<Frame>,
    /// Width of the whole.
    pub width: f64,
    /// Height of the whole.
    pub height: f64,
}

impl Layout {
    /// The layout of a Recipe's instance, whose ports hold `fillings`.
    pub fn new(definition: &Definition, fillings: &[Filling]) -> Self {
        let images = fillings.iter().map(|filling| filling.size).chain(std::iter::repeat(None));
        let inputs: Vec<Size> =
            definition.inputs.iter().zip(images).map(|(input, image)| port_size(input, image)).collect();
        let outputs: Vec<Size> = definition.outputs.iter().map(|output| result_size(output.kind.node_type())).collect();
        let mut columns: Vec<Vec<Cell>> =
            columns_of(0..inputs.len()).into_iter().map(|column| cells(column, Cell::Input)).collect();
        columns.push(vec![Cell::Instance]);
        let depths = definition.depths();
        for depth in 0..=depths.iter().copied().max().unwrap_or(0) {
            let at_depth = (0..outputs.len()).filter(|index| depths[*index] == depth);
            columns.extend(columns_of(at_depth).into_iter().map(|column| cells(column, Cell::Output)));
        }
        let instance = Size { width: INSTANCE_WIDTH, height: instance_height(definition) };
        let size = |cell: &Cell| match cell {
            Cell::Instance => instance,
            Cell::Input(index) => inputs[*index],
            Cell::Output(index) => outputs[*index],
        };
        let height_of = |column: &[Cell]| {
            let gaps = column.len().saturating_sub(1) as f64 * ROW_GAP;
            column.iter().map(|cell| size(cell).height).sum::<f64>() + gaps
        };
        let height = columns.iter().map(|column| height_of(column)).fold(0.0, f64::max);
        let nowhere = Frame::new(Position { x: 0.0, y: 0.0 }, 0.0, 0.0);
        let mut layout = Self {
            instance: nowhere,
            inputs: vec![nowhere; inputs.len()],
            outputs: vec![nowhere; outputs.len()],
            width: 0.0,
            height,
        };
        for column in &columns {
            let x = if layout.width > 0.0 { layout.width + LAYER_GAP } else { 0.0 };
            let mut y = ((height - height_of(column)) / 2.0).floor();
            for cell in column {
                let Size { width, height } = size(cell);
                let frame = Frame::new(Position { x, y }, width, height);
                match cell {
                    Cell::Instance => layout.instance = frame,
                    Cell::Input(index) => layout.inputs[*index] = frame,
                    Cell::Output(index) => layout.outputs[*index] = frame,
                }
                y += height + ROW_GAP;
                layout.width = layout.width.max(x + width);
            }
        }
        layout
    }
}

/// Content of a position.
#[derive(Clone, Copy)]
enum Cell {
    Input(usize),
    Instance,
    Output(usize),
}

#[derive(Clone, Copy)]
struct Size {
    width: f64,
    height: f64,
}

/// The size of a port. An image port shows its image whole.
fn port_size(input: &Input, image: Option<(f64, f64)>) -> Size {
    let (width, height) = match (input.kind.node_type(), image) {
        (NodeType::Image, Some(image)) => fitted_within(image, &input.label, (PORT_SIDE, PORT_SIDE)),
        (NodeType::Image, None) => (PORT_SIDE, PORT_SIDE),
        (NodeType::Sticky, _) => (240.0, 200.0),
        _ => (280.0, 180.0),
    };
    Size { width, height }
}

fn result_size(kind: NodeType) -> Size {
    match kind {
        NodeType::Image => Size { width: 320.0, height: 320.0 },
        _ => Size { width: 320.0, height: 240.0 },
    }
}

fn instance_height(definition: &Definition) -> f64 {
    (INSTANCE_HEIGHT + 2.0 * LINE * definition.outputs.len() as f64).floor()
}

fn cells(indexes: Vec<usize>, cell: impl Fn(usize) -> Cell) -> Vec<Cell> {
    indexes.into_iter().map(cell).collect()
}
