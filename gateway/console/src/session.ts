/** The session of this browser. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { useLocation } from "wouter";
import { api, type Credential, type Session, serves } from "./api.ts";
import { person } from "./person.ts";
import { expire, forget, remember } from "./prefetch.ts";
import { sessionEnd } from "./session-end.ts";
import { setTheme, theme } from "./ui/theme.ts";
import { endUploads } from "./uploads.ts";

async function read(): Promise<Session | null> {
  const session = await api.session();
  if (session) remember(true);
  else expire();
  return session && adopted(session);
}

/**
 * A page serves one account, and is loaded anew for another: what it shows, keeps and still sends is not of that one. Until then its
 * requests are refused.
 */
function adopted(session: Session): Session | Promise<never> {
  if (serves(session.account.id)) return session;
  endUploads();
  location.reload();
  return new Promise(() => {});
}

/** That nobody is signed in may have changed in another tab, and a request that was refused may have been one of another account. */
const staleTime = ({ state }: { state: { data: Session | null | undefined } }) => (state.data === null ? 0 : 60_000);

export const useSessionQuery = () => useQuery({ queryKey: ["session"], queryFn: read, staleTime });

/** The providers that people sign in with. Without an answer there are none: links and tokens work in any case. */
export const useProviders = () =>
  useQuery({ queryKey: ["providers"], queryFn: ({ signal }) => api.providers(signal), staleTime: Number.POSITIVE_INFINITY, retry: false, meta: { isOfSession: false } });

export const SessionContext = createContext<Session | null>(null);

/** The session, below `SessionContext`. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("used outside of a session");
  return session;
}

interface SigningIn {
  signIn: (credential: Credential) => Promise<void>;
  /** Ends this session and leads to the sign-in page, or to `to`. */
  signOut: (to?: string) => Promise<void>;
  /** Ends all sessions of the account. */
  signOutEverywhere: () => Promise<void>;
}

export function useSigningIn(): SigningIn {
  const queries = useQueryClient();
  const [, navigate] = useLocation();

  /** Nothing that was read stays, and nothing goes on. Uploads that met the end of a session can be tried again in the next one. */
  function change(session: Session | null) {
    for (const end of sessionEnd) end();
    if (!session) endUploads();
    forget();
    remember(session !== null);
    // An answer that is under way is an older one.
    void queries.cancelQueries({ queryKey: ["session"] });
    queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
    queries.setQueryData(["session"], session);
  }

  async function leave(end: () => Promise<void>, to = "/signin") {
    const chosen = theme();
    // A page that is opened meanwhile asks for nothing.
    remember(false);
    await end();
    // Signing out deletes what the browser stored for this origin.
    setTheme(chosen);
    navigate(to);
    change(null);
  }

  return {
    signIn: async (credential) => change(await adopted(await api.signIn(credential))),
    signOut: (to) => leave(api.signOut, to),
    signOutEverywhere: () => leave(person.endAllSessions),
  };
}
