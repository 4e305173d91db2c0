/** The longest texts of a node that the service takes, in characters. */
export const MOST_TITLE = 160;
export const MOST_TEXT = 24_000;
export const MOST_ALT_TEXT = 1000;
/** The most nodes of which the service draws a part of a canvas. */
export const MOST_DRAWN = 200;
