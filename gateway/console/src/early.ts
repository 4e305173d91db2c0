/** A script of its own, which the page runs as soon as it is there. The application is a larger one, and takes longer. */
import { readAhead } from "./ahead.ts";

readAhead(location.pathname);
