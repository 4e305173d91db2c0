/** A script of its own, which the page runs as soon as it is there. The application is a larger one, and takes longer. */
import { prefetch } from "./prefetch.ts";

prefetch(location.pathname);
