/** The pages on which a person allows access, in one part: they share the decision. */
export { Authorize } from "./authorize.tsx";
export { Device } from "./device.tsx";
