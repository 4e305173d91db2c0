/**
 * Each of these ends something that goes on after its screen was left: an engine that still sends, or a start without an answer. All of
 * that ends with the session, so nothing is sent for who signs in next. Others forget what was refused to the session.
 */
export const sessionEnd = new Set<() => void>();
