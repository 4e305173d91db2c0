/** The longest texts of a node that the service takes, in characters. */
export const MOST_TITLE = 160;
export const MOST_TEXT = 24_000;
export const MOST_ALT_TEXT = 1000;
