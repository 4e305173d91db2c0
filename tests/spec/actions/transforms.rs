//! The effect of each Action on pixels, over HTTP (docs/reference/actions.md).

use e2e::{Stack, suite};

use super::change_aspect_ratio::*;
use super::color_grade::*;
use super::crop::*;
use super::overlay_image::*;
use super::params::*;
use super::rotate::*;
use super::side_by_side_composite::*;

suite! {
    image_actions on Stack::builder().image_workers(1).env("CANVAS_RATE_PER_MINUTE", 0);
    crop_cuts_at_a_place_or_an_anchor,
    crop_is_measured_on_the_picture_as_displayed,
    crop_out_of_the_picture_is_refused,
    a_ratio_is_reached_by_cropping,
    a_ratio_is_reached_by_padding,
    a_ratio_beyond_the_limits_is_refused,
    two_pictures_lie_beside_or_above_each_other,
    the_first_picture_decides_the_format,
    pictures_too_long_together_are_refused,
    an_overlay_lies_where_it_is_anchored,
    an_overlay_is_mixed_by_opacity_and_blend,
    an_overlay_is_turned_about_its_centre,
    a_neutral_grade_changes_no_pixel,
    a_grade_follows_its_formulas,
    quarter_turns_are_lossless,
    any_angle_grows_the_picture_or_keeps_its_size,
    every_bound_of_every_parameter_is_judged,
    two_inputs_are_counted_and_each_must_resolve,
}
